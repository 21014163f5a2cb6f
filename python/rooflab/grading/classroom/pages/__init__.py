"""Pages of grades as Jinja2 templates. What a student wrote, and any other text, is escaped in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def page(name: str, **values: Any) -> str:
    """The template `name` of this folder with `values` in their places.

    Examples
    --------
    >>> page("findings.html", title="Lab <1>", questions={"1.1": [("ada", "<b>")]})
    '<!doctype html>...<h1>Findings: Lab &lt;1&gt;</h1>...<h3>ada</h3><pre>&lt;b&gt;</pre>...'
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).parent)
    made = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.get_template(name).render(values)
