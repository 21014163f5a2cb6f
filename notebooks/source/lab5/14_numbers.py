# %% [markdown]
# ## 1.4 What a short number can hold ({points q1_4})
#
# A floating-point number has a sign, a few bits for the *exponent*, and a few for the *mantissa*. The exponent decides
# how large and how small numbers can be: the **range**. The mantissa decides how close to each other they lie: the
# **precision**. Formats of 16 bits share the bits out differently: fp16 has 5 and 10, bf16 8 and 7.
#
# ### a) Ask the format ({points q1_4_test})
#
# `rounded(x, name)` gives the number of a format that is nearest to x. The formats are `"fp32"`, `"tf32"`, `"fp16"`,
# `"bf16"`, `"e4m3"` and `"e5m2"`. Find out what they can hold by asking, with a few loops:
#
# - `dtype_facts(name)`: a dict with
#     - `"exponent"` and `"mantissa"`: how many bits each has
#     - `"max"`: the largest finite number
#     - `"smallest_normal"`: the smallest positive number that has all bits of its mantissa
#     - `"smallest"`: the smallest positive number of all. Below `smallest_normal` the numbers lie as far apart as just
#       above it, and become less precise
#     - `"eps"`: the distance from 1 to the next larger number
#
# e4m3 and e5m2 have 8 bits. e4m3 is special: it has no infinity, so `rounded` gives NaN for what is too large, and its
# largest exponent holds numbers as well. If you ask instead of looking a formula up, this takes care of itself.
#
# <details><summary>Hint 1</summary>
#
# All of these are powers of two, but for the largest number. Halve or double until something happens. A tie is rounded
# to the even neighbour: `rounded(1 + eps / 2, name)` is 1.
# </details>
# <details><summary>Hint 2: the largest number</summary>
#
# Begin with the largest power of two that stays finite. Then add half of it, a quarter, an eighth ..., as long as the
# sum is one of the format's numbers.
# </details>
# <details><summary>Hint 3: the bits of the exponent</summary>
#
# The smallest normal number and the largest power of two tell how many different exponents there are. One or two more
# are set aside, for zero and for infinity.
# </details>


