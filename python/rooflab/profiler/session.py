"""A profile: which steps it keeps, and when the recorder runs."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import _core, _stacks
from .._habits import PROFILE, no_member
from .._in_words import in_words
from .activities import ProfilerActivity, activities_of
from .categories import category
from .host import HostRecord, host_records
from .modelled import LaunchModel, launch_model, lay_out
from .recorded import Recorded
from .records import KernelRecord, Range, Step
from .schedules import Schedule

_EVERY_STEP = Schedule(0, 0, 1, repeat=0)
_lock = threading.Lock()
_running: list[Profile] = []  # one at most


@dataclass
class Profile(Recorded):
    """A profile, made by `profile`; its results are available once the block has ended.

    Attributes
    ----------
    source : str
        Where times come from: ``"cupti"``, ``"cuda events"`` or ``"cpu clock"``, which measure, or ``"model"``;
        `reason` says why in a sentence.
    dropped : int
        Kernels known to be missing: without a record, or still running in other threads at the end. A warning says so
        at the end of the block.
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
        self._ends_with_step = False  # nothing ran after the last call of step()
        self._without_memory = 0  # launches that are left out
        self._unfinished = 0  # of those that are dropped: kernels that ran on in other threads
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
            had = self._step + (not self._ends_with_step)
            self._warn(f"no step was profiled: the schedule begins with step {needed}, the block had {had}")
        if self._without_memory:
            self._warn(
                f"{self._without_memory} launches on devices without memory are left out, because others were measured "
                'and the times of both do not mix; source="model" lays out these'
            )
        if self._unfinished:
            are = "kernel was" if self._unfinished == 1 else "kernels were"
            self._warn(
                f"{self._unfinished} {are} still running in other threads at the end, and missing in the profile"
            )
        if lost := self.dropped - self._unfinished:
            self._warn(f"{lost} kernel records are missing from the profile ({self.source}: {self.reason})")

    def step(self) -> None:
        """End a step. What follows belongs to the next one.

        Where a profiled step begins or ends this waits for the devices, so that each kernel falls into its own step.

        Raises
        ------
        RuntimeError
            Outside of the with-block.

        Examples
        --------
        >>> import rooflab as rl
        >>> with rl.profile() as prof:
        ...     for _ in range(2):
        ...         x = rl.ones(4, 4) + 1
        ...         prof.step()
        >>> [step.number for step in prof.steps]
        [0, 1]
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

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name):
            return no_member(self, name, PROFILE)

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
        on_cpu = ProfilerActivity.CPU in self.activities
        self._unfinished = session.unfinished * on_cpu
        self.dropped = session.dropped * on_gpu + self._unfinished
        self._without_memory = session.without_memory * on_gpu
        kernels, ranges, steps = session.kernels(), session.ranges(), session.steps()
        if not on_cpu:
            kernels = [kernel for kernel in kernels if kernel["device"] != "cpu"]
        self.source, self.reason = session.source, self._note or session.reason
        without_model: ValueError | None = None
        if self.is_model:
            models: dict[str, LaunchModel] = {}
            try:
                for device in sorted({kernel["device"] for kernel in kernels}):
                    models[device] = self.model or launch_model(device)
            except ValueError as error:
                without_model = error
            lay_out(kernels, [ranges, steps], models)
            self.reason = "; ".join([session.reason, *map(str, models.values())])
        last = steps[-1]["number"] if steps else -1
        self._ends_with_step = 0 < self._step == last and all(kernel["step"] != last for kernel in kernels)
        if self._ends_with_step:  # the end of the block is no step
            steps.pop()
        kept = {step["number"] for step in steps}
        origin = steps[0]["start_ns"] if steps else 0
        if not self.is_model:
            spans, kept_ranges = ([s for s in of if s["step"] in kept] for of in (session.host(), ranges))
            if on_cpu:
                frames = _stacks.frames if self.with_stack else lambda _: ()  # others may take stacks meanwhile
                self._host = host_records(spans, kept_ranges, kernels, origin, frames)
        self._steps = [Step(**_microseconds(step, origin)) for step in steps]
        self._ranges = [Range(**_microseconds(span, origin)) for span in ranges if span["step"] in kept]
        self._kernels = [
            KernelRecord(category=category(kernel["name"], kernel["op"]), **_microseconds(kernel, origin))
            for kernel in kernels
        ]
        if without_model:
            raise without_model  # what was recorded can be read, without times

    def _is_running(self) -> bool:
        return bool(_running) and _running[0] is self

    def _release(self) -> None:
        with _lock:
            if self._is_running():
                _running.clear()

    def _warn(self, text: str) -> None:
        warnings.warn(f"[profile] {text}", RuntimeWarning, stacklevel=3)

    def __repr__(self) -> str:
        return "Profile(running)" if self._is_running() else super().__repr__()


@in_words
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
        ``"cpu clock"`` insist on one. Launches on a meta device, where nothing runs, get the times of a model if
        nothing else was launched; otherwise a warning says how many are left out. ``"model"`` insists on the model, and
        leaves out launches on other devices.
    model : LaunchModel, optional
        How long launches on meta devices last, from `rooflab.profiler.launch_model`. Default: the datasheet of the
        device's name, with the gap between launches that `rooflab machine` measured on this machine's GPU, else 2 us.

    Returns
    -------
    Profile
        With `kernels`, `host`, `devices`, `steps`, `ranges`, `waiting`, `verdict`, `key_averages`, `count_kernels`,
        `export_chrome_trace` and `plot_timeline`.

    Warns
    -----
    RuntimeWarning
        At the end, if no step was profiled, and for kernels and launches that are left out.

    Raises
    ------
    RuntimeError
        On entry, if another profile is running. CudaError if `source` insists on what this machine lacks.
    TypeError
        For a schedule or a model that is something else.
    ValueError
        For unknown activities, none, or a `source` that contradicts them. On entry, and at a step, inside a function
        that `rl.compile` records. At the end, if nothing is known of a meta device: kernels and their costs can still
        be read, without times.

    Examples
    --------
    >>> import rooflab as rl
    >>> with rl.profile() as prof, rl.range("mlp"):
    ...     _ = rl.zeros(8) + 1
    >>> [(kernel.op, kernel.range) for kernel in prof.kernels if kernel.op == "add"]
    [('add', 'mlp')]
    >>> x = rl.empty(1_200_000, device=rl.meta("H200"))
    >>> with rl.profile(model=rl.profiler.launch_model("meta:H200", gap_us=3)) as prof:
    ...     _ = x + 1  # reads and writes 4.8 MB each: 2 us at 4.8 TB/s
    >>> prof.is_model, prof.kernels[0].duration_us, prof.steps[0].duration_us  # the step has the gap, too
    (True, 2.0, 5.0)
    """
    if schedule is not None and not isinstance(schedule, Schedule):
        raise TypeError(
            f"[profile] schedule: expected one from rl.profiler.schedule(wait=1, warmup=1, active=3), "
            f"got {type(schedule).__name__}"
        )
    if model is not None and not isinstance(model, LaunchModel):
        raise TypeError(
            f'[profile] model: expected one from rl.profiler.launch_model("meta:H200"), got {type(model).__name__}'
        )
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
