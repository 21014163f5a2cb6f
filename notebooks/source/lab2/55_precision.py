# %% [markdown]
# ## b1.1.5b Why is LayerNorm apart? ({points b1_1_5b})
#
# Autocast computes LayerNorm in fp32. A LayerNorm squares its inputs, adds up the squares, and divides by a square root
# that contains a small ε. Each of these steps can fail in 16 bits. Try each of them:
#
# - `square(x, dtype)`: x times x, computed in `dtype`. A float, which may be infinite.
# - `count_ones(n, dtype)`: the sum of n ones, added one by one in `dtype`. A float.
# - `stored(x, dtype)`: the value that x has after it is stored in `dtype`. A float.
#
# Now follow one LayerNorm through these steps. It gets 4096 numbers: one half is 30, the other half is -30. Their mean
# is 0, so each result should be 1 or -1. Suppose that every step computes in one format: it squares the numbers, adds
# the squares one after the other, divides the sum by 4096, adds ε = 10⁻⁵ and takes the square root. In the end it
# divides each number by this root. Use your functions, `accumulate` of 1.1.5 among them.
#
# - `norm_in_fp16`: what are the results in fp16? Choose a letter.
#     - `"a"`: 1 and -1, because errors of the same size cancel between the halves.
#     - `"b"`: All zero.
#     - `"c"`: More than three times too large.
#     - `"d"`: Infinite, because the number under the square root is zero.
# - `norm_in_bf16`: what are they in bf16? Choose a letter.
#     - `"a"`: More than three times too large.
#     - `"b"`: 1 and -1, because bf16 has as many exponent bits as fp32.
#     - `"c"`: All zero.
#     - `"d"`: Infinite, because the number under the square root is zero.


# %% nbgrader={"grade_id": "b1_1_5b", "solution": true}
def square(x, dtype):
    """x times x, computed in dtype: a float, perhaps infinite."""
    ### BEGIN SOLUTION
    number = rl.tensor([x], dtype=dtype)
    return (number * number).tolist()[0]
    ### END SOLUTION


def count_ones(n, dtype):
    """The sum of n ones, added one by one in dtype: a float."""
    ### BEGIN SOLUTION
    return accumulate(1.0, n, dtype, dtype)
    ### END SOLUTION


def stored(x, dtype):
    """The value that x has after it is stored in dtype: a float."""
    ### BEGIN SOLUTION
    return rl.tensor([x], dtype=dtype).tolist()[0]
    ### END SOLUTION


norm_in_fp16 = None  # "a", "b", "c" or "d"
norm_in_bf16 = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
norm_in_fp16 = "b"
norm_in_bf16 = "a"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "b1_1_5b_text", "solution": true}
# *With bf16, would you keep LayerNorm in fp32? Why:*


# %% nbgrader={"grade_id": "b1_1_5b_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_5"]}
def check_sixteen(function, x, dtype, right, tolerance=0.0):
    got, call = function(x, dtype), f"{function.__name__}({x}, {dtype!r})"
    assert isinstance(got, float), f"{call}: expected a Python float, got {got!r}"
    assert got == right or abs(got - right) <= tolerance, f"{call}: expected {right}, got {got}"


check_sixteen(square, 256.0, "float16", float("inf"))
check_sixteen(square, 256.0, "bfloat16", 65536.0)
check_sixteen(square, 300.0, "bfloat16", 90112.0)
check_sixteen(square, 0.7, "bfloat16", 0.48828125)  # x is rounded before it is squared
check_sixteen(count_ones, 2560, "float16", 2048.0)
check_sixteen(count_ones, 300, "bfloat16", 256.0)
check_sixteen(stored, 1e-5, "float16", 1.0013580322265625e-05, 1e-12)
### BEGIN HIDDEN TESTS
n, x = measure.draw(2049, 3000), measure.draw(2, 45)
check_sixteen(count_ones, n, "bfloat16", 256.0)
check_sixteen(count_ones, n, "float32", float(n))
check_sixteen(stored, 1e-8, "float16", 0.0)
check_sixteen(square, 5.7, "float16", 32.46875)
check_sixteen(stored, 1e-8, "bfloat16", 1.0011717677116394e-08, 1e-13)
check_sixteen(square, 10.0 * x, "float32", 100.0 * x**2)
check_sixteen(square, float(x), "float16", float(x**2))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_5b_choice_test", "grade": true, "points": 2}
assert norm_in_fp16 in tuple("abcd"), "norm_in_fp16: choose a letter"
assert norm_in_bf16 in tuple("abcd"), "norm_in_bf16: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    norm_in_fp16,
    "b",
    a="All squares have the same sign. Errors in their sum cannot cancel.",
    c="That needs a sum that is too small. Is the sum of the squares in fp16 too small?",
    d="The squares are 900 each. Compute their sum in fp16.",
)
assert_choice(
    norm_in_bf16,
    "a",
    b="bf16 has the range of fp32. Does it have its precision? Compare the sum in bf16 with 4096 times 900.",
    c="That needs a sum that is far too large. Compare the sum in bf16 with 4096 times 900.",
    d="The squares are 900 each. Compute their sum in bf16.",
)
### END HIDDEN TESTS

