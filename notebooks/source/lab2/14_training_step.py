# %% [markdown]
# ## 1.1.4d A training step ({points q1_1_4d})
#
# Training adds a backward pass and an optimizer. Count again, and do not expect three times the same.
#
# - `launches_of_step(config, batch_size, length)`: `{"products", "optimizer", "all"}` of one training step: forward,
#   the mean of the logits, backward, and a step of `rl.optim.AdamW(model.parameters(), lr=1e-3)`. `"optimizer"` is what
#   the optimizer launches in its *second* step: the first one also makes its state. Use `device="meta"` and V = 1000.
# - `adamw_bytes(parameters, fused)`: the bytes that AdamW moves for so many parameters in fp32, a whole number. A fused
#   kernel reads each parameter, its gradient and both moments once, and writes all of them but the gradient. Written
#   out in single operations, as the original assignment has it, each parameter costs 140 bytes.
# - `gemm_share(kernels)`: the share of busy time that products have, from kernels as in 1.1.4c. Use `by_class`.
# - `why_it_falls`: R's products have 88.0 per cent of the kernel time of a forward pass (small, L = 128), and 59.3 per
#   cent of a training step, although each product of the forward pass has two in the backward pass. Why? Choose a
#   letter.
#     - `"a"`: The two products of a backward pass have smaller matrices, and take less time than the forward one.
#     - `"b"`: A step of the optimizer moves bytes for every parameter, and multiplies no matrices.
#     - `"c"`: A backward pass works in lower precision than the forward pass, which its products profit from most.
#     - `"d"`: In training the host launches products one at a time, so the device waits between them.


# %% nbgrader={"grade_id": "q1_1_4d", "solution": true}
def launches_of_step(config, batch_size, length):
    """{"products", "optimizer", "all"}: launches of one training step."""
    ### BEGIN SOLUTION
    sizes = rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    for _ in range(2):
        model.zero_grad()
        with rl.count() as passes:
            model(ids).mean().backward()
        with rl.count() as update:
            optimizer.step()
    products = passes.by_op["matmul"].launches
    return {"products": products, "optimizer": update.launches, "all": passes.launches + update.launches}
    ### END SOLUTION


def adamw_bytes(parameters, fused):
    """Bytes that one step of AdamW moves: an int."""
    ### BEGIN SOLUTION
    return (28 if fused else 140) * parameters
    ### END SOLUTION


def gemm_share(kernels):
    """The share of the time of all kernels that products have."""
    ### BEGIN SOLUTION
    classes = by_class(kernels)
    return classes["gemm"]["share"] if "gemm" in classes else 0.0
    ### END SOLUTION


why_it_falls = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
why_it_falls = "b"
### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_4d_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_4c"]}
def check_step(D, I, n, H, B, L):
    config = {"d_model": D, "d_ff": I, "num_layers": n, "num_heads": H}
    got, right = launches_of_step(config, B, L), looks.step_launches(config, B, L)
    assert_keys("launches_of_step", got, ("products", "optimizer", "all"))
    for name in got:
        assert is_count(got[name]), f"launches_of_step: {name} is a whole number"
        assert got[name] == right[name], f"n = {n}: one step has {right[name]} launches ({name}), not {got[name]}"


check_step(768, 3072, 12, 12, 4, 128)
check_step(64, 128, 1, 2, 1, 16)
### BEGIN HIDDEN TESTS
check_step(2560, 10240, 32, 32, 4, 128)
check_step(96, 200, 5, 3, 2, 77)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_4d_values_test", "grade": true, "points": 3}
assert_whole(adamw_bytes, [((10, True), 280), ((10, False), 1400)], "4 bytes for each number that is read or written")
kernels = [{"op": "matmul", "name": "", "start_us": 0, "duration_us": 6.0, "bytes": 1}]
kernels += [{"op": "adamw", "name": "", "start_us": 30, "duration_us": 2.0, "bytes": 1}]
assert_near("gemm_share", gemm_share(kernels), 0.75, 1e-6)
assert why_it_falls in tuple("abcd"), "why_it_falls: choose a letter"
### BEGIN HIDDEN TESTS
N = 3406809600
assert_whole(adamw_bytes, [((N, True), 28 * N), ((N, False), 140 * N)], "28 bytes a parameter when fused, else 140")
more = {"op": "", "name": "sgemm_nt", "start_us": 90, "duration_us": 8.0, "bytes": 1}
assert_near("gemm_share", gemm_share([*kernels, more]), 0.875, 1e-6)
assert_near("gemm_share of no products", gemm_share(kernels[1:]), 0.0, 1e-6)
assert_choice(
    why_it_falls,
    "b",
    a="The FLOPs of a backward pass are twice those of the forward pass, and nearly all are in large products.",
    c="Both passes compute in fp32 here.",
    d="It is a share of the time of kernels, and gaps between them do not count.",
)
### END HIDDEN TESTS

