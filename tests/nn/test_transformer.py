"""The transformer LM of Lab 2: its sizes and counts, its logits and gradients in plain NumPy, and bad input."""

import dataclasses

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import TRANSFORMER_SIZES, TransformerConfig, TransformerLM, half_pairs
from rooflab.testing import assert_close, to_float64

SMALL = TransformerConfig(48, 80, num_layers=3, num_heads=4, vocab_size=101, context_length=40, rope_theta=100.0)
# Lab 2's table: parameters, TFLOP of a forward of batch 4 at 128, 256, 512 and 1024 tokens, products of a forward.
TABLE = {
    "small": (128625408, (0.1262, 0.2573, 0.5340, 1.1452), 109),
    "medium": (423183360, (0.4292, 0.8714, 1.7943, 3.7947), 217),
    "large": (969411840, (0.9916, 2.0073, 4.1112, 8.6089), 325),
    "xl": (1998235200, (2.0498, 4.1398, 8.4407, 17.5257), 433),
    "2.7B": (3406809600, (3.4837, 7.0103, 14.1924, 29.0719), 289),
}
LENGTHS = (128, 256, 512, 1024)


def with_attention(config, attention):
    return dataclasses.replace(config, attention=attention)


def random_tokens(config, batch=2, length=17, seed=0):
    return np.random.default_rng(seed).integers(0, config.vocab_size, (batch, length))


def on_meta(config, length, batch=4):
    device = rl.meta("H200")
    return TransformerLM(config, device=device), rl.empty(batch, length, dtype="int64", device=device)


def loss_of(model, tokens):
    logits = model(tokens[:, :-1])
    return rl.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


@pytest.mark.parametrize("size", TABLE)
def test_parameters_flops_and_products_are_those_of_the_table(size):
    parameters, teraflops, products = TABLE[size]
    config = TRANSFORMER_SIZES[size]
    assert config.num_parameters == parameters
    for length, expected in zip(LENGTHS, teraflops, strict=True):
        model, tokens = on_meta(config, length)
        assert model.num_parameters() == parameters
        assert len(list(model.parameters())) == 9 * config.num_layers + 3
        with rl.count() as forward:
            logits = model(tokens)
        assert logits.shape == (4, length, 10000)
        counted = forward.by_op["matmul"]
        assert (counted.ops, counted.flops) == (products, config.forward_flops(4, length))
        assert round(counted.flops / 1e12, 4) == expected
        with rl.count() as backward:
            logits.backward(logits.detach())
        assert backward.by_op["matmul"].ops == 2 * products == 18 * config.num_layers + 2
        assert backward.by_op["matmul"].flops == 2 * counted.flops


def test_flash_leaves_two_products_a_layer_to_one_op():
    config = with_attention(TRANSFORMER_SIZES["small"], "flash")
    model, tokens = on_meta(config, 128)
    with rl.count() as counted:
        model(tokens)
    assert (counted.by_op["matmul"].ops, counted.by_op["attention"].ops) == (85, 12)
    assert "softmax" not in counted.by_op and counted.by_range["block_3/self_attention/attention"].ops == 1


def test_ranges_name_the_parts():
    model, tokens = on_meta(TRANSFORMER_SIZES["small"], 256)
    with rl.count() as counted:
        model(tokens)
    inside = "block_11/self_attention/attention_"
    parts = [counted.by_range[inside + name] for name in ("matmul_QK", "softmax", "matmul_V")]
    scores = 4 * 12 * 256 * 256
    # The scale is taken of queries, the mask of scores.
    assert [part.flops for part in parts] == [
        2 * scores * 64 + 4 * 256 * 768 + scores,
        5 * scores,
        2 * scores * 64,
    ]
    assert parts[1].ops == 1
    assert counted.by_range["block_0/ffn"].macs == 3 * 4 * 256 * 768 * 3072
    assert counted.by_range["head"].macs == 4 * 256 * 768 * 10000
    assert counted.by_range["embedding"].ops == 1


