"""Gradients of functions that are composed of others are those of differences."""

import numpy as np
import pytest

import rooflab as rl

# Functions of w, whose gradients are compared with differences.
SMOOTH = {
    "prod": lambda w: (w.prod(1) * rl.tensor([1.0, 2.0], dtype="float64")).sum(),
    "prod with zeros": lambda w: (w * rl.tensor([0.0, 1.0, 2.0, 1.0], dtype="float64")).prod(),
    "prod with a zero": lambda w: (w - 0.3).prod(1).sum(),  # at w[0, 0], whose gradient is the product of the others
    "roll": lambda w: (w.roll((1, 1), (0, 1)) * w).sum(),
    "flip": lambda w: (w.flip(1) * w).sum(),
    "tile": lambda w: (w.tile(2, 2) ** 2).sum(),
    "diag": lambda w: (rl.diag(w[0], 1) ** 2).sum() + (rl.diag(w, 1) ** 2).sum(),
    "scatter": lambda w: (w.scatter(1, rl.tensor([[2], [0]]), w[:, 1:2] * 3) ** 2).sum(),
    "scatter of two to one place": lambda w: (w.scatter(1, rl.tensor([[2, 2], [0, 1]]), w[:, :2] * 3) ** 2).sum(),
    "scatter of a number": lambda w: (w.scatter(1, rl.tensor([[2], [0]]), 5.0) ** 2).sum(),
    "index_add": lambda w: (w.index_add(0, rl.tensor([1, 1]), w * w, alpha=2) ** 2).sum(),
    "prod of one": lambda w: (w[:1].prod(0) ** 2).sum(),
    "prod of none": lambda w: (w[:0].prod(0) * w).sum(),
    "lerp": lambda w: (rl.lerp(w, w * w, 0.8) ** 2).sum(),
    "lerp of a tensor": lambda w: (rl.lerp(w, w * w, w.sin()) ** 2).sum(),
    "log2": lambda w: (w * w).log2().sum(),
    "median of all": lambda w: w.median() ** 2,
    "np.maximum": lambda w: (np.maximum(w, w * w) ** 2).sum(),
    "np.square": lambda w: np.square(np.negative(np.abs(w))).sum(),
    "median": lambda w: (w.median(1).values ** 2).sum(),
    "logsumexp": lambda w: (w.logsumexp(0) ** 2).sum(),
    "outer": lambda w: (rl.outer(w[0], w[1]) ** 2).sum(),
    "addmm": lambda w: (rl.addmm(w[:, :2], w, w.T, beta=2, alpha=3) ** 2).sum(),
    "addmm of nothing": lambda w: (rl.addmm(w[:, :2], w, w.T, beta=0) ** 2).sum(),
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
    "l1_loss": lambda w: rl.nn.functional.l1_loss(w, w * w, reduction="sum"),
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


def gradient(function, numbers):
    w = rl.tensor(numbers, requires_grad=True)
    function(w).backward()
    return w.grad.tolist()


def test_the_gradient_of_the_median_of_all_is_shared_by_equals():
    assert gradient(lambda w: w.median(), [1.0, 1.0, 2.0]) == [0.5, 0.5, 0.0]
    assert gradient(lambda w: w.median(0).values, [1.0, 1.0, 2.0]).count(1.0) == 1
    assert gradient(lambda w: w.median(), 3.0) == 1.0


def test_the_gradient_of_logsumexp_at_infinity_is_that_of_pytorch():
    inf = float("inf")
    assert gradient(lambda w: w.logsumexp(0), [-inf, 1.0]) == [0.0, 1.0]
    assert np.isnan(gradient(lambda w: w.logsumexp(1).sum(), [[-inf, -inf], [0.0, -inf]])).tolist() == [
        [True, True],
        [False, False],
    ]
    assert (
        gradient(lambda w: w.logsumexp(()), [0.0, 0.0]) == [0.5, 0.5] and gradient(lambda w: w.logsumexp(0), 2.0) == 1.0
    )


def test_an_end_that_is_infinite_leaves_the_gradient_of_the_weight():
    w = rl.tensor([0.25, 0.75], requires_grad=True)
    rl.lerp(rl.zeros(2), rl.full((2,), float("inf")), w).sum().backward()
    assert w.grad.tolist() == [float("inf")] * 2


def test_gradients_are_right_where_a_part_has_none():
    F, inf = rl.nn.functional, float("inf")
    assert gradient(lambda w: F.softplus(w).sum(), [0.0, -inf, inf, 100.0]) == [0.5, 0.0, 1.0, 1.0]
    assert gradient(lambda w: F.logsigmoid(w).sum(), [0.0, -100.0]) == [0.5, 1.0]
    assert gradient(lambda w: F.normalize(w, dim=0, eps=0.5).sum(), [0.0, 0.0]) == [2.0, 2.0]
    assert gradient(lambda w: F.elu(w).sum(), [0.0]) == [1.0] and gradient(lambda w: w.abs().sum(), [0.0]) == [0.0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_gradients_of_many_copies_are_added_once(dtype):
    """One by one they would stop growing at 256 in float16, and at 32 in bfloat16."""
    w = rl.ones(2, dtype=dtype, requires_grad=True)
    rl.tile(w, (4000, 1)).backward(rl.full((4000, 2), 0.1, dtype=dtype))
    assert w.grad.tolist() == [400.0, 400.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_logsumexp_adds_16_bits_in_float32(dtype):
    x = rl.full((70000,), 1.0, dtype=dtype, requires_grad=True)
    y = rl.logsumexp(x, 0)
    y.backward()
    assert y.dtype == dtype and y.item() == pytest.approx(1 + np.log(70000), rel=4e-3)  # the sum is no float16
    assert x.grad.dtype == dtype and x.grad[0].item() == pytest.approx(1 / 70000, rel=4e-3)


@pytest.mark.parametrize("factors", [{"beta": 0}, {"alpha": 0}, {"beta": 0, "alpha": 0}])
def test_an_operand_times_0_has_a_gradient_of_zeros(factors):
    names = {"beta": ["x"], "alpha": ["a", "b"]}
    operands = {name: rl.full((2, 2), np.nan, requires_grad=True) for name in ("x", "a", "b")}
    rl.addmm(*operands.values(), **factors).sum().backward()
    for name in (name for factor in factors for name in names[factor]):
        assert operands[name].grad is not None and not operands[name].grad.abs().sum().item() > 0


@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_addmm_without_x_is_the_same_whether_x_requires_grad(shape, dtype):
    x, a = rl.ones(*shape, dtype=dtype), rl.rand(2, 3)
    plain, recorded = (rl.addmm(each, a, a.T, beta=0) for each in (x, x.clone().requires_grad_()))
    assert plain.dtype == recorded.dtype == (x + a @ a.T).dtype and plain.tolist() == recorded.tolist()


@pytest.mark.parametrize("factor", ["beta", "alpha"])
@pytest.mark.parametrize("number", [0.0, 1.0, 2.0])
def test_a_factor_that_requires_grad_is_refused(factor, number):
    with pytest.raises(TypeError, match=rf"\[addmm\] {factor}: expected a number, got .*its gradient would be lost"):
        rl.addmm(*[rl.ones(2, 2)] * 3, **{factor: rl.tensor(number, requires_grad=True)})
    with pytest.raises(TypeError, match=r"\[add\] alpha: expected a number, got .*its gradient would be lost"):
        rl.ones(2).add(rl.ones(2), alpha=rl.tensor(number, requires_grad=True))


def test_a_zero_beside_many_infinities_counts_in_the_gradient_of_prod():
    w = rl.full((2**21 + 3,), np.inf)
    w[0], w[1] = 0, 2
    w.requires_grad_().prod().backward()
    assert w.grad[0].item() == np.inf and rl.isnan(w.grad[1:]).all().item()


def test_the_gradient_of_prod_is_the_product_of_the_others_beside_a_zero():
    inf, nan = np.inf, np.nan
    for numbers, expected in {
        (-inf, 0, 2): [0, -inf, nan],
        (nan, 0, 2): [0, nan, nan],
        (inf, 0, inf): [nan, inf, nan],
        (inf, 0, 0, 2): [0, nan, nan, nan],
        (3, 0, 2): [0, 6, 0],
        (nan, 3): [nan, nan],
    }.items():
        for shape, dim in (((-1,), None), ((1, -1), 1), ((-1, 1), 0)):
            w = rl.tensor(numbers).float().reshape(*shape).detach().requires_grad_()
            w.prod(dim).sum().backward()
            np.testing.assert_array_equal(w.grad.flatten().numpy(), np.array(expected, np.float32))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
def test_a_step_has_no_gradient(name):
    x = rl.tensor([1.5, -0.5], requires_grad=True)
    assert not getattr(x, name)().requires_grad
    assert not getattr(rl, name)(x).requires_grad
