"""Vectors, classes and padding under the names of torch.nn.functional."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from ... import _core
from ..._arguments import is_integer
from ..._core import Tensor
from ..._in_words import in_words
from .operands import check_floating, check_number, check_tensor, wide

__all__ = ["cosine_similarity", "normalize", "one_hot", "pad"]


def _scaled(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """x over a unit, the norm of that, and the unit, in ten launches. The norm has a gradient of 0 where it is 0.

    The unit is the largest magnitude, so that no square overflows or rounds to 0. It has bounds: then 0 and infinity
    can be divided by it, and `eps` over it is finite.
    """
    unit = x.detach().abs()
    limits = np.finfo(str(x.dtype))
    if x.numel() > 0:
        unit = unit.amax(dim, keepdim=True).clamp(float(limits.tiny) ** 0.75, float(limits.max))
    else:
        unit = unit.sum(dim, keepdim=True) + 1.0
    scaled = x / unit
    total = (scaled * scaled).sum(dim, keepdim=True)
    is_zero = total == 0
    return scaled, total.masked_fill(is_zero, 1.0).sqrt().masked_fill(is_zero, 0.0), unit


@in_words
def normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x divided by its norm over a dimension, or by eps where the norm is smaller. Composed of 13 launches.

    Numbers of 16 bits are squared in float32, which takes two more launches. No square overflows or rounds to 0.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    p : float
        2, the norm that there is.
    dim : int
        The dimension.
    eps : float
        The least divisor.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For another p, and for integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import normalize
    >>> import rooflab as rl
    >>> normalize(rl.tensor([3.0, 4.0]), dim=0).tolist()  # doctest: +ELLIPSIS
    [0.6..., 0.8...]
    """
    if p != 2:
        raise ValueError(f"[normalize] p: expected 2, got {p}; write x / x.abs().sum({dim}, keepdim=True) for 1")
    check_number("normalize", eps, "eps")
    scaled, norm, unit = _scaled(wide(check_floating("normalize", x)), dim)
    return (scaled / _core.maximum(norm, eps / unit)).to(x.dtype)


@in_words
def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension. Composed of 32 launches.

    Numbers of 16 bits are squared in float32, which takes up to three more launches. No square overflows or
    rounds to 0.

    Parameters
    ----------
    a, b : Tensor
        (...), broadcast; at least one is floating.
    dim : int
        The dimension of the shape that both are broadcast to.
    eps : float
        The least norm that is divided by. As in PyTorch, a smaller norm has its gradient nevertheless.

    Returns
    -------
    Tensor
        (...) without that dimension.

    Raises
    ------
    ValueError
        For shapes that do not fit, and for integers alone.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import cosine_similarity
    >>> import rooflab as rl
    >>> cosine_similarity(rl.tensor([1.0, 0.0]), rl.tensor([2.0, 0.0]), dim=0).item()
    1.0
    """
    for operand, x in (("a", a), ("b", b)):
        check_tensor("cosine_similarity", x, operand)
    check_number("cosine_similarity", eps, "eps")
    if not a.dtype.is_floating_point:
        a = a.to(check_floating("cosine_similarity", b, "b").dtype)
    if not b.dtype.is_floating_point:
        b = b.to(a.dtype)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"[cosine_similarity] shapes {a.shape} and {b.shape} do not broadcast") from None

    def direction(x: Tensor) -> Tensor:
        scaled, norm, unit = _scaled(wide(x).expand(*shape), dim)
        return scaled / (norm + (eps / unit - norm.detach()).clamp(min=0))

    cosine = (direction(a) * direction(b)).sum(dim)
    return cosine.to(a.dtype) if a.dtype == b.dtype else cosine


@in_words
def one_hot(index: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class of each element, else 0, int64.

    Two launches. One more finds the largest class, which is read from the device, where their number is not given.

    Parameters
    ----------
    index : Tensor
        (...), int64.
    num_classes : int
        V; -1 stands for the largest class and 1.

    Returns
    -------
    Tensor
        (..., V).

    Raises
    ------
    ValueError
        For a class that is negative or not below V: on a GPU at the next wait (see rl.cuda.synchronize), and the class
        is ignored. For no classes, and for another dtype.
    TypeError
        For anything but a tensor, or a V that is not an integer.

    Examples
    --------
    >>> from rooflab.nn.functional import one_hot
    >>> import rooflab as rl
    >>> one_hot(rl.tensor([2, 0])).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    if check_tensor("one_hot", index, "index").dtype != _core.int64:
        raise ValueError(f"[one_hot] index: expected int64, got {index.dtype}")
    if not is_integer(num_classes):
        raise TypeError(f"[one_hot] num_classes: expected an integer, got {num_classes!r}")
    num_classes = int(num_classes)
    if num_classes < -1 or num_classes == 0:
        raise ValueError(f"[one_hot] num_classes: expected at least 1, or -1 for as many as needed, got {num_classes}")
    if num_classes == -1:
        # While a function is recorded, looking at an index without values makes it run as it is written.
        if index.numel() == 0 or not (_core._compiler.has_values(index) or _core._compiler.is_tracing()):
            expected = "expected their number for an index without values"
            raise ValueError(f"[one_hot] num_classes: {expected}, got {index.shape}")
        high = int(index.max())
        if high < 0:
            raise ValueError(f"[one_hot] index: expected no negative classes, got {high}")
        num_classes = high + 1
    return _core._one_hot(index, num_classes)


@in_words
def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """x with more elements around it, or fewer, in memory of its own.

    Two launches, a fill and a copy; a copy where no dimension grows. On large tensors each end that grows is a fill.

    Parameters
    ----------
    x : Tensor
        (...).
    pad : sequence of int
        How many before and after: of the last dimension, then of the one before it, and so on. Negative ones cut.
    mode : str
        "constant".
    value : float, optional
        Of the new elements; by default 0.

    Returns
    -------
    Tensor
        The new shape.

    Raises
    ------
    ValueError
        For another mode, an odd number of sizes or too many of them, and where more is cut than there is.
    TypeError
        For sizes that are not integers, and for anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import pad
    >>> import rooflab as rl
    >>> pad(rl.ones(2), (1, 2)).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    if mode != "constant":
        raise ValueError(f"[pad] mode: expected 'constant', got {mode!r}")
    check_tensor("pad", x)
    try:
        sizes = [operator.index(size) for size in pad]
    except TypeError:
        raise TypeError(f"[pad] pad: expected a sequence of integers, got {pad!r}") from None
    if len(sizes) % 2 or len(sizes) > 2 * x.ndim:
        raise ValueError(f"[pad] pad: expected two sizes a dimension for x {x.shape}, got {sizes}")
    ends = {x.ndim - 1 - i: (sizes[2 * i], sizes[2 * i + 1]) for i in range(len(sizes) // 2)}
    kept = [slice(None)] * x.ndim
    for dim, (before, after) in ends.items():
        first, last = max(0, -before), x.shape[dim] + min(0, after)
        if first > last:
            raise ValueError(f"[pad] pad: cuts more than there is of dimension {dim} of {x.shape}")
        kept[dim] = slice(first, last)
    if max(sizes, default=0) <= 0:
        return x[tuple(kept)].clone()
    before_all, after_all = (tuple(max(0, ends.get(dim, (0, 0))[end]) for dim in range(x.ndim)) for end in (0, 1))
    number = 0 if value is None else value
    check_number("pad", number, "value")
    filled = number.item() if isinstance(number, Tensor) else number
    return _core._pad(x[tuple(kept)], before_all, after_all, filled)
