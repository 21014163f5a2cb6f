# %% [markdown]
# ## b4.2 Profile a decode step ({points b4_2})
#
# A decode step of a whole layer does little work in many kernels. The layer opens these ranges: `input_norm`,
# `self_attn` with `q_proj`, `k_proj`, `v_proj`, `attn_op` and `o_proj` inside, `post_attn_norm`, `res`, `pre_ffn_norm`,
# `mlp` with `gate_proj`, `up_proj`, `act_fn` and `down_proj` inside, `post_ffn_norm`, and `res` again. A range inside
# another has both names: `kernel.range` is `"self_attn/q_proj"`.
#
# ### a) What runs in each range ({points b4_2_test})
#
# Write two functions for a layer with random weights. `config` has one layer.
#
# - `decode_profile(batch_size, length, config)`: fill an empty cache by a prefill of `length` tokens. Then profile ten
#   decode steps under `default_schedule`. Each step makes the cache longer by one token. Return the profile.
# - `decode_ranges(batch_size, length, config)`: from the kernels of the *last* step,
#   `{range: {"launches": int, "bytes": int}}`. The key is the last part of a range's name, such as `"q_proj"`. The two
#   ranges `res` share one key. The bytes are those read and written, `kernel.cost.bytes`. One launch is in no range: it
#   updates the number of tokens in the cache. Leave it out.
#
# <details><summary>Hint</summary>
#
# `rl.nn.Gemma3DecoderLayer(rl.nn.Gemma3Config(**config), fused=False, device=device)` makes the layer. With
# `fused=False` each step is a kernel in a range of its own. The other functions that you need were used in 3.3. The
# cache and the position embeddings need room for ten more tokens.
# </details>


# %% nbgrader={"grade_id": "b4_2", "solution": true}
def decode_profile(batch_size, length, config):
    """The profile of ten decode steps of one layer, with a cache that holds `length` tokens before the first."""
    ### BEGIN SOLUTION
    layer = rl.nn.Gemma3DecoderLayer(rl.nn.Gemma3Config(**config), fused=False, device=device)
    cache = initialize_kv_cache(batch_size, length + 10, config, device=device)
    (positions,) = get_position_embeddings(length + 10, config, device=device)
    prefill_forward(layer, create_prefill_inputs(batch_size, length, config, device=device), positions, cache)
    token = create_decode_inputs_with_cache(batch_size, config, device=device)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            decode_forward(layer, token, positions, cache)
            prof.step()
    return prof
    ### END SOLUTION


def decode_ranges(batch_size, length, config):
    """{range: {"launches": int, "bytes": int}} of the last of ten decode steps."""
    ### BEGIN SOLUTION
    prof = decode_profile(batch_size, length, config)
    last = prof.kernels[-1].step
    ranges = {}
    for kernel in prof.kernels:
        if kernel.step == last and kernel.range:
            row = ranges.setdefault(kernel.range.split("/")[-1], {"launches": 0, "bytes": 0})
            row["launches"] += 1
            row["bytes"] += kernel.cost.bytes
    return ranges
    ### END SOLUTION


# %% nbgrader={"grade_id": "b4_2_test", "grade": true, "points": 2}
def ranges_of(B, L, expected, **sizes):
    """What decode_ranges returns, after its bytes were compared with those `expected` of each range."""
    config = {**GEMMA3_270M_CONFIG, "num_hidden_layers": 1, "sliding_window_pattern": 1, **sizes}
    seen = measure.profiles(decode_ranges, B, L, config)
    got, case = seen.value, f"B = {B}, L = {L}"
    said = f"{case}: expected a dict with the keys {', '.join(sorted(expected))}"
    assert isinstance(got, dict) and set(got) == set(expected), said
    for name, right in expected.items():
        said = f"{name}: expected the keys launches and bytes, got {got[name]}"
        assert isinstance(got[name], dict) and set(got[name]) == {"launches", "bytes"}, said
        said = f"{name}: launches and bytes have to be ints, got {got[name]}"
        assert all(is_count(number) for number in got[name].values()), said
        moved = got[name]["bytes"]
        assert moved == right, f"{case}, {name}: expected {right} bytes in the last of ten steps, got {moved}"
    said = f"{case}: profile ten decode steps under default_schedule, which records the last six"
    assert seen.recorded(default_schedule, 10), said
    return got


def check_ranges(B, L, expected, **sizes):
    ranges_of(B, L, expected, **sizes)


