# %% [markdown]
# ## 2.4 On the roofline of a T4 ({points q2_4})
#
# Counts become a prediction when they meet a machine. A T4 is a small data centre GPU. It computes at most
# 65 · 10¹² FLOP/s in fp16, and for its memory take 300 · 10⁹ byte/s. They are `T4.flop_s` and `T4.byte_s`. (The
# datasheet promises 320 GB/s. No case of the two tables below would be bound by anything else.)
#
# Arithmetic and traffic go on at the same time, so at best the slower of the two hides the other one:
#
# $$T_\mathrm{compute} = \frac{\mathrm{FLOPs}}{\mathrm{FLOP/s}}, \qquad T_\mathrm{memory} = \frac{\mathrm{bytes}}
# {\mathrm{byte/s}}, \qquad T = \max(T_\mathrm{compute}, T_\mathrm{memory}).$$
#
# ### a) A budget ({points q2_4_test})
#
# Write `budget(flops, moved, flop_s, byte_s)`. It returns a dict:
#
# - `"compute_s"`, `"memory_s"` and `"time_s"`: $T_\mathrm{compute}$, $T_\mathrm{memory}$ and $T$, in seconds
# - `"intensity"`: FLOPs over bytes
# - `"bound"`: `"memory"` if the bytes take longer, and otherwise `"compute"`


