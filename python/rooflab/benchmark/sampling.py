"""Samples of a call's time, on the clock of a CPU or by the events of a GPU, in rounds and within a time budget."""

from __future__ import annotations

import functools
import math
import re
import time
from collections.abc import Callable

import numpy as np

from .. import _core
from .._calls import check_result
from .progress import Bar

_ROUNDS = 6  # of the samples of one call: the medians of six enclose the true one in 97 % of cases
_ROUND = 10  # samples that a round has at least
_PAUSE_SECONDS = 0.01  # between rounds, in which the system may move threads
_COLD_BYTES = 256_000_000  # more than any last-level cache of a GPU; several times that of most CPUs


def synchronize(device: str | None = None) -> None:
    """Wait for the GPU's queued work; on the CPU there is never any.

    Parameters
    ----------
    device : str, optional
        "cpu" or "cuda:N"; every GPU when None.

    Raises
    ------
    ValueError
        For another name of a device.
    CudaError
        When a kernel failed that was queued before.

    Examples
    --------
    >>> synchronize("cpu")
    """
    if device is None:
        for index in range(_core.cuda.device_count()):
            _core.cuda.synchronize(index)
    elif named := re.fullmatch(r"cuda(?::(\d+))?", device):
        _core.cuda.synchronize(int(named[1] or 0))
    elif device != "cpu":
        raise ValueError(f'[synchronize] device: expected "cpu", "cuda" or "cuda:N", got "{device}"')


def device_index(device: str) -> int:
    """The number of the GPU that "cuda" or "cuda:N" names.

    Examples
    --------
    >>> device_index("cuda"), device_index("cuda:1")
    (0, 1)
    """
    return int(device.partition(":")[2] or 0)


def sample_in_rounds(
    device: str,
    call: Callable[[], object],
    warmup: int,
    repeat: int,
    evict: Callable[[], object],
    budget_s: float,
) -> tuple[np.ndarray, int]:
    """`warmup` calls unmeasured and `repeat` measured, spread over rounds; the samples and how many rounds.

    A round on the CPU begins with new memory from the system for results and scratch: where buffers lie can change the
    time of a call by a factor of two, and the samples of one place would agree with each other to 1 %.
    """
    end_ns = time.perf_counter_ns() + budget_s * 1e9
    with Bar("latency", warmup + repeat) as bar:
        if budget_s < math.inf:
            repeat = _warm_up_within(budget_s, device, call, warmup, repeat, evict, bar)
        rounds = max(1, min(_ROUNDS, warmup, repeat // _ROUND))
        before = 0 if budget_s < math.inf else warmup - rounds + 1
        bar.total = bar.done + before + rounds - 1 + repeat
        samples: list[np.ndarray] = []
        began_ns = time.perf_counter_ns()
        for number, part in enumerate(np.array_split(np.arange(repeat), rounds)):
            if number:
                now_ns = time.perf_counter_ns()
                if now_ns + (now_ns - began_ns) / 2 > end_ns:  # less than half of a round would fit
                    break
                began_ns = now_ns
                time.sleep(_PAUSE_SECONDS)
                if device == "cpu":
                    _core.memory.empty_cache(device)
            for again in range(1 if number else before):
                result = call()
                if not again and not number:
                    check_result("latency", result)
                del result
                bar.step()
            synchronize(device)
            samples.append(_sample(device, call, len(part), evict, bar.step))
    return np.concatenate(samples), len(samples)


def _warm_up_within(
    budget_s: float,
    device: str,
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
        _sample(device, call, 1, evict, bar.step)
        ended = time.perf_counter_ns()
        took = ended - start
        if ended - began + took > budget_s * 1e9 / 2:
            break
    fitting = int((budget_s * 1e9 - (ended - began)) // max(took, 1))
    fitting -= (_ROUNDS - 1) * (fitting >= _ROUNDS * _ROUND)  # each other round has an unmeasured call
    return max(1, min(repeat, fitting))


def _sample(
    device: str,
    call: Callable[[], object],
    repeat: int,
    evict: Callable[[], object],
    step: Callable[[], object] = lambda: None,
) -> np.ndarray:
    """The milliseconds of `repeat` calls; after each one `step` is called."""
    if device == "cpu":
        return _sample_cpu(call, repeat, evict, step)
    return _sample_cuda(device_index(device), call, repeat, evict, step)


def _sample_cpu(
    call: Callable[[], object], repeat: int, evict: Callable[[], object], step: Callable[[], object]
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


def _sample_cuda(
    index: int, call: Callable[[], object], repeat: int, evict: Callable[[], object], step: Callable[[], object]
) -> np.ndarray:
    events = [(_core.cuda.Event(device=index), _core.cuda.Event(device=index)) for _ in range(repeat)]
    for start, end in events:
        evict()
        start.record()
        result = call()
        end.record()
        check_result("latency", result)
        del result
    for _, end in events:
        end.synchronize()
        step()
    synchronize()
    return np.array([start.elapsed_ms(end) for start, end in events])


@functools.cache
def overhead_ms(device: str) -> float:
    """The median time of a call that does nothing, measured once for each device."""
    return float(np.median(_sample(device, lambda: None, 200, lambda: None)))


def evictor(device: str) -> Callable[[], object]:
    """A call that fills the caches with something else, by writing a buffer larger than they are."""
    buffer = _core.empty(_COLD_BYTES // 4, dtype="float32", device=device)
    return lambda: buffer.fill_(0.0)
