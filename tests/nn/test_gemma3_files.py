"""Gemma-3 from a folder as Transformers writes it: the config, the tensors, and what is wrong with them."""

import json

import pytest
from nn.gemma3_reference import SMALL, randomise

import rooflab as rl
from rooflab.nn import Gemma3Config, Gemma3ForCausalLM


def hugging_face_config(config):
    return {
        "model_type": "gemma3_text",
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "num_hidden_layers": config.num_hidden_layers,
        "vocab_size": config.vocab_size,
        "sliding_window": config.sliding_window,
        "sliding_window_pattern": config.sliding_window_pattern,
        "query_pre_attn_scalar": config.query_pre_attn_scalar,
        "rope_theta": config.rope_theta,
        "rope_local_base_freq": config.rope_local_base_freq,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_scaling": None,
    }


def write_folder(folder, model, *, parts=1):
    (folder / "config.json").write_text(json.dumps(hugging_face_config(model.config)), encoding="utf-8")
    state = model.state_dict()
    if parts == 1:
        rl.save(state, folder / "model.safetensors")
        return
    names = list(state)
    where = {name: f"model-{i % parts}.safetensors" for i, name in enumerate(names)}
    for file in set(where.values()):
        rl.save({name: state[name] for name in names if where[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}), encoding="utf-8")


@pytest.mark.parametrize("parts", [1, 3])
def test_a_folder_gives_the_model_back(tmp_path, parts):
    model = randomise(Gemma3ForCausalLM(SMALL, dtype="bfloat16"))
    write_folder(tmp_path, model, parts=parts)
    loaded = Gemma3ForCausalLM.from_folder(tmp_path)
    assert loaded.config == SMALL
    for (name, a), (_, b) in zip(model.named_parameters(), loaded.named_parameters(), strict=True):
        assert (a == b).all().item(), name


def test_each_tensor_comes_from_the_file_that_the_index_names(tmp_path):
    """A file may hold an old copy of a tensor that lies elsewhere."""
    model = randomise(Gemma3ForCausalLM(SMALL, dtype="float32"))
    write_folder(tmp_path, model, parts=2)
    first, last = list(model.state_dict())[:2]
    for file in ("model-0.safetensors", "model-1.safetensors"):
        held = rl.load(tmp_path / file)
        stale = {name: rl.zeros(2) for name in (first, last) if name not in held}
        rl.save(held | stale, tmp_path / file)
    loaded = Gemma3ForCausalLM.from_folder(tmp_path, dtype="float32").state_dict()
    assert all((loaded[name] == weight).all().item() for name, weight in model.state_dict().items())
    held.pop(last)
    rl.save(held, tmp_path / file)
    with pytest.raises(ValueError, match=rf"it lists {last} in {file}, which has no such tensor$"):
        Gemma3ForCausalLM.from_folder(tmp_path)


def test_a_config_is_read_as_transformers_writes_it(tmp_path):
    """Version 5 writes a base for each kind of layer; a file is silent where it equals the defaults of Transformers."""
    path = tmp_path / "config.json"
    bases = {"full_attention": {"rope_theta": 500.0, "rope_type": "default"}, "sliding_attention": {"rope_theta": 50.0}}
    kinds = ["sliding_attention", "full_attention"] * 13
    path.write_text(
        json.dumps({"model_type": "gemma3_text", "rope_parameters": bases, "rope_theta": 7.0, "layer_types": kinds}),
        encoding="utf-8",
    )
    config = Gemma3Config.from_file(path)
    assert (config.rope_theta, config.rope_local_base_freq) == (500.0, 50.0)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (8, 4, 256)
    assert (config.hidden_size, config.intermediate_size, config.vocab_size) == (2304, 9216, 262208)
    assert (config.num_hidden_layers, config.sliding_window, config.sliding_window_pattern) == (26, 4096, 2)
    path.write_text(json.dumps({"model_type": "gemma3_text", "rope_theta": 7.0}), encoding="utf-8")
    config = Gemma3Config.from_file(path)
    assert (config.rope_theta, config.rope_local_base_freq, config.sliding_window_pattern) == (7.0, 1e4, 6)


def test_a_folder_with_wrong_tensors_is_one_clear_error(tmp_path):
    model = Gemma3ForCausalLM(SMALL, dtype="float32")
    write_folder(tmp_path, model)
    state = model.state_dict()
    wrong = dict(state)
    del wrong["model.norm.weight"]
    wrong["model.layers.0.mlp.up_proj.weight"] = rl.zeros(3, 4)
    wrong["lm_head.bias"] = rl.zeros(2)
    rl.save(wrong, tmp_path / "model.safetensors")
    pattern = (
        r"missing: model.norm.weight; unexpected: lm_head.bias; "
        r"of another shape: model.layers.0.mlp.up_proj.weight: expected \(80, 48\), got \(3, 4\)"
    )
    with pytest.raises(ValueError, match=pattern):
        Gemma3ForCausalLM.from_folder(tmp_path)
    config = hugging_face_config(SMALL)
    for change, message in (
        ({"model_type": "llama"}, "expected a Gemma-3 model, got 'llama'"),
        ({"rope_scaling": {"factor": 8}}, "scaled rotary embedding"),
        ({"rope_scaling": {"type": "linear", "factor": 8}}, "scaled rotary embedding"),
        ({"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8}}}, "full_attention: a scaled"),
        ({"rope_parameters": {"sliding_attention": {"rope_type": "yarn"}}}, "sliding_attention: a scaled rotary"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is not supported"),
        ({"layer_types": ["full_attention"] * 3}, "every 3-th layer"),
        ({"hidden_activation": "silu"}, "hidden_activation: expected gelu_pytorch_tanh, got 'silu'"),
        ({"attention_bias": True}, "attention_bias is not supported"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: expected True, got False"),
        ({"rope_theta": 0}, "rope_theta: expected a finite number above 0, got 0"),
        ({"rope_local_base_freq": -1.0}, "rope_local_base_freq: expected a finite number above 0"),
        ({"text_config": [1]}, "config.json: expected a JSON object, got list"),
        ({"rope_scaling": [8]}, r"rope_scaling: expected a JSON object, got \[8\]"),
        ({"rope_parameters": {"full_attention": 3}}, "full_attention: expected a JSON object, got 3"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            Gemma3ForCausalLM.from_folder(tmp_path)
    with pytest.raises(OSError, match=r"config\.json"):
        Gemma3ForCausalLM.from_folder(tmp_path / "none")


@pytest.mark.parametrize(
    ("index", "says"),
    [
        *((index, "a weight_map, of tensors to names of files") for index in ([], {}, {"weight_map": []})),
        *(
            ({"weight_map": {"a": name}}, f"names of files in the same folder, got {name!r}")
            for name in (3, "../model.safetensors", "./model.safetensors", "", ".", "..")
        ),
    ],
)
def test_an_index_without_names_of_files_is_refused(tmp_path, index, says):
    write_folder(tmp_path, Gemma3ForCausalLM(SMALL, dtype="float32"))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"index\.json: expected {says}$"):
        Gemma3ForCausalLM.from_folder(tmp_path)


@pytest.mark.parametrize("eps", [-1e-6, float("inf"), float("nan")])
def test_an_eps_that_no_norm_can_use_is_refused(eps):
    for make, name in ((Gemma3Config, "rms_norm_eps"), (rl.nn.TransformerConfig, "eps")):
        with pytest.raises(ValueError, match=f"{name}: expected a number that is finite and not negative"):
            make(**{name: eps})
