# %% [markdown]
# # Part 3. Inside a language model
#
# A language model is a stack of layers of the same kind. Gemma 3 270M has 18 of them ([Gemma 3 technical report,
# 2025](https://arxiv.org/abs/2503.19786)). The drawing below shows one of them. Here x holds D numbers for each of L
# tokens in each of B sequences.

# %%
rl.plots.plot_decoder_layer(GEMMA3_270M_CONFIG)

# %% [markdown]
# - **Two halves.** Attention mixes the tokens of a sequence. The MLP works on each token alone. The result of each half
#   is added to its input.
# - **Norms.** RMSNorm divides the numbers of a token by their root mean square and multiplies by weights. There is one
#   before and one after each half. Queries and keys have norms of their own.
# - **Rotary embedding.** Queries and keys are rotated by an angle that grows with their position. So a score depends on
#   how far apart two tokens are.
# - **Grouped-query attention.** There are H query heads and H_kv key/value heads, and several query heads share one. So
#   there are fewer keys and values to keep.
# - **Gated MLP.** It multiplies GeLU(gate) by up, element by element, and projects the product down to D.
# - **KV cache.** *Prefill* handles all tokens of the prompt at once. *Decode* then makes one token at a time. The keys
#   and values of earlier tokens do not change, so they are kept.
#
# `GEMMA3_270M_CONFIG` holds the sizes, under the names that Hugging Face uses:
#
# | letter | key | 270M |
# |---|---|---|
# | D | `hidden_size` | 640 |
# | I | `intermediate_size` | 2048 |
# | H | `num_attention_heads` | 4 |
# | H_kv | `num_key_value_heads` | 1 |
# | D_h | `head_dim` | 256 |
#
# `rl.nn.Gemma3DecoderLayer` is this layer. Its modules and weights have the names that Hugging Face uses, too. The
# weight of a projection is (outputs, inputs).

# %%
rl.nn.Gemma3DecoderLayer(rl.nn.GEMMA3_270M)

# %% [markdown]
# You will take attention and the MLP apart in turn. Then you will time the whole layer (3.3) and profile it (b4.2).
#
# ## 3.1 Attention from scratch ({points q3_1})
#
# Each query is compared with every key. The scores of a query become weights that add up to 1, and the result is the
# weighted sum of the values:
#
# $$O = \mathrm{softmax}\left(\frac{q\, k^T}{\sqrt{D_h}} + \mathrm{mask}\right) v$$
#
# ### a) The function ({points q3_1_test q3_1_mask_test q3_1_scratch_test})
#
# Write `scaled_dot_product_attention(q, k, v, attn_mask=None)` in fp32.
#
# - q is (B, H, L_q, D_h), and k and v are (B, H, L_kv, D_h). The result has the shape of q. L_q and L_kv may differ. In
#   decode, L_q is 1.
# - `attn_mask` broadcasts to (B, H, L_q, L_kv). A *boolean* mask says which keys a query may see: True means that it
#   may. Any other mask is *additive*: it is added to the scaled scores, and $-\infty$ hides a key. Every query may see
#   at least one key.
# - Scores can be several hundred or more, above and below 0, and $e^{100}$ is more than fp32 holds. `rl.softmax`
#   subtracts the largest score of a row first, which does not change the result.
# - Do not write into the arguments.
# - *From scratch* means that you compute both products with `rl.matmul` or `@`. You may call `rl.softmax`. You may not
#   call `rl.attention`. The test counts the operations that run.
#
# <details><summary>Hint 1: the products</summary>
#
# `x.mT` swaps the last two dimensions of x.
# </details>
# <details><summary>Hint 2: the masks</summary>
#
# `attn_mask.dtype == "bool"` says which kind of mask it is. `rl.where(condition, a, b)` takes a or b for each element,
# and one of them may be a number such as `float("-inf")`.
# </details>


# %% nbgrader={"grade_id": "q3_1", "solution": true} rooflab={"counters": false}
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    """softmax(q k^T / sqrt(D_h) + mask) v; q (B, H, L_q, D_h), k and v (B, H, L_kv, D_h)."""
    ### BEGIN SOLUTION
    scores = rl.matmul(q, k.mT) * q.shape[-1] ** -0.5
    if attn_mask is not None and attn_mask.dtype == "bool":
        scores = rl.where(attn_mask, scores, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return rl.matmul(rl.softmax(scores), v)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 3}