# %%
rows = []
for size, config in MODEL_CONFIGS.items():
    forward, step = launches_of_forward(config, 4, 128), launches_of_step(config, 4, 128)
    N = count_parameters(config, 10000)
    moved = [f"{adamw_bytes(N, fused) / 1e9:.1f}" for fused in (True, False)]
    rows.append((size, forward["products"], step["products"], forward["all"], step["all"], step["optimizer"], *moved))
head = (
    "size",
    "products, forward",
    "step",
    "launches, forward",
    "step",
    "of these AdamW",
    "AdamW GB, fused",
    "written out",
)
Table(head, rows, title="One training step, B = 4, L = 128")

# %% [markdown]
# For the 2.7B model AdamW moves 95.4 GB a step when it is fused, and 477 GB when it is not. At 1.5 TB/s that is 64 ms
# and 318 ms, in which nothing is multiplied.
#
# How long would all this take on a GPU that you do not have? A profile on tensors without memory gives a *model* of it:
# each launch takes a gap of 2 µs and then as long as its FLOPs need at the peak, or its bytes at the bandwidth,
# whichever is longer. No kernel is faster than that, and real ones are slower. Below is W's A100, with the times that W
# measured beside it.

# %%
modelled_rows = []
a100 = rl.meta("A100 SXM 40GB")
for size, config in MODEL_CONFIGS.items():
    sizes = rl.nn.TransformerConfig(**config, vocab_size=10000, context_length=128)
    model = rl.nn.TransformerLM(sizes, device=a100)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)
    ids = rl.empty(4, 128, dtype="int64", device=a100)
    with rl.no_grad(), rl.profile() as forward:
        model(ids)
    with rl.profile() as step:
        model(ids).mean().backward()
        optimizer.step()
    shown = []
    for prof in (forward, step):
        dry_kernels = [looks.row_of(kernel) for kernel in prof.kernels]
        shown += [f"{busy_and_gaps(dry_kernels)['span_us'] / 1e3:.1f}", f"{gemm_share(dry_kernels):.0%}"]
    modelled_rows.append((size, *shown, *lab2.W_TIMES[size]))
head = ("size", "forward ms", "products", "step ms", "products", "W: forward ms", "W: forward and backward ms")
note = "Modelled, not measured: W's times without AdamW."
Table(head, modelled_rows, title="A model of an A100-SXM4-40GB: fp32, B = 4, L = 128", note=note)

# %% [markdown]
# W's largest model comes near to what its FLOPs allow. Its small one takes several times as long, since kernels wait
# for the host there. That is what the flat times of 1.1.3b told.
#
# ## 1.1.4e Softmax against the products of attention ({points q1_1_4e})
#
# **`annotated_scaled_dot_product_attention(Q, K, V, mask=None)`**: attention with a range around each of its parts.
#
# $$O = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{D_h}} + \mathrm{mask}\right) V$$
#
# `Q`, `K`, `V` are (B, H, L, D_h). `mask` is (L, L) and is added: 0 where a key may be seen, -∞ elsewhere. The ranges
# are `attention_matmul_QK` (with the scaling and the mask), `attention_softmax` and `attention_matmul_V`. Use
# `rl.softmax`.
#
# How much of that should the softmax take? By FLOPs a score costs 4 D_h in the two products, and 5 in the softmax:
# maximum, subtraction, exponential, sum, division. By bytes it looks different.
#
# - `softmax_flop_ratio(head_dim, softmax_flops=5)`: FLOPs of the softmax over those of both products
# - `softmax_byte_ratio(head_dim, length)`: bytes of the softmax over those of both products, with every operand read
#   once and every result written once, when scaling and mask move nothing. B and H cancel.
# - `what_r_measured`: R's softmax takes 0.46 to 1.38 times as long as both products together. What does that follow?
#   Choose a letter.
#     - `"a"`: The FLOPs.
#     - `"b"`: The bytes, since each score is moved in both, and little is computed with it.
#     - `"c"`: The launches, because a softmax is one kernel and the products of attention are two of them.
#     - `"d"`: The number of heads, which decides how many rows of scores a softmax has to add up.


