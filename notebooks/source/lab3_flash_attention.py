# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   rooflab:
#     lab: lab3
#     points: 70
#     bonus: 3
# ---

# %% [markdown]
# # Lab 3: FlashAttention from scratch
#
# Attention compares every token with every token. Written down as the textbook has it, it fills a matrix of L x L
# scores, keeps it for the gradient, and at L = 32768 an 80 GB GPU is full. FlashAttention computes the *same numbers*
# and never has that matrix. It is not an approximation and it saves no arithmetic; it changes the order of the work.
#
# You will write it three times: the softmax that needs to see each score only once (Part 2), the whole of it in array
# code with its gradient (Parts 3 to 5), and as one CUDA kernel (Part 6). Around that you count: what is kept, what is
# computed, what is moved (Parts 1 and 7).
#
# All shapes are those of one head: `Q` is (B, L_q, d), `K` and `V` are (B, L_kv, d), and
#
# $$S = \frac{Q K^T}{\sqrt d}, \qquad P_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}, \qquad O = P V.$$
#
# **How to work.** Fill the cells marked *your code here*, then run the test cell below each. A test that prints
# nothing has passed. When graded, more tests run that are not shown here. Each question runs on its own in a fresh
# process with the set-up cell and the questions that it builds on. Grades rest on values and on counts, never on how
# fast your machine is.

# %% tags=["setup"]
import numpy as np

import rooflab as rl
from rooflab import latency
from rooflab.grading import measure
from rooflab.labs.lab3 import (
    PUBLISHED_NAIVE,
    attention_float64,
    attention_gradients_float64,
    sweep,
)
from rooflab.testing import assert_close, is_count, is_near, is_time_of, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"


def make_qkv(B, L_q, L_kv, d, scale=1.0, dtype="float32", seed=0):
    """Q (B, L_q, d), K and V (B, L_kv, d): normal values, Q and K times `scale`."""
    rng = np.random.default_rng(seed)
    sizes = [(L_q, scale), (L_kv, scale), (L_kv, 1.0)]
    arrays = [rng.standard_normal((B, L, d)) * factor for L, factor in sizes]
    return [rl.tensor(array, dtype=dtype, device=device) for array in arrays]


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
#
# # Part 2. The softmax that looks once
#
# ## 2.1 A running maximum and a running sum (4 points)
#
# Softmax seems to need a whole row before it can begin: first the maximum, then the sum of exponentials. It does not.
# Go through the row in chunks and keep two numbers, the maximum so far and the sum so far *relative to that maximum*:
#
# $$m' = \max(m, \max_j x_j), \qquad l' = e^{m - m'}\, l + \sum_j e^{x_j - m'}.$$
#
# When the maximum grows, what was summed before is too large by a known factor: shrink it.
#
# Write `online_update(m, l, x)` on NumPy arrays: `m` and `l` are (R,), one pair for each row, and `x` (R, n) holds the
# next n columns of each row. Return the new pair and leave the arguments as they are. It starts with m = -inf and
# l = 0, and a row of nothing but -inf (a query that sees no key) must stay at exactly these: mind that -inf minus -inf
# is NaN. A chunk may also be empty.


# %% nbgrader={"grade_id": "q2_1", "solution": true}
def online_update(m, l, x):
    """(m, l) of each row, (R,) each, after the columns x (R, n) as well."""
    ### BEGIN SOLUTION
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    finite = np.where(
        np.isneginf(new), 0.0, new
    )  # nothing seen yet: e^(-inf - 0) is the 0 that we want
    return new, np.exp(m - finite) * l + np.exp(x - finite[:, None]).sum(axis=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 4}
def check_online(x, chunks, what):
    m, l, start = np.full(len(x), -np.inf), np.zeros(len(x)), 0
    for n in chunks:
        pair = online_update(m, l, x[:, start : start + n])
        assert isinstance(pair, tuple) and len(pair) == 2, "return the pair m, l"
        m, l = (np.asarray(value) for value in pair)
        assert m.shape == l.shape == (len(x),), "one m and one l for each row"
        start += n
    assert start == x.shape[1]
    most = x.max(axis=1)
    assert_close(m, most, rtol=0, atol=0, name=f"m, {what}")
    relative = np.exp(x - np.where(np.isneginf(most), 0, most)[:, None])
    assert_close(l, relative.sum(axis=1), rtol=1e-12, atol=0, name=f"l, {what}")


rng = np.random.default_rng(0)
check_online(rng.standard_normal((3, 10)), (4, 4, 2), "chunks of 4")
check_online(rng.standard_normal((3, 10)) * 1000, (1,) * 10, "huge values, one at a time")
### BEGIN HIDDEN TESTS
x = rng.standard_normal((5, 64))
for chunks in [(64,), (1, 63), (16, 16, 16, 16), (0, 30, 0, 34, 0)]:
    check_online(x, chunks, f"chunks {chunks}")
    check_online(np.sort(x, axis=1), chunks, f"ascending, chunks {chunks}")
    check_online(-np.sort(-x, axis=1), chunks, f"descending, chunks {chunks}")
    check_online(x + 1e5, chunks, f"far from 0, chunks {chunks}")