norms = ("input_norm", "post_attn_norm", "pre_ffn_norm", "post_ffn_norm")
wide, narrow = dict.fromkeys(("gate_proj", "up_proj", "down_proj"), 7936), dict.fromkeys(("k_proj", "v_proj"), 1664)
expected = {**dict.fromkeys(norms, 288), **wide, **narrow, "q_proj": 3232, "o_proj": 3232}
expected |= {"attn_op": 1800, "res": 576, "act_fn": 480}
check_ranges(1, 5, expected, hidden_size=48, intermediate_size=80, num_attention_heads=2, head_dim=16)
wide, narrow = dict.fromkeys(("gate_proj", "up_proj", "down_proj"), 4672), dict.fromkeys(("k_proj", "v_proj"), 1312)
expected = {**dict.fromkeys(norms, 448), **wide, **narrow, "q_proj": 2432, "o_proj": 2432}
expected |= {"attn_op": 7784, "res": 1152, "act_fn": 1152}
sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
check_ranges(3, 20, expected, hidden_size=32, intermediate_size=64, **sizes)


### BEGIN HIDDEN TESTS
def count_step(B, L, config):
    """{range: counters} of one step with a cache that holds L tokens before it."""
    layer = rl.nn.Gemma3DecoderLayer(rl.nn.Gemma3Config(**config), fused=False, device=device)
    cache = initialize_kv_cache(B, L + 1, config, device=device)
    (positions,) = get_position_embeddings(L + 1, config, device=device)
    prefill_forward(layer, create_prefill_inputs(B, L, config, device=device), positions, cache)
    with rl.count() as counted:
        decode_forward(layer, create_decode_inputs_with_cache(B, config, device=device), positions, cache)
    return {name.split("/")[-1]: part for name, part in counted.by_range.items() if name not in ("self_attn", "mlp")}


def check_step(B, L, **sizes):
    config = {**GEMMA3_270M_CONFIG, "num_hidden_layers": 1, "sliding_window_pattern": 1, **sizes}
    parts = count_step(B, L + 9, config)
    got = ranges_of(B, L, {name: part.bytes_read + part.bytes_written for name, part in parts.items()}, **sizes)
    for name, part in parts.items():
        launches = got[name]["launches"]
        said = f"B = {B}, L = {L}, {name}: expected {part.launches} launches in one step, got {launches}"
        assert launches == part.launches, said


check_step(1, 5, hidden_size=48, intermediate_size=80, num_attention_heads=2, head_dim=16)
check_step(2, measure.draw(30, 50))
D, I, heads = 16 * measure.draw(2, 4), 16 * measure.draw(5, 7), measure.draw(2, 4)
sizes = {"hidden_size": D, "intermediate_size": I, "num_attention_heads": heads, "num_key_value_heads": heads}
check_step(measure.draw(4, 6), measure.draw(7, 12), **sizes, head_dim=32)
check_step(2, 20, hidden_size=32, intermediate_size=64, head_dim=8, sliding_window_pattern=6, sliding_window=16)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Where the launches and the bytes are ({points b4_2_read_test})
#
# Write `read_step(ranges)`. It takes what `decode_ranges` returns, and returns a dict:
#
# - `"most_launches"` and `"most_bytes"`: the range with the most launches, and the one that moves the most bytes
# - `"share_outside_proj"`: the share of all launches, from 0 to 1, that is not in one of the seven projections. Their
#   names end in `_proj`.


# %% nbgrader={"grade_id": "b4_2_read", "solution": true}
def read_step(ranges):
    """{"most_launches": range, "most_bytes": range, "share_outside_proj": 0 to 1}."""
    ### BEGIN SOLUTION
    launches = {name: part["launches"] for name, part in ranges.items()}
    outside = sum(number for name, number in launches.items() if not name.endswith("_proj"))
    return {
        "most_launches": max(launches, key=launches.get),
        "most_bytes": max(ranges, key=lambda name: ranges[name]["bytes"]),
        "share_outside_proj": outside / sum(launches.values()),
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "b4_2_read_test", "grade": true, "points": 1}
def check_read(launches, moved, expected):
    names = ("input_norm", "q_proj", "attn_op", "act_fn", "down_proj")
    ranges = {name: {"launches": a, "bytes": b} for name, a, b in zip(names, launches, moved, strict=True)}
    got = read_step(ranges)
    assert isinstance(got, dict), f"read_step has to return a dict, not a {type(got).__name__}"
    said = f"read_step: expected three keys, got {sorted(got)}"
    assert set(got) == {"most_launches", "most_bytes", "share_outside_proj"}, said
    for key in ("most_launches", "most_bytes"):
        assert got[key] == expected[key], f"read_step({ranges}): expected {key} = {expected[key]!r}, got {got[key]!r}"
    share = expected["share_outside_proj"]
    assert is_near(got["share_outside_proj"], share), f"read_step({ranges}): expected share_outside_proj = {share:.4f}"


