"""AdamW against NumPy in float64: PyTorch's order of decay, groups, state, and what it refuses."""

import copy
import math

import numpy as np
import pytest

import rooflab as rl
from rooflab.optim import AdamW
from rooflab.testing import assert_close

SHAPES = [(3, 5), (), (7,), (2, 3, 4)]


def reference(x, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, decay="before"):
    """The parameter after each gradient, as PyTorch's documentation of AdamW writes the algorithm."""
    m, v, found = np.zeros_like(x), np.zeros_like(x), []
    for t, g in enumerate(gradients, start=1):
        if decay == "before":
            x = x - lr * weight_decay * x
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        x = x - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
        if decay == "after":
            x = x - lr * weight_decay * x
        found.append(x)
    return found


def drawn(seed, steps, device="cpu", dtype="float64"):
    """Parameters, and for each step their gradients as arrays; two of a hundred elements have no gradient at all."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape) for shape in SHAPES]
    gradients = [[rng.standard_normal(shape) * (rng.random(shape) > 0.02) for shape in SHAPES] for _ in range(steps)]
    params = [rl.tensor(array, dtype=dtype, device=device, requires_grad=True) for array in arrays]
    return arrays, gradients, params


def take(optimizer, params, gradients):
    for param, gradient in zip(params, gradients, strict=True):
        param.grad = rl.tensor(gradient, dtype=param.dtype, device=param.device)
    optimizer.step()


def test_three_steps_have_known_answers():
    w = rl.tensor([1.0], dtype="float64", requires_grad=True)
    optimizer = AdamW([w], lr=0.01, weight_decay=0.1)
    for gradient in (0.1, -0.2, 0.3):
        take(optimizer, [w], [[gradient]])
    assert w.item() == pytest.approx(0.98724798, abs=1e-7)


OPTIONS = [
    {},
    {"lr": 0.1, "weight_decay": 0.0},
    {"lr": 0.03, "betas": (0.5, 0.8), "eps": 1e-2, "weight_decay": 0.5},
    {"lr": 0.01, "betas": (0.0, 0.0), "weight_decay": 0.1},
]
AFTER = {"lr": 0.1, "weight_decay": 0.5, "decay": "after"}


@pytest.mark.parametrize("options", [*OPTIONS, AFTER], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-6)])
def test_it_is_the_reference(options, dtype, tolerance, device):
    arrays, gradients, params = drawn(1, 6, device, dtype)
    optimizer = AdamW(params, **options)
    expected = [
        reference(array, each, **options) for array, each in zip(arrays, zip(*gradients, strict=True), strict=True)
    ]
    for step, each in enumerate(gradients):
        take(optimizer, params, each)
        for param, right in zip(params, expected, strict=True):
            assert_close(param, right[step], rtol=tolerance, atol=tolerance, name=f"{param.shape} after {step + 1}")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_keeps_its_dtype(dtype):
    w = rl.tensor([1.0, -2.0, 4.0], dtype=dtype, requires_grad=True)
    optimizer = AdamW([w], lr=0.125, eps=1e-3, weight_decay=0.0)
    take(optimizer, [w], [[1.0, -1.0, 2.0]])
    assert w.dtype == dtype and optimizer.state[w]["exp_avg"].dtype == dtype
    assert_close(w, [0.875, -1.875, 3.875], rtol=0.01, name="w")


def test_a_step_is_one_launch_for_what_is_alike():
    """Float32 tensors of the same age share a launch; one that is younger, or of another dtype, needs its own."""
    _, gradients, params = drawn(9, 2, dtype="float32")
    late, other = rl.ones(2, requires_grad=True), rl.ones(2, dtype="float64", requires_grad=True)
    optimizer = AdamW([*params, late, other])
    for launches in (2, 3):
        optimizer.zero_grad()
        for param, gradient in zip(params, gradients[0], strict=True):
            param.grad = rl.tensor(gradient, dtype="float32")
        other.grad = rl.ones(2, dtype="float64")
        late.grad = None if launches == 2 else rl.ones(2)
        if launches == 2:  # the moments, filled with zeros
            for param in (*params, other):
                optimizer.state[param] = optimizer._state_of(param)
        elif launches == 3:
            optimizer.state[late] = optimizer._state_of(late)
        with rl.count() as c:
            optimizer.step()
        assert c.launches == c.ops == launches and list(c.by_op) == ["adamw"]
    assert optimizer.state[late]["step"] == 1 and optimizer.state[other]["step"] == 2


def test_the_learning_rate_may_change_between_steps():
    _, gradients, params = drawn(2, 2)
    optimizer = AdamW(params, lr=0.1)
    take(optimizer, params, gradients[0])
    before = [param.tolist() for param in params]
    optimizer.param_groups[0]["lr"] = 0.0
    take(optimizer, params, gradients[1])
    for param, right in zip(params, before, strict=True):
        assert param.tolist() == right
    assert optimizer.state[params[0]]["step"] == 2


def test_groups_have_options_of_their_own():
    arrays, gradients, params = drawn(3, 3)
    own = {"lr": 0.1, "weight_decay": 0.0}
    optimizer = AdamW([{"params": params[:1]}, {"params": iter(params[1:]), **own}], lr=0.02, eps=1e-3)
    for each in gradients:
        take(optimizer, params, each)
    for place, (param, array) in enumerate(zip(params, arrays, strict=True)):
        options = {"lr": 0.02, "eps": 1e-3} | (own if place else {})
        right = reference(array, [each[place] for each in gradients], **options)[-1]
        assert_close(param, right, rtol=1e-12, name=f"tensor {place}")
    assert repr(optimizer).startswith("AdamW(1 tensors, lr=0.02") and "3 tensors, lr=0.1" in repr(optimizer)


def test_tensors_without_gradient_stay_and_have_no_state():
    used, unused = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    frozen = rl.ones(2)
    optimizer = AdamW([used, unused, frozen], lr=0.1, weight_decay=0.5)
    take(optimizer, [used], [[1.0, 1.0]])
    assert unused.tolist() == frozen.tolist() == [1.0, 1.0] and used.tolist() != [1.0, 1.0]
    assert list(optimizer.state) == [used]


def test_what_is_written_is_not_recorded():
    w = rl.ones(3, requires_grad=True)
    optimizer = AdamW([w])
    (w * w).sum().backward()
    optimizer.step()
    assert w.is_leaf and w.requires_grad and not optimizer.state[w]["exp_avg"].requires_grad
    optimizer.zero_grad()
    assert w.grad is None


def test_a_model_learns():
    rng = np.random.default_rng(0)
    x, right = rng.standard_normal((64, 3)), np.array([[1.0], [-2.0], [0.5]])
    w = rl.zeros(3, 1, dtype="float64", requires_grad=True)
    optimizer = AdamW([w], lr=0.05, weight_decay=0.0)
    for _ in range(300):
        optimizer.zero_grad()
        error = rl.tensor(x) @ w - rl.tensor(x @ right)
        (error * error).mean().backward()
        optimizer.step()
    assert_close(w, right, atol=1e-2, name="w")


# State


def test_a_run_goes_on_from_its_state():
    _, gradients, params = drawn(4, 6)
    optimizer = AdamW(params, lr=0.05, betas=(0.8, 0.9))
    for each in gradients[:3]:
        take(optimizer, params, each)
    copies = [param.detach().clone().requires_grad_() for param in params]
    later = AdamW(copies, lr=1.0)
    later.load_state_dict(optimizer.state_dict())
    for each in gradients[3:]:
        take(optimizer, params, each)
        take(later, copies, each)
    for ours, right in zip(copies, params, strict=True):
        assert ours.tolist() == right.tolist()
    assert later.param_groups[0]["lr"] == 0.05 and later.state[copies[0]]["step"] == 6


def test_state_is_laid_out_as_pytorchs():
    _, gradients, params = drawn(5, 1)
    optimizer = AdamW([{"params": params[:2]}, {"params": params[2:], "lr": 0.5}])
    assert optimizer.state_dict()["state"] == {}
    take(optimizer, params, gradients[0])
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0, 1], [2, 3]]
    assert state["param_groups"][1]["lr"] == 0.5 and state["state"].keys() == {0, 1, 2, 3}
    assert state["state"][3].keys() == {"step", "exp_avg", "exp_avg_sq"}
    assert_close(state["state"][3]["exp_avg"], 0.1 * gradients[0][3], name="the first moment")
    assert_close(state["state"][3]["exp_avg_sq"], 0.001 * gradients[0][3] ** 2, name="the second moment")


def test_a_state_that_was_loaded_shares_no_memory():
    _, gradients, params = drawn(6, 1)
    first = AdamW(params)
    take(first, params, gradients[0])
    state = first.state_dict()
    second = AdamW(params)
    second.load_state_dict(state)
    second.state[params[0]]["exp_avg"].fill_(7.0)
    second.param_groups[0]["lr"] = 9.0
    assert first.state[params[0]]["exp_avg"].amax().item() < 7.0
    assert first.param_groups[0]["lr"] == state["param_groups"][0]["lr"] == 1e-3


def test_a_state_that_was_taken_is_of_one_moment():
    """Numbers and moments go on with the optimizer, as in PyTorch; a copy of them stays what it was."""
    _, gradients, params = drawn(9, 3)
    optimizer = AdamW(params)
    take(optimizer, params, gradients[0])
    state = optimizer.state_dict()
    kept = copy.deepcopy(state)
    take(optimizer, params, gradients[1])
    assert state["state"][0]["step"] == 2 and kept["state"][0]["step"] == 1
    later = AdamW([param.detach().clone().requires_grad_() for param in params])
    later.load_state_dict(state)
    for each in (optimizer, later):
        take(each, each.param_groups[0]["params"], gradients[2])
    for param, other in zip(params, later.param_groups[0]["params"], strict=True):
        np.testing.assert_array_equal(param.detach().numpy(), other.detach().numpy())
    state = optimizer.state_dict()
    optimizer.load_state_dict(kept)
    assert state["state"][0]["step"] == 1  # as its moments are, whose memory stays
    np.testing.assert_array_equal(state["state"][0]["exp_avg"].numpy(), kept["state"][0]["exp_avg"].numpy())


def test_options_that_were_taken_stay_what_they_were():
    _, gradients, params = drawn(7, 2)
    rate = rl.tensor(0.5, dtype="float64")
    optimizer = AdamW(params, lr=rate, capturable=True)
    plain = AdamW([rl.ones(2, requires_grad=True)], betas=[0.5, 0.6])
    take(optimizer, params, gradients[0])
    state, options = optimizer.state_dict(), plain.state_dict()["param_groups"][0]
    rate.fill_(0.25)
    plain.param_groups[0]["betas"] = (0.1, 0.2)
    assert state["param_groups"][0]["lr"].item() == 0.5 and list(options["betas"]) == [0.5, 0.6]


def test_a_state_without_an_option_leaves_it_as_it_is():
    """PyTorch's AdamW has no `decay`."""
    optimizer = AdamW([rl.ones(2, requires_grad=True)], decay="after")
    state = optimizer.state_dict()
    del state["param_groups"][0]["decay"]
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["decay"] == "after"


