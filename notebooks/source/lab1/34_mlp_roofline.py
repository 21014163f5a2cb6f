# %% [markdown]
# ## 3.4 The MLP under the roof
#
# Now put the MLP on the roofline, in bf16: its bytes are those of 16-bit numbers, so the peak has to be the one for 16
# bit as well. `get_ridge_point("A6000", "bf16")` gives the ridge. The figures behind it are in `GPU_SPECS["A6000"]`, as
# `"bf16_tflops"` and `"memory_bandwidth_tb_s"`.
#
# ## 3.4.1 Prefill and decode ({points q3_4_1})
#
# ### a) Its intensity ({points q3_4_1_test})
#
# Write `mlp_intensity(B, L, config)`: FLOPs over bytes of the MLP for B sequences with L new tokens each. Use
# `calc_mlp_flops` and `calc_mlp_io`.


# %% nbgrader={"grade_id": "q3_4_1", "solution": true}
def mlp_intensity(B, L, config):
    """Arithmetic intensity of the MLP in 16 bit, FLOP/byte."""
    ### BEGIN SOLUTION
    sizes = B, L, config["hidden_size"], config["intermediate_size"]
    return calc_mlp_flops(*sizes) / calc_mlp_io(*sizes)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_4_1_test", "grade": true, "points": 2}
def widths(D, I):
    return {**GEMMA3_270M_CONFIG, "hidden_size": D, "intermediate_size": I}


def check_mlp_intensity(B, L, config, flops, moved):
    D, I = config["hidden_size"], config["intermediate_size"]
    case = f"B = {B}, L = {L}, D = {D}, I = {I}"
    got = mlp_intensity(B, L, config)
    assert is_near(got, flops / moved), f"{case}: expected {flops:,} FLOPs / {moved:,} bytes, got {got}"


check_mlp_intensity(1, 1, widths(D=2, I=3), flops=63, moved=96)
check_mlp_intensity(4, 2, widths(D=2, I=3), flops=504, moved=516)
check_mlp_intensity(2, 16, GEMMA3_270M_CONFIG, flops=252248064, moved=9035776)
### BEGIN HIDDEN TESTS
sizes = B, L, D, I = [measure.draw(low, low + 9) for low in (2, 12, 22, 32)]  # no two of them are equal
check_mlp_intensity(B, L, widths(D, I), calc_mlp_flops(*sizes), calc_mlp_io(*sizes))
check_mlp_intensity(64, 1, GEMMA3_270M_CONFIG, flops=504496128, moved=10207232)
check_mlp_intensity(1, 512, GEMMA3_PSEUDO_CONFIG, flops=24493031424, moved=107937792)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Which limit is reached? ({points q3_4_1_values_test q3_4_1_why_test})
#
# Take the 270M model and B = 8 sequences with prompts of 2048 tokens. Prefill handles all tokens of the prompts at
# once. A step of decode handles one new token in each sequence.
#
# - `prefill_ai` and `decode_ai`: the intensity of the MLP in each, in FLOP/byte
# - `prefill_bound` and `decode_bound`: `"memory"` or `"compute"`, on an A6000 in bf16
# - `why_they_differ`: the reason. Choose a letter, and explain it in a sentence below.
#     - `"a"`: In decode the MLP has to read the keys and values of all earlier tokens too.
#     - `"b"`: Decode does fewer FLOPs for each token, since prefill has done most of them.
#     - `"c"`: Each weight that is read serves more tokens in prefill.
#     - `"d"`: Prefill keeps its numbers in a format that takes fewer bytes.

# %% nbgrader={"grade_id": "q3_4_1_values", "solution": true}
prefill_ai = None  # FLOP/byte
decode_ai = None  # FLOP/byte
prefill_bound = None  # "memory" or "compute"
decode_bound = None  # "memory" or "compute"
why_they_differ = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
prefill_ai = mlp_intensity(8, 2048, GEMMA3_270M_CONFIG)  # 212.5
decode_ai = mlp_intensity(8, 1, GEMMA3_270M_CONFIG)  # 7.73
prefill_bound = "compute"  # the ridge is 154.8 / 0.768 = 201.6
decode_bound = "memory"
why_they_differ = "c"  # 16384 tokens against 8
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q3_4_1_findings", "solution": true}
# *Why the two differ:*

# %% nbgrader={"grade_id": "q3_4_1_values_test", "grade": true, "points": 2}
assert is_number(prefill_ai) and is_number(decode_ai), "prefill_ai and decode_ai have to be numbers, in FLOP/byte"
for bound in (prefill_bound, decode_bound):
    assert bound in ("memory", "compute"), 'prefill_bound and decode_bound: "memory" or "compute"'
