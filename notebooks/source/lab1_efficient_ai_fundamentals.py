# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   rooflab:
#     lab: lab1
#     points: 65
#     bonus: 0
# ---

# %% [markdown]
# # Lab 1: Efficient AI fundamentals
#
# Two programs compute the same numbers; one is a thousand times slower. By the end of this lab you can say *why*, and
# *how fast it could be*, before you optimise anything. You need three quantities:
#
# - **work**: the arithmetic an operation must do (MACs, FLOPs);
# - **traffic**: the bytes it must move to and from memory;
# - **time**: how long it really takes, with its spread.
#
# Work over traffic is the *arithmetic intensity*. It decides which of two limits you will hit first: how fast the
# machine computes, or how fast it reads. That picture is the *roofline*, and everything else in this course hangs on
# it.
#
# Everything here runs on a laptop's CPU. On a machine with a CUDA GPU the same cells run there and show GPU numbers.
# Your grade rests on formulas, counts and ratios, never on how fast your machine is.
#
# **How to work.** Fill the cells marked *your code here*, then run the test cell below each. A test that prints
# nothing has passed. When graded, more tests run that are not shown here. Each question runs on its own in a fresh
# process, so a solution may use the set-up cell and the functions of the questions that it names, and no other cell.

# %% tags=["setup"]
import time

import numpy as np

import rooflab as rl
from rooflab.grading import measure
from rooflab.labs.lab1 import (
    GPU_SPECS,
    benchmark_memory,
    count_cuda_kernels,
    default_schedule,
    get_ridge_point,
    latency,
    latency_one_time,
    plot_flash_attn_improvement,
    plot_gemm_gemv_latency,
    plot_gemm_torch_matmul_latency,
    plot_roofline,
)
from rooflab.testing import assert_close, is_count, is_near, is_number, is_time_of, to_float64

device = "cuda" if rl.cuda.is_available() else "cpu"

# %% [markdown]
# **Units, used everywhere in this course**
#
# | quantity | unit | note |
# |---|---|---|
# | work | MAC, FLOP | one multiply-accumulate is two FLOPs: a multiply and an add |
# | traffic | byte; GB = 10⁹ bytes | fp32 takes 4 bytes, bf16 and fp16 take 2 |
# | time | ms | the names say so: `median_ms` |
# | speed | TFLOP/s = 10¹² FLOP/s | peaks are *dense*: the doubled ones that count skipped zeros are not used |
# | bandwidth | TB/s = 10¹² byte/s | TB/s times FLOP/byte gives TFLOP/s |
#
# Shapes: `A` is (N, K), `B` is (K, M), their product `C` is (N, M). *GEMM* is matrix times matrix, *GEMV* is matrix
# times vector, that is M = 1.

# %% [markdown]
# # Part 1. One operation, measured and counted
#
# ## 1.1 Matrix multiplication by hand (5 points)
#
# Nearly all the time of a language model goes into one operation. Each element of the result is a dot product:
#
# $$C_{ij} = \sum_{k=1}^{K} A_{ik} B_{kj}$$
#
# Write `gemm(A, B)` with **three loops**, one multiplication and one addition at a time. Do not call any library's
# product (`@`, `matmul`, `dot`, `einsum` ...) and do not multiply whole rows at once. This is judged by what *runs*:
# the runtime counts the products it launches, NumPy's are watched, and the steps of your loops are counted.
#
# `C` has the dtype and the device of `A`. If the inner sizes differ, raise `ValueError`.
#
# *Hint.* Reading a single element of a tensor costs about a microsecond, on a GPU several. `A.tolist()` gives you
# plain Python numbers in one go, and `rl.tensor(rows, dtype=A.dtype, device=A.device)` makes a tensor of nested
# lists.


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def gemm(A, B):
    """A (N, K) times B (K, M) by three loops: (N, M), in A's dtype and on A's device."""
    ### BEGIN SOLUTION
    (N, K), (rows, M) = A.shape, B.shape
    if rows != K:
        raise ValueError(f"inner sizes differ: {K} and {rows}")
    a, b = A.tolist(), B.tolist()
    C = [[0.0] * M for _ in range(N)]
    for i in range(N):
        for j in range(M):
            total = 0.0
            for k in range(K):
                total += a[i][k] * b[k][j]
            C[i][j] = total
    return rl.tensor(C, dtype=A.dtype, device=A.device)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 3} rooflab={"seconds": 90}
def check_gemm(N, K, M, dtype="float32", tolerance=1e-4):
    rng = np.random.default_rng(N + 1000 * K + 1000000 * M)
    A = rl.tensor(rng.standard_normal((N, K)), dtype=dtype, device=device)
    B = rl.tensor(rng.standard_normal((K, M)), dtype=dtype, device=device)
    C = gemm(A, B)
    assert isinstance(C, (rl.Tensor, np.ndarray)), (
        f"gemm must return a tensor, not {type(C).__name__}"
    )
    assert tuple(C.shape) == (N, M), (
        f"({N}, {K}) x ({K}, {M}) must give ({N}, {M}), not {tuple(C.shape)}"
    )
    assert str(C.dtype).endswith(dtype), f"A is {dtype}, C is {C.dtype}"
    assert not isinstance(C, rl.Tensor) or C.device == A.device, (
        f"A is on {A.device}, C is on {C.device}"
    )
    expected = to_float64(A) @ to_float64(B)
    assert_close(C, expected, rtol=tolerance, atol=tolerance, name=f"({N}, {K}) x ({K}, {M})")


check_gemm(3, 4, 2)
check_gemm(64, 96, 33)
try:
    gemm(rl.ones((2, 3), device=device), rl.ones((2, 3), device=device))
except ValueError:
    pass
else:
    raise AssertionError("(2, 3) x (2, 3): the inner sizes differ, gemm must raise ValueError")
### BEGIN HIDDEN TESTS
check_gemm(37, 64, 51)
check_gemm(78, 56, 49)
check_gemm(1, 100, 1)
check_gemm(1, 100, 7)
check_gemm(7, 100, 1)
check_gemm(5, 1, 6)
check_gemm(11, 13, 9, dtype="float64", tolerance=1e-12)
check_gemm(11, 13, 9, dtype="bfloat16", tolerance=0.1)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_loops_test", "grade": true, "points": 2}
A, B = rl.randn(4, 60, device=device), rl.randn(60, 3, device=device)
seen = measure.loops(gemm, A, B)
assert seen.products == (), f"a library did the product: {', '.join(seen.products)}"
assert seen.steps >= 4 * 60 * 3, (
    "fewer Python steps than multiplications: write the three loops out"
)
### BEGIN HIDDEN TESTS
A, B = rl.randn(3, 250, device=device), rl.randn(250, 5, device=device)
seen = measure.loops(gemm, A, B)
assert seen.products == (), f"a library did the product: {', '.join(seen.products)}"
assert seen.steps >= 3 * 250 * 5, f"{seen.steps} Python steps for {3 * 250 * 5} MACs"
assert_close(seen.value, to_float64(A) @ to_float64(B), atol=1e-4, name="gemm under the tracer")
assert measure.count(gemm, A, B).macs == 0, "the runtime counted a product"
### END HIDDEN TESTS

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
#
# ## 1.3 Count the work: MACs (5 points)
#
# Write `gemm_mac(x, y)`: the number of multiply-accumulates in `x` (N, K) times `y` (K, M), as an `int`, from the
# shapes alone (do not run the product). It must serve GEMV as well, and every dtype.


# %% nbgrader={"grade_id": "q1_3", "solution": true}
def gemm_mac(x, y):
    """Multiply-accumulates of x (N, K) times y (K, M): an int."""
    ### BEGIN SOLUTION
    (N, K), M = x.shape, y.shape[1]
    return N * K * M
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 5}
def check_mac(N, K, M, expected, dtype="float32"):
    seen = measure.count(gemm_mac, rl.zeros((N, K), dtype=dtype), rl.zeros((K, M), dtype=dtype))
    assert is_count(seen.value), f"gemm_mac must return an int, not {seen.value!r}"
    assert seen.value == expected, (
        f"({N}, {K}) x ({K}, {M}) takes {expected} MACs, not {seen.value}"
    )
    assert seen.launches == 0, "count from the shapes; do not run anything"


