"""Tensors without memory in place of others: with their strides, and sharing memory as they do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._core import Tensor, empty


def stand_ins(tensors: Sequence[Tensor]) -> list[Tensor]:
    """A tensor without memory for each of these; those without memory stay as they are.

    Parameters
    ----------
    tensors : sequence of Tensor
        They are not touched.

    Returns
    -------
    list of Tensor
        Of the same shapes, dtypes and strides. Views of one memory are views of one stand-in.

    Raises
    ------
    ValueError
        For strides that are negative, or whose rows overlap or interleave, as those of an array of NumPy may be. For
        tensors of unlike dtypes in one memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(6, 8)
    >>> [one.strides for one in stand_ins([x, x.T])]
    [(8, 1), (1, 8)]
    """
    found = list(tensors)
    devices: dict[str, list[int]] = {}
    for place, x in enumerate(tensors):
        if not x.device.startswith("meta"):
            devices.setdefault(str(x.device), []).append(place)
    for places in devices.values():
        for group in _overlapping(tensors, sorted(places, key=lambda place: tensors[place].data_ptr())):
            first = tensors[group[0]]
            offsets = [tensors[place].data_ptr() - first.data_ptr() for place in group]
            size = first.dtype.itemsize
            if any(tensors[place].dtype != first.dtype for place in group) or any(at % size for at in offsets):
                raise ValueError(
                    "[cost] tensors that share memory: expected the same dtype and whole elements between them; "
                    "count the call with rl.count()"
                )
            starts = [offset // size for offset in offsets]
            ends = [start + _room(tensors[place]) for place, start in zip(group, starts, strict=True)]
            memory = empty(max(ends), dtype=first.dtype, device="meta")
            for place, start, end in zip(group, starts, ends, strict=True):
                x = tensors[place]
                found[place] = _view(memory[start:end], x.shape, x.strides)
    return found


def _overlapping(tensors: Sequence[Tensor], places: list[int]) -> list[list[int]]:
    """Groups of tensors that share memory, of places in the order of their addresses."""
    groups: list[list[int]] = []
    end = -1
    for place in places:
        x = tensors[place]
        start = x.data_ptr()
        if start >= end:
            groups.append([])
        groups[-1].append(place)
        end = max(end, start + _extent(x.shape, x.strides) * x.dtype.itemsize)
    return groups


def _extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first one to the last one."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if math.prod(shape) else 0


def _room(x: Tensor) -> int:
    """Elements that `_view` needs: its longest stride as often as there are steps of it."""
    return max([1, *(size * abs(stride) for size, stride in zip(x.shape, x.strides, strict=True))])


def _view(memory: Tensor, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """The elements of `memory` at these strides: dimension by dimension is split off, the longest stride first."""
    order = [dim for dim, size in enumerate(shape) if size > 1 and strides[dim]]
    order.sort(key=lambda dim: -strides[dim])
    if not math.prod(shape):
        return memory[:0].view(*shape)
    x = memory[: shape[order[0]] * abs(strides[order[0]])] if order else memory[:1]
    for place, dim in enumerate(order, start=1):
        step = math.gcd(strides[dim], x.shape[-1])  # what is left of the dimensions inside lies in these
        inside = order[place:]
        if strides[dim] < 0 or step < _extent([shape[i] for i in inside], [strides[i] for i in inside]):
            raise ValueError(
                f"[cost] a tensor of shape {tuple(shape)} and strides {tuple(strides)}: expected strides that slices "
                "with positive steps have; count the call with rl.count()"
            )
        x = x.view(*x.shape[:-1], x.shape[-1] // step, step)
        skip = strides[dim] // step
        x = x[..., : (shape[dim] - 1) * skip + 1 : skip, :]
    x = x[..., 0].permute(*sorted(range(len(order)), key=lambda place: order[place]))
    return x.view(*(size if dim in order else 1 for dim, size in enumerate(shape))).expand(*shape)
