"""Loss scaling: gradients that float16 loses without it, steps left out, a scale that shrinks and grows."""

import math

import pytest

import rooflab as rl
from rooflab import grad_scaler
from rooflab._core import _scale_tensors
from rooflab.optim import AdamW


def scaled(**options):
    """A scaler that has scaled a loss, for gradients that are set by hand."""
    scaler = rl.GradScaler(**options)
    scaler.scale(rl.ones(()))
    return scaler


def one(value=1.0, device="cpu", **options):
    w = rl.tensor([value], requires_grad=True, device=device)
    return w, AdamW([w], lr=0.1, weight_decay=0.0), scaled(**options)


def test_gradients_that_float16_loses_are_kept(device):
    w = rl.ones(4, 8, requires_grad=True, device=device)
    x = rl.ones(2, 8, device=device)

    def gradient(scaler):
        w.grad = None
        with rl.autocast("float16"):
            loss = rl.linear(x, w).to("float32").sum() * 1e-8  # float16's smallest number is 6e-8
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        return w.grad.to("cpu").numpy()

    optimizer = AdamW([w])
    assert (gradient(rl.GradScaler(enabled=False)) == 0).all()
    assert gradient(rl.GradScaler()) == pytest.approx(2e-8, rel=2**-10)


def test_a_step_is_that_of_unscaled_gradients_to_the_bit(device):
    (w, optimizer, scaler), (other, plain, _) = one(device=device), one(device=device)
    for _ in range(3):
        for parameter, loss_of in ((w, scaler.scale), (other, lambda loss: loss)):
            parameter.grad = None
            loss_of((parameter * parameter).sum()).backward()
        assert scaler.step(optimizer) is True
        plain.step()
        scaler.update()
        assert w.grad.tolist() == other.grad.tolist() and w.tolist() == other.tolist()


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_a_step_with_an_overflow_is_left_out_and_the_scale_shrinks(bad, device):
    fine = rl.ones(3, requires_grad=True, device=device)
    broken = rl.ones(1000, requires_grad=True, device=device)
    optimizer, scaler = AdamW([fine, broken]), scaled(init_scale=8.0)
    fine.grad = rl.ones(3, device=device)
    broken.grad = rl.ones(1000, device=device)
    broken.grad[777] = bad
    assert scaler.step(optimizer) is False
    assert fine.tolist() == [1.0] * 3 and optimizer.state == {}
    scaler.update()
    assert scaler.get_scale() == 4.0
    broken.grad = rl.ones(1000, device=device)
    assert scaler.step(optimizer) is True and fine.tolist() != [1.0] * 3
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_infinities_that_cancel_are_noticed():
    w = rl.ones(2, requires_grad=True)
    optimizer, scaler = AdamW([w]), scaled()
    w.grad = rl.tensor([math.inf, -math.inf])
    assert scaler.step(optimizer) is False


@pytest.mark.parametrize(
    ("gradient", "dtype"), [([3e38, 3e38], "float32"), ([3e38, 3e38, -3e38], "float32"), ([1e200, -1e300], "float64")]
)
def test_finite_gradients_whose_squares_overflow_are_no_overflow(gradient, dtype, device):
    w = rl.ones(len(gradient), dtype=dtype, requires_grad=True, device=device)
    optimizer, scaler = AdamW([w]), scaled(init_scale=1.0)
    w.grad = rl.tensor(gradient, dtype=dtype, device=device)
    assert scaler.step(optimizer) is True
    scaler.update()
    w.grad = rl.tensor([*gradient[1:], math.nan], dtype=dtype, device=device)
    assert scaler.step(optimizer) is False


