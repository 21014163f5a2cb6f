# %% [markdown]
# # Part 1. A layer, operation by operation
#
# ## 1.1 One matrix product ({points q1_1})
#
# Nearly all FLOPs of a transformer are in matrix products, so start with one: A (M, K) times B (K, N) gives C (M, N).
#
# - `matmul_flops(M, K, N)`: the FLOPs of the product. Each element of C takes K multiply-accumulates.
# - `matmul_bytes(M, K, N, n)`: the bytes that it reads and writes, with n bytes per element.


# %% nbgrader={"grade_id": "q1_1", "solution": true} rooflab={"counters": false}
def matmul_flops(M, K, N):
    """FLOPs of (M, K) times (K, N): an int."""
    ### BEGIN SOLUTION
    return 2 * M * K * N
    ### END SOLUTION


def matmul_bytes(M, K, N, n):
    """Bytes that (M, K) times (K, N) reads and writes, n bytes per element: an int."""
    ### BEGIN SOLUTION
    return n * (M * K + K * N + M * N)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 1}
flops_hint = (
    "how many elements does C have, how many multiply-accumulates does each take, and how many FLOPs are these?"
)
assert_counts(matmul_flops, {(64, 96, 33): 405504, (2, 3, 4): 48, (1, 1, 1): 2}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("M K N"), (211639, 198221, 1), (215617, 3, 70000000001), (1, 900001, 90000001)]
assert_counts(matmul_flops, {(M, K, N): 2 * M * K * N for M, K, N in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_bytes_test", "grade": true, "points": 2}
bytes_hint = "A and B are read once and C is written once, with n bytes per element"
assert_counts(matmul_bytes, {(64, 96, 33, 2): 22848, (2, 3, 4, 4): 104, (1, 1, 1, 2): 6}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("M K N n"), (94906267, 5, 949062491, 1), (70000001, 90000001, 1, 4)]
assert_counts(matmul_bytes, {(M, K, N, n): n * (M * K + K * N + M * N) for M, K, N, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# Multiply M rows by the same weight matrix. This table shows your counts as M grows:

# %%
rows = []
for M in (1, 4, 16, 64, 256, 1024, 4096):
    flops, moved = matmul_flops(M, 1600, 1600), matmul_bytes(M, 1600, 1600, 2)
    rows.append((M, f"{flops:,}", f"{moved:,}", f"{flops / moved:.1f}"))
Table(("rows M", "FLOPs", "bytes", "FLOP/byte"), rows, title="(M, 1600) x (1600, 1600) in fp16")

# %% [markdown]
# The FLOPs are proportional to M. The bytes hardly grow at first, because nearly all of them are the weights. So the
# **arithmetic intensity** (AI), FLOPs divided by bytes, is about M as long as M is small. A model that processes one
# token at a time does one FLOP for each byte that it reads. Remember this table: most of this lab follows from it.

# %% [markdown]
# ## 1.2 Queries, keys and values ({points q1_2})
#
# Attention begins with three products. The vector of each token, with D elements, is multiplied by three (D, D) weight
# matrices:
#
# $$Q = X W_Q, \qquad K = X W_K, \qquad V = X W_V.$$
#
# `X` is (B, L, D). For a product it is a matrix with B·L rows.
#
# - `projection_flops(B, L, D)` and `projection_bytes(B, L, D, n)`: the FLOPs and bytes of all three products together.
#   They are three separate operations, so each of them reads X.


# %% nbgrader={"grade_id": "q1_2", "solution": true} rooflab={"counters": false}
def projection_flops(B, L, D):
    """FLOPs of the three projections of X (B, L, D): an int."""
    ### BEGIN SOLUTION
    return 3 * matmul_flops(B * L, D, D)
    ### END SOLUTION


def projection_bytes(B, L, D, n):
    """Bytes that the three projections read and write, n bytes per element: an int."""
    ### BEGIN SOLUTION
    return 3 * matmul_bytes(B * L, D, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
flops_hint = "each of the three products multiplies B L rows by a (D, D) matrix"
assert_counts(projection_flops, {(2, 8, 16): 24576, (1, 1, 1): 6, (3, 2, 5): 900}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D"), (3, 1000003, 500009), (1, 1, 900000011)]
assert_counts(projection_flops, {(B, L, D): 6 * B * L * D**2 for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_bytes_test", "grade": true, "points": 2}
bytes_hint = "each product reads X, reads its own weights (once for the whole batch), and writes its result"
assert_counts(projection_bytes, {(2, 8, 16, 2): 4608, (1, 1, 1, 2): 18, (3, 2, 5, 4): 1020}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n"), (7, 3000017, 90000049, 2), (1, 1, 900000011, 1)]
assert_counts(projection_bytes, {(B, L, D, n): n * D * (6 * B * L + 3 * D) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS
