"""Modules that hold other modules: in a list, one after the other, by name."""

from __future__ import annotations

import operator
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._in_words import in_words
from .attributes import kind_of
from .module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]

R = TypeVar("R", bound="_Row")


def _checked(kind: object, module: object) -> Module:
    if not isinstance(module, Module):
        raise TypeError(f"[{type(kind).__name__}] expected a Module, got {kind_of(module)}")
    return module


class _Row(Module):
    """Its children in order; those that are appended are named "0", "1" ..."""

    def _modules(self) -> list[Module]:
        return [module for _, module in self._children()]

    def _place(self, index: object) -> int:
        try:
            place = operator.index(index)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"[{type(self).__name__}] index: expected an integer or a slice, got {index!r}") from None
        if not -len(self) <= place < len(self):
            raise IndexError(f"[{type(self).__name__}] index: expected one of {len(self)} modules, got {place}")
        return place

    def _number(self, modules: Iterable[Module]) -> None:
        for name, _ in tuple(self._children()):
            delattr(self, name)
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> _Row: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = list(self._children())[index]
            return Sequential(dict(part)) if isinstance(self, Sequential) else ModuleList(m for _, m in part)
        return self._modules()[self._place(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        name = [name for name, _ in self._children()][self._place(index)]
        setattr(self, name, _checked(self, module))

    def __delitem__(self, index: int | slice) -> None:
        kept = self._modules()
        del kept[index if isinstance(index, slice) else self._place(index)]
        self._number(kept)

    def __len__(self) -> int:
        return len(self._modules())

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules())

    def __iadd__(self: R, modules: Iterable[Module]) -> R:
        return self.extend(modules)

    def append(self: R, module: Module) -> R:
        """Add a module at the end, named by its place; returns the container. TypeError for anything but a Module."""
        name = str(len(self))
        if name in vars(self):
            raise ValueError(f"[{type(self).__name__}] append: the name {name!r} is taken by a module before the end")
        self.add_module(name, _checked(self, module))
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index` and renumber the later ones.

        Raises
        ------
        TypeError
            For anything but a Module.
        IndexError
            For an index beyond the end.
        ValueError
            If modules have names of their own, which new numbers would replace.
        """
        names, modules = [name for name, _ in self._children()], self._modules()
        if names != [str(i) for i in range(len(names))]:
            raise ValueError(f"[{type(self).__name__}] insert: expected modules that are named by number, got {names}")
        modules.insert(len(self) if index == len(self) else self._place(index), _checked(self, module))
        self._number(modules)

    @in_words
    def extend(self: R, modules: Iterable[Module]) -> R:
        """Add modules at the end; returns the container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"[{type(self).__name__}] modules: expected a list of modules, got {type(modules).__name__}"
            )
        for module in [_checked(self, module) for module in modules]:
            self.append(module)
        return self

    @in_words
    def pop(self, index: int) -> Module:
        """Remove a module, return it, and renumber the others."""
        module = self._modules()[self._place(index)]
        del self[index]
        return module


class ModuleList(_Row):
    """Modules in order, named "0", "1" ... A module that is set as an attribute comes after them, under that name.

    Parameters
    ----------
    modules : iterable of Module, optional
        What it holds.

    Raises
    ------
    TypeError
        For anything but a Module.

    Examples
    --------
    >>> from rooflab.nn import Module, ModuleList
    >>> import rooflab as rl
    >>> layers = ModuleList([Module(), Module()])
    >>> len(layers), [name for name, _ in layers.named_children()]
    (2, ['0', '1'])
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        self.extend(() if modules is None else modules)

    def __repr__(self) -> str:
        if not len(self):
            return "ModuleList()"
        first = f"{self[0]!r}".replace("\n", "\n  ")
        return f"ModuleList({len(self)} modules, the first:\n  {first}\n)"


class Sequential(_Row):
    """Modules in a row: each gets what the one before returned.

    A module that is set as an attribute comes after the others, under that name, and takes part.

    Parameters
    ----------
    *modules : Module, or one mapping of str to Module
        Named "0", "1" ..., or as the mapping says. When one is deleted by number, all are numbered anew.

    Raises
    ------
    TypeError
        For anything but a Module, and a name that is not a text.
    ValueError
        For a name that is empty, has a dot, or is that of a method.

    Examples
    --------
    >>> from rooflab.nn import Sequential
    >>> import rooflab as rl
    >>> model = Sequential(rl.nn.Linear(4, 8), rl.nn.ReLU(), rl.nn.Linear(8, 2))
    >>> model(rl.ones(3, 4)).shape, [name for name, _ in model.named_parameters()]
    ((3, 2), ['0.weight', '0.bias', '2.weight', '2.bias'])
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, _checked(self, module))
        else:
            self.extend(modules)  # type: ignore[arg-type]

    if TYPE_CHECKING:  # of the modules that have names

        def __getattr__(self, name: str) -> Module: ...

    @in_words
    def forward(self, x: Any) -> Any:
        """The result of the last module, after x went through all of them in order."""
        for module in self:
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name.

    Parameters
    ----------
    modules : mapping of str to Module, or pairs of them, optional
        What it holds. Each is an attribute too: ``parts["up"]`` is ``parts.up``.

    Raises
    ------
    TypeError
        For anything but a Module, or a name that is not a text.
    ValueError
        For a name that is empty, has a dot, or is that of a method.

    Examples
    --------
    >>> from rooflab.nn import ModuleDict
    >>> import rooflab as rl
    >>> parts = ModuleDict({"up": rl.nn.Linear(2, 4), "down": rl.nn.Linear(4, 2)})
    >>> parts["up"](rl.ones(2)).shape, list(parts)
    ((4,), ['up', 'down'])
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        self.update(() if modules is None else modules)

    if TYPE_CHECKING:  # of the modules

        def __getattr__(self, name: str) -> Module: ...

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules by name, in place of those of the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        return dict(self._children())[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, _checked(self, module))

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    @in_words
    def pop(self, name: str) -> Module:
        """Take a module out. KeyError for a name that is not there."""
        module = self[name]
        delattr(self, name)
        return module

    def keys(self) -> KeysView[str]:
        """The names."""
        return dict(self._children()).keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return dict(self._children()).values()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return dict(self._children()).items()
