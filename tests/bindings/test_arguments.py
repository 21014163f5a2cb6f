"""Native functions say what they take: to inspect and help(), and in one sentence when a call does not fit."""

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import rooflab as rl

x = rl.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rl.softmax(x, axis=0), r"\[softmax\] axis: no such argument; did you mean dim\? expected \(x, dim=-1"),
        (lambda: x.sum(keepdims=True), r"\[sum\] keepdims: no such argument; did you mean keepdim\?"),
        (lambda: rl.zeros(3, dtpye="int"), r"\[zeros\] dtpye: no such argument; did you mean dtype\?"),
        (lambda: rl.gelu(x, zebra=1), r"\[gelu\] zebra: no such argument; expected \(x, variant=''\)"),
        (lambda: rl.attention(x, x, x, mask=x), r"\[attention\] mask: no such argument; did you mean attn_mask\?"),
        (lambda: rl.matmul(x), r"\[matmul\] b: missing; expected \(a, b, variant=''\)"),
        (lambda: rl.matmul(x, x, "", 4), r"\[matmul\] expected at most 3 positional arguments, got 4"),
        (lambda: x.item(3), r"\[item\] expected at most 0 positional arguments, got 1"),
        (lambda: rl.add(x, "a"), r"\[add\] b: expected Tensor or float, got str"),
        (lambda: rl.add("a", x), r"\[add\] a: expected Tensor or float, got str"),
        (lambda: rl.where(x > 0, "1", 2), r"\[where\] a: expected Tensor or float, got str"),
        (lambda: rl.range("\ud800"), r"\[range\] name: expected str, got '\\ud800', which UTF-8 cannot hold"),
        (lambda: rl.gelu([1.0]), r"\[gelu\] x: expected Tensor, got list"),
        (lambda: rl.gelu(np.ones(2)), r"\[gelu\] x: expected Tensor, got ndarray"),
        (lambda: rl.rms_norm(x, 1e-5), r"\[rms_norm\] weight: expected Tensor or None, got float"),
        (lambda: rl.layer_norm(x, bias=3), r"\[layer_norm\] bias: expected Tensor or None, got int"),
        (lambda: rl.full((2,), "x"), r"\[full\] value: expected float or Tensor, got str"),
        (lambda: rl.full("ab", 1), r"\[full\] shape: expected tuple of int, got str"),
        (lambda: rl.variants("matmul", 3), r"\[variants\] device: expected str or None, got int"),
        (lambda: x.view("a"), r"\[view\] expected integers, got 'a'"),
        (lambda: x.reshape(2.5), r"\[reshape\] expected integers, got 2.5"),
        (lambda: x.sum(dim="a"), r"\[sum\] expected integers, got 'a'"),
        (lambda: x.transpose(0), r"\[transpose\] dim1: missing; expected \(dim0, dim1\)"),
        (lambda: setattr(x, "requires_grad", "yes"), r"\[requires_grad\] expected bool, got str"),
        (lambda: rl.count(3), r"\[count\] expected at most 0 positional arguments, got 1"),
        (lambda: rl.range(3), r"\[range\] name: expected str, got int"),
        (lambda: rl.memory.allocated(3), r"\[allocated\] device: expected str, got int"),
        (lambda: rl.Cost(mac=3), r"\[Cost\] mac: no such argument; did you mean macs\?"),
        (lambda: rl.cat([x, None]), r"\[cat\] tensors\[1\]: expected Tensor, got None"),
        (lambda: rl.cat(3), r"\[cat\] tensors: expected list of Tensor, got int"),
        (lambda: rl.cat(x, x), r"\[cat\] dim: expected int, got Tensor"),
        (lambda: x.split([1, "a"]), r"\[split\] size: expected int or list of int, got list"),
        (lambda: x.max("a"), r"\[max\] other or dim: expected Tensor or int, got str"),
        (lambda: x.max(2**70), r"\[max\] other or dim: expected int of 64 bits, got 1180591620717411303424"),
        (lambda: rl.manual_seed(-1), r"\[manual_seed\] seed: expected int >= 0, got -1"),
        (lambda: rl.manual_seed(rl.tensor(-3)), r"\[manual_seed\] seed: expected int >= 0, got -3"),
        (lambda: rl.max(x, 2**63), r"\[max\] other or dim: expected int of 64 bits, got 9223372036854775808"),
        (lambda: rl.set_num_threads(2**40), r"\[set_num_threads\] \w+: expected int of 32 bits, got 1099511627776"),
        (lambda: rl.set_rng_state(3), r"\[set_rng_state\] state: expected tuple\[int, int\], got int"),
        (lambda: rl.einsum("i->i", [x]), r"\[einsum\] operands: expected tensors, got list"),
        (lambda: rl.zeros(2**70), r"\[zeros\] expected integers of 64 bits, got 1180591620717411303424"),
        (lambda: rl.zeros(rl.ones(2)), r"\[zeros\] expected integers, got Tensor of shape \(2,\), float32"),
        (lambda: x * [1, 2, 3], r"\[mul\] expected a tensor, a number or an array, got list"),
        (lambda: "ab" * x[0, 0], r"\[mul\] expected a tensor, a number or an array, got str"),
    ],
)
def test_a_call_that_does_not_fit_is_one_sentence(call, sentence):
    with pytest.raises(TypeError, match=sentence) as raised:
        call()
    text = str(raised.value)
    assert "\n" not in text and "Invoked with" not in text and "_core" not in text and len(text) < 250


