"""A table that a notebook shows as a table, and a terminal as aligned columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rooflab import html


@dataclass(frozen=True)
class Table:
    """Rows under a head.

    Attributes
    ----------
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Cells; each row is as long as the head. Numbers and texts that begin like numbers are aligned right.
    title, note : str
        Above and below the table.

    Raises
    ------
    ValueError
        A row is longer or shorter than the head.

    Examples
    --------
    >>> print(Table(("L", "ms"), [(256, "0.61"), (1024, "0.85")]))
       L    ms
     256  0.61
    1024  0.85
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"[Table] row: expected {len(self.head)} cells, got {len(row)}")

    def __str__(self) -> str:
        texts = [[str(cell) for cell in row] for row in (self.head, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        right = [self._is_right(column) for column in range(len(self.head))]
        lines = [
            "  ".join(
                cell.rjust(width) if side else cell.ljust(width)
                for cell, width, side in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in texts
        ]
        return "\n".join([*([self.title] if self.title else []), *lines, *([self.note] if self.note else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.table(self.head, self.rows, self.note, self.title)

    def _is_right(self, column: int) -> bool:
        return bool(self.rows) and html.is_of_figures(row[column] for row in self.rows)
