"""The transformer language model of Stanford's CS336, made of ops: what Lab 2 times, profiles and fits into memory.

Tokens (B, L) -> embedding -> n blocks -> RMSNorm -> head -> logits (B, L, V), with, in a block,

x = x + output_proj(attention(q_proj(ln1(x)), k_proj(ln1(x)), v_proj(ln1(x))))
x = x + w2(silu(w1(ln2(x))) * w3(ln2(x)))

Names of parameters are those of the course. Everything is made of ops that the tape records, so each line can be
profiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import _core
from .._core import DType, Tensor
from ..autograd import checkpoint
from ..composed import Generator
from .causal_attention import causal_attention, causal_mask, check_tokens, joined, split_heads
from .containers import ModuleList
from .functional.operands import check_kind
from .layers import Embedding, Linear, RMSNorm, truncated_normal
from .module import Module
from .rotary import RotaryEmbedding
from .transformer_config import TransformerConfig

__all__ = ["CausalSelfAttention", "SwiGLU", "TransformerBlock", "TransformerLM", "half_pairs"]


def _linear(in_features: int, out_features: int, generator: Generator | None, **where: Any) -> Linear:
    std = (2 / (in_features + out_features)) ** 0.5
    init = partial(truncated_normal, std=std, generator=generator)
    return Linear(in_features, out_features, bias=False, init=init, **where)


def half_pairs(weight: Tensor, num_heads: int) -> Tensor:
    """Put the rows of a projection of queries or keys into the order that `rl.rope` expects.

    The rotary embedding rotates pairs of a head's elements. CS336 pairs neighbours, 0 with 1 and so on; `rl.rope` pairs
    element i with i + D_h / 2. With its rows in the order 0, 2, 4 ... 1, 3, 5 ... a weight of the course gives the same
    scores with `rl.rope`.

    Parameters
    ----------
    weight : Tensor
        (H D_h, D).
    num_heads : int
        H.

    Returns
    -------
    Tensor
        A copy, with the even rows of each head before its odd ones.

    Raises
    ------
    ValueError
        Unless the rows make `num_heads` heads of the same even size.

    Examples
    --------
    >>> from rooflab.nn import half_pairs
    >>> import rooflab as rl
    >>> half_pairs(rl.arange(8).reshape(8, 1), num_heads=2).reshape(-1).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    rows, columns = weight.shape
    if num_heads < 1 or rows % (2 * num_heads):
        raise ValueError(f"[half_pairs] weight: expected {num_heads} heads of the same even size, got {weight.shape}")
    pairs = weight.reshape(num_heads, rows // (2 * num_heads), 2, columns)
    return pairs.transpose(1, 2).reshape(rows, columns)


class _Shared:
    """What all layers of a pass read: angles of the positions, and the mask of the composed attention.

    Under autocast queries, keys and scores have another dtype than the model; there is one cast a pass for each dtype.
    """

    def __init__(self, cos: Tensor, sin: Tensor, mask: Tensor | None) -> None:
        self._of = {cos.dtype: (cos, sin, mask)}

    def of(self, dtype: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """cos and sin (L, D_h), and the mask (L, L): 0 where a key may be seen, -inf elsewhere."""
        if dtype not in self._of:
            cos, sin, mask = next(iter(self._of.values()))
            self._of[dtype] = (cos.to(dtype), sin.to(dtype), mask.to(dtype) if mask is not None else None)
        return self._of[dtype]


class CausalSelfAttention(Module):
    """Attention over the tokens so far, with rotary positions; q, k and v are separate products.

    Parameters
    ----------
    config : TransformerConfig
        The sizes.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.
    generator : Generator, optional
        What draws the weights; otherwise `rl.manual_seed` sets their seed.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        dtype: str = "float32",
        device: str = "cpu",
        generator: Generator | None = None,
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device, "generator": generator}
        d = config.d_model
        self.q_proj = _linear(d, d, **where)
        self.k_proj = _linear(d, d, **where)
        self.v_proj = _linear(d, d, **where)
        self.output_proj = _linear(d, d, **where)
        self.config = config

    def forward(self, x: Tensor, shared: _Shared) -> Tensor:
        """x (B, L, D) to (B, L, D)."""
        projections = (self.q_proj, self.k_proj, self.v_proj)
        is_composed = self.config.attention == "composed"
        q, k, v = (split_heads(project(x), self.config.num_heads, adjacent=is_composed) for project in projections)
        cos, sin, mask = shared.of(q.dtype)
        q, k = _core.rope(q, cos, sin), _core.rope(k, cos, sin)
        out = causal_attention(q, k, v, mask)
        del q, k, v  # frees those that backward does not need before the next product
        return self.output_proj(joined(out))


class SwiGLU(Module):
    """``w2(silu(w1(x)) * w3(x))``, with w1 and w3 from D to I and w2 back.

    Parameters
    ----------
    config : TransformerConfig
        The sizes.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.
    generator : Generator, optional
        What draws the weights; otherwise `rl.manual_seed` sets their seed.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        dtype: str = "float32",
        device: str = "cpu",
        generator: Generator | None = None,
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device, "generator": generator}
        self.w1 = _linear(config.d_model, config.d_ff, **where)
        self.w2 = _linear(config.d_ff, config.d_model, **where)
        self.w3 = _linear(config.d_model, config.d_ff, **where)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, D) to (B, L, D)."""
        return self.w2(_core.swiglu(self.w1(x), self.w3(x)))


class TransformerBlock(Module):
    """Attention and SwiGLU, each after a norm and beside a residual.

    Parameters
    ----------
    config : TransformerConfig
        The sizes.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.
    generator : Generator, optional
        What draws the weights; otherwise `rl.manual_seed` sets their seed.
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        dtype: str = "float32",
        device: str = "cpu",
        generator: Generator | None = None,
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        self.ln1 = RMSNorm(config.d_model, config.eps, **where)
        self.attn = CausalSelfAttention(config, **where, generator=generator)
        self.ln2 = RMSNorm(config.d_model, config.eps, **where)
        self.ffn = SwiGLU(config, **where, generator=generator)

    def forward(self, x: Tensor, shared: _Shared) -> Tensor:
        """x (B, L, D) to (B, L, D)."""
        with _core.range("self_attention"):
            x = x + self.attn(self.ln1(x), shared)
        with _core.range("ffn"):
            return x + self.ffn(self.ln2(x))


