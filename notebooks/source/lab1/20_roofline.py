# %% [markdown]
# # Part 2. The roofline
#
# A processor has several levels of memory. Further from the arithmetic units, a level is slower, and mostly larger.

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
# How fast could a matrix product be on a given GPU? Its arithmetic intensity and the roof give the answer. Write three
# functions. Here and below you may call your functions of earlier questions.
#
# - `gemm_intensity(N)`: the AI in FLOP/byte of an (N, N) x (N, N) product in fp32, with compulsory bytes. Remember that
#   one MAC is two FLOPs.
# - `attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s)`: the height of the roof at one AI.
# - `draw_on_a6000(points)`: the roofline of an RTX A6000 in fp32 with `points`, a dict from a label to an AI. Return
#   the figure that `plot_roofline(gpu_name, peak_flops, peak_bandwidth, operations)` makes. It takes the peak in
#   TFLOP/s, the bandwidth in TB/s, and the points as `operations`. The GPU's figures are in `GPU_SPECS["A6000"]`, as
#   `"fp32_tflops"` and `"memory_bandwidth_tb_s"`.
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
    said = f"gemm_intensity({N}): expected {flops} FLOPs / {moved} bytes, got {gemm_intensity(N)}"
    assert is_near(gemm_intensity(N), flops / moved), said
said = f"gemm_points has to be a dict with four entries, got {gemm_points!r}"
assert isinstance(gemm_points, dict) and len(gemm_points) == 4, said
said = "gemm_points: each value has to be a number, the AI in FLOP/byte"
assert all(is_number(value) for value in gemm_points.values()), said
for value, N in zip(sorted(gemm_points.values()), (1024, 2048, 4096, 8192), strict=True):
    said = f"gemm_points: no value is your gemm_intensity({N}) = {gemm_intensity(N)}"
    assert is_near(value, gemm_intensity(N), 1e-3), said
### BEGIN HIDDEN TESTS
for N in (measure.draw(7, 999), 1024, 2048, 4096, 8192):
    assert is_near(gemm_intensity(N), N / 6), f"gemm_intensity({N}): count FLOPs and bytes again"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_1_1_roof_test", "grade": true, "points": 2}
def check_roof(intensity, peak_tflop_s, bandwidth_tb_s, expected):
    got = attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s)
    case = f"AI {intensity} FLOP/byte, {peak_tflop_s} TFLOP/s, {bandwidth_tb_s} TB/s"
    assert is_near(got, expected), f"{case}: expected {expected} TFLOP/s, got {got}; which limit is lower here?"


check_roof(1000.0, 38.7, 0.768, expected=38.7)  # right of the ridge: the peak
check_roof(10.0, 38.7, 0.768, expected=7.68)  # left of the ridge: bandwidth times AI
check_roof(0.25, 2.0, 0.1, expected=0.025)
check_roof(20.0, 2.0, 0.1, expected=2.0)  # on the ridge
### BEGIN HIDDEN TESTS
check_roof(13.9, 67.0, 4.8, expected=66.72)
check_roof(14.0, 67.0, 4.8, expected=67.0)
peak, bandwidth, share = float(measure.draw(20, 90)), measure.draw(5, 40) / 10, measure.draw(5, 95) / 100
check_roof(share * peak / bandwidth, peak, bandwidth, expected=share * peak)
check_roof(peak / bandwidth / share, peak, bandwidth, expected=peak)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_1_1_plot_test", "grade": true, "points": 1}
def check_drawn(points):
    seen = measure.drawn(draw_on_a6000, points)
    said = "draw the points with plot_roofline: both axes have to be logarithmic"
    assert all(scales == ("log", "log") for scales in seen.scales), said
    said = f"{len(points)} points were given, and {len(seen.points)} markers are drawn: draw these points alone"
    assert len(seen.points) <= 3 * len(points), said  # a label or a ridge may have a marker too
    for intensity in points.values():
        on_the_roof = min(38.7e12, 0.768e12 * intensity)
        assert seen.has(intensity, on_the_roof), f"no point is drawn at AI {intensity} on the fp32 roof of an A6000"


check_drawn({"memory-bound": 2.0, "compute-bound": 300.0})
### BEGIN HIDDEN TESTS
check_drawn({1: measure.draw(1, 80) / 2, 2: 45.0, 3: float(measure.draw(60, 900))})
### END HIDDEN TESTS

# %%
draw_on_a6000(gemm_points)

