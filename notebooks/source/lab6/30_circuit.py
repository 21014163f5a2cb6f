# %% [markdown]
# # Part 3. What the layers do
#
# ## 3.1 The circuit ({points q3_1})
#
# Two layers succeed, so they must do something together that one cannot. These are two heads of a model of two layers,
# on one row. In the first map the rings mark the token before each value, and in the second the value that answers each
# query.

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
# A single row may mislead. Measure it over many:
#
# - `mass_on_previous(maps)`: for each head, the mean weight from a *value* of the pairs to the token right before it.
#   `maps` is (B, H, L, L) of one layer, as `attention_maps` gives it. The pairs are the first 2L/3 tokens. Return (H,).
# - `mass_on_answer(maps, tokens)`: for each head, the mean weight from a *query* to the value that answers it. `tokens`
#   is (B, L). Return (H,).
#
# A pattern in a map does not prove that the model uses it. So take the layers away, one at a time. With all heads of a
# layer set to zero, the layer adds nothing to x.
#
# - `circuit(weights)`: `weights` are those of a model of two layers, from `train_recall`. Return a dict, measured on at
#   least 500 rows of your own:
#     - `"value_to_key"`: `mass_on_previous` in layer 1, of the head where it is largest;
#     - `"query_to_value"`: `mass_on_answer` in layer 2, of the head where it is largest;
#     - `"without_layer_1"`, `"without_layer_2"`: the accuracy of the model with the heads of that layer set to zero.
#
# `RecallModel(2, causal_attention, device=device)` makes a model, and `model.load_state_dict(weights)` gives it these
# weights. `weights` has names such as `"layers.0.Wo"`. `attention_maps(model, tokens)` returns the maps of every layer
# as NumPy arrays.


