"""Integers near numbers, signs, and numbers in place of NaN, composed of ops that have kernels."""

from __future__ import annotations

import math

import ml_dtypes

from .. import _core
from .._core import Tensor
from ._arguments import checked

__all__ = ["ceil", "floor", "nan_to_num", "round", "sign", "trunc"]


@checked
def floor(x: Tensor) -> Tensor:
    """The largest integer that is not above x. Composed of four launches.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (...), of x's dtype: a copy of integers; what is not finite stays. It has no gradient.

    Raises
    ------
    ValueError
        For bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.floor(rl.tensor([1.5, -1.5])).tolist()
    [1.0, -2.0]
    """
    if not x.dtype.is_floating_point:
        return _whole("floor", x)
    return _core.where(_core.isfinite(x), x // 1, x.detach())


@checked
def ceil(x: Tensor) -> Tensor:
    """The smallest integer that is not below x. Composed of six launches.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (...), of x's dtype: a copy of integers; what is not finite stays. It has no gradient.

    Raises
    ------
    ValueError
        For bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ceil(rl.tensor([1.5, -1.5])).tolist()
    [2.0, -1.0]
    """
    return -floor(-x) if x.dtype.is_floating_point else _whole("ceil", x)


@checked
def trunc(x: Tensor) -> Tensor:
    """x without its fractional part, rounded towards zero. Composed of twelve launches.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (...), of x's dtype. It has no gradient.

    Raises
    ------
    ValueError
        For bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.trunc(rl.tensor([1.5, -1.5])).tolist()
    [1.0, -1.0]
    """
    if not x.dtype.is_floating_point:
        return _whole("trunc", x)
    return _core.where(x > 0, floor(x), ceil(x))


@checked
def round(x: Tensor, decimals: int = 0) -> Tensor:
    """The nearest integer; halfway between two, the even one. Composed of 14 launches.

    Parameters
    ----------
    x : Tensor
        (...).
    decimals : int
        Digits after the point that stay, or zeros before it if negative: -308 to 308. x is multiplied by 10^decimals,
        or divided by 10^-decimals, and back after: in float32 for numbers of 16 bits, and in float64 where float32
        cannot hold the factor.

    Returns
    -------
    Tensor
        (...), of x's dtype. It has no gradient.

    Raises
    ------
    ValueError
        For bool, for decimals of integers, and for decimals out of range.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.round(rl.tensor([0.5, 1.5, 2.6, -0.5])).tolist()
    [0.0, 2.0, 3.0, -0.0]
    >>> rl.round(rl.tensor([1.25]), decimals=1).tolist()  # doctest: +ELLIPSIS
    [1.2...]
    """
    if not x.dtype.is_floating_point:
        if decimals:
            raise ValueError(f"[round] decimals: expected 0 for {x.dtype}, got {decimals}")
        return _whole("round", x)
    if abs(decimals) > 308:
        raise ValueError(f"[round] decimals: expected -308 to 308, got {decimals}")
    if decimals:
        at_least = "float64" if abs(decimals) > 38 else "float32"
        wide = x.detach() if x.dtype.itemsize == 8 else x.detach().to(at_least)
        factor = 10.0 ** abs(decimals)  # not 10^-3, which no float holds
        if decimals < 0:
            return (round(wide / factor) * factor).to(x.dtype)
        scaled = wide * factor
        fits = _core.isfinite(scaled)  # other numbers are too large for such digits
        return _core.where(fits, round(scaled) / factor, wide).to(x.dtype)
    low = floor(x)
    rest = x.detach() - low
    is_up = (rest > 0.5) | ((rest == 0.5) & (low % 2 == 1))
    return _core.where(is_up, -(-1 - low), low)  # -0 between -0.5 and 0


@checked
def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1. Composed of five launches.

    Parameters
    ----------
    x : Tensor
        (...).

    Returns
    -------
    Tensor
        (...), of x's dtype; 0 for NaN, as in PyTorch. It has no gradient.

    Raises
    ------
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.sign(rl.tensor([-3.0, 0.0, 2.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    if x.dtype == _core.bool_:
        return x.clone()
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@checked
def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with numbers in place of NaN and infinities. Composed of six launches.

    Parameters
    ----------
    x : Tensor
        (...).
    nan : float
        In place of NaN.
    posinf, neginf : float, optional
        In place of the infinities; by default the largest and smallest number of the dtype.

    Returns
    -------
    Tensor
        (...); a copy of integers and bool.

    Raises
    ------
    TypeError
        For anything but a tensor, and for anything but a number.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.nan_to_num(rl.tensor([float('nan'), 1.0])).tolist()
    [0.0, 1.0]
    """
    if not x.dtype.is_floating_point:
        return x.clone()
    largest = float(ml_dtypes.finfo(str(x.dtype)).max)
    filled = x.masked_fill(_core.isnan(x), nan)
    filled = filled.masked_fill(x == math.inf, largest if posinf is None else posinf)
    return filled.masked_fill(x == -math.inf, -largest if neginf is None else neginf)


def _whole(name: str, x: Tensor) -> Tensor:
    """A copy of integers, which are whole numbers."""
    if x.dtype == _core.bool_:
        raise ValueError(f"[{name}] x: expected a numeric dtype, got bool")
    return x.clone()
