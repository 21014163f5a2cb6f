"""
The Gemma-3 layer of csrc/nn; rooflab.nn wraps it.
"""
from __future__ import annotations
import collections.abc
import rooflab._core
import typing
__all__: list[str] = ['Attention', 'DecodeStep', 'KvCache', 'Layer', 'Mlp', 'decode', 'forward', 'rms_norm_rope_append']
class KvCache:
    """
    The keys and values of one layer.
    """
    def __init__(self, k: rooflab._core.Tensor, v: rooflab._core.Tensor, position: rooflab._core.Tensor, seen: typing.SupportsIndex, held: rooflab._core.Tensor | None = None) -> None:
        ...
class Attention:
    """
    The weights and numbers of grouped-query attention.
    """
    def __init__(self, *, q_proj: rooflab._core.Tensor, k_proj: rooflab._core.Tensor, v_proj: rooflab._core.Tensor, o_proj: rooflab._core.Tensor, q_norm: rooflab._core.Tensor, k_norm: rooflab._core.Tensor, scale: typing.SupportsFloat | typing.SupportsIndex, eps: typing.SupportsFloat | typing.SupportsIndex, window: typing.SupportsIndex | None, fused: bool) -> None:
        ...
    def forward(self, x: rooflab._core.Tensor, cos: rooflab._core.Tensor, sin: rooflab._core.Tensor, cache: KvCache | None = None) -> rooflab._core.Tensor:
        """
        x (B, L, D) to (B, L, D).
        """
class Mlp:
    """
    The weights of the gated MLP.
    """
    def __init__(self, *, gate_proj: rooflab._core.Tensor, up_proj: rooflab._core.Tensor, down_proj: rooflab._core.Tensor, fused: bool) -> None:
        ...
    def forward(self, x: rooflab._core.Tensor) -> rooflab._core.Tensor:
        """
        x (B, L, D) to (B, L, D).
        """
class Layer:
    """
    The weights of a decoder layer.
    """
    def __init__(self, attention: Attention, mlp: Mlp, *, input_layernorm: rooflab._core.Tensor, post_attention_layernorm: rooflab._core.Tensor, pre_feedforward_layernorm: rooflab._core.Tensor, post_feedforward_layernorm: rooflab._core.Tensor) -> None:
        ...
    def forward(self, x: rooflab._core.Tensor, cos: rooflab._core.Tensor, sin: rooflab._core.Tensor, cache: KvCache | None = None) -> rooflab._core.Tensor:
        """
        x (B, L, D) to (B, L, D).
        """
class DecodeStep:
    """
    A layer, and what it needs to decode with a cache.
    """
    def __init__(self, layer: Layer, cos: rooflab._core.Tensor, sin: rooflab._core.Tensor, cache: KvCache) -> None:
        ...
def decode(steps: collections.abc.Sequence[DecodeStep], x: rooflab._core.Tensor, variant: str = '') -> rooflab._core.Tensor:
    """
    One token per text, x (B, 1, D), by a rung of rl.variants("gemma3_decode").
    """
def forward(steps: collections.abc.Sequence[DecodeStep], x: rooflab._core.Tensor) -> rooflab._core.Tensor:
    """
    x (B, L, D) through layers with their caches, one after the other.
    """
def rms_norm_rope_append(q: rooflab._core.Tensor, k: rooflab._core.Tensor, v: rooflab._core.Tensor, q_weight: rooflab._core.Tensor, k_weight: rooflab._core.Tensor, cos: rooflab._core.Tensor, sin: rooflab._core.Tensor, k_cache: rooflab._core.Tensor, v_cache: rooflab._core.Tensor, position: rooflab._core.Tensor, eps: typing.SupportsFloat | typing.SupportsIndex, zero_centered: bool = False, variant: str = '') -> rooflab._core.Tensor:
    """
    rl.rms_norm_rope of q and k, and rl.kv_append of that k and of v. Returns q.
    """
