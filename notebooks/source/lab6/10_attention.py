# %% [markdown]
# # Part 1. Causal attention
#
# ## 1.1 The mask ({points q1_1})
#
# In a causal model a token attends to itself and to the tokens before it. Write two functions with `rl` operations:
#
# - `causal_mask(L_q, L_kv)`: a boolean tensor (L_q, L_kv) on `device`, True where query i may see key j. There may be
#   more keys than queries. The last query always belongs to the same token as the last key, so query i sees the keys j
#   ≤ i + L_kv - L_q.
# - `masked_softmax(scores, visible)`: the attention weights of `scores` (..., L_q, L_kv), in their dtype. `visible` is
#   any mask (L_q, L_kv) that shows at least one key to each query. Each row sums to 1, and a weight is exactly 0 where
#   `visible` is False. A hidden score must not change any weight, however large it is. Do not write into `scores`.
#
# You may use `rl.arange`, `rl.where` and `rl.softmax`, which work as in PyTorch.
#
# Then choose a letter for `mask_is_needed`. Where is such a mask needed?
#
# - `"a"`: only in training, where it hides the tokens to predict
# - `"b"`: where many positions are computed at once
# - `"c"`: only when text is generated, one token after the other
# - `"d"`: where time is short, because it saves half of the products
#
# <details><summary>Hint: where the mask acts</summary>
#
# A score of -inf becomes a weight of 0, and the other weights of its row still sum to 1. If you set a weight to 0 after
# the softmax, the hidden score has already changed the other weights of its row.
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
def check_mask(L_q, L_kv, right):
    mask = causal_mask(L_q, L_kv)
    got = f"{mask.dtype} tensor" if isinstance(mask, rl.Tensor) else type(mask).__name__
    said = f"causal_mask({L_q}, {L_kv}) must return a boolean rl tensor, got a {got}"
    assert isinstance(mask, rl.Tensor) and mask.dtype == "bool", said
    assert_close(mask, np.array(right, bool), name=f"causal_mask({L_q}, {L_kv}), with 1 for True")


check_mask(4, 4, [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
check_mask(2, 5, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
check_mask(2, 3, [[1, 1, 0], [1, 1, 1]])
check_mask(1, 3, [[1, 1, 1]])
### BEGIN HIDDEN TESTS
L = measure.draw(5, 12)
for L_q, L_kv in [(L, L), (measure.draw(2, L - 2), L), (1, 1)]:
    check_mask(L_q, L_kv, np.tri(L_q, L_kv, L_kv - L_q))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_1_weights_test", "grade": true, "points": 2}
def check_weights(scores, visible, exact, beyond, dtype="float32"):
    shape, found = scores.shape, []
    for hidden in (0.0, beyond):
        given = rl.tensor(np.where(visible, scores, hidden), dtype=dtype, device=device)
        seen = measure.call(masked_softmax, given, rl.tensor(visible, device=device))
        made = seen.value
        said = f"masked_softmax must return an rl tensor, got a {type(made).__name__}"
        assert isinstance(made, rl.Tensor), said
        said = f"masked_softmax: the scores are {dtype}, and the weights are {made.dtype}: keep the dtype of the scores"
        assert made.dtype == dtype, said
        assert not seen.changed, "masked_softmax wrote into its arguments: compute a new tensor"
        found.append(to_float64(made))
        seen_scores = scores[..., visible]
        between = f"from {seen_scores.min():.3g} to {seen_scores.max():.3g} where visible, and {hidden:g} where not"
        name = f"masked_softmax of scores {shape}, {between}"
        if made.shape == shape:
            largest = np.abs(found[-1][..., ~visible]).max(initial=0)
            said = (
                f"{name}: a hidden weight is {largest:.3g}, expected exactly 0: is its score -inf before the softmax?"
            )
            assert largest == 0, said
        assert_close(made, exact, rtol=1e-5, atol=1e-6, name=name)
    off = np.abs(found[0] - found[1]).max()
    said = f"masked_softmax: hidden scores of {beyond:g} instead of 0 changed a weight by {off:.3g}, expected no change"
    assert off == 0, said


given, visible = rl.tensor(measure.rng().standard_normal((3, 8, 8))), rl.tensor(np.tri(8, dtype=bool))
made = measure.count(masked_softmax, given.to(device), visible.to(device)).value
assert isinstance(made, rl.Tensor), f"masked_softmax must return an rl tensor, got a {type(made).__name__}"
exact = rl.softmax(rl.where(visible, given.double(), float("-inf")), dim=-1)
assert_close(made, exact, rtol=1e-5, atol=1e-6, name="masked_softmax of scores (3, 8, 8) and a causal mask")
scores, visible = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 3.0]]), np.array([[True, True, False], [True, True, True]])
weights = np.array([[0.26894142, 0.73105858, 0.0], [0.09003057, 0.24472847, 0.66524096]])
check_weights(scores, visible, weights, 500.0)
check_weights(np.stack([scores, scores + 7]), visible, np.stack([weights, weights]), -500.0, "float64")
apart = np.array([[60.0], [-60.0]])
check_weights(scores + apart, visible, weights, 500.0)
# What is seen is far below 0, also the lowest score of all, and what is hidden is far above.
lowest = -1e35 * np.array([[4, 1, 1], [2, 1, 1], [3, 2, 1]])
check_weights(lowest, np.tri(3, dtype=bool), np.eye(3), 1e35)
visible = np.array([[False, True, True], [True, False, True]])  # any mask, not only a causal one
weights = np.array([[0.0, 0.11920292, 0.88079708], [0.11920292, 0.0, 0.88079708]])
check_weights(scores, visible, weights, 20.0)


