"""Functions that reduce rows and use the results, which tests of rl.compile share, and how far their results differ."""

import math

import numpy as np

import rooflab as rl
from rooflab.specs import itemsize, unit_roundoff


def loss(x, y):
    return ((x - y) ** 2).mean(-1)


def rms_norm(x, weight):
    return x * (1 / rl.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)) * weight


def softmax(x):
    scores = x * 0.125
    e = rl.exp(scores - scores.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def plain_softmax(x):
    """The largest is that of an operand: no chain makes what is reduced."""
    e = rl.exp(x - rl.amax(x, dim=-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdim=True)
    return centered * rl.rsqrt((centered**2).mean(-1, keepdim=True) + 1e-5) * weight + bias


def residual_norm(x, y, weight):
    """The sum is a result, too, and so are the rows' numbers."""
    total = x + y
    scale = rl.rsqrt((total * total).mean(-1, keepdim=True) + 1e-5)
    return total * scale * weight, total, scale


def normed_softmax(x, weight, bias):
    """Five passes over the rows."""
    return layer_norm(softmax(x) * 100, weight, bias)


def shifted(x):
    """Rows' numbers whose dimension was dropped and comes back, and one that is computed in another dtype."""
    low = x.amin(-1)
    return x - low[..., None], x * (low + 1).unsqueeze(-1), x.to("float64") - low.to("float64")[..., None]


def statistics(x, weight, bias):
    """Four reductions of a chain, with and without the dimension that they reduce, and work on rows."""
    y = x * weight
    return y.sum(-1) * 2 + bias, y.amin(-1, keepdim=True), y.amax(-1) - y.mean(-1), y


def operands(shape, dtype, device="cpu", seed=0):
    rng = np.random.default_rng(seed)
    x, y = (rl.tensor(rng.standard_normal(shape), device=device).to(dtype) for _ in range(2))
    weight, bias = (rl.tensor(rng.standard_normal(s), device=device).to(dtype) for s in (shape[-1:], shape[:-1]))
    return x, y, weight, bias


def bounds(n, dtype="float32"):
    """How far sums of n terms may differ, in roundings of the result, and where they cancel.

    Where elements are rounded to 16 bits first, sqrt(n) such roundings add up. Otherwise those of partial sums do,
    whose size is sqrt(n); of terms that do not cancel they are sqrt(n) of the result.
    """
    atol = unit_roundoff(dtype) * (4 * math.sqrt(n) if itemsize(dtype) == 2 else 2 * n)
    return {"steps": 24 + math.sqrt(n), "atol": atol}
