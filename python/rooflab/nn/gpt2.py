"""GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), with Hugging Face's names.

Tokens (B, L) -> embedding + positions -> n blocks -> LayerNorm -> the embedding again -> logits (B, L, V), with, in a
block,

x = x + c_proj(attention(c_attn(ln_1(x))))
x = x + c_proj(gelu(c_fc(ln_2(x))))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd import checkpoint
from .causal_attention import causal_attention, causal_mask, check_tokens, joined, split_heads
from .containers import ModuleList
from .layers import Embedding, LayerNorm
from .module import Module
from .transformer_config import check_eps, check_fields

__all__ = ["GPT2", "GPT2_XL", "GPT2Config"]

_STD = 0.02


@dataclass(frozen=True)
class GPT2Config:
    """Sizes of a GPT-2, under the names of Hugging Face's config.json; the defaults are those of the small one.

    Attributes
    ----------
    n_embd, n_layer, n_head : int
        D, layers n and heads H. The feed-forward size is 4 D.
    vocab_size, n_positions : int
        V, and how long a text may be.
    layer_norm_epsilon : float
        Epsilon of the norms.
    attention, recompute
        As in `TransformerConfig`.

    Raises
    ------
    ValueError
        For sizes below 1, a D that is not a multiple of H, or an attention that is not known.

    Examples
    --------
    >>> from rooflab.nn import GPT2_XL
    >>> GPT2_XL.n_embd // GPT2_XL.n_head
    64
    """

    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    vocab_size: int = 50257
    n_positions: int = 1024
    layer_norm_epsilon: float = 1e-5
    attention: str = "composed"
    recompute: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "n_embd", "n_layer", "n_head", "vocab_size", "n_positions")
        check_eps(self, "layer_norm_epsilon")
        if self.n_embd % self.n_head:
            raise ValueError(f"[GPT2Config] n_embd: expected a multiple of n_head={self.n_head}, got {self.n_embd}")


GPT2_XL = GPT2Config(1600, 48, 25)
"""GPT-2 XL: 1,557,611,200 parameters."""


def _normal(*shape: int, std: float = _STD, **where: Any) -> Tensor:
    return (_core.randn(*shape, **where) * std).requires_grad_()


class _Projection(Module):
    """``x weight + bias`` with a weight (in, out), as GPT-2 keeps it."""

    def __init__(self, in_features: int, out_features: int, *, std: float = _STD, **where: Any) -> None:
        self.weight = _normal(in_features, out_features, std=std, **where)
        self.bias = _core.zeros(out_features, requires_grad=True, **where)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class _Attention(Module):
    _not_loaded = ("bias", "masked_bias")  # the masks of released files

    def __init__(self, config: GPT2Config, **where: Any) -> None:
        D = config.n_embd
        self.c_attn = _Projection(D, 3 * D, **where)
        # So that what 2 n branches together add to the residual stream is as large as what one would add.
        self.c_proj = _Projection(D, D, std=_STD * (2 * config.n_layer) ** -0.5, **where)
        self.config = config

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        parts = self.c_attn(x).split(self.config.n_embd, -1)
        q, k, v = (split_heads(part, self.config.n_head, adjacent=mask is not None) for part in parts)
        return self.c_proj(joined(causal_attention(q, k, v, mask)))


class _MLP(Module):
    def __init__(self, config: GPT2Config, **where: Any) -> None:
        D = config.n_embd
        self.c_fc = _Projection(D, 4 * D, **where)
        self.c_proj = _Projection(4 * D, D, std=_STD * (2 * config.n_layer) ** -0.5, **where)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(_core.gelu(self.c_fc(x)))


class _Block(Module):
    def __init__(self, config: GPT2Config, **where: Any) -> None:
        norm = partial(LayerNorm, config.n_embd, config.layer_norm_epsilon, **where)
        self.ln_1, self.attn = norm(), _Attention(config, **where)
        self.ln_2, self.mlp = norm(), _MLP(config, **where)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        with _core.range("self_attention"):
            x = x + self.attn(self.ln_1(x), mask)
        with _core.range("ffn"):
            return x + self.mlp(self.ln_2(x))


class GPT2(Module):
    """GPT-2: LayerNorm before each part, learned positions, biases, the tanh form of GeLU, the embedding as the head.

    Parameters have the names and shapes of Hugging Face's ``transformer.*`` without that prefix, so
    ``model.load_state_dict(tensors)`` takes them; it leaves out the masks that released files hold besides. Random
    weights are normal with a standard deviation of 0.02, those that write into the residual stream with one of
    0.02 / sqrt(2 n). The ranges are those of `TransformerLM`.

    Parameters
    ----------
    config : GPT2Config
        The sizes.

    Examples
    --------
    >>> from rooflab.nn import GPT2, GPT2_XL
    >>> import rooflab as rl
    >>> model = GPT2(GPT2_XL, device=rl.meta("H200"))
    >>> model.num_parameters(), model(rl.empty(2, 128, dtype="int64", device=rl.meta("H200"))).shape
    (1557611200, (2, 128, 50257))
    """

    __call__: Callable[..., Tensor]
    _places: Tensor
    _mask: Tensor | None

    def __init__(self, config: GPT2Config, *, dtype: str = "float32", device: str = "cpu") -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.wte = Embedding(config.vocab_size, config.n_embd, **where)
        self.wpe = Embedding(config.n_positions, config.n_embd, **where)
        self.h = ModuleList(_Block(config, **where) for _ in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd, config.layer_norm_epsilon, **where)
        self.config = config
        # Made now and not in the first pass, which may be captured into a graph.
        self.register_buffer("_places", _core.arange(config.n_positions, device=device), persistent=False)
        mask = causal_mask(config.n_positions, **where) if config.attention == "composed" else None
        self.register_buffer("_mask", mask, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, L, V) of tokens (B, L), with the errors of `TransformerLM.forward`."""
        check_tokens("GPT2", tokens, self.config.n_positions)
        length = tokens.shape[1]
        mask = self._mask[:length, :length] if self._mask is not None else None
        with _core.range("embedding"):
            x = self.wte(tokens) + self.wpe(self._places[:length])
        for i, block in enumerate(self.h):
            with _core.range(f"block_{i}"):
                x = checkpoint(block, x, mask) if self.config.recompute else block(x, mask)
        with _core.range("head"):
            return _core.linear(self.ln_f(x), self.wte.weight)
