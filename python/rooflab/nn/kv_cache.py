"""The keys and values that a model keeps while it generates text."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, _gemma3
from .functional.operands import check_kind
from .gemma3_config import Gemma3Config

__all__ = ["KVCache"]


class KVCache:
    """Keys and values of every layer of a Gemma-3 model, for a batch of sequences of equal length.

    All memory is taken at once. A layer with full attention has room for `max_length` tokens. A layer with a sliding
    window keeps no more than its window: its cache is a ring, in which a new token takes the place of the oldest.

    Parameters
    ----------
    config : Gemma3Config
        The model's configuration.
    batch_size : int
        How many texts.
    max_length : int
        The most tokens of a text, its prompt included.

    Attributes
    ----------
    length : int
        The tokens seen so far.
    position : Tensor
        (1,), int64, the same number on the device.

    Examples
    --------
    >>> from rooflab.nn import KVCache
    >>> import rooflab as rl
    >>> cache = KVCache(rl.nn.GEMMA3_270M, batch_size=1, max_length=512)
    >>> cache.nbytes // 512  # bytes a token
    18432
    """

    _lacks = False  # whether a pass has taken the places of tokens, and has not ended; old pickles do not say

    def __init__(
        self,
        config: Gemma3Config,
        batch_size: int,
        max_length: int,
        *,
        dtype: str = "bfloat16",
        device: str = "cpu",
    ) -> None:
        check_kind("KVCache", config, Gemma3Config, "config")
        if batch_size < 1 or max_length < 1:
            raise ValueError(f"[KVCache] expected batch_size and max_length >= 1, got {batch_size} and {max_length}")
        self.config = config
        self.batch_size = batch_size
        self.max_length = max_length
        self.length = 0
        self.position = _core.zeros(1, dtype="int64", device=device)
        self._layers: list[tuple[Tensor, Tensor]] = []
        for layer in range(config.num_hidden_layers):
            window = config.window(layer)
            places = max_length if window is None else min(window, max_length)
            shape = (batch_size, config.num_key_value_heads, places, config.head_dim)
            k, v = (_core.zeros(*shape, dtype=dtype, device=device) for _ in range(2))
            self._layers.append((k, v))

    def __getitem__(self, layer: int) -> tuple[Tensor, Tensor]:
        """(keys, values) of a layer, each (B, H_kv, T, D_h)."""
        return self._layers[layer]

    def __len__(self) -> int:
        return len(self._layers)

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values."""
        return sum(x.nbytes for layer in self._layers for x in layer)

    def check_room(self, tokens: int) -> None:
        """ValueError when `tokens` more do not fit, and where a pass that failed has overwritten the oldest ones."""
        if self._lacks:
            raise ValueError(
                "[KVCache] the last pass failed after it had overwritten tokens of a sliding window; call reset(), and "
                "read the text again"
            )
        self._check_fits(tokens)

    def _check_fits(self, tokens: int) -> None:
        if self.length + tokens > self.max_length:
            raise ValueError(
                f"[KVCache] it has room for {self.max_length} tokens and has seen {self.length}; "
                f"{tokens} more do not fit"
            )

    def begin(self, tokens: int, x: Tensor | None = None) -> None:
        """Note that layers write `tokens` from now on. `advance` says that all have written them.

        A pass that fails in between may have overwritten tokens. So an `x` (B, L, D) that no layer takes is refused
        here, with ValueError.
        """
        self.check_room(tokens)
        if x is not None:
            self._check_x(x)
        self._lacks = self.length > 0 and any(k.shape[2] < self.length + tokens for k, _ in self._layers)

    def _check_x(self, x: Tensor) -> None:
        batch, width, k = self.batch_size, self.config.hidden_size, self._layers[0][0]
        if x.ndim != 3 or (x.shape[0], x.shape[2]) != (batch, width):
            raise ValueError(f"[KVCache] x: expected (B={batch}, L, D={width}), got {x.shape}")
        if (x.device, x.dtype) != (k.device, k.dtype):
            raise ValueError(f"[KVCache] x: expected {k.dtype} on {k.device}, got {x.dtype} on {x.device}")

    def advance(self, tokens: int) -> None:
        """Count `tokens` that all layers have written. One launch."""
        self._check_fits(tokens)
        self._lacks = False
        self.position += tokens
        self.length += tokens

    def reset(self) -> None:
        """Forget all tokens; the memory stays."""
        self.position.fill_(0)
        self.length = 0
        self._lacks = False

    def layer(self, index: int, held: Tensor | None = None) -> _gemma3.KvCache:
        """What `Gemma3DecoderLayer.forward` takes: the cache of one layer.

        `held`, int64 (1,), is how many tokens the cache has seen, including the next one. With it a step asks the host
        for nothing, so a captured step can be replayed.
        """
        k, v = self._layers[index]
        return _gemma3.KvCache(k, v, self.position, self.length, held)

    def __repr__(self) -> str:
        return f"KVCache({len(self)} layers, batch {self.batch_size}, {self.length} of {self.max_length} tokens)"
