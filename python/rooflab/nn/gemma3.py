"""Gemma 3: its attention, MLP, decoder layer and whole model. The computation is csrc/nn/gemma3.cpp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor, _gemma3
from ..autograd import no_grad, set_grad_enabled
from ..serialization import load
from .gemma3_config import Gemma3Config
from .kv_cache import KVCache
from .layers import Embedding, Linear, RMSNorm, pack
from .module import Module, ModuleList

__all__ = [
    "DecodeGraph",
    "Gemma3Attention",
    "Gemma3DecoderLayer",
    "Gemma3ForCausalLM",
    "Gemma3MLP",
    "Gemma3Model",
    "RotaryEmbedding",
]


class Gemma3Attention(Module):
    """Grouped-query attention with normalised queries and keys, over the whole text or a sliding window.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    layer : int
        Which layer it is: that decides on the window.
    fused : bool
        Whether the norms of queries and keys run in one kernel with the rotary embedding, and q, k and v are one
        product.
    """

    def __init__(
        self,
        config: Gemma3Config,
        layer: int = 0,
        *,
        fused: bool = True,
        dtype: str = "bfloat16",
        device: str = "cpu",
    ) -> None:
        wide = config.num_attention_heads * config.head_dim
        narrow = config.num_key_value_heads * config.head_dim
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.q_proj = Linear(config.hidden_size, wide, bias=False, **where)
        self.k_proj = Linear(config.hidden_size, narrow, bias=False, **where)
        self.v_proj = Linear(config.hidden_size, narrow, bias=False, **where)
        self.o_proj = Linear(wide, config.hidden_size, bias=False, **where)
        pack(self.q_proj, self.k_proj, self.v_proj)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps, zero_centered=True, **where)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps, zero_centered=True, **where)
        self.scale = config.query_pre_attn_scalar**-0.5
        self.window = config.window(layer)
        self.fused = fused

    def native(self) -> _gemma3.Attention:
        """The weights as csrc/nn takes them."""
        return _gemma3.Attention(
            q_proj=self.q_proj.weight,
            k_proj=self.k_proj.weight,
            v_proj=self.v_proj.weight,
            o_proj=self.o_proj.weight,
            q_norm=self.q_norm.weight,
            k_norm=self.k_norm.weight,
            scale=self.scale,
            eps=self.q_norm.eps,
            window=self.window,
            fused=self.fused,
        )

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: _gemma3.KvCache | None = None) -> Tensor:
        """x (B, L, D) to (B, L, D); the other arguments as in `Gemma3DecoderLayer.forward`."""
        return self.native().forward(x, cos, sin, cache)


class Gemma3MLP(Module):
    """``down_proj(gelu(gate_proj(x)) * up_proj(x))`` with the tanh form of GeLU; no biases.

    `fused`: whether gate and up are one product.
    """

    def __init__(
        self, config: Gemma3Config, *, fused: bool = True, dtype: str = "bfloat16", device: str = "cpu"
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, bias=False, **where)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, bias=False, **where)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, bias=False, **where)
        pack(self.gate_proj, self.up_proj)
        self.fused = fused

    def native(self) -> _gemma3.Mlp:
        """The weights as csrc/nn takes them."""
        return _gemma3.Mlp(
            gate_proj=self.gate_proj.weight,
            up_proj=self.up_proj.weight,
            down_proj=self.down_proj.weight,
            fused=self.fused,
        )

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, D) to (B, L, D)."""
        return self.native().forward(x)


