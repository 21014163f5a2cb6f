# %% [markdown]
# ## b1.1.4d A training step ({points b1_1_4d})
#
# A training step adds a backward pass and an optimizer. In 1.1.3b, `flop_ratio` said how many times the FLOPs of a
# forward pass a forward and a backward pass take together. Does a step also need that many times the launches? Count
# them.
#
# - `launches_of_step(config, batch_size, length)`: the launches of one training step, as `{"products": int,
#   "optimizer": int, "all": int}`. A step is a forward pass, `logits.mean()`, a backward pass, and a step of
#   `rl.optim.AdamW(model.parameters(), lr=1e-3)`. Run two steps and count the *second*: the first one also creates the
#   optimizer's state. Clear the gradients between the two steps with `model.zero_grad()`. Use V = 1000 and
#   `device="meta"`.
# - `adamw_bytes(parameters, fused)`: the bytes that one AdamW step moves for that many fp32 parameters, an int. A fused
#   kernel reads each parameter, its gradient and its two moments once, and writes the parameter and the two moments
#   once. The original computes AdamW in separate elementwise operations, which move 140 bytes for each parameter.
# - `gemm_share(kernels)`: the share (0 to 1) that products take of the time of all kernels. It is 0 if no product ran.
#   The kernels are dicts as in b1.1.4c. Use `by_class`.
# - `why_it_falls`: R's products take 88.0 per cent of the kernel time in a forward pass (small, L = 128), but only 59.3
#   per cent in a training step. Why? Choose a letter.
#     - `"a"`: The two products of a backward pass have smaller matrices, and take less time than the forward one.
#     - `"b"`: A backward pass works in lower precision than the forward pass, which its products profit from most.
#     - `"c"`: The optimizer moves bytes for every parameter, and multiplies no matrices.
#     - `"d"`: In training the host launches products one at a time, so the device waits between them.


# %% nbgrader={"grade_id": "b1_1_4d", "solution": true}
def launches_of_step(config, batch_size, length):
    """{"products": int, "optimizer": int, "all": int}: the launches of one training step."""
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
    """Bytes that one AdamW step reads and writes in fp32: an int."""
    ### BEGIN SOLUTION
    return (28 if fused else 140) * parameters
    ### END SOLUTION


def gemm_share(kernels):
    """The share that products take of the time of all kernels: 0 to 1."""
    ### BEGIN SOLUTION
    classes = by_class(kernels)
    return classes["gemm"]["share"] if "gemm" in classes else 0.0
    ### END SOLUTION


why_it_falls = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
why_it_falls = "c"
### END SOLUTION


# %% nbgrader={"grade_id": "b1_1_4d_test", "grade": true, "points": 2} rooflab={"needs": ["b1_1_4c"]}
def check_step(D, I, n, H, B, L, right):
    seen = measure.count(launches_of_step, {"d_model": D, "d_ff": I, "num_layers": n, "num_heads": H}, B, L)
    got = seen.value
    assert_keys("launches_of_step", got, ("products", "optimizer", "all"))
    for name in got:
        assert is_count(got[name]), f"launches_of_step: {name} has to be an int, got {got[name]!r}"
        assert got[name] == right[name], f"launches_of_step, n = {n}: expected {name} = {right[name]}, got {got[name]}"
    assert seen.launches >= right["all"], "launches_of_step: run training steps, and count the launches of the second"


check_step(768, 3072, 12, 12, 4, 128, {"products": 327, "optimizer": 2, "all": 709})
check_step(64, 128, 1, 2, 1, 16, {"products": 30, "optimizer": 1, "all": 68})
### BEGIN HIDDEN TESTS
check_step(2560, 10240, 32, 32, 4, 128, {"products": 867, "optimizer": 5, "all": 1872})
for config, _, B, L in draw_configs(measure.rng(), count=2):
    sizes = rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=L)
    model = rl.nn.TransformerLM(sizes, device="meta")
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        model.zero_grad()
        with rl.count() as passes:
            model(rl.empty(B, L, dtype="int64", device="meta")).mean().backward()
        with rl.count() as update:
            optimizer.step()
    right = {"products": passes.by_op["matmul"].launches, "optimizer": update.launches}
    check_step(*config.values(), B, L, {**right, "all": passes.launches + update.launches})
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_4d_values_test", "grade": true, "points": 3}
adamw_hint = "add 4 bytes for each number that is read and each that is written"
assert_whole(
    adamw_bytes,
    [((10, True), 280), ((10, False), 1400)],
    adamw_hint,
)
kernels = [{"op": "matmul", "name": "", "start_us": 0, "duration_us": 6.0, "bytes": 1}]
kernels += [{"op": "adamw", "name": "", "start_us": 30, "duration_us": 2.0, "bytes": 1}]
gemm_hint = "the time of the kernels of products over the time of all kernels; a kernel can be known by its name"
assert_near("gemm_share", gemm_share(kernels), 0.75, 1e-6, gemm_hint)
assert_near("gemm_share of no products", gemm_share(kernels[1:]), 0.0, 1e-6, gemm_hint)
assert why_it_falls in tuple("abcd"), "why_it_falls: choose a letter"
### BEGIN HIDDEN TESTS
N = measure.draw(10**6, 10**10)
assert_whole(adamw_bytes, [((N, True), 28 * N), ((N, False), 140 * N)], adamw_hint)
us = float(measure.draw(1, 50))
more = {"op": "", "name": "sgemm_nt", "start_us": 90, "duration_us": us, "bytes": 1}
assert_near("gemm_share", gemm_share([*kernels, more]), (6 + us) / (8 + us), 1e-6, gemm_hint)
assert_choice(
    why_it_falls,
    "c",
    a="The FLOPs of a backward pass are twice those of the forward pass, and nearly all are in large products.",
    b="R measured both passes in fp32.",
    d="The share is of the time in kernels. Gaps between kernels do not count.",
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
    "not fused",
)
Table(head, rows, title="One training step, B = 4, L = 128")

