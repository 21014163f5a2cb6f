"""A chain of elementwise ops in one pass, as `rl.compile` makes them: GeLU by its definition, of x + bias."""

from __future__ import annotations

import functools
import math

import numpy as np

import rooflab as rl

from . import OpSpec, Sample, accumulator_roundoff, itemsize, unit_roundoff
from ._odd import odd_rows
from ._tiles import ELEMENTWISE, around, tile
from .softmax import BENCH_SHAPES

FLOPS = 10  # an element: the sum, and the nine ops of GeLU as it is written
SCALE, CUBIC = math.sqrt(2 / math.pi), 0.044715


def gelu_of_sum(x, bias, tanh=rl.tanh):
    y = x + bias
    return 0.5 * y * (1 + tanh(SCALE * (y + CUBIC * y * y * y)))


@functools.cache
def compiled(variant: str):
    return rl.compile(gelu_of_sum, variant=variant)


def fused(x, bias, variant: str = ""):
    return compiled(variant)(x, bias)


def samples(rng):
    for shape, bias in (
        ((37, 130), (130,)),
        ((3, 4, 65), (4, 1)),
        ((2, 9), (2, 9)),
        ((1,), (1,)),
        ((), ()),
        ((0, 3), (3,)),
    ):
        x = rng.standard_normal(shape) * 3
        x = np.where(rng.random(shape) < 0.05, rng.choice((0.0, 30.0, -30.0, 60.0), shape), x)
        yield Sample("_".join("x".join(map(str, s)) or "scalar" for s in (shape, bias)), (x, rng.standard_normal(bias)))


def tails(rng):
    for n in around(tile(ELEMENTWISE, "kBlock"), tile(ELEMENTWISE, "kParallelGrain")):
        yield Sample(f"{n}", (3 * rng.standard_normal(n), rng.standard_normal(1)))


def reference(x, bias):
    y = x + bias
    return 0.5 * y * (1 + np.tanh(SCALE * (y + CUBIC * y**3)))


def cost(sample, dtype):
    x, bias = sample.args
    size = itemsize(dtype)
    if x.size == 0:
        return rl.Cost()
    return rl.Cost(flops=FLOPS * x.size, bytes_read=(x.size + bias.size) * size, bytes_written=x.size * size)


def tolerance(dtype, sample):
    """The result's rounding, that of the arithmetic, and what 1 + tanh cancels where y is negative: |y| / 2 of it."""
    x, bias = sample.args
    y = np.abs(x) + np.abs(bias)
    return unit_roundoff(dtype) + 16 * accumulator_roundoff(dtype), 8 * y * accumulator_roundoff(dtype)


def bench():
    for dtype in ("bfloat16", "float32"):
        for shape in BENCH_SHAPES:
            yield f"{shape[0]}x{shape[1]}", dtype, (shape, shape[-1:]), {}
    yield from odd_rows(None)


SPEC = OpSpec(
    name="fused",
    fn=fused,
    samples=samples,
    reference=reference,
    cost=cost,
    tolerance=tolerance,
    tails=tails,
    differentiable=samples,
    bench=bench,
    peer=lambda torch: torch.compile(functools.partial(gelu_of_sum, tanh=torch.tanh)),
)
