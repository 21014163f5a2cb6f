# %% [markdown]
# # Part 5. Attention, and the matrix of scores
#
# Attention takes queries, keys and values of shape (B, H, L, D_h) and returns one vector for each query
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)). On the way it computes a score for every *pair* of tokens.
# The result does not contain these scores, but they fill a large matrix. This part is about what that matrix costs, and
# about a kernel that never makes it.
#
# `standard_attention` is attention as a textbook writes it, in four operations. All questions of this part compare it,
# in 16 bit, with `rl.attention`, which computes the same in one operation. `make_qkv` makes inputs, and
# `count_attention` counts what one call does.


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
# ## 5.1.1 Measure it ({points q5_1_1})
#
# How much memory does one call take? `benchmark_memory(fn, *args)` returns two numbers in GB. The *peak* is the most
# memory that the call holds, above what was there before. The *resident* memory is what was there before: q, k and v,
# and whatever else is alive.
#
# Write `attention_memory(L, B, H, D_h)`: both numbers for `standard_attention` on `make_qkv(L, B, H, D_h)`, as
# `{"peak_gb": ..., "resident_gb": ...}`. A sequence that is too long must not stop the program. Catch
# `rl.OutOfMemoryError`, and no other error, and return a peak of `None`. The resident memory is still known: it holds
# at least q, k and v.


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


# %% nbgrader={"grade_id": "q5_1_1_test", "grade": true, "points": 1}
def memory_of(L, B, H, D_h, **limits):
    got = measure.timed(attention_memory, L, B, H, D_h, **limits).value
    assert isinstance(got, dict) and set(got) == {"peak_gb", "resident_gb"}, 'the keys are "peak_gb" and "resident_gb"'
    return got


def check_peak(L, B, H, D_h):
    peak_gb = count_attention(standard_attention, L, B, H, D_h).peak_bytes / 1e9
    got = memory_of(L, B, H, D_h)["peak_gb"]
    case = f"L = {L}, B = {B}, H = {H}, D_h = {D_h}"
    assert is_near(got, peak_gb), f"{case}: expected peak_gb = {peak_gb:.6g}, got {got}"


check_peak(512, 1, 16, 128)
check_peak(200, 3, 2, 32)
### BEGIN HIDDEN TESTS
check_peak(1024, 1, 16, 128)
check_peak(measure.draw(250, 350), 2, 3, measure.draw(40, 70))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_1_1_resident_test", "grade": true, "points": 1}
def check_resident(L, B, H, D_h):
    qkv_gb = 3 * 2 * B * H * L * D_h / 1e9
    alone, beside = memory_of(L, B, H, D_h), memory_of(L, B, H, D_h, beside_bytes=10_000_000)
    assert is_number(alone["resident_gb"]) and is_number(beside["resident_gb"]), "resident_gb has to be a number"
    said = f"resident_gb: q, k and v alone take {qkv_gb:.6g} GB, got {alone['resident_gb']}"
    assert alone["resident_gb"] >= qkv_gb * 0.999, said
    more = float(beside["resident_gb"]) - float(alone["resident_gb"])
    said = f"with another tensor of 0.01 GB resident_gb has to grow by 0.01, it grew by {more:.4g}"
    assert abs(more - 0.01) < 1e-4, said
    return float(alone["resident_gb"]) - qkv_gb


beside_gb = check_resident(512, 1, 16, 128)
said = "resident_gb has to contain q, k and v once, and other live tensors"
assert abs(check_resident(200, 3, 2, 32) - beside_gb) < 1e-4, said
### BEGIN HIDDEN TESTS
for L, B, H, D_h in [(1024, 1, 16, 128), (measure.draw(250, 350), 2, 3, measure.draw(40, 70))]:
    rest = check_resident(L, B, H, D_h)
    assert abs(rest - beside_gb) < 1e-4, "resident_gb has to contain q, k and v once, and other live tensors"
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_1_1_limit_test", "grade": true, "points": 1}
def check_full(L, B, H, D_h, spare_bytes=None):
    qkv_gb = 3 * 2 * B * H * L * D_h / 1e9
    got = memory_of(L, B, H, D_h, spare_bytes=spare_bytes)
    assert got["peak_gb"] is None, f"out of memory: expected peak_gb = None, got {got['peak_gb']}"
    resident = got["resident_gb"]
    said = f"out of memory: q, k and v still take {qkv_gb:.6g} GB, got resident_gb = {resident}"
    assert is_number(resident) and resident >= qkv_gb * 0.999, said


