"""rl.cost.model in the runtime's convention: what rl.count() says of the model of rl.nn on tensors without memory."""

import pytest

import rooflab as rl
from rooflab.cost import MODELS, Work, from_config
from rooflab.nn import GEMMA3_270M, Gemma3Config, Gemma3ForCausalLM, KVCache

SMALL = Gemma3Config(
    hidden_size=48,
    intermediate_size=80,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    num_hidden_layers=5,
    vocab_size=101,
    sliding_window=6,
    sliding_window_pattern=3,
)
CASES = [(GEMMA3_270M, "bfloat16", 2, 600), (GEMMA3_270M, "float32", 1, 37), (SMALL, "float32", 3, 17)]


def work(counts):
    return Work(counts.macs, counts.flops, counts.bytes_read, counts.bytes_written)


def without(counts, other):
    return work(counts) + work(other) * -1


def model_and_cache(config, dtype, batch, room):
    device = rl.meta("cpu")
    model = Gemma3ForCausalLM(config, dtype=dtype, device=device)
    model.model.prepare(room)  # the tables of angles are made once, and are not part of a pass
    return model, KVCache(config, batch, room, dtype=dtype, device=device)


def tokens(batch, length):
    return rl.empty(batch, length, dtype="int64", device=rl.meta("cpu"))


def parts_of(counted):
    """What ranges and ops say of each part. The one add is left out: it counts tokens, for the cache's position."""
    ops, ranges = counted.by_op, counted.by_range
    products = (ranges["self_attn/qkv_proj"], ranges["self_attn/o_proj"], ranges["mlp/gate_up_proj"])
    head = work(ops["matmul"])
    for product in (*products, ranges["mlp/down_proj"]):
        head += work(product) * -1
    return {
        "embedding": work(ops["embedding"]) + work(ops["mul"]),
        "norms": work(ops["rms_norm"]) + work(ops["rms_norm_add"]),
        "projections": work(ranges["self_attn/qkv_proj"]),
        "rope": work(ops["rms_norm_rope"]),
        "KV cache": work(ops["kv_append"]),
        "attention": work(ops["attention"]),
        "output projection": work(ranges["self_attn/o_proj"]),
        "MLP": work(ranges["mlp"]),
        "head": head,
    }


@pytest.mark.parametrize(("config", "dtype", "batch", "length"), CASES)
def test_prefill_and_decode_are_what_is_counted(config, dtype, batch, length):
    model, cache = model_and_cache(config, dtype, batch, length + 1)
    spec = from_config(config)
    with rl.count() as prefill:
        model.prefill(tokens(batch, length), cache)
    with rl.count() as decode:
        model.decode(tokens(batch, 1), cache)
    for mode, seen, counted in (("prefill", length, prefill), ("decode", length + 1, decode)):
        cost = rl.cost.model(spec, batch=batch, length=seen, mode=mode, dtype=dtype)
        assert {part.name: part.work for part in cost.parts} == parts_of(counted), mode
        assert cost.total.work == without(counted, counted.by_op["add"]), mode


@pytest.mark.parametrize(("config", "dtype", "batch", "length"), CASES)
def test_training_is_what_is_counted_but_for_copies_of_layout(config, dtype, batch, length):
    model, _ = model_and_cache(config, dtype, batch, length)
    given = tokens(batch, length)
    with rl.count() as counted:
        rl.cross_entropy(model(given).reshape(batch * length, -1), given.reshape(-1)).backward()
    cost = rl.cost.model(from_config(config), batch=batch, length=length, mode="training", dtype=dtype)
    assert cost.total.work == without(counted, counted.by_op["copy"])
    forward = sum((s.work.macs for s in cost.total.steps if not s.name.endswith("backward")), 0)
    products = forward - sum(s.work.macs for s in cost["attention"].steps if s.name == "fused")
    # The backward of a product is two products. Attention computes its scores again, so it takes 5 products for 2.
    attention = forward - products
    assert cost.total.work.macs == 3 * products + attention + 5 * attention // 2


def test_a_layer_in_one_kernel_moves_less_and_computes_the_same():
    """An H200 runs a decode step's layer as one kernel: what passes between its steps stays on the chip."""
    device = rl.meta("H200")
    model = Gemma3ForCausalLM(GEMMA3_270M, device=device)
    model.model.prepare(601)
    cache = KVCache(GEMMA3_270M, 2, 601, device=device)
    model.prefill(rl.empty(2, 600, dtype="int64", device=device), cache)
    with rl.count() as counted:
        model.decode(rl.empty(2, 1, dtype="int64", device=device), cache)
    cost = rl.cost.model("gemma3-270m", batch=2, length=601, mode="decode", dtype="bfloat16").total.work
    assert "gemma3_decode" in counted.by_op
    computed = without(counted, counted.by_op["add"])
    assert (cost.macs, cost.flops) == (computed.macs, computed.flops) and cost.bytes > computed.bytes


@pytest.mark.parametrize("layers", [1, 6, 18])
def test_parameters_and_cache_are_the_models(layers):
    config = Gemma3Config(num_hidden_layers=layers)
    model, cache = model_and_cache(config, "bfloat16", 3, 700)
    spec = from_config(config)
    assert spec.parameters == model.num_parameters()
    assert spec.cache_bytes(3, 700, "bfloat16") == cache.nbytes
    assert from_config(GEMMA3_270M).parameters == MODELS["gemma3-270m"].parameters == 268098176
