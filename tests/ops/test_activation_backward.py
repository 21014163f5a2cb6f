"""Backward ops of activations: what a backward pass of them starts and moves, and where the rule is made of ops."""

import pytest

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

CALLS = {"gelu": (rl.gelu, 1), "silu": (rl.silu, 1), "geglu": (rl.geglu, 2), "swiglu": (rl.swiglu, 2)}


def leaves(count, *shape, **options):
    return [rl.randn(*shape, requires_grad=True, **options) for _ in range(count)]


def counted_back(y):
    dy = rl.ones(*y.shape, dtype=y.dtype, device=y.device)
    with rl.count() as c:
        y.backward(dy)
    return c


@pytest.mark.parametrize("target", ["meta", "meta:H200"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_a_backward_pass_is_one_launch_and_moves_what_it_must(name, dtype, target):
    forward, operands = CALLS[name]
    xs = leaves(operands, 64, 256, dtype=dtype, device=target)
    c = counted_back(forward(*xs))
    size = xs[0].nbytes
    assert (c.launches, c.bytes_read, c.bytes_written) == (1, (1 + operands) * size, operands * size)
    assert c.peak_bytes == operands * size


@pytest.mark.parametrize("name", ["geglu", "swiglu"])
def test_halves_of_one_tensor_are_read_where_they_lie(name, device):
    """As in models, where gate and up are columns of one product."""
    rl.manual_seed(0)
    (both,) = leaves(1, 6, 32, device=device)
    gate, up = (half.detach().contiguous().requires_grad_() for half in both.chunk(2, -1))
    y = getattr(rl, name)(*both.chunk(2, -1))
    dy = rl.randn(6, 16, device=device)
    with rl.count() as c:
        y.backward(dy)
    assert c.by_op[f"{name}_backward"].launches == 1
    getattr(rl, name)(gate, up).backward(dy)
    assert both.grad.tolist() == rl.cat([gate.grad, up.grad], -1).tolist()


@pytest.mark.parametrize("name", ["geglu", "swiglu"])
@pytest.mark.parametrize("shapes", [((4, 6), (6,)), ((6,), (4, 6)), ((4, 1), (1, 6))])
def test_operands_that_broadcast(name, shapes):
    rl.manual_seed(0)
    forward, (a, b) = CALLS[name][0], [leaves(1, *shape, dtype="float64")[0] for shape in shapes]
    dy = rl.randn(4, 6, dtype="float64")
    forward(a, b).backward(dy)
    whole = [x.detach().expand(4, 6).contiguous().requires_grad_() for x in (a, b)]
    forward(*whole).backward(dy)
    for x, full in zip((a, b), whole, strict=True):
        expected = to_float64(full.grad)
        while expected.ndim > x.ndim:
            expected = expected.sum(0)
        for dim, size in enumerate(x.shape):
            expected = expected.sum(dim, keepdims=True) if size == 1 else expected
        assert_close(x.grad, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["geglu", "swiglu"])
def test_one_gradient_alone(name):
    """A single gradient is made by other ops, which round in other places."""
    forward, (a, b) = CALLS[name][0], leaves(2, 5, 7)
    forward(a, b).backward(rl.ones(5, 7))
    alone = [x.detach().clone().requires_grad_() for x in (a, b)]
    forward(alone[0], b.detach()).backward(rl.ones(5, 7))
    forward(a.detach(), alone[1]).backward(rl.ones(5, 7))
    for x, found in zip((a, b), alone, strict=True):
        tolerance = 16 * unit_roundoff("float32")  # an operation of the formula rounds once
        assert_close(found.grad, to_float64(x.grad), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CALLS)
def test_far_from_zero_the_slope_is_0_or_1(name):
    backward, count = getattr(rl, f"{name}_backward"), CALLS[name][1]
    for rung in rl.variants(f"{name}_backward", "cpu"):
        x = rl.tensor([1e20, -1e20, 3e38, -3e38, 60.0, -120.0])
        found = backward(*[rl.ones(6), x, rl.ones(6)][: count + 1], variant=rung.name)
        slope = found[0] if count == 2 else found
        assert_close(slope, to_float64(rl.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])), rtol=1e-6, atol=1e-30)


A = rl.ones(3, 8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.gelu_backward(A[0], A), r"\[gelu_backward\] dy: expected the shape of a \(3, 8\), got \(8,\)"),
        (lambda: rl.silu_backward(A, A.to("int64")), r"\[silu_backward\] a: expected a floating-point dtype"),
        (lambda: rl.swiglu_backward(A, A, A[:1]), r"\[swiglu_backward\] b: expected the shape of a \(3, 8\), got"),
        (lambda: rl.geglu_backward(A, A, A.to("meta")), r"\[geglu_backward\] operands are on cpu and meta"),
        (lambda: rl.geglu_backward(A.to("float16"), A, A), r"\[geglu_backward\] operands are float32 and float16"),
        (lambda: rl.gelu_backward(A, A, variant="v9"), r"\[gelu_backward\] variant: expected one of v1_simd, v0_"),
    ],
)
def test_bad_arguments_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
