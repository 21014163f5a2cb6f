"""Gradients where a formula would be infinity times 0, far from 0, and where elements are NaN or alike."""

import numpy as np
import pytest

import rooflab as rl

NAN, INF = float("nan"), float("inf")


def gradients(fn, *values, dtype="float64"):
    leaves = [rl.tensor([value], dtype=dtype, requires_grad=True) for value in values]
    fn(*leaves).backward(rl.ones(1, dtype=dtype))
    return [leaf.grad.item() for leaf in leaves]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0.0, 2.0, [0.0, 0.0]),  # d(0^b)/db = 0^b log(0), in the limit 0
        (0.0, 0.0, [0.0, 0.0]),  # d(a^0)/da = 0 a^-1
        (3.0, 0.0, [0.0, 1.0986122886681098]),
        (2.0, 3.0, [12.0, 5.545177444479562]),
    ],
)
def test_powers(a, b, expected):
    assert gradients(rl.pow, a, b) == pytest.approx(expected)


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_powers_of_integers(dtype):
    x = rl.tensor([3.0, 2.0], requires_grad=True)
    (x ** rl.tensor([1, 0], dtype=dtype)).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("x", "expected"), [(1e20, 1.0), (-1e20, 0.0), (40.0, 1.0), (-40.0, 0.0), (0.0, 0.5)])
def test_gelu_far_from_zero(x, expected):
    """1e20 squared is infinite in float32."""
    assert gradients(rl.gelu, x, dtype="float32") == pytest.approx([expected], abs=1e-30)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("count", [257, 70000])
def test_many_equal_extremes_share_the_gradient(reduce, dtype, count, device):
    """float16 cannot hold 70000, and bfloat16 does not know 257."""
    x = rl.full((count + 1,), 2.0, dtype=dtype, device=device)
    x[0] = 1.0 if reduce == "amax" else 3.0
    x.requires_grad_()
    getattr(x, reduce)().backward()
    expected = rl.tensor(1 / count, dtype=dtype).item()
    assert x.grad[0].item() == 0 and x.grad[1:].amin().item() == x.grad.amax().item() == expected > 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_many_equal_extremes_of_a_row_share_the_gradient(reduce, dtype, device):
    x = rl.full((3, 70000), 2.0, dtype=dtype, device=device, requires_grad=True)
    getattr(x, reduce)(dim=1).backward(rl.tensor([1.0, 7.0, 100.0], dtype=dtype, device=device))
    expected = [rl.tensor(dy / 70000, dtype=dtype).item() for dy in (1.0, 7.0, 100.0)]
    assert x.grad[:, 0].tolist() == x.grad[:, -1].tolist() == expected


@pytest.mark.parametrize(("reduce", "expected"), [("amax", [0.0, 0.5, 0.5]), ("amin", [1.0, 0.0, 0.0])])
def test_a_row_of_nan_has_a_gradient_of_nan(reduce, expected, device):
    x = rl.tensor([[NAN, 1.0, 2.0], [1.0, 3.0, 3.0]], device=device, requires_grad=True)
    getattr(x, reduce)(dim=1).sum().backward()
    assert np.isnan(x.grad[0].cpu().numpy()).all() and x.grad[1].tolist() == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [([INF, 1.0, 0.0], [0.0, NAN, INF]), ([NAN, 1.0, 0.0], [0.0, NAN, NAN]), ([2.0, 0.0, 3.0], [0.0, 6.0, 0.0])],
)
def test_a_product_of_zero_and_infinity_has_the_gradient_of_pytorch(row, expected):
    x = rl.tensor(row, requires_grad=True)
    x.prod().backward()
    np.testing.assert_equal(x.grad.numpy(), np.array(expected, "f4"))


def test_a_power_of_zero_falls_steeply_at_minus_infinity():
    exponents = [-INF, -1.0, 0.0, 1.0, INF]
    for base in (0.0, rl.zeros(5)):
        x = rl.tensor(exponents, requires_grad=True)
        rl.pow(base, x).sum().backward()
        assert x.grad.tolist() == [-INF, -INF, 0.0, 0.0, 0.0]
