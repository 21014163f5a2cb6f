# %% [markdown]
# ## 1.4 Attention with H heads
#
# A transformer splits Q, K and V into H heads. Each of them takes D/H of the D numbers of a token, and does all of 1.3
# with these: it has scores of its own, (B, L, L). Side by side, the results of the heads are again (B, L, D).
#
# ### 1.4.1 FLOPs ({points q1_4_1})
#
# - `mha_flops(B, L, D, H)`: scores, mask, softmax and values of all heads. The projections are not among them.


# %% nbgrader={"grade_id": "q1_4_1", "solution": true}
def mha_flops(B, L, D, H):
    """FLOPs of attention with H heads of size D/H: an int."""
    ### BEGIN SOLUTION
    return H * sdpa_flops(B, L, D // H)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_1_test", "grade": true, "points": 2} rooflab={"needs": ["q1_3_5"]}
flops_hint = "count one head of size D/H, and H of them"
assert_counts(mha_flops, {(2, 8, 16, 4): 10752, (2, 8, 16, 1): 8832, (3, 2, 10, 5): 780}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H", seed=1411), (3, 10000019, 1010, 101), (1, 300000007, 7, 7)]
assert_counts(mha_flops, {(B, L, D, H): B * L**2 * (4 * D + 5 * H) for B, L, D, H in sizes}, flops_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.4.2 Bytes ({points q1_4_2})
#
# - `mha_bytes(B, L, D, H, n)`: what they read and write.


# %% nbgrader={"grade_id": "q1_4_2", "solution": true}
def mha_bytes(B, L, D, H, n):
    """Bytes that attention with H heads of size D/H reads and writes: an int."""
    ### BEGIN SOLUTION
    return H * sdpa_bytes(B, L, D // H, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_3_5"]}
bytes_hint = "every head has scores of its own, and reads its share of Q, K and V"
assert_counts(mha_bytes, {(2, 8, 16, 4, 2): 8192, (2, 8, 16, 1, 2): 3584, (3, 2, 10, 5, 4): 2400}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H n", seed=1421), (3, 50000017, 1010, 101, 2), (1, 100000007, 7, 7, 8)]
assert_counts(mha_bytes, {(B, L, D, H, n): n * B * L * (4 * D + 6 * H * L) for B, L, D, H, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# More heads, each of them smaller: what stays, and what grows?

# %%
B, L, D = 1, 1024, 4096
rows = []
for H in (1, 4, 16, 64):
    flops, moved = mha_flops(B, L, D, H), mha_bytes(B, L, D, H, 2)
    rows.append((H, D // H, f"{flops / 1e9:.2f}", f"{moved / 1e6:.1f}", f"{flops / moved:.1f}"))
Table(("heads", "head size", "GFLOP", "MB", "FLOP/byte"), rows, title=f"B = {B}, L = {L}, D = {D}, fp16")

# %% [markdown]
# Heads hardly add work, but each of them brings an L x L matrix that is carried back and forth. Keep an eye on the head
# size D/H: it will decide what attention waits for.
#
# ### 1.4.3 How it grows ({points q1_4_3})
#
# Attention is called quadratic in the length of the text. Is it, in FLOPs and in bytes? Here are your formulas for 16
# heads of size 256. The table says by which factor they grow when L doubles:

# %%
D, H = 4096, 16
rows = []
for L in [4**power for power in range(1, 10)]:
    flops, moved = mha_flops(1, L, D, H), mha_bytes(1, L, D, H, 2)
    more_flops, more_moved = mha_flops(1, 2 * L, D, H) / flops, mha_bytes(1, 2 * L, D, H, 2) / moved
    rows.append((L, f"{flops:,}", f"{more_flops:.2f}", f"{moved:,}", f"{more_moved:.2f}"))
Table(("L", "FLOPs", "factor for 2L", "bytes", "factor for 2L"), rows, title=f"Attention, D = {D}, H = {H}, fp16")

# %% [markdown]
# - `flops_exponent` and `bytes_exponent`: the power of L with which FLOPs and bytes grow when L is *very large*

# %% nbgrader={"grade_id": "q1_4_3", "solution": true}
flops_exponent = None
bytes_exponent = None
### BEGIN SOLUTION
flops_exponent = 2
bytes_exponent = 2
### END SOLUTION

# %% nbgrader={"grade_id": "q1_4_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
for exponent in (flops_exponent, bytes_exponent):
    assert is_number(exponent) and 0 < exponent < 4, "flops_exponent and bytes_exponent are numbers: powers of L"
### BEGIN HIDDEN TESTS
assert is_near(flops_exponent, 2, 0.02), "flops_exponent: by which factor do the FLOPs grow when L doubles?"
assert is_near(bytes_exponent, 2, 0.02), "bytes_exponent: by which factor do the bytes grow when a large L doubles?"
### END HIDDEN TESTS

# %% [markdown]
# ### 1.4.4 From which length on ({points q1_4_4})
#
# The bytes behave differently in short texts. With both axes logarithmic, a power of L is a straight line, and its
# exponent is the slope. The same width in fewer and in more heads:

# %%
curves = {
    f"{H} heads of size {D // H}": {2**power: mha_bytes(1, 2**power, D, H, 2) for power in range(15)} for H in (16, 64)
}
rl.plots.plot_lines(curves, "B", "bytes", title=f"Attention, D = {D}, fp16")

# %% [markdown]
# A part of the bytes grows as L, and another part as L².
#
# - `first_quadratic_length(D, H)`: the smallest L at which the part that grows as L² is *larger* than the part that
#   grows as L. It depends neither on B nor on n.


# %% nbgrader={"grade_id": "q1_4_4", "solution": true}
def first_quadratic_length(D, H):
    """Smallest L at which the quadratic part of mha_bytes is the larger one: an int."""
    ### BEGIN SOLUTION
    return 2 * D // (3 * H) + 1  # 6 H L^2 > 4 L D
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_4_test", "grade": true, "points": 2} rooflab={"needs": ["q1_4_2"]}
length_hint = "write down which bytes of 1.4.2 grow as L and which as L², and compare the two"
assert_counts(first_quadratic_length, {(4096, 16): 171, (12, 3): 3, (3, 1): 3, (1, 1): 1}, length_hint)
### BEGIN HIDDEN TESTS
pairs = [(1600, 25), (64, 1), (30, 2), (4096, 1), (9, 3), (2, 2), (3 * 10**18, 1), *sample_sizes("D H", seed=1431)]
assert_counts(first_quadratic_length, {(D, H): 2 * D // (3 * H) + 1 for D, H in pairs}, length_hint)
### END HIDDEN TESTS

# %% [markdown]
# A page of text has several hundred tokens. Where does it lie, for the head sizes of real models?

# %%
rows = [(D // H, D, H, first_quadratic_length(D, H)) for D, H in [(4096, 16), (4096, 32), (1600, 25)]]
Table(("head size", "D", "H", "first quadratic L"), rows, title="Where most of the bytes are scores")

# %% [markdown]
# ### 1.4.5 On an A100 ({points q1_4_5})
#
# Is this a problem? It depends on the machine. An A100-80GB (SXM) computes at most 312 · 10¹² FLOP/s in fp16, and its
# memory moves at most 2.039 · 10¹² byte/s. These figures are in `A100.flop_s` and `A100.byte_s`. Their quotient is the
# **ridge**: an operation that does fewer FLOPs for a byte waits for the memory. It is *memory-bound*. From the ridge on
# it is *compute-bound*.
#
# Take attention with B = 16, L = 16384, D = 4096 and H = 16 in fp16, so n = 2.
#
# - `mha_intensity`: its arithmetic intensity, in FLOP/byte
# - `a100_ridge`: the ridge of the A100, in FLOP/byte
# - `mha_bound`: `"memory"` or `"compute"`
# - `mha_intensity_limit(D, H, n)`: the intensity of attention when L goes to infinity
# - `smallest_compute_bound_head`: the smallest head size, a whole number, whose intensity in fp16 reaches the ridge of
#   the A100 for long texts


# %% nbgrader={"grade_id": "q1_4_5", "solution": true}
mha_intensity = None  # FLOP/byte
a100_ridge = None
mha_bound = None  # "memory" or "compute"
smallest_compute_bound_head = None
### BEGIN SOLUTION
mha_intensity = mha_flops(16, 16384, 4096, 16) / mha_bytes(16, 16384, 4096, 16, 2)
a100_ridge = A100.flop_s / A100.byte_s
mha_bound = "memory"
smallest_compute_bound_head = 458  # (4 D/H + 5) / 12 >= 153.016
### END SOLUTION


def mha_intensity_limit(D, H, n):
    """FLOP/byte of attention with H heads of size D/H for very long texts."""
    ### BEGIN SOLUTION
    return (4 * D / H + 5) / (6 * n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_5_test", "grade": true, "points": 2} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
for value in (mha_intensity, a100_ridge):
    assert is_number(value) and 1 < value < 10000, "mha_intensity and a100_ridge are numbers, in FLOP/byte"
### BEGIN HIDDEN TESTS
assert is_near(mha_intensity, 84.86598, 1e-4), "mha_intensity: FLOPs over bytes of all 16 heads, with 2 bytes a number"
assert is_near(a100_ridge, 153.0162, 1e-4), "a100_ridge: divide the two figures of the A100 in the text"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_4_5_bound_test", "grade": true, "points": 1}
assert mha_bound in ("memory", "compute"), 'mha_bound: "memory" or "compute"'
### BEGIN HIDDEN TESTS
assert mha_bound == "memory", "mha_bound: which takes longer, to compute the FLOPs or to move the bytes?"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_4_5_limit_test", "grade": true, "points": 1}
def check_limit(D, H, n, expected):
    got = mha_intensity_limit(D, H, n)
    said = f"mha_intensity_limit({D}, {H}, {n}) gave {got!r}: keep the terms of FLOPs and of bytes that grow as L²"
    assert is_near(got, expected, 1e-4), said


check_limit(16, 4, 2, expected=21 / 12)
check_limit(16, 16, 4, expected=9 / 24)
### BEGIN HIDDEN TESTS
for D, H, n in [(4096, 16, 2), (1600, 25, 2), (1600, 25, 4), *sample_sizes("D H n", seed=1451)]:
    check_limit(D, H, n, expected=(4 * D / H + 5) / (6 * n))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_4_5_head_test", "grade": true, "points": 1}
assert is_count(smallest_compute_bound_head), "smallest_compute_bound_head is a whole number"
### BEGIN HIDDEN TESTS
said = "smallest_compute_bound_head: set the limit, as a function of D/H, equal to the ridge, and take the next integer"
assert smallest_compute_bound_head == 458, said
### END HIDDEN TESTS

# %% [markdown]
# B and L have dropped out of the limit. So neither a longer text nor a larger batch changes the verdict, and only the
# head size does. Heads of real models have a size of 64 to 256:

# %%
title = "Attention for long texts on an A100, fp16"
heads = {f"head size {size}": mha_intensity_limit(size, 1, 2) for size in (64, 128, 256, smallest_compute_bound_head)}
rl.plots.plot_roofline(A100.machine, heads, dtype="float16", title=title)