def test_a_state_of_other_tensors_is_refused_whole():
    _, gradients, params = drawn(7, 1)
    optimizer = AdamW(params, lr=0.25)
    take(optimizer, params, gradients[0])
    state = optimizer.state_dict()
    other = AdamW(params[:2])
    with pytest.raises(ValueError, match=r"\[load_state_dict\] expected what state_dict\(\) gives, got no 'state'"):
        other.load_state_dict({"param_groups": []})
    with pytest.raises(ValueError, match=r"\[load_state_dict\] expected groups of 2 tensors, got 4"):
        other.load_state_dict(state)
    turned = AdamW(params[::-1])
    with pytest.raises(ValueError, match=r"exp_avg of 0: expected \(2, 3, 4\), got \(3, 5\)"):
        turned.load_state_dict(state)
    assert turned.state == {} and turned.param_groups[0]["lr"] == 1e-3
    state["param_groups"][0]["eps"] = -1.0
    with pytest.raises(ValueError, match="eps"):
        AdamW(params).load_state_dict(state)


def doubled(state):
    return state | {"param_groups": [group | {"params": [0] * len(group["params"])} for group in state["param_groups"]]}


@pytest.mark.parametrize(
    ("error", "says", "change"),
    [
        (TypeError, "expected what state_dict.. gives, got NoneType", lambda state: None),
        (ValueError, "a dict 'state', and groups with a list 'params'", lambda state: state | {"state": None}),
        (ValueError, "a dict 'state', and groups with a list 'params'", lambda state: state | {"param_groups": [{}]}),
        (ValueError, "a list 'params'", lambda state: state | {"param_groups": [{"params": None}]}),
        (ValueError, "number of each tensor once, got", doubled),
        (ValueError, "state of 0: expected step, exp_avg and exp_avg_sq", lambda state: state | {"state": {0: {}}}),
        (
            ValueError,
            "step of 0: expected a whole number from 0 to 2.53, got nan",
            lambda state: state["state"][0].update(step=math.nan),
        ),
    ],
)
def test_what_is_no_state_is_refused(error, says, change):
    _, gradients, params = drawn(7, 1)
    optimizer = AdamW(params)
    take(optimizer, params, gradients[0])
    state = optimizer.state_dict()
    changed = change(state)
    with pytest.raises(error, match=rf"^\[load_state_dict\] .*{says}"):
        optimizer.load_state_dict(state if "nan" in says else changed)


