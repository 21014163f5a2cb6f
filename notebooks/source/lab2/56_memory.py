# %% [markdown]
# ## b1.1.6c Does mixed precision save memory? ({points b1_1_6c})
#
# Under autocast activations are stored in 16 bits. Does the peak become smaller?
#
# - `weight_copy_bytes(config, vocab_size)`: the bytes of autocast's 16-bit copies of the weights, an int. These are the
#   weights that you counted in b1.1.5c.
# - `saved_gib`: under autocast the forward pass of the original's 2.7B model needs 4.37 GiB more at L = 128, 2.19 GiB
#   more at L = 256, and 2.92 GiB less at L = 512. Two effects add up to these figures: the copies of the weights take
#   memory, and activations in 16 bits save memory. How many GiB do the activations save at L = 256? Take the copies
#   from your `weight_copy_bytes` for the 2.7B model with a vocabulary of 10000. A number.


# %% nbgrader={"grade_id": "b1_1_6c", "solution": true}
def weight_copy_bytes(config, vocab_size):
    """Bytes of autocast's 16-bit copies of all weights of products: an int."""
    ### BEGIN SOLUTION
    D, n = config["d_model"], config["num_layers"]
    return 2 * (count_parameters(config, vocab_size) - vocab_size * D - (2 * n + 1) * D)
    ### END SOLUTION


saved_gib = None  # a number
### BEGIN SOLUTION
saved_gib = weight_copy_bytes(MODEL_CONFIGS["2.7B"], 10000) / 2**30 - 2.19
### END SOLUTION

