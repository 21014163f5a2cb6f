"""cat, and what is chosen by an index: gather, index_select, embedding, scatter_add."""

import functools

import numpy as np

import rooflab as rl

from . import FLOATING, INTEGER, ODD, OpSpec, Places, Sample, accumulator_roundoff, exact, itemsize, unit_roundoff
from ._tiles import GATHER, around, tile


def _values(rng, *shape):
    """Normal values with NaN and infinities between them, which have to stay what they are when moved."""
    x = rng.standard_normal(shape) * 50
    return np.where(rng.random(shape) < 0.1, rng.choice((np.nan, np.inf, -np.inf, -0.0), shape), x)


def _finite_values(rng, *shape):
    return rng.standard_normal(shape) * 3


def _cat_samples(rng, values=_values):
    yield Sample("rows", (values(rng, 5, 33), values(rng, 17, 33), values(rng, 1, 33)))
    yield Sample("columns", (values(rng, 9, 7), values(rng, 9, 64)), {"dim": 1})
    yield Sample("middle", (values(rng, 2, 3, 5), values(rng, 2, 4, 5)), {"dim": -2})
    yield Sample("one", (values(rng, 4),))
    yield Sample("an-empty-one", (values(rng, 3, 8), values(rng, 0, 8), values(rng, 2, 8)))
    yield Sample("empty", (values(rng, 0, 8), values(rng, 0, 8)))


def _cat(*operands, **options):
    tensors = [x for x in operands if isinstance(x, rl.Tensor)]
    return rl.cat(tensors, *operands[len(tensors) :], **options)


def _cat_cost(sample, dtype):
    size = sum(x.size for x in sample.args) * itemsize(dtype)
    return rl.Cost(bytes_read=size, bytes_written=size)


def _gather_samples(rng, values=_values):
    yield Sample("columns", (values(rng, 37, 65), 1, rng.integers(0, 65, (37, 9))))
    yield Sample("rows", (values(rng, 37, 64), 0, rng.integers(0, 37, (50, 64))))
    yield Sample("one-of-a-row", (values(rng, 3, 7, 100), -1, rng.integers(0, 100, (3, 7, 1))))
    yield Sample("part", (values(rng, 5, 6, 7), 1, rng.integers(0, 6, (4, 9, 3))))
    yield Sample("part-of-four", (values(rng, 3, 4, 5, 6), 1, rng.integers(0, 4, (2, 7, 4, 5))))
    yield Sample("part-of-columns", (values(rng, 5, 6, 7), 2, rng.integers(0, 7, (4, 5, 3))))
    yield Sample("int32", (values(rng, 130), 0, rng.integers(0, 130, 40).astype(np.int32)))
    yield Sample("long", (values(rng, 300, 33), 0, rng.integers(0, 300, (600, 33))))
    yield Sample("empty", (values(rng, 5, 6), 1, np.zeros((0, 3), np.int64)))


def _gather(x, dim, index):
    dim %= x.ndim
    part = x[tuple(slice(None) if d == dim else slice(size) for d, size in enumerate(index.shape))]
    return np.take_along_axis(part, index.astype(np.int64), dim)


def _select_samples(rng, values=_values):
    yield Sample("rows", (values(rng, 37, 64), 0, rng.integers(0, 37, 100)))
    yield Sample("odd-rows", (values(rng, 11, 33), 0, rng.integers(0, 11, 5)))
    yield Sample("columns", (values(rng, 9, 65), 1, rng.integers(0, 65, 130).astype(np.int32)))
    yield Sample("middle", (values(rng, 4, 6, 32), -2, rng.integers(0, 6, 3)))
    yield Sample("one", (values(rng, 5), 0, np.array([4])))
    yield Sample("none", (values(rng, 5, 3), 0, np.zeros(0, np.int64)))


def _select_tails(rng):
    """Rows around those of a warp and of a strip, in words of 16 bytes down to an element; and several in turn."""
    strip = tile(GATHER, "kGatherStrip")
    for n in (7, 31, 66, *around(strip, 2 * strip), 4 * strip + 8):
        yield Sample(f"rows-of-{n}", (_values(rng, 5, n), 0, rng.integers(0, 5, 9)))
    yield Sample("middle-rows", (_values(rng, 3, 4, 2 * strip + 1), 1, rng.integers(0, 4, 2).astype(np.int32)))


def _embedding_samples(rng, values=_values):
    yield Sample("batch", (rng.integers(0, 50, (3, 17)), values(rng, 50, 64)))
    yield Sample("repeated", (rng.integers(0, 3, 200), values(rng, 3, 640)))
    yield Sample("odd", (rng.integers(0, 7, (2, 3, 2)).astype(np.int32), values(rng, 7, 33)))
    yield Sample("one", (np.array(4), values(rng, 5, 8)))
    yield Sample("width-1", (rng.integers(0, 5, 6), values(rng, 5, 1)))
    yield Sample("none", (np.zeros((2, 0), np.int64), values(rng, 5, 8)))


