"""AdamW whose steps a graph may capture: the same steps, counted on the device, and what is refused."""

import copy

import numpy as np
import pytest

import rooflab as rl
from rooflab.optim import AdamW
from rooflab.testing import assert_close

SHAPES = [(3, 5), (), (7,), (2, 3, 4)]


def drawn(seed, steps, device="cpu"):
    """Parameters, and for each step their gradients as arrays."""
    rng = np.random.default_rng(seed)
    params = [rl.tensor(rng.standard_normal(shape), dtype="float32", device=device) for shape in SHAPES]
    gradients = [[rng.standard_normal(shape) for shape in SHAPES] for _ in range(steps)]
    return [param.requires_grad_() for param in params], gradients


def take(optimizer, params, gradients):
    for param, gradient in zip(params, gradients, strict=True):
        param.grad = rl.tensor(gradient, dtype=param.dtype, device=param.device)
    optimizer.step()


def test_a_capturable_step_is_the_same_step(device):
    """With the number of the step on the device, and a learning rate that a schedule writes there."""
    rates = [0.1, 0.05, 0.2]
    found = []
    for capturable in (False, True):
        params, gradients = drawn(3, len(rates), device)
        optimizer = AdamW(params, weight_decay=0.1, capturable=capturable)
        if capturable:
            optimizer.param_groups[0]["lr"] = rl.zeros((), dtype="float64", device=device)
        for rate, of_step in zip(rates, gradients, strict=True):
            if capturable:
                optimizer.param_groups[0]["lr"].copy_(rl.tensor(rate, dtype="float64"))
            else:
                optimizer.param_groups[0]["lr"] = rate
            take(optimizer, params, of_step)
        found.append([*params, *(optimizer.state[p]["exp_avg_sq"] for p in params)])
        assert [int(optimizer.state[p]["step"]) for p in params] == [len(rates)] * len(params)
    for plain, captured in zip(*found, strict=True):
        assert_close(captured.detach(), plain.detach(), rtol=0 if device == "cpu" else 2.0**-22, atol=0)


def test_replays_of_a_graph_count_their_steps(device):
    """And correct the bias of the moments as separate steps do."""
    steps = 5
    found = []
    for is_graph in (False, True):
        params, gradients = drawn(4, 1, device)
        optimizer = AdamW(params, lr=0.1, capturable=is_graph)
        take(optimizer, params, gradients[0])
        if is_graph:
            graph = rl.Graph(device=device)
            with graph.capture():
                optimizer.step()
            with rl.count() as c:
                for _ in range(steps - 1):
                    graph.replay()
            assert c.host_calls == steps - 1
        else:
            for _ in range(steps - 1):
                optimizer.step()
        assert [int(optimizer.state[p]["step"]) for p in params] == [steps] * len(params)
        found.append([p.detach() for p in params])
    for eager, replayed in zip(*found, strict=True):
        assert_close(replayed, eager, rtol=0 if device == "cpu" else 2.0**-22, atol=0)


def test_a_capturable_step_costs_one_launch_more():
    params = [rl.ones(8, device="meta:H200", requires_grad=True) for _ in range(70)]
    counted = []
    for capturable in (False, True):
        optimizer = AdamW(params, capturable=capturable)
        for param in params:
            param.grad = rl.ones(8, device="meta:H200")
        optimizer.step()
        with rl.count() as c:
            optimizer.step()
        counted.append(c)
    plain, captured = counted
    assert captured.launches == plain.launches + 1 and captured.by_op["adamw"].launches == plain.launches
    assert captured.by_op["adamw"].bytes_read == plain.bytes_read + 8


def test_a_capturable_state_is_loaded_by_either_kind():
    for theirs, ours in ((True, False), (False, True), (True, True)):
        params, gradients = drawn(5, 3)
        optimizer = AdamW(params, capturable=theirs)
        take(optimizer, params, gradients[0])
        copies = [p.detach().clone().requires_grad_() for p in params]
        other = AdamW(copies)
        other.load_state_dict(optimizer.state_dict())
        other.param_groups[0]["capturable"] = ours
        for of_step in gradients[1:]:
            take(optimizer, params, of_step)
            take(other, copies, of_step)
        for p, copied in zip(params, copies, strict=True):
            assert_close(copied.detach(), p.detach(), rtol=0, atol=0)
            assert (
                int(other.state[copied]["step"]) == 3 and optimizer.state[p]["step"] is not other.state[copied]["step"]
            )


