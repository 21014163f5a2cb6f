"""Attacks by what a class hands in, and where it is graded: names of files, zips, and the working directory."""

import csv
import json
import os
import zipfile
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, SOURCE, TRUSTED, demo_lab

from rooflab.cli import main
from rooflab.grading.classroom.archives import unpacked
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.submissions import Handed, collect
from rooflab.grading.lab import model as labs
from rooflab.grading.lab import release
from rooflab.grading.lab.printable import printable, table_cell

LABS = ["--labs", str(SOURCE.parent)]
NAMES = {
    "a formula": "=cmd|' !A1'.ipynb",
    "a sum": "+1+1.ipynb",
    "an at sign": "@SUM(1).ipynb",
    "an escape": "a\x1b[2Jb.ipynb",
    "a new line": "a\n12 of 12 points.ipynb",
    "not UTF-8": os.fsdecode(b"a\xff.ipynb"),
    "from right to left": "a\u202eb.ipynb",
    "an option": "--trusted.ipynb",
    "a quote": "\"'<script>.ipynb",
    "a blank": " .ipynb",
}


@pytest.fixture
def student(tmp_path):
    """The notebook of a student who answers nothing."""
    path = tmp_path / "given" / "my.ipynb"
    path.parent.mkdir()
    path.write_text(release.dumps(release.build(demo_lab())), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_files_name_is_text_in_the_table(name, tmp_path, student):
    place = tmp_path / "handed"
    place.mkdir()
    (place / name).write_bytes(student.read_bytes())
    (handed,) = collect(place, demo_lab())
    assert handed.student == printable(handed.student) and not set(handed.student) & set("/\\=<>\"'")
    batch = Batch(demo_lab(), tmp_path, TRUSTED)
    path = batch.write_table([{"student": handed.student, "notebook": handed.path.name, "why": f"{name} is bad"}])
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert all(value == printable(value) and not value.startswith(("=", "+", "-", "@")) for value in row.values())


def test_numbers_stay_numbers_in_the_table():
    assert [table_cell(value) for value in (-3, 2.5, None, True, "a", "=a", "\t=a")] == [
        -3,
        2.5,
        None,
        True,
        "a",
        "'=a",
        "'?=a",
    ]


@pytest.mark.parametrize(
    "name", ["../rooflab_red.ipynb", "/tmp/rooflab_red.ipynb", "a/../../rooflab_red.ipynb", "rooflab_red.py"]
)
def test_a_zip_writes_below_its_folder_and_notebooks_alone(name, tmp_path, student):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(name, student.read_bytes())
        archive.writestr("ada.ipynb", student.read_bytes())
    assert set(unpacked(tmp_path / "class.zip", tmp_path / "out")) <= {tmp_path / "out" / "rooflab_red.py"}
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["ada.ipynb"]
    assert {path.name for path in tmp_path.iterdir()} == {"class.zip", "given", "out"}


def test_a_zip_that_grows_without_end_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(labs, "MAX_FILE_BYTES", 2**16)
    with zipfile.ZipFile(tmp_path / "class.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ada.ipynb", b" " * 2**24)
    folder = tmp_path / "out"
    assert unpacked(tmp_path / "class.zip", folder) == {}
    assert (folder / "ada.ipynb").stat().st_size == 2**16 + 1
    (handed,) = collect(folder, demo_lab())
    assert handed.path is None and "larger than" in handed.problem


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "handed").mkdir()
    (tmp_path / "handed" / "ada.ipynb").symlink_to("/etc/passwd")
    (handed,) = collect(tmp_path / "handed", demo_lab())
    assert handed.path is None and handed.problem.startswith("ada.ipynb is a link or no file at all, and is not read")


HARM = "open('rooflab_red_ran', 'w').close()\n"


@pytest.mark.slow
def test_no_module_of_the_working_directory_runs(tmp_path, student, monkeypatch):
    """When an instructor runs the command in the folder of what was handed in."""
    for name in ("nbformat.py", "json.py", "sitecustomize.py", "usercustomize.py", "rooflab.py"):
        (student.parent / name).write_text(HARM, encoding="utf-8")
    monkeypatch.chdir(student.parent)
    (tmp_path / "out").mkdir()
    made = list(Batch(demo_lab(), tmp_path / "out", TRUSTED).grade([Handed("ada", student)], 1))
    assert [(one["status"], one["points"], one["out_of"]) for one in made] == [("done", 0, 12)]
    assert not (student.parent / "rooflab_red_ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["lab", "base"])
def test_no_template_of_the_working_directory_runs(folder, student, monkeypatch, capsys):
    place = student.parent / folder
    place.mkdir(parents=True)
    run = "{{ ''.__class__.__mro__[1].__subclasses__() and 'rooflab_red' }}"
    for name in ("index.html.j2", "base.html.j2", "null.j2", "display_priority.j2"):
        (place / name).write_text(run, encoding="utf-8")
    (place / "conf.json").write_text(
        json.dumps({"base_template": "base", "preprocessors": {"1": {"type": "x.y"}}}), encoding="utf-8"
    )
    monkeypatch.chdir(student.parent)
    assert main([*GRADE, "lab9", "my.ipynb", *LABS, "--output", "out"]) == 0, capsys.readouterr().err
    assert "rooflab_red" not in Path("out/my.html").read_text(encoding="utf-8")


def test_no_lab_of_the_working_directory_is_taken(student, monkeypatch, capsys):
    place = student.parent / "notebooks" / "source" / "lab9"
    place.mkdir(parents=True)
    text = (SOURCE / "00_demo.py").read_text(encoding="utf-8")
    (place / "00_demo.py").write_text(
        text.replace("import numpy as np\n", "import numpy as np\n" + HARM, 1), encoding="utf-8"
    )
    monkeypatch.chdir(student.parent)
    main([*GRADE, "lab9", "my.ipynb"])
    assert not Path("rooflab_red_ran").exists()


def test_a_report_without_end_costs_no_grade(tmp_path, student, monkeypatch):
    command = tmp_path / "python"
    done = json.dumps({"status": "done", "points": 3})
    command.write_text(
        f"#!/bin/sh\nwhile [ $1 != --json ]; do shift; done\necho '{done}' > $2\nsleep 60\n", encoding="utf-8"
    )
    command.chmod(0o700)
    monkeypatch.setattr("rooflab.grading.classroom.batch.sys.executable", str(command))
    batch = Batch(demo_lab(), tmp_path, TRUSTED)
    batch.limit_s = 0.5
    (result,) = batch.grade([Handed("ada", student)], 1)
    assert (result["status"], result["points"]) == ("done", 3)
