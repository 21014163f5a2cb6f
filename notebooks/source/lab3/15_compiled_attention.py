# %% [markdown]
# ## 1.5 What a compiler can do ({points q1_5})
#
# Your attention runs one operation after the other, and most of them read and write whole matrices. Before you improve
# that by hand, find out how much a compiler can do.
#
# `rl.compile(fn)` records the operations of `fn` at its first call, on tensors without memory. Then it turns each chain
# of elementwise operations into one kernel, called `fused`. Where there are many long rows, the same kernel also
# computes a maximum or a sum of each row (`amax`, `sum`), and uses it for the elements of that row. It does the same
# for the backward pass. Products run as before.
#
# ### a) Compile it ({points q1_5_test q1_5_fused_test})
#
# `naive_attention` makes its causal mask in every call. Run the next cell: in the compiled function too, the two
# `rl.arange` and what is computed from them are launches of their own.

# %%
compiled_naive, inputs = rl.compile(naive_attention), make_qkv(1, 8, 8, 4)
compiled_naive(*inputs, is_causal=True)
with rl.count() as c:
    compiled_naive(*inputs, is_causal=True)
print({name: counts.launches for name, counts in c.by_op.items()})

# %% [markdown]
# A mask that is an argument is made once for all calls. Write `masked_attention(q, k, v, visible)`. It is your
# `naive_attention`, written out as in 1.1, with a boolean tensor `visible` (L_q, L_kv) for the mask: True where a query
# sees a key. With `visible=None` there is no mask. Then set `compiled_attention` to what `rl.compile` makes of it.


# %% tags=["setup"]
def causal_mask(L, device=device):
    """(L, L), True where a query sees a key. On tensors without memory only its shape matters."""
    if device.startswith("meta"):
        return rl.ones(L, L, dtype="bool", device=device)
    return rl.tensor(np.tri(L, dtype=bool), device=device)


def figures(c):
    """What rl.count() counted, as a dict."""
    return {"launches": c.launches, "bytes": c.bytes_read + c.bytes_written, "peak_bytes": c.peak_bytes}


# %% nbgrader={"grade_id": "q1_5", "solution": true}
def masked_attention(q, k, v, visible):
    """Attention of q (B, L_q, d) over the keys that are `visible` (L_q, L_kv), or over all: (B, L_q, d)."""
    ### BEGIN SOLUTION
    scores = (q @ k.mT) * q.shape[-1] ** -0.5
    if visible is not None:
        scores = rl.where(visible, scores, float("-inf"))
    exponentials = rl.exp(scores - scores.amax(-1, keepdim=True))
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ v
    ### END SOLUTION


compiled_attention = None  # called as masked_attention
### BEGIN SOLUTION
compiled_attention = rl.compile(masked_attention)
### END SOLUTION


# %% nbgrader={"grade_id": "q1_5_test", "grade": true, "points": 1}
def check_masked(B, L_q, L_kv, d, hidden_keys=None, scale=1.0):
    """With no mask, with a causal one, or with one that hides the last keys from all queries."""
    assert callable(compiled_attention), "compiled_attention is what rl.compile returns"
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64")
    dO, is_causal, seen_keys, visible = make_qkv(B, L_q, 1, d, dtype="float64")[0], False, L_kv, None
    if hidden_keys == "later":
        is_causal, visible = True, np.tri(L_q, L_kv, L_kv - L_q, dtype=bool)
    elif hidden_keys:
        seen_keys = L_kv - hidden_keys
        visible = np.broadcast_to(np.arange(L_kv) < seen_keys, (L_q, L_kv)).copy()
    mask = None if visible is None else rl.tensor(visible, device=device)
    O = library_attention(q, k[:, :seen_keys], v[:, :seen_keys], is_causal)[0]
    exact = library_gradients(q, k[:, :seen_keys], v[:, :seen_keys], dO, is_causal)
    for name, fn in {"masked_attention": masked_attention, "compiled_attention": compiled_attention}.items():
        what = f"{name}, L_q = {L_q}, L_kv = {L_kv}, hidden keys: {hidden_keys}, inputs times {scale:g}"
        seen = measure.gradients(fn, q, k, v, mask, upstream=dO)
        assert isinstance(seen.value, rl.Tensor), f"{name}: return an rl tensor"
        assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name=f"O of {what}")
        for counted in (seen.forward, seen.backward):
            assert_own_work(counted, what)
        for letter, ours, expected in zip("QKV", seen.gradients, exact, strict=True):
            assert isinstance(ours, rl.Tensor), f"{name}: the gradient d{letter} is missing"
            missing = np.zeros((B, ours.shape[1] - expected.shape[1], d))
            expected = np.concatenate([expected, missing], axis=1)
            assert_close(ours, expected, rtol=1e-8, atol=1e-9, name=f"d{letter} of {what}")


