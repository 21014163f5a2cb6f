"""Watches what a call does in each of its ranges, and its recordings of memory, as these begin and end; and lets costs
that it asks for count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import rooflab as rl
from rooflab import _core


@dataclass
class Watched:
    """The calls of each op by the path of the ranges that were open, "" without any, and (resident_bytes, peak_bytes,
    bytes held in all when it ended) of each ``rl.memory.record``.
    """

    by_range: dict[str, dict[str, int]] = field(default_factory=dict)
    recordings: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, part: rl.count) -> None:
        """Add what was counted between two boundaries of ranges, to the innermost range that holds all of it."""
        if not part.ops:
            return
        whole = [path for path, one in part.by_range.items() if one.ops == part.ops]
        ops = self.by_range.setdefault(max(whole, key=len, default=""), {})
        for name, one in part.by_op.items():
            if one.ops:
                ops[name] = ops.get(name, 0) + int(one.ops)


def costs_are_work() -> Any:
    """A context in which asking `rooflab.cost` counts as running it, as it does where a trace is replayed."""
    return patch.object(_core, "_PrivateCount", partial(_core._PrivateCount, is_seen=True))


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """Watch the calls inside of this context. What it yields is complete when it ends."""
    seen, part = Watched(), rl.count()

    def cut() -> None:
        nonlocal part
        if _core._compiler.is_tracing():  # nothing is counted meanwhile
            return
        part.__exit__()
        seen.add(part)
        part = rl.count()
        part.__enter__()

    def enter(self: Any) -> None:
        cut()
        held[0](self)

    def leave(self: Any, *error: Any) -> None:
        cut()
        held[1](self, *error)

    def stop(self: Any) -> None:
        held[2](self)
        resident = int(self.resident_bytes)
        seen.recordings.append((resident, int(self.peak_bytes), resident + int(self.live_bytes)))

    part.__enter__()
    held = _swapped(enter, leave, stop)
    try:
        yield seen
    finally:
        _swapped(*held)
        part.__exit__()
        seen.add(part)


def _swapped(*functions: Callable) -> list[Callable]:
    """Replace the functions that begin and end a range and end a recording. Returns those that were there."""
    ranges, recorder = _core.range, _core.memory.Recorder
    places: list[tuple[type, str]] = [(ranges, "__enter__"), (ranges, "__exit__"), (recorder, "stop")]
    held = [vars(owner)[name] for owner, name in places]
    for (owner, name), function in zip(places, functions, strict=True):
        setattr(owner, name, function)
    return held