x[0], x[1, :40], x[2, 20:] = -np.inf, -np.inf, -np.inf
check_online(x, (8,) * 8, "rows of -inf")
check_online(x * 1e4, (3, 61), "rows of -inf, huge values")
### END HIDDEN TESTS

# %% [markdown]
# How often does the maximum grow? Of n random values, the k-th is the largest so far with probability 1/k, so about
# ln n times in all. The rescaling that this trick pays with is rarely more than a multiplication by one, which the
# fastest kernels of today skip.

# %%
x = np.random.default_rng(1).standard_normal((1000, 4096))
for chunk in (1, 16, 64, 256):
    m, l, grown = np.full(1000, -np.inf), np.zeros(1000), 0
    for start in range(0, 4096, chunk):
        previous = m
        m, l = online_update(m, l, x[:, start : start + chunk])
        grown += (m > previous).mean()
    print(
        f"chunks of {chunk:3}: {4096 // chunk:4} updates of a row, the maximum grew in {grown:5.2f} of them"
    )

# %% [markdown]
# ## 2.2 And the weighted sum with it (4 points)
#
# The weights are not what we want; the weighted sum of V is. It can be carried along in the same way, unnormalised:
#
# $$O' = e^{m - m'}\, O + \sum_j e^{x_j - m'}\, V_j,$$
#
# and after the last chunk, O / l is the answer. Write `online_average(m, l, O, x, V)`: as before, with O (R, d) and the
# rows V (n, d) that belong to the n columns of x. This is the inner step of FlashAttention, complete.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def online_average(m, l, O, x, V):
    """(m, l, O) after the columns x (R, n) with their rows V (n, d); O (R, d) is not divided by l."""
    ### BEGIN SOLUTION
    new = np.maximum(m, x.max(axis=1, initial=-np.inf))
    finite = np.where(np.isneginf(new), 0.0, new)
    p, shrink = np.exp(x - finite[:, None]), np.exp(m - finite)
    return new, shrink * l + p.sum(axis=1), shrink[:, None] * O + p @ V
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 4}
def check_average(x, V, chunks, what):
    rows, d = len(x), V.shape[1]
    m, l, O, start = np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, d)), 0
    for n in chunks:
        triple = online_average(m, l, O, x[:, start : start + n], V[start : start + n])
        assert isinstance(triple, tuple) and len(triple) == 3, "return m, l, O"
        m, l, O = (np.asarray(value) for value in triple)
        assert m.shape == l.shape == (rows,) and O.shape == (rows, d), "the shapes stay"
        start += n
    most = x.max(axis=1)
    p = np.exp(x - np.where(np.isneginf(most), 0, most)[:, None])
    assert_close(m, most, rtol=0, atol=0, name=f"m, {what}")
    assert_close(l, p.sum(axis=1), rtol=1e-12, atol=0, name=f"l, {what}")
    assert_close(O, p @ V, rtol=1e-11, atol=1e-12, name=f"O before the division, {what}")


rng = np.random.default_rng(0)
check_average(rng.standard_normal((3, 10)), rng.standard_normal((10, 4)), (4, 4, 2), "chunks of 4")
### BEGIN HIDDEN TESTS
x, V = rng.standard_normal((5, 64)), rng.standard_normal((64, 7))
for chunks in [(64,), (1, 63), (16, 16, 16, 16), (0, 30, 0, 34, 0), (1,) * 64]:
    check_average(np.sort(x, axis=1), V, chunks, f"ascending, chunks {chunks}")
    check_average(x * 1000, V, chunks, f"huge values, chunks {chunks}")
x[0], x[1, :40], x[2, 20:] = -np.inf, -np.inf, -np.inf
check_average(x, V, (8,) * 8, "rows of -inf")
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 Bonus: two halves make a whole (3 bonus points)
#
# Nothing forces one worker to walk through all the keys. Two of them can take half each, and their results are merged
# afterwards; this is how a single query is spread over a whole GPU when a model generates text. Write
# `combine(m1, l1, O1, m2, l2, O2)`: the triple of both parts together, from the (unnormalised) triples of the parts.


# %% nbgrader={"grade_id": "b2_3", "solution": true}
def combine(m1, l1, O1, m2, l2, O2):
    """(m, l, O) of two parts together; m, l (R,), O (R, d), not divided by l."""
    ### BEGIN SOLUTION
    m = np.maximum(m1, m2)
    finite = np.where(np.isneginf(m), 0.0, m)
    first, second = np.exp(m1 - finite), np.exp(m2 - finite)
    return m, first * l1 + second * l2, first[:, None] * O1 + second[:, None] * O2
    ### END SOLUTION


# %% nbgrader={"grade_id": "b2_3_test", "grade": true, "points": 3}
def part_of(x, V):
    m = x.max(axis=1, initial=-np.inf)
    p = np.exp(x - np.where(np.isneginf(m), 0, m)[:, None])
    return m, p.sum(axis=1), p @ V


def check_combine(x, V, split, what):
    triple = combine(*part_of(x[:, :split], V[:split]), *part_of(x[:, split:], V[split:]))
    assert isinstance(triple, tuple) and len(triple) == 3, "return m, l, O"
    for name, ours, exact in zip("mlO", triple, part_of(x, V), strict=True):
        assert_close(ours, exact, rtol=1e-11, atol=1e-12, name=f"{name}, {what}")


