# %% [markdown]
# # Part 1. What the textbook's attention costs
#
# ## 1.1 Attention, written out (4 points)
#
# Write `naive_attention(q, k, v, is_causal=False)` with `rl` operations, one after the other, as the formula stands:
# scores, the maximum of each row subtracted, exponentials, their sum, weights, output. No `rl.softmax`, no
# `rl.attention`, and nothing clever such as detaching the maximum: this is the one to improve on. It is differentiable
# as it is, for rooflab's tape follows the operations.
#
# Causal means that the last query stands beside the last key: query i sees the keys j ≤ i + L_kv - L_q. Give the other
# scores the value -inf with `rl.where(visible, scores, float("-inf"))`, where `visible` is a boolean (L_q, L_kv) tensor
# of comparisons of `rl.arange`.


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
    exponentials = rl.exp(scores - scores.max(-1, keepdim=True))
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ v
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 2}
def check_naive(B, L_q, L_kv, d, is_causal=False, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64", seed=L_q)
    dO = make_qkv(B, L_q, 1, d, seed=9, dtype="float64")[0]
    seen = measure.gradients(naive_attention, q, k, v, is_causal, upstream=dO)
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    what = f"L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    assert_close(
        seen.value,
        attention_float64(q, k, v, is_causal)[0],
        rtol=1e-9,
        atol=1e-9,
        name=f"O at {what}",
    )
    expected = attention_gradients_float64(q, k, v, dO, is_causal)
    for name, ours, exact in zip(("dQ", "dK", "dV"), seen.gradients, expected, strict=True):
        assert_close(ours, exact, rtol=1e-8, atol=1e-9, name=f"{name} at {what}")


