# %% [markdown]
# ## 1.1.3 How long does it take?
#
# A GPU works in the background. A launch returns when the host has *asked* for the work, long before it is done. So a
# clock that is read at the wrong moment measures the asking, or work of an earlier step. Nothing crashes, and the
# number looks fine. To learn to measure you need a device whose times are known. Here is one:

# %%
from rooflab.benchmark.fake_device import FakeDevice
from rooflab.benchmark.fake_model import FakeModel

gpu = FakeDevice()
fake_model = FakeModel(gpu, forward_ms=76.0, backward_ms=152.0, host_ms=2.0, slow_ms=[1550.0, 84.0])
ids = rl.zeros(4, 128, dtype="int64")
with gpu.clocks(globals()):  # inside, every clock of the program is that of the fake device
    for what in ("the first call", "the second call", "the third call", "the fourth call, waited for"):
        start = time.perf_counter()
        fake_model(ids)
        if what.endswith("waited for"):
            rl.synchronize()
        print(f"{what}: {time.perf_counter() - start:.4f} s")
print("what the device did:", [f"{entry.kind} {entry.work_ms:g} ms" for entry in gpu.log if entry.kind == "launch"])

# %% [markdown]
# Each launch took the host 2 ms, so that is what the clock saw. The fourth time is no better: it contains the work of
# the three calls before. None of the four numbers is the 76 ms that a forward pass takes on this device.
#
# ## 1.1.3a A benchmark ({points q1_1_3a})
#
# Write three functions.
#
# **`generate_random_batch(batch_size, context_length, vocab_size)`**: token ids (B, L), `int64`, on `device`. Each of
# the V tokens can occur, and every call draws anew.
#
# **`benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None)`**: run `warmup_steps` steps
# without looking at the clock, then measure `measure_steps` steps. Return a list with the time of each measured step,
# in **seconds**. `mode` says what is timed:
#
# - `"forward"`: the forward pass, `model(input_ids)`
# - `"backward"`: the backward pass alone. The forward pass before it runs outside of the time.
# - `"both"`: forward and backward together
#
# Go back from a number, such as `logits.mean()`, and drop the gradients after each step (`model.zero_grad()`). The
# forward pass runs inside `amp_context`, a context that can be entered again and again; `None` means that there is
# none. Which clock you take is up to you: `time.perf_counter()`, `rl.cuda.Event` or `rl.latency`.
#
# **`parse_arguments(argv)`**: the options of a command line, as a dict. Use `argparse`. `argv` is a list of strings.
#
# | option | default |
# |---|---|
# | `--model_size`, `--mode` (`forward`, `backward` or `both`) | `"small"`, `"forward"` |
# | `--context_length`, `--batch_size`, `--vocab_size` | 128, 4, 10000 |
# | `--warmup_steps`, `--measure_steps` | 5, 10 |
# | `--mixed_precision`, `--profile_memory`, `--nvtx_attention`, `--optimizer` (flags) | `False` |
#
# The names may also be written with dashes, so `--model-size`. The keys of the dict have underscores.
#
# <details><summary>Hint</summary>
#
# `add_argument("--model_size", "--model-size", ...)` takes both names.
# </details>


# %% nbgrader={"grade_id": "q1_1_3a", "solution": true}
def generate_random_batch(batch_size, context_length, vocab_size):
    """Token ids (B, L), int64, from 0 to V - 1."""
    ### BEGIN SOLUTION
    return rl.randint(0, vocab_size, (batch_size, context_length), device=device)
    ### END SOLUTION


def benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None):
    """The time of each measured step in seconds: a list."""
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


def parse_arguments(argv):
    """{option: value} of a command line."""
    ### BEGIN SOLUTION
    parser = argparse.ArgumentParser(prog="benchmark")
    numbers = {"context_length": 128, "batch_size": 4, "vocab_size": 10000, "warmup_steps": 5, "measure_steps": 10}
    parser.add_argument("--model_size", "--model-size", default="small")
    parser.add_argument("--mode", choices=("forward", "backward", "both"), default="forward")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", type=int, default=default)
    for name in ("mixed_precision", "profile_memory", "nvtx_attention", "optimizer"):
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", action="store_true")
    return vars(parser.parse_args(argv))
    ### END SOLUTION


# %% [markdown]
# The tests run your `benchmark` on a fake device. They know how long each step kept it busy, and compare that with your
# samples one by one.


