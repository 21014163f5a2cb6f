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
