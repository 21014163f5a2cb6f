"""Functions that are composed of others give what NumPy gives, count what runs, and refuse what does not fit."""

import functools
import inspect

import numpy as np
import pytest
from scipy.special import logsumexp

import rooflab as rl

X = np.array([[1.5, -2.5, 0.0, 4.0], [-0.5, 2.5, 3.0, -1.0]], np.float32)
Y = np.array([[2.0, -2.5, 1.0, 0.5], [1.0, 3.0, -3.0, 2.0]], np.float32)
I = np.array([[3, 0, 2], [0, 5, -1]])  # noqa: E741
HARD = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.5, 1.5, -0.5, -1.5, 8388609.0, 0.49999997], np.float32)
NONE = np.full((2, 1), -np.inf, np.float32)
COUNTS = functools.partial(np.unique, return_counts=True)
BOTH, ROWS = [X, Y], [X[0], Y[0, :2]]

# What each gives: by rooflab, and by NumPy, of the same arguments.
SAME = {
    "square": (lambda x: rl.square(x), lambda x: x * x, [X]),
    "reciprocal": (lambda x: rl.reciprocal(x), lambda x: 1 / x, [Y]),
    "floor": (lambda x: rl.floor(x), np.floor, [HARD]),
    "ceil": (lambda x: x.ceil(), np.ceil, [HARD]),
    "trunc": (lambda x: x.trunc(), np.trunc, [HARD]),
    "round": (lambda x: x.round(), np.round, [HARD]),
    "round of integers": (lambda x: x.round(), np.round, [I]),
    "round to digits": (lambda x: rl.round(x, decimals=1), lambda x: np.round(x, 1), [X * 1.234]),
    "sign": (lambda x: x.sign(), np.sign, [X]),
    "sign of integers": (lambda x: rl.sign(x), np.sign, [I]),
    "log2": (lambda x: rl.log2(x), np.log2, [abs(Y)]),
    "log10": (lambda x: x.log10(), np.log10, [abs(Y)]),
    "exp2": (lambda x: rl.exp2(x), np.exp2, [X]),
    "lerp": (lambda x, y: rl.lerp(x, y, 0.25), lambda x, y: x + 0.25 * (y - x), [X, Y]),
    "nan_to_num": (lambda x: rl.nan_to_num(x), np.nan_to_num, [HARD]),
    "nan_to_num with": (
        lambda x: x.nan_to_num(1.0, 2.0, 3.0),
        lambda x: np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
        [HARD],
    ),
    "logical_not": (lambda x: x.logical_not(), np.logical_not, [X]),
    "logical_and": (lambda x, y: rl.logical_and(x, y), np.logical_and, [X, Y]),
    "logical_or": (lambda x, y: rl.logical_or(x, y), np.logical_or, [I > 0, I]),
    "logical_xor": (lambda x, y: rl.logical_xor(x, y), np.logical_xor, [X, Y]),
    "mm": (lambda x, y: rl.mm(x, y.T), lambda x, y: x @ y.T, [X, Y]),
    "bmm": (lambda x, y: rl.bmm(x[None], y.T[None]), lambda x, y: (x @ y.T)[None], [X, Y]),
    "mv": (lambda x, y: rl.mv(x, y[0]), lambda x, y: x @ y[0], [X, Y]),
    "dot": (lambda x, y: rl.dot(x[1], y[0]), lambda x, y: x[1] @ y[0], [X, Y]),
    "outer": (lambda x, y: rl.outer(x[1], y[0]), lambda x, y: np.outer(x[1], y[0]), [X, Y]),
    "addmm": (lambda x, y: rl.addmm(x[:, :2], x, y.T, beta=2, alpha=3), lambda x, y: 2 * x[:, :2] + 3 * x @ y.T, BOTH),
    "t": (lambda x: x.t(), lambda x: x.T, [X]),
    "ravel": (lambda x: rl.ravel(x), np.ravel, [X]),
    "swapaxes": (lambda x: x[None].swapaxes(0, 2), lambda x: np.swapaxes(x[None], 0, 2), [X]),
    "movedim": (lambda x: x[None].movedim(0, -1), lambda x: np.moveaxis(x[None], 0, -1), [X]),
    "movedims": (lambda x: x[None].movedim((0, 1), (2, 0)), lambda x: np.moveaxis(x[None], (0, 1), (2, 0)), [X]),
    "broadcast_to": (lambda x: rl.broadcast_to(x, (3, 2, 4)), lambda x: np.broadcast_to(x, (3, 2, 4)), [X]),
    "tile": (lambda x: x.tile(2), lambda x: np.tile(x, 2), [X]),
    "tile more": (lambda x: rl.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), [X]),
    "tile to none": (lambda x: rl.tile(x, 0), lambda x: np.tile(x, 0), [X]),
    "flip": (lambda x: x.flip(0, 1), lambda x: np.flip(x, (0, 1)), [X]),
    "roll": (lambda x: x.roll(3), lambda x: np.roll(x, 3), [X]),
    "roll back": (lambda x: x.roll(-5, 1), lambda x: np.roll(x, -5, 1), [X]),
    "roll both": (lambda x: rl.roll(x, (1, 2), (0, -1)), lambda x: np.roll(x, (1, 2), (0, -1)), [X]),
    "unbind": (lambda x: x.unbind(1)[2], lambda x: x[:, 2], [X]),
    "select": (lambda x: x.select(1, -1), lambda x: x[:, -1], [X]),
    "narrow": (lambda x: rl.narrow(x, 1, -3, 2), lambda x: x[:, 1:3], [X]),
    "vstack": (lambda x, y: rl.vstack([x, y[0]]), lambda x, y: np.vstack([x, y[0]]), [X, Y]),
    "hstack": (lambda x, y: rl.hstack([x, y]), lambda x, y: np.hstack([x, y]), [X, Y]),
    "hstack of rows": (lambda x, y: rl.hstack([x[0], y[0]]), lambda x, y: np.hstack([x[0], y[0]]), [X, Y]),
    "meshgrid": (lambda x, y: rl.meshgrid(x, y)[1], lambda x, y: np.meshgrid(x, y, indexing="ij")[1], ROWS),
    "meshgrid xy": (lambda x, y: rl.meshgrid(x, y, indexing="xy")[0], lambda x, y: np.meshgrid(x, y)[0], ROWS),
    "reshape": (lambda x: rl.reshape(x, (4, -1)), lambda x: x.reshape(4, -1), [X]),
    "transpose": (lambda x: rl.transpose(x, 0, 1), np.transpose, [X]),
    "permute": (lambda x: rl.permute(x, (1, 0)), np.transpose, [X]),
    "diag": (lambda x: rl.diag(x[0]), lambda x: np.diag(x[0]), [X]),
    "diag above": (lambda x: rl.diag(x[0], 2), lambda x: np.diag(x[0], 2), [X]),
    "diag below": (lambda x: rl.diag(x[0], -1), lambda x: np.diag(x[0], -1), [I]),
    "diag of bool": (lambda x: rl.diag(x[0]), lambda x: np.diag(x[0]), [X > 0]),
    "diag with inf": (lambda x: rl.diag(x), np.diag, [HARD]),
    "its diag": (lambda x: rl.diag(x), np.diag, [X]),
    "its diag above": (lambda x: rl.diag(x, 3), lambda x: np.diag(x, 3), [X]),
    "its diag below": (lambda x: rl.diag(x, -1), lambda x: np.diag(x, -1), [X]),
    "its diag outside": (lambda x: rl.diag(x, 9), lambda x: np.diag(x, 9), [X]),
    "trace": (lambda x: rl.trace(x), np.trace, [X]),
    "masked_select": (lambda x, y: rl.masked_select(x, y > 0), lambda x, y: x[y > 0], [X, Y]),
    "nonzero": (lambda x: x.nonzero(), lambda x: np.argwhere(x), [X]),
    "nonzero of three": (lambda x: x.reshape(2, 2, 2).nonzero(), lambda x: np.argwhere(x.reshape(2, 2, 2)), [X]),
    "nonzero of none": (lambda x: (x * 0).nonzero(), lambda x: np.argwhere(x * 0), [X]),
    "unique": (lambda x: x.unique(), np.unique, [X * Y]),
    "unique counts": (lambda x: rl.unique(x, True, False, True)[1], lambda x: COUNTS(x)[1], [I]),
    "unique of none": (lambda x: x[:0].unique(), lambda x: np.unique(x[:0]), [I]),
    "prod": (lambda x: rl.prod(x), np.prod, [Y]),
    "prod of rows": (lambda x: x.prod(0, keepdim=True), lambda x: np.prod(x, 0, keepdims=True), [Y]),
    "prod of three": (lambda x: x[:, :3].prod(1), lambda x: np.prod(x[:, :3], 1), [Y]),
    "prod of none": (lambda x: x[:, :0].prod(1), lambda x: np.prod(x[:, :0], 1), [Y]),
    "prod of integers": (lambda x: x.prod(1), lambda x: np.prod(x, 1), [I]),
    "prod of bool": (lambda x: (x > 1).prod(), lambda x: np.prod(x > 1), [I]),
    "median of odd": (lambda x: x[:, :3].median(1).values, lambda x: np.median(x[:, :3], 1), [X]),
    "median with NaN": (lambda x: x.median(), np.median, [HARD]),
    "median of one": (lambda x: x[0, 0].median(), lambda x: x[0, 0], [X]),
    "logsumexp": (lambda x: x.logsumexp((0, 1)), logsumexp, [X * 100]),
    "logsumexp of -inf": (lambda x: x.logsumexp(0), lambda x: logsumexp(x, 0), [NONE]),
    "logsumexp of inf": (lambda x: x.logsumexp(0, True), lambda x: logsumexp(x, 0, keepdims=True), [HARD[[0, 5]]]),
    "count_nonzero": (lambda x: x.count_nonzero(1), lambda x: np.count_nonzero(x, 1), [X]),
    "bincount": (lambda x: rl.bincount(x, minlength=7), lambda x: np.bincount(x, minlength=7), [I[0]]),
    "sum in a dtype": (lambda x: x.sum(0, dtype="float64"), lambda x: x.sum(0, dtype="float64"), [X]),
    "sum of integers": (lambda x: rl.sum(x, dtype="float32"), lambda x: x.sum(dtype="float32"), [I]),
    "mean of integers": (lambda x: x.mean(1, dtype="float32"), lambda x: x.mean(1, dtype="float32"), [I]),
    "np.exp": (lambda x: np.exp(x), np.exp, [X]),
    "np.arctan": (lambda x: np.arctan(x), np.arctan, [X]),
    "np.exp of integers": (lambda x: np.exp(x), np.exp, [I]),
    "np.subtract": (lambda x, y: np.subtract(x, y), np.subtract, [X, Y]),
    "array - x": (lambda x: Y - x, lambda x: Y - x, [X]),
    "x - array": (lambda x: x - Y, lambda x: x - Y, [X]),
    "array < x": (lambda x: np.less(Y, x), lambda x: np.less(Y, x), [X]),
    "array >= x": (lambda x: np.greater_equal(Y, x), lambda x: np.greater_equal(Y, x), [X]),
    "np.modf": (lambda x: np.modf(x)[1], lambda x: np.modf(x)[1], [X]),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_it_gives_what_numpy_gives(name):
    ours, theirs, arrays = SAME[name]
    found, expected = ours(*map(rl.tensor, arrays)), np.asarray(theirs(*arrays))
    assert isinstance(found, rl.Tensor) and found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=3e-6, atol=1e-6)
    if not name.startswith(("median", "logsumexp")):
        assert str(found.dtype) == str(expected.dtype)


