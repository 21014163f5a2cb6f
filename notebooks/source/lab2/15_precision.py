# %% [markdown]
# ## 1.1.5 Sixteen bits
#
# A GPU multiplies 16-bit numbers many times faster than 32-bit ones, and they take half the memory. Two formats are in
# use, and they fail in different ways:
#
# | format | bits of the exponent | of the fraction | largest | next after 1 |
# |---|---|---|---|---|
# | fp32 | 8 | 23 | 3.4 x 10³⁸ | 1.00000012 |
# | fp16 | 5 | 10 | 65504 | 1.00098 |
# | bf16 | 8 | 7 | 3.4 x 10³⁸ | 1.0078 |
#
# ### Adding up ({points q1_1_5})
#
# Add 0.01 a thousand times. In which format you keep the sum matters more than in which you keep the terms.
#
# - `accumulate(value, steps, total_dtype, term_dtype)`: begin with 0 in `total_dtype`, and `steps` times add `value`,
#   rounded to `term_dtype` once. Each sum is rounded to `total_dtype`. Return a Python float. dtypes are `"float32"`,
#   `"float16"` and `"bfloat16"`.
# - `step_taken(total, value, dtype)`: by how much a sum that stands at `total` moves when `value` is added, with both
#   of them and the result in `dtype`. A Python float.
# - `bf16_stops_after`: after how many additions of 0.01 does a sum in bf16 (with terms in bf16) change no more?
# - `fp16_stops_at`: at which number would the sum in fp16 (with terms in fp16) stop, if you went on long enough?
#
# <details><summary>Hint</summary>
#
# `rl.tensor([value], dtype="bfloat16")` rounds, and `.to("float32")` converts. An operation wants both operands in one
# dtype, so convert the term to the dtype of the sum. NumPy knows `bfloat16` once you have imported `ml_dtypes`.
# </details>


# %% nbgrader={"grade_id": "q1_1_5", "solution": true}
def accumulate(value, steps, total_dtype, term_dtype):
    """`value` in term_dtype, added up `steps` times in total_dtype: a float."""
    ### BEGIN SOLUTION
    term = rl.tensor([value], dtype=term_dtype).to(total_dtype)
    total = rl.zeros(1, dtype=total_dtype)
    for _ in range(steps):
        total = total + term
    return total.tolist()[0]
    ### END SOLUTION


def step_taken(total, value, dtype):
    """By how much the sum moves: a float."""
    ### BEGIN SOLUTION
    before = rl.tensor([total], dtype=dtype)
    after = before + rl.tensor([value], dtype=dtype)
    return after.tolist()[0] - before.tolist()[0]
    ### END SOLUTION


bf16_stops_after = None  # additions
fp16_stops_at = None
### BEGIN SOLUTION
bf16_stops_after = 350
fp16_stops_at = 32
### END SOLUTION

# %% nbgrader={"grade_id": "q1_1_5_test", "grade": true, "points": 3}


def check_sum(value, steps, total_dtype, term_dtype, right):
    got = accumulate(value, steps, total_dtype, term_dtype)
    case = f"accumulate({value}, {steps}, {total_dtype!r}, {term_dtype!r})"
    assert isinstance(got, float), f"{case} returns a float, and not {got!r}"
    assert abs(got - right) <= 1e-6 * right, f"{case} gave {got}: round every sum to {total_dtype}, and the term once"


check_sum(0.01, 1000, "float32", "float32", 10.000133514404297)
check_sum(0.01, 1000, "float16", "float16", 9.953125)
check_sum(0.01, 1000, "float32", "float16", 10.00213623046875)
check_sum(0.01, 1000, "bfloat16", "bfloat16", 4.0)
### BEGIN HIDDEN TESTS
check_sum(0.01, 1000, "float32", "bfloat16", 10.009765625)
for value, steps, total, term in [
    (0.3, 777, "float16", "float16"),
    (0.07, 300, "bfloat16", "float16"),
    (0.07, 300, "float16", "bfloat16"),
    (0.003, 900, "float32", "float16"),
]:
    check_sum(value, steps, total, term, lab2.added_up(value, steps, total, term))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5_step_test", "grade": true, "points": 2}
