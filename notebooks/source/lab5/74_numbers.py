# %% [markdown]
# ## b1.4 What a short number can hold ({points b1_4})
#
# A floating-point number has a sign bit, a few bits for the *exponent*, and a few for the *mantissa*. The exponent
# decides how large and how small numbers can be: the **range**. The mantissa decides how close neighbouring numbers
# are: the **precision**. Two formats of 16 bits make different choices: fp16 has 5 exponent bits and 10 mantissa bits,
# bf16 has 8 and 7.
#
# ### a) The limits of a format ({points b1_4_test})
#
# `rounded(x, name)` returns the number of a format that is nearest to x. The formats are `"fp32"`, `"tf32"`, `"fp16"`,
# `"bf16"`, `"e4m3"` and `"e5m2"`. Use it in a few loops to find the limits of a format:
#
# - `dtype_facts(name)`: a dict with
#     - `"exponent"` and `"mantissa"`: the number of bits of each
#     - `"max"`: the largest finite number
#     - `"smallest_normal"`: the smallest positive number with full precision. The numbers below it are called
#       subnormal. They are equally spaced, so they have fewer significant bits the smaller they are.
#     - `"smallest"`: the smallest positive number of all
#     - `"eps"`: the distance from 1 to the next larger number
#
# e4m3 and e5m2 have 8 bits. e4m3 has no infinity, so `rounded` returns NaN for a number that is too large, and its
# largest exponent is used for numbers as well. If you find the limits with `rounded`, you need no special case for it.
#
# <details><summary>Hint 1</summary>
#
# Except for `"max"`, all these numbers are powers of two. Halve or double a number until `rounded` changes it. A tie is
# rounded to the even neighbour: `rounded(1 + eps / 2, name)` is 1.
# </details>
# <details><summary>Hint 2: the largest number</summary>
#
# Start with the largest power of two that stays finite. Then add half of it, a quarter, an eighth and so on, as long as
# `rounded` does not change the sum.
# </details>
# <details><summary>Hint 3: the bits of the exponent</summary>
#
# The smallest normal number and the largest power of two tell you how many different exponents there are. One or two
# more are reserved, for zero and for infinity.
# </details>


# %% nbgrader={"grade_id": "b1_4", "solution": true}
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


# %% nbgrader={"grade_id": "b1_4_test", "grade": true, "points": 2}
fact_hints = {
    "exponent": "how many powers of two are there from smallest_normal to max? One or two more are reserved",
    "mantissa": "eps is 2 to the power of minus this number",
    "max": "is rounded(max, name) equal to max, and is the next larger number not finite?",
    "smallest_normal": "the smallest power of two x for which x (1 + eps) is a number of the format too",
    "smallest": "half of it is rounded to 0",
    "eps": "1 + eps is a number of the format, and nothing between 1 and 1 + eps is",
}


def check_facts(name, facts):
    got = dtype_facts(name)
    said = f"dtype_facts({name!r}) must return a dict with the keys {', '.join(fact_hints)}, got {got!r}"
    assert isinstance(got, dict) and set(got) == set(fact_hints), said
    for key, right in facts.items():
        fits = is_count(got[key]) and got[key] == right if isinstance(right, int) else is_near(got[key], right, 1e-6)
        said = f"dtype_facts({name!r}): {key} is {got[key]!r}, expected {right!r}. Hint: {fact_hints[key]}"
        assert fits, said


half = {
    "exponent": 5,
    "mantissa": 10,
    "max": 65504.0,
    "smallest_normal": 2.0**-14,
    "smallest": 2.0**-24,
    "eps": 2.0**-10,
}
single = {"exponent": 8, "mantissa": 23, "max": 3.4028235e38, "smallest_normal": 2.0**-126, "eps": 2.0**-23}
check_facts("fp16", half)
check_facts("fp32", single | {"smallest": 2.0**-149})
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
    check_facts(name, facts)
### END HIDDEN TESTS

