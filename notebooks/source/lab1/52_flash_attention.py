# %% [markdown]
# ## 5.2 Flash attention
#
# Softmax seems to need a whole row of scores before it can start. But a part of it is enough. Keep the largest score so
# far, the sum of the exponentials relative to it, and the sum of the values weighted by these exponentials. When a
# larger score arrives, multiply both sums by a factor that corrects them. So a kernel can go through the keys tile by
# tile. For each query it keeps the D_h numbers of its result and two more, and it never needs an L x L matrix. This is
# FlashAttention ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)), and `rl.attention(q, k, v)` is such a kernel.
# In Lab 3 you write it yourself.

# %%
rl.plots.plot_attention_tiles(L_q=512, L_kv=512, tile_q=64, tile_kv=128)

# %% [markdown]
# Standard attention computes the whole square before it goes on. FlashAttention computes one tile, uses it, and goes on
# to the next.
#
# The next three questions ask *why* that makes a difference. Answer each with numbers first, then with a choice, then
# in your own words.
#
# ## 5.2.1 What limits standard attention? ({points q5_2_1})
#
# `count_attention(fn, L)` counts one call at B = 1, H = 16, D_h = 128 in fp16.
#
# - `intensity(flash, L)`: FLOPs over bytes moved (read and written) of one call at that size, of `rl.attention` if
#   `flash` is true, else of `standard_attention`;
# - `standard_ai_limit`: the intensity of standard attention for very large L, in FLOP/byte. An answer within 1% is
#   right;
# - `standard_bound`: `"memory"` or `"compute"`, whichever limits standard attention at L = 4096 on an A6000 in fp16.


# %% nbgrader={"grade_id": "q5_2_1", "solution": true}
def intensity(flash, L):
    """FLOP/byte of one call at B = 1, H = 16, D_h = 128, fp16."""
    ### BEGIN SOLUTION
    c = count_attention(rl.attention if flash else standard_attention, L)
    return c.flops / (c.bytes_read + c.bytes_written)
    ### END SOLUTION


standard_ai_limit = None  # FLOP/byte
standard_bound = None  # "memory" or "compute"
### BEGIN SOLUTION
standard_ai_limit = (4 * 128 + 6) / 12  # FLOPs and bytes for each pair of tokens
standard_bound = "memory"  # the ridge is 202
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q5_2_1_findings", "solution": true}
# *What limits standard attention, and why:*


# %% nbgrader={"grade_id": "q5_2_1_test", "grade": true, "points": 1}
def check_intensity(flash, L, expected):
    got = intensity(flash, L)
    hint = "count one call: which of its bytes are read, and which are written?"
    assert is_near(got, expected, 1e-3), (
        f"intensity({flash}, {L}): expected {expected:.4g} FLOP/byte, got {got}; {hint}"
    )


check_intensity(False, 256, expected=32.375)
check_intensity(True, 256, expected=129.25)
check_intensity(False, 64, expected=18.5)
check_intensity(True, 64, expected=32.3125)
### BEGIN HIDDEN TESTS
for L in (measure.draw(100, 200), 1024):
    for flash, fn in {False: standard_attention, True: rl.attention}.items():
        c = count_attention(fn, L)
        check_intensity(flash, L, expected=c.flops / (c.bytes_read + c.bytes_written))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_2_1_why_test", "grade": true, "points": 2}
assert is_number(standard_ai_limit), f"standard_ai_limit has to be a number in FLOP/byte, got {standard_ai_limit!r}"
said = f'standard_bound has to be "memory" or "compute", got {standard_bound!r}'
assert standard_bound in ("memory", "compute"), said
### BEGIN HIDDEN TESTS
assert is_near(standard_ai_limit, 518 / 12, 0.01), "standard_ai_limit: evaluate intensity at longer and longer L"
assert standard_bound == "memory", "standard_bound: compare the intensity with the ridge of the A6000 in fp16"
### END HIDDEN TESTS

# %% [markdown]
# ## 5.2.2 How does flash attention help? ({points q5_2_2})
#
# Both versions compute the same numbers, in a different order. What does that change?
#
# - `compare_attention(L, B, H, D_h)`: on the same q, k and v in fp16, the median latency of both versions by `latency`
#   (two calls to warm up, five measured), and their peak memory by `benchmark_memory`. If one runs out of memory, both
#   of its numbers are `None`. Catch no other error.
# - `attention_launches(flash, L)`: profile one version at B = 2, H = 12, D_h = 128 in bf16 under `default_schedule`,
#   ten steps of one call each. Return what `count_cuda_kernels` says: the launches of *one* call by category. (On a GPU
#   the library behind `rl.matmul` may add a small memory operation to each product. The profiler sees it too.)
# - `bytes_saved(L)`: the bytes that standard attention moves and flash attention does not, at B = 1, H = 16, D_h = 128
#   in fp16, an int.
# - `how_flash_helps`: how it saves time and memory. Choose a letter, and explain it in a sentence below.
#     - `"a"`: It does fewer FLOPs for each pair of tokens.
#     - `"b"`: It stores the scores in a type with fewer bits.
#     - `"c"`: It skips pairs of tokens whose weights are small.
#     - `"d"`: It keeps the scores in on-chip memory.


