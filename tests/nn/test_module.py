"""Modules: their parameters by name, state, and what they print."""

import copy
import threading

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import Dropout, Embedding, Linear, Module, ModuleList, Parameter, RMSNorm, Sequential


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
    with pytest.raises(ValueError, match=r"\[load_state_dict\] missing: scale; unexpected: extra"):
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
    without, table = Linear(4, 2, False), Embedding(5, 2)
    assert without.bias is None and (without.in_features, without.out_features) == (4, 2)
    assert (table.num_embeddings, table.embedding_dim) == (5, 2)


def test_it_prints_its_parts():
    assert repr(Linear(4, 2)) == "Linear(weight=(2, 4), bias=(2,))"
    lines = repr(Net()).splitlines()
    assert lines[0] == "Net(scale=(1,)"
    assert "  (embed): Embedding(weight=(10, 4))" in lines
    with pytest.raises(NotImplementedError, match="Module defines no forward"):
        Module()(1)


class Tied(Module):
    def __init__(self):
        self.embed, self.head = Embedding(10, 4), Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.embed(tokens))


def test_a_shared_parameter_is_given_once():
    model = Tied()
    assert model.num_parameters() == 40
    assert [name for name, _ in model.named_parameters()] == ["embed.weight"]
    assert [name for name, _ in model.named_parameters(remove_duplicate=False)] == ["embed.weight", "head.weight"]
    assert list(model.state_dict()) == ["embed.weight", "head.weight"]
    before = model.embed.weight.tolist()
    optimizer = rl.optim.AdamW(model.parameters(), lr=0.1)
    model(rl.tensor([[1, 2]])).sum().backward()
    optimizer.step()
    assert model.head.weight.tolist() == model.embed.weight.tolist() != before
    copied = copy.deepcopy(model)
    assert copied.head.weight is copied.embed.weight and copied.num_parameters() == 40
    assert model.half().head.weight is model.embed.weight and model.head.weight.dtype == "half"


def test_a_shared_module_is_given_once():
    linear = Linear(2, 2)
    model = Sequential(linear, linear)
    assert [name for name, _ in model.named_modules()] == ["", "0"]
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias"]
    assert len(model.state_dict()) == 4 and len(list(model.children())) == 1
    assert model(rl.ones(1, 2)).tolist() == linear(linear(rl.ones(1, 2))).tolist()


def test_a_deep_copy_has_no_gradients_and_keeps_what_a_class_says_of_its_state():
    class Locked(Linear):
        def __getstate__(self):
            return {name: value for name, value in vars(self).items() if name != "lock"}

    model = Sequential(Locked(2, 1), rl.nn.ReLU())
    model[0].lock = threading.Lock()
    model(rl.ones(1, 2)).sum().backward()
    copied = copy.deepcopy({"model": model, "same": model})
    assert copied["model"] is copied["same"] and not hasattr(copied["model"][0], "lock")
    assert [p.grad for p in copied["model"].parameters()] == [None, None] and model[0].weight.grad is not None
    assert list(copied["model"].state_dict()) == list(model.state_dict())


def test_repr_shows_what_extra_repr_says():
    class Scale(Module):
        def extra_repr(self):
            return f"{super().extra_repr()}factor=2"

    assert repr(Sequential(Scale())) == "Sequential(\n  (0): Scale(factor=2)\n)"


class Mixed(Module):
    def __init__(self):
        self.mask = rl.ones(4, 4).tril()
        self.weight = rl.ones(4, requires_grad=True)
        self.frozen = Parameter(rl.ones(3), requires_grad=False)
        self.later = rl.ones(2)
        self.register_buffer("table", rl.zeros(5))
        self.register_buffer("cache", rl.zeros(6), persistent=False)
        self.register_buffer("nothing", None)

    def forward(self, x):
        self.last = x * self.weight
        return self.last


