"""rms_norm_add: its gradients through both results; the rungs are compared in test_ops."""

import numpy as np
import pytest

import rooflab as rl


def leaves(device):
    rng = np.random.default_rng(0)
    shapes = (3, 7, 24), (3, 7, 24), (24,), (24,)
    return [rl.tensor(rng.standard_normal(s), device=device).requires_grad_() for s in shapes]


@pytest.mark.parametrize("zero_centered", [False, True])
def test_gradients_are_those_of_its_parts(zero_centered, device):
    ours, parts = leaves(device), leaves(device)
    x, residual, weight, next_weight = ours
    h, y = rl.rms_norm_add(x, residual, weight, next_weight, 1e-5, zero_centered)
    (h.sin() + y.cos()).sum().backward()
    x, residual, weight, next_weight = parts
    h = residual + rl.rms_norm(x, weight, 1e-5, zero_centered)
    (h.sin() + rl.rms_norm(h, next_weight, 1e-5, zero_centered).cos()).sum().backward()
    for a, b in zip(ours, parts, strict=True):
        assert a.grad is not None
        assert a.grad.abs().max().item() > 0.01
        np.testing.assert_allclose(a.grad.cpu().numpy(), b.grad.cpu().numpy(), rtol=1e-12, atol=1e-14)


def test_it_is_one_launch_and_moves_what_it_must(device):
    x, residual, weight = rl.ones(4, 64, device=device), rl.ones(4, 64, device=device), rl.ones(64, device=device)
    with rl.count() as counted:
        rl.rms_norm_add(x, residual, weight, weight)
    assert (counted.ops, counted.launches) == (1, 1)
    assert counted.bytes_read == (2 * 4 * 64 + 64) * 4
    assert counted.bytes_written == 2 * 4 * 64 * 4


def test_what_does_not_fit_is_refused():
    x, weight = rl.ones(2, 4), rl.ones(4)
    with pytest.raises(ValueError, match=r"\[rms_norm_add\] residual: expected the shape of x \(2, 4\), got \(4,\)"):
        rl.rms_norm_add(x, rl.ones(4), weight)
    with pytest.raises(ValueError, match=r"\[rms_norm_add\] next_weight: expected \(D=4\), got \(3,\)"):
        rl.rms_norm_add(x, x, weight, rl.ones(3))
