# %% [markdown]
# ## 1.2 How long does it take? (5 points)
#
# The obvious way is to take the time once. `latency_one_time(fn, *args)` does just that: no warm-up, one run (and on
# a GPU it waits for the device to finish, for a launch returns long before its kernel does). It returns a `Timing`;
# `.samples_ms` holds its one sample.
#
# **a) Take it many times** (2 points). `single_shots(size, n)` times your `gemm` on two (size, size) matrices `n`
# times, one shot at a time, and returns the `n` times in ms *in the order they were taken*. Make the matrices once.
#
# `spread(samples_ms)` sums such a list up: the first sample over the median, the median, and the 20th and 80th
# percentiles (`np.percentile`; of all samples, the first one included).


# %% nbgrader={"grade_id": "q1_2", "solution": true}
def single_shots(size, n):
    """n single-shot latencies of gemm on two (size, size) matrices: ms, in the order taken."""
    ### BEGIN SOLUTION
    A, B = rl.randn(size, size, device=device), rl.randn(size, size, device=device)
    return [float(latency_one_time(gemm, A, B).samples_ms[0]) for _ in range(n)]
    ### END SOLUTION


def spread(samples_ms):
    """{"first_over_median", "median_ms", "p20_ms", "p80_ms"} of samples in the order taken."""
    ### BEGIN SOLUTION
    p20, median, p80 = (float(value) for value in np.percentile(samples_ms, [20, 50, 80]))
    return {
        "first_over_median": samples_ms[0] / median,
        "median_ms": median,
        "p20_ms": p20,
        "p80_ms": p80,
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_spread(samples, **expected):
    got = spread(samples)
    assert isinstance(got, dict), "spread must return a dict"
    for name, value in expected.items():
        assert is_near(got.get(name), value), f"{name} of {samples} is {value}, not {got.get(name)}"


shots = single_shots(24, 12)
assert isinstance(shots, list) and len(shots) == 12, (
    "twelve shots were asked for: return a list of 12 times"
)
assert all(isinstance(ms, float) and np.isfinite(ms) and ms > 0 for ms in shots), (
    "every time is a positive float"
)
check_spread(
    [9.0, 2.0, 1.0, 3.0, 2.5, 1.5], first_over_median=4.0, median_ms=2.25, p20_ms=1.5, p80_ms=3.0
)
### BEGIN HIDDEN TESTS
assert sum(shots) <= measure.elapsed_ms(), (
    "the shots add up to more than the time that passed: they are not in ms"
)
assert len(set(shots)) > 1, "twelve equal times: these are not measurements"
assert shots != sorted(shots), "the times were sorted: the order they were taken in is lost"
assert len(single_shots(8, 5)) == 5, "n is an argument"
A, B = rl.randn(24, 24, device=device), rl.randn(24, 24, device=device)
fastest = measure.latency(gemm, A, B, warmup=1, repeat=10).samples_ms.min()
assert is_time_of(np.median(shots), fastest), "these are not the times of gemm at that size, in ms"
small, large = np.median(single_shots(8, 7)), np.median(single_shots(40, 7))
assert large > 3 * small, "125 times the work took about the same time: size is not used"
check_spread([4.0, 4.0, 4.0], first_over_median=1.0, median_ms=4.0, p20_ms=4.0, p80_ms=4.0)
check_spread(
    [1.0, 10.0, 2.0, 8.0, 4.0], first_over_median=0.25, median_ms=4.0, p20_ms=1.8, p80_ms=8.4
)
### END HIDDEN TESTS

# %% [markdown]
# Now look at what you measured: your loops, and the library's product of the same matrices. The first shot of the
# library pays for things that happen once (waking its threads, getting memory, on a GPU loading the kernel), and the
# later ones still do not agree with each other.

# %%
import matplotlib.pyplot as plt

size, n = 64, 30
A, B = rl.randn(size, size, device=device), rl.randn(size, size, device=device)
shots = {
    "gemm (your loops)": single_shots(size, n),
    "rl.matmul": [float(latency_one_time(rl.matmul, A, B).samples_ms[0]) for _ in range(n)],
}
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
for name, samples in shots.items():
    summary = spread(samples)
    line = axes.semilogy(range(1, n + 1), samples, "o", markersize=4, label=name)[0]
    axes.axhline(summary["median_ms"], color=line.get_color(), linewidth=1)
    print(f"{name:18} median {summary['median_ms']:.4f} ms", end="   ")
    print(f"p20 {summary['p20_ms']:.4f}   p80 {summary['p80_ms']:.4f}", end="   ")
    print(f"first/median {summary['first_over_median']:.2f}", end="   ")
    print(f"max/min {max(samples) / min(samples):.1f}")
axes.set(
    xlabel="shot",
    ylabel="latency (ms)",
    title=f"Single shots at {size}x{size}x{size}; lines: medians",
)
axes.legend()
plt.show()

# %% [markdown]
# **b) What does one shot tell you?** (1 point) Choose the one statement that your measurements support, and say in a
# sentence or two in the cell below it what you saw.
#
# - `"a"`: its median: repeated runs of the same code on the same data take the same time
# - `"b"`: the fastest that the hardware can go, since nothing else was measured
# - `"c"`: one draw from a distribution whose first draw may be many times its median, and whose later draws still
#   spread
# - `"d"`: the time of the arithmetic alone, since waiting is not part of the work

# %% nbgrader={"grade_id": "q1_2_choice", "solution": true}
one_shot_tells = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
one_shot_tells = "c"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q1_2_findings", "solution": true}
# *What I saw (not graded):*

# %% nbgrader={"grade_id": "q1_2_choice_test", "grade": true, "points": 1}
assert one_shot_tells in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert one_shot_tells == "c"
### END HIDDEN TESTS

# %% [markdown]
# From here on use `latency(fn, *args, warmup=10, repeat=100)`: it runs `fn` a few times without looking, then takes
# `repeat` samples. The `Timing` it returns prints its median and its spread, and has `.median_ms`, `.p20_ms`,
# `.p80_ms`, `.mean_ms`, `.std_ms` and `.samples_ms`. Report the median: one interrupted run moves a mean, not a
# median.
#
# **c) GEMM against GEMV** (1 point). How much longer does (size, size) x (size, size) take than (size, size) x (size,
# 1)? Before you measure, predict it from the number of MACs. Return both medians in ms; two or three warm-up runs and
# five repeats will do, for these are your slow loops.


# %% nbgrader={"grade_id": "q1_2_gemv", "solution": true}
predicted_ratio_at_64 = None  # MACs of the GEMM at size 64 over MACs of the GEMV: a number
### BEGIN SOLUTION
predicted_ratio_at_64 = 64
### END SOLUTION


def gemm_and_gemv_ms(size):
    """(gemm_ms, gemv_ms): medians of gemm on (size, size) times (size, size) and (size, 1)."""
    ### BEGIN SOLUTION
    A, B, b = (rl.randn(size, columns, device=device) for columns in (size, size, 1))
    return latency(gemm, A, B, warmup=2, repeat=5).median_ms, latency(
        gemm, A, b, warmup=2, repeat=5
    ).median_ms
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_gemv_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
gemm_ms, gemv_ms = gemm_and_gemv_ms(32)
assert all(isinstance(ms, float) and np.isfinite(ms) and ms > 0 for ms in (gemm_ms, gemv_ms)), (
    "two positive floats"
)
assert gemm_ms > gemv_ms, "the matrix has 32 columns, the vector one: gemm cannot be the faster one"
### BEGIN HIDDEN TESTS
assert is_near(predicted_ratio_at_64, 64), "64 columns against 1"
gemm_ms, gemv_ms = gemm_and_gemv_ms(48)
assert gemm_ms + gemv_ms <= measure.elapsed_ms(), "these times are not in ms"
assert 4 < gemm_ms / gemv_ms < 300, "48 times the MACs: the ratio is implausible"
A, B = rl.randn(48, 48, device=device), rl.randn(48, 48, device=device)
fastest = measure.latency(gemm, A, B, warmup=1, repeat=5).samples_ms.min()
assert is_time_of(gemm_ms, fastest), "this is not the time of gemm at that size, in ms"
### END HIDDEN TESTS

# %% [markdown]
# **d) Which sizes can you afford?** (1 point) Against the library we want sizes 64, 128, 256, 512. Doubling the size
# does not double the time of `gemm`: predict what it does, and you can tell *beforehand* which sizes a budget allows.
#
# Write `sizes_in_budget(sizes, first_ms, budget_s)`. One run at the smallest size, `sizes[0]`, took `first_ms`
# milliseconds. Predict each size's time from its work, and go through `sizes` in ascending order for as long as the
# predicted times of all sizes so far, one run each, add up to no more than `budget_s` seconds. Return two lists: the
# sizes to run, and the sizes left out.


# %% nbgrader={"grade_id": "q1_2_budget", "solution": true}
def sizes_in_budget(sizes, first_ms, budget_s):
    """(run, left_out): ascending `sizes`, split where their predicted time exceeds the budget."""
    ### BEGIN SOLUTION
    run, total_ms = [], 0.0
    for size in sizes:
        total_ms += first_ms * (size / sizes[0]) ** 3
        if total_ms > budget_s * 1000:
            break
        run.append(size)
    return run, sizes[len(run) :]
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_budget_test", "grade": true, "points": 1}
def check_budget(sizes, first_ms, budget_s, run):
    got = sizes_in_budget(sizes, first_ms, budget_s)
    expected = (run, sizes[len(run) :])
    assert isinstance(got, (tuple, list)) and len(got) == 2, "return two lists: run, left_out"
    assert (list(got[0]), list(got[1])) == expected, (
        f"{sizes}, the first takes {first_ms} ms, budget {budget_s} s: {expected}, not {got}"
    )


check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=2.0, run=[64, 128, 256])
### BEGIN HIDDEN TESTS
check_budget(
    [64, 128, 256, 512], first_ms=15.0, budget_s=9.0, run=[64, 128, 256, 512]
)  # 15 * 585 = 8775 ms
check_budget(
    [64, 128, 256, 512], first_ms=15.0, budget_s=8.0, run=[64, 128, 256]
)  # 512 alone would fit
check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=0.01, run=[])
check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=0.1, run=[64])
check_budget([100, 150, 200], first_ms=8.0, budget_s=0.05, run=[100, 150])  # 8 + 27 + 64
check_budget([100, 150, 200], first_ms=8.0, budget_s=0.1, run=[100, 150, 200])
### END HIDDEN TESTS

