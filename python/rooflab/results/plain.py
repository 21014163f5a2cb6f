"""Results as plain values, which JSON can hold, and plain values as results again."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .._numbers import number, whole

T = TypeVar("T")


def plain(value: Any) -> Any:
    """`value` in dicts with text keys, lists, numbers, texts, True, False and None.

    Dataclasses become dicts, arrays become lists, and an object with a `to_dict` is what that gives.

    Examples
    --------
    >>> plain({"samples_ms": np.array([1.5, 2.5]), "shape": (2, 3)})
    {'samples_ms': [1.5, 2.5], 'shape': [2, 3]}
    """
    if isinstance(value, (np.ndarray, np.generic)):  # np.float64 is a float too
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(item) for name, item in fields(value).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, range):
        return [value.start, value.stop]
    if isinstance(value, (Sequence, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


def fields(value: Any) -> dict[str, Any]:
    """The public fields of a dataclass by name."""
    names = (field.name for field in dataclasses.fields(value))
    return {name: getattr(value, name) for name in names if not name.startswith("_")}


def settle(value: Any) -> None:
    """Make the numbers in the fields of a new dataclass Python's own, its arrays float64, and its lists tuples.

    Only fields that say so are changed: ``float``, ``int``, ``numpy.ndarray``, ``tuple[...]``, ``dict[...]`` and
    ``Mapping[...]`` with what is in them, each also ``| None``. A field that says a dataclass has to hold one.

    Raises
    ------
    ValueError
        When such a field holds something else, such as a text, None, or a tuple of another length.
    """
    kind: type = type(value)
    for name, (own, settled) in _settled(kind).items():
        given = getattr(value, name)
        if type(given) is not own:
            object.__setattr__(value, name, settled(f"[{kind.__name__}] {name}", given))


def _array(what: str, value: Any) -> np.ndarray:
    found = np.asarray(value)
    if found.dtype.kind not in "fiu" or found.ndim != 1:
        raise ValueError(f"{what}: expected a list of numbers, got {value!r}")
    own = found.astype(np.float64)  # a copy: what the caller writes into its array later is no result
    own.flags.writeable = False
    return own


def _tuple(what: str, value: Any, inside: tuple[Any, ...]) -> tuple[Any, ...]:
    if type(value) is tuple and tuple(map(type, value)) == inside:  # as most are
        return value
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise ValueError(f"{what}: expected several values, got {value!r}")
    items = tuple(value)
    if inside[1:] == (...,):
        inside = inside[:1] * len(items)
    if len(inside) != len(items):
        raise ValueError(f"{what}: expected {len(inside)} values, got {len(items)}")
    each = zip(map(_settler, inside), items, strict=True)
    return tuple(item if settled is None else settled(what, item) for settled, item in each)


def _by_name(what: str, value: Any, each: Callable[[str, Any], Any]) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what}: expected values by name, got {value!r}")
    settled = {key: each(f"{what}[{key!r}]", item) for key, item in value.items()}
    return value if all(settled[key] is item for key, item in value.items()) else settled


def _part(what: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ValueError(f"{what}: expected {article} {kind.__name__}, got {value!r}")
    return value


_SETTLED: dict[Any, Callable[[str, Any], Any]] = {float: number, int: whole, np.ndarray: _array}


@functools.cache
def _settled(kind: type) -> dict[str, tuple[type | None, Callable[[str, Any], Any]]]:
    """By field of one of these kinds the type that is as it should be, if there is one, and what settles others."""
    found = {name: (hint, _settler(hint)) for name, hint in _hints(kind).items()}
    return {
        name: (next((own for own in (int, float) if hint in (own, own | None)), None), settled)
        for name, (hint, settled) in found.items()
        if settled is not None
    }


@functools.cache
def _settler(hint: Any) -> Callable[[str, Any], Any] | None:
    inside = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        kinds = [one for one in inside if one is not type(None)]
        settled = _settler(kinds[0]) if len(kinds) == 1 else None
        return settled and (lambda what, value: None if value is None else settled(what, value))
    if typing.get_origin(hint) is tuple:
        return functools.partial(_tuple, inside=inside)
    if typing.get_origin(hint) in (dict, Mapping):
        return functools.partial(_by_name, each=_settler(inside[1]) or (lambda what, value: value))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(_part, kind=hint)
    return _SETTLED.get(hint)


def to_json(value: Any, indent: int | None = None) -> str:
    """Plain values as JSON. It has no numbers that are not finite, so they become "NaN", "Infinity" and "-Infinity"."""
    if isinstance(indent, str):  # json would put it before each line
        raise TypeError(f"[to_json] indent: expected a number of spaces or None, got {indent!r}; it returns the text")
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def read(kind: Callable[..., T], values: Any, name: str = "") -> T:
    """A dataclass from what `plain` made of one, by the types of its fields. Errors call it `name`, or as its class.

    Raises
    ------
    ValueError
        A field is missing, unknown or of another type.
    """
    return _read(kind, values, name or getattr(kind, "__name__", ""))


def _read(hint: Any, value: Any, where: str) -> Any:
    """`value` as `hint` says; `where` names it in errors."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _read(next(one for one in inside if one is not type(None)), value, where)
    if hasattr(hint, "_fields"):  # a named tuple
        return hint(*_read_sequence(tuple, tuple(typing.get_type_hints(hint).values()), value, where))
    if dataclasses.is_dataclass(hint) or hasattr(hint, "from_dict"):
        return _read_fields(hint, value, where)
    if origin in (dict, Mapping):
        items = _checked(value, Mapping, where).items()
        return {key: _read(inside[1], item, f"{where}[{key!r}]") for key, item in items}
    if origin in (tuple, list, Sequence):
        return _read_sequence(origin, inside, value, where)
    if hint is np.ndarray:
        return np.array([_read(float, item, where) for item in _checked(value, list, where)], dtype=np.float64)
    if hint is range:
        return range(*_read_sequence(tuple, (int, int), value, where))
    if hint is float and (value in ("NaN", "Infinity", "-Infinity") or type(value) is int):
        return float(value)
    return _checked(value, hint, where) if hint in (bool, int, float, str) else value


