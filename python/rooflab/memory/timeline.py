"""Every allocation and free of a with-block, in order."""

from __future__ import annotations

import functools
import time
import warnings
from collections import Counter
from dataclasses import fields
from os import PathLike
from typing import Any

from .. import _core, _stacks
from .._nothing import NO_MEMORY
from .._stacks import Frame
from ..files import replacing
from ..results import ResultMixin, Table
from ..units import distinct, human
from .records import Allocation, Event, Phase, Recording


class Timeline(ResultMixin):
    """Every allocation and free inside ``with rl.memory.record() as timeline:``; made by `record`.

    The results are available once the block has ended, even by an exception.
    """

    def __init__(self, device: str | None = None, with_stack: bool = True) -> None:
        self._recorder: Any = _core.memory.Recorder(device)
        self._with_stack = with_stack
        self._frames: dict[int, tuple[Frame, ...]] = {0: ()}
        self._held: dict[str, list[Any]] = {}  # what each device held at the end, oldest first
        self._began_us = 0
        self._state = "new"
        self._marks: list[tuple[str, int]] = []

    def __enter__(self) -> Timeline:
        if self._state != "new":
            raise RuntimeError("[memory] a timeline can record only once")
        self._began_us = time.time_ns() // 1000
        if self._with_stack:
            _stacks.begin()
        try:
            self._recorder.start()
        except BaseException:
            self._forget_stacks()
            raise
        self._state = "running"
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._recorder.stop()
            self._state = "done"
            blocks = self._recorder.blocks()
            self._held = {device: _core.memory.snapshot(device) for device in {block[2] for block in blocks}}
            if self._with_stack:
                self._frames |= {number: _stacks.frames(number) for number in {block[-1] for block in blocks}}
        finally:
            self._forget_stacks()
        if self._recorder.dropped:
            warnings.warn(f"[memory] {self._recorder.dropped} events are missing", RuntimeWarning, stacklevel=2)

    def _forget_stacks(self) -> None:
        if self._with_stack:
            _stacks.end()

    def _done(self) -> _core.memory.Recorder | Recording:
        if self._state != "done":
            raise RuntimeError("[memory] results are available once the with-block has ended")
        return self._recorder

    @property
    def resident_bytes(self) -> int:
        """Bytes in tensors when the recording began."""
        return self._done().resident_bytes

    @property
    def peak_bytes(self) -> int:
        """The most bytes in tensors, above `resident_bytes`."""
        return self._done().peak_bytes

    @property
    def retained_bytes(self) -> int:
        """Bytes in tensors at the end, above `resident_bytes`; negative when older tensors were freed."""
        return self._done().live_bytes

    @property
    def duration_us(self) -> float:
        """How long the recording took."""
        return self._done().duration_ns / 1e3

    @functools.cached_property
    def allocations(self) -> list[Allocation]:
        """Every block that was allocated or freed, in order of its first event."""
        recorder = self._done()
        ends: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for time_ns, block, freed in recorder.events():
            ends[freed][block] = time_ns / 1e3
        starts, stops = ends
        return [
            Allocation(op, path, device, size, is_scratch, starts.get(i), stops.get(i), self._frames[stack])
            for i, (op, path, device, size, is_scratch, stack) in enumerate(recorder.blocks())
        ]

    @functools.cached_property
    def events(self) -> list[Event]:
        """Every allocation and free, in order."""
        live, found = self.resident_bytes, []
        for time_ns, block, freed in self._recorder.events():
            of = self.allocations[block]
            change = -of.bytes if freed else of.bytes
            live += change
            found.append(Event(time_ns / 1e3, change, of.op, of.range, of.device, live, block))
        return found

    def mark(self, name: str) -> None:
        """Begin a new phase, which lasts until the next mark or the end of the recording.

        Parameters
        ----------
        name : str
            Of the phase.

        Raises
        ------
        RuntimeError
            Outside of the with-block.

        Examples
        --------
        >>> from rooflab.memory import record
        >>> import rooflab as rl
        >>> with record() as timeline:
        ...     timeline.mark("first")
        ...     x = rl.ones(10)
        ...     timeline.mark("second")
        ...     y = x + 1
        >>> [(phase.name, len(phase.events)) for phase in timeline.phases]
        [('first', 1), ('second', 1)]
        """
        if self._state != "running":
            raise RuntimeError("[memory] mark: expected to be called inside the with-block")
        self._marks.append((name, len(self._recorder.events())))

    @property
    def phases(self) -> list[Phase]:
        """The marked phases, in order; what happened before the first mark is in none."""
        places = [place for _, place in self._marks] + [len(self.events)]
        times = [*(event.time_us for event in self.events), self.duration_us]
        return [
            Phase(name, range(begin, end), times[begin], times[end])
            for (name, begin), end in zip(self._marks, places[1:], strict=True)
        ]

    @property
    def peak_us(self) -> float:
        """When the most was held, for the first time: microseconds since the recording began."""
        place = self._peak_event()
        return self.events[place].time_us if place is not None else 0.0

    def _peak_event(self) -> int | None:
        if not self.peak_bytes:
            return None
        levels = [event.live_bytes for event in self.events]
        return levels.index(max(levels))

    def by_op(self) -> dict[str, int]:
        """Bytes at the peak by the op that allocated them, most first; ``"user"`` for tensors made outside ops.

        What was resident before is not in it.

        Returns
        -------
        dict of str to int
            Bytes. They add up to `peak_bytes`, unless part of what was resident was freed before the peak.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.

        Examples
        --------
        >>> from rooflab.memory import record
        >>> import rooflab as rl
        >>> with record() as timeline:
        ...     x = rl.ones(10) + 1
        >>> timeline.by_op()["add"]
        40
        """
        return self._at_peak("op", "user")

    def by_range(self) -> dict[str, int]:
        """Bytes at the peak by the range in which they were allocated, most first.

        Returns
        -------
        dict of str to int
            Bytes; those of ``"(no range)"`` were allocated outside of all.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.

        Examples
        --------
        >>> from rooflab.memory import record
        >>> import rooflab as rl
        >>> with record() as timeline, rl.range("sum"):
        ...     x = rl.ones(10)
        >>> timeline.by_range()
        {'sum': 40}
        """
        return self._at_peak("range", "(no range)")

    def _at_peak(self, by: str, nameless: str) -> dict[str, int]:
        place = self._peak_event()
        held: Counter[str] = Counter()
        for event in self.events[: place + 1] if place is not None else []:
            if self.allocations[event.allocation].start_us is not None:
                held[getattr(event, by) or nameless] += event.bytes
        return {name: count for name, count in held.most_common() if count}

    def save_html(self, path: str | PathLike[str], title: str = "Memory in tensors") -> None:
        """Write one HTML file that needs nothing else: every block over time; pointing at one shows its op, range,
        bytes and lifetime.

        Parameters
        ----------
        path : str or path
            Where to write the file; it is replaced.
        title : str
            Its heading.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.
        OSError
            When the file cannot be written.

        Examples
        --------
        >>> from rooflab.memory import record
        >>> import rooflab as rl
        >>> with record() as timeline:
        ...     x = rl.ones(10) + 1
        >>> timeline.save_html("memory.html")  # doctest: +SKIP
        """
        from .page import page

        with replacing(path) as unfinished:
            unfinished.write_text(page(self, title), encoding="utf-8")

    def save_snapshot(self, path: str | PathLike[str]) -> None:
        """Write a file that https://pytorch.org/memory_viz opens, as ``torch.cuda.memory._dump_snapshot`` does.

        The page draws it in the browser, and uploads nothing. Each block shows its op, its ranges and the Python code
        that asked for it. The CPU and meta devices are numbered there like GPUs, in alphabetic order.

        Parameters
        ----------
        path : str or path
            Where to write the file, such as ``memory.pickle``; it is replaced.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.
        OSError
            When the file cannot be written.

        Examples
        --------
        >>> from rooflab.memory import record
        >>> import rooflab as rl
        >>> with record() as timeline:
        ...     x = rl.ones(10) + 1
        >>> timeline.save_snapshot("memory.pickle")  # doctest: +SKIP
        """
        from .memory_viz import save

        self._done()
        save(self, self._older, self._began_us, path)

    def __repr__(self) -> str:
        if self._state != "done":
            return f"Timeline({'running' if self._state == 'running' else 'not started'})"
        if not self._recorder.events():
            return f"Timeline({NO_MEMORY.format('block')})"
        peak, resident = human(self.peak_bytes, "B"), human(self.resident_bytes, "B")
        return f"Timeline({len(self._recorder.events())} events, peak {peak} above {resident} resident)"

    def _values(self) -> dict[str, Any]:
        if self._state != "done":
            return {"unfinished": id(self)}  # which is equal to itself alone
        names = ("resident_bytes", "peak_bytes", "retained_bytes", "duration_us", "phases", "allocations", "events")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The recording as plain values.

        Returns
        -------
        dict of str to object
            Bytes, phases, allocations and events.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.

        Examples
        --------
        >>> from rooflab.memory import record
        >>> import rooflab as rl
        >>> with record() as timeline:
        ...     x = rl.ones(10)
        >>> timeline.to_dict()["peak_bytes"]
        40
        """
        self._done()
        return super().to_dict()

    def _figures(self) -> Table:
        return Table.of((event.to_dict() for event in self.events), [field.name for field in fields(Event)])

    def _table(self) -> Table:
        if self._state != "done":
            return Table((), (), note=repr(self))
        held = self.by_op()
        sizes = distinct(held.values(), functools.partial(human, unit="B"))
        return Table(["op", "held at the peak"], list(map(list, zip(held, sizes, strict=True))), note=repr(self))

    def __getstate__(self) -> dict[str, Any]:
        names = ("_with_stack", "_frames", "_older", "_began_us", "_state", "_marks")
        return {"_recorder": Recording.of(self._done()), **{name: getattr(self, name) for name in names}}

    @functools.cached_property
    def _older(self) -> dict[str, list[tuple[str, int]]]:
        """(op, bytes) by device of what was held at the end and is no recorded allocation, oldest first."""
        recorded = Counter(one.device for one in self.allocations if one.start_us is not None and one.end_us is None)
        return {
            device: [(block.op, block.bytes) for block in held[: len(held) - recorded[device]]]
            for device, held in self._held.items()
        }


def record(device: str | None = None, *, with_stack: bool = True) -> Timeline:
    """Record what tensors take and give back: ``with rl.memory.record() as timeline:``. Recordings nest.

    It records what all threads of the process do.

    Parameters
    ----------
    device : str, optional
        "cpu" or "cuda:0"; all devices together when None.
    with_stack : bool
        Whether to note the Python code that asked for each block, which costs a few microseconds for each op.

    Returns
    -------
    Timeline
        With `events`, `allocations`, `peak_bytes`, `resident_bytes`, `by_op()`, `by_range()`, `save_html(path)`,
        `save_snapshot(path)`; `rooflab.plots.plot_memory_timeline` draws it.

    Raises
    ------
    RuntimeError
        On entry, if it has begun to record before: make another one.
    ValueError
        On entry inside a function that `rl.compile` records, which runs nothing.

    Examples
    --------
    >>> import rooflab as rl
    >>> a = rl.ones(1000, 1000)
    >>> with rl.memory.record() as timeline:
    ...     b = rl.exp(2 * a)
    >>> timeline.by_op()
    {'mul': 4000000, 'exp': 4000000}
    >>> timeline.peak_bytes, timeline.retained_bytes
    (8000000, 4000000)
    """
    return Timeline(device, with_stack)
