"""Expressions that a PyTorch or NumPy user tries first, with what they give.

Each line of at_home.txt is checked as it stands. It starts from `x`, `m`, `i`, `b`, `w` as defined below. `->` means
"prints as", and `!!` means "raises, and says".
"""

import copy
import importlib
import math
import operator
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import rooflab as rl
from rooflab import _habits
from rooflab._habits.options import OPTIONS

PAGE = Path(__file__).with_name("at_home.txt").read_text(encoding="utf-8")

STATEMENTS = {
    "x += 1; x": "tensor([2., 3., 4.])",
    "y = x; y *= 2; x": "tensor([2., 4., 6.])",
    "x[0] = 9; x": "tensor([9., 2., 3.])",
    "x[1:] = 0; x": "tensor([1., 0., 0.])",
    "x[1:] = x[:-1]; x": "tensor([1., 1., 2.])",
    "x[::-1] = x.clone(); x": "tensor([3., 2., 1.])",
    "x[[0, 2]] = 5; x": "tensor([5., 2., 5.])",
    "x[[0, 2]] = [7, 8]; x": "tensor([7., 2., 8.])",
    "x[x > 1] = 0; x": "tensor([1., 0., 0.])",
    "x[x > 1] *= 10; x": "tensor([ 1., 20., 30.])",
    "x[i] = -x; x": "tensor([-1., -2., -3.])",
    "m[:, 0] = x[:2]; m[:, 0]": "tensor([1., 2.])",
    "m[m > 2] = rl.tensor([7.0, 8.0, 9.0]); m[1]": "tensor([7., 8., 9.])",
    "m[1] += 1; m[1]": "tensor([4., 5., 6.])",
    "m[[1, 0]] = m.clone(); m[0]": "tensor([3., 4., 5.])",
    "x.numpy()[0] = 5; x": "tensor([5., 2., 3.])",
    "np.array(x)[0] = 5; x": "tensor([1., 2., 3.])",
    "a, c, d = x; c": "tensor(2.)",
    "y = x[1:]; y += 10; x": "tensor([ 1., 12., 13.])",
    "(w * x).sum().backward(); w.grad": "tensor([1., 2., 3.])",
    "w[1:].sum().backward(); w.grad": "tensor([0., 1., 1.])",
    "w[[0, 0, 2]].sum().backward(); w.grad": "tensor([2., 0., 1.])",
    "w[w > 1].sum().backward(); w.grad": "tensor([0., 1., 1.])",
    "h = w * 2; h += 1; (h * h).sum().backward(); w.grad": "tensor([12., 20., 28.])",
    "x += np.ones(3, 'float32'); x": "tensor([2., 3., 4.])",
    "o = rl.optim.AdamW([w]); w.sum().backward(); o.zero_grad(set_to_none=False); w.grad": "tensor([0., 0., 0.])",
    "o = rl.optim.AdamW([w]); w.sum().backward(); o.zero_grad(); w.grad": "None",
    "l = rl.nn.Linear(3, 1); l(m).sum().backward(); l.zero_grad(set_to_none=False); l.bias.grad": "tensor([0.])",
}


def names():
    return {
        "x": rl.tensor([1.0, 2.0, 3.0]),
        "m": rl.arange(6).to("float32").reshape(2, 3),
        "i": rl.arange(3),
        "b": rl.tensor([True, False, True]),
        "w": rl.tensor([1.0, 2.0, 3.0], requires_grad=True),
        **{module.__name__: module for module in (copy, math, ml_dtypes, operator, pickle, pytest)},
        "np": np,
        "rl": rl,
    }


def lines(mark):
    found = []
    for line in PAGE.splitlines():
        if line and not line.startswith("#") and f" {mark} " in line:
            found.append(tuple(part.strip() for part in line.split(f" {mark} ", 1)))
    return found


def printed(value):
    return str(value).replace("\n", "")


@pytest.fixture(autouse=True)
def _print_options():
    """One of the hints sets them."""
    with np.printoptions():
        yield


@pytest.mark.parametrize(("expression", "expected"), lines("->"))
def test_it_prints(expression, expected):
    assert printed(eval(expression, names())) == expected


