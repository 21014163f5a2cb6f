"""Without asserts a test cell would pass whatever the answer is: a cell's own are kept, and no grade is given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from grading.demo_lab import SOURCE

import rooflab
from rooflab.cli import main

LABS = ["--labs", str(SOURCE.parent)]
PACKAGES = str(Path(rooflab.__file__).parent.parent)


def python(*arguments, cwd, **environment):
    """A Python that finds the rooflab of this process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([PACKAGES, str(SOURCE.parents[2])])} | environment
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "flags, environment",
    [
        pytest.param(["-O"], {}, id="flag"),
        pytest.param([], {"PYTHONOPTIMIZE": "1"}, id="variable", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(["grade", "lab9", "lab9_demo.ipynb"], id="grade"),
        pytest.param(["run", "lab9"], id="run", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow(id=["grade-flag"])
def test_no_grade_is_given(tmp_path, action, flags, environment):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    command = ["-m", "rooflab", "lab", *action, *LABS, "--json", "grade.json"]
    done = python(*flags, *command, cwd=tmp_path, **environment)
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1 and "without -O and PYTHONOPTIMIZE" in done.stderr
    assert " points" not in done.stdout and not (tmp_path / "grade.json").exists()


@pytest.mark.slow
def test_the_asserts_of_test_cells_are_kept(tmp_path):
    """Whatever options the judge itself was started with."""
    source = """
from grading.demo_lab import demo_lab
from rooflab.grading.judge.judge import compiled
cell = next(cell for cell in demo_lab().cells if cell.key == "q2_1_test")
try:
    exec(compiled(cell), {"corner": 1.0})
except AssertionError as error:
    print(error)
"""
    done = python("-O", "-c", source, cwd=tmp_path)
    assert done.stdout == "hidden: wrong corner\n", done.stderr
