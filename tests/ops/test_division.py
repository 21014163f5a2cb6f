"""`//` and `%` of floats are exact: a is (a // b) b + a % b, and nothing is lost where the quotient is large."""

from fractions import Fraction

import numpy as np
import pytest

import rooflab as rl


def hard_quotients(dtype):
    """Dividends and divisors: of any ratio, multiples of the divisor and their neighbours, and what is no number."""
    rng = np.random.default_rng(5)
    width, bits = (60, 22) if dtype == "float32" else (500, 51)
    a, b = (np.exp2(rng.uniform(-width, width, 3000)) * rng.choice([-1, 1], 3000) for _ in range(2))
    b[:1500] = a[:1500] * np.exp2(rng.uniform(-30, 3, 1500))
    b[1500:1800] = 1
    a, b = a.astype(dtype), b.astype(dtype)
    few = b[:1000] * rng.integers(-9, 9, 1000).astype(dtype)
    many = b[:1000] * rng.integers(-(2**bits), 2**bits, 1000).astype(dtype)
    above = np.nextafter(few, np.array(np.inf, dtype))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, np.finfo(dtype).tiny / 4], dtype)
    pairs = np.meshgrid(special, special)
    return np.concatenate([a, few, many, above, pairs[0].ravel()]), np.concatenate(
        [b, b[:1000], b[:1000], b[:1000], pairs[1].ravel()]
    )


def fits_mantissa(a, b):
    return abs(a / b) < 2.0 ** np.finfo(a.dtype).nmant


def right_quotients(a, b, rest):
    """Rounded down exactly where the quotient fits the mantissa; elsewhere by the formula that NumPy has."""
    turns = (rest != 0) & ((rest < 0) != (b < 0))
    formula = (a - rest) / b - np.where(turns, 1, 0).astype(a.dtype)
    whole = np.where(b == 0, a / b, np.where(formula == 0, np.copysign(formula, a / b), np.rint(formula)))
    for i in np.flatnonzero(np.isfinite(b) & fits_mantissa(a, b) & (whole != 0)):
        whole[i] = Fraction(float(a[i])) // Fraction(float(b[i]))
    return whole


def check(dtype, device, variant=""):
    a, b = hard_quotients(dtype)
    with np.errstate(all="ignore"):
        if variant:  # computes in double
            a, b = (x[fits_mantissa(a, b)] for x in (a, b))
        rest = np.fmod(a, b)
        remainder = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
        quotient = right_quotients(a, b, rest)
    x, y = rl.tensor(a, device=device), rl.tensor(b, device=device)
    for name, expected in (("remainder", remainder), ("floor_divide", quotient)):
        found = getattr(rl, name)(x, y, variant=variant).cpu().numpy()
        assert np.array_equal(found, expected, equal_nan=True), name
        zero = expected == 0
        assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero])), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_is_exact_on_every_instruction_set(dtype, instruction_set):
    check(dtype, "cpu")


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_is_exact(dtype, variant, device):
    check(dtype, device, variant)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integers_divide_as_in_numpy_where_32_bits_are_and_are_not_enough(dtype):
    edges = [1, 2, 3, 7, 2**31 - 1, 2**31, 2**31 + 1, 2**32 + 5, 2**62, 2**63 - 1]
    info = np.iinfo(dtype)
    numbers = [n for edge in edges for n in (edge, -edge) if info.min <= n <= info.max] + [info.min]
    a, b = (x.ravel() for x in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))
    with np.errstate(over="ignore"):  # the smallest number divided by -1
        assert np.array_equal((rl.tensor(a) // rl.tensor(b)).numpy(), a // b)
        assert np.array_equal((rl.tensor(a) % rl.tensor(b)).numpy(), a % b)