@pytest.mark.parametrize(("expression", "says"), lines("!!"))
def test_it_says(expression, says):
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError, ZeroDivisionError)) as raised:
        eval(expression, names())
    text = str(raised.value)
    assert says in text
    assert "Invoked with" not in text and "incompatible" not in text and len(text) < 1000


@pytest.mark.parametrize(("statements", "expected"), list(STATEMENTS.items()))
def test_it_leaves(statements, expected):
    *before, last = statements.split("; ")
    space = names()
    for statement in before:
        exec(statement, space)
    assert printed(eval(last, space)) == expected


def writable():
    space = names() | {"x": rl.rand(2, 3) + 0.5, "y": rl.rand(2, 3), "array": np.ones((2, 3), np.float32)}
    space["w"].grad = rl.ones(3)
    space |= {"model": rl.nn.Linear(3, 2), "optimizer": rl.optim.AdamW([space["w"]]), "scipy": scipy}
    space["prof"] = rl.profile()
    return space | {"mask": space["x"] > 1, "index": rl.tensor([[0, 1, 1], [1, 0, 0]])}


def run(code, space):
    """Run a hint. One that asks a GPU cannot run where there is none."""
    try:
        exec(code, space)
    except rl.CudaError:
        if "cuda" not in code or rl.cuda.is_available():
            raise


HINTS = [(module, *each) for module, table in _habits.TABLES.items() for each in table.items()]


@pytest.mark.parametrize(("module", "name", "instead"), HINTS)
def test_both_doors_say_what_to_write_and_that_runs(module, name, instead):
    space = writable()
    with pytest.raises(AttributeError) as raised:
        eval(f"{module.replace('rooflab', 'rl', 1)}.{name}", space)
    assert str(raised.value) == f"module '{module}' has no attribute '{name}'; write {instead}"
    with pytest.raises(ImportError) as raised:
        exec(f"from {module} import {name}", space)
    assert str(raised.value) == f"cannot import name '{name}' from '{module}'; write {instead}"
    run(instead, space)


@pytest.mark.parametrize(("name", "instead"), _habits.TENSOR.items())
def test_a_tensor_says_what_to_write_and_that_runs(name, instead):
    space = writable()
    with pytest.raises(AttributeError) as raised:
        eval(f"x.{name}", space)
    assert str(raised.value) == f"'Tensor' object has no attribute '{name}'; write {instead}"
    run(instead, space)


OBJECTS = {"model": _habits.METHODS, "optimizer": _habits.OPTIMIZER, "prof": _habits.PROFILE}


@pytest.mark.parametrize(
    ("owner", "name", "instead"), [(owner, *each) for owner, table in OBJECTS.items() for each in table.items()]
)
def test_an_object_says_what_to_write_and_that_runs(owner, name, instead):
    space = writable()
    with pytest.raises(AttributeError) as raised:
        getattr(space[owner], name)
    kind = type(space[owner]).__name__
    assert str(raised.value) == f"'{kind}' object has no attribute '{name}'; write {instead}"
    if owner == "prof":
        with space["prof"]:
            space["x"].exp()
    run(instead, space)


@pytest.mark.parametrize("option", [each for each, (_, write) in OPTIONS.items() if write])
def test_what_is_said_of_an_option_runs(option):
    write, space = OPTIONS[option][1], writable()
    with space["prof"]:
        space["x"].exp()
    if not write.startswith("rooflab has no"):
        run(write, space)


