"""cross_entropy and its backward: rows of logits and the classes that they should choose."""

from __future__ import annotations

import functools

import numpy as np

from .. import _core
from . import OpSpec, Places, Sample, accumulator_roundoff, itemsize, sum_roundings, unit_roundoff
from ._tiles import SOFTMAX_SIMD, around, tile
from .indexing import index_bytes
from .softmax import SMALLEST, with_outliers

IGNORED = -100
# Rows and classes: of Lab 2's model with L = 512 and 1024, and of a vocabulary whose rows begin anywhere.
_BENCH = ((2048, 10000), (4096, 10000), (4096, 50257), (2048, 131072))
_TABLES: dict[str, tuple[str, ...]] = {
    "cuda": ("4096x10000 bfloat16", "4096x10000 float32", "4096x50257 bfloat16", "4096x50257 float32"),
}


def _targets(rng, shape, classes, ignored=IGNORED):
    """Classes at random, a few of them ignored."""
    return np.where(rng.random(shape) < 0.2, ignored, rng.integers(0, classes, shape))


def _samples(rng):
    for i, (n, v) in enumerate(((5, 3), (37, 64), (64, 100), (9, 1000), (3, 4097), (2, 50257))):
        reduction = ("mean", "sum", "none")[i % 3]
        yield Sample(f"{n}x{v}", (with_outliers(rng, n, v), _targets(rng, n, v)), {"reduction": reduction})
    yield Sample("large", (with_outliers(rng, 37, 64) - 2e4, _targets(rng, 37, 64)))
    yield Sample("one-class", (rng.standard_normal((4, 1)), np.zeros(4, np.int64)))
    yield Sample("int32", (rng.standard_normal((6, 33)), _targets(rng, 6, 33).astype(np.int32)))
    yield Sample("another-ignored", (rng.standard_normal((9, 5)), _targets(rng, 9, 5, 3)), {"ignore_index": 3})
    yield Sample("no-example", (np.zeros((0, 7)), np.zeros(0, np.int64)), {"reduction": "sum"})
    yield Sample("no-losses", (np.zeros((0, 7)), np.zeros(0, np.int64)), {"reduction": "none"})
    x = with_outliers(rng, 6, 72)
    x[0] = -np.inf
    x[1, 5], x[2, 70], x[3, ::2], x[4, 2] = np.nan, np.inf, -np.inf, -np.inf
    yield Sample("nan-inf", (x, np.array([3, 6, 5, 1, 2, 71])), {"reduction": "none"})


def _tails(rng):
    lengths = around(16, tile(SOFTMAX_SIMD, "kBlock"))
    for n, v in ((4097, 3), *((2, v) for v in lengths)):
        yield Sample(f"{n}x{v}", (with_outliers(rng, n, v), rng.integers(0, v, n)), {"reduction": "none"})


def _log_sum_exp(rows):
    """The maximum of each row, and the logarithm of its exponentials relative to it."""
    top = rows.max(1, initial=-np.inf)
    return top, np.log(np.exp(rows - top[:, None]).sum(1))


def _reference(logits, target, ignore_index=IGNORED, reduction="mean"):
    counts = target != ignore_index
    top, rest = _log_sum_exp(logits)
    chosen = logits[np.arange(len(logits)), np.where(counts, target, 0).astype(np.int64)]
    losses = np.where(counts, rest - (chosen - top), 0)
    if reduction == "none":
        return losses
    return losses.sum() / (counts.sum() if reduction == "mean" else 1)


def _cost(sample, dtype):
    logits, target = sample.args
    reduction = sample.kwargs.get("reduction", "mean")
    if reduction == "none" and target.size == 0:
        return _core.Cost()
    width, wide = itemsize(dtype), 8 if dtype == "float64" else 4
    reduces = reduction != "none"
    return _core.Cost(
        flops=4 * logits.size + (3 + reduces) * target.size,
        bytes_read=logits.size * width + index_bytes(target),
        bytes_written=(1 if reduces else target.size) * width + 2 * target.size * wide + (reduction == "mean") * wide,
    )


def _spans(logits):
    """How far the finite logits of each row lie apart, as far as it matters: exp makes it a relative error."""
    return np.minimum(np.ptp(np.where(np.isfinite(logits), logits, 0), axis=1), 800)


def _tolerance(dtype, sample):
    """For a loss: the sum's relative error is its logarithm's error; the difference to the maximum is rounded."""
    logits, target = sample.args
    u = accumulator_roundoff(dtype)
    each = (sum_roundings(logits.shape[1], dtype) + 12 + 5 * _spans(logits)) * u
    rtol = 2 * unit_roundoff(dtype) + (target.size + 4) * u
    if sample.kwargs.get("reduction", "mean") == "none":
        return rtol, each + SMALLEST[dtype]
    return rtol, float(each.sum()) + SMALLEST[dtype]


def _differentiable(rng):
    """The finite samples; not the longest row, whose weights are lost in differences, nor large logits."""
    for sample in _samples(rng):
        logits = sample.args[0]
        if np.isfinite(logits).all() and logits.shape[-1] < 50000 and logits.size and sample.label != "large":
            yield sample