def test_a_state_whose_entries_are_swapped_is_loaded_as_it_is():
    params = [rl.ones(3, requires_grad=True), rl.zeros(3, requires_grad=True)]
    optimizer = AdamW(params)
    take(optimizer, params, [np.full(3, 1.0, np.float32), np.full(3, 2.0, np.float32)])
    moments = [optimizer.state[param]["exp_avg"].tolist() for param in params]
    state = optimizer.state_dict()
    state["state"] = {0: state["state"][1], 1: state["state"][0]}
    optimizer.load_state_dict(state)
    assert [optimizer.state[param]["exp_avg"].tolist() for param in params] == moments[::-1] != moments


# What it refuses

W = rl.ones(2, requires_grad=True)
BAD = {
    "nothing": ([], {}, r"\[AdamW\] params: expected at least one tensor, got none"),
    "empty groups": ([{"params": []}], {}, "at least one tensor, got none"),
    "twice": ([W, W], {}, r"params\[1\]: this tensor is there twice"),
    "in two groups": ([{"params": [W]}, {"params": W}], {}, "there twice"),
    "no gradients": ([rl.ones(2)], {}, "expected tensors that require grad, got none"),
    "a result": ([W * 2], {}, r"params\[0\]: expected a leaf"),
    "whole numbers": ([rl.arange(3)], {}, "expected a floating dtype, got int64"),
    "negative lr": ([W], {"lr": -1e-3}, r"\[AdamW\] lr: expected a number that is finite and not negative, got -0.001"),
    "lr is NaN": ([W], {"lr": float("nan")}, "lr: .* got nan"),
    "lr is huge": ([W], {"lr": 10**400}, "lr: expected a number that is finite"),
    "beta of one": ([W], {"betas": (0.9, 1.0)}, r"betas\[1\]: expected a number that is at least 0 and below 1"),
    "negative beta": ([W], {"betas": (-0.1, 0.9)}, r"betas\[0\]"),
    "negative eps": ([W], {"eps": -1e-8}, "eps"),
    "negative decay": ([W], {"weight_decay": -0.1}, "weight_decay"),
    "another decay": ([W], {"decay": "never"}, r"\[AdamW\] decay: expected 'before' or 'after', got 'never'"),
    "another option": ([{"params": [W], "momentum": 0.9}], {}, "got 'momentum'"),
}


