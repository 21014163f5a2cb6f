# %% [markdown]
# ## 5.3 What a small model waits for ({points q5_3})
#
# Take a small network: `layers` linear layers of `dim` x `dim` without biases, each followed by GeLU, on a batch of
# `batch` rows. One step is a forward pass, the mean of the result as a loss, and a backward pass. The data needs no
# gradient. The base case is dim = 256, layers = 4, batch = 256 and 2 steps.
#
# - `mlp_flops(dim, layers, batch, steps)`: the FLOPs of the products, forward and backward. Only the first layer's
#   input needs no gradient


# %% nbgrader={"grade_id": "q5_3", "solution": true}
def mlp_flops(dim, layers, batch, steps):
    """FLOPs of the products of the MLP, forward and backward: an int."""
    ### BEGIN SOLUTION
    return 2 * batch * dim**2 * (3 * layers - 1) * steps
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_3_test", "grade": true, "points": 2}
flops_hint = "a product forward, one for the gradient of the weights, one for that of the input, where it is needed"
assert_counts(mlp_flops, {(8, 1, 3, 1): 768, (8, 2, 3, 1): 1920, (4, 3, 1, 5): 1280}, flops_hint)
### BEGIN HIDDEN TESTS
assert_counts(mlp_flops, {(256, 4, 256, 2): 738197504}, flops_hint)
for dim, layers, batch, steps in draws(53, (1, 10**5), (1, 100), (1, 10**5), (1, 100)):
    assert_counts(mlp_flops, {(dim, layers, batch, steps): (6 * layers - 2) * batch * dim * dim * steps}, flops_hint)
for case in [(3, 2, 5, 2), (7, 4, 2, 3)]:
    assert_counts(mlp_flops, {case: 2 * mlp_counts(*case).macs}, flops_hint)
### END HIDDEN TESTS

# %% [markdown]
# `mlp_counts(dim, layers, batch, steps)` runs the network on tensors without memory and gives the counters:
# `.launches`, `.macs`, `.flops` ... Count, and find the rule:
#
# - `mlp_launches(layers, steps)`: the launches of the network, for any number of layers and steps. It is a straight
#   line in each of the two, so a few counts are enough. Take sizes above 1: a single number needs no copies

# %%
base = {"dim": 256, "layers": 4, "batch": 256, "steps": 2}
rows = []
for size in base:
    for factor in (1, 2, 3):
        c = mlp_counts(**base | {size: base[size] * factor})
        rows.append((size if factor == 1 else "", f"x {factor}", c.launches, f"{c.macs:,}", f"{c.flops:,}"))
Table(
    ("grows", "", "launches", "MACs", "FLOPs"),
    rows,
    title="dim = 256, layers = 4, batch = 256, 2 steps, and one size grows",
)


# %% nbgrader={"grade_id": "q5_3_launches", "solution": true}
def mlp_launches(layers, steps):
    """Launches of the MLP as mlp_counts counts them: an int."""
    ### BEGIN SOLUTION
    one, two = (mlp_counts(8, number, 4, 1).launches for number in (1, 2))
    return steps * (one + (layers - 1) * (two - one))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_3_launches_test", "grade": true, "points": 1}
line_hint = "count a step with one layer and one with two: what does a further layer add?"
assert_counts(mlp_launches, {(n, s): mlp_counts(8, n, 4, s).launches for n, s in [(1, 1), (4, 2), (2, 5)]}, line_hint)
### BEGIN HIDDEN TESTS
assert_counts(mlp_launches, {(n, s): mlp_counts(16, n, 2, s).launches for n, s in [(3, 1), (7, 3), (20, 2)]}, line_hint)
### END HIDDEN TESTS

# %% [markdown]
# Here is what was published for an A100 in fp32, as times the base case of 2.11 ms. Beside it stand FLOPs and launches
# by your functions, and the times of this machine:


# %%
def mlp_ms(dim, layers, batch, steps):
    return latency(lambda: mlp_run(dim, layers, batch, steps, device), warmup=1, repeat=5).median_ms


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
head = ("", "FLOPs", "launches", "ms, A100", "ms, this machine")
Table(head, rows, title=f"As times the base case: 2.11 ms on an A100, {here_ms:.2f} ms on {lab5.machine_name(device)}")

# %% [markdown]
# Which of the two columns does the A100 follow, FLOPs or launches? And this machine?
#
# - `peak_share`: the share (0 to 1) of the 2.11 ms that the FLOPs of the base case would take at 19.5 TFLOP/s
# - `largest_free(ms, which, peak_tflop_s)`: how large can `"dim"` or `"batch"` become, with all other sizes as in the
#   base case, until its FLOPs take longer than `ms` at the peak? The largest such `int`
# - `what_binds`: why did the time of the A100 stay the same when dim grew by 5? Choose a letter.
#     - `"a"`: The GPU worked on more numbers in parallel, so more work cost nothing.
#     - `"b"`: Its tensor cores took over, because the matrices had become large enough for them.
#     - `"c"`: It waited for launches, and their number had not changed.
#     - `"d"`: The matrices stayed in its cache, and what is in the cache costs no time at all.

# %% nbgrader={"grade_id": "q5_3_bound", "solution": true}
peak_share = None
what_binds = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
peak_share = 2 * 256**3 * 11 * 2 / 19.5e12 / 2.11e-3
what_binds = "c"
### END SOLUTION


def largest_free(ms, which, peak_tflop_s):
    """The largest dim or batch whose FLOPs take at most ms at the peak: an int."""
    ### BEGIN SOLUTION
    flops = ms * 1e-3 * peak_tflop_s * 1e12
    if which == "dim":
        return int((flops / (2 * 256 * 11 * 2)) ** 0.5)
    return int(flops / (2 * 256**2 * 11 * 2))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_3_free_test", "grade": true, "points": 1}
assert is_number(peak_share) and 0 < peak_share < 1, "peak_share lies between 0 and 1"
free_hint = "set the FLOPs of the network over the peak equal to the time; dim counts squared, batch does not"
assert_counts(largest_free, {(1.0, "batch", 10.0): 3467, (1.0, "dim", 10.0): 942, (4.0, "dim", 10.0): 1884}, free_hint)
### BEGIN HIDDEN TESTS
assert is_near(peak_share, 0.01794, 5e-3), "peak_share: FLOPs over 19.5e12, in ms, over 2.11"
assert_counts(largest_free, {(2.11, "dim", 19.5): 1911, (2.11, "batch", 19.5): 14268}, free_hint)
assert_counts(largest_free, {(7.0, "dim", 66.9): 6447, (0.5, "batch", 8.1): 1404}, free_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_3_choice_test", "grade": true, "points": 1}
assert what_binds in tuple("abcd"), "what_binds: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    what_binds,
    "c",
    a="It had done the smaller work at 2 % of its peak. Which column of the table did its time follow?",
    b="All of it was fp32, and the time was flat from the first step on. Which column of the table did it follow?",
    d="Compare 2.11 ms with what the FLOPs take at the peak. What else could take that time?",
)
### END HIDDEN TESTS

# %% [markdown]
# Two per cent of the peak: the GPU waits for the host to launch its kernels. Until then a larger dim or batch is free,
# not because the GPU is parallel, but because it was idle. A processor has almost no cost of launching, so its time
# follows the FLOPs. Graphs and compilation exist for the other case.
