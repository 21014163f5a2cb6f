# %% [markdown]
# ## 1.1.3 How long does it take?
#
# A GPU runs asynchronously: a launch returns as soon as the host has *issued* it, long before the kernel is done. If
# you read the clock at the wrong moment, you measure how long it took to issue the work, or you measure the work of an
# earlier step. Nothing crashes, and the number looks plausible.
#
# To learn to measure, you need a device whose true times are known. `FakeDevice` simulates one, and `gpu.model` makes a
# model that runs on it. Here the host needs 2 ms to issue a forward pass, and the device needs 76 ms to run it. The
# first two calls are slower: 1550 ms and 84 ms.

# %%
from rooflab.benchmark.fake_device import FakeDevice

gpu = FakeDevice()
fake_model = gpu.model(forward_ms=76.0, backward_ms=152.0, host_ms=2.0, slow_ms=[1550.0, 84.0])
ids = rl.zeros(4, 128, dtype="int64")
with gpu.clocks(globals()):  # inside, every clock of the program is that of the fake device
    for what in ("call 1", "call 2", "call 3", "call 4, synchronized"):
        start = time.perf_counter()
        fake_model(ids)
        if what.endswith("synchronized"):
            rl.synchronize()
        print(f"{what}: {time.perf_counter() - start:.4f} s")
print("true times of the four passes:", [f"{one.work_ms:g} ms" for one in gpu.log if one.kind == "launch"])

# %% [markdown]
# The first three readings are 2 ms. They show how long the host took to issue the work. The fourth reading is wrong as
# well: the device first had to finish the three earlier passes. None of the four readings is 76 ms, the time that a
# forward pass takes on this device.
#
# ## 1.1.3a A benchmark ({points q1_1_3a})
#
# Write two functions.
#
# **`generate_random_batch(batch_size, context_length, vocab_size)`** returns random token ids of shape (B, L), dtype
# `int64`, on `device`. Ids run from 0 to V - 1. Each call returns new random ids.
#
# **`benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None)`** first runs `warmup_steps` steps
# without timing them, then `measure_steps` timed steps. It returns a list with the time of each measured step in
# **seconds**. `mode` says what one sample contains:
#
# - `"forward"`: the forward pass `model(input_ids)`
# - `"backward"`: the backward pass alone. Run the forward pass that it needs before you start the clock.
# - `"both"`: the forward pass and the backward pass
#
# Start the backward pass from a scalar such as `logits.mean()`. After each step clear the gradients with
# `model.zero_grad()`. Run the forward pass inside `with amp_context:`. The context can be entered more than once.
# `None` means no context. Run the backward pass outside of the context. Its dtypes follow from the forward pass. You
# may use `time.perf_counter()`, `rl.latency`, or two events `rl.cuda.Event(enable_timing=True)` as the clock.
# `start.elapsed_time(end)` is in ms. `rl.synchronize()` waits until the device is done.
#
# `rooflab bench lm` is such a benchmark as a command, with the options of the assignment, such as `--model-size`,
# `--context-length`, `--mode` and `--warmup-steps`.


# %% nbgrader={"grade_id": "q1_1_3a", "solution": true}
def generate_random_batch(batch_size, context_length, vocab_size):
    """Random token ids (B, L), int64 on `device`, each from 0 to V - 1."""
    ### BEGIN SOLUTION
    return rl.randint(0, vocab_size, (batch_size, context_length), device=device)
    ### END SOLUTION


def benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None):
    """A list with the time of each measured step, in seconds."""
    ### BEGIN SOLUTION
    amp = amp_context or contextlib.nullcontext()

    def forward():
        with amp:
            return model(input_ids).mean()

    samples = []
    for step in range(warmup_steps + measure_steps):
        loss = forward() if mode == "backward" else None
        rl.synchronize()
        start = time.perf_counter()
        loss = loss if mode == "backward" else forward()
        if mode != "forward":
            loss.backward()
        rl.synchronize()
        if step >= warmup_steps:
            samples.append(time.perf_counter() - start)
        model.zero_grad()
    return samples
    ### END SOLUTION


