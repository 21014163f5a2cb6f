"""Norms, attention and dropout under the names of torch.nn.functional."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real

from ... import _core
from ..._core import Tensor
from ..._in_words import in_words
from .operands import check_floating, check_tensor

__all__ = ["check_share", "dropout", "eps_for", "layer_norm", "rms_norm", "scaled_dot_product_attention"]


def check_share(name: str, p: float) -> float:
    """Refuse a share that is not from 0 to 1.

    Raises
    ------
    ValueError
        For a p that is not between 0 and 1.

    Examples
    --------
    >>> check_share("dropout", 0.5)
    0.5
    """
    if not isinstance(p, Real) or not 0 <= p <= 1:
        raise ValueError(f"[{name}] p: expected a number from 0 to 1, got {p!r}")
    return p


@in_words
def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """x with a share `p` of the elements set to 0 and the others multiplied by 1 / (1 - p); x itself unless `training`.

    Composed of four launches: random numbers, a comparison, a product and `masked_fill`.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    p : float
        How likely a zero is. The numbers come from rooflab's generator: see `rl.manual_seed`.
    training : bool
        Whether anything is done.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For a p that is not between 0 and 1, and for integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import dropout
    >>> import rooflab as rl
    >>> dropout(rl.ones(2), p=1.0).tolist(), dropout(rl.ones(2), training=False).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    check_share("dropout", p)
    check_floating("dropout", x)
    if not training or p == 0:
        return x
    dropped = _core.rand(*x.shape, device=x.device) < p
    return _core.masked_fill(x * (1 / (1 - p) if p < 1 else 0.0), dropped, 0.0)


def _check_rows(name: str, x: Tensor, normalized_shape: int | Sequence[int]) -> None:
    check_floating(name, x)
    sizes = tuple(normalized_shape) if isinstance(normalized_shape, Iterable) else (normalized_shape,)
    if not all(isinstance(size, Integral) for size in sizes):
        raise TypeError(f"[{name}] normalized_shape: expected integers, got {normalized_shape!r}")
    if len(sizes) != 1 or x.ndim == 0 or sizes[0] != x.shape[-1]:
        raise ValueError(f"[{name}] normalized_shape: expected the last dimension of x {x.shape}, got {sizes}")


@in_words
def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``rl.layer_norm`` over the last dimension, with PyTorch's arguments.

    Parameters
    ----------
    x : Tensor
        (..., D).
    normalized_shape : int or sequence of one int
        D.
    weight, bias : Tensor, optional
        (D,).
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor
        (..., D).

    Raises
    ------
    ValueError
        For more dimensions than one, or one that is not D, and for integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import layer_norm
    >>> import rooflab as rl
    >>> layer_norm(rl.tensor([1.0, 3.0]), (2,), eps=0.0).tolist()
    [-1.0, 1.0]
    """
    _check_rows("layer_norm", x, normalized_shape)
    return _core.layer_norm(x, weight, bias, eps)


@in_words
def rms_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """``rl.rms_norm`` over the last dimension, with PyTorch's arguments.

    Parameters
    ----------
    x : Tensor
        (..., D).
    normalized_shape : int or sequence of one int
        D.
    weight : Tensor, optional
        (D,).
    eps : float, optional
        Added to the mean of squares; by default the distance from 1 to the next number of x's dtype.

    Returns
    -------
    Tensor
        (..., D).

    Raises
    ------
    ValueError
        For more dimensions than one, or one that is not D, and for integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import rms_norm
    >>> import rooflab as rl
    >>> rms_norm(rl.tensor([3.0, 3.0]), (2,), eps=0.0).tolist()
    [1.0, 1.0]
    """
    _check_rows("rms_norm", x, normalized_shape)
    return _core.rms_norm(x, weight, eps_for(x) if eps is None else eps)


def eps_for(x: Tensor) -> float:
    """What PyTorch adds to the mean of squares where no eps is given: the distance from 1 to the dtype's next number.

    Examples
    --------
    >>> import rooflab as rl
    >>> eps_for(rl.ones(2, dtype="bfloat16"))
    0.0078125
    """
    steps = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
    return steps.get(str(getattr(x, "dtype", None)), 0.0)  # the op refuses the others


@in_words
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``rl.attention`` with PyTorch's arguments.

    Parameters
    ----------
    query, key, value : Tensor
        (B, H, L_q, D_h), (B, H_kv, L_kv, D_h) both.
    attn_mask : Tensor, optional
        bool, True where a query sees a key, or numbers that are added to the scores.
    dropout_p : float
        0: attention weights are never in memory, so that none can be dropped.
    is_causal : bool
        Whether query i sees the keys up to i only. L_q and L_kv must be equal, because PyTorch aligns them at the first
        key and `rl.attention` at the last.
    scale : float, optional
        Of the scores; by default 1 / sqrt(D_h).
    enable_gqa : bool
        Whether H may be a multiple of H_kv.

    Returns
    -------
    Tensor
        (B, H, L_q, D_h).

    Raises
    ------
    ValueError
        For dropout, a causal mask of two lengths, other numbers of heads without `enable_gqa`, and shapes that do not
        fit.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import scaled_dot_product_attention
    >>> import rooflab as rl
    >>> x = rl.randn(1, 2, 3, 4)
    >>> scaled_dot_product_attention(x, x, x, is_causal=True).shape
    (1, 2, 3, 4)
    """
    name = "scaled_dot_product_attention"
    for operand, each in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, each, operand)
    if dropout_p:
        raise ValueError(f"[{name}] dropout_p: expected 0, got {dropout_p}; drop elements of the result")
    if is_causal and attn_mask is not None:
        raise ValueError(f"[{name}] attn_mask: expected None with is_causal=True")
    if min(query.ndim, key.ndim) >= 3:
        if is_causal and query.shape[-2] != key.shape[-2]:
            raise ValueError(f"[{name}] is_causal: expected L_q = L_kv, got {query.shape[-2]} and {key.shape[-2]}")
        if not enable_gqa and query.shape[-3] != key.shape[-3]:
            raise ValueError(
                f"[{name}] expected H_kv = H, got {key.shape[-3]} and {query.shape[-3]}; or write enable_gqa=True"
            )
    return _core.attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale)
