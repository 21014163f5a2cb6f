"""Types and texts of arguments that several commands take."""

from __future__ import annotations

import argparse
from collections.abc import Callable

GPU = "let students' code use the GPUs of this machine, which are otherwise hidden from it"


def whole_number(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number from `least` on.

    Examples
    --------
    >>> whole_number(1)("3")
    3
    """

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of {least} or more, got {text!r}")
        return number

    return parse
