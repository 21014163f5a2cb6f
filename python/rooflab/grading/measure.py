"""What a test cell measures of a student's function; works the same in Jupyter and under the judge.

In Jupyter the function is called here. Under the judge it is a proxy: the worker measures, and the judge
refuses what cannot be.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from tracemalloc import get_traced_memory
from tracemalloc import start as start_tracing
from tracemalloc import stop as stop_tracing
from typing import Any

import numpy as np

from rooflab.grading import allowed
from rooflab.grading.accesses import counted
from rooflab.grading.clock import virtual_clock
from rooflab.grading.fake_run import Entry, Faked
from rooflab.grading.fake_run import faked as run_on_fake
from rooflab.grading.follow import Follower
from rooflab.grading.kernel import cuda_kernel as cuda_kernel
from rooflab.grading.kernel import emulated_kernel as emulated_kernel

_COUNTERS = """
launches host_calls macs flops bytes_read bytes_written allocations bytes_allocated peak_bytes"""
COUNTERS = _COUNTERS.split()


class Implausible(AssertionError):
    """A measurement that cannot be true."""


@dataclass(frozen=True)
class Counted:
    """The runtime's counters around one call; `by_op` holds the calls of each op, the same on every device.

    `largest_bytes` (the largest block that a tensor took) and `host_bytes` (the most that Python and NumPy took) are
    known in the passes of `gradients` and `saved` only.
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

    def __post_init__(self) -> None:
        counters = (getattr(self, name) for name in (*COUNTERS, "largest_bytes", "host_bytes"))
        for number in (*counters, *self.by_op.values()):
            _check(type(number) is int and number >= 0, "a counter is not a whole number")


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
    there is none), and what the graph kept for them between, (op, shape, dtype, bytes) each.
    """

    value: Any
    gradients: tuple
    saved: tuple[tuple[str, tuple[int, ...], str, int], ...]
    forward: Counted
    backward: Counted


@dataclass(frozen=True)
class Saved:
    """One call of an `rl.autograd.Function`, and the tensors that its forward saved."""

    value: Any
    tensors: tuple
    forward: Counted


@dataclass(frozen=True)
class Called:
    """One call, and the positions of the arguments that it wrote into."""

    value: Any
    changed: tuple[int, ...]


@dataclass(frozen=True)
class Accessed:
    """One call on arrays in global memory: what they hold afterwards, how often each of their elements was read and
    written, and the most elements of one read. An entry an argument, None for an argument that is no array.
    """

    value: Any
    arrays: tuple
    reads: tuple
    writes: tuple
    most_at_once: tuple


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

    `ran` lists the watched functions that the timed call entered, (name, ((shape, dtype, requires_grad), ...)) each;
    `by_op` and the counters say what one call did.
    """

    warmup: int
    samples_ms: np.ndarray
    ran: tuple[tuple[str, tuple], ...]
    by_op: dict[str, int]
    macs: int
    flops: int
    bytes_read: int
    bytes_written: int

    @property
    def median_ms(self) -> float:
        return float(np.median(self.samples_ms))

    @property
    def moved_bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    def is_of(self, name: str, *shapes: tuple[int, ...]) -> bool:
        """Whether the call entered the watched function `name` once, with tensors of these shapes."""
        found = [tuple(shape for shape, *_ in tensors) for one, tensors in self.ran if one == name]
        return found == [shapes]


@dataclass(frozen=True)
class Timed:
    """A call on the virtual clock: its value, and everything that it timed."""

    value: Any
    calls: tuple[TimedCall, ...]


def count(fn: Callable, *args: Any, **kwargs: Any) -> Counted:
    """Call `fn` once inside `rl.count()`."""
    return Counted(**_ask("count", fn, args, kwargs, {}))


def gradients(fn: Callable, *args: Any, upstream: Any, **kwargs: Any) -> Gradients:
    """Call `fn` on tensors that require gradients, then go back from its result with the gradient `upstream`."""
    reply = _ask("gradients", fn, args, kwargs, {"upstream": upstream})
    passes = {name: Counted(value=None, **reply.pop(name)) for name in ("forward", "backward")}
    return Gradients(**reply, **passes)