@pytest.mark.parametrize(
    "call",
    [
        lambda: rl.zeros(2, device="a\udcff"),
        lambda: rl.zeros(2, device="meta:a\udcff"),
        lambda: rl.zeros(2, dtype="a\udcff"),
        lambda: x.to("a\udcff"),
        lambda: rl.memory.allocated("a\udcff"),
        lambda: rl.tensor(["a\udcff"]),
    ],
)
def test_a_text_that_utf_8_cannot_hold_is_named(call):
    with pytest.raises(ValueError, match=r"^\[\w+\] ") as raised:
        call()
    assert raised.type is ValueError  # UnicodeEncodeError is one as well
    assert rl.float32 != "a\udcff"


def test_a_dim_that_cannot_be_read_is_named_without_reading_it():
    dim = rl.zeros((), dtype="int64", device="meta")
    for call in (lambda: x.sum(dim), lambda: x.sum((dim,)), lambda: rl.zeros(dim)):
        with pytest.raises(ValueError, match="a tensor on meta:cpu has no data"):
            call()
    with pytest.raises(TypeError, match=r"\[sum\] expected integers, got Tensor of shape \(\), float32"):
        rl.compile(lambda a: a.sum(a.sum()))(x)
    whole = rl.zeros(3, dtype="int64")
    with pytest.warns(UserWarning, match="arguments have no memory while they are recorded"):
        assert rl.compile(lambda a, n: a.sum(n.sum()))(x, whole).tolist() == x.sum(0).tolist()


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "std", "var", "all", "any"])
def test_numpy_functions_that_ask_the_tensor_say_what_to_call(name):
    for options in ({}, {"axis": 0}):
        with pytest.raises(TypeError, match=rf"\[{name}\] NumPy passes axis.*; call rl\.{name}\(x, dim=\.\.\.\)"):
            getattr(np, name)(x, **options)


class Unprintable(TypeError):
    def __str__(self):
        raise TypeError("of the text itself")


@pytest.mark.parametrize(
    "error",
    [
        TypeError("expected something else"),
        TypeError("incompatible function arguments"),
        RuntimeError("expected a run"),
        RuntimeError("Unable to cast Python instance"),
        Unprintable(),
    ],
    ids=repr,
)
def test_errors_of_a_users_code_stay_as_they_are(error):
    class Fails(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            raise error

    y = Fails.apply(rl.ones(2, requires_grad=True)).sum()
    with pytest.raises(type(error)) as raised:
        y.backward()
    assert raised.value is error

    class Size:
        def __index__(self):
            raise error

    with pytest.raises(type(error)) as raised:
        x.sum(dim=Size())
    assert raised.value is error


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (rl.softmax, "(x, dim=-1, variant='')"),
        (rl.add, "(a, b, variant='')"),
        (rl.zeros, "(*args, dtype='float32', device='cpu', requires_grad=False)"),
        (rl.full, "(shape, value, *, dtype=None, device='cpu', requires_grad=False)"),
        (rl.Tensor.sum, "(self, dim=None, keepdim=False, variant='', dtype=None)"),
        (rl.ones(2).sum, "(dim=None, keepdim=False, variant='', dtype=None)"),
        (rl.memory.allocated, "(device='cpu')"),
    ],
)
def test_signatures_are_known_to_inspect(function, signature):
    assert str(inspect.signature(function)) == signature
    assert function.__doc__


def test_every_public_function_has_a_signature():
    missing = []
    for owner in (rl._core, rl._core.Tensor, rl._core.memory, rl._core.cuda):
        for name in dir(owner):
            value = getattr(owner, name)
            if name.startswith("_") or not callable(value) or inspect.isclass(value) or "builtins" in repr(owner):
                continue
            try:
                inspect.signature(value)
            except ValueError:
                missing.append(name)
    assert missing == []