@pytest.mark.parametrize(
    ("module", "name", "says"),
    [
        ("rooflab", "Linear", "write rl.nn.Linear"),
        ("rooflab", "leaky_relu", "write rl.nn.functional.leaky_relu"),
        ("rooflab.nn", "softmax", "write rl.softmax"),
        ("rooflab.nn", "AdamW", "write rl.optim.AdamW"),
        ("rooflab.optim", "CosineAnnealingLR", "write rl.optim.lr_scheduler.CosineAnnealingLR"),
        ("rooflab.cuda", "nothing", "dir(rl.cuda) lists what there is"),
        ("rooflab.nn", "Conv2d", "rooflab has no convolutions"),
        ("rooflab.nn.functional", "max_pool2d", "rooflab has no pooling"),
        ("rooflab.nn", "LSTM", "rooflab has no recurrent layers"),
        ("rooflab", "nothing", "dir(rl) lists what there is"),
        ("rooflab.nn", "Bilinear", "dir(rl.nn) lists what there is"),
        ("rooflab.cuda", "empty_cache", "write rl.memory.empty_cache"),
        ("rooflab.cuda", "graph_pool_handle", "dir(rl.cuda) lists what there is"),
        ("rooflab.cuda", "use_mem_pool", "dir(rl.cuda) lists what there is"),
        ("rooflab.cuda", "MemPool", "dir(rl.cuda) lists what there is"),
        ("rooflab", "clip_grad_norm_", "write rl.nn.utils.clip_grad_norm_"),
        ("rooflab.nn", "clip_grad_norm_", "write rl.nn.utils.clip_grad_norm_"),
        ("rooflab", "checkpoint", "write rl.autograd.checkpoint"),
        ("rooflab", "lr_scheduler", "write rl.optim.lr_scheduler"),
        ("rooflab.nn.utils", "weight_norm", "rooflab has no parametrizations of weights"),
        ("rooflab.nn.utils", "rnn", "rooflab has no recurrent layers"),
        ("rooflab.nn.utils", "skip_init", "write rl.nn.Linear(3, 2)"),
        ("rooflab.nn.utils", "fuse_linear_bn_eval", "dir(rl.nn.utils) lists what there is"),
        ("rooflab.nn.functional", "group_norm", "rooflab has no norms but LayerNorm and RMSNorm"),
        ("rooflab", "frobenius_norm", "dir(rl) lists what there is"),
        ("rooflab.nn", "UpsamplingNearest2d", "rooflab has no operations on images"),
        ("rooflab", "channels_last", "rooflab has no layouts but strides"),
        ("rooflab", "conj", "rooflab has no complex numbers"),
        (
            "rooflab",
            "uint8",
            "rooflab has no dtypes but float64, float32, float16, bfloat16, int64, int32 and bool",
        ),
        ("rooflab.nn", "PixelShuffle", "rooflab has no operations on images"),
        ("rooflab", "quantize_per_tensor", "rooflab has no quantised tensors"),
        ("rooflab.optim", "RMSprop", "rooflab has no optimizers but AdamW"),
        ("rooflab.optim", "nothing", "dir(rl.optim) lists what there is"),
    ],
)
def test_a_name_that_lies_elsewhere(module, name, says):
    told = f"; {says}"
    with pytest.raises(AttributeError) as raised:
        getattr(importlib.import_module(module), name)
    assert str(raised.value) == f"module '{module}' has no attribute '{name}'{told}"
    with pytest.raises(ImportError) as raised:
        exec(f"from {module} import {name}", {})
    assert str(raised.value) == f"cannot import name '{name}' from '{module}'{told}"
    assert not hasattr(importlib.import_module(module), name)
    if not says.startswith("rooflab has no"):
        assert eval(says.removeprefix("write ").removesuffix(" lists what there is"), {"rl": rl})


PUBLIC = {name for module in _habits.TABLES for name in importlib.import_module(module).__all__}


@pytest.mark.parametrize("module", [*_habits.TABLES, "Tensor"])
def test_what_is_said_of_names_that_lie_elsewhere_runs(module):
    here = dir(rl.Tensor) if module == "Tensor" else dir(importlib.import_module(module))
    for name in PUBLIC - set(here):
        told = _habits.advice(module, name)
        if told.startswith("; write "):
            run(told.removeprefix("; write "), writable())


def test_a_name_is_not_taken_for_another_thing():
    about = {
        name: _habits.advice("rooflab", name) for name in ("nanquantile", "log_normal_", "utils", "clip_grad_norm_")
    }
    assert not [name for name, told in about.items() if "rooflab has no" in told]
    assert about["utils"] == "; write rl.autograd.checkpoint(rl.relu, x)"
    assert _habits.advice("Tensor", "log_normal_") == "; write x.copy_(rl.randn_like(x).exp())"
    assert _habits.advice("Tensor", "bitwise_and") == "; write rl.bitwise_and"
    assert _habits.advice("Tensor", "nothing") == ""


