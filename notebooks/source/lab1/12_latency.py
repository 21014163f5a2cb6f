# %% [markdown]
# ## 1.2 How long does it take? ({points q1_2})
#
# The simplest way to find out is to time one call. `latency_one_time(fn, *args)` does that: it runs `fn` once, with no
# warm-up. On a GPU it also waits until the GPU has finished. A *kernel* is a function that runs on the device, and a
# *launch* is one request to run it. The launch returns long before its kernel is done. The result is a `Timing`, and
# its `.samples_ms` holds one sample.
#
# ### a) Time it many times ({points q1_2_test q1_2_spread_test})
#
# Write two functions.
#
# - `single_shots(size, n)` times your `gemm` on two (size, size) matrices `n` times, each time with `latency_one_time`.
#   It returns a list of `n` times in ms, *in the order in which they were taken*. Make the matrices once, with
#   `rl.randn(size, size, device=device)`.
# - `spread(samples_ms)` summarises such a list. It returns a dict with four numbers: `"first_over_median"` is the first
#   sample divided by the median, `"median_ms"` the median, and `"p20_ms"` and `"p80_ms"` the 20th and the 80th
#   percentile (`np.percentile`). Use all samples, including the first.


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


# %% [markdown]
# The test below does not use a real clock. `measure.timed` runs your function on a *virtual clock*: each timed call
# runs once, and the test decides how long it took. So the test can check what you timed, how you timed it, and whether
# you returned the time that the clock gave. It does not matter how busy your machine is.


# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def check_shots(size, n):
    square = (size, size)
    seen = measure.timed(single_shots, size, n)
    once = measure.count(gemm, rl.randn(square, device=device), rl.randn(square, device=device))
    shots = seen.value
    assert isinstance(shots, list) and len(shots) == n, f"expected a list of {n} times, got {shots!r}"
    assert all(isinstance(ms, float) for ms in shots), "each time has to be a float, in ms"
    of_gemm = seen.calls_of(once)
    said = f"expected {n} timed calls of gemm on two matrices of shape {square}, got {len(of_gemm)}"
    assert len(of_gemm) == n, said + seen.beside(once)
    one_shot = all(call.warmup == 0 and len(call.samples_ms) == 1 for call in of_gemm)
    assert one_shot, "use latency_one_time: a single shot has no warm-up and one sample"
    taken = [call.median_ms for call in of_gemm]
    assert sorted(shots) == sorted(taken), f"the clock gave the times {taken} ms, single_shots returned {shots}"
    assert shots == taken, "keep the times in the order in which they were taken"


check_shots(12, 7)
### BEGIN HIDDEN TESTS
check_shots(measure.draw(5, 7), measure.draw(4, 6))
check_shots(measure.draw(8, 11), measure.draw(8, 10))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_spread_test", "grade": true, "points": 1}
def check_spread(samples, **expected):
    seen = measure.call(spread, samples)
    got = seen.value
    assert not seen.changed, "spread changed the list that it was given: sort a copy"
    said = f"spread has to return a dict with the keys {sorted(expected)}"
    assert isinstance(got, dict) and set(got) == set(expected), said
    for name, value in expected.items():
        assert is_near(got[name], value), f"spread({samples}): expected {name} = {value}, got {got[name]}"


check_spread([9.0, 2.0, 1.0, 3.0, 2.5, 1.5], first_over_median=4.0, median_ms=2.25, p20_ms=1.5, p80_ms=3.0)
check_spread([2.0, 4.0, 6.0], first_over_median=0.5, median_ms=4.0, p20_ms=2.8, p80_ms=5.2)
### BEGIN HIDDEN TESTS
check_spread([4.0, 4.0, 4.0], first_over_median=1.0, median_ms=4.0, p20_ms=4.0, p80_ms=4.0)
samples = measure.rng().uniform(1, 9, measure.draw(6, 15)).round(2).tolist()
p20, median, p80 = np.percentile(samples, [20, 50, 80])
check_spread(samples, first_over_median=samples[0] / median, median_ms=median, p20_ms=p20, p80_ms=p80)
### END HIDDEN TESTS

# %% [markdown]
# Now look at real times: those of your loops, and those of the library's product of the same matrices. How far is the
# first shot from the median? How much do the other shots differ from each other?

# %%
size, n = 64, 30
A, B = rl.randn(size, size, device=device), rl.randn(size, size, device=device)
shots = {
    "gemm (your loops)": single_shots(size, n),
    "rl.matmul": [float(latency_one_time(rl.matmul, A, B).samples_ms[0]) for _ in range(n)],
}
rows = []
for name, samples in shots.items():
    summary = spread(samples)
    figures = (summary["median_ms"], summary["p20_ms"], summary["p80_ms"], summary["first_over_median"])
    rows.append((name, *(f"{figure:.4g}" for figure in figures), f"{max(samples) / min(samples):.1f}"))
