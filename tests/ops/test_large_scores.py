"""Attention and losses where scores are large: float32 has no digits left there for the log of a sum."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import Sample, all_specs, unit_roundoff
from rooflab.specs import attention as spec
from rooflab.testing import assert_close, to_float64

DTYPES = ("float64", "float32", "float16", "bfloat16")
SQUARE, SHORT = (70, 90, 64), (4, 1500, 64)  # L_q, L_kv, D_h; the short one is split over keys
# Powers of two: what all scores of a row have in common.
OFFSETS = [0, 13, 17, 20, 23, 27, 30]
SIGNS = [1, -1]


def rungs(op):
    """(device, variant) of every rung that can run here, as test parameters."""
    for rung in rl.variants(op):
        if rung.device == "cpu":
            yield pytest.param("cpu", rung.name, id=f"cpu-{rung.name}")
        elif rl.cuda.is_available():
            yield pytest.param("cuda", rung.name, id=f"cuda-{rung.name}", marks=pytest.mark.gpu)


def case(lengths, exponent):
    """q, k, v and dout. Scores are sums of a few multiples of what float32 tells apart at 2^exponent."""
    l_q, l_kv, d_h = lengths
    rng = np.random.default_rng(exponent)
    step = max(2.0 ** (exponent - 23), 0.125)
    q, k = np.zeros((1, 4, l_q, d_h)), np.zeros((1, 2, l_kv, d_h))
    q[..., 1], q[..., 5] = rng.integers(0, 3, q.shape[:-1]), rng.integers(-1, 2, q.shape[:-1])
    k[..., 1], k[..., 5] = (step * rng.integers(-3, 4, k.shape[:-1]) for _ in range(2))
    return q, k, rng.standard_normal(k.shape), rng.standard_normal(q.shape)


def offset_in_product(q, k, exponent, sign):
    """q and k whose scores are 2^exponent larger. The first column makes them so."""
    q, k = q.copy(), k.copy()
    q[..., 0] = sign * 2.0 ** (exponent - exponent // 2) * (exponent > 0)
    k[..., 0] = 2.0 ** (exponent // 2)
    return q, k


def on(device, dtype, *arrays):
    return tuple(rl.tensor(x, dtype=dtype, device=device) for x in arrays)


def run(op, *tensors, **keywords):
    try:
        return op(*tensors, **keywords)
    except ValueError as error:
        assert "does not accept these operands" in str(error)
        pytest.skip("the rung does not take this case")


def is_rounded(variant, dtype):
    """Whether the rung rounds scores to 16 bits, which then cannot hold both an offset and differences."""
    return variant == "v0_composed" and dtype in ("float16", "bfloat16")


def check_gradients(found, operands, dtype, variant, **keywords):
    """Compare with the gradients of the scores without their offset, which softmax does not see."""
    operands = tuple(to_float64(x) for x in on("cpu", dtype, *operands))
    backward = all_specs()["attention_backward"]
    expected = backward.reference(*operands, **keywords)
    allowed = backward.allowed(dtype, Sample("", operands, keywords), variant)
    for x, right, (rtol, atol), name in zip(found, expected, allowed, ("dq", "dk", "dv"), strict=True):
        columns = slice(1 if name != "dv" else 0, None)  # the first column of dq and dk belongs to the offset
        atol = np.broadcast_to(atol, right.shape)[..., columns]
        assert_close(to_float64(x)[..., columns], right[..., columns], rtol=rtol, atol=2 * atol, name=name)


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("exponent", OFFSETS)
@pytest.mark.parametrize("hides", [{}, {"is_causal": True, "window": 20}], ids=["full", "window"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("attention_backward")))
def test_gradients_of_large_products(device, variant, dtype, hides, exponent, sign):
    if is_rounded(variant, dtype):
        pytest.skip("scores are rounded")
    q, k, v, dout = case(SQUARE, exponent)
    tensors = on(device, dtype, *offset_in_product(q, k, exponent, sign), v)
    keywords = {"scale": 1.0, **hides}
    out, lse, rest = rl.attention(*tensors, return_lse_rest=True, **keywords)
    (dout_on,) = on(device, dtype, dout)
    found = run(rl.attention_backward, dout_on, *tensors, out, lse, lse_rest=rest, variant=variant, **keywords)
    check_gradients(found, (dout, q, k, v), dtype, variant, **keywords)


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.parametrize("bias", [0, 1e4, -1e4, 2.0**23, -(2.0**23), 2.0**30, -(2.0**30), "lowest"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("attention_backward")))
def test_gradients_under_a_mask_of_large_numbers(device, variant, dtype, bias):
    """One number on all keys; in one row on a single key; and a row in which all keys are hidden."""
    lowest = {"float64": np.finfo("f8").min, "float16": -65504.0, "bfloat16": -(2.0**127) * (2 - 2.0**-7)}
    bias = lowest.get(dtype, np.finfo("f4").min) if bias == "lowest" else bias
    bias = float(to_float64(rl.tensor(bias, dtype=dtype)))
    if not np.isfinite(bias) or is_rounded(variant, dtype):
        pytest.skip("the dtype does not hold these scores")
    q, k, v, dout = case(SQUARE, 30 if abs(bias) >= 2.0**30 else 23 if abs(bias) >= 2.0**23 else 14)
    if abs(bias) > 2.0**31:
        q[..., 1:] = 0  # nothing can be told apart beside it
    mask = np.full((1, 1, 70, 90), bias)
    mask[..., 5, :] = 0
    mask[..., 5, 7] = 2.0**15
    mask[..., 6, :] = -np.inf
    small = np.where(np.isinf(mask) | (mask == 2.0**15), mask, 0)
    tensors, (mask, dout_on) = on(device, dtype, q, k, v), on(device, dtype, mask, dout)
    out, lse, rest = rl.attention(*tensors, mask, scale=1.0, return_lse_rest=True)
    found = run(rl.attention_backward, dout_on, *tensors, out, lse, mask, lse_rest=rest, variant=variant, scale=1.0)
    check_gradients(found, (dout, q, k, v, small), dtype, variant, scale=1.0)


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("exponent", OFFSETS)
@pytest.mark.parametrize("lengths", [SQUARE, SHORT], ids=["square", "short"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("attention")))
def test_lse_and_its_rest_are_the_log_sum_exp(device, variant, dtype, lengths, exponent, sign):
    if is_rounded(variant, dtype):
        pytest.skip("scores are rounded")
    q, k, v, _ = case(lengths, exponent)
    tensors = on(device, dtype, *offset_in_product(q, k, exponent, sign), v)
    out, lse, rest = run(rl.attention, *tensors, scale=1.0, return_lse_rest=True, variant=variant)
    weights, right = spec.weights(spec.scores(q, k, scale=1.0))
    offset = sign * 2.0**exponent * (exponent > 0)
    assert_close(to_float64(lse) - offset + to_float64(rest), right, rtol=1e-5, atol=1e-5)
    u = unit_roundoff("float32" if dtype == "float64" else dtype)
    values = np.repeat(to_float64(tensors[2]), 2, 1)
    assert_close(out, weights @ values, rtol=0, atol=4 * u * (weights @ np.abs(values)) + 1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("bias", [-1e9, -1e7, -1e4, 0, 1e4, 1e7, 1e9, -3.3e38])
def test_one_number_on_all_keys_changes_no_gradient(device, dtype, bias):
    z = rl.zeros(1, 1, 1, 4, dtype=dtype, device=device, requires_grad=True)
    v = rl.tensor(np.arange(16.0).reshape(1, 1, 4, 4), dtype=dtype, device=device, requires_grad=True)
    k, mask = rl.zeros(1, 1, 4, 4, dtype=dtype, device=device), rl.full((1, 4), bias, dtype=dtype, device=device)
    rl.attention(z, k, v, mask).sum().backward()
    assert_close(v.grad, np.full((1, 1, 4, 4), 0.25), rtol=1e-6)


def logits_of(exponent, dtype):
    """Rows of logits that differ by multiples of what the dtype tells apart at 2^exponent, and their classes."""
    rng = np.random.default_rng(exponent)
    step = max(2.0**exponent * 2 * unit_roundoff(dtype), 0.125)
    return step * rng.integers(-7, 1, (20, 300)), rng.integers(0, 300, 20)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("exponent", [0, 13, 20, 23, 30])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("cross_entropy_backward")))
def test_gradients_of_the_loss_of_large_logits(device, variant, dtype, exponent, sign):
    if dtype == "float16" and exponent > 13:
        pytest.skip("float16 ends before")
    small, target = logits_of(exponent, dtype)
    (logits,) = on(device, dtype, small + sign * 2.0**exponent * (exponent > 0))
    dloss, classes = rl.ones(20, dtype=dtype, device=device), rl.tensor(target, device=device)
    backward = all_specs()["cross_entropy_backward"]
    operands = backward.prepare(dloss, logits, classes)
    expected = backward.reference(np.ones(20), small, target)
    [(rtol, atol)] = backward.allowed(dtype, Sample("", (np.ones(20), small, target)), variant)
    assert_close(run(backward.fn, *operands, variant=variant), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("exponent", [0, 13, 20, 23, 30])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("cross_entropy")))
def test_loss_and_its_gradient_of_large_logits(device, variant, dtype, exponent):
    """Through the tape: what the rung saves, and what log_softmax saves."""
    if dtype == "float16" and exponent > 13:
        pytest.skip("float16 ends before")
    small, target = logits_of(exponent, dtype)
    weights, _ = spec.weights(small)
    u = unit_roundoff(dtype)
    expected = weights - np.eye(300)[target]
    for loss_of in (
        lambda x, y: rl.cross_entropy(x, y, reduction="sum", variant=variant),
        lambda x, y: -rl.log_softmax(x).gather(1, y.unsqueeze(1)).sum(),
    ):
        logits = rl.tensor(small + 2.0**exponent * (exponent > 0), dtype=dtype, device=device, requires_grad=True)
        loss_of(logits, rl.tensor(target, device=device)).backward()
        assert_close(logits.grad, expected, rtol=0, atol=(2 * u + 1e-6) * np.maximum(8 * weights, 2.0**-10) + u)


@pytest.mark.parametrize("device, variant", list(rungs("attention")))
def test_a_query_whose_scores_all_overflow(device, variant):
    """It gives zeros, as one that sees nothing, except in the textbook's steps."""
    q, k, v = np.zeros((1, 1, 2, 64)), np.zeros((1, 1, 5, 64)), np.ones((1, 1, 5, 64))
    q[0, 0, :, 0], k[..., 0] = (3e38, 1.0), -100.0
    out, lse = run(rl.attention, *on(device, "float32", q, k, v), variant=variant, return_lse=True)
    expected = [[np.nan if variant == "v0_composed" else 0.0] * 64, [1.0] * 64]
    assert_close(to_float64(out)[0, 0], np.array(expected), rtol=1e-6, atol=0)
    if variant != "v0_composed":
        assert to_float64(lse)[0, 0, 0] == -np.inf
