"""attention beyond test_ops: memory, launches, log-sum-exp, layouts, gradients, 16-bit accuracy, bad input."""

import numpy as np
import pytest
from ops.attention_samples import DTYPES, accepted, exact, qkv

import rooflab as rl
from rooflab.specs import attention as spec
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

ACCUMULATOR = unit_roundoff("float32")


def rungs(op, fused_only=True):
    """(device, variant) of every rung, as test parameters."""
    for rung in rl.variants(op):
        if rung.kernel or not fused_only:
            marks = [pytest.mark.gpu] if rung.device == "cuda" else []
            yield pytest.param(rung.device, rung.name, id=f"{rung.device}-{rung.name}", marks=marks)


RUNGS = list(rungs("attention", fused_only=False))
FUSED = list(rungs("attention"))
FUSED_BACKWARD = list(rungs("attention_backward"))


def run(op, variant, *tensors, **keywords):
    result = accepted(op, variant, *tensors, **keywords)
    if result is None:
        pytest.skip(f"{variant} does not take this case")
    return result


def poison(q):
    """Make the next tensors of the sizes of out and lse lie where NaN was. Returns the addresses."""
    held = [
        rl.full(shape, float("nan"), dtype=d, device=q.device)
        for shape, d in ((q.shape, q.dtype), (q.shape[:-1], "float32"))
    ]
    return [x.data_ptr() for x in held]


def score_error(q, k, scale=None):
    """The error of float32 scores. n roundings add up to less than 4 sqrt(n) of them, except for adversarial terms."""
    terms = spec.scores(np.abs(to_float64(q)), np.abs(to_float64(k)), scale=scale).max()
    return 4 * (q.shape[-1] ** 0.5 + 1) * ACCUMULATOR * terms


def check(q, k, v, out, lse=None, *, variant="", **keywords):
    """Fused rungs round nothing to 16 bits but the weights, before their product with v, and the result."""
    u, scale = unit_roundoff(str(q.dtype)), keywords.get("scale")
    right, right_lse = exact(q, k, v, **keywords)
    in_scores = score_error(q, k, scale)
    if variant == "v0_composed":  # the product, and its multiple
        in_scores += 2 * u * np.abs(spec.scores(to_float64(q), to_float64(k), scale=scale)).max()
    in_sums = 4 * (k.shape[2] ** 0.5 + 2) * ACCUMULATOR
    if lse is not None:
        assert lse.dtype == rl.float32
        assert_close(lse, right_lse, rtol=2 * ACCUMULATOR, atol=in_scores + in_sums, name="lse")
    size = exact(q, k, np.abs(to_float64(v)), **keywords)[0]  # weights @ |v|: what errors of weights are relative to
    out, blind = to_float64(out), np.isneginf(right_lse)
    assert not out[blind].any(), "a query that sees nothing gets exact zeros"
    size = np.where(size == 0, 1, size)
    assert_close(
        out / size, right / size, rtol=0, atol=2 * (in_scores + in_sums) + 2 * u, name="out over weights @ |v|"
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_grows_with_the_length_not_its_square(dtype, device, two_threads):
    peaks = []
    for length in (1024, 2048, 4096):
        q, k, v = qkv((1, 2, length, 64), dtype=dtype, device=device)
        with rl.count() as c:
            rl.attention(q, k, v, is_causal=True)
        assert c.launches <= 2  # on a GPU float32 operands are split into parts first
        peaks.append(c.peak_bytes)
    assert peaks[2] - peaks[1] == 2 * (peaks[1] - peaks[0])  # beside the working memory of each thread
    assert peaks[2] < 2 * 4096 * 4096  # one score matrix of one-byte elements would not fit


def test_backward_memory_grows_with_the_length_not_its_square(device, two_threads):
    peaks = []
    for length in (1024, 2048, 4096):
        q, k, v = (x.requires_grad_() for x in qkv((1, 2, length, 64), device=device))
        out = rl.attention(q, k, v)
        with rl.count() as c:
            out.backward(rl.ones(*out.shape, device=device))
        assert c.by_op["attention_backward"].ops == 1
        peaks.append(c.peak_bytes)
    assert peaks[2] - peaks[1] == 2 * (peaks[1] - peaks[0])


def test_float64_keeps_its_digits(device):
    q, k, v = qkv((1, 2, 9, 3), dtype="float64", device=device)  # no float32 is 1 / sqrt(3)
    assert_close(rl.attention(q, k, v), exact(q, k, v)[0], rtol=1e-14, atol=1e-15)


def test_textbook_version_holds_score_matrices(device):
    q, k, v = qkv((2, 3, 128, 16), device=device)
    with rl.count() as c:
        rl.attention(q, k, v, variant="v0_composed")
    matrix = 2 * 3 * 128 * 128 * 4
    assert 2 * matrix + q.nbytes <= c.peak_bytes < 3 * matrix  # scores, weights, the result, and a product's scratch
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


CASES = [
    ((2, 4, 70, 64), (2, 2, 90, 64), {}),
    ((1, 2, 130, 128), (1, 2, 100, 128), {"is_causal": True}),  # the first 30 queries see nothing
    ((1, 8, 2, 256), (1, 2, 600, 256), {"is_causal": True}),
    ((1, 3, 70, 128), (1, 1, 2100, 128), {"is_causal": True}),  # few tiles of queries for so many keys
    ((1, 2, 70, 40), (1, 1, 150, 40), {"is_causal": True, "window": 20}),
    ((1, 2, 33, 64), (1, 2, 65, 64), {"scale": 8.0}),  # scores of hundreds
]


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("device", "variant"), RUNGS)
def test_log_sum_exp_and_result(device, variant, dtype, case):
    q_shape, kv_shape, keywords = case
    tensors = qkv(q_shape, kv_shape, dtype, device)
    places = poison(tensors[0])
    out, lse = run(rl.attention, variant, *tensors, **keywords, return_lse=True)
    if variant != "v0_composed":
        assert [out.data_ptr(), lse.data_ptr()] == places, "no NaN lay in wait"
    check(*tensors, out, lse, variant=variant, **keywords)


