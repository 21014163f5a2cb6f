"""A device that is not there: work takes the time that it is told to, and every clock of the program shows that time.

On a real device a wrong measurement looks like a right one. On this one each time is known, and a log tells what was
launched, when the host waited and when it read a clock. A launch returns after the host's part, and the work goes on.
"""

from __future__ import annotations

import contextlib
import sys
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng

from .stand_ins import event_class, range_class, sealed, waiting

__all__ = ["Entry", "FakeDevice"]

_READ_MS = 1e-4  # what it costs to read a clock; a loop that waits for a time ends


class Entry(NamedTuple):
    """One line of the log; all times are milliseconds of the device's own clock.

    Attributes
    ----------
    kind : str
        ``"launch"``, ``"synchronize"``, ``"clock"``, ``"event"``, ``"sleep"``, ``"open"`` and ``"close"`` of a range,
        or what `FakeDevice.note` was given.
    at_ms : float
        When the host did it.
    end_ms : float
        Of a launch: when its work is done. Of a wait: when the host went on. Else `at_ms`.
    work_ms : float
        Of a launch: how long its work takes.
    label : str
        Of a launch: what is launched. Of a range: its name.
    """

    kind: str
    at_ms: float
    end_ms: float
    work_ms: float = 0.0
    label: str = ""