def captured(optimizer):
    with rl.Graph(device="cpu").capture():
        optimizer.step()


@pytest.mark.parametrize(
    ("capturable", "is_first", "says"),
    [
        (False, False, "a graph would repeat the number of the step that it captures; make .* capturable=True"),
        (True, True, "the first step makes the optimizer's state; take it before the capture"),
    ],
)
def test_a_capture_that_would_be_wrong_is_refused(capturable, is_first, says):
    params, gradients = drawn(6, 1)
    optimizer = AdamW(params, capturable=capturable)
    take(optimizer, params, gradients[0])
    if is_first:
        optimizer.state.clear()
    with pytest.raises(ValueError, match=rf"\[AdamW\] step: {says}"):
        captured(optimizer)


def test_what_a_capturable_step_cannot_do_is_one_sentence():
    params, gradients = drawn(7, 1)
    optimizer = AdamW(params, capturable=True)
    take(optimizer, params, gradients[0])
    params[1].grad = None
    with pytest.raises(ValueError, match=r"\[AdamW\] step: 1 tensors have no gradient, but share the number of their"):
        optimizer.step()
    with pytest.raises(ValueError, match=r"\[AdamW\] lr: a tensor is read on the device, which needs capturable=True"):
        AdamW(params, lr=rl.zeros((), dtype="float64"))
    p, g, m, v = ([rl.ones(3)] for _ in "pgmv")
    for step, lr, says in (
        (1, rl.zeros((), dtype="float64"), "lr: a tensor needs a step that is a tensor too"),
        (rl.ones(1, dtype="int64"), 0.1, r"step: expected a number or int64 \(\) on cpu, got int64 \(1,\) on cpu"),
        (rl.ones((), dtype="int64"), rl.ones(()), r"lr: expected a number or float64 \(\) on cpu, got float32 \(\)"),
    ):
        with pytest.raises(ValueError, match=rf"\[adamw\] {says}"):
            rl.adamw(p, g, m, v, step=step, lr=lr)
    with pytest.raises(ValueError, match=r"\[adamw\] step: v0_composed.*needs a number"):
        rl.adamw(p, g, m, v, step=rl.ones((), dtype="int64"), variant="v0_composed")


def test_a_captured_step_goes_on_from_a_state_that_is_loaded(device):
    """Moments, the number of the step and the rate are written where the graph reads them."""
    found = []
    for is_graph in (False, True):
        params, gradients = drawn(8, 3, device)
        optimizer = AdamW(params, lr=0.1, capturable=is_graph)
        if is_graph:
            optimizer.param_groups[0]["lr"] = rl.tensor(0.1, dtype="float64", device=device)
        take(optimizer, params, gradients[0])
        saved = copy.deepcopy(optimizer.state_dict())
        weights = [p.detach().clone() for p in params]
        if is_graph:
            graph = rl.Graph(device=device)
            with graph.capture():
                optimizer.step()
            optimizer.param_groups[0]["lr"].fill_(0.7)
        for of_step in gradients[1:]:
            for p, gradient in zip(params, of_step, strict=True):
                p.grad.copy_(rl.tensor(gradient, dtype=p.dtype))
            graph.replay() if is_graph else optimizer.step()
        optimizer.load_state_dict(saved)
        with rl.no_grad():
            for p, weight in zip(params, weights, strict=True):
                p.copy_(weight)
        graph.replay() if is_graph else optimizer.step()
        assert [int(optimizer.state[p]["step"]) for p in params] == [2] * len(params)
        found.append([p.detach() for p in params])
    for eager, replayed in zip(*found, strict=True):
        assert_close(replayed, eager, rtol=0 if device == "cpu" else 2.0**-22, atol=0)


def test_a_plain_state_keeps_an_optimizer_capturable():
    params, gradients = drawn(9, 1)
    plain, capturable = AdamW(params), AdamW(params, capturable=True)
    take(plain, params, gradients[0])
    take(capturable, params, gradients[0])
    steps = [capturable.state[p]["step"] for p in params]
    capturable.load_state_dict(plain.state_dict())
    assert capturable.param_groups[0]["capturable"] is True
    assert all(capturable.state[p]["step"] is step for p, step in zip(params, steps, strict=True))