# %% nbgrader={"grade_id": "q5_2_2", "solution": true}
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


def attention_launches(flash, L=1024):
    """count_cuda_kernels of one call: rl.attention if `flash`, else standard_attention."""
    ### BEGIN SOLUTION
    q, k, v = make_qkv(L, B=2, H=12, dtype="bfloat16")
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            (rl.attention if flash else standard_attention)(q, k, v)
            prof.step()
    return count_cuda_kernels(prof)
    ### END SOLUTION


def bytes_saved(L):
    """Bytes that standard_attention moves and rl.attention does not, at length L: an int."""
    ### BEGIN SOLUTION
    standard, flash = (count_attention(fn, L) for fn in (standard_attention, rl.attention))
    return standard.bytes_read + standard.bytes_written - flash.bytes_read - flash.bytes_written
    ### END SOLUTION


how_flash_helps = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
how_flash_helps = "d"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q5_2_2_findings", "solution": true}
# *How flash attention helps:*


# %% nbgrader={"grade_id": "q5_2_2_test", "grade": true, "points": 1}
def check_comparison(L, B, H, D_h, is_tight=False):
    functions = {"standard": standard_attention, "flash": rl.attention}
    counted = {name: measure.count(fn, *make_qkv(L, B, H, D_h)) for name, fn in functions.items()}
    qkv_bytes, needed = 3 * 2 * B * H * L * D_h, [one.peak_bytes for one in counted.values()]
    spare_bytes = qkv_bytes + sum(needed) // 2 if is_tight else None  # enough for flash attention alone
    seen = measure.timed(compare_attention, L, B, H, D_h, spare_bytes=spare_bytes)
    got, shape = seen.value, (B, H, L, D_h)
    assert isinstance(got, dict) and set(got) == {"standard", "flash"}, 'the keys are "standard" and "flash"'
    for name, once in counted.items():
        row = got[name]
        assert isinstance(row, dict) and set(row) == {"ms", "peak_gb"}, f'{name}: the keys are "ms" and "peak_gb"'
        if is_tight and name == "standard":
            said = f"standard ran out of memory: expected None for both of its numbers, got {row}"
            assert row == {"ms": None, "peak_gb": None}, said
            continue
        peak_gb = once.peak_bytes / 1e9
        said = f"{name}, L = {L}: expected peak_gb = {peak_gb:.6g}, got {row['peak_gb']}"
        assert is_near(row["peak_gb"], peak_gb), said
        right = seen.calls_of(once)
        assert right, f"{name}: no timed call on q, k and v of shape {shape} in fp16" + seen.beside(once)
        assert measure.is_median(row["ms"], right), f"{name}: ms = {row['ms']} is not the median_ms of latency"
        said = f"{name}: two calls to warm up and five measured ones were asked for"
        assert measure.is_steady(row["ms"], right), said


check_comparison(256, 1, 2, 64)
check_comparison(1024, 1, 4, 64, is_tight=True)
nothing, qkv_bytes = {"ms": None, "peak_gb": None}, 3 * 2 * 2 * 256 * 64
got = measure.timed(compare_attention, 256, 1, 2, 64, spare_bytes=qkv_bytes + 1000).value
assert got == dict.fromkeys(("standard", "flash"), nothing), f"no memory for a result: expected None alone, got {got}"
try:
    got = compare_attention(8, 1, 1, 0)["standard"]
except Exception:
    got = "an error"
