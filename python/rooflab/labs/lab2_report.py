"""A report of a student's own tables and figures, as HTML and as Markdown."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflab.labs.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report"]

_STYLE = """body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; } td, th { padding: 0.2em 0.7em; border-bottom: 1px solid #ddd; }
caption { text-align: left; font-weight: bold; padding-bottom: 0.3em; } img { max-width: 100%; }
figcaption, p.note { color: #555; }"""


@dataclass
class Report:
    """Sections of tables, figures and text in order.

    Parameters
    ----------
    title : str
        What it reports.

    Examples
    --------
    >>> report = Report("My GPU")
    >>> report.section("Times")
    >>> report.table(("L", "ms"), [(128, 38.3)], "forward pass, fp32, ms")
    >>> print(report.markdown())
    # My GPU
    <BLANKLINE>
    ## Times
    <BLANKLINE>
    | L | ms |
    |---|---|
    | 128 | 38.3 |
    <BLANKLINE>
    *forward pass, fp32, ms*
    """

    title: str
    _parts: list[tuple[str, Any, str]] = field(default_factory=list, repr=False)

    def section(self, heading: str) -> None:
        """Begin a section."""
        self._parts.append(("section", heading, ""))

    def text(self, words: str) -> None:
        """Add a paragraph."""
        self._parts.append(("text", words, ""))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> None:
        """Add a table. A caption says what the figures are: machine, dtype, length, unit.

        Raises
        ------
        ValueError
            For a row that is longer or shorter than the head, or an empty caption.
        """
        if not caption.strip():
            raise ValueError("[Report] caption: expected a text that names machine, dtype and unit, got nothing")
        self._parts.append(("table", Table(head, rows), caption))

    def figure(self, drawn: Figure, caption: str) -> None:
        """Add a figure."""
        image = io.BytesIO()
        drawn.savefig(image, format="png", dpi=110, bbox_inches="tight")
        self._parts.append(("figure", image.getvalue(), caption))

    def markdown(self, folder: str | PathLike[str] | None = None) -> str:
        """The report as Markdown; figures are written into `folder`, or left out without one."""
        lines = [f"# {self.title}"]
        for number, (kind, value, caption) in enumerate(self._parts):
            if kind == "section":
                lines.append(f"## {value}")
            elif kind == "text":
                lines.append(value)
            elif kind == "table":
                rows = ["| " + " | ".join(map(str, row)) + " |" for row in (value.head, *value.rows)]
                rows.insert(1, "|" + "---|" * len(value.head))
                lines += ["\n".join(rows), f"*{caption}*"]
            elif folder is not None:
                Path(folder, f"figure-{number}.png").write_bytes(value)
                lines.append(f"![{caption}](figure-{number}.png)")
        return "\n\n".join(lines)

    def html(self) -> str:
        """The report as one HTML page, its figures inside."""
        body = [f"<h1>{escape(self.title)}</h1>"]
        for kind, value, caption in self._parts:
            note = f'<p class="note">{escape(caption)}</p>'
            if kind == "section":
                body.append(f"<h2>{escape(value)}</h2>")
            elif kind == "text":
                body.append(f"<p>{escape(value)}</p>")
            elif kind == "table":
                body.append(value._repr_html_() + note)
            else:
                data = base64.b64encode(value).decode()
                image = f'<img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
                body.append(f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>")
        head = f'<meta charset="utf-8"><title>{escape(self.title)}</title><style>{_STYLE}</style>'
        return f"<!DOCTYPE html><html><head>{head}</head><body>{''.join(body)}</body></html>"

    def save(self, folder: str | PathLike[str]) -> tuple[Path, Path]:
        """Write ``report.html`` and ``report.md`` with its figures into `folder`; returns both paths."""
        places = Path(folder, "report.html"), Path(folder, "report.md")
        for place, text in zip(places, (self.html(), self.markdown(folder)), strict=True):
            place.write_text(text, encoding="utf-8")
        return places

    def _repr_html_(self) -> str:
        return self.html().partition("<body>")[2].partition("</body>")[0]
