# %% [markdown]
# ## 2.2 GEMV under the same roof ({points q2_2})
#
# Generating text one token at a time multiplies matrices by *vectors*. Take (N, N) x (N, 1) in fp32.
#
# ### a) Its intensity ({points q2_2_test})
#
# Write `gemv_intensity(N)`. The cell after the test draws the four sizes of 2.1.1.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def gemv_intensity(N):
    """Arithmetic intensity of an (N, N) x (N, 1) product in fp32, FLOP/byte."""
    ### BEGIN SOLUTION
    flops = 2 * N * N
    moved = 4 * (N * N + N + N)
    return flops / moved
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 1}
for N, flops, moved in [(2, 8, 32), (10, 200, 480)]:
    said = f"gemv_intensity({N}): expected {flops} FLOPs / {moved} bytes, got {gemv_intensity(N)}"
    assert is_near(gemv_intensity(N), flops / moved), said
### BEGIN HIDDEN TESTS
for N in (1, measure.draw(3, 999), 2048, 4096, 8192):
    said = f"gemv_intensity({N}): count the bytes of the matrix and of both vectors"
    assert is_near(gemv_intensity(N), N / (2 * N + 4)), said
### END HIDDEN TESTS

# %%
draw_on_a6000({f"GEMV {N}": gemv_intensity(N) for N in (1024, 2048, 4096, 8192)})

# %% [markdown]
# ### b) What do you find? ({points q2_2_values_test q2_2_best_test})
#
# Give these values, and write a sentence about each in the cell below.
#
# - `gemv_ai_limit`: the AI for very large N, in FLOP/byte
# - `gemv_bound`: `"memory"`, `"compute"`, or `"both"` if it depends on N (on an A6000 in fp32)
# - `gemv_best_tflop_s`: the most that an A6000 can reach on fp32 GEMV, for any N, in TFLOP/s
# - `gemv_share_of_peak`: that speed divided by the fp32 peak (1.0 would be the whole peak)

# %% nbgrader={"grade_id": "q2_2_values", "solution": true}
gemv_ai_limit = None  # FLOP/byte
gemv_bound = None  # "memory", "compute" or "both"
gemv_best_tflop_s = None  # TFLOP/s
gemv_share_of_peak = None  # from 0 to 1
### BEGIN SOLUTION
gemv_ai_limit = 0.5  # 2 N^2 / (4 N^2): each weight is used once
gemv_bound = "memory"  # 0.5 is far left of 50.4, for every N
gemv_best_tflop_s = 0.5 * 0.768
gemv_share_of_peak = 0.5 * 0.768 / 38.7
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q2_2_findings", "solution": true}
# *What I find:*

# %% nbgrader={"grade_id": "q2_2_values_test", "grade": true, "points": 1}
assert gemv_bound in ("memory", "compute", "both"), 'gemv_bound has to be "memory", "compute" or "both"'
assert is_number(gemv_ai_limit), f"gemv_ai_limit has to be a number, got {gemv_ai_limit!r}"
### BEGIN HIDDEN TESTS
assert is_near(gemv_ai_limit, 0.5, 1e-3), "gemv_ai_limit: which terms of FLOPs and bytes remain when N is large?"
assert gemv_bound == "memory", "gemv_bound: compare the AI at small and at large N with the ridge of 2.1.2"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_best_test", "grade": true, "points": 1}
said = f"gemv_best_tflop_s has to be at most the peak, got {gemv_best_tflop_s}"
assert is_number(gemv_best_tflop_s) and 0 < gemv_best_tflop_s <= 38.7, said
said = f"gemv_share_of_peak has to lie between 0 and 1, got {gemv_share_of_peak}"
assert is_number(gemv_share_of_peak) and 0 < gemv_share_of_peak <= 1, said
### BEGIN HIDDEN TESTS
assert is_near(gemv_best_tflop_s, 0.384, 1e-2), "gemv_best_tflop_s: read the roof at the AI of a)"
assert is_near(gemv_share_of_peak, 0.384 / 38.7, 1e-2), "gemv_share_of_peak: divide by the fp32 peak"
### END HIDDEN TESTS

# %% [markdown]
# ### c) Measure it ({points q2_2_speeds_test q2_2_measured_test})
#
# So far we know what is possible. Now measure. A point on the roofline needs a speed:
#
# - `speeds(macs, moved_bytes, ms)`: the pair (TFLOP/s, TB/s) of work that took `ms` milliseconds;
# - `measured_gemv(N)`: time `rl.matmul` of (N, N) x (N, 1) in fp32 on `device` with `latency`. Return the dict
#   `{"ms": median, "tflop_s": ..., "tb_s": ...}`, where `tb_s` counts compulsory bytes. Warm up, and take at
#   least three samples.


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