said = "compare_attention(8, 1, 1, 0) has heads of size 0, which is no lack of memory: catch rl.OutOfMemoryError alone"
assert got != nothing, said
### BEGIN HIDDEN TESTS
check_comparison(512, 1, 16, 128)
check_comparison(measure.draw(200, 350), 2, measure.draw(3, 5), 8 * measure.draw(6, 9))
check_comparison(measure.draw(1060, 1180), 2, 3, 32, is_tight=True)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_2_2_launches_test", "grade": true, "points": 1}
def launches_of(flash, L):
    what, fn = ("rl.attention", rl.attention) if flash else ("standard_attention", standard_attention)
    once = measure.count(fn, *make_qkv(L, B=2, H=12, dtype="bfloat16"))
    seen = measure.count(attention_launches, flash, L)
    profiled = measure.profiles(attention_launches, flash, L)
    got = seen.value
    kinds = isinstance(got, dict) and all(is_count(n) for n in got.values())
    assert kinds and "total" in got, "return the dict of count_cuda_kernels"
    assert got["total"] == sum(n for name, n in got.items() if name != "total"), "the categories add up to the total"
    ran, wanted = ({"attention", "matmul", "softmax"} & one.by_op.keys() for one in (seen, once))
    assert ran == wanted, f"{what}: expected the operations {sorted(wanted)}, got {sorted(ran)}"
    said = f"{what}: profile ten steps under default_schedule, which records the last six, with one call in each"
    calls = min(seen.by_op[name] // once.by_op[name] for name in wanted)
    assert calls >= 10 and profiled.recorded(default_schedule, 10), said
    said = f"{what}: a call at B = 2, H = 12, L = {L}, D_h = 128 has {once.macs} MACs, yours has {seen.macs // calls}"
    assert seen.macs == calls * once.macs, said
    return got


def check_launches(what, got, **expected):
    for name, n in expected.items():
        assert got.get(name) == n, f"{what}: expected {n} launches of category {name} in one call, got {got.get(name)}"


standard_launches, flash_launches = launches_of(False, L=256), launches_of(True, L=256)
check_launches("standard_attention", standard_launches, gemm=2, softmax=1, elementwise=1)
check_launches("rl.attention", flash_launches, total=1)
### BEGIN HIDDEN TESTS
check_launches("standard_attention", standard_launches, layernorm=0)
check_launches("rl.attention", flash_launches, gemm=0, softmax=0, elementwise=0, layernorm=0)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_2_2_saved_test", "grade": true, "points": 1}
def check_saved(L, expected):
    got = bytes_saved(L)
    assert is_count(got), f"bytes_saved has to return an int, not {got!r}"
    hint = "count the bytes that each of the two reads and writes, at the same L"
    assert got == expected, f"bytes_saved({L}): expected {expected}, got {got}; {hint}"


check_saved(64, expected=786432)
check_saved(200, expected=7680000)
### BEGIN HIDDEN TESTS
for L in (measure.draw(100, 200), 1024):
    counted = [count_attention(fn, L) for fn in (standard_attention, rl.attention)]
    standard, flash = (one.bytes_read + one.bytes_written for one in counted)
    check_saved(L, expected=standard - flash)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_2_2_why_test", "grade": true, "points": 1}
assert how_flash_helps in tuple("abcd"), "how_flash_helps: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    how_flash_helps,
    "d",
    a="Count the FLOPs of both: the two products are the same.",
    b="bytes_saved has the size of the whole matrices, not of half of them.",
    c="Compare the results of both: no pair is missing.",
)
### END HIDDEN TESTS

# %%
counts = {name: attention_launches(flash) for name, flash in {"standard": False, "flash": True}.items()}
Table(("launches of one call", *counts["standard"]), [(name, *row.values()) for name, row in counts.items()])

# %% [markdown]
# Now compare both at L = 256 ... 8192, as far as this machine gets in a few seconds.

# %%
compared, left_out = {}, []
seconds = 0.0
for L in (256, 512, 1024, 2048, 4096, 8192):
    if 4.5 * seconds > 15:
        left_out.append(L)
        continue
    start = time.perf_counter()
    compared[L] = compare_attention(L)
    seconds = time.perf_counter() - start
print("left out, more than 15 s on this machine:", left_out or "none")


def column(kernel, quantity, scale=1.0):
    """One column of the table by length; None stays None."""
    values = {L: row[kernel][quantity] for L, row in compared.items()}
    return {L: value if value is None else value * scale for L, value in values.items()}


times = {name: column(name, "ms") for name in ("standard", "flash")}
plot_flash_attn_improvement(times, "latency", title="Attention in fp16, H = 16, D_h = 128: latency")

# %%
peaks = {name: column(name, "peak_gb", 1e9) for name in ("standard", "flash")}
plot_flash_attn_improvement(peaks, "memory", title="Attention in fp16, H = 16, D_h = 128: peak memory of the call")

# %% [markdown]
# ## 5.2.3 Why does the gain grow with L? ({points q5_2_3})
#
# - `traffic_ratio(L)`: the bytes that standard attention moves over those that flash attention moves, at B = 1, H = 16,
#   D_h = 128 in fp16.
# - `why_the_gain_grows`: why `traffic_ratio(L)` grows with L. Choose a letter, and explain it in a sentence below.
#     - `"a"`: The cost of a launch grows with the length.
#     - `"b"`: Standard attention's bytes grow faster with L.
#     - `"c"`: Flash attention does fewer FLOPs when L is large.
#     - `"d"`: Long sequences fit better into the caches.
#
# These numbers count every input once. For K and V that is right as long as they stay in a cache. A kernel reads K and
# V again for each tile of queries, and when they are too large for the cache, these reads go to memory. The bytes that
# FlashAttention moves then grow as L² D_h² / M, where M is the size of the on-chip memory that holds a tile.
#
# - `flash_bytes_uncached(L, rows, H, D_h)`: the bytes that flash attention moves in fp16 at B = 1, if each tile of
#   `rows` queries reads all of K and V from memory. Q is read once and the result is written once. The last tile may be
#   smaller, and it reads K and V as well. Return an int.


