# %% [markdown]
# # 1.1 Benchmark and profile
#
# ## 1.1.2 The models ({points q1_1_2})
#
# Everything that follows needs the sizes of the models: how many parameters they have, how much memory these take, and
# how many FLOPs one forward pass costs.
#
# The model is a decoder like Llama. It consists of an embedding (V x D), n layers, and an output projection called the
# *head* (D x V), which does not share its weights with the embedding. Each layer has an attention part and a
# feed-forward part. Each part first applies RMSNorm, and its output is added to its input. One more RMSNorm comes
# before the head. Each RMSNorm has a gain of D numbers. Attention projects queries, keys and values with three
# matrices, and its result with a fourth. All four are D x D. Positions are encoded by rotary embeddings (RoPE), which
# have no parameters. The feed-forward part is SwiGLU, `w2(silu(w1(x)) * w3(x))`. It has **three** matrices of D x I
# numbers. There are no biases.
#
# | size | `d_model` D | `d_ff` I | `num_layers` n | `num_heads` H |
# |---|---|---|---|---|
# | `"small"` | 768 | 3072 | 12 | 12 |
# | `"medium"` | 1024 | 4096 | 24 | 16 |
# | `"large"` | 1280 | 5120 | 36 | 20 |
# | `"xl"` | 1600 | 6400 | 48 | 25 |
# | `"2.7B"` | 2560 | 10240 | 32 | 32 |
#
# The name of the largest model is that of the assignment. Do not rely on it: count its parameters.
#
# Write:
#
# - `MODEL_CONFIGS`: the table, as `{size: {"d_model": ..., "d_ff": ..., "num_layers": ..., "num_heads": ...}}`
# - `create_model(model_size, vocab_size, context_length, device=device)`: returns an `rl.nn.TransformerLM(config,
#   device=device)`. Its config is an `rl.nn.TransformerConfig`, whose arguments are the four keys of the table,
#   `vocab_size` and `context_length`. The weights are fp32, which is the default.
#
# Three functions take a `config`, one entry of that table, and return ints. Later questions use them for models that do
# not fit on your machine. They need only the sizes.
#
# - `count_parameters(config, vocab_size)`: the number of parameters, N
# - `training_bytes(config, vocab_size)`: the bytes that training holds permanently in fp32, as `{"weights": ...,
#   "gradients": ..., "optimizer": ...}`. AdamW keeps two fp32 numbers (its moments) for each parameter.
# - `forward_flops(config, vocab_size, batch_size, length)`: the FLOPs F of all matrix products in one forward pass. A
#   multiply-accumulate is 2 FLOPs. Looking up a token in the embedding is not a product. Attention computes all L x L
#   scores of a head, so the causal mask saves nothing.


