"""Modules: their parameters by name, state, and what they print."""

import pytest

import rooflab as rl
from rooflab.nn import Embedding, Linear, Module, ModuleList, RMSNorm


class Net(Module):
    def __init__(self):
        self.embed = Embedding(10, 4)
        self.layers = ModuleList([Linear(4, 4), Linear(4, 2, bias=False)])
        self.norm = RMSNorm(2)
        self.scale = rl.ones(1, requires_grad=True)
        self._table = rl.zeros(3)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) * self.scale


def test_parameters_have_dotted_names():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert names == [
        "scale",
        "embed.weight",
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "norm.weight",
    ]
    assert net.num_parameters() == 1 + 40 + 16 + 4 + 8 + 2
    assert all(p.requires_grad for p in net.parameters())
    assert [name for name, _ in net.named_modules()] == ["", "embed", "layers", "layers.0", "layers.1", "norm"]


def test_state_goes_out_and_in():
    rl.manual_seed(1)
    a, b = Net(), Net()
    state = a.state_dict()
    assert not any(x.requires_grad for x in state.values())
    b.load_state_dict(state)
    tokens = rl.tensor([[1, 2, 9]])
    assert a(tokens).tolist() == b(tokens).tolist()
    before = {name: x.tolist() for name, x in b.state_dict().items()}
    with pytest.raises(ValueError, match=r"\[load_state_dict\] missing: scale; not a parameter: extra"):
        b.load_state_dict({**{n: x * 2 for n, x in state.items() if n != "scale"}, "extra": rl.ones(1)})
    assert {name: x.tolist() for name, x in b.state_dict().items()} == before
    with pytest.raises(ValueError, match=r"of another shape: norm.weight: expected \(2,\), got \(3,\)"):
        b.load_state_dict({**state, "norm.weight": rl.ones(3)})


def test_gradients_are_dropped_and_switched_off():
    net = Net()
    net(rl.tensor([[1, 2]])).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert net.requires_grad_(False) is net
    assert not net(rl.tensor([[1, 2]])).requires_grad


def test_layers_compute_what_their_ops_do():
    x = rl.randn(3, 4)
    linear, norm, centered = Linear(4, 2), RMSNorm(4, 1e-3), RMSNorm(4, 1e-3, zero_centered=True)
    assert linear(x).tolist() == rl.linear(x, linear.weight, linear.bias).tolist()
    assert norm(x).tolist() == rl.rms_norm(x, rl.ones(4), 1e-3).tolist()
    assert centered(x).tolist() == norm(x).tolist()
    assert Embedding(5, 2)(rl.tensor([[1], [4]])).shape == (2, 1, 2)


def test_it_prints_its_parts():
    assert repr(Linear(4, 2)) == "Linear(weight=(2, 4), bias=(2,))"
    lines = repr(Net()).splitlines()
    assert lines[0] == "Net(scale=(1,)"
    assert "  (embed): Embedding(weight=(10, 4))" in lines
    with pytest.raises(NotImplementedError, match="Module defines no forward"):
        Module()(1)
