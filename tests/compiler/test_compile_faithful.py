"""What a function sees of its arguments, and what it does to them and to modules, is as without rl.compile."""

import copy
import dataclasses
import enum
import functools
import pickle

import numpy as np
import pytest

import rooflab as rl
from rooflab import nn

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


def refused(reason):
    return pytest.warns(UserWarning, match=f"runs as it is written, op by op: .*{reason}")


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(rl.full((3,), float(i))) for i in (2, 5, 50))

    def forward(self, x):
        return x * self.a - self.b


def test_weights_that_change_places():
    m = Pair()
    f = rl.compile(m)
    x = rl.ones(3)
    assert f(x).tolist() == m(x).tolist() == [-3.0] * 3
    first = m.a
    del m.a
    m.a = first  # behind the others now
    assert f(x).tolist() == [-3.0] * 3
    m.b = m.a
    assert f(x).tolist() == [0.0] * 3
    m.a = m.c  # another two are one now
    assert f(x).tolist() == m(x).tolist() == [48.0] * 3


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", rl.zeros(2))
        self.calls = 0

    def forward(self, x):
        self.mean = 0.5 * self.mean + x
        return x + self.mean


def test_a_buffer_that_is_assigned():
    plain, m = Average(), Average()
    f = rl.compile(m)
    with refused("keeps a tensor that it makes"):
        for _ in range(3):
            assert f(rl.ones(2)).tolist() == plain(rl.ones(2)).tolist()
            assert m.mean.tolist() == plain.mean.tolist()
    assert m.mean.tolist() == [1.75, 1.75]


def test_attributes_of_a_module():
    """A number that is counted, a tensor that is kept, a list of tensors; a number that is added is a cache."""

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.calls, self.seen = nn.Parameter(rl.ones(2)), 0, []

    def counts(m, x):
        m.calls += 1
        return x * m.weight

    def keeps(m, x):
        m.last = x * 2
        return m.last * m.weight

    def collects(m, x):
        m.seen.append(x * 2)
        return x * m.weight

    def adds(m, x):
        if not hasattr(m, "size"):
            m.size = x.numel()
        return x * m.weight * m.size

    for forward, look, reason in (
        (counts, lambda m: m.calls, "assigns 'calls' in a module"),
        (keeps, lambda m: m.last.tolist(), "keeps a tensor that it makes"),
        (collects, lambda m: [x.tolist() for x in m.seen], "keeps a tensor that it makes"),
    ):
        m, plain = Keeps(), Keeps()
        f = rl.compile(functools.partial(forward, m))
        with refused(reason):
            for i in (1, 2, 3):
                assert f(rl.full((2,), i)).tolist() == forward(plain, rl.full((2,), i)).tolist()
                assert look(m) == look(plain)
    m = Keeps()
    f = rl.compile(functools.partial(adds, m))
    assert [f(rl.ones(2)).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2 and m.size == 2


def test_gradients_that_are_read_or_cleared():
    w = rl.ones(2, requires_grad=True)
    step = rl.compile(lambda p: p if p.grad is None else p - 0.5 * p.grad)
    with refused("reads the grad of an argument"):
        step(w)
    (w * w).sum().backward()
    assert step(w).tolist() == [0.0, 0.0]

    layer = nn.Linear(3, 1)
    optimizer = rl.optim.AdamW(layer.parameters())
    for clear in (layer.zero_grad, optimizer.zero_grad):
        f = rl.compile(lambda x, clear=clear: (clear(), layer(x).sum())[1])
        with refused("grad"):
            for _ in range(3):
                f(rl.ones(2, 3)).backward()
                assert layer.weight.grad.flatten().tolist() == [2.0] * 3


def test_an_error_that_is_caught():
    def value(x):
        try:
            return x * x.max().item()
        except ValueError:
            return x * 0

    def choice(x):
        try:
            return x * 2 if (x > 0).all() else x
        except ValueError:
            return x * 0

    for function in (value, choice):
        with refused("value|no data"):
            assert rl.compile(function)(rl.full((2,), 3.0)).tolist() == function(rl.full((2,), 3.0)).tolist()


def test_the_device_is_that_of_the_arguments():
    def seen(x):
        y = x + 1
        return y.device, str(x.device), x.device.type, y.to(x.device).device == "cpu", rl.zeros(2, device=x.device) + y

    wanted, found = seen(rl.ones(2)), rl.compile(seen)(rl.ones(2))
    assert found[:4] == wanted[:4] == ("cpu", "cpu", "cpu", True)
    assert found[4].tolist() == [2.0, 2.0]
    with refused(r"no data|\[repr\] reads the value"):
        assert rl.compile(lambda x: (x * 2, f"{x + 1}"))(rl.ones(2))[1] == str(rl.full((2,), 2.0))


def test_one_object_twice():
    f = rl.compile(lambda q, k: q * 2 if q is k else q * k)
    x, y = rl.full((2,), 3.0), rl.full((2,), 5.0)
    for q, k, result in ((x, x, 6.0), (x, x.detach(), 9.0), (x, y, 15.0), (y, x, 15.0), (y, y, 10.0)):
        assert f(q, k).tolist() == [result] * 2
    g = rl.compile(lambda q, k: (q * k).sum())
    x.requires_grad = True
    g(x, x).backward()
    assert x.grad.tolist() == [6.0, 6.0]
    layer = nn.Linear(2, 2)
    h = rl.compile(lambda x, w: layer(x) if w is layer.weight else x * 0)
    assert h(y, layer.weight).tolist() == layer(y).tolist()


def test_a_result_of_an_op_is_no_leaf():
    f = rl.compile(lambda x: x * 2 if x.is_leaf else x * 3)
    x = rl.ones(2, requires_grad=True)
    assert f(x).tolist() == [2.0, 2.0]
    with refused("how an argument was made"):
        assert f(x + 0).tolist() == [3.0, 3.0]
    g = rl.compile(lambda x: x * 2 if x.requires_grad else x * 3)
    with rl.no_grad():
        assert g(x).tolist() == [2.0, 2.0]
    assert g(x.detach()).tolist() == [3.0, 3.0]


class Mode(enum.Enum):
    SUM = 1


@dataclasses.dataclass(frozen=True)
class Scale:
    by: object
    note: object = dataclasses.field(default=0, compare=False)


class Alike:
    def __init__(self, by):
        self.by = by

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_equal_arguments_that_are_not_the_same():
    i = rl.tensor([2])

    def first(scales):
        return i * next(iter(scales))

    for function, calls in (
        (lambda x, d: next(x * key for key in d), [{2: 0}, {2.0: 0}, {True: 0}]),
        (lambda x, s: x * next(iter(s)), [frozenset({2}), frozenset({2.0})]),
        (lambda x, c: x * c.by, [Scale(2), Scale(2.0)]),
        (lambda x, c: x * c.note, [Scale(1, note=2), Scale(1, note=3)]),
        (lambda x, c: x * c.by, [Alike(2), Alike(3)]),
        (lambda x, z: x * float(np.copysign(1, z)), [np.float64(0.0), np.float64(-0.0)]),
        (lambda x, z: x * float(np.copysign(1, z.imag)), [complex(0, 0.0), complex(0, -0.0)]),
        (lambda x, r: x * r.start, [range(1, 1), range(2, 2)]),
        (lambda x, k: x * (2 if type(k) is bool else 3), [True, 1, np.int64(1)]),
    ):
        compiled = rl.compile(function)
        for argument in [*calls, *calls]:
            wanted, found = function(i, argument), compiled(i, argument)
            assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist()), argument
    with rl.count() as c:
        compiled = rl.compile(lambda x, mode, scale: x * 2 + 1 if mode is Mode.SUM else x)
        for _ in range(3):
            compiled(i, Mode.SUM, (1.5, None, "same"))
    assert c.launches == 3


