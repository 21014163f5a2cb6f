# %% [markdown]
# ## b5.2 What a token costs to remember ({points b5_2}, bonus)
#
# Models differ most in how much they keep. Newer ones have *grouped queries*: several query heads share one head of
# keys and values, and only those are kept. And a head need not have the size D/H. A configuration in the words of
# Hugging Face says both:

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
# - `kv_bytes_per_token(config)`: the bytes that a cache of 16-bit numbers holds for one token, in all layers. (In Gemma
#   3 most layers forget a token that is more than 512 tokens old. Count one that all of them still know.)
# - `grouped_gain`: how many times larger the cache of Llama 3 8B would be if every query head had keys and values of
#   its own
# - `llama_batch`: Llama 3 8B has 8 030 261 248 weights of 2 bytes. How many users with texts of 8192 tokens each does
#   it take until their caches together are *larger* than the weights?


# %% nbgrader={"grade_id": "b5_2", "solution": true}
def kv_bytes_per_token(config):
    """Bytes of keys and values, 2 bytes a number, that one token holds in all layers: an int."""
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
    got = kv_bytes_per_token(config)
    assert is_count(got), f"kv_bytes_per_token({config}) has to return an int, and not {got!r}"
    hint = "a key and a value for each layer and each head that has them, 2 bytes a number"
    assert got == expected, f"kv_bytes_per_token({config}) gave {got}: {hint}"


check_kept(layers=2, D=12, H=4, H_kv=2, D_h=5, expected=80)
check_kept(layers=1, D=8, H=2, H_kv=2, D_h=4, expected=32)
### BEGIN HIDDEN TESTS
for sizes in [tuple(config.values()) for config in CONFIGS.values()] + sample_sizes("layers D H H_kv D_h", seed=5201):
    check_kept(*sizes, expected=4 * sizes[0] * sizes[3] * sizes[4])
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b5_2_values_test", "grade": true, "points": 2}
assert is_number(grouped_gain) and grouped_gain >= 1, "grouped_gain is a number; 1 means that nothing is gained"
assert is_count(llama_batch), "llama_batch is a whole number of users"
### BEGIN HIDDEN TESTS
assert is_near(grouped_gain, 4), "grouped_gain: how many query heads share the keys and values of one head?"
said = "llama_batch: the cache of one user with 8192 tokens against 2 bytes for each weight; when is it more?"
assert llama_batch == 15, said
### END HIDDEN TESTS

# %%
rows = []
for name, config in CONFIGS.items():
    kept = kv_bytes_per_token(config)
    rows.append((name, f"{kept:,}", f"{1024 * kept / 1e6:,.0f}", f"{64 * 1024 * kept / 1e9:.2f}"))
Table(("", "bytes a token", "MB for 1024 tokens", "GB for 64 users of 1024"), rows, "Keys and values in 16 bits")

# %% [markdown]
# Llama 3 8B has five times the weights of GPT-2 XL, and keeps less than half as much for each token. That is why it can
# serve long texts to many users. The weights are read once for all of them, but nobody shares a cache.
