# %% [markdown]
# ## b1.1.3c Is a warm-up needed? ({points b1_1_3c})
#
# The first step of a process does more than later ones: it loads kernels, allocates memory and chooses algorithms. How
# much does that change the mean of ten measured steps?
#
# `warmup_study(new_process, input_ids, warmups, measure_steps)`: for each number w in the list `warmups`, run your
# `benchmark` in mode `"both"` with w warm-up steps. `new_process()` returns a model in a fresh process, in which
# nothing has run yet. Call it once for each w, because in a process that has already run a step there is no slow first
# step left to see. Return `{w: {"mean_ms": ..., "std_ms": ..., "first_ms": ..., "second_ms": ...}}`. The last two are
# the first two measured steps. The standard deviation has ddof 0.


# %% nbgrader={"grade_id": "b1_1_3c", "solution": true}
def warmup_study(new_process, input_ids, warmups, measure_steps):
    """{w: {"mean_ms", "std_ms", "first_ms", "second_ms"}}, with a fresh process for each w."""
    ### BEGIN SOLUTION
    rows = {}
    for w in warmups:
        samples_ms = 1e3 * np.array(benchmark(new_process(), input_ids, "both", w, measure_steps))
        mean_ms, std_ms = float(samples_ms.mean()), float(samples_ms.std())
        rows[w] = {"mean_ms": mean_ms, "std_ms": std_ms, "first_ms": samples_ms[0], "second_ms": samples_ms[1]}
    return rows
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_1_3c_test", "grade": true, "points": 3} rooflab={"needs": ["q1_1_3a"]}
def check_study(warmups, measure_steps, **times):
    times = {"work_ms": 25.0, "host_ms": 2.0, "slow_ms": [1500.0, 33.0], "jitter": 0.02, **times}
    times["seed"] = measure.draw(0, 2**30)
    ids = rl.zeros(2, 3, dtype="int64")
    seen = measure.faked(warmup_study, "<fresh model>", ids, warmups, measure_steps, device=times)
    assert isinstance(seen.value, dict), f"warmup_study has to return a dict, not a {type(seen.value).__name__}"
    assert list(seen.value) == list(warmups), f"expected the keys {warmups} in this order, got {list(seen.value)}"
    processes = lab2.by_process(seen.log)
    assert len(processes) == len(warmups), (
        f"call new_process once for each of the {len(warmups)} w; you called it {len(processes)} times"
    )
    forward, backward = len(seen.launches("forward")), len(seen.launches("backward"))
    assert forward == backward, f'"both" is forward and backward; {forward} and {backward} of them ran'
    for w, steps_ms in zip(warmups, processes, strict=True):
        name = f"warmup_study, w = {w}"
        assert len(steps_ms) == w + measure_steps, f"{name}: expected {w} + {measure_steps} steps, got {len(steps_ms)}"
        assert_keys(name, seen.value[w], ("mean_ms", "std_ms", "first_ms", "second_ms"))
        lab2.assert_study_row(name, seen.value[w], steps_ms[w:])


check_study([0, 1, 2, 5], 10)
### BEGIN HIDDEN TESTS
check_study([measure.draw(2, 5), 0], measure.draw(3, 6), work_ms=7.0, host_ms=0.4, slow_ms=[90.0, 20.0, 12.0])
check_study([1, 2], measure.draw(15, 25), slow_ms=[300.0])
### END HIDDEN TESTS

# %% [markdown]
# The left half of the table is your study on a fake device that behaves like W's GPU. The right half is what W
# published for the small model at L = 128.

# %%
w_like = {"work_ms": 25.6, "backward_ms": 50.6, "host_ms": 2.0, "slow_ms": [1499.3, 33.4], "jitter": 0.02, "seed": 1}
seen = measure.faked(warmup_study, "<fresh model>", ids, [0, 1, 2, 5], 10, device=w_like).value
rows = []
for w, row in seen.items():
    mean_ms, std_ms, first_ms, second_ms = lab2.W_WARMUP[w]
    rows.append((w, *(f"{row[key]:.1f}" for key in row), mean_ms, std_ms, first_ms, second_ms))
names = ("mean ms", "std ms", "first ms", "second ms")
head = ("w", *names, *(f"W: {name}" for name in names))
Table(head, rows, title="Ten measured steps after w warm-up steps, ddof 0")

# %% [markdown]
# ### What one outlier does ({points b1_1_3c_outlier_test b1_1_3c_first_test})
#
# Suppose that m samples are all equal to `rest_ms`, except the first, which is larger by e.
#
# - `outlier_effect(e_ms, m, ddof)`: a pair of ms. First, by how much the outlier raises the mean above `rest_ms`.
#   Second, the standard deviation of the samples. `ddof` is 0 or 1.
# - `undo_outlier(mean_ms, std_ms, m, ddof)`: the inverse. From the mean and the standard deviation of such samples
#   compute the pair (first sample, `rest_ms`).
#
# With the second function, a published mean and standard deviation tell you how long the first step took, even if
# nobody published it. For the forward pass of the small model without warm-up, R gives a mean of 66.8 ms and a standard
# deviation of 216.8 ms, with ddof 1. With warm-up R gives 10.9 ms.
#
# - `r_steps`: how many samples did R average, 10 or 15? Try both. With the wrong number, `rest_ms` is a time
#   that no forward pass can take.


