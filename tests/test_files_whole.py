"""Whatever the package writes for its users is written beside and then renamed, so that no file is ever half there."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "rooflab"
WRITERS = {"write_text", "write_bytes", "savefig", "touch", "copy", "copy2", "copyfile", "copytree", "move"}

# Writers without `files.replacing`, by file and function, and why each of them may do so.
TEMPORARY = "a folder that is removed again"
INSIDE = "a folder that its caller replaces as a whole"
KERNEL = "a file of the system's kernel, which has no half"
NOTHING = "os.devnull"
WITHOUT = {
    ("cli/__init__.py", "_without_a_place_to_print"): NOTHING,
    ("cli/doctor/__init__.py", "_write"): "runs before rooflab is installed, and renames by itself",
    ("cli/doctor/system.py", "runs_programs"): TEMPORARY,
    ("cli/reference/build.py", "build"): TEMPORARY,
    ("cuda/simt/toolchain.py", "_build"): TEMPORARY,
    ("files.py", "_locked"): "a lock, which has no content",
    ("grading/classroom/archives.py", "_write"): TEMPORARY,
    ("grading/classroom/archives.py", "unpacked_from"): TEMPORARY,
    ("grading/classroom/batch.py", "_graded"): TEMPORARY,
    ("grading/jail/cgroup.py", "__init__"): KERNEL,
    ("grading/jail/cgroup.py", "_prepared"): KERNEL,
    ("grading/jail/cgroup.py", "remove"): KERNEL,
    ("grading/jail/enter.py", "add_user"): KERNEL,
    ("grading/jail/enter.py", "limit"): KERNEL,
    ("grading/jail/link.py", "_copy_font_list"): TEMPORARY,
    ("grading/jail/link.py", "_start"): TEMPORARY,
    ("grading/judge/kernels.py", "main"): NOTHING,
    ("grading/judge/runtime.py", "main"): NOTHING,
    ("grading/judge/worker.py", "main"): NOTHING,
    ("grading/lab/handout.py", "_copy"): INSIDE,
    ("grading/lab/handout.py", "_write_instructions"): INSIDE,
    ("results/report.py", "figure"): "a figure in memory",
}


def root_of(node):
    """The name that an expression begins with: `a` of ``(a / "b").c[0]``."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Call):
            node = node.args[0] if isinstance(node.func, ast.Name) and node.args else node.func
        else:
            return None
    return node.id


def mode_of(call):
    """The mode of a call of ``open``, of a function or of a path."""
    given = call.args[isinstance(call.func, ast.Name) :] if not is_os_open(call) else []
    given += [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return next((one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)), "r")


def is_os_open(call):
    return isinstance(call.func, ast.Attribute) and root_of(call.func) == "os" and call.func.attr == "open"


def target_of(call):
    """The expression that a call writes to, or None if it writes no file."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    is_method = isinstance(call.func, ast.Attribute)
    if name == "open" and not is_os_open(call):
        return (call.func.value if is_method else call.args[0]) if set(mode_of(call)) & set("wax+") else None
    if is_os_open(call):
        flags = ast.dump(call)
        return call.args[0] if "O_WRONLY" in flags or "O_RDWR" in flags else None
    if name not in WRITERS or not is_method:
        return None
    if name in {"write_text", "write_bytes", "touch"}:
        return call.func.value
    if name == "savefig":
        return call.args[0]
    return call.args[1] if root_of(call.func) == "shutil" else None


def without_replacing(source):
    """The functions in a source that write to something else than what ``with replacing(...) as name`` gave them."""
    found = []

    def visit(node, function, names):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function, names = node.name, frozenset()
        if isinstance(node, ast.With):
            for item in node.items:
                name = item.optional_vars
                called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
                if isinstance(name, ast.Name) and getattr(called, "id", None) in {"replacing", "_new"}:
                    names = names | {name.id}
        if isinstance(node, ast.Assign) and root_of(node.value) in names:
            assigned.update(one.id for one in node.targets if isinstance(one, ast.Name))
        if isinstance(node, ast.Call):
            target = target_of(node)
            if target is not None and root_of(target) not in names | assigned:
                found.append(function)
        for child in ast.iter_child_nodes(node):
            visit(child, function, names)

    assigned = set()
    visit(ast.parse(source), "", frozenset())
    return found


def test_every_writer_replaces_or_is_listed_with_its_reason():
    found = {
        (str(path.relative_to(PACKAGE)), function)
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(PACKAGE / "labs" / "notebooks")
        for function in without_replacing(path.read_text(encoding="utf-8"))
    }
    assert found == set(WITHOUT)


@pytest.mark.parametrize(
    "line",
    [
        'open(path, "w")', 'path.open(mode="ab")', "path.write_text(text)", "Path(path).write_bytes(text)",
        "drawn.savefig(path)", "shutil.copy(other, path)", "(path / name).touch()", "os.open(path, os.O_WRONLY)",
        'with replacing(path) as unfinished: path.open("w")', 'open(path, encoding="utf-8", mode="x")',
        'with tempfile.TemporaryDirectory() as unfinished: Path(unfinished).write_text("")',
    ],
)  # fmt: skip
def test_a_writer_that_does_not_replace_is_found(line):
    assert without_replacing(f"def f():\n    {line}\n") == ["f"]


@pytest.mark.parametrize(
    "line",
    [
        "open(path)", 'path.open("rb")', "tensor.copy()", "rl.copy(a, b)", "os.open(path, os.O_RDONLY)",
        'with replacing(path) as unfinished: unfinished.write_text("")',
        'with replacing(path) as unfinished, open(unfinished, "w") as file: file.write("")',
        'with _new(path) as folder: (folder / "a").write_text("")',
    ],
)  # fmt: skip
def test_a_reader_or_a_writer_that_replaces_is_not(line):
    assert without_replacing(f"def f():\n    {line}\n") == []