rng = np.random.default_rng(3)
x, V = rng.standard_normal((4, 12)), rng.standard_normal((12, 5))
check_combine(x, V, 5, "5 and 7 columns")
### BEGIN HIDDEN TESTS
for split in (0, 1, 11, 12):
    check_combine(x, V, split, f"{split} columns and {12 - split}")
    check_combine(x * 1000, V, split, f"huge values, {split} columns and {12 - split}")
x[0], x[1, :6], x[2, 6:] = -np.inf, -np.inf, -np.inf
check_combine(x, V, 6, "rows of -inf")
### END HIDDEN TESTS

# %% [markdown]
# # Part 3. FlashAttention-2, forward (14 points)
#
# Take a tile of queries. Walk over the keys tile by tile, and for each compute the tile of scores, update m, l and O as
# in 2.2, forget the scores. After the last tile, divide O by l. The only thing kept for the gradient beside Q, K, V and
# O is the **log-sum-exp** of each query, L = m + log l, for with it any weight can be had again at any time:
# $P_{ij} = e^{S_{ij} - L_i}$.
#
# Write it as an `rl.autograd.Function`: `forward(ctx, Q, K, V, is_causal=False)` returns O, leaves what the backward
# pass needs with `ctx.save_for_backward(...)`, and may note plain values as attributes, say `ctx.is_causal`. Its
# `backward` is given; it calls a function that you write in Part 5.
#
# - Everything is done with `rl` operations: `@`, `rl.exp`, `rl.maximum`, `.max(-1, keepdim=True)`, `.sum`, slices such
#   as `Q[:, i : i + TILE_Q]` (views) and assignments to slices. No `rl.softmax`, no `rl.attention`, no NumPy.
# - Tiles are `TILE_Q` queries by `TILE_KV` keys, both between 16 and 128; a tile at the end is cut, not padded. Any
#   length must work, and L_q need not be L_kv.
# - Q, K, V, O and L share one dtype, fp32 or fp64; make your tensors with `dtype=Q.dtype, device=Q.device`.
# - No tensor may be larger than a tile of scores of 128 x 128 (for each of the B) or than Q, K or V, and no more than
#   eight such tiles may be held at once: allocations are measured. Nor may you compute a score twice:
#   multiply-accumulates are counted.
# - Save Q, K, V, O and L and nothing else: exactly one saved tensor has the shape (B, L_q).
#
# Leave `is_causal` aside for now; Part 4 comes back to this cell.

# %% nbgrader={"grade_id": "q3", "solution": true}
TILE_Q = 64
TILE_KV = 64


class FlashAttention2(rl.autograd.Function):
    """Attention of Q (B, L_q, d) over K and V (B, L_kv, d), in tiles: O (B, L_q, d)."""

    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        ### BEGIN SOLUTION
        (B, L_q, d), L_kv = Q.shape, K.shape[1]
        like = {"dtype": Q.dtype, "device": Q.device}
        O, L = rl.empty((B, L_q, d), **like), rl.empty((B, L_q), **like)
        for i in range(0, L_q, TILE_Q):
            q = Q[:, i : i + TILE_Q] * d**-0.5
            rows = q.shape[1]
            m = rl.full((B, rows, 1), float("-inf"), **like)
            l, o = rl.zeros((B, rows, 1), **like), rl.zeros((B, rows, d), **like)
            first = i + L_kv - L_q  # the last key that the tile's first query sees when causal
            for j in range(0, min(L_kv, first + rows) if is_causal else L_kv, TILE_KV):
                k, v = K[:, j : j + TILE_KV], V[:, j : j + TILE_KV]
                s = q @ k.mT
                if is_causal and j + k.shape[1] - 1 > first:
                    query = rl.arange(first, first + rows, device=Q.device).unsqueeze(1)
                    key = rl.arange(j, j + k.shape[1], device=Q.device).unsqueeze(0)
                    s = rl.where(key <= query, s, float("-inf"))
                previous, m = m, rl.maximum(m, s.max(-1, keepdim=True))
                p, shrink = rl.exp(s - m), rl.exp(previous - m)
                l = shrink * l + p.sum(-1, keepdim=True)
                o = shrink * o + p @ v
            O[:, i : i + rows] = o / l
            L[:, i : i + rows] = (m + rl.log(l)).squeeze(-1)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dO):
        return (*flash_backward(ctx, dO), None)  # Part 5; is_causal has no gradient


def flash_attention(q, k, v, is_causal=False):
    """What users call: O (B, L_q, d), differentiable."""
    return FlashAttention2.apply(q, k, v, is_causal)


