"""Arguments and results as a list of tensors and what is around them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from .._core import Tensor, float32

_PLAIN = (Tensor, type(float32), type(None), bool, int, float, complex, str, bytes)


class Unhashable(ValueError):
    """An argument that cannot be compared with that of another call."""


def flatten(value: Any, tensors: list[Tensor]) -> Hashable:
    """Append the tensors in nested tuples, lists and dicts to `tensors`; return all else, to compare calls by.

    Raises
    ------
    Unhashable
        When something besides the tensors has no hash.

    Examples
    --------
    >>> tensors = []
    >>> flatten({"n": 3, "pair": (None, "relu")}, tensors)
    (<class 'dict'>, ('n', 'pair'), (<class 'int'>, 3), (<class 'tuple'>, (<class 'NoneType'>, None), ...))
    """
    if isinstance(value, Tensor):
        tensors.append(value)
        return "tensor"
    kind = type(value)
    if kind is dict:
        return (kind, tuple(value), *(flatten(each, tensors) for each in value.values()))
    if _is_sequence(value):
        return (kind, *(flatten(each, tensors) for each in value))
    if kind is float:
        return (kind, value.hex())  # 0.0 and -0.0 are two numbers, NaN is one
    try:
        hash(value)
    except TypeError:
        raise Unhashable(f"an argument of type {kind.__name__} cannot be compared with that of another call") from None
    return (kind, value)


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
