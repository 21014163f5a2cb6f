"""Lab 4, Parts 4 and 5: the known answers, worked out here; the distribution that a speculative step gives; what the
runtime counts; the small language models and the loop that decodes with them.
"""

from itertools import product

import numpy as np
import pytest
from grading.demo_lab import with_answers
from labs.lab4_speculative_answers import WRONG
from labs.sources import SOURCES, judge, lab

import rooflab as rl
from rooflab.grading.lab.repair import reference
from rooflab.labs.lab4_speculative import greedy_step, plot_speedup, speculate
from rooflab.labs.lab4_tiny_lm import ALPHABET, CONTEXT, TinyCache, TinyLM, encode, story, train

DTYPES = {2: "float16", 4: "float32", 8: "float64"}


@pytest.fixture(scope="module")
def given():
    """What the set-up cells and all reference answers define."""
    whole = reference(lab(next(path for path in SOURCES if path.name == "lab4")))
    defined = {}
    for cell in whole.cells:
        if cell.kind == "code" and cell.role in ("setup", "solution"):
            exec(cell.source, defined)
    return defined


def test_a_mistake_in_the_tokens_costs_its_points_there_alone():
    source = next(path for path in SOURCES if path.name == "lab4")
    ((_, code),) = [answer for answer in WRONG["q4_2"] if answer[0] == "all or nothing of each"]
    result = judge(source).grade_question("q4_2", with_answers(lab(source), {"q4_2": code}))
    assert [test.earned for test in result.tests] == [0, 1, 1, 1]


# 4.1


def test_a_decode_step_on_a_t4(given):
    times = given["decode_times"](1024)
    assert times["weights"] == pytest.approx(9.83296)
    assert times["other"] == pytest.approx(0.0430, abs=5e-5)
    assert times["compute"] == pytest.approx(0.05029, abs=5e-6)
    assert times["cache"] == pytest.approx(1.049, abs=5e-4)
    assert max(("weights", "other", "compute"), key=times.get) == given["largest"] == "weights"
    same = given["decode_times"](given["cache_equals_weights"])
    assert given["cache_equals_weights"] == 9602.5 and same["cache"] == pytest.approx(same["weights"])


@pytest.mark.parametrize("L", [1, 7, 1024, 4096])
def test_the_times_of_a_decode_step_add_up_to_the_model(given, L):
    times, gpu = given["decode_times"](L), given["T4"]
    moved = sum(times[name] for name in ("weights", "cache", "other")) * gpu.byte_s / 1e3
    assert moved == pytest.approx(given["decode_model_bytes"](1, L, 1600, 25, 48, 2))
    assert moved == pytest.approx(2949888000 + 3072000 + 316800 * L)
    assert times["compute"] * gpu.flop_s / 1e3 == pytest.approx(given["decode_model_flops"](1, L, 1600, 25, 48))


def test_eight_bits_shorten_a_decode_step_the_most(given):
    times = given["decode_times"](1024)
    saved = {"a": 0, "b": times["weights"] / 2, "c": times["other"], "d": times["cache"] / 2}
    assert max(saved, key=saved.get) == given["what_helps"]


# 4.2


def test_speculation_by_its_formulas(given):
    tokens, speedup, best = (given[name] for name in ("tokens_per_pass", "speculative_speedup", "best_gamma"))
    assert tokens(4, 0.8) == pytest.approx(3.3616)
    assert speedup(4, 0.8, 0.05) == pytest.approx(2.801, abs=5e-4)
    assert speedup(4, 0, 0.05) == pytest.approx(0.833, abs=5e-4)
    assert [best(0.8, 0.05), best(0.8, 0.2), best(0.6, 0.2)] == [8, 4, 2]


@pytest.mark.parametrize("alpha", [0, 0.25, 0.8, 1])
@pytest.mark.parametrize("gamma", [1, 2, 4])
def test_tokens_a_pass_by_all_outcomes(given, gamma, alpha):
    mean = 0
    for outcome in product([True, False], repeat=gamma):
        accepted = (*outcome, False).index(False)
        mean += np.prod([alpha if good else 1 - alpha for good in outcome]) * (accepted + 1)
    assert given["tokens_per_pass"](gamma, alpha) == pytest.approx(mean)


def test_a_pass_of_so_many_tokens_is_compute_bound(given):
    machine, tokens = given["T4"].machine, given["tokens_to_compute_bound"]
    weights = 48 * (12 * 1600**2 + 5 * 1600)
    bounds = [rl.roofline.bound(machine, 2 * weights * t / (2 * weights), "float16") for t in (tokens - 1, tokens)]
    assert tokens == 217 and bounds == ["memory", "compute"]


