"""Answers to question 1.1.5 of Lab 2, sixteen bits, right and wrong."""

from labs.mutants import changed, mutants

SUMS = """
import ml_dtypes

def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)

def accumulate(value, steps, total_dtype, term_dtype):
    term = np.array(value).astype(dtype_of(term_dtype)).astype(dtype_of(total_dtype))
    total = np.zeros((), dtype_of(total_dtype))
    for _ in range(steps):
        total = (total + term).astype(dtype_of(total_dtype))
    return float(total)

def step_taken(total, value, dtype):
    total, value = (np.array(one).astype(dtype_of(dtype)) for one in (total, value))
    return float((total + value).astype(dtype_of(dtype))) - float(total)

bf16_stops_after, fp16_stops_at = 350, 32.0
"""

TOY = """
class ToyModel(rl.nn.Module):
    def __init__(self, in_features, out_features):
        self.fc1 = rl.nn.Linear(in_features, 10, bias=False)
        self.gain, self.shift = rl.ones(10).requires_grad_(), rl.zeros(10).requires_grad_()
        self.fc2 = rl.nn.Linear(10, out_features, bias=False)

    def forward(self, x):
        out = {"input": x, "fc1": self.fc1(x)}
        out["relu"] = rl.relu(out["fc1"])
        out["ln"] = rl.layer_norm(out["relu"], self.gain, self.shift)
        out["logits"] = self.fc2(out["ln"])
        return out

def dtypes_of(model, x, targets, low):
    found = {}
    with rl.autocast(low):
        out = model(x)
        loss = rl.cross_entropy(out["logits"], targets)
    loss.backward()
    for name in out:
        found[name] = str(out[name].dtype)
    found["loss"] = str(loss.dtype)
    for one in model.parameters():
        found["parameters"], found["gradients"] = str(one.dtype), str(one.grad.dtype)
    return found
"""

READ = TOY[TOY.index("    found = {}") :]
TABLE = changed(
    TOY,
    READ,
    """    low_ops = ("linear", "logits")
    found = {"input": str(x.dtype), "parameters": str(x.dtype), "gradients": str(x.dtype), "loss": "float32"}
    before = str(x.dtype)
    for name in model(x):
        op = name.split("_")[0]
        before = low if op in low_ops else before if op in ("input", "relu", "gelu") else "float32"
        found[name] = before
    return found
""",
)

NORM = """
def square(x, dtype):
    number = rl.full((1,), x, dtype=dtype)
    return (number * number).item()

def count_ones(n, dtype):
    total, one = rl.zeros(1, dtype=dtype), rl.ones(1, dtype=dtype)
    for _ in range(n):
        total = total + one
    return total.item()

def stored(x, dtype):
    return rl.full((1,), x, dtype=dtype).item()

norm_in_fp16, norm_in_bf16 = "b", "a"
"""

GAIN = """
def weight_casts(config):
    return config["num_layers"] * (4 + 3) + 1

def weight_cast_bytes(config, vocab_size):
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    return (4 + 2) * (n * (4 * D * D + 3 * D * I) + vocab_size * D)

def precision_row(model, input_ids, mode, amp_context):
    full = benchmark(model, input_ids, mode, 5, 10)
    low = benchmark(model, input_ids, mode, 5, 10, amp_context)
    fp32_ms, low_ms = float(np.median(full)) * 1000, float(np.median(low)) * 1000
    return {"fp32_ms": fp32_ms, "low_ms": low_ms, "speed_up": fp32_ms / low_ms}

first_call_ms = 15 * (79.35 - 75.89)
"""

RIGHT = {
    "q1_1_5": [("NumPy and ml_dtypes", SUMS)],
    "q1_1_5a": [("other names", TOY)],
    "b1_1_5b": [("written out", NORM)],
    "b1_1_5c": [("closed form", GAIN)],
}

