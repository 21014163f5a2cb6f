"""Arrays in global memory: each element that is read or written is one access, and it is counted where it lies."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["GlobalArray"]


class GlobalArray:
    """An array whose elements are counted as they are read and written.

    Indexing reads: a number, a slice or an array of indices gives plain NumPy values, which are on the chip and may be
    used again for nothing. Assigning to an index writes. A slice ends where the array ends, as in NumPy; an index
    outside of it is an error, and a negative one is outside.

    Parameters
    ----------
    values : array
        Copied.

    Attributes
    ----------
    shape : tuple of int
        As of the array.
    read_counts, write_counts : array of int
        How often each element was read and written, in that shape.
    most_at_once : int
        The most elements that one read brought.

    Examples
    --------
    >>> x = GlobalArray(np.arange(10.0))
    >>> x[2:5].tolist(), x[2], x.reads, x.writes
    ([2.0, 3.0, 4.0], np.float64(2.0), 4, 0)
    """

    def __init__(self, values: Any) -> None:
        self._values = np.array(values)
        self.read_counts = np.zeros(self._values.shape, np.int64)
        self.write_counts = np.zeros(self._values.shape, np.int64)
        self.most_at_once = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self._values.size

    @property
    def dtype(self) -> np.dtype:
        """What an element is."""
        return self._values.dtype

    @property
    def reads(self) -> int:
        """Elements read so far, each as often as it was read."""
        return int(self.read_counts.sum())

    @property
    def writes(self) -> int:
        """Elements written so far."""
        return int(self.write_counts.sum())

    def contents(self) -> np.ndarray:
        """What lies in memory now, looked at from outside: it counts as no access."""
        return self._values.copy()

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        np.add.at(self.read_counts, index, 1)
        found = np.array(self._values[index])
        self.most_at_once = max(self.most_at_once, found.size)
        return found[()]

    def __setitem__(self, index: Any, values: Any) -> None:
        self._check(index)
        np.add.at(self.write_counts, index, 1)
        self._values[index] = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[...], dtype)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self)))

    def _check(self, index: Any) -> None:
        for one in index if isinstance(index, tuple) else (index,):
            array = np.asarray(one) if not isinstance(one, slice) and one is not Ellipsis and one is not None else None
            if array is not None and array.dtype.kind in "iu" and array.size and array.min() < 0:
                raise IndexError(f"[GlobalArray] index: expected 0 or more, got {int(array.min())}")
