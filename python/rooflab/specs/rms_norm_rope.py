"""rms_norm_rope: heads normalised, then rotated by the angles of their positions."""

import numpy as np

import rooflab as rl

from . import OpSpec, Sample, accumulator_roundoff, finite, itemsize, unit_roundoff
from .rms_norm import SPEC as RMS_NORM
from .rope import SPEC as ROPE


def _samples(rng):
    for i, sample in enumerate(ROPE.samples(rng)):
        x, cos, sin = sample.args
        weight = rng.standard_normal(x.shape[-1])
        options = {"eps": 1e-5, "zero_centered": bool(i % 2)}
        yield Sample(sample.label, (x, weight, cos, sin), options)


def _reference(x, weight, cos, sin, **options):
    return ROPE.reference(RMS_NORM.reference(x, weight, **options), cos, sin)


def _cost(sample, dtype):
    x, *others = (a.size for a in sample.args)
    if x == 0:
        return rl.Cost()
    width, flops = itemsize(dtype), 8 if sample.kwargs["zero_centered"] else 7
    return rl.Cost(flops=flops * x, bytes_read=(x + sum(others)) * width, bytes_written=x * width)


def _tolerance(dtype, sample):
    """rope's tolerance, with each term already off by the norm's roundings."""
    x, weight, cos, sin = sample.args
    normal = np.abs(RMS_NORM.reference(x, weight, **sample.kwargs))
    size = ROPE.reference(normal, np.abs(cos), 0 * sin) + np.abs(ROPE.reference(normal, 0 * cos, sin))
    return unit_roundoff(dtype), (x.shape[-1] + 12) * accumulator_roundoff(dtype) * size + 2.0**-126


def _bench():
    for dtype in ("bfloat16", "float32"):
        yield "B8 H4 L4096 D256", dtype, ((8, 4, 4096, 256), (256,), (4096, 256), (4096, 256)), {}


SPEC = OpSpec(
    name="rms_norm_rope",
    fn=rl.rms_norm_rope,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    differentiable=finite(_samples),
    bench=_bench,
)
