# %% [markdown]
# ## 1.5 The output projection ({points q1_5})
#
# The results of the heads lie side by side, (B, L, D). One more product with a (D, D) weight matrix mixes them.
#
# - `output_flops(B, L, D)` and `output_bytes(B, L, D, n)`: the FLOPs and bytes of this product.


# %% nbgrader={"grade_id": "q1_5", "solution": true} rooflab={"counters": false}
def output_flops(B, L, D):
    """FLOPs of the output projection of (B, L, D): an int."""
    ### BEGIN SOLUTION
    return matmul_flops(B * L, D, D)
    ### END SOLUTION


def output_bytes(B, L, D, n):
    """Bytes that the output projection reads and writes, n bytes per element: an int."""
    ### BEGIN SOLUTION
    return matmul_bytes(B * L, D, D, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_5_test", "grade": true, "points": 1} rooflab={"needs": ["q1_2"]}
flops_hint = "one product of B L rows with a (D, D) matrix"
assert_counts(output_flops, {(2, 8, 16): 8192, (1, 1, 1): 2, (3, 2, 5): 300}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D"), (3, 1000003, 500009), (1, 1, 900000011)]
assert_counts(output_flops, {(B, L, D): 2 * B * L * D**2 for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_5_bytes_test", "grade": true, "points": 1}
bytes_hint = "the input is read, the weights are read once for the whole batch, and the result is written"
assert_counts(output_bytes, {(2, 8, 16, 2): 1536, (1, 1, 1, 2): 6, (3, 2, 5, 4): 340}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n"), (7, 3000017, 90000049, 2), (1, 1, 900000011, 1)]
assert_counts(output_bytes, {(B, L, D, n): n * D * (2 * B * L + D) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.6 The MLP
#
# The second half of a layer processes each token by itself. A first product with a bias turns the D elements of a token
# into 4D, and a second one turns them back into D:
#
# $$Y = (X W_1 + b_1)\, W_2 + b_2, \qquad W_1: (D, 4D), \quad W_2: (4D, D).$$
#
# Count this as two operations, each a product that adds its own bias. They are not *fused* with each other: the first
# one writes its 4D elements per token to memory, and the second one reads them. The activation function between them is
# not counted, as the introduction says.
#
# ### 1.6.1 FLOPs ({points q1_6_1})
#
# - `mlp_flops(B, L, D)`: the FLOPs of both operations.


# %% nbgrader={"grade_id": "q1_6_1", "solution": true} rooflab={"counters": false}
def mlp_flops(B, L, D):
    """FLOPs of the MLP of X (B, L, D), biases included: an int."""
    ### BEGIN SOLUTION
    products = matmul_flops(B * L, D, 4 * D) + matmul_flops(B * L, 4 * D, D)
    return products + 5 * B * L * D
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_6_1_test", "grade": true, "points": 2} rooflab={"needs": ["q1_5"]}
flops_hint = "add up two products, and 1 FLOP for each output element to which a bias is added"
assert_counts(mlp_flops, {(2, 8, 16): 66816, (1, 1, 1): 21, (3, 2, 5): 2550}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D"), (3, 1000003, 200003), (1, 1, 600000001)]
assert_counts(mlp_flops, {(B, L, D): B * L * D * (16 * D + 5) for B, L, D in sizes}, flops_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.6.2 Bytes ({points q1_6_2})
#
# - `mlp_bytes(B, L, D, n)`: the bytes that both operations read and write.


# %% nbgrader={"grade_id": "q1_6_2", "solution": true} rooflab={"counters": false}
def mlp_bytes(B, L, D, n):
    """Bytes that the MLP's two operations read and write: an int."""
    ### BEGIN SOLUTION
    products = matmul_bytes(B * L, D, 4 * D, n) + matmul_bytes(B * L, 4 * D, D, n)
    return products + n * 5 * D
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_6_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_5"]}
bytes_hint = "each operation reads its input, and once for all tokens its weights and its bias, and writes its result"
assert_counts(mlp_bytes, {(2, 8, 16, 2): 9376, (1, 1, 1, 2): 46, (3, 2, 5, 4): 2100}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D n"), (7, 3000017, 30000001, 2), (1, 1, 600000001, 1)]
assert_counts(mlp_bytes, {(B, L, D, n): n * D * (10 * B * L + 8 * D + 5) for B, L, D, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.6.3 The MLP on an A100 ({points q1_6_3})
#
# Take the sizes of 1.4.5: B = 16, L = 16384, D = 4096, fp16, on an A100.
#
# - `mlp_intensity`: its arithmetic intensity, in FLOP/byte
# - `mlp_bound`: `"memory"` or `"compute"`


# %% nbgrader={"grade_id": "q1_6_3", "solution": true} rooflab={"counters": false}
mlp_intensity = None  # FLOP/byte
mlp_bound = None  # "memory" or "compute"
### BEGIN SOLUTION
mlp_intensity = mlp_flops(16, 16384, 4096) / mlp_bytes(16, 16384, 4096, 2)
mlp_bound = "compute"
### END SOLUTION

# %% nbgrader={"grade_id": "q1_6_3_test", "grade": true, "points": 2} rooflab={"needs": ["q1_6_1", "q1_6_2"]}
said = f"mlp_intensity must be a number of FLOP/byte above 1, got {mlp_intensity!r}"
assert is_number(mlp_intensity) and mlp_intensity > 1, said
### BEGIN HIDDEN TESTS
assert_near("mlp_intensity", mlp_intensity, 3236.586, 1e-4, "divide mlp_flops by mlp_bytes, with n = 2")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_6_3_bound_test", "grade": true, "points": 1}
assert mlp_bound in ("memory", "compute"), f'mlp_bound must be "memory" or "compute", got {mlp_bound!r}'
### BEGIN HIDDEN TESTS
assert mlp_bound == "compute", f'not "{mlp_bound}": is mlp_intensity below or above a100_ridge of 1.4.5?'
### END HIDDEN TESTS

# %% [markdown]
# The two halves of a layer, each running alone on the A100:

# %%
B, L, D, H = 16, 16384, 4096, 16
halves = {
    "attention": (mha_flops(B, L, D, H), mha_bytes(B, L, D, H, 2)),
    "MLP": (mlp_flops(B, L, D), mlp_bytes(B, L, D, 2)),
}
rows = []
for half, (flops, moved) in halves.items():
    compute_ms, memory_ms = 1e3 * flops / A100.flop_s, 1e3 * moved / A100.byte_s
    rows.append((half, f"{flops / 1e12:.1f}", f"{moved / 1e9:.1f}", f"{compute_ms:.0f}", f"{memory_ms:.0f}"))
head = ("half", "TFLOP", "GB", "ms to compute", "ms to move bytes")
Table(head, rows, title=f"B = {B}, L = {L}, D = {D}, H = {H} in fp16 on an A100")

# %%
intensities = {half: flops / moved for half, (flops, moved) in halves.items()}
rl.plots.plot_roofline(A100.machine, intensities, dtype="float16", title="Two halves of a layer")

# %% [markdown]
# Both halves do about as many FLOPs, and they move very different numbers of bytes. In Part 5 you will count a kernel
# that keeps the scores on the chip.
