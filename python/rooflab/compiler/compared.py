"""What a recorded function reads, in a form that is compared at each call."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import FunctionType, MappingProxyType, MethodType, NoneType
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor, float32

__all__ = [
    "ABSENT",
    "NO_ATTRIBUTES",
    "PLAIN",
    "array",
    "attribute",
    "attributes",
    "cell",
    "content",
    "definition",
    "elements",
    "held",
    "is_same",
    "items",
    "itself",
    "named",
    "order",
    "outline",
    "stays",
    "variable",
]

PLAIN = (NoneType, bool, int, complex, str, bytes, range, slice, type(float32))
ABSENT = object()
_NO_ITEMS = ((), ())  # of a dict
NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})
_attribute = object.__getattribute__


class _Outline(tuple):
    """Of a tensor what can be asked of it without reading its values."""


class _Weak(weakref.ref):
    """What `held` makes of an object; a value may be a weak reference of another kind."""

    __slots__ = ()


def is_same(now: Any, then: Any) -> bool:
    """Whether a value is what it was: plain ones by value, all others by identity."""
    if now is then:
        return True
    kind = type(then)
    if then is Tensor:  # one of the program's inputs, while it was recorded
        return type(now) is _Outline
    if kind is _Weak:
        return now is not None and now is then()
    if kind is weakref.WeakMethod:
        return is_same(now, then() or ABSENT)
    if kind is _Outline:
        return type(now) is _Outline and now == then
    if type(now) is not kind:
        return False
    if kind is float:
        return now.hex() == then.hex()
    if isinstance(then, np.generic):
        return now.tobytes() == then.tobytes()
    if isinstance(then, tuple):
        return len(now) == len(then) and all(map(is_same, now, then))
    if kind is MethodType:
        return now.__func__ is then.__func__ and now.__self__ is then.__self__
    return (kind in PLAIN or kind is frozenset) and now == then


def held(value: Any, at_end: Callable[[Any], None]) -> Any:
    """The same for `is_same`, but it keeps no object alive that has weak references: `at_end` is called when one dies.

    Examples
    --------
    >>> class Box: pass
    >>> box, ended = Box(), []
    >>> kept = held((box, 2), ended.append)
    >>> is_same((box, 2), kept)
    True
    >>> del box
    >>> len(ended), is_same((None, 2), kept)
    (1, False)
    """
    kind = type(value)
    if kind is tuple:
        parts = tuple([held(each, at_end) for each in value])
        return value if all(map(operator.is_, parts, value)) else parts
    if value is Tensor or kind in (float, frozenset, _Outline, *PLAIN) or issubclass(kind, np.generic):
        return value
    try:
        return weakref.WeakMethod(value, at_end) if kind is MethodType else _Weak(value, at_end)
    except TypeError:
        return value


def stays(value: Any, kept: Any) -> bool:
    """Whether no other object gets the id of a value, of which `held` made `kept`, before `at_end` is called."""
    return kept is value or type(kept) is _Weak


def outline(value: Any) -> Any:
    """Of a tensor what can be asked of it without reading its values; else the value."""
    if not isinstance(value, Tensor):
        return value
    of, one = _core._compiler, [value]
    return _Outline((of.layouts(one), of.results_among(one), of.has_grad(value)))


def attributes(owner: Any) -> Any:
    """A class's or an object's own ones, without asking it anything; an empty dict if it has none."""
    try:
        return _attribute(owner, "__dict__")
    except AttributeError:
        return NO_ATTRIBUTES


def order(kind: type) -> tuple[type, ...]:
    """The classes in which attributes are looked up."""
    return kind.__mro__


def itself(names: dict) -> dict:
    """Of a dict of names."""
    return names


def items(value: Mapping) -> tuple:
    """The keys and values of a dict."""
    return (tuple(value), elements(value.values())) if value else _NO_ITEMS


def elements(values: Any) -> tuple:
    """What a list holds; of one of the program's inputs, while it is recorded, that it is a tensor."""
    is_recorded = _core._compiler.is_tracing()
    return tuple(
        [
            (Tensor if is_recorded and not _core._compiler.has_values(each) else outline(each))
            if isinstance(each, Tensor)
            else each
            for each in values
        ]
    )


def content(cell: Any) -> Any:
    """The value of a closure variable, which may have none yet."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return ABSENT


def cell(index: int, function: FunctionType) -> Any:
    """What is compared of a closure variable."""
    return outline(content((function.__closure__ or ())[index]))


def array(value: Any) -> tuple:
    """Of anything that shows its memory as an array does."""
    seen = np.asarray(value)
    return seen.shape, seen.dtype, seen.tobytes()


def named(names_of: Callable, name: str, owner: Any) -> Any:
    """What is compared of a name whose value was a tensor."""
    return outline(names_of(owner).get(name, ABSENT))


def variable(value: ContextVar) -> Any:
    """What a context variable holds here."""
    return outline(value.get(ABSENT))


def definition(function: FunctionType) -> tuple:
    """Code and defaults."""
    return function.__code__, function.__defaults__, tuple((function.__kwdefaults__ or {}).items())


def attribute(name: str, owner: Any) -> Any:
    """What code in C gives for an attribute."""
    return outline(getattr(owner, name, ABSENT))
