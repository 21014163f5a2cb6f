"""Descriptions of models: their parameters, what contradicts itself, and Hugging Face's config.json."""

import json
from dataclasses import replace

import numpy as np
import pytest

import rooflab as rl
from rooflab.cli import main
from rooflab.cost import MODELS, ModelSpec, from_config

PARAMETERS = {
    "gpt2": 124439808,
    "gpt2-medium": 354823168,
    "gpt2-large": 774030080,
    "gpt2-xl": 1557611200,
    "gemma3-270m": 268098176,
    "llama3-8b": 8030261248,
    "llama3-70b": 70553706496,
    "mixtral-8x7b": 46702792704,
}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
MIXTRAL = LLAMA | {
    "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    "sliding_window": None,
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
KINDS = (["sliding_attention"] * 5 + ["full_attention"]) * 3
GEMMA = {
    "model_type": "gemma3_text",
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 18,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "vocab_size": 262144,
    "sliding_window": 512,
    "layer_types": KINDS,
}


def test_parameters_are_those_of_the_released_models():
    assert {name: spec.parameters for name, spec in MODELS.items()} == PARAMETERS
    assert MODELS["mixtral-8x7b"].active_parameters == 12879925248
    assert MODELS["llama3-8b"].active_parameters == PARAMETERS["llama3-8b"]


def test_a_model_goes_by_its_name_in_any_case():
    assert MODELS["GPT2-XL"] is MODELS["gpt2-xl"] and "gpt3" not in MODELS
    with pytest.raises(ValueError, match=r"^\[cost\] model: expected a ModelSpec or one of gpt2, .*; got 'gpt3'$"):
        rl.cost.kv_bytes_per_token("gpt3")
    with pytest.raises(ValueError, match=r"^\[cost\] dtype: expected one of float16, .*; got 'int8'$"):
        rl.cost.kv_bytes_per_token("gpt2", "int8")


def test_numpy_numbers_become_pythons():
    spec = replace(MODELS["gpt2"], layers=np.int64(12), d_model=np.int32(768), vocabulary=np.uint32(50257))
    assert spec == MODELS["gpt2"] and type(spec.vocabulary) is int
    huge = replace(spec, layers=2**62, vocabulary=2**40)
    assert huge.parameters == 2**62 * (12 * 768**2 + 13 * 768) + (2**40 + 1024) * 768 + 2 * 768  # beyond 2^63, exactly


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layers": 0}, "layers: expected a whole number from 1 to 2^63 - 1, got 0"),
        ({"layers": -3}, "layers: expected a whole number from 1"),
        ({"d_model": 2**63}, "d_model: expected a whole number from 1 to 2^63 - 1, got 9223372036854775808"),
        ({"d_model": 4096.0}, "d_model: expected a whole number, got 4096.0"),
        ({"d_ff": "14336"}, "d_ff: expected a whole number, got '14336'"),
        ({"d_ff": None}, "d_ff: expected a whole number, got None"),
        ({"heads": True}, "heads: expected a whole number, got True"),
        ({"heads": np.array([3])}, "heads: expected a whole number, got array"),
        ({"kv_heads": 5}, "heads: expected a multiple of kv_heads=5, got 32"),
        ({"gated": 1}, "gated: expected True or False, got 1"),
        ({"activation": "relu"}, "activation: expected one of gelu, silu; got 'relu'"),
        ({"norm": "batch_norm"}, "norm: expected one of rms_norm, layer_norm"),
        ({"norm": "layer_norm", "zero_centered": True}, "zero_centered: a layer_norm has no such weight"),
        ({"window": 5, "sliding_layers": 33}, "sliding_layers: expected at most layers=32, got 33"),
        ({"sliding_layers": 3}, "window: expected 1 or more for 3 sliding layers, got 0"),
        ({"experts": 2, "experts_per_token": 3}, "experts_per_token: expected at most experts=2, got 3"),
        ({"experts": 2}, "experts_per_token: expected 1 or more of 2 experts, got 0"),
    ],
)
def test_what_does_not_fit_is_one_sentence(change, sentence):
    with pytest.raises(ValueError) as raised:
        replace(MODELS["llama3-8b"], **change)
    assert str(raised.value).startswith(f"[cost] llama3-8b: {sentence}") and "\n" not in str(raised.value)


# The config.json of the 4B model names no more than this: the rest equals the defaults of Transformers.
FOUR_B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
}
FOUR_B_SIZES = {
    "name": "gemma3_text", "layers": 34, "d_model": 2560, "heads": 8, "kv_heads": 4, "head_size": 256, "d_ff": 10240,
    "vocabulary": 262208, "window": 1024, "sliding_layers": 29,
}  # fmt: skip


