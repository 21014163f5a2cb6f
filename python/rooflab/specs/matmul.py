"""matmul: 2-D, batched, vectors on either side; ragged sizes that fill no tile, and K longer than a packed panel."""

import math

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, finite, itemsize, unit_roundoff
from ._tiles import AMX, BF16_DOT, BF16_MMLA, BLOCKED, GEMV, PACKED, PACKED_SIMD, REGISTER_TILE, around, tile
from .softmax import SMALLEST, with_outliers

# (shape of a, shape of b): size 1 and 0, odd sizes, whole tiles, vectors, batches. Leading dimensions that both
# broadcast cost a copy of one operand: tests/ops/test_matmul.py has those.
SHAPES = (
    ((1, 1), (1, 1)),
    ((5, 9), (9, 7)),
    ((13, 19), (19, 17)),
    ((64, 64), (64, 64)),
    ((97, 263), (263, 101)),
    ((33, 2100), (2100, 35)),
    ((3, 300), (300, 700)),
    ((700, 300), (300, 3)),
    ((1, 1000), (1000, 300)),
    ((300, 1000), (1000, 1)),
    ((1000,), (1000,)),
    ((40,), (40, 30)),
    ((3, 30, 40), (40,)),
    ((3, 14, 32), (3, 32, 33)),
    ((2, 3, 8, 16), (16, 8)),
    ((0, 4), (4, 3)),
    ((3, 4), (4, 0)),
    ((3, 0), (0, 4)),
    ((1, 0), (0, 5)),
    ((5, 0), (0, 1)),
    ((0,), (0,)),
    ((0, 3, 4), (4, 2)),
)
BENCH_SIZES = (512, 1024, 2048, 4096, 8192)
BENCH_VECTOR = 8192


def _samples(rng):
    for a, b in SHAPES:
        label = "_".join("x".join(map(str, shape)) for shape in (a, b))
        yield Sample(label, (with_outliers(rng, *a), with_outliers(rng, *b)))
    a, b = with_outliers(rng, 20, 50), with_outliers(rng, 50, 40)
    a[3, 4], a[5, 6], b[7, 8], b[4, :5] = np.inf, np.nan, -np.inf, 0.0  # inf * 0 must come out as NaN
    yield Sample("nan-inf", (a, b))


def _tails(rng):
    """Rows, columns and depths around the tiles, blocks, panels and stretches of each rung."""
    rows = around(tile(PACKED_SIMD, "kMr"), tile(AMX, "kMr"), tile(BLOCKED, "kRows"), 24 * tile(PACKED_SIMD, "kMr"))
    rows += around(tile(REGISTER_TILE, "kRows"), tile(BF16_MMLA, "kMr"))
    columns = around(tile(BF16_DOT, "kNr"), tile(BF16_MMLA, "kNr"), tile(BLOCKED, "kColumns"), tile(PACKED_SIMD, "kNc"))
    panels = tile(BLOCKED, "kDepth"), tile(REGISTER_TILE, "kDepth"), tile(BF16_DOT, "kKc")
    panels += tile(BF16_MMLA, "kKc"), tile(AMX, "kKc")
    depths = sorted(set(around(*panels)))
    shapes = [(m, 9, 37) for m in (*rows, *around(tile(PACKED, "kRows")))]
    shapes += [(5, 9, n) for n in columns] + [(17, k, 35) for k in depths]
    stretches = around(tile(GEMV, "kStretch"))
    shapes += [(n, 6, 1) for n in (*around(tile(GEMV, "kGroup")), 4097)] + [(1, 6, n) for n in stretches]
    shapes += [(6, k, 1) for k in stretches] + [(1, k, 6) for k in (3, 5, 4097)]
    shapes += [(350, 530, 40), (20, 530, 2100)]  # several blocks along two of the three
    for m, k, n in shapes:
        yield Sample(f"{m}x{k}x{n}", (with_outliers(rng, m, k), with_outliers(rng, k, n)))


def _cost(sample, dtype):
    a, b = sample.args
    m = a.shape[-2] if a.ndim > 1 else 1
    n = b.shape[-1] if b.ndim > 1 else 1
    results = math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * m * n
    if results == 0:
        return _core.Cost()
    macs, width = results * a.shape[-1], itemsize(dtype)
    return _core.Cost(macs=macs, flops=2 * macs, bytes_read=(a.size + b.size) * width, bytes_written=results * width)


def _tolerance(dtype, sample):
    # A sum of K products in any order is off by at most K roundoffs of the sum of their magnitudes; tensor cores
    # truncate where others round, hence the 2.
    a, b = (np.abs(np.where(np.isfinite(x), x, 0)) for x in sample.args)
    magnitudes = np.matmul(a, b)
    largest = float(magnitudes.max()) if magnitudes.size else 0.0
    atol = 2 * (a.shape[-1] + 4) * accumulator_roundoff(dtype) * largest
    return 2 * unit_roundoff(dtype), atol + SMALLEST[dtype]


def _bench():
    for n in BENCH_SIZES:
        for dtype in ("float32", "bfloat16"):
            yield f"{n}", dtype, ((n, n), (n, n)), {}
    for dtype in ("float32", "bfloat16"):
        yield "gemv", dtype, ((BENCH_VECTOR, BENCH_VECTOR), (BENCH_VECTOR, 1)), {}


SPEC = OpSpec(
    name="matmul",
    fn=_core.matmul,
    samples=_samples,
    reference=np.matmul,
    cost=_cost,
    tolerance=_tolerance,
    tails=_tails,
    differentiable=finite(_samples),
    bench=_bench,
    tables={
        "cpu": ("1024 float32", "1024 bfloat16", "gemv float32"),
        "cuda": ("4096 float32", "4096 bfloat16", "gemv bfloat16"),
    },
    peer=lambda torch: torch.matmul,
)
