# %% [markdown]
# # Part 1. How long a training run takes
#
# ## 1.1 Days ({points q1_1})
#
# Training a dense model takes about 6 FLOPs for each parameter and token: 2 in the forward pass and 4 in the backward
# pass. The optional question b1.6 derives that. A GPU reaches only a share of its peak FLOP/s. This share is called
# *model FLOPs utilization* (MFU).
#
# - `training_days(params, tokens, gpus, peak, mfu)`: the days (of 24 hours) of a run. `peak` is in FLOP/s of one GPU,
#   and `mfu` is between 0 and 1.
# - `measured_mfu(params, tokens, gpus, peak, days)`: the MFU of a run that took `days` days
#
# **Which peak?** Datasheets print the 16-bit peak of an H100 as 1979 · 10¹² FLOP/s "with sparsity". That needs matrices
# in which half of the elements are zeros in a fixed pattern. Ordinary training has no such zeros. The dense peak is
# half of that figure. All peaks in `rl.roofline.SPECS` are dense.


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def training_days(params, tokens, gpus, peak, mfu):
    """Days to train a model with `params` parameters on `tokens` tokens."""
    ### BEGIN SOLUTION
    return 6 * params * tokens / (gpus * peak * mfu) / 86400
    ### END SOLUTION


def measured_mfu(params, tokens, gpus, peak, days):
    """The share of the peak of all GPUs that a run of `days` days reached, 0 to 1."""
    ### BEGIN SOLUTION
    return 6 * params * tokens / (gpus * peak * days * 86400)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 2}
days_hint = "how many FLOPs does the run take, and how many do all GPUs really do in a day?"
assert_values(training_days, {(1e9, 2e10, 8, 312e12, 0.5): 1.11289, (86400, 1000, 1, 6e3, 1.0): 1.0}, days_hint)
assert_values(training_days, {(86400, 1000, 2, 6e3, 0.25): 2.0}, days_hint)
### BEGIN HIDDEN TESTS
assert_values(training_days, {(70e9, 15e12, 1024, 1979e12 / 2, 0.5): 143.9304}, days_hint)
for P, D, G in draws((10**8, 10**12), (10**10, 10**13), (1, 20000)):
    assert_values(training_days, {(P, D, G, 989.4e12, 0.4): 6 * P * D / (G * 989.4e12 * 0.4 * 86400)}, days_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_mfu_test", "grade": true, "points": 1}
mfu_hint = "compare the FLOPs of the run with what all GPUs could do in that time"
assert_values(measured_mfu, {(86400, 1000, 1, 6e3, 2.0): 0.5, (1e9, 2e10, 8, 312e12, 1.11289): 0.5}, mfu_hint)
### BEGIN HIDDEN TESTS
for P, D, G in draws((10**8, 10**12), (10**10, 10**13), (1, 20000)):
    days = 6 * P * D / (G * 989.4e12 * 0.37 * 86400)
    assert_values(measured_mfu, {(P, D, G, 989.4e12, days): 0.37}, mfu_hint)
### END HIDDEN TESTS

# %%
peak = SPECS["H100"].peak_tflop_s["bfloat16"] * 1e12
rows = [
    (
        f"{mfu:.0%}",
        f"{training_days(70e9, 15e12, 1024, peak, mfu):.1f}",
        f"{training_days(70e9, 15e12, 1024, 2 * peak, mfu):.1f}",
    )
    for mfu in (1.0, 0.5, 0.4)
]
Table(("MFU", "days", "days with the sparse peak"), rows, title="70 billion parameters, 15 trillion tokens, 1024 H100")

# %% [markdown]
# If you use the peak with sparsity, you promise the result in half of the time that it takes. You do the same if you
# forget an MFU of 50%.
