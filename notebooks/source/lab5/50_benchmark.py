# %% [markdown]
# # Part 5. Measuring
#
# ## 5.1 A benchmark ({points q5_1})
#
# It is easy to measure the wrong thing on a GPU. A launch returns at once, long before its work is done. The first
# calls are slow, because something is compiled or loaded. And sometimes another program disturbs a call. A correct
# benchmark takes these steps:
#
# 1. Call `run()` `warmup` times without measuring.
# 2. Before each measurement, wait until the device has nothing left to do: `rl.synchronize()`.
# 3. Read the clock, call `run()`, wait until its work is done, and read the clock again. Do this `trials` times, one
#    call per measurement.
# 4. Report the median and the spread. A single disturbed sample can change a mean a lot, but not a median.
#
# Write one function:
#
# - `benchmark(run, warmup, trials)`: a dict with `"median_ms"`, `"p20_ms"` and `"p80_ms"`: the median and the 20th and
#   80th percentiles (`np.percentile`), in milliseconds. Use `time.perf_counter()`, which returns seconds.
#
# The tests run your function on a **fake device**. The test knows how long its work takes. All clocks of Python show
# *its* time, and `rl.synchronize()` waits for *its* work. So the test can tell a wrong measurement from a right one. On
# a real machine both look equally good.

# %% nbgrader={"grade_id": "q5_1", "solution": true}
import time


def benchmark(run, warmup, trials):
    """{"median_ms", "p20_ms", "p80_ms"} of `trials` measured calls of run(), after `warmup` calls."""
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
    said = f"benchmark(run, {warmup}, {trials})"
    assert keys, f"{said} must return a dict with the keys median_ms, p20_ms and p80_ms, got {got!r}"
    number = len(launched)
    calls = f"expected {warmup + trials}: {warmup} to warm up, and one for each of {trials} trials"
    assert number == warmup + trials, f"{said} called run() {number} times, {calls}"
    samples = [entry.work_ms for entry in launched[warmup:]]
    expected = dict(zip(("p20_ms", "median_ms", "p80_ms"), np.percentile(samples, [20, 50, 80]), strict=True))
    for key in expected:
        assert is_number(got[key]), f"{said}: {key} must be a number, got {got[key]!r}"
    allowed = {key: 0.002 * right + 0.001 for key, right in expected.items()}
    wrong = [key for key, right in expected.items() if not is_near(got[key], right, 0, absolute=allowed[key])]
    for key in wrong:
        right = expected[key]
        what = f"{said} returned {key} = {got[key]}, expected {right:.4g}"
        what += f" (its trials took {min(samples):.3g} to {max(samples):.3g} ms)"
        hint = "do you wait for the device before you read the clock, at the start and at the end of each trial?"
        if wrong == ["median_ms"]:
            hint = "the two percentiles are right, so is this the median of the trials?"
        elif any(is_near(got[key], factor * right, 0.1) for factor in (1e-3, 1e3, 1e6)):
            hint = "is it in milliseconds?"
        raise AssertionError(f"{what}: {hint}")


# The trials lie evenly around their middle, so their mean is also their median: q5_1_outlier_test tells the two apart.
steady = {"work_ms": 5.0, "host_ms": 0.5}
check_benchmark(2, 9, **steady)
check_benchmark(2, 5, **steady, slow_ms=[90.0, 40.0, 4.0, 5.6, 6.0, 4.4])
check_benchmark(3, 1, work_ms=20.0, host_ms=0.1, slow_ms=[300.0])
### BEGIN HIDDEN TESTS
for warmup, pairs, work_ms in [(1, measure.draw(4, 9), 0.25), (0, measure.draw(2, 4), measure.draw(20, 90) / 10)]:
    shares = [1 + sign * pair / (4 * pairs) for pair in range(1, pairs + 1) for sign in (1, -1)]
    slow_ms = [75.0] * warmup + [share * work_ms for share in measure.rng().permutation(shares).tolist()]
    check_benchmark(warmup, 2 * pairs + 1, work_ms=work_ms, host_ms=0.01, slow_ms=slow_ms)
check_benchmark(4, 2, work_ms=float(measure.draw(20, 70)), host_ms=1.0, slow_ms=[900.0, 100.0, 90.0, 80.0])
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_outlier_test", "grade": true, "points": 2}
check_benchmark(1, 6, **steady, slow_ms=[70.0, 5.0, 4.0, 200.0, 6.0])
check_benchmark(1, 4, **steady, slow_ms=[70.0, 16.0, 2.0, 8.0, 4.0])  # the median lies between 4 and 8
check_benchmark(2, 11, **steady, slow_ms=[70.0, 30.0, 5.5, 99.0, 4.5, 88.0])
### BEGIN HIDDEN TESTS
work_ms = float(measure.draw(1, 9))
slow_ms = [share * work_ms for share in (500.0, 2.0, 1.1, 0.9, 333.0, 1.2)]
check_benchmark(2, measure.draw(5, 9), work_ms=work_ms, host_ms=0.01, slow_ms=slow_ms)
check_benchmark(0, measure.draw(6, 10), work_ms=2.0, host_ms=0.01, slow_ms=[1.5, 50.0, 2.5])
### END HIDDEN TESTS

# %%
a, b = rl.randn(256, 256, device=device), rl.randn(256, 256, device=device)
found = benchmark(lambda: rl.matmul(a, b), 5, 50)
print("mine:      ", {key: round(ms, 4) for key, ms in found.items()})
print("rl.latency:", latency(rl.matmul, a, b, warmup=5, repeat=50))

# %% [markdown]
# The two should agree within their spread. `rl.latency` does the same as your function, and you can use it from here
# on. (The set-up cell imports it as `latency`.)
