# %% [markdown]
# ## 2.4 On the roofline of a T4 ({points q2_4})
#
# FLOPs and bytes become a prediction of time when you divide them by what a machine can do. A T4 is a small data centre
# GPU. It computes at most 65 · 10¹² FLOP/s in fp16 (`T4.flop_s`). For its memory we take 300 · 10⁹ byte/s
# (`T4.byte_s`). The datasheet says 320 GB/s, but the bound of each case in this question and in 3.5 is the same with
# either value.
#
# Arithmetic and memory traffic can overlap. So at best a step takes as long as the slower of the two:
#
# $$T_\mathrm{compute} = \frac{\mathrm{FLOPs}}{\mathrm{FLOP/s}}, \qquad T_\mathrm{memory} = \frac{\mathrm{bytes}}
# {\mathrm{byte/s}}, \qquad T = \max(T_\mathrm{compute}, T_\mathrm{memory}).$$
#
# ### a) A budget ({points q2_4_test})
#
# Write `budget(flops, moved, flop_s, byte_s)`. `moved` is the number of bytes, and the last two arguments are the
# limits of the machine. It returns a dict:
#
# - `"compute_s"`, `"memory_s"` and `"time_s"`: $T_\mathrm{compute}$, $T_\mathrm{memory}$ and $T$, in seconds
# - `"intensity"`: the arithmetic intensity, in FLOP/byte
# - `"bound"`: `"memory"` if $T_\mathrm{memory}$ is larger than $T_\mathrm{compute}$, otherwise `"compute"`


# %% nbgrader={"grade_id": "q2_4", "solution": true} rooflab={"counters": false}
def budget(flops, moved, flop_s, byte_s):
    """{"compute_s", "memory_s", "time_s", "intensity", "bound"} of work that does `flops` and moves `moved` bytes."""
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
    said = f"{case} must return a dict with the keys {', '.join(sorted(keys))}, got {got!r}"
    assert isinstance(got, dict) and set(got) == keys, said
    for key, value in expected.items():
        said = f"{case}: {key} is {got[key]!r}, expected {value} seconds"
        assert is_near(got[key], value, 0.01), said
    said = f"{case}: intensity is {got['intensity']!r}, expected {flops / moved}, FLOPs divided by bytes"
    assert is_near(got["intensity"], flops / moved, 1e-4), said
    hint = "equal times mean the ridge: what is an operation from the ridge on?"
    hint = hint if compute_s == memory_s else "which time is longer?"
    assert got["bound"] == bound, f"{case}: bound is {got['bound']!r}, expected {bound!r}: {hint}"


check_budget(1000, 100, 500.0, 25.0, compute_s=2.0, memory_s=4.0, bound="memory")
check_budget(1000, 100, 200.0, 50.0, compute_s=5.0, memory_s=2.0, bound="compute")
check_budget(64, 32, 4.0, 2.0, compute_s=16.0, memory_s=16.0, bound="compute")
### BEGIN HIDDEN TESTS
check_budget(10**12, 10**12, 65e12, 300e9, compute_s=0.0153846154, memory_s=3.33333333, bound="memory")
short_s, long_s = measure.draw(2, 9), measure.draw(11, 99)
flop_s, byte_s = measure.draw(10**12, 10**15), measure.draw(10**11, 10**13)
for compute_s, memory_s, bound in [(long_s, short_s, "compute"), (short_s, long_s, "memory")]:
    check_budget(compute_s * flop_s, memory_s * byte_s, float(flop_s), float(byte_s), compute_s, memory_s, bound)
check_budget(3 * 2**60, 2**60, 3.0 * 2**40, 2.0**40, compute_s=2.0**20, memory_s=2.0**20, bound="compute")
### END HIDDEN TESTS

