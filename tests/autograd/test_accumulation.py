"""Gradients that are kept: added in place, each as soon as it is complete, and cleared in place for captured steps."""

import threading
import time

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def leaf(*shape, device="cpu"):
    return rl.randn(*shape, device=device, requires_grad=True)


def stack_of(layers, size, device="cpu"):
    weights = [leaf(size, size, device=device) for _ in range(layers)]

    def loss(x):
        for w in weights:
            x = rl.sin(x @ w)
        return x.sum()

    return weights, loss


def peak_of_backward(loss, x, device):
    y = loss(x)
    before = rl.memory.allocated(device)
    rl.memory.reset_peak(device)
    with rl.count() as c:
        y.backward()
    return rl.memory.peak(device) - before, c


def test_gradients_that_are_there_need_no_second_set(device):
    """The peak of a backward into kept gradients was that of one without them, and all gradients more."""
    layers, size = 12, 64
    weights, loss = stack_of(layers, size, device)
    x = rl.randn(4, size, device=device)
    first, _ = peak_of_backward(loss, x, device)
    places = [w.grad.data_ptr() for w in weights]
    kept, counted = peak_of_backward(loss, x, device)
    one = weights[0].nbytes
    assert first > 10 * one and kept < 3 * one
    assert [w.grad.data_ptr() for w in weights] == places
    assert counted.by_op["add"].launches == layers


def test_a_weight_of_several_uses_adds_up_first():
    """To the bit what it was: contributions are summed, then added in one launch."""
    w = leaf(5)
    parts = [rl.randn(5) for _ in range(3)]

    def backward():
        with rl.count() as c:
            (w * parts[0] + w * parts[1] + w * parts[2]).sum().backward()
        return c.by_op["add"].launches

    adds = backward()
    once = w.grad.numpy().copy()
    assert backward() == adds + 1
    assert (w.grad.numpy() == once + once).all()


def test_a_held_gradient_is_read_as_it_was():
    """What a pass still needs does not change under it."""
    v, w = rl.ones(3, requires_grad=True), rl.ones(3, requires_grad=True)
    w.grad = rl.full((3,), 2.0)
    first = (v * w.grad).sum()  # saves w.grad; recorded first, so it goes back last
    (first + (w * 5).sum()).backward()
    assert v.grad.tolist() == [2.0] * 3 and w.grad.tolist() == [7.0] * 3

    for shared in (lambda x: x, rl.from_dlpack):  # the same memory, in a storage or in two
        v.grad = None
        w.grad = rl.full((3,), 2.0)
        (w + v).backward(shared(w.grad))
        assert v.grad.tolist() == [2.0] * 3 and w.grad.tolist() == [4.0] * 3


def test_gradients_of_any_layout_are_kept():
    for grad in (rl.ones(4, 3).T, rl.ones(1).expand(3, 4), rl.ones(3, 8)[:, ::2]):
        w = leaf(3, 4)
        w.grad = grad
        (w * 2).sum().backward()
        assert_close(w.grad, np.full((3, 4), 3.0), rtol=0, atol=0)
    w = leaf(3, 4)
    w.grad = base = rl.ones(3, 4)
    rl.sum(w).backward()  # its gradient is one number, expanded
    assert base.tolist() == [[2.0] * 4] * 3


def test_threads_add_to_one_leaf(device):
    w = rl.zeros(1000, device=device, requires_grad=True)
    w.grad = rl.zeros(1000, device=device)

    def work():
        for _ in range(20):
            (w * 1).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.grad.tolist() == [80.0] * 1000


@pytest.mark.parametrize("clear", ["optimizer", "module"])
def test_gradients_are_cleared_where_a_captured_step_writes_them(clear, device):
    linear = rl.nn.Linear(3, 1).to(device) if hasattr(rl.nn.Linear, "to") else rl.nn.Linear(3, 1, device=device)
    w, x = linear.weight, rl.ones(1, 3, device=device)
    holder = linear if clear == "module" else rl.optim.AdamW([w])
    (w * x).sum().backward()
    graph = rl.Graph(device=device)
    with graph.capture():
        (w * x).sum().backward()
    holder.zero_grad(set_to_none=False)
    x.fill_(7.0)
    graph.replay()
    assert w.grad.tolist() == [[7.0, 7.0, 7.0]]


def test_an_expanded_gradient_is_cleared():
    w = rl.ones(3, requires_grad=True)
    w.grad = shared = rl.ones(1).expand(3)
    rl.optim.AdamW([w]).zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0.0] * 3 and shared.tolist() == [1.0] * 3


def test_a_gradient_is_one_object_and_what_is_set_in_it_is_set_in_the_leaf():
    w = rl.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    gradient = w.grad
    assert w.grad is gradient
    gradient.data = rl.tensor([5.0, 6.0])
    assert w.grad is gradient and w.grad.tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"\[data\] gradient: expected \(2,\) float32 on cpu, got \(3,\)"):
        gradient.data = rl.ones(3)
    gradient.requires_grad_()
    assert w.grad is gradient and w.grad.requires_grad
    gradient.requires_grad = False
    assert not w.grad.requires_grad
    given = rl.zeros(2)
    w.grad = given
    assert w.grad is given
    given.data = rl.ones(2)
    assert w.grad.tolist() == [1, 1]
    gradient.data = rl.zeros(3)  # of no leaf any more
    assert w.grad is given and w.grad.tolist() == [1, 1]
    (w * 2).sum().backward()
    assert w.grad.tolist() == [3, 3] and given.tolist() == [3, 3]
    w.grad = None
    assert w.grad is None


def test_what_is_set_in_a_gradient_is_set_in_all_its_leaves_and_in_no_other():
    leaves = [rl.ones(3, requires_grad=True) for _ in range(8)]
    shared = rl.zeros(3)
    for w in leaves:
        w.grad = shared
    for w in leaves[::2]:
        w.grad = None
    leaves[3].grad = rl.zeros(3)
    leaves[1].data = rl.ones(4)  # drops its gradient
    shared.data = rl.full((3,), 6.0)
    shared.requires_grad_()
    assert [w.grad for w in (leaves[1], *leaves[::2])] == [None] * 5
    assert leaves[3].grad.tolist() == [0] * 3
    assert leaves[5].grad is shared and leaves[7].grad is shared and shared.tolist() == [6] * 3


def test_what_is_set_in_a_tensor_costs_the_same_however_many_gradients_are_held():
    def seconds():
        x = rl.ones(1)
        start = time.perf_counter()
        for _ in range(1000):
            x.requires_grad_()
        return time.perf_counter() - start

    alone = min(seconds() for _ in range(3))
    leaves = [rl.ones(1, requires_grad=True) for _ in range(4000)]
    for w in leaves:
        w.grad = rl.ones(1)
    held = [w.grad for w in leaves]
    assert min(seconds() for _ in range(3)) < 20 * alone + 0.01
    assert len(held) == len(leaves)


def test_gradients_that_nobody_holds_are_forgotten():
    held = []
    for _ in range(300):
        w = rl.ones(1, requires_grad=True)
        (w * 3).sum().backward()
        held.append((w, w.grad))
        assert rl.ones(1, requires_grad=True).grad is None
    for w, gradient in held:
        assert w.grad is gradient and w.grad.tolist() == [3]
