"""Modules under PyTorch's names, and the models that the labs measure."""

from typing import TYPE_CHECKING

from .. import _habits
from . import functional, utils
from .containers import ModuleDict, ModuleList, Sequential
from .functions import (
    GELU,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    Identity,
    LogSoftmax,
    MSELoss,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)  # fmt: skip
from .gemma3 import Gemma3Attention, Gemma3DecoderLayer, Gemma3MLP
from .gemma3_config import GEMMA3_270M, GEMMA3_PSEUDO, Gemma3Config
from .gemma3_model import DecodeGraph, Gemma3ForCausalLM, Gemma3Model
from .generation import generate, sample
from .gpt2 import GPT2, GPT2_XL, GPT2Config
from .kv_cache import KVCache
from .layers import Embedding, LayerNorm, Linear, RMSNorm
from .module import Module
from .parameter import Parameter
from .rotary import RotaryEmbedding
from .transformer import CausalSelfAttention, SwiGLU, TransformerBlock, TransformerLM, half_pairs
from .transformer_config import TRANSFORMER_SIZES, TransformerConfig

__all__ = [  # noqa: RUF022
    # what modules are made of
    "Module", "ModuleDict", "ModuleList", "Parameter", "Sequential", "functional", "utils",
    # layers
    "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "GELU", "Identity", "LayerNorm", "Linear", "LogSoftmax",
    "MSELoss", "RMSNorm", "ReLU", "SiLU", "Sigmoid", "Softmax", "Tanh",
    # models
    "CausalSelfAttention", "DecodeGraph", "GEMMA3_270M", "GEMMA3_PSEUDO", "GPT2", "GPT2Config", "GPT2_XL",
    "Gemma3Attention", "Gemma3Config", "Gemma3DecoderLayer", "Gemma3ForCausalLM", "Gemma3MLP", "Gemma3Model", "KVCache",
    "RotaryEmbedding", "SwiGLU", "TRANSFORMER_SIZES", "TransformerBlock", "TransformerConfig", "TransformerLM",
    "generate", "half_pairs", "sample",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
