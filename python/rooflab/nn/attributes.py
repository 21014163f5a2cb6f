"""What the tensors among the attributes of a module are: parameters, buffers, or none of these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core import Tensor
from .parameter import is_parameter

__all__ = ["Attributes", "kind_of"]

_PARAMETERS, _BUFFERS = "_names_of_parameters", "_names_of_buffers"  # in the __dict__ of a module that has some
_NO_NAMES: dict[str, bool] = {}


class Attributes:
    """An object that knows which of its tensors are parameters and which are buffers."""

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if is_parameter(value) and name not in state.get(_BUFFERS, _NO_NAMES):
            state.setdefault(_PARAMETERS, {})[name] = True
        elif isinstance(value, Tensor) and isinstance(state.get(name), Tensor) and name in state.get(_PARAMETERS, {}):
            raise TypeError(
                f"[{type(self).__name__}] {name}: expected a parameter or None, got another tensor; write "
                f"rl.nn.Parameter(...), or .{name}.data = ... to change its values"
            )
        object.__setattr__(self, name, value)

    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Set an attribute to a parameter, or to None. TypeError if it is a tensor that does not require grad."""
        if parameter is not None and not is_parameter(parameter):
            raise TypeError(f"[register_parameter] {name}: expected a Parameter or None, got {kind_of(parameter)}")
        setattr(self, name, parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute to a tensor that belongs to the module's state and is not trained, such as a mask.

        Parameters
        ----------
        name : str
            The attribute's name.
        tensor : Tensor or None
            Its value. Later assignments to the attribute change the buffer.
        persistent : bool
            Whether `state_dict` holds it.

        Raises
        ------
        TypeError
            For what is neither a tensor nor None.
        ValueError
            For a name with a dot, or one that the module has in another role.

        Examples
        --------
        >>> import rooflab as rl
        >>> module = Module()
        >>> module.register_buffer("mask", rl.ones(2, 2).tril())
        >>> list(module.state_dict()), module.num_parameters()
        (['mask'], 0)
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"[register_buffer] {name}: expected a tensor or None, got {kind_of(tensor)}")
        buffers = self.__dict__.setdefault(_BUFFERS, {})
        if not isinstance(name, str) or not name or "." in name or (hasattr(self, name) and name not in buffers):
            raise ValueError(f"[register_buffer] name: expected a new name without dots, got {name!r}")
        buffers[name] = bool(persistent)
        object.__setattr__(self, name, tensor)

    def _own_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """(name, parameter) of this module alone. One that was made to require grad after it was set is noted here."""
        names, buffers = self.__dict__.setdefault(_PARAMETERS, {}), self.__dict__.get(_BUFFERS, _NO_NAMES)
        for name, value in tuple(vars(self).items()):
            if isinstance(value, Tensor) and name not in buffers and (name in names or is_parameter(value)):
                names[name] = True
                yield name, value

    def _own_buffers(self) -> Iterator[tuple[str, Tensor]]:
        for name in self.__dict__.get(_BUFFERS, _NO_NAMES):
            if isinstance(value := self.__dict__.get(name), Tensor):
                yield name, value

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        yield from self._own_parameters()
        persistent = self.__dict__.get(_BUFFERS, _NO_NAMES)
        yield from ((name, buffer) for name, buffer in self._own_buffers() if persistent[name])


def kind_of(value: object) -> str:
    return "a tensor that does not require grad" if isinstance(value, Tensor) else type(value).__name__