def check_attention(B, H, L_q, L_kv, D_h, mask=None, scale=1.0, tolerance=1e-5):
    q, k, v = (measure.rng().standard_normal((B, H, L, D_h)) for L in (L_q, L_kv, L_kv))
    k[:, :, 0] = -q[:, :, 0]  # far below 0, and under a causal mask the only score of the first query
    q, k, v = (rl.tensor(array, dtype="float32", device=device) for array in (q * scale, k, v))
    masks = [] if mask is None else [rl.tensor(mask, device=device)]
    seen = measure.call(scaled_dot_product_attention, q, k, v, *masks)
    result, case = seen.value, f"q {tuple(q.shape)}, {L_kv} keys" + "".join(f", mask {mask.shape}" for _ in masks)
    assert isinstance(result, rl.Tensor), f"{case}: return an rl tensor, not a {type(result).__name__}"
    assert tuple(result.shape) == tuple(q.shape), f"{case}: expected shape {tuple(q.shape)}, got {tuple(result.shape)}"
    assert result.dtype == rl.float32, f"{case}: expected dtype float32, got {result.dtype}"
    assert result.device == q.device, f"{case}: expected a result on {q.device}, got one on {result.device}"
    assert not seen.changed, f"{case}: your function changed its arguments; make new tensors"
    masks = [one if one.dtype == "bool" else one.double() for one in masks]
    expected = rl.attention(q.double(), k.double(), v.double(), *masks)
    assert_close(result, expected, rtol=tolerance, atol=tolerance, name=case)


