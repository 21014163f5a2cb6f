# %% [markdown]
# # Part 2. How many layers?
#
# ## 2.1 The task ({points q2_1})
#
# Tokens are whole numbers. With 16 keys and 16 values, the tokens 0 to 15 are keys and the tokens 16 to 31 are values.
# A row lists 8 pairs and then asks for the values of the 8 keys in a random order:
#
# ```
# k1 v1 k2 v2 ... k8 v8   q1 q2 ... q8         24 tokens
#                         t1 t2 ... t8         8 targets: the value that belongs to q1, q2, ...
# ```
#
# Write `recall_batch(rng, B, pairs=8, keys=16, values=16)` with NumPy only. It returns two integer arrays: the tokens
# (B, 3·pairs) and the targets (B, pairs). In every row:
#
# - The keys differ from each other, and so do the values.
# - The keys, the values, which value belongs to which key, and the order of the queries are drawn anew, and all
#   possibilities are equally likely.
# - No query is followed by its answer.
#
# Draw all random numbers from `rng`, a generator such as `np.random.default_rng(0)`. The same state of `rng` must give
# the same rows, and the next call with the same `rng` other rows.
#
# <details><summary>Hint: different numbers in each row, without a loop</summary>
#
# `rng.random((B, 16)).argsort(axis=1)` holds the numbers 0 to 15 in a random order in every row. Its first 8 columns
# are 8 different numbers. `np.take_along_axis(a, order, axis=1)` picks elements from each row of `a` in the order given
# by the same row of `order`.
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
    assert not seen.by_op, f"recall_batch called rl operations ({', '.join(seen.by_op)}): use NumPy only"
    said = f"recall_batch must return a tuple (tokens, targets), got a {type(seen.value).__name__}"
    assert isinstance(seen.value, (tuple, list)) and len(seen.value) == 2, said
    made = [np.asarray(array) for array in seen.value]
    said = f"recall_batch must return integer arrays, got {made[0].dtype} and {made[1].dtype}"
    assert all(array.dtype.kind in "iu" for array in made), said
    return [array.astype(np.int64) for array in made]


def check_rows(seed, B, pairs=8, keys=16, values=16):
    tokens, targets = drawn_rows(seed, B, pairs, keys, values)
    what = f"recall_batch(rng, {B}, {pairs}, {keys}, {values})"
    shapes, right = f"{tokens.shape} and {targets.shape}", ((B, 3 * pairs), (B, pairs))
    said = f"{what}: the shapes are {shapes}, expected {right[0]} and {right[1]}"
    assert (tokens.shape, targets.shape) == right, said
    key, value, query = tokens[:, 0 : 2 * pairs : 2], tokens[:, 1 : 2 * pairs : 2], tokens[:, 2 * pairs :]
    for name, part, low, high in (("keys", key, 0, keys - 1), ("values", value, keys, keys + values - 1)):
        said = f"{what}: the {name} are {part.min()} to {part.max()}, expected tokens from {low} to {high}"
        assert ((part >= low) & (part <= high)).all(), said
        twice = (np.diff(np.sort(part, axis=1), axis=1) == 0).any(axis=1)
        said = f"{what}: row {twice.argmax()} has two equal {name}, {part[twice.argmax()].tolist()}"
        assert not twice.any(), said
    wrong = (np.sort(query, axis=1) != np.sort(key, axis=1)).any(axis=1)
    row = wrong.argmax()
    said = f"{what}: row {row} has the keys {key[row].tolist()} and the queries {query[row].tolist()}"
    assert not wrong.any(), f"{said}, expected each key once"
    place = (query[:, :, None] == key[:, None, :]).argmax(axis=2)
    right = np.take_along_axis(value, place, axis=1)
    row = (targets != right).any(axis=1).argmax()
    said = f"{what}: row {row} is {tokens[row].tolist()}, its targets are {targets[row].tolist()}"
    assert (targets == right).all(), f"{said}, expected {right[row].tolist()}"


check_rows(0, 50)
check_rows(1, 20, 3, 5, 4)
check_rows(2, 10, 5, 200, 300)
### BEGIN HIDDEN TESTS
seed, pairs = measure.draw(1000, 10**6), measure.draw(4, 7)
check_rows(seed, measure.draw(60, 110))
check_rows(seed + 1, 40, pairs, pairs, pairs + 3)
check_rows(seed + 2, 1, 16, 32, 32)
check_rows(seed + 3, 30, 1, 2, 2)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q2_1_drawn_test", "grade": true, "points": 2}
def check_even(counts, what):
    counts = np.asarray(counts)
    said = f"recall_batch, 8000 rows: {what} should come about {counts.mean():.0f} times"
    said += f", but the counts are {counts.min()} to {counts.max()}"
    assert counts.min() > 0.4 * counts.mean() and counts.max() < 1.6 * counts.mean(), said


