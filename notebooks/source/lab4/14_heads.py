# %% [markdown]
# ## 1.4 Attention with H heads
#
# A transformer splits Q, K and V into H heads. Each head takes D/H of the D elements of a token and does all of 1.3
# with them. So each head has scores of its own, (B, L, L). The results of the heads are put side by side and are (B, L,
# D) again.
#
# ### 1.4.1 FLOPs ({points q1_4_1})
#
# - `mha_flops(B, L, D, H)`: the FLOPs of scores, mask, softmax and values in all heads, without the projections. MHA
#   stands for multi-head attention.


# %% nbgrader={"grade_id": "q1_4_1", "solution": true} rooflab={"counters": false}
def mha_flops(B, L, D, H):
    """FLOPs of attention with H heads of size D/H: an int."""
    ### BEGIN SOLUTION
    return H * sdpa_flops(B, L, D // H)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_1_test", "grade": true, "points": 2} rooflab={"needs": ["q1_3_5"]}
flops_hint = "count one head of size D/H, and multiply by H"
assert_counts(mha_flops, {(2, 8, 16, 4): 10752, (2, 8, 16, 1): 8832, (3, 2, 10, 5): 780}, flops_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H"), (3, 10000019, 1010, 101), (1, 300000007, 7, 7)]
assert_counts(mha_flops, {(B, L, D, H): B * L**2 * (4 * D + 5 * H) for B, L, D, H in sizes}, flops_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### 1.4.2 Bytes ({points q1_4_2})
#
# - `mha_bytes(B, L, D, H, n)`: the bytes that the same four steps read and write in all heads.


# %% nbgrader={"grade_id": "q1_4_2", "solution": true} rooflab={"counters": false}
def mha_bytes(B, L, D, H, n):
    """Bytes that attention with H heads of size D/H reads and writes: an int."""
    ### BEGIN SOLUTION
    return H * sdpa_bytes(B, L, D // H, n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_3_5"]}
bytes_hint = "each head has B L² scores of its own, and reads D/H elements per token of Q, K and V"
assert_counts(mha_bytes, {(2, 8, 16, 4, 2): 8192, (2, 8, 16, 1, 2): 3584, (3, 2, 10, 5, 4): 2400}, bytes_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H n"), (3, 50000017, 1010, 101, 2), (1, 100000007, 7, 7, 8)]
assert_counts(mha_bytes, {(B, L, D, H, n): n * B * L * (4 * D + 6 * H * L) for B, L, D, H, n in sizes}, bytes_hint)
### END HIDDEN TESTS

# %% [markdown]
# What changes when the same width D is split into more and smaller heads?

# %%
B, L, D = 1, 1024, 4096
rows = []
for H in (1, 4, 16, 64):
    flops, moved = mha_flops(B, L, D, H), mha_bytes(B, L, D, H, 2)
    rows.append((H, D // H, f"{flops / 1e9:.2f}", f"{moved / 1e6:.1f}", f"{flops / moved:.1f}"))
Table(("heads", "head size", "GFLOP", "MB", "FLOP/byte"), rows, title=f"B = {B}, L = {L}, D = {D}, fp16")

# %% [markdown]
# More heads add hardly any FLOPs. But each head adds an L x L score matrix that is written and read several times. So
# the arithmetic intensity depends on the head size D/H. You will see that the head size decides whether attention is
# memory-bound.
#
# ### 1.4.3 How the counts grow with L ({points q1_4_3})
#
# People say that attention is quadratic in the length of the text. Is that true of its FLOPs, and of its bytes? The
# table shows your formulas for 16 heads of size 256, and the factor by which each count grows when L doubles:

# %%
D, H = 4096, 16
rows = []
for L in [4**power for power in range(1, 10)]:
    flops, moved = mha_flops(1, L, D, H), mha_bytes(1, L, D, H, 2)
    more_flops, more_moved = mha_flops(1, 2 * L, D, H) / flops, mha_bytes(1, 2 * L, D, H, 2) / moved
    rows.append((L, f"{flops:,}", f"{more_flops:.2f}", f"{moved:,}", f"{more_moved:.2f}"))
Table(("L", "FLOPs", "factor for 2L", "bytes", "factor for 2L"), rows, title=f"Attention, D = {D}, H = {H}, fp16")

# %% [markdown]
# - `flops_exponent` and `bytes_exponent`: FLOPs and bytes grow as a power of L when L is *very large*. Give the two
#   exponents.

# %% nbgrader={"grade_id": "q1_4_3", "solution": true} rooflab={"counters": false}
flops_exponent = None
bytes_exponent = None
### BEGIN SOLUTION
flops_exponent = 2
bytes_exponent = 2
### END SOLUTION

# %% nbgrader={"grade_id": "q1_4_3_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
for name, exponent in (("flops_exponent", flops_exponent), ("bytes_exponent", bytes_exponent)):
    assert is_number(exponent) and exponent > 0, f"{name} must be a positive number, got {exponent!r}"
### BEGIN HIDDEN TESTS
said = "by which factor does the count grow when a very large L doubles, and which power of 2 is that?"
assert is_near(flops_exponent, 2, 0.02), f"flops_exponent is not {flops_exponent}: {said}"
assert is_near(bytes_exponent, 2, 0.02), f"bytes_exponent is not {bytes_exponent}: {said}"
### END HIDDEN TESTS

# %% [markdown]
# ### 1.4.4 Where the scores take over ({points q1_4_4})
#
# For short texts the bytes grow in another way than for long ones. On logarithmic axes a power of L is a straight line,
# and its slope is the exponent. The plot shows the same width D split into 16 and into 64 heads:

# %%
curves = {
    f"{H} heads of size {D // H}": {2**power: mha_bytes(1, 2**power, D, H, 2) for power in range(15)} for H in (16, 64)
}
rl.plots.plot_lines(curves, "B", "bytes", title=f"Attention, D = {D}, fp16")

# %% [markdown]
# The bytes have two parts: those of Q, K, V and the result, and those of the scores.
#
# - `first_length_of_scores(D, H)`: the smallest L at which the part of the scores is *larger* than the other part. The
#   answer depends neither on B nor on n.


# %% nbgrader={"grade_id": "q1_4_4", "solution": true} rooflab={"counters": false}
def first_length_of_scores(D, H):
    """Smallest L at which the scores have a larger part of mha_bytes than Q, K, V and the result: an int."""
    ### BEGIN SOLUTION
    return 2 * D // (3 * H) + 1  # 6 H L^2 > 4 L D
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_4_test", "grade": true, "points": 2} rooflab={"needs": ["q1_4_2"]}
length_hint = "write the bytes of 1.4.2 as a sum of the two parts, and compare how each grows with L"
assert_counts(
    first_length_of_scores,
    {(4096, 16): 171, (16, 2): 6, (60000, 2): 20001, (12, 3): 3, (3, 1): 3, (1, 1): 1},
    length_hint,
)
### BEGIN HIDDEN TESTS
pairs = [(1600, 25), (64, 1), (30, 2), (4096, 1), (9, 3), (2, 2), *sample_sizes("D H")]
for _ in range(6):  # where both parts are equal at a whole L, and one head wider
    H, half = measure.draw(1, 9), measure.draw(5000, 20000)
    pairs += [(3 * H * half, H), (H * (3 * half + 2), H)]
assert_counts(first_length_of_scores, {(D, H): 2 * D // (3 * H) + 1 for D, H in pairs}, length_hint)
### END HIDDEN TESTS

# %% [markdown]
# A page of text has several hundred tokens. Compare that with this L for the head sizes of real models:

# %%
rows = [(D // H, D, H, first_length_of_scores(D, H)) for D, H in [(4096, 16), (4096, 32), (1600, 25)]]
Table(("head size", "D", "H", "first L"), rows, title="The L from which most bytes are scores")

# %% [markdown]
# ### 1.4.5 Attention on an A100 ({points q1_4_5})
#
# All these bytes matter only if they take longer than the arithmetic, and that depends on the machine. An A100-80GB
# (SXM) computes at most 312 · 10¹² FLOP/s in fp16 (`A100.flop_s`), and its memory moves at most 2.039 · 10¹² byte/s
# (`A100.byte_s`). The quotient of the two is the **ridge**. An operation with an intensity below the ridge is
# *memory-bound*: moving its bytes takes longer than its arithmetic. From the ridge on it is *compute-bound*.
#
# Take attention with B = 16, L = 16384, D = 4096 and H = 16 in fp16, so n = 2.
#
# - `mha_intensity`: its arithmetic intensity, in FLOP/byte
# - `a100_ridge`: the ridge of the A100, in FLOP/byte
# - `mha_bound`: `"memory"` or `"compute"`
# - `mha_intensity_limit(D, H, n)`: the arithmetic intensity of attention in the limit of infinite L, in FLOP/byte
# - `smallest_compute_bound_head`: the smallest head size D/H (a whole number) for which this limit in fp16 reaches the
#   ridge of the A100


# %% nbgrader={"grade_id": "q1_4_5", "solution": true} rooflab={"counters": false}
def mha_intensity_limit(D, H, n):
    """Arithmetic intensity (FLOP/byte) of attention with H heads of size D/H as L goes to infinity."""
    ### BEGIN SOLUTION
    return (4 * D / H + 5) / (6 * n)
    ### END SOLUTION


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

# %% nbgrader={"grade_id": "q1_4_5_test", "grade": true, "points": 2} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
for name, value in (("mha_intensity", mha_intensity), ("a100_ridge", a100_ridge)):
    assert is_number(value) and 1 < value < 10000, f"{name} must be a number of FLOP/byte, got {value!r}"
### BEGIN HIDDEN TESTS
intensity_hint = "divide mha_flops by mha_bytes for all 16 heads, with n = 2"
assert_near("mha_intensity", mha_intensity, 84.86598, 1e-4, intensity_hint)
assert_near("a100_ridge", a100_ridge, 153.0162, 1e-4, "divide A100.flop_s by A100.byte_s")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_4_5_bound_test", "grade": true, "points": 1}
assert mha_bound in ("memory", "compute"), f'mha_bound must be "memory" or "compute", got {mha_bound!r}'
### BEGIN HIDDEN TESTS
assert mha_bound == "memory", f'not "{mha_bound}": is mha_intensity below or above a100_ridge?'
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_4_5_limit_test", "grade": true, "points": 1}
def check_limit(D, H, n, expected):
    got = mha_intensity_limit(D, H, n)
    said = f"mha_intensity_limit({D}, {H}, {n}) returned {got!r}, expected {expected:.6g}"
    assert is_near(got, expected, 1e-4), f"{said}. Hint: which terms of FLOPs and bytes are left when L is very large?"


check_limit(16, 4, 2, expected=21 / 12)
check_limit(16, 16, 4, expected=9 / 24)
### BEGIN HIDDEN TESTS
for D, H, n in [(4096, 16, 2), (1600, 25, 2), (1600, 25, 4), *sample_sizes("D H n")]:
    check_limit(D, H, n, expected=(4 * D / H + 5) / (6 * n))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_4_5_head_test", "grade": true, "points": 1}
head = smallest_compute_bound_head
assert is_count(head), f"smallest_compute_bound_head must be a whole number (int), got {head!r}"
### BEGIN HIDDEN TESTS
said = f"smallest_compute_bound_head is not {head}: write the limit as a function of D/H, set it equal to the ridge,"
assert head == 458, f"{said} and round up"
### END HIDDEN TESTS

# %% [markdown]
# Which sizes appear in the limit, and which do not? Real models have heads of size 64 to 256. Compare them with the
# ridge:

# %%
title = "Attention for long texts on an A100, fp16"
heads = {f"head size {size}": mha_intensity_limit(size, 1, 2) for size in (64, 128, 256, smallest_compute_bound_head)}
rl.plots.plot_roofline(A100.machine, heads, dtype="float16", title=title)
