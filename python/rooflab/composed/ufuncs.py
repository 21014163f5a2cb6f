"""NumPy's functions of a tensor: np.exp(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor

__all__ = ["array_ufunc"]

_OPS: dict[Any, str] = {  # what rooflab computes itself, so that it is counted and has a gradient
    np.exp: "exp", np.log: "log", np.sqrt: "sqrt", np.sin: "sin", np.cos: "cos", np.tanh: "tanh",
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

    Operators, and functions that rooflab has, are rooflab's: counted, with gradients, on any device. NumPy computes the
    others from tensors on the CPU, which is not counted; the result is a tensor too.

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
    if ufunc in _OPS and self.dtype.is_floating_point:
        return getattr(_core, _OPS[ufunc])(self)
    found = ufunc(*(x.numpy() if isinstance(x, Tensor) else x for x in inputs))
    return tuple(map(_core.tensor, found)) if isinstance(found, tuple) else _core.tensor(found)