# %%
rows = []
for name in lab5.FORMATS:
    facts = dtype_facts(name)
    rows.append((name, *(f"{facts[key]:.5g}" for key in facts)))
Table(("", *dtype_facts("fp16")), rows, title="The limits of each format")

# %% [markdown]
# bf16 has the range of fp32 with half of its bits. The price is precision: see how far the next number after 1 is.
#
# ### b) What happens to sums ({points b1_4_sum_test})
#
# Add many small numbers one by one, and keep the sum in a short format:
#
# - `running_sum(value, count, name)`: start with 0 and add `value` `count` times. Round `value` to the format once
#   before, and round the sum to the format after each addition.


# %% nbgrader={"grade_id": "b1_4_sum", "solution": true}
def running_sum(value, count, name):
    """`value` added `count` times to 0, one by one, with the sum rounded each time."""
    ### BEGIN SOLUTION
    value, total = rounded(value, name), 0.0
    for _ in range(count):
        total = rounded(total + value, name)
    return total
    ### END SOLUTION


# %% nbgrader={"grade_id": "b1_4_sum_test", "grade": true, "points": 1}
sum_hint = "round the value first, and then the sum after each addition"
assert_values(running_sum, {(0.5, 3, "fp16"): 1.5, (1.0, 300, "e4m3"): 16.0, (0.1, 4, "e4m3"): 0.40625}, sum_hint)
assert_values(running_sum, {(0.1, 5, "e4m3"): 0.5, (0.7, 6, "e5m2"): 5.0, (-0.1, 5, "e4m3"): -0.5}, sum_hint)
### BEGIN HIDDEN TESTS
assert_values(running_sum, {(1e-4, 10000, "fp16"): 0.25, (1e-4, 10000, "bf16"): 0.03125}, sum_hint)
few, many = measure.draw(300, 2000), measure.draw(2100, 3500)
assert_values(running_sum, {(1.0, many, "fp16"): 2048.0, (1.0, many, "bf16"): 256.0}, sum_hint)
assert_values(running_sum, {(1.0, few, "fp16"): float(few), (0.125, few, "e5m2"): 1.0}, sum_hint)
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
Table(
    ("", "10,000 x 0.0001", "5,000 x 1", "1.001", "65520", "0.00000001"),
    rows,
    title="Two running sums, and three numbers rounded",
)

# %% [markdown]
# The first sum should be 1. A sum stops where the distance to the next number is so large that adding a term rounds
# back to the same sum. This is why products of 16-bit numbers are accumulated in fp32, and why kernels that sum do the
# same.
#
# ### c) Which operation needs what ({points b1_4_sort_test})
#
# Mixed precision sorts operations into three groups. The result of some operations can be stored in 16 bits. Others
# need *precision*, because they add up many numbers. Others need *range*, because their results can be very large or
# very small. (In fp16, exp(x) is infinite from x = 11.09 on.)
#
# For four operations both reasons hold. A softmax and a loss add up many numbers, and these numbers are exponentials. A
# norm adds up squares, which can be very large. The logarithm of a very small number is infinite if that number was
# rounded to 0, and close to 1 a small error of x changes log(x) a lot. For softmax, loss, norm and log, `"precision"`
# and `"range"` are both accepted.
#
# - `needs`: a dict from each of these thirteen operations to `"16 bits"`, `"precision"` or `"range"`. A matrix product
#   accumulates in fp32 internally, so its result can be stored in 16 bits.

# %% nbgrader={"grade_id": "b1_4_sort", "solution": true}
needs = dict.fromkeys(
    ["matmul", "relu", "tanh", "add", "sub", "mul", "sum", "softmax", "norm", "exp", "log", "pow", "loss"]
)
### BEGIN SOLUTION
needs = dict.fromkeys(["matmul", "relu", "tanh", "add", "sub", "mul"], "16 bits")
needs |= dict.fromkeys(["sum", "softmax", "norm"], "precision")
needs |= dict.fromkeys(["exp", "log", "pow", "loss"], "range")
### END SOLUTION

