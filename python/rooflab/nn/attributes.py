"""What the attributes of a module are: parameters, buffers, children, or none of these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._core import Tensor
from .._habits import METHODS, no_member
from .._in_words import in_words
from .parameter import is_parameter, mark

__all__ = ["Attributes", "kind_of"]

# In the __dict__ of a module that has some. A name stays when the attribute is set to None, as its place does.
_PARAMETERS, _BUFFERS, _CHILDREN = "_names_of_parameters", "_names_of_buffers", "_names_of_children"
_NO_NAMES: dict[str, bool] = {}
_PACKAGE = __name__.rpartition(".")[0]


class Attributes:
    """An object that knows which of its attributes are parameters, buffers and children."""

    def __setattr__(self, name: str, value: Any) -> None:
        state, owner = self.__dict__, type(self).__name__
        parameters, buffers, children = (state.get(role, _NO_NAMES) for role in (_PARAMETERS, _BUFFERS, _CHILDREN))
        if _hides_what_modules_need(self, name, value):
            raise ValueError(
                f"[{owner}] {name}: expected another name, because modules have a method or state of this one"
            )
        if is_parameter(value):
            mark(value)
            self._take_role(_PARAMETERS, name)
        elif name in parameters and value is not None and value is not state.get(name):
            hint = f"; write rl.nn.Parameter(...), or .{name}.data = ... to change its values"
            raise TypeError(
                f"[{owner}] {name}: expected a parameter or None, got {kind_of(value)}"
                f"{hint if isinstance(value, Tensor) else ''}"
            )
        elif isinstance(value, Attributes):
            if _holds(value, self):
                raise ValueError(
                    f"[{owner}] {name}: expected a Module that does not hold this one; a list of it makes it no child"
                )
            self._take_role(_CHILDREN, name)
        elif name in children and value is not None:
            raise TypeError(f"[{owner}] {name}: expected a Module or None, got {kind_of(value)}")
        elif name in buffers and value is not None and not isinstance(value, Tensor):
            raise TypeError(f"[{owner}] {name}: expected a tensor or None for a buffer, got {kind_of(value)}")
        elif _is_compiled(value):
            raise TypeError(f"[{owner}] {name}: expected a Module, got {kind_of(value)}")
        object.__setattr__(self, name, value)

    def _take_role(self, role: str, name: str) -> None:
        """Note a name's role; one that is new comes after those that are there, as in PyTorch."""
        names = self.__dict__.setdefault(role, {})
        if name not in names:
            if name in self.__dict__:
                delattr(self, name)
            names[name] = True

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name):
            return no_member(self, name, METHODS)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        for role in (_PARAMETERS, _BUFFERS, _CHILDREN):
            self.__dict__.get(role, _NO_NAMES).pop(name, None)

    @in_words
    def register_parameter(self, name: str, parameter: Tensor | None) -> None:
        """Set an attribute to a parameter, or to None, which later takes a parameter.

        Parameters
        ----------
        name : str
            The attribute's name.
        parameter : Tensor or None
            A `Parameter`, or a leaf that requires grad.

        Raises
        ------
        TypeError
            For a tensor that does not require grad and for anything but a tensor, and for a name that is not a text.
        ValueError
            For a name that is empty, has a dot, or is that of another attribute.

        Examples
        --------
        >>> import rooflab as rl
        >>> module = rl.nn.Module()
        >>> module.register_parameter("scale", rl.nn.Parameter(rl.ones(2)))
        >>> list(module.state_dict())
        ['scale']
        """
        _check_name(self, "register_parameter", name, any(own == name for own, _ in self._own_parameters()))
        if parameter is not None and not is_parameter(parameter):
            raise TypeError(f"[register_parameter] {name}: expected a Parameter or None, got {kind_of(parameter)}")
        if parameter is None:
            self._take_role(_PARAMETERS, name)
        setattr(self, name, parameter)

    @in_words
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
            For anything but a tensor or None, and for a name that is not a text.
        ValueError
            For a name that is empty, has a dot, or is that of another attribute.

        Examples
        --------
        >>> import rooflab as rl
        >>> module = rl.nn.Module()
        >>> module.register_buffer("mask", rl.ones(2, 2).tril())
        >>> list(module.state_dict()), module.num_parameters()
        (['mask'], 0)
        """
        _check_name(self, "register_buffer", name, name in self.__dict__.get(_BUFFERS, _NO_NAMES))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"[register_buffer] {name}: expected a tensor or None, got {kind_of(tensor)}")
        self.__dict__.setdefault(_BUFFERS, {})[name] = bool(persistent)
        object.__setattr__(self, name, tensor)

    @in_words
    def add_module(self, name: str, module: Attributes | None) -> None:
        """Set an attribute to a module, which becomes a child under this name.

        Parameters
        ----------
        name : str
            The attribute's name; unlike in an assignment it may be made of digits.
        module : Module or None
            Its value.

        Raises
        ------
        TypeError
            For anything but a module or None, and for a name that is not a text.
        ValueError
            For a name that is empty, has a dot, or is that of another attribute.

        Examples
        --------
        >>> import rooflab as rl
        >>> module = rl.nn.Module()
        >>> module.add_module("0", rl.nn.Linear(2, 1))
        >>> list(module.state_dict())
        ['0.weight', '0.bias']
        """
        _check_name(self, "add_module", name, name in self.__dict__.get(_CHILDREN, _NO_NAMES))
        if module is not None and not isinstance(module, Attributes):
            raise TypeError(f"[add_module] {name}: expected a Module or None, got {kind_of(module)}")
        if module is None:
            self._take_role(_CHILDREN, name)
        setattr(self, name, module)

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


def _hides_what_modules_need(module: Attributes, name: str, value: object) -> bool:
    """Whether methods of rooflab.nn would find `value` in the place of one of them. A function may take that place."""
    is_part = isinstance(value, (Tensor, Attributes))
    if name in module.__dict__ or (callable(value) and not is_part):
        return False
    classes = [vars(each) for each in type(module).__mro__ if each.__module__.startswith(_PACKAGE)]
    return any(name in each and (is_part or callable(each[name])) for each in classes)


def _holds(module: Attributes, other: Attributes) -> bool:
    children = (child for child in vars(module).values() if isinstance(child, Attributes))
    return module is other or any(_holds(child, other) for child in children)


def _check_name(module: Attributes, method: str, name: object, has_this_role: bool) -> None:
    if not isinstance(name, str):
        raise TypeError(f"[{method}] name: expected a text, got {name!r}")
    if not name or "." in name:
        raise ValueError(f"[{method}] name: expected a text without dots that is not empty, got {name!r}")
    if hasattr(module, name) and not has_this_role:
        raise ValueError(f"[{method}] name: expected a new one, got {name!r}, which is another attribute of the module")


def _is_compiled(value: object) -> bool:
    """Whether a value is what `rl.compile` makes of a module."""
    return isinstance(getattr(value, "__dict__", _NO_NAMES).get("__wrapped__"), Attributes)


def kind_of(value: object) -> str:
    """What a value is, in an error's words."""
    if _is_compiled(value):
        return (
            "a compiled one, whose parameters would not be found here; compile the outer module, or set the inner one "
            "and compile its forward: inner.forward = rl.compile(inner.forward)"
        )
    if not isinstance(value, Tensor):
        return type(value).__name__
    return "a tensor that is not a leaf" if value.requires_grad else "a tensor that does not require grad"