### BEGIN HIDDEN TESTS
assert is_near(prefill_ai, 212.542, 1e-3), "prefill_ai: B and L of the prompts, sizes of the 270M model"
assert is_near(decode_ai, 7.7310, 1e-3), "decode_ai: how many new tokens does the MLP see in a step?"
assert prefill_bound == "compute", "prefill_bound: compare prefill_ai with the ridge of an A6000 in bf16"
assert decode_bound == "memory", "decode_bound: compare decode_ai with the ridge of an A6000 in bf16"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_1_why_test", "grade": true, "points": 1}
assert why_they_differ in tuple("abcd"), "why_they_differ: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    why_they_differ,
    "c",
    a="That is attention. Look at the drawing of the layer: what does the MLP read?",
    b="Divide calc_mlp_flops by the number of tokens, for both.",
    d="Both are in bf16. Compare what they read for each number.",
)
### END HIDDEN TESTS

# %% [markdown]
# Here are both on the roof of an A6000, with the figures of its datasheet, and below on the measured roof of your
# machine. A hollow marker is not measured: it is drawn on the roof.
#
# `place_mlp` measures a point if one call should take no more than five seconds. It predicts that from the FLOPs and
# the height of the roof. The caches are emptied before each call. In the whole model 17 other layers run before a layer
# runs again, so its weights are no longer in a cache.


# %%
def place_mlp(sizes, series, budget_s=5.0):
    """Points of the MLP of the 270M model for {label: (B, L)}; hollow beyond the budget or the memory."""
    D, I = GEMMA3_270M_CONFIG["hidden_size"], GEMMA3_270M_CONFIG["intermediate_size"]
    weights, points = make_mlp_weights(GEMMA3_270M_CONFIG), []
    for name, (B, L) in sizes.items():
        intensity = mlp_intensity(B, L, GEMMA3_270M_CONFIG)
        predicted_s = calc_mlp_flops(B, L, D, I) / (1e12 * rl.roofline.attainable(ceilings, intensity, "bfloat16"))
        room = 12 * B * L * I  # for four (B, L, I) tensors, and some more
        if predicted_s > budget_s or room > rl.memory.available(device):
            points.append(rl.roofline.Point(name, intensity, series=series))
            continue
        x = rl.randn(B, L, D, dtype="bfloat16", device=device)
        with rl.count() as cost:
            mlp(x, weights)
        repeat = int(max(1, min(20, budget_s / predicted_s)))
        timing = latency(mlp, x, weights, warmup=min(3, repeat - 1), repeat=repeat, l2="cold")
        points.append(rl.roofline.measured_point(name, cost, timing, series))
    return points


title = "MLP of Gemma 3 270M, B = 8, L = 2048"
rl.plots.plot_roofline("A6000", {"decode": decode_ai, "prefill": prefill_ai}, dtype="bfloat16", title=title)

# %%
points = place_mlp({"decode": (8, 1), "prefill": (8, 2048)}, "MLP")
rl.plots.plot_roofline(ceilings, points, dtype="bfloat16", title=f"{title}, measured here")

# %% [markdown]
# A GPU can stay far below its roof in decode. An H100 could read the 7.9 MB of this MLP's weights in 2.3 µs, and each
# of the five kernels takes about as long just to start. The roofline does not contain such fixed costs.
#
# ## 3.4.2 A larger batch in decode ({points q3_4_2})
#
# A server decodes for many users at once, and runs their tokens through the model as one batch. What does that do to
# the intensity? Take the MLP of the 270M model.
#
# - `decode_points`: its intensity in a decode step for a batch of 1, 4, 16 and 64, as `{batch: FLOP/byte}`
# - `why_ai_grows`: why the intensity grows with the batch. Explain your letter in a sentence below.
#     - `"a"`: More sequences bring more weights with them, and each of these has FLOPs of its own.
#     - `"b"`: The weights are read once for the whole batch.
#     - `"c"`: The units of the processor are used better, so that more FLOPs are done in a second.
#     - `"d"`: The more sequences there are, the fewer bytes the activations of each one take.
# - `smallest_compute_bound_batch(peak_tflop_s, bandwidth_tb_s, config)`: the smallest batch for which decode of the MLP
#   is compute-bound on a machine, an `int`. An intensity equal to the ridge counts as compute-bound. Return `None` if
#   it stays memory-bound however large the batch is.
# - `crossing_batch_a6000`: that batch for the 270M model on an A6000 in bf16


