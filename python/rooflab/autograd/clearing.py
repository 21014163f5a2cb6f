"""Gradients that are written to between two steps of training."""

from __future__ import annotations

from collections.abc import Iterable

from .._core import Tensor, _kinds, _overlaps_itself, zeros_like

__all__ = ["clear_gradients", "grouped", "writable_gradient"]


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
        elif _overlaps_itself(grad):
            tensor.grad = zeros_like(grad)
        else:
            grad.zero_()


def writable_gradient(tensor: Tensor) -> Tensor:
    """The gradient of a tensor that has one; a copy takes its place first where elements of it share memory.

    Parameters
    ----------
    tensor : Tensor
        With a gradient.

    Returns
    -------
    Tensor
        ``tensor.grad``.

    Raises
    ------
    ValueError
        When there is no gradient.

    Examples
    --------
    >>> import rooflab as rl
    >>> w = rl.ones(2, requires_grad=True)
    >>> w.grad = rl.ones(1).expand(2)
    >>> writable_gradient(w).mul_(3).tolist(), w.grad.tolist()
    ([3.0, 3.0], [3.0, 3.0])
    """
    grad = tensor.grad
    if grad is None:
        raise ValueError("[writable_gradient] the tensor has no gradient")
    if _overlaps_itself(grad):
        tensor.grad = grad = grad.contiguous()
    return grad


def grouped(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Tensors by dtype and device, as ops of several tensors take them.

    Examples
    --------
    >>> import rooflab as rl
    >>> [len(alike) for alike in grouped([rl.ones(1), rl.ones(2, dtype="float64"), rl.ones(3)])]
    [2, 1]
    """
    given = list(tensors)
    groups: dict[int, list[Tensor]] = {}
    for tensor, kind in zip(given, _kinds(given), strict=True):
        groups.setdefault(kind, []).append(tensor)
    return list(groups.values())
