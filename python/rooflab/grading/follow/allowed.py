"""What a text that is followed may do with numbers, lists, dicts and matrices: arithmetic on single numbers, and the
methods that read them. No method multiplies. The follower's `products` counts what the operators do.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

INSTEAD = "write loops that take one multiplication and one addition at a time"
PLAIN = (
    "This question allows loops, arithmetic on single numbers, lists, dicts, small classes, `try`, generators that "
    "end, and the calls that convert or create matrices"
)
NUMBERS = (int, float)  # and bool, which is an int
MAX_INT = 2**63


class Refused(AssertionError):
    """A text does something that the question does not allow. The message is a sentence for the student."""


class Follows(Protocol):
    """What a call asks of the follower."""

    def spend(self, steps: int = 1) -> None: ...
    def refuse(self, does_what: str) -> Any: ...
    def items(self, value: Any) -> Iterator[Any]: ...
    def call(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any: ...
    def arithmetic(self, kind: type, left: Any, right: Any) -> Any: ...


@dataclass(frozen=True)
class Named:
    """Something in a library, by its path, such as `numpy.zeros`."""

    path: str


CONTEXT = Named("a context")
TEXT = Named("a text")  # of a message, so its contents do not matter


class Matrix:
    """An array or a tensor. Single elements are numbers, and there is no arithmetic on more of them."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return map(_wrapped, self.data)

    def at(self, index: Any) -> Any:
        """The number at an index, or the rows and columns of a slice."""
        return _wrapped(self.data[_checked(index)])

    def put(self, index: Any, value: Any) -> None:
        """Write numbers to an index."""
        self.data[_checked(index)] = value


def _checked(index: Any) -> Any:
    for one in index if isinstance(index, tuple) else (index,):
        ends = (one.start, one.stop, one.step) if isinstance(one, slice) else (one,)
        if not all(type(end) is int or (end is None and isinstance(one, slice)) for end in ends):
            raise TypeError("an index has to be a whole number or a slice here")
    return index


def _wrapped(found: Any) -> Any:
    return Matrix(found) if isinstance(found, np.ndarray) else float(found)


def what(value: Any) -> str:
    """How a sentence names a value."""
    if isinstance(value, Named):
        return value.path[:80]
    kind = type(value).__name__.lower()
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def plain(follower: Follows, value: Any) -> Any:
    """The numbers of a value in nested lists; each number takes one step."""
    if isinstance(value, (list, tuple, range, Matrix)):
        return [plain(follower, one) for one in follower.items(value)]
    if not isinstance(value, (int, float)):
        follower.refuse(f"needs a number and has {what(value)}")
    return value


def size(follower: Follows, value: Any) -> int:
    """How many values a comparison of this one looks at."""
    if isinstance(value, (list, tuple, range, dict)):
        return sum(size(follower, one) for one in follower.items(value))
    return 1


def number(follower: Follows, value: Any) -> Any:
    """The value, unless it is a number that is too large or of another kind, which is refused."""
    if isinstance(value, (complex, bytes)) or (isinstance(value, int) and abs(value) >= MAX_INT):
        follower.refuse("makes a number that the test cannot follow")
    return value


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.RShift: operator.rshift,
}


