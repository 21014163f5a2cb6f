"""A simulated device: work takes the time that it is told to, and every clock of the program shows that time.

On a real device a wrong measurement looks like a right one. On this one each time is known, and a log tells what was
launched, when the host waited and when it read a clock. A launch returns after the host's part, while the work goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from . import fake_clocks
from .fake_model import FakeModel

__all__ = ["Entry", "FakeDevice"]

_READ_MS = 1e-4  # what it costs to read a clock, so that a loop that waits for a time ends
_MAX_ENTRIES, _MAX_LABEL = 200_000, 200


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
        For a launch, when its work is done; for a wait, when the host went on; otherwise `at_ms`.
    work_ms : float
        For a launch, how long its work takes.
    label : str
        For a launch, what is launched; for a range, its name.
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
        Seed of the jitter. The same seed gives the same times.

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
        self._draw, self._jitter = np.random.default_rng(seed), jitter
        self._now_ms = self._free_ms = 4096.0

    def launch(self, work_ms: float, host_ms: float = 0.0, label: str = "") -> None:
        """Queue work of `work_ms`, which may begin at once; the call itself takes the host `host_ms`."""
        work_ms *= max(0.0, 1 + self._jitter * self._draw.standard_normal()) if self._jitter else 1
        self._free_ms = max(self._free_ms, self._now_ms) + work_ms
        self._write("launch", self._now_ms, self._free_ms, work_ms, label)
        self._now_ms += host_ms

    def synchronize(self) -> None:
        """Let the host wait until the queue is empty."""
        self.wait_until(self._free_ms)

    def note(self, kind: str, label: str = "") -> None:
        """Write a line of your own into the log."""
        self._write(kind, self._now_ms, self._now_ms, label=label)

    def read_ms(self) -> float:
        """What the clock shows; reading it takes a moment."""
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

        return run

    def model(
        self, forward_ms: float, backward_ms: float, host_ms: float = 0.0, slow_ms: Sequence[float] = ()
    ) -> FakeModel:
        """A language model whose passes take these times; the host takes `host_ms` to launch one. The first forward
        passes take `slow_ms` instead.

        Examples
        --------
        >>> import rooflab as rl
        >>> device = FakeDevice()
        >>> model = device.model(forward_ms=10.0, backward_ms=20.0)
        >>> model(rl.zeros(2, 3, dtype="int64")).sum().backward()
        >>> [(entry.label, entry.work_ms) for entry in device.log]
        [('forward', 10.0), ('backward', 20.0)]
        """
        run = self.work(forward_ms, host_ms, slow_ms, "forward")

        def forward() -> int:
            run()
            return 0

        return FakeModel(forward, lambda number: self.launch(backward_ms, host_ms, "backward"))

    def wait_until(self, ms: float) -> None:
        """Let the host wait until the clock shows `ms`."""
        before, self._now_ms = self._now_ms, max(self._now_ms, ms)
        self._write("synchronize", before, self._now_ms)

    def sleep(self, seconds: float) -> None:
        """Let the host do nothing for that long."""
        if not 0 <= seconds < np.inf:
            raise ValueError("sleep length must be non-negative")
        before, self._now_ms = self._now_ms, self._now_ms + seconds * 1e3
        self._write("sleep", before, self._now_ms)

    def mark(self) -> float:
        """The time in ms of an event that is put into the queue now."""
        reached_ms = max(self._now_ms, self._free_ms)
        self._write("event", self._now_ms, reached_ms)
        return reached_ms

    def answer(self, what: str, *arguments: Any) -> float | None:
        """Answer what a program asks through its clocks: call a method that is named in `fake_clocks.ASKED`.

        Raises
        ------
        ValueError
            For any other name, and for a note that a range would not make.

        Examples
        --------
        >>> FakeDevice().answer("read_ms")
        4096.0001
        """
        if [type(one) for one in arguments] != fake_clocks.ASKED.get(what):
            raise ValueError(f"[FakeDevice] what: expected one of {sorted(fake_clocks.ASKED)} with its arguments")
        if what == "note" and arguments[0] not in fake_clocks.NOTED:
            raise ValueError(f"[FakeDevice] kind: expected one of {fake_clocks.NOTED}")
        return getattr(self, what)(*arguments)

    def clocks(self, names: dict[str, Any] | None = None) -> AbstractContextManager[None]:
        """Make every clock that a program may use show this device's time: see `fake_clocks.clocks`.

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
        return fake_clocks.clocks(self.answer, names)

    def _write(self, kind: str, at_ms: float, end_ms: float, work_ms: float = 0.0, label: str = "") -> None:
        if len(self.log) >= _MAX_ENTRIES or len(label) > _MAX_LABEL:
            raise RuntimeError(f"[FakeDevice] more than {_MAX_ENTRIES:,} entries in its log, or a long one")
        self.log.append(Entry(kind, at_ms, end_ms, work_ms, label))
