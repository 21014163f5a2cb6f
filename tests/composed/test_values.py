"""Functions that are composed of others give what NumPy gives."""

import functools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import rooflab as rl

X = np.array([[1.5, -2.5, 0.0, 4.0], [-0.5, 2.5, 3.0, -1.0]], np.float32)
Y = np.array([[2.0, -2.5, 1.0, 0.5], [1.0, 3.0, -3.0, 2.0]], np.float32)
I = np.array([[3, 0, 2], [0, 5, -1]])  # noqa: E741
HARD = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.5, 1.5, -0.5, -1.5, 8388609.0, 0.49999997], np.float32)
SMALL = np.array([-0.5, -0.4, -0.0, 0.0, 0.4, 0.5, -1.5], np.float32)
NONE = np.full((2, 1), -np.inf, np.float32)
NEAR_HALF = np.array([0.005, 0.185, -0.685, 60000], np.float16)
COUNTS = functools.partial(np.unique, return_counts=True)
INDEX_ADDED = lambda x: np.stack([x[0] + 2 * (x[0] + x[1]), x[1]])  # noqa: E731
BOTH, ROWS = [X, Y], [X[0], Y[0, :2]]

# What each gives: by rooflab, and by NumPy, of the same arguments.
SAME = {
    "square": (lambda x: rl.square(x), lambda x: x * x, [X]),
    "reciprocal": (lambda x: rl.reciprocal(x), lambda x: 1 / x, [Y]),
    "floor": (lambda x: rl.floor(x), np.floor, [HARD]),
    "ceil": (lambda x: x.ceil(), np.ceil, [HARD]),
    "trunc": (lambda x: x.trunc(), np.trunc, [HARD]),
    "round": (lambda x: x.round(), np.round, [HARD]),
    "round keeps the sign": (lambda x: 1 / x.round(), lambda x: 1 / np.round(x), [SMALL]),
    "ceil keeps the sign": (lambda x: 1 / x.ceil(), lambda x: 1 / np.ceil(x), [SMALL]),
    "trunc keeps the sign": (lambda x: 1 / x.trunc(), lambda x: 1 / np.trunc(x), [SMALL]),
    "round of integers": (lambda x: x.round(), np.round, [I]),
    "round to digits": (lambda x: rl.round(x, decimals=1), lambda x: np.round(x, 1), [X * 1.234]),
    "round 16 bits to digits": (lambda x: x.round(2), lambda x: np.round(x.astype("f"), 2).astype("e"), [NEAR_HALF]),
    "round to hundreds": (lambda x: x.round(decimals=-2), lambda x: np.round(x, -2), [X * 1234]),
    "sign": (lambda x: x.sign(), np.sign, [X]),
    "sign of bool": (lambda x: rl.sign(x), lambda x: x, [X > 0]),
    "square of bool": (lambda x: rl.square(x), lambda x: x.astype(int), [X > 0]),
    "sign of integers": (lambda x: rl.sign(x), np.sign, [I]),
    "log2": (lambda x: rl.log2(x), np.log2, [abs(Y)]),
    "log10": (lambda x: x.log10(), np.log10, [abs(Y)]),
    "exp2": (lambda x: rl.exp2(x), np.exp2, [X]),
    "lerp": (lambda x, y: rl.lerp(x, y, 0.25), lambda x, y: x + np.float32(0.25) * (y - x), [X, Y]),
    "lerp from far": (lambda x: rl.lerp(x, x * 0 + 1, 1.0), lambda x: x * 0 + 1, [X + np.float32(1e20)]),
    "lerp of a tensor": (lambda x, y: rl.lerp(x, y, abs(x) / 4), lambda x, y: x + abs(x) / 4 * (y - x), [X, Y]),
    "lerp of a tensor from far": (
        lambda x, y: rl.lerp(x + 1e20, y, rl.ones(2, 4)), lambda x, y: y, [X, Y]
    ),
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
    "logsumexp of the largest integers": (
        lambda x: rl.logsumexp(x, 0),
        lambda x: np.logaddexp.reduce(x.astype("f8")).astype("f4"),
        [np.array([2**31 - 1, -3], "i4")],
    ),
    "logsumexp of bools": (lambda x: rl.logsumexp(x, 0), lambda x: np.log(np.exp(x * 1.0).sum()), [np.eye(2)[0] > 0]),
    "tile": (lambda x: x.tile(2), lambda x: np.tile(x, 2), [X]),
    "tile more": (lambda x: rl.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), [X]),
    "tile of many dimensions": (
        lambda x: rl.tile(x[None, None, None], (2, 1, 3, 2, 2)),
        lambda x: np.tile(x[None, None, None], (2, 1, 3, 2, 2)),
        [X],
    ),
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
    "addmm of NaN times 0": (lambda x, y: rl.addmm(y[:, :2], x * np.nan, y.T, alpha=0), lambda x, y: y[:, :2], BOTH),
    "diag of one": (lambda x: rl.diag(x[0, :1]), lambda x: np.diag(x[0, :1]), [X]),
    "diag above by one": (lambda x: rl.diag(x[0], 1), lambda x: np.diag(x[0], 1), [X]),
    "diag far below": (lambda x: rl.diag(x[0, :2], -5), lambda x: np.diag(x[0, :2], -5), [X]),
    "diag of nothing": (lambda x: rl.diag(x[0, :0], 2), lambda x: np.diag(x[0, :0], 2), [X]),
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
    "masked_select of a number": (lambda x: rl.masked_select(x[0, 0], x[0] > 0), lambda x: x[0, :1].repeat(2), [X]),
    "masked_select by one": (lambda x: rl.masked_select(x[0, 0], x[0, 0] > 0), lambda x: x[0, :1], [X]),
    "nonzero of a number": (lambda x: x[0, 0].nonzero(), lambda x: np.zeros((1, 0), int), [X]),
    "nonzero of no number": (lambda x: x[0, 2].nonzero(), lambda x: np.zeros((0, 0), int), [X]),
    "nonzero of no elements": (lambda x: x[:0].nonzero(), lambda x: np.argwhere(x[:0]), [X]),
    "nonzero of no columns": (lambda x: x[:, None, :0].nonzero(), lambda x: np.argwhere(x[:, None, :0]), [X]),
    "nonzero of an empty vector": (lambda x: x[0, :0].nonzero(), lambda x: np.argwhere(x[0, :0]), [X]),
    "index_add": (lambda x: x.index_add(0, rl.tensor([0, 0]), x, alpha=2), INDEX_ADDED, [X]),
    "unique": (lambda x: x.unique(), np.unique, [X * Y]),
    "unique counts": (lambda x: rl.unique(x, True, False, True)[1], lambda x: COUNTS(x)[1], [I]),
    "unique of none": (lambda x: x[:0].unique(), lambda x: np.unique(x[:0]), [I]),
    "prod": (lambda x: rl.prod(x), np.prod, [Y]),
    "prod of rows": (lambda x: x.prod(0, keepdim=True), lambda x: np.prod(x, 0, keepdims=True), [Y]),
    "prod of three": (lambda x: x[:, :3].prod(1), lambda x: np.prod(x[:, :3], 1), [Y]),
    "prod of none": (lambda x: x[:, :0].prod(1), lambda x: np.prod(x[:, :0], 1), [Y]),
    "prod of a number": (lambda x: x[0, 0].prod(-1, keepdim=True), lambda x: x[0, 0], [Y]),
    "prod of one": (lambda x: x[:, :1].prod(1), lambda x: x[:, 0], [Y]),
    "prod of no integers": (lambda x: x[:, :0].int().prod(1, dtype="int32"), lambda x: np.ones(2, np.int32), [I]),
    "prod of integers": (lambda x: x.prod(1), lambda x: np.prod(x, 1), [I]),
    "prod of bool": (lambda x: (x > 1).prod(), lambda x: np.prod(x > 1), [I]),
    "median of odd": (lambda x: x[:, :3].median(1).values, lambda x: np.median(x[:, :3], 1), [X]),
    "median of even": (lambda x: x.median(1).values, lambda x: np.sort(x, 1)[:, 1], [X]),
    "median of a number": (lambda x: x[0, 0].median(-1, True).values, lambda x: x[0, 0], [X]),
    "median with NaN": (lambda x: x.median(), np.median, [HARD]),
    "median of one": (lambda x: x[0, 0].median(), lambda x: x[0, 0], [X]),
    "logsumexp": (lambda x: x.logsumexp((0, 1)), logsumexp, [X * 100]),
    "logsumexp of -inf": (lambda x: x.logsumexp(0), lambda x: logsumexp(x, 0), [NONE]),
    "logsumexp of inf": (lambda x: x.logsumexp(0, True), lambda x: logsumexp(x, 0, keepdims=True), [HARD[[0, 5]]]),
    "logsumexp of all": (lambda x: x.logsumexp(()), logsumexp, [X]),
    "logsumexp of all, kept": (lambda x: x.logsumexp((), True), lambda x: logsumexp(x, keepdims=True), [X]),
    "logsumexp of a number": (lambda x: x[0, 0].logsumexp(-1, True), lambda x: x[0, 0], [X]),
    "logsumexp of none": (lambda x: x[:0].logsumexp(0), lambda x: np.full(4, -np.inf, np.float32), [X]),
    "count_nonzero of NaN": (lambda x: x.count_nonzero(), np.count_nonzero, [HARD]),
    "bincount of int weights": (lambda x: rl.bincount(x, x * 2), lambda x: np.bincount(x, x * 2), [I[0]]),
    "bincount of half": (lambda x: rl.bincount(x, x.half()), lambda x: np.bincount(x, x), [I[0]]),
    "bincount of float": (lambda x: rl.bincount(x, x.float()), lambda x: np.bincount(x, x).astype("float32"), [I[0]]),
    "count_nonzero": (lambda x: x.count_nonzero(1), lambda x: np.count_nonzero(x, 1), [X]),
    "bincount": (lambda x: rl.bincount(x, minlength=7), lambda x: np.bincount(x, minlength=7), [I[0]]),
    "sum in a dtype": (lambda x: x.sum(0, dtype="float64"), lambda x: x.sum(0, dtype="float64"), [X]),
    "sum in a narrow integer": (lambda x: x.sum(0, dtype="int32"), lambda x: x.sum(0, dtype="int32"), [I]),
    "sum in bool": (lambda x: x.sum(0, dtype="bool"), lambda x: x.astype("bool").any(0), [I]),
    "sum of integers": (lambda x: rl.sum(x, dtype="float32"), lambda x: x.sum(dtype="float32"), [I]),
    "mean of integers": (lambda x: x.mean(1, dtype="float32"), lambda x: x.mean(1, dtype="float32"), [I]),
    "pad": (
        lambda x: rl.nn.functional.pad(x, (1, 2, 0, 1), value=3.0),
        lambda x: np.pad(x, ((0, 1), (1, 2)), constant_values=3.0),
        [X],
    ),
    "elu": (lambda x: rl.nn.functional.elu(x, 0.7), lambda x: np.where(x > 0, x, np.float32(0.7) * np.expm1(x)), [X]),
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
    with np.errstate(all="ignore"):
        found, expected = ours(*map(rl.tensor, arrays)), np.asarray(theirs(*arrays))
    assert isinstance(found, rl.Tensor) and found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=3e-6, atol=1e-6)
    if not name.startswith(("median", "logsumexp")):
        assert str(found.dtype) == str(expected.dtype)


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
    assert rl.zeros(1, 2).scatter(1, twice, rl.tensor([[4.0, 5.0]])).tolist() == [[5.0, 0.0]], "the last one stays"
    wide = rl.tensor([[7.0, 9.0, 9.0], [8.0, 9.0, 9.0], [9.0, 9.0, 9.0]])
    assert x.scatter(1, index, wide).tolist() == [[7.0, 1.0, 1.0], [1.0, 1.0, 8.0]], "src may be larger than index"


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_keeps_the_last_of_many(dim, dtype, device):
    rng = np.random.default_rng(0)
    index, values = rng.integers(0, 50, (300, 200)), rng.integers(-9, 9, (300, 200)).astype("float64")
    right = np.full((300, 200), 3.0)
    for i, j in np.ndindex(*index.shape):
        right[(index[i, j], j) if dim == 0 else (i, index[i, j])] = values[i, j]
    x, src = (rl.tensor(each, device=device).to(dtype) for each in (np.full((300, 200), 3.0), values))
    for places in (rl.tensor(index, device=device), rl.tensor(index, dtype="int32", device=device)):
        found = x.scatter(dim, places, src).double().cpu().numpy()
        assert (found == (right != 0 if dtype == "bool" else right)).all()


