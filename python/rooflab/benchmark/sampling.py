"""Samples of a call's time, on the clock of a CPU or by the events of a GPU, in rounds and within a time budget."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from .. import _core
from .._calls import check_result
from .gpu_clock import GpuClock, device_index, nothing
from .progress import Bar

_ROUNDS = 6  # of the samples of one call: the medians of six enclose the true one in 97 % of cases
_ROUND = 10  # samples that a round has at least
_PAUSE_SECONDS = 0.01  # between rounds, in which the system may move threads
_COLD_BYTES = 256_000_000  # more than any last-level cache of a GPU; several times that of most CPUs


class _Clock(Protocol):
    """What times calls, and makes those that are not timed."""

    sees_all: bool

    def run(self, call: Callable[[], object], repeat: int, step: Callable[[], object]) -> None: ...

    def sample(
        self, call: Callable[[], object], repeat: int, evict: Callable[[], object], step: Callable[[], object]
    ) -> np.ndarray: ...


def sample_in_rounds(
    device: str,
    call: Callable[[], object],
    warmup: int,
    repeat: int,
    evict: Callable[[], object],
    budget_s: float,
) -> tuple[np.ndarray, int, float]:
    """`warmup` calls unmeasured and `repeat` measured, spread over rounds.

    Returns the samples, how many rounds, and the time of a call that does nothing, on the same clock.

    A round on the CPU begins with new memory from the system for results and scratch: where buffers lie can change the
    time of a call by a factor of two, and the samples of one place would agree with each other to 1 %.
    """
    end_ns = time.perf_counter_ns() + budget_s * 1e9
    clock = _clock(device)
    with Bar("latency", warmup + repeat) as bar:
        if budget_s < math.inf:
            repeat = _warm_up_within(budget_s, clock, call, warmup, repeat, evict, bar)
        rounds = max(1, min(_ROUNDS, warmup, repeat // _ROUND))
        before = 0 if budget_s < math.inf else warmup - rounds + 1
        bar.total = bar.done + before + rounds - 1 + repeat
        samples: list[np.ndarray] = []
        began_ns = time.perf_counter_ns()
        for number in range(rounds):
            if number:
                now_ns = time.perf_counter_ns()
                if now_ns + (now_ns - began_ns) / 2 > end_ns:  # less than half of a round would fit
                    break
                began_ns = now_ns
                time.sleep(_PAUSE_SECONDS)
                if device == "cpu":
                    _core.memory.empty_cache(device)
            clock.run(call, 1 if number else before, bar.step)
            samples.append(clock.sample(call, repeat // rounds + (number < repeat % rounds), evict, bar.step))
    return np.concatenate(samples), len(samples), overhead_ms(device) if clock.sees_all else overhead_by_host_ms(device)


def _warm_up_within(
    budget_s: float,
    clock: _Clock,
    call: Callable[[], object],
    warmup: int,
    repeat: int,
    evict: Callable[[], object],
    bar: Bar,
) -> int:
    """Up to `warmup` unmeasured calls, but one at least, in half of a time budget at most.

    Returns how many calls the rest of it has room for, `repeat` at most, going by the last one.
    """
    began = ended = time.perf_counter_ns()
    took = 0
    for _ in range(max(warmup, 1)):
        start = ended
        clock.sample(call, 1, evict, bar.step)
        ended = time.perf_counter_ns()
        took = ended - start
        if ended - began + took > budget_s * 1e9 / 2:
            break
    fitting = int((budget_s * 1e9 - (ended - began)) // max(took, 1))
    fitting -= (_ROUNDS - 1) * (fitting >= _ROUNDS * _ROUND)  # each other round has an unmeasured call
    return max(1, min(repeat, fitting))


class _CpuClock:
    """The monotonic clock of the host, read around each call."""

    sees_all = True

    def run(self, call: Callable[[], object], repeat: int, step: Callable[[], object]) -> None:
        for _ in range(repeat):
            check_result("latency", call())
            step()

    def sample(
        self, call: Callable[[], object], repeat: int, evict: Callable[[], object], step: Callable[[], object]
    ) -> np.ndarray:
        samples = np.empty(repeat)
        for i in range(repeat):
            evict()
            start = time.perf_counter_ns()
            result = call()
            samples[i] = (time.perf_counter_ns() - start) * 1e-6
            check_result("latency", result)
            del result  # or two results would be there at once
            step()
        return samples


def _clock(device: str) -> _Clock:
    return _CpuClock() if device == "cpu" else GpuClock(device_index(device))


@functools.cache
def overhead_ms(device: str) -> float:
    """The median time of a call that does nothing, measured once for each device."""
    return float(np.median(_clock(device).sample(nothing, 200, nothing, nothing)))


@functools.cache
def overhead_by_host_ms(device: str) -> float:
    """The same where events of the GPU do not see all of the work."""
    clock = GpuClock(device_index(device))
    clock.sees_all = False
    return float(np.median(clock.sample(nothing, 200)))


def evictor(device: str) -> Callable[[], object]:
    """A call that fills the caches with something else, by writing a buffer larger than they are."""
    buffer = _core.empty(_COLD_BYTES // 4, dtype="float32", device=device)
    return lambda: buffer.fill_(0.0)
