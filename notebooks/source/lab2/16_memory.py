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
        is_end = "recording ends" in name
        hint = "; keep the output until the recording ends" if is_end else hint
        said = f"profile_memory, mode {mode}, {warmup_steps} warm-up steps: expected {name} = {value}, got {seen[name]}"
        is_peak = "peak" in name and isinstance(seen[name], int)
        near = is_peak and abs(seen[name] - value) <= tolerance * value
        near = near or (is_end and (mode == "step" or seen[name] >= value))
        assert near or seen[name] == value, said + hint


for mode, warmup_steps, held, peak, left, macs in [
    ("step", 0, 852224, 2518276, 4, 41336832),
    ("step", 1, 2531072, 1289476, 4, 82673664),
    ("forward", 2, 852224, 1186304, 1000000, 41336832),
    ("inference", 1, 852224, 268800, 25600, 27557888),
]:
    phases = ("backward", "forward", "optimizer") if mode == "step" else ("forward",)
    right = {"held before, in bytes": held, "the peak above that, in bytes": peak, "the phases": phases}
    right["held above that when the recording ends, in bytes"] = left
    right["MACs of all steps"] = macs
    check_recorded(recorded(profile_memory, mode, warmup_steps), right, mode, warmup_steps, tolerance=0.005)
low_sizes = {"d_model": 64, "d_ff": 256, "num_layers": 2, "num_heads": 2, "length": 32}
for mode, right in (("forward", 62), ("step", 82), ("inference", 74)):
    seen = measure.count(profile_memory, mode, 1, False, low_sizes, "bfloat16", through=memory.run_timeline)
    casts = seen.by_op.get("cast", 0)
    said = f"profile_memory, mode {mode}, 1 warm-up step, under autocast: expected {right} casts, got {casts}"
    assert casts == right, f"{said}; run the forward pass of every step inside amp_context"
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
check_phase("backward", ("forward", 30), *[("forward", 1)] * 4, ("backward", 100))  # one moment against five
check_phase("backward", ("forward", 50), ("forward", 10), ("backward", 40), *[("backward", -1)] * 3)
### BEGIN HIDDEN TESTS
low, high = measure.draw(5, 40), measure.draw(45, 90)
check_phase("backward", ("forward", high), ("backward", low), ("optimizer", -1), ("optimizer", low - 4))
check_phase("forward", ("forward", 9), ("forward", low), ("forward", -1), ("backward", low - 1), ("optimizer", -1))
### END HIDDEN TESTS

# %% [markdown]
# Here are two timelines of the 2.7B model at L = 256: a forward pass that keeps what a backward pass needs, and a
# training step. Zero on the vertical axis is what was held before: the weights and, for the training step, AdamW's two
# moments. The horizontal axis is the time that your machine took to count. It says nothing about the time on a GPU. All
# figures here are in GiB, as R's are.

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
    held = f"{one.resident_bytes / 2**30:.2f} GiB before, {one.peak_bytes / 2**30:.2f} GiB more at the peak"
    print(f"{name}: {held}, in the phase {peak_phase(one)}")
rl.plots.plot_memory_timelines(timelines, binary=True, title="2.7B, B = 4, L = 256, fp32, on tensors without memory")

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
# backward pass. The peak is at one of two moments. One is where the forward pass has ended and the backward pass
# begins. The other is where all gradients are there, from the end of the backward pass through the optimizer's step.
# This AdamW allocates nothing in its step, so `peak_phase` says `"backward"` there too. What is held at each of them?


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
def check_peak(least, mode, L=128, V=10_000, **options):
    """A peak of the small model: `least`, and the working memory of the threads that this machine has."""
    got = peak_bytes({"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}, V, 4, L, mode, **options)
    case = f"peak_bytes of small, {mode}, L = {L}, V = {V}, {options or 'fp32'}"
    assert is_count(got), f"{case}: peak_bytes has to return an int, got {got!r}"
    fits = 0.99 * least <= got <= 1.01 * least + 2**20 * rl.num_threads()
    assert fits, f"{case}: expected about {least / 2**20:.1f} MiB, got {got / 2**20:.1f} MiB"


check_peak(541_875_712, "inference")
check_peak(778_468_864, "inference", low="bfloat16")
check_peak(957_111_808, "forward")
check_peak(1_042_710_016, "forward", low="bfloat16")
check_peak(2_059_714_564, "step")
check_peak(2_305_458_180, "step", L=256, V=100)  # the peak is in the backward pass, where the moments are held
check_peak(2_511_077_896, "step", kept_gradients=True)
### BEGIN HIDDEN TESTS
for mode in ("inference", "forward", "step"):
    assert_peak(peak_bytes, 768, 3072, 12, 12, 10000, 4, 128, mode)
    assert_peak(peak_bytes, 2560, 10240, 32, 32, 10000, 4, 512, mode)
    H = measure.draw(3, 5)
    assert_peak(peak_bytes, 16 * H, measure.draw(100, 300), measure.draw(4, 6), H, 20, 3, measure.draw(200, 300), mode)
assert_peak(peak_bytes, 2560, 10240, 32, 32, 10000, 4, 128, "step", kept_gradients=True)
for L in (128, 512):  # under autocast a step takes 2.4 per cent more, and 2.7 per cent less
    assert_peak(peak_bytes, 768, 3072, 12, 12, 10000, 4, L, "step", low="bfloat16")
H, L = measure.draw(4, 6), measure.draw(9, 30)
assert_peak(peak_bytes, 64 * H, measure.draw(500, 1000), 3, H, 300, 2, L, "step", kept_gradients=True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_6b_rule_test", "grade": true, "points": 2}
rule_hint = "list what is held at each of the two moments: weights, gradients, moments, saved tensors"
assert_near("peak_rule(100, 100)", peak_rule(100, 100), 1600, 1e-9, rule_hint)
assert_near("peak_rule(100, 700)", peak_rule(100, 700), 1900, 1e-9, rule_hint)
### BEGIN HIDDEN TESTS
few, many = measure.draw(10**6, 10**9), measure.draw(10**9, 10**10)
drawn = [(few, few * measure.draw(5, 9)), (many, many * measure.draw(1, 3))]
for N, saved in [(3406809600, 28.8e9), (10, 40), (10, 41), *drawn]:
    assert_near(f"peak_rule({N}, {saved})", peak_rule(N, saved), max(12 * N + saved, 16 * N), 1e-9, rule_hint)
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
# is a forward pass that keeps its autograd graph. The columns `step` and `step, gradients kept` differ in one line of
# code. If the gradients are freed before the forward pass instead of being set to zero, a step at L = 512 needs 12.5
# GiB less. That can decide whether it fits on a GPU.
