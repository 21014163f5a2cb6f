"""Which GPU a call works on, by what it can reach: arguments, what a function closes over, modules, containers."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._core import Graph, Tensor

_MOST = 10_000  # objects that are looked at


def device_of(fn: object, args: Iterable[object] = (), kwargs: Mapping[str, object] | None = None) -> str:
    """The first GPU that holds an array within reach of `fn(*args, **kwargs)`, else "cpu".

    It looks at the arguments first, then at the function: its closure, defaults and the globals that it names, a bound
    method's object, what a `functools.partial` holds, a module's parameters, attributes of objects, and lists, tuples,
    sets and dicts of all these. Graphs count as arrays, and so do arrays of PyTorch and CuPy.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(3)
    >>> device_of(lambda: x.exp())
    'cpu'
    """
    waiting: list[object] = [*args, *(kwargs or {}).values(), fn]
    seen: dict[int, object] = {}  # held, so that no other object gets its id
    while waiting and len(seen) < _MOST:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if (device := _device(value)) == "cpu":
            continue  # an array, which leads nowhere else
        if device:
            return device
        waiting += _within(value)
    return "cpu"


def _device(value: object) -> str | None:
    """The device of an array; None for anything else, such as an array's class."""
    if isinstance(value, type):
        return None
    if isinstance(value, (Tensor, Graph)):  # not through an array interface: a tensor that requires grad has none
        return value.device if value.device.startswith("cuda") else "cpu"
    place = getattr(value, "device", None)
    if place is not None and (kind := getattr(place, "type", None)):  # PyTorch
        return f"cuda:{place.index or 0}" if kind == "cuda" else "cpu"
    if hasattr(value, "__cuda_array_interface__"):  # which does not say which GPU; DLPack does
        return f"cuda:{value.__dlpack_device__()[1]}" if hasattr(value, "__dlpack_device__") else "cuda:0"
    return "cpu" if hasattr(value, "__array_interface__") else None


def _within(value: Any) -> Iterator[object]:
    """What a value holds or works with."""
    if isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, functools.partial):
        yield from (*value.args, *value.keywords.values(), value.func)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.BuiltinMethodType):
        yield value.__self__
    elif isinstance(value, types.FunctionType):
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:
                continue  # a name that is not bound yet
        yield from (value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__)
    elif isinstance(value, (type, types.ModuleType, str, bytes, int, float)):
        return  # everything there is lies behind a module
    else:
        if callable(parameters := getattr(value, "parameters", None)):
            yield from parameters()
        yield from getattr(value, "__dict__", {}).values()
        if callable(value):
            yield type(value).__call__


def _names(code: types.CodeType) -> Iterator[str]:
    """The globals that a function names, and the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
