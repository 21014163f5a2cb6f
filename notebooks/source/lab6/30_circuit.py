# %% [markdown]
# # Part 3. What the layers do
#
# ## 3.1 The circuit ({points q3_1})
#
# Several layers can do together what one layer cannot. These maps show one head of each layer, from a model with two
# layers, on one row. In the first map, rings mark the token before each value. In the second map, they mark the value
# that answers each query.

# %%
two_layers = attention_maps(model_of(runs[2]["weights"]), tokens)
row = tokens[0]
before = [(place, place - 1) for place in range(1, 16, 2)]
answers = [(query, place_of_key[int(row[query])] + 1) for query in range(16, 24)]
head_1 = max((0, 1), key=lambda head: sum(two_layers[0][0, head, i, j] for i, j in before))
head_2 = max((0, 1), key=lambda head: sum(two_layers[1][0, head, i, j] for i, j in answers))
names = f"layer 1, head {head_1 + 1}", f"layer 2, head {head_2 + 1}"
maps = dict(zip(names, (two_layers[0][0, head_1], two_layers[1][0, head_2]), strict=True))
picture(maps, row, dict(zip(names, (before, answers), strict=True)), title="Two layers")

# %% [markdown]
# A single row can mislead, so measure the pattern over many rows:
#
# - `mass_on_previous(maps)`: for each head, the mean weight from a *value* of the pairs to the token right before it,
#   an array (H,). `maps` (B, H, L, L) are the maps of one layer for B rows, as `attention_maps` returns them: `maps[b,
#   h, i, j]` is the weight from token i to token j. The pairs are the first 2L/3 tokens.
# - `mass_on_answer(maps, tokens)`: for each head, the mean weight from a *query* to the value that answers it, an array
#   (H,). `tokens` is (B, L).
#
# A pattern in a map does not prove that the model uses it. So switch off one layer at a time and look at the accuracy.
# If all heads of a layer give zero, the layer adds nothing to x.
#
# - `circuit(weights)`: `weights` are those of a model with two layers, in the form in which `train_recall(2, ...)`
#   returns them. Return a dict, measured on at least 500 rows that you draw:
#     - `"value_to_key"`: the largest `mass_on_previous` among the heads of layer 1
#     - `"query_to_value"`: the largest `mass_on_answer` among the heads of layer 2
#     - `"without_layer_1"` and `"without_layer_2"`: the accuracy of the model when the heads of that layer give zero
#
# `RecallModel(2, causal_attention, device=device)` makes a model, and `model.load_state_dict(weights)` gives it these
# weights. The names in `weights` are `"layers.0.Wo"` and so on, where layer 1 has the number 0. `attention_maps(model,
# tokens)` returns a list with the maps of each layer, as NumPy arrays.


# %% nbgrader={"grade_id": "q3_1", "solution": true}
def mass_on_previous(maps):
    """Mean weight from a value to the token before it, for each head: (H,)."""
    ### BEGIN SOLUTION
    value = np.arange(1, 2 * maps.shape[-1] // 3, 2)
    return maps[:, :, value, value - 1].mean(axis=(0, 2))
    ### END SOLUTION


def mass_on_answer(maps, tokens):
    """Mean weight from a query to the value that answers it, for each head: (H,)."""
    ### BEGIN SOLUTION
    pairs = maps.shape[-1] // 3
    key, query = tokens[:, 0 : 2 * pairs : 2], tokens[:, 2 * pairs :]
    belongs = query[:, :, None] == key[:, None, :]  # (B, queries, pairs)
    on_values = maps[:, :, 2 * pairs :, 1 : 2 * pairs : 2]
    return (on_values * belongs[:, None]).sum(axis=3).mean(axis=(0, 2))
    ### END SOLUTION


def circuit(weights):
    """{"value_to_key", "query_to_value", "without_layer_1", "without_layer_2"} of a model with two layers."""
    ### BEGIN SOLUTION
    model = RecallModel(2, causal_attention, device=device)
    model.load_state_dict(weights)
    tokens, targets = recall_batch(np.random.default_rng(5), 1000)
    first, second = attention_maps(model, tokens)
    found = {
        "value_to_key": float(mass_on_previous(first).max()),
        "query_to_value": float(mass_on_answer(second, tokens).max()),
    }
    for layer in (0, 1):
        name = f"layers.{layer}.Wo"
        model.load_state_dict({**weights, name: rl.zeros_like(weights[name])})
        found[f"without_layer_{layer + 1}"] = recall_accuracy(model, tokens, targets)
    return found
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 2} rooflab={"needs": ["q2_4"], "seconds": 300}
def check_maps(maps, tokens, previous, answer, what):
    assert_close(mass_on_previous(maps), previous, rtol=1e-4, name=f"mass_on_previous {what}")
    assert_close(mass_on_answer(maps, tokens), answer, rtol=1e-4, name=f"mass_on_answer {what}")


