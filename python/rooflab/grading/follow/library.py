"""The calls of a text that is followed: Python's own functions, and libraries' that make numbers or loop over them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rooflab.grading.follow.allowed import CONTEXT, PLAIN, TEXT, Follows, Matrix, Named, plain, shape, what
from rooflab.grading.follow.values import DefaultDict, Instance, Iterated, Method, Partial, is_exception


def call(follower: Follows, path: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The function of a library, or a builtin one, by its path."""
    if path.startswith("builtins."):
        path = path.removeprefix("builtins.")
    if is_exception(path):
        return Named(path)
    if path in BUILTINS:
        return _fitting(follower, path, BUILTINS[path], args, keywords)
    module, _, name = path.rpartition(".")
    if path == "numpy.arange":
        return BUILTINS["range"](follower, *args)
    if path in ("rooflab.no_grad", "rooflab.inference_mode"):
        return CONTEXT
    if module in ("numpy", "rooflab") and name in _ARRAYS:
        return Matrix(_ARRAYS[name](follower, args + _in_order(follower, path, keywords)))
    if path in _OTHERS:
        return _fitting(follower, path, _OTHERS[path], args, keywords)
    return follower.refuse(f"calls {path[:80]}. {PLAIN}")


def _fitting(
    follower: Follows, path: str, function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]
) -> Any:
    try:
        inspect.signature(function).bind(follower, *args, **keywords)
    except TypeError:
        follower.refuse(f"calls {path} with arguments that the test cannot follow")
    return function(follower, *args, **keywords)


def _in_order(follower: Follows, path: str, keywords: dict[str, Any]) -> list[Any]:
    """The arguments of a call that makes an array which are given by name, without those that say its type."""
    for name in keywords.keys() - {*_FIRST, "fill_value", "dtype", "device", "order", "copy", "requires_grad"}:
        follower.refuse(f"calls {path} with {name[:40]}=, which the test cannot follow")
    return [keywords[name] for name in (*_FIRST, "fill_value") if name in keywords]


def _from_values(follower: Follows, args: list[Any]) -> np.ndarray:
    return np.array(plain(follower, args[0]), dtype=np.float64)


def _like(follower: Follows, args: list[Any]) -> np.ndarray:
    if not isinstance(args[0], Matrix):
        follower.refuse(f"needs a matrix and has {what(args[0])}")
    follower.spend(args[0].data.size)
    return np.zeros(args[0].data.shape)


def _zeros(follower: Follows, args: list[Any]) -> np.ndarray:
    return np.zeros(shape(follower, args))


_FIRST = ("shape", "size", "object", "data", "a", "prototype", "input")  # names of the first argument
_ARRAYS: dict[str, Callable[[Follows, list[Any]], np.ndarray]] = {
    **dict.fromkeys(("array", "asarray", "ascontiguousarray", "tensor", "from_numpy"), _from_values),
    **dict.fromkeys(("zeros", "empty"), _zeros),
    **dict.fromkeys(("zeros_like", "empty_like"), _like),
    "ones": lambda follower, args: np.ones(shape(follower, args)),
    "full": lambda follower, args: np.full(shape(follower, args[:1]), plain(follower, args[1]), np.float64),
}


def _sum(follower: Follows, many: Any, start: Any = 0) -> Any:
    for one in follower.items(many):
        start = follower.arithmetic(ast.Add, start, one)
    return start


def _numbers(follower: Follows, many: Any) -> list[Any]:
    found = list(follower.items(many))
    for one in found:
        if not isinstance(one, (int, float)):
            follower.refuse(f"needs numbers and has {what(one)}")
    return found


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda follower, *args: choose(_numbers(follower, args[0] if len(args) == 1 else args))


def _number(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(follower: Follows, value: Any = 0) -> Any:
        if isinstance(value, Matrix):
            value = float(value.data.item())
        if not isinstance(value, (int, float)):
            follower.refuse(f"needs a number and has {what(value)}")
        return kind(value)

    return convert


def _range(follower: Follows, *args: Any) -> range:
    return range(*args)


def _length(follower: Follows, value: Any) -> int:
    if isinstance(value, Instance) and "__len__" in value.of.names:
        return follower.call(Method(value, value.of.names["__len__"]), [], {})
    if not isinstance(value, (list, tuple, range, dict, Matrix)):
        follower.refuse(f"asks for the length of {what(value)}, which the test cannot follow")
    return len(value)


_KINDS = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "tuple": tuple, "dict": dict}


