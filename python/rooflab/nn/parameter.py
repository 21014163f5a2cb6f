"""Which tensors are parameters of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core import Tensor, _autograd, empty

__all__ = ["Parameter"]


def is_parameter(value: object) -> bool:
    """Whether a module that gets `value` as an attribute treats it as a parameter.

    Parameters
    ----------
    value : object
        Of any type.

    Returns
    -------
    bool
        True for what `Parameter` made, for each leaf that requires grad, and for one that a module had as a parameter
        before it was frozen.

    Examples
    --------
    >>> import rooflab as rl
    >>> is_parameter(rl.ones(2, requires_grad=True)), is_parameter(rl.ones(2))
    (True, False)
    """
    if not isinstance(value, Tensor):
        return False
    return (value.requires_grad and value.is_leaf) or _autograd.is_marked(value)


def mark(tensor: Tensor) -> None:
    """Make a tensor a parameter for good: it stays one when it is frozen, and so do its copies.

    Parameters
    ----------
    tensor : Tensor
        Of any kind.

    Examples
    --------
    >>> import rooflab as rl
    >>> frozen = rl.ones(2)
    >>> mark(frozen)
    >>> is_parameter(frozen)
    True
    """
    _autograd.mark_parameter(tensor)


class _OfTensors(type):
    def __instancecheck__(cls, value: object) -> bool:
        return is_parameter(value)

    def __call__(cls, data: Any = None, requires_grad: bool = True) -> Tensor:
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"[Parameter] data: expected a tensor, got {type(data).__name__}")
        made = (empty(0) if data is None else data).detach()
        made.requires_grad = requires_grad
        mark(made)
        return made


if TYPE_CHECKING:

    class Parameter(Tensor):
        def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None: ...

else:

    class Parameter(metaclass=_OfTensors):
        """A tensor that a module counts among its parameters.

        It is an ordinary tensor. A module takes every leaf that requires grad for a parameter, so this is needed only
        for a parameter without gradient, and for code that is written for PyTorch.

        Parameters
        ----------
        data : Tensor, optional
            Whose memory it shares; by default a tensor without elements.
        requires_grad : bool
            Whether it gets a gradient.

        Returns
        -------
        Tensor
            ``isinstance(x, Parameter)`` is true of it, and of each leaf that requires grad.

        Raises
        ------
        TypeError
            For data that is not a tensor.
        ValueError
            For integers that shall require grad.

        Examples
        --------
        >>> from rooflab.nn import Parameter
        >>> import rooflab as rl
        >>> Parameter(rl.ones(2)), isinstance(Parameter(rl.ones(2), requires_grad=False), Parameter)
        (tensor([1., 1.], requires_grad=True), True)
        """
