# %% [markdown]
# # Part 3. FlashAttention-2, forward (14 points)
#
# Take a tile of queries. Walk over the keys tile by tile, and for each compute the tile of scores, update m, l and O as
# in 2.2, forget the scores. After the last tile, divide O by l. The only thing kept for the gradient beside Q, K, V and
# O is the **log-sum-exp** of each query, L = m + log l, for with it any weight can be had again at any time:
# $P_{ij} = e^{S_{ij} - L_i}$.
#
# Write it as an `rl.autograd.Function`: `forward(ctx, Q, K, V, is_causal=False)` returns O, leaves what the backward
# pass needs with `ctx.save_for_backward(...)`, and may note plain values as attributes, say `ctx.is_causal`. Its
# `backward` is given; it calls a function that you write in Part 5.
#
# - Everything is done with `rl` operations: `@`, `rl.exp`, `rl.maximum`, `.max(-1, keepdim=True)`, `.sum`, slices such
#   as `Q[:, i : i + TILE_Q]` (views) and assignments to slices. No `rl.softmax`, no `rl.attention`, no NumPy.
# - Tiles are `TILE_Q` queries by `TILE_KV` keys, both between 16 and 128; a tile at the end is cut, not padded. Any
#   length must work, and L_q need not be L_kv.
# - Q, K, V, O and L share one dtype, fp32 or fp64; make your tensors with `dtype=Q.dtype, device=Q.device`.
# - No tensor may be larger than a tile of scores of 128 x 128 (for each of the B) or than Q, K or V, and no more than
#   eight such tiles may be held at once: allocations are measured. Nor may you compute a score twice:
#   multiply-accumulates are counted.
# - Save Q, K, V, O and L and nothing else: exactly one saved tensor has the shape (B, L_q).
#
# Leave `is_causal` aside for now; Part 4 comes back to this cell.

# %% nbgrader={"grade_id": "q3", "solution": true}
TILE_Q = 64
TILE_KV = 64


class FlashAttention2(rl.autograd.Function):
    """Attention of Q (B, L_q, d) over K and V (B, L_kv, d), in tiles: O (B, L_q, d)."""

    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        ### BEGIN SOLUTION
        (B, L_q, d), L_kv = Q.shape, K.shape[1]
        like = {"dtype": Q.dtype, "device": Q.device}
        O, L = rl.empty((B, L_q, d), **like), rl.empty((B, L_q), **like)
        for i in range(0, L_q, TILE_Q):
            q = Q[:, i : i + TILE_Q] * d**-0.5
            rows = q.shape[1]
            m = rl.full((B, rows, 1), float("-inf"), **like)
            l, o = rl.zeros((B, rows, 1), **like), rl.zeros((B, rows, d), **like)
            first = i + L_kv - L_q  # the last key that the tile's first query sees when causal
            for j in range(0, min(L_kv, first + rows) if is_causal else L_kv, TILE_KV):
                k, v = K[:, j : j + TILE_KV], V[:, j : j + TILE_KV]
                s = q @ k.mT
                if is_causal and j + k.shape[1] - 1 > first:
                    query = rl.arange(first, first + rows, device=Q.device).unsqueeze(1)
                    key = rl.arange(j, j + k.shape[1], device=Q.device).unsqueeze(0)
                    s = rl.where(key <= query, s, float("-inf"))
                previous, m = m, rl.maximum(m, s.max(-1, keepdim=True))
                p, shrink = rl.exp(s - m), rl.exp(previous - m)
                l = shrink * l + p.sum(-1, keepdim=True)
                o = shrink * o + p @ v
            O[:, i : i + rows] = o / l
            L[:, i : i + rows] = (m + rl.log(l)).squeeze(-1)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dO):
        return (*flash_backward(ctx, dO), None)  # Part 5; is_causal has no gradient


def flash_attention(q, k, v, is_causal=False):
    """What users call: O (B, L_q, d), differentiable."""
    return FlashAttention2.apply(q, k, v, is_causal)


# %% nbgrader={"grade_id": "q3_test", "grade": true, "points": 5}
def check_flash(B, L_q, L_kv, d, dtype="float64", scale=1.0, tolerance=1e-9):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, dtype, seed=L_q + 1000 * L_kv)
    seen = measure.count(flash_attention, q, k, v)
    what = f"O at B = {B}, L_q = {L_q}, L_kv = {L_kv}, d = {d}, {dtype}"
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert seen.value.dtype == q.dtype, f"the inputs are {q.dtype}, O is {seen.value.dtype}"
    assert seen.value.device == q.device, (
        f"the inputs are on {q.device}, O is on {seen.value.device}"
    )
    assert_close(
        seen.value, attention_float64(q, k, v)[0], rtol=tolerance, atol=tolerance, name=what
    )
    assert not seen.by_op.keys() & {"softmax", "attention"}, (
        "the library's softmax or attention did the work"
    )


