# %% [markdown]
# # Part 2. The roofline
#
# A processor has several levels of memory. Each level is larger than the one above it, and slower.

# %%
rl.plots.plot_memory_hierarchy()

# %% [markdown]
# Divide work by traffic and you get the **arithmetic intensity** (AI) in FLOP/byte: how much arithmetic is done for
# each byte that is moved. Let a machine move at most $\beta$ TB/s and compute at most $\pi$ TFLOP/s. Then it can run no
# faster than
#
# $$P(\mathrm{AI}) = \min(\pi,\ \beta \cdot \mathrm{AI}) \quad \text{TFLOP/s}.$$
#
# This is the roof: first a slope, then a flat top. The two meet at the **ridge**, AI $= \pi / \beta$.
#
# - Left of the ridge an operation is *memory-bound*. It waits for bytes, and more arithmetic units would not help.
# - From the ridge on it is *compute-bound*.
#
# The model was published by Williams, Waterman and Patterson:
# [Roofline: an insightful visual performance model](https://doi.org/10.1145/1498765.1498785) (2009).
#
# ## 2.1.1 Square GEMM under a roof ({points q2_1_1})
#
# How fast could a matrix product be on a given GPU? Its intensity and the roof tell. Write three functions. Here and
# below you may call your functions of earlier questions.
#
# - `gemm_intensity(N)`: the AI in FLOP/byte of an (N, N) x (N, N) product in fp32, with compulsory bytes. Remember that
#   one MAC is two FLOPs.
# - `attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s)`: the height of the roof at one AI.
# - `draw_on_a6000(points)`: the roofline of an RTX A6000 in fp32 with `points`, a dict from a label to an AI. Return
#   the figure that `plot_roofline(gpu_name, peak_flops, peak_bandwidth, points)` makes (TFLOP/s and TB/s). The GPU's
#   figures are in `GPU_SPECS["A6000"]`, as `"fp32_tflops"` and `"memory_bandwidth_tb_s"`.
#
# Fill `gemm_points` with the AI for N = 1024, 2048, 4096 and 8192. The keys are labels of your choice.


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


def draw_on_a6000(points):
    """The roofline of an A6000 in fp32 with `points`, {label: AI}: the figure of plot_roofline."""
    ### BEGIN SOLUTION
    a6000 = GPU_SPECS["A6000"]
    return plot_roofline("A6000", a6000["fp32_tflops"], a6000["memory_bandwidth_tb_s"], points)
    ### END SOLUTION


gemm_points = {}  # label: AI in FLOP/byte, for N = 1024, 2048, 4096, 8192
### BEGIN SOLUTION
gemm_points = {f"GEMM {N}": gemm_intensity(N) for N in (1024, 2048, 4096, 8192)}
### END SOLUTION

# %% nbgrader={"grade_id": "q2_1_1_test", "grade": true, "points": 2} rooflab={"needs": ["q1_3", "q1_4"]}
for N, flops, moved in [(6, 432, 432), (100, 2_000_000, 120_000), (1, 2, 12)]:
    assert is_near(gemm_intensity(N), flops / moved), f"gemm_intensity({N}): count FLOPs and bytes at that size again"
assert isinstance(gemm_points, dict) and len(gemm_points) == 4, "one point for each of the four sizes"
assert all(is_number(value) for value in gemm_points.values()), "every point is a number"
for value, N in zip(sorted(gemm_points.values()), (1024, 2048, 4096, 8192), strict=True):
    assert is_near(value, gemm_intensity(N), 1e-3), f"gemm_points: one of them is not your gemm_intensity({N})"
### BEGIN HIDDEN TESTS
for N in (303, 1024, 2048, 4096, 8192):
    assert is_near(gemm_intensity(N), N / 6), f"gemm_intensity({N}): count FLOPs and bytes at that size again"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_1_roof_test", "grade": true, "points": 2}
assert is_near(attainable_tflop_s(1000.0, 38.7, 0.768), 38.7), "far right of the ridge: the peak"
assert is_near(attainable_tflop_s(10.0, 38.7, 0.768), 7.68), "left of the ridge: bandwidth times AI"
assert is_near(attainable_tflop_s(0.25, 2.0, 0.1), 0.025), "a slower machine, left of its ridge"
assert is_near(attainable_tflop_s(20.0, 2.0, 0.1), 2.0), "a slower machine, on its ridge"
### BEGIN HIDDEN TESTS
for intensity, expected in [(0.5, 2.4), (13.9, 66.72), (14.0, 67.0)]:
    got = attainable_tflop_s(intensity, 67.0, 4.8)
    assert is_near(got, expected), f"67 TFLOP/s and 4.8 TB/s, AI {intensity}: on which side of the ridge is it?"
