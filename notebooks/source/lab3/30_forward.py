# %% [markdown]
# # Part 3. FlashAttention-2, forward ({points q3})
#
# Now apply this to attention. Take a tile of queries, and go through the keys tile by tile. For each tile of keys,
# compute the tile of scores, update m, l and O as in 2.2, and discard the scores. After the last tile divide O by l.

# %%
rl.plots.plot_attention_tiles(L_q=256, L_kv=320, tile_q=64, tile_kv=64)

# %% [markdown]
# Besides Q, K, V and O, only one number for each query is kept for the gradient, its **log-sum-exp**
# $\mathrm{lse}_i = m_i + \log l_i$. This is enough, because any weight can be recomputed from it:
# $P_{ij} = e^{S_{ij} - \mathrm{lse}_i}$.
#
# Write the forward pass as an `rl.autograd.Function`. `forward(ctx, Q, K, V, is_causal=False)` returns O and saves what
# the backward pass needs with `ctx.save_for_backward(...)`. Plain values can be stored as attributes, such as
# `ctx.is_causal`. The `backward` is given. It calls a function that you write in Part 5.
#
# - Use `rl` operations only: `@`, `rl.exp`, `rl.maximum`, `.amax(-1, keepdim=True)`, `.sum`, slices such as
#   `Q[:, i : i + TILE_Q]` (views), and assignments to slices. Do not use `rl.softmax`, `rl.log_softmax`,
#   `rl.attention` or NumPy.
# - A tile has `TILE_Q` queries and `TILE_KV` keys. Both numbers are from 16 to 128, inclusive. The last tile may be
#   smaller. Do not pad it. Every length has to work, and L_q and L_kv may differ.
# - Q, K, V, O and lse have the same dtype, fp32 or fp64. Make your tensors with `dtype=Q.dtype, device=Q.device`.
# - No tensor may be larger than the largest of these: Q, K, V, and one 128 x 128 tile of scores for each entry of the
#   batch. At most eight such tiles may exist at once. The test measures allocations.
# - Do not compute a score twice. The test counts multiply-accumulates.
# - Save Q, K, V, O and lse, and nothing else. Exactly one saved tensor has the shape (B, L_q).
#
# Ignore `is_causal` for now. Part 4 comes back to this cell.
#
# <details><summary>Hint 1: shapes</summary>
#
# For a tile of queries keep m and l as (B, rows, 1) and o as (B, rows, d). Then they broadcast against the scores (B,
# rows, columns), and every entry of the batch has its own maximum.
# </details>
# <details><summary>Hint 2: the order of the loops</summary>
#
# The outer loop goes over the tiles of queries, and the inner loop over the tiles of keys. Before the inner loop m is
# -inf, l is 0 and o is 0. After it, write one tile of O and one of lse.
# </details>
#
# **In 16 bit** a kernel follows three rules. O and l add up thousands of small terms, so they and m stay in float32. P
# is cast to V's dtype before the product with V, so that the tensor cores can compute it. O is cast once, at the end.
# The next cell shows what happens to l without the first rule.

# %%
p = np.exp(np.random.default_rng(0).standard_normal(8192) - 4)
rows = []
for dtype in (np.float16, np.float32):
    total = dtype(0)
    for value in p.astype(np.float16):
        total = dtype(total + value)
    rows.append((np.dtype(dtype).name, f"{total:.3f}", f"{abs(total - p.sum()) / p.sum():.2%}"))
Table(("l is kept in", "sum of 8192 exponentials", "error"), rows)

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
        O, lse = rl.empty((B, L_q, d), **like), rl.empty((B, L_q), **like)
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
                previous, m = m, rl.maximum(m, s.amax(-1, keepdim=True))
                p, shrink = rl.exp(s - m), rl.exp(previous - m)
                l = shrink * l + p.sum(-1, keepdim=True)
                o = shrink * o + p @ v
            O[:, i : i + rows] = o / l
            lse[:, i : i + rows] = (m + rl.log(l)).squeeze(-1)
        ctx.save_for_backward(Q, K, V, O, lse)
        ctx.is_causal = is_causal
        return O
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dO):
        return (*flash_backward(ctx, dO), None)  # Part 5; is_causal has no gradient


