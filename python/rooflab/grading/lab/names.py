"""The names that the code of a cell binds and reads."""

from __future__ import annotations

import ast
import functools
import symtable


def bound_names(source: str) -> set[str]:
    """Names that a cell binds at top level; none if it is not Python."""
    try:
        tree = ast.parse(source)
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
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            if not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                todo += ast.iter_child_nodes(node)
    return names


def loaded_names(source: str) -> set[str]:
    """Names that a cell reads anywhere."""
    return {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


@functools.lru_cache(maxsize=1024)
def read_names(source: str) -> frozenset[str]:
    """Global names that a cell reads, in functions and classes too; none if it is not Python."""
    try:
        todo = [symtable.symtable(source, "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    names: set[str] = set()
    while todo:
        table = todo.pop()
        todo += table.get_children()
        names |= {one.get_name() for one in table.get_symbols() if one.is_referenced() and one.is_global()}
    return frozenset(names)


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