# %% [markdown]
# Divide the last two columns by the A100's 1.56 TB/s. How long does AdamW take in a step of the largest model, when it
# is fused and when it is not?
#
# How long would a step take on a GPU that you do not have? A profile on tensors without memory gives a *model* of it.
# Each launch costs a gap of 2 µs. Then the kernel runs for as long as its FLOPs need at the peak or its bytes need at
# the bandwidth, whichever is longer. This is a lower bound for each kernel; real kernels are slower. The table models
# W's A100. The last two columns are the times that W measured.

# %%
modelled_rows = []
a100 = rl.meta("A100 SXM 40GB")
launches = rl.profiler.launch_model(a100, gap_us=2)
for size, config in MODEL_CONFIGS.items():
    sizes = rl.nn.TransformerConfig(**config, vocab_size=10000, context_length=128)
    model = rl.nn.TransformerLM(sizes, device=a100)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)
    ids = rl.empty(4, 128, dtype="int64", device=a100)
    with rl.no_grad(), rl.profile(model=launches) as forward:
        model(ids)
    with rl.profile(model=launches) as step:
        model(ids).mean().backward()
        optimizer.step()
    shown = []
    for prof in (forward, step):
        dry_kernels = [looks.row_of(kernel) for kernel in prof.kernels]
        shown += [f"{busy_and_gaps(dry_kernels)['span_us'] / 1e3:.1f}", f"{gemm_share(dry_kernels):.0%}"]
    modelled_rows.append((size, *shown, *lab2.W_TIMES[size]))
head = ("size", "forward ms", "products", "step ms", "products", "W: forward ms", "W: forward and backward ms")
note = "The step contains AdamW. W's forward and backward do not."
Table(head, modelled_rows, title="Modelled A100-SXM4-40GB: fp32, B = 4, L = 128", note=note)

# %% [markdown]
# For the largest model the table says 185 ms and W measured 219 ms: the products limit this model. For the small one
# the table says 7.6 ms, and W measured five times as much. Does that agree with what you found in 1.1.3b?
#
# ## b1.1.4e Softmax against the products of attention ({points b1_1_4e})
#
# Softmax does few FLOPs, so it should cost hardly any time. R measured otherwise. First write attention so that a
# profile can tell its parts apart.
#
# **`annotated_scaled_dot_product_attention(Q, K, V, mask=None)`** computes
#
# $$O = \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{D_h}} + \mathrm{mask}\right) V$$
#
# - `Q`, `K`, `V` and the result are (B, H, L, D_h). `mask` is (L, L) and is added to the scores: 0 where a query may
#   see a key, -∞ elsewhere.
# - Put each part into a range: `attention_matmul_QK` (with the scaling and the mask), `attention_softmax`,
#   `attention_matmul_V`. Use `rl.softmax` for the second.
#
# Then predict the share of the softmax in two ways, by its FLOPs and by its bytes. For each score the softmax takes 5
# FLOPs: for the maximum, the subtraction, the exponential, the sum and the division.
#
# - `softmax_flop_ratio(head_dim, softmax_flops=5)`: the FLOPs of the softmax divided by those of both products
# - `softmax_byte_ratio(head_dim, length)`: the bytes that the softmax moves divided by those that both products move.
#   Each of the three operations reads its inputs once and writes its result once. Scaling and mask move nothing. B and
#   H cancel.
# - `what_r_measured`: R's softmax takes 0.46 to 1.38 times as long as both products together. Which quantity explains
#   that? Choose a letter.
#     - `"a"`: The FLOPs.
#     - `"b"`: The launches, because a softmax is one kernel and the products of attention are two of them.
#     - `"c"`: The number of heads, which decides how many rows of scores a softmax has to add up.
#     - `"d"`: The bytes, since both read or write every score, and softmax computes little with it.


