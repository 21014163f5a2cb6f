"""What a cell needs from the cells before it, and what it changes of theirs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rooflab.grading.lab.cells import as_read
from rooflab.grading.lab.names import bound_names, made_names, read_names
from rooflab.grading.lab.unbound import FUNCTIONS, at_definition, own_names, read_before_bound, read_inside


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_NODES = 50_000  # what a larger cell changes is not looked for
# Methods whose result holds what the object holds.
VIEWS = _words("detach get items numpy parameters ravel reshape squeeze state_dict transpose unsqueeze values view")
# Methods that change nothing.
READERS = VIEWS | _words("""
    all allclose any argmax argmin argsort astype bar clone conj copy count cpu cumsum decode dot encode endswith equal
    exp find flatten float format hist imshow index isdigit item join keys log lower matmul max mean median min nonzero
    norm numel plot prod replace round shape show size split sqrt startswith std strip sum tobytes tolist upper var
""")
# Functions that change nothing that they are given, and functions that do.
SHOWS = _words("""
    abs all any bool callable dict dir display enumerate float format getattr hasattr hash help id int isinstance len
    list max min print range repr reversed round set sorted str sum tuple type zip
""")
CHANGERS = _words("""
    copyto delattr fill_diagonal heapify heappop heappush heappushpop heapreplace insort insort_left insort_right next
    place put putmask setattr shuffle
