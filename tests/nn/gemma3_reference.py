"""A small Gemma-3 and the same model in NumPy."""

import numpy as np

import rooflab as rl
from rooflab.nn import Gemma3Config
from rooflab.testing import assert_close, to_float64

SMALL = Gemma3Config(
    hidden_size=48,
    intermediate_size=80,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    num_hidden_layers=3,
    vocab_size=101,
    sliding_window=6,
    sliding_window_pattern=3,
    query_pre_attn_scalar=20,
)


def randomise(module, seed=0, scale=4.0):
    """Make weights so large that every part of the layer affects the result, and norms different from zero."""
    rng = np.random.default_rng(seed)
    with rl.no_grad():
        for name, p in module.named_parameters():
            std = 0.3 if "norm" in name else (1 if "embed" in name else scale) / np.sqrt(p.shape[-1])
            p.copy_(rl.tensor(rng.standard_normal(p.shape) * std, dtype="float64"))
    return module


def norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * (1 + weight)


def turned(x, positions, theta):
    """Rotary embedding with the pairs (i, i + D_h / 2) as complex numbers, unlike in the kernels."""
    half = x.shape[-1] // 2
    angles = (positions[:, None].astype(np.float32) * (theta ** (-np.arange(half) / half)).astype(np.float32)).astype(
        np.float64
    )
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], axis=-1)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def layer_in_numpy(x, state, config, window):
    """One layer over a whole text: scores of all pairs, from which hidden pairs are removed one by one."""
    w = {name: to_float64(value) for name, value in state.items()}
    b, length, _ = x.shape
    heads, kv_heads, size = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    theta = config.rope_theta if window is None else config.rope_local_base_freq
    y = norm(x, w["input_layernorm.weight"], config.rms_norm_eps)
    q, k, v = (
        (y @ w[f"self_attn.{p}_proj.weight"].T).reshape(b, length, -1, size).transpose(0, 2, 1, 3) for p in "qkv"
    )
    positions = np.arange(length)
    q = turned(norm(q, w["self_attn.q_norm.weight"], config.rms_norm_eps), positions, theta)
    k = turned(norm(k, w["self_attn.k_norm.weight"], config.rms_norm_eps), positions, theta)
    out = np.zeros_like(q)
    for h in range(heads):
        g = h // (heads // kv_heads)
        for i in range(length):
            first = 0 if window is None else max(0, i - window + 1)
            scores = np.einsum("bd,bjd->bj", q[:, h, i], k[:, g, first : i + 1]) * config.query_pre_attn_scalar**-0.5
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, h, i] = np.einsum("bj,bjd->bd", p / p.sum(-1, keepdims=True), v[:, g, first : i + 1])
    out = out.transpose(0, 2, 1, 3).reshape(b, length, -1) @ w["self_attn.o_proj.weight"].T
    h = x + norm(out, w["post_attention_layernorm.weight"], config.rms_norm_eps)
    y = norm(h, w["pre_feedforward_layernorm.weight"], config.rms_norm_eps)
    y = (gelu(y @ w["mlp.gate_proj.weight"].T) * (y @ w["mlp.up_proj.weight"].T)) @ w["mlp.down_proj.weight"].T
    return h + norm(y, w["post_feedforward_layernorm.weight"], config.rms_norm_eps)


def model_in_numpy(tokens, model):
    state = {name: value.float().cpu() for name, value in model.model.state_dict().items()}
    table = to_float64(state["embed_tokens.weight"])
    x = table[tokens] * float(rl.tensor(model.config.hidden_size**0.5, dtype=model.dtype).item())
    for i in range(model.config.num_hidden_layers):
        prefix = f"layers.{i}."
        own = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        x = layer_in_numpy(x, own, model.config, model.config.window(i))
    return norm(x, to_float64(state["norm.weight"]), model.config.rms_norm_eps) @ table.T


TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 0.06}  # of the largest element; some 20 roundings in a row


def assert_near(actual, expected, dtype, name="result"):
    expected = to_float64(expected)
    assert_close(actual, expected, rtol=0, atol=TOLERANCE[dtype] * np.abs(expected).max(), name=name)
