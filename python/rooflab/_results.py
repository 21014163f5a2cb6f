"""What native functions return when they return several tensors by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._core import Tensor


class ValuesAndIndices(NamedTuple):
    """Elements that were chosen from a tensor, and their indices (int64) along the dimension."""

    values: Tensor
    indices: Tensor