# %% nbgrader={"grade_id": "q1_1_3a_batch_test", "grade": true, "points": 1}
def check_batch(B, L, V):
    ids, again = generate_random_batch(B, L, V), generate_random_batch(B, L, V)
    case = f"generate_random_batch({B}, {L}, {V})"
    assert isinstance(ids, rl.Tensor) and tuple(ids.shape) == (B, L), f"{case}: a tensor of shape {(B, L)}"
    assert str(ids.dtype).endswith("int64"), f"{case}: token ids are int64, not {ids.dtype}"
    numbers = ids.cpu().numpy()
    assert numbers.min() >= 0 and numbers.max() < V, f"{case}: tokens from 0 to {V - 1}"
    assert len(np.unique(numbers)) > 0.9 * min(V, B * L / 4), f"{case}: each token can occur"
    assert (numbers != again.cpu().numpy()).any(), f"{case}: every call draws anew"


check_batch(4, 128, 10000)
check_batch(3, 700, 5)
### BEGIN HIDDEN TESTS
check_batch(2, 513, 3)
check_batch(7, 31, 50257)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_3a_test", "grade": true, "points": 3}
def check_benchmark(mode, warmup_steps, measure_steps, amp=None, **times):
    times = {"work_ms": 76.0, "host_ms": 2.0, "slow_ms": [1550.0, 84.0], "jitter": 0.02, "seed": 3, **times}
    ids = rl.zeros(2, 3, dtype="int64")
    seen = measure.faked(benchmark, "<model>", ids, mode, warmup_steps, measure_steps, amp, device=times)
    assert_timed(seen, mode, warmup_steps, measure_steps)
    return seen


check_benchmark("forward", 5, 10)
check_benchmark("forward", 0, 4)
check_benchmark("forward", 2, 6, work_ms=0.8, host_ms=0.05, slow_ms=[])
### BEGIN HIDDEN TESTS
check_benchmark("forward", 1, 7, work_ms=5.0, host_ms=0.3, slow_ms=[700.0, 9.0, 6.0], seed=21)
check_benchmark("forward", 3, 1, work_ms=220.0, host_ms=40.0, seed=22)
check_benchmark("forward", 12, 25, work_ms=0.31, host_ms=0.02, slow_ms=[11.0], seed=23)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_3a_backward_test", "grade": true, "points": 2}
check_benchmark("both", 5, 10, backward_ms=150.0)
check_benchmark("backward", 3, 5, backward_ms=90.0)
low = check_benchmark("forward", 2, 3, amp="<low precision>", low_factor=0.5, slow_ms=[])
assert all(entry.work_ms < 60 for entry in low.launches("forward")), "every forward pass runs inside amp_context"
### BEGIN HIDDEN TESTS
check_benchmark("both", 1, 3, work_ms=12.0, backward_ms=31.0, host_ms=4.0, seed=31)
check_benchmark("both", 0, 2, work_ms=1.5, backward_ms=3.0, host_ms=0.1, slow_ms=[40.0], seed=32)
check_benchmark("backward", 0, 4, work_ms=50.0, backward_ms=2.0, host_ms=0.3, seed=33)
low = check_benchmark("both", 2, 3, amp="<low precision>", low_factor=0.25, slow_ms=[], seed=34)
assert all(entry.work_ms < 60 for entry in low.launches("forward", "backward")), "both passes are made in amp_context"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_3a_options_test", "grade": true, "points": 2}
def check_options(argv, **expected):
    defaults = {"model_size": "small", "mode": "forward", "context_length": 128, "batch_size": 4, "vocab_size": 10000}
    defaults |= {"warmup_steps": 5, "measure_steps": 10}
    defaults |= dict.fromkeys(("mixed_precision", "profile_memory", "nvtx_attention", "optimizer"), False)
    got = parse_arguments(argv.split())
    assert isinstance(got, dict), "parse_arguments returns a dict"
    for name, value in (defaults | expected).items():
        assert name in got, f"{argv!r}: {name} is missing"
        assert got[name] == value and type(got[name]) is type(value), (
            f"{argv!r}: {name} is {got[name]!r}, not {value!r}"
        )