class Gemma3DecoderLayer(Module):
    """One layer: attention and an MLP, each between two norms and beside a residual.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    layer : int
        Which layer it is, from 0: every sixth sees the whole text.
    fused : bool
        Whether norms run in one kernel with what comes next (the rotary embedding, or a residual and another norm), and
        products of the same x are one. If not, each is a kernel and, for profiles, a range of its own.

    Examples
    --------
    >>> import rooflab as rl
    >>> layer = Gemma3DecoderLayer(rl.nn.GEMMA3_270M, dtype="float32")
    >>> cos, sin = RotaryEmbedding(1e4, 256, dtype="float32")(0, 3)
    >>> layer(rl.randn(1, 3, 640), cos, sin).shape, layer.num_parameters()
    ((1, 3, 640), 5573632)
    """

    def __init__(
        self,
        config: Gemma3Config,
        layer: int = 0,
        *,
        fused: bool = True,
        dtype: str = "bfloat16",
        device: str = "cpu",
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}

        def norm() -> RMSNorm:
            return RMSNorm(config.hidden_size, config.rms_norm_eps, zero_centered=True, dtype=dtype, device=device)

        self.self_attn = Gemma3Attention(config, layer, fused=fused, **where)
        self.mlp = Gemma3MLP(config, fused=fused, **where)
        self.input_layernorm = norm()
        self.post_attention_layernorm = norm()
        self.pre_feedforward_layernorm = norm()
        self.post_feedforward_layernorm = norm()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: _gemma3.KvCache | None = None) -> Tensor:
        """One pass through the layer.

        Parameters
        ----------
        x : Tensor
            (B, L, D).
        cos, sin : Tensor
            (L, D_h) or (B, L, D_h), of the tokens' positions: see `RotaryEmbedding`.
        cache : optional
            ``KVCache.layer(i)``. The tokens then come after those that it has seen, their keys and values are written
            into it, and no gradient is recorded. Call ``KVCache.advance(L)`` once all layers are through.

        Returns
        -------
        Tensor
            (B, L, D).

        Raises
        ------
        ValueError
            When shapes do not fit, or the cache is full.
        """
        native = _gemma3.Layer(
            self.self_attn.native(),
            self.mlp.native(),
            input_layernorm=self.input_layernorm.weight,
            post_attention_layernorm=self.post_attention_layernorm.weight,
            pre_feedforward_layernorm=self.pre_feedforward_layernorm.weight,
            post_feedforward_layernorm=self.post_feedforward_layernorm.weight,
        )
        if cache is None:
            return native.forward(x, cos, sin)
        with no_grad():
            return native.forward(x, cos, sin, cache)


