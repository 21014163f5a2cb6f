"""Answers to questions 2.1 to 2.3 and 2.5 of Lab 6, the task, guessing, and the model, right and wrong."""

from labs.mutants import mutants

ROWS = """
def recall_batch(rng, B, pairs=8, keys=16, values=16):
    tokens, targets = np.empty((B, 3 * pairs), int), np.empty((B, pairs), int)
    for row in range(B):
        key = rng.permutation(keys)[:pairs]
        value = keys + rng.choice(values, pairs, replace=False)
        order = rng.permutation(pairs)
        tokens[row, 0 : 2 * pairs : 2], tokens[row, 1 : 2 * pairs : 2] = key, value
        tokens[row, 2 * pairs :], targets[row] = key[order], value[order]
    return tokens, targets
"""

PERMUTED = """
def recall_batch(rng, B, pairs=8, keys=16, values=16):
    draw = lambda size, of: rng.permuted(np.tile(np.arange(of), (B, 1)), axis=1)[:, :size]
    both = np.stack([draw(pairs, keys), draw(pairs, values) + keys], axis=-1)
    asked = both[np.arange(B)[:, None], draw(pairs, pairs)]
    tokens = np.concatenate([both.reshape(B, -1), asked[..., 0]], axis=1).astype(np.int32)
    return tokens, asked[..., 1].astype(np.int32)
"""

LIBRARY = """
def recall_batch(rng, B, pairs=8, keys=16, values=16):
    return tuple(one.numpy() for one in recall_rows(rng, B, pairs, keys, values))
"""

SHOWN = """
def recall_batch(rng, B, pairs=8, keys=16, values=16):
    key = rng.random((B, keys)).argsort(1)[:, :pairs]
    value = keys + rng.random((B, values)).argsort(1)[:, :pairs]
    order = rng.random((B, pairs)).argsort(1)
    asked, targets = (np.take_along_axis(a, order, 1) for a in (key, value))
    both = lambda a, b: np.stack([a, b], 2).reshape(B, -1)
    return np.concatenate([both(key, value), both(asked, targets)], 1), targets
"""

# Keys and values that are each evenly drawn, and not together.
TOGETHER = """
def recall_batch(rng, B, pairs=8, keys=16, values=16):
    draw = lambda size, of: rng.random((B, of)).argsort(1)[:, :size]
    start = rng.integers(keys, size=(B, 1))
    key, value, order = {key}, {value}, {order}
    key = np.take_along_axis(key, draw(pairs, pairs), 1)
    tokens = np.concatenate([np.stack([key, keys + value], 2).reshape(B, -1), np.take_along_axis(key, order, 1)], 1)
    return tokens, keys + np.take_along_axis(value, order, 1)
"""


def together(key="draw(pairs, keys)", value="draw(pairs, values)", order="draw(pairs, pairs)"):
    return TOGETHER.format(key=key, value=value, order=order)


SIMULATED = """
rng = np.random.default_rng(0)
accuracy_tokens, loss_tokens = 0.0625, 2.772589
accuracy_seen, loss_seen = (rng.integers(8, size=400_000) == 0).mean(), -np.log(0.125)
accuracy_shown = np.mean([(rng.integers(left, size=200_000) == 0).mean() for left in range(1, 9)])
"""


def guesses(tokens=1 / 16, loss=2.7726, seen=0.125, loss_seen=2.0794, shown=0.3397):
    return (
        f"accuracy_tokens = {tokens}\nloss_tokens = {loss}\naccuracy_seen = {seen}\nloss_seen = {loss_seen}\n"
        f"accuracy_shown = {shown}\n"
    )


PARAMETERS = """
def recall_parameters(layers, D, V, L):
    shapes = [(V, D), (L, D), (D,), (D, V)]
    for _ in range(layers):
        shapes += [(D,), (D, D), (D, D), (D, D), (D, D)]
    return sum(math.prod(shape) for shape in shapes)
"""

PARAMETERS_BY_HAND = """
def recall_parameters(layers, D, V, L):
    a_layer = 4 * D**2 + D
    return V * D + L * D + layers * a_layer + D + V * D
"""


def one_layer(mass=0.1218, why="c"):
    return f"mass_on_each_value = {mass}\nwhy_one_layer_fails = {why!r}\n"


RIGHT = {
    "q2_1": [
        ("row by row", ROWS),
        ("permuted columns", PERMUTED),
        ("a key moved", together()),
        (
            "a list of two arrays",
            PERMUTED.replace("return tokens, ", "return [tokens, ")
            .replace("32)\n", "32)]\n", 2)
            .replace("axis=1).astype(np.int32)]", "axis=1).astype(np.int32)"),
        ),
    ],
    "q2_2": [("rounded", guesses()), ("simulated", SIMULATED)],
    "q2_3": [("summed over tensors", PARAMETERS), ("by hand", PARAMETERS_BY_HAND)],
    "q2_5": [("one head", one_layer()), ("rounded", one_layer(0.12)), ("another seed", one_layer(0.1229))],
}

