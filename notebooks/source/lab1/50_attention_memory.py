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
