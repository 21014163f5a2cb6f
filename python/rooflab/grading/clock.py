"""A clock that test cells hold in place of the machine's: what student code times, how, and the times it is told.

A grade may not depend on how busy a machine is. So a test of timing runs the student's function on this clock. Each
`rl.latency` then makes its call once, and the clock answers with samples drawn at random. Whether the student measured
the right call and reported the right sample follows exactly. The clock stays with the test. A student's function, in
its own process, can only ask it for samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from sys import getprofile, setprofile
from types import CodeType, FrameType
from typing import Any

import numpy as np

SHORTEST_MS, LONGEST_MS = 0.02, 20.0
SPREAD = 0.1
MAX_SAMPLES = 1_000_000  # of all calls together
MAX_RUNS, MAX_TENSORS = 100_000, 64


class VirtualClock:
    """Draws the samples of each timed call.

    Attributes
    ----------
    calls : list of dict
        Of each timed call in order: its `warmup`, its `samples_ms`, and which watched functions `ran` in it.

    Examples
    --------
    >>> clock = VirtualClock()
    >>> samples_ms = clock.answer(warmup=2, repeat=5, ran=())
    >>> len(samples_ms), clock.calls[0]["warmup"]
    (5, 2)
    """

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self._samples = self._runs = 0
        self._draw = np.random.default_rng()

    def answer(self, warmup: int, repeat: int, ran: tuple) -> np.ndarray:
        """Samples in ms of a call that was made.

        Raises
        ------
        ValueError
            For more than a million samples, or what describes no call.
        """
        if type(warmup) is not int or type(repeat) is not int or type(ran) is not tuple or warmup < 0 or repeat < 1:
            raise ValueError("[VirtualClock] expected warmup >= 0 and repeat >= 1")
        self._samples, self._runs = self._samples + repeat, self._runs + len(ran)
        if self._samples > MAX_SAMPLES or self._runs > MAX_RUNS or not all(map(_is_run, ran)):
            raise ValueError(f"[VirtualClock] more than {MAX_SAMPLES:,} samples or {MAX_RUNS:,} calls were watched")
        middle = math.exp(self._draw.uniform(math.log(SHORTEST_MS), math.log(LONGEST_MS)))
        samples_ms = middle * np.exp(self._draw.normal(0, SPREAD, repeat))
        self.calls.append({"warmup": warmup, "samples_ms": samples_ms.copy(), "ran": ran})
        return samples_ms


def _is_run(one: Any) -> bool:
    """Whether this is a function's name and, of each tensor it got, shape, dtype and whether it requires gradients."""
    match one:
        case (str(), tuple(tensors)):
            return len(tensors) <= MAX_TENSORS and all(map(_is_tensor, tensors))
    return False


def _is_tensor(one: Any) -> bool:
    match one:
        case (tuple(shape), str(dtype), bool()):
            return len(shape) + len(dtype) <= MAX_TENSORS and all(type(size) is int for size in shape)
    return False


@contextmanager
def on_clock(
    ask: Callable[..., Any],
    watched: Mapping[CodeType, str],
    section: Callable[[], AbstractContextManager],
) -> Iterator[None]:
    """Let every `rl.latency` ask a virtual clock.

    Parameters
    ----------
    ask : callable
        `VirtualClock.answer`, or what hands the question on to it.
    watched : mapping of code to str
        Functions of the student, or of the lab, whose calls are recorded with the tensors that they got.
    section : callable
        Gives a context in which each timed call is made. It sees to it that what the call does is counted.
    """
    from rooflab.benchmark import timing

    def samples_ms(call: Callable[[], object], warmup: int, repeat: int) -> Any:
        """`repeat` samples of a call that is made once."""
        ran: list[tuple] = []
        with _watching(watched, ran), section():
            call()
        return ask(int(warmup), int(repeat), tuple(ran))

    before, timing.stand_in = timing.stand_in, samples_ms
    try:
        yield
    finally:
        timing.stand_in = before


@contextmanager
def _watching(watched: Mapping[CodeType, str], ran: list[tuple]) -> Iterator[None]:
    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and (name := watched.get(frame.f_code)):
            ran.append((name, _tensors(frame)))

    before = getprofile()
    setprofile(note)
    try:
        yield
    finally:
        setprofile(before)


def _tensors(frame: FrameType) -> tuple:
    """(shape, dtype, whether it requires gradients) of each tensor among the arguments."""
    import rooflab as rl

    values = (frame.f_locals.get(name) for name in frame.f_code.co_varnames[: frame.f_code.co_argcount])
    return tuple((tuple(x.shape), str(x.dtype), bool(x.requires_grad)) for x in values if isinstance(x, rl.Tensor))