@pytest.mark.parametrize(("device", "variant"), RUNGS)
def test_no_rung_refuses_everything(device, variant):
    if device == "cuda":
        code = rl._core._target.of("cuda:0").code
        lacks = {"v2_tensor_core": code.number < 80, "v4_split_kv": code.number < 80}
        hopper = ("v2a_wgmma", "v2b_tma", "v2c_ping_pong", "v3_hopper", "v3a_mask_bits", "v5_split_bf16")
        lacks |= dict.fromkeys(hopper, not code.is_sm90a)
        if lacks.get(variant):
            pytest.skip("needs code for another GPU")
    masks = ({}, {"attn_mask": rl.ones(1, 1, dtype="bool", device=device)})
    tried = (
        accepted(rl.attention, variant, *qkv(q, kv, d, device), **keywords, **mask)
        for q, kv, keywords in CASES
        for d in DTYPES
        for mask in masks
    )
    assert any(out is not None for out in tried)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("device", "variant"), FUSED)
def test_tokens_outside_heads_are_read_in_place(device, variant, dtype):
    """(B, L, H, D_h) activations seen as (B, H, L, D_h): no copy, and the result lies in memory the same way."""
    rng = np.random.default_rng(1)
    held = [
        rl.tensor(rng.standard_normal((2, length, heads, 64)), dtype=dtype, device=device)
        for length, heads in ((20, 4), (300, 2), (300, 2))
    ]
    q, k, v = (x.transpose(1, 2) for x in held)
    with rl.count() as c:
        out = run(rl.attention, variant, q, k, v)
    assert set(c.by_op) == {"attention"}
    assert out.shape == q.shape and out.transpose(1, 2).is_contiguous()
    check(q, k, v, out)


@pytest.mark.parametrize("is_causal", [False, True])
def test_no_keys(is_causal, device):
    q, k, v = (x.requires_grad_() for x in qkv((1, 2, 5, 16), (1, 2, 0, 16), device=device))
    out, lse = rl.attention(q, k, v, is_causal=is_causal, return_lse=True)
    out.sum().backward()
    for zeros in (out.detach(), q.grad):
        assert_close(zeros, np.zeros((1, 2, 5, 16)), rtol=0, atol=0)
    assert_close(lse, np.full((1, 2, 5), -np.inf), rtol=0, atol=0)
    assert k.grad.shape == v.grad.shape == (1, 2, 0, 16)


