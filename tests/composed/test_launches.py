"""Functions that are composed of others launch what their docstrings say."""

import inspect

import numpy as np
import pytest

import rooflab as rl

Y = np.array([[2.0, -2.5, 1.0, 0.5], [1.0, 3.0, -3.0, 2.0]], np.float32)
F = rl.nn.functional
ONE = rl.tensor([[0, 1, 0, 1]])
LAUNCHES = {  # what is called, and what its docstring must say
    "square": (1, lambda x: rl.square(x), "one launch"),
    "reciprocal": (1, lambda x: rl.reciprocal(x), "one launch"),
    "floor": (4, lambda x: rl.floor(x), "four launches"),
    "ceil": (6, lambda x: rl.ceil(x), "six launches"),
    "trunc": (12, lambda x: rl.trunc(x), "twelve launches"),
    "round": (13, lambda x: rl.round(x), "thirteen launches"),
    "sign": (5, lambda x: rl.sign(x), "five launches"),
    "nan_to_num": (6, lambda x: rl.nan_to_num(x), "six launches"),
    "log2": (2, lambda x: rl.log2(x), "two launches"),
    "log10": (2, lambda x: rl.log10(x), "two launches"),
    "exp2": (1, lambda x: rl.exp2(x), "one launch"),
    "lerp": (3, lambda x: rl.lerp(x, x, 0.5), "three launches"),
    "logical_not": (1, lambda x: rl.logical_not(x), "one launch"),
    "logical_and": (3, lambda x: rl.logical_and(x, x), "one more for each"),
    "outer": (1, lambda x: rl.outer(x[0], x[1]), "one launch"),
    "flip": (1, lambda x: rl.flip(x, 0, 1), "one launch"),
    "roll": (4, lambda x: rl.roll(x, (1, 1), (0, 1)), "two launches a dimension"),
    "tile": (4, lambda x: rl.tile(x, 2, 2), "one launch for each copy"),
    "hstack": (2, lambda x: rl.hstack([x, x]), "one launch a tensor"),
    "diag": (1, lambda x: rl.diag(x), "one for a matrix"),
    "scatter": (9, lambda x: rl.scatter(x, 0, ONE, x[:1]), "nine launches"),
    "index_add": (3, lambda x: rl.index_add(x, 0, ONE[0, :2], x), "three launches"),
    "logsumexp": (9, lambda x: rl.logsumexp(x, 0), "nine launches"),
    "multinomial": (13, lambda x: rl.multinomial(x, 2), "13 launches"),
    "softplus": (10, lambda x: F.softplus(x), "ten launches"),
    "logsigmoid": (10, lambda x: F.logsigmoid(x), "ten launches"),
    "leaky_relu": (3, lambda x: F.leaky_relu(x), "three launches"),
    "elu": (12, lambda x: F.elu(x), "twelve launches"),
    "glu": (2, lambda x: F.glu(x), "two launches"),
    "normalize": (8, lambda x: F.normalize(x), "eight launches"),
    "cosine_similarity": (22, lambda x: F.cosine_similarity(x, x), "22 launches"),
    "mse_loss": (3, lambda x: F.mse_loss(x, x), "three launches"),
    "l1_loss": (3, lambda x: F.l1_loss(x, x), "three launches"),
    "one_hot": (4, lambda x: F.one_hot(ONE, 3), "four launches"),
    "dropout": (4, lambda x: F.dropout(x), "four launches"),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_it_launches_what_its_docstring_says(name):
    launches, call, says = LAUNCHES[name]
    x = rl.tensor(abs(Y))
    with rl.count() as c:
        call(x)
    assert c.launches == launches
    assert says in inspect.getdoc(getattr(rl, name, None) or getattr(F, name)).lower().replace("\n", " ")
