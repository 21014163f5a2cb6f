"""Learning rates that follow the steps of an optimizer."""

import copy
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
    assert followed(LinearLR(optimizer(), 1.0, 0.0, 2), 4) == pytest.approx([0.1, 0.05, 0.0, 0.0])
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


def test_schedules_lie_inside_of_each_other():
    one = optimizer()
    warm_up = SequentialLR(one, [LinearLR(one, 0.5, total_iters=2), StepLR(one, 1)], [2])
    whole = SequentialLR(one, [warm_up, CosineAnnealingLR(one, 2)], [4])
    assert followed(whole, 7) == pytest.approx([0.05, 0.075, 0.1, 0.01, 0.1, 0.05, 0.0])
    assert isinstance(whole, LRScheduler) and (whole.last_epoch, warm_up.last_epoch) == (7, 3)
    one = optimizer()
    assert followed(SequentialLR(one, [StepLR(one, 2)], []), 4) == pytest.approx([0.1, 0.1, 0.01, 0.01])
    lone = StepLR(one, 1, gamma=0.5)
    parts = SequentialLR(one, [lone, SequentialLR(one, [StepLR(one, 1), LinearLR(one, 0.5)], [1])], [2])
    assert followed(parts, 4) == pytest.approx([0.1, 0.05, 0.1, 0.05])


def sequence(lr=0.1, gamma=0.1):
    one = optimizer(lr)
    return SequentialLR(one, [LinearLR(one, 0.5, total_iters=2), StepLR(one, 1, gamma=gamma)], [3])


def test_the_state_goes_on():
    first, second = sequence(), sequence(0.7, 0.5)
    assert followed(first, 4) == pytest.approx([0.05, 0.075, 0.1, 0.1])
    second.load_state_dict(first.state_dict())
    assert second.get_last_lr() == [second.optimizer.param_groups[0]["lr"]] == pytest.approx([0.01])
    assert followed(second, 3) == followed(first, 3) == pytest.approx([0.01, 0.001, 0.0001])
    lone, other = StepLR(optimizer(), 2, gamma=0.5), StepLR(optimizer(0.7), 5)
    followed(lone, 3)
    state = lone.state_dict()
    followed(lone, 1)
    other.load_state_dict(state)
    assert (other.step_size, other.gamma, other.last_epoch) == (2, 0.5, 3), "options are part of the state"
    assert followed(other, 3) == pytest.approx([0.05, 0.025, 0.025])
    with_functions = LambdaLR(optimizer(), lambda step: 0.5**step)
    with_functions.load_state_dict({"base_lrs": [0.2], "last_epoch": 2, "_last_lr": [0.05]})
    assert with_functions.get_last_lr() == pytest.approx([0.05])
    one = optimizer()
    one.load_state_dict(first.optimizer.state_dict())
    assert one.param_groups[0]["lr"] == first.get_last_lr()[0] and one.param_groups[0]["initial_lr"] == 0.1
    resumed = StepLR(one, 1)
    assert resumed.get_last_lr() == pytest.approx([0.1]), "a new scheduler begins with the initial rate"


def test_a_state_that_does_not_fit_changes_nothing():
    one, state = sequence(), sequence(0.7).state_dict()
    before = one.state_dict()
    for wrong, says in (
        ({}, "expected the state of a SequentialLR"),
        (3, "expected the state of a SequentialLR.*got 3"),
        (StepLR(optimizer(), 1).state_dict(), "expected the state of a SequentialLR"),
        (state | {"base_lrs": [0.1, 0.2]}, "expected the rates of 1 groups"),
        (state | {"schedulers": state["schedulers"][:1]}, "expected 2 schedulers, got 1"),
        (state | {"schedulers": state["schedulers"][::-1]}, "expected the state of a LinearLR"),
        (state | {"schedulers": None}, "expected 2 schedulers, got None"),
    ):
        with pytest.raises(ValueError, match=rf"\[load_state_dict\] {says}"):
            one.load_state_dict(wrong)
        assert one.state_dict() == before and one.get_last_lr() == pytest.approx([0.05])


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda o: StepLR(o, 2), {"step_size": 0}),
        (lambda o: StepLR(o, 2), {"last_epoch": -1}),
        (lambda o: StepLR(o, 2), {"base_lrs": ["0.1"]}),
        (LinearLR, {"total_iters": 0}),
        (LinearLR, {"start_factor": 2.0}),
        (lambda o: CosineAnnealingLR(o, 2), {"T_max": 0}),
        (lambda o: SequentialLR(o, [LinearLR(o), StepLR(o, 2)], [5]), {"milestones": [-1]}),
    ],
)
def test_options_that_are_loaded_are_checked_as_those_that_are_given(make, options):
    one = make(optimizer())
    before, (name,) = one.state_dict(), options
    with pytest.raises((ValueError, TypeError), match=rf"^\[\w+LR\] ({name}|factors): expected"):
        one.load_state_dict(before | options)
    assert one.state_dict() == before