# b4.3


def test_acceptance_is_what_both_have_in_common(given):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    assert given["expected_acceptance"](p, q) == pytest.approx(0.7)
    one_by_one = sum(q[token] * min(1, p[token] / q[token]) for token in range(3))
    assert one_by_one == pytest.approx(0.7)


@pytest.mark.parametrize(
    "p, q",
    [
        ((3, 3, 2, 0), (2, 2, 4, 0)),
        ((0, 5, 3, 0), (8, 0, 0, 0)),
        ((1, 2, 4, 1), (1, 2, 4, 1)),
        ((4, 2, 2, 0), (4, 0, 0, 4)),
    ],
)
def test_the_first_token_of_a_step_is_distributed_as_p(given, p, q):
    """Over every draft and an even grid of numbers, in whole eighths."""
    p, q, found = np.array([p, (2, 2, 2, 2)]) / 8, np.array([q]) / 8, np.zeros(4)
    middles, accepted = (np.arange(8) + 0.5) / 8, 0.0
    for draft, first, last in product(range(4), middles, middles):
        tokens = given["speculative_step"](p, q, [draft], np.array([first, last]))
        found[tokens[0]] += q[0, draft] / 64
        accepted += (len(tokens) - 1) * q[0, draft] / 64
    np.testing.assert_allclose(found, p[0])
    assert accepted == pytest.approx(given["expected_acceptance"](p[0], q[0]))


def test_a_step_on_certain_models_is_the_greedy_one(given):
    draw = np.random.default_rng(0)
    for _ in range(50):
        p, q = (np.eye(3)[draw.integers(0, 3, length)] for length in (5, 4))
        drafts = [int(token) for token in q.argmax(-1)]
        greedy = greedy_step(p, q, drafts, draw.random(5))
        assert given["speculative_step"](p, q, drafts, draw.random(5)) == greedy


