"""Names, numbers of things, and sentences in what a profile prints."""

from __future__ import annotations

from ..units import rounded


def cut(name: str, width: int) -> str:
    """A name of at most `width` characters; a longer one ends in "..."."""
    return name if len(name) <= width else name[: max(width - 3, 1)] + "..."


def many(count: int, word: str) -> str:
    """A number of things: "1 row", "3 rows"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def fixed(number: float, decimals: int) -> str:
    """So many decimals. A number that would be zero with them is written with three significant digits.

    Examples
    --------
    >>> fixed(1.5, 2), fixed(0.0, 2), fixed(0.0012345, 2)
    ('1.50', '0.00', '0.00123')
    """
    text = f"{number:.{decimals}f}"
    return rounded(number) if number and not float(text) else text


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."
