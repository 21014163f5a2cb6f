# %% [markdown]
# # Part 4. Causal: skip the tiles that no query sees ({points q4})
#
# With a causal mask there are three kinds of tiles. In the first kind every query sees every key. In the second kind no
# query sees any key. The diagonal runs through the third kind. Only the third kind needs a mask, and the second kind
# need not be computed *at all*. The textbook's version computes every score and throws the hidden ones away.

# %%
rl.plots.plot_attention_tiles(L_q=256, L_kv=320, tile_q=64, tile_kv=64, is_causal=True)

# %% [markdown]
# **Go back to `FlashAttention2.forward`** and make `is_causal=True` work. Here L_q ≤ L_kv, and query i sees the keys
# j ≤ i + L_kv - L_q. For each tile of queries, end the loop over the keys after the last tile in which one of these
# queries sees a key. Compute all tiles up to there whole, and mask those that the diagonal runs through.
#
# How much work does that save? Predict it:
#
# - `scores_computed(L_q, L_kv, tile_q, tile_kv)`: how many scores causal FlashAttention computes for one entry of the
#   batch, with tiles of tile_q queries and tile_kv keys. The last tiles may be smaller. A test compares your prediction
#   for your tiles with the multiply-accumulates that the runtime counts in *your* forward pass. Each score takes d of
#   them, and its product with V takes another d.
# - `causal_share_limit`: the share of all L² scores that is computed at L_q = L_kv = L, when L grows and the tiles stay
#   the same.


