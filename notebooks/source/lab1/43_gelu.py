# %% [markdown]
# ## 4.3 A function made of small kernels, and the same function as one kernel
#
# Between its matrix products a language model computes *elementwise* functions. Each of them is cheap. One of them is
# GeLU ([Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415)), here in its tanh form:
#
# $$\mathrm{GeLU}(x) = 0.5\, x \left(1 + \tanh\left(\sqrt{2/\pi}\,(x + 0.044715\, x^3)\right)\right)$$
#
# ## 4.3.1 GeLU from elementwise operations ({points q4_3_1})
#
# Write `gelu_tanh_python(input)` with `rl` operations (`+`, `*`, `**`, `rl.tanh`), exactly as the formula says. That
# makes eight operations, and each of them is one launch. Do not call the library's fused `gelu`, and do not simplify
# the formula. The point is to see what eight launches cost. Do not write into `input`.


# %% nbgrader={"grade_id": "q4_3_1", "solution": true}
def gelu_tanh_python(input):
    """GeLU (tanh form) by elementwise operations: the shape, dtype and device of `input`."""
    ### BEGIN SOLUTION
    inner = (2 / np.pi) ** 0.5 * (input + 0.044715 * input**3)
    return 0.5 * input * (1 + rl.tanh(inner))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_3_1_test", "grade": true, "points": 2}
def check_gelu(shape, scale=1.0, dtype="float32", tolerance=1e-5):
    x = measure.rng().standard_normal(shape) * scale
    input = rl.tensor(x, dtype=dtype, device=device)
    seen = measure.count(gelu_tanh_python, input)
    result = seen.value
    assert isinstance(result, rl.Tensor), "return an rl tensor"
    assert result.dtype == input.dtype, f"expected dtype {input.dtype}, that of the input, got {result.dtype}"
    said = f"expected a result on {input.device}, where the input is, got one on {result.device}"
    assert result.device == input.device, said
    name = f"gelu_tanh_python at {shape}, values times {scale:g}, against rl.gelu"
    assert_close(result, rl.gelu(input.double()), rtol=tolerance, atol=tolerance, name=name)
    ran = seen.by_op.keys() & {"gelu", "geglu", "fused"}
    assert not ran, f"{', '.join(sorted(ran))} ran: use +, *, ** and rl.tanh only"


check_gelu((1_000_000,))
check_gelu((100, 200), scale=20.0)
check_gelu((7, 5, 3), dtype="float64", tolerance=1e-12)
### BEGIN HIDDEN TESTS
check_gelu((measure.draw(5, 10), measure.draw(100, 199), measure.draw(200, 300)))
check_gelu((measure.draw(500, 2000),), scale=10.0)
check_gelu((3, 1), scale=100.0)
check_gelu((measure.draw(30, 60), measure.draw(5, 9)), scale=3.0, dtype="float64", tolerance=1e-12)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_3_1_launches_test", "grade": true, "points": 1}
def check_launches(*shape):
    x = rl.randn(*shape, device=device)
    seen = measure.count(gelu_tanh_python, x)
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert_close(seen.value, rl.gelu(x.double()), rtol=1e-5, atol=1e-5, name=f"gelu_tanh_python at {shape}")
    others = seen.by_op.keys() - {"add", "sub", "mul", "div", "pow", "neg", "sqrt", "tanh", "copy", "cast", "fill"}
    assert not others, f"{', '.join(sorted(others))} ran: use +, *, ** and rl.tanh only"
    assert seen.by_op.get("tanh") == 1, "use the tanh form of the formula, with one rl.tanh"
    assert seen.launches >= 8, f"expected 8 launches, got {seen.launches}: write every operation of the formula"
    assert not measure.call(gelu_tanh_python, x).changed, "gelu_tanh_python changed its input: make new tensors"


check_launches(1000)
### BEGIN HIDDEN TESTS
check_launches(measure.draw(15, 25), measure.draw(26, 40))
### END HIDDEN TESTS

