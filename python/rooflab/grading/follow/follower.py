"""Interprets a student's function step by step from its source text, for questions that ask for loops in plain Python.

The text is never run. `Follower` walks over its syntax tree with numbers, lists and matrices of its own, and can do
only what `allowed` lists: a product of whole rows, a library's product or a clever way to reach one does not exist
there. So a right result must come from single multiplications, and these are counted.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import Any

from rooflab.grading.follow import allowed
from rooflab.grading.follow.allowed import Matrix, Named, Refused
from rooflab.grading.follow.expressions import OPERATOR_METHODS, Expressions
from rooflab.grading.follow.values import Break, Class, Continue, Instance, Raised, Return, Scope, catches
from rooflab.grading.lab.cells import as_python, definitions, imported

_LIBRARY = """
matmul dot vdot inner einsum tensordot mm mv bmm addmm linear __matmul__"""
_PRODUCTS = frozenset(_LIBRARY.split())


class Follower(Expressions):
    """Follows functions that `cells`, the sources of cells in their order, define."""

    def __init__(self, cells: Sequence[str]) -> None:
        super().__init__()
        self.known: dict[str, ast.AST | None] = {}
        self.globals = Scope(None)
        self.handled: list[Exception] = []  # by the handlers that are running
        for cell in cells:
            self.known |= definitions(as_python(cell))
        self.texts = dict(self.known)

    def call_named(self, name: str, args: Sequence[Any]) -> Any:
        """What the function `name` returns for these arguments, as numbers in nested lists.

        Raises
        ------
        Refused
            The text does what is not allowed, or it fails; a sentence says what, and in which line.
        """
        try:
            value = allowed.plain(self, self.call(self._global(name), list(args), {}))
        except Refused:
            raise
        except RecursionError:
            self.refuse("is nested too deeply")
        except Raised as error:
            unwritten = "is not written yet: it " * (error.name == "NotImplementedError")
            raise Refused(f"{name} {unwritten}raised {error} (line {self.line}).") from None
        except Exception as error:
            raise Refused(f"{name} stopped in line {self.line}: {type(error).__name__}: {error}") from None
        if self.refused:
            raise self.refused
        self._refuse_products(name)
        return value

    def _refuse_products(self, name: str) -> None:
        """Refuse a library's product in the text of `name`, and of all that it names, where these arguments did not
        lead: other sizes may.
        """
        nodes = [one for text in self.texts.values() if text for one in ast.walk(text)]
        own = {one.name for one in nodes if isinstance(one, ast.FunctionDef)}
        own |= {one for one, text in self.texts.items() if isinstance(text, ast.Lambda)}
        waiting, met = [name], {name}
        while waiting:
            text = self.texts[waiting.pop()]
            nodes = list(ast.walk(text)) if text else []
            local = {one.arg for one in nodes if isinstance(one, ast.arg)}
            local |= {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            for node in nodes:
                match node:
                    case ast.Name(id=used):
                        if used in self.texts.keys() - local - met:
                            waiting.append(used)
                            met.add(used)
                    case ast.Attribute(attr=used):
                        pass
                    case ast.BinOp(op=ast.MatMult()):
                        used = "__matmul__"
                    case _:
                        continue
                if used in _PRODUCTS - own - local:
                    self.line = node.lineno
                    self.refuse("has a library's product, which other sizes may lead to: write loops for all sizes")

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

    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for node in body:
            self._execute(node, scope)

    def _execute(self, node: ast.stmt, scope: Scope) -> None:
        self.spend()
        self.line = node.lineno
        match node:
            case ast.FunctionDef():
                scope.store(node.name, self._function(node, scope))
            case ast.ClassDef():
                scope.store(node.name, self._class(node, scope))
            case ast.Return(value=value):
                raise Return(self._value(value, scope) if value else None)
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
                    raise Raised("AssertionError")
            case ast.Raise(exc=ast.expr() as error):
                raised = self._value(error, scope)
                raise raised if isinstance(raised, Exception) else Raised(allowed.what(raised))
            case ast.Raise() if self.handled:
                raise self.handled[-1]
            case ast.Try():
                self._try(node, scope)
            case ast.With(items=contexts, body=body):
                for one in contexts:
                    if self._value(one.context_expr, scope) != allowed.CONTEXT or one.optional_vars:
                        self.refuse("opens a context that the test cannot follow")
                self._block(body, scope)
            case ast.Nonlocal(names=names):
                found = {name: scope.outer and scope.outer.around(name) for name in names}
                scope.elsewhere |= {name: at for name, at in found.items() if at}
            case ast.Global(names=names):
                scope.elsewhere |= dict.fromkeys(names, self.globals)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target, scope)
            case ast.Import() | ast.ImportFrom():
                scope.names |= {name: Named(path) for name, path in imported(node).items()}
            case ast.Break():
                raise Break
            case ast.Continue():
                raise Continue
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
            except Continue:
                continue
            except Break:
                return
        self._block(orelse, scope)

    def _try(self, node: ast.Try, scope: Scope) -> None:
        try:
            self._block(node.body, scope)
        except (Refused, RecursionError, Break, Continue, Return):
            raise
        except Exception as error:
            for handler in node.handlers:
                kinds = self._value(handler.type, scope) if handler.type else Named("BaseException")
                kinds = kinds if isinstance(kinds, tuple) else (kinds,)
                if catches([one.path for one in kinds if isinstance(one, Named)], error):
                    if handler.name:
                        scope.store(handler.name, error)
                    return self._handle(handler.body, error, scope)
            raise
        else:
            self._block(node.orelse, scope)
        finally:
            self._block(node.finalbody, scope)

    def _handle(self, body: list[ast.stmt], error: Exception, scope: Scope) -> None:
        self.handled.append(error)
        try:
            self._block(body, scope)
        finally:
            self.handled.pop()

    def _delete(self, target: ast.expr, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                del scope.names[name]
            case ast.Subscript(value=owner, slice=index):
                many = self._value(owner, scope)
                if not isinstance(many, (list, dict)):
                    self.refuse(f"deletes an element of {allowed.what(many)}, which the test cannot follow")
                del many[self._value(index, scope)]

    def _store(self, target: ast.expr, value: Any, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.store(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = list(self.items(value))
                starred = [place for place, one in enumerate(targets) if isinstance(one, ast.Starred)]
                if starred and len(values) >= len(targets) - 1:
                    first, more = starred[0], len(values) - len(targets) + 1
                    values[first : first + more] = [values[first : first + more]]
                if len(values) != len(targets):
                    raise ValueError(f"{len(targets)} names for {len(values)} values")
                for one, part in zip(targets, values, strict=True):
                    self._store(one, part, scope)
            case ast.Starred(value=part):
                self._store(part, value, scope)
            case ast.Subscript(value=owner, slice=index):
                self._put(self._value(owner, scope), self._value(index, scope), value)
            case ast.Attribute(value=owner, attr=name) if isinstance(one := self._value(owner, scope), Instance):
                one.names[name] = value
            case _:
                self.refuse("assigns in a way that the test cannot follow")

    def _put(self, owner: Any, index: Any, value: Any) -> None:
        if isinstance(owner, Matrix):
            owner.put(index, allowed.plain(self, value))
        elif isinstance(owner, dict) or (isinstance(owner, list) and isinstance(index, int)):
            owner[index] = value
        elif isinstance(owner, Instance):
            self.call(self._attribute(owner, "__setitem__"), [index, value], {})
        else:
            self.refuse(f"assigns into {allowed.what(owner)}, which the test cannot follow")

    def _change(self, target: ast.expr, kind: type, value: Any, scope: Scope) -> None:
        """`target += value` and its like."""
        if isinstance(target, ast.Subscript):
            owner, index = self._value(target.value, scope), self._value(target.slice, scope)
            return self._put(owner, index, self.arithmetic(kind, self._at(owner, index), value))
        before = self._value(target, scope)
        in_place = OPERATOR_METHODS.get(kind, "").replace("__", "__i", 1)
        if isinstance(before, Instance) and in_place in before.of.names:
            return self._store(target, self.call(self._attribute(before, in_place), [value], {}), scope)
        if isinstance(before, list) and kind is ast.Add:
            return before.extend(list(self.items(value)))
        return self._store(target, self.arithmetic(kind, before, value), scope)

    def _class(self, node: ast.ClassDef, scope: Scope) -> Class:
        decorators = [self._value(one, scope) for one in node.decorator_list]
        if node.bases or node.keywords or decorators not in ([], [Named("dataclasses.dataclass")]):
            self.refuse("has a class with a base or a decorator, which the test cannot follow")
        inside = Scope(scope)
        self._block(node.body, inside)
        fields = [
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
        return Class(node.name, inside.names, fields if decorators else None)