def test_dir_shows_what_users_call():
    names = dir(rl)
    assert {"tensor", "matmul", "profile", "plots", "no_grad", "Tensor"} <= set(names)
    assert not [name for name in names if name.startswith("_")]
    assert not {"set_cpu_blas", "add_library_directory", "annotations", "html"} & set(names)
    assert all(hasattr(rl, name) for name in names)


def test_the_package_is_typed():
    assert (rl._Path(rl.__file__).parent / "py.typed").exists()


NO_INTEGERS = [
    0.0, True, np.float32(0), np.bool_(True), Decimal(0), Fraction(0), rl.tensor(0.9), rl.tensor(True), rl.tensor([0]),
    np.array([0]),
]  # fmt: skip
TAKE_AN_INTEGER = {
    "softmax": lambda i: x.softmax(i),
    "topk": lambda i: x.topk(i),
    "argmax": lambda i: x.argmax(i),
    "cumsum": lambda i: x.cumsum(i),
    "unsqueeze": lambda i: x.unsqueeze(i),
    "transpose": lambda i: x.transpose(0, i),
    "gather": lambda i: x.gather(i, rl.zeros(2, 3, dtype="int64")),
    "cat": lambda i: rl.cat([x], i),
    "stack": lambda i: rl.stack([x], i),
    "chunk": lambda i: x.chunk(i),
    "eye": lambda i: rl.eye(i),
    "randint": lambda i: rl.randint(-9, i, (2,)),
    "linspace": lambda i: rl.linspace(0, 1, i),
    "zeros": lambda i: rl.zeros(2, i),
    "sum": lambda i: x.sum((i,)),
    "round": lambda i: x.round(decimals=i),
    "roll": lambda i: x.roll(i),
    "narrow": lambda i: x.narrow(0, 0, i),
}


@pytest.mark.parametrize("name", TAKE_AN_INTEGER)
def test_what_is_no_integer_is_refused_where_one_is_asked_for(name):
    for value in NO_INTEGERS:
        with pytest.raises(TypeError, match=rf"\[{name}\] .*expected .*(int|integers?)\b.*, got ") as raised:
            TAKE_AN_INTEGER[name](value)
        assert "\n" not in str(raised.value) and len(str(raised.value)) < 150, value


@pytest.mark.parametrize("name", TAKE_AN_INTEGER)
def test_integers_are_those_of_python_and_numpy_and_tensors_of_one(name):
    for value in (1, np.int32(1), np.uint8(1), rl.tensor(1), rl.tensor(1, dtype="int32")):
        TAKE_AN_INTEGER[name](value)


def test_integers_of_numpy_do_not_wrap_around():
    numbers = rl.arange(300)
    assert numbers.roll(np.uint8(1)).tolist() == numbers.roll(1).tolist()
    assert numbers.roll((np.uint8(1),), (np.int8(0),)).tolist() == numbers.roll(1).tolist()
    assert numbers.narrow(0, np.uint8(200), np.uint8(100)).tolist() == list(range(200, 300))


def test_the_error_names_the_parameter_and_the_value():
    with pytest.raises(TypeError, match=r"^\[softmax\] dim: expected int, got float 0.5$"):
        x.softmax(0.5)
    with pytest.raises(TypeError, match=r"^\[softmax\] dim: expected int, got Tensor of shape \(\), float32$"):
        x.softmax(rl.tensor(0.5))
    with pytest.raises(TypeError, match=r"^\[round\] decimals: expected an integer, got Decimal 0.5$"):
        x.round(decimals=Decimal("0.5"))


def test_a_tensor_that_requires_grad_is_no_float():
    eps = rl.tensor(0.5, requires_grad=True)
    told = "float.*, got Tensor of shape .*, that requires grad: its gradient would be lost, write .item()"
    with pytest.raises(TypeError, match=rf"\[rms_norm\] eps: expected {told}"):
        rl.rms_norm(x, rl.ones(3), eps=eps)
    with pytest.raises(TypeError, match=rf"\[attention\] scale: expected {told}"):
        rl.attention(x[None, None], x[None, None], x[None, None], scale=eps)
    assert rl.rms_norm(x, rl.ones(3), eps=eps.detach()).shape == x.shape


def test_max_and_min_of_two_tensors_are_those_of_their_elements():
    low = rl.tensor([0.0, 5.0])
    for other in (rl.tensor(1), rl.tensor(1.0), rl.tensor([1.0]), rl.tensor([[1.0, 1.0]])):
        assert low.max(other).flatten().tolist() == rl.max(low, other).flatten().tolist() == [1, 5]
        assert low.min(other).flatten().tolist() == rl.min(low, other).flatten().tolist() == [0, 1]