def norm(x, gain, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain


def turned(x, theta):
    """Neighbours as complex numbers, as the course has it."""
    length, size = x.shape[-2:]
    angles = np.arange(length)[:, None] * theta ** (-np.arange(0, size, 2) / size)
    z = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def logits_in_numpy(state, config, tokens):
    """With the course's rotary embedding, and scores of one query at a time."""
    w = {name: to_float64(value) for name, value in state.items()}
    x = w["token_embeddings.weight"][tokens]
    B, L, D = x.shape
    for i in range(config.num_layers):
        part = {name.removeprefix(f"layers.{i}."): value for name, value in w.items()}
        h = norm(x, part["ln1.weight"])
        q, k, v = (
            (h @ part[f"attn.{name}_proj.weight"].T).reshape(B, L, config.num_heads, -1).swapaxes(1, 2)
            for name in "qkv"
        )
        q, k = turned(q, config.rope_theta), turned(k, config.rope_theta)
        out = np.zeros_like(q)
        for t in range(L):
            scores = np.exp((k[:, :, : t + 1] @ q[:, :, t, :, None])[..., 0] / np.sqrt(D / config.num_heads))
            weights = scores / scores.sum(-1, keepdims=True)
            out[:, :, t] = (weights[..., None] * v[:, :, : t + 1]).sum(-2)
        x = x + out.swapaxes(1, 2).reshape(B, L, D) @ part["attn.output_proj.weight"].T
        h = norm(x, part["ln2.weight"])
        gate, up = h @ part["ffn.w1.weight"].T, h @ part["ffn.w3.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ part["ffn.w2.weight"].T
    return norm(x, w["ln_final.weight"]) @ w["lm_head.weight"].T


def course_weights(model, seed=1):
    """Weights in the course's order, and the same in the model; gains away from 1, scores away from 0."""
    rng = np.random.default_rng(seed)
    state = {}
    for name, p in model.named_parameters():
        spread = 0.3 * rng.standard_normal(p.shape) + 1 if p.ndim == 1 else rng.standard_normal(p.shape)
        state[name] = spread * (1 if p.ndim == 1 or "embed" in name else 2 / np.sqrt(p.shape[1]))
    ours = {name: rl.tensor(value, dtype=model.dtype, device=model.device) for name, value in state.items()}
    for name, value in ours.items():
        if "q_proj" in name or "k_proj" in name:
            ours[name] = half_pairs(value, model.config.num_heads)
    model.load_state_dict(ours)
    return state


@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_logits_in_numpy(attention, device):
    config = with_attention(SMALL, attention)
    model = TransformerLM(config, dtype="float64", device=device)
    tokens = random_tokens(config)
    expected = logits_in_numpy(course_weights(model), config, tokens)
    # Angles of up to 17 are float32, so off by up to 2^-20; scores of about 10 are off by about 10 times that.
    assert_close(model(rl.tensor(tokens, device=device)), expected, rtol=0, atol=20 * 2**-20)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dtypes_agree_with_float64(dtype, device):
    tokens = random_tokens(SMALL)
    exact = TransformerLM(SMALL, dtype="float64", device=device)
    model = TransformerLM(SMALL, dtype=dtype, device=device)
    model.load_state_dict(exact.state_dict())
    expected = exact(rl.tensor(tokens, device=device)).detach()
    logits = model(rl.tensor(tokens, device=device))
    assert logits.dtype == getattr(rl, dtype)
    # Some ten roundings a layer of numbers near 1, which add up like a random walk: sqrt(30) eps, twice for its spread.
    # In float32 the sums of products, of up to 80 each, round too.
    eps = {"float32": 2**-22, "bfloat16": 2**-9, "float16": 2**-12}[dtype]
    assert_close(logits, expected, rtol=0, atol=2 * 30**0.5 * eps * abs(to_float64(expected)).max())


def test_both_attentions_have_the_same_gradients(device):
    tokens = rl.tensor(random_tokens(SMALL), device=device)
    gradients = []
    for attention in ("composed", "flash"):
        model = TransformerLM(with_attention(SMALL, attention), device=device)
        course_weights(model)
        loss_of(model, tokens).backward()
        gradients.append({name: to_float64(p.grad) for name, p in model.named_parameters()})
    for name, expected in gradients[0].items():
        assert abs(expected).max() > 1e-4, f"{name}: no gradient"
        # float32, sums of up to 101 products on the way.
        assert_close(gradients[1][name], expected, rtol=0, atol=1e-4 * abs(expected).max())


def test_a_weight_follows_central_differences():
    model = TransformerLM(SMALL, dtype="float64")
    course_weights(model)
    tokens = rl.tensor(random_tokens(SMALL))
    loss_of(model, tokens).backward()
    step = 1e-5  # the error of a central difference is of the order step^2
    for name, p in model.named_parameters():
        if "layers.1" not in name and "embed" not in name and "head" not in name:
            continue
        place = np.unravel_index(abs(to_float64(p.grad)).argmax(), p.shape)
        losses = []
        for sign in (1, -1):
            with rl.no_grad():
                value = p[place].item()
                p[place] = value + sign * step
                losses.append(loss_of(model, tokens).item())
                p[place] = value
        assert p.grad[place].item() == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5), name


@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_a_model_in_another_dtype_rounds_no_angle_twice(attention):
    config, tokens = with_attention(SMALL, attention), rl.tensor(random_tokens(SMALL))
    right, made = TransformerLM(config), TransformerLM(config, dtype="bfloat16").float()
    made.load_state_dict(right.state_dict())
    assert made(tokens).tolist() == right(tokens).tolist()
    low = TransformerLM(config, dtype="bfloat16")
    low.load_state_dict(right.state_dict())
    assert right.bfloat16()(tokens).tolist() == low(tokens).tolist()


def test_no_token_sees_the_next_ones():
    model = TransformerLM(SMALL)
    tokens = random_tokens(SMALL)
    changed = tokens.copy()
    changed[:, 9] = (tokens[:, 9] + 1) % SMALL.vocab_size
    before, after = (to_float64(model(rl.tensor(t))) for t in (tokens, changed))
    assert (before[:, :9] == after[:, :9]).all() and (before[:, 9:] != after[:, 9:]).any(-1).all()


@pytest.mark.slow
def test_initial_weights_are_those_of_the_seed_and_of_the_course():
    def weights(seed):
        rl.manual_seed(seed)
        return {name: to_float64(p) for name, p in TransformerLM(TransformerConfig(256, 640, 2, 4)).named_parameters()}

    first, again, other = weights(3), weights(3), weights(4)
    for name, w in first.items():
        assert (w == again[name]).all()
        if w.ndim == 1:
            assert (w == 1).all()
            continue
        assert (w != other[name]).any()
        std = 1 if "embed" in name else (2 / sum(w.shape)) ** 0.5
        # A normal distribution cut at three standard deviations has 0.98658 of its standard deviation.
        assert w.std() == pytest.approx(0.98658 * std, rel=0.01)
        assert abs(w).max() <= 3 * std * (1 + 1e-6) and abs(w).max() > 2.9 * std
        assert abs(w).max() < 3 * std * (1 - 1e-6) or (abs(w) == abs(w).max()).sum() < 1e-4 * w.size  # few are clipped


def test_bad_tokens_are_refused():
    model = TransformerLM(SMALL)
    for tokens, words in (
        (rl.zeros(2, 41, dtype="int64"), r"up to context_length=40 tokens, got 41"),
        (rl.zeros(0, 4, dtype="int64"), "at least one text"),
        (rl.zeros(2, 0, dtype="int64"), "at least one text"),
        (rl.zeros(4, dtype="int64"), r"expected a tensor \(B, L\), got \(4,\)"),
        ([[1, 2]], r"expected a tensor \(B, L\), got list"),
        (rl.tensor([[1, 101]]), r"expected in \[0, 101\), got 101"),
        (rl.tensor([[-1, 1]]), r"expected in \[0, 101\), got -1"),
        (rl.zeros(1, 3), "int64 or int32"),
    ):
        with pytest.raises(ValueError, match=words):
            model(tokens)


def test_bad_sizes_are_refused():
    for options, words in (
        ({"num_layers": 0}, "num_layers: expected a whole number of at least 1, got 0"),
        ({"d_ff": 2.5}, "d_ff: expected a whole number"),
        ({"d_model": 50}, "12 heads of one even size, got 50"),
        ({"d_model": 36}, "12 heads of one even size, got 36"),  # D_h = 3
        ({"attention": "linear"}, "expected one of composed, flash, got 'linear'"),
    ):
        with pytest.raises(ValueError, match=words):
            TransformerConfig.of("small", **options)
    with pytest.raises(ValueError, match=r"expected one of small, medium, large, xl, 2\.7B, got 'tiny'"):
        TransformerConfig.of("tiny")
    with pytest.raises(ValueError, match="3 heads of the same even size"):
        half_pairs(rl.zeros(8, 4), 3)
