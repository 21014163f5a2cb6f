"""NumPy's functions of a tensor: np.exp(x)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from . import elementwise, rounding
from .conversions import as_tensor

__all__ = ["array_ufunc"]

# What rooflab computes itself, so that it is counted, has a gradient and runs on any device.
_OF_FLOATS: dict[Any, Callable] = {  # NumPy gives other dtypes for integers
    np.exp: _core.exp, np.log: _core.log, np.sqrt: _core.sqrt, np.sin: _core.sin, np.cos: _core.cos,
    np.tanh: _core.tanh, np.exp2: elementwise.exp2, np.log2: _core.log2, np.log10: _core.log10,
    np.reciprocal: elementwise.reciprocal, np.floor: _core.floor, np.ceil: _core.ceil, np.trunc: _core.trunc,
    np.rint: rounding.round, np.fabs: _core.abs,
}  # fmt: skip
_OF_NUMBERS: dict[Any, Callable] = {  # and of integers
    np.absolute: _core.abs, np.negative: _core.neg, np.square: elementwise.square, np.positive: _core.Tensor.clone,
}  # fmt: skip
_OF_ALL: dict[Any, Callable] = {  # and of bool
    np.maximum: _core.maximum, np.minimum: _core.minimum, np.logical_and: elementwise.logical_and,
    np.logical_or: elementwise.logical_or, np.logical_xor: elementwise.logical_xor,
    np.logical_not: elementwise.logical_not, np.isnan: _core.isnan, np.isinf: _core.isinf,
    np.isfinite: _core.isfinite, np.invert: operator.invert,
}  # fmt: skip
_OPERATORS: dict[Any, str] = {  # the methods for tensor + array, and array + tensor
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.true_divide: "truediv", np.power: "pow",
    np.floor_divide: "floordiv", np.remainder: "mod", np.matmul: "matmul", np.bitwise_and: "and",
    np.bitwise_or: "or", np.bitwise_xor: "xor",
}  # fmt: skip
_COMPARISONS: dict[Any, tuple[str, str]] = {
    np.equal: ("eq", "eq"), np.not_equal: ("ne", "ne"), np.less: ("lt", "gt"), np.less_equal: ("le", "ge"),
    np.greater: ("gt", "lt"), np.greater_equal: ("ge", "le"),
}  # fmt: skip


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """What NumPy calls for its function of a tensor, and for `array + x`.

    Operators are rooflab's, and so are functions that rooflab has, where they give the same dtype as NumPy's: counted,
    with gradients, on any device. NumPy computes the others from tensors on the CPU, which is not counted; the result
    is a tensor too.

    Parameters
    ----------
    ufunc, method, inputs, kwargs
        As NumPy's protocol has them.

    Returns
    -------
    Tensor or tuple of Tensor
        The result.

    Raises
    ------
    TypeError
        For methods such as ``np.add.reduce``, and for ``out=`` and ``where=``.
    ValueError
        For tensors that NumPy cannot read: on other devices, or in a graph.

    Examples
    --------
    >>> import numpy as np, rooflab as rl
    >>> np.exp(rl.zeros(2)), np.arctan(rl.zeros(1))
    (tensor([1., 1.]), tensor([0.]))
    """
    if method != "__call__" or kwargs:
        what = f"np.{ufunc.__name__}.{method}" if method != "__call__" else f"np.{ufunc.__name__}({', '.join(kwargs)}=)"
        raise TypeError(f"[numpy] {what} takes no tensors; write x.numpy(), or the function of rooflab")
    if len(inputs) == 2 and (ufunc in _OPERATORS or ufunc in _COMPARISONS):
        ours, swapped = _COMPARISONS.get(ufunc) or (_OPERATORS[ufunc], f"r{_OPERATORS[ufunc]}")
        a, b = inputs
        return getattr(a, f"__{ours}__")(b) if isinstance(a, Tensor) else getattr(b, f"__{swapped}__")(a)
    function = _ours(ufunc, self)
    if function is not None:
        return function(*(x if isinstance(x, Tensor) else as_tensor(x, device=self.device) for x in inputs))
    found = ufunc(*(x.numpy() if isinstance(x, Tensor) else x for x in inputs))
    return tuple(map(_core.tensor, found)) if isinstance(found, tuple) else _core.tensor(found)


def _ours(ufunc: np.ufunc, x: Tensor) -> Callable | None:
    """The function of rooflab for a function of NumPy, of tensors of x's dtype."""
    if x.dtype.is_floating_point and ufunc in _OF_FLOATS:
        return _OF_FLOATS[ufunc]
    if x.dtype != _core.bool_ and ufunc in _OF_NUMBERS:
        return _OF_NUMBERS[ufunc]
    return _OF_ALL.get(ufunc)
