"""What a test cell measures of a student's function; works the same in Jupyter and under the judge.

In Jupyter the function is called here. Under the judge it is a proxy: the worker measures, and the judge
refuses what cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from tracemalloc import get_traced_memory
from tracemalloc import start as start_tracing
from tracemalloc import stop as stop_tracing
from typing import TYPE_CHECKING, Any

import numpy as np

from rooflab.grading.kernel import cuda_kernel as cuda_kernel
from rooflab.grading.products import Products

if TYPE_CHECKING:
    from rooflab import Timing

_COUNTERS = """
launches host_calls macs flops bytes_read bytes_written allocations bytes_allocated peak_bytes"""
COUNTERS = _COUNTERS.split()
PRODUCTS = Products()
SLACK_MS = 5.0


class Implausible(AssertionError):
    """A measurement that cannot be true."""


@dataclass(frozen=True)
class Counted:
    """The runtime's counters around one call; `by_op` holds launches by op.

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
    """One call under the tracer: `steps` of Python bytecode in student code, and the library `products`
    that ran.
    """

    value: Any
    steps: int
    products: tuple[str, ...]

    def __post_init__(self) -> None:
        _check(type(self.steps) is int and type(self.products) is tuple, "a trace is not made of numbers")


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


def count(fn: Callable, *args: Any, **kwargs: Any) -> Counted:
    """Call `fn` once inside `rl.count()`."""
    return Counted(**_ask("count", fn, args, kwargs, {})[0])


def gradients(fn: Callable, *args: Any, upstream: Any, **kwargs: Any) -> Gradients:
    """Call `fn` on tensors that require gradients, then go back from its result with the gradient `upstream`."""
    reply = _ask("gradients", fn, args, kwargs, {"upstream": upstream})[0]
    passes = {name: Counted(value=None, **reply.pop(name)) for name in ("forward", "backward")}
    return Gradients(**reply, **passes)


def saved(cls: Callable, *args: Any) -> Saved:
    """Apply an `rl.autograd.Function`, whose backward need not be written yet."""
    reply = _ask("saved", cls, args, {}, {})[0]
    return Saved(forward=Counted(value=None, **reply.pop("forward")), **reply)


def loops(fn: Callable, *args: Any, **kwargs: Any) -> Loops:
    """Call `fn` once under the tracer, which slows it about a hundredfold: give it small inputs."""
    return Loops(**_ask("loops", fn, args, kwargs, {})[0])


def latency(
    fn: Callable, *args: Any, warmup: int = 3, repeat: int = 20, floor_ms: float = 0.0, **kwargs: Any
) -> Timing:
    """`rl.latency` of `fn`.

    Raises
    ------
    Implausible
        A sample is at or under `floor_ms` (say the roofline's), the number of samples is not `repeat`, or together
        they are longer than the time that passed for the judge.
    """
    import rooflab as rl

    reply, wall_ms = _ask("latency", fn, args, kwargs, {"warmup": warmup, "repeat": repeat})
    samples = reply["samples_ms"]
    good = type(samples) is np.ndarray and samples.dtype == np.float64 and samples.shape == (repeat,)
    _check(good and bool(np.isfinite(samples).all()), f"the latencies are not {repeat} finite numbers")
    _check(float(samples.min()) > floor_ms, f"a call in {samples.min():.3g} ms is faster than the machine")
    _check(float(samples.sum()) <= wall_ms + SLACK_MS, "the calls are said to take longer than the clock ran")
    return rl.Timing(samples, float(reply["overhead_ms"]), str(reply["device"]))


def note(text: str) -> None:
    """Say something about this test that the report shows even when it passes; in Jupyter it is printed."""
    _note(text)


def elapsed_ms() -> float:
    """Wall time that the judge saw this question's worker busy; infinite in Jupyter."""
    return _elapsed()


def _ask(kind: str, fn: Callable, args: tuple, kwargs: dict, options: dict) -> tuple[dict, float]:
    """The measurement as a dict, and the wall time in ms in which it was made."""
    remote = getattr(fn, "__rooflab_measure__", None)
    if remote is None:
        return LOCAL[kind](fn, args, kwargs, **options), math.inf
    reply, wall_ms = remote(kind, args, kwargs, options)
    _check(type(reply) is dict, "a measurement is not a dict")
    return reply, wall_ms


def _check(holds: bool, why: str) -> None:
    if not holds:
        raise Implausible(f"The measurement is not plausible: {why}.")


def _count(fn: Callable, args: tuple, kwargs: dict) -> dict:
    import rooflab as rl

    with rl.count() as counters:
        value = fn(*args, **kwargs)
    _inspect()
    ops = {name: int(op.launches) for name, op in counters.by_op.items()}
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


def _loops(fn: Callable, args: tuple, kwargs: dict) -> dict:
    import rooflab as rl

    with rl.count() as counters:
        value = PRODUCTS.run(fn, args, kwargs)
    _inspect()
    products = list(PRODUCTS.seen or ()) + ["rl.matmul"] * bool(counters.macs)
    return {"value": value, "steps": PRODUCTS.steps, "products": tuple(products)}


def _latency(fn: Callable, args: tuple, kwargs: dict, warmup: int, repeat: int) -> dict:
    import rooflab as rl

    timing = rl.latency(fn, *args, warmup=warmup, repeat=repeat, **kwargs)
    return {
        "samples_ms": np.array(timing.samples_ms, np.float64),
        "overhead_ms": timing.overhead_ms,
        "device": timing.device,
    }


LOCAL: dict[str, Callable[..., dict]] = {
    "count": _count,
    "gradients": _gradients,
    "latency": _latency,
    "loops": _loops,
    "saved": _saved,
}
_inspect: Callable[[], object] = lambda: None  # noqa: E731  the worker looks here for what student code replaced
_note: Callable[[str], None] = print
_elapsed: Callable[[], float] = lambda: math.inf  # noqa: E731
