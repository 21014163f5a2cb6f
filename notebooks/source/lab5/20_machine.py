# %% [markdown]
# # Part 2. The machine
#
# A GPU has many small processors, the **streaming multiprocessors** (SMs). An A100 has 108 of them. Each SM has
# ordinary arithmetic units, *vector* units, and *tensor cores*, which do nothing but multiply small matrices.
#
# ## 2.1 Peaks and ridges ({points q2_1})
#
# `SPECS["A100"].peak_tflop_s` holds the dense peaks of an A100 in TFLOP/s by dtype. `"float32"` is the vector units in
# exact fp32. `"float16"` is the tensor cores with 16-bit inputs, and `"tfloat32"` the tensor cores with inputs that
# were cut to 19 bits. `SPECS["A100"].bandwidth_tb_s` is the bandwidth of its memory, in TB/s.
#
# - `tensor_gain(name)`: by which factor are 16-bit tensor cores faster than fp32 on the vector units?
# - `ridge_16bit(name)`: the arithmetic intensity in FLOP/byte from which 16-bit products can be compute-bound
# - `more_than_ten`: a lecture says that tensor cores are "more than 10 times as fast". List those of the five GPUs
#   A100, H100, T4, A6000 and RTX 4090 for which that is true
# - `gain_of_ten_years`: `lab5.SILICON_GAINS` has the factors by which GPUs became faster at AI within about ten years.
#   What do they make together?

# %%
rows = [
    (name, spec.sm_count or "", spec.peak_tflop_s["float32"], spec.peak_tflop_s["float16"], spec.bandwidth_tb_s)
    for name, spec in SPECS.items()
    if spec.kind == "gpu"
]
Table(("GPU", "SMs", "fp32 TFLOP/s", "16-bit TFLOP/s", "TB/s"), rows, title="Datasheets, all peaks dense")

# %% nbgrader={"grade_id": "q2_1", "solution": true}
more_than_ten = []
gain_of_ten_years = None
### BEGIN SOLUTION
more_than_ten = ["A100", "H100"]
gain_of_ten_years = 16 * 12.5 * 2.5 * 2
### END SOLUTION


def tensor_gain(name):
    """16-bit tensor peak over fp32 vector peak of a GPU."""
    ### BEGIN SOLUTION
    peaks = SPECS[name].peak_tflop_s
    return peaks["float16"] / peaks["float32"]
    ### END SOLUTION