def flash_attention(q, k, v, is_causal=False):
    """What users call: O (B, L_q, d), differentiable."""
    return FlashAttention2.apply(q, k, v, is_causal)


# %% nbgrader={"grade_id": "q3_test", "grade": true, "points": 3}
def check_flash(B, L_q, L_kv, d, dtype="float64", scale=1.0, tolerance=1e-9, keys=lambda k: k):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, dtype)
    k = keys(k)
    seen = measure.count(flash_attention, q, k, v)
    what = f"O at B = {B}, L_q = {L_q}, L_kv = {L_kv}, d = {d}, {dtype}, inputs times {scale:g}"
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert seen.value.dtype == q.dtype, f"{what}: expected dtype {q.dtype}, got {seen.value.dtype}"
    assert seen.value.device == q.device, f"{what}: expected a tensor on {q.device}, got one on {seen.value.device}"
    assert_close(seen.value, library_attention(q, k, v)[0], rtol=tolerance, atol=tolerance, name=what)
    assert_own_work(seen, what)


check_flash(4, 128, 128, 64, "float32", tolerance=1e-4)
check_flash(2, 100, 37, 16)
check_flash(1, 20, 150, 8)
check_flash(2, 1, 1, 8)
### BEGIN HIDDEN TESTS
drawn = measure.draw(66, 100), measure.draw(130, 250)
for L_q, L_kv in [(1, 1), (1, 300), (300, 1), (129, 127), (17, 16), (257, 65), drawn]:
    check_flash(2, L_q, L_kv, measure.draw(4, 16))
