# %% [markdown]
# ## 2.4 Train the models ({points q2_4})
#
# `training(model, recall_batch, seed=seed, steps=steps)` trains `model` on 64 fresh rows per step. It uses AdamW, a
# learning rate with warm-up and decay, and gradients clipped to a norm of 1. It is a generator: each turn of `for step,
# loss in training(...)` does one step, and gives its number (from 1) and its loss.
#
# Write `train_recall(layers, seed, steps=400, every=50)`:
#
# 1. Make `RecallModel(layers, causal_attention, seed=seed, device=device)`, with *your* attention.
# 2. Train it on *your* `recall_batch`.
# 3. After every `every` steps, measure `recall_accuracy(model, tokens, targets)` on 1000 rows that are not used in
#    training. Always use the same ones: `recall_batch(np.random.default_rng(1000 + seed), 1000)`. An answer counts as
#    right if the target is the most likely of all 32 tokens. You may stop early, as soon as this accuracy is above 99
#    %.
# 4. Return a dict:
#     - `"losses"`: a list with the loss of each step
#     - `"accuracies"`: the accuracy after each step at which you measured, `{50: 0.08, 100: 0.09, ...}`
#     - `"accuracy"`: the *last* of these accuracies. The best of many measurements would be too optimistic.
#     - `"weights"`: `model.state_dict()` at the end
#
# The test trains your models with other seeds, and measures their accuracy on rows of its own. It takes about a minute
# on a slow machine.


# %% nbgrader={"grade_id": "q2_4", "solution": true}
def train_recall(layers, seed, steps=400, every=50):
    """Train one model and return {"losses", "accuracies", "accuracy", "weights"}."""
    ### BEGIN SOLUTION
    model = RecallModel(layers, causal_attention, seed=seed, device=device)
    tokens, targets = recall_batch(np.random.default_rng(1000 + seed), 1000)
    losses, accuracies = [], {}
    for step, loss in training(model, recall_batch, seed=seed, steps=steps):
        losses.append(loss)
        if step % every == 0:
            accuracies[step] = recall_accuracy(model, tokens, targets)
            if accuracies[step] > 0.99:
                break
    last = accuracies[max(accuracies)]
    return {"losses": losses, "accuracies": accuracies, "accuracy": last, "weights": model.state_dict()}
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_4_test", "grade": true, "points": 2} rooflab={"needs": ["q1_2", "q2_1"], "seconds": 600}
def scored(layers, weights, tokens, targets):
    """The accuracy of a model with these weights, computed with the library's attention."""
    model = RecallModel(layers, fused_attention, device=device)
    model.load_state_dict(weights)
    return recall_accuracy(model, tokens, targets)


def check_report(layers, seed, steps, every):
    what = f"train_recall({layers}, {seed}, {steps}, {every})"
    seen = measure.count(train_recall, layers, seed, steps, every)
    assert "attention" not in seen.by_op, f"{what} called rl.attention: train with your own causal_attention"
    run, keys = seen.value, {"losses", "accuracies", "accuracy", "weights"}
    got = sorted(run) if isinstance(run, dict) else type(run).__name__
    assert got == sorted(keys), f"{what} must return a dict with the keys {sorted(keys)}, got {got}"
    odd = [loss for loss in run["losses"] if not (is_number(loss) and 1 < loss < 8)]
    assert not odd, f"{what}: losses has {odd[:3]}, expected the loss of each step, a number between 1 and 8"
    said = f"{what}: losses has {len(run['losses'])} numbers, expected {steps}, one per step"
    said += f" before an accuracy above 0.99; the last accuracy is {run['accuracy']}"
    assert len(run["losses"]) == steps, said
    model = RecallModel(layers, fused_attention, seed=seed, device=device)
    _, first = next(training(model, recall_batch, seed=seed, steps=steps))
    # Rounding moves the first loss by less than 1e-5. A wrong scale or mask, or mixed heads, move it by 2e-3 or more.
    said = f"{what}: the first loss is {run['losses'][0]}, expected {first:.4f}. Do RecallModel and training get"
    assert is_near(run["losses"][0], first, 0, absolute=1e-3), f"{said} seed={seed}, and is causal_attention right?"
    said = f"{what}: accuracies must be a dict from step to accuracy, got a {type(run['accuracies']).__name__}"
    assert isinstance(run["accuracies"], dict), said
    measured, right = sorted(run["accuracies"]), list(range(every, steps + 1, every))
    assert measured == right, f"{what}: accuracies has the steps {measured}, expected {right}"
    odd = [value for value in (run["accuracy"], *run["accuracies"].values()) if not is_number(value)]
    assert not odd, f"{what}: each accuracy must be a number, got {odd[:3]}"
    last = run["accuracies"][steps]
    said = f"{what}: accuracy is {run['accuracy']}, expected the accuracy of the last measurement, {last}"
    assert run["accuracy"] == last, said
    rows = recall_batch(np.random.default_rng(1000 + seed), 1000)
    right = scored(layers, run["weights"], *rows)
    said = f"{what}: accuracy is {run['accuracy']}, but the weights give {right:.4f}"
    said += f" on recall_batch(np.random.default_rng({1000 + seed}), 1000)"
    assert is_near(run["accuracy"], right, 0, absolute=1e-3), said


