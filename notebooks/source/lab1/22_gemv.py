# %% [markdown]
# ## 2.2 GEMV under the same roof (5 points)
#
# Generating text one token at a time multiplies matrices by *vectors*. Take (N, N) x (N, 1), fp32.
#
# **a)** (1 point) `gemv_intensity(N)`, and draw the same four sizes.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def gemv_intensity(N):
    """Arithmetic intensity of an (N, N) x (N, 1) product in fp32, FLOP/byte."""
    ### BEGIN SOLUTION
    flops = 2 * N * N
    moved = 4 * (N * N + N + N)
    return flops / moved
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_plot", "solution": true}
a6000 = GPU_SPECS["A6000"]
### BEGIN SOLUTION
gemv_points = {f"GEMV {N}": gemv_intensity(N) for N in (1024, 2048, 4096, 8192)}
plot_roofline("A6000", a6000["fp32_tflops"], a6000["memory_bandwidth_tb_s"], gemv_points)
### END SOLUTION

# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 1} rooflab={"needs": ["q2_1_1"]}
assert is_near(gemv_intensity(2), 0.25), "2x2 times 2x1: 8 FLOPs over 32 bytes"
### BEGIN HIDDEN TESTS
for N in (1, 1024, 2048, 4096, 8192):
    assert is_near(gemv_intensity(N), N / (2 * N + 4)), f"N = {N}: {N / (2 * N + 4)}"
### END HIDDEN TESTS

# %% [markdown]
# **b)** (2 points) What do you find? Give these as values; a sentence about each in the cell below them.
#
# - `gemv_ai_limit`: what the AI tends to as N grows, in FLOP/byte
# - `gemv_bound`: `"memory"`, `"compute"`, or `"both"` if it depends on N (on an A6000, fp32)
# - `gemv_best_tflop_s`: what an A6000 can reach on GEMV in fp32 however large N is, in TFLOP/s
# - `gemv_share_of_peak`: the same as a share of its fp32 peak (1.0 would be all of it)

# %% nbgrader={"grade_id": "q2_2_values", "solution": true}
gemv_ai_limit = None
gemv_bound = None
gemv_best_tflop_s = None
gemv_share_of_peak = None
### BEGIN SOLUTION
gemv_ai_limit = 0.5  # 2 N^2 / (4 N^2): each weight is used once
gemv_bound = "memory"  # 0.5 is far left of 50.4, for every N
gemv_best_tflop_s = 0.5 * 0.768
gemv_share_of_peak = 0.5 * 0.768 / 38.7
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q2_2_findings", "solution": true}
# *What I find (not graded):*

# %% nbgrader={"grade_id": "q2_2_values_test", "grade": true, "points": 2}
assert gemv_bound in ("memory", "compute", "both"), '"memory", "compute" or "both"'
assert gemv_share_of_peak is not None and 0 < gemv_share_of_peak < 1, "a share lies between 0 and 1"
### BEGIN HIDDEN TESTS
assert is_near(gemv_ai_limit, 0.5, 1e-3)
assert gemv_bound == "memory"
assert is_near(gemv_best_tflop_s, 0.384, 1e-2)
assert is_near(gemv_share_of_peak, 0.384 / 38.7, 1e-2)
### END HIDDEN TESTS

# %% [markdown]
# **c)** (2 points) Enough of what is possible: measure. A roofline point needs a speed, so turn a latency into one:
#
# - `speeds(macs, moved_bytes, ms)`: the pair (TFLOP/s, TB/s) of work that took `ms` milliseconds;
# - `measured_gemv(N)`: `rl.matmul` of (N, N) x (N, 1) in fp32 on `device`, timed by `latency`, as the dict `{"ms":
#   median, "tflop_s": ..., "tb_s": ...}`.


# %% nbgrader={"grade_id": "q2_2_measured", "solution": true}
def speeds(macs, moved_bytes, ms):
    """(TFLOP/s, TB/s) of `macs` MACs and `moved_bytes` bytes in `ms` milliseconds."""
    ### BEGIN SOLUTION
    return 2 * macs / (ms * 1e9), moved_bytes / (ms * 1e9)
    ### END SOLUTION


def measured_gemv(N):
    """{"ms", "tflop_s", "tb_s"} of rl.matmul on (N, N) x (N, 1), fp32; ms is a median."""
    ### BEGIN SOLUTION
    A, b = rl.randn(N, N, device=device), rl.randn(N, 1, device=device)
    ms = latency(rl.matmul, A, b, warmup=5, repeat=20).median_ms
    tflop_s, tb_s = speeds(N * N, 4 * (N * N + 2 * N), ms)
    return {"ms": ms, "tflop_s": tflop_s, "tb_s": tb_s}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_measured_test", "grade": true, "points": 2}
