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

def toy_dtypes(low):
    model = ToyModel(20, 5)
    with rl.autocast(low):
        out = model(rl.rand(4, 20))
        out["loss"] = rl.cross_entropy(out["logits"], rl.zeros(4, dtype="int64"))
    out["loss"].backward()
    out["parameters"], out["gradients"] = model.fc2.weight, model.fc2.weight.grad
    names = ("parameters", "fc1", "relu", "ln", "logits", "loss", "gradients")
    return {name: str(out[name].dtype) for name in names}
"""

BY_NAME = changed(
    TOY,
    TOY[TOY.index("def toy_dtypes") :],
    """def toy_dtypes(low):
    found = dict.fromkeys(("parameters", "ln", "loss", "gradients"), "float32")
    return found | dict.fromkeys(("fc1", "relu", "logits"), low)
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

bf16_cures, bf16_worsens = "b", "a"
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

bf16_is_slower = "b"
"""

RIGHT = {
    "q1_1_5": [("NumPy and ml_dtypes", SUMS)],
    "q1_1_5a": [("other names", TOY), ("known names", BY_NAME)],
    "q1_1_5b": [("written out", NORM)],
    "q1_1_5c": [("closed form", GAIN)],
}

WRONG = {
    "q1_1_5": mutants(
        SUMS,
        ("sums in float64", "total = (total + term).astype(dtype_of(total_dtype))",
         "total = total + np.float64(term)"),
        ("terms that are not rounded", ".astype(dtype_of(term_dtype))", ""),
        ("sums in the dtype of the terms", "np.zeros((), dtype_of(total_dtype))",
         "np.zeros((), dtype_of(term_dtype))",
         "(total + term).astype(dtype_of(total_dtype))", "(total + term).astype(dtype_of(term_dtype))"),
        ("a product", "    for _ in range(steps):\n        total = (total + term)", "    total = (steps * term)"),
        ("one too few", "range(steps)", "range(steps - 1)"),
        ("the whole sum for a step", " - float(total)", ""),
        ("a step of the value", "(total + value).astype(dtype_of(dtype))", "np.float64(total) + np.float64(value)"),
        ("fp16 stalls", "fp16_stops_at = 350, 32.0", "fp16_stops_at = 350, 9.953125"),
        ("bf16 never stops", "350, 32.0", "1000, 32.0"),
        ("one addition later", "350, 32.0", "351, 32.0"),
    ),
    "q1_1_5a": [
        *mutants(
            TOY,
            ("no ReLU", 'rl.relu(out["fc1"])', 'out["fc1"]'),
            ("no LayerNorm", 'rl.layer_norm(out["relu"], self.gain, self.shift)', 'out["relu"]'),
            ("another norm", 'rl.layer_norm(out["relu"], self.gain, self.shift)',
             'rl.rms_norm(out["relu"], self.gain)'),
            ("no autocast", "with rl.autocast(low):", "with contextlib.nullcontext():"),
            ("half a model", "model = ToyModel(20, 5)",
             'model = ToyModel(20, 5)\n'
             '    model.fc2.weight = model.fc2.weight.detach().to("bfloat16").requires_grad_()'),
            ("the loss outside", '        out["loss"] = rl.cross', '    out["loss"] = rl.cross'),
        ),
        *mutants(
            BY_NAME,
            ("low parameters", '("parameters", "ln",', '("ln",', '"relu", "logits")',
             '"relu", "logits", "parameters")'),
            ("a low norm", '"ln", "loss"', '"loss"', '"relu", "logits")', '"relu", "logits", "ln")'),
            ("a low loss", '"ln", "loss", ', '"ln", ', '"relu", "logits")', '"relu", "logits", "loss")'),
            ("low gradients", '"loss", "gradients")', '"loss")', '"relu", "logits")',
             '"relu", "logits", "gradients")'),
            ("fp16 in bf16's list", '"logits"), low)', '"logits"), "float16")'),
            ("a low norm and a full ReLU", '"ln", "loss"', '"relu", "loss"', '"fc1", "relu"', '"fc1", "ln"'),
        ),
    ],
    "q1_1_5b": mutants(
        NORM,
        ("squares in fp32", "(number * number).item()", 'x * x'),
        ("only fp16 is told apart", "(number * number).item()",
         'float("inf") if dtype == "float16" and x * x > 65504 else float(x * x)'),
        ("a sum of rl", "    for _ in range(n):\n        total = total + one\n    return total.item()",
         "    return float(n)"),
        ("nothing is stored", "return rl.full((1,), x, dtype=dtype).item()", "return x"),
        ("bf16 is more precise", 'bf16_cures, bf16_worsens = "b"', 'bf16_cures, bf16_worsens = "a"'),
        ("bf16 cures all", 'bf16_worsens = "b"', 'bf16_worsens = "c"'),
        ("bf16 cures nothing", 'bf16_worsens = "b"', 'bf16_worsens = "d"'),
        ("bf16 overflows", 'bf16_worsens = "b", "a"', 'bf16_worsens = "b", "b"'),
    ),
    "q1_1_5c": mutants(
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
        ("the copies", 'bf16_is_slower = "b"', 'bf16_is_slower = "a"'),
        ("a mean is a mean", 'bf16_is_slower = "b"', 'bf16_is_slower = "c"'),
        ("the profiler", 'bf16_is_slower = "b"', 'bf16_is_slower = "d"'),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q1_1_5": "fp16 stalls|bf16 never stops|one addition later",
    "q1_1_5a": "a low norm and a full ReLU",
    "q1_1_5b": "bf16 is more precise|bf16 cures all|bf16 cures nothing|bf16 overflows",
    "q1_1_5c": "the copies|a mean is a mean|the profiler",
}
