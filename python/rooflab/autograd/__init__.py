"""Gradients, with the names and conventions that PyTorch users know.

    x = rl.randn(3, 4, requires_grad=True)
    y = rl.gelu(x).sum()
    rl.autograd.saved_tensors(y)    # what the graph holds in memory until backward
    y.backward()                    # x.grad has the shape of x

Ops on a tensor that requires grad are recorded; `backward` runs the record in reverse, and gradients add up in `.grad`
of the leaves. A saved tensor must not be written to before backward: such a write is noticed, and backward raises
ValueError. Writes by other libraries into shared memory (NumPy, DLPack) are not noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core, _habits
from .._core import Tensor
from .._in_words import in_words
from .checkpointing import checkpoint
from .function import Context, Function
from .grad_mode import enable_grad, no_grad, set_grad_enabled

__all__ = [
    "Context",
    "Function",
    "Node",
    "Saved",
    "checkpoint",
    "enable_grad",
    "grad",
    "no_grad",
    "saved_tensors",
    "set_grad_enabled",
]

Node = _core._autograd.Node
Saved = _core._autograd.Saved


def _sequence(name: str, given, kinds=Tensor) -> list:
    tensors = list(given) if isinstance(given, (tuple, list)) else [given]
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, kinds):
            raise TypeError(f"[grad] {name}[{i}]: expected a tensor, got {type(tensor).__name__}")
    return tensors


@in_words
def grad(outputs, inputs, grad_outputs=None, retain_graph: bool = False) -> tuple[Tensor, ...]:
    """Return the gradients of `outputs` with respect to `inputs`; every `.grad` stays as it is.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        Inputs may be leaves or intermediate results; only gradients on the way to them are computed.
    grad_outputs : Tensor, None or sequence of these, optional
        Gradients of the final quantity with respect to each output. None stands for 1, if the output has one element.
    retain_graph : bool
        Keep the saved tensors, so that backward can run again.

    Returns
    -------
    tuple of Tensor
        One gradient for each input, with its shape, dtype and device.

    Raises
    ------
    ValueError
        When an input does not require grad, or the outputs do not depend on it; when `grad_outputs` do not fit the
        outputs; when what was saved has been freed by an earlier backward.
    TypeError
        When something in the arguments is not a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.tensor([1.0, 2.0], requires_grad=True)
    >>> rl.autograd.grad((x * x).sum(), x)
    (tensor([2., 4.]),)
    """
    outputs, inputs = _sequence("outputs", outputs), _sequence("inputs", inputs)
    given = [None] * len(outputs)
    if grad_outputs is not None:
        given = _sequence("grad_outputs", grad_outputs, Tensor | None)
    gradients = _core._autograd.grad(outputs, inputs, given, retain_graph)
    found = []
    for i, gradient in enumerate(gradients):
        if gradient is None:
            raise ValueError(f"[grad] inputs[{i}]: the outputs do not depend on it")
        found.append(gradient)
    return tuple(found)


def saved_tensors(y: Tensor) -> list[Saved]:
    """List what the graph of `y` holds in memory for backward: each block of memory once, in the order of recording.

    Each entry has `op` (the first to save it), `shape`, `dtype`, `bytes` and `is_input`: whether it is the memory of a
    leaf or a constant, which is held anyway. The list is empty once backward has freed everything.

    Parameters
    ----------
    y : Tensor
        The end of a graph.

    Returns
    -------
    list of Saved
        Empty for a tensor that does not require grad.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(3, 4, requires_grad=True)
    >>> rl.autograd.saved_tensors(rl.exp(rl.gelu(x)))
    [Saved(op='gelu', shape=(3, 4), dtype=float32, bytes=48, is_input=True), Saved(op='exp', shape=(3, 4), ...)]
    """
    return _core._autograd.saved_tensors(y)


if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
