"""Numbers rounded to digits, and what ops of floats give for other dtypes, composed of ops that have kernels."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ._arguments import checked

__all__ = ["nan_to_num", "round", "sign"]


@checked
def round(x: Tensor, decimals: int = 0, variant: str = "") -> Tensor:
    """The nearest integer; halfway between two, the even one. One launch, and six with decimals.

    Parameters
    ----------
    x : Tensor
        (...).
    decimals : int
        Digits after the point that stay, or zeros before it if negative: -308 to 308. x is multiplied by 10^decimals,
        or divided by 10^-decimals, and back after: in float32 for numbers of 16 bits, and in float64 where float32
        cannot hold the factor.
    variant : str
        A rung of rl.variants("round"), without decimals; the fastest when empty.

    Returns
    -------
    Tensor
        (...), of x's dtype. It has no gradient.

    Raises
    ------
    ValueError
        For bool, for decimals of integers, for decimals out of range, and for a rung with decimals.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.round(rl.tensor([0.5, 1.5, 2.6, -0.5])).tolist()
    [0.0, 2.0, 3.0, -0.0]
    >>> rl.round(rl.tensor([1.25]), decimals=1).tolist()  # doctest: +ELLIPSIS
    [1.2...]
    """
    if not decimals:
        return _core.round(x, variant=variant)
    if not x.dtype.is_floating_point:
        raise ValueError(f"[round] decimals: expected 0 for {x.dtype}, got {decimals}")
    if variant:
        raise ValueError(f"[round] variant: expected none with decimals, got {variant!r}")
    if abs(decimals) > 308:
        raise ValueError(f"[round] decimals: expected -308 to 308, got {decimals}")
    at_least = "float64" if abs(decimals) > 38 else "float32"
    wide = x.detach() if x.dtype.itemsize == 8 else x.detach().to(at_least)
    factor = 10.0 ** abs(decimals)  # not 10^-3, which no float holds
    if decimals < 0:
        return (_core.round(wide / factor) * factor).to(x.dtype)
    scaled = wide * factor
    fits = _core.isfinite(scaled)  # other numbers are too large for such digits
    return _core.where(fits, _core.round(scaled) / factor, wide).to(x.dtype)


@checked
def sign(x: Tensor, variant: str = "") -> Tensor:
    """-1, 0 or 1, one launch.

    Parameters
    ----------
    x : Tensor
        (...).
    variant : str
        A rung of rl.variants("sign"); the fastest when empty.

    Returns
    -------
    Tensor
        (...), of x's dtype; 0 for NaN, as in PyTorch. A copy of bools. It has no gradient.

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
    return _core.sign(x, variant=variant)


@checked
def nan_to_num(
    x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, variant: str = ""
) -> Tensor:
    """x with numbers in place of NaN and infinities. One launch.

    Parameters
    ----------
    x : Tensor
        (...).
    nan : float
        In place of NaN.
    posinf, neginf : float, optional
        In place of the infinities; by default the largest and smallest number of the dtype.
    variant : str
        A rung of rl.variants("nan_to_num"); the fastest when empty.

    Returns
    -------
    Tensor
        (...); a copy of integers and bool. The gradient is 0 where a number was put.

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
    above, below = (None if number is None else float(number) for number in (posinf, neginf))
    return _core.nan_to_num(x, float(nan), above, below, variant)
