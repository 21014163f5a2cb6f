"""A line on the terminal that says how far a long command is."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_AFTER_S = 2.0
_EMPTY = "\r\x1b[K"  # back to the line's start, and the line is cleared


class Progress:
    """A line on stderr that each call replaces, once two seconds have passed; nothing where stderr is not a terminal.

    `subject` begins each line, and may change. As a context manager it removes the line at the end.
    """

    def __init__(self, subject: str = "") -> None:
        self.subject = subject
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._began >= _AFTER_S:
            self._print(f"{self.subject}: {text}"[: shutil.get_terminal_size().columns - 1])

    def clear(self) -> None:
        """Remove the line, before something else is printed."""
        self._print("")

    def _print(self, text: str) -> None:
        if sys.stderr.isatty():
            print(_EMPTY + text, end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()


@contextmanager
def working_on(what: str) -> Iterator[None]:
    """A context in which the last line of the terminal shows `what`."""
    line = Progress()
    line._print(f"{what} ...")
    try:
        yield
    finally:
        line.clear()
