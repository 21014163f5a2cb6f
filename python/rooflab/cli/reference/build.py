"""HTML from the sources of the pages, by Sphinx with the theme Furo. Needs no network, now or when pages are read."""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import furo  # noqa: F401 - the theme, which Sphinx finds by its name
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

import rooflab

from .prose import restructured
from .sources import pages
from .subjects import documented

SETTINGS = {
    "project": "rooflab",
    "release": rooflab.__version__,
    "html_title": f"rooflab {rooflab.__version__}",
    "html_theme": "furo",
    "html_copy_source": False,
    "html_show_copyright": False,
    "html_use_index": True,
    "extensions": ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"],
    "autosummary_generate": False,
    "autodoc_member_order": "groupwise",
    "autodoc_typehints": "none",
    "napoleon_google_docstring": False,
    "napoleon_custom_sections": [("Attributes", "params_style")],  # which may name several in one line
    "smartquotes_action": "D",  # dashes alone
    "toc_object_entries_show_parents": "hide",
    "highlight_language": "python",
    "nitpicky": True,
}


def build(parser: argparse.ArgumentParser, folder: Path, progress: Callable[[str], None]) -> str:
    """Write the pages to `folder`, and return what Sphinx warns of, one warning a line.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The command line.
    folder : Path
        A folder that does not exist yet.
    progress : callable
        Is given a word on what is going on.
    """
    warnings = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="rooflab-") as made, docutils_namespace():
        source = Path(made) / "source"
        source.mkdir()
        progress("reading docstrings")
        for page, text in pages(parser).items():
            (source / f"{page}.rst").write_text(text, encoding="utf-8")
        app = Sphinx(
            source, None, folder, Path(made) / "doctrees", "html", confoverrides=SETTINGS, status=None, warning=warnings
        )
        app.connect("autodoc-process-docstring", _processed, priority=100)  # before napoleon, which has 500
        app.connect("autodoc-process-signature", _signature)
        app.connect("doctree-read", _linked)
        progress("writing pages")
        app.build()
    return re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue())  # without its colours


def _processed(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    lines[:] = [*restructured("\n".join(lines)).split("\n"), ""]


def _signature(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """The signature of a native method as that of any other: without the type of `self`, and by public names."""
    plain = [part and re.sub(r"self: [\w.]+(?:, )?|\b_core\.", "", part) for part in (signature, returns)]
    return plain[0], plain[1]


def _linked(app: Sphinx, page: nodes.document) -> None:
    """Types that are classes of rooflab become links. Sphinx would link any word to whatever has its name anywhere."""
    for node in [*page.findall(pending_xref)]:
        if not node.get("refspecific"):
            continue
        name = node["reftarget"]
        for module in (node.get("py:module"), "rooflab"):
            if f"{module}.{name}" in documented() and inspect.isclass(getattr(importlib.import_module(module), name)):
                node["reftarget"], node["refspecific"] = f"{module}.{name}", False
                break
        else:
            node.replace_self(node.children)
