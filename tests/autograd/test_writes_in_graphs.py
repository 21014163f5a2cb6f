"""Writes to tensors that a graph holds: noticed, refused, or allowed without gradients."""

import pytest

import rooflab as rl


def leaf(*shape):
    return rl.randn(*shape, requires_grad=True)


def test_writes_to_saved_tensors_are_noticed():
    x = leaf(3)
    y = rl.exp(x)
    z = y.sum()
    y.detach()[0] = 1  # exp saved its result
    with pytest.raises(ValueError, match=r"\[exp\] backward: a tensor of shape \(3,\) saved .* changed in place"):
        z.backward()
    x, c = leaf(3), rl.ones(3)
    y = x * c
    c.zero_()
    with pytest.raises(ValueError, match=r"\[mul\].*changed in place"):
        y.sum().backward()
    x, c = leaf(3), rl.ones(3)
    y = x + c  # saves nothing
    c.zero_()
    y.sum().backward()


def captured(make):
    graph = rl.Graph(device="cpu")
    with graph.capture():
        made = make()
    return graph, made


def test_replays_that_write_to_saved_tensors_are_noticed():
    """To what was there before the capture, and to what the capture made."""
    x, c = leaf(3), rl.ones(3)
    graph, made = captured(lambda: c.add_(1) * 2)
    graph.replay()
    for saved in (c, made):
        y = (x * saved).sum()
        y.backward(retain_graph=True)
        assert x.grad.tolist() == saved.tolist()
        x.grad = None
        graph.replay()
        with pytest.raises(ValueError, match=r"\[mul\] backward: a tensor of shape \(3,\) saved .* changed in place"):
            y.backward()


def test_what_a_checkpoint_reads_and_a_replay_wrote_to_is_noticed():
    c = rl.ones(3)
    graph, made = captured(lambda: c.add_(1) * 2)
    for read in (c, made):
        for function, given in ((lambda x, read=read: rl.exp(x * read), ()), (lambda x, y: rl.exp(x * y), (read,))):
            y = rl.autograd.checkpoint(function, leaf(3), *given)
            graph.replay()
            with pytest.raises(ValueError, match=r"\[checkpoint\] backward: .* was changed in place"):
                y.sum().backward()


def test_a_checkpointed_function_may_replay_a_graph():
    """What the graph makes, and what it fills as a whole, is the same when the function runs again."""
    inputs, filled = rl.ones(2), rl.zeros(2)

    def fill():
        made = rl.exp(inputs)
        filled.copy_(made)
        return made

    graph, table = captured(fill)

    def function(x):
        graph.replay()
        return rl.exp(x * table) * filled

    x, expected = leaf(2), None
    for run in (function, lambda x: rl.autograd.checkpoint(function, x)):
        x.grad = None
        run(x).sum().backward()
        expected = expected or x.grad.tolist()
    assert x.grad.tolist() == expected

    y = rl.autograd.checkpoint(function, x)
    inputs.zero_()  # what the replay would read
    with pytest.raises(ValueError, match=r"\[checkpoint\] backward: .* was changed in place"):
        y.sum().backward()


def test_a_checkpointed_function_may_not_replay_a_sum():
    total = rl.zeros(2)
    graph, _ = captured(lambda: total.add_(1))

    def function(x):
        graph.replay()
        return rl.exp(x * total)

    y = rl.autograd.checkpoint(function, leaf(2))
    with pytest.raises(ValueError, match=r"\[checkpoint\] backward: .* was changed in place, by the function"):
        y.sum().backward()


def test_a_captured_forward_pass_has_a_backward_after_each_replay():
    """Also where it saved what it writes to, and where another graph writes to its parameters."""
    x, c = leaf(3), rl.ones(3)
    step, _ = captured(lambda: x.detach().mul_(2))
    graph, y = captured(lambda: (rl.exp(x * c.add_(1)) * x).sum())
    for turn in range(2, 5):
        graph.replay()
        y.backward(retain_graph=True)
        e = x.detach()
        expected = rl.exp(e * turn) * (1 + turn * e)
        assert abs(x.grad - expected).amax().item() <= 1e-5 * abs(expected).amax().item()
        x.grad = None
        step.replay()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.zero_(),
        lambda x: x.fill_(1),
        lambda x: x.copy_(rl.ones(3)),
        lambda x: x.__setitem__(0, 5),
        lambda x: x.__setitem__(slice(0, 2), rl.ones(2)),
        lambda x: x[1:].zero_(),
    ],
)
@pytest.mark.parametrize("make", [lambda: leaf(3), lambda: leaf(3) * 2])
def test_writes_into_a_graph_are_refused_in_grad_mode(write, make):
    x = make()
    with pytest.raises(ValueError, match=r"destination: requires grad.*rl.no_grad\(\), or into a clone"):
        write(x)
    with rl.no_grad():
        write(x)
    write(x.detach())


def test_writes_of_a_graph_are_refused_in_grad_mode():
    x, target = leaf(3), rl.zeros(3)
    for write in (lambda: target.copy_(x), lambda: target.__setitem__(slice(None), x * 2)):
        with pytest.raises(ValueError, match=r"source: requires grad, and its gradient would be lost"):
            write()
        with rl.no_grad():
            write()
