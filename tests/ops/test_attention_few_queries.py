"""Attention of few queries over many keys, as in decode: rungs that share the keys among threads or blocks."""

import pytest
from ops.attention_samples import DTYPES, accepted, exact, qkv

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close


def test_float64_decode_is_as_exact_as_any(device):
    tensors = qkv((1, 2, 1, 64), (1, 1, 700, 64), "float64", device)
    assert_close(rl.attention(*tensors), exact(*tensors)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keywords", [{}, {"is_causal": True, "window": 150}], ids=["all", "window"])
@pytest.mark.parametrize("keys", [130, 191, 700])
@pytest.mark.parametrize(("rows", "head"), [(1, 40), (1, 96), (3, 24), (9, 64), (9, 256), (30, 64)])
def test_few_queries_over_any_number_of_keys(rows, head, keys, keywords, dtype, device, instruction_sets):
    """Where they are many for the length of a head, the CPU transposes the keys, tile by tile."""
    q, k, v = qkv((2, 4, rows, head), (2, 2, keys, head), dtype, device)
    expected = exact(q, k, v, **keywords)[0]
    variant = "v3_split_kv" if device == "cpu" else "v1a_split_kv"
    for _ in instruction_sets():
        out = accepted(rl.attention, variant, q, k, v, **keywords)
        if out is not None:  # a short window leaves too few keys to be shared
            assert_close(out, expected, rtol=2 * unit_roundoff(dtype), atol=4e-6 if dtype == "float32" else 4e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "keys", "splits"),
    [
        ((1, 2, 300, 64), 2500, True),
        ((1, 1, 2000, 40), 4000, True),
        ((2, 4, 300, 64), 2500, False),
        ((1, 1, 2000, 40), 3000, False),
    ],
)
def test_keys_are_shared_where_few_tiles_of_queries_have_many(shape, keys, splits, dtype):
    batch, heads, _, head = shape
    tensors = qkv(shape, (batch, heads, keys, head), dtype, "cuda")
    with rl.profile() as profile:
        out = rl.attention(*tensors, is_causal=True)
    tiles = batch * heads * -(-shape[2] // 64)
    assert any("split_kv" in kernel.name and kernel.grid[0] > tiles for kernel in profile.kernels) == splits
    atol = 4e-6 if dtype == "float32" else 4e-3
    assert_close(out, exact(*tensors, is_causal=True)[0], rtol=2 * unit_roundoff(dtype), atol=atol)
