"""Lab 1's passes through Gemma-3 layers: their shapes, what they cost, and a cache that grows by one token a step."""

from dataclasses import replace

import pytest

import rooflab as rl
from rooflab.labs import lab1
from rooflab.testing import assert_close

SMALL = {
    **lab1.GEMMA3_270M_CONFIG,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 3,
    "sliding_window": 6,
    "sliding_window_pattern": 3,
}
ONE = {**SMALL, "num_hidden_layers": 1}


def layers_of(config, **where):
    sizes = rl.nn.Gemma3Config(**config)
    return [rl.nn.Gemma3DecoderLayer(sizes, i, **where) for i in range(sizes.num_hidden_layers)]


def test_the_configurations_are_those_of_the_library():
    assert rl.nn.Gemma3Config(**lab1.GEMMA3_270M_CONFIG) == rl.nn.GEMMA3_270M
    assert rl.nn.Gemma3Config(**lab1.GEMMA3_PSEUDO_CONFIG) == rl.nn.GEMMA3_PSEUDO
    assert rl.nn.Gemma3Config(**SMALL) == replace(
        rl.nn.GEMMA3_270M, hidden_size=48, intermediate_size=80, num_key_value_heads=2, head_dim=16,
        num_hidden_layers=3, sliding_window=6, sliding_window_pattern=3,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_inputs(dtype, device):
    where = {"dtype": dtype, "device": device}
    made = {
        (2, 7, 48): lab1.create_prefill_inputs(2, 7, SMALL, **where),
        (3, 1, 48): lab1.create_decode_inputs_with_cache(3, SMALL, **where),
        (2, 8, 48): lab1.create_decode_inputs_without_cache(2, 8, SMALL, **where),
    }
    for shape, x in made.items():
        assert (tuple(x.shape), str(x.dtype)) == (shape, dtype)
        assert x.device.startswith(device)
        assert 0.5 < x.float().cpu().numpy().std() < 1.5
    cache = lab1.initialize_kv_cache(2, 9, SMALL, **where)
    assert (len(cache), cache.length, cache.max_length) == (3, 0, 9)
    assert [tuple(k.shape) for k, _ in cache] == [(2, 2, 6, 16), (2, 2, 6, 16), (2, 2, 9, 16)]


def test_each_layer_gets_the_angles_of_its_kind():
    first, second, third = lab1.get_position_embeddings(10, SMALL, dtype="float32")
    assert first is second, "layers of a kind share a pair"
    for (cos, sin), theta in ((first, SMALL["rope_local_base_freq"]), (third, SMALL["rope_theta"])):
        right = rl.nn.RotaryEmbedding(theta, 16, dtype="float32")(0, 10)
        assert_close(cos, right[0])
        assert_close(sin, right[1])


@pytest.mark.parametrize("prompt", [1, 5, 6, 9])
def test_a_text_written_with_the_cache_is_the_one_written_without(prompt, device):
    """Through three layers, two of them with a window that the text outgrows."""
    where = {"dtype": "float32", "device": device}
    layers, positions = layers_of(SMALL, **where), lab1.get_position_embeddings(14, SMALL, **where)
    text = lab1.create_decode_inputs_without_cache(2, 14, SMALL, **where)
    cache = lab1.initialize_kv_cache(2, 14, SMALL, **where)
    read = lab1.multi_layer_prefill_forward(layers, text[:, :prompt], positions, cache)
    assert read.shape == (2, prompt, 48) and cache.length == prompt
    for end in range(prompt + 1, 15):
        written = lab1.multi_layer_decode_forward(layers, text[:, end - 1 : end], positions, cache)
        assert cache.length == cache.position.item() == end, "a step makes the cache longer by exactly one"
        again = lab1.multi_layer_decode_forward(layers, text[:, :end], positions)
        assert_close(written, again, rtol=1e-4, atol=1e-4, name=f"{end} tokens")


def test_one_layer_is_a_stack_of_one():
    (layer,), (positions,) = layers_of(ONE), lab1.get_position_embeddings(8, ONE)
    x, cache = lab1.create_prefill_inputs(2, 7, ONE), lab1.initialize_kv_cache(2, 8, ONE)
    with rl.no_grad():
        expected = layer(x, *(one[:7] for one in positions))
    assert_close(lab1.prefill_forward(layer, x, positions, cache), expected)
    token = lab1.create_decode_inputs_with_cache(2, ONE)
    assert lab1.decode_forward(layer, token, positions, cache).shape == (2, 1, 48)
    assert cache.length == 8
    assert lab1.decode_forward(layer, x, positions).shape == (2, 1, 48)


def test_refusals_leave_the_cache_as_it_was():
    layers, positions = layers_of(SMALL), lab1.get_position_embeddings(9, SMALL)
    cache, token = lab1.initialize_kv_cache(2, 8, SMALL), lab1.create_decode_inputs_with_cache(2, SMALL)
    with pytest.raises(ValueError, match="9 more do not fit"):
        lab1.multi_layer_prefill_forward(layers, lab1.create_prefill_inputs(2, 9, SMALL), positions, cache)
    assert cache.length == 0
    lab1.multi_layer_prefill_forward(layers, lab1.create_prefill_inputs(2, 7, SMALL), positions, cache)
    with pytest.raises(ValueError, match="an empty one, got 7 tokens"):
        lab1.multi_layer_prefill_forward(layers, token, positions, cache)
    with pytest.raises(ValueError, match="one of 1 layers, got 3"):
        lab1.decode_forward(layers[0], token, positions[0], cache)
    with pytest.raises(ValueError, match=r"\(B, 1, D\) with a cache"):
        lab1.multi_layer_decode_forward(layers, lab1.create_prefill_inputs(2, 1, SMALL)[:, [0, 0]], positions, cache)
    assert cache.length == cache.position.item() == 7
    lab1.multi_layer_decode_forward(layers, token, positions, cache)
    before = [k.clone() for k, _ in cache]
    with pytest.raises(ValueError, match="1 more do not fit"):
        lab1.multi_layer_decode_forward(layers, token, positions, cache)
    assert cache.length == cache.position.item() == 8
    for (k, _), old in zip(cache, before, strict=True):
        assert_close(k, old, rtol=0, atol=0)
    cache.reset()
    lab1.multi_layer_prefill_forward(layers, lab1.create_prefill_inputs(2, 8, SMALL), positions, cache)
    assert cache.length == 8


def test_a_wrong_x_is_refused_before_the_cache_is_written_to():
    """The windows are full, so a pass that fails later has overwritten tokens."""
    layers, positions = layers_of(SMALL), lab1.get_position_embeddings(9, SMALL)
    cache, token = lab1.initialize_kv_cache(2, 9, SMALL), lab1.create_decode_inputs_with_cache(2, SMALL)
    lab1.multi_layer_prefill_forward(layers, lab1.create_prefill_inputs(2, 8, SMALL), positions, cache)
    for x, says in (
        (token.float(), "expected bfloat16 on cpu, got float32 on cpu"),
        (token[:1], r"expected \(B=2, L, D=48\), got \(1, 1, 48\)"),
        (token[..., :47], r"expected \(B=2, L, D=48\), got \(2, 1, 47\)"),
    ):
        with pytest.raises(ValueError, match=says):
            lab1.multi_layer_decode_forward(layers, x, positions, cache)
    assert lab1.multi_layer_decode_forward(layers, token, positions, cache).shape == (2, 1, 48)


def test_decode_without_a_cache_does_all_of_the_work_again():
    """No less than a prefill of the same tokens, in every range; with a cache it is one token's."""
    config = {**ONE, "sliding_window_pattern": 1}
    (layer,), (positions,) = layers_of(config), lab1.get_position_embeddings(20, config)
    x, cache = lab1.create_prefill_inputs(2, 20, config), lab1.initialize_kv_cache(2, 20, config)
    with rl.count() as prefill:
        lab1.prefill_forward(layer, x, positions, cache)
    with rl.count() as without:
        lab1.decode_forward(layer, x, positions)
    cache.reset()
    lab1.prefill_forward(layer, x[:, :19], positions, cache)
    with rl.count() as step:
        lab1.decode_forward(layer, x[:, 19:], positions, cache)
    assert {name: part.macs for name, part in without.by_range.items()} == {
        name: part.macs for name, part in prefill.by_range.items()
    }
    assert without.by_range["mlp"].macs == 20 * step.by_range["mlp"].macs
    projections = 2 * 48 * 16 * (4 + 2)
    assert step.by_range["self_attn"].macs == 2 * (projections + 2 * 4 * 16 * 20), "over all twenty keys"


def test_the_crossing_of_b4_2():
    """From 2547 tokens on attention moves more bytes than any other range of a step, as the answer says."""
    config = {**lab1.GEMMA3_270M_CONFIG, "num_hidden_layers": 1, "sliding_window_pattern": 1}
    layer = rl.nn.Gemma3DecoderLayer(rl.nn.Gemma3Config(**config), fused=False, device="meta")
    (positions,) = lab1.get_position_embeddings(2547, config, device="meta")

    def moved(tokens):
        cache = lab1.initialize_kv_cache(1, tokens, config, device="meta")
        prompt = lab1.create_prefill_inputs(1, tokens - 1, config, device="meta")
        lab1.prefill_forward(layer, prompt, positions, cache)
        with rl.count() as c:
            lab1.decode_forward(layer, lab1.create_decode_inputs_with_cache(1, config, device="meta"), positions, cache)
        parts = {name: part.bytes_read + part.bytes_written for name, part in c.by_range.items()}
        attention = parts.pop("self_attn/attn_op")
        return attention, max(value for name, value in parts.items() if name not in ("self_attn", "mlp"))

    (before, other), (after, largest) = moved(2546), moved(2547)
    assert before <= other == largest < after
