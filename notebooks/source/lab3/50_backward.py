# %% [markdown]
# # Part 5. Backward, by recomputing ({points q5})
#
# The gradient needs the weights P, which were not kept. So recompute them from Q and K, one tile at a time. With
# the log-sum-exp this takes no maximum and no sum: $P = e^{S - \mathrm{lse}}$. The rest follows from dO, the gradient
# that arrives from above:
#
# $$D_i = \sum_c O_{ic}\, dO_{ic}, \qquad dV = P^T dO, \qquad dP = dO\, V^T, \qquad dS = P \circ (dP - D),$$
#
# $$dQ = dS\, K / \sqrt d, \qquad dK = dS^T Q / \sqrt d.$$
#
# In 1.4 the rule of softmax needed a sum over a whole row, $\sum_j P_{ij}\, dP_{ij}$. D is that sum. It can be computed
# from one row of O and one row of dO, so no row of weights is needed. To see why, insert
# $dP_{ij} = \sum_c dO_{ic} V_{jc}$.
#
# Write `flash_backward(ctx, dO)`. It returns dQ, dK, dV. `ctx.saved_tensors` holds what you saved, in the same order.
#
# - The rules of Part 3 hold: rl operations, tiles of 16 to 128 queries and keys, and no tensor larger than the largest
#   of Q, K, V and a 128 x 128 tile.
# - When causal, compute no product for a tile in which no query sees any key.
# - Compute no product twice for the same tile.
# - Do not write into dO, or into what you saved.
#
# Then predict `backward_over_forward`: the multiply-accumulates of such a backward pass, divided by those of a forward
# pass.
#
# <details><summary>Hint 1: where to add up</summary>
#
# A tile of dQ collects from all tiles of keys. A tile of dK and dV collects from all tiles of queries. With the queries
# in the outer loop, dQ can be a local sum, and dK and dV are updated in slices.
# </details>
# <details><summary>Hint 2: hidden pairs</summary>
#
# Above the diagonal $e^{S - \mathrm{lse}}$ can overflow. Replace the value with `rl.where` there. Do not multiply it by
# a mask, because infinity times zero is NaN.
# </details>


# %% nbgrader={"grade_id": "q5", "solution": true}
def flash_backward(ctx, dO):
    """(dQ, dK, dV) from what FlashAttention2.forward left in ctx, and dO (B, L_q, d)."""
    ### BEGIN SOLUTION
    Q, K, V, O, lse = ctx.saved_tensors
    (L_q, d), L_kv = Q.shape[1:], K.shape[1]
    like = {"dtype": Q.dtype, "device": Q.device}
    D = (O * dO).sum(-1, keepdim=True)
    dQ, dK, dV = rl.zeros(Q.shape, **like), rl.zeros(K.shape, **like), rl.zeros(V.shape, **like)
    for i in range(0, L_q, TILE_Q):
        q, do = Q[:, i : i + TILE_Q] * d**-0.5, dO[:, i : i + TILE_Q]
        row_lse, delta = lse[:, i : i + TILE_Q].unsqueeze(-1), D[:, i : i + TILE_Q]
        rows = q.shape[1]
        dq, first = rl.zeros(q.shape, **like), i + L_kv - L_q
        for j in range(0, min(L_kv, first + rows) if ctx.is_causal else L_kv, TILE_KV):
            k, v = K[:, j : j + TILE_KV], V[:, j : j + TILE_KV]
            p = rl.exp(q @ k.mT - row_lse)
            if ctx.is_causal and j + k.shape[1] - 1 > first:
                query = rl.arange(first, first + rows, device=Q.device).unsqueeze(1)
                key = rl.arange(j, j + k.shape[1], device=Q.device).unsqueeze(0)
                p = rl.where(key <= query, p, 0.0)
            ds = p * (do @ v.mT - delta)
            dq = dq + ds @ k
            dK[:, j : j + TILE_KV] = dK[:, j : j + TILE_KV] + ds.mT @ q
            dV[:, j : j + TILE_KV] = dV[:, j : j + TILE_KV] + p.mT @ do
        dQ[:, i : i + rows] = dq * d**-0.5
    return dQ, dK, dV
    ### END SOLUTION


backward_over_forward = None  # a number
### BEGIN SOLUTION
backward_over_forward = 5 / 2  # S, dV, dP, dQ, dK against S and O
### END SOLUTION


