"""The Gemma-3 layer in prefill and decode for Lab 1: inputs, positions, cache, and passes through one layer or a stack.

Sizes come from a mapping such as `GEMMA3_PSEUDO_CONFIG`. B is `batch_size`, D `hidden_size`, D_h `head_dim`. Lengths
count tokens. Tensors are made in `dtype` on `device`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rooflab import Tensor, no_grad, randn
from rooflab.nn import GEMMA3_270M, GEMMA3_PSEUDO, Gemma3Config, Gemma3DecoderLayer, KVCache, RotaryEmbedding

__all__ = [
    "GEMMA3_270M_CONFIG",
    "GEMMA3_PSEUDO_CONFIG",
    "create_decode_inputs_with_cache",
    "create_decode_inputs_without_cache",
    "create_prefill_inputs",
    "decode_forward",
    "get_position_embeddings",
    "initialize_kv_cache",
    "multi_layer_decode_forward",
    "multi_layer_prefill_forward",
    "prefill_forward",
]

GEMMA3_270M_CONFIG: dict[str, Any] = asdict(GEMMA3_270M)
"""Sizes of Gemma 3 270M under the names of its Hugging Face configuration: D, I, H, H_kv, D_h, the layers ..."""

GEMMA3_PSEUDO_CONFIG: dict[str, Any] = asdict(GEMMA3_PSEUDO)
"""A larger model for measurements: the widths and layers of Gemma 3 1B, with a key/value head for each query head. No
published model has these sizes."""

Positions = tuple[Tensor, Tensor]


def create_prefill_inputs(
    batch_size: int, length: int, config: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "cpu"
) -> Tensor:
    """What goes into a layer in prefill: random hidden states (B, length, D) of prompts of `length` tokens.

    Examples
    --------
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG, create_prefill_inputs
    >>> create_prefill_inputs(2, 16, GEMMA3_270M_CONFIG).shape
    (2, 16, 640)
    """
    return randn(batch_size, length, config["hidden_size"], dtype=dtype, device=device)


def create_decode_inputs_with_cache(
    batch_size: int, config: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "cpu"
) -> Tensor:
    """What goes into a layer in a decode step with a cache: (B, 1, D), the newest token of each text.

    Examples
    --------
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG, create_decode_inputs_with_cache
    >>> create_decode_inputs_with_cache(2, GEMMA3_270M_CONFIG).shape
    (2, 1, 640)
    """
    return create_prefill_inputs(batch_size, 1, config, dtype=dtype, device=device)


def create_decode_inputs_without_cache(
    batch_size: int, length: int, config: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "cpu"
) -> Tensor:
    """What goes into a layer in a decode step without a cache: (B, length, D), all tokens of each text.

    `length` includes the newest token.

    Examples
    --------
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG, create_decode_inputs_without_cache
    >>> create_decode_inputs_without_cache(2, 17, GEMMA3_270M_CONFIG).shape
    (2, 17, 640)
    """
    return create_prefill_inputs(batch_size, length, config, dtype=dtype, device=device)


def get_position_embeddings(
    length: int, config: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "cpu"
) -> list[Positions]:
    """cos and sin of the rotary embedding for positions 0 to length - 1, a pair for each layer of `config`.

    Returns
    -------
    list of (Tensor, Tensor)
        Each tensor is (length, D_h). Layers of one kind, with a sliding window or without, share a pair.

    Examples
    --------
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG, get_position_embeddings
    >>> pairs = get_position_embeddings(16, GEMMA3_270M_CONFIG)
    >>> len(pairs), pairs[0][0].shape
    (18, (16, 256))
    """
    sizes = Gemma3Config(**config)
    kinds = [sizes.window(layer) is None for layer in range(sizes.num_hidden_layers)]
    bases = {True: sizes.rope_theta, False: sizes.rope_local_base_freq}
    pairs = {
        kind: RotaryEmbedding(bases[kind], sizes.head_dim, dtype=dtype, device=device)(0, length) for kind in set(kinds)
    }
    return [pairs[kind] for kind in kinds]


def initialize_kv_cache(
    batch_size: int, max_length: int, config: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "cpu"
) -> KVCache:
    """An empty cache for all layers of `config`, for sequences of up to `max_length` tokens: see `rooflab.nn.KVCache`.

    Examples
    --------
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG, initialize_kv_cache
    >>> initialize_kv_cache(2, 16, GEMMA3_270M_CONFIG)
    KVCache(18 layers, batch 2, 0 of 16 tokens)
    """
    return KVCache(Gemma3Config(**config), batch_size, max_length, dtype=dtype, device=device)


def prefill_forward(layer: Gemma3DecoderLayer, x: Tensor, position_embeddings: Positions, cache: KVCache) -> Tensor:
    """`multi_layer_prefill_forward` through one layer, with a cache of one layer."""
    return multi_layer_prefill_forward([layer], x, [position_embeddings], cache)


def decode_forward(
    layer: Gemma3DecoderLayer, x: Tensor, position_embeddings: Positions, cache: KVCache | None = None
) -> Tensor:
    """`multi_layer_decode_forward` through one layer, with a cache of one layer or without a cache."""
    return multi_layer_decode_forward([layer], x, [position_embeddings], cache)


def multi_layer_prefill_forward(
    layers: Sequence[Gemma3DecoderLayer], x: Tensor, position_embeddings: Sequence[Positions], cache: KVCache
) -> Tensor:
    """All prompts through a stack of layers; their keys and values go into the cache.

    Parameters
    ----------
    layers : sequence of Gemma3DecoderLayer
        The first layer of the model first.
    x : Tensor
        (B, L, D), the prompts.
    position_embeddings : sequence of (Tensor, Tensor)
        From `get_position_embeddings`, for L tokens or more.
    cache : KVCache
        Empty, with as many layers. It holds L tokens afterwards.

    Returns
    -------
    Tensor
        (B, L, D).

    Raises
    ------
    ValueError
        If the cache holds tokens already, has no room for L, or has another number of layers.

    Examples
    --------
    >>> from rooflab.labs.lab1 import GEMMA3_270M_CONFIG, create_decode_inputs_with_cache, create_prefill_inputs
    >>> from rooflab.labs.lab1 import decode_forward, get_position_embeddings, initialize_kv_cache, prefill_forward
    >>> from rooflab.nn import GEMMA3_270M, Gemma3DecoderLayer
    >>> config = {**GEMMA3_270M_CONFIG, "num_hidden_layers": 1}
    >>> cache, (positions,) = initialize_kv_cache(2, 16, config), get_position_embeddings(16, config)
    >>> layer = Gemma3DecoderLayer(GEMMA3_270M)
    >>> prefill_forward(layer, create_prefill_inputs(2, 15, config), positions, cache).shape
    (2, 15, 640)
    >>> decode_forward(layer, create_decode_inputs_with_cache(2, config), positions, cache).shape, cache.length
    ((2, 1, 640), 16)
    """
    if cache.length:
        raise ValueError(f"[prefill] cache: expected an empty one, got {cache.length} tokens; cache.reset() empties it")
    return _through(layers, x, position_embeddings, cache)


def multi_layer_decode_forward(
    layers: Sequence[Gemma3DecoderLayer],
    x: Tensor,
    position_embeddings: Sequence[Positions],
    cache: KVCache | None = None,
) -> Tensor:
    """One decode step through a stack of layers.

    Parameters
    ----------
    layers : sequence of Gemma3DecoderLayer
        The first layer of the model first.
    x : Tensor
        With a cache (B, 1, D), the newest token of each text. Without one (B, L, D), all tokens of each text.
    position_embeddings : sequence of (Tensor, Tensor)
        From `get_position_embeddings`, for all tokens of a text or more.
    cache : KVCache, optional
        With as many layers. It holds the tokens before the newest, and one more afterwards.

    Returns
    -------
    Tensor
        (B, 1, D), of the newest token of each text.

    Raises
    ------
    ValueError
        If the cache is full or has another number of layers, or more than one token comes with it.
    """
    if cache is not None and x.shape[1] != 1:
        raise ValueError(f"[decode] x: expected (B, 1, D) with a cache, got {x.shape}")
    return _through(layers, x, position_embeddings, cache)[:, -1:]


def _through(
    layers: Sequence[Gemma3DecoderLayer], x: Tensor, position_embeddings: Sequence[Positions], cache: KVCache | None
) -> Tensor:
    start, length = cache.length if cache is not None else 0, x.shape[1]
    if cache is not None:
        if len(cache) != len(layers):
            raise ValueError(f"[cache] expected one of {len(layers)} layers, got {len(cache)}")
        cache.begin(length, x)
    with no_grad():
        for i, (layer, (cos, sin)) in enumerate(zip(layers, position_embeddings, strict=True)):
            place = cache.layer(i) if cache is not None else None
            x = layer(x, cos[start : start + length], sin[start : start + length], place)
    if cache is not None:
        cache.advance(length)
    return x
