"""Vectors, classes and padding under the names of torch.nn.functional."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _core
from ..._core import Tensor

__all__ = ["cosine_similarity", "normalize", "one_hot", "pad"]


def normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x divided by its norm over a dimension, or by eps where the norm is smaller. Composed of five launches.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    p : float
        2, the norm that there is.
    dim : int
        The dimension.
    eps : float
        The least divisor.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For another p.

    Examples
    --------
    >>> import rooflab as rl
    >>> normalize(rl.tensor([3.0, 4.0]), dim=0).tolist()  # doctest: +ELLIPSIS
    [0.6..., 0.8...]
    """
    if p != 2:
        raise ValueError(f"[normalize] p: expected 2, got {p}; write x / x.abs().sum({dim}, keepdim=True) for 1")
    return x / (x * x).sum(dim, keepdim=True).sqrt().clamp(min=eps)


def cosine_similarity(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension. Composed of twelve launches.

    Parameters
    ----------
    a, b : Tensor
        (...), floating, broadcast.
    dim : int
        The dimension.
    eps : float
        The least norm that is divided by.

    Returns
    -------
    Tensor
        (...) without that dimension.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> cosine_similarity(rl.tensor([1.0, 0.0]), rl.tensor([2.0, 0.0]), dim=0).item()
    1.0
    """
    return (normalize(a, dim=dim, eps=eps) * normalize(b, dim=dim, eps=eps)).sum(dim)


def one_hot(index: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class of each element, else 0, int64.

    Composed of four launches: the range of index, which is read from the device, a comparison and a cast.

    Parameters
    ----------
    index : Tensor
        (...), int64.
    num_classes : int
        V; -1 reads the largest class from the device.

    Returns
    -------
    Tensor
        (..., V).

    Raises
    ------
    ValueError
        For a class that is negative or not below V.

    Examples
    --------
    >>> import rooflab as rl
    >>> one_hot(rl.tensor([2, 0])).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    if index.dtype != _core.int64:
        raise ValueError(f"[one_hot] index: expected int64, got {index.dtype}")
    if index.numel() == 0 and num_classes < 0:
        raise ValueError("[one_hot] num_classes: expected their number for an index without elements")
    count = int(index.max()) + 1 if num_classes < 0 else num_classes
    if index.numel() and not index.device.startswith("meta") and not 0 <= int(index.min()) <= int(index.max()) < count:
        raise ValueError(f"[one_hot] index: expected classes from 0 to {count - 1}, got {index.min()} to {index.max()}")
    return (index.unsqueeze(-1) == _core.arange(count, device=index.device)).to("int64")


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """x with more elements around it. Composed of fills and a `cat` for each dimension.

    Parameters
    ----------
    x : Tensor
        (...).
    pad : sequence of int
        How many before and after: of the last dimension, then of the one before it, and so on. Negative ones cut.
    mode : str
        "constant".
    value : float, optional
        Of the new elements; by default 0.

    Returns
    -------
    Tensor
        The new shape.

    Raises
    ------
    ValueError
        For another mode, an odd number of sizes or too many of them.

    Examples
    --------
    >>> import rooflab as rl
    >>> pad(rl.ones(2), (1, 2)).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """
    if mode != "constant":
        raise ValueError(f"[pad] mode: expected 'constant', got {mode!r}")
    sizes = list(pad)
    if len(sizes) % 2 or len(sizes) > 2 * x.ndim:
        raise ValueError(f"[pad] pad: expected two sizes a dimension for x {x.shape}, got {sizes}")
    for place in range(len(sizes) // 2):
        before, after = sizes[2 * place : 2 * place + 2]
        dim = x.ndim - 1 - place
        size = x.shape[dim]
        if size + before + after < 0:
            raise ValueError(f"[pad] pad: cuts more than there is of dimension {dim} of {x.shape}")
        x = x[(slice(None),) * dim + (slice(max(0, -before), size + min(0, after)),)]
        parts = [x]
        for more, first in ((before, True), (after, False)):
            if more > 0:
                shape = [*x.shape[:dim], more, *x.shape[dim + 1 :]]
                fill = _core.full(tuple(shape), 0 if value is None else value, dtype=x.dtype, device=x.device)
                parts = [fill, *parts] if first else [*parts, fill]
        x = _core.cat(parts, dim) if len(parts) > 1 else x
    return x
