"""Other models in the runtime's convention: the same layers written in ops and counted."""

import pytest

import rooflab as rl
from rooflab.cost import Convention, ModelSpec, Work

B, L, D, H, K, SIZE, FF, V = 2, 13, 24, 6, 2, 4, 40, 97
LLAMA = ModelSpec("small llama", 3, D, H, K, SIZE, FF, V)
GPT2 = ModelSpec(
    "small gpt2", 3, D, H, H, SIZE, FF, V, gated=False, activation="gelu", norm="layer_norm", attention_bias=True,
    mlp_bias=True, tied_head=True, learned_positions=20,
)  # fmt: skip
SLIDING = ModelSpec("sliding", 3, D, H, K, SIZE, FF, V, window=5, sliding_layers=2)
EXPERTS = ModelSpec("experts", 3, D, H, K, SIZE, FF, V, experts=4, experts_per_token=2)


def empty(*shape, dtype="float32"):
    return rl.empty(*shape, dtype=dtype, device=rl.meta("cpu"))


def counted(call):
    with rl.count() as c:
        call()
    return Work(c.macs, c.flops, c.bytes_read, c.bytes_written)


def norm(spec, x):
    if spec.norm == "layer_norm":
        return rl.layer_norm(x, empty(D), empty(D))
    return rl.rms_norm(x, empty(D))


def attention(q, k, v, window, fused):
    """q (B, H, L_q, D_h) beside k and v (B, H_kv, L_kv, D_h)."""
    queries, keys = q.shape[2], k.shape[2]
    if fused:
        return rl.attention(q, k, v, is_causal=queries > 1, window=window if queries > 1 else None)
    q = q.reshape(B, k.shape[1], -1, SIZE)
    scores = (q @ k.transpose(-1, -2) * SIZE**-0.5).reshape(B, H, queries, keys)
    if queries > 1:
        scores = rl.where(empty(queries, keys, dtype="bool"), scores, float("-inf"))
    return rl.softmax(scores).reshape(B, k.shape[1], -1, keys) @ v


def layer(spec, x, queries, keys, window, fused):
    wide, narrow = spec.heads * SIZE, spec.kv_heads * SIZE
    bias = empty(wide + 2 * narrow) if spec.attention_bias else None
    rl.linear(norm(spec, x), empty(wide + 2 * narrow, D), bias)
    q, k, v = (empty(B, heads, queries, SIZE) for heads in (H, spec.kv_heads, spec.kv_heads))
    if spec.rope:
        for heads in (q, k):
            rl.rope(heads, empty(queries, SIZE), empty(queries, SIZE))
    places = min(keys, window or keys)
    caches = [empty(B, spec.kv_heads, places, SIZE) for _ in range(2)]
    rl.kv_append(*caches, k, v, empty(1, dtype="int64"))
    attention(q, *(caches if queries == 1 else (k, v)), window, fused)
    x = x + rl.linear(empty(B, queries, wide), empty(D, wide), empty(D) if spec.attention_bias else None)
    y = norm(spec, x)
    if spec.experts:
        return x + mixture(spec, y)
    return x + mlp(spec, y)


def mlp(spec, y):
    if spec.gated:
        gate, up = rl.linear(y, empty(2 * FF, D)).split(FF, -1)
        return rl.linear(rl.swiglu(gate, up), empty(D, FF))
    return rl.linear(rl.gelu(rl.linear(y, empty(FF, D), empty(FF))), empty(D, FF), empty(D))


def mixture(spec, y):
    """A mixture of experts that get the tokens in turn."""
    y = y.reshape(-1, D)
    rows, chosen = y.shape[0], y.shape[0] * spec.experts_per_token
    rl.topk(rl.softmax(rl.linear(y, empty(spec.experts, D))), spec.experts_per_token)
    given = rl.index_select(y, 0, empty(chosen, dtype="int64"))
    for expert in range(spec.experts):
        mine = given[expert :: spec.experts]
        if mine.shape[0]:
            mlp(spec, mine.contiguous())
    weighted = empty(chosen, D) * empty(chosen, 1)
    places = empty(chosen, 1, dtype="int64").expand(chosen, D)
    return rl.scatter_add(empty(rows, D), 0, places, weighted).reshape(B, -1, D)


