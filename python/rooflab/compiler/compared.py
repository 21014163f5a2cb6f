"""What a recorded function reads, in a form that is compared at each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import FunctionType, MethodType, NoneType
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor, float32

__all__ = [
    "ABSENT",
    "PLAIN",
    "array",
    "attribute",
    "cell",
    "content",
    "definition",
    "elements",
    "is_same",
    "items",
    "named",
    "outline",
    "variable",
]

PLAIN = (NoneType, bool, int, complex, str, bytes, range, slice, type(float32))
ABSENT = object()
_NO_ITEMS = ((), ())  # of a dict


class _Outline(tuple):
    """Of a tensor what can be asked of it without reading its values."""


def is_same(now: Any, then: Any) -> bool:
    """Whether a value is what it was: plain ones by value, all others by identity."""
    if now is then:
        return True
    kind = type(then)
    if then is Tensor:  # one of the program's inputs, while it was recorded
        return type(now) is _Outline
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


def outline(value: Any) -> Any:
    """Of a tensor what can be asked of it without reading its values; else the value."""
    if not isinstance(value, Tensor):
        return value
    return _Outline((value.shape, value.dtype, value.requires_grad, _core._compiler.has_grad(value)))


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


def cell(cell: Any) -> Any:
    """What is compared of a closure variable."""
    return outline(content(cell))


def array(value: Any) -> tuple:
    """Of anything that shows its memory as an array does."""
    seen = np.asarray(value)
    return seen.shape, seen.dtype, seen.tobytes()


def named(get: Callable, name: str, _: Any) -> Any:
    """What is compared of a name whose value was a tensor."""
    return outline(get(name, ABSENT))


def variable(value: ContextVar) -> Any:
    """What a context variable holds here."""
    return outline(value.get(ABSENT))


def definition(function: FunctionType) -> tuple:
    """Code and defaults."""
    return function.__code__, function.__defaults__, tuple((function.__kwdefaults__ or {}).items())


def attribute(name: str, owner: Any) -> Any:
    """What code in C gives for an attribute."""
    return outline(getattr(owner, name, ABSENT))
