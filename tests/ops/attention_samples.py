"""Operands of attention for tests, what it is in float64, and a call that a rung may not take."""

import numpy as np

import rooflab as rl
from rooflab.specs import attention as spec
from rooflab.testing import to_float64

DTYPES = ("float32", "float16", "bfloat16")


def qkv(q_shape, kv_shape=None, dtype="float32", device="cpu", seed=0):
    rng = np.random.default_rng(seed)
    shapes = (q_shape, kv_shape or q_shape, kv_shape or q_shape)
    return tuple(rl.tensor(rng.standard_normal(s), dtype=dtype, device=device) for s in shapes)


def exact(q, k, v, mask=None, **keywords):
    """attention and its log-sum-exp in float64."""
    q, k, v = (to_float64(x) for x in (q, k, v))
    weights, lse = spec.weights(spec.scores(q, k, None if mask is None else to_float64(mask), **keywords))
    return weights @ np.repeat(v, q.shape[1] // k.shape[1], 1), lse


def accepted(op, variant, *tensors, **keywords):
    """The rung's result, or None where it does not take these operands."""
    try:
        return op(*tensors, **keywords, variant=variant)
    except ValueError as error:
        if "does not accept these operands" not in str(error):
            raise
