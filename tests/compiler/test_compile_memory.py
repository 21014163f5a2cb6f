"""Memory of compiled functions: each tensor goes at its last use, so that the peak is no higher than op by op."""

import gc
import weakref

import pytest

import rooflab as rl
from rooflab.benchmark import lm

DEVICE = "meta:H200"


def peaks(run, device, steps=2):
    """The most that the last of some steps held above what was there before it."""
    for _ in range(steps):
        before = rl.memory.allocated(device)
        rl.memory.reset_peak(device)
        run()
    return rl.memory.peak(device) - before


def relu_stack(x, *weights):
    for w in weights:
        x = rl.relu(x @ w)
    return loss_of(x)


def loss_of(x):
    return rl.cross_entropy(x, rl.zeros(len(x), dtype="int64", device=x.device))


@pytest.mark.parametrize("precision", ["", "bfloat16"])
@pytest.mark.parametrize("keeps", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("checkpointed", [False, True], ids=["saved", "checkpointed"])
def test_a_backward_frees_as_it_goes(precision, keeps, checkpointed, device):
    """8 x matmul and relu: what was saved was held to the end of a compiled backward."""
    weights = [rl.randn(64, 64, device=device, requires_grad=True) for _ in range(8)]
    x = rl.randn(256, 64, device=device)

    def function(x, *weights):
        if not checkpointed:
            return relu_stack(x, *weights)
        for i in range(0, len(weights), 2):
            x = rl.autograd.checkpoint(lambda x, a, b: rl.relu(rl.relu(x @ a) @ b), x, *weights[i : i + 2])
        return loss_of(x)

    def step_of(run):
        def step():
            with rl.autocast(precision or "bfloat16", enabled=bool(precision)):
                loss = run(x, *weights)
            if not keeps:
                for w in weights:
                    w.grad = None
            loss.backward()

        return step

    eager, compiled = (peaks(step_of(run), device) for run in (function, rl.compile(function)))
    assert compiled <= eager


def test_what_was_saved_is_gone_before_the_end():
    """Half-way through the backward, the values of the later half of the layers are free."""
    held = []

    class Looks(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, dy):
            held.append(rl.memory.allocated("cpu"))
            return dy

    weights = [rl.randn(64, 64, requires_grad=True) for _ in range(8)]
    layer = rl.compile(lambda x, w: rl.relu(x @ w))
    x = rl.randn(512, 64)
    for w in weights:
        x = Looks.apply(layer(x, w))
    x.sum().backward()
    assert held == sorted(held, reverse=True) and held[0] - held[-1] >= 5 * x.nbytes


def test_gradients_that_come_in_are_freed():
    """Of a chain of programs, each takes over the gradient that it is given."""
    x = rl.randn(1 << 16, requires_grad=True)
    sine = rl.compile(lambda y: rl.sin(y))

    def step(run):
        y = x
        for _ in range(10):
            y = run(y)
        with rl.count() as c:
            y.backward(rl.ones(1 << 16))
        x.grad = None
        return c.peak_bytes

    assert step(sine) <= step(rl.sin)


def test_arguments_that_the_caller_drops_are_not_kept(no_garbage):
    """Neither programs nor what they watch hold tensors or models."""

    class Model(rl.nn.Module):
        def __init__(self):
            self.weight = rl.randn(8, 8, requires_grad=True)
            self.scale = 2.0

        def __call__(self, x):
            return (x @ self.weight * self.scale).sum()

    model = Model()
    compiled = rl.compile(model)
    compiled(rl.randn(4, 8)).backward()
    watch, before = weakref.ref(model), rl.memory.allocated("cpu")
    size = model.weight.nbytes
    del model, compiled
    assert watch() is None and rl.memory.allocated("cpu") <= before - 2 * size


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(size, marks=[pytest.mark.slow] * (size not in ("small", "2.7B")))
        for size in rl.nn.TRANSFORMER_SIZES
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {"context_length": 512},
        {"context_length": 512, "mixed_precision": "bfloat16"},
        {"context_length": 128, "recompute": True},
        {"context_length": 128, "attention": "flash", "mixed_precision": "bfloat16"},
    ],
    ids=["textbook", "bfloat16", "recomputed", "flash bfloat16"],
)
@pytest.mark.slow(id=["textbook-2.7B", "recomputed-2.7B", "bfloat16-2.7B"])
def test_a_compiled_model_needs_no_more_than_op_by_op(size, options):
    """The benchmark's models: forward and backward, with the gradients of the step before dropped and kept."""
    found = {}
    for is_compiled in (False, True):
        step = lm.Step(lm.Case(size, mode="both", device=DEVICE, compile=is_compiled, **options))
        for keeps in (False, True):
            if not keeps:
                step.prepare()
            rl.memory.reset_peak(DEVICE)
            step.passes(None)
            found[is_compiled, keeps] = rl.memory.peak(DEVICE)
        del step
        gc.collect()
    assert found[True, False] <= found[False, False] and found[True, True] <= found[False, True], found
