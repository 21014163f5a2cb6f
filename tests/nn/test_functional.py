"""rl.nn.functional where it is hard: large and tiny numbers, gradients at kinks, zero rows, odd sizes, bad input."""

import math

import numpy as np
import pytest

import rooflab as rl

F = rl.nn.functional
FAR = np.array(
    [0.0, -0.0, 1.5, -1.5, 18, -18, 30, -30, 80, -80, 1e30, -1e30, 1e-6, -1e-6, 3e-8, -3e-8, np.inf, -np.inf]
)


def gradient(function, x):
    w = rl.tensor(x, requires_grad=True)
    function(w).sum().backward()
    return w.grad.numpy()


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-abs(x)))


EXACT = {  # a function, its values and its gradient
    "softplus": (F.softplus, lambda x: np.logaddexp(x, 0), sigmoid),
    "logsigmoid": (F.logsigmoid, lambda x: -np.logaddexp(-x, 0), lambda x: sigmoid(-x)),
    "elu": (
        lambda x: F.elu(x, 0.7),
        lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0))),
        lambda x: np.where(x > 0, 1, 0.7 * np.exp(np.minimum(x, 0))),
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", EXACT)
def test_activations_are_exact_to_the_last_digits(name, dtype):
    """Relative to the result, however small: log(1 + exp(-18)) is not 0, exp(-1e-6) - 1 is not a multiple of eps."""
    ours, values, slope = EXACT[name]
    x = rl.tensor(FAR).to(dtype)
    exact = x.double().numpy()
    info = rl.finfo(dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(ours(x).double().numpy(), values(exact), rtol=4 * info.eps, atol=2 * info.tiny)
        np.testing.assert_allclose(
            rl.tensor(gradient(ours, x)).double().numpy(), slope(exact), rtol=8 * info.eps, atol=2 * info.tiny
        )
    assert np.isnan(ours(rl.tensor([np.nan]).to(dtype)).item()) and ours(x).dtype == dtype


def test_gradients_at_zero_are_those_of_the_function():
    zero = np.zeros(1, np.float32)
    assert gradient(F.softplus, zero) == gradient(F.logsigmoid, zero) == 0.5
    assert gradient(F.elu, zero) == 1.0 and gradient(F.leaky_relu, zero) == np.float32(0.01)


def test_softplus_with_beta():
    x = rl.tensor([-3.0, 0.5, 30.0], dtype="float64")
    for beta in (2, 0.25, -1.0):
        np.testing.assert_allclose(
            F.softplus(x, beta, 20).numpy(), np.logaddexp(x.numpy() * beta, 0) / beta, rtol=1e-14
        )
    for beta, kind in ((0, ValueError), (math.inf, ValueError), ("2", TypeError)):
        with pytest.raises(kind, match=r"^\[softplus\] beta: expected a"):
            F.softplus(x, beta)
    with pytest.raises(ValueError, match=r"^\[softplus\] threshold: expected 20, because no digits are lost"):
        F.softplus(x, threshold=1.0)


@pytest.mark.parametrize("function", [F.softplus, F.logsigmoid, F.elu])
def test_a_gradient_at_nan_is_nan(function):
    assert np.isnan(gradient(function, np.array([np.nan, 1.0]))).tolist() == [True, False]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_softmax_of_three_dimensions_asks_for_one(name):
    """PyTorch takes another one than the last there, and warns."""
    ours, of_tensors = getattr(F, name), getattr(rl, name)
    x = rl.randn(2, 3, 4)
    assert (ours(x[0]) == of_tensors(x[0], -1)).all() and (ours(x, 0) == of_tensors(x, 0)).all()
    for module in (ours, rl.nn.Softmax() if name == "softmax" else rl.nn.LogSoftmax()):
        with pytest.raises(ValueError, match=r"dim: expected one for 3 dimensions, got None; write dim=-1"):
            module(x)


def test_a_zero_row_has_a_gradient():
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert F.normalize(rl.tensor(rows)).tolist() == [[0.0, 0.0], [0.6, 0.8]]
    assert gradient(lambda w: F.normalize(w, eps=0.5), rows)[0].tolist() == [2.0, 2.0]
    other = rl.tensor([[5.0, 12.0], [4.0, 3.0]], dtype="float64")
    found = gradient(lambda w: F.cosine_similarity(w, other, eps=0.5), rows)
    np.testing.assert_allclose(found[0], [2 * 5 / 13, 2 * 12 / 13])
    assert F.cosine_similarity(rl.tensor(rows), other).tolist() == pytest.approx([0.0, 0.96])


def test_a_norm_below_eps_has_its_gradient_in_a_cosine():
    """As in PyTorch, eps takes the place of the norm's value alone."""
    found = gradient(
        lambda w: F.cosine_similarity(w, rl.tensor([1.0, 0.0], dtype="float64"), 0, 10.0), np.array([3.0, 4.0])
    )
    np.testing.assert_allclose(found, [(1 / 10 - 3 / 100 * 3 / 5) / 10, -3 / 100 * 4 / 5 / 10])
    assert gradient(lambda w: F.normalize(w, dim=0, eps=10.0), np.array([3.0, 4.0])).tolist() == [0.1, 0.1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_squares_of_16_bits_do_not_overflow(dtype):
    x, y = (rl.tensor([[3.0, 4.0]], dtype=dtype) * size for size in (6000, 1e-4))
    for row in (x, y):
        assert F.normalize(row).dtype == F.cosine_similarity(row, row).dtype == dtype
        np.testing.assert_allclose(F.normalize(row).float().numpy(), [[0.6, 0.8]], rtol=0.01)
        assert F.cosine_similarity(row, row).item() == pytest.approx(1, rel=0.01)
    assert F.normalize(x * 0).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float32", (1e20, 1e-30, 1e-44)), ("bfloat16", (1e20, 1e-30)), ("float64", (1e200, 1e-320))]
)
def test_squares_neither_overflow_nor_round_to_zero(dtype, sizes):
    for size in sizes:
        x = (rl.tensor([[3.0, 4.0]], dtype="float64") * size).to(dtype).requires_grad_()
        exact = x.detach().double().numpy() / max(size, 1e-300)
        exact /= np.linalg.norm(exact)
        y = F.normalize(x, eps=0.0)
        np.testing.assert_allclose(y.double().detach().numpy(), exact, rtol=0.01 if dtype == "bfloat16" else 1e-6)
        assert F.cosine_similarity(x, x * -1, eps=0.0).item() == pytest.approx(-1, rel=0.01)
        if size > 1e-37:  # below, the gradient overflows
            y[:, 0].sum().backward()
            expected = exact[0, 1] * np.array([[exact[0, 1], -exact[0, 0]]]) / 5
            np.testing.assert_allclose(x.grad.double().numpy() * size, expected, rtol=0.03)
    assert F.normalize(rl.tensor([[1e20, 1.0]])).tolist() == [[1.0, pytest.approx(1e-20)]]
    assert F.normalize(rl.ones(2, 0)).shape == (2, 0) and F.cosine_similarity(rl.ones(1, 0), rl.ones(1, 0)).item() == 0


def test_a_cosine_broadcasts_before_it_takes_norms():
    x, y = rl.tensor([[1.0, 2.0], [3.0, 4.0]]), rl.tensor([2.0, 1.0])
    expected = [4 / 5, 10 / (5 * math.sqrt(5))]
    for a, b in ((x, y), (y, x), (x, rl.tensor([2, 1]))):
        np.testing.assert_allclose(F.cosine_similarity(a, b).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(F.cosine_similarity(x, rl.ones(2, 1)).numpy(), [3 / 10**0.5, 7 / 50**0.5], rtol=1e-6)
    assert F.cosine_similarity(x, y.double()).dtype == "float64" and F.cosine_similarity(x.half(), y).dtype == "float32"


def test_pad_gives_memory_of_its_own():
    x = rl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for sizes in ((), (0, 0), (-1, 0), (0, 0, -1, 0), (0, -1, 1, 0), (1, -1, 0, -1)):
        padded = F.pad(x, sizes)
        padded.fill_(9)
        assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] and padded.is_contiguous(), sizes
    assert F.pad(x, (-2, 1, 1, -1), value=7).tolist() == [[7.0, 7.0], [3.0, 7.0]]
    assert F.pad(x, (-3, 0)).shape == (2, 0) and F.pad(x, (-3, 2)).tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(40, 30, 20), (0, 3, 2), (3, 4, 1)], ids=str)
def test_pad_of_large_tensors_fills_the_ends_alone(shape, dtype, device):
    numbers = np.random.default_rng(0).integers(0, 2, shape)
    x = rl.tensor(numbers, device=device).to(dtype).transpose(0, 1)
    padded = F.pad(x, (1, 2, 0, 0, 3, 0), value=1)
    expected = np.pad(numbers.swapaxes(0, 1), ((3, 0), (0, 0), (1, 2)), constant_values=1)
    assert padded.dtype == dtype and (padded.cpu().numpy() == expected).all()
    x = rl.empty(*shape, dtype=dtype, device=rl.meta("H200"))
    with rl.count() as c:
        F.pad(x, (1, 2))
    assert c.launches <= 2 and c.ops == 1, "it is not large there"


@pytest.mark.parametrize("sizes", [(-4, 0), (-4, 2), (2, -4), (-2, -2), (0, 0, -3, 1)], ids=str)
def test_pad_cuts_no_more_than_there_is(sizes):
    with pytest.raises(ValueError, match=r"\[pad\] pad: cuts more than there is of dimension . of \(2, 3\)"):
        F.pad(rl.ones(2, 3), sizes)


def test_the_gradient_of_pad_is_a_part():
    x = rl.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    (F.pad(x, (1, -1, 2, 0), value=5.0) * rl.arange(9.0).reshape(3, 3)).sum().backward()
    assert x.grad.tolist() == [[7.0, 8.0, 0.0]]