check_naive(2, 12, 20, 8)
check_naive(2, 16, 16, 8, is_causal=True)
### BEGIN HIDDEN TESTS
check_naive(1, 7, 33, 16, is_causal=True)
check_naive(3, 33, 7, 16)
check_naive(2, 19, 19, 8, scale=30.0)
check_naive(2, 19, 19, 8, is_causal=True, scale=30.0)  # what is not seen is the larger by hundreds
check_naive(1, 1, 1, 4, is_causal=True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_written_out_test", "grade": true, "points": 2}
def check_kept(B, L, d, is_causal):
    q, k, v = make_qkv(B, L, L, d)
    seen = measure.gradients(naive_attention, q, k, v, is_causal, upstream=q)
    assert not seen.forward.by_op.keys() & {"softmax", "attention"}, "write the softmax out"
    assert seen.forward.macs == 2 * B * L * L * d, "the two products are rl's"
    kept = sorted(bytes for op, shape, dtype, bytes in seen.saved if np.prod(shape) >= L * L)
    return kept


assert check_kept(2, 64, 8, False) == 3 * [4 * 2 * 64 * 64], (
    "the backward pass needs three score matrices here: scores, exponentials, weights"
)
### BEGIN HIDDEN TESTS
assert check_kept(1, 96, 4, False) == 3 * [4 * 96 * 96]
assert sum(check_kept(8, 48, 4, True)) == (3 * 4 * 8 + 1) * 48 * 48, (
    "one boolean mask for the whole batch"
)
### END HIDDEN TESTS

# %% [markdown]
# What does the tape keep, and why? A backward rule needs some of the tensors that the forward pass had in hand:
# `max` must know where its maximum was, `exp` and the division reuse their results and operands, the last product needs
# both factors. `rl.autograd.saved_tensors(y)` lists what is kept for the gradient of `y`, each block of memory once.

# %%
B, L, d = 8, 512, 64
for is_causal in (False, True):
    q, k, v = (x.requires_grad_() for x in make_qkv(B, L, L, d))
    print(
        f"kept for the backward pass of naive_attention at B = {B}, L = {L}, d = {d}, is_causal = {is_causal}:"
    )
    for saved in rl.autograd.saved_tensors(naive_attention(q, k, v, is_causal)):
        print(
            f"    {saved.op:8} {saved.shape!s:16} {saved.dtype!s:8} {saved.bytes / 2**20:7.3f} MiB",
            end="   ",
        )
        print(f"{saved.bytes / L**2:5.1f} bytes per L²")

# %% [markdown]
# ## 1.2 The account (4 points)
#
# Now settle the account for a length that hurts: B = 8, L = 16384, fp32. A *score matrix* is one (B, L, L) tensor.
#
# - `score_matrix_mib`: the size of one, in MiB (2²⁰ bytes);
# - `held_written_out`: how many your `naive_attention` keeps for its backward pass (not causal);
# - `held_with_softmax`: how many are kept when `rl.softmax` replaces the four steps in the middle. Its backward rule
#   needs only its result y: $dx_i = y_i\,(dy_i - \sum_j y_j\,dy_j)$;
# - `peak_with_softmax`: how many exist at once, at the worst moment of that *forward* pass, if each is freed as soon as
#   it is not needed any more;
# - `held_flash`: how many FlashAttention keeps. It keeps Q, K, V, O and one number for each query.
#
# Measure instead of guessing where you can: `rl.autograd.saved_tensors`, and `with rl.count() as c:` around a forward
# pass, whose `c.peak_bytes` is the most memory held at once, above what was there before. A small L will do; what
# grows with L² shows when you double it.
#
# The same experiment was published for an 80 GB A800: `PUBLISHED_NAIVE[L, d]["held_mib"]` is the memory in use just
# before the backward pass, in MiB.
#
# - `published_bytes_per_l2`: by how many bytes it grows for each unit of L² (take L = 8192 and 16384 at d = 16);
# - `extra_byte`: three score matrices of fp32 at B = 8 make 96 bytes for each unit of L², so one is left over. What is
#   it?
#     - `"a"`: the output, which grows like L² too
#     - `"b"`: the allocator rounds every block up by one per cent
#     - `"c"`: a boolean L x L mask, shared by the batch
#     - `"d"`: the gradient of the scores, in 8 bits

# %% nbgrader={"grade_id": "q1_2", "solution": true}
score_matrix_mib = None
held_written_out = None
held_with_softmax = None
peak_with_softmax = None
held_flash = None
published_bytes_per_l2 = None
extra_byte = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
score_matrix_mib = 8 * 16384**2 * 4 / 2**20
held_written_out = 3  # scores (for max), exponentials, weights
held_with_softmax = 1  # the weights, which the last product keeps as well
peak_with_softmax = 2  # scores, while softmax writes the weights
held_flash = 0
grown_mib = PUBLISHED_NAIVE[16384, 16]["held_mib"] - PUBLISHED_NAIVE[8192, 16]["held_mib"]
published_bytes_per_l2 = grown_mib * 2**20 / (16384**2 - 8192**2)
extra_byte = "c"  # 12 B + 1: that of naive_attention with is_causal=True, to the byte
### END SOLUTION

# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 2}
assert is_near(score_matrix_mib, 8000, 0.2), "8 x 16384 x 16384 numbers of 4 bytes"
for number in (held_written_out, held_with_softmax, peak_with_softmax, held_flash):
    assert is_count(number), "the numbers of matrices are whole numbers"
### BEGIN HIDDEN TESTS
assert is_near(score_matrix_mib, 8192), "in MiB, of 2^20 bytes"
assert (held_written_out, held_with_softmax, peak_with_softmax, held_flash) == (3, 1, 2, 0)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_published_test", "grade": true, "points": 2}
assert extra_byte in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
assert is_near(published_bytes_per_l2, 100, 0.1), "about a hundred bytes for each unit of L²"
### BEGIN HIDDEN TESTS
assert is_near(published_bytes_per_l2, 97, 0.004), "96 for three fp32 matrices, and one more"
assert extra_byte == "c"
### END HIDDEN TESTS

# %% [markdown]
# ## 1.3 The benchmark (4 points)
#
# Write `benchmark_naive(L, d, batch)`: three figures of one size, not causal, fp32, on `device`:
#
# - `"forward_ms"`: the median latency of `naive_attention` (on tensors that require gradients);
# - `"held_bytes"`: what tensors hold just before the backward pass, above what they held when the function was called:
#   `rl.memory.allocated(device)`. The inputs are made inside, so they count;
# - `"backward_ms"`: the median latency of `rl.autograd.grad(o, (q, k, v), dO, retain_graph=True)`, which can be called
#   many times for one forward pass.
#
# Out of memory is a result, not an accident: catch `rl.OutOfMemoryError` and return the same dict with None in all
# three places. On a GPU a hundred repeats cost little; on a CPU five will do, and two at the long end.


# %% nbgrader={"grade_id": "q1_3", "solution": true}
def benchmark_naive(L, d, batch):
    """{"forward_ms", "backward_ms", "held_bytes"} of naive_attention; None each when out of memory."""
    ### BEGIN SOLUTION
    before = rl.memory.allocated(device)
    repeat = 100 if device == "cuda" else 5 if L <= 1024 else 2
    try:
        q, k, v = (rl.randn(batch, L, d, device=device).requires_grad_() for _ in range(3))
        dO = rl.randn(batch, L, d, device=device)
        forward = latency(naive_attention, q, k, v, warmup=2, repeat=repeat)
        o = naive_attention(q, k, v)
        held = rl.memory.allocated(device) - before
        backward = latency(
            lambda dO: rl.autograd.grad(o, (q, k, v), dO, retain_graph=True),
            dO,
            warmup=1,
            repeat=repeat,
        )
    except rl.OutOfMemoryError:
        return {"forward_ms": None, "backward_ms": None, "held_bytes": None}
    return {"forward_ms": forward.median_ms, "backward_ms": backward.median_ms, "held_bytes": held}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 3} rooflab={"needs": ["q1_1"]}