for total, value, dtype, right in [(5.0, 0.01, "float16", 0.01171875), (9.0, 0.01, "float16", 0.0078125)]:
    assert_near(f"step_taken({total}, {value}, {dtype!r})", step_taken(total, value, dtype), right, 1e-9)
assert is_count(bf16_stops_after), "bf16_stops_after is a whole number"
assert is_number(fp16_stops_at), "fp16_stops_at is a number"
### BEGIN HIDDEN TESTS
assert step_taken(4.0, 0.01, "bfloat16") == 0.0, "step_taken(4.0, 0.01, 'bfloat16'): the sum does not move"
for total, value, dtype in [(3.0, 0.01, "bfloat16"), (31.0, 0.01, "float16"), (0.5, 0.0625, "float32")]:
    right = lab2.added_up(value, 1, dtype, dtype, start=total) - total
    assert_near(f"step_taken({total}, {value}, {dtype!r})", step_taken(total, value, dtype), right, 1e-9)
assert bf16_stops_after == 350, "bf16_stops_after: the first number of additions after which the sum stays the same"
assert fp16_stops_at == 32, "fp16_stops_at: where does step_taken become 0? Try powers of two"
### END HIDDEN TESTS

# %%
kinds = [("float32", "float32"), ("float16", "float16"), ("float32", "float16"), ("bfloat16", "bfloat16")]
kinds += [("float32", "bfloat16")]
accumulation_rows = [(*kind, f"{accumulate(0.01, 1000, *kind):.7g}") for kind in kinds]
Table(("sum in", "terms in", "1000 x 0.01"), accumulation_rows)

# %%
sums = {
    f"{dtype} + {dtype}": {n: accumulate(0.01, n, dtype, dtype) for n in range(100, 1001, 10)}
    for dtype in ("float32", "float16", "bfloat16")
}
rl.plots.plot_lines(sums, "", "sum", "additions", title="0.01, added up")

# %% [markdown]
# Terms in fp16 cost little: 0.01 becomes 0.0100021, and the sum is off by as much. A *sum* in fp16 walks in steps of
# its own: above 4 it moves by 0.0117 at a time, above 8 by 0.0078. It does not stall before 32. In bf16 the sum stands
# still at 4. So hardware adds products of 16-bit numbers up in fp32, and mixed precision keeps weights in fp32, to
# which a small update is added at every step.
#
# ## 1.1.5a Which dtype is where? ({points q1_1_5a})
#
# `with rl.autocast("bfloat16"):` lets every op choose its dtype. Products compute in 16 bits, and whatever needs range
# or precision in fp32. Take a small model with one of each:
#
# **`ToyModel(in_features, out_features)`**, an `rl.nn.Module`: `fc1`, a linear layer from `in_features` to 10; ReLU;
# `ln`, a LayerNorm over the 10 numbers with a weight (ones) and a bias (zeros); `fc2`, a linear layer from 10 to
# `out_features`. Linear layers have no bias. Its `forward(x)` returns the *five* tensors of the way as a dict with the
# keys `"input"`, `"fc1"`, `"relu"`, `"ln"` and `"logits"`.
#
# **`toy_dtypes(low)`**: make a `ToyModel(20, 5)` and a batch of four vectors of random numbers, run it and its loss
# `rl.cross_entropy(logits, targets)` in `rl.autocast(low)`, and go back from the loss outside of the context. Return
# `{"parameters", "fc1", "relu", "ln", "logits", "loss", "gradients"}`, each with the name of a dtype, such as
# `"float32"`. Look it up in the tensors. Do not guess.
#
# <details><summary>Hint</summary>
#
# `rl.nn.Linear(in, out, bias=False)`; `rl.layer_norm(x, weight, bias)`, whose `weight` and `bias` are attributes of the
# module that require grad; `str(tensor.dtype)`.
# </details>