class RotaryEmbedding:
    """cos and sin of the angles by which `rl.rope` turns heads.

    The angle of pair i at position p is ``p theta^(-2 i / D_h)``, computed in float32 as Hugging Face does. The tables
    are made once and grow when a longer text asks for it.

    Examples
    --------
    >>> import rooflab as rl
    >>> cos, sin = RotaryEmbedding(10000.0, head_dim=4, dtype="float32")(0, 2)
    >>> cos.shape, [f"{x:.3f}" for x in sin[1].tolist()]
    ((2, 4), ['0.841', '0.010', '0.841', '0.010'])
    """

    def __init__(self, theta: float, head_dim: int, *, dtype: str = "bfloat16", device: str = "cpu") -> None:
        self._frequencies = (1.0 / theta ** (np.arange(0, head_dim, 2) / head_dim)).astype(np.float32)
        self._where: dict[str, Any] = {"dtype": dtype, "device": device}
        self._cos = self._sin = _core.empty(0, head_dim, **self._where)

    def tables(self, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin of the positions from 0 on, each (at least `length`, D_h)."""
        if self._cos.shape[0] < length:
            angles = np.arange(max(length, 2 * self._cos.shape[0]), dtype=np.float32)[:, None] * self._frequencies
            angles = np.concatenate([angles, angles], axis=-1).astype(np.float64)
            self._cos, self._sin = (_core.tensor(f(angles), **self._where) for f in (np.cos, np.sin))
        return self._cos, self._sin

    def __call__(self, start: int, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin, each (length, D_h), of the positions from `start` on: views of the tables."""
        cos, sin = self.tables(start + length)
        return cos[start : start + length], sin[start : start + length]

    def at(self, position: Tensor, max_length: int) -> tuple[Tensor, Tensor]:
        """The same of positions that lie on the device, int64 (L,), each below `max_length`. Two launches."""
        cos, sin = self.tables(max_length)
        return _core.index_select(cos, 0, position), _core.index_select(sin, 0, position)


class Gemma3Model(Module):
    """Embedding, all decoder layers and the last norm."""

    def __init__(self, config: Gemma3Config, *, dtype: str = "bfloat16", device: str = "cpu") -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size, **where)
        self.layers = ModuleList(Gemma3DecoderLayer(config, i, **where) for i in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, zero_centered=True, **where)
        self.config = config
        # Rounded to the dtype first, as in Hugging Face's model.
        self._embedding_scale = float(_core.tensor(config.hidden_size**0.5, dtype=dtype).item())
        self._rotary_full = RotaryEmbedding(config.rope_theta, config.head_dim, **where)
        self._rotary_sliding = RotaryEmbedding(config.rope_local_base_freq, config.head_dim, **where)

    def forward(self, tokens: Tensor, cache: KVCache | None = None) -> Tensor:
        """Hidden states after the last norm.

        Parameters
        ----------
        tokens : Tensor
            (B, L), int64 or int32.
        cache : KVCache, optional
            The tokens come after those that it has seen; it is moved on by L. No gradient is recorded then.

        Returns
        -------
        Tensor
            (B, L, D).

        Raises
        ------
        ValueError
            When the cache has no room for L more tokens; for a token out of the vocabulary, on the CPU.
        """
        if not isinstance(tokens, Tensor) or tokens.ndim != 2:
            got = tokens.shape if isinstance(tokens, Tensor) else type(tokens).__name__
            raise ValueError(f"[Gemma3Model] tokens: expected a tensor (B, L), got {got}")
        start, length = cache.length if cache is not None else 0, tokens.shape[1]
        if cache is not None:
            if len(cache) != len(self.layers):
                raise ValueError(f"[Gemma3Model] cache: expected {len(self.layers)} layers, got {len(cache)}")
            cache.check_room(length)
        full, sliding = self._rotary_full(start, length), self._rotary_sliding(start, length)
        with set_grad_enabled(cache is None and _core.is_grad_enabled()):
            x = self._through_layers(tokens, full, sliding, cache, None)
        if cache is not None:
            cache.advance(length)
        return x

    def step(self, tokens: Tensor, cache: KVCache) -> Tensor:
        """The same for one token a text, (B, 1), without a number from the host, so that a graph can capture it.

        It does not move the cache on.
        """
        full = self._rotary_full.at(cache.position, cache.max_length)
        sliding = self._rotary_sliding.at(cache.position, cache.max_length)
        with no_grad():
            return self._through_layers(tokens, full, sliding, cache, cache.position + 1)

    def prepare(self, max_length: int) -> None:
        """Make the tables of positions for texts of up to `max_length` tokens now, and not in a capture."""
        self._rotary_full.tables(max_length)
        self._rotary_sliding.tables(max_length)

    def _through_layers(self, tokens, full, sliding, cache, held) -> Tensor:
        x = self.embed_tokens(tokens) * self._embedding_scale
        for i, layer in enumerate(self.layers):
            window = self.config.window(i)
            cos, sin = full if window is None else sliding
            x = layer(x, cos, sin, cache.layer(i, held) if cache is not None else None)
        return self.norm(x)