display(Table(("", "median ms", "p20 ms", "p80 ms", "first / median", "max / min"), rows))
rl.plots.plot_samples(shots, title=f"Single shots at {size}x{size}x{size}")

# %% [markdown]
# ### b) What does one shot tell you? ({points q1_2_choice_test})
#
# Choose the statement that your measurements support. In the cell below it, write a sentence or two about what you saw.
#
# - `"a"`: Its value is the median, because the same code on the same data always takes the same time.
# - `"b"`: It is the fastest that the hardware can go, because no other program was measured.
# - `"c"`: It is one sample of a distribution, and the first sample can be far from the median.
# - `"d"`: It is the time of the arithmetic alone, because waiting is not part of the work.

# %% nbgrader={"grade_id": "q1_2_choice", "solution": true}
one_shot_tells = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
one_shot_tells = "c"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q1_2_findings", "solution": true}
# *What I saw:*

# %% nbgrader={"grade_id": "q1_2_choice_test", "grade": true, "points": 1}
assert one_shot_tells in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    one_shot_tells,
    "c",
    a="Look at the spread that you printed: repeated runs of the same code take different times.",
    b="Look at the smallest of your samples: most shots are slower than that.",
    d="A clock also runs while the program waits. Why is a first shot slower, although its arithmetic is the same?",
)
### END HIDDEN TESTS

# %% [markdown]
# How do you measure so that the number means something? This is a timing loop in full. It has three parts that are easy
# to forget:
#
# 1. **Warm-up.** A first call wakes threads and allocates memory, and on a GPU it loads the kernel. So a few calls run
#    before the measurement.
# 2. **Synchronise.** A GPU works in the background. Without `rl.synchronize()` the clock would only see how long it
#    takes to *ask* for the work. On a CPU there is nothing to wait for.
# 3. **Repeat.** Every sample is kept, so that the spread is visible.


# %%
def timing_loop(fn, *args, warmup=10, repeat=100):
    """Samples of fn(*args) in ms."""
    for _ in range(warmup):
        fn(*args)
    rl.synchronize()
    samples_ms = []
    for _ in range(repeat):
        start = time.perf_counter()
        fn(*args)
        rl.synchronize()
        samples_ms.append((time.perf_counter() - start) * 1000)
    return samples_ms


samples_ms = timing_loop(rl.matmul, A, B)
print(f"timing_loop: median {np.median(samples_ms):.4f} ms")
print(f"latency:     {latency(rl.matmul, A, B)}")

# %% [markdown]
# From here on use `latency(fn, *args, warmup=10, repeat=100)`, which does the same. (On a GPU it puts a time stamp in
# front of each call and one behind it, so that the host's own work is not measured.) It returns a `Timing` with
# `.median_ms`, `.p20_ms`, `.p80_ms`, `.mean_ms`, `.std_ms` and `.samples_ms`. Report the median. One interrupted run
# can move a mean far, and it hardly moves a median.
#
# ### c) GEMM against GEMV ({points q1_2_gemv_test})
#
# How much longer does (size, size) x (size, size) take than (size, size) x (size, 1)? First predict it from the number
# of MACs, then measure it.
#
# - `predicted_ratio_at_64`: the MACs of the GEMM at size 64 divided by those of the GEMV
# - `gemm_and_gemv_ms(size)`: time your `gemm` on both pairs of matrices with `latency`, and return the two medians in
#   ms. Two or three warm-up runs and five repeats are enough, because these loops are slow.


# %% nbgrader={"grade_id": "q1_2_gemv", "solution": true}
def gemm_and_gemv_ms(size):
    """(gemm_ms, gemv_ms): medians of gemm on (size, size) times (size, size) and (size, 1)."""
    ### BEGIN SOLUTION
    A, B, b = (rl.randn(size, columns, device=device) for columns in (size, size, 1))
    gemm_ms = latency(gemm, A, B, warmup=2, repeat=5).median_ms
    return gemm_ms, latency(gemm, A, b, warmup=2, repeat=5).median_ms
    ### END SOLUTION


predicted_ratio_at_64 = None  # MACs of the GEMM at size 64 over MACs of the GEMV: a number
### BEGIN SOLUTION
predicted_ratio_at_64 = 64
### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_gemv_test", "grade": true, "points": 1} rooflab={"needs": ["q1_1"]}
def check_gemm_and_gemv(size):
    seen = measure.timed(gemm_and_gemv_ms, size)
    pair, A = seen.value, (size, size)
    assert isinstance(pair, (tuple, list)) and len(pair) == 2, f"expected two times, (gemm_ms, gemv_ms), got {pair!r}"
    for ms, name, B in ((pair[0], "GEMM", A), (pair[1], "GEMV", (size, 1))):
        assert isinstance(ms, float), f"the time of the {name} has to be a float in ms, got {ms!r}"
        once = measure.count(gemm, rl.randn(A, device=device), rl.randn(B, device=device))
        timed = seen.calls_of(once)
        assert timed, f"{name}: no timed call of gemm on matrices of shape {A} and {B}" + seen.beside(once)
        assert measure.is_median(ms, timed), f"{name}: {ms} is not the median_ms that latency returned"
        assert measure.is_steady(ms, timed), f"{name}: warm up, and take at least three samples"