# %% [markdown]
# So one format runs out of range, and the other one runs out of precision. Follow the sum of the squares in each
# format, and you see where the results come from. Is LayerNorm in bf16 safe? Published answers differ. It works more
# often than not, because its inputs are of moderate size and hardware accumulates in fp32. Keeping it in fp32 costs
# little, because a norm moves few bytes compared with the products.
#
# ## b1.1.5c What does it gain? ({points b1_1_5c})
#
# Under autocast every forward pass first copies (*casts*) the weights of its products to 16 bits. How much traffic is
# that, and how much faster are the products?
#
# - `weight_casts(config)`: how many weight tensors a forward pass casts. An int. The embedding is not cast, because
#   looking up a token is not a product.
# - `weight_cast_bytes(config, vocab_size)`: the bytes that these casts move. Each reads fp32 and writes bf16. An int.
# - `precision_row(model, input_ids, mode, amp_context)`: run your `benchmark` with 5 warm-up and 10 measured steps,
#   first without a context and then with `amp_context`. Return `{"fp32_ms": ..., "low_ms": ..., "speed_up": ...}`. The
#   times are medians in ms, and the speed-up is fp32_ms / low_ms.
# - `first_call_ms`: R profiled forward passes in fp32 and in bf16. For the small model R gives 75.89 ms in fp32 and
#   79.35 ms in bf16. Each is the mean of as many calls as your `r_steps` of b1.1.3c, and the first call of the process
#   is one of them. Suppose that all later calls take the same time in both formats. By how many ms does the first call
#   in bf16 then take longer than the first call in fp32? A number. Compare it with a first call of R's, which you
#   computed in b1.1.3c.


# %% nbgrader={"grade_id": "b1_1_5c", "solution": true}
def weight_casts(config):
    """Weight tensors that a forward pass casts to 16 bits: an int."""
    ### BEGIN SOLUTION
    return 7 * config["num_layers"] + 1
    ### END SOLUTION


def weight_cast_bytes(config, vocab_size):
    """Bytes that these casts read (fp32) and write (bf16): an int."""
    ### BEGIN SOLUTION
    D, n = config["d_model"], config["num_layers"]
    return 6 * (count_parameters(config, vocab_size) - vocab_size * D - (2 * n + 1) * D)
    ### END SOLUTION


def precision_row(model, input_ids, mode, amp_context):
    """{"fp32_ms": ms, "low_ms": ms, "speed_up": ratio}; the times are medians."""
    ### BEGIN SOLUTION
    fp32_ms, low_ms = (
        1e3 * float(np.median(benchmark(model, input_ids, mode, 5, 10, amp))) for amp in (None, amp_context)
    )
    return {"fp32_ms": fp32_ms, "low_ms": low_ms, "speed_up": fp32_ms / low_ms}
    ### END SOLUTION


first_call_ms = None  # a number
### BEGIN SOLUTION
first_call_ms = 15 * (79.35 - 75.89)
### END SOLUTION