def test_what_was_divided_before_an_error_is_not_divided_again(monkeypatch):
    tensors = [rl.ones(1, dtype=dtype, requires_grad=True) for dtype in ("float32", "float64")]
    for tensor in tensors:
        tensor.grad = rl.full((1,), 8.0, dtype=tensor.dtype)
    optimizer, scaler = AdamW(tensors), scaled(init_scale=4.0)

    def fails_for_doubles(gradients, factor):
        if gradients[0].dtype == "float64":
            raise MemoryError
        _scale_tensors(gradients, factor)

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(grad_scaler, "_scale_tensors", fails_for_doubles)
        scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    assert [tensor.grad.item() for tensor in tensors] == [2.0, 2.0]


def test_the_scale_grows_after_steps_without_overflow_in_a_row():
    w, optimizer, scaler = one(init_scale=4.0, growth_interval=3, growth_factor=2.0)
    scales = []
    for step in range(9):
        w.grad = rl.tensor([math.inf if step == 1 else 1.0])
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 8.0, 8.0]


def test_the_scale_stays_a_float32():
    w, optimizer, scaler = one(init_scale=2.0**127, growth_interval=1)
    w.grad = rl.ones(1)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_the_scale_does_not_shrink_to_zero():
    """Its inverse is finite, so that training goes on after the last overflow."""
    w, optimizer, scaler = one(init_scale=2.0**-120)
    for gradient in [math.inf] * 10 + [2.0**-126]:
        w.grad = rl.tensor([gradient])
        taken = scaler.step(optimizer)
        scaler.update()
    assert taken and scaler.get_scale() == 2.0**-126 and w.grad.tolist() == [1.0]


def test_clipping_comes_between():
    w, optimizer, scaler = one()
    scaler.scale((w * 5).sum()).backward()
    scaler.unscale_(optimizer)
    assert rl.nn.utils.clip_grad_norm_([w], 1.0).item() == 5.0
    clipped = w.grad.tolist()
    scaler.step(optimizer)
    assert w.grad.tolist() == clipped == pytest.approx([1.0])


def test_the_work_is_counted():
    tensors = [rl.ones(8, requires_grad=True) for _ in range(5)]
    for tensor in tensors:
        tensor.grad = rl.ones(8)
    optimizer, scaler = AdamW(tensors), scaled()
    with rl.count() as c:
        scaler.unscale_(optimizer)
    assert {op: counts.launches for op, counts in c.by_op.items()} == {"fill": 1, "scale_tensors": 1, "sum_squares": 1}


def test_tensors_without_a_gradient_do_not_count():
    w, optimizer, scaler = one()
    assert scaler.step(optimizer) is True and w.tolist() == [1.0]
    scaler.update()


def test_not_enabled_it_does_nothing():
    w, optimizer, scaler = one(enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    w.grad = rl.tensor([math.inf])
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer) is True and not math.isfinite(w.item())
    scaler.update()
    scaler.load_state_dict({})


def test_the_order_of_calls_is_checked():
    w, optimizer, scaler = one()
    with pytest.raises(RuntimeError, match=r"update: expected step\(\) before it"):
        scaler.update()
    w.grad = rl.ones(1)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="divided already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="stepped already"):
        scaler.step(optimizer)
    half = rl.ones(1, dtype="float16", requires_grad=True)
    half.grad = rl.ones(1, dtype="float16")
    with pytest.raises(ValueError, match="expected gradients in float32, got float16"):
        scaled().unscale_(AdamW([half]))


@pytest.mark.parametrize("call", [rl.GradScaler.step, rl.GradScaler.unscale_])
def test_gradients_of_a_loss_that_was_not_scaled_are_not_divided(call):
    w, optimizer, _ = one()
    w.sum().backward()
    with pytest.raises(RuntimeError, match=r"no loss was scaled; write scaler.scale\(loss\).backward\(\)"):
        call(rl.GradScaler(), optimizer)
    assert w.grad.tolist() == [1.0]
    with pytest.raises(TypeError, match=r"\[GradScaler\] scale: expected a tensor, got float"):
        rl.GradScaler().scale(2.0)


