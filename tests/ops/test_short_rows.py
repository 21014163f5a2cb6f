"""Many rows of few elements on the CPU: what several rows share must not show in the result of any."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import to_float64

FLOATS = ["float64", "float32", "float16", "bfloat16"]
LARGEST = {"float64": 1.5e308, "float32": 3e38, "float16": 60000.0, "bfloat16": 3e38}


def unusual(shape, dtype, rng):
    """Numbers of all magnitudes. Some rows have a NaN, infinities, or numbers whose sum overflows on the way."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)
    x[3::11, -1] = np.nan
    x[5::13, 0] = np.inf
    x[6::13, -1] = -np.inf
    for place, sign in ((1, 1), (5, -1), (9, 1)):  # the halves of a vector are added first
        x[7::17, place : place + 1] = sign * LARGEST[dtype]
    x[8::19] = -np.inf
    x[9::19] = -0.0
    return rl.tensor(x, dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin"])
def test_a_row_beside_others_is_reduced_as_it_is_alone(op, dtype, two_threads):
    rng = np.random.default_rng(0)
    for rows in (15, 16, 17, 50):
        for n in (17, 32, 33, 64, 65, 100, 1001):
            x = unusual((rows, n + 2), dtype, rng)[:, 1:-1]
            found = getattr(rl, op)(x, -1)
            alone = [getattr(rl, op)(row, -1) for row in x.split(1)]
            assert found.numpy().tobytes() == rl.cat(alone, 0).numpy().tobytes(), (rows, n)


@pytest.mark.parametrize("op", ["sum", "amax"])
def test_rows_that_are_a_task_alone(op, two_threads):
    x = rl.randn(40, 40_000)
    found, alone = getattr(rl, op)(x, -1), [getattr(rl, op)(row, -1) for row in x.split(1)]
    np.testing.assert_allclose(found.numpy(), rl.cat(alone, 0).numpy(), rtol=1e-6, atol=1e-4)


def check_logsumexp(found, exact, dtype):
    """`found` is that of the rows `exact`."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        top = np.where(np.isfinite(exact.max(-1)), exact.max(-1), 0)
        expected = top + np.log(np.exp(exact - top[:, None]).sum(-1))
    expected[np.isinf(exact.max(-1))] = exact.max(-1)[np.isinf(exact.max(-1))]
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    np.testing.assert_allclose(to_float64(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
def test_logsumexp_of_short_rows(dtype, two_threads):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 16, 17):
        x = unusual((70, n + 3), dtype, rng)[:, 1 : n + 1]
        found, alone = rl.logsumexp(x, -1), [rl.logsumexp(row, -1) for row in x.split(1)]
        check_logsumexp(found, to_float64(x), dtype)
        assert found.numpy().tobytes() == rl.cat(alone, 0).numpy().tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_logsumexp_of_columns(dtype, two_threads):
    """A NaN, an infinity or the largest number lies in the first block of a column, or in a later one."""
    rng = np.random.default_rng(0)
    for n in (1, 3, 64, 200):
        x = unusual((90, n), dtype, rng).T.contiguous()
        x[0, 10::20], x[n // 2 :, 11::20], x[-1, 12::20] = np.nan, -np.inf, np.inf
        x[:64, 13::20] = -np.inf
        found = rl.logsumexp(x, 0, variant="v2_columns")
        check_logsumexp(found, to_float64(x).T, dtype)
        assert found.numpy().tobytes() == rl.logsumexp(x, 0).numpy().tobytes()
        some = rl.logsumexp(x[:, 61:70], 0, variant="v2_columns")
        assert some.numpy().tobytes() == found[61:70].numpy().tobytes()


@pytest.mark.parametrize(("shape", "dim"), [((0, 64), 0), ((0, 7), 0), ((3, 0, 64), 1), ((64, 0), 1)])
def test_logsumexp_of_no_elements(shape, dim):
    x = rl.zeros(shape)
    for found in (rl.logsumexp(x, dim), rl.logsumexp(x, dim, variant="v1_simd")):
        assert found.numel() > 0 and (found == -np.inf).all()


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "bool"])
@pytest.mark.parametrize("descending", [False, True])
def test_short_lines_are_sorted_as_long_ones_are(dtype, descending, two_threads):
    """In order, and equal elements where they were. NaN come last, or first."""
    rng = np.random.default_rng(0)
    for n in range(1, 20):
        x = rng.integers(-3, 4, (500, n)).astype(np.float64)  # many are equal
        if dtype in FLOATS:
            x = np.where(rng.random(x.shape) < 0.1, rng.choice([np.nan, -0.0, np.inf, -np.inf], x.shape), x)
        tensor = rl.tensor(x, dtype=dtype)
        for k in {1, n // 2 + 1, n}:
            one, other = (rl.topk(tensor, k, largest=descending, variant=v) for v in ("v2_packed", "v1_parallel"))
            assert all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(one, other, strict=True)), (n, k)
