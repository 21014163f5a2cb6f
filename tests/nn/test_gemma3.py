"""The Gemma-3 layer and model against a plain NumPy one, and decoding with a cache against the full forward."""

import dataclasses
import pickle

import numpy as np
import pytest
from nn.gemma3_reference import SMALL, assert_near, layer_in_numpy, model_in_numpy, randomise

import rooflab as rl
from rooflab.nn import (
    GEMMA3_270M,
    GEMMA3_PSEUDO,
    Gemma3DecoderLayer,
    Gemma3ForCausalLM,
    KVCache,
    RotaryEmbedding,
    generate,
)
from rooflab.testing import to_float64


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "in-steps"])
@pytest.mark.parametrize("window", [None, 6], ids=["full", "sliding"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_layer_is_what_the_model_defines(dtype, window, fused, device):
    index = 2 if window is None else 0
    layer = randomise(Gemma3DecoderLayer(SMALL, index, fused=fused, dtype=dtype, device=device))
    theta = SMALL.rope_theta if window is None else SMALL.rope_local_base_freq
    cos, sin = RotaryEmbedding(theta, SMALL.head_dim, dtype=dtype, device=device)(0, 17)
    x = rl.randn(2, 17, SMALL.hidden_size, dtype=dtype, device=device)
    right = layer_in_numpy(to_float64(x), {n: v.cpu() for n, v in layer.state_dict().items()}, SMALL, window)
    assert_near(layer(x, cos, sin), right, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_cached_decode_equals_the_full_forward_at_every_position(dtype, device):
    """Prompts of all kinds of lengths, then token by token up to three times the window."""
    model = randomise(Gemma3ForCausalLM(SMALL, dtype=dtype, device=device))
    tokens = np.random.default_rng(1).integers(0, SMALL.vocab_size, (2, 19))
    right = model_in_numpy(tokens, model)
    assert_near(model(rl.tensor(tokens, device=device)), right, dtype, "without a cache")
    for prompt in (1, 4, 6, 7, 13):
        cache = KVCache(SMALL, 2, 19, dtype=dtype, device=device)
        logits = model.prefill(rl.tensor(tokens[:, :prompt], device=device), cache)
        assert_near(logits[:, 0], right[:, prompt - 1], dtype, f"prompt of {prompt}")
        for i in range(prompt, 19):
            logits = model.decode(rl.tensor(tokens[:, i : i + 1], device=device), cache)
            assert_near(logits[:, 0], right[:, i], dtype, f"prompt of {prompt}, position {i}")
        assert cache.length == cache.position.item() == 19


@pytest.mark.parametrize("pieces", [(5, 3, 8), (1, 2, 13), (9, 1, 6), (16,)], ids=str)
def test_a_text_in_pieces_equals_the_whole(pieces, device):
    """Later pieces see what is in the ring, even after it has wrapped around."""
    model = randomise(Gemma3ForCausalLM(SMALL, dtype="float32", device=device))
    tokens = np.random.default_rng(2).integers(0, SMALL.vocab_size, (2, 16))
    right = model_in_numpy(tokens, model)
    cache, begin = KVCache(SMALL, 2, 16, dtype="float32", device=device), 0
    for piece in pieces:
        logits = model(rl.tensor(tokens[:, begin : begin + piece], device=device), cache)
        assert_near(logits, right[:, begin : begin + piece], "float32", f"piece from {begin}")
        begin += piece


def test_a_captured_step_equals_the_eager_one_to_the_end(device):
    model = randomise(Gemma3ForCausalLM(SMALL, dtype="float32", device=device))
    tokens = np.random.default_rng(3).integers(0, SMALL.vocab_size, (2, 20))
    right = model_in_numpy(tokens, model)
    cache = KVCache(SMALL, 2, 20, dtype="float32", device=device)
    model.prefill(rl.tensor(tokens[:, :3], device=device), cache)
    step = model.capture_decode(cache, 2)
    for i in range(3, 20):
        newest = rl.tensor(tokens[:, i : i + 1], device=device)
        with rl.count() as counted:
            logits = step(newest)
        assert_near(logits[:, 0], right[:, i], "float32", f"position {i}")
        if device != "cpu":
            assert counted.host_calls == 2  # the token's copy, and the replay
    with pytest.raises(ValueError, match="room for 20 tokens and has seen 20; 1 more do not fit"):
        step(rl.tensor(tokens[:, :1], device=device))


def test_gradients_reach_every_parameter():
    """Along a random direction, the slope of the loss is the sum of gradient times direction."""
    layer = randomise(Gemma3DecoderLayer(SMALL, 0, dtype="float64"), scale=1.0)
    cos, sin = RotaryEmbedding(1e4, 16, dtype="float64")(0, 9)
    x, dy = rl.randn(2, 9, 48, dtype="float64"), rl.randn(2, 9, 48, dtype="float64")
    (layer(x, cos, sin) * dy).sum().backward()
    for name, p in layer.named_parameters():
        gradient = p.grad
        assert gradient is not None, name
        direction = rl.randn(*p.shape, dtype="float64")
        values = []
        for step in (1e-6, -2e-6):
            with rl.no_grad():
                p += direction * step
                values.append((layer(x, cos, sin) * dy).sum().item())
        with rl.no_grad():
            p += direction * 1e-6
        slope = (values[0] - values[1]) / 2e-6
        assert (gradient * direction).sum().item() == pytest.approx(slope, rel=1e-5, abs=1e-6), name


def test_sizes_are_those_of_the_model():
    meta = rl.meta("H200")
    model = Gemma3ForCausalLM(GEMMA3_270M, device=meta)
    assert model.num_parameters() == 268_098_176
    assert model.model.layers[0].num_parameters() == 5_573_632
    assert len(model.model.layers) == 18
    assert [GEMMA3_270M.window(i) for i in range(7)] == [512, 512, 512, 512, 512, None, 512]
    assert KVCache(GEMMA3_270M, 1, 512, device=meta).nbytes == 512 * 18_432
    assert KVCache(GEMMA3_270M, 1, 4096, device=meta).nbytes == (3 * 4096 + 15 * 512) * 1024
    pseudo = Gemma3DecoderLayer(GEMMA3_PSEUDO, device=meta)
    assert pseudo.num_parameters() == 4 * 1152 * 2048 + 3 * 1152 * 6912 + 4 * 1152 + 2 * 256


def test_names_are_those_of_hugging_face():
    names = list(Gemma3ForCausalLM(SMALL, dtype="float32").state_dict())
    assert names[0] == "model.embed_tokens.weight"
    assert names[-1] == "model.norm.weight"
    assert sorted(name.removeprefix("model.layers.1.") for name in names if ".1." in name) == [
        "input_layernorm.weight",
        "mlp.down_proj.weight",
        "mlp.gate_proj.weight",
        "mlp.up_proj.weight",
        "post_attention_layernorm.weight",
        "post_feedforward_layernorm.weight",
        "pre_feedforward_layernorm.weight",
        "self_attn.k_norm.weight",
        "self_attn.k_proj.weight",
        "self_attn.o_proj.weight",
        "self_attn.q_norm.weight",
        "self_attn.q_proj.weight",
        "self_attn.v_proj.weight",
    ]


@pytest.mark.parametrize(("fused", "ops"), [(False, 20), (True, 1)])
def test_a_decode_step_counts_the_same_on_meta_and_for_real(fused, ops, device):
    """As separate ops: norms 6, projections 7, rope 2, append 1, attention 1, geglu 1, residuals 2. Fused, the
    step is one op."""
    target = rl.meta("H100 SXM") if device != "cpu" else rl.meta("cpu")
    seen = []
    for where in (device, target):
        layer = Gemma3DecoderLayer(SMALL, 2, fused=fused, dtype="float32", device=where)
        cache = KVCache(SMALL, 2, 40, dtype="float32", device=where)
        cos, sin = RotaryEmbedding(1e6, 16, dtype="float32", device=where)(0, 1)
        x = rl.zeros(2, 1, 48, device=where)
        layer.requires_grad_(False)
        layer(x, cos, sin, cache.layer(2))
        with rl.count() as counted:
            layer(x, cos, sin, cache.layer(2))
        seen.append((counted.ops, counted.macs, counted.flops, counted.bytes_read, counted.bytes_written))
    assert seen[0] == seen[1]
    assert seen[0][0] == ops


def test_a_full_cache_is_refused(device):
    model = Gemma3ForCausalLM(SMALL, dtype="float32", device=device)
    cache = KVCache(SMALL, 1, 5, dtype="float32", device=device)
    tokens = rl.zeros(1, 5, dtype="int64", device=device)
    with pytest.raises(ValueError, match="room for 5 tokens and has seen 0; 6 more do not fit"):
        model(rl.zeros(1, 6, dtype="int64", device=device), cache)
    model(tokens, cache)
    with pytest.raises(ValueError, match="room for 5 tokens and has seen 5; 1 more do not fit"):
        model.decode(tokens[:, :1], cache)
    cache.reset()
    assert cache.length == cache.position.item() == 0
    model(tokens, cache)


def test_tokens_and_caches_that_do_not_fit_are_refused():
    model = Gemma3ForCausalLM(SMALL, dtype="float32")
    tokens = rl.tensor([[1, 2]])
    with pytest.raises(ValueError, match=r"tokens: expected a tensor \(B, L\), got \(2,\)"):
        model(rl.tensor([1, 2]))
    with pytest.raises(ValueError, match=r"tokens: expected a tensor \(B, L\), got list"):
        model([[1, 2]])
    with pytest.raises(ValueError, match=r"index: expected in \[0, 101\), got 101"):
        model(rl.tensor([[101]]))
    with pytest.raises(ValueError, match=r"\[decode\] tokens: expected \(B, 1\), got \(1, 2\)"):
        model.decode(tokens, KVCache(SMALL, 1, 8, dtype="float32"))
    with pytest.raises(ValueError, match="cache: expected 3 layers, got 2"):
        model(tokens, KVCache(dataclasses.replace(SMALL, num_hidden_layers=2), 1, 8, dtype="float32"))
    with pytest.raises(ValueError, match="cache: expected one of B=1 texts, got 3"):
        model(tokens, KVCache(SMALL, 3, 8, dtype="float32"))
    with pytest.raises(ValueError, match="expected batch_size and max_length >= 1, got 0 and 8"):
        KVCache(SMALL, 0, 8)


def test_caches_of_another_model_are_refused():
    """A ring of another length would hold too few tokens, or refuse one in the middle of a pass."""
    model, tokens = Gemma3ForCausalLM(SMALL, dtype="float32"), rl.tensor([[1, 2]])
    for field, value in (("sliding_window", 5), ("sliding_window", 7), ("head_dim", 32), ("num_key_value_heads", 4)):
        other = KVCache(dataclasses.replace(SMALL, **{field: value}), 1, 20, dtype="float32")
        for use in (model, model.capture_decode):
            with pytest.raises(ValueError, match=r"cache: layer 0: expected \(B, H_kv=2, T=6, D_h=16\), got \(1, "):
                use(tokens, other) if use is model else use(other)
    with pytest.raises(ValueError, match="expected the dtype of the model, float32, got bfloat16"):
        model(tokens, KVCache(SMALL, 1, 8))
    whole = KVCache(dataclasses.replace(SMALL, sliding_window=30), 1, 20, dtype="float32")  # it lacks no token
    assert_near(model(tokens, whole), model(tokens).detach().cpu().numpy().astype(np.float64), "float32")


def test_a_pass_that_failed_leaves_no_cache_with_lost_tokens():
    model = randomise(Gemma3ForCausalLM(SMALL, dtype="float32"))
    tokens = rl.tensor(np.random.default_rng(1).integers(0, SMALL.vocab_size, (1, 12)))
    right, cache = model(tokens).detach().numpy(), KVCache(SMALL, 1, 12, dtype="float32")

    def fails(begin, end):
        with model.model.layers[1].register_forward_pre_hook(lambda *_: 1 / 0), pytest.raises(ZeroDivisionError):
            model(tokens[:, begin:end], cache)

    def passes(begin, end):
        np.testing.assert_allclose(model(tokens[:, begin:end], cache).numpy(), right[:, begin:end], rtol=0, atol=1e-4)

    fails(0, 4), passes(0, 4), fails(4, 6), passes(4, 6)  # no token has lost its place
    with pytest.raises(ValueError, match="index"):  # of no token of the vocabulary, before any layer
        model(rl.tensor([[SMALL.vocab_size]]), cache)
    step = model.capture_decode(cache)
    fails(6, 9)
    for use in (model, model.decode, lambda token, cache: step(token)):
        with pytest.raises(ValueError, match=r"the last pass failed .* call reset\(\)"):
            use(tokens[:, 6:7], cache)
    cache.reset(), passes(0, 8), passes(8, 12)


def test_a_layer_refuses_parts_that_are_more_than_their_weights():
    """The layer is one call, which would run no hook and no other forward of a part."""
    model, tokens = Gemma3ForCausalLM(SMALL, dtype="float32"), rl.tensor([[1, 2]])
    layer = model.model.layers[1]

    class Twice(rl.nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    class Named(rl.nn.Linear):
        pass

    wide = SMALL.num_attention_heads * SMALL.head_dim
    right = model(tokens).tolist()
    for owner, name, part, got in (
        (layer.self_attn, "q_proj", Twice(SMALL.hidden_size, wide, bias=False), "a Twice with a forward of its own"),
        (layer.self_attn, "o_proj", rl.nn.Linear(wide, SMALL.hidden_size), "bias=tensor"),
        (layer.mlp, "up_proj", rl.nn.Sequential(layer.mlp.up_proj), "a Sequential"),
        (layer.self_attn, "k_norm", rl.nn.RMSNorm(SMALL.head_dim, zero_centered=True), "eps=None"),
        (layer, "post_attention_layernorm", rl.nn.RMSNorm(SMALL.hidden_size, 1e-6), "zero_centered=False"),
        (layer, "mlp", rl.nn.Linear(SMALL.hidden_size, SMALL.hidden_size), "a Linear"),
    ):
        plain = getattr(owner, name)
        setattr(owner, name, part)
        for cache in (None, KVCache(SMALL, 1, 8, dtype="float32")):
            with pytest.raises(ValueError, match=rf"\] {name}: expected a plain .*; got {got}"):
                model(tokens, cache)
        setattr(owner, name, plain)
    for part in (layer.mlp, layer.mlp.down_proj, layer.self_attn.q_norm):
        with part.register_forward_hook(lambda *_: None), pytest.raises(ValueError, match="one with hooks"):
            model(tokens)
    layer.self_attn.forward = lambda *_: None
    with pytest.raises(ValueError, match=r"self_attn: .* a Gemma3Attention with a forward of its own"):
        model(tokens)
    del layer.self_attn.forward
    named = Named(SMALL.hidden_size, SMALL.intermediate_size, bias=False)
    named.weight, layer.mlp.gate_proj = layer.mlp.gate_proj.weight, named
    assert model(tokens).tolist() == right


@pytest.mark.parametrize("convert", ["bfloat16", "pickle", "half", "cpu"])
def test_a_converted_model_is_one_that_was_made_so(convert):
    """Nothing that it computes with keeps the rounding of another dtype, and its products are as few."""
    config = dataclasses.replace(SMALL, hidden_size=56)  # its root is rounded otherwise in 16 bits
    tokens = rl.tensor([list(range(1, 20))])
    right = randomise(Gemma3ForCausalLM(config, dtype="float32"))
    made = Gemma3ForCausalLM(config, dtype="float32")
    made(tokens), made.load_state_dict(right.state_dict())
    weight = made.model.layers[0].mlp.up_proj.weight
    if convert == "pickle":
        made = pickle.loads(pickle.dumps(made))
    else:
        getattr(made, convert)().float()
        assert made.model.layers[0].mlp.up_proj.weight is weight and weight.requires_grad
        made.load_state_dict(right.state_dict())
    with rl.no_grad(), rl.count() as plain:
        expected = right(tokens)
    with rl.no_grad(), rl.count() as converted:
        assert made(tokens).tolist() == expected.tolist()
    assert converted.launches == plain.launches


def test_a_captured_step_reads_weights_where_they_were():
    model = Gemma3ForCausalLM(SMALL, dtype="float32")
    cache = KVCache(SMALL, 1, 8, dtype="float32")
    step, token = model.capture_decode(cache), rl.tensor([[1]])
    model.load_state_dict({name: 2 * weight for name, weight in model.state_dict().items()})
    np.testing.assert_allclose(step(token).numpy(), model(token).detach().numpy(), rtol=0, atol=1e-5)
    weight = model.model.layers[2].mlp.down_proj.weight
    weight.data = 2 * weight.data
    cache.reset()
    step = model.capture_decode(cache)
    np.testing.assert_allclose(step(token).numpy(), model(token).detach().numpy(), rtol=0, atol=1e-5)


def test_one_layer_refuses_more_than_its_cache_holds():
    layer = Gemma3DecoderLayer(SMALL, 2, dtype="float32")
    cache = KVCache(SMALL, 1, 4, dtype="float32")
    cos, sin = RotaryEmbedding(1e6, 16, dtype="float32")(0, 5)
    with pytest.raises(ValueError, match=r"\[gemma3\] cache: it has room for T=4 tokens and has seen 0; 5 more"):
        layer(rl.zeros(1, 5, 48), cos, sin, cache.layer(2))


def test_generate_is_greedy_seeded_and_stops(device):
    model = randomise(Gemma3ForCausalLM(SMALL, dtype="float32", device=device))
    prompt = rl.tensor([[5, 17, 3], [9, 9, 1]], device=device)
    greedy = generate(model, prompt, 12)
    assert greedy.shape == (2, 15)
    assert greedy.tolist() == generate(model, prompt, 12, graph=False).tolist()
    text = [prompt.tolist()[0]]
    for _ in range(12):  # the expected token of each step, from the whole text
        scores = model.decode_without_cache(rl.tensor(text, device=device))
        text[0].append(scores[0, -1].argmax().item())
    assert greedy.tolist()[0] == text[0]
    drawn = [generate(model, prompt, 8, do_sample=True, top_k=20, top_p=0.9, seed=s).tolist() for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    stop = greedy.tolist()[0][5]
    stopped = generate(model, prompt[:1], 12, eos_token=stop).tolist()[0]
    assert stopped == greedy.tolist()[0][: stopped.index(stop, 3) + 1]
    assert generate(model, prompt, 0).tolist() == prompt.tolist()
    with pytest.raises(ValueError, match=r"prompt: expected \(B, L\) with L >= 1, got \(1, 0\)"):
        generate(model, rl.zeros(1, 0, dtype="int64"), 3)
    for wrong in (prompt.float(), prompt > 0):
        with pytest.raises(ValueError, match=r"prompt: expected int64 or int32, got"):
            generate(model, wrong, 3)
    with pytest.raises(TypeError, match="prompt"):
        generate(model, [[1, 2]], 3)
    for wrong in (
        "temperature=0",
        "temperature='a'",
        "top_k=0",
        "top_p=1.5",
        "seed=-1",
        "eos_token=[1]",
        "eos_token=101",
    ):
        name, value = wrong.split("=")
        with pytest.raises(ValueError, match=rf"^\[generate\] {name}: expected"):
            generate(model, prompt, 3, **{name: eval(value)})
    with pytest.raises(ValueError, match=r"^\[generate\] max_new_tokens: expected a whole number .*, got 2.5"):
        generate(model, prompt, 2.5)
    drawn = []
    for seed in (1, 1, 2):
        rl.manual_seed(seed)
        drawn.append([generate(model, prompt, 8, do_sample=True, temperature=5.0).tolist() for _ in range(2)])
    assert drawn[0] == drawn[1] != drawn[2] and drawn[0][0] != drawn[0][1]
    with rl.autocast("bfloat16"):
        low = [generate(model, prompt, 12, graph=graph).tolist() for graph in (True, False)]
        text = [prompt.tolist()[0]]
        for _ in range(4):
            scores = model.decode_without_cache(rl.tensor(text, device=device))
            text[0].append(scores[0, -1].argmax().item())
    assert low[0] == low[1] and low[0][0][:7] == text[0]


def test_a_text_that_has_ended_is_padded_until_the_others_end():
    class Fixed:
        """A model that writes these tokens, whatever it reads."""

        device, dtype, config = "cpu", "float32", SMALL

        def __init__(self, rows):
            self.rows, self.place = np.array(rows), 0

        def prefill(self, texts, cache):
            return self.decode(texts, cache)

        def decode(self, tokens, cache):
            scores = np.zeros((len(self.rows), 1, 10), np.float32)
            scores[np.arange(len(self.rows)), 0, self.rows[:, self.place]] = 1
            self.place += 1
            return rl.tensor(scores)

    prompt = rl.zeros(2, 1, dtype="int64")
    rows = [[5, 7, 3, 4, 6], [1, 2, 8, 7, 9]]
    written = generate(Fixed(rows), prompt, 5, eos_token=7, graph=False)
    assert written.tolist() == [[0, 5, 7, 7, 7], [0, 1, 2, 8, 7]]
    assert generate(Fixed(rows), prompt, 3, eos_token=7, graph=False).tolist() == [[0, 5, 7, 7], [0, 1, 2, 8]]
    assert generate(Fixed(rows), prompt, 5, graph=False).tolist() == [[0, *row] for row in rows]
