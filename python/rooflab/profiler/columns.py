"""Names, numbers of things, and sentences in what a profile prints."""

from __future__ import annotations


def cut(name: str, width: int) -> str:
    """A name of at most `width` characters; a longer one ends in "..."."""
    return name if len(name) <= width else name[: max(width - 3, 1)] + "..."


def many(count: int, word: str) -> str:
    """A number of things: "1 row", "3 rows"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."