# %% nbgrader={"grade_id": "b1_4_sort_test", "grade": true, "points": 2}
operations = {"matmul", "relu", "tanh", "add", "sub", "mul", "sum", "softmax", "norm", "exp", "log", "pow", "loss"}
keys = isinstance(needs, dict) and set(needs) == operations
assert keys, f"needs must be a dict with the keys {sorted(operations)}, got {needs!r}"
for operation, need in needs.items():
    said = f'needs["{operation}"] must be "16 bits", "precision" or "range", got {need!r}'
    assert need in ("16 bits", "precision", "range"), said
said = f'needs["matmul"] is "{needs["matmul"]}", expected "16 bits": its result can be stored in 16 bits, see the text'
assert needs["matmul"] == "16 bits", said
### BEGIN HIDDEN TESTS
right = dict.fromkeys(["relu", "tanh", "add", "sub", "mul"], ("16 bits",))
right |= {"sum": ("precision",)} | dict.fromkeys(["exp", "pow"], ("range",))
right |= dict.fromkeys(["softmax", "loss", "norm", "log"], ("precision", "range"))
for operation, accepted in right.items():
    said = f'needs["{operation}"] is not "{needs[operation]}": does it add up many numbers? Can its result be extreme?'
    assert needs[operation] in accepted, said
### END HIDDEN TESTS

# %% [markdown]
# ## b1.5 One large layer ({points b1_5})
#
# A feed-forward layer of a model as large as GPT-3 turns d = 12288 elements into 4d.
#
# - `linear_bytes(d_in, d_out, n)`: the bytes of the weights of a linear layer without a bias, n bytes per element
# - `weights_gb` and `weights_gib`: the bytes of the d x 4d weights in fp32, in GB (10⁹ bytes) and in GiB (2³⁰ bytes)
# - `slide_width`: a slide of the lecture said "12k: 2.304 GB" about this layer. Which value of d gives exactly that?


# %% nbgrader={"grade_id": "b1_5", "solution": true}
def linear_bytes(d_in, d_out, n):
    """Bytes of the weights of a linear layer: an int."""
    ### BEGIN SOLUTION
    return n * d_in * d_out
    ### END SOLUTION


weights_gb = None
weights_gib = None
slide_width = None
### BEGIN SOLUTION
weights_gb = 4 * 12288 * 4 * 12288 / 1e9
weights_gib = 4 * 12288 * 4 * 12288 / 2**30
slide_width = 12000
### END SOLUTION

# %% nbgrader={"grade_id": "b1_5_test", "grade": true, "points": 1}
linear_hint = "how many weights does the layer have?"
assert_counts(linear_bytes, {(3, 5, 2): 30, (1024, 4096, 4): 16777216, (1, 1, 1): 1}, linear_hint)
### BEGIN HIDDEN TESTS
assert_counts(linear_bytes, {(12288, 49152, 4): 2415919104, (12288, 49152, 2): 1207959552}, linear_hint)
assert_counts(linear_bytes, {(I, O, n): I * O * n for I, O, n in draws((1, 10**9), (1, 10**9), (1, 8))}, linear_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_5_units_test", "grade": true, "points": 1}
for name, value in (("weights_gb", weights_gb), ("weights_gib", weights_gib)):
    assert is_number(value), f"{name} must be a number, got {value!r}"
assert is_count(slide_width), f"slide_width must be a whole number (int), got {slide_width!r}"
### BEGIN HIDDEN TESTS
assert_near("weights_gb", weights_gb, 2.415919, 1e-3, "how many bytes are d x 4d weights in fp32, and what is a GB?")
assert_near("weights_gib", weights_gib, 2.25, 1e-3, "how many bytes are d x 4d weights in fp32, and what is a GiB?")
said = f"slide_width is not {slide_width}: for which d do 4 d² weights of 4 bytes take exactly 2.304 GB?"
assert slide_width == 12000, said
### END HIDDEN TESTS

# %% [markdown]
# So there are three figures for the same layer. Each is right for its own unit or its own d. So always state the exact
# number and the unit.
