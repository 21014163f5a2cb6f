"""What a cell needs from the cells before it, and what it changes of theirs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rooflab.grading.lab.names import COMPREHENSIONS, bound_names, made_names, read_names

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
ONLY_SHOW = {"print", "display"}


class Effects(NamedTuple):
    """What code may change: the names of objects that it stores into, of those that it calls a method of, and of the
    functions and classes that it calls.
    """

    stored: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()


class Flow(NamedTuple):
    """A cell that is not Python needs and changes nothing.

    Attributes
    ----------
    at_once, later : frozenset of str
        Names that have to be bound before the cell runs, and those that its functions read when they are called.
    made, imported : frozenset of str
        Names that it binds, and those of them that it imports.
    effects : Effects
        What running it may change.
    functions : dict
        What a call of each of its functions and classes may change.
    """

    at_once: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    effects: Effects = Effects()
    functions: dict[str, Effects] = {}  # noqa: RUF012  never changed


@functools.lru_cache(maxsize=4096)
def flow(source: str) -> Flow:
    """The flow of a cell's names, found without running it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Flow()
    bound, nodes = bound_names(source), list(_of_this_scope(tree.body))
    try:
        at_once = _read_before_bound(tree.body)
    except RecursionError:  # an expression of hundreds of terms
        at_once = read_names(source) - bound
    imports = (one for one in ast.walk(tree) if isinstance(one, ast.alias))
    own = _effects(nodes)
    again = {one.target.id for one in nodes if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)}
    return Flow(
        at_once,
        read_names(source) - bound,
        made_names(source),
        frozenset((one.asname or one.name).split(".")[0] for one in imports),
        own._replace(stored=own.stored | again | (at_once & bound)),
        {one.name: _of_calls(one) for one in nodes if isinstance(one, (*FUNCTIONS, ast.ClassDef))},
    )


def changed(flows: Iterable[Flow], modules: Iterable[str]) -> list[frozenset[str]]:
    """Names of objects that each of the cells may change, itself or through the functions of any of them. To call what
    one of the `modules` holds, or of those that a cell imports, does not change the module.
    """
    flows = list(flows)
    modules = frozenset(modules).union(*(one.imported for one in flows))
    functions: dict[str, list[Effects]] = {}
    for one in flows:
        for name, effects in one.functions.items():
            functions.setdefault(name, []).append(effects)

    def of(one: Flow) -> frozenset[str]:
        found, seen, todo = set[str](), set[str](), [one.effects]
        while todo:
            effects = todo.pop()
            found |= effects.stored | (effects.asked - modules)
            todo += [more for name in effects.called - seen for more in functions.get(name, ())]
            seen |= effects.called
        return frozenset(found)

    return [of(one) for one in flows]


def _of_this_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run with these statements: what is inside functions runs later. Class bodies run at once."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        todo += _at_definition(node) if isinstance(node, (*FUNCTIONS, ast.Lambda)) else ast.iter_child_nodes(node)


def _at_definition(node: ast.AST) -> list[ast.AST]:
    """What of a function is computed where it is defined."""
    assert isinstance(node, (*FUNCTIONS, ast.Lambda))
    given = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
    if isinstance(node, ast.Lambda):
        return [*given]
    notes = [one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg) and one.annotation]
    return [*node.decorator_list, *given, *notes, *([node.returns] if node.returns else [])]


def _effects(nodes: Iterable[ast.AST]) -> Effects:
    stored, asked, called = set[str](), set[str](), set[str]()
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                stored.add(_root(node))
            case ast.Call(func=ast.Name(id=name)):
                called.add(name)
            case ast.Call(func=func):
                asked.add(_root(func))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                for one in node.decorator_list:
                    (called if isinstance(one, ast.Name) else asked).add(_root(one))
            case ast.Expr(value=ast.Call() as call):  # it is called for what it does, maybe to what it is given
                if _root(call) not in ONLY_SHOW:
                    asked |= {_root(one) for one in (*call.args, *(word.value for word in call.keywords))}
    return Effects(frozenset(stored - {""}), frozenset(asked - {""}), frozenset(called))


def _root(node: ast.AST) -> str:
    """The name at the left end of an expression such as ``table.rows[0].add(1)``; empty if there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _of_calls(function: ast.AST) -> Effects:
    """What a call of a function may change outside of it; for a class, what any of its methods may."""
    nodes = list(ast.walk(function))[1:]
    names = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    stores = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    own = (stores | {one.arg for one in nodes if isinstance(one, ast.arg)}) - names
    found = _effects(nodes)
    return Effects((found.stored | (names & stores)) - own, found.asked - own, found.called - own)


def _read_before_bound(body: Iterable[ast.AST]) -> frozenset[str]:
    """Names that statements read, where none before them has bound the name. A branch counts as taken."""
    found, bound = set[str](), set[str]()

    def visit(node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
            case ast.Name(id=name):
                found.update({name} - bound)
            case ast.alias():
                bound.add((node.asname or node.name).split(".")[0])
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
            case ast.comprehension(target=target, iter=values, ifs=ifs):
                every(values, target, *ifs)
            case ast.Lambda():
                every(*_at_definition(node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                every(*_at_definition(node))
                bound.add(name)
            case ast.ClassDef(name=name):
                inside(*ast.iter_child_nodes(node))
                bound.add(name)
            case _ if isinstance(node, COMPREHENSIONS):
                elements = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                inside(*node.generators, *elements)
                bound.update(one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr))
            case _:
                every(*ast.iter_child_nodes(node))
                match node:
                    case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                        bound.add(name)

    def every(*nodes: ast.AST) -> None:
        for one in nodes:
            visit(one)

    def inside(*nodes: ast.AST) -> None:
        """Visit what binds names of its own."""
        outside = set(bound)
        every(*nodes)
        bound.intersection_update(outside)

    every(*body)
    return frozenset(found)