# %% [markdown]
# These points are not measured. They are drawn *on* the roof, at their intensity, and show what is possible.
#
# ## 2.1.2 From which N is GEMM compute-bound? ({points q2_1_2})
#
# Small products are memory-bound and large ones are compute-bound. Find the border on an A6000 in fp32, with the
# numbers that it is derived from:
#
# - `ridge_flop_per_byte`: the ridge;
# - `smallest_n`: the smallest N whose AI reaches the ridge. An AI equal to the ridge counts as compute-bound;
# - `ai_at_smallest_n` and `ai_one_below`: the AI at that N, and at N - 1.
#
# Then write `smallest_compute_bound_n(peak_tflop_s, bandwidth_tb_s, bytes_per_element)`: the smallest N on any machine,
# for any size of the elements. The peak and the bytes must belong to the same dtype. An fp32 peak with bf16 bytes is a
# common mistake, and the result means nothing.


# %% nbgrader={"grade_id": "q2_1_2", "solution": true}
def smallest_compute_bound_n(peak_tflop_s, bandwidth_tb_s, bytes_per_element):
    """Smallest N for which an (N, N) x (N, N) product is compute-bound: an int."""
    ### BEGIN SOLUTION
    # AI = 2 N^3 / (3 N^2 * bytes) = 2 N / (3 * bytes) >= peak / bandwidth
    return int(np.ceil(3 * bytes_per_element * (peak_tflop_s / bandwidth_tb_s) / 2))
    ### END SOLUTION


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

# %% nbgrader={"grade_id": "q2_1_2_test", "grade": true, "points": 1} rooflab={"needs": ["q2_1_1"]}
said = f"ridge_flop_per_byte has to be a positive number, got {ridge_flop_per_byte!r}"
assert is_number(ridge_flop_per_byte) and ridge_flop_per_byte > 0, said
assert is_count(smallest_n), f"smallest_n has to be an int, got {smallest_n!r}"
### BEGIN HIDDEN TESTS
said = "ridge_flop_per_byte: where does the slope of the roof meet its flat top? Use the fp32 figures"
assert is_near(ridge_flop_per_byte, 38.7 / 0.768, 1e-3), said
assert smallest_n == 303, "smallest_n: is its AI at or above the ridge, and that of N - 1 below it?"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_2_derivation_test", "grade": true, "points": 2}
assert is_number(ai_at_smallest_n) and is_number(ai_one_below), "ai_at_smallest_n and ai_one_below have to be numbers"
said = f"ridge_flop_per_byte has to be a positive number, got {ridge_flop_per_byte!r}"
assert is_number(ridge_flop_per_byte) and ridge_flop_per_byte > 0, said
said = f"your ridge_flop_per_byte has to lie between the two, got {ai_one_below} and {ai_at_smallest_n}"
assert ai_one_below < ridge_flop_per_byte <= ai_at_smallest_n, said
### BEGIN HIDDEN TESTS
assert is_near(ai_at_smallest_n, 50.5, 1e-4), "ai_at_smallest_n: use gemm_intensity of 2.1.1"
assert is_near(ai_one_below, 302 / 6, 1e-4), "ai_one_below: use gemm_intensity of 2.1.1"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_1_2_function_test", "grade": true, "points": 2}
def check_smallest(peak, bandwidth, size, expected):
    got = smallest_compute_bound_n(peak, bandwidth, size)
    case = f"{peak} TFLOP/s, {bandwidth} TB/s, {size} bytes an element"
    assert is_count(got), f"{case}: N has to be an int, got {got!r}"
    assert got == expected, f"{case}: expected N = {expected}, got {got}; write the AI as a function of N and the bytes"


check_smallest(50.0, 1.0, 4, expected=300)  # its AI is exactly the ridge
check_smallest(50.5, 1.0, 4, expected=303)
check_smallest(50.0001, 1.0, 4, expected=301)
check_smallest(100.0, 1.0, 2, expected=300)
### BEGIN HIDDEN TESTS
check_smallest(38.7, 0.768, 4, expected=303)
check_smallest(154.8, 0.768, 2, expected=605)
check_smallest(989.4, 3.35, 2, expected=887)
N, size, bandwidth = measure.draw(50, 900), 2 ** measure.draw(0, 3), measure.draw(5, 40) / 10
peak = round(bandwidth * (2 * N - 1) / (3 * size), 3)  # N - 1/2 would lie on the ridge
check_smallest(peak, bandwidth, size, expected=N)
check_smallest(16.0, 1.0, 8, expected=192)
### END HIDDEN TESTS
