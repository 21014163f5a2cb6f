"""argmax, argmin, and max and min along a dimension: values and places."""

import numpy as np

import rooflab as rl

from . import FLOATING, INTEGER, OpSpec, Sample, exact, finite, itemsize
from ._odd import odd_rows
from .softmax import with_outliers


def _samples(rng):
    yield Sample("rows", (with_outliers(rng, 37, 65),), {"dim": 1})
    yield Sample("columns", (with_outliers(rng, 129, 140),), {"dim": 0})
    yield Sample("middle", (with_outliers(rng, 3, 50, 19),), {"dim": -2, "keepdim": True})
    yield Sample("long", (with_outliers(rng, 2, 70001),), {"dim": -1})
    yield Sample("one", (np.array([3.0]),), {"dim": 0})
    yield Sample("no-outputs", (np.zeros((0, 4)),), {"dim": 1})
    yield Sample("ties", (rng.integers(0, 3, (9, 300)).astype(np.float64),), {"dim": 1})
    x = with_outliers(rng, 5, 300)
    x[0, 7] = x[0, 200] = x[1, 299] = np.nan
    x[2], x[3, ::7] = -np.inf, np.inf
    yield Sample("nan-inf", (x,), {"dim": 1})
    x = with_outliers(rng, 3, 3001)
    x[0, 1500] = x[0, 2000] = x[1, 2999] = np.nan
    yield Sample("late-nan", (x,), {"dim": 1})


def _places(rng):
    yield from _samples(rng)
    yield Sample("all", (with_outliers(rng, 7, 33),))
    yield Sample("all-kept", (with_outliers(rng, 2, 3, 4),), {"keepdim": True})


def _place(fold):
    """NumPy too gives the first of equals, and the first NaN."""
    return lambda x, dim=None, keepdim=False: fold(x, axis=dim, keepdims=keepdim)


def _extreme(place):
    def reference(x, dim, keepdim=False):
        indices = place(x, axis=dim, keepdims=True)
        values = np.take_along_axis(x, indices, dim)
        return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))

    return reference


def _cost(has_values):
    def cost(sample, dtype):
        x, dim = sample.args[0], sample.kwargs.get("dim")
        outputs = 1 if dim is None else x.size // max(x.shape[dim], 1)
        if outputs == 0:
            return rl.Cost()
        width = itemsize(dtype)
        written = outputs * (8 + has_values * width)
        return rl.Cost(flops=x.size, bytes_read=x.size * width, bytes_written=written)

    return cost


def _tails(rng):
    """Rows of a few elements and columns of a few, many of them; long ones, which several blocks share."""
    for shape, dim in (
        ((2000, 4), 1),
        ((1500, 33), 1),
        ((3, 2047), 1),
        ((1, 100003), 1),
        ((5003, 3), 0),
        ((7, 1501), 0),
    ):
        x = rng.integers(-300, 300, shape).astype(np.float64)
        yield Sample("x".join(map(str, shape)) + f"-along-{dim}", (x,), {"dim": dim})


def _distinct(rng):
    """Samples without ties: where two are equal, the derivative is not defined."""
    return (sample for sample in finite(_samples)(rng) if sample.label != "ties")


def _bench():
    for dtype in ("bfloat16", "float32"):
        yield "16384x4096 rows", dtype, ((16384, 4096),), {"dim": 1}
    yield from odd_rows(over=" rows", dim=1)
    yield from odd_rows(over=" columns", dim=0)


def _spec(name, place, **fields):
    described = {
        "fn": getattr(rl, name),
        "samples": _places,
        "tails": _tails,
        "reference": _place(place),
        "cost": _cost(False),
        "tolerance": exact,
        "dtypes": FLOATING + INTEGER,
        "result_dtype": lambda dtype: "int64",
        "bench": _bench,
        "peer": lambda torch: getattr(torch, name),
    }
    return OpSpec(name=name, **(described | fields))


_EXTREME = {
    "samples": _samples,
    "cost": _cost(True),
    "result_dtype": lambda dtype: (dtype, "int64"),
    "differentiable": _distinct,
}

SPECS = [
    _spec("argmax", np.argmax),
    _spec("argmin", np.argmin),
    _spec("max", np.argmax, reference=_extreme(np.argmax), **_EXTREME),
    _spec("min", np.argmin, reference=_extreme(np.argmin), **_EXTREME),
]