def index_bytes(index) -> int:
    return index.size * (4 if index.dtype == np.int32 else 8)


def _choice_cost(table, index, result_size):
    """The index, and as much of the table as the result holds, at most all of it."""

    def cost(sample, dtype):
        x, size = sample.args[table], result_size(sample)
        if size == 0:
            return rl.Cost()
        width = itemsize(dtype)
        read = min(x.size, size) * width + index_bytes(sample.args[index])
        return rl.Cost(bytes_read=read, bytes_written=size * width)

    return cost


def _selected(sample):
    x, dim, index = sample.args
    return x.size // max(x.shape[dim], 1) * index.size


def _scatter_samples(rng):
    for sample in _gather_samples(rng, _finite_values):
        x, dim, index = sample.args
        yield Sample(sample.label, (x, dim, index, _finite_values(rng, *index.shape)))
    yield Sample("one-place", (_finite_values(rng, 4), 0, np.full(1000, 2), _finite_values(rng, 1000)))


def _scatter_add(x, dim, index, src):
    y, dim = np.array(x), dim % x.ndim
    places = list(np.indices(index.shape))
    places[dim] = index.astype(np.int64)
    np.add.at(y, tuple(places), src)
    return y


def _scatter_cost(sample, dtype):
    x, _, index, src = sample.args
    if x.size == 0:
        return rl.Cost()
    width = itemsize(dtype)
    read = (x.size + src.size) * width + index_bytes(index)
    return rl.Cost(flops=src.size, bytes_read=read, bytes_written=x.size * width)


def _sum_tolerance(dtype, sample):
    """Each addition rounds a sum that is never larger than all absolute values together."""
    if dtype in INTEGER:
        return 0.0, 0.0
    x, dim, index, src = sample.args
    sizes = (np.where(np.isfinite(a), np.abs(a), 0) for a in (x, src))
    start, added = sizes
    largest = _scatter_add(start, dim, index, added)
    met = _scatter_add(np.ones_like(start), dim, index, np.ones_like(added))
    return 2 * unit_roundoff(dtype), float((largest * met).max(initial=0)) * accumulator_roundoff(dtype)


# Tables of activations, of an embedding, of experts' rows; as in LLMs, whole rows but for gather.
_BENCH = {
    "cat": ("two of 8192x4096", (8192, 4096), (8192, 4096)),
    "gather": ("1024 of each row of 16384x4096", (16384, 4096), 1, Places((16384, 1024), 4096)),
    "index_select": ("8192 rows of 16384x4096", (16384, 4096), 0, Places((8192,), 16384)),
    "embedding": ("8192 rows of 32768x2048", Places((8192,), 32768), (32768, 2048)),
    "scatter_add": ("8192x1024 into 16384x1024", (16384, 1024), 0, Places((8192, 1024), 16384), (8192, 1024)),
}


# (N, D) of a table, and how many of its rows: of words of 2, 4 and 8 bytes, short and long.
_ODD_ROWS = ((23, 2025, 3930), (108, 35806, 869), (350, 322, 1174), (229, 469, 6558))


def _bench(name):
    label, *operands = _BENCH[name]
    cases = [(label, operands)]
    if name == "index_select":
        cases += [(f"{ODD}{k} rows of {n}x{d}", ((n, d), 0, Places((k,), n))) for n, d, k in _ODD_ROWS]
    for label, operands in cases:
        for dtype in ("bfloat16", "float32"):
            yield label, dtype, tuple(operands), {}


def _peer(name):
    if name == "cat":
        return lambda torch: lambda *tensors: torch.cat(tensors)
    return lambda torch: getattr(torch.nn.functional if name == "embedding" else torch, name)


def _spec(name, samples, reference, cost, **fields):
    described = {
        "fn": getattr(rl, name),
        "tolerance": exact,
        "dtypes": FLOATING + INTEGER,
        "differentiable": lambda rng: samples(rng, _finite_values),
        "bench": functools.partial(_bench, name),
        "peer": _peer(name),
    }
    return OpSpec(name=name, samples=samples, reference=reference, cost=cost, **(described | fields))


SPECS = [
    _spec("cat", _cat_samples, lambda *x, dim=0: np.concatenate(x, dim), _cat_cost, fn=_cat),
    _spec("gather", _gather_samples, _gather, _choice_cost(0, 2, lambda sample: sample.args[2].size)),
    _spec(
        "index_select",
        _select_samples,
        lambda x, dim, index: np.take(x, index.astype(np.int64), dim),
        _choice_cost(0, 2, _selected),
        tails=_select_tails,
    ),
    _spec(
        "embedding",
        _embedding_samples,
        lambda index, weight: weight[index.astype(np.int64)],
        _choice_cost(1, 0, lambda sample: sample.args[0].size * sample.args[1].shape[1]),
    ),
    _spec(
        "scatter_add",
        _scatter_samples,
        _scatter_add,
        _scatter_cost,
        tolerance=_sum_tolerance,
        differentiable=_scatter_samples,
    ),
]