# %% [markdown]
# ## 4.3.2 Against the fused kernel ({points q4_3_2})
#
# `rl.gelu` computes the same with one *fused* kernel. How much faster is that? Write `gelu_latencies_ms(n)`: the median
# latencies of both at `n` elements in fp32, as `{"python": ms, "fused": ms}`. Warm up, and take at least three samples
# of each.


# %% nbgrader={"grade_id": "q4_3_2", "solution": true}
def gelu_latencies_ms(n):
    """{"python": ms, "fused": ms}: medians of gelu_tanh_python and rl.gelu, n fp32 elements."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    functions = {"python": gelu_tanh_python, "fused": rl.gelu}
    return {name: latency(fn, x, warmup=5, repeat=50).median_ms for name, fn in functions.items()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_3_2_test", "grade": true, "points": 1} rooflab={"needs": ["q4_3_1"]}
def timed_gelus(n):
    seen = measure.timed(gelu_latencies_ms, n)
    times = seen.value
    assert isinstance(times, dict) and set(times) == {"python", "fused"}, 'the keys are "python" and "fused"'
    assert all(isinstance(ms, float) for ms in times.values()), "both times are floats, in ms"
    return seen


def check_python_time(n):
    seen, once = timed_gelus(n), measure.count(gelu_tanh_python, rl.randn(n, device=device))
    of_python = seen.calls_of(once)
    assert of_python, f"no timed call of gelu_tanh_python on {n} fp32 elements" + seen.beside(once)
    said = f'"python": {seen.value["python"]} is not the median_ms that latency returned'
    assert measure.is_median(seen.value["python"], of_python), said
    said = '"python": warm up, and take at least three samples'
    assert measure.is_steady(seen.value["python"], of_python), said


check_python_time(1000)
check_python_time(5000)
### BEGIN HIDDEN TESTS
check_python_time(measure.draw(300, 900))
check_python_time(1_000_000)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q4_3_2_fused_test", "grade": true, "points": 1} rooflab={"needs": ["q4_3_1"]}
def check_fused_time(n):
    seen, once = timed_gelus(n), measure.count(rl.gelu, rl.randn(n, device=device))
    of_fused = seen.calls_of(once)
    assert of_fused, f"no timed call of rl.gelu on {n} fp32 elements" + seen.beside(once)
    said = f'"fused": {seen.value["fused"]} is not the median_ms that latency returned'
    assert measure.is_median(seen.value["fused"], of_fused), said
    assert measure.is_steady(seen.value["fused"], of_fused), '"fused": warm up, and take at least three samples'


check_fused_time(1000)
check_fused_time(5000)
### BEGIN HIDDEN TESTS
check_fused_time(measure.draw(300, 900))
check_fused_time(1_000_000)
### END HIDDEN TESTS

# %%
times = gelu_latencies_ms(1_000_000)
ratio = times["python"] / times["fused"]
print(f"a million elements: {times['python']:.3f} ms, fused {times['fused']:.3f} ms: {ratio:.1f} times faster")

# %% [markdown]
# ## 4.3.3 Why is it faster? ({points q4_3_3})
#
# The formula is the same. Where does the time go? Do not guess: count. `with rl.count() as c:` around a call gives
# `c.launches`, `c.flops`, `c.bytes_read`, `c.bytes_written` and more, exactly, on every device.
#
# - `gelu_counts(fused, n)`: the launches, FLOPs and bytes moved (read and written) of one call at `n` fp32 elements, of
#   `rl.gelu` if `fused`, else of your `gelu_tanh_python`;
# - `speedup_if_memory_bound`: how many times faster the fused version is for large `n`, if only bytes cost time: a
#   number;
# - `why_faster`: the reason. Choose a letter, and explain it in a sentence below.
#     - `"a"`: It does less arithmetic for each element.
#     - `"b"`: It uses the tensor cores or wider vector units.
#     - `"c"`: It computes tanh with a shorter, less exact formula.
#     - `"d"`: Values between the operations stay in registers.


# %% nbgrader={"grade_id": "q4_3_3", "solution": true}
def gelu_counts(fused, n):
    """{"launches": int, "flops": int, "bytes": int} of one call on n fp32 elements."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    with rl.count() as c:
        (rl.gelu if fused else gelu_tanh_python)(x)
    return {"launches": c.launches, "flops": c.flops, "bytes": c.bytes_read + c.bytes_written}
    ### END SOLUTION


