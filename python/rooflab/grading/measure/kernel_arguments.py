"""The arguments of a kernel as plain values, for a launch in another process: numbers as they are, and memory in
pieces. Arrays that overlap lie in one piece, and each begins as far beyond a multiple of 32 bytes as it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.cuda.simt.memory import ALIGNED, each_once, offset_in_base
from rooflab.grading.jail.codec import MAX_BYTES


@dataclass
class _View:
    """An array, the addresses of its first byte and behind its last one, and how far it begins beyond a multiple of 32
    on a GPU.
    """

    array: np.ndarray
    begin: int
    end: int
    shift: int


def packed(values: Sequence[Any]) -> tuple[list[np.ndarray], list[Any]]:
    """(pieces of memory, a word for each argument); `unpacked` makes the arguments of these again."""
    views = {index: _view(value) for index, value in enumerate(values) if isinstance(value, (rl.Tensor, np.ndarray))}
    words: list[Any] = [number.item() if isinstance(number, np.generic) else number for number in values]
    pieces: list[np.ndarray] = []
    group: list[int] = []
    end = -1
    for index in [*sorted(views, key=lambda index: views[index].begin), None]:
        if group and (index is None or views[index].begin >= end):
            pieces.append(_piece(len(pieces), {one: views[one] for one in group}, words))
            group = []
        if index is not None:
            end = max(end, views[index].end) if group else views[index].end
            group.append(index)
    return pieces, words


def _piece(number: int, views: dict[int, _View], words: list[Any]) -> np.ndarray:
    """The memory of arrays that overlap. Each gets its word."""
    first = next(iter(views.values()))
    start = first.begin - first.shift
    piece = np.zeros(max(view.end for view in views.values()) - start, np.uint8)
    for index, view in views.items():
        like = view.array
        words[index] = (number, view.begin - start, np.empty(0, like.dtype), like.shape, like.strides)
        _within(piece, words[index])[...] = like
    return piece


def unpacked(pieces: Sequence[np.ndarray], words: Sequence[Any]) -> tuple[list[np.ndarray], list[Any]]:
    """Copies of the pieces, and the arguments, whose arrays lie in these copies.

    Raises
    ------
    ValueError
        The arrays have more bytes in all than may cross between processes: their elements lie many times in one place.
    """
    own = [piece.copy() for piece in pieces]
    values = [_within(own[word[0]], word) if type(word) is tuple else word for word in words]
    if (size := sum(value.nbytes for value in values if isinstance(value, np.ndarray))) > MAX_BYTES:
        raise ValueError(f"the arrays of a launch have {size:,} bytes in all, where {MAX_BYTES:,} are the most here")
    return own, values


def take_back(pieces: Sequence[np.ndarray], words: Sequence[Any], values: Sequence[Any]) -> None:
    """Write into the arrays and tensors of `packed` what a launch has left in their pieces."""
    for value, left in zip(values, unpacked(pieces, words)[1], strict=True):
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = left
        elif isinstance(value, rl.Tensor) and value.device == "cpu":
            own = each_once(value)
            own[...] = left[tuple(slice(0, size) for size in own.shape)]
        elif isinstance(value, rl.Tensor):
            value.detach().copy_(rl.tensor(left, device=value.device))


def _view(value: rl.Tensor | np.ndarray) -> _View:
    array = value.detach().cpu().numpy() if isinstance(value, rl.Tensor) else value
    begin = array.__array_interface__["data"][0]
    if isinstance(value, rl.Tensor) and value.device != "cpu":  # the copy has neither its strides nor its address
        if not value.is_contiguous():
            raise ValueError("a tensor on a GPU has to be contiguous here: call contiguous() first")
        begin = value.detach().__cuda_array_interface__["data"][0]
    shift = (begin if isinstance(value, rl.Tensor) else offset_in_base(array)) % ALIGNED
    if array.size == 0:
        return _View(array, begin, begin, 0)
    if min(array.strides, default=0) < 0:
        raise ValueError("an array whose strides are negative has no first address; copy it")
    reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    return _View(array, begin, begin + reach + array.itemsize, shift)


def _within(piece: np.ndarray, word: tuple) -> np.ndarray:
    _, offset, like, shape, strides = word
    return np.ndarray(shape, like.dtype, piece, offset, strides)
