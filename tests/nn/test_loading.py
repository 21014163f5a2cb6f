"""What is loaded into a module is checked as a whole, before anything is written."""

from pathlib import Path

import numpy as np
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
    with pytest.warns(UserWarning, match=r"^\[load_state_dict\] on meta in the module, .*: weight, bias$") as warned:
        counted.load_state_dict(model.state_dict()), counted.load_state_dict(counted.state_dict())
    assert [Path(each.filename).name for each in warned] == ["test_loading.py"]


def test_a_parameter_that_cannot_be_written_to_is_refused_before_others_are_written():
    model = rl.nn.Linear(2, 2)
    model.bias = rl.ones(1).expand(2).requires_grad_()
    before = model.weight.tolist()
    with pytest.raises(ValueError, match=r"^\[load_state_dict\] expanded in the module: bias$"):
        model.load_state_dict({"weight": rl.ones(2, 2), "bias": rl.zeros(2)})
    assert model.weight.tolist() == before


def test_a_buffer_whose_elements_share_memory_is_refused_before_others_are_written():
    """They need not be expanded: rows of a matrix may overlap."""
    model = rl.nn.Linear(2, 2)
    before, rows = model.weight.tolist(), np.lib.stride_tricks.as_strided(np.ones(4, np.float32), (3, 2), (4, 4))
    model.register_buffer("rows", rl.from_numpy(rows))
    with pytest.raises(ValueError, match=r"^\[load_state_dict\] expanded in the module: rows$"):
        model.load_state_dict(model.state_dict() | {"weight": rl.ones(2, 2), "rows": rl.zeros(3, 2)})
    assert model.weight.tolist() == before


def test_tensors_of_the_module_may_change_places():
    model = rl.nn.Sequential(rl.nn.Linear(1, 2), rl.nn.Linear(1, 2))
    names = list(state := model.state_dict())
    before = [state[name].tolist() for name in names]
    model.load_state_dict({name: state[other] for name, other in zip(names, names[2:] + names[:2], strict=True)})
    assert [state[name].tolist() for name in names] == before[2:] + before[:2]


def test_a_module_moves_as_a_whole_or_not_at_all():
    model = rl.nn.Sequential(rl.nn.Linear(2, 2), rl.nn.Linear(2, 2, device="meta"))
    with pytest.raises(ValueError, match="on meta:cpu has no data to copy to cpu"):
        model.to("cpu", "bfloat16")
    assert {str(parameter.dtype) for parameter in model.parameters()} == {"float32"}
