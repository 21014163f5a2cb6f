"""rl.cost.model in the runtime's convention: what rl.count() says of a training step of the transformer and GPT-2."""

import pytest

import rooflab as rl
from rooflab.cost import MODELS, Work, from_config
from rooflab.nn import GPT2, GPT2_XL, TRANSFORMER_SIZES, GPT2Config, TransformerConfig, TransformerLM

SMALL = TransformerConfig(48, 80, num_layers=3, num_heads=4, vocab_size=101, context_length=40)


def training(model, batch, length):
    tokens = rl.empty(batch, length, dtype="int64", device=rl.meta("cpu"))
    with rl.count() as counted:
        rl.cross_entropy(model(tokens).reshape(batch * length, -1), tokens.reshape(-1)).backward()
    return counted


@pytest.mark.parametrize(
    ("config", "dtype", "batch", "length"),
    [(SMALL, "float32", 3, 17), (TRANSFORMER_SIZES["small"], "bfloat16", 2, 100)],
    ids=["tiny", "small"],
)
def test_training_is_what_is_counted(config, dtype, batch, length):
    config = TransformerConfig(**{**vars(config), "attention": "flash"})
    counted = training(TransformerLM(config, dtype=dtype, device=rl.meta("cpu")), batch, length)
    cost = rl.cost.model(from_config(config), batch=batch, length=length, mode="training", dtype=dtype)
    assert cost.total.work == Work(counted.macs, counted.flops, counted.bytes_read, counted.bytes_written)
    assert "copy" not in counted.by_op


@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_multiplications_of_gpt2_are_those_counted(attention):
    """Its queries, keys and values are one product, whose gradient needs no sums: FLOPs and bytes differ by them."""
    config = GPT2Config(256, 3, 4, vocab_size=999, attention=attention)
    counted = training(GPT2(config, device=rl.meta("cpu")), 2, 50)
    kind = "fused" if attention == "flash" else "composed"
    cost = rl.cost.model(from_config(config), batch=2, length=50, mode="training", dtype="float32", attention=kind)
    assert cost.total.work.macs == counted.macs


@pytest.mark.parametrize("size", TRANSFORMER_SIZES)
def test_parameters_of_the_sizes(size):
    assert from_config(TRANSFORMER_SIZES[size]).parameters == TRANSFORMER_SIZES[size].num_parameters


def test_parameters_of_gpt2():
    assert from_config(GPT2_XL).parameters == MODELS["gpt2-xl"].parameters == 1557611200
    assert GPT2(GPT2_XL, device=rl.meta("cpu")).num_parameters() == 1557611200
