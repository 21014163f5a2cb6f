"""The table of a profile: one row per kernel, summed over the profiled steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from .._in_words import in_words
from .._numbers import whole
from ..results import ReadableMixin, ResultMixin, Table
from ..units import human, rounded
from .columns import cut, fixed, many
from .host_averages import SORTS as HOST_SORTS
from .host_averages import HostAverages

if TYPE_CHECKING:
    from .records import KernelRecord


@dataclass(frozen=True, slots=True)
class KernelAverage(ReadableMixin):
    """All calls of one kernel by one op on one device.

    Attributes
    ----------
    name, op, category : str
        As in `KernelRecord`.
    calls : int
        In all profiled steps; `calls_per_step` divides by their number.
    total_us, mean_us : float
        Microseconds, summed and per call.
    share : float
        Share in the summed duration of all kernels, 0 to 1.
    flops_per_s, bytes_per_s : float
        Counted work over measured time. 0 where the cost is unknown (kernels of other libraries), and for kernels of
        `rooflab.cuda.compile` that ran on the CPU, whose time says nothing about a GPU.
    device : str
        As in `KernelRecord`. Empty in rows that were saved before there was a device in them.
    """

    name: str
    op: str
    category: str
    calls: int
    calls_per_step: float
    total_us: float
    mean_us: float
    share: float
    flops_per_s: float
    bytes_per_s: float
    device: str = ""


_SORTS: dict[str, tuple[Callable[[KernelAverage], Any], bool]] = {  # key, largest first
    "duration": (lambda row: row.total_us, True),
    "mean": (lambda row: row.mean_us, True),
    "count": (lambda row: row.calls, True),
    "flops": (lambda row: row.flops_per_s, True),
    "bytes": (lambda row: row.bytes_per_s, True),
    "name": (lambda row: row.name, False),
    "op": (lambda row: row.op, False),
    "category": (lambda row: row.category, False),
}
_LABELS = ("kernel", "op", "category", "device")  # columns of text; numbers stand at the right
_FIGURES = ("calls", "per step", "total ms", "mean us", "share", "FLOP/s", "bytes/s")
_WIDEST = 60  # name of a kernel


class KernelAverages(ResultMixin, Sequence[KernelAverage]):
    """Rows by total duration, longest first; `str()` is the table."""

    def __init__(
        self, kernels: Sequence[KernelRecord], steps: int, note: str = "", host: HostAverages | str = "nothing recorded"
    ):
        groups: dict[tuple[str, str, str, str], list[KernelRecord]] = {}
        for kernel in kernels:
            groups.setdefault((kernel.name, kernel.op, kernel.category, kernel.device), []).append(kernel)
        whole_us = sum(kernel.duration_us for kernel in kernels)
        rows = [_average(key, members, steps, whole_us) for key, members in groups.items()]
        self._rows = sorted(rows, key=lambda row: -row.total_us)
        self._steps = steps
        self._note = note
        self._host = host

    @property
    def host(self) -> HostAverages:
        """The ops, ranges, submissions and waits of the host.

        Raises
        ------
        ValueError
            If the host was not recorded, or the times are a model's.
        """
        if isinstance(self._host, str):
            raise ValueError(f"[profile] host: {self._host}")
        return self._host

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index):
        return self._rows[index]

    def __iter__(self) -> Iterator[KernelAverage]:
        return iter(self._rows)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        calls = sum(row.calls for row in self._rows)
        return f"KernelAverages({many(len(self._rows), 'row')}, {many(calls, 'kernel')}; print() shows the table)"

    def _values(self) -> dict[str, Any]:
        return {"steps": self._steps, "note": self._note, "rows": self._rows, "host": self._host}

    def _figures(self) -> Table:
        return Table.of((row.to_dict() for row in self._rows), [field.name for field in fields(KernelAverage)])

    def _table(self) -> Table:
        note = f"{self._total()} {self._note}".rstrip()
        return self._shown(self._rows, _WIDEST, note)

    def _shown(self, rows: Sequence[KernelAverage], width: int, note: str = "") -> Table:
        """Some of the rows; with their device where the profile has several."""
        labels = _LABELS if len({row.device for row in self._rows}) > 1 else _LABELS[:-1]
        cells = [(*_names(row, width)[: len(labels)], *_cells(row)) for row in rows]
        return Table((*labels, *_FIGURES), cells, note=note, labels=len(labels))

    @in_words
    def table(self, sort_by: str = "duration", row_limit: int | None = None, max_name_width: int = _WIDEST) -> str:
        """The rows as text.

        Parameters
        ----------
        sort_by : str
            ``"duration"`` (total), ``"mean"``, ``"count"``, ``"flops"``, ``"bytes"`` (rates), largest first;
            ``"name"``, ``"op"`` or ``"category"``, by alphabet. With one of PyTorch's names, such as
            ``"cpu_time_total"``, ``"self_cpu_time_total"`` or ``"cuda_time_total"``, the table is that of `host`: ops
            and ranges with the time that they took on the host, and that of the kernels that they launched.
        row_limit : int, optional
            Rows to show; all when not given. The last line says how many are left out.
        max_name_width : int
            Longer kernel names are cut and end in "...".

        Returns
        -------
        str
            Rates are counted work over measured time, "-" where `KernelAverage` has none. There is a column for the
            device where the profile has several.

        Raises
        ------
        ValueError
            For an unknown `sort_by`, or a negative `row_limit`; for one of PyTorch's names where `host` is not known.
        """
        if sort_by in HOST_SORTS:
            return self.host.table(sort_by, row_limit, max_name_width)
        if sort_by not in _SORTS:
            names = ", ".join([*_SORTS, *HOST_SORTS])
            raise ValueError(f"[profile] sort_by: expected one of {names}; got {sort_by!r}")
        if row_limit is not None:
            row_limit = whole("[profile] row_limit", row_limit, least=0)
        key, descending = _SORTS[sort_by]
        rows = sorted(self._rows, key=key, reverse=descending)
        shown = rows if row_limit is None else rows[:row_limit]
        lines = self._shown(shown, max_name_width).lines()
        lines.insert(1, "-" * len(lines[0]))
        if len(shown) < len(rows):
            lines.append(f"... and {many(len(rows) - len(shown), 'row')} more")
        lines.append(f"{self._total()} {self._note}".rstrip())
        return "\n".join(lines)

    def _total(self) -> str:
        calls, time = (sum(getattr(row, field) for row in self._rows) for field in ("calls", "total_us"))
        return f"{many(calls, 'kernel')} in {many(self._steps, 'step')}, {human(time, 'us')} of kernel time."


def _average(key: tuple[str, str, str, str], members: list[KernelRecord], steps: int, whole_us: float) -> KernelAverage:
    total = sum(kernel.duration_us for kernel in members)
    seconds = 0.0 if members[0].is_interpreted else total * 1e-6
    return KernelAverage(
        *key[:3],
        device=key[3],
        calls=len(members),
        calls_per_step=len(members) / max(steps, 1),
        total_us=total,
        mean_us=total / len(members),
        share=total / whole_us if whole_us else 0.0,
        flops_per_s=sum(kernel.cost.flops for kernel in members) / seconds if seconds else 0.0,
        bytes_per_s=sum(kernel.cost.bytes for kernel in members) / seconds if seconds else 0.0,
    )


def _names(row: KernelAverage, width: int) -> tuple[str, ...]:
    return cut(row.name, width), row.op or "-", row.category, row.device


def _cells(row: KernelAverage) -> tuple[str, ...]:
    return (
        str(row.calls),
        rounded(row.calls_per_step, 6),
        fixed(row.total_us / 1e3, 3),
        fixed(row.mean_us, 2),
        f"{row.share:.1%}",
        human(row.flops_per_s, "FLOP/s") if row.flops_per_s else "-",
        human(row.bytes_per_s, "B/s") if row.bytes_per_s else "-",
    )