class TransformerLM(Module):
    """CS336's language model: pre-norm, RoPE, SwiGLU, an output head of its own, no biases.

    Weights of products are normal with a variance of 2 / (in + out), those of the embedding with one of 1, both cut off
    at three standard deviations; gains are 1. The rotary embedding rotates elements i
    and i + D_h / 2 of a head; `half_pairs` converts weights of the course, which rotates neighbours.

    With n layers a forward launches 9 n + 1 products and a backward 18 n + 2 (composed attention). Ranges, for counts
    and profiles: ``embedding``, ``block_i`` with ``self_attention`` (in it ``attention_matmul_QK``,
    ``attention_softmax`` and ``attention_matmul_V``, or ``attention``) and ``ffn``, ``head``.

    Parameters
    ----------
    config : TransformerConfig
        The sizes, and which attention.
    dtype : dtype or str
        Of the parameters.
    device : str
        Where they lie.
    generator : Generator, optional
        What draws the weights; otherwise `rl.manual_seed` sets their seed.

    Examples
    --------
    >>> from rooflab.nn import TransformerConfig, TransformerLM
    >>> import rooflab as rl
    >>> model = TransformerLM(TransformerConfig.of("xl"), device=rl.meta("H200"))
    >>> model.num_parameters(), model(rl.empty(4, 128, dtype="int64", device=model.device)).shape
    (1998235200, (4, 128, 10000))
    """

    __call__: Callable[..., Tensor]
    _mask: Tensor | None

    def __init__(
        self,
        config: TransformerConfig,
        *,
        dtype: str = "float32",
        device: str = "cpu",
        generator: Generator | None = None,
    ) -> None:
        check_kind("TransformerLM", config, TransformerConfig, "config")
        where: dict[str, Any] = {"dtype": dtype, "device": device}
        V, D = config.vocab_size, config.d_model
        self.token_embeddings = Embedding(V, D, init=partial(truncated_normal, std=1.0, generator=generator), **where)
        self.layers = ModuleList(
            TransformerBlock(config, **where, generator=generator) for _ in range(config.num_layers)
        )
        self.ln_final = RMSNorm(D, config.eps, **where)
        self.lm_head = _linear(D, V, **where, generator=generator)
        self.config = config
        # Made now and not in the first pass, which may be captured into a graph.
        self._rotary = RotaryEmbedding(config.rope_theta, config.head_dim, **where)
        self._rotary.tables(config.context_length)
        mask = causal_mask(config.context_length, **where) if config.attention == "composed" else None
        self.register_buffer("_mask", mask, persistent=False)

    @property
    def device(self) -> str:
        """Where the parameters are."""
        return self.ln_final.weight.device

    @property
    def dtype(self) -> DType:
        """The dtype of the parameters."""
        return self.ln_final.weight.dtype

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the next token after each token.

        Parameters
        ----------
        tokens : Tensor
            (B, L), int64 or int32, with L up to the context length.

        Returns
        -------
        Tensor
            Logits (B, L, V).

        Raises
        ------
        ValueError
            For an empty batch or text, a text longer than the context, tokens of another shape or dtype and, on the
            CPU, a token out of the vocabulary.
        """
        check_tokens("TransformerLM", tokens, self.config.context_length)
        with _core.range("embedding"):
            x = self.token_embeddings(tokens)
        shared = self._shared(tokens.shape[1])
        for i, block in enumerate(self.layers):
            with _core.range(f"block_{i}"):
                x = checkpoint(block, x, shared) if self.config.recompute else block(x, shared)
        with _core.range("head"):
            return self.lm_head(self.ln_final(x))

    def _shared(self, length: int) -> _Shared:
        mask = self._mask[:length, :length] if self._mask is not None else None
        return _Shared(*self._rotary(0, length), mask)