check_mac(2, 3, 4, expected=24)
check_mac(512, 512, 512, expected=134217728)
A, B = rl.ones((512, 512)), rl.ones((512, 512))
with rl.count() as counted:
    rl.matmul(A, B)
assert counted.macs == 134217728, "the runtime counts the same"
### BEGIN HIDDEN TESTS
check_mac(512, 256, 512, expected=67108864)
check_mac(128, 256, 512, expected=16777216)
check_mac(64, 64, 1, expected=4096)
check_mac(1, 640, 2048, expected=1310720)
check_mac(7, 11, 13, expected=1001)
check_mac(7, 11, 13, expected=1001, dtype="bfloat16")
check_mac(7, 11, 13, expected=1001, dtype="float64")
check_mac(70000, 1, 70000, expected=4900000000)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.4 Count the traffic: bytes (5 points)
#
# Write `gemm_io(A, B)`: the bytes that a product of fp32 matrices has to move at the very least, as an `int`. Each
# input is read once, the output is written once; whatever is needed again stays on the chip. No program can move
# less, and a good one comes close for sizes that matter. These are called *compulsory* bytes.


# %% nbgrader={"grade_id": "q1_4", "solution": true}
def gemm_io(A, B):
    """Compulsory bytes of A (N, K) times B (K, M) in fp32, read and written: an int."""
    ### BEGIN SOLUTION
    (N, K), M = A.shape, B.shape[1]
    return 4 * (N * K + K * M + N * M)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_test", "grade": true, "points": 5}
def check_io(N, K, M, expected):
    seen = measure.count(gemm_io, rl.zeros((N, K)), rl.zeros((K, M)))
    assert is_count(seen.value), f"gemm_io must return an int, not {seen.value!r}"
    assert seen.value == expected, (
        f"({N}, {K}) x ({K}, {M}) in fp32 moves {expected} bytes, not {seen.value}"
    )
    assert seen.launches == 0, "count from the shapes; do not run anything"


check_io(2, 3, 4, expected=4 * (6 + 12 + 8))
check_io(512, 512, 512, expected=3145728)
A, B = rl.ones((512, 512)), rl.ones((512, 512))
with rl.count() as counted:
    rl.matmul(A, B)
assert counted.bytes_read + counted.bytes_written == 3145728, "the runtime counts the same"
### BEGIN HIDDEN TESTS
check_io(512, 256, 512, expected=2097152)
check_io(128, 256, 512, expected=917504)
check_io(64, 64, 1, expected=16896)
check_io(1, 640, 2048, expected=5253632)
check_io(7, 11, 13, expected=4 * (77 + 143 + 91))
check_io(70000, 1, 70000, expected=19600560000)
### END HIDDEN TESTS

# %% [markdown]
# Put side by side what you derived and what the runtime counted while the product ran. The counters count every
# launch, FLOP and byte of the runtime's own operations, exactly, the same on every machine and in every run. You will
# grade your own ideas with them for the rest of this course.

# %%
for N, K, M in [(512, 512, 512), (512, 256, 512), (128, 256, 512), (512, 512, 1)]:
    A, B = rl.ones((N, K), device=device), rl.ones((K, M), device=device)
    with rl.count() as counted:
        rl.matmul(A, B)
    print(
        f"({N}, {K}) x ({K}, {M}): {gemm_mac(A, B):>11,} MAC (counted {counted.macs:>11,}), ",
        end="",
    )
    print(f"{gemm_io(A, B):>9,} bytes (counted {counted.bytes_read + counted.bytes_written:>9,})")

# %% [markdown]
# # Part 2. The roofline
#
# Divide work by traffic and you have the **arithmetic intensity**, AI, in FLOP/byte: how much arithmetic each byte
# pays for. A machine that moves at most $\beta$ TB/s and computes at most $\pi$ TFLOP/s can then run no faster than
#
# $$P(\mathrm{AI}) = \min(\pi,\ \beta \cdot \mathrm{AI}) \quad \text{TFLOP/s}.$$
#
# That is the roof: a slope, then a flat top. They meet at the **ridge**, AI $= \pi / \beta$. Left of it an operation
# is *memory-bound*: it waits for bytes, and more arithmetic units would not help. From the ridge on it is
# *compute-bound*.
#
# ## 2.1.1 Square GEMM under a roof (5 points)
#
# - `gemm_intensity(N)`: AI in FLOP/byte of an (N, N) x (N, N) product in fp32, compulsory bytes. Mind that one MAC is
#   two FLOPs. (Here and below you may call your functions of the questions before.)
# - `attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s)`: the roof over one AI.
# - `gemm_points`: a dict from a label of your choice to the AI, for N = 1024, 2048, 4096, 8192.
#
# Then draw them with `plot_roofline(gpu_name, peak_flops, peak_bandwidth, points)` (TFLOP/s and TB/s) on an RTX
# A6000, whose figures are in `GPU_SPECS["A6000"]`: `"fp32_tflops"` and `"memory_bandwidth_tb_s"`. These points were
# never measured: they sit *on* the roof, and say what is possible.


# %% nbgrader={"grade_id": "q2_1_1", "solution": true}
def gemm_intensity(N):
    """Arithmetic intensity of an (N, N) x (N, N) product in fp32, FLOP/byte."""
    ### BEGIN SOLUTION
    flops = 2 * N**3
    moved = 4 * 3 * N**2
    return flops / moved
    ### END SOLUTION


def attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s):
    """The most TFLOP/s that a machine can reach at an arithmetic intensity in FLOP/byte."""
    ### BEGIN SOLUTION
    return min(peak_tflop_s, bandwidth_tb_s * intensity)
    ### END SOLUTION


gemm_points = {}  # label: AI in FLOP/byte, for N = 1024, 2048, 4096, 8192
### BEGIN SOLUTION
gemm_points = {f"GEMM {N}": gemm_intensity(N) for N in (1024, 2048, 4096, 8192)}
### END SOLUTION

# %% nbgrader={"grade_id": "q2_1_1_plot", "solution": true}
a6000 = GPU_SPECS["A6000"]
### BEGIN SOLUTION
plot_roofline("A6000", a6000["fp32_tflops"], a6000["memory_bandwidth_tb_s"], gemm_points)
### END SOLUTION

# %% nbgrader={"grade_id": "q2_1_1_test", "grade": true, "points": 3} rooflab={"needs": ["q1_3", "q1_4"]}
assert is_near(gemm_intensity(6), 1.0), "6x6x6: 432 FLOPs over 432 bytes"
assert isinstance(gemm_points, dict) and len(gemm_points) == 4, (
    "one point for each of the four sizes"
)
assert is_near(max(gemm_points.values()), 1365.3333, 1e-4), "N = 8192: 1365.3 FLOP/byte"
### BEGIN HIDDEN TESTS
for N in (1, 303, 1024, 2048, 4096, 8192):
    assert is_near(gemm_intensity(N), N / 6), f"N = {N}: AI is N/6"
assert all(isinstance(label, str) for label in gemm_points), "labels are strings"
for value, N in zip(sorted(gemm_points.values()), (1024, 2048, 4096, 8192), strict=True):
    assert is_near(value, N / 6, 1e-3), f"N = {N}: AI is {N / 6:.1f}"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_1_roof_test", "grade": true, "points": 2}
