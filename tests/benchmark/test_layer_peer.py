"""The PyTorch layer of `rooflab bench layer --peer torch` computes what ours does, prompt and decode step."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.benchmark import gemma3_peer

pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.peer

CONFIG = rl.nn.Gemma3Config(num_hidden_layers=6)
LENGTH = 40


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_it_computes_the_same(phase, device):
    layer = rl.nn.Gemma3DecoderLayer(CONFIG, 5, dtype="float32", device=device)
    with rl.no_grad():
        for name, weight in layer.named_parameters():
            weight.copy_(rl.randn(*weight.shape, device=device) * (0.3 if "norm" in name else 0.05))
    text = rl.randn(2, LENGTH, CONFIG.hidden_size, device=device)
    rotary = rl.nn.RotaryEmbedding(CONFIG.rope_theta, CONFIG.head_dim, dtype="float32", device=device)
    expected = layer(text, *rotary(0, LENGTH)).detach()
    if phase == "prefill":
        operands = (text, *rotary(0, LENGTH))
    else:
        cache = rl.nn.KVCache(CONFIG, 2, LENGTH, dtype="float32", device=device)
        layer(text[:, :-1], *rotary(0, LENGTH - 1), cache.layer(5))
        cache.advance(LENGTH - 1)
        operands = (text[:, -1:], *rotary(LENGTH - 1, 1), (*cache[5], cache.position))
        expected = expected[:, -1:]
    found = gemma3_peer.contenders(layer, *operands)["torch"]().cpu().numpy()
    expected = expected.cpu().numpy()
    # Some sixteen results one after the other, each a sum of up to 2048 terms: sqrt(2048) 2^-24 of the largest.
    assert np.abs(found - expected).max() <= 8 * 2.0**-18 * np.abs(expected).max()
