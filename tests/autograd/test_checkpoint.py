"""rl.autograd.checkpoint: the gradients of the function itself, from the memory of its arguments alone."""

import gc
import weakref

import numpy as np
import pytest

import rooflab as rl
from rooflab.autograd import checkpoint, saved_tensors
from rooflab.testing import assert_close, to_float64


def leaf(*shape, **options):
    return rl.randn(*shape, requires_grad=True, **options)


def block(x, w):
    return x + rl.softmax(rl.gelu(x @ w) * 3) @ w.T


def gradients(function, x, w):
    """Gradients of a function between two ops, so that it is neither the first nor the last of its graph."""
    y = function(rl.exp(x), w)
    loss = rl.sin(y).sum()
    loss.backward()
    found = [to_float64(t) for t in (loss, x.grad, w.grad)]
    x.grad = w.grad = None
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_are_the_same_to_the_bit(dtype, device):
    x, w = leaf(5, 7, dtype=dtype, device=device), leaf(7, 7, dtype=dtype, device=device)
    plain = gradients(block, x, w)
    given = gradients(lambda x, w: checkpoint(block, x, w), x, w)
    closed_over = gradients(lambda x, w: checkpoint(lambda x: block(x, w), x), x, w)
    nested = gradients(lambda x, w: checkpoint(lambda x, w: checkpoint(block, checkpoint(block, x, w), w), x, w), x, w)
    twice = gradients(lambda x, w: block(block(x, w), w), x, w)
    for others, expected in ((given, plain), (closed_over, plain), (nested, twice)):
        for other, value in zip(others, expected, strict=True):
            assert np.array_equal(other, value)


def test_options_of_pytorch_that_say_what_it_does():
    x = leaf(2)
    assert checkpoint(rl.exp, x, use_reentrant=False, preserve_rng_state=True).tolist() == rl.exp(x).tolist()
    with pytest.raises(
        ValueError, match=r"^\[checkpoint\] use_reentrant: expected False, which is what it does, got True$"
    ):
        checkpoint(rl.exp, x, use_reentrant=True)
    with pytest.raises(TypeError, match=r"^\[checkpoint\] dim: expected no keywords for the function; give its"):
        checkpoint(rl.softmax, x, dim=0)
    with pytest.raises(TypeError, match=r"^\[checkpoint\] function: expected a callable, got Tensor$"):
        checkpoint(x, x)


def test_the_graph_keeps_the_arguments_alone(device, no_garbage):
    x, w = leaf(64, 64, device=device), leaf(64, 64, device=device)
    h = x * 2
    before = rl.memory.allocated(device)
    y = checkpoint(block, h, w)
    assert rl.memory.allocated(device) == before + y.nbytes
    assert [(s.op, s.is_input) for s in saved_tensors(y)] == [("matmul", False), ("matmul", True)]
    z = checkpoint(lambda h: rl.sin(rl.exp(h)), h)  # no op saves h itself
    assert [(s.op, s.is_input) for s in saved_tensors(z)] == [("checkpoint", False)]
    del h, z
    y.backward(rl.ones(64, 64, device=device))
    x.grad = w.grad = None
    assert saved_tensors(y) == []
    assert rl.memory.allocated(device) == before - x.nbytes + y.nbytes  # h is gone, though y is not


def test_backward_costs_one_more_forward_and_no_more_memory_than_the_block():
    x, w = leaf(64, 64), leaf(64, 64)
    with rl.count() as forward:
        y = block(x, w)
    with rl.count() as plain:
        y.backward(rl.ones(64, 64))
    x.grad = w.grad = None
    y = checkpoint(block, x, w)
    with rl.count() as counted:
        y.backward(rl.ones(64, 64))
    assert counted.flops == plain.flops + forward.flops
    (again,) = (name for name in counted.by_range if name.endswith("recompute"))
    assert counted.by_range[again].flops == forward.flops


def test_what_was_made_again_is_freed_on_the_way():
    def chain(x):
        for _ in range(20):
            x = rl.sin(x)  # each saves its operand
        return x

    x = leaf(256, 256)
    y = checkpoint(chain, rl.exp(x))
    before = rl.memory.allocated()
    with rl.count() as counted:
        y.backward(rl.ones(256, 256))
    # 19 operands besides the argument, the result of the last op, and the given gradient. From then on one operand goes
    # whenever a gradient comes.
    assert counted.peak_bytes <= 23 * x.nbytes
    assert rl.memory.allocated() < before + 2 * x.nbytes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_autocast_is_what_it_was(dtype):
    """When the backward pass comes, the context of the forward pass is over, or another one is open."""
    x, w = leaf(5, 7), leaf(7, 7)
    other_dtype = "bfloat16" if dtype == "float16" else "float16"

    def mixed(x, w):
        with rl.autocast(dtype):
            return block(x, w)

    def hidden(x, w):
        with rl.autocast(dtype):
            return checkpoint(block, x, w)

    def back_inside(function, x, w):
        y = function(rl.exp(x), w).sum()
        with rl.autocast(other_dtype):
            y.backward()
        found = x.grad.numpy()
        x.grad = w.grad = None
        return found

    for other, expected in zip(gradients(hidden, x, w), gradients(mixed, x, w), strict=True):
        assert np.array_equal(other, expected)
    plain = back_inside(block, x, w)
    assert np.array_equal(back_inside(lambda x, w: checkpoint(block, x, w), x, w), plain)
    low = back_inside(mixed, x, w)
    assert np.array_equal(back_inside(hidden, x, w), low)
    assert not np.array_equal(low, plain)


