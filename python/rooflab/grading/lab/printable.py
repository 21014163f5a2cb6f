"""Makes a student's text safe for a terminal or a table: no escape sequence, no formula, no endless line."""

from __future__ import annotations

MAX_TEXT = 1000
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes text that begins with one of these for a formula


def printable(text: str, lines: bool = False) -> str:
    """The text with a question mark for what cannot be printed; line ends stay where there may be several `lines`."""
    return "".join(c if c.isprintable() or (lines and c == "\n") else "?" for c in text[:MAX_TEXT])


def table_cell(value: object, lines: bool = False) -> object:
    """A value for a CSV file: text that a spreadsheet would run is quoted. It may have several `lines`."""
    if not isinstance(value, str):
        return value
    return "'" * value.startswith(FORMULA) + printable(value, lines)
