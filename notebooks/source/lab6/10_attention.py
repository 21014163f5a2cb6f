# %% [markdown]
# # Part 1. Causal attention
#
# ## 1.1 The mask ({points q1_1})
#
# In a causal model a token sees itself and what stands before it. Write two functions with `rl` operations:
#
# - `causal_mask(L_q, L_kv)`: a boolean tensor (L_q, L_kv) on `device`, True where query i may see key j. The last query
#   belongs to the same token as the last key, so query i sees the keys j ≤ i + L_kv - L_q.
# - `masked_softmax(scores, visible)`: the attention weights of `scores` (..., L_q, L_kv). Each row sums to 1, and a
#   weight is exactly 0 where `visible` is False. A score that is not visible must have no effect at all, however large
#   it is.
#
# Then choose where such a mask is needed, `mask_is_needed`:
#
# - `"a"`: only in training, where it hides the tokens to predict
# - `"b"`: where many positions are computed at once
# - `"c"`: only when text is generated, one token after the other
# - `"d"`: where time is short, because it saves half of the products
#
# <details><summary>Hint: where the mask acts</summary>
#
# A score of -inf becomes a weight of 0, and the other weights of its row still sum to 1. A weight that is set to 0
# after the softmax has already taken its share of the sum.
# </details>


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def causal_mask(L_q, L_kv):
    """Boolean (L_q, L_kv): True where query i may see key j."""
    ### BEGIN SOLUTION
    last = rl.arange(L_q, device=device).unsqueeze(1) + (L_kv - L_q)
    return rl.arange(L_kv, device=device) <= last
    ### END SOLUTION


def masked_softmax(scores, visible):
    """Attention weights (..., L_q, L_kv) of scores; exactly 0 where not visible."""
    ### BEGIN SOLUTION
    return rl.softmax(rl.where(visible, scores, float("-inf")), dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_choice", "solution": true}
mask_is_needed = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
mask_is_needed = "b"  # in training, and when a model reads its prompt
### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 2}
def check_mask(L_q, L_kv):
    mask = causal_mask(L_q, L_kv)
    assert isinstance(mask, rl.Tensor) and mask.dtype == "bool", "causal_mask: return a boolean rl tensor"
    right = np.arange(L_kv) <= np.arange(L_q)[:, None] + L_kv - L_q
    assert_close(mask, right, name=f"causal_mask({L_q}, {L_kv}), 1 where visible")


check_mask(4, 4)
check_mask(2, 5)
check_mask(1, 3)
### BEGIN HIDDEN TESTS
check_mask(7, 7)
check_mask(3, 11)
check_mask(1, 1)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_weights_test", "grade": true, "points": 2}
def check_weights(shape, beyond, seed):
    rng = np.random.default_rng(seed)
    visible = np.arange(shape[-1]) <= np.arange(shape[-2])[:, None] + shape[-1] - shape[-2]
    exact = np.exp(scores := rng.standard_normal(shape)) * visible
    exact /= exact.sum(-1, keepdims=True)
    found = []
    for hidden in (0.0, beyond):
        given = np.where(visible, scores, hidden)
        made = masked_softmax(rl.tensor(given, dtype="float32", device=device), rl.tensor(visible, device=device))
        assert isinstance(made, rl.Tensor), "masked_softmax: return an rl tensor"
        found.append(to_float64(made))
        assert_close(made, exact, rtol=1e-5, atol=1e-6, name=f"weights, where hidden scores are {hidden:g}")
        assert (found[-1][..., ~visible] == 0).all(), "a hidden weight is exactly 0"
    assert (found[0] == found[1]).all(), "another hidden score changes no weight, not even its last bit"


check_weights((2, 4, 4), 500.0, seed=0)
check_weights((3, 5), -500.0, seed=1)
### BEGIN HIDDEN TESTS
check_weights((2, 3, 6, 6), 3e4, seed=2)
check_weights((2, 2, 7), 20.0, seed=3)
check_weights((1, 1, 1), 0.0, seed=4)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_choice_test", "grade": true, "points": 1}
assert mask_is_needed in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    mask_is_needed,
    "b",
    a="A model that reads a prompt computes all its positions at once too, and was trained with each seeing the past.",
    c="A new token is the last one: it may see all that there is, and its row of the mask hides nothing.",
    d="The scores are computed first and masked then. To skip their products is another idea, that of Lab 3.",
)
### END HIDDEN TESTS

# %% [markdown]
# Why not zero the weights after the softmax? The two rows below have the same visible scores. Only the hidden score
# differs, and it should not matter.

# %%
visible = causal_mask(2, 3)
rows = []
for hidden in (0.0, 4.0):
    scores = rl.tensor([[1.0, 2.0, hidden], [1.0, 2.0, 3.0]], device=device)
    before = masked_softmax(scores, visible)[0].tolist()
    after = (rl.softmax(scores, -1) * visible.float())[0].tolist()
    for name, weights in (("before", before), ("after", after)):
        rows.append((f"{hidden:g}", name, *(f"{weight:.3f}" for weight in weights), f"{sum(weights):.3f}"))
Table(("hidden score", "masked ... the softmax", "weight 1", "weight 2", "weight 3", "sum"), rows)

