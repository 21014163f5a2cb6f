# %% [markdown]
# ## b5.2 The cache of other models ({points b5_2})
#
# Models differ most in how much cache they need per token. Newer models use *grouped queries*: several query heads
# share one key head and one value head, and only these are stored. Also, the size of a head need not be D/H. The
# configuration files of Hugging Face name both:

# %% tags=["setup"]
CONFIGS = {
    "GPT-2 XL": {
        "num_hidden_layers": 48,
        "hidden_size": 1600,
        "num_attention_heads": 25,
        "num_key_value_heads": 25,
        "head_dim": 64,
    },
    "Gemma 3 270M": {
        "num_hidden_layers": 18,
        "hidden_size": 640,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
    },
    "Llama 3 8B": {
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
}

# %% [markdown]
# - `kv_bytes_per_token(config)`: the bytes that one token adds to a cache of 16-bit numbers, in all layers together.
#   (Most layers of Gemma 3 keep only the last 512 tokens. Count a token that all layers still keep.)
# - `grouped_gain`: how many times larger the cache of Llama 3 8B would be if every query head had its own keys and
#   values
# - `llama_batch`: Llama 3 8B has 8 030 261 248 weights of 2 bytes each. Each user has a text of 8192 tokens. From how
#   many users on are their caches together *larger* than the weights?


# %% nbgrader={"grade_id": "b5_2", "solution": true}
def kv_bytes_per_token(config):
    """Bytes of the keys and values of one token in all layers, 2 bytes per element: an int."""
    ### BEGIN SOLUTION
    return 2 * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
    ### END SOLUTION


grouped_gain = None
llama_batch = None
### BEGIN SOLUTION
grouped_gain = 32 / 8
llama_batch = 2 * 8030261248 // (8192 * 131072) + 1
### END SOLUTION


# %% nbgrader={"grade_id": "b5_2_test", "grade": true, "points": 3}
def check_kept(layers, D, H, H_kv, D_h, expected):
    sizes = {"num_hidden_layers": layers, "hidden_size": D, "num_attention_heads": H}
    config = {**sizes, "num_key_value_heads": H_kv, "head_dim": D_h}
    seen = measure.call(kv_bytes_per_token, config)
    got = seen.value
    assert not seen.changed, "kv_bytes_per_token changed the configuration that it was given"
    assert is_count(got), f"kv_bytes_per_token({config}) must return a whole number (int), got {got!r}"
    hint = "what does each layer store for one token, and in which heads?"
    assert got == expected, f"kv_bytes_per_token({config}) returned {got}, expected {expected}. Hint: {hint}"


check_kept(layers=2, D=12, H=4, H_kv=2, D_h=5, expected=80)
check_kept(layers=1, D=8, H=2, H_kv=2, D_h=4, expected=32)
### BEGIN HIDDEN TESTS
for sizes in [tuple(config.values()) for config in CONFIGS.values()] + sample_sizes("layers D H H_kv D_h"):
    check_kept(*sizes, expected=4 * sizes[0] * sizes[3] * sizes[4])
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b5_2_values_test", "grade": true, "points": 2}
assert is_number(grouped_gain) and grouped_gain >= 1, (
    f"grouped_gain must be a number of at least 1, got {grouped_gain!r}"
)
assert is_count(llama_batch), f"llama_batch must be a whole number (int) of users, got {llama_batch!r}"
### BEGIN HIDDEN TESTS
said = f"grouped_gain is not {grouped_gain}: how many query heads share one key head in Llama 3 8B?"
assert is_near(grouped_gain, 4), said
said = f"llama_batch is not {llama_batch}: how large is the cache of one such user, and how large are the weights?"
assert llama_batch == 15, said
### END HIDDEN TESTS

# %%
rows = []
for name, config in CONFIGS.items():
    kept = kv_bytes_per_token(config)
    rows.append((name, f"{kept:,}", f"{1024 * kept / 1e6:,.0f}", f"{64 * 1024 * kept / 1e9:.2f}"))
head = ("", "bytes per token", "MB for 1024 tokens", "GB for 64 users with 1024 tokens each")
Table(head, rows, "Keys and values in 16 bits")

# %% [markdown]
# Llama 3 8B has five times the weights of GPT-2 XL, and its cache takes less than half as many bytes per token. That is
# why it can serve long texts to many users: they all share the weights, but each user needs a cache.
