"""Gradients scaled to a norm: values, NaN and infinities as PyTorch treats them, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn.utils import clip_grad_norm_
from rooflab.testing import assert_close

INF, NAN = float("inf"), float("nan")


def with_gradients(*gradients, dtype="float32", device="cpu"):
    params = []
    for gradient in gradients:
        param = rl.zeros(np.shape(gradient), dtype=dtype, device=device, requires_grad=True)
        param.grad = rl.tensor(np.array(gradient), dtype=dtype, device=device)
        params.append(param)
    return params


def drawn():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in [(3, 4), (), (5,)]]


@pytest.mark.parametrize("max_norm", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_norm_of_all_together_is_limited(max_norm, dtype, device):
    arrays = drawn()
    params = with_gradients(*arrays, dtype=dtype, device=device)
    norm = np.sqrt(sum((array**2).sum() for array in arrays))
    assert norm > 3
    assert_close(clip_grad_norm_(iter(params), max_norm), norm, rtol=1e-6, name="norm")
    for param, array in zip(params, arrays, strict=True):
        assert_close(param.grad, array * max_norm / (norm + 1e-6), rtol=1e-6, name="gradient")
        assert param.grad.dtype == dtype


@pytest.mark.parametrize("max_norm", [100.0, INF])
def test_a_smaller_norm_changes_nothing(max_norm):
    params = with_gradients([3.0, 4.0], [12.0])
    assert clip_grad_norm_(params, max_norm).item() == pytest.approx(13)
    assert [param.grad.tolist() for param in params] == [[3.0, 4.0], [12.0]]


def test_one_tensor_alone():
    (param,) = with_gradients([3.0, 4.0])
    assert clip_grad_norm_(param, 1.0).item() == pytest.approx(5)
    assert_close(param.grad, [0.6, 0.8], name="gradient")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_squares_of_half_precision_do_not_overflow(dtype):
    params = with_gradients([300.0, 400.0], dtype=dtype)
    norm = clip_grad_norm_(params, 1.0)
    assert norm.item() == pytest.approx(500, rel=1e-2) and norm.dtype == "float32"
    assert params[0].grad.dtype == dtype
    assert_close(params[0].grad, [0.6, 0.8], rtol=1e-2, name="gradient")


def test_the_coefficient_is_not_rounded_to_the_gradients_dtype(device):
    (param,) = with_gradients([1.0, 2.0, 3.0], dtype="bfloat16", device=device)
    clip_grad_norm_(param, 1.0)
    right = rl.tensor(np.array([1.0, 2.0, 3.0]) / (np.sqrt(14) + 1e-6), dtype="bfloat16")
    assert param.grad.tolist() == right.tolist() and right[2].item() == 0.80078125


@pytest.mark.parametrize(
    ("dtype", "gradients"),
    [
        ("float32", [[1e20, 1.0, 1.0]]),
        ("float32", [[1.0, 1.0], [3e38], []]),
        ("float32", [[1e-30, 2e-30]]),
        ("bfloat16", [[1e30, 1.0]]),
        ("float64", [[1e200, 1.0], [1e199]]),
        ("float64", [[1e-200, 2e-200], []]),
        ("float64", [[0.0], []]),
    ],
)
@pytest.mark.parametrize("max_norm", [1.0, 0.25])
def test_a_norm_is_finite_whatever_its_squares_are(dtype, gradients, max_norm, device):
    params = with_gradients(*gradients, dtype=dtype, device=device)
    values = [param.grad.cpu().to("float64").numpy().copy() for param in params]
    top = max([abs(array).max() for array in values if array.size], default=0) or 1.0
    norm = top * np.sqrt(sum(((array / top) ** 2).sum() for array in values))
    assert_close(clip_grad_norm_(params, max_norm, error_if_nonfinite=True), norm, rtol=1e-6, name="norm")
    for param, array in zip(params, values, strict=True):
        right = array * min(1.0, max_norm / (norm + 1e-6))
        smallest = {"float64": 5e-324, "float32": 1e-44, "bfloat16": 1e-40}[dtype]
        assert_close(param.grad, right, rtol=2**-8 if dtype == "bfloat16" else 1e-6, atol=smallest, name="gradient")


def test_the_launches_of_a_step_are_counted(device):
    params = with_gradients([1.0], [2.0], [3.0], device=device)
    with rl.count() as c:
        clip_grad_norm_(params, 1.0)
    squares = 1 if device == "cpu" else 2
    assert c.launches == squares + 6  # the root, the scale in three, scaling, to float32


def test_a_captured_step_clips_what_it_finds(device):
    (param,) = with_gradients([3.0, 4.0], device=device)
    clip_grad_norm_(param, 1.0)
    graph = rl.Graph(device=device)
    with graph.capture():
        norm = clip_grad_norm_(param, 1.0)
    param.grad.copy_(rl.tensor([6e20, 8e20]))
    graph.replay()
    assert norm.item() == pytest.approx(1e21, rel=1e-6)
    assert param.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_limit_may_be_a_tensor_of_one_number(shape, device):
    params = with_gradients([3.0, 4.0], device=device)
    assert clip_grad_norm_(params, rl.full(shape, 2.5, device=device)).item() == pytest.approx(5)
    assert_close(params[0].grad, [1.5, 2.0], rtol=1e-6, name="gradient")


def test_tensors_without_gradient_do_not_count():
    params = [*with_gradients([6.0, 8.0]), rl.ones(3, requires_grad=True)]
    assert clip_grad_norm_(params, 5.0).item() == pytest.approx(10)
    assert params[1].grad is None
    assert clip_grad_norm_(params[1:], 5.0).item() == 0 == clip_grad_norm_([], 5.0).item()


def test_nan_reaches_every_gradient():
    params = with_gradients([1.0, NAN], [2.0])
    assert np.isnan(clip_grad_norm_(params, 1.0).item())
    assert np.isnan(params[0].grad.numpy()).all() and np.isnan(params[1].grad.numpy()).all()


def test_an_infinity_leaves_zeros_and_nan():
    params = with_gradients([1.0, -INF], [2.0])
    assert clip_grad_norm_(params, 1.0).item() == INF
    assert_close(params[0].grad, [0.0, NAN], name="where it was infinite")
    assert params[1].grad.tolist() == [0.0]


@pytest.mark.parametrize("value", [NAN, INF])
def test_a_norm_that_is_not_finite_can_be_an_error(value):
    params = with_gradients([3.0], [value])
    with pytest.raises(RuntimeError, match=r"\[clip_grad_norm_\] the norm of the gradients is (nan|inf)"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert params[0].grad.tolist() == [3.0]


@pytest.mark.parametrize("max_norm", [-1.0, NAN])
def test_a_bad_limit_is_refused(max_norm):
    with pytest.raises(ValueError, match=r"\[clip_grad_norm_\] max_norm: expected 0 or more"):
        clip_grad_norm_(with_gradients([1.0]), max_norm)


def test_bad_types_are_refused_and_a_fraction_is_a_number():
    with pytest.raises(TypeError, match=r"\[clip_grad_norm_\] max_norm: expected a number, got str"):
        clip_grad_norm_(with_gradients([1.0]), "1")
    for wrong in (5, [5]):
        with pytest.raises(TypeError, match=r"\[clip_grad_norm_\] parameters: expected tensors, got int"):
            clip_grad_norm_(wrong, 1.0)
    params = with_gradients([4.0])
    clip_grad_norm_(params, Fraction(1, 2))
    assert params[0].grad.item() == pytest.approx(0.5)


def test_a_tensor_that_is_given_twice_counts_once():
    tied = rl.nn.Parameter(rl.zeros(2))
    tied.grad = rl.tensor([3.0, 4.0])
    assert clip_grad_norm_([tied, tied], 1.0).item() == 5.0
    assert tied.grad.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.peer
@pytest.mark.parametrize("extra", [0.5, NAN, INF])
@pytest.mark.parametrize("max_norm", [0.1, 100.0])
def test_it_is_pytorchs(extra, max_norm):
    torch = pytest.importorskip("torch")
    arrays = [*drawn(), np.array([extra])]
    params, theirs = with_gradients(*arrays, dtype="float64"), [torch.zeros(array.shape) for array in arrays]
    for tensor, array in zip(theirs, arrays, strict=True):
        tensor.grad = torch.tensor(array, dtype=torch.float32)
    right = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
    assert_close(clip_grad_norm_(params, max_norm), right.numpy(), name="norm")
    for ours, tensor in zip(params, theirs, strict=True):
        assert_close(ours.grad, tensor.grad.numpy(), rtol=1e-5, name="gradient")


def test_an_expanded_gradient_is_replaced():
    """rl.autograd.grad returns such ones. The call raised when others were scaled already."""
    w, v = rl.ones(3, requires_grad=True), rl.ones(3, requires_grad=True)
    gradients = rl.autograd.grad((w * 2).sum() + v.sum(), [w, v])
    w.grad, v.grad = gradients
    clip_grad_norm_([w, v], 15.0**0.5 / 2)
    assert w.grad.tolist() == pytest.approx([1.0] * 3) and v.grad.tolist() == pytest.approx([0.5] * 3)
    assert [gradient.tolist()[0] for gradient in gradients][1] == 1.0, "which nobody else has"
