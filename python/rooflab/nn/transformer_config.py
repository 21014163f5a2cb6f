"""Sizes of the transformer language model that Lab 2 measures."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from .._numbers import whole
from ..results import settle

__all__ = ["TRANSFORMER_SIZES", "TransformerConfig"]

_ATTENTION = ("composed", "flash")


def check_sizes(config: Any, *sizes: str) -> None:
    """ValueError unless these fields of a configuration are whole numbers from 1 on.

    All numbers in its fields become Python's own, so that counts of parameters and FLOPs never overflow.
    """
    for name in sizes:
        whole(f"[{type(config).__name__}] {name}", getattr(config, name), least=1)
    settle(config)


def check_fields(config: Any, *sizes: str) -> None:
    """ValueError unless these fields of a configuration are whole numbers from 1 on, and its attention is known."""
    check_sizes(config, *sizes)
    if config.attention not in _ATTENTION:
        model = type(config).__name__
        raise ValueError(f"[{model}] attention: expected one of {', '.join(_ATTENTION)}, got {config.attention!r}")


def check_eps(config: Any, name: str) -> None:
    """ValueError unless this field of a configuration may be added to a mean of squares."""
    value = getattr(config, name)
    if not 0 <= value < math.inf:
        model = type(config).__name__
        raise ValueError(f"[{model}] {name}: expected a number that is finite and not negative, got {value!r}")


def check_bases(config: Any, *names: str) -> None:
    """ValueError unless these fields of a configuration can be bases of a rotary embedding."""
    for name in names:
        value = getattr(config, name)
        if not 0 < value < math.inf:
            model = type(config).__name__
            raise ValueError(f"[{model}] {name}: expected a finite number above 0, got {value!r}")


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and constants of a `TransformerLM`; the defaults are those of the small one.

    Attributes
    ----------
    d_model, d_ff : int
        D and I.
    num_layers, num_heads : int
        Layers n, and heads H of size D_h = D / H, which is even.
    vocab_size, context_length : int
        V, and how long a text may be.
    rope_theta, eps : float
        Base of the rotary embedding; the number that keeps the root in the norms away from zero.
    attention : str
        ``"composed"``: scores, mask, softmax and weighted sum are separate ops. ``"flash"``: `rl.attention`, one op
        that keeps no scores.
    recompute : bool
        Whether only each block's input is kept and backward runs the block again: see `rl.autograd.checkpoint`.

    Raises
    ------
    ValueError
        For sizes below 1, a D that the heads do not share evenly, an odd D_h, or an attention that is not known.

    Examples
    --------
    >>> from rooflab.nn import TransformerConfig
    >>> config = TransformerConfig.of("2.7B", context_length=512)
    >>> config.head_dim, config.num_parameters, config.forward_flops(batch_size=4, length=512)
    (80, 3406809600, 14192350330880)
    """

    d_model: int = 768
    d_ff: int = 3072
    num_layers: int = 12
    num_heads: int = 12
    vocab_size: int = 10000
    context_length: int = 1024
    rope_theta: float = 1e4
    eps: float = 1e-5
    attention: str = "composed"
    recompute: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "context_length")
        check_eps(self, "eps")
        check_bases(self, "rope_theta")
        if self.d_model % (2 * self.num_heads):
            raise ValueError(
                f"[TransformerConfig] d_model: expected {self.num_heads} heads of one even size, got {self.d_model}"
            )

    @classmethod
    def of(cls, size: str, **options: Any) -> TransformerConfig:
        """The sizes of a name in `TRANSFORMER_SIZES`; `options` are fields that differ.

        Raises
        ------
        ValueError
            For a name that is not there.
        """
        if size not in TRANSFORMER_SIZES:
            raise ValueError(f"[TransformerConfig] size: expected one of {', '.join(TRANSFORMER_SIZES)}, got {size!r}")
        return dataclasses.replace(TRANSFORMER_SIZES[size], **options)

    @property
    def head_dim(self) -> int:
        """D_h."""
        return self.d_model // self.num_heads

    @property
    def num_parameters(self) -> int:
        """N = 2 V D + n (4 D^2 + 3 D I + 2 D) + D."""
        each = 4 * self.d_model**2 + 3 * self.d_model * self.d_ff + 2 * self.d_model
        return 2 * self.vocab_size * self.d_model + self.num_layers * each + self.d_model

    def forward_flops(self, batch_size: int, length: int) -> int:
        """FLOPs of the products of one forward: 2 B L (n (4 D^2 + 3 D I) + V D) + 4 n B L^2 D.

        Attention counts in full: a mask saves nothing. A backward takes twice as many; with ``"flash"``, which computes
        the scores again, it takes 2.5 times as many for the attention's part.
        """
        batch_size, length = (
            whole(f"[forward_flops] {name}", size, least=1)
            for name, size in (("batch_size", batch_size), ("length", length))
        )
        weights = (
            self.num_layers * (4 * self.d_model**2 + 3 * self.d_model * self.d_ff) + self.vocab_size * self.d_model
        )
        scores = 4 * self.num_layers * batch_size * length**2 * self.d_model
        return 2 * batch_size * length * weights + scores


TRANSFORMER_SIZES = {
    "small": TransformerConfig(),
    "medium": TransformerConfig(1024, 4096, num_layers=24, num_heads=16),
    "large": TransformerConfig(1280, 5120, num_layers=36, num_heads=20),
    "xl": TransformerConfig(1600, 6400, num_layers=48, num_heads=25),
    "2.7B": TransformerConfig(2560, 10240, num_layers=32, num_heads=32),
}
"""The sizes of Lab 2 by name."""