### BEGIN HIDDEN TESTS
def check_drawn(shape, beyond):
    visible = np.tri(*shape[-2:], shape[-1] - shape[-2], dtype=bool)
    exact = np.exp(scores := measure.rng().standard_normal(shape)) * visible
    check_weights(scores, visible, exact / exact.sum(-1, keepdims=True), beyond)


L = measure.draw(5, 9)
check_drawn((2, 4, 4), 500.0)
check_drawn((2, 3, L, L), 3e4)
check_drawn((2, measure.draw(2, L - 2), L), 20.0)
check_drawn((1, 1, 1), 0.0)
lower = 10.0 ** measure.draw(4, 34)
check_weights(lower * lowest / 1e35, np.tri(3, dtype=bool), np.eye(3), lower)
visible = measure.rng().random((4, 7)) < 0.5
visible[:, measure.draw(0, 6)] = True
exact = np.exp(scores := measure.rng().standard_normal((2, 4, 7))) * visible
check_weights(scores, visible, exact / exact.sum(-1, keepdims=True), 300.0)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_1_choice_test", "grade": true, "points": 1}
assert mask_is_needed in ("a", "b", "c", "d"), f'mask_is_needed must be "a", "b", "c" or "d", got {mask_is_needed!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    mask_is_needed,
    "b",
    a="A model that reads a prompt also computes all positions at once. Would they see later tokens without a mask?",
    c="The new token is the last one. It may see every token, so its row of the mask hides nothing.",
    d="All scores are computed first, and then some are masked. Skipping hidden products is a separate step, in Lab 3.",
)
### END HIDDEN TESTS

# %% [markdown]
# Why not set the weights to zero after the softmax? The table compares the two ways. The visible scores are the same in
# all rows. Only the hidden score differs, and it should have no effect.

# %%
visible = causal_mask(2, 3)
rows = []
for hidden in (0.0, 4.0):
    scores = rl.tensor([[1.0, 2.0, hidden], [1.0, 2.0, 3.0]], device=device)
    before = masked_softmax(scores, visible)[0].tolist()
    after = (rl.softmax(scores, -1) * visible.float())[0].tolist()
    for name, weights in (("before the softmax", before), ("after the softmax", after)):
        rows.append((f"{hidden:g}", name, *(f"{weight:.3f}" for weight in weights), f"{sum(weights):.3f}"))
Table(("hidden score", "mask is applied", "weight 1", "weight 2", "weight 3", "sum"), rows)

# %% [markdown]
# With the mask after the softmax, the weights depend on a token that should be invisible, and they do not sum to 1.
#
# ## 1.2 Attention with heads ({points q1_2})
#
# Write `causal_attention(x, Wq, Wk, Wv, Wo, heads)`, the self-attention of x (B, L, D) with several heads. It returns y
# (B, L, D). With H = `heads`, Wq, Wk and Wv are (D, H·D_h), and Wo is (H·D_h, D):
#
# $$Q = x W_q, \quad K = x W_k, \quad V = x W_v, \qquad
# \text{head}_h = \text{softmax}\!\left(\frac{Q_h K_h^T}{\sqrt{D_h}} + \text{mask}\right) V_h, \qquad
# y = [\text{head}_1, \dots, \text{head}_H]\, W_o.$$
#
# Head 1 takes the first D_h columns of Q, K and V, head 2 the next D_h columns, and so on. Each head has attention
# weights of its own, so a model with two heads can look at two places at once.
#
# Use `rl` operations and your functions of 1.1, but not `rl.attention`. rooflab records the operations that you call
# and computes the gradients from them. Your function will train the models of Part 2.
#
# <details><summary>Hint: all heads in one product</summary>
#
# `.reshape(B, L, heads, -1).transpose(1, 2)` turns (B, L, H·D_h) into (B, H, L, D_h). `@` multiplies the last two
# dimensions for each row of the batch and each head, and `.mT` swaps the last two dimensions. A reshape without the
# transpose would mix tokens with heads.
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
def attended(*inputs):
    """y of causal_attention, which rl.attention did not compute."""
    seen = measure.count(causal_attention, *inputs)
    y = seen.value
    assert isinstance(y, rl.Tensor), f"causal_attention must return an rl tensor, got a {type(y).__name__}"
    assert "attention" not in seen.by_op, "causal_attention called rl.attention: write the operations out instead"
    return y


