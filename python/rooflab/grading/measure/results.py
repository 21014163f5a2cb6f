"""The results of `measure`: plain values, checked because they come from the process of the student's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rooflab.grading.measure.counter_values import COUNTERS
from rooflab.profiler import Schedule

CROSSED = ("uploaded_bytes", "downloaded_bytes", "meta_calls")
CROSSING = ("largest_bytes", "host_bytes", *CROSSED)
DONE = ("by_op", "macs", "flops", "bytes_read", "bytes_written", *CROSSED)  # by a call


class Implausible(AssertionError):
    """A measurement that cannot be true."""


@dataclass(frozen=True)
class Counted:
    """The runtime's counters around one call; `by_op` holds the calls of each op, the same on every device.

    `by_range` holds them by the path of the ranges that were open, ``{"step_0/forward": {"matmul": 10}}``, "" where
    none was. `recordings` has (resident_bytes, peak_bytes, bytes held in all when it ended) of each
    ``rl.memory.record`` that the call made.

    `largest_bytes` (the largest block that a tensor took) and `host_bytes` (the most that Python and NumPy took) are
    known only in the passes of `gradients` and `saved`. When graded, `host_bytes` is 0. Instead, `uploaded_bytes` says
    what came into tensors from Python, NumPy and tensors from before the call, arguments aside, and `downloaded_bytes`
    what went out to Python and NumPy. `meta_calls` says how many calls made tensors without memory. In Jupyter these
    three are 0.
    """

    value: Any
    launches: int
    host_calls: int
    macs: int
    flops: int
    bytes_read: int
    bytes_written: int
    allocations: int
    bytes_allocated: int
    peak_bytes: int
    by_op: dict[str, int] = field(default_factory=dict)
    largest_bytes: int = 0
    host_bytes: int = 0
    uploaded_bytes: int = 0
    downloaded_bytes: int = 0
    meta_calls: int = 0
    by_range: dict[str, dict[str, int]] = field(default_factory=dict)
    recordings: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        counters = [getattr(self, name) for name in (*COUNTERS, *CROSSING)]
        inside = [number for ops in self.by_range.values() for number in ops.values()]
        recorded = [number for resident, peak, left in self.recordings for number in (resident, peak, left)]
        for number in (*counters, *self.by_op.values(), *inside, *recorded):
            check(type(number) is int and number >= 0, "a counter is not a whole number")


@dataclass(frozen=True)
class Loops:
    """One call that was followed from the function's text: its value in float64, and how often two numbers were
    multiplied.
    """

    value: np.ndarray
    products: int


@dataclass(frozen=True)
class Gradients:
    """A call and its backward pass: `gradients` of the floating tensors among the arguments in order (None where
    there is none), and what the graph kept for them in between, each as (op, shape, dtype, bytes). `held_bytes` is what
    all new tensors held in between, the value among them.
    """

    value: Any
    gradients: tuple
    saved: tuple[tuple[str, tuple[int, ...], str, int], ...]
    held_bytes: int
    forward: Counted
    backward: Counted


@dataclass(frozen=True)
class Saved:
    """One call of an `rl.autograd.Function`, and the tensors that its forward saved. `held_bytes` is what all new
    tensors held after it, the value among them.
    """

    value: Any
    tensors: tuple
    held_bytes: int
    forward: Counted


@dataclass(frozen=True)
class Spent:
    """One call: its value, and the processor time that it took, to 20 ms."""

    value: Any
    seconds: float


@dataclass(frozen=True)
class Called:
    """One call, and the positions of the arguments that it wrote into."""

    value: Any
    changed: tuple[int, ...]


@dataclass(frozen=True)
class Accessed:
    """One call on arrays in global memory: what they hold afterwards, and how often each of their elements was read and
    written. There is one entry per argument, None for one that is not an array. `order` has each read in its turn: the
    position of the argument, and the numbers of the elements, counted row by row.
    """

    value: Any
    arrays: tuple
    reads: tuple
    writes: tuple
    order: tuple[tuple[int, np.ndarray], ...]


@dataclass(frozen=True)
class Profiled:
    """One call, and the profiles that it made: of each the number of every recorded step and the ops of its kernels, in
    their order. The student's process says so, so a test that looks at them also looks at what was counted.
    """

    value: Any
    profiles: tuple[tuple[tuple[int, tuple[str, ...]], ...], ...]

    def __post_init__(self) -> None:
        for number, ops in (step for profile in self.profiles for step in profile):
            check(type(number) is int and all(type(op) is str for op in ops), "a step has a number and ops")

    def recorded(self, schedule: Schedule, steps: int, ops: Sequence[str] | None = None) -> bool:
        """Whether a profile recorded the steps, of this many, that `schedule` asks for. Each of them ran `ops`, if
        those are given.
        """
        wanted = [step for step in range(steps) if schedule.phase(step) == "active"]
        return any(
            [number for number, _ in profile] == wanted
            and (ops is None or all(ran == tuple(ops) for _, ran in profile))
            for profile in self.profiles
        )


@dataclass(frozen=True)
class Drawn:
    """A figure: its markers as (x, y) in the units of its axes, and the scales of each pair of axes."""

    points: tuple[tuple[float, float], ...]
    scales: tuple[tuple[str, str], ...]

    def has(self, x: float, y: float) -> bool:
        """Whether a marker stands at (x, y), within a thousandth."""
        return any(abs(a / x - 1) < 1e-3 and abs(b / y - 1) < 1e-3 for a, b in self.points)


@dataclass(frozen=True)
class TimedCall:
    """One `rl.latency` of student code on the virtual clock.

    `by_op`, the counters and the bytes that came from the host and went to it say what one call did. `ran` lists the
    watched functions that the call entered, each as (name, ((shape, dtype, requires_grad), ...)). The student's process
    says so, so a test that looks at `ran` also looks at what was counted.
    """

    warmup: int
    samples_ms: np.ndarray
    ran: tuple[tuple[str, tuple], ...]
    by_op: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    uploaded_bytes: int = 0
    downloaded_bytes: int = 0
    meta_calls: int = 0

    @property
    def median_ms(self) -> float:
        return float(np.median(self.samples_ms))

    @property
    def moved_bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    def did(self, counted: Counted) -> bool:
        """Whether the call did what was `counted`, and nothing else, on the host either."""
        return all(getattr(self, name) == getattr(counted, name) for name in DONE)


@dataclass(frozen=True)
class Timed:
    """A call on the virtual clock: its value, and everything that it timed."""

    value: Any
    calls: tuple[TimedCall, ...]

    def calls_of(self, counted: Counted) -> list[TimedCall]:
        """The timed calls that did what was `counted`, and nothing else."""
        return [call for call in self.calls if call.did(counted)]

    def beside(self, counted: Counted) -> str:
        """What a timed call did beside the work that was `counted`, as a sentence in brackets, or nothing."""
        for call in self.calls:
            if call.macs == counted.macs and not call.did(counted):
                more = [
                    *(f"ran {name}" for name in call.by_op if call.by_op[name] > counted.by_op.get(name, 0)),
                    *["filled tensors from NumPy or Python"] * (call.uploaded_bytes > counted.uploaded_bytes),
                    *["took numbers out of tensors"] * (call.downloaded_bytes > counted.downloaded_bytes),
                    *["used tensors without memory"] * (call.meta_calls > counted.meta_calls),
                ]
                if more:
                    return f" (A timed call also {' and '.join(more)}: do not time that.)"
        return ""


def check(holds: bool, why: str) -> None:
    """Raise `Implausible` unless this holds."""
    if not holds:
        raise Implausible(f"The measurement is not plausible: {why}.")
