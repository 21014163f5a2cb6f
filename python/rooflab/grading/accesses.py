"""The memory behind a `GlobalArray`: each element that is read or written is one access, counted where it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rooflab.benchmark.stand_ins import sealed
from rooflab.grading.global_array import Boxed, GlobalArray

__all__ = ["counted"]


def counted(values: Any) -> tuple[GlobalArray, Callable[[str], Any]]:
    """An array in global memory, and a function that looks at it from outside.

    The function gives copies by name: ``"values"``, ``"reads"`` and ``"writes"`` are arrays, and ``"most_at_once"`` is
    the most elements of one read. It is not the one that the array itself has, so a program cannot replace it.

    Examples
    --------
    >>> x, look = counted([1.0, 2.0])
    >>> x[0], look("reads").tolist(), look("values").tolist()
    (np.float64(1.0), [1, 0], [1.0, 2.0])
    """
    memory = np.array(values)
    seen = {"values": memory, "reads": np.zeros(memory.shape, np.int64), "writes": np.zeros(memory.shape, np.int64)}
    most_at_once = 0

    def read(index: Boxed) -> Boxed:
        nonlocal most_at_once
        _check(index.value)
        np.add.at(seen["reads"], index.value, 1)
        found = np.array(memory[index.value])
        most_at_once = max(most_at_once, found.size)
        return Boxed(found[()])

    def write(index: Boxed, new: Boxed) -> None:
        _check(index.value)
        np.add.at(seen["writes"], index.value, 1)
        memory[index.value] = new.value

    def look(what: str) -> Any:
        return most_at_once if what == "most_at_once" else seen[what].copy()

    def show(what: str) -> Boxed:
        return Boxed(look(what) if what != "values" else None)

    array = object.__new__(GlobalArray)
    given = {"_read": sealed(read, 1), "_write": sealed(write, 2), "_look": sealed(show, 1)}
    for name, value in (given | {"shape": memory.shape, "dtype": memory.dtype}).items():
        object.__setattr__(array, name, value)
    return array, look


def _check(index: Any) -> None:
    """That no index is negative: on a GPU that lies before the array."""
    for one in index if isinstance(index, tuple) else (index,):
        array = np.asarray(one) if not isinstance(one, slice) and one is not Ellipsis and one is not None else None
        if array is not None and array.dtype.kind in "iu" and array.size and array.min() < 0:
            raise IndexError(f"[GlobalArray] index: expected 0 or more, got {int(array.min())}")
