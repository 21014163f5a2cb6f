"""rl.autograd.Function: the conventions that PyTorch users know, and what it says when they are not kept."""

import gc
import traceback
import weakref

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def exactly(actual, expected):
    assert_close(actual, expected, rtol=0, atol=0)


class Scale(rl.autograd.Function):
    """a x + b for a number a: two tensor arguments with a number between them."""

    @staticmethod
    def forward(ctx, x, number, b):
        ctx.number = number
        ctx.grad_mode = rl.is_grad_enabled()
        ctx.seen = ctx.needs_input_grad
        ctx.save_for_backward(x, None)
        return x * number + b

    @staticmethod
    def backward(ctx, dy):
        x, nothing = ctx.saved_tensors
        assert (ctx.grad_mode, rl.is_grad_enabled(), nothing, x.requires_grad) == (False, False, None, False)
        assert ctx.seen == ctx.needs_input_grad
        return dy * ctx.number, None, dy if ctx.needs_input_grad[2] else None


class SumAndProduct(rl.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a + b, a * b

    @staticmethod
    def backward(ctx, dsum, dproduct):
        a, b = ctx.saved_tensors
        SumAndProduct.arrived = (dsum, dproduct)
        return dsum + dproduct * b, dsum + dproduct * a


def with_backward(backward, forward=lambda ctx, x, *rest: x * 2):
    return type(
        "Doubled", (rl.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def test_forward_and_backward(device):
    x = rl.tensor([1.0, 2.0], device=device, requires_grad=True)
    b = rl.tensor([5.0, 6.0], device=device, requires_grad=True)
    y = Scale.apply(x, 3, b)
    assert y.grad_fn.name == "Scale"
    exactly(y.detach(), [8, 12])
    (y * y).sum().backward()
    exactly(x.grad, [48, 72])
    exactly(b.grad, [16, 24])


def test_nothing_is_recorded_without_need():
    x = rl.ones(2)
    assert not Scale.apply(x, 3, x).requires_grad
    with rl.no_grad():
        assert not Scale.apply(x.requires_grad_(), 3, x).requires_grad
    y = Scale.apply(x, 3, rl.ones(2))
    y.sum().backward()
    exactly(x.grad, [3, 3])


def test_several_outputs():
    a, b = rl.tensor([2.0], requires_grad=True), rl.tensor([5.0], requires_grad=True)
    total, product = SumAndProduct.apply(a, b)
    (total * 10 + product).backward(retain_graph=True)
    exactly(a.grad, [15])
    exactly(b.grad, [12])
    a.grad = None
    product.backward()  # the sum is not used, so its gradient is zeros
    exactly(a.grad, [5])
    exactly(SumAndProduct.arrived[0], [0])


def test_materialized_gradients_can_be_turned_off():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 2

    def backward(ctx, first, second):
        assert first is None
        return second * 2

    x = rl.ones(3, requires_grad=True)
    with_backward(backward, forward).apply(x)[1].sum().backward()
    exactly(x.grad, [2, 2, 2])


def test_outputs_without_gradient():
    def forward(ctx, x):
        largest, place, copied = x.amax(), rl.tensor(3), x * 1
        ctx.mark_non_differentiable(largest)
        return largest, place, copied, "text"

    def backward(ctx, dlargest, dplace, dcopied, dtext):
        exactly(dlargest, 0)
        assert (dplace, dtext) == (None, None)
        return dcopied

    x = rl.ones(2, requires_grad=True)
    largest, place, copied, text = with_backward(backward, forward).apply(x)
    assert [largest.requires_grad, place.requires_grad, copied.requires_grad, text] == [False, False, True, "text"]
    copied.sum().backward()
    exactly(x.grad, [1, 1])


def test_an_input_may_be_returned():
    x = rl.ones(2, requires_grad=True)
    y = with_backward(lambda ctx, dy: dy * 3, lambda ctx, x: x).apply(x)
    assert y.grad_fn.name == "Doubled"
    assert x.is_leaf
    y.sum().backward()
    exactly(x.grad, [3, 3])


def test_none_is_no_gradient_and_nones_too_many_are_dropped():
    x, z = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    y = with_backward(lambda ctx, dy: (None, dy, None, None), lambda ctx, x, z: x + z).apply(x, z)
    y.sum().backward()
    assert x.grad is None
    exactly(z.grad, [1, 1])


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (lambda dy: dy, r"expected 3 gradients, one for each argument of forward \(x, rest\[0\], rest\[1\]\), got 1"),
        (lambda dy: (dy, None, None, dy), "got 4"),
        (lambda dy: (dy[:1], None, None), r"gradient of x: expected \(2,\) float32 on cpu, got \(1,\) float32 on cpu"),
        (lambda dy: (dy.double(), None, None), r"gradient of x: .* got \(2,\) float64"),
        (lambda dy: (1.0, None, None), "gradient of x: expected a tensor or None, got float"),
        (
            lambda dy: (dy, dy, None),
            r"gradient of rest\[0\]: expected None, since rest\[0\] is not a tensor, got Tensor",
        ),
        (lambda dy: (dy, None, dy.sum()), r"gradient of rest\[1\]: expected \(2,\)"),
    ],
)
def test_wrong_gradients_name_the_function_and_the_argument(returned, says):
    x, z = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    y = with_backward(lambda ctx, dy: returned(dy)).apply(x, 7, z)
    with pytest.raises(ValueError, match=r"\[Doubled\] backward: .*" + says):
        y.sum().backward()


def test_errors_of_backward_keep_their_traceback():
    def fails_here(ctx, dy):
        raise ZeroDivisionError("of the student")

    y = with_backward(fails_here).apply(rl.ones(2, requires_grad=True))
    with pytest.raises(ZeroDivisionError, match="of the student") as caught:
        y.sum().backward()
    assert any(frame.name == "fails_here" for frame in traceback.extract_tb(caught.value.__traceback__))
    assert rl.is_grad_enabled()


def test_missing_methods_and_results():
    x = rl.ones(2, requires_grad=True)
    empty = type("Empty", (rl.autograd.Function,), {})
    with pytest.raises(NotImplementedError, match=r"\[Function\] forward: override it"):
        empty.apply(x)
    half = type("Half", (rl.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    with pytest.raises(NotImplementedError, match=r"\[Function\] backward: override it"):
        half.apply(x).sum().backward()
    with pytest.raises(TypeError, match=r"\[Doubled\] forward: expected a tensor"):
        with_backward(None, lambda ctx, x: None).apply(x)
    with pytest.raises(TypeError, match=r"\[save_for_backward\] tensors\[1\]: expected a tensor, got int"):
        with_backward(None, lambda ctx, x: ctx.save_for_backward(x, 3)).apply(x)


def test_saved_tensors_are_checked_listed_and_freed(device, no_garbage):
    contexts = []

    def forward(ctx, x, n):
        kept = rl.zeros(7, device=device)
        contexts.append(ctx)
        y = x * n
        ctx.save_for_backward(x, y, kept)
        return y

    x = rl.ones(2, device=device, requires_grad=True)
    function = with_backward(lambda ctx, dy: (ctx.saved_tensors[1] * dy, None), forward)
    y = function.apply(x, 2)
    saved = [(s.op, s.shape, s.is_input) for s in rl.autograd.saved_tensors(y)]
    assert saved == [("Doubled", (2,), True), ("Doubled", (2,), False), ("Doubled", (7,), False)]
    with pytest.raises(ValueError, match="available in backward only"):
        _ = contexts[0].saved_tensors
    with rl.no_grad():
        y.zero_()
    with pytest.raises(ValueError, match=r"\[Doubled\].*changed in place"):
        y.sum().backward()

    y = function.apply(x, 2)
    before = rl.memory.allocated(device)
    y.sum().backward(retain_graph=True)
    x.grad = None
    assert rl.memory.allocated(device) == before
    y.sum().backward()
    x.grad = None
    assert rl.memory.allocated(device) == before - 7 * 4
    assert rl.autograd.saved_tensors(y) == []
    with pytest.raises(ValueError, match=r"\[Doubled\] backward: what it saved was freed"):
        y.sum().backward()


def test_results_kept_on_ctx_make_no_cycle(no_garbage):
    def forward(ctx, x):
        ctx.result = x * 2
        ctx.save_for_backward(ctx.result)
        return ctx.result

    class Token:
        pass

    token = Token()
    alive = weakref.ref(token)

    def backward(ctx, dy, token=token):
        return dy

    y = with_backward(backward, forward).apply(rl.ones(2, requires_grad=True))
    before = rl.memory.allocated()
    gc.disable()
    try:
        del y
        assert rl.memory.allocated() == before - 8
    finally:
        gc.enable()
    del backward, token
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_deep_chains_of_functions():
    function = with_backward(lambda ctx, dy: dy, lambda ctx, x: x)
    x = rl.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = function.apply(y)
    y.backward()
    exactly(x.grad, [1])
    del y


def test_backward_is_seen_by_counters():
    x = rl.ones(2, requires_grad=True)
    y = Scale.apply(x, 3, rl.ones(2))
    with rl.count() as c:
        y.backward(rl.ones(2))
    assert c.by_range["backward/Scale"].launches == 1


def test_functions_and_ops_mix():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 4))
    x = rl.tensor(values, requires_grad=True)
    total, product = SumAndProduct.apply(rl.exp(x), x.T.T)
    rl.sin(total + product).sum().backward()
    e = np.exp(values)
    assert_close(x.grad, np.cos(e + values + e * values) * (e + 1 + e * values + e), rtol=1e-12)


def test_arguments_that_star_gathers_are_named_by_their_place():
    def forward(ctx, x, *rest, factor=2):
        return x * factor

    x = rl.ones(2, requires_grad=True)
    y = with_backward(lambda ctx, dy: (dy, dy, None), forward).apply(x, 3, 4)
    with pytest.raises(ValueError, match=r"gradient of rest\[0\]: expected None"):
        y.sum().backward()


def test_grad_names_what_is_no_tensor():
    x = rl.ones(2, requires_grad=True)
    for given, place in [
        ((np.ones(2), x), r"outputs\[0\]: expected a tensor, got ndarray"),
        ((x * 2, [x, None]), r"inputs\[1\]: expected a tensor, got NoneType"),
        ((x * 2, x, [1.0]), r"grad_outputs\[0\]: expected a tensor, got float"),
    ]:
        with pytest.raises(TypeError, match=rf"\[grad\] {place}"):
            rl.autograd.grad(*given)


@pytest.mark.parametrize("wrong", [3, lambda: (yield)], ids=["number", "generator"])
def test_only_functions_run_without_grad(wrong):
    with pytest.raises(TypeError, match=r"\[no_grad\] expected a function"):
        rl.no_grad(wrong)


def test_a_backward_that_writes_into_memory_of_others_is_refused():
    x, y = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    scaled = with_backward(lambda ctx, dy: dy.mul_(3), lambda ctx, x: x * 3)
    with pytest.raises(ValueError, match=r"^\[Doubled\] backward wrote into its gradient, whose memory others use too"):
        ((scaled.apply(x) + y) * rl.ones(2)).sum().backward()
    (scaled.apply(x) * rl.ones(2)).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0], "memory of its own may be written to"