def arithmetic(follower: Follows, kind: type, left: Any, right: Any) -> Any:
    """One operation on two numbers, or one that joins or repeats lists."""
    if kind is ast.MatMult:
        follower.refuse(f"multiplies whole matrices by `@`: {INSTEAD}")
    if kind not in _OPERATORS:
        follower.refuse("has an operation that the test cannot follow")
    if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
        if kind is ast.Pow and type(right) is int and not 0 <= right <= 64:
            left = float(left)  # a whole number may grow without end
        return number(follower, _OPERATORS[kind](left, right))
    if isinstance(left, Matrix) or isinstance(right, Matrix):
        follower.refuse(f"computes with a whole row or matrix at once: {INSTEAD}")
    if kind is ast.Add and TEXT in (left, right) and all(isinstance(one, str) or one == TEXT for one in (left, right)):
        return TEXT
    joined = kind is ast.Add and type(left) is type(right) and isinstance(left, (list, tuple, str))
    repeated = kind is ast.Mult and {type(left), type(right)} in ({list, int}, {tuple, int})
    if not (joined or repeated):
        follower.refuse(f"has an operation on {what(left)} and {what(right)}, which the test cannot follow")
    sizes = [one if isinstance(one, int) else len(one) for one in (left, right)]
    follower.spend(sum(sizes) if joined else max(0, sizes[0]) * max(0, sizes[1]))
    return _OPERATORS[kind](left, right)


ATTRIBUTES: dict[str, Callable[[Matrix], Any]] = {
    "shape": lambda matrix: matrix.data.shape,
    "ndim": lambda matrix: matrix.data.ndim,
    "T": lambda matrix: Matrix(matrix.data.T),
    "mT": lambda matrix: Matrix(matrix.data.T),
    "dtype": lambda matrix: Named("a dtype"),
    "device": lambda matrix: Named("a device"),
}
_SAME = ("cpu", "numpy", "cuda", "detach", "contiguous", "float", "double", "to", "astype", "clone", "copy")
_GROWS: dict[str, Callable[..., Any]] = {
    "append": list.append,
    "insert": list.insert,
    "pop": list.pop,
    "reverse": list.reverse,
    "clear": list.clear,
}

_OF_DICTS = ("clear", "copy", "get", "items", "keys", "pop", "setdefault", "values")


def call_method(follower: Follows, owner: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`owner.name(...)`."""
    if isinstance(owner, list) and name in _GROWS:
        return _GROWS[name](owner, *args)
    if isinstance(owner, list) and name in ("extend", "copy"):
        return owner.extend(list(follower.items(*args))) if name == "extend" else list(follower.items(owner))
    if isinstance(owner, dict) and name in _OF_DICTS:
        follower.spend(len(owner) if name in ("keys", "values", "items", "copy") else 1)
        found = getattr(dict, name)(owner, *args)
        return list(found) if name in ("keys", "values", "items") else found
    if isinstance(owner, dict) and name == "update" and len(args) == 1 and isinstance(args[0], dict):
        follower.spend(len(args[0]))
        return owner.update(args[0])
    if isinstance(owner, range) and name == "tolist":
        follower.spend(len(owner))
        return list(owner)
    if isinstance(owner, float) and name == "item":
        return owner
    if isinstance(owner, Matrix):
        data = owner.data
        if name == "item":
            return float(data[tuple(args)] if args else data.item())
        if name in ("size", "dim", "numel"):
            whole = {"size": data.shape, "dim": data.ndim, "numel": data.size}[name]
            return data.shape[args[0]] if args else whole
        follower.spend(data.size)  # the others may copy
        if name in _SAME:
            return Matrix(data.copy()) if name in ("clone", "copy", "astype") else owner
        if name == "tolist":
            return data.tolist()
        if name in ("transpose", "t"):
            return Matrix(data.T)
        if name in ("reshape", "view", "flatten", "ravel"):
            return Matrix(data.reshape(shape(follower, args) if args else -1))
    return follower.refuse(f"calls the method {name[:40]} of {what(owner)}. {PLAIN}")


def shape(follower: Follows, args: list[Any]) -> tuple[int, ...]:
    """Sizes of an array: in one tuple, or one after the other, perhaps followed by a dtype."""
    sizes = list(args[0]) if args and isinstance(args[0], (tuple, list)) else [one for one in args if type(one) is int]
    if not all(type(one) is int for one in sizes):
        raise TypeError("a size that is not a whole number")
    total = 1
    for one in sizes:
        total *= max(one, 1)
        follower.spend(min(total, 2**40))
    return tuple(sizes)
