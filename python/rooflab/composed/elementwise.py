"""Elementwise functions under PyTorch's names, composed of ops that have kernels. Counters count what runs."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ._arguments import checked

__all__ = [
    "exp2",
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


def true_of(x: Tensor) -> Tensor:
    """Whether each element is not 0: bool, x itself if it is bool."""
    return x if x.dtype == _core.bool_ else x != 0