# Functions of w, whose gradients are compared with differences.
SMOOTH = {
    "prod": lambda w: (w.prod(1) * rl.tensor([1.0, 2.0], dtype="float64")).sum(),
    "prod with zeros": lambda w: (w * rl.tensor([0.0, 1.0, 2.0, 1.0], dtype="float64")).prod(),
    "roll": lambda w: (w.roll((1, 1), (0, 1)) * w).sum(),
    "flip": lambda w: (w.flip(1) * w).sum(),
    "tile": lambda w: (w.tile(2, 2) ** 2).sum(),
    "diag": lambda w: (rl.diag(w[0], 1) ** 2).sum() + (rl.diag(w, 1) ** 2).sum(),
    "scatter": lambda w: (w.scatter(1, rl.tensor([[2], [0]]), w[:, 1:2] * 3) ** 2).sum(),
    "scatter of a number": lambda w: (w.scatter(1, rl.tensor([[2], [0]]), 5.0) ** 2).sum(),
    "index_add": lambda w: (w.index_add(0, rl.tensor([1, 1]), w * w, alpha=2) ** 2).sum(),
    "median": lambda w: (w.median(1).values ** 2).sum(),
    "logsumexp": lambda w: (w.logsumexp(0) ** 2).sum(),
    "outer": lambda w: (rl.outer(w[0], w[1]) ** 2).sum(),
    "addmm": lambda w: (rl.addmm(w[:, :2], w, w.T, beta=2, alpha=3) ** 2).sum(),
    "masked_select": lambda w: (w.masked_select(w > 0) ** 2).sum(),
    "nan_to_num": lambda w: (w.nan_to_num() ** 2).sum(),
    "meshgrid": lambda w: (rl.meshgrid(w[0], w[1])[0] * rl.meshgrid(w[0], w[1])[1]).sum(),
    "softplus": lambda w: rl.nn.functional.softplus(w).sum(),
    "logsigmoid": lambda w: rl.nn.functional.logsigmoid(w).sum(),
    "elu": lambda w: rl.nn.functional.elu(w, 0.7).sum(),
    "leaky_relu": lambda w: rl.nn.functional.leaky_relu(w, 0.3).sum(),
    "glu": lambda w: rl.nn.functional.glu(w, 0).sum(),
    "normalize": lambda w: (rl.nn.functional.normalize(w) ** 3).sum(),
    "cosine_similarity": lambda w: rl.nn.functional.cosine_similarity(w, w.roll(1, 1)).sum(),
    "pad": lambda w: (rl.nn.functional.pad(w, (1, -1, 0, 2), value=3.0) ** 2).sum(),
    "mse_loss": lambda w: rl.nn.functional.mse_loss(w, w * w),
    "l1_loss": lambda w: rl.nn.functional.l1_loss(w, w * w, "sum"),
    "nll_loss": lambda w: rl.nn.functional.nll_loss(w.log_softmax(), rl.tensor([1, 3])),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_differences(name):
    function, step = SMOOTH[name], 1e-6
    start = np.array([[0.3, -1.2, 0.9, 2.0], [1.1, 0.4, -0.7, -2.2]])
    w = rl.tensor(start, requires_grad=True)
    function(w).backward()
    expected = np.zeros_like(start)
    for place in np.ndindex(*start.shape):
        ends = [start.copy(), start.copy()]
        ends[0][place] -= step
        ends[1][place] += step
        low, high = (function(rl.tensor(end)).item() for end in ends)
        expected[place] = (high - low) / (2 * step)
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-6, atol=1e-8)