def test_what_counts_as_a_parameter():
    model = Mixed()
    assert [name for name, _ in model.named_parameters()] == ["weight", "frozen"]
    assert [name for name, _ in model.named_buffers()] == ["table", "cache"]
    assert list(model.state_dict()) == ["weight", "frozen", "table"]
    model.later.requires_grad_()
    assert model.num_parameters() == 4 + 3 + 2
    model(rl.ones(4))
    assert model.last.requires_grad and "last" not in dict(model.named_parameters()), "a result is no parameter"
    model.requires_grad_(False)
    assert [name for name, _ in model.named_parameters()] == ["weight", "frozen", "later"], "frozen ones stay"
    model.table = rl.ones(5)
    assert dict(model.named_buffers())["table"].tolist() == [1.0] * 5
    model.weight = None
    assert "weight" not in dict(model.named_parameters())
    with pytest.raises(TypeError, match=r"\[Mixed\] frozen: expected a parameter or None.* write rl.nn.Parameter"):
        model.frozen = rl.zeros(3)
    for wrong in (lambda: model.register_buffer("x", 3), lambda: model.register_parameter("x", rl.ones(2))):
        with pytest.raises(TypeError, match="expected"):
            wrong()
    for name in ("a.b", "frozen", "forward", ""):
        with pytest.raises(ValueError, match=r"\[register_buffer\] name: expected a (text|new one)"):
            model.register_buffer(name, rl.ones(1))


def test_parameter_is_a_tensor_with_memory_of_its_data():
    data = rl.zeros(2)
    made = Parameter(data)
    data.fill_(3)
    assert made.tolist() == [3.0, 3.0] and made.requires_grad and not data.requires_grad
    assert isinstance(made, Parameter) and isinstance(made, rl.Tensor) and not isinstance(data, Parameter)
    assert not isinstance(made * 2, Parameter) and not isinstance(3, Parameter)
    assert isinstance(Parameter(rl.arange(3), requires_grad=False), Parameter)
    with pytest.raises(TypeError, match="expected a tensor, got list"):
        Parameter([1.0])


def test_it_moves_in_place():
    model = Mixed()
    weight, mask = model.weight, model.mask
    model.register_buffer("index", rl.arange(3))
    model(rl.ones(4)).sum().backward()
    assert model.to("bfloat16") is model and model.weight is weight and weight.requires_grad
    assert {str(x.dtype) for x in (weight, weight.grad, model.frozen, model.table, model.cache)} == {"bfloat16"}
    assert model.index.dtype == "int64" and model.mask is mask and mask.dtype == "float32"
    assert model.to(rl.meta()).index.device.startswith("meta") and weight.grad.device.startswith("meta")
    with pytest.raises(TypeError, match="expected a floating dtype for a module, got int64"):
        model.to("int64")
    with pytest.raises(ValueError, match="dtype"):
        model.to("float8")
    for method, dtype in (("half", "float16"), ("double", "float64"), ("float", "float32"), ("bfloat16", "bfloat16")):
        assert getattr(Linear(2, 2), method)().weight.dtype == dtype
    assert Linear(2, 2).cpu().weight.device == "cpu"


def test_an_optimizer_goes_on_after_a_move():
    model = Linear(2, 2, bias=False)
    optimizer = rl.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.0)
    model.double()
    before = model.weight.tolist()
    model(rl.ones(1, 2, dtype="float64")).sum().backward()
    optimizer.step()
    assert all(abs(a - b - 0.1) < 1e-6 for a, b in zip(before[0], model.weight.tolist()[0], strict=True))


@pytest.mark.parametrize("make", [lambda: rl.nn.GPT2(rl.nn.GPT2Config(8, 1, 2, 11, 6)), lambda: small_transformer()])
def test_models_of_the_package_move_whole(make):
    model, tokens = make(), rl.tensor([[1, 2, 3]])
    exact = model(tokens).detach().numpy()
    assert np.allclose(exact, model.double()(tokens).detach().numpy(), atol=1e-5)
    elsewhere = model.to(rl.meta())(rl.empty(1, 3, dtype="int64", device=rl.meta()))
    assert elsewhere.shape == (1, 3, 11) and elsewhere.dtype == "float64"
    assert list(model.state_dict()) == [name for name, _ in model.named_parameters()], "tables are no part of it"


def small_transformer():
    return rl.nn.TransformerLM(rl.nn.TransformerConfig(8, 16, 1, 2, vocab_size=11, context_length=6))