assert is_near(attainable_tflop_s(1000.0, 38.7, 0.768), 38.7), "far right of the ridge: the peak"
assert is_near(attainable_tflop_s(10.0, 38.7, 0.768), 7.68), "left of the ridge: bandwidth times AI"
### BEGIN HIDDEN TESTS
assert is_near(attainable_tflop_s(0.5, 67.0, 4.8), 2.4)
assert is_near(attainable_tflop_s(13.9, 67.0, 4.8), 66.72)
assert is_near(attainable_tflop_s(14.0, 67.0, 4.8), 67.0)
assert is_near(attainable_tflop_s(0.125, 0.2, 0.04), 0.005)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.1.2 From which N is GEMM compute-bound? (5 points)
#
# Small products are memory-bound, large ones compute-bound. Find the border on an A6000 in fp32, with its derivation:
# give the ridge, the smallest N whose AI reaches the ridge, and the AI at that N and at the N before it. (An AI equal
# to the ridge counts as compute-bound.)
#
# Then write it as a function of the machine and of the bytes per element. Peak and bytes must belong to the same
# dtype: an fp32 peak over bf16 bytes is a number without a meaning, and a popular one.


# %% nbgrader={"grade_id": "q2_1_2", "solution": true}
ridge_flop_per_byte = None  # of an A6000 in fp32
smallest_n = None  # the smallest compute-bound N there
ai_at_smallest_n = None  # FLOP/byte
ai_one_below = None  # at smallest_n - 1
### BEGIN SOLUTION
ridge_flop_per_byte = get_ridge_point("A6000", "fp32")  # 38.7 / 0.768 = 50.39
smallest_n = 303  # AI = N/6 >= 50.39, so N >= 302.3
ai_at_smallest_n = 303 / 6
ai_one_below = 302 / 6
### END SOLUTION


def smallest_compute_bound_n(peak_tflop_s, bandwidth_tb_s, bytes_per_element):
    """Smallest N for which an (N, N) x (N, N) product is compute-bound: an int."""
    ### BEGIN SOLUTION
    # AI = 2 N^3 / (3 N^2 * bytes) = 2 N / (3 * bytes) >= peak / bandwidth
    return int(np.ceil(3 * bytes_per_element * (peak_tflop_s / bandwidth_tb_s) / 2))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_2_test", "grade": true, "points": 3} rooflab={"needs": ["q2_1_1"]}
assert is_near(ridge_flop_per_byte, 38.7 / 0.768, 1e-3), "the ridge is the peak over the bandwidth"
assert is_count(smallest_n), "smallest_n is a whole number"
### BEGIN HIDDEN TESTS
assert smallest_n == 303
assert is_near(ai_at_smallest_n, 50.5, 1e-4)
assert is_near(ai_one_below, 302 / 6, 1e-4)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_2_function_test", "grade": true, "points": 2}
assert is_count(smallest_compute_bound_n(38.7, 0.768, 4)), "N is a whole number: return an int"
assert smallest_compute_bound_n(50.0, 1.0, 4) == 300, (
    "the ridge is 50, and N = 300 has an AI of exactly 50"
)
### BEGIN HIDDEN TESTS
assert smallest_compute_bound_n(38.7, 0.768, 4) == 303
assert smallest_compute_bound_n(154.8, 0.768, 2) == 605, "bf16: AI is N/3, the ridge 201.6"
assert smallest_compute_bound_n(66.9, 3.35, 4) == 120
assert smallest_compute_bound_n(989.4, 3.35, 2) == 887
assert smallest_compute_bound_n(16.0, 1.0, 8) == 192
### END HIDDEN TESTS

# %% [markdown]
# ## 2.2 GEMV under the same roof (5 points)
#
# Generating text one token at a time multiplies matrices by *vectors*. Take (N, N) x (N, 1), fp32.
#
# **a)** (1 point) `gemv_intensity(N)`, and draw the same four sizes.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def gemv_intensity(N):
    """Arithmetic intensity of an (N, N) x (N, 1) product in fp32, FLOP/byte."""
    ### BEGIN SOLUTION
    flops = 2 * N * N
    moved = 4 * (N * N + N + N)
    return flops / moved
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_plot", "solution": true}
a6000 = GPU_SPECS["A6000"]
### BEGIN SOLUTION
gemv_points = {f"GEMV {N}": gemv_intensity(N) for N in (1024, 2048, 4096, 8192)}
plot_roofline("A6000", a6000["fp32_tflops"], a6000["memory_bandwidth_tb_s"], gemv_points)
### END SOLUTION

# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 1} rooflab={"needs": ["q2_1_1"]}
assert is_near(gemv_intensity(2), 0.25), "2x2 times 2x1: 8 FLOPs over 32 bytes"
### BEGIN HIDDEN TESTS
for N in (1, 1024, 2048, 4096, 8192):
    assert is_near(gemv_intensity(N), N / (2 * N + 4)), f"N = {N}: {N / (2 * N + 4)}"
### END HIDDEN TESTS

# %% [markdown]
# **b)** (2 points) What do you find? Give these as values; a sentence about each in the cell below them.
#
# - `gemv_ai_limit`: what the AI tends to as N grows, in FLOP/byte
# - `gemv_bound`: `"memory"`, `"compute"`, or `"both"` if it depends on N (on an A6000, fp32)
# - `gemv_best_tflop_s`: what an A6000 can reach on GEMV in fp32 however large N is, in TFLOP/s
# - `gemv_share_of_peak`: the same as a share of its fp32 peak (1.0 would be all of it)

# %% nbgrader={"grade_id": "q2_2_values", "solution": true}
gemv_ai_limit = None
gemv_bound = None
gemv_best_tflop_s = None
gemv_share_of_peak = None
### BEGIN SOLUTION
gemv_ai_limit = 0.5  # 2 N^2 / (4 N^2): each weight is used once
gemv_bound = "memory"  # 0.5 is far left of 50.4, for every N
gemv_best_tflop_s = 0.5 * 0.768
gemv_share_of_peak = 0.5 * 0.768 / 38.7
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q2_2_findings", "solution": true}
# *What I find (not graded):*

# %% nbgrader={"grade_id": "q2_2_values_test", "grade": true, "points": 2}
assert gemv_bound in ("memory", "compute", "both"), '"memory", "compute" or "both"'
assert gemv_share_of_peak is not None and 0 < gemv_share_of_peak < 1, "a share lies between 0 and 1"
### BEGIN HIDDEN TESTS
assert is_near(gemv_ai_limit, 0.5, 1e-3)
assert gemv_bound == "memory"
assert is_near(gemv_best_tflop_s, 0.384, 1e-2)
assert is_near(gemv_share_of_peak, 0.384 / 38.7, 1e-2)
### END HIDDEN TESTS

# %% [markdown]
# **c)** (2 points) Enough of what is possible: measure. A roofline point needs a speed, so turn a latency into one:
#
# - `speeds(macs, moved_bytes, ms)`: the pair (TFLOP/s, TB/s) of work that took `ms` milliseconds;
# - `measured_gemv(N)`: `rl.matmul` of (N, N) x (N, 1) in fp32 on `device`, timed by `latency`, as the dict `{"ms":
#   median, "tflop_s": ..., "tb_s": ...}`.


# %% nbgrader={"grade_id": "q2_2_measured", "solution": true}
def speeds(macs, moved_bytes, ms):
    """(TFLOP/s, TB/s) of `macs` MACs and `moved_bytes` bytes in `ms` milliseconds."""
    ### BEGIN SOLUTION
    return 2 * macs / (ms * 1e9), moved_bytes / (ms * 1e9)
    ### END SOLUTION


def measured_gemv(N):
    """{"ms", "tflop_s", "tb_s"} of rl.matmul on (N, N) x (N, 1), fp32; ms is a median."""
    ### BEGIN SOLUTION
    A, b = rl.randn(N, N, device=device), rl.randn(N, 1, device=device)
    ms = latency(rl.matmul, A, b, warmup=5, repeat=20).median_ms
    tflop_s, tb_s = speeds(N * N, 4 * (N * N + 2 * N), ms)
    return {"ms": ms, "tflop_s": tflop_s, "tb_s": tb_s}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_measured_test", "grade": true, "points": 2}
