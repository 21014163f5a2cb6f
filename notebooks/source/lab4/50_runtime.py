# %% [markdown]
# # Part 5. Your formulas and a runtime
#
# So far you have counted with formulas. A runtime that counts can show how far the formulas are from what really runs.
# Inside `with rl.count() as c:` rooflab counts launches and memory as they happen. Each operation also declares its
# FLOPs and its compulsory bytes, and `c` adds these up over all operations that were called. You can compare the sums
# with your formulas. rooflab can even count without running: a tensor on the device `"meta"` has a shape and no memory,
# so counting even the largest model takes only a moment.
#
# ## 5.1 The runtime and your formulas ({points q5_1})
#
# This is the attention of 1.4, one operation after the other. Every token attends to itself and to the tokens before
# it. The boolean matrix `visible` says which tokens these are.


# %% tags=["setup"]
device = "cuda" if rl.cuda.is_available() else "cpu"


def unfused_mha(q, k, v, visible=None):
    """Attention of q over k and v (B, H, L, D/H) in five operations; `visible` is a bool mask (L, L), True to keep."""
    scores = q @ k.mT
    scores = scores * q.shape[-1] ** -0.5
    if visible is not None:
        scores = rl.where(visible, scores, float("-inf"))
    weights = rl.softmax(scores, dim=-1)
    return weights @ v


