"""What functions made of ops promise beyond their values: views, memory, extremes, refusals."""

import math

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def test_cross_entropy_is_stable_for_logits_of_any_size(device):
    logits = rl.tensor([[1e4, 0.0, -1e4], [-3e38, -3e38, -3e38], [80.0, 100.0, 90.0]], device=device)
    target = rl.tensor([1, 2, 1], device=device)
    found = rl.cross_entropy(logits, target, reduction="none")
    # The sum of exponentials is rounded near 1, which shifts a loss near 0 by up to 2^-24.
    assert_close(found, [1e4, np.log(3), np.log1p(np.exp(-10) + np.exp(-20))], rtol=1e-6, atol=2.0**-24)
    shifted = rl.log_softmax(rl.tensor([[-1e4, 0.0, 1e4]], device=device))
    assert_close(shifted, [[-2e4, -1e4, 0.0]], rtol=1e-6, atol=0)


def test_sixteen_bits_are_summed_in_float32(device):
    """50000 equal logits: in bfloat16 their sum of exponentials would stop at 256."""
    logits = rl.zeros(2, 50000, dtype="bfloat16", device=device, requires_grad=True)
    loss = rl.cross_entropy(logits, rl.tensor([0, 1], device=device), reduction="sum")
    assert_close(loss.float(), 2 * np.log(50000), rtol=2**-8, atol=0)
    loss.backward()
    assert_close(logits.grad[0, 0].float(), 1 / 50000 - 1, rtol=2**-8, atol=0)
    assert_close(logits.grad[1, 0].float(), 1 / 50000, rtol=2**-8, atol=0)
    x = rl.full((2, 4000), 300.0, dtype="bfloat16", device=device)
    assert x.var(1).tolist() == [0, 0]


def test_ignored_examples_have_no_gradient_and_no_share_in_the_mean(device):
    logits = rl.randn(4, 5, device=device, requires_grad=True)
    target = rl.tensor([1, -100, 3, -100], device=device)
    rl.cross_entropy(logits, target).backward()
    grad = logits.grad.cpu().numpy()
    assert (grad[[1, 3]] == 0).all() and (grad[[0, 2]] != 0).all()
    assert_close(grad.sum(1), np.zeros(4), rtol=0, atol=1e-7)
    none = rl.cross_entropy(logits, rl.full((4,), -100, dtype="int64", device=device))
    assert np.isnan(none.item())


def test_losses_keep_little_for_backward(device):
    logits = rl.randn(64, 1000, device=device, requires_grad=True)
    target = rl.zeros(64, dtype="int64", device=device)
    own = [s for s in rl.autograd.saved_tensors(rl.cross_entropy(logits, target)) if not s.is_input]
    assert sum(s.bytes for s in own) < logits.nbytes / 20
    assert [s.shape for s in rl.autograd.saved_tensors(rl.log_softmax(logits))] == [(64, 1000)]


def test_losses_hold_two_more_of_the_size_of_the_logits_at_most():
    logits = rl.empty(64, 100000, device="meta", requires_grad=True)
    with rl.count() as c:
        loss = rl.cross_entropy(logits, rl.zeros(64, dtype="int64", device="meta"))
    assert c.peak_bytes < 2.1 * logits.nbytes
    with rl.count() as c:
        loss.backward()
    assert c.peak_bytes < 2.1 * logits.nbytes


def test_nothing_is_recorded_without_grad_mode():
    x = rl.randn(3, 4, requires_grad=True)
    with rl.no_grad():
        made = [rl.cross_entropy(x, rl.tensor([0, 1, 2])), rl.log_softmax(x), x.var(), x.clamp(0, 1), rl.stack([x, x])]
    assert not any(y.requires_grad for y in made)
    assert rl.cross_entropy(x, rl.tensor([0, 1, 2])).grad_fn.name == "cross_entropy"
    assert not rl.any(x).requires_grad and not rl.isnan(x).requires_grad


def test_parts_are_views(device):
    x = rl.zeros(7, 4, device=device)
    with rl.count() as c:
        parts = x.split(3) + x.chunk(3) + rl.split(x, [2, 0, 5])
    assert c.launches == c.allocations == 0
    assert [part.shape for part in parts] == [(3, 4), (3, 4), (1, 4)] * 2 + [(2, 4), (0, 4), (5, 4)]
    parts[2].fill_(5)
    assert x.tolist() == [[0] * 4] * 6 + [[5] * 4]
    assert [p.shape for p in rl.zeros(5).chunk(4)] == [(2,), (2,), (1,)]
    assert [p.shape for p in rl.zeros(0, 3).chunk(2)] == [(0, 3), (0, 3)]
    assert [p.shape for p in rl.zeros(0).split(2)] == [(0,)]


