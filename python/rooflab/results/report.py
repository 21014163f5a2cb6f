"""A report of tables and figures, as HTML and as Markdown."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..files import replacing
from .mixin import ResultMixin
from .pages import page
from .table import Table, in_markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report"]


@dataclass
class Report:
    """Sections of tables, figures and text in order.

    Parameters
    ----------
    title : str
        What it reports.

    Examples
    --------
    >>> from rooflab.results import Report
    >>> report = Report("My GPU")
    >>> report.section("Times")
    >>> report.table(("L", "ms"), [(128, 38.3)], "forward pass, fp32, ms")
    >>> print(report.markdown())
    # My GPU
    <BLANKLINE>
    ## Times
    <BLANKLINE>
    | L | ms |
    |---:|---:|
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

    def result(self, measured: ResultMixin) -> None:
        """Add the table of a result; what stands under it is its caption."""
        self._parts.append(("table", measured._table(), ""))

    def figure(self, drawn: Figure, caption: str) -> None:
        """Add a figure."""
        image = io.BytesIO()
        drawn.savefig(image, format="png", dpi=110, bbox_inches="tight")
        self._parts.append(("figure", image.getvalue(), caption))

    def file(self, name: str, write: Callable[[Path], object], caption: str) -> None:
        """Add a link to a file beside the report; `save` calls ``write(path)`` to write it."""
        self._parts.append(("file", (name, write), caption))

    def markdown(self, folder: str | PathLike[str] | None = None) -> str:
        """The report as Markdown; figures are written into `folder`, or left out without one."""
        lines = [f"# {in_markdown(self.title)}"]
        for number, (kind, value, words) in enumerate(self._parts):
            caption = in_markdown(words)
            if kind == "section":
                lines.append(f"## {in_markdown(value)}")
            elif kind == "text":
                lines.append(value)
            elif kind == "table":
                lines += [value.to_markdown(), *([f"*{caption}*"] if caption else [])]
            elif kind == "file":
                lines.append(f"[{caption}]({quote(value[0])})")
            elif folder is not None:
                with replacing(Path(folder, f"figure-{number}.png")) as unfinished:
                    unfinished.write_bytes(value)
                lines.append(f"![{caption}](figure-{number}.png)")
        return "\n\n".join(lines)

    def html(self) -> str:
        """The report as one HTML page, its figures inside."""
        shown = {
            "table": lambda table: table.to_html(),
            "figure": lambda image: base64.b64encode(image).decode(),
            "file": lambda file: quote(file[0]),
        }
        parts = [(kind, shown.get(kind, str)(value), caption) for kind, value, caption in self._parts]
        sections = [value for kind, value, _ in self._parts if kind == "section"]
        return page(__package__, "report.html", title=self.title, parts=parts, sections=sections)

    def save(self, folder: str | PathLike[str]) -> tuple[Path, Path]:
        """Write ``report.html`` and ``report.md`` into `folder`, with its figures and files; returns both paths."""
        for kind, value, _ in self._parts:
            if kind == "file":
                name, write = value
                write(Path(folder, name))
        places = Path(folder, "report.html"), Path(folder, "report.md")
        for place, text in zip(places, (self.html(), self.markdown(folder)), strict=True):
            with replacing(place) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
        return places

    def _repr_html_(self) -> str:
        return self.html().partition("<body>")[2].partition("</body>")[0]
