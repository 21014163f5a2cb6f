"""Python's imports go in no circle, and nothing below imports the commands, the grading or the labs."""

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "rooflab"


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Which of `sources`, module name -> text, each of them imports. Packages are those that hold others."""
    packages = {name.rpartition(".")[0] for name in sources}

    def targets(name: str) -> Iterator[str]:
        tree = ast.parse(sources[name])
        for node in ast.walk(tree):
            # The package itself only names for type checkers what it loads at first use.
            if "." not in name and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                # One dot is the package itself, each further one is a package up.
                up = node.level - (name in packages)
                base = name.rsplit(".", up)[0] if node.level else ""
                base = ".".join(part for part in (base, node.module) if part)
                yield from (f"{base}.{alias.name}" if base in packages else base for alias in node.names)

    graph = {}
    for name in sources:
        found = set()
        for target in targets(name):
            while target and target not in sources and not target.endswith("._core"):
                target = target.rpartition(".")[0]
            while target in sources:
                found.add(target)
                # Importing a.b runs a first, unless the importer is part of a.
                target = target.rpartition(".")[0]
                if f"{name}.".startswith(f"{target}."):
                    break
        graph[name] = found - {name}
    return graph


def subjects(graph: dict[str, set[str]], package: str = "rooflab") -> dict[str, set[str]]:
    """The same graph for the packages and modules right below `package`. All of them may use the package itself."""

    def subject(name: str) -> str:
        return ".".join(name.split(".")[: package.count(".") + 2])

    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        if name.startswith(package + "."):
            inside = {subject(other) for other in others if other.startswith(package + ".")}
            found.setdefault(subject(name), set()).update(inside - {subject(name)})
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """A circle in the graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@functools.cache
def package_graph():
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    return import_graph(
        {name.removesuffix(".__init__"): path.read_text(encoding="utf-8") for path, name in names.items()}
    )


def test_nothing_below_imports_labs_grading_or_commands():
    above = {f"rooflab.{name}" for name in ("cli", "grading", "labs")}
    found = {name: others & above for name, others in subjects(package_graph()).items() if name not in above}
    assert {name: others for name, others in found.items() if others} == {"rooflab.__main__": {"rooflab.cli"}}


def test_no_import_goes_in_a_circle():
    graph = package_graph()
    assert {"rooflab.units", "rooflab.machine.cache", "rooflab.roofline"} <= graph.keys()
    assert circle(graph) == [] and circle(subjects(graph)) == []


def test_the_rooms_of_grading_use_only_those_above_them():
    text = (PACKAGE / "grading" / "__init__.py").read_text(encoding="utf-8")
    order = [f"rooflab.grading.{room}" for room in re.findall(r"^    (\w+)/", text, re.MULTILINE)]
    rooms = subjects(package_graph(), "rooflab.grading")
    assert set(order) == set(rooms)
    assert {room: others for room, others in rooms.items() if others & set(order[order.index(room) :])} == {}


ROOM = {"rooflab": "from .a import x", "rooflab.a": "", "rooflab.a.x": "", "rooflab.a.y": "", "rooflab.b": ""}


@pytest.mark.parametrize(
    "planted",
    [
        {"rooflab.a.x": "from .y import f", "rooflab.a.y": "from . import x"},
        {"rooflab.a.x": "from .y import f", "rooflab.a.y": "def f():\n    import rooflab.a.x"},
        {"rooflab.a.x": "from ..b import f", "rooflab.b": "from rooflab.a.x import g"},
        {"rooflab.a": "from ..b import f", "rooflab.b": "from .a.x import g"},  # a.x runs a first
        {"rooflab.a.x": "import rooflab as rl"},
    ],
    ids=["in a package", "in a function", "between packages", "through a package", "through the root"],
)
def test_a_circle_of_modules_is_noticed(planted):
    assert circle(import_graph(ROOM)) == []
    assert circle(import_graph(ROOM | planted))


def test_a_circle_of_packages_is_noticed():
    planted = {"rooflab.a.x": "from .. import b", "rooflab.b": "from .c import f", "rooflab.c": "from .a import y"}
    graph = import_graph(ROOM | planted)
    assert circle(graph) == [] and circle(subjects(graph))


def test_what_only_type_checkers_import_counts_too():
    seen = {"rooflab.a.x": "from . import y", "rooflab.a.y": "if TYPE_CHECKING:\n    from .x import X"}
    assert circle(import_graph(ROOM | seen))