@pytest.mark.parametrize(
    ("x", "index", "dim", "launches"),
    [
        ((500, 12288), (500, 64), 1, 2),
        ((500, 12289), (500, 64), 1, 4),
        ((384, 3000), (900, 3000), 0, 2),
        ((4000, 3000), (900, 3000), 0, 4),
        ((500, 12289), (500, 1), 1, 2),
    ],
)
def test_scatter_finds_the_last_in_shared_memory(x, index, dim, launches):
    """Lines of up to 12288 places fit there, and so do 8 of up to 1536 side by side; one element alone is the last."""
    device = rl.meta("H200")
    with rl.count() as counts:
        places, values = rl.empty(*index, dtype="int64", device=device), rl.empty(*index, device=device)
        rl.scatter(rl.empty(*x, device=device), dim, places, values)
    assert counts.launches == launches


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_what_is_put_in_its_place_keeps_its_sign(dtype):
    x, zero = rl.tensor([1.0, 2.0], dtype=dtype), rl.tensor([-0.0], dtype=dtype)
    for made in (
        x.scatter(0, rl.tensor([0]), zero), x.scatter(0, rl.tensor([0]), -0.0), rl.diag(zero), rl.diag(zero, 1)[0, 1:],
        x.masked_fill(x == 1, -0.0), rl.where(x == 1, zero, x), rl.cat([zero, x]),
    ):  # fmt: skip
        assert np.copysign(1, made.double().numpy().flat[0]) == -1
    assert (np.copysign(1, rl.diag(-x).double().numpy()) == [[-1, 1], [1, -1]]).all()