# %% nbgrader={"grade_id": "q4", "solution": true}
def scores_computed(L_q, L_kv, tile_q, tile_kv):
    """Scores that causal FlashAttention computes for one of the B, invisible tiles left out: an int."""
    ### BEGIN SOLUTION
    total = 0
    for i in range(0, L_q, tile_q):
        rows = min(tile_q, L_q - i)
        seen = i + rows + L_kv - L_q  # keys that the tile's last query sees
        tiles = -(-seen // tile_kv)
        total += rows * min(L_kv, tiles * tile_kv)
    return total
    ### END SOLUTION


causal_share_limit = None  # a number between 0 and 1
### BEGIN SOLUTION
causal_share_limit = 0.5
### END SOLUTION


# %% nbgrader={"grade_id": "q4_test", "grade": true, "points": 2}
def check_scores(*case, expected):
    got = scores_computed(*case)
    assert is_count(got), f"scores_computed{case} has to return an int, not {got!r}"
    said = f"scores_computed{case}: expected {expected}, got {got}; draw the tiles and add up the visible ones"
    assert got == expected, said


check_scores(128, 128, 64, 64, expected=3 * 64 * 64)  # three of four tiles
check_scores(64, 128, 64, 64, expected=2 * 64 * 64)  # the first query sees 65 keys
check_scores(20, 20, 16, 16, expected=16 * 16 + 4 * 20)  # tiles at the ends are smaller
check_scores(48, 100, 16, 64, expected=16 * (100 + 100 + 100))
### BEGIN HIDDEN TESTS
for L_q, L_kv, tile_q, tile_kv in [
    (256, 256, 64, 64),
    (256, 256, 16, 128),
    (256, 256, 128, 16),
    (1, 1, 16, 16),
    (1, 300, 64, 64),
    (37, 91, 16, 32),
    (130, 130, 128, 128),
    (1024, 1024, 16, 16),
    (measure.draw(30, 200), measure.draw(201, 400), measure.draw(16, 50), measure.draw(51, 128)),
    (measure.draw(30, 200), measure.draw(201, 400), measure.draw(51, 128), measure.draw(16, 50)),
]:
    computed = 0
    for i in range(0, L_q, tile_q):
        for j in range(0, L_kv, tile_kv):
            bottom, right = min(i + tile_q, L_q), min(j + tile_kv, L_kv)
            if j <= bottom - 1 + L_kv - L_q:
                computed += (bottom - i) * (right - j)
    check_scores(L_q, L_kv, tile_q, tile_kv, expected=computed)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_share_test", "grade": true, "points": 1}
said = f"causal_share_limit has to lie between 0 and 1, got {causal_share_limit!r}"
assert is_number(causal_share_limit) and 0 <= causal_share_limit <= 1, said
### BEGIN HIDDEN TESTS
said = "causal_share_limit: divide scores_computed(L, L, 64, 64) by L², for longer and longer L"
assert is_near(causal_share_limit, 0.5, 0.01), said
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_causal_test", "grade": true, "points": 3} rooflab={"needs": ["q3"]}
def causal_pass(B, L_q, L_kv, d, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64")
    seen = measure.saved(FlashAttention2, q, k, v, True)
    O, lse = library_attention(q, k, v, is_causal=True)
    what = f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = True, inputs times {scale:g}"
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name=f"O {what}")
    rows = [tensor for tensor in seen.tensors if tuple(tensor.shape) == (B, L_q)]
    assert len(rows) == 1, f"expected one saved tensor of shape {(B, L_q)}, lse, got {len(rows)}"
    assert_close(rows[0], lse, rtol=1e-9, atol=1e-9, name=f"the saved log-sum-exp {what}")
    assert_own_work(seen.forward, what)
    return seen.forward


def check_causal(*sizes, scale=1.0):
    causal_pass(*sizes, scale)


def check_hidden(L_q, L_kv):
    (q, k, v, _), (O, *_) = far_apart(L_q, L_kv)
    seen = measure.saved(FlashAttention2, *(rl.tensor(array, device=device) for array in (q, k, v)), True)
    assert_close(
        seen.value, O, rtol=1e-9, atol=1e-9, name="O where scores are millions apart (are hidden scores -inf?)"
    )


check_causal(2, 256, 256, 16)
check_causal(2, 30, 100, 8)  # the first query sees 71 keys
check_causal(3, 140, 170, 8, scale=40.0)
check_causal(2, 1, 5, 8)
check_hidden(6, 6)
### BEGIN HIDDEN TESTS
drawn = measure.draw(66, 125), measure.draw(200, 400)
for L_q, L_kv in [(1, 1), (1, 300), (37, 91), (200, 200), (129, 129), (512, 512), drawn]:
    check_causal(2, L_q, L_kv, 8)
check_causal(1, 150, 150, 8, scale=12.0)
check_causal(3, 150, 150, 8, scale=30.0)
check_hidden(measure.draw(130, 150), measure.draw(151, 190))
q, k, v = make_qkv(1, 200, 200, 8, dtype="float64")
v, later = to_float64(v), measure.draw(100, 180)
v[:, later:] = 1e30  # what no earlier query may see
O = to_float64(flash_attention(q, k, rl.tensor(v, device=device), True))
assert np.isfinite(O).all() and np.abs(O[:, :later]).max() < 1e3, "a query sees values of later tokens"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_work_test", "grade": true, "points": 2} rooflab={"needs": ["q3"]}
def causal_work(B, L_q, L_kv, d):
    forward = causal_pass(B, L_q, L_kv, d)
    for size in (TILE_Q, TILE_KV):
        assert is_count(size) and 16 <= size <= 128, "TILE_Q and TILE_KV have to be ints between 16 and 128"
    scores, what = scores_computed(L_q, L_kv, TILE_Q, TILE_KV), f"L_q = {L_q}, L_kv = {L_kv}"
    assert is_count(scores), f"{what}: scores_computed has to return an int, not {scores!r}"
    macs, counted = 2 * B * d * scores, f"the runtime counted {forward.macs:,} MACs"
    assert forward.macs <= macs, f"{what}: {counted}, and you predict {macs:,}; which tiles were not skipped?"
    assert forward.macs == macs, f"{what}: {counted}, and you predict {macs:,}; compute whole tiles, with rl"
    largest = forward.largest_bytes
    said = f"{what}: the largest tensor has {largest:,} bytes, more than a tile or an input"
    assert largest <= 8 * B * max(128 * 128, L_q * d, L_kv * d), said
    return forward


def check_causal_work(*sizes):
    causal_work(*sizes)


check_causal_work(2, 256, 256, 16)
check_causal_work(1, 200, 333, 4)
### BEGIN HIDDEN TESTS
drawn = measure.draw(66, 125), measure.draw(200, 400)
for L_q, L_kv in [(1, 300), (37, 91), (200, 200), (129, 129), (512, 512), drawn]:
    visible = sum(
        min(TILE_Q, L_q - i) * min(TILE_KV, L_kv - j)
        for i in range(0, L_q, TILE_Q)
        for j in range(0, L_kv, TILE_KV)
        if j < min(i + TILE_Q, L_q) + L_kv - L_q
    )
    counted = causal_work(2, L_q, L_kv, 8).macs
    assert counted == 32 * visible, f"L_q = {L_q}, L_kv = {L_kv}: {counted:,} MACs are not those of the visible tiles"
### END HIDDEN TESTS

# %% [markdown]
# Small tiles follow the diagonal closely. Large tiles compute more scores that are then masked. Your function gives:

# %%
lengths = (128, 256, 1024, 4096, 16384)
rows = [
    (f"{tile} x {tile}", *(f"{scores_computed(L, L, tile, tile) / L**2:.1%}" for L in lengths))
    for tile in (16, 32, 64, 128)
]
Table(("tile", *(f"L = {L}" for L in lengths)), rows, "Share of all scores that is computed")