check_attention(1, 1, 3, 3, 4)
check_attention(2, 3, 5, 9, 16)
check_attention(2, 3, 9, 5, 16)
check_attention(2, 2, 1, 12, 8)
check_attention(1, 2, 6, 1, 8)
check_attention(1, 2, 7, 20, 64, scale=200.0, tolerance=5e-4)  # scores of several hundred
### BEGIN HIDDEN TESTS
B, H, D_h = measure.draw(2, 3), measure.draw(4, 5), measure.draw(10, 19)
L_q, L_kv = measure.draw(20, 39), measure.draw(40, 60)
check_attention(1, 4, 173, 256, 128)
check_attention(B, H, L_q, L_kv, D_h)
check_attention(H, B, L_kv, L_q, D_h)
check_attention(4, 1, 1, measure.draw(250, 350), 256)
check_attention(2, 1, 4, 1, 3)
check_attention(1, 2, D_h, L_kv, 32, scale=150.0, tolerance=5e-4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_1_mask_test", "grade": true, "points": 3}
def seen_by_chance(*shape):
    """A boolean mask in which every query may see the first key, and about half of the others."""
    mask = measure.rng().random(shape) < 0.5
    mask[..., 0] = True
    return mask


def bias(*shape, hide=False):
    """An additive mask: numbers around 0, and with `hide` half of the keys hidden."""
    numbers = measure.rng().standard_normal(shape).astype(np.float32)
    return np.where(seen_by_chance(*shape), numbers, -np.inf).astype(np.float32) if hide else numbers


def check_keyword(L_q, L_kv):
    q, k = rl.randn(1, 2, L_q, 8, device=device), rl.randn(1, 2, L_kv, 8, device=device)
    mask = rl.attention_mask(L_q, L_kv, device=device)
    result = scaled_dot_product_attention(q, k, k, attn_mask=mask)
    assert_close(result, rl.attention(q, k, k, mask), rtol=1e-4, atol=1e-5, name=f"causal, {L_q} and {L_kv}")


check_keyword(4, 6)
check_attention(2, 3, 5, 9, 16, seen_by_chance(5, 9))
check_attention(2, 3, 5, 9, 16, seen_by_chance(2, 1, 1, 9))
check_attention(2, 2, 1, 12, 8, seen_by_chance(2, 2, 1, 12))
check_attention(2, 3, 5, 9, 16, bias(5, 9))
check_attention(2, 3, 5, 9, 16, bias(3, 1, 9))
check_attention(2, 3, 5, 9, 16, bias(2, 3, 5, 9, hide=True))
causal = np.tril(np.ones((20, 20), dtype=bool))
check_attention(1, 2, 20, 20, 64, causal, scale=200.0, tolerance=5e-4)
check_attention(1, 2, 7, 20, 64, bias(7, 20, hide=True), scale=200.0, tolerance=5e-4)
check_attention(1, 2, 1, 9, 64, np.arange(9) == 0, scale=1e4)  # the only visible score is below -10,000
### BEGIN HIDDEN TESTS
L_q, L_kv = measure.draw(10, 19), measure.draw(25, 40)
check_keyword(L_q, L_kv)
check_attention(3, 2, L_q, L_kv, 24, seen_by_chance(L_q, L_kv))
check_attention(3, 2, L_q, L_kv, 24, seen_by_chance(3, 1, 1, L_kv))
check_attention(2, 4, 1, 3 * L_kv, 64, seen_by_chance(1, 4, 1, 3 * L_kv))
check_attention(3, 2, L_q, L_kv, 24, bias(2, L_q, L_kv))
check_attention(3, 2, L_q, L_kv, 24, bias(3, 1, 1, L_kv, hide=True))
causal = np.tril(np.ones((L_kv, L_kv), dtype=bool))
check_attention(1, 2, L_kv, L_kv, 32, causal, scale=150.0, tolerance=5e-4)
check_attention(1, 2, L_q, L_kv, 32, bias(L_q, L_kv, hide=True), scale=150.0, tolerance=5e-4)
check_attention(1, 3, 1, L_kv, 48, np.arange(L_kv) == 0, scale=1e4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_1_scratch_test", "grade": true, "points": 2}
def check_scratch(B, H, L_q, L_kv, D_h, macs, masked=False):
    q, k = rl.randn(B, H, L_q, D_h, device=device), rl.randn(B, H, L_kv, D_h, device=device)
    masks = (rl.attention_mask(L_q, L_kv, device=device),) if masked else ()
    seen = measure.count(scaled_dot_product_attention, q, k, k, *masks)
    assert "attention" not in seen.by_op, "rl.attention ran: compute the scores, the softmax and the sum yourself"
    assert seen.macs == macs, f"expected {macs} MACs in two products, got {seen.macs}: use rl.matmul"
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert_close(seen.value, rl.attention(q, k, k, *masks), rtol=1e-4, atol=1e-5, name=f"{L_q} queries, {L_kv} keys")


check_scratch(1, 2, 3, 5, 4, macs=240)
check_scratch(1, 2, 3, 5, 4, macs=240, masked=True)
### BEGIN HIDDEN TESTS
L_q, L_kv, D_h = measure.draw(5, 8), measure.draw(9, 14), measure.draw(15, 20)
macs = 2 * (2 * 3 * L_q * L_kv * D_h)
check_scratch(2, 3, L_q, L_kv, D_h, macs)
check_scratch(2, 3, L_q, L_kv, D_h, macs, masked=True)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Its work ({points q3_1_mac_test})
#
# Write `calc_attn_mac(B, H, L_q, L_kv, D_h)`: the multiply-accumulates of one call, as an `int`. Count both products.
# Softmax, scale and mask have no MACs.


# %% nbgrader={"grade_id": "q3_1_mac", "solution": true}
def calc_attn_mac(B, H, L_q, L_kv, D_h):
    """Multiply-accumulates of attention without its projections: an int."""
    ### BEGIN SOLUTION
    scores = B * H * L_q * L_kv * D_h
    weighted_sum = B * H * L_q * D_h * L_kv
    return scores + weighted_sum
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_1_mac_test", "grade": true, "points": 2}
mac_hint = "which two products does each head run, and how many MACs does one element of their results take?"


def check_attn_mac(B, H, L_q, L_kv, D_h, expected):
    seen = measure.count(calc_attn_mac, B, H, L_q, L_kv, D_h)
    sizes = f"B = {B}, H = {H}, L_q = {L_q}, L_kv = {L_kv}, D_h = {D_h}"
    assert is_count(seen.value), f"{sizes}: calc_attn_mac has to return an int, not {seen.value!r}"
    assert seen.value == expected, f"{sizes}: expected {expected} MACs, got {seen.value}; {mac_hint}"
    assert seen.launches == 0, "compute the number from the sizes, without running anything"


check_attn_mac(1, 1, 2, 3, 5, expected=60)
check_attn_mac(2, 3, 1, 7, 4, expected=336)
check_attn_mac(1, 4, 173, 256, 128, expected=45350912)
check_attn_mac(1, 1, 60000, 40000, 2, expected=9600000000)  # more than 32 bits hold
### BEGIN HIDDEN TESTS
B, H, L_q, L_kv, D_h = (measure.draw(low, low + 9) for low in (2, 12, 22, 32, 42))  # no two of them are equal
check_attn_mac(B, H, L_q, L_kv, D_h, expected=2 * B * H * L_q * L_kv * D_h)
check_attn_mac(D_h, L_kv, L_q, H, B, expected=2 * B * H * L_q * L_kv * D_h)
check_attn_mac(8, 8, 1, 4096, 256, expected=134217728)
check_attn_mac(8, 8, 4096, 4096, 256, expected=549755813888)
check_attn_mac(2, 5, 70, 1, 3, expected=4200)
### END HIDDEN TESTS

# %% [markdown]
# Compare your formula with what the runtime counts, for your attention and for the library's. Both do the same work.
# Yours needs more launches. For long prompts it also needs much more memory, because it stores the scores. Part 5 is
# about that.

# %%
rows = []
for L_q, L_kv in [(173, 256), (1024, 1024), (1, 1024)]:
    q, k, v = (rl.randn(1, 4, L, 128, device=device) for L in (L_q, L_kv, L_kv))
    for fn in (scaled_dot_product_attention, rl.attention):
        with rl.count() as counted:
            fn(q, k, v)
        macs = (f"{calc_attn_mac(1, 4, L_q, L_kv, 128):,}", f"{counted.macs:,}")
        rows.append((L_q, L_kv, fn.__name__, *macs, counted.launches, f"{counted.peak_bytes / 1e6:.2f}"))
Table(("L_q", "L_kv", "function", "calc_attn_mac", "MACs counted", "launches", "peak MB"), rows)

# %% [markdown]
# ## b3.1 The attention module ({points b3_1})
#
# In a layer, attention is surrounded by four projections: q, k and v are computed from x, and o takes the result back
# to D numbers a token. Write `calc_attn_module_mac(batch_size, query_len, kv_len, config)`: the MACs of the four
# projections and of attention, as an `int`.
#
# - `query_len` tokens are new. Queries see `kv_len` keys, and the new tokens are among them. Prefill of a prompt has
#   `query_len` = `kv_len`. Decode has `query_len` = 1.
# - All four projections work on the *new* tokens. Keys and values of earlier tokens are in the cache and are not
#   projected again.
# - There are H query heads and H_kv key/value heads of D_h numbers each. Every query head computes its own scores. H
#   times D_h need not be D.
# - Norms, rotary embedding, softmax and mask have no MACs. A causal mask does not lower the count.
#
# The keys of `config` are in the table at the beginning of Part 3.


# %% nbgrader={"grade_id": "b3_1", "solution": true} rooflab={"counters": false}
def calc_attn_module_mac(batch_size, query_len, kv_len, config):
    """MACs of the q, k, v and o projections and of attention: an int."""
    ### BEGIN SOLUTION
    D, D_h = config["hidden_size"], config["head_dim"]
    H, H_kv = config["num_attention_heads"], config["num_key_value_heads"]
    new_tokens = batch_size * query_len
    q_and_o = 2 * new_tokens * D * H * D_h
    k_and_v = 2 * new_tokens * D * H_kv * D_h
    return q_and_o + k_and_v + 2 * batch_size * H * query_len * kv_len * D_h
    ### END SOLUTION


# %% tags=["setup"]
def sizes_of(config):
    """The four sizes of a config that this module uses, in words."""
    names = {"D": "hidden_size", "H": "num_attention_heads", "H_kv": "num_key_value_heads", "D_h": "head_dim"}
    return ", ".join(f"{letter} = {config[name]}" for letter, name in names.items())


# %% nbgrader={"grade_id": "b3_1_test", "grade": true, "points": 3}
def small_config(D, H, H_kv, D_h, I=10, layers=2):
    return {
        "hidden_size": D,
        "intermediate_size": I,
        "num_attention_heads": H,
        "num_key_value_heads": H_kv,
        "head_dim": D_h,
        "num_hidden_layers": layers,
    }


module_hint = "which sizes does each of the six products have, and how many tokens are new?"


def check_module_mac(batch_size, query_len, kv_len, config, expected):
    seen = measure.count(calc_attn_module_mac, batch_size, query_len, kv_len, config)
    case = f"batch_size = {batch_size}, query_len = {query_len}, kv_len = {kv_len}, {sizes_of(config)}"
    assert is_count(seen.value), f"calc_attn_module_mac has to return an int, not {seen.value!r}"
    assert seen.value == expected, f"{case}: expected {expected} MACs, got {seen.value}; {module_hint}"
    assert seen.launches == 0, "compute the number from the sizes, without running anything"


check_module_mac(1, 1, 1, small_config(D=3, H=2, H_kv=1, D_h=5), expected=110)
check_module_mac(2, 4, 4, small_config(D=3, H=2, H_kv=2, D_h=5), expected=1600)
check_module_mac(1, 512, 512, GEMMA3_270M_CONFIG, expected=1375731712)
### BEGIN HIDDEN TESTS
B, H_kv, D_h, D, L = (measure.draw(low, low + 2) for low in (2, 5, 30, 40, 50))
H = measure.draw(2, 4) * H_kv  # no two sizes are equal, and H D_h is not D
expected = 2 * B * L * D_h * (D * (H + H_kv) + H * L)
check_module_mac(B, L, L, small_config(D, H, H_kv, D_h), expected)
check_module_mac(8, 2048, 2048, GEMMA3_270M_CONFIG, expected=95563022336)
check_module_mac(8, 4096, 4096, GEMMA3_PSEUDO_CONFIG, expected=858993459200)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_1_cache_test", "grade": true, "points": 2}
check_module_mac(1, 1, 4, small_config(D=3, H=2, H_kv=1, D_h=5), expected=170)
check_module_mac(2, 3, 8, small_config(D=3, H=4, H_kv=2, D_h=5), expected=3000)
check_module_mac(1, 1, 2048, GEMMA3_270M_CONFIG, expected=5832704)
### BEGIN HIDDEN TESTS
B, H_kv, D_h, D, L_kv = (measure.draw(low, low + 2) for low in (2, 5, 30, 40, 80))
H = measure.draw(2, 4) * H_kv  # no two sizes are equal, and H D_h is not D
for L_q in (1, measure.draw(50, 70)):
    expected = 2 * B * L_q * D_h * (D * (H + H_kv) + H * L_kv)
    check_module_mac(B, L_q, L_kv, small_config(D, H, H_kv, D_h), expected)
check_module_mac(8, 1, 4096, GEMMA3_PSEUDO_CONFIG, expected=209715200)
### END HIDDEN TESTS

# %% [markdown]
# Here are the MACs of each part of the module in the 270M model. `rl.cost` computes what an operation would do, without
# running it. Compare the rows: with a cache, decoding one token takes little work, and with a long cache most of that
# work is attention.

# %%
D, H, H_kv, D_h = (
    GEMMA3_270M_CONFIG[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
)
rows = []
for query_len, kv_len in [(2048, 2048), (1, 2048), (1, 32768)]:
    parts = {
        "q_proj": rl.cost.matmul((query_len, D), (D, H * D_h)).macs,
        "k_proj, v_proj": 2 * rl.cost.matmul((query_len, D), (D, H_kv * D_h)).macs,
        "attention": rl.cost.attention((1, H, query_len, D_h), (1, H_kv, kv_len, D_h), (1, H_kv, kv_len, D_h)).macs,
        "o_proj": rl.cost.matmul((query_len, H * D_h), (H * D_h, D)).macs,
    }
    rows.append((query_len, kv_len, *(f"{macs:,}" for macs in parts.values()), f"{sum(parts.values()):,}"))
Table(("new tokens", "keys", *parts, "all"), rows, title="MACs of the attention module, Gemma 3 270M")
