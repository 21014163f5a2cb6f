"""rope: heads rotated by the angles of their positions."""

import numpy as np

import rooflab as rl

from . import OpSpec, Sample, accumulator_roundoff, finite, itemsize, unit_roundoff
from .softmax import with_outliers


def _tables(rng, *shape):
    """Any cosines and sines: those of the two halves differ here, unlike in models."""
    return np.cos(rng.uniform(0, 50, shape)), np.sin(rng.uniform(0, 50, shape))


def _samples(rng):
    for b, h, length, d in ((2, 3, 37, 64), (1, 4, 1, 256), (3, 1, 5, 34), (1, 2, 3, 2), (2, 2, 0, 8)):
        x = with_outliers(rng, b, h, length, d)
        yield Sample(f"B{b} H{h} L{length} D{d}", (x, *_tables(rng, length, d)))
    yield Sample("positions a batch", (with_outliers(rng, 3, 2, 9, 40), *_tables(rng, 3, 9, 40)))
    yield Sample("H5 L7 D16", (with_outliers(rng, 5, 7, 16), *_tables(rng, 7, 16)))


def _reference(x, cos, sin):
    if cos.ndim == 3 and x.ndim == 4:
        cos, sin = cos[:, None], sin[:, None]
    first, second = np.split(x, 2, axis=-1)
    return x * cos + np.concatenate([-second, first], axis=-1) * sin


def _cost(sample, dtype):
    x, cos, sin = (a.size for a in sample.args)
    width = itemsize(dtype)
    return rl.Cost(flops=3 * x, bytes_read=(x + cos + sin) * width, bytes_written=x * width) if x else rl.Cost()


def _tolerance(dtype, sample):
    """Each product's rounding and the sum's; the sum may cancel, so these are relative to the terms."""
    x, cos, sin = sample.args
    size = _reference(np.abs(x), np.abs(cos), 0 * sin) + np.abs(_reference(x, 0 * cos, sin))
    return unit_roundoff(dtype), 3 * accumulator_roundoff(dtype) * size + 2.0**-126


def _bench():
    for dtype in ("bfloat16", "float32"):
        yield "B8 H4 L4096 D256", dtype, ((8, 4, 4096, 256), (4096, 256), (4096, 256)), {}


SPEC = OpSpec(
    name="rope",
    fn=rl.rope,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    differentiable=finite(_samples),
    bench=_bench,
)
