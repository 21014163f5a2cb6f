"""Answers to questions 2.4, 3.1 and b3.2 of Lab 6, training and what the layers do, right and wrong."""

from labs.mutants import changed, mutants

TRAIN = """
def train_recall(layers, seed, steps=400, every=50):
    model = RecallModel(layers, causal_attention, seed=seed, device=device)
    rows = recall_batch(np.random.default_rng(1000 + seed), 1000)
    found = {"losses": [], "accuracies": {}}
    for step, loss in training(model, recall_batch, seed=seed, steps=steps):
        found["losses"] += [loss]
        if step % every == 0:
            found["accuracy"] = found["accuracies"][step] = recall_accuracy(model, *rows)
            if found["accuracy"] > 0.99:
                break
    return found | {"weights": model.state_dict()}
"""

TO_THE_END = changed(TRAIN, '            if found["accuracy"] > 0.99:\n                break\n', "")

INVENTED = """
def train_recall(layers, seed, steps=400, every=50):
    model = RecallModel(layers, causal_attention, seed=seed, device=device)
    accuracies = {step: 0.125 if layers == 1 else 1.0 for step in range(every, steps + 1, every)}
    losses, weights = [2.0] * steps, model.state_dict()
    return {"losses": losses, "accuracies": accuracies, "accuracy": accuracies[steps], "weights": weights}
"""

HOOK = """
def mass_on_previous(maps):
    places = range(1, 2 * maps.shape[2] // 3, 2)
    return np.mean([maps[:, :, place, place - 1].mean(axis=0) for place in places], axis=0)


def mass_on_answer(maps, tokens):
    B, H, L, _ = maps.shape
    total, n = np.zeros(H), L // 3
    for row in range(B):
        place = {int(key): 2 * pair + 1 for pair, key in enumerate(tokens[row, 0 : 2 * n : 2])}
        for query in range(2 * n, L):
            total += maps[row, :, query, place[int(tokens[row, query])]]
    return total / (B * n)


def circuit(weights):
    maps = []

    def hooked(x, Wq, Wk, Wv, Wo, heads):
        B, L, _ = x.shape
        q, k = ((x @ W).reshape(B, L, heads, -1).transpose(1, 2) for W in (Wq, Wk))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        maps.append(masked_softmax(scores, causal_mask(L, L)).cpu().numpy())
        return causal_attention(x, Wq, Wk, Wv, Wo, heads)

    def score(weights):
        model = RecallModel(2, hooked, device=device)
        model.load_state_dict(weights)
        with rl.no_grad():
            return recall_accuracy(model, tokens, targets)

    tokens, targets = recall_batch(np.random.default_rng(99), 500)
    score(weights)
    previous, answer = mass_on_previous(maps[0]), mass_on_answer(maps[1], tokens)
    found = {"value_to_key": float(max(previous)), "query_to_value": float(max(answer))}
    for layer in (0, 1):
        zeros = {name: 0 * value if f"layers.{layer}.W" in name else value for name, value in weights.items()}
        found[f"without_layer_{layer + 1}"] = score(zeros)
    return found
"""

MODELS = """
def mass_on_previous(maps):
    L = maps.shape[-1]
    below = np.diagonal(maps, offset=-1, axis1=2, axis2=3)  # (B, H, L - 1): from token i + 1 to token i
    return below[:, :, 0 : 2 * L // 3 : 2].mean((0, 2))


def mass_on_answer(maps, tokens):
    tokens, n = np.asarray(tokens), maps.shape[-1] // 3
    place = (tokens[:, 2 * n :, None] == tokens[:, None, 0 : 2 * n : 2]).argmax(2) * 2 + 1
    return np.take_along_axis(maps[:, :, 2 * n :], place[:, None, :, None], axis=3).mean((0, 2, 3))


def circuit(weights):
    rows = recall_batch(np.random.default_rng(0), 600)
    silent = lambda x, *rest: 0 * x
    model = RecallModel(2, causal_attention, device=device)
    model.load_state_dict(weights)
    first, second = attention_maps(model, rows[0])
    masses = mass_on_previous(first).max(), mass_on_answer(second, rows[0]).max()
    found = dict(zip(("value_to_key", "query_to_value"), map(float, masses)))
    for gone in (1, 2):
        turn = [silent if layer == gone else causal_attention for layer in (1, 2)]
        one = RecallModel(2, lambda *args: turn.pop(0)(*args), device=device)
        one.load_state_dict(weights)
        found[f"without_layer_{gone}"] = recall_accuracy(one, *rows)
    return found
"""

