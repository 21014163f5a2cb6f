# %% [markdown]
# ## 5.2 Products of matrices ({points q5_2})
#
# - `tflops(N, ms)`: the TFLOP/s (10¹²) of an N x N product that took so many milliseconds
# - `product_times(sizes, budget_ms)`: a dict from N to the median latency in ms (a float) of `rl.matmul` on two N x N
#   matrices in fp32. Take the sizes in their order. Doubling N means 8 times the FLOPs, so *predict* each time from the
#   one before, and stop before the first size whose predicted time is larger than `budget_ms`. The first size is always
#   measured


# %% nbgrader={"grade_id": "q5_2", "solution": true}
def tflops(N, ms):
    """TFLOP/s of an N x N product that takes so many ms."""
    ### BEGIN SOLUTION
    return 2 * N**3 / (ms * 1e-3) / 1e12
    ### END SOLUTION


def product_times(sizes, budget_ms):
    """{N: median ms of rl.matmul in fp32}, as long as the predicted time is within the budget."""
    ### BEGIN SOLUTION
    times, before = {}, None
    for N in sizes:
        if before is not None and times[before] * (N / before) ** 3 > budget_ms:
            break
        a, b = rl.randn(N, N, device=device), rl.randn(N, N, device=device)
        times[N] = latency(rl.matmul, a, b, warmup=3, repeat=10).median_ms
        before = N
    return times
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_2_test", "grade": true, "points": 1}
tflops_hint = "2 N³ FLOPs, over seconds, over 10¹²"
assert_values(tflops, {(1000, 2.0): 1.0, (100, 1.0): 0.002, (1000, 1.0): 2.0}, tflops_hint)
### BEGIN HIDDEN TESTS
cases = {(N, ms): 2 * N**3 / ms / 1e9 for N, (ms, _) in lab5.PUBLISHED_MATMUL.items()}
assert_values(tflops, cases, tflops_hint)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_2_times_test", "grade": true, "points": 1}
def check_times(sizes, budget_ms, measured):
    seen = measure.timed(product_times, sizes, budget_ms)
    times, case = seen.value, f"product_times({sizes}, {budget_ms})"
    assert isinstance(times, dict), f"{case}: return a dict"
    assert list(times) == measured, f"{case} measured {list(times)}: which sizes are predicted to fit?"
    for N, ms in times.items():
        of_size = [call for call in seen.calls if call.macs == N**3 and "matmul" in call.by_op]
        assert of_size, f"{case}: time rl.matmul on two {N} x {N} matrices with latency"
        assert measure.is_median(ms, of_size), f"{case}: the entry of {N} is not the median that latency gave, in ms"


check_times([8, 16, 32], 1e12, [8, 16, 32])
check_times([8, 16, 32], 1e-12, [8])
check_times([24, 12], 1e12, [24, 12])
### BEGIN HIDDEN TESTS
check_times([10, 20, 40, 80], 1e12, [10, 20, 40, 80])
check_times([16], 0.0, [16])
### END HIDDEN TESTS

# %%
own = product_times([2**power for power in range(8, 15)], budget_ms=300 if device == "cpu" else 2000)
rows = []
for N in sorted({*own, *lab5.PUBLISHED_MATMUL}):
    here = (f"{own[N]:.2f}", f"{tflops(N, own[N]):.3f}") if N in own else ("", "")
    there = lab5.PUBLISHED_MATMUL.get(N)
    published = (
        (f"{there[0]:.2f}", f"{tflops(N, there[0]):.2f}", f"{tflops(N, there[0]) / 19.5:.1%}")
        if there
        else ("", "", "")
    )
    rows.append((N, *here, *published))
head = ("N", "ms here", "TFLOP/s here", "ms, A100", "TFLOP/s, A100", "of 19.5")
Table(head, rows, title=f"N x N products in fp32, here: {lab5.machine_name(device)}")

# %% [markdown]
# The published numbers are of fp32 on an A100-SXM4-40GB (`SPECS["A100 SXM 40GB"]`) without tf32. Answer for them:
#
# - `right_peak`: the peak in TFLOP/s that they have to be compared with
# - `expected_growth`: by which factor the time of a large product grows when N doubles
# - `product_bound`: is the product with N = 1024 bound by `"memory"` or `"compute"`? Each matrix is moved once
# - `waves_1024` and `efficiency_1024`: its kernel had tiles of 128 x 64. How many waves on 108 SMs, and with which
#   efficiency (0 to 1)?

# %% nbgrader={"grade_id": "q5_2_values", "solution": true}
right_peak = None  # TFLOP/s
expected_growth = None
product_bound = None  # "memory" or "compute"
waves_1024 = None
efficiency_1024 = None
### BEGIN SOLUTION
right_peak, expected_growth, product_bound = 19.5, 8, "compute"
waves_1024, efficiency_1024 = 2, 128 / 216
### END SOLUTION

# %% nbgrader={"grade_id": "q5_2_values_test", "grade": true, "points": 1}
assert is_number(right_peak) and is_number(expected_growth), "right_peak and expected_growth are numbers"
assert product_bound in ("memory", "compute"), 'product_bound: "memory" or "compute"'
assert is_count(waves_1024) and is_number(efficiency_1024), "waves_1024 is an int, efficiency_1024 a number"
assert 0 < efficiency_1024 <= 1, "efficiency_1024 lies between 0 and 1"
### BEGIN HIDDEN TESTS
assert is_near(right_peak, 19.5, 1e-3), "right_peak: which units compute in exact fp32, and what is their dense peak?"
assert is_near(expected_growth, 8, 1e-3), "expected_growth: how do 2 N³ FLOPs grow?"
assert product_bound == "compute", "product_bound: compare the intensity N/6 with the ridge in fp32"
assert waves_1024 == 2, "waves_1024: how many tiles of 128 x 64 cover the result, and how many run at once?"
assert is_near(efficiency_1024, 0.592593, 1e-3), "efficiency_1024: tiles over the places in all waves"
### END HIDDEN TESTS

# %% [markdown]
# So 50 % at N = 1024 is no mystery: it is compute-bound, but its second wave is nearly empty, and 59 % is the most that
# its tiles allow. Against 312 TFLOP/s, the peak that is printed in larger letters, the same product would look like
# 3 %. That peak belongs to other units and to shorter numbers.
#
# And a matrix that is mostly zeros? The CSR format stores its other numbers with their columns: 4 bytes and 4 bytes in
# fp32, for 2 FLOPs. So a product with a vector does at most a quarter of a FLOP for each byte. However few zeros are
# multiplied, it waits for memory on every machine of Part 2. Here both are, for the A100:

# %%
N, stored = 16384, 164  # numbers in a row, 1 % of them not zero
csr_intensity = 2 * N * stored / (8 * N * stored + 4 * (N + 1) + 4 * 2 * N)
points = [
    rl.roofline.Point(f"dense, N = {size}", size / 6, tflops(size, ms), series="product, published")
    for size, (ms, _) in lab5.PUBLISHED_MATMUL.items()
]
points.append(rl.roofline.Point("CSR times a vector", csr_intensity, series="1 % of the numbers"))
rl.plots.plot_roofline(SPECS["A100 SXM 40GB"], points, dtype="float32", title="Dense products and a sparse one, fp32")
