"""
What rooflab.autograd stands on.
"""
from __future__ import annotations
import collections.abc
import rooflab._core
import typing
__all__: list[str] = ['Node', 'Saved', 'add_hook', 'checkpoint', 'draws_again', 'grad', 'is_marked', 'mark_parameter', 'record_function', 'remove_hook', 'saved_tensors', 'set_data', 'set_grad_enabled']
class Node:
    """
    A recorded op.
    """
    def __repr__(self) -> str:
        ...
    @property
    def name(self) -> str:
        ...
class Saved:
    """
    A block of memory that a graph holds for its backward.
    """
    def __repr__(self) -> str:
        ...
    @property
    def bytes(self) -> int:
        """
        Of the whole block, of which the tensor may be a view.
        """
    @property
    def dtype(self) -> rooflab._core.DType:
        ...
    @property
    def is_input(self) -> bool:
        """
        Whether it is memory of an input (a leaf or a constant), not of a recorded result.
        """
    @property
    def op(self) -> str:
        """
        The first op that saved it.
        """
    @property
    def shape(self) -> tuple[int, ...]:
        ...
def add_hook(x: rooflab._core.Tensor, hook: collections.abc.Callable) -> int:
    """
    Lets backward call hook(gradient); returns its number.
    """
def checkpoint(inputs: collections.abc.Sequence[rooflab._core.Tensor], run: collections.abc.Callable, again: collections.abc.Callable) -> typing.Any:
    """
    The result of run(), of which the graph keeps only the inputs; again() repeats it in the backward pass.
    """
def draws_again() -> bool:
    """
    Whether this thread runs a function again, which draws the random numbers of its first run.
    """
def grad(outputs: collections.abc.Sequence[rooflab._core.Tensor], inputs: collections.abc.Sequence[rooflab._core.Tensor], grad_outputs: collections.abc.Sequence[rooflab._core.Tensor | None], retain_graph: bool) -> list[rooflab._core.Tensor | None]:
    """
    Gradients with respect to inputs; None where outputs do not depend on one.
    """
def is_marked(x: rooflab._core.Tensor) -> bool:
    """
    Whether it was made a parameter.
    """
def mark_parameter(x: rooflab._core.Tensor) -> None:
    """
    Makes x a parameter of modules for good: it stays one when it is frozen.
    """
def record_function(op: str, results: collections.abc.Sequence[rooflab._core.Tensor], inputs: collections.abc.Sequence[rooflab._core.Tensor | None], saved: collections.abc.Sequence[rooflab._core.Tensor | None], rule: collections.abc.Callable) -> list[rooflab._core.Tensor]:
    """
    Makes the results those of a new node, and returns them.
    """
def remove_hook(x: rooflab._core.Tensor, number: typing.SupportsIndex) -> None:
    """
    Takes the hook of that number away, if it is there.
    """
def saved_tensors(y: rooflab._core.Tensor) -> list[Saved]:
    ...
def set_data(x: rooflab._core.Tensor, value: rooflab._core.Tensor) -> None:
    """
    Gives a leaf other values, of any shape, dtype or device; its grad is dropped unless these stay.
    """
def set_grad_enabled(enabled: bool) -> bool:
    """
    Sets grad mode; returns the previous one.
    """
