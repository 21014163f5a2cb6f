"""The sizes of Gemma-3 models, under the names that Hugging Face's config.json uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..files import parsed, readable
from .transformer_config import check_bases, check_eps, check_sizes

__all__ = ["GEMMA3_270M", "GEMMA3_PSEUDO", "Gemma3Config"]


@dataclass(frozen=True)
class Gemma3Config:
    """Sizes and constants of a Gemma-3 text model; the defaults are those of the 270M model.

    Attributes
    ----------
    hidden_size, intermediate_size : int
        D and I.
    num_attention_heads, num_key_value_heads, head_dim : int
        H, H_kv and D_h.
    num_hidden_layers, vocab_size : int
        Layers, and V.
    sliding_window, sliding_window_pattern : int
        Every `sliding_window_pattern`-th layer sees the whole text, the others the last `sliding_window` tokens.
    rope_theta, rope_local_base_freq : float
        Base of the rotary embedding in layers with full attention and in those with a sliding window.
    rms_norm_eps : float
        Epsilon of the norms.
    query_pre_attn_scalar : int
        Scores are scaled by query_pre_attn_scalar^-0.5. 256.0 is taken for 256.

    Raises
    ------
    ValueError
        For a size that is not a whole number of at least 1, and a base that is not above 0.

    Examples
    --------
    >>> from rooflab.nn import GEMMA3_270M
    >>> GEMMA3_270M.window(0), GEMMA3_270M.window(5)
    (512, None)
    """

    hidden_size: int = 640
    intermediate_size: int = 2048
    num_attention_heads: int = 4
    num_key_value_heads: int = 1
    head_dim: int = 256
    num_hidden_layers: int = 18
    vocab_size: int = 262144
    sliding_window: int = 512
    sliding_window_pattern: int = 6
    rope_theta: float = 1e6
    rope_local_base_freq: float = 1e4
    rms_norm_eps: float = 1e-6
    query_pre_attn_scalar: int = 256

    def __post_init__(self) -> None:
        scalar: Any = self.query_pre_attn_scalar
        if isinstance(scalar, float) and scalar.is_integer():  # as some files of models write it
            object.__setattr__(self, "query_pre_attn_scalar", int(scalar))
        check_sizes(self, *(field.name for field in fields(self) if field.type == "int"))
        check_eps(self, "rms_norm_eps")
        check_bases(self, "rope_theta", "rope_local_base_freq")

    def window(self, layer: int) -> int | None:
        """How far back a layer sees, in tokens; None: over the whole text."""
        return None if (layer + 1) % self.sliding_window_pattern == 0 else self.sliding_window

    @classmethod
    def from_file(cls, path: str | Path) -> Gemma3Config:
        """Read a config.json from Hugging Face.

        Raises
        ------
        OSError
            When the file cannot be read.
        ValueError
            When it is not a Gemma-3 text model, or one that computes otherwise than this one, as with a scaled rotary
            embedding.
        """
        data = parsed(readable(path).read_text(encoding="utf-8"))
        if isinstance(data, Mapping):
            data = data.get("text_config", data)
        if not isinstance(data, Mapping):
            raise ValueError(f"[Gemma3Config] {path}: expected a JSON object, got {type(data).__name__}")
        data = with_defaults(data)
        if not str(data.get("model_type", "")).startswith("gemma3"):
            raise ValueError(f"[Gemma3Config] {path}: expected a Gemma-3 model, got {data.get('model_type')!r}")
        for name in _REFUSED:
            if data.get(name):
                raise ValueError(f"[Gemma3Config] {path}: {name} is not supported")
        for name, value in (("hidden_activation", "gelu_pytorch_tanh"), ("tie_word_embeddings", True)):
            if data.get(name, value) != value:
                raise ValueError(f"[Gemma3Config] {path}: {name}: expected {value}, got {data[name]!r}")
        try:
            data |= _rope_bases(data)
        except ValueError as error:
            raise ValueError(f"[Gemma3Config] {path}: {error}") from None
        kinds = data.get("layer_types")
        if kinds and "sliding_window_pattern" not in data and "full_attention" in kinds:
            data["sliding_window_pattern"] = kinds.index("full_attention") + 1
        config = cls(**{field.name: data[field.name] for field in fields(cls) if field.name in data})
        own = [
            "full_attention" if config.window(i) is None else "sliding_attention"
            for i in range(config.num_hidden_layers)
        ]
        if kinds is not None and kinds != own:
            raise ValueError(
                f"[Gemma3Config] {path}: expected every {config.sliding_window_pattern}-th layer to see all"
            )
        return config


def with_defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a config.json, and the defaults of Transformers' Gemma3TextConfig for what is absent or null.

    The files of released models leave out what equals these defaults: that of the 4B model has no heads.
    """
    given = {name: value for name, value in data.items() if value is not None}
    if "_sliding_window_pattern" in given:  # as newer versions write it
        given.setdefault("sliding_window_pattern", given["_sliding_window_pattern"])
    if "layer_types" not in given:
        given.setdefault("sliding_window_pattern", 6)
    return _TRANSFORMERS_DEFAULTS | given


def _rope_bases(data: Mapping[str, Any]) -> dict[str, float]:
    """Both bases of the rotary embedding, as Transformers 5 writes them or as older versions do."""
    for name in ("rope_scaling", "rope_parameters"):
        if not isinstance(data.get(name) or {}, Mapping):
            raise ValueError(f"{name}: expected a JSON object, got {data[name]!r}")
    if _scales(data.get("rope_scaling") or {}):
        raise ValueError("rope_scaling: a scaled rotary embedding is not supported")
    bases = {}
    parameters = data.get("rope_parameters") or {}
    for kind, name in (("full_attention", "rope_theta"), ("sliding_attention", "rope_local_base_freq")):
        own = parameters.get(kind) or {}
        if not isinstance(own, Mapping):
            raise ValueError(f"rope_parameters: {kind}: expected a JSON object, got {own!r}")
        if _scales(own):
            raise ValueError(f"rope_parameters: {kind}: a scaled rotary embedding is not supported")
        bases[name] = own.get("rope_theta", data[name])
    return bases


def _scales(rope: Mapping[str, Any]) -> bool:
    """Whether these fields ask for anything but plain angles."""
    return rope.get("rope_type", rope.get("type", "default")) != "default" or rope.get("factor", 1) != 1


_REFUSED = (
    "attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention", "attention_bias",
)  # fmt: skip
_TRANSFORMERS_DEFAULTS: dict[str, Any] = {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "num_hidden_layers": 26,
    "vocab_size": 262208,
    "sliding_window": 4096,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "rms_norm_eps": 1e-6,
    "query_pre_attn_scalar": 256,
}

GEMMA3_270M = Gemma3Config()
"""Gemma 3 270M: 268,098,176 parameters."""

GEMMA3_PSEUDO = Gemma3Config(
    hidden_size=1152, intermediate_size=6912, num_attention_heads=8, num_key_value_heads=8, num_hidden_layers=26
)
"""The larger configuration that Lab 1 times. No released model has these sizes."""