""")
GOES_OVER = {"enumerate", "filter", "iter", "list", "map", "reversed", "sorted", "tuple", "zip"}


class Effects(NamedTuple):
    """What code may change.

    Attributes
    ----------
    stored, asked : frozenset of str
        Names of objects that it stores into, and of those that it calls a method of.
    called : frozenset of str
        Names of functions and classes that it calls; a method's begin with a dot.
    given : frozenset of (str, str)
        Such a name, and the name of an object that is given to it.
    aliases : dict
        By name, the names of the objects that it may stand for too.
    own : frozenset of str
        Names that exist only inside.
    """

    stored: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    given: frozenset[tuple[str, str]] = frozenset()
    aliases: dict[str, set[str]] = {}  # noqa: RUF012  never changed
    own: frozenset[str] = frozenset()


class Function(NamedTuple):
    """What a call may change outside of the function: whether it `changes` what it is given, and the names of those
    that it `passes` this to.
    """

    effects: Effects
    changes: bool
    passes: frozenset[str]


class Flow(NamedTuple):
    """What a cell needs and what it changes: nothing where it is not Python.

    Attributes
    ----------
    at_once, later : frozenset of str
        Names that have to be bound before the cell runs, and those that its functions read when they are called.
    made, imported : frozenset of str
        Names that it binds, and those that it imports.
    modules : frozenset of str
        Names that it binds at top level by an import.
    effects : Effects
        What running it may change.
    functions : dict
        What a call of each of its functions, classes and methods may change.
    """

    at_once: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    effects: Effects = Effects()
    functions: dict[str, Function] = {}  # noqa: RUF012  never changed


@functools.lru_cache(maxsize=4096)
def flow(source: str) -> Flow:
    """The flow of a cell's names, found without running it."""
    try:
        tree = ast.parse(as_read(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Flow()
    bound, nodes = bound_names(source), list(_of_this_scope(tree.body))
    try:
        at_once = read_before_bound(tree.body)
    except RecursionError:  # an expression of hundreds of terms
        at_once = read_names(source) - bound
    every = list(ast.walk(tree))
    inside = frozenset().union(*(read_inside(one) for one in nodes if isinstance(one, (*FUNCTIONS, ast.Lambda))))
    caught = {one.name for one in nodes if isinstance(one, ast.ExceptHandler)} - at_once - inside
    small = len(every) <= MAX_NODES
    own = _effects(nodes) if small else Effects()
    return Flow(
        at_once,
        read_names(source) - bound - caught,
        made_names(source),
        _imported(every),
        _imported(nodes),
        own._replace(stored=own.stored | (at_once & bound)),
        _functions(nodes) if small else {},
    )


def _imported(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset((one.asname or one.name).split(".")[0] for one in nodes if isinstance(one, ast.alias))


def _functions(nodes: Iterable[ast.AST]) -> dict[str, Function]:
    found = dict[str, Function]()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                found[name] = _of_calls(function)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = _of_calls(node)
            case ast.ClassDef(name=name):
                found[name] = _of_calls(node)
                found |= {f".{one.name}": _of_calls(one) for one in node.body if isinstance(one, FUNCTIONS)}
    return found


def changed(flows: Iterable[Flow], modules: Iterable[str]) -> list[frozenset[str]]:
    """Names of objects that each of the cells may change, itself or through the functions of any of them. To call what
    one of the `modules` holds, or of those that a cell imports, does not change the module. A name that a cell binds
    in another way is none.
    """
    flows = list(flows)
    modules = frozenset(modules).union(*(one.modules for one in flows))
    modules -= frozenset().union(*(one.made - one.modules for one in flows))
    functions: dict[str, list[Function]] = {}
    for one in flows:
        for name, function in one.functions.items():
            functions.setdefault(name, []).append(function)
    changing = {name for name, some in functions.items() if any(one.changes for one in some)}
    passed_by: dict[str, set[str]] = {}
    for name, some in functions.items():
        for other in frozenset().union(*(one.passes for one in some)):
            passed_by.setdefault(other, set()).add(name)
    changing = _all_from(changing, passed_by)

    def of(one: Flow) -> frozenset[str]:
        found, seen, todo = set[str](), set[str](), [one.effects]
        while todo:
            effects = todo.pop()
            given = {name for function, name in effects.given if function in changing}
            stored = _all_from(effects.stored, effects.aliases)
            asked = _all_from(effects.asked | given, effects.aliases)
            found |= (effects.stored | ((stored | asked) - modules)) - effects.own
            todo += [more.effects for name in effects.called - seen for more in functions.get(name, ())]
            seen |= effects.called
        return frozenset(found)

    return [of(one) for one in flows]


def _all_from(names: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """The names, and all that they lead to."""
    found = set(names)
    todo = list(found)
    while todo:
        more = set(edges.get(todo.pop(), ())) - found
        found |= more
        todo += more
    return found


def _of_this_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run with these statements: what is inside functions runs later. Class bodies run at once."""
    todo = list(body)
    while todo:
        node = todo.pop()
        yield node
        todo += at_definition(node) if isinstance(node, (*FUNCTIONS, ast.Lambda)) else ast.iter_child_nodes(node)


def _effects(nodes: Iterable[ast.AST]) -> Effects:
    stored, asked, called = set[str](), set[str](), set[str]()
    given, aliases, methods = set[tuple[str, str]](), dict[str, set[str]](), set[str]()
    roots: dict[ast.AST, str] = {}

    def root(node: ast.AST) -> str:
        """The name at the left end of an expression such as ``table.rows[0].add(1)``; empty if there is none."""
        chain = []
        while node not in roots and isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
            chain.append(node)
            node = node.func if isinstance(node, ast.Call) else node.value
            if isinstance(chain[-1], ast.Call) and isinstance(node, ast.Name):  # its result is another object
                roots[node] = ""
        name = roots.get(node, node.id if isinstance(node, ast.Name) else "")
        roots.update(dict.fromkeys(chain, name))
        return name

    def held(*values: ast.AST, over: bool = False) -> set[str]:
        """Names of objects that a value may be, or lie in; those that a loop goes over if it goes `over` the value."""
        found, todo = set[str](), list(values)
        while todo:
            match todo.pop():
                case ast.Call(func=ast.Attribute(attr=name)) as node if name in VIEWS:
                    found.add(root(node))
                case ast.Call(func=ast.Name(id=name), args=args) if over and name in GOES_OVER:
                    todo += args
                case ast.Call():
                    pass
                case ast.IfExp(body=body, orelse=orelse):
                    todo += [body, orelse]
                case ast.NamedExpr(value=value):
                    todo.append(value)
                case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.BoolOp() as node:
                    todo += [*node.values] if isinstance(node, (ast.Dict, ast.BoolOp)) else node.elts
                case node:
                    found.add(root(node))
        return found - {""}

    def alias(targets: Iterable[ast.AST], values: set[str]) -> None:
        todo = list(targets)
        while todo and values:
            match todo.pop():
                case ast.Name(id=name):
                    aliases.setdefault(name, set()).update(values)
                case ast.Tuple(elts=elts) | ast.List(elts=elts):
                    todo += elts
                case ast.Starred(value=value):
                    todo.append(value)

    def call(node: ast.Call) -> None:
        match node.func:
            case ast.Name(id=name):
                called.add(name)
            case ast.Attribute(attr=attr, value=value):
                name = f".{attr}"
                called.add(name)
                if attr in READERS:
                    given.add((name, root(value)))
                else:
                    asked.add(root(value))
            case _:
                name = ""
                asked.add(root(node.func))
        objects = held(*node.args, *(word.value for word in node.keywords))
        given.update((name, one) for one in objects)
        if name.lstrip(".") in CHANGERS or (name.endswith("_") and not name.endswith("__")):
            asked.update(objects)
        stored.update(held(*(word.value for word in node.keywords if word.arg == "out")))

    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                stored.add(root(node))
            case ast.Call():
                call(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                called |= {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
                asked |= {root(one) for one in node.decorator_list if not isinstance(one, ast.Name)}
            # It is called for what it does, maybe to what it is given.
            case ast.Expr(value=ast.Call(func=func) as value):
                name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
                if name not in SHOWS | READERS and not name.startswith("assert"):
                    asked |= held(*value.args, *(word.value for word in value.keywords))
            case ast.AugAssign(target=ast.Name(id=name)):
                stored.add(name)
            case ast.Assign(targets=targets, value=value):
                alias(targets, held(value))
                if isinstance(value, ast.Attribute):
                    methods |= {one.id for one in targets if isinstance(one, ast.Name)}
            case ast.AnnAssign(target=target, value=ast.AST() as value) | ast.NamedExpr(target=target, value=value):
                alias([target], held(value))
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                alias([node.target], held(node.iter, over=True))
    asked |= called & methods
    return Effects(frozenset(stored - {""}), frozenset(asked - {""}), frozenset(called), frozenset(given), aliases)


def _of_calls(function: ast.AST) -> Function:
    """What a call of a function may change; for a class, what any of its methods may. A class that changes only its
    own object changes nothing that it is given.
    """
    nodes = list(ast.walk(function))[1:]
    names = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    stores = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    arguments = {one.arg for one in nodes if isinstance(one, ast.arg)}
    own = own_names(nodes)
    if isinstance(function, ast.ClassDef):
        arguments -= {one.args.args[0].arg for one in function.body if isinstance(one, FUNCTIONS) and one.args.args}
    found = _effects(nodes)
    stands_for: dict[str, set[str]] = {}
    for name, others in found.aliases.items():
        for other in others:
            stands_for.setdefault(other, set()).add(name)
    arguments = _all_from(arguments, stands_for)
    return Function(
        found._replace(stored=found.stored | (names & stores), called=found.called - own, own=own),
        bool((found.stored | found.asked) & arguments),
        frozenset(callee for callee, name in found.given if name in arguments),
    )