def test_state_goes_on():
    w, optimizer, scaler = one(init_scale=4.0, growth_interval=2)
    w.grad = rl.ones(1)
    scaler.step(optimizer)
    scaler.update()
    other = scaled()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() == {
        "scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1,
    }  # fmt: skip
    other.step(optimizer)
    other.update()
    assert other.get_scale() == 8.0
    with pytest.raises(ValueError, match="got no growth_factor"):
        other.load_state_dict({"scale": 1.0})


@pytest.mark.parametrize(
    "options",
    [
        {"init_scale": 0},
        {"init_scale": math.inf},
        {"growth_factor": 1.0},
        {"backoff_factor": 1.0},
        {"growth_interval": 0},
        {"init_scale": math.nan},
        {"init_scale": 2.0**128},
        {"init_scale": "1"},
        {"growth_interval": 2.5},
    ],
)
def test_numbers_out_of_range_are_refused(options):
    (name, value), scaler = next(iter(options.items())), rl.GradScaler()
    with pytest.raises(ValueError, match=rf"\[GradScaler\] {name}: expected .*, got"):
        rl.GradScaler(**options)
    before, name = scaler.state_dict(), name.removeprefix("init_")
    with pytest.raises(ValueError, match=rf"\[GradScaler\] {name}: expected .*, got"):
        scaler.load_state_dict(before | {"growth_factor": 3.0, name: value})
    assert scaler.state_dict() == before


def test_a_count_beyond_the_interval_grows_the_scale():
    scaler, w = rl.GradScaler(init_scale=8.0), rl.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="_growth_tracker: expected a whole number of at least 0, got -1"):
        scaler.load_state_dict(scaler.state_dict() | {"_growth_tracker": -1})
    scaler.load_state_dict(scaler.state_dict() | {"growth_interval": 5, "_growth_tracker": 9})
    scaler.scale(w.sum()).backward()
    scaler.step(rl.optim.AdamW([w])), scaler.update()
    assert scaler.get_scale() == 16.0


def test_a_step_that_failed_is_taken_again_and_divides_no_gradient_twice():
    w = rl.ones(1, requires_grad=True)
    scaler, optimizer = rl.GradScaler(init_scale=8.0), rl.optim.AdamW([w], lr=0.5, weight_decay=0.0)
    scaler.scale(w.sum()).backward()
    optimizer.param_groups[0]["lr"] = -1.0
    with pytest.raises(ValueError, match="lr"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="update"):
        scaler.update()
    optimizer.param_groups[0]["lr"] = 0.5
    assert scaler.step(optimizer) and w.grad.tolist() == [1.0] and w.item() == pytest.approx(0.5)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_after_a_step_that_failed_new_gradients_are_divided_and_judged(set_to_none):
    w = rl.ones(3, requires_grad=True)
    scaler, optimizer = rl.GradScaler(init_scale=8.0), rl.optim.AdamW([w], weight_decay=0.0)
    optimizer.param_groups[0]["lr"] = -1.0
    for factor in (1.0, 2.0, math.inf):
        optimizer.zero_grad(set_to_none=set_to_none)
        scaler.scale((w * factor).sum()).backward()
        scaler.unscale_(optimizer)
        if factor < math.inf:
            for _ in range(2):
                with pytest.raises(ValueError, match="lr"):
                    scaler.step(optimizer)
            with pytest.raises(RuntimeError, match="divided already"):
                scaler.unscale_(optimizer)
            rl.nn.utils.clip_grad_norm_([w], 100.0)
            with pytest.raises(ValueError, match="lr"):
                scaler.step(optimizer)
            assert w.grad.tolist() == [factor] * 3
    optimizer.param_groups[0]["lr"] = 0.1
    assert scaler.step(optimizer) is False and w.tolist() == [1.0] * 3
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_a_state_is_a_dict():
    with pytest.raises(TypeError, match=r"^\[GradScaler\] load_state_dict: expected a dict, got int$"):
        rl.GradScaler().load_state_dict(5)