check_gemm_and_gemv(10)
assert is_number(predicted_ratio_at_64), f"predicted_ratio_at_64 has to be a number, got {predicted_ratio_at_64!r}"
### BEGIN HIDDEN TESTS
assert is_near(predicted_ratio_at_64, 64), "count the MACs of both at size 64 again: what does each column cost?"
check_gemm_and_gemv(measure.draw(5, 9))
check_gemm_and_gemv(measure.draw(11, 14))
### END HIDDEN TESTS

# %% [markdown]
# ### d) Which sizes can you afford? ({points q1_2_budget_test})
#
# We want to compare `gemm` with the library at sizes 64, 128, 256 and 512. When the size doubles, the time of `gemm`
# grows by more than a factor of two. If you can predict the factor, you know *beforehand* which sizes fit in a time
# budget.
#
# Write `sizes_in_budget(sizes, first_ms, budget_s)`:
#
# - One run at the smallest size, `sizes[0]`, took `first_ms` milliseconds. Predict the time of each size from its work.
# - Go through `sizes` in ascending order. Stop before the predicted times of all sizes so far, one run each, add up to
#   more than `budget_s` seconds. A total of exactly `budget_s` is allowed.
# - Return two lists: the sizes to run, and the sizes that are left out.


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
    seen = measure.call(sizes_in_budget, sizes, first_ms, budget_s)
    got = seen.value
    assert not seen.changed, "sizes_in_budget changed the list that it was given: make new lists"
    assert isinstance(got, (tuple, list)) and len(got) == 2, f"expected two lists, (run, left_out), got {got!r}"
    expected = (run, sizes[len(run) :])
    case = f"sizes_in_budget({sizes}, first_ms={first_ms}, budget_s={budget_s})"
    said = f"{case}: expected {expected}, got {got}; add up the predicted times"
    assert (list(got[0]), list(got[1])) == expected, said


check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=2.0, run=[64, 128, 256])
check_budget([64, 128, 256, 512], first_ms=3.0, budget_s=0.002, run=[])
check_budget([20, 40, 60], first_ms=1.0, budget_s=0.03, run=[20, 40])
check_budget([20, 30, 50], first_ms=8.0, budget_s=0.04, run=[20, 30])  # 8 + 27 ms
check_budget([20, 30, 50], first_ms=8.0, budget_s=0.03, run=[20])
check_budget([10, 30], first_ms=2.0, budget_s=0.056, run=[10, 30])  # exactly the budget
### BEGIN HIDDEN TESTS
check_budget([40, 100, 120], first_ms=8.0, budget_s=0.1, run=[40])  # 8 + 125 ms
check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=9.0, run=[64, 128, 256, 512])  # 15 * 585 = 8775 ms
size, first_ms = measure.draw(10, 90), float(measure.draw(2, 30))
budget_s = first_ms * measure.draw(28, 35) / 1000  # in first runs: above 1 + 8 and above 27, below 1 + 8 + 27
check_budget([size, 2 * size, 3 * size, 4 * size], first_ms, budget_s, run=[size, 2 * size])
check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=0.01, run=[])
check_budget([64, 128, 256, 512], first_ms=15.0, budget_s=0.1, run=[64])
check_budget([64, 128], first_ms=100.0, budget_s=0.9, run=[64, 128])  # 900 ms of 900
check_budget([100, 150, 200], first_ms=8.0, budget_s=0.05, run=[100, 150])  # 8 + 27 + 64
check_budget([100, 150, 200], first_ms=8.0, budget_s=0.1, run=[100, 150, 200])
### END HIDDEN TESTS

# %% [markdown]
# Here is the comparison, within a budget. Both axes are logarithmic. On a linear axis the library's line would lie on
# the bottom.

# %%
budget_s = 4.0
sizes = [64, 128, 256, 512]
first_ms = latency_one_time(gemm, *(rl.randn(sizes[0], sizes[0], device=device) for _ in range(2))).median_ms
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
        print(f"N = {size}: gemm {gemm_times[-1]}, rl.matmul {library_times[-1]}: {ratio:,.0f} times faster")
plot_gemm_torch_matmul_latency(sizes, gemm_times, library_times)

# %%
plot_gemm_gemv_latency(sizes, gemm_times, gemv_times)

# %% [markdown]
# Compare the measured ratio of GEMM to GEMV with the one that you predicted. If it is smaller, that is because not all
# of the time is multiplication: both calls also convert the matrix to Python numbers. Costs beside the work itself
# matter most when there is little work. On a GPU the launch of a kernel will be one of them.
#
# The library does the same arithmetic hundreds or thousands of times faster. Is it fast, then, or only less slow? A
# clock alone cannot tell. We need to know how much work there is, and how fast this machine could do it.