WRONG = {
    "q2_1": [
        ("the library's rows", LIBRARY),
        ("answers shown", SHOWN),
        ("consecutive keys", together(key="(start + np.arange(pairs)) % keys")),
        ("consecutive values", together(value="(rng.integers(values, size=(B, 1)) + np.arange(pairs)) % values")),
        ("every second key", together(key="(start + 2 * np.arange(pairs)) % keys")),
        ("consecutive or every third key", together(
            key="(start + rng.integers(1, 4, (B, 1)) * np.arange(pairs)) % keys")),
        ("two of eight halves", together(key="(start // 8 * 8 + draw(pairs, 8)) % keys")),
        ("queries in even steps", together(
            order="(np.arange(pairs) * rng.choice([1, 3, 5, 7], (B, 1)) + rng.integers(pairs, size=(B, 1))) % pairs")),
        *mutants(
            ROWS,
            ("queries in the pairs' order", "order = rng.permutation(pairs)", "order = np.arange(pairs)"),
            ("tokens of 8 bits", "(B, 3 * pairs), int)", "(B, 3 * pairs), np.int8)"),
            ("targets of 8 bits", "(B, pairs), int)", "(B, pairs), np.uint8)"),
            ("a copy of rng", "    for row", "    import copy\n    rng = copy.deepcopy(rng)\n    for row"),
            ("one order for two rows", "order = rng.permutation(pairs)",
             "order = order if row % 2 else rng.permutation(pairs)"),
            ("two equal rows", "    return tokens", "    tokens[1::2], targets[1::2] = "
             "(one[: B // 2 * 2 : 2] for one in (tokens, targets))\n    return tokens"),
            ("ascending queries", "order = rng.permutation(pairs)", "order = key.argsort()"),
            ("ascending targets", "order = rng.permutation(pairs)", "order = value.argsort()"),
            ("queries rotated", "order = rng.permutation(pairs)",
             "order = (np.arange(pairs) + rng.integers(pairs)) % pairs"),
            ("repeated keys", "rng.permutation(keys)[:pairs]", "rng.integers(keys, size=pairs)"),
            ("repeated values", "rng.choice(values, pairs, replace=False)", "rng.choice(values, pairs)"),
            ("keys in order", "rng.permutation(keys)[:pairs]", "np.sort(rng.permutation(keys)[:pairs])"),
            ("always the same keys", "rng.permutation(keys)[:pairs]", "rng.permutation(pairs)"),
            ("one pairing for all rows", "rng.choice(values, pairs, replace=False)", "(key + 3) % values"),
            ("a dict", "return tokens, targets", "return {'tokens': tokens, 'targets': targets}"),
            ("one-hot", "return tokens, targets", "return np.eye(2 * keys + values, dtype=int)[tokens], targets"),
            ("values from 0", "keys + rng.choice", "rng.choice"),
            ("targets in the pairs' order", "value[order]", "value"),
            ("a generator of its own", "    for row", "    rng = np.random.default_rng(0)\n    for row"),
            ("one of three generators", "    for row",
             "    rng = np.random.default_rng(rng.integers(3))\n    for row"),
            ("the first value is never the number of the first key", "        order = rng",
             "        if value[0] - keys == key[0]:\n"
             "            value[0], value[-1] = value[-1], value[0]\n        order = rng"),
            ("NumPy's global state", "    for row", "    rng = np.random\n    for row"),
            ("one batch for all rows", "        key = rng",
             "        rng = np.random.default_rng(rng.integers(9) if row == 0 else 1)\n        key = rng"),
            ("tensors", "return tokens, targets", "return rl.tensor(tokens) + 0, rl.tensor(targets) + 0"),
        ),
    ],
    "q2_2": [
        ("1/32 for the tokens", guesses(1 / 32, 3.4657)),
        ("per cent", guesses(6.25, seen=12.5, shown=33.97)),
        ("negative logarithms", guesses(loss=-2.7726, loss_seen=-2.0794)),
        ("texts", guesses("'1/16'", seen="'1/8'")),
        ("bits", guesses(loss=4.0, loss_seen=3.0)),
        ("1/7 for the seen", guesses(seen=1 / 7, loss_seen=1.9459)),
        ("all values for the seen", guesses(seen=1 / 16, loss_seen=2.7726)),
        ("1/8 for the last", guesses(shown=0.125)),
        ("the harmonic sum", guesses(shown="2.7179 / 16")),
    ],
    "q2_3": mutants(
        PARAMETERS,
        ("a tied head", ", (D, V)]", "]"),
        ("three matrices a layer", "(D, D), (D, D), (D, D), (D, D)]", "(D, D), (D, D), (D, D)]"),
        ("no positions", "(L, D), ", ""),
        ("no gain at the end", "(L, D), (D,),", "(L, D),"),
        ("no gains in the layers", "[(D,), (D, D)", "[(D, D)"),
        ("a float", "return sum", "return 1.0 * sum"),
        ("D is always 64", "    shapes = [", "    D = 64\n    shapes = ["),
    ),
    "q2_5": [
        ("1/24", one_layer(1 / 24)),
        ("1/8, not measured", one_layer(1 / 8)),
        ("the matching key", one_layer(0.001)),
        ("all values together", one_layer(0.98)),
        *((f"fails by {letter}", one_layer(why=letter)) for letter in "abd"),
    ],
}  # fmt: skip