def check_drawn(seed):
    (first, targets), (again, _), (other, _) = (drawn_rows(s, 8000) for s in (seed, seed, seed + 1))
    shapes, right = (first.shape, targets.shape), ((8000, 24), (8000, 8))
    assert shapes == right, f"recall_batch(rng, 8000): the shapes are {shapes}, expected {right}"
    tokens = {"keys": first[:, 0:16:2], "values": first[:, 1:16:2], "queries": first[:, 16:], "targets": targets}
    for name, part in tokens.items():
        low = 16 if name in ("values", "targets") else 0
        said = f"recall_batch(rng, 8000): the {name} are {part.min()} to {part.max()}, expected {low} to {low + 15}"
        assert part.min() >= low and part.max() < low + 16, said
    assert (first == again).all(), "recall_batch: the same seed gave other rows; draw all random numbers from rng"
    assert (first != other).any(), "recall_batch: another seed gave the same rows; draw all random numbers from rng"
    key, value, query = first[:, 0:16:2], first[:, 1:16:2] - 16, first[:, 16:]
    order = (query[:, :, None] == key[:, None, :]).argmax(axis=2)
    rows = np.arange(8)
    parts = {
        "each key at each place of the pairs": key,
        "each value at each place of the pairs": value,
        "each key at each place of the queries": query,
        "each value at each place of the targets": targets - 16,
    }
    for what, part in parts.items():
        check_even([np.bincount(column, minlength=16) for column in part.T], what)
    check_even(np.bincount((key * 16 + value).ravel(), minlength=256), "each value after each key")
    check_even([np.bincount(column, minlength=8) for column in order.T], "each pair at each place of the queries")
    for a, b in ((0, 1), (2, 5), (6, 7)):
        both = np.bincount(order[:, a] * 8 + order[:, b], minlength=64).reshape(8, 8)
        check_even(both[rows[:, None] != rows], f"each order of queries {a + 1} and {b + 1}")
        apart = {"keys": (key[:, b] - key[:, a]) % 16, "values": (value[:, b] - value[:, a]) % 16}
        for name, part in apart.items():
            check_even(
                np.bincount(part, minlength=16)[1:], f"each difference of {name} {a + 1} and {b + 1}, modulo 16,"
            )
        check_even(np.bincount((apart["values"] - apart["keys"]) % 16, minlength=16), "each shift from keys to values")
    for a, b in np.ndindex(8, 8):
        check_even(
            np.bincount((value[:, b] - key[:, a]) % 16, minlength=16),
            f"each difference of key {a + 1} and value {b + 1}, modulo 16,",
        )
    for name, part in (("keys", key), ("values", value)):
        different = len(np.unique(np.sort(part, axis=1), axis=0))
        said = f"recall_batch, 8000 rows: only {different} different sets of {name}, expected about 6000 of 12,870"
        assert different > 5000, f"{said}: all sets have to be equally likely"
    different = len(np.unique(order, axis=0))
    said = f"recall_batch, 8000 rows: only {different} different orders of the queries, expected about 7250 of 40,320"
    assert different > 6500, f"{said}: draw the order anew in each row"
    batches = {drawn_rows(s, 4)[0].tobytes() for s in range(seed, seed + 30)}
    said = f"recall_batch: 30 seeds gave only {len(batches)} different batches"
    assert len(batches) == 30, f"{said}: draw all random numbers from rng itself"
    (first, _), (second, _) = measure.count(recall_batch, seed, 100, through=two_batches).value
    said = "recall_batch: two calls with one rng gave the same rows: draw from rng itself, not from a copy of it"
    assert (np.asarray(first) != np.asarray(second)).any(axis=1).all(), said


check_drawn(0)
### BEGIN HIDDEN TESTS
check_drawn(measure.draw(1000, 10**6))
### END HIDDEN TESTS

# %% [markdown]
# Here is one of your rows. Keys are shown as letters, and values as numbers from 0.


# %%
def shown(tokens):
    """Tokens as text: keys are letters, values are numbers from 0."""
    return [chr(ord("A") + token) if token < 16 else str(token - 16) for token in np.asarray(tokens).tolist()]


tokens, targets = recall_batch(np.random.default_rng(0), 1)
row = shown(tokens[0])
print("pairs    ", "   ".join(f"{key} {value}" for key, value in zip(row[0:16:2], row[1:16:2], strict=True)))
print("queries  ", "  ".join(f"{query:>2}" for query in row[16:]))
print("targets  ", "  ".join(f"{target:>2}" for target in shown(targets[0])))