def check_hidden(L_q, L_kv):
    mask = rl.tensor(np.tri(L_q, L_kv, L_kv - L_q, dtype=bool), device=device)
    check_far_apart(masked_attention, L_q, L_kv, mask)
    check_far_apart(compiled_attention, L_q, L_kv, mask)


check_masked(2, 12, 20, 8)
check_masked(2, 9, 14, 8, hidden_keys="later")
check_masked(3, 15, 15, 8, hidden_keys="later", scale=40.0)
check_masked(2, 10, 16, 4, hidden_keys=5)
check_hidden(6, 6)
### BEGIN HIDDEN TESTS
check_masked(1, measure.draw(20, 40), measure.draw(5, 15), measure.draw(4, 16))
check_masked(3, measure.draw(5, 15), measure.draw(20, 40), measure.draw(4, 16), hidden_keys="later")
check_masked(1, 21, 13, 8, hidden_keys=measure.draw(6, 12), scale=30.0)
check_masked(1, 1, 1, 4, hidden_keys="later")
check_hidden(measure.draw(5, 9), measure.draw(10, 20))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_5_fused_test", "grade": true, "points": 1}
def check_fused(B, L, d, is_causal):
    (q, k, v), mask = make_qkv(B, L, L, d), causal_mask(L) if is_causal else None
    eager = measure.gradients(masked_attention, q, k, v, mask, upstream=q)
    assert callable(compiled_attention), "compiled_attention is what rl.compile returns"
    compiled = measure.gradients(compiled_attention, q, k, v, mask, upstream=q)
    for name, seen in {"masked_attention": eager, "compiled_attention": compiled}.items():
        ops = seen.forward.by_op
        ran = ready_made(seen.forward)
        assert not ran, f"{name}: {ran} ran: use single operations, as in 1.1"
        said = f"{name}: expected two products, each of all scores"
        assert ops.get("matmul") == 2 and seen.forward.macs == 2 * B * L * L * d, said
    assert "fused" not in eager.forward.by_op, "masked_attention itself is not compiled"
    passes = {"forward": (eager.forward, compiled.forward), "backward": (eager.backward, compiled.backward)}
    for name, (before, after) in passes.items():
        what = f"compiled_attention, {name}, is_causal = {is_causal}"
        assert "fused" in after.by_op, f"{what}: no fused kernel ran. Did the first call warn?"
        said = f"{what}: expected fewer launches than eager, {before.launches}, got {after.launches}"
        assert after.launches < before.launches, said
        less = before.bytes_read + before.bytes_written - after.bytes_read - after.bytes_written
        least = (2 if name == "forward" else 1) * 4 * B * L * L
        assert less >= least, f"{what}: expected at least {least} fewer bytes than eager, got {less} fewer"


check_fused(2, 32, 8, True)
check_fused(2, 24, 8, False)
### BEGIN HIDDEN TESTS
check_fused(3, measure.draw(30, 45), measure.draw(3, 9), True)
check_fused(1, measure.draw(50, 70), measure.draw(10, 20), False)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Count both ({points q1_5_count_test})
#
# At L = 16384 and B = 8 a score matrix takes 8 GiB. You can count it without having that memory: on tensors of
# `device="meta"` an operation computes nothing, but it is counted as this machine's CPU would run it.
#
# Write `compare_compiled(L, d, batch, is_causal=True)`. For `masked_attention` ("eager") and `compiled_attention`
# ("compiled") count one forward pass, on fp32 tensors that require gradients, and then the backward pass alone. Return
# `{"eager": row, "compiled": row}`. A row is a dict:
#
# - `"forward"` and `"backward"`: what `figures(c)` returns, given above. Each has a `with rl.count() as c:` of its own.
#   Run the backward pass with `o.backward(dO)`, once;
# - `"held_bytes"`: the bytes of all `rl.autograd.saved_tensors(o)`, between the two passes.
#
# Make the inputs and `causal_mask(L, "meta")` outside of what you count. Without a mask pass `None`.


