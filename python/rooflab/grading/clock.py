"""A clock that test cells hold in place of the machine's: what student code times, how, and the times it is told.

A grade may not depend on how busy a machine is. So a test of timing runs the student's function on this clock. Each
`rl.latency` then makes its call once, counts what it does, and answers with samples drawn at random. Whether the
student measured the right call and reported the right sample follows exactly.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType, FrameType
from typing import Any

import numpy as np

SHORTEST_MS, LONGEST_MS = 0.02, 20.0
SPREAD = 0.1


class VirtualClock:
    """Stands in for the clock of `rl.latency`; `calls` lists what was timed, as plain values.

    Parameters
    ----------
    watched : mapping of code to str
        Functions of the student, or of the lab, whose calls are recorded with the tensors that they got.
    pause : callable
        Gives a context in which a profiler may be installed.
    """

    def __init__(
        self, watched: Mapping[CodeType, str], pause: Callable[[], AbstractContextManager] = nullcontext
    ) -> None:
        self.watched, self.pause = watched, pause
        self.calls: list[dict[str, Any]] = []
        self.random = random.SystemRandom()

    def __call__(self, call: Callable[[], object], warmup: int, repeat: int) -> np.ndarray:
        """`repeat` samples in ms of a call that is made once."""
        import rooflab as rl

        ran: list[tuple] = []
        with self._watching(ran), rl.count() as counters:
            call()
        middle = math.exp(self.random.uniform(math.log(SHORTEST_MS), math.log(LONGEST_MS)))
        samples = np.array([middle * math.exp(self.random.gauss(0, SPREAD)) for _ in range(repeat)])
        counted = {name: int(getattr(counters, name)) for name in ("macs", "flops", "bytes_read", "bytes_written")}
        by_op = {name: int(op.ops) for name, op in counters.by_op.items() if op.ops}
        self.calls.append({"warmup": warmup, "samples_ms": samples, "ran": tuple(ran), "by_op": by_op, **counted})
        return samples

    @contextmanager
    def _watching(self, ran: list[tuple]) -> Iterator[None]:
        def note(frame: FrameType, event: str, arg: object) -> None:
            if event == "call" and (name := self.watched.get(frame.f_code)):
                ran.append((name, _tensors(frame)))

        before = sys.getprofile()
        with self.pause():
            sys.setprofile(note)
        try:
            yield
        finally:
            with self.pause():
                sys.setprofile(before)


def _tensors(frame: FrameType) -> tuple:
    """(shape, dtype, whether it requires gradients) of each tensor among the arguments."""
    import rooflab as rl

    values = (frame.f_locals.get(name) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount])
    return tuple((tuple(x.shape), str(x.dtype), bool(x.requires_grad)) for x in values if isinstance(x, rl.Tensor))


@contextmanager
def running(clock: VirtualClock) -> Iterator[None]:
    """Let every `rl.latency` ask `clock`."""
    from rooflab.benchmark import timing

    before, timing.stand_in = timing.stand_in, clock
    try:
        yield
    finally:
        timing.stand_in = before
