"""An array in global memory as a program sees it. Nothing here leads to its numbers past the counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Boxed", "GlobalArray"]


class Boxed:
    """Something that NumPy is to hand on as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value


class GlobalArray:
    """An array whose elements are counted as they are read and written.

    Indexing reads: a number, a slice or an array of indices gives plain NumPy values, which are on the chip and may be
    used again for nothing. Assigning to an index writes. A slice ends where the array ends, as in NumPy; an index
    outside of it is an error, and a negative one is outside.

    `rooflab.grading.accesses.counted` makes one.

    Attributes
    ----------
    shape, dtype : tuple of int, dtype
        As of the array.
    read_counts, write_counts : array of int
        How often each element was read and written, in that shape.
    most_at_once : int
        The most elements that one read brought.

    Examples
    --------
    >>> from rooflab.grading.accesses import counted
    >>> x, _ = counted(np.arange(10.0))
    >>> x[2:5].tolist(), x[2], x.reads, x.writes
    ([2.0, 3.0, 4.0], np.float64(2.0), 4, 0)
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    _read: Callable[[Boxed], Any]
    _write: Callable[[Boxed, Boxed], Any]
    _look: Callable[[str], Any]

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def read_counts(self) -> np.ndarray:
        return self._look("reads").value

    @property
    def write_counts(self) -> np.ndarray:
        return self._look("writes").value

    @property
    def most_at_once(self) -> int:
        return self._look("most_at_once").value

    @property
    def reads(self) -> int:
        """Elements read so far, each as often as it was read."""
        return int(self.read_counts.sum())

    @property
    def writes(self) -> int:
        """Elements written so far."""
        return int(self.write_counts.sum())

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        return self._read(Boxed(index)).value

    def __setitem__(self, index: Any, values: Any) -> None:
        self._write(Boxed(index), Boxed(values))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[...], dtype)

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))
