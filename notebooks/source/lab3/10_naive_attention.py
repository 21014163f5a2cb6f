# %% [markdown]
# # Part 1. What the textbook's attention costs
#
# ## 1.1 Attention, written out ({points q1_1})
#
# Write `naive_attention(q, k, v, is_causal=False)` with `rl` operations, one after the other, as the formula says:
# scores, the maximum of each row subtracted, exponentials, their sum, weights, output. Do not use `rl.softmax` or
# `rl.attention`. This is the version that you will improve on. You need not write a backward pass, because rooflab
# records the operations and goes back through them.
#
# With a causal mask a query sees no later token. The last query belongs to the same token as the last key, so query i
# sees the keys j ≤ i + L_kv - L_q. Every other score becomes -inf.
#
# <details><summary>Hint 1: which keys are visible</summary>
#
# Make a boolean tensor `visible` of shape (L_q, L_kv) by comparing two `rl.arange`, one as a column (`.unsqueeze(1)`)
# and one as a row.
# </details>
# <details><summary>Hint 2: how to mask</summary>
#
# `rl.where(visible, scores, float("-inf"))` keeps the visible scores. Do this before you take the maximum.
# </details>


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def naive_attention(q, k, v, is_causal=False):
    """Attention of q (B, L_q, d) over k and v (B, L_kv, d), through whole matrices: (B, L_q, d)."""
    ### BEGIN SOLUTION
    (L_q, d), L_kv = q.shape[1:], k.shape[1]
    scores = (q @ k.mT) * d**-0.5
    if is_causal:
        last = rl.arange(L_q, device=q.device).unsqueeze(1) + (L_kv - L_q)
        visible = rl.arange(L_kv, device=q.device).unsqueeze(0) <= last
        scores = rl.where(visible, scores, float("-inf"))
    exponentials = rl.exp(scores - scores.amax(-1, keepdim=True))
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ v
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 1}
def check_naive(B, L_q, L_kv, d, is_causal=False, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64", seed=L_q)
    dO = make_qkv(B, L_q, 1, d, seed=9, dtype="float64")[0]
    seen = measure.gradients(naive_attention, q, k, v, is_causal, upstream=dO)
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    what = f"L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}, inputs times {scale:g}"
    O = attention_float64(q, k, v, is_causal)[0]
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name=f"O at {what}")
    expected = attention_gradients_float64(q, k, v, dO, is_causal)
    for name, ours, exact in zip(("dQ", "dK", "dV"), seen.gradients, expected, strict=True):
        assert_close(ours, exact, rtol=1e-8, atol=1e-9, name=f"{name} at {what}")


check_naive(2, 12, 20, 8)
check_naive(3, 20, 15, 8, scale=40.0)  # exponentials overflow without the maximum
### BEGIN HIDDEN TESTS
check_naive(3, 33, 7, 16)
check_naive(2, 19, 19, 8, scale=30.0)
check_naive(1, 1, 1, 4)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_causal_test", "grade": true, "points": 1}
check_naive(2, 16, 16, 8, is_causal=True)
check_naive(2, 5, 12, 8, is_causal=True)
check_naive(3, 15, 15, 8, is_causal=True, scale=40.0)  # hidden scores are the larger ones, by hundreds
### BEGIN HIDDEN TESTS
check_naive(1, 7, 33, 16, is_causal=True)
check_naive(2, 19, 19, 8, is_causal=True, scale=30.0)
check_naive(1, 1, 1, 4, is_causal=True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_written_out_test", "grade": true, "points": 2}
def check_kept(B, L, d, is_causal):
    q, k, v = make_qkv(B, L, L, d)
    seen = measure.gradients(naive_attention, q, k, v, is_causal, upstream=q)
    assert not seen.forward.by_op.keys() & {"softmax", "attention"}, "write the softmax out"
    assert seen.forward.macs == 2 * B * L * L * d, "compute both products with rl"
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved if np.prod(shape) >= L * L)
    beside = kept % (4 * B * L * L)
    what = "beside whole fp32 matrices (B, L, L) the backward pass needs "
    what += "one boolean mask for the whole batch" if is_causal else "nothing as large"
    assert beside == is_causal * L * L, f"is_causal = {is_causal}: {what}; {beside} bytes are kept"


check_kept(2, 64, 8, False)
check_kept(3, 40, 8, True)
### BEGIN HIDDEN TESTS
check_kept(1, 96, 4, False)
check_kept(8, 48, 4, True)
### END HIDDEN TESTS

