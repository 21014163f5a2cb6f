"""Gradients through compiled functions: those of the function, in few launches, from few tensors kept."""

import numpy as np
import pytest
from compiler.functions import gelu_of_eight, mlp

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


def bias_and_norm(x, bias, weight):
    y = rl.relu(x + bias) - 0.1 * x
    return rl.rms_norm(y, weight, eps=1e-6) * rl.sigmoid(y.mean(-1, keepdim=True))


def branches(x, y):
    z = rl.where(x > y, x * y, rl.exp(-x))
    return rl.softmax(z, -1) * x.T.reshape(4, 6), rl.maximum(x, y).sum()


CASES = {
    "gelu_of_eight": (gelu_of_eight, [(9, 33)]),
    "gelu": (lambda x: rl.gelu(x * 2) * x, [(9, 33)]),
    "mlp": (mlp, [(5, 8), (8, 12), (8, 12), (12, 8)]),
    "bias_and_norm": (bias_and_norm, [(7, 16), (16,), (16,)]),
    "branches": (branches, [(4, 6), (4, 6)]),
    "a view": (lambda x: x.T[1:] * 2, [(4, 6)]),
    "parts": (lambda x: rl.cat([-x[:, 3:], x[:, :3] * 2], -1) * x, [(4, 6)]),
    "twice": (lambda x: (x, x * x, (x * x).T), [(4, 6)]),
}


def leaves(shapes, dtype, seed=0):
    rl.manual_seed(seed)
    return [rl.randn(*shape, dtype="float64").to(dtype).requires_grad_() for shape in shapes]


def gradients(function, args, seed=1):
    results = function(*args)
    results = list(results) if isinstance(results, tuple) else [results]
    results = [y for y in results if y.requires_grad]
    rl.manual_seed(seed)
    directions = [rl.randn(*y.shape, dtype="float64").to(y.dtype) for y in results]
    return results, rl.autograd.grad(results, args, directions)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_of_the_function(case, dtype):
    function, shapes = CASES[case]
    args = leaves(shapes, dtype)
    wanted, wanted_grads = gradients(function, args)
    found, grads = gradients(rl.compile(function), args)
    steps = {"float64": 1e3, "float32": 1e2, "bfloat16": 12}[dtype]
    for y, expected in zip([*found, *grads], [*wanted, *wanted_grads], strict=True):
        assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
        largest = np.abs(to_float64(expected)).max()
        assert_close(y, to_float64(expected), rtol=0, atol=steps * unit_roundoff(dtype) * largest)


@pytest.mark.parametrize("case", CASES)
def test_central_differences(case):
    function, shapes = CASES[case]
    args = leaves(shapes, "float64")
    compiled = rl.compile(function)
    results, grads = gradients(compiled, args)
    rl.manual_seed(1)
    directions = [to_float64(rl.randn(*y.shape, dtype="float64")) for y in results]

    def value(at, step, toward):
        moved = [rl.tensor(to_float64(x) + (step * toward if i == at else 0)) for i, x in enumerate(args)]
        made = compiled(*moved)
        made = made if isinstance(made, tuple) else (made,)
        return sum((to_float64(y) * d).sum() for y, d in zip(made[-len(results) :], directions, strict=True))

    if case == "twice":  # the argument itself is a result, and no value of a program
        directions = directions[-len(results) :]
    for i, dx in enumerate(grads):
        toward = np.random.default_rng(i).standard_normal(dx.shape)
        slope = (value(i, 1e-6, toward) - value(i, -1e-6, toward)) / 2e-6
        assert_close((to_float64(dx) * toward).sum(), slope, rtol=1e-5, atol=1e-6)


def counted_back(function, args):
    with rl.count() as forward:
        y = function(*args)
    dy = rl.ones(*y.shape)
    kept = rl.autograd.saved_tensors(y)
    with rl.count() as back:
        y.backward(dy)
    return forward, back, kept


def test_gelu_of_eight_goes_back_in_one_launch():
    x = rl.randn(64, 64).requires_grad_()
    forward, back, kept = counted_back(rl.compile(gelu_of_eight), [x])
    assert (forward.launches, forward.bytes_written) == (1, x.nbytes)  # nothing is written for backward
    assert (back.launches, back.bytes_read, back.bytes_written) == (1, 2 * x.nbytes, x.nbytes)
    assert [(saved.shape, saved.is_input) for saved in kept] == [((64, 64), True)]
    _, eager, _ = counted_back(gelu_of_eight, [x])
    assert eager.launches == 12


def test_an_mlp_goes_back_in_its_matmuls_and_few_launches():
    args = [rl.randn(*shape).requires_grad_() for shape in ((32, 64), (64, 96), (64, 96), (96, 64))]
    before, eager, eager_kept = counted_back(mlp, args)
    for x in args:
        x.grad = None
    after, back, kept = counted_back(rl.compile(mlp), args)
    assert after.launches == 4 and before.launches == 5
    assert back.macs == eager.macs
    assert {op: counts.launches for op, counts in back.by_op.items() if counts.launches} == {
        "matmul": 6, "fused": 1, "add": 1,
    }  # fmt: skip
    assert back.launches < eager.launches
    assert sum(saved.bytes for saved in kept) < sum(saved.bytes for saved in eager_kept)