# %% [markdown]
# The comparison, within a budget. Both axes are logarithmic, or the library's line would lie on the floor.

# %%
budget_s = 4.0
sizes = [64, 128, 256, 512]
first_ms = latency_one_time(
    gemm, *(rl.randn(sizes[0], sizes[0], device=device) for _ in range(2))
).median_ms
run, left_out = sizes_in_budget(sizes, first_ms, budget_s)
print(f"one run at 64 took {first_ms:.1f} ms; budget {budget_s:g} s: {run}; left out: {left_out}")

gemm_times, library_times, gemv_times = [], [], []
for size in sizes:
    A, B, b = (rl.randn(size, columns, device=device) for columns in (size, size, 1))
    library_times.append(latency(rl.matmul, A, B))
    gemv_times.append(latency(gemm, A, b, warmup=1, repeat=3) if size in run else None)
    gemm_times.append(latency(gemm, A, B, warmup=0, repeat=1) if size in run else None)
    if size in run:
        ratio = gemm_times[-1].median_ms / library_times[-1].median_ms
        print(
            f"N = {size}: gemm {gemm_times[-1]}, rl.matmul {library_times[-1]}: {ratio:,.0f} times"
        )
plot_gemm_torch_matmul_latency(sizes, gemm_times, library_times)

# %%
plot_gemm_gemv_latency(sizes, gemm_times, gemv_times)

# %% [markdown]
# The ratio of GEMM to GEMV falls short of N: a GEMV has N² MACs, but turning the matrix into Python numbers costs N²
# steps as well. Whatever does not shrink with the work shows when the work is small; on a GPU that will be the
# launch.
#
# And the library: the same arithmetic, thousands of times faster. Is the library fast, then, or merely less slow? A
# stop-watch cannot say. For that we have to know how much work there is, and how fast this machine could do it.
