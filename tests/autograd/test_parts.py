"""Gradients of what takes a tensor apart: split, chunk, unbind, and a loop over rows."""

import numpy as np
import pytest

import rooflab as rl

PARTS = {
    "split": lambda x: x.split([2, 0, 3, 1], 1),
    "chunk": lambda x: x.chunk(4, 1),
    "unbind": lambda x: x.unbind(1),
    "rows": tuple,
}


@pytest.mark.parametrize("used", [slice(None), slice(1, None, 2), slice(0, 1)])
@pytest.mark.parametrize("name", PARTS)
def test_each_part_gives_its_slice_a_gradient(name, used, device):
    weights = rl.arange(1.0, 31.0, device=device).reshape(5, 6)
    is_used = rl.zeros(5, 6, device=device)
    for part in PARTS[name](is_used)[used]:
        part.fill_(1)  # a view
    x = rl.ones(5, 6, device=device, requires_grad=True)
    pairs = list(zip(PARTS[name](x), PARTS[name](weights), strict=True))[used]
    sum((part * weight).sum() for part, weight in pairs).backward()
    assert np.array_equal(x.grad.cpu().numpy(), (weights * is_used).cpu().numpy())


def test_gradients_of_all_parts_are_joined_by_one_launch(device):
    for take_apart in (lambda x: x.chunk(24, 1), lambda x: x.split(5, 0), lambda x: x.unbind(0)):
        x = rl.ones(8, 24, device=device, requires_grad=True)
        parts = take_apart(x)
        y = rl.cat([part.reshape(-1) for part in parts])
        with rl.count() as c:
            y.backward(rl.ones_like(y))
        assert (c.launches, c.flops) == (2, 0)  # ones_like and cat


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_nothing_have_a_gradient(name):
    x = rl.ones(0, 3, requires_grad=True)
    take_apart = {**PARTS, "split": lambda x: x.split(2), "chunk": lambda x: x.chunk(2)}[name]
    for part in take_apart(x):
        part.sum().backward(retain_graph=True)
    assert x.grad is None if name == "rows" else x.grad.shape == (0, 3)


@pytest.mark.parametrize("used, launches", [(slice(1, None), 3), (slice(0, None, 2), 3), (slice(0, 1), 2)])
def test_parts_without_a_gradient_are_zeros(used, launches):
    """Of 64 rows: joined with zeros by two cats, and one row copied into zeros."""
    x = rl.ones(64, 4, requires_grad=True)
    y = rl.cat(x.unbind(0)[used])
    with rl.count() as c:
        y.backward(rl.ones_like(y))
    expected = np.zeros((64, 4))
    expected[used] = 1
    assert np.array_equal(x.grad.numpy(), expected)
    assert c.launches == 1 + launches
