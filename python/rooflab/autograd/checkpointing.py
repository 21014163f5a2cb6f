"""Trading a second forward pass for memory: `rl.autograd.checkpoint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import _core
from .._core import Tensor
from ..autocast import autocast

R = TypeVar("R")

_PYTORCHS = {"use_reentrant": False, "preserve_rng_state": True}  # its options, with the values that say what is done


def checkpoint(function: Callable[..., R], *args: object, **options: bool) -> R:
    """Call ``function(*args)`` and keep only its arguments for backward, which runs the function again to get the rest.

    What its ops would save is not kept, so a block of a model holds only its input until backward reaches it. Backward
    then costs one more forward. The second run draws the same random numbers under the same autocast, whatever other
    threads draw meanwhile, and the gradients are those without a checkpoint. Weights and other tensors that the
    function reads without getting them as arguments have their gradients too. They must stay as they are until
    backward, which says so if they did not.

    Parameters
    ----------
    function : callable
        It must do the same each time, and change nothing outside itself: running statistics, which it would change
        twice, are refused in backward. When it runs again, seeds and states of random numbers that it sets do nothing.
        It draws in the thread that calls it: what threads that it starts draw is drawn anew.
    args
        What to call it with; the tensors among them are kept.
    **options
        PyTorch's ``use_reentrant=False`` and ``preserve_rng_state=True``, which say what is done here in any case.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    TypeError
        For what cannot be called, and keywords for the function.
    ValueError
        For other values of the options. In backward: an argument or another tensor that the function reads was changed
        in place; or, when the function ran again, it read another tensor, drew random numbers another number of times,
        or saved tensors of other shapes or dtypes. Another number, such as a factor of its own, is not noticed.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(256, requires_grad=True)
    >>> y = rl.autograd.checkpoint(lambda x: rl.exp(rl.sin(rl.exp(x))), x)
    >>> [saved.op for saved in rl.autograd.saved_tensors(y)]
    ['checkpoint']
    """
    if not callable(function):
        raise TypeError(f"[checkpoint] function: expected a callable, got {type(function).__name__}")
    for name, value in options.items():
        if name not in _PYTORCHS:
            raise TypeError(f"[checkpoint] {name}: expected no keywords for the function; give its arguments by place")
        if value is not _PYTORCHS[name]:
            raise ValueError(f"[checkpoint] {name}: expected {_PYTORCHS[name]}, which is what it does, got {value!r}")
    if not _core.is_grad_enabled():
        return function(*args)
    low = _core._autocast.low_dtype()
    kept = [_leaf_of(a) if isinstance(a, Tensor) else a for a in args]

    def again():
        with autocast(low or "bfloat16", enabled=low is not None):  # the forward's, whatever surrounds backward
            function(*kept)

    return _core._autograd.checkpoint([a for a in args if isinstance(a, Tensor)], lambda: function(*args), again)


def _leaf_of(x: Tensor) -> Tensor:
    """A leaf on the same memory as x, outside the graph; it requires grad if x does."""
    leaf = x.detach()
    return leaf.requires_grad_() if x.requires_grad else leaf
