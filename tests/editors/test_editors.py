"""Type checkers find no error in a user's script, and what they complete is what there is."""

import builtins
import inspect
import json
import os
import pkgutil
import pydoc
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import rooflab as rl

HERE = Path(__file__).parent
PYTHON = Path(rl.__file__).parents[1]


WRONG = """import rooflab as rl
rl.ones(2).shappe
rl.memory.recrod()
rl.softmx
rl.nn.Linera
sum(rl.ones(2).numpy().shapee)
"""


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_users_script_has_no_error_and_a_wrong_one_has(checker, tmp_path):
    pytest.importorskip(checker)
    (tmp_path / "script.py").write_text((HERE / "script.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(PYTHON)]}), encoding="utf-8")
    python = {"mypy": f"--python-executable={sys.executable}", "pyright": f"--pythonpath={sys.executable}"}[checker]
    ran = subprocess.run(
        [sys.executable, "-m", checker, python, "script.py", "wrong.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PYTHON), "HOME": str(tmp_path), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )
    errors = [line.strip() for line in ran.stdout.splitlines() if "error:" in line or "- error" in line]
    assert [line for line in errors if "wrong.py" not in line] == []
    lines = {int(line.partition("wrong.py:")[2].split(":")[0]) for line in errors}
    assert lines == {2, 3, 4, 5, 6}, ran.stdout + ran.stderr


def test_the_users_script_runs(tmp_path):
    sys.path.insert(0, str(HERE))
    try:
        import script
    finally:
        sys.path.remove(str(HERE))
    script.main(tmp_path)


def test_a_star_import_leaves_pythons_functions_alone():
    got: dict = {}
    exec("from rooflab import *", got)
    assert {name for name in got if hasattr(builtins, name)} - {"__builtins__", "__name__", "__doc__"} == set()
    assert got["tensor"] is rl.tensor and got["nn"] is rl.nn


def test_every_public_name_is_in_all_or_is_named_like_one_of_pythons():
    inner = {"add_library_directory", "set_cpu_blas", "take_stacks"}
    native = {name for name in vars(rl._core) if not name.startswith("_")} - inner
    packages = {info.name for info in pkgutil.iter_modules(rl.__path__) if info.ispkg and info.name[0] != "_"}
    assert native | packages - {"cli", "compiler", "composed", "results"} <= set(dir(rl))
    assert len(set(rl.__all__)) == len(rl.__all__) and set(rl.__all__) <= set(dir(rl))
    assert {name for name in dir(rl) if name not in rl.__all__} == {n for n in dir(rl) if hasattr(builtins, n)}
    assert all(hasattr(rl, name) for name in dir(rl))


def test_pythons_types_name_dtypes_too():
    assert (rl.float, rl.int, rl.bool) == (rl.float32, rl.int32, rl.bool_)
    assert (rl.double, rl.half, rl.long) == (rl.float64, rl.float16, rl.int64)


def public_functions(owner, seen):
    """Functions and properties that are reached from a public name, each with that name; overloads are left out."""
    own = [name for name in vars(owner) if name[0] != "_"] if inspect.isclass(owner) else []
    for name in getattr(owner, "__all__", own):
        value = inspect.getattr_static(owner, name, None)
        value = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
        if not str(home).startswith("rooflab") or id(value) in seen:
            continue
        seen.add(id(value))
        if inspect.isfunction(value):
            if not typing.get_overloads(value) and value.__name__ != "<lambda>":
                yield f"{owner.__name__}.{name}", value
        elif inspect.isclass(value) or inspect.ismodule(value):
            yield from public_functions(value, seen)


def test_every_public_function_says_what_it_returns():
    functions = dict(public_functions(rl, set()))
    assert len(functions) > 300
    assert [name for name, function in functions.items() if "return" not in function.__annotations__] == []


def test_packages_are_not_hidden_by_native_modules():
    assert rl.memory.record.__module__ == "rooflab.memory.timeline" and rl.cuda.compile.__module__.startswith(
        "rooflab.cuda"
    )


@pytest.mark.parametrize(
    "function", [rl.matmul, rl.max, rl.memory.allocated, rl.Graph.is_capturing], ids=lambda f: f.__name__
)
def test_help_calls_no_function_a_method_of_something_else(function):
    text = pydoc.plain(pydoc.render_doc(function))
    assert "method of" not in text and "pybind11" not in text and "rooflab._core.Tensor" not in text
    assert text.splitlines()[2].startswith(f"{function.__name__}(")


def test_help_on_the_package_begins_with_what_it_is():
    text = pydoc.plain(pydoc.render_doc(rl))
    assert "pybind11_detail" not in text
    assert text.index("counted kernels") < text.index("rl.latency") < text.index("PACKAGE CONTENTS")