# %% nbgrader={"grade_id": "q1_1_5a", "solution": true}
class ToyModel(rl.nn.Module):
    """fc1, ReLU, LayerNorm, fc2: returns all tensors of the way."""

    ### BEGIN SOLUTION
    def __init__(self, in_features, out_features):
        self.fc1 = rl.nn.Linear(in_features, 10, bias=False)
        self.ln_weight = rl.ones(10, requires_grad=True)
        self.ln_bias = rl.zeros(10, requires_grad=True)
        self.fc2 = rl.nn.Linear(10, out_features, bias=False)

    def forward(self, x):
        first = self.fc1(x)
        relu = rl.relu(first)
        ln = rl.layer_norm(relu, self.ln_weight, self.ln_bias)
        return {"input": x, "fc1": first, "relu": relu, "ln": ln, "logits": self.fc2(ln)}

    ### END SOLUTION


def toy_dtypes(low):
    """{"parameters", "fc1", "relu", "ln", "logits", "loss", "gradients"}: names of dtypes under rl.autocast(low)."""
    ### BEGIN SOLUTION
    model = ToyModel(20, 5)
    x, targets = rl.randn(4, 20), rl.randint(0, 5, (4,))
    with rl.autocast(low):
        tensors = model(x)
        loss = rl.cross_entropy(tensors["logits"], targets)
    loss.backward()
    found = {name: str(tensors[name].dtype) for name in ("fc1", "relu", "ln", "logits")}
    parameters = list(model.parameters())
    found |= {"parameters": str(parameters[0].dtype), "loss": str(loss.dtype)}
    return found | {"gradients": str(parameters[0].grad.dtype)}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_5a_test", "grade": true, "points": 2}
def check_toy(in_features, out_features):
    seen = measure.observed(ToyModel, "lab2_looks.look_at_toy", in_features, out_features)
    right = looks.toy_float64(in_features, out_features)
    for name in right:
        assert_close(
            seen[name], right[name], rtol=1e-4, atol=1e-4, name=f"ToyModel({in_features}, {out_features}): {name}"
        )


check_toy(20, 5)
### BEGIN HIDDEN TESTS
check_toy(7, 3)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5a_dtypes_test", "grade": true, "points": 3}


def check_dtypes(low):
    got = toy_dtypes(low)
    assert_keys("toy_dtypes", got, ("parameters", "fc1", "relu", "ln", "logits", "loss", "gradients"))
    assert all(isinstance(one, str) for one in got.values()), "toy_dtypes: names of dtypes are strings"
    right = looks.toy_policy(low)
    wrong = [name for name in got if got[name].removeprefix("rooflab.") != right[name]]
    assert not wrong, f"toy_dtypes({low!r}): {', '.join(f'{name} is not {got[name]}' for name in wrong)}"


check_dtypes("bfloat16")
### BEGIN HIDDEN TESTS
check_dtypes("float16")
### END HIDDEN TESTS

# %%
lists = {low: toy_dtypes(low) for low in ("float16", "bfloat16")}
dtype_rows = [(name, *(lists[low][name] for low in lists)) for name in lists["float16"]]
Table(("tensor", *(f"autocast {low}" for low in lists)), dtype_rows, title="ToyModel(20, 5), one policy on CPU and GPU")

# %% [markdown]
# ## 1.1.5b Why is LayerNorm apart? ({points q1_1_5b})
#
# A LayerNorm squares its input, adds the squares up, and divides by a root with a small ε in it. What can go wrong in
# 16 bits? Try it:
#
# - `square(x, dtype)`: x times x, all in `dtype`: a float, perhaps infinite
# - `count_ones(n, dtype)`: n ones, added one by one in `dtype`: a float
# - `stored(x, dtype)`: what is left of x when it is stored in `dtype`: a float
# - `bf16_cures`: which of fp16's troubles is gone in bf16? Choose a letter.
#     - `"a"`: Sums of many numbers stop growing too early.
#     - `"b"`: Squares of large numbers overflow.
#     - `"c"`: Both: the range of the numbers and the precision of their sums are those of fp32 again.
#     - `"d"`: None, since a number takes 16 bits as before and no format can do more with them.
# - `bf16_worsens`: and which becomes worse? Choose a letter of the same list.


# %% nbgrader={"grade_id": "q1_1_5b", "solution": true}
def square(x, dtype):
    """x times x in dtype: a float."""
    ### BEGIN SOLUTION
    number = rl.tensor([x], dtype=dtype)
    return (number * number).tolist()[0]
    ### END SOLUTION


