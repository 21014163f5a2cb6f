"""gemma3_decode: every rung gives what the layer gives in steps, and writes only the new token's place of the cache."""

import dataclasses

import numpy as np
import pytest

import rooflab as rl
from rooflab import nn
from rooflab._core import _gemma3
from rooflab.specs import unit_roundoff

TINY = nn.Gemma3Config(
    hidden_size=96, intermediate_size=144, num_attention_heads=6, num_key_value_heads=2, head_dim=128, sliding_window=24
)
WIDE = dataclasses.replace(TINY, hidden_size=768, num_attention_heads=11, num_key_value_heads=1)
REAL = nn.GEMMA3_270M
CONFIGS = {"tiny": TINY, "wide": WIDE, "270M": REAL}


def step(config, layer, batch, places, seen, dtype, device, rounded=None, seed=0):
    """The arguments of a step: a layer with random weights and a cache with random contents, rounded to a dtype."""
    rng = np.random.default_rng(seed)

    def numbers(*shape, scale=1.0):
        return rl.tensor(rng.standard_normal(shape) * scale, dtype=rounded or dtype, device=device).to(dtype)

    module = nn.Gemma3DecoderLayer(config, layer, dtype=dtype, device=device)
    with rl.no_grad():
        for name, weight in module.named_parameters():
            weight.copy_(numbers(*weight.shape, scale=0.3 if "norm" in name else weight.shape[-1] ** -0.5))
    shape = (batch, config.num_key_value_heads, places, config.head_dim)
    k, v = numbers(*shape), numbers(*shape)
    rotary = nn.RotaryEmbedding(1e4, config.head_dim, dtype=rounded or dtype, device=device)
    cos, sin = (x.to(dtype) for x in rotary(seen, 1))
    return module, numbers(batch, 1, config.hidden_size), cos, sin, k, v


def decode(module, x, cos, sin, cache, variant=""):
    return _gemma3.decode([_gemma3.DecodeStep(module.native(), cos, sin, cache)], x, variant=variant)


def run(module, x, cos, sin, k, v, seen, variant="", held=False):
    """The result and the contents of the caches afterwards. The given caches stay as they are."""
    k, v = rl.copy(k), rl.copy(v)
    position = rl.tensor([seen], device=x.device)
    cache = _gemma3.KvCache(k, v, position, seen, position + 1 if held else None)
    with rl.no_grad():
        y = decode(module, x, cos, sin, cache, variant)
    return [t.float().cpu().numpy() for t in (y, k, v)]


def check(found, exact, dtype, places, seen):
    """Results and new rows within the roundings of a layer; all other rows to the bit.

    The steps round some sixteen results one after the other, each by up to one unit roundoff of its size. They add up
    like a random walk, which is 4 of the largest, and twice that is allowed. In float32 the sums count more than the
    results: 2048 terms, which are off by sqrt(2048) 2^-24 < 2^-18.
    """
    y, k, v = found
    roundoff = max(unit_roundoff(dtype), 2.0**-20)
    for name, got, right in zip("ykv", found, exact, strict=True):
        assert np.isfinite(got).all(), name
        worst = np.abs(got - right).max() / np.abs(right).max()
        assert worst <= 8 * roundoff, f"{name}: {worst / roundoff:.1f} roundings of the largest"
    assert y.any()
    others = np.arange(places) != seen % places
    for got, right in ((k, exact[1]), (v, exact[2])):
        np.testing.assert_array_equal(got[:, :, others], right[:, :, others])


CASES = [
    ("tiny", 5, 1, 40, 0),
    ("tiny", 5, 3, 40, 17),
    ("tiny", 5, 8, 700, 699),
    ("tiny", 0, 2, 24, 23),
    ("tiny", 0, 2, 24, 61),  # a ring that was overwritten more than twice
    ("wide", 5, 5, 200, 130),
    ("270M", 5, 1, 4096, 4095),
    ("270M", 0, 8, 512, 777),
    ("270M", 5, 4, 300, 16),
    ("tiny", 5, 11, 40, 17),  # more texts than a product takes at a time
    ("270M", 0, 16, 512, 777),
]