@pytest.mark.parametrize("repeats", [0, 1, 2])
@pytest.mark.parametrize("dim", [None, 0, -1])
def test_repeated_slices_have_memory_of_their_own(repeats, dim, device):
    for x in (rl.zeros(3, 4, device=device), rl.zeros(4, 3, device=device).T, rl.zeros(0, device=device)):
        with rl.count() as c:
            y = x.repeat_interleave(repeats, dim)
        assert y.shape == np.repeat(np.zeros(x.shape), repeats, axis=dim).shape
        assert c.bytes_allocated >= y.nbytes
        y.fill_(7)
        assert not x.cpu().numpy().any()


def test_views_as_functions():
    x = rl.zeros(2, 1, 3)
    with rl.count() as c:
        shapes = [
            y.shape for y in (rl.flatten(x), rl.flatten(x, 1), rl.squeeze(x), rl.squeeze(x, 0), rl.unsqueeze(x, -1))
        ]
    assert shapes == [(6,), (2, 3), (2, 3), (2, 1, 3), (2, 1, 3, 1)]
    assert c.launches == 0


def test_isclose(device):
    inf, nan = np.inf, np.nan
    a = rl.tensor([1.0, 1.0, inf, inf, inf, nan, 1e-9, 1.0], device=device)
    b = rl.tensor([1.0, 1.001, inf, -inf, 1.0, nan, 0.0, inf], device=device)
    assert rl.isclose(a, b).tolist() == [True, False, True, False, False, False, True, False]
    assert rl.isclose(a, b, equal_nan=True)[5].item() and rl.isclose(a, b, rtol=1e-2)[1].item()
    assert rl.allclose(a[:1], b[:1]) is True and rl.allclose(a, b) is False
    assert rl.allclose(a[2:3].expand(5), a[2])
    whole = rl.tensor([2**40, 3], device=device)
    assert rl.allclose(whole, whole) and not rl.allclose(whole, rl.tensor([2**40, 4], device=device))
    assert rl.allclose(rl.zeros(0), rl.zeros(0))


def test_isclose_of_integers_beyond_the_exact_doubles(device):
    a = rl.tensor([2**62, 2**53, 2**63 - 1, 5], device=device)
    b = rl.tensor([2**62 + 300, 2**53 + 1, -(2**63), 5], device=device)
    for atol, expected in (
        (0, [False, False, False, True]),
        (299, [False, True, False, True]),
        (300, [True, True, False, True]),
    ):
        assert rl.isclose(a, b, rtol=0, atol=atol).tolist() == expected
        assert rl.isclose(b, a, rtol=0, atol=atol).tolist() == expected


def test_gradients_at_the_bounds_of_clamp(device):
    x = rl.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], device=device, requires_grad=True)
    x.clamp(-1, 1).sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 0, 0]
    assert rl.tensor([5, -5], device=device).clamp(-2, 2).tolist() == [2, -2]
    assert rl.ones(1, device=device).clamp(3, 2).item() == 2


def test_einsum_is_one_product_without_copies(device):
    q, k = rl.randn(2, 3, 8, 16, device=device), rl.randn(2, 3, 9, 16, device=device)
    with rl.count() as c:
        rl.einsum("bhqd,bhkd->bhqk", q, k)
    assert list(c.by_op) == ["matmul"] and c.macs == 2 * 3 * 8 * 9 * 16


