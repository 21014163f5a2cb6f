"""Activations under the names of torch.nn.functional."""

from __future__ import annotations

from ... import _core
from ..._core import Tensor

__all__ = ["check_gelu", "elu", "gelu", "glu", "leaky_relu", "logsigmoid", "softplus"]


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
    >>> import rooflab as rl
    >>> round(gelu(rl.tensor(1.0), approximate="tanh").item(), 4)
    0.8412
    """
    check_gelu(approximate, "gelu(x, approximate='tanh')")
    return _core.gelu(x)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), exact for large |x|. Composed as ``relu(x) + log(1 + exp(-|x|))``: seven launches.

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

    Examples
    --------
    >>> import rooflab as rl
    >>> round(softplus(rl.tensor(0.0)).item(), 4), softplus(rl.tensor(100.0)).item()
    (0.6931, 100.0)
    """
    return _core.relu(x) + (1 + (-x.abs()).exp()).log()


def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), exact for large |x|. Composed: ``-softplus(-x)``, nine launches.

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

    Examples
    --------
    >>> import rooflab as rl
    >>> logsigmoid(rl.tensor(-100.0)).item()
    -100.0
    """
    return -softplus(-x)


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else negative_slope x. Composed of a comparison, a product and `where`: three launches.

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
    TypeError
        For a slope that is no number.

    Examples
    --------
    >>> import rooflab as rl
    >>> leaky_relu(rl.tensor([-2.0, 2.0]), 0.5).tolist()
    [-1.0, 2.0]
    """
    return _core.where(x > 0, x, x * negative_slope)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha (exp(x) - 1). Composed of six launches.

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
    TypeError
        For an alpha that is no number.

    Examples
    --------
    >>> import rooflab as rl
    >>> elu(rl.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    is_positive = x > 0
    return _core.where(is_positive, x, alpha * (x.masked_fill(is_positive, 0.0).exp() - 1))


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
        For an odd size.

    Examples
    --------
    >>> import rooflab as rl
    >>> glu(rl.tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    if x.shape[dim] % 2:
        raise ValueError(f"[glu] x: expected an even size of dimension {dim}, got {x.shape}")
    first, second = x.chunk(2, dim)
    return first * _core.sigmoid(second)
