"""layer_norm_backward: the gradients of layer_norm's operands."""

import numpy as np

from .. import _core
from . import OpSpec, Sample
from .rms_norm_backward import (
    gradient_bench,
    gradient_cost,
    gradient_samples,
    gradient_tails,
    gradient_tolerance,
    over_rows,
)
from .softmax import GRADIENT_TABLES, with_outliers


def _samples(rng):
    samples = list(gradient_samples(rng))
    for sample in samples:
        if sample.args[1].size == 1:
            continue  # dx is 0 whatever x is
        yield Sample(sample.label, (sample.args[0], sample.args[1] + 3.0, sample.args[2]), {"has_bias": True})
    for shape, far in (((5, 768), 1e4), ((64, 2), 1e3), ((64, 4), 2000.0)):
        args = rng.standard_normal(shape), far + rng.standard_normal(shape), rng.standard_normal(shape[1])
        yield Sample(f"far-from-0 {shape[1]}", args, {"has_bias": True, "eps": 1e-3})
    yield Sample("no-bias", samples[3].args)
    dy, x = rng.standard_normal((3, 5, 96)), with_outliers(rng, 3, 5, 96)
    yield Sample("no-weight", (dy, x), {"eps": 1e-3, "has_bias": True})
    yield Sample("no-parameters", (dy, x), {"eps": 1e-3})


def _tails(rng):
    for sample in gradient_tails(rng):
        yield Sample(sample.label, sample.args, {"has_bias": True})
    x = 1e4 + rng.standard_normal((3, 20000))
    yield Sample("far-from-0 20000", (rng.standard_normal(x.shape), x, rng.standard_normal(20000)), {"has_bias": True})


def _parts(x, eps):
    """r and n."""
    distance = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((distance * distance).mean(axis=-1, keepdims=True) + eps)
    return scale, distance * scale


def _reference(dy, x, weight=None, eps=1e-5, has_bias=False):
    if x.size == 0:
        dx, dweight, dbias = x, np.zeros(x.shape[-1]), np.zeros(x.shape[-1])
    else:
        scale, normal = _parts(x, eps)
        slope = dy if weight is None else dy * weight
        means = [y.mean(axis=-1, keepdims=True) for y in (slope, slope * normal)]
        dx = scale * (slope - means[0] - normal * means[1])
        dweight, dbias = over_rows(dy * normal), over_rows(dy)
    found = (dx, *([] if weight is None else [dweight]), *([dbias] if has_bias else []))
    return found if len(found) > 1 else dx


def _tolerance(dtype, sample):
    dy, x, *weight = sample.args
    if x.size == 0:
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        scale, normal = _parts(x, sample.kwargs.get("eps", 1e-5))
        slope = np.abs(dy * weight[0] if weight else dy)
        n = np.abs(normal) + 1  # a distance may be off by roundings of the mean one; the mean of the row is corrected
        if dtype == "float64":  # but not by v0, where it is off by some roundings of |x|
            n += scale * np.abs(x).mean(axis=-1, keepdims=True)
        means = [y.mean(axis=-1, keepdims=True) for y in (slope, slope * n)]
        dx = scale * (slope + means[0] + n * means[1])
        sums = [over_rows(np.abs(dy) * n)] if weight else []
        sums += [over_rows(np.abs(dy))] if sample.kwargs.get("has_bias") else []
    return gradient_tolerance(dtype, dx, sums, x.shape[-1])


def _cost(sample, dtype):
    has_weight, has_bias = len(sample.args) > 2, bool(sample.kwargs.get("has_bias"))
    return gradient_cost(sample, dtype, 12 + 3 * has_weight + has_bias, has_weight + has_bias)


def _bench():
    for label, dtype, shapes, _ in gradient_bench():
        yield label, dtype, shapes, {"has_bias": True}


SPEC = OpSpec(
    name="layer_norm_backward",
    fn=_core.layer_norm_backward,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    composed_dtypes=("float64",),
    tails=_tails,
    bench=_bench,
    tables=GRADIENT_TABLES,
)