def test_arguments_that_are_changed():
    def appends(x, taken):
        taken.append(x * 2)
        return x + 1

    def stores(x, taken):
        taken["y"] = x * 2
        return x + 1

    def replaces(x, taken):
        taken[0] = taken[0] * 2
        return taken[0] + x

    for function, make in ((appends, list), (stores, dict), (replaces, lambda: [rl.ones(2)])):
        f, found, wanted = rl.compile(function), make(), make()
        with refused("a list or a dict among the arguments is changed"):
            for _ in range(3):
                assert f(rl.ones(2), found).tolist() == function(rl.ones(2), wanted).tolist()
        assert len(found) == len(wanted)


def test_requires_grad_that_is_changed():
    layer = nn.Linear(2, 2)
    x = rl.ones(2)
    for function, reason in (
        (lambda x: (layer.requires_grad_(False), layer(x))[1], "of an argument is changed"),
        (lambda x: x.requires_grad_() * 2, "of an argument is changed"),
        (lambda x: (x * 2).detach().requires_grad_(), "a result is a leaf that requires grad"),
    ):
        with refused(reason):
            y = rl.compile(function)(x)
    assert not layer.weight.requires_grad and x.requires_grad and y.is_leaf
    with refused("retain_grad"):
        kept = []
        f = rl.compile(lambda x: (kept.append(x * 2), kept[-1].retain_grad(), kept[-1].sum())[2])
        f(x).backward()


def test_an_argument_that_comes_back():
    x = rl.ones(2, requires_grad=True)
    y, z = rl.compile(lambda x: (x.to(x.dtype), x * 2))(x)
    (y * z).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_functions_that_call_themselves_or_each_other():
    def make():
        def power(x, n):
            return x if n == 0 else power(x * 2, n - 1)

        def even(x, n):
            return x if n == 0 else odd(x + 1, n - 1)

        def odd(x, n):
            return x * 2 if n == 0 else even(x, n - 1)

        return rl.compile(power), rl.compile(even)

    power, even = make()
    assert power(rl.ones(1), 3).tolist() == [8.0] and even(rl.ones(1), 3).tolist() == [6.0]
    holds_itself = [nn.Linear(1, 1)]
    holds_itself.append(holds_itself)
    assert rl.compile(lambda x: holds_itself[0](x))(rl.ones(1)).shape == (1,)


def test_a_copy_of_a_compiled_module():
    model = rl.compile(nn.Linear(2, 2))
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert copied(rl.ones(2)).tolist() == model(rl.ones(2)).tolist()
        assert copied.weight is not model.weight
    model.scale = 3
    assert model._function.scale == model.scale == 3


def test_lists_outside_that_only_get_more():
    """Texts that a function notes are noted when it is recorded; tensors would have no values."""
    seen, noted = [], []

    def keeps(x):
        noted.append("called")
        seen.append(x * 2)
        return x + 1

    f = rl.compile(keeps)
    with refused("keeps a tensor that it makes"):
        for _ in range(2):
            f(rl.ones(2))
    assert [x.tolist() for x in seen] == [[2.0, 2.0]] * 2


def test_results_that_are_one_tensor():
    x = rl.ones(2, requires_grad=True)

    @rl.compile
    def function(x):
        y, z = x * 2, x * 3
        return y, {"y": y, "z": z}, [y.contiguous(), x]

    y, named, listed = function(x)
    assert y is named["y"] is listed[0] and listed[1] is x and named["z"].tolist() == [3.0] * 2
    (y + named["y"]).sum().backward()
    assert x.grad.tolist() == [4.0] * 2