# %% nbgrader={"grade_id": "q3_4_2", "solution": true}
def smallest_compute_bound_batch(peak_tflop_s, bandwidth_tb_s, config):
    """Smallest B for which decode of the MLP reaches the ridge: an int, or None if no batch does."""
    ### BEGIN SOLUTION
    D, I = config["hidden_size"], config["intermediate_size"]
    ridge = peak_tflop_s / bandwidth_tb_s
    # B (6 D + 9) I / (6 D I + B (6 D + 16 I)) >= ridge
    gain = (6 * D + 9) * I - ridge * (6 * D + 16 * I)
    return max(1, int(np.ceil(ridge * 6 * D * I / gain))) if gain > 0 else None
    ### END SOLUTION


decode_points = {}  # batch: FLOP/byte
crossing_batch_a6000 = None  # an int
why_ai_grows = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
decode_points = {B: mlp_intensity(B, 1, GEMMA3_270M_CONFIG) for B in (1, 4, 16, 64)}
crossing_batch_a6000 = 3146
why_ai_grows = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q3_4_2_findings", "solution": true}
# *What I find about the batch:*

# %% nbgrader={"grade_id": "q3_4_2_test", "grade": true, "points": 1} rooflab={"needs": ["q3_4_1"]}
batches = (1, 4, 16, 64)
keys = isinstance(decode_points, dict) and set(decode_points) == set(batches)
assert keys, "decode_points is a dict with the keys 1, 4, 16 and 64"
for B in batches:
    said = f"decode_points[{B}]: use mlp_intensity of 3.4.1, with one new token in each sequence"
    assert is_near(decode_points[B], mlp_intensity(B, 1, GEMMA3_270M_CONFIG)), said
### BEGIN HIDDEN TESTS
for B, expected in zip(batches, (0.997691, 3.93542, 14.92600, 49.42536), strict=True):
    assert is_near(decode_points[B], expected, 1e-3), f"decode_points[{B}]: count FLOPs and bytes at L = 1 again"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_4_2_batch_test", "grade": true, "points": 2}
def check_batch(peak, bandwidth, D, I, expected):
    config = {**GEMMA3_270M_CONFIG, "hidden_size": D, "intermediate_size": I}
    got = smallest_compute_bound_batch(peak, bandwidth, config)
    case = f"{peak} TFLOP/s, {bandwidth} TB/s, D = {D}, I = {I}"
    if expected is None:
        assert got is None, f"{case}: no batch reaches the ridge: expected None, got {got!r}"
        return
    assert is_count(got), f"{case}: expected an int, got {got!r}"
    hint = "how does the intensity of decode depend on B? Is that of this B at the ridge, and that of B - 1 below it?"
    assert got == expected, f"{case}: expected {expected}, got {got}; {hint}"


check_batch(1.5, 1.0, D=4, I=8, expected=8)  # the intensity at B = 8 is exactly 1.5
check_batch(1.51, 1.0, D=4, I=8, expected=9)
check_batch(1.8, 1.0, D=4, I=8, expected=None)  # the intensity stays below 1.74
check_batch(0.5, 1.0, D=4, I=8, expected=1)
check_batch(10.0, 1.0, D=640, I=2048, expected=11)
check_batch(205.0, 1.0, D=640, I=2048, expected=4264)
check_batch(214.0, 1.0, D=640, I=2048, expected=34601)
### BEGIN HIDDEN TESTS
B, D, I, bandwidth = measure.draw(2, 60), measure.draw(70, 199), measure.draw(200, 600), measure.draw(5, 40) / 10
below, above = (calc_mlp_flops(n, 1, D, I) / calc_mlp_io(n, 1, D, I) for n in (B - 1, B))
limit = (6 * D + 9) * I / (6 * D + 16 * I)
check_batch(bandwidth * (below + above) / 2, bandwidth, D, I, expected=B)
check_batch(bandwidth * limit * 1.01, bandwidth, D, I, expected=None)
for peak, bandwidth, D, I, expected in [
    (3.0, 2.0, 4, 8, 8),
    (100.0, 1.0, 640, 2048, 187),
    (989.4, 3.35, 640, 2048, None),
    (989.4, 3.35, 1152, 6912, 1075),
    (1.0, 8.0, 64, 64, 1),
]:
    config = {**GEMMA3_270M_CONFIG, "hidden_size": D, "intermediate_size": I}
    got = smallest_compute_bound_batch(peak, bandwidth, config)
    case = f"{peak} TFLOP/s, {bandwidth} TB/s, D = {D}, I = {I}"
    said = f"{case}: expected {expected}, got {got}; write the intensity as a function of the batch"
    assert got == expected, said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_2_values_test", "grade": true, "points": 1}
