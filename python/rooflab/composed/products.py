"""Products under PyTorch's names: rl.matmul, for operands of one kind."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from ._arguments import checked

__all__ = ["addmm", "bmm", "dot", "mm", "mv", "outer"]


@checked
def mm(a: Tensor, b: Tensor) -> Tensor:
    """``rl.matmul`` of two matrices.

    Parameters
    ----------
    a : Tensor
        (M, K).
    b : Tensor
        (K, N).

    Returns
    -------
    Tensor
        (M, N).

    Raises
    ------
    ValueError
        For other dimensions, or sizes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.mm(rl.ones(2, 3), rl.ones(3, 4)).shape
    (2, 4)
    """
    _check("mm", a, 2, b, 2)
    return _core.matmul(a, b)


@checked
def bmm(a: Tensor, b: Tensor) -> Tensor:
    """``rl.matmul`` of as many matrices as b has.

    Parameters
    ----------
    a : Tensor
        (B, M, K).
    b : Tensor
        (B, K, N).

    Returns
    -------
    Tensor
        (B, M, N).

    Raises
    ------
    ValueError
        For other dimensions, or sizes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.bmm(rl.ones(5, 2, 3), rl.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    _check("bmm", a, 3, b, 3)
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"[bmm] expected as many matrices in both, got {a.shape} and {b.shape}")
    return _core.matmul(a, b)


@checked
def mv(a: Tensor, b: Tensor) -> Tensor:
    """``rl.matmul`` of a matrix and a vector.

    Parameters
    ----------
    a : Tensor
        (M, K).
    b : Tensor
        (K,).

    Returns
    -------
    Tensor
        (M,).

    Raises
    ------
    ValueError
        For other dimensions, or sizes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.mv(rl.ones(2, 3), rl.ones(3)).tolist()
    [3.0, 3.0]
    """
    _check("mv", a, 2, b, 1)
    return _core.matmul(a, b)


@checked
def dot(a: Tensor, b: Tensor) -> Tensor:
    """``rl.matmul`` of two vectors.

    Parameters
    ----------
    a : Tensor
        (K,).
    b : Tensor
        (K,).

    Returns
    -------
    Tensor
        A number.

    Raises
    ------
    ValueError
        For other dimensions, or sizes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.dot(rl.ones(3), rl.ones(3)).item()
    3.0
    """
    _check("dot", a, 1, b, 1)
    return _core.matmul(a, b)


@checked
def outer(a: Tensor, b: Tensor) -> Tensor:
    """a[i] b[j], one launch.

    Parameters
    ----------
    a : Tensor
        (M,).
    b : Tensor
        (N,).

    Returns
    -------
    Tensor
        (M, N).

    Raises
    ------
    ValueError
        For other dimensions.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.outer(rl.tensor([1.0, 2.0]), rl.tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    _check("outer", a, 1, b, 1)
    return a[:, None] * b


@checked
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b. Composed of a product, a sum and a launch for each factor that is not 1.

    Each rounds its result to the dtype: in float16 the product has to fit before x is added.

    Parameters
    ----------
    x : Tensor
        Broadcasts to (M, N).
    a : Tensor
        (M, K).
    b : Tensor
        (K, N).
    beta, alpha : float
        Factors. NaN and infinities count nothing where the factor is 0. If beta is, x is read only if it requires grad
        or is of another dtype.

    Returns
    -------
    Tensor
        (M, N).

    Raises
    ------
    TypeError
        For a factor that requires grad.
    ValueError
        For shapes that do not fit.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.addmm(rl.ones(2), rl.ones(1, 3), rl.ones(3, 2)).tolist()
    [[4.0, 4.0]]
    """
    product = mm(a, b)
    sizes = zip(reversed(x.shape), reversed(product.shape), strict=False)
    if x.ndim > 2 or any(size not in (1, of_product) for size, of_product in sizes):
        raise ValueError(f"[addmm] x: expected a shape that broadcasts to {product.shape}, got {x.shape}")
    product = _times(product, alpha)
    is_left_out = beta == 0 and not x.requires_grad and x.dtype == product.dtype
    return product if is_left_out else _times(x, beta) + product


def _times(x: Tensor, factor: float) -> Tensor:
    """x times a factor. If that is 0, so is the result, whatever x holds, and so is the gradient."""
    if factor == 0:
        return x.masked_fill(_core.ones((), dtype="bool", device=x.device), 0)
    return x if factor == 1 else x * factor


def _check(name: str, a: Tensor, a_dims: int, b: Tensor, b_dims: int) -> None:
    for letter, x, dims in (("a", a, a_dims), ("b", b, b_dims)):
        if x.ndim != dims:
            raise ValueError(f"[{name}] {letter}: expected {dims} dimension{'s' * (dims > 1)}, got {x.shape}")
