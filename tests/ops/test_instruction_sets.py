"""CPU kernels on every instruction set that this CPU runs, not only on the best one."""

import ml_dtypes
import numpy as np
import pytest
from ops.samples import SPECS, Expected, samples_of

import rooflab as rl
from rooflab.testing import assert_close, to_float64


@pytest.mark.usefixtures("two_threads")  # which share the work
@pytest.mark.slow(name=["attention", "attention_backward"], dtype=["bfloat16"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if {"float32", "bfloat16"} <= {*spec.dtypes}])
def test_rungs_match_the_reference(name, dtype, instruction_sets):
    for sample in samples_of(name):
        expected = Expected(SPECS[name], dtype, sample)
        for _ in instruction_sets():
            expected.check("cpu")


def rounded(floats):
    """The bits of floats rounded to bfloat16: to nearest even, NaN made quiet."""
    with np.errstate(invalid="ignore"):
        nearest = floats.astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.where(np.isnan(floats), floats.view(np.uint32) >> 16 | 0x40, nearest).astype(np.uint16)


def test_rounding_to_bfloat16(instruction_set):
    """Each bfloat16 with what lies between it and the next: ties, subnormals, overflow, NaN."""
    rests = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    floats = (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | rests).reshape(-1).view(np.float32)
    bits = rl.tensor(floats).to("bfloat16").numpy().view(np.uint16)
    assert np.array_equal(bits, rounded(floats))


@pytest.mark.parametrize("variant", ["v1_staged", "v2_contiguous"])
def test_products_in_bfloat16_are_rounded_once(variant, instruction_set):
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    factor = 1 + 2.0**-9
    bits = rl.mul(rl.tensor(every), factor, variant=variant).numpy().view(np.uint16)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.array_equal(bits, rounded(every.astype(np.float32) * np.float32(factor)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_do_not_depend_on_their_neighbours(name, dtype, instruction_set):
    function, x = getattr(rl, name), rl.linspace(-9, 9, 64).to(dtype)
    expected = function(x).tolist()
    for far in (3e38, 1.5e5, np.inf, -np.inf, np.nan):
        y = x.clone()
        y[5::16] = far
        found = function(y).tolist()
        assert [found[i] for i in range(64) if i % 16 != 5] == [expected[i] for i in range(64) if i % 16 != 5]
        with np.errstate(invalid="ignore"):
            exact = getattr(np, name)(y[5:6].double().numpy())
        if np.isfinite(exact):
            assert_close(function(y)[5:6], exact, rtol=1e-2, atol=1e-6)
        else:
            assert np.isnan(found[5])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["sin", "tanh", "sqrt", "silu", "gelu", "floor", "ceil", "trunc", "round"])
def test_zero_keeps_its_sign(name, dtype, instruction_set):
    zeros = getattr(rl, name)(rl.tensor([-0.0, 0.0] * 20, dtype=dtype)).double().numpy()
    assert np.copysign(1, zeros).tolist() == [-1.0, 1.0] * 20 and not zeros.any()


def test_exp_errs_by_less_than_its_last_bit_and_a_half(instruction_set):
    x = np.concatenate([np.arange(0, 1 << 32, 39119, dtype=np.uint64).astype(np.uint32).view(np.float32),
                        np.linspace(-104, 89, 300_000, dtype=np.float32)])  # fmt: skip
    y = rl.exp(rl.tensor(x)).numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp(x.astype(np.float64))
    finite = np.isfinite(exact) & (exact < np.finfo(np.float32).max)
    last_bit = np.spacing(np.maximum(exact[finite], np.finfo(np.float32).tiny).astype(np.float32))
    assert (np.abs(y[finite] - exact[finite]) / last_bit).max() < 1.4
    assert np.array_equal(np.isnan(y), np.isnan(x))
    assert (y[~finite & ~np.isnan(x)] == np.inf).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_powers_of_all_numbers(dtype, instruction_set):
    """As C defines them, to two last bits: near 1, subnormal, huge, infinite, odd; by tensors and by numbers."""
    tiny, one = np.finfo(dtype).smallest_subnormal, np.array(1, dtype)
    edges = [0, 0.5, 1, 2, 3, 4, 5, 11, tiny, 3 * tiny, 2.0**-126, 1e-20, 1e20, 3e38, 2**24 + 2, 127.5, 150, np.inf]
    edges = np.array([*edges, np.nan, np.nextafter(one, one + one), np.nextafter(one, one - one)], dtype)
    numbers = np.concatenate([edges, -edges, np.random.default_rng(0).uniform(0, 20, 64).astype(dtype)])
    a, b = np.meshgrid(numbers, numbers)
    with np.errstate(all="ignore"):
        exact = np.power(a.astype(np.longdouble), b.astype(np.longdouble)).astype(dtype)
    last_bit = np.spacing(np.clip(np.abs(exact), np.finfo(dtype).tiny, np.finfo(dtype).max / 2))
    by_numbers = rl.stack([rl.pow(rl.tensor(numbers), float(exponent)) for exponent in numbers])
    for found in (rl.pow(rl.tensor(a), rl.tensor(b)).numpy(), by_numbers.numpy()):
        assert np.array_equal(np.isnan(found), np.isnan(exact))
        with np.errstate(invalid="ignore"):
            right = (found == exact) | (np.abs(found - exact) <= 2 * last_bit) | np.isnan(exact)
        right &= (np.signbit(found) == np.signbit(exact)) | np.isnan(exact)
        assert right.all(), (a[~right][:5], b[~right][:5], found[~right][:5])
    assert found.tobytes() == rl.pow(rl.tensor(a), rl.tensor(b)).numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_power_of_minus_2_of_integers_is_the_nearest_number(dtype, instruction_set):
    x = np.arange(1, 2000, dtype=dtype)
    for exponent in (-2.0, rl.full((1999,), -2, dtype=dtype)):
        assert np.array_equal(rl.pow(rl.tensor(x), exponent).numpy(), 1 / (x * x))


@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(d, marks=pytest.mark.slow) for d in ("float64", "float16", "bfloat16"))]
)
@pytest.mark.slow(id=["baseline-float32", "avx512-float32", "avx512_bf16-float32"])
def test_more_than_the_caches_hold(dtype, instruction_set):
    """There, stores bypass the caches in whole lines. The rung below does not do so, and gives the expected result."""
    count = (34 << 20) // rl.empty(1, dtype=dtype).nbytes + 13
    x = rl.randn(count, dtype="float32").to(dtype)
    for op, args in [("add", (x, x)), ("mul", (x, 3)), ("copy", (x,))]:
        one, other = (getattr(rl, op)(*args, variant=v).numpy() for v in ("v2_contiguous", "v1_staged"))
        assert one.tobytes() == other.tobytes(), op
    one, other = (to_float64(rl.gelu(x, variant=v)) for v in ("v2_streaming", "v1_simd"))
    assert np.array_equal(one, other)
    rows = x[: count // 1000 * 1000].view(-1, 1000)
    rtol, atol = SPECS["softmax"].tolerance(dtype, next(SPECS["softmax"].samples(np.random.default_rng(0))))
    one, other = (rl.softmax(rows, variant=v) for v in ("v2_one_pass", "v1_online"))
    assert_close(one, to_float64(other), rtol=2 * rtol, atol=2 * atol)
