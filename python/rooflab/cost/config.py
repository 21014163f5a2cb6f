"""A model's description from a Hugging Face config.json."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..files import parsed, readable
from ..nn import Gemma3Config, GPT2Config, TransformerConfig
from ..nn.gemma3_config import with_defaults
from .checks import check_choice, check_whole
from .model_spec import ModelSpec, of_gemma3, of_gpt2, of_transformer

_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "silu": "silu", "swish": "silu"}


# Fields that change no size: how a model is trained, sampled, stored and named.
_WITHOUT_COST = re.compile(
    r".*(_token_id|dropout|pdrop|_coef|_eps|_epsilon|initializer_range|_scalar)|"
    r"(_|bos_|boi_|chunk_size_|eos_|image_|output_|pad_|reorder_|rope_|rotary_|scale_attn_|summary_|top_|vision_).*|"
    r"architectures|attn_implementation|auto_map|cache_implementation|do_sample|dtype|id2label|label2id|max_length|"
    r"max_position_embeddings|max_window_layers|mm_tokens_per_image|n_ctx|pretraining_tp|problem_type|"
    r"repetition_penalty|return_dict|task_specific_params|temperature|torch_dtype|torchscript|transformers_version|"
    r"use_cache"
)
_OTHER_MODELS = ("add_cross_attention", "is_encoder_decoder", "use_bidirectional_attention")


class _Fields:
    """The fields of a config, and the sentences when one does not fit."""

    def __init__(self, data: Mapping[str, Any], source: str) -> None:
        self.data, self.source = data, source
        self.read = {"model_type"}

    def error(self, text: str) -> ValueError:
        return ValueError(f"[cost] {self.source}: {text}")

    def get(self, name: str, default: Any = None) -> Any:
        """A field, or `default` where it is absent or null."""
        self.read.add(name)
        value = self.data.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number."""
        value = self.get(name, default)
        if value is None:
            raise self.error(f"{name} is missing")
        return check_whole(f"{self.source}: {name}", value, least)

    def flag(self, name: str, default: bool) -> bool:
        """True or False."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self.error(f"{name}: expected true or false, got {value!r}")
        return value

    def check_all_known(self) -> None:
        """Refuse fields that make another model, and warn of those that nothing here knows."""
        for name in _OTHER_MODELS:
            if self.data.get(name):
                raise self.error(f"{name}: expected false, because its work is not known here; got {self.data[name]!r}")
        left = [
            f"{name}={value!r}"
            for name, value in self.data.items()
            if value and name not in self.read and not _WITHOUT_COST.fullmatch(str(name))
        ]
        if left:
            warnings.warn(f"[cost] {self.source}: nothing of {', '.join(left)} is counted", stacklevel=3)

    def activation(self, name: str, default: str) -> str:
        """The family of an activation function."""
        return _ACTIVATIONS[check_choice(f"{self.source}: {name}", self.get(name, default), _ACTIVATIONS)]


def from_config(
    config: str | os.PathLike | Mapping[str, Any] | Gemma3Config | GPT2Config | TransformerConfig,
) -> ModelSpec:
    """The description of the model of a Hugging Face config.json.

    Parameters
    ----------
    config : path, dict, Gemma3Config, GPT2Config or TransformerConfig
        The file, its content, or the configuration of a model of `rl.nn`. Families: gpt2, llama, mistral, mixtral and
        gemma3_text (also inside of a gemma3), whose defaults are those of Transformers.

    Returns
    -------
    ModelSpec

    Raises
    ------
    OSError
        When the file cannot be read.
    ValueError
        When it is not a JSON object, is of another family, has cross attention or an encoder, or a field is missing,
        of a wrong type or in conflict with another.

    Warns
    -----
    UserWarning
        For fields that are not known here, which may change what the model costs.

    Examples
    --------
    >>> from rooflab.cost import from_config
    >>> sizes = {"n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257}
    >>> from_config({"model_type": "gpt2", **sizes}).parameters
    1557611200
    """
    if isinstance(config, Gemma3Config):
        return of_gemma3(config)
    if isinstance(config, TransformerConfig):
        return of_transformer(config)
    if isinstance(config, GPT2Config):
        return of_gpt2("gpt2", config.n_layer, config.n_embd, config.n_head, config.vocab_size, config.n_positions)
    source = "config" if isinstance(config, Mapping) else str(config)
    data: Any = config
    if isinstance(config, (str, os.PathLike)):
        try:
            data = parsed(readable(config).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"[cost] {source}: it is not JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise ValueError(f"[cost] {source}: expected a JSON object, got {type(data).__name__}")
    if isinstance(data.get("text_config"), Mapping) and data.get("model_type") == "gemma3":
        data = data["text_config"]
    family = check_choice(f"{source}: model_type", data.get("model_type"), _FAMILIES)
    given = _Fields(data, source)
    spec = _FAMILIES[family](given, _name_of(data, family))
    given.check_all_known()
    return spec


def _name_of(config: Mapping[str, Any], family: str) -> str:
    """The last part of the name that a config gives to its weights, or the family's."""
    name = config.get("_name_or_path")
    return (name.rstrip("/").rpartition("/")[2] if isinstance(name, str) else "") or family


def _gpt2(given: _Fields, name: str) -> ModelSpec:
    d_model = given.whole("n_embd")
    spec = of_gpt2(
        name,
        given.whole("n_layer"),
        d_model,
        given.whole("n_head"),
        given.whole("vocab_size"),
        given.whole("n_positions"),
    )
    return replace(
        spec,
        d_ff=given.whole("n_inner", 4 * d_model),
        activation=given.activation("activation_function", "gelu_new"),
        tied_head=given.flag("tie_word_embeddings", True),
    )


def _sizes(given: _Fields, name: str) -> dict[str, Any]:
    """What all families but GPT-2 call by the same names."""
    d_model, heads = given.whole("hidden_size"), given.whole("num_attention_heads")
    if given.get("head_dim") is None and d_model % heads:
        raise given.error(f"hidden_size: expected a multiple of num_attention_heads={heads}, got {d_model}")
    return {
        "name": name,
        "layers": given.whole("num_hidden_layers"),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": given.whole("num_key_value_heads", heads),
        "head_size": given.whole("head_dim", d_model // heads),
        "d_ff": given.whole("intermediate_size"),
        "vocabulary": given.whole("vocab_size"),
        "attention_bias": given.flag("attention_bias", False),
    }


def _llama(given: _Fields, name: str) -> ModelSpec:
    return ModelSpec(
        **_sizes(given, name),
        activation=given.activation("hidden_act", "silu"),
        mlp_bias=given.flag("mlp_bias", False),
        tied_head=given.flag("tie_word_embeddings", False),
    )


def _mistral(given: _Fields, name: str) -> ModelSpec:
    if "sliding_window" not in given.data:  # its default differs between versions of transformers
        raise given.error("sliding_window is missing; null where there is none")
    window = given.whole("sliding_window", 0, least=0)
    spec = _llama(given, name)
    return replace(spec, window=window, sliding_layers=spec.layers if window else 0)


def _mixtral(given: _Fields, name: str) -> ModelSpec:
    return replace(
        _mistral(given, name),
        experts=given.whole("num_local_experts"),
        experts_per_token=given.whole("num_experts_per_tok"),
    )


def _gemma3(given: _Fields, name: str) -> ModelSpec:
    given.data = with_defaults(given.data)
    sizes = _sizes(given, name)
    sliding = _sliding_layers(given, sizes["layers"])
    return ModelSpec(
        **sizes,
        activation=given.activation("hidden_activation", "gelu_pytorch_tanh"),
        zero_centered=True,
        post_norms=True,
        qk_norm=True,
        tied_head=given.flag("tie_word_embeddings", True),
        scaled_embedding=True,
        window=given.whole("sliding_window") if sliding else 0,
        sliding_layers=sliding,
    )


def _sliding_layers(given: _Fields, layers: int) -> int:
    """How many layers have a sliding window, by the list of layers or by how often one sees the whole text."""
    kinds, every = given.get("layer_types"), given.get("sliding_window_pattern")
    listed = None
    if kinds is not None:
        known = ("full_attention", "sliding_attention")
        if not isinstance(kinds, list) or len(kinds) != layers or any(kind not in known for kind in kinds):
            got = f"{len(kinds)}: {', '.join(sorted(set(map(str, kinds))))}" if isinstance(kinds, list) else repr(kinds)
            raise given.error(f"layer_types: expected {layers} names, each {' or '.join(known)}; got {got}")
        listed = kinds.count("sliding_attention")
    if every is None:
        return listed or 0
    counted = layers - layers // given.whole("sliding_window_pattern")
    if listed not in (None, counted):
        raise given.error(f"sliding_window_pattern={every} makes {counted} layers slide, layer_types {listed}")
    return counted


_FAMILIES: dict[str, Callable[[_Fields, str], ModelSpec]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "gemma3_text": _gemma3,
}