def saved(cls: Callable, *args: Any) -> Saved:
    """Apply an `rl.autograd.Function`, whose backward need not be written yet."""
    reply = _ask("saved", cls, args, {}, {})
    return Saved(forward=Counted(value=None, **reply.pop("forward")), **reply)


def loops(fn: Callable, *args: Any) -> Loops:
    """Follow the text of `fn` for these arguments, arrays or tensors, in plain Python steps; the text is not run.

    Raises
    ------
    Refused
        It does more than plain steps, such as a call of a library's product. A sentence says what.
    """
    follower = Follower(getattr(fn, "__rooflab_cells__", None) or _typed(fn))
    matrices = [allowed.Matrix(_to_float64(arg)) for arg in args]
    value = follower.call_named(getattr(fn, "__name__", type(fn).__name__), matrices)
    return Loops(np.array(value, dtype=np.float64), follower.products)


def _typed(fn: Callable) -> list[str]:
    """The cells of this session, or the function's own text outside of a notebook."""
    cells = getattr(fn, "__globals__", {}).get("In")
    if isinstance(cells, list):
        return [str(cell) for cell in cells]
    try:
        return [textwrap.dedent(inspect.getsource(fn))]
    except (OSError, TypeError):
        raise allowed.Refused("The text of the function is not there: write it in a cell of the notebook.") from None


def _to_float64(arg: Any) -> np.ndarray:
    array = arg.detach().cpu().numpy() if hasattr(arg, "detach") else np.asarray(arg)
    return array.astype(np.float64)


def call(fn: Callable, *args: Any) -> Called:
    """Call `fn` once and see which arguments it wrote into."""
    return Called(**_ask("call", fn, args, {}, {}))


def accesses(fn: Callable, *args: Any) -> Accessed:
    """Call `fn` once with its NumPy arrays as arrays of global memory, which count their accesses."""
    return Accessed(**_ask("accesses", fn, args, {}, {}))


def launched(fn: Callable, *args: Any) -> tuple[str, ...]:
    """The op of each kernel that one call of `fn` launches, in their order."""
    return _ask("launched", fn, args, {}, {})["ops"]


def drawn(fn: Callable, *args: Any) -> Drawn:
    """The figure that `fn` returns, as numbers."""
    return Drawn(**_ask("drawn", fn, args, {}, {}))


def timed(
    fn: Callable, *args: Any, watch: Sequence[str] = (), beside_bytes: int = 0, spare_bytes: int | None = None
) -> Timed:
    """Call `fn` once on a virtual clock: every `rl.latency` in it makes its call once and gets samples at random.

    Parameters
    ----------
    watch : sequence of str
        Names of Python functions whose calls are to be recorded.
    beside_bytes : int
        Memory that another tensor holds meanwhile.
    spare_bytes : int, optional
        What tensors may take beyond what is held at the start; more is out of memory.
    """
    options = {"watch": tuple(watch), "beside_bytes": beside_bytes, "spare_bytes": spare_bytes}
    reply = _ask("timed", fn, args, {}, options)
    return Timed(reply["value"], tuple(TimedCall(**one) for one in reply["calls"]))


def faked(fn: Callable, *args: Any, device: dict[str, Any], **kwargs: Any) -> Faked:
    """Call `fn` once on a fake device: every clock shows its time, and its log tells what was timed, and how.

    Among the arguments ``"<run>"`` stands for a function that launches work, ``"<model>"`` for a `FakeModel`,
    ``"<fresh model>"`` for a function that makes one in a new process, and ``"<low precision>"`` for a context in which
    passes are shorter. `device` holds `fake_run.Settings`.
    """
    reply = _ask("faked", fn, args, kwargs, {"device": device})
    return Faked(reply["value"], tuple(Entry(*line) for line in reply["log"]))


def steps(fn: Callable, *args: Any, **kwargs: Any) -> int:
    """How many lines of Python a call runs, those in a loop each time: how work grows, whatever the time it takes."""
    return _ask("steps", fn, args, kwargs, {})["steps"]


def observed(fn: Callable, observer: str, *args: Any, **kwargs: Any) -> Any:
    """What a function of a lab sees of the student's: so `fn` may take or give a model, which cannot cross.

    `observer` is "module.function" of `rooflab.labs`, in a module that a set-up cell imports. It is given `fn` and the
    arguments, and returns plain values.
    """
    return _ask("observed", fn, args, kwargs, {"observer": observer})["value"]


