"""log_softmax: the logarithm of softmax, whose rows, cost and bench it shares."""

import numpy as np

from .. import _core
from . import OpSpec, accumulator_roundoff, finite, sum_roundings, unit_roundoff
from .softmax import SMALLEST, length_of, row_cost, row_tails, softmax_bench, softmax_samples


def _reference(x, dim=-1):
    if not x.size:
        return x
    shifted = x - x.max(axis=dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def _tolerance(dtype, sample):
    """What the logarithm makes an absolute error of: the relative one of the sum of exponentials."""
    x = sample.args[0]
    finite = np.where(np.isfinite(x), x, 0)
    span = min(float(np.ptp(finite)) if x.size else 0.0, 800.0)
    u = accumulator_roundoff(dtype)
    return 2 * unit_roundoff(dtype) + 2 * u, (sum_roundings(length_of(sample), dtype) + 8 + 3 * span) * u + SMALLEST[
        dtype
    ]


SPEC = OpSpec(
    name="log_softmax",
    fn=_core.log_softmax,
    samples=softmax_samples,
    reference=_reference,
    cost=row_cost(5),
    tolerance=_tolerance,
    tails=row_tails,
    differentiable=finite(softmax_samples),
    bench=softmax_bench,
    peer=lambda torch: lambda x, dim=-1: torch.log_softmax(x, dim),
)