# %% nbgrader={"grade_id": "q3_test", "grade": true, "points": 5}
def check_flash(B, L_q, L_kv, d, dtype="float64", scale=1.0, tolerance=1e-9):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, dtype, seed=L_q + 1000 * L_kv)
    seen = measure.count(flash_attention, q, k, v)
    what = f"O at B = {B}, L_q = {L_q}, L_kv = {L_kv}, d = {d}, {dtype}"
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert seen.value.dtype == q.dtype, f"the inputs are {q.dtype}, O is {seen.value.dtype}"
    assert seen.value.device == q.device, (
        f"the inputs are on {q.device}, O is on {seen.value.device}"
    )
    assert_close(
        seen.value, attention_float64(q, k, v)[0], rtol=tolerance, atol=tolerance, name=what
    )
    assert not seen.by_op.keys() & {"softmax", "attention"}, (
        "the library's softmax or attention did the work"
    )


check_flash(4, 128, 128, 64, "float32", tolerance=1e-4)
check_flash(2, 100, 37, 16)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 300), (300, 1), (129, 127), (64, 200), (17, 16), (257, 65)]:
    check_flash(2, L_q, L_kv, 8)
check_flash(1, 130, 130, 32, scale=12.0)
check_flash(1, 40, 1, 8, scale=30.0)  # scores below -745, where e^x is 0
check_flash(3, 33, 170, 128, "float32", tolerance=1e-4)
q, k, v = make_qkv(1, 40, 400, 8, dtype="float64", seed=5)
for scale in (5, 500):  # scores rise along the keys or fall, by the sign of the query's sum
    sorted_k = rl.tensor(np.sort(to_float64(k), axis=1) * scale, device=device)
    assert_close(
        flash_attention(q, sorted_k, v),
        attention_float64(q, sorted_k, v)[0],
        rtol=1e-9,
        atol=1e-9,
        name=f"O where scores rise or fall along the keys, times {scale}",
    )
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_saved_test", "grade": true, "points": 4}
def check_saved(B, L_q, L_kv, d, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64", seed=L_q)
    seen = measure.saved(FlashAttention2, q, k, v, False)
    O, L = attention_float64(q, k, v)
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name="O")
    shapes = [tuple(tensor.shape) for tensor in seen.tensors]
    rows = [tensor for tensor in seen.tensors if tuple(tensor.shape) == (B, L_q)]
    assert len(rows) == 1, (
        f"exactly one saved tensor of shape (B, L_q) = ({B}, {L_q}); saved are {shapes}"
    )
    assert_close(rows[0], L, rtol=1e-9, atol=1e-9, name="the saved log-sum-exp")
    expected = [(B, L_q), (B, L_q, d), (B, L_kv, d), (B, L_kv, d), (B, L_q, d)]
    assert sorted(shapes) == sorted(expected), f"save L, Q, K, V and O; saved are {shapes}"
    saved = [to_float64(tensor) for tensor in seen.tensors]
    for name, exact in {"Q": q, "K": k, "V": v, "O": O}.items():
        same = [np.allclose(x, to_float64(exact)) for x in saved if x.shape == tuple(exact.shape)]
        assert any(same), f"{name} is not among the saved tensors"