assert is_near(attainable_tflop_s(0.125, 0.2, 0.04), 0.005), "0.2 TFLOP/s and 0.04 TB/s: the slope is the bandwidth"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_1_1_plot_test", "grade": true, "points": 1}
def check_drawn(points):
    seen = measure.drawn(draw_on_a6000, points)
    assert all(scales == ("log", "log") for scales in seen.scales), "draw it with plot_roofline, on logarithmic axes"
    for intensity in points.values():
        on_the_roof = min(38.7e12, 0.768e12 * intensity)
        assert seen.has(intensity, on_the_roof), f"no point is drawn at AI {intensity} on the fp32 roof of an A6000"


check_drawn({"memory-bound": 2.0, "compute-bound": 300.0})
### BEGIN HIDDEN TESTS
check_drawn({1: 0.5, 2: 40.0, 3: 60.0})
### END HIDDEN TESTS

# %%
draw_on_a6000(gemm_points)

# %% [markdown]
# These points were not measured. They are drawn *on* the roof, and they show what is possible.
#
# ## 2.1.2 From which N is GEMM compute-bound? ({points q2_1_2})
#
# Small products are memory-bound and large ones are compute-bound. Find the border on an A6000 in fp32, with its
# derivation:
#
# - `ridge_flop_per_byte`: the ridge;
# - `smallest_n`: the smallest N whose AI reaches the ridge. An AI equal to the ridge counts as compute-bound;
# - `ai_at_smallest_n` and `ai_one_below`: the AI at that N, and at N - 1.
#
# Then write it as a function of the machine and of the bytes per element. The peak and the bytes must belong to the
# same dtype. An fp32 peak with bf16 bytes is a common mistake, and the result means nothing.


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


# %% nbgrader={"grade_id": "q2_1_2_test", "grade": true, "points": 1} rooflab={"needs": ["q2_1_1"]}
assert is_near(ridge_flop_per_byte, 38.7 / 0.768, 1e-3), "the ridge is the peak over the bandwidth"
assert is_count(smallest_n), "smallest_n is a whole number"
### BEGIN HIDDEN TESTS
assert smallest_n == 303, "smallest_n: is its AI at or above the ridge, and that of N - 1 below it?"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_2_derivation_test", "grade": true, "points": 2}
assert is_number(ai_at_smallest_n) and is_number(ai_one_below), "both intensities are numbers"
assert ai_one_below < 38.7 / 0.768 <= ai_at_smallest_n, "the ridge lies between the two intensities"
### BEGIN HIDDEN TESTS
assert is_near(ai_at_smallest_n, 50.5, 1e-4), "ai_at_smallest_n: use gemm_intensity of 2.1.1"
assert is_near(ai_one_below, 302 / 6, 1e-4), "ai_one_below: use gemm_intensity of 2.1.1"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_2_function_test", "grade": true, "points": 2}
assert is_count(smallest_compute_bound_n(38.7, 0.768, 4)), "N is a whole number: return an int"
assert smallest_compute_bound_n(50.0, 1.0, 4) == 300, "50 TFLOP/s, 1 TB/s, fp32: an AI that equals the ridge counts"
assert smallest_compute_bound_n(50.1, 1.0, 4) == 301, "50.1 TFLOP/s, 1 TB/s, fp32: does this N reach the ridge?"
assert smallest_compute_bound_n(100.0, 1.0, 2) == 300, "100 TFLOP/s, 1 TB/s, 2 bytes an element: how many bytes move?"
### BEGIN HIDDEN TESTS
for peak, bandwidth, size, N in [
    (38.7, 0.768, 4, 303),
    (154.8, 0.768, 2, 605),
    (66.9, 3.35, 4, 120),
    (989.4, 3.35, 2, 887),
    (16.0, 1.0, 8, 192),
]:
    case = f"{peak} TFLOP/s, {bandwidth} TB/s, {size} bytes an element"
    got = smallest_compute_bound_n(peak, bandwidth, size)
    assert is_count(got) and got == N, f"{case}: start from the AI as a function of N and of the bytes per element"
### END HIDDEN TESTS
