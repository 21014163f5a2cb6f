"""What a report says of a test cell that failed."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from rooflab.grading.jail.link import ERRORS, StudentError, Unfit
from rooflab.grading.lab.model import HIDDEN, UNWRITTEN, Cell, label
from rooflab.grading.lab.printable import printable
from rooflab.testing import assert_close

AFTER_OTHERS = (
    "This test passes in a new process, and failed after the tests before it: does the answer keep something from one "
    "call to the next?"
)
NOT_PASSED = (
    "A value could not be passed to the tests, or a call could not be counted, on inputs that are not shown: try other "
    "sizes, types and values than those of the public tests."
)


@dataclass(frozen=True)
class Said:
    """Why a test cell failed; no text if it passed. `hidden`: its hidden tests were reached. `quotes`: a public test
    failed, and the text has words of the student's code.
    """

    text: str = ""
    hidden: bool = False
    quotes: bool = False


def message(error: BaseException, cell: Cell) -> str:
    """Why a test cell failed. An error, of the student's code or of the test's own, shows its text unless it was in a
    hidden test: that text could hold the hidden inputs, or what is right for them.
    """
    if isinstance(error, StudentError) and is_hidden(error, cell):
        if UNWRITTEN.fullmatch(text(error)):
            return f"NotImplementedError: Question {label(cell.question)}: write your code here"
        kind = next(base.__name__ for base in type(error).__mro__ if base in ERRORS.values())
        return f"{kind} on inputs that are not shown: try other sizes, types and values than those of the public tests."
    if isinstance(error, Unfit) and is_hidden(error, cell):
        return NOT_PASSED
    if isinstance(error, Unfit):
        return text(error)[:1].upper() + text(error)[1:]
    if isinstance(error, AssertionError):
        return text(error) or "A test failed that does not say why."
    if is_hidden(error, cell):
        return (
            f"{type(error).__name__} where a hidden test used what the answer gave, on inputs that are not shown: try "
            "other sizes, types and values than those of the public tests."
        )
    return text(error) if ":" in text(error) else f"{type(error).__name__}: {text(error)}"


def is_of_a_value(error: BaseException) -> bool:
    """Whether a test compared a value and found it wrong. Other tests look at counts, clocks or types."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return isinstance(error, AssertionError) and last.name == assert_close.__name__


def is_hidden(error: BaseException, cell: Cell) -> bool:
    """Whether the cell was in its hidden tests when it failed; one that is hidden as a whole always is."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == f"<{cell.key}>"]
    marks = [number for number, line in enumerate(cell.source.splitlines(), 1) if line.strip() == HIDDEN[0]]
    return cell.hidden or (bool(lines and marks) and (lines[0] or 0) > marks[0])


def text(error: BaseException) -> str:
    """The message, short and printable: parts of it are the student's."""
    try:
        said = str(error)
    except Exception:
        return ""
    return printable(said.strip(), lines=True)
