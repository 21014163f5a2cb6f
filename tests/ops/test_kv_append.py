"""kv_append: what is written where, by every rung; what it counts; and what it refuses."""

import numpy as np
import pytest

import rooflab as rl

UNTOUCHED = 77.0


def expected(cache, new, position):
    """The expected cache, written token by token."""
    cache = cache.copy()
    for i in range(new.shape[2]):
        cache[:, :, (position + i) % cache.shape[2]] = new[:, :, i]
    return cache


def caches(shape, dtype, device):
    return [rl.full(shape, UNTOUCHED, dtype=dtype, device=device) for _ in range(2)]


CASES = [  # B, H_kv, L, T, D_h, position
    (2, 3, 1, 8, 64, 0),
    (2, 3, 1, 8, 64, 7),
    (1, 1, 1, 8, 256, 8),
    (2, 1, 5, 8, 34, 6),  # wraps around the end
    (1, 2, 8, 8, 3, 3),
    (1, 2, 21, 8, 16, 2),  # only the last 8 tokens stay
    (3, 4, 300, 1000, 128, 500),
    (1, 1, 2, 4, 8, 2**40 + 3),
    (1, 1, 0, 4, 8, 1),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_rung_writes_tokens_to_their_places(case, dtype, device):
    batch, heads, length, places, size, position = case
    rng = np.random.default_rng(0)
    k, v = (rl.tensor(rng.standard_normal((batch, heads, length, size)), dtype=dtype, device=device) for _ in "kv")
    for variant in [*(rung.name for rung in rl.variants("kv_append", device)), ""]:
        k_cache, v_cache = caches((batch, heads, places, size), dtype, device)
        where = rl.tensor([position], device=device)
        before = [x.float().numpy() if device == "cpu" else x.float().cpu().numpy() for x in (k_cache, v_cache, k, v)]
        try:
            rl.kv_append(k_cache, v_cache, k, v, where, variant=variant)
        except ValueError as error:
            if variant and "does not accept these operands" in str(error):
                continue
            raise
        np.testing.assert_array_equal(k_cache.float().cpu().numpy(), expected(before[0], before[2], position), variant)
        np.testing.assert_array_equal(v_cache.float().cpu().numpy(), expected(before[1], before[3], position), variant)


def test_views_of_projections_and_of_caches(device):
    """k and v as they come from a projection, and caches that are a part of larger ones."""
    room = rl.full((2, 2, 2, 16, 32), UNTOUCHED, device=device)
    k_cache, v_cache = room[0, :, :, 2:10], room[1, :, :, 2:10]
    k, v = (rl.randn(2, 3, 2 * 32, device=device).reshape(2, 3, 2, 32).transpose(1, 2) for _ in "kv")
    rl.kv_append(k_cache, v_cache, k, v, rl.tensor([6], device=device))
    right = np.full(room.shape, UNTOUCHED, np.float32)
    for i, new in enumerate((k, v)):
        right[i, :, :, 2:10] = expected(right[i, :, :, 2:10], new.cpu().numpy(), 6)
    np.testing.assert_array_equal(room.cpu().numpy(), right)


@pytest.mark.parametrize("begin", [0, 1])  # where the tokens that move up or down by one come from
@pytest.mark.parametrize("shared", [lambda x: x, rl.from_dlpack], ids=["one storage", "two storages"])
def test_tokens_of_the_caches_are_read_before_they_are_written(shared, begin, device):
    for variant in [*(rung.name for rung in rl.variants("kv_append", device)), ""]:
        k_cache, v_cache = rl.randn(1, 2, 300, 64, device=device), rl.randn(1, 2, 300, 64, device=device)
        right = [
            expected(x, x[:, :, begin : begin + 299], 1 - begin) for x in (y.cpu().numpy() for y in (k_cache, v_cache))
        ]
        k, v = (shared(x)[:, :, begin : begin + 299] for x in (k_cache, v_cache))
        rl.kv_append(k_cache, v_cache, k, v, rl.tensor([1 - begin], device=device), variant=variant)
        for found, wanted in zip((k_cache, v_cache), right, strict=True):
            np.testing.assert_array_equal(found.cpu().numpy(), wanted, variant)


def test_caches_may_lie_between_each_other_and_share_nothing():
    new, where = rl.ones(2, 2, 1, 8), rl.tensor([0])
    room = rl.zeros(2, 2, 2, 4, 16)
    for k_cache, v_cache in (
        (room[0], room[1]),
        (room[:, 0], room[:, 1]),
        (room[:, :, 0], room[:, :, 1]),
        (room[0, :, :, :2], room[0, :, :, 2:]),
        (room[0, :, :, ::2], room[0, :, :, 1::2]),
    ):
        for low in (0, 8):
            rl.kv_append(k_cache[..., :8], v_cache[..., low : low + 8], new, new, where)
    whole = rl.zeros(2, 2, 6, 16)
    for k_cache, v_cache in (
        (whole[:, :, :4], whole[:, :, 2:]),
        (whole[:, :, :4], rl.from_dlpack(whole)[:, :, 1:5]),
        (whole[:, :, ::2], whole[:, :, :3]),
    ):
        for own, other in ((0, 0), (0, 4), (4, 0)):
            with pytest.raises(ValueError, match=r"v_cache: expected memory that k_cache does not share"):
                rl.kv_append(k_cache[..., own : own + 8], v_cache[..., other : other + 8], new, new, where)


def test_counts(device):
    k_cache, v_cache = caches((2, 1, 16, 64), "bfloat16", device)
    k, v = (rl.zeros(2, 1, 3, 64, dtype="bfloat16", device=device) for _ in "kv")
    where = rl.tensor([0], device=device)
    with rl.count() as counted:
        rl.kv_append(k_cache, v_cache, k, v, where)
    written = 2 * 2 * 3 * 64 * 2
    assert (counted.ops, counted.launches, counted.flops) == (1, 1, 0)
    assert (counted.bytes_read, counted.bytes_written) == (written + 8, written)


def test_a_replay_writes_to_the_next_place(device):
    k_cache, v_cache = caches((1, 1, 4, 8), "float32", device)
    new, where = rl.ones(1, 1, 1, 8, device=device), rl.tensor([2], device=device)
    graph = rl.Graph(device=device)
    with graph.capture():
        rl.kv_append(k_cache, v_cache, new, new, where)
        where += 1
        new += 1
    for _ in range(3):
        graph.replay()
    assert k_cache[0, 0, :, 0].tolist() == [3.0, UNTOUCHED, 1.0, 2.0]
    assert v_cache.tolist() == k_cache.tolist()
    assert where.item() == 5


def test_a_position_below_0_writes_nothing(device, refused):
    k_cache, v_cache = caches((1, 1, 4, 8), "float32", device)
    new, where = rl.ones(1, 1, 1, 8, device=device), rl.tensor([-1], device=device)
    for variant in ("", "v0_reference"):
        with refused(ValueError, r"\[kv_append\] position: expected >= 0, got -1"):
            rl.kv_append(k_cache, v_cache, new, new, where, variant=variant)
    assert set(k_cache.flatten().tolist() + v_cache.flatten().tolist()) == {UNTOUCHED}


def test_what_does_not_fit_is_refused():
    cache, new, where = rl.zeros(1, 2, 4, 8), rl.zeros(1, 2, 1, 8), rl.tensor([0])

    def refused(pattern, *, k_cache=cache, v_cache=cache, k=new, v=new, position=where):
        with pytest.raises(ValueError, match=pattern):
            rl.kv_append(k_cache, v_cache, k, v, position)

    refused(r"k_cache: expected \(B=1, H_kv=2, T > 0, D_h=8\), got \(1, 1, 4, 8\)", k_cache=rl.zeros(1, 1, 4, 8))
    refused(r"k_cache: expected .* T > 0", k_cache=rl.zeros(1, 2, 0, 8))
    refused(r"v_cache: expected the shape of k_cache", v_cache=rl.zeros(1, 2, 5, 8))
    refused(r"v: expected the shape of k", v=rl.zeros(1, 2, 2, 8))
    refused(r"k: expected \(B, H_kv, L, D_h\)", k=rl.zeros(2, 1, 8))
    refused(r"position: expected one int64 number", position=rl.tensor([0.0]))
    refused(r"position: expected one int64 number", position=rl.tensor([0, 1]))
    refused(r"k_cache: expected adjacent elements", k_cache=rl.zeros(1, 2, 8, 4).transpose(2, 3))
    refused(r"destination: an expanded tensor", k_cache=rl.zeros(1, 2, 1, 8).expand(1, 2, 4, 8))
    refused("grad", k=rl.zeros(1, 2, 1, 8, requires_grad=True))


def test_the_tape_notices_that_a_saved_cache_was_written():
    x = rl.ones(1, 1, 2, 4, requires_grad=True)
    cache = rl.ones(1, 1, 2, 4)
    y = (x * cache).sum()
    with rl.no_grad():
        rl.kv_append(cache, rl.zeros(1, 1, 2, 4), rl.zeros(1, 1, 1, 4), rl.zeros(1, 1, 1, 4), rl.tensor([0]))
    with pytest.raises(ValueError, match="changed in place"):
        y.backward()


def test_a_compiled_function_runs_it_as_it_is_written(device):
    def appended(k, v, position):
        caches = [rl.zeros(1, 1, 4, 8, device=device) + x.sum() for x in (k, v)]
        rl.kv_append(*caches, k, v, position)
        return caches[0] + caches[1]

    k, v = rl.rand(1, 1, 1, 8, device=device), rl.rand(1, 1, 1, 8, device=device)
    position = rl.tensor([2], device=device)
    with pytest.warns(UserWarning, match="a write of some tokens of a cache cannot be recorded"):
        result = rl.compile(appended)(k, v, position)
    np.testing.assert_array_equal(result.cpu().numpy(), appended(k, v, position).cpu().numpy())
