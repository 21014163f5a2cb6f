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
    """Each finite number of the dtype, the middle between it and the next, and one float32 to either side of that."""
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


SMALLEST = {"float64": 5e-324, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}


def rounded(x, dtype):
    """Float64 numbers to the nearest of the dtype, ties to even; ml_dtypes would go through float32."""
    if dtype != "bfloat16":
        return np.asarray(x).astype(dtype).astype(np.float64)
    last = np.maximum(np.frexp(x)[1] - 8, -133)
    return np.ldexp(np.round(np.ldexp(x, -last)), last)


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize("dtype", SMALLEST)
def test_subnormals_are_numbers(dtype, variant, device):
    """No op treats the smallest numbers as 0, or returns 0 for them."""
    counts, smallest = np.arange(1.0, 100), SMALLEST[dtype]
    x = rl.tensor(counts * smallest, dtype=dtype, device=device)

    def check(y, expected):
        np.testing.assert_array_equal(y.double().cpu().numpy(), rounded(expected * smallest, dtype))

    check(x, counts)
    check(rl.cast(rl.cast(x, "float64", variant=variant), dtype, variant=variant), counts)
    check(rl.add(x, x, variant=variant), 2 * counts)
    check(rl.sub(x, x[:1], variant=variant), counts - 1)
    check(rl.mul(x, 2.0, variant=variant), 2 * counts)
    check(rl.mul(x, 0.5, variant=variant), np.round(counts / 2))  # to even
    check(rl.maximum(x, x[50], variant=variant), np.maximum(counts, 51))
    check(rl.cumsum(x, 0, variant=variant), np.cumsum(counts))
    check(rl.sum(x, variant=variant), counts.sum())
    check(rl.sum(x.view(99, 1).expand(99, 70), 0, variant=variant), np.full(70, counts.sum()))
    assert rl.gt(x, 0.0, variant=variant).tolist() == [True] * 99


# 1 and two parts: half of 1's last bit, and one that decides to which side the sum is rounded.
PARTS = {"float32": (1, 2.0**-24, 2.0**-50), "float16": (1, 2.0**-11, 2.0**-24), "bfloat16": (1, 2.0**-8, 2.0**-40)}


def kept_in_double(op, device):
    """The rungs of an op that sum in double; on a GPU the others sum in float32."""
    return [v.name for v in rl.variants(op, device) if device == "cpu" or v.name == "v0_reference"]


@pytest.mark.parametrize("dtype", PARTS)
def test_running_sums_are_rounded_once(dtype, device):
    parts = np.concatenate([PARTS[dtype], np.full(3000, PARTS[dtype][1])])
    expected = rounded(np.cumsum(parts), dtype)
    assert expected[1] == 1 < expected[2] < expected[-1]
    for variant in kept_in_double("cumsum", device):
        found = rl.cumsum(rl.tensor(parts, dtype=dtype, device=device), 0, variant=variant)
        np.testing.assert_array_equal(found.double().cpu().numpy(), expected)


@pytest.mark.parametrize(("dtype", "large"), [("float32", 3e38), ("float16", 6e4), ("bfloat16", 3e38)])
def test_running_sums_come_back_from_beyond_the_largest_number(dtype, large, device):
    x = rl.tensor([large, large, -large, -large], dtype=dtype, device=device)
    for variant in kept_in_double("cumsum", device):
        assert rl.cumsum(x, 0, variant=variant).tolist() == [x[0].item(), np.inf, x[0].item(), 0]


@pytest.mark.parametrize("dtype", PARTS)
def test_sums_are_rounded_once(dtype, device):
    """The parts lie further apart than any rung sums in float32."""
    x = np.zeros(3 * 16384)
    x[::16384] = PARTS[dtype]
    row = rl.tensor(x, dtype=dtype, device=device)
    columns = row.view(-1, 1) * rl.ones(1, 70, dtype=dtype, device=device)
    for variant in kept_in_double("sum", device):
        assert rl.sum(row, variant=variant).item() == rounded(sum(PARTS[dtype]), dtype) > 1
        assert set(rl.sum(columns, 0, variant=variant).tolist()) == {rl.sum(row, variant=variant).item()}


@pytest.mark.parametrize("variant", ["", "v0_reference"])
@pytest.mark.parametrize(
    ("dtype", "whole", "nearest"),
    [
        ("float32", 2**60 + 2**36 + 1, 2**60 + 2**37),
        ("float16", 2**15 + 2**4 + 1, 2**15 + 2**5),
        ("bfloat16", 2**40 + 2**32 + 1, 2**40 + 2**33),
    ],
)
def test_casts_are_rounded_once(dtype, whole, nearest, variant, device):
    parts = sum(PARTS[dtype])
    for x, expected in ((np.int64([whole, -whole]), nearest), (np.array([parts, -parts]), rounded(parts, dtype))):
        found = rl.cast(rl.tensor(x, device=device), dtype, variant=variant)
        assert found.tolist() == rl.tensor(x, dtype=dtype, device=device).tolist() == [expected, -expected]
        assert abs(found[0].item()) > 1
