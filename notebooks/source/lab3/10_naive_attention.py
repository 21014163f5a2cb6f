# %% [markdown]
# # Part 1. What the textbook's attention costs
#
# ## 1.1 Attention, written out ({points q1_1})
#
# Write `naive_attention(q, k, v, is_causal=False)` with `rl` operations, one after the other: compute the scores,
# subtract the maximum of each row, and take the exponentials, their sum, the weights and the output. The maximum
# cancels in the weights, and without it the exponentials of large scores overflow. Do not use `rl.softmax`,
# `rl.log_softmax` or `rl.attention`. This is the version that you will improve. You do not have to write a backward
# pass: rooflab records the operations and differentiates them.
#
# With a causal mask a query sees no later token. If L_q < L_kv, the queries belong to the last L_q tokens. So query i
# sees the keys j ≤ i + L_kv - L_q. Every other score becomes -inf. Use one mask (L_q, L_kv) for the whole batch.
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
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64")
    dO = make_qkv(B, L_q, 1, d, dtype="float64")[0]
    seen = measure.gradients(naive_attention, q, k, v, *[True] * is_causal, upstream=dO)
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    what = f"L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}, inputs times {scale:g}"
    assert_close(seen.value, library_attention(q, k, v, is_causal)[0], rtol=1e-9, atol=1e-9, name=f"O at {what}")
    for counted in (seen.forward, seen.backward):
        assert_own_work(counted, what)
    expected = library_gradients(q, k, v, dO, is_causal)
    for name, ours, exact in zip(("dQ", "dK", "dV"), seen.gradients, expected, strict=True):
        assert_close(ours, exact, rtol=1e-8, atol=1e-9, name=f"{name} at {what}")


check_naive(2, 12, 20, 8)
check_naive(3, 20, 15, 8, scale=40.0)  # exponentials overflow without the maximum
### BEGIN HIDDEN TESTS
check_naive(3, measure.draw(20, 40), measure.draw(5, 15), measure.draw(4, 16))
check_naive(2, 19, 19, 8, scale=30.0)
check_naive(1, measure.draw(130, 160), measure.draw(130, 160), 4)
check_naive(1, 1, 1, 4)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_causal_test", "grade": true, "points": 1}
check_naive(3, 16, 16, 8, is_causal=True)
check_naive(2, 5, 12, 8, is_causal=True)
check_naive(3, 15, 15, 8, is_causal=True, scale=40.0)  # hidden scores are the larger ones, by hundreds
check_far_apart(naive_attention, 6, 6)
### BEGIN HIDDEN TESTS
check_naive(12, measure.draw(5, 15), measure.draw(20, 40), measure.draw(4, 16), is_causal=True)
check_naive(3, 19, 19, 8, is_causal=True, scale=30.0)
check_naive(4, 1, 1, 4, is_causal=True)
check_far_apart(naive_attention, measure.draw(5, 9), measure.draw(10, 20))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_written_out_test", "grade": true, "points": 2}
def check_kept(B, L, d, is_causal):
    q, k, v = make_qkv(B, L, L, d)
    seen = measure.gradients(naive_attention, q, k, v, is_causal, upstream=q)
    ran = ready_made(seen.forward)
    assert not ran, f"{ran} ran: write the softmax in single operations"
    macs = 2 * B * L * L * d
    assert seen.forward.macs == macs, f"expected {macs} MACs in two rl products, got {seen.forward.macs}"
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved if np.prod(shape) >= L * L)
    beside = kept % (4 * B * L * L)
    what = "at most one boolean mask (L, L), for the whole batch" if is_causal else "nothing else of that size"
    case = f"is_causal = {is_causal}: expected saved fp32 matrices (B, L, L) and {what}"
    assert beside in (0, is_causal * L * L), f"{case}; got {beside} bytes besides the matrices"


check_kept(2, 64, 8, False)
check_kept(3, 40, 8, True)
### BEGIN HIDDEN TESTS
check_kept(1, measure.draw(80, 99), measure.draw(3, 8), False)
check_kept(measure.draw(5, 8), measure.draw(40, 60), 4, True)
### END HIDDEN TESTS

# %% [markdown]
# What does the forward pass keep for the backward pass, and why? The backward rule of each operation needs some tensors
# of the forward pass. The rule of the exponential needs its result, for example, and the rule of a product needs both
# factors. `rl.autograd.saved_tensors(y)` lists what is kept for the gradient of `y`, each block of memory once. Find
# the large ones in the two tables. Which op needs them?

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
# How much memory is that for long sequences? Take B = 8, L = 16384, fp32. A *score matrix* is one (B, L, L) tensor.
#
# - `score_matrix_mib`: the size of one score matrix in MiB (2²⁰ bytes);
# - `held_written_out`: how many of them your `naive_attention` keeps for its backward pass when it is not causal.
#   Exponentials and weights have the size of a score matrix and count as one each;
# - `held_with_softmax`: how many are kept when `rl.softmax` replaces all steps from the maximum to the weights. Its
#   backward rule needs only its result y: $dx_i = y_i\,(dy_i - \sum_j y_j\,dy_j)$;
# - `peak_with_softmax`: how many exist at the worst moment of that *forward* pass, if each is freed as soon as it is no
#   longer needed;
# - `held_flash`: how many FlashAttention keeps. It keeps Q, K, V, O and one number for each query.
#
# Measure where you can. `rl.autograd.saved_tensors` lists what is kept. `with rl.count() as c:` around a forward pass
# gives `c.peak_bytes`, the most memory held at once above what was there before. A small L is enough: double it and see
# what grows as L².

