"""Expressions that a PyTorch or NumPy user tries first, with what they give.

Each line of at_home.txt is checked as it stands. It starts from `x`, `m`, `i`, `b`, `w` as defined below. `->` means
"prints as", and `!!` means "raises, and says".
"""

import copy
import math
import operator
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import rooflab as rl
from rooflab import _habits

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
    return space | {"mask": space["x"] > 1, "index": rl.tensor([[0, 1, 1], [1, 0, 1]])}


TABLES = {"x": _habits.TENSOR, "rl": _habits.FUNCTIONS, "rl.nn": _habits.NN, "rl.optim": _habits.OPTIM}


@pytest.mark.parametrize(
    ("owner", "name", "instead"), [(owner, *each) for owner, table in TABLES.items() for each in table.items()]
)
def test_it_says_what_to_write_and_that_runs(owner, name, instead):
    space = writable()
    with pytest.raises(AttributeError, match="has no attribute") as raised:
        eval(f"{owner}.{name}", space)
    assert str(raised.value).endswith(f"; write {instead}")
    exec(instead, space)


# What some of them give, computed with NumPy.
SAME = {
    "lerp": lambda x, y: x + 0.5 * (y - x),
    "ceil": lambda x, y: np.ceil(x),
    "floor": lambda x, y: np.floor(x),
    "log2": lambda x, y: np.log2(x),
    "norm": lambda x, y: np.linalg.norm(x),
    "logsumexp": lambda x, y: np.log(np.exp(x).sum(-1)),
    "outer": lambda x, y: np.outer(x[0], y[0]),
    "flip": lambda x, y: np.flip(x, 0),
    "repeat": lambda x, y: np.tile(x, (2, 1)),
}


@pytest.mark.parametrize("name", SAME)
def test_it_is_the_same_by_another_name(name):
    space = writable()
    expected = SAME[name](*(space[each].numpy().astype(float) for each in "xy"))
    np.testing.assert_allclose(eval(_habits.TENSOR[name], space).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_it_is_a_page_of_its_size():
    assert len(lines("->")) + len(lines("!!")) + len(STATEMENTS) >= 300