def test_one_hot_reads_nothing_where_the_classes_are_known():
    index = rl.tensor([[2, 0], [1, 1]])
    assert F.one_hot(index).tolist() == F.one_hot(index, 3).tolist() == np.eye(3, dtype=int)[index.numpy()].tolist()
    wide = F.one_hot(rl.arange(6).reshape(2, 3).T, 6)
    assert wide.dtype == "int64" and (wide.numpy() == np.eye(6)[np.arange(6).reshape(2, 3).T]).all()
    graph = rl.Graph(device="cpu")
    with graph.capture():  # in which nothing can be read
        y = F.one_hot(index, 4)
    graph.replay()
    assert y.argmax(-1).tolist() == index.tolist()
    assert F.one_hot(rl.zeros(0, dtype="int64"), 3).shape == (0, 3)
    assert F.one_hot(rl.zeros(2, dtype="int64", device=rl.meta()), 3).shape == (2, 3)


X, I = rl.ones(2, 3), rl.tensor([0, 2])  # noqa: E741
WRONG = [
    (ValueError, r"\[one_hot\] index: expected no negative classes, got -2", lambda: F.one_hot(rl.tensor([-2, -2]))),
    (ValueError, r"\[one_hot\] index: expected in \[0, 2\), got -2", lambda: F.one_hot(rl.tensor([-2, 1]))),
    (ValueError, r"\[one_hot\] index: expected in \[0, 3\), got -2", lambda: F.one_hot(rl.tensor([-2, 1]), 3)),
    (ValueError, r"\[one_hot\] index: expected in \[0, 2\), got 2", lambda: F.one_hot(I, 2)),
    (ValueError, r"num_classes: expected at least 1, or -1 .*, got 0", lambda: F.one_hot(I, 0)),
    (ValueError, r"num_classes: expected at least 1, or -1 .*, got -2", lambda: F.one_hot(I, -2)),
    (ValueError, r"num_classes: expected their number .*\(0,\)", lambda: F.one_hot(I[:0])),
    (ValueError, r"num_classes: expected their number", lambda: F.one_hot(I.to(rl.meta()))),
    (TypeError, r"num_classes: expected an integer, got 3.0", lambda: F.one_hot(I, 3.0)),
    (TypeError, r"num_classes: expected an integer, got True", lambda: F.one_hot(I, True)),
    (TypeError, r"\[pad\] pad: expected a sequence of integers, got 1", lambda: F.pad(X, 1)),
    (TypeError, r"\[pad\] pad: expected a sequence of integers, got \(1.5, 0\)", lambda: F.pad(X, (1.5, 0))),
    (ValueError, r"\[glu\] dim: expected one of the 2 dimensions of x, got 5", lambda: F.glu(X, 5)),
    (ValueError, r"\[glu\] dim: expected one of the 0", lambda: F.glu(rl.tensor(1.0))),
    (ValueError, r"\[cosine_similarity\] shapes \(2, 3\) and \(2,\) do not", lambda: F.cosine_similarity(X, I)),
    (ValueError, r"\[cosine_similarity\] b: expected a floating-point", lambda: F.cosine_similarity(I, I, 0)),
    (ValueError, r"\[nll_loss\] target: expected int64 or int32, got bool", lambda: F.nll_loss(X, I > 0)),
    (ValueError, r"\[nll_loss\] target: expected int64 or int32, got float32", lambda: F.nll_loss(X, X[:, 0])),
    (ValueError, r"\[nll_loss\] reduction: expected 'mean'", lambda: F.nll_loss(X, I, reduction="x")),
    (TypeError, r"\[leaky_relu\] negative_slope: expected a number, got NoneType", lambda: F.leaky_relu(X, None)),
    (TypeError, r"\[elu\] alpha: expected a number, got str", lambda: F.elu(X, "a")),
    (TypeError, r"\[normalize\] eps: expected a number, got str", lambda: F.normalize(X, eps="a")),
    (TypeError, r"\[cosine_similarity\] eps: expected a number, got str", lambda: F.cosine_similarity(X, X, eps="a")),
    (ValueError, r"\[dropout\] p: expected a number from 0 to 1, got 'a'", lambda: F.dropout(X, "a")),
    (TypeError, r"\[layer_norm\] normalized_shape: expected integers, got None", lambda: F.layer_norm(X, None)),
    (TypeError, r"\[rms_norm\] normalized_shape: expected integers, got \(3.0,\)", lambda: F.rms_norm(X, (3.0,))),
    (TypeError, r"\[glu\] dim: expected an integer, got NoneType", lambda: F.glu(X, None)),
    (ValueError, r"\[Dropout\] p: expected a number from 0 to 1, got None", lambda: rl.nn.Dropout(None)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "says", "call"), WRONG, ids=[says for _, says, _ in WRONG])
