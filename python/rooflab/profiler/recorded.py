"""What a profile holds once it has ended: its records, tables of them, who waited for whom, and files."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from .._in_words import in_words
from .._nothing import NOTHING_RAN
from .._numbers import whole
from ..files import replacing
from ..results import ResultMixin, Table, flat
from .activities import ProfilerActivity
from .averages import KernelAverages
from .categories import CATEGORIES
from .chrome_trace import trace_events
from .columns import many, sentence
from .host import HostRecord
from .host_averages import HostAverages, outside_us
from .records import KernelRecord, Range, Step
from .schedules import Schedule
from .waiting import DeviceWaiting, waiting


class Recorded(ResultMixin):
    """The results of a `Profile`, which says how they come about."""

    activities: frozenset[ProfilerActivity]
    record_shapes: bool
    with_stack: bool
    schedule: Schedule | None
    source: str
    reason: str
    dropped: int

    _finished: bool
    _kernels: list[KernelRecord]
    _host: list[HostRecord]
    _ranges: list[Range]
    _steps: list[Step]

    def _result(self, records: list) -> list:
        if not self._finished:
            raise RuntimeError("[profile] results are available once the with-block has ended")
        return records

    @property
    def kernels(self) -> list[KernelRecord]:
        """Every kernel of the profiled steps, by start."""
        return self._result(self._kernels)

    @property
    def ranges(self) -> list[Range]:
        """Every range of the profiled steps, by start."""
        return self._result(self._ranges)

    @property
    def host(self) -> list[HostRecord]:
        """What the host did in the profiled steps: ops, ranges, submissions and waits, by start; on the kernels' clock.

        Empty in a model, and without ``ProfilerActivity.CPU``.
        """
        return self._result(self._host)

    @property
    def waiting(self) -> list[DeviceWaiting]:
        """For each device that ran kernels: how long it waited, and the gap between two kernels. Empty in a model."""
        hears_host = ProfilerActivity.CPU in self.activities
        return [] if self.is_model else waiting(self.kernels, self.steps, self.host if hears_host else None)

    @property
    def verdict(self) -> str:
        """Who waited for whom, in a sentence for each device.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.profile() as prof:
        ...     _ = rl.ones(100, 100) @ rl.ones(100, 100)
        >>> print(prof.verdict)  # doctest: +ELLIPSIS
        kernels on the CPU ran in ...% of the time; ...
        """
        if self.is_model:
            return f"times are a model's, in which nobody waits but for the gaps ({self.reason})"
        unseen = " (kernels of other libraries are not seen)" if self.source == "cuda events" else ""
        if not self.kernels:
            return self._nothing()
        return "; ".join(["; ".join(map(str, self.waiting)) + unseen, *self._interpreted()])

    def _interpreted(self) -> list[str]:
        """A sentence about CUDA kernels that ran on the CPU, where there are any."""
        says = "kernels of rl.cuda.compile ran on the CPU, and how long that took says nothing about a GPU"
        return [says] * any(kernel.is_interpreted for kernel in self.kernels)

    def _nothing(self) -> str:
        """Why there is no record of a kernel: nothing ran, or what ran was not to be recorded."""
        if not self.steps:
            return "no step was profiled, and what runs outside of the profiled steps is not recorded"
        if self.is_model:
            return f"no launch on a meta device was recorded ({self.reason})"
        if ProfilerActivity.CPU not in self.activities:
            return "no kernel of a GPU was recorded; activities leaves out what runs on the CPU"
        if self.host:
            left_out = "; activities leaves out other devices" * (ProfilerActivity.CUDA not in self.activities)
            return f"no kernel was recorded{left_out}"
        return NOTHING_RAN if self.schedule is None else NOTHING_RAN.replace("this block", "the profiled steps")

    @property
    def steps(self) -> list[Step]:
        """The profiled steps."""
        return self._result(self._steps)

    @property
    def is_model(self) -> bool:
        """Whether the times follow from a model of the machine (`LaunchModel`) and are not measured."""
        return self.source == "model"

    @property
    def devices(self) -> list[str]:
        """Where the kernels ran: ``["cpu"]``, ``["cuda:0"]``."""
        return sorted({kernel.device for kernel in self.kernels})

    @in_words
    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KernelAverages:
        """One row per kernel and op, over all profiled steps; print it, or its ``table(sort_by, row_limit)``.

        Sorted by one of PyTorch's names, ``table(sort_by="cuda_time_total")``, it has a row per op and range instead.

        Parameters
        ----------
        group_by_input_shape : bool
            A row of its own for each op's shapes; the profile needs ``record_shapes=True``.
        group_by_stack_n : int
            A row of its own for each of the innermost frames that called an op; the profile needs
            ``with_stack=True``.

        Returns
        -------
        KernelAverages
            Its text is the table.

        Raises
        ------
        ValueError
            If the profile did not record what rows are to be grouped by.
        RuntimeError
            Before the with-block has ended.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.profile() as prof:
        ...     _ = rl.ones(4, 4) + 1
        >>> sorted(row.op for row in prof.key_averages())
        ['add', 'fill']
        """
        group_by_stack_n = whole("[profile] group_by_stack_n", group_by_stack_n, least=0)
        if group_by_input_shape and not self.record_shapes:
            raise ValueError("[profile] group_by_input_shape: expected a profile with record_shapes=True")
        if group_by_stack_n and not self.with_stack:
            raise ValueError("[profile] group_by_stack_n: expected a profile with with_stack=True")
        host = self._host_averages(group_by_input_shape, group_by_stack_n)
        return KernelAverages(self.kernels, len(self.steps), self._kernels_note(), host)

    def _kernels_note(self) -> str:
        """Where the kernels ran, by which clock, what is missing, and who waited."""
        missing = f" {self.dropped} records are missing." if self.dropped else ""
        if not self.kernels:
            return sentence(self._nothing()) + missing
        clock = f"times are a model's, not measured ({self.reason})" if self.is_model else f"times by {self.source}"
        says = [self.verdict] * (not self.is_model) if self.devices != ["cpu"] else self._interpreted()
        return " ".join([f"They ran on {' and '.join(self.devices)}; {clock}.{missing}", *map(sentence, says)])

    def _host_averages(self, by_shape: bool, stack_frames: int) -> HostAverages | str:
        if self.is_model:
            return "the times of this profile are a model's, and the host has none there"
        if ProfilerActivity.CPU not in self.activities:
            return "the host was not recorded; activities needs ProfilerActivity.CPU"
        whole = sum(step.duration_us for step in self.steps)
        outside = outside_us(self.host, whole)
        share = f"{outside / whole:.1%} of the time" if whole else "no time"
        note = f"Outside of all ops, submissions and waits: {share} (Python, other libraries)."
        note = f"{note}\n{sentence(self.verdict)}" if self.host else sentence(self._nothing())
        return HostAverages(self.host, whole, note, by_shape, stack_frames)

    def count_kernels(self, per_step: bool = True) -> dict[str, int]:
        """Kernels by category.

        Parameters
        ----------
        per_step : bool
            Counts of one step, which every step must share; False sums all steps.

        Returns
        -------
        dict of str to int
            The names of `rooflab.profiler.CATEGORIES`, and total.

        Raises
        ------
        ValueError
            If no step was profiled, or the steps differ and `per_step` asks for one answer.

        Examples
        --------
        >>> import rooflab as rl
        >>> x = rl.zeros(4, 4)
        >>> with rl.profile() as prof:
        ...     _ = (x + x) * x
        >>> prof.count_kernels()["elementwise"]
        2
        """
        if not self.steps:
            raise ValueError("[profile] count_kernels: no step was profiled")
        of_step = {step.number: Counter[str]() for step in self.steps}
        for kernel in self.kernels:
            of_step[kernel.step][kernel.category] += 1
        counts = list(of_step.values())
        if not per_step:
            counts = [sum(counts, Counter())]
        if any(count != counts[0] for count in counts):
            totals = ", ".join(f"step {number}: {sum(count.values())}" for number, count in of_step.items())
            raise ValueError(
                f"[profile] count_kernels: the steps differ ({totals}); per_step=False sums them, and prof.step() "
                "belongs at the end of each step"
            )
        return {name: counts[0][name] for name in CATEGORIES} | {"total": sum(counts[0].values())}

    @in_words
    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write a JSON file for https://ui.perfetto.dev: ranges as nested slices, kernels by device and stream.

        Times are microseconds since the first profiled step; each kernel carries its op, range, launch shape and cost.

        Parameters
        ----------
        path : str or path
            Where to write the file; it is replaced. A name that ends in .gz gets a compressed file, as in PyTorch.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.
        OSError
            When the file cannot be written.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.profile() as prof:
        ...     _ = rl.ones(4, 4) + 1
        >>> prof.export_chrome_trace("trace.json")  # doctest: +SKIP
        """
        trace = {
            "traceEvents": trace_events(self.kernels, self.ranges, self.steps, self.host),
            "displayTimeUnit": "ns",
            "otherData": {
                "source": "a model, not a measurement" if self.is_model else self.source,
                "reason": self.reason,
                "dropped": self.dropped,
                "verdict": self.verdict,
            },
        }
        text = json.dumps(trace, allow_nan=False).encode()
        with replacing(path) as unfinished:
            unfinished.write_bytes(gzip.compress(text) if Path(path).suffix == ".gz" else text)

    def plot_timeline(self, step: int | None = None, rows: str = "range", **options: Any):
        """A figure of one step's kernels over time.

        Parameters
        ----------
        step : int, optional
            The number of the step; by default the last one.
        rows : str
            What gets a row of its own, as in `rooflab.plots.plot_timeline`.
        **options
            The others of `rooflab.plots.plot_timeline`.

        Returns
        -------
        matplotlib.figure.Figure
            A bar for each kernel.

        Raises
        ------
        ValueError
            For a step that was not profiled.
        RuntimeError
            Before the with-block has ended.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.profile() as prof:
        ...     _ = rl.ones(4, 4) + 1
        >>> len(prof.plot_timeline().axes) > 0
        True
        """
        from ..plots import plot_timeline

        numbers = [known.number for known in self.steps]
        if not numbers or (step is not None and step not in numbers):
            raise ValueError(f"[profile] plot_timeline: step: expected one of {numbers}, got {step}")
        chosen = numbers[-1] if step is None else step
        return plot_timeline([kernel for kernel in self.kernels if kernel.step == chosen], rows=rows, **options)

    def _values(self) -> dict[str, Any]:
        if not self._finished:
            return {"unfinished": id(self)}  # which is equal to itself alone
        return {
            name: getattr(self, name) for name in ("source", "reason", "dropped", "steps", "ranges", "kernels", "host")
        }

    def to_dict(self) -> dict[str, Any]:
        """The profile as plain values.

        Returns
        -------
        dict of str to object
            Source, steps, ranges, kernels and the host's records.

        Raises
        ------
        RuntimeError
            Before the with-block has ended.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.profile() as prof:
        ...     _ = rl.ones(4, 4) + 1
        >>> len(prof.to_dict()["kernels"])
        2
        """
        self._result([])
        return super().to_dict()

    def _figures(self) -> Table:
        names = [one.name for one in fields(KernelRecord) if one.name != "cost"]
        return Table.of((flat(kernel.to_dict()) for kernel in self.kernels), names)

    def _table(self) -> Table:
        return self.key_averages()._table() if self._finished else Table((), (), note=repr(self))

    def __getstate__(self) -> dict[str, Any]:
        self._result([])
        return vars(self)

    def __repr__(self) -> str:
        if not self._finished:
            return "Profile(not started)"
        if not self._kernels and not self._host:
            return f"Profile({many(len(self._steps), 'step')}: {self._nothing()})"
        on = f" on {' and '.join(self.devices)}" if self._kernels else ""
        clock = ", not measured" if self.is_model else ""
        ran = f"{many(len(self._steps), 'step')}, {many(len(self._kernels), 'kernel')}"
        return f"Profile({ran}{on}, source={self.source!r}{clock})"