@pytest.mark.peer
def test_the_scale_is_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    overflows = [0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    options = {"init_scale": 32.0, "growth_interval": 2, "growth_factor": 4.0, "backoff_factor": 0.25}
    w, optimizer, ours = one(**options)
    p = torch.ones(1, requires_grad=True)
    their_optimizer, theirs = torch.optim.SGD([p]), torch.amp.GradScaler("cpu", **options)
    for overflow in overflows:
        value = math.inf if overflow else 1.0
        w.grad, p.grad = rl.tensor([value]), torch.tensor([value])
        theirs.scale(p.sum())  # this makes its scale
        theirs.step(their_optimizer)
        theirs.update()
        ours.step(optimizer)
        ours.update()
        assert ours.get_scale() == theirs.get_scale()
    assert ours.state_dict() == theirs.state_dict()


def test_a_captured_loss_follows_the_scale(device):
    w, optimizer, scaler = one(device=device, init_scale=8.0)
    scaler.scale((w * 3).sum()).backward()
    optimizer.zero_grad(set_to_none=False)
    graph = rl.Graph(device=device)
    with graph.capture():
        scaler.scale((w * 3).sum()).backward()
    for scale in (8.0, 4.0, 2.0):
        optimizer.zero_grad(set_to_none=False)
        graph.replay()
        assert w.grad.tolist() == [3.0 * scale]
        w.grad.fill_(math.inf)
        scaler.step(optimizer)
        scaler.update()
    scaler.load_state_dict(scaler.state_dict() | {"scale": 16.0})
    optimizer.zero_grad(set_to_none=False)
    graph.replay()
    assert w.grad.tolist() == [48.0]


def test_what_a_graph_would_repeat_wrongly_is_refused():
    w, optimizer, scaler = one()
    w.grad = rl.ones(1)
    with (
        pytest.raises(ValueError, match="scale: the first call makes a tensor"),
        rl.Graph(device="cpu").capture(),
    ):
        rl.GradScaler().scale(w.sum())
    with (
        pytest.raises(ValueError, match="unscale_: a graph would repeat the scale"),
        rl.Graph(device="cpu").capture(),
    ):
        scaler.unscale_(optimizer)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_loss_of_any_dtype_is_scaled(dtype):
    w = rl.ones(1, dtype=dtype, requires_grad=True)
    scaled = rl.GradScaler().scale(w.sum())
    scaled.backward()
    assert scaled.item() == 65536.0 and scaled.dtype == ("float32" if dtype == "float16" else dtype)


def test_an_expanded_gradient_is_replaced():
    a, b = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True)
    a.grad, b.grad = rl.full((2,), 8.0), rl.full((1,), 8.0).expand(2)
    assert scaled(init_scale=8.0).step(AdamW([a, b]))
    assert a.grad.tolist() == b.grad.tolist() == [1.0, 1.0]


def test_a_gradient_without_numbers_stops_the_division_of_all():
    a, b = rl.ones(2, requires_grad=True), rl.ones(2, requires_grad=True, device="meta")
    a.grad, b.grad = rl.full((2,), 8.0), rl.ones(2, device="meta")
    with pytest.raises(ValueError, match=r"got one on meta$"):
        scaled(init_scale=8.0).step(AdamW([a, b]))
    assert a.grad.tolist() == [8.0, 8.0]


def test_a_step_without_numbers_is_counted():
    w, scaler = rl.ones(2, requires_grad=True, device="meta"), rl.GradScaler()
    optimizer = AdamW([w])
    scaler.scale(w.sum()).backward()
    optimizer.param_groups[0]["lr"] = -1.0
    with pytest.raises(ValueError, match="lr"):
        scaler.step(optimizer)
    optimizer.param_groups[0]["lr"] = 0.1
    with rl.count() as c:
        assert scaler.step(optimizer) is True
    scaler.update()
    assert c.by_op["adamw"].launches == 1
