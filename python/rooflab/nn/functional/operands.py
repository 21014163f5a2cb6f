"""Operands of composed functions: what is refused, and the dtype to compute in."""

from __future__ import annotations

import numbers
from typing import Any

from ..._core import Tensor

__all__ = ["check_floating", "check_kind", "check_number", "check_tensor", "wide"]


def check_tensor(name: str, value: Any, operand: str = "x") -> Tensor:
    """Refuse anything but a tensor.

    Raises
    ------
    TypeError
        For anything else, with the names of the function and the operand.

    Examples
    --------
    >>> import rooflab as rl
    >>> check_tensor("glu", rl.ones(2)).shape
    (2,)
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"[{name}] {operand}: expected a tensor, got {type(value).__name__}")
    return value


def check_kind(name: str, value: Any, kind: type, operand: str) -> None:
    """Refuse anything but an object of a class: rooflab's models and configurations are easily mistaken.

    Raises
    ------
    TypeError
        For anything else, with the names of the function, the operand and the class.

    Examples
    --------
    >>> check_kind("sample", 3, int, "k")
    """
    if not isinstance(value, kind):
        got = type(value).__name__
        raise TypeError(f"[{name}] {operand}: expected a {kind.__name__}, got {got if value is not None else None}")


def check_floating(name: str, value: Any, operand: str = "x") -> Tensor:
    """Refuse anything but a tensor of a floating dtype, as PyTorch does where the gradient matters.

    Raises
    ------
    TypeError
        For anything but a tensor.
    ValueError
        For integers and bool.

    Examples
    --------
    >>> import rooflab as rl
    >>> check_floating("elu", rl.ones(2)).shape
    (2,)
    """
    if not check_tensor(name, value, operand).dtype.is_floating_point:
        raise ValueError(f"[{name}] {operand}: expected a floating-point dtype, got {value.dtype}")
    return value


def check_number(name: str, value: Any, operand: str) -> None:
    """Refuse anything but a number.

    Raises
    ------
    TypeError
        For anything else.

    Examples
    --------
    >>> check_number("elu", 0.5, "alpha")
    """
    if not isinstance(value, (numbers.Real, Tensor)):
        raise TypeError(f"[{name}] {operand}: expected a number, got {type(value).__name__}")


def wide(x: Tensor) -> Tensor:
    """x, in float32 if it has 16 bits: several ops in a row then round once, and squares do not overflow.

    Examples
    --------
    >>> import rooflab as rl
    >>> print(wide(rl.ones(2, dtype="float16")).dtype, wide(rl.ones(2, dtype="float64")).dtype)
    float32 float64
    """
    return x.float() if x.dtype.itemsize == 2 else x
