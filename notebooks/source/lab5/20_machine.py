# %% [markdown]
# # Part 2. The machine
#
# A GPU consists of many **streaming multiprocessors** (SMs). An A100 has 108 of them. Each SM has ordinary arithmetic
# units, called *vector* units, and *tensor cores*, which only multiply small matrices.
#
# ## 2.1 Peaks and ridges ({points q2_1})
#
# `SPECS["A100"].peak_tflop_s` is a dict with the dense peaks of an A100 in TFLOP/s by dtype. `"float32"` is the peak of
# the vector units in fp32, and `"float16"` is the peak of the tensor cores with 16-bit inputs.
# `SPECS["A100"].bandwidth_tb_s` is the bandwidth of its memory in TB/s. In the two functions, `name` is a key of
# `SPECS`. `"A100"` and `"H100"` are short names of the rows A100 SXM 80GB and H100 SXM of the table.
#
# - `tensor_gain(name)`: how many times faster the tensor cores are with 16-bit inputs than the vector units in fp32
# - `ridge_16bit(name)`: the ridge for 16-bit products, the arithmetic intensity in FLOP/byte from which they can be
#   compute-bound
# - `more_than_ten`: a lecture says that tensor cores are "more than 10 times as fast". List the names of the GPUs for
#   which that is true, among A100, H100, T4, A6000 and RTX 4090.
# - `gain_of_ten_years`: the dict `lab5.SILICON_GAINS` lists four reasons why GPUs became faster at AI within about ten
#   years, each with its factor. What is the total factor?

# %%
rows = [
    (name, spec.sm_count or "", spec.peak_tflop_s["float32"], spec.peak_tflop_s["float16"], spec.bandwidth_tb_s)
    for name, spec in SPECS.items()
    if spec.kind == "gpu"
]
Table(("GPU", "SMs", "fp32 TFLOP/s", "16-bit TFLOP/s", "TB/s"), rows, title="Datasheets, all peaks dense")


# %% nbgrader={"grade_id": "q2_1", "solution": true}
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


more_than_ten = []
gain_of_ten_years = None
### BEGIN SOLUTION
more_than_ten = ["A100", "H100"]
gain_of_ten_years = 16 * 12.5 * 2.5 * 2
### END SOLUTION

# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 2}
gain_hint = "which two peaks of the dict does the question compare?"
assert_values(tensor_gain, {("L4",): 3.99340, ("RTX 3090",): 1.99438}, gain_hint)
ridge_hint = "at which intensity do arithmetic and memory take the same time? Mind the units of both"
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
said = f"more_than_ten must be a list of names, got {more_than_ten!r}"
assert isinstance(more_than_ten, (list, tuple)) and len(more_than_ten) > 0, said
unknown = [name for name in more_than_ten if name not in ("A100", "H100", "T4", "A6000", "RTX 4090")]
assert not unknown, f"more_than_ten contains {unknown}, expected names of the five GPUs only"
### BEGIN HIDDEN TESTS
said = f"more_than_ten is not {more_than_ten}: call tensor_gain for each of the five GPUs"
assert set(more_than_ten) == {"A100", "H100"}, said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_1_gain_test", "grade": true, "points": 1}
said = f"gain_of_ten_years must be a positive number, got {gain_of_ten_years!r}"
assert is_number(gain_of_ten_years) and gain_of_ten_years > 0, said
### BEGIN HIDDEN TESTS
said = f"gain_of_ten_years is not {gain_of_ten_years}: how do independent speed-ups combine?"
assert is_near(gain_of_ten_years, 1000, 1e-3), said
### END HIDDEN TESTS

# %%
rl.plots.plot_ridges(["T4", "A100", "A6000", "RTX 4090", "H100", "L4", "H200", "RTX 5090", "B200"])

# %% [markdown]
# A ridge says how many FLOPs a kernel must do with each byte to keep the arithmetic units busy. New arithmetic units
# raise it, and new memory lowers it: H100 and H200 differ only in their memory. Tensor cores need 100 to 400 FLOPs per
# byte. Only products of large matrices have such an intensity.
#
# Of the total factor in ten years, smaller transistors contributed little. Most of it came from shorter numbers and
# from instructions that do more at once. Both help matrix products, and hardly anything else.
#
# ## 2.2 Bytes in flight ({points q2_2})
#
# A load from memory takes long. These latencies were measured on an A100 with a clock of 1.41 GHz. They are the clock
# cycles from a load until its value has arrived:

