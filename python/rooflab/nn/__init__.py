"""Modules under PyTorch's names, and the models that the labs measure."""

from .gemma3 import (
    DecodeGraph,
    Gemma3Attention,
    Gemma3DecoderLayer,
    Gemma3ForCausalLM,
    Gemma3MLP,
    Gemma3Model,
    RotaryEmbedding,
)
from .gemma3_config import GEMMA3_270M, GEMMA3_PSEUDO, Gemma3Config
from .generation import generate, sample
from .kv_cache import KVCache
from .layers import Embedding, Linear, RMSNorm
from .module import Module, ModuleList

__all__ = [
    "GEMMA3_270M",
    "GEMMA3_PSEUDO",
    "DecodeGraph",
    "Embedding",
    "Gemma3Attention",
    "Gemma3Config",
    "Gemma3DecoderLayer",
    "Gemma3ForCausalLM",
    "Gemma3MLP",
    "Gemma3Model",
    "KVCache",
    "Linear",
    "Module",
    "ModuleList",
    "RMSNorm",
    "RotaryEmbedding",
    "generate",
    "sample",
]
