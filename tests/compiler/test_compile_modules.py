"""rl.compile of modules, and of functions that use some without being given them: gradients, updates, refusals."""

import copy
import warnings

import pytest

import rooflab as rl
from rooflab.testing import assert_close

SIZES = rl.nn.TransformerConfig(32, 64, num_layers=2, num_heads=2, vocab_size=50, context_length=16, attention="flash")


@pytest.fixture(autouse=True)
def no_fallback():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def model_and_batch(device="cpu"):
    rl.manual_seed(0)
    model = rl.nn.TransformerLM(SIZES, device=device)
    return model, *(rl.randint(0, 50, (2, 16), device=device) for _ in "xy")


def loss_of(model, tokens, targets):
    return rl.cross_entropy(model(tokens).reshape(-1, 50), targets.reshape(-1))


class Owner:
    def __init__(self, model):
        self.model = model
        self.sizes = SIZES

    def loss(self, tokens, targets):
        return loss_of(self.model, tokens, targets)


GLOBAL = rl.nn.Linear(4, 4)


def ways(model):
    """The same loss, with the model passed in each possible way."""
    compiled = rl.compile(model or loss_of)
    return {
        "argument": lambda tokens, targets: rl.compile(loss_of)(model, tokens, targets),
        "closure": rl.compile(lambda tokens, targets: loss_of(model, tokens, targets)),
        "method": rl.compile(Owner(model).loss),
        "list": rl.compile(lambda tokens, targets, models=[model]: loss_of(models[0], tokens, targets)),
        "module": lambda tokens, targets: loss_of(compiled, tokens, targets),
    }


@pytest.mark.parametrize("way", ways(None))
def test_losses_and_gradients_are_those_of_the_model(way, device):
    model, tokens, targets = model_and_batch(device)
    right = loss_of(model, tokens, targets)
    right.backward()
    gradients = [p.grad for p in model.parameters()]
    model.zero_grad()
    function = ways(model)[way]
    for calls in (1, 2):
        loss = function(tokens, targets)
        assert loss.item() == pytest.approx(right.item(), rel=1e-6)
        loss.backward()
        for p, gradient in zip(model.parameters(), gradients, strict=True):
            assert_close(p.grad, gradient * calls, rtol=1e-4, atol=1e-6)


def test_a_global_module():
    x = rl.randn(3, 4)
    right = GLOBAL(x)
    assert_close(rl.compile(lambda x: GLOBAL(x))(x), right.detach(), rtol=0, atol=0)


def test_training_sees_every_update_and_records_once(device):
    """Four steps of AdamW beside those of the model as it is written."""
    found = []
    for compiles in (False, True):
        model, tokens, targets = model_and_batch(device)
        runs = []

        def noted(tokens, targets, model=model, runs=runs):
            runs.append(1)
            return loss_of(model, tokens, targets)

        function = rl.compile(noted) if compiles else noted
        optimizer = rl.optim.AdamW(model.parameters(), lr=0.01)
        losses = []
        for _ in range(4):
            model.zero_grad()
            with rl.autocast("bfloat16"):
                loss = function(tokens, targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert len(runs) == (1 if compiles else 4)
        found.append(losses)
    assert found[1] == pytest.approx(found[0], rel=5e-3) and found[1][3] < found[1][0] - 0.1


def test_tensors_are_those_of_the_module_again():
    model, tokens, _ = model_and_batch()
    before = [*model.parameters(), model._rotary._cos]
    rl.compile(model)(tokens)
    with pytest.warns(UserWarning, match="runs as it is written, op by op"):
        rl.compile(lambda tokens: model(tokens).sum().item())(tokens)
    assert all(x is y for x, y in zip(before, [*model.parameters(), model._rotary._cos], strict=True))


def test_a_weight_that_is_replaced_or_frozen_counts():
    layer = rl.nn.Linear(3, 3)
    compiled = rl.compile(layer)
    x = rl.randn(2, 3)
    compiled(x)
    layer.weight = (layer.weight.detach() * 2).requires_grad_()
    assert_close(compiled(x).detach(), layer(x).detach(), rtol=0, atol=0)
    assert compiled(x).requires_grad
    layer.requires_grad_(False)
    assert not compiled(x).requires_grad


def test_a_weight_of_two_modules_has_one_gradient():
    first, second = rl.nn.Linear(3, 3, bias=False), rl.nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    x = rl.randn(2, 3)
    gradients = []
    for function in (lambda x: second(rl.relu(first(x))).sum(), rl.compile(lambda x: second(rl.relu(first(x))).sum())):
        first.weight.grad = None
        function(x).backward()
        gradients.append(first.weight.grad)
    assert_close(gradients[1], gradients[0], rtol=1e-6, atol=1e-7)


def test_a_compiled_module_still_has_its_attributes():
    model, *_ = model_and_batch()
    compiled = rl.compile(model)
    assert compiled.num_parameters() == model.num_parameters() and compiled.config is SIZES
    with pytest.raises(AttributeError, match="nothing"):
        compiled.nothing  # noqa: B018


def test_a_method_that_returns_the_module_returns_the_compiled_one():
    compiled = rl.compile(rl.nn.Linear(2, 2))
    assert compiled.eval() is compiled and not compiled.training
    assert compiled.train().half().to("float32") is compiled and compiled.weight.dtype == rl.float32
    assert compiled.apply(lambda part: None).requires_grad_(False) is compiled
    assert compiled.forward(rl.ones(1, 2)).shape == (1, 2) and list(compiled.state_dict()) == ["weight", "bias"]
    assert compiled.eval.__name__ == "eval"


@pytest.mark.parametrize(
    "hold",
    [
        lambda net, part: setattr(net, "body", part),
        lambda net, part: setattr(net, "child", part),
        lambda net, part: net.add_module("body", part),
        lambda _, part: rl.nn.Sequential(part),
        lambda _, part: rl.nn.ModuleList([part]),
        lambda _, part: rl.nn.ModuleDict({"body": part}),
    ],
)
def test_a_compiled_module_is_no_child(hold):
    """Nothing would train it, save it or convert it."""
    net = rl.nn.Module()
    net.child = rl.nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"a compiled one, .* inner.forward = rl.compile\(inner.forward\)$"):
        hold(net, rl.compile(rl.nn.Linear(2, 2)))


def test_a_child_whose_forward_is_compiled():
    net = rl.nn.Sequential(rl.nn.Linear(4, 4), rl.nn.ReLU())
    net[0].forward = rl.compile(net[0].forward)
    x = rl.ones(2, 4)
    before = net(x).detach().numpy()
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    net(x).sum().backward()
    rl.optim.AdamW(net.parameters(), lr=0.5).step()
    after = net(x).detach()
    other = copy.deepcopy(net)
    assert_close(other(x), after.numpy())
    other[0].weight.data = rl.zeros(4, 4)
    assert_close(net(x), after.numpy())
    assert abs(after.numpy() - before).max() > 0.01 and len(net[0].forward._programs) == 1


def test_a_step_that_goes_backward_runs_as_it_is_written():
    model, tokens, targets = model_and_batch()
    right = loss_of(model, tokens, targets)
    right.backward()
    gradients = [p.grad for p in model.parameters()]
    model.zero_grad()

    @rl.compile
    def step(tokens, targets):
        loss = loss_of(model, tokens, targets)
        loss.backward()
        return loss

    with pytest.warns(UserWarning, match=r"\[backward\] sets the grad of an argument; use rl.autograd.grad"):
        assert step(tokens, targets).item() == right.item()
    for p, gradient in zip(model.parameters(), gradients, strict=True):
        assert_close(p.grad, gradient, rtol=0, atol=0)