# %% nbgrader={"grade_id": "q5_test", "grade": true, "points": 3} rooflab={"needs": ["q3"]}
def check_gradients(B, L_q, L_kv, d, is_causal=False, dtype="float64", scale=1.0, tolerance=1e-8):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, dtype)
    dO = make_qkv(B, L_q, 1, d, dtype=dtype)[0]
    seen = measure.gradients(flash_attention, q, k, v, is_causal, upstream=dO)
    what = f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}, inputs times {scale:g}"
    assert len(seen.gradients) == 3, f"{what}: expected the gradients dQ, dK, dV, got {len(seen.gradients)} gradients"
    for counted in (seen.forward, seen.backward):
        assert_own_work(counted, what)
    exact = library_gradients(q, k, v, dO, is_causal)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert isinstance(ours, rl.Tensor), f"{name} {what} is missing"
        assert_close(ours, expected, rtol=tolerance, atol=tolerance, name=f"{name} {what}")


check_gradients(2, 100, 70, 16)
check_gradients(1, 128, 128, 32, dtype="float32", tolerance=1e-4)
check_gradients(2, 1, 9, 8)
check_gradients(3, 80, 90, 8, scale=40.0)
check_unchanged(flash_attention, 20, 30)
### BEGIN HIDDEN TESTS
drawn = measure.draw(66, 125), measure.draw(130, 200)
for L_q, L_kv in [(1, 1), (1, 200), (200, 1), (130, 129), (17, 16), drawn]:
    check_gradients(2, L_q, L_kv, measure.draw(4, 16))
check_gradients(3, 90, 90, 8, scale=30.0)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_causal_test", "grade": true, "points": 3} rooflab={"needs": ["q3"]}
check_gradients(2, 100, 100, 8, is_causal=True)
check_gradients(2, 20, 150, 8, is_causal=True)
check_gradients(3, 80, 80, 8, is_causal=True, scale=40.0)  # e^(S - lse) overflows above the diagonal
check_far_apart(flash_attention, 6, 6)
check_unchanged(flash_attention, 20, 30, True)
### BEGIN HIDDEN TESTS
drawn = measure.draw(66, 125), measure.draw(130, 257)
for L_q, L_kv in [(1, 1), (1, 200), (37, 91), (130, 130), drawn]:
    check_gradients(2, L_q, L_kv, measure.draw(4, 16), is_causal=True)
check_gradients(1, 90, 90, 8, is_causal=True, scale=6.0)
check_gradients(3, 90, 90, 8, is_causal=True, scale=30.0)
check_far_apart(flash_attention, measure.draw(130, 150), measure.draw(151, 190))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_memory_test", "grade": true, "points": 3} rooflab={"needs": ["q3"], "seconds": 120}
def backward_pass(B, L_q, L_kv, d, is_causal=False):
    q, k, v = make_qkv(B, L_q, L_kv, d)
    dO = make_qkv(B, L_q, 1, d)[0]
    seen = measure.gradients(flash_attention, q, k, v, is_causal, upstream=dO)
    exact = library_gradients(q, k, v, dO, is_causal)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert_close(ours, expected, rtol=1e-3, atol=1e-3, name=name)
    return seen


def check_backward_memory(*sizes):
    (B, L_q, L_kv, d), seen = sizes, backward_pass(*sizes)
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved)
    assert kept <= 4 * B * (2 * L_q * d + 2 * L_kv * d + L_q), f"{kept:,} bytes are saved, more than Q, K, V, O and lse"
    largest, allowed = seen.backward.largest_bytes, 4 * B * max(128 * 128, L_q * d, L_kv * d)
    said = f"largest tensor: expected at most {allowed:,} bytes (a tile or an input), got {largest:,}"
    assert largest <= allowed, said
    held = 4 * B * (8 * 128 * 128 + 4 * (L_q + L_kv) * (d + 1))
    peak = max(seen.forward.peak_bytes, seen.backward.peak_bytes)
    assert peak <= held, f"memory held at once: expected at most {held:,} bytes (eight tiles), got {peak:,}"
    assert seen.backward.host_bytes <= 2**21, "memory was allocated outside of rl: use rl tensors"
    assert_own_work(seen.backward, f"the backward pass of {sizes}")