def test_data_of_a_leaf():
    w = rl.ones(2, requires_grad=True)
    old = (w * w).sum()
    w.data = rl.tensor([3.0, 4.0])
    (w * w).sum().backward()
    old.backward()
    assert w.grad.tolist() == [6.0 + 2.0, 8.0 + 2.0] and not w.data.requires_grad
    w.data.fill_(0)
    assert w.tolist() == [0.0, 0.0]
    late = (w * 2).sum()
    w.data = rl.ones(3, dtype="float64")
    assert w.grad is None and w.shape == (3,) and w.requires_grad
    with pytest.raises(ValueError, match=r"gradient: expected \(3,\) float64 on cpu, got \(2,\) float32"):
        late.backward()
    with pytest.raises(ValueError, match="only a leaf"):
        (w * 2).data = w
    with pytest.raises(ValueError, match="floating-point"):
        w.data = rl.arange(3)
    plain = rl.ones(2)
    plain.data = rl.arange(3)
    assert plain.tolist() == [0, 1, 2]


def test_train_eval_and_apply():
    model = Sequential(Linear(2, 2), Dropout(1.0))
    assert model.training and model[1].training
    assert model(rl.ones(1, 2)).tolist() == [[0.0, 0.0]]
    assert model.eval() is model and not model[1].training
    assert model(rl.ones(1, 2)).tolist() == model[0](rl.ones(1, 2)).tolist()
    assert model.train()[1].training and not model.train(False)[1].training
    with pytest.raises(TypeError, match="expected a bool"):
        model.train("yes")
    seen, whole = [], ModuleList([model, RMSNorm(2)])
    assert whole.apply(lambda module: seen.append(type(module).__name__)) is whole
    assert seen == ["Linear", "Dropout", "Sequential", "RMSNorm", "ModuleList"]


def test_dropout_keeps_the_mean():
    x = rl.ones(100, 100, requires_grad=True)
    y = rl.nn.functional.dropout(x, 0.25)
    assert set(np.unique(y.detach().numpy())) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).sum().item() / 10_000 - 0.25) < 0.02
    y.sum().backward()
    assert x.grad.tolist() == y.tolist(), "the gradient passes where x did"
    with rl.count() as c:
        rl.nn.functional.dropout(x.detach(), 0.25)
    assert c.launches == 4
    assert rl.nn.functional.dropout(x, 0.0) is x
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"p: expected a number from 0 to 1"):
            Dropout(p)


def test_hooks_see_and_replace():
    model, seen = Linear(2, 2), []
    before = model.register_forward_pre_hook(lambda module, args: seen.append(args) or args[0] * 2)
    after = model.register_forward_hook(lambda module, args, y: seen.append((module, args, y)))
    y = model(rl.ones(1, 2))
    assert y.tolist() == model.forward(rl.ones(1, 2) * 2).tolist()
    assert seen[0][0].tolist() == [[1.0, 1.0]] and seen[1][0] is model and seen[1][1][0].tolist() == [[2.0, 2.0]]
    assert seen[1][2] is y
    after.remove(), after.remove(), before.remove()
    model(rl.ones(1, 2))
    assert len(seen) == 2
    with model.register_forward_hook(lambda module, args, y: y * 0):
        assert model(rl.ones(1, 2)).tolist() == [[0.0, 0.0]]
    assert model(rl.ones(1, 2)).tolist() != [[0.0, 0.0]]
    first, second = (model.register_forward_hook(lambda module, args, y, n=n: seen.append(n)) for n in (1, 2))
    seen.clear(), first.remove(), model(rl.ones(1, 2))
    assert seen == [2]
    second.remove()
    assert Linear(2, 2)._after_forward == {}, "hooks are those of one module"
    with pytest.raises(TypeError, match="expected a callable"):
        model.register_forward_hook(3)


def test_state_that_is_not_whole():
    model = Linear(2, 2)
    keys = model.load_state_dict({"weight": rl.ones(2, 2), "more": rl.ones(1)}, strict=False)
    assert keys == (["bias"], ["more"]) and keys.missing_keys == ["bias"] and keys.unexpected_keys == ["more"]
    assert model.weight.tolist() == [[1.0, 1.0]] * 2
    assert model.load_state_dict(model.state_dict()) == ([], [])
    with pytest.raises(ValueError, match="of another shape: weight"):
        model.load_state_dict({"weight": rl.ones(3)}, strict=False)
    for wrong, says in (
        ({"weight": 3, "bias": 1}, r"\[load_state_dict\] weight: expected a tensor, got int"),
        ([1], "expected a dict of names and tensors, got list"),
        (rl.ones(2), "expected a dict of names and tensors, got Tensor"),
    ):
        with pytest.raises(TypeError, match=says):
            model.load_state_dict(wrong)


