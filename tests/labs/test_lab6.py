"""Lab 6: every known answer of associative recall, what the lab gives its students, and what they are told."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from grading.demo_lab import with_answers
from labs import lab6_attention_answers, lab6_recall_answers, lab6_training_answers
from labs.sources import SOURCES, judge, lab

import rooflab as rl
from rooflab.grading import measure
from rooflab.grading.judge.judge import compiled
from rooflab.labs import lab6
from rooflab.testing import to_float64

SOURCE = next(path for path in SOURCES if path.name == "lab6")


def references(*keys):
    """What the set-up cell and reference answers define."""
    defined = {}
    for cell in lab(SOURCE).cells:
        if cell.role == "setup" or cell.key in keys:
            exec(cell.source, defined)
    return defined


def attention_float64(x, Wq, Wk, Wv, Wo, heads):
    """Causal self-attention as its formula says."""
    x, Wq, Wk, Wv, Wo = map(to_float64, (x, Wq, Wk, Wv, Wo))
    D_h, out = Wq.shape[1] // heads, 0.0
    for head in range(heads):
        part = slice(head * D_h, (head + 1) * D_h)
        scores = (x @ Wq[:, part]) @ (x @ Wk[:, part]).swapaxes(1, 2) / math.sqrt(D_h)
        weights = np.exp(scores) * np.tri(x.shape[1])
        out = out + weights / weights.sum(-1, keepdims=True) @ (x @ Wv[:, part]) @ Wo[part]
    return out


def rows_of(seed, rows=1000):
    return lab6.recall_rows(np.random.default_rng(10**6 + seed), rows)


def trained(layers, seed, attention=lab6.fused_attention, until=lab6.STEPS, **options):
    """A model after so many steps of the recipe."""
    model = lab6.RecallModel(layers, attention, seed=seed, **options)
    for step, _ in lab6.training(model, lab6.recall_rows, seed=seed):
        if step == until:
            break
    return model


# The task and the model


def test_rows_are_what_2_1_asks_for():
    """The only difference is that they are made by rl operations, which the tests refuse."""

    def recall_batch(*arguments):
        return tuple(one.numpy() for one in lab6.recall_rows(*arguments))

    def count(fn, *arguments, through=None):
        return SimpleNamespace(by_op={}, value=through(fn, *arguments) if through else fn(*arguments))

    scope = references() | {"recall_batch": recall_batch, "measure": SimpleNamespace(count=count, draw=measure.draw)}
    for cell in lab(SOURCE).tests("q2_1"):
        exec(compiled(cell), scope)


def test_the_same_state_gives_the_same_rows_and_moves_on():
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first, again = lab6.recall_rows(one, 5), lab6.recall_rows(other, 5)
    assert first[0].tolist() == again[0].tolist() and first[1].tolist() == again[1].tolist()
    assert lab6.recall_rows(one, 5)[0].tolist() != first[0].tolist()


@pytest.mark.parametrize(("layers", "parameters"), [(1, 22144), (2, 38592), (3, 55040), (4, 71488)])
def test_parameters(layers, parameters):
    assert lab6.RecallModel(layers, lab6.fused_attention).num_parameters() == parameters
    assert references("q2_3")["recall_parameters"](layers, 64, 32, 24) == parameters


def test_guessing():
    known = references("q2_2")
    assert known["accuracy_tokens"] == 1 / 16 and known["loss_tokens"] == pytest.approx(2.7726, abs=5e-5)
    assert known["accuracy_seen"] == 1 / 8 and known["loss_seen"] == pytest.approx(2.0794, abs=5e-5)
    assert known["accuracy_shown"] == pytest.approx(0.3397, abs=5e-5)


def test_the_first_weights_are_those_of_the_recipe():
    model, again = (lab6.RecallModel(4, lab6.fused_attention, seed=2) for _ in range(2))
    state = model.state_dict()
    assert all(state[name].tolist() == one.tolist() for name, one in again.state_dict().items())
    gains = [one for name, one in state.items() if name.endswith("gain")]
    assert len(gains) == 5 and all(set(gain.tolist()) == {1.0} for gain in gains)
    numbers = np.concatenate([one.numpy().ravel() for name, one in state.items() if not name.endswith("gain")])
    assert numbers.std() == pytest.approx(0.1, rel=0.01) and abs(numbers.mean()) < 0.002
    other = lab6.RecallModel(4, lab6.fused_attention, seed=3).state_dict()
    assert other["head"].tolist() != state["head"].tolist()


def test_the_model_is_the_one_of_the_text():
    model, (tokens, _) = lab6.RecallModel(2, lab6.fused_attention, seed=1), rows_of(0, 3)
    w = {name: one.numpy().astype(np.float64) for name, one in model.state_dict().items()}

    def norm(x, gain):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain

    x = w["embedding"][tokens.numpy()] + w["positions"]
    for layer in ("layers.0", "layers.1"):
        h = norm(x, w[f"{layer}.gain"])
        x = x + attention_float64(h, *(w[f"{layer}.{name}"] for name in ("Wq", "Wk", "Wv", "Wo")), 2)
    np.testing.assert_allclose(model(tokens).detach().numpy(), norm(x, w["gain"]) @ w["head"], atol=2e-5)


def test_the_recipe_of_the_optimizer(monkeypatch):
    seen = []

    class Spy(lab6.AdamW):
        def step(self):
            (group,) = self.param_groups
            total = math.sqrt(sum((one.grad.numpy() ** 2).sum() for one in group["params"]))
            seen.append((group["lr"], (group["betas"], group["eps"], group["weight_decay"]), total))

    monkeypatch.setattr(lab6, "AdamW", Spy)
    model, drawn = lab6.RecallModel(1, lab6.fused_attention), []

    def batch(rng, rows):
        drawn.append(lab6.recall_rows(rng, rows))
        return drawn[-1]

    steps = [step for step, loss in lab6.training(model, batch, steps=80) if math.isfinite(loss)]
    assert steps == list(range(1, 81)) and {tokens.shape for tokens, _ in drawn} == {(64, 24)}
    assert drawn[0][0].tolist() != drawn[1][0].tolist()
    rates = [rate for rate, *_ in seen]
    assert rates[:11] == pytest.approx([3e-3 * min(step / 10, 1) for step in range(1, 12)])
    assert rates[59] == pytest.approx(3e-3) and rates[69] == pytest.approx(1.53e-3) and rates[79] == pytest.approx(6e-5)
    assert all(options == ((0.9, 0.98), 1e-8, 0.0) for _, options, _ in seen)
    assert all(total < 1.0001 for *_, total in seen)


@pytest.mark.parametrize("heads, D_h", [(2, 4), (1, 6), (3, 2)])
def test_the_librarys_attention_is_that_of_the_formula(heads, D_h):
    inputs = references()["make_inputs"](2, 9, 8, heads, D_h)
    exact = attention_float64(*inputs, heads)
    np.testing.assert_allclose(lab6.fused_attention(*inputs, heads).cpu().numpy(), exact, atol=1e-5)
    one = attention_float64(*inputs, 1)
    assert heads == 1 or abs(one - exact).max() > 1e-3


def test_maps_are_attention_weights_and_leave_the_model_as_it_was():
    model, (tokens, _) = lab6.RecallModel(2, lab6.fused_attention), rows_of(0, 6)
    before = model(tokens).tolist()
    maps = lab6.attention_maps(model, tokens)
    assert [one.shape for one in maps] == [(6, 2, 24, 24)] * 2 and model(tokens).tolist() == before
    for one in maps:
        np.testing.assert_allclose(one.sum(-1), 1, atol=1e-5)
        assert (one[..., np.triu(np.ones((24, 24), bool), 1)] == 0).all()
    state = model.state_dict()
    x = state["embedding"].numpy()[tokens.numpy()] + state["positions"].numpy()
    h = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    q, k = (h @ state[f"layers.0.{name}"].numpy()[:, 32:] for name in ("Wq", "Wk"))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(32) + np.triu(np.full((24, 24), -np.inf), 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(maps[0][:, 1], weights / weights.sum(-1, keepdims=True), atol=1e-5)


def test_accuracy_is_over_all_tokens():
    class Fixed:
        placed = staticmethod(lambda array: rl.tensor(np.asarray(array)))

        def __call__(self, tokens):
            logits = np.zeros((1, 6, 8))
            logits[0, 4, 5], logits[0, 5, 1], logits[0, 5, 6] = 1, 2, 1  # a value, then a key before a value
            return rl.tensor(logits)

    assert lab6.recall_accuracy(Fixed(), np.zeros((1, 6), int), np.array([[5, 6]])) == 0.5


def test_once_calls_a_function_once_for_the_same_arguments():
    calls = []

    def train(*args):
        calls.append(args)
        return {"accuracy": len(calls)}

    assert lab6.once(train, 1, 0) is lab6.once(train, 1, 0) and calls == [(1, 0)]
    assert lab6.once(train, 2, 0) is not lab6.once(train, 1, 0) and calls == [(1, 0), (2, 0)]

    def anew(*args):
        return train(*args)

    assert lab6.once(anew, 1, 0) == {"accuracy": 3}


# What training finds. Each of these takes seconds: one seed a number of layers


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "seed", "until"), [(2, 100, 150), (3, 101, 250), (4, 102, 300)])
def test_two_layers_and_more_recall(layers, seed, until):
    assert lab6.recall_accuracy(trained(layers, seed, until=until), *rows_of(seed)) >= 0.9


@pytest.fixture(scope="module")
def one_layer():
    return trained(1, 103)


@pytest.mark.slow
def test_one_layer_guesses_among_the_values(one_layer):
    tokens, targets = rows_of(103)
    assert 0.1 <= lab6.recall_accuracy(one_layer, tokens, targets) <= 0.2
    with rl.no_grad():
        logits = one_layer(tokens)[:, 16:].reshape(-1, 32)
    assert rl.cross_entropy(logits, targets.reshape(-1)).item() == pytest.approx(math.log(8), abs=0.05)


@pytest.mark.slow
def test_one_layer_looks_at_every_value_alike(one_layer):
    tokens, _ = rows_of(103)
    (maps,), rows = lab6.attention_maps(one_layer, tokens), tokens.numpy()
    each = maps[:, :, 16:, 1:16:2].mean(axis=(0, 2))  # heads, values
    assert each.min() > 0.11 and each.max() < 0.135
    assert (abs(each.mean(axis=1) - 0.1225) < 0.0025).all()  # of either head
    belongs = rows[:, 16:, None] == rows[:, None, 0:16:2]
    assert (maps[:, :, 16:, 0:16:2] * belongs[:, None]).sum(3).mean() < 0.01
    answer = references("q2_5")["mass_on_each_value"]
    assert answer == pytest.approx(each.mean(), abs=0.003)


@pytest.mark.slow
def test_two_layers_are_a_circuit():
    scope = references("q1_1", "q1_2", "q2_1", "q2_4", "q3_1")
    found = scope["circuit"](trained(2, 104, until=200).state_dict())
    assert 0.62 <= found["value_to_key"] <= 0.97 and 0.79 <= found["query_to_value"] <= 1
    assert found["without_layer_1"] <= 0.2 and found["without_layer_2"] <= 0.2


@pytest.mark.slow
def test_small_first_weights_learn_nothing(monkeypatch):
    monkeypatch.setattr(lab6, "STD", 0.02)
    model = trained(2, 0)
    assert lab6.recall_accuracy(model, *rows_of(0)) <= 0.2


def test_queries_in_the_pairs_order_are_answered_by_place():
    """So one layer answers over 90 % by step 60, and 2.1 must refuse such rows."""
    scope = {"np": np}
    exec(dict(lab6_recall_answers.WRONG["q2_1"])["queries in the pairs' order"], scope)
    in_order, model = scope["recall_batch"], lab6.RecallModel(1, lab6.fused_attention)
    for step, _ in lab6.training(model, in_order):
        if step == 60:
            break
    assert lab6.recall_accuracy(model, *in_order(np.random.default_rng(9), 500)) > 0.9


# Answers that one question holds and another grades


@pytest.mark.parametrize(("key", "name", "values"), lab6_training_answers.WRONG_VALUES)
def test_wrong_values_fail(key, name, values):
    cell = next(cell for cell in lab(SOURCE).cells if cell.key == key)
    for value in values:
        with pytest.raises(AssertionError, match=r"[a-z]+ "):
            exec(compiled(cell), judge(SOURCE).trusted | {name: value})


@pytest.mark.parametrize(("key", "name", "value"), lab6_training_answers.RIGHT_VALUES)
def test_right_values_pass(key, name, value):
    cell = next(cell for cell in lab(SOURCE).cells if cell.key == key)
    exec(compiled(cell), judge(SOURCE).trusted | {name: value})


@pytest.mark.slow
@pytest.mark.parametrize(
    "label",
    ["scale of D", "no mask", "heads split without transpose", "softmax over the queries", "no Wo"],
)
def test_attention_that_is_wrong_fails_in_training_too(label, monkeypatch):
    """The short trainings notice it, by the first loss of a model with right attention."""
    answers = dict(lab6_attention_answers.WRONG["q1_2"])
    question = lab(SOURCE)
    short = [cell for cell in question.tests("q2_4") if cell.key == "q2_4_test"]
    monkeypatch.setattr(type(question), "tests", lambda self, q: short if q == "q2_4" else [])
    monkeypatch.setattr(type(question), "needs", lambda self, q: {"q1_1", "q1_2", "q2_1", "q2_4"})
    result = judge(SOURCE).grade_question("q2_4", with_answers(question, {"q1_2": answers[label]}))
    assert result.earned == 0 and "is causal_attention right?" in result.tests[0].message