def check_attention(B, L, D, heads, D_h):
    inputs = make_inputs(B, L, D, heads, D_h)
    exact = fused_attention(*(one.cpu().to("float64") for one in inputs), heads)  # the library's, in fp64
    what = f"y of causal_attention at B = {B}, L = {L}, D = {D} with {heads} heads of size {D_h}"
    assert_close(attended(*inputs, heads), exact, rtol=1e-5, atol=1e-5, name=what)


check_attention(2, 6, 8, 2, 4)
check_attention(3, 5, 6, 3, 4)
check_attention(2, 1, 8, 2, 4)
### BEGIN HIDDEN TESTS
B, heads, D_h = measure.draw(1, 2), measure.draw(3, 4), measure.draw(5, 6)
L, D = measure.draw(7, 11), measure.draw(12, 14)  # no two of the sizes are equal
check_attention(B, 2 * L, D, heads, D_h)
check_attention(2, L, D, 1, D_h)
check_attention(4, 2, 4, 2, 8)
check_attention(1, 1, 6, 3, 2)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_causal_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_causal(B, L, D, heads, D_h, j):
    x, *weights = make_inputs(B, L, D, heads, D_h)
    other = to_float64(x)
    other[:, j] += 3.0
    before = to_float64(attended(x, *weights, heads))
    after = to_float64(attended(rl.tensor(other, dtype="float32", device=device), *weights, heads))
    changed = (before != after).any(axis=(0, 2))
    early, late = np.flatnonzero(changed[:j]).tolist(), (j + np.flatnonzero(~changed[j:])).tolist()
    said = f"causal_attention: a change of token {j} changed y at the earlier tokens {early}, expected no change there"
    assert not early, f"{said}: does the mask hide later tokens?"
    said = f"causal_attention: a change of token {j} did not change y at the tokens {late}"
    assert not late, f"{said}: they should attend to it"


check_causal(2, 6, 6, 2, 4, j=3)
check_causal(1, 6, 8, 2, 4, j=5)
### BEGIN HIDDEN TESTS
L = measure.draw(8, 13)
check_causal(2, L, 6, 3, 4, j=1)
check_causal(2, L, 8, 1, 8, j=measure.draw(2, L - 2))
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_gradients_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_gradients(B, L, D, heads, D_h):
    inputs = make_inputs(B, L, D, heads, D_h, "float64")
    dy = rl.tensor(measure.rng().standard_normal((B, L, D)), device=device)
    seen = measure.gradients(causal_attention, *inputs, heads, upstream=dy)
    assert "attention" not in seen.forward.by_op, "causal_attention called rl.attention: write the operations out"
    inputs = [one.requires_grad_() for one in inputs]
    exact = rl.autograd.grad(fused_attention(*inputs, heads), inputs, dy)  # the library's
    for name, got, right in zip(("x", "Wq", "Wk", "Wv", "Wo"), seen.gradients, exact, strict=True):
        said = f"causal_attention: {name} gets no gradient. Compute y from it with rl operations only"
        assert got is not None, said
        assert_close(got, right, rtol=1e-7, atol=1e-9, name=f"the gradient of {name}")


check_gradients(2, 5, 6, 2, 4)
### BEGIN HIDDEN TESTS
check_gradients(1, measure.draw(6, 9), measure.draw(10, 12), 3, measure.draw(4, 5))
check_gradients(2, 1, 4, 1, 4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q1_2_counted_test", "grade": true, "points": 2} rooflab={"needs": ["q1_1"]}
def check_products(B, L, D, heads, D_h):
    inputs = make_inputs(B, L, D, heads, D_h)
    seen = measure.count(causal_attention, *inputs, heads)
    assert isinstance(seen.value, rl.Tensor), "causal_attention must return an rl tensor"
    exact = fused_attention(*(one.cpu().to("float64") for one in inputs), heads)
    assert_close(seen.value, exact, rtol=1e-5, atol=1e-5, name="causal_attention, when its products are counted")
    assert "attention" not in seen.by_op, "causal_attention called rl.attention: write the operations out instead"
    projections, products = 4 * B * L * D * heads * D_h, 2 * B * L * L * heads * D_h
    what = f"causal_attention at B = {B}, L = {L}, D = {D} with {heads} heads of size {D_h} took {seen.macs:,} MACs"
    said = (
        f"{what}, expected {projections + products:,}: four projections, the scores, and the weighted sums, each once"
    )
    assert seen.macs == projections + products, said


check_products(2, 16, 6, 2, 4)
### BEGIN HIDDEN TESTS
check_products(1, measure.draw(30, 50), measure.draw(6, 9), 3, measure.draw(4, 5))
check_products(3, measure.draw(6, 11), measure.draw(12, 20), 1, 8)
### END HIDDEN TESTS
