"""Compiled functions keep no model alive that they were called with, nor what it leads to."""

import gc
import warnings
import weakref

import pytest

import rooflab as rl
from rooflab.compiler import compared
from rooflab.compiler.arguments import flatten
from rooflab.compiler.watched import Watched

X = rl.ones(2, 16)


class Block(rl.nn.Module):
    def __init__(self, scale=2.0):
        super().__init__()
        self.weight = rl.nn.Parameter(rl.ones(16, 16))
        self.scale = scale

    def forward(self, x):
        return x @ self.weight * self.scale

    @rl.compile
    def compiled(self, x):
        return x @ self.weight * self.scale


class Holder(rl.nn.Module):
    """An attribute leads back to it, and a list that cannot be watched weakly holds a part."""

    def __init__(self, scale):
        super().__init__()
        self.parts, self.call = [Block(scale)], self.run

    def run(self, x):
        return self.parts[0](x)


class Slotted:
    __slots__ = ("__weakref__", "scale", "table")

    def __init__(self, scale):
        self.scale, self.table = scale, rl.ones(16)


current = None


def set_current(value):
    globals()["current"] = value
    return value


of_argument = rl.compile(lambda model, x: model(x))
of_arguments = rl.compile(lambda models, x: models["a"][0](x))
of_global = rl.compile(lambda x: current(x))
of_holder = rl.compile(lambda holder, x: holder.call(x))
of_method = rl.compile(lambda call, holder, x: call(x))
of_slot = rl.compile(lambda slotted, x: x * slotted.scale * 16)

WAYS = {
    "method": (Block, lambda model: model.compiled(X)),
    "argument": (Block, lambda model: of_argument(model, X)),
    "argument's item": (Block, lambda model: of_arguments({"a": [model]}, X)),
    "global": (Block, lambda model: (set_current(model), of_global(X), set_current(None))[1]),
    "object": (Holder, lambda holder: of_holder(holder, X)),
    "bound method": (Holder, lambda holder: of_method(holder.run, holder, X)),
    "slot": (Slotted, lambda slotted: of_slot(slotted, X)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_ends_with_its_last_user(way):
    make, call = WAYS[way]
    gc.collect()
    before, refs = rl.memory.allocated(), []
    for scale in (2.0, 3.0, 4.0):  # one may get the address of the one before
        model = make(scale)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert call(model).tolist() == [[16 * scale] * 16] * 2 == call(model).tolist()
        refs.append(weakref.ref(model))
        del model
        gc.collect()
        assert refs[-1]() is None
    assert rl.memory.allocated() == before


def test_an_object_that_ends_while_it_is_compared():
    """Another thread may let it go at any time."""
    names, box = {}, Block()
    names["box"] = box
    watched = Watched([(names, dict, compared.itself, dict(names), None)], [(names, dict.clear, "names", None)])
    del box
    gc.collect()
    assert watched.change() == "box"
    assert watched.change() == "box"


def test_keys_of_objects_that_are_gone_equal_no_other():
    class Box:
        pass

    key = flatten(Box(), [])
    one = Box()  # at the same address, as a rule
    assert flatten(one, []) != key and key != flatten(one, [])
    assert flatten(one, []) == flatten(one, []) and hash(flatten(one, [])) == hash(flatten(one, []))
