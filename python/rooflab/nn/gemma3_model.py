"""Gemma 3: the whole model, its output head, and decode steps replayed as a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (so that NumPy knows bfloat16)
import numpy as np

from .. import _core
from .._core import DType, Tensor, _gemma3
from ..autograd import no_grad, set_grad_enabled
from ..files import parsed, readable
from ..serialization import load
from .containers import ModuleList
from .functional.operands import check_kind
from .gemma3 import Gemma3DecoderLayer, steps_of
from .gemma3_config import Gemma3Config
from .kv_cache import KVCache
from .layers import Embedding, RMSNorm
from .module import Module
from .rotary import RotaryEmbedding

__all__ = ["DecodeGraph", "Gemma3ForCausalLM", "Gemma3Model"]


class Gemma3Model(Module):
    """Embedding, all decoder layers and the last norm.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.

    Examples
    --------
    >>> from rooflab.nn import Gemma3Model
    >>> import rooflab as rl
    >>> config = rl.nn.Gemma3Config(num_hidden_layers=1, vocab_size=100)
    >>> Gemma3Model(config, dtype="float32")(rl.tensor([[1, 2]])).shape
    (1, 2, 640)
    """

    __call__: Callable[..., Tensor]

    def __init__(self, config: Gemma3Config, *, dtype: str = "bfloat16", device: str = "cpu") -> None:
        check_kind("Gemma3Model", config, Gemma3Config, "config")
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size, **where)
        self.layers = ModuleList(Gemma3DecoderLayer(config, i, **where) for i in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, zero_centered=True, **where)
        self.config = config
        self._rotary_full = RotaryEmbedding(config.rope_theta, config.head_dim, **where)
        self._rotary_sliding = RotaryEmbedding(config.rope_local_base_freq, config.head_dim, **where)

    def forward(self, tokens: Tensor, cache: KVCache | None = None) -> Tensor:
        """Hidden states after the last norm.

        Parameters
        ----------
        tokens : Tensor
            (B, L), int64 or int32.
        cache : KVCache, optional
            The tokens come after those that it has seen, and it advances by L. No gradient is recorded then.

        Returns
        -------
        Tensor
            (B, L, D).

        Raises
        ------
        ValueError
            When the cache has no room for L more tokens, is one for another model or in another dtype than the
            parameters, or lost tokens in a pass that failed; for a token out of the vocabulary, which is raised at the
            next wait for a GPU (see rl.cuda.synchronize).
        """
        if not isinstance(tokens, Tensor) or tokens.ndim != 2:
            got = tokens.shape if isinstance(tokens, Tensor) else type(tokens).__name__
            raise ValueError(f"[Gemma3Model] tokens: expected a tensor (B, L), got {got}")
        start, length = cache.length if cache is not None else 0, tokens.shape[1]
        if cache is not None:
            self.check_cache(cache, tokens.shape[0])
            cache.check_room(length)
        full, sliding = self._rotary_full(start, length), self._rotary_sliding(start, length)
        with set_grad_enabled(cache is None and _core.is_grad_enabled()):
            x = self._through_layers(tokens, full, sliding, cache, None)
        if cache is not None:
            cache.advance(length)
        return x

    def step(self, tokens: Tensor, cache: KVCache) -> Tensor:
        """The same for one token a text, (B, 1), without a number from the host, so that a graph can capture it.

        It does not advance the cache.
        """
        full = self._rotary_full.at(cache.position, cache.max_length)
        sliding = self._rotary_sliding.at(cache.position, cache.max_length)
        with no_grad():
            return self._through_layers(tokens, full, sliding, cache, cache.position + 1)

    def check_cache(self, cache: KVCache, batch_size: int) -> None:
        """ValueError for a cache that was made for another model, for other texts, or in another dtype."""
        if cache.batch_size != batch_size:
            raise ValueError(f"[Gemma3Model] cache: expected one of B={batch_size} texts, got {cache.batch_size}")
        if len(cache) != len(self.layers):
            raise ValueError(f"[Gemma3Model] cache: expected {len(self.layers)} layers, got {len(cache)}")
        dtype, heads, size = self.norm.weight.dtype, self.config.num_key_value_heads, self.config.head_dim
        found = cache[0][0].dtype
        if found != dtype:  # under autocast too: a decode step reads keys and values as they are
            raise ValueError(f"[Gemma3Model] cache: expected the dtype of the model, {dtype}, got {found}")
        if cache.config is self.config:
            return
        for layer in range(len(cache)):
            shape, window = cache[layer][0].shape, self.config.window(layer)
            if shape[1] != heads or shape[3] != size or shape[2] not in (window, cache.max_length):
                places = cache.max_length if window is None else min(window, cache.max_length)
                raise ValueError(
                    f"[Gemma3Model] cache: layer {layer}: expected (B, H_kv={heads}, T={places}, D_h={size}), got "
                    f"{shape}; make it with KVCache(model.config, ...)"
                )

    def prepare(self, max_length: int) -> None:
        """Make the tables of positions for sequences of up to `max_length` tokens now, and not during a capture."""
        self._rotary_full.tables(max_length)
        self._rotary_sliding.tables(max_length)

    def _through_layers(self, tokens, full, sliding, cache, held) -> Tensor:
        x = self.embed_tokens(tokens)
        x = x * _rounded(self.config.hidden_size**0.5, x.dtype)  # rounded first, as in Hugging Face's model
        angles = [full if self.config.window(i) is None else sliding for i in range(len(self.layers))]
        caches = None if cache is None else [cache.layer(i, held) for i in range(len(self.layers))]
        steps = steps_of(self.layers, angles, caches) if caches is not None else None
        if cache is not None and held is None:
            cache.begin(tokens.shape[1])
        if steps is not None:
            return self.norm(_gemma3.forward(steps, x))
        for i, layer in enumerate(self.layers):
            x = layer(x, *angles[i], None if caches is None else caches[i])
        return self.norm(x)


def _is_name(name: object) -> bool:
    """Whether a name is that of a file in the folder, and no way out of it."""
    return isinstance(name, str) and name not in ("", "..") and Path(name).name == name


def _indexed(index: Path) -> dict[str, Tensor]:
    """Each tensor that an index lists, from the file that it names for it: another may hold an old copy."""
    found = parsed(readable(index).read_text(encoding="utf-8"))
    places = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(places, dict):
        raise ValueError(f"[Gemma3ForCausalLM] {index}: expected a weight_map, of tensors to names of files")
    if wrong := [name for name in places.values() if not _is_name(name)]:
        raise ValueError(f"[Gemma3ForCausalLM] {index}: expected names of files in the same folder, got {wrong[0]!r}")
    state: dict[str, Tensor] = {}
    for file in sorted(set(places.values())):
        tensors, listed = load(index.with_name(file)), [name for name in places if places[name] == file]
        if lacking := [name for name in listed if name not in tensors]:
            raise ValueError(f"[Gemma3ForCausalLM] {index}: it lists {lacking[0]} in {file}, which has no such tensor")
        state |= {name: tensors[name] for name in listed}
    return state


def _rounded(number: float, dtype: DType) -> float:
    return float(np.asarray(number).astype(str(dtype)))


class Gemma3ForCausalLM(Module):
    """A Gemma-3 model that predicts the next token. Its output head is the embedding, transposed.

    Parameters
    ----------
    config : Gemma3Config
        The sizes.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.

    Examples
    --------
    >>> from rooflab.nn import Gemma3ForCausalLM
    >>> import rooflab as rl
    >>> model = Gemma3ForCausalLM(rl.nn.GEMMA3_270M, device=rl.meta("H200"))
    >>> model.num_parameters()
    268098176
    """

    __call__: Callable[..., Tensor]

    def __init__(self, config: Gemma3Config, *, dtype: str = "bfloat16", device: str = "cpu") -> None:
        self.model = Gemma3Model(config, dtype=dtype, device=device)
        self.config = config

    @property
    def device(self) -> str:
        """Where the parameters are."""
        return self.model.norm.weight.device

    @property
    def dtype(self) -> DType:
        """The dtype of the parameters."""
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
            Compute only the scores after the last token. For a short text the head is the largest product.

        Returns
        -------
        Tensor
            (B, L, V), or (B, 1, V).
        """
        x = self.model(tokens, cache)
        with set_grad_enabled(cache is None and _core.is_grad_enabled()):
            return self._head(x[:, -1:] if last_only else x)

    def prefill(self, tokens: Tensor, cache: KVCache) -> Tensor:
        """Read a prompt (B, L) into the cache; returns the scores (B, 1, V) of the token after it."""
        return self.forward(tokens, cache, last_only=True)

    def decode(self, tokens: Tensor, cache: KVCache) -> Tensor:
        """One step with the cache: the newest tokens (B, 1) to the scores (B, 1, V) of the ones after them."""
        if tokens.ndim == 2 and tokens.shape[1] != 1:
            raise ValueError(f"[decode] tokens: expected (B, 1), got {tokens.shape}")
        return self.forward(tokens, cache)

    def decode_without_cache(self, tokens: Tensor) -> Tensor:
        """The same step without a cache: the whole text (B, L) passes all layers again."""
        with no_grad():
            return self.forward(tokens, last_only=True)

    def _head(self, x: Tensor) -> Tensor:
        return _core.linear(x, self.model.embed_tokens.weight)

    def capture_decode(self, cache: KVCache, batch_size: int = 1) -> DecodeGraph:
        """`decode` as a graph: one host call a step, for every step until the cache is full.

        Call it again when weights have moved: see `DecodeGraph`.
        """
        return DecodeGraph(self, cache, batch_size)

    @classmethod
    def from_folder(cls, folder: str | Path, *, dtype: str = "bfloat16", device: str = "cpu") -> Gemma3ForCausalLM:
        """Load a model from a folder with config.json and safetensors files, as Hugging Face keeps them.

        Raises
        ------
        OSError
            When a file cannot be read.
        ValueError
            When a tensor is missing, left over or of another shape, config.json is of another model, or the index of
            several files has no names of them, or names one for a tensor that it lacks.
        """
        folder = Path(folder)
        config = Gemma3Config.from_file(folder / "config.json")
        index = folder / "model.safetensors.index.json"
        state = _indexed(index) if index.exists() else load(folder / "model.safetensors")
        model = cls(config, dtype=dtype, device=device)
        model.load_state_dict(state)
        return model


