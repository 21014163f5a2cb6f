"""Memory in Lab 2: how a student's function is called where it is measured, and what its counts say.

`run_timeline`, `run_phase` and the `run_blocks` call a student's function; `measure` gets them as `through`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import rooflab as rl

__all__ = [
    "block_weights", "held_in", "run_blocks", "run_blocks_back", "run_blocks_twice", "run_phase", "run_plainly",
    "run_timeline",
]  # fmt: skip


def run_timeline(
    profile_memory: Callable[..., Any],
    mode: str,
    warmup_steps: int,
    optimizer: bool,
    sizes: Mapping[str, int],
    low: str | None = None,
) -> None:
    """Record a step with `profile_memory`, for a model on tensors without memory, perhaps under autocast to `low`. A
    first recording tells what is held without that model.
    """
    with rl.memory.record("meta"):
        pass
    length = sizes["length"]
    own: dict[str, Any] = {name: sizes[name] for name in ("d_model", "d_ff", "num_layers", "num_heads")}
    config = rl.nn.TransformerConfig(**own, vocab_size=100, context_length=length)
    model, ids = rl.nn.TransformerLM(config, device="meta"), rl.empty(2, length, dtype="int64", device="meta")
    update = rl.optim.AdamW(model.parameters(), lr=1e-3) if optimizer and mode == "step" else None
    timeline = profile_memory(model, ids, mode, warmup_steps, rl.autocast(low) if low else None, update)
    if not isinstance(timeline, rl.memory.Timeline):
        raise TypeError(f"expected the timeline that rl.memory.record gives, got {type(timeline).__name__}")


def held_in(seen: Any) -> dict[str, Any]:
    """What a count of `run_timeline` says of the step that was recorded, and of all steps."""
    assert len(seen.recordings) > 1, "nothing was recorded: run the last step inside of rl.memory.record"
    (others, _, _), (resident, peak, left) = seen.recordings[0], seen.recordings[-1]
    return {
        "held before, in bytes": resident - others,
        "the peak above that, in bytes": peak,
        "held above that when the recording ends, in bytes": left - resident,
        "the phases": tuple(sorted({path.split("/")[0] for path in seen.by_range if path})),
        "MACs of all steps": seen.macs,
    }


def run_phase(peak_phase: Callable[[Any], Any], moments: list[tuple[str, int]]) -> Any:
    """What `peak_phase` says of a recording that allocates a block of the given size in each phase, or, if the size is
    below 0, frees the last block.

    Examples
    --------
    >>> run_phase(lambda timeline: timeline.events[0].range, [("forward", 3)])
    'forward/block_0'
    """
    held: list[rl.Tensor] = []
    with rl.memory.record("meta") as timeline:
        for phase, numbers in moments:
            with rl.range(phase), rl.range("block_0"):
                if numbers < 0:
                    held.pop()
                else:
                    held.append(rl.empty(1000 * numbers, device="meta"))
    return peak_phase(timeline)


class _Block(rl.nn.Module):
    """x + w2(gelu(w1(norm(x))))."""

    def __init__(self, gain: rl.Tensor, w1: rl.Tensor, w2: rl.Tensor) -> None:
        self.gain, self.w1, self.w2 = gain, w1, w2

    def forward(self, x: rl.Tensor) -> rl.Tensor:
        return x + rl.gelu(rl.rms_norm(x, self.gain) @ self.w1.mT) @ self.w2.mT


def block_weights(n: int, D: int) -> list[rl.Tensor]:
    """Random weights of n blocks, three each: (D,), (4 D, D) and (D, 4 D).

    Examples
    --------
    >>> len(block_weights(2, 8))
    6
    """
    shapes = [(D,), (4 * D, D), (D, 4 * D)] * n
    return [rl.randn(*shape) * shape[-1] ** -0.5 for shape in shapes]


def run_blocks(run: Callable[[Any, rl.Tensor], rl.Tensor], x: rl.Tensor, *weights: rl.Tensor) -> rl.Tensor:
    """Blocks with these weights one after the other, each by ``run(block, x)``. The sign changes between them, so that
    a block's result is another tensor than the next one's input: a `run` that keeps both is seen to hold more.

    Examples
    --------
    >>> run_blocks(run_plainly, rl.ones(1, 3, 8), *block_weights(2, 8)).shape
    (1, 3, 8)
    """
    for start in range(0, len(weights), 3):
        x = run(_Block(*weights[start : start + 3]), -x if start else x)
    return x


def run_blocks_twice(run: Callable[[Any, rl.Tensor], rl.Tensor], x: rl.Tensor, *weights: rl.Tensor) -> rl.Tensor:
    """`run_blocks` on its own result, so that each weight has gradients from two calls."""
    return run_blocks(run, run_blocks(run, x, *weights), *weights)


def run_blocks_back(
    run: Callable[[Any, rl.Tensor], rl.Tensor], x: rl.Tensor, upstream: rl.Tensor, *weights: rl.Tensor
) -> None:
    """`run_blocks` and its backward pass from `upstream`, on the memory of these tensors."""
    run_blocks(run, *(one.detach().requires_grad_() for one in (x, *weights))).backward(upstream)


def run_plainly(block: Callable[[rl.Tensor], rl.Tensor], x: rl.Tensor) -> rl.Tensor:
    """``block(x)``: what is needed for the backward pass is saved."""
    return block(x)
