"""rl.compile beside other threads, processes and checkpoints, and what its programs keep alive."""

import collections
import contextvars
import dataclasses
import gc
import os
import threading
import time
import types
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import rooflab as rl
from rooflab import nn
from rooflab.compiler import turns

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


def in_threads(count, call):
    """What `call(number)` returns in as many threads that begin together."""
    start = threading.Barrier(count)

    def begin(number):
        start.wait()
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def model():
    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(6)])


def test_threads_that_call_a_function_for_the_first_time():
    for size in range(1, 15):
        m = model()
        x = rl.ones(size, 4)
        f, wanted = rl.compile(m), m(x).detach()
        for y in in_threads(3, lambda _, f=f, x=x: f(x)):
            rl.testing.assert_close(y.detach(), wanted.numpy(), rtol=1e-5)


def test_threads_of_which_some_run_as_it_is_written():
    """While one thread records a function on these modules, the others wait to run theirs."""
    m = model()
    reads = rl.compile(lambda x: m(x) * float(x.sum()))
    records = rl.compile(lambda x: m(x) * 2)

    def call(number):
        return [(reads if number else records)(rl.ones(1 + 3 * i + number, 4)).shape for i in range(20)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes = in_threads(3, call)
    assert shapes == [[(1 + 3 * i + number, 4) for i in range(20)] for number in range(3)]


def test_a_function_may_wait_for_a_thread_that_calls_another():
    other = rl.compile(lambda x: x * 2)

    def asks(x):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other, rl.ones(3)).result(timeout=20)
        return x + 1

    assert rl.compile(asks)(rl.ones(3)).tolist() == [2.0] * 3


