"""Attributes of a module: what takes which role, what leaves it, and which names there are."""

import copy
import pickle

import pytest

import rooflab as rl
from rooflab.nn import Identity, LayerNorm, Linear, Module, Parameter, Sequential, Tanh


def roles(module):
    """Names of (parameters, buffers, children), and those of the state."""
    named = module.named_parameters(), module.named_buffers(), module.named_children()
    return [[name for name, _ in each] for each in named], list(module.state_dict())


def test_a_parameter_takes_the_name_of_a_buffer():
    module = Module()
    module.register_buffer("a", rl.zeros(2))
    module.a = Parameter(rl.ones(2))
    assert roles(module) == ([["a"], [], []], ["a"])
    with pytest.raises(
        TypeError, match=r"\[Module\] a: expected a parameter or None, got a tensor that does not require"
    ):
        module.a = rl.ones(2)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_frozen_parameter_is_one(copied):
    made, linear = copied(Parameter(rl.ones(2, 2), requires_grad=False)), Linear(2, 2)
    linear.weight = made
    assert isinstance(made, Parameter) and not made.requires_grad and roles(linear)[0][0] == ["weight", "bias"]
    assert not isinstance(copied(rl.ones(2)), Parameter)


def test_a_frozen_parameter_changes_in_place_and_is_shared():
    linear, head = Linear(2, 2, bias=False), Linear(2, 2, bias=False)
    for module in (linear, copy.deepcopy(linear), pickle.loads(pickle.dumps(linear))):
        module.requires_grad_(False)
        doubled = (module.weight * 2).tolist()
        module.weight *= 2
        assert module.weight.tolist() == doubled and roles(module) == ([["weight"], [], []], ["weight"])
    head.weight = linear.weight
    assert head.weight is linear.weight and isinstance(head.weight, Parameter)


def test_a_module_takes_the_name_of_a_buffer():
    module = Module()
    module.register_buffer("a", rl.zeros(2))
    module.a = Linear(1, 1)
    assert roles(module) == ([["a.weight", "a.bias"], [], ["a"]], ["a.weight", "a.bias"])
    del module.a
    module.a = rl.ones(2)
    assert roles(module) == ([[], [], []], []), "a is no buffer any more"


@pytest.mark.parametrize("make", [lambda: Parameter(rl.ones(2)), lambda: rl.ones(2), lambda: Identity()])
def test_what_is_deleted_has_no_role(make):
    module = Module()
    if isinstance(value := make(), rl.Tensor) and not value.requires_grad:
        module.register_buffer("a", value)
    else:
        module.a = value
    del module.a
    assert not hasattr(module, "a") and roles(module) == ([[], [], []], [])
    module.a = rl.ones(3)
    assert roles(module) == ([[], [], []], []), "an ordinary attribute now"
    with pytest.raises(AttributeError):
        del module.b


def test_none_keeps_the_place_of_a_parameter():
    module = Module()
    module.register_parameter("scale", None)
    assert module.scale is None and roles(module) == ([[], [], []], [])
    for made in (module, Linear(2, 2, bias=False), LayerNorm(2, elementwise_affine=False)):
        name = "scale" if made is module else "bias"
        with pytest.raises(TypeError, match=rf"{name}: expected a parameter or None"):
            setattr(made, name, rl.ones(2))
        setattr(made, name, Parameter(rl.ones(2)))
        assert name in dict(made.named_parameters())
    module.scale = None
    with pytest.raises(
        TypeError, match=r"scale: expected a parameter or None, got a tensor that is not a leaf; write rl.nn"
    ):
        module.scale = rl.ones(2, requires_grad=True) * 2


def test_a_new_role_comes_last_and_none_keeps_its_place():
    module = Module()
    module.head, module.w = None, None
    module.body, module.v = Linear(1, 1, bias=False), Parameter(rl.ones(1))
    module.register_buffer("table", rl.ones(1))
    module.head, module.w, module.table = Identity(), Parameter(rl.ones(1)), Tanh()
    assert roles(module)[0] == [["v", "w", "body.weight"], [], ["body", "head", "table"]]
    module.body, module.v = None, None
    assert roles(module)[0] == [["w"], [], ["head", "table"]]
    with pytest.raises(TypeError, match="body: expected a Module or None, got int"):
        module.body = 3
    module.body, module.v = Identity(), Parameter(rl.ones(1))
    assert roles(module)[0] == [["v", "w"], [], ["body", "head", "table"]]
    module.add_module("none", None)
    module.last, module.none = Tanh(), Identity()
    assert [name for name, _ in module.named_children()] == ["body", "head", "table", "none", "last"]