def test_indices_and_inverses_lead_back():
    x = rl.tensor([[3, 1, 3, 0], [1, 1, 2, 3]])
    values, inverse, counts = rl.unique(x, return_inverse=True, return_counts=True)
    assert values[inverse].tolist() == x.tolist() and counts.tolist() == [1, 3, 1, 3]
    y = rl.randn(4, 7)
    found = y.median(1)
    assert found.values.tolist() == y.gather(1, found.indices[:, None])[:, 0].tolist()
    assert found.values.tolist() == [sorted(row)[3] for row in y.tolist()]
    with_nan = rl.tensor([1.0, float("nan"), 2.0]).median(0)
    assert np.isnan(with_nan.values.item()) and with_nan.indices.item() == 1


def test_scatter_writes_once():
    x = rl.ones(2, 3)
    index = rl.tensor([[0], [2]])
    assert x.scatter(1, index, 5.0).tolist() == [[5.0, 1.0, 1.0], [1.0, 1.0, 5.0]]
    assert x.scatter(1, index, rl.tensor([[7.0], [8.0]])).tolist() == [[7.0, 1.0, 1.0], [1.0, 1.0, 8.0]]
    inf = rl.full((2, 3), float("inf")).scatter(1, index, rl.tensor([[7.0], [8.0]]))
    assert inf[0, 0].item() == 7.0 and x.tolist() == [[1.0] * 3] * 2
    assert (x > 2).scatter(1, index, rl.tensor([[True], [True]])).sum().item() == 2
    twice = rl.tensor([[0, 0]])
    assert rl.zeros(1, 2).scatter(1, twice, 3.0).tolist() == [[3.0, 0.0]]
    with pytest.raises(ValueError, match=r"\[scatter\] index: two elements go to one place"):
        rl.zeros(1, 2).scatter(1, twice, rl.ones(1, 2))


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