def ridge_16bit(name):
    """FLOP/byte from which 16-bit products can be compute-bound."""
    ### BEGIN SOLUTION
    spec = SPECS[name]
    return spec.peak_tflop_s["float16"] / spec.bandwidth_tb_s
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 2}
gain_hint = 'divide the dense peak "float16" by "float32"'
assert_values(tensor_gain, {("L4",): 3.99340, ("RTX 3090",): 1.99438}, gain_hint)
ridge_hint = "the 16-bit peak over the bandwidth, both in the same unit of 10¹²"
assert_values(ridge_16bit, {("L4",): 403.333, ("A100 SXM 40GB",): 200.643}, ridge_hint)
### BEGIN HIDDEN TESTS
gains = {"A100": 16.0, "H100": 14.789, "T4": 8.0247, "A6000": 4.0, "RTX 4090": 2.0}
assert_values(tensor_gain, {(name,): gain for name, gain in gains.items()}, gain_hint)
ridges = {"T4": 203.125, "A100": 153.016, "H100": 295.343, "H200": 206.146, "B200": 281.25}
assert_values(ridge_16bit, {(name,): ridge for name, ridge in ridges.items()}, ridge_hint)
for name, spec in SPECS.items():
    if spec.kind == "gpu":
        half, single = spec.peak_tflop_s["float16"], spec.peak_tflop_s["float32"]
        assert_values(tensor_gain, {(name,): half / single}, gain_hint)
        assert_values(ridge_16bit, {(name,): half / spec.bandwidth_tb_s}, ridge_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_ten_test", "grade": true, "points": 1}
assert isinstance(more_than_ten, (list, tuple)) and len(more_than_ten) > 0, "more_than_ten is a list of names"
unknown = [name for name in more_than_ten if name not in ("A100", "H100", "T4", "A6000", "RTX 4090")]
assert not unknown, f"more_than_ten names {unknown}, which is none of the five GPUs"
### BEGIN HIDDEN TESTS
assert set(more_than_ten) == {"A100", "H100"}, "more_than_ten: call tensor_gain for each of the five"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_gain_test", "grade": true, "points": 1}
assert is_number(gain_of_ten_years) and gain_of_ten_years > 0, "gain_of_ten_years is a number"
### BEGIN HIDDEN TESTS
assert is_near(gain_of_ten_years, 1000, 1e-3), "gain_of_ten_years: factors that act on each other are multiplied"
### END HIDDEN TESTS

# %%
rl.plots.plot_ridges(["T4", "A100", "A6000", "RTX 4090", "H100", "L4", "H200", "RTX 5090", "B200"])

# %% [markdown]
# A ridge is a demand: so many FLOPs must be done with each byte, or the units stand still. New units raise it, and new
# memory brings it down again: compare H100 and H200, which differ in their memory. Tensor cores ask for 100 to 400
# FLOPs with each byte, and only products of large matrices have as many.
#
# Of the factor 1000 of ten years, little came from smaller transistors. Most of it came from shorter numbers and from
# instructions that do more at once. Both are of use to products of matrices, and to little else.
#
# ## 2.2 Many bytes under way ({points q2_2})
#
# A load from memory takes long. On an A100, which runs at 1.41 GHz, somebody measured how many clock cycles pass until
# the value is there:

# %%
latencies = SPECS["A100 SXM 40GB"].latency_cycles
print(SPECS["A100 SXM 40GB"].sources["latency"])
Table(("memory", "cycles"), list(latencies.items()), title="Latencies of an A100")

# %% [markdown]
# Meanwhile the memory could deliver many other bytes. To keep it busy, so many bytes have to be *under way* at any
# moment as it delivers within one latency. This is Little's law.
#
# - `latency_ns(cycles, ghz)`: so many clock cycles in nanoseconds
# - `bytes_in_flight(bandwidth, cycles, ghz)`: bytes that have to be under way to use a bandwidth, in byte/s, in full
# - `bursts_per_sm(bandwidth, cycles, ghz, sms, burst)`: bursts of `burst` bytes that each of `sms` SMs has to have
#   under way at least: an `int`
# - `shared_gain`: how many times longer does a load from global memory take than one from shared memory, in cycles?

# %% nbgrader={"grade_id": "q2_2", "solution": true}
shared_gain = None
### BEGIN SOLUTION
shared_gain = 290 / 23
### END SOLUTION


def latency_ns(cycles, ghz):
    """Clock cycles in nanoseconds."""
    ### BEGIN SOLUTION
    return cycles / ghz
    ### END SOLUTION


def bytes_in_flight(bandwidth, cycles, ghz):
    """Bytes that have to be under way to use a bandwidth (byte/s) in full."""
    ### BEGIN SOLUTION
    return bandwidth * latency_ns(cycles, ghz) * 1e-9
    ### END SOLUTION


def bursts_per_sm(bandwidth, cycles, ghz, sms, burst):
    """Bursts that each SM has to have under way at least: an int."""
    ### BEGIN SOLUTION
    return math.ceil(bytes_in_flight(bandwidth, cycles, ghz) / sms / burst)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 2}
