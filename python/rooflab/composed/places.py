"""Elements by their places under PyTorch's names, composed of ops that have kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from ._arguments import checked, place_of

__all__ = ["diag", "index_add", "masked_select", "scatter", "trace", "unique"]


@checked
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with the vector x on a diagonal, or the diagonal of the matrix x.

    Composed of one launch for a matrix. For a vector of two, and of up to five beside the main diagonal.

    Parameters
    ----------
    x : Tensor
        (N,) or (M, N).
    diagonal : int
        0 is the main one; larger ones lie to the right of it.

    Returns
    -------
    Tensor
        (N + |diagonal|, N + |diagonal|), or the diagonal.

    Raises
    ------
    ValueError
        For other dimensions.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.diag(rl.tensor([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    if x.ndim not in (1, 2):
        raise ValueError(f"[diag] x: expected one or two dimensions, got {x.shape}")
    down, right = max(-diagonal, 0), max(diagonal, 0)
    if x.ndim == 2:
        count = max(0, min(x.shape[0] - down, x.shape[1] - right))
        return _core.copy(_core.einsum("ii->i", x[down : down + count, right : right + count]))
    size = x.shape[0] + abs(diagonal)
    if size * size * x.dtype.itemsize >= 2**63:
        raise ValueError(f"[diag] diagonal: a result of shape {(size, size)} has more bytes than 64 bits count")

    def zeros(*shape: int) -> Tensor:
        return _core.zeros(*shape, dtype=x.dtype, device=x.device)

    # An element and as many zeros as a row has take turns, so each lies a row and a column farther than the last one.
    before = down * size + right
    turns = x.shape[0] * (size + 1)
    after = zeros(max(0, size * size - before - turns)) if diagonal else None  # first, because it may be too large
    made = _core.cat([x[:, None], zeros(x.shape[0], size)], 1).reshape(-1)
    if after is not None:
        made = _core.cat([zeros(before), made, after])
    return made[: size * size].reshape(size, size)


@checked
def trace(x: Tensor) -> Tensor:
    """The sum of the main diagonal. Composed of `diag` and a sum: two launches.

    Parameters
    ----------
    x : Tensor
        (M, N).

    Returns
    -------
    Tensor
        A number.

    Raises
    ------
    ValueError
        For other dimensions.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.trace(rl.ones(2, 2)).item()
    2.0
    """
    if x.ndim != 2:
        raise ValueError(f"[trace] x: expected a matrix, got {x.shape}")
    return diag(x).sum()


@checked
def scatter(x: Tensor, dim: int, index: Tensor, src: Tensor | float) -> Tensor:
    """x with elements of src, or one number, at places along a dimension.

    Two launches on the CPU, for a number, and on a GPU where x is not long along `dim`; else four there, to find the
    last element for each place.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int
        The dimension.
    index : Tensor
        int64 or int32: which place each element of src goes to; sizes as for `rl.scatter_add`. Of elements that go to
        one place, the last one stays.
    src : Tensor or float
        What is written. A tensor has the dtype of x, and the sizes of index or more.

    Returns
    -------
    Tensor
        A copy of x. Gradients go to what is left of x, and to what stays of src.

    Raises
    ------
    ValueError
        For sizes and dtypes that do not fit; for an index out of range. On a GPU this is raised at the next wait (see
        rl.cuda.synchronize), and the element is ignored.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.scatter(rl.zeros(3), 0, rl.tensor([2]), 5.0).tolist()
    [0.0, 0.0, 5.0]
    """
    if isinstance(src, Tensor) and src.ndim == index.ndim and src.shape != index.shape:
        src = src[tuple(slice(0, size) for size in index.shape)]
    return _core._scatter(x, dim, index, src)


@checked
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """x with slices of source added at places along a dimension.

    Composed of two launches, and one more for an alpha.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int
        The dimension.
    index : Tensor
        (N,), int64: where each slice goes. Places may appear several times.
    source : Tensor
        The shape of x but N along the dimension.
    alpha : float
        Factor of source.

    Returns
    -------
    Tensor
        A new tensor.

    Raises
    ------
    ValueError
        For sizes that do not fit, and for a place out of range, which is raised at the next wait for a GPU.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.index_add(rl.zeros(3), 0, rl.tensor([0, 0]), rl.ones(2)).tolist()
    [2.0, 0.0, 0.0]
    """
    place = place_of("index_add", x, dim)
    expected = (*x.shape[:place], *index.shape, *x.shape[place + 1 :])
    if index.ndim != 1 or source.shape != expected:
        raise ValueError(f"[index_add] source: expected {expected} for index {index.shape}, got {source.shape}")
    places = index.reshape([-1 if i == place else 1 for i in range(x.ndim)]).expand(*source.shape)
    return _core.scatter_add(x, place, places, source if alpha == 1 else source * alpha)


@checked
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """``x[mask]`` of a mask that broadcasts to x. Three launches.

    Parameters
    ----------
    x : Tensor
        (...).
    mask : Tensor
        bool, broadcasts against x.

    Returns
    -------
    Tensor
        (N,).

    Raises
    ------
    ValueError
        For a mask of another dtype or shape; for tensors without memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.masked_select(rl.tensor([1, 2, 3]), rl.tensor([True, False, True])).tolist()
    [1, 3]
    """
    if mask.dtype != _core.bool_:
        raise ValueError(f"[masked_select] mask: expected bool, got {mask.dtype}")
    try:
        shape = np.broadcast_shapes(x.shape, mask.shape, (1,))
    except ValueError:
        raise ValueError(f"[masked_select] mask: expected a shape that fits {x.shape}, got {mask.shape}") from None
    return x.expand(*shape)[mask.expand(*shape)]


@checked
def unique(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The distinct elements, in order. Composed of six launches; its sort takes more of long rows.

    Inverses take four more, counts three. The number of elements is read from the device.

    Parameters
    ----------
    x : Tensor
        (...), flattened.
    sorted : bool
        They are sorted in any case.
    return_inverse : bool
        Also return where each element of x went: int64, the shape of x.
    return_counts : bool
        Also return how often each occurs: int64.

    Returns
    -------
    Tensor or tuple of Tensor
        (N,), and what was asked for beside it. 0.0 and -0.0 are one element, with either sign.

    Raises
    ------
    ValueError
        For tensors without memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> [y.tolist() for y in rl.unique(rl.tensor([3, 1, 3]), return_counts=True)]
    [[1, 3], [1, 2]]
    """
    row, size = x.detach().reshape(-1), x.numel()
    values, order = row.sort() if return_inverse else (_core._sort_values(row), None)
    is_last = values[1:] != values[:-1]  # of its group; the last of all stands apart
    ends = is_last.nonzero()[:, 0]
    made = [_core.cat([values.index_select(0, ends), values[-1:]])]
    if order is not None:  # the first element belongs to group 0
        groups = _core.zeros(size, dtype="int64", device=x.device).scatter_add(0, order[1:], is_last.cumsum(0))
        made.append(groups.reshape(x.shape))
    if return_counts:
        around = _core.arange(-1, size, max(size, 1), device=x.device)  # -1 and the place of the last
        bounds = _core.cat([around[:1], ends, around[1:]])
        made.append(bounds[1:] - bounds[:-1])
    return tuple(made) if len(made) > 1 else made[0]
