"""What is loaded into a module is checked as a whole, before anything is written."""

import pytest

import rooflab as rl


def test_a_tensor_without_numbers_is_refused_before_others_are_written():
    model = rl.nn.Linear(2, 2)
    before, meta = model.weight.tolist(), rl.meta("H200")
    state = {"weight": rl.ones(2, 2), "bias": rl.empty(2, device=meta)}
    with pytest.raises(ValueError, match=r"^\[load_state_dict\] without numbers, on meta: bias$"):
        model.load_state_dict(state)
    assert model.weight.tolist() == before
    model.load_state_dict(state | {"bias": rl.ones(2)})
    assert model.weight.tolist() == [[1, 1], [1, 1]]
    counted = rl.nn.Linear(2, 2, device=meta)
    counted.load_state_dict(model.state_dict()), counted.load_state_dict(counted.state_dict())


def test_a_parameter_that_cannot_be_written_to_is_refused_before_others_are_written():
    model = rl.nn.Linear(2, 2)
    model.bias = rl.ones(1).expand(2).requires_grad_()
    before = model.weight.tolist()
    with pytest.raises(ValueError, match=r"^\[load_state_dict\] expanded in the module: bias$"):
        model.load_state_dict({"weight": rl.ones(2, 2), "bias": rl.zeros(2)})
    assert model.weight.tolist() == before