assert is_count(crossing_batch_a6000), f"crossing_batch_a6000 has to be an int, got {crossing_batch_a6000!r}"
### BEGIN HIDDEN TESTS
assert crossing_batch_a6000 == 3146, "crossing_batch_a6000: use your function with the bf16 figures of GPU_SPECS"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_2_why_test", "grade": true, "points": 1}
assert why_ai_grows in tuple("abcd"), "why_ai_grows: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    why_ai_grows,
    "b",
    a="All sequences use the same model. Look at the term D I in calc_mlp_io.",
    c="The intensity is a ratio of counts: a processor's speed is not in it.",
    d="Look at calc_mlp_io: how do its terms grow with B?",
)
### END HIDDEN TESTS

# %% [markdown]
# For a small batch the intensity is about one FLOP/byte for each sequence. If it kept growing like that, decode would
# become compute-bound at a batch equal to the ridge: about 202 on an A6000. Compare that with your
# `crossing_batch_a6000`. The growth slows down, and the next question asks why.

# %%
peak_tflop_s, bandwidth_tb_s = ceilings.peak_tflop_s["bfloat16"], ceilings.bandwidth_tb_s
here = smallest_compute_bound_batch(peak_tflop_s, bandwidth_tb_s, GEMMA3_270M_CONFIG)
print(f"this machine in bf16: ridge {peak_tflop_s / bandwidth_tb_s:.1f} FLOP/byte, compute-bound from batch {here}")

title = "Decode of the MLP of Gemma 3 270M"
on_the_roof = {f"B = {B}": intensity for B, intensity in decode_points.items()}
rl.plots.plot_roofline("A6000", on_the_roof, dtype="bfloat16", title=title)

# %%
decode_here = place_mlp({f"B = {B}": (B, 1) for B in decode_points}, "decode")
rl.plots.plot_roofline(ceilings, decode_here, dtype="bfloat16", title=f"{title}, measured here")

# %% [markdown]
# ## 3.4.3 A longer prompt in prefill ({points q3_4_3})
#
# Prefill already has many tokens. Does a longer prompt raise the intensity further? Take the MLP of the 270M model and
# B = 32 prompts.
#
# - `prefill_points`: its intensity in prefill for prompts of 64, 256, 1024 and 4096 tokens, as `{length: FLOP/byte}`
# - `mlp_ai_limit(config)`: the intensity of the MLP of any model for very many tokens, in FLOP/byte
# - `bound_at_the_limit`: whether the MLP of the 270M model is `"memory"`- or `"compute"`-bound for very many tokens, in
#   bf16 on an A6000 and on an H100: `{"A6000": ..., "H100": ...}`
# - `why_it_saturates`: why the intensity stops growing. Explain your letter in a sentence below.
#     - `"a"`: The processor has reached its peak, so that more tokens cannot make it any faster.
#     - `"b"`: Every token brings bytes of its own.
#     - `"c"`: The weights do not fit in the cache any more, and each token reads them again.
#     - `"d"`: The number of scores grows with the square of the length, and they take over.


# %% nbgrader={"grade_id": "q3_4_3", "solution": true}
def mlp_ai_limit(config):
    """Arithmetic intensity of the MLP in 16 bit when B L goes to infinity, FLOP/byte."""
    ### BEGIN SOLUTION
    # What grows with the tokens: (6 D + 9) I FLOPs and 6 D + 16 I bytes for each.
    D, I = config["hidden_size"], config["intermediate_size"]
    return (6 * D + 9) * I / (6 * D + 16 * I)
    ### END SOLUTION


prefill_points = {}  # length: FLOP/byte
bound_at_the_limit = {}  # GPU: "memory" or "compute"
why_it_saturates = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
prefill_points = {L: mlp_intensity(32, L, GEMMA3_270M_CONFIG) for L in (64, 256, 1024, 4096)}
bound_at_the_limit = {"A6000": "compute", "H100": "memory"}  # 215.3 against ridges of 201.6 and 295.3
why_it_saturates = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q3_4_3_findings", "solution": true}
# *What I find about the length:*

# %% nbgrader={"grade_id": "q3_4_3_test", "grade": true, "points": 1} rooflab={"needs": ["q3_4_1"]}
lengths = (64, 256, 1024, 4096)
keys = isinstance(prefill_points, dict) and set(prefill_points) == set(lengths)
assert keys, "prefill_points is a dict with the keys 64, 256, 1024 and 4096"
for L in lengths:
    said = f"prefill_points[{L}]: use mlp_intensity of 3.4.1, with B = 32"
    assert is_near(prefill_points[L], mlp_intensity(32, L, GEMMA3_270M_CONFIG)), said