@pytest.mark.parametrize("swallows", [False, True])
def test_a_function_that_waits_for_threads_that_use_its_modules(swallows, monkeypatch):
    """They would get the tensors of the recording. It is waited for once, and no more with other arguments."""
    monkeypatch.setattr(turns, "_PATIENCE", 0.3)

    class Branches(nn.Module):
        def __init__(self):
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            with ThreadPoolExecutor(2) as pool:
                parts = [pool.submit(branch, x) for branch in branches]
                if swallows and any(part.exception() for part in parts):
                    return x * 0
                return parts[0].result() + parts[1].result()

    m = Branches()
    branches = [rl.compile(m.a), rl.compile(m.b)]
    f = rl.compile(m)
    start = time.perf_counter()
    with pytest.warns(UserWarning, match="do not compile a function that starts threads"):
        y = f(rl.ones(2, 4))
    monkeypatch.setattr(turns, "_PATIENCE", 30.0)
    rl.testing.assert_close(y.detach(), m(rl.ones(2, 4)).detach().numpy())
    rl.testing.assert_close(f(rl.ones(3, 4)).detach(), m(rl.ones(3, 4)).detach().numpy())
    assert time.perf_counter() - start < 15.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_of_a_process_that_records():
    m = nn.Linear(2, 2)
    inside, over = threading.Event(), threading.Event()

    def slow(x):
        inside.set()
        over.wait(20)
        return m(x)

    thread = threading.Thread(target=lambda: rl.compile(slow)(rl.ones(1, 2)))
    thread.start()
    inside.wait(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads
        child = os.fork()
    if child == 0:
        good = m.weight.device == "cpu" and rl.compile(m)(rl.ones(1, 2)).shape == (1, 2)
        os._exit(0 if good else 1)
    over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_function_that_is_first_called_in_a_checkpoint():
    x = rl.ones(3, requires_grad=True)
    y = rl.autograd.checkpoint(rl.compile(lambda x: rl.tanh(x) * 2), x)
    y.sum().backward()
    (wanted,) = rl.autograd.grad((rl.tanh(x) * 2).sum(), [x])
    rl.testing.assert_close(x.grad, wanted.numpy(), rtol=1e-6)


def test_the_memory_of_the_first_arguments_is_freed():
    f = rl.compile(lambda x, w: ((y := x @ w).sum(), y))
    f(rl.ones(2, 2), rl.ones(2, 2, requires_grad=True))[0].backward()
    before = rl.memory.allocated("cpu")
    x, w = rl.ones(64, 64), rl.ones(64, 64, requires_grad=True)
    f(x, w)[0].backward()
    del x, w
    assert rl.memory.allocated("cpu") == before


@dataclasses.dataclass(frozen=True)
class Scale:
    by: float = 2.0


class Part:
    by = 2.0


class Slotted:
    """It has no weak references."""

    __slots__ = ("part",)

    def __init__(self):
        self.part = Part()


def test_arguments_that_are_made_anew():
    x = rl.ones(2)
    for make in (Scale, lambda: Fraction(2), lambda: {"a": (2, 2.0, None, "b")}):
        f = rl.compile(lambda x, scale: (x * 2).exp())
        for _ in range(5):
            f(x, make())
        assert len(f._programs) == 1
    f, refs = rl.compile(lambda x, scale: x * scale.part.by), []

    def call():
        scale = Slotted()
        refs.append(weakref.ref(scale.part))
        return f(x, scale).tolist()

    for _ in range(64):
        call()
    with pytest.warns(UserWarning, match="64 calls differed in nothing but which objects"):
        assert call() == [2.0, 2.0]
    assert call() == [2.0, 2.0] and not f._programs and not any(ref() for ref in refs)
    f = rl.compile(lambda x, scale: x * scale.by)
    for size in range(70):
        f(rl.ones(size), Scale())
    assert len(f._alike) <= len(f._programs) == 64


def test_models_that_are_replaced_are_freed():
    refs = []
    holder = {}
    step = rl.compile(lambda x: holder["model"](x))
    with pytest.warns(UserWarning):
        for _ in range(80):
            holder["model"] = nn.Linear(2, 2)
            refs.append(weakref.ref(holder["model"]))
            step(rl.ones(1, 2))
    holder.clear()
    gc.collect()
    assert not any(ref() for ref in refs)


def test_errors_of_shapes_may_be_caught():
    """They are the same when the function runs."""

    def flat(x):
        try:
            y = x.T.view(-1)
        except ValueError:
            y = x.T.reshape(-1)
        return y * 2

    x = rl.arange(6).float().reshape(2, 3)
    assert rl.compile(flat)(x).tolist() == flat(x).tolist()


def test_a_module_that_assigns_once():
    class Notes(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.shape = nn.Linear(3, 3), None

        def forward(self, x):
            if self.shape is None:
                self.shape = tuple(x.shape)
            return self.linear(x) * 2

    m = Notes()
    f = rl.compile(m)
    x = rl.ones(2, 3)
    for _ in range(3):
        rl.testing.assert_close(f(x).detach(), m(x).detach().numpy(), rtol=1e-6)
    assert m.shape == (2, 3) and [len(programs) for programs in f._programs.values()] == [1]


def test_classes_out_of_range():
    f = rl.compile(lambda i: nn.functional.one_hot(i, 5))
    assert f(rl.tensor([0, 4])).tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    with pytest.raises(ValueError, match=r"\[one_hot\]"):
        f(rl.tensor([0, 7]))


class Slot:
    __slots__ = ("kept",)

    def __init__(self):
        self.kept = None


def places_that_outlive_a_call():
    """By name: a function that keeps a tensor somewhere, and what is there afterwards."""
    table, cell, variable = {}, None, contextvars.ContextVar("variable", default=None)
    lists = collections.defaultdict(list)
    recent = collections.deque(maxlen=2)
    attribute, slot, nested = types.SimpleNamespace(kept=None), Slot(), [{"kept": [1]}]

    class OfClass:
        kept = None

    def in_cell(y):
        nonlocal cell
        cell = y

    def in_table(y):
        if "kept" not in table:
            table["kept"] = y

    def in_list(y):
        lists["kept"].append(y)

    def in_deque(y):
        recent.append(y)

    def in_nested(y):
        nested[0]["kept"][0] = y

    def in_attribute(y):
        attribute.kept = y

    def in_slot(y):
        slot.kept = y

    def in_class(y):
        OfClass.kept = y

    def in_variable(y):
        variable.set(y)

    return {
        "cell": (in_cell, lambda: cell),
        "dict": (in_table, lambda: table.get("kept")),
        "defaultdict": (in_list, lambda: lists["kept"][-1]),
        "deque": (in_deque, lambda: recent[-1]),
        "nested": (in_nested, lambda: nested[0]["kept"][0]),
        "attribute": (in_attribute, lambda: attribute.kept),
        "slot": (in_slot, lambda: slot.kept),
        "class": (in_class, lambda: OfClass.kept),
        "context variable": (in_variable, variable.get),
    }


@pytest.mark.parametrize("name", places_that_outlive_a_call())
def test_a_tensor_that_is_kept_in_what_outlives_the_call(name):
    keep, kept = places_that_outlive_a_call()[name]
    f = rl.compile(lambda x: (keep(x * 2), x + 1)[1])
    with pytest.warns(UserWarning, match="keeps a tensor that it makes"):
        assert f(rl.ones(2)).tolist() == [2.0, 2.0]
    assert kept().tolist() == [2.0, 2.0]
    f(rl.ones(2) * 2)
    assert kept().tolist() == ([2.0, 2.0] if name == "dict" else [4.0, 4.0])


def test_hooks_and_addresses():
    x = rl.ones(2, requires_grad=True)
    f = rl.compile(lambda x: (x.register_hook(lambda g: g * 10), x * 1)[1])
    with pytest.warns(UserWarning, match="a hook of a tensor that outlives the call"):
        f(x)
    (x * 1).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    with pytest.warns(UserWarning, match=r"\[data_ptr\] an address"):
        assert rl.compile(lambda x: (x.data_ptr(), x * 2))(x)[0] == x.data_ptr()


def test_attributes_of_a_compiled_module():
    class Watches(nn.Linear):
        def __setattr__(self, name, value):
            super().__setattr__(name, value if name != "z" else value + 1)

    m = rl.compile(Watches(2, 2))
    m.z = 5
    assert m.z == m._function.z == 6
    del m.z
    assert not hasattr(m._function, "z")