class Gemma3ForCausalLM(Module):
    """A Gemma-3 model that predicts the next token. Its output head is the embedding, transposed.

    Examples
    --------
    >>> import rooflab as rl
    >>> model = Gemma3ForCausalLM(rl.nn.GEMMA3_270M, device=rl.meta("H200"))
    >>> model.num_parameters()
    268098176
    """

    def __init__(self, config: Gemma3Config, *, dtype: str = "bfloat16", device: str = "cpu") -> None:
        self.model = Gemma3Model(config, dtype=dtype, device=device)
        self.config = config

    @property
    def device(self) -> str:
        """Where the parameters are."""
        return self.model.norm.weight.device

    @property
    def dtype(self):
        """Of the parameters."""
        return self.model.norm.weight.dtype

    def forward(self, tokens: Tensor, cache: KVCache | None = None, *, last_only: bool = False) -> Tensor:
        """Scores of the next token.

        Parameters
        ----------
        tokens : Tensor
            (B, L), int64 or int32.
        cache : KVCache, optional
            As in `Gemma3Model.forward`.
        last_only : bool
            Only the scores after the last token. The head is the largest product of a short text.

        Returns
        -------
        Tensor
            (B, L, V), or (B, 1, V).
        """
        x = self.model(tokens, cache)
        with set_grad_enabled(cache is None and _core.is_grad_enabled()):
            return self._head(x[:, -1:] if last_only else x)

    def prefill(self, tokens: Tensor, cache: KVCache) -> Tensor:
        """Read a prompt (B, L) into the cache; the scores (B, 1, V) of the token after it."""
        return self.forward(tokens, cache, last_only=True)

    def decode(self, tokens: Tensor, cache: KVCache) -> Tensor:
        """One step with the cache: the newest tokens (B, 1) to the scores (B, 1, V) of the ones after them."""
        if tokens.ndim == 2 and tokens.shape[1] != 1:
            raise ValueError(f"[decode] tokens: expected (B, 1), got {tokens.shape}")
        return self.forward(tokens, cache)

    def decode_without_cache(self, tokens: Tensor) -> Tensor:
        """The same step without one: the whole text (B, L) passes all layers again."""
        with no_grad():
            return self.forward(tokens, last_only=True)

    def _head(self, x: Tensor) -> Tensor:
        return _core.linear(x, self.model.embed_tokens.weight)

    def capture_decode(self, cache: KVCache, batch_size: int = 1) -> DecodeGraph:
        """`decode` as a graph: one host call a step, for every step until the cache is full."""
        return DecodeGraph(self, cache, batch_size)

    @classmethod
    def from_folder(cls, folder: str | Path, *, dtype: str = "bfloat16", device: str = "cpu") -> Gemma3ForCausalLM:
        """Load a model from a folder with config.json and safetensors files, as Hugging Face keeps them.

        Raises
        ------
        OSError
            When a file cannot be read.
        ValueError
            When a tensor is missing, left over or of another shape, or config.json is of another model.
        """
        folder = Path(folder)
        config = Gemma3Config.from_file(folder / "config.json")
        index = folder / "model.safetensors.index.json"
        names = ["model.safetensors"]
        if index.exists():
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        state: dict[str, Tensor] = {}
        for name in names:
            state |= load(folder / name)
        model = cls(config, dtype=dtype, device=device)
        model.load_state_dict(state)
        return model


class DecodeGraph:
    """A decode step that was captured once and is replayed for each token.

    The position lies on the device, so each replay reads and writes the next place of the cache.

    Attributes
    ----------
    graph : Graph
        What is replayed.
    """

    def __init__(self, model: Gemma3ForCausalLM, cache: KVCache, batch_size: int = 1) -> None:
        self._cache = cache
        self._tokens = _core.zeros(batch_size, 1, dtype="int64", device=model.device)
        model.model.prepare(cache.max_length)
        self.graph = _core.Graph(device=model.device)
        with self.graph.capture(), no_grad():
            self._logits = model._head(model.model.step(self._tokens, cache))
            cache.position += 1

    def __call__(self, tokens: Tensor) -> Tensor:
        """The newest tokens (B, 1) to the scores (B, 1, V) of the next; the next call overwrites these."""
        self._cache.check_room(1)
        self._tokens.copy_(tokens)
        self.graph.replay()
        self._cache.length += 1
        return self._logits
