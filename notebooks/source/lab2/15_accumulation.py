# %% [markdown]
# ## 1.1.5 Sixteen bits
#
# A GPU multiplies 16-bit numbers many times faster than 32-bit ones, and they take half the memory. But 16 bits hold
# less information. Two formats are in use, and they fail in different ways:
#
# | format | exponent bits | fraction bits | largest number | next number after 1 |
# |---|---|---|---|---|
# | fp32 | 8 | 23 | 3.4 x 10³⁸ | 1.00000012 |
# | fp16 | 5 | 10 | 65504 | 1.00098 |
# | bf16 | 8 | 7 | 3.4 x 10³⁸ | 1.0078 |
#
# ### Adding up ({points q1_1_5})
#
# Add 0.01 a thousand times. The result depends on two formats: that of the sum, the *accumulator*, and that of the
# terms. Which of the two matters more?
#
# - `accumulate(value, steps, total_dtype, term_dtype)`: round `value` to `term_dtype` once, and convert this term to
#   `total_dtype`. Start with 0 in `total_dtype` and add the term `steps` times. Round the sum to `total_dtype` after
#   every addition. Return a Python float. The dtypes are `"float32"`, `"float16"` or `"bfloat16"`.
# - `step_taken(total, value, dtype)`: a sum stands at `total`. By how much does it change when you add `value`, if the
#   sum, the term and the result are all in `dtype`? Return a Python float.
# - `bf16_stops_after`: a sum in bf16 with terms in bf16 stops growing. How many additions of 0.01 does it take to reach
#   its last value? An int.
# - `fp16_stops_at`: a sum in fp16 with terms in fp16 would also stop growing, if you added 0.01 often enough. At which
#   value of the sum? A number.
#
# <details><summary>Hint</summary>
#
# `rl.tensor([value], dtype="bfloat16")` rounds, `.to("float32")` converts, and `.tolist()[0]` is a Python float. An
# op of two dtypes computes in one that holds both, so convert both operands first, to the dtype of the sum. With NumPy,
# `import ml_dtypes` adds the dtype `bfloat16`.
# </details>


# %% nbgrader={"grade_id": "q1_1_5", "solution": true}
def accumulate(value, steps, total_dtype, term_dtype):
    """The sum in total_dtype of `steps` terms, each `value` rounded to term_dtype: a float."""
    ### BEGIN SOLUTION
    term = rl.tensor([value], dtype=term_dtype).to(total_dtype)
    total = rl.zeros(1, dtype=total_dtype)
    for _ in range(steps):
        total = total + term
    return total.tolist()[0]
    ### END SOLUTION


def step_taken(total, value, dtype):
    """By how much a sum of `total` changes when `value` is added, all in dtype: a float."""
    ### BEGIN SOLUTION
    before = rl.tensor([total], dtype=dtype)
    after = before + rl.tensor([value], dtype=dtype)
    return after.tolist()[0] - before.tolist()[0]
    ### END SOLUTION


bf16_stops_after = None  # number of additions
fp16_stops_at = None  # value of the sum
### BEGIN SOLUTION
bf16_stops_after = 350
fp16_stops_at = 32
### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_5_test", "grade": true, "points": 3}
def check_sum(value, steps, total_dtype, term_dtype, right):
    got = accumulate(value, steps, total_dtype, term_dtype)
    case = f"accumulate({value}, {steps}, {total_dtype!r}, {term_dtype!r})"
    assert isinstance(got, float), f"{case}: expected a Python float, got {got!r}"
    assert abs(got - right) <= 1e-6 * abs(right), (
        f"{case}: expected {right}, got {got}; round the term once, and every sum"
    )


check_sum(0.01, 1000, "float32", "float32", 10.000133514404297)
check_sum(0.01, 1000, "float16", "float16", 9.953125)
check_sum(0.01, 1000, "float32", "float16", 10.00213623046875)
check_sum(0.01, 1000, "bfloat16", "bfloat16", 4.0)
check_sum(-0.01, 1000, "float16", "float16", -9.953125)
### BEGIN HIDDEN TESTS
check_sum(0.01, 1000, "float32", "bfloat16", 10.009765625)
for total, term in [
    ("float16", "float16"),
    ("bfloat16", "float16"),
    ("float16", "bfloat16"),
    ("float32", "float16"),
]:
    value, steps = measure.draw(-400, 400) / 1000, measure.draw(300, 1500)
    check_sum(value, steps, total, term, added_up(value, steps, total, term))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5_step_test", "grade": true, "points": 2}
steps = [(5.0, 0.01, "float16", 0.01171875), (9.0, 0.01, "float16", 0.0078125), (5.0, -0.01, "float16", -0.01171875)]
steps.append((5.01, 0.01, "float16", 0.01171875))  # 5.01 is 5.01171875 in fp16, and the sum becomes 5.0234375
step_hint = "round the sum before the step, the term, and the sum after it, and subtract"
for total, value, dtype, right in steps:
    assert_near(f"step_taken({total}, {value}, {dtype!r})", step_taken(total, value, dtype), right, 1e-9, step_hint)
assert is_count(bf16_stops_after), f"bf16_stops_after has to be an int, got {bf16_stops_after!r}"
assert is_number(fp16_stops_at), f"fp16_stops_at has to be a number, got {fp16_stops_at!r}"
### BEGIN HIDDEN TESTS
got = step_taken(4.0, 0.01, "bfloat16")
assert got == 0.0, f"step_taken(4.0, 0.01, 'bfloat16'): expected 0.0, got {got}"
third = measure.draw(1, 20) + 1 / 3  # no format holds it
for total, dtype in [(float(measure.draw(1, 30)), "bfloat16"), (31.0, "float16"), (0.5, "float32"), (third, "float16")]:
    value = measure.draw(1, 400) / 1000
    right = added_up(value, 1, dtype, dtype, start=total) - added_up(0.0, 1, dtype, dtype, start=total)
    assert_near(f"step_taken({total}, {value}, {dtype!r})", step_taken(total, value, dtype), right, 1e-9, step_hint)
assert bf16_stops_after == 350, (
    "bf16_stops_after: find the smallest number of additions after which one more changes nothing"
)
assert fp16_stops_at == 32, "fp16_stops_at: where does step_taken become 0? Try sums that are powers of two"
### END HIDDEN TESTS

# %%
kinds = [("float32", "float32"), ("float16", "float16"), ("float32", "float16"), ("bfloat16", "bfloat16")]
kinds += [("float32", "bfloat16")]
accumulation_rows = [(*kind, f"{accumulate(0.01, 1000, *kind):.7g}") for kind in kinds]
Table(("sum in", "terms in", "1000 x 0.01"), accumulation_rows)

# %%
sums = {
    f"{dtype} + {dtype}": {n: accumulate(0.01, n, dtype, dtype) for n in range(250, 5001, 250)}
    for dtype in ("float32", "float16", "bfloat16")
}
rl.plots.plot_lines(sums, "", "sum", "additions", title="Adding 0.01 again and again", linear=True)

# %% [markdown]
# Compare the rows of the table. A *term* in fp16 does little harm: the sum is off by as many per cent as the term. A
# *sum* in fp16 is worse, because it can only move in steps of its own spacing, and this spacing grows with the sum. At
# some point a step is too small to move it at all. This is why hardware multiplies 16-bit numbers but accumulates in
# fp32. It is also why mixed precision keeps the weights in fp32: each training step adds a small update to them.
