"""attention beyond test_ops: memory, launches, log-sum-exp, layouts, gradients, 16-bit accuracy, bad input."""

import itertools

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs import attention as spec
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

FUSED = [v.name for v in rl.variants("attention", "cpu") + rl.variants("attention", "cuda") if v.kernel]
FUSED_BACKWARD = [
    v.name for v in rl.variants("attention_backward", "cpu") + rl.variants("attention_backward", "cuda") if v.kernel
]


def qkv(q_shape, kv_shape=None, dtype="float32", device="cpu", seed=0):
    rng = np.random.default_rng(seed)
    shapes = (q_shape, kv_shape or q_shape, kv_shape or q_shape)
    return tuple(rl.tensor(rng.standard_normal(s), dtype=dtype, device=device) for s in shapes)


def exact(q, k, v, mask=None, **keywords):
    """attention and its log-sum-exp in float64."""
    q, k, v = (to_float64(x) for x in (q, k, v))
    weights, lse = spec.weights(spec.scores(q, k, None if mask is None else to_float64(mask), **keywords))
    return weights @ np.repeat(v, q.shape[1] // k.shape[1], 1), lse


def run(variant, *tensors, **keywords):
    """The rung, or None where it does not take these operands or this device has no such rung."""
    try:
        return rl.attention(*tensors, **keywords, variant=variant)
    except ValueError as error:
        if "does not accept" in str(error) or "expected one of" in str(error):
            return None
        raise


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("q_length", "kv_length", "window"), [(5, 5, None), (3, 9, None), (9, 3, None), (7, 11, 3)])
def test_mask_shows_the_visible_keys(q_length, kv_length, window, is_causal, device):
    mask = rl.attention_mask(q_length, kv_length, is_causal=is_causal, window=window, device=device)
    assert_close(mask, spec.visible(q_length, kv_length, is_causal, window), rtol=0, atol=0)


def test_last_query_stands_beside_the_last_key():
    assert rl.attention_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_grows_with_the_length_not_its_square(dtype, device):
    peaks = []
    for length in (256, 512, 1024):
        q, k, v = qkv((1, 2, length, 64), dtype=dtype, device=device)
        with rl.count() as c:
            rl.attention(q, k, v, is_causal=True)
        assert c.launches == 1
        peaks.append(c.peak_bytes)
    assert peaks[0] * 4 == peaks[1] * 2 == peaks[2]
    assert peaks[2] < 2 * 1024 * 1024  # one score matrix of one-byte elements would not fit


def test_backward_memory_grows_with_the_length_not_its_square(device):
    peaks = []
    for length in (256, 512, 1024):
        q, k, v = (x.requires_grad_() for x in qkv((1, 2, length, 64), device=device))
        out = rl.attention(q, k, v)
        with rl.count() as c:
            out.backward(rl.ones(*out.shape, device=device))
        assert c.by_op["attention_backward"].launches == 1
        peaks.append(c.peak_bytes)
    assert peaks[0] * 4 == peaks[1] * 2 == peaks[2]


def test_textbook_version_holds_score_matrices(device):
    q, k, v = qkv((2, 3, 128, 16), device=device)
    with rl.count() as c:
        rl.attention(q, k, v, variant="v0_composed")
    matrix = 2 * 3 * 128 * 128 * 4
    assert c.peak_bytes == 2 * matrix + q.nbytes  # scores, weights, and the result
    assert {op: n.launches for op, n in c.by_op.items() if n.launches} == {"matmul": 2, "mul": 1, "softmax": 1}


@pytest.mark.parametrize(
    ("q_length", "kv_length", "keywords"),
    [
        (40, 40, {}),
        (40, 40, {"is_causal": True}),
        (17, 90, {"is_causal": True}),
        (90, 17, {"is_causal": True}),
        (50, 60, {"is_causal": True, "window": 7}),
        (50, 60, {"window": 7}),
    ],
)
def test_work_is_that_of_the_visible_pairs(q_length, kv_length, keywords):
    q, k, v = qkv((2, 4, q_length, 8), (2, 2, kv_length, 8))
    with rl.count() as c:
        rl.attention(q, k, v, **keywords)
    pairs = 8 * int(spec.visible(q_length, kv_length, **keywords).sum())
    assert (c.macs, c.flops) == (2 * pairs * 8, 4 * pairs * 8 + 5 * pairs)


