"""Compiled functions that read by names that are values, or what tensors in lists are: a change is seen there too."""

import builtins
import collections
import importlib
import operator
import sys
import threading
import types
import warnings

import pytest

import rooflab as rl

X = rl.ones(2)
OWN = types.ModuleType("rooflab_own_settings")
rate = 2.0


class Config:
    shared = 2.0
    __slots__ = ("__dict__", "kept")

    def __init__(self):
        self.scale, self.inner, self.kept = 2.0, types.SimpleNamespace(scale=2.0), rl.ones(2)

    def method(self, by=1.0):
        return 2.0 * by


def set_method(owner):
    owner.method = lambda self: 5.0


def doubled():
    return 2.0


def set_rate():
    global rate
    rate = 5.0


def cases():
    """(name, function of x that doubles it, what makes it multiply by 5)."""
    config, name, same = Config(), "scale", getattr
    get, deep, both = (operator.attrgetter(*names) for names in (["scale"], ["inner.scale"], ["shared", "scale"]))
    call, keyword = operator.methodcaller("method"), operator.methodcaller("method", by=1.0)
    holder = {"get": get}
    OWN.scale, OWN.rates, doubled.scale = 2.0, [2.0], 2.0
    sys.modules["rooflab_own_settings"] = OWN

    def set_scale():
        config.scale = 5.0

    yield "attrgetter", lambda x: x * get(config), set_scale
    yield "attrgetter in a dict", lambda x: x * holder["get"](config), set_scale
    yield "attrgetter, mapped", lambda x: x * sum(map(get, [config])), set_scale
    yield "attrgetter, dotted", lambda x: x * deep(config), lambda: setattr(config.inner, "scale", 5.0)
    yield "attrgetter of two", lambda x: x * both(config)[1], set_scale
    yield "attrgetter of a module", lambda x: x * get(OWN), lambda: setattr(OWN, "scale", 5.0)
    yield "methodcaller", lambda x: x * call(config), lambda: setattr(Config, "method", lambda self: 5.0)
    yield "with a keyword", lambda x: x * keyword(config), lambda: setattr(Config, "method", lambda self, by: 5.0)
    yield "getattr, renamed", lambda x: x * same(config, "scale"), set_scale
    yield "getattr of builtins", lambda x: x * builtins.getattr(config, name), set_scale
    yield "getattr of a module", lambda x: x * getattr(OWN, name), lambda: setattr(OWN, "scale", 5.0)
    yield (
        "getattr of a class",
        lambda x: x * getattr(Config, name[:0] + "shared"),
        lambda: setattr(Config, "shared", 5.0),
    )

    class Special(Config):
        def __call__(self):
            return 2.0

    special, called = Special(), "method"
    yield "a method", lambda x: x * getattr(config, called)(), lambda: set_method(Config)
    yield "its override", lambda x: x * getattr(special, called)(), lambda: set_method(Special)
    yield "of a call", lambda x: x * special(), lambda: setattr(Special, "__call__", lambda self: 5.0)
    yield "__getattribute__", lambda x: x * object.__getattribute__(config, "scale"), set_scale
    yield "attribute of a function", lambda x: x * doubled.scale, lambda: setattr(doubled, "scale", 5.0)

    yield "__import__", lambda x: x * __import__("rooflab_own_settings").scale, lambda: setattr(OWN, "scale", 5.0)
    yield "its list", lambda x: x * __import__("rooflab_own_settings").rates[0], lambda: OWN.rates.__setitem__(0, 5.0)
    yield (
        "import_module",
        lambda x: x * importlib.import_module("rooflab_own_settings").scale,
        lambda: setattr(OWN, "scale", 5.0),
    )
    yield "globals of a frame", lambda x: x * sys._getframe().f_globals["rate"], set_rate

    row, table, queue = [rl.ones(2)], {"t": rl.ones(2)}, collections.deque([rl.ones(2)])
    nested, leaf, local = [[rl.ones(2)]], [rl.ones(2, requires_grad=True)], threading.local()
    local.t = rl.ones(2)
    yield "tensor in a list", lambda x: x * row[0].shape[0], lambda: row.__setitem__(0, rl.ones(5))
    yield "its dtype", lambda x: x * (2 if row[0].dtype == rl.float32 else 5), lambda: row.__setitem__(0, row[0].half())
    yield "in a dict", lambda x: x * table["t"].shape[0], lambda: table.update(t=rl.ones(5))
    yield "in a deque", lambda x: x * queue[0].shape[0], lambda: queue.__setitem__(0, rl.ones(5))
    yield "in a list in a list", lambda x: x * nested[0][0].shape[0], lambda: nested[0].__setitem__(0, rl.ones(5))
    yield "its grad", lambda x: x * (2 if leaf[0].grad is None else 5), lambda: leaf[0].sum().backward()
    yield "in a slot", lambda x: x * config.kept.shape[0], lambda: setattr(config, "kept", rl.ones(5))
    yield "a thread's own", lambda x: x * local.t.shape[0], lambda: setattr(local, "t", rl.ones(5))


@pytest.mark.parametrize("name", [name for name, *_ in cases()])
def test_a_change_is_seen(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "rooflab_own_settings", OWN)
    for owner, attribute in ((Config, "method"), (Config, "shared"), (sys.modules[__name__], "rate")):
        monkeypatch.setattr(owner, attribute, vars(owner)[attribute])
    _, function, change = next(case for case in cases() if case[0] == name)
    compiled = rl.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [compiled(X).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2
        change()
        assert [compiled(X).tolist() for _ in range(2)] == [[5.0, 5.0]] * 2
    assert sum(map(len, compiled._programs.values())) == 2


def test_weights_in_lists_are_recorded_once_for_each_kind():
    weights = [rl.ones(2, requires_grad=True) for _ in range(3)]
    compiled = rl.compile(lambda x: x * len(weights))
    for _ in range(3):
        assert compiled(X).tolist() == [3.0, 3.0]
        rl.stack(weights).sum().backward()
        weights[1] = rl.zeros(2, requires_grad=True)
        weights[1].grad = rl.ones(2)
    assert sum(map(len, compiled._programs.values())) == 2  # without gradients, and with them


class Proxy:
    """Stands for what is loaded when it is first asked for anything, as lazy and deprecated names of packages do."""

    def __getattribute__(self, name):
        raise AssertionError(f"asked for {name}")

    def __call__(self):
        raise AssertionError("called")


@pytest.mark.filterwarnings("error")  # falling back warns
def test_what_stands_for_others_is_asked_nothing(monkeypatch):
    package = types.ModuleType("package")
    package.rate, package.later = 2.0, Proxy()
    monkeypatch.setitem(sys.modules, "package", package)
    name = "rate"
    function = rl.compile(lambda x: x * getattr(package, name))
    assert function(rl.ones(1)).item() == 2.0
    package.rate = 3.0
    assert function(rl.ones(1)).item() == 3.0


def test_modules_that_a_library_looks_up_are_not_all_compared():
    """An autograd.Function binds its arguments by inspect, which reads sys.modules and any attribute."""

    class Double(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, dy):
            return dy * 2.0

    function = rl.compile(lambda x: Double.apply(x))
    function(rl.ones(1, requires_grad=True))
    ((program,),) = function._programs.values()
    watched = program.guards._watched._names
    assert sum(len(names) for _, _, names, *_ in watched) < 2000  # there are more modules than that
