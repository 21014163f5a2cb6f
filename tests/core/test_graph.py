"""Graphs: captured once, replayed by one host call each time, counted as what they run."""

import gc

import numpy as np
import pytest

import rooflab as rl


def captured(device, make):
    graph = rl.Graph(device=device)
    with graph.capture():
        result = make()
    return graph, result


def test_nothing_runs_before_the_first_replay(device):
    x = rl.zeros(1000, device=device)
    graph = rl.Graph(device=device)
    with rl.count() as c, graph.capture():
        x.fill_(1)
        y = rl.exp(x) + x
    assert (c.ops, c.launches, c.host_calls, c.flops) == (0, 0, 0, 0)
    assert x.sum().item() == 0
    graph.replay()
    np.testing.assert_allclose(y.cpu().numpy(), np.e + 1, rtol=1e-6)


def test_replays_read_what_was_copied_in(device):
    x = rl.zeros(5, 7, device=device)
    graph, y = captured(device, lambda: rl.softmax(x @ x.T, dim=-1))
    for seed in range(3):
        value = rl.tensor(np.random.default_rng(seed).standard_normal((5, 7)), dtype="float32")
        x.copy_(value)
        graph.replay()
        np.testing.assert_allclose(y.cpu().numpy(), rl.softmax(value @ value.T).numpy(), rtol=1e-5)


def test_a_replay_is_one_host_call_and_counts_what_runs(device):
    x = rl.ones(64, 64, device=device)

    def step():
        with rl.range("mlp"):
            return rl.gelu(rl.exp(x) * x).sum()

    with rl.count() as eager:
        step()
    graph, _ = captured(device, step)
    with rl.count() as c:
        graph.replay()
    assert c.host_calls == 1 and c.allocations == 0
    for field in ("ops", "launches", "macs", "flops", "bytes_read", "bytes_written"):
        assert getattr(c, field) == getattr(eager, field), field
    assert {op: c.by_op[op].launches for op in eager.by_op} == {op: v.launches for op, v in eager.by_op.items()}
    assert c.by_range["mlp"].launches == eager.launches == graph.launches


def test_memory_of_a_graph_is_its_own(device):
    x = rl.ones(100, 100, device=device)
    graph, y = captured(device, lambda: rl.exp(x + 1) * 2)  # two temporaries, freed while it was captured
    held = [rl.full((100, 100), 7.0, device=device) for _ in range(8)]
    graph.replay()
    assert all((h.cpu().numpy() == 7).all() for h in held)
    np.testing.assert_allclose(y.cpu().numpy(), 2 * np.exp(2.0), rtol=1e-6)


def test_what_a_graph_reads_lives_as_long_as_it(device):
    graph, y = captured(device, lambda: rl.ones(1000, device=device) * 3)
    held = [rl.full((1000,), 2.0, device=device)]
    second, z = captured(device, lambda: held[0] + 1)
    held.clear()
    gc.collect()
    others = [rl.zeros(1000, device=device) for _ in range(8)]
    graph.replay()
    second.replay()
    assert (y.sum().item(), z.sum().item()) == (3000, 3000)
    assert len(others) == 8


def test_what_a_graph_made_that_is_gone_lives_as_long_as_the_next_one(device):
    """The next one may lie where the first one lay."""
    n = 1 << 21  # a block of 8 MiB has its segment for itself, so a tensor of its size gets it
    graph, held = captured(device, lambda: [rl.ones(n, device=device) + 1])
    graph.replay()
    del graph
    second, y = captured(device, lambda: held[0] * 10)
    second.replay()
    first = y[0].item()
    held.clear()
    other = rl.full((n,), 77.0, device=device)
    second.replay()
    assert (first, y[0].item(), other[0].item()) == (20, 20, 77)


def test_what_a_failed_capture_made_is_kept_by_the_next_one(device):
    graph = rl.Graph(device=device)
    with pytest.raises(KeyError), graph.capture():
        t = rl.ones(1000, device=device) + 1
        raise KeyError
    t.fill_(3)
    with graph.capture():
        y = t * 2
        del t
        assert (y + 100).shape == (1000,)  # which would take its memory
    for _ in range(2):
        graph.replay()
        assert y.sum().item() == 6000