check_flash(4, 128, 128, 64, "float32", tolerance=1e-4)
check_flash(2, 100, 37, 16)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 300), (300, 1), (129, 127), (64, 200), (17, 16), (257, 65)]:
    check_flash(2, L_q, L_kv, 8)
check_flash(1, 130, 130, 32, scale=12.0)
check_flash(1, 40, 1, 8, scale=30.0)  # scores below -745, where e^x is 0
check_flash(3, 33, 170, 128, "float32", tolerance=1e-4)
q, k, v = make_qkv(1, 40, 400, 8, dtype="float64", seed=5)
for scale in (5, 500):  # scores rise along the keys or fall, by the sign of the query's sum
    sorted_k = rl.tensor(np.sort(to_float64(k), axis=1) * scale, device=device)
    assert_close(
        flash_attention(q, sorted_k, v),
        attention_float64(q, sorted_k, v)[0],
        rtol=1e-9,
        atol=1e-9,
        name=f"O where scores rise or fall along the keys, times {scale}",
    )
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_saved_test", "grade": true, "points": 4}
def check_saved(B, L_q, L_kv, d, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64", seed=L_q)
    seen = measure.saved(FlashAttention2, q, k, v, False)
    O, L = attention_float64(q, k, v)
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name="O")
    shapes = [tuple(tensor.shape) for tensor in seen.tensors]
    rows = [tensor for tensor in seen.tensors if tuple(tensor.shape) == (B, L_q)]
    assert len(rows) == 1, (
        f"exactly one saved tensor of shape (B, L_q) = ({B}, {L_q}); saved are {shapes}"
    )
    assert_close(rows[0], L, rtol=1e-9, atol=1e-9, name="the saved log-sum-exp")
    expected = [(B, L_q), (B, L_q, d), (B, L_kv, d), (B, L_kv, d), (B, L_q, d)]
    assert sorted(shapes) == sorted(expected), f"save L, Q, K, V and O; saved are {shapes}"
    saved = [to_float64(tensor) for tensor in seen.tensors]
    for name, exact in {"Q": q, "K": k, "V": v, "O": O}.items():
        same = [np.allclose(x, to_float64(exact)) for x in saved if x.shape == tuple(exact.shape)]
        assert any(same), f"{name} is not among the saved tensors"


check_saved(3, 40, 56, 24)
### BEGIN HIDDEN TESTS
check_saved(2, 150, 131, 8)
check_saved(1, 20, 300, 4, scale=12.0)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_memory_test", "grade": true, "points": 5}
def check_memory(B, L_q, L_kv, d):
    q, k, v = make_qkv(B, L_q, L_kv, d)
    seen = measure.saved(FlashAttention2, q, k, v, False)
    assert_close(seen.value, attention_float64(q, k, v)[0], rtol=1e-3, atol=1e-4, name="O")
    forward, macs = seen.forward, 2 * B * L_q * L_kv * d
    allowed = 4 * B * max(128 * 128, L_q * d, L_kv * d)
    assert forward.largest_bytes <= allowed, (
        f"a tensor of {forward.largest_bytes:,} bytes was allocated; tiles and inputs need no more than {allowed:,}"
    )
    held = 4 * B * (8 * 128 * 128 + 4 * (L_q + L_kv) * (d + 1))
    assert forward.peak_bytes <= held, (
        f"{forward.peak_bytes:,} bytes were held at once: eight tiles and a few rows would be {held:,}"
    )
    assert forward.host_bytes <= 2**21, (
        f"{forward.host_bytes:,} bytes were taken outside of rl: work with rl tensors"
    )
    assert forward.macs >= macs, (
        f"rl counted {forward.macs:,} MACs of {macs:,}: the rest was not done with rl's products"
    )
    assert forward.macs <= 1.3 * macs, (
        f"rl counted {forward.macs:,} MACs, and {macs:,} will do: is a score computed twice?"
    )
    tiles = B * -(-L_q // 16) * -(-L_kv // 16)
    assert forward.by_op["matmul"] <= 2 * tiles, "tiles of less than 16 x 16"


for size in (TILE_Q, TILE_KV):
    assert is_count(size) and 16 <= size <= 128, "TILE_Q and TILE_KV are between 16 and 128"
check_memory(2, 512, 512, 16)
### BEGIN HIDDEN TESTS
check_memory(1, 128, 4096, 2)
check_memory(1, 128, 8192, 2)
check_memory(1, 4096, 128, 2)
check_memory(3, 384, 640, 8)
### END HIDDEN TESTS

# %% [markdown]
# Watch what is held while your forward pass runs, and the textbook's beside it. One is a staircase of whole matrices,
# the other a flat line with a ripple of tiles.

# %%
from IPython.display import display

q, k, v = make_qkv(4, 1024, 1024, 64)
for fn in (naive_attention, flash_attention):
    with rl.memory.record() as timeline:
        fn(q, k, v)
    title = f"{fn.__name__}, forward, L = 1024"
    display(rl.plots.plot_memory_timeline(timeline, title=title))
