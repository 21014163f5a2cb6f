"""How long calls take on a GPU: by its events, or, where these do not see all of the work, by the host's clock.

An event lies in one stream. Work that a call puts into another stream, of rooflab or of PyTorch, may go on when the
event is reached, and so may work on another GPU. So after each series of calls the clock looks for how long GPUs work
on. Where they do, each call is timed by the host, from GPUs that have nothing to do to GPUs that have nothing to do.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable

import numpy as np

from .. import _core
from .._calls import check_result

_NOISE_MS = 0.02  # two waits for a GPU that is idle differ by less
_SHARE = 0.02  # of the time that events show; less than this is never hidden work
_ASKED = 3  # times in a row that hidden work must be seen, because anything may hold the host up once

Events = list[tuple[_core.cuda.Event, _core.cuda.Event]]  # before and after each call


def nothing() -> None:
    """Do nothing, such as before each call where caches stay warm.

    Examples
    --------
    >>> nothing()
    """


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
    >>> rl.synchronize("cpu")
    """
    if device is None:
        for index in range(_core.cuda.device_count()):
            _core.cuda.synchronize(index)
    elif named := re.fullmatch(r"cuda(?::(\d+))?", str(device)):
        _core.cuda.synchronize(int(named[1] or 0))
    elif device not in ("cpu", "cpu:0"):
        raise ValueError(f'[synchronize] device: expected "cpu", "cuda" or "cuda:N", got "{device}"')


def device_index(device: str) -> int:
    """The number of the GPU that "cuda" or "cuda:N" names.

    Examples
    --------
    >>> device_index("cuda"), device_index("cuda:1")
    (0, 1)
    """
    return int(device.partition(":")[2] or 0)


class GpuClock:
    """Times calls whose work is on one GPU, whichever streams they use.

    Parameters
    ----------
    index : int
        The number of the GPU.

    Attributes
    ----------
    sees_all : bool
        Whether events have seen all work so far. Once they have not, the host's clock is used.
    """

    def __init__(self, index: int) -> None:
        self.sees_all = True
        self._index = index
        self._hidden_in_a_row = 0  # of single calls
        self._has_learned = False  # whether it has seen calls that ran one after the other
        # Of three, because the first may wait for earlier work, and anything may hold the host up once.
        self._asking_ms = statistics.median(_left_ms(self._submit(nothing, 1)) for _ in range(3))

    def run(self, call: Callable[[], object], repeat: int, step: Callable[[], object] = nothing) -> None:
        """Make calls that are not timed, and learn from them whether events see all of their work."""
        if repeat:
            events = self._submit(call, repeat, step=step)
            self.sees_all = self.sees_all and not self._is_hidden(call, events)
            self._has_learned = True

    def sample(
        self,
        call: Callable[[], object],
        repeat: int,
        evict: Callable[[], object] = nothing,
        step: Callable[[], object] = nothing,
    ) -> np.ndarray:
        """The milliseconds of `repeat` calls. `evict` runs before each of them, and `step` after it.

        Where events turn out not to see all of their work, the calls are made once more; a single one is not.
        """
        if not self.sees_all:
            return self._sample_by_host(call, repeat, evict, step)
        events = self._submit(call, repeat, evict)
        for _, end in events:
            end.synchronize()
            step()
        if repeat == 1:
            hidden = self._hidden_ms(events)
            self._hidden_in_a_row = self._hidden_in_a_row + 1 if hidden else 0
            self.sees_all = self._hidden_in_a_row < _ASKED
            return np.array([_seen_ms(events) + hidden])
        self.sees_all = not self._is_hidden(call, events)
        if self.sees_all and not self._has_learned and evict is not nothing:
            self.run(call, 1)  # work elsewhere may have ended while caches were overwritten
        if not self.sees_all:
            return self._sample_by_host(call, repeat, evict, nothing)
        return np.array([start.elapsed_ms(end) for start, end in events])

    def _submit(
        self,
        call: Callable[[], object],
        repeat: int,
        evict: Callable[[], object] = nothing,
        step: Callable[[], object] = nothing,
    ) -> Events:
        """Make calls, each between two events."""
        events = [(_core.cuda.Event(device=self._index), _core.cuda.Event(device=self._index)) for _ in range(repeat)]
        for start, end in events:
            evict()
            start.record()
            result = call()
            end.record()
            check_result("latency", result)
            del result  # or two results would be there at once
            step()
        return events

    def _is_hidden(self, call: Callable[[], object], events: Events) -> bool:
        """Whether GPUs go on working when events are reached, again and again."""
        for _ in range(_ASKED - 1):
            hidden = self._hidden_ms(events)
            if not hidden:
                return False
            enough = math.ceil(5 * _noise_ms(events) / hidden * len(events))  # calls that hide five times the noise
            events = self._submit(call, min(enough, len(events)))
        return bool(self._hidden_ms(events))

    def _hidden_ms(self, events: Events) -> float:
        """How long GPUs work on when the last event is reached; 0 if that may be noise."""
        left_ms = _left_ms(events) - self._asking_ms
        return left_ms if left_ms > _noise_ms(events) else 0.0

    def _sample_by_host(
        self, call: Callable[[], object], repeat: int, evict: Callable[[], object], step: Callable[[], object]
    ) -> np.ndarray:
        samples = np.empty(repeat)
        for i in range(repeat):
            evict()
            synchronize()
            start_ns = time.perf_counter_ns()
            result = call()
            synchronize()
            samples[i] = (time.perf_counter_ns() - start_ns) * 1e-6
            check_result("latency", result)
            del result
            step()
        return samples


def _seen_ms(events: Events) -> float:
    return sum(start.elapsed_ms(end) for start, end in events)


def _noise_ms(events: Events) -> float:
    return _NOISE_MS + _SHARE * _seen_ms(events)


def _left_ms(events: Events) -> float:
    """How long it takes until GPUs are idle, from the last event on."""
    events[-1][1].synchronize()
    began_ns = time.perf_counter_ns()
    synchronize()
    return (time.perf_counter_ns() - began_ns) * 1e-6
