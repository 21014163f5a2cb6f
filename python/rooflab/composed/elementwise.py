"""Elementwise functions under PyTorch's names, composed of ops that have kernels. Counters count what runs."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from ._arguments import checked

__all__ = [
    "exp2",
    "lerp",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "reciprocal",
    "square",
]


@checked
def square(x: Tensor) -> Tensor:
    """x x, one launch, and one more for bool.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.square(rl.tensor([-2.0, 3.0])).tolist()
    [4.0, 9.0]
    """
    if x.dtype == _core.bool_:
        x = x.to("int64")
    return _core.mul(x, x)


@checked
def reciprocal(x: Tensor) -> Tensor:
    """1 / x, one launch.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.reciprocal(rl.tensor([2.0, 4.0])).tolist()
    [0.5, 0.25]
    """
    return 1 / x


@checked
def log2(x: Tensor) -> Tensor:
    """The logarithm to the base 2. Four launches, two for float64.

    The logarithm is taken in float64, so that powers of 2 of all other dtypes come out exactly.

    Parameters
    ----------
    x : Tensor
        (...); integers give float32.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.log2(rl.tensor([8.0])).tolist()
    [3.0]
    """
    return _log(x, 2)


@checked
def log10(x: Tensor) -> Tensor:
    """The logarithm to the base 10. Four launches, two for float64.

    The logarithm is taken in float64, so that powers of 10 of all other dtypes come out exactly.

    Parameters
    ----------
    x : Tensor
        (...); integers give float32.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.log10(rl.tensor([100.0])).tolist()
    [2.0]
    """
    return _log(x, 10)


@checked
def exp2(x: Tensor) -> Tensor:
    """2 to the power x, one launch.

    Parameters
    ----------
    x : Tensor
        (...); integers give float32.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.exp2(rl.tensor([3.0])).tolist()
    [8.0]
    """
    return 2.0**x


@checked
def lerp(start: Tensor, end: Tensor, weight: float | Tensor) -> Tensor:
    """start + weight (end - start). Three launches, and eight for a weight that is a tensor.

    From a weight of 0.5 on it is end + (weight - 1) (end - start), so that 1 gives end exactly. 16 bits are computed in
    float32 and rounded once: a launch more for the result and for each tensor.

    Parameters
    ----------
    start, end : Tensor
        (...).
    weight : float or Tensor
        0 gives start, 1 gives end.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For shapes that do not fit, for a weight that is a tensor of bool, and where start and end are both bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.lerp(rl.zeros(1), rl.ones(1), 0.25).tolist()
    [0.25]
    """
    weights = [weight] if isinstance(weight, Tensor) else []
    if any(x.dtype == _core.bool_ for x in weights):
        raise ValueError("[lerp] weight: expected numbers, got bool")
    if start.dtype == end.dtype == _core.bool_:
        raise ValueError("[lerp] start, end: expected numbers, got bool")
    if any(map(_has_16_bits, (start, end, *weights))):
        share = _wide(weight) if isinstance(weight, Tensor) else weight
        made, narrow = lerp(_wide(start), _wide(end), share), _dtype_of_16_bits(start, end, *weights)
        return made.to(narrow) if narrow else made
    if not isinstance(weight, Tensor):
        return start + weight * (end - start) if abs(weight) < 0.5 else end + (weight - 1) * (end - start)
    is_near = weight.abs() < 0.5
    near, factor = _core.where(is_near, start, end), _core.where(is_near, weight, weight - 1)
    return near + factor * (end - start)


@checked
def logical_and(a: Tensor, b: Tensor) -> Tensor:
    """Whether both are true (not 0). One launch, and one more for each that is not bool.

    Parameters
    ----------
    a, b : Tensor
        (...), broadcast.

    Returns
    -------
    Tensor
        bool.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logical_and(rl.tensor([True, True]), rl.tensor([1, 0])).tolist()
    [True, False]
    """
    a, b = true_of(a), true_of(b)
    return a & b


@checked
def logical_or(a: Tensor, b: Tensor) -> Tensor:
    """Whether one of both is true (not 0). One launch, and one more for each that is not bool.

    Parameters
    ----------
    a, b : Tensor
        (...), broadcast.

    Returns
    -------
    Tensor
        bool.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logical_or(rl.tensor([True, True]), rl.tensor([1, 0])).tolist()
    [True, True]
    """
    a, b = true_of(a), true_of(b)
    return a | b


@checked
def logical_xor(a: Tensor, b: Tensor) -> Tensor:
    """Whether just one of both is true (not 0). One launch, and one more for each that is not bool.

    Parameters
    ----------
    a, b : Tensor
        (...), broadcast.

    Returns
    -------
    Tensor
        bool.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logical_xor(rl.tensor([True, True]), rl.tensor([1, 0])).tolist()
    [False, True]
    """
    a, b = true_of(a), true_of(b)
    return a ^ b


@checked
def logical_not(x: Tensor) -> Tensor:
    """Whether x is 0 (false). One launch.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        bool.

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logical_not(rl.tensor([0.0, 2.0])).tolist()
    [True, False]
    """
    return ~x if x.dtype == _core.bool_ else x == 0


def _log(x: Tensor, base: int) -> Tensor:
    result = _core.log(x.to("float64")) / math.log(base)
    return result if x.dtype == _core.float64 else result.to(x.dtype if x.dtype.is_floating_point else "float32")


def _has_16_bits(x: Tensor) -> bool:
    return x.dtype.is_floating_point and x.dtype.itemsize == 2


def _wide(x: Tensor) -> Tensor:
    return x.float() if _has_16_bits(x) else x


def _dtype_of_16_bits(*operands: Tensor) -> _core.DType | None:
    """The dtype in which operands meet, if that is float16 or bfloat16."""
    floats = [x for x in operands if x.dtype.is_floating_point]
    kinds = {x.dtype for x in floats if x.ndim} or {x.dtype for x in floats}
    dtype = kinds.pop() if len(kinds) == 1 else None
    return dtype if dtype and dtype.itemsize == 2 else None


def true_of(x: Tensor) -> Tensor:
    """Whether each element is not 0: bool, x itself if it is bool."""
    return x if x.dtype == _core.bool_ else x != 0