class FakeDevice:
    """A device with one queue of work, and the host that fills it, on one virtual clock.

    Parameters
    ----------
    jitter : float
        Standard deviation of the time of a piece of work, as a share of it.
    seed : int
        Of the jitter. The same seed gives the same times.

    Attributes
    ----------
    log : list of Entry
        What happened, in order.

    Examples
    --------
    >>> device = FakeDevice()
    >>> device.launch(76.0, host_ms=2.0)
    >>> device.synchronize()
    >>> [(entry.kind, entry.end_ms - entry.at_ms) for entry in device.log]
    [('launch', 76.0), ('synchronize', 74.0)]
    """

    def __init__(self, jitter: float = 0.0, seed: int = 0) -> None:
        self.log: list[Entry] = []
        self._draw, self._jitter = default_rng(seed), jitter  # nothing of it can be replaced
        self._now_ms = self._free_ms = 4096.0

    def launch(self, work_ms: float, host_ms: float = 0.0, label: str = "") -> None:
        """Queue work of `work_ms`, which may begin at once; the call itself takes the host `host_ms`."""
        work_ms *= max(0.0, 1 + self._jitter * self._draw.standard_normal()) if self._jitter else 1
        self._free_ms = max(self._free_ms, self._now_ms) + work_ms
        self.log.append(Entry("launch", self._now_ms, self._free_ms, work_ms, label))
        self._now_ms += host_ms

    def synchronize(self) -> None:
        """Let the host wait until the queue is empty."""
        self._wait_until(self._free_ms)

    def note(self, kind: str, label: str = "") -> None:
        """Write a line of your own into the log."""
        self.log.append(Entry(kind, self._now_ms, self._now_ms, label=label))

    def read_ms(self) -> float:
        """What the clock shows; to read it takes a moment."""
        self._now_ms += _READ_MS
        self.note("clock")
        return self._now_ms

    def work(
        self, work_ms: float, host_ms: float = 0.0, slow_ms: Sequence[float] = (), label: str = "run"
    ) -> Callable[[], None]:
        """A function that launches the same work at each call; the first calls take `slow_ms` instead.

        Examples
        --------
        >>> device = FakeDevice()
        >>> run = device.work(76.0, host_ms=2.0, slow_ms=[1550.0, 84.0])
        >>> for _ in range(3):
        ...     run()
        >>> [entry.work_ms for entry in device.log]
        [1550.0, 84.0, 76.0]
        """
        slow = list(slow_ms)

        def run() -> None:
            self.launch(slow.pop(0) if slow else work_ms, host_ms, label)

        return sealed(run, 0)

    @contextlib.contextmanager
    def clocks(self, names: dict[str, Any] | None = None) -> Iterator[None]:
        """Inside, whatever a program may time with obeys this device.

        These are the clocks of `time` and `timeit`, `time.sleep`, `rl.synchronize`, `rl.cuda.synchronize`,
        `rl.cuda.Event` and `rl.latency`. Ranges are noted in the log. Other code runs as fast as it does, and in other
        threads, such as those of Jupyter, the clocks of `time` and `timeit` stay real.

        Parameters
        ----------
        names : dict, optional
            Global names of the program, such as ``globals()``. Clocks that were imported there by name obey as well.

        Examples
        --------
        >>> import time
        >>> import rooflab as rl
        >>> device = FakeDevice()
        >>> with device.clocks():
        ...     start = time.perf_counter()
        ...     device.launch(76.0, host_ms=2.0)
        ...     rl.synchronize()
        ...     seconds = time.perf_counter() - start
        >>> round(seconds, 3)
        0.076
        """
        modules = {name: sys.modules[name] for name in ("rooflab", "rooflab.benchmark", "rooflab.cuda")}
        modules |= {"time": time, "timeit": timeit, "timing": sys.modules["rooflab.benchmark.timing"]}
        stands_in: dict[tuple[str, str], Any] = self._stand_ins()
        before = [(vars(modules[module]), name, vars(modules[module])[name]) for module, name in stands_in]
        by_identity = {
            id(value): stands_in[key] for (_, _, value), key in zip(before, stands_in, strict=True) if value is not None
        }
        if names is not None:
            before += [(names, name, value) for name, value in names.items() if id(value) in by_identity]
        try:
            for (module, name), value in stands_in.items():
                setattr(modules[module], name, value)
            for owner, name, value in before[len(stands_in) :]:
                owner[name] = by_identity[id(value)]
            yield
        finally:
            for owner, name, value in before:
                owner[name] = value

    def _stand_ins(self) -> dict[tuple[str, str], Any]:
        """What takes the place of (module, name)."""
        synchronize = waiting(sealed(self.synchronize, 0))
        found: dict[tuple[str, str], Any] = {
            ("time", "sleep"): _in_this_thread(self._sleep, time.sleep, 1),
            ("timeit", "default_timer"): _in_this_thread(self._read_s, timeit.default_timer, 0),
            ("rooflab.cuda", "Event"): event_class(sealed(self._mark, 0), sealed(self._wait_until, 1)),
            ("rooflab.cuda", "is_available"): sealed(lambda: True, 0),
            ("rooflab", "range"): range_class(sealed(self.note, 2), sys.modules["rooflab"].range),
            ("timing", "stand_in"): sealed(self._latency, 3),
        }
        for name in ("perf_counter", "monotonic", "time"):
            found["time", name] = _in_this_thread(self._read_s, getattr(time, name), 0)
            found["time", f"{name}_ns"] = _in_this_thread(self._read_ns, getattr(time, f"{name}_ns"), 0)
        places = ("rooflab", "rooflab.benchmark", "rooflab.cuda", "timing")
        return found | {(module, "synchronize"): synchronize for module in places}

    def _read_s(self) -> float:
        return self.read_ms() * 1e-3

    def _read_ns(self) -> int:
        return round(self.read_ms() * 1e6)

    def _sleep(self, seconds: float) -> None:
        before, self._now_ms = self._now_ms, self._now_ms + seconds * 1e3
        self.log.append(Entry("sleep", before, self._now_ms))

    def _wait_until(self, ms: float) -> None:
        before, self._now_ms = self._now_ms, max(self._now_ms, ms)
        self.log.append(Entry("synchronize", before, self._now_ms))

    def _mark(self) -> float:
        """The time of an event that is put into the queue now."""
        reached_ms = max(self._now_ms, self._free_ms)
        self.log.append(Entry("event", self._now_ms, reached_ms))
        return reached_ms

    def _latency(self, call: Callable[[], object], warmup: int, repeat: int) -> np.ndarray:
        """What `rl.latency` does on a GPU: events around each call."""
        for _ in range(warmup):
            call()
        self.synchronize()
        events = []
        for _ in range(repeat):
            start = self._mark()
            call()
            events.append((start, self._mark()))
        self.synchronize()
        return np.array([end - start for start, end in events])


def _in_this_thread(stand_in: Callable, real: Callable, arguments: int) -> Callable:
    """`stand_in` where this thread calls it, and `real` in all others: they would bring the clock forward."""
    own = get_ident()
    return sealed(lambda *given: (stand_in if get_ident() == own else real)(*given), arguments)
