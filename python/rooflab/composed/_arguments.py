"""Arguments of composed functions, which are checked in one place."""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .._arguments import described, is_integer
from .._core import Tensor
from .._in_words import in_words

__all__ = ["checked", "place_of", "sequence_of", "sizes_of"]

P = ParamSpec("P")
R = TypeVar("R")
Kind = tuple[Callable[[Any], bool], str, set[type]]


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a function by their annotations: tensors, numbers and sequences of both.

    Parameters
    ----------
    function : callable
        With annotations that are not evaluated. Others than those of `_KINDS` are not checked.

    Returns
    -------
    callable
        The function, which raises a TypeError for other arguments.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.nan_to_num(1.5)
    Traceback (most recent call last):
    TypeError: [nan_to_num] x: expected a tensor, got float
    >>> rl.logsumexp(rl.ones(2), axis=0)
    Traceback (most recent call last):
    TypeError: [logsumexp] axis: no such argument; did you mean dim? expected (x, dim, keepdim=False, variant='')
    """
    name = function.__name__
    kinds = {
        each: None if parameter.kind is parameter.VAR_POSITIONAL else _KINDS.get(parameter.annotation)
        for each, parameter in inspect.signature(function).parameters.items()
    }
    in_order = tuple(kinds.items())
    usual = tuple(None if kind is None else kind[2] for kind in kinds.values())

    def check(each: str, kind: Kind, value: Any) -> Any:
        if not kind[0](value):
            got = described(value) if kind[0] is not _is_tensor else type(value).__name__
            raise TypeError(f"[{name}] {each}: expected {kind[1]}, got {got}")
        if isinstance(value, np.bool_):
            return bool(value)
        is_exact = type(value) is int or kind[1] not in ("an integer", "an integer or None") or value is None
        return value if is_exact else operator.index(value)  # arithmetic with NumPy's integers wraps around

    @in_words
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs:
            for types, value in zip(usual, args, strict=False):
                if types is not None and type(value) not in types:
                    break
            else:
                return function(*args, **kwargs)
        given: list[Any] = list(args)
        for place, ((each, kind), value) in enumerate(zip(in_order, args, strict=False)):
            if kind is not None:
                given[place] = check(each, kind, value)
        for each, value in kwargs.items():
            if (kind := kinds.get(each)) is not None:
                kwargs[each] = check(each, kind, value)
        return function(*given, **kwargs)

    return call


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_number(value: Any) -> bool:
    return type(value) is float or isinstance(value, (numbers.Real, np.bool_, Tensor))


def _is_constant(value: Any) -> bool:
    return _is_number(value) and not (isinstance(value, Tensor) and value.requires_grad)


def _all(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(map(kind, value))


def _or_none(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or kind(value)


def _are_integers(value: Any) -> bool:
    return is_integer(value) or _all(is_integer)(value)


_NONE = type(None)
# For an annotation: what is right, the words for it, and the types of which every value is, without a closer look.
_KINDS: dict[str, Kind] = {
    "Tensor": (_is_tensor, "a tensor", {Tensor}),
    "Tensor | None": (_or_none(_is_tensor), "a tensor or None", {Tensor, _NONE}),
    "Sequence[Tensor]": (_all(_is_tensor), "a list or tuple of tensors", set()),
    "int": (is_integer, "an integer", {int}),
    "int | None": (_or_none(is_integer), "an integer or None", {int, _NONE}),
    "Sequence[int]": (_all(is_integer), "a list or tuple of integers", set()),
    "int | Sequence[int]": (_are_integers, "integers", {int}),
    "int | Sequence[int] | None": (_or_none(_are_integers), "integers or None", {int, _NONE}),
    "float": (_is_constant, "a number", {float, int}),
    "float | None": (_or_none(_is_constant), "a number or None", {float, int, _NONE}),
    "float | Tensor": (_is_number, "a number or a tensor", {float, int, Tensor}),
    "Tensor | float": (_is_number, "a number or a tensor", {float, int, Tensor}),
}


def sizes_of(name: str, given: tuple) -> tuple[int, ...]:
    """The integers of ``*sizes``, which may be one sequence."""
    sizes = tuple(given[0]) if len(given) == 1 and isinstance(given[0], Iterable) else given
    if wrong := [size for size in sizes if not is_integer(size)]:
        raise TypeError(f"[{name}] expected integers, got {wrong[0]!r}")
    return tuple(map(operator.index, sizes))


def sequence_of(dims: int | Sequence[int]) -> list[int]:
    """One dimension or several, as a list."""
    return [operator.index(dim) for dim in (dims if isinstance(dims, Sequence) else [dims])]


def place_of(name: str, x: Tensor, dim: int) -> int:
    """A dimension counted from the first one."""
    if not -x.ndim <= dim < x.ndim:
        raise ValueError(f"[{name}] dim: expected one of the {x.ndim} dimensions of {x.shape}, got {dim!r}")
    return int(dim) % x.ndim
