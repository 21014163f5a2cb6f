"""What Lab 2's tests on memory compare with: a step, counted on tensors without memory. Letters as in `lab2`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import rooflab as rl
from rooflab.grading.measure.one_call import without_collector
from rooflab.testing import is_count, is_near

__all__ = ["assert_peak", "largest_blocks", "loop_peak_bytes", "peak_bytes", "timeline_of"]


def _model(config: Mapping[str, int], V: int, L: int) -> rl.nn.TransformerLM:
    sizes = ("d_model", "d_ff", "num_layers", "num_heads")
    own = {name: config[name] for name in sizes}
    return rl.nn.TransformerLM(rl.nn.TransformerConfig(**own, vocab_size=V, context_length=L), device="meta")


def _ids(B: int, L: int) -> rl.Tensor:
    return rl.empty(B, L, dtype="int64", device="meta")


@without_collector()
def timeline_of(
    model: Any, input_ids: Any, mode: str, warmup_steps: int, amp_context: Any = None, optimizer: Any = None
) -> rl.memory.Timeline:
    """The memory timeline of a step, its phases in ranges.

    Examples
    --------
    >>> model = _model({"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}, 10, 4)
    >>> timeline_of(model, _ids(2, 4), "forward", 0).resident_bytes >= 4 * model.num_parameters()
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


@without_collector()
def peak_bytes(
    config: Mapping[str, int], V: int, B: int, L: int, mode: str, kept_gradients: bool = False, low: str | None = None
) -> int:
    """The most that a step holds at any time.

    Examples
    --------
    >>> peak_bytes({"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}, 10, 2, 4, "step") > 16 * 800
    True
    """
    model = _model(config, V, L)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3) if mode == "step" else None
    amp = rl.autocast(low) if low else None
    timeline = timeline_of(model, _ids(B, L), mode, 1, amp, optimizer)
    if kept_gradients:
        timeline = timeline_of(model, _ids(B, L), mode, 0, amp, optimizer)
    return int(timeline.resident_bytes + timeline.peak_bytes)


def assert_peak(
    function: Callable[..., Any], D: int, inner: int, n: int, H: int, V: int, B: int, L: int, mode: str, **options: Any
) -> None:
    """Assert that a student's `peak_bytes` is within one per cent of what is counted here, with or without what this
    process already holds, because the student's may run in another process.

    Raises
    ------
    AssertionError
        What is held, and what the student's function said.

    Examples
    --------
    >>> assert_peak(peak_bytes, 8, 16, 1, 2, 10, 2, 4, "forward")
    """
    config = {"d_model": D, "d_ff": inner, "num_layers": n, "num_heads": H}
    with without_collector():
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
    timeline = timeline_of(_model(config, V, L), _ids(B, L), "forward", 0)
    taken = [one for one in timeline.allocations if one.start_us is not None and not one.is_scratch]
    return sorted(((int(one.bytes), one.op, one.range) for one in taken), key=lambda one: -one[0])


@without_collector()
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
