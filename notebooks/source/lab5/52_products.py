# %% [markdown]
# ## 5.2 Matrix products ({points q5_2})
#
# - `tflops(N, ms)`: the TFLOP/s (10¹² FLOP/s) of an N x N product that took `ms` milliseconds
# - `product_times(sizes, budget_ms)`: a dict from N to the median time in ms (a float) of `rl.matmul` on two N x N
#   matrices in fp32, measured with `latency`. Go through the sizes in order. *Predict* the time of each size from the
#   time of the size just before it, by the ratio of the FLOPs. Stop before the first size with a predicted time above
#   `budget_ms`. Always measure the first size. Warm up, and take at least three samples of each.


# %% nbgrader={"grade_id": "q5_2", "solution": true}
def tflops(N, ms):
    """TFLOP/s of an N x N product that takes `ms` milliseconds."""
    ### BEGIN SOLUTION
    return 2 * N**3 / (ms * 1e-3) / 1e12
    ### END SOLUTION


def product_times(sizes, budget_ms):
    """{N: median ms of rl.matmul in fp32} for the sizes whose predicted time is within budget_ms."""
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
tflops_hint = "how many FLOPs does the product do, and in how many seconds?"
assert_values(tflops, {(1000, 2.0): 1.0, (100, 1.0): 0.002, (1000, 1.0): 2.0}, tflops_hint)
### BEGIN HIDDEN TESTS
cases = {(N, ms): 2 * N**3 / ms / 1e9 for N, (ms, _) in lab5.PUBLISHED_MATMUL.items()}
cases |= {(N, ms / 10): 2 * N**3 / ms / 1e8 for N, ms in draws((100, 20000), (1, 9999), count=4)}
assert_values(tflops, cases, tflops_hint)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_2_times_test", "grade": true, "points": 1}
def within(sizes, budget_ms, times):
    """The sizes whose predicted times are within the budget, as far as `times` tells."""
    found = sizes[:1]
    for N in sizes[1:]:
        before = found[-1]
        if before not in times or times[before] * (N / before) ** 3 > budget_ms:
            break
        found = [*found, N]
    return found


def check_times(sizes, budget_ms, measured=None):
    """Without `measured` the times that the clock chose decide how far it goes."""
    seen = measure.timed(product_times, sizes, budget_ms)
    times, case = seen.value, f"product_times({sizes}, {budget_ms})"
    assert isinstance(times, dict), f"{case} must return a dict, got a {type(times).__name__}"
    if measured is None:
        known = {N: call.median_ms for N in times for call in seen.calls if call.macs == N**3}
        measured = within(sizes, budget_ms, known)
        case += f", where the clock gave {', '.join(f'{ms:.3g} ms for {N}' for N, ms in known.items())},"
    said = f"{case} measured the sizes {list(times)}, expected {measured}: compare each predicted time with the budget"
    assert list(times) == measured, said
    for N, ms in times.items():
        of_size = [call for call in seen.calls if call.macs == N**3 and "matmul" in call.by_op]
        assert of_size, f"{case} did not time rl.matmul on two {N} x {N} matrices with latency"
        moved = sorted({call.moved_bytes for call in of_size})
        in_fp32 = {8 * N * N, 12 * N * N} & set(moved)  # a matrix times itself is read once
        said = f"{case}: a product of two {N} x {N} matrices in fp32 moves {12 * N * N} bytes, what was timed {moved}"
        assert in_fp32, f"{said}: make the matrices in fp32"
        others = sorted({name for call in of_size for name in call.by_op} - {"matmul"})
        said = f"{case}: what latency timed for {N} also ran {', '.join(others)}: make the matrices before you time"
        assert not others, said
        said = f"{case}: the value for {N} is {ms!r}, expected the median_ms that latency measured"
        assert measure.is_median(ms, of_size), said
        said = f"{case}, N = {N}: warm up, and take at least three samples"
        assert measure.is_steady(ms, of_size), said


check_times([8, 16, 32], 1e12, [8, 16, 32])
check_times([8, 16, 32], 1e-12, [8])
check_times([24, 12], 1e12, [24, 12])
check_times([8, 1024, 16], 500, [8])  # whatever the first size takes, the prediction for the second is above 500 ms
check_times([1, 4096], 6e8, [1])
for _ in range(12):
    check_times([16, 17, 18, 19, 20, 21], 2.0)
    check_times([8, 128], 4096.0)  # 16 times the size: another exponent shows at every third of the times