def test_bad_input_is_one_sentence():
    x, F = rl.ones(2, 3), rl.nn.functional
    wrong = {
        r"\[mm\] b: expected 2 dimensions, got \(3,\)": lambda: rl.mm(x, x[0]),
        r"\[dot\] a: expected 1 dimension, got \(2, 3\)": lambda: rl.dot(x, x),
        r"\[bmm\] expected as many matrices": lambda: rl.bmm(rl.ones(2, 3, 3), rl.ones(1, 3, 3)),
        r"\[t\] x: expected at most 2": lambda: rl.t(rl.ones(1, 1, 1)),
        r"\[flip\] dim: expected one of the 2": lambda: x.flip(2),
        r"\[flip\] dims: expected each once": lambda: x.flip(0, -2),
        r"\[roll\] expected as many shifts as dims": lambda: x.roll((1, 2), 0),
        r"\[roll\] dim: expected one": lambda: x.roll(1, 5),
        r"\[repeat\] sizes: expected at least 2": lambda: x.repeat(2),
        r"\[tile\] dims: expected numbers >= 0": lambda: x.tile(-1),
        r"\[narrow\] expected slices": lambda: x.narrow(1, 2, 2),
        r"\[movedim\] expected as many": lambda: x.movedim((0, 1), 0),
        r"\[meshgrid\] indexing": lambda: rl.meshgrid(x[0], indexing="yx"),
        r"\[meshgrid\] tensors": lambda: rl.meshgrid(x),
        r"\[diag\] x: expected one or two": lambda: rl.diag(rl.ones(1, 1, 1)),
        r"\[index_add\] source: expected \(2, 3\)": lambda: x.index_add(0, rl.tensor([0, 1]), x[:1]),
        r"\[masked_select\] mask: expected bool": lambda: x.masked_select(x),
        r"\[median\] x: expected elements": lambda: rl.ones(0).median(),
        r"\[prod\] dim: expected one": lambda: x.prod(2),
        r"\[round\] decimals: expected 0": lambda: rl.tensor([1]).round(1),
        r"\[bincount\] x: expected numbers >= 0": lambda: rl.bincount(rl.tensor([-1])),
        r"\[bincount\] expected integers": lambda: rl.bincount(x),
        r"\[glu\] x: expected an even size": lambda: F.glu(x),
        r"\[one_hot\] num_classes: expected at least 3": lambda: F.one_hot(rl.tensor([2]), 2),
        r"\[one_hot\] index: expected int64": lambda: F.one_hot(x),
        r"\[pad\] mode": lambda: F.pad(x, (1, 1), mode="reflect"),
        r"\[pad\] pad: expected two sizes": lambda: F.pad(x, (1,)),
        r"\[pad\] pad: cuts more": lambda: F.pad(x, (-2, -2)),
        r"\[mse_loss\] target: expected the shape": lambda: F.mse_loss(x, x[0]),
        r"\[mse_loss\] reduction": lambda: F.mse_loss(x, x, "average"),
        r"\[nll_loss\] expected \(N, V\)": lambda: F.nll_loss(x, rl.tensor([0])),
        r"\[layer_norm\] normalized_shape": lambda: F.layer_norm(x, (2, 3)),
        r"\[normalize\] p: expected 2": lambda: F.normalize(x, p=1),
        r"dropout_p: expected 0": lambda: F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.1),
        r"is_causal: expected L_q = L_kv": lambda: F.scaled_dot_product_attention(
            x[None], rl.ones(1, 5, 3), rl.ones(1, 5, 3), is_causal=True
        ),
        r"expected H_kv = H": lambda: F.scaled_dot_product_attention(rl.ones(1, 4, 2, 3), *[rl.ones(1, 2, 2, 3)] * 2),
    }
    for says, call in wrong.items():
        with pytest.raises(ValueError, match=says):
            call()


