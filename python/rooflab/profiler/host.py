"""What the host did in a profile: ops, ranges, submissions to a device and waits for one, each inside the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._stacks import Frame
from ..results import ReadableMixin

KINDS = ("range", "op", "part", "launch", "wait")
"""Kinds of `HostRecord`. A part is what an op does under a name of its own, such as one rule of a backward pass."""


@dataclass(frozen=True, slots=True)
class HostRecord(ReadableMixin):
    """A stretch of one thread's time, on the same clock as the kernels.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
        Of the op or range; ``launch``, ``fill`` and ``launch graph`` for submissions to a GPU; ``synchronize``,
        ``copy and wait`` and ``end of step`` for waits.
    range : str
        The ranges open then, ``mlp/gate_proj``.
    self_us : float
        `duration_us` without what is inside. A kernel on the CPU is part of its op's own time.
    device_us, self_device_us : float
        Time of the GPU's kernels that were launched inside: all of them, and those launched by no inner record.
    launches : int
        Submissions inside: kernels, fills, copies, replays of graphs.
    launch : int
        `KernelRecord.id` of what a submission started; 0 for other kinds.
    is_outermost : bool
        Whether no record of the same kind and name is around it.
    input_shapes : str
        Of an op's operands, ``[[2, 3], [3, 4]]``; "" without ``record_shapes=True``. An operand that is a number has
        ``[]``.
    stack : tuple of Frame
        The Python code that called, the innermost frame first; empty without ``with_stack=True``.
    parent : int or None
        The place in `Profile.host` of the record around it; None if there is none.
    """

    kind: str
    name: str
    range: str
    thread: int
    step: int
    start_us: float
    duration_us: float
    self_us: float
    device_us: float
    self_device_us: float
    launches: int
    launch: int = 0
    is_outermost: bool = True
    input_shapes: str = ""
    stack: tuple[Frame, ...] = ()
    parent: int | None = None


class _Open:
    """A record whose inner records are still to come. Times are nanoseconds."""

    def __init__(self, span: dict[str, Any], around: list[_Open]):
        key = (span["kind"], span["name"])
        self.span = span
        self.parent = around[-1] if around else None
        self.is_outermost = all((outer.span["kind"], outer.span["name"]) != key for outer in around)
        self.place = (span["step"], span["thread"])
        self.end = span["start_ns"] + span["duration_ns"]
        self.inner = self.on_device = self.on_device_itself = self.launches = 0


def host_records(
    spans: Sequence[dict[str, Any]],
    ranges: Sequence[dict[str, Any]],
    kernels: Sequence[dict[str, Any]],
    origin_ns: int,
    frames: Callable[[int], tuple[Frame, ...]],
) -> list[HostRecord]:
    """Join what the core noted of the host, its ranges and the kernels.

    Parameters
    ----------
    spans, ranges, kernels : sequence of dict
        As `_core.ProfilerSession` gives them.
    origin_ns : int
        When the profile began.
    frames : callable
        The stack of a number.
    """
    on_device = Counter[int]()
    for kernel in kernels:
        if kernel["device"] != "cpu" and kernel["id"]:
            on_device[kernel["id"]] += kernel["duration_ns"]
    found: list[_Open] = []
    around: list[_Open] = []
    for span in sorted([*spans, *map(_of_range, ranges)], key=_outer_first):
        place, start = (span["step"], span["thread"]), span["start_ns"]
        while around and (around[-1].place != place or around[-1].end <= start):
            around.pop()
        if span["launch"]:
            for outer in around:
                outer.launches += 1
                outer.on_device += on_device[span["launch"]]
            if around:
                around[-1].on_device_itself += on_device[span["launch"]]
            if span["device"] == "cpu":  # that is the kernel itself
                continue
        if around:
            around[-1].inner += span["duration_ns"]
        found.append(_Open(span, around))
        around.append(found[-1])
    found.sort(key=lambda record: (record.span["start_ns"], -record.span["duration_ns"]))
    places: dict[_Open | None, int] = {record: place for place, record in enumerate(found)}
    return [_closed(record, places.get(record.parent), origin_ns, frames) for record in found]


def _of_range(span: dict[str, Any]) -> dict[str, Any]:
    same = {key: span[key] for key in ("thread", "step", "start_ns", "duration_ns")}
    name = span["path"].rpartition("/")[2]
    return same | {"kind": "range", "name": name, "range": span["path"], "launch": 0, "shapes": "", "stack": 0}


def _outer_first(span: dict[str, Any]) -> tuple[int, int, int, int, int]:
    order = KINDS.index(span["kind"])
    return span["step"], span["thread"], span["start_ns"], -span["duration_ns"], order


def _closed(
    record: _Open, parent: int | None, origin_ns: int, frames: Callable[[int], tuple[Frame, ...]]
) -> HostRecord:
    span = record.span
    return HostRecord(
        span["kind"],
        span["name"],
        span["range"],
        span["thread"],
        span["step"],
        start_us=(span["start_ns"] - origin_ns) / 1e3,
        duration_us=span["duration_ns"] / 1e3,
        self_us=max(span["duration_ns"] - record.inner, 0) / 1e3,
        device_us=record.on_device / 1e3,
        self_device_us=record.on_device_itself / 1e3,
        launches=record.launches,
        launch=span["launch"],
        is_outermost=record.is_outermost,
        input_shapes=span["shapes"],
        stack=frames(span["stack"]),
        parent=parent,
    )
