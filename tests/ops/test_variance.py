"""Variances at the edges of their dtype, of few elements, and beside numbers that are far from all others."""

import math

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def of_each_rung(x, op=rl.var, **options):
    """The name of each rung that takes x, and the variance that it gives."""
    found = []
    for rung in rl.variants("var", x.device):
        try:
            found.append((rung.name, op(x, variant=rung.name, **options)))
        except ValueError as error:
            assert "does not accept these operands" in str(error)
    assert len(found) >= 2
    return found


def spread_out(shape, largest):
    """0 and a large number by turns along the last dimension."""
    return np.broadcast_to(np.tile([0.0, largest], shape[-1] // 2), shape)


@pytest.mark.parametrize("strides", ["rows", "columns", "every second"])
def test_squares_that_overflow_float_are_added_in_double(device, strides):
    x = spread_out((3, 6000), 1e18)  # 6000 squares of 5e17 are more than a float holds, their mean is not
    tensor = rl.tensor(x.astype("f4"), device=device)
    if strides == "columns":
        tensor = tensor.T.contiguous().T
    if strides == "every second":
        tensor = rl.tensor(np.repeat(x, 2, axis=1).astype("f4"), device=device)[:, ::2]
    for name, y in of_each_rung(tensor, dim=1):
        assert_close(y, x.astype("f4").astype("f8").var(axis=1, ddof=1), rtol=1e-6, atol=0, name=name)


def test_a_variance_beyond_the_dtype_is_infinite(device):
    for dtype, largest in (("float16", 1e3), ("float32", 1e20), ("float64", 1e200)):
        for name, y in of_each_rung(rl.tensor([0.0, largest], dtype=dtype, device=device)):
            assert y.item() == math.inf, (dtype, name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_first_number_may_be_far_from_all_others(device, dtype):
    rng = np.random.default_rng(0)
    for n in (9, 100, 5000, 2**20 + 3):
        x = rl.tensor(np.concatenate([[3e5], 1 + rng.standard_normal(n)]), dtype=dtype, device=device)
        exact = x.cpu().to("float64").numpy().var(ddof=1)
        for name, y in of_each_rung(x):
            if n < 10000 or not name.endswith("v0_reference"):
                assert y.item() == pytest.approx(exact, rel=1e-5 if dtype == "float32" else 2**-8), (n, name)


def test_of_few_elements(device):
    for elements, correction, expected in (
        ([1.0], 1, math.nan),
        ([1.0], 0, 0.0),
        ([], 1, math.nan),
        ([1.0, 3.0], 3, math.inf),
        ([2.0, 2.0], 3, math.nan),
        ([1.0, 3.0], 0.5, 2 / 1.5),
        ([1.0, math.inf], 1, math.nan),
        ([math.nan, 1.0, 2.0], 1, math.nan),
    ):
        x = rl.tensor(np.array(elements, "f4"), device=device)
        for name, y in of_each_rung(x, correction=correction):
            assert y.item() == pytest.approx(expected, nan_ok=True), (elements, correction, name)


def test_it_is_one_launch_that_reads_its_operand_once(device):
    x = rl.zeros(5, 7, dtype="bfloat16", device=device)
    with rl.count() as c:
        rl.var(x, dim=0)
    assert (c.ops, c.launches, c.flops, c.bytes_read, c.bytes_written) == (1, 1, 4 * 35, 70, 14)
    with rl.count() as c:
        rl.std(x, dim=0)
    assert (c.ops, c.launches, c.flops, c.bytes_read, c.bytes_written) == (1, 1, 4 * 35, 70, 14)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 0.02)])
def test_its_gradient_over_some_dimensions(device, dtype, rtol):
    x = rl.tensor(np.random.default_rng(0).standard_normal((3, 5, 4)), dtype=dtype, device=device, requires_grad=True)
    dy = rl.tensor([[1.0, -2.0, 3.0, 0.5]] * 3, dtype=dtype, device=device)
    rl.var(x, dim=1, correction=0).backward(dy)
    array = x.detach().cpu().to("float64").numpy()
    exact = 2 / 5 * (array - array.mean(axis=1, keepdims=True)) * dy.cpu().to("float64").numpy()[:, None]
    assert_close(x.grad, exact, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n", [1000, 40000])
@pytest.mark.parametrize("layout", ["row", "columns", "every third"])
def test_float64_far_from_zero_keeps_its_digits(device, n, layout):
    distances = np.round(np.linspace(0, 8, n) * 64) / 64  # which 1e12 is added to without rounding
    x = rl.tensor(np.repeat((1e12 + distances)[:, None], 3, axis=1), device=device)
    x = {"row": x[:, 0].contiguous(), "columns": x, "every third": x[:, 0]}[layout]
    for name, y in of_each_rung(x, dim=0):
        assert_close(y, np.broadcast_to(distances.var(ddof=1), y.shape), rtol=1e-12, atol=0, name=name)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e25])
@pytest.mark.parametrize("shape", [(2,), (2, 5), (5, 2)])
def test_a_deviation_may_fit_where_its_square_does_not(device, scale, shape):
    dim = shape.index(2)
    x = np.broadcast_to(np.array([1.0, 3.0]).reshape([2 if d == dim else 1 for d in range(len(shape))]), shape)
    tensor = rl.tensor((scale * x).astype("f4"), device=device, requires_grad=True)
    for name, y in of_each_rung(tensor.detach(), rl.std, dim=dim):
        assert_close(y.to("float64") * (1 / scale), np.full(y.shape, 2**0.5), rtol=1e-6, atol=0, name=name)
    rl.std(tensor, dim=dim).sum().backward()
    assert_close(tensor.grad, (x - 2) * 0.5**0.5, rtol=1e-6, atol=0)


def test_the_deviation_of_equal_numbers_has_no_slope(device):
    x = rl.tensor([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]], device=device, requires_grad=True)
    rl.std(x, dim=1).sum().backward()
    assert_close(x.grad, np.array([[0, 0, 0], [-0.5, 0, 0.5]]), rtol=1e-6)


@pytest.mark.parametrize("op", [rl.var, rl.std, rl.sum, rl.amax])
def test_a_bool_is_no_dimension(op):
    """False is `unbiased` in PyTorch, not dimension 0."""
    with pytest.raises(TypeError, match="expected integers, got False"):
        op(rl.ones(3), False)


def test_a_correction_that_is_no_number_gives_none(device):
    for name, y in of_each_rung(rl.tensor([1.0, 2.0], device=device), correction=math.nan):
        assert math.isnan(y.item()), name
