"""Modules: functions that own their parameters, as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._core import Tensor
from ..autograd import no_grad
from ..autograd.clearing import clear_gradients

__all__ = ["Module", "ModuleList"]


class Module:
    """A function with parameters. Subclasses set them as attributes and define `forward`.

    Every attribute that is a Tensor is a parameter, and every attribute that is a Module is a child, unless its name
    begins with an underscore. There is nothing to register and no `super().__init__()` to call.

    Examples
    --------
    >>> import rooflab as rl
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = rl.tensor([2.0], requires_grad=True)
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(rl.ones(2)).tolist(), list(scale.state_dict())
    ([2.0, 2.0], ['factor'])
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module computes; each subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the modules right inside this one."""
        for name, value in vars(self).items():
            if isinstance(value, Module) and not name.startswith("_"):
                yield name, value

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """(dotted name, module) of this module, whose name is `prefix`, and of all inside it."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all inside it."""
        return (module for _, module in self.named_modules())

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(dotted name, parameter) of this module and all inside it."""
        for prefix, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor) and not name.startswith("_"):
                    yield f"{prefix}.{name}" if prefix else name, value

    def parameters(self) -> Iterator[Tensor]:
        """The parameters of this module and all inside it."""
        return (parameter for _, parameter in self.named_parameters())

    def num_parameters(self) -> int:
        """How many numbers the parameters hold."""
        return sum(parameter.numel() for parameter in self.parameters())

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters by dotted name. They share the module's memory and require no grad."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Copy tensors into the parameters of the same names; they are cast where dtypes differ.

        Raises
        ------
        ValueError
            When a tensor is missing, left over or of another shape; nothing is written then.
        """
        own = dict(self.named_parameters())
        missing, extra = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
        shapes = [
            f"{name}: expected {own[name].shape}, got {state[name].shape}"
            for name in sorted(own.keys() & state.keys())
            if own[name].shape != state[name].shape
        ]
        faults = [
            f"{kind}: {_some(names)}"
            for kind, names in (("missing", missing), ("not a parameter", extra), ("of another shape", shapes))
            if names
        ]
        if faults:
            raise ValueError(f"[load_state_dict] {'; '.join(faults)}")
        with no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Make all parameters require grad, or none; returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters; with `set_to_none` False, fill them with zeros, in place."""
        clear_gradients(self.parameters(), set_to_none)

    def __repr__(self) -> str:
        children = [f"  ({name}): {child!r}".replace("\n", "\n  ") for name, child in self.named_children()]
        shapes = ", ".join(
            f"{name}={value.shape}"
            for name, value in vars(self).items()
            if isinstance(value, Tensor) and not name.startswith("_")
        )
        if not children:
            return f"{type(self).__name__}({shapes})"
        return "\n".join([f"{type(self).__name__}({shapes}", *children, ")"])


class ModuleList(Module):
    """Modules in order, named "0", "1" ...

    Examples
    --------
    >>> import rooflab as rl
    >>> layers = ModuleList([Module(), Module()])
    >>> len(layers), [name for name, _ in layers.named_children()]
    (2, ['0', '1'])
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules = list(modules)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """("0", first), ("1", second) ..."""
        return ((str(i), module) for i, module in enumerate(self._modules))

    def __getitem__(self, index: int) -> Module:
        return self._modules[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules)

    def __repr__(self) -> str:
        if not self._modules:
            return "ModuleList()"
        first = f"{self._modules[0]!r}".replace("\n", "\n  ")
        return f"ModuleList({len(self._modules)} modules, the first:\n  {first}\n)"


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
