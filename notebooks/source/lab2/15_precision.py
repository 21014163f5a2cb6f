# %% [markdown]
# ## 1.1.5a Which dtype is where? ({points q1_1_5a})
#
# `with rl.autocast("bfloat16"):` chooses a dtype for each op. Matrix products compute in 16 bits. Ops that need range
# or precision compute in fp32. Which tensors of a model end up in which dtype? Find out with a model that has one op of
# each kind.
#
# **`ToyModel(in_features, out_features)`** is an `rl.nn.Module` with four parts in this order:
#
# - `fc1`: a linear layer from `in_features` to 10, without bias
# - ReLU
# - `ln`: a LayerNorm over the 10 numbers, with a weight (ones) and a bias (zeros)
# - `fc2`: a linear layer from 10 to `out_features`, without bias
#
# `forward(x)` returns the input and the four results as a dict with the keys `"input"`, `"fc1"`, `"relu"`, `"ln"` and
# `"logits"`.
#
# **`toy_dtypes(low)`** makes a `ToyModel(20, 5)` and a batch of four random vectors. Inside `rl.autocast(low)` it runs
# the model and the loss `rl.cross_entropy(logits, targets)`. Outside it runs `loss.backward()`. It returns a dict with
# the keys `"parameters"`, `"fc1"`, `"relu"`, `"ln"`, `"logits"`, `"loss"` and `"gradients"`. Each value is the name of
# a dtype, such as `"float32"`. Read it from the tensors; do not guess it.
#
# <details><summary>Hint</summary>
#
# `rl.nn.Linear(in, out, bias=False)` is a linear layer. `rl.layer_norm(x, weight, bias)` needs a weight and a bias:
# make them attributes of the module, with `requires_grad=True`. `str(tensor.dtype)` is the name of a dtype.
# </details>


# %% nbgrader={"grade_id": "q1_1_5a", "solution": true}
class ToyModel(rl.nn.Module):
    """fc1, ReLU, LayerNorm, fc2. forward returns {"input", "fc1", "relu", "ln", "logits"}."""

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
    """{"parameters", "fc1", "relu", "ln", "logits", "loss", "gradients"}: the name of the dtype of each."""
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
    numbers = looks.toy_numbers(in_features, out_features, measure.rng())
    tensors = [rl.tensor(array) for array in numbers]
    seen = measure.call(ToyModel, in_features, out_features, *tensors, through=looks.run_toy).value
    right = looks.toy_float64(*numbers)
    for name in right:
        assert_close(
            seen[name], right[name], rtol=1e-4, atol=1e-4, name=f"ToyModel({in_features}, {out_features}): {name}"
        )


check_toy(20, 5)
### BEGIN HIDDEN TESTS
check_toy(measure.draw(11, 30), measure.draw(2, 9))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5a_dtypes_test", "grade": true, "points": 3}


def check_dtypes(low, *in_low):
    got = toy_dtypes(low)
    assert_keys("toy_dtypes", got, ("parameters", "fc1", "relu", "ln", "logits", "loss", "gradients"))
    assert all(isinstance(one, str) for one in got.values()), (
        f"toy_dtypes: each value has to be a string such as 'float32', got {got}"
    )
    got = {name: dtype.removeprefix("rooflab.") for name, dtype in got.items()}
    said = f"toy_dtypes({low!r}): expected {low} three times and float32 four times, got {got}; read .dtype"
    assert sorted(got.values()) == sorted([low] * 3 + ["float32"] * 4), said
    for name in in_low:
        assert got[name] == low, f"toy_dtypes({low!r}): {name} is not {got[name]}; read .dtype"


check_dtypes("bfloat16")
### BEGIN HIDDEN TESTS
for low in ("bfloat16", "float16"):
    check_dtypes(low, "fc1", "relu", "logits")
### END HIDDEN TESTS

# %%
lists = {low: toy_dtypes(low) for low in ("float16", "bfloat16")}
dtype_rows = [(name, *(lists[low][name] for low in lists)) for name in lists["float16"]]
Table(
    ("tensor", *(f"autocast {low}" for low in lists)),
    dtype_rows,
    title="ToyModel(20, 5) under autocast, the same on CPU and GPU",
)

# %% [markdown]
# ## 1.1.5b Why is LayerNorm apart? ({points q1_1_5b})
#
# Autocast computes LayerNorm in fp32. A LayerNorm squares its inputs, adds up the squares, and divides by a square root
# that contains a small ε. Each of these steps can fail in 16 bits. Try each of them:
#
# - `square(x, dtype)`: x times x, computed in `dtype`. A float, which may be infinite.
# - `count_ones(n, dtype)`: the sum of n ones, added one by one in `dtype`. A float.
# - `stored(x, dtype)`: the value that x has after it is stored in `dtype`. A float.
# - `bf16_cures`: which problem of fp16 does bf16 not have? Choose a letter.
#     - `"a"`: Sums of many numbers stop growing too early.
#     - `"b"`: Squares of large numbers overflow.
#     - `"c"`: Both: the range of the numbers and the precision of their sums are those of fp32 again.
#     - `"d"`: None, since a number takes 16 bits as before and no format can do more with them.
# - `bf16_worsens`: which problem of fp16 is worse in bf16? Choose a letter from the same list.


# %% nbgrader={"grade_id": "q1_1_5b", "solution": true}
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


