"""rms_norm_add: a residual beside a norm, and the norm of the sum."""

import numpy as np

import rooflab as rl

from . import ODD, OpSpec, Sample, accumulator_roundoff, finite, itemsize, sum_roundings, unit_roundoff
from .rms_norm import SPEC as RMS_NORM
from .softmax import BENCH_SHAPES, SMALLEST, row_samples, with_outliers


def _samples(rng):
    for i, sample in enumerate(row_samples(rng, parameters=2)):
        x, weight, next_weight = sample.args
        options = {"eps": 1e-5, "zero_centered": bool(i % 2)}
        args = (x, with_outliers(rng, *x.shape), weight, next_weight)
        yield Sample(sample.label, args if i % 3 else args[:3], options)


def _reference(x, residual, weight, next_weight=None, **options):
    h = residual + RMS_NORM.reference(x, weight, **options)
    return h if next_weight is None else (h, RMS_NORM.reference(h, next_weight, **options))


def _cost(sample, dtype):
    x = sample.args[0].size
    if x == 0:
        return rl.Cost()
    norms, width = len(sample.args) - 2, itemsize(dtype)
    flops = norms * (5 if sample.kwargs["zero_centered"] else 4) + 1
    return rl.Cost(
        flops=flops * x, bytes_read=sum(a.size for a in sample.args) * width, bytes_written=norms * x * width
    )


def _tolerance(dtype, sample):
    """For h, its rounding and those of its terms. For y, also what the rounding of h, made before, does to it."""
    x, residual, weight, *next_weight = sample.args
    chain = (sum_roundings(x.shape[-1], dtype) + 8) * accumulator_roundoff(dtype)
    with np.errstate(all="ignore"):
        term = np.abs(np.nan_to_num(RMS_NORM.reference(x, weight, **sample.kwargs), posinf=0, neginf=0))
    h_atol = chain * (term + np.abs(np.nan_to_num(residual, posinf=0, neginf=0))) + SMALLEST[dtype]
    rtol = 2 * unit_roundoff(dtype) + chain
    if not next_weight:
        return rtol, h_atol
    with np.errstate(all="ignore"):
        h = _reference(x, residual, weight, **sample.kwargs)
        gain = np.abs(next_weight[0] + sample.kwargs["zero_centered"])
        scale = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + sample.kwargs["eps"]) if h.size else h
        moved = np.nan_to_num((h_atol + unit_roundoff(dtype) * np.abs(h)) * scale * gain, posinf=0, neginf=0)
    return rtol, (h_atol, 2 * moved + SMALLEST[dtype])


def _without_second_norm(rng):
    """Gradients of h, which does not depend on the next weight; those of y are in tests/ops/test_rms_norm_add.py.

    The residual has the sign of the norm, because where both cancel, h does not tell how large the terms of its
    gradient are.
    """
    for sample in finite(_samples)(rng):
        x, residual, weight = sample.args[:3]
        aligned = np.copysign(residual, RMS_NORM.reference(x, weight, **sample.kwargs))
        yield Sample(sample.label, (x, aligned, weight), sample.kwargs)


def _bench():
    for dtype in ("bfloat16", "float32"):
        for rows, d in BENCH_SHAPES:
            yield f"{rows}x{d}", dtype, ((rows, d), (rows, d), (d,), (d,)), {}
    yield f"{ODD}64x640", "bfloat16", ((64, 640), (64, 640), (640,), (640,)), {}


SPEC = OpSpec(
    name="rms_norm_add",
    fn=rl.rms_norm_add,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    differentiable=_without_second_norm,
    bench=_bench,
)
