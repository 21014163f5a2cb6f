# %% [markdown]
# ## 1.1.6 What fills the memory?
#
# You can wait for a slow step. A step that does not fit into memory cannot run at all. How much does a step hold at its
# worst moment, and which moment is that? The runtime records every allocation and every free, also on tensors without
# memory. So your laptop can answer this for a step that needs 60 GiB.
#
# ## 1.1.6a A timeline ({points q1_1_6a})
#
# **`profile_memory(model, input_ids, mode, warmup_steps, amp_context=None, optimizer=None)`** runs `warmup_steps`
# steps. Then it runs one more step inside `with rl.memory.record(model.device) as timeline:` and returns the timeline.
# `mode` says what a step is:
#
# - `"inference"`: a forward pass in `rl.no_grad()`
# - `"forward"`: a forward pass that keeps what a backward pass would need
# - `"step"`: a forward pass, `logits.mean()`, a backward pass, and `optimizer.step()` if there is an optimizer
#
# Rules:
#
# - Run each phase in a range: `forward`, `backward`, `optimizer`. Run the forward pass inside `amp_context`, if there
#   is one.
# - After each warm-up step free its output and its gradients (`model.zero_grad()`). The recorded step then starts with
#   only the weights and the optimizer's state.
# - In mode `"step"` keep only the loss: write `loss = model(input_ids).mean()`, so that no variable holds the logits.
# - Keep the output of the recorded step, the logits or the loss, until the recording ends.
#
# **`peak_phase(timeline)`** returns the phase in which most memory is held: `"forward"`, `"backward"` or `"optimizer"`.
# The phase is the first part of the name of a range.
#
# <details><summary>Hint</summary>
#
# `timeline.events` lists allocations and frees in order. Each has `.live_bytes`, the memory held after it, and
# `.range`. `timeline.resident_bytes` was held before the recording began, for example the weights.
# `timeline.peak_bytes` is the most that was held on top of it.
# </details>


# %% nbgrader={"grade_id": "q1_1_6a", "solution": true}
def profile_memory(model, input_ids, mode, warmup_steps, amp_context=None, optimizer=None):
    """The memory timeline of one step that follows `warmup_steps` other steps."""
    ### BEGIN SOLUTION
    amp = amp_context or contextlib.nullcontext()

    def step():
        with rl.range("forward"), amp:
            if mode == "inference":
                with rl.no_grad():
                    return model(input_ids)
            output = model(input_ids)
            output = output.mean() if mode == "step" else output
        if mode == "step":
            with rl.range("backward"):
                output.backward()
            if optimizer is not None:
                with rl.range("optimizer"):
                    optimizer.step()
        return output

    for _ in range(warmup_steps):
        step()
        model.zero_grad()
    with rl.memory.record(model.device) as timeline:
        output = step()
    del output
    return timeline
    ### END SOLUTION


def peak_phase(timeline):
    """The phase in which most memory is held: "forward", "backward" or "optimizer"."""
    ### BEGIN SOLUTION
    return max(timeline.events, key=lambda event: event.live_bytes).range.split("/")[0]
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_6a_test", "grade": true, "points": 3}
def recorded(function, mode, warmup_steps, optimizer=True, **sizes):
    sizes = {"d_model": 64, "d_ff": 256, "num_layers": 3, "num_heads": 2, "length": 32, **sizes}
    return memory.held_in(measure.count(function, mode, warmup_steps, optimizer, sizes, through=memory.run_timeline))


def check_recorded(seen, right, mode, warmup_steps, tolerance=0.0):
    for name, value in right.items():
        hint = "; did a variable hold the logits?" if mode == "step" and "peak" in name else ""
        said = f"profile_memory, mode {mode}, {warmup_steps} warm-up steps: expected {name} = {value}, got {seen[name]}"
        is_peak = "peak" in name and isinstance(seen[name], int)
        near = is_peak and abs(seen[name] - value) <= tolerance * value
        assert near or seen[name] == value, said + hint