def check_benchmark(L, d, batch):
    seen = measure.count(benchmark_naive, L, d, batch)
    row = seen.value
    assert isinstance(row, dict) and set(row) == {"forward_ms", "backward_ms", "held_bytes"}, (
        "three keys"
    )
    for name in ("forward_ms", "backward_ms"):
        assert isinstance(row[name], float) and row[name] > 0, f"{name} is a positive float"
        assert row[name] <= measure.elapsed_ms(), (
            f"{name}: more than the time that passed, so not in ms"
        )
    assert seen.by_op.get("exp", 0) >= 2 and "attention" not in seen.by_op, (
        "time naive_attention, and call it once more for the backward pass"
    )
    assert is_count(row["held_bytes"]), "bytes are a whole number"
    rest = row["held_bytes"] - 3 * 4 * batch * L * L
    assert rest >= 4 * 4 * batch * L * d, "q, k, v, the output and three score matrices are held"
    assert rest <= 4 * (8 * d + 8) * batch * L, (
        f"{rest} bytes more than three score matrices are held"
    )
    return row


row = check_benchmark(128, 8, 2)
### BEGIN HIDDEN TESTS
row = check_benchmark(160, 16, 1)
row = check_benchmark(128, 8, 1)
q, k, v = make_qkv(1, 128, 128, 8)
fastest = measure.latency(naive_attention, q, k, v, warmup=2, repeat=20).samples_ms.min()
assert is_time_of(row["forward_ms"], fastest), "this is not the latency of naive_attention, in ms"
assert is_time_of(row["backward_ms"], fastest), "nor is this that of its backward pass"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_memory_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
row = benchmark_naive(2**20, 1, 8)
assert row == {"forward_ms": None, "backward_ms": None, "held_bytes": None}, (
    "a score matrix of 32 TiB fits nowhere: three times None"
)
### BEGIN HIDDEN TESTS
row = benchmark_naive(64, 8, 2)
assert isinstance(row, dict) and isinstance(row.get("forward_ms"), float), (
    "the runtime is still usable"
)
### END HIDDEN TESTS

# %% [markdown]
# The whole table, as far as this machine's memory and a budget of ten seconds go. Beside each figure stands the one
# published for the A800. (Three matrices are held when the backward pass begins; while it runs there are up to nine.)

# %%
naive_sweep = sweep(
    lambda L, d: benchmark_naive(L, d, batch=8),
    needs=lambda L, d: 9 * 4 * 8 * L * L,
    device=device,
    budget_s=10,
)
print(naive_sweep)

# %% [markdown]
# Keep d and double L: four times the time, and four times the memory. Keep L and go from d = 16 to d = 128: eight times
# the arithmetic in the products, and at L = 16384 the A800 takes only a quarter longer. So it is not the arithmetic
# that takes the time there; it is the matrices, written and read again by one operation after the other. (On a CPU,
# where arithmetic is dearer, d shows more.)