# %% [markdown]
# What is kept for the backward pass, and why? The backward rule of each operation needs some tensors of the forward
# pass. The rule of the exponential needs its result, for example, and the rule of a product needs both factors.
# `rl.autograd.saved_tensors(y)` lists what is kept for the gradient of `y`, each block of memory once. Find the large
# ones in the two tables.

# %%
B, L, d = 8, 512, 64
for is_causal in (False, True):
    q, k, v = (x.requires_grad_() for x in make_qkv(B, L, L, d))
    rows = [
        (saved.op, str(saved.shape), str(saved.dtype), f"{saved.bytes / 2**20:.3f}", f"{saved.bytes / L**2:.1f}")
        for saved in rl.autograd.saved_tensors(naive_attention(q, k, v, is_causal))
    ]
    title = f"Kept by naive_attention, B = {B}, L = {L}, d = {d}, is_causal = {is_causal}"
    display(Table(("op", "shape", "dtype", "MiB", "bytes per L²"), rows, title))

# %% [markdown]
# ## 1.2 How much memory is kept ({points q1_2})
#
# Now work out what that means for long sequences: B = 8, L = 16384, fp32. A *score matrix* is one (B, L, L) tensor.
#
# - `score_matrix_mib`: the size of one score matrix in MiB (2²⁰ bytes);
# - `held_written_out`: how many of them your `naive_attention` keeps for its backward pass, not causal. Exponentials
#   and weights have the size of a score matrix and count as one each;
# - `held_with_softmax`: how many are kept when `rl.softmax` replaces the four steps in the middle. Its backward rule
#   needs only its result y: $dx_i = y_i\,(dy_i - \sum_j y_j\,dy_j)$;
# - `peak_with_softmax`: how many exist at the worst moment of that *forward* pass, if each is freed as soon as it is no
#   longer needed;
# - `held_flash`: how many FlashAttention keeps. It keeps Q, K, V, O and one number for each query.
#
# Measure where you can. `rl.autograd.saved_tensors` lists what is kept. `with rl.count() as c:` around a forward pass
# gives `c.peak_bytes`, the most memory held at once above what was there before. A small L is enough: double it and see
# what grows as L².

# %% nbgrader={"grade_id": "q1_2", "solution": true}
score_matrix_mib = None
held_written_out = None
held_with_softmax = None
peak_with_softmax = None
held_flash = None
### BEGIN SOLUTION
score_matrix_mib = 8 * 16384**2 * 4 / 2**20
held_written_out = 3  # scores (for amax), exponentials, weights
held_with_softmax = 1  # the weights, which the last product keeps as well
peak_with_softmax = 2  # scores, while softmax writes the weights
held_flash = 0
### END SOLUTION

# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
assert is_near(score_matrix_mib, 8000, 0.2), "score_matrix_mib: how many numbers are in (B, L, L), of how many bytes?"
assert is_count(held_written_out) and is_count(held_flash), "the numbers of matrices are whole numbers"
### BEGIN HIDDEN TESTS
assert is_near(score_matrix_mib, 8192), "score_matrix_mib: a MiB has 2^20 bytes"
q, k, v = make_qkv(2, 64, 64, 8)
seen = measure.gradients(naive_attention, q, k, v, upstream=q)
kept = sum(bytes for op, shape, dtype, bytes in seen.saved if np.prod(shape) >= 64 * 64)
assert held_written_out == kept // (4 * 2 * 64 * 64), "held_written_out: look at the table of saved tensors, not causal"
assert held_flash == 0, "held_flash: do Q, K, V, O and one number a query grow as L²?"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_softmax_test", "grade": true, "points": 1}
assert is_count(held_with_softmax) and is_count(peak_with_softmax), "the numbers of matrices are whole numbers"
### BEGIN HIDDEN TESTS
assert held_with_softmax == 1, "held_with_softmax: list saved_tensors of a version with rl.softmax, at two lengths"
assert peak_with_softmax == 2, "peak_with_softmax: measure c.peak_bytes of a version with rl.softmax, at two lengths"
### END HIDDEN TESTS