def test_bad_input_is_one_sentence(error, says, call):
    with pytest.raises(error, match=says):
        call()


TAKE_MORE = {
    "cosine_similarity": (X, 0), "cross_entropy": (I,), "l1_loss": (X,), "layer_norm": (3,), "mse_loss": (X,),
    "nll_loss": (I,), "pad": ((1, 1),), "rms_norm": (3,), "scaled_dot_product_attention": (X, X),
}  # fmt: skip
COMPOSED = ["dropout", "elu", "glu", "leaky_relu", "logsigmoid", "normalize", "one_hot", "softplus", *TAKE_MORE]


@pytest.mark.parametrize("name", sorted({*COMPOSED} - {"one_hot", "pad", "scaled_dot_product_attention"}))
def test_integers_are_refused_as_in_pytorch(name):
    more = (
        (I, *TAKE_MORE[name][1:]) if name in ("cosine_similarity", "l1_loss", "mse_loss") else TAKE_MORE.get(name, ())
    )
    with pytest.raises(ValueError, match=r"\[\w+\] \w+: expected a floating-point dtype, got int64"):
        getattr(F, name)(I, *more)


@pytest.mark.parametrize("name", COMPOSED)
def test_what_is_no_tensor_is_refused(name):
    more = TAKE_MORE.get(name, ())
    with pytest.raises(TypeError, match=rf"\[{name}\] \w+: expected a tensor, got list"):
        getattr(F, name)([1.0], *more)
    if name in ("cosine_similarity", "cross_entropy", "l1_loss", "mse_loss", "nll_loss"):
        with pytest.raises(TypeError, match=rf"\[{name}\] \w+: expected a tensor, got float"):
            getattr(F, name)(X, 1.0)


def test_targets_that_do_not_count():
    log_p = rl.tensor([[-1.0, -2.0], [-3.0, -4.0], [-5.0, -6.0]], requires_grad=True)
    target = rl.tensor([1, -100, 0])
    assert F.nll_loss(log_p, target).item() == (2 + 5) / 2 and F.nll_loss(log_p, target, reduction="sum").item() == 7
    assert F.nll_loss(log_p, target, reduction="none").tolist() == [2.0, 0.0, 5.0]
    classes = rl.tensor([1, 1, 0], dtype=rl.int32)
    assert F.nll_loss(log_p, classes, ignore_index=0, reduction="none").tolist() == [2.0, 4.0, 0.0]
    F.nll_loss(log_p, target).backward()
    assert log_p.grad.tolist() == [[0.0, -0.5], [0.0, 0.0], [-0.5, 0.0]]
    none = rl.tensor([-100, -100, -100])
    assert math.isnan(F.nll_loss(log_p, none).item()) and F.nll_loss(log_p, none, reduction="sum").item() == 0.0
    x = rl.randn(4, 3)
    for classes in (rl.tensor([0, 2, -100, 1]), rl.tensor([2, 2, 2, 2])):
        for reduction in ("mean", "sum"):
            right = F.cross_entropy(x, classes, reduction=reduction).item()
            assert F.nll_loss(x.log_softmax(1), classes, reduction=reduction).item() == pytest.approx(right, rel=1e-6)


def test_a_reduction_has_its_keyword():
    """PyTorch has size_average in its place, so that a text there would mean "mean"."""
    for call in (
        lambda: F.mse_loss(X, X, "sum"),
        lambda: F.l1_loss(X, X, "sum"),
        lambda: F.nll_loss(X, I, "sum"),
        lambda: F.cross_entropy(X, I, "sum"),
        lambda: rl.nn.MSELoss("sum"),
        lambda: rl.nn.CrossEntropyLoss("sum"),
    ):
        with pytest.raises(TypeError, match="no such argument; write"):
            call()