check_full(256, 1, 4, 64, spare_bytes=600_000)  # room for q, k and v, and not for the scores
try:
    got = attention_memory(8, 1, 1, 0)["peak_gb"]
except Exception:
    got = "an error"
said = "attention_memory(8, 1, 1, 0) has heads of size 0, which is no lack of memory: catch rl.OutOfMemoryError alone"
assert got is not None, said
### BEGIN HIDDEN TESTS
check_full(2_000_000, 1, 1, 16)
L, D_h = measure.draw(250, 350), measure.draw(40, 70)
check_full(L, 2, 3, D_h, spare_bytes=3 * 2 * 2 * 3 * L * D_h + 2 * 3 * L * L)  # q, k and v, and half of the scores
### END HIDDEN TESTS

# %% [markdown]
# Here is the table for your machine. The length doubles until a call would take too long here, or runs out of memory.
# At L = 32768 the peak is 69 GB. That fits on an 80 GB GPU, but not on a 48 GB one.

# %%
rows, seconds = [], 0.0
for L in (512, 1024, 2048, 4096, 8192, 16384, 32768):
    one_matrix = 2 * 16 * L * L
    if 4.5 * seconds > 10 and rl.memory.available(device) > one_matrix:
        rows.append((L, "", "left out: more than 10 s here"))
        continue
    start = time.perf_counter()
    row = attention_memory(L)
    seconds = time.perf_counter() - start
    peak = "out of memory" if row["peak_gb"] is None else f"{row['peak_gb']:.4f}"
    rows.append((L, f"{row['resident_gb']:.4f}", peak))
Table(("L", "resident GB", "peak GB above that"), rows)

# %% [markdown]
# Here is the memory of one call over time. At each step a tensor is allocated or freed. The colour says which operation
# allocated it. Which tensors exist at the peak?

# %%
q, k, v = make_qkv(1024)
with rl.memory.record() as timeline:
    standard_attention(q, k, v)
rl.plots.plot_memory_timeline(timeline, title="standard_attention, L = 1024: memory by operation")

# %% [markdown]
# ## 5.1.2 How memory grows ({points q5_1_2})
#
# At the peak, two matrices of scores exist at the same time. Each has one element for every pair of tokens, in each
# head of each sequence.
#
# - `score_matrix_bytes(L, B, H, bytes_per_element)`: the bytes of *one* of them, an int
# - `memory_order`: how the peak grows with L: `"L"`, `"L log L"`, `"L^2"` or `"L^3"`
# - `growth_when_doubled`: the factor by which the peak of a long sequence grows when L doubles. An answer within 2% is
#   right.


# %% nbgrader={"grade_id": "q5_1_2", "solution": true}
def score_matrix_bytes(L, B, H, bytes_per_element):
    """Bytes of one matrix of scores: an int."""
    ### BEGIN SOLUTION
    return bytes_per_element * B * H * L * L
    ### END SOLUTION


memory_order = None  # "L", "L log L", "L^2" or "L^3"
growth_when_doubled = None  # a number
### BEGIN SOLUTION
memory_order = "L^2"
growth_when_doubled = 4
### END SOLUTION


# %% nbgrader={"grade_id": "q5_1_2_test", "grade": true, "points": 2}
def check_matrix(L, B, H, size, expected):
    got = score_matrix_bytes(L, B, H, size)
    assert is_count(got), f"score_matrix_bytes has to return an int, not {got!r}"
    case = f"L = {L}, B = {B}, H = {H}, {size} bytes an element"
    assert got == expected, f"{case}: expected {expected} bytes, got {got}; how many scores are there?"


check_matrix(8, 1, 1, 2, expected=128)
check_matrix(10, 2, 3, 4, expected=2400)
check_matrix(3**18, 1, 1, 1, expected=3**36)  # more than 53 bits hold
### BEGIN HIDDEN TESTS
check_matrix(32768, 1, 16, 2, expected=34_359_738_368)  # 34 GB for one prompt in one layer
B, H, L, size = measure.draw(2, 9), measure.draw(10, 40), measure.draw(100, 5000), 2 ** measure.draw(0, 3)
check_matrix(L, B, H, size, expected=size * B * H * L * L)
check_matrix(1, 1, 1, 1, expected=1)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_2_growth_test", "grade": true, "points": 1}
assert memory_order in ("L", "L log L", "L^2", "L^3"), 'memory_order has to be "L", "L log L", "L^2" or "L^3"'
assert is_number(growth_when_doubled), f"growth_when_doubled has to be a number, got {growth_when_doubled!r}"
### BEGIN HIDDEN TESTS
assert memory_order == "L^2", "memory_order: how many pairs of tokens are there?"
assert is_near(growth_when_doubled, 4, 0.02), "growth_when_doubled: compare two rows of your table, at the long end"
### END HIDDEN TESTS