check_saved(3, 40, 56, 24)
### BEGIN HIDDEN TESTS
check_saved(2, 150, 131, 8)
check_saved(1, 20, 300, 4, scale=12.0)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_memory_test", "grade": true, "points": 5}
def check_memory(B, L_q, L_kv, d):
    q, k, v = make_qkv(B, L_q, L_kv, d)
    seen = measure.saved(FlashAttention2, q, k, v, False)
    assert_close(seen.value, attention_float64(q, k, v)[0], rtol=1e-3, atol=1e-4, name="O")
    forward, macs = seen.forward, 2 * B * L_q * L_kv * d
    allowed = 4 * B * max(128 * 128, L_q * d, L_kv * d)
    assert forward.largest_bytes <= allowed, (
        f"a tensor of {forward.largest_bytes:,} bytes was allocated; tiles and inputs need no more than {allowed:,}"
    )
    held = 4 * B * (8 * 128 * 128 + 4 * (L_q + L_kv) * (d + 1))
    assert forward.peak_bytes <= held, (
        f"{forward.peak_bytes:,} bytes were held at once: eight tiles and a few rows would be {held:,}"
    )
    assert forward.host_bytes <= 2**21, (
        f"{forward.host_bytes:,} bytes were taken outside of rl: work with rl tensors"
    )
    assert forward.macs >= macs, (
        f"rl counted {forward.macs:,} MACs of {macs:,}: the rest was not done with rl's products"
    )
    assert forward.macs <= 1.3 * macs, (
        f"rl counted {forward.macs:,} MACs, and {macs:,} will do: is a score computed twice?"
    )
    tiles = B * -(-L_q // 16) * -(-L_kv // 16)
    assert forward.by_op["matmul"] <= 2 * tiles, "tiles of less than 16 x 16"


for size in (TILE_Q, TILE_KV):
    assert is_count(size) and 16 <= size <= 128, "TILE_Q and TILE_KV are between 16 and 128"
check_memory(2, 512, 512, 16)
### BEGIN HIDDEN TESTS
check_memory(1, 128, 4096, 2)
check_memory(1, 128, 8192, 2)
check_memory(1, 4096, 128, 2)
check_memory(3, 384, 640, 8)
### END HIDDEN TESTS

# %% [markdown]
# Watch what is held while your forward pass runs, and the textbook's beside it. One is a staircase of whole matrices,
# the other a flat line with a ripple of tiles.

# %%
from IPython.display import display

q, k, v = make_qkv(4, 1024, 1024, 64)
for fn in (naive_attention, flash_attention):
    with rl.memory.record() as timeline:
        fn(q, k, v)
    title = f"{fn.__name__}, forward, L = 1024"
    display(rl.plots.plot_memory_timeline(timeline, title=title))

# %% [markdown]
# # Part 4. Causal, and half the work (8 points)
#
# With a causal mask a tile of scores is of one of three kinds: every pair is visible, none is, or the diagonal runs
# through it. Only the last kind needs a mask, and the second need not be computed *at all*. The textbook computes all
# scores and throws half of them away.
#
# **Go back to `FlashAttention2.forward`** and make `is_causal=True` work. L_q ≤ L_kv, and query i sees the keys
# j ≤ i + L_kv - L_q. End the loop over the keys after the last tile in which some query of the tile sees some key, and
# mask the tiles that the diagonal cuts. Every other tile is computed whole.
#
# Here, predict what that saves. Write `scores_computed(L_q, L_kv, tile_q, tile_kv)`: how many scores causal
# FlashAttention computes for one of the B, with tiles of tile_q queries by tile_kv keys as you wrote it (tiles at the
# ends are cut). It is checked against the multiply-accumulates that the runtime counts in *your* forward pass, with
# your tiles: each score takes d of them, and d more for the product with V.
#
# And `causal_share_limit`: the share of all L² scores that is computed when L grows and the tiles stay as they are.

# %% nbgrader={"grade_id": "q4", "solution": true}
causal_share_limit = None  # a number between 0 and 1
### BEGIN SOLUTION
causal_share_limit = 0.5
### END SOLUTION


def scores_computed(L_q, L_kv, tile_q, tile_kv):
    """Scores that causal FlashAttention computes for one of the B, invisible tiles left out: an int."""
    ### BEGIN SOLUTION
    total = 0
    for i in range(0, L_q, tile_q):
        rows = min(tile_q, L_q - i)
        seen = i + rows + L_kv - L_q  # keys that the tile's last query sees
        tiles = -(-seen // tile_kv)
        total += rows * min(L_kv, tiles * tile_kv)
    return total
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_test", "grade": true, "points": 3}
assert scores_computed(128, 128, 64, 64) == 3 * 64 * 64, "three of the four tiles"
### BEGIN HIDDEN TESTS
for L_q, L_kv, tile_q, tile_kv in [
    *[
        (256, 256, 64, 64),
        (256, 256, 16, 128),
        (256, 256, 128, 16),
        (100, 100, 64, 32),
        (1, 1, 16, 16),
    ],
    *[
        (1, 300, 64, 64),
        (37, 91, 16, 32),
        (130, 130, 128, 128),
        (1024, 1024, 16, 16),
        (64, 1000, 48, 80),
    ],
]:
    expected = 0
    for i in range(0, L_q, tile_q):
        for j in range(0, L_kv, tile_kv):
            bottom, right = min(i + tile_q, L_q), min(j + tile_kv, L_kv)
            if j <= bottom - 1 + L_kv - L_q:
                expected += (bottom - i) * (right - j)
    got = scores_computed(L_q, L_kv, tile_q, tile_kv)
    assert is_count(got) and got == expected, (
        f"{(L_q, L_kv, tile_q, tile_kv)}: {expected}, not {got}"
    )
assert is_near(causal_share_limit, 0.5)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_causal_test", "grade": true, "points": 5} rooflab={"needs": ["q3"]}
def check_causal(B, L_q, L_kv, d, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, "float64", seed=L_q)
    seen = measure.saved(FlashAttention2, q, k, v, True)
    O, L = attention_float64(q, k, v, is_causal=True)
    what = f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = True"
    assert_close(seen.value, O, rtol=1e-9, atol=1e-9, name=f"O {what}")
    rows = [tensor for tensor in seen.tensors if tuple(tensor.shape) == (B, L_q)]
    assert len(rows) == 1, "exactly one saved tensor of shape (B, L_q)"
    assert_close(rows[0], L, rtol=1e-9, atol=1e-9, name=f"the saved log-sum-exp {what}")
    for size in (TILE_Q, TILE_KV):
        assert is_count(size) and 16 <= size <= 128, "TILE_Q and TILE_KV are between 16 and 128"
    predicted = 2 * B * d * scores_computed(L_q, L_kv, TILE_Q, TILE_KV)
    assert seen.forward.macs == predicted, (
        f"{what}: you predict {predicted:,} MACs, the runtime counted {seen.forward.macs:,}; "
        f"all pairs would take {2 * B * d * L_q * L_kv:,}"
    )
    assert seen.forward.largest_bytes <= 8 * B * max(128 * 128, L_q * d, L_kv * d), (
        "a tensor larger than a tile"
    )
    assert not seen.forward.by_op.keys() & {"softmax", "attention"}, "the library did the work"
    return seen.forward.macs / (2 * B * d * L_q * L_kv)


check_causal(2, 256, 256, 16)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 300), (37, 91), (200, 200), (129, 129), (65, 400), (512, 512)]:
    check_causal(2, L_q, L_kv, 8)
