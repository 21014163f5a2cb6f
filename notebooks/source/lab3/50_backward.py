# %% [markdown]
# # Part 5. Backward, by computing it again (12 points)
#
# The gradient needs the weights P, which were never kept. So compute them again, a tile at a time: one more product,
# and with the log-sum-exp no maximum and no sum, $P = e^{S - L}$. Then, with dO the gradient that comes from above,
#
# $$D_i = \sum_d O_{id}\, dO_{id}, \qquad dV = P^T dO, \qquad dP = dO\, V^T, \qquad dS = P \circ (dP - D),$$
#
# $$dQ = dS\, K / \sqrt d, \qquad dK = dS^T Q / \sqrt d.$$
#
# D is what softmax's rule (1.2) needs of a whole row, $\sum_j P_{ij}\, dP_{ij}$; that it can be had from O and dO, d
# numbers a row instead of L, is the one thing to see here. Convince yourself: put $dP_{ij} = \sum_d dO_{id} V_{jd}$ in.
#
# Write `flash_backward(ctx, dO)`, which returns dQ, dK, dV; `ctx.saved_tensors` holds what you saved, in the order in
# which you saved it. The rules are those of Part 3: rl operations, tiles, no tensor larger than a tile or an input,
# and when causal, no product for a tile that nobody sees.
#
# - `backward_over_forward`: the multiply-accumulates of a backward pass over those of a forward pass, when each product
#   of a tile is done once.

# %% nbgrader={"grade_id": "q5", "solution": true}
backward_over_forward = None  # a number
### BEGIN SOLUTION
backward_over_forward = 5 / 2  # S, dV, dP, dQ, dK against S and O
### END SOLUTION


def flash_backward(ctx, dO):
    """(dQ, dK, dV) from what FlashAttention2.forward left in ctx, and dO (B, L_q, d)."""
    ### BEGIN SOLUTION
    Q, K, V, O, L = ctx.saved_tensors
    (L_q, d), L_kv = Q.shape[1:], K.shape[1]
    like = {"dtype": Q.dtype, "device": Q.device}
    D = (O * dO).sum(-1, keepdim=True)
    dQ, dK, dV = rl.zeros(Q.shape, **like), rl.zeros(K.shape, **like), rl.zeros(V.shape, **like)
    for i in range(0, L_q, TILE_Q):
        q, do = Q[:, i : i + TILE_Q] * d**-0.5, dO[:, i : i + TILE_Q]
        lse, delta = L[:, i : i + TILE_Q].unsqueeze(-1), D[:, i : i + TILE_Q]
        rows = q.shape[1]
        dq, first = rl.zeros(q.shape, **like), i + L_kv - L_q
        for j in range(0, min(L_kv, first + rows) if ctx.is_causal else L_kv, TILE_KV):
            k, v = K[:, j : j + TILE_KV], V[:, j : j + TILE_KV]
            p = rl.exp(q @ k.mT - lse)
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


# %% nbgrader={"grade_id": "q5_test", "grade": true, "points": 6} rooflab={"needs": ["q3"]}
def check_gradients(B, L_q, L_kv, d, is_causal=False, dtype="float64", scale=1.0, tolerance=1e-8):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, dtype, seed=L_q + 7)
    dO = make_qkv(B, L_q, 1, d, dtype=dtype, seed=3)[0]
    seen = measure.gradients(flash_attention, q, k, v, is_causal, upstream=dO)
    what = f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    assert len(seen.gradients) == 3, "three gradients"
    exact = attention_gradients_float64(q, k, v, dO, is_causal)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert isinstance(ours, rl.Tensor), f"no gradient {name} came back"
        assert_close(ours, expected, rtol=tolerance, atol=tolerance, name=f"{name} {what}")


check_gradients(2, 100, 70, 16)
check_gradients(1, 128, 128, 32, dtype="float32", tolerance=1e-4)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 200), (200, 1), (130, 129), (17, 16)]:
    check_gradients(2, L_q, L_kv, 8)
for L_q, L_kv in [(1, 1), (1, 200), (37, 91), (130, 130), (65, 257)]:
    check_gradients(2, L_q, L_kv, 8, is_causal=True)
check_gradients(1, 90, 90, 8, is_causal=True, scale=6.0)
check_gradients(1, 90, 90, 8, is_causal=True, scale=30.0)  # e^(S - L) overflows above the diagonal
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_memory_test", "grade": true, "points": 6} rooflab={"needs": ["q3"]}
def check_backward_memory(B, L_q, L_kv, d, is_causal=False, most=7.0):
    q, k, v = make_qkv(B, L_q, L_kv, d)
    dO = make_qkv(B, L_q, 1, d, seed=3)[0]
    seen = measure.gradients(flash_attention, q, k, v, is_causal, upstream=dO)
    exact = attention_gradients_float64(q, k, v, dO, is_causal)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert_close(ours, expected, rtol=1e-3, atol=1e-3, name=name)
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved)
    assert kept <= 4 * B * (2 * L_q * d + 2 * L_kv * d + L_q), (
        f"{kept:,} bytes are kept: more than Q, K, V, O and L"
    )
    largest, allowed = seen.backward.largest_bytes, 4 * B * max(128 * 128, L_q * d, L_kv * d)
    assert largest <= allowed, (
        f"a tensor of {largest:,} bytes was allocated; tiles and inputs need no more than {allowed:,}"
    )
    held = 4 * B * (8 * 128 * 128 + 4 * (L_q + L_kv) * (d + 1))
    for done in (seen.forward, seen.backward):
        assert done.peak_bytes <= held, (
            f"{done.peak_bytes:,} bytes were held at once: eight tiles and a few rows would be {held:,}"
        )
    assert seen.backward.host_bytes <= 2**21, "memory was taken outside of rl: use rl tensors"
    assert not seen.backward.by_op.keys() & {"softmax", "attention", "attention_backward"}, (
        "the library did the work"
    )
    product = B * L_q * L_kv * d
    pairs = B * d * sum(min(L_kv, i + 1 + L_kv - L_q) for i in range(L_q)) if is_causal else product
    assert seen.backward.macs >= 5 * pairs, "five products for each visible pair, all with rl"
    assert seen.backward.macs <= most * product, (
        f"{seen.backward.macs:,} MACs; one product over all pairs takes {product:,}"
    )


assert backward_over_forward is not None and 1 <= backward_over_forward <= 10, "a number"
check_backward_memory(2, 512, 512, 16)
### BEGIN HIDDEN TESTS
assert is_near(backward_over_forward, 2.5)
check_backward_memory(1, 128, 8192, 2)
check_backward_memory(1, 8192, 128, 2)
check_backward_memory(2, 640, 640, 8, is_causal=True, most=4.3)
### END HIDDEN TESTS
