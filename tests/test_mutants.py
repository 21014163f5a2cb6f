"""The list of faults is sound: each applies to the sources as they are, and names tests that exist."""

import os
import subprocess
import sys
from pathlib import Path

import mutants
import pytest

import rooflab

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("fault", mutants.faults(), ids=lambda fault: f"{fault.file}: {fault.old[:40]}")
def test_each_fault_applies(fault):
    fault.applied(ROOT)
    tests = [name for name in fault.tests if name.startswith("tests")]
    assert tests and all((ROOT / name).exists() for name in tests)


def test_faults_are_many_and_differ():
    found = mutants.faults()
    assert len(found) >= 100 and len({(fault.file, fault.old, fault.new) for fault in found}) == len(found)


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        (["failed"], ["does not pass without a fault: tests/test_x.py"]),
        (["passed", "failed"], []),
        (["passed", "passed"], ["survived: x.py: '1' -> '2' | tests/test_x.py"]),
    ],
)
def test_tests_must_pass_without_the_fault_and_fail_with_it(monkeypatch, outcomes, says):
    monkeypatch.setattr(mutants, "copy_tree", lambda tree: (tree / "x.py").write_text("1", encoding="utf-8"))
    monkeypatch.setattr(mutants, "outcome", lambda *_, **__: outcomes.pop(0))
    assert mutants.survivors([mutants.Fault("x.py", ("tests/test_x.py",), "1", "2")], None, 1) == says


def test_there_is_no_control_where_the_suite_has_passed(monkeypatch):
    monkeypatch.setattr(mutants, "copy_tree", lambda tree: (tree / "x.py").write_text("1", encoding="utf-8"))
    outcomes = ["failed"]
    monkeypatch.setattr(mutants, "outcome", lambda *_, **__: outcomes.pop(0))
    assert mutants.survivors([mutants.Fault("x.py", ("tests/test_x.py",), "1", "2")], None, 1, passed=True) == []


@pytest.mark.slow
def test_what_pytest_says_of_tests_that_fail_without_a_fault_is_shown(tmp_path, capsys):
    options = "def pytest_addoption(parser):\n    parser.addoption('--all-tests', action='store_true')"
    (tmp_path / "conftest.py").write_text(options, encoding="utf-8")
    (tmp_path / "test_x.py").write_text("def test_x():\n    assert 1 == 2", encoding="utf-8")
    assert mutants.outcome(("test_x.py",), tmp_path) == "failed" and not capsys.readouterr().out
    assert mutants.outcome(("test_x.py",), tmp_path, shows=True) == "failed"
    assert "assert 1 == 2" in capsys.readouterr().out


def test_faults_side_by_side_do_not_meet(monkeypatch):
    """Each of two trees has one fault at a time, and none is left in it."""

    def found(tests, tree, shows=False):
        text = (tree / "x.py").read_text(encoding="utf-8")
        assert text in ("abcdef", "a", "b", "c", "d", "e", "f")
        return "failed" if text in "abc" else "passed"

    monkeypatch.setattr(mutants, "copy_tree", lambda tree: (tree / "x.py").write_text("abcdef", encoding="utf-8"))
    monkeypatch.setattr(mutants, "outcome", found)
    faults = [mutants.Fault("x.py", ("tests/test_x.py",), "abcdef", letter) for letter in "abcdef"]
    missed = mutants.survivors(faults, None, 2)
    assert missed == [f"survived: {fault} | tests/test_x.py" for fault in faults[3:]]


@pytest.mark.slow(variable=["BUILD_NUMBER"])
@pytest.mark.parametrize("variable", ["CI", "BUILD_NUMBER"])
def test_a_difference_of_long_bytes_takes_no_minutes_where_ci_runs(variable, tmp_path):
    different = "import os\n\ndef test_x():\n    assert os.urandom(50000) == os.urandom(50000)"
    (tmp_path / "test_x.py").write_text(different, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", tmp_path]
    package = Path(rooflab.__file__).parents[1]
    paths = f"{package}{os.pathsep}{ROOT / 'tests'}"
    environment = os.environ | {variable: "true", "PYTHONPATH": paths, "PYTEST_ADDOPTS": ""}
    found = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert found.returncode == 1 and "1 failed" in found.stdout