# What some hints give for x and y, computed with NumPy.
SAME = {
    "log1p": lambda x, y: np.log1p(x),
    "norm": lambda x, y: np.linalg.norm(x),
    "acosh": lambda x, y: np.arccosh(x),
    "addcdiv": lambda x, y: x + 0.5 * x / y,
    "arctan2": lambda x, y: np.arctan2(x, y),
    "atanh": lambda x, y: np.arctanh(x),
    "asinh": lambda x, y: np.arcsinh(x),
    "cross": lambda x, y: np.cross(x, y),
    "deg2rad": lambda x, y: np.deg2rad(x),
    "addr": lambda x, y: x + np.outer(x[:, 0], y[0]),
    "diagflat": lambda x, y: np.diagflat(x),
    "ldexp": lambda x, y: np.float32(x * 2**y),
    "logcumsumexp": lambda x, y: np.logaddexp.accumulate(x, 0),
    "sinc": lambda x, y: np.sinc(x),
    "digamma": lambda x, y: scipy.special.digamma(x),
    "divide": lambda x, y: x / y,
    "erfc": lambda x, y: scipy.special.erfc(x),
    "fix": lambda x, y: np.fix(x),
    "float_power": lambda x, y: np.float_power(x, y),
    "ger": lambda x, y: np.outer(x[0], y[0]),
    "greater_equal": lambda x, y: x >= y,
    "isposinf": lambda x, y: np.isposinf(x),
    "less_equal": lambda x, y: x <= y,
    "lgamma": lambda x, y: scipy.special.gammaln(x),
    "logaddexp2": lambda x, y: np.logaddexp2(x, y),
    "nanquantile": lambda x, y: np.nanquantile(x, 0.5),
    "rad2deg": lambda x, y: np.rad2deg(x),
    "signbit": lambda x, y: np.signbit(x),
    "expm1": lambda x, y: np.expm1(x),
    "diff": lambda x, y: np.diff(x),
    "tan": lambda x, y: np.tan(x),
    "sinh": lambda x, y: np.sinh(x),
    "cosh": lambda x, y: np.cosh(x),
    "inner": lambda x, y: np.inner(x, y),
    "cumprod": lambda x, y: np.cumprod(x, 0),
    "cummax": lambda x, y: np.maximum.accumulate(x, 0),
    "diagonal": lambda x, y: np.diagonal(x),
    "dist": lambda x, y: np.linalg.norm(x - y),
    "erf": lambda x, y: scipy.special.erf(x),
    "fliplr": lambda x, y: np.fliplr(x),
    "flipud": lambda x, y: np.flipud(x),
    "fmod": lambda x, y: np.fmod(x, y),
    "frac": lambda x, y: np.modf(x)[0],
    "hypot": lambda x, y: np.hypot(x, y),
    "logaddexp": lambda x, y: np.logaddexp(x, y),
    "nansum": lambda x, y: np.nansum(x),
    "nanmean": lambda x, y: np.nanmean(x),
    "rot90": lambda x, y: np.rot90(x),
    "rsub": lambda x, y: y - x,
    "vdot": lambda x, y: np.vdot(x, y),
    "xlogy": lambda x, y: scipy.special.xlogy(x, y),
    "baddbmm": lambda x, y: (y + x @ y.T @ y)[None],
    "kron": lambda x, y: np.kron(x, y),
}


@pytest.mark.parametrize("name", SAME)
def test_a_hint_gives_what_the_name_means(name):
    space = writable()
    expected = SAME[name](*(space[each].numpy().astype(float) for each in "xy"))
    found = eval(_habits.TENSOR[name], space)
    np.testing.assert_allclose(rl.as_tensor(found).numpy(), expected, rtol=2e-5, atol=2e-6)


def test_it_is_a_page_of_its_size():
    assert len(lines("->")) + len(lines("!!")) + len(STATEMENTS) >= 300
