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


def run(module, x, cos, sin, k, v, seen, variant="", held=False):
    """The result and the contents of the caches afterwards. The given caches stay as they are."""
    k, v = rl.copy(k), rl.copy(v)
    position = rl.tensor([seen], device=x.device)
    cache = _gemma3.KvCache(k, v, position, seen, position + 1 if held else None)
    with rl.no_grad():
        y = module.native().decode(x, cos, sin, cache, variant=variant)
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
]


@pytest.mark.slow(device=["cpu"], dtype=["float16"])
@pytest.mark.parametrize(("config", "layer", "batch", "places", "seen"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
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


def test_it_is_one_launch_on_a_gpu_and_counts_what_the_steps_count():
    for target in ("H100 SXM", "H200"):
        device = rl.meta(target)
        module, *operands = step(REAL, 5, 2, 4096, 4000, "bfloat16", device)
        counts = {}
        for variant in ("v1_one_launch", "v0_composed"):
            cache = _gemma3.KvCache(*operands[3:], rl.empty(1, dtype="int64", device=device), 4000)
            with rl.no_grad(), rl.count() as counts[variant]:
                module.native().decode(*operands[:3], cache, variant=variant)
        one, steps = counts["v1_one_launch"], counts["v0_composed"]
        assert (one.launches, steps.launches, one.ops, steps.ops) == (1, 13, 1, 1)
        assert (one.macs, one.flops) == (steps.macs, steps.flops)
        assert one.bytes_read < steps.bytes_read and one.bytes_written < steps.bytes_written
        x, row = 2 * 2 * REAL.hidden_size, 2 * 2 * 2 * REAL.head_dim  # of both texts; a row of keys and one of values
        weights, angles, position = 2 * module.num_parameters(), 2 * 2 * REAL.head_dim, 8
        assert one.bytes_read == weights + x + angles + position + 4000 * row
        assert one.bytes_written == x + row


@pytest.mark.gpu
def test_a_replay_goes_on_where_the_last_one_ended():
    module, x, cos, sin, k, v = step(REAL, 0, 2, 512, 500, "bfloat16", "cuda")
    position = rl.tensor([500], device="cuda")
    cache = _gemma3.KvCache(k, v, position, 500, position)
    expected_k, expected_v = rl.copy(k), rl.copy(v)
    layer, graph = module.native(), rl.Graph(device="cuda")
    with rl.no_grad():
        layer.decode(x, cos, sin, _gemma3.KvCache(rl.copy(k), rl.copy(v), position, 500, position))
        with graph.capture():
            y = layer.decode(x, cos, sin, cache)
            position += 1
        for seen in range(500, 530):
            graph.replay()
            at = _gemma3.KvCache(expected_k, expected_v, rl.tensor([seen], device="cuda"), seen)
            right = layer.decode(x, cos, sin, at, variant="v0_composed").float().cpu().numpy()
            # Both may be off by the 8 roundings of `check`.
            assert np.abs(y.float().cpu().numpy() - right).max() <= 16 * unit_roundoff("bfloat16") * np.abs(right).max()


def test_what_does_not_fit_is_refused(device):
    module, x, cos, sin, k, v = step(TINY, 5, 1, 40, 3, "float32", device)
    cache = _gemma3.KvCache(k, v, rl.tensor([3], device=device), 3)
    with pytest.raises(ValueError, match=r"\[gemma3_decode\] x: expected \(B, 1, D\), got \(1, 2, 96\)"):
        module.native().decode(rl.zeros(1, 2, 96, device=device), cos, sin, cache)
    with pytest.raises(ValueError, match=r"\[gemma3_decode\] variant: expected one of .*got \"v9\""):
        module.native().decode(x, cos, sin, cache, variant="v9")
    with pytest.raises(ValueError, match="cos"):
        module.native().decode(x, cos[:, :32], sin[:, :32], cache)