def count_ones(n, dtype):
    """n ones, added one by one in dtype: a float."""
    ### BEGIN SOLUTION
    return accumulate(1.0, n, dtype, dtype)
    ### END SOLUTION


def stored(x, dtype):
    """x in dtype: a float."""
    ### BEGIN SOLUTION
    return rl.tensor([x], dtype=dtype).tolist()[0]
    ### END SOLUTION


bf16_cures = None  # "a", "b", "c" or "d"
bf16_worsens = None  # a letter of the same list
### BEGIN SOLUTION
bf16_cures = "b"
bf16_worsens = "a"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q1_1_5b_text", "solution": true}
# *Would you leave LayerNorm in fp32 under bf16? Why:*

# %% nbgrader={"grade_id": "q1_1_5b_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_5"]}
assert square(256.0, "float16") == float("inf"), "256 squared is beyond fp16"
assert square(256.0, "bfloat16") == 65536.0, "256 squared is a number of bf16"
assert count_ones(2560, "float16") == 2048.0, "2560 ones in fp16"
assert abs(stored(1e-5, "float16") - 1.0013580322265625e-05) < 1e-12, "1e-5 in fp16"
### BEGIN HIDDEN TESTS
assert count_ones(2560, "bfloat16") == 256.0, "2560 ones in bf16"
assert count_ones(2560, "float32") == 2560.0, "2560 ones in fp32"
assert stored(1e-8, "float16") == 0.0, "1e-8 in fp16"
assert abs(stored(1e-8, "bfloat16") - 1.0011717677116394e-08) < 1e-13, "1e-8 in bf16"
assert square(300.0, "float32") == 90000.0 and square(3.0, "float16") == 9.0, "squares of small numbers are exact"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5b_choice_test", "grade": true, "points": 2}
assert bf16_cures in tuple("abcd"), "bf16_cures: choose a letter"
assert bf16_worsens in tuple("abcd"), "bf16_worsens: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    bf16_cures,
    "b",
    a="Compare count_ones(2560, ...) in both formats.",
    c="Compare the two formats' bits of the fraction.",
    d="Sixteen bits can be shared out differently between exponent and fraction: see square(256.0, ...).",
)
assert bf16_worsens == "a", "bf16_worsens: compare count_ones(2560, ...) and square(256.0, ...) in both formats"
### END HIDDEN TESTS

# %% [markdown]
# fp16 runs out of range, and bf16 out of precision. An ε of 10⁻⁵ survives in both; one of 10⁻⁸ is zero in fp16.
# Published verdicts on LayerNorm in bf16 differ: it works more often than not, because its inputs are of moderate size
# and hardware adds up in fp32. Keeping it in fp32 costs little, since a norm moves few bytes beside the products.
#
# ## 1.1.5c What does it gain? ({points q1_1_5c})
#
# Under autocast every weight of a product is copied to 16 bits, in each pass.
#
# - `weight_casts(config)`: how many weights are copied in a forward pass. That of the embedding is none of them, since
#   looking up a token is no product.
# - `weight_cast_bytes(config, vocab_size)`: the bytes that these copies read and write in fp32 and bf16, a whole number
# - `precision_row(model, input_ids, mode, amp_context)`: run your benchmark with 5 + 10 steps twice, without
#   `amp_context` and in it. Return `{"fp32_ms", "low_ms", "speed_up"}` with medians. The speed-up is above 1 where low
#   precision is faster.
# - `bf16_is_slower`: R's forward passes, profiled with ranges, take longer in bf16 than in fp32 (75.9 ms and 79.4 ms
#   for the small model). Its numbers are means of 15 calls, and the first of them is one. Does that show that bf16 is
#   slower? Choose a letter.
#     - `"a"`: Yes: the copies of the weights cost more than the products gain.
#     - `"b"`: No: the first call alone can make such a difference.
#     - `"c"`: Yes: a mean over 15 calls is exact to within a few per cent, whatever one of them took.
#     - `"d"`: No: a profile with ranges lasts longer in bf16, because it has more kernels to write down.


