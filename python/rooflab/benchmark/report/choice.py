"""Which cases a machine measures in the time that it has; the others are counted and modelled on a meta device."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import rooflab as rl

from ..calls import WARMUP, Call, CallResult, repeats
from ..lm import Case, Result, config_of
from ..lm_memory import predicted
from .settings import WARMUP_STEPS

_BESIDE = 4  # steps of a case that are not timed: counted, profiled, and two whose memory is counted
_SHARE_OF_MEMORY = 0.7  # of what is free: the system and its other programs need some, too


def products_per_second(device: str, dtypes: Iterable[str]) -> dict[str, float]:
    """FLOP/s of a product of two matrices (1024, 1024) on a device, by dtype."""
    found = {}
    for dtype in dtypes:
        a, b = (rl.randn(1024, 1024, device=device).to(dtype) for _ in "ab")
        found[dtype] = 2 * 1024**3 / rl.latency(rl.matmul, a, b, warmup=2, repeat=5).median_ms * 1e3
    return found


def macs(case: Case) -> int:
    """MACs of the matrix products of one step, by formula: a backward pass has twice those of its forward pass.

    Examples
    --------
    >>> 2 * macs(Case("small", 128)) / 1e12  # TFLOP
    0.12...
    """
    config = config_of(case)
    L, D, n = case.context_length, config.d_model, config.num_layers
    weights = n * (4 * D * D + 3 * D * config.d_ff) + config.vocab_size * D
    passes = {"inference": 1, "forward": 1, "backward": 2, "both": 3, "train": 3}
    return passes[case.mode] * case.batch_size * L * (weights + 2 * n * L * D)


def seconds(case: Case, flops_per_second: Mapping[str, float]) -> float:
    """How long all steps of a case take at the speed of its products."""
    steps = case.warmup_steps + case.measure_steps + _BESIDE
    return steps * 2 * macs(case) / flops_per_second[case.product_dtype]


def spent_seconds(result: Result) -> float:
    """How long a case took that is measured already."""
    timed = len(result.warmup_ms) + len(result.samples_ms)
    if not timed:
        return 0.0
    return (result.warmup_total_ms + result.total_ms) / 1e3 * (timed + _BESIDE) / timed


def affordable(
    cases: Sequence[Case],
    done: Sequence[Result],
    flops_per_second: Mapping[str, float],
    limit_seconds: float,
    free_bytes: float,
) -> list[Case]:
    """The cases to measure: those that are measured already, and the shortest others until the time is used up.

    Cases of the warm-up study come last: those with the usual warm-up stand in several tables.

    Parameters
    ----------
    cases : sequence of Case
        All that are wanted.
    done : sequence of Result
        What is measured already. Its time, or the estimate where that is longer, is part of the limit, so that a run
        that is repeated measures nothing new.
    flops_per_second : mapping of str to float
        From `products_per_second`, for the dtypes of the cases.
    limit_seconds : float
        For all cases together.
    free_bytes : float
        Memory of the device. What a step keeps takes at most 70 % of it.

    Returns
    -------
    list of Case
        What is measured already, and then the shortest first.
    """
    held = {result.case: spent_seconds(result) for result in done}
    costs = {case: seconds(case, flops_per_second) for case in cases}
    chosen = [case for case in cases if case in held]
    left = limit_seconds - sum(max(held[case], costs[case]) for case in chosen)
    rest = [case for case in cases if case not in held]
    for case in sorted(rest, key=lambda case: (case.warmup_steps != WARMUP_STEPS, costs[case])):
        if costs[case] <= left and sum(predicted(case).values()) <= _SHARE_OF_MEMORY * free_bytes:
            chosen.append(case)
            left -= costs[case]
    return chosen


def affordable_calls(
    models: Mapping[Call, CallResult],
    known: Container[Call],
    slower: float,
    limit_seconds: float,
    free_bytes: float,
) -> list[Call]:
    """The calls to measure: the shortest sizes until the time is used up, each in all of its versions.

    Parameters
    ----------
    models : mapping of Call to CallResult
        Each call's result on a meta device.
    known : container of Call
        What is measured already, which is always chosen.
    slower : float
        How many times as slow as the model's machine this one is.
    limit_seconds, free_bytes : float
        As in `affordable`.

    Returns
    -------
    list of Call
        In the order of `models`.
    """
    groups: dict[tuple[str, tuple[tuple[str, int], ...]], list[Call]] = {}
    for call in models:
        groups.setdefault((call.kind, call.sizes), []).append(call)
    costs = {group: sum(_call_seconds(models[call]) for call in members) * slower for group, members in groups.items()}
    chosen: set[Call] = set()
    left = limit_seconds
    for group, cost in sorted(costs.items(), key=lambda item: item[1]):
        members = groups[group]
        peak = max(models[call].figures.get("peak_bytes", 0.0) for call in members)
        if all(call in known for call in members) or (cost <= left and peak <= _SHARE_OF_MEMORY * free_bytes):
            chosen.update(members)
            left -= cost
    return [call for call in models if call in chosen]


def _call_seconds(model: CallResult) -> float:
    """How long all repeats take on the model's machine; infinite if it has too little memory."""
    if not model.figures:
        return float("inf")
    times = sum(value for name, value in model.figures.items() if name.endswith("ms"))
    return times / 1e3 * (WARMUP + repeats("cpu"))
