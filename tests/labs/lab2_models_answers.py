"""Answers to question 1.1.2 of Lab 2, the models, right and wrong."""

from labs.mutants import mutants

CLOSED = """
MODEL_CONFIGS = {}
for row in ["small 768 3072 12 12", "medium 1024 4096 24 16", "large 1280 5120 36 20", "xl 1600 6400 48 25",
            "2.7B 2560 10240 32 32"]:
    size, *numbers = row.split()
    names = ("d_model", "d_ff", "num_layers", "num_heads")
    MODEL_CONFIGS[size] = dict(zip(names, map(int, numbers)))

def create_model(model_size, vocab_size, context_length, device=device):
    own = rl.nn.TransformerConfig(**MODEL_CONFIGS[model_size], vocab_size=vocab_size, context_length=context_length)
    return rl.nn.TransformerLM(own, dtype="float32", device=device)

def count_parameters(config, vocab_size):
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    each = 4 * D * D + 3 * D * I + 2 * D
    return 2 * vocab_size * D + n * each + D

def training_bytes(config, vocab_size):
    four = 4 * count_parameters(config, vocab_size)
    return {"weights": four, "gradients": four, "optimizer": 2 * four}

def forward_flops(config, vocab_size, batch_size, length):
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    T = batch_size * length
    projections = 2 * T * D * 4 * D
    ffn = 2 * T * 3 * D * I
    scores = 2 * (2 * batch_size * length * length * D)
    return n * (projections + ffn + scores) + 2 * T * D * vocab_size
"""

DRY = """
MODEL_CONFIGS = {
    size: {name: getattr(sizes, name) for name in ("d_model", "d_ff", "num_layers", "num_heads")}
    for size, sizes in rl.nn.TRANSFORMER_SIZES.items()
}

def dry(config, vocab_size, length):
    sizes = rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length)
    return rl.nn.TransformerLM(sizes, device="meta")

def create_model(model_size, vocab_size, context_length, device=device):
    sizes = rl.nn.TransformerConfig.of(model_size, vocab_size=vocab_size, context_length=context_length)
    return rl.nn.TransformerLM(sizes, device=device)

def count_parameters(config, vocab_size):
    return sum(tensor.numel() for tensor in dry(config, vocab_size, 1).parameters())

def training_bytes(config, vocab_size):
    weights = sum(tensor.nbytes for tensor in dry(config, vocab_size, 1).parameters())
    return {"weights": weights, "gradients": weights, "optimizer": 2 * weights}

def forward_flops(config, vocab_size, batch_size, length):
    model = dry(config, vocab_size, length)
    with rl.no_grad(), rl.count() as counted:
        model(rl.empty(batch_size, length, dtype="int64", device="meta"))
    return counted.by_op["matmul"].flops
"""

THUMB = """
def rule_of_thumb(config, vocab_size, length):
    N, T = count_parameters(config, vocab_size), 4 * length
    return 2 * N * T / forward_flops(config, vocab_size, 4, length)

why_too_small = "b"
"""

RIGHT = {
    "q1_1_2": [("closed forms", CLOSED), ("a sum over a dry model", DRY)],
    "q1_1_2_thumb": [("with a batch", THUMB)],
}

WRONG = {
    "q1_1_2": mutants(
        CLOSED,
        ("two matrices in the feed-forward part", "3 * D * I + 2 * D", "2 * D * I + 2 * D"),
        ("rounded by a float", "return n * (projections + ffn + scores) + 2 * T * D * vocab_size",
         "return int(1.0 * n * (projections + ffn + scores) + 2 * T * D * vocab_size)"),
        ("writes into the config", "    four = 4 *", "    config['vocab_size'] = vocab_size\n    four = 4 *"),
        ("a tied head", "2 * vocab_size * D + n * each", "vocab_size * D + n * each"),
        ("no norms", "3 * D * I + 2 * D", "3 * D * I", "n * each + D", "n * each"),
        ("no last norm", "n * each + D", "n * each"),
        ("the name of the largest", "    return 2 * vocab_size * D + n * each + D", "    return int(2.7e9)"),
        ("AdamW keeps one number", "2 * four", "four"),
        ("half precision", "four = 4 *", "four = 2 *"),
        ("MACs for FLOPs", "projections = 2 * T", "projections = T"),
        ("the mask saves half", "scores = 2 * (2", "scores = 2 * (1"),
        ("the embedding is a product", "2 * T * D * vocab_size", "4 * T * D * vocab_size"),
        ("no head", " + 2 * T * D * vocab_size", ""),
        ("two products in the feed-forward part", "2 * T * 3 * D * I", "2 * T * 2 * D * I"),
        ("scores alone", "scores = 2 * (2", "scores = (2"),
        ("other heads", "xl 1600 6400 48 25", "xl 1600 6400 48 20"),
        ("a slip in a row", "large 1280 5120", "large 1280 5220"),
        ("a narrow feed-forward part", "small 768 3072", "small 768 2048"),
        ("a fixed vocabulary", "vocab_size=vocab_size", "vocab_size=10000"),
        ("a fixed context", "context_length=context_length", "context_length=1024"),
        ("half precision throughout", 'dtype="float32"', 'dtype="bfloat16"'),
        ("flash attention", "vocab_size=vocab_size,", 'vocab_size=vocab_size, attention="flash",'),
    ),
    "q1_1_2_thumb": mutants(
        THUMB,
        ("upside down", "2 * N * T / forward_flops(config, vocab_size, 4, length)",
         "forward_flops(config, vocab_size, 4, length) / (2 * N * T)"),
        ("one FLOP for two", "2 * N * T /", "N * T /"),
        ("the batch once", "T = count_parameters(config, vocab_size), 4 * length",
         "T = count_parameters(config, vocab_size), length"),
        ("the two FLOPs", '"b"', '"a"'),
        ("the embedding", '"b"', '"c"'),
        ("the backward pass", '"b"', '"d"'),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q1_1_2": "rounded by a float",
    "q1_1_2_thumb": "the two FLOPs|the embedding|the backward pass",
}
