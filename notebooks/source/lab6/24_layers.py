# %% [markdown]
# ## 2.4 Train them ({points q2_4})
#
# `training(model, recall_batch, seed=seed, steps=steps)` trains `model` on 64 fresh rows a step: AdamW, a warm-up and a
# decay of the learning rate, and gradients clipped to a norm of 1. You loop over it. It takes a step each time, and
# gives the number of the step, from 1, and the loss.
#
# Write `train_recall(layers, seed, steps=400, every=50)`:
#
# 1. Make `RecallModel(layers, causal_attention, seed=seed, device=device)`, with *your* attention.
# 2. Train it on *your* `recall_batch`.
# 3. After every `every` steps measure `recall_accuracy(model, tokens, targets)` on 1000 rows that training never sees,
#    always the same: `recall_batch(np.random.default_rng(1000 + seed), 1000)`. An answer counts as right if it is the
#    most likely of all 32 tokens. You may stop early, as soon as this accuracy is above 99 %.
# 4. Return a dict:
#     - `"losses"`: the loss of each step, a list;
#     - `"accuracies"`: the accuracy after each step at which you measured, `{50: 0.08, 100: 0.09, ...}`;
#     - `"accuracy"`: the *last* of them. The best of many measurements is no fair measure;
#     - `"weights"`: `model.state_dict()` at the end.
#
# The test trains your models again, with other seeds, and takes their accuracy on rows of its own. It takes a minute on
# a slow machine.


# %% nbgrader={"grade_id": "q2_4", "solution": true}
def train_recall(layers, seed, steps=400, every=50):
    """{"losses", "accuracies", "accuracy", "weights"} of one training."""
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
    """The accuracy of a model of these weights, with the library's attention."""
    model = RecallModel(layers, fused_attention, device=device)
    model.load_state_dict(weights)
    return recall_accuracy(model, tokens, targets)


def check_report(layers, seed, steps, every):
    what = f"train_recall({layers}, {seed}, {steps}, {every})"
    seen = measure.count(train_recall, layers, seed, steps, every)
    assert "attention" not in seen.by_op, "train with your own causal_attention, not with the library's"
    run, keys = seen.value, {"losses", "accuracies", "accuracy", "weights"}
    assert isinstance(run, dict) and set(run) == keys, f"train_recall: the keys are {sorted(keys)}"
    assert all(is_number(loss) and 1 < loss < 8 for loss in run["losses"]), f"{what}: losses are numbers"
    assert len(run["losses"]) == steps, f"{what}: {len(run['losses'])} losses; it does not stop before 99 %"
    assert isinstance(run["accuracies"], dict), "accuracies is a dict, from step to accuracy"
    assert sorted(run["accuracies"]) == list(range(every, steps + 1, every)), f"{what}: measured at other steps"
    assert all(map(is_number, (run["accuracy"], *run["accuracies"].values()))), f"{what}: accuracies are numbers"
    assert run["accuracy"] == run["accuracies"][steps], f"{what}: accuracy is not that of the last measurement"
    rows = recall_batch(np.random.default_rng(1000 + seed), 1000)
    right = f"is not what the weights give on recall_batch(np.random.default_rng({1000 + seed}), 1000)"
    same = abs(run["accuracy"] - scored(layers, run["weights"], *rows)) <= 1e-3
    assert same, f"{what}: accuracy {run['accuracy']:.4f} {right}"


