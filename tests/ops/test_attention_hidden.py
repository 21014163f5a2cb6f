"""On a CPU a hidden pair adds nothing to attention or its gradients, NaN or not, except in v0_composed."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close, to_float64

DTYPES = ("float32", "float16", "bfloat16")
TOLERANCE = {"float32": 1e-6, "float16": 1e-2, "bfloat16": 1e-1}  # another order of sums, another rounding at the end
SHAPES = [(70, 90, 64), (4, 1500, 64), (4, 1500, 40)]  # L_q, L_kv, D_h; the short ones are split over keys
HIDE = ["causal", "window", "bool mask", "added mask"]
KEY = 3  # from the end


def case(lengths, hide, dtype):
    """q, k, v, attention's keywords, and which queries see the key."""
    l_q, l_kv, d_h = lengths
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape) for shape in ((1, 4, l_q, d_h), (1, 2, l_kv, d_h), (1, 2, l_kv, d_h)))
    behind = np.arange(l_q) + KEY - l_q  # how far the query stands behind the key
    seen = rng.random((l_q, l_kv)) < 0.5
    seen[:2, -KEY] = True, False
    added = rl.tensor(np.where(seen, 0.5, -np.inf), dtype=dtype)
    keywords, sees = {
        "causal": ({"is_causal": True}, behind >= 0),
        "window": ({"window": 2}, np.abs(behind) < 2),
        "bool mask": ({"attn_mask": rl.tensor(seen)}, seen[:, -KEY]),
        "added mask": ({"attn_mask": added}, seen[:, -KEY]),
    }[hide]
    assert sees.any() and not sees.all()
    return q, k, v, keywords, sees


def fused(op):
    return [rung.name for rung in rl.variants(op, "cpu") if rung.kernel]


@pytest.mark.parametrize("hide", HIDE)
@pytest.mark.parametrize("lengths", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", fused("attention"))
def test_values_of_a_hidden_key_reach_no_row(variant, dtype, lengths, hide):
    q, k, v, keywords, sees = case(lengths, hide, dtype)
    bad = v.copy()
    bad[:, :, -KEY, 3], bad[:, :, -KEY, 5] = np.nan, np.inf
    try:
        right, found = (
            to_float64(rl.attention(*(rl.tensor(x, dtype=dtype) for x in (q, k, x)), **keywords, variant=variant))
            for x in (v, bad)
        )
    except ValueError as error:
        assert "does not accept these operands" in str(error) and variant == "v3_split_kv"
        pytest.skip("too short, or no key that all see, to split")
    right[:, :, sees, 3], right[:, :, sees, 5] = np.nan, np.inf
    assert_close(found, right, rtol=0, atol=TOLERANCE[dtype])


def gradients(q, k, v, dout, keywords, dtype, variant):
    q, k, v, dout = (rl.tensor(x, dtype=dtype) for x in (q, k, v, dout))
    out, lse = rl.attention(q, k, v, **keywords, return_lse=True)
    return [to_float64(x) for x in rl.attention_backward(dout, q, k, v, out, lse, **keywords, variant=variant)]


@pytest.mark.parametrize("hide", HIDE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", fused("attention_backward"))
def test_hidden_pairs_reach_no_gradient(variant, dtype, hide):
    q, k, v, keywords, sees = case(SHAPES[0], hide, dtype)
    dout = np.random.default_rng(1).standard_normal(q.shape)
    right = gradients(q, k, v, dout, keywords, dtype, variant)
    bad = v.copy()
    bad[:, :, -KEY, 3] = np.nan
    dq, _, _ = gradients(q, k, bad, dout, keywords, dtype, variant)
    assert_close(dq[:, :, ~sees], right[0][:, :, ~sees], rtol=0, atol=TOLERANCE[dtype])
    assert np.isnan(dq[:, :, sees]).all()

    row = np.flatnonzero(~sees)[-1]
    dout[:, :, row, 3] = np.nan
    dq, dk, dv = gradients(q, k, v, dout, keywords, dtype, variant)
    assert np.isnan(dq[:, :, row]).all() and np.isnan(dv).any()
    for of_key, expected in zip((dk, dv), right[1:], strict=True):
        assert_close(of_key[:, :, -KEY], expected[:, :, -KEY], rtol=0, atol=TOLERANCE[dtype])
