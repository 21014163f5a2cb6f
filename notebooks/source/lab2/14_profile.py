# %% [markdown]
# ## 1.1.4 Look inside
#
# A benchmark says how long a step takes. A *profile* says what ran during the step: every kernel with its op, its start
# and its duration. If you name the phases of your program with **ranges**, the profile also says in which phase each
# kernel was launched.
#
# ## 1.1.4a Ranges, and three kinds of time ({points q1_1_4a})
#
# **`annotated_steps(model, input_ids, warmup_steps, measure_steps, optimizer=None)`** runs training steps. A step is a
# forward pass, a backward pass from `logits.mean()`, the optimizer's step if there is an optimizer, and
# `model.zero_grad()`. Open these ranges with `with rl.range(name):`
#
# - `warmup` around all warm-up steps, and `measurement` around all measured steps;
# - inside `measurement`: `step_0`, `step_1` ... around each step;
# - inside every step, also in the warm-up: `forward`, `backward` and, if there is an optimizer, `optimizer`.
#
# `optimizer` is called as an `rl.optim.AdamW` is: `optimizer.step()`.
#
# A range ends when the host leaves it. So call `rl.synchronize()` before you leave `forward`, `backward` or
# `optimizer`. Otherwise the range only covers the time to issue the launches. W made this mistake: its range for the
# forward pass of the small model says 36 ms at every L, while W's clock says 104 ms at L = 1024.
#
# **`busy_and_gaps(kernels)`** takes a list of kernels that ran one after the other. Each is a dict with `"start_us"`
# and `"duration_us"`. Return a dict:
#
# - `"busy_us"`: how long kernels ran in total
# - `"gap_us"`: how long the device was idle between them
# - `"span_us"`: the time from the first start to the last end


# %% nbgrader={"grade_id": "q1_1_4a", "solution": true}
def annotated_steps(model, input_ids, warmup_steps, measure_steps, optimizer=None):
    """Run training steps inside ranges; synchronize before each phase ends."""

    ### BEGIN SOLUTION
    def step():
        with rl.range("forward"):
            loss = model(input_ids).mean()
            rl.synchronize()
        with rl.range("backward"):
            loss.backward()
            rl.synchronize()
        if optimizer is not None:
            with rl.range("optimizer"):
                optimizer.step()
                rl.synchronize()
        model.zero_grad()

    with rl.range("warmup"):
        for _ in range(warmup_steps):
            step()
    with rl.range("measurement"):
        for index in range(measure_steps):
            with rl.range(f"step_{index}"):
                step()
    ### END SOLUTION


def busy_and_gaps(kernels):
    """{"busy_us", "gap_us", "span_us"} of kernels that ran one after the other."""
    ### BEGIN SOLUTION
    busy_us = sum(kernel["duration_us"] for kernel in kernels)
    start_us = min(kernel["start_us"] for kernel in kernels)
    span_us = max(kernel["start_us"] + kernel["duration_us"] for kernel in kernels) - start_us
    return {"busy_us": busy_us, "gap_us": span_us - busy_us, "span_us": span_us}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_4a_test", "grade": true, "points": 2}
def check_ranges(warmup_steps, measure_steps, optimizer, **times):
    times = {"work_ms": 20.0, "host_ms": 1.0, "slow_ms": [400.0], "jitter": 0.05, **times}
    times["seed"] = measure.draw(0, 2**30)
    ids = rl.zeros(2, 3, dtype="int64")
    update = ["<optimizer>"] * optimizer
    seen = measure.faked(annotated_steps, "<model>", ids, warmup_steps, measure_steps, *update, device=times)
    lab2.assert_ranges(seen.log, warmup_steps, measure_steps, optimizer)
    updates, expected = len(seen.launches("optimizer")), (warmup_steps + measure_steps) * optimizer
    said = f"{warmup_steps} + {measure_steps} steps: expected {expected} steps of the optimizer, got {updates}"
    assert updates == expected, said


