"""The names that the code of a cell binds and reads."""

from __future__ import annotations

import ast
import functools
import itertools
import symtable
from collections.abc import Iterator

from rooflab.grading.lab.cells import as_read

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
OPAQUE = {"exec", "eval", "globals", "vars", "locals", "get_ipython"}  # a cell that reads one may bind any name


def bound_names(source: str) -> set[str]:
    """Names that a cell binds at top level; none if it is not Python."""
    try:
        tree = ast.parse(as_read(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names: set[str] = set()
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, COMPREHENSIONS):
            names |= {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}
        elif not isinstance(node, ast.Lambda):
            match node:
                case (
                    ast.Name(id=name, ctx=ast.Store())
                    | ast.MatchAs(name=str(name))
                    | ast.MatchStar(name=str(name))
                    | ast.MatchMapping(rest=str(name))
                ):
                    names.add(name)
            todo += ast.iter_child_nodes(node)
    return names


@functools.lru_cache(maxsize=4096)
def made_names(source: str) -> frozenset[str]:
    """Names that a cell binds at top level, and those that its functions and classes bind by `global`."""
    tables = _tables(source)
    inside = {
        one.get_name() for t in tables for one in t.get_symbols() if one.is_declared_global() and one.is_assigned()
    }
    return frozenset(bound_names(source) | inside)


def may_bind_any(source: str) -> bool:
    """Whether no reader can tell which names a cell binds: it imports `*`, or runs text."""
    return "*" in bound_names(source) or bool(read_names(source) & OPAQUE)


def loaded_names(source: str) -> set[str]:
    """Names that a cell reads anywhere."""
    nodes = ast.walk(ast.parse(as_read(source)))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


@functools.lru_cache(maxsize=4096)
def read_names(source: str) -> frozenset[str]:
    """Global names that a cell reads, in functions and classes too; none if it is not Python. To change a name by
    ``+=``, and to delete it, is to read it.
    """
    if not (tables := list(_tables(source))):
        return frozenset()
    again = set(filter(None, map(_read_first, ast.walk(ast.parse(as_read(source))))))
    return frozenset(
        name
        for one in itertools.chain.from_iterable(table.get_symbols() for table in tables)
        if one.is_global() and ((name := one.get_name()) in again or one.is_referenced())
    )


def _read_first(node: ast.AST) -> str:
    """The name that a node of code changes or deletes, so that it has to be bound before; empty for other nodes."""
    match node:
        case ast.AugAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Del()):
            return name
    return ""


def _tables(source: str) -> Iterator[symtable.SymbolTable]:
    """The scopes of a cell; none if it is not Python."""
    try:
        todo = [symtable.symtable(as_read(source), "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while todo:
        yield (table := todo.pop())
        todo += table.get_children()


def local_names(source: str) -> set[str]:
    """Whatever the cell binds at any depth: assignments, arguments, imports, functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add((other or name).split(".")[0])
    return names