@pytest.mark.parametrize(
    ("make", "step"), [(sequence, 2000), (lambda: LambdaLR(optimizer(), lambda step: 1 / (3 - step)), 3)]
)
def test_a_state_whose_rate_fails_changes_nothing(make, step):
    one = make()
    before, rate = one.state_dict(), one.optimizer.param_groups[0]["lr"]
    state = copy.deepcopy(before) | {"last_epoch": step}
    for part in state.get("schedulers", ())[1:]:
        part["gamma"] = 10.0
    with pytest.raises((ValueError, ZeroDivisionError)):
        one.load_state_dict(state)
    assert one.state_dict() == before and one.optimizer.param_groups[0]["lr"] == rate


def test_an_optimizer_with_another_group_is_refused():
    one = StepLR(optimizer(), 1)
    one.optimizer.param_groups.append(dict(one.optimizer.param_groups[0]))
    with pytest.raises(ValueError, match=r"^\[StepLR\] optimizer: expected the 1 groups .* got 2; make a new one$"):
        one.step()
    assert one.last_epoch == 0 and one.optimizer.param_groups[0]["lr"] == 0.1


def test_a_step_that_failed_is_not_counted():
    one = LambdaLR(optimizer(), lambda step: [1.0, 0.5][step])
    one.step()
    for _ in range(2):
        with pytest.raises(IndexError):
            one.step()
    assert one.last_epoch == 1 and one.optimizer.param_groups[0]["lr"] == one.get_last_lr()[0]


@pytest.mark.parametrize(
    ("make", "step"),
    [
        (lambda one: StepLR(one, 1, gamma=10), 309),
        (lambda one: StepLR(one, 1, gamma=10.0), 309),
        (lambda one: LambdaLR(one, lambda step: 10.0**step), 309),
        (lambda one: LambdaLR(one, lambda step: math.nan if step == 3 else 1), 3),
        (lambda one: SequentialLR(one, [StepLR(one, 1), StepLR(one, 1, 10)], [1]), 309),
        (lambda one: CosineAnnealingLR(one, 5, 10**400), 0),
    ],
)
def test_a_rate_that_is_no_finite_number_is_a_sentence(make, step):
    def steps():
        scheduler = make(optimizer())
        for _ in range(400):
            scheduler.step()

    with pytest.raises(ValueError, match=rf"^\[\w+LR\] step: the rate after {step} steps is no finite number$"):
        steps()


def test_bad_input():
    one = optimizer()
    for wrong, says in (
        (lambda: StepLR(one, 0), r"\[StepLR\] step_size: expected 1 or more, got 0"),
        (lambda: CosineAnnealingLR(one, 0), r"\[CosineAnnealingLR\] T_max"),
        (lambda: LinearLR(one, 0.0), r"\[LinearLR\] factors"),
        (lambda: LinearLR(one, 0.5, 2.0), r"\[LinearLR\] factors"),
        (lambda: LinearLR(one, 0.5, total_iters=0), r"\[LinearLR\] total_iters: expected 1 or more"),
        (lambda: StepLR(one, 1, last_epoch=3), r"last_epoch: expected -1, got 3; go on with load_state_dict"),
        (lambda: StepLR(one, 1, math.inf), r"\[StepLR\] gamma: expected a finite number, got inf"),
        (lambda: CosineAnnealingLR(one, 5, math.nan), r"eta_min: expected a finite number, got nan"),
        (lambda: SequentialLR(one, [], []), "schedulers: expected at least one, got none"),
        (lambda: SequentialLR(one, [StepLR(one, 1)] * 2, []), "expected 1 rising steps"),
        (lambda: SequentialLR(one, [StepLR(one, 1)] * 3, [5, 2]), "expected 2 rising steps"),
        (lambda: SequentialLR(optimizer(), [StepLR(one, 1)], []), "schedulers of this optimizer"),
    ):
        with pytest.raises(ValueError, match=says):
            wrong()
    for wrong, says in (
        (lambda: StepLR([], 1), "expected an optimizer, got list"),
        (lambda: StepLR(one, 2.5), r"\[StepLR\] step_size: expected an integer, got 2.5"),
        (lambda: StepLR(one, 2, "a"), r"\[StepLR\] gamma: expected a number, got 'a'"),
        (lambda: CosineAnnealingLR(one, "a"), r"\[CosineAnnealingLR\] T_max: expected a number"),
        (lambda: LinearLR(one, "a"), r"\[LinearLR\] start_factor: expected a number"),
        (lambda: LambdaLR(one, 3), r"\[LambdaLR\] lr_lambda: expected functions of the step, got 3"),
        (lambda: LambdaLR(one, lambda step: None), r"\[LambdaLR\] lr_lambda: expected a number from it, got NoneType"),
        (lambda: SequentialLR(one, [3], []), r"\[SequentialLR\] schedulers: expected schedulers, got int"),
        (lambda: SequentialLR(one, StepLR(one, 1), []), r"schedulers: expected a list or tuple, got StepLR"),
        (lambda: SequentialLR(one, [StepLR(one, 1)] * 2, ["a"]), r"milestones: expected an integer, got 'a'"),
    ):
        with pytest.raises(TypeError, match=says):
            wrong()
    with pytest.raises(NotImplementedError, match="LRScheduler defines no rate"):
        LRScheduler(one)