def check_speeds(macs, moved_bytes, ms, tflop_s, tb_s):
    got = speeds(macs, moved_bytes, ms)
    assert isinstance(got, (tuple, list)) and len(got) == 2, "return a pair: TFLOP/s, TB/s"
    assert is_near(got[0], tflop_s), f"{macs} MACs in {ms} ms are {tflop_s} TFLOP/s, not {got[0]}"
    assert is_near(got[1], tb_s), f"{moved_bytes} bytes in {ms} ms are {tb_s} TB/s, not {got[1]}"


check_speeds(10**12, 10**12, 1000.0, tflop_s=2.0, tb_s=1.0)
point = measured_gemv(512)
assert isinstance(point, dict) and set(point) == {"ms", "tflop_s", "tb_s"}, (
    'the keys are "ms", "tflop_s", "tb_s"'
)
assert point["ms"] > 0 and is_near(point["tflop_s"], 2 * 512 * 512 / point["ms"] / 1e9), (
    "2 N^2 FLOPs in that time"
)
### BEGIN HIDDEN TESTS
check_speeds(1024 * 1024, 4 * (1024 * 1024 + 2048), 0.25, tflop_s=0.008388608, tb_s=0.016809984)
for N in (64, 1024):
    point = measured_gemv(N)
    moved = 4 * (N * N + 2 * N)
    assert is_near(point["tflop_s"], 2 * N * N / point["ms"] / 1e9), (
        "tflop_s does not follow from ms"
    )
    assert is_near(point["tb_s"], moved / point["ms"] / 1e9), "tb_s does not follow from ms"
    assert point["ms"] <= measure.elapsed_ms(), "more than the time that passed: not in ms"
A, b = rl.randn(64, 64, device=device), rl.randn(64, 1, device=device)
fastest = rl.latency(rl.matmul, A, b, warmup=5, repeat=50).min_ms
assert is_time_of(measured_gemv(64)["ms"], fastest), "this is not the latency of rl.matmul, in ms"
### END HIDDEN TESTS

# %% [markdown]
# Now the whole picture, on *your* machine. `rl.machine.measure(device)` probes its ceilings once (some seconds; then
# they are kept): the bandwidth of its memory and of its last cache, and its peak per dtype. GEMM is measured where a
# budget allows, GEMV at all four sizes, every point with its spread. `l2="cold"` empties the caches before each call:
# without it a small matrix is still in cache from the call before, and its GEMV runs *above* the memory roof. The
# dotted line is the roof of work that stays in cache.

# %%
ceilings = rl.machine.measure(device)
print(ceilings)


def measured(name, series, a, b, **options):
    """A point of the roofline plot: the cost counted, the latency measured."""
    with rl.count() as cost:
        rl.matmul(a, b)
    return rl.roofline.measured_point(name, cost, latency(rl.matmul, a, b, **options), series)


sizes = [1024, 2048, 4096, 8192]
first_ms = latency(
    rl.matmul, *(rl.randn(1024, 1024, device=device) for _ in range(2)), warmup=2, repeat=5
).median_ms
affordable, left_out = sizes_in_budget(sizes, first_ms, budget_s=1.0)
print(f"\nGEMM measured at {affordable}; left out by a budget of 1 s: {left_out or 'none'}")

points = []
for N in sizes:
    A = rl.randn(N, N, device=device)
    for series, l2 in [("GEMV, caches warm", "warm"), ("GEMV, caches cold", "cold")]:
        points.append(
            measured(str(N), series, A, rl.randn(N, 1, device=device), warmup=3, repeat=15, l2=l2)
        )
    if N in affordable:
        points.append(
            measured(str(N), "GEMM", A, rl.randn(N, N, device=device), warmup=1, repeat=5)
        )

# %%
rl.plots.plot_roofline(
    ceilings, points, dtype="float32", title="GEMM and GEMV in fp32, measured here"
)

# %%
for point in points:
    share = rl.roofline.fraction_of_roof(ceilings, point, "float32")
    bound = rl.roofline.bound(ceilings, point.intensity, "float32")
    print(f"{point.series:18} N = {point.name:5} AI {point.intensity:8.2f}   ", end="")
    print(f"{point.tflop_s * 1e3:9.1f} GFLOP/s, {share:4.0%} of the {bound} roof")

# %% [markdown]
# So a good GEMV reaches almost all of the *bandwidth* and almost nothing of the *peak*: it is as fast as it can be,
# and a machine with twice the arithmetic would not run it any faster. Keep this picture in mind for Part 3, where a
# language model's prefill turns out to be made of GEMMs and its decode of GEMVs.
#
# # Part 4. Looking inside: kernels, launches, fusion
#
# (Part 3, on attention, comes with the second half of this lab; the numbers of the questions are kept.)
#
# ## 4.1 Profile a matrix multiplication (not graded)
#
# A latency says how long; a *profile* says what ran: every kernel with its name, its start, its duration. A
# **kernel** is a function that runs on the device, a **launch** is one request to run it.
#
# Profilers need warming up too. `default_schedule` takes ten steps: 1 is not looked at, 3 warm up, 6 are recorded.
# You tell the profiler where a step ends:
#
# ```python
# with rl.profile(schedule=default_schedule) as prof:
#     for _ in range(10):
#         rl.exp(x)
#         prof.step()
# ```
#
# Afterwards `prof.key_averages().table(sort_by="duration", row_limit=10)` is a table to print, `prof.kernels` the
# list of recorded kernels (`.name`, `.op`, `.step`, `.start_us`, `.duration_us` ...), and `count_cuda_kernels(prof)`
# the number of launches by category **in one step**, on whatever device they ran. (Six recorded steps hold six times
# as many: do not report those as one call.)
#
# Profile `rl.matmul` on two 128x128 matrices in bf16 (`rl.randn(128, 128, dtype="bfloat16", device=device)`), print
# the table, and return the name of the kernel that did the product and the number of launches of one call.


# %% nbgrader={"grade_id": "q4_1", "solution": true}
def profile_matmul():
    """{"kernel": name, "launches_per_call": int} of rl.matmul on two 128x128 bf16 matrices."""
    ### BEGIN SOLUTION
    a, b = (rl.randn(128, 128, dtype="bfloat16", device=device) for _ in range(2))
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            rl.matmul(a, b)
            prof.step()
    print(prof.key_averages().table(sort_by="duration", row_limit=10))
    product = max(prof.kernels, key=lambda kernel: kernel.duration_us)
    return {"kernel": product.name, "launches_per_call": count_cuda_kernels(prof)["total"]}
    ### END SOLUTION


# %%
matmul_profile = profile_matmul()
print(matmul_profile)
assert 1 <= matmul_profile["launches_per_call"] <= 2, "count one step, not all six"
assert matmul_profile["kernel"] != "matmul", "that is the op; the kernel's own name says more"

# %% [markdown]
# Read the name: it tells the op, the device and the idea behind the kernel (or the library that was called).
# `rl.variants("matmul")` lists all kernels that rooflab has for this op, the fastest first, the plainest last. Try
# `rl.matmul(a, b, variant=...)` with another one and look at its roofline point.

# %%
for variant in rl.variants("matmul"):
    print(variant)

# %% [markdown]
# ## 4.3 A function out of small kernels, and the same as one
#
# Between its matrix products a language model computes *elementwise* functions, each cheap. GeLU is one of them, in
# its tanh form:
#
# $$\mathrm{GeLU}(x) = 0.5\, x \left(1 + \tanh\left(\sqrt{2/\pi}\,(x + 0.044715\, x^3)\right)\right)$$
#
# ## 4.3.1 GeLU from elementwise operations (3 points)
#
# Write it with `rl` operations (`+`, `*`, `**`, `rl.tanh`), as the formula stands: eight operations, each of them one
# launch. Do not call the library's fused `gelu`, and do not simplify: what these eight launches cost is the point.