@pytest.mark.parametrize(("params", "options", "says"), BAD.values(), ids=BAD)
def test_bad_values_are_refused(params, options, says):
    with pytest.raises(ValueError, match=says):
        AdamW(params, **options)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (W, "expected a list of tensors, got one Tensor"),
        ({"params": [W]}, "got one dict"),
        ([W, 3.0], r"params\[1\]: expected a tensor, got float"),
        (None, r"\[AdamW\] params: expected a list of tensors, got NoneType"),
        ([{"params": 5}], r"\[AdamW\] params: expected a list of tensors, got int"),
        ([{"lr": 0.1}], "dicts with their tensors in 'params'"),
    ],
)
def test_bad_types_are_refused(params, says):
    with pytest.raises(TypeError, match=says):
        AdamW(params)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lr": "a"}, r"\[AdamW\] lr: expected a number, got 'a'"),
        ({"lr": True}, r"\[AdamW\] lr: expected a number, got True"),
        ({"betas": 0.9}, r"\[AdamW\] betas: expected two numbers, got 0.9"),
        ({"betas": (0.9, None)}, r"\[AdamW\] betas\[1\]: expected a number, got None"),
    ],
)
def test_options_that_are_no_numbers_are_refused(options, says):
    with pytest.raises(TypeError, match=says):
        AdamW([W], **options)


def test_a_learning_rate_that_went_bad_stops_the_step():
    w = rl.ones(1, requires_grad=True)
    optimizer = AdamW([w])
    optimizer.param_groups[0]["lr"] = float("nan")
    with pytest.raises(ValueError, match="lr"):
        take(optimizer, [w], [[1.0]])
    assert w.tolist() == [1.0]


@pytest.mark.peer
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_pytorchs(options):
    torch = pytest.importorskip("torch")
    arrays, gradients, params = drawn(8, 5)
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    peer, optimizer = torch.optim.AdamW(theirs, **options), AdamW(params, **options)
    for each in gradients:
        for tensor, gradient in zip(theirs, each, strict=True):
            tensor.grad = torch.tensor(gradient)
        peer.step()
        take(optimizer, params, each)
    for ours, right in zip(params, theirs, strict=True):
        assert_close(ours, right.detach().numpy(), rtol=1e-12, atol=1e-14, name=f"{options}")
