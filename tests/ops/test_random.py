"""Random fills: known answers of Philox, moments, ranges, seeds, and the same bits on every rung and device."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import to_float64

DTYPES = ("float64", "float32", "float16", "bfloat16")
DRAWS = {
    "randn": lambda n, dtype, device: rl.randn(n, dtype=dtype, device=device),
    "rand": lambda n, dtype, device: rl.rand(n, dtype=dtype, device=device),
}


def philox(counter, stream, seed):
    """Philox4x32-10 of Salmon et al. (2011), block by block in Python integers."""
    mask = 0xFFFFFFFF
    c = [counter & mask, counter >> 32, stream & mask, stream >> 32]
    k = [seed & mask, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & mask, (a >> 32) ^ c[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def test_this_philox_gives_the_published_answers():
    """The known answers that come with the authors' Random123 library."""
    ones = 2**64 - 1
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(ones, ones, ones) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = philox(0x85A308D3243F6A88, 0x0370734413198A2E, 0x299F31D0A4093822)
    assert pi == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_integers_are_philox(device):
    rl.manual_seed(0x123456789ABCDEF)
    low, high = -1000, 10**12
    first = rl.randint(low, high, (10,), device=device).tolist()
    second = rl.randint(low, high, (10,), device=device).tolist()
    for stream, values in enumerate((first, second)):
        for i, value in enumerate(values):
            words = philox(i // 2, stream, 0x123456789ABCDEF)
            bits = words[2 * (i % 2)] | words[2 * (i % 2) + 1] << 32
            assert value == low + (bits * (high - low) >> 64)


def test_uniforms_are_philox(device):
    rl.manual_seed(7)
    words = np.array([philox(i, 0, 7) for i in range(25)], dtype=np.uint64).ravel()
    for dtype, digits in (("float32", 24), ("float16", 11), ("bfloat16", 8)):
        rl.manual_seed(7)
        expected = (words >> np.uint64(32 - digits)).astype(np.float64) / 2**digits
        np.testing.assert_array_equal(to_float64(rl.rand(100, dtype=dtype, device=device)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_normal_moments(dtype, device):
    rl.manual_seed(1)
    n = 200_001
    x = to_float64(rl.randn(n, dtype=dtype, device=device))
    assert x.shape == (n,)
    assert np.isfinite(x).all()
    # Standard errors of the first four moments of n normal numbers are sqrt(1, 2, 15, 96) / sqrt(n).
    for power, (moment, variance) in enumerate(((0, 1), (1, 2), (0, 15), (3, 96)), start=1):
        rounding = 0.01 if dtype == "bfloat16" else 0
        assert abs((x**power).mean() - moment) < 5 * np.sqrt(variance / n) + rounding
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / np.sqrt(n)
    assert abs((np.abs(x) > 2).mean() - 0.0455) < 0.005
    assert 4 < np.abs(x).max() < 7


@pytest.mark.parametrize("dtype", DTYPES)
def test_uniform_moments_and_range(dtype, device):
    rl.manual_seed(2)
    n = 200_001
    x = to_float64(rl.rand(n, dtype=dtype, device=device))
    step = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, 0)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - (0.5 - step / 2)) < 5 * np.sqrt(1 / 12 / n)
    assert abs(x.var() - 1 / 12) < 0.002
    counts, _ = np.histogram(x, bins=16, range=(0, 1))
    assert (np.abs(counts - n / 16) < 6 * np.sqrt(n / 16)).all()


@pytest.mark.parametrize("dtype", ("int64", "int32"))
def test_integers_cover_their_range(dtype, device):
    rl.manual_seed(3)
    x = rl.randint(-3, 4, (70_001,), dtype=dtype, device=device)
    assert x.dtype == dtype
    values, counts = np.unique(x.numpy() if device == "cpu" else x.cpu().numpy(), return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert (np.abs(counts - 10_000) < 600).all()


def test_extreme_integer_ranges(device):
    low, high = -(2**63), 2**63 - 1
    x = rl.randint(low, high, (10_000,), device=device).tolist()
    assert min(x) < -(2**62)
    assert max(x) > 2**62
    assert set(rl.randint(5, 6, (100,), device=device).tolist()) == {5}
    assert set(rl.randint(2**31 - 1, 2**31, (9,), dtype="int32", device=device).tolist()) == {2**31 - 1}


@pytest.mark.parametrize("draw", DRAWS)
def test_seed_decides_and_calls_differ(draw, device):
    make = DRAWS[draw]
    rl.manual_seed(11)
    first, second = (make(1000, "float32", device).tolist() for _ in range(2))
    assert first != second
    rl.manual_seed(11)
    assert make(1000, "float32", device).tolist() == first
    assert make(1000, "float32", device).tolist() == second
    rl.manual_seed(12)
    assert make(1000, "float32", device).tolist() != first


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_shorter_draw_is_the_start_of_a_longer_one(draw, dtype, device):
    """Element i depends on seed, call and i alone: not on the size, nor on how threads share the work."""
    rl.manual_seed(5)
    whole = to_float64(DRAWS[draw](100_003, dtype, device))
    for n in (1, 2, 3, 5, 4097):
        rl.manual_seed(5)
        np.testing.assert_array_equal(to_float64(DRAWS[draw](n, dtype, device)), whole[:n])


def test_small_floats_are_the_float32_normals_rounded(device):
    rl.manual_seed(6)
    exact = rl.randn(1001, device=device)
    for dtype in ("float16", "bfloat16"):
        rl.manual_seed(6)
        np.testing.assert_array_equal(
            to_float64(rl.randn(1001, dtype=dtype, device=device)), to_float64(exact.to(dtype))
        )


@pytest.mark.gpu
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_on_both_devices(draw, dtype):
    drawn = []
    for device in ("cpu", "cuda"):
        rl.manual_seed(2**63 + 9)
        drawn.append(to_float64(DRAWS[draw](1_000_003, dtype, device)))
    np.testing.assert_array_equal(*drawn)


def test_one_launch_no_flops_and_nothing_read(device):
    with rl.count() as counted:
        rl.randn(33, 3, device=device)
        rl.rand(0, 3, device=device)
    assert (counted.launches, counted.flops, counted.bytes_read, counted.bytes_written) == (1, 0, 0, 33 * 3 * 4)
    assert counted.by_op["randn"].launches == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rl.randn(3, dtype="int32"), r"\[randn\] dtype: expected a floating-point dtype, got int32"),
        (lambda: rl.randint(3, 3, (2,)), r"\[randint\] high: expected more than low \(3\), got 3"),
        (lambda: rl.randint(0, 2**40, (2,), dtype="int32"), r"\[randint\] range: .* does not fit int32"),
        (lambda: rl.randint(0, 2, (2,), dtype="float32"), r"\[randint\] dtype: expected int64 or int32, got float32"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