def test_memory_comes_back_with_the_graph(device):
    gc.collect()
    rl.memory.empty_cache(device)
    before = rl.memory.reserved(device)
    graph, y = captured(device, lambda: rl.exp(rl.ones(1 << 20, device=device)))
    rl.memory.empty_cache(device)
    assert rl.memory.reserved(device) >= before + y.nbytes
    del graph, y
    gc.collect()
    rl.memory.empty_cache(device)
    assert rl.memory.reserved(device) <= before


def test_random_numbers_differ_from_replay_to_replay(device):
    graph, (a, b) = captured(device, lambda: (rl.randn(1000, device=device), rl.rand(1000, device=device)))
    seen = []
    for _ in range(3):
        graph.replay()
        seen += [a.cpu().numpy().copy(), b.cpu().numpy().copy()]
    eager = rl.randn(1000, device=device).cpu().numpy()
    assert len({draw.tobytes() for draw in [*seen, eager]}) == 7
    assert abs(np.mean([draw.mean() for draw in seen[::2]])) < 0.1


def test_gradients_are_captured(device):
    x = rl.ones(8, 8, device=device, requires_grad=True)
    graph = rl.Graph(device=device)
    with graph.capture():
        (rl.gelu(x) * x).sum().backward()
    graph.replay()
    expected = rl.ones(8, 8, requires_grad=True)
    (rl.gelu(expected) * expected).sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected.grad.numpy(), rtol=1e-5)


def test_profiles_see_the_kernels_of_a_replay(device):
    x = rl.ones(64, 64, device=device)
    graph, _ = captured(device, lambda: rl.softmax(rl.exp(x)))
    graph.replay()
    with rl.profile() as prof:
        graph.replay()
    assert [kernel.op for kernel in prof.kernels] == ["exp", "softmax"]
    assert [kernel.cost.bytes for kernel in prof.kernels] == [2 * x.nbytes] * 2


@pytest.mark.parametrize(
    ("what", "match"),
    [
        (lambda x: x.sum().item(), r"while a graph is captured|a graph cannot capture it"),
        (lambda x: x.tolist(), r"while a graph is captured|a graph cannot capture it"),
        (lambda x: rl.tensor([1.0], device=x.device), r"\[tensor\] a graph cannot capture it"),
        (lambda x: x.__setitem__(slice(0, 2), [1.0, 2.0]), r"\[tensor\] a graph cannot capture it"),
        (lambda x: x[x > 0], r"\[index\] a mask reads the index, so a graph cannot capture it"),
        (lambda x: rl.exp(rl.ones(3, device="meta")), r"runs on meta:cpu, but the graph that is captured is on"),
    ],
    ids=["item", "tolist", "tensor", "assignment", "mask", "another device"],
)
def test_what_cannot_be_captured_is_refused_and_leaves_all_usable(what, match, device):
    x = rl.ones(4, device=device)
    graph = rl.Graph(device=device)
    with pytest.raises(ValueError, match=match), graph.capture():
        rl.exp(x)
        what(x)
    assert rl.exp(x).sum().item() == pytest.approx(4 * np.e)
    with pytest.raises(ValueError, match="nothing was captured"):
        graph.replay()
    with graph.capture():
        y = x + 1
    graph.replay()
    assert y.sum().item() == 8


def test_captures_neither_nest_nor_repeat():
    graph, _ = captured("cpu", lambda: rl.exp(rl.ones(3)))
    with pytest.raises(ValueError, match="holds a capture already"), graph.capture():
        pass
    other = rl.Graph(device="cpu")
    with other.capture(), pytest.raises(ValueError, match="do not nest"), rl.Graph(device="cpu").capture():
        pass
    with pytest.raises(ValueError, match="cannot hold another"):
        third = rl.Graph(device="cpu")
        with third.capture():
            graph.replay()
    with pytest.raises(ValueError, match="expected cpu or cuda"):
        rl.Graph(device="meta")
    assert repr(graph) == "Graph(cpu, 2 launches)"
