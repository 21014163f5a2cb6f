"""layer_norm over the last dimension."""

import functools

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, finite, sum_roundings, unit_roundoff
from .softmax import NORM_TABLES, SMALLEST, row_bench, row_cost, row_samples, row_tails, with_outliers


def _near_samples(rng):
    for sample in row_samples(rng, parameters=2):
        yield Sample(sample.label, (sample.args[0] + 3.0, *sample.args[1:]))
    yield Sample("no-parameters", (with_outliers(rng, 3, 5, 96),), {"eps": 1e-3})
    yield Sample("no-bias", (with_outliers(rng, 9, 33), rng.standard_normal(33)))


def _samples(rng):
    yield from _near_samples(rng)
    for shape, far, spread in (((5, 768), 1e4, 1.0), ((64, 2), 100.0, 0.01), ((64, 4), 2000.0, 1.0)):
        x = far + spread * rng.standard_normal(shape)
        yield Sample(f"far-from-0 {shape[1]}", (x, rng.standard_normal(shape[1]), rng.standard_normal(shape[1])))


def _normalized(x, eps):
    if x.size == 0:
        return x
    distance = x - x.mean(axis=-1, keepdims=True)
    return distance / np.sqrt((distance * distance).mean(axis=-1, keepdims=True) + eps)


def _reference(x, weight=1.0, bias=0.0, eps=1e-5):
    return _normalized(x, eps) * weight + bias


def _tolerance(dtype, sample):
    x, *parameters = sample.args
    u = (sum_roundings(x.shape[-1], dtype) + 8) * accumulator_roundoff(dtype)
    if x.size == 0:
        return 2 * unit_roundoff(dtype), SMALLEST[dtype]
    weight = parameters[0] if parameters else 1.0
    bias = parameters[1] if len(parameters) > 1 else 0.0
    x = np.where(np.isfinite(x), x, 0)
    eps = sample.kwargs.get("eps", 1e-5)
    distances = np.abs(weight).max()  # scaled, they are 1 in the mean; the mean of the row is corrected
    if dtype == "float64":  # but not by v0, where it is off by up to u |x|
        distances *= 1 + (np.abs(x).mean(axis=-1) / np.sqrt(x.var(axis=-1) + eps)).max()
    terms = np.abs(_normalized(x, eps) * weight).max() + np.abs(bias).max()
    return 2 * unit_roundoff(dtype) + u, u * distances + 4 * accumulator_roundoff(dtype) * terms + SMALLEST[dtype]


SPEC = OpSpec(
    name="layer_norm",
    fn=_core.layer_norm,
    samples=_samples,
    reference=_reference,
    cost=row_cost(5),
    tolerance=_tolerance,
    tails=functools.partial(row_tails, parameters=2),
    differentiable=finite(_near_samples),
    bench=row_bench(parameters=2),
    tables=NORM_TABLES,
    peer=lambda torch: lambda x, weight, bias: torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias),
)
