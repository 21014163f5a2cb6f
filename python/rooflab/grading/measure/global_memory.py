"""Global memory that a test holds: it counts how often a program reads and writes each element.

The program has a `GlobalArray` for each array. That holds no numbers, but asks the memory, which can be in another
process.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rooflab.grading.measure.global_array import GlobalArray, unpacked

__all__ = ["GlobalMemory", "counted"]

MAX_ELEMENTS, MAX_DIMS = 2**24, 16  # of what one index selects
MAX_ORDERED = 2**20  # reads of single elements whose order is kept


class GlobalMemory:
    """Copies of some arrays, and how often each of their elements was read and written.

    Attributes
    ----------
    arrays, reads, writes : list of array
        What each array holds now, and its counts, in its shape.
    order : list of (int, array)
        Each read in its turn, up to `MAX_ORDERED` elements: which array, and the numbers of its elements, row by row.

    Examples
    --------
    >>> memory = GlobalMemory([np.arange(4.0)])
    >>> memory.answer("read", 0, ("slice", 1, 3, None)).tolist(), memory.reads[0].tolist()
    ([1.0, 2.0], [0, 1, 1, 0])
    >>> [(place, numbers.tolist()) for place, numbers in memory.order]
    [(0, [1, 2])]
    """

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = [np.array(one) for one in arrays]
        self.reads = [np.zeros(one.shape, np.int64) for one in self.arrays]
        self.writes = [np.zeros(one.shape, np.int64) for one in self.arrays]
        self.order: list[tuple[int, np.ndarray]] = []
        self._numbers = [np.arange(one.size, dtype=np.int32).reshape(one.shape) for one in self.arrays]
        self._room = MAX_ORDERED

    def answer(self, what: str, place: int, *arguments: Any) -> Any:
        """Do what a `GlobalArray` asks: read, write, or return its counts.

        Raises
        ------
        IndexError, TypeError, ValueError
            There is no such array, element or request.
        """
        match what, *arguments:
            case ["read", index]:
                index = unpacked(index)
                _check(index, self.arrays[place].shape)
                found = np.array(self.arrays[place][index])
                np.add.at(self.reads[place], index, 1)
                self._room -= max(1, found.size)
                if self._room >= 0:
                    self.order.append((place, np.ravel(self._numbers[place][index])))
                return found[()]
            case ["write", index, np.ndarray() as values]:
                index = unpacked(index)
                _check(index, self.arrays[place].shape)
                self.arrays[place][index] = values
                np.add.at(self.writes[place], index, 1)
                return None
            case ["reads" | "writes"]:
                return getattr(self, what)[place].copy()
        raise ValueError("[GlobalMemory] what: expected to read, to write an array or to see a count")


def counted(values: Any) -> tuple[GlobalArray, GlobalMemory]:
    """An array in global memory, and that memory.

    Examples
    --------
    >>> x, memory = counted([1.0, 2.0])
    >>> x[0], memory.reads[0].tolist()
    (np.float64(1.0), [1, 0])
    """
    memory = GlobalMemory([values])
    return GlobalArray(memory.answer, 0, memory.arrays[0].shape, memory.arrays[0].dtype.name), memory


def _check(index: Any, shape: tuple[int, ...]) -> None:
    """Check that no index is negative, because on a GPU that would be before the array. Check that the index does not
    select more elements than fit into memory: at most those that its arrays select together, times the largest of the
    other dimensions. Check that these have no more dimensions than `np.add.at` can count: from 33 on it crashes.
    """
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [
        np.asarray(one) for one in parts if not isinstance(one, slice) and one is not Ellipsis and one is not None
    ]
    if len(shape) + len(parts) + sum(array.ndim for array in arrays) > MAX_DIMS:
        raise IndexError(f"[GlobalArray] index: expected at most {MAX_DIMS} dimensions")
    for array in arrays:
        if array.dtype.kind in "iu" and array.size and array.min() < 0:
            raise IndexError(f"[GlobalArray] index: expected 0 or more, got {int(array.min())}")
    taken = sum(array.ndim if array.dtype.kind == "b" else 1 for array in arrays)
    others = math.prod(sorted(shape)[taken:])
    if arrays and others * math.prod(max(1, array.size) for array in arrays) > MAX_ELEMENTS:
        raise IndexError(f"[GlobalArray] index: expected at most {MAX_ELEMENTS:,} elements at a time")
