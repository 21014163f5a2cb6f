# %% [markdown]
# # Part 1. A layer, operation by operation
#
# ## 1.1 One product ({points q1_1})
#
# Nearly all of a transformer's arithmetic is in products of matrices, so you start with one: A (M, K) times B (K, N)
# gives C (M, N).
#
# - `matmul_flops(M, K, N)`: its FLOPs. Each number of C takes K multiply-accumulates.
# - `matmul_bytes(M, K, N, n)`: the bytes that it reads and writes, with n bytes a number.


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def matmul_flops(M, K, N):
    """FLOPs of (M, K) times (K, N): an int."""
    ### BEGIN SOLUTION
    return 2 * M * K * N
    ### END SOLUTION


def matmul_bytes(M, K, N, n):
    """Bytes that (M, K) times (K, N) reads and writes, n bytes a number: an int."""
    ### BEGIN SOLUTION
    return n * (M * K + K * N + M * N)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 1}
flops_hint = "count the multiply-accumulates of one number of C, and 2 FLOPs for each of them"
assert_counts(matmul_flops, {(64, 96, 33): 405504, (2, 3, 4): 48, (1, 1, 1): 2}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("M K N", seed=1101), (211639, 198221, 1), (215617, 3, 7000000001), (1, 900001, 90000001)]
assert_counts(matmul_flops, {(M, K, N): 2 * M * K * N for M, K, N in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_bytes_test", "grade": true, "points": 2}
bytes_hint = "A and B are read and C is written, each of them once, with n bytes a number"
assert_counts(matmul_bytes, {(64, 96, 33, 2): 22848, (2, 3, 4, 4): 104, (1, 1, 1, 2): 6}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("M K N n", seed=1102), (94906267, 3, 94906249, 1), (70000001, 90000001, 1, 4)]
assert_counts(matmul_bytes, {(M, K, N, n): n * (M * K + K * N + M * N) for M, K, N, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# A product of M rows with the same matrix of weights, once for M = 1 and once for more and more rows:

# %%
rows = []
for M in (1, 4, 16, 64, 256, 1024, 4096):
    flops, moved = matmul_flops(M, 1600, 1600), matmul_bytes(M, 1600, 1600, 2)
    rows.append((M, f"{flops:,}", f"{moved:,}", f"{flops / moved:.1f}"))
Table(("rows M", "FLOPs", "bytes", "FLOP/byte"), rows, title="(M, 1600) x (1600, 1600) in fp16")

# %% [markdown]
# The FLOPs grow with M from the first row on. The bytes hardly move at first, because nearly all of them are weights.
# So the **arithmetic intensity** (AI), FLOPs over bytes, starts out equal to the number of rows. A model that handles
# one token at a time does one FLOP for each byte that it reads. Keep this table in mind: most of this lab follows from
# it.

# %% [markdown]
# ## 1.2 Queries, keys and values ({points q1_2})
#
# Attention begins with three products. Each token, D numbers, is multiplied by three (D, D) matrices of weights:
#
# $$Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V.$$
#
# `X` is (B, L, D). A product treats it as a matrix with BL rows.
#
# - `projection_flops(B, L, D)` and `projection_bytes(B, L, D, n)`: all three products together. They are three
#   operations, so each of them reads X.


# %% nbgrader={"grade_id": "q1_2", "solution": true}
def projection_flops(B, L, D):
    """FLOPs of the three projections of X (B, L, D): an int."""
    ### BEGIN SOLUTION
    return 3 * matmul_flops(B * L, D, D)
    ### END SOLUTION


def projection_bytes(B, L, D, n):
    """Bytes that the three projections read and write, n bytes a number: an int."""
    ### BEGIN SOLUTION
    return 3 * matmul_bytes(B * L, D, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
flops_hint = "each of the three is a product of BL rows with a (D, D) matrix"
assert_counts(projection_flops, {(2, 8, 16): 24576, (1, 1, 1): 6, (3, 2, 5): 900}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D", seed=1201), (3, 1000003, 500009), (1, 1, 900000011)]
assert_counts(projection_flops, {(B, L, D): 6 * B * L * D**2 for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_bytes_test", "grade": true, "points": 2}
bytes_hint = "each of the three reads X and its own weights, once for all sequences, and writes its result"
assert_counts(projection_bytes, {(2, 8, 16, 2): 4608, (1, 1, 1, 2): 18, (3, 2, 5, 4): 1020}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n", seed=1202), (7, 3000017, 90000049, 2), (1, 1, 900000011, 1)]
assert_counts(projection_bytes, {(B, L, D, n): n * D * (6 * B * L + 3 * D) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS
