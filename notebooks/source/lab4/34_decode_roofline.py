# %% [markdown]
# ## 3.5 What the cache gains ({points q3_5})
#
# ### a) The four cases again ({points q3_5_test q3_5_bound_test})
#
# Fill in `with_cache`, a dict like `without_cache` of 2.4: the same four cases, GPT-2 XL on the T4, one new token for
# each sequence, now with the cache. L is the length of the text with the new token.

# %% nbgrader={"grade_id": "q3_5", "solution": true}
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
    said = f"with_cache[{case}]: decode_model_flops and decode_model_bytes of GPT-2 XL, 48 layers, n = 2"
    assert (with_cache[case]["flops"], with_cache[case]["bytes"]) == (flops, moved), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_5_bound_test", "grade": true, "points": 2}
lab4.assert_times("with_cache", with_cache)
### BEGIN HIDDEN TESTS
times = {
    (1, 32): (45.53058e-6, 9.876992e-3),
    (1, 1024): (50.29218e-6, 10.92454e-3),
    (64, 32): (2.913957e-3, 12.65101e-3),
    (64, 1024): (3.2187e-3, 79.69434e-3),
}
for case, (compute_s, memory_s) in times.items():
    row, said = with_cache[case], f"with_cache[{case}]: divide by the figures of the T4 for fp16, in seconds"
    assert is_near(row["compute_s"], compute_s, 0.01) and is_near(row["memory_s"], memory_s, 0.01), said
    assert row["bound"] == "memory", f"with_cache[{case}]: which of the two times is longer?"
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
# How much sooner is the new token there? What counts is T. It is the longer of the two times, before and after.
#
# - `cache_speedup(B, L)`: T without the cache over T with it, for GPT-2 XL on the T4


# %% nbgrader={"grade_id": "q3_5_speedup", "solution": true}
def cache_speedup(B, L):
    """T without the cache over T with it, GPT-2 XL on a T4: a number."""
    ### BEGIN SOLUTION
    before = budget(model_flops(B, L, 1600, 25, 48), model_bytes(B, L, 1600, 25, 48, 2), T4.flop_s, T4.byte_s)
    after = budget(
        decode_model_flops(B, L, 1600, 25, 48), decode_model_bytes(B, L, 1600, 25, 48, 2), T4.flop_s, T4.byte_s
    )
    return before["time_s"] / after["time_s"]
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_5_speedup_test", "grade": true, "points": 4}
for case, before in without_cache.items():
    said = f"cache_speedup{case}: divide T in without_cache by T in with_cache"
    assert is_near(cache_speedup(*case), before["time_s"] / with_cache[case]["time_s"], 0.01), said
assert is_near(cache_speedup(1, 1), 1, 0.01), "cache_speedup(1, 1): the cache holds nothing of use for a first token"
### BEGIN HIDDEN TESTS


def seconds(flops, moved):
    return max(flops / 65e12, moved / 300e9)


for B, L in [(1, 32), (1, 1024), (64, 32), (64, 1024), (2, 100), (8, 512), (32, 128), (300, 16), (7, 1)]:
    before = seconds(B * L * (2949504000 + 313200 * L), 2949888000 + B * L * (3379200 + 14400 * L))
    after = seconds(B * (2949504000 + 312000 * L), 2949888000 + B * (3072000 + 316800 * L))
    said = f"cache_speedup({B}, {L}): T is the longer of the two times, and each side has its own counts"
    assert is_near(cache_speedup(B, L), before / after, 0.01), said
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
# For one user and a short text the cache saves nearly all of the arithmetic, and the token comes hardly sooner. That
# was the wrong thing to save: the step waited for the weights before, and it waits for the same weights now. Here are
# all eight cases on one roof:

# %%
points = [
    rl.roofline.Point(f"({B}, {L})", row["intensity"], series=series)
    for series, table in {"(B, L) without a cache": without_cache, "(B, L) with a cache": with_cache}.items()
    for (B, L), row in table.items()
]
rl.plots.plot_roofline(T4.machine, points, dtype="float16", title="GPT-2 XL on a T4, one new token for each sequence")

# %% [markdown]
# ## 3.6 Why the cache moves you to the left ({points q3_6})
#
# Every case moved to the left, to a lower intensity. It became faster all the same. Explain that, and then see how far
# a larger batch can bring you back.
#
# - `why_intensity_falls`: choose a letter, and explain it in a sentence below.
#     - `"a"`: FLOPs and bytes both fall by a factor of about L, so that the intensity stays about the same.
#     - `"b"`: FLOPs fall about L-fold, and bytes far less.
#     - `"c"`: Only the FLOPs fall. The bytes stay what they were, since the cache takes the place of the scores.
#     - `"d"`: The bytes grow, because the cache has to be read in addition to all that was read before.
# - `batch_limits`: the intensity of a decode step for very many sequences, at L = 32 and at L = 64, as
#   `{32: FLOP/byte, 64: FLOP/byte}`
# - `first_compute_bound_batch`: the smallest B for which the decode step of GPT-2 XL is compute-bound on the T4, at L =
#   32 and at L = 64. It is `None` where no batch is large enough.

# %% nbgrader={"grade_id": "q3_6", "solution": true}
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
assert why_intensity_falls in tuple("abcd"), "why_intensity_falls: choose a letter"
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
assert keys and all(map(is_number, batch_limits.values())), "batch_limits is a dict {32: a number, 64: a number}"
### BEGIN HIDDEN TESTS
for L, expected in {32: 224.04070, 64: 127.1875}.items():
    said = f"batch_limits[{L}]: which terms of FLOPs and of bytes grow with B?"
    assert is_near(batch_limits[L], expected, 1e-4), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_6_batch_test", "grade": true, "points": 2}
keys = isinstance(first_compute_bound_batch, dict) and set(first_compute_bound_batch) == {32, 64}
assert keys, "first_compute_bound_batch is a dict with the keys 32 and 64"
for L, batch in first_compute_bound_batch.items():
    assert batch is None or is_count(batch), f"first_compute_bound_batch[{L}] is a whole number or None"
### BEGIN HIDDEN TESTS
said = "first_compute_bound_batch: compare batch_limits with the ridge of the T4, 65e12 over 300e9"
assert first_compute_bound_batch[64] is None, said
said = "first_compute_bound_batch[32]: the smallest B whose FLOPs take as long as its bytes, weights included"
assert first_compute_bound_batch[32] == 6562, said
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
# All sequences share the weights, so a larger batch helps, until the weights no longer matter. But each sequence brings
# a cache of its own, and nobody shares that. The longer the texts, the sooner the curve bends. For texts of 1024 tokens
# it ends at 10 FLOPs a byte. A larger batch is no way out of that. What helps is a smaller cache: fewer heads for keys
# and values, or fewer bytes a number.
