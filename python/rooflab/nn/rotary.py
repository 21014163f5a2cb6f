"""Tables of the angles by which rotary embeddings rotate heads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from .._core import DType, Tensor
from .module import Module

__all__ = ["RotaryEmbedding"]


class RotaryEmbedding(Module):
    """cos and sin of the angles by which `rl.rope` rotates heads.

    The angle of pair i at position p is ``p theta^(-2 i / D_h)``, a product of float32 numbers as in Hugging Face's
    models. Its cos and sin are computed in float64 and rounded once, to the dtype of the tables. These are made once,
    grow when a longer text asks for it, and are computed again when the module gets another dtype.

    Parameters
    ----------
    theta : float
        The base of the angles.
    head_dim : int
        D_h.
    dtype : dtype or str
        Of the tables.
    device : str
        Where they lie.

    Examples
    --------
    >>> from rooflab.nn import RotaryEmbedding
    >>> import rooflab as rl
    >>> cos, sin = RotaryEmbedding(10000.0, head_dim=4, dtype="float32")(0, 2)
    >>> cos.shape, [f"{x:.3f}" for x in sin[1].tolist()]
    ((2, 4), ['0.841', '0.010', '0.841', '0.010'])
    """

    __call__: Callable[..., tuple[Tensor, Tensor]]
    _cos: Tensor
    _sin: Tensor
    _rounded_to: DType | None = None  # old pickles do not say

    def __init__(self, theta: float, head_dim: int, *, dtype: str = "bfloat16", device: str = "cpu") -> None:
        self._frequencies = (1.0 / theta ** (np.arange(0, head_dim, 2) / head_dim)).astype(np.float32)
        for name in ("_cos", "_sin"):
            self.register_buffer(name, _core.empty(0, head_dim, dtype=dtype, device=device), persistent=False)
        self._rounded_to = self._cos.dtype

    def tables(self, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin of the positions from 0 on, each (at least `length`, D_h)."""
        cos, sin = self._cos, self._sin
        shorter = min(cos.shape[0], sin.shape[0])  # another thread may replace them between the two reads
        if shorter < length:
            cos, sin = self._computed(max(length, 2 * shorter), cos)
            if len(cos) > len(self._cos):  # unless another thread has made longer ones meanwhile
                self._keep(cos, sin)
        return cos, sin

    def _computed(self, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
        angles = np.arange(length, dtype=np.float32)[:, None] * self._frequencies
        angles = np.concatenate([angles, angles], axis=-1).astype(np.float64)
        cos, sin = (_core.tensor(f(angles), dtype=like.dtype, device=like.device) for f in (np.cos, np.sin))
        return cos, sin

    def _keep(self, cos: Tensor, sin: Tensor) -> None:
        self._cos, self._sin, self._rounded_to = cos, sin, cos.dtype

    def _after_conversion(self) -> None:
        """Rounding twice is not rounding once, and what 16 bits have lost does not come back in 32."""
        if self._cos.dtype != self._rounded_to:
            self._keep(*self._computed(self._cos.shape[0], self._cos))

    def forward(self, start: int, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin, each (length, D_h), of the positions from `start` on: views of the tables."""
        cos, sin = self.tables(start + length)
        return cos[start : start + length], sin[start : start + length]

    def at(self, position: Tensor, max_length: int) -> tuple[Tensor, Tensor]:
        """The same for positions that are on the device, int64 (L,), each below `max_length`. Two launches."""
        cos, sin = self.tables(max_length)
        return _core.index_select(cos, 0, position), _core.index_select(sin, 0, position)
