# %% [markdown]
# # Part 2. How many layers?
#
# ## 2.1 The task ({points q2_1})
#
# Tokens are numbers. With 16 keys and 16 values the tokens 0 to 15 are keys, and 16 to 31 are values. A row lists 8
# pairs and then asks for the values of its 8 keys, in an order of their own:
#
# ```
# k1 v1 k2 v2 ... k8 v8   q1 q2 ... q8         24 tokens
#                         t1 t2 ... t8         8 targets: the value that belongs to q1, q2, ...
# ```
#
# Write `recall_batch(rng, B, pairs=8, keys=16, values=16)` in NumPy alone. It returns two integer arrays: tokens
# (B, 3 pairs) and targets (B, pairs). In every row the keys differ from each other, and so do the values. Which keys,
# which values, which of them belong together, and in which order they are asked for: all of this is drawn anew for
# every row, with equal chances for each possibility. The answers never stand behind the queries.
#
# Draw from `rng` alone, a generator such as `np.random.default_rng(0)`. The same state of `rng` gives the same rows.
#
# <details><summary>Hint: different numbers in each row, without a loop</summary>
#
# `rng.random((B, 16)).argsort(axis=1)` holds a random order of 0 to 15 in every row. Its first 8 columns are 8
# different numbers. `np.take_along_axis(a, order, axis=1)` picks from each row by that row's own order.
# </details>


# %% nbgrader={"grade_id": "q2_1", "solution": true}
def recall_batch(rng, B, pairs=8, keys=16, values=16):
    """Tokens (B, 3 pairs) and targets (B, pairs), drawn from rng."""
    ### BEGIN SOLUTION
    key = rng.random((B, keys)).argsort(axis=1)[:, :pairs]
    value = keys + rng.random((B, values)).argsort(axis=1)[:, :pairs]
    order = rng.random((B, pairs)).argsort(axis=1)
    shown = np.stack([key, value], axis=2).reshape(B, 2 * pairs)
    asked = np.take_along_axis(key, order, axis=1)
    return np.concatenate([shown, asked], axis=1), np.take_along_axis(value, order, axis=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 3}
def drawn_rows(seed, B, *sizes):
    seen = measure.count(recall_batch, np.random.default_rng(seed), B, *sizes)
    assert not seen.by_op, "recall_batch: write it in NumPy alone, with no rl operation"
    assert isinstance(seen.value, tuple) and len(seen.value) == 2, "recall_batch: return tokens, targets"
    made = [np.asarray(array) for array in seen.value]
    assert all(array.dtype.kind in "iu" for array in made), "recall_batch: return arrays of whole numbers"
    return [array.astype(np.int64) for array in made]


def check_rows(seed, B, pairs=8, keys=16, values=16):
    tokens, targets = drawn_rows(seed, B, pairs, keys, values)
    what = f"{pairs} pairs of {keys} keys and {values} values"
    shapes = f"{tokens.shape} and {targets.shape}"
    assert tokens.shape == (B, 3 * pairs) and targets.shape == (B, pairs), f"{what}: shapes are {shapes}"
    key, value, query = tokens[:, 0 : 2 * pairs : 2], tokens[:, 1 : 2 * pairs : 2], tokens[:, 2 * pairs :]
    assert ((key >= 0) & (key < keys)).all(), f"{what}: keys are below {keys}"
    assert ((keys <= value) & (value < keys + values)).all(), f"{what}: values are {keys} to {keys + values - 1}"
    for name, part in (("key", key), ("value", value)):
        assert (np.diff(np.sort(part, axis=1), axis=1) > 0).all(), f"{what}: a row has the same {name} twice"
    assert (np.sort(query, axis=1) == np.sort(key, axis=1)).all(), f"{what}: a row asks for each of its keys once"
    place = (query[:, :, None] == key[:, None, :]).argmax(axis=2)
    right = np.take_along_axis(value, place, axis=1)
    assert (targets == right).all(), f"{what}: a target is the value that stands behind the key of its query"


check_rows(0, 50)
check_rows(1, 20, 3, 5, 4)
### BEGIN HIDDEN TESTS
check_rows(2, 90)
check_rows(3, 40, 6, 6, 9)
check_rows(4, 1, 16, 32, 32)
check_rows(5, 30, 1, 2, 2)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_1_drawn_test", "grade": true, "points": 2}
def check_even(counts, what):
    counts = np.asarray(counts)
    assert counts.min() > 0.4 * counts.mean() and counts.max() < 1.6 * counts.mean(), f"not equally likely: {what}"


def check_drawn(seed):
    first, again, other = (drawn_rows(s, 8000)[0] for s in (seed, seed, seed + 1))
    assert (first == again).all(), "the same state of rng gives the same rows"
    assert (first != other).any(), "another state of rng gives other rows"
    key, value, query = first[:, 0:16:2], first[:, 1:16:2] - 16, first[:, 16:]
    order = (query[:, :, None] == key[:, None, :]).argmax(axis=2)
    rows = np.arange(8)
    for part, what in ((key, "each key"), (value, "each value")):
        check_even([np.bincount(column, minlength=16) for column in part.T], f"{what} at each place of the pairs")
    check_even(np.bincount((key * 16 + value).ravel(), minlength=256), "each value beside each key")
    check_even([np.bincount(column, minlength=8) for column in order.T], "each pair at each place of the queries")
    both = np.bincount(order[:, 0] * 8 + order[:, 1], minlength=64).reshape(8, 8)
    check_even(both[rows[:, None] != rows], "each order of the first two queries")


check_drawn(0)
### BEGIN HIDDEN TESTS
check_drawn(10)
check_drawn(20)
### END HIDDEN TESTS

