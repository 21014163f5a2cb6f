"""What generating text with Gemma 3 refuses: tokens, scores, models and configurations that are not its own."""

import random

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import Gemma3Config, Gemma3ForCausalLM, KVCache, TransformerConfig, TransformerLM, generate, sample

SMALL = Gemma3Config(
    hidden_size=32, intermediate_size=32, num_attention_heads=2, head_dim=16, num_hidden_layers=1, vocab_size=20
)
OTHER = TransformerConfig(20, 8, 32, 1, 2, 32)


@pytest.mark.parametrize(
    "tokens",
    [
        rl.tensor([[1]]),
        rl.tensor([[1.0], [2.0]]),
        rl.tensor([[np.nan], [1.0]]),
        rl.tensor([[True], [False]]),
        rl.tensor(1),
        rl.tensor([1, 2]),
        [[1], [2]],
    ],
)
def test_a_captured_step_takes_the_tokens_that_a_step_takes(tokens):
    model, cache = Gemma3ForCausalLM(SMALL, dtype="float32"), KVCache(SMALL, 2, 4, dtype="float32")
    step = model.capture_decode(cache, 2)
    with pytest.raises(ValueError, match=r"^\[DecodeGraph\] tokens: expected int64 or int32 \(B=2, 1\), got"):
        step(tokens)
    assert cache.length == 0
    step(rl.tensor([[1], [2]], dtype="int32"))
    assert cache.length == 1


def test_other_models_and_configurations_are_one_sentence():
    rng, prompt = np.random.default_rng(0), rl.tensor([[1, 2]])
    for call, says in (
        (lambda: generate(TransformerLM(OTHER), prompt, 2), r"[generate] model: expected a Gemma3ForCausalLM, got T"),
        (lambda: generate(None, prompt, 2), "[generate] model: expected a Gemma3ForCausalLM, got None"),
        (lambda: KVCache(OTHER, 1, 2), "[KVCache] config: expected a Gemma3Config, got TransformerConfig"),
        (lambda: Gemma3ForCausalLM(OTHER), "[Gemma3Model] config: expected a Gemma3Config, got TransformerConfig"),
        (lambda: TransformerLM(SMALL), "[TransformerLM] config: expected a TransformerConfig, got Gemma3Config"),
        (lambda: sample(np.zeros((1, 3)), 0), "[sample] rng: expected a numpy.random.Generator, got int"),
        (
            lambda: sample(np.zeros((1, 3)), rl.Generator()),
            "[sample] rng: expected a numpy.random.Generator, got rooflab",
        ),
        (
            lambda: sample(np.zeros((1, 3)), random.Random(0)),
            "[sample] rng: expected a numpy.random.Generator, got Random",
        ),
        (lambda: sample(np.zeros((1, 3)), random), "[sample] rng: expected a numpy.random.Generator, got module"),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value).startswith(says)
    with pytest.raises(ValueError, match=r"^\[sample\] logits: expected real numbers, got complex ones$"):
        sample(np.zeros((1, 3), complex), rng)


@pytest.mark.parametrize("score", [np.nan, -np.inf])
@pytest.mark.parametrize("graph", [True, False])
def test_a_likeliest_token_of_scores_that_are_none_is_refused(score, graph):
    model, prompt = Gemma3ForCausalLM(SMALL, dtype="float32"), rl.tensor([[1, 2]])
    assert generate(model, prompt, 4, graph=graph).shape == (1, 6)
    model._head = lambda x: rl.full((x.shape[0], x.shape[1], 20), score)
    with pytest.raises(ValueError, match=r"^\[generate\] model: a score is NaN, or every score of a token is -inf$"):
        generate(model, prompt, 4, graph=graph)


def test_generating_without_memory_reads_no_score():
    model = Gemma3ForCausalLM(SMALL, device=rl.meta("H200"))
    assert generate(model, rl.zeros(1, 2, dtype="int64", device=model.device), 4, graph=False).shape == (1, 6)


def test_a_cache_in_another_dtype_is_refused_under_autocast_too():
    """A prompt could be read into it, and no token after that."""
    model, cache = Gemma3ForCausalLM(SMALL, dtype="float32"), KVCache(SMALL, 1, 4)
    with rl.autocast("bfloat16"):
        with pytest.raises(ValueError, match=r"cache: expected the dtype of the model, float32, got bfloat16$"):
            model.prefill(rl.tensor([[1, 2]]), cache)
        with pytest.raises(ValueError, match=r"^\[KVCache\] x: expected bfloat16 on cpu, got float32 on cpu$"):
            cache.begin(2, rl.ones(1, 2, 32))