# 5.1


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("B, L, D, H, n", [(2, 16, 32, 4, 4), (1, 1, 1, 1, 4), (3, 5, 14, 7, 8), (1, 33, 8, 1, 2)])
def test_the_runtime_less_paper(given, B, L, D, H, n, device):
    q, k, v = (rl.zeros(B, H, L, D // H, dtype=DTYPES[n], device=device) for _ in range(3))
    visible = rl.attention_mask(L, L, device=device)
    with rl.count() as c:
        given["unfused_mha"](q, k, v, visible)
    assert c.launches == 5
    assert c.flops - given["mha_flops"](B, L, D, H) == given["extra_flops"](B, L, D, H) == H * B * L**2
    moved = c.bytes_read + c.bytes_written - given["mha_bytes"](B, L, D, H, n)
    assert moved == given["extra_bytes"](B, L, D, H, n) == 2 * n * H * B * L**2 + L**2
    assert {name: op.flops for name, op in c.by_op.items() if name != "matmul"} == {
        "mul": H * B * L**2, "where": 0, "softmax": 5 * H * B * L**2
    }  # fmt: skip


def test_the_runtime_less_paper_at_the_sheets_size(given):
    assert given["extra_flops"](2, 16, 32, 4) == 2048
    assert given["extra_bytes"](2, 16, 32, 4, 4) == 16640


def test_the_five_operations_are_attention(given):
    rl.manual_seed(0)
    q, k, v = (rl.randn(2, 3, 9, 4) for _ in range(3))
    for causal, visible in ((True, rl.attention_mask(9, 9)), (False, None)):
        expected = rl.attention(q, k, v, is_causal=causal).numpy()
        np.testing.assert_allclose(given["unfused_mha"](q, k, v, visible).numpy(), expected, atol=1e-6)


def test_fused_attention_in_the_setting_of_1_4_5(given):
    B, L, D, H = 16, 16384, 4096, 16
    q, k, v = (rl.empty(B, H, L, D // H, dtype="float16", device="meta") for _ in range(3))
    for is_causal, intensity in ((False, 8232), (True, 4116)):
        with rl.count() as c:
            rl.attention(q, k, v, is_causal=is_causal)
        assert c.launches == given["fused_launches"] == 1
        assert c.bytes_read + c.bytes_written == given["fused_bytes"](B, L, D, H, 2) == 4 * 2 * B * L * D
        assert c.flops / given["fused_bytes"](B, L, D, H, 2) == pytest.approx(intensity, rel=1e-4)
        assert rl.roofline.bound(given["A100"].machine, intensity, "float16") == given["fused_bound"]
        if not is_causal:
            assert c.flops == given["mha_flops"](B, L, D, H)
    assert given["fused_intensity"] == 8232


# The stack that is timed


@pytest.fixture
def stack(given):
    """What the cell of the stack defines, on the CPU."""
    cells = lab(next(path for path in SOURCES if path.name == "lab4")).cells
    (source,) = (cell.source for cell in cells if "def make_stack" in cell.source)
    defined = {**given, "device": "cpu"}
    exec(source, defined)
    return defined


def test_a_step_with_a_cache_is_the_last_token_of_a_whole_pass(stack):
    rl.manual_seed(0)
    (weights, *_), x = stack["make_stack"]("cpu"), rl.randn(2, 7, stack["D"])
    whole = stack["layer"](x, weights, None, rl.attention_mask(7, 7)).numpy()
    keys = [rl.linear(x, weights[name]).reshape(2, 7, stack["H"], -1).transpose(1, 2) for name in "kv"]
    cache = [rl.cat([one[:, :, :6], rl.zeros(2, stack["H"], 1, one.shape[-1])], 2) for one in keys]
    step = stack["layer"](x[:, 6:], weights, cache, None).numpy()
    np.testing.assert_allclose(step, whole[:, 6:], atol=1e-5)


@pytest.mark.parametrize("B, L", [(1, 32), (64, 1024)])
def test_gpt2_xl_as_it_runs_is_close_to_paper(given, stack, B, L):
    stack |= {"D": 1600, "H": 25, "layers": 48, "dtype": "float16"}
    layers = stack["make_stack"]("meta")
    assert sum(weight.nbytes for layer in layers for weight in layer.values()) == 2949888000
    for has_cache, paper in ((False, "model"), (True, "decode_model")):
        run, cache_bytes = stack["make_case"](layers, B, L, has_cache, "meta")
        with rl.count() as c:
            run()
        assert c.flops == pytest.approx(given[f"{paper}_flops"](B, L, 1600, 25, 48), rel=1e-3)
        ratio = (c.bytes_read + c.bytes_written) / given[f"{paper}_bytes"](B, L, 1600, 25, 48, 2)
        assert 1 < ratio < (1.1 if has_cache else 1.5)
        assert cache_bytes == has_cache * given["kv_cache_bytes"](B, L, 1600, 48, 2)


# b5.2


def test_what_a_token_keeps(given):
    kept = {name: given["kv_bytes_per_token"](config) for name, config in given["CONFIGS"].items()}
    assert kept == {"GPT-2 XL": 307200, "Gemma 3 270M": 18432, "Llama 3 8B": 131072}
    assert kept["GPT-2 XL"] == given["kv_cache_bytes"](1, 1, 1600, 48, 2)
    cache = rl.nn.KVCache(rl.nn.GEMMA3_270M, 1, 100, dtype="bfloat16", device="meta")
    assert cache.nbytes == 100 * kept["Gemma 3 270M"]


def test_the_configurations_are_those_of_the_models(given):
    ours, gemma = given["CONFIGS"]["Gemma 3 270M"], rl.nn.GEMMA3_270M
    assert ours == {name: getattr(gemma, name) for name in ours}
    llama = given["CONFIGS"]["Llama 3 8B"]
    D, layers, kv = llama["hidden_size"], llama["num_hidden_layers"], llama["num_key_value_heads"] * llama["head_dim"]
    a_layer = 2 * D * D + 2 * D * kv + 3 * D * 14336 + 2 * D
    assert 2 * 128256 * D + layers * a_layer + D == 8030261248
    users = given["llama_batch"]
    cache = 8192 * given["kv_bytes_per_token"](llama)
    assert users == 15 and (users - 1) * cache <= 2 * 8030261248 < users * cache


# The small language models


@pytest.fixture(scope="module")
def models():
    text = story(100)
    return train(text, width=32, layers=2, heads=2, steps=200)[0], train(text, width=16, layers=1, heads=1, steps=60)[0]


PROMPTS = ["the old fox ", "the small owl "]


def test_a_text_grows_from_a_seed():
    assert story(50) == story(50) != story(50, seed=1)
    assert story(50).count(".") == 50 and set(story(200)) <= set(ALPHABET)
    assert "".join(ALPHABET[token] for token in encode(story(3))) == story(3)


def test_training_learns_and_is_the_same_again():
    model, losses = train(story(100), width=16, layers=1, heads=2, steps=40)
    again, same = train(story(100), width=16, layers=1, heads=2, steps=40)
    other = train(story(100), width=16, layers=1, heads=2, steps=40, seed=1)[1]
    assert losses == same != other
    for name, weight in model.state_dict().items():
        assert (weight.numpy() == again.state_dict()[name].numpy()).all(), name
    assert losses[0] == pytest.approx(np.log(len(ALPHABET)), abs=0.05) and losses[-1] < 3.1


@pytest.mark.slow
def test_a_cache_changes_nothing_and_can_forget(models):
    model, tokens = models[0], np.array([encode("the old fox sees the river.")])
    with rl.no_grad():
        whole = model(rl.tensor(tokens)).numpy()
        cache = TinyCache(model)
        model(rl.tensor(tokens[:, :5]), cache)
        model(rl.tensor(tokens[:, :9]), cache)  # in vain
        cache.length = 5
        rest = model(rl.tensor(tokens[:, 5:]), cache).numpy()
    assert cache.length == tokens.shape[1]
    np.testing.assert_allclose(rest, whole[:, 5:], atol=1e-5)


@pytest.mark.parametrize("gamma", [1, 3, 8])
@pytest.mark.slow(id=["1"])
def test_greedy_speculation_writes_what_the_target_writes(models, gamma):
    plain = speculate(*models, PROMPTS, 40, 0)
    made = speculate(*models, PROMPTS, 40, gamma)
    assert plain.passes == plain.written == 80 and plain.tokens_per_pass == 1 and plain.bytes_read["draft"] == 0
    assert 80 <= made.written <= 80 + 2 * gamma and made.written == made.accepted + made.passes
    for text, wanted, prompt in zip(made.texts, plain.texts, PROMPTS, strict=True):
        assert text.startswith(prompt) and text[: len(wanted)] == wanted


def test_a_model_that_drafts_for_itself_is_always_right(models):
    target, draft = models
    made = speculate(target, target, PROMPTS, 40, 3)
    assert made.acceptance == 1 and made.tokens_per_pass == 4
    assert speculate(target, draft, PROMPTS, 40, 3).acceptance < 1


@pytest.mark.slow
def test_sampled_drafts_are_accepted_as_often_as_expected(given, models):
    prompts = PROMPTS * 8
    made = speculate(*models, prompts, 60, 3, given["speculative_step"], temperature=1.0)
    expected = [given["expected_acceptance"](p, q) for p, q in made.tested]
    spread = np.sqrt(sum(one * (1 - one) for one in expected)) / len(expected)
    assert len(expected) > 500 and spread < 0.03
    assert made.acceptance == pytest.approx(np.mean(expected), abs=4 * spread)
    assert made.texts == speculate(*models, prompts, 60, 3, given["speculative_step"], temperature=1.0).texts


def test_bytes_are_those_that_the_runtime_counts(models):
    target, draft = models
    made, cache = speculate(target, draft, ["the "], 1, 0), TinyCache(target)
    with rl.no_grad(), rl.count() as c:
        target(rl.tensor([encode("the ")]), cache)
    assert made.passes == 1 and made.bytes_read == {"target": c.bytes_read, "draft": 0}
    assert target.weight_bytes < c.bytes_read < 2 * target.weight_bytes
    assert made.bytes_per_token == c.bytes_read


def test_what_speculate_refuses(models):
    with pytest.raises(ValueError, match=f"at most {CONTEXT} together"):
        speculate(*models, ["the "], CONTEXT, 2)
    for tokens in ([], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="expected 1 to 3 tokens"):
            speculate(*models, ["the "], 9, 2, lambda p, q, drafts, uniforms, tokens=tokens: tokens)


def test_the_plot_marks_the_best():
    figure = plot_speedup({"one": {1: 1.2, 2: 1.5, 3: 1.4}, "two": {1: 0.9, 2: 0.8, 3: 0.7}})
    (axes,) = figure.axes
    marks = [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() not in (None, "None", "")]
    assert marks == [(2, 1.5), (1, 0.9)]
    assert [note.get_text() for note in axes.texts] == ["1.50x at 2", "0.90x at 1"]
    assert TinyLM(width=8, layers=1, heads=1).weight_bytes == 4 * (29 * 8 + 12 * 64 + 5 * 8 + 3 * 8)
