"""sum, mean, amax, amin, var, std, prod and logsumexp over some or all dimensions."""

import math

import numpy as np

from .. import _core
from . import FLOATING, INTEGER, OpSpec, Sample, accumulator_roundoff, finite, itemsize, sum_roundings, unit_roundoff
from ._odd import odd_rows
from ._tiles import REDUCE, ROW, around, tile
from .softmax import with_outliers

PIECE = 65536  # elements that are worth a piece of a cut reduction


def _samples(rng):
    yield Sample("all", (with_outliers(rng, 7, 33),))
    yield Sample("rows", (with_outliers(rng, 37, 65),), {"dim": 1})
    yield Sample("columns", (with_outliers(rng, 129, 40),), {"dim": 0})
    yield Sample("middle", (with_outliers(rng, 3, 50, 19),), {"dim": -2, "keepdim": True})
    yield Sample("two-dims", (with_outliers(rng, 5, 4, 31),), {"dim": (1, 2)})
    yield Sample("vectors", (with_outliers(rng, 6, 1024),), {"dim": 1})
    yield Sample("long", (with_outliers(rng, 70001),))
    yield Sample("alike", (np.full(500, 0.1),))
    yield Sample("alike-columns", (np.full((500, 7), 0.1),), {"dim": 0})
    yield Sample("far-from-0", (100 + 0.01 * rng.standard_normal((5, 300)),), {"dim": 1})
    yield Sample("one", (np.array([3.0]),), {"dim": 0})
    yield Sample("scalar", (np.array(-2.0),))
    yield Sample("no-outputs", (np.zeros((0, 4)),), {"dim": 1})
    yield Sample("short-rows", (with_outliers(rng, 300, 21),), {"dim": 1})
    yield Sample("pairs-of-columns", (with_outliers(rng, 129, 42),), {"dim": 0})


