"""Decode attention in one launch: 2 to 8 blocks that share the keys form a cluster, and combine their parts."""

import numpy as np
import pytest
from ops.attention_samples import exact

import rooflab as rl
from rooflab.specs import Sample, unit_roundoff
from rooflab.specs import attention as spec
from rooflab.testing import assert_close, to_float64

PART = 64  # the fewest keys of a part: where few tiles of rows share the GPU, there are as many parts as there can be
QUERIES, KV_HEADS = 5, 2


@pytest.mark.parametrize(("parts", "hopper", "ampere"), [(1, 1, 1), (2, 1, 2), (8, 1, 2), (9, 2, 2)])
def test_few_parts_take_one_launch_and_no_scratch_from_hopper_on(parts, hopper, ampere):
    for gpu, launches in (("B200", hopper), ("H200", hopper), ("A100 SXM 80GB", ampere)):
        q = rl.empty(2, 4, 1, 128, dtype="bfloat16", device=rl.meta(gpu))
        k = rl.empty(2, 2, (parts + 1) * PART - 1, 128, dtype="bfloat16", device=rl.meta(gpu))
        with rl.count() as c:
            rl.attention(q, k, k, variant="v4_split_kv")
        scratch = launches - 1
        assert (c.launches, c.host_calls, c.allocations) == (launches, launches, 1 + scratch)


@pytest.mark.parametrize(("batch", "keys", "dtype", "launches", "parts"), [
    (33, 4096, "bfloat16", 1, 4), (37, 4096, "bfloat16", 2, 7), (44, 4096, "bfloat16", 1, 3),
    (64, 4096, "bfloat16", 1, 2), (33, 4097, "bfloat16", 2, 8), (128, 4097, "float16", 1, 2),
    (64, 4096, "float32", 2, 4),
])  # fmt: skip
def test_clusters_of_more_than_two_have_a_multiprocessor_for_each_block(batch, keys, dtype, launches, parts):
    q, k = (rl.empty(batch, heads, length, 64, dtype=dtype, device=rl.meta("H200"))
            for heads, length in ((4, 1), (1, keys)))  # fmt: skip
    with rl.count() as c:
        rl.attention(q, k, k, variant="v1a_split_kv" if dtype == "float32" else "v4_split_kv")
    sums = 4 * batch * parts * 4 * (64 + 2)  # and a maximum and a sum of exponentials, for each head and part
    assert (c.launches, c.bytes_allocated - q.nbytes) == (launches, sums if launches == 2 else 0)


@pytest.mark.parametrize("gpu", ["H200", "RTX 5090"])
def test_blocks_have_no_more_warps_than_their_shared_memory_has_room_for(gpu):
    """Two blocks share a tile's keys. Each warp has three tiles of 16 keys, so that eight need 192 KiB."""
    q, k = (rl.empty(64, heads, length, 256, dtype="bfloat16", device=rl.meta(gpu))
            for heads, length in ((4, 1), (1, 512)))  # fmt: skip
    with rl.count() as c:
        rl.attention(q, k, k, variant="v4_split_kv")
    assert (c.launches, c.bytes_allocated) == (1, q.nbytes)


class Case:
    """q, k and v rounded to the dtype, in float64, and what attention makes of them on a GPU."""

    def __init__(self, dtype, q_shape, kv_shape):
        self.dtype = dtype
        operands = spec.operands(np.random.default_rng(0), q_shape, kv_shape)
        self.q, self.k, self.v = (self.rounded(x) for x in operands)

    def rounded(self, x):
        return to_float64(rl.tensor(x, dtype=self.dtype))

    def on_gpu(self, x):
        return rl.tensor(x, dtype="bool" if x.dtype == bool else self.dtype, device="cuda")

    def run(self, *mask, v=None, launches=1, **keywords):
        """out and lse of the rung."""
        tensors = [self.on_gpu(x) for x in (self.q, self.k, self.v if v is None else v, *mask)]
        with rl.count() as c:
            out, lse = rl.attention(*tensors, variant="v4_split_kv", return_lse=True, **keywords)
        has_clusters = rl._core._target.of("cuda:0").code.number >= 90
        assert c.launches == (launches if has_clusters else 2)
        assert c.allocations == c.launches + 1  # out and lse, and the scratch of a second launch
        return to_float64(out), to_float64(lse)

    def check(self, found, *mask, keys=None, **keywords):
        """Compare with float64, of the first `keys` alone."""
        q, k, v = self.q, self.k[:, :, :keys], self.v[:, :, :keys]
        out, lse = exact(q, k, v, *mask, **keywords)
        rtol, atol = spec.SPEC.allowed(self.dtype, Sample("", (q, k, v, *mask), keywords))[0]
        assert_close(found[0], out, rtol=rtol, atol=atol)
        sees = np.isfinite(lse)
        assert not found[0][~sees].any() and np.isneginf(found[1][~sees]).all()
        assert_close(found[1][sees], lse[sees], rtol=0, atol=1e-3, name="lse")