# %% nbgrader={"grade_id": "q5_2_3", "solution": true}
def traffic_ratio(L):
    """Bytes moved by standard_attention over bytes moved by rl.attention."""
    ### BEGIN SOLUTION
    standard, flash = (count_attention(fn, L) for fn in (standard_attention, rl.attention))
    return (standard.bytes_read + standard.bytes_written) / (flash.bytes_read + flash.bytes_written)
    ### END SOLUTION


def flash_bytes_uncached(L, rows, H=16, D_h=128):
    """Bytes (an int) that flash attention moves when K and V are read again for each tile of queries."""
    ### BEGIN SOLUTION
    tiles = -(-L // rows)
    return 2 * H * (2 * L * D_h + tiles * 2 * L * D_h)
    ### END SOLUTION


why_the_gain_grows = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
why_the_gain_grows = "b"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q5_2_3_findings", "solution": true}
# *Why the gain grows, or why it does not on my machine:*


# %% nbgrader={"grade_id": "q5_2_3_test", "grade": true, "points": 1}
def check_ratio(L, expected):
    got = traffic_ratio(L)
    hint = "which bytes does each of the two read and write, and which of the two is the larger?"
    assert is_near(got, expected, 1e-3), f"traffic_ratio({L}): expected {expected:.4g}, got {got}; {hint}"


check_ratio(256, expected=4.0)
check_ratio(64, expected=1.75)
### BEGIN HIDDEN TESTS
for L in (measure.draw(100, 200), 1024):
    counts = [count_attention(fn, L) for fn in (standard_attention, rl.attention)]
    standard, flash = (c.bytes_read + c.bytes_written for c in counts)
    check_ratio(L, expected=standard / flash)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_2_3_uncached_test", "grade": true, "points": 1}
def check_uncached(L, rows, H, D_h, expected):
    got = flash_bytes_uncached(L, rows, H, D_h)
    case = f"L = {L}, tiles of {rows} queries, H = {H}, D_h = {D_h}"
    assert is_count(got), f"{case}: expected an int, got {got!r}"
    assert got == expected, f"{case}: expected {expected} bytes, got {got}; each tile reads all of K and V"


check_uncached(128, 64, 1, 10, expected=15360)
check_uncached(130, 64, 2, 8, expected=33280)
### BEGIN HIDDEN TESTS
check_uncached(4096, 128, 16, 128, expected=32 * (2 * 524288 + 32 * 2 * 524288))
check_uncached(100, 128, 3, 64, expected=6 * (2 * 6400 + 2 * 6400))
rows, whole, H, D_h = measure.draw(32, 60), measure.draw(4, 12), measure.draw(2, 5), measure.draw(10, 30)
L = whole * rows + measure.draw(1, rows - 1)  # the last tile is smaller
check_uncached(L, rows, H, D_h, expected=2 * H * (2 * L * D_h + (whole + 1) * 2 * L * D_h))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_2_3_why_test", "grade": true, "points": 1}
assert why_the_gain_grows in tuple("abcd"), "why_the_gain_grows: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    why_the_gain_grows,
    "b",
    a="traffic_ratio counts bytes. Launches do not change it.",
    c="traffic_ratio counts bytes, and the FLOPs of each pair of tokens stay the same.",
    d="traffic_ratio counts compulsory bytes, which do not depend on a cache.",
)
### END HIDDEN TESTS

# %% [markdown]
# Here are both versions on one roofline, measured on your machine. Follow the points of each version from L = 256 to
# L = 2048. How does the intensity of each change with L? On which side of this machine's ridge does standard attention
# end, and on which side of an A6000's ridge? Right of the ridge, fewer bytes need not save time.

# %%
points = []
for name, fn in {"standard": standard_attention, "flash": rl.attention}.items():
    for L in (256, 512, 1024, 2048):
        time_here = latency(fn, *make_qkv(L), warmup=1, repeat=3)
        cost = count_attention(fn, L)
        points.append(rl.roofline.measured_point(f"L = {L}", cost, time_here, name))
rl.plots.plot_roofline(ceilings, points, dtype="float16", title="Attention in fp16, measured here")

# %% [markdown]
# **What you can do now.** You can count an operation's work and traffic from its shapes. You can read from the roofline
# which of the two limits it. You can measure how close it comes to that limit, and how much your measurements vary. You
# can see in a profile which kernels it consists of. And you have seen what the matrix of scores costs in attention, and
# how a kernel can do without it.