expected = {"most_launches": "attn_op", "most_bytes": "down_proj", "share_outside_proj": 0.75}
check_read((1, 1, 4, 1, 1), (10, 40, 30, 20, 50), expected)
expected = {"most_launches": "q_proj", "most_bytes": "act_fn", "share_outside_proj": 0.4}
check_read((1, 4, 2, 1, 2), (1, 2, 3, 5, 4), expected)
### BEGIN HIDDEN TESTS
names = ("input_norm", "q_proj", "attn_op", "act_fn", "down_proj")
for _ in range(2):
    launches, moved = (measure.rng().permutation(some).tolist() for some in ([1, 2, 3, 4, 10], [7, 9, 100, 400, 1000]))
    share = 1 - (launches[names.index("q_proj")] + launches[names.index("down_proj")]) / 20
    most = {"most_launches": names[launches.index(10)], "most_bytes": names[moved.index(1000)]}
    check_read(launches, moved, {**most, "share_outside_proj": share})
### END HIDDEN TESTS

# %% [markdown]
# ### c) What grows with the sequence and with the batch? ({points b4_2_values_test b4_2_why_test})
#
# Take a layer of the 270M model that sees the whole sequence: `one_full_layer` below.
#
# - `crossing_length`: attention reads the keys and values of all tokens, so `attn_op` moves more bytes as the sequence
#   grows. Let B = 1. From how many tokens on, the newest included, does `attn_op` move more bytes than any other range?
#   Give a whole number. An answer within 2% is right.
# - `why_attention_grows`: with a larger batch the bytes of `attn_op` grow in proportion, and those of `gate_proj`
#   hardly grow. Why? Choose a letter, and explain it in a sentence below.
#     - `"a"`: Attention is computed for each head separately, and a projection for all heads at once.
#     - `"b"`: The scores of a batch grow with the square of the number of its sequences.
#     - `"c"`: Every sequence has its own keys and values.
#     - `"d"`: The results of a projection stay in the processor's cache when the batch is large.

# %%
one_full_layer = {**GEMMA3_270M_CONFIG, "num_hidden_layers": 1, "sliding_window_pattern": 1}

# %% nbgrader={"grade_id": "b4_2_values", "solution": true}
crossing_length = None  # tokens
why_attention_grows = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
crossing_length = 2547  # 1024 bytes of keys and values a token against 2.63 MB in down_proj
why_attention_grows = "c"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "b4_2_findings", "solution": true}
# *What I find about a decode step:*

# %% nbgrader={"grade_id": "b4_2_values_test", "grade": true, "points": 1}
assert is_count(crossing_length), f"crossing_length has to be an int, a number of tokens, got {crossing_length!r}"
### BEGIN HIDDEN TESTS
said = "crossing_length: how many bytes does attn_op move for each token, and how many the largest projection?"
assert is_near(crossing_length, 2547, 0.02), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b4_2_why_test", "grade": true, "points": 1}
assert why_attention_grows in tuple("abcd"), "why_attention_grows: choose a letter"
### BEGIN HIDDEN TESTS
assert_choice(
    why_attention_grows,
    "c",
    a="The number of heads does not depend on the batch.",
    b="Count the scores of one step. No sequence attends to another one.",
    d="The counters take the results of every operation through memory, whatever the batch.",
)
### END HIDDEN TESTS

# %% [markdown]
# Here is the timeline of a step with a short sequence and with a longer one. The projections and the norms do the same
# in both, and only `attn_op` has more to read. A GPU needs a few microseconds for the smallest kernel too. So in a
# decode step the many small kernels outside the projections can take a large part of the time.

# %%
profiles = {f"{L} tokens in the cache": decode_profile(1, L, one_full_layer) for L in (16, 2048)}
rl.plots.plot_timelines(profiles, title="One decode step of a layer of Gemma 3 270M, B = 1")

# %%
rows = []
for label, prof in profiles.items():
    calls, total_us = len(prof.steps), sum(kernel.duration_us for kernel in prof.kernels)
    for name in dict.fromkeys(kernel.range for kernel in prof.kernels):
        kernels = [kernel for kernel in prof.kernels if kernel.range == name]
        time_us, moved = (sum(values) for values in zip(*((k.duration_us, k.cost.bytes) for k in kernels), strict=True))
        numbers = (f"{len(kernels) / calls:g}", f"{moved / calls / 1e3:,.1f}", f"{time_us / calls:.1f}")
        rows.append((label, name or "(none)", *numbers, f"{time_us / total_us:.1%}"))
Table(("cache", "range", "launches", "kB moved", "µs", "share of the time"), rows, title="One decode step, B = 1")
