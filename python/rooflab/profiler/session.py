"""A profile: which steps it keeps, when the recorder runs, and what it found."""

from __future__ import annotations

import json
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from .. import _core, _stacks
from .._nothing import NOTHING_RAN
from ..results import ResultMixin, Table, flat
from .activities import ProfilerActivity, activities_of
from .averages import KernelAverages
from .categories import CATEGORIES, category
from .chrome_trace import trace_events
from .columns import sentence
from .host import HostRecord, host_records
from .host_averages import HostAverages, outside_us
from .modelled import LaunchModel, launch_model, lay_out
from .records import KernelRecord, Range, Step
from .schedules import Schedule
from .waiting import DeviceWaiting, waiting

_EVERY_STEP = Schedule(0, 0, 1, repeat=0)
_lock = threading.Lock()
_running: list[Profile] = []  # one at most


@dataclass
class Profile(ResultMixin):
    """A profile, made by `profile`; its results are available once the block has ended.

    Attributes
    ----------
    source : str
        Where times come from: ``"cupti"``, ``"cuda events"`` or ``"cpu clock"``, which measure, or ``"model"``;
        `reason` says why in a sentence.
    dropped : int
        Records known to be missing. A warning says so at the end of the block.
    """

    schedule: Schedule | None = None
    wanted_source: str = "auto"
    model: LaunchModel | None = None
    activities: frozenset[ProfilerActivity] = frozenset(ProfilerActivity)
    record_shapes: bool = False
    with_stack: bool = False
    source: str = field(default="none", init=False)
    reason: str = field(default="no step was profiled yet", init=False)
    dropped: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._plan = self.schedule or _EVERY_STEP
        self._step = 0
        self._session: _core.ProfilerSession | None = None
        self._note = ""
        self._finished = False
        self._kernels: list[KernelRecord] = []
        self._host: list[HostRecord] = []
        self._ranges: list[Range] = []
        self._steps: list[Step] = []

    def __enter__(self) -> Profile:
        with _lock:
            if _running or self._finished:
                why = "a profile is running already: profiles do not nest" if _running else "a profile runs once"
                raise RuntimeError(f"[profile] {why}")
            _running.append(self)
        try:
            self._enter_step()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            self._finish()
        except Exception:
            if error is None:  # otherwise the block's own error says more
                raise
        finally:
            self._release()
        if kind is None and not self._steps:
            needed = self._plan.wait + self._plan.warmup + 1
            self._warn(f"no step was profiled: the schedule begins with step {needed}, the block had {self._step + 1}")
        if self.dropped:
            self._warn(f"{self.dropped} kernel records are missing from the profile ({self.source}: {self.reason})")

    def step(self) -> None:
        """End a step. What follows belongs to the next one.

        Where a profiled step begins or ends this waits for the devices, so that each kernel falls into its own step.
        """
        if not self._is_running():
            raise RuntimeError("[profile] step: expected to be called inside the with-block")
        if self._finished:
            self._step += 1
            return
        if self._plan.phase(self._step) == "active" and self._session is not None:
            self._session.end_step()
        self._step += 1
        self._enter_step()

    def _enter_step(self) -> None:
        phase = self._plan.phase(self._step)
        if phase == "done":
            self._finish()
        elif phase != "wait" and self._session is None:
            source, self._note = _choose_source(self.wanted_source, self.activities)
            session = _core.ProfilerSession(source, ProfilerActivity.CPU in self.activities, self.record_shapes)
            session.start()
            self._session = session
            if self.with_stack:
                _stacks.begin()
        if phase == "active" and self._session is not None:
            self._session.begin_step(self._step)

    def _finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        session, self._session = self._session, None
        if session is None:
            return
        try:
            session.stop()
            self._read(session)
        finally:
            if self.with_stack:
                _stacks.end()

    def _read(self, session: _core.ProfilerSession) -> None:
        on_gpu = ProfilerActivity.CUDA in self.activities
        self.dropped = session.dropped if on_gpu else 0
        kernels, ranges, steps = session.kernels(), session.ranges(), session.steps()
        if ProfilerActivity.CPU not in self.activities:
            kernels = [kernel for kernel in kernels if kernel["device"] != "cpu"]
        self.source, self.reason = session.source, self._note or session.reason
        if self.is_model:
            models = {device: self.model or launch_model(device) for device in {kernel["device"] for kernel in kernels}}
            lay_out(kernels, [ranges, steps], models)
            self.reason = "; ".join([session.reason, *(str(model) for _, model in sorted(models.items()))])
        last = steps[-1]["number"] if steps else -1
        # Nothing ran after the last step(), so the end of the block is no step.
        if len(steps) > 1 and last == self._step and all(kernel["step"] != last for kernel in kernels):
            steps.pop()
        kept = {step["number"] for step in steps}
        origin = steps[0]["start_ns"] if steps else 0
        if not self.is_model:
            spans, kept_ranges = ([s for s in of if s["step"] in kept] for of in (session.host(), ranges))
            if ProfilerActivity.CPU in self.activities:
                frames = _stacks.frames if self.with_stack else lambda _: ()  # others may take stacks meanwhile
                self._host = host_records(spans, kept_ranges, kernels, origin, frames)
        self._steps = [Step(**_microseconds(step, origin)) for step in steps]
        self._ranges = [Range(**_microseconds(span, origin)) for span in ranges if span["step"] in kept]
        self._kernels = [
            KernelRecord(category=category(kernel["name"], kernel["op"]), **_microseconds(kernel, origin))
            for kernel in kernels
        ]

    def _is_running(self) -> bool:
        return bool(_running) and _running[0] is self

    def _release(self) -> None:
        with _lock:
            if self._is_running():
                _running.clear()

    def _warn(self, text: str) -> None:
        warnings.warn(f"[profile] {text}", RuntimeWarning, stacklevel=3)

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
        return "; ".join(str(device) for device in self.waiting) + unseen if self.kernels else NOTHING_RAN

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

        Raises
        ------
        ValueError
            If the profile did not record what rows are to be grouped by.
        """
        if group_by_input_shape and not self.record_shapes:
            raise ValueError("[profile] group_by_input_shape: expected a profile with record_shapes=True")
        if group_by_stack_n and not self.with_stack:
            raise ValueError("[profile] group_by_stack_n: expected a profile with with_stack=True")
        if group_by_stack_n < 0:
            raise ValueError(f"[profile] group_by_stack_n: expected 0 or more, got {group_by_stack_n}")
        host = self._host_averages(group_by_input_shape, group_by_stack_n)
        return KernelAverages(self.kernels, len(self.steps), self._kernels_note(), host)

    def _kernels_note(self) -> str:
        """Where the kernels ran, by which clock, what is missing, and who waited."""
        missing = f" {self.dropped} records are missing." if self.dropped else ""
        if not self.kernels:
            return ("No kernel ran." if self.host else sentence(NOTHING_RAN)) + missing
        clock = f"times are a model's, not measured ({self.reason})" if self.is_model else f"times by {self.source}"
        verdict = "" if self.is_model or self.devices == ["cpu"] else f" {sentence(self.verdict)}"
        return f"They ran on {' and '.join(self.devices)}; {clock}.{missing}{verdict}"

    def _host_averages(self, by_shape: bool, stack_frames: int) -> HostAverages | str:
        if self.is_model:
            return "the times of this profile are a model's, and the host has none there"
        if ProfilerActivity.CPU not in self.activities:
            return "the host was not recorded; activities needs ProfilerActivity.CPU"
        whole = sum(step.duration_us for step in self.steps)
        outside = outside_us(self.host, whole)
        share = f"{outside / whole:.1%} of the time" if whole else "no time"
        note = f"Outside of all ops, submissions and waits: {share} (Python, other libraries)."
        note = f"{note}\n{sentence(self.verdict)}" if self.host else sentence(NOTHING_RAN)
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

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Writes a JSON file for https://ui.perfetto.dev: ranges as nested slices, kernels by device and stream.

        Times are microseconds since the first profiled step; each kernel carries its op, range, launch shape and cost.
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
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file, allow_nan=False)

    def plot_timeline(self, step: int | None = None, rows: str = "range", **options: Any):
        """A figure of one step's kernels over time (`rooflab.plots.plot_timeline`); the last step when not given."""
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
        """Source, steps, ranges, kernels and the host's records as plain values."""
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
            return "Profile(running)" if self._is_running() else "Profile(not started)"
        if self._steps and not self._kernels and not self._host:
            return f"Profile({len(self._steps)} steps: {NOTHING_RAN})"
        on = f" on {' and '.join(self.devices)}" if self._kernels else ""
        clock = ", not measured" if self.is_model else ""
        return f"Profile({len(self._steps)} steps, {len(self._kernels)} kernels{on}, source={self.source!r}{clock})"