bf16_cures = None  # "a", "b", "c" or "d"
bf16_worsens = None  # a letter of the same list
### BEGIN SOLUTION
bf16_cures = "b"
bf16_worsens = "a"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q1_1_5b_text", "solution": true}
# *With bf16, would you keep LayerNorm in fp32? Why:*


# %% nbgrader={"grade_id": "q1_1_5b_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_5"]}
def check_sixteen(function, x, dtype, right, tolerance=0.0):
    got, call = function(x, dtype), f"{function.__name__}({x}, {dtype!r})"
    assert isinstance(got, float), f"{call}: expected a Python float, got {got!r}"
    assert got == right or abs(got - right) <= tolerance, f"{call}: expected {right}, got {got}"


check_sixteen(square, 256.0, "float16", float("inf"))
check_sixteen(square, 256.0, "bfloat16", 65536.0)
check_sixteen(square, 300.0, "bfloat16", 90112.0)
check_sixteen(count_ones, 2560, "float16", 2048.0)
check_sixteen(stored, 1e-5, "float16", 1.0013580322265625e-05, 1e-12)
### BEGIN HIDDEN TESTS
n, x = measure.draw(2049, 3000), measure.draw(2, 45)
check_sixteen(count_ones, n, "bfloat16", 256.0)
check_sixteen(count_ones, n, "float32", float(n))
check_sixteen(stored, 1e-8, "float16", 0.0)
check_sixteen(stored, 1e-8, "bfloat16", 1.0011717677116394e-08, 1e-13)
check_sixteen(square, 10.0 * x, "float32", 100.0 * x**2)
check_sixteen(square, float(x), "float16", float(x**2))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5b_choice_test", "grade": true, "points": 2}
assert bf16_cures in tuple("abcd"), "bf16_cures: choose a letter"
assert bf16_worsens in tuple("abcd"), "bf16_worsens: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    bf16_cures,
    "b",
    a="Compare count_ones(2560, ...) in both formats.",
    c="Compare the fraction bits of bf16 and of fp32 in the table above.",
    d="bf16 has more exponent bits than fp16. What does that do to square(256.0, ...)?",
)
assert bf16_worsens == "a", "bf16_worsens: compare count_ones(2560, ...) and square(256.0, ...) in both formats"
### END HIDDEN TESTS

# %% [markdown]
# fp16 runs out of range, and bf16 runs out of precision. An ε of 10⁻⁵ survives in both formats. An ε of 10⁻⁸ becomes
# zero in fp16. Is LayerNorm in bf16 safe? Published answers differ. It works more often than not, because its inputs
# are of moderate size and hardware accumulates in fp32. Keeping it in fp32 costs little, because a norm moves few bytes
# compared with the products.
#
# ## 1.1.5c What does it gain? ({points q1_1_5c})
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
# - `bf16_is_slower`: R profiled forward passes in fp32 and in bf16. The small model takes 75.9 ms in fp32 and 79.4 ms
#   in bf16. Each number is the mean of 15 calls, including the first call of the process. Does that show that bf16 is
#   slower? Choose a letter.
#     - `"a"`: Yes: the casts of the weights cost more than the products gain.
#     - `"b"`: No: the first call alone can make such a difference.
#     - `"c"`: Yes: a mean over 15 calls is exact to within a few per cent, whatever one of them took.
#     - `"d"`: No: a profile with ranges lasts longer in bf16, because it has more kernels to record.


# %% nbgrader={"grade_id": "q1_1_5c", "solution": true}
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


bf16_is_slower = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
bf16_is_slower = "b"
### END SOLUTION

# %% nbgrader={"grade_id": "q1_1_5c_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_2"]}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
LARGEST = {"d_model": 2560, "d_ff": 10240, "num_layers": 32, "num_heads": 32}
hint = "count the weights of products: 4 of attention and 3 of SwiGLU in each layer, and the head"
assert_whole(weight_casts, [((SMALL,), 85), ((LARGEST,), 225)], hint)
byte_hint = "each number of a cast weight costs 4 + 2 bytes; gains and the embedding are not cast"
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


# %% nbgrader={"grade_id": "q1_1_5c_row_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1_3a"]}
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
    for name, right in {"fp32_ms": fp32_ms, "low_ms": low_ms, "speed_up": fp32_ms / low_ms}.items():
        assert_near(f"precision_row, {mode}, {name}", row[name], right, 0.01)


check_precision("forward", 0.5)
check_precision("both", 0.8)
### BEGIN HIDDEN TESTS
check_precision("forward", measure.draw(120, 200) / 100, work_ms=5.0)
check_precision("both", measure.draw(20, 70) / 100, work_ms=9.0, host_ms=0.3)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_5c_choice_test", "grade": true, "points": 1}
assert bf16_is_slower in tuple("abcd"), "bf16_is_slower: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    bf16_is_slower,
    "b",
    a="For the small model the casts move 0.73 GB. How long does that take on R's GPU, at 1.8 TB/s?",
    c="See 1.1.3c: what does a first call of 800 ms do to a mean of 15 calls?",
    d="The casts are 85 more kernels. Do 85 records take several milliseconds?",
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
# Look at the speed-ups. On a GPU with tensor cores they grow with the size of the products. On a CPU without 16-bit
# arithmetic they are below 1, because each number is converted to fp32 and back. A smaller format only saves time on
# hardware that computes in it.
