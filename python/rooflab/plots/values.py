"""What figures take as a value: a measurement with its spread, or a bare number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._numbers import number


def quantiles(what: str, value: Any, names: tuple[str, str, str]) -> tuple[float, float, float]:
    """(p20, median, p80) of a Timing, a Measured or a bare number; all finite and positive."""
    if hasattr(value, names[1]):
        numbers = tuple(float(getattr(value, name)) for name in names)
    elif isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        numbers = (number(f"[plots] {what}", value),) * 3
    else:
        raise ValueError(f"[plots] {what}: expected a measurement or a number, got {value!r}")
    if not all(math.isfinite(one) and one > 0 for one in numbers):
        raise ValueError(f"[plots] {what}: expected finite numbers > 0, got {numbers[1]!r}")
    return numbers[0], numbers[1], numbers[2]