@pytest.mark.parametrize(
    ("x", "decimals", "expected"),
    [
        ([501.0, 1499.0, -1500.0], -3, [1000.0, 1000.0, -2000.0]),
        ([1.5, 0.0, 1e-40], 39, [1.5, 0.0, 0.0]),
        ([1.5, 0.0, -3e38], -46, [0.0, 0.0, 0.0]),
        ([1e30, 1.25], 20, [1e30, 1.25]),
        ([math.inf, -math.inf], 2, [math.inf, -math.inf]),
        ([math.inf, -math.inf], -2, [math.inf, -math.inf]),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_rounded_number_is_the_nearest_of_its_digits(x, decimals, expected, dtype):
    assert rl.tensor(x, dtype=dtype).round(decimals=decimals).tolist() == rl.tensor(expected, dtype=dtype).tolist()
    assert rl.tensor([501, 1500], dtype="float16").round(-3).tolist() == [1000, 2000]
    assert np.isnan(rl.tensor([np.nan], dtype=dtype).round(decimals).item())


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
def test_logarithms_of_powers_are_whole(dtype):
    places = range(15) if dtype in ("float16", "int64") else range(-126, 128)
    assert rl.tensor([2.0**k for k in places], dtype=dtype).log2().tolist() == list(places)
    places = (
        range(23)
        if dtype == "float64"
        else range(11)
        if dtype in ("float32", "int64")
        else range(5)
        if dtype == "float16"
        else range(1)
    )
    assert rl.tensor([10.0**k for k in places], dtype=dtype).log10().tolist() == list(places)
    found = rl.tensor([8, 100], dtype=dtype).log2()
    assert found.dtype == ("float32" if dtype == "int64" else dtype)


def test_logarithms_in_float64_are_near():
    x = np.array([1e-300, 0.3, 8.0, 1e3, 1e300, 0.0, np.inf])
    np.testing.assert_allclose(rl.tensor(x[:-2]).log2().numpy(), np.log2(x[:-2]), rtol=5e-16)
    np.testing.assert_allclose(rl.tensor(x[:-2]).log10().numpy(), np.log10(x[:-2]), rtol=5e-16)
    assert rl.tensor(x[-2:]).log2().tolist() == rl.tensor(x[-2:]).float().log10().tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lerp_of_16_bits_rounds_once(dtype):
    start, end, weight = (rl.tensor(values, dtype=dtype) for values in ([6e4, 1, 3], [-6e4, 1000, -7], [0.5, 0.3, 3]))
    for share in (0.5, 0.3, 3.0, weight):
        exact = rl.lerp(start.float(), end.float(), share if isinstance(share, float) else share.float())
        assert rl.lerp(start, end, share).tolist() == exact.to(dtype).tolist()
    assert rl.lerp(start, end, 0.5)[0] == rl.lerp(start[:1], end[0].double(), 0.5) == 0
    assert rl.lerp(start, end[0].double(), weight[0].float()).dtype == rl.lerp(start, end.long(), 0.5).dtype == dtype
    assert rl.lerp(start, end, rl.full((3,), 0.5)).tolist()[0] == 0  # between 60000 and -60000
    assert rl.lerp(start, end.float(), 0.5).dtype == rl.lerp(start[0], end.float(), 0.5).dtype == "float32"


NEW = {  # what gives a tensor of its own, for operands of which nothing changes
    "prod": lambda x: x[:1].prod(0),
    "prod of one row": lambda x: x[:1].prod(0, keepdim=True),
    "prod of a number": lambda x: x[0, 0].prod(0),
    "roll": lambda x: x.roll(0),
    "roll by its size": lambda x: x.roll((2, 3), (0, 1)),
    "flip": lambda x: x.flip(()),
    "tile": lambda x: x.tile(1),
    "repeat": lambda x: x.repeat(1, 1),
    "tile of size 1": lambda x: x[:1].tile(2, 1),
    "tile in front": lambda x: x.tile(2, 1, 1),
    "repeat of size 1": lambda x: x[:, :1].repeat(1, 3),
    "repeat in front": lambda x: x.repeat(2, 1, 1),
    "repeat of size 1 and in front": lambda x: x[:1, :1].repeat(2, 2, 1),
    "repeat of a number": lambda x: x[0, 0].repeat(2),
    "repeat_interleave of size 1": lambda x: x[:1].repeat_interleave(2, 0),
    "roll of size 1": lambda x: x[:1].roll(1, 0),
    "flip of size 1": lambda x: x[:1].flip(0),
    "cat": lambda x: rl.cat([x]),
    "cat with nothing": lambda x: rl.cat([x, x[:0]]),
    "stack": lambda x: rl.stack([x]),
    "hstack": lambda x: rl.hstack([x]),
    "vstack": lambda x: rl.vstack([x]),
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "trunc": lambda x: x.trunc(),
    "round": lambda x: x.round(),
    "nan_to_num": lambda x: x.nan_to_num(),
    "sign": lambda x: x.sign(),
    "median": lambda x: x[0, 0].median(0).values,
    "median of one": lambda x: x[0, :1].median(),
    "diag": lambda x: x[:1, :1].diag(),
    "unique": lambda x: x[:1, :1].unique(),
    "masked_select": lambda x: x.masked_select(x == x),
    "scatter": lambda x: x.scatter(0, rl.zeros(0, 3, dtype="int64"), 1),
    "index_add": lambda x: x.index_add(0, rl.zeros(0, dtype="int64"), x[:0]),
    "nonzero": lambda x: x.nonzero(),
    "square": lambda x: x.square(),
    "clone": rl.clone,
    "pad by none": lambda x: rl.nn.functional.pad(x, (0, 0)),
    "pad that cuts": lambda x: rl.nn.functional.pad(x, (-1, 0)),
    "np.positive": np.positive,
    "np.floor": np.floor,
    "np.abs": np.abs,
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("name", NEW)
def test_the_operand_and_the_result_share_no_memory(name, dtype):
    x = rl.tensor([[1, 1, 1], [1, 1, 1]], dtype=dtype)
    if dtype == "bool" and name in ("floor", "ceil", "trunc", "round", "median", "median of one", "index_add"):
        pytest.skip("refused")
    if dtype == "bool" and name == "np.positive":
        pytest.skip("NumPy refuses it")
    y = NEW[name](x)
    before = y.tolist()
    x.zero_()
    assert y.is_contiguous() and y.tolist() == before, "the operand is written"
    x.fill_(1)
    y.zero_()
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]], "the result is written"
