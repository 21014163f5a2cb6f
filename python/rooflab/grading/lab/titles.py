"""The first line of a test cell, which is all that a student sees of it until it is unfolded: what it checks.

    # @title Test of 1.3, backward (2 points): softmax, softmax_backward

Colab shows the text behind ``@title`` and hides the code. JupyterLab shows the first line of a folded cell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

_LINE = re.compile(r"# @title Test of (?P<test>b?\d[\w.]*(?:, [\w ]+)?) \(\d+ (?:bonus )?points?\)(?:: .*)?")


def line(test: str, points: str, checked: Sequence[str]) -> str:
    """The first line of the cell of a test, which checks these names.

    Examples
    --------
    >>> line("1.3, backward", "2 points", ["softmax"])
    '# @title Test of 1.3, backward (2 points): softmax'
    """
    return f"# @title Test of {test} ({points})" + (f": {', '.join(checked)}" if checked else "")


def test_of(source: str) -> str:
    """Which test a cell is, by its first line; empty if it is none.

    Examples
    --------
    >>> test_of("# @title Test of 1.3, backward (2 points): softmax")
    '1.3, backward'
    """
    found = _LINE.fullmatch(source.partition("\n")[0].rstrip())
    return found["test"] if found else ""


def checked(source: str, before: Sequence[str], students: Collection[str]) -> list[str]:
    """The student's names that a test cell reads, in the order of its text. The functions of test cells `before` it are
    looked into as well.
    """
    functions = {one.name: one for text in (*before, source) for one in _functions(text)}
    found: dict[str, None] = {}
    seen: set[str] = set()

    def look(tree: ast.AST) -> None:
        for name in _read(tree):
            if name in students:
                found[name] = None
            elif name in functions and name not in seen:
                seen.add(name)
                look(functions[name])

    look(_tree(source))
    return list(found)


def _functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in _tree(source).body if isinstance(node, ast.FunctionDef)]


def _tree(source: str) -> ast.Module:
    """The code of a cell; nothing if it is not Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _read(tree: ast.AST) -> list[str]:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return [node.id for node in sorted(names, key=lambda node: (node.lineno, node.col_offset))]
