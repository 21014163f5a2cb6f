"""What a trace begins and may leave open while it is replayed: autocast, ranges, sections that are counted, and whether
gradients are recorded.
"""

from __future__ import annotations

from typing import Any

import rooflab as rl
from rooflab import _core
from rooflab.grading.measure.counter_values import seen_by
from rooflab.grading.replay.trace import Refused

MAX_DEPTH = 64


class Modes:
    """The modes of one replay. Its methods raise `Refused` for what no real program does.

    Attributes
    ----------
    sections : list of dict
        The counters of each section that ended, as `counter_values.seen_by` gives them, and the bytes that crossed.
    """

    def __init__(self) -> None:
        self.sections: list[dict[str, Any]] = []
        self._autocasts: list[Any] = []  # of those that are open: the state that each began in
        self._ranges: list[Any] = []  # those that are open, outermost first
        self._counting: list[Any] = []  # counters of the sections that are open, and what had crossed before each

    def close(self) -> None:
        """Leave the modes as they were before."""
        while self._ranges:
            self._ranges.pop().__exit__()
        while self._autocasts:
            _core._autocast.end(self._autocasts.pop())
        while self._counting:
            self._counting.pop()[0].__exit__(None, None, None)
        _core._autograd.set_grad_enabled(True)

    def reset(self, state: Any) -> None:
        """Set the seed, whether gradients are recorded, and the autocast dtype as they were when the trace began."""
        match state:
            case [int(seed), int(offset), bool(records), None | str() as low]:
                try:
                    _core.set_rng_state((seed, offset))
                    if low is not None:
                        self.begin(low)
                except Exception:
                    raise Refused("what was recorded is not a trace") from None
                _core._autograd.set_grad_enabled(records)
            case _:
                raise Refused("what was recorded is not a trace")

    def begin(self, low: Any) -> Any:
        """Begin an autocast."""
        before = _core._autocast.begin(low)
        self._autocasts.append(before)
        return before

    def end(self, before: Any) -> None:
        """End the last autocast, whatever state the trace says it began in."""
        if not self._autocasts:
            raise Refused("the trace ends an autocast that has not begun")
        _core._autocast.end(self._autocasts.pop())

    def open(self, one: Any) -> None:
        """Open a range."""
        if len(self._ranges) == MAX_DEPTH:
            raise Refused(f"more than {MAX_DEPTH} ranges were open at a time")
        one.__enter__()
        self._ranges.append(one)

    def leave(self, one: Any, *error: Any) -> None:
        """Close a range, and those inside it."""
        is_open = one in self._ranges
        try:
            one.__exit__(*error)
        finally:
            while is_open and self._ranges.pop() is not one:
                pass

    def section(self, how: str, crossed: dict[str, int]) -> None:
        """Begin to count a section, end it, or drop what was counted of it. `crossed` is what has crossed so far."""
        match how:
            case "begin" if len(self._counting) < MAX_DEPTH:
                self._counting.append((rl.count(), dict(crossed)))
                self._counting[-1][0].__enter__()
            case "end" | "drop" if self._counting:
                counters, before = self._counting.pop()
                counters.__exit__(None, None, None)
                seen = seen_by(counters) | {name: crossed[name] - before[name] for name in crossed}
                self.sections += [seen] * (how == "end")
            case _:
                raise Refused("an event of the trace is malformed")
