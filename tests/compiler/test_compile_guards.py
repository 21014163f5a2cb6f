"""Numbers that a compiled function reads: when one changes, the function is recorded again."""

import array
import contextvars
import cProfile
import functools
import sys
import threading
import types
import warnings
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest

import rooflab as rl

X = rl.ones(2)


def first(y):
    return y.tolist()[0]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@dataclass
class Config:
    scale: float = 2.0
    inner: object = None
    scales: list = field(default_factory=lambda: [2.0])


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 2.0


class Named(types.SimpleNamespace):
    pass


class OfClass:
    scale = 2.0


class Derived(OfClass):
    pass


class WithProperty:
    def __init__(self):
        self._hidden = 2.0

    @property
    def scale(self):
        return self._hidden


class Callable:
    def __init__(self):
        self.parts = [Config()]

    def __call__(self, x):
        for part in self.parts:
            x = x * part.scale
        return x


class Layer(rl.nn.Module):
    def __init__(self):
        self.weight = rl.ones(2)
        self.training = True
        self.config = Config()

    def forward(self, x):
        return x * self.weight * (self.config.scale if self.training else 7.0)

    def __call__(self, x):
        return self.forward(x)


lr = 2.0
table = {"lr": 2.0, "deep": [{"lr": 2.0}]}


def set_global(name, value):
    globals()[name] = value


def scaled(x, by=2.0, *, also=1.0):
    return x * by * also


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


def cases():
    """(name, function of x that doubles it, what makes it multiply by 5)."""
    yield "global", lambda x: x * lr, lambda: set_global("lr", 5.0)
    yield "dict", lambda x: x * table["lr"], lambda: table.update(lr=5.0)
    yield "deep", lambda x: x * table["deep"][0]["lr"], lambda: table["deep"][0].update(lr=5.0)
    yield "dict replaced", lambda x: x * table["lr"], lambda: set_global("table", {"lr": 5.0})

    number, items = 2.0, [1.0, 2.0]

    def set_number():
        nonlocal number
        number = 5.0

    yield "closure", lambda x: x * number, set_number
    yield "list", lambda x: x * items[1], lambda: items.__setitem__(1, 5.0)
    yield "length", lambda x: x * len(items), lambda: items.extend([0.0] * 3)
    members = {2.0}
    yield "set", lambda x: x * sum(members), lambda: members.add(3.0)

    def inner(x):
        return x * number

    yield "nested function", lambda x: inner(x), set_number
    nested = decorated(decorated(inner))
    yield "decorated function", lambda x: nested(x), set_number
    yield "generator", lambda x: sum(x * each for each in (items[1],)), lambda: items.__setitem__(1, 5.0)

    config = Config(inner=Config(inner=Config()))
    yield "attribute", lambda x: x * config.scale, lambda: setattr(config, "scale", 5.0)
    yield "a.b.c", lambda x: x * config.inner.inner.scale, lambda: setattr(config.inner.inner, "scale", 5.0)
    yield "object replaced", lambda x: x * config.inner.scale, lambda: setattr(config, "inner", Config(5.0))
    yield "attribute's list", lambda x: x * config.scales[0], lambda: config.scales.__setitem__(0, 5.0)
    yield "getattr", lambda x: x * getattr(config, "sca" + "le"), lambda: setattr(config, "scale", 5.0)
    yield "getattr's default", lambda x: x * getattr(config, "none", 2.0), lambda: setattr(config, "none", 5.0)
    yield "vars", lambda x: x * vars(config)["scale"], lambda: setattr(config, "scale", 5.0)

    slotted, derived, hidden, space = Slotted(), Derived(), WithProperty(), Named(scale=2.0)
    yield "slot", lambda x: x * slotted.scale, lambda: setattr(slotted, "scale", 5.0)
    yield "property", lambda x: x * hidden.scale, lambda: setattr(hidden, "_hidden", 5.0)
    yield "namespace", lambda x: x * space.scale, lambda: setattr(space, "scale", 5.0)
    yield "class attribute", lambda x: x * derived.scale, lambda: setattr(OfClass, "scale", 5.0)
    yield "subclass attribute", lambda x: x * derived.scale, lambda: setattr(Derived, "scale", 5.0)
    yield "shadowed", lambda x: x * derived.scale, lambda: setattr(derived, "scale", 5.0)
    yield "class", lambda x: x * OfClass.scale, lambda: setattr(OfClass, "scale", 5.0)

    called, layer = Callable(), Layer()
    yield "callable", lambda x: called(x), lambda: setattr(called.parts[0], "scale", 5.0)
    yield "callable's list", lambda x: called(x), lambda: called.parts.append(Config(2.5))
    yield "bound method", called.__call__, lambda: setattr(called.parts[0], "scale", 5.0)
    yield "partial", functools.partial(Callable.__call__, called), lambda: setattr(called.parts[0], "scale", 5.0)
    yield "module", layer, lambda: setattr(layer.config, "scale", 5.0)
    yield "partial's dict", functools.partial(lambda d, x: x * d["lr"], table), lambda: table.update(lr=5.0)

    yield "default", lambda x: scaled(x), lambda: setattr(scaled, "__defaults__", (5.0,))
    yield "keyword default", lambda x: scaled(x), lambda: scaled.__kwdefaults__.update(also=2.5)
    yield "function replaced", lambda x: scaled(x), lambda: set_global("scaled", lambda x: x * 5.0)

    scalar, vector = [np.float32(2.0)], np.array([1.0, 2.0])
    yield "NumPy scalar", lambda x: x * float(scalar[0]), lambda: scalar.__setitem__(0, np.float32(5.0))
    yield "NumPy array", lambda x: x * float(vector[1]), lambda: vector.__setitem__(1, 5.0)

    numbers, row, shown = bytearray([2]), array.array("d", [2.0]), types.MappingProxyType({"inner": config.inner})
    window = memoryview(numbers)
    yield "bytearray", lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 5)
    yield "memoryview", lambda x: x * window[0], lambda: numbers.__setitem__(0, 5)
    yield "array", lambda x: x * row[0], lambda: row.__setitem__(0, 5.0)
    yield "mapping proxy", lambda x: x * shown["inner"].scale, lambda: setattr(config.inner, "scale", 5.0)
    weak, variable, local = weakref.ref(config.inner), contextvars.ContextVar("rate", default=2.0), threading.local()
    yield "weak reference", lambda x: x * weak().scale, lambda: setattr(config.inner, "scale", 5.0)
    yield "context variable", lambda x: x * variable.get(), lambda: variable.set(5.0)
    local.scale = 2.0
    yield "thread's own", lambda x: x * local.scale, lambda: setattr(local, "scale", 5.0)

    other, space.t = rl.ones(2), rl.ones(2)
    yield "tensor or None", lambda x: x * (5.0 if space.t is None else 2.0), lambda: setattr(space, "t", None)
    yield "tensor's shape", lambda x: x * space.t.shape[0], lambda: setattr(space, "t", rl.ones(5))
    yield "tensor's strides", lambda x: x * (1 + space.t.strides[0]), lambda: setattr(space, "t", rl.ones(2, 4)[:, 0])
    space.leaf, on_h200 = rl.ones(2, requires_grad=True), rl.ones(2, device=rl.meta("H200"))
    yield "device", lambda x: x * (2.0 if space.t.device == "cpu" else 5.0), lambda: setattr(space, "t", on_h200)
    yield "leaf", lambda x: x * (2.0 if space.leaf.is_leaf else 5.0), lambda: setattr(space, "leaf", space.leaf * 1)
    yield "requires_grad", lambda x: x * (5.0 if other.requires_grad else 2.0), other.requires_grad_
    yield "grad", lambda x: x * (2.0 if other.grad is None else 5.0), lambda: setattr(other, "grad", rl.ones(2))

    own = types.ModuleType("own_settings")
    own.lr = 2.0
    sys.modules["own_settings"] = own

    def imports(x):
        from own_settings import lr

        return x * lr

    yield "Python module", lambda x: x * own.lr, lambda: setattr(own, "lr", 5.0)
    yield "import inside", imports, lambda: setattr(own, "lr", 5.0)


