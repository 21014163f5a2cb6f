"""An array in global memory as a program sees it: each element that is read or written is counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ARRAY", "GlobalArray", "packed", "unpacked"]

ARRAY = "<array>"


class GlobalArray:
    """An array whose elements are counted as they are read and written.

    Indexing reads: a number, a slice or an array of indices gives plain NumPy values, which count as on the chip and
    may be used again for free. Assigning to an index writes. A slice ends where the array ends, as in NumPy. An index
    outside of the array is an error, and so is a negative one.

    `rooflab.grading.measure.global_memory.counted` makes one.

    Attributes
    ----------
    shape, dtype : tuple of int, dtype
        Those of the array.
    read_counts, write_counts : array of int
        How often each element was read and written, in that shape.

    Examples
    --------
    >>> from rooflab.grading.measure.global_memory import counted
    >>> x, _ = counted(np.arange(10.0))
    >>> x[2:5].tolist(), x[2], x.reads, x.writes
    ([2.0, 3.0, 4.0], np.float64(2.0), 4, 0)
    """

    def __init__(self, ask: Callable[..., Any], place: int, shape: tuple[int, ...], dtype: str) -> None:
        self._ask, self._place = ask, place
        self.shape, self.dtype = shape, np.dtype(dtype)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def read_counts(self) -> np.ndarray:
        return self._ask("reads", self._place)

    @property
    def write_counts(self) -> np.ndarray:
        return self._ask("writes", self._place)

    @property
    def reads(self) -> int:
        """How many elements were read so far; an element that was read twice counts twice."""
        return int(self.read_counts.sum())

    @property
    def writes(self) -> int:
        """How many elements were written so far."""
        return int(self.write_counts.sum())

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        return self._ask("read", self._place, packed(index))

    def __setitem__(self, index: Any, values: Any) -> None:
        self._ask("write", self._place, packed(index), np.asarray(values))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[...], dtype)

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))


def packed(index: Any) -> Any:
    """An index as plain values, which can go to another process.

    Examples
    --------
    >>> packed((slice(1, 3), 5, ...))
    [('slice', 1, 3, None), 5, '...']
    """
    if isinstance(index, tuple):
        return [packed(one) for one in index]
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    if index is Ellipsis:
        return "..."
    return index if index is None or isinstance(index, (int, np.generic, np.ndarray)) else np.asarray(index)


def unpacked(index: Any) -> Any:
    """The index that `packed` made plain.

    Examples
    --------
    >>> unpacked([("slice", 1, 3, None), 5, "..."])
    (slice(1, 3, None), 5, Ellipsis)
    """
    if isinstance(index, list):
        return tuple(unpacked(one) for one in index)
    if isinstance(index, tuple):
        return slice(*index[1:])
    return Ellipsis if isinstance(index, str) else index
