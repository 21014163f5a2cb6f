"""The half of following that finds the value of an expression."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rooflab.grading.follow import allowed, library
from rooflab.grading.follow.allowed import NUMBERS, Matrix, Named, Refused
from rooflab.grading.follow.values import (
    Class,
    DefaultDict,
    Function,
    Instance,
    Iterated,
    Method,
    Partial,
    Return,
    Scope,
)

MAX_STEPS, MAX_DEPTH = 500_000, 30
_PRODUCTS = (ast.Mult, ast.Div, ast.Pow)  # each could stand in for a multiplication
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not},
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
OPERATOR_METHODS: dict[type, str] = {
    ast.Add: "__add__",
    ast.Sub: "__sub__",
    ast.Mult: "__mul__",
    ast.MatMult: "__matmul__",
}
_SIGNS: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


class Expressions:
    """Values of expressions; `follower.Follower` adds statements.

    `products` counts multiplications (and divisions and powers) of two floating-point numbers.
    """

    def __init__(self) -> None:
        self.products, self.left, self.depth, self.line = 0, MAX_STEPS, 0, 0
        self.refused: Refused | None = None  # the first one: what the text does afterwards does not undo it

    def _global(self, name: str) -> Any:
        raise NotImplementedError

    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        raise NotImplementedError

    def _store(self, target: ast.expr, value: Any, scope: Scope) -> None:
        raise NotImplementedError

    def refuse(self, does_what: str) -> Any:
        self.refused = self.refused or Refused(f"Line {self.line} {does_what}.")
        raise self.refused

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            self.refuse(f"is reached after more than {MAX_STEPS:,} steps, which is too many")

    def items(self, value: Any) -> Iterator[Any]:
        """The elements of a value, each a step."""
        if isinstance(value, Iterated):
            value = value.rest
        elif isinstance(value, Instance) and "__iter__" in value.of.names:
            value = self.items(self.call(self._attribute(value, "__iter__"), [], {}))
        elif not isinstance(value, (list, tuple, range, dict, Matrix)):
            self.refuse(f"loops over {allowed.what(value)}, which the test cannot follow")
        for one in value:
            self.spend()
            yield one

    def call(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        self.spend()
        if isinstance(function, Function):
            return self._call_own(function, args, keywords)
        if isinstance(function, Method):
            if isinstance(function.name, Function):
                return self._call_own(function.name, [function.owner, *args], keywords)
            return allowed.call_method(self, function.owner, function.name, args, keywords)
        if isinstance(function, Class):
            return self._made(function, args, keywords)
        if isinstance(function, Instance):
            return self.call(self._attribute(function, "__call__"), args, keywords)
        if isinstance(function, Partial):
            return self.call(function.function, [*function.args, *args], function.keywords | keywords)
        if isinstance(function, Named):
            return library.call(self, function.path, args, keywords)
        return self.refuse(f"calls {allowed.what(function)}, which the test cannot follow")

    def arithmetic(self, kind: type, left: Any, right: Any) -> Any:
        """One operation of two values."""
        if isinstance(left, Instance) and kind in OPERATOR_METHODS:
            return self.call(self._attribute(left, OPERATOR_METHODS[kind]), [right], {})
        self.products += kind in _PRODUCTS and type(left) is type(right) is float
        return allowed.arithmetic(self, kind, left, right)

    def _call_own(self, function: Function, args: list[Any], keywords: dict[str, Any]) -> Any:
        given = function.bound(args, keywords)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"calls functions more than {MAX_DEPTH} deep")
        scope = Scope(function.scope, given)
        try:
            if isinstance(function.node, ast.Lambda):
                return self._value(function.node.body, scope)
            self._block(function.node.body, scope)
        except Return as returned:
            if not function.is_generator:
                return returned.value
        finally:
            self.depth -= 1
        return Iterated(iter(scope.yielded)) if function.is_generator else None

    def _made(self, of: Class, args: list[Any], keywords: dict[str, Any]) -> Instance:
        """An object of a class."""
        made = Instance(of)
        if of.fields is not None:
            given = {name: of.names[name] for name in of.fields if name in of.names}
            made.names = given | dict(zip(of.fields, args, strict=False)) | keywords
            if made.names.keys() != set(of.fields) or len(args) > len(of.fields):
                raise TypeError(f"arguments that do not fit the fields of {of.name}")
        elif "__init__" in of.names or args or keywords:
            self.call(self._attribute(made, "__init__"), args, keywords)
        return made

    def _at(self, owner: Any, index: Any) -> Any:
        if isinstance(owner, (list, tuple, range)) and isinstance(index, (int, slice)):
            self.spend(len(owner) if isinstance(index, slice) else 1)
            return owner[index]
        if isinstance(owner, Matrix):
            return owner.at(index)
        if isinstance(owner, dict):
            if isinstance(owner, DefaultDict) and index not in owner:
                owner[index] = self.call(owner.factory, [], {})
            return owner[index]
        if isinstance(owner, Instance):
            return self.call(self._attribute(owner, "__getitem__"), [index], {})
        return self.refuse(f"takes an element of {allowed.what(owner)}, which the test cannot follow")

    def _truth(self, node: ast.expr, scope: Scope) -> bool:
        return self._holds(self._value(node, scope))

    def _holds(self, value: Any) -> bool:
        if isinstance(value, Matrix):
            self.refuse("uses a whole row or matrix as a condition")
        if value == allowed.TEXT:
            self.refuse("uses a text as a condition, which the test cannot follow")
        return bool(value)

    def _function(self, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> Function:
        arguments, decorators = node.args, [self._value(one, scope) for one in getattr(node, "decorator_list", [])]
        if arguments.kwarg or decorators not in ([], [Named("staticmethod")], [Named("property")]):
            self.refuse("has a function with a decorator or with `**` arguments, which the test cannot follow")
        decorator = decorators[0].path if decorators else ""
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        by_name = {one.arg: self._value(value, scope) for one, value in pairs if value}
        return Function(node, scope, [self._value(one, scope) for one in arguments.defaults], by_name, decorator)

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
            case ast.Dict(keys=keys, values=values):
                if None in keys:
                    self._odd(node)
                return {
                    self._value(key, scope): self._value(one, scope)
                    for key, one in zip(keys, values, strict=True)
                    if key
                }
            case ast.DictComp(key=key, value=one, generators=loops):
                pair = ast.copy_location(ast.Tuple([key, one], ast.Load()), node)
                return dict(self._comprehended(pair, loops, Scope(scope, is_comprehension=True)))
            case ast.Yield(value=one):
                scope.yielded.append(self._value(one, scope) if one else None)
                return None
            case ast.YieldFrom(value=many):
                scope.yielded.extend(self.items(self._value(many, scope)))
                return None
            case ast.ListComp(elt=element, generators=loops) | ast.GeneratorExp(elt=element, generators=loops):
                return list(self._comprehended(element, loops, Scope(scope, is_comprehension=True)))
            case ast.Lambda():
                return self._function(node, scope)
            case ast.NamedExpr(target=target, value=value):
                self._store(target, made := self._value(value, scope), scope.of_function)
                return made
            case ast.JoinedStr():
                return allowed.TEXT
        return self._odd(node)

    def _odd(self, node: ast.expr) -> Any:
        return self.refuse(f"has an expression ({type(node).__name__}) that the test cannot follow")

    def _name(self, name: str, scope: Scope) -> Any:
        if at := scope.around(name):
            return at.names[name]
        return self._global(name)

    def _attribute(self, owner: Any, name: str) -> Any:
        if isinstance(owner, Named):
            return Named(f"{owner.path}.{name}")
        if isinstance(owner, Matrix) and name in allowed.ATTRIBUTES:
            return allowed.ATTRIBUTES[name](owner)
        if isinstance(owner, Class):
            return owner.names[name]
        if isinstance(owner, Instance):
            return self._of_object(owner, name)
        return Method(owner, name)

    def _of_object(self, owner: Instance, name: str) -> Any:
        if name in owner.names:
            return owner.names[name]
        if name not in owner.of.names:
            raise AttributeError(f"{owner.of.name} has no {name}")
        found = owner.of.names[name]
        if not isinstance(found, Function) or found.decorator == "staticmethod":
            return found
        return self.call(found, [owner], {}) if found.decorator else Method(owner, found)

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
                same = isinstance(left, Named) and left == right != allowed.TEXT
                if not isinstance(op, (ast.Is, ast.IsNot)) and not (same and isinstance(op, (ast.Eq, ast.NotEq))):
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