def _tails(rng):
    """Far from 0, so that a piece left out shows: chunks, gathered columns, and axes that are cut into pieces."""
    for n in around(64 * tile(ROW, "kRun"), tile(REDUCE, "kChunk")):
        yield Sample(f"row {n}", (0.03 + 0.01 * with_outliers(rng, 2, n),), {"dim": 1})
    for n in (*around(2 * PIECE), 3 * PIECE + 5, 10**6):
        yield Sample(f"all {n}", (0.03 + 0.01 * with_outliers(rng, n),))
    columns = tile(REDUCE, "kColumns")
    for n in around(tile(ROW, "kRun"), tile(REDUCE, "kRows"), tile(REDUCE, "kGather"), 2 * PIECE // columns):
        yield Sample(f"columns {n}", (0.03 + 0.01 * with_outliers(rng, n, columns + 3),), {"dim": 0})
    yield Sample("columns 4097", (0.03 + 0.01 * with_outliers(rng, 4097, 2 * columns + 1),), {"dim": 0})
    yield Sample("middle", (0.03 + 0.01 * with_outliers(rng, 2, 1025, 3),), {"dim": 1})


def _sums(rng):
    yield from _samples(rng)
    yield Sample("empty-sum", (np.zeros((3, 0)),), {"dim": 1})


def _means(rng):
    yield from _samples(rng)
    x = rng.standard_normal((4, 100))
    x[1, 7], x[2, 9] = np.nan, np.inf
    yield Sample("nan-inf", (x,), {"dim": 1})


def _extremes(rng):
    yield from _samples(rng)
    x = with_outliers(rng, 6, 70)
    x[0, 3], x[1, 69], x[2, 5], x[3, 7] = np.nan, np.nan, np.inf, -np.inf
    yield Sample("nan-inf", (x,), {"dim": 1})


def _truths(rng):
    """Mostly zeros in half of the samples, and few in the others."""
    for sample in _samples(rng):
        (x,) = sample.args
        for share in (0.02, 0.98):
            truths = np.where(rng.random(x.shape) < share, rng.choice((-2.0, 3.0), x.shape), -0.0)
            yield Sample(f"{sample.label} {share}", (truths,), sample.kwargs)


def _truth_tails(rng):
    """One element decides: the last."""
    for sample in _tails(rng):
        (x,) = sample.args
        for last in (0.0, 1.0):
            truths = np.full(x.shape, 1 - last)
            truths.reshape(-1)[-1] = last
            yield Sample(f"{sample.label} {last}", (truths,), sample.kwargs)


def _spreads(rng):
    """Of two elements or more: what lies between fewer is not a number."""
    for sample in _means(rng):
        _, outputs, length = _lengths(sample)
        if outputs == 0 or length > 1:
            yield sample
    yield Sample("first-far-off", (np.concatenate([[1000.0], rng.standard_normal(5000)]),))
    yield Sample(
        "first-of-columns-far-off",
        (np.concatenate([np.full((1, 9), 300.0), rng.standard_normal((600, 9))]),),
        {"dim": 0},
    )
    yield Sample("of-all", (with_outliers(rng, 6, 1024),), {"dim": 1, "correction": 0})


def _exponents(rng):
    """And rows of -inf, of no elements, and with inf beside a NaN."""
    yield from _means(rng)
    x = rng.standard_normal((5, 130))
    x[0], x[1, :-1], x[2, 7], x[3, 129], x[4, 3], x[4, 5] = -np.inf, -np.inf, np.inf, np.nan, np.inf, np.nan
    yield Sample("infinite", (x,), {"dim": 1})
    yield Sample("infinite-columns", (x.T.copy(),), {"dim": 0})
    yield Sample("empty-rows", (np.zeros((3, 0)),), {"dim": 1})


def _factors(samples):
    """Numbers of the samples' shapes and signs, so close to 1 that no dtype is left."""
    for sample in samples:
        x = np.asarray(sample.args[0])
        finite_ones = x[np.isfinite(x)]
        distances = x - (finite_ones.mean() if finite_ones.size else 0)
        span = np.ptp(finite_ones) if finite_ones.size else 0
        exponents = distances / max(span, 1) / math.sqrt(max(_lengths(sample)[2], 1))
        yield Sample(sample.label, (np.asarray(np.exp(exponents) * np.where(x < 0, -1, 1)),), sample.kwargs)


def _factor_tails(rng):
    return _factors(_tails(rng))


def _products(rng):
    """And small integers, a zero, and what leaves float16 on the way."""
    yield from _factors(_means(rng))
    integers = rng.integers(1, 4, (7, 9)).astype(np.float64)
    integers[2, 3] = 0
    yield Sample("integers", (integers,), {"dim": 1})
    yield Sample("in-between", (np.concatenate([np.full((12, 3), 16.0), np.full((12, 3), 0.0625)]),), {"dim": 0})


def _spread(fold):
    def reference(x, dim=None, keepdim=False, correction=1):
        with np.errstate(invalid="ignore"):
            return fold(x, axis=dim, keepdims=keepdim, ddof=correction)

    return reference


def _log_sum_exp(x, dim=None, keepdim=False):
    """The sum is of distances from the largest element, unless that is infinite or there is none."""
    shift = np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(shift), shift, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(np.sum(np.exp(x - shift), axis=dim, keepdims=True)) + shift
    return y if keepdim else y.reshape(np.sum(x, axis=dim).shape)


def _reference(fold):
    return lambda x, dim=None, keepdim=False: fold(x, axis=dim, keepdims=keepdim)


def _lengths(sample):
    """Elements of the input, of the output, and of one sum."""
    x, dim = sample.args[0], sample.kwargs.get("dim")
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = {d % x.ndim for d in dims}
    outputs = math.prod(size for d, size in enumerate(x.shape) if d not in dims)
    return math.prod(x.shape), outputs, math.prod(x.shape[d] for d in dims)


def _result(name):
    if name in ("any", "all"):
        return lambda dtype: "bool"
    return lambda dtype: "int64" if name in ("sum", "prod") and dtype in INTEGER else dtype


def _cost(name):
    def cost(sample, dtype):
        inputs, outputs, _ = _lengths(sample)
        if outputs == 0:
            return _core.Cost()
        return _core.Cost(
            flops=(4 if name in ("var", "std", "logsumexp") else 1) * inputs,
            bytes_read=inputs * itemsize(dtype),
            bytes_written=outputs * itemsize(_result(name)(dtype)),
        )

    return cost


def _tolerance(name):
    def tolerance(dtype, sample):
        if dtype in INTEGER or name in ("any", "all"):
            return 0.0, 0.0
        if name in ("amax", "amin"):
            return unit_roundoff(dtype), 0.0
        _, _, length = _lengths(sample)
        if name == "prod":
            return 2 * unit_roundoff(dtype) + length * 2.0**-52, 0.0
        x = np.abs(np.where(np.isfinite(sample.args[0]), sample.args[0], 0))
        if name == "logsumexp":  # of the sum's relative error, the exponentials' and that of the addition at the end
            few = sum_roundings(length, dtype) + 32 + 4 * x.max(initial=0)
            return 2 * unit_roundoff(dtype), few * accumulator_roundoff(dtype)
        if name in ("var", "std"):  # a sum of squares; each distance has the roundings of a sum, the mean, as well
            relative = 4 * sum_roundings(length, dtype) * accumulator_roundoff(dtype)
            smallest = 2.0**-24 if dtype == "float16" else 0.0  # half a step of its subnormal numbers, and one more
            of_mean = relative * x.max(initial=0)
            return 2 * unit_roundoff(dtype) + relative, (of_mean if name == "std" else of_mean**2) + smallest
        total = x.sum(axis=sample.kwargs.get("dim")).max(initial=0)
        error = sum_roundings(length, dtype) * accumulator_roundoff(dtype) * total
        return 2 * unit_roundoff(dtype), error / length if name == "mean" and length else error

    return tolerance


def _bench():
    for dtype in ("bfloat16", "float32"):
        yield "16384x4096 rows", dtype, ((16384, 4096),), {"dim": 1}
        yield "16384x4096 columns", dtype, ((16384, 4096),), {"dim": 0}
        yield "16384x4096 all", dtype, ((16384, 4096),), {}
    yield from odd_rows(over=" rows", dim=1)
    yield from odd_rows(over=" columns", dim=0)


# One ladder serves all three: its table shows the sums.
_TABLES = {
    kind: tuple(f"16384x4096 {over} {dtype}" for dtype in dtypes for over in ("rows", "columns", "all"))
    for kind, dtypes in {"cpu": ("float32",), "cuda": ("bfloat16", "float32")}.items()
}


# Where a slope is no difference of two results: with several largest numbers alike, a step up and one down change
# something else; beside a number far off, a variance does not show a step, nor does a sum of exponentials.
_WITHOUT_SLOPE = {"amax": "alike", "amin": "alike", "var": "first", "std": "first", "logsumexp": "vectors"}


def _differentiable(name, samples):
    without = _WITHOUT_SLOPE.get(name)
    return lambda rng: (
        sample for sample in finite(samples)(rng) if without is None or not sample.label.startswith(without)
    )


def _spec(name, fold, samples, dtypes):
    return OpSpec(
        name=name,
        fn=getattr(_core, name),
        samples=samples,
        reference=fold if name == "logsumexp" else (_spread if name in ("var", "std") else _reference)(fold),
        cost=_cost(name),
        tolerance=_tolerance(name),
        dtypes=dtypes,
        result_dtype=_result(name),
        tails={"prod": _factor_tails, "any": _truth_tails, "all": _truth_tails}.get(name, _tails),
        differentiable=None if name in ("any", "all") else _differentiable(name, samples),
        bench=None if name == "all" else _bench,  # `rooflab bench all` is every op
        tables=_TABLES if name == "sum" else {},
        peer=(lambda torch: lambda x, dim=(): torch.logsumexp(x, dim))
        if name == "logsumexp"
        else lambda torch: getattr(torch, name),
    )


SPECS = [
    _spec("sum", np.sum, _sums, FLOATING + INTEGER),
    _spec("mean", np.mean, _means, FLOATING),
    _spec("amax", np.max, _extremes, FLOATING + INTEGER),
    _spec("amin", np.min, _extremes, FLOATING + INTEGER),
    _spec("var", np.var, _spreads, FLOATING),
    _spec("std", np.std, _spreads, FLOATING),
    _spec("prod", np.prod, _products, FLOATING + INTEGER),
    _spec("any", np.any, _truths, FLOATING + INTEGER),
    _spec("all", np.all, _truths, FLOATING + INTEGER),
    _spec("logsumexp", _log_sum_exp, _exponents, FLOATING),
]
