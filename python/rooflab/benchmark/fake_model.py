"""A language model that computes nothing, and whose passes take known times on a `FakeDevice`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from ..autograd import Function
from ..nn.module import Module

__all__ = ["FakeModel"]


class FakeModel(Module):
    """Token ids (B, L) to logits (B, L, V), all zero. Its passes only call the functions that it is given.

    Parameters
    ----------
    forward : callable
        Launches a forward pass. Returns a number that stands for the pass, or None if the device has no memory left.
    backward : callable
        Launches the backward pass of the forward pass with this number.
    vocab_size : int
        V.
    kept : callable, optional
        Called before a backward pass whose gradients are added to those of an earlier one.

    Examples
    --------
    >>> import rooflab as rl
    >>> passes = []
    >>> model = FakeModel(lambda: passes.append("forward") or 7, passes.append)
    >>> model(rl.zeros(2, 3, dtype="int64")).sum().backward()
    >>> passes
    ['forward', 7]
    """

    def __init__(
        self,
        forward: Callable[[], int | None],
        backward: Callable[[int], object],
        vocab_size: int = 8,
        kept: Callable[[], object] = lambda: None,
    ) -> None:
        self._forward, self._backward, self._kept, self._vocab_size = forward, backward, kept, vocab_size
        self.weight = _core.zeros(vocab_size, requires_grad=True)

    def forward(self, input_ids: _core.Tensor) -> _core.Tensor:
        """Logits (B, L, V) of ids (B, L)."""
        if len(input_ids.shape) != 2:
            raise ValueError(f"[FakeModel] input_ids: expected (B, L), got {tuple(input_ids.shape)}")
        return _Pass.apply(self.weight, (*input_ids.shape, self._vocab_size), self._forward, self._go_back)

    def _go_back(self, number: int) -> None:
        if self.weight.grad is not None and any(self.weight.grad.tolist()):
            self._kept()
        self._backward(number)


class _Pass(Function):
    @staticmethod
    def forward(ctx: Any, weight: _core.Tensor, shape: tuple, forward: Callable, backward: Callable) -> Any:
        number = forward()
        if number is None:
            raise _core.OutOfMemoryError("[forward] the fake device has no memory left")
        ctx.back = backward, number
        return _core.zeros(*shape) + weight

    @staticmethod
    def backward(ctx: Any, gradient: _core.Tensor) -> tuple:
        backward, number = ctx.back
        backward(number)
        return gradient.sum((0, 1)), None, None, None