def test_keys_are_listed_in_the_order_of_the_model_and_of_the_dict():
    model, given = (
        Sequential(Linear(2, 2), Linear(2, 2)),
        {"z": rl.ones(1), "0.bias": rl.ones(2), 3: 1, "c": rl.ones(1)},
    )
    keys = model.load_state_dict(given, strict=False)
    assert keys == (["0.weight", "1.weight", "1.bias"], ["z", 3, "c"])
    with pytest.raises(ValueError, match=r"missing: 0.weight, 1.weight, 1.bias; unexpected: z, 3, c$"):
        model.load_state_dict(given)


def test_containers():
    layers = ModuleList([Linear(2, 2)])
    assert layers.append(RMSNorm(2)) is layers and len(layers.extend([Dropout()])) == 3
    layers.insert(0, Embedding(3, 2))
    assert [type(m).__name__ for m in layers[1:]] == ["Linear", "RMSNorm", "Dropout"]
    layers[0], last = Linear(2, 1), layers[-1]
    del layers[1]
    assert isinstance(last, Dropout) and [name for name, _ in layers.named_parameters()] == [
        "0.weight", "0.bias", "1.weight",
    ]  # fmt: skip
    row = Sequential({"up": Linear(2, 4), "act": rl.nn.ReLU()})
    row.append(Linear(4, 1))
    assert [name for name, _ in row.named_parameters()] == ["up.weight", "up.bias", "2.weight", "2.bias"]
    assert row.up is row[0] and isinstance(row[:2], Sequential)
    assert row(rl.ones(3, 2)).shape == (3, 1) and copy.deepcopy(row)(rl.ones(3, 2)).shape == (3, 1)
    with pytest.raises(AttributeError, match="no attribute 'down'"):
        _ = row.down
    named = rl.nn.ModuleDict({"a": Linear(2, 1)})
    named["b"] = RMSNorm(2)
    assert "b" in named and len(named) == 2 and list(named.keys()) == list(named) == ["a", "b"]
    assert [name for name, _ in named.named_parameters()] == ["a.weight", "a.bias", "b.weight"]
    assert dict(named.items())["a"] is next(iter(named.values()))
    del named["a"]
    assert [name for name, _ in named.named_parameters()] == ["b.weight"]
    for wrong in (lambda: Sequential(rl.relu), lambda: ModuleList([1]), lambda: named.update({"c": 1})):
        with pytest.raises(TypeError, match="expected a Module"):
            wrong()


def test_modules_without_parameters():
    x = rl.randn(2, 3, 4)
    nn = rl.nn
    for module, op in (
        (nn.ReLU(), rl.relu), (nn.GELU("tanh"), rl.gelu), (nn.SiLU(), rl.silu), (nn.Sigmoid(), rl.sigmoid),
        (nn.Tanh(), rl.tanh), (nn.Softmax(1), lambda x: rl.softmax(x, 1)), (nn.Identity(), lambda x: x),
        (nn.LogSoftmax(dim=0), lambda x: rl.log_softmax(x, 0)), (nn.Flatten(), lambda x: x.reshape(2, 12)),
        (nn.LayerNorm(4), lambda x: rl.layer_norm(x, rl.ones(4), rl.zeros(4))),
    ):  # fmt: skip
        assert module(x).tolist() == op(x).tolist() and module.num_parameters() == (8 if module.state_dict() else 0)
    with pytest.raises(ValueError, match=r"tanh form, got 'none'; write rl.nn.GELU\(approximate='tanh'\)"):
        nn.GELU()
    assert repr(nn.Sequential(nn.Dropout(0.1), nn.GELU("tanh"), nn.Softmax(1))).splitlines()[1:4] == [
        "  (0): Dropout(p=0.1)", "  (1): GELU(approximate='tanh')", "  (2): Softmax(dim=1)",
    ]  # fmt: skip
