# %% [markdown]
# ## 5.3 What limits a small model ({points q5_3})
#
# Take a small network: `layers` linear layers of `dim` x `dim` without biases, each followed by GeLU, on a batch of
# `batch` rows. One step is a forward pass, the mean of the result as a loss, and a backward pass. The input data needs
# no gradient. The base case has dim = 256, layers = 4, batch = 256 and 2 steps.
#
# - `mlp_flops(dim, layers, batch, steps)`: a formula for the FLOPs of the matrix products, forward and backward. All
#   layers need the gradient of their weights. All but the first also need the gradient of their input.


# %% nbgrader={"grade_id": "q5_3", "solution": true}
def mlp_flops(dim, layers, batch, steps):
    """FLOPs of the products of the MLP, forward and backward: an int."""
    ### BEGIN SOLUTION
    return 2 * batch * dim**2 * (3 * layers - 1) * steps
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_3_test", "grade": true, "points": 2}
flops_hint = "which products does a layer run forward and backward, and which of them does the first layer not need?"
assert_counts(mlp_flops, {(8, 1, 3, 1): 768, (8, 2, 3, 1): 1920, (4, 3, 1, 5): 1280}, flops_hint)
### BEGIN HIDDEN TESTS
assert_counts(mlp_flops, {(256, 4, 256, 2): 738197504}, flops_hint)
for dim, layers, batch, steps in draws((10**10, 10**11), (1, 100), (1, 10**5), (1, 100)):  # too large to be counted
    assert_counts(mlp_flops, {(dim, layers, batch, steps): (6 * layers - 2) * batch * dim * dim * steps}, flops_hint)
for case in draws((2, 9), (1, 5), (2, 9), (1, 4), count=2):
    assert_counts(mlp_flops, {case: 2 * mlp_counts(*case).macs}, flops_hint)
### END HIDDEN TESTS

# %% [markdown]
# `mlp_counts(dim, layers, batch, steps)` runs the network on tensors without memory and returns the counters:
# `.launches`, `.macs`, `.flops` and so on. Use it to find a rule:
#
# - `mlp_launches(layers, steps)`: the launches of the network, for any number of layers and steps. The launches are a
#   linear function of the layers and proportional to the steps, so a few counts are enough. Use a dim and a batch above
#   1 for them: with size 1 some copies are not needed.

# %% tags=["setup"]
base = {"dim": 256, "layers": 4, "batch": 256, "steps": 2}

# %%
rows = []
for size in base:
    for factor in (1, 2, 3):
        c = mlp_counts(**base | {size: base[size] * factor})
        rows.append((size if factor == 1 else "", f"x {factor}", c.launches, f"{c.macs:,}", f"{c.flops:,}"))
Table(
    ("grows", "", "launches", "MACs", "FLOPs"),
    rows,
    title="Base case dim = 256, layers = 4, batch = 256, 2 steps; one size grows",
)


# %% nbgrader={"grade_id": "q5_3_launches", "solution": true}
def mlp_launches(layers, steps):
    """Launches of the MLP as mlp_counts counts them: an int."""
    ### BEGIN SOLUTION
    one, two = (mlp_counts(8, number, 4, 1).launches for number in (1, 2))
    return steps * (one + (layers - 1) * (two - one))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_3_launches_test", "grade": true, "points": 1}
line_hint = "how many launches does each further layer add?"
assert_counts(mlp_launches, {(1, 1): 8, (4, 2): 46, (2, 5): 65}, line_hint, may_count=True)
### BEGIN HIDDEN TESTS
cases = [(measure.draw(3, 5), 1), (measure.draw(6, 9), 3), (measure.draw(10, 20), 2), *draws((1, 30), (4, 30), count=3)]
counts = {(n, s): mlp_counts(16, n, 2, s).launches for n, s in cases}
assert_counts(mlp_launches, counts, line_hint, may_count=True)
### END HIDDEN TESTS

# %% [markdown]
# The next table shows the published times of an A100 in fp32, divided by the 2.11 ms of the base case. Beside them are
# FLOPs and launches by your functions, and the times of your machine, all relative to the base case:


# %%
def mlp_ms(dim, layers, batch, steps):
    return latency(mlp_runner(dim, layers, batch, steps, device), warmup=1, repeat=5).median_ms


