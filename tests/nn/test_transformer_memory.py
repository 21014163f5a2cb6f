"""What a forward of the transformer LM leaves for backward, to the byte, and what recomputing its blocks costs."""

import dataclasses

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import TRANSFORMER_SIZES, TransformerConfig, TransformerLM
from rooflab.testing import to_float64

SMALL = TransformerConfig(48, 80, num_layers=3, num_heads=4, vocab_size=101, context_length=40)


def saved_bytes(config, batch, length, device):
    """Bytes of the results that the graph holds, without tokens, weights and tables. A forward leaves only these and
    the logits.
    """
    model = TransformerLM(config, device=device)
    tokens = rl.empty(batch, length, dtype="int64", device=device)
    before = rl.memory.allocated(device)
    logits = model(tokens)
    listed = sum(s.bytes for s in rl.autograd.saved_tensors(logits) if not s.is_input)
    assert rl.memory.allocated(device) - before == listed + logits.nbytes
    return listed


def per_layer(config, B, L):
    """The bytes per layer in Lab 2's bars, in float32."""
    D, I, H = config.d_model, config.d_ff, config.num_heads  # noqa: E741
    if config.recompute:
        return 4 * B * L * D
    return 4 * (8 * B * L * D + 3 * B * L * I + (B * H * L * L if config.attention == "composed" else 2 * B * H * L))


@pytest.mark.parametrize("options", [{}, {"attention": "flash"}, {"recompute": True}], ids=str)
@pytest.mark.parametrize("size", TRANSFORMER_SIZES)
def test_a_layer_saves_what_the_bar_says(size, options):
    config = dataclasses.replace(TRANSFORMER_SIZES[size], num_layers=3, **options)
    for length in (128, 512):
        ends = 2 * 4 * 4 * length * config.d_model  # what the last norm and the head read
        expected = 3 * per_layer(config, 4, length) + ends
        assert saved_bytes(config, 4, length, rl.meta("H200")) == expected


def step(model, tokens):
    """Loss and gradients of one step, and its counts."""
    with rl.count() as counted:
        logits = model(tokens[:, :-1])
        loss = rl.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))
        loss.backward()
    return loss.item(), {name: to_float64(p.grad).copy() for name, p in model.named_parameters()}, counted


def assert_same(actual, expected, dtype, device, name):
    """Check to the bit; on a GPU atomics add gradients of embedding and fused attention in any order."""
    if device == "cpu":
        assert np.array_equal(actual, expected), name
    else:
        eps = 2**-24 if dtype == "float32" else 2**-9
        assert np.linalg.norm(actual - expected) <= 32 * eps * np.linalg.norm(expected), name


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_recomputed_blocks_give_the_same_gradients_to_the_bit(attention, dtype, device):
    config = dataclasses.replace(SMALL, attention=attention)
    plain = TransformerLM(config, dtype=dtype, device=device)
    recomputed = TransformerLM(dataclasses.replace(config, recompute=True), dtype=dtype, device=device)
    recomputed.load_state_dict(plain.state_dict())
    tokens = rl.tensor(np.random.default_rng(0).integers(0, 101, (2, 18)), device=device)
    loss, gradients, counted = step(plain, tokens)
    other_loss, others, with_blocks_again = step(recomputed, tokens)
    assert loss == other_loss
    for name, gradient in gradients.items():
        assert_same(others[name], gradient, dtype, device, name)
    # The blocks' forward once more: all products but the head's.
    blocks = config.num_layers * (7 if attention == "flash" else 9)
    assert with_blocks_again.by_op["matmul"].ops == counted.by_op["matmul"].ops + blocks
    once = sum(counted.by_range[f"block_{i}"].flops for i in range(config.num_layers))
    assert with_blocks_again.flops == counted.flops + once


@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_autocast_stays_near_float32_and_recomputes_to_the_bit(attention, device):
    config = dataclasses.replace(SMALL, attention=attention)
    models = [TransformerLM(c, device=device) for c in (config, dataclasses.replace(config, recompute=True))]
    models[1].load_state_dict(models[0].state_dict())
    tokens = rl.tensor(np.random.default_rng(0).integers(0, 101, (2, 18)), device=device)
    exact = step(models[0], tokens)[1]
    models[0].zero_grad()
    found = []
    for model in models:
        with rl.autocast("bfloat16"):
            logits = model(tokens[:, :-1])
            loss = rl.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        assert (logits.dtype, loss.dtype) == (rl.bfloat16, rl.float32)
        loss.backward()  # outside of the context, as usual
        assert all(p.grad.dtype == rl.float32 for p in model.parameters())
        found.append({name: to_float64(p.grad).copy() for name, p in model.named_parameters()})
    for name, gradient in found[0].items():
        assert_same(found[1][name], gradient, "bfloat16", device, name)
        # Some twenty roundings by 2^-9 a layer, there and back, which add up like a random walk; twice for its spread.
        error = np.linalg.norm(gradient - exact[name]) / np.linalg.norm(exact[name])
        assert 0 < error < 2 * 2**-9 * (3 * 20) ** 0.5, name


def test_flops_of_a_training_step_with_recomputed_blocks():
    """6 N D of a step become 8 N D, but for the head."""
    config = dataclasses.replace(TRANSFORMER_SIZES["2.7B"], recompute=True)
    device = rl.meta("H200")
    model, tokens = TransformerLM(config, device=device), rl.empty(4, 512, dtype="int64", device=device)
    with rl.count() as counted:
        logits = model(tokens)
        logits.backward(logits.detach())
    head = 2 * 4 * 512 * 10000 * 2560
    forward = config.forward_flops(4, 512)
    assert counted.by_op["matmul"].flops == 4 * forward - head


def test_gradients_add_up_in_the_same_memory(device):
    model = TransformerLM(SMALL, device=device)
    tokens = rl.tensor(np.random.default_rng(0).integers(0, 101, (2, 18)), device=device)
    first = step(model, tokens)[1]
    places = {name: p.grad.data_ptr() for name, p in model.named_parameters()}
    held = rl.memory.allocated(device)
    second = step(model, tokens)[1]
    assert rl.memory.allocated(device) == held
    for name, p in model.named_parameters():
        assert p.grad.data_ptr() == places[name]
        assert_same(second[name], 2 * first[name], "float32", device, name)


def test_no_gradient_of_a_weight_is_copied():
    """The gradient that a product gives is laid out like the weight."""
    device = rl.meta("H200")
    config = TransformerConfig.of("small", num_layers=2, attention="flash")
    model = TransformerLM(config, device=device)
    logits = model(rl.empty(4, 128, dtype="int64", device=device))
    with rl.count() as counted:
        logits.backward(logits.detach())
    assert "copy" not in counted.by_op
    assert all(p.grad.is_contiguous() for p in model.parameters())
