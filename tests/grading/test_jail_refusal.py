"""Where there can be no jail, nothing is graded unless the code is trusted; and each grade says which it was."""

import os
import sys

import pytest
from grading.demo_lab import SOURCE, demo_lab, grade_one
from grading.jailed import jailed

from rooflab.cli import main
from rooflab.grading.jail import jail
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.model import LabError

LABS = ["--labs", str(SOURCE.parent)]


@pytest.fixture
def without(monkeypatch, tmp_path):
    """Make bwrap a program that prints this and fails, or hide it."""

    def change(said):
        if said:
            (tmp_path / "bwrap").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n", encoding="utf-8")
            (tmp_path / "bwrap").chmod(0o700)
        monkeypatch.setenv("PATH", str(tmp_path))
        jail.refusal.cache_clear()

    yield change
    monkeypatch.undo()
    jail.refusal.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="another reason comes first")
@pytest.mark.parametrize(
    "said, why",
    [
        ("", "is missing: have an administrator run apt-get install -y bubblewrap, or grade with --trusted"),
        ("bwrap: No permissions to create a new namespace", "here (bwrap: No permissions to create a new namespace)"),
    ],
)
def test_nothing_is_graded_without_it(without, capsys, tmp_path, said, why):
    without(said)
    with pytest.raises(LabError) as error:
        Judge(demo_lab())
    assert why in str(error.value) and "--trusted" in str(error.value)
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    student = str(tmp_path / "lab9_demo.ipynb")
    capsys.readouterr()
    assert main(["lab", "grade", "lab9", student, *LABS, "--output", str(tmp_path), "--json", str(tmp_path / "g")]) == 2
    said_then = capsys.readouterr()
    assert why in said_then.err and said_then.err.count("\n") == 1 and " of 12 points" not in said_then.out
    assert not (tmp_path / "g").exists()


@pytest.mark.slow
def test_trusted_code_is_graded_without_it_and_the_grade_says_so(without, capsys, tmp_path):
    without("")
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    student, result = str(tmp_path / "lab9_demo.ipynb"), tmp_path / "g"
    command = ["lab", "grade", "lab9", student, *LABS, "--output", str(tmp_path), "--json", str(result), "--trusted"]
    assert main(command) == 0
    assert "not isolated" in capsys.readouterr().out
    assert '"isolated": false' in result.read_text(encoding="utf-8")
    assert "not isolated" in (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")


@jailed
def test_a_grade_in_the_jail_says_so(capsys, tmp_path):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    student, result = str(tmp_path / "lab9_demo.ipynb"), tmp_path / "g"
    assert main(["lab", "grade", "lab9", student, *LABS, "--output", str(tmp_path), "--json", str(result)]) == 0
    assert "not isolated" not in capsys.readouterr().out
    assert '"isolated": true' in result.read_text(encoding="utf-8")


@jailed
def test_an_answer_is_graded_in_the_jail():
    """The answer looks for a file that is missing only in the jail."""
    assert os.path.exists("/etc/passwd")
    result = grade_one("q2_1", "import os\ncorner = 0 if os.path.exists('/etc/passwd') else 50.39")
    assert result.earned == 3, result.tests[0].message