# %% nbgrader={"grade_id": "q1_4", "solution": true}
def dtype_facts(name):
    """{"exponent", "mantissa", "max", "smallest_normal", "smallest", "eps"} of a format."""
    ### BEGIN SOLUTION
    eps = 1.0
    while rounded(1 + eps / 2, name) > 1:
        eps /= 2
    smallest = 1.0
    while rounded(smallest / 2, name) > 0:
        smallest /= 2
    power = 1.0
    while math.isfinite(rounded(2 * power, name)):
        power *= 2
    largest, part = power, power / 2
    while rounded(largest + part, name) == largest + part:
        largest, part = largest + part, part / 2
    normal = smallest / eps
    exponents = math.log2(power) - math.log2(normal) + 1
    return {
        "exponent": round(math.log2(exponents + 2)),
        "mantissa": round(-math.log2(eps)),
        "max": largest,
        "smallest_normal": normal,
        "smallest": smallest,
        "eps": eps,
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_test", "grade": true, "points": 2}
facts_hint = "halve or double a number and look at when rounded changes it"
half = {
    "exponent": 5,
    "mantissa": 10,
    "max": 65504.0,
    "smallest_normal": 2.0**-14,
    "smallest": 2.0**-24,
    "eps": 2.0**-10,
}
single = {"exponent": 8, "mantissa": 23, "max": 3.4028235e38, "smallest_normal": 2.0**-126, "eps": 2.0**-23}
assert_values(dtype_facts, {("fp16",): half, ("fp32",): single | {"smallest": 2.0**-149}}, facts_hint, relative=1e-6)
### BEGIN HIDDEN TESTS
others = {
    "tf32": (8, 10, 3.4011621e38, 2.0**-126, 2.0**-136),
    "bf16": (8, 7, 3.3895314e38, 2.0**-126, 2.0**-133),
    "e4m3": (4, 3, 448.0, 2.0**-6, 2.0**-9),
    "e5m2": (5, 2, 57344.0, 2.0**-14, 2.0**-16),
}
for name, (exponent, mantissa, largest, normal, smallest) in others.items():
    facts = {"exponent": exponent, "mantissa": mantissa, "max": largest, "smallest_normal": normal}
    facts |= {"smallest": smallest, "eps": 2.0**-mantissa}
    assert_values(dtype_facts, {(name,): facts}, facts_hint, relative=1e-6)
### END HIDDEN TESTS

# %%
rows = []
for name in lab5.FORMATS:
    facts = dtype_facts(name)
    rows.append((name, *(f"{facts[key]:.5g}" for key in facts)))
Table(("", *dtype_facts("fp16")), rows, title="What each format can hold")

# %% [markdown]
# bf16 has the range of fp32 in half of its bits, and pays with precision: between 1 and 1.0078 there is nothing.
#
# ### b) What happens to sums ({points q1_4_sum_test})
#
# Add many small numbers, one by one, into a sum that is kept in a short format:
#
# - `running_sum(value, count, name)`: `value`, rounded to the format, added `count` times to 0. The sum is rounded to
#   the format after each addition.


# %% nbgrader={"grade_id": "q1_4_sum", "solution": true}
def running_sum(value, count, name):
    """The sum of `count` times `value`, added one by one and rounded each time."""
    ### BEGIN SOLUTION
    value, total = rounded(value, name), 0.0
    for _ in range(count):
        total = rounded(total + value, name)
    return total
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_4_sum_test", "grade": true, "points": 1}
sum_hint = "round the value first, and the sum after each single addition"
assert_values(running_sum, {(0.5, 3, "fp16"): 1.5, (1.0, 300, "e4m3"): 16.0, (0.1, 4, "e4m3"): 0.40625}, sum_hint)
assert_values(running_sum, {(0.1, 5, "e4m3"): 0.5, (0.7, 6, "e5m2"): 5.0}, sum_hint)
### BEGIN HIDDEN TESTS
assert_values(running_sum, {(1e-4, 10000, "fp16"): 0.25, (1e-4, 10000, "bf16"): 0.03125}, sum_hint)
assert_values(running_sum, {(1.0, 5000, "fp16"): 2048.0, (1.0, 5000, "bf16"): 256.0}, sum_hint)
assert_values(running_sum, {(1e-8, 10, "fp16"): 0.0, (1e-8, 10, "bf16"): 1.0058283805847168e-07}, sum_hint)
### END HIDDEN TESTS

# %%
rows = [
    (
        name,
        *(f"{running_sum(*case, name):g}" for case in ((1e-4, 10000), (1.0, 5000))),
        *(f"{rounded(x, name):.7g}" for x in (1.001, 65520.0, 1e-8)),
    )
    for name in ("fp32", "fp16", "bf16")
]
Table(("", "10,000 x 0.0001", "5,000 x 1", "1.001", "65520", "0.00000001"), rows, title="Added one by one, and rounded")

# %% [markdown]
# The sum should be 1, and it stands still at a quarter of that in fp16: from there on the next number is too far away
# for a step of 0.0001. So products in 16 bits add up in fp32, and a kernel that sums does the same.
#
# ### c) Which operation needs what ({points q1_4_sort_test})
#
# Mixed precision asks of each operation: may its result be stored in 16 bits as it is? Or does it need *precision*,
# because it adds up many numbers? Or *range*, because its results can be very large or very small? (In fp16, exp(x) is
# infinite from x = 11.09 on.)
#
# - `needs`: for each of these thirteen operations `"16 bits"`, `"precision"` or `"range"`. A product adds up in fp32
#   inside, so its result may be stored in 16 bits.

# %% nbgrader={"grade_id": "q1_4_sort", "solution": true}
needs = dict.fromkeys(
    ["matmul", "relu", "tanh", "add", "sub", "mul", "sum", "softmax", "norm", "exp", "log", "pow", "loss"]
)
### BEGIN SOLUTION
needs = dict.fromkeys(["matmul", "relu", "tanh", "add", "sub", "mul"], "16 bits")
needs |= dict.fromkeys(["sum", "softmax", "norm"], "precision")
needs |= dict.fromkeys(["exp", "log", "pow", "loss"], "range")
### END SOLUTION

# %% nbgrader={"grade_id": "q1_4_sort_test", "grade": true, "points": 2}
operations = {"matmul", "relu", "tanh", "add", "sub", "mul", "sum", "softmax", "norm", "exp", "log", "pow", "loss"}
assert isinstance(needs, dict) and set(needs) == operations, "needs is a dict with the thirteen operations as keys"
for operation, need in needs.items():
    assert need in ("16 bits", "precision", "range"), f'needs["{operation}"] is "16 bits", "precision" or "range"'
assert needs["matmul"] == "16 bits", 'needs["matmul"]: the text says it'
### BEGIN HIDDEN TESTS
right = dict.fromkeys(["relu", "tanh", "add", "sub", "mul"], "16 bits") | dict.fromkeys(
    ["sum", "softmax", "norm"], "precision"
)
right |= dict.fromkeys(["exp", "log", "pow", "loss"], "range")
for operation, need in right.items():
    said = f'needs["{operation}"] is not "{needs[operation]}": does it add up many numbers? Can its result be extreme?'
    assert needs[operation] == need, said
### END HIDDEN TESTS

# %% [markdown]
# ## 1.5 One large layer ({points q1_5})
#
# A feed-forward layer of a model as large as GPT-3 makes 4d numbers of d.
#
# - `linear_bytes(d_in, d_out, n)`: the bytes of its weights, n bytes a number, without a bias
# - `weights_gb` and `weights_gib`: those of d = 12288 and 4d in fp32, in GB (10⁹ bytes) and in GiB (2³⁰ bytes)
# - `slide_width`: a slide said "12k: 2.304 GB". Which d is that, exactly?

# %% nbgrader={"grade_id": "q1_5", "solution": true}
weights_gb = None
weights_gib = None
slide_width = None
### BEGIN SOLUTION
weights_gb = 4 * 12288 * 4 * 12288 / 1e9
weights_gib = 4 * 12288 * 4 * 12288 / 2**30
slide_width = 12000
### END SOLUTION


def linear_bytes(d_in, d_out, n):
    """Bytes of the weights of a linear layer: an int."""
    ### BEGIN SOLUTION
    return n * d_in * d_out
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_5_test", "grade": true, "points": 1}
linear_hint = "a weight for each pair of an input and an output, n bytes each"
assert_counts(linear_bytes, {(3, 5, 2): 30, (1024, 4096, 4): 16777216, (1, 1, 1): 1}, linear_hint)
### BEGIN HIDDEN TESTS
assert_counts(linear_bytes, {(12288, 49152, 4): 2415919104, (12288, 49152, 2): 1207959552}, linear_hint)
assert_counts(
    linear_bytes, {(I, O, n): I * O * n for I, O, n in draws(15, (1, 10**9), (1, 10**9), (1, 8))}, linear_hint
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_5_units_test", "grade": true, "points": 1}
assert is_number(weights_gb) and is_number(weights_gib), "weights_gb and weights_gib are numbers"
assert is_count(slide_width), "slide_width is a whole number"
### BEGIN HIDDEN TESTS
assert is_near(weights_gb, 2.415919, 1e-3), "weights_gb: the bytes of d x 4d weights of 4 bytes, over 10⁹"
assert is_near(weights_gib, 2.25, 1e-3), "weights_gib: the same bytes over 2³⁰"
assert slide_width == 12000, "slide_width: which d makes 4 d² numbers of 4 bytes exactly 2.304 GB?"
### END HIDDEN TESTS

# %% [markdown]
# Three figures for the same layer, 2.416 GB, 2.25 GiB and 2.304 GB, and each of them is right for somebody. Say which
# number and which unit you mean.
