"""The host's table of a profile: one row per op, range, submission and wait, under PyTorch's names of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .._in_words import in_words
from .._numbers import whole
from .._stacks import Frame
from ..results import ReadableMixin, ResultMixin, Table
from ..units import human
from .columns import cut, many
from .host import HostRecord


@dataclass(frozen=True, slots=True)
class HostAverage(ReadableMixin):
    """All records of one kind and name, over all profiled steps.

    Attributes
    ----------
    name, kind : str
        As in `HostRecord`.
    calls : int
        How many records there are.
    cpu_us, self_cpu_us : float
        Time on the host: with what is inside, a record inside another one of the same name not counted again; and
        without.
    device_us, self_device_us : float
        Time of the GPU's kernels that were launched inside, likewise.
    launches : int
        Submissions to a device inside.
    input_shapes : str
        Of an op's operands, if rows were made for each shape; otherwise "".
    stack : tuple of Frame
        Innermost frames of the Python code, if rows were made for each stack; otherwise ().
    """

    name: str
    kind: str
    calls: int
    cpu_us: float
    self_cpu_us: float
    device_us: float
    self_device_us: float
    launches: int
    input_shapes: str = ""
    stack: tuple[Frame, ...] = ()

    @property
    def cpu_mean_us(self) -> float:
        """Microseconds of the host for a call, with what it called inside."""
        return self.cpu_us / self.calls

    @property
    def device_mean_us(self) -> float:
        """Microseconds of the kernels that a call launched, with what it called inside."""
        return self.device_us / self.calls


_ON_DEVICE: dict[str, Callable[[HostAverage], Any]] = {
    "time_total": lambda row: row.device_us,
    "time": lambda row: row.device_mean_us,
}
SORTS: dict[str, Callable[[HostAverage], Any]] = {
    "cpu_time_total": lambda row: row.cpu_us,
    "self_cpu_time_total": lambda row: row.self_cpu_us,
    "cpu_time": lambda row: row.cpu_mean_us,
    **{f"{device}_{key}": value for device in ("cuda", "device") for key, value in _ON_DEVICE.items()},
    **{f"self_{device}_time_total": lambda row: row.self_device_us for device in ("cuda", "device")},
    "launches": lambda row: row.launches,
}
"""PyTorch's names, and ``launches``; the largest comes first."""
_LABELS = 2  # columns of text at the left
_WIDEST = 60  # name of an op or a range


class HostAverages(ResultMixin, Sequence[HostAverage]):
    """Rows by their time on the host, longest first; `str()` is the table."""

    def __init__(
        self,
        records: Sequence[HostRecord],
        whole_us: float,
        note: str = "",
        by_shape: bool = False,
        stack_frames: int = 0,
    ):
        groups: dict[tuple[str, str, str, tuple[Frame, ...]], list[HostRecord]] = {}
        for record in records:
            shapes = record.input_shapes if by_shape else ""
            key = (record.name, record.kind, shapes, record.stack[:stack_frames])
            groups.setdefault(key, []).append(record)
        self._rows = sorted((_average(*key, group) for key, group in groups.items()), key=lambda row: -row.cpu_us)
        self._whole_us = whole_us
        self._note = note
        self._has_shapes, self._has_stacks = by_shape, stack_frames > 0

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index):
        return self._rows[index]

    def __iter__(self) -> Iterator[HostAverage]:
        return iter(self._rows)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"HostAverages({many(len(self._rows), 'row')}; print() shows the table)"

    @in_words
    def table(
        self, sort_by: str = "cpu_time_total", row_limit: int | None = None, max_name_width: int = _WIDEST
    ) -> str:
        """The rows as text: times with their units, shares of the profiled time.

        Parameters
        ----------
        sort_by : str
            ``"cpu_time_total"``, ``"self_cpu_time_total"``, ``"cpu_time"`` (the mean), the same with ``cuda`` or
            ``device`` in place of ``cpu``, or ``"launches"``.
        row_limit : int, optional
            Rows to show; all when not given.
        max_name_width : int
            Longer names are cut and end in "...".

        Raises
        ------
        ValueError
            For an unknown `sort_by`, or a negative `row_limit`.
        """
        if sort_by not in SORTS:
            raise ValueError(f"[profile] sort_by: expected one of {', '.join(SORTS)}; got {sort_by!r}")
        if row_limit is not None:
            row_limit = whole("[profile] row_limit", row_limit, least=0)
        rows = sorted(self._rows, key=SORTS[sort_by], reverse=True)
        shown = rows if row_limit is None else rows[:row_limit]
        lines = self._shown(shown, max_name_width).lines()
        lines.insert(1, "-" * len(lines[0]))
        if len(shown) < len(rows):
            lines.append(f"... and {many(len(rows) - len(shown), 'row')} more")
        return "\n".join([*lines, *([self._note] if self._note else [])])

    def _values(self) -> dict[str, Any]:
        return {"whole_us": self._whole_us, "note": self._note, "rows": self._rows}

    def _figures(self) -> Table:
        return Table.of((row.to_dict() for row in self._rows), [field.name for field in fields(HostAverage)])

    def _table(self) -> Table:
        return self._shown(self._rows, _WIDEST)

    def _shown(self, rows: Sequence[HostAverage], width: int) -> Table:
        on_device = any(row.device_us for row in self._rows)
        cells = [self._cells(row, on_device, width) for row in rows]
        return Table(self._head(on_device), cells, note=self._note, labels=_LABELS)

    def _head(self, on_device: bool) -> list[str]:
        head = ["name", "kind", "self CPU %", "self CPU", "CPU total %", "CPU total", "CPU mean"]
        head += ["self CUDA", "CUDA total", "CUDA mean"] if on_device else []
        head += ["launches", "calls"]
        return [*head, *(["input shapes"] * self._has_shapes), *(["called from"] * self._has_stacks)]

    def _cells(self, row: HostAverage, on_device: bool, width: int) -> list[str]:
        all_us = self._whole_us or 1.0
        cells = [cut(row.name, width), row.kind, f"{row.self_cpu_us / all_us:.1%}", human(row.self_cpu_us, "us")]
        cells += [f"{row.cpu_us / all_us:.1%}", human(row.cpu_us, "us"), human(row.cpu_mean_us, "us")]
        if on_device:
            cells += [human(time, "us") for time in (row.self_device_us, row.device_us, row.device_mean_us)]
        cells += [str(row.launches), str(row.calls)]
        if self._has_shapes:
            cells.append(row.input_shapes)
        if self._has_stacks:
            cells.append(" < ".join(f"{frame.filename}:{frame.line} {frame.name}" for frame in row.stack))
        return cells


def _average(name: str, kind: str, shapes: str, stack: tuple[Frame, ...], records: Sequence[HostRecord]) -> HostAverage:
    outermost = [record for record in records if record.is_outermost]
    return HostAverage(
        name,
        kind,
        calls=len(records),
        cpu_us=sum(record.duration_us for record in outermost),
        self_cpu_us=sum(record.self_us for record in records),
        device_us=sum(record.device_us for record in outermost),
        self_device_us=sum(record.self_device_us for record in records),
        launches=sum(record.launches for record in outermost),
        input_shapes=shapes,
        stack=stack,
    )


def outside_us(records: Sequence[HostRecord], whole_us: float) -> float:
    """What is left of the profiled time without the ops, submissions and waits of the first thread: Python, mostly."""
    ends = float("-inf")
    inside = 0.0
    for record in records:
        if record.thread or record.kind == "range" or record.start_us < ends:
            continue
        inside += record.duration_us
        ends = record.start_us + record.duration_us
    return max(whole_us - inside, 0.0)