def check_phases(warmup_steps, measure_steps, optimizer):
    seen = measure.count(annotated_steps, warmup_steps, measure_steps, optimizer, through=looks.run_steps)
    steps = {"warmup": warmup_steps} | {f"measurement/step_{index}": 1 for index in range(measure_steps)}
    products = {"forward": 10, "backward": 20} | ({"optimizer": 0} if optimizer else {})
    right = {f"{step}/{phase}": n * products[phase] for step, n in steps.items() if n for phase in products}
    got = looks.products_by_phase(seen.by_range)
    assert set(got) == set(right), f"expected operations in the ranges {sorted(right)}, got {sorted(got)}"
    for path in right:
        assert got[path] == right[path], f"{path}: expected {right[path]} matrix products, got {got[path]}"
    macs = 173_568 * (warmup_steps + measure_steps)
    assert seen.macs == macs, f"{warmup_steps} + {measure_steps} steps take {macs:,} MACs, yours took {seen.macs:,}"


check_ranges(2, 3, False)
check_ranges(1, 2, True)
check_phases(1, 2, True)
### BEGIN HIDDEN TESTS
check_ranges(0, measure.draw(3, 6), False, work_ms=3.0, host_ms=5.0)
check_ranges(measure.draw(3, 6), 2, True, work_ms=70.0, backward_ms=9.0)
check_phases(0, measure.draw(2, 4), False)
check_phases(2, measure.draw(1, 3), True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_4a_busy_test", "grade": true, "points": 1}
def check_busy(times, busy, gap, span):
    got = busy_and_gaps([{"start_us": start, "duration_us": duration} for start, duration in times])
    assert_keys("busy_and_gaps", got, ("busy_us", "gap_us", "span_us"))
    hints = {
        "busy_us": "how long did all kernels run together?",
        "gap_us": "when does no kernel run?",
        "span_us": "when does the first kernel begin, and when does the last one end?",
    }
    for name, right in (("busy_us", busy), ("gap_us", gap), ("span_us", span)):
        near = is_near(got[name], right, 0, absolute=1e-6 * span)
        assert near, f"kernels {times} (start, duration): expected {name} = {right}, got {got[name]}; {hints[name]}"


check_busy([(100.0, 10.0), (115.0, 20.0), (150.0, 5.0)], busy=35.0, gap=20.0, span=55.0)
check_busy([(0.0, 4.0), (4.0, 6.0)], busy=10.0, gap=0.0, span=10.0)
### BEGIN HIDDEN TESTS
check_busy([(7.0, 1.0)], busy=1.0, gap=0.0, span=1.0)
times = [(30.0 * step + measure.draw(1, 9), float(measure.draw(1, 20))) for step in range(measure.draw(3, 6))]
busy, span = sum(duration for _, duration in times), sum(times[-1]) - times[0][0]
check_busy(times, busy=busy, gap=span - busy, span=span)
### END HIDDEN TESTS

# %% [markdown]
# ### Who waits for whom? ({points q1_1_4a_values_test})
#
# W profiled the forward pass of the small model. It takes 36.85, 37.39, 46.31 and 103.95 ms for L = 128, 256, 512 and
# 1024. The work F grows from 0.126 to 1.145 TFLOP.
#
# - `host_bound_lengths`: the lengths L at which the host, and not the work, sets the time of the forward pass. A list.
# - `what_a_sum_misses`: in a host-bound step the durations of all kernels add up to less than the step took. What is
#   missing? Choose a letter.
#     - `"a"`: Kernels that the profiler could not see because they ran in a library.
#     - `"b"`: The gaps in which the device waits for the next launch.
#     - `"c"`: The offset by which the clock of the device lags behind the clock of the host.
#     - `"d"`: The work of the warm-up steps, which a profile leaves out of its sums.

# %% nbgrader={"grade_id": "q1_1_4a_values", "solution": true}
host_bound_lengths = []  # of 128, 256, 512, 1024
what_a_sum_misses = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
host_bound_lengths = [128, 256]
what_a_sum_misses = "b"
### END SOLUTION

# %% nbgrader={"grade_id": "q1_1_4a_values_test", "grade": true, "points": 1}
known = isinstance(host_bound_lengths, (list, tuple)) and set(host_bound_lengths) <= {128, 256, 512, 1024}
assert known, f"host_bound_lengths has to be a list with some of 128, 256, 512, 1024, got {host_bound_lengths!r}"
assert what_a_sum_misses in tuple("abcd"), "what_a_sum_misses: choose a letter"
### BEGIN HIDDEN TESTS
assert set(host_bound_lengths) == {128, 256}, (
    "host_bound_lengths: at which L does the time stay the same although F doubles?"
)
assert_choice(
    what_a_sum_misses,
    "b",
    a="A profiler sees the kernels of libraries as well.",
    c="An offset between two clocks moves all kernels alike. It changes no duration.",
    d="The measured step contains no warm-up either.",
)
### END HIDDEN TESTS

# %% [markdown]
# Here is one step of a small model on your machine. The column `range` is the time between entering and leaving a
# phase, `span` the time from its first kernel to the end of its last. The note gives the time of the same step without
# a profiler. If it is smaller than the two ranges together, the difference is what profiling itself costs. The note
# also says who waited for whom.

# %%
profiled = looks.small_model(device)
batch = rl.randint(0, 1000, (4, 64), device=device)
annotated_steps(profiled, batch, 1, 1)
with rl.profile() as prof:
    annotated_steps(profiled, batch, 0, 1)
kernels_of_step = [looks.row_of(kernel) for kernel in prof.kernels]
rows = []
for phase in ("forward", "backward"):
    inside = [kernel for kernel in kernels_of_step if f"/{phase}" in f"/{kernel['range']}"]
    times = busy_and_gaps(inside)
    span = sum(one.duration_us for one in prof.ranges if one.path.endswith(f"step_0/{phase}"))
    rows.append((phase, len(inside), *(f"{times[key]:,.0f}" for key in times), f"{span:,.0f}"))
clock_us = 1e6 * np.median(benchmark(profiled, batch, "both", 1, 5))
head = ("phase", "launches", "busy µs", "gaps µs", "span µs", "range µs")
note = f"forward and backward by the clock: {clock_us:,.0f} µs; {prof.verdict}"
Table(head, rows, title="One step of a model of 2 layers", note=note)

# %% [markdown]
# ## 1.1.4b Which kernel dominates? ({points q1_1_4b})
#
# To speed up a forward pass, start with the kernel that takes the most time. Write three functions.
#
# - `launches_of_forward(config, batch_size, length)`: the launches of **one** forward pass, as `{"products": int,
#   "all": int}`. Products are launches of the op `matmul`. Do not derive the numbers; count them. Make the model with V
#   = 1000 on `device="meta"`, where nothing is computed, and run it in `rl.no_grad()`.
# - `dominant_kernel(kernels, forwards)`: the kernel that takes the most time in a profile of `forwards` forward passes.
#   Add up kernels of the same name. Return `{"name": ..., "share": ..., "launches": ...}`: its share of the time of all
#   kernels (0 to 1), and its launches in **one** forward pass. Each kernel is a dict with `"name"` and `"duration_us"`.
# - `ffn_share(config, vocab_size, length)`: the share of F (0 to 1) that belongs to the three products of the
#   feed-forward part.
#
# <details><summary>Hint</summary>
#
# `with rl.count() as c:` counts what runs inside it. `c.launches` is the total, and `c.by_op["matmul"].launches` is the
# number of one op.
# </details>


# %% nbgrader={"grade_id": "q1_1_4b", "solution": true}
def launches_of_forward(config, batch_size, length):
    """{"products": int, "all": int}: the launches of one forward pass."""
    ### BEGIN SOLUTION
    sizes = rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    with rl.no_grad(), rl.count() as c:
        model(ids)
    return {"products": c.by_op["matmul"].launches, "all": c.launches}
    ### END SOLUTION


def dominant_kernel(kernels, forwards):
    """{"name": str, "share": 0 to 1, "launches": int} of the kernel with the most time."""
    ### BEGIN SOLUTION
    times, launches = {}, {}
    for kernel in kernels:
        name = kernel["name"]
        times[name] = times.get(name, 0.0) + kernel["duration_us"]
        launches[name] = launches.get(name, 0) + 1
    name = max(times, key=times.get)
    return {"name": name, "share": times[name] / sum(times.values()), "launches": launches[name] // forwards}
    ### END SOLUTION


def ffn_share(config, vocab_size, length):
    """FLOPs of the feed-forward products divided by F: 0 to 1."""
    ### BEGIN SOLUTION
    ffn = config["num_layers"] * 2 * length * 3 * config["d_model"] * config["d_ff"]
    return ffn / forward_flops(config, vocab_size, 1, length)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_4b_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_2"]}
def check_launches(D, I, n, H, B, L, right):
    seen = measure.count(launches_of_forward, {"d_model": D, "d_ff": I, "num_layers": n, "num_heads": H}, B, L)
    got = seen.value
    assert_keys("launches_of_forward", got, ("products", "all"))
    for name in got:
        assert is_count(got[name]), f"launches_of_forward: {name} has to be an int, got {got[name]!r}"
        said = f"launches_of_forward, n = {n}: expected {name} = {right[name]}, got {got[name]}"
        assert got[name] == right[name], said
    assert seen.launches >= right["all"], "launches_of_forward: run a forward pass, and count its launches"


check_launches(768, 3072, 12, 12, 4, 128, {"products": 109, "all": 279})
check_launches(64, 128, 1, 2, 1, 16, {"products": 10, "all": 26})
### BEGIN HIDDEN TESTS
check_launches(2560, 10240, 32, 32, 4, 128, {"products": 289, "all": 739})
for config, _, B, L in draw_configs(measure.rng(), count=2):
    sizes = rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=L)
    model = rl.nn.TransformerLM(sizes, device="meta")
    with rl.no_grad(), rl.count() as counted:
        model(rl.empty(B, L, dtype="int64", device="meta"))
    right = {"products": counted.by_op["matmul"].launches, "all": counted.launches}
    check_launches(*config.values(), B, L, right)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_4b_kernel_test", "grade": true, "points": 1}
share_hint = "divide the time of all kernels of this name by the time of all kernels"


def check_dominant(times, forwards, name, share, launches):
    got = dominant_kernel([{"name": one, "duration_us": us} for one, us in times], forwards)
    assert_keys("dominant_kernel", got, ("name", "share", "launches"))
    assert got["name"] == name, f"kernels {times}: expected the name {name!r}, got {got['name']!r}"
    assert_near("dominant_kernel: the share of the time of all kernels", got["share"], share, 1e-6, share_hint)
    said = f"{forwards} forward passes: expected {launches} launches of {name} in one, got {got['launches']}"
    assert got["launches"] == launches, said


times = [("sgemm_128x64", 30.0), ("softmax", 35.0), ("sgemm_128x64", 34.0)]
times += [("add", 0.25)] * 4
check_dominant(times, 1, "sgemm_128x64", 0.64, 2)
check_dominant(times * 4, 4, "sgemm_128x64", 0.64, 2)
### BEGIN HIDDEN TESTS
check_dominant([("a", 1.0)] * 30 + [("b", 20.0)] * 3, 3, "b", 2 / 3, 1)
forwards, launches = measure.draw(2, 6), measure.draw(5, 40)
check_dominant([("nvjet_sst", 5.0), ("gelu", 2.0)] * forwards * launches, forwards, "nvjet_sst", 5 / 7, launches)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_4b_share_test", "grade": true, "points": 1}
LARGEST = {"d_model": 2560, "d_ff": 10240, "num_layers": 32, "num_heads": 32}
ffn_hint = "which three weights does each token meet in the feed-forward part, and how many layers are there?"
assert_near("ffn_share of 2.7B at 128", ffn_share(LARGEST, 10000, 128), 0.7396, 1e-3, ffn_hint)
### BEGIN HIDDEN TESTS
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
assert_near("ffn_share of small at 128", ffn_share(SMALL, 10000, 128), 0.6889, 1e-3, ffn_hint)
assert_near("ffn_share of small at 1024", ffn_share(SMALL, 10000, 1024), 0.6076, 1e-3, ffn_hint)
for config, V, _, L in draw_configs(measure.rng(), count=10):
    D, I, n = (config[name] for name in ("d_model", "d_ff", "num_layers"))
    right = 6 * n * L * D * I / (2 * L * (n * (4 * D**2 + 3 * D * I) + V * D) + 4 * n * L**2 * D)
    assert_near(f"ffn_share({config}, {V}, {L})", ffn_share(config, V, L), right, 1e-6, ffn_hint)
### END HIDDEN TESTS

# %%
counts = {size: launches_of_forward(config, 4, 128) for size, config in MODEL_CONFIGS.items()}
rows = [
    (size, one["products"], one["all"], *(f"{ffn_share(MODEL_CONFIGS[size], 10000, L):.1%}" for L in (128, 1024)))
    for size, one in counts.items()
]
Table(("size", "products", "all launches", "feed-forward, L = 128", "L = 1024"), rows, title="One forward pass")

# %% [markdown]
# Each layer has the same launches, so their number grows with n and with nothing else. W reports 148 and 676 launches
# of one kernel in a forward pass. These are the launches of four forward passes: 4 x 37 and 4 x 169. A profile of
# several steps contains the launches of all of them, so divide by the number of steps.