# %% nbgrader={"grade_id": "b1_1_6c_test", "grade": true, "points": 3} rooflab={"needs": ["q1_1_2"]}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
copy_hint = "which weights have a copy, and how large is it?"
assert_whole(weight_copy_bytes, [((SMALL, 10000), 241852416)], copy_hint)
### BEGIN HIDDEN TESTS
assert_whole(weight_copy_bytes, [((MODEL_CONFIGS["2.7B"], 10000), 6762086400)], copy_hint)
for config, V, _, _ in draw_configs(measure.rng(), count=3):
    D, I, n = (config[name] for name in ("d_model", "d_ff", "num_layers"))
    copied = 2 * (n * (4 * D**2 + 3 * D * I) + V * D)
    assert_whole(weight_copy_bytes, [((config, V), copied)], copy_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_6c_peak_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1_6b"]}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
for mode, least in (("inference", 778_468_864), ("forward", 1_042_710_016)):
    got = peak_bytes(SMALL, 10000, 4, 128, mode, low="bfloat16")
    assert is_count(got), f"peak_bytes of small, {mode}: expected an int, got {got!r}"
    fits = 0.99 * least <= got <= 1.01 * least + 2**20 * rl.num_threads()
    said = f"peak_bytes of small, {mode}, low='bfloat16': expected about {least / 2**20:.1f} MiB"
    assert fits, f"{said}, got {got / 2**20:.1f} MiB"
### BEGIN HIDDEN TESTS
for mode in ("inference", "forward"):
    assert_peak(peak_bytes, 768, 3072, 12, 12, 10000, 4, 128, mode, low="bfloat16")
for L in (128, measure.draw(256, 512)):
    for mode in ("inference", "forward", "step"):
        assert_peak(peak_bytes, 2560, 10240, 32, 32, 10000, 4, L, mode, low="bfloat16")
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_6c_choice_test", "grade": true, "points": 1}
assert is_number(saved_gib), f"saved_gib has to be a number, got {saved_gib!r}"
### BEGIN HIDDEN TESTS
said = "saved_gib: what is in memory under autocast that is not there in fp32? GiB are 2**30 bytes"
assert is_near(saved_gib, 6762086400 / 2**30 - 2.19, 0.02), said
### END HIDDEN TESTS

# %%
copies = weight_copy_bytes(LARGEST, 10000) / 2**30
low_peak_rows = []
for L in (128, 256, 512):
    for mode in ("inference", "forward", "step"):
        peaks = [peak_bytes(LARGEST, 10000, 4, L, mode, low=low) / 2**30 for low in (None, "bfloat16")]
        change = f"{peaks[1] - peaks[0]:+.2f}", f"{peaks[1] / peaks[0] - 1:+.1%}"
        low_peak_rows.append((L, mode, *(f"{peak:.2f}" for peak in peaks), *change))
note = f"The copies of the weights take {copies:.2f} GiB."
Table(("L", "mode", "fp32 GiB", "bf16 GiB", "change GiB", "change"), low_peak_rows, "2.7B under autocast, B = 4", note)

# %% [markdown]
# For a short sequence mixed precision needs *more* memory, because the copies of the weights take more than the
# activations save. For a long sequence it depends on what the model keeps for the backward pass. The original keeps
# many tensors in each layer, and most of them become half as large. Our model keeps few. One of them even grows: the
# softmax stays in fp32, and the product with V needs the same weights in 16 bits. Both copies are kept, 6 bytes for
# each score instead of 4. A training step on a short sequence hardly changes, because the copies are freed before its
# peak.
#
# ## b1.1.6d The residual ({points b1_1_6d})
#
# Each part of a layer adds its output to one tensor, the *residual stream*. It has the shape (B, L, D). Is it what
# fills the memory?
#
# Write `residual_bytes(batch_size, length, width)`: its bytes in fp32, an int. `width` is D.


# %% nbgrader={"grade_id": "b1_1_6d", "solution": true}
def residual_bytes(batch_size, length, width):
    """Bytes of the residual stream in fp32: an int."""
    ### BEGIN SOLUTION
    return 4 * batch_size * length * width
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_1_6d_test", "grade": true, "points": 2}
hint = "how many numbers does a tensor of the shape (B, L, D) hold, and how large is each of them?"
assert_whole(residual_bytes, [((4, 128, 2560), 5 * 2**20)], hint)
### BEGIN HIDDEN TESTS
drawn = measure.draw(2, 20), measure.draw(30, 500), measure.draw(600, 5000)
for B, L, D in [(4, 1024, 2560), (1, 1, 1), drawn, (16, 16384, 4096)]:
    assert_whole(residual_bytes, [((B, L, D), 4 * B * L * D)], hint)
### END HIDDEN TESTS

# %%
residual_rows = [(L, f"{residual_bytes(4, L, 2560) / 2**20:.0f}") for L in (128, 256, 512, 1024)]
Table(("L", "MiB"), residual_rows, title="The residual stream of the 2.7B model, B = 4")

# %% [markdown]
# W guesses that this is the largest allocation of a forward pass. Check that next.
#
# ## b1.1.6e The largest allocations ({points b1_1_6e})
#
# - `largest_blocks(config, vocab_size, batch_size, length, count)`: the `count` largest allocations of a forward pass
#   (mode `"forward"`), the largest first. Return a list of dicts `{"bytes": ..., "op": ..., "range": ...}`. `range` is
#   where it was allocated. Use the timeline's `.allocations`, and leave out those with `is_scratch`, which are a
#   kernel's working memory. Allocations from before the recording have `start_us` None: leave them out too.
# - `scores_lead_from(config)`: a score matrix of one layer takes 4 B H L² bytes, and a tensor of its feed-forward part
#   4 B L I. From which L on is the score matrix at least as large? A number, whole or not.


# %% nbgrader={"grade_id": "b1_1_6e", "solution": true}
def largest_blocks(config, vocab_size, batch_size, length, count):
    """[{"bytes": int, "op": str, "range": str}]: the largest allocations of a forward pass, largest first."""
    ### BEGIN SOLUTION
    sizes = rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    blocks = profile_memory(model, ids, "forward", 0).allocations
    taken = [one for one in blocks if one.start_us is not None and not one.is_scratch]
    taken.sort(key=lambda one: -one.bytes)
    return [{"bytes": one.bytes, "op": one.op, "range": one.range} for one in taken[:count]]
    ### END SOLUTION


def scores_lead_from(config):
    """The L from which a score matrix is at least as large as a tensor of the feed-forward part."""
    ### BEGIN SOLUTION
    return config["d_ff"] / config["num_heads"]
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_1_6e_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_6a"]}
def check_blocks(D, I, n, H, V, B, L, count, right):
    """`right` are (bytes, op, the end of the range) of the blocks that may be among the largest, the largest first."""
    config = {"d_model": D, "d_ff": I, "num_layers": n, "num_heads": H}
    got, case = largest_blocks(config, V, B, L, count), f"D = {D}, I = {I}, L = {L}"
    assert isinstance(got, list) and len(got) == count, f"{case}: expected a list of {count} dicts"
    for one in got:
        assert_keys("largest_blocks()[i]", one, ("bytes", "op", "range"))
    sizes, expected = [one["bytes"] for one in got], [size for size, _, _ in right[:count]]
    assert sizes == expected, f"{case}: expected the bytes {expected}, got {sizes}"
    for one in got:
        known = any((one["bytes"], one["op"]) == (size, op) and one["range"].endswith(path) for size, op, path in right)
        said = f"{case}: no op {one['op']!r} in the range {one['range']!r} allocates {one['bytes']} bytes"
        assert known, said


ffn = [(20971520, "matmul", "/ffn"), (20971520, "swiglu", "/ffn")]
check_blocks(2560, 10240, 32, 32, 10000, 4, 128, 10, ffn * 5)
scores = [(262144, op, "/self_attention/attention_matmul_QK") for op in ("matmul", "add")]
check_blocks(64, 128, 3, 8, 50, 2, 64, 5, [*scores, (262144, "softmax", "/self_attention/attention_softmax")] * 2)


### BEGIN HIDDEN TESTS
def check_counted(D, I, n, H, V, B, L, count):
    right = counted_blocks({"d_model": D, "d_ff": I, "num_layers": n, "num_heads": H}, V, B, L)
    right = [(size, op, path.removeprefix("forward/")) for size, op, path in right]
    check_blocks(D, I, n, H, V, B, L, count, right)


check_counted(2560, 10240, 32, 32, 10000, 4, 128, 10)
check_counted(2560, 10240, 32, 32, 10000, 4, 512, 10)
check_counted(768, 3072, 12, 12, 10000, 4, 128, 3)
for config, V, B, L in draw_configs(measure.rng(), count=2):
    check_counted(*config.values(), V, B, L, measure.draw(2, 5))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b1_1_6e_lead_test", "grade": true, "points": 2}
def check_lead(D, I, H):
    """I / H, or the first whole L from there on."""
    got = scores_lead_from({"d_model": D, "d_ff": I, "num_heads": H})
    said = f"scores_lead_from, D = {D}, I = {I}, H = {H}: expected about {I / H:.4g}, got {got!r}"
    assert is_number(got) and (is_near(got, I / H) or got == -(-I // H)), said


check_lead(768, 3072, 12)
check_lead(30, 79, 3)
### BEGIN HIDDEN TESTS
heads, D = measure.draw(3, 10), measure.draw(20, 999)
for I, H in [(10240, 32), (heads * measure.draw(100, 500) + 1, heads), (96, 16), (64 * heads, heads)]:
    check_lead(D, I, H)
### END HIDDEN TESTS

# %%
block_rows = []
for L in (128, 512):
    for place, one in enumerate(largest_blocks(LARGEST, 10000, 4, L, 10), 1):
        block_rows.append((L, place, f"{one['bytes'] / 2**20:.1f}", one["op"], one["range"]))
Table(("L", "", "MiB", "op", "range"), block_rows, title="The largest allocations of a forward pass, 2.7B, B = 4")

# %% [markdown]
# W's guess is wrong. At L = 128 the largest allocations belong to the feed-forward part: each is four times the
# residual stream. For longer sequences the score matrices are larger, and they grow with L².
