"""Follows a student's function step by step through its source text, for questions that ask for loops in plain Python.

The text is never run. `Follower` walks over its syntax tree with numbers, lists and matrices of its own, and can do
only what `allowed` lists: a product of whole rows, a library's product or a clever way to reach one does not exist
there. So a right result must come from single multiplications, and these are counted.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rooflab.grading.follow import allowed
from rooflab.grading.follow.allowed import NUMBERS, Matrix, Named, Refused
from rooflab.grading.lab.cells import as_python, definitions, imported

MAX_STEPS, MAX_DEPTH = 500_000, 30
_PRODUCTS = (ast.Mult, ast.Div, ast.Pow)  # each could stand in for a multiplication
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
_SIGNS: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Raised(Exception):
    """The text raised this."""


@dataclass
class Scope:
    """The names of a function or a comprehension, and the scope in which other names are looked up."""

    outer: Scope | None
    names: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """A function of the student's."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: list[Any]


@dataclass(frozen=True)
class Method:
    """A method of a value, not called yet."""

    owner: Any
    name: str


class Follower:
    """Follows functions that `cells`, the sources of cells in their order, define.

    `products` counts multiplications (and divisions and powers) of two floating-point numbers.
    """

    def __init__(self, cells: Sequence[str]) -> None:
        self.products, self.left, self.depth, self.line = 0, MAX_STEPS, 0, 0
        self.known: dict[str, ast.AST | None] = {}
        self.globals = Scope(None)
        for cell in cells:
            self.known |= definitions(as_python(cell))

    def call_named(self, name: str, args: Sequence[Any]) -> Any:
        """What the function `name` returns for these arguments, as numbers in nested lists.

        Raises
        ------
        Refused
            The text does what is not allowed, or it fails; a sentence says what, and in which line.
        """
        try:
            return allowed.plain(self, self.call(self._global(name), list(args), {}))
        except Refused:
            raise
        except RecursionError:
            self.refuse("is nested too deeply")
        except _Raised as error:
            raise Refused(f"{name} raised {error} (line {self.line}).") from None
        except Exception as error:
            raise Refused(f"{name} stopped in line {self.line}: {type(error).__name__}: {error}") from None

    def refuse(self, does_what: str) -> Any:
        raise Refused(f"Line {self.line} {does_what}.")

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            self.refuse(f"is reached after more than {MAX_STEPS:,} steps, which is too many")

    def items(self, value: Any) -> Iterator[Any]:
        """The elements of a value, each a step."""
        if not isinstance(value, (list, tuple, range, Matrix)):
            self.refuse(f"loops over {allowed.what(value)}, which the test cannot follow")
        for one in value:
            self.spend()
            yield one

    def call(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        self.spend()
        if isinstance(function, Function):
            return self._call_own(function, args, keywords)
        if isinstance(function, Method):
            return allowed.call_method(self, function.owner, function.name, args, keywords)
        if isinstance(function, Named):
            return allowed.call(self, function.path, args, keywords)
        return self.refuse(f"calls {allowed.what(function)}, which the test cannot follow")

    def arithmetic(self, kind: type, left: Any, right: Any) -> Any:
        """One operation of two values."""
        self.products += kind in _PRODUCTS and type(left) is type(right) is float
        return allowed.arithmetic(self, kind, left, right)

    def _global(self, name: str) -> Any:
        if name in self.globals.names:
            return self.globals.names[name]
        if name not in self.known:
            if not hasattr(builtins, name):
                raise NameError(f"name {name!r} is not defined")
            return Named(name)
        node, self.known[name] = self.known[name], None  # so that a definition that needs itself ends here
        if node is None:
            self.refuse(f"uses {name}, which is not made by a plain `def` or `=`, so the test cannot follow it")
        if isinstance(node, ast.stmt):
            self._execute(node, self.globals)
        else:
            assert isinstance(node, ast.expr)
            self.globals.names[name] = self._value(node, self.globals)
        return self.globals.names[name]

    def _call_own(self, function: Function, args: list[Any], keywords: dict[str, Any]) -> Any:
        arguments = function.node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        given = dict(zip(names[len(names) - len(function.defaults) :], function.defaults, strict=True))
        given |= dict(zip(names, args, strict=False)) | keywords
        if len(args) > len(names) or given.keys() != set(names):
            raise TypeError("a call whose arguments do not fit the function")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"calls functions more than {MAX_DEPTH} deep")
        scope = Scope(function.scope, given)
        try:
            if isinstance(function.node, ast.Lambda):
                return self._value(function.node.body, scope)
            self._block(function.node.body, scope)
        except _Return as returned:
            return returned.value
        finally:
            self.depth -= 1
        return None

    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for node in body:
            self._execute(node, scope)

    def _execute(self, node: ast.stmt, scope: Scope) -> None:
        self.spend()
        self.line = node.lineno
        match node:
            case ast.FunctionDef():
                scope.names[node.name] = self._function(node, scope)
            case ast.Return(value=value):
                raise _Return(self._value(value, scope) if value else None)
            case ast.Assign(targets=targets, value=value):
                made = self._value(value, scope)
                for target in targets:
                    self._store(target, made, scope)
            case ast.AnnAssign(target=target, value=value):
                if value:
                    self._store(target, self._value(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                self._change(target, type(op), self._value(value, scope), scope)
            case ast.For(target=target, iter=many, body=body, orelse=orelse):
                self._loop(((target, one) for one in self.items(self._value(many, scope))), body, orelse, scope)
            case ast.While(test=test, body=body, orelse=orelse):
                self._loop(iter(lambda: self._truth(test, scope) or None, None), body, orelse, scope)
            case ast.If(test=test, body=body, orelse=orelse):
                self._block(body if self._truth(test, scope) else orelse, scope)
            case ast.Expr(value=value):
                self._value(value, scope)
            case ast.Assert(test=test):
                if not self._truth(test, scope):
                    raise _Raised("AssertionError")
            case ast.Raise(exc=ast.expr() as error):
                raise _Raised(allowed.what(self._value(error, scope)))
            case ast.Import() | ast.ImportFrom():
                scope.names |= {name: Named(path) for name, path in imported(node).items()}
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Pass():
                pass
            case _:
                self.refuse(f"has a statement ({type(node).__name__}) that the test cannot follow: write plain loops")

    def _loop(self, rounds: Iterator, body: list[ast.stmt], orelse: list[ast.stmt], scope: Scope) -> None:
        for one in rounds:
            if isinstance(one, tuple):
                target, value = one
                self._store(target, value, scope)
            try:
                self._block(body, scope)
            except _Continue:
                continue
            except _Break:
                return
        self._block(orelse, scope)

    def _store(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = list(self.items(value))
                if len(values) != len(targets):
                    raise ValueError(f"{len(targets)} names for {len(values)} values")
                for one, part in zip(targets, values, strict=True):
                    self._store(one, part, scope)
            case ast.Subscript(value=owner, slice=index):
                self._put(self._value(owner, scope), self._value(index, scope), value)
            case _:
                self.refuse("assigns in a way that the test cannot follow")

    def _put(self, owner: Any, index: Any, value: Any) -> None:
        if isinstance(owner, Matrix):
            owner.put(index, allowed.plain(self, value))
        elif isinstance(owner, list) and isinstance(index, int):
            owner[index] = value
        else:
            self.refuse(f"assigns into {allowed.what(owner)}, which the test cannot follow")

    def _change(self, target: ast.expr, kind: type, value: Any, scope: Scope) -> None:
        """`target += value` and its like."""
        if isinstance(target, ast.Subscript):
            owner, index = self._value(target.value, scope), self._value(target.slice, scope)
            return self._put(owner, index, self.arithmetic(kind, self._at(owner, index), value))
        before = self._value(target, scope)
        if isinstance(before, list) and kind is ast.Add:
            return before.extend(list(self.items(value)))
        return self._store(target, self.arithmetic(kind, before, value), scope)

    def _at(self, owner: Any, index: Any) -> Any:
        if isinstance(owner, (list, tuple, range)) and isinstance(index, (int, slice)):
            self.spend(len(owner) if isinstance(index, slice) else 1)
            return owner[index]
        if isinstance(owner, Matrix):
            return owner.at(index)
        return self.refuse(f"takes an element of {allowed.what(owner)}, which the test cannot follow")

    def _truth(self, node: ast.expr, scope: Scope) -> bool:
        return self._holds(self._value(node, scope))

    def _holds(self, value: Any) -> bool:
        if isinstance(value, Matrix):
            self.refuse("uses a whole row or matrix as a condition")
        return bool(value)

    def _function(self, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> Function:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or getattr(node, "decorator_list", None):
            self.refuse("has a function with a decorator or with `*` arguments, which the test cannot follow")
        return Function(node, scope, [self._value(one, scope) for one in arguments.defaults])

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        self.spend()
        self.line = node.lineno
        match node:
            case ast.Constant(value=value):
                known = isinstance(value, (*NUMBERS, str)) or value is None
                return allowed.number(self, value) if known else self._odd(node)
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(type(op), self._value(left, scope), self._value(right, scope))
            case ast.UnaryOp(op=ast.Not(), operand=one):
                return not self._truth(one, scope)
            case ast.UnaryOp(op=op, operand=one) if type(op) in _SIGNS:
                value = self._value(one, scope)
                return _SIGNS[type(op)](value) if isinstance(value, NUMBERS) else self.arithmetic(ast.Sub, 0, value)
            case ast.BoolOp(op=op, values=values):
                for one in values[:-1]:
                    value = self._value(one, scope)
                    if self._holds(value) is isinstance(op, ast.Or):
                        return value
                return self._value(values[-1], scope)
            case ast.Compare():
                return self._compared(node, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._truth(test, scope) else orelse, scope)
            case ast.Call():
                return self._called(node, scope)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(self._value(owner, scope), name)
            case ast.Subscript(value=owner, slice=index):
                return self._at(self._value(owner, scope), self._value(index, scope))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(self._value(one, scope) if one else None for one in (lower, upper, step)))
            case ast.Tuple(elts=parts):
                return tuple(self._parts(parts, scope))
            case ast.List(elts=parts):
                return self._parts(parts, scope)
            case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
                return list(self._comprehended(element, loops, Scope(scope)))
            case ast.Lambda():
                return self._function(node, scope)
            case ast.NamedExpr(target=target, value=value):
                self._store(target, made := self._value(value, scope), scope)
                return made
            case ast.JoinedStr():
                return "a text"  # it belongs to a message, so its contents do not matter
        return self._odd(node)

    def _odd(self, node: ast.expr) -> Any:
        return self.refuse(f"has an expression ({type(node).__name__}) that the test cannot follow")

    def _name(self, name: str, scope: Scope) -> Any:
        at: Scope | None = scope
        while at is not None:
            if name in at.names:
                return at.names[name]
            at = at.outer
        return self._global(name)

    def _attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Named):
            return Named(f"{owner.path}.{name}")
        if isinstance(owner, Matrix) and name in allowed.ATTRIBUTES:
            return allowed.ATTRIBUTES[name](owner)
        return Method(owner, name)

    def _parts(self, parts: list[ast.expr], scope: Scope) -> list[Any]:
        found: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                found += self.items(self._value(part.value, scope))
            else:
                found.append(self._value(part, scope))
        return found

    def _called(self, node: ast.Call, scope: Scope) -> Any:
        function, args = self._value(node.func, scope), self._parts(node.args, scope)
        if any(one.arg is None for one in node.keywords):
            self.refuse("makes a call with `**`, which the test cannot follow")
        keywords = {str(one.arg): self._value(one.value, scope) for one in node.keywords}
        self.line = node.lineno
        return self.call(function, args, keywords)

    def _compared(self, node: ast.Compare, scope: Scope) -> bool:
        left = self._value(node.left, scope)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._value(right_node, scope)
            if isinstance(left, (Matrix, Named)) or isinstance(right, (Matrix, Named)):
                if not isinstance(op, (ast.Is, ast.IsNot)):
                    self.refuse(
                        f"compares {allowed.what(left)} and {allowed.what(right)}, which the test cannot follow"
                    )
            else:
                self.spend(sum(allowed.size(self, one) for one in (left, right)))
            if not _COMPARISONS[type(op)](left, right):
                return False
            left = right
        return True

    def _comprehended(self, element: ast.expr, loops: list[ast.comprehension], scope: Scope) -> Iterator[Any]:
        if not loops:
            yield self._value(element, scope)
            return
        first, *rest = loops
        for one in self.items(self._value(first.iter, scope)):
            self._store(first.target, one, scope)
            if all(self._truth(test, scope) for test in first.ifs):
                yield from self._comprehended(element, rest, scope)