check_causal(1, 150, 150, 8, scale=12.0)
check_causal(1, 150, 150, 8, scale=30.0)
# A query's own tile ends at most 127 rows below it, and the last tile of keys as many columns further right.
assert check_causal(1, 1024, 1024, 2) <= 0.5 + 256 / 1024, "tiles that nobody sees are computed"
q, k, v = make_qkv(1, 200, 200, 8, dtype="float64")
v = to_float64(v)
v[:, 150:] = 1e30  # what no query before 150 may see
O = to_float64(flash_attention(q, k, rl.tensor(v, device=device), True))
assert np.isfinite(O).all() and np.abs(O[:, :150]).max() < 1e3, "the future leaks into the past"
### END HIDDEN TESTS

# %% [markdown]
# Small tiles follow the diagonal closely, large ones compute more that nobody sees:

# %%
print("share of all scores that is computed, by tile (square) and length:")
for tile in (16, 32, 64, 128):
    shares = [scores_computed(L, L, tile, tile) / L**2 for L in (128, 256, 1024, 4096, 16384)]
    print(f"    {tile:3} x {tile:<3}", "   ".join(f"{share:6.1%}" for share in shares))

# %% [markdown]
# # Part 5. Backward, by computing it again (12 points)
#
# The gradient needs the weights P, which were never kept. So compute them again, a tile at a time: one more product,
# and with the log-sum-exp no maximum and no sum, $P = e^{S - L}$. Then, with dO the gradient that comes from above,
#
# $$D_i = \sum_d O_{id}\, dO_{id}, \qquad dV = P^T dO, \qquad dP = dO\, V^T, \qquad dS = P \circ (dP - D),$$
#
# $$dQ = dS\, K / \sqrt d, \qquad dK = dS^T Q / \sqrt d.$$
#
# D is what softmax's rule (1.2) needs of a whole row, $\sum_j P_{ij}\, dP_{ij}$; that it can be had from O and dO, d
# numbers a row instead of L, is the one thing to see here. Convince yourself: put $dP_{ij} = \sum_d dO_{id} V_{jd}$ in.
#
# Write `flash_backward(ctx, dO)`, which returns dQ, dK, dV; `ctx.saved_tensors` holds what you saved, in the order in
# which you saved it. The rules are those of Part 3: rl operations, tiles, no tensor larger than a tile or an input,
# and when causal, no product for a tile that nobody sees.
#
# - `backward_over_forward`: the multiply-accumulates of a backward pass over those of a forward pass, when each product
#   of a tile is done once.

# %% nbgrader={"grade_id": "q5", "solution": true}
backward_over_forward = None  # a number
### BEGIN SOLUTION
backward_over_forward = 5 / 2  # S, dV, dP, dQ, dK against S and O
### END SOLUTION


def flash_backward(ctx, dO):
    """(dQ, dK, dV) from what FlashAttention2.forward left in ctx, and dO (B, L_q, d)."""
    ### BEGIN SOLUTION
    Q, K, V, O, L = ctx.saved_tensors
    (L_q, d), L_kv = Q.shape[1:], K.shape[1]
    like = {"dtype": Q.dtype, "device": Q.device}
    D = (O * dO).sum(-1, keepdim=True)
    dQ, dK, dV = rl.zeros(Q.shape, **like), rl.zeros(K.shape, **like), rl.zeros(V.shape, **like)
    for i in range(0, L_q, TILE_Q):
        q, do = Q[:, i : i + TILE_Q] * d**-0.5, dO[:, i : i + TILE_Q]
        lse, delta = L[:, i : i + TILE_Q].unsqueeze(-1), D[:, i : i + TILE_Q]
        rows = q.shape[1]
        dq, first = rl.zeros(q.shape, **like), i + L_kv - L_q
        for j in range(0, min(L_kv, first + rows) if ctx.is_causal else L_kv, TILE_KV):
            k, v = K[:, j : j + TILE_KV], V[:, j : j + TILE_KV]
            p = rl.exp(q @ k.mT - lse)
            if ctx.is_causal and j + k.shape[1] - 1 > first:
                query = rl.arange(first, first + rows, device=Q.device).unsqueeze(1)
                key = rl.arange(j, j + k.shape[1], device=Q.device).unsqueeze(0)
                p = rl.where(key <= query, p, 0.0)
            ds = p * (do @ v.mT - delta)
            dq = dq + ds @ k
            dK[:, j : j + TILE_KV] = dK[:, j : j + TILE_KV] + ds.mT @ q
            dV[:, j : j + TILE_KV] = dV[:, j : j + TILE_KV] + p.mT @ do
        dQ[:, i : i + rows] = dq * d**-0.5
    return dQ, dK, dV
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_test", "grade": true, "points": 6} rooflab={"needs": ["q3"]}
def check_gradients(B, L_q, L_kv, d, is_causal=False, dtype="float64", scale=1.0, tolerance=1e-8):
    q, k, v = make_qkv(B, L_q, L_kv, d, scale, dtype, seed=L_q + 7)
    dO = make_qkv(B, L_q, 1, d, dtype=dtype, seed=3)[0]
    seen = measure.gradients(flash_attention, q, k, v, is_causal, upstream=dO)
    what = f"at L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    assert len(seen.gradients) == 3, "three gradients"
    exact = attention_gradients_float64(q, k, v, dO, is_causal)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert isinstance(ours, rl.Tensor), f"no gradient {name} came back"
        assert_close(ours, expected, rtol=tolerance, atol=tolerance, name=f"{name} {what}")


