"""Losses under the names of torch.nn.functional."""

from __future__ import annotations

from ... import _core
from ..._core import Tensor
from ..._in_words import in_words
from .operands import check_floating, check_tensor

__all__ = ["check_reduction", "cross_entropy", "l1_loss", "mse_loss", "nll_loss"]


def check_reduction(name: str, reduction: str) -> str:
    """Refuse an unknown reduction.

    Raises
    ------
    ValueError
        For anything but "mean", "sum" and "none".

    Examples
    --------
    >>> check_reduction("mse_loss", "sum")
    'sum'
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"[{name}] reduction: expected 'mean', 'sum' or 'none', got {reduction!r}")
    return reduction


def _reduced(name: str, losses: Tensor, reduction: str) -> Tensor:
    if check_reduction(name, reduction) == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


@in_words
def cross_entropy(logits: Tensor, target: Tensor, *, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """``rl.cross_entropy``, for classes alone.

    Parameters
    ----------
    logits : Tensor
        (N, V), or (N, V, ...), or (V,). Logits (B, L, V) are ``logits.flatten(0, 1)``, beside ``target.flatten()``.
    target : Tensor
        (N,), or (N, ...), or (): classes.
    ignore_index : int
        A target that does not count.
    reduction : str
        "mean", "sum" or "none".

    Returns
    -------
    Tensor
        A number, or the shape of target.

    Raises
    ------
    ValueError
        For shapes that do not fit; for a class out of range, which is raised at the next wait for a GPU.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import cross_entropy
    >>> import rooflab as rl
    >>> round(cross_entropy(rl.zeros(1, 2), rl.tensor([1])).item(), 4)
    0.6931
    """
    check_reduction("cross_entropy", reduction)
    check_tensor("cross_entropy", logits, "logits")
    if check_tensor("cross_entropy", target, "target").dtype.is_floating_point:
        raise ValueError(
            "[cross_entropy] target: expected classes, got probabilities; write "
            "-(target * rl.log_softmax(x)).sum(-1).mean()"
        )
    return _core.cross_entropy(logits, target, ignore_index, reduction)


@in_words
def nll_loss(log_p: Tensor, target: Tensor, *, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """The mean of -log_p at the target classes. Composed of eight launches.

    Parameters
    ----------
    log_p : Tensor
        (N, V), for example of `log_softmax`.
    target : Tensor
        (N,): classes.
    ignore_index : int
        A target that does not count.
    reduction : str
        "mean", which is NaN where no target counts, "sum" or "none".

    Returns
    -------
    Tensor
        A number, or (N,).

    Raises
    ------
    ValueError
        For other shapes and dtypes; for a class out of range, which is raised at the next wait for a GPU.
    TypeError
        For anything but a tensor.

    Examples
    --------
    >>> from rooflab.nn.functional import nll_loss
    >>> import rooflab as rl
    >>> nll_loss(rl.tensor([[-1.0, -2.0], [-3.0, -4.0]]), rl.tensor([1, -100])).item()
    2.0
    """
    check_reduction("nll_loss", reduction)
    check_floating("nll_loss", log_p, "log_p")
    if check_tensor("nll_loss", target, "target").dtype not in (_core.int64, _core.int32):
        raise ValueError(f"[nll_loss] target: expected int64 or int32, got {target.dtype}")
    if log_p.ndim != 2 or target.shape != log_p.shape[:1]:
        raise ValueError(f"[nll_loss] expected (N, V) and (N,), got {log_p.shape} and {target.shape}")
    counts = target != ignore_index
    chosen = log_p.gather(1, _core.where(counts, target, 0).unsqueeze(1)).squeeze(1)
    losses = _core.where(counts, -chosen, 0.0)
    if reduction == "none":
        return losses
    return losses.sum() / counts.sum() if reduction == "mean" else losses.sum()


def _check_alike(name: str, x: Tensor, target: Tensor) -> None:
    check_tensor(name, x)
    if x.shape != check_tensor(name, target, "target").shape:
        raise ValueError(f"[{name}] target: expected the shape of x {x.shape}, got {target.shape}")


@in_words
def mse_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The mean of (x - target)^2. Composed of a difference, a product and a mean: three launches.

    Parameters
    ----------
    x, target : Tensor
        (...) both: unlike in PyTorch they are not broadcast, which is nearly always a mistake.
    reduction : str
        "mean", "sum" or "none".

    Returns
    -------
    Tensor
        A number, or (...).

    Raises
    ------
    ValueError
        For two shapes, or another reduction.
    TypeError
        For anything but a tensor, and a reduction without its keyword: PyTorch has another argument in its place.

    Examples
    --------
    >>> from rooflab.nn.functional import mse_loss
    >>> import rooflab as rl
    >>> mse_loss(rl.tensor([1.0, 3.0]), rl.zeros(2)).item()
    5.0
    """
    _check_alike("mse_loss", x, target)
    difference = x - target
    return _reduced("mse_loss", difference * difference, reduction)


@in_words
def l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The mean of |x - target|. Composed of a difference, abs and a mean: three launches.

    Parameters
    ----------
    x, target : Tensor
        (...) both.
    reduction : str
        "mean", "sum" or "none".

    Returns
    -------
    Tensor
        A number, or (...).

    Raises
    ------
    ValueError
        For two shapes, or another reduction.
    TypeError
        For anything but a tensor, and a reduction without its keyword: PyTorch has another argument in its place.

    Examples
    --------
    >>> from rooflab.nn.functional import l1_loss
    >>> import rooflab as rl
    >>> l1_loss(rl.tensor([1.0, -3.0]), rl.zeros(2)).item()
    2.0
    """
    _check_alike("l1_loss", x, target)
    return _reduced("l1_loss", (x - target).abs(), reduction)
