"""matmul_bias and linear with a bias: the float64 reference, gradients, what they count, and what they refuse."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import accumulator_roundoff, unit_roundoff
from rooflab.testing import assert_close, to_float64

SHAPES = [(1, 1, 1), (5, 9, 7), (64, 64, 64), (97, 263, 101), (33, 2100, 35), (300, 40, 8), (1, 640, 2048), (3, 0, 4)]
SHAPES += [(0, 4, 3), (3, 4, 0)]
DTYPES = ["float64", "float32", "float16", "bfloat16"]
GPU = "meta:H200"


def operand(rng, rows, columns, dtype, device, is_transposed=False):
    x = rng.standard_normal((columns, rows) if is_transposed else (rows, columns)).astype(np.float32)
    x = rl.tensor(x, device=device).to(dtype)
    return x.transpose(0, 1) if is_transposed else x


def bias_of(rng, n, dtype, device, kind):
    """A bias that is far from 0, so that one that is left out or shifted is seen; of a kind that has strides."""
    whole = rl.tensor(3 * rng.standard_normal(2 * n + 1).astype(np.float32), device=device).to(dtype)
    return {"packed": whole[:n], "unaligned": whole[1 : n + 1], "apart": whole[: 2 * n : 2]}[kind]


@pytest.mark.parametrize("kind", ["packed", "unaligned", "apart"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_matches_the_reference(m, k, n, dtype, kind, device):
    rng = np.random.default_rng(m + k + n)
    for layout in range(4):
        a = operand(rng, m, k, dtype, device, layout & 1)
        b = operand(rng, k, n, dtype, device, layout & 2)
        bias = bias_of(rng, n, dtype, device, kind)
        c = rl.matmul_bias(a, b, bias)
        assert (c.dtype, c.shape) == (dtype, (m, n))
        wide_a, wide_b, wide_bias = (to_float64(x) for x in (a, b, bias))
        magnitudes = np.abs(wide_a) @ np.abs(wide_b) + np.abs(wide_bias)
        largest = magnitudes.max(initial=0)
        atol = 2 * (k + 4) * accumulator_roundoff(dtype) * largest + 2 * unit_roundoff(dtype) * largest
        assert_close(c, wide_a @ wide_b + wide_bias, rtol=2 * unit_roundoff(dtype), atol=atol)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_on_a_gpu_it_is_rounded_once(dtype):
    """Where the product is close to -bias, a product that is rounded first has lost what is left."""
    rng = np.random.default_rng(0)
    a, b = operand(rng, 64, 32, dtype, "cuda"), operand(rng, 32, 48, dtype, "cuda")
    products = to_float64(a) @ to_float64(b)
    bias = rl.tensor(-products[0], device="cuda").to(dtype)
    exact = products[0] + to_float64(bias)
    assert_close(rl.matmul_bias(a, b, bias)[0], exact, rtol=unit_roundoff(dtype) * 2, atol=1e-4)
    rounded = to_float64(rl.matmul_bias(a, b, bias, variant="v0_composed")[0])
    assert np.abs(rounded - exact).max() > unit_roundoff(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_on_a_gpu_it_is_one_launch(dtype):
    a, b, bias = (rl.empty(*shape, dtype=dtype, device=GPU) for shape in ((6, 5), (5, 7), (7,)))
    with rl.count() as c:
        rl.matmul_bias(a, b, bias)
    assert (c.ops, c.launches, c.macs, c.flops) == (1, 1, 6 * 5 * 7, 2 * 6 * 5 * 7 + 6 * 7)
    assert (c.bytes_read, c.bytes_written) == (a.nbytes + b.nbytes + bias.nbytes, 6 * 7 * a.itemsize)
    with rl.count() as composed:
        rl.matmul_bias(a, b, bias, variant="v0_composed")
    assert (composed.ops, composed.launches, composed.macs, composed.flops) == (1, 2, c.macs, c.flops)
    assert composed.bytes_read == c.bytes_read + 6 * 7 * a.itemsize
    assert composed.bytes_written == 2 * c.bytes_written


def launches_of_linear(x, weight, bias):
    with rl.count() as c:
        rl.linear(x, weight, bias)
    return {op: one.launches for op, one in c.by_op.items()}


def test_linear_adds_its_bias_in_the_product_where_a_kernel_does():
    def empty(*shape, dtype="bfloat16"):
        return rl.empty(*shape, dtype=dtype, device=GPU)

    weight, bias = empty(32, 16), empty(32)
    apart = {"matmul": 1, "add": 1}
    assert launches_of_linear(empty(2, 3, 16), weight, bias) == {"matmul_bias": 1}
    assert launches_of_linear(empty(16), weight, bias) == {"matmul_bias": 1}
    assert launches_of_linear(empty(3, 2, 16).transpose(0, 1), weight, bias) == apart  # its rows do not merge
    assert launches_of_linear(empty(2, 16), weight, empty(64)[::2]) == apart
    assert launches_of_linear(empty(2, 16), weight, empty(32, dtype="float32")) == apart
    assert launches_of_linear(*(empty(*s, dtype="float64") for s in ((2, 16), (32, 16), (32,)))) == apart
    assert launches_of_linear(rl.ones(2, 16), rl.ones(32, 16), rl.ones(32)) == apart  # on a CPU
    assert launches_of_linear(empty(2, 16), weight, None) == {"matmul": 1}
    with rl.autocast("bfloat16"):
        wide = [empty(*shape, dtype="float32") for shape in ((2, 16), (32, 16), (32,))]
        assert launches_of_linear(*wide) == {"cast": 3, "matmul_bias": 1}


def kernels(run):
    with rl.profile() as profile:
        run()
    return [kernel.name for kernel in profile.kernels]


def test_a_compiled_linear_takes_any_bias():
    """What is recorded for one bias runs for one at another address. Another precision takes another kernel."""
    x, many = rl.empty(1024, 1024, device=GPU), rl.empty(2048, device=GPU)
    compiled = rl.compile(rl.linear)
    product = "matmul_bias_cuda_library"
    assert kernels(lambda: compiled(x, x, many[:1024])) == [product]
    copies, last = kernels(lambda: compiled(x, x, many[1:1025]))
    assert copies.startswith("elementwise") and last == product
    rl.set_float32_matmul_precision("high")
    try:
        found = kernels(lambda: compiled(x, x, many[:1024]))
        assert found[0] == kernels(lambda: rl.linear(x, x, many[:1024]))[0] != product
    finally:
        rl.set_float32_matmul_precision("highest")


@pytest.mark.gpu
def test_a_compiled_linear_takes_any_bias_on_a_gpu():
    x, many = rl.randn(64, 64, device="cuda"), rl.randn(200, device="cuda")
    compiled = rl.compile(rl.linear)
    for begin in (0, 1, 2, 64, 101):
        bias = many[begin : begin + 64]
        assert_close(compiled(x, x, bias), to_float64(x @ x.T + bias), rtol=1e-5, atol=1e-4)


def test_gradients_of_linear_take_a_launch_each():
    x, weight = (rl.empty(*shape, device=GPU, requires_grad=True) for shape in ((4, 16), (32, 16)))
    y = rl.linear(x, weight, rl.empty(32, device=GPU, requires_grad=True))
    with rl.count() as c:
        y.backward(rl.empty_like(y))
    assert {op: one.launches for op, one in c.by_op.items()} == {"matmul": 2, "sum": 1}


@pytest.mark.parametrize("low", [None, "bfloat16"])
@pytest.mark.parametrize("lead", [(6,), (2, 3), ()])
def test_gradients_of_linear_with_a_bias(lead, low, device):
    rng = np.random.default_rng(1)
    shapes = ((*lead, 24), (16, 24), (16,))
    x, weight, bias = (rl.tensor(rng.standard_normal(s).astype(np.float32), device=device) for s in shapes)
    for t in (x, weight, bias):
        t.requires_grad = True
    with rl.autocast(low or "bfloat16", enabled=low is not None):
        y = rl.linear(x, weight, bias)
    dy = rl.tensor(rng.standard_normal(y.shape).astype(np.float32), device=device).to(y.dtype)
    y.backward(dy)
    used = ((x, 24), (weight, 24), (dy, 16))
    rows, columns, above = (to_float64(t.to(low or "float32")).reshape(-1, n) for t, n in used)
    rtol, atol = (1e-5, 1e-5) if low is None else (1e-2, 4e-2)
    expected = (above @ columns, above.T @ rows, above.sum(0))
    for t, one in zip((x, weight, bias), expected, strict=True):
        assert t.grad.dtype == "float32"
        assert_close(t.grad, one.reshape(t.shape), rtol=rtol, atol=atol)


def test_a_frozen_weight_or_bias_gets_no_gradient(device):
    x, weight, bias = rl.ones(2, 16, device=device), rl.ones(8, 16, device=device), rl.ones(8, device=device)
    bias.requires_grad = True
    rl.linear(x, weight, bias).sum().backward()
    assert (x.grad, weight.grad, bias.grad.tolist()) == (None, None, [2.0] * 8)


A, BIAS = rl.ones(2, 3), rl.ones(2)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rl.matmul_bias(A, A, BIAS), r"expected \(M, K\) and \(K, N\), got \(2, 3\) and \(2, 3\)"),
        (lambda: rl.matmul_bias(A[None], A.T, BIAS), r"expected \(M, K\) and \(K, N\), got \(1, 2, 3\)"),
        (lambda: rl.matmul_bias(A, A.T, A[0]), r"bias: expected \(N=2\), got \(3,\)"),
        (lambda: rl.matmul_bias(A, A.T, A), r"bias: expected \(N=2\), got \(2, 3\)"),
        (lambda: rl.matmul_bias(A.long(), A.T.long(), BIAS.long()), "a: expected a floating-point dtype, got int64"),
        (lambda: rl.matmul_bias(A, A.T.half(), BIAS), "float32 and float16"),
        (lambda: rl.matmul_bias(A, A.T, BIAS.half()), "float32 and float16"),
        (lambda: rl.matmul_bias(A, A.T, rl.empty(2, device=GPU)), "operands are on cpu and meta"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=rf"\[matmul_bias\].*{says}"):
        call()