### BEGIN HIDDEN TESTS
N = measure.draw(9, 12)
check_times([N, 2 * N, 4 * N, 7 * N], 1e12, [N, 2 * N, 4 * N, 7 * N])
check_times([N + 7], 0.0, [N + 7])
for _ in range(12):
    check_times([N, N + 2, N + 1, N + 5, N + 9], measure.draw(1, 9) / 3)
    check_times([N, 16 * N], measure.draw(3000, 5000))
### END HIDDEN TESTS

# %%
own = product_times([2**power for power in range(8, 15)], budget_ms=300 if device == "cpu" else 2000)
rows = []
for N in sorted({*own, *lab5.PUBLISHED_MATMUL}):
    here = (f"{own[N]:.2f}", f"{tflops(N, own[N]):.3f}") if N in own else ("", "")
    there = lab5.PUBLISHED_MATMUL.get(N)
    published = (f"{there[0]:.2f}", f"{tflops(N, there[0]):.2f}") if there else ("", "")
    rows.append((N, *here, *published))
head = ("N", "ms here", "TFLOP/s here", "ms, A100", "TFLOP/s, A100")
Table(head, rows, title=f"N x N products in fp32, here: {lab5.machine_name(device)}")

# %% [markdown]
# The published numbers are for fp32 on an A100-SXM4-40GB (`SPECS["A100 SXM 40GB"]`), without TF32 (a shorter format in
# which tensor cores multiply fp32 inputs). Answer these questions about them:
#
# - `right_peak`: with which peak, in TFLOP/s, do you have to compare them?
# - `expected_growth`: by which factor should the time of a product grow when N doubles, if it is proportional to the
#   FLOPs? An answer within 5% is right.
# - `product_bound`: is the product with N = 1024 bound by `"memory"` or `"compute"`, if each matrix is moved once?
# - `waves_1024` and `efficiency_1024`: its kernel had tiles of 128 x 64. How many waves did it take on 108 SMs, and
#   with which wave efficiency (0 to 1)?

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
for name, value in (("right_peak", right_peak), ("expected_growth", expected_growth)):
    assert is_number(value), f"{name} must be a number, got {value!r}"
assert product_bound in ("memory", "compute"), f'product_bound must be "memory" or "compute", got {product_bound!r}'
assert is_count(waves_1024), f"waves_1024 must be a whole number (int), got {waves_1024!r}"
said = f"efficiency_1024 must be a number between 0 and 1, got {efficiency_1024!r}"
assert is_number(efficiency_1024) and 0 < efficiency_1024 <= 1, said
### BEGIN HIDDEN TESTS
said = f"right_peak is not {right_peak}: which units compute in fp32 without tf32, and what is their peak?"
assert is_near(right_peak, 19.5, 1e-3), said
assert is_near(expected_growth, 8, 0.05), f"expected_growth is not {expected_growth}: how do 2 N³ FLOPs grow?"
said = f'product_bound is not "{product_bound}": compare the intensity of the product with the ridge in fp32'
assert product_bound == "compute", said
said = f"waves_1024 is not {waves_1024}: how many tiles of 128 x 64 cover the result, and how many run at once?"
assert waves_1024 == 2, said
assert_near("efficiency_1024", efficiency_1024, 0.592593, 1e-3, "how many tiles could all waves hold?")
### END HIDDEN TESTS

# %% [markdown]
# So your answers explain why the product with N = 1024 reaches only half of its peak. Compared with 312 TFLOP/s, the
# most prominent peak of the datasheet, it would seem to reach only 3 %. That peak is for tensor cores with 16-bit
# inputs.
#
# What about a matrix that is mostly zeros? The CSR format stores only the nonzero elements, each with its column: 4 + 4
# bytes in fp32, for 2 FLOPs in a product with a vector. So this product does at most a quarter of a FLOP per byte. It
# is memory-bound on every machine of Part 2, however many zeros it skips. The plot shows both kinds of products for the
# A100:

# %%
N, stored = 16384, 164  # elements in a row, and how many of them are nonzero (1 %)
csr_intensity = 2 * N * stored / (8 * N * stored + 4 * (N + 1) + 4 * 2 * N)
points = [
    rl.roofline.Point(f"dense, N = {size}", size / 6, tflops(size, ms), series="product, published")
    for size, (ms, _) in lab5.PUBLISHED_MATMUL.items()
]
points.append(rl.roofline.Point("CSR times a vector", csr_intensity, series="1 % of the elements nonzero"))
rl.plots.plot_roofline(SPECS["A100 SXM 40GB"], points, dtype="float32", title="Dense products and a sparse one, fp32")
