"""Functions that measure one call of a student's function, in the process that holds it: Jupyter's or the worker's.

Each returns a dict, from which `measure` makes its results.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from time import process_time
from tracemalloc import get_traced_memory
from tracemalloc import start as start_tracing
from tracemalloc import stop as stop_tracing
from typing import Any
from unittest.mock import patch

import numpy as np

import rooflab as rl
from rooflab.cuda.simt.module import watching
from rooflab.grading.measure.clock import on_clock
from rooflab.grading.measure.counter_values import seen_by
from rooflab.grading.measure.fake_run import faked
from rooflab.grading.measure.global_array import ARRAY, GlobalArray
from rooflab.grading.measure.kernel import KernelRun, copied, on_cpu, run_of
from rooflab.grading.measure.ranges import costs_are_work, watched
from rooflab.grading.measure.results import CROSSED
from rooflab.profiler import Profile


@contextmanager
def without_collector() -> Iterator[None]:
    """A context, or a decorator, in which Python's garbage collector frees nothing. What waits for it is freed before:
    a tensor that it frees during a measurement would change the memory that is held. Inside another such context
    nothing happens.
    """
    if not gc.isenabled():
        yield
        return
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _count(fn: Callable, args: tuple, kwargs: dict) -> dict:
    return _counted(lambda: _traced(fn)(*args, **kwargs))


def _counted(call: Callable[[], Any]) -> dict:
    """The value of `call()`, its counters, what ran in each of its ranges, and the bytes from the host and to it."""
    with costs_are_work(), watched() as ranges, rl.count() as counters:
        value = call()
    seen = seen_by(counters) | {"by_range": ranges.by_range, "recordings": tuple(ranges.recordings)}
    return {"value": value} | _crossed() | seen


def _watched(call: Callable[[], Any]) -> tuple[Any, dict]:
    """The value of `call()`, and its counters with the largest block and the memory taken outside of tensors."""
    if _host:
        start_tracing()
    try:
        with rl.memory.record(with_stack=False) as timeline:  # a stack would be memory outside of tensors
            counted = _counted(call)
            host_bytes = get_traced_memory()[1] if _host else 0  # before the recording itself is read
    finally:
        if _host:
            stop_tracing()
    taken = [block.bytes for block in timeline.allocations if block.start_us is not None and not block.is_scratch]
    return counted.pop("value"), counted | {"largest_bytes": max(taken, default=0), "host_bytes": host_bytes}


def _differentiable(args: tuple) -> tuple:
    return tuple(
        arg.detach().requires_grad_() if isinstance(arg, rl.Tensor) and arg.dtype.is_floating_point else arg
        for arg in args
    )


def allocated() -> int:
    """The bytes that tensors hold on all devices."""
    devices = ["cpu", *(f"cuda:{number}" for number in range(rl.cuda.device_count()))]
    return sum(rl.memory.allocated(device) for device in devices)


def _gradients(fn: Callable, args: tuple, kwargs: dict, upstream: Any) -> dict:
    args, before = _differentiable(args), allocated()
    value, forward = _watched(lambda: _traced(fn)(*args, **kwargs))
    if not isinstance(value, rl.Tensor) or not value.requires_grad:
        raise TypeError("the result is not a tensor with a graph, so there is no gradient")
    held = allocated() - before
    kept = tuple((one.op, tuple(one.shape), str(one.dtype), int(one.bytes)) for one in rl.autograd.saved_tensors(value))
    _, backward = _watched(lambda: value.backward(upstream))
    arrived = tuple(arg.grad for arg in args if isinstance(arg, rl.Tensor) and arg.requires_grad)
    made = {"value": value.detach(), "gradients": arrived, "saved": kept, "held_bytes": held}
    return made | {"forward": forward, "backward": backward}


def _saved(cls: Any, args: tuple, kwargs: dict) -> dict:
    if not (isinstance(cls, type) and issubclass(cls, rl.autograd.Function)):
        raise TypeError("expected a subclass of rl.autograd.Function")
    kept: list = []

    def backward(ctx: Any, *gradients: Any) -> tuple:
        kept.extend(ctx.saved_tensors)
        return (None,) * len(args)

    spy: Any = type(cls.__name__, (cls,), {"backward": staticmethod(backward)})
    return kept_by(spy.apply, args, kwargs, lambda: kept)


def kept_by(apply: Callable, args: tuple, kwargs: dict, kept: Callable[[], Iterable]) -> dict:
    """Call an `rl.autograd.Function` and run its backward; after that `kept()` returns what its forward saved."""
    given, before = _differentiable(args), allocated()
    value, forward = _watched(lambda: _traced(apply)(*given, **kwargs))
    if not isinstance(value, rl.Tensor) or not value.requires_grad:
        raise TypeError("forward has to return a new tensor")
    held = allocated() - before
    value.backward(value.detach())
    tensors = tuple(one.detach() for one in kept())
    return {"value": value.detach(), "tensors": tensors, "held_bytes": held, "forward": forward}


def _call(fn: Callable, args: tuple, kwargs: dict) -> dict:
    before = [_contents(arg) for arg in args]
    value = fn(*args, **kwargs)
    changed = [i for i, (arg, old) in enumerate(zip(args, before, strict=True)) if _contents(arg) != old]
    return {"value": value, "changed": tuple(changed)}


def _contents(arg: Any) -> Any:
    """The bytes of an array or a tensor, and any other value as it is."""
    array = arg.detach().cpu().numpy() if hasattr(arg, "detach") else arg
    return array.tobytes() if isinstance(array, np.ndarray) else repr(arg)


def _accesses(fn: Callable, args: tuple, kwargs: dict, ask: Callable) -> dict:
    """Each (ARRAY, number, shape, dtype) among the arguments stands for an array in the test's memory."""

    def given(one: Any) -> Any:
        return GlobalArray(ask, *one[1:]) if type(one) is tuple and one[:1] == (ARRAY,) else one

    return {"value": fn(*map(given, args), **kwargs)}


