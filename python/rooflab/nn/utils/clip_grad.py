"""Gradients scaled down to a norm (Pascanu, Mikolov and Bengio, arxiv.org/abs/1211.5063)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable

from ..._core import Tensor, _scale_tensors, _sum_squares, stack, tensor, where, zeros
from ..._in_words import in_words
from ...autograd import no_grad
from ...autograd.clearing import grouped, writable_gradient

__all__ = ["clip_grad_norm_"]

_EPS = 1e-6  # PyTorch's, so that both scale alike


@in_words
@no_grad
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale gradients in place so that the norm of all of them together is at most `max_norm`.

    Every gradient is multiplied by ``min(1, max_norm / (norm + 1e-6))``. If the norm is NaN, all gradients become NaN;
    if it is infinite, they become 0, and NaN where they were infinite, or all NaN if `max_norm` is infinite too. A
    gradient that is expanded is replaced by a new one. Unless `error_if_nonfinite` is set, the call
    does not wait for the device.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Tensors without a gradient do not count. One that is given twice counts once.
    max_norm : float
        The largest norm allowed.
    norm_type : float
        2, the root of the sum of squares; others are refused.
    error_if_nonfinite : bool
        Raise when the norm is NaN or infinite, and leave the gradients as they are.

    Returns
    -------
    Tensor
        The norm before clipping, of shape (), in float64 if any gradient is, else in float32. It is computed in
        float64, so it is infinite only where a gradient or the result is.

    Raises
    ------
    ValueError
        `max_norm` is negative or NaN, or for another norm.
    TypeError
        For anything but tensors, and a `max_norm` that is not a number.
    RuntimeError
        The norm is not finite, and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import rooflab as rl
    >>> w = rl.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> rl.nn.utils.clip_grad_norm_([w], max_norm=1.0)
    tensor(10.)
    >>> [round(number, 4) for number in w.grad.tolist()]
    [0.6, 0.8]
    """
    if not isinstance(max_norm, (numbers.Real, Tensor)):
        raise TypeError(f"[clip_grad_norm_] max_norm: expected a number, got {type(max_norm).__name__}")
    if not max_norm >= 0:
        raise ValueError(f"[clip_grad_norm_] max_norm: expected 0 or more, got {max_norm}")
    if norm_type != 2:
        raise ValueError(f"[clip_grad_norm_] norm_type: expected 2, got {norm_type!r}")
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    given = list(given) if isinstance(given, Iterable) else [given]
    if wrong := [each for each in given if not isinstance(each, Tensor)]:
        raise TypeError(f"[clip_grad_norm_] parameters: expected tensors, got {type(wrong[0]).__name__}")
    once = {id(parameter): parameter for parameter in given}.values()
    gradients = [writable_gradient(parameter) for parameter in once if parameter.grad is not None]
    if not gradients:
        return tensor(0.0)
    groups = grouped(gradients)
    dtype = "float64" if any(alike[0].dtype == "float64" for alike in groups) else "float32"
    norm = _norm(groups) if dtype == "float32" else _norm_of_doubles(gradients)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(f"[clip_grad_norm_] the norm of the gradients is {norm.item()}, so they cannot be clipped")
    max_norm = max_norm if isinstance(max_norm, Tensor) else float(max_norm)
    scale = (max_norm / (norm + _EPS)).clamp(max=1.0).reshape(())
    for alike in groups:
        _scale_tensors(alike, scale.to(alike[0].device).to("float64"))
    return norm.to(dtype)


def _norm(groups: list[list[Tensor]]) -> Tensor:
    """In float64, where no square of a float32 overflows."""
    first, *others = [_sum_squares(alike) for alike in groups]
    return sum((squares.to(first.device) for squares in others), first).sqrt()


def _norm_of_doubles(gradients: list[Tensor]) -> Tensor:
    """All numbers are divided first, so that no square overflows or vanishes."""
    unit = _unit(gradients)
    return _norm(grouped(gradient.to("float64") / unit.to(gradient.device) for gradient in gradients)) * unit


def _unit(gradients: list[Tensor]) -> Tensor:
    """The largest magnitude, or 1 where that is 0, infinite or NaN."""
    device = gradients[0].device
    tops = [gradient.abs().amax().to("float64").to(device) for gradient in gradients if gradient.numel() > 0]
    top = stack([zeros((), dtype="float64", device=device), *tops]).amax()
    return where((top > 0) & (top < math.inf), top, 1.0)
