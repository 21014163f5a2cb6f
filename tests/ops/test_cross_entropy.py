"""cross_entropy and its backward beyond their values: launches, memory, extremes, and both forms of the loss."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def drawn(n, v, device="cpu", **options):
    logits = rl.randn(n, v, device=device, **options)
    return logits, rl.randint(0, v, (n,), device=device)


@pytest.mark.parametrize(("reduction", "on_gpu"), [("none", 1), ("sum", 2), ("mean", 2)])
def test_a_loss_is_one_pass_and_its_gradient_another(reduction, on_gpu):
    for device in ("meta:cpu", "meta:H200"):
        logits, target = drawn(64, 1000, device, requires_grad=True)
        with rl.count() as forward:
            loss = rl.cross_entropy(logits, target, reduction=reduction)
        dloss = rl.ones(*loss.shape, device=device)
        with rl.count() as backward:
            loss.backward(dloss)
        assert (forward.ops, forward.launches) == (1, on_gpu if "H200" in device else 1)
        assert list(backward.by_op) == ["cross_entropy_backward"] and backward.launches == 1
        assert forward.bytes_read == logits.nbytes + target.nbytes
        assert backward.peak_bytes < logits.nbytes + 1024  # the gradient alone


def test_the_graph_keeps_the_log_sum_exp_alone(device):
    logits, target = drawn(64, 1000, device, dtype="bfloat16", requires_grad=True)
    kept = [s for s in rl.autograd.saved_tensors(rl.cross_entropy(logits, target)) if not s.is_input]
    assert [(s.shape, s.dtype) for s in kept] == [((64,), "float32"), ((), "float32")]
    assert kept[0].bytes == 2 * 64 * 4  # and what its rounding has left out


def test_composed_is_composed_both_ways(device):
    logits, target = drawn(9, 33, device, dtype="float64", requires_grad=True)
    found = {}
    for variant in ("v0_composed", ""):
        logits.grad = None
        with rl.count() as c:
            loss = rl.cross_entropy(logits, target, variant=variant)
            loss.backward()
        found[variant] = loss.item(), logits.grad.cpu().numpy(), c
    assert found["v0_composed"][0] == pytest.approx(found[""][0], rel=1e-14)
    np.testing.assert_allclose(found["v0_composed"][1], found[""][1], atol=1e-16)
    assert found["v0_composed"][2].launches > 15 > found[""][2].launches


def test_the_last_classes_count(device):
    """A row of 35 does not end with a whole vector: each place is the target once, and the largest once."""
    logits = rl.eye(35, device=device) * 50
    at_the_largest = rl.cross_entropy(logits, rl.arange(35, device=device), reduction="none")
    assert_close(at_the_largest, np.zeros(35), atol=2.0**-23)
    others = rl.cross_entropy(logits, (rl.arange(35, device=device) + 1) % 35, reduction="none")
    assert_close(others, np.full(35, 50.0), rtol=2.0**-22)


def test_rows_of_any_stride_and_address(device):
    room = rl.randn(7, 50, device=device)
    target = rl.randint(0, 33, (7,), device=device)
    for begin in range(4):
        x = room[:, begin : begin + 33].detach().requires_grad_()
        own = x.detach().clone().requires_grad_()
        losses = [rl.cross_entropy(logits, target) for logits in (x, own)]
        # On a GPU rows that lie otherwise run on another rung, which adds up in another order. The
        # gradient of the target's class, (p - 1) / 7, cancels.
        rtol = 0 if device == "cpu" else 2.0**-20
        assert losses[0].item() == pytest.approx(losses[1].item(), rel=rtol, abs=0)
        for loss in losses:
            loss.backward()
        assert_close(x.grad, own.grad.cpu().numpy(), rtol=rtol, atol=rtol * 2.0**-4)


def test_rows_without_loss_stay_out_of_a_gradient_with_nan(device):
    """Rows that are ignored have a gradient of zero, whatever their logits are."""
    logits = rl.tensor([[1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0]], device=device, requires_grad=True)
    loss = rl.cross_entropy(logits, rl.tensor([1, -100, -100], device=device))
    loss.backward()
    assert loss.item() == pytest.approx(np.log1p(np.exp(-1)), rel=1e-6)
    assert logits.grad[1:].tolist() == [[0, 0], [0, 0]] and np.isfinite(logits.grad[0].cpu().numpy()).all()


@pytest.mark.parametrize("bad", [-1, 5, 2**40])
def test_a_class_out_of_range_is_refused_on_the_cpu(bad):
    logits = rl.zeros(3, 5)
    target = rl.tensor([0, bad, 4])
    message = rf"\[cross_entropy\] target: expected in \[0, V=5\), or ignore_index=-100, got {bad} in row 1"
    with pytest.raises(ValueError, match=message):
        rl.cross_entropy(logits, target)
    with pytest.raises(ValueError, match=message):
        rl.cross_entropy_backward(rl.tensor(1.0), logits, target, rl.zeros(3))
    assert rl.cross_entropy(logits, rl.tensor([0, -100, 4])).item() == pytest.approx(np.log(5))


@pytest.mark.gpu
@pytest.mark.parametrize("bad", [-1, 5, 2**40])
def test_a_class_out_of_range_is_nan_on_a_gpu(bad):
    logits = rl.zeros(3, 5, device="cuda", requires_grad=True)
    target = rl.tensor([0, bad, 4], device="cuda")
    message = rf"\[cross_entropy\] target: expected in \[0, V=5\), or ignore_index=-100, got {bad} \(a kernel on cuda:0"
    losses = rl.cross_entropy(logits.detach(), target, reduction="none")
    with pytest.raises(ValueError, match=message):
        rl.cuda.synchronize()
    assert np.isnan(losses.cpu().numpy()).tolist() == [False, True, False]
    loss = rl.cross_entropy(logits, target)
    with pytest.raises(ValueError, match=message):
        rl.cuda.synchronize()
    loss.backward()
    with pytest.raises(ValueError, match=message):
        rl.cuda.synchronize()
    assert np.isnan(loss.item()) and np.isnan(logits.grad[1].cpu().numpy()).all()


LOGITS, TARGET, LSE = rl.zeros(3, 5), rl.tensor([0, 1, 2]), rl.zeros(3)


@pytest.mark.parametrize(
    ("dloss", "lse", "count", "says"),
    [
        (rl.zeros(2), LSE, None, r"dloss: expected \(\) or the shape of target \(3,\), got \(2,\)"),
        (rl.zeros(3).double(), LSE, None, "dloss: expected float32, got float64"),
        (rl.zeros(3), rl.zeros(4), None, r"lse: expected float32 \(3,\), got float32 \(4,\)"),
        (rl.zeros(3), LSE.double(), None, r"lse: expected float32 \(3,\), got float64"),
        (rl.zeros(3), LSE, rl.zeros(1), r"count: expected float32 \(\), got float32 \(1,\)"),
    ],
)
def test_what_does_not_fit_is_one_sentence(dloss, lse, count, says):
    with pytest.raises(ValueError, match=r"\[cross_entropy_backward\] " + says):
        rl.cross_entropy_backward(dloss, LOGITS, TARGET, lse, count)


def test_a_replayed_graph_reads_new_logits(device):
    logits, target = drawn(4, 10, device)
    graph = rl.Graph(device=device)
    with graph.capture():
        loss = rl.cross_entropy(logits, target)
    logits.copy_(rl.zeros(4, 10))
    graph.replay()
    assert loss.item() == pytest.approx(np.log(10), rel=1e-6)


# Memory and dtypes of a training step


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_autocast_reads_logits_of_16_bits_as_they_are(dtype, reduction, device):
    """There is no cast, but the same numbers: loss and (rounded) gradient are those of the logits in float32."""
    logits, target = drawn(9, 50, device, dtype=dtype, requires_grad=True)
    wide = logits.detach().float().requires_grad_()
    with rl.autocast(dtype), rl.count() as c:
        loss = rl.cross_entropy(logits, target, reduction=reduction)
    assert list(c.by_op) == ["cross_entropy"] and loss.dtype == "float32"
    right = rl.cross_entropy(wide, target, reduction=reduction)
    assert_close(loss, right, atol=0, rtol=0 if device == "cpu" else 2.0**-20)
    dloss = rl.rand(*loss.shape, device=device) + 0.3
    loss.backward(dloss)
    right.backward(dloss)
    assert logits.grad.dtype == dtype
    assert_close(logits.grad, wide.grad.to(dtype), atol=0, rtol=0 if device == "cpu" else 2.0**-7)


def made_of(x, target, kept=None):
    """The loss of logits that only the graph holds, and the list `kept` if there is one."""
    logits = x * 2.0
    if kept is not None:
        kept.append(logits)
    return rl.cross_entropy(logits, target)


@pytest.mark.parametrize("target_device", ["meta:cpu", "meta:H200"])
def test_the_gradient_takes_the_memory_of_logits_that_nobody_holds(target_device):
    x, target = drawn(64, 1000, target_device, requires_grad=True)
    kept = []
    for is_kept in (False, True):
        x.grad = None
        loss = made_of(x, target, kept if is_kept else None)
        with rl.count() as c:
            loss.backward()
        gradients = c.bytes_allocated // x.nbytes  # of x, and of the logits where they stay
        assert gradients == 1 + is_kept


def test_logits_that_somebody_holds_stay_as_they_are(device):
    x, target = drawn(6, 40, device, requires_grad=True)
    kept, gradients = [], []
    for holder in (None, kept):
        x.grad = None
        made_of(x, target, holder).backward()
        gradients.append(x.grad)
    x.grad = None
    assert_close(kept[0], x.detach() * 2.0, atol=0, rtol=0)
    view = (x * 2.0).reshape(2, 3, 40)
    rl.cross_entropy(view.reshape(6, 40), target).backward()
    assert_close(view, kept[0].reshape(2, 3, 40), atol=0, rtol=0)
    assert_close(*gradients, atol=0, rtol=0)


def test_logits_of_another_library_stay_as_they_are():
    array = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    before = array.copy()
    rl.cross_entropy(rl.from_dlpack(array).requires_grad_(), rl.arange(4)).backward()
    np.testing.assert_array_equal(array, before)


def test_a_backward_that_may_come_again_writes_over_nothing(device):
    x, target = drawn(6, 40, device, requires_grad=True)
    loss = made_of(x, target)
    loss.backward(retain_graph=True)
    first, x.grad = x.grad, None
    loss.backward()
    assert_close(x.grad, first, atol=0, rtol=0)


def test_a_captured_backward_of_logits_from_outside_writes_over_nothing(device):
    x, target = drawn(6, 40, device, requires_grad=True)
    made_of(x, target).backward()
    right, x.grad = x.grad, None
    loss = made_of(x, target)
    graph = rl.Graph(device=device)
    with graph.capture():
        (found,) = rl.autograd.grad(loss, [x])
    for _ in range(2):
        graph.replay()
        assert_close(found, right, atol=0, rtol=0)
