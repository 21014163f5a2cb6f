"""Modules inside of modules, and all their parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._core import Tensor
from .._in_words import in_words
from .attributes import Attributes

__all__ = ["Tree", "named"]


class Tree(Attributes):
    """A module with those inside it, and their tensors by dotted names."""

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules right inside this one, with their names.

        Returns
        -------
        iterator of (str, Module)
            Each module once.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> [name for name, child in model.named_children()]
        ['0', '1']
        """
        seen: set[int] = set()
        for name, child in self._children():
            if id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def _children(self) -> Iterator[tuple[str, Any]]:
        return ((name, value) for name, value in tuple(vars(self).items()) if isinstance(value, Tree))

    def children(self) -> Iterator[Any]:
        """The modules right inside this one.

        Returns
        -------
        iterator of Module
            Each once.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> [type(child).__name__ for child in model.children()]
        ['Linear', 'ReLU']
        """
        return (child for _, child in self.named_children())

    @in_words
    def named_modules(self, *, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This module and all inside it, with their dotted names.

        Parameters
        ----------
        prefix : str
            The name of this module.

        Returns
        -------
        iterator of (str, Module)
            Each module once.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> [name for name, module in model.named_modules(prefix="model")]
        ['model', 'model.0', 'model.1']
        """
        seen: set[int] = set()
        for name, module in self._all_modules(prefix):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def _all_modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """The same, with a module under each of the names that lead to it."""
        yield prefix, self
        for name, child in self._children():
            yield from child._all_modules(f"{prefix}.{name}" if prefix else name)

    @in_words
    def modules(self) -> Iterator[Any]:
        """This module and all inside it.

        Returns
        -------
        iterator of Module
            Each once, this one first.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> len(list(model.modules()))
        3
        """
        return (module for _, module in self.named_modules())

    @in_words
    def named_parameters(self, prefix: str = "", *, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The parameters of this module and all inside it, with their dotted names.

        Parameters
        ----------
        prefix : str
            The name of this module.
        remove_duplicate : bool
            Whether a parameter that several names share, such as an embedding that is the head too, is given once,
            under the first name.

        Returns
        -------
        iterator of (str, Tensor)
            In the order in which they were set.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> [name for name, parameter in model.named_parameters()]
        ['0.weight', '0.bias']
        """
        found = named(self._all_modules(prefix), Tree._own_parameters)
        return _unique(found) if remove_duplicate else found

    @in_words
    def parameters(self) -> Iterator[Tensor]:
        """The parameters of this module and all inside it.

        Returns
        -------
        iterator of Tensor
            Each once.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> [parameter.shape for parameter in model.parameters()]
        [(3, 2), (3,)]
        """
        return (parameter for _, parameter in self.named_parameters())

    @in_words
    def named_buffers(self, prefix: str = "", *, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and all inside it, with their dotted names.

        Parameters
        ----------
        prefix : str
            The name of this module.
        remove_duplicate : bool
            Whether a buffer that several names share is given once, under the first name.

        Returns
        -------
        iterator of (str, Tensor)
            In the order in which they were registered.

        Examples
        --------
        >>> import rooflab as rl
        >>> module = rl.nn.Module()
        >>> module.register_buffer("mask", rl.ones(2))
        >>> [name for name, buffer in module.named_buffers()]
        ['mask']
        """
        found = named(self._all_modules(prefix), Tree._own_buffers)
        return _unique(found) if remove_duplicate else found

    @in_words
    def buffers(self) -> Iterator[Tensor]:
        """The buffers of this module and all inside it.

        Returns
        -------
        iterator of Tensor
            Each once.

        Examples
        --------
        >>> import rooflab as rl
        >>> module = rl.nn.Module()
        >>> module.register_buffer("mask", rl.ones(2))
        >>> [buffer.shape for buffer in module.buffers()]
        [(2,)]
        """
        return (buffer for _, buffer in self.named_buffers())

    def num_parameters(self) -> int:
        """How many numbers the parameters hold.

        Returns
        -------
        int
            A shared parameter is counted once.

        Examples
        --------
        >>> import rooflab as rl
        >>> model = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.ReLU())
        >>> model.num_parameters()
        9
        """
        return sum(parameter.numel() for parameter in self.parameters())


def named(modules: Iterator[tuple[str, Any]], own: Callable) -> Iterator[tuple[str, Tensor]]:
    """(dotted name, tensor) of what `own` gives of each module."""
    for prefix, module in modules:
        for name, tensor in own(module):
            yield f"{prefix}.{name}" if prefix else name, tensor


def _unique(named: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    seen: set[int] = set()
    for name, tensor in named:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor
