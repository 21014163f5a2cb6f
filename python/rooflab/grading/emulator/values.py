"""What a program of the emulator is made of: the tokens of its source, numbers, pointers, mathematics."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ARITHMETIC", "BINARY", "TYPES", "EmulatedFault", "Pointer", "Unsupported", "Words", "converter",
    "known", "mathematics", "number", "pointer",
]  # fmt: skip

_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFuUlL]*)"
    r'|(?P<text>"[^"\n]*")|(?P<name>[A-Za-z_]\w*)'
    r"|(?P<sign><<=|>>=|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|[-+*/%&|^!~=<>?:;,.(){}\[\]])",
    re.DOTALL,
)
INTEGERS = {"int", "unsigned", "long", "short", "size_t", "int32_t", "int64_t", "uint32_t", "uint64_t", "char"}
TYPES = INTEGERS | {"float", "double", "bool", "void", "auto"}
QUALIFIERS = {"const", "constexpr", "static", "inline", "__restrict__", "__restrict", "restrict", "volatile", "signed",
               "__forceinline__", "extern"}  # fmt: skip
BINARY: list[dict[str, Callable[[Any, Any], Any]]] = [
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: bool(a == b), "!=": lambda a, b: bool(a != b)},  # the sum of NumPy's booleans is a boolean
    {
        "<": lambda a, b: bool(a < b), ">": lambda a, b: bool(a > b),
        "<=": lambda a, b: bool(a <= b), ">=": lambda a, b: bool(a >= b),
    },
    {"<<": lambda a, b: _whole(a << _bits(b)), ">>": lambda a, b: a >> _bits(b)},
    {"+": lambda a, b: _whole(a + b), "-": lambda a, b: _whole(a - b)},
    {"*": lambda a, b: _whole(a * b), "/": lambda a, b: _divide(a, b), "%": lambda a, b: _remainder(a, b)},
]  # fmt: skip
ARITHMETIC = {sign: rule for level in BINARY for sign, rule in level.items()}
_MATHEMATICS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "fabs": np.abs, "fmin": np.fmin, "fmax": np.fmax,
    "pow": np.power, "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil, "exp2": np.exp2,
    "log2": np.log2, "rsqrt": lambda x: 1 / np.sqrt(x), "erf": lambda x: type(x)(math.erf(x)),
    "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


class Unsupported(Exception):
    """The source uses something that is not known here."""


class EmulatedFault(RuntimeError):
    """A thread read or wrote outside of an array, had no value to go on with, or did not end."""


class Pointer(NamedTuple):
    """A place in an array."""

    name: str
    array: np.ndarray
    offset: int = 0

    def __add__(self, steps: Any) -> Pointer:  # type: ignore[override]
        return self._replace(offset=self.offset + int(steps))

    __radd__ = __add__
    __mul__ = __rmul__ = None  # type: ignore[assignment]  a tuple's would repeat it

    def __sub__(self, steps: Any) -> Pointer:
        return self._replace(offset=self.offset - int(steps))

    def at(self, index: Any, does: str) -> int:
        place = self.offset + int(index)
        if not 0 <= place < self.array.size:
            raise EmulatedFault(f"{does} {self.name}[{place}], which has {self.array.size} elements")
        return place


def _whole(value: Any) -> Any:
    """An integer wrapped around to 64 bits; anything else as it is."""
    return (value + 2**63) % 2**64 - 2**63 if type(value) is int else value


def _bits(value: Any) -> int:
    """How far to shift: 0 to 63."""
    return int(value) & 63


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, (int, bool)) and isinstance(b, (int, bool)):
        if b == 0:
            raise EmulatedFault("divides by zero")
        return int(a) // int(b) if (a < 0) == (b < 0) else -(-int(a) // int(b))
    return a / b


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, np.floating) or isinstance(b, np.floating):
        raise Unsupported("% of floating-point numbers is not C++")
    return a - b * _divide(a, b)


def converter(kind: str, pointer: bool) -> Callable[[Any], Any]:
    """A function that converts a value as an assignment to a variable of this type does.

    Examples
    --------
    >>> converter("int", False)(2.7), converter("float", False)(1) / 3
    (2, np.float32(0.33333334))
    """
    if pointer or kind == "auto":
        return lambda value: value
    if kind == "float":
        return np.float32
    if kind == "double":
        return np.float64
    return bool if kind == "bool" else lambda value: _whole(int(value))


def mathematics(name: str) -> Callable[..., Any]:
    """The function of this name: of floats if it ends in f, else of doubles.

    Raises
    ------
    Unsupported
        There is none.

    Examples
    --------
    >>> mathematics("sqrtf")(np.float32(2))
    np.float32(1.4142135)
    """
    if name in ("min", "max", "abs"):
        return {"min": min, "max": max, "abs": abs}[name]
    plain = name.lstrip("_")
    single = plain[:-1] if plain.endswith("f") and plain != "erf" else ""
    if single in _MATHEMATICS:
        rule = _MATHEMATICS[single]
        return lambda *x: np.float32(rule(*(np.float32(one) for one in x)))
    if plain in _MATHEMATICS and name == plain:
        rule = _MATHEMATICS[plain]
        return lambda *x: rule(*(one if isinstance(one, np.floating) else np.float64(one) for one in x))
    raise Unsupported(f"the function {name!r} is not known")


def known(value: Any, name: str) -> Any:
    """The value of the variable `name`, which must have one.

    Raises
    ------
    EmulatedFault
        Nothing was assigned to it.

    Examples
    --------
    >>> known(3, "i")
    3
    """
    if value is None:
        raise EmulatedFault(f"uses {name} before it has a value")
    return value


def pointer(value: Any) -> Pointer:
    """The value, which must be a pointer.

    Raises
    ------
    Unsupported
        It is not a pointer.

    Examples
    --------
    >>> pointer(Pointer("x", np.zeros(4)) + 3).offset
    3
    """
    if not isinstance(value, Pointer):
        raise Unsupported("an index into something that is not an array")
    return value


def number(token: str) -> Any:
    """The value of a number in the source.

    Examples
    --------
    >>> number("0x1F"), number("10u"), number("0.5f"), number("1e3")
    (31, 10, np.float32(0.5), np.float64(1000.0))
    """
    if token[:2] in ("0x", "0X"):
        return int(token.rstrip("uUlL"), 16)
    digits = token.rstrip("fFuUlL")
    if not set(digits) & set(".eE"):
        return int(digits)
    return np.float32(digits) if token[-1] in "fF" else np.float64(digits)


def tokens(source: str) -> list[str]:
    """The tokens of a source, without spaces and comments.

    Raises
    ------
    Unsupported
        It holds something that is not a token of C++.

    Examples
    --------
    >>> tokens("y[i] += 2; // twice")
    ['y', '[', 'i', ']', '+=', '2', ';']
    """
    found, at = [], 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise Unsupported(f"{source[at : at + 10]!r} is not known")
        if match.lastgroup:
            found.append(match[0])
        at = match.end()
    return found


class Words:
    """The tokens of a source, one after the other."""

    def __init__(self, source: str) -> None:
        self.tokens, self.at = tokens(source), 0

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unsupported(f"expected {expected or 'more'!r} and found {token or 'the end'!r}")
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        found = self.peek() == token
        self.at += found
        return found

    def is_type(self, ahead: int = 0) -> bool:
        return self.peek(ahead) in TYPES or self.peek(ahead) in QUALIFIERS

    def type(self) -> str:
        kind = ""
        while self.is_type():
            token = self.take()
            if token in TYPES:
                kind = kind if token in ("int", "long") and kind in INTEGERS else token
        if not kind:
            raise Unsupported("a declaration without a type")
        return kind

    def stars(self) -> bool:
        found = False
        while self.peek() == "*" or self.peek() in QUALIFIERS:
            found |= self.take() == "*"
        return found
