# %% [markdown]
# ## 3.5 What the cache gains ({points q3_5})
#
# ### a) The four cases again ({points q3_5_test q3_5_bound_test})
#
# Fill in `with_cache`, a dict like `without_cache` of 2.4. It has the same four cases, GPT-2 XL on the T4. Now each
# step processes one new token per sequence and uses the cache. L is the length of the text including the new token.

# %% nbgrader={"grade_id": "q3_5", "solution": true} rooflab={"counters": false}
with_cache = {}  # (B, L): {"flops", "bytes", "compute_s", "memory_s", "time_s", "intensity", "bound"}
### BEGIN SOLUTION
for B, L in CASES:
    flops, moved = decode_model_flops(B, L, 1600, 25, 48), decode_model_bytes(B, L, 1600, 25, 48, 2)
    with_cache[B, L] = {"flops": flops, "bytes": moved, **budget(flops, moved, T4.flop_s, T4.byte_s)}
### END SOLUTION

# %% nbgrader={"grade_id": "q3_5_test", "grade": true, "points": 2} rooflab={"needs": ["q2_4", "q3_4"]}
lab4.assert_rows("with_cache", with_cache, [(1, 32), (1, 1024), (64, 32), (64, 1024)])
### BEGIN HIDDEN TESTS
counts = {
    (1, 32): (2959488000, 2963097600),
    (1, 1024): (3268992000, 3277363200),
    (64, 32): (189407232000, 3795302400),
    (64, 1024): (209215488000, 23908300800),
}
for case, (flops, moved) in counts.items():
    got = with_cache[case]["flops"], with_cache[case]["bytes"]
    said = f"with_cache[{case}] has {got[0]} FLOPs and {got[1]} bytes, expected {flops} and {moved}"
    assert got == (flops, moved), f"{said}: decode_model_flops and decode_model_bytes with 48 layers and n = 2"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_5_bound_test", "grade": true, "points": 2}
lab4.assert_times("with_cache", with_cache, [(1, 32), (1, 1024), (64, 32), (64, 1024)])
### BEGIN HIDDEN TESTS
times = {
    (1, 32): (45.53058e-6, 9.876992e-3),
    (1, 1024): (50.29218e-6, 10.92454e-3),
    (64, 32): (2.913957e-3, 12.65101e-3),
    (64, 1024): (3.2187e-3, 79.69434e-3),
}
for case, (compute_s, memory_s) in times.items():
    row = with_cache[case]
    for key, expected_s in (("compute_s", compute_s), ("memory_s", memory_s)):
        said = (
            f"with_cache[{case}]: {key} is {row[key]:.6g}, expected {expected_s:.6g}: divide by T4.flop_s or T4.byte_s"
        )
        assert is_near(row[key], expected_s, 0.01), said
    said = f"with_cache[{case}]: bound is not {row['bound']!r}: which of the two times is longer?"
    assert row["bound"] == "memory", said
### END HIDDEN TESTS

# %%
rows = []
for (B, L), row in with_cache.items():
    times = (f"{1e3 * row[key]:,.3f}" for key in ("compute_s", "memory_s", "time_s"))
    counts = f"{row['flops']:,}", f"{row['bytes']:,}"
    rows.append((B, L, *counts, *times, f"{row['intensity']:.3f}", row["bound"]))
head = ("B", "L", "FLOPs", "bytes", "compute ms", "memory ms", "T ms", "FLOP/byte", "bound")
Table(head, rows, title="GPT-2 XL on a T4, one new token with a cache")

# %% [markdown]
# ### b) The speed-up ({points q3_5_speedup_test})
#
# How much sooner does the new token arrive? The time of a step is T, the longer of its two times.
#
# - `cache_speedup(B, L)`: T without the cache divided by T with it, for GPT-2 XL on the T4 and any B and L, not only
#   the four cases