def test_numpy_is_refused_what_is_not_counted():
    x = rl.ones(2, requires_grad=True)
    with rl.count() as c:
        np.exp(x).sum().backward()
    assert c.launches > 1 and x.grad.tolist() == [np.exp(np.float32(1))] * 2
    with pytest.raises(ValueError, match="requires grad"):
        np.arctan(x)
    for wrong in (lambda: np.add.reduce(x), lambda: np.exp(rl.ones(2), out=np.ones(2))):
        with pytest.raises(TypeError, match=r"\[numpy\] np\."):
            wrong()


def test_random_choices():
    p = rl.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 2.0]])
    drawn = rl.multinomial(p, 4000, replacement=True)
    assert drawn.shape == (2, 4000) and drawn.dtype == "int64"
    shares = [np.bincount(row, minlength=3) / 4000 for row in drawn.tolist()]
    np.testing.assert_allclose(shares, [[0, 0.25, 0.75], [0.5, 0, 0.5]], atol=0.03)
    assert (shares[0][0], shares[1][1]) == (0, 0)
    firsts = [rl.multinomial(p[0], 2).tolist() for _ in range(300)]
    assert all(sorted(each) == [1, 2] for each in firsts) and 0.6 < sum(each[0] == 2 for each in firsts) / 300 < 0.9
    assert sorted(rl.randperm(100).tolist()) == list(range(100)) != rl.randperm(100).tolist()
    half = rl.bernoulli(rl.full((1000,), 0.25))
    assert set(half.tolist()) == {0.0, 1.0} and 0.2 < half.mean().item() < 0.3
    for wrong in (rl.tensor([-1.0, 2.0]), rl.tensor([float("nan")]), rl.zeros(3), rl.ones(1, 1, 1), rl.tensor([1])):
        with pytest.raises(ValueError, match=r"\[multinomial\]"):
            rl.multinomial(wrong, 1)
    with pytest.raises(ValueError, match="at least 3 numbers above 0"):
        rl.multinomial(p, 3)


