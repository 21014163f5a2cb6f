"""Modules without parameters: activations, losses, dropout."""

from __future__ import annotations

from collections.abc import Callable

from .. import _core
from .._core import Tensor
from .._in_words import in_words
from . import functional as F
from .functional.activations import check_gelu
from .functional.layers import check_share
from .functional.losses import check_reduction
from .module import Module

__all__ = [
    "GELU", "CrossEntropyLoss", "Dropout", "Flatten", "Identity", "LogSoftmax", "MSELoss", "ReLU", "SiLU", "Sigmoid",
    "Softmax", "Tanh",
]  # fmt: skip


class Identity(Module):
    """Returns its input; all arguments of its constructor are ignored, as in PyTorch.

    Examples
    --------
    >>> from rooflab.nn import Identity
    >>> Identity()(3)
    3
    """

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x."""
        return x


class Flatten(Module):
    """Makes one dimension of those from `start_dim` to `end_dim`, by default of all but the first.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of the dimensions that become one.

    Examples
    --------
    >>> from rooflab.nn import Flatten
    >>> import rooflab as rl
    >>> Flatten()(rl.ones(2, 3, 4)).shape
    (2, 12)
    """

    @in_words
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """A view where the strides allow one."""
        return x.flatten(self.start_dim, self.end_dim)


class _Activation(Module):
    __call__: Callable[..., Tensor]

    @in_words
    def __init__(self) -> None: ...


class ReLU(_Activation):
    """max(x, 0), one launch.

    Examples
    --------
    >>> from rooflab.nn import ReLU
    >>> import rooflab as rl
    >>> ReLU()(rl.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return _core.relu(x)


class GELU(_Activation):
    """``x Phi(x)`` in its tanh form, one launch.

    Parameters
    ----------
    approximate : str
        "tanh". PyTorch's default, "none", is the form with erf, which no kernel here computes.

    Raises
    ------
    ValueError
        For another form.

    Examples
    --------
    >>> from rooflab.nn import GELU
    >>> import rooflab as rl
    >>> round(GELU("tanh")(rl.tensor(1.0)).item(), 4)
    0.8412
    """

    @in_words
    def __init__(self, approximate: str = "none") -> None:
        self.approximate = check_gelu(approximate, "rl.nn.GELU(approximate='tanh')")

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return _core.gelu(x)

    def extra_repr(self) -> str:
        """The options as text."""
        return f"approximate={self.approximate!r}"


class SiLU(_Activation):
    """x sigmoid(x), one launch.

    Examples
    --------
    >>> from rooflab.nn import SiLU
    >>> import rooflab as rl
    >>> SiLU()(rl.tensor([0.0])).tolist()
    [0.0]
    """

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return _core.silu(x)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)), one launch.

    Examples
    --------
    >>> from rooflab.nn import Sigmoid
    >>> import rooflab as rl
    >>> Sigmoid()(rl.tensor([0.0])).tolist()
    [0.5]
    """

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return _core.sigmoid(x)


class Tanh(_Activation):
    """tanh(x), one launch.

    Examples
    --------
    >>> from rooflab.nn import Tanh
    >>> import rooflab as rl
    >>> Tanh()(rl.tensor([0.0])).tolist()
    [0.0]
    """

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return _core.tanh(x)


class _Softmax(_Activation):
    @in_words
    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def extra_repr(self) -> str:
        """The options as text."""
        return f"dim={self.dim}"


class Softmax(_Softmax):
    """exp(x) / sum(exp(x)) over a dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension whose results add up to 1. Without it the last of at most two; more are refused.

    Examples
    --------
    >>> from rooflab.nn import Softmax
    >>> import rooflab as rl
    >>> Softmax(dim=-1)(rl.zeros(2)).tolist()
    [0.5, 0.5]
    """

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return F.softmax(x, self.dim)


class LogSoftmax(_Softmax):
    """log(softmax(x)) over a dimension.

    Parameters
    ----------
    dim : int, optional
        The dimension over which the softmax is taken. Without it the last of at most two; more are refused.

    Examples
    --------
    >>> from rooflab.nn import LogSoftmax
    >>> import rooflab as rl
    >>> LogSoftmax(dim=-1)(rl.zeros(1)).tolist()
    [0.0]
    """

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return F.log_softmax(x, self.dim)


class Dropout(_Activation):
    """While training, sets a share `p` of the elements to 0 and multiplies the others by 1 / (1 - p); after `eval`, x.

    Parameters
    ----------
    p : float
        How likely a zero is. `rl.manual_seed` sets the seed of the draws.

    Raises
    ------
    ValueError
        For a p that is not between 0 and 1.

    Notes
    -----
    It is composed of four launches: random numbers, a comparison, a product and `masked_fill`.

    Examples
    --------
    >>> from rooflab.nn import Dropout
    >>> import rooflab as rl
    >>> Dropout(1.0)(rl.ones(2)).tolist(), Dropout(0.5).eval()(rl.ones(2)).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """

    @in_words
    def __init__(self, p: float = 0.5) -> None:
        self.p = check_share("Dropout", p)

    @in_words
    def forward(self, x: Tensor) -> Tensor:
        """x (...) to (...)."""
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The options as text."""
        return f"p={self.p}"


class _Loss(Module):
    __call__: Callable[..., Tensor]

    @in_words
    def __init__(self, *, reduction: str = "mean") -> None:
        self.reduction = check_reduction(type(self).__name__, reduction)


class MSELoss(_Loss):
    """The mean of (x - target)^2; the sum, or all of them, by `reduction`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        What becomes of the losses of all elements.

    Examples
    --------
    >>> from rooflab.nn import MSELoss
    >>> import rooflab as rl
    >>> MSELoss()(rl.ones(2), rl.zeros(2)).item()
    1.0
    """

    @in_words
    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """x and target (...) to a number."""
        return F.mse_loss(x, target, reduction=self.reduction)


class CrossEntropyLoss(_Loss):
    """The mean of -log(softmax(logits)) at the target classes, as `rl.nn.functional.cross_entropy`.

    Parameters
    ----------
    ignore_index : int
        A target that does not count.
    reduction : str
        "mean", "sum" or "none".

    Examples
    --------
    >>> from rooflab.nn import CrossEntropyLoss
    >>> import rooflab as rl
    >>> round(CrossEntropyLoss()(rl.zeros(1, 2), rl.tensor([1])).item(), 4)
    0.6931
    """

    @in_words
    def __init__(self, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.ignore_index = ignore_index

    @in_words
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Logits (N, V) or (N, V, ...), and classes (N) or (N, ...), to a number."""
        return F.cross_entropy(logits, target, ignore_index=self.ignore_index, reduction=self.reduction)
