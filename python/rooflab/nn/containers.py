"""Modules that hold other modules: in a list, one after the other, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from .module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def _checked(kind: object, module: object) -> Module:
    if not isinstance(module, Module):
        raise TypeError(f"[{type(kind).__name__}] expected a Module, got {type(module).__name__}")
    return module


class _Row(Module):
    """Modules in order, named "0", "1" ..."""

    _modules: list[Module]

    def _children(self) -> Iterator[tuple[str, Module]]:
        return ((str(i), module) for i, module in enumerate(self._modules))

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> _Row: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = self._modules[index]
            return Sequential(*part) if isinstance(self, Sequential) else ModuleList(part)
        return self._modules[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[index] = _checked(self, module)

    def __delitem__(self, index: int) -> None:
        del self._modules[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules)

    def append(self, module: Module) -> _Row:
        """Add a module at the end; returns the container. TypeError for what is no Module."""
        self._modules.append(_checked(self, module))
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`."""
        self._modules.insert(index, _checked(self, module))

    def extend(self, modules: Iterable[Module]) -> _Row:
        """Add modules at the end; returns the container."""
        self._modules.extend([_checked(self, module) for module in modules])
        return self


class ModuleList(_Row):
    """Modules in order, named "0", "1" ...

    Parameters
    ----------
    modules : iterable of Module
        What it holds.

    Raises
    ------
    TypeError
        For what is no Module.

    Examples
    --------
    >>> import rooflab as rl
    >>> layers = ModuleList([Module(), Module()])
    >>> len(layers), [name for name, _ in layers.named_children()]
    (2, ['0', '1'])
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules = [_checked(self, module) for module in modules]

    def __repr__(self) -> str:
        if not self._modules:
            return "ModuleList()"
        first = f"{self._modules[0]!r}".replace("\n", "\n  ")
        return f"ModuleList({len(self._modules)} modules, the first:\n  {first}\n)"


class Sequential(_Row):
    """Modules in a row: each gets what the one before returned.

    Parameters
    ----------
    *modules : Module, or one mapping of str to Module
        Named "0", "1" ..., or as the mapping says.

    Raises
    ------
    TypeError
        For what is no Module.

    Examples
    --------
    >>> import rooflab as rl
    >>> model = Sequential(rl.nn.Linear(4, 8), rl.nn.ReLU(), rl.nn.Linear(8, 2))
    >>> model(rl.ones(3, 4)).shape, [name for name, _ in model.named_parameters()]
    ((3, 2), ['0.weight', '0.bias', '2.weight', '2.bias'])
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        self._names: list[str] | None = None
        given: Iterable[Any] = modules
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            self._names, given = [str(name) for name in modules[0]], modules[0].values()
        self._modules = [_checked(self, module) for module in given]

    def _children(self) -> Iterator[tuple[str, Module]]:
        names = self._names or []
        return ((names[i] if i < len(names) else str(i), module) for i, module in enumerate(self._modules))

    def __getattr__(self, name: str) -> Module:
        for each, module in self._children() if "_modules" in vars(self) else ():
            if each == name:
                return module
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`. Later ones are numbered anew; given names stay with their modules."""
        if self._names is not None:
            self._names.insert(index, str(len(self._names)))
        super().insert(index, module)

    def __delitem__(self, index: int) -> None:
        super().__delitem__(index)
        if self._names is not None:
            del self._names[index]

    def forward(self, x: Any) -> Any:
        """What the last module makes of what the others made of x."""
        for module in self._modules:
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name.

    Parameters
    ----------
    modules : mapping of str to Module, optional
        What it holds.

    Raises
    ------
    TypeError
        For what is no Module, or a name that is no text.

    Examples
    --------
    >>> import rooflab as rl
    >>> parts = ModuleDict({"up": rl.nn.Linear(2, 4), "down": rl.nn.Linear(4, 2)})
    >>> parts["up"](rl.ones(2)).shape, list(parts)
    ((4,), ['up', 'down'])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self._modules: dict[str, Module] = {}
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add the modules of a mapping, in place of those of the same names."""
        for name, module in modules.items():
            self[name] = module

    def _children(self) -> Iterator[tuple[str, Module]]:
        return iter(self._modules.items())

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(name, str) or "." in name:
            raise TypeError(f"[ModuleDict] expected a name without dots, got {name!r}")
        self._modules[name] = _checked(self, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return self._modules.items()
