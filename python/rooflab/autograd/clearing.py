"""Clearing gradients between two steps of training."""

from __future__ import annotations

from collections.abc import Iterable

from .._core import Tensor, zeros_like

__all__ = ["clear_gradients"]


def clear_gradients(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Drop the gradients of tensors, or fill them with zeros, in the memory that a captured graph may write to.

    Examples
    --------
    >>> import rooflab as rl
    >>> w = rl.ones(2, requires_grad=True)
    >>> w.sum().backward()
    >>> grad = w.grad
    >>> clear_gradients([w], set_to_none=False)
    >>> grad.tolist()
    [0.0, 0.0]
    """
    for tensor in tensors:
        grad = tensor.grad
        if grad is None:
            continue
        if set_to_none:
            tensor.grad = None
        elif any(stride == 0 and size > 1 for stride, size in zip(grad.stride(), grad.shape, strict=True)):
            tensor.grad = zeros_like(grad)  # its elements share memory; backward replaces such a gradient too
        else:
            grad.zero_()
