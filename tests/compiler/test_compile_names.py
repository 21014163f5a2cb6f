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
from rooflab.compiler.names import names_in

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


def raises():
    return INNER.absent


INNER = types.SimpleNamespace()


def absences():
    """The same, where what changes it is a name that was absent, or a class."""

    class Meta(type):
        of_meta = 2.0

    class Base:
        def method(self):
            return 2.0

    class Derived(Base, metaclass=Meta):
        pass

    class Other:
        def method(self):
            return 5.0

    class Lazy:
        def __getattr__(self, name):
            return 2.0

    class Twice(rl.nn.Module):
        def forward(self, x):
            return x * 2

    class FiveTimes(rl.nn.Module):
        def forward(self, x):
            return x * 5

    one, lazy, plain, own, name = Derived(), Lazy(), Base(), types.ModuleType("own"), "ab"
    module = rl.nn.Sequential(Twice())

    def tries(read):
        def function(x):
            try:
                return x * read()
            except (AttributeError, NameError):
                return x * 2

        return function

    def put(owner, name="absent"):
        return lambda: setattr(owner, name, 5.0)

    def becomes_other():
        plain.__class__ = Other

    def becomes_five():
        module[0].__class__ = FiveTimes

    def gets_base():
        Derived.__bases__ = (Other,)

    yield "getattr of a class", lambda x: x * getattr(Derived, "absent", 2.0), put(Derived)
    yield "of its base", lambda x: x * getattr(Derived, "absent", 2.0), put(Base)
    yield "of an object's base", lambda x: x * getattr(one, "absent", 2.0), put(Base)
    yield "of a Python module", lambda x: x * getattr(own, "absent", 2.0), put(own)
    yield "hasattr of a class", lambda x: x * (5 if hasattr(Base, "absent") else 2), put(Base)
    yield "a computed name", lambda x: x * getattr(plain, name + "sent", 2.0), put(plain)
    yield "a computed name of a class", lambda x: x * getattr(Base, name + "sent", 2.0), put(Base)
    yield "try", tries(lambda: plain.absent), put(plain)
    yield "try of a class", tries(lambda: Base.absent), put(Base)
    yield "try of a Python module", tries(lambda: own.absent), put(own)
    yield "try elsewhere", tries(raises), lambda: monkey.setattr(INNER, "absent", 5.0, raising=False)
    yield "try of builtins", tries(lambda: rooflab_absent), lambda: put_built_in(5.0)  # noqa: F821
    yield "__getattr__", lambda x: x * lazy.absent, put(lazy)
    yield "metaclass", lambda x: x * Derived.of_meta, put(Meta, "of_meta")
    yield "class of an object", lambda x: x * plain.method(), becomes_other
    yield "isinstance", lambda x: x * (2 if isinstance(plain, Base) else 5), becomes_other
    yield "class of a child", module, becomes_five
    yield "bases of a class", lambda x: x * one.method(), gets_base
    yield "vars", lambda x: x * (2 + 3 * len(vars(plain))), put(plain)
    yield "dir", lambda x: x * (5 if "absent" in dir(Base) else 2), put(Base)
    yield "__dict__", lambda x: x * Base.__dict__.get("absent", 2.0), put(Base)


monkey = pytest.MonkeyPatch()


def put_built_in(value):
    monkey.setattr(builtins, "rooflab_absent", value, raising=False)


@pytest.mark.parametrize("name", [name for name, *_ in absences()])
def test_what_was_absent_and_classes_are_seen(name):
    _, function, change = next(case for case in absences() if case[0] == name)
    compiled = rl.compile(function)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [compiled(X).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2
            assert sum(map(len, compiled._programs.values())) == 1
            change()
            assert [compiled(X).tolist() for _ in range(2)] == [[5.0, 5.0]] * 2
    finally:
        monkey.undo()
    assert sum(map(len, compiled._programs.values())) == 2


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


def test_modules_that_a_library_looks_up_are_not_all_compared(monkeypatch):
    """An autograd.Function binds its arguments by inspect, which reads sys.modules and any attribute."""

    class Double(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, dy):
            return dy * 2.0

    def watched_names():
        function = rl.compile(lambda x: Double.apply(x))
        function(rl.ones(1, requires_grad=True))
        ((program,),) = function._programs.values()
        return sum(len(absent) + len(names) for *_, absent, names, _, _ in program.guards._watched._names)

    before = watched_names()
    assert before < 2000  # there are more modules than that
    for i in range(100):  # with names that inspect asks for
        module = types.ModuleType(f"rooflab_own_{i}")
        module.partial, module.get = types.FunctionType(doubled.__code__, {}), type("Own", (), {})
        monkeypatch.setitem(sys.modules, module.__name__, module)
    assert before < watched_names() <= before + 4 * 100  # none that its function and its class lack


@pytest.mark.parametrize(
    "read",
    [
        lambda owner: getattr(owner, "rate"),  # noqa: B009
        lambda owner: getattr(owner, "rate", 5.0),
        lambda owner: 2.0 if hasattr(owner, "rate") else 5.0,
        lambda owner: getattr(owner, "rates", [owner, 1.0 + getattr(owner, "one", 1.0)])[-1],
    ],
)
def test_other_attributes_that_appear_do_not_count_where_names_are_constants(read):
    class Own:
        rate = 2.0

    owner = Own()
    compiled = rl.compile(lambda x: x * read(owner))
    for i in range(3):
        assert compiled(X).tolist() == [2.0, 2.0]
        setattr(owner, f"other_{i}", i)
        setattr(Own, f"class_{i}", i)
    assert sum(map(len, compiled._programs.values())) == 1


def test_a_module_that_lacks_what_it_is_asked_for_may_get_other_attributes():
    class Scaled(rl.nn.Module):
        def forward(self, x):
            return x * (self.rate if hasattr(self, "rate") else 2.0)

    model = Scaled()
    compiled = rl.compile(model)
    for i in range(3):
        assert compiled(X).tolist() == [2.0, 2.0]
        setattr(model, f"other_{i}", i)
    assert sum(map(len, compiled._programs.values())) == 1
    model.rate = 5.0
    assert compiled(X).tolist() == [5.0, 5.0]


def test_which_names_are_constants():
    """Others may be any name."""
    constant = [
        lambda s: getattr(s.one(1, 2), "k", max(3, 4)),
        lambda s: getattr(getattr(s, "k"), "j"),  # noqa: B009
        lambda s: getattr(s, "k", "j" + s.m),
    ]
    computed = [
        lambda s: getattr(s, "k" + s.m),
        lambda s: getattr(s, "k".upper()),
        lambda s: getattr(s, s.m, "k"),
        lambda s: getattr(s, "k" if s else "j"),
        lambda s: getattr(s, "k") + getattr(s, s.m),  # noqa: B009
        lambda s: list(map(getattr, [s], ["k"])),
        lambda s: getattr(*s, "k"),
        lambda s: (getattr(s, "k"), vars(s)),  # noqa: B009
        lambda s: getattr(s, "__dict__"),  # noqa: B009
    ]
    assert [names_in(each.__code__).any_attribute for each in constant] == [False] * len(constant)
    assert all("k" in names_in(each.__code__).attributes for each in constant)
    assert [names_in(each.__code__).any_attribute for each in computed] == [True] * len(computed)
