"""The scale divides a gradient once, and again once it is new."""

import copy
import math
import pickle

import pytest

import rooflab as rl
from rooflab.optim import AdamW


def test_a_tensor_of_two_optimizers_is_divided_once():
    w = rl.ones(1, requires_grad=True)
    first, second, scaler = AdamW([w]), AdamW([w]), rl.GradScaler(init_scale=8.0)
    for _ in range(2):
        scaler.scale(w.sum()).backward()
        scaler.unscale_(first)
        for optimizer in (first, second):
            scaler.step(optimizer)
            assert w.grad.tolist() == [1.0]
        scaler.update(), first.zero_grad()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_tensor_of_two_optimizers_with_a_backward_for_each_is_divided_twice(set_to_none):
    w = rl.ones(1, requires_grad=True)
    scaler = rl.GradScaler(init_scale=8.0)
    for optimizer in (AdamW([w]), AdamW([w])):
        optimizer.zero_grad(set_to_none)
        scaler.scale((w * 2).sum()).backward()
        scaler.step(optimizer)
        assert w.grad.tolist() == [2.0]


def test_gradients_that_are_made_anew_after_a_division_are_divided():
    w, scaler = rl.ones(1, requires_grad=True), rl.GradScaler(init_scale=8.0)
    optimizer = AdamW([w])
    for factor in (math.inf, 1.0, 3.0):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.unscale_(optimizer)
    (w * 2).sum().backward()  # added to a gradient that is divided: it needs no scale
    assert scaler.step(optimizer) is True and w.grad.tolist() == [5.0]
    scaler.update()
    assert scaler.get_scale() == 8.0
    with pytest.raises(RuntimeError, match="divided already"):
        scaler.unscale_(optimizer), scaler.unscale_(optimizer)


def test_a_gradient_that_is_assigned_after_a_division_is_divided_for_another_optimizer():
    w = rl.ones(1, requires_grad=True)
    first, second, scaler = AdamW([w]), AdamW([w]), rl.GradScaler(init_scale=8.0)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(first)
    w.grad = rl.full((1,), 8.0)
    scaler.unscale_(second)
    assert w.grad.tolist() == [1.0]


def test_a_clipped_gradient_that_is_assigned_is_not_divided_again():
    a, b = rl.ones(1, requires_grad=True), rl.ones(1, requires_grad=True)
    optimizer, scaler = AdamW([a, b]), rl.GradScaler(init_scale=8.0)
    scaler.scale((a + b).sum()).backward()
    scaler.unscale_(optimizer)
    a.grad = a.grad * 0.5
    (a * 2).sum().backward()  # added to it
    b.grad = None
    scaler.scale(b.sum()).backward()  # new, so the optimizer's gradients are divided again, each where that is due
    assert scaler.step(optimizer) is True
    assert (a.grad.tolist(), b.grad.tolist()) == ([2.5], [1.0])


def test_a_divided_gradient_that_is_put_back_after_another_backward_is_not_divided_again():
    w = rl.ones(1, requires_grad=True)
    first, second, scaler = AdamW([w]), AdamW([w]), rl.GradScaler(init_scale=8.0)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(first)
    kept, w.grad = w.grad, None
    scaler.scale((w * 3).sum()).backward()
    w.grad = kept
    for optimizer in (first, second):
        scaler.step(optimizer)
        assert w.grad.tolist() == [1.0]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda scaler: pickle.loads(pickle.dumps(scaler))])
def test_a_scaler_is_copied_and_pickled_between_a_division_and_the_update(copied):
    w, scaler = rl.ones(1, requires_grad=True), rl.GradScaler(init_scale=8.0)
    optimizer = AdamW([w])
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    other = copied(scaler)
    assert other.step(optimizer) is True and w.grad.tolist() == [1.0]
    other.update(), optimizer.zero_grad()
    scaler.scale((w * 2).sum()).backward()  # noticed by a hook that the copy's update leaves in place
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [2.0]
