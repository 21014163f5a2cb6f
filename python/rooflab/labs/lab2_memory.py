"""Memory in Lab 2: what a step holds, counted on tensors without memory. Letters as in `lab2`.

`run_timeline`, `run_phase` and `run_blocks` call a student's function for `measure`, as its `through`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import rooflab as rl
from rooflab.testing import is_count, is_near

__all__ = [
    "assert_peak", "block_weights", "held_in", "largest_blocks", "loop_peak_bytes", "peak_bytes",
    "reference_timeline", "run_blocks", "run_phase", "run_plainly", "run_timeline",
]  # fmt: skip


def _model(config: Mapping[str, int], V: int, L: int) -> rl.nn.TransformerLM:
    sizes = ("d_model", "d_ff", "num_layers", "num_heads")
    own = {name: config[name] for name in sizes}
    return rl.nn.TransformerLM(rl.nn.TransformerConfig(**own, vocab_size=V, context_length=L), device="meta")


def _ids(B: int, L: int) -> rl.Tensor:
    return rl.empty(B, L, dtype="int64", device="meta")


def reference_timeline(
    model: Any, input_ids: Any, mode: str, warmup_steps: int, amp_context: Any = None, optimizer: Any = None
) -> rl.memory.Timeline:
    """The memory timeline of a step, its phases in ranges.

    Examples
    --------
    >>> model = _model({"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}, 10, 4)
    >>> reference_timeline(model, _ids(2, 4), "forward", 0).resident_bytes >= 4 * model.num_parameters()
    True
    """
    for _ in range(warmup_steps):
        _step(model, input_ids, mode, amp_context, optimizer)
        model.zero_grad()
    with rl.memory.record(model.device) as timeline:
        output = _step(model, input_ids, mode, amp_context, optimizer)
    del output
    return timeline


def _step(model: Any, input_ids: Any, mode: str, amp_context: Any, optimizer: Any) -> Any:
    with rl.range("forward"), amp_context or contextlib.nullcontext():
        with rl.no_grad() if mode == "inference" else contextlib.nullcontext():
            output = model(input_ids)
        output = output.mean() if mode == "step" else output
    if mode == "step":
        with rl.range("backward"):
            output.backward()
        if optimizer is not None:
            with rl.range("optimizer"):
                optimizer.step()
    return output


def run_timeline(
    profile_memory: Callable[..., Any], mode: str, warmup_steps: int, optimizer: bool, sizes: Mapping[str, int]
) -> None:
    """Record a step by `profile_memory`, for a model on tensors without memory. A first recording tells what is held
    without that model.
    """
    with rl.memory.record("meta"):
        pass
    model, ids = _model(sizes, 100, sizes["length"]), _ids(2, sizes["length"])
    update = rl.optim.AdamW(model.parameters(), lr=1e-3) if optimizer and mode == "step" else None
    timeline = profile_memory(model, ids, mode, warmup_steps, None, update)
    if not isinstance(timeline, rl.memory.Timeline):
        raise TypeError(f"expected the timeline that rl.memory.record gives, got {type(timeline).__name__}")


def held_in(seen: Any) -> dict[str, Any]:
    """What a count of `run_timeline` says of the step that was recorded, and of all steps.

    Examples
    --------
    >>> from rooflab.grading import measure
    >>> sizes = {"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "length": 4}
    >>> seen = measure.count(reference_timeline, "step", 0, True, sizes, through=run_timeline)
    >>> held_in(seen)["the phases"]
    ('backward', 'forward', 'optimizer')
    """
    assert len(seen.recordings) > 1, "nothing was recorded: run the last step inside of rl.memory.record"
    (others, _), (resident, peak) = seen.recordings[0], seen.recordings[-1]
    return {
        "held before, in bytes": resident - others,
        "the peak above that, in bytes": peak,
        "the phases": tuple(sorted({path.split("/")[0] for path in seen.by_range if path})),
        "MACs of all steps": seen.macs,
    }


def run_phase(peak_phase: Callable[[Any], Any], moments: list[tuple[str, int]]) -> Any:
    """What `peak_phase` says of a recording in which a block of so many numbers is taken in each phase, or, where the
    number is below 0, the last block is given back.

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


def peak_bytes(
    config: Mapping[str, int], V: int, B: int, L: int, mode: str, kept_gradients: bool = False, low: str | None = None
) -> int:
    """The most that a step holds at a time.

    Examples
    --------
    >>> peak_bytes({"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}, 10, 2, 4, "step") > 16 * 800
    True
    """
    model = _model(config, V, L)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3) if mode == "step" else None
    amp = rl.autocast(low) if low else None
    timeline = reference_timeline(model, _ids(B, L), mode, 1, amp, optimizer)
    if kept_gradients:
        timeline = reference_timeline(model, _ids(B, L), mode, 0, amp, optimizer)
    return int(timeline.resident_bytes + timeline.peak_bytes)


def assert_peak(
    function: Callable[..., Any], D: int, inner: int, n: int, H: int, V: int, B: int, L: int, mode: str, **options: Any
) -> None:
    """Assert that a student's `peak_bytes` is within one per cent of what is counted here, with or without what this
    process holds already: the student's may run in another one.

    Raises
    ------
    AssertionError
        What is held, and what the student's function said.

    Examples
    --------
    >>> assert_peak(peak_bytes, 8, 16, 1, 2, 10, 2, 4, "forward")
    """
    config = {"d_model": D, "d_ff": inner, "num_layers": n, "num_heads": H}
    others = rl.memory.allocated("meta")
    got, right = function(config, V, B, L, mode, **options), peak_bytes(config, V, B, L, mode, **options)
    case = f"peak_bytes, {mode}, D = {D}, n = {n}, L = {L}, {options or 'fp32'}"
    assert is_count(got), f"{case}: peak_bytes has to return an int, got {got!r}"
    right -= 0 if is_near(got, right, 0.01) else others
    assert is_near(got, right, 0.01), f"{case}: expected {right / 2**20:.1f} MiB, got {got / 2**20:.1f} MiB"


def largest_blocks(config: Mapping[str, int], V: int, B: int, L: int) -> list[tuple[int, str, str]]:
    """(bytes, op, range) of all blocks of a forward pass, the largest first.

    Examples
    --------
    >>> largest_blocks({"d_model": 8, "d_ff": 64, "num_layers": 1, "num_heads": 2}, 10, 2, 4)[0][0]
    2048
    """
    timeline = reference_timeline(_model(config, V, L), _ids(B, L), "forward", 0)
    taken = [one for one in timeline.allocations if one.start_us is not None and not one.is_scratch]
    return sorted(((int(one.bytes), one.op, one.range) for one in taken), key=lambda one: -one[0])


def loop_peak_bytes(config: Mapping[str, int], V: int, B: int, L: int, freed: bool) -> int:
    """The most that is held in the second round of a loop of forward passes, whose last output is freed before or not.

    Examples
    --------
    >>> sizes = {"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    >>> loop_peak_bytes(sizes, 10, 2, 4, freed=False) > loop_peak_bytes(sizes, 10, 2, 4, freed=True)
    True
    """
    model, ids = _model(config, V, L), _ids(B, L)
    output = model(ids)
    if freed:
        del output
    with rl.memory.record("meta") as timeline:
        output = model(ids)
    del output
    return int(timeline.resident_bytes + timeline.peak_bytes)


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
    """Blocks with these weights one after the other, each by ``run(block, x)``.

    Examples
    --------
    >>> run_blocks(run_plainly, rl.ones(1, 3, 8), *block_weights(2, 8)).shape
    (1, 3, 8)
    """
    for start in range(0, len(weights), 3):
        x = run(_Block(*weights[start : start + 3]), x)
    return x


def run_plainly(block: Callable[[rl.Tensor], rl.Tensor], x: rl.Tensor) -> rl.Tensor:
    """``block(x)``: what is needed for the backward pass is saved."""
    return block(x)
