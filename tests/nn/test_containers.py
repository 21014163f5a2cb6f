"""Containers of modules: attributes are children too, names follow PyTorch, and nothing drifts apart."""

import copy

import pytest

import rooflab as rl
from rooflab.nn import Flatten, Identity, Linear, Module, ModuleDict, ModuleList, Parameter, Sequential, Tanh


def children(module):
    return [(name, type(child).__name__) for name, child in module.named_children()]


@pytest.mark.parametrize(
    "make",
    [
        lambda first: Sequential(first),
        lambda first: ModuleList([first]),
        lambda first: ModuleDict({"0": first}),
    ],
)
def test_an_attribute_of_a_container_is_a_child(make):
    model = make(Linear(2, 2))
    model.extra, model.p = Linear(2, 1), Parameter(rl.ones(3))
    names = ["p", "0.weight", "0.bias", "extra.weight", "extra.bias"]
    assert list(model.state_dict()) == [name for name, _ in model.named_parameters()] == names
    assert [name for name, _ in model.named_modules()] == ["", "0", "extra"] and len(model) == 2
    assert not model.eval().extra.training and model.half().extra.weight.dtype == "half"
    assert getattr(model, "0") is model[0 if isinstance(model, (Sequential, ModuleList)) else "0"]
    assert list(copy.deepcopy(model).state_dict()) == names
    del model.extra
    assert children(model) == [("0", "Linear")] and len(model) == 1


def test_an_attribute_takes_part_in_a_row():
    model = Sequential(Identity())
    model.double_it = Doubling()
    assert model(rl.ones(1)).item() == 2.0 and model[1] is model.double_it and list(model) == [model[0], model[1]]
    model[1] = Identity()
    assert model(rl.ones(1)).item() == 1.0 and type(model.double_it) is Identity


class Doubling(Module):
    def forward(self, x):
        return x * 2


def test_names_and_modules_are_one():
    def named():
        return Sequential({"a": Identity(), "b": Tanh(), "c": Flatten()})

    model = named()
    model.a, model[1] = Linear(1, 1), Identity()
    assert children(model) == [("a", "Linear"), ("b", "Identity"), ("c", "Flatten")] and type(model[0]) is Linear
    del model.b
    assert children(model) == [("a", "Linear"), ("c", "Flatten")] and len(model) == 2
    assert children(named()[1:]) == [("b", "Tanh"), ("c", "Flatten")]
    model = named()
    del model[0]
    assert children(model) == [("0", "Tanh"), ("1", "Flatten")], "numbered anew, as in PyTorch"
    del model[-1:]
    assert children(model) == [("0", "Tanh")]
    with pytest.raises(
        ValueError, match=r"\[Sequential\] insert: expected modules that are named by number, got \['a', "
    ):
        named().insert(0, Identity())
    model = named()
    model.append(Identity())
    del model.a
    assert [name for name, _ in children(model)] == ["b", "c", "3"]
    with pytest.raises(ValueError, match="append: the name '3' is taken by a module before the end"):
        model.append(Tanh())
    assert len(model) == 3


def test_places_in_a_row():
    for kind, model in (
        ("ModuleList", ModuleList([Identity(), Tanh()])),
        ("Sequential", Sequential(Identity(), Tanh())),
    ):
        model.insert(-1, Flatten())
        model.insert(3, Linear(1, 1))
        model += [Identity()]
        types = ["Identity", "Flatten", "Tanh", "Linear", "Identity"]
        assert children(model) == [(str(i), name) for i, name in enumerate(types)]
        assert type(model.pop(1)) is Flatten and type(model.pop(-1)) is Identity
        assert children(model) == [("0", "Identity"), ("1", "Tanh"), ("2", "Linear")]
        for call in (lambda m=model: m[3], lambda m=model: m.pop(-4), lambda m=model: m.insert(9, Tanh())):
            with pytest.raises(IndexError, match=rf"\[{kind}\] index: expected one of 3 modules, got"):
                call()
        with pytest.raises(IndexError):
            model[5] = Tanh()
        with pytest.raises(TypeError, match="index: expected an integer or a slice, got '0'"):
            model["0"]
        model.extend(model)
        assert len(model) == 6
        for call in (
            lambda m=model: m.insert(0, 3),
            lambda m=model: m.append(None),
            lambda m=model: m.extend([Tanh(), 3]),
        ):
            with pytest.raises(TypeError, match="expected a Module, got"):
                call()
        assert len(model) == 6, "nothing is added by halves"


BAD_NAMES = [("", ValueError), ("a.b", ValueError), ("forward", ValueError), ("training", ValueError), (3, TypeError)]


@pytest.mark.parametrize(("name", "error"), [*BAD_NAMES, (None, TypeError)])
def test_names_in_containers_are_checked(name, error):
    for make in (ModuleDict, Sequential):
        with pytest.raises(error, match="name: expected a"):
            make({name: Identity()})
    with pytest.raises(ValueError, match="'keys'"):
        ModuleDict({"keys": Identity()})
    with pytest.raises(ValueError, match="'append'"):
        Sequential({"append": Identity()})


def test_nothing_makes_an_empty_container():
    assert len(ModuleList(None)) == len(ModuleList()) == len(ModuleDict(None)) == len(Sequential()) == 0
    assert Sequential()(3) == 3


def test_what_is_no_list_of_modules_is_refused():
    with pytest.raises(TypeError, match=r"^\[ModuleList\] modules: expected a list of modules, got int$"):
        ModuleList(5)
    with pytest.raises(TypeError, match=r"^\[apply\] fn: expected a callable, got int$"):
        Sequential(Tanh()).apply(5)


def test_a_dict_of_modules():
    model = ModuleDict([("b", Identity()), ("a", Tanh())])
    model.update(ModuleDict({"c": Flatten(), "b": Linear(1, 1)}))
    assert children(model) == [("b", "Linear"), ("a", "Tanh"), ("c", "Flatten")]
    assert list(model) == list(model.keys()) and list(model.items()) == list(zip(model, model.values(), strict=True))
    assert model.b is model["b"] and type(model.pop("a")) is Tanh and list(model) == ["b", "c"] and "a" not in model
    for call in (lambda: model["a"], lambda: model.pop("training"), lambda: model.__delitem__("update")):
        with pytest.raises(KeyError):
            call()