# %% nbgrader={"grade_id": "q1_1_4e", "solution": true}
def annotated_scaled_dot_product_attention(Q, K, V, mask=None):
    """softmax(Q Kᵀ / sqrt(D_h) + mask) V, each part in its range: (B, H, L, D_h)."""
    ### BEGIN SOLUTION
    with rl.range("attention_matmul_QK"):
        scores = (Q @ K.transpose(-2, -1)) * Q.shape[-1] ** -0.5
        scores = scores if mask is None else scores + mask
    with rl.range("attention_softmax"):
        weights = rl.softmax(scores)
    with rl.range("attention_matmul_V"):
        return weights @ V
    ### END SOLUTION


def softmax_flop_ratio(head_dim, softmax_flops=5):
    """FLOPs of the softmax over those of the two products."""
    ### BEGIN SOLUTION
    return softmax_flops / (4 * head_dim)
    ### END SOLUTION


def softmax_byte_ratio(head_dim, length):
    """Bytes of the softmax over those of the two products."""
    ### BEGIN SOLUTION
    return 2 * length**2 / (2 * (length**2 + 2 * length * head_dim))
    ### END SOLUTION


what_r_measured = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
what_r_measured = "b"
### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_4e_test", "grade": true, "points": 3}
def check_attention(B, H, L, D_h, masked):
    seen = measure.observed(
        annotated_scaled_dot_product_attention, "lab2_looks.look_at_attention", B, H, L, D_h, masked
    )
    right, case = (
        looks.attention_float64(B, H, L, D_h, masked),
        f"B = {B}, H = {H}, L = {L}, D_h = {D_h}, mask: {masked}",
    )
    assert_close(seen["value"], right, rtol=1e-4, atol=1e-5, name=f"attention, {case}")
    ops = seen["ops"]
    names = {"attention_matmul_QK", "attention_softmax", "attention_matmul_V"}
    assert set(ops) == names, f"{case}: kernels run in the ranges {sorted(ops)}, and not in {sorted(names)}"
    assert ops["attention_matmul_QK"].count("matmul") == 1, "attention_matmul_QK has the product of Q and K"
    assert set(ops["attention_softmax"]) == {"softmax"}, "attention_softmax has the softmax, and nothing else"
    assert ops["attention_matmul_V"] == ["matmul"], "attention_matmul_V has the product with V, and nothing else"


check_attention(2, 3, 16, 8, masked=False)
check_attention(1, 2, 20, 4, masked=True)
### BEGIN HIDDEN TESTS
check_attention(3, 1, 33, 16, masked=True)
check_attention(1, 4, 7, 2, masked=False)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_4e_ratio_test", "grade": true, "points": 2}
assert_near("softmax_flop_ratio(64)", softmax_flop_ratio(64), 0.01953, 1e-3)
assert_near("softmax_flop_ratio(64, softmax_flops=3)", softmax_flop_ratio(64, softmax_flops=3), 0.01172, 1e-3)
assert_near("softmax_byte_ratio(64, 128)", softmax_byte_ratio(64, 128), 0.5, 1e-3)
### BEGIN HIDDEN TESTS
assert_near("softmax_flop_ratio(80)", softmax_flop_ratio(80), 0.015625, 1e-3)
for D_h, L in [(64, 256), (64, 512), (64, 1024), (80, 128), (16, 4096), (128, 77)]:
    assert_near(f"softmax_byte_ratio({D_h}, {L})", softmax_byte_ratio(D_h, L), 1 / (1 + 2 * D_h / L), 1e-6)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_4e_choice_test", "grade": true, "points": 1}
assert what_r_measured in tuple("abcd"), "what_r_measured: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    what_r_measured,
    "b",
    a="By FLOPs a softmax would take two per cent of the time of the products.",
    c="Then the ratio would be the same at every L. Look at R's numbers.",
    d="Small and medium have 12 and 16 heads. Do their ratios differ at the same L?",
)
### END HIDDEN TESTS

# %%
rows = []
for (size, L), (softmax_ms, products_ms) in lab2.R_ATTENTION.items():
    D_h = MODEL_CONFIGS[size]["d_model"] // MODEL_CONFIGS[size]["num_heads"]
    ratios = (softmax_ms / products_ms, softmax_byte_ratio(D_h, L), softmax_flop_ratio(D_h))
    rows.append((size, L, softmax_ms, products_ms, *(f"{ratio:.3f}" for ratio in ratios)))
head = ("size", "L", "softmax ms", "products ms", "ratio of times", "of bytes", "of FLOPs")
Table(head, rows, title="R, softmax and products of attention in one forward pass, fp32")

# %% [markdown]
# The ratio of FLOPs is off by a factor of twenty to seventy, and that of the bytes by two at most. So to speed up a
# softmax, do not save arithmetic. Save the trips to memory, as the FlashAttention of Lab 3 does.
