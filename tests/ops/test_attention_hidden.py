"""A hidden pair adds nothing to attention or its gradients, NaN or not, in any rung."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close, to_float64

DTYPES = ("float64", "float32", "float16", "bfloat16")
# For another order of sums, and another rounding at the end.
TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-2, "bfloat16": 1e-1}
SQUARE = [(70, 90, 64), (150, 210, 128), (70, 90, 256)]  # L_q, L_kv, D_h
SHORT = [(4, 1500, 64), (4, 1500, 40), (4, 500, 80), (4, 100, 64)]  # split over keys: 23 parts twice, 7 and 1
HIDE = ["causal", "window", "bool mask", "added mask"]
KEY = 3  # from the end


def case(lengths, hide, dtype, device):
    """q, k, v, attention's keywords, and which queries see the key."""
    l_q, l_kv, d_h = lengths
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape) for shape in ((1, 4, l_q, d_h), (1, 2, l_kv, d_h), (1, 2, l_kv, d_h)))
    behind = np.arange(l_q) + KEY - l_q  # how far the query stands behind the key
    seen = rng.random((l_q, l_kv)) < 0.5
    seen[:2, -KEY] = True, False
    added = rl.tensor(np.where(seen, 0.5, -np.inf), dtype=dtype, device=device)
    keywords, sees = {
        "causal": ({"is_causal": True}, behind >= 0),
        "window": ({"window": 2}, np.abs(behind) < 2),
        "bool mask": ({"attn_mask": rl.tensor(seen, device=device)}, seen[:, -KEY]),
        "added mask": ({"attn_mask": added}, seen[:, -KEY]),
    }[hide]
    assert sees.any() and not sees.all()
    return q, k, v, keywords, sees


def rungs(op):
    """(device, variant) of every rung that can run here, as test parameters."""
    for rung in rl.variants(op):
        if rung.device == "cpu":
            yield pytest.param("cpu", rung.name, id=f"cpu-{rung.name}")
        elif rl.cuda.is_available():
            yield pytest.param("cuda", rung.name, id=f"cuda-{rung.name}", marks=pytest.mark.gpu)


