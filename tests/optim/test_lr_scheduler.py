"""Learning rates that follow the steps of an optimiser."""

import math

import pytest

import rooflab as rl
from rooflab.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, SequentialLR, StepLR


def optimizer(lr=0.1, groups=1, **options):
    params = [{"params": [rl.ones(1, requires_grad=True)], "lr": lr * (i + 1)} for i in range(groups)]
    return rl.optim.AdamW(params, **options)


def followed(scheduler, steps):
    found = []
    for _ in range(steps):
        rates = [float(group["lr"]) for group in scheduler.optimizer.param_groups]
        assert rates == pytest.approx(scheduler.get_last_lr())
        found.append(rates[0])
        scheduler.step()
    return found


def test_rates_are_those_of_the_formulas():
    cosine = [0.01 + 0.09 * (1 + math.cos(math.pi * step / 4)) / 2 for step in range(6)]
    assert followed(CosineAnnealingLR(optimizer(), 4, eta_min=0.01), 6) == pytest.approx(cosine)
    assert followed(LambdaLR(optimizer(), lambda step: 0.5**step), 3) == pytest.approx([0.1, 0.05, 0.025])
    assert followed(StepLR(optimizer(), 2, gamma=0.1), 5) == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001])
    assert followed(LinearLR(optimizer(), 0.5, 1.0, 2), 4) == pytest.approx([0.05, 0.075, 0.1, 0.1])
    assert followed(LinearLR(optimizer(), 0.5, 1.0, 0), 2) == pytest.approx([0.1, 0.1])
    one = optimizer()
    parts = [LinearLR(one, 0.5, total_iters=2), CosineAnnealingLR(one, 2)]
    assert followed(SequentialLR(one, parts, [2]), 5) == pytest.approx([0.05, 0.075, 0.1, 0.05, 0.0])


def test_each_group_has_its_own_rate():
    one = optimizer(groups=2)
    scheduler = LambdaLR(one, [lambda step: 1.0, lambda step: 0.5**step])
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.1, 0.1]) == [group["lr"] for group in one.param_groups]
    with pytest.raises(ValueError, match="expected 2 functions, got 1"):
        LambdaLR(one, [lambda step: 1.0])


def test_a_rate_on_the_device_is_written_in_place():
    rate = rl.full((), 0.1)
    scheduler = StepLR(optimizer(lr=1.0, capturable=True), 1, gamma=0.5)
    scheduler.optimizer.param_groups[0]["lr"] = rate
    scheduler.step()
    assert scheduler.optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.5


def test_the_state_goes_on():
    first, second = (SequentialLR(one, [LinearLR(one), StepLR(one, 1)], [3]) for one in (optimizer(), optimizer()))
    followed(first, 4)
    second.load_state_dict(first.state_dict())
    assert followed(first, 3) == followed(second, 3)
    lone = CosineAnnealingLR(optimizer(), 5)
    followed(lone, 2)
    other = CosineAnnealingLR(optimizer(lr=0.7), 5)
    other.load_state_dict(lone.state_dict())
    assert other.get_last_lr() == lone.get_last_lr()
    state = lone.optimizer.state_dict()
    optimizer().load_state_dict(state)
    with pytest.raises(ValueError, match="expected the rates of 1 groups"):
        other.load_state_dict({"last_epoch": 1, "base_lrs": [0.1, 0.2]})


def test_bad_input():
    one = optimizer()
    for wrong, says in (
        (lambda: StepLR(one, 0), r"\[StepLR\] step_size"),
        (lambda: CosineAnnealingLR(one, 0), r"\[CosineAnnealingLR\] T_max"),
        (lambda: LinearLR(one, 0.0), r"\[LinearLR\] factors"),
        (lambda: LinearLR(one, 0.5, 2.0), r"\[LinearLR\] factors"),
        (lambda: StepLR(one, 1, last_epoch=3), r"last_epoch: expected -1, got 3; go on with load_state_dict"),
        (lambda: SequentialLR(one, [StepLR(one, 1)] * 2, []), "expected 1 rising steps"),
        (lambda: SequentialLR(one, [StepLR(one, 1)] * 3, [5, 2]), "expected 2 rising steps"),
        (lambda: SequentialLR(optimizer(), [StepLR(one, 1)], []), "schedulers of this optimizer"),
    ):
        with pytest.raises(ValueError, match=says):
            wrong()
    with pytest.raises(TypeError, match="expected an optimizer, got list"):
        StepLR([], 1)
    with pytest.raises(NotImplementedError, match="LRScheduler defines no rate"):
        LRScheduler(one)