# %% nbgrader={"grade_id": "q1_2", "solution": true}
score_matrix_mib = None  # MiB
held_written_out = None  # score matrices, an int
held_with_softmax = None  # score matrices, an int
peak_with_softmax = None  # score matrices, an int
held_flash = None  # score matrices, an int
### BEGIN SOLUTION
score_matrix_mib = 8 * 16384**2 * 4 / 2**20
held_written_out = 3  # scores (for amax), exponentials, weights
held_with_softmax = 1  # the weights, which the last product keeps as well
peak_with_softmax = 2  # scores, while softmax writes the weights
held_flash = 0
### END SOLUTION

# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
said = f"score_matrix_mib: how many numbers does a score matrix hold, of how many bytes? got {score_matrix_mib}"
assert is_near(score_matrix_mib, 8000, 0.2), said
for name, value in (("held_written_out", held_written_out), ("held_flash", held_flash)):
    assert is_count(value), f"{name} has to be an int, got {value!r}"
### BEGIN HIDDEN TESTS
assert is_near(score_matrix_mib, 8192), "score_matrix_mib: a MiB has 2^20 bytes"
q, k, v = make_qkv(2, 64, 64, 8)
seen = measure.gradients(naive_attention, q, k, v, upstream=q)
kept = sum(bytes for op, shape, dtype, bytes in seen.saved if np.prod(shape) >= 64 * 64)
assert held_written_out == kept // (4 * 2 * 64 * 64), "held_written_out: look at the table of saved tensors, not causal"
assert held_flash == 0, "held_flash: do Q, K, V, O and one number a query grow as L²?"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_softmax_test", "grade": true, "points": 1}
for name, value in (("held_with_softmax", held_with_softmax), ("peak_with_softmax", peak_with_softmax)):
    assert is_count(value), f"{name} has to be an int, got {value!r}"
### BEGIN HIDDEN TESTS
assert held_with_softmax == 1, "held_with_softmax: list saved_tensors of a version with rl.softmax, at two lengths"
assert peak_with_softmax == 2, "peak_with_softmax: measure c.peak_bytes of a version with rl.softmax, at two lengths"
### END HIDDEN TESTS

# %% [markdown]
# A similar experiment was published for an A800 with 80 GiB, also with B = 8 and in fp32.
# `PUBLISHED_NAIVE[L, d]["held_mib"]` is the memory in use just before the backward pass, in MiB. Can you tell from
# these figures what that program kept?
#
# - `published_bytes_per_l2`: how many bytes the memory *grows by* for each unit of L². Take the difference between
#   L = 8192 and L = 16384 at d = 16, so that the memory that does not grow cancels.
# - `beside_matrices`: divide that number by the bytes that one score matrix takes for each unit of L². The result is
#   not a whole number. What does the remainder belong to?
#     - `"a"`: the output of the forward pass
#     - `"b"`: memory blocks that are rounded up
#     - `"c"`: a mask shared by the batch
#     - `"d"`: a gradient in 8 bits

# %% nbgrader={"grade_id": "q1_2_published", "solution": true}
published_bytes_per_l2 = None  # bytes
beside_matrices = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
grown_mib = PUBLISHED_NAIVE[16384, 16]["held_mib"] - PUBLISHED_NAIVE[8192, 16]["held_mib"]
published_bytes_per_l2 = grown_mib * 2**20 / (16384**2 - 8192**2)
beside_matrices = "c"  # 12 B + 1: that of naive_attention with is_causal=True, to the byte
### END SOLUTION

# %% nbgrader={"grade_id": "q1_2_published_test", "grade": true, "points": 1}
said = f"expected about 100 bytes for each unit of L², got {published_bytes_per_l2}"
assert is_near(published_bytes_per_l2, 100, 0.1), said
### BEGIN HIDDEN TESTS
grown_mib = PUBLISHED_NAIVE[16384, 16]["held_mib"] - PUBLISHED_NAIVE[8192, 16]["held_mib"]
slope = grown_mib * 2**20 / (16384**2 - 8192**2)
right = is_near(published_bytes_per_l2, slope, 3e-4) or is_near(published_bytes_per_l2, 97, 1e-6)
assert right, "published_bytes_per_l2: divide the growth in bytes by the growth of L², from one length to the other"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_extra_test", "grade": true, "points": 1}
assert beside_matrices in ("a", "b", "c", "d"), f'beside_matrices must be "a", "b", "c" or "d", got {beside_matrices!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    beside_matrices,
    "c",
    a="The output grows as L, and so does all that it needs.",
    b="Rounding does not add a byte for each pair of tokens.",
    d="Before the backward pass there is no gradient yet. Compare with the tables above.",
)
### END HIDDEN TESTS