check_report(1, 3, 40, 5)
check_report(1, 6, 2, 1)
check_report(2, 4, 30, 10)
### BEGIN HIDDEN TESTS
check_report(1, 11, 60, 6)
check_report(2, 12, 24, 4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_4_trained_test", "grade": true, "points": 4}
def check_trained(layers, seed, least=0.9, most=1.0):
    run = once(train_recall, layers, seed)
    accuracy = scored(layers, run["weights"], *recall_rows(np.random.default_rng(10**6 + seed), 1000))
    what = f"{accuracy:.1%} on fresh rows with {layers} layers, seed {seed}"
    assert least <= accuracy <= most, f"{what}: not what so many layers can do. Test your attention and your rows again"


check_trained(3, seed=0)
### BEGIN HIDDEN TESTS
check_trained(1, seed=21, least=0, most=0.2)
check_trained(2, seed=22)
check_trained(4, seed=24)
### END HIDDEN TESTS

# %% [markdown]
# Now train models of 1 to 4 layers. The figure grows with each of them. The dashed lines are those of the second player
# of 2.2. (`once(train_recall, 3, 0)` is `train_recall(3, 0)`, but it does not train again what it has trained before.)


# %%
def curves():
    names = {layers: f"{layers} layer" + "s" * (layers > 1) for layers in runs}
    losses = {names[layers]: run["losses"] for layers, run in runs.items()}
    accuracies = {names[layers]: run["accuracies"] for layers, run in runs.items()}
    title = "8 pairs: loss and accuracy"
    return rl.plots.plot_learning(losses, accuracies, guess=(math.log(8), 1 / 8), title=title)


runs = {1: once(train_recall, 1, 0)}
figure = display(curves(), display_id=True)
for layers in (2, 3, 4):
    runs[layers] = once(train_recall, layers, 0)
    figure.update(curves())

# %% [markdown]
# One training is an anecdote. Is it the same with other seeds, which change the weights and all rows?

# %%
accuracies = {layers: [run["accuracy"]] for layers, run in runs.items()}
for layers in (1, 2):
    accuracies[layers] += [once(train_recall, layers, seed)["accuracy"] for seed in (1, 2)]
note = "1000 fresh rows; 1 and 2 layers: three seeds each"
rl.plots.plot_accuracy_by_layers(accuracies, guess=1 / 8, bar=0.9, title="The jump", note=note)

# %% [markdown]
# `fewest_layers`: the smallest number of layers that reaches 90 %.

# %% nbgrader={"grade_id": "q2_4_fewest", "solution": true}
fewest_layers = None
### BEGIN SOLUTION
fewest_layers = 2
### END SOLUTION

# %% nbgrader={"grade_id": "q2_4_fewest_test", "grade": true, "points": 2}
assert is_count(fewest_layers) and 1 <= fewest_layers <= 4, "fewest_layers is 1, 2, 3 or 4"
### BEGIN HIDDEN TESTS
assert fewest_layers == 2, "fewest_layers: which models in your figure reach 90 % in their last measurement?"
### END HIDDEN TESTS

# %% [markdown]
# Look at the loss of one layer. It falls to ln 8 and stays there: the model has become the second player of 2.2. The
# others come down to the same value, and then fall to 0 within some thirty steps. They find the missing piece all at
# once.
#
# ## 2.5 Why one layer fails ({points q2_5})
#
# What does the single layer look at? These are the weights of its attention on one row, the mean of its two heads. A
# ring marks the key that equals the query, and the value behind it.


# %%
def picture(maps, tokens, marks=None, **more):
    """Attention weights {title: (L, L)} of one row of tokens."""
    kinds = ["key", "value"] * 8 + ["query"] * 8
    return rl.plots.plot_attention_maps(maps, shown(tokens), kinds, marks, **more)


def model_of(weights):
    """A model of the weights that train_recall returns."""
    layers = len({name.split(".")[1] for name in weights if name.startswith("layers.")})
    model = RecallModel(layers, causal_attention, device=device)
    model.load_state_dict(weights)
    return model


tokens, targets = recall_batch(np.random.default_rng(7), 1000)
one_layer = attention_maps(model_of(runs[1]["weights"]), tokens)[0]  # (rows, heads, 24, 24)
place_of_key = {int(key): place for place, key in enumerate(tokens[0]) if place < 16}
rings = [(query, place_of_key[int(tokens[0, query])] + one) for query in range(16, 24) for one in (0, 1)]
picture({"one layer, mean of the heads": one_layer[0].mean(0)}, tokens[0], {"one layer, mean of the heads": rings})

# %% [markdown]
# Each query spreads its attention over all the values alike. Find two answers:
#
# - `mass_on_each_value`: the weight that a query gives to one of the 8 values that it sees, as a mean over rows,
#   queries, values and heads. `one_layer[:, :, 16:, 1:16:2]` holds these weights. Write the number itself: `one_layer`
#   does not exist when your notebook is graded.
# - `why_one_layer_fails`:
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
assert is_number(mass_on_each_value) and 0 < mass_on_each_value < 1, "mass_on_each_value is a weight of attention"
### BEGIN HIDDEN TESTS
assert abs(mass_on_each_value - 0.1225) < 6e-3, "mass_on_each_value: take the mean of one_layer[:, :, 16:, 1:16:2]"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_5_choice_test", "grade": true, "points": 1}
assert why_one_layer_fails in ("a", "b", "c", "d"), 'answer "a", "b", "c" or "d"'
### BEGIN HIDDEN TESTS
assert_choice(
    why_one_layer_fails,
    "c",
    a="With twice the width, four heads and an MLP the accuracy of one layer is the same.",
    b="With 4000 steps the accuracy of one layer is the same, and its loss has long stopped falling.",
    d="The pairs stand before the queries, so the mask hides none of them. The map shows where a query looks.",
)
### END HIDDEN TESTS