# %% [markdown]
# ### b) Four cases ({points q2_4_table_test q2_4_bound_test})
#
# Suppose that the model stores nothing between two tokens. For every new token it processes the whole text again, all L
# tokens of each of the B sequences. Fill in `without_cache` for GPT-2 XL on the T4. Its keys are the four pairs (B, L)
# of `CASES`. Each value is a dict like the one that `budget` returns, with two more keys: `"flops"` and `"bytes"`.

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
    got = without_cache[case]["flops"], without_cache[case]["bytes"]
    said = f"without_cache[{case}] has {got[0]} FLOPs and {got[1]} bytes, expected {flops} and {moved}"
    assert got == (flops, moved), f"{said}: model_flops and model_bytes with 48 layers and n = 2"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_4_bound_test", "grade": true, "points": 2}
lab4.assert_times("without_cache", without_cache, [(1, 32), (1, 1024), (64, 32), (64, 1024)])
### BEGIN HIDDEN TESTS
times = {
    (1, 32): (1.456998e-3, 10.24256e-3, "memory"),
    (1, 1024): (51.51856e-3, 71.69894e-3, "memory"),
    (64, 32): (93.24785e-3, 36.04736e-3, "compute"),
    (64, 1024): (3.297188, 3.969256, "memory"),
}
for case, (compute_s, memory_s, bound) in times.items():
    row = without_cache[case]
    for key, seconds in (("compute_s", compute_s), ("memory_s", memory_s)):
        said = (
            f"without_cache[{case}]: {key} is {row[key]:.6g}, expected {seconds:.6g}: divide by T4.flop_s or T4.byte_s"
        )
        assert is_near(row[key], seconds, 0.01), said
    said = f"without_cache[{case}]: bound is not {row['bound']!r}: which of the two times is longer?"
    assert row["bound"] == bound, said
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
# ### c) Which length is best? ({points q2_4_lengths_test q2_4_peak_test})
#
# Does a longer text make better use of the machine? In your table the intensity rises with L for one sequence, and
# falls for 64 sequences. So it has a maximum somewhere. Find it with a loop over L from 1 to 5000. (GPT-2 XL takes at
# most 1024 tokens. Ask what the formulas say beyond that.)
#
# - `compute_bound_lengths`: a dict with the keys 1 and 64 for the batch size B. Each value is a pair, the first and the
#   last L at which GPT-2 XL is compute-bound on the T4, or `None` if it never is. Between the two it always is.
# - `best_length`: the L with the highest intensity for B = 1
# - `long_text_intensity`: the limit of the intensity for infinite L, in FLOP/byte

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
assert keys, f"compute_bound_lengths must be a dict with the keys 1 and 64, got {compute_bound_lengths!r}"
for B, pair in compute_bound_lengths.items():
    both = isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2 and all(map(is_count, pair))
    said = f"compute_bound_lengths[{B}] must be a pair of whole numbers or None, got {pair!r}"
    assert pair is None or both, said
### BEGIN HIDDEN TESTS
said = f"compute_bound_lengths[1] is not {compute_bound_lengths[1]}"
assert compute_bound_lengths[1] is None, f"{said}: compare the highest intensity of all L with the ridge of the T4"
said = f"compute_bound_lengths[64] is not {compute_bound_lengths[64]}"
hint = "compare the intensity at every L, from L = 1 on, with the ridge of the T4"
assert compute_bound_lengths[64] is not None and list(compute_bound_lengths[64]) == [5, 785], f"{said}: {hint}"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_4_peak_test", "grade": true, "points": 1}
assert is_count(best_length), f"best_length must be a whole number (int), got {best_length!r}"
said = f"long_text_intensity must be a positive number of FLOP/byte, got {long_text_intensity!r}"
assert is_number(long_text_intensity) and long_text_intensity > 0, said
### BEGIN HIDDEN TESTS
said = f"best_length is not {best_length}: compare the intensity at every L for B = 1"
assert best_length == 481, said
limit_hint = "which terms of the FLOPs and of the bytes grow fastest with L?"
assert_near("long_text_intensity", long_text_intensity, 21.75, 1e-4, limit_hint)
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
# The curves have three parts. On the left, nearly all bytes are weights. More tokens share them, so the intensity
# rises. In the middle, the activations of each token add bytes of their own, and the intensity levels off. On the
# right, the scores dominate. They have the same low intensity for any batch, so both curves end at the same value. A
# larger batch raises the left part of the curve, but not the right part.
