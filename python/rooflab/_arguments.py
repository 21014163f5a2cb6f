"""Calls of native functions with arguments that do not fit: what may be left out, or the error message."""

from __future__ import annotations

import difflib
import numbers
import operator
import re
from collections.abc import Sequence

from ._core import Tensor
from ._habits.options import changes_nothing, following, instead_of

# Names that other libraries give to arguments, and what these are called here.
_SYNONYMS = {
    "axis": ("dim",),
    "axes": ("dim",),
    "keepdims": ("keepdim",),
    "input": ("x", "a", "p", "start", "index", "logits", "log_p", "tokens"),
    "other": ("b",),
    "size": ("shape",),
    "mask": ("attn_mask",),
    "epsilon": ("eps",),
    "normalized_shape": ("dim", "weight"),
    "query": ("q",),
    "value": ("v", "src", "other"),
    "fill_value": ("value",),
    "mat2": ("b",),
    "vec": ("b",),
    "vec2": ("b",),
    "mat1": ("a",),
    "batch2": ("b",),
    "tensor": ("x", "other", "b", "index"),
    "tensor2": ("b",),
    "exponent": ("b",),
    "divisor": ("other",),
    "x1": ("a",),
    "x2": ("b",),
    "y": ("other",),
    "dimension": ("dim",),
    "axis0": ("dim0",),
    "axis1": ("dim1",),
    "f": ("path",),
    "obj": ("x", "tensors"),
    "ndarray": ("array",),
    "map_location": ("device",),
    "model": ("function",),
    "outputs": ("loss",),
    "ext_tensor": ("source",),
    "param": ("parameter",),
    "key": ("k", "name", "index"),
    "sequential": ("modules",),
    "split_size": ("size",),
    "split_size_or_sections": ("size",),
}


def is_integer(x) -> bool:
    """Whether x can be a dim, a size or a count: the same rule as that of native functions (csrc/bindings/bindings.h).

    Examples
    --------
    >>> import rooflab as rl
    >>> is_integer(rl.tensor(2)), is_integer(rl.tensor(2.0)), is_integer(True)
    (True, False, False)
    """
    if type(x) is int:
        return True
    if isinstance(x, Tensor):
        return x.ndim == 0 and x.dtype.name in ("int64", "int32")
    try:
        return type(operator.index(x)) is int and not isinstance(x, bool)
    except TypeError:
        return False


def described(value) -> str:
    """The type of a value, and the value of a number.

    Examples
    --------
    >>> import rooflab as rl
    >>> described(0.5), described(rl.ones(2)), described("a")
    ('float 0.5', 'Tensor of shape (2,), float32', 'str')
    """
    if isinstance(value, Tensor):
        kind = f"Tensor of shape {value.shape}, {value.dtype}"
        return f"{kind}, that requires grad: its gradient would be lost, write .item()" if value.requires_grad else kind
    return f"{type(value).__name__} {value}" if isinstance(value, numbers.Number) else _kind_of(value)


def is_text(x) -> bool:
    """Whether x is a str that C++ can be given, in UTF-8.

    Examples
    --------
    >>> is_text("cpu"), is_text(chr(0xDCFF))
    (True, False)
    """
    return isinstance(x, str) and not re.search("[\ud800-\udfff]", x)  # parts of letters, which UTF-8 lacks


def _is_int(x) -> bool:
    return is_integer(x) and (_is_tensor(x) or -(2**63) <= operator.index(x) < 2**63)


def _is_tensor(x) -> bool:
    return isinstance(x, Tensor)


def _is_list(x, takes) -> bool:
    return isinstance(x, (list, tuple)) and all(map(takes, x))


_KINDS = {
    "Tensor": _is_tensor,
    "int": _is_int,
    "float": lambda x: not isinstance(x, (str, Tensor, list, tuple)) and hasattr(x, "__float__"),
    "bool": lambda x: isinstance(x, bool) or type(x).__name__ == "bool_",
    "str": is_text,
    "None": lambda x: x is None,
    "tuple of int": lambda x: isinstance(x, (tuple, list, int)),
    "tuple[int, int]": lambda x: _is_list(x, _is_int) and len(x) == 2,
    "list of int": lambda x: _is_list(x, _is_int),
    "list of Tensor": lambda x: _is_tensor(x) or _is_list(x, _is_tensor),
}


