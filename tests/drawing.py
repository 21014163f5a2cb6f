"""What tests/test_fuzz*.py draw with Hypothesis: shapes, values, views, and how results are compared with NumPy's."""

import functools
import itertools
import math
import time

import hypothesis
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import rooflab as rl
from rooflab.specs import INTEGER
from rooflab.testing import assert_close, to_float64

SIZES = (0, 1, 1, 2, 3, 5, 8, 33, 130, 515)
MOST = 40_000  # elements; the CPU's threads share what has more than 32768
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-3, 60.0)


def drawn(check):
    """A test that calls `check(draw)` again and again: a round of calls, always the same, then further rounds for as
    long as `--fuzz-minutes` says."""

    @functools.wraps(check)
    def test(request):
        end = time.monotonic() + 60 * request.config.getoption("--fuzz-minutes")

        @hypothesis.settings(
            max_examples=100,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(st.data())
        def calls(data):
            with np.errstate(all="ignore"):
                check(data.draw)

        for number in itertools.count():
            hypothesis.seed(number)(calls)()
            if time.monotonic() >= end:
                break

    del test.__wrapped__  # else pytest would ask for a fixture named draw
    return test


def one_of(draw, *choices):
    return draw(st.sampled_from(choices))


def between(draw, low, high):
    return draw(st.integers(low, high))


def shape(draw, least=0, most=4, sizes=SIZES):
    found = draw(st.lists(st.sampled_from(sizes), min_size=least, max_size=most))
    while math.prod(max(size, 1) for size in found) > MOST:  # a view's larger tensor holds something even of size 0
        found[found.index(max(found))] = 2
    return tuple(found)


def part_of(draw, whole):
    """A shape that broadcasts to another one."""
    kept = whole[between(draw, 0, len(whole)) :] if one_of(draw, False, True) else whole
    return tuple(1 if between(draw, 0, 4) == 0 else size for size in kept)


def numpy_dtype(dtype):
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def values(draw, shape, dtype, special=True):
    """An array in the type that NumPy computes in: float64 that hold numbers of the dtype, or integers as they are."""
    rng = np.random.default_rng(between(draw, 0, 2**16))
    special = special and one_of(draw, True, False)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGER:
        limits = np.iinfo(dtype)
        extremes = rng.choice((limits.min, limits.max, limits.max // 2), shape)
        return np.where(rng.random(shape) < 0.1 * special, extremes, rng.integers(-9, 10, shape)).astype(dtype)
    x = rng.standard_normal(shape) * one_of(draw, 1, 40) if one_of(draw, True, False) else rng.integers(-3, 4, shape)
    x = np.where(rng.random(shape) < 0.1 * special, rng.choice(SPECIAL, shape), x)
    return x.astype(numpy_dtype(dtype)).astype(np.float64)


class View:
    """An array as a tensor `x` that is a view of a larger one: permuted, with steps, expanded.

    `a` holds the same values, as a view of the same kind; `whole` and `tensor` are what the two are views of. A view
    `to_write` is not expanded and has no negative steps, because those make a copy.
    """

    def __init__(self, draw, array, dtype, to_write=False):
        cuts, room, repeated = [], [], []
        for size in array.shape:
            step, first = one_of(draw, 1, 1, 2, *(() if to_write else (-1, -3))), one_of(draw, 0, 0, 1, 2)
            repeated.append(not to_write and size > 1 and between(draw, 0, 9) == 0)
            size = 1 if repeated[-1] else size
            last = first + (size - 1) * abs(step)
            ends = (first, last + 1) if step > 0 else (last, first - 1 if first else None)
            cuts.append(slice(*ends, step) if size else slice(first, first))
            room.append(max(last, first) + one_of(draw, 1, 2))
        order = draw(st.permutations(range(array.ndim)))
        back, cuts = np.argsort(order).astype(int).tolist(), (*cuts, ...)
        self.dtype = dtype
        self.whole = np.full([room[d] for d in order], one_of(draw, 0, 1)).astype(array.dtype)
        self.a = self.whole.transpose(back)[cuts]
        self.a[...] = array[tuple(slice(0, 1) if one else slice(None) for one in repeated)]
        self.tensor = rl.tensor(self.whole.astype(numpy_dtype(dtype)))
        self.x = (self.tensor.permute(*back) if back else self.tensor)[cuts]
        if any(repeated):
            self.a, self.x = np.broadcast_to(self.a, array.shape), self.x.expand(*array.shape)

    def __str__(self):
        return f"{self.dtype}{self.x.shape} with strides {self.x.strides}: {self.a.tolist()}"

    def check(self, name, **tolerance):
        """Check that the larger tensor holds what the larger array holds."""
        agree(self.tensor, self.whole, self.dtype, name, **tolerance)


def drawn_view(draw, shape, dtype, special=True, to_write=False):
    return View(draw, values(draw, shape, dtype, special), dtype, to_write)


def agree(found, expected, dtype, name, rtol=0.0, atol=0.0):
    """Check that a tensor of the dtype holds what NumPy found: integers exactly, wrapped around."""
    assert found.dtype == dtype, f"{name}: expected {dtype}, got {found.dtype}"
    if dtype in (*INTEGER, "bool"):
        assert found.shape == np.shape(expected), f"{name}: expected shape {np.shape(expected)}, got {found.shape}"
        np.testing.assert_array_equal(found.numpy(), expected, err_msg=name)
        return
    right, got = np.array(expected, np.float64), to_float64(found)
    if right.shape == got.shape:
        # What lies beyond the largest number is infinite; close to it both are right.
        largest = float(ml_dtypes.finfo(numpy_dtype(dtype)).max)
        close = np.isfinite(right) & (np.abs(right) > 0.99 * largest) & (np.abs(got) > 0.98 * largest)
        right = np.where(close & (np.sign(right) == np.sign(got)), got, right)
    assert_close(found, right, rtol=rtol, atol=atol, name=name)


def axis(draw, ndim):
    return between(draw, -ndim, ndim - 1)
