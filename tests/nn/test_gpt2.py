"""GPT-2 against plain NumPy, with Hugging Face's names, and its bad input."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import GPT2, GPT2Config
from rooflab.testing import assert_close, to_float64

SMALL = GPT2Config(48, 3, 4, vocab_size=101, n_positions=40)


def norm(x, weight, bias, eps=1e-5):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight + bias


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def logits_in_numpy(w, config, tokens):
    B, L = tokens.shape
    x = w["wte.weight"][tokens] + w["wpe.weight"][:L]
    for i in range(config.n_layer):
        part = {name.removeprefix(f"h.{i}."): value for name, value in w.items()}

        def affine(x, name, part=part):
            return x @ part[f"{name}.weight"] + part[f"{name}.bias"]

        h = norm(x, part["ln_1.weight"], part["ln_1.bias"])
        q, k, v = (
            t.reshape(B, L, config.n_head, -1).swapaxes(1, 2) for t in np.split(affine(h, "attn.c_attn"), 3, axis=-1)
        )
        out = np.zeros_like(q)
        for t in range(L):
            scores = np.exp((k[:, :, : t + 1] @ q[:, :, t, :, None])[..., 0] / np.sqrt(q.shape[-1]))
            out[:, :, t] = ((scores / scores.sum(-1, keepdims=True))[..., None] * v[:, :, : t + 1]).sum(-2)
        x = x + affine(out.swapaxes(1, 2).reshape(B, L, -1), "attn.c_proj")
        h = norm(x, part["ln_2.weight"], part["ln_2.bias"])
        x = x + affine(gelu(affine(h, "mlp.c_fc")), "mlp.c_proj")
    return norm(x, w["ln_f.weight"], w["ln_f.bias"]) @ w["wte.weight"].T


def randomised(config, **where):
    model, rng = GPT2(config, **where), np.random.default_rng(0)
    state = {name: rng.standard_normal(p.shape) for name, p in model.named_parameters()}
    for name, value in state.items():
        if name.endswith(".weight") and "ln" not in name and "w" not in name[0]:
            value *= 2 / np.sqrt(value.shape[0])
    model.load_state_dict({name: rl.tensor(v, device=model.wte.weight.device) for name, v in state.items()})
    return model, state


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("attention", ["composed", "flash"])
def test_logits_in_numpy(attention, recompute, device):
    config = GPT2Config(**{**vars(SMALL), "attention": attention, "recompute": recompute})
    model, state = randomised(config, dtype="float64", device=device)
    tokens = np.random.default_rng(1).integers(0, 101, (2, 17))
    logits = model(rl.tensor(tokens, device=device))
    expected = logits_in_numpy(state, config, tokens)
    assert_close(logits, expected, rtol=0, atol=1e-10 * abs(expected).max())  # float64, sums of up to 192 products
    logits.sum().backward()
    assert all(abs(to_float64(p.grad)).max() > 0 for p in model.parameters())


def test_names_are_those_of_hugging_face():
    names = list(GPT2(GPT2Config(48, 1, 4)).state_dict())
    assert set(names) == {
        "wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias",
        *(f"h.0.{part}.{kind}" for kind in ("weight", "bias")
          for part in ("ln_1", "ln_2", "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")),
    }  # fmt: skip


def test_masks_of_released_files_are_left_out():
    model = GPT2(SMALL)
    size = SMALL.n_positions
    masks = {f"h.{SMALL.n_layer - 1}.attn.{name}": rl.ones(1, 1, size, size) for name in ("bias", "masked_bias")}
    model.load_state_dict(model.state_dict() | masks)
    whole = rl.nn.ModuleDict({"transformer": model})  # as in Hugging Face's files
    whole.load_state_dict(whole.state_dict() | {f"transformer.{name}": mask for name, mask in masks.items()})
    for other in (f"h.{SMALL.n_layer}.attn.bias", "h.0.attn.mask", "attn.bias"):
        with pytest.raises(ValueError, match=f"unexpected: {other}"):
            model.load_state_dict(model.state_dict() | {other: rl.ones(1)})


@pytest.mark.slow
def test_random_weights_are_those_of_the_paper():
    state = GPT2(GPT2Config(256, 8, 4)).state_dict()
    for name, std in (("wte", 0.02), ("h.3.attn.c_attn", 0.02), ("h.3.attn.c_proj", 0.005), ("h.0.mlp.c_proj", 0.005)):
        # So many numbers that their spread is within 1 % of the distribution's, three times over.
        assert to_float64(state[f"{name}.weight"]).std() == pytest.approx(std, rel=0.01)


def test_bad_input_is_refused():
    model = GPT2(SMALL)
    for tokens, words in (
        (
            rl.zeros(1, 41, dtype="int64"),
            r"\[GPT2\] tokens: expected sequences of up to context_length=40 tokens, got 41",
        ),
        (rl.zeros(0, 4, dtype="int64"), "at least one text"),
        (rl.tensor([[101]]), r"expected in \[0, 101\), got 101"),
    ):
        with pytest.raises(ValueError, match=words):
            model(tokens)
    for options, words in (
        ({"n_head": 5}, "expected a multiple of n_head=5, got 768"),
        ({"n_layer": 0}, "n_layer: expected a whole number of at least 1"),
        ({"attention": "x"}, "expected one of composed, flash"),
    ):
        with pytest.raises(ValueError, match=words):
            GPT2Config(**options)
