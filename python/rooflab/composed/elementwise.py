"""Elementwise functions under PyTorch"s names, composed of ops that have kernels. Counters count what runs."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor

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


def square(x: Tensor) -> Tensor:
    """x x, one launch.

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
    ValueError
        For bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.square(rl.tensor([-2.0, 3.0])).tolist()
    [4.0, 9.0]
    """
    return _core.mul(x, x)


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
    ValueError
        For bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.reciprocal(rl.tensor([2.0, 4.0])).tolist()
    [0.5, 0.25]
    """
    return 1 / x


def log2(x: Tensor) -> Tensor:
    """The logarithm to the base 2: log and a product, two launches.

    Parameters
    ----------
    x : Tensor
        (...), floating.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.log2(rl.tensor([8.0])).tolist()
    [3.0]
    """
    return _core.log(x) * (1 / math.log(2))


def log10(x: Tensor) -> Tensor:
    """The logarithm to the base 10: log and a product, two launches.

    Parameters
    ----------
    x : Tensor
        (...), floating.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.log10(rl.tensor([100.0])).tolist()
    [2.0]
    """
    return _core.log(x) * (1 / math.log(10))


def exp2(x: Tensor) -> Tensor:
    """2 to the power x, one launch.

    Parameters
    ----------
    x : Tensor
        (...), floating.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.exp2(rl.tensor([3.0])).tolist()
    [8.0]
    """
    return 2.0**x


def lerp(start: Tensor, end: Tensor, weight: float | Tensor) -> Tensor:
    """start + weight (end - start), three launches.

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
        For shapes or dtypes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.lerp(rl.zeros(1), rl.ones(1), 0.25).tolist()
    [0.25]
    """
    return start + weight * (end - start)


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
    a, b = _true(a), _true(b)
    return a & b


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
    a, b = _true(a), _true(b)
    return a | b


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
    a, b = _true(a), _true(b)
    return a ^ b


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
        For what is no tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.logical_not(rl.tensor([0.0, 2.0])).tolist()
    [True, False]
    """
    return ~x if x.dtype == _core.bool_ else x == 0


def _true(x: Tensor) -> Tensor:
    return x if x.dtype == _core.bool_ else x != 0
