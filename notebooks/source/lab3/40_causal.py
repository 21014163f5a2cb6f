# %% [markdown]
# # Part 4. Causal, and half the work (8 points)
#
# With a causal mask a tile of scores is of one of three kinds: every pair is visible, none is, or the diagonal runs
# through it. Only the last kind needs a mask, and the second need not be computed *at all*. The textbook computes all
# scores and throws half of them away.
#
# **Go back to `FlashAttention2.forward`** and make `is_causal=True` work. L_q ≤ L_kv, and query i sees the keys
# j ≤ i + L_kv - L_q. End the loop over the keys after the last tile in which some query of the tile sees some key, and
# mask the tiles that the diagonal cuts. Every other tile is computed whole.
#
# Here, predict what that saves. Write `scores_computed(L_q, L_kv, tile_q, tile_kv)`: how many scores causal
# FlashAttention computes for one of the B, with tiles of tile_q queries by tile_kv keys as you wrote it (tiles at the
# ends are cut). It is checked against the multiply-accumulates that the runtime counts in *your* forward pass, with
# your tiles: each score takes d of them, and d more for the product with V.
#
# And `causal_share_limit`: the share of all L² scores that is computed when L grows and the tiles stay as they are.

# %% nbgrader={"grade_id": "q4", "solution": true}
causal_share_limit = None  # a number between 0 and 1
### BEGIN SOLUTION
causal_share_limit = 0.5
### END SOLUTION


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


# %% nbgrader={"grade_id": "q4_test", "grade": true, "points": 3}
assert scores_computed(128, 128, 64, 64) == 3 * 64 * 64, "three of the four tiles"
### BEGIN HIDDEN TESTS
for L_q, L_kv, tile_q, tile_kv in [
    *[
        (256, 256, 64, 64),
        (256, 256, 16, 128),
        (256, 256, 128, 16),
        (100, 100, 64, 32),
        (1, 1, 16, 16),
    ],
    *[
        (1, 300, 64, 64),
        (37, 91, 16, 32),
        (130, 130, 128, 128),
        (1024, 1024, 16, 16),
        (64, 1000, 48, 80),
    ],
]:
    expected = 0
    for i in range(0, L_q, tile_q):
        for j in range(0, L_kv, tile_kv):
            bottom, right = min(i + tile_q, L_q), min(j + tile_kv, L_kv)
            if j <= bottom - 1 + L_kv - L_q:
                expected += (bottom - i) * (right - j)
    got = scores_computed(L_q, L_kv, tile_q, tile_kv)
    assert is_count(got) and got == expected, (
        f"{(L_q, L_kv, tile_q, tile_kv)}: {expected}, not {got}"
    )
assert is_near(causal_share_limit, 0.5)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_causal_test", "grade": true, "points": 5} rooflab={"needs": ["q3"]}
def check_causal(B, L_q, L_kv, d, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64", seed=L_q)
    seen = measure.saved(FlashAttention2, q, k, v, True)
    O, L = attention_float64(q, k, v, is_causal=True)
    what = f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = True"
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name=f"O {what}")
    rows = [tensor for tensor in seen.tensors if tuple(tensor.shape) == (B, L_q)]
    assert len(rows) == 1, "exactly one saved tensor of shape (B, L_q)"
    assert_close(rows[0], L, rtol=1e-9, atol=1e-9, name=f"the saved log-sum-exp {what}")
    for size in (TILE_Q, TILE_KV):
        assert is_count(size) and 16 <= size <= 128, "TILE_Q and TILE_KV are between 16 and 128"
    predicted = 2 * B * d * scores_computed(L_q, L_kv, TILE_Q, TILE_KV)
    assert seen.forward.macs == predicted, (
        f"{what}: you predict {predicted:,} MACs, the runtime counted {seen.forward.macs:,}; "
        f"all pairs would take {2 * B * d * L_q * L_kv:,}"
    )
    assert seen.forward.largest_bytes <= 8 * B * max(128 * 128, L_q * d, L_kv * d), (
        "a tensor larger than a tile"
    )
    assert not seen.forward.by_op.keys() & {"softmax", "attention"}, "the library did the work"
    return seen.forward.macs / (2 * B * d * L_q * L_kv)


check_causal(2, 256, 256, 16)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 300), (37, 91), (200, 200), (129, 129), (65, 400), (512, 512)]:
    check_causal(2, L_q, L_kv, 8)
check_causal(1, 150, 150, 8, scale=12.0)
check_causal(1, 150, 150, 8, scale=30.0)
# A query's own tile ends at most 127 rows below it, and the last tile of keys as many columns further right.
assert check_causal(1, 1024, 1024, 2) <= 0.5 + 256 / 1024, "tiles that nobody sees are computed"
q, k, v = make_qkv(1, 200, 200, 8, dtype="float64")
v = to_float64(v)
v[:, 150:] = 1e30  # what no query before 150 may see
O = to_float64(flash_attention(q, k, rl.tensor(v, device=device), True))
assert np.isfinite(O).all() and np.abs(O[:, :150]).max() < 1e3, "the future leaks into the past"
### END HIDDEN TESTS

# %% [markdown]
# Small tiles follow the diagonal closely, large ones compute more that nobody sees:

# %%
print("share of all scores that is computed, by tile (square) and length:")
for tile in (16, 32, 64, 128):
    shares = [scores_computed(L, L, tile, tile) / L**2 for L in (128, 256, 1024, 4096, 16384)]
    print(f"    {tile:3} x {tile:<3}", "   ".join(f"{share:6.1%}" for share in shares))
