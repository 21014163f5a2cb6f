# %% [markdown]
# ## 1.3 Attention with one head
#
# Next, every query is compared with every key. In this question there is one head of size D: `Q`, `K` and `V` are (B,
# L, D), and the scores are (B, L, L).
#
# $$O = \mathrm{softmax}\left(\mathrm{mask}\left(\frac{Q K^T}{\sqrt D}\right)\right) V$$
#
# You count the four steps one by one: scores, mask, softmax, and the product with the values. Between the steps there
# is always one element for each query and key. We call it a *score* in every step, so there are B·L² of them. Use the
# rules in the introduction.
#
# ### 1.3.1 Scores ({points q1_3_1})
#
# - `scores_flops(B, L, D)` and `scores_bytes(B, L, D, n)`: the product Q Kᵀ including its scaling. Kᵀ needs no
#   operation of its own: it is K, read in another order.


# %% nbgrader={"grade_id": "q1_3_1", "solution": true} rooflab={"counters": false}
def scores_flops(B, L, D):
    """FLOPs of the scaled scores of Q and K (B, L, D): an int."""
    ### BEGIN SOLUTION
    return B * matmul_flops(L, D, L) + B * L**2
    ### END SOLUTION


def scores_bytes(B, L, D, n):
    """Bytes read and written to make the scores (B, L, L): an int."""
    ### BEGIN SOLUTION
    return B * matmul_bytes(L, D, L, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_1_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
flops_hint = "each sequence takes a product (L, D) x (D, L), and scaling takes 1 FLOP per score"
assert_counts(scores_flops, {(2, 8, 16): 4224, (1, 1, 1): 3, (3, 2, 5): 132}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D"), (3, 20000003, 1009), (1, 70000027, 1)]
assert_counts(scores_flops, {(B, L, D): B * L**2 * (2 * D + 1) for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_1_bytes_test", "grade": true, "points": 2}
bytes_hint = "Q and K are read and the scores are written; scaling and transposing add no bytes"
assert_counts(scores_bytes, {(2, 8, 16, 2): 1280, (1, 1, 1, 2): 6, (3, 2, 5, 4): 288}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n"), (3, 70000027, 101, 2), (1, 900000011, 1, 8)]
assert_counts(scores_bytes, {(B, L, D, n): n * B * L * (2 * D + L) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.3.2 Mask ({points q1_3_2})
#
# - `mask_flops(B, L)` and `mask_bytes(B, L, n)`: the causal mask. It reads every score, keeps it or replaces it by -∞,
#   and writes it. The row and column of the score decide which.


# %% nbgrader={"grade_id": "q1_3_2", "solution": true} rooflab={"counters": false}
def mask_flops(B, L):
    """FLOPs of the causal mask on scores (B, L, L): an int."""
    ### BEGIN SOLUTION
    return B * L**2
    ### END SOLUTION


def mask_bytes(B, L, n):
    """Bytes that the mask reads and writes: an int."""
    ### BEGIN SOLUTION
    return 2 * n * B * L**2
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_2_test", "grade": true, "points": 1}
flops_hint = "1 FLOP per score, whether the score is masked or not"
assert_counts(mask_flops, {(2, 8): 128, (1, 1): 1, (3, 2): 12}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L"), (3, 900000011)]
assert_counts(mask_flops, {(B, L): B * L**2 for B, L in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_2_bytes_test", "grade": true, "points": 1}
bytes_hint = "every score is read and written; no mask matrix is read"
assert_counts(mask_bytes, {(2, 8, 2): 512, (1, 1, 2): 4, (3, 2, 4): 96}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L n"), (3, 900000011, 1)]
assert_counts(mask_bytes, {(B, L, n): 2 * n * B * L**2 for B, L, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.3.3 Softmax ({points q1_3_3})
#
# - `softmax_flops(B, L)` and `softmax_bytes(B, L, n)`: the exponential, the sum and the division for every score. One
#   operation does all three.


# %% nbgrader={"grade_id": "q1_3_3", "solution": true} rooflab={"counters": false}
def softmax_flops(B, L):
    """FLOPs of the softmax of scores (B, L, L): an int."""
    ### BEGIN SOLUTION
    return 3 * B * L**2
    ### END SOLUTION


def softmax_bytes(B, L, n):
    """Bytes that the softmax reads and writes: an int."""
    ### BEGIN SOLUTION
    return 2 * n * B * L**2
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_3_2"]}
flops_hint = "3 FLOPs per score; the softmax of this lab does not compute a maximum"
assert_counts(softmax_flops, {(2, 8): 384, (1, 1): 3, (3, 2): 36}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L"), (2, 900000011)]
assert_counts(softmax_flops, {(B, L): 3 * B * L**2 for B, L in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_3_bytes_test", "grade": true, "points": 2}
bytes_hint = "one pass: the scores are read once, and as many attention weights are written"
assert_counts(softmax_bytes, {(2, 8, 2): 512, (1, 1, 2): 4, (3, 2, 4): 96}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L n"), (1, 900000011, 2)]
assert_counts(softmax_bytes, {(B, L, n): 2 * n * B * L**2 for B, L, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.3.4 The weighted sum of values ({points q1_3_4})
#
# - `values_flops(B, L, D)` and `values_bytes(B, L, D, n)`: the product A V. `A` (B, L, L) holds the attention weights
#   that the softmax wrote.


# %% nbgrader={"grade_id": "q1_3_4", "solution": true} rooflab={"counters": false}
def values_flops(B, L, D):
    """FLOPs of A (B, L, L) times V (B, L, D): an int."""
    ### BEGIN SOLUTION
    return B * matmul_flops(L, L, D)
    ### END SOLUTION


def values_bytes(B, L, D, n):
    """Bytes that the product of A and V reads and writes: an int."""
    ### BEGIN SOLUTION
    return B * matmul_bytes(L, L, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_4_test", "grade": true, "points": 1} rooflab={"needs": ["q1_3_1"]}
flops_hint = "each sequence takes a product (L, L) x (L, D)"
assert_counts(values_flops, {(2, 8, 16): 4096, (1, 1, 1): 2, (3, 2, 5): 120}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D"), (3, 20000003, 1009), (1, 1000000007, 1)]
assert_counts(values_flops, {(B, L, D): 2 * B * L**2 * D for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_4_bytes_test", "grade": true, "points": 1}
bytes_hint = "A and V are read, and the result is written"
assert_counts(values_bytes, {(2, 8, 16, 2): 1280, (1, 1, 1, 2): 6, (3, 2, 5, 4): 288}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n"), (3, 70000027, 101, 2), (1, 900000011, 1, 8)]
assert_counts(values_bytes, {(B, L, D, n): n * B * L * (2 * D + L) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.3.5 The four steps together ({points q1_3_5})
#
# - `sdpa_flops(B, L, D)` and `sdpa_bytes(B, L, D, n)`: the sum of the four steps. SDPA stands for scaled dot-product
#   attention. You can call the functions that you wrote above.


# %% nbgrader={"grade_id": "q1_3_5", "solution": true} rooflab={"counters": false}
def sdpa_flops(B, L, D):
    """FLOPs of attention with one head of size D: an int."""
    ### BEGIN SOLUTION
    return scores_flops(B, L, D) + mask_flops(B, L) + softmax_flops(B, L) + values_flops(B, L, D)
    ### END SOLUTION


def sdpa_bytes(B, L, D, n):
    """Bytes that the four steps of attention with one head read and write: an int."""
    ### BEGIN SOLUTION
    return scores_bytes(B, L, D, n) + mask_bytes(B, L, n) + softmax_bytes(B, L, n) + values_bytes(B, L, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_5_test", "grade": true, "points": 1} rooflab={"needs": ["q1_3_1", "q1_3_2"]}
flops_hint = "add up the scores with their scaling, the mask, the softmax, and the product with V"
assert_counts(sdpa_flops, {(2, 8, 16): 8832, (1, 1, 1): 9, (3, 2, 5): 300}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D"), (3, 10000019, 1009), (1, 900000011, 1)]
assert_counts(sdpa_flops, {(B, L, D): B * L**2 * (4 * D + 5) for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_5_bytes_test", "grade": true, "points": 2} rooflab={"needs": ["q1_3_3", "q1_3_4"]}
bytes_hint = "add up the four steps; each step writes its result, and the next step reads it"
assert_counts(sdpa_bytes, {(2, 8, 16, 2): 3584, (1, 1, 1, 2): 20, (3, 2, 5, 4): 768}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n"), (3, 70000027, 101, 2), (1, 400000009, 1, 8)]
assert_counts(sdpa_bytes, {(B, L, D, n): n * B * L * (4 * D + 6 * L) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# Which of the four steps do the arithmetic, and which move the bytes? This table is for one sequence of 1024 tokens and
# a head of size 64, as in GPT-2:

# %%
L, head_size = 1024, 64
steps = {
    "scores": (scores_flops(1, L, head_size), scores_bytes(1, L, head_size, 2)),
    "mask": (mask_flops(1, L), mask_bytes(1, L, 2)),
    "softmax": (softmax_flops(1, L), softmax_bytes(1, L, 2)),
    "values": (values_flops(1, L, head_size), values_bytes(1, L, head_size, 2)),
}
rows = [(step, f"{flops:,}", f"{moved:,}", f"{flops / moved:.2f}") for step, (flops, moved) in steps.items()]
Table(("step", "FLOPs", "bytes", "FLOP/byte"), rows, title=f"One head of size {head_size}, L = {L}, fp16")

# %% [markdown]
# Nearly all FLOPs are in the two products. Most bytes are in the mask and the softmax, which do less than one FLOP per
# byte: they only read and write the L x L scores. FlashAttention avoids exactly these bytes. It keeps a tile of the
# scores on the chip until all four steps are done with it.
