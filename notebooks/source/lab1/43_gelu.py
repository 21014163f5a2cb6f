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