# %% nbgrader={"grade_id": "q1_1_5c", "solution": true}
def weight_casts(config):
    """Weights that a forward pass copies to 16 bits: an int."""
    ### BEGIN SOLUTION
    return 7 * config["num_layers"] + 1
    ### END SOLUTION


def weight_cast_bytes(config, vocab_size):
    """Bytes that these copies read and write: an int."""
    ### BEGIN SOLUTION
    D, n = config["d_model"], config["num_layers"]
    return 6 * (count_parameters(config, vocab_size) - vocab_size * D - (2 * n + 1) * D)
    ### END SOLUTION


def precision_row(model, input_ids, mode, amp_context):
    """{"fp32_ms", "low_ms", "speed_up"}: medians."""
    ### BEGIN SOLUTION
    fp32_ms, low_ms = (
        1e3 * float(np.median(benchmark(model, input_ids, mode, 5, 10, amp))) for amp in (None, amp_context)
    )
    return {"fp32_ms": fp32_ms, "low_ms": low_ms, "speed_up": fp32_ms / low_ms}
    ### END SOLUTION


bf16_is_slower = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
bf16_is_slower = "b"
### END SOLUTION

# %% nbgrader={"grade_id": "q1_1_5c_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_2"]}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
LARGEST = {"d_model": 2560, "d_ff": 10240, "num_layers": 32, "num_heads": 32}
hint = "in a layer four weights of attention and three of SwiGLU; the head"
assert_whole(weight_casts, [((SMALL,), 85), ((LARGEST,), 225)], hint)
byte_hint = "4 bytes are read and 2 are written for each weight of a product; gains and the embedding are not cast"
assert_whole(weight_cast_bytes, [((SMALL, 10000), 725557248)], byte_hint)
### BEGIN HIDDEN TESTS
assert_whole(weight_cast_bytes, [((LARGEST, 10000), 20286259200)], byte_hint)
for config, V, B, L in draw_configs(seed=1153, count=6):
    casts, moved = looks.weight_casts(config, V, B, L)
    assert_whole(weight_casts, [((config,), casts)], hint)
    assert_whole(weight_cast_bytes, [((config, V), moved)], byte_hint)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_5c_row_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_3a"]}
def check_precision(mode, low_factor, **times):
    times = {"work_ms": 40.0, "host_ms": 1.0, "slow_ms": [900.0], "jitter": 0.01, "seed": 7, **times}
    ids = rl.zeros(2, 3, dtype="int64")
    seen = measure.faked(
        precision_row, "<model>", ids, mode, "<low precision>", device={**times, "low_factor": low_factor}
    )
    row = seen.value
    assert_keys("precision_row", row, ("fp32_ms", "low_ms", "speed_up"))
    steps = sum(np.array([one.work_ms for one in seen.launches(label)]) for label in lab2.LABELS[mode])
    assert len(steps) == 30, f"{mode}: {len(steps)} steps ran, and not 5 + 10 twice"
    fp32_ms, low_ms = float(np.median(steps[5:15])), float(np.median(steps[20:]))
    assert abs(low_ms / fp32_ms / low_factor - 1) < 0.05, f"{mode}: the second benchmark runs in amp_context"
    for name, right in {"fp32_ms": fp32_ms, "low_ms": low_ms, "speed_up": fp32_ms / low_ms}.items():
        assert_near(f"precision_row, {mode}, {name}", row[name], right, 0.01)


check_precision("forward", 0.5)
check_precision("both", 0.8)
### BEGIN HIDDEN TESTS
check_precision("forward", 1.25, work_ms=5.0, seed=71)
check_precision("both", 0.3, work_ms=9.0, host_ms=0.3, seed=72)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5c_choice_test", "grade": true, "points": 1}
assert bf16_is_slower in tuple("abcd"), "bf16_is_slower: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    bf16_is_slower,
    "b",
    a="The copies move six bytes a weight. How long does R's GPU, at 1.8 TB/s, take for the small model's?",
    c="See 1.1.3c: what does a first call of 800 ms do to a mean of 15?",
    d="Is a kernel more for each weight worth several milliseconds?",
)
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
# A GPU with tensor cores gains, and the more so the larger the products are. A CPU without 16-bit arithmetic loses: it
# converts back and forth. The format saves nothing by itself. It has to meet hardware that computes in it.