def check_speeds(macs, moved_bytes, ms, tflop_s, tb_s):
    got = speeds(macs, moved_bytes, ms)
    assert isinstance(got, (tuple, list)) and len(got) == 2, "return a pair: TFLOP/s, TB/s"
    assert is_near(got[0], tflop_s), f"{macs} MACs in {ms} ms are {tflop_s} TFLOP/s, not {got[0]}"
    assert is_near(got[1], tb_s), f"{moved_bytes} bytes in {ms} ms are {tb_s} TB/s, not {got[1]}"


check_speeds(10**12, 10**12, 1000.0, tflop_s=2.0, tb_s=1.0)
point = measured_gemv(512)
assert isinstance(point, dict) and set(point) == {"ms", "tflop_s", "tb_s"}, (
    'the keys are "ms", "tflop_s", "tb_s"'
)
assert point["ms"] > 0 and is_near(point["tflop_s"], 2 * 512 * 512 / point["ms"] / 1e9), (
    "2 N^2 FLOPs in that time"
)
### BEGIN HIDDEN TESTS
check_speeds(1024 * 1024, 4 * (1024 * 1024 + 2048), 0.25, tflop_s=0.008388608, tb_s=0.016809984)
for N in (64, 1024):
    point = measured_gemv(N)
    moved = 4 * (N * N + 2 * N)
    assert is_near(point["tflop_s"], 2 * N * N / point["ms"] / 1e9), (
        "tflop_s does not follow from ms"
    )
    assert is_near(point["tb_s"], moved / point["ms"] / 1e9), "tb_s does not follow from ms"
    assert point["ms"] <= measure.elapsed_ms(), "more than the time that passed: not in ms"
A, b = rl.randn(64, 64, device=device), rl.randn(64, 1, device=device)
fastest = rl.latency(rl.matmul, A, b, warmup=5, repeat=50).min_ms
assert is_time_of(measured_gemv(64)["ms"], fastest), "this is not the latency of rl.matmul, in ms"
### END HIDDEN TESTS

# %% [markdown]
# Now the whole picture, on *your* machine. `rl.machine.measure(device)` probes its ceilings once (some seconds; then
# they are kept): the bandwidth of its memory and of its last cache, and its peak per dtype. GEMM is measured where a
# budget allows, GEMV at all four sizes, every point with its spread. `l2="cold"` empties the caches before each call:
# without it a small matrix is still in cache from the call before, and its GEMV runs *above* the memory roof. The
# dotted line is the roof of work that stays in cache.

# %%
ceilings = rl.machine.measure(device)
print(ceilings)


def measured(name, series, a, b, **options):
    """A point of the roofline plot: the cost counted, the latency measured."""
    with rl.count() as cost:
        rl.matmul(a, b)
    return rl.roofline.measured_point(name, cost, latency(rl.matmul, a, b, **options), series)


sizes = [1024, 2048, 4096, 8192]
first_ms = latency(
    rl.matmul, *(rl.randn(1024, 1024, device=device) for _ in range(2)), warmup=2, repeat=5
).median_ms
affordable, left_out = sizes_in_budget(sizes, first_ms, budget_s=1.0)
print(f"\nGEMM measured at {affordable}; left out by a budget of 1 s: {left_out or 'none'}")

points = []
for N in sizes:
    A = rl.randn(N, N, device=device)
    for series, l2 in [("GEMV, caches warm", "warm"), ("GEMV, caches cold", "cold")]:
        points.append(
            measured(str(N), series, A, rl.randn(N, 1, device=device), warmup=3, repeat=15, l2=l2)
        )
    if N in affordable:
        points.append(
            measured(str(N), "GEMM", A, rl.randn(N, N, device=device), warmup=1, repeat=5)
        )

# %%
rl.plots.plot_roofline(
    ceilings, points, dtype="float32", title="GEMM and GEMV in fp32, measured here"
)

# %%
for point in points:
    share = rl.roofline.fraction_of_roof(ceilings, point, "float32")
    bound = rl.roofline.bound(ceilings, point.intensity, "float32")
    print(f"{point.series:18} N = {point.name:5} AI {point.intensity:8.2f}   ", end="")
    print(f"{point.tflop_s * 1e3:9.1f} GFLOP/s, {share:4.0%} of the {bound} roof")

# %% [markdown]
# So a good GEMV reaches almost all of the *bandwidth* and almost nothing of the *peak*: it is as fast as it can be,
# and a machine with twice the arithmetic would not run it any faster. Keep this picture in mind for Part 3, where a
# language model's prefill turns out to be made of GEMMs and its decode of GEMVs.
