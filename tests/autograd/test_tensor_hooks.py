"""Hooks of tensors, which backward calls."""

import gc
import weakref

import pytest

import rooflab as rl


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


@pytest.mark.parametrize("other", [3.0, rl.tensor([3.0, 3.0]), rl.tensor([3.0, 3.0], requires_grad=True)])
def test_a_retained_gradient_is_that_of_what_was_written_in_place(other):
    w = rl.ones(2, requires_grad=True)
    y = w * 2
    y.retain_grad()
    (y * 7).sum().backward(retain_graph=True)
    y += other
    y.sub_(1)
    (y * 5).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [12.0, 12.0] and w.grad.tolist() == [24.0, 24.0]
    y.mul_(other)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [17.0, 17.0]


def test_a_retained_gradient_has_memory_of_its_own():
    w, held = rl.ones(2, requires_grad=True), []
    y = w * 1
    z = y + 0
    for tensor in (y, z):
        tensor.retain_grad()
    y.register_hook(held.append)
    d = rl.ones(2)
    z.backward(d, retain_graph=True)
    d.fill_(7)
    held[0].fill_(8)
    assert [tensor.grad.tolist() for tensor in (w, y, z)] == [[1.0, 1.0]] * 3
    z.grad.fill_(9)
    assert y.grad.tolist() == w.grad.tolist() == [1.0, 1.0]
    y.grad = z.grad = None
    (dy,) = rl.autograd.grad(z, y, rl.ones(2), retain_graph=True)
    dy.fill_(7)
    assert y.grad.tolist() == [1.0, 1.0] and z.grad.tolist() == [1.0, 1.0]
    y.grad = z.grad = None
    z.sum().backward()  # whose gradient repeats one element
    z.grad.mul_(2)
    assert y.grad.tolist() == [1.0, 1.0] and z.grad.tolist() == [2.0, 2.0]


def test_a_hook_that_holds_its_tensor_dies_with_it():
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


def test_a_hook_that_writes_into_memory_of_others_is_refused():
    """x + y hands one gradient to both, so that of y was changed too."""
    x, y = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g.mul_(100))
    with pytest.raises(
        ValueError, match=r"^\[register_hook\] the hook wrote into its gradient, whose memory others use"
    ):
        ((x + y) * rl.ones(2)).sum().backward()
    (x * rl.ones(2)).sum().backward()
    assert x.grad.tolist() == [100.0, 100.0], "memory of its own may be written to"
    handle.remove()


def test_a_hook_may_write_into_a_gradient_that_is_turned():
    """That of a weight of Linear is a view, whose memory nothing else uses."""
    layer, x = rl.nn.Linear(2, 3), rl.tensor([[1.0, 2.0]])
    layer(x).sum().backward()
    plain, layer.weight.grad = layer.weight.grad.tolist(), None
    layer.weight.register_hook(lambda g: (g.mul_(2), None)[1])
    layer(x).sum().backward()
    assert layer.weight.grad.tolist() == [[2 * each for each in row] for row in plain]


def test_a_leaf_that_was_frozen_after_the_forward_gets_no_gradient():
    w, v = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    v.grad = rl.ones(2)
    loss = (w * v * 2).sum()
    for leaf in (w, v):
        leaf.requires_grad_(False)
    loss.backward()
    assert w.grad is None and v.grad.tolist() == [1.0, 1.0]
