"""Gradients where a formula would be infinity times 0: powers of 0, and gelu far from 0."""

import pytest

import rooflab as rl


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


@pytest.mark.parametrize(("x", "expected"), [(1e20, 1.0), (-1e20, 0.0), (40.0, 1.0), (-40.0, 0.0), (0.0, 0.5)])
def test_gelu_far_from_zero(x, expected):
    """1e20 squared is infinite in float32."""
    assert gradients(rl.gelu, x, dtype="float32") == pytest.approx([expected], abs=1e-30)