# %% nbgrader={"grade_id": "b1_1_4e", "solution": true}
def annotated_scaled_dot_product_attention(Q, K, V, mask=None):
    """softmax(Q Kᵀ / sqrt(D_h) + mask) V, (B, H, L, D_h), with each part in a range of its own."""
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
    """FLOPs of the softmax divided by those of both products."""
    ### BEGIN SOLUTION
    return softmax_flops / (4 * head_dim)
    ### END SOLUTION


def softmax_byte_ratio(head_dim, length):
    """Bytes that the softmax moves divided by those that both products move."""
    ### BEGIN SOLUTION
    return 2 * length**2 / (2 * (length**2 + 2 * length * head_dim))
    ### END SOLUTION


what_r_measured = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
what_r_measured = "d"
### END SOLUTION


# %% nbgrader={"grade_id": "b1_1_4e_test", "grade": true, "points": 3}
def check_attention(B, H, L, D_h, masked):
    operands = [rl.tensor(measure.rng().standard_normal((B, H, L, D_h)).astype("float32")) for _ in "QKV"]
    mask = rl.triu(rl.full((L, L), float("-inf") if masked else 0.0), 1)
    seen = measure.count(annotated_scaled_dot_product_attention, *operands, *[mask] * masked)
    right, case = library_attention(*operands, mask), f"B = {B}, H = {H}, L = {L}, D_h = {D_h}, mask: {masked}"
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert_close(seen.value, right, rtol=1e-4, atol=1e-5, name=f"attention, {case}")
    names, ops = {"attention_matmul_QK", "attention_softmax", "attention_matmul_V"}, seen.by_range
    assert set(ops) == names, f"{case}: expected operations in the ranges {sorted(names)}, got {sorted(ops)}"
    QK, softmax, V = (ops[f"attention_{part}"] for part in ("matmul_QK", "softmax", "matmul_V"))
    others = QK.keys() & {"softmax", "attention"}
    assert QK.get("matmul") == 1 and not others, f"attention_matmul_QK: expected one matmul, got {QK}"
    assert softmax == {"softmax": 1}, f"attention_softmax: expected one softmax and no other op, got {softmax}"
    assert V == {"matmul": 1}, f"attention_matmul_V: expected one matmul and no other op, got {V}"
    macs = 2 * B * H * L * L * D_h
    assert seen.macs == macs, f"{case}: both products together take {macs:,} MACs, yours took {seen.macs:,}"


check_attention(2, 3, 16, 8, masked=False)
check_attention(1, 2, 20, 4, masked=True)
### BEGIN HIDDEN TESTS
check_attention(3, 1, measure.draw(25, 40), measure.draw(10, 20), masked=True)
check_attention(1, measure.draw(2, 5), measure.draw(6, 9), measure.draw(2, 5), masked=False)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_4e_ratio_test", "grade": true, "points": 2}
flop_hint = "how many FLOPs do both products take for one score?"
moved_hint = "which matrices does each of the three operations read, and which does it write?"
assert_near("softmax_flop_ratio(64)", softmax_flop_ratio(64), 0.01953, 1e-3, flop_hint)
assert_near(
    "softmax_flop_ratio(64, softmax_flops=3)", softmax_flop_ratio(64, softmax_flops=3), 0.01172, 1e-3, flop_hint
)
assert_near("softmax_byte_ratio(64, 128)", softmax_byte_ratio(64, 128), 0.5, 1e-3, moved_hint)
### BEGIN HIDDEN TESTS
assert_near("softmax_flop_ratio(80)", softmax_flop_ratio(80), 0.015625, 1e-3, flop_hint)
for D_h, L in [(64, 256), (64, 512), (64, 1024), (80, 128), (measure.draw(8, 256), measure.draw(16, 4096))]:
    assert_near(f"softmax_byte_ratio({D_h}, {L})", softmax_byte_ratio(D_h, L), 1 / (1 + 2 * D_h / L), 1e-6, moved_hint)
    flops = measure.draw(2, 9)
    assert_near(
        f"softmax_flop_ratio({D_h}, {flops})", softmax_flop_ratio(D_h, flops), flops / (4 * D_h), 1e-6, flop_hint
    )
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_4e_choice_test", "grade": true, "points": 1}
assert what_r_measured in tuple("abcd"), "what_r_measured: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    what_r_measured,
    "d",
    a="By its FLOPs the softmax would take two per cent of the time of the products.",
    b="Then the ratio would be the same at every L. In R's table it is not.",
    c="Small and medium have 12 and 16 heads. Do their ratios differ at the same L?",
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
# Compare the last three columns. One prediction is within a factor of two, and the other is off by a factor of twenty
# to seventy. So one of the two quantities is worth saving, and FlashAttention saves it in Lab 3.