X = rl.ones(4, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.linear(X, rl.ones(5, 4)), r"\[linear\] x: expected \(..., I=4\).*got \(4, 3\)"),
        (lambda: rl.linear(X, rl.ones(3)), r"\[linear\] weight: expected \(O, I\), got \(3,\)"),
        (lambda: rl.linear(X, rl.ones(5, 3), rl.ones(4)), r"\[linear\] bias: expected \(O=5\), got \(4,\)"),
        (lambda: rl.log_softmax(X.long()), r"\[log_softmax\] x: expected a floating-point dtype, got int64"),
        (lambda: rl.cross_entropy(X, rl.tensor([0, 1])), r"\[cross_entropy\] target: expected \(4,\).*got \(2,\)"),
        (lambda: rl.cross_entropy(X, X[:, 0]), r"\[cross_entropy\] target: expected int64 or int32"),
        (lambda: rl.cross_entropy(X, rl.tensor([0, 1, 2, 3])), r"target: expected in \[0, V=3\), .* got 3 in row 3"),
        (lambda: rl.cross_entropy(X, rl.tensor([0, 1, 2, 2]), reduction="avg"), r"reduction: expected \"mean\""),
        (lambda: rl.var(X.int()), r"\[var\] x: expected a floating-point dtype"),
        (lambda: rl.std(X.int()), r"\[std\] x: expected a floating-point dtype"),
        (lambda: X.all(2), r"dim: expected in \[-2, 1\], got 2"),
        (lambda: X.clamp(), r"\[clamp\] expected min, max or both"),
        (lambda: X.masked_fill(X, 0), r"\[masked_fill\] mask: expected bool, got float32"),
        (lambda: X.masked_fill(rl.ones(2, 4, 3, dtype="bool"), 0), r"\[masked_fill\] mask: \(2, 4, 3\) does not"),
        (lambda: rl.stack([]), r"\[stack\] tensors: expected at least one"),
        (lambda: rl.stack([X, X.T]), r"\[stack\] tensors: expected \(4, 3\), got \(3, 4\)"),
        (lambda: X.split(0), r"\[split\] size: expected > 0"),
        (lambda: X.split([1, 2]), r"\[split\] sizes: expected a sum of 4, got 3"),
        (lambda: X.chunk(0), r"\[chunk\] chunks: expected > 0"),
        (lambda: X[:0].chunk(2**62), r"\[chunk\] chunks: expected <= 65536 parts of nothing, got 4611686018427387904"),
        (lambda: X.repeat_interleave(-1), r"\[repeat_interleave\] repeats: expected >= 0"),
        (lambda: rl.isclose(X, X.double()), r"\[isclose\] operands are float32 and float64"),
        (lambda: rl.isclose(X, X, rtol=-1.0), r"\[isclose\] rtol and atol: expected >= 0"),
        (lambda: rl.einsum("ij"), r"\[einsum\] operands: expected at least one"),
        (lambda: rl.einsum("ij,jk->ik", X), r"\[einsum\] equation: expected a term for each of 1 operands, got 2"),
        (lambda: rl.einsum("ijk->i", X), r"\[einsum\] operand 0: expected 3 dimensions \(ijk\), got \(4, 3\)"),
        (lambda: rl.einsum("ij,jk", X, X), r"\[einsum\] operand 1: expected j=3, got \(4, 3\)"),
        (lambda: rl.einsum("i1", X), r"\[einsum\] equation: expected letters"),
        (lambda: rl.einsum("ij->k", X), r"\[einsum\] equation: expected letters of an operand after '->', got 'k'"),
    ],
)
def test_bad_arguments_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_no_dimensions_are_all_of_them():
    x = rl.tensor([[1.0, 0.0], [2.0, 3.0]])
    assert (x.all(()).item(), x.any(dim=()).item(), x.sum(()).item()) == (False, True, 6.0)
    assert x.all((), keepdim=True).shape == (1, 1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
def test_nan_is_true_and_minus_zero_is_not(dtype, device):
    is_floating = "float" in dtype
    x = rl.tensor([[-0.0, 0.0], [math.nan if is_floating else 1.0, 2.0**-14 if is_floating else 1.0]], device=device)
    x = x.to(dtype)
    assert x.any(1).tolist() == x.T.any(0).tolist() == x.all(1).tolist() == x.T.all(0).tolist() == [False, True]
    assert (x[:0].any().item(), x[:0].all().item()) == (False, True)
    assert (x[:, :0].any(1).tolist(), x[:, :0].all(1).tolist()) == ([False] * 2, [True] * 2)
    with rl.count() as c:
        x.any()
    assert c.by_op.keys() == {"any"} and c.launches == 1


@pytest.mark.parametrize("dim", [0, -1])
def test_a_number_is_reduced_along_dimension_0(dim, device):
    x = rl.tensor(2.5, device=device, requires_grad=True)
    for reduce in ("sum", "mean", "amax", "amin", "prod"):
        assert getattr(x, reduce)(dim).item() == getattr(x, reduce)(dim, keepdim=True).item() == 2.5
    assert x.all(dim).item() and x.any(dim).item() and x.argmax(dim).item() == 0
    assert (x.max(dim).values.item(), x.min(dim, keepdim=True).indices.item()) == (2.5, 0)
    assert np.isnan(x.var(dim).item()) and x.std(dim, correction=0).item() == 0
    (x.sum(dim) + x.max(dim).values).backward()
    assert x.grad.item() == 2.0
    with pytest.raises(ValueError, match=r"\[sum\] dim: a tensor of shape \(\) has no dimensions, got 1"):
        x.sum(1)
