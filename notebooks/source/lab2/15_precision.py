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
# **`dtypes_of(model, x, targets, low)`** takes any module that returns a dict of tensors, as `ToyModel` does. Inside
# `rl.autocast(low)` it runs `model(x)` and the loss `rl.cross_entropy(logits, targets)`. Outside it runs
# `loss.backward()`. It returns a dict with each key that `model(x)` returned, and with `"parameters"`, `"loss"` and
# `"gradients"`. Each value is the name of a dtype, such as `"float32"`. All parameters of a model have one dtype.
#
# Read each dtype from its tensor. The tests use models with other ops, and with parameters that are not in fp32. There
# the dtypes are others than in your `ToyModel`.
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


def dtypes_of(model, x, targets, low):
    """The name of the dtype of each tensor that model(x) returns, and of "parameters", "loss" and "gradients"."""
    ### BEGIN SOLUTION
    with rl.autocast(low):
        tensors = model(x)
        loss = rl.cross_entropy(tensors["logits"], targets)
    loss.backward()
    parameter = next(iter(model.parameters()))
    tensors = {**tensors, "parameters": parameter, "loss": loss, "gradients": parameter.grad}
    return {name: str(tensor.dtype) for name, tensor in tensors.items()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_5a_test", "grade": true, "points": 2}
def run_toy(in_features, out_features, rng):
    numbers = looks.toy_numbers(in_features, out_features, rng)
    tensors = [rl.tensor(array) for array in numbers]
    seen = measure.call(ToyModel, in_features, out_features, *tensors, through=looks.run_toy).value
    count = seen.pop("numbers", 0) if isinstance(seen, dict) else 0
    assert_keys("ToyModel: forward(x)", seen, ("input", "fc1", "relu", "ln", "logits"))
    right = 10 * in_features + 10 * out_features + 20
    said = f"ToyModel({in_features}, {out_features}) has {count} numbers in its parameters, expected {right}"
    assert count <= right, f"{said}: fc1 and fc2 have no bias"
    assert count == right, f"{said}: a parameter is an attribute that requires a gradient"
    return numbers, {name: one.numpy() for name, one in seen.items()}


_, seen = run_toy(3, 2, np.random.default_rng(0))
assert (seen["relu"] == np.maximum(seen["fc1"], 0)).all(), "ToyModel(3, 2): relu keeps what is positive of fc1"
for name, right in {"mean": 0.0, "std": 1.0}.items():
    assert_close(getattr(seen["ln"], name)(axis=-1), np.full(4, right), atol=1e-3, name=f"ToyModel(3, 2): {name} of ln")
right = np.array([[-7.77666, -2.5087], [-7.79058, -1.49724], [-0.34898, -0.16726], [4.70003, 1.91067]])
assert_close(seen["logits"], right, rtol=1e-4, atol=1e-4, name="ToyModel(3, 2): logits")
### BEGIN HIDDEN TESTS
for sizes in [(20, 5), (measure.draw(11, 30), measure.draw(2, 9))]:
    numbers, seen = run_toy(*sizes, measure.rng())
    for name, right in toy_float64(*numbers).items():
        assert_close(seen[name], right, rtol=1e-4, atol=1e-4, name=f"ToyModel{sizes}: {name}")
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_5a_dtypes_test", "grade": true, "points": 3}
def check_dtypes(ops, stored, low, right):
    got = measure.call(dtypes_of, ops.split(), stored, low, through=looks.run_dtypes).value
    assert_keys("dtypes_of", got, tuple(right))
    case = f"a model of {ops}, with parameters in {stored}, under autocast to {low}"
    hint = "compute the loss inside autocast, and read .dtype of each tensor"
    for name, dtype in got.items():
        assert isinstance(dtype, str), f"dtypes_of: each value has to be a string such as 'float32', got {dtype!r}"
        dtype = dtype.removeprefix("rooflab.")
        assert dtype == right[name], f"{case}: the dtype of {name!r} is not {dtype}; {hint}"
    seen = measure.count(dtypes_of, ops.split(), stored, low, through=looks.run_dtypes)
    assert "cross_entropy_backward" in seen.by_op, f"{case}: run loss.backward(), and read the dtype of a gradient"


kept = dict.fromkeys(("input", "layer_norm_2", "parameters", "loss", "gradients"), "float32")
low = dict.fromkeys(("linear_0", "relu_1", "logits"), "bfloat16")
check_dtypes("linear relu layer_norm", "float32", "bfloat16", kept | low)
kept = dict.fromkeys(("layer_norm_1", "relu_2", "softmax_3", "gelu_4", "loss"), "float32")
low = dict.fromkeys(("input", "parameters", "gradients"), "bfloat16") | dict.fromkeys(("linear_0", "logits"), "float16")
check_dtypes("linear layer_norm relu softmax gelu", "bfloat16", "float16", kept | low)
### BEGIN HIDDEN TESTS
for stored, low in [("float32", "float16"), ("float16", "bfloat16"), ("float64", "bfloat16"), ("bfloat16",) * 2]:
    ops = measure.rng().permutation(["linear", "relu", "exp", "layer_norm", "gelu", "rms_norm", "softmax", "linear"])
    right = measure.call(read_dtypes, list(ops), stored, low, through=looks.run_dtypes).value
    check_dtypes(" ".join(ops), stored, low, right)
### END HIDDEN TESTS

# %%
toy, vectors, targets = ToyModel(20, 5), rl.randn(4, 20), rl.randint(0, 5, (4,))
lists = {low: dtypes_of(toy, vectors, targets, low) for low in ("float16", "bfloat16")}
dtype_rows = [(name, *(lists[low][name] for low in lists)) for name in lists["float16"]]
Table(
    ("tensor", *(f"autocast {low}" for low in lists)),
    dtype_rows,
    title="ToyModel(20, 5) under autocast, the same on CPU and GPU",
)
