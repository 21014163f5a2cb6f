"""softmax_backward: the gradient of softmax's operand from its result."""

import functools

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, itemsize, sum_roundings, unit_roundoff
from .softmax import BENCH_SHAPES, GRADIENT_TABLES, SMALLEST, row_samples, row_tails
from .softmax import SPEC as SOFTMAX


def _with_gradient(rng, sample, **options):
    with np.errstate(all="ignore"):
        y = SOFTMAX.reference(*sample.args, **options)
    return Sample(sample.label, (rng.standard_normal(y.shape), y), options)


def _samples(rng):
    for sample in row_samples(rng):
        if sample.args[0].shape[-1] != 1:  # of one element it is 0
            yield _with_gradient(rng, sample)
    dy, y = _with_gradient(rng, Sample("", (rng.standard_normal((6, 5, 40)),))).args
    dy[0, 1, 3], dy[2, 3, 5] = np.nan, np.inf
    yield Sample("nan-inf-dy", (dy, y))


def _tails(rng):
    for sample in row_tails(rng):
        yield _with_gradient(rng, sample)
    for d in (40, 48, 160, 168, 16384, 16392):
        yield _with_gradient(rng, Sample(f"5x{d}", (rng.standard_normal((5, d)),)))


def _reference(dy, y, dim=-1):
    return y * (dy - (dy * y).sum(axis=dim, keepdims=True))


def _tolerance(dtype, sample, roundings=0):
    """The sum is off by some roundings of its terms; rules made of ops also round terms, sum and difference."""
    dy, y = sample.args
    with np.errstate(all="ignore"):
        terms = np.abs(dy * y).sum(axis=sample.kwargs.get("dim", -1), keepdims=True)
        error = (sum_roundings(y.shape[-1], dtype) + 8) * accumulator_roundoff(dtype) + roundings * unit_roundoff(dtype)
        atol = np.nan_to_num(error * np.abs(y) * (np.abs(dy) + terms), posinf=0)
    return 2 * unit_roundoff(dtype), atol + SMALLEST[dtype]


def _cost(sample, dtype):
    size = sample.args[1].size
    return _core.Cost(flops=4 * size, bytes_read=2 * size * itemsize(dtype), bytes_written=size * itemsize(dtype))


def _bench():
    for rows, d in BENCH_SHAPES:
        for dtype in ("bfloat16", "float32"):
            yield f"{rows}x{d}", dtype, ((rows, d), (rows, d)), {}


SPEC = OpSpec(
    name="softmax_backward",
    fn=_core.softmax_backward,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    composed_tolerance=functools.partial(_tolerance, roundings=3),
    composed_dtypes=("float64",),
    tails=_tails,
    bench=_bench,
    tables=GRADIENT_TABLES,
    peer=lambda torch: lambda dy, y: torch._softmax_backward_data(dy, y, -1, y.dtype),
)