def profile(
    schedule: Schedule | None = None,
    *,
    activities: Iterable[object] | None = None,
    record_shapes: bool = False,
    with_stack: bool = False,
    source: str = "auto",
    model: LaunchModel | None = None,
) -> Profile:
    """Record the kernels that run in a with-block, and what the host does meanwhile.

    Recording costs the host about a microsecond for each op, and more with stacks.

    Parameters
    ----------
    schedule : Schedule, optional
        Which steps to keep, see `schedule`; each ends with ``prof.step()``. Without it every step is kept, and
        without a call of ``prof.step()`` the block is one step.
    activities : iterable of ProfilerActivity, optional
        What to record, as in PyTorch: ``ProfilerActivity.CPU`` the host with its ops, and kernels that run there;
        ``ProfilerActivity.CUDA`` the kernels of a GPU, or a model's. Both when not given.
    record_shapes : bool
        Note the shapes of each op's operands: `HostRecord.input_shapes`.
    with_stack : bool
        Note the Python code that called each op: `HostRecord.stack`.
    source : str
        ``"auto"``: CUPTI on a GPU, which sees other libraries' kernels too; CUDA events around rooflab's launches
        where CUPTI is missing or refused; a monotonic clock on the CPU. ``"cupti"``, ``"cuda events"`` or
        ``"cpu clock"`` insist on one. Launches on a meta device, where nothing runs, get the times of a model, and
        those on other devices are then left out; ``"model"`` insists on that.
    model : LaunchModel, optional
        How long launches on meta devices last, from `rooflab.profiler.launch_model`. Default: the datasheet of the
        device's name, with 2 us between launches.

    Returns
    -------
    Profile
        With `kernels`, `host`, `devices`, `steps`, `ranges`, `waiting`, `verdict`, `key_averages`, `count_kernels`,
        `export_chrome_trace` and `plot_timeline`.

    Raises
    ------
    RuntimeError
        On entry, if another profile is running. CudaError if `source` insists on what this machine lacks.
    ValueError
        For unknown activities, none, or a `source` that contradicts them.

    Examples
    --------
    >>> import rooflab as rl
    >>> with rl.profile() as prof, rl.range("mlp"):
    ...     _ = rl.zeros(8) + 1
    >>> [(kernel.op, kernel.range) for kernel in prof.kernels if kernel.op == "add"]
    [('add', 'mlp')]
    >>> x = rl.empty(1_200_000, device=rl.meta("H200"))
    >>> with rl.profile() as prof:
    ...     _ = x + 1  # reads and writes 4.8 MB each: 2 us at 4.8 TB/s
    >>> prof.is_model, prof.kernels[0].duration_us, prof.steps[0].duration_us  # the step has a gap of 2 us too
    (True, 2.0, 4.0)
    """
    chosen = activities_of(activities)
    if ProfilerActivity.CUDA not in chosen and source not in ("auto", "cpu clock"):
        raise ValueError(f"[profile] source: {source!r} is of a GPU or a model, and activities has only the CPU")
    return Profile(schedule, source, model, chosen, bool(record_shapes), bool(with_stack))


def _choose_source(wanted: str, activities: frozenset[ProfilerActivity]) -> tuple[str, str]:
    """The source to ask for, with a reason when it is not the caller's. Two users of CUPTI would break each other."""
    if ProfilerActivity.CUDA not in activities:
        return "cpu clock", "activities has only the CPU; kernels of a GPU are not recorded"
    torch = sys.modules.get("torch")
    profiler = getattr(getattr(torch, "autograd", None), "profiler", None)
    if not getattr(profiler, "_is_profiler_enabled", False):
        return wanted, ""
    if wanted == "cupti":
        raise RuntimeError("[profile] source: CUPTI is held by PyTorch's profiler, which is running")
    if wanted == "auto" and _core.cuda.is_available():
        return "cuda events", "PyTorch's profiler is running and holds CUPTI; kernels of other libraries are not seen"
    return wanted, ""


def _microseconds(record: dict[str, Any], origin_ns: int) -> dict[str, Any]:
    start, duration = record.pop("start_ns"), record.pop("duration_ns")
    return record | {"start_us": (start - origin_ns) / 1e3, "duration_us": duration / 1e3}
