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
    finite_operands,
    heads_first,
    operand_bytes,
    peer_calls,
    samples,
    score_error,
    scores,
    tails,
    visible_pairs,
    weights,
)
from .softmax import SMALLEST


def _samples(rng):
    for sample in samples(rng, finite_only=True):
        q, k, v, *mask = sample.args
        if q.shape[-2] == 0 and q.size < k.size:
            continue  # dk and dv are filled with zeros then, in two launches
        yield Sample(sample.label, (rng.standard_normal(q.shape), q, k, v, *mask), sample.kwargs)


def _tails(rng):
    for sample in tails(rng):
        yield Sample(sample.label, (rng.standard_normal(sample.args[0].shape), *sample.args), sample.kwargs)


def _prepare(dout, q, k, v, *mask, **keywords):
    """What the op takes: the operands with attention's result and log-sum-exp among them."""
    return dout, q, k, v, *_core.attention(q, k, v, *mask, return_lse_rest=True, **keywords), *mask


def _backward(dout, q, k, v, out, lse, lse_rest, mask=None, **keywords):
    return _core.attention_backward(dout, q, k, v, out, lse, mask, lse_rest=lse_rest, **keywords)


def _reference(dout, q, k, v, mask=None, **keywords):
    shapes = q.shape, k.shape, v.shape
    dout, q, k, v = (heads_first(x) for x in (dout, q, k, v))
    group = q.shape[1] // max(k.shape[1], 1)
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    p, _ = weights(scores(q, k, mask, **keywords))
    dp = dout @ values.swapaxes(-2, -1)
    scale = keywords.get("scale") or 1 / math.sqrt(q.shape[-1])
    ds = scale * p * (dp - (p * dp).sum(-1, keepdims=True))
    by_key_head = (k.shape[0], k.shape[1], group, *k.shape[2:])
    dk = (ds.swapaxes(-2, -1) @ q).reshape(by_key_head).sum(2)
    dv = (p.swapaxes(-2, -1) @ dout).reshape(by_key_head).sum(2)
    return tuple(x.reshape(shape) for x, shape in zip((ds @ keys, dk, dv), shapes, strict=True))


def _tolerance(dtype, sample, roundings=0):
    """Weights or dS and the gradient are rounded, relative to the largest; besides, dS holds a difference, dP - D.

    Where that cancels, its error counts: that of a sum of D_h products, and of the result that D is made of. Rules made
    of ops also round scores and dP, `roundings` times each.
    """
    mask = sample.args[4] if len(sample.args) > 4 else None
    q, k, v, _ = finite_operands(*sample.args[1:4])
    if q.size == 0 or k.size == 0:
        return 0.0, (0.0, 0.0, 0.0)
    u, sums = unit_roundoff(dtype), accumulator_roundoff(dtype)
    dout, group, scale = heads_first(sample.args[0]), q.shape[1] // k.shape[1], sample.kwargs.get("scale")
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = scores(q, k, mask, **sample.kwargs)
    p, _ = weights(s)
    in_p = p * np.expm1(np.minimum(roundings * u * np.where(np.isfinite(s), np.abs(s), 0), 50))
    dp, out = dout @ values.swapaxes(-2, -1), p @ values
    in_dp = 4 * (q.shape[-1] ** 0.5 + 1) * sums * (np.abs(dout) @ np.abs(values).swapaxes(-2, -1))
    in_d = 2 * u * np.sqrt(((dout * out) ** 2).sum(-1, keepdims=True))
    d = (dout * out).sum(-1, keepdims=True)
    in_ds = p * (in_dp + roundings * u * np.abs(dp) + in_d) + in_p * np.abs(dp - d)
    in_ds *= scale or 1 / math.sqrt(q.shape[-1])
    by_key_head = (k.shape[0], k.shape[1], group, *k.shape[2:])
    in_dk = (in_ds.swapaxes(-2, -1) @ np.abs(q)).reshape(by_key_head).sum(2)
    in_dv = (in_p.swapaxes(-2, -1) @ np.abs(dout)).reshape(by_key_head).sum(2)
    error = 3 * u + 2 * score_error(dtype, q, k, scale) + 4 * (k.shape[-2] + q.shape[-1]) ** 0.5 * sums
    gradients = _reference(*sample.args, **sample.kwargs)
    return 0.0, tuple(
        error * np.abs(x).max(initial=0) + cancelled.reshape(x.shape) + SMALLEST[dtype]
        for x, cancelled in zip(gradients, (in_ds @ np.abs(keys), in_dk, in_dv), strict=True)
    )


def _cost(sample, dtype):
    _, q, k = sample.args[:3]
    width = itemsize(dtype)
    written = (q.size + 2 * k.size) * width
    if k.size == 0 or q.size == 0:
        return _core.Cost(bytes_written=written)
    pairs = visible_pairs(q, k, **sample.kwargs)
    macs = 5 * pairs * q.shape[-1]
    out_and_lse = q.size * width + 8 * math.prod(q.shape[:-1])  # lse and its rest
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
        def call(dout, q, k, v, out, lse, lse_rest, is_causal=False):
            result, leaves = graph(forward, is_causal, q, k, v)
            return torch.autograd.grad(result, leaves, dout, retain_graph=True)

        return call

    return {name: backward(forward) for name, forward in peer_calls(torch).items()}


SPEC = OpSpec(
    name="attention_backward",
    fn=_backward,
    samples=_samples,
    prepare=_prepare,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    composed_tolerance=functools.partial(_tolerance, roundings=2),
    dtypes=DTYPES,
    composed_dtypes=("float64",),
    tails=_tails,
    bench=_bench,
    tables={
        "cpu": ("H4 D128 L512 causal float32", "H4 D128 L2048 causal float32"),
        "cuda": ("H4 D128 L2048 causal float32", *LONGEST),
    },
    peer=_peer,
)
