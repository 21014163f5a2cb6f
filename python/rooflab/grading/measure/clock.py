"""A virtual clock for test cells: it records what student code times and how, and chooses the times that the code sees.

A grade must not depend on how busy a machine is. So a test of timing runs the student's function on this clock. Each
`rl.latency` then makes its call once, and the clock answers with random samples. So the test knows exactly whether the
student measured the right call and reported the right sample. The clock stays with the test. A student's function, in
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
MAX_CALLS = 100_000  # timed and watched together
MAX_TENSORS, MAX_TEXT, MAX_SIZE = 64, 100, 2**63  # of a watched call
MAX_SIZES = 2_000_000  # of the tensors of all watched calls


class VirtualClock:
    """Draws the samples of each timed call from `random`.

    Attributes
    ----------
    calls : list of dict
        For each timed call, in order: its `warmup`, its `samples_ms`, and which watched functions `ran` in it.

    Examples
    --------
    >>> clock = VirtualClock(np.random.default_rng(0))
    >>> samples_ms = clock.answer(warmup=2, repeat=5, ran=())
    >>> len(samples_ms), clock.calls[0]["warmup"]
    (5, 2)
    """

    def __init__(self, random: np.random.Generator) -> None:
        self.calls: list[dict[str, Any]] = []
        self._samples = self._made = self._sizes = 0
        self._draw = random

    def answer(self, warmup: int, repeat: int, ran: tuple) -> np.ndarray:
        """Samples in ms of a call that was made.

        Raises
        ------
        ValueError
            There are more than a million samples or a hundred thousand calls, or the arguments do not describe a call.
        """
        if type(warmup) is not int or type(repeat) is not int or not 0 <= warmup < MAX_SIZE or repeat < 1:
            raise ValueError("[VirtualClock] expected warmup >= 0 and repeat >= 1")
        if type(ran) is not tuple or not all(map(_is_run, ran)):
            raise ValueError("[VirtualClock] ran: expected the names of functions, with the tensors that they got")
        self._samples, self._made = self._samples + repeat, self._made + 1 + len(ran)
        self._sizes += sum(len(shape) + 1 for _, tensors in ran for shape, *_ in tensors)
        if self._samples > MAX_SAMPLES or self._made > MAX_CALLS or self._sizes > MAX_SIZES:
            raise ValueError(f"[VirtualClock] more than {MAX_SAMPLES:,} samples or {MAX_CALLS:,} calls")
        middle = math.exp(self._draw.uniform(math.log(SHORTEST_MS), math.log(LONGEST_MS)))
        samples_ms = middle * np.exp(self._draw.normal(0, SPREAD, repeat))
        self.calls.append({"warmup": warmup, "samples_ms": samples_ms.copy(), "ran": ran})
        return samples_ms


def _is_run(one: Any) -> bool:
    """Whether this is a function's name, with shape, dtype and requires_grad of each tensor that it got."""
    match one:
        case (str(), tuple(tensors)):
            return len(one[0]) <= MAX_TEXT and len(tensors) <= MAX_TENSORS and all(map(_is_tensor, tensors))
    return False


def _is_tensor(one: Any) -> bool:
    match one:
        case (tuple(shape), str(dtype), bool()):
            return len(dtype) <= MAX_TEXT and all(type(size) is int and 0 <= size < MAX_SIZE for size in shape)
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
        `VirtualClock.answer`, or a function that passes the question on to it.
    watched : mapping of code to str
        Functions of the student, or of the lab, whose calls are recorded with the tensors that they got.
    section : callable
        Returns a context in which a timed call is made, so that what the call does is counted.
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
