"""Gradients scaled down to a norm (Pascanu, Mikolov and Bengio, arxiv.org/abs/1211.5063)."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..._core import Tensor, stack, sum, tensor
from ...autograd import no_grad

__all__ = ["clip_grad_norm_"]

_EPS = 1e-6  # PyTorch's, so that both scale alike


@no_grad
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, error_if_nonfinite: bool = False) -> Tensor:
    """Scale gradients in place so that the norm of all of them together is at most `max_norm`.

    Every gradient is multiplied by ``min(1, max_norm / (norm + 1e-6))``. If the norm is NaN, all gradients become NaN;
    if it is infinite, they become 0, and NaN where they were infinite. Unless `error_if_nonfinite` is set, the call
    does not wait for the device.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Tensors without a gradient do not count.
    max_norm : float
        The largest norm allowed.
    error_if_nonfinite : bool
        Raise when the norm is NaN or infinite, and leave the gradients as they are.

    Returns
    -------
    Tensor
        The norm before clipping, of shape (); computed in float32, or in float64 if any gradient is.

    Raises
    ------
    ValueError
        `max_norm` is negative or NaN.
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
    if not max_norm >= 0:
        raise ValueError(f"[clip_grad_norm_] max_norm: expected 0 or more, got {max_norm}")
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [parameter.grad for parameter in given if parameter.grad is not None]
    if not gradients:
        return tensor(0.0)
    dtype = "float64" if any(gradient.dtype == "float64" for gradient in gradients) else "float32"
    wide = (gradient.to(dtype) for gradient in gradients)
    squares = [sum(gradient * gradient).to(gradients[0].device) for gradient in wide]
    norm = stack(squares).sum().sqrt()
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(f"[clip_grad_norm_] the norm of the gradients is {norm.item()}, so they cannot be clipped")
    scale = (max_norm / (norm + _EPS)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale.to(gradient.device).to(gradient.dtype))
    return norm