def run(op, *tensors, dtype, device, **keywords):
    try:
        return op(*(rl.tensor(x, dtype=dtype, device=device) for x in tensors), **keywords)
    except ValueError as error:
        assert "does not accept these operands" in str(error)
        pytest.skip("the rung does not take this case")


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.slow(dtype=["float64", "float16"])
@pytest.mark.parametrize("hide", HIDE)
@pytest.mark.parametrize("lengths", SQUARE + SHORT)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("attention")))
def test_a_hidden_key_reaches_no_row(device, variant, dtype, lengths, hide):
    q, k, v, keywords, sees = case(lengths, hide, dtype, device)

    def attention(k, v):
        return to_float64(run(rl.attention, q, k, v, dtype=dtype, device=device, variant=variant, **keywords))

    right = attention(k, v)
    bad = v.copy()
    bad[:, :, -KEY, 3], bad[:, :, -KEY, 5] = np.nan, np.inf
    found = attention(k, bad)
    expected = right.copy()
    expected[:, :, sees, 3] = np.nan
    expected[:, :, sees, 5] = np.nan if variant == "v5_split_bf16" else np.inf  # its three parts are inf and NaN
    assert_close(found, expected, rtol=0, atol=TOLERANCE[dtype])

    bad = k.copy()
    bad[:, :, -KEY, 1] = np.nan
    found = attention(bad, v)
    assert np.isnan(found[:, :, sees]).all()
    assert_close(found[:, :, ~sees], right[:, :, ~sees], rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", [slice(0, 50), slice(50, 100)], ids=["first", "last"])
@pytest.mark.parametrize("variant, dtype", [("v3_hopper", "bfloat16"), ("v5_split_bf16", "float32")])
def test_a_block_mends_each_of_the_tiles_that_it_took(variant, dtype, wrong):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((100, 4, 70, 64)) for _ in "qkv")  # 400 tiles: about three for each multiprocessor

    def attention(v):
        return to_float64(run(rl.attention, q, k, v, dtype=dtype, device="cuda", variant=variant, is_causal=True))

    expected = attention(v)
    v[wrong, :, -KEY, 3] = np.nan
    expected[wrong, :, -KEY:, 3] = np.nan
    assert_close(attention(v), expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("hide", ["causal", "bool mask", "added mask"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("attention")))
def test_a_row_that_sees_no_key_is_zero_whatever_their_values(device, variant, dtype, hide):
    q, k, v, keywords, _ = case((150, 100, 64), hide, dtype, device)
    begin, end = (0, 50) if hide == "causal" else (20, 60)
    if hide != "causal":
        keywords["attn_mask"][begin:end] = False if hide == "bool mask" else -np.inf
    found = to_float64(run(rl.attention, q, k, v * np.nan, dtype=dtype, device=device, variant=variant, **keywords))
    assert (found[:, :, begin:end] == 0).all() and np.isnan(np.delete(found, slice(begin, end), 2)).all()


@pytest.mark.slow(device=["cpu"], but_every=2)
@pytest.mark.slow(dtype=["float64", "float16"])
@pytest.mark.slow(device=["cpu"], dtype=["bfloat16"])
@pytest.mark.parametrize("deterministic", [False, pytest.param(True, marks=pytest.mark.gpu)])  # the same on a CPU
@pytest.mark.parametrize("hide", HIDE)
@pytest.mark.parametrize("lengths", SQUARE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device, variant", list(rungs("attention_backward")))
def test_hidden_pairs_reach_no_gradient(device, variant, dtype, lengths, hide, deterministic):
    q, k, v, keywords, sees = case(lengths, hide, dtype, device)
    dout = np.random.default_rng(1).standard_normal(q.shape)

    def gradients(v, dout):
        out, lse = run(rl.attention, q, k, v, dtype=dtype, device=device, return_lse=True, **keywords)

        def backward(dout, q, k, v):
            return rl.attention_backward(
                dout, q, k, v, out, lse, variant=variant, deterministic=deterministic, **keywords
            )

        return [to_float64(x) for x in run(backward, dout, q, k, v, dtype=dtype, device=device)]

    right = gradients(v, dout)
    bad = v.copy()
    bad[:, :, -KEY, 3] = np.nan
    dq, _, _ = gradients(bad, dout)
    # v0_composed sums the visible pairs again, in another order: eight roundings of a number above 1 are over 1e-6.
    assert_close(dq[:, :, ~sees], right[0][:, :, ~sees], rtol=8 * 2**-24, atol=TOLERANCE[dtype])
    assert np.isnan(dq[:, :, sees]).all()

    row = np.flatnonzero(~sees)[-1]
    bad = dout.copy()
    bad[:, :, row, 3] = np.nan
    dq, dk, dv = gradients(v, bad)
    assert np.isnan(dq[:, :, row]).all() and np.isnan(dv).any()
    assert_close(np.delete(dq, row, 2), np.delete(right[0], row, 2), rtol=0, atol=TOLERANCE[dtype])
    for of_key, expected in zip((dk, dv), right[1:], strict=True):
        assert_close(of_key[:, :, -KEY], expected[:, :, -KEY], rtol=0, atol=TOLERANCE[dtype])


def test_the_gradient_of_a_mask_is_zero_at_hidden_pairs(device):
    q, k, v, _, _ = case(SQUARE[0], "causal", "float32", device)
    mask = np.random.default_rng(1).standard_normal((q.shape[2], k.shape[2]))
    mask[:, -KEY], v[:, :, -KEY] = -np.inf, 0

    def gradients(v):
        leaves = [rl.tensor(x, dtype="float32", device=device, requires_grad=True) for x in (q, k, v, mask)]
        rl.attention(*leaves).sum().backward()
        return [to_float64(leaf.grad) for leaf in leaves]

    right = gradients(v)
    assert (right[3][:, -KEY] == 0).all() and np.abs(right[3]).max() > 0.1
    v[:, :, -KEY] = np.nan
    for found, expected in zip(gradients(v), right, strict=True):
        assert_close(found, expected, rtol=0, atol=TOLERANCE["float32"])


def test_a_repair_is_one_launch_and_only_where_pairs_are_hidden(device):
    q, k = rl.randn(1, 2, 1, 8, device=device), rl.randn(1, 2, 9, 8, device=device)
    counted = []
    for keywords in ({}, {"is_causal": True}, {"window": 4}):  # the last query sees every key of its past
        with rl.count() as c:
            rl.attention(q, k, k, variant="v0_composed", **keywords)
        counted.append(c.by_op)
    assert counted[0].keys() == counted[1].keys() and "attention_repair" not in counted[0]
    repair = counted[2]["attention_repair"]
    assert repair.launches == 1 and repair.bytes_read == repair.bytes_written == 4 * q.numel()