def test_a_generator_is_apart():
    generator = rl.Generator().manual_seed(5)
    rl.manual_seed(1)
    expected = rl.rand(3).tolist()
    rl.manual_seed(1)
    first = rl.randperm(9, generator=generator).tolist()
    assert rl.rand(3).tolist() == expected, "rooflab's own sequence went on as if nothing had been drawn"
    state = generator.get_state()
    second = rl.randperm(9, generator=generator).tolist()
    assert first != second and rl.randperm(9, generator=generator.set_state(state)).tolist() == second
    assert rl.randperm(9, generator=generator.manual_seed(5)).tolist() == first and generator.initial_seed() == 5
    with pytest.raises(TypeError, match="expected a Generator, got int"):
        rl.randperm(9, generator=5)
    with pytest.raises(ValueError, match="seed"):
        generator.manual_seed(-1)


def test_conversions_share_memory_where_they_can():
    array = np.zeros(3, np.float32)
    shared, same = rl.from_numpy(array), rl.as_tensor(array)
    array[0] = 1
    assert shared.tolist() == same.tolist() == [1.0, 0.0, 0.0]
    assert rl.as_tensor(shared) is shared and rl.as_tensor(shared, dtype="float64").dtype == "float64"
    fixed = np.ones(2)
    fixed.flags.writeable = False
    assert rl.as_tensor(fixed).tolist() == [1.0, 1.0] and rl.as_tensor([1, 2]).dtype == "int64"
    assert rl.as_tensor(np.ones((4, 4))[::2, ::-1]).shape == (2, 4)
    assert rl.finfo("bfloat16").eps == 2**-7 and rl.finfo(rl.float32).bits == 32 and rl.iinfo("int32").max == 2**31 - 1
    with pytest.raises(TypeError, match="expected a NumPy array, got list"):
        rl.from_numpy([1])


def test_hooks_of_tensors():
    w, seen = rl.tensor([1.0, 2.0], requires_grad=True), []
    middle = w * 3
    handle = middle.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    w.register_hook(lambda g: seen.append(g.tolist()))
    middle.retain_grad()
    (middle * middle + middle).sum().backward()
    assert seen == [[7.0, 13.0], [210.0, 390.0]], "each once, with the whole gradient"
    assert middle.grad.tolist() == [70.0, 130.0] and w.grad.tolist() == [210.0, 390.0]
    handle.remove()
    assert rl.autograd.grad((w * 3).sum(), w)[0].tolist() == [3.0, 3.0] and len(seen) == 3
    (w * 1).sum().backward()
    assert seen[3:] == [[1.0, 1.0]] and w.grad.tolist() == [211.0, 391.0]
    again = w * 2
    again.register_hook(lambda g: g[:1])
    with pytest.raises(ValueError, match=r"\[register_hook\] gradient: expected \(2,\)"):
        again.sum().backward()
    third = w * 2
    third.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="the hook returned int"):
        third.sum().backward()
    with pytest.raises(ValueError, match="does not require grad"):
        rl.ones(1).register_hook(print)
    with pytest.raises(TypeError, match="expected a callable"):
        w.register_hook(3)


def test_a_hook_that_holds_its_tensor_dies_with_it():
    import gc
    import weakref

    class Large: ...

    large = Large()
    reference = weakref.ref(large)
    w = rl.ones(2, requires_grad=True)
    w.register_hook(lambda g, w=w, large=large: None)
    y = w * 2
    y.register_hook(lambda g, y=y, large=large: None)
    del w, y, large
    gc.collect()
    gc.collect()  # the graph of y held what w holds until now
    assert reference() is None
