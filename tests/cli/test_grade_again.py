"""`rooflab grade` beside the results of an earlier run: those of another lab, of the same class, of who has left."""

import json
import shutil
import zipfile

import pytest
from cli.three_students import COMMAND, table
from grading.demo_lab import TRUSTED

from rooflab.cli import main
from rooflab.grading.classroom.batch import Batch

MADE = {"lab": "lab9", "status": "done", "isolated": not TRUSTED, "points": 6, "out_of": 12, "pending": 0, "bonus": 0}
HEAD = "student,question,points\n"


@pytest.fixture(autouse=True)
def graded_at_once(handed, monkeypatch):
    """Each notebook has the same grade and the same page at once."""

    def graded(batch, one, folder):
        (folder / f"{one.student}.html").write_text("<!-- by hand --><!-- end by hand -->6", encoding="utf-8")
        return MADE | {"questions": [], "findings": {}}

    monkeypatch.setattr(Batch, "_graded", graded)
    shutil.copy(handed / "ada.ipynb", handed / "bob.ipynb")


def without_output():
    at = COMMAND.index("--output")
    return COMMAND[:at] + COMMAND[at + 2 :]


def test_each_lab_has_a_folder_of_its_own(tmp_path):
    assert main(without_output()) == 0
    assert (tmp_path / "grades" / "lab9" / "grades.csv").exists()
    assert main([*COMMAND[:1], "--output", "mine", *without_output()[1:]]) == 0 and (tmp_path / "mine").exists()


def test_results_of_an_earlier_version_are_named(tmp_path, capsys):
    assert main(COMMAND) == 0 and "earlier version" not in capsys.readouterr().out
    assert main(without_output()) == 0
    why = "grades holds results of an earlier version: name it with --output grades to go on there.\n"
    assert capsys.readouterr().out.startswith(why)


def test_the_grades_of_another_lab_stay(tmp_path, capsys):
    assert main(COMMAND) == 0
    path = tmp_path / "grades" / "ada.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"lab": "lab8"}), encoding="utf-8")
    assert main(COMMAND) == 2
    why = "grades holds grades of lab8, and lab9 is graded: name another folder with --output.\n"
    assert capsys.readouterr().err == why


def test_what_a_run_without_the_file_would_lose_is_said(tmp_path, capsys):
    (tmp_path / "points.csv").write_text(HEAD + "ada,2.1,2\neve,2.1,1\n", encoding="utf-8")
    late = ["--due", "2000-01-01", "--late-penalty", "10"]
    assert main([*COMMAND, *late, "--manual", "points.csv"]) == 0
    assert "before" not in capsys.readouterr().out and table(tmp_path)["bob"]["late_penalty"] == "12"
    assert main([*COMMAND, "--regrade"]) == 0
    said = capsys.readouterr().out
    assert "2 students had points or comments by hand before: to keep them, name their file with --manual.\n" in said
    assert "3 students lost points for lateness before: to take them off again, name --due and --late" in said
    assert main(COMMAND) == 0
    assert "before" not in capsys.readouterr().out


def test_points_of_a_name_without_a_suffix_go_to_the_student_with_the_same_notebook(handed, tmp_path, capsys):
    (handed / "bob.ipynb").rename(handed / "Ana [A].ipynb")
    assert main(COMMAND) == 0
    (old,) = (tmp_path / "grades").glob("Ana*.json")
    name = old.stem
    old.write_text(old.read_text(encoding="utf-8").replace(name, name[:-7]), encoding="utf-8")
    old.rename(tmp_path / "grades" / f"{name[:-7]}.json")
    (tmp_path / "points.csv").write_text(HEAD + "Ana _A_,2.1,2\n", encoding="utf-8")
    text = (handed / "Ana [A].ipynb").read_text(encoding="utf-8")
    (handed / "Ana (A).ipynb").write_text(text + "\n", encoding="utf-8")
    assert main([*COMMAND, "--manual", "points.csv"]) == 0
    assert {
        student: row["manual_points"] for student, row in table(tmp_path).items() if row["manual_points"] != "0"
    } == {name: "2"}
    (handed / "Ana [A].ipynb").write_text(text + "\n\n", encoding="utf-8")
    assert main([*COMMAND, "--manual", "points.csv"]) == 2
    assert "nobody named 'Ana _A_' handed anything in: if this is Ana _A__" in capsys.readouterr().err


def test_a_page_with_an_older_grade_does_not_stay(handed, tmp_path, monkeypatch, capsys):
    assert main(COMMAND) == 0
    (handed / "ada.ipynb").write_text("{", encoding="utf-8")
    (handed / "bob.ipynb").write_text((handed / "eve.ipynb").read_text(encoding="utf-8") + "\n", encoding="utf-8")
    (handed / "eve.ipynb").unlink()
    monkeypatch.setattr(Batch, "_graded", lambda *_: MADE | {"no_report": "nbconvert failed"})
    assert main(COMMAND) == 1
    assert sorted(path.name for path in (tmp_path / "grades").glob("*.html")) == ["eve.html"]
    left = "grades also holds results of students who are not in the class now: eve.\n"
    assert left in capsys.readouterr().out


@pytest.mark.parametrize("name", ["lab.ipynb", "answers.pdf", "lab9.html", "work.zip", "ada/deep/solution.py"])
def test_results_never_hide_what_was_handed_in(handed, capsys, name):
    (handed / "Bob" / name).parent.mkdir(parents=True)
    (handed / "Bob" / name).write_text("", encoding="utf-8")
    assert main([*without_output(), "--output", "handed/Bob"]) == 2
    assert (
        capsys.readouterr().err == "handed/Bob holds files that are not results: name another folder with --output.\n"
    )


@pytest.mark.parametrize("name", [".DS_Store", ".gitkeep", "grades.csv", "slurm.log", "reports.zip", "ada.html"])
def test_what_a_run_or_a_system_leaves_is_nobodys(handed, capsys, name):
    place = handed / "out" / name
    place.parent.mkdir()
    place.write_text("<!-- by hand --><!-- end by hand -->", encoding="utf-8")
    if name == "reports.zip":
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("ada.html", "6")
    assert main([*without_output(), "--output", "handed/out"]) == 0
    assert "3 graded, 0 could not" in capsys.readouterr().out


def test_results_in_the_folder_of_the_class_are_no_students(handed, tmp_path, capsys):
    (handed / "class.csv").write_text("Name\nada\n", encoding="utf-8")
    (handed / "points.csv").write_text(HEAD, encoding="utf-8")
    lists = ["--roster", "handed/class.csv", "--manual", "handed/points.csv"]
    for folder in ("handed/old", "handed/grades/lab9", "handed/grades/lab9"):
        assert main([*without_output(), "--output", folder, *lists]) == 0
        assert "3 graded, 0 could not" in capsys.readouterr().out
    for name in (".DS_Store", "notes.txt", "roster.csv", "Thumbs.db"):
        (handed / "grades" / name).write_text("", encoding="utf-8")
    assert main([*COMMAND, *lists]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "handed/grades holds results of an earlier run, and nothing that was handed in.\nhanded/old "
    )
    assert set(table(tmp_path)) == {"ada", "bob", "eve"}
