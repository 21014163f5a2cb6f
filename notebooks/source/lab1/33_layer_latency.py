# %% [markdown]
# ## 3.3 A layer in prefill and in decode (not graded)
#
# How long does a layer take to process a prompt, and how long to add one token? How much time does the cache save?
# Compare three passes, for B sequences of L tokens:
#
# | pass | what goes in | what the layer does |
# |---|---|---|
# | prefill | L tokens of each prompt | all of its work for all of them; their keys and values go into an empty cache |
# | decode without a cache | all L + 1 tokens again | all of its work for all of them again, for one new result |
# | decode with a cache | the newest token | its work for one token; attention reads the L earlier keys and values |
#
# Such measurements go wrong easily, and the numbers still look fine. Three mistakes are common:
#
# - **Prefill into a cache that is full.** The second call of a timing loop finds the tokens of the first one in the
#   cache, so it attends to twice as many keys. Here each timed prefill starts with an empty cache. `prefill_forward`
#   refuses any other.
# - **Decode without growth.** If every step writes to the same place of the cache, a new token never sees the one
#   before it. Here each step makes the cache longer by one token.
# - **Half of a decode without a cache.** One might project the old tokens to keys and values again and skip the rest of
#   their work. But the keys of the next layer are computed from *this* layer's results for all tokens. So without a
#   cache all tokens have to pass the whole layer. Only the last layer of a model could skip a part.
#
# The *pseudo model* is made up for this lab: Gemma 3's layer with D = 1152, I = 6912, and 8 query heads and 8 key/value
# heads of 256, in 26 layers (`GEMMA3_PSEUDO_CONFIG`). It is to read B = 8 prompts of L = 4096 tokens in bf16. In Gemma
# 3 five of six layers see only the last 512 tokens (a *sliding window*). Here every layer sees the whole sequence, so
# that all layers do the same work. First a check: both ways to decode give the same result, and the cache grows by one.


# %%
def make_layers(config, device):
    """The decoder layers of a model with random weights."""
    sizes = rl.nn.Gemma3Config(**config)
    return [rl.nn.Gemma3DecoderLayer(sizes, i, device=device) for i in range(sizes.num_hidden_layers)]


full_config = {**GEMMA3_PSEUDO_CONFIG, "sliding_window_pattern": 1}  # every layer sees the whole sequence
one_layer = {**full_config, "num_hidden_layers": 1}
(layer,) = make_layers(one_layer, device)
(positions,) = get_position_embeddings(9, one_layer, device=device)
text = create_decode_inputs_without_cache(2, 9, one_layer, device=device)
cache = initialize_kv_cache(2, 9, one_layer, device=device)

prefill_forward(layer, text[:, :8], positions, cache)
print("after prefill:", cache)
with_cache = decode_forward(layer, text[:, 8:], positions, cache)
print("after a step: ", cache)
assert cache.length == 9
assert_close(with_cache, decode_forward(layer, text, positions), rtol=0.02, atol=0.05, name="decode with a cache")

# %% [markdown]
# `passes` makes the three passes as functions without arguments. They can run on tensors *without memory* too, on the
# device `"meta"`. Nothing is computed there, but everything is counted. So we know the work and the traffic of all
# sizes before we run any of them.


# %%
def passes(layers, config, B, L, steps, device):
    """{name: one pass through all layers}, and the cache, which has room for L tokens and `steps` steps."""
    cache = initialize_kv_cache(B, L + steps, config, device=device)
    positions = get_position_embeddings(L + max(1, steps), config, device=device)
    prompt = create_prefill_inputs(B, L, config, device=device)
    token = create_decode_inputs_with_cache(B, config, device=device)
    text = create_decode_inputs_without_cache(B, L + 1, config, device=device)

    def prefill():
        cache.reset()
        return multi_layer_prefill_forward(layers, prompt, positions, cache)

    made = {
        "prefill": prefill,
        "decode without a cache": lambda: multi_layer_decode_forward(layers, text, positions),
        "decode with a cache": lambda: multi_layer_decode_forward(layers, token, positions, cache),
    }
    return made, cache


def counted_passes(config, B, L):
    """{name: its counters} of the three passes through all layers, without running anything."""
    made, _ = passes(make_layers(config, "meta"), config, B, L, 1, "meta")
    counters = {}
    for name, run in made.items():  # prefill comes first, so decode finds its tokens in the cache
        with rl.count() as counters[name]:
            run()
    return counters


rows = []
for name, cost in counted_passes(one_layer, 8, 4096).items():
    moved = cost.bytes_read + cost.bytes_written
    rows.append((name, f"{cost.flops / 1e9:,.3f}", f"{moved / 1e9:.3f}", f"{cost.flops / moved:.1f}"))
Table(("B = 8, L = 4096", "GFLOP", "GB moved", "FLOP/byte"), rows, title="One layer of the pseudo model")

# %% [markdown]
# With the cache a step needs about 3400 times fewer FLOPs, but only about 16 times fewer bytes. (Why 3400 and not 4097,
# the number of tokens? Here the kernel skips the scores that the causal mask hides, and the counters follow it. In b3.1
# we counted them.) So the cache cannot make a step 3400 times faster.
#
# Now measure. How much of this your machine can do depends on its speed and its memory. One short prefill is timed
# first. From its speed and the counted FLOPs the next cell predicts how long a prefill takes, and it picks the largest
# size that fits.

