"""What a text that is followed may use: numbers, lists and matrices, and the calls that read, make and loop over them.

No call in these lists multiplies. The follower's `products` counts what the operators do.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

INSTEAD = "write loops that take one multiplication and one addition at a time"
PLAIN = "This question allows loops, arithmetic on single numbers, and calls such as range, len, zip, sum and tolist"
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


def is_exception(name: str) -> bool:
    """Whether a builtin exception has this name."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def plain(follower: Follows, value: Any) -> Any:
    """The numbers of a value in nested lists; each number takes one step."""
    if isinstance(value, (list, tuple, range, Matrix)):
        return [plain(follower, one) for one in follower.items(value)]
    if not isinstance(value, (int, float)):
        raise TypeError(f"{what(value)} is not a number")
    return value


def size(follower: Follows, value: Any) -> int:
    """How many values a comparison of this one looks at."""
    if isinstance(value, (list, tuple, range)):
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
    joined = kind is ast.Add and type(left) is type(right) and isinstance(left, (list, tuple, str))
    repeated = kind is ast.Mult and {type(left), type(right)} in ({list, int}, {tuple, int})
    if not (joined or repeated):
        raise TypeError(f"an operation on {what(left)} and {what(right)}")
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


def call_method(follower: Follows, owner: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`owner.name(...)`."""
    if isinstance(owner, list) and name in _GROWS:
        return _GROWS[name](owner, *args)
    if isinstance(owner, list) and name in ("extend", "copy"):
        return owner.extend(list(follower.items(*args))) if name == "extend" else list(follower.items(owner))
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
            return Matrix(data.reshape(_shape(follower, args) if args else -1))
    return follower.refuse(f"calls the method {name[:40]} of {what(owner)}. {PLAIN}")


def call(follower: Follows, path: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The function of a library, or a builtin one, by its path."""
    if path.startswith("builtins."):
        path = path.removeprefix("builtins.")
    if is_exception(path):
        return Named(path)
    if path in BUILTINS:
        return BUILTINS[path](follower, *args, **keywords)
    module, _, name = path.rpartition(".")
    if module in ("numpy", "rooflab") and name in _ARRAYS:
        return Matrix(_ARRAYS[name](follower, args))
    if path in _OTHERS:
        return _OTHERS[path](follower, *args)
    return follower.refuse(f"calls {path[:80]}. {PLAIN}")


def _shape(follower: Follows, args: list[Any]) -> tuple[int, ...]:
    """Sizes of an array: in one tuple, or one after the other, perhaps followed by a dtype."""
    sizes = list(args[0]) if args and isinstance(args[0], (tuple, list)) else [one for one in args if type(one) is int]
    if not all(type(one) is int for one in sizes):
        raise TypeError("a size that is not a whole number")
    total = 1
    for one in sizes:
        total *= max(one, 1)
        follower.spend(min(total, 2**40))
    return tuple(sizes)


def _from_values(follower: Follows, args: list[Any]) -> np.ndarray:
    return np.array(plain(follower, args[0]), dtype=np.float64)


def _like(follower: Follows, args: list[Any]) -> np.ndarray:
    if not isinstance(args[0], Matrix):
        raise TypeError(f"expected a matrix, got {what(args[0])}")
    follower.spend(args[0].data.size)
    return np.zeros(args[0].data.shape)


def _zeros(follower: Follows, args: list[Any]) -> np.ndarray:
    return np.zeros(_shape(follower, args))


_ARRAYS: dict[str, Callable[[Follows, list[Any]], np.ndarray]] = {
    **dict.fromkeys(("array", "asarray", "ascontiguousarray", "tensor", "from_numpy"), _from_values),
    **dict.fromkeys(("zeros", "empty"), _zeros),
    **dict.fromkeys(("zeros_like", "empty_like"), _like),
    "ones": lambda follower, args: np.ones(_shape(follower, args)),
    "full": lambda follower, args: np.full(_shape(follower, args[:1]), plain(follower, args[1]), np.float64),
}


def _sum(follower: Follows, many: Any, start: Any = 0) -> Any:
    for one in follower.items(many):
        start = follower.arithmetic(ast.Add, start, one)
    return start


def _numbers(follower: Follows, many: Any) -> list[Any]:
    found = list(follower.items(many))
    if not all(isinstance(one, (int, float)) for one in found):
        raise TypeError("expected numbers")
    return found


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda follower, *args: choose(_numbers(follower, args[0] if len(args) == 1 else args))


def _number(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(follower: Follows, value: Any = 0) -> Any:
        if isinstance(value, Matrix):
            value = float(value.data.item())
        if not isinstance(value, (int, float)):
            raise TypeError(f"{what(value)} is not a number")
        return kind(value)

    return convert


def _range(follower: Follows, *args: Any) -> range:
    return range(*args)


def _length(follower: Follows, value: Any) -> int:
    if not isinstance(value, (list, tuple, range, Matrix)):
        raise TypeError(f"{what(value)} has no length")
    return len(value)


_KINDS = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "tuple": tuple}


def _isinstance(follower: Follows, value: Any, kind: Any) -> bool:
    """isinstance for builtin types and for a library's array types, all of which a matrix stands for."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not all(isinstance(one, Named) for one in kinds):
        raise TypeError("isinstance takes a type, or a tuple of types")
    return any(isinstance(value, _KINDS.get(one.path, Matrix)) for one in kinds)


def _zip(follower: Follows, *many: Any, strict: bool = False) -> list[tuple]:
    return list(zip(*(list(follower.items(one)) for one in many), strict=bool(strict)))


def _map(follower: Follows, function: Any, *many: Any) -> list[Any]:
    return [follower.call(function, list(args), {}) for args in _zip(follower, *many)]


def _list(follower: Follows, many: Any = ()) -> list[Any]:
    return list(follower.items(many))


def _product(follower: Follows, *many: Any) -> list[tuple]:
    """Every choice of one element each, the last changing fastest."""
    found: list[tuple] = [()]
    for one in many:
        elements = list(follower.items(one))
        follower.spend(len(found) * len(elements))
        found = [(*chosen, element) for chosen in found for element in elements]
    return found


def _ndindex(follower: Follows, *args: Any) -> list[tuple]:
    return _product(follower, *(range(size) for size in _shape(follower, list(args))))


BUILTINS: dict[str, Callable[..., Any]] = {
    "range": _range,
    "len": _length,
    "zip": _zip,
    "enumerate": lambda follower, many, start=0: list(enumerate(follower.items(many), start)),
    "sum": _sum,
    "min": _extreme(min),
    "max": _extreme(max),
    "abs": _number(abs),
    "float": _number(float),
    "int": _number(int),
    "bool": _number(bool),
    "list": _list,
    "tuple": lambda follower, many=(): tuple(follower.items(many)),
    "reversed": lambda follower, many: _list(follower, many)[::-1],
    "sorted": lambda follower, many: sorted(_numbers(follower, many)),
    "map": _map,
    "print": lambda follower, *args, **keywords: None,
    "isinstance": _isinstance,
}
_OTHERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("numpy.float32", "numpy.float64"), BUILTINS["float"]),
    "itertools.product": _product,
    "numpy.ndindex": _ndindex,
    "operator.mul": lambda follower, left, right: follower.arithmetic(ast.Mult, left, right),
    "operator.add": lambda follower, left, right: follower.arithmetic(ast.Add, left, right),
    "math.fsum": _sum,
}