@pytest.fixture
def as_they_were(monkeypatch):
    """What the cases change in this module."""
    space = globals()
    for name, value in (("lr", 2.0), ("table", {"lr": 2.0, "deep": [{"lr": 2.0}]}), ("scaled", scaled)):
        monkeypatch.setitem(space, name, value)
    monkeypatch.setattr(OfClass, "scale", 2.0)
    monkeypatch.setattr(scaled, "__defaults__", (2.0,))
    monkeypatch.setattr(scaled, "__kwdefaults__", {"also": 1.0})
    yield
    vars(Derived).get("scale") and delattr(Derived, "scale")


@pytest.mark.parametrize("name", [name for name, *_ in cases()])
def test_a_change_is_seen(name, as_they_were):
    _, function, change = next(case for case in cases() if case[0] == name)
    compiled = rl.compile(function)
    assert [first(compiled(X)) for _ in range(3)] == [2.0] * 3
    assert recordings(compiled) == 1
    change()
    assert [first(compiled(X)) for _ in range(3)] == [5.0] * 3 == [first(function(X))] * 3
    assert recordings(compiled) == 2


def recordings(compiled):
    return sum(map(len, compiled._programs.values()))


def test_the_rate_of_a_step():
    rate = 0.1
    step = rl.compile(lambda x: x - rate * x)
    assert first(step(X)) == pytest.approx(0.9)
    rate = 0.5
    assert first(step(X)) == 0.5
    rate = 0.1  # its program is still there
    assert first(step(X)) == pytest.approx(0.9) and recordings(step) == 2