# %% nbgrader={"grade_id": "q3_5_speedup", "solution": true}
def cache_speedup(B, L):
    """T without the cache divided by T with it, GPT-2 XL on a T4: a number."""
    ### BEGIN SOLUTION
    before = budget(model_flops(B, L, 1600, 25, 48), model_bytes(B, L, 1600, 25, 48, 2), T4.flop_s, T4.byte_s)
    after = budget(
        decode_model_flops(B, L, 1600, 25, 48), decode_model_bytes(B, L, 1600, 25, 48, 2), T4.flop_s, T4.byte_s
    )
    return before["time_s"] / after["time_s"]
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_5_speedup_test", "grade": true, "points": 4}
cases = [(1, 32), (1, 1024), (64, 32), (64, 1024)]
lab4.assert_times("without_cache", without_cache, cases)
lab4.assert_times("with_cache", with_cache, cases)
for case, before in without_cache.items():
    got, right = cache_speedup(*case), before["time_s"] / with_cache[case]["time_s"]
    said = (
        f"cache_speedup{case} returned {got!r}, expected {right:.4g}: time_s in without_cache over time_s in with_cache"
    )
    assert is_near(got, right, 0.002), said  # in (64, 32) one token more or less in the cache is half a per cent
got = cache_speedup(1, 1)
assert is_near(got, 1, 0.01), f"cache_speedup(1, 1) returned {got!r}, expected 1: a first token has nothing to reuse"
### BEGIN HIDDEN TESTS


def seconds(flops, moved):
    return max(flops / 65e12, moved / 300e9)


many = measure.draw(10000, 20000), measure.draw(36, 44)  # where one token more or less in the cache shows
for B, L in [(7, 1), (1, 1024), many, *((measure.draw(8, 300), measure.draw(16, 1000)) for _ in range(7))]:
    before = seconds(B * L * (2949504000 + 313200 * L), 2949888000 + B * L * (3379200 + 14400 * L))
    after = seconds(B * (2949504000 + 312000 * L), 2949888000 + B * (3072000 + 316800 * L))
    got = cache_speedup(B, L)
    said = f"cache_speedup({B}, {L}) returned {got!r}, expected {before / after:.4g}: T is the longer of the two times"
    assert is_near(got, before / after, 0.01), said
### END HIDDEN TESTS

# %%
rows = []
for (B, L), before in without_cache.items():
    after = with_cache[B, L]
    fewer_flops, fewer_bytes = (f"{before[key] / after[key]:.2f}" for key in ("flops", "bytes"))
    verdicts = f"{before['bound']} → {after['bound']}"
    rows.append((B, L, fewer_flops, fewer_bytes, f"{cache_speedup(B, L):.2f}", verdicts))
Table(("B", "L", "FLOPs fall by", "bytes fall by", "speed-up", "bound"), rows, title="What the cache gains")

# %% [markdown]
# For one user and a short text, the cache removes nearly all of the arithmetic. How much sooner does the token arrive,
# and why? Here are all eight cases on one roofline:

# %%
points = [
    rl.roofline.Point(f"({B}, {L})", row["intensity"], series=series)
    for series, table in {"(B, L) without a cache": without_cache, "(B, L) with a cache": with_cache}.items()
    for (B, L), row in table.items()
]
rl.plots.plot_roofline(T4.machine, points, dtype="float16", title="GPT-2 XL on a T4, one new token for each sequence")

# %% [markdown]
# ## 3.6 Why the cache lowers the intensity ({points q3_6})
#
# With the cache, every case moves to a lower intensity, to the left on the roofline, although every case is faster.
# Explain why the intensity falls. Then find out how far a larger batch can raise it again.
#
# - `why_intensity_falls`: choose a letter, and explain it in a sentence below.
#     - `"a"`: FLOPs and bytes both fall by a factor of about L, so that the intensity stays about the same.
#     - `"b"`: FLOPs fall by a factor of about L, and bytes by far less.
#     - `"c"`: Only the FLOPs fall. The bytes stay what they were, since the cache takes the place of the scores.
#     - `"d"`: The bytes grow, because the cache has to be read in addition to all that was read before.
# - `batch_limits`: the limit of the intensity of a decode step for infinite B, at L = 32 and at L = 64, as `{32:
#   FLOP/byte, 64: FLOP/byte}`
# - `first_compute_bound_batch`: the smallest B for which the decode step of GPT-2 XL is compute-bound on the T4, at L =
#   32 and at L = 64, as `{32: B, 64: B}`. Write `None` in place of B if no batch is large enough.

