"""Backward ops of softmax and the norms: what a backward pass starts and moves, bits, huge numbers, and errors."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64


def leaf(*shape, **options):
    return rl.randn(*shape, requires_grad=True, **options)


CALLS = {
    "rms_norm": (lambda x, weight, bias: rl.rms_norm(x, weight), 2),
    "rms_norm zero-centered": (lambda x, weight, bias: rl.rms_norm(x, weight, zero_centered=True), 2),
    "layer_norm": (lambda x, weight, bias: rl.layer_norm(x, weight, bias), 2),
    "layer_norm no bias": (lambda x, weight, bias: rl.layer_norm(x, weight), 2),
    "softmax": (lambda x, weight, bias: rl.softmax(x), 1),
    "log_softmax": (lambda x, weight, bias: rl.log_softmax(x), 1),
}


def counted_back(call, x, weight, bias):
    y = call(x, weight, bias)
    dy = rl.ones(*y.shape, dtype=y.dtype, device=y.device)
    with rl.count() as c:
        y.backward(dy)
    return c


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_a_backward_pass_moves_what_it_must(name, dtype):
    """It reads dy and x (or y) and writes dx, in one launch; on a GPU a second launch finishes sums over rows."""
    call, launches = CALLS[name]
    for device, expected in (("meta", 1), ("meta:H200", launches)):
        x, *parameters = (
            leaf(4096, 1024, dtype=dtype, device=device),
            *(leaf(1024, dtype=dtype, device=device) for _ in range(2)),
        )
        c = counted_back(call, x, *parameters)
        assert (c.launches, c.ops) == (expected, 1)
        assert 3 * x.nbytes <= c.bytes_read + c.bytes_written <= 3.01 * x.nbytes
        of_blocks = 2 * 4 * x.numel() // 8  # of 8 rows or more, for two sums in float32
        assert x.nbytes <= c.peak_bytes <= x.nbytes + of_blocks + (1 << 16)


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_sums_that_nobody_wants_are_not_formed(name):
    call, _ = CALLS[name]
    x, weight, bias = leaf(4096, 1024, device="meta:H200"), *(rl.ones(1024, device="meta:H200") for _ in range(2))
    c = counted_back(call, x, weight, bias)
    assert (c.launches, c.allocations, c.bytes_allocated) == (1, 1, x.nbytes)


def test_the_bias_alone_is_a_sum():
    x, weight, bias = rl.ones(6, 4), rl.ones(4), leaf(4)
    with rl.count() as c:
        rl.layer_norm(x, weight, bias).backward(x)
    assert bias.grad.tolist() == [6.0] * 4
    assert set(c.by_op) == {"layer_norm", "sum"}


def gradients(name, dtype, device="cpu"):
    rl.manual_seed(0)
    x, weight, bias = (leaf(*shape, dtype=dtype, device=device) for shape in ((700, 264), (264,), (264,)))
    y = CALLS[name][0](x, weight, bias)
    rl.manual_seed(1)
    y.backward(rl.randn(*y.shape, dtype=dtype, device=device))
    return [t.grad.tolist() for t in (x, weight, bias) if t.grad is not None]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_the_bits_are_the_same_on_every_run(name, dtype, device):
    first, threads = gradients(name, dtype, device), rl.num_threads()
    try:
        for count in (1, 2, 3):
            rl.set_num_threads(count)
            assert gradients(name, dtype, device) == first
    finally:
        rl.set_num_threads(threads)


def rungs_that_take(name, operands, **options):
    """What each rung returns that accepts the operands, by its name: dx, and dweight where there is a weight."""
    found = {}
    for rung in rl.variants(f"{name}_backward", operands[0].device):
        try:
            found[rung.name] = getattr(rl, f"{name}_backward")(*operands, variant=rung.name, **options)
        except ValueError as error:
            assert "does not accept these operands" in str(error)
    return found


@pytest.mark.parametrize("largest", [1e18, 1e20, 3e38, 1e-19, 1e-25, 1e-30])
@pytest.mark.parametrize("d", [4, 36, 640, 1000, 1024])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_gradients_at_huge_and_tiny_numbers_are_those_at_others(name, d, largest, device):
    """dweight is the same as for other numbers, and dx is smaller by the factor by which the numbers are larger."""
    tolerance = 128 * unit_roundoff("float32")  # a sum of 1000 is in chains of 32, and there are three of them
    smallest = 2.0**-149  # dx is a multiple of it
    rng = np.random.default_rng(0)
    dy, x, weight = rng.uniform(-1, 1, (3, d)), rng.uniform(-1, 1, (3, d)), rng.uniform(-1, 1, d)
    size = np.array([[largest], [1], [largest]])  # the row in the middle is neither huge nor tiny
    small = [to_float64(g) for g in getattr(rl, f"{name}_backward")(*map(rl.tensor, (dy, x, weight)), eps=0.0)]
    scale = np.abs(small[0]).max()
    operands = [rl.tensor(a, dtype="float32", device=device) for a in (dy, x * size, weight)]
    found = rungs_that_take(name, operands, eps=0.0)
    assert len(found) > 1
    for dx, dweight in found.values():
        assert_close(dweight, small[1], rtol=tolerance, atol=tolerance)
        atol = tolerance * scale + smallest * largest
        assert_close(to_float64(dx) * size, small[0], rtol=tolerance, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("d", [4096, 5000, 40001])
def test_gradients_of_layer_norm_at_constant_rows_whose_sum_overflows(d, dtype, device):
    x, dy = rl.full((3, d), 1e35, dtype=dtype, device=device), rl.randn(3, d).to(dtype).to(device)
    slopes = to_float64(dy)
    expected = (slopes - slopes.mean(1, keepdims=True)) / np.sqrt(1e-5)
    tolerance = 64 * unit_roundoff(dtype)
    for rung, (dx, dweight) in rungs_that_take("layer_norm", (dy, x, rl.ones(d, dtype=dtype, device=device))).items():
        assert_close(dx, expected, rtol=tolerance, atol=1e3 * tolerance, name=rung)
        assert_close(dweight, np.zeros(d), rtol=0, atol=0, name=rung)


@pytest.mark.parametrize("largest", [1e20, 1e38, 1e-25])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_bfloat16_gradients_at_huge_and_tiny_numbers(name, largest, device):
    """All rungs round the same gradients, whatever the squares of the numbers are in float."""
    rng = np.random.default_rng(0)
    arrays = rng.uniform(-1, 1, (9, 640)), rng.uniform(-1, 1, (9, 640)) * largest, rng.uniform(-1, 1, 640)
    operands = [rl.tensor(a, dtype="bfloat16", device=device) for a in arrays]
    found = rungs_that_take(name, operands, eps=0.0)
    expected = [to_float64(g) for g in found.pop("v0_composed")]
    for gradients in found.values():
        for ours, theirs in zip(gradients, expected, strict=True):
            tolerance = 2 * unit_roundoff("bfloat16")
            atol = tolerance * np.abs(theirs).max() + 2.0**-133  # the smallest bfloat16 above 0
            assert_close(ours, theirs, rtol=tolerance, atol=atol)


@pytest.mark.parametrize("d", [4, 640, 4096])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_gradients_at_subnormal_numbers(name, d, device):
    """1 / rms overflows, dx does not."""
    x, dy = np.tile([3.0, -1.0, 2.0, -4.0], d // 4), np.tile([1.0, 2.0, -1.0, 0.5], d // 4)
    tiny, plain = (
        rungs_that_take(name, [rl.tensor([a], dtype="float32", device=device) for a in (dy * up, x * size)], eps=0.0)
        for up, size in ((2.0**-30, 2.0**-140), (1.0, 1.0))
    )
    for rung, dx in tiny.items():
        assert_close(to_float64(dx) * 2.0**-110, to_float64(plain[rung]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("size", "slope", "eps"), [(1e15, 1e25, 1e-6), (1e5, 1e34, 1e-6), (1e-8, 1e-32, 1e-24)])
@pytest.mark.parametrize("d", [4, 640, 9000])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_gradients_where_only_products_leave_range(name, d, size, slope, eps):
    """On the CPU. dy x is not a float, or one of few digits, but dx is: the mean of dn n must be found otherwise."""
    rng = np.random.default_rng(0)
    x, dy = rng.uniform(-1, 1, (3, d)), rng.uniform(-1, 1, (3, d))
    dy += x  # so that the mean of dn n counts
    size, slope = (np.array([[extreme], [1], [extreme]]) for extreme in (size, slope))
    operands = [rl.tensor(a, dtype="float32") for a in (dy * slope, x * size, rng.uniform(1, 2, d))]
    found = rungs_that_take(name, operands, eps=eps)
    exact = [to_float64(g) for g in found.pop("v0_composed")]
    assert len(found) > 0
    for gradients in found.values():
        for ours, right in zip(gradients, exact, strict=True):
            most = np.abs(right).max(-1, keepdims=True)
            assert_close(to_float64(ours) / most, right / most, rtol=0, atol=64 * unit_roundoff("float32"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_softmax_along_any_dim(dtype, device):
    dy, y = rl.randn(3, 5, 7, dtype=dtype, device=device), rl.rand(3, 5, 7, dtype=dtype, device=device)
    for dim in (0, 1, -2):
        moved = rl.softmax_backward(*(t.transpose(dim, -1).contiguous() for t in (dy, y)))
        found = to_float64(rl.softmax_backward(dy, y, dim))
        atol = 8 * unit_roundoff(dtype)  # another order of additions, and another choice of fused ones by the compiler
        assert_close(moved.transpose(dim, -1), found, rtol=0, atol=atol)


X = rl.ones(3, 8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.rms_norm_backward(X[:2], X), r"\[rms_norm_backward\] dy: expected the shape of x \(3, 8\), got"),
        (lambda: rl.rms_norm_backward(X, X, rl.ones(3)), r"\[rms_norm_backward\] weight: expected \(D=8\), got \(3,\)"),
        (lambda: rl.rms_norm_backward(X, rl.ones(())), r"\[rms_norm_backward\] x: expected \(..., D\), got \(\)"),
        (lambda: rl.rms_norm_backward(X, X.to("float16")), r"\[rms_norm_backward\].*float16 and float32"),
        (lambda: rl.rms_norm_backward(X, X.to("int64")), r"\[rms_norm_backward\] x: expected a floating-point dtype"),
        (lambda: rl.layer_norm_backward(X, X, rl.ones(8, 1)), r"\[layer_norm_backward\] weight: expected \(D=8\)"),
        (
            lambda: rl.layer_norm_backward(X, X, rl.ones(8, device="meta")),
            r"\[layer_norm_backward\] operands are on cpu and meta",
        ),
        (lambda: rl.softmax_backward(X, X, 2), r"\[softmax_backward\] dim: expected in \[-2, 1\], got 2"),
        (
            lambda: rl.softmax_backward(X.T, X),
            r"\[softmax_backward\] dy: expected the shape of y \(3, 8\), got \(8, 3\)",
        ),
        (
            lambda: rl.softmax_backward(X.to("float64"), X.to("float64"), variant="v1_simd"),
            r"v1_simd does not accept these operands \(.*not float64\)",
        ),
    ],
)
def test_bad_arguments_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("op", [rl.rms_norm_backward, rl.layer_norm_backward])
def test_very_many_long_rows_leave_no_more_sums_than_a_grid_has_blocks(op):
    """A grid has at most 65535 blocks along its second dimension."""
    held = []
    for n in (64 * 65535, 64 * 65535 + 1):
        row = rl.ones(1, 8193, dtype="bfloat16", device="meta:H200").expand(n, 8193)
        with rl.count() as c:
            op(row, row, row[0])
        held.append(c.peak_bytes)
    assert held[1] < held[0]