# %% nbgrader={"grade_id": "q4_3_1", "solution": true}
def gelu_tanh_python(input):
    """GeLU (tanh form) by elementwise operations: the shape, dtype and device of `input`."""
    ### BEGIN SOLUTION
    inner = (2 / np.pi) ** 0.5 * (input + 0.044715 * input**3)
    return 0.5 * input * (1 + rl.tanh(inner))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_3_1_test", "grade": true, "points": 3}
def check_gelu(shape, scale=1.0, dtype="float32", tolerance=1e-5):
    x = np.random.default_rng(len(shape)).standard_normal(shape) * scale
    input = rl.tensor(x, dtype=dtype, device=device)
    seen = measure.count(gelu_tanh_python, input)
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert seen.value.dtype == input.dtype, (
        f"the input is {input.dtype}, the result {seen.value.dtype}"
    )
    assert seen.value.device == input.device, (
        f"the input is on {input.device}, the result on {seen.value.device}"
    )
    x = to_float64(input)
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    assert_close(
        seen.value, expected, rtol=tolerance, atol=tolerance, name=f"gelu_tanh_python at {shape}"
    )
    assert seen.by_op.get("gelu", 0) == 0, "the fused op did the work"
    assert seen.launches >= 8, (
        f"{seen.launches} launches: write out the eight operations of the formula"
    )


check_gelu((1_000_000,))
check_gelu((100, 200))
### BEGIN HIDDEN TESTS
check_gelu((10, 200, 300))
check_gelu((1000,), scale=10.0)
check_gelu((3, 1), scale=100.0)
check_gelu((50, 7), scale=3.0, dtype="float64", tolerance=1e-12)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.3.2 Against the fused kernel (2 points)
#
# `rl.gelu` computes the same in a single kernel: it reads an element, keeps it in registers until the result is
# there, and writes it. Measure the median latency of both at `n` elements, fp32.


# %% nbgrader={"grade_id": "q4_3_2", "solution": true}
def gelu_latencies_ms(n):
    """{"python": ms, "fused": ms}: medians of gelu_tanh_python and rl.gelu, n fp32 elements."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    functions = {"python": gelu_tanh_python, "fused": rl.gelu}
    return {name: latency(fn, x, warmup=5, repeat=50).median_ms for name, fn in functions.items()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_3_2_test", "grade": true, "points": 2} rooflab={"needs": ["q4_3_1"]}
times = gelu_latencies_ms(1_000_000)
assert isinstance(times, dict) and set(times) == {"python", "fused"}, (
    'the keys are "python" and "fused"'
)
assert all(isinstance(ms, float) and np.isfinite(ms) and ms > 0 for ms in times.values()), (
    "positive floats, in ms"
)
assert times["python"] > times["fused"], (
    "many launches cannot be faster than one that does the same: mixed up?"
)
### BEGIN HIDDEN TESTS
assert sum(times.values()) <= measure.elapsed_ms(), "more than the time that passed: not in ms"
x = rl.randn(1_000_000, device=device)
moved = measure.count(gelu_tanh_python, x)
bytes_ratio = (moved.bytes_read + moved.bytes_written) / 8e6
ratio = times["python"] / times["fused"]
assert ratio < 100 * bytes_ratio, (
    f"{ratio:.0f} times slower, with {bytes_ratio:.0f} times the bytes: implausible"
)
times, x = gelu_latencies_ms(10_000), rl.randn(10_000, device=device)
fastest = measure.latency(gelu_tanh_python, x, warmup=5, repeat=50).samples_ms.min()
assert is_time_of(times["python"], fastest), "this is not the latency of gelu_tanh_python, in ms"
fastest = rl.latency(rl.gelu, x, warmup=5, repeat=50).min_ms
assert is_time_of(times["fused"], fastest), "this is not the latency of rl.gelu, in ms"
### END HIDDEN TESTS

# %%
times = gelu_latencies_ms(1_000_000)
ratio = times["python"] / times["fused"]
print(
    "a million elements:",
    {name: f"{ms:.3f} ms" for name, ms in times.items()},
    f"{ratio:.1f} times",
)

# %% [markdown]
# ## 4.3.3 Why? (2 points)
#
# Same formula, same arithmetic; so where does the time go? Do not guess, count. `with rl.count() as c:` around a call
# gives `c.launches`, `c.flops`, `c.bytes_read`, `c.bytes_written` and more, exactly, on any device.
#
# - `gelu_counts(fused, n)`: launches, FLOPs and bytes moved (read and written) of one call at `n` fp32 elements, of
#   `rl.gelu` if `fused`, else of your `gelu_tanh_python`;
# - `speedup_if_memory_bound`: how many times faster the fused one is for large `n`, if bytes are all that counts: a
#   number;
# - `why_faster`: the reason, as a choice; a sentence about it below.
#     - `"a"`: it does less arithmetic
#     - `"b"`: it uses the tensor cores, or wider vector units
#     - `"c"`: it computes tanh less exactly
#     - `"d"`: it reads the input once and writes the result once, and nothing in between goes to memory

# %% nbgrader={"grade_id": "q4_3_3", "solution": true}
speedup_if_memory_bound = None  # a number
why_faster = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
speedup_if_memory_bound = (
    72 / 8
)  # bytes an element: ten reads and eight writes, against one of each
why_faster = "d"
### END SOLUTION


def gelu_counts(fused, n):
    """{"launches": int, "flops": int, "bytes": int} of one call on n fp32 elements."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    with rl.count() as c:
        (rl.gelu if fused else gelu_tanh_python)(x)
    return {"launches": c.launches, "flops": c.flops, "bytes": c.bytes_read + c.bytes_written}
    ### END SOLUTION


# %% [markdown] nbgrader={"grade_id": "q4_3_3_findings", "solution": true}
# *What I find (not graded):*

# %% nbgrader={"grade_id": "q4_3_3_test", "grade": true, "points": 2} rooflab={"needs": ["q4_3_1"]}
assert why_faster in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
fused, python = gelu_counts(True, 1000), gelu_counts(False, 1000)
assert set(fused) == set(python) == {"launches", "flops", "bytes"}, (
    'the keys are "launches", "flops", "bytes"'
)
assert all(is_count(value) for counts in (fused, python) for value in counts.values()), (
    "counts are ints"
)
assert fused["launches"] == 1 and fused["bytes"] == 8 * 1000, (
    "fused: one launch, 4 bytes read and 4 written an element"
)
### BEGIN HIDDEN TESTS
for n in (1000, 4097, 1_000_000):
    assert gelu_counts(True, n) == {"launches": 1, "flops": 8 * n, "bytes": 8 * n}, (
        f"fused, n = {n}"
    )
    seen = measure.count(gelu_tanh_python, rl.randn(n, device=device))
    moved = seen.bytes_read + seen.bytes_written
    assert gelu_counts(False, n) == {
        "launches": seen.launches,
        "flops": seen.flops,
        "bytes": moved,
    }, f"n = {n}"
    assert seen.launches >= 8 and moved >= 8 * 8 * n, (
        f"eight launches each read and write {n} elements"
    )
assert is_near(speedup_if_memory_bound, moved / (8 * n), 0.02), "the ratio of the bytes"
assert why_faster == "d"
### END HIDDEN TESTS

# %%
python, fused = gelu_counts(False, 1_000_000), gelu_counts(True, 1_000_000)
for name in ("launches", "flops", "bytes"):
    more = python[name] / fused[name]
    print(f"{name:9} {python[name]:>12,} {fused[name]:>12,}   {more:.3g} times")
print(f"{'ms':9} {times['python']:>12.3f} {times['fused']:>12.3f}   {ratio:.3g} times")
rl.plots.plot_bars(
    {"eight operations": python["bytes"], "fused": fused["bytes"]},
    "B",
    title="GeLU of a million fp32 elements: bytes moved",
)

# %% [markdown]
# The ratio of the times need not be the ratio of the bytes. Small tensors stay in cache, where bytes are cheap; each
# launch has a fixed cost; and a kernel that does much arithmetic on each byte may reach the other roof. Measure at
# 1e4 and 1e7 elements as well, and see which it is on your machine.
#
# ## 4.3.4 Show it (3 points)
#
# Profile both at `n` elements under `default_schedule`, ten steps with one call each. Return the launches of *one*
# call, and the names of its kernels in the order they ran.