latency_hint = "a clock of 1 GHz ticks once a nanosecond"
assert_values(latency_ns, {(100, 2.0): 50.0, (33, 1.0): 33.0}, latency_hint)
flight_hint = "byte/s times the seconds of one latency; a nanosecond is 10⁻⁹ s"
assert_values(bytes_in_flight, {(1e12, 100, 2.0): 50000.0, (2e12, 500, 1.0): 1e6}, flight_hint)
burst_hint = "the bytes under way are shared by the SMs, and a part of a burst is one more burst"
assert_values(bursts_per_sm, {(1e12, 100, 2.0, 10, 128): 40, (1e12, 100, 2.0, 10, 32): 157}, burst_hint)
assert_values(bursts_per_sm, {(1e12, 100, 2.0, 20, 1250): 2}, burst_hint)
### BEGIN HIDDEN TESTS
assert_values(latency_ns, {(290, 1.41): 205.674, (23, 1.41): 16.312}, latency_hint)
assert_values(bytes_in_flight, {(1.555e12, 290, 1.41): 319822.7, (3.35e12, 560, 1.755): 1068946.0}, flight_hint)
assert_values(bursts_per_sm, {(1.555e12, 290, 1.41, 108, 128): 24, (1.555e12, 290, 1.41, 108, 32): 93}, burst_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_shared_test", "grade": true, "points": 1}
assert is_number(shared_gain) and shared_gain > 1, "shared_gain is a number larger than 1"
### BEGIN HIDDEN TESTS
assert is_near(shared_gain, 290 / 23, 2e-3), 'shared_gain: divide the cycles of "global" by those of "shared load"'
### END HIDDEN TESTS

# %%
under_way = [round(128 * 2 ** (step / 8)) for step in range(65)]
delivered = {
    f"latency of {memory}, {cycles} cycles": {
        size: min(1.555e12, 108 * size / (latency_ns(cycles, 1.41) * 1e-9)) for size in under_way
    }
    for memory, cycles in (("global memory", 290), ("L2", 200))
}
title = "What an A100 delivers, by the bytes under way"
rl.plots.plot_lines(delivered, "B/s", "bandwidth", xlabel="bytes under way in each SM", title=title)

# %% [markdown]
# A processor hides its latencies with caches and guesses. A GPU hides them with *other threads*: while one waits,
# others have loads under way. One thread alone would see 4 bytes in 206 ns. This is why a GPU needs thousands of
# threads at work, and why their number, and not the speed of one of them, decides.
#
# ## 2.3 Thirty-two lanes, one instruction ({points q2_3})
#
# Threads come in **warps** of 32. In every step all 32 lanes of a warp do the *same* instruction. What if they meet an
# `if`, and some take one branch and some the other? Then the warp runs both branches, one after the other, and in each
# of them the lanes that do not belong there stand idle.
#
# - `warp_cost(mask, a, b)`: the cost of `if` with a branch that costs a and an `else` that costs b, for one warp.
#   `mask` lists for each of the 32 lanes whether it takes the first branch
# - `diverged_share(p)`: each lane takes the first branch with the probability p, independently of the others. Which
#   share of the warps runs both?


# %% nbgrader={"grade_id": "q2_3", "solution": true}
def warp_cost(mask, a, b):
    """What the two branches cost one warp."""
    ### BEGIN SOLUTION
    return (a if any(mask) else 0) + (b if not all(mask) else 0)
    ### END SOLUTION


def diverged_share(p):
    """The share of warps in which both branches run."""
    ### BEGIN SOLUTION
    return 1 - p**32 - (1 - p) ** 32
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_3_test", "grade": true, "points": 2}
def check_warp(mask, a, b, cost):
    got = warp_cost(list(mask), a, b)
    case = f"warp_cost of {sum(mask)} lanes in the first branch, a = {a}, b = {b},"
    assert is_number(got), f"{case} has to return a number, and not {got!r}"
    assert got == cost, f"{case} gave {got}: a branch costs the whole warp, if any lane takes it, and else nothing"


check_warp([True] * 32, 10, 3, cost=10)
check_warp([False] * 32, 10, 3, cost=3)
check_warp([True] + [False] * 31, 10, 3, cost=13)
check_warp([True, False] * 16, 4, 4, cost=8)
### BEGIN HIDDEN TESTS
rng = np.random.default_rng(23)
for taken in (0, 1, 2, 16, 31, 32):
    a, b = (int(one) for one in rng.integers(1, 1000, 2))
    mask = [bool(one) for one in rng.permutation([True] * taken + [False] * (32 - taken))]
    check_warp(mask, a, b, cost=a * (taken > 0) + b * (taken < 32))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_3_share_test", "grade": true, "points": 1}
share_hint = "a warp runs one branch only if all of its 32 lanes take the first, or all of them the second"
assert_values(diverged_share, {(0.0,): 0.0, (1.0,): 0.0, (0.02,): 0.476113, (0.95,): 0.806289}, share_hint)
### BEGIN HIDDEN TESTS
assert_values(diverged_share, {(0.01,): 0.275020, (0.05,): 0.806289, (0.1,): 0.965662}, share_hint)
assert_values(diverged_share, {(p,): 1 - p**32 - (1 - p) ** 32 for p in (0.001, 0.3, 0.5, 0.99)}, share_hint)
### END HIDDEN TESTS

# %%
rows = [(f"{p:.0%}", f"{diverged_share(p):.1%}") for p in (0.01, 0.05, 0.1, 0.5)]
Table(("lanes in the first branch", "warps that run both"), rows, title="What is rare for one is not rare for 32")

# %% [markdown]
# A branch that one lane in twenty takes is run by four warps in five. So what is rare for a thread is common for a
# warp, and it pays to sort the work before it is handed out.
