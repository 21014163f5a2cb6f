"""Tables as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ._core import Counts

_COUNTS = ("ops", "launches", "host_calls", "macs", "flops", "bytes_read", "bytes_written", "bytes_allocated")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], note: str = "", title: str = "") -> str:
    """An HTML table: text aligned left, figures aligned right, a title above and a note below.

    Examples
    --------
    >>> table(["op", "launches"], [["a < b", 1]], "on the CPU")
    '<table><thead><tr><th style="text-align:left">op</th>...<p>on the CPU</p>'
    """
    rows = [list(row) for row in rows]
    sides = ["right" if is_of_figures(column) else "left" for column in zip(*rows, strict=True)] or ["left"] * len(head)

    def cells(values: Sequence[object], tag: str) -> str:
        return "".join(
            f'<{tag} style="text-align:{side}">{escape(str(value))}</{tag}>'
            for value, side in zip(values, sides, strict=True)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    text = f"<table>{caption}<thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
    return text + (f"<p>{escape(note)}</p>" if note else "")


def is_of_figures(column: Iterable[object]) -> bool:
    """Whether every cell begins as a number does, or is empty; a column of empty cells is none of figures.

    Examples
    --------
    >>> is_of_figures(["1,024", "", "-3 dB", 0.5]), is_of_figures(["1", "add"])
    (True, False)
    """
    filled = [text for cell in column if (text := str(cell))]
    return bool(filled) and all(text[0] in "0123456789-+~." for text in filled)


def counts(by_op: dict[str, Counts], total: Counts, note: str = "") -> str:
    """What was counted: a row for each op, and the total.

    Examples
    --------
    >>> import rooflab as rl
    >>> with rl.count() as c:
    ...     _ = rl.ones(3) + 1
    >>> c._repr_html_()
    '<table>...<td style="text-align:left">add</td>...total...</table><p>peak 24 B above what was held</p>'
    """
    shown = [field for field in _COUNTS if getattr(total, field)]
    rows = [[op, *(f"{getattr(row, field):,}" for field in shown)] for op, row in by_op.items()]
    rows.append(["total", *(f"{getattr(total, field):,}" for field in shown)])
    return table(["op", *(field.replace("_", " ") for field in shown)], rows, note)
