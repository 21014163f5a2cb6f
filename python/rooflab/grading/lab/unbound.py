"""The names that have to be bound before a cell runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rooflab.grading.lab.names import COMPREHENSIONS

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_before_bound(body: Iterable[ast.AST]) -> frozenset[str]:
    """Names that statements read, where none before them has bound the name. A branch counts as taken. What a function
    of theirs reads is read where they call it.
    """
    found, bound, order = set[str](), set[str](), list[str]()
    functions: dict[str, frozenset[str]] = {}  # what those of the cell read that were not called yet
    around: list[ast.AST] = []  # classes and comprehensions

    def bind(name: str) -> None:
        if name not in bound:
            bound.add(name)
            order.append(name)

    def called(name: str) -> None:
        todo = [name]
        while todo:
            read = functions.pop(todo.pop(), frozenset())
            found.update(read - bound)
            todo += read

    def visit(node: ast.AST) -> None:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                every(*ast.iter_child_nodes(node))
                called(name)
            case ast.Name(id=name, ctx=ast.Store()):
                bind(name)
            case ast.Name(id=name):
                found.update({name} - bound)
            case ast.alias():
                bind((node.asname or node.name).split(".")[0])
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                every(*at_definition(function))
                define(name, function)
            case ast.Assign(targets=targets, value=value):
                every(value, *targets)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                every(annotation, *([value, target] if value else []))
            case ast.AugAssign(target=target, value=value):
                found.update({target.id} - bound if isinstance(target, ast.Name) else ())
                every(value, target)
            case ast.NamedExpr(target=target, value=value):
                every(value, target)
            case ast.For(target=target, iter=values) | ast.AsyncFor(target=target, iter=values):
                every(values, target, *node.body, *node.orelse)
            case ast.ExceptHandler(type=kind, name=name, body=inner):  # which unbinds its name behind it
                every(*([kind] if kind else []))
                own = {name} - bound if name else set[str]()
                for one in own:
                    bind(one)
                every(*inner)
                bound.difference_update(own)
            case ast.comprehension(target=target, iter=values, ifs=ifs):
                every(values, target, *ifs)
            case ast.Lambda():
                every(*at_definition(node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                every(*at_definition(node))
                decorated(node.decorator_list)
                define(name, node)
            case ast.ClassDef(name=name):
                inside(node, *ast.iter_child_nodes(node))
                decorated(node.decorator_list)
                define(name, node)
            case _ if isinstance(node, COMPREHENSIONS):
                elements = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                inside(node, *node.generators, *elements)
                every(*(one.target for one in ast.walk(node) if isinstance(one, ast.NamedExpr)))
            case _:
                every(*ast.iter_child_nodes(node))
                match node:
                    case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                        bind(name)

    def every(*nodes: ast.AST) -> None:
        for one in nodes:
            visit(one)

    def inside(scope: ast.AST, *nodes: ast.AST) -> None:
        """Visit what binds names of its own."""
        outside = len(order)
        around.append(scope)
        every(*nodes)
        around.pop()
        while len(order) > outside:
            bound.discard(order.pop())

    def decorated(decorators: Iterable[ast.AST]) -> None:
        for one in decorators:
            if isinstance(one, ast.Name):
                called(one.id)

    def define(name: str, node: ast.AST) -> None:
        if not around:  # a method is not called by its name alone
            functions[name] = read_inside(node)
        bind(name)

    every(*body)
    return frozenset(found)


def read_inside(function: ast.AST) -> frozenset[str]:
    """Names from outside that a function's body reads; for a class, those that its methods read."""
    nodes = list(ast.walk(function))[1:]
    read = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)}
    again = {one.target.id for one in nodes if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)}
    return frozenset(read | again) - own_names(nodes)


def own_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Names that exist only inside of a function, found from the nodes in it."""
    own, outside = set[str](), set[str]()
    for node in nodes:
        match node:
            case ast.Global(names=names):
                outside.update(names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                own.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.ExceptHandler(name=str(name)):
                own.add(name)
            case ast.alias(name=name, asname=other):
                own.add((other or name).split(".")[0])
    return frozenset(own - outside)


def at_definition(node: ast.AST) -> list[ast.AST]:
    """What of a function is computed where it is defined."""
    assert isinstance(node, (*FUNCTIONS, ast.Lambda))
    given = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
    if isinstance(node, ast.Lambda):
        return [*given]
    notes = [one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg) and one.annotation]
    return [*node.decorator_list, *given, *notes, *([node.returns] if node.returns else [])]
