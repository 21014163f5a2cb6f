# %% [markdown]
# # Part 5. Paper and machine
#
# Everything so far was paper. A runtime that counts can say how far paper is from what really runs. Inside
# `with rl.count() as c:` it counts every launch of a kernel, its FLOPs, and the bytes that it reads and writes. It even
# counts without running: tensors on the device `"meta"` have no memory, so the largest model is counted at once.
#
# ## 5.1 The runtime against paper ({points q5_1})
#
# Here is the attention of 1.4, one operation after the other. Every token sees itself and the tokens before it, and a
# boolean matrix says which ones these are.


# %% tags=["setup"]
device = "cuda" if rl.cuda.is_available() else "cpu"


def unfused_mha(q, k, v, visible=None):
    """Attention of q over k and v (B, H, L, D/H) in five operations; `visible` is bool (L, L), True may be seen."""
    scores = q @ k.mT
    scores = scores * q.shape[-1] ** -0.5
    if visible is not None:
        scores = rl.where(visible, scores, float("-inf"))
    weights = rl.softmax(scores, dim=-1)
    return weights @ v


# %%
def counted(fn, B, L, D, H, dtype, *more, **options):
    """The counters of one call of fn on q, k and v (B, H, L, D/H) without memory."""
    q, k, v = (rl.empty(B, H, L, D // H, dtype=dtype, device="meta") for _ in range(3))
    with rl.count() as c:
        fn(q, k, v, *more, **options)
    return c


def moved_bytes(c):
    return c.bytes_read + c.bytes_written


B, L, D, H, n = 2, 16, 32, 4, 4
c = counted(unfused_mha, B, L, D, H, "float32", rl.empty(L, L, dtype="bool", device="meta"))
rows = [(name, op.launches, f"{op.flops:,}", f"{moved_bytes(op):,}") for name, op in c.by_op.items()]
rows.append(("all", c.launches, f"{c.flops:,}", f"{moved_bytes(c):,}"))
rows.append(("mha_flops, mha_bytes", "", f"{mha_flops(B, L, D, H):,}", f"{mha_bytes(B, L, D, H, n):,}"))
Table(("", "launches", "FLOPs", "bytes"), rows, f"Attention, B = {B}, L = {L}, D = {D}, H = {H}, fp32")

# %% [markdown]
# They differ, and every difference has a reason. Take the table in the introduction, and find out operation by
# operation what the runtime counts in another way. `mul` is the scaling, and `where` is the mask. You can count at
# other sizes, too.
#
# - `extra_flops(B, L, D, H)`: the FLOPs that the runtime counts for causal `unfused_mha`, less those of paper
# - `extra_bytes(B, L, D, H, n)`: the same for the bytes, with n bytes a number. A bool takes one byte
#
# Then the kernel that you know from Lab 3: `rl.attention(q, k, v)` does all of it at once, and the scores stay on the
# chip. Count it without a mask, because on paper a mask saves no work.
#
# - `fused_launches`: how many launches it is
# - `fused_bytes(B, L, D, H, n)`: the bytes that it reads and writes
# - `fused_intensity`: its arithmetic intensity in the setting of 1.4.5: B = 16, L = 16384, D = 4096, H = 16, fp16
# - `fused_bound`: `"memory"` or `"compute"`, for the A100 of 1.4.5


# %% nbgrader={"grade_id": "q5_1", "solution": true}
def extra_flops(B, L, D, H):
    """FLOPs that the runtime counts for causal unfused_mha, less those of paper: an int."""
    ### BEGIN SOLUTION
    # 5 FLOPs a score for softmax, not 3; none for the mask, not 1.
    return H * B * L**2
    ### END SOLUTION


def extra_bytes(B, L, D, H, n):
    """Bytes that the runtime counts for causal unfused_mha, less those of paper: an int."""
    ### BEGIN SOLUTION
    # Scaling reads and writes the scores, and the mask is read: a byte for each query and key.
    return 2 * n * H * B * L**2 + L**2
    ### END SOLUTION


fused_launches = None
fused_intensity = None
fused_bound = None
### BEGIN SOLUTION
fused_launches = 1
fused_intensity = (4 * 16 * 16384**2 * 4096 + 5 * 16 * 16 * 16384**2) / (4 * 2 * 16 * 16384 * 4096)
fused_bound = "compute"
### END SOLUTION


def fused_bytes(B, L, D, H, n):
    """Bytes that rl.attention reads and writes: an int."""
    ### BEGIN SOLUTION
    return 4 * n * B * L * D
    ### END SOLUTION


# %% [markdown] nbgrader={"grade_id": "q5_1_findings", "solution": true}
# *Where the runtime and paper differ, and why:*

# %% nbgrader={"grade_id": "q5_1_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
extra_hint = "for which rows does the runtime count more FLOPs a score than the introduction, and for which fewer?"
assert_counts(extra_flops, {(2, 16, 32, 4): 2048, (1, 1, 1, 1): 1, (3, 2, 10, 5): 60}, extra_hint)
### BEGIN HIDDEN TESTS
sizes = [*sample_sizes("B L D H", seed=5101), (1, 30000001, 11, 11)]
assert_counts(extra_flops, {(B, L, D, H): B * H * L * L for B, L, D, H in sizes}, extra_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_bytes_test", "grade": true, "points": 2} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
extra_hint = "which launch does paper not have? Which operation has one more input than on paper, of which size?"
assert_counts(extra_bytes, {(2, 16, 32, 4, 4): 16640, (1, 1, 1, 1, 2): 5, (3, 2, 10, 5, 2): 244}, extra_hint)
### BEGIN HIDDEN TESTS
sizes = [size for size in sample_sizes("B L D H n", seed=5102, count=60) if size[-1] > 1]
sizes.append((1, 30000001, 11, 11, 8))
assert_counts(extra_bytes, {(B, L, D, H, n): L * L * (1 + 2 * B * H * n) for B, L, D, H, n in sizes}, extra_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_fused_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
assert is_count(fused_launches), "fused_launches is a whole number"
fused_hint = "Q, K and V are read and the output is written, each of them once; what stays on the chip is not moved"
assert_counts(fused_bytes, {(2, 16, 32, 4, 4): 16384, (1, 1, 1, 1, 2): 8, (3, 2, 10, 5, 2): 480}, fused_hint)
### BEGIN HIDDEN TESTS
q, k, v = (rl.empty(1, 2, 8, 4, device="meta") for _ in range(3))
with rl.count() as c:
    rl.attention(q, k, v)
assert fused_launches == c.launches, "fused_launches: look at c.launches of rl.attention(q, k, v)"
sizes = [size for size in sample_sizes("B L D H n", seed=5103, count=60) if size[-1] in (2, 4)]
sizes.append((3, 50000017, 1010000, 101, 2))
assert_counts(fused_bytes, {(B, L, D, H, n): n * B * L * D * 4 for B, L, D, H, n in sizes}, fused_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_intensity_test", "grade": true, "points": 1} rooflab={"needs": ["q1_4_1", "q1_4_2"]}
assert is_number(fused_intensity) and fused_intensity > 0, "fused_intensity is a number, FLOP/byte"
assert fused_bound in ("memory", "compute"), 'fused_bound: "memory" or "compute"'
### BEGIN HIDDEN TESTS
said = "fused_intensity: the FLOPs of rl.attention(q, k, v) without a mask over fused_bytes, in the setting of 1.4.5"
assert is_near(fused_intensity, 8232, 1e-4), said
assert fused_bound == "compute", "fused_bound: compare fused_intensity with the ridge of the A100"
### END HIDDEN TESTS

# %% [markdown]
# And the case of Part 2 in which attention moves the most, B = 64 and L = 1024 of GPT-2 XL? One layer's attention on
# the T4, with a mask this time. A causal kernel skips the scores that the mask would drop.

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
# One model, one GPU, one size, and two verdicts, because the kernels differ. Compare `fused_bound` with your verdict of
# 1.4.5, too. So before you trust a budget, ask which kernels it is a budget *of*.