@pytest.mark.parametrize("variant", ["v0_composed", *dict.fromkeys(FUSED)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("q_shape", "kv_shape", "keywords"),
    [
        ((2, 4, 70, 64), (2, 2, 90, 64), {}),
        ((1, 2, 130, 128), (1, 2, 100, 128), {"is_causal": True}),  # the first 30 queries see nothing
        ((1, 8, 2, 256), (1, 2, 600, 256), {"is_causal": True}),
        ((1, 2, 70, 40), (1, 1, 150, 40), {"is_causal": True, "window": 20}),
    ],
)
def test_log_sum_exp(variant, dtype, q_shape, kv_shape, keywords, device):
    tensors = qkv(q_shape, kv_shape, dtype, device)
    result = run(variant, *tensors, **keywords, return_lse=True)
    if result is None:
        pytest.skip(f"{variant} does not take this case on {device}")
    out, lse = result
    right_out, right_lse = exact(*tensors, **keywords)
    assert lse.dtype == rl.float32
    rounded_scores = 30 * unit_roundoff(dtype) if variant == "v0_composed" else 0
    assert_close(lse, right_lse, rtol=1e-6 + rounded_scores, atol=2e-5 + rounded_scores, name="lse")
    # Weights are rounded to 16 bits before their product with v, results after it; nothing else is.
    error = 4 * unit_roundoff(dtype) + 1e-5
    if variant != "v0_composed":
        assert_close(out, right_out, rtol=error, atol=error, name="out")


@pytest.mark.parametrize("variant", dict.fromkeys(FUSED))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tokens_outside_heads_are_read_in_place(variant, dtype, device):
    """(B, L, H, D_h) activations seen as (B, H, L, D_h): no copy, and the result lies in memory the same way."""
    rng = np.random.default_rng(1)
    held = [
        rl.tensor(rng.standard_normal((2, length, heads, 64)), dtype=dtype, device=device)
        for length, heads in ((33, 4), (300, 2), (300, 2))
    ]
    q, k, v = (x.transpose(1, 2) for x in held)
    if run(variant, q, k, v) is None:
        pytest.skip(f"{variant} does not take this case on {device}")
    with rl.count() as c:
        out = rl.attention(q, k, v, variant=variant)
    assert c.launches == 1
    assert out.shape == q.shape and out.transpose(1, 2).is_contiguous()
    assert_close(out, exact(q, k, v)[0], rtol=0.02, atol=0.02)


def float64_gradients(tensors, dout, **keywords):
    wide = [x.double().detach().requires_grad_() for x in tensors]
    rl.attention(*wide, **keywords).backward(dout.double())
    return [x.grad for x in wide]


GRADIENT_CASES = [
    ((2, 4, 70, 64), (2, 2, 90, 64), {}),
    ((1, 4, 130, 128), (1, 1, 130, 128), {"is_causal": True}),
    ((1, 2, 90, 256), (1, 2, 50, 256), {"is_causal": True}),
    ((1, 2, 65, 40), (1, 2, 150, 40), {"is_causal": True, "window": 20}),
    ((3, 33, 24), (3, 29, 24), {"scale": 0.5}),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("q_shape", "kv_shape", "keywords"), GRADIENT_CASES)
def test_gradients_through_the_tape(dtype, q_shape, kv_shape, keywords, device):
    tensors = [x.requires_grad_() for x in qkv(q_shape, kv_shape, dtype, device)]
    dout = qkv(q_shape, dtype=dtype, device=device, seed=5)[0]
    rl.attention(*tensors, **keywords).backward(dout)
    for name, x, right in zip("qkv", tensors, float64_gradients(tensors, dout, **keywords), strict=True):
        assert x.grad.dtype == x.dtype and x.grad.shape == x.shape
        largest = float(np.abs(to_float64(right)).max())
        assert_close(x.grad, right, rtol=0, atol=(8 * unit_roundoff(dtype) + 3e-6) * largest, name=f"d{name}")


@pytest.mark.parametrize("variant", dict.fromkeys(FUSED_BACKWARD))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_deterministic_gradients_are_the_same_bits(variant, dtype, device):
    q, k, v = qkv((2, 4, 300, 64), (2, 2, 300, 64), dtype, device)
    out, lse = rl.attention(q, k, v, is_causal=True, return_lse=True)
    known = {rung.name: rung for rung in rl.variants("attention_backward", device)}
    keywords = {"is_causal": True, "deterministic": True, "variant": variant}
    try:
        runs = [rl.attention_backward(out, q, k, v, out, lse, **keywords) for _ in range(4)]
    except ValueError as error:
        assert variant not in known or "does not accept" in str(error)
        pytest.skip(f"{variant} does not take this case on {device}")
    for other in runs[1:]:
        for x, y in zip(runs[0], other, strict=True):
            assert_close(x, y, rtol=0, atol=0)


def test_added_mask_gets_a_gradient(device):
    q, k, v = qkv((1, 2, 9, 8), device=device)
    bias = rl.tensor(np.random.default_rng(3).standard_normal((2, 9, 9)), dtype="float32", device=device)
    bias.requires_grad_()
    rl.attention(q, k, v, bias).sum().backward()
    step = 1e-2
    for at in itertools.product((0, 1), (0, 8), (2, 5)):
        ends = []
        for sign in (1, -1):
            moved = to_float64(bias.detach())
            moved[at] += sign * step
            ends.append(exact(q, k, v, moved)[0].sum())
        assert abs(bias.grad.cpu().numpy()[at] - (ends[0] - ends[1]) / (2 * step)) < 1e-3


def test_what_attention_saves(device):
    q, k, v = (x.requires_grad_() for x in qkv((2, 3, 64, 16), device=device))
    out = rl.attention(q, k, v)
    saved = [s for s in rl.autograd.saved_tensors(out) if s.shape == (2, 3, 64)]
    assert len(saved) == 1 and saved[0].bytes == 2 * 3 * 64 * 4
    assert not any(s.shape[-2:] == (64, 64) for s in rl.autograd.saved_tensors(out))


def test_no_queries_give_no_gradients_but_zeros(device):
    q, k, v = qkv((1, 2, 0, 16), (1, 2, 5, 16), device=device)
    out, lse = rl.attention(q, k, v, return_lse=True)
    dq, dk, dv = rl.attention_backward(out, q, k, v, out, lse)
    assert dq.shape == (1, 2, 0, 16)
    assert_close(dk, np.zeros((1, 2, 5, 16)), rtol=0, atol=0)
    assert_close(dv, np.zeros((1, 2, 5, 16)), rtol=0, atol=0)


@pytest.mark.parametrize("variant", ["v0_composed", *dict.fromkeys(FUSED)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nan_query_stays_in_its_row(variant, dtype, device):
    q, k, v = qkv((1, 2, 70, 64), (1, 2, 300, 64), dtype, device)
    q[0, 1, 5, 3] = float("nan")
    out = run(variant, q, k, v)
    if out is None:
        pytest.skip(f"{variant} does not take this case on {device}")
    wrong = np.isnan(to_float64(out))
    assert wrong[0, 1, 5].all() and wrong.sum() == 64


Q = rl.ones(2, 4, 6, 8)
K = rl.ones(2, 2, 7, 8)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rl.attention(rl.ones(6, 8), K, K), r"\[attention\] q: expected \(B, H, L_q, D_h\)"),
        (lambda: rl.attention(Q, rl.ones(2, 3, 7, 8), rl.ones(2, 3, 7, 8)), "H_kv to divide H=4"),
        (lambda: rl.attention(Q, K, rl.ones(2, 2, 6, 8)), "v: expected the shape of k"),
        (lambda: rl.attention(Q, rl.ones(1, 2, 7, 8), rl.ones(1, 2, 7, 8)), "k: expected B=2"),
        (lambda: rl.attention(Q, rl.ones(2, 2, 7, 16), K), "D_h=8"),
        (lambda: rl.attention(Q, K, K.half()), "float32 and float16"),
        (lambda: rl.attention(Q, K, K, window=0), "window: expected > 0, got 0"),
        (lambda: rl.attention(Q, K, K, scale=float("nan")), "scale: expected a finite number"),
        (lambda: rl.attention(Q, K, K, rl.ones(6, 6, dtype="bool")), r"attn_mask: .*do not broadcast|broadcast"),
        (lambda: rl.attention(Q, K, K, rl.ones(3, 2, 4, 6, 7, dtype="bool")), "broadcasts to"),
        (lambda: rl.attention(Q, K, K, rl.ones(6, 7, dtype="float64")), "attn_mask: expected bool or float32"),
        (lambda: rl.attention(Q, K, K, variant="v9"), "variant: expected one of .*v0_composed"),
        (lambda: rl.attention(rl.arange(8).view(1, 1, 1, 8), K, K), "floating-point"),
        (lambda: rl.attention(rl.ones(1, 1, 1, 0), rl.ones(1, 1, 1, 0), rl.ones(1, 1, 1, 0)), "D_h > 0"),
        (lambda: rl.attention_backward(Q, Q, K, K, Q, rl.ones(2, 4, 7)), r"lse: expected float32 \(2, 4, 6\)"),
        (lambda: rl.attention_backward(K, Q, K, K, Q, rl.ones(2, 4, 6)), "dout: expected the shape of q"),
        (lambda: rl.attention_mask(3, -1), "sizes >= 0"),
        (lambda: rl.attention_mask(3, 3, window=0), "window: expected > 0"),
    ],
)
def test_mistakes_are_sentences(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.peer
def test_agrees_with_pytorch(device):
    torch = pytest.importorskip("torch")
    for is_causal in (False, True):
        q, k, v = qkv((2, 4, 100, 64), device=device)
        theirs = torch.nn.functional.scaled_dot_product_attention(
            *(torch.from_dlpack(x) for x in (q, k, v)), is_causal=is_causal
        )
        assert_close(rl.attention(q, k, v, is_causal=is_causal), theirs.cpu().numpy(), rtol=1e-4, atol=1e-5)
