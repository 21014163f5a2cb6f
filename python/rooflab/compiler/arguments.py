"""Arguments and results as a list of tensors and what is around them."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from types import MethodType
from typing import Any

import numpy as np

from .._core import Tensor, float32

_PLAIN = (Tensor, type(float32), type(None), bool, int, float, complex, str, bytes)
_BY_VALUE = {type(float32), type(None), bool, int, str, bytes}


class Unhashable(ValueError):
    """An argument that cannot be compared with that of another call."""


def flatten(value: Any, tensors: list[Tensor]) -> Hashable:
    """Append the tensors in nested tuples, lists and dicts to `tensors`; return all else, to compare calls by.

    Numbers, texts and the like are compared by type and value, other objects by identity: what is equal may still
    differ in what a function reads of it.

    Raises
    ------
    Unhashable
        When something besides the tensors has no hash.

    Examples
    --------
    >>> tensors = []
    >>> flatten({"n": 3, "pair": (None, "relu")}, tensors)
    (<class 'dict'>, ((<class 'str'>, 'n'), (<class 'str'>, 'pair')), (<class 'int'>, 3), ...)
    """
    if isinstance(value, Tensor):
        tensors.append(value)
        return "tensor"
    kind = type(value)
    if kind is dict:
        return (kind, _flat_keys(value), *(flatten(each, tensors) for each in value.values()))
    if _is_sequence(value):
        return (kind, *(flatten(each, tensors) for each in value))
    if kind is float:
        return (kind, value.hex())  # 0.0 and -0.0 are two numbers, NaN is one
    if kind is complex:
        return (kind, value.real.hex(), value.imag.hex())
    if kind in (range, slice):
        return (kind, *(flatten(each, tensors) for each in (value.start, value.stop, value.step)))
    if kind is frozenset:
        return (kind, frozenset(_flat_keys(value)))
    if isinstance(value, np.generic):
        return (kind, value.dtype.str, value.tobytes())
    if kind is MethodType:  # another object each time that it is read
        return (kind, _Same(value.__func__), _Same(value.__self__))
    if kind in (Fraction, Decimal):
        return (kind, str(value))
    if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        held: list[Tensor] = []
        fields = [flatten(getattr(value, field.name), held) for field in dataclasses.fields(value)]
        if not held:  # which `replace` would not find
            return (kind, *fields)
    try:
        hash(value)
    except TypeError:
        raise Unhashable(f"an argument of type {kind.__name__} cannot be compared with that of another call") from None
    return (kind, value if kind in _BY_VALUE else _Same(value))


def outline(flat: Any) -> Any:
    """What `flatten` returns, with the type of each object in its place.

    Examples
    --------
    >>> outline(flatten([object(), 2], []))
    (<class 'list'>, (<class 'object'>, <class 'object'>), (<class 'int'>, 2))
    """
    if isinstance(flat, _Same):
        return flat.kind
    return tuple(map(outline, flat)) if type(flat) is tuple else flat


class _Same:
    """Equal to that of the same object alone, while that lives. It keeps alive what has no weak references."""

    __slots__ = ("_get", "_hash", "kind")

    def __init__(self, value: Any):
        self.kind = type(value)
        self._hash = id(value)
        self._get = weakly(value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Same or self._hash != other._hash:
            return False
        value = self._get()
        return self is other or (value is not None and value is other._get())

    def __hash__(self) -> int:
        return self._hash


def weakly(value: Any, at_end: Callable[[Any], None] | None = None) -> Callable[[], Any]:
    """What returns the value, and None once that is gone. Of a type without weak references it is kept alive.

    Examples
    --------
    >>> class Box: pass
    >>> box, items = Box(), [1, 2]
    >>> boxed, listed = weakly(box), weakly(items)
    >>> boxed() is box, listed() is items
    (True, True)
    >>> del box, items
    >>> boxed(), listed()
    (None, [1, 2])
    """
    try:
        return weakref.ref(value, at_end)
    except TypeError:
        return lambda: value


def _flat_keys(keys: Iterable) -> tuple:
    tensors: list[Tensor] = []
    flat = tuple([flatten(key, tensors) for key in keys])
    if tensors:
        raise Unhashable("a tensor that is a key of a dict or in a set cannot be compared with that of another call")
    return flat


def replace(value: Any, function: Callable, kind: type = Tensor) -> Any:
    """The same value with `function(leaf)` for each leaf of a kind: tensors, in the order of `flatten`.

    Examples
    --------
    >>> import rooflab as rl
    >>> replace([rl.ones(2), {"y": rl.ones(3)}, "text"], lambda x: x.shape)
    [(2,), {'y': (3,)}, 'text']
    """
    if isinstance(value, kind):
        return function(value)
    if type(value) is dict:
        return {key: replace(each, function, kind) for key, each in value.items()}
    if _is_sequence(value):
        made = [replace(each, function, kind) for each in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def check_result(value: Any) -> None:
    """ValueError when a result may hold tensors that `replace` does not find.

    Examples
    --------
    >>> check_result([1, None, "text"])
    >>> check_result({1, 2})
    Traceback (most recent call last):
    ValueError: [compile] a result of type set may hold tensors; return tensors in tuples, lists and dicts
    """
    if type(value) is dict or _is_sequence(value):
        for each in value.values() if type(value) is dict else value:
            check_result(each)
    elif not isinstance(value, _PLAIN):
        kind = type(value).__name__
        raise ValueError(
            f"[compile] a result of type {kind} may hold tensors; return tensors in tuples, lists and dicts"
        )


def _is_sequence(value: Any) -> bool:
    return type(value) in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields"))