# %% [markdown]
# The tests run your `benchmark` on the fake device. They know how long each step really took, and compare that with
# each of your samples.


# %% nbgrader={"grade_id": "q1_1_3a_batch_test", "grade": true, "points": 1}
def check_batch(B, L, V):
    ids, again = generate_random_batch(B, L, V), generate_random_batch(B, L, V)
    case = f"generate_random_batch({B}, {L}, {V})"
    assert isinstance(ids, rl.Tensor), f"{case}: return an rl tensor, not a {type(ids).__name__}"
    assert tuple(ids.shape) == (B, L), f"{case}: expected shape {(B, L)}, got {tuple(ids.shape)}"
    assert str(ids.dtype).endswith("int64"), f"{case}: expected dtype int64, got {ids.dtype}"
    numbers = ids.cpu().numpy()
    low, high = numbers.min(), numbers.max()
    assert low >= 0 and high < V, f"{case}: expected ids from 0 to {V - 1}, got ids from {low} to {high}"
    different = len(np.unique(numbers))
    assert different > 0.9 * min(V, B * L / 4), f"{case}: only {different} different ids; draw from all {V}"
    new = (numbers != again.cpu().numpy()).any()
    assert new, f"{case}: two calls returned the same ids; draw new ones in each call"


check_batch(4, 128, 10000)
check_batch(3, 700, 5)
### BEGIN HIDDEN TESTS
check_batch(measure.draw(2, 5), measure.draw(500, 600), measure.draw(3, 9))
check_batch(measure.draw(6, 9), measure.draw(20, 40), measure.draw(20000, 50257))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_3a_test", "grade": true, "points": 4}
def timed_steps(mode, warmup_steps, measure_steps, amp=None, **times):
    times = {"work_ms": 76.0, "host_ms": 2.0, "slow_ms": [1550.0, 84.0], "jitter": 0.02, **times}
    ids = rl.zeros(2, 3, dtype="int64")
    times["seed"] = measure.draw(0, 2**30)
    seen = measure.faked(benchmark, "<model>", ids, mode, warmup_steps, measure_steps, amp, device=times)
    assert_timed(seen, mode, warmup_steps, measure_steps)
    return seen


def check_benchmark(mode, warmup_steps, measure_steps, **times):
    timed_steps(mode, warmup_steps, measure_steps, **times)


check_benchmark("forward", 5, 10)
check_benchmark("forward", 0, 4)
check_benchmark("forward", 2, 6, work_ms=0.8, host_ms=0.05, slow_ms=[])
### BEGIN HIDDEN TESTS
work_ms = measure.rng().uniform(4.0, 9.0)
check_benchmark("forward", 1, measure.draw(5, 9), work_ms=work_ms, host_ms=0.3, slow_ms=[700.0, 9.0, 6.0])
check_benchmark("forward", measure.draw(2, 4), 1, work_ms=220.0, host_ms=40.0)
check_benchmark("forward", measure.draw(10, 15), measure.draw(20, 30), work_ms=0.31, host_ms=0.02, slow_ms=[11.0])
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_3a_backward_test", "grade": true, "points": 3}
check_benchmark("both", 5, 10, backward_ms=150.0)
check_benchmark("backward", 3, 5, backward_ms=90.0)
low = timed_steps("both", 1, 2, amp="<low precision>", low_factor=0.5, slow_ms=[])
assert not low.backwards_in_low_precision, "run the backward pass outside of amp_context"
for mode in ("forward", "backward"):
    low = timed_steps(mode, 2, 3, amp="<low precision>", low_factor=0.5, slow_ms=[])
    said = f"run every forward pass inside amp_context, in mode {mode} as well"
    assert all(entry.work_ms < 60 for entry in low.launches("forward")), said
