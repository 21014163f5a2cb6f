# %% [markdown]
# ## b5.4 Reading a profile ({points b5_4})
#
# A profile has two kinds of rows. A *device* row is a kernel that ran on the device. A *host* row is a function on the
# host. Host functions contain others: `linear` calls `matmul`, which calls the launch, and the time of a parent
# includes the time of its children. A host function may also just wait for the device. Then its time overlaps the
# kernel and must not be added to it.
#
# The tests give you rows like these. `parent` is the index (from 0) of the row that contains this row, or `None`:

# %% tags=["setup"]
EXAMPLE_ROWS = [
    {"name": "linear", "where": "host", "parent": None, "category": "", "us": 30.0},
    {"name": "matmul", "where": "host", "parent": 0, "category": "", "us": 25.0},
    {"name": "launch", "where": "host", "parent": 1, "category": "", "us": 10.0},
    {"name": "sgemm_128x64", "where": "device", "parent": None, "category": "gemm", "us": 80.0},
    {"name": "gelu", "where": "host", "parent": None, "category": "", "us": 12.0},
    {"name": "gelu_kernel", "where": "device", "parent": None, "category": "elementwise", "us": 20.0},
]

# %% [markdown]
# - `profile_totals(rows)`: a dict with three values. For the example they are 100, 42 and 0.8.
#     - `"kernel_us"`: the time of all kernels, in µs
#     - `"host_us"`: the sum over the host rows without a parent, in µs, waiting included. Never add it to
#       `"kernel_us"`: while the host waits, kernels run.
#     - `"gemm_share"`: the share of `"kernel_us"` in kernels of the category `"gemm"` (matrix products), 0 to 1
# - `per_second(amount, us)`: FLOP/s or byte/s of a kernel that took `us` microseconds for `amount` FLOPs or bytes
# - `backward_over_forward(layers)`: for the network of 5.3, the number of products in the backward pass divided by that
#   in the forward pass


# %% nbgrader={"grade_id": "b5_4", "solution": true}
def profile_totals(rows):
    """{"kernel_us", "host_us", "gemm_share"} of the rows of a profile."""
    ### BEGIN SOLUTION
    kernels = [row for row in rows if row["where"] == "device"]
    kernel_us = sum(row["us"] for row in kernels)
    return {
        "kernel_us": kernel_us,
        "host_us": sum(row["us"] for row in rows if row["where"] == "host" and row["parent"] is None),
        "gemm_share": sum(row["us"] for row in kernels if row["category"] == "gemm") / kernel_us,
    }
    ### END SOLUTION


def per_second(amount, us):
    """FLOP/s or byte/s of a kernel that takes `us` microseconds for `amount` FLOPs or bytes."""
    ### BEGIN SOLUTION
    return amount / (us * 1e-6)
    ### END SOLUTION


def backward_over_forward(layers):
    """Number of products in the backward pass divided by that in the forward pass."""
    ### BEGIN SOLUTION
    return (2 * layers - 1) / layers
    ### END SOLUTION


# %% nbgrader={"grade_id": "b5_4_test", "grade": true, "points": 2}
def check_totals(rows, kernel_us, host_us, gemm_share):
    seen = measure.call(profile_totals, rows)
    assert not seen.changed, "profile_totals changed the rows that it was given: the indices in `parent` need them"
    got, right = seen.value, {"kernel_us": kernel_us, "host_us": host_us, "gemm_share": gemm_share}
    said = f"profile_totals must return a dict with the keys {', '.join(right)}, got {got!r}"
    assert isinstance(got, dict) and set(got) == set(right), said
    listed = ", ".join(f"{row['name']} ({row['where']}, parent {row['parent']}, {row['us']:g} us)" for row in rows)
    for key, value in right.items():
        said = f"profile_totals: {key} is {got[key]!r}, expected {value:.6g}, for the rows {listed}"
        assert is_near(got[key], value, 1e-6), said


check_totals(EXAMPLE_ROWS, 100.0, 42.0, 0.8)
two = [
    {"name": "add", "where": "host", "parent": None, "category": "", "us": 9.5},
    {"name": "add_kernel", "where": "device", "parent": None, "category": "elementwise", "us": 4.0},
]
check_totals(two, 4.0, 9.5, 0.0)
### BEGIN HIDDEN TESTS
rng = measure.rng()
for _ in range(5):
    made, kernel_us, host_us, gemm_us = [], 0.0, 0.0, 0.0
    for number in range(measure.draw(4, 8)):
        outer = float(rng.integers(50, 900)) + 0.75
        made.append({"name": f"op {number}", "where": "host", "parent": None, "category": "", "us": outer})
        parent, inner = len(made) - 1, outer
        for depth in range(int(rng.integers(0, 4))):
            inner *= 0.8
            made.append({"name": f"part {depth}", "where": "host", "parent": parent, "category": "", "us": inner})
            parent = len(made) - 1
        category, us = str(rng.choice(["gemm", "elementwise", "memory"])), float(rng.integers(1, 3000))
        made.append({"name": "kernel", "where": "device", "parent": None, "category": category, "us": us})
        kernel_us, host_us, gemm_us = kernel_us + us, host_us + outer, gemm_us + us * (category == "gemm")
    check_totals(made, kernel_us, host_us, gemm_us / kernel_us)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b5_4_rates_test", "grade": true, "points": 1}