rows, here_ms = [], mlp_ms(**base)
for size in ("steps", "layers", "batch", "dim"):
    for factor in (2, 5):
        grown = base | {size: base[size] * factor}
        flops = mlp_flops(**grown) / mlp_flops(**base)
        launches = mlp_launches(grown["layers"], grown["steps"]) / mlp_launches(4, 2)
        published = lab5.PUBLISHED_MLP[size][factor - 1] / 2.11
        rows.append(
            (
                f"{size} x {factor}",
                f"{flops:.2f}",
                f"{launches:.2f}",
                f"{published:.2f}",
                f"{mlp_ms(**grown) / here_ms:.2f}",
            )
        )
head = ("", "FLOPs", "launches", "time, A100", "time, this machine")
base_ms = f"2.11 ms on an A100, {here_ms:.2f} ms on {lab5.machine_name(device)}"
Table(head, rows, title=f"Relative to the base case: {base_ms}")

# %% [markdown]
# Which column do the times of the A100 follow, FLOPs or launches? And those of your machine?
#
# - `peak_share`: the time that the FLOPs of the base case would take at your `right_peak` of 5.2, as a share of the
#   2.11 ms (0 to 1)
# - `largest_free(ms, which, peak_tflop_s)`: the largest size for which the FLOPs take at most `ms` at the peak. `which`
#   is `"dim"` or `"batch"`, and all other sizes are those of the base case, the dict `base`. Return an `int`.
# - `what_binds`: why did the time of the A100 stay the same when dim grew by a factor of 5? Choose a letter.
#     - `"a"`: The GPU worked on more numbers in parallel, so more work cost nothing.
#     - `"b"`: Its tensor cores took over, because the matrices had become large enough for them.
#     - `"c"`: It waited for launches, and their number had not changed.
#     - `"d"`: The matrices stayed in its cache, and what is in the cache costs no time at all.


# %% nbgrader={"grade_id": "q5_3_bound", "solution": true}
def largest_free(ms, which, peak_tflop_s):
    """The largest dim or batch whose FLOPs take at most ms at the peak: an int."""
    ### BEGIN SOLUTION
    flops = ms * 1e-3 * peak_tflop_s * 1e12
    if which == "dim":
        return int((flops / (2 * 256 * 11 * 2)) ** 0.5)
    return int(flops / (2 * 256**2 * 11 * 2))
    ### END SOLUTION


peak_share = None
what_binds = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
peak_share = 2 * 256**3 * 11 * 2 / 19.5e12 / 2.11e-3
what_binds = "c"
### END SOLUTION

# %% nbgrader={"grade_id": "q5_3_free_test", "grade": true, "points": 1}
assert is_number(peak_share) and 0 < peak_share < 1, f"peak_share must be a number between 0 and 1, got {peak_share!r}"
free_hint = "how do the FLOPs of mlp_flops grow with this size?"
assert_counts(largest_free, {(1.0, "batch", 10.0): 3467, (1.0, "dim", 10.0): 942, (4.0, "dim", 10.0): 1884}, free_hint)
### BEGIN HIDDEN TESTS
share_hint = "how many seconds would the FLOPs of the base case take at that peak?"
assert_near("peak_share", peak_share, 0.01794, 5e-3, share_hint)
assert_counts(largest_free, {(2.11, "dim", 19.5): 1911, (2.11, "batch", 19.5): 14268}, free_hint)
peak, dim, batch = measure.draw(50, 900) / 10, measure.draw(20001, 10**5), measure.draw(20001, 10**5)
# The FLOPs of half a row or column more: rounded down, the size is a whole number again.
dim_ms, batch_ms = (flops / (peak * 1e9) for flops in (44 * 256 * (dim + 0.5) ** 2, 44 * 256**2 * (batch + 0.5)))
assert_counts(largest_free, {(dim_ms, "dim", peak): dim, (batch_ms, "batch", peak): batch}, free_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_3_choice_test", "grade": true, "points": 1}
assert what_binds in tuple("abcd"), f'what_binds must be "a", "b", "c" or "d", got {what_binds!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    what_binds,
    "c",
    a="It ran the base case at 2 % of its peak. Which column of the table do its times follow?",
    b="All of it was fp32 without tf32, and the time is flat from factor 2 on. Which column do the times follow?",
    d="Compare 2.11 ms with the time that the FLOPs take at the peak. What else takes the time?",
)
### END HIDDEN TESTS

# %% [markdown]
# Compare your `peak_share` with the sizes of `largest_free`, up to which a larger dim or batch costs the A100 no time.
# On a CPU a launch takes very little time, so its times follow the FLOPs. CUDA graphs and compilation help where
# launches are the limit.
