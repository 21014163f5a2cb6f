"""What a graph holds in memory: the least it can, listed by saved_tensors, and given back without recursion."""

import gc

import pytest

import rooflab as rl
from rooflab.testing import assert_close


def leaf(*shape, device="cpu"):
    return rl.randn(*shape, device=device, requires_grad=True)


@pytest.mark.parametrize("keep", [False, True])
def test_deep_graphs_neither_overflow_backward_nor_their_end(keep):
    x = rl.ones(1, requires_grad=True)
    y = x
    results = []
    for _ in range(50_000):
        y = y * 1 + 0
        if keep:
            results.append(y)
    y.backward()
    assert_close(x.grad, [1])
    del y
    results.clear()


def test_memory_comes_back(device):
    x, w = leaf(64, 64, device=device), leaf(64, 64, device=device)
    gc.collect()
    before = rl.memory.allocated(device)
    y = rl.softmax(rl.gelu(x @ w)).sum()
    assert rl.memory.allocated(device) == before + 2 * x.nbytes + y.nbytes  # what gelu takes and softmax gives
    y.backward()
    x.grad = w.grad = None
    assert rl.memory.allocated(device) == before + y.nbytes
    del y
    assert rl.memory.allocated(device) == before
    y = rl.exp(x)
    del y
    assert rl.memory.allocated(device) == before


def test_gradients_on_the_way_are_freed():
    x = leaf(256, 256)
    y = x
    for _ in range(20):
        y = rl.sin(y)  # each saves its operand
    with rl.count() as c:
        y.backward(rl.ones(256, 256))
    assert c.peak_bytes == 3 * x.nbytes  # the gradient given, one on the way, the next


def saved(y):
    return [(s.op, s.shape, s.is_input) for s in rl.autograd.saved_tensors(y)]


def test_saved_tensors_of_textbook_attention():
    q, k, v = (leaf(2, 6, 8) for _ in range(3))
    p = rl.softmax(q @ k.mT * 0.3)
    out = p @ v
    assert saved(out) == [
        ("matmul", (2, 6, 8), True),
        ("matmul", (2, 8, 6), True),  # k, through a view
        ("softmax", (2, 6, 6), False),  # once, though the second product saves it too
        ("matmul", (2, 6, 8), True),
    ]
    whole = rl.autograd.saved_tensors(out)
    assert [s.bytes for s in whole] == [384, 384, 288, 384]
    assert whole[2].dtype == rl.float32
    out.sum().backward()
    assert saved(out) == []


@pytest.mark.parametrize(
    ("call", "kept"),
    [
        (lambda x, c: x + c, []),
        (lambda x, c: -x * 2, []),
        (lambda x, c: x * c, [("mul", (3, 3), True)]),
        (lambda x, c: x / c, [("div", (3, 3), True)]),
        (lambda x, c: rl.exp(x), [("exp", (3, 3), False)]),
        (lambda x, c: rl.log(x), [("log", (3, 3), True)]),
        (lambda x, c: x.sum(dim=0).mean(), []),
        (lambda x, c: x.amax(dim=0), [("amax", (3, 3), True), ("amax", (3,), False)]),
        (lambda x, c: rl.where(c > 0, x, 0), [("where", (3, 3), True)]),
        (lambda x, c: x @ c, [("matmul", (3, 3), True)]),
        (lambda x, c: rl.rms_norm(x, c[0]), [("rms_norm", (3, 3), True), ("rms_norm", (3,), True)]),
        (lambda x, c: x.T[1:].expand(2, 2, 3).to("float64"), []),
    ],
)
def test_ops_save_the_least_they_can(call, kept):
    assert saved(call(leaf(3, 3), rl.ones(3, 3))) == kept