# %% nbgrader={"grade_id": "q4_3_4", "solution": true}
def profile_gelu(fused, n):
    """{"launches_per_call": int, "kernels": [names]} of rl.gelu or of gelu_tanh_python."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            (rl.gelu if fused else gelu_tanh_python)(x)
            prof.step()
    print(prof.key_averages().table(sort_by="duration", row_limit=10))
    last = prof.kernels[-1].step
    names = [kernel.name for kernel in prof.kernels if kernel.step == last]
    return {"launches_per_call": count_cuda_kernels(prof)["total"], "kernels": names}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_3_4_test", "grade": true, "points": 3} rooflab={"needs": ["q4_3_1"]}
def check_profile(fused, n, launches):
    got = profile_gelu(fused, n)
    assert isinstance(got, dict) and set(got) == {"launches_per_call", "kernels"}, (
        "two keys: see the docstring"
    )
    assert is_count(got["launches_per_call"]), "a number of launches is an int"
    assert got["launches_per_call"] == launches, (
        f"one call makes {launches} launches, not {got['launches_per_call']} (report one step of six)"
    )
    assert isinstance(got["kernels"], list) and len(got["kernels"]) == launches, (
        "one name for each launch of one call"
    )
    assert all(isinstance(name, str) and name for name in got["kernels"]), "names are strings"
    return got["kernels"]


check_profile(fused=True, n=100_000, launches=1)
### BEGIN HIDDEN TESTS
x = rl.randn(100_000, device=device)
launches = measure.count(gelu_tanh_python, x).launches
assert launches >= 8, "GeLU from elementwise operations makes at least eight launches"
with rl.profile(schedule=default_schedule) as prof:
    for _ in range(10):
        rl.gelu(x)
        prof.step()
fused_name = prof.kernels[-1].name
assert check_profile(fused=True, n=100_000, launches=1) == [fused_name], (
    "not the name of the fused kernel"
)
assert fused_name not in check_profile(fused=False, n=100_000, launches=launches), (
    "the fused kernel did not run here"
)
### END HIDDEN TESTS

# %% [markdown]
# The two timelines, to the same number of elements. The eight kernels stand one behind the other, each waiting for
# the memory, and between them lie the gaps in which the host prepares the next launch. The fused kernel has no gaps
# to fill.

# %%
x = rl.randn(1_000_000, device=device)
with rl.profile(schedule=default_schedule) as prof:
    for _ in range(10):
        gelu_tanh_python(x)
        prof.step()
prof.plot_timeline(rows="op", title="gelu_tanh_python, a million elements: one call")

# %%
with rl.profile(schedule=default_schedule) as prof:
    for _ in range(10):
        rl.gelu(x)
        prof.step()
prof.plot_timeline(rows="op", title="rl.gelu, a million elements: one call")

# %% [markdown]
# # Part 5. Attention, and the matrix that nobody asked for
#
# Attention takes queries, keys and values of shape (B, H, L, D_h) and returns one vector for each query. On the way
# it makes a matrix with an element for every *pair* of tokens. Nobody asked for that matrix; this part is about what
# it costs, and about the kernel that does without.
#
# `standard_attention` is attention as the textbook writes it, in four operations. All questions of this part are
# about this function, called in 16 bit, and about `rl.attention`, which computes the same in one. `make_qkv` gives
# them something to work on, and `count_attention` counts what a call of either does.


# %% tags=["setup"]
def standard_attention(q, k, v):
    """softmax(q k^T / sqrt(D_h)) v for each head; q, k, v and the result are (B, H, L, D_h)."""
    scores = rl.matmul(q, k.mT)
    scores = scores * q.shape[-1] ** -0.5
    weights = rl.softmax(scores)
    return rl.matmul(weights, v)


def make_qkv(L, B=1, H=16, D_h=128, dtype="float16"):
    """Random q, k, v, (B, H, L, D_h) each, on `device`."""
    return [rl.randn(B, H, L, D_h, dtype=dtype, device=device) for _ in range(3)]


def count_attention(fn, L, B=1, H=16, D_h=128):
    """What `rl.count()` says of one call fn(q, k, v) in fp16: .flops, .bytes_read, .peak_bytes ..."""
    q, k, v = make_qkv(L, B, H, D_h)
    with rl.count() as c:
        fn(q, k, v)
    return c


# %% [markdown]
# ## 5.1 The memory of standard attention
#
# ## 5.1.1 Measured (3 points)
#
# `benchmark_memory(fn, *args)` returns two numbers in GB: the *peak* of the call above what was resident before it,
# and what was *resident*: q, k and v, and whatever else is alive.
#
# Write `attention_memory(L, B, H, D_h)`: the memory of `standard_attention` on `make_qkv(L, B, H, D_h)`. Too long a
# sequence is a row of the table, not a crash: catch `rl.OutOfMemoryError` and report a peak of `None`; q, k and v are
# resident all the same.


# %% nbgrader={"grade_id": "q5_1_1", "solution": true}
def attention_memory(L, B=1, H=16, D_h=128):
    """{"peak_gb": GB or None if it does not fit, "resident_gb": GB} of standard_attention, fp16."""
    ### BEGIN SOLUTION
    q, k, v = make_qkv(L, B, H, D_h)
    try:
        peak_gb, resident_gb = benchmark_memory(standard_attention, q, k, v)
    except rl.OutOfMemoryError:
        peak_gb, resident_gb = None, 3 * q.nbytes / 1e9
    return {"peak_gb": peak_gb, "resident_gb": resident_gb}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_1_1_test", "grade": true, "points": 3}
def check_memory(L, B=1, H=16, D_h=128, fits=True):
    got = attention_memory(L, B, H, D_h)
    assert isinstance(got, dict) and set(got) == {"peak_gb", "resident_gb"}, (
        'the keys are "peak_gb" and "resident_gb"'
    )
    qkv_gb = 3 * 2 * B * H * L * D_h / 1e9
    assert is_number(got["resident_gb"]) and got["resident_gb"] >= qkv_gb, (
        f"resident are q, k and v, {qkv_gb} GB, and what was alive before, not {got['resident_gb']}"
    )
    if not fits:
        assert got["peak_gb"] is None, "this cannot fit: its peak is None"
        return None
    peak_gb = count_attention(standard_attention, L, B, H, D_h).peak_bytes / 1e9
    assert is_near(got["peak_gb"], peak_gb), f"the peak is {peak_gb} GB, not {got['peak_gb']}"
    return got["resident_gb"] - qkv_gb


beside_gb = check_memory(512)  # whatever else is alive
### BEGIN HIDDEN TESTS
for L, B, H, D_h in [(1024, 1, 16, 128), (300, 2, 3, 64)]:
    assert abs(check_memory(L, B, H, D_h) - beside_gb) < 1e-4, "resident: q, k and v, once, and what else is alive"
check_memory(2_000_000, B=1, H=1, D_h=16, fits=False)
### END HIDDEN TESTS

# %% [markdown]
# The table for this machine. Lengths double until one would take too long here or does not fit: L = 32768 takes 69 GB,
# which an 80 GB GPU has and a 48 GB one has not.

# %%
print(f"{'L':>6}  {'resident':>10}  {'peak above':>13}")
seconds = 0.0
for L in (512, 1024, 2048, 4096, 8192, 16384, 32768):
    fails_at_once = rl.memory.available(device) < 2 * 16 * L * L
    if 4.5 * seconds > 10 and not fails_at_once:
        print(f"{L:>6}  left out: more than 10 s on this machine")
        continue
    start = time.perf_counter()
    row = attention_memory(L)
    seconds = time.perf_counter() - start
    peak = "out of memory" if row["peak_gb"] is None else f"{row['peak_gb']:.4f} GB"
    print(f"{L:>6}  {row['resident_gb']:7.4f} GB  {peak:>13}")

# %% [markdown]
# And one call over time. Each step is a tensor that comes or goes; the colours say which operation holds it.

# %%
q, k, v = make_qkv(1024)
with rl.memory.record() as timeline:
    standard_attention(q, k, v)
rl.plots.plot_memory_timeline(timeline, title="standard_attention, L = 1024: who holds what")

# %% [markdown]
# ## 5.1.2 Its law (3 points)
#
# Two matrices of B x H x L x L elements stand side by side at the peak.
#
# - `score_matrix_bytes(L, B, H, bytes_per_element)`: the bytes of *one* of them
# - `memory_order`: how the peak grows with L, `"L"`, `"L log L"`, `"L^2"` or `"L^3"`
# - `growth_when_doubled`: what a long sequence's peak is multiplied by when L doubles


# %% nbgrader={"grade_id": "q5_1_2", "solution": true}
memory_order = None
growth_when_doubled = None
### BEGIN SOLUTION
memory_order = "L^2"
growth_when_doubled = 4
### END SOLUTION


def score_matrix_bytes(L, B, H, bytes_per_element):
    """Bytes of one matrix of scores: an int."""
    ### BEGIN SOLUTION
    return bytes_per_element * B * H * L * L
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_1_2_test", "grade": true, "points": 3}
assert memory_order in ("L", "L log L", "L^2", "L^3"), 'one of "L", "L log L", "L^2", "L^3"'
assert is_count(score_matrix_bytes(8, 1, 1, 2)), "bytes are whole: return an int"
assert score_matrix_bytes(8, 1, 1, 2) == 128, "8 x 8 elements of 2 bytes"
### BEGIN HIDDEN TESTS
assert memory_order == "L^2"
assert is_near(growth_when_doubled, 4)
assert score_matrix_bytes(32768, 1, 16, 2) == 34_359_738_368, "34 GB for one prompt in one layer"
assert score_matrix_bytes(1024, 8, 12, 4) == 8 * 12 * 1024 * 1024 * 4
assert score_matrix_bytes(1, 1, 1, 1) == 1
### END HIDDEN TESTS

# %% [markdown]
# ## 5.1.3 Where it hurts (4 points)
#
# At the end of `standard_attention` these are alive, in 16 bit: q, k, v and the result, and the two L x L matrices of
# each head.
#
# - `largest_length(memory_gb, B, H, D_h)`: the largest L for which all of them fit into `memory_gb` GB
# - `overhead_ratio(L, D_h)`: the bytes of the two matrices over those of q, k, v and the result
# - `largest_overhead`: what a long sequence's memory goes to
#     - `"a"`: q, k and v
#     - `"b"`: the result
#     - `"c"`: the scores and the weights
#     - `"d"`: what the kernels themselves need
# - `troubled_scenario`: who meets the problem first
#     - `"a"`: decoding, one new token against a long cache
#     - `"b"`: prefill of a long prompt
#     - `"c"`: a large batch of short prompts
#     - `"d"`: a wide MLP


# %% nbgrader={"grade_id": "q5_1_3", "solution": true}
largest_overhead = None
troubled_scenario = None
### BEGIN SOLUTION
largest_overhead = "c"
troubled_scenario = "b"  # decoding has L_q = 1: its scores are one row
### END SOLUTION


def largest_length(memory_gb, B, H, D_h):
    """The largest L (an int) that fits: 2 bytes an element, GB = 1e9 bytes."""
    ### BEGIN SOLUTION
    # 2 B H (2 L^2 + 4 L D_h) <= bytes: the positive root, then to the integer below
    budget = memory_gb * 1e9 / (4 * B * H)
    L = int(-D_h + (D_h**2 + budget) ** 0.5)
    while L * L + 2 * D_h * L > budget:
        L -= 1
    while (L + 1) ** 2 + 2 * D_h * (L + 1) <= budget:
        L += 1
    return L
    ### END SOLUTION


def overhead_ratio(L, D_h):
    """Bytes of scores and weights over bytes of q, k, v and the result."""
    ### BEGIN SOLUTION
    return 2 * L * L / (4 * L * D_h)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_1_3_values_test", "grade": true, "points": 2}
assert largest_overhead in tuple("abcd") and troubled_scenario in tuple("abcd"), "choose a letter"
assert is_near(overhead_ratio(256, 128), 1), "at L = 256 both are as large"
### BEGIN HIDDEN TESTS
assert largest_overhead == "c"
assert troubled_scenario == "b"
assert is_near(overhead_ratio(32768, 128), 128)
assert is_near(overhead_ratio(1024, 64), 8)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_1_3_test", "grade": true, "points": 2}
def check_largest(memory_gb, B, H, D_h):
    L = largest_length(memory_gb, B, H, D_h)
    assert is_count(L), "a length is a whole number"

    def held(L):
        return 2 * B * H * (2 * L * L + 4 * L * D_h)

    assert held(L) <= memory_gb * 1e9, f"L = {L} takes {held(L) / 1e9} GB, more than {memory_gb}"
    assert held(L + 1) > memory_gb * 1e9, f"L = {L + 1} would fit into {memory_gb} GB too"


check_largest(1.0, 1, 16, 128)
### BEGIN HIDDEN TESTS
check_largest(80.0, 1, 16, 128)
check_largest(141.0, 8, 32, 64)
check_largest(0.001, 2, 3, 64)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.2 Flash attention against it
#
# Softmax seems to need a whole row of scores before it can start. It does not: keep the largest score so far and the
# sum of exponentials relative to it, and correct both when a larger score comes along. So a kernel can walk over the
# keys tile by tile, with a few numbers for each query, and no L x L matrix ever exists. That is flash attention, and
# `rl.attention(q, k, v)` is such a kernel. (In Lab 3 you write it yourself.)
#
# ## 5.2.1 Latency and memory of both (3 points)
#
# Write `compare_attention(L, B, H, D_h)`: of both on the same q, k and v in fp16, the median latency by `latency` (two
# calls to warm up, five measured) and the peak by `benchmark_memory`. Where one runs out of memory, both of its
# numbers are `None`.


# %% nbgrader={"grade_id": "q5_2_1", "solution": true}
def compare_attention(L, B=1, H=16, D_h=128):
    """{"standard": {"ms": ..., "peak_gb": ...}, "flash": {"ms": ..., "peak_gb": ...}}, fp16."""
    ### BEGIN SOLUTION
    q, k, v = make_qkv(L, B, H, D_h)
    rows = {}
    for name, fn in {"standard": standard_attention, "flash": rl.attention}.items():
        try:
            peak_gb, _ = benchmark_memory(fn, q, k, v)
            ms = latency(fn, q, k, v, warmup=2, repeat=5).median_ms
        except rl.OutOfMemoryError:
            peak_gb = ms = None
        rows[name] = {"ms": ms, "peak_gb": peak_gb}
    return rows
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_2_1_test", "grade": true, "points": 3}
def check_comparison(L, B, H, D_h):
    got = compare_attention(L, B, H, D_h)
    assert isinstance(got, dict) and set(got) == {"standard", "flash"}, '"standard" and "flash"'
    for name, fn in {"standard": standard_attention, "flash": rl.attention}.items():
        assert isinstance(got[name], dict) and set(got[name]) == {"ms", "peak_gb"}, (
            f'{name}: the keys are "ms" and "peak_gb"'
        )
        peak_gb = count_attention(fn, L, B, H, D_h).peak_bytes / 1e9
        assert is_near(got[name]["peak_gb"], peak_gb), (
            f"{name} at L = {L}: a peak of {peak_gb} GB, not {got[name]['peak_gb']}"
        )
        assert is_number(got[name]["ms"]) and 0 < got[name]["ms"] <= measure.elapsed_ms(), (
            f"{name}: {got[name]['ms']} is not its latency in ms"
        )
    return got


check_comparison(256, 1, 2, 64)
### BEGIN HIDDEN TESTS
check_comparison(512, 1, 16, 128)
rows = check_comparison(512, 1, 4, 64)
for name, fn in {"standard": standard_attention, "flash": rl.attention}.items():
    fastest = latency(fn, *make_qkv(512, 1, 4, 64), warmup=2, repeat=10).min_ms
    assert is_time_of(rows[name]["ms"], fastest), f"this is not the latency of {name}, in ms"
### END HIDDEN TESTS

# %% [markdown]
# Both at L = 256 ... 8192, as far as this machine gets in a few seconds.

# %%
compared = {}
seconds = 0.0
for L in (256, 512, 1024, 2048, 4096, 8192):
    if 4.5 * seconds > 15:
        print(f"L = {L}: left out, more than 15 s on this machine")
        continue
    start = time.perf_counter()
    compared[L] = compare_attention(L)
    seconds = time.perf_counter() - start


def column(kernel, quantity, scale=1.0):
    """One column of the table by length; None stays None."""
    values = {L: row[kernel][quantity] for L, row in compared.items()}
    return {L: value if value is None else value * scale for L, value in values.items()}


plot_flash_attn_improvement(
    {name: column(name, "ms") for name in ("standard", "flash")},
    "latency",
    title="Attention in fp16, H = 16, D_h = 128: latency",
)

# %%
plot_flash_attn_improvement(
    {name: column(name, "peak_gb", 1e9) for name in ("standard", "flash")},
    "memory",
    title="The same: peak memory of the call",
)

# %% [markdown]
# ## 5.2.2 Look inside (4 points)
#
# Profile both at B = 2, H = 12, L = 1024, D_h = 128 in bf16 under `default_schedule`, ten steps of one call each, and
# return what `count_cuda_kernels` says: the launches of *one* call by category. (On a GPU the library behind
# `rl.matmul` may add a small memory operation to each product; the profiler sees that too.)


# %% nbgrader={"grade_id": "q5_2_2", "solution": true}
def attention_launches(flash):
    """count_cuda_kernels of one call: rl.attention if `flash`, else standard_attention."""
    ### BEGIN SOLUTION
    q, k, v = make_qkv(1024, B=2, H=12, dtype="bfloat16")
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            (rl.attention if flash else standard_attention)(q, k, v)
            prof.step()
    return count_cuda_kernels(prof)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q5_2_2_test", "grade": true, "points": 4} rooflab={"seconds": 180}
def check_launches(flash):
    got = attention_launches(flash)
    assert isinstance(got, dict) and all(is_count(n) for n in got.values()), (
        "return the dict of count_cuda_kernels"
    )
    assert got.get("total") == sum(n for name, n in got.items() if name != "total"), (
        "the categories add up to the total"
    )
    return got


standard = check_launches(False)
assert standard["gemm"] == 2, "standard attention makes two matrix products a call"
### BEGIN HIDDEN TESTS
assert standard["softmax"] == 1 and standard["elementwise"] == 1, "scale and softmax"
assert standard["layernorm"] == 0, "no norm runs in attention"
flash = check_launches(True)
assert flash["total"] == 1 and flash["gemm"] == flash["softmax"] == 0, "one kernel does it all"
### END HIDDEN TESTS

# %%
print("standard:", attention_launches(False))
print("flash:   ", attention_launches(True))

# %% [markdown]
# ## 5.2.3 Three times why (3 points)
#
# Count both with `count_attention(fn, L)`, at B = 1, H = 16, D_h = 128 in fp16, and say it in numbers:
#
# - `intensity(flash, L)`: FLOPs over bytes moved (read and written), of either version
# - `traffic_ratio(L)`: the bytes that standard attention moves over those that flash attention moves
#
# (As in 1.4 a launch reads each input once. A flash kernel reads k and v again for each tile of queries, but these
# reads hit the cache as long as k and v of a head fit there.)
#
# and in choices, a sentence about each below:
#
# - `standard_bound`: is standard attention at L = 4096 `"memory"`- or `"compute"`-bound on an A6000 in fp16?
# - `how_flash_helps`
#     - `"a"`: it does fewer FLOPs
#     - `"b"`: it stores the matrix in a smaller type
#     - `"c"`: it leaves out pairs that matter little
#     - `"d"`: the scores live and die in on-chip memory; only q, k, v and the result touch the big one
# - `why_the_gain_grows`: why `traffic_ratio(L)` grows with L
#     - `"a"`: launches cost more for long sequences
#     - `"b"`: the bytes that flash saves grow as L², those that it still moves as L
#     - `"c"`: flash attention needs fewer FLOPs for each pair when L is large
#     - `"d"`: long sequences fit the caches better


# %% nbgrader={"grade_id": "q5_2_3", "solution": true}
standard_bound = None
how_flash_helps = None
why_the_gain_grows = None
### BEGIN SOLUTION
standard_bound = "memory"  # an AI of 43 FLOP/byte at most, and the ridge is 202
how_flash_helps = "d"
why_the_gain_grows = "b"

### END SOLUTION


def intensity(flash, L):
    """FLOP/byte of one call at B = 1, H = 16, D_h = 128, fp16."""
    ### BEGIN SOLUTION
    c = count_attention(rl.attention if flash else standard_attention, L)
    return c.flops / (c.bytes_read + c.bytes_written)
    ### END SOLUTION


def traffic_ratio(L):
    """Bytes moved by standard_attention over bytes moved by rl.attention."""
    ### BEGIN SOLUTION
    standard, flash = (count_attention(fn, L) for fn in (standard_attention, rl.attention))
    return (standard.bytes_read + standard.bytes_written) / (flash.bytes_read + flash.bytes_written)
    ### END SOLUTION


# %% [markdown] nbgrader={"grade_id": "q5_2_3_findings", "solution": true}
# *What I find (not graded):*


# %% nbgrader={"grade_id": "q5_2_3_test", "grade": true, "points": 3}
def check_why(L):
    moved = {}
    for flash, fn in {False: standard_attention, True: rl.attention}.items():
        c = count_attention(fn, L)
        moved[flash] = c.bytes_read + c.bytes_written
        expected = c.flops / moved[flash]
        assert is_near(intensity(flash, L), expected, 0.01), (
            f"the AI at flash = {flash}, L = {L} is {expected:.4g} FLOP/byte"
        )
    ratio = moved[False] / moved[True]
    assert is_near(traffic_ratio(L), ratio, 0.01), f"the ratio of bytes at L = {L} is {ratio:.4g}"


assert standard_bound in ("memory", "compute"), '"memory" or "compute"'
assert how_flash_helps in tuple("abcd") and why_the_gain_grows in tuple("abcd"), "choose a letter"
check_why(256)
### BEGIN HIDDEN TESTS
check_why(128)
check_why(1024)
assert standard_bound == "memory"
assert how_flash_helps == "d"
assert why_the_gain_grows == "b"
### END HIDDEN TESTS

# %% [markdown]
# Both versions on one roofline, measured here. The intensity of standard attention stops growing, at 43 FLOP/byte
# however long the sequence: left of the ridge of a GPU, and right of that of many a CPU, where even standard attention
# is compute-bound and flash attention saves more memory than time. The intensity of flash attention grows with L.

# %%
points = []
for name, fn in {"standard": standard_attention, "flash": rl.attention}.items():
    for L in (256, 512, 1024, 2048):
        time_here = latency(fn, *make_qkv(L), warmup=1, repeat=3)
        cost = count_attention(fn, L)
        points.append(rl.roofline.measured_point(f"L = {L}", cost, time_here, name))
rl.plots.plot_roofline(
    rl.machine.measure(device), points, dtype="float16", title="Attention in fp16, measured here"
)

# %% [markdown]
# **Where you stand.** You can count an operation's work and traffic from its shapes, read off the roofline which of
# the two binds it, measure how close it comes with an honest spread, and see in a profile what it is made of. And you
# have followed one matrix from its law to the kernel that does without it.