check_flash(3, measure.draw(20, 60), measure.draw(130, 190), 128, "float32", tolerance=1e-4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_maximum_test", "grade": true, "points": 3}
def rising(factor):
    """Each component of the keys in ascending order: most queries' scores rise along the keys, or fall."""
    return lambda k: rl.tensor(np.sort(to_float64(k), axis=1) * factor, device=device)


check_flash(3, 70, 90, 8, scale=40.0)  # every entry of the batch needs a maximum of its own
check_flash(2, 30, 200, 8, keys=rising(500))
for scale in (300.0, 1e6):  # some queries have one score, far below 0
    check_flash(2, 20, 1, 8, scale=scale)
### BEGIN HIDDEN TESTS
check_flash(1, 130, 130, 32, scale=12.0)
check_flash(4, measure.draw(130, 150), measure.draw(130, 150), 8, scale=30.0)
check_flash(1, 40, 1, 8, scale=30.0)
for factor in (5, 500):
    check_flash(2, 40, measure.draw(300, 400), 8, keys=rising(factor))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_saved_test", "grade": true, "points": 4}
def check_saved(B, L_q, L_kv, d, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64")
    seen = measure.saved(FlashAttention2, q, k, v, False)
    O, lse = library_attention(q, k, v)
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name="O")
    assert_own_work(seen.forward, f"L_q = {L_q}, L_kv = {L_kv}")
    shapes = [tuple(tensor.shape) for tensor in seen.tensors]
    rows = [tensor for tensor in seen.tensors if tuple(tensor.shape) == (B, L_q)]
    assert len(rows) == 1, f"exactly one saved tensor has the shape (B, L_q) = ({B}, {L_q}); saved are {shapes}"
    assert_close(rows[0], lse, rtol=1e-9, atol=1e-9, name="the saved log-sum-exp")
    expected = [(B, L_q), (B, L_q, d), (B, L_kv, d), (B, L_kv, d), (B, L_q, d)]
    assert sorted(shapes) == sorted(expected), f"save lse, Q, K, V and O; saved are {shapes}"
    held = 8 * B * (2 * L_q * d + 2 * L_q)
    said = (
        f"new tensors hold {seen.held_bytes} bytes, more than {held}: keep O and lse, and no other, not in ctx either"
    )
    assert seen.held_bytes <= held, said
    saved = [to_float64(tensor) for tensor in seen.tensors]
    for name, exact in {"Q": q, "K": k, "V": v, "O": O}.items():
        same = [np.allclose(x, to_float64(exact)) for x in saved if x.shape == tuple(exact.shape)]
        assert any(same), f"{name} is not among the saved tensors"


check_saved(3, 40, 140, 24)
check_saved(3, 90, 30, 4, scale=40.0)
### BEGIN HIDDEN TESTS
check_saved(2, measure.draw(130, 180), measure.draw(66, 126), measure.draw(4, 16))
check_saved(1, 20, 300, 4, scale=12.0)
check_saved(2, 60, 70, 4, scale=30.0)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_memory_test", "grade": true, "points": 2}
def forward_in_tiles(B, L_q, L_kv, d):
    q, k, v = make_qkv(B, L_q, L_kv, d)
    seen = measure.saved(FlashAttention2, q, k, v, False)
    assert_close(seen.value, library_attention(q, k, v)[0], rtol=1e-3, atol=1e-4, name="O")
    forward, allowed = seen.forward, 4 * B * max(128 * 128, L_q * d, L_kv * d)
    largest, peak = forward.largest_bytes, forward.peak_bytes
    said = f"largest tensor: expected at most {allowed:,} bytes (a tile or an input), got {largest:,}"
    assert largest <= allowed, said
    held = 4 * B * (8 * 128 * 128 + 4 * (L_q + L_kv) * (d + 1))
    assert peak <= held, f"memory held at once: expected at most {held:,} bytes (eight tiles), got {peak:,}"
    host = forward.host_bytes
    assert host <= 2**21, f"{host:,} bytes were allocated outside of rl: work with rl tensors"
    return forward


def check_memory(*sizes):
    forward_in_tiles(*sizes)


check_memory(2, 512, 512, 16)
check_memory(1, 100, 3000, 2)
### BEGIN HIDDEN TESTS
check_memory(1, 128, measure.draw(4000, 4100), 2)
check_memory(1, 128, 8192, 2)
check_memory(1, 4096, 128, 2)
check_memory(3, measure.draw(350, 400), measure.draw(600, 650), 8)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_work_test", "grade": true, "points": 2}
def check_work(B, L_q, L_kv, d):
    forward, macs = forward_in_tiles(B, L_q, L_kv, d), 2 * B * L_q * L_kv * d
    assert forward.macs >= macs, f"expected {macs:,} MACs, got {forward.macs:,}: compute all products with rl"
    assert forward.macs <= 1.3 * macs, f"expected {macs:,} MACs, got {forward.macs:,}: compute no score twice"
    tiles = B * -(-L_q // 16) * -(-L_kv // 16)
    said = f"{forward.by_op['matmul']} products: use tiles of at least 16 x 16 scores"
    assert forward.by_op["matmul"] <= 2 * tiles, said


for size in (TILE_Q, TILE_KV):
    assert is_count(size) and 16 <= size <= 128, "TILE_Q and TILE_KV have to be ints between 16 and 128"
check_work(2, 512, 512, 16)
check_work(1, 100, 300, 4)
### BEGIN HIDDEN TESTS
check_work(1, 128, measure.draw(4000, 4100), 2)
check_work(3, measure.draw(350, 400), measure.draw(600, 650), 8)
### END HIDDEN TESTS

# %% [markdown]
# Here is the memory of one forward pass over time, for the textbook's version and for yours, with the same memory axis.
# In the first plot, each large step up is another matrix of L x L scores. In the second plot no such matrix exists.
# What is left is O, lse and a few tiles.

# %%
q, k, v = make_qkv(4, 1024, 1024, 64)
timelines = {}
for fn in (naive_attention, flash_attention):
    with rl.memory.record() as timelines[fn.__name__]:
        fn(q, k, v)
rl.plots.plot_memory_timelines(timelines, title="Memory of one forward pass, B = 4, L = 1024, d = 64")