def _read_sequence(origin: Any, inside: tuple[Any, ...], value: Any, where: str) -> Any:
    items = _checked(value, list, where)
    if origin is not tuple or inside[1:] == (...,):
        return (tuple if origin is tuple else list)(_read(inside[0], item, where) for item in items)
    if len(items) != len(inside):
        raise ValueError(f"[{where}] expected {len(inside)} values, got {len(items)}")
    return tuple(_read(hint, item, where) for hint, item in zip(inside, items, strict=True))


def _read_fields(kind: Any, values: Any, where: str) -> Any:
    given = _checked(values, Mapping, where)
    if not hasattr(kind, "__dataclass_fields__"):
        return kind.from_dict(given)
    hints = _hints(kind)
    known = {field.name: field for field in dataclasses.fields(kind) if field.init and not field.name.startswith("_")}
    if unknown := [name for name in given if name not in known]:
        raise ValueError(f"[{where}] there is no field {', '.join(map(repr, unknown))}")
    needed = [name for name, field in known.items() if field.default is field.default_factory is dataclasses.MISSING]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"[{where}] the field {', '.join(map(repr, missing))} is missing")
    made = {name: _read(hints[name], value, f"{where}.{name}") for name, value in given.items()}
    try:
        return kind(**made)
    except ValueError as error:  # of its own checks, which do not know where it lies
        raise ValueError(str(error).replace(f"[{kind.__name__}]", f"[{where}]", 1)) from None


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields. They are texts in its module, which take a millisecond to evaluate."""
    return typing.get_type_hints(kind)


def _checked(value: Any, kind: Any, where: str) -> Any:
    if isinstance(value, tuple) and kind is list:
        return list(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"[{where}] expected {kind.__name__}, got {type(value).__name__}")
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two values hold the same, arrays element by element; NaN is the same as NaN.

    Examples
    --------
    >>> same({"x": np.array([1.0, np.nan])}, {"x": np.array([1.0, np.nan])}), same([1], (1,))
    (True, False)
    """
    a, b = (one.item() if isinstance(one, np.generic) else one for one in (a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    return bool(a == b)
