"""Conversions to tensors, and the limits of dtypes, under PyTorch's names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from .. import _core
from .._core import Tensor
from .._in_words import in_words

_FLOATS = ("max", "min", "eps", "tiny", "smallest_normal", "resolution")
_SHARED = tuple(map(np.dtype, ("float64", "float32", "float16", "int64", "int32", "bool")))

__all__ = ["as_tensor", "finfo", "from_numpy", "iinfo", "is_tensor"]


@in_words
def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor on the CPU that shares the array's memory.

    Parameters
    ----------
    array : ndarray
        Of a dtype that tensors have.

    Returns
    -------
    Tensor
        Writing to one writes to the other.

    Raises
    ------
    TypeError
        For anything but an array.
    ValueError
        For a dtype that tensors do not have, bfloat16 among them, which NumPy does not share; for another byte order;
        and for an array that cannot be written to.

    Examples
    --------
    >>> import rooflab as rl
    >>> import numpy as np
    >>> array = np.zeros(2)
    >>> rl.from_numpy(array).fill_(1).tolist() == array.tolist()
    True
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"[from_numpy] array: expected a NumPy array, got {type(array).__name__}")
    if not array.flags.writeable:
        raise ValueError(
            "[from_numpy] array: expected one that can be written to; write rl.tensor(array), which copies"
        )
    if array.dtype not in _SHARED:
        raise ValueError(
            f"[from_numpy] array: expected one of {', '.join(map(str, _SHARED))}, got {array.dtype}; write "
            "rl.tensor(array), or rl.tensor(array.astype(...)), which copy"
        )
    return _core.from_dlpack(array)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The tensor itself, or one that shares an array's memory, where dtype and device allow it; else a copy.

    An array that cannot be written to is copied.

    Parameters
    ----------
    data : Tensor, ndarray, number or nested lists
        As for `rl.tensor`.
    dtype, device : optional
        By default those of data.

    Returns
    -------
    Tensor
        Perhaps data itself.

    Raises
    ------
    ValueError
        As `rl.tensor`.
    TypeError
        As `rl.tensor`.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2)
    >>> rl.as_tensor(x) is x, rl.as_tensor([1, 2]).tolist()
    (True, [1, 2])
    """
    if isinstance(data, Tensor):
        is_same = (dtype is None or data.dtype == dtype) and (device is None or data.device == device)
        return data if is_same else data.to(dtype=dtype, device=device)
    if (
        isinstance(data, np.ndarray)
        and data.flags.writeable
        and data.dtype in _SHARED
        and (dtype is None or _core.empty(0, dtype=dtype).dtype == data.dtype)
        and device in (None, "cpu")
    ):
        return from_numpy(data)
    return _core.tensor(data, dtype=dtype, device=device)


@in_words
def is_tensor(x: object) -> bool:
    """Whether x is a tensor.

    Parameters
    ----------
    x : object
        Anything.

    Returns
    -------
    bool
        True for rooflab's tensors only.

    Raises
    ------
    Nothing
        Never.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.is_tensor(rl.ones(1)), rl.is_tensor(3)
    (True, False)
    """
    return isinstance(x, Tensor)


def finfo(dtype: Any = "float32") -> SimpleNamespace:
    """The limits of a floating dtype.

    Parameters
    ----------
    dtype : dtype or str
        Floating.

    Returns
    -------
    namespace
        With max, min, eps, tiny, smallest_normal, resolution, bits, dtype.

    Raises
    ------
    ValueError
        For another dtype.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.finfo("float16").max
    65504.0
    """
    given = _core.empty(0, dtype=dtype).dtype
    if not given.is_floating_point:
        raise ValueError(f"[finfo] dtype: expected a floating one, got {given}")
    limits = ml_dtypes.finfo(str(given))
    numbers = {name: float(getattr(limits, name)) for name in _FLOATS}
    return SimpleNamespace(bits=limits.bits, dtype=str(limits.dtype), **numbers)


def iinfo(dtype: Any = "int64") -> np.iinfo:
    """The limits of an integer dtype, as NumPy gives them.

    Parameters
    ----------
    dtype : dtype or str
        int64 or int32.

    Returns
    -------
    iinfo
        With max, min, bits.

    Raises
    ------
    ValueError
        For another dtype.

    Examples
    --------
    >>> import rooflab as rl
    >>> int(rl.iinfo("int32").max)
    2147483647
    """
    given = _core.empty(0, dtype=dtype).dtype
    if given.is_floating_point or given == _core.bool_:
        raise ValueError(f"[iinfo] dtype: expected int64 or int32, got {given}")
    return np.iinfo(str(given))
