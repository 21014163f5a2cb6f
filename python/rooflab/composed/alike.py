"""Methods that make a tensor in the shape of another one, or of this tensor's dtype and on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor

__all__ = [
    "expand_as",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "reshape_as",
    "type_as",
    "view_as",
]


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        With as many elements.

    Returns
    -------
    Tensor
        A view; nothing is launched.

    Raises
    ------
    ValueError
        For another number of elements, and for a layout that needs a copy.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.arange(4).view_as(rl.ones(2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    return self.view(*other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        With as many elements.

    Returns
    -------
    Tensor
        A view where possible; else a copy, which takes one launch.

    Raises
    ------
    ValueError
        For another number of elements.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.arange(4).reshape_as(rl.ones(2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    return self.reshape(*other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        Its shape may differ where this tensor has size 1, and have more dimensions in front.

    Returns
    -------
    Tensor
        A view; nothing is launched.

    Raises
    ------
    ValueError
        For a shape that this one does not expand to.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([[1], [2]]).expand_as(rl.ones(2, 2)).tolist()
    [[1, 1], [2, 2]]
    """
    return self.expand(*other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another one, and on its device.

    Parameters
    ----------
    other : Tensor
        Of any shape.

    Returns
    -------
    Tensor
        The tensor itself if it is that already; else a copy.

    Raises
    ------
    ValueError
        For a tensor on "meta" and another one that is not, because there are no values to copy.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ones(2).type_as(rl.tensor([1, 2])).tolist()
    [1, 1]
    """
    return self.to(other)


def new_zeros(self: Tensor, *size: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of another size, by default of this dtype and on this device. One launch.

    Parameters
    ----------
    *size : int, or one sequence of int
        The shape.
    dtype : dtype or str, optional
        By default that of this tensor.
    device : str, optional
        By default that of this tensor.

    Returns
    -------
    Tensor
        With memory of its own.

    Raises
    ------
    ValueError
        For a negative size. For what is not a dtype or device.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1, 2]).new_zeros(3).tolist()
    [0, 0, 0]
    """
    return _core.zeros(*size, **_where(self, dtype, device))


def new_ones(self: Tensor, *size: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of another size, by default of this dtype and on this device. One launch.

    Parameters
    ----------
    *size : int, or one sequence of int
        The shape.
    dtype : dtype or str, optional
        By default that of this tensor.
    device : str, optional
        By default that of this tensor.

    Returns
    -------
    Tensor
        With memory of its own.

    Raises
    ------
    ValueError
        For a negative size. For what is not a dtype or device.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1, 2]).new_ones(3).tolist()
    [1, 1, 1]
    """
    return _core.ones(*size, **_where(self, dtype, device))


def new_empty(self: Tensor, *size: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """Elements that are not set, by default of this dtype and on this device. Nothing is launched.

    Parameters
    ----------
    *size : int, or one sequence of int
        The shape.
    dtype : dtype or str, optional
        By default that of this tensor.
    device : str, optional
        By default that of this tensor.

    Returns
    -------
    Tensor
        With memory of its own, which holds anything.

    Raises
    ------
    ValueError
        For a negative size. For what is not a dtype or device.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1, 2]).new_empty(3).shape
    (3,)
    """
    return _core.empty(*size, **_where(self, dtype, device))


def new_full(
    self: Tensor, size: Sequence[int], fill_value: float | Tensor, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """One number everywhere, by default of this dtype and on this device. One launch.

    Parameters
    ----------
    size : sequence of int
        The shape.
    fill_value : float or Tensor
        One that the dtype can hold. A tensor has no dimensions, and is converted.
    dtype : dtype or str, optional
        By default that of this tensor.
    device : str, optional
        By default that of this tensor.

    Returns
    -------
    Tensor
        With memory of its own.

    Raises
    ------
    ValueError
        For a negative size, and a number that integers cannot hold. For what is not a dtype or device.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1, 2]).new_full((3,), 7).tolist()
    [7, 7, 7]
    """
    return _core.full(tuple(size), fill_value, **_where(self, dtype, device))


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`rl.tensor` of data, by default of this dtype and on this device.

    Parameters
    ----------
    data : number, nested lists, NumPy array or Tensor
        What is copied.
    dtype : dtype or str, optional
        By default that of this tensor.
    device : str, optional
        By default that of this tensor.

    Returns
    -------
    Tensor
        Contiguous, with memory of its own.

    Raises
    ------
    ValueError
        For rows of different lengths, and what is no number. For what is not a dtype or device.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1.5]).new_tensor([3, 4]).tolist()
    [3.0, 4.0]
    """
    return _core.tensor(data, **_where(self, dtype, device))


def _where(x: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}
