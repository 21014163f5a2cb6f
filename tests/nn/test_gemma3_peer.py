"""The Gemma-3 model beside Hugging Face's, with the same random weights: prompt and 32 decode steps."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.nn import Gemma3Config, Gemma3DecoderLayer, Gemma3ForCausalLM, KVCache, RotaryEmbedding

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = pytest.mark.peer

# Sizes of the 270M model, but fewer layers, a shorter window and a smaller vocabulary.
CONFIG = Gemma3Config(num_hidden_layers=7, vocab_size=1000, sliding_window=24)
PROMPT, STEPS = 40, 32
# Of the largest element. float32: as asked. bfloat16: both models round some twelve results a layer by 2^-9 each, which
# add up like a random walk over seven layers: 2^-9 sqrt(84) = 0.018, twice since both do.
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.04}


@pytest.fixture(params=["float32", "bfloat16"])
def models(request, device):
    """(theirs, ours) with the same weights, norms away from their zeros."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    theirs = transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(
            vocab_size=CONFIG.vocab_size,
            hidden_size=CONFIG.hidden_size,
            intermediate_size=CONFIG.intermediate_size,
            num_hidden_layers=CONFIG.num_hidden_layers,
            num_attention_heads=CONFIG.num_attention_heads,
            num_key_value_heads=CONFIG.num_key_value_heads,
            head_dim=CONFIG.head_dim,
            sliding_window=CONFIG.sliding_window,
            query_pre_attn_scalar=CONFIG.query_pre_attn_scalar,
            layer_types=[
                "full_attention" if CONFIG.window(i) is None else "sliding_attention"
                for i in range(CONFIG.num_hidden_layers)
            ],
            attn_implementation="eager",
            pad_token_id=0,
        )
    )
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "norm" in name:
                parameter.normal_(0, 0.3)
    theirs = theirs.to(device=device, dtype=getattr(torch, request.param)).eval()
    ours = Gemma3ForCausalLM(CONFIG, dtype=request.param, device=device)
    state = {name: rl.from_dlpack(p.detach()) for name, p in theirs.state_dict().items() if name != "lm_head.weight"}
    ours.load_state_dict(state)
    return theirs, ours, request.param


def assert_near(actual, expected, dtype, name):
    expected = expected.detach().float().cpu().numpy()
    error = np.abs(actual.detach().float().cpu().numpy() - expected).max() / np.abs(expected).max()
    print(f"{name}, {dtype}: {error:.1e} of the largest element")
    assert error <= TOLERANCE[dtype], f"{name}: off by {error:.2e} of the largest element"


def test_the_model_says_what_theirs_does(models, device):
    theirs, ours, dtype = models
    tokens = np.random.default_rng(0).integers(0, CONFIG.vocab_size, (2, PROMPT + STEPS))
    cache = KVCache(CONFIG, 2, PROMPT + STEPS, dtype=dtype, device=device)
    with torch.no_grad():
        whole = theirs(torch.tensor(tokens, device=device)).logits
        out = theirs(torch.tensor(tokens[:, :PROMPT], device=device), use_cache=True)
    logits = ours(rl.tensor(tokens[:, :PROMPT], device=device), cache)
    assert_near(logits, out.logits, dtype, "prompt")
    step = ours.capture_decode(cache, 2)
    for i in range(PROMPT, PROMPT + STEPS):
        with torch.no_grad():
            out = theirs(torch.tensor(tokens[:, i : i + 1], device=device), past_key_values=out.past_key_values)
        logits = step(rl.tensor(tokens[:, i : i + 1], device=device))
        assert_near(logits, out.logits, dtype, f"decode step {i - PROMPT}")
        assert_near(logits[:, 0], whole[:, i], dtype, f"position {i} of the whole text")


@pytest.mark.parametrize("index", [0, 5], ids=["sliding", "full"])
def test_a_layer_computes_what_theirs_does(models, index, device):
    """Given the mask and the tables that their model makes for the layer."""
    theirs, ours, dtype = models
    seen = {}
    layer = theirs.model.layers[index]

    def keep(module, args, kwargs, result):
        seen["x"] = args[0] if args else kwargs["hidden_states"]
        seen["y"] = result[0] if isinstance(result, tuple) else result

    handle = layer.register_forward_hook(keep, with_kwargs=True)
    tokens = np.random.default_rng(1).integers(0, CONFIG.vocab_size, (2, 50))
    with torch.no_grad():
        theirs(torch.tensor(tokens, device=device))
    handle.remove()
    own = ours.model.layers[index]
    assert isinstance(own, Gemma3DecoderLayer)
    theta = CONFIG.rope_theta if CONFIG.window(index) is None else CONFIG.rope_local_base_freq
    cos, sin = RotaryEmbedding(theta, CONFIG.head_dim, dtype=dtype, device=device)(0, 50)
    with rl.no_grad():
        assert_near(own(rl.from_dlpack(seen["x"].contiguous()), cos, sin), seen["y"], dtype, f"layer {index}")