check_gradients(2, 100, 70, 16)
check_gradients(1, 128, 128, 32, dtype="float32", tolerance=1e-4)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 200), (200, 1), (130, 129), (17, 16)]:
    check_gradients(2, L_q, L_kv, 8)
for L_q, L_kv in [(1, 1), (1, 200), (37, 91), (130, 130), (65, 257)]:
    check_gradients(2, L_q, L_kv, 8, is_causal=True)
check_gradients(1, 90, 90, 8, is_causal=True, scale=6.0)
check_gradients(1, 90, 90, 8, is_causal=True, scale=30.0)  # e^(S - L) overflows above the diagonal
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_memory_test", "grade": true, "points": 6} rooflab={"needs": ["q3"]}
def check_backward_memory(B, L_q, L_kv, d, is_causal=False, most=7.0):
    q, k, v = make_qkv(B, L_q, L_kv, d)
    dO = make_qkv(B, L_q, 1, d, seed=3)[0]
    seen = measure.gradients(flash_attention, q, k, v, is_causal, upstream=dO)
    exact = attention_gradients_float64(q, k, v, dO, is_causal)
    for name, ours, expected in zip(("dQ", "dK", "dV"), seen.gradients, exact, strict=True):
        assert_close(ours, expected, rtol=1e-3, atol=1e-3, name=name)
    kept = sum(bytes for op, shape, dtype, bytes in seen.saved)
    assert kept <= 4 * B * (2 * L_q * d + 2 * L_kv * d + L_q), (
        f"{kept:,} bytes are kept: more than Q, K, V, O and L"
    )
    largest, allowed = seen.backward.largest_bytes, 4 * B * max(128 * 128, L_q * d, L_kv * d)
    assert largest <= allowed, (
        f"a tensor of {largest:,} bytes was allocated; tiles and inputs need no more than {allowed:,}"
    )
    held = 4 * B * (8 * 128 * 128 + 4 * (L_q + L_kv) * (d + 1))
    for done in (seen.forward, seen.backward):
        assert done.peak_bytes <= held, (
            f"{done.peak_bytes:,} bytes were held at once: eight tiles and a few rows would be {held:,}"
        )
    assert seen.backward.host_bytes <= 2**21, "memory was taken outside of rl: use rl tensors"
    assert not seen.backward.by_op.keys() & {"softmax", "attention", "attention_backward"}, (
        "the library did the work"
    )
    product = B * L_q * L_kv * d
    pairs = B * d * sum(min(L_kv, i + 1 + L_kv - L_q) for i in range(L_q)) if is_causal else product
    assert seen.backward.macs >= 5 * pairs, "five products for each visible pair, all with rl"
    assert seen.backward.macs <= most * product, (
        f"{seen.backward.macs:,} MACs; one product over all pairs takes {product:,}"
    )


assert backward_over_forward is not None and 1 <= backward_over_forward <= 10, "a number"
check_backward_memory(2, 512, 512, 16)
### BEGIN HIDDEN TESTS
assert is_near(backward_over_forward, 2.5)
check_backward_memory(1, 128, 8192, 2)
check_backward_memory(1, 8192, 128, 2)
check_backward_memory(2, 640, 640, 8, is_causal=True, most=4.3)
### END HIDDEN TESTS

# %% [markdown]
# # Part 6. One kernel (6 points)
#
# Your array code keeps O(L) memory, and is it fast? Each tile takes a dozen launches, and every small result goes out
# to memory and comes back. The idea only pays when a tile's scores never leave the chip, and that takes one kernel for
# all of it. Write it in CUDA C++, as text; `rl.cuda.compile(source)` compiles it here and now.
#
# The kernel is given its signature, with one head of size 64 and everything contiguous, in fp32:
#
# ```c++
# __global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
#                               int L_q, int L_kv, float scale, int is_causal)
# ```
#
# Q and O are (B, L_q, 64), K and V (B, L_kv, 64), L is (B, L_q): the log-sum-exp. It is launched with a grid of
# (ceil(L_q / `FLASH_ROWS`), B) blocks of `FLASH_THREADS` threads: `blockIdx.x` is the tile of queries, `blockIdx.y` the
# one of the B. No dynamic shared memory; a `__shared__` array holds at most 48 KiB. Any L_q and L_kv ≥ 1 must work
# (when causal, L_q ≤ L_kv).
#
# A plan that is simple and right: one thread for each query, which keeps its q, its O (64 numbers each), m and l in
# registers. The block walks over the keys, say 32 at a time: all threads together copy the tile of K and of V into
# shared memory, wait (`__syncthreads()`), each uses it for its own query, and all wait again before it is overwritten.
# Every thread must reach every `__syncthreads()`, those without a query too. (`INFINITY` is not known here, as no
# header is read; start m at -3e38f.)
#
# Where there is a GPU, your kernel is run and its numbers are checked. Where there is none it is compiled only, for an
# Ampere GPU, and the grade says so. That needs no GPU, but NVIDIA's compiler NVRTC, which rooflab's `labs` extra brings
# on 64-bit Linux. A mistake comes back with the line of your source, and one that would bring a GPU to a halt ends a
# process of its own and not your notebook.