@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize(("config", "layer", "batch", "places", "seen"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.slow(
    id=[
        "cpu-float32-270M-5-1-4096-4095",
        "cpu-float32-270M-5-4-300-16",
        "cpu-bfloat16-tiny-5-8-700-699",
        "cpu-bfloat16-270M-5-1-4096-4095",
        "cpu-bfloat16-270M-0-8-512-777",
        "cpu-bfloat16-270M-5-4-300-16",
        "cpu-float32-270M-0-16-512-777",
        "cpu-bfloat16-270M-0-16-512-777",
    ]
)
def test_every_rung_gives_what_the_steps_give(config, layer, batch, places, seen, dtype, device):
    module, *operands = step(CONFIGS[config], layer, batch, places, seen, dtype, device)
    exact_module, *exact_operands = step(CONFIGS[config], layer, batch, places, seen, "float32", "cpu", rounded=dtype)
    exact = run(exact_module, *exact_operands, seen, "v0_composed")
    ran = set()
    for variant in ["", *(rung.name for rung in rl.variants("gemma3_decode", device))]:
        for held in (False, True):
            try:
                found = run(module, *operands, seen, variant, held)
            except ValueError as error:
                if variant and "does not accept these operands" in str(error):
                    continue
                raise
            check(found, exact, dtype, places, seen)
            ran.add(variant)
    assert {"", "v0_composed"} <= ran
    runs_on_a_gpu = device != "cpu" and dtype != "float32" and rl._core._target.of("cuda:0").code.number >= 90
    assert ("v1_one_launch" in ran) == runs_on_a_gpu


@pytest.mark.slow
def test_it_is_one_launch_on_a_gpu_and_counts_what_the_steps_count():
    for target in ("H100 SXM", "H200"):
        device = rl.meta(target)
        module, *operands = step(REAL, 5, 2, 4096, 4000, "bfloat16", device)
        counts = {}
        for variant in ("v1_one_launch", "v0_composed"):
            cache = _gemma3.KvCache(*operands[3:], rl.empty(1, dtype="int64", device=device), 4000)
            with rl.no_grad(), rl.count() as counts[variant]:
                decode(module, *operands[:3], cache, variant)
        one, steps = counts["v1_one_launch"], counts["v0_composed"]
        assert (one.launches, steps.launches, one.ops, steps.ops) == (1, 13, 1, 1)
        assert (one.macs, one.flops) == (steps.macs, steps.flops)
        assert one.bytes_read < steps.bytes_read and one.bytes_written < steps.bytes_written
        x, row = 2 * 2 * REAL.hidden_size, 2 * 2 * 2 * REAL.head_dim  # of both texts; a row of keys and one of values
        weights, angles, position = 2 * module.num_parameters(), 2 * 2 * REAL.head_dim, 8
        assert one.bytes_read == weights + x + angles + position + 4000 * row
        assert one.bytes_written == x + row


def model_and_step(config, batch, seen, dtype, device, rounded=None):
    """A model with random weights, a cache in float32 with random contents, and an x, rounded to a dtype."""
    rng = np.random.default_rng(0)
    rounded = rounded or dtype
    model = nn.Gemma3ForCausalLM(config, dtype="float32").model
    cache = nn.KVCache(config, batch, seen + 8, dtype="float32")
    with rl.no_grad():
        for name, weight in model.named_parameters():
            scale = 0.3 if "norm" in name else 0.05
            weight.copy_(rl.tensor(rng.standard_normal(weight.shape) * scale, dtype=rounded))
        for kept in (x for i in range(len(cache)) for x in cache[i]):
            kept.copy_(rl.tensor(rng.standard_normal(kept.shape), dtype=rounded))
    x = rl.tensor(rng.standard_normal((batch, 1, config.hidden_size)), dtype=rounded)
    return model.to(dtype=dtype, device=device), cache, x.to(dtype).to(device)


def decode_layers(model, cache, x, seen, variant=None, together=False):
    """The layers' result. The given cache stays as it is. With a variant, each layer is a call of its own, or all
    together are one.
    """
    position = rl.tensor([seen], device=x.device)
    angles = [model._rotary_full(seen, 1), model._rotary_sliding(seen, 1)]
    steps = []
    for i, layer in enumerate(model.layers):
        k, v = (kept.to(x.dtype).to(x.device).clone() for kept in cache[i])
        own = angles[model.config.window(i) is not None]
        steps.append(_gemma3.DecodeStep(layer.native(), *own, _gemma3.KvCache(k, v, position, seen)))
    with rl.no_grad():
        if variant is None:
            return _gemma3.forward(steps, x).float().cpu().numpy()
        for call in [steps] if together else [[step] for step in steps]:
            x = _gemma3.decode(call, x, variant=variant)
    return x.float().cpu().numpy()


@pytest.mark.slow(device=["cpu"], batch=[3])
@pytest.mark.parametrize(  # the windows of 24 are rings that are full after 70 tokens, and not after 5
    ("seen", "batch"),
    [(70, 1), (5, 3), pytest.param(5, 1, marks=pytest.mark.slow), pytest.param(70, 3, marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_layers_together_give_what_each_gives(batch, seen, device):
    config = dataclasses.replace(TINY, num_hidden_layers=23)  # more than a call takes
    dtype = "float32" if device == "cpu" else "bfloat16"
    exact = decode_layers(*model_and_step(config, batch, seen, "float32", "cpu", rounded=dtype), seen, "v0_composed")
    operands = model_and_step(config, batch, seen, dtype, device)
    one_by_one, together = (decode_layers(*operands, seen, variant) for variant in ("v0_composed", None))

    def worst(found):
        return np.abs(found - exact).max() / np.abs(exact).max()

    # The residual stream is rounded after every layer, or only at the end, so together they are seldom further off.
    assert worst(together) <= max(1.5 * worst(one_by_one), 4 * unit_roundoff(dtype))


@pytest.mark.parametrize("seen", [5, 70])
def test_composed_layers_together_give_what_each_gives(seen, device):
    """On a GPU the op that ends a layer makes the next one's input, too."""
    config = dataclasses.replace(TINY, num_hidden_layers=3)
    dtype = "float32" if device == "cpu" else "bfloat16"
    operands = model_and_step(config, 2, seen, dtype, device)
    each, together = (decode_layers(*operands, seen, "v0_composed", together) for together in (False, True))
    assert np.abs(together - each).max() <= 4 * unit_roundoff(dtype) * np.abs(each).max()


@pytest.mark.parametrize(("batch", "launches"), [(16, 1), (17, 10)])
def test_up_to_sixteen_texts_are_one_launch(batch, launches):
    module, *operands = step(REAL, 5, batch, 700, 600, "bfloat16", rl.meta("H200"))
    cache = _gemma3.KvCache(*operands[3:], rl.empty(1, dtype="int64", device=rl.meta("H200")), 600)
    with rl.no_grad(), rl.count() as count:
        decode(module, *operands[:3], cache, "")
    assert count.launches == launches


NORMS = [f"{x}_layernorm" for x in ("input", "post_attention", "pre_feedforward", "post_feedforward")]
VECTORS = [*NORMS, "q_norm", "k_norm", "cos", "sin"]


def off_by_one(x):
    """The same numbers, whose memory begins one element behind where a vector may."""
    moved = rl.empty(x.numel() + 1, dtype=x.dtype, device=x.device)[1:].reshape(x.shape)
    return moved.copy_(x)


def with_odd_vectors(names, layer, x, cos, sin, *caches):
    """The step with some vectors that begin anywhere."""
    with rl.no_grad():
        for name in {*names} - {"cos", "sin"}:
            owner = getattr(layer if name in NORMS else layer.self_attn, name)
            owner.weight = nn.Parameter(off_by_one(owner.weight))
        cos, sin = (off_by_one(t) if name in names else t for name, t in (("cos", cos), ("sin", sin)))
    return layer, x, cos, sin, *caches


@pytest.mark.parametrize("name", VECTORS)
def test_one_launch_takes_vectors_whose_memory_it_can_load(name):
    device = rl.meta("H200")
    launches = []
    for names in ([], [name]):
        module, *operands = with_odd_vectors(names, *step(TINY, 5, 1, 40, 3, "bfloat16", device))
        cache = _gemma3.KvCache(*operands[3:], rl.empty(1, dtype="int64", device=device), 3)
        with rl.no_grad(), rl.count() as count:
            decode(module, *operands[:3], cache, "")
        launches.append(count.launches)
    assert launches[0] == 1 and launches[1] > 1


@pytest.mark.gpu
def test_a_gpu_takes_vectors_that_begin_anywhere():
    exact = run(*step(TINY, 5, 2, 40, 17, "float32", "cpu", rounded="bfloat16"), 17, "v0_composed")
    operands = with_odd_vectors(VECTORS, *step(TINY, 5, 2, 40, 17, "bfloat16", "cuda"))
    check(run(*operands, 17), exact, "bfloat16", 40, 17)


@pytest.mark.parametrize("variant", ["v0_composed", ""])
def test_a_position_below_0_is_an_error(variant, device, refused):
    dtype = "float32" if device == "cpu" else "bfloat16"
    with refused(ValueError, r"\[kv_append\] position: expected >= 0, got -1"):
        run(*step(TINY, 5, 1, 40, 0, dtype, device), -1, variant)


def test_layers_together_are_one_launch_and_a_call_takes_twenty():
    device = rl.meta("H100 SXM")
    counts = {}
    for layers in (1, 18, 23):
        config = dataclasses.replace(REAL, num_hidden_layers=layers)
        model, cache = nn.Gemma3ForCausalLM(config, device=device).model, nn.KVCache(config, 2, 4096, device=device)
        model.prepare(4096)
        cache.length = 700
        angles = [model._rotary_full(700, 1), model._rotary_sliding(700, 1)]
        steps = [
            _gemma3.DecodeStep(
                layer.native(), *angles[config.window(i) is not None], _gemma3.KvCache(*cache[i], cache.position, 700)
            )
            for i, layer in enumerate(model.layers)
        ]
        with rl.no_grad(), rl.count() as counts[layers]:
            _gemma3.forward(steps, rl.empty(2, 1, REAL.hidden_size, dtype="bfloat16", device=device))
    assert [count.launches for count in counts.values()] == [1, 1, 2]
    assert set(counts[18].by_op) == {"gemma3_decode"}
    weights, row, x = model.layers[0].num_parameters() * 2, 2 * 2 * 2 * REAL.head_dim, 2 * 2 * REAL.hidden_size
    keys = 15 * 511 + 3 * 700  # of before, in windows and in whole texts
    angles = 2 * (2 * 2 * REAL.head_dim)  # of windows and of whole texts
    assert counts[18].bytes_read == 18 * weights + keys * row + angles + 8 + x
    assert counts[18].bytes_written == 18 * row + x
    one = counts[1]
    assert counts[18].macs == 18 * one.macs + 2 * 2 * REAL.num_attention_heads * REAL.head_dim * 3 * (701 - 512)


def test_what_a_layer_is_given_besides_is_called_in_a_decode_step(device):
    config = dataclasses.replace(TINY, num_hidden_layers=3, vocab_size=50)
    model = nn.Gemma3ForCausalLM(config, dtype="float32", device=device)
    tokens, seen = rl.tensor([[3]], device=device), []

    def logits():
        return model.decode(tokens, nn.KVCache(config, 1, 8, dtype="float32", device=device)).cpu().numpy()

    plain = logits()
    with model.model.layers[1].register_forward_hook(lambda *_: seen.append("hook")):
        np.testing.assert_array_equal(logits(), plain)
    assert seen == ["hook"]
    layer = model.model.layers[2]
    layer.forward = lambda x, *rest: x + 1
    assert np.abs(logits() - plain).max() > 1e-3
    del layer.forward
    np.testing.assert_array_equal(logits(), plain)


@pytest.mark.gpu
def test_a_replay_goes_on_where_the_last_one_ended():
    module, x, cos, sin, k, v = step(REAL, 0, 2, 512, 500, "bfloat16", "cuda")
    position = rl.tensor([500], device="cuda")
    cache = _gemma3.KvCache(k, v, position, 500, position)
    expected_k, expected_v = rl.copy(k), rl.copy(v)
    graph = rl.Graph(device="cuda")
    with rl.no_grad():
        decode(module, x, cos, sin, _gemma3.KvCache(rl.copy(k), rl.copy(v), position, 500, position))
        with graph.capture():
            y = decode(module, x, cos, sin, cache)
            position += 1
        for seen in range(500, 530):
            graph.replay()
            at = _gemma3.KvCache(expected_k, expected_v, rl.tensor([seen], device="cuda"), seen)
            right = decode(module, x, cos, sin, at, "v0_composed").float().cpu().numpy()
            # Both may be off by the 8 roundings of `check`.
            assert np.abs(y.float().cpu().numpy() - right).max() <= 16 * unit_roundoff("bfloat16") * np.abs(right).max()


def test_what_does_not_fit_is_refused(device):
    module, x, cos, sin, k, v = step(TINY, 5, 1, 40, 3, "float32", device)
    cache = _gemma3.KvCache(k, v, rl.tensor([3], device=device), 3)
    with pytest.raises(ValueError, match=r"\[gemma3_decode\] x: expected \(B, 1, D\), got \(1, 2, 96\)"):
        decode(module, rl.zeros(1, 2, 96, device=device), cos, sin, cache)
    with pytest.raises(ValueError, match=r"\[gemma3_decode\] variant: expected one of .*got \"v9\""):
        decode(module, x, cos, sin, cache, "v9")
    with pytest.raises(ValueError, match="v_cache: expected memory that k_cache does not share"):
        decode(module, x, cos, sin, _gemma3.KvCache(k, k, rl.tensor([3], device=device), 3))
    with pytest.raises(ValueError, match="cos"):
        decode(module, x, cos[:, :32], sin[:, :32], cache)