# %% nbgrader={"grade_id": "q3_6", "solution": true} rooflab={"counters": false}
why_intensity_falls = None  # "a", "b", "c" or "d"
batch_limits = {32: None, 64: None}  # FLOP/byte
first_compute_bound_batch = {}  # 32: ..., 64: ...
### BEGIN SOLUTION
why_intensity_falls = "b"
batch_limits = {
    L: value_of(decode_flops_terms, 1, L) / (decode_bytes_terms["B"] + decode_bytes_terms["BL"] * L) for L in (32, 64)
}
reaches_ridge = (
    B
    for B in range(1, 100000)
    if value_of(decode_flops_terms, B, 32) / T4.flop_s >= value_of(decode_bytes_terms, B, 32) / T4.byte_s
)
first_compute_bound_batch = {32: next(reaches_ridge), 64: None}
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q3_6_findings", "solution": true}
# *Why the intensity falls:*

# %% nbgrader={"grade_id": "q3_6_test", "grade": true, "points": 1} rooflab={"needs": ["q3_5"]}
said = f'why_intensity_falls must be "a", "b", "c" or "d", got {why_intensity_falls!r}'
assert why_intensity_falls in tuple("abcd"), said
### BEGIN HIDDEN TESTS
assert_choice(
    why_intensity_falls,
    "b",
    a="Look at the table of 3.5: by which factors do the two fall?",
    c="Look at the column of the bytes in the table of 3.5.",
    d="Compare the bytes of the four cases in your two tables.",
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_6_limits_test", "grade": true, "points": 1}
keys = isinstance(batch_limits, dict) and set(batch_limits) == {32, 64}
said = f"batch_limits must be a dict {{32: a number, 64: a number}}, got {batch_limits!r}"
assert keys and all(map(is_number, batch_limits.values())), said
### BEGIN HIDDEN TESTS
for L, expected in {32: 224.04070, 64: 127.1875}.items():
    limit_hint = "divide the FLOPs by the bytes, only the terms that grow with B"
    assert_near(f"batch_limits[{L}]", batch_limits[L], expected, 1e-4, limit_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_6_batch_test", "grade": true, "points": 2}
keys = isinstance(first_compute_bound_batch, dict) and set(first_compute_bound_batch) == {32, 64}
assert keys, f"first_compute_bound_batch must be a dict with the keys 32 and 64, got {first_compute_bound_batch!r}"
for L, batch in first_compute_bound_batch.items():
    said = f"first_compute_bound_batch[{L}] must be a whole number (int) or None, got {batch!r}"
    assert batch is None or is_count(batch), said
### BEGIN HIDDEN TESTS
said = f"first_compute_bound_batch[64] is not {first_compute_bound_batch[64]}"
assert first_compute_bound_batch[64] is None, (
    f"{said}: compare batch_limits[64] with the ridge of the T4, 65e12 / 300e9"
)
said = f"first_compute_bound_batch[32] is not {first_compute_bound_batch[32]}"
hint = "find the smallest B whose FLOPs take at least as long as its bytes, weights included"
assert first_compute_bound_batch[32] == 6562, f"{said}: {hint}"
### END HIDDEN TESTS

# %%
batches = [2**power for power in range(15)]
curves = {
    f"L = {L}": {B: value_of(decode_flops_terms, B, L) / value_of(decode_bytes_terms, B, L) for B in batches}
    for L in (32, 64, 256, 1024)
}
ridge = {f"ridge of the T4, {T4.flop_s / T4.byte_s:.1f}": T4.flop_s / T4.byte_s}
title = "GPT-2 XL, decode with a cache"
rl.plots.plot_lines(curves, "FLOP/byte", "arithmetic intensity", "sequences B", title=title, levels=ridge)

# %% [markdown]
# All sequences share the weights, so a larger batch raises the intensity until the weights are a small part of the
# bytes. But each sequence has a cache of its own, and no other sequence shares it. The longer the texts, the sooner the
# curve levels off, and a larger batch cannot change that. A smaller cache can: fewer heads for keys and values, or
# fewer bytes per element.
