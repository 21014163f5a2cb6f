"""Expressions of the emulator: each becomes a closure over the variables of a thread."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from rooflab.grading.emulator.values import (
    ARITHMETIC,
    BINARY,
    TYPES,
    EmulatedFault,
    Unsupported,
    Words,
    converter,
    known,
    mathematics,
    number,
    pointer,
)

__all__ = ["PLACES", "Expressions", "Function", "Place"]

MOST_STEPS = 3_000_000  # threads, statements, calls and loop iterations, of all threads together
PLACES = ("threadIdx", "blockIdx", "blockDim", "gridDim")


class Place(NamedTuple):
    """An expression: how to get its value and, if it can be assigned to, how to set it."""

    get: Callable[[dict], Any]
    put: Callable[[dict, Any], None] | None = None


class Function(NamedTuple):
    is_kernel: bool
    parameters: list[tuple[str, Callable[[Any], Any]]]
    body: Callable[[dict], Any]


class Expressions(Words):
    """Parses expressions, and knows the names that they may use."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.steps, self.numbers = 0, itertools.count()
        self.scopes: list[dict[str, tuple[str, Callable[[Any], Any]]]] = [{}]
        self.functions: dict[str, Function] = {}
        self.constants: dict[str, Any] = {}

    def declare(self, name: str, convert: Callable[[Any], Any]) -> str:
        slot = f"{name}#{next(self.numbers)}"
        self.scopes[-1][name] = (slot, convert)
        return slot

    def count(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise EmulatedFault("does not end, or the threads have too much to do")

    def expression(self) -> Place:
        found = self.assignment()
        while self.skip(","):
            before, after = found.get, self.assignment().get
            found = Place(lambda env, a=before, b=after: (a(env), b(env))[1])
        return found

    def assignment(self) -> Place:
        target = self.ternary()
        sign = self.peek()
        if sign != "=" and not (len(sign) > 1 and sign[-1] == "=" and sign[:-1] in ARITHMETIC):
            return target
        self.take()
        if sign in ("==", "!=", "<=", ">="):
            raise Unsupported(f"{sign!r} in an odd place")
        value, put = self.assignment().get, target.put
        if put is None:
            raise Unsupported("an assignment to something that is not a variable")
        rule, get = ARITHMETIC.get(sign[:-1]), target.get

        def assign(env: dict) -> Any:
            new = rule(get(env), value(env)) if rule else value(env)
            put(env, new)
            return new

        return Place(assign)

    def ternary(self) -> Place:
        condition = self.either()
        if not self.skip("?"):
            return condition
        yes = self.assignment().get
        self.take(":")
        no, test = self.assignment().get, condition.get
        return Place(lambda env: yes(env) if test(env) else no(env))

    def either(self) -> Place:
        found = self.both()
        while self.skip("||"):
            left, right = found.get, self.both().get
            found = Place(lambda env, a=left, b=right: bool(a(env)) or bool(b(env)))
        return found

    def both(self) -> Place:
        found = self.binary(0)
        while self.skip("&&"):
            left, right = found.get, self.binary(0).get
            found = Place(lambda env, a=left, b=right: bool(a(env)) and bool(b(env)))
        return found

    def binary(self, level: int) -> Place:
        if level == len(BINARY):
            return self.unary()
        found = self.binary(level + 1)
        while self.peek() in BINARY[level]:
            rule = BINARY[level][self.take()]
            left, right = found.get, self.binary(level + 1).get
            found = Place(lambda env, rule=rule, a=left, b=right: rule(a(env), b(env)))
        return found

    def unary(self) -> Place:
        if self.peek() == "(" and self.is_type(1):
            self.take()
            convert = converter(self.type(), self.stars())
            self.take(")")
            value = self.unary().get
            return Place(lambda env: convert(value(env)))
        sign = self.peek()
        if sign in ("-", "+", "!"):
            self.take()
            value = self.unary().get
            rules = {"-": lambda x: -x, "+": lambda x: x, "!": lambda x: not x}
            return Place(lambda env: rules[sign](value(env)))
        if sign in ("++", "--"):
            self.take()
            return self.stepped(self.unary(), sign, new=True)
        if self.skip("*"):
            return self.element(self.unary().get, lambda env: 0)
        if sign in ("~", "&"):
            raise Unsupported(f"{sign!r} before a value is not known")
        return self.postfix(self.primary())

    def stepped(self, target: Place, sign: str, new: bool) -> Place:
        get, put, step = target.get, target.put, 1 if sign == "++" else -1
        if put is None:
            raise Unsupported(f"{sign!r} of something that is not a variable")

        def run(env: dict) -> Any:
            before = get(env)
            put(env, before + step)
            return before + step if new else before

        return Place(run)

    def element(self, base: Callable[[dict], Any], index: Callable[[dict], Any]) -> Place:
        def get(env: dict) -> Any:
            where = pointer(base(env))
            value = where.array[where.at(index(env), "reads")]
            return int(value) if value.dtype.kind in "biu" else value

        def put(env: dict, value: Any) -> None:
            where = pointer(base(env))
            where.array[where.at(index(env), "writes")] = value

        return Place(get, put)

    def postfix(self, found: Place) -> Place:
        while True:
            if self.skip("["):
                found = self.element(found.get, self.expression().get)
                self.take("]")
            elif self.peek() in ("++", "--"):
                found = self.stepped(found, self.take(), new=False)
            else:
                return found

    def primary(self) -> Place:
        if self.skip("("):
            found = self.expression()
            self.take(")")
            return found
        token = self.take()
        if token[0].isdigit() or token[0] == ".":
            value = number(token)
            return Place(lambda env: value)
        if token in PLACES:
            self.take(".")
            axis = "xyz".find(self.take())
            if axis < 0:
                raise Unsupported(f"{token} has only x, y and z")
            return Place(lambda env: env[""][token][axis])
        if token in ("true", "false"):
            return Place(lambda env: token == "true")
        if self.peek() == "(" or (token == "static_cast" and self.peek() == "<"):
            return self.call(token)
        for scope in reversed(self.scopes):
            if token in scope:
                return self.variable(token, *scope[token])
        raise Unsupported(f"{token!r} is not known")

    def variable(self, name: str, slot: str, convert: Callable[[Any], Any]) -> Place:
        return Place(lambda env: known(env[slot], name), lambda env, value: env.update({slot: convert(value)}))

    def call(self, name: str) -> Place:
        if name == "static_cast":
            self.take("<")
            convert: Callable[..., Any] = converter(self.type(), self.stars())
            self.take(">")
        self.take("(")
        given = []
        while not self.skip(")"):
            given.append(self.assignment().get)
            self.skip(",")
        if name in TYPES:
            convert = converter(name, False)
        if name in self.functions:
            function = self.functions[name]
            if len(given) != len(function.parameters):
                raise Unsupported(f"{name} takes {len(function.parameters)} arguments")

            def run(env: dict) -> Any:
                self.count()
                pairs = zip(function.parameters, given, strict=True)
                own = {slot: to(value(env)) for (slot, to), value in pairs}
                leaves = function.body({**self.constants, **own, "": env[""]})
                return leaves[1] if leaves else None

            return Place(run)
        if name not in TYPES and name != "static_cast":
            convert = mathematics(name)
        return Place(lambda env: convert(*(value(env) for value in given)))