# %% nbgrader={"grade_id": "q1_5_count", "solution": true}
def compare_compiled(L, d, batch, is_causal=True):
    """{"eager", "compiled"}: {"forward": figures, "held_bytes": int, "backward": figures} of a training step each."""
    ### BEGIN SOLUTION
    visible = causal_mask(L, "meta") if is_causal else None
    rows = {}
    for name, fn in {"eager": masked_attention, "compiled": compiled_attention}.items():
        q, k, v = (rl.zeros(batch, L, d, device="meta").requires_grad_() for _ in range(3))
        dO = rl.ones(batch, L, d, device="meta")
        with rl.count() as forward:
            o = fn(q, k, v, visible)
        held = sum(saved.bytes for saved in rl.autograd.saved_tensors(o))
        with rl.count() as backward:
            o.backward(dO)
        rows[name] = {"forward": figures(forward), "held_bytes": held, "backward": figures(backward)}
    return rows
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_5_count_test", "grade": true, "points": 2}
def check_rows(rows):
    said = 'compare_compiled has to return a dict with the keys "eager" and "compiled"'
    assert isinstance(rows, dict) and set(rows) == {"eager", "compiled"}, said
    for name, row in rows.items():
        keys = {"forward", "held_bytes", "backward"}
        assert isinstance(row, dict) and set(row) == keys, f"{name}: the keys are {sorted(keys)}"
        for part in ("forward", "backward"):
            keys = {"launches", "bytes", "peak_bytes"}
            said = f"{name}, {part}: store what figures(c) returns"
            assert isinstance(row[part], dict) and set(row[part]) == keys, said


def check_counted(L, d, batch, is_causal):
    rows = compare_compiled(L, d, batch) if is_causal else compare_compiled(L, d, batch, False)
    check_rows(rows)
    q, k, v, dO = (rl.ones(batch, L, d) for _ in range(4))  # on the CPU, which "meta" stands for
    mask = causal_mask(L, "cpu") if is_causal else None
    for name, fn in {"eager": masked_attention, "compiled": compiled_attention}.items():
        seen, what = measure.gradients(fn, q, k, v, mask, upstream=dO), f"L = {L}, d = {d}, batch = {batch}, {name}"
        for part in ("forward", "backward"):
            for key, expected in figures(getattr(seen, part)).items():
                got = rows[name][part][key]
                of = f"{key} of {'o.backward(dO)' if part == 'backward' else 'one forward pass'}; {is_causal = }"
                assert got == expected, f"{what}: expected {expected} {of}, got {got}"
        got, kept = rows[name]["held_bytes"], sum(bytes for op, shape, dtype, bytes in seen.saved)
        said = f"{what}: expected held_bytes = {kept}, the sum over saved_tensors, got {got}; {is_causal = }"
        assert got == kept, said


check_counted(48, 8, 2, True)
check_counted(40, 4, 3, False)
check_rows(compare_compiled(2**17, 16, 8))  # 512 GiB a score matrix: use tensors without memory
### BEGIN HIDDEN TESTS
check_counted(measure.draw(110, 140), measure.draw(10, 20), 1, True)
check_counted(measure.draw(80, 125), 8, measure.draw(2, 3), False)
check_counted(256, 32, 8, True)
long, longer = (compare_compiled(L, 64, 8)["compiled"]["held_bytes"] for L in (8192, 16384))
assert is_near(longer / long, 4, 0.05), "held_bytes: from L = 8192 to 16384 it has to grow as L², on tensors too"
### END HIDDEN TESTS

# %% [markdown]
# ### c) Time both ({points q1_5_time_test})
#
# Now measure the times. There is one trap: the first call with new shapes compiles. On a CPU that takes a millisecond
# or two, as long as a whole call on a short sequence. On a GPU kernels have to be built as well, which takes longer.
# The time to compile must not be in a sample.
#
# Write `time_compiled(L, d, batch)`: the median latency in ms of one causal forward pass, in fp32 on `device`, as
# `{"eager": ..., "compiled": ...}`. Use tensors that do not require gradients. Make the mask outside of what you time,
# and let the compiled function run at least once before its first sample. Take at least three samples.


