"""Compiled functions that write through views: chains write a turned one in the order of its memory."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def flipped(x):
    return x.flip(0) * x


def through_the_transposed(x):
    y = rl.zeros(6, 4, dtype=x.dtype, device=x.device)
    y.T[:] = x.detach() * 2
    return (y + 1) * x.sum()


def copied_into_the_transposed(x):
    y = rl.zeros(6, 4, dtype=x.dtype, device=x.device)
    y.T.copy_(x.detach() * 2)
    return (y + 1) * x.sum()


def in_place(x):
    y = x.detach() * 1
    turned = y.T
    turned *= x.detach().T + 1
    return (y + 1) * x.sum()


def reversed_rows(x):
    y = x.detach() * 1
    y[::-1] = x.detach() * 2
    return (y + 1) * x.sum()


@pytest.mark.parametrize(
    "function", [flipped, through_the_transposed, copied_into_the_transposed, in_place, reversed_rows]
)
def test_a_turned_view_is_written_as_without_compiling(device, function):
    numbers = np.random.default_rng(0).standard_normal((4, 6))
    x = rl.tensor(numbers, device=device, requires_grad=True)
    y = rl.tensor(numbers, device=device, requires_grad=True)
    expected, found = function(x), rl.compile(function)(y)
    assert_close(found.detach(), expected.detach(), rtol=1e-12)
    expected.sum().backward()
    found.sum().backward()
    assert_close(y.grad, x.grad, rtol=1e-12)