check_report(1, 3, 40, 5)
check_report(1, 6, 2, 1)
check_report(2, 4, 30, 10)
### BEGIN HIDDEN TESTS
seed, every = measure.draw(1000, 10**6), measure.draw(3, 5)
check_report(1, seed, 15 * every, every)
check_report(2, seed + 1, 6 * every, every)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_4_trained_test", "grade": true, "points": 4}
def check_trained(layers, seed, least=0.9, most=1.0, every=50):
    run = once(train_recall, layers, seed, *([] if every == 50 else [400, every]))
    steps, last = len(run["losses"]), run["accuracy"]
    said = f"train_recall({layers}, {seed}, 400, {every}) stopped after {steps} steps at an accuracy of {last}"
    assert steps == 400 or last > 0.99, f"{said}: go on to step 400, or until it is above 0.99"
    assert sorted(run["accuracies"]) == list(range(every, steps + 1, every)), f"{said}: measure every {every} steps"
    accuracy = scored(layers, run["weights"], *recall_rows(measure.rng(), 1000))
    what = f"train_recall({layers}, {seed}) gave a model with an accuracy of {accuracy:.1%} on fresh rows"
    said = f"{what}, expected {least:.0%} to {most:.0%}: check causal_attention and recall_batch"
    assert least <= accuracy <= most, said


check_trained(3, seed=0)
check_trained(2, seed=5, every=5)
### BEGIN HIDDEN TESTS
check_trained(1, seed=21, least=0, most=0.2)
check_trained(2, seed=22, every=5)
check_trained(4, seed=24)
### END HIDDEN TESTS

# %% [markdown]
# Now train models with 1 to 4 layers. The figure is drawn again after each model. The dashed lines are the loss and the
# accuracy of the second player of 2.2. `once(train_recall, 3, 0)` returns what `train_recall(3, 0)` returns, but it
# does not train again what it has trained before.


# %%
def curves():
    names = {layers: f"{layers} layer" + "s" * (layers > 1) for layers in runs}
    losses = {names[layers]: run["losses"] for layers, run in runs.items()}
    accuracies = {names[layers]: run["accuracies"] for layers, run in runs.items()}
    title = "8 pairs: loss and accuracy"
    return rl.plots.plot_learning(losses, accuracies, guess=(loss_seen, accuracy_seen), title=title)


runs = {1: once(train_recall, 1, 0)}
figure = display(curves(), display_id=True)
for layers in (2, 3, 4):
    runs[layers] = once(train_recall, layers, 0)
    figure.update(curves())

# %% [markdown]
# One training run is not enough. Is the result the same with other seeds, which change the initial weights and all
# rows?

# %%
accuracies = {layers: [run["accuracy"]] for layers, run in runs.items()}
for layers in (1, 2):
    accuracies[layers] += [once(train_recall, layers, seed)["accuracy"] for seed in (1, 2)]
note = "1000 fresh rows; 1 and 2 layers: three seeds each"
rl.plots.plot_accuracy_by_layers(accuracies, guess=accuracy_seen, bar=0.9, title="The jump", note=note)

# %% [markdown]
# - `fewest_layers`: the smallest number of layers that reaches an accuracy of 90 %

# %% nbgrader={"grade_id": "q2_4_fewest", "solution": true}
fewest_layers = None
### BEGIN SOLUTION
fewest_layers = 2
### END SOLUTION