def test_training_mode_and_weights():
    layer = Layer()
    compiled = rl.compile(layer)
    assert first(compiled(X)) == 2.0
    layer.training = False
    assert first(compiled(X)) == 7.0
    layer.weight.fill_(3.0)
    assert first(compiled(X)) == 21.0 and recordings(compiled) == 2
    layer.weight = rl.full((2,), 4.0)  # weights are arguments, whose values no program depends on
    assert first(compiled(X)) == 28.0 and recordings(compiled) == 2


def test_equal_values_are_the_same_and_like_ones_are_not():
    values = {"n": 2.5}
    compiled = rl.compile(lambda x: x * values["n"] if values["n"] else x / values["n"])
    for value, programs in ((2.5, 1), (float("2.5"), 1), (1, 2), (1.0, 3), (True, 4), (0.0, 5), (-0.0, 6)):
        values["n"] = value
        compiled(X)
        assert recordings(compiled) == programs
    assert first(compiled(X)) == -np.inf
    values["n"] = np.nan
    compiled(X)
    values["n"] = float("nan")
    compiled(X)
    assert recordings(compiled) == 7


def test_what_a_backward_reads_is_seen():
    slope = [2.0]

    class Sloped(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, dy):
            return dy * slope[0]

    x = rl.ones(2, requires_grad=True)
    compiled = rl.compile(lambda x: Sloped.apply(x).sum())
    found = []
    for value in (2.0, 5.0):
        slope[0], x.grad = value, None
        compiled(x).backward()
        found.append(first(x.grad))
    assert found == [2.0, 5.0]


def test_what_the_function_makes_is_not_watched():
    """Lists, objects and functions of one call are made anew in the next."""

    def function(x):
        parts, config = [], Config()

        def add(y):
            parts.append(y * config.scale)
            config.scale += 1

        for _ in range(3):
            add(x)
        return sum(parts)

    compiled = rl.compile(function)
    assert [first(compiled(X)) for _ in range(3)] == [9.0] * 3 and recordings(compiled) == 1


def test_compiled_functions_inside_are_watched_and_their_programs_are_not():
    config = Config()
    inner = rl.compile(lambda x: x * config.scale)
    outer = rl.compile(lambda x: inner(x))
    assert first(outer(X)) == 2.0
    inner(rl.ones(3)), inner(rl.ones(4))  # two programs more
    assert first(outer(X)) == 2.0 and recordings(outer) == 1
    config.scale = 5.0
    assert first(outer(X)) == 5.0


def test_a_list_that_only_grows_is_not_read():
    log, config = [], Config()
    config.log = []

    def function(x):
        log.append(config.scale)
        config.log.append(1)
        return x * config.scale

    compiled = rl.compile(function)
    assert [first(compiled(X)) for _ in range(3)] == [2.0] * 3 and log == [2.0] == [2.0 * len(config.log)]
    compiled = rl.compile(lambda x: function(x) * len(log))  # and this reads it
    assert [first(compiled(X)) for _ in range(3)] == [4.0, 6.0, 8.0]


def test_what_the_function_itself_changes():
    """It counts its calls, so no program is right twice: after some it runs as it is written, and says why."""
    config = Config(scale=0)

    def function(x):
        config.scale += 1
        return x * config.scale

    compiled = rl.compile(function)
    with pytest.warns(UserWarning, match="function runs as it is written.*it reads 'scale', which had 8 "):
        assert [first(compiled(X)) for _ in range(12)] == [float(i) for i in range(1, 13)]

    cache = {}

    def caches(x):
        if "scale" not in cache:
            cache["scale"] = 2.0
        return x * cache["scale"]

    compiled = rl.compile(caches)
    assert [first(compiled(X)) for _ in range(5)] == [2.0] * 5 and recordings(compiled) == 2


def test_a_value_that_always_changes_is_bounded():
    rate = 0.0
    step = rl.compile(lambda x: x * rate)
    with pytest.warns(UserWarning, match="it reads 'rate', which had 8 values already; pass it as a tensor") as warned:
        for i in range(20):
            rate = float(i)
            assert first(step(X)) == i
    assert len(warned) == 1


def test_too_much_to_compare_is_said():
    numbers = [0.0] * 200_000
    with pytest.warns(UserWarning, match="reads more than 100000 numbers or objects outside of tensors"):
        assert first(rl.compile(lambda x: x + numbers[7])(X)) == 1.0


@pytest.mark.parametrize("profiler", ["none", "function", "cProfile"])
def test_the_profiler_of_the_caller_goes_on(profiler):
    seen = []
    hook = cProfile.Profile() if profiler == "cProfile" else lambda frame, *_: seen.append(frame.f_code.co_name)

    def after():
        return None

    if profiler == "cProfile":
        hook.enable()
    elif profiler == "function":
        sys.setprofile(hook)
    try:
        rl.compile(lambda x: x * 2.0)(X)
        after()
    finally:
        hook.disable() if profiler == "cProfile" else sys.setprofile(None)
    if profiler == "cProfile":
        seen = [getattr(entry.code, "co_name", "") for entry in hook.getstats()]
    assert ("after" in seen) == (profiler != "none")