for mode, warmup_steps, held, peak, macs in [
    ("step", 0, 852224, 2518276, 41336832),
    ("step", 1, 2531072, 1289476, 82673664),
    ("forward", 2, 852224, 1186304, 41336832),
    ("inference", 1, 852224, 268800, 27557888),
]:
    phases = ("backward", "forward", "optimizer") if mode == "step" else ("forward",)
    right = {"held before, in bytes": held, "the peak above that, in bytes": peak, "the phases": phases}
    right["MACs of all steps"] = macs
    check_recorded(recorded(profile_memory, mode, warmup_steps), right, mode, warmup_steps, tolerance=0.005)
### BEGIN HIDDEN TESTS
for mode, warmup_steps, sizes in [
    ("step", 0, {}),
    ("step", 0, {"optimizer": False}),
    ("step", 2, {"d_model": 32, "length": measure.draw(100, 150), "num_layers": 2}),
    ("forward", 0, {"d_ff": measure.draw(30, 90)}),
    ("inference", 0, {"num_layers": measure.draw(4, 6)}),
]:
    seen, right = (recorded(function, mode, warmup_steps, **sizes) for function in (profile_memory, timeline_of))
    check_recorded(seen, right, mode, warmup_steps)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_6a_phase_test", "grade": true, "points": 1}
def check_phase(right, *moments):
    got = measure.call(peak_phase, list(moments), through=memory.run_phase).value
    assert got == right, f"changes of the memory {moments}: expected the phase {right!r}, got {got!r}"


check_phase("forward", ("forward", 100), ("forward", 50), ("backward", -1), ("backward", 20))
check_phase("backward", ("forward", 70), ("forward", -1), ("backward", 40), ("backward", 60), ("optimizer", -1))
check_phase("optimizer", ("forward", 10), ("forward", -1), ("backward", 8), ("optimizer", 30))
### BEGIN HIDDEN TESTS
low, high = measure.draw(5, 40), measure.draw(45, 90)
check_phase("backward", ("forward", high), ("backward", low), ("optimizer", -1), ("optimizer", low - 4))
check_phase("forward", ("forward", 9), ("forward", low), ("forward", -1), ("backward", low - 1), ("optimizer", -1))
### END HIDDEN TESTS

# %% [markdown]
# Here are two timelines of the 2.7B model at L = 256: a forward pass that keeps what a backward pass needs, and a
# training step. Zero on the vertical axis is what was held before: the weights and, for the training step, AdamW's two
# moments. The horizontal axis is the time that your machine took to count. It says nothing about the time on a GPU.
# This figure, and the lines above it, are in GB. The tables below are in GiB, as R's are.

# %%
dry_device = rl.meta("cpu")


def dry_timeline(size, length, mode, amp_context=None):
    config = rl.nn.TransformerConfig(**MODEL_CONFIGS[size], vocab_size=10000, context_length=length)
    model = rl.nn.TransformerLM(config, device=dry_device)
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3) if mode == "step" else None
    ids = rl.empty(4, length, dtype="int64", device=dry_device)
    return profile_memory(model, ids, mode, 1, amp_context, optimizer)


timelines = {"forward": dry_timeline("2.7B", 256, "forward"), "training step": dry_timeline("2.7B", 256, "step")}
for name, one in timelines.items():
    held = f"{one.resident_bytes / 1e9:.2f} GB before, {one.peak_bytes / 1e9:.2f} GB more at the peak"
    print(f"{name}: {held}, in the phase {peak_phase(one)}")
rl.plots.plot_memory_timelines(timelines, title="2.7B, B = 4, L = 256, fp32, on tensors without memory")

# %% [markdown]
# During the forward pass the memory grows layer by layer, because each layer keeps tensors for the backward pass.
# During the backward pass these tensors are freed again, while the gradients of the weights are added.
#
# ## 1.1.6b The peak ({points q1_1_6b})
#
# Will a model fit? Compute its peak before you rent the GPU.
#
# **`peak_bytes(config, vocab_size, batch_size, length, mode, kept_gradients=False, low=None)`** returns the most bytes
# that a step holds at one time, an int. Weights and the optimizer's state are included. Use your `profile_memory` on
# `device="meta"`.
#
# - `mode` is one of 1.1.6a. In mode `"step"` the optimizer is `rl.optim.AdamW(model.parameters(), lr=1e-3)`, and the
#   recorded step follows one other step.
# - With `kept_gradients=True` the gradients of the step before are still there, and the new ones are added to them.
#   Otherwise they were freed before the step.
# - With a dtype in `low`, the forward pass runs in `rl.autocast(low)`.
#
# **`peak_rule(N, saved_bytes)`** is a rule of thumb for the same peak of a training step in fp32, without kept
# gradients. It returns bytes. `N` is the number of parameters, and `saved_bytes` is what the forward pass keeps for the
# backward pass. The peak is at one of two moments: where the forward pass has ended and the backward pass begins, or in
# the optimizer's step. What is held at each of them?