def _launched(fn: Callable, args: tuple, kwargs: dict) -> dict:
    # CUDA events see each launch once. CUPTI may also see copies that the driver makes when it loads a kernel.
    with rl.profile(source="cuda events" if rl.cuda.is_available() else "auto") as prof:
        _traced(fn)(*args, **kwargs)
    return {"ops": tuple(kernel.op for kernel in prof.kernels)}


def _profiles(fn: Callable, args: tuple, kwargs: dict) -> dict:
    finished: list[Profile] = []
    leave = Profile.__exit__

    def noted(profile: Profile, *error: Any) -> None:
        leave(profile, *error)
        finished.append(profile)

    with patch.object(Profile, "__exit__", noted):
        value = fn(*args, **kwargs)
    return {"value": value, "profiles": tuple(map(_steps, finished))}


def _steps(profile: Profile) -> tuple:
    """(number, ops of its kernels) of each step that was recorded."""
    return tuple(
        (step.number, tuple(kernel.op for kernel in profile.kernels if kernel.step == step.number))
        for step in profile.steps
    )


def _launches(fn: Callable, args: tuple, kwargs: dict) -> dict:
    seen: list[KernelRun] = []
    with watching(lambda launch, values: seen.append(run_of(launch, map(copied, values)))), on_cpu():
        value = fn(*args, **kwargs)
    return {"value": value, "launches": tuple(seen)}


def _drawn(fn: Callable, args: tuple, kwargs: dict) -> dict:
    made = fn(*args, **kwargs)
    if not hasattr(made, "axes"):
        raise TypeError(f"expected the figure that the plot function returns, got {type(made).__name__}")
    axes = made.axes
    marks = [line.get_xydata() for one in axes for line in one.lines if line.get_marker() not in (None, "None", "")]
    points = tuple((float(x), float(y)) for rows in marks for x, y in rows)
    return {"points": points, "scales": tuple((one.get_xscale(), one.get_yscale()) for one in axes)}


def _timed(
    fn: Callable,
    args: tuple,
    kwargs: dict,
    ask: Callable,
    watch: tuple,
    beside_bytes: int,
    spare_bytes: int | None,
) -> dict:
    names = getattr(fn, "__globals__", {})
    codes = {names[name].__code__: name for name in watch if hasattr(names.get(name), "__code__")}
    device = "cuda" if rl.cuda.is_available() else "cpu"
    beside = rl.empty(beside_bytes, dtype="bool", device=device)
    sections: list[dict] = []
    section = _section or (lambda: _counting(sections))
    if spare_bytes is not None:
        rl.memory.set_limit(rl.memory.allocated(device) + spare_bytes, device)
    try:
        with on_clock(ask, codes, section):
            value = _traced(fn, returns=False)(*args, **kwargs)
    finally:
        if spare_bytes is not None:
            rl.memory.set_limit(None, device)
    del beside
    return {"value": value, "sections": tuple(sections)}


@contextmanager
def _counting(sections: list[dict]) -> Iterator[None]:
    with costs_are_work(), rl.count() as counters:
        yield
    sections.append(seen_by(counters) | _crossed())


def _cpu_seconds(fn: Callable, args: tuple, kwargs: dict) -> dict:
    start = process_time()
    value = fn(*args, **kwargs)
    return {"value": value, "seconds": process_time() - start}


def _faked(fn: Callable, args: tuple, kwargs: dict, ask: Callable) -> dict:
    return {"value": faked(fn, args, kwargs, ask)}


def glued(fn: Callable, through: str) -> Callable:
    """`fn`, or ``through(fn, ...)`` as a function, where `through` is "module.function" of `rooflab.labs` or empty."""
    module, _, name = through.rpartition(".")
    return partial(getattr(import_module(f"rooflab.labs.{module}"), name), fn) if through else fn


LOCAL: dict[str, Callable[..., dict]] = {
    "accesses": _accesses,
    "call": _call,
    "count": _count,
    "cpu_seconds": _cpu_seconds,
    "drawn": _drawn,
    "faked": _faked,
    "gradients": _gradients,
    "launched": _launched,
    "launches": _launches,
    "profiles": _profiles,
    "saved": _saved,
    "timed": _timed,
}
COUNTED = ("count", "gradients", "saved", "launched")  # what the runtime measures
ASKING = ("accesses", "faked", "timed")  # these ask something that stays with the test
_crossed: Callable[[], dict[str, int]] = lambda: dict.fromkeys(CROSSED, 0)  # noqa: E731  set by the runtime
_host = True  # whether the memory that Python and NumPy take is measured
_traced: Callable[..., Callable] = lambda fn, returns=True: fn  # noqa: E731  set by the worker, to record calls
_section: Callable[[], AbstractContextManager] | None = None  # set by the worker, to record what is timed