# %% nbgrader={"grade_id": "q2_4_fewest_test", "grade": true, "points": 2}
said = f"fewest_layers must be 1, 2, 3 or 4, got {fewest_layers!r}"
assert is_count(fewest_layers) and 1 <= fewest_layers <= 4, said
### BEGIN HIDDEN TESTS
said = f"fewest_layers is not {fewest_layers}: which models in your figure reach 90 % in their last measurement?"
assert fewest_layers == 2, said
### END HIDDEN TESTS

# %% [markdown]
# Look at the losses. A model first comes down to the loss of the second player of 2.2: it guesses among the values of
# the row. If it gets further, it stays there for a while, and then falls to nearly 0 within a few dozen steps. Such a
# model does not improve gradually: it finds the missing mechanism all at once.
#
# ## 2.5 Why one layer fails ({points q2_5})
#
# Where does the single layer look? This map shows its attention weights on one row, as a mean over its two heads. Each
# line of the map is a token, and each column is a token that it looks at. A darker square is a larger weight. Rings
# mark the key that equals the query, and the value after this key. `model_of(weights)` makes a model again from the
# weights of `train_recall`.


# %% tags=["setup"]
def model_of(weights):
    """A model with the weights that train_recall returned."""
    layers = len({name.split(".")[1] for name in weights if name.startswith("layers.")})
    model = RecallModel(layers, causal_attention, device=device)
    model.load_state_dict(weights)
    return model


# %%
def picture(maps, tokens, marks=None, **more):
    """Draw attention weights {title: (L, L)} of one row of tokens."""
    kinds = ["key", "value"] * 8 + ["query"] * 8
    return rl.plots.plot_attention_maps(maps, shown(tokens), kinds, marks, **more)


tokens, targets = recall_batch(np.random.default_rng(7), 1000)
one_layer = attention_maps(model_of(runs[1]["weights"]), tokens)[0]  # (rows, heads, 24, 24)
place_of_key = {int(key): place for place, key in enumerate(tokens[0]) if place < 16}
rings = [(query, place_of_key[int(tokens[0, query])] + one) for query in range(16, 24) for one in (0, 1)]
picture({"one layer, mean of the heads": one_layer[0].mean(0)}, tokens[0], {"one layer, mean of the heads": rings})

# %% [markdown]
# Each query spreads its attention over all values, and the ringed value gets no more than the others. Give two answers:
#
# - `mass_on_each_value`: the mean weight that a query gives to one of the 8 values, over rows, heads, queries and
#   values. `one_layer[:, :, 16:, 1:16:2]` holds these weights. Write the number itself into the cell, because
#   `one_layer` does not exist when your notebook is graded.
# - `why_one_layer_fails`: choose a letter, and explain it in a sentence below.
#     - `"a"`: It has too few parameters for 256 possible pairs.
#     - `"b"`: It would need many times more than 400 steps.
#     - `"c"`: It sees the values, but not whose they are.
#     - `"d"`: The mask hides the pairs from the queries.

# %% nbgrader={"grade_id": "q2_5", "solution": true}
mass_on_each_value = None
why_one_layer_fails = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
mass_on_each_value = 0.122  # 1/8, less what goes elsewhere
why_one_layer_fails = "c"  # a value's vector says what it is and where, and nothing of the key before it
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "q2_5_findings", "solution": true}
# *What I find:*

# %% nbgrader={"grade_id": "q2_5_test", "grade": true, "points": 1}
said = f"mass_on_each_value must be a number between 0 and 1, got {mass_on_each_value!r}"
assert is_number(mass_on_each_value) and 0 < mass_on_each_value < 1, said
### BEGIN HIDDEN TESTS
said = f"mass_on_each_value is not {mass_on_each_value}: take the mean of one_layer[:, :, 16:, 1:16:2], as measured"
# Seeds and single heads give 0.1218 to 0.1233. Rounded to 0.12 is right, but 1/8 leaves nothing for the other tokens.
assert 0.119 < mass_on_each_value < 0.1245, said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_5_choice_test", "grade": true, "points": 1}
said = f'why_one_layer_fails must be "a", "b", "c" or "d", got {why_one_layer_fails!r}'
assert why_one_layer_fails in ("a", "b", "c", "d"), said
### BEGIN HIDDEN TESTS
assert_choice(
    why_one_layer_fails,
    "c",
    a="With twice the width, four heads and an MLP the accuracy of one layer is the same.",
    b="With 4000 steps the accuracy of one layer is the same, and its loss stopped falling long before.",
    d="The pairs come before the queries, so the mask hides none of them. The map shows where a query looks.",
)
### END HIDDEN TESTS