check_options("")
check_options("--model_size xl --context_length 512 --mode both", model_size="xl", context_length=512, mode="both")
check_options("--warmup-steps 0 --mixed-precision --optimizer", warmup_steps=0, mixed_precision=True, optimizer=True)
### BEGIN HIDDEN TESTS
check_options("--model-size 2.7B --vocab-size 7 --measure_steps 3", model_size="2.7B", vocab_size=7, measure_steps=3)
check_options(
    "--batch-size 1 --nvtx-attention --profile_memory", batch_size=1, nvtx_attention=True, profile_memory=True
)
check_options(
    "--measure-steps 2 --context-length 9 --mode backward", measure_steps=2, context_length=9, mode="backward"
)
try:
    parse_arguments(["--mode", "sideways"])
except (SystemExit, Exception):
    pass
else:
    raise AssertionError("--mode sideways: there is no such mode")
### END HIDDEN TESTS

# %% [markdown]
# ## 1.1.3b Read the times ({points q1_1_3b})
#
# - `timing_row(model, input_ids, mode, warmup_steps, measure_steps)`: run your benchmark and return a row of a table,
#   `{"status", "mean_ms", "median_ms", "std_ms", "ddof"}`. A model that does not fit raises `rl.OutOfMemoryError`. Then
#   the status is `"OOM"` and the other four are `None`. Else it is `"ok"`. `ddof` is 0 or 1, whichever you took for the
#   standard deviation: a spread means little without it.
# - `read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s)`: from the times of `"forward"` and `"both"`, the
#   dict `{"backward_over_forward", "ms_per_layer", "share_of_peak"}`. The second is a forward pass divided by the
#   layers. The third is a share from 0 to 1: FLOP/s of the forward pass over the peak. `flops` is F.


# %% nbgrader={"grade_id": "q1_1_3b", "solution": true}
def timing_row(model, input_ids, mode, warmup_steps, measure_steps):
    """{"status", "mean_ms", "median_ms", "std_ms", "ddof"}."""
    ### BEGIN SOLUTION
    try:
        samples_ms = 1e3 * np.array(benchmark(model, input_ids, mode, warmup_steps, measure_steps))
    except rl.OutOfMemoryError:
        return {"status": "OOM", **dict.fromkeys(("mean_ms", "median_ms", "std_ms", "ddof"))}
    mean_ms, median_ms, std_ms = float(samples_ms.mean()), float(np.median(samples_ms)), float(samples_ms.std(ddof=1))
    return {"status": "ok", "mean_ms": mean_ms, "median_ms": median_ms, "std_ms": std_ms, "ddof": 1}
    ### END SOLUTION