# In these two rows the weights are 0, 1, 2, ... in the order of memory, so that you can find each of them.
two_maps, two_rows = np.arange(144.0).reshape(2, 2, 6, 6), np.array([[3, 9, 1, 8, 1, 3], [4, 8, 2, 9, 4, 2]])
check_maps(two_maps, two_rows, [49.0, 85.0], [65.0, 101.0], "for the weights 0, 1, 2, ...")


### BEGIN HIDDEN TESTS
def check_masses(B, heads, pairs):
    rng, L = measure.rng(), 3 * pairs
    tokens = recall_rows(rng, B, pairs, 2 * pairs, 2 * pairs)[0].numpy()
    maps = rng.dirichlet(np.ones(L), size=(B, heads, L)).astype(np.float32)
    previous, answer = np.zeros((2, heads))
    for row in range(B):
        for pair in range(pairs):
            previous += maps[row, :, 2 * pair + 1, 2 * pair] / (B * pairs)
            query = 2 * pairs + list(tokens[row, 2 * pairs :]).index(tokens[row, 2 * pair])
            answer += maps[row, :, query, 2 * pair + 1] / (B * pairs)
    check_maps(maps, tokens, previous, answer, f"for {B} rows, {heads} heads, {pairs} pairs")


check_masses(5, 2, 8)
check_masses(3, 2, 5)
check_masses(measure.draw(2, 3), measure.draw(4, 5), measure.draw(6, 9))
check_masses(4, 1, 1)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_1_circuit_test", "grade": true, "points": 3}
def check_found(weights, right, tolerance, what):
    found = circuit(weights)
    got = sorted(found) if isinstance(found, dict) else type(found).__name__
    assert got == sorted(right), f"circuit must return a dict with the keys {sorted(right)}, got {got}"
    for name, value in right.items():
        assert is_number(found[name]), f"circuit: {name} must be a number, got {found[name]!r}"
        said = f"circuit: {name} is {found[name]}, but the test measures {value:.3f} on rows of its own, {what}"
        assert is_near(found[name], value, 0, absolute=tolerance), said


random_weights = RecallModel(2, fused_attention, seed=2, device=device).state_dict()
known = {"value_to_key": 0.209, "query_to_value": 0.049, "without_layer_1": 0.014, "without_layer_2": 0.033}
check_found(random_weights, known, 0.015, "with a model that was not trained")
# The least for a row: 8 products of its 24 tokens with 64 x 64 weights, 4 of layer 1, and 4 of layer 2 and its maps.
macs, least = measure.count(circuit, random_weights).macs, 500 * 8 * 24 * 64 * 64
assert macs >= least, f"circuit took {macs:,} MACs, and 500 rows take {least:,} or more: draw at least 500 rows"


### BEGIN HIDDEN TESTS
def check_circuit(seed, factor):
    """A trained model loses about as much without either layer. Where Wo of layer 1 is negated, it does not."""
    weights = once(train_recall, 2, seed)["weights"]
    weights = {**weights, "layers.0.Wo": factor * weights["layers.0.Wo"]}
    model = RecallModel(2, fused_attention, device=device)
    model.load_state_dict(weights)
    tokens, targets = recall_rows(measure.rng(), 1000)
    first, second = attention_maps(model, tokens)
    rows = tokens.numpy()
    belongs = rows[:, 16:, None] == rows[:, None, 0:16:2]
    right = {
        "value_to_key": first[:, :, range(1, 16, 2), range(0, 16, 2)].mean(axis=(0, 2)).max(),
        "query_to_value": (second[:, :, 16:, 1:16:2] * belongs[:, None]).sum(axis=3).mean(axis=(0, 2)).max(),
    }
    for layer in (0, 1):
        name = f"layers.{layer}.Wv"
        model.load_state_dict({**weights, name: rl.zeros_like(weights[name])})
        right[f"without_layer_{layer + 1}"] = recall_accuracy(model, tokens, targets)
    check_found(weights, right, 0.03, f"with Wo of layer 1 times {factor}")


check_circuit(seed=0, factor=1)
check_circuit(seed=0, factor=-1)
check_circuit(seed=31, factor=1)
check_circuit(seed=31, factor=-1)
### END HIDDEN TESTS

# %%
rows = []
for layers in (2, 3, 4):
    maps = attention_maps(model_of(runs[layers]["weights"]), tokens)
    for layer, one in enumerate(maps, 1):
        masses = mass_on_previous(one), mass_on_answer(one, tokens)
        rows.append((layers, layer, *(" ".join(f"{mass:.2f}" for mass in each) for each in masses)))
