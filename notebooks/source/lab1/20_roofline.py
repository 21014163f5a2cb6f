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
