# %% [markdown]
# # Part 7. Compare the versions
#
# ## 7.1 How long a sequence fits? ({points q7_1})
#
# You know what each version keeps for its backward pass. How long can a sequence be before that no longer fits?
#
# - `largest_naive_length(free_bytes, batch, matrices)`: the largest L for which `matrices` score matrices (batch, L, L)
#   in fp32 fit in `free_bytes`. Count nothing else;
# - `largest_flash_length(free_bytes, batch, d)`: the largest L for which all that FlashAttention keeps (Q, K, V, O and
#   lse in fp32) fits in `free_bytes`.
#
# Both return an `int`.


# %% nbgrader={"grade_id": "q7_1", "solution": true}
def largest_naive_length(free_bytes, batch, matrices):
    """Largest L for which so many (batch, L, L) fp32 matrices fit in free_bytes: an int."""
    ### BEGIN SOLUTION
    bytes_per_l2 = 4 * batch * matrices
    L = int((free_bytes / bytes_per_l2) ** 0.5)
    while bytes_per_l2 * (L + 1) ** 2 <= free_bytes:
        L += 1
    while bytes_per_l2 * L**2 > free_bytes:
        L -= 1
    return L
    ### END SOLUTION


def largest_flash_length(free_bytes, batch, d):
    """Largest L for which Q, K, V, O (batch, L, d) and the log-sum-exp (batch, L) fit: an int."""
    ### BEGIN SOLUTION
    return int(free_bytes // (4 * batch * (4 * d + 1)))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q7_1_naive_test", "grade": true, "points": 2}
def check_length(got, expected, what):
    assert is_count(got), f"{what}: expected an int, got {got!r}"
    hint = "how many bytes are kept at this length, and how many at the next one?"
    assert got == expected, f"{what}: expected {expected}, got {got}; {hint}"


check_length(largest_naive_length(64_000_000, 8, 2), 1000, "naive, room for exactly two matrices of L = 1000, B = 8")
check_length(largest_naive_length(15_000_000 - 1, 3, 5), 499, "naive, one byte less than L = 500 needs")
### BEGIN HIDDEN TESTS
check_length(largest_naive_length(12 * 8 * 1000**2 - 1, 8, 3), 999, "naive, one byte too few, B = 8")
check_length(largest_naive_length(80 * 2**30, 8, 3), 29912, "naive, 80 GiB, B = 8")
L, B, matrices = measure.draw(500, 5000), measure.draw(2, 9), measure.draw(4, 9)
what = f"naive, room for L = {L} and a little more, B = {B}, {matrices} matrices"
check_length(largest_naive_length(4 * B * matrices * (L * L + L), B, matrices), L, what)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q7_1_flash_test", "grade": true, "points": 1}
check_length(largest_flash_length(2_056_000, 2, 64), 1000, "flash, room for exactly L = 1000, B = 2, d = 64")
check_length(largest_flash_length(277_200 - 1, 3, 8), 699, "flash, one byte less than L = 700 needs, B = 3, d = 8")
### BEGIN HIDDEN TESTS
check_length(largest_flash_length(4 * 2 * 257 * 1000 - 1, 2, 64), 999, "flash, one byte too few, B = 2, d = 64")
check_length(largest_flash_length(80 * 2**30, 8, 64), 10444959, "flash, 80 GiB, B = 8, d = 64")
L, B, d = measure.draw(500, 5000), measure.draw(2, 9), measure.draw(10, 200)
what = f"flash, room for L = {L} and a little more, B = {B}, d = {d}"
check_length(largest_flash_length(4 * B * (4 * d + 1) * L + d, B, d), L, what)
### END HIDDEN TESTS

# %%
here = rl.memory.available(device)
places = {"a GPU with 80 GiB": 80 * 2**30, f"free here, {here / 2**30:.1f} GiB": here}
rows = [
    (place, f"{largest_naive_length(free, 8, held_written_out):,}", f"{largest_flash_length(free, 8, 64):,}")
    for place, free in places.items()
]
Table(("memory", "naive, L up to", "flash, L up to"), rows, "B = 8, d = 64, fp32")

# %% [markdown]
# ## 7.2 Three versions ({points q7_2})
#
# Look at the table of 7.1 again. With k times the memory, naive attention can keep a sequence that is √k times as
# long, and FlashAttention one that is k times as long. Now compare time and traffic as well. Write `compare(L, d,
# batch, names)` for `naive_attention` ("naive"), `flash_attention` ("tiled") and the library's `rl.attention`
# ("library"), not causal, in fp32. Return a dict with an entry for each of `names`. Count and time forward passes on
# tensors that do not require gradients. An entry is a dict:
#
# - `"forward_ms"`: the median latency of the forward pass, warmed up by one call or more;
# - `"backward_ms"`: the median latency of the backward pass alone, as in 1.3;
# - `"peak_bytes"`: the most memory held at once in one forward pass, above what was there before (`rl.count()`);
# - `"moved_bytes"`: the bytes that all launches of one forward pass read and write (`rl.count()`). Each launch counts
#   every byte of its inputs and of its output once. A re-read inside a kernel is not counted, as if it came from a
#   cache.
#
# If a version runs out of memory, its entry is `None`. Catch no other error. `rl.attention` takes tensors (B, H, L, d)
# or (H, L, d), and yours have the second form.

# %% nbgrader={"grade_id": "q7_2", "solution": true}
ALL = ("naive", "tiled", "library")


def compare(L, d, batch, names=ALL):
    """{name: {"forward_ms", "backward_ms", "peak_bytes", "moved_bytes"}, or None} for each of `names`."""
    ### BEGIN SOLUTION
    functions = {"naive": naive_attention, "tiled": flash_attention, "library": rl.attention}
    result = {}
    for name in names:
        try:
            result[name] = compare_one(functions[name], L, d, batch)
        except rl.OutOfMemoryError:
            result[name] = None
    return result
    ### END SOLUTION


### BEGIN SOLUTION
def compare_one(fn, L, d, batch):
    q, k, v = make_qkv(batch, L, L, d)
    repeat = 3 if L < 4096 else 1
    forward = latency(fn, q, k, v, warmup=1, repeat=repeat)
    with rl.count() as c:
        fn(q, k, v)
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    o = fn(q, k, v)

    def back(dO):
        return rl.autograd.grad(o, (q, k, v), dO, retain_graph=True)

    backward = latency(back, rl.ones(o.shape, device=device), warmup=1, repeat=repeat)
    return {
        "forward_ms": forward.median_ms,
        "backward_ms": backward.median_ms,
        "peak_bytes": c.peak_bytes,
        "moved_bytes": c.bytes_read + c.bytes_written,
    }


### END SOLUTION


# %% nbgrader={"grade_id": "q7_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1", "q3", "q5"]}
KEYS = {"forward_ms", "backward_ms", "peak_bytes", "moved_bytes"}
WATCHED = {"naive": "naive_attention", "tiled": "flash_attention"}


def compared(L, d, batch, names, **limits):
    seen = measure.timed(compare, L, d, batch, names, watch=list(WATCHED.values()), **limits)
    said = f"compare has to return a dict with the keys {tuple(names)}"
    assert isinstance(seen.value, dict) and set(seen.value) == set(names), said
    return seen


def passes_of(name, L, d, batch):
    """(forward, backward) of one version, counted."""
    q, k, v = make_qkv(batch, L, L, d)
    fn = {"naive": naive_attention, "tiled": flash_attention}.get(name, rl.attention)
    seen = measure.gradients(fn, q, k, v, upstream=q)
    return measure.count(fn, q, k, v), seen.backward


def check_counts(L, d, batch, names=("naive", "tiled", "library")):
    got = compared(L, d, batch, names).value
    for name in names:
        row, (forward, _) = got[name], passes_of(name, L, d, batch)
        assert isinstance(row, dict) and set(row) == KEYS, f"{name}: the keys are {sorted(KEYS)}"
        moved, peak = forward.bytes_read + forward.bytes_written, forward.peak_bytes
        what = f"{name}, L = {L}, d = {d}, batch = {batch}"
        for key, right in {"moved_bytes": moved, "peak_bytes": peak}.items():
            assert row[key] == right, f"{what}: expected {key} = {right} of one forward pass, got {row[key]}"


def check_one_pass(L, d, batch, name):
    """On this machine's clock, where `latency` makes all of its calls."""
    got, (forward, _) = compare(L, d, batch, [name])[name], passes_of(name, L, d, batch)
    moved = forward.bytes_read + forward.bytes_written
    said = f"{name}, on this machine's clock: expected moved_bytes = {moved} of one forward pass, got"
    hint = "count one call of its own, without latency"
    assert isinstance(got, dict) and got["moved_bytes"] == moved, f"{said} {got and got['moved_bytes']}; {hint}"


check_counts(128, 16, 2)
check_counts(40, 8, 3, ["library"])
check_one_pass(24, 8, 1, "naive")
check_one_pass(32, 4, 2, "library")
### BEGIN HIDDEN TESTS
check_counts(measure.draw(80, 125), 8, 1, ("tiled", "naive"))
check_counts(measure.draw(250, 300), 16, measure.draw(2, 3))
check_one_pass(measure.draw(20, 40), 8, 1, "tiled")
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q7_2_times_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1", "q3", "q5"]}
def check_times(L, d, batch, names=("naive", "tiled", "library")):
    seen, input = compared(L, d, batch, names), ((batch, L, d), "float32", False)
    for name in names:
        row, passes = seen.value[name], passes_of(name, L, d, batch)
        assert isinstance(row, dict) and set(row) == KEYS, f"{name}: the keys are {sorted(KEYS)}"
        forward = seen.calls_of(passes[0])
        backward = [call for call in seen.calls if call.macs == passes[1].macs and not call.uploaded_bytes]
        if name in WATCHED:
            forward = [call for call in forward if call.ran == ((WATCHED[name], (input, input, input)),)]
        else:
            forward = [call for call in forward if not call.ran]
        backward = [call for call in backward if not call.ran]
        said = f"{name}, forward: no timed call on three tensors {(batch, L, d)} without gradients"
        assert forward, said + seen.beside(passes[0])
        assert measure.is_median(row["forward_ms"], forward), f"{name}: forward_ms is not the median_ms of latency"
        assert measure.is_steady(row["forward_ms"], forward, samples=1), f"{name}, forward: warm up by a call or more"
        assert backward, f"{name}, backward: no timed call of rl.autograd.grad alone" + seen.beside(passes[1])
        assert measure.is_median(row["backward_ms"], backward), f"{name}: backward_ms is not the median_ms of latency"
        assert measure.is_steady(row["backward_ms"], backward, samples=1), (
            f"{name}, backward: warm up by a call or more"
        )


check_times(64, 16, 2)
check_times(48, 8, 1, ["tiled"])
assert isinstance(compare(32, 8, 1)["naive"], dict), "compare(32, 8, 1), on this machine's clock: naive is not a dict"
### BEGIN HIDDEN TESTS
check_times(measure.draw(100, 130), 8, 1)
check_times(measure.draw(80, 99), 8, measure.draw(2, 4), ("library", "naive"))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q7_2_memory_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1", "q3", "q5"]}
scarce = compared(400, 4, 1, ("naive", "library"), spare_bytes=600_000)
assert scarce.value["naive"] is None, "naive ran out of memory: its entry has to be None"
assert isinstance(scarce.value["library"], dict), "the library had enough memory: its entry has to be a dict"
spare_bytes = 4 * 220 * 4 * 3 + 1000  # for three inputs, and for no result
tiny = compared(220, 4, 1, ALL, spare_bytes=spare_bytes).value
assert tiny == dict.fromkeys(ALL), f"no version has the memory for its result: expected None for each, got {tiny}"


def check_backward_fails(L):
    """With room for the forward pass of naive, and not for its backward pass."""
    got = compared(L, 4, 1, ["naive"], spare_bytes=4 * 4 * L * L + 100_000).value["naive"]
    assert got is None, f"naive, L = {L}: out of memory in the backward pass: its entry has to be None, got {got}"


check_backward_fails(220)
try:
    got = compare(8, 0, 1, ["library"])
except Exception:
    got = "an error"
said = "compare(8, 0, 1, ...) has heads of size 0, which is no lack of memory: catch rl.OutOfMemoryError alone"
assert got != {"library": None}, said
### BEGIN HIDDEN TESTS
check_backward_fails(measure.draw(230, 270))
scarce = compared(measure.draw(500, 550), 4, 1, ("library", "naive"), spare_bytes=1_000_000)
assert scarce.value["naive"] is None, "naive ran out of memory: its entry has to be None"
assert isinstance(scarce.value["library"], dict), "the library had enough memory: its entry has to be a dict"
### END HIDDEN TESTS

# %% [markdown]
# The sweep doubles the length at each step. A version that ran out of memory gets a cross at the top. A length that
# would take too long is not run.
#
# On a GPU the forward pass of your own kernel (6.2) is timed as a fourth version. Pass the tests of 6.2 first: on a GPU
# nobody checks where a kernel writes.

# %%
B, d, budget_ms = (8, 64, 5e3) if device == "cuda" else (2, 64, 2e3)
comparison, names = {}, ALL
for L in [2**n for n in range(8, 16)]:
    comparison[L] = compare(L, d, B, names)
    cost = {name: row["forward_ms"] + row["backward_ms"] for name, row in comparison[L].items() if row}
    names = [name for name in cost if 4 * cost[name] <= budget_ms]

# %%
own_ms = {}
if device == "cuda":
    flash_forward = rl.cuda.compile(FLASH_CUDA)["flash_forward"]

    def own_kernel(q, k, v):
        (B, L, d), like = q.shape, {"dtype": "float32", "device": device}
        O, lse = rl.empty((B, L, d), **like), rl.empty((B, L), **like)
        flash_forward((-(-L // FLASH_ROWS), B), FLASH_THREADS, q, k, v, O, lse, L, L, d**-0.5, 0)
        return O

    for L in comparison:
        own_ms[L] = latency(own_kernel, *make_qkv(B, L, L, d), warmup=1, repeat=3).median_ms
        if 4 * own_ms[L] > budget_ms:
            break
else:
    print("There is no GPU here, so your kernel is not timed: its time on a CPU would say nothing about a GPU.")


# %%
def series(figure):
    """{name: {L: figure, or None where it ran out of memory}}."""
    rows = [(name, L, row) for L, rows in comparison.items() for name, row in rows.items()]
    return {name: {L: row and row[figure] for one, L, row in rows if one == name} for name in ALL}


what = f"B = {B}, d = {d}, fp32"
forward_ms = series("forward_ms") | ({"your kernel": own_ms} if own_ms else {})
rl.plots.plot_length_sweep(forward_ms, title=f"Forward, {what}")

# %%
rl.plots.plot_length_sweep(series("backward_ms"), title=f"Backward, {what}")

# %%
rl.plots.plot_length_sweep(series("peak_bytes"), "memory", title=f"Peak memory, forward, {what}")

# %%
pair = {name: series("forward_ms")[name] for name in ("naive", "library")}
rl.plots.plot_flash_attention_improvement(pair, title=f"Forward, {what}")

# %% [markdown]
# Now all five lengths and four head sizes of the published experiment. `report.run` measures three versions: attention
# written out, the same function compiled by `rl.compile`, and `rl.attention`, which the report calls *flash*. It begins
# with the shortest sizes. What is too long or too large for your machine is counted and modelled, as on an A100 with 40
# GB. Each row says which. `rooflab bench report --parts attention` gives the same as a command.

# %%
from rooflab.benchmark import report

report.written(report.run(report.Settings(device), ("attention",), minutes=0.5), ("attention",))

# %% [markdown]
# ## 7.3 Why is your array code not faster? ({points q7_3})
#
# Your FlashAttention in array code never has an L x L matrix. Still it is not clearly faster than the textbook's
# version. Look at the figures of your sweep, and at the bytes that each version moves. In which figures does your array
# code resemble the library, and in which the textbook's version?
#
# - `naive_over_library_at_1024`: the bytes that your `naive_attention` moves, divided by those that `rl.attention`
#   moves, at L = 1024, d = 64, batch = 1. An answer within 2% is right;
# - `library_growth`: the factor by which the bytes that `rl.attention` moves grow when L doubles;
# - `why_not_faster`: why your array code is not clearly faster. Choose a letter, and explain it in a sentence below.
#     - `"a"`: Rescaling doubles the number of multiply-accumulates.
#     - `"b"`: Each tile's scores still go through memory.
#     - `"c"`: Its exponentials are computed in float64.
#     - `"d"`: Saving the log-sum-exp costs more than it saves.
#
# Write your conclusions about the rows of the report above, too. Which rows ran out of memory? What is the longest
# length that fits for each version? What does the compiler save, and what not? Which of your conclusions rest on
# modelled rows?

# %% nbgrader={"grade_id": "q7_3", "solution": true}
naive_over_library_at_1024 = None  # a number
library_growth = None  # a number
why_not_faster = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
rows = compare(1024, 64, 1, ["naive", "library"])
naive_over_library_at_1024 = rows["naive"]["moved_bytes"] / rows["library"]["moved_bytes"]
library_growth = 2  # Q, K, V and O, each once
why_not_faster = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q7_3_findings", "solution": true}
# *What I find:*

# %% nbgrader={"grade_id": "q7_3_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1", "q3", "q5", "q7_2"]}
ratio_is_number = is_number(naive_over_library_at_1024) and naive_over_library_at_1024 > 1
assert ratio_is_number, "naive_over_library_at_1024 is a number: naive divided by library. Which of them moves more?"
said = f"library_growth has to be a number (1 means no growth), got {library_growth!r}"
assert is_number(library_growth) and library_growth > 0, said
### BEGIN HIDDEN TESTS
q, k, v = make_qkv(1, 1024, 1024, 64)
seen = measure.count(naive_attention, q, k, v)
with rl.count() as library:
    rl.attention(q, k, v)
ratio = (seen.bytes_read + seen.bytes_written) / (library.bytes_read + library.bytes_written)
near = is_near(naive_over_library_at_1024, ratio, 0.02)
assert near, "naive_over_library_at_1024: divide moved_bytes of compare(1024, 64, 1), not causal"
assert is_near(library_growth, 2, 0.01), "library_growth: compare moved_bytes of the library at two lengths"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q7_3_why_test", "grade": true, "points": 1}
assert why_not_faster in ("a", "b", "c", "d"), f'why_not_faster must be "a", "b", "c" or "d", got {why_not_faster!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    why_not_faster,
    "b",
    a="The test of Part 3 counted the multiply-accumulates of your forward pass: the products are not doubled.",
    c="Part 3 asks for one dtype in all tensors, and the test checked it.",
    d="The log-sum-exp is one number a query. Compare that with the bytes that your version moves.",
)
### END HIDDEN TESTS

# %%
rows = []
for L, versions in comparison.items():
    for name, row in versions.items():
        if row:
            peak, moved = (f"{row[key] / 2**20:,.1f}" for key in ("peak_bytes", "moved_bytes"))
            rows.append((L, name, f"{row['forward_ms']:.2f}", f"{row['backward_ms']:.2f}", peak, moved))
    if L in own_ms:
        rows.append((L, "your kernel", f"{own_ms[L]:.2f}", "", "", ""))
display(Table(("L", "version", "forward ms", "backward ms", "peak MiB", "moved MiB"), rows, what))
L = max(L for L, versions in comparison.items() if len(versions) == 3 and versions["naive"])
moved = {name: comparison[L][name]["moved_bytes"] for name in ALL}
rl.plots.plot_bars(moved, "B", title=f"Bytes moved by one forward pass, L = {L}")

# %% [markdown]
# **What you know now.** FlashAttention changes no formula. The online softmax lets you discard a tile of scores. The
# log-sum-exp lets you recompute it. A causal mask lets you skip tiles. Your three versions give the same numbers, and
# your tables show what sets them apart: the memory that they hold, the bytes that they move, and the time that they
# take. The library's kernels (`rl.variants("attention")`) are made of the same steps as yours. Read the source of one
# of them, and see which of your steps you recognise. It is in `csrc/kernels/attention` of a release or of the source
# archive; a wheel does not hold it.
