"""Python stacks of calls into the core: who asks for them, and what the numbers stand for that the core keeps.

The core asks `_number` for a number whenever a call begins, and notes it beside the op or the block of memory. Numbers
are good until the last user has left, and are not used again: a call of another thread may still hold one.
"""

from __future__ import annotations

import itertools
import sys
import threading
from types import CodeType
from typing import NamedTuple

from . import _core


class Frame(NamedTuple):
    """A line of Python code on the way to a call."""

    filename: str
    line: int
    name: str


_Stack = tuple[tuple[CodeType, int], ...]
_lock = threading.Lock()
_users = 0
_numbers: dict[_Stack, int] = {}
_stacks: dict[int, _Stack] = {}
_count = itertools.count(1)


def _number() -> int:
    """The number of the caller's stack; the same for the same lines."""
    frame = sys._getframe().f_back
    lines: list[tuple[CodeType, int]] = []
    while frame is not None:
        lines.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    stack = tuple(lines)
    known = _numbers.get(stack)
    if known is None:
        known = _numbers.setdefault(stack, next(_count))  # another thread may have come first
        _stacks[known] = stack
    return known


def begin() -> None:
    """Take stacks from here on; `end` belongs to each `begin`."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _core.take_stacks(_number)


def end() -> None:
    """Stop taking stacks, and forget them, when nobody else wants them."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _core.take_stacks(None)
            _numbers.clear()
            _stacks.clear()


def frames(number: int) -> tuple[Frame, ...]:
    """The stack of a number, its innermost frame first; () for 0 and for a number that is no longer good."""
    stack = _stacks.get(number, ())
    return tuple(Frame(code.co_filename, line, code.co_name) for code, line in stack)