# %% nbgrader={"grade_id": "q1_5_time", "solution": true}
def time_compiled(L, d, batch):
    """{"eager": ms, "compiled": ms}: the median of one causal forward pass each, compiled before."""
    ### BEGIN SOLUTION
    (q, k, v), visible = make_qkv(batch, L, L, d), causal_mask(L)
    functions = {"eager": masked_attention, "compiled": compiled_attention}
    repeat = 100 if device == "cuda" else 5
    return {name: latency(fn, q, k, v, visible, warmup=2, repeat=repeat).median_ms for name, fn in functions.items()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_5_time_test", "grade": true, "points": 1}
def check_timed(L, d, batch):
    seen = measure.timed(time_compiled, L, d, batch, watch=["masked_attention"])
    assert isinstance(seen.value, dict) and set(seen.value) == {"eager", "compiled"}, 'keys: "eager" and "compiled"'
    (q, k, v), mask = make_qkv(batch, L, L, d), causal_mask(L)
    for name, fn in {"eager": masked_attention, "compiled": compiled_attention}.items():
        once, what = measure.count(fn, q, k, v, mask), f"{name}, L = {L}, d = {d}, batch = {batch}"
        calls = seen.calls_of(once)
        assert calls, f"{what}: no timed call of one causal forward pass alone" + seen.beside(once)
        if name == "eager":
            graphs = any(requires_grad for call in calls for _, tensors in call.ran for *_, requires_grad in tensors)
            assert not graphs, f"{what}: the tensors require gradients; make them without"
        if name == "compiled":  # a timed call that enters the function is the one that records it
            said = "compiled: the first sample contains the time to compile; warm up"
            assert all(call.warmup or not call.ran for call in calls), said
        assert measure.is_median(seen.value[name], calls), f"{what}: {seen.value[name]} is not the median_ms of latency"
        of_three = [call for call in calls if len(call.samples_ms) >= 3]
        assert measure.is_median(seen.value[name], of_three), f"{what}: take at least three samples"


check_timed(44, 8, 2)
check_timed(36, 4, 3)
### BEGIN HIDDEN TESTS
check_timed(measure.draw(80, 99), measure.draw(10, 20), 1)
check_timed(measure.draw(40, 60), 8, measure.draw(4, 6))
### END HIDDEN TESTS

# %% [markdown]
# Here are the twenty settings of this lab, causal, B = 8. `needs` is what a training step has to hold at its worst
# moment: all that is held between the passes, and the peak of the backward pass above it. The last column is
# `rl.attention`, the library's FlashAttention. Times are measured for short sequences only.

# %%
B, settings = 8, list(PUBLISHED_NAIVE)
of_settings = {(L, d): compare_compiled(L, d, B) for L, d in settings}


def step_bytes(row):
    """Bytes at the worst moment of a training step."""
    return row["held_bytes"] + row["backward"]["peak_bytes"]


def flash_needs(L, d):
    q, k, v = (rl.zeros(B, L, d, device="meta").requires_grad_() for _ in range(3))
    o = rl.attention(q, k, v, is_causal=True)
    held = sum(saved.bytes for saved in rl.autograd.saved_tensors(o))
    with rl.count() as backward:
        o.backward(rl.ones(B, L, d, device="meta"))
    return step_bytes({"held_bytes": held, "backward": figures(backward)})


rows = []
for L, d in settings:
    both = [of_settings[L, d][which] for which in ("eager", "compiled")]
    launches = [f"{row['forward']['launches']} + {row['backward']['launches']}" for row in both]
    moved = [f"{(row['forward']['bytes'] + row['backward']['bytes']) / 2**30:.2f}" for row in both]
    needs = [f"{step_bytes(row) / 2**30:.3f}" for row in both]
    ms = [f"{one:.2f}" for one in time_compiled(L, d, B).values()] if L <= 1024 else ["", ""]
    rows.append((L, d, *launches, *moved, *needs, f"{flash_needs(L, d) / 2**30:.3f}", *ms))
names = ("launches", "moved GiB", "needs GiB")
head = ["L", "d", *(f"{name}, {which}" for name in names for which in ("eager", "compiled"))]
head += ["needs GiB, flash", "forward ms, eager", "forward ms, compiled"]
note = "Launches: forward + backward. Counts are for a CPU, times are of your device."
Table(head, rows, "A training step, causal, B = 8, fp32", note)

# %% [markdown]
# ### d) What it saves, and what stays ({points q1_5_values_test})
#
# Read your table. Where does the compiler help, and where does it not?
#
# - `matrices_not_moved`: how many reads and writes of a score matrix (B, L, L) in fp32 the compiled *forward* pass
#   saves at L = 8192 and B = 8, compared with the eager one, causal. Each read and each write of one matrix counts as
#   one;
# - `growth`: the factor by which `needs` of the *compiled* attention grows from L = 8192 to L = 16384, at d = 64. An
#   answer within 2% is right;
# - `too_long_eager` and `too_long_compiled`: the shortest of the five lengths that does not fit on a GPU with 12 GiB,
#   at d = 64;
# - `why_it_stays`: why does the compiled attention still write matrices of L x L? Choose a letter, and explain it in a
#   sentence below.
#     - `"a"`: The mask is an argument of L x L, so whatever is computed from it has that size too.
#     - `"b"`: Only the gradient needs such matrices, so the forward pass writes them for it.
#     - `"c"`: A product has a kernel of its own, which reads and writes whole matrices.
#     - `"d"`: A fused kernel has to write each of the steps inside it, so that they can be checked.

# %% nbgrader={"grade_id": "q1_5_values", "solution": true}
matrices_not_moved = None  # reads and writes, an int
growth = None  # a number
too_long_eager = None  # 256, 1024, 4096, 8192 or 16384
too_long_compiled = None  # 256, 1024, 4096, 8192 or 16384
why_it_stays = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
row = compare_compiled(8192, 64, 8)
saved_bytes = row["eager"]["forward"]["bytes"] - row["compiled"]["forward"]["bytes"]
matrices_not_moved = round(saved_bytes / (4 * 8 * 8192**2))  # what now stays inside fused kernels
growth = 4
too_long_eager = 8192
too_long_compiled = 16384
why_it_stays = "c"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q1_5_findings", "solution": true}
# *What I find about the compiler:*

# %% nbgrader={"grade_id": "q1_5_values_test", "grade": true, "points": 1}
assert is_count(matrices_not_moved), f"matrices_not_moved has to be an int, got {matrices_not_moved!r}"
assert is_number(growth) and growth > 0, f"growth has to be a number (1 means no growth), got {growth!r}"
for length in (too_long_eager, too_long_compiled):
    said = f"too_long_eager, too_long_compiled: expected 256, 1024, 4096, 8192 or 16384, got {length!r}"
    assert length in (256, 1024, 4096, 8192, 16384), said
assert why_it_stays in ("a", "b", "c", "d"), f'why_it_stays must be "a", "b", "c" or "d", got {why_it_stays!r}'
### BEGIN HIDDEN TESTS
x, mask = rl.ones(2, 128, 4), causal_mask(128, "cpu")
steps = [measure.gradients(fn, x, x, x, mask, upstream=x) for fn in (masked_attention, compiled_attention)]
before, after = (step.forward.bytes_read + step.forward.bytes_written for step in steps)
less = (before - after) / (4 * 2 * 128 * 128)
saved = "matrices_not_moved: divide the bytes that forward saves by those of one score matrix"
grown = "growth: divide what the compiled attention needs at L = 16384 by that at 8192"
column = "12 GiB are 12 times 2^30 bytes: read the column"
hints = [
    (is_near(matrices_not_moved, less, 0, absolute=0.1), saved),
    (is_near(growth, 4, 0.02), grown),
    (too_long_eager == 8192, f'too_long_eager: {column} "needs GiB, eager" at d = 64'),
    (too_long_compiled == 16384, f'too_long_compiled: {column} "needs GiB, compiled" at d = 64'),
]
wrong = [hint for right, hint in hints if not right]
assert not wrong, ". ".join(wrong)
assert_choice(
    why_it_stays,
    "c",
    a="Count it with is_causal=False. Which matrices are there without a mask?",
    b="Count a forward pass on tensors that do not require gradients. What is its peak?",
    d="What is made inside a fused kernel stays inside: see how many matrices are no longer moved.",
)
### END HIDDEN TESTS

# %% [markdown]
# The compiler saved launches and bytes, and you did not have to write a kernel. But it keeps the steps of your function
# as they are. To get rid of the matrices, the algorithm itself has to change. That is what FlashAttention does. Its
# first step is in the next part.