# %% [markdown]
# ## 5.1.3 Where it becomes a problem ({points q5_1_3})
#
# At the end of `standard_attention` these tensors are alive, in 16 bit: q, k, v and the result, and two L x L matrices
# for each head.
#
# - `largest_length(memory_gb, B, H, D_h)`: the largest L for which all of them fit in `memory_gb` GB
# - `overhead_ratio(L, D_h)`: the bytes of the two matrices divided by those of q, k, v and the result
# - `largest_overhead`: what needs most of the memory of a long sequence
#     - `"a"`: q, k and v, the inputs
#     - `"b"`: the result, one vector a query
#     - `"c"`: the scores and weights
#     - `"d"`: the code of the kernels
# - `troubled_scenario`: which use meets the problem first
#     - `"a"`: decoding one new token with a long cache
#     - `"b"`: the prefill of a long prompt
#     - `"c"`: a large batch of short prompts
#     - `"d"`: a wide MLP with a long prompt


# %% nbgrader={"grade_id": "q5_1_3", "solution": true}
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


largest_overhead = None  # "a", "b", "c" or "d"
troubled_scenario = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
largest_overhead = "c"
troubled_scenario = "b"  # decoding has L_q = 1: its scores are one row
### END SOLUTION

# %% nbgrader={"grade_id": "q5_1_3_ratio_test", "grade": true, "points": 1}
ratio_hint = "which of these tensors grow as L², which as L, and how many are there of each?"
for L, D_h, expected in [(256, 128, 1), (100, 10, 5)]:
    got = overhead_ratio(L, D_h)
    assert is_near(got, expected), f"overhead_ratio({L}, {D_h}): expected {expected}, got {got}; {ratio_hint}"
### BEGIN HIDDEN TESTS
for L, D_h in [(32768, 128), (measure.draw(300, 5000), measure.draw(10, 256))]:
    said = f"overhead_ratio({L}, {D_h}): {ratio_hint}"
    assert is_near(overhead_ratio(L, D_h), L / (2 * D_h)), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_1_3_values_test", "grade": true, "points": 1}
assert largest_overhead in tuple("abcd"), "largest_overhead: choose a letter"
assert troubled_scenario in tuple("abcd"), "troubled_scenario: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    largest_overhead,
    "c",
    a="These grow as L. Use overhead_ratio at a long L: what is divided by what?",
    b="It has as many elements as q. Use overhead_ratio at a long L: what is divided by what?",
    d="A kernel's code does not grow with L.",
)
assert_choice(
    troubled_scenario,
    "b",
    a="With one query there is one row of scores for each head, not a square.",
    c="Compare score_matrix_bytes of eight prompts of 100 tokens with that of one prompt of 800.",
    d="The activations of an MLP grow as L.",
)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q5_1_3_test", "grade": true, "points": 2}
def check_length(memory_gb, B, H, D_h, expected):
    got = largest_length(memory_gb, B, H, D_h)
    assert is_count(got), f"largest_length has to return an int, not {got!r}"
    case = f"{memory_gb} GB, B = {B}, H = {H}, D_h = {D_h}"
    hint = "how many bytes do all these tensors take together at this L, and how many at L + 1?"
    assert got == expected, f"{case}: expected L = {expected}, got {got}; {hint}"


check_length(1.0, 1, 16, 128, expected=3826)
check_length(0.05, 4, 2, 32, expected=1218)


### BEGIN HIDDEN TESTS
def check_largest(memory_gb, B, H, D_h):
    L = largest_length(memory_gb, B, H, D_h)
    assert is_count(L), f"largest_length has to return an int, not {L!r}"

    def held(L):
        return 2 * B * H * (2 * L * L + 4 * L * D_h)

    case = f"{memory_gb} GB, B = {B}, H = {H}, D_h = {D_h}"
    assert held(L) <= memory_gb * 1e9, f"{case}: L = {L} needs {held(L) / 1e9:.6g} GB and does not fit"
    assert held(L + 1) > memory_gb * 1e9, f"{case}: got L = {L}, but L = {L + 1} fits as well"


check_largest(80.0, 1, 16, 128)
check_largest(float(measure.draw(20, 200)), measure.draw(2, 9), measure.draw(10, 40), measure.draw(50, 200))
check_largest(measure.draw(1, 9) / 1000, 2, 3, measure.draw(20, 80))
### END HIDDEN TESTS
