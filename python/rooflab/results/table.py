"""A table: aligned columns in a terminal, a table in a browser and in Markdown, a file for a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import parsed
from ..units import rounded
from .pages import page
from .plain import plain, read, same, to_json

if TYPE_CHECKING:
    from pandas import DataFrame

_SPECIAL_IN_MARKDOWN = re.compile(r"([\\|*`\[\]~$]|(?<![^\W_])_|_(?![^\W_]))")  # none: a_b
_DIGIT = re.compile(r"\d")
_WORD = re.compile("'*(NaN|-?Infinity)")  # numbers that JSON does not have, and texts that look like them
_FORMULA = re.compile(r"[=+\-@\t\r].")  # a cell that a spreadsheet would compute


@dataclass(frozen=True)
class Table:
    """Rows under a head.

    Attributes
    ----------
    head : sequence of str
        Names of the columns. In a terminal one may have several lines.
    rows : sequence of sequences
        Cells; each row is as long as the head. Columns of numbers and of texts that begin like numbers are aligned
        right. An empty cell is "" or None.
    title, note : str
        Above and below the table.
    labels : int
        How many columns at the left name the row, such as 2.1: they are aligned left whatever they hold.

    Raises
    ------
    ValueError
        A row is longer or shorter than the head.

    Examples
    --------
    >>> from rooflab.results import Table
    >>> print(Table(("L", "ms"), [(256, "0.61"), (1024, "0.85")]))
       L    ms
     256  0.61
    1024  0.85
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""
    labels: int = 0

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"[Table] row: expected {len(self.head)} cells, got {len(row)}")
        object.__setattr__(self, "head", tuple(self.head))  # so that tables of equal cells are equal
        object.__setattr__(self, "rows", [tuple(map(_cell, row)) for row in self.rows])

    def __eq__(self, other: object) -> bool:
        """Whether head, cells and texts are the same; NaN is the same as NaN."""
        return same(vars(self), vars(other)) if isinstance(other, Table) else NotImplemented

    def __str__(self) -> str:
        return "\n".join([*([self.title] if self.title else []), *self.lines(), *([self.note] if self.note else [])])

    __repr__ = __str__

    def lines(self) -> list[str]:
        """The head and the rows as aligned text, without title and note."""
        heads = [str(name).split("\n") for name in self.head]
        height = max(map(len, heads), default=1)
        above = zip(*([""] * (height - len(head)) + head for head in heads), strict=True)
        texts = [*above, *([" ".join(_text(cell).split("\n")) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        sides = self._sides()
        return [
            "  ".join(
                cell.rjust(width) if side == "right" else cell.ljust(width)
                for cell, width, side in zip(row, widths, sides, strict=True)
            ).rstrip()
            for row in texts
        ]

    def to_html(self) -> str:
        """The table as HTML, everything in it escaped."""
        sides = self._sides()
        rows = [[(_text(cell), side) for cell, side in zip(row, sides, strict=True)] for row in (self.head, *self.rows)]
        return page(__package__, "table.html", head=rows[0], rows=rows[1:], title=self.title, note=self.note)

    _repr_html_ = to_html

    def to_markdown(self) -> str:
        """The table in Markdown. What Markdown or HTML would read as markup is escaped."""
        rows = ["| " + " | ".join(map(in_markdown, row)) + " |" for row in (self.head, *self.rows)]
        rows.insert(1, "|" + "".join("---:|" if side == "right" else "---|" for side in self._sides()))
        notes = ([in_markdown(self.title)] if self.title else [], [in_markdown(self.note)] if self.note else [])
        return "\n\n".join([*notes[0], "\n".join(rows), *notes[1]])

    def to_csv(self) -> str:
        """A header, then a line for each row, in full precision. An unknown cell, None or NaN, is empty.

        A text that a spreadsheet would take for a formula begins with an apostrophe.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([_csv(cell) for cell in row] for row in (self.head, *self.rows))
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values: head, rows, title, note and labels."""
        return plain(vars(self))

    def to_json(self, indent: int | None = None) -> str:
        """What `to_dict` gives, as JSON. Texts that would be read as a number that is not finite get an apostrophe."""
        values = self.to_dict()
        return to_json(values | {"rows": _told_apart(values["rows"])}, indent)

    @classmethod
    def from_json(cls, text: str) -> Table:
        """The table that `to_json` wrote.

        Raises
        ------
        ValueError
            When it is something else.
        """
        table = read(cls, parsed(text))
        return replace(table, rows=[[_read_cell(cell) for cell in row] for row in table.rows])

    def to_pandas(self) -> DataFrame:
        """The table as a pandas.DataFrame.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError("[to_pandas] pandas is not installed; run: pip install pandas") from error
        return DataFrame([list(row) for row in self.rows], columns=list(self.head))

    @classmethod
    def of(cls, records: Iterable[dict[str, Any]], head: Sequence[str] = ()) -> Table:
        """A table of dicts, with a column for each key in the order of their first appearance, `head` first.

        Examples
        --------
        >>> from rooflab.results import Table
        >>> print(Table.of([{"op": "add", "launches": 1}, {"op": "exp", "ms": 0.5}]))
        op   launches   ms
        add         1
        exp            0.5
        """
        rows = list(records)
        names = list(dict.fromkeys([*head, *(name for row in rows for name in row)]))
        return cls(names, [[row.get(name) for name in names] for row in rows])

    def shown(self) -> Table:
        """The same with numbers as people read them: 1,024 and four significant digits."""
        return Table(
            self.head, [[_shown(cell) for cell in row] for row in self.rows], self.title, self.note, self.labels
        )

    def _sides(self) -> list[str]:
        """Where the cells of each column stand. A column of numbers stands right."""
        columns: Iterator[tuple[Any, ...]] = zip(*self.rows, strict=True)
        sides = ["right" if _is_of_figures(column) else "left" for column in columns] or ["left"] * len(self.head)
        return ["left"] * self.labels + sides[self.labels :]


def _is_of_figures(column: Iterable[Any]) -> bool:
    """Whether every cell begins as a number does, or is empty, and some cell has a digit."""
    filled = [text for cell in column if (text := _text(cell))]
    return any(map(_DIGIT.search, filled)) and all(text[0] in "0123456789-+~." for text in filled)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _shown(cell: Any) -> str:
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return _text(cell)
    return f"{cell:,}" if isinstance(cell, int) else rounded(cell, 4)


def in_markdown(cell: Any) -> str:
    """A text that Markdown shows as it is, in one line."""
    text = _SPECIAL_IN_MARKDOWN.sub(r"\\\1", _text(cell).replace("&", "&amp;").replace("<", "&lt;"))
    return " ".join(text.splitlines())


def _cell(value: Any) -> Any:
    """A cell with tuples in place of lists and arrays, which JSON does not tell apart."""
    if isinstance(value, np.ndarray):
        return _cell(value.tolist())
    if isinstance(value, dict):
        return {key: _cell(item) for key, item in value.items()}
    return tuple(map(_cell, value)) if isinstance(value, (list, tuple)) else value


def _told_apart(value: Any) -> Any:
    """Plain values whose texts "NaN" and "Infinity" differ from the words for such numbers."""
    if isinstance(value, str) and _WORD.fullmatch(value):
        return f"'{value}"
    if isinstance(value, dict):
        return {key: _told_apart(item) for key, item in value.items()}
    return list(map(_told_apart, value)) if isinstance(value, list) else value


def _read_cell(value: Any) -> Any:
    """A cell from what `_told_apart` and JSON made of it."""
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value[1:] if value[0] == "'" else float(value)
    if isinstance(value, dict):
        return {key: _read_cell(item) for key, item in value.items()}
    return tuple(map(_read_cell, value)) if isinstance(value, (list, tuple)) else value


def _csv(cell: Any) -> Any:
    if isinstance(cell, (float, np.generic)) and cell != cell:
        return ""
    if isinstance(cell, (dict, list, tuple)):
        return to_json(plain(cell))
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not _is_number(cell) else cell


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True
