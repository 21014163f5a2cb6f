"""Statistics over dimensions under PyTorch's names, composed of ops that have kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ._arguments import checked, place_of, sequence_of
from .elementwise import true_of

__all__ = ["bincount", "count_nonzero", "equal", "logsumexp", "median", "prod"]


@checked
def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, dtype: Any = None, variant: str = "") -> Tensor:
    """The product over one or all dimensions, formed in double or int64. One launch; a cast takes one more.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int, optional
        The dimension; by default all.
    keepdim : bool
        Whether the dimension stays, with size 1.
    dtype : dtype, optional
        What x is cast to first, and the result's; by default that of x, int64 for integers and bool.
    variant : str
        A rung of rl.variants("prod"); the fastest when empty.

    Returns
    -------
    Tensor
        1 where there is no element.

    Raises
    ------
    ValueError
        For a dimension that x lacks, and for keepdim without one.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.prod(rl.tensor([[1, 2], [3, 4]]), 1).tolist()
    [2, 12]
    """
    if dtype is not None:
        x = x.to(dtype)
    if dim is None:
        _check_keepdim("prod", keepdim)
        product = _core.prod(x, variant=variant)
    else:
        place = place_of("prod", x.reshape(1) if x.ndim == 0 else x, dim)
        product = _core.prod(x, None if x.ndim == 0 else place, keepdim and x.ndim > 0, variant)
    return product if dtype is None else product.to(dtype)


@checked
def median(x: Tensor, dim: int | None = None, keepdim: bool = False, variant: str = "") -> Any:
    """The middle element, of an even number the lower one. One launch; a GPU takes more of few long rows.

    The gradient goes to the element that was taken. Without a dimension it is shared by all that equal it, which takes
    six launches more.

    Parameters
    ----------
    x : Tensor
        (...).
    dim : int, optional
        The dimension; by default all.
    keepdim : bool
        Whether the dimension stays, with size 1.
    variant : str
        A rung of rl.variants("median"); the fastest when empty.

    Returns
    -------
    Tensor, or ValuesAndIndices with a dimension
        NaN where there is one. The index is that of the first among equal elements, and of the first NaN.

    Raises
    ------
    ValueError
        For a dimension that x lacks, for keepdim without one, for no elements, and for bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.median(rl.tensor([3.0, 1.0, 2.0, 4.0])).item()
    2.0
    """
    if dim is not None:
        place = place_of("median", x if x.ndim else x.reshape(1), dim)
        return _core.median(x, place, keepdim, variant)
    _check_keepdim("median", keepdim)
    middle = _core.median(x.detach().reshape(-1), 0, variant=variant).values
    if not x.requires_grad:
        return middle
    is_middle = (x == middle) | _core.isnan(x)  # where one is NaN, so is the median
    return x.masked_fill(~is_middle, -math.inf).amax()


@checked
def logsumexp(x: Tensor, dim: int | Sequence[int], keepdim: bool = False, variant: str = "") -> Tensor:
    """log(sum(exp(x))) without overflow. One launch; a GPU takes two for few long rows, and integers one more.

    4 FLOPs an element. Dimensions that cannot be merged are copied first, which is one more too.

    Parameters
    ----------
    x : Tensor
        (...); integers give float32.
    dim : int or sequence of int
        What to go over; an empty sequence means all.
    keepdim : bool
        Whether the dimension stays, with size 1.
    variant : str
        A rung of rl.variants("logsumexp"); the fastest when empty.

    Returns
    -------
    Tensor
        -inf where all elements are -inf, or there are none. The gradient is softmax: NaN for such a row, and for one
        with inf.

    Raises
    ------
    ValueError
        For dimensions that x lacks, and for one that appears twice.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logsumexp(rl.tensor([1000.0, 1000.0]), 0).item()  # doctest: +ELLIPSIS
    1000.69...
    """
    if not x.dtype.is_floating_point:
        x = x.float()  # a difference of integers may wrap around
    row = x if x.ndim else x.reshape(1)
    dims = tuple(place_of("logsumexp", row, each) for each in sequence_of(dim))
    found = _core.logsumexp(row, dims or None, keepdim, variant)
    return found if x.ndim else found.reshape(())


@checked
def count_nonzero(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """How many elements are not 0. Composed of two launches, of one for bool.

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
    return true_of(x).sum(dim)


@checked
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs. Composed of six launches; two results are read from the device.

    Where there are more numbers than counts, weights of float32 or 16 bits are added in float64, which takes one more.

    Parameters
    ----------
    x : Tensor
        (N,), integers >= 0.
    weights : Tensor, optional
        (N,): what each counts.
    minlength : int
        The least number of counts.

    Returns
    -------
    Tensor
        int64; with weights float32 for those of float32, else float64.

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
    if weights is None:
        ones = _core.ones(*x.shape, dtype="int64", device=x.device)
    else:
        ones = weights if weights.dtype == _core.float32 else weights.to("float64")
    return _core.zeros(size, dtype=ones.dtype, device=x.device).scatter_add(0, x.to("int64"), ones)


@checked
def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape and elements. Composed of two launches, and the result is read.

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
        For tensors on two devices, or without memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.equal(rl.ones(2), rl.ones(2)), rl.equal(rl.ones(2), rl.ones(3))
    (True, False)
    """
    return a.shape == b.shape and bool((a == b).all())


def _check_keepdim(name: str, keepdim: bool) -> None:
    if keepdim:
        raise ValueError(f"[{name}] keepdim: expected a dim as well")