display(Table(("layers", "layer", "value to the token before, by head", "query to its answer, by head"), rows))
for name, value in circuit(runs[2]["weights"]).items():
    print(f"{name:16} {value:.3f}")

# %% [markdown]
# The deeper models have the same two kinds of heads: in one layer a head attends to the token before, and in a later
# layer a head attends to the answer. Compare the accuracies without a layer with that of guessing.
#
# Describe the circuit in two or three sentences. What does the vector of a value contain after layer 1 that it did not
# contain before? What can a query in layer 2 compare itself with? Why does neither layer work without the other?

# %% [markdown] nbgrader={"grade_id": "q3_1_findings", "solution": true}
# *What I find:*

# %% [markdown]
# ## 3.2 Bonus: positions and mask ({points b3_2})
#
# A head of layer 1 finds the token *before*. How does it know which one that is? Attention by itself is a sum over all
# visible tokens, in any order. The model has two sources of order: its learned positions and its mask. Switch each of
# them off and see what happens.
#
# Write `train_variant(positions, mask, seed)`. Like `train_recall`, it trains a model with two layers for 400 steps, or
# until the accuracy is above 99 %. `positions` and `mask` are booleans. `RecallModel(..., positions=False)` has no
# positions. Without the mask every token attends to all tokens of its row, so write a version of your attention without
# the mask for it. Return a dict with `"accuracy"`, the last one that you measured, and `"weights"`.
#
# Run it for the four combinations, and then choose two letters:
#
# - `order_without_positions`: does a model without learned positions know the order of its tokens?
#     - `"a"`: No, attention without positions sees a bag of tokens.
#     - `"b"`: No, but this task can be solved in any order.
#     - `"c"`: Yes, because the embeddings learn the places.
#     - `"d"`: Yes, if a mask shows each token a different part.
# - `answers_without_mask`: without a mask a query sees the whole row, including what comes after it. Does this give its
#   answer away?
#     - `"a"`: Yes, because it sees the answers of the queries before it.
#     - `"b"`: Yes, because its own target is a token of the row.
#     - `"c"`: No, because later tokens are only more queries.
#     - `"d"`: No, because the loss counts only the last tokens of each row.


# %% nbgrader={"grade_id": "b3_2", "solution": true}
def train_variant(positions, mask, seed):
    """Train two layers with or without positions and mask, and return {"accuracy", "weights"}."""
    ### BEGIN SOLUTION
    model = RecallModel(2, causal_attention if mask else full_attention, seed=seed, positions=positions, device=device)
    tokens, targets = recall_batch(np.random.default_rng(1000 + seed), 1000)
    for step, _ in training(model, recall_batch, seed=seed):
        if step % 50 == 0:
            accuracy = recall_accuracy(model, tokens, targets)
            if accuracy > 0.99:
                break
    return {"accuracy": accuracy, "weights": model.state_dict()}
    ### END SOLUTION


### BEGIN SOLUTION
def full_attention(x, Wq, Wk, Wv, Wo, heads):
    B, L, _ = x.shape
    q, k, v = ((x @ W).reshape(B, L, heads, -1).transpose(1, 2) for W in (Wq, Wk, Wv))
    return (rl.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v).transpose(1, 2).reshape(B, L, -1) @ Wo


### END SOLUTION

# %% nbgrader={"grade_id": "b3_2_choices", "solution": true}
order_without_positions = None  # "a", "b", "c" or "d"
answers_without_mask = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
order_without_positions = "d"  # 99 % with the mask alone, 12.5 % with neither
answers_without_mask = "c"
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "b3_2_findings", "solution": true}
# *What I find:*


# %% nbgrader={"grade_id": "b3_2_test", "grade": true, "points": 3} rooflab={"needs": ["q1_2", "q2_1"], "seconds": 600}
def check_variant(positions, mask, seed, least, most):
    run, what = once(train_variant, positions, mask, seed), f"train_variant({positions}, {mask}, {seed})"
    keys = {"accuracy", "weights"}
    got = sorted(run) if isinstance(run, dict) else type(run).__name__
    assert got == sorted(keys), f"{what} must return a dict with the keys {sorted(keys)}, got {got}"
    has = "no positions" if positions else "positions"
    assert ("positions" in run["weights"]) == positions, f"{what}: the weights have {has}, expected the opposite"
    attention = partial(fused_attention, is_causal=mask)
    model = RecallModel(2, attention, positions=positions, device=device)
    model.load_state_dict(run["weights"])
    accuracy = recall_accuracy(model, *recall_rows(measure.rng(), 1000))
    assert is_number(run["accuracy"]), f"{what}: accuracy must be a number, got {run['accuracy']!r}"
    said = f"{what}: accuracy is {run['accuracy']}, but the test measures {accuracy:.3f} on rows of its own"
    assert is_near(run["accuracy"], accuracy, 0, absolute=0.03), said
    said = f"{what}: the model has {accuracy:.1%} on fresh rows, expected {least:.0%} to {most:.0%}"
    assert least <= accuracy <= most, f"{said}. Are positions and mask switched on and off as the arguments say?"