def test_tensors_without_memory_count_the_same():
    shapes = ((32, 64), (64, 96), (64, 96), (96, 64))
    counts = []
    for device in ("cpu", rl.meta("cpu")):
        args = [rl.ones(*shape, device=device).requires_grad_() for shape in shapes]
        y = rl.compile(mlp)(*args)
        dy = rl.ones(*y.shape, device=device)
        with rl.count() as c:
            y.backward(dy)
        counts.append([c.launches, c.flops, c.bytes_read, c.bytes_written, c.allocations, c.peak_bytes])
    assert counts[0] == counts[1]


def test_without_grad_mode_nothing_is_kept():
    x = rl.randn(8).requires_grad_()
    compiled = rl.compile(lambda x: rl.exp(x) * 2)
    assert compiled(x).requires_grad
    with rl.no_grad():
        assert not compiled(x).requires_grad
    assert not compiled(x.detach()).requires_grad


def test_some_results_have_no_gradient():
    def function(x, y):
        return x * 2, x > 0, y * 3, (x * y).detach()

    x, y = rl.randn(4).requires_grad_(), rl.randn(4)
    a, b, c, d = rl.compile(function)(x, y)
    assert [t.requires_grad for t in (a, b, c, d)] == [True, False, False, False]
    a.sum().backward()
    assert x.grad.tolist() == [2.0] * 4 and y.grad is None


def test_a_result_of_which_nothing_is_made():
    x = rl.randn(5).requires_grad_()
    a, b = rl.compile(lambda x: (x * 2, x * 3))(x)
    b.sum().backward()
    assert x.grad.tolist() == [3.0] * 5 and a.requires_grad


def test_an_expanded_gradient_is_read_as_it_is():
    x = rl.randn(64, 64).requires_grad_()
    y = rl.compile(gelu_of_eight)(x)
    total = y.sum()
    with rl.count() as c:
        total.backward()
    assert c.by_op["fused"].bytes_read == x.nbytes + 4
    assert "copy" not in c.by_op
    expected = rl.autograd.grad(gelu_of_eight(x).sum(), x)[0]
    assert_close(x.grad, to_float64(expected), rtol=1e-5, atol=1e-5)


def test_a_gradient_of_any_layout():
    for function in (lambda x, w: (x * 3 + x).T, lambda x, w: ((x * 3) @ w).T, lambda x, w: (x @ w) * 2 + 1):
        x, w = rl.randn(4, 6).requires_grad_(), rl.randn(6, 3)
        y = rl.compile(function)(x, w)
        dy = rl.randn(*y.shape[::-1]).T
        (dx,) = rl.autograd.grad(y, x, dy)
        assert_close(dx, to_float64(rl.autograd.grad(function(x, w), x, dy)[0]), rtol=1e-5, atol=1e-5)


def test_what_was_saved_may_not_change():
    x = rl.randn(5).requires_grad_()
    y = rl.compile(gelu_of_eight)(x)
    with rl.no_grad():
        x *= 2
    with pytest.raises(ValueError, match=r"gelu_of_eight.*changed in place"):
        y.sum().backward()


def test_backward_twice():
    x = rl.randn(5).requires_grad_()
    y = rl.compile(gelu_of_eight)(x).sum()
    y.backward(retain_graph=True)
    first = x.grad.tolist()
    y.backward()
    assert_close(x.grad, 2 * np.array(first))
    with pytest.raises(ValueError, match="freed by an earlier backward"):
        y.backward()


def test_a_step_of_training_is_compiled_as_one():
    def step(x, w, target):
        error = rl.relu(x @ w) - target
        (dw,) = rl.autograd.grad((error * error).sum(), w)
        return w - 0.01 * dw

    x, target = rl.randn(16, 8), rl.randn(16, 4)
    w = rl.randn(8, 4).requires_grad_()
    expected = step(x, w, target)
    with rl.count() as c:
        found = rl.compile(step)(x, w, target)
    assert_close(found, to_float64(expected), rtol=1e-5, atol=1e-5)
    assert {op: counts.launches for op, counts in c.by_op.items()} == {"matmul": 2, "fused": 2}


def test_backward_inside_falls_back():
    def step(x):
        (x * x).sum().backward()
        return x * 2

    def step_along(x):
        (x * x).sum().backward()
        return x.grad * 2

    for function, reason in ((step, r"\[backward\] sets the grad"), (step_along, r"\[grad\] reads the grad")):
        x = rl.ones(3).requires_grad_()
        with pytest.warns(UserWarning, match=f"op by op: {reason} of an argument; use rl.autograd.grad"):
            assert rl.compile(function)(x).tolist() == [2.0 if function is step else 4.0] * 3
        assert x.grad.tolist() == [2.0] * 3


def test_a_function_of_ones_own_inside():
    class Cube(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return 3 * x * x * dy

    x = rl.randn(6).requires_grad_()
    y = rl.compile(lambda x: Cube.apply(x) + 1)(x)
    y.sum().backward()
    assert_close(x.grad, 3 * to_float64(x) ** 2, rtol=1e-5)
