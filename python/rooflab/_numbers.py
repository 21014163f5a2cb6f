"""Numbers that a caller gives, as exact Python numbers, so that sums and products of them never overflow."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsFloat

__all__ = ["number", "positive", "whole"]


def whole(what: str, value: Any, least: int | None = None) -> int:
    """`value` as a Python int.

    Parameters
    ----------
    what : str
        What it is, for the error: ``"[roofline] M"``.
    value : int
        A whole number of Python or NumPy.
    least : int, optional
        The smallest value.

    Returns
    -------
    int
        The same number.

    Raises
    ------
    ValueError
        For anything else, texts and truth values among them, and for a smaller number.

    Examples
    --------
    >>> import numpy as np
    >>> whole("[roofline] M", np.int32(40000)) ** 3
    64000000000000
    """
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        from_there = "" if least is None else f" of at least {least}"
        raise ValueError(f"{what}: expected a whole number{from_there}, got {value!r}")
    return found


def number(what: str, value: Any) -> float:
    """`value` as a Python float; NaN and infinity are floats too.

    Parameters
    ----------
    what : str
        What it is, for the error.
    value : float
        A real number of Python or NumPy, or an array or a tensor of one.

    Returns
    -------
    float
        The same number.

    Raises
    ------
    ValueError
        For anything else, texts and truth values among them, and for an integer that no float can hold.

    Examples
    --------
    >>> number("[roofline] intensity", 2)
    2.0
    """
    try:
        found = value.item() if hasattr(value, "item") else value  # of NumPy's kinds, truth values among them
        if isinstance(found, SupportsFloat) and not isinstance(found, bool):
            return float(found)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{what}: expected a number, got {value!r}")


def positive(what: str, value: Any) -> float:
    """`value` as a Python float that is finite and above 0.

    Parameters
    ----------
    what : str
        What it is, for the error.
    value : float
        As in `number`.

    Returns
    -------
    float
        The same number.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> positive("[roofline] intensity", 2)
    2.0
    """
    found = number(what, value)
    if not 0 < found < math.inf:
        raise ValueError(f"{what}: expected a finite number above 0, got {value!r}")
    return found