### BEGIN HIDDEN TESTS
backward_ms = measure.rng().uniform(20.0, 40.0)
check_benchmark("both", measure.draw(1, 3), measure.draw(3, 5), work_ms=12.0, backward_ms=backward_ms, host_ms=4.0)
check_benchmark("both", 0, 2, work_ms=1.5, backward_ms=3.0, host_ms=0.1, slow_ms=[40.0])
check_benchmark("backward", 0, measure.draw(3, 6), work_ms=50.0, backward_ms=2.0, host_ms=0.3)
low = timed_steps("backward", 1, 2, amp="<low precision>", low_factor=0.5, slow_ms=[])
assert not low.backwards_in_low_precision, "run the backward pass outside of amp_context, in mode backward as well"
low = timed_steps("both", 2, 3, amp="<low precision>", low_factor=0.25, slow_ms=[])
inside = all(entry.work_ms < 60 for entry in low.launches("forward", "backward"))
assert inside, "run every forward pass inside amp_context, in mode both as well"
### END HIDDEN TESTS


# %% [markdown]
# ## 1.1.3b Read the times ({points q1_1_3b})
#
# Times become useful when you compare them with the work. Write two functions.
#
# - `timing_row(model, input_ids, mode, warmup_steps, measure_steps)`: run your benchmark and return one row of a table,
#   `{"status": ..., "mean_ms": ..., "median_ms": ..., "std_ms": ..., "ddof": ...}`. The status is `"ok"`. A model that
#   does not fit raises `rl.OutOfMemoryError`. In that case return the status `"OOM"`, and `None` for the other four. Do
#   not catch other errors.
#   `ddof` says how you computed the standard deviation: 0 if you divided by m, 1 if by m - 1.
# - `read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s)`: `forward_ms` and `both_ms` are the times of the
#   modes `"forward"` and `"both"`, and `flops` is F. Return a dict with three numbers:
#     - `"backward_over_forward"`: the time of the backward pass divided by that of the forward pass
#     - `"ms_per_layer"`: the time of the forward pass divided by the number of layers
#     - `"share_of_peak"`: the FLOP/s of the forward pass divided by the peak, from 0 to 1


# %% nbgrader={"grade_id": "q1_1_3b", "solution": true}
def timing_row(model, input_ids, mode, warmup_steps, measure_steps):
    """A row {"status", "mean_ms", "median_ms", "std_ms", "ddof"}; all but the status are None when out of memory."""
    ### BEGIN SOLUTION
    try:
        samples_ms = 1e3 * np.array(benchmark(model, input_ids, mode, warmup_steps, measure_steps))
    except rl.OutOfMemoryError:
        return {"status": "OOM", **dict.fromkeys(("mean_ms", "median_ms", "std_ms", "ddof"))}
    mean_ms, median_ms, std_ms = float(samples_ms.mean()), float(np.median(samples_ms)), float(samples_ms.std(ddof=1))
    return {"status": "ok", "mean_ms": mean_ms, "median_ms": median_ms, "std_ms": std_ms, "ddof": 1}
    ### END SOLUTION