speedup_if_memory_bound = None  # a number
why_faster = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
speedup_if_memory_bound = 72 / 8  # bytes an element: ten reads and eight writes against one of each
why_faster = "d"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q4_3_3_findings", "solution": true}
# *What I find:*


# %% nbgrader={"grade_id": "q4_3_3_test", "grade": true, "points": 1} rooflab={"needs": ["q4_3_1"]}
def check_counts(n):
    seen = measure.count(gelu_tanh_python, rl.randn(n, device=device))
    own = {"launches": seen.launches, "flops": seen.flops, "bytes": seen.bytes_read + seen.bytes_written}
    for fused, expected in {True: {"launches": 1, "flops": 8 * n, "bytes": 8 * n}, False: own}.items():
        got, what = gelu_counts(fused, n), f"fused = {fused}, n = {n}"
        assert isinstance(got, dict) and set(got) == set(expected), 'the keys are "launches", "flops", "bytes"'
        hint = "count one call with rl.count(), on n numbers in fp32"
        for name, value in expected.items():
            assert got[name] == value, f"gelu_counts, {what}: expected {value} {name}, got {got[name]}; {hint}"


check_counts(1000)
check_counts(300)
### BEGIN HIDDEN TESTS
check_counts(measure.draw(1001, 9999))
check_counts(1_000_000)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_3_3_why_test", "grade": true, "points": 1} rooflab={"needs": ["q4_3_1"]}
assert why_faster in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
said = f"speedup_if_memory_bound has to be a number, got {speedup_if_memory_bound!r}"
assert is_number(speedup_if_memory_bound), said
### BEGIN HIDDEN TESTS
seen = measure.count(gelu_tanh_python, rl.randn(100_000, device=device))
bytes_ratio = (seen.bytes_read + seen.bytes_written) / 800_000
assert is_near(speedup_if_memory_bound, bytes_ratio, 0.02), "divide the bytes of the two versions, not their launches"
assert_choice(
    why_faster,
    "d",
    a="Compare the FLOPs that gelu_counts gives for both versions.",
    b="Both versions run elementwise code on the same units.",
    c="Both versions passed the same test of their values.",
)
### END HIDDEN TESTS

# %%
python, fused = gelu_counts(False, 1_000_000), gelu_counts(True, 1_000_000)
rows = [(name, f"{python[name]:,}", f"{fused[name]:,}", f"{python[name] / fused[name]:.3g}") for name in python]
rows.append(("ms", f"{times['python']:.3f}", f"{times['fused']:.3f}", f"{ratio:.3g}"))
display(Table(("a million elements", "eight operations", "fused", "ratio"), rows))
rl.plots.plot_bars(
    {"eight operations": python["bytes"], "fused": fused["bytes"]},
    "B",
    title="GeLU of a million fp32 elements: bytes moved",
)

# %% [markdown]
# Compare the ratio of the times with the ratio of the bytes. They need not be equal. A small tensor stays in the cache,
# where moving bytes is cheap. Each launch has a fixed cost. And a kernel that does much arithmetic for each byte can
# reach the other roof. Measure at 1e4 and 1e7 elements as well, and find out which limit holds on your machine.
#
# ## 4.3.4 Show it in a profile ({points q4_3_4})
#
# Write `profile_gelu(fused, n)`. It profiles `rl.gelu` if `fused`, else your `gelu_tanh_python`, at `n` fp32 elements
# under `default_schedule`, in ten steps with one call each. It returns a dict: `"launches_per_call"` is the number of
# launches of *one* call, and `"ops"` lists the operation of each of its kernels (`kernel.op`) in the order in which
# they ran.


