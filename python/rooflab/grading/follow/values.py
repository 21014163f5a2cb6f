"""Values of an interpreted function beside numbers and arrays: functions, classes, scopes, and what ends a block."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


class Break(Exception):
    """The text left a loop."""


class Continue(Exception):
    """The text went on to the next round of a loop."""


class Return(Exception):
    """The text left a function, with this value."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Raised(Exception):
    """The text raised a builtin exception of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def is_exception(name: str) -> bool:
    """Whether a builtin exception has this name."""
    return issubclass(_class_named(name), BaseException)


def catches(names: Sequence[str], error: Exception) -> bool:
    """Whether ``except names`` catches what the text raised."""
    kind = _class_named(error.name) if isinstance(error, Raised) else type(error)
    return any(issubclass(kind, _class_named(name)) for name in names if is_exception(name))


def _class_named(name: str) -> type:
    found = getattr(builtins, name, None)
    return found if isinstance(found, type) else object


@dataclass
class Scope:
    """The names of a function, class or comprehension, and the scope in which other names are looked up.

    `elsewhere` has the scope of each name that is declared ``nonlocal`` or ``global``, `yielded` what a generator gave.
    In a comprehension, ``:=`` binds a name of the function around it.
    """

    outer: Scope | None
    names: dict[str, Any] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    yielded: list[Any] = field(default_factory=list)
    is_comprehension: bool = False

    @property
    def of_function(self) -> Scope:
        """The innermost scope that is no comprehension's."""
        return self.outer.of_function if self.is_comprehension and self.outer else self

    def around(self, name: str) -> Scope | None:
        """The innermost scope that has this name."""
        at: Scope | None = self
        while at is not None and name not in at.names:
            at = at.outer
        return at

    def store(self, name: str, value: Any) -> None:
        self.elsewhere.get(name, self).names[name] = value


@dataclass(frozen=True)
class Function:
    """A function of the student's, with the values of its defaults, and "staticmethod" or "property" if it is one."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: list[Any]
    keyword_defaults: dict[str, Any]
    decorator: str

    @property
    def is_generator(self) -> bool:
        nodes: list[ast.AST] = [] if isinstance(self.node, ast.Lambda) else list(self.node.body)
        while nodes:
            node = nodes.pop()
            if isinstance(node, (ast.Yield, ast.YieldFrom)):
                return True
            if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
                nodes.extend(ast.iter_child_nodes(node))
        return False

    def bound(self, args: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """The value of each argument.

        Raises
        ------
        TypeError
            The arguments do not fit.
        """
        declared = self.node.args
        places = [one.arg for one in (*declared.posonlyargs, *declared.args)]
        names = {*places, *(one.arg for one in declared.kwonlyargs)}
        given = dict(zip(places[len(places) - len(self.defaults) :], self.defaults, strict=True))
        by_place = dict(zip(places, args, strict=False))
        more = tuple(args[len(places) :])
        given |= self.keyword_defaults | by_place | keywords
        if given.keys() != names or by_place.keys() & keywords.keys() or (more and not declared.vararg):
            raise TypeError("a call whose arguments do not fit the function")
        return given | ({declared.vararg.arg: more} if declared.vararg else {})


@dataclass(frozen=True)
class Class:
    """A class of the student's: what its body defines, and the fields of a dataclass in their order."""

    name: str
    names: dict[str, Any]
    fields: list[str] | None


@dataclass(eq=False)
class Instance:
    """An object of a student's class."""

    of: Class
    names: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method of a value, not called yet: one by its name, or a function of the object's class."""

    owner: Any
    name: str | Function


@dataclass(frozen=True)
class Partial:
    """A function with its first arguments: `functools.partial`."""

    function: Any
    args: list[Any]
    keywords: dict[str, Any]


@dataclass(frozen=True)
class Iterated:
    """An iterator: what it gives is given once."""

    rest: Iterator[Any]


class DefaultDict(dict):
    """A dict that calls `factory` for a key that it lacks."""

    def __init__(self, factory: Any) -> None:
        super().__init__()
        self.factory = factory