def test_a_graph_can_be_kept_and_run_twice():
    x, w = leaf(4, 4), leaf(4, 4)
    y = checkpoint(block, x, w)
    y.sum().backward(retain_graph=True)
    once = x.grad.numpy().copy()
    y.sum().backward()
    assert (x.grad.numpy() == 2 * once).all()
    with pytest.raises(ValueError, match="freed by an earlier backward"):
        y.sum().backward()


def test_grad_finds_weights_that_were_not_given():
    x, w = leaf(4, 4), leaf(4, 4)
    y = checkpoint(lambda x: block(x, w), x)
    (dw,) = rl.autograd.grad(y.sum(), w, retain_graph=True)
    block(x, w).sum().backward()
    assert (dw.numpy() == w.grad.numpy()).all()
    assert checkpoint(lambda: w * w).requires_grad


def test_several_results_and_other_arguments():
    x = leaf(3)
    low, high = checkpoint(lambda x, scale, name: (rl.exp(x) * scale, {"name": name, "y": rl.sin(x)}), x, 2.0, "sine")
    assert high["name"] == "sine"
    high["y"].sum().backward(retain_graph=True)
    assert_close(x.grad, rl.cos(x.detach()))
    low.sum().backward()
    assert_close(x.grad, rl.cos(x.detach()) + 2 * rl.exp(x.detach()))


def test_nothing_is_recorded_without_grad():
    x = leaf(3)
    with rl.no_grad():
        assert not checkpoint(rl.exp, x).requires_grad
    assert not checkpoint(rl.exp, x.detach()).requires_grad


def test_a_function_of_ones_own_inside():
    class Cube(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, dy):
            _, y = ctx.saved_tensors
            return 3 * y * dy

    x = rl.tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(lambda x: Cube.apply(rl.exp(x)), x)
    assert [s.op for s in saved_tensors(y)] == ["checkpoint"]
    y.sum().backward()
    assert_close(x.grad, 3 * rl.exp(3 * x.detach()), rtol=1e-5)


def test_changes_in_between_are_noticed():
    x, w = leaf(4, 4), leaf(4, 4)
    h = x * 1
    y = checkpoint(lambda h: rl.sin(rl.exp(h)), h)
    with rl.no_grad():
        h.mul_(2)
    with pytest.raises(ValueError, match=r"\[checkpoint\] backward: an input of shape \(4, 4\) was changed in place"):
        y.sum().backward()
    y = checkpoint(lambda x: block(x, w), x)
    with rl.no_grad():
        w.mul_(2)
    with pytest.raises(ValueError, match="changed in place"):
        y.sum().backward()


def test_a_function_that_does_something_else_is_noticed():
    x = leaf(4)
    calls = []

    def fickle(x):
        calls.append(x)
        return rl.sin(rl.exp(x)) if len(calls) == 1 else rl.sin(rl.cos(rl.exp(x)))

    y = checkpoint(fickle, x)
    with pytest.raises(ValueError, match="saved 2 tensors, and 3 or others when it ran again"):
        y.sum().backward()

    def fails(x):
        if len(calls) > 2:
            raise RuntimeError("a block that fails")
        calls.append(x)
        return rl.sin(rl.exp(x))

    y = checkpoint(fails, x)
    calls.append(x)
    with pytest.raises(RuntimeError, match="a block that fails"):
        y.sum().backward()
    z = rl.sin(rl.exp(x))  # recorded as usual after the failure
    assert [s.op for s in saved_tensors(z)] == ["exp"]


def test_a_checkpoint_that_nobody_goes_back_through_is_forgotten(no_garbage):
    class Layer:
        def __call__(self, x):
            return rl.sin(rl.exp(x))

    layer, x = Layer(), leaf(64)
    alive = weakref.ref(layer)
    before = rl.memory.allocated()
    y = checkpoint(layer, x * 2)
    del layer, y
    gc.collect()
    assert alive() is None and rl.memory.allocated() == before