def causal(case):
    case.check(case.run(is_causal=True), is_causal=True)


def mask_that_is_bool(case):
    mask = np.random.default_rng(1).random((QUERIES, case.k.shape[2])) < 0.5
    mask[0] = False  # this query sees nothing, and that one the last part alone
    mask[1] = np.arange(case.k.shape[2]) >= case.k.shape[2] - 10
    case.check(case.run(mask), mask)


def mask_that_is_added(case):
    rng = np.random.default_rng(1)
    shape = (2, 1, QUERIES, case.k.shape[2])
    mask = case.rounded(np.where(rng.random(shape) < 0.5, 4 * rng.standard_normal(shape), -np.inf))
    case.check(case.run(mask), mask)


def keys_held_on_the_device(case):
    case.q = case.q[:, :, :1]
    keys = case.k.shape[2]
    for held in (0, 1, PART - 1, PART + 1, keys - PART, keys - 1, keys, keys + 9):
        found = case.run(kv_length=rl.tensor([held], device="cuda"))
        if held == 0:
            assert not found[0].any() and np.isneginf(found[1]).all()
        else:
            case.check(found, keys=held)


def hidden_nan(case):
    """In keys of each part, which a mask hides from the first queries; in the last key, which causality hides."""
    keys, columns = case.k.shape[2], [3, case.k.shape[3] - 1]
    some = np.arange(keys) % 16 == 8
    mask = np.ones((QUERIES, keys), bool)
    mask[:2, some] = False
    for masks, keywords, wrong, seeing in (((mask,), {}, some, 2), ((), {"is_causal": True}, [-1], QUERIES - 1)):
        expected, v = case.run(*masks, **keywords)[0], case.v.copy()
        v[:, :, wrong, 3] = v[:, :, wrong, -1] = np.nan
        found = case.run(*masks, v=v, **keywords)[0]
        expected[:, :, seeing:, columns] = np.nan
        # These columns are summed again, with weights that are not rounded.
        atol = 4 * unit_roundoff(case.dtype) * np.abs(case.v).max()
        assert_close(found, expected, rtol=0, atol=atol)


@pytest.mark.gpu
@pytest.mark.parametrize("way", [causal, mask_that_is_bool, mask_that_is_added, keys_held_on_the_device, hidden_nan])
@pytest.mark.parametrize("group", [1, 4, 8])  # with five queries: one, two and four warps have rows of their own
@pytest.mark.parametrize("head", [64, 80, 128, 256])
@pytest.mark.parametrize("parts", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_cluster_combines_its_parts(dtype, parts, head, group, way):
    way(Case(dtype, (2, KV_HEADS * group, QUERIES, head), (2, KV_HEADS, parts * PART + 63, head)))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("q_shape", "kv_shape", "keywords", "parts"),
    [
        ((64, 4, 1, 128), (64, 1, 1000, 128), {}, 2),
        ((44, 8, 1, 64), (44, 1, 3000, 64), {}, 3),
        ((128, 4, 1, 64), (128, 1, 700, 64), {}, 2),  # two blocks for each multiprocessor
        ((16, 4, 20, 64), (16, 1, 2100, 64), {"is_causal": True}, 4),  # two tiles of rows, the second not full
        ((4, 2, 3, 128), (4, 1, 700, 128), {"is_causal": True, "window": 201}, 3),
    ],
)
def test_clusters_that_fill_the_gpu(q_shape, kv_shape, keywords, parts):
    """Each tile of rows has its cluster."""
    case = Case("bfloat16", q_shape, kv_shape)
    with rl.profile() as profile:
        found = case.run(**keywords)
    (grid,) = {kernel.grid for kernel in profile.kernels if "split_kv_kernel" in kernel.name}
    tiles = -(-q_shape[1] * q_shape[2] // 64)
    assert grid == (q_shape[0] * tiles * parts, 1, 1)
    case.check(found, **keywords)
    assert_close(case.run(**keywords)[0], found[0], rtol=0, atol=0, name="the second run")


@pytest.mark.gpu
def test_nine_parts_take_a_second_launch():
    case = Case("bfloat16", (1, 4, 1, 128), (1, 2, 9 * PART, 128))
    case.check(case.run(launches=2))