# %% nbgrader={"grade_id": "q4_3_4", "solution": true}
def profile_gelu(fused, n):
    """{"launches_per_call": int, "ops": [operations]} of rl.gelu or of gelu_tanh_python."""
    ### BEGIN SOLUTION
    x = rl.randn(n, device=device)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            (rl.gelu if fused else gelu_tanh_python)(x)
            prof.step()
    print(prof.key_averages().table(sort_by="duration", row_limit=10))
    last = prof.kernels[-1].step
    ops = [kernel.op for kernel in prof.kernels if kernel.step == last]
    return {"launches_per_call": count_cuda_kernels(prof)["total"], "ops": ops}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_3_4_test", "grade": true, "points": 1}
def check_profile(fused, n, ops):
    seen = measure.profiles(profile_gelu, fused, n)
    got, counted = seen.value, measure.count(profile_gelu, fused, n)
    ran = counted.by_op
    assert isinstance(got, dict) and set(got) == {"launches_per_call", "ops"}, 'the keys are "launches_per_call", "ops"'
    assert is_count(got["launches_per_call"]), "a number of launches is an int"
    assert isinstance(got["ops"], list), "the operations are a list"
    what = "rl.gelu" if fused else "gelu_tanh_python"
    said = (got["launches_per_call"], len(got["ops"]))
    wanted = (len(ops), len(ops))
    assert said == wanted, f"{what}: expected {wanted} launches and operations of one call, got {said}"
    assert sorted(got["ops"]) == sorted(ops), f"{what}: expected the operations {ops}, got {got['ops']}"
    assert got["ops"] == list(ops), f"{what}: expected the order {ops}, got {got['ops']}"
    steps = all(ran.get(op, 0) >= 10 * ops.count(op) for op in ops)
    assert steps, f"{what}: profile ten steps with one call each, got the operations {ran} in all"
    flops = measure.count(rl.gelu if fused else gelu_tanh_python, rl.randn(n, device=device)).flops
    said = f"{what}, n = {n}: each call does {flops} FLOPs, and yours did {counted.flops} in all: use n elements"
    assert counted.flops >= 10 * flops and counted.flops % flops == 0, said
    said = f"{what}: profile ten steps under default_schedule, which records the last six, with one call in each"
    assert seen.recorded(default_schedule, 10, ops), said


check_profile(True, 1000, ["gelu"])
check_profile(True, 3000, ["gelu"])
### BEGIN HIDDEN TESTS
check_profile(True, measure.draw(50_000, 150_000), ["gelu"])
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_3_4_order_test", "grade": true, "points": 2} rooflab={"needs": ["q4_3_1"]}
check_profile(False, 1000, measure.launched(gelu_tanh_python, rl.randn(1000, device=device)))
### BEGIN HIDDEN TESTS
n = measure.draw(50_000, 150_000)
check_profile(False, n, measure.launched(gelu_tanh_python, rl.randn(n, device=device)))
### END HIDDEN TESTS

# %% [markdown]
# Here are the two timelines, over the same number of elements and on the same time axis. The eight kernels run one
# after the other, and in the gaps between them the host prepares the next launch. How long does one of the eight take,
# compared with the fused kernel that does the work of all of them?

# %%
x = rl.randn(1_000_000, device=device)
profiles = {}
for fn in (gelu_tanh_python, rl.gelu):
    with rl.profile(schedule=default_schedule) as profiles[fn.__name__]:
        for _ in range(10):
            fn(x)
            profiles[fn.__name__].step()
rl.plots.plot_timelines(profiles, rows="op", title="GeLU of a million elements: one call of each")