def without(config, *names):
    return {name: value for name, value in config.items() if name not in names}


def like(model, **changes):
    return replace(MODELS[model], **changes)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (GPT2, like("gpt2", name="gpt2")),
        (GPT2 | {"n_inner": None, "_name_or_path": "openai/gpt2-x"}, like("gpt2", name="gpt2-x")),
        (GPT2 | {"n_inner": 7}, like("gpt2", d_ff=7)),
        (LLAMA, like("llama3-8b", name="llama")),
        (LLAMA | {"head_dim": 64}, like("llama3-8b", name="llama", head_size=64)),
        (LLAMA | {"num_key_value_heads": None}, like("llama3-8b", name="llama", kv_heads=32)),
        (LLAMA | {"attention_bias": True}, like("llama3-8b", name="llama", attention_bias=True)),
        (LLAMA | {"mlp_bias": True}, like("llama3-8b", name="llama", mlp_bias=True)),
        (LLAMA | {"tie_word_embeddings": True}, like("llama3-8b", name="llama", tied_head=True)),
        (
            LLAMA | {"model_type": "mistral", "sliding_window": 4096},
            like("llama3-8b", name="mistral", window=4096, sliding_layers=32),
        ),
        (LLAMA | {"model_type": "mistral", "sliding_window": None}, like("llama3-8b", name="mistral")),
        (MIXTRAL, like("mixtral-8x7b", name="mixtral")),
        (GEMMA, like("gemma3-270m", name="gemma3_text")),
        (GEMMA | {"layer_types": None, "sliding_window_pattern": 6}, like("gemma3-270m", name="gemma3_text")),
        (GEMMA | {"sliding_window_pattern": 6}, like("gemma3-270m", name="gemma3_text")),
        (without(GEMMA, "layer_types"), like("gemma3-270m", name="gemma3_text")),
        (without(GEMMA, "layer_types") | {"_sliding_window_pattern": 6}, like("gemma3-270m", name="gemma3_text")),
        (without(GEMMA, "sliding_window"), like("gemma3-270m", name="gemma3_text", window=4096)),
        (FOUR_B, like("gemma3-270m", **FOUR_B_SIZES)),
        ({"model_type": "gemma3", "text_config": GEMMA}, like("gemma3-270m", name="gemma3_text")),
        (rl.nn.GEMMA3_270M, like("gemma3-270m", name="gemma3")),
    ],
)
def test_a_config_is_the_model_that_it_says(config, expected, tmp_path):
    assert from_config(config) == expected
    if isinstance(config, dict):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        assert from_config(path) == from_config(str(path)) == expected


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({}, "model_type: expected one of gpt2, llama, mistral, mixtral, gemma3_text; got None"),
        (LLAMA | {"model_type": "bert"}, "model_type: expected one of .*; got 'bert'"),
        (LLAMA | {"model_type": ["llama"]}, "model_type: expected one of"),
        (without(GPT2, "n_layer"), "n_layer is missing"),
        (without(LLAMA, "intermediate_size"), "intermediate_size is missing"),
        (without(MIXTRAL, "num_local_experts"), "num_local_experts is missing"),
        (without(MIXTRAL, "sliding_window"), "sliding_window is missing; null where there is none"),
        (GEMMA | {"sliding_window_pattern": 3}, "sliding_window_pattern=3 makes 12 layers slide, layer_types 15"),
        (GEMMA | {"layer_types": KINDS[:5]}, "layer_types: expected 18 names, .*; got 5: sliding_attention"),
        (GEMMA | {"layer_types": ["chunked"] * 18}, "layer_types: expected 18 names, .*; got 18: chunked"),
        (GEMMA | {"layer_types": 18}, "layer_types: expected 18 names, .*; got 18"),
        (LLAMA | {"hidden_size": 4097}, "hidden_size: expected a multiple of num_attention_heads=32, got 4097"),
        (GPT2 | {"n_embd": 770}, "d_model: expected a multiple of heads=12, got 770"),
        (LLAMA | {"num_key_value_heads": 5}, "heads: expected a multiple of kv_heads=5, got 32"),
        (LLAMA | {"vocab_size": "128256"}, "vocab_size: expected a whole number, got '128256'"),
        (LLAMA | {"vocab_size": 2**63}, "vocab_size: expected a whole number from 1"),
        (LLAMA | {"hidden_act": "relu"}, "hidden_act: expected one of gelu, .*; got 'relu'"),
        (LLAMA | {"hidden_act": ["silu"]}, "hidden_act: expected one of"),
        (LLAMA | {"tie_word_embeddings": 1}, "tie_word_embeddings: expected true or false, got 1"),
    ],
)
def test_a_config_that_does_not_fit_is_one_sentence(config, sentence):
    with pytest.raises(ValueError, match=rf"^\[cost\] [^\n]*{sentence}[^\n]*$"):
        from_config(config)


