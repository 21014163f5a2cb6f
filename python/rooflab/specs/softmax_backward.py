"""softmax_backward and log_softmax_backward: the gradient of the operand from the result."""

import functools

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, itemsize, sum_roundings, unit_roundoff
from .log_softmax import SPEC as LOG_SOFTMAX
from .softmax import BENCH_SHAPES, COLUMNS, GRADIENT_TABLES, ONE_ROW, SMALLEST, length_of, row_tails, softmax_samples
from .softmax import SPEC as SOFTMAX


def _with_gradient(forward, rng, sample):
    with np.errstate(all="ignore"):
        y = forward.reference(*sample.args, **sample.kwargs)
    return Sample(sample.label, (rng.standard_normal(y.shape), y), sample.kwargs)


def _samples(forward, rng):
    for sample in softmax_samples(rng):
        if sample.args[0].shape[-1] != 1:  # of one element it is 0
            yield _with_gradient(forward, rng, sample)
    dy, y = _with_gradient(forward, rng, Sample("", (rng.standard_normal((6, 5, 40)),))).args
    dy[0, 1, 3], dy[2, 3, 5] = np.nan, np.inf
    yield Sample("nan-inf-dy", (dy, y))


def _tails(forward, rng):
    for sample in row_tails(rng):
        yield _with_gradient(forward, rng, sample)
    for d in (40, 48, 160, 168, 16384, 16392):
        yield _with_gradient(forward, rng, Sample(f"5x{d}", (rng.standard_normal((5, d)),)))


def _reference(dy, y, dim=-1):
    return y * (dy - (dy * y).sum(axis=dim, keepdims=True))


def _log_reference(dy, y, dim=-1):
    return dy - np.exp(y) * dy.sum(axis=dim, keepdims=True)


def _tolerance(dtype, sample):
    """The sum is off by some roundings of its terms."""
    dy, y = sample.args
    with np.errstate(all="ignore"):
        terms = np.abs(dy * y).sum(axis=sample.kwargs.get("dim", -1), keepdims=True)
        error = (sum_roundings(length_of(sample), dtype) + 8) * accumulator_roundoff(dtype)
        atol = np.nan_to_num(error * np.abs(y) * (np.abs(dy) + terms), posinf=0)
    return 2 * unit_roundoff(dtype), atol + SMALLEST[dtype]


def _log_tolerance(dtype, sample):
    """The sum is off by some roundings of its terms, the exponential by those of its argument."""
    dy, y = sample.args
    with np.errstate(all="ignore"):
        terms = np.exp(y) * np.abs(dy).sum(axis=sample.kwargs.get("dim", -1), keepdims=True)
        error = sum_roundings(length_of(sample), dtype) + 8 + 3 * np.minimum(np.abs(y), 800)
        atol = np.nan_to_num(error * accumulator_roundoff(dtype) * terms, posinf=0)
    return 2 * unit_roundoff(dtype), atol + SMALLEST[dtype]


def _cost(sample, dtype):
    size = sample.args[1].size
    return _core.Cost(flops=4 * size, bytes_read=2 * size * itemsize(dtype), bytes_written=size * itemsize(dtype))


def _bench():
    for rows, d in BENCH_SHAPES:
        for dtype in ("bfloat16", "float32"):
            yield f"{rows}x{d}", dtype, ((rows, d), (rows, d)), {}
    for dtype in ("bfloat16", "float32"):
        yield ONE_ROW, dtype, ((1, 262144),) * 2, {}
        yield COLUMNS, dtype, ((64, 1024, 1024),) * 2, {"dim": 1}


def _spec(forward, reference, tolerance, tables):
    name = f"{forward.name}_backward"
    return OpSpec(
        name=name,
        fn=getattr(_core, name),
        samples=functools.partial(_samples, forward),
        reference=reference,
        cost=_cost,
        tolerance=tolerance,
        composed_dtypes=("float64",),
        tails=functools.partial(_tails, forward),
        bench=_bench,
        tables=tables,
        peer=lambda torch: lambda dy, y, dim=-1: getattr(torch, f"_{name}_data")(dy, y, dim, y.dtype),
    )


SPECS = [
    _spec(SOFTMAX, _reference, _tolerance, {"cuda": (*GRADIENT_TABLES["cuda"], f"{COLUMNS} float32")}),
    _spec(LOG_SOFTMAX, _log_reference, _log_tolerance, {}),
]
