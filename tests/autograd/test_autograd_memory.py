"""What a graph holds in memory: the least it can, listed by saved_tensors, and given back without recursion."""

import gc
import threading
import weakref

import pytest

import rooflab as rl
from rooflab.testing import assert_close


def leaf(*shape, device="cpu"):
    return rl.randn(*shape, device=device, requires_grad=True)


@pytest.mark.slow
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


def test_memory_comes_back(device, no_garbage):
    x, w = leaf(64, 64, device=device), leaf(64, 64, device=device)
    before = rl.memory.allocated(device)
    y = rl.softmax(rl.gelu(x @ w)).sum()
    assert rl.memory.allocated(device) == before + 2 * x.nbytes + y.nbytes  # the input of gelu, the result of softmax
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
    assert c.peak_bytes == 3 * x.nbytes  # the given gradient, the current one and the next one


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


class Keeper:
    """Stands for a layer: its Function puts it on ctx in forward, and it keeps a result."""


class Doubled(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, keeper):
        ctx.keeper = keeper
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2, None


@pytest.mark.parametrize("kept", [lambda y: y, lambda y: {"loss": [(y + 1).sum()]}], ids=["result", "made of it"])
@pytest.mark.parametrize("goes_back", [False, True])
def test_a_result_kept_on_its_own_ctx_is_collected(kept, goes_back):
    gc.collect()
    before = rl.memory.allocated()
    keeper = Keeper()
    alive = weakref.ref(keeper)
    y = Doubled.apply(leaf(64), keeper)
    keeper.last = kept(y)
    if goes_back:
        y.sum().backward(retain_graph=True)
    del y, keeper
    gc.collect()
    assert alive() is None
    assert rl.memory.allocated() == before


class Halves(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, keeper):
        ctx.keeper = keeper
        return x[:32] * 2, x[32:] * 3

    @staticmethod
    def backward(ctx, da, db):
        return rl.cat([da * 2, db * 3]), None


@pytest.mark.parametrize("kept", [(0, 1), (1,), (0,)], ids=str)
def test_several_results_kept_on_their_ctx_are_collected(kept):
    gc.collect()
    before = rl.memory.allocated()
    keeper = Keeper()
    alive = weakref.ref(keeper)
    results = Halves.apply(leaf(64), keeper)
    keeper.last = [results[place] for place in kept]
    del keeper, results
    gc.collect()
    assert alive() is None
    assert rl.memory.allocated() == before


@pytest.mark.parametrize("held", [0, 1])
def test_of_several_results_one_that_is_held_keeps_the_rest(held):
    x, keeper = leaf(64), Keeper()
    keeper.last = Halves.apply(x, keeper)
    alive, y = weakref.ref(keeper), keeper.last[held]
    node = keeper.last[1 - held].grad_fn
    del keeper
    gc.collect()
    assert alive() is not None
    y.sum().backward(retain_graph=True)
    assert_close(x.grad[32 * held : 32 * held + 32], [2.0 + held] * 32)
    del y
    gc.collect()
    assert node.name == "Halves" and alive() is not None  # its node can still be asked
    del node
    gc.collect()
    assert alive() is None


def test_what_is_reachable_is_not_collected():
    x, keeper = leaf(64), Keeper()
    keeper.last = Doubled.apply(x, keeper)
    z = (keeper.last * 3).sum()
    alive = weakref.ref(keeper)
    del keeper
    gc.collect()
    z.backward(retain_graph=True)
    assert_close(x.grad, [6.0] * 64)
    assert alive().last.grad_fn.name == "Doubled"
    y = alive().last
    del z
    gc.collect()
    y.sum().backward()
    assert_close(x.grad, [8.0] * 64)
    del y
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_collecting_beside_threads_that_go_back():
    done, wrong = threading.Event(), []

    def work():
        while not done.is_set():
            x, keeper = rl.ones(64, requires_grad=True), Keeper()
            keeper.last = Doubled.apply(x, keeper)
            (keeper.last * 3).sum().backward()
            if x.grad.sum().item() != 384:
                wrong.append(x.grad)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(100):
        gc.collect()
    done.set()
    for worker in workers:
        worker.join()
    assert wrong == []