# %% nbgrader={"grade_id": "b1_1_3c_outlier", "solution": true}
def outlier_effect(e_ms, m, ddof):
    """(what the outlier adds to the mean, the standard deviation), in ms."""
    ### BEGIN SOLUTION
    return e_ms / m, e_ms * ((m - 1) / m / (m - ddof)) ** 0.5
    ### END SOLUTION


def undo_outlier(mean_ms, std_ms, m, ddof):
    """(the first sample, each of the other samples), in ms."""
    ### BEGIN SOLUTION
    lift_ms, one_ms = outlier_effect(1.0, m, ddof)
    e_ms = std_ms / one_ms
    rest_ms = mean_ms - lift_ms * e_ms
    return rest_ms + e_ms, rest_ms
    ### END SOLUTION


r_steps = None  # 10 or 15
### BEGIN SOLUTION
r_steps = 15
### END SOLUTION

# %% nbgrader={"grade_id": "b1_1_3c_outlier_test", "grade": true, "points": 2}
mean_hint = "by how much does the sum of the samples grow, and how many are they?"
std_hint = "how far is each sample from the mean, and what does ddof change in the divisor?"
for e, m, ddof in [(1470.57, 10, 0), (100.0, 5, 1)]:
    got = outlier_effect(e, m, ddof)
    assert isinstance(got, (tuple, list)) and len(got) == 2, f"outlier_effect has to return two numbers, got {got!r}"
    samples = np.array([7.0 + e] + [7.0] * (m - 1))
    case = f"outlier_effect({e}, {m}, {ddof})"
    assert_near(f"{case}: the mean", got[0], samples.mean() - 7.0, 1e-6, mean_hint)
    assert_near(f"{case}: the standard deviation", got[1], samples.std(ddof=ddof), 1e-6, std_hint)
### BEGIN HIDDEN TESTS
drawn = [(measure.draw(5, 9000) / 10, measure.draw(3, 99), ddof) for ddof in (0, 1)]
for e, m, ddof in [(3.0, 2, 0), (3.0, 2, 1), (839.7, 15, 1), *drawn]:
    got, samples = outlier_effect(e, m, ddof), np.array([5.0 + e] + [5.0] * (m - 1))
    assert_near(f"outlier_effect({e}, {m}, {ddof}): the mean", got[0], samples.mean() - 5.0, 1e-6, mean_hint)
    right = samples.std(ddof=ddof)
    assert_near(f"outlier_effect({e}, {m}, {ddof}): the standard deviation", got[1], right, 1e-6, std_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_3c_first_test", "grade": true, "points": 3}
got = undo_outlier(226.39, 441.17, 10, 0)
assert isinstance(got, (tuple, list)) and len(got) == 2, f"undo_outlier has to return two numbers, got {got!r}"
undo_hint = "outlier_effect says what the outlier adds to both: solve it for e, and then for rest_ms"
assert_near("undo_outlier(226.39, 441.17, 10, 0): the first sample", got[0], 1549.9, 1e-3, undo_hint)
assert_near("undo_outlier(226.39, 441.17, 10, 0): the others", got[1], 79.33, 1e-3, undo_hint)
assert r_steps in (10, 15), f"r_steps has to be 10 or 15, got {r_steps!r}"
### BEGIN HIDDEN TESTS
rest = measure.draw(20, 900) / 10
drawn = [(rest + measure.draw(10, 900), rest, measure.draw(3, 40), ddof) for ddof in (0, 1)]
for first, rest, m, ddof in [(850.6, 10.8, 15, 1), (20.0, 19.0, 2, 0), *drawn]:
    samples = np.array([first] + [rest] * (m - 1))
    got = undo_outlier(samples.mean(), samples.std(ddof=ddof), m, ddof)
    assert_near(f"undo_outlier of m = {m}, ddof = {ddof}: the first sample", got[0], first, 1e-6, undo_hint)
    assert_near(f"undo_outlier of m = {m}, ddof = {ddof}: the others", got[1], rest, 1e-6, undo_hint)
assert r_steps == 15, "r_steps: apply undo_outlier to R's numbers, with m = 10 and with m = 15"
### END HIDDEN TESTS

# %%
rows = []
for label, m, ddof, (mean_ms, std_ms) in [
    ("W, both, w = 0", 10, 0, (226.39, 441.17)),
    ("R, forward, w = 0", 10, 1, (66.8, 216.8)),
    ("R, forward, w = 0", 15, 1, (66.8, 216.8)),
]:
    first_ms, rest_ms = undo_outlier(mean_ms, std_ms, m, ddof)
    rows.append((label, m, ddof, mean_ms, std_ms, f"{first_ms:.1f}", f"{rest_ms:.1f}"))
Table(
    ("", "m", "ddof", "mean ms", "std ms", "first ms", "others ms"),
    rows,
    title="The first sample, computed from a mean and its standard deviation",
)

# %% [markdown]
# One slow step out of ten made W's mean three times too large. The standard deviation reveals it: it is twice the mean,
# which is impossible for ten similar steps. After one warm-up step the numbers are nearly right, and after two they no
# longer change. Ask the same of every published mean: how many samples, which ddof, and was the first call among them?
# W's median would have been about 79 ms even without a warm-up.