# %% nbgrader={"grade_id": "q1_1_2", "solution": true}
MODEL_CONFIGS = {}  # size: {"d_model": ..., "d_ff": ..., "num_layers": ..., "num_heads": ...}
### BEGIN SOLUTION
MODEL_CONFIGS = {
    "small": {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    "medium": {"d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16},
    "large": {"d_model": 1280, "d_ff": 5120, "num_layers": 36, "num_heads": 20},
    "xl": {"d_model": 1600, "d_ff": 6400, "num_layers": 48, "num_heads": 25},
    "2.7B": {"d_model": 2560, "d_ff": 10240, "num_layers": 32, "num_heads": 32},
}
### END SOLUTION


def create_model(model_size, vocab_size, context_length, device=device):
    """The rl.nn.TransformerLM of one size of MODEL_CONFIGS, in fp32 on `device`."""
    ### BEGIN SOLUTION
    sizes = {**MODEL_CONFIGS[model_size], "vocab_size": vocab_size, "context_length": context_length}
    return rl.nn.TransformerLM(rl.nn.TransformerConfig(**sizes), device=device)
    ### END SOLUTION


def count_parameters(config, vocab_size):
    """The number of parameters N: an int."""
    ### BEGIN SOLUTION
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    return 2 * vocab_size * D + n * (4 * D**2 + 3 * D * I + 2 * D) + D
    ### END SOLUTION


def training_bytes(config, vocab_size):
    """{"weights": int, "gradients": int, "optimizer": int}: bytes in fp32."""
    ### BEGIN SOLUTION
    N = count_parameters(config, vocab_size)
    return {"weights": 4 * N, "gradients": 4 * N, "optimizer": 8 * N}
    ### END SOLUTION


def forward_flops(config, vocab_size, batch_size, length):
    """The FLOPs F of all matrix products in one forward pass: an int."""
    ### BEGIN SOLUTION
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    weights = n * (4 * D**2 + 3 * D * I) + vocab_size * D
    return 2 * batch_size * length * weights + 4 * n * batch_size * length**2 * D
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_2_test", "grade": true, "points": 2}
assert isinstance(MODEL_CONFIGS, dict), "MODEL_CONFIGS is a dict"
assert_keys("MODEL_CONFIGS", MODEL_CONFIGS, ("small", "medium", "large", "xl", "2.7B"))
table = {"small": (768, 3072, 12, 12), "medium": (1024, 4096, 24, 16), "large": (1280, 5120, 36, 20)}
table |= {"xl": (1600, 6400, 48, 25), "2.7B": (2560, 10240, 32, 32)}
for size, sizes in MODEL_CONFIGS.items():
    names = ("d_model", "d_ff", "num_layers", "num_heads")
    assert_keys(f"MODEL_CONFIGS[{size!r}]", sizes, names)
    row = tuple(sizes[name] for name in names)
    assert row == table[size], f"MODEL_CONFIGS[{size!r}] has {row}, expected {table[size]}, the row of the table"


def facts_about(create, *sizes):
    return looks.facts_of(*(measure.count(create, passes, *sizes, through=looks.run_model) for passes in (0, 1)))


def check_model(size, vocab_size, context_length, right):
    seen = facts_about(create_model, size, vocab_size, context_length)
    for name, value in right.items():
        what = f"create_model({size!r}, {vocab_size}, {context_length})"
        assert seen[name] == value, f"{what}: expected {name} = {value}, got {seen[name]}"


small = {
    "number of parameters": 128625408,
    "number of tensors": 111,
    "dtypes": ["float32"],
    "context length": 128,
    "shape of the logits": (2, 128, 10000),
    "MACs of a forward pass": 31561089024,
    "products of a forward pass": 109,
    "softmaxes of a forward pass": 12,
    "FLOPs of all operations of a forward pass": 63210258432,
}
largest = {
    "number of parameters": 3359587840,
    "number of tensors": 291,
    "dtypes": ["float32"],
    "context length": 256,
    "shape of the logits": (2, 256, 777),
    "MACs of a forward pass": 1740480184320,
    "products of a forward pass": 289,
    "softmaxes of a forward pass": 32,
    "FLOPs of all operations of a forward pass": 3482819493888,
}
check_model("small", 10000, 128, small)
check_model("2.7B", 777, 256, largest)


### BEGIN HIDDEN TESTS
def known_model(size, vocab_size, context_length, device):
    config = rl.nn.TransformerConfig.of(size, vocab_size=vocab_size, context_length=context_length)
    return rl.nn.TransformerLM(config, device=device)


for size in ("medium", "large", "xl", "2.7B"):
    sizes = size, measure.draw(500, 50000), measure.draw(32, 512)
    check_model(*sizes, facts_about(known_model, *sizes))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_2_count_test", "grade": true, "points": 2}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
LARGEST = {"d_model": 2560, "d_ff": 10240, "num_layers": 32, "num_heads": 32}
hint = "go through the description of the model: which tensors are there, once and in each layer?"
assert_whole(count_parameters, [((SMALL, 10000), 128625408), ((LARGEST, 10000), 3406809600)], hint)
work_hint = "which weights does each token meet in a product, and which products of a layer have no weights?"
assert_whole(
    forward_flops, [((SMALL, 10000, 4, 128), 126244356096), ((LARGEST, 10000, 4, 1024), 29071895429120)], work_hint
)
called = [measure.call(count_parameters, dict(SMALL), 100), measure.call(training_bytes, dict(SMALL), 100)]
called.append(measure.call(forward_flops, dict(SMALL), 100, 2, 3))
assert not any(seen.changed for seen in called), "a function changed the config that it was given"
held = training_bytes(SMALL, 10000)
assert_keys("training_bytes", held, ("weights", "gradients", "optimizer"))
total = held["weights"], sum(held.values())
said = f"training_bytes(small): expected 514501632 bytes of weights, 2058006528 in all; got {total[0]} and {total[1]}"
assert total == (514501632, 2058006528), said
### BEGIN HIDDEN TESTS
huge = {"d_model": 10242, "d_ff": 30007, "num_layers": 101, "num_heads": 3}, 50257, 1001, 10007
for config, vocab_size, B, L in [huge, *draw_configs(measure.rng())]:
    D, I, n = (config[name] for name in ("d_model", "d_ff", "num_layers"))
    N = 2 * vocab_size * D + n * (4 * D**2 + 3 * D * I + 2 * D) + D
    assert_whole(count_parameters, [((config, vocab_size), N)], hint)
    F = 2 * B * L * (n * (4 * D**2 + 3 * D * I) + vocab_size * D) + 4 * n * B * L**2 * D
    assert_whole(forward_flops, [((config, vocab_size, B, L), F)], work_hint)
    held = {"weights": 4 * N, "gradients": 4 * N, "optimizer": 8 * N}
    said = f"training_bytes({config}, {vocab_size}): what does AdamW keep for each parameter, and in how many bytes?"
    assert training_bytes(config, vocab_size) == held, said
### END HIDDEN TESTS

# %% [markdown]
# The table shows what each model needs before it reads its first token, and the FLOPs of one forward pass. The largest
# model needs 50.8 GiB for weights, gradients and AdamW's moments alone. A GPU with 48 GB cannot train it at any batch
# size.

# %%
rows = []
for size, config in MODEL_CONFIGS.items():
    N, held = count_parameters(config, 10000), training_bytes(config, 10000)
    tera = [f"{forward_flops(config, 10000, 4, L) / 1e12:.4f}" for L in (128, 256, 512, 1024)]
    rows.append((size, f"{N:,}", f"{held['weights'] / 2**30:.2f}", f"{sum(held.values()) / 2**30:.2f}", *tera))
head = ("size", "N", "weights GiB", "training GiB", *(f"F, L = {L}" for L in (128, 256, 512, 1024)))
Table(head, rows, title="The five models, B = 4", note="F in TFLOP, 10¹² FLOPs.")

# %% [markdown]
# ### The rule of thumb ({points q1_1_2_thumb_test})
#
# Papers often estimate a forward pass over T tokens as 2 N T FLOPs. Here T = B L. How good is this estimate?
#
# - `rule_of_thumb(config, vocab_size, length)`: the estimate divided by the true F, so 2 N B L / F. The batch size
#   cancels.
# - `why_too_small`: at L = 1024 the estimate for the medium model is smaller than F. Why? Choose a letter.
#     - `"a"`: It counts a multiply-accumulate as one FLOP, and a longer sequence has more of them.
#     - `"b"`: Attention scores cost FLOPs but have no parameters.
#     - `"c"`: The embedding and the head are counted twice, and both grow with the sequence length.
#     - `"d"`: It leaves out the backward pass, whose share grows with the sequence length.


# %% nbgrader={"grade_id": "q1_1_2_thumb", "solution": true}
def rule_of_thumb(config, vocab_size, length):
    """The estimate 2 N B L divided by the true FLOPs F: a number."""
    ### BEGIN SOLUTION
    return 2 * count_parameters(config, vocab_size) * length / forward_flops(config, vocab_size, 1, length)
    ### END SOLUTION


why_too_small = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
why_too_small = "b"
### END SOLUTION

# %% nbgrader={"grade_id": "q1_1_2_thumb_test", "grade": true, "points": 1}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
thumb_hint = "take N of count_parameters and F of forward_flops, for the same number of tokens"
assert_near("rule_of_thumb of small at 128", rule_of_thumb(SMALL, 10000, 128), 1.0433, 1e-3, thumb_hint)
assert why_too_small in tuple("abcd"), "why_too_small: choose a letter"
### BEGIN HIDDEN TESTS
MEDIUM = {"d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16}
assert_near("rule_of_thumb of medium at 1024", rule_of_thumb(MEDIUM, 10000, 1024), 0.9136, 1e-3, thumb_hint)
for config, vocab_size, _, L in draw_configs(measure.rng(), count=10):
    D, I, n = (config[name] for name in ("d_model", "d_ff", "num_layers"))
    N = 2 * vocab_size * D + n * (4 * D**2 + 3 * D * I + 2 * D) + D
    F = 2 * L * (n * (4 * D**2 + 3 * D * I) + vocab_size * D) + 4 * n * L**2 * D
    assert_near(
        f"rule_of_thumb({config}, {vocab_size}, {L})",
        rule_of_thumb(config, vocab_size, L),
        2 * N * L / F,
        1e-6,
        thumb_hint,
    )
assert_choice(
    why_too_small,
    "b",
    a="The 2 in 2 N T is two FLOPs for each parameter and token.",
    c="Counting something twice would make the estimate too large, not too small.",
    d="F contains only the forward pass as well.",
)
### END HIDDEN TESTS

# %%
rows = []
for size, config in MODEL_CONFIGS.items():
    rows.append((size, *(f"{rule_of_thumb(config, 10000, L):.3f}" for L in (128, 256, 512, 1024))))
Table(("size", *(f"L = {L}" for L in (128, 256, 512, 1024))), rows, title="2 N B L over F")

# %% [markdown]
# The estimate is wrong in both directions: it counts something that costs no FLOPs, and leaves out something that does.
# For these models it stays within ten per cent of F. When would you no longer trust it?