# %% nbgrader={"grade_id": "q3_1", "solution": true}
def mass_on_previous(maps):
    """From each value of the pairs to the token before it: the mean weight of each head, (H,)."""
    ### BEGIN SOLUTION
    value = np.arange(1, 2 * maps.shape[-1] // 3, 2)
    return maps[:, :, value, value - 1].mean(axis=(0, 2))
    ### END SOLUTION


def mass_on_answer(maps, tokens):
    """From each query to the value that answers it: the mean weight of each head, (H,)."""
    ### BEGIN SOLUTION
    pairs = maps.shape[-1] // 3
    key, query = tokens[:, 0 : 2 * pairs : 2], tokens[:, 2 * pairs :]
    belongs = query[:, :, None] == key[:, None, :]  # (B, queries, pairs)
    on_values = maps[:, :, 2 * pairs :, 1 : 2 * pairs : 2]
    return (on_values * belongs[:, None]).sum(axis=3).mean(axis=(0, 2))
    ### END SOLUTION


def circuit(weights):
    """{"value_to_key", "query_to_value", "without_layer_1", "without_layer_2"} of a model of two layers."""
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
def check_masses(B, heads, pairs, seed):
    rng, L = np.random.default_rng(seed), 3 * pairs
    tokens = recall_rows(rng, B, pairs, 2 * pairs, 2 * pairs)[0].numpy()
    maps = rng.dirichlet(np.ones(L), size=(B, heads, L)).astype(np.float32)
    previous, answer = np.zeros((2, heads))
    for row in range(B):
        for pair in range(pairs):
            previous += maps[row, :, 2 * pair + 1, 2 * pair] / (B * pairs)
            query = 2 * pairs + list(tokens[row, 2 * pairs :]).index(tokens[row, 2 * pair])
            answer += maps[row, :, query, 2 * pair + 1] / (B * pairs)
    what = f"of {heads} heads, {pairs} pairs"
    assert_close(mass_on_previous(maps), previous, rtol=1e-4, name=f"mass_on_previous {what}")
    assert_close(mass_on_answer(maps, tokens), answer, rtol=1e-4, name=f"mass_on_answer {what}")


check_masses(5, 2, 8, seed=0)
### BEGIN HIDDEN TESTS
check_masses(3, 4, 5, seed=1)
check_masses(4, 1, 1, seed=2)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_1_circuit_test", "grade": true, "points": 3}
def check_circuit(seed):
    weights = once(train_recall, 2, seed)["weights"]
    found, keys = circuit(weights), {"value_to_key", "query_to_value", "without_layer_1", "without_layer_2"}
    assert isinstance(found, dict) and set(found) == keys, f"circuit: the keys are {sorted(keys)}"
    assert all(is_number(value) for value in found.values()), "circuit: all four are numbers"
    model = RecallModel(2, fused_attention, device=device)
    model.load_state_dict(weights)
    tokens, targets = recall_rows(np.random.default_rng(10**6 + seed), 1000)
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
    for name, value in right.items():
        off = f"circuit: {name} is {found[name]:.3f}, not what the test measures on rows of its own"
        assert abs(found[name] - value) <= 0.03, off


check_circuit(seed=0)
### BEGIN HIDDEN TESTS
check_circuit(seed=31)
### END HIDDEN TESTS

# %%
rows = []
for layers in (2, 3, 4):
    maps = attention_maps(model_of(runs[layers]["weights"]), tokens)
    for layer, one in enumerate(maps, 1):
        masses = mass_on_previous(one), mass_on_answer(one, tokens)
        rows.append((layers, layer, *(" ".join(f"{mass:.2f}" for mass in each) for each in masses)))
display(Table(("layers", "layer", "value to the token before, by head", "query to its value, by head"), rows))
for name, value in circuit(runs[2]["weights"]).items():
    print(f"{name:16} {value:.3f}")

# %% [markdown]
# Describe the circuit in two or three sentences. What does a value's vector hold after layer 1 that it did not hold
# before? What can a query of layer 2 compare with? Why does neither layer work without the other?

# %% [markdown] nbgrader={"grade_id": "q3_1_findings", "solution": true}
# *What I find:*

# %% [markdown]
# ## 3.2 Bonus: positions and mask ({points b3_2})
#
# Layer 1 has to find the token *before*. How does it know which one that is? Attention by itself takes a sum over all
# visible tokens, in whatever order they come. The model has two sources of order: its learned positions, and its mask.
# Turn each of them off.
#
# Write `train_variant(positions, mask, seed)`. It trains a model of two layers, as `train_recall` does, with 400 steps
# or until 99 %. `RecallModel(..., positions=False)` has no positions. Without the mask every token sees all tokens of
# its row, so you need your attention without the mask. Return a dict with `"accuracy"`, the last one, and `"weights"`.
#
# Run it four times, and then choose:
#
# - `order_without_positions`: does a model without learned positions know the order of its tokens?
#     - `"a"`: No, attention without positions sees a bag of tokens.
#     - `"b"`: No, but this task can be solved in any order.
#     - `"c"`: Yes, because the embeddings learn the places.
#     - `"d"`: Yes, if a mask shows each token another past.
# - `answers_without_mask`: without a mask a query sees the whole row, and what comes after it too. Does this give its
#   answer away?
#     - `"a"`: Yes, because it sees the answers of the queries before it.
#     - `"b"`: Yes, because its own target is a token of the row.
#     - `"c"`: No, because later tokens are only more queries.
#     - `"d"`: No, because the loss counts only the last tokens of each row.


# %% nbgrader={"grade_id": "b3_2", "solution": true}
def train_variant(positions, mask, seed):
    """{"accuracy", "weights"} of two layers, with or without positions and mask."""
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
    run, what = once(train_variant, positions, mask, seed), f"positions {positions}, mask {mask}, seed {seed}"
    keys = {"accuracy", "weights"}
    assert isinstance(run, dict) and set(run) == keys, f"train_variant: the keys are {sorted(keys)}"
    assert ("positions" in run["weights"]) == positions, f"{what}: the weights say otherwise of the positions"
    attention = partial(fused_attention, is_causal=mask)
    model = RecallModel(2, attention, positions=positions, device=device)
    model.load_state_dict(run["weights"])
    accuracy = recall_accuracy(model, *recall_rows(np.random.default_rng(10**6 + seed), 1000))
    assert is_number(run["accuracy"]), f"{what}: accuracy is a number"
    close = abs(run["accuracy"] - accuracy) <= 0.03
    assert close, f"{what}: accuracy {run['accuracy']:.3f} is not what the test measures on rows of its own"
    assert least <= accuracy <= most, f"{what}: {accuracy:.1%} on fresh rows. Is this switched on and off as asked?"


check_variant(True, True, 0, 0.9, 1)
check_variant(False, False, 0, 0, 0.2)
### BEGIN HIDDEN TESTS
check_variant(False, True, 41, 0.9, 1)
check_variant(True, False, 42, 0.5, 1)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_2_order_test", "grade": true, "points": 1}
assert order_without_positions in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    order_without_positions,
    "d",
    a="Compare your two models without positions: one of them is far better than a bag of tokens allows.",
    b="In another order of its tokens a row pairs other keys with other values. Your models show who can tell.",
    c="Keys and values are drawn anew for each row, so a token says nothing of its place.",
)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_2_leak_test", "grade": true, "points": 1}
assert answers_without_mask in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    answers_without_mask,
    "c",
    a="The rows hold no answers, neither behind the queries nor between them. Look at one again.",
    b="Its target stands among the pairs, and the mask shows those to it as well. It must still find which one it is.",
    d="What is counted in the loss says nothing of what a token may see.",
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
# ## Longer rows
#
# Does a row with more pairs need more layers? The steps below grow with the number of pairs, and training stops at
# 99 %. A GPU takes more steps, pairs and layers.


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
rl.plots.plot_accuracy_grid(found, title="Accuracy", note="guessing among the values shown: 1 / pairs")

# %% [markdown]
# ## What a training step costs
#
# These models are tiny. Does a step take long because of its arithmetic? Count the launches, and divide.

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
Table(("layers", "million MACs a step", "launches", "ms a step", "µs a launch", "TFLOP/s"), rows)

# %% [markdown]
# Compare the last column with what your machine can do (`rooflab machine`). Each launch has very little to do. On a GPU
# it ends before the host has started the next one, so the host is the limit. Labs 1 and 3 have the remedies: fused
# kernels, a compiler, and graphs. Which kernels take the time of a step with four layers?

# %%
with rl.profile() as prof:
    next(steps)
print(prof.key_averages().table(row_limit=8))

# %% [markdown]
# `rooflab train recall --num-layers 2 --pairs 16` trains larger tasks from the command line, with the library's own
# attention.
