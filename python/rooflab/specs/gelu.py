"""GeLU in its tanh form (Hendrycks and Gimpel, 2016), fused."""

from __future__ import annotations

import functools

import numpy as np

import rooflab as rl

from . import OpSpec, Sample, accumulator_roundoff, finite, itemsize, unit_roundoff
from ._tiles import ELEMENTWISE, around, tile
from .softmax import BENCH_SHAPES, ROW_TABLES

FLOPS = 8  # an element


def samples(rng):
    for shape in ((37, 130), (3, 1, 65), (1,), (), (0, 3), (9, 2049)):
        x = rng.standard_normal(shape) * 3
        x = np.where(rng.random(shape) < 0.05, rng.choice((0.0, -0.0, 60.0, -60.0, 3e4, -3e4), shape), x)
        yield Sample("x".join(map(str, shape)) or "scalar", (x,))
    yield Sample("specials", (np.array([np.nan, np.inf, -np.inf, 0.0, -4.0, -12.0, 1e-7, 9.0]),))


def tails(rng):
    for n in around(tile(ELEMENTWISE, "kBlock"), tile(ELEMENTWISE, "kParallelGrain")):
        yield Sample(f"{n}", (3 * rng.standard_normal(n),))


def reference(x):
    return np.where(np.isneginf(x), 0.0, 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def cost(sample, dtype):
    (x,) = sample.args
    return rl.Cost(flops=FLOPS * x.size, bytes_read=x.size * itemsize(dtype), bytes_written=x.size * itemsize(dtype))


def tolerance(dtype, sample):
    """The result's rounding, a few of the arithmetic, and the exponent's own: |y| |2u| roundoffs; |y| |2u| < 1."""
    return unit_roundoff(dtype) + 8 * accumulator_roundoff(dtype), 4 * accumulator_roundoff(dtype)


def bench():
    for dtype in ("bfloat16", "float32"):
        for shape in BENCH_SHAPES:
            yield f"{shape[0]}x{shape[1]}", dtype, (shape,), {}


SPEC = OpSpec(
    name="gelu",
    fn=rl.gelu,
    samples=samples,
    reference=reference,
    cost=cost,
    tolerance=tolerance,
    tails=tails,
    differentiable=finite(samples),
    bench=bench,
    tables=ROW_TABLES,
    peer=lambda torch: functools.partial(torch.nn.functional.gelu, approximate="tanh"),
)