### BEGIN HIDDEN TESTS
for L, expected in zip(lengths, (194.8860, 209.8252, 213.9255, 214.9759), strict=True):
    assert is_near(prefill_points[L], expected, 1e-4), f"prefill_points[{L}]: count FLOPs and bytes at B = 32 again"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_4_3_limit_test", "grade": true, "points": 2}
def check_limit(D, I, expected):
    got = mlp_ai_limit({**GEMMA3_270M_CONFIG, "hidden_size": D, "intermediate_size": I})
    assert is_number(got), f"D = {D}, I = {I}: mlp_ai_limit has to return a number, not {got!r}"
    hint = "which terms of the FLOPs and of the bytes grow with the number of tokens?"
    assert is_near(got, expected, 1e-3), f"D = {D}, I = {I}: expected {expected:.4f} FLOP/byte, got {got}; {hint}"


check_limit(4, 8, expected=33 / 19)
check_limit(8, 4, expected=57 / 28)
### BEGIN HIDDEN TESTS
said = "mlp_ai_limit: which terms of the FLOPs and of the bytes grow with the number of tokens?"
for D, I, expected in [(640, 2048, 215.329), (1152, 6912, 407.118), (2, 2, 21 / 22)]:
    config = {**GEMMA3_270M_CONFIG, "hidden_size": D, "intermediate_size": I}
    assert is_near(mlp_ai_limit(config), expected, 1e-3), said
D, I = measure.draw(5, 900), measure.draw(5, 900)
check_limit(D, I, expected=(6 * D + 9) * I / (6 * D + 16 * I))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_3_values_test", "grade": true, "points": 1}
keys = isinstance(bound_at_the_limit, dict) and set(bound_at_the_limit) == {"A6000", "H100"}
assert keys, 'bound_at_the_limit is a dict with the keys "A6000" and "H100"'
for bound in bound_at_the_limit.values():
    assert bound in ("memory", "compute"), 'bound_at_the_limit: "memory" or "compute" for each'
### BEGIN HIDDEN TESTS
for gpu, expected in {"A6000": "compute", "H100": "memory"}.items():
    assert bound_at_the_limit[gpu] == expected, f"{gpu}: compare mlp_ai_limit with its ridge in bf16"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_3_why_test", "grade": true, "points": 1}
assert why_it_saturates in tuple("abcd"), "why_it_saturates: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    why_it_saturates,
    "b",
    a="The intensity is a ratio of counts: a processor's speed is not in it.",
    c="calc_mlp_io counts each weight once, however many tokens there are.",
    d="That is attention. The MLP has no scores.",
)
### END HIDDEN TESTS

# %% [markdown]
# Here are decode and prefill on one roof. With more tokens the points first move up the slope. Then they almost stop:
# the intensity approaches the limit that you computed.

# %%
on_the_roof = [rl.roofline.Point(f"B = {B}", intensity, series="decode") for B, intensity in decode_points.items()]
on_the_roof += [
    rl.roofline.Point(f"L = {L}", intensity, series="prefill, B = 32") for L, intensity in prefill_points.items()
]
title = "MLP of Gemma 3 270M"
rl.plots.plot_roofline("A6000", on_the_roof, dtype="bfloat16", title=title)

# %%
prefill_here = place_mlp({f"L = {L}": (32, L) for L in prefill_points}, "prefill, B = 32")
rl.plots.plot_roofline(ceilings, decode_here + prefill_here, dtype="bfloat16", title=f"{title}, measured here")

# %% [markdown]
# The limit depends on the model and on how the MLP is run. A wider model has a higher limit. A single kernel for a
# projection, GeLU and the product of the branches would move fewer bytes, so the same MLP would move to the right. In
# Part 4 you will see what such a *fused* kernel gains.

# %%
rows = []
for name, config in {"Gemma 3 270M": GEMMA3_270M_CONFIG, "the pseudo model": GEMMA3_PSEUDO_CONFIG}.items():
    limit = mlp_ai_limit(config)
    bounds = ["compute" if limit > get_ridge_point(gpu, "bf16") else "memory" for gpu in ("A6000", "A100 80GB", "H100")]
    rows.append((name, f"{limit:.1f}", *bounds))
ridges = [f"{gpu}, ridge {get_ridge_point(gpu, 'bf16'):.0f}" for gpu in ("A6000", "A100 80GB", "H100")]
Table(("MLP of", "limit, FLOP/byte", *ridges), rows, title="Bound of prefill for very many tokens, bf16")