# %%
BUDGET_S = 0.8  # for one pass through one layer
probe, _ = passes([layer], one_layer, 1, 64, 0, device)
timing = latency(probe["prefill"], warmup=1, repeat=3)
flop_s = counted_passes(one_layer, 1, 64)["prefill"].flops / (timing.median_ms / 1e3)


def fits(config, B, L, budget_s):
    """Whether a prefill is expected to take no longer than `budget_s`, and fits into memory."""
    cost = counted_passes(config, B, L)["prefill"]
    weights = config["num_hidden_layers"] * layer.num_parameters() * 2
    kept = initialize_kv_cache(B, L, config, device="meta").nbytes
    has_room = weights + kept + 2 * cost.peak_bytes < rl.memory.available(device)
    return cost.flops / flop_s <= budget_s and has_room


sizes = [(8, 4096), (8, 1024), (8, 256), (4, 256), (2, 256), (1, 256), (1, 128)]
B, L = next((size for size in sizes if fits(one_layer, *size, BUDGET_S)), sizes[-1])
print(f"B = {B}, L = {L}; a short prefill runs at {flop_s / 1e12:.3g} TFLOP/s")


# %%
def time_passes(layers, config, B, L, budget_s):
    """{name: (counters, Timing)} of the three passes; each runs as often as the budget allows, 2 to 20 times."""
    warmup, steps = 2, 20
    made, cache = passes(layers, config, B, L, 1 + warmup + steps, device)
    predicted_s = counted_passes(config, B, L)["prefill"].flops / flop_s
    repeat = int(max(2, min(20, budget_s / predicted_s)))
    results = {}
    for name, run in made.items():
        with rl.count() as cost:  # the first warm-up
            run()
        is_step = name == "decode with a cache"
        results[name] = cost, latency(run, warmup=warmup if is_step else 0, repeat=steps if is_step else repeat)
        if name == "prefill":
            assert cache.length == L, "each prefill began with an empty cache"
    assert cache.length == L + 1 + warmup + steps, "each step made the cache longer by one token"
    return results


lengths = [L // 8, L // 4, L // 2, L]
measured = {length: time_passes([layer], one_layer, B, length, BUDGET_S) for length in lengths}
rows = []
for name, (cost, timing) in measured[L].items():
    moved, seconds = cost.bytes_read + cost.bytes_written, timing.median_ms / 1e3
    speeds = (f"{cost.flops / seconds / 1e12:.3g}", f"{moved / seconds / 1e12:.3g}")
    rows.append((name, f"{cost.flops / 1e9:,.3f}", f"{moved / 1e9:.3f}", str(timing), *speeds))
head = (f"B = {B}, L = {L}", "GFLOP", "GB moved", "latency", "TFLOP/s", "TB/s")
display(Table(head, rows, title="One layer of the pseudo model, bf16"))
series = {name: {length: measured[length][name][1] for length in lengths} for name in measured[L]}
title = f"One layer of the pseudo model, bf16, B = {B}"
rl.plots.plot_latency_vs_size(series, xlabel="L, tokens before the step", title=title)

# %% [markdown]
# - Prefill and decode without a cache take about the same time. Without a cache, each new token costs as much as
#   processing the whole sequence.
# - Both grow about in proportion to L, and faster when L is large, because the number of scores grows with L².
# - Decode with a cache hardly grows at first, because most of its bytes are the weights. It grows with L once the bytes
#   of the cache outweigh them. On a GPU the fixed cost of each launch can hide both for short sequences.
#
# **All layers.** A model repeats this for each layer. The next cell takes as many of the 26 layers as fit into your
# machine's memory and into a few seconds.

# %%
LAYERS = full_config["num_hidden_layers"]
stacks = [{**full_config, "num_hidden_layers": n} for n in (LAYERS, 13, 8, 4, 2)]
stack = next((config for config in stacks if fits(config, B, L, 4 * BUDGET_S)), stacks[-1])
depth = stack["num_hidden_layers"]
of_stack = time_passes(make_layers(stack, device), stack, B, L, 4 * BUDGET_S)
rows = []
for name, (_, timing) in of_stack.items():
    single = measured[L][name][1]
    ratio = timing.median_ms / single.median_ms
    rows.append((name, str(single), str(timing), f"{ratio:.1f}", f"{timing.median_ms / depth:.3g}"))
head = (f"B = {B}, L = {L}", "one layer", f"{depth} layers", "ratio", f"ms a layer, of {depth}")
Table(head, rows, title=f"{depth} of the {LAYERS} layers of the pseudo model, bf16")

# %% [markdown]
# The work and the traffic grow in proportion to the number of layers, and so should the times. They grow faster if the
# weights of one layer fit into a cache of the processor and those of all layers do not.
#
# The price of the cache is memory. This is what the pseudo model keeps for 8 sequences of 4096 tokens, if all of its
# layers see the whole sequence, and with the sliding window of Gemma 3. Gemma 3 270M also has fewer layers, and only
# one key/value head in each.

# %%
models = {
    "pseudo, every layer sees all": full_config,
    "pseudo, sliding windows": GEMMA3_PSEUDO_CONFIG,
    "Gemma 3 270M": GEMMA3_270M_CONFIG,
}
kept = {name: initialize_kv_cache(8, 4096, config, device="meta").nbytes for name, config in models.items()}
rl.plots.plot_bars(kept, "B", title="Keys and values, B = 8, L = 4096, bf16")