# %% tags=["setup"]
latencies = SPECS["A100 SXM 40GB"].latency_cycles

# %%
print(SPECS["A100 SXM 40GB"].sources["latency"])
Table(("memory", "cycles"), list(latencies.items()), title="Latencies of an A100")

# %% [markdown]
# During one latency the memory could deliver many other bytes. To use its full bandwidth, that many bytes must be on
# their way at any moment: requested, but not yet delivered. They are called bytes *in flight*, and their number is
# bandwidth times latency. This is Little's law.
#
# - `latency_ns(cycles, ghz)`: the duration of `cycles` clock cycles in nanoseconds, with a clock of `ghz` GHz
# - `bytes_in_flight(bandwidth, cycles, ghz)`: the bytes that have to be in flight to use the full `bandwidth`, in
#   byte/s
# - `bursts_per_sm(bandwidth, cycles, ghz, sms, burst)`: these bytes are requested by `sms` SMs, in bursts of `burst`
#   bytes. At least how many bursts must each SM have in flight? An `int`
# - `shared_gain`: how many times longer a load from global memory takes than one from shared memory, in cycles. The
#   dict `latencies` has the numbers of the table.


# %% nbgrader={"grade_id": "q2_2", "solution": true}
def latency_ns(cycles, ghz):
    """The duration of `cycles` clock cycles in nanoseconds."""
    ### BEGIN SOLUTION
    return cycles / ghz
    ### END SOLUTION


def bytes_in_flight(bandwidth, cycles, ghz):
    """Bytes that have to be in flight to use the full bandwidth (byte/s)."""
    ### BEGIN SOLUTION
    return bandwidth * latency_ns(cycles, ghz) * 1e-9
    ### END SOLUTION


def bursts_per_sm(bandwidth, cycles, ghz, sms, burst):
    """The smallest number of bursts that each SM has to have in flight: an int."""
    ### BEGIN SOLUTION
    return math.ceil(bytes_in_flight(bandwidth, cycles, ghz) / sms / burst)
    ### END SOLUTION


shared_gain = None
### BEGIN SOLUTION
shared_gain = 290 / 23
### END SOLUTION

# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 2}
latency_hint = "a clock of 1 GHz has one cycle per nanosecond"
assert_values(latency_ns, {(100, 2.0): 50.0, (33, 1.0): 33.0}, latency_hint)
flight_hint = "use Little's law of the text, and mind the units"
assert_values(bytes_in_flight, {(1e12, 100, 2.0): 50000.0, (2e12, 500, 1.0): 1e6}, flight_hint)
burst_hint = "what is the share of each SM, and what if it is not a whole number of bursts?"
assert_values(bursts_per_sm, {(1e12, 100, 2.0, 10, 128): 40, (1e12, 100, 2.0, 10, 32): 157}, burst_hint)
assert_values(bursts_per_sm, {(1.5e12, 100, 2.0, 20, 1250): 3, (1e12, 100, 2.0, 7, 7142): 2}, burst_hint)
### BEGIN HIDDEN TESTS
assert_values(bytes_in_flight, {(1.555e12, 290, 1.41): 319822.7}, flight_hint)
assert_values(bursts_per_sm, {(1.555e12, 290, 1.41, 108, 128): 24, (1.555e12, 290, 1.41, 108, 32): 93}, burst_hint)
for cycles, sms, number in draws((20, 900), (20, 150), (2, 99), count=4):
    ghz, burst = measure.draw(105, 250) / 100, 2 ** measure.draw(4, 8)
    in_flight = (number - 0.5) * sms * burst  # half a burst in each SM is rounded up
    bandwidth = in_flight / (cycles / ghz * 1e-9)
    assert_values(latency_ns, {(cycles, ghz): cycles / ghz}, latency_hint)
    assert_values(bytes_in_flight, {(bandwidth, cycles, ghz): in_flight}, flight_hint)
    assert_values(bursts_per_sm, {(bandwidth, cycles, ghz, sms, burst): number}, burst_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_shared_test", "grade": true, "points": 1}
assert is_number(shared_gain) and shared_gain > 1, f"shared_gain must be a number above 1, got {shared_gain!r}"
### BEGIN HIDDEN TESTS
gain_hint = "which two rows of the table does the question compare?"
assert_near("shared_gain", shared_gain, 290 / 23, 2e-3, gain_hint)
### END HIDDEN TESTS

# %%
in_flight = [round(128 * 2 ** (step / 8)) for step in range(65)]
delivered = {
    f"latency of {memory}, {cycles} cycles": {
        size: min(1.555e12, 108 * size / (latency_ns(cycles, 1.41) * 1e-9)) for size in in_flight
    }
    for memory, cycles in (("global memory", 290), ("L2", 200))
}
title = "Bandwidth of an A100 by the bytes in flight"
rl.plots.plot_lines(delivered, "B/s", "bandwidth", xlabel="bytes in flight in each SM", title=title)

# %% [markdown]
# A CPU hides its latencies with caches and prefetching. A GPU hides them with *other threads*: while one thread waits,
# other threads have loads in flight. A single thread would get 4 bytes in 206 ns, which is 0.02 GB/s. So a GPU needs
# tens of thousands of active threads, and their number matters more than the speed of each one.
#
# ## 2.3 Warp divergence ({points q2_3})
#
# Threads run in **warps** of 32 lanes, one thread per lane. In each step a warp executes *one* instruction. Each of its
# lanes either takes part in it or is idle. What if they reach an `if`, and some take the first branch and the others
# the `else`? Then the warp executes both branches, one after the other. In each branch, the lanes that did not take it
# are idle.
#
# - `warp_cost(mask, a, b)`: the cost of an `if` for one warp, if the first branch costs a and the `else` costs b.
#   `mask` is a list of 32 booleans: whether each lane takes the first branch.
# - `diverged_share(p)`: each lane takes the first branch with probability p, independently of the others. What share of
#   the warps executes both branches (0 to 1)?


# %% nbgrader={"grade_id": "q2_3", "solution": true}
def warp_cost(mask, a, b):
    """The cost of the branches that one warp executes."""
    ### BEGIN SOLUTION
    return (a if any(mask) else 0) + (b if not all(mask) else 0)
    ### END SOLUTION


def diverged_share(p):
    """The share of warps that execute both branches, 0 to 1."""
    ### BEGIN SOLUTION
    return 1 - p**32 - (1 - p) ** 32
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_3_test", "grade": true, "points": 2}
def check_warp(mask, a, b, cost):
    got = warp_cost(list(mask), a, b)
    case = f"warp_cost with {sum(mask)} of 32 lanes in the first branch, a = {a}, b = {b}"
    assert is_number(got), f"{case} must return a number, got {got!r}"
    said = f"{case} returned {got}, expected {cost}: which branches does this warp execute?"
    assert got == cost, said


check_warp([True] * 32, 10, 3, cost=10)
check_warp([False] * 32, 10, 3, cost=3)
check_warp([True] + [False] * 31, 10, 3, cost=13)
check_warp([True, False] * 16, 4, 4, cost=8)
### BEGIN HIDDEN TESTS
for taken in (0, 1, measure.draw(2, 15), measure.draw(16, 30), 31, 32):
    a, b = measure.draw(1, 999), measure.draw(1, 999)
    mask = measure.rng().permutation([True] * taken + [False] * (32 - taken)).tolist()
    check_warp(mask, a, b, cost=a * (taken > 0) + b * (taken < 32))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_3_share_test", "grade": true, "points": 1}
share_hint = "when does a warp execute only one branch, and how likely is that?"
assert_values(diverged_share, {(0.0,): 0.0, (1.0,): 0.0, (0.02,): 0.476113, (0.95,): 0.806289}, share_hint)
### BEGIN HIDDEN TESTS
assert_values(diverged_share, {(0.01,): 0.275020, (0.05,): 0.806289, (0.1,): 0.965662}, share_hint)
shares = (0.001, measure.draw(2, 99) / 1000, measure.draw(900, 998) / 1000)
assert_values(diverged_share, {(p,): 1 - p**32 - (1 - p) ** 32 for p in shares}, share_hint)
### END HIDDEN TESTS

# %%
rows = [(f"{p:.0%}", f"{diverged_share(p):.1%}") for p in (0.01, 0.05, 0.1, 0.5)]
Table(
    ("lanes in the first branch", "warps that execute both"), rows, title="What is rare for a lane is common for a warp"
)

# %% [markdown]
# What is rare for a thread is common for a warp. So it pays to sort the work so that the threads of a warp take the
# same branch.