WRONG = {
    "q1_1_5": mutants(
        SUMS,
        ("sums in float64", "total = (total + term).astype(dtype_of(total_dtype))",
         "total = total + np.float64(term)"),
        ("a sum that never falls", "total = (total + term)", "total = max(total, total + term)"),
        ("a step without its sign", "return float((total + value).astype(dtype_of(dtype))) - float(total)",
         "return abs(float((total + value).astype(dtype_of(dtype))) - float(total))"),
        ("terms that are not rounded", ".astype(dtype_of(term_dtype))", ""),
        ("sums in the dtype of the terms", "np.zeros((), dtype_of(total_dtype))",
         "np.zeros((), dtype_of(term_dtype))",
         "(total + term).astype(dtype_of(total_dtype))", "(total + term).astype(dtype_of(term_dtype))"),
        ("a product", "    for _ in range(steps):\n        total = (total + term)", "    total = (steps * term)"),
        ("one too few", "range(steps)", "range(steps - 1)"),
        ("the whole sum for a step", " - float(total)", ""),
        ("a step from a sum that is not rounded", "    total, value = (", "    exact, (total, value) = total, (",
         "- float(total)", "- exact"),
        ("a step of the value", "(total + value).astype(dtype_of(dtype))", "np.float64(total) + np.float64(value)"),
        ("fp16 stalls", "fp16_stops_at = 350, 32.0", "fp16_stops_at = 350, 9.953125"),
        ("bf16 never stops", "350, 32.0", "1000, 32.0"),
        ("one addition later", "350, 32.0", "351, 32.0"),
    ),
    "q1_1_5a": [
        *mutants(
            TOY,
            ("a bias in fc1", "in_features, 10, bias=False", "in_features, 10"),
            ("a bias in fc2", "out_features, bias=False", "out_features"),
            ("no ReLU", 'rl.relu(out["fc1"])', 'out["fc1"]'),
            ("no LayerNorm", 'rl.layer_norm(out["relu"], self.gain, self.shift)', 'out["relu"]'),
            ("another norm", 'rl.layer_norm(out["relu"], self.gain, self.shift)',
             'rl.rms_norm(out["relu"], self.gain)'),
            ("a LayerNorm whose weight is no parameter", "rl.ones(10).requires_grad_()", "rl.ones(10)"),
            ("a LayerNorm without parameters", "self.gain, self.shift)", "rl.ones(10), rl.zeros(10))",
             "        self.gain, self.shift = rl.ones(10).requires_grad_(), rl.zeros(10).requires_grad_()\n", ""),
            ("no backward pass", "    loss.backward()\n", "", "str(one.grad.dtype)", "str(one.dtype)"),
            ("no autocast", "with rl.autocast(low):", "with contextlib.nullcontext():"),
            ("always bf16", "rl.autocast(low)", 'rl.autocast("bfloat16")'),
            ("gradients for parameters", 'str(one.dtype), str(one.grad', 'str(out["logits"].dtype), str(one.grad'),
            ("gradients as the loss", "str(one.grad.dtype)", "str(loss.dtype)"),
            ("no loss", '    found["loss"] = str(loss.dtype)\n', ""),
            ("dtypes, not their names", "str(out[name].dtype)", "out[name].dtype"),
        ),
        *mutants(
            changed(TOY, READ, """    full = ("input", "parameters", "layer_norm_2", "loss", "gradients")
    return dict.fromkeys(full, "float32") | dict.fromkeys(("linear_0", "relu_1", "logits"), low)
"""),
            ("the table of one model",),
            ("fp16 in bf16's list", '"logits"), low)', '"logits"), "float16")'),
        ),
        ("a rule that knows no float64", TABLE),
    ],
    "b1_1_5b": mutants(
        NORM,
        ("squares in fp32", "(number * number).item()", 'x * x'),
        ("rounded after the square", "(number * number).item()", "rl.full((1,), x * x, dtype=dtype).item()"),
        ("bf16 as fp16", "    for _ in range(n):\n        total = total + one\n    return total.item()",
         "    return float(min(n, 2048)) if dtype == 'bfloat16' else accumulate(1.0, n, dtype, dtype)"),
        ("only fp16 is told apart", "(number * number).item()",
         'float("inf") if dtype == "float16" and x * x > 65504 else float(x * x)'),
        ("a sum of rl", "    for _ in range(n):\n        total = total + one\n    return total.item()",
         "    return float(n)"),
        ("nothing is stored", "return rl.full((1,), x, dtype=dtype).item()", "return x"),
        ("fp16 is right", 'norm_in_fp16, norm_in_bf16 = "b"', 'norm_in_fp16, norm_in_bf16 = "a"'),
        ("fp16 stops early", 'norm_in_bf16 = "b"', 'norm_in_bf16 = "c"'),
        ("fp16 divides by zero", 'norm_in_bf16 = "b"', 'norm_in_bf16 = "d"'),
        ("bf16 is right", 'norm_in_bf16 = "b", "a"', 'norm_in_bf16 = "b", "b"'),
        ("bf16 overflows", 'norm_in_bf16 = "b", "a"', 'norm_in_bf16 = "b", "c"'),
        ("bf16 divides by zero", 'norm_in_bf16 = "b", "a"', 'norm_in_bf16 = "b", "d"'),
    ),
    "b1_1_5c": mutants(
        GAIN,
        ("two matrices in the feed-forward part", "(4 + 3)", "(4 + 2)"),
        ("no head", "(4 + 3) + 1", "(4 + 3)"),
        ("the gains are copied", "(4 + 3) + 1", "(4 + 3 + 2) + 2"),
        ("the embedding is copied", "+ vocab_size * D)", "+ 2 * vocab_size * D)"),
        ("only what is written", "(4 + 2) *", "2 *"),
        ("upside down", "fp32_ms / low_ms", "low_ms / fp32_ms"),
        ("the same twice", "5, 10, amp_context)", "5, 10)"),
        ("seconds", "float(np.median(full)) * 1000", "float(np.median(full))"),
        ("means", "float(np.median(full)) * 1000, float(np.median(low)) * 1000",
         "float(np.mean(full)) * 1000, float(np.mean(low)) * 1000"),
        ("the first call among them", "full = benchmark(model, input_ids, mode, 5, 10)",
         "full = [np.mean(benchmark(model, input_ids, mode, 0, 15))]"),
        ("the difference of the means", "15 * (", "("),
        ("ten calls", "15 * (", "10 * ("),
        ("the other fourteen", "15 * (", "14 * ("),
        ("a whole first call", "15 * (79.35 - 75.89)", "15 * 79.35"),
        ("fp32 is slower", "79.35 - 75.89", "75.89 - 79.35"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q1_1_5": "fp16 stalls|bf16 never stops|one addition later",
    "q1_1_5a": "a rule that knows no float64",
    "b1_1_5b": "fp16 is right|fp16 stops early|fp16 divides by zero|bf16 is right|bf16 overflows|bf16 divides by zero",
    "b1_1_5c": "the difference of the means|ten calls|the other fourteen|a whole first call|fp32 is slower",
}
