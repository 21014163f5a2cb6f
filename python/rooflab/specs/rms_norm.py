"""rms_norm over the last dimension."""

import functools

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, finite, unit_roundoff
from .softmax import CHAIN, ROW_TABLES, SMALLEST, row_bench, row_cost, row_samples, row_tails, with_outliers


def _samples(rng):
    yield from row_samples(rng, parameters=1)
    yield Sample("no-weight", (with_outliers(rng, 3, 5, 96),), {"eps": 1e-3})


def _reference(x, weight=1.0, eps=1e-6):
    if x.size == 0:
        return x
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight


def _tolerance(dtype, sample):
    chain = min(sample.args[0].shape[-1], CHAIN)
    return 2 * unit_roundoff(dtype) + (chain + 8) * accumulator_roundoff(dtype), SMALLEST[dtype]


SPEC = OpSpec(
    name="rms_norm",
    fn=_core.rms_norm,
    samples=_samples,
    reference=_reference,
    cost=row_cost(3),
    tolerance=_tolerance,
    tails=functools.partial(row_tails, parameters=1),
    differentiable=finite(_samples),
    bench=row_bench(parameters=1),
    tables=ROW_TABLES,
    peer=lambda torch: lambda x, weight: torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6),
)
