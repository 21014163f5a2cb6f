"""Small networks of Lab 5: what a training step holds, what launches, and a block to recompute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import rooflab as rl
from rooflab.results import ReadableMixin

__all__ = ["Held", "mlp_counts", "mlp_runner", "noisy_block", "training_step"]

VOCABULARY = 50


@dataclass(frozen=True)
class Held(ReadableMixin):
    """What one step of Adam held, counted by `rl.memory`.

    Attributes
    ----------
    parameters, buffers : int
        Numbers that are trained, and numbers that are not; all in fp32.
    start : int
        Bytes when the forward pass begins.
    activations : int
        Bytes that the forward pass left for the backward pass.
    peak : int
        The most that was held, in bytes.
    end : int
        Bytes when the backward pass has ended.
    """

    parameters: int
    buffers: int
    start: int
    activations: int
    peak: int
    end: int


def training_step(width: int, layers: int, B: int, L: int) -> Held:
    """Count the second step of Adam on x + relu(x W), `layers` times, between an embedding with positions and a head.

    Examples
    --------
    >>> held = training_step(16, 2, 3, 8)
    >>> held.parameters == 50 * 16 + 2 * 16**2 + 16 * 50, held.buffers == 8 * 16, held.start < held.end < held.peak
    (True, True, True)
    """
    before = rl.memory.allocated("cpu")
    rng = np.random.default_rng(0)

    def normal(*shape: int, trained: bool = True) -> rl.Tensor:
        return rl.tensor(0.1 * rng.standard_normal(shape), dtype="float32", requires_grad=trained)

    weights = [normal(VOCABULARY, width), *(normal(width, width) for _ in range(layers)), normal(width, VOCABULARY)]
    positions = normal(L, width, trained=False)
    tokens, targets = (rl.tensor(rng.integers(VOCABULARY, size=(B, L))) for _ in range(2))
    optimizer = rl.optim.AdamW(weights)

    def loss() -> rl.Tensor:
        x = rl.embedding(tokens, weights[0]) + positions
        for weight in weights[1:-1]:
            x = x + rl.relu(x @ weight)
        return rl.cross_entropy((x @ weights[-1]).reshape(B * L, -1), targets.reshape(-1))

    loss().backward()
    optimizer.step()
    optimizer.zero_grad()
    start = rl.memory.allocated("cpu") - before
    rl.memory.reset_peak("cpu")
    value = loss()
    activations = rl.memory.allocated("cpu") - before - start
    value.backward()
    del value
    end, peak = (read("cpu") - before for read in (rl.memory.allocated, rl.memory.peak))
    parameters = sum(weight.numel() for weight in weights)
    return Held(parameters, positions.numel(), start, activations, peak, end)


def _mlp(x: rl.Tensor, weights: list[rl.Tensor], steps: int) -> None:
    for _ in range(steps):
        h = x
        for weight in weights:
            h = rl.gelu(h @ weight)
        h.mean().backward()
        for weight in weights:
            weight.grad = None


def mlp_runner(dim: int, layers: int, batch: int, steps: int, device: str) -> Callable[[], None]:
    """Make random weights (dim, dim) and data once, and return a function that runs the network on them.

    It runs `steps` times forward and backward through `layers` of x W and GeLU. The loss is the mean of the result, and
    the data needs no gradient. The weights are small, so that no layer's results are larger than the ones before: the
    gradient of GeLU would be subnormal there, and many CPUs compute with such numbers 50 times slower.

    Examples
    --------
    >>> run = mlp_runner(4, 2, 3, 1, "cpu")
    >>> with rl.count() as c:
    ...     run()
    >>> c.macs == 3 * 4 * 4 * (3 * 2 - 1)
    True
    """
    weights = [(rl.randn(dim, dim, device=device) * dim**-0.5).requires_grad_() for _ in range(layers)]
    return partial(_mlp, rl.randn(batch, dim, device=device), weights, steps)


def mlp_counts(dim: int, layers: int, batch: int, steps: int) -> rl.count:
    """Count what `mlp_runner` returns, on tensors without memory.

    Examples
    --------
    >>> mlp_counts(8, 2, 3, 2).launches == 2 * mlp_counts(8, 2, 3, 1).launches
    True
    """
    x = rl.empty(batch, dim, device="meta")
    weights = [rl.empty(dim, dim, device="meta").requires_grad_() for _ in range(layers)]
    with rl.count() as counters:
        _mlp(x, weights, steps)
    return counters


def noisy_block(x: rl.Tensor, W1: rl.Tensor, W2: rl.Tensor) -> rl.Tensor:
    """x + relu(x W1 + noise) W2 of x (B, D), W1 (D, I) and W2 (I, D).

    The noise, between 0 and 1, is drawn again in each call, from the generator that `rl.manual_seed` sets.

    Examples
    --------
    >>> noisy_block(rl.ones(3, 4), rl.ones(4, 8), rl.ones(8, 4)).shape
    (3, 4)
    """
    before = x @ W1
    return x + rl.relu(before + rl.rand(*before.shape, device=before.device)) @ W2