def read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s):
    """{"backward_over_forward": ratio, "ms_per_layer": ms, "share_of_peak": 0 to 1}."""
    ### BEGIN SOLUTION
    return {
        "backward_over_forward": (both_ms - forward_ms) / forward_ms,
        "ms_per_layer": forward_ms / num_layers,
        "share_of_peak": flops / (forward_ms / 1e3) / (peak_tflop_s * 1e12),
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_3b_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_3a"]}
def check_row(mode, warmup_steps, measure_steps, **times):
    times = {"work_ms": 20.0, "host_ms": 1.0, "slow_ms": [400.0], "jitter": 0.1, **times}
    times["seed"] = measure.draw(0, 2**30)
    ids = rl.zeros(2, 3, dtype="int64")
    seen = measure.faked(timing_row, "<model>", ids, mode, warmup_steps, measure_steps, device=times)
    row, name = seen.value, f"timing_row, {mode}, {warmup_steps} + {measure_steps} steps"
    assert_keys(name, row, ("status", "mean_ms", "median_ms", "std_ms", "ddof"))
    if times.get("out_of_memory"):
        assert row["status"] == "OOM", f"{name}: out of memory: expected the status 'OOM', got {row['status']!r}"
        assert set(row.values()) == {"OOM", None}, f"{name}: out of memory: the other four have to be None, got {row}"
        return
    assert row["status"] == "ok", f"{name}: expected the status 'ok', got {row['status']!r}"
    labels = {"forward": ("forward",), "both": ("forward", "backward")}[mode]
    steps = sum(np.array([entry.work_ms for entry in seen.launches(label)]) for label in labels)
    lab2.assert_summary(name, row, steps[warmup_steps:])


check_row("forward", 2, 5)
check_row("both", 1, 4)
check_row("forward", 2, 5, out_of_memory=True)
# Ids that are not (B, L), so that the model raises ValueError; and a device that fails with RuntimeError.
for shape, device_does, error in ((6,), {}, ValueError), ((2, 3), {"fails": True}, RuntimeError):
    try:
        measure.faked(timing_row, "<model>", rl.zeros(*shape, dtype="int64"), "forward", 1, 2, device=device_does)
    except error:
        continue
    said = f"timing_row: a {error.__name__} of the model is no lack of memory"
    raise AssertionError(f"{said}: catch rl.OutOfMemoryError alone")
### BEGIN HIDDEN TESTS
check_row("forward", 0, measure.draw(5, 8), slow_ms=[90.0, 30.0])
check_row("both", measure.draw(1, 4), measure.draw(9, 13), work_ms=3.0, host_ms=0.2)
check_row("both", 0, 2, out_of_memory=True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_3b_read_test", "grade": true, "points": 2}
time_hints = {
    "backward_over_forward": "mode both runs both passes: how long does the backward pass alone take?",
    "ms_per_layer": "is this the time of the forward pass alone?",
    "share_of_peak": "how many FLOPs does a second have? Mind the milliseconds, and TFLOP/s",
}


def check_read(forward_ms, both_ms, num_layers, flops, peak_tflop_s, right):
    got = read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s)
    assert_keys("read_times", got, ("backward_over_forward", "ms_per_layer", "share_of_peak"))
    for name, value in zip(got, (got[name] for name in got), strict=True):
        assert_near(f"read_times({forward_ms}, {both_ms}, ...)[{name!r}]", value, right[name], 1e-3, time_hints[name])


right = {"backward_over_forward": 1.5, "ms_per_layer": 2.0, "share_of_peak": 0.5}
check_read(20.0, 50.0, 10, 1e12, 100.0, right)
### BEGIN HIDDEN TESTS
right = {"backward_over_forward": 1.0441, "ms_per_layer": 3.1933, "share_of_peak": 0.16895}
check_read(38.32, 78.33, 12, 126244356096, 19.5, right)
forward_ms, backward_ms, n = measure.draw(50, 900) / 10, measure.draw(50, 900) / 10, measure.draw(2, 60)
flops, peak_tflop_s = measure.draw(10**11, 10**12), float(measure.draw(20, 900))
right = {"backward_over_forward": backward_ms / forward_ms, "ms_per_layer": forward_ms / n}
right["share_of_peak"] = flops / (forward_ms * 1e9 * peak_tflop_s)
check_read(forward_ms, forward_ms + backward_ms, n, flops, peak_tflop_s, right)
### END HIDDEN TESTS

# %% [markdown]
# Apply your functions to the times that W published: L = 128, fp32, mean of 10 steps, ddof 0. The A100's fp32 peak,
# without TF32 (a shorter format in which tensor cores multiply fp32 inputs), is 19.5 TFLOP/s.

# %%
rows = []
for size, (forward_ms, both_ms) in lab2.W_TIMES.items():
    config = MODEL_CONFIGS[size]
    read = read_times(forward_ms, both_ms, config["num_layers"], forward_flops(config, 10000, 4, 128), 19.5)
    shown = (f"{read['backward_over_forward']:.2f}", f"{read['ms_per_layer']:.2f}", f"{read['share_of_peak']:.0%}")
    rows.append((size, forward_ms, both_ms, *shown))
head = ("size", "forward ms", "both ms", "backward / forward", "forward ms per layer", "share of peak")
Table(head, rows, title="W, A100-SXM4-40GB, L = 128, B = 4, fp32")

# %% [markdown]
# ### What do these times say? ({points q1_1_3b_findings_test})
#
# Look at the table above.
#
# - `flop_ratio`: the FLOPs of a forward and a backward pass together, divided by those of the forward pass alone. A
#   product has two inputs, and the backward pass computes a gradient for each of them, by a product of the same size. A
#   number.
# - `launch_bound`: the sizes in W's table whose forward time depends on the number of layers, but not on their width D.
#   A step of such a model is called *launch-bound* or *host-bound*: the device waits for the host to launch its
#   kernels. A list of sizes.
# - `w_says`: W claims that the time grows as n D². Which observation contradicts that? Choose a letter.
#     - `"a"`: A layer of xl has 4.3 times the weights of a layer of small, and takes the same time.
#     - `"b"`: The backward pass of the small model takes as long as its forward pass, and it should take longer.
#     - `"c"`: The share of the peak is 81 per cent for the largest model, and no kernel can come that near to it.
#     - `"d"`: From small to medium the number of layers doubles, and the time doubles as well.

# %% nbgrader={"grade_id": "q1_1_3b_findings", "solution": true}
flop_ratio = None  # a number
launch_bound = []  # sizes
w_says = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
flop_ratio = 3
launch_bound = ["small", "medium", "large", "xl"]
w_says = "a"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q1_1_3b_text", "solution": true}
# *What I find about these times:*

# %% nbgrader={"grade_id": "q1_1_3b_findings_test", "grade": true, "points": 2}
assert is_number(flop_ratio) and flop_ratio > 0, f"flop_ratio has to be a positive number, got {flop_ratio!r}"
known = isinstance(launch_bound, (list, tuple)) and set(launch_bound) <= set(lab2.SIZES)
assert known, f"launch_bound has to be a list of sizes, such as ['small'], got {launch_bound!r}"
assert w_says in tuple("abcd"), "w_says: choose a letter"
### BEGIN HIDDEN TESTS
said = "flop_ratio: which products does the backward pass run for each product of the forward pass?"
assert is_near(flop_ratio, 3, 1e-3), said
said = "launch_bound: in which rows is 'forward ms per layer' about the same although D differs?"
assert set(launch_bound) == {"small", "medium", "large", "xl"}, said
assert_choice(
    w_says,
    "a",
    b="That compares the two passes of one model. It says nothing about n and D.",
    c="Products of large matrices do come near the peak.",
    d="n doubles and D² grows by a factor of 1.8. Look for two models that differ in D and not in time.",
)
### END HIDDEN TESTS

# %% [markdown]
# Now your own machine. A GPU with enough memory runs the five models. Any other machine runs smaller ones, so that the
# cell takes a few seconds. `TFLOP/s` is F divided by the time of a forward pass.
#
# Read the column `forward ms per layer`. If it grows with D, your machine is limited by the work of a layer. If it
# stays the same, your machine is launch-bound. A CPU spends hardly any time on launches, so there the column grows.

# %%
ladder = looks.ladder(device)
own_rows = []
for size, config in ladder.items():
    model = rl.nn.TransformerLM(rl.nn.TransformerConfig(**config, vocab_size=10000, context_length=128), device=device)
    batch = generate_random_batch(4, 128, 10000)
    row = {mode: timing_row(model, batch, mode, 1, 3) for mode in ("forward", "both")}
    own_rows.append({"size": size, "config": config, **row})
    del model
shown = []
for row in own_rows:
    forward, both = row["forward"], row["both"]
    if forward["status"] == both["status"] == "ok":
        flops, n = forward_flops(row["config"], 10000, 4, 128), row["config"]["num_layers"]
        read = read_times(forward["mean_ms"], both["mean_ms"], n, flops, 1.0)
        figures = (read["backward_over_forward"], read["ms_per_layer"], read["share_of_peak"])
        times = [f"{one['mean_ms']:.1f} ({one['std_ms']:.1f})" for one in (forward, both)]
        shown.append((row["size"], row["config"]["d_model"], *times, *(f"{figure:.3g}" for figure in figures)))
    else:
        shown.append((row["size"], row["config"]["d_model"], forward["status"], both["status"], "", "", ""))
head = ("size", "D", "forward ms (std)", "both ms (std)", "backward / forward", "forward ms per layer", "TFLOP/s")
Table(head, shown, title=f"Your {device}, L = 128, B = 4, fp32")