def test_no_module_is_inside_itself():
    inner = Module()
    model = Sequential(Sequential(inner))
    for parent in (inner, model, model[0]):
        with pytest.raises(ValueError, match=r"\[Module\] parent: expected a Module that does not hold this one"):
            inner.parent = parent
        with pytest.raises(ValueError, match=r"parent: expected a Module that does not hold"):
            inner.add_module("parent", parent)
    with pytest.raises(ValueError, match=r"\[Sequential\] 1: expected a Module that does not hold this one"):
        model[0].append(model)
    inner.parent = [model]
    assert [name for name, _ in model.named_modules()] == ["", "0", "0.0"]


def test_a_role_is_not_taken_by_accident():
    module = Module()
    module.w, module.child = Parameter(rl.ones(1)), Identity()
    module.register_buffer("table", rl.ones(1))
    for name, value, says in (
        ("w", 3, "w: expected a parameter or None, got int$"),
        ("w", Identity(), "w: expected a parameter or None, got Identity$"),
        ("table", [1], "table: expected a tensor or None for a buffer, got list"),
        ("child", 3, "child: expected a Module or None, got int"),
        ("child", rl.ones(1), "child: expected a Module or None, got a tensor that does not require grad"),
    ):
        with pytest.raises(TypeError, match=says):
            setattr(module, name, value)
    assert roles(module) == ([["w"], ["table"], ["child"]], ["w", "table"])
    module.child = Parameter(rl.ones(2))
    assert roles(module)[0] == [["w", "child"], ["table"], []], "a parameter may, as in PyTorch"


REGISTER = {
    "register_parameter": lambda: Parameter(rl.ones(2)),
    "register_buffer": lambda: rl.ones(2),
    "add_module": lambda: Identity(),
}


@pytest.mark.parametrize("method", REGISTER)
def test_names_are_checked(method):
    module = Module()
    module.w, module.child, module.number, module.plain = Parameter(rl.ones(1)), Identity(), 3, rl.ones(1)
    module.register_buffer("table", rl.ones(1))
    register, before = getattr(module, method), roles(module)
    for name in (3, None, b"x"):
        with pytest.raises(TypeError, match=rf"\[{method}\] name: expected a text, got {name!r}"):
            register(name, REGISTER[method]())
    for name in ("", "a.b", "."):
        with pytest.raises(ValueError, match=rf"\[{method}\] name: expected a text without dots that is not empty"):
            register(name, REGISTER[method]())
    own = {"register_parameter": "w", "register_buffer": "table", "add_module": "child"}[method]
    taken = {"w", "table", "child", "number", "plain", "forward", "training", "parameters", "_own_state"} - {own}
    for name in taken:
        with pytest.raises(ValueError, match=rf"\[{method}\] name: expected a new one, got '{name}'"):
            register(name, REGISTER[method]())
    assert roles(module) == before
    register(own, value := REGISTER[method]())
    assert getattr(module, own) is value and roles(module) == before, "one of the same role is replaced"
    for wrong in (3, [1]):
        with pytest.raises(TypeError, match=rf"\[{method}\] new: expected a"):
            register("new", wrong)
    register("new", None)
    assert module.new is None and roles(module) == before


def test_a_child_may_be_named_by_number():
    module = Module()
    module.add_module("0", Linear(1, 1, bias=False))
    module.add_module("0", Tanh())
    assert [(name, type(child)) for name, child in module.named_children()] == [("0", Tanh)]


@pytest.mark.parametrize("name", ["forward", "parameters", "half", "to", "_children", "_own_state", "__call__"])
def test_no_value_hides_what_methods_need(name):
    module = Module()
    for value in (Parameter(rl.ones(1)), Identity(), rl.ones(1), 3, None, [1]):
        with pytest.raises(ValueError, match=rf"\[Module\] {name}: expected another name"):
            setattr(module, name, value)
    with pytest.raises(ValueError, match=r"\[Sequential\] append: expected another name"):
        Sequential().append = [1]
    for part in (Parameter(rl.ones(1)), Identity()):
        with pytest.raises(ValueError, match=r"training: expected another name"):
            module.training = part


def test_a_function_may_take_the_place_of_a_method():
    module = Module()
    module.forward = lambda x: x + 1
    assert module(1) == 2
    module.forward = lambda x: x + 2
    assert module(1) == 3

    class Own(Module):
        scale = 2
        act = rl.relu

        def __init__(self):
            self.scale, self.act = Parameter(rl.ones(1)), Tanh()

    assert roles(Own())[0] == [["scale"], [], ["act"]], "attributes of the user's class are the user's"


def test_counting_while_children_are_walked():
    model = Module()
    model.a, model.b = Linear(1, 1), Linear(1, 1)
    assert [model.num_parameters() for _ in model.children()] == [4, 4]


def test_an_error_in_a_property_stays_what_it_is():
    class Wide(Module):
        @property
        def width(self):
            return self.config.width

    with pytest.raises(AttributeError, match=r"'Wide' object has no attribute 'config'$"):
        print(Wide().width)