# %% [markdown]
# ## 1.2 Attention with heads ({points q1_2})
#
# Write `causal_attention(x, Wq, Wk, Wv, Wo, heads)`, self-attention of x (B, L, D) with several heads. Wq, Wk and Wv
# are (D, H D_h), and Wo is (H D_h, D). With H = `heads`:
#
# $$Q = x W_q, \quad K = x W_k, \quad V = x W_v, \qquad
# \text{head}_h = \text{softmax}\!\left(\frac{Q_h K_h^T}{\sqrt{D_h}} + \text{mask}\right) V_h, \qquad
# y = [\text{head}_1, \dots, \text{head}_H]\, W_o.$$
#
# Head 1 owns the first D_h columns of Q, K and V, head 2 the next ones, and so on. Each head attends by itself, so a
# model with two heads can look at two places at once.
#
# Use `rl` operations and your functions of 1.1. Do not use `rl.attention`. rooflab records what you call and finds the
# gradient, and your function will train the models of Part 2.
#
# <details><summary>Hint: all heads in one product</summary>
#
# `.reshape(B, L, heads, -1).transpose(1, 2)` turns (B, L, H D_h) into (B, H, L, D_h). `@` multiplies the last two
# dimensions for every row and head, and `.mT` swaps them. A reshape alone would mix tokens with heads.
# </details>


# %% nbgrader={"grade_id": "q1_2", "solution": true}
def causal_attention(x, Wq, Wk, Wv, Wo, heads):
    """Causal self-attention of x (B, L, D): (B, L, D)."""
    ### BEGIN SOLUTION
    B, L, _ = x.shape
    q, k, v = ((x @ W).reshape(B, L, heads, -1).transpose(1, 2) for W in (Wq, Wk, Wv))
    weights = masked_softmax(q @ k.mT * q.shape[-1] ** -0.5, causal_mask(L, L))
    return (weights @ v).transpose(1, 2).reshape(B, L, -1) @ Wo
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 3} rooflab={"needs": ["q1_1"]}
def check_attention(B, L, D, heads, D_h):
    inputs = make_inputs(B, L, D, heads, D_h, seed=L)
    y = causal_attention(*inputs, heads)
    assert isinstance(y, rl.Tensor), "causal_attention: return an rl tensor"
    what = f"y at B = {B}, L = {L}, D = {D}, {heads} heads of {D_h}"
    assert_close(y, causal_attention_float64(*inputs, heads), rtol=1e-5, atol=1e-5, name=what)


check_attention(2, 6, 8, 2, 4)
check_attention(3, 5, 6, 3, 4)
check_attention(2, 1, 8, 2, 4)
### BEGIN HIDDEN TESTS
check_attention(1, 24, 16, 4, 2)
check_attention(2, 9, 12, 1, 5)
check_attention(4, 2, 4, 2, 8)
check_attention(1, 1, 6, 3, 2)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_causal_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_causal(B, L, D, heads, D_h, j):
    x, *weights = make_inputs(B, L, D, heads, D_h, seed=1)
    other = to_float64(x)
    other[:, j] += 3.0
    before = to_float64(causal_attention(x, *weights, heads))
    after = to_float64(causal_attention(rl.tensor(other, dtype="float32", device=device), *weights, heads))
    assert (before[:, :j] == after[:, :j]).all(), f"another token {j} changes no output before it, not even a last bit"
    changed = (before[:, j:] != after[:, j:]).any(axis=(0, 2))
    assert changed.all(), f"another token {j} changes its own output and all after it"


check_causal(2, 6, 8, 2, 4, j=3)
check_causal(1, 6, 8, 2, 4, j=5)
### BEGIN HIDDEN TESTS
check_causal(2, 9, 6, 3, 4, j=1)
check_causal(2, 12, 8, 1, 8, j=6)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_gradients_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_gradients(B, L, D, heads, D_h):
    inputs = make_inputs(B, L, D, heads, D_h, "float64", seed=2)
    rng, step = np.random.default_rng(3), 1e-5
    dy = rng.standard_normal((B, L, D))
    seen = measure.gradients(causal_attention, *inputs, heads, upstream=rl.tensor(dy, device=device))
    arrays = [to_float64(one) for one in inputs]
    for place, name in enumerate(("x", "Wq", "Wk", "Wv", "Wo")):
        assert seen.gradients[place] is not None, f"no gradient arrives at {name}"
        along = rng.standard_normal(arrays[place].shape)
        ends = []
        for sign in (1, -1):
            moved = [array + sign * step * along if i == place else array for i, array in enumerate(arrays)]
            ends.append((causal_attention_float64(*moved, heads) * dy).sum())
        ours = (to_float64(seen.gradients[place]) * along).sum()
        slope = (ends[0] - ends[1]) / (2 * step)
        assert_close(ours, slope, rtol=1e-5, atol=1e-6, name=f"gradient of {name} along a direction")


check_gradients(2, 5, 8, 2, 4)
### BEGIN HIDDEN TESTS
check_gradients(1, 7, 6, 3, 4)
check_gradients(2, 1, 4, 1, 4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_counted_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_products(B, L, D, heads, D_h):
    seen = measure.count(causal_attention, *make_inputs(B, L, D, heads, D_h), heads)
    assert "attention" not in seen.by_op, "write attention out: rl.attention did the work"
    projections, products = 4 * B * L * D * heads * D_h, 2 * B * L * L * heads * D_h
    what = f"{seen.macs:,} MACs at B = {B}, L = {L}, D = {D}, {heads} heads of {D_h}"
    assert seen.macs == projections + products, f"{what}: four projections, scores and weighted sums, each once"


check_products(2, 16, 8, 2, 4)
### BEGIN HIDDEN TESTS
check_products(1, 40, 6, 3, 4)
check_products(3, 8, 16, 1, 8)
### END HIDDEN TESTS