def is_median(ms: Any, calls: Sequence[TimedCall]) -> bool:
    """Whether `ms` is the median that the virtual clock gave for one of these calls."""
    return isinstance(ms, float) and any(abs(ms - call.median_ms) <= 1e-9 * abs(ms) for call in calls)


def pending(why: str) -> None:
    """Say that this machine cannot decide this test: its points count neither as earned nor as lost. In Jupyter `why`
    is printed.
    """
    _pending(why)


def _ask(kind: str, fn: Callable, args: tuple, kwargs: dict, options: dict) -> dict:
    """The measurement: made here, or by the worker that holds the function."""
    remote = getattr(fn, "__rooflab_measure__", None)
    if remote is None:
        return LOCAL[kind](fn, args, kwargs, **options)
    reply = remote(kind, args, kwargs, options)
    _check(type(reply) is dict, "a measurement is not a dict")
    return reply


def _check(holds: bool, why: str) -> None:
    if not holds:
        raise Implausible(f"The measurement is not plausible: {why}.")


def _count(fn: Callable, args: tuple, kwargs: dict) -> dict:
    import rooflab as rl

    with rl.count() as counters:
        value = fn(*args, **kwargs)
    _inspect()
    ops = {name: int(op.ops) for name, op in counters.by_op.items() if op.ops}
    return {"value": value, "by_op": ops} | {name: int(getattr(counters, name)) for name in COUNTERS}


def _watched(call: Callable[[], Any]) -> tuple[Any, dict]:
    """The value of `call()`, and its counters with the largest block and what was taken beside tensors."""
    import rooflab as rl

    start_tracing()
    try:
        with rl.memory.record() as timeline:
            counted = _count(call, (), {})
        host_bytes = get_traced_memory()[1]
    finally:
        stop_tracing()
    taken = [block.bytes for block in timeline.allocations if block.start_us is not None and not block.is_scratch]
    return counted.pop("value"), counted | {"largest_bytes": max(taken, default=0), "host_bytes": host_bytes}


def _differentiable(args: tuple) -> tuple:
    import rooflab as rl

    return tuple(
        arg.detach().requires_grad_() if isinstance(arg, rl.Tensor) and arg.dtype.is_floating_point else arg
        for arg in args
    )


def _gradients(fn: Callable, args: tuple, kwargs: dict, upstream: Any) -> dict:
    import rooflab as rl

    args = _differentiable(args)
    value, forward = _watched(lambda: fn(*args, **kwargs))
    if not isinstance(value, rl.Tensor) or not value.requires_grad:
        raise TypeError("the result is not a tensor that knows how it was made, so there is no gradient")
    kept = tuple((one.op, tuple(one.shape), str(one.dtype), int(one.bytes)) for one in rl.autograd.saved_tensors(value))
    _, backward = _watched(lambda: value.backward(upstream))
    arrived = tuple(arg.grad for arg in args if isinstance(arg, rl.Tensor) and arg.requires_grad)
    return {"value": value.detach(), "gradients": arrived, "saved": kept, "forward": forward, "backward": backward}


def _saved(cls: Any, args: tuple, kwargs: dict) -> dict:
    import rooflab as rl

    if not (isinstance(cls, type) and issubclass(cls, rl.autograd.Function)):
        raise TypeError("expected a class that is an rl.autograd.Function")
    kept: list = []

    def backward(ctx: Any, *gradients: Any) -> tuple:
        kept.extend(ctx.saved_tensors)
        return (None,) * len(args)

    spy = type(cls.__name__, (cls,), {"backward": staticmethod(backward)})
    value, forward = _watched(lambda: spy.apply(*_differentiable(args), **kwargs))
    if not isinstance(value, rl.Tensor) or not value.requires_grad:
        raise TypeError("forward did not return a tensor of its own")
    value.backward(value.detach())
    return {"value": value.detach(), "tensors": tuple(one.detach() for one in kept), "forward": forward}


