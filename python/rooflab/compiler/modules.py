"""The tensors of the modules that a function uses without being given them: weights, and tables such as angles."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any

from .._core import Tensor
from ..nn.module import Module

Holder = dict[str, Any]

_LEAVES = frozenset((NoneType, bool, int, float, complex, str, bytes))


def tensors_of_modules(
    function: Callable, arguments: Any = (), seen: dict[int, Any] | None = None
) -> dict[Tensor, list[tuple[Holder, str]]]:
    """Each tensor that a module holds, with the attributes that hold it.

    Parameters
    ----------
    function : callable
        The modules are this one, or those that it closes over, names as globals, has as defaults, or finds among the
        attributes of the object whose method it is.
    arguments : nested tuples, lists and dicts
        Modules among the function's arguments are found too.
    seen : dict, optional
        Gets the attributes of all objects that were visited, and the lists and dicts among these, by their id.

    Returns
    -------
    dict of Tensor to list of (dict, str)
        Attributes as the `__dict__` of an object and a name. Modules inside modules are walked as well, and objects
        that they keep, such as their rotary embedding.

    Examples
    --------
    >>> import rooflab as rl
    >>> layer = rl.nn.Linear(2, 3)
    >>> [(x.shape, [name for _, name in places]) for x, places in tensors_of_modules(lambda x: layer(x)).items()]
    [((3, 2), ['weight']), ((3,), ['bias'])]
    """
    found: dict[Tensor, list[tuple[Holder, str]]] = {}
    seen = {} if seen is None else seen
    for module in _modules(function, arguments, set()):
        _walk(module, found, seen)
    return found


@contextlib.contextmanager
def replaced(places: dict[Tensor, list[tuple[Holder, str]]], twins: list[Tensor]) -> Iterator[None]:
    """Replace the tensors in the attributes by `twins`, in their order, inside a `with` block."""
    try:
        for attributes, twin in zip(places.values(), twins, strict=True):
            for holder, name in attributes:
                holder[name] = twin
        yield
    finally:
        for x, attributes in places.items():
            for holder, name in attributes:
                holder[name] = x


def _modules(function: Any, arguments: Any, seen: set[int]) -> Iterator[Module]:
    """The modules that the function can name, without those inside them. Functions may call each other."""
    yield from _in(arguments, seen)
    if id(function) in seen:
        return
    seen.add(id(function))
    if isinstance(function, Module):
        yield function
    elif isinstance(function, functools.partial):
        yield from _modules(function.func, (function.args, function.keywords), seen)
    elif isinstance(function, MethodType):
        owner = function.__self__
        attributes = owner if isinstance(owner, Module) else vars(owner) if hasattr(owner, "__dict__") else ()
        yield from _in(attributes, seen)
        yield from _modules(function.__func__, (), seen)
    elif inspect.isfunction(function):
        with contextlib.suppress(ValueError):  # a cell that is not filled yet
            for cell in function.__closure__ or ():
                value = cell.cell_contents
                yield from _modules(value, (), seen) if inspect.isfunction(value) else _in(value, seen)
        for name in function.__code__.co_names:
            yield from _in(function.__globals__.get(name), seen)
        yield from _in((function.__defaults__ or (), function.__kwdefaults__ or {}), seen)
        if hasattr(function, "__wrapped__"):
            yield from _modules(function.__wrapped__, (), seen)


def _in(value: Any, seen: set[int]) -> Iterator[Module]:
    if isinstance(value, Module):
        yield value
    elif type(value) in (tuple, list, dict) and id(value) not in seen:
        if type(value) is not tuple:  # which are made here, and others get their ids
            seen.add(id(value))
        for each in value.values() if type(value) is dict else value:
            yield from _in(each, seen)


def _walk(value: Any, found: dict[Tensor, list[tuple[Holder, str]]], seen: dict[int, Any]) -> None:
    kind: type = type(value)
    if id(value) in seen:
        return
    if kind in (tuple, list, dict):
        if kind is not tuple:
            seen[id(value)] = value
        for each in value.values() if kind is dict else value:
            if type(each) not in _LEAVES:
                _walk(each, found, seen)
    elif _has_attributes(kind):
        attributes = vars(value)
        seen[id(value)] = attributes
        for name, each in attributes.items():
            if type(each) in _LEAVES:
                continue
            if isinstance(each, Tensor):
                found.setdefault(each, []).append((attributes, name))
            else:
                _walk(each, found, seen)


@functools.lru_cache(maxsize=1024)
def _has_attributes(kind: type) -> bool:
    """Whether values of a type are objects with a `__dict__`, and no functions, methods, classes or modules."""
    if not kind.__dictoffset__ or issubclass(kind, (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)):
        return False
    return hasattr(kind, "__set__") or not hasattr(kind, "__get__")  # otherwise it is bound to objects as a method
