"""What a test cell measures of a student's function. It works the same in Jupyter and under the judge.

In Jupyter the function is called here, by `one_call`. Under the judge it is a proxy: the worker calls those functions,
and nothing that it says about counts or times decides. Counts come from a process without student code (`runtime`). It
repeats the calls that a function made on other numbers (`counting`), and the judge refuses what cannot be counted.
Clock, device and memory that a function is given stay here, and the function asks them.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import rooflab
from rooflab.grading.follow import allowed
from rooflab.grading.follow.follower import Follower
from rooflab.grading.measure import verdicts
from rooflab.grading.measure.clock import VirtualClock
from rooflab.grading.measure.fake_run import Faked, Machine
from rooflab.grading.measure.global_array import ARRAY
from rooflab.grading.measure.global_memory import GlobalMemory
from rooflab.grading.measure.kernel import CannotRun as CannotRun
from rooflab.grading.measure.kernel import Launched
from rooflab.grading.measure.kernel import cuda_kernel as cuda_kernel
from rooflab.grading.measure.one_call import COUNTED, LOCAL, glued, without_collector
from rooflab.grading.measure.results import (
    DONE,
    Accessed,
    Called,
    Counted,
    Drawn,
    Gradients,
    Loops,
    Profiled,
    Saved,
    Spent,
    Timed,
    TimedCall,
    check,
)
from rooflab.testing import is_near


def count(fn: Callable, *args: Any, through: Callable | None = None, **kwargs: Any) -> Counted:
    """Call `fn` once inside `rl.count()`.

    Parameters
    ----------
    through : function, optional
        A function of a module of `rooflab.labs` that a set-up cell imports. The call is then ``through(fn, *args,
        **kwargs)``, so `fn` may take or return what cannot cross, such as a model. `through` is counted too, and runs
        where `fn` does: it must return tensors or plain values, and must not judge anything.
    """
    return Counted(**_ask("count", fn, args, kwargs, {}, through))


def gradients(fn: Callable, *args: Any, upstream: Any, through: Callable | None = None, **kwargs: Any) -> Gradients:
    """Call `fn` on tensors that require gradients, then go back from its result with the gradient `upstream`.
    `through` as in `count`.
    """
    reply = _ask("gradients", fn, args, kwargs, {"upstream": upstream}, through)
    passes: dict[str, Any] = {name: Counted(value=None, **reply.pop(name)) for name in ("forward", "backward")}
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
        raise allowed.Refused("The text of the function cannot be found: write it in a cell of the notebook.") from None


def _to_float64(arg: Any) -> np.ndarray:
    array = arg.detach().cpu().numpy() if hasattr(arg, "detach") else np.asarray(arg)
    return array.astype(np.float64)


def call(fn: Callable, *args: Any, through: Callable | None = None) -> Called:
    """Call `fn` once and see which arguments it wrote into. `through` as in `count`."""
    return Called(**_ask("call", fn, args, {}, {}, through))


def accesses(fn: Callable, *args: Any) -> Accessed:
    """Call `fn` once with its NumPy arrays as arrays of global memory, which count their accesses."""
    places = [place for place, arg in enumerate(args) if isinstance(arg, np.ndarray)]
    memory = GlobalMemory([args[place] for place in places])
    given = list(args)
    for number, place in enumerate(places):
        array = memory.arrays[number]
        given[place] = (ARRAY, number, array.shape, array.dtype.name)
    value = _ask("accesses", fn, tuple(given), {}, {}, answer=memory.answer)["value"]

    def by_argument(each: list) -> tuple:
        found = dict(zip(places, each, strict=True))
        return tuple(found.get(place) for place in range(len(args)))

    order = tuple((places[number], elements) for number, elements in memory.order)
    arrays, reads, writes = map(by_argument, (memory.arrays, memory.reads, memory.writes))
    return Accessed(value, arrays, reads, writes, order)


def launches(fn: Callable, *args: Any, **kwargs: Any) -> Launched:
    """Call `fn` once and see each kernel that it launched on the CPU. All of them are counted, whatever their mode.

    Those are kernels of ``rl.cuda.compile`` with ``backend="simt"``, or without a GPU.

    Examples
    --------
    A test of what two launches did::

        seen = measure.launches(softmax, x)
        first, second = seen.launches
        assert not first.findings and not second.findings, first.said or second.said
        assert_close(second.args[1], expected, name="y")
        assert first.counts.bytes_read + second.counts.bytes_read <= 2 * x.nbytes
    """
    return Launched(**_ask("launches", fn, args, kwargs, {}))


def launched(fn: Callable, *args: Any) -> tuple[str, ...]:
    """The op of each kernel that one call of `fn` launches, in their order."""
    return _ask("launched", fn, args, {}, {})["ops"]


def profiles(fn: Callable, *args: Any) -> Profiled:
    """Call `fn` once and see which steps each `rl.profile` in it recorded."""
    return Profiled(**_ask("profiles", fn, args, {}, {}))


def drawn(fn: Callable, *args: Any) -> Drawn:
    """The figure that `fn` returns, as numbers."""
    return Drawn(**_ask("drawn", fn, args, {}, {}))


def timed(
    fn: Callable,
    *args: Any,
    watch: Sequence[str] = (),
    beside_bytes: int = 0,
    spare_bytes: int | None = None,
) -> Timed:
    """Call `fn` once on a virtual clock: every `rl.latency` in it makes its call once and gets random samples. These
    are drawn from the seed of the grading.

    Parameters
    ----------
    watch : sequence of str
        Names of Python functions whose calls are to be recorded.
    beside_bytes : int
        Memory that another tensor holds meanwhile.
    spare_bytes : int, optional
        What tensors may take beyond what is held at the start. Taking more raises an out-of-memory error.
    """
    clock = VirtualClock(rng().spawn(1)[0])  # what it draws tells nothing of what the test draws
    options = {"watch": tuple(watch), "beside_bytes": beside_bytes, "spare_bytes": spare_bytes}
    reply = _ask("timed", fn, args, {}, options, answer=clock.answer)
    sections = reply["sections"]
    check(len(sections) == len(clock.calls), "what was timed is not what was counted")
    pairs = zip(clock.calls, sections, strict=True)
    return Timed(reply["value"], tuple(TimedCall(**one, **{name: of[name] for name in DONE}) for one, of in pairs))


def faked(fn: Callable, *args: Any, device: dict[str, Any], **kwargs: Any) -> Faked:
    """Call `fn` once on a fake device: every clock shows its time, and its log tells what was timed, and how.

    Among the arguments ``"<run>"`` stands for a function that launches work, ``"<model>"`` for a `FakeModel`,
    ``"<fresh model>"`` for a function that makes one in a new process, ``"<low precision>"`` for a context in which
    passes are shorter, and ``"<optimizer>"`` for an optimizer whose step only launches work. `device` holds
    `fake_run.Settings`. The log has an entry ``"kept"`` before each backward pass that finds the gradients of an
    earlier one.
    """
    machine = Machine(device)
    reply = _ask("faked", fn, args, kwargs, {}, answer=machine.answer)
    return Faked(reply["value"], tuple(machine.device.log))


def cpu_seconds(fn: Callable, *args: Any) -> Spent:
    """Call `fn` once and see how much processor time that takes. Other programs on the machine hardly change it."""
    return Spent(**_ask("cpu_seconds", fn, args, {}, {}))


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
    """A context in which the test cell `key` draws from the seed of a grading, and so does `rooflab.randn`."""
    global _rng
    before, _rng = _rng, np.random.default_rng([seed, *key.encode()])
    rooflab.manual_seed(draw(0, 2**62))
    try:
        yield
    finally:
        _rng = before


def is_median(ms: Any, calls: Sequence[TimedCall]) -> bool:
    """Whether `ms` is the median that the virtual clock gave for one of these calls."""
    return any(isinstance(ms, float) and is_near(ms, call.median_ms, 1e-9) for call in calls)


def is_steady(ms: Any, calls: Sequence[TimedCall], samples: int = 3) -> bool:
    """Whether `ms` is the median of one of these calls that was warmed up, and had at least so many samples."""
    return is_median(ms, [call for call in calls if call.warmup >= 1 and len(call.samples_ms) >= samples])


def pending(why: str) -> None:
    """Say that this machine cannot decide this test: its points count neither as earned nor as lost. In Jupyter `why`
    is printed.
    """
    _pending(why)


def _ask(
    kind: str,
    fn: Callable,
    args: tuple,
    kwargs: dict,
    options: dict,
    through: Callable | None = None,
    answer: Callable[..., Any] | None = None,
) -> dict:
    """The measurement: made here, or by the worker that holds the function. Meanwhile the function asks `answer`."""
    remote, name = getattr(fn, "__rooflab_measure__", None), _name_in_labs(through)
    if remote is None:
        with without_collector() if kind in (*COUNTED, "timed") else contextlib.nullcontext():
            return LOCAL[kind](glued(fn, name), args, kwargs, **options, **({"ask": answer} if answer else {}))
    reply = remote(kind, args, kwargs, options, name, answer)
    check(type(reply) is dict, "a measurement is not a dict")
    return reply


def _name_in_labs(function: Callable | None) -> str:
    """A function of a lab's module as "module.function", by which the worker finds it."""
    if function is None:
        return ""
    package, _, module = str(getattr(function, "__module__", "")).rpartition(".")
    name = getattr(function, "__name__", "")
    if package != "rooflab.labs" or getattr(sys.modules[f"{package}.{module}"], name, None) is not function:
        raise ValueError(f"through: expected a function of a module of rooflab.labs, got {function!r}")
    return f"{module}.{name}"


_verdicts = verdicts.of_this_notebook()
_pending: Callable[[str], None] = _verdicts.waits if _verdicts else print
_rng = np.random.default_rng(0)