def _backward_samples(rng):
    for sample in _samples(rng):
        logits, target = sample.args
        if not np.isfinite(logits).all():
            continue
        reduction, ignored = sample.kwargs.get("reduction", "mean"), sample.kwargs.get("ignore_index", IGNORED)
        dloss = rng.standard_normal(target.shape if reduction == "none" else 1)
        count = [np.array([(target != ignored).sum()], np.float64)] if reduction == "mean" else []
        yield Sample(sample.label, (dloss, logits, target, *count), {"ignore_index": ignored})


def _backward_tails(rng):
    for sample in _tails(rng):
        yield Sample(sample.label, (rng.standard_normal(sample.args[1].shape), *sample.args))


def _prepare(dloss, logits, target, *count, **keywords):
    """What the op takes: lse and its rest beside the operands, in the dtype of sums; numbers without a dimension."""
    wide = logits if logits.dtype == "float64" else logits.float()
    top = wide.amax(1, keepdim=True)
    log_sum = (wide - top).exp().sum(1, keepdim=True).log()
    lse = top + log_sum
    lse_rest = (top - lse) + log_sum
    dloss = dloss if dloss.shape == target.shape else dloss.reshape(())
    count = [x.to(wide.dtype).reshape(()) for x in count]
    return dloss, logits, target, lse.squeeze(1), lse_rest.squeeze(1), *count


def _backward(dloss, logits, target, lse, lse_rest, *count, **keywords):
    return _core.cross_entropy_backward(dloss, logits, target, lse, *count, lse_rest=lse_rest, **keywords)


def _backward_reference(dloss, logits, target, count=None, ignore_index=IGNORED):
    counts = target != ignore_index
    top, rest = _log_sum_exp(logits)
    gradient = np.exp((logits - top[:, None]) - rest[:, None])  # their sum would be rounded
    gradient[np.arange(len(logits)), np.where(counts, target, 0).astype(np.int64)] -= 1
    return gradient * np.where(counts, dloss / (1 if count is None else count), 0)[:, None]


def _backward_tolerance(dtype, sample):
    """The rounding of differences and of a sum's log are relative errors of a probability, which is at most 1."""
    dloss, logits, target, *count = sample.args
    u = accumulator_roundoff(dtype)
    top, rest = _log_sum_exp(logits)
    lse = top + rest
    # The log of the sum is rounded, and so is what it is made of, in `_prepare`; exp adds a few roundings of its own.
    relative = (sum_roundings(logits.shape[1], dtype) + 24 + 4 * np.abs(rest) + 4 * _spans(logits)) * u
    each = np.abs(dloss / (count[0] if count else 1))
    each = np.where(target == sample.kwargs.get("ignore_index", IGNORED), 0, each)
    error = (np.exp(logits - lse[:, None]) * relative[:, None] + 2 * u) * each[:, None]
    return 2 * unit_roundoff(dtype), error + SMALLEST[dtype]


def _backward_cost(sample, dtype):
    dloss, logits, target, *count = sample.args
    if logits.size == 0:
        return _core.Cost()
    width, wide = itemsize(dtype), 8 if dtype == "float64" else 4
    read = (dloss.size + logits.size) * width + index_bytes(target) + (2 * target.size + len(count)) * wide
    return _core.Cost(flops=3 * logits.size + 2 * target.size, bytes_read=read, bytes_written=logits.size * width)


def _bench():
    for n, v in _BENCH:
        for dtype in ("bfloat16", "float32"):
            yield f"{n}x{v}", dtype, ((n, v), Places((n,), v)), {}


def _backward_bench():
    for n, v in _BENCH:
        for dtype in ("bfloat16", "float32"):
            yield f"{n}x{v}", dtype, ((1,), (n, v), Places((n,), v)), {}


def _peer(torch):
    return torch.nn.functional.cross_entropy


def _backward_peer(torch):
    @functools.cache
    def graph(logits, target):
        leaf = logits.detach().requires_grad_()
        return torch.nn.functional.cross_entropy(leaf, target, reduction="sum"), leaf

    def call(dloss, logits, target, lse, lse_rest):
        loss, leaf = graph(logits, target)
        return torch.autograd.grad(loss, leaf, dloss, retain_graph=True)

    return call


SPECS = [
    OpSpec(
        name="cross_entropy",
        fn=_core.cross_entropy,
        samples=_samples,
        reference=_reference,
        cost=_cost,
        tolerance=_tolerance,
        tails=_tails,
        differentiable=_differentiable,
        bench=_bench,
        tables=_TABLES,
        peer=_peer,
    ),
    OpSpec(
        name="cross_entropy_backward",
        fn=_backward,
        samples=_backward_samples,
        prepare=_prepare,
        reference=_backward_reference,
        cost=_backward_cost,
        tolerance=_backward_tolerance,
        tails=_backward_tails,
        bench=_backward_bench,
        tables=_TABLES,
        peer=_backward_peer,
    ),
]
