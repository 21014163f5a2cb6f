"""Backward from some of the results of a compiled function: what lies behind the others gets no gradient, not zeros."""

import gc
import itertools
import weakref

import numpy as np
import pytest
from compiler.functions import gelu_of_eight, mlp

import rooflab as rl
from rooflab.testing import assert_close, to_float64

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


class Doubled(rl.autograd.Function):
    """A function of two results, whose backward sees which of them have a gradient."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 2, y * 2

    @staticmethod
    def backward(ctx, dx, dy):
        return dx * 2, dy * 2


def in_a_checkpoint(x, y, z):
    p, q = rl.autograd.checkpoint(lambda x, y: (rl.exp(x @ y.T) * 2, rl.tanh(x * y)), x, y)
    return p.sum(0), q, z * p.sum()


CASES = {
    "apart": lambda x, y, z: (x * 2, y.exp(), z * z * z),
    "of shared values": lambda x, y, z: ((u := rl.exp(x * y)) + z, u * 2, rl.gelu(z).sum()),
    "with products": lambda x, y, z: (x @ y.T, rl.softmax(y @ z.T, -1), (x @ z.T).T * 2),
    "of several results": lambda x, y, z: (*Doubled.apply(x * 1, y), z * 2),
    "parts": lambda x, y, z: (*rl.cat([x, y, z]).exp().split(4), (x + y)[1:])[1:],
    "in a checkpoint": in_a_checkpoint,
    "one twice": lambda x, y, z: (u := x * y, u, z * u),
    "an argument itself": lambda x, y, z: (x * y, z, y + z),
    "one without": lambda x, y, z: (x * y, (x * z).detach(), z * 2),
}


def gradients(function, numbers, chosen):
    """Of x, y and z, of which the last is not read by some; None where there is none."""
    args = [rl.tensor(each, requires_grad=True) for each in numbers]
    results = [y for y in function(*args) if y.requires_grad]
    total = sum((results[i] * (i + 1)).sum() for i in chosen if i < len(results))
    if isinstance(total, rl.Tensor):
        total.backward()
    return [x.grad for x in args]


@pytest.mark.parametrize("case", CASES)
def test_any_of_the_results(case):
    function = CASES[case]
    compiled = rl.compile(function)
    numbers = np.random.default_rng(0).standard_normal((3, 4, 5))
    for chosen in itertools.chain.from_iterable(itertools.combinations(range(3), n) for n in (1, 2, 3)):
        expected, found = (gradients(f, numbers, chosen) for f in (function, compiled))
        for dx, wanted in zip(found, expected, strict=True):
            assert (dx is None) == (wanted is None), chosen
            if dx is not None:
                assert_close(dx, to_float64(wanted), rtol=1e-10, atol=1e-12)


def test_no_zero_meets_infinity(device):
    x, y = (rl.zeros(3, device=device, requires_grad=True) for _ in range(2))
    a, _ = rl.compile(lambda x: (x * 2, x.sqrt()))(x)
    a.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    a, _, c = rl.compile(lambda x: (x * 2, x.sqrt(), x * 3))(y)
    (a.sum() + c.sum()).backward()
    assert y.grad.tolist() == [5.0] * 3


def test_what_is_not_reached_has_none():
    x, y = (rl.ones(3, requires_grad=True) for _ in range(2))
    a, b = rl.compile(lambda x, y: (x * 2, y * 3))(x, y)
    with pytest.raises(ValueError, match=r"inputs\[1\]: the outputs do not depend on it"):
        rl.autograd.grad(a.sum(), [x, y], retain_graph=True)
    a.sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and y.grad is None and b.requires_grad
    x.grad = None
    a, b = rl.compile(lambda x, y: (x * 2, y * 3))(x, y)
    b.sum().backward()
    assert x.grad is None and y.grad.tolist() == [3.0] * 3


@pytest.mark.parametrize("device", ["cpu", rl.meta("cpu")])
def test_a_loss_beside_its_logits_goes_back_as_alone(device):
    def both(x, w, target):
        logits = gelu_of_eight(x) @ w
        return rl.cross_entropy(logits, target), logits

    target = rl.zeros(16, dtype="int64", device=device)
    counts, kept = [], []
    for function in (rl.compile(lambda *args: both(*args)[0]), rl.compile(lambda *args: both(*args))):
        x, w = (rl.ones(*shape, device=device).requires_grad_() for shape in ((16, 8), (8, 32)))
        made = function(x, w, target)
        loss = made[0] if isinstance(made, tuple) else made
        kept.append(sum(saved.bytes for saved in rl.autograd.saved_tensors(loss)))
        with rl.count() as c:
            loss.backward()
        counts.append([c.launches, c.macs, c.flops, c.bytes_read, c.bytes_written])
    assert counts[0] == counts[1] and kept[0] == kept[1]


def test_all_results_go_back_in_the_launches_of_one():
    x = rl.randn(64, 64).requires_grad_()
    compiled = rl.compile(lambda x: (gelu_of_eight(x), x * 2, x.exp()))
    results = compiled(x)
    kept = [saved.shape for saved in rl.autograd.saved_tensors(results[0])]
    directions = [rl.ones(64, 64)] * 3
    with rl.count() as c:
        rl.autograd.grad(list(results), x, directions)
    assert c.launches == 1 and kept == [(64, 64)] * 2  # the argument, and exp


def test_some_results_keep_the_graph():
    args = [rl.randn(*shape).requires_grad_() for shape in ((5, 8), (8, 12), (8, 12), (12, 8))]
    loss, _, doubled = rl.compile(lambda *args: ((y := mlp(*args)).sum(), y.exp(), y * 2))(*args)
    loss.backward(retain_graph=True)
    first = [x.grad.numpy().copy() for x in args]
    (loss + doubled.sum()).backward()
    for x, before in zip(args, first, strict=True):
        assert_close(x.grad, 4 * before.astype("float64"), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="freed by an earlier backward; pass retain_graph=True"):
        doubled.sum().backward()


def test_a_result_does_not_keep_what_the_function_reads():
    class Scale:
        factor = 2.0

    def both(x, scale):
        return rl.compile(lambda x: (x * scale.factor, x.exp()))(x)

    scale, x = Scale(), rl.ones(3, requires_grad=True)
    scale.results = both(x, scale)
    seen = weakref.ref(scale)
    del scale
    gc.collect()
    assert seen() is None
