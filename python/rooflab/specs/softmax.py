"""softmax, and the rows that it shares with the specs of the other row-wise ops."""

import numpy as np

from .. import _core
from . import OpSpec, Sample, accumulator_roundoff, finite, itemsize, sum_roundings, unit_roundoff
from ._odd import odd_rows
from ._tiles import SOFTMAX, SOFTMAX_SIMD, around, tile

SHAPES = ((1, 1), (5, 3), (2, 3, 17), (37, 64), (4, 640), (3, 1000), (2, 4097), (2, 40000), (640,), (0, 8), (4, 0))
BENCH_SHAPES = ((16384, 4096), (32768, 640))
ROW_TABLES = {
    "cpu": ("16384x4096 float32", "32768x640 float32"),
    "cuda": ("16384x4096 bfloat16", "16384x4096 float32", "32768x640 bfloat16", "32768x640 float32"),
}
ONE_ROW, COLUMNS = "odd 1x262144", "columns of 64x1024x1024"
NORM_TABLES = ROW_TABLES | {"cuda": (*ROW_TABLES["cuda"], f"{ONE_ROW} float32")}
GRADIENT_TABLES = {"cuda": NORM_TABLES["cuda"]}

# What rounding to subnormals costs; smaller float32 and bfloat16 results may come out as 0.
SMALLEST = {"float64": 5e-324, "float32": 2.0**-126, "float16": 2.0**-24, "bfloat16": 2.0**-126}


def with_outliers(rng, *shape):
    """Standard normal values, of which one in fifty is twenty times as large, as in the activations of LLMs."""
    x = rng.standard_normal(shape)
    return x * np.where(rng.random(shape) < 0.02, 20.0, 1.0)


def row_samples(rng, parameters=0):
    """Rows of many lengths, with as many vectors of length D beside them as asked, and rows of NaN and infinities."""
    for shape in SHAPES:
        vectors = (rng.standard_normal(shape[-1]) for _ in range(parameters))
        yield Sample("x".join(map(str, shape)), (with_outliers(rng, *shape), *vectors))
    x = with_outliers(rng, 5, 72)
    x[0] = -np.inf
    x[1, 5], x[2, 70], x[3, ::2] = np.nan, np.inf, -np.inf
    yield Sample("nan-inf", (x, *(rng.standard_normal(72) for _ in range(parameters))))
    yield Sample("alike", (np.full((3, 504), 0.1), *(rng.standard_normal(504) for _ in range(parameters))))


def softmax_samples(rng):
    """The same rows, and rows that are the columns of matrices."""
    yield from row_samples(rng)
    yield Sample("columns", (with_outliers(rng, 3, 37, 40),), {"dim": 1})
    yield Sample("columns of one matrix", (with_outliers(rng, 70, 130),), {"dim": 0})


def length_of(sample):
    return sample.args[0].shape[sample.kwargs.get("dim", -1)]


def softmax_bench():
    """Rows, odd ones among them, and columns."""
    yield from row_bench()()
    for dtype in ("bfloat16", "float32"):
        yield COLUMNS, dtype, ((64, 1024, 1024),), {"dim": 1}


def row_tails(rng, parameters=0):
    """Many rows, and lengths around a vector, a block in L1, the scratch of a row and the widest staged one."""
    lengths = around(16, tile(SOFTMAX_SIMD, "kBlock"), tile(SOFTMAX, "kSoftmaxCpuScratch") // 4)
    staged = around(tile(SOFTMAX, "kSoftmaxStagedWidth"), tile(SOFTMAX, "kSoftmaxStaged"))
    many = ((4097, 3), (3001, 1), (1003, 33), (1, 100003))
    for shape in (*many, *((2, d) for d in (*lengths, *staged))):
        vectors = (rng.standard_normal(shape[-1]) for _ in range(parameters))
        yield Sample("x".join(map(str, shape)), (with_outliers(rng, *shape), *vectors))


def row_cost(flops):
    """`flops` an element, 1 more for each vector beside x; all are read once, the result is written once."""

    def cost(sample, dtype):
        arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
        size = arrays[0].size
        if size == 0:
            return _core.Cost()
        width = itemsize(dtype)
        return _core.Cost(
            flops=(flops + len(arrays) - 1) * size,
            bytes_read=sum(a.size for a in arrays) * width,
            bytes_written=size * width,
        )

    return cost


def row_bench(parameters=0):
    """`bench` for rows with as many vectors of length D beside them."""

    def bench():
        for rows, d in BENCH_SHAPES:
            for dtype in ("bfloat16", "float32"):
                yield f"{rows}x{d}", dtype, ((rows, d), *[(d,)] * parameters), {}
        yield from odd_rows(*[None] * parameters)

    return bench


def _reference(x, dim=-1):
    shifted = np.exp(x - x.max(axis=dim, keepdims=True)) if x.size else x
    return shifted / shifted.sum(axis=dim, keepdims=True)


def _differentiable(rng):
    """Not the longest rows: one has a weight of nearly 1, whose gradient is what rounding leaves of it."""
    return (sample for sample in finite(softmax_samples)(rng) if sample.args[0].shape[-1] < 40000)


def _tolerance(dtype, sample):
    x = sample.args[0]
    finite = np.where(np.isfinite(x), x, 0)
    # exp turns the rounding of its argument into a relative error; beyond 800 every result is 0.
    span = min(float(np.ptp(finite)) if x.size else 0.0, 800.0)
    u = accumulator_roundoff(dtype)
    # The inputs themselves are rounded to the dtype before the reference sees them: that costs nothing.
    return 2 * unit_roundoff(dtype) + (sum_roundings(length_of(sample), dtype) + 8 + 3 * span) * u, SMALLEST[dtype]


SPEC = OpSpec(
    name="softmax",
    fn=_core.softmax,
    samples=softmax_samples,
    reference=_reference,
    cost=row_cost(5),
    tolerance=_tolerance,
    tails=row_tails,
    differentiable=_differentiable,
    bench=softmax_bench,
    tables=NORM_TABLES | {"cuda": (*NORM_TABLES["cuda"], f"{COLUMNS} float32")},
    peer=lambda torch: lambda x, dim=-1: torch.softmax(x, dim),
)
