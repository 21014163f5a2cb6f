"""rms_norm over the last dimension."""

import functools

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, finite, sum_roundings, unit_roundoff
from .softmax import NORM_TABLES, SMALLEST, row_bench, row_cost, row_samples, row_tails, with_outliers


def _samples(rng):
    yield from row_samples(rng, parameters=1)
    for sample in list(row_samples(rng, parameters=1))[3:7]:
        yield Sample(f"{sample.label} zero-centered", sample.args, {"zero_centered": True})
    yield Sample("no-weight", (with_outliers(rng, 3, 5, 96),), {"eps": 1e-3})


def _reference(x, weight=None, eps=1e-6, zero_centered=False):
    if x.size == 0:
        return x
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * (1 if weight is None else weight + zero_centered)


def _cost(sample, dtype):
    return row_cost(4 if sample.kwargs.get("zero_centered") else 3)(sample, dtype)


def _tolerance(dtype, sample):
    chain = sum_roundings(sample.args[0].shape[-1], dtype)
    return 2 * unit_roundoff(dtype) + (chain + 8) * accumulator_roundoff(dtype), SMALLEST[dtype]


SPEC = OpSpec(
    name="rms_norm",
    fn=_core.rms_norm,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    tails=functools.partial(row_tails, parameters=1),
    differentiable=finite(_samples),
    bench=row_bench(parameters=1),
    tables=NORM_TABLES,
    peer=lambda torch: lambda x, weight: torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6),
)
