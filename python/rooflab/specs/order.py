"""sort, topk, median and cumsum along a dimension; tril and triu."""

from typing import Any

import numpy as np

import rooflab as rl

from . import FLOATING, INTEGER, OpSpec, Sample, accumulator_roundoff, exact, finite, itemsize, unit_roundoff
from ._odd import odd_rows
from ._tiles import COLUMNS, CUMSUM, MEDIAN, SORT, around, tile
from .softmax import with_outliers


def _lines(rng):
    """Arrays and the dimension to go along: lines of many lengths, with ties, NaN and infinities."""
    yield "rows", with_outliers(rng, 17, 65), 1
    yield "columns", with_outliers(rng, 129, 70), 0
    yield "middle", with_outliers(rng, 3, 50, 19), -2
    yield "long", with_outliers(rng, 2, 3001), -1
    yield "one", np.array([3.0]), 0
    yield "no-lines", np.zeros((0, 4)), 1
    yield "ties", rng.integers(0, 3, (5, 300)).astype(np.float64), 1
    x = with_outliers(rng, 4, 300)
    x[0, 7] = x[0, 200] = x[1, 299] = np.nan
    x[2], x[3, ::7] = -np.inf, np.inf
    yield "nan-inf", x, 1


def _sort_samples(rng):
    for i, (label, x, dim) in enumerate(_lines(rng)):
        yield Sample(label, (x,), {"dim": dim, "descending": bool(i % 2)})


def _topk_samples(rng):
    for i, (label, x, dim) in enumerate(_lines(rng)):
        k = min(x.shape[dim], (5, 9, 50, 40, 1, 2, 37, 30)[i])
        yield Sample(label, (x, k), {"dim": dim, "largest": label != "middle"})
    yield Sample("none", (with_outliers(rng, 3, 8), 0))


def _with_ties(rng, *shape):
    """Few different numbers, so that the order of equals shows."""
    return rng.integers(-300, 300, shape).astype(np.float64)


def _sort_tails(rng):
    """Lines around what a block takes and around a tile; many short lines, and lines along columns."""
    of_block = (tile(SORT, "kSortShort"), tile(SORT, "kSortChunk"), tile(SORT, "kSortBlock"))
    for n in around(*of_block, 4 * tile(SORT, "kSortTile")):
        yield Sample(f"line-of-{n}", (_with_ties(rng, 2, n),), {"descending": bool(n % 2)})
    yield Sample("many-lines", (_with_ties(rng, 1300, 3),))
    yield Sample("upright", (_with_ties(rng, tile(SORT, "kSortChunk") + 5, 3),), {"dim": 0})


