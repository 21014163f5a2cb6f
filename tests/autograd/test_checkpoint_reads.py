"""rl.autograd.checkpoint runs a function again only if it reads what it read at first."""

import gc
import threading
import weakref

import numpy as np
import pytest

import rooflab as rl
from rooflab.autograd import checkpoint
from rooflab.testing import assert_close

CHANGED = r"^\[checkpoint\] backward: a tensor of shape \([13, ]*\) that the function reads was changed in place"
ANOTHER = r"^\[checkpoint\] backward: the function reads another tensor of shape \(3, 3\) than when it ran first"


def weight():
    return rl.ones(3, 3, requires_grad=True)


def run_and(change, function, *given):
    """Backward through a checkpoint of the function, with a change between the two runs."""
    y = checkpoint(function, rl.ones(2, 3, requires_grad=True), *given)
    with rl.no_grad():
        change()
    y.sum().backward()


READS = {
    "an op saves it": lambda x, w: (x @ w).exp(),
    "an op reads it": lambda x, w: (x @ w).exp() * w.sum(),
    "only its values matter": lambda x, w: (x + w.detach().sum()).exp(),
    "a view": lambda x, w: (x + w.detach().T[0]).exp(),
    "without gradients": lambda x, w: (x * rl.no_grad()(lambda: w.sum() * 2)()).exp(),
    "a number": lambda x, w: (x * float(w[0, 0])).exp(),
    "an array": lambda x, w: (x * float(np.asarray(w.detach())[1, 1])).exp(),
    "a checkpoint inside": lambda x, w: checkpoint(lambda x: x + w.detach().sum(), x.sin()).exp(),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("is_given", [False, True])
def test_a_change_between_the_runs_is_noticed(name, is_given):
    w = weight()
    function = READS[name]
    given = [(w,)] if is_given else []  # inside of a tuple it is no argument
    called = (lambda x, ws: function(x, *ws)) if is_given else (lambda x: function(x, w))
    with pytest.raises(ValueError, match=CHANGED):
        run_and(lambda: w.fill_(0.5), called, *given)
    run_and(lambda: None, called, *given)


def test_parameters_and_buffers_of_a_module():
    class Block(rl.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = rl.nn.Linear(3, 3)
            self.register_buffer("scale", rl.ones(3, 3))

        def forward(self, x):
            return (self.linear(x) @ self.scale).exp()

    block = Block()
    for change in (lambda: block.scale.mul_(2), lambda: block.linear.weight.mul_(2)):
        with pytest.raises(ValueError, match=CHANGED):
            run_and(change, block)
    y = checkpoint(block, rl.ones(2, 3))
    y.sum().backward()
    optimizer = rl.optim.AdamW(block.parameters())
    y = checkpoint(block, rl.ones(2, 3))
    optimizer.step()
    with pytest.raises(ValueError, match="changed in place"):
        y.sum().backward()


def test_gradients_of_a_changed_weight_that_is_not_read_again_are_right():
    """The bias of a sum is not read by backward: only a checkpoint needs it as it was."""
    b, x = weight(), rl.ones(3, 3, requires_grad=True)
    (x.exp() + b).sum().backward()
    y = x.exp() + b
    with rl.no_grad():
        b.fill_(3.0)
    y.sum().backward()
    assert_close(x.grad, 2 * rl.exp(rl.ones(3, 3)))


@pytest.mark.parametrize("replace", ["rebinds", "data", "module", "older"])
def test_another_tensor_in_its_place_is_noticed(replace):
    held = {"w": weight(), "other": weight()}
    change = {
        "rebinds": lambda: held.update(w=weight()),
        "data": lambda: setattr(held["w"], "data", rl.zeros(3, 3)),
        "module": lambda: (held.update(w=rl.zeros(3, 3)), gc.collect()),
        "older": lambda: held.update(w=held["other"]),
    }[replace]
    with pytest.raises(ValueError, match=ANOTHER):
        run_and(change, lambda x: (x @ held["w"]).exp())


def test_a_constant_that_is_replaced_is_noticed():
    held = {"mask": rl.ones(3, 3)}
    with pytest.raises(ValueError, match=ANOTHER):
        run_and(lambda: held.update(mask=rl.zeros(3, 3)), lambda x: (x @ held["mask"]).exp())


def test_what_the_function_makes_may_change():
    """Results, and tensors that it wrote to before it was done with them."""
    array = np.ones((3, 3), np.float32)

    def function(x):
        with rl.no_grad():
            made = rl.empty(3, 3)
            made.fill_(2.0)
            made *= 3
            shared = rl.from_numpy(array.copy())
            shared += 1
        return (x @ made).exp() @ shared

    x = rl.ones(2, 3, requires_grad=True)
    y = checkpoint(function, x)
    function(x).sum().backward()
    expected, x.grad = x.grad, None
    loss = y.sum()
    with rl.no_grad():
        y.detach().fill_(0)
    loss.backward()
    assert_close(x.grad, expected)


def test_a_table_that_is_made_once_may_be_kept():
    tables = {}

    def function(x):
        if "t" not in tables:
            tables["t"] = rl.full((3, 3), 2.0)
            tables["t"] *= 0.5
        return (x @ tables["t"]).exp()

    run_and(lambda: None, function)
    run_and(lambda: None, function)
    tables.clear()
    with pytest.raises(ValueError, match=CHANGED):
        run_and(lambda: tables["t"].fill_(1.0), function)


def test_scratch_that_is_overwritten_first_may_be_older():
    scratch = rl.zeros(3, 3)

    def function(x, write):
        with rl.no_grad():
            write()
        return (x @ scratch).exp()

    for write in (lambda: scratch.fill_(2.0), lambda: scratch.copy_(rl.ones(3, 3))):
        run_and(lambda: scratch.fill_(9.0), function, write)
    for write in (lambda: scratch[0].fill_(2.0), lambda: scratch.mul_(1.0)):
        with pytest.raises(ValueError, match=CHANGED):
            run_and(lambda: None, function, write)  # a part, or what it is now depends on what it was


def test_running_statistics_are_refused_before_they_run_twice():
    mean = rl.zeros(3, 3)

    def function(x):
        y = x.exp().exp()
        with rl.no_grad():
            mean.mul_(0.9).add_(0.1)
        return y * mean.sum()

    y = checkpoint(function, rl.ones(2, 3, requires_grad=True))
    once = mean.numpy().copy()
    with pytest.raises(ValueError, match=CHANGED + ", by the function or since"):
        y.sum().backward()
    assert (mean.numpy() == once).all()


@pytest.mark.parametrize("around_backward", [False, True])
def test_casts_that_autocast_keeps(around_backward):
    """The first run may read a cast that was made before, and the second one a cast that was made since."""
    w, x = weight(), rl.ones(2, 3, requires_grad=True)

    def passes(change):
        with rl.autocast("bfloat16", enabled=around_backward):
            with rl.autocast("bfloat16"):
                h = x * 1
                z = h @ w + x @ w
                y = checkpoint(lambda x: (x @ w).exp() @ (h @ w).T, x)
            change()
            (y.sum() + z.sum()).backward()

    passes(lambda: None)
    with pytest.raises(ValueError, match=CHANGED), rl.no_grad(), rl.enable_grad():
        passes(lambda: w.data.mul_(2))


def test_a_cast_kept_since():
    w, x = weight(), rl.ones(2, 3, requires_grad=True)
    y = checkpoint(lambda x: (x @ w).exp(), x)
    with rl.autocast("bfloat16"):
        low = checkpoint(lambda x: (x @ w).exp(), x)
    with rl.autocast("bfloat16"):
        z = x @ w
        (y.sum() + low.sum() + z.sum()).backward()
    assert x.grad is not None


def test_what_is_read_is_not_kept_in_memory(no_garbage):
    before = rl.memory.allocated()
    held = {"w": rl.ones(64, 64)}
    alive = weakref.ref(held["w"])
    y = checkpoint(lambda x: (x @ held["w"]).exp(), rl.ones(2, 64, requires_grad=True))
    held.clear()
    gc.collect()
    assert alive() is None
    assert rl.memory.allocated() == before + y.nbytes + 4 * 2 * 64
    del y
    assert rl.memory.allocated() == before


def test_changes_by_another_thread_and_backward_in_two_threads():
    w, xs = weight(), [rl.ones(2, 3, requires_grad=True) for _ in range(2)]
    ys = [checkpoint(lambda x: (x @ w).exp().exp() * 1e-9, x) for x in xs]
    threads = [threading.Thread(target=lambda y=y: y.sum().backward()) for y in ys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_close(xs[0].grad, xs[1].grad)
    y = checkpoint(lambda x: (x @ w).exp(), xs[0])
    thread = threading.Thread(target=lambda: w.data.fill_(0))
    thread.start()
    thread.join()
    with pytest.raises(ValueError, match=CHANGED):
        y.sum().backward()