def whole(spec, queries, keys, fused):
    x = rl.embedding(empty(B, queries, dtype="int64"), empty(V, D))
    if spec.learned_positions:
        x = x + rl.embedding(empty(queries, dtype="int64"), empty(spec.learned_positions, D))
    for index in range(spec.layers):
        x = layer(spec, x, queries, keys, spec.window if index < spec.sliding_layers else None, fused)
    x = norm(spec, x)[:, -1:]
    rl.linear(x, empty(V, D))


@pytest.mark.parametrize("attention", ["fused", "composed"])
@pytest.mark.parametrize("mode", ["prefill", "decode"])
@pytest.mark.parametrize("spec", [LLAMA, GPT2, SLIDING], ids=lambda spec: spec.name)
def test_a_pass_is_what_its_ops_count(spec, mode, attention):
    expected = counted(lambda: whole(spec, 1 if mode == "decode" else L, L, attention == "fused"))
    cost = rl.cost.model(spec, batch=B, length=L, mode=mode, dtype="float32", attention=attention)
    assert cost.total.work == expected


@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_a_mixture_reads_the_experts_that_its_tokens_need(mode):
    """The gathered rows of an expert lie apart here, so they are copied; a pass counts no copies."""
    with rl.count() as c:
        whole(EXPERTS, 1 if mode == "decode" else L, L, True)
    copies = c.by_op.get("copy", Work())
    cost = rl.cost.model(EXPERTS, batch=B, length=L, mode=mode, dtype="float32").total.work
    assert (cost.macs, cost.flops) == (c.macs, c.flops)
    assert cost.bytes_read == c.bytes_read - copies.bytes_read
    assert cost.bytes_written == c.bytes_written - copies.bytes_written
    few = rl.cost.model(EXPERTS, batch=1, length=L, mode="decode", dtype="float32")["MLP"].work
    assert few.bytes_read >= 3 * EXPERTS.layers * 2 * 3 * D * FF  # two experts, not four
    assert few.bytes_read < EXPERTS.layers * 4 * 3 * D * FF * 4


@pytest.mark.parametrize("attention", ["fused", "composed"])
@pytest.mark.parametrize("spec", [LLAMA, GPT2, SLIDING, EXPERTS], ids=lambda spec: spec.name)
def test_the_way_back_of_a_product_is_two(spec, attention):
    """Fused attention takes five products for its two, because it computes the scores again."""
    parts = rl.cost.model(spec, batch=B, length=L, mode="training", dtype="float32", attention=attention).parts
    forward = rl.cost.model(spec, batch=B, length=L, dtype="float32", attention=attention)
    assert any(part.work.macs for part in parts)
    for part in parts:
        if part.name == "head":  # of every token, and not of the last
            assert part.work.macs == 3 * B * L * V * D
        elif part.name != "loss":
            factor = 3.5 if part.name == "attention" and attention == "fused" else 3
            assert part.work.macs == factor * forward[part.name].work.macs, part.name


def test_what_a_convention_takes_for_the_runtimes_is_the_ops():
    """The default convention changes nothing, so its numbers must be those of the ops."""
    runtime, n = Convention.RUNTIME, 1000
    assert runtime.gelu_flops * n == rl.cost.gelu((n,)).flops == rl.cost.geglu((n,), (n,)).flops - n
    assert runtime.softmax_flops * n == rl.cost.softmax((10, 100)).flops
    assert runtime.softmax_passes * 8 * n == rl.cost.softmax((10, 100)).bytes
    mask = rl.empty(10, 100, dtype="bool", device="meta")
    assert runtime.mask_flops == rl.cost.where(mask, (10, 100), 0.0).flops == 0
    attention = rl.cost.attention((1, 1, 10, 4), (1, 1, 100, 4), (1, 1, 100, 4))
    assert runtime.fused_score_flops(True) * n == attention.flops - 2 * attention.macs