check_backward_memory(2, 512, 512, 16)
check_backward_memory(1, 100, 3000, 2)
### BEGIN HIDDEN TESTS
check_backward_memory(1, 128, measure.draw(2000, 2100), 2)
check_backward_memory(1, measure.draw(2000, 2100), 128, 2)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_work_test", "grade": true, "points": 2} rooflab={"needs": ["q3"]}
def check_backward_work(B, L_q, L_kv, d, is_causal, low, high):
    """Whatever the tiles are, the backward pass computes `low` to `high` scores, the same in each of its products."""
    macs, what = backward_pass(B, L_q, L_kv, d, is_causal).backward.macs, f"L_q = {L_q}, L_kv = {L_kv}, {is_causal = }"
    n = rl.cost.of("attention_backward", *[(1, 1, 1, 1)] * 4).macs  # of one query, one key and d = 1
    said = f"{what}: expected {n * B * d * low:,} to {n * B * d * high:,} MACs, got {macs:,}"
    hint = "no product twice for the same tile, and none for a tile in which no query sees any key"
    assert n * B * d * low <= macs <= n * B * d * high, f"{said}; {hint}"


check_backward_work(2, 512, 512, 16, False, 512 * 512, 512 * 512)
check_backward_work(1, 300, 300, 4, True, 47_376, 84_112)
check_backward_work(2, 200, 330, 4, True, 47_556, 66_000)


### BEGIN HIDDEN TESTS
def tile_counts(L_q, L_kv, is_causal):
    """For every size of tiles: how many have a visible pair, and their scores. Tiles are whole, or cut at the last key
    that is visible, or begin at the first query that sees one of their keys.
    """
    found, sizes = set(), range(16, 129)
    for tile_q in sizes:
        top = np.arange(0, L_q, tile_q)
        bottom = np.minimum(top + tile_q, L_q)
        last = bottom - 1 + L_kv - L_q if is_causal else np.full(len(top), L_kv - 1)
        for tile_kv in sizes:
            tiles = np.minimum(last // tile_kv + 1, -(-L_kv // tile_kv))
            scores = ((bottom - top) * np.minimum(tiles * tile_kv, L_kv)).sum()
            found |= {(int(tiles.sum()), int(each)) for each in (scores, ((bottom - top) * (last + 1)).sum())}
    for tile_kv in sizes:
        left = np.arange(0, L_kv, tile_kv)
        rows = L_q - is_causal * np.maximum(0, left - (L_kv - L_q))
        scores = (rows * np.minimum(tile_kv, L_kv - left)).sum()
        found |= {(int((-(-rows // tile_q)).sum()), int(scores)) for tile_q in sizes}
    return found


def check_tiles(B, L_q, L_kv, d, is_causal):
    backward = backward_pass(B, L_q, L_kv, d, is_causal).backward
    scores, products = backward.macs / (B * d), backward.by_op["matmul"]
    what = f"L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}: {backward.macs:,} MACs in {products} products"
    counts = tile_counts(L_q, L_kv, is_causal)
    n = rl.cost.of("attention_backward", *[(1, 1, 1, 1)] * 4).macs
    once = {(n * tiles * each, n * total) for tiles, total in counts for each in {1, B}}
    hint = "no product twice for the same tile, and none for a tile in which no query sees any key"
    assert (products, scores) in once, f"{what}; {hint}"


check_tiles(2, 512, 512, 16, False)
check_tiles(1, 300, 300, 4, True)
check_tiles(2, 200, 330, 4, True)
check_tiles(1, 300, 450, 4, False)
check_tiles(2, 640, 640, 8, True)
check_tiles(1, measure.draw(300, 350), measure.draw(400, 550), 4, True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_ratio_test", "grade": true, "points": 1}
said = f"backward_over_forward has to be a number from 1 to 10, got {backward_over_forward!r}"
assert is_number(backward_over_forward) and 1 <= backward_over_forward <= 10, said
### BEGIN HIDDEN TESTS
assert is_near(backward_over_forward, 2.5), "backward_over_forward: count the products of a tile in both passes"
### END HIDDEN TESTS

# %% [markdown]
# Compare your prediction with what the runtime counts in your own two passes:

# %%
q, k, v = (x.requires_grad_() for x in make_qkv(2, 512, 512, 64))
with rl.count() as forward:
    o = flash_attention(q, k, v)
with rl.count() as backward:
    o.backward(rl.ones(o.shape, device=device))
rows = [
    (name, f"{c.by_op['matmul'].ops:,}", f"{c.macs:,}")
    for name, c in {"forward": forward, "backward": backward}.items()
]
display(Table(("pass", "products", "MACs"), rows))
print(f"backward over forward: {backward.macs / forward.macs:.3f} counted, {backward_over_forward} predicted")