# %% nbgrader={"grade_id": "q6", "solution": true}
FLASH_ROWS = None  # queries of a block
FLASH_THREADS = None  # threads of a block
FLASH_CUDA = None  # the source, r"""..."""
### BEGIN SOLUTION
FLASH_ROWS, FLASH_THREADS = 64, 64
FLASH_CUDA = r"""
constexpr int kHead = 64, kKeys = 32;
constexpr float kLowest = -3e38f;

__global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
                              int L_q, int L_kv, float scale, int is_causal) {
  __shared__ float keys[kKeys][kHead], values[kKeys][kHead];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const bool mine = row < L_q;
  Q += (size_t)blockIdx.y * L_q * kHead;
  K += (size_t)blockIdx.y * L_kv * kHead;
  V += (size_t)blockIdx.y * L_kv * kHead;

  float q[kHead], o[kHead], m = kLowest, l = 0;
  for (int c = 0; c < kHead; ++c) {
    q[c] = mine ? Q[(size_t)row * kHead + c] * scale : 0;
    o[c] = 0;
  }
  const int last_row = min((int)((blockIdx.x + 1) * blockDim.x), L_q) - 1;
  const int seen = is_causal ? row + 1 + L_kv - L_q : L_kv;          // keys of this query
  const int end = is_causal ? last_row + 1 + L_kv - L_q : L_kv;      // and of the block's last one
  for (int start = 0; start < end; start += kKeys) {
    const int count = min(kKeys, L_kv - start);
    for (int at = threadIdx.x; at < count * kHead; at += blockDim.x) {
      keys[at / kHead][at % kHead] = K[(size_t)start * kHead + at];
      values[at / kHead][at % kHead] = V[(size_t)start * kHead + at];
    }
    __syncthreads();
    const int visible = min(count, seen - start);
    float s[kKeys], most = m;
    for (int j = 0; j < kKeys; ++j) {
      s[j] = 0;
      for (int c = 0; c < kHead; ++c) s[j] += q[c] * keys[j][c];
      if (j >= visible) s[j] = kLowest;
      most = fmaxf(most, s[j]);
    }
    if (visible > 0) {
      const float shrink = expf(m - most);
      m = most;
      l *= shrink;
      for (int c = 0; c < kHead; ++c) o[c] *= shrink;
      for (int j = 0; j < visible; ++j) {
        const float p = expf(s[j] - m);
        l += p;
        for (int c = 0; c < kHead; ++c) o[c] += p * values[j][c];
      }
    }
    __syncthreads();
  }
  if (!mine) return;
  for (int c = 0; c < kHead; ++c) O[((size_t)blockIdx.y * L_q + row) * kHead + c] = o[c] / l;
  L[(size_t)blockIdx.y * L_q + row] = m + logf(l);
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q6_test", "grade": true, "points": 6} rooflab={"seconds": 120}
def check_kernel(B, L_q, L_kv, is_causal=False, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, 64, scale, seed=L_q)
    like = {"device": device, "dtype": "float32"}
    O, L = rl.full((B, L_q, 64), float("nan"), **like), rl.full((B, L_q), float("nan"), **like)
    run = measure.cuda_kernel(
        FLASH_CUDA,
        "flash_forward",
        grid=(-(-L_q // FLASH_ROWS), B),
        block=(FLASH_THREADS,),
        args=(q, k, v, O, L, L_q, L_kv, 64**-0.5, int(is_causal)),
    )
    if not run.ran:
        measure.note(f"Question 6 was only compiled, not run: {run.why}")
        return False
    exact = attention_float64(q, k, v, is_causal)
    what = f"at B = {B}, L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    for name, ours, expected in zip("OL", run.args[3:5], exact, strict=True):
        assert_close(ours, expected, rtol=1e-4, atol=1e-4, name=f"{name} {what}")
    for name, before, after in zip("QKV", (q, k, v), run.args[:3], strict=True):
        assert_close(
            after, before, rtol=0, atol=0, name=f"{name}, which the kernel may not change,"
        )
    return True


assert isinstance(FLASH_CUDA, str), "FLASH_CUDA is the source of the kernel, a text"
assert is_count(FLASH_ROWS) and FLASH_ROWS > 0, "FLASH_ROWS is a whole number"
assert is_count(FLASH_THREADS) and 0 < FLASH_THREADS <= 1024, "a block has 1 to 1024 threads"
ran = check_kernel(2, 128, 128)
if ran:
    check_kernel(2, 128, 128, is_causal=True)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 333), (65, 33), (200, 77), (512, 512)] if ran else []:
    check_kernel(3, L_q, L_kv)
for L_q, L_kv in [(1, 1), (37, 91), (129, 129), (65, 257)] if ran else []:
    check_kernel(3, L_q, L_kv, is_causal=True)
if ran:
    check_kernel(1, 100, 100, scale=6.0)
### END HIDDEN TESTS

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
