"""A language model that computes nothing, and whose passes take known times on a `FakeDevice`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..autograd import Function
from ..nn.module import Module
from .stand_ins import sealed

if TYPE_CHECKING:
    from .fake_device import FakeDevice

__all__ = ["FakeModel", "LowPrecision"]


class FakeModel(Module):
    """Token ids (B, L) to logits (B, L, V), all zero; the forward pass and the backward pass launch work on `device`.

    Parameters
    ----------
    device : FakeDevice
        Where it runs.
    forward_ms, backward_ms : float
        How long its passes take.
    host_ms : float
        How long the host takes to launch a pass.
    slow_ms : sequence of float
        What the first forward passes take instead.
    vocab_size : int
        V.
    out_of_memory : bool
        Whether a forward pass fails for want of memory.

    Examples
    --------
    >>> import rooflab as rl
    >>> from rooflab.benchmark.fake_device import FakeDevice
    >>> device = FakeDevice()
    >>> model = FakeModel(device, forward_ms=10.0, backward_ms=20.0)
    >>> model(rl.zeros(2, 3, dtype="int64")).sum().backward()
    >>> [(entry.label, entry.work_ms) for entry in device.log]
    [('forward', 10.0), ('backward', 20.0)]
    """

    def __init__(
        self,
        device: FakeDevice,
        forward_ms: float,
        backward_ms: float,
        host_ms: float = 0.0,
        slow_ms: Sequence[float] = (),
        vocab_size: int = 8,
        out_of_memory: bool = False,
        low: LowPrecision | None = None,
    ) -> None:
        factor = low.factor if low else lambda: 1.0
        slow, launch = list(slow_ms), device.launch

        def forward() -> float:
            """Launch a forward pass; returns how much shorter its backward pass will be."""
            if out_of_memory:
                raise _core.OutOfMemoryError("[forward] the fake device has no memory left")
            scale = factor()
            launch(scale * (slow.pop(0) if slow else forward_ms), host_ms, "forward")
            return scale

        self._passes = sealed(forward, 0), sealed(lambda s: launch(s * backward_ms, host_ms, "backward"), 1)
        self._vocab_size = vocab_size
        self.weight = _core.zeros(vocab_size, requires_grad=True)

    def forward(self, input_ids: _core.Tensor) -> _core.Tensor:
        """Logits (B, L, V) of ids (B, L)."""
        if len(input_ids.shape) != 2:
            raise ValueError(f"[FakeModel] input_ids: expected (B, L), got {tuple(input_ids.shape)}")
        return _Pass.apply(self.weight, (*input_ids.shape, self._vocab_size), *self._passes)


class LowPrecision:
    """A context in which the passes of a `FakeModel` take `factor` of their time, as under autocast. It can be entered
    again and again.

    Examples
    --------
    >>> import rooflab as rl
    >>> from rooflab.benchmark.fake_device import FakeDevice
    >>> device, low = FakeDevice(), LowPrecision(0.5)
    >>> model = FakeModel(device, forward_ms=10.0, backward_ms=20.0, low=low)
    >>> with low:
    ...     logits = model(rl.zeros(1, 1, dtype="int64"))
    >>> device.log[0].work_ms
    5.0
    """

    def __init__(self, factor: float) -> None:
        depth = 0

        def move(step: int) -> float:
            nonlocal depth
            depth += step
            return factor if depth else 1.0

        self._move = sealed(move, 1)

    def factor(self) -> float:
        """What a pass that starts now takes of its time."""
        return self._move(0)

    def __enter__(self) -> LowPrecision:
        self._move(1)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._move(-1)


class _Pass(Function):
    @staticmethod
    def forward(ctx: Any, weight: _core.Tensor, shape: tuple, forward: Callable, backward: Callable) -> Any:
        ctx.back = backward, forward()
        return _core.zeros(*shape) + weight

    @staticmethod
    def backward(ctx: Any, gradient: _core.Tensor) -> tuple:
        launch, scale = ctx.back
        launch(scale)
        return gradient.sum((0, 1)), None, None, None