# %% nbgrader={"grade_id": "q2_4", "solution": true}
def budget(flops, moved, flop_s, byte_s):
    """{"compute_s", "memory_s", "time_s", "intensity", "bound"} of so many FLOPs and bytes on a machine."""
    ### BEGIN SOLUTION
    compute_s, memory_s = flops / flop_s, moved / byte_s
    return {
        "compute_s": compute_s,
        "memory_s": memory_s,
        "time_s": max(compute_s, memory_s),
        "intensity": flops / moved,
        "bound": "memory" if memory_s > compute_s else "compute",
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_4_test", "grade": true, "points": 2}
def check_budget(flops, moved, flop_s, byte_s, compute_s, memory_s, bound):
    case = f"budget({flops}, {moved}, {flop_s}, {byte_s})"
    expected = {"compute_s": compute_s, "memory_s": memory_s, "time_s": max(compute_s, memory_s)}
    got = budget(flops, moved, flop_s, byte_s)
    keys = {*expected, "intensity", "bound"}
    assert isinstance(got, dict) and set(got) == keys, f"{case}: return a dict with the keys {', '.join(sorted(keys))}"
    for key, value in expected.items():
        assert is_near(got[key], value, 0.01), f"{case}: {key} is {got[key]!r}; look at its formula, and at the unit"
    assert is_near(got["intensity"], flops / moved, 1e-4), f"{case}: the intensity is FLOPs over bytes"
    assert got["bound"] == bound, f"{case}: it is not bound by {got['bound']!r}; which of the two takes longer?"


check_budget(1000, 100, 500.0, 25.0, compute_s=2.0, memory_s=4.0, bound="memory")
check_budget(1000, 100, 200.0, 50.0, compute_s=5.0, memory_s=2.0, bound="compute")
check_budget(64, 32, 4.0, 2.0, compute_s=16.0, memory_s=16.0, bound="compute")
### BEGIN HIDDEN TESTS
check_budget(7 * 10**15, 10**13, 312e12, 2.039e12, compute_s=22.435897, memory_s=4.904365, bound="compute")
check_budget(10**12, 10**12, 65e12, 300e9, compute_s=0.0153846154, memory_s=3.33333333, bound="memory")
check_budget(1, 1, 1.0, 2.0, compute_s=1.0, memory_s=0.5, bound="compute")
check_budget(3 * 2**60, 2**60, 3.0 * 2**40, 2.0**40, compute_s=2.0**20, memory_s=2.0**20, bound="compute")
### END HIDDEN TESTS

# %% [markdown]
# ### b) Four cases ({points q2_4_table_test q2_4_bound_test})
#
# Suppose that the model keeps nothing of what it computed before. For every new token it handles the whole text again,
# all L tokens in each of B sequences. Fill in `without_cache` for GPT-2 XL on the T4. Its keys are the four pairs
# (B, L), and each entry is a budget with two more keys, `"flops"` and `"bytes"`.

# %% nbgrader={"grade_id": "q2_4_cases", "solution": true}
CASES = [(1, 32), (1, 1024), (64, 32), (64, 1024)]
without_cache = {}  # (B, L): {"flops", "bytes", "compute_s", "memory_s", "time_s", "intensity", "bound"}
### BEGIN SOLUTION
for B, L in CASES:
    flops, moved = model_flops(B, L, 1600, 25, 48), model_bytes(B, L, 1600, 25, 48, 2)
    without_cache[B, L] = {"flops": flops, "bytes": moved, **budget(flops, moved, T4.flop_s, T4.byte_s)}
### END SOLUTION

# %% nbgrader={"grade_id": "q2_4_table_test", "grade": true, "points": 1} rooflab={"needs": ["q2_3"]}
lab4.assert_rows("without_cache", without_cache, [(1, 32), (1, 1024), (64, 32), (64, 1024)])
### BEGIN HIDDEN TESTS
counts = {
    (1, 32): (94704844800, 3072768000),
    (1, 1024): (3348706099200, 21509683200),
    (64, 32): (6061110067200, 10814208000),
    (64, 1024): (214317190348800, 1190776780800),
}
for case, (flops, moved) in counts.items():
    said = f"without_cache[{case}]: model_flops and model_bytes of GPT-2 XL, 48 layers, n = 2"
    assert (without_cache[case]["flops"], without_cache[case]["bytes"]) == (flops, moved), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_4_bound_test", "grade": true, "points": 2}
lab4.assert_times("without_cache", without_cache)
### BEGIN HIDDEN TESTS
times = {
    (1, 32): (1.456998e-3, 10.24256e-3, "memory"),
    (1, 1024): (51.51856e-3, 71.69894e-3, "memory"),
    (64, 32): (93.24785e-3, 36.04736e-3, "compute"),
    (64, 1024): (3.297188, 3.969256, "memory"),
}
for case, (compute_s, memory_s, bound) in times.items():
    row, said = without_cache[case], f"without_cache[{case}]: divide by the figures of the T4 for fp16, in seconds"
    assert is_near(row["compute_s"], compute_s, 0.01) and is_near(row["memory_s"], memory_s, 0.01), said
    assert row["bound"] == bound, f"without_cache[{case}]: which of the two times is longer?"
### END HIDDEN TESTS

# %%
rows = []
for (B, L), row in without_cache.items():
    times = (f"{1e3 * row[key]:,.2f}" for key in ("compute_s", "memory_s", "time_s"))
    counts = f"{row['flops']:,}", f"{row['bytes']:,}"
    rows.append((B, L, *counts, *times, f"{row['intensity']:.2f}", row["bound"]))
head = ("B", "L", "FLOPs", "bytes", "compute ms", "memory ms", "T ms", "FLOP/byte", "bound")
Table(head, rows, title="GPT-2 XL on a T4, one new token without a cache")

# %%
points = [
    rl.roofline.Point(f"B = {B}, L = {L}", row["intensity"], series="without a cache")
    for (B, L), row in without_cache.items()
]
rl.plots.plot_roofline(T4.machine, points, dtype="float16", title="GPT-2 XL on a T4")

# %% [markdown]
# ### c) Short, longer, too long ({points q2_4_lengths_test q2_4_peak_test})
#
# Does a longer text make better use of the machine? Look at the intensities of your table, first for one sequence, and
# then for 64 of them. They do not move the same way. Find out where it turns, with a loop over L. (GPT-2 XL takes at
# most 1024 tokens. Ask what the formulas say beyond that.)
#
# - `compute_bound_lengths`: for B = 1 and B = 64, the first and the last L at which GPT-2 XL is compute-bound on the
#   T4, as a pair, or `None` if it never is. In between it always is.
# - `best_length`: the L at which the intensity is highest for B = 1
# - `long_text_intensity`: what the intensity tends to when L goes to infinity, in FLOP/byte

# %% nbgrader={"grade_id": "q2_4_lengths", "solution": true}
compute_bound_lengths = {}  # 1: ..., 64: ...
best_length = None
long_text_intensity = None  # FLOP/byte
### BEGIN SOLUTION


def intensity(B, L):
    return value_of(model_flops_terms, B, L) / value_of(model_bytes_terms, B, L)


bound_at_64 = [L for L in range(1, 5000) if intensity(64, L) >= T4.flop_s / T4.byte_s]
compute_bound_lengths = {1: None, 64: (min(bound_at_64), max(bound_at_64))}
best_length = max(range(1, 5000), key=lambda L: intensity(1, L))
long_text_intensity = model_flops_terms["BL^2"] / model_bytes_terms["BL^2"]
### END SOLUTION

# %% nbgrader={"grade_id": "q2_4_lengths_test", "grade": true, "points": 2}
keys = isinstance(compute_bound_lengths, dict) and set(compute_bound_lengths) == {1, 64}
assert keys, "compute_bound_lengths is a dict with the keys 1 and 64"
for B, pair in compute_bound_lengths.items():
    both = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(map(is_count, pair))
    assert pair is None or both, f"compute_bound_lengths[{B}] is a pair of whole numbers, or None"
### BEGIN HIDDEN TESTS
said = "compute_bound_lengths[1]: look at the highest intensity of all L, and at the ridge of the T4"
assert compute_bound_lengths[1] is None, said
said = "compute_bound_lengths[64]: compare the intensity at each L with the ridge of the T4, from L = 1 on"
assert list(compute_bound_lengths[64] or ()) == [5, 785], said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_4_peak_test", "grade": true, "points": 1}
assert is_count(best_length), "best_length is a whole number"
assert is_number(long_text_intensity) and long_text_intensity > 0, "long_text_intensity is a number, in FLOP/byte"
### BEGIN HIDDEN TESTS
assert best_length == 481, "best_length: compare the intensity of every L for B = 1"
said = "long_text_intensity: which of your terms of FLOPs and of bytes grow fastest?"
assert is_near(long_text_intensity, 21.75, 1e-4), said
### END HIDDEN TESTS

# %%
lengths = sorted({round(2 ** (step / 8)) for step in range(113)})
curves = {
    f"B = {B}": {L: value_of(model_flops_terms, B, L) / value_of(model_bytes_terms, B, L) for L in lengths}
    for B in (1, 64)
}
ridge = {f"ridge of the T4, {T4.flop_s / T4.byte_s:.1f}": T4.flop_s / T4.byte_s}
title = "GPT-2 XL without a cache"
rl.plots.plot_lines(curves, "FLOP/byte", "arithmetic intensity", title=title, levels=ridge)

# %% [markdown]
# Three things happen along these curves. On the left, the weights are nearly all of the traffic, and more tokens share
# them: the intensity rises. In the middle, each token's own bytes slow that down. On the right, the scores take over.
# They bring the same few FLOPs for each byte, whatever the batch, and so both curves end in the same place. A larger
# batch lifts the left end of the curve, and it cannot lift the right one.