def _split(text: str) -> list[str]:
    """Split a text at commas outside of brackets and quotes."""
    parts, depth, quote, begin = [], 0, "", 0
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[({":
            depth += 1
        elif letter in "])}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [part for part in [*parts, text[begin:].strip()] if part]


def _plain(annotation: str) -> list[str]:
    """What a user would call the types of an annotation."""
    text = annotation.replace("rooflab._core.", "").replace("typing.SupportsFloat | typing.SupportsIndex", "float")
    text = text.replace("typing.SupportsIndex", "int")
    text = text.replace("tuple[int, ...]", "tuple of int")
    text = re.sub(r"collections\.abc\.Sequence\[(\w+)\]", r"list of \1", text)
    return [kind.strip() for kind in text.split("|")]


class _Parameter:
    def __init__(self, text: str):
        declared, self.equals, default = text.partition(" = ")
        name, _, annotation = declared.partition(":")
        self.name, self.kinds = name.strip(), _plain(annotation.strip())
        self.text = self.name + (f"={default}" if self.equals else "")
        self.gathers = self.name.startswith("*")

    def takes(self, value) -> bool:
        tests = [_KINDS.get(kind) for kind in self.kinds]
        return any(test is None or test(value) for test in tests)


def _overloads(message: str) -> list[list[_Parameter]]:
    found = re.findall(r"^\s+\d+\. (?:[\w.]*)\((.*)\) -> .*$", message, re.MULTILINE)
    if not found:
        found = re.findall(r"^\s+\d+\. [\w.]+\((.*)\)$", message, re.MULTILINE)
    overloads = [[_Parameter(part) for part in _split(line)] for line in found]
    return [[p for p in parameters if p.name != "self"] for parameters in overloads]


def nearest(keyword: str, names: Sequence[str]) -> str:
    """The question whether a keyword that a function lacks was meant for an argument of it; empty if none is near.

    Parameters
    ----------
    keyword : str
        What was given.
    names : sequence of str
        The arguments that there are.

    Returns
    -------
    str
        To follow the error.

    Examples
    --------
    >>> nearest("axis", ["x", "dim"])
    '; did you mean dim?'
    """
    for name in _SYNONYMS.get(keyword, ()):
        if name in names:
            return f"; did you mean {name}?"
    near = difflib.get_close_matches(keyword, names, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _kind_of(value) -> str:
    if isinstance(value, str) and not is_text(value):
        return f"{value!a}, which UTF-8 cannot hold"
    return "None" if value is None else type(value).__name__


def _shown(value) -> str:
    """A number as it is; other things by their type."""
    return repr(value) if isinstance(value, (int, float)) else _kind_of(value)


def _misfit(name: str, kinds: list[str], value) -> str:
    """What was expected of an argument, and what was got."""
    if type(value) is int and "int" in kinds:
        return f"{name}: expected int of 64 bits, got {value}"
    if "list of Tensor" in kinds and isinstance(value, (list, tuple)):
        place = next(i for i, x in enumerate(value) if not isinstance(x, Tensor))
        return f"{name}[{place}]: expected Tensor, got {_kind_of(value[place])}"
    got = described(value) if {"int", "float"} & set(kinds) else _kind_of(value)
    return f"{name}: expected {' or '.join(kinds)}, got {got}"


def _bind(parameters: list[_Parameter], args: tuple, kwargs: dict) -> tuple[dict, str]:
    """The arguments by name, and what is missing or too much."""
    named = [p for p in parameters if not p.gathers]
    places, only_named = [], False
    for p in parameters:
        only_named |= p.gathers
        if not only_named:
            places.append(p)
    gathers = any(p.name.startswith("*") and p.name not in ("*", "**kwargs") for p in parameters)
    if len(args) > len(places) and not gathers:
        plural = "" if len(places) == 1 else "s"
        return {}, f"expected at most {len(places)} positional argument{plural}, got {len(args)}"
    bound = {p.name: value for p, value in zip(places, args, strict=False)} | kwargs
    missing = [p.name for p in named if p.name not in bound and not p.equals]
    return bound, f"{missing[0]}: missing" if missing else ""


def without_idle_options(name: str, message: str, kwargs: dict) -> dict | None:
    """The keywords of a call of `name`, which raised `message`, without PyTorch's options that change nothing.

    Returns
    -------
    dict or None
        None if there are none, or if other keywords do not fit either.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.ones(2).sort(stable=True).values.tolist()
    [1.0, 1.0]
    """
    known = {p.name for parameters in _overloads(message) for p in parameters}
    idle = [each for each in kwargs if each not in known]
    if not idle or not all(changes_nothing(name, each, kwargs[each]) for each in idle):
        return None
    return {each: value for each, value in kwargs.items() if each in known}


def explain(name: str, message: str, args: tuple, kwargs: dict) -> str:
    """Say in one sentence why a call of `name` raised pybind11's `message`.

    Examples
    --------
    >>> import rooflab as rl
    >>> rl.softmax(rl.ones(3), axis=0)
    Traceback (most recent call last):
        ...
    TypeError: [softmax] axis: no such argument; did you mean dim? expected (x, dim=-1, variant='')
    >>> rl.add(rl.ones(3), "a")
    Traceback (most recent call last):
        ...
    TypeError: [add] b: expected Tensor or float, got str
    """
    overloads = _overloads(message)
    owner = re.search(r"\(self: ([\w.]*)", message)
    place = f"[{name}]"
    if owner and args and owner[1]:
        kind = owner[1].rpartition(".")[2]
        if kind not in [base.__name__ for base in type(args[0]).__mro__]:
            return f"{place} expected {kind}, got {_kind_of(args[0])}"
    args = args[1:] if owner or "incompatible constructor" in message else args
    if not overloads:
        return f"{place} expected other arguments, got ({', '.join(map(_kind_of, [*args, *kwargs.values()]))})"
    names = list(dict.fromkeys(p.name for parameters in overloads for p in parameters if not p.gathers))
    shown = f"expected ({', '.join(p.text for p in overloads[0])})"
    if {"axis", "out"} <= kwargs.keys():
        return f"{place} NumPy passes {', '.join(kwargs)}; call rl.{name}(x, dim=...), or NumPy with x.numpy()"
    open_ended = any(p.name.startswith("**") for parameters in overloads for p in parameters)
    for keyword in kwargs:
        if keyword not in names and not open_ended:
            if told := instead_of(name, keyword, kwargs[keyword]):
                return f"{place} {keyword}: no such argument{told}"
            near = nearest(keyword, names)
            taking = next((ps for ps in overloads if any(near.endswith(f" {p.name}?") for p in ps)), overloads[0])
            return f"{place} {keyword}: no such argument{near or ';'} expected ({', '.join(p.text for p in taking)})"
    problems, misfits, fits = [], [], []
    for parameters in overloads:
        bound, problem = _bind(parameters, args, kwargs)
        problems.append(problem)
        if problem:
            continue
        wrong = next((p for p in parameters if p.name in bound and not p.takes(bound[p.name])), None)
        if wrong:
            misfits.append((parameters.index(wrong), wrong, bound))
        else:
            fits.append((parameters, bound))
    if misfits:  # the overloads whose first misfit comes last say what they would have taken there
        farthest = max(at for at, *_ in misfits)
        closest = [(parameter, bound) for at, parameter, bound in misfits if at == farthest]
        parameter, bound = closest[0]
        kinds = list(dict.fromkeys(kind for p, _ in closest for kind in p.kinds))
        value = bound[parameter.name]
        if parameter.name == "variant" and "variant" not in kwargs and (after := following(name)):
            return f"{place} {after}: no such argument{instead_of(name, after, value)}"
        shared = " or ".join(dict.fromkeys(p.name for p, _ in closest))
        told = _misfit(shared, kinds, value) + (instead_of(name, "Tensor", value) if _is_tensor(value) else "")
        return f"{place} {told.partition(': ')[2] if parameter.name.startswith('arg') else told}"
    if all(problems):
        return f"{place} {problems[0]}; {shown}"
    for parameters, bound in fits:
        for p in parameters:
            if p.kinds != ["int"] or not is_integer(bound.get(p.name)):
                continue
            value = operator.index(bound[p.name])
            if value < 0:
                return f"{place} {p.name}: expected int >= 0, got {value}"
            if value >= 2**31:
                return f"{place} {p.name}: expected int of 32 bits, got {value}"
    given = [_shown(a) for a in args] + [f"{k}={_shown(v)}" for k, v in kwargs.items()]
    return f"{place} {shown}, got ({', '.join(given)})"
