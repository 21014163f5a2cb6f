"""Causal attention, which the language models of this package share: as one op, or with an op for each step."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor

__all__ = ["causal_attention", "causal_mask", "check_tokens", "joined", "split_heads"]


def check_tokens(model: str, tokens: Tensor, context_length: int) -> None:
    """ValueError unless tokens are (B, L), of at least one text and one token and of no more than the context."""
    if not isinstance(tokens, Tensor) or tokens.ndim != 2:
        got = tokens.shape if isinstance(tokens, Tensor) else type(tokens).__name__
        raise ValueError(f"[{model}] tokens: expected a tensor (B, L), got {got}")
    if 0 in tokens.shape:
        raise ValueError(f"[{model}] tokens: expected at least one text and one token, got {tokens.shape}")
    if tokens.shape[1] > context_length:
        raise ValueError(
            f"[{model}] tokens: expected sequences of up to context_length={context_length} tokens, "
            f"got {tokens.shape[1]}"
        )


def causal_mask(length: int, *, dtype: str, device: str) -> Tensor:
    """(length, length), to add to scores: 0 where a key may be seen, -inf elsewhere."""
    return _core.triu(_core.full((length, length), float("-inf"), dtype=dtype, device=device), 1)


def split_heads(x: Tensor, num_heads: int, *, adjacent: bool) -> Tensor:
    """x (B, L, H D_h) as (B, H, L, D_h): a view, or a copy in which the tokens of a head are adjacent.

    Composed attention needs the copy, because otherwise each of its products, forward and backward, would make its own.
    """
    heads = x.reshape(*x.shape[:2], num_heads, x.shape[2] // num_heads).transpose(1, 2)
    return heads.contiguous() if adjacent else heads


def joined(heads: Tensor) -> Tensor:
    """(B, H, L, D_h) as (B, L, H D_h)."""
    return heads.transpose(1, 2).flatten(2)


def causal_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """q, k, v (B, H, L, D_h) to (B, H, L, D_h): in separate ops with a mask (L, L), in one op without."""
    if mask is None:
        with _core.range("attention"):
            return _core.attention(q, k, v, is_causal=True)
    with _core.range("attention_matmul_QK"):
        # Scaling q touches D_h numbers a query, not L scores. An addition saves nothing for backward; `where` would.
        scores = q * (1 / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1) + mask.to(q.dtype)
    with _core.range("attention_softmax"):
        weights = _core.softmax(scores)
    del scores
    with _core.range("attention_matmul_V"):
        return weights @ v
