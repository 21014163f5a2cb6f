"""rms_norm_rope_append: its rungs give what its parts give, and write where kv_append writes."""

import pytest

import rooflab as rl
from rooflab._core import _gemma3
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

UNTOUCHED = 77.0
CASES = [  # B, H, H_kv, L, T, D_h, position, tables of each text
    (2, 4, 1, 1, 8, 256, 0, True),
    (3, 5, 2, 1, 8, 64, 15, False),  # a ring that was overwritten
    (1, 3, 3, 5, 8, 16, 6, False),  # wraps around the end
    (2, 6, 2, 8, 8, 512, 3, True),
    (1, 2, 2, 9, 8, 16, 2, False),  # only the last 8 tokens stay
    (1, 2, 1, 1, 8, 34, 1, False),  # rows that no vector fits
    (1, 1, 1, 1, 4, 32, 2**62, False),
    (1, 1, 1, 0, 4, 32, 2, False),
]


def operands(case, dtype, device, seed=0):
    """q, k and v as views of a projection, and the rest as `_gemma3.rms_norm_rope_append` takes it."""
    batch, heads, kv_heads, length, places, size, position, of_each_text = case
    rl.manual_seed(seed)
    projected = rl.randn(batch, length, heads + 2 * kv_heads, size, device=device).to(dtype).transpose(1, 2)
    q, k, v = rl.split(projected, [heads, kv_heads, kv_heads], 1)
    q_weight, k_weight = (rl.randn(size, device=device).to(dtype) for _ in "qk")
    angles = rl.randn(*[batch] * of_each_text, length, size, device=device)
    caches = [rl.full((batch, kv_heads, places, size), UNTOUCHED, dtype=dtype, device=device) for _ in "kv"]
    where = rl.tensor([position], device=device)
    return q, k, v, q_weight, k_weight, angles.cos().to(dtype), angles.sin().to(dtype), *caches, where


def in_parts(q, k, v, q_weight, k_weight, cos, sin, k_cache, v_cache, position, eps, zero_centered):
    placed = [rl.rms_norm_rope(x, w, cos, sin, eps, zero_centered) for x, w in ((q, q_weight), (k, k_weight))]
    rl.kv_append(k_cache, v_cache, placed[1], v, position)
    return placed[0]


def accepted(variant, *given):
    """The result of a rung; None where it does not take the operands."""
    try:
        return _gemma3.rms_norm_rope_append(*given, 1e-6, True, variant=variant)
    except ValueError as error:
        if variant and "does not accept these operands" in str(error):
            return None
        raise


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_rung_gives_what_the_parts_give(case, dtype, device):
    right = operands(case, dtype, device)
    y = in_parts(*right, 1e-6, True)
    for variant in [*(rung.name for rung in rl.variants("rms_norm_rope_append", device)), ""]:
        given = operands(case, dtype, device)
        found = accepted(variant, *given)
        if found is None:
            continue
        assert found.shape == given[0].shape
        for got, wanted in ((found, y), (given[7], right[7]), (given[8], right[8])):
            roundoff = unit_roundoff(dtype)  # sums of other orders, of numbers of size 10
            assert_close(got, to_float64(wanted), rtol=4 * roundoff, atol=16 * max(roundoff / 16, 2.0**-24))
        assert (found.flatten() == found.flatten()).all().item()


@pytest.mark.parametrize(("size", "length", "launches"), [(256, 1, 1), (256, 8, 1), (256, 9, 3), (36, 1, 3)])
def test_a_gpu_takes_one_launch_where_rows_have_vectors_and_there_is_room(size, length, launches):
    given = operands((2, 4, 1, length, 8, size, 0, False), "bfloat16", rl.meta("H200"))
    with rl.count() as counted:
        _gemma3.rms_norm_rope_append(*given, 1e-6)
    with rl.count() as parts:
        in_parts(*given, 1e-6, False)
    assert (counted.ops, counted.launches, parts.launches) == (1, launches, 3)
    assert (counted.macs, counted.flops) == (parts.macs, parts.flops)
    q, k, v, *others = given
    if launches == 1:
        tables = sum(x.nbytes for x in others[:4])
        assert counted.bytes_read == q.nbytes + k.nbytes + v.nbytes + tables + 8
        assert counted.bytes_written == q.nbytes + k.nbytes + v.nbytes
    else:
        assert (counted.bytes_read, counted.bytes_written) == (parts.bytes_read, parts.bytes_written)


def test_tokens_of_the_caches_are_read_before_they_are_written(device):
    for variant in [*(rung.name for rung in rl.variants("rms_norm_rope_append", device)), ""]:
        _, _, _, q_weight, k_weight, cos, sin, k_cache, v_cache, where = operands(
            (1, 2, 2, 300, 300, 64, 1, False), "float32", device
        )
        for cache in (k_cache, v_cache):
            cache.copy_(rl.randn(*cache.shape, device=device))
        right = [cache.clone() for cache in (k_cache, v_cache)]
        rest = q_weight, k_weight, cos, sin
        y = in_parts(right[0].clone(), right[0].clone(), right[1].clone(), *rest, *right, where, 1e-6, True)
        found = accepted(variant, k_cache, k_cache, v_cache, *rest, k_cache, v_cache, where)
        for got, wanted in ((found, y), (k_cache, right[0]), (v_cache, right[1])):
            assert_close(got, to_float64(wanted), rtol=1e-5, atol=1e-5)


def test_a_position_below_0_writes_nothing(device, refused):
    given = operands((1, 2, 1, 1, 4, 64, -1, False), "float32", device)
    with refused(ValueError, r"\[kv_append\] position: expected >= 0, got -1"):
        _gemma3.rms_norm_rope_append(*given, 1e-6)
    assert set(given[7].flatten().tolist() + given[8].flatten().tolist()) == {UNTOUCHED}


def test_what_does_not_fit_is_refused():
    given = operands((2, 4, 1, 1, 8, 16, 0, False), "float32", "cpu")

    def refused(pattern, place, other):
        changed = [other if i == place else x for i, x in enumerate(given)]
        with pytest.raises(ValueError, match=r"\[rms_norm_rope_append\] " + pattern):
            _gemma3.rms_norm_rope_append(*changed, 1e-6)

    refused(r"q: expected \(B=2, H, L=1, D_h=16\)", 0, rl.ones(1, 4, 1, 16))
    refused("q_weight", 3, rl.ones(15))
    refused("cos", 5, rl.ones(2, 16))
    refused(r"v: expected the shape of k", 2, rl.ones(2, 1, 2, 16))
    refused(r"k_cache: expected \(B=2, H_kv=1, T > 0, D_h=16\)", 7, rl.ones(2, 1, 8, 32))
    refused("position: expected one int64 number", 9, rl.tensor([0.0]))
