"""What AdamW refuses, it refuses before anything has changed."""

import math

import pytest

import rooflab as rl
from rooflab.optim import AdamW


def stepped(**options):
    params = [rl.ones(1, requires_grad=True) for _ in range(2)]
    optimizer = AdamW([{"params": [param]} for param in params], **options)
    for param in params:
        param.grad = rl.ones(1)
    optimizer.step()
    return optimizer, params


def test_a_bad_option_of_any_group_stops_the_step_of_all():
    optimizer, params = stepped()
    before = [param.tolist() for param in params]
    optimizer.param_groups[1]["eps"] = -1.0
    with pytest.raises(ValueError, match="eps"):
        optimizer.step()
    assert [param.tolist() for param in params] == before


@pytest.mark.parametrize("group", [{}, {"params": [rl.ones(1, requires_grad=True)]}])
def test_a_group_without_options_stops_the_step_of_all(group):
    optimizer, params = stepped()
    before = [param.tolist() for param in params]
    optimizer.param_groups.append(group)
    with pytest.raises(ValueError, match=r"^\[AdamW\] param_groups: a group has no (params|lr); give all groups to"):
        optimizer.step()
    assert [param.tolist() for param in params] == before


def test_a_number_of_steps_that_is_shared_in_any_group_stops_the_step_of_all():
    optimizer, params = stepped(capturable=True)
    optimizer.param_groups[1]["params"].append(rl.ones(1, requires_grad=True))
    optimizer.state[optimizer.param_groups[1]["params"][1]] = optimizer.state[params[1]]
    before = [param.tolist() for param in params]
    with pytest.raises(ValueError, match="1 tensors have no gradient"):
        optimizer.step()
    assert [param.tolist() for param in params] == before
    assert [entry["step"].item() for entry in optimizer.state.values()] == [1, 1, 1]


def test_a_group_that_is_not_capturable_any_more_counts_on_the_host():
    """Its tensors then share no number, so one may lack a gradient."""
    params = [rl.ones(1, requires_grad=True) for _ in range(2)]
    optimizer = AdamW(params, capturable=True)
    for gradients in ([1.0, 1.0], [1.0, None], [1.0, 1.0]):
        for param, gradient in zip(params, gradients, strict=True):
            param.grad = rl.tensor([gradient]) if gradient else None
        optimizer.step()
        optimizer.param_groups[0]["capturable"] = False
    assert [optimizer.state[param]["step"] for param in params] == [3, 2]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda state: {str(place): entry for place, entry in state.items()}, r"got '0'; write {int\(place\): entry"),
        (lambda state: state | {9: state[0]}, "got 9$"),
    ],
)
def test_moments_of_no_tensor_are_refused(change, says):
    """They were left out, and the training began anew in silence."""
    optimizer, _ = stepped()
    state = optimizer.state_dict()
    before = {param: entry["exp_avg"].tolist() for param, entry in optimizer.state.items()}
    with pytest.raises(ValueError, match=rf"^\[load_state_dict\] state: expected the numbers of tensors, {says}"):
        optimizer.load_state_dict(state | {"state": change(state["state"])})
    assert {param: entry["exp_avg"].tolist() for param, entry in optimizer.state.items()} == before


@pytest.mark.parametrize("capturable", [False, True])
def test_moments_of_another_dtype_stop_the_step_of_all(capturable):
    """As after a change of dtype. The step may then be taken again, and no tensor has moved twice."""
    optimizer, params = stepped(capturable=capturable)
    before = params[0].tolist()
    params[1].data = params[1].data.to("bfloat16")
    params[1].grad = rl.ones(1, dtype="bfloat16")
    with pytest.raises(ValueError, match=r"^\[adamw\] operands are bfloat16 and float32"):
        optimizer.step()
    assert params[0].tolist() == before
    assert [int(optimizer.state[param]["step"]) for param in params] == [1, 1]


@pytest.mark.parametrize(
    "entry",
    [
        *({"step": step} for step in (1.7, True, "3", None, 1e300, 10**400, [1], rl.tensor(True))),
        *({"exp_avg_sq": squares} for squares in (-rl.ones(1), rl.full((1,), math.nan), rl.ones(1, dtype="int64"))),
        {"exp_avg": rl.ones(1, dtype="bool")},
    ],
)
def test_numbers_that_no_step_made_are_refused(entry):
    optimizer, _ = stepped()
    state = optimizer.state_dict()
    before = repr(state)
    with pytest.raises(ValueError, match=rf"^\[load_state_dict\] {next(iter(entry))} of 1: expected"):
        optimizer.load_state_dict(state | {"state": {0: state["state"][0] | {"step": 7}, 1: state["state"][1] | entry}})
    assert repr(optimizer.state_dict()) == before


def test_a_rate_of_several_numbers_is_refused_before_any_group_has_another():
    rates = [rl.tensor(rate, dtype="float64") for rate in (0.1, 0.2)]
    groups = [{"params": [rl.ones(1, requires_grad=True)], "lr": rate} for rate in rates]
    optimizer = AdamW(groups, capturable=True)
    state = optimizer.state_dict()
    for group, rate in zip(state["param_groups"], (rl.tensor(0.5), rl.ones(2)), strict=True):
        group["lr"] = rate
    with pytest.raises(ValueError, match=r"lr: expected a number or a tensor of shape \(\), got \(2,\)"):
        optimizer.load_state_dict(state)
    assert [rate.item() for rate in rates] == [0.1, 0.2]


def test_moments_that_are_no_tensors_are_refused_whole():
    optimizer, params = stepped()
    other = AdamW([{"params": [param]} for param in params])
    state = optimizer.state_dict()
    state["state"][1]["exp_avg_sq"] = state["state"][1]["exp_avg_sq"].numpy()
    told = r"^\[load_state_dict\] exp_avg_sq of 1: expected a rooflab tensor, got <class 'numpy.ndarray'>$"
    with pytest.raises(TypeError, match=told):
        other.load_state_dict(state)
    assert other.state == {}