def _topk_tails(rng):
    """Lines of several chunks, of which each keeps `k`, in one pass and in two; and more than chunks may keep. Lines
    around what a block holds of 16 bits and of float32, of which it selects as many as it may.
    """
    chunk = tile(SORT, "kSortChunk")
    for n, k in (
        (chunk + 1, 1),
        (2 * chunk - 1, 8),
        (3 * chunk + 7, chunk // 8),
        (2 * chunk - 1, chunk // 8 + 1),
        (9 * chunk, chunk // 8),
        (3 * chunk, 300),
    ):
        yield Sample(f"{k}-of-{n}", (_with_ties(rng, 2, n), k), {"largest": bool(k % 2)})
    yield Sample("many-lines", (_with_ties(rng, 1300, 9), 3))
    most, held = tile(SORT, "kSelectMost"), tile(SORT, "kSelectBytes")
    for n in around(tile(SORT, "kSelectShort"), held // 4, held // 2):
        yield Sample(f"selected-of-{n}", (_with_ties(rng, 2, n), most - n % 2), {"largest": bool(n % 3)})


def _median_samples(rng):
    for i, (label, x, dim) in enumerate(_lines(rng)):
        yield Sample(label, (x, dim), {"keepdim": bool(i % 2)})


def _median_tails(rng):
    """Lines around what a warp takes, and what blocks of both sizes keep, of all dtypes; columns of both kinds."""
    short, longest = tile(MEDIAN, "kMedianShort"), tile(MEDIAN, "kMedianBytes")
    for n in around(short, tile(SORT, "kSelectShort"), longest // 4, longest // 2):
        yield Sample(f"line-of-{n}", (_with_ties(rng, 2, n), 1))
    yield Sample("many-lines", (_with_ties(rng, 1300, 3), 1))
    for n in (short - 1, longest // 8 + 1):
        yield Sample(f"{n}-upright", (_with_ties(rng, n, 3), 0))


def _cumsum_tails(rng):
    """Lines around a tile, one of many chunks, and few lines side by side."""
    size = tile(CUMSUM, "kCumsumTile")
    for n in (*around(size, 2 * size), 60 * size + 3):
        yield Sample(f"line-of-{n}", (with_outliers(rng, 2, n),), {"dim": 1})
    yield Sample("upright", (with_outliers(rng, 3 * size + 1, 3),), {"dim": 0})
    columns = tile(COLUMNS, "kColumns")
    for n in (7, 8, 9, *around(columns), 2 * columns + 17):
        yield Sample(f"{n}-lines-side-by-side", (with_outliers(rng, 2, 33, n),), {"dim": 1})


def _sort(x, dim=-1, descending=False):
    """NumPy's stable order, NaN last. A descending sort reverses the input first, so that equals keep their order."""
    if not descending:
        indices = np.argsort(x, axis=dim, kind="stable")
    else:
        indices = np.flip(x.shape[dim] - 1 - np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    return np.take_along_axis(x, indices, dim), indices


def _topk(x, k, dim=-1, largest=True):
    return tuple(np.take(found, np.arange(k), dim) for found in _sort(x, dim, largest))


def _median(x, dim, keepdim=False):
    """The lower of two in the middle, NaN where there is one, and where the first that equals it is."""
    ordered = np.sort(x, axis=dim)
    middle = np.take(ordered, [(x.shape[dim] - 1) // 2], dim)
    last = np.take(ordered, [-1], dim)
    values = np.where(np.isnan(last), last, middle)
    indices = np.expand_dims(np.argmax((x == values) | np.isnan(x), axis=dim), dim)
    return tuple(found if keepdim else found.squeeze(dim) for found in (values, indices))


def _median_cost(sample, dtype):
    x, dim = sample.args
    outputs = x.size // max(x.shape[dim], 1)
    width = itemsize(dtype)
    return rl.Cost(bytes_read=x.size * width, bytes_written=outputs * (width + 8))


def _order_cost(sample, dtype):
    x, dim = sample.args[0], sample.kwargs.get("dim", -1)
    kept = sample.args[1] if len(sample.args) > 1 else x.shape[dim]
    outputs = x.size // max(x.shape[dim], 1) * kept
    width = itemsize(dtype)
    return rl.Cost(bytes_read=x.size * width, bytes_written=outputs * (width + 8)) if outputs else rl.Cost()


def _distinct(samples):
    """Those without ties, whose elements lie apart: where two swap places, the derivative is not defined."""

    def apart(rng):
        for sample in finite(samples)(rng):
            x, *others = sample.args
            yield Sample(sample.label, (0.1 * rng.permutation(x.size).reshape(x.shape), *others), sample.kwargs)

    return apart


def _cumsum_samples(rng):
    for label, x, dim in _lines(rng):
        if label != "nan-inf":  # integers cannot hold them
            yield Sample(label, (x,), {"dim": dim})


def _cumsum_type(dtype):
    return "int64" if dtype in INTEGER else dtype


def _cumsum_cost(sample, dtype):
    (x,) = sample.args
    return rl.Cost(
        flops=x.size, bytes_read=x.size * itemsize(dtype), bytes_written=x.size * itemsize(_cumsum_type(dtype))
    )


def _cumsum_tolerance(dtype, sample):
    """Rounded once, and at most as often as there are additions before it, by all absolute values together."""
    if dtype in INTEGER:
        return 0.0, 0.0
    x, dim = sample.args[0], sample.kwargs["dim"]
    total = np.abs(np.where(np.isfinite(x), x, 0)).sum(axis=dim).max(initial=0)
    return 2 * unit_roundoff(dtype), float(min(x.shape[dim], 512) * accumulator_roundoff(dtype) * total)


def _triangle_samples(rng, values=with_outliers):
    yield Sample("square", (values(rng, 33, 33),))
    yield Sample("wide", (values(rng, 5, 130),), {"diagonal": 3})
    yield Sample("tall", (values(rng, 65, 7),), {"diagonal": -20})
    yield Sample("batch", (values(rng, 2, 3, 9, 8),), {"diagonal": 1})
    yield Sample("none-kept", (values(rng, 4, 5),), {"diagonal": -(2**40)})
    yield Sample("all-kept", (values(rng, 4, 5),), {"diagonal": 2**40})
    yield Sample("empty", (np.zeros((2, 0, 5)),))
    x = values(rng, 8, 8)
    x[::2], x[1::3] = np.nan, np.inf
    yield Sample("nan-inf", (x,))


def _triangle(cut):
    def reference(x, diagonal=0):
        kept = cut(np.ones(x.shape[-2:]), int(np.clip(diagonal, -1000, 1000))) > 0
        return np.where(kept, x, 0.0)

    return reference


def _triangle_cost(cut):
    def cost(sample, dtype):
        (x,), width = sample.args, itemsize(dtype)
        rows, columns = x.shape[-2:]
        below = np.arange(rows) + sample.kwargs.get("diagonal", 0) + (cut is np.tril)  # columns before the cut
        kept = int(np.clip(below, 0, columns).sum())
        if cut is np.triu:
            kept = rows * columns - kept
        kept *= x.size // max(rows * columns, 1)
        return rl.Cost(bytes_read=kept * width, bytes_written=x.size * width)

    return cost


def _bench(label, shape, *others, odd=False, **kwargs):
    """One case, in two dtypes; and the odd shapes where they are asked for."""

    def bench():
        for dtype in ("bfloat16", "float32"):
            yield label, dtype, (shape, *others), kwargs
        if odd:
            yield from odd_rows(*others, most=1 << 23, **kwargs)

    return bench


_ORDER: dict[str, Any] = {
    "cost": _order_cost,
    "tolerance": exact,
    "dtypes": FLOATING + INTEGER,
    "result_dtype": lambda dtype: (dtype, "int64"),
}

SPECS = [
    OpSpec(
        "sort",
        rl.sort,
        _sort_samples,
        _sort,
        tails=_sort_tails,
        differentiable=_distinct(_sort_samples),
        bench=_bench("1024x4096", (1024, 4096), odd=True),
        peer=lambda torch: torch.sort,
        **_ORDER,
    ),
    OpSpec(
        "topk",
        rl.topk,
        _topk_samples,
        _topk,
        tails=_topk_tails,
        differentiable=_distinct(_topk_samples),
        bench=_bench("50 of 1024x32768", (1024, 32768), 50),
        peer=lambda torch: torch.topk,
        **_ORDER,
    ),
    OpSpec(
        "median",
        rl.median,
        _median_samples,
        _median,
        tails=_median_tails,
        differentiable=_distinct(_median_samples),
        bench=_bench("1024x4096", (1024, 4096), 1, odd=True),
        peer=lambda torch: torch.median,
        **{**_ORDER, "cost": _median_cost},
    ),
    OpSpec(
        "cumsum",
        rl.cumsum,
        _cumsum_samples,
        lambda x, dim: np.cumsum(x, axis=dim),
        _cumsum_cost,
        _cumsum_tolerance,
        dtypes=FLOATING + INTEGER,
        result_dtype=_cumsum_type,
        tails=_cumsum_tails,
        differentiable=finite(_cumsum_samples),
        bench=_bench("16384x4096 rows", (16384, 4096), odd=True, dim=1),
        peer=lambda torch: torch.cumsum,
    ),
    *(
        OpSpec(
            name,
            getattr(rl, name),
            _triangle_samples,
            _triangle(cut),
            _triangle_cost(cut),
            exact,
            dtypes=FLOATING + INTEGER,
            differentiable=finite(_triangle_samples),
            bench=_bench("8192x8192", (8192, 8192)),
            peer=lambda torch, name=name: getattr(torch, name),
        )
        for name, cut in (("tril", np.tril), ("triu", np.triu))
    ),
]