def check_gradients(found, tensors, dout, in_scores=0.0, **keywords):
    """Relative to the largest: weights or dS, the result that D is made of and the gradient are rounded to 16 bits."""
    q, k = tensors[:2]
    error = 3 * unit_roundoff(str(q.dtype)) + 4 * (k.shape[-2] + q.shape[-1]) ** 0.5 * ACCUMULATOR + 2 * in_scores
    for name, x, dx, right in zip("qkv", tensors, found, float64_gradients(tensors, dout, **keywords), strict=True):
        assert (dx.dtype, dx.shape) == (x.dtype, x.shape)
        assert_close(dx, right, rtol=0, atol=error * float(np.abs(to_float64(right)).max()), name=f"d{name}")


def float64_gradients(tensors, dout, attn_mask=None, **keywords):
    wide = [x.double().detach().requires_grad_() for x in tensors]
    wide_mask = attn_mask if attn_mask is None or attn_mask.dtype == rl.bool else attn_mask.double()
    rl.attention(*wide, wide_mask, **keywords).backward(dout.double())
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
    check_gradients([x.grad for x in tensors], tensors, dout, **keywords)


@pytest.mark.parametrize("is_bool", [True, False], ids=["bool", "added"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("q_shape", "kv_shape", "keywords"), GRADIENT_CASES[:4])
def test_gradients_beside_a_mask(dtype, q_shape, kv_shape, keywords, is_bool, device):
    tensors = [x.requires_grad_() for x in qkv(q_shape, kv_shape, dtype, device)]
    dout = qkv(q_shape, dtype=dtype, device=device, seed=5)[0]
    rng = np.random.default_rng(6)
    shape = (q_shape[1], q_shape[2], kv_shape[2])
    seen = rng.random(shape) < 0.7
    seen[:, 3] = False  # a query that sees nothing
    mask = seen if is_bool else np.where(seen, rng.standard_normal(shape), -np.inf)
    mask = rl.tensor(mask, dtype="bool" if is_bool else dtype, device=device)
    rl.attention(*tensors, mask, **keywords).backward(dout)
    check_gradients([x.grad for x in tensors], tensors, dout, attn_mask=mask, **keywords)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_huge_scores(dtype, device):
    tensors = [x.requires_grad_() for x in qkv((1, 2, 70, 64), dtype=dtype, device=device)]
    dout = qkv((1, 2, 70, 64), dtype=dtype, device=device, seed=5)[0]
    rl.attention(*tensors, is_causal=True, scale=8.0).backward(dout)
    in_scores = score_error(*tensors[:2], scale=8.0)
    check_gradients([x.grad for x in tensors], tensors, dout, in_scores, is_causal=True, scale=8.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("device", "variant"), FUSED_BACKWARD)
def test_nan_gradient_stays_in_its_row_and_head(device, variant, dtype):
    q, k, v = qkv((1, 4, 70, 64), (1, 2, 90, 64), dtype, device)
    dout = rl.ones(1, 4, 70, 64, dtype=dtype, device=device)
    dout[0, 1, 5, 3] = float("nan")
    out, lse = rl.attention(q, k, v, return_lse=True)
    dq, dk, dv = map(to_float64, run(rl.attention_backward, variant, dout, q, k, v, out, lse))
    assert np.isnan(dq[0, 1, 5]).all() and np.isnan(dq).sum() == 64
    assert np.isnan(dk[0, 0]).all() and np.isnan(dv[0, 0, :, 3]).all()
    assert not np.isnan(dk[0, 1]).any() and np.isnan(dv).sum() == 90


@pytest.mark.slow(device=["cpu"], dtype=["bfloat16", "float16"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("device", "variant"), FUSED_BACKWARD)
@pytest.mark.slow(id=["cpu-v1_flash-float32"])
def test_deterministic_gradients_are_right_and_the_same_bits(device, variant, dtype):
    q, k, v = qkv((2, 4, 300, 64), (2, 2, 300, 64), dtype, device)
    out, lse = rl.attention(q, k, v, is_causal=True, return_lse=True)
    keywords = {"is_causal": True, "deterministic": True}
    runs = [run(rl.attention_backward, variant, out, q, k, v, out, lse, **keywords) for _ in range(4)]
    check_gradients(runs[0], (q, k, v), out, is_causal=True)
    for other in runs[1:]:
        for x, y in zip(runs[0], other, strict=True):
            assert_close(x, y, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(2, 9, 9), (9, 9), (1, 2, 1, 9)])
def test_added_mask_gets_a_gradient(shape, device):
    q, k, v = qkv((3, 2, 9, 8), device=device)
    bias = rl.tensor(
        np.random.default_rng(3).standard_normal(shape), dtype="float32", device=device, requires_grad=True
    )
    rl.attention(q, k, v, bias).sum().backward()
    weights, _ = spec.weights(spec.scores(to_float64(q), to_float64(k), to_float64(bias)))
    dweights = to_float64(v).sum(-1)[:, :, None, :]
    dscores = weights * (dweights - (weights * dweights).sum(-1, keepdims=True))
    summed = tuple(range(4 - len(shape))) + tuple(4 - len(shape) + i for i, n in enumerate(shape) if n == 1)
    right = dscores.sum(summed).reshape(shape)
    assert_close(bias.grad, right, rtol=0, atol=4 * dscores.size**0.5 * ACCUMULATOR * np.abs(dweights).max())


def test_what_attention_saves(device):
    q, k, v = (x.requires_grad_() for x in qkv((2, 3, 64, 16), device=device))
    out = rl.attention(q, k, v)
    saved = [s for s in rl.autograd.saved_tensors(out) if s.shape == (2, 3, 64)]
    assert len(saved) == 1 and saved[0].bytes == 2 * (2 * 3 * 64 * 4)  # the log-sum-exp and what its rounding left out
    assert not any(s.shape[-2:] == (64, 64) for s in rl.autograd.saved_tensors(out))


def test_no_queries_give_no_gradients_but_zeros(device):
    q, k, v = qkv((1, 2, 0, 16), (1, 2, 5, 16), device=device)
    out, lse = rl.attention(q, k, v, return_lse=True)
    dq, dk, dv = rl.attention_backward(out, q, k, v, out, lse)
    assert dq.shape == (1, 2, 0, 16)
    assert_close(dk, np.zeros((1, 2, 5, 16)), rtol=0, atol=0)
    assert_close(dv, np.zeros((1, 2, 5, 16)), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("device", "variant"), RUNGS)
def test_nan_query_stays_in_its_row(device, variant, dtype):
    q, k, v = qkv((1, 2, 20, 64), (1, 2, 300, 64), dtype, device)
    q[0, 1, 5, 3] = float("nan")
    wrong = np.isnan(to_float64(run(rl.attention, variant, q, k, v)))
    assert wrong[0, 1, 5].all() and wrong.sum() == 64


def test_any_nan_is_one(device):
    """A NaN's payload must not turn into a number."""
    bits = np.full((1, 2, 3, 64), 0x7FC00001, dtype=np.uint32)
    _, k, v = qkv((1, 2, 3, 64), (1, 2, 300, 64), device=device)
    assert np.isnan(to_float64(rl.attention(rl.tensor(bits.view(np.float32), device=device), k, v))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("device", "variant"), RUNGS)
def test_a_mask_of_the_lowest_number_hides_nothing(device, variant, dtype):
    """Such a row sees all keys alike, because the scores are lost beside the mask."""
    q, k, v = qkv((1, 2, 5, 64), (1, 2, 300, 64), dtype, device)
    mask = rl.zeros(5, 300, dtype=dtype, device=device)
    mask[3] = {"float16": -65504.0}.get(dtype, -3.38e38)
    out = to_float64(run(rl.attention, variant, q, k, v, mask))
    v = to_float64(v)
    size = np.abs(v).mean(2)
    error = 2 * unit_roundoff(dtype) + 4 * 300**0.5 * ACCUMULATOR
    if dtype != "float16":  # there the scores are not lost beside 65504
        assert_close(out[:, :, 3] / size, v.mean(2) / size, rtol=0, atol=error, name="out over mean |v|")
    assert np.isfinite(out).all()


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
        (lambda: rl.attention(Q, K, rl.ones(2, 4, 7, 8)), "v: expected the shape of k"),
        (lambda: rl.attention(Q, K, K, window=0), "window: expected > 0, got 0"),
        (lambda: rl.attention(Q, K, K, window=-1), "window: expected > 0, got -1"),
        (lambda: rl.attention(Q, K, K, scale=float("inf")), "scale: expected a finite number"),
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
