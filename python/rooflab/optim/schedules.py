"""Learning rates as plain functions of the step. The first step of a training is step 1.

for step in range(1, steps + 1):
    optimizer.param_groups[0]["lr"] = warmup_cosine(step, high=3e-4, low=3e-5, warmup=100, end=steps)
"""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import SupportsFloat

__all__ = ["warmup_cosine", "warmup_flat_linear"]


def warmup_cosine(step: float, high: float, low: float, warmup: int, end: int) -> float:
    """Linear from 0 to `high`, then half a cosine down to the floor `low`.

    Parameters
    ----------
    step : int
        Steps done, this one included; 0 gives 0.
    high, low : float
        The rate at `warmup`, and from `end` on.
    warmup, end : int
        Where the rise and the fall end.

    Returns
    -------
    float
        The rate of this step.

    Raises
    ------
    ValueError
        Unless 0 <= low <= high, 0 <= warmup <= end and step >= 0.
    TypeError
        For anything but a number.

    Examples
    --------
    >>> from rooflab.optim import warmup_cosine
    >>> [round(warmup_cosine(step, 1.0, 0.1, 10, 110), 4) for step in (0, 5, 10, 35, 60, 110, 200)]
    [0.0, 0.5, 1.0, 0.8682, 0.55, 0.1, 0.1]
    """
    _check("warmup_cosine", step, high, low, warmup=warmup, end=end)
    if step < warmup:
        return high * step / warmup
    if step >= end:
        return low
    return low + (high - low) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (end - warmup)))


def warmup_flat_linear(step: float, high: float, low: float, warmup: int, fall: int, end: int) -> float:
    """Linear from 0 to `high`, flat, then linear down to the floor `low`.

    Parameters
    ----------
    step : int
        Steps done, this one included; 0 gives 0.
    high, low : float
        The rate from `warmup` to `fall`, and from `end` on.
    warmup, fall, end : int
        Where the rise ends, where the fall begins and where it ends.

    Returns
    -------
    float
        The rate of this step.

    Raises
    ------
    ValueError
        Unless 0 <= low <= high, 0 <= warmup <= fall <= end and step >= 0.
    TypeError
        For anything but a number.

    Examples
    --------
    >>> from rooflab.optim import warmup_flat_linear
    >>> [round(warmup_flat_linear(step, 1.0, 0.1, 10, 100, 110), 4) for step in (0, 5, 10, 100, 105, 110, 200)]
    [0.0, 0.5, 1.0, 1.0, 0.55, 0.1, 0.1]
    """
    _check("warmup_flat_linear", step, high, low, warmup=warmup, fall=fall, end=end)
    if step < warmup:
        return high * step / warmup
    if step >= end:
        return low
    return high if step <= fall else high + (low - high) * (step - fall) / (end - fall)


def _check(name: str, step: float, high: float, low: float, **places: int) -> None:
    for value in (step, high, low, *places.values()):
        if not isinstance(value, SupportsFloat):
            raise TypeError(f"[{name}] expected numbers, got {type(value).__name__}")
    if not step >= 0:
        raise ValueError(f"[{name}] step: expected 0 or more, got {step}")
    if not 0 <= low <= high <= sys.float_info.max:
        raise ValueError(f"[{name}] low, high: expected 0 <= low <= high, got {low} and {high}")
    in_order = [0, *places.values()]
    if not all(a <= b for a, b in pairwise(in_order)):
        raise ValueError(f"[{name}] expected 0 <= {' <= '.join(places)}, got {', '.join(map(str, places.values()))}")
