"""What a recording of memory consists of."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _core
from .._stacks import Frame
from ..results import ReadableMixin


@dataclass(frozen=True, slots=True)
class Allocation(ReadableMixin):
    """A block of memory from its allocation to its end; the views of a tensor share one.

    Attributes
    ----------
    op : str
        The op that allocated it; "" for tensors made by the user.
    range : str
        The ranges open then, ``mlp/gate_proj``; "" when none was.
    is_scratch : bool
        Whether it is working memory of the op's kernel or of a library; no tensor ever holds it.
    start_us, end_us : float or None
        Microseconds since the recording began. None: allocated before it, or still held at its end.
    stack : tuple of Frame
        The Python code that asked for it, the innermost frame first; empty if it is older than the recording, and
        with ``record(with_stack=False)``.
    """

    op: str
    range: str
    device: str
    bytes: int
    is_scratch: bool
    start_us: float | None
    end_us: float | None
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Event(ReadableMixin):
    """Memory taken or given back.

    Attributes
    ----------
    time_us : float
        Microseconds since the recording began, on the host: when an op is submitted, not when a GPU runs it.
    bytes : int
        Bytes taken; negative when given back.
    live_bytes : int
        Bytes in all tensors afterwards, including those from before the recording.
    allocation : int
        Its place in `Timeline.allocations`.
    """

    time_us: float
    bytes: int
    op: str
    range: str
    device: str
    live_bytes: int
    allocation: int


@dataclass(frozen=True, slots=True)
class Phase(ReadableMixin):
    """A stretch of a recording, from one `Timeline.mark` to the next.

    Attributes
    ----------
    name : str
        As it was marked.
    events : range
        Places in `Timeline.events` of what happened in it.
    start_us, end_us : float
        Microseconds since the recording began: of its first event, and of the first event after it.
    """

    name: str
    events: range
    start_us: float
    end_us: float


@dataclass(frozen=True)
class Recording:
    """What a recorder of the core knows at its end, in a form that can be saved."""

    resident_bytes: int
    peak_bytes: int
    live_bytes: int
    duration_ns: int
    kept_blocks: list[tuple]
    kept_events: list[tuple]

    @classmethod
    def of(cls, recorder: _core.memory.Recorder | Recording) -> Recording:
        numbers = (recorder.resident_bytes, recorder.peak_bytes, recorder.live_bytes, recorder.duration_ns)
        return cls(*numbers, recorder.blocks(), recorder.events())

    def blocks(self) -> list[tuple]:
        return self.kept_blocks

    def events(self) -> list[tuple]:
        return self.kept_events