# %% nbgrader={"grade_id": "q2_2_speeds_test", "grade": true, "points": 1}
def check_speeds(macs, moved_bytes, ms, tflop_s, tb_s):
    got = speeds(macs, moved_bytes, ms)
    assert isinstance(got, (tuple, list)) and len(got) == 2, f"speeds has to return a pair (TFLOP/s, TB/s), got {got!r}"
    said = f"{macs} MACs in {ms} ms: expected {tflop_s} TFLOP/s, got {got[0]}; a MAC is 2 FLOPs"
    assert is_near(got[0], tflop_s), said
    assert is_near(got[1], tb_s), f"{moved_bytes} bytes in {ms} ms: expected {tb_s} TB/s, got {got[1]}; check the units"


check_speeds(10**12, 10**12, 1000.0, tflop_s=2.0, tb_s=1.0)
check_speeds(3 * 10**9, 10**9, 0.5, tflop_s=12.0, tb_s=2.0)
### BEGIN HIDDEN TESTS
macs, moved, ms = measure.draw(10**5, 10**9), measure.draw(10**5, 10**9), measure.draw(1, 900) / 16
check_speeds(macs, moved, ms, tflop_s=2 * macs / (ms / 1e3) / 1e12, tb_s=moved / (ms / 1e3) / 1e12)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_2_measured_test", "grade": true, "points": 1}
def check_measured(N):
    seen = measure.timed(measured_gemv, N)
    point, keys = seen.value, {"ms", "tflop_s", "tb_s"}
    assert isinstance(point, dict) and set(point) == keys, 'the keys are "ms", "tflop_s", "tb_s"'
    A, b = rl.ones((N, N)), rl.ones((N, 1))
    with rl.count() as one:
        rl.matmul(A, b)
    moved = one.bytes_read + one.bytes_written
    gemv = [call for call in seen.calls if (call.macs, call.moved_bytes) == (one.macs, moved)]
    assert gemv, f"no timed call of rl.matmul on fp32 tensors of shape ({N}, {N}) and ({N}, 1)"
    assert measure.is_median(point["ms"], gemv), f"ms = {point['ms']} is not the median_ms that latency returned"
    assert measure.is_steady(point["ms"], gemv), "ms: warm up, and take at least three samples"
    said = f"tflop_s = {point['tflop_s']}: divide {one.flops} FLOPs by the time"
    assert is_near(point["tflop_s"], one.flops / point["ms"] / 1e9), said
    said = f"tb_s = {point['tb_s']}: divide {moved} compulsory bytes by the time"
    assert is_near(point["tb_s"], moved / point["ms"] / 1e9), said


check_measured(512)
check_measured(20)
### BEGIN HIDDEN TESTS
check_measured(measure.draw(30, 100))
check_measured(1024)
### END HIDDEN TESTS

# %% [markdown]
# Now draw the whole picture for *your* machine. `rl.machine.measure(device)` measures its ceilings once, in half a
# minute or so, and keeps them: the bandwidth of its memory and of its last cache, and its peak for each dtype. GEMV is
# measured at all four sizes, and GEMM at those that fit in a time budget. Every point shows its spread.
#
# `l2="cold"` empties the caches before each call. Without it a small matrix is still in the cache from the call before,
# and its GEMV can run *above* the memory roof. The dotted line is the roof for work that stays in the cache.

# %%
ceilings = rl.machine.measure(device)
print(ceilings)


def measured(name, series, a, b, **options):
    """A point of the roofline plot: the cost counted, the latency measured."""
    with rl.count() as cost:
        rl.matmul(a, b)
    return rl.roofline.measured_point(name, cost, latency(rl.matmul, a, b, **options), series)


sizes = [1024, 2048, 4096, 8192]
square = [rl.randn(1024, 1024, device=device) for _ in range(2)]
first_ms = latency(rl.matmul, *square, warmup=2, repeat=5).median_ms
affordable, left_out = sizes_in_budget(sizes, first_ms, budget_s=1.0)
print(f"\nGEMM measured at {affordable}; left out by a budget of 1 s: {left_out or 'none'}")

points = []
for N in sizes:
    A, b = rl.randn(N, N, device=device), rl.randn(N, 1, device=device)
    for series, l2 in [("GEMV, caches warm", "warm"), ("GEMV, caches cold", "cold")]:
        points.append(measured(str(N), series, A, b, warmup=3, repeat=15, l2=l2))
    if N in affordable:
        points.append(measured(str(N), "GEMM", A, rl.randn(N, N, device=device), warmup=1, repeat=5))

# %%
rl.plots.plot_roofline(ceilings, points, dtype="float32", title="GEMM and GEMV in fp32, measured here")

# %%
rows = []
for point in points:
    share = rl.roofline.fraction_of_roof(ceilings, point, "float32")
    bound = rl.roofline.bound(ceilings, point.intensity, "float32")
    speed = f"{point.tflop_s * 1e3:.1f}"
    rows.append((point.series, point.name, f"{point.intensity:.2f}", speed, f"{share:.0%}", bound))
Table(("", "N", "FLOP/byte", "GFLOP/s", "share of its roof", "bound by"), rows)

# %% [markdown]
# Look at the GEMV rows with cold caches. How close do they come to their roof? Their speed is far below that of
# a GEMM. How much faster would they be with twice the arithmetic units? And with twice the bandwidth? Remember this
# picture in Part 3: prefill of a language model consists of GEMMs, and decode of GEMVs.