def _call(fn: Callable, args: tuple, kwargs: dict) -> dict:
    before = [_contents(arg) for arg in args]
    value = fn(*args, **kwargs)
    changed = [i for i, (arg, old) in enumerate(zip(args, before, strict=True)) if _contents(arg) != old]
    return {"value": value, "changed": tuple(changed)}


def _contents(arg: Any) -> Any:
    """The bytes of an array or a tensor, and any other value as it is."""
    array = arg.detach().cpu().numpy() if hasattr(arg, "detach") else arg
    return array.tobytes() if isinstance(array, np.ndarray) else repr(arg)


def _accesses(fn: Callable, args: tuple, kwargs: dict) -> dict:
    given: list[Any] = list(args)
    looks: list[Callable[[str], Any] | None] = [None] * len(args)
    for place, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            given[place], looks[place] = counted(arg)
    value = fn(*given, **kwargs)
    _inspect()
    names = {"arrays": "values", "reads": "reads", "writes": "writes", "most_at_once": "most_at_once"}
    return {"value": value} | {key: tuple(look and look(name) for look in looks) for key, name in names.items()}


def _launched(fn: Callable, args: tuple, kwargs: dict) -> dict:
    import rooflab as rl

    with rl.profile() as prof:
        fn(*args, **kwargs)
    _inspect()
    return {"ops": tuple(kernel.op for kernel in prof.kernels)}


def _drawn(fn: Callable, args: tuple, kwargs: dict) -> dict:
    made = fn(*args, **kwargs)
    if not hasattr(made, "axes"):
        raise TypeError(f"expected the figure that the plot function returns, got {type(made).__name__}")
    axes = made.axes
    marks = [line.get_xydata() for one in axes for line in one.lines if line.get_marker() not in (None, "None", "")]
    points = tuple((float(x), float(y)) for rows in marks for x, y in rows)
    return {"points": points, "scales": tuple((one.get_xscale(), one.get_yscale()) for one in axes)}


def _timed(fn: Callable, args: tuple, kwargs: dict, watch: tuple, beside_bytes: int, spare_bytes: int | None) -> dict:
    import rooflab as rl

    names = getattr(fn, "__globals__", {})
    codes = {names[name].__code__: name for name in watch if hasattr(names.get(name), "__code__")}
    device = "cuda" if rl.cuda.is_available() else "cpu"
    beside = rl.empty(beside_bytes, dtype="bool", device=device)
    if spare_bytes is not None:
        rl.memory.set_limit(rl.memory.allocated(device) + spare_bytes, device)
    try:
        with virtual_clock(codes, _pause) as calls:
            value = fn(*args, **kwargs)
    finally:
        if spare_bytes is not None:
            rl.memory.set_limit(None, device)
    _inspect()
    del beside
    return {"value": value, "calls": tuple(calls)}


def _faked(fn: Callable, args: tuple, kwargs: dict, device: dict) -> dict:
    reply = run_on_fake(fn, args, kwargs, device)
    _inspect()
    return reply


def _steps(fn: Callable, args: tuple, kwargs: dict) -> dict:
    lines, before = 0, sys.gettrace()

    def trace(frame: Any, event: str, arg: Any) -> Callable:
        nonlocal lines
        lines += event == "line"
        return trace

    with _pause():
        sys.settrace(trace)
    try:
        fn(*args, **kwargs)
    finally:
        with _pause():
            sys.settrace(before)
    _inspect()
    return {"steps": lines}


def _observed(fn: Callable, args: tuple, kwargs: dict, observer: str) -> dict:
    module, _, name = observer.rpartition(".")
    value = getattr(import_module(f"rooflab.labs.{module}"), name)(fn, *args, **kwargs)
    _inspect()
    return {"value": value}


LOCAL: dict[str, Callable[..., dict]] = {
    "accesses": _accesses,
    "call": _call,
    "count": _count,
    "drawn": _drawn,
    "faked": _faked,
    "gradients": _gradients,
    "launched": _launched,
    "observed": _observed,
    "saved": _saved,
    "steps": _steps,
    "timed": _timed,
}
_inspect: Callable[[], object] = lambda: None  # noqa: E731  the worker looks here for what student code replaced
_pause: Callable[[], AbstractContextManager] = nullcontext  # the worker's guard lets the clock's tracer in
_pending: Callable[[str], None] = print