# %% nbgrader={"grade_id": "b1_1_5c_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_2"]}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
LARGEST = {"d_model": 2560, "d_ff": 10240, "num_layers": 32, "num_heads": 32}
hint = "count the weights of products, in each layer and outside of the layers"
assert_whole(weight_casts, [((SMALL,), 85), ((LARGEST,), 225)], hint)
byte_hint = "what does a cast read for each number, what does it write, and which weights are cast?"
assert_whole(weight_cast_bytes, [((SMALL, 10000), 725557248)], byte_hint)
### BEGIN HIDDEN TESTS
assert_whole(weight_cast_bytes, [((LARGEST, 10000), 20286259200)], byte_hint)
for config, V, B, L in draw_configs(measure.rng(), count=6):
    model = rl.nn.TransformerLM(rl.nn.TransformerConfig(**config, vocab_size=V, context_length=L), device="meta")
    with rl.autocast("bfloat16"), rl.count() as counted:
        model(rl.empty(B, L, dtype="int64", device="meta"))
    casts = [part for path, part in counted.by_range.items() if path.rpartition("/")[2] == "autocast_weights"]
    moved = sum(int(one.bytes_read + one.bytes_written) for one in casts)
    assert_whole(weight_casts, [((config,), sum(int(one.launches) for one in casts))], hint)
    assert_whole(weight_cast_bytes, [((config, V), moved)], byte_hint)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b1_1_5c_row_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_3a"]}
def check_precision(mode, low_factor, **times):
    times = {"work_ms": 40.0, "host_ms": 1.0, "jitter": 0.01, **times}
    work_ms = times["work_ms"]
    times["slow_ms"] = [900.0, *[work_ms] * 6, 3 * work_ms]  # one of the measured steps is an outlier too
    times["seed"] = measure.draw(0, 2**30)
    ids = rl.zeros(2, 3, dtype="int64")
    seen = measure.faked(
        precision_row, "<model>", ids, mode, "<low precision>", device={**times, "low_factor": low_factor}
    )
    row = seen.value
    assert_keys("precision_row", row, ("fp32_ms", "low_ms", "speed_up"))
    steps = sum(np.array([one.work_ms for one in seen.launches(label)]) for label in lab2.LABELS[mode])
    assert len(steps) == 30, f"{mode}: expected twice 5 + 10 steps, got {len(steps)}"
    fp32_ms, low_ms = float(np.median(steps[5:15])), float(np.median(steps[20:]))
    assert abs(low_ms / fp32_ms / low_factor - 1) < 0.05, (
        f"{mode}: run the second benchmark with amp_context, and the first without"
    )
    row_hint = "take the median of the measured steps, fp32 first"
    for name, right in {"fp32_ms": fp32_ms, "low_ms": low_ms, "speed_up": fp32_ms / low_ms}.items():
        assert_near(f"precision_row, {mode}, {name}", row[name], right, 0.01, row_hint)


check_precision("forward", 0.5)
check_precision("both", 0.8)
### BEGIN HIDDEN TESTS
check_precision("forward", measure.draw(120, 200) / 100, work_ms=5.0)
check_precision("both", measure.draw(20, 70) / 100, work_ms=9.0, host_ms=0.3)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_1_5c_choice_test", "grade": true, "points": 1}
assert is_number(first_call_ms), f"first_call_ms has to be a number, got {first_call_ms!r}"
### BEGIN HIDDEN TESTS
said = "first_call_ms: how much do all calls together take in each format?"
assert is_near(first_call_ms, 51.9, 0.01), said
### END HIDDEN TESTS

# %%
low_rows = []
for size, config in looks.ladder(device).items():
    sizes = rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=64)
    model, batch = rl.nn.TransformerLM(sizes, device=device), rl.randint(0, 1000, (2, 64), device=device)
    for mode in ("forward", "both"):
        row = precision_row(model, batch, mode, rl.autocast("bfloat16"))
        low_rows.append((size, mode, *(f"{row[name]:.2f}" for name in row)))
Table(("size", "mode", "fp32 ms", "bf16 ms", "speed-up"), low_rows, title=f"Your {device}, median of 10 steps")

# %% [markdown]
# R concludes that bf16 is slower. But its two means differ by 3.5 ms, and a first call that varies a little from run to
# run explains that as well. So R's means say nothing about the speed of bf16. Your own times are medians of steps after
# a warm-up.
#
# Look at the speed-ups. On a GPU with tensor cores they grow with the size of the products. On a CPU without 16-bit
# arithmetic they are below 1, because each number is converted to fp32 and back. A smaller format only saves time on
# hardware that computes in it.
