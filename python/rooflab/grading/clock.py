"""A clock that test cells hold in place of the machine's: what student code times, how, and the times it is told.

A grade may not depend on how busy a machine is. So a test of timing runs the student's function on this clock. Each
`rl.latency` then makes its call once, counts what it does, and answers with samples drawn at random. Whether the
student measured the right call and reported the right sample follows exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from sys import getprofile, setprofile
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.random import default_rng

SHORTEST_MS, LONGEST_MS = 0.02, 20.0
SPREAD = 0.1
COUNTED = ("macs", "flops", "bytes_read", "bytes_written")


@contextmanager
def virtual_clock(
    watched: Mapping[CodeType, str],
    pause: Callable[[], AbstractContextManager] = nullcontext,
    inspect: Callable[[], object] = lambda: None,
) -> Iterator[list[dict[str, Any]]]:
    """Let every `rl.latency` ask a virtual clock; gives the list of what it times, as plain values.

    Parameters
    ----------
    watched : mapping of code to str
        Functions of the student, or of the lab, whose calls are recorded with the tensors that they got.
    pause : callable
        Gives a context in which a profiler may be installed.
    inspect : callable
        Is called before and after each timed call: what the student's function replaces while it runs, it could put
        back before it ends.
    """
    import rooflab as rl
    from rooflab.benchmark import timing

    calls: list[dict[str, Any]] = []
    draw = default_rng()  # nothing of it can be replaced, as methods written in Python can

    def look() -> None:
        own, timing.stand_in = timing.stand_in, before  # which is no replacement by the student
        inspect()
        timing.stand_in = own

    def take(call: Callable[[], object], warmup: int, repeat: int) -> np.ndarray:
        """`repeat` samples in ms of a call that is made once."""
        ran: list[tuple] = []
        look()
        with _watching(watched, ran, pause), rl.count() as counters:
            call()
        look()
        middle = math.exp(draw.uniform(math.log(SHORTEST_MS), math.log(LONGEST_MS)))
        samples = middle * np.exp(draw.normal(0, SPREAD, repeat))
        counted = {name: int(getattr(counters, name)) for name in COUNTED}
        by_op = {name: int(op.ops) for name, op in counters.by_op.items() if op.ops}
        calls.append({"warmup": warmup, "samples_ms": samples, "ran": tuple(ran), "by_op": by_op, **counted})
        return samples

    # Student code can take hold of this callable. A ufunc has no attribute that leads to the function inside it.
    before, timing.stand_in = timing.stand_in, np.frompyfunc(take, 3, 1)
    try:
        yield calls
    finally:
        timing.stand_in = before


@contextmanager
def _watching(
    watched: Mapping[CodeType, str], ran: list[tuple], pause: Callable[[], AbstractContextManager]
) -> Iterator[None]:
    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and (name := watched.get(frame.f_code)):
            ran.append((name, _tensors(frame)))

    before = getprofile()
    with pause():
        setprofile(note)
    try:
        yield
    finally:
        with pause():
            setprofile(before)


def _tensors(frame: FrameType) -> tuple:
    """(shape, dtype, whether it requires gradients) of each tensor among the arguments."""
    import rooflab as rl

    values = (frame.f_locals.get(name) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount])
    return tuple((tuple(x.shape), str(x.dtype), bool(x.requires_grad)) for x in values if isinstance(x, rl.Tensor))
