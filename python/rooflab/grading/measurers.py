"""What measures a call of a student's function, in the process that holds it: in Jupyter, or in the worker.

Each gives a dict, of which `measure` makes its results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from importlib import import_module
from tracemalloc import get_traced_memory
from tracemalloc import start as start_tracing
from tracemalloc import stop as stop_tracing
from typing import Any

import numpy as np

import rooflab as rl
from rooflab.grading.accesses import counted
from rooflab.grading.clock import virtual_clock
from rooflab.grading.fake_run import faked

COUNTERS = (
    "launches", "host_calls", "macs", "flops", "bytes_read", "bytes_written", "allocations", "bytes_allocated",
    "peak_bytes",
)  # fmt: skip


def _count(fn: Callable, args: tuple, kwargs: dict) -> dict:
    return _counted(lambda: _traced(fn)(*args, **kwargs))


def _counted(call: Callable[[], Any]) -> dict:
    """The value of `call()`, its counters, and what it took from the host and gave to it."""
    with rl.count() as counters:
        value = call()
    _inspect()
    uploaded, downloaded = _crossed()
    ops = {name: int(op.ops) for name, op in counters.by_op.items() if op.ops}
    seen = {name: int(getattr(counters, name)) for name in COUNTERS}
    return {"value": value, "by_op": ops, "uploaded_bytes": uploaded, "downloaded_bytes": downloaded} | seen


def _watched(call: Callable[[], Any]) -> tuple[Any, dict]:
    """The value of `call()`, and its counters with the largest block and what was taken beside tensors."""
    if _host:
        start_tracing()
    try:
        with rl.memory.record() as timeline:
            counted = _counted(call)
        host_bytes = get_traced_memory()[1] if _host else 0
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


def _gradients(fn: Callable, args: tuple, kwargs: dict, upstream: Any) -> dict:
    args = _differentiable(args)
    value, forward = _watched(lambda: _traced(fn)(*args, **kwargs))
    if not isinstance(value, rl.Tensor) or not value.requires_grad:
        raise TypeError("the result is not a tensor that knows how it was made, so there is no gradient")
    kept = tuple((one.op, tuple(one.shape), str(one.dtype), int(one.bytes)) for one in rl.autograd.saved_tensors(value))
    _, backward = _watched(lambda: value.backward(upstream))
    arrived = tuple(arg.grad for arg in args if isinstance(arg, rl.Tensor) and arg.requires_grad)
    return {"value": value.detach(), "gradients": arrived, "saved": kept, "forward": forward, "backward": backward}


def _saved(cls: Any, args: tuple, kwargs: dict) -> dict:
    if not (isinstance(cls, type) and issubclass(cls, rl.autograd.Function)):
        raise TypeError("expected a class that is an rl.autograd.Function")
    kept: list = []

    def backward(ctx: Any, *gradients: Any) -> tuple:
        kept.extend(ctx.saved_tensors)
        return (None,) * len(args)

    spy = type(cls.__name__, (cls,), {"backward": staticmethod(backward)})
    return kept_by(spy.apply, args, kwargs, lambda: kept)


def kept_by(apply: Callable, args: tuple, kwargs: dict, kept: Callable[[], Iterable]) -> dict:
    """A call of an `rl.autograd.Function`; once its backward has run, `kept` tells what its forward saved."""
    given = _differentiable(args)
    value, forward = _watched(lambda: _traced(apply)(*given, **kwargs))
    if not isinstance(value, rl.Tensor) or not value.requires_grad:
        raise TypeError("forward did not return a tensor of its own")
    value.backward(value.detach())
    return {"value": value.detach(), "tensors": tuple(one.detach() for one in kept()), "forward": forward}


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
    with rl.profile() as prof:
        _traced(fn)(*args, **kwargs)
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
    names = getattr(fn, "__globals__", {})
    codes = {names[name].__code__: name for name in watch if hasattr(names.get(name), "__code__")}
    device = "cuda" if rl.cuda.is_available() else "cpu"
    beside = rl.empty(beside_bytes, dtype="bool", device=device)
    if spare_bytes is not None:
        rl.memory.set_limit(rl.memory.allocated(device) + spare_bytes, device)
    try:
        with virtual_clock(codes, _pause, _inspect) as calls:
            value = fn(*args, **kwargs)
    finally:
        if spare_bytes is not None:
            rl.memory.set_limit(None, device)
    _inspect()
    del beside
    return {"value": value, "calls": tuple(calls)}


def _faked(fn: Callable, args: tuple, kwargs: dict, device: dict) -> dict:
    reply = faked(fn, args, kwargs, device)
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
    value = getattr(import_module(f"rooflab.labs.{module}"), name)(_inspected(fn), *args, **kwargs)
    _inspect()
    return {"value": value}


def _inspected(fn: Callable) -> Callable:
    """`fn`, if it is no class, with a look after each call: what it replaces could undo itself when it is used."""
    if isinstance(fn, type):
        return fn

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        finally:
            _inspect()

    return call


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
COUNTED = ("count", "gradients", "saved", "launched")  # what the runtime measures
_crossed: Callable[[], tuple[int, int]] = lambda: (0, 0)  # noqa: E731  bytes from the host and to it: the runtime knows
_host = True  # whether what Python and NumPy take is measured
_traced: Callable[[Callable], Callable] = lambda fn: fn  # noqa: E731  the worker records here what is called
_inspect: Callable[[], object] = lambda: None  # noqa: E731  the worker looks here for what student code replaced
_pause: Callable[[], AbstractContextManager] = nullcontext  # the worker's guard lets the clock's tracer in
