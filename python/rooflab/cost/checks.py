"""Checks of arguments, each with one sentence for its error."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._numbers import whole

_LIMIT = 2**63


def check_whole(what: str, value: Any, least: int = 1) -> int:
    """Return `value` as a Python int.

    Raises
    ------
    ValueError
        If it is not a whole number, below `least`, or 2^63 or more.

    Examples
    --------
    >>> import numpy as np
    >>> check_whole("batch", np.int32(3))
    3
    """
    number = whole(f"[cost] {what}", value)
    if not least <= number < _LIMIT:
        raise ValueError(f"[cost] {what}: expected a whole number from {least} to 2^63 - 1, got {number}")
    return number


def check_choice(what: str, value: Any, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"[cost] {what}: expected one of {', '.join(choices)}; got {value!r}")
    return value
