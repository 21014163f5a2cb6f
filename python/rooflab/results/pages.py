"""HTML from Jinja2 templates, which escape what is put into them. A template lies beside the module that uses it."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


@functools.cache
def _environment(package: str) -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(package)
    return Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(package: str, name: str, **values: Any) -> str:
    """The template `name` in the folder of `package`, with `values` in their places.

    Parameters
    ----------
    package : str
        The module's ``__package__``.
    name : str
        The file's name.
    **values
        Texts are escaped. What is HTML already needs the filter ``safe`` in the template.

    Examples
    --------
    >>> page("rooflab.results", "table.html", title="a < b", note="", head=[("n", "right")], rows=[[(1, "right")]])
    '<table><caption>a &lt; b</caption><thead>...<td style="text-align:right">1</td></tr></tbody></table>'
    """
    return _environment(package).get_template(name).render(values)
