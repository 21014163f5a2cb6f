"""rms_norm_backward: the gradients of rms_norm's operands, and what it shares with the spec of layer_norm_backward."""

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, itemsize, sum_roundings, unit_roundoff
from ._tiles import COLUMN_SUMS, around, tile
from .softmax import BENCH_SHAPES, GRADIENT_TABLES, ONE_ROW, SMALLEST, row_samples, with_outliers


def gradient_samples(rng):
    """The rows of a norm's samples, with the gradient of the result before them and a weight behind them."""
    for sample in row_samples(rng, parameters=1):
        x, weight = sample.args
        # A row of one element has a gradient only because of eps.
        yield Sample(sample.label, (rng.standard_normal(x.shape), x, weight), {"eps": 0.5} if x.size == 1 else {})
    dy = rng.standard_normal((4, 24))
    dy[1, 3], dy[2, 5] = np.nan, np.inf
    yield Sample("nan-inf-dy", (dy, with_outliers(rng, 4, 24), rng.standard_normal(24)))
    yield Sample("alike-dy", (np.full((3000, 8), 0.1), with_outliers(rng, 3000, 8), rng.standard_normal(8)))


def gradient_tails(rng):
    """Rows around the blocks whose sums are kept apart, lengths around vectors, warps and blocks of them, and rows that
    blocks share.
    """
    rows = around(
        tile(COLUMN_SUMS, "kBlockRows"), tile(COLUMN_SUMS, "kBlockRows") * tile(COLUMN_SUMS, "kMostRowBlocks")
    )
    block, warp = 32 * tile(COLUMN_SUMS, "kColumnSumElements"), 32 * tile(COLUMN_SUMS, "kWarpRowElements")
    long = (block // 4, block // 2, block, warp, 2 * block)
    lengths = [*around(16, 32), *(d + step for d in long for step in (-8, 0, 8))]
    most = tile(COLUMN_SUMS, "kMostRowBlocks") * tile(COLUMN_SUMS, "kMostBlockRows")
    shared = ((3, 16385), (tile(COLUMN_SUMS, "kMostBlockRows") + 1, 16392))
    for shape in (*((n, 17) for n in (*rows, most + 1)), (4097, 8), *((11, d) for d in lengths), *shared):
        weight = rng.standard_normal(shape[-1])
        yield Sample("x".join(map(str, shape)), (rng.standard_normal(shape), with_outliers(rng, *shape), weight))


def _samples(rng):
    samples = list(gradient_samples(rng))
    yield from samples
    for sample in samples[3:7]:
        yield Sample(f"{sample.label} zero-centered", sample.args, {"zero_centered": True})
    yield Sample("no-weight", (rng.standard_normal((3, 5, 96)), with_outliers(rng, 3, 5, 96)), {"eps": 1e-3})


def over_rows(x):
    """The sum over all dimensions but the last."""
    return x.reshape(-1, x.shape[-1]).sum(0) if x.ndim > 1 else x


def _parts(x, weight, eps, zero_centered):
    """r, n and the gain."""
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    return scale, x * scale, 1.0 if weight is None else weight + zero_centered


def _reference(dy, x, weight=None, eps=1e-6, zero_centered=False):
    if x.size == 0:
        return x if weight is None else (x, np.zeros_like(weight))
    scale, normal, gain = _parts(x, weight, eps, zero_centered)
    slope = dy * gain
    dx = scale * (slope - normal * (slope * normal).mean(axis=-1, keepdims=True))
    return dx if weight is None else (dx, over_rows(dy * normal))


def gradient_tolerance(dtype, dx, sums, length):
    """For dx, whose terms are as large as `dx` says, and for sums over rows of terms whose absolute values add up to
    `sums`: each of their terms has the error of a row's statistics.

    Every result is rounded once to the dtype; all before is rounded as the accumulators are.
    """
    u = accumulator_roundoff(dtype)
    chain = sum_roundings(length, dtype) + 16
    rows = sum_roundings(dx.size // max(length, 1), dtype)
    with np.errstate(all="ignore"):
        atol = [
            np.nan_to_num(chain * u * dx, posinf=0),
            *((chain + rows) * u * np.nan_to_num(x, posinf=0) for x in sums),
        ]
    atol = tuple(x + SMALLEST[dtype] for x in atol)
    return 2 * unit_roundoff(dtype), atol if sums else atol[0]


def _tolerance(dtype, sample):
    dy, x, *weight = sample.args
    if x.size == 0:
        return 0.0, 0.0
    options = {"eps": 1e-6, "zero_centered": False} | sample.kwargs
    with np.errstate(all="ignore"):
        scale, normal, gain = _parts(x, weight[0] if weight else None, **options)
        slope = np.abs(dy * gain)
        dx = scale * (slope + np.abs(normal) * (slope * np.abs(normal)).mean(axis=-1, keepdims=True))
        sums = [over_rows(np.abs(dy * normal))] if weight else []
    return gradient_tolerance(dtype, dx, sums, x.shape[-1])


def gradient_cost(sample, dtype, flops, parameters):
    """`flops` an element of x; `parameters` gradients of length D are written besides dx."""
    dy, x, *weight = sample.args
    if x.shape[-1] == 0:
        return _core.Cost()
    width = itemsize(dtype)
    return _core.Cost(
        flops=flops * x.size,
        bytes_read=(dy.size + x.size + sum(a.size for a in weight)) * width,
        bytes_written=(x.size + parameters * x.shape[-1]) * width,
    )


def _cost(sample, dtype):
    parameters = len(sample.args) - 2
    flops = 8 + parameters * (4 if sample.kwargs.get("zero_centered") else 3)
    return gradient_cost(sample, dtype, flops, parameters)


def gradient_bench():
    """`bench` for dy, x and a weight."""
    for rows, d in BENCH_SHAPES:
        for dtype in ("bfloat16", "float32"):
            yield f"{rows}x{d}", dtype, ((rows, d), (rows, d), (d,)), {}
    for dtype in ("bfloat16", "float32"):
        yield ONE_ROW, dtype, ((1, 262144), (1, 262144), (262144,)), {}


SPEC = OpSpec(
    name="rms_norm_backward",
    fn=_core.rms_norm_backward,
    samples=_samples,
    reference=_reference,
    cost=_cost,
    tolerance=_tolerance,
    composed_dtypes=("float64",),
    tails=gradient_tails,
    bench=gradient_bench,
    tables=GRADIENT_TABLES,
)