def _isinstance(follower: Follows, value: Any, kind: Any) -> bool:
    """isinstance for builtin types and for a library's array types, all of which a matrix stands for."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not all(isinstance(one, Named) for one in kinds):
        raise TypeError("isinstance takes a type, or a tuple of types")
    value = "" if value == TEXT else value
    return any(isinstance(value, _KINDS.get(one.path, Matrix)) for one in kinds)


def _zip(follower: Follows, *many: Any, strict: bool = False) -> list[tuple]:
    return list(zip(*(list(follower.items(one)) for one in many), strict=bool(strict)))


def _map(follower: Follows, function: Any, *many: Any) -> list[Any]:
    return [follower.call(function, list(args), {}) for args in _zip(follower, *many)]


def _list(follower: Follows, many: Any = ()) -> list[Any]:
    return list(follower.items(many))


def _dict(follower: Follows, many: Any = ()) -> dict[Any, Any]:
    return dict(many) if isinstance(many, dict) else dict(follower.items(many))


def _next(follower: Follows, one: Any, *default: Any) -> Any:
    if not isinstance(one, Iterated):
        follower.refuse(f"takes the next of {what(one)}, which the test cannot follow")
    return next(one.rest, *default)


def _accumulate(follower: Follows, many: Any, func: Any = None, *, initial: Any = None) -> list[Any]:
    found: list[Any] = [] if initial is None else [initial]
    function = func or Named("operator.add")
    for one in follower.items(many):
        found.append(follower.call(function, [found[-1], one], {}) if found else one)
    return found


def _reduce(follower: Follows, function: Any, many: Any, *start: Any) -> Any:
    found = _accumulate(follower, [*start, *follower.items(many)], function)
    if not found:
        raise TypeError("reduce() of an empty iterable with no initial value")
    return found[-1]


def _divmod(follower: Follows, left: Any, right: Any) -> tuple[Any, Any]:
    return follower.arithmetic(ast.FloorDiv, left, right), follower.arithmetic(ast.Mod, left, right)


def _prod(follower: Follows, many: Any, *, start: Any = 1) -> Any:
    return _reduce(follower, Named("operator.mul"), many, start)


def _chain(follower: Follows, *many: Any) -> list[Any]:
    return [one for each in many for one in follower.items(each)]


def _starmap(follower: Follows, function: Any, many: Any) -> list[Any]:
    return [follower.call(function, list(follower.items(one)), {}) for one in follower.items(many)]


def _operator(kind: type) -> Callable[..., Any]:
    return lambda follower, left, right: follower.arithmetic(kind, left, right)


def _product(follower: Follows, *many: Any) -> list[tuple]:
    """Every choice of one element each, the last changing fastest."""
    found: list[tuple] = [()]
    for one in many:
        elements = list(follower.items(one))
        follower.spend(len(found) * len(elements))
        found = [(*chosen, element) for chosen in found for element in elements]
    return found


def _ndindex(follower: Follows, *args: Any) -> list[tuple]:
    return _product(follower, *(range(size) for size in shape(follower, list(args))))


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
    "dict": _dict,
    "divmod": _divmod,
    "iter": lambda follower, many: Iterated(follower.items(many)),
    "next": _next,
    "any": lambda follower, many: any(_numbers(follower, many)),
    "all": lambda follower, many: all(_numbers(follower, many)),
    "str": lambda follower, *args: TEXT,
    "repr": lambda follower, *args: TEXT,
    "print": lambda follower, *args, **keywords: None,
    "isinstance": _isinstance,
}
_OTHERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("numpy.float32", "numpy.float64"), BUILTINS["float"]),
    "itertools.product": _product,
    "numpy.ndindex": _ndindex,
    "itertools.accumulate": _accumulate,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": lambda follower, many: _chain(follower, *follower.items(many)),
    "itertools.starmap": _starmap,
    "functools.reduce": _reduce,
    "functools.partial": lambda follower, function, *args, **keywords: Partial(function, list(args), keywords),
    "dataclasses.dataclass": lambda follower: Named("dataclasses.dataclass"),
    "collections.defaultdict": lambda follower, factory: DefaultDict(factory),
    **dict.fromkeys(("operator.mul", "numpy.multiply"), _operator(ast.Mult)),
    **dict.fromkeys(("operator.add", "numpy.add"), _operator(ast.Add)),
    "math.prod": _prod,
    "math.fsum": _sum,
}
