"""One training step of a small model in Lab 5, and the bytes that are held in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import rooflab as rl

__all__ = ["Held", "training_step"]

VOCABULARY = 50


@dataclass(frozen=True)
class Held:
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
    """The second step of Adam on x + relu(x W), `layers` times, between an embedding with positions and a head.

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
