"""rope: its gradient, its layout, and what it means; the rungs are compared in test_ops."""

import numpy as np
import pytest

import rooflab as rl


def tables(length, size, device="cpu", dtype="float64"):
    angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, size, 2) / size)
    angles = np.concatenate([angles, angles], axis=-1)
    return [rl.tensor(f(angles), dtype=dtype, device=device) for f in (np.cos, np.sin)]


def test_scores_depend_on_the_distance_alone(device):
    """The purpose of rotary embedding: q at m and k at n give the same score as q at m + 5 and k at n + 5."""
    cos, sin = tables(32, 16, device)
    q, k = rl.randn(1, 1, 16, dtype="float64", device=device), rl.randn(1, 1, 16, dtype="float64", device=device)

    def score(m, n):
        return (rl.rope(q, cos[m : m + 1], sin[m : m + 1]) * rl.rope(k, cos[n : n + 1], sin[n : n + 1])).sum().item()

    assert score(7, 3) == pytest.approx(score(12, 8), rel=1e-12)
    assert abs(score(7, 3) - score(7, 4)) > 1e-3


@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (3, 5, 8)])
def test_gradient_is_the_transposed_rotation(shape, device):
    """(y, dy) = (x, dx) for every x, because y is linear in x. Here cosines and sines of the halves differ."""
    x = rl.randn(*shape, dtype="float64", device=device).requires_grad_()
    cos, sin = rl.randn(5, 8, dtype="float64", device=device), rl.randn(5, 8, dtype="float64", device=device)
    y = rl.rope(x, cos, sin)
    dy = rl.randn(*shape, dtype="float64", device=device)
    y.backward(dy)
    probe = rl.randn(*shape, dtype="float64", device=device)
    turned = rl.rope(probe, cos, sin)
    assert (probe * x.grad).sum().item() == pytest.approx((turned * dy).sum().item(), rel=1e-12)


def test_the_result_lies_like_x(device):
    x = rl.randn(2, 6, 4 * 8, device=device).reshape(2, 6, 4, 8).transpose(1, 2)
    y = rl.rope(x, *tables(6, 8, device, "float32"))
    assert y.strides == x.strides
    assert not y.is_contiguous()


def test_what_does_not_fit_is_refused():
    x, table = rl.zeros(2, 3, 5, 8), rl.zeros(5, 8)
    with pytest.raises(ValueError, match=r"\[rope\] x: expected an even D_h"):
        rl.rope(rl.zeros(3, 5, 7), rl.zeros(5, 7), rl.zeros(5, 7))
    with pytest.raises(ValueError, match=r"\[rope\] cos: expected \(L, D_h\) = \(5, 8\) or .*, got \(4, 8\)"):
        rl.rope(x, rl.zeros(4, 8), table)
    with pytest.raises(ValueError, match=r"\[rope\] sin: expected .* got \(3, 5, 8\)"):
        rl.rope(x, table, rl.zeros(3, 5, 8))
    with pytest.raises(ValueError, match=r"\[rope\] x: expected \(B, H, L, D_h\)"):
        rl.rope(rl.zeros(5, 8), table, table)
    with pytest.raises(ValueError, match="operands are float32 and float64"):
        rl.rope(x, table.to("float64"), table)