# %% nbgrader={"grade_id": "q1_1_6b", "solution": true}
def peak_bytes(config, vocab_size, batch_size, length, mode, kept_gradients=False, low=None):
    """The most bytes that a step holds at one time, weights and optimizer state included: an int."""
    ### BEGIN SOLUTION
    sizes = rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3) if mode == "step" else None
    amp = rl.autocast(low) if low else None
    timeline = profile_memory(model, ids, mode, 1, amp, optimizer)
    if kept_gradients:
        timeline = profile_memory(model, ids, mode, 0, amp, optimizer)
    return timeline.resident_bytes + timeline.peak_bytes
    ### END SOLUTION


def peak_rule(N, saved_bytes):
    """A rule of thumb for the peak of a training step, the larger of two moments: bytes."""
    ### BEGIN SOLUTION
    return max(12 * N + saved_bytes, 16 * N)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_6b_test", "grade": true, "points": 4} rooflab={"needs": ["q1_1_6a"]}
def check_peak(least, mode, **options):
    """A peak of the small model: `least`, and the working memory of the threads that this machine has."""
    got = peak_bytes({"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}, 10000, 4, 128, mode, **options)
    case = f"peak_bytes of small, {mode}, {options or 'fp32'}"
    assert is_count(got), f"{case}: peak_bytes has to return an int, got {got!r}"
    fits = 0.99 * least <= got <= 1.01 * least + 2**20 * rl.num_threads()
    assert fits, f"{case}: expected about {least / 2**20:.1f} MiB, got {got / 2**20:.1f} MiB"


check_peak(541_875_712, "inference")
check_peak(957_111_808, "forward")
check_peak(2_059_714_564, "step")
check_peak(2_511_077_896, "step", kept_gradients=True)
### BEGIN HIDDEN TESTS
for mode in ("inference", "forward", "step"):
    assert_peak(peak_bytes, 768, 3072, 12, 12, 10000, 4, 128, mode)
    assert_peak(peak_bytes, 2560, 10240, 32, 32, 10000, 4, 512, mode)
    H = measure.draw(3, 5)
    assert_peak(peak_bytes, 16 * H, measure.draw(100, 300), measure.draw(4, 6), H, 20, 3, measure.draw(200, 300), mode)
assert_peak(peak_bytes, 2560, 10240, 32, 32, 10000, 4, 128, "step", kept_gradients=True)
H, L = measure.draw(4, 6), measure.draw(9, 30)
assert_peak(peak_bytes, 64 * H, measure.draw(500, 1000), 3, H, 300, 2, L, "step", kept_gradients=True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_6b_rule_test", "grade": true, "points": 2}
assert_near("peak_rule(100, 100)", peak_rule(100, 100), 1600, 1e-9)
assert_near("peak_rule(100, 700)", peak_rule(100, 700), 1900, 1e-9)
### BEGIN HIDDEN TESTS
few, many = measure.draw(10**6, 10**9), measure.draw(10**9, 10**10)
drawn = [(few, few * measure.draw(5, 9)), (many, many * measure.draw(1, 3))]
for N, saved in [(3406809600, 28.8e9), (10, 40), (10, 41), *drawn]:
    assert_near(f"peak_rule({N}, {saved})", peak_rule(N, saved), max(12 * N + saved, 16 * N), 1e-9)
### END HIDDEN TESTS

# %%
LARGEST = MODEL_CONFIGS["2.7B"]
peak_rows = []
for L in (128, 256, 512):
    peaks = [peak_bytes(LARGEST, 10000, 4, L, mode) for mode in ("inference", "forward", "step")]
    peaks.append(peak_bytes(LARGEST, 10000, 4, L, "step", kept_gradients=True))
    original, r_says = lab2.ORIGINAL_PEAKS[L], lab2.R_PEAKS[L]
    own = [f"{peak / 2**30:.2f}" for peak in peaks]
    peak_rows.append((L, *[f"{a} ({b})" for a, b in zip(own, original, strict=True)], *r_says))
names = ("inference", "forward", "step", "step, gradients kept")
head = ("L", *(f"{name} GiB" for name in names), "R: forward GiB", "R: step GiB")
note = "In brackets: the original, counted in the same way. R's figures are labelled GB, and are GiB."
Table(head, peak_rows, title="2.7B, B = 4, fp32: peak memory", note=note)

# %% [markdown]
# Inference needs hardly more memory than the weights, which take 12.69 GiB. What R calls inference holds much more: it
# is a forward pass that keeps its graph. The columns `step` and `step, gradients kept` differ in one line of code. If
# the gradients are freed before the forward pass instead of being set to zero, a step at L = 512 needs about 13 GiB
# less. That can decide whether it fits on a GPU.
#
# ## 1.1.6c Does mixed precision save memory? ({points q1_1_6c})
#
# Under autocast activations are stored in 16 bits. Does the peak become smaller?
#
# - `weight_copy_bytes(config, vocab_size)`: the bytes of autocast's 16-bit copies of the weights, an int. These are the
#   weights that you counted in 1.1.5c.
# - `saved_gib`: under autocast the forward pass of the original's 2.7B model needs 4.37 GiB more at L = 128, 2.19 GiB
#   more at L = 256, and 2.92 GiB less at L = 512. Storing activations in 16 bits always saves memory. How many GiB does
#   it save at L = 256? Use your own number for what autocast adds. A number.


# %% nbgrader={"grade_id": "q1_1_6c", "solution": true}
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

# %% nbgrader={"grade_id": "q1_1_6c_test", "grade": true, "points": 3} rooflab={"needs": ["q1_1_2"]}
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

# %% nbgrader={"grade_id": "q1_1_6c_peak_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1_6b"]}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
for mode, least in (("inference", 778_468_864), ("forward", 1_042_710_016)):
    got = peak_bytes(SMALL, 10000, 4, 128, mode, low="bfloat16")
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

# %% nbgrader={"grade_id": "q1_1_6c_choice_test", "grade": true, "points": 1}
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
# ## 1.1.6d The residual ({points q1_1_6d})
#
# Each part of a layer adds its output to one tensor, the *residual stream*. It has the shape (B, L, D). Is it what
# fills the memory?
#
# Write `residual_bytes(batch_size, length, width)`: its bytes in fp32, an int. `width` is D.


# %% nbgrader={"grade_id": "q1_1_6d", "solution": true}
def residual_bytes(batch_size, length, width):
    """Bytes of the residual stream in fp32: an int."""
    ### BEGIN SOLUTION
    return 4 * batch_size * length * width
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_6d_test", "grade": true, "points": 2}
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
# ## 1.1.6e The largest allocations ({points q1_1_6e})
#
# - `largest_blocks(config, vocab_size, batch_size, length, count)`: the `count` largest allocations of a forward pass
#   (mode `"forward"`), the largest first. Return a list of dicts `{"bytes": ..., "op": ..., "range": ...}`. `range` is
#   where it was allocated. Use the timeline's `.allocations`, and leave out those with `is_scratch`, which are a
#   kernel's working memory. Allocations from before the recording have `start_us` None: leave them out too.
# - `scores_lead_from(config)`: a score matrix of one layer takes 4 B H L² bytes, and a tensor of its feed-forward part
#   4 B L I. From which L on is the score matrix at least as large? A number, whole or not.


# %% nbgrader={"grade_id": "q1_1_6e", "solution": true}
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


# %% nbgrader={"grade_id": "q1_1_6e_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_6a"]}
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


# %% nbgrader={"grade_id": "q1_1_6e_lead_test", "grade": true, "points": 2}
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