@pytest.mark.parametrize(("text", "sentence"), [("{", "it is not JSON"), ("[1]", "expected a JSON object, got list")])
def test_a_file_that_is_no_config_is_named(text, sentence, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence) as raised:
        from_config(path)
    assert str(path) in str(raised.value)
    with pytest.raises(FileNotFoundError):
        from_config(tmp_path / "absent.json")
    with pytest.raises(ValueError, match=r"^\[cost\] 7: expected a JSON object, got int$"):
        from_config(7)


def test_a_spec_says_its_cache():
    spec = ModelSpec("s", 4, 8, 2, 1, 4, 16, 10, window=3, sliding_layers=3)
    assert spec.cache_bytes(2, 10, "float32") == 2 * (10 + 3 * 3) * 2 * 4 * 4
    assert rl.cost.kv_bytes_per_token(spec, "float32") == 4 * 2 * 4 * 4


def test_layer_norms_of_queries_and_keys_have_biases():
    """By hand: D=8, H_kv=1, D_h=4, I=16, V=32, one layer, an untied head."""
    sizes = {"layers": 1, "d_model": 8, "heads": 2, "kv_heads": 1, "head_size": 4, "d_ff": 16, "vocabulary": 32}
    projections, mlp, tables = 8 * (8 + 4 + 4) + 8 * 8, 3 * 8 * 16, 2 * 8 * 32
    for norm, each in (("rms_norm", 1), ("layer_norm", 2)):
        norms = each * (2 * 8 + 8 + 2 * 4)
        spec = ModelSpec("t", **sizes, norm=norm, qk_norm=True)
        assert spec.parameters == projections + mlp + tables + norms


@pytest.mark.parametrize("name", ["add_cross_attention", "is_encoder_decoder"])
def test_another_kind_of_model_is_refused(name):
    assert from_config(GPT2 | {name: False}) == from_config(GPT2)
    with pytest.raises(
        ValueError, match=rf"config: {name}: expected false, because its work is not known here; got True"
    ):
        from_config(GPT2 | {name: True})


def test_the_text_of_a_model_of_another_family_is_refused():
    with pytest.raises(ValueError, match=r"model_type: expected one of .*; got 'llava'"):
        from_config({"model_type": "llava", "text_config": LLAMA})


def test_fields_that_are_not_known_are_named(tmp_path, capsys):
    config = LLAMA | {"num_nextn_predict_layers": 1, "q_lora_rank": None}
    with pytest.warns(UserWarning, match=r"^\[cost\] config: nothing of num_nextn_predict_layers=1 is counted$"):
        assert from_config(config) == from_config(LLAMA)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert main(["cost", "--config", str(path), "--length", "8"]) == 0
    assert capsys.readouterr().err == f"rooflab cost: {path}: nothing of num_nextn_predict_layers=1 is counted.\n"


# What the files of released models have beside their sizes.
USUAL = {
    "gpt2": {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
             "bos_token_id": 50256, "embd_pdrop": 0.1, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
             "n_ctx": 1024, "summary_type": "cls_index", "summary_use_proj": True, "resid_pdrop": 0.1,
             "task_specific_params": {"text-generation": {"do_sample": True}}},
    "llama": {"architectures": ["LlamaForCausalLM"], "attention_dropout": 0.1, "eos_token_id": [128001],
              "max_position_embeddings": 8192, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
              "rope_scaling": {"factor": 8.0}, "torch_dtype": "bfloat16", "transformers_version": "4"},
    "mixtral": {"router_aux_loss_coef": 0.02, "output_router_logits": True, "max_position_embeddings": 32768},
    "gemma3": {"query_pre_attn_scalar": 256, "rope_local_base_freq": 10000, "attn_logit_softcapping": None,
               "_sliding_window_pattern": 6, "cache_implementation": "hybrid"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "family"), [(GPT2, "gpt2"), (LLAMA, "llama"), (MIXTRAL, "mixtral"), (GEMMA, "gemma3")]
)
@pytest.mark.filterwarnings("error")
def test_fields_without_a_cost_are_no_warning(config, family):
    assert from_config(config | USUAL[family]) == from_config(config)
