"""A worker starts wherever the judge's rooflab is. If it cannot start, there is one sentence and no grade."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, SOURCE, demo_lab, grade_one

import rooflab
from rooflab.cli import main
from rooflab.grading.jail import link, wire
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.model import LabError

LABS = ["--labs", str(SOURCE.parent)]
PACKAGE = Path(rooflab.__file__).parent


@pytest.fixture
def student(tmp_path, capsys):
    """The built student notebook, with question 2.1 answered."""
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    path = tmp_path / "lab9_demo.ipynb"
    path.write_text(
        path.read_text(encoding="utf-8").replace("corner = None  # your number", "corner = 50.39"), encoding="utf-8"
    )
    capsys.readouterr()
    return path


def refused(student, capsys):
    """What `rooflab lab grade` says when it refuses to grade."""
    place = student.parent
    files = set(place.iterdir())
    assert main([*GRADE, "lab9", str(student), *LABS, "--output", str(place), "--json", str(place / "g")]) == 2
    said = capsys.readouterr()
    assert set(place.iterdir()) == files and " of 12 points" not in said.out
    assert said.err.count("\n") == 1 and "Traceback" not in said.err
    return said.err


def imitate(monkeypatch, folder, source):
    """Make the judge take `folder` for its package rooflab, with `source` as the worker."""
    grading = folder / "grading"
    for package in (folder, grading, *(grading / room for room in ("jail", "judge", "measure", "replay"))):
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
    for name in ("enter", "forkserver", "namespaces"):
        (grading / "jail" / f"{name}.py").symlink_to(PACKAGE / "grading" / "jail" / f"{name}.py")
    for name, text in (
        ("judge/worker", source),
        ("judge/runtime", ""),
        ("judge/kernels", ""),
        ("replay/recorder", "def holders():\n    pass\n"),
    ):
        (grading / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(rooflab, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(rooflab, "__path__", [str(folder)])


@pytest.mark.slow
def test_a_rooflab_on_pythonpath_grades(student, tmp_path):
    course = tmp_path / "course"
    course.mkdir()
    (course / "rooflab").symlink_to(PACKAGE)
    answer = f"import rooflab; corner = 50.39 if rooflab.__path__ == [{str(course / 'rooflab')!r}] else 0"
    student.write_text(student.read_text(encoding="utf-8").replace("corner = 50.39", answer), encoding="utf-8")
    command = [sys.executable, "-m", "rooflab", *GRADE, "lab9", student.name, *LABS]
    environment = os.environ | {"PYTHONPATH": str(course)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "[2/4] 2.1: 3 of 3" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name, beside", [("site-packages", "other.py"), ("shelf", "shelf_library-1.0.dist-info")])
def test_installed_packages_of_the_judge_are_the_workers(tmp_path, monkeypatch, name, beside):
    folder = tmp_path / name
    folder.mkdir()
    (folder / beside).touch()
    (folder / "shelf_library.py").write_text("CORNER = 50.39", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    result = grade_one("q2_1", "from shelf_library import CORNER as corner")
    assert result.earned == 3, result.tests[0].message


@pytest.mark.parametrize("sources", ["", "notebooks/source"])
def test_a_folder_of_answers_is_not(tmp_path, monkeypatch, sources):
    """Neither a course's folder, nor a folder of installed packages that holds a lab's source too."""
    if sources:
        (tmp_path / sources / "lab9").mkdir(parents=True)
        (tmp_path / sources / "lab9" / "00_demo.py").touch()
        (tmp_path / "shelf_library-1.0.dist-info").touch()
    answers = tmp_path / "shelf_answers.py"
    answers.write_text("CORNER = 50.39", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    message = grade_one("q2_1", "corner = None\nfrom shelf_answers import CORNER as corner").tests[0].message
    assert "No module named 'shelf_answers'" in message
    message = grade_one("q2_1", f"corner = None\nopen({str(answers)!r})").tests[0].message
    assert "PermissionError" in message


def test_a_broken_interpreter(student, tmp_path, capsys, monkeypatch):
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'error while loading shared libraries: libpython3.so' >&2\nexit 127\n", encoding="utf-8"
    )
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    said = refused(student, capsys)
    assert "did not start (error while loading shared libraries: libpython3.so)" in said
    assert "pip install 'rooflab[labs]'" in said


def test_no_interpreter(student, capsys, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "No such file or directory" in refused(student, capsys)


def test_a_missing_dependency(student, tmp_path, capsys, monkeypatch):
    imitate(monkeypatch, tmp_path / "rooflab", "import no_such_dependency")
    assert "(ModuleNotFoundError: No module named 'no_such_dependency')" in refused(student, capsys)


def test_another_version(student, tmp_path, capsys, monkeypatch):
    stale = wire.message((0, "ready", "protocol 0 of rooflab 0.0.1"))
    source = f"import os\ndef prepare():\n    pass\ndef main(_, replies):\n    os.write(replies, {stale!r})\n"
    imitate(monkeypatch, tmp_path / "rooflab", source)
    assert f"(it speaks protocol 0 of rooflab 0.0.1, and the judge {wire.version()})" in refused(student, capsys)


@pytest.mark.slow
def test_a_silent_worker(student, tmp_path, capsys, monkeypatch):
    imitate(monkeypatch, tmp_path / "rooflab", "import time\nwhile True:\n    time.sleep(1)")
    monkeypatch.setattr(link, "START_S", 0.1)
    assert "said nothing for 0.1 s" in refused(student, capsys)


def test_a_grade_that_breaks_off_leaves_none(student, capsys, monkeypatch):
    def breaks_off(judge, submission):
        yield judge.grade_question("q2_1", submission)
        raise LabError("It breaks off.")

    monkeypatch.setattr(Judge, "grade", breaks_off)
    assert refused(student, capsys) == "It breaks off.\n"


def test_a_test_cell_cannot_pass_over_it():
    """The judge's own trouble inside a test cell is no fault of the student's."""
    lab = demo_lab()
    source = "from rooflab.grading.lab.model import LabError\nraise LabError('It does not start.')"
    cells = tuple(dataclasses.replace(c, source=source) if c.key == "q2_1_test" else c for c in lab.cells)
    with pytest.raises(LabError, match="does not start"):
        grade_one("q2_1", "corner = 1.0", dataclasses.replace(lab, cells=cells))


def test_student_code_has_no_line_to_the_judges_ear():
    """The judge reads the worker's standard error only until it has started; then nobody does."""
    code = "import os\ncorner = 50.39 if os.fstat(2).st_rdev == os.stat('/dev/null').st_rdev else 0"
    assert grade_one("q2_1", code).earned == 3
