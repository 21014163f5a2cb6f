"""The tables of a class as CSV files: how those are read that a spreadsheet or another system saved, and how ours are
written so that a spreadsheet reads them.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from rooflab.files import readable, replacing
from rooflab.grading.lab.model import LabError

NO_TEXT = "{} is no text in UTF-8: save it as CSV in UTF-8, which spreadsheets call CSV UTF-8."
SEPARATOR = re.compile(r'"?sep=(.)"?\r?(?:\n|$)', re.IGNORECASE)  # what Excel reads and writes as a first line
ENCODING = "utf-8-sig"  # without its mark Excel takes a file for one in the encoding of the country


@dataclass(frozen=True)
class Sheet:
    """What a CSV file holds: its text, its rows with the numbers of their last lines, and what separates its columns.
    Neither has the lines before the first row.
    """

    text: str
    rows: list[tuple[int, list[str]]]
    between: str

    @property
    def header(self) -> list[str]:
        """The names of the columns, in small letters."""
        return [name.strip().casefold() for name in self.rows[0][1]] if self.rows else []


def read(path: Path) -> Sheet:
    """A table that a person or a program saved.

    Raises
    ------
    LabError
        There is no such file, it is no text in UTF-8, or a quote is not closed.
    """
    try:
        text = readable(path).read_text(encoding=ENCODING)
    except UnicodeDecodeError:
        raise LabError(NO_TEXT.format(path.name)) from None
    except OSError as error:
        raise LabError(f"{path.name} cannot be read: {error.strerror}.") from None
    if "\0" in text:
        raise LabError(NO_TEXT.format(path.name))
    try:
        return _sheet(text)
    except csv.Error as error:  # a quote that nothing closes would hide all rows behind it
        raise LabError(f"{path.name} cannot be read as a table: {error}. Look at its quotes.") from None


def read_edited(path: Path) -> Sheet | None:
    """A table of ours that people may have made unreadable; None if they did."""
    with contextlib.suppress(csv.Error):
        return _sheet(path.read_text(encoding=ENCODING, errors="replace"), strict=False)
    return None


def _sheet(text: str, strict: bool = True) -> Sheet:
    rest = text.lstrip("\r\n")
    if named := SEPARATOR.match(rest):
        rest = rest[named.end() :].lstrip("\r\n")
    between = named[1] if named else delimiter(rest)
    skipped = text[: len(text) - len(rest)].count("\n")
    rows = csv.reader(io.StringIO(rest, newline=""), delimiter=between, strict=strict)
    numbered = ((skipped + rows.line_num, row) for row in rows)
    return Sheet(rest, list(itertools.dropwhile(lambda one: not any(map(str.strip, one[1])), numbered)), between)


def delimiter(text: str) -> str:
    """What separates the columns of a table: programs differ, and languages too."""
    first = text.split("\n", 1)[0]
    return max(",;\t", key=first.count)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A file for a table, which takes the place of `path` once it is whole."""
    with replacing(path) as unfinished, unfinished.open("w", encoding=ENCODING, newline="") as file:
        yield file