def counted(fn, B, L, D, H, dtype, *more, **options):
    """The counters of one call of fn on q, k and v (B, H, L, D/H) on the device "meta"."""
    q, k, v = (rl.empty(B, H, L, D // H, dtype=dtype, device="meta") for _ in range(3))
    with rl.count() as c:
        fn(q, k, v, *more, **options)
    return c


def moved_bytes(c):
    return c.bytes_read + c.bytes_written


# %%
B, L, D, H, n = 2, 16, 32, 4, 4
c = counted(unfused_mha, B, L, D, H, "float32", rl.empty(L, L, dtype="bool", device="meta"))
rows = [(name, op.launches, f"{op.flops:,}", f"{moved_bytes(op):,}") for name, op in c.by_op.items()]
rows.append(("all", c.launches, f"{c.flops:,}", f"{moved_bytes(c):,}"))
rows.append(("mha_flops, mha_bytes", "", f"{mha_flops(B, L, D, H):,}", f"{mha_bytes(B, L, D, H, n):,}"))
Table(("", "launches", "FLOPs", "bytes"), rows, f"Attention, B = {B}, L = {L}, D = {D}, H = {H}, fp32")

# %% [markdown]
# The two totals differ, and every difference has a reason. Go through the operations and compare the rules in the
# introduction with what the runtime counts. `mul` is the scaling, and `where` is the mask. You can call `counted` with
# other sizes too.
#
# - `extra_flops(B, L, D, H)`: the FLOPs that the runtime counts for causal `unfused_mha`, minus `mha_flops`
# - `extra_bytes(B, L, D, H, n)`: the bytes that the runtime counts for it, minus `mha_bytes`, with n bytes per element.
#   A bool takes one byte.
#
# Then count the fused attention that you know from Lab 3. `rl.attention(q, k, v)` does all of this and keeps the scores
# on the chip. Count it without a mask, because in our convention a mask saves no work.
#
# - `fused_launches`: how many launches it takes
# - `fused_bytes(B, L, D, H, n)`: the bytes that it reads and writes
# - `fused_intensity`: its arithmetic intensity in the setting of 1.4.5: B = 16, L = 16384, D = 4096, H = 16, fp16. Use
#   the FLOPs that the runtime counts.
# - `fused_bound`: `"memory"` or `"compute"`, on the A100 of 1.4.5


# %% nbgrader={"grade_id": "q5_1", "solution": true}
def extra_flops(B, L, D, H):
    """FLOPs that the runtime counts for causal unfused_mha, minus mha_flops: an int."""
    ### BEGIN SOLUTION
    # 5 FLOPs per score for the softmax, not 3; none for the mask, not 1.
    return H * B * L**2
    ### END SOLUTION


def extra_bytes(B, L, D, H, n):
    """Bytes that the runtime counts for causal unfused_mha, minus mha_bytes: an int."""
    ### BEGIN SOLUTION
    # Scaling reads and writes the scores, and the mask is read: one byte for each query and key.
    return 2 * n * H * B * L**2 + L**2
    ### END SOLUTION


def fused_bytes(B, L, D, H, n):
    """Bytes that rl.attention reads and writes: an int."""
    ### BEGIN SOLUTION
    return 4 * n * B * L * D
    ### END SOLUTION


fused_launches = None
fused_intensity = None
fused_bound = None
### BEGIN SOLUTION
fused_launches = 1
fused_intensity = (4 * 16 * 16384**2 * 4096 + 5 * 16 * 16 * 16384**2) / (4 * 2 * 16 * 16384 * 4096)
fused_bound = "compute"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q5_1_findings", "solution": true}
# *Where the runtime and my formulas differ, and why:*

# %% nbgrader={"grade_id": "q5_1_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
extra_hint = (
    "compare FLOPs per score: for which operations does the runtime count more than our rules, for which fewer?"
)
assert_counts(extra_flops, {(2, 16, 32, 4): 2048, (1, 1, 1, 1): 1, (3, 2, 10, 5): 60}, extra_hint, may_count=True)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H"), (1, 30000001, 11, 11)]
assert_counts(extra_flops, {(B, L, D, H): B * H * L * L for B, L, D, H in sizes}, extra_hint, may_count=True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_bytes_test", "grade": true, "points": 2} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
extra_hint = "which operation is fused in our rules and a launch of its own here, and which one reads one more input?"
assert_counts(
    extra_bytes, {(2, 16, 32, 4, 4): 16640, (1, 1, 1, 1, 2): 5, (3, 2, 10, 5, 2): 244}, extra_hint, may_count=True
)
### BEGIN HIDDEN TESTS
sizes = [size for size in sample_sizes("B L D H n", count=60) if size[-1] in (2, 4)]
sizes.append((1, 30000001, 11, 11, 4))
assert_counts(
    extra_bytes, {(B, L, D, H, n): L * L * (1 + 2 * B * H * n) for B, L, D, H, n in sizes}, extra_hint, may_count=True
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_fused_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
assert is_count(fused_launches), f"fused_launches must be a whole number (int), got {fused_launches!r}"
fused_hint = "what has to come from memory, and what has to go there, if the scores stay on the chip?"
assert_counts(
    fused_bytes, {(2, 16, 32, 4, 4): 16384, (1, 1, 1, 1, 2): 8, (3, 2, 10, 5, 2): 480}, fused_hint, may_count=True
)
### BEGIN HIDDEN TESTS
q, k, v = (rl.empty(1, 2, 8, 4, device="meta") for _ in range(3))
with rl.count() as c:
    rl.attention(q, k, v)
said = f"fused_launches is not {fused_launches}: look at c.launches of rl.attention(q, k, v)"
assert fused_launches == c.launches, said
sizes = [size for size in sample_sizes("B L D H n", count=60) if size[-1] in (2, 4)]
sizes.append((3, 11, 303000000001313, 101, 2))  # fewer than 2^63 FLOPs, so that it can be counted
assert_counts(fused_bytes, {(B, L, D, H, n): n * B * L * D * 4 for B, L, D, H, n in sizes}, fused_hint, may_count=True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_intensity_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
said = f"fused_intensity must be a positive number of FLOP/byte, got {fused_intensity!r}"
assert is_number(fused_intensity) and fused_intensity > 0, said
assert fused_bound in ("memory", "compute"), f'fused_bound must be "memory" or "compute", got {fused_bound!r}'
### BEGIN HIDDEN TESTS
intensity_hint = "divide the counted FLOPs of rl.attention(q, k, v) by fused_bytes"
assert_near("fused_intensity", fused_intensity, 8232, 1e-4, intensity_hint)
assert fused_bound == "compute", f'not "{fused_bound}": is fused_intensity below or above the ridge of the A100?'
### END HIDDEN TESTS

# %% [markdown]
# What does fusion change for GPT-2 XL? Take the case of Part 2 that moves the most bytes, B = 64 and L = 1024. This
# table is the attention of one layer on the T4, this time with a mask. A causal kernel skips the scores that the mask
# would hide, so it does fewer FLOPs.

# %%
sizes = (64, 1024, GPT2_XL["D"], GPT2_XL["H"], "float16")
visible = rl.empty(1024, 1024, dtype="bool", device="meta")
attentions = {
    "five operations": counted(unfused_mha, *sizes, visible),
    "rl.attention": counted(rl.attention, *sizes, is_causal=True),
}
rows = []
for name, c in attentions.items():
    figures = (f"{c.flops / 1e9:.0f}", f"{moved_bytes(c) / 1e9:.2f}", f"{c.flops / moved_bytes(c):.1f}")
    bound = rl.roofline.bound(T4.machine, c.flops / moved_bytes(c), "float16")
    rows.append((name, *figures, f"{c.peak_bytes / 1e9:.2f}", bound))
title = "Causal attention of one layer of GPT-2 XL, B = 64, L = 1024"
Table(("", "GFLOP", "GB moved", "FLOP/byte", "GB at the peak", "bound on a T4"), rows, title)

# %% [markdown]
# The model, the GPU and the size are the same, and only the kernels differ. Compare the bounds, and `fused_bound` with
# your answer in 1.4.5. So always ask which kernels a budget assumes.