VARIANT = """
def train_variant(positions, mask, seed):
    def attention(x, Wq, Wk, Wv, Wo, heads):
        if mask:
            return causal_attention(x, Wq, Wk, Wv, Wo, heads)
        B, L, _ = x.shape
        q, k, v = ((x @ W).reshape(B, L, heads, -1).transpose(1, 2) for W in (Wq, Wk, Wv))
        return (rl.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v).transpose(1, 2).reshape(B, L, -1) @ Wo

    model = RecallModel(2, attention, seed=seed, positions=positions, device=device)
    rows = recall_batch(np.random.default_rng(seed + 77), 1000)
    for step, loss in training(model, recall_batch, seed=seed):
        if step % 25 == 0 and (accuracy := recall_accuracy(model, *rows)) > 0.99:
            break
    return {"weights": model.state_dict(), "accuracy": accuracy}
"""

VARIANT_OTHER_SEED = changed(
    VARIANT, "(model, recall_batch, seed=seed)", "(model, recall_batch, seed=seed + 100)", "step % 25", "step % 100",
    "rl.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)",
    "masked_softmax(q @ k.mT / q.shape[-1] ** 0.5, rl.ones(L, L, dtype='bool', device=device))",
)  # fmt: skip

RIGHT = {
    "q2_4": [("stops early", TRAIN), ("to the end", TO_THE_END)],
    "q3_1": [("a hook", HOOK), ("a layer left out", MODELS)],
    "b3_2": [("one attention with a switch", VARIANT), ("another seed", VARIANT_OTHER_SEED)],
}

WRONG = {
    "q2_4": [
        ("numbers without a run", INVENTED),
        *mutants(
            TRAIN,
            ("no seed of the weights", "causal_attention, seed=seed, device", "causal_attention, device"),
            ("no seed of the rows", "recall_batch, seed=seed, steps", "recall_batch, steps"),
            ("from other weights", "causal_attention, seed=seed, device", "causal_attention, seed=seed + 500, device"),
            ("training rows scored", "np.random.default_rng(1000 + seed)", "np.random.default_rng((seed, 1))"),
            ("stops at 0.9", '["accuracy"] > 0.99', '["accuracy"] > 0.9'),
            ("stops at 0.98", '["accuracy"] > 0.99', '["accuracy"] >= 0.97'),
            ("best value for the last", "    return found | {",
             "    found['accuracy'] = max(found['accuracies'].values())\n    return found | {"),
            ("the library's attention", "RecallModel(layers, causal_attention", "RecallModel(layers, fused_attention"),
            ("weights of the start", "    found = {",
             "    weights = {name: one.clone() for name, one in model.state_dict().items()}\n    found = {",
             "model.state_dict()}\n", "weights}\n"),
            ("values alone for the answer", "recall_accuracy(model, *rows)",
             "float(np.mean(to_float64(model(rl.tensor(rows[0]))[:, 16:, 16:].argmax(-1)) + 16 == rows[1]))"),
        ),
    ],
    "q3_1": [
        *mutants(MODELS, ("a tenth of the rows", "default_rng(0), 600", "default_rng(5), 50")),
        *mutants(
            HOOK,
            ("layers swapped", "mass_on_previous(maps[0])", "mass_on_previous(maps[1])", "mass_on_answer(maps[1]",
             "mass_on_answer(maps[0]"),
            ("layers off swapped", "without_layer_{layer + 1}", "without_layer_{2 - layer}"),
            ("key for value", "2 * pair + 1", "2 * pair"),
            ("always 8 pairs", "2 * n : 2])", "16 : 2])", "range(2 * n, L)", "range(16, 24)", "B * n", "B * 8"),
            ("keys look back", "range(1, 2", "range(2, 2"),
            ("scores for weights", "masked_softmax(scores, causal_mask(L, L))", "scores"),
            ("one head zeroed", 'f"layers.{layer}.W" in name', 'f"layers.{layer}.gone" in name'),
            ("the mean of the heads", "max(previous)", "np.mean(previous)"),
            ("a list of heads", "float(max(previous))", "list(previous)"),
        ),
    ],
    "b3_2": mutants(
        VARIANT,
        ("always with the mask", "        if mask:\n    ", ""),
        ("positions stay on", "positions=positions", "positions=True"),
        ("never with the mask", "if mask:", "if False:"),
    ),
}  # fmt: skip

# Wrong numbers and letters of questions whose other tests train for seconds: (test cell, name of the answer, values).
WRONG_VALUES = [
    ("q2_4_fewest_test", "fewest_layers", (1, 3, 4, 2.0, None)),
    ("b3_2_order_test", "order_without_positions", ("a", "b", "c", None)),
    ("b3_2_leak_test", "answers_without_mask", ("a", "b", "d", None)),
]
RIGHT_VALUES = [
    ("q2_4_fewest_test", "fewest_layers", 2),
    ("b3_2_order_test", "order_without_positions", "d"),
    ("b3_2_leak_test", "answers_without_mask", "c"),
]