check_variant(True, True, 0, 0.9, 1)
check_variant(False, False, 0, 0, 0.2)
### BEGIN HIDDEN TESTS
check_variant(False, True, 41, 0.9, 1)
check_variant(True, False, 42, 0.5, 1)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_2_order_test", "grade": true, "points": 1}
said = f'order_without_positions must be "a", "b", "c" or "d", got {order_without_positions!r}'
assert order_without_positions in ("a", "b", "c", "d"), said
### BEGIN HIDDEN TESTS
assert_choice(
    order_without_positions,
    "d",
    a="Compare your two models without positions: one of them is far better than a bag of tokens allows.",
    b="In another order the same tokens are other pairs of keys and values, so a model needs the order to answer.",
    c="Keys and values are drawn anew for each row, so a token tells nothing about its place.",
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_2_leak_test", "grade": true, "points": 1}
said = f'answers_without_mask must be "a", "b", "c" or "d", got {answers_without_mask!r}'
assert answers_without_mask in ("a", "b", "c", "d"), said
### BEGIN HIDDEN TESTS
assert_choice(
    answers_without_mask,
    "c",
    a="The rows contain no answers, neither after the queries nor between them. Look at a row again.",
    b="Its target is a value of the pairs, which a query also sees with the mask. It must still find the right one.",
    d="Which tokens count in the loss does not decide which tokens a query attends to.",
)
### END HIDDEN TESTS

# %%
rows = []
for positions in (True, False):
    for mask in (True, False):
        accuracy = once(train_variant, positions, mask, 0)["accuracy"]
        rows.append(("yes" if positions else "no", "yes" if mask else "no", f"{accuracy:.1%}"))
Table(("positions", "mask", "accuracy"), rows)

# %% [markdown]
# Which of these models only guess, and what do they lack?
#
# ## Longer rows
#
# Does a row with more pairs need more layers? The next cell trains with more pairs. The number of steps grows with the
# number of pairs, and training stops at 99 %. A GPU runs more steps, more pairs and more layers. On a laptop's CPU this
# takes half a minute or so.


# %%
def accuracy_of(layers, pairs):
    task = {"pairs": pairs, "keys": 2 * pairs, "values": 2 * pairs}
    batch = partial(recall_batch, **task)
    model = RecallModel(layers, causal_attention, device=device, **task)
    tokens, targets = batch(np.random.default_rng(1000), 500)
    for step, _ in training(model, batch, steps=max(200, some_steps * pairs)):
        if step % 50 == 0 and recall_accuracy(model, tokens, targets) > 0.99:
            break
    return recall_accuracy(model, tokens, targets)


some_layers, some_pairs, some_steps = ((1, 2, 3, 4), (16, 32, 64), 50) if device == "cuda" else ((1, 2), (4, 16), 25)
found = {(layers, 8): float(np.mean(accuracies[layers])) for layers in some_layers}
found |= {(layers, pairs): accuracy_of(layers, pairs) for layers in some_layers for pairs in some_pairs}
rl.plots.plot_accuracy_grid(found, title="Accuracy", note=f"8 pairs: guessing scores {accuracy_seen:.1%}")

# %% [markdown]
# Compare the columns: does the fewest number of layers that solves the task depend on the number of pairs?
#
# ## What a training step costs
#
# These models are tiny. Is a step limited by its arithmetic? The next cell counts the launches and times a step.

# %%
rows = []
for layers in (1, 2, 3, 4):
    steps = training(RecallModel(layers, causal_attention, device=device), recall_batch)
    next(steps)
    with rl.count() as c:
        next(steps)
    ms = rl.latency(next, steps, warmup=2, repeat=20, device=device).median_ms
    each = (f"{c.macs / 1e6:.0f}", c.launches, f"{ms:.1f}", f"{1e3 * ms / c.launches:.1f}")
    rows.append((layers, *each, f"{2e-9 * c.macs / ms:.3f}"))
Table(("layers", "million MACs per step", "launches", "ms per step", "µs per launch", "TFLOP/s"), rows)

# %% [markdown]
# Compare the last column with the peak of your machine (`rooflab machine` measures it). Each launch does very little
# work. On a GPU it ends before the host has issued the next one, so the launches limit the step. Labs 1 and 3 show what
# helps: fused kernels, a compiler, and graphs. Which kernels take the most time in a step with four layers?

# %%
with rl.profile() as prof:
    next(steps)
print(prof.key_averages().table(row_limit=8))

# %% [markdown]
# `rooflab train recall --num-layers 2 --pairs 16` trains larger tasks in a terminal, with the library's own attention.
