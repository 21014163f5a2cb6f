"""What becomes of notebook code beyond plain Python (magics, shell lines and `await`) when it is graded.

The output of such a line does not matter to a grade, and the programs that it would start may not run. So a magic that
runs Python code still runs it, and any other magic or shell line does nothing.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from typing import Any

RUN_THEIR_CELL = ("time", "capture", "prun")
SPECIAL = re.compile(r"^\s*[%!]|=\s*[%!]|\?\s*$", re.MULTILINE)
MAX_SPECIAL = 100  # IPython reads the whole cell anew for each
FLAGS = {
    "time": "",
    "timeit": r"(\s*-([oqtcv]*[nrp]\s*\d+|[oqtcv]+)\s+)*",
    "prun": r"(\s*-([rq]*[DTls]\s*\S+|[rq]+)\s+)*",
}

# This runs in the student's namespace, so that it gives access to nothing else.
GIVEN = rf"""
def display(*args, **kwargs):
    pass

def get_ipython():
    return _Shell()

class _Shell:
    def run_line_magic(self, name, line, *rest):
        if name in ("sx", "system"):
            return []
        if name in ("time", "prun", "timeit"):
            import re, sys
            flags = re.match({FLAGS!r}[name], line).group()
            line = line[len(flags):]
            there = sys._getframe(1).f_locals
            names = there if there is globals() else globals() | there
            if name == "timeit":
                return self._timed(line, names) if "o" in flags else None
            try:
                code = compile(line, "<string>", "eval")
            except SyntaxError:
                return exec(line, names)
            value = eval(code, names)
            return value if name == "time" else None

    def _timed(self, line, names):
        import timeit, types
        s = timeit.timeit(line, number=1, globals=names)
        one = dict(average=s, best=s, worst=s, stdev=0.0, all_runs=[s], timings=[s], loops=1, repeat=1)
        return types.SimpleNamespace(**one)

    def system(self, command):
        pass

    def getoutput(self, command):
        return []
"""


@functools.lru_cache(maxsize=4096)
def as_python(source: str) -> str:
    """A cell as plain Python that calls the `get_ipython()` of `GIVEN`; one that cannot become Python is unchanged."""
    first, _, rest = source.lstrip().partition("\n")
    if first.startswith("%%"):
        name = first[2:].split(maxsplit=1)[:1]
        if name == ["cuda_kernel"]:
            return _cuda_kernel(first[2:].strip().removeprefix("cuda_kernel"), rest)
        return "\n" + as_python(rest) if name and name[0] in RUN_THEIR_CELL else ""
    try:
        ast.parse(source)
        return source
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        if len(SPECIAL.findall(source)) > MAX_SPECIAL:
            return source
        from IPython.core.inputtransformer2 import TransformerManager
    try:
        return TransformerManager().transform_cell(source)
    except Exception:
        return source


@functools.lru_cache(maxsize=4096)
def as_read(source: str) -> str:
    """What `as_python` made of a cell, with the code that `%time`, `%timeit` and `%prun` run in place of the text that
    they are given. Only readers of names take this form.

    Examples
    --------
    >>> as_read("c = get_ipython().run_line_magic('time', 'f(a)')")
    'c = f(a)'
    """
    if "run_line_magic" not in source:
        return source
    try:
        return ast.unparse(_Timed().visit(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


class _Timed(ast.NodeTransformer):
    """Puts expressions in the place of calls of magics that time them, and statements before the statement that has
    the call. What such statements bind is bound by `%time` and `%prun` at top level alone. Elsewhere they become a
    function that is called. The function has the name of its text, so that equal names are equal functions.
    """

    def __init__(self) -> None:
        self.before: list[ast.stmt] = []
        self.depth = 0  # of functions and classes

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        outside, self.before = self.before, []
        is_scope = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        self.depth += is_scope
        whole = super().visit(node)
        self.depth -= is_scope
        found, self.before = [*self.before, whole], outside
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr="run_line_magic"),
                args=[ast.Constant(value="time" | "timeit" | "prun" as name), ast.Constant(value=str(line)), *_],
            ):
                pass
            case _:
                return self.generic_visit(node)
        code = re.sub(f"^{FLAGS[name]}", "", line)
        try:
            body = ast.parse(code.strip()).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return node
        match body:
            case [ast.Expr(value=value)]:
                return value
        if not body or (name != "timeit" and not self.depth):
            self.before += body
            return ast.Constant(None)
        function = ast.parse(f"def _{code.encode().hex()}(): pass").body[0]
        assert isinstance(function, ast.FunctionDef)
        function.body = body
        self.before.append(function)
        return ast.Call(ast.Name(function.name, ast.Load()), [], [])


def _cuda_kernel(line: str, cell: str) -> str:
    """Python that makes the module that ``%%cuda_kernel`` makes of a cell of CUDA C++."""
    from rooflab.cuda import magic

    try:
        name = magic.name_of(line)
    except ValueError as error:
        return f"\nraise ValueError({str(error)!r})"
    return f"from rooflab.cuda import magic as _magic\n{name} = _magic.compiled({line!r}, {cell!r})"


def definitions(source: str) -> dict[str, ast.AST | None]:
    """What a cell binds its names to, found without running it: a function, a class, an import or an expression for
    each name that is bound at top level, and None for one that is bound in another way. A cell that is not Python binds
    nothing.
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, ast.AST | None] = {}
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
            case ast.Import() | ast.ImportFrom():
                found |= dict.fromkeys(imported(node), node)
            case _:
                stored = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
                named = (n for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
                found |= dict.fromkeys([n.id for n in stored] + [n.name for n in named])
    return found


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import binds, and the path that each stands for.

    Examples
    --------
    >>> imported(ast.parse("import numpy.linalg, math as m").body[0])
    {'numpy': 'numpy', 'm': 'math'}
    """
    if isinstance(node, ast.ImportFrom):
        return {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    tops = ((one, one.name.split(".")[0]) for one in node.names)
    return {one.asname or top: one.name if one.asname else top for one, top in tops}


def run(source: str, label: str, names: dict) -> None:
    """Run a cell in the namespace `names`; a cell that uses `await` is run to its end."""
    code = compile(source, f"<{label}>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        import asyncio  # not at the top, because it takes 40 ms

        asyncio.run(eval(code, names))
    else:
        exec(code, names)