# %% [markdown]
# A similar experiment was published for an 80 GB A800, also with B = 8 and in fp32. `PUBLISHED_NAIVE[L, d]["held_mib"]`
# is the memory in use just before the backward pass, in MiB. Can you tell from these figures what that program kept?
#
# - `published_bytes_per_l2`: how many bytes the memory *grows by* for each unit of L². Take the difference between
#   L = 8192 and L = 16384 at d = 16, so that the memory that does not grow cancels.
# - `beside_matrices`: divide that number by the bytes that one score matrix takes for each unit of L². It does not come
#   out even. What does the rest belong to?
#     - `"a"`: the output of the forward pass
#     - `"b"`: blocks that are rounded up
#     - `"c"`: a mask shared by the batch
#     - `"d"`: a gradient in 8 bits

# %% nbgrader={"grade_id": "q1_2_published", "solution": true}
published_bytes_per_l2 = None
beside_matrices = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
grown_mib = PUBLISHED_NAIVE[16384, 16]["held_mib"] - PUBLISHED_NAIVE[8192, 16]["held_mib"]
published_bytes_per_l2 = grown_mib * 2**20 / (16384**2 - 8192**2)
beside_matrices = "c"  # 12 B + 1: that of naive_attention with is_causal=True, to the byte
### END SOLUTION

# %% nbgrader={"grade_id": "q1_2_published_test", "grade": true, "points": 1}
assert is_near(published_bytes_per_l2, 100, 0.1), "about a hundred bytes for each unit of L²"
### BEGIN HIDDEN TESTS
grown_mib = PUBLISHED_NAIVE[16384, 16]["held_mib"] - PUBLISHED_NAIVE[8192, 16]["held_mib"]
slope = grown_mib * 2**20 / (16384**2 - 8192**2)
right = is_near(published_bytes_per_l2, slope, 3e-4) or is_near(published_bytes_per_l2, 97, 1e-6)
assert right, "published_bytes_per_l2: divide the growth in bytes by the growth of L², from one length to the other"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_extra_test", "grade": true, "points": 1}
assert beside_matrices in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    beside_matrices,
    "c",
    a="The output grows as L, and so does all that it needs.",
    b="Rounding does not add a byte for each pair of tokens.",
    d="Before the backward pass there is no gradient yet. Compare with the tables above.",
)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.3 The benchmark ({points q1_3})
#
# Does time grow as memory does? Write `benchmark_naive(L, d, batch, is_causal=False)`. It returns a dict with three
# figures of one size, in fp32 on `device`:
#
# - `"forward_ms"`: the median latency of `naive_attention`, on tensors that require gradients;
# - `"backward_ms"`: the median latency of the backward pass *alone*.
#   `rl.autograd.grad(o, (q, k, v), dO, retain_graph=True)` can be called many times after one forward pass;
# - `"held_bytes"`: the bytes that tensors hold just before the backward pass, above what they held when your function
#   was called. `rl.memory.allocated(device)` gives both numbers. Make the inputs inside the function, so that they
#   count.
#
# Running out of memory is a result as well. Catch `rl.OutOfMemoryError` and return the same dict with three times
# `None`. On a GPU take a hundred repeats. On a CPU take five, and two for long sequences.


# %% nbgrader={"grade_id": "q1_3", "solution": true}
def benchmark_naive(L, d, batch, is_causal=False):
    """{"forward_ms", "backward_ms", "held_bytes"} of naive_attention; None each when out of memory."""
    ### BEGIN SOLUTION
    before = rl.memory.allocated(device)
    repeat = 100 if device == "cuda" else 5 if L <= 1024 else 2
    try:
        q, k, v = (rl.randn(batch, L, d, device=device).requires_grad_() for _ in range(3))
        dO = rl.randn(batch, L, d, device=device)
        forward = latency(naive_attention, q, k, v, is_causal, warmup=2, repeat=repeat)
        o = naive_attention(q, k, v, is_causal)
        held = rl.memory.allocated(device) - before

        def back(dO):
            return rl.autograd.grad(o, (q, k, v), dO, retain_graph=True)

        backward = latency(back, dO, warmup=1, repeat=repeat)
    except rl.OutOfMemoryError:
        return {"forward_ms": None, "backward_ms": None, "held_bytes": None}
    return {"forward_ms": forward.median_ms, "backward_ms": backward.median_ms, "held_bytes": held}
    ### END SOLUTION


# %% [markdown]
# The test runs your function on a *virtual clock*. Each timed call runs once, and the test makes up its time. So the
# test sees what you timed, and whether you returned the time that the clock gave. The speed of your machine does not
# matter.


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def benchmarked(L, d, batch, is_causal, **limits):
    seen = measure.timed(benchmark_naive, L, d, batch, is_causal, watch=["naive_attention"], **limits)
    keys = {"forward_ms", "backward_ms", "held_bytes"}
    assert isinstance(seen.value, dict) and set(seen.value) == keys, f"the keys are {sorted(keys)}"
    return seen


