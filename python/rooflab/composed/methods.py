"""Methods of a tensor under PyTorch's names that are composed of others."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from .._handles import Handle
from .._method_docs import as_method, like
from . import alike, elementwise, places, products, random, rounding, shapes, statistics, views
from ._arguments import checked
from .ufuncs import array_ufunc

__all__: list[str] = []

_SHARED = {  # functions that are methods too
    elementwise: "exp2 logical_and logical_not logical_or logical_xor reciprocal square",
    places: "diag index_add masked_select scatter trace unique",
    products: "addmm bmm dot mm mv outer",
    random: "bernoulli multinomial",
    rounding: "nan_to_num round sign",
    shapes: "flip repeat roll tile",
    statistics: "bincount count_nonzero equal logsumexp median prod",
    views: "broadcast_to movedim narrow ravel select swapaxes t unbind",
}


def add(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """self + alpha other, elementwise; shapes broadcast. One launch, and one more for another `alpha` than 1.

    Parameters
    ----------
    other : Tensor or number
        Of a shape that broadcasts with this one's.
    alpha : float
        What `other` is multiplied by first.

    Returns
    -------
    Tensor
        Of the shape that both broadcast to, and of their common dtype.

    Raises
    ------
    ValueError
        For shapes that do not broadcast, and a number that the dtype cannot hold.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1.0, 6.0]).add(rl.tensor([4.0, 2.0]), alpha=2).tolist()
    [9.0, 10.0]
    """
    return self + (other if alpha == 1 else other * alpha)


def sub(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """self - alpha other, elementwise; shapes broadcast. One launch, and one more for another `alpha` than 1.

    Parameters
    ----------
    other : Tensor or number
        Of a shape that broadcasts with this one's.
    alpha : float
        What `other` is multiplied by first.

    Returns
    -------
    Tensor
        Of the shape that both broadcast to, and of their common dtype.

    Raises
    ------
    ValueError
        For shapes that do not broadcast, and a number that the dtype cannot hold.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.tensor([1.0, 6.0]).sub(rl.tensor([4.0, 2.0]), alpha=2).tolist()
    [-7.0, 2.0]
    """
    return self - (other if alpha == 1 else other * alpha)


@like(_core.mul, b="other")
def mul(self: Tensor, other: Any) -> Tensor:
    return self * other


@like(_core.div, b="other")
def div(self: Tensor, other: Any) -> Tensor:
    return self / other


@like(_core.pow, b="exponent")
def pow(self: Tensor, exponent: Any) -> Tensor:
    return self**exponent


@like(_core.remainder, b="other")
def remainder(self: Tensor, other: Any) -> Tensor:
    return self % other


@like(_core.floor_divide, b="other")
def floor_divide(self: Tensor, other: Any) -> Tensor:
    return self // other


@like(_core.eq, b="other")
def eq(self: Tensor, other: Any) -> Tensor:
    return operator.eq(self, other)


@like(_core.ne, b="other")
def ne(self: Tensor, other: Any) -> Tensor:
    return operator.ne(self, other)


@like(_core.lt, b="other")
def lt(self: Tensor, other: Any) -> Tensor:
    return self < other


@like(_core.le, b="other")
def le(self: Tensor, other: Any) -> Tensor:
    return self <= other


@like(_core.gt, b="other")
def gt(self: Tensor, other: Any) -> Tensor:
    return self > other


@like(_core.ge, b="other")
def ge(self: Tensor, other: Any) -> Tensor:
    return self >= other


@like(_core.maximum, b="other")
def maximum(self: Tensor, other: Any) -> Tensor:
    return _core.maximum(self, other)


@like(_core.minimum, b="other")
def minimum(self: Tensor, other: Any) -> Tensor:
    return _core.minimum(self, other)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """self where the condition holds, else other; shapes broadcast. One launch.

    Parameters
    ----------
    condition : Tensor
        bool.
    other : Tensor or number
        Of a shape that broadcasts with the others.

    Returns
    -------
    Tensor
        Of the shape that all three broadcast to, and of the common dtype of both tensors.

    Raises
    ------
    ValueError
        For a condition that is not bool, and shapes that do not broadcast.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ones(2).where(rl.tensor([True, False]), 0.0).tolist()
    [1.0, 0.0]
    """
    return _core.where(condition, self, other)


@like(_core.allclose, b="other", rtol="rtol", atol="atol", equal_nan="equal_nan")
def allclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return _core.allclose(self, other, rtol, atol, equal_nan)


@like(_core.isclose, b="other", rtol="rtol", atol="atol", equal_nan="equal_nan")
def isclose(self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    return _core.isclose(self, other, rtol, atol, equal_nan)


@like(_core.clamp, min="min", max="max")
def clip(self: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    return self.clamp(min, max)


def is_floating_point(self: Tensor) -> bool:
    """Whether the dtype is floating.

    Returns
    -------
    bool
        True for float64, float32, float16 and bfloat16.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ones(2).is_floating_point(), rl.tensor([1, 2]).is_floating_point()
    (True, False)
    """
    return self.dtype.is_floating_point


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Let `backward` call ``hook(gradient)`` with the whole gradient of this tensor, before it goes on.

    Parameters
    ----------
    hook : callable
        What it returns, unless None, takes the gradient's place. Return a new tensor: other gradients may have the
        memory of the one that it gets.

    Returns
    -------
    Handle
        Its `remove()` takes the hook away.

    Raises
    ------
    ValueError
        When the tensor does not require grad. In backward, for a hook that writes into a gradient whose memory others
        use too.
    TypeError
        For a hook that cannot be called.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda gradient: gradient * 10)
    >>> x.sum().backward()
    >>> x.grad.tolist()
    [10.0, 10.0]
    """
    if not callable(hook):
        raise TypeError(f"[register_hook] hook: expected a callable, got {type(hook).__name__}")
    number = _core._autograd.add_hook(self, hook)
    return Handle(partial(_core._autograd.remove_hook, self, number))


def _data(self: Tensor) -> Tensor:
    """The same memory, outside of any graph.

    It can be set: that gives a leaf other values, of any shape, dtype or device, in its own Python object.

    Returns
    -------
    Tensor
        A view that does not require grad.

    Raises
    ------
    ValueError
        When it is set on a result of a recorded op, or to integers where the tensor requires grad.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> x.data = rl.zeros(3)
    >>> x
    tensor([0., 0., 0.], requires_grad=True)
    """
    return self.detach()


def _set_data(self: Tensor, value: Tensor) -> None:
    _core._autograd.set_data(self, value)


def _is_cuda(self: Tensor) -> bool:
    """Whether it lies on a GPU.

    Returns
    -------
    bool
        False on "meta", where there is no memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ones(2).is_cuda
    False
    """
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
        isclose, clip, is_floating_point, register_hook, *(getattr(alike, name) for name in alike.__all__),
    )  # fmt: skip
    for function in own:
        setattr(Tensor, function.__name__, checked(function))
    for module, names in _SHARED.items():
        for name in names.split():
            setattr(Tensor, name, as_method(getattr(module, name)))
    own_properties = {"data": (_data, _set_data), "is_cuda": (_is_cuda, None)}
    for name, (getter, setter) in own_properties.items():
        setattr(Tensor, name, property(getter, setter, doc=getter.__doc__))
    Tensor.__array_ufunc__ = array_ufunc  # type: ignore[assignment,method-assign]
