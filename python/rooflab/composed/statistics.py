"""What is computed over dimensions under PyTorch"s names, composed of ops that have kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._results import ValuesAndIndices
from .elementwise import logical_not
from .views import _place

__all__ = ["bincount", "count_nonzero", "equal", "logsumexp", "median", "prod"]


def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product over one or all dimensions. Composed of log2(n) products of halves.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int, optional
        The dimension; by default all.
    keepdim : bool
        Whether the dimension stays, with size 1.
    dtype : dtype, optional
        What x is cast to first; by default int64 for bool.

    Returns
    -------
    Tensor
        1 where there is no element.

    Raises
    ------
    ValueError
        For a dimension that x lacks.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.prod(rl.tensor([[1, 2], [3, 4]]), 1).tolist()
    [2, 12]
    """
    if dtype is not None or not x.dtype.is_floating_point:
        x = x.to("int64" if dtype is None else dtype)
    if dim is None:
        return prod(x.reshape(-1), 0)
    place = _place("prod", x, dim)
    front = (slice(None),) * place
    if x.shape[place] == 0:
        x = _core.ones(*x.shape[:place], 1, *x.shape[place + 1 :], dtype=x.dtype, device=x.device)
    while (size := x.shape[place]) > 1:
        half = size // 2
        product = x[(*front, slice(0, half))] * x[(*front, slice(half, 2 * half))]
        x = _core.cat([product, x[(*front, slice(2 * half, size))]], place) if size % 2 else product
    return x if keepdim else x.squeeze(place)


def median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, of an even number the lower one. Composed of a sort, tests for NaN and a choice.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int, optional
        The dimension; by default all.
    keepdim : bool
        Whether the dimension stays, with size 1.

    Returns
    -------
    Tensor, or ValuesAndIndices with a dimension
        NaN where there is one.

    Raises
    ------
    ValueError
        For a dimension that x lacks, and for no elements.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.median(rl.tensor([3.0, 1.0, 2.0, 4.0])).item()
    2.0
    """
    if dim is None:
        return median(x.reshape(-1), 0).values
    if x.ndim == 0:
        return ValuesAndIndices(x.clone(), _core.zeros(dtype="int64", device=x.device))
    place = _place("median", x, dim)
    size = x.shape[place]
    if size == 0:
        raise ValueError(f"[median] x: expected elements along dimension {dim}, got {x.shape}")
    ordered, order = x.sort(place)
    at = [(slice(None),) * place + (slice(i, i + 1),) for i in ((size - 1) // 2, size - 1)]
    values, indices = ordered[at[0]], order[at[0]]
    if x.dtype.is_floating_point:  # NaN is sorted to the end
        is_nan = _core.isnan(ordered[at[1]])
        values = _core.where(is_nan, ordered[at[1]], values)
        indices = _core.where(is_nan, order[at[1]], indices)
    return ValuesAndIndices(*(y if keepdim else y.squeeze(place) for y in (values, indices)))


def logsumexp(x: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) without overflow. Composed of nine launches.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    dim : int or sequence of int
        What to go over.
    keepdim : bool
        Whether the dimension stays, with size 1.

    Returns
    -------
    Tensor
        -inf where all are -inf.

    Raises
    ------
    ValueError
        For integers, or dimensions that x lacks.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logsumexp(rl.tensor([1000.0, 1000.0]), 0).item()  # doctest: +ELLIPSIS
    1000.69...
    """
    largest = x.detach().amax(dim, True)
    largest = largest.masked_fill(_core.isinf(largest), 0)
    total = (x - largest).exp().sum(dim, True).log() + largest
    dims = {place % x.ndim for place in ([dim] if isinstance(dim, int) else dim)}
    return total if keepdim else total.reshape([size for i, size in enumerate(total.shape) if i not in dims])


def count_nonzero(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """How many elements are not 0. Composed of a comparison and a sum.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int or sequence of int, optional
        What to go over; by default all.

    Returns
    -------
    Tensor
        int64.

    Raises
    ------
    ValueError
        For dimensions that x lacks.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.count_nonzero(rl.tensor([0.0, 2.0])).item()
    1
    """
    return logical_not(logical_not(x)).sum(dim)


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on is there. Composed of a maximum, which is read from the device, and scatter_add.

    Parameters
    ----------
    x : Tensor
        (N,), integers >= 0.
    weights : Tensor, optional
        (N,): what each counts.
    minlength : int
        How many counts there are at least.

    Returns
    -------
    Tensor
        int64, or the dtype of weights.

    Raises
    ------
    ValueError
        For negative or other numbers, and other shapes.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.bincount(rl.tensor([0, 2, 2])).tolist()
    [1, 0, 2]
    """
    if x.ndim != 1 or x.dtype.is_floating_point or x.dtype == _core.bool_ or minlength < 0:
        raise ValueError(f"[bincount] expected integers (N,) and minlength >= 0, got {x.dtype} {x.shape}, {minlength}")
    if x.numel() and int(x.min()) < 0:
        raise ValueError("[bincount] x: expected numbers >= 0")
    size = max(minlength, int(x.max()) + 1 if x.numel() else 0)
    ones = _core.ones(*x.shape, dtype="int64", device=x.device) if weights is None else weights
    return _core.zeros(size, dtype=ones.dtype, device=x.device).scatter_add(0, x.to("int64"), ones)


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape and elements. Composed of a comparison and `all`, whose result is read.

    Parameters
    ----------
    a, b : Tensor
        (...).

    Returns
    -------
    bool
        False for NaN.

    Raises
    ------
    ValueError
        For tensors of two dtypes or devices, or without memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.equal(rl.ones(2), rl.ones(2)), rl.equal(rl.ones(2), rl.ones(3))
    (True, False)
    """
    return a.shape == b.shape and bool((a == b).all())