def check_forward(L, d, batch, is_causal):
    seen, input = benchmarked(L, d, batch, is_causal), ((batch, L, d), "float32", True)
    forward = [call for call in seen.calls if call.ran == (("naive_attention", (input, input, input)),)]
    what = f"three fp32 tensors of shape {(batch, L, d)} that require gradients"
    assert forward, f"forward: time naive_attention on {what}"
    masked = [call for call in forward if ("where" in call.by_op) == is_causal]
    assert masked, f"is_causal = {is_causal}: pass it on to naive_attention"
    assert measure.is_median(seen.value["forward_ms"], masked), "forward_ms is not the median that latency gave"


check_forward(48, 8, 2, False)
check_forward(32, 4, 3, True)
### BEGIN HIDDEN TESTS
check_forward(128, 8, 2, False)
check_forward(96, 16, 1, True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_3_backward_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def check_backward(L, d, batch, is_causal):
    seen, (q, k, v) = benchmarked(L, d, batch, is_causal), make_qkv(batch, L, L, d)
    macs = measure.gradients(naive_attention, q, k, v, is_causal, upstream=q).backward.macs
    backward = [call for call in seen.calls if not call.ran]
    assert backward, "backward: time rl.autograd.grad on a result that was computed before"
    alone = [call for call in backward if call.macs == macs]
    assert alone, f"backward: one backward pass of naive_attention is {macs:,} MACs; time it alone, at this size"
    assert measure.is_median(seen.value["backward_ms"], alone), "backward_ms is not the median that latency gave"


check_backward(48, 8, 2, False)
check_backward(32, 4, 3, True)
### BEGIN HIDDEN TESTS
check_backward(128, 8, 2, False)
check_backward(96, 16, 1, True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_3_held_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def check_held(L, d, batch, is_causal):
    held = benchmarked(L, d, batch, is_causal).value["held_bytes"]
    beside = benchmarked(L, d, batch, is_causal, beside_bytes=2**20).value["held_bytes"]
    assert is_count(held) and is_count(beside), "bytes are a whole number"
    assert held == beside, "another tensor was alive before your function was called: subtract what was held then"
    q, k, v = make_qkv(batch, L, L, d)
    saved = measure.gradients(naive_attention, q, k, v, is_causal, upstream=q).saved
    rest = held - sum(bytes for op, shape, dtype, bytes in saved if np.prod(shape) >= L * L)
    assert rest >= 4 * 4 * batch * L * d, "q, k, v, the output and all that is kept for the backward pass are held"
    assert rest <= 4 * (8 * d + 8) * batch * L, f"{rest} bytes more than what is kept for the backward pass are held"


check_held(128, 8, 2, False)
check_held(100, 4, 3, True)
### BEGIN HIDDEN TESTS
check_held(160, 16, 1, False)
check_held(144, 8, 2, True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_memory_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
nothing = {"forward_ms": None, "backward_ms": None, "held_bytes": None}
assert benchmark_naive(2**20, 1, 8) == nothing, "a score matrix of 32 TiB fits nowhere: three times None"
small = measure.timed(benchmark_naive, 128, 8, 2, False, spare_bytes=200_000)
assert small.value == nothing, "200 kB are too little for L = 128: three times None"
### BEGIN HIDDEN TESTS
# Room for the forward pass, and not for the backward pass.
backward_fails = measure.timed(benchmark_naive, 256, 4, 1, False, spare_bytes=256 * 256 * 4 * 4 + 100_000)
assert backward_fails.value == nothing, "out of memory in the backward pass: three times None as well"
row = benchmark_naive(64, 8, 2)
assert isinstance(row, dict) and isinstance(row.get("forward_ms"), float), "after that, a small size has to work again"
### END HIDDEN TESTS

# %% [markdown]
# This is the whole table for your machine, as far as it gets in ten seconds. It is causal, and the published figure for
# the A800 stands beside each of yours. A figure with "~" was not measured. It is predicted from the longest length that
# was, growing as L². While the backward pass runs, it holds up to six more matrices. So a size can run out of memory
# although its forward pass fits.

# %%
naive_sweep = sweep(lambda L, d: benchmark_naive(L, d, 8, is_causal=True), budget_s=10)
naive_sweep

# %%
measured, predicted = naive_sweep.values("forward_ms", 64), naive_sweep.predictions("forward_ms", 64)
published = {L: PUBLISHED_NAIVE[L, 64]["forward_ms"] for L in naive_sweep.lengths}
rl.plots.plot_length_sweep(
    {"here": measured, "A800, published": published},
    predicted={"here": predicted},
    title="naive_attention, forward, causal, B = 8, d = 64, fp32",
)

# %% [markdown]
# Look at the long sequences. Keep d and double L: time and memory grow by a factor of about four. Now keep L and go
# from d = 16 to d = 128. The products take eight times the arithmetic, and at L = 16384 the A800 needs only a quarter
# more time. So on that GPU arithmetic is not what takes the time. (On a CPU arithmetic costs more, so d matters more.)
# What does take the time? You will count it in Part 7.
#
# ## 1.4 A rule that keeps only the weights ({points q1_4})
#
# The operations that rooflab recorded keep more than the gradient needs. If you write the backward rule yourself, you
# can keep less. It follows from the rule of softmax in 1.2, with the weights P and the gradient dO that arrives from
# above:
#
# $$dV = P^T dO, \qquad dP = dO\, V^T, \qquad dS_i = P_i \circ (dP_i - \textstyle\sum_j P_{ij}\, dP_{ij}),$$
#
# $$dQ = dS\, K / \sqrt d, \qquad dK = dS^T Q / \sqrt d.$$
#
# Complete the `rl.autograd.Function`. `forward` leaves what `backward` needs with `ctx.save_for_backward(...)`.
# `backward` finds it in `ctx.saved_tensors`, in the same order. Save Q, K, V and the weights, and nothing else. Here
# you may use `rl.softmax`, and there is no mask. You will write FlashAttention in the same form.


# %% nbgrader={"grade_id": "q1_4", "solution": true}
class LeanAttention(rl.autograd.Function):
    """Attention of Q (B, L_q, d) over K and V (B, L_kv, d) that keeps one score matrix: (B, L_q, d)."""

    @staticmethod
    def forward(ctx, Q, K, V):
        ### BEGIN SOLUTION
        weights = rl.softmax((Q @ K.mT) * Q.shape[-1] ** -0.5)
        ctx.save_for_backward(Q, K, V, weights)
        return weights @ V
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dO):
        ### BEGIN SOLUTION
        Q, K, V, weights = ctx.saved_tensors
        dP = dO @ V.mT
        dS = weights * (dP - (weights * dP).sum(-1, keepdim=True)) * Q.shape[-1] ** -0.5
        return dS @ K, dS.mT @ Q, weights.mT @ dO
        ### END SOLUTION


def lean_attention(q, k, v):
    return LeanAttention.apply(q, k, v)


# %% nbgrader={"grade_id": "q1_4_test", "grade": true, "points": 2}
def check_lean(B, L_q, L_kv, d):
    q, k, v = make_qkv(B, L_q, L_kv, d, dtype="float64", seed=L_q)
    dO = make_qkv(B, L_q, 1, d, seed=9, dtype="float64")[0]
    seen = measure.gradients(lean_attention, q, k, v, upstream=dO)
    assert_close(seen.value, attention_float64(q, k, v)[0], rtol=1e-9, atol=1e-9, name="O")
    exact = attention_gradients_float64(q, k, v, dO)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert isinstance(ours, rl.Tensor), f"no gradient {name} came back"
        assert_close(ours, expected, rtol=1e-8, atol=1e-9, name=f"{name} at L_q = {L_q}, L_kv = {L_kv}, d = {d}")
    return seen


check_lean(2, 10, 14, 6)
check_lean(1, 12, 5, 9)
### BEGIN HIDDEN TESTS
check_lean(3, 17, 9, 16)
check_lean(1, 1, 30, 4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_4_saved_test", "grade": true, "points": 1}
def check_kept_lean(B, L, d):
    seen = check_lean(B, L, L, d)
    matrices = [shape for op, shape, dtype, bytes in seen.saved if int(np.prod(shape)) == B * L * L]
    assert matrices == [(B, L, L)], f"one matrix is to be kept, the weights; kept are {matrices}"
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved)
    assert kept == 8 * B * (L * L + 3 * L * d), "save Q, K, V and the weights, and nothing else"


check_kept_lean(2, 24, 5)
### BEGIN HIDDEN TESTS
check_kept_lean(3, 40, 8)
### END HIDDEN TESTS