# %% [markdown]
# ## 2.2 What guessing scores ({points q2_2})
#
# Before you train a model, compute the accuracy and the loss *without* recall. Otherwise you cannot tell whether a
# model has learned anything. Take the task with 8 pairs, 16 keys and 16 values, and three players who do not know which
# value belongs to which key. The accuracy is the share of right guesses, between 0 and 1. The loss is the mean
# cross-entropy $-\ln p(\text{target})$.
#
# - The first player knows only which 16 tokens are values, and gives each of them the same probability:
#   `accuracy_tokens` and `loss_tokens`.
# - The second player also looks at the row, and gives the same probability to each of the 8 values in it:
#   `accuracy_seen` and `loss_seen`.
# - The third player guesses like the second one, but is *told the right answer* after each of its 8 guesses. So it
#   never again guesses a value that was an answer before. `accuracy_shown` is its mean accuracy over the 8 guesses. It
#   shows what a model could gain if the rows of 2.1 contained the answers.

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
said = f"accuracy_tokens must be a number between 0 and 1, got {accuracy_tokens!r}"
assert is_number(accuracy_tokens) and 0 < accuracy_tokens < 1, said
assert is_number(loss_tokens) and loss_tokens > 0, f"loss_tokens must be a positive number, got {loss_tokens!r}"
### BEGIN HIDDEN TESTS
said = f"accuracy_tokens is not {accuracy_tokens}: among how many tokens does the first player guess?"
assert is_near(accuracy_tokens, 1 / 16, 0, absolute=2e-3), said
said = f"loss_tokens is not {loss_tokens}: take -ln of the probability that the first player gives to the target"
assert is_near(loss_tokens, math.log(16), 0, absolute=2e-3), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_seen_test", "grade": true, "points": 1}
said = f"accuracy_seen must be a number between 0 and 1, got {accuracy_seen!r}"
assert is_number(accuracy_seen) and 0 < accuracy_seen < 1, said
assert is_number(loss_seen) and loss_seen > 0, f"loss_seen must be a positive number, got {loss_seen!r}"
### BEGIN HIDDEN TESTS
said = f"accuracy_seen is not {accuracy_seen}: among how many values does the second player guess?"
assert is_near(accuracy_seen, 1 / 8, 0, absolute=2e-3), said
said = f"loss_seen is not {loss_seen}: take -ln of the probability that the second player gives to the target"
assert is_near(loss_seen, math.log(8), 0, absolute=2e-3), said
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_shown_test", "grade": true, "points": 2}
said = f"accuracy_shown must be a number between 0 and 1, got {accuracy_shown!r}"
assert is_number(accuracy_shown) and 0 < accuracy_shown < 1, said
### BEGIN HIDDEN TESTS
right = sum(1 / left for left in range(1, 9)) / 8
said = f"accuracy_shown is not {accuracy_shown}: how many values are left before the first guess, the second, the last?"
assert is_near(accuracy_shown, right, 0, absolute=2e-3), said
### END HIDDEN TESTS

# %% [markdown]
# The second player's values are the ones to remember: a model that scores no better has not learned which value belongs
# to which key.
#
# ## 2.3 The model ({points q2_3})
#
# `RecallModel(layers, attention)` is a language model that has attention and no MLP:
#
# | part | what it does | weights |
# |---|---|---|
# | embedding | looks up the vector of a token | (V, D) |
# | positions | adds a learned vector for each position in the row | (L, D) |
# | each layer | x + attention(RMSNorm(x)) | Wq, Wk, Wv, Wo: (D, D) each, and a gain (D,) |
# | RMSNorm | normalizes the output of the last layer | a gain (D,) |
# | head | gives the logits over the vocabulary, with weights of its own | (D, V) |
#
# V is the number of different tokens, and L is the number of tokens in a row. There are no biases. D is 64, with 2
# heads of size 32. `attention` is any function with the arguments of your `causal_attention`. The weights start as
# normal random numbers with a standard deviation of 0.1. This value matters: with the usual 0.02, no model learns the
# task in the 400 training steps of this lab.
#
# Write `recall_parameters(layers, D, V, L)`, the number of parameters of such a model.


# %% nbgrader={"grade_id": "q2_3", "solution": true}
def recall_parameters(layers, D, V, L):
    """The number of parameters of a RecallModel: an int."""
    ### BEGIN SOLUTION
    return (2 * V + L + 1) * D + layers * (4 * D * D + D)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_3_test", "grade": true, "points": 2}
def check_parameters(layers, pairs, keys, values):
    made = RecallModel(layers, fused_attention, pairs=pairs, keys=keys, values=values).num_parameters()
    number = recall_parameters(layers, 64, keys + values, 3 * pairs)
    call = f"recall_parameters({layers}, 64, {keys + values}, {3 * pairs})"
    assert is_count(number), f"{call} must return a whole number (int), got {number!r}"
    assert number == made, f"{call} returned {number:,}, expected {made:,}, the parameters of that RecallModel"


check_parameters(1, 8, 16, 16)
check_parameters(3, 16, 32, 40)
number = recall_parameters(2, 3, 5, 7)
assert number == 132, f"recall_parameters(2, 3, 5, 7) returned {number}, expected 132: D need not be 64"
### BEGIN HIDDEN TESTS
check_parameters(0, 4, 8, 8)
check_parameters(measure.draw(4, 6), 6, measure.draw(6, 9), measure.draw(40, 80))
drawn = [measure.draw(low, low + 9) for low in (2, 12, 22, 32)]  # no two of them are equal
for layers, D, V, L in [drawn, drawn[::-1], (1, 1, 1, 1)]:
    right = (2 * V + L + 1) * D + layers * (4 * D * D + D)
    number, hint = recall_parameters(layers, D, V, L), "which tensors are there once, and which in each layer?"
    assert number == right, f"recall_parameters({layers}, {D}, {V}, {L}) returned {number}, expected {right}: {hint}"
### END HIDDEN TESTS