# %% [markdown]
# Here is a row. Keys are shown as letters, and values as numbers from 0.


# %%
def shown(tokens):
    """Tokens as a reader tells them apart: keys are letters, values are numbers."""
    return [chr(ord("A") + token) if token < 16 else str(token - 16) for token in np.asarray(tokens).tolist()]


tokens, targets = recall_batch(np.random.default_rng(0), 1)
row = shown(tokens[0])
print("pairs    ", "   ".join(f"{key} {value}" for key, value in zip(row[0:16:2], row[1:16:2], strict=True)))
print("queries  ", "  ".join(f"{query:>2}" for query in row[16:]))
print("targets  ", "  ".join(f"{target:>2}" for target in shown(targets[0])))

# %% [markdown]
# ## 2.2 What guessing earns ({points q2_2})
#
# Before you train a model, work out what you get *without* recall. Otherwise you cannot tell a model that has learned
# nothing from one that has learned half. Take the task with 8 pairs, 16 keys and 16 values, and three players:
#
# - The first knows only which tokens are values, and gives each the same chance. `accuracy_tokens` is the share of its
#   guesses that are right, and `loss_tokens` its mean cross-entropy, $-\ln p(\text{target})$.
# - The second also looks at the row, and gives the same chance to each of the values that it saw: `accuracy_seen` and
#   `loss_seen`.
# - The third plays another game. After each of its 8 guesses, in order, it is *told the right answer*. It never guesses
#   a value that was an answer before. It still knows nothing about who belongs to whom. `accuracy_shown` is the mean
#   over the 8 guesses. This is why the answers do not stand in the rows of 2.1.

# %% nbgrader={"grade_id": "q2_2", "solution": true}
accuracy_tokens = None
loss_tokens = None
accuracy_seen = None
loss_seen = None
accuracy_shown = None
### BEGIN SOLUTION
accuracy_tokens, loss_tokens = 1 / 16, math.log(16)
accuracy_seen, loss_seen = 1 / 8, math.log(8)
accuracy_shown = sum(1 / left for left in range(1, 9)) / 8  # 8 values are left, then 7, ... and the last one is certain
### END SOLUTION

# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 1}
for name, value in (("accuracy_tokens", accuracy_tokens), ("loss_tokens", loss_tokens)):
    assert is_number(value) and value > 0, f"{name} is a number"
### BEGIN HIDDEN TESTS
assert abs(accuracy_tokens - 1 / 16) < 2e-3, "accuracy_tokens: how many tokens can it be?"
assert abs(loss_tokens - math.log(16)) < 2e-3, "loss_tokens: the natural logarithm of the chance of each"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_seen_test", "grade": true, "points": 1}
for name, value in (("accuracy_seen", accuracy_seen), ("loss_seen", loss_seen)):
    assert is_number(value) and value > 0, f"{name} is a number"
### BEGIN HIDDEN TESTS
assert abs(accuracy_seen - 1 / 8) < 2e-3, "accuracy_seen: how many values does a row show?"
assert abs(loss_seen - math.log(8)) < 2e-3, "loss_seen: the natural logarithm of the chance of each"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_shown_test", "grade": true, "points": 2}
assert is_number(accuracy_shown) and 0 < accuracy_shown < 1, "accuracy_shown is a share, between 0 and 1"
### BEGIN HIDDEN TESTS
right = sum(1 / left for left in range(1, 9)) / 8
assert abs(accuracy_shown - right) < 2e-3, "accuracy_shown: how many values are left before each guess?"
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 The model ({points q2_3})
#
# `RecallModel(layers, attention)` is a language model with attention and nothing else:
#
# | part | what it does | weights |
# |---|---|---|
# | embedding | looks a token up | (V, D) |
# | positions | adds a learned vector for each place of the row | (L, D) |
# | each layer | x + attention(RMSNorm(x)) | Wq, Wk, Wv, Wo: (D, D) each, and a gain (D,) |
# | RMSNorm | at the end | a gain (D,) |
# | head | logits over the vocabulary, with weights of its own | (D, V) |
#
# There are no biases and no MLP. D is 64, with 2 heads of 32. `attention` is any function like your
# `causal_attention`. The weights start as normal values with a standard deviation of 0.1. This is part of the task:
# with the usual 0.02 no model of this lab has learned anything when the training ends.
#
# Write `recall_parameters(layers, D, V, L)`, the number of parameters of such a model.


# %% nbgrader={"grade_id": "q2_3", "solution": true}
def recall_parameters(layers, D, V, L):
    """How many numbers the weights of a model hold."""
    ### BEGIN SOLUTION
    return (2 * V + L + 1) * D + layers * (4 * D * D + D)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_3_test", "grade": true, "points": 2}
def check_parameters(layers, pairs, keys, values):
    made = RecallModel(layers, fused_attention, pairs=pairs, keys=keys, values=values).num_parameters()
    number = recall_parameters(layers, 64, keys + values, 3 * pairs)
    assert is_count(number), "recall_parameters: return a whole number"
    what = f"{layers} layers, D = 64, V = {keys + values}, L = {3 * pairs}: {number:,}"
    assert number == made, f"{what} is not what RecallModel has"


check_parameters(1, 8, 16, 16)
check_parameters(3, 16, 32, 40)
### BEGIN HIDDEN TESTS
check_parameters(0, 4, 8, 8)
check_parameters(5, 6, 6, 60)
for layers, D, V, L in [(2, 128, 100, 48), (4, 32, 7, 9), (1, 1, 1, 1)]:
    right = (2 * V + L + 1) * D + layers * (4 * D * D + D)
    assert recall_parameters(layers, D, V, L) == right, f"recall_parameters({layers}, {D}, {V}, {L}) is not right"
### END HIDDEN TESTS
