"""attention_backward: the gradients of q, k and v from the result and the log-sum-exp of attention."""

import functools
import math

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, itemsize, unit_roundoff
from .attention import (
    DTYPES,
    LONGEST,
    bench_shapes,
    heads_first,
    operand_bytes,
    peer_calls,
    samples,
    scores,
    visible_pairs,
    weight_error,
    weights,
)
from .softmax import SMALLEST


def _samples(rng):
    for sample in samples(rng, finite_only=True):
        q, k, v, *mask = sample.args
        if q.shape[-2] == 0 and q.size < k.size:
            continue  # dk and dv are filled with zeros then, in two launches
        yield Sample(sample.label, (rng.standard_normal(q.shape), q, k, v, *mask), sample.kwargs)


def _prepare(dout, q, k, v, *mask, **keywords):
    """What the op takes: the operands with attention's result and log-sum-exp among them."""
    out, lse = _core.attention(q, k, v, *mask, return_lse=True, **keywords)
    return dout, q, k, v, out, lse, *mask


def _gradients(dout, q, k, v, mask, keywords, magnitudes=False):
    """dq, dk and dv; or what bounds their rounding errors, when all terms count with their magnitudes."""
    shapes = q.shape, k.shape, v.shape
    dout, q, k, v = (heads_first(x) for x in (dout, q, k, v))
    group = q.shape[1] // max(k.shape[1], 1)
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    p, _ = weights(scores(q, k, mask, **keywords))
    if magnitudes:
        dout, q, keys, values = (np.abs(x) for x in (dout, q, keys, values))
    dp = dout @ values.swapaxes(-2, -1)
    d = (p * dp).sum(-1, keepdims=True)
    scale = keywords.get("scale") or 1 / math.sqrt(q.shape[-1])
    ds = scale * p * (dp + d if magnitudes else dp - d)
    by_key_head = (k.shape[0], k.shape[1], group, *k.shape[2:])
    dk = (ds.swapaxes(-2, -1) @ q).reshape(by_key_head).sum(2)
    dv = (p.swapaxes(-2, -1) @ dout).reshape(by_key_head).sum(2)
    return tuple(x.reshape(shape) for x, shape in zip((ds @ keys, dk, dv), shapes, strict=True))


def _reference(dout, q, k, v, mask=None, **keywords):
    return _gradients(dout, q, k, v, mask, keywords)


def _tolerance(dtype, sample):
    dout, q, k, v, *mask = sample.args
    mask = mask[0] if mask else None
    bounds = _gradients(dout, q, k, v, mask, sample.kwargs, magnitudes=True)
    error = 2 * min(weight_error(dtype, q, k, sample.kwargs.get("scale")), 2.0)
    error += 8 * unit_roundoff(dtype) + (q.shape[-2] + q.shape[-1]) * accumulator_roundoff(dtype)
    return 2 * unit_roundoff(dtype), error * max(float(b.max(initial=0)) for b in bounds) + SMALLEST[dtype]


def _cost(sample, dtype):
    _, q, k = sample.args[:3]
    width = itemsize(dtype)
    written = (q.size + 2 * k.size) * width
    if k.size == 0 or q.size == 0:
        return _core.Cost(bytes_written=written)
    pairs = visible_pairs(q, k, **sample.kwargs)
    macs = 5 * pairs * q.shape[-1]
    out_and_lse = q.size * width + 4 * math.prod(q.shape[:-1])
    return _core.Cost(
        macs=macs,
        flops=2 * macs + 4 * pairs + 2 * q.size,
        bytes_read=operand_bytes(sample, dtype) + out_and_lse,
        bytes_written=written,
    )


def _bench():
    for label, shape, keywords in bench_shapes():
        yield label, "bfloat16", (shape,) * 4, keywords
    for length in (512, 2048):
        yield f"H4 D128 L{length} causal", "float32", ((1, 4, length, 128),) * 4, {"is_causal": True}


def _peer(torch):
    @functools.cache
    def graph(call, is_causal, *qkv):
        leaves = tuple(x.detach().requires_grad_() for x in qkv)
        return call(*leaves, is_causal=is_causal), leaves

    def backward(forward):
        def call(dout, q, k, v, out, lse, is_causal=False):
            result, leaves = graph(forward, is_causal, q, k, v)
            return torch.autograd.grad(result, leaves, dout, retain_graph=True)

        return call

    return {name: backward(forward) for name, forward in peer_calls(torch).items()}


SPEC = OpSpec(
    name="attention_backward",
    fn=_core.attention_backward,
    samples=_samples,
    prepare=_prepare,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    dtypes=DTYPES,
    bench=_bench,
    tables={
        "cpu": ("H4 D128 L512 causal float32", "H4 D128 L2048 causal float32"),
        "cuda": ("H4 D128 L2048 causal float32", *LONGEST),
    },
    peer=_peer,
)
