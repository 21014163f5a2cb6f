"""Activations under the names of torch.nn.functional."""

from __future__ import annotations

import math
from numbers import Integral

from ... import _core
from ..._core import Tensor
from ..._in_words import in_words
from .operands import check_floating, check_number, check_tensor, wide

__all__ = ["check_gelu", "elu", "gelu", "glu", "leaky_relu", "log_softmax", "logsigmoid", "softmax", "softplus"]


def check_gelu(approximate: str, write: str) -> str:
    """Refuse every form of GeLU but that with tanh.

    Raises
    ------
    ValueError
        For another form; it says what to write.

    Examples
    --------
    >>> check_gelu("tanh", "gelu(x, 'tanh')")
    'tanh'
    """
    if approximate != "tanh":
        raise ValueError(f"[gelu] approximate: the kernels compute the tanh form, got {approximate!r}; write {write}")
    return approximate


@in_words
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """``rl.gelu(x)``, which is the tanh form of GeLU: one launch.

    Parameters
    ----------
    x : Tensor
        (...).
    approximate : str
        "tanh". PyTorch's default, the form with erf, is refused, because no kernel here computes it.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For another form.

    Examples
    --------
    >>> from rooflab.nn.functional import gelu
    >>> import rooflab as rl
    >>> round(gelu(rl.tensor(1.0), approximate="tanh").item(), 4)
    0.8412
    """
    check_gelu(approximate, "rl.nn.functional.gelu(x, approximate='tanh')")
    return _core.gelu(x)


@in_words
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, to the last digits for large |x| too; its gradient is sigmoid(beta x).

    One launch. Another beta than 1 takes two more, and with it numbers of 16 bits another two, because they are
    computed in float32.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    beta : float
        How sharp the bend is; not 0.
    threshold : float
        20, as in PyTorch, which returns x where beta x is larger. No digits are lost here, so others are refused.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers, a beta of 0 or one that is not finite, and another threshold.
    TypeError
        For anything but a tensor, and a beta that is not a number.

    Examples
    --------
    >>> from rooflab.nn.functional import softplus
    >>> import rooflab as rl
    >>> round(softplus(rl.tensor(0.0)).item(), 4), softplus(rl.tensor(100.0)).item()
    (0.6931, 100.0)
    """
    check_floating("softplus", x)
    check_number("softplus", beta, "beta")
    if beta == 0 or not math.isfinite(beta):
        raise ValueError(f"[softplus] beta: expected a finite number but 0, got {beta}")
    if threshold != 20:
        raise ValueError(f"[softplus] threshold: expected 20, because no digits are lost above it, got {threshold}")
    if beta == 1:
        return _core.softplus(x)
    return (_core.softplus(wide(x) * beta) / beta).to(x.dtype)


@in_words
def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), to the last digits for large |x| too; its gradient is sigmoid(-x).

    One launch.

    Parameters
    ----------
    x : Tensor
        (...), floating.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import logsigmoid
    >>> import rooflab as rl
    >>> logsigmoid(rl.tensor(-100.0)).item()
    -100.0
    """
    return _core.logsigmoid(check_floating("logsigmoid", x))


@in_words
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else negative_slope x. One launch.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    negative_slope : float
        Slope below 0.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers.
    TypeError
        For anything but a tensor, and a slope that is not a number.

    Examples
    --------
    >>> from rooflab.nn.functional import leaky_relu
    >>> import rooflab as rl
    >>> leaky_relu(rl.tensor([-2.0, 2.0]), 0.5).tolist()
    [-1.0, 2.0]
    """
    check_floating("leaky_relu", x)
    check_number("leaky_relu", negative_slope, "negative_slope")
    return _core.prelu(x, negative_slope)


@in_words
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha (exp(x) - 1), to the last digits for small |x| too.

    One launch.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    alpha : float
        Minus the limit of small x.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For integers.
    TypeError
        For anything but a tensor, and an alpha that is not a number.

    Examples
    --------
    >>> from rooflab.nn.functional import elu
    >>> import rooflab as rl
    >>> elu(rl.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    check_floating("elu", x)
    check_number("elu", alpha, "alpha")
    return _core.elu(x, alpha)


@in_words
def glu(x: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second. Composed of two launches.

    Parameters
    ----------
    x : Tensor
        (..., 2 D).
    dim : int
        The dimension that is halved.

    Returns
    -------
    Tensor
        (..., D).

    Raises
    ------
    ValueError
        For an odd size, a dimension that x does not have, and integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import glu
    >>> import rooflab as rl
    >>> glu(rl.tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    check_floating("glu", x)
    if not isinstance(dim, Integral):
        raise TypeError(f"[glu] dim: expected an integer, got {type(dim).__name__}")
    if not -x.ndim <= dim < x.ndim:
        raise ValueError(f"[glu] dim: expected one of the {x.ndim} dimensions of x, got {dim}")
    size = x.shape[dim] // 2
    if x.shape[dim] != 2 * size:
        raise ValueError(f"[glu] x: expected an even size of dimension {dim}, got {x.shape}")
    return x.narrow(dim, 0, size) * _core.sigmoid(x.narrow(dim, size, size))


@in_words
def softmax(x: Tensor, dim: int | None = None, variant: str = "") -> Tensor:
    """exp(x) / sum(exp(x)) over a dimension, by `rl.softmax`: one launch.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    dim : int, optional
        The dimension whose results add up to 1. Without it the last one, of at most two: of more PyTorch takes another.
    variant : str
        A rung of rl.variants("softmax"); the fastest when empty.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For a dimension that x does not have, for three or more without `dim`, and for integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import softmax
    >>> import rooflab as rl
    >>> softmax(rl.zeros(2), dim=-1).tolist()
    [0.5, 0.5]
    """
    return _core.softmax(x, _dim_of("softmax", x, dim), variant)


@in_words
def log_softmax(x: Tensor, dim: int | None = None, variant: str = "") -> Tensor:
    """log(softmax(x)) over a dimension, by `rl.log_softmax`: one launch.

    Parameters
    ----------
    x : Tensor
        (...), floating.
    dim : int, optional
        The dimension. Without it the last one, of at most two: of more PyTorch takes another.
    variant : str
        A rung of rl.variants("log_softmax"); the fastest when empty.

    Returns
    -------
    Tensor
        (...).

    Raises
    ------
    ValueError
        For a dimension that x does not have, for three or more without `dim`, and for integers.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import log_softmax
    >>> import rooflab as rl
    >>> log_softmax(rl.zeros(1), dim=-1).tolist()
    [0.0]
    """
    return _core.log_softmax(x, _dim_of("log_softmax", x, dim), variant)


def _dim_of(name: str, x: Tensor, dim: int | None) -> int:
    """The last dimension where none is given, unless PyTorch takes another: the first of three, else the second."""
    if dim is None and check_tensor(name, x).ndim > 2:
        raise ValueError(f"[{name}] dim: expected one for {x.ndim} dimensions, got None; write dim=-1 for the last")
    return -1 if dim is None else dim
