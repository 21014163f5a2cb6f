"""What a test cell measures of a student's function; works the same in Jupyter and under the judge.

In Jupyter the function is called here, by `measurers`. Under the judge it is a proxy: the worker calls them. What is
counted is counted in a process without student code (`runtime`), and the judge refuses what cannot be.
"""

from __future__ import annotations

import contextlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rooflab
from rooflab.grading import allowed
from rooflab.grading.fake_run import Entry, Faked
from rooflab.grading.follow import Follower
from rooflab.grading.kernel import cuda_kernel as cuda_kernel
from rooflab.grading.kernel import emulated_kernel as emulated_kernel
from rooflab.grading.measurers import COUNTERS, LOCAL

CROSSING = ("largest_bytes", "host_bytes", "uploaded_bytes", "downloaded_bytes")


class Implausible(AssertionError):
    """A measurement that cannot be true."""


@dataclass(frozen=True)
class Counted:
    """The runtime's counters around one call; `by_op` holds the calls of each op, the same on every device.

    `largest_bytes` (the largest block that a tensor took) and `host_bytes` (the most that Python and NumPy took) are
    known in the passes of `gradients` and `saved` only. When graded, `host_bytes` is 0, and instead it is known what
    came into tensors from Python and NumPy beside the arguments, `uploaded_bytes`, tensors from before the call
    included, and what went out to them, `downloaded_bytes`. In Jupyter these two are 0.
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

    def __post_init__(self) -> None:
        counters = (getattr(self, name) for name in (*COUNTERS, *CROSSING))
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


def draw(low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included: a size that no student can know before the test runs.

    A grading has a seed, which is recorded with the grade. Every test cell draws from a generator of its own, so that
    grading again with this seed draws the same. In Jupyter one generator, with a fixed seed, serves all cells.
    """
    return int(rng().integers(low, high, endpoint=True))


def rng() -> np.random.Generator:
    """The generator that `draw` takes its numbers from, for the values of a test's inputs."""
    return _rng


@contextlib.contextmanager
def drawing(seed: int, key: str) -> Iterator[None]:
    """Within it the test cell `key` draws from the seed of a grading, and so does `rooflab.randn`."""
    global _rng
    before, _rng = _rng, np.random.default_rng([seed, *key.encode()])
    rooflab.manual_seed(draw(0, 2**62))
    try:
        yield
    finally:
        _rng = before


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


_pending: Callable[[str], None] = print
_rng = np.random.default_rng(0)
