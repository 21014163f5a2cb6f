# %% [markdown]
# # Part 5. Measuring
#
# ## 5.1 A benchmark ({points q5_1})
#
# A launch on a GPU returns at once, long before its work is done. The first calls are slow, because something is
# compiled or loaded. And now and then something else disturbs a call. A benchmark has to be right all the same:
#
# 1. Call `run()` `warmup` times, and throw these calls away.
# 2. Before the clock starts, wait until nothing is left to do: `rl.synchronize()`.
# 3. Call `run()`, wait until its work is done, and read the clock. Do that `trials` times, each time by itself.
# 4. Report the median, and how far the samples spread. A mean would let one disturbed sample spoil all others.
#
# - `benchmark(run, warmup, trials)`: a dict with `"median_ms"`, `"p20_ms"` and `"p80_ms"`, the 20th and 80th
#   percentiles (`np.percentile`), in milliseconds. `time.perf_counter()` is a clock, and it shows seconds
#
# The tests run it on a **fake device**. Its work takes a time that the test knows, all clocks of Python show *its*
# time, and `rl.synchronize()` waits for *its* work. So a wrong measurement, which looks as good as a right one on a
# real machine, shows itself.

# %% nbgrader={"grade_id": "q5_1", "solution": true}
import time


def benchmark(run, warmup, trials):
    """{"median_ms", "p20_ms", "p80_ms"} of so many trials of run(), after so many calls to warm up."""
    ### BEGIN SOLUTION
    for _ in range(warmup):
        run()
    samples_ms = []
    for _ in range(trials):
        rl.synchronize()
        start = time.perf_counter()
        run()
        rl.synchronize()
        samples_ms.append((time.perf_counter() - start) * 1e3)
    p20, median, p80 = (float(one) for one in np.percentile(samples_ms, [20, 50, 80]))
    return {"median_ms": median, "p20_ms": p20, "p80_ms": p80}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_1_test", "grade": true, "points": 2}
def check_benchmark(warmup, trials, **timing):
    seen = measure.faked(benchmark, "<run>", warmup, trials, device=timing)
    got, launched = seen.value, seen.launches()
    keys = isinstance(got, dict) and set(got) == {"median_ms", "p20_ms", "p80_ms"}
    assert keys, "return a dict with the keys median_ms, p20_ms and p80_ms"
    said = f"benchmark(run, {warmup}, {trials})"
    number = len(launched)
    assert number == warmup + trials, f"{said} called run {number} times: warm up, and then one call for each trial"
    samples = [entry.work_ms for entry in launched[warmup:]]
    for key, right in zip(("p20_ms", "median_ms", "p80_ms"), np.percentile(samples, [20, 50, 80]), strict=True):
        assert is_number(got[key]), f"{key} is a number, and not {got[key]!r}"
        spread = f"{min(samples):.3g} to {max(samples):.3g} ms of work in its trials"
        what = f"{said}, with {spread}, gave {key} = {got[key]:.4g}"
        assert abs(got[key] - right) <= 0.002 * right + 0.001, (
            f"{what}. When does the clock start, and what does it wait for?"
        )


steady = {"work_ms": 5.0, "host_ms": 0.5}
check_benchmark(2, 9, **steady)
check_benchmark(2, 9, **steady, slow_ms=[90.0, 40.0], jitter=0.2, seed=1)
check_benchmark(3, 1, work_ms=20.0, host_ms=0.1, slow_ms=[300.0])
### BEGIN HIDDEN TESTS
check_benchmark(1, 15, work_ms=0.25, host_ms=0.01, slow_ms=[75.0], jitter=0.3, seed=2)
check_benchmark(4, 2, work_ms=60.0, host_ms=1.0, slow_ms=[900.0, 100.0, 90.0, 80.0])
check_benchmark(0, 7, work_ms=3.0, host_ms=0.2, jitter=0.1, seed=3)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_outlier_test", "grade": true, "points": 2}
check_benchmark(1, 6, **steady, slow_ms=[70.0, 5.0, 4.0, 200.0, 6.0])
check_benchmark(2, 11, **steady, slow_ms=[70.0, 30.0, 5.5, 99.0, 4.5, 88.0])
### BEGIN HIDDEN TESTS
check_benchmark(2, 5, work_ms=1.0, host_ms=0.01, slow_ms=[500.0, 2.0, 1.1, 0.9, 333.0, 1.2])
check_benchmark(0, 8, work_ms=2.0, host_ms=0.01, slow_ms=[1.5, 50.0, 2.5])
### END HIDDEN TESTS

# %%
a, b = rl.randn(256, 256, device=device), rl.randn(256, 256, device=device)
found = benchmark(lambda: rl.matmul(a, b), 5, 50)
print("mine:  ", {key: round(ms, 4) for key, ms in found.items()})
print("theirs:", latency(rl.matmul, a, b, warmup=5, repeat=50))

# %% [markdown]
# `rl.latency` does the same, and you may use it from here on.
