"""Shapes and order under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._arguments import checked, place_of, sequence_of, sizes_of

__all__ = ["clone", "flip", "hstack", "meshgrid", "repeat", "roll", "tile", "vstack"]

_MOST_DIMS = 8


@checked
def tile(x: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """x several times in each dimension, counted from the last. One launch, a copy.

    What requires grad takes one for each dimension that grows.

    Parameters
    ----------
    x : Tensor
        (...).
    *dims : int, or one sequence of int
        How often; missing ones in front are 1.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        For a negative number.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tile(rl.tensor([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """
    times = sizes_of("tile", dims)
    if any(number < 0 for number in times):
        raise ValueError(f"[tile] dims: expected numbers >= 0, got {times}")
    x = x.reshape((1,) * (len(times) - x.ndim) + x.shape)
    times = (1,) * (x.ndim - len(times)) + times
    grown = [dim for dim, number in enumerate(times) if number != 1]
    if x.ndim + len(grown) > _MOST_DIMS or x.requires_grad:  # the gradient of one dimension is a sum without a copy
        made = x
        for dim in grown:
            made = _repeated(made, {dim: times[dim]})
    else:
        made = _repeated(x, {dim: times[dim] for dim in grown})
    return made if grown else x.clone()


def _repeated(x: Tensor, times: dict[int, int]) -> Tensor:
    apart: list[int] = []  # the copies apart from their elements
    together: list[int] = []  # and as one dimension with them
    copies = x
    for dim, size in enumerate(x.shape):
        if dim in times:
            copies = copies.unsqueeze(len(apart))
            apart.append(times[dim])
        apart.append(size)
        together.append(times.get(dim, 1) * size)
    return copies.expand(*apart).contiguous().reshape(*together)


@checked
def repeat(x: Tensor, *sizes: int | Sequence[int]) -> Tensor:
    """`tile` with a number for each dimension, as PyTorch's method.

    Parameters
    ----------
    x : Tensor
        (...).
    *sizes : int, or one sequence of int
        How often; at least as many as x has dimensions.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        For too few or negative numbers.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1, 2]).repeat(2, 1).tolist()
    [[1, 2], [1, 2]]
    """
    times = sizes_of("repeat", sizes)
    if len(times) < x.ndim or any(number < 0 for number in times):
        raise ValueError(f"[repeat] sizes: expected at least {x.ndim} numbers >= 0, got {times}")
    return tile(x, times)


_ALL, _BACKWARDS = slice(None), slice(None, None, -1)


@checked
def flip(x: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """x in reverse order along dimensions. One launch.

    Parameters
    ----------
    x : Tensor
        (...).
    *dims : int, or one sequence of int
        Which dimensions.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        For dimensions that x lacks or that appear twice.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.flip(rl.tensor([1, 2, 3]), 0).tolist()
    [3, 2, 1]
    """
    row = x.reshape(1) if x.ndim == 0 else x
    places = [place_of("flip", row, dim) for dim in sizes_of("flip", dims)]
    if len(set(places)) < len(places):
        raise ValueError(f"[flip] dims: expected each once, got {sizes_of('flip', dims)}")
    if not places or x.ndim == 0:
        return x.clone()
    return x[tuple(_BACKWARDS if dim in places else _ALL for dim in range(max(places) + 1))]


@checked
def roll(x: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """x with its elements moved along dimensions; what leaves at the end enters at the front.

    One launch a dimension, and one if nothing moves.

    Parameters
    ----------
    x : Tensor
        (...).
    shifts : int or sequence of int
        By how much.
    dims : int or sequence of int, optional
        Along which dimensions; by default x is flattened first.

    Returns
    -------
    Tensor
        A copy, of the shape of x.

    Raises
    ------
    ValueError
        For dimensions that x lacks, or another number of shifts.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.roll(rl.tensor([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    if dims is None:
        return roll(x.flatten(), shifts, 0).reshape(x.shape)
    moves, places = sequence_of(shifts), sequence_of(dims)
    if len(moves) != len(places):
        raise ValueError(f"[roll] expected as many shifts as dims, got {shifts} and {dims}")
    moved = x
    for move, dim in zip(moves, places, strict=True):
        place = place_of("roll", x, dim)
        size = x.shape[place]
        cut = -move % size if size else 0
        if cut:
            front = (slice(None),) * place
            moved = _core.cat([moved[(*front, slice(cut, size))], moved[(*front, slice(0, cut))]], place)
    return x.clone() if moved is x else moved


@checked
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Rows on top of each other: vectors become rows first. One launch for up to 32 tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
        (N,) or (M, N), or more dimensions.

    Returns
    -------
    Tensor
        Joined along dimension 0.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.vstack([rl.ones(2), rl.zeros(2)]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    return _core.cat([x.reshape(1, -1) if x.ndim < 2 else x for x in tensors], 0)


@checked
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Columns beside each other, or vectors one after the other. One launch for up to 32 tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
        (N,) or (M, N), or more dimensions.

    Returns
    -------
    Tensor
        Joined along dimension 1, of vectors 0.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.hstack([rl.ones(2), rl.zeros(1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    parts = [x.reshape(1) if x.ndim == 0 else x for x in tensors]
    return _core.cat(parts, 1 if parts and parts[0].ndim > 1 else 0)


@checked
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: each vector along a dimension of its own. Views.

    Parameters
    ----------
    *tensors : Tensor, or one sequence of them
        (N_0,), (N_1,) ...
    indexing : str
        "ij", or "xy", which exchanges the first two dimensions.

    Returns
    -------
    tuple of Tensor
        (N_0, N_1, ...) each.

    Raises
    ------
    ValueError
        For other dimensions, or another indexing.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> [y.tolist() for y in rl.meshgrid(rl.tensor([1, 2]), rl.tensor([3, 4]), indexing='ij')]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    single = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    vectors: Any = tensors[0] if single else tensors
    if indexing not in ("ij", "xy"):
        raise ValueError(f"[meshgrid] indexing: expected 'ij' or 'xy', got {indexing!r}")
    if wrong := [x for x in vectors if not isinstance(x, Tensor)]:
        raise TypeError(f"[meshgrid] tensors: expected tensors, got {type(wrong[0]).__name__}")
    if not vectors:
        raise ValueError("[meshgrid] tensors: expected at least one, got none")
    if any(x.ndim > 1 for x in vectors):
        raise ValueError("[meshgrid] tensors: expected one dimension each")
    vectors = [x.reshape(-1) for x in vectors]
    shape = [x.shape[0] for x in vectors]
    made = [
        x.reshape([-1 if i == dim else 1 for i in range(len(shape))]).expand(*shape) for dim, x in enumerate(vectors)
    ]
    return tuple(x.transpose(0, 1) for x in made) if indexing == "xy" and len(made) > 1 else tuple(made)


@checked
def clone(x: Tensor) -> Tensor:
    """``x.clone()``: a copy, one launch.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        Contiguous.

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.clone(rl.ones(2)).tolist()
    [1.0, 1.0]
    """
    return x.clone()