rate_hint = "a second has 10⁶ microseconds"
assert_values(per_second, {(1000, 2.0): 5e8, (3e6, 1.5): 2e12, (3, 4): 7.5e5}, rate_hint)
ratio_hint = "how many products does each layer run forward and backward, and is the first layer like the others?"
assert_values(backward_over_forward, {(1,): 1.0, (2,): 1.5, (10,): 1.9}, ratio_hint)
### BEGIN HIDDEN TESTS
assert_values(per_second, {(50331648, 43.489): 1.15734e12, (2 * 2048**3, 1244.0): 1.38101e13}, rate_hint)
for amount, us in draws((1, 10**12), (1, 5000), count=4):
    assert_values(per_second, {(amount, us / 10): amount * 1e7 / us}, rate_hint)
layers = [4, measure.draw(3, 50), 100]
assert_values(backward_over_forward, {(n,): (2 * n - 1) / n for n in layers}, ratio_hint)
### END HIDDEN TESTS

# %% [markdown]
# The next table shows the published profiles of the A100. The sum of two 2048 x 2048 matrices moves 3 · 4 · 2048²
# bytes, and their product does 2 · 2048³ FLOPs:

# %%
rows = []
for (what, kernel, kernel_us, host_us), amount, unit in zip(
    lab5.PUBLISHED_PROFILE, (12 * 2048**2, 2 * 2048**3), ("B/s", "FLOP/s"), strict=True
):
    rate = f"{per_second(amount, kernel_us) / 1e12:.2f} T{unit}"
    rows.append((what, kernel, f"{kernel_us:.1f}", rate, f"{host_us:.0f}", f"{host_us / kernel_us:.1f}"))
Table(("", "kernel", "kernel µs", "rate", "host µs", "host / kernel"), rows, title="One profiled call each on an A100")

# %% [markdown]
# The kernel of the sum reaches 74 % of the bandwidth. The host takes 981 µs for it, 22.6 times as long as the kernel.
# But that was the first profiled call, and later calls take much less. So profile many calls, and leave out the first.
# For the product, most of the host's 1,958 µs is *waiting*, which overlaps the kernel.
#
# Now profile your machine. Which kernels does it run, and what share of the time is in matrix products? How much longer
# is the host's time than that of the kernels? On a CPU the kernels run inside the host's functions, so its time has
# theirs in it. For the network of 5.3, the published times have a ratio of 1.758. What does your formula give?

# %%
schedule = rl.profiler.schedule(wait=1, warmup=2, active=4)
x, y = rl.randn(2048, 2048, device=device), rl.randn(2048, 2048, device=device)
small = rl.randn(128, 128, device=device)
work = {
    "add 2048": lambda: x + y,
    "matmul 2048": lambda: rl.matmul(x, y),
    "matmul 128": lambda: rl.matmul(small, small),
    "MLP of 5.3": mlp_runner(256, 4, 256, 1, device),
}
rows = []
for name, call in work.items():
    with rl.profile(schedule=schedule) as prof:
        for _ in range(7):
            call()
            prof.step()
    table = [
        {"name": one.name, "where": "host", "parent": one.parent, "category": "", "us": one.duration_us}
        for one in prof.host
    ]
    table += [
        {"name": k.name, "where": "device", "parent": None, "category": k.category, "us": k.duration_us}
        for k in prof.kernels
    ]
    totals = profile_totals(table)
    flops, moved = (sum(getattr(k.cost, part) for k in prof.kernels) for part in ("flops", "bytes"))
    longest = max(prof.kernels, key=lambda kernel: kernel.duration_us).name
    steps, us = len(prof.steps), totals["kernel_us"]
    rates = f"{per_second(flops, us) / 1e9:,.1f}", f"{per_second(moved, us) / 1e9:.1f}"
    times = f"{us / steps:,.0f}", f"{totals['host_us'] / steps:,.0f}"
    rows.append((name, len(prof.kernels) // steps, *times, *rates, f"{totals['gemm_share']:.0%}", longest))
head = ("", "kernels", "kernel µs", "host µs", "GFLOP/s", "GB/s", "products", "longest kernel")
Table(head, rows, title=f"Profiles on {lab5.machine_name(device)}")
