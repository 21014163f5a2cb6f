# %% [markdown]
# # Part 7. Who wins, and why
#
# ## 7.1 How far does the memory reach? (3 points)
#
# - `largest_naive_length(free_bytes, batch)`: the largest L whose three score matrices (fp32, kept by the textbook's
#   attention) fit in `free_bytes`, counting nothing else;
# - `largest_flash_length(free_bytes, batch, d)`: the largest L for which all that FlashAttention keeps (Q, K, V, O, L
#   in fp32) fits. Both as an `int`.


# %% nbgrader={"grade_id": "q7_1", "solution": true}
def largest_naive_length(free_bytes, batch):
    """Largest L whose three (batch, L, L) fp32 matrices fit in free_bytes: an int."""
    ### BEGIN SOLUTION
    L = int((free_bytes / (3 * 4 * batch)) ** 0.5)
    while 12 * batch * (L + 1) ** 2 <= free_bytes:
        L += 1
    while 12 * batch * L**2 > free_bytes:
        L -= 1
    return L
    ### END SOLUTION


def largest_flash_length(free_bytes, batch, d):
    """Largest L for which Q, K, V, O (batch, L, d) and the log-sum-exp (batch, L) fit: an int."""
    ### BEGIN SOLUTION
    return int(free_bytes // (4 * batch * (4 * d + 1)))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q7_1_test", "grade": true, "points": 3}
def check_length(got, expected, what):
    assert is_count(got), f"{what}: a length is an int"
    assert got == expected, f"{what}: {expected}, not {got}"


check_length(largest_naive_length(12 * 8 * 1000**2, 8), 1000, "room for exactly L = 1000, naive")
check_length(
    largest_flash_length(4 * 2 * 257 * 1000, 2, 64), 1000, "room for exactly L = 1000, flash"
)
### BEGIN HIDDEN TESTS
check_length(largest_naive_length(12 * 8 * 1000**2 - 1, 8), 999, "naive, one byte less")
check_length(largest_naive_length(80 * 2**30, 8), 29912, "naive, 80 GiB, B = 8")
check_length(largest_naive_length(2**30, 1), 9459, "naive, 1 GiB, B = 1")
check_length(largest_flash_length(4 * 2 * 257 * 1000 - 1, 2, 64), 999, "flash, one byte less")
check_length(largest_flash_length(80 * 2**30, 8, 64), 10444959, "flash, 80 GiB, B = 8, d = 64")
check_length(largest_flash_length(2**30, 1, 128), 523265, "flash, 1 GiB, B = 1, d = 128")
### END HIDDEN TESTS

# %%
here = rl.memory.available(device)
print(f"free on this machine's {device}: {here / 2**30:.1f} GiB; B = 8, d = 64, fp32")
print(f"    an 80 GiB GPU: naive up to L = {largest_naive_length(80 * 2**30, 8):>10,}", end="   ")
print(f"flash up to L = {largest_flash_length(80 * 2**30, 8, 64):>12,}")
print(f"    here:          naive up to L = {largest_naive_length(here, 8):>10,}", end="   ")
print(f"flash up to L = {largest_flash_length(here, 8, 64):>12,}")

# %% [markdown]
# ## 7.2 Three of a kind (4 points)
#
# Write `compare(L, d, batch, names)`: the forward pass of `naive_attention` ("naive"), of `flash_attention` ("flash")
# and of the library's `rl.attention` ("library"), not causal, fp32, on tensors that require no gradients; those that
# `names` lists. A dict with these names, each with
#
# - `"ms"`: the median latency;
# - `"peak_bytes"`: the most memory held at once in one call, above what was there before (`rl.count()`);
# - `"moved_bytes"`: bytes read and written, of all launches of one call together (`rl.count()`). A launch is counted
#   with each byte of its inputs once: what a fused kernel reads again comes from the caches.
#
# `rl.attention` takes (B, H, L, d), and (H, L, d) for a single B: what you have is right for it as it is.

# %% nbgrader={"grade_id": "q7_2", "solution": true}
ALL = ("naive", "flash", "library")


def compare(L, d, batch, names=ALL):
    """{name: {"ms", "peak_bytes", "moved_bytes"}} of a forward pass, for each of `names`."""
    ### BEGIN SOLUTION
    functions = {"naive": naive_attention, "flash": flash_attention, "library": rl.attention}
    q, k, v = make_qkv(batch, L, L, d)
    result = {}
    for name in names:
        time = latency(functions[name], q, k, v, warmup=1, repeat=3 if L < 4096 else 1)
        with rl.count() as c:
            functions[name](q, k, v)
        moved = c.bytes_read + c.bytes_written
        result[name] = {"ms": time.median_ms, "peak_bytes": c.peak_bytes, "moved_bytes": moved}
    return result
    ### END SOLUTION


# %% nbgrader={"grade_id": "q7_2_test", "grade": true, "points": 4} rooflab={"needs": ["q1_1", "q3"]}
def check_compare(L, d, batch, names=("naive", "flash", "library")):
    got = compare(L, d, batch, names)
    assert isinstance(got, dict) and set(got) == set(names), f"the keys are {names}"
    q, k, v = make_qkv(batch, L, L, d)
    with rl.count() as library:
        rl.attention(q, k, v)
    for name in names:
        row = got[name]
        assert isinstance(row, dict) and set(row) == {"ms", "peak_bytes", "moved_bytes"}, (
            f"{name}: three keys"
        )
        fn = {"naive": naive_attention, "flash": flash_attention}.get(name)
        counted = measure.count(fn, q, k, v) if fn else library
        moved, peak = counted.bytes_read + counted.bytes_written, counted.peak_bytes
        assert row["moved_bytes"] == moved, (
            f"{name}: {moved} bytes are moved, not {row['moved_bytes']}"
        )
        assert row["peak_bytes"] == peak, (
            f"{name}: the peak is {peak} bytes, not {row['peak_bytes']}"
        )
        assert isinstance(row["ms"], float) and row["ms"] > 0, f"{name}: ms is a positive float"
    total = sum(row["ms"] for row in got.values())
    assert total <= measure.elapsed_ms(), "more than the time that passed: not in ms"
    return got


rows = check_compare(128, 16, 2)
### BEGIN HIDDEN TESTS
rows = check_compare(100, 8, 3, ["library"])
rows = check_compare(96, 8, 1, ("flash", "naive"))
rows = check_compare(300, 16, 2)
rows = check_compare(128, 8, 1)
q, k, v = make_qkv(1, 128, 128, 8)
for name, fn in {"naive": naive_attention, "flash": flash_attention}.items():
    fastest = measure.latency(fn, q, k, v, warmup=2, repeat=20).samples_ms.min()
    assert is_time_of(rows[name]["ms"], fastest), f"this is not the latency of {name}, in ms"
fastest = latency(rl.attention, q, k, v, warmup=2, repeat=20).samples_ms.min()
assert is_time_of(rows["library"]["ms"], fastest), "this is not the latency of the library, in ms"
### END HIDDEN TESTS

# %% [markdown]
# The sweep. Where the textbook's matrices do not fit in half of the free memory, that is a cross at the top; a length
# whose predicted time is over the budget is left out, and the plots say so.

# %%
B, d, budget_ms = (8, 64, 5e3) if device == "cuda" else (2, 64, 2e3)
fits = largest_naive_length(rl.memory.available(device) // 2, B)
comparison = {}
for L in [2**n for n in range(8, 16)]:
    last = comparison.get(L // 2, {name: {"ms": 0.0} for name in ALL})
    affordable = [name for name in last if last[name] and 4 * last[name]["ms"] <= budget_ms]
    comparison[L] = compare(L, d, B, [name for name in affordable if name != "naive" or fits >= L])
    if fits < L:
        comparison[L]["naive"] = None


def series(figure):
    """{name: {L: figure, or None where it does not fit}}."""
    rows = [(name, L, row) for L, rows in comparison.items() for name, row in rows.items()]
    return {name: {L: row and row[figure] for one, L, row in rows if one == name} for name in ALL}


what = f"forward, B = {B}, d = {d}, fp32"
rl.plots.plot_length_sweep(series("ms"), title=f"Attention: {what}")

# %%
rl.plots.plot_length_sweep(series("peak_bytes"), "memory", title=f"At the peak: {what}")

# %%
rl.plots.plot_flash_attention_improvement(
    {name: series("ms")[name] for name in ("naive", "library")}, title=f"Attention: {what}"
)

# %% [markdown]
# ## 7.3 Why (3 points)
#
# Look at the numbers of your sweep, and at the bytes moved. Your array code holds little, like the library; and moves
# much, like the textbook.
#
# - `naive_over_library_at_1024`: bytes moved by your `naive_attention` over those by `rl.attention`, at L = 1024,
#   d = 64, batch = 1: a number, two per cent are near enough;
# - `library_growth`: by how many times the bytes that `rl.attention` moves grow when L is doubled;
# - `why_not_faster`: your FlashAttention in array code is not clearly faster than the textbook's, although it never has
#   an L x L matrix. Why?
#     - `"a"`: it does more arithmetic: the rescaling doubles the number of multiply-accumulates
#     - `"b"`: the scores of each tile still go through memory, from one launch to the next; tiles save space, and only
#       a fused kernel saves traffic and launches
#     - `"c"`: it computes the exponentials in float64
#     - `"d"`: the log-sum-exp has to be saved, which costs more than it saves

# %% nbgrader={"grade_id": "q7_3", "solution": true}
naive_over_library_at_1024 = None
library_growth = None
why_not_faster = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
rows = compare(1024, 64, 1)
naive_over_library_at_1024 = rows["naive"]["moved_bytes"] / rows["library"]["moved_bytes"]
library_growth = 2  # Q, K, V and O, each once
why_not_faster = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q7_3_findings", "solution": true}
# *What I find (not graded):*

# %% nbgrader={"grade_id": "q7_3_test", "grade": true, "points": 3} rooflab={"needs": ["q1_1", "q3", "q7_2"]}
assert why_not_faster in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
assert is_near(library_growth, 2, 1.0), "a number: 1 means that nothing grows"
### BEGIN HIDDEN TESTS
q, k, v = make_qkv(1, 1024, 1024, 64)
seen = measure.count(naive_attention, q, k, v)
with rl.count() as library:
    rl.attention(q, k, v)
ratio = (seen.bytes_read + seen.bytes_written) / (library.bytes_read + library.bytes_written)
assert is_near(naive_over_library_at_1024, ratio, 0.02), f"the counters say {ratio:.1f}"
assert is_near(library_growth, 2, 0.01)
assert why_not_faster == "b"
### END HIDDEN TESTS

# %%
for L, rows in comparison.items():
    for name, row in rows.items():
        if row:
            mib = [row[key] / 2**20 for key in ("peak_bytes", "moved_bytes")]
            print(f"L = {L:6} {name:8} {row['ms']:10.2f} ms", end="   ")
            print(f"peak {mib[0]:9.1f} MiB   moved {mib[1]:10.1f} MiB")
L = max(L for L, rows in comparison.items() if len(rows) == 3 and rows["naive"])
rl.plots.plot_bars(
    {name: comparison[L][name]["moved_bytes"] for name in ALL},
    "B",
    title=f"Bytes moved by one forward pass, L = {L}",
)

# %% [markdown]
# **Where you stand.** You have taken an algorithm that everyone calls by its speed and seen that it is about *where
# numbers live*: the online softmax lets a tile be forgotten, the log-sum-exp lets it be had back, the causal structure
# lets half of the tiles be skipped, and a fused kernel lets all of that stay on the chip. The library's kernels on this
# ladder (`rl.variants("attention")`) do nothing else; they only use the hardware better.
