"""Modules with one op each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from .. import _core
from .._core import Tensor
from .._in_words import in_words
from ..composed.random import Generator, normal
from .functional.layers import eps_for
from .module import Module

__all__ = ["Embedding", "LayerNorm", "Linear", "RMSNorm"]

_STD = 0.02  # of random weights, as in GPT-2 and Gemma


def _normal(*shape: int, dtype: str, device: str) -> Tensor:
    return _core.randn(*shape, dtype=dtype, device=device) * _STD


def truncated_normal(*shape: int, std: float, dtype: str, device: str, generator: Generator | None = None) -> Tensor:
    """Random normal numbers with a standard deviation of `std`, none beyond three standard deviations.

    A number beyond that is drawn once more, and clipped if it is beyond again, as one number in 140,000 is.
    """
    first, again = (normal(*shape, generator=generator, dtype=dtype, device=device) for _ in range(2))
    return _core.where(_core.abs(first) > 3, again, first).clamp(-3, 3) * std


class Linear(Module):
    """``x weight^T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension of x and of the result.
    bias : bool
        Whether there is a bias.
    init : callable, optional
        ``init(*shape, dtype=, device=)`` makes the weight.

    Attributes
    ----------
    weight : Tensor
        (out_features, in_features), normal with a standard deviation of 0.02 unless `init` says otherwise.
    bias : Tensor or None
        (out_features,), zeros.
    in_features, out_features : int
        As given.

    Examples
    --------
    >>> from rooflab.nn import Linear
    >>> import rooflab as rl
    >>> Linear(4, 3)(rl.ones(2, 4)).shape
    (2, 3)
    """

    bias: Tensor | None
    __call__: Callable[..., Tensor]

    @in_words
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        init: Callable[..., Tensor] = _normal,
        dtype: str = "float32",
        device: str = "cpu",
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = init(out_features, in_features, dtype=dtype, device=device).requires_grad_()
        zeros = _core.zeros(out_features, dtype=dtype, device=device, requires_grad=True) if bias else None
        self.register_parameter("bias", zeros)

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (..., in_features) to (..., out_features)."""
        return _core.linear(x, self.weight, self.bias)


class Packed(Module):
    """A module in which some layers read the same x: their weights lie in one block of memory.

    So one product serves them all. This stays so when the module is converted and unpickled, which make tensors of
    their own. A subclass names these layers, and calls `pack` once it has made them.
    """

    _packed: tuple[str, ...] = ()

    def pack(self) -> None:
        """Give the layers new weights, with the values of the old ones, which lie in one block."""
        for name, rows in self._rows_of_one_block():
            vars(self)[name].weight = rows.requires_grad_()

    def _after_conversion(self) -> None:
        for name, rows in self._rows_of_one_block():
            vars(self)[name].weight.data = rows  # it stays the same object, which an optimizer may hold

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._after_conversion()

    def _rows_of_one_block(self) -> list[tuple[str, Tensor]]:
        """A copy of each weight in one block, by the layer's name; none where weights differ in kind."""
        parts = [vars(self).get(name) for name in self._packed]  # a subclass may have dropped one
        weights: list[Any] = [vars(part).get("weight") if isinstance(part, Module) else None for part in parts]
        kinds = {(w.dtype, w.device, w.shape[1:]) if isinstance(w, Tensor) and w.ndim == 2 else None for w in weights}
        if None in kinds or len(kinds) > 1 or len({id(weight) for weight in weights}) < len(weights):
            return []
        block = _core.cat([weight.detach() for weight in weights])
        return list(zip(self._packed, _core.split(block, [len(weight) for weight in weights]), strict=True))


class Embedding(Module):
    """Rows of a table chosen by token.

    Attributes
    ----------
    weight : Tensor
        (V, D), normal with a standard deviation of 0.02 unless `init` says otherwise, as in `Linear`.

    Examples
    --------
    >>> from rooflab.nn import Embedding
    >>> import rooflab as rl
    >>> Embedding(100, 8)(rl.tensor([[1, 2, 3]])).shape
    (1, 3, 8)
    """

    __call__: Callable[..., Tensor]

    @in_words
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        init: Callable[..., Tensor] = _normal,
        dtype: str = "float32",
        device: str = "cpu",
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = init(num_embeddings, embedding_dim, dtype=dtype, device=device).requires_grad_()

    @in_words
    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (...) to (..., D)."""
        return _core.embedding(tokens, self.weight)


def _one_size(name: str, dim: Any) -> int:
    """The size of the last dimension, which PyTorch's users write as a tuple too."""
    sizes = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(sizes) != 1 or not isinstance(sizes[0], Integral) or sizes[0] < 0:
        raise ValueError(f"[{name}] dim: expected the size of the last dimension, got {dim!r}")
    return int(sizes[0])


class RMSNorm(Module):
    """``x / sqrt(mean(x^2) + eps) * gain`` over the last dimension.

    Parameters
    ----------
    dim : int, or sequence of one int
        Its size D.
    eps : float, optional
        Keeps the root away from zero; by default the distance from 1 to the next number of x's dtype, as in PyTorch.
    zero_centered : bool
        Whether the gain is 1 + weight, with a weight of zeros at first, as in Gemma. Otherwise the weight is the gain.

    Examples
    --------
    >>> from rooflab.nn import RMSNorm
    >>> import rooflab as rl
    >>> RMSNorm(2)(rl.tensor([3.0, 3.0])).shape
    (2,)
    """

    __call__: Callable[..., Tensor]

    @in_words
    def __init__(
        self,
        dim: int | Sequence[int],
        eps: float | None = None,
        *,
        zero_centered: bool = False,
        dtype: str = "float32",
        device: str = "cpu",
    ) -> None:
        fill = _core.zeros if zero_centered else _core.ones
        self.weight = fill(_one_size("RMSNorm", dim), dtype=dtype, device=device, requires_grad=True)
        self.eps = eps
        self.zero_centered = zero_centered

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (..., D) to (..., D)."""
        return _core.rms_norm(x, self.weight, eps_for(x) if self.eps is None else self.eps, self.zero_centered)


class LayerNorm(Module):
    """``(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`` over the last dimension.

    Parameters
    ----------
    dim : int, or sequence of one int
        Its size D.
    eps : float
        Keeps the root away from zero.
    elementwise_affine, bias : bool
        Whether there is a weight, ones at first, and a bias, zeros at first; no bias without a weight.

    Examples
    --------
    >>> from rooflab.nn import LayerNorm
    >>> import rooflab as rl
    >>> LayerNorm(2, eps=0.0)(rl.tensor([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    weight: Tensor | None
    bias: Tensor | None
    __call__: Callable[..., Tensor]

    @in_words
    def __init__(
        self,
        dim: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: str = "float32",
        device: str = "cpu",
    ) -> None:
        where: dict[str, Any] = {"dtype": dtype, "device": device, "requires_grad": True}
        dim = _one_size("LayerNorm", dim)
        self.register_parameter("weight", _core.ones(dim, **where) if elementwise_affine else None)
        self.register_parameter("bias", _core.zeros(dim, **where) if elementwise_affine and bias else None)
        self.eps = eps

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (..., D) to (..., D)."""
        return _core.layer_norm(x, self.weight, self.bias, self.eps)
