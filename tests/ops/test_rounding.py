"""Rounding to 16 bits bit for bit: ties to even, the largest numbers, subnormals and every kind of NaN."""

import ml_dtypes
import numpy as np
import pytest

import rooflab as rl

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in cast")

NUMPY = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
DTYPES = list(NUMPY)


def bits(x):
    return x.cpu().numpy().view(np.uint16)


def between(dtype):
    """Each finite number of the dtype, what lies halfway to the next one, and one float32 to either side of that."""
    numbers = np.arange(65536, dtype=np.uint16).view(NUMPY[dtype])
    numbers = np.unique(numbers[np.isfinite(numbers.astype(np.float32))].astype(np.float64))
    halfway = ((numbers[:-1] + numbers[1:]) / 2).astype(np.float32)
    ends = np.float32([65519.996, 65520, 65536, np.finfo(np.float32).max, np.inf])
    around = [numbers.astype(np.float32), halfway, np.nextafter(halfway, np.float32(np.inf)), ends, -ends]
    return np.concatenate([*around, np.nextafter(halfway, np.float32(-np.inf))])


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_round_to_nearest_even(dtype, variant, device):
    x = between(dtype)
    x = x[(np.abs(x) >= np.finfo(np.float32).tiny) | (x == 0)]  # a CPU may take smaller float32 for 0
    with np.errstate(over="ignore"):
        expected = x.astype(NUMPY[dtype]).view(np.uint16)
    found = bits(rl.cast(rl.tensor(x, device=device), dtype, variant=variant))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(bits(rl.tensor(x, dtype=dtype, device=device)), expected)


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_of_ops_round_to_nearest_even(dtype, variant, device):
    """Sums of two numbers whose exact result lies halfway."""
    one = 1 + np.arange(64) * 2.0 ** (-10 if dtype == "float16" else -7)
    half = np.full(64, 2.0 ** (-11 if dtype == "float16" else -8))
    a, b = (rl.tensor(x, dtype=dtype, device=device) for x in (one, half))
    for sign in (1, -1):
        expected = (sign * (one + half)).astype(np.float32).astype(NUMPY[dtype]).view(np.uint16)
        np.testing.assert_array_equal(bits(rl.add(sign * a, sign * b, variant=variant)), expected)


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_nan_stays_one_whatever_its_bits(dtype, variant, device):
    """Payloads that only the lower half of a float32 holds must not become infinities, nor a carry a number."""
    patterns = np.uint32([0x7F800001, 0x7F80FFFF, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF])
    x = np.tile(patterns, 9).view(np.float32)
    for result in (
        rl.cast(rl.tensor(x, device=device), dtype, variant=variant),
        rl.tensor(x, dtype=dtype, device=device),
    ):
        assert np.isnan(result.float().cpu().numpy()).all()
    small = np.uint16(
        [0x7C01, 0x7E00, 0x7FFF, 0xFC01, 0xFFFF] if dtype == "float16" else [0x7F81, 0x7FFF, 0xFF81, 0xFFFF]
    )
    x = rl.tensor(np.tile(small, 9).view(NUMPY[dtype]), device=device)
    for result in (rl.cast(x, "float32", variant=variant), rl.mul(x, 1.0, variant=variant), rl.neg(x, variant=variant)):
        assert np.isnan(result.float().cpu().numpy()).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_of_16_bits_is_read_exactly(dtype, device):
    numbers = np.arange(65536, dtype=np.uint16).view(NUMPY[dtype])
    for wide in ("float32", "float64"):
        found = rl.tensor(numbers, device=device).to(wide).cpu().numpy()
        np.testing.assert_array_equal(found, numbers.astype(wide))
        back = bits(rl.tensor(found, device=device).to(dtype))
        finite = np.isfinite(found)
        np.testing.assert_array_equal(back[finite], numbers.view(np.uint16)[finite])