def read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s):
    """{"backward_over_forward", "ms_per_layer", "share_of_peak"}."""
    ### BEGIN SOLUTION
    return {
        "backward_over_forward": (both_ms - forward_ms) / forward_ms,
        "ms_per_layer": forward_ms / num_layers,
        "share_of_peak": flops / (forward_ms / 1e3) / (peak_tflop_s * 1e12),
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_3b_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_3a"]}
def check_row(mode, warmup_steps, measure_steps, **times):
    times = {"work_ms": 20.0, "host_ms": 1.0, "slow_ms": [400.0], "jitter": 0.1, "seed": 4, **times}
    ids = rl.zeros(2, 3, dtype="int64")
    seen = measure.faked(timing_row, "<model>", ids, mode, warmup_steps, measure_steps, device=times)
    row, name = seen.value, f"timing_row, {mode}, {warmup_steps} + {measure_steps} steps"
    assert_keys(name, row, ("status", "mean_ms", "median_ms", "std_ms", "ddof"))
    if times.get("out_of_memory"):
        assert row["status"] == "OOM", f"{name}: out of memory, so the status is 'OOM'"
        assert set(row.values()) == {"OOM", None}, f"{name}: a time that was not measured is None, and not 0"
        return
    assert row["status"] == "ok", f"{name}: the status is 'ok'"
    labels = {"forward": ("forward",), "both": ("forward", "backward")}[mode]
    steps = sum(np.array([entry.work_ms for entry in seen.launches(label)]) for label in labels)
    lab2.assert_summary(name, row, steps[warmup_steps:])


check_row("forward", 2, 5)
check_row("both", 1, 4)
check_row("forward", 2, 5, out_of_memory=True)
### BEGIN HIDDEN TESTS
check_row("forward", 0, 6, slow_ms=[90.0, 30.0], seed=41)
check_row("both", 3, 11, work_ms=3.0, host_ms=0.2, seed=42)
check_row("both", 0, 2, out_of_memory=True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_3b_read_test", "grade": true, "points": 2}
def check_read(forward_ms, both_ms, num_layers, flops, peak_tflop_s, right):
    got = read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s)
    assert_keys("read_times", got, ("backward_over_forward", "ms_per_layer", "share_of_peak"))
    for name, value in zip(got, (got[name] for name in got), strict=True):
        assert_near(f"read_times({forward_ms}, {both_ms}, ...)[{name!r}]", value, right[name], 1e-3)


right = {"backward_over_forward": 1.5, "ms_per_layer": 2.0, "share_of_peak": 0.5}
check_read(20.0, 50.0, 10, 1e12, 100.0, right)
### BEGIN HIDDEN TESTS
right = {"backward_over_forward": 1.0441, "ms_per_layer": 3.1933, "share_of_peak": 0.16895}
check_read(38.32, 78.33, 12, 126244356096, 19.5, right)
right = {"backward_over_forward": 2.0665, "ms_per_layer": 6.85125, "share_of_peak": 0.81487}
check_read(219.24, 672.30, 32, 3483663073280, 19.5, right)
### END HIDDEN TESTS

# %% [markdown]
# Now the times that W published, with your functions applied to them: L = 128, fp32, mean of 10 steps, ddof 0. The
# A100's peak in fp32 without tf32 is 19.5 TFLOP/s.

# %%
rows = []
for size, (forward_ms, both_ms) in lab2.W_TIMES.items():
    config = MODEL_CONFIGS[size]
    read = read_times(forward_ms, both_ms, config["num_layers"], forward_flops(config, 10000, 4, 128), 19.5)
    shown = (f"{read['backward_over_forward']:.2f}", f"{read['ms_per_layer']:.2f}", f"{read['share_of_peak']:.0%}")
    rows.append((size, forward_ms, both_ms, *shown))
head = ("size", "forward ms", "both ms", "backward / forward", "forward ms a layer", "share of peak")
Table(head, rows, title="W, A100-SXM4-40GB, L = 128, B = 4, fp32")

# %% [markdown]
# ### What do these times say? ({points q1_1_3b_findings_test})
#
# - `flop_ratio`: by its products, a backward pass takes two products for each one of the forward pass. How many times
#   the FLOPs of a forward pass are those of both passes together?
# - `launch_bound`: a list of those sizes in W's table whose forward time follows the number of *layers*, whatever the
#   width. There the device waits for the host to launch its kernels.
# - `w_says`: W writes that time grows as n D². Which number of the table speaks against it? Choose a letter.
#     - `"a"`: A layer of xl has 4.3 times the weights of one of small, and takes the same time.
#     - `"b"`: The backward pass of the small model takes as long as its forward pass, and it has to take longer.
#     - `"c"`: The share of the peak is 81 per cent for the largest model, and no kernel can come that near to it.
#     - `"d"`: From small to medium the number of layers doubles, and the time doubles as well.

# %% nbgrader={"grade_id": "q1_1_3b_findings", "solution": true}
flop_ratio = None
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
assert is_number(flop_ratio) and flop_ratio > 0, "flop_ratio is a number"
known = isinstance(launch_bound, (list, tuple, set)) and set(launch_bound) <= set(lab2.SIZES)
assert known, "launch_bound is a list of sizes"
assert w_says in tuple("abcd"), "w_says: choose a letter"
### BEGIN HIDDEN TESTS
assert is_near(flop_ratio, 3, 1e-3), "flop_ratio: one for the forward pass, and two products more for each product"
said = "launch_bound: in which rows are the ms a layer the same, although D differs?"
assert set(launch_bound) == {"small", "medium", "large", "xl"}, said
assert_choice(
    w_says,
    "a",
    b="That is a statement about the two passes. What does it say about n and D?",
    c="Products of large matrices do come near to the peak.",
    d="n doubles, and D² grows by 1.8. What should the time do, if it grew as n D²?",
)
### END HIDDEN TESTS

# %% [markdown]
# Your own machine. On a GPU with enough memory these are the five models; else it is a ladder of smaller ones, so that
# the cell takes a few seconds. `TFLOP/s` is F over the time of a forward pass. Does the time of a layer depend on its
# width on your machine? A CPU has no queue and hardly any launch time, so there it does.

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
head = ("size", "D", "forward ms (std)", "both ms (std)", "backward / forward", "forward ms a layer", "TFLOP/s")
Table(head, shown, title=f"Your {device}, L = 128, B = 4, fp32")
