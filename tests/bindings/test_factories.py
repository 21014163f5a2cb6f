"""Factories that follow another tensor, linspace, eye, arange of floats, and casts by name."""

import numpy as np
import pytest

import rooflab as rl

W = rl.tensor(2.0, requires_grad=True)


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn", "full"])
def test_likes_follow_a_tensor(name, device):
    x = rl.zeros(3, 4, dtype="float64", device=device).T
    value = (2.5,) if name == "full" else ()
    make = getattr(rl, f"{name}_like")
    y = make(x, *value)
    assert (y.shape, y.dtype, y.device, y.is_contiguous()) == ((4, 3), "float64", x.device, True)
    other = make(x, *value, dtype="float16", device="meta", requires_grad=True)
    assert (other.shape, other.dtype, other.device, other.requires_grad) == ((4, 3), "float16", "meta:cpu", True)


def test_likes_hold_what_they_say(device):
    x = rl.zeros(2, 3, dtype="int32", device=device)
    assert rl.ones_like(x).tolist() == [[1] * 3] * 2 and rl.ones_like(x).dtype == "int32"
    assert rl.full_like(x, 7).tolist() == [[7] * 3] * 2
    assert rl.zeros_like(rl.ones(2, device=device)).tolist() == [0, 0]
    rl.manual_seed(1)
    drawn = rl.rand_like(x, dtype="float32").tolist()
    rl.manual_seed(1)
    assert drawn == rl.rand(2, 3, device=device).tolist()
    with pytest.raises(ValueError, match=r"\[rand\] dtype"):
        rl.rand_like(x)


SHORT = [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (0, 1, 0.25), (1.5,), (0.5, -1, -0.5), (3, 1), (0.5, 0.5)]
LONG = [(200_000,), (5, 400_001, 7), (7, -99_000, -2), (0.5, 20_000.1, 0.3), (50_000.5,)]  # a GPU makes these itself


@pytest.mark.parametrize("arguments", SHORT + LONG)
def test_arange(arguments, device):
    x, right = rl.arange(*arguments, device=device), np.arange(*arguments)
    assert x.dtype == ("int64" if right.dtype == np.int64 else "float32")
    np.testing.assert_allclose(x.cpu().numpy(), right, rtol=1e-7)
    assert rl.arange(3, dtype="float16", device=device).dtype == "float16"
    assert rl.arange(start=1, end=3).tolist() == [1, 2]


def test_ranges_of_what_cannot_be_counted():
    for arguments in ((0, 5, 0.5), (-2.5, 2.5)):  # NumPy rounds the step, or each number, as it happens
        with pytest.raises(ValueError, match=r"\[arange\] dtype: int64 would round numbers from"):
            rl.arange(*arguments, dtype="int64")
    assert rl.arange(2.5, dtype="int64").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"\[linspace\] expected finite numbers, got -inf and 1"):
        rl.linspace(-float("inf"), 1, 3)


def test_linspace_and_eye(device):
    assert rl.linspace(-1, 1, 5, device=device).tolist() == [-1, -0.5, 0, 0.5, 1]
    assert rl.linspace(0, 1, 3, dtype="float64", requires_grad=True).requires_grad
    assert rl.linspace(0, 1, 0).shape == (0,)
    for arguments in ((-1.5, 3.25, 50_000), (3, 3, 40_000), (1e3, -1e3, 32_769)):
        x, right = rl.linspace(*arguments, device=device), np.linspace(*arguments).astype("float32")
        np.testing.assert_allclose(x.cpu().numpy(), right, rtol=1e-6, atol=1e-6)
        assert x[-1].item() == right[-1]
    for shape in ((3,), (2, 4), (4, 2), (0,), (3, 0)):
        np.testing.assert_array_equal(rl.eye(*shape, device=device).cpu().numpy(), np.eye(*shape))
    assert rl.eye(2, dtype="int64").tolist() == [[1, 0], [0, 1]]


def test_casts_by_name(device):
    x = rl.tensor([0.0, 1.7, -2.5], device=device)
    assert (x.long().tolist(), x.long().dtype) == ([0, 1, -2], "int64")
    assert (x.int().tolist(), x.int().dtype) == ([0, 1, -2], "int32")
    assert (x.bool().tolist(), x.bool().dtype) == ([False, True, True], "bool")


def test_set_grad_enabled():
    assert rl.is_grad_enabled()
    with rl.set_grad_enabled(False):
        assert not rl.is_grad_enabled()
        with rl.set_grad_enabled(True):
            assert rl.is_grad_enabled()
        assert not rl.is_grad_enabled()
    assert rl.is_grad_enabled()
    rl.set_grad_enabled(False)
    assert not rl.is_grad_enabled()
    rl.set_grad_enabled(True)
    assert rl.is_grad_enabled()


def test_a_value_may_be_a_tensor_without_dimensions():
    x, half = rl.tensor([[1, 2]]), rl.tensor(2.5, dtype="float64")
    found = [rl.full((2,), half), rl.full_like(x, half), x.new_full((1,), half), x.masked_fill(x > 1, half)]
    assert [y.tolist() for y in found] == [[2.5, 2.5], [[2, 2]], [2], [[1, 2]]]
    assert [y.dtype for y in found] == ["float32", "int64", "int64", "int64"]
    values = (half, rl.tensor(2, dtype="int32"), half > 2)
    assert [rl.full((1,), y).dtype for y in values] == ["float32", "int64", "bool"]
    rl.ones(2, 3, dtype="float16").masked_fill(rl.tensor([True, False, True]), W).sum().backward()
    assert W.grad.item() == 4


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: rl.arange(0, 3, 0), ValueError, r"\[arange\] step: expected not 0"),
        (lambda: rl.arange("3"), TypeError, r"\[arange\] expected numbers"),
        (lambda: rl.linspace(0, 1, -1), ValueError, r"\[linspace\] steps: expected >= 0, got -1"),
        (lambda: rl.eye(-1), ValueError, r"shape"),
        (lambda: rl.full_like(rl.ones(2, dtype="int32"), 0.5), ValueError, "int32 can hold"),
        (lambda: rl.full_like(rl.ones(2), rl.ones(1)), ValueError, r"\[full_like\] value: expected one number, got"),
        (lambda: rl.full_like(rl.ones(2), "a"), TypeError, r"\[full_like\] value: expected float or Tensor, got str"),
        (lambda: rl.full((2,), W), ValueError, r"\[full\] value: requires grad, .* write .item\(\)"),
        (
            lambda: rl.ones(2).masked_fill(rl.ones(2) > 0, rl.ones(2)),
            ValueError,
            r"\[masked_fill\] value: expected one",
        ),
    ],
)
def test_bad_arguments(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
