"""Methods of a tensor under PyTorch's names that are composed of others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from .._handles import Handle
from . import elementwise, places, products, random, rounding, shapes, statistics, views
from ._arguments import checked
from .ufuncs import array_ufunc

__all__: list[str] = []

_SHARED = {  # functions that are methods too
    elementwise: "exp2 lerp log10 log2 logical_and logical_not logical_or logical_xor reciprocal square",
    places: "diag index_add masked_select nonzero scatter trace unique",
    products: "addmm bmm dot mm mv outer",
    random: "bernoulli multinomial",
    rounding: "ceil floor nan_to_num round sign trunc",
    shapes: "flip repeat roll tile",
    statistics: "bincount count_nonzero equal logsumexp median prod",
    views: "broadcast_to movedim narrow ravel select swapaxes t unbind",
}


def add(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """self + alpha other."""
    return self + (other if alpha == 1 else other * alpha)


def sub(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """self - alpha other."""
    return self - (other if alpha == 1 else other * alpha)


def mul(self: Tensor, other: Any) -> Tensor:
    """self * other."""
    return self * other


def div(self: Tensor, other: Any) -> Tensor:
    """self / other."""
    return self / other


def pow(self: Tensor, exponent: Any) -> Tensor:
    """self ** exponent."""
    return self**exponent


def remainder(self: Tensor, other: Any) -> Tensor:
    """self % other."""
    return self % other


def floor_divide(self: Tensor, other: Any) -> Tensor:
    """self // other."""
    return self // other


def eq(self: Tensor, other: Any) -> Tensor:
    """self == other."""
    return operator.eq(self, other)


def ne(self: Tensor, other: Any) -> Tensor:
    """self != other."""
    return operator.ne(self, other)


def lt(self: Tensor, other: Any) -> Tensor:
    """self < other."""
    return self < other


def le(self: Tensor, other: Any) -> Tensor:
    """self <= other."""
    return self <= other


def gt(self: Tensor, other: Any) -> Tensor:
    """self > other."""
    return self > other


def ge(self: Tensor, other: Any) -> Tensor:
    """self >= other."""
    return self >= other


def maximum(self: Tensor, other: Any) -> Tensor:
    """`rl.maximum`."""
    return _core.maximum(self, other)


def minimum(self: Tensor, other: Any) -> Tensor:
    """`rl.minimum`."""
    return _core.minimum(self, other)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """self where the condition holds, else other."""
    return _core.where(condition, self, other)


def allclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """`rl.allclose`."""
    return _core.allclose(self, other, rtol, atol, equal_nan)


def isclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """`rl.isclose`."""
    return _core.isclose(self, other, rtol, atol, equal_nan)


def clip(self: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """`clamp`."""
    return self.clamp(min, max)


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with the shape of another tensor."""
    return self.view(*other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor."""
    return self.reshape(*other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor."""
    return self.expand(*other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """In the dtype of another tensor, and on its device."""
    return self.to(other)


def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is floating."""
    return self.dtype.is_floating_point


def new_zeros(self: Tensor, *size: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of another size, by default of this dtype and on this device."""
    return _core.zeros(*size, **_where(self, dtype, device))


def new_ones(self: Tensor, *size: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of another size, by default of this dtype and on this device."""
    return _core.ones(*size, **_where(self, dtype, device))


def new_empty(self: Tensor, *size: int | Sequence[int], dtype: Any = None, device: Any = None) -> Tensor:
    """Elements that are not set, by default of this dtype and on this device."""
    return _core.empty(*size, **_where(self, dtype, device))


def new_full(self: Tensor, size: Sequence[int], fill_value: float, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere, by default of this dtype and on this device."""
    return _core.full(tuple(size), fill_value, **_where(self, dtype, device))


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`rl.tensor` of data, by default of this dtype and on this device."""
    return _core.tensor(data, **_where(self, dtype, device))


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Let backward call ``hook(gradient)`` with the whole gradient of this tensor, before it goes on.

    What the hook returns, unless None, takes the gradient's place. Returns a handle with ``remove()``. ValueError when
    the tensor does not require grad, TypeError for a hook that cannot be called.
    """
    if not callable(hook):
        raise TypeError(f"[register_hook] hook: expected a callable, got {type(hook).__name__}")
    number = _core._autograd.add_hook(self, hook)
    return Handle(partial(_core._autograd.remove_hook, self, number))


def _where(x: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def _data(self: Tensor) -> Tensor:
    """The same memory outside of any graph. Setting it gives a leaf other values, of any shape, dtype or device."""
    return self.detach()


def _set_data(self: Tensor, value: Tensor) -> None:
    _core._autograd.set_data(self, value)


def _is_cuda(self: Tensor) -> bool:
    """Whether it lies on a GPU."""
    return self.device.type == "cuda"


def attach() -> None:
    """Give these methods to the class of tensors; rooflab does so when it is imported.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1.5]).floor().add(1).tolist()
    [2.0]
    """
    own = (
        add, sub, mul, div, pow, remainder, floor_divide, eq, ne, lt, le, gt, ge, maximum, minimum, where, allclose,
        isclose, clip, view_as, reshape_as, expand_as, type_as, is_floating_point, new_zeros, new_ones, new_empty,
        new_full, new_tensor, register_hook,
    )  # fmt: skip
    for function in own:
        setattr(Tensor, function.__name__, checked(function))
    for module, names in _SHARED.items():
        for name in names.split():
            setattr(Tensor, name, getattr(module, name))
    own_properties = {"data": (_data, _set_data), "is_cuda": (_is_cuda, None)}
    for name, (getter, setter) in own_properties.items():
        setattr(Tensor, name, property(getter, setter, doc=getter.__doc__))
    Tensor.__array_ufunc__ = array_ufunc  # type: ignore[assignment,method-assign]