class DecodeGraph:
    """A decode step that was captured once and is replayed for each token.

    The position is kept on the device, so each replay reads and writes the next place of the cache. Weights are read
    where they were: `load_state_dict` and steps of an optimizer change what the next replay reads. After `to`,
    ``weight.data = ...`` or another tensor in place of a weight, capture the step again: nothing checks that.

    Attributes
    ----------
    graph : Graph
        What is replayed.

    Parameters
    ----------
    model : Gemma3ForCausalLM
        The model whose step is captured.
    cache : KVCache
        What the step reads and writes.
    batch_size : int
        B.
    """

    def __init__(self, model: Gemma3ForCausalLM, cache: KVCache, batch_size: int = 1) -> None:
        model.model.check_cache(cache, batch_size)
        self._cache = cache
        self._tokens = _core.zeros(batch_size, 1, dtype="int64", device=model.device)
        model.model.prepare(cache.max_length)
        self.graph = _core.Graph(device=model.device)
        with self.graph.capture(), no_grad():
            self._logits = model._head(model.model.step(self._tokens, cache))
            cache.position += 1

    def __call__(self, tokens: Tensor) -> Tensor:
        """The newest tokens (B, 1) to the scores (B, 1, V) of the next; the next call overwrites these.

        Raises
        ------
        ValueError
            When the cache is full, or lost tokens in a pass that failed; for tokens of another shape or dtype.
        """
        shape = self._tokens.shape
        if not isinstance(tokens, Tensor) or tokens.shape != shape or tokens.dtype not in (_core.int64, _core.int32):
            got = f"{tokens.dtype} {tokens.shape}" if isinstance(tokens, Tensor) else type(tokens).__name__
            raise ValueError(f"[DecodeGraph] tokens: expected int64 or int32 (B={shape[0]}, 1), got {got}")
        self._cache.check_room(1)
        self._tokens.copy_(tokens)
        self.graph.replay()
        self._cache.length += 1
        return self._logits
