"""Makes a student's text safe for a terminal or a table: no escape sequence, no formula, no endless line."""

from __future__ import annotations

import hashlib

MAX_TEXT = 1000
MAX_CELL = 30_000  # characters; a spreadsheet cuts a cell at 32,767 and does not say so
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes text that begins with one of these for a formula


def printable(text: str, lines: bool = False) -> str:
    """The text with a question mark for what cannot be printed; line ends stay where there may be several `lines`."""
    return _signs(text[:MAX_TEXT], lines)


def _signs(text: str, lines: bool) -> str:
    return "".join(c if c.isprintable() or (lines and c == "\n") else "?" for c in text)


def table_cell(value: object, lines: bool = False) -> object:
    """A value for a CSV file: text that a spreadsheet would run is quoted. It may have several `lines`. What is longer
    than a spreadsheet takes ends with a note that differs whenever the text does.
    """
    if not isinstance(value, str):
        return value
    text = _signs(value, lines)
    if (more := len(text) - MAX_CELL) > 0:
        mark = hashlib.sha256(text.encode()).hexdigest()[:8]
        text = f"{text[:MAX_CELL]} [{more} more characters, {mark}]"
    return "'" * value.startswith(FORMULA) + text
