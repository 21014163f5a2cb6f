"""Which rung runs on an H200 where none is named, on either side of each limit that its times have set."""

import pytest

import rooflab as rl

H200 = rl.meta("H200")


def empty(*shape, dtype="bfloat16"):
    return rl.empty(*shape, dtype=dtype, device=H200)


def ran(run):
    with rl.profile() as profile:
        run()
    return [kernel.name.partition("_cuda_")[2] for kernel in profile.kernels]


@pytest.mark.parametrize(("copied", "rung"), [
    (lambda: empty(300, 200).T, "v2b_tiles"),
    (lambda: empty(100, 200).T, "v1_strided"),  # few elements
    (lambda: empty(100_000, 7).T, "v1_strided"),  # a short side
    (lambda: empty(5000, 8).T, "v2b_tiles"),
    (lambda: empty(4000, 63, 65).transpose(1, 2), "v1_strided"),  # matrices of less than a tile
    (lambda: empty(4000, 64, 64).transpose(1, 2), "v2b_tiles"),
    (lambda: empty(300).unsqueeze(1).expand(300, 201), "v1_strided"),  # each element again and again
    (lambda: empty(300, 200)[:, ::2], "v1_strided"),
])  # fmt: skip
def test_copies(copied, rung):
    x = copied()
    assert ran(lambda: rl.copy(x)) == [rung]


@pytest.mark.parametrize(("rows", "rung"), [(1000, "v2a_gathered"), (900, "v1_strided")])
def test_sums_with_a_row(rows, rung):
    x, bias = empty(rows, 33), empty(33)
    assert ran(lambda: x + bias) == [rung]


@pytest.mark.parametrize(("q", "kv", "causal", "rung"), [
    # few rows of a group, and few keys: a tile for each head where there is a multiprocessor for each tile
    ((1, 4, 9, 256), (1, 1, 9, 256), False, "v3_hopper"),
    ((8, 8, 9, 128), (8, 2, 767, 128), False, "v3_hopper"),
    ((8, 8, 9, 128), (8, 2, 768, 128), False, "v4_split_kv"),
    ((17, 8, 9, 128), (17, 2, 600, 128), False, "v4_split_kv"),
    ((256, 16, 1, 128), (256, 1, 512, 128), False, "v4_split_kv"),
    ((8, 32, 1, 128), (8, 1, 512, 128), False, "v4_split_kv"),
    ((1, 8, 2, 64), (1, 2, 100, 64), False, "v4_split_kv"),  # 8 rows
    ((1, 8, 3, 64), (1, 2, 100, 64), False, "v3_hopper"),  # 12, in one part
    ((1, 8, 3, 64), (1, 2, 200, 64), False, "v4_split_kv"),  # in three
    ((1, 8, 5, 64), (1, 2, 200, 64), False, "v3_hopper"),  # 20
    # short heads that hide keys
    ((4, 12, 256, 64), (4, 12, 256, 64), True, "v2b_tma"),
    ((4, 12, 256, 64), (4, 12, 256, 64), False, "v3_hopper"),
    ((4, 12, 640, 64), (4, 12, 640, 64), True, "v3_hopper"),
    ((32, 12, 256, 64), (32, 12, 256, 64), True, "v3_hopper"),
    ((4, 12, 256, 128), (4, 12, 256, 128), True, "v3_hopper"),
    ((4, 48, 1, 64), (4, 1, 500, 64), True, "v4_split_kv"),  # one query sees all keys
])  # fmt: skip
def test_attention(q, kv, causal, rung):
    q, kv = empty(*q), empty(*kv)
    first = ran(lambda: rl.attention(q, kv, kv, is_causal=causal))[0]
    assert first == rung


@pytest.mark.parametrize(("mask", "keywords", "rungs"), [
    ((128, 128), {}, ["v3a_mask_bits"] * 2),
    ((4, 1, 1, 128), {}, ["v3a_mask_bits"] * 2),  # padding
    ((4, 1, 128, 128), {"is_causal": True}, ["v3a_mask_bits"] * 2),
    ((4, 8, 128, 128), {}, ["v2_tensor_core"]),  # a mask for each head
    ((128, 128), {"window": 64}, ["v2_tensor_core"] * 2),
    ((100, 100), {}, ["v2_tensor_core"]),  # few pairs
])  # fmt: skip
def test_attention_with_a_mask(mask, keywords, rungs):
    q, mask = empty(4, 8, mask[-1], 64), empty(*mask, dtype="bool")
    assert ran(lambda: rl.attention(q, q, q, attn_mask=mask, **keywords)) == rungs
