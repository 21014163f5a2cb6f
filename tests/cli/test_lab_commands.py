"""The `rooflab lab` commands: what they print, write and return, and one sentence for each mistake of the user."""

import json
import re
import shlex
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, SOURCE, TRUSTED

import rooflab
from rooflab.cli import main
from rooflab.grading.jail import jail
from rooflab.grading.judge import execute
from rooflab.grading.lab import model as labs
from rooflab.grading.lab.model import LabError

LABS = ["--labs", str(SOURCE.parent)]
TEXT = (SOURCE / "00_demo.py").read_text(encoding="utf-8")


def replace(path, old, new):
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


@pytest.fixture
def student(tmp_path, capsys):
    """The built student notebook, with an answer only to question 2.1."""
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    path = tmp_path / "lab9_demo.ipynb"
    replace(path, "corner = None  # your number", "corner = 50.39")
    capsys.readouterr()
    return path


def clean(text):
    """Check that a text shows nothing of this machine: no absolute path, no traceback."""
    assert not re.search(r"/(tmp|root|home|work|usr)/", text) and "Traceback" not in text
    return text


def test_list(capsys):
    assert main(["lab", "list", *LABS]) == 0
    assert (
        "lab9     Lab 9: A lab to test the grading with  (4 questions, 12 + 3 bonus points)" in capsys.readouterr().out
    )


def test_build_and_its_check(tmp_path, capsys):
    where = [*LABS, "--output", str(tmp_path)]
    assert main(["lab", "build", "--check", *where]) == 1
    assert main(["lab", "build", "lab9", *where]) == 0
    assert main(["lab", "build", "--check", *where]) == 0
    (tmp_path / "lab9_demo.ipynb").write_text("{}", encoding="utf-8")
    assert main(["lab", "build", "--check", *where]) == 1
    assert "stale" in clean(capsys.readouterr().out)


def test_grade(student, tmp_path, capsys):
    arguments = [
        "lab",
        "grade",
        "lab9",
        str(student),
        *LABS,
        "--output",
        str(tmp_path / "out"),
        "--json",
        str(tmp_path / "g"),
    ]
    assert main(arguments) == 0
    said = clean(capsys.readouterr().out)
    assert "3 of 12 points, 0 of 3 bonus points" in said and "[4/4] b2.2: 0 of 3" in said
    assert "Not answered yet: 1\n" in said and "NotImplementedError" not in said
    grade = json.loads(clean((tmp_path / "g").read_text(encoding="utf-8")))
    assert (grade["status"], grade["points"], grade["out_of"], grade["full_marks"]) == ("done", 3, 12, False)
    assert grade["rooflab"] == rooflab.__version__
    assert [one["points"] for one in grade["questions"]] == [0, 3, 0, 0]
    page = clean((tmp_path / "out" / "lab9_demo.html").read_text(encoding="utf-8"))
    assert "3 of 12 points" in page and "hidden" not in re.sub(r"<style.*?</style>", "", page, flags=re.S)[-5000:]


@pytest.mark.slow
def test_a_report_runs_nothing_of_the_students(student, tmp_path):
    notebook = json.loads(student.read_text(encoding="utf-8"))
    evil = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
    for cell in notebook["cells"]:
        if cell["metadata"]["nbgrader"]["grade_id"] == "q2_1_why":
            cell["source"] = evil
        if cell["metadata"]["nbgrader"]["grade_id"] == "q2_1":
            cell["outputs"] = [
                {"output_type": "display_data", "metadata": {}, "data": {"text/html": evil, "text/plain": evil}},
                {"output_type": "stream", "name": "stdout", "text": evil},
            ]
    student.write_text(json.dumps(notebook), encoding="utf-8")
    assert main([*GRADE, "lab9", str(student), *LABS, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")
    assert "<script>document.title" not in page and "<img src=x" not in page and "<img onerror" not in page


def test_check_runs_the_notebooks_own_tests(student, capsys, monkeypatch):
    monkeypatch.setattr(labs, "find_sources", lambda folder: [])
    monkeypatch.setattr(labs, "find_notebooks", lambda: [])
    assert main(["lab", "check", str(student)]) == 1
    said = clean(capsys.readouterr().out)
    assert "2.1: 3 of 3" in said and "1: 0 of 5" in said
    replace(student, "corner is a float", "another release's sentence")
    replace(student, "corner = 50.39", "corner = 50")
    assert main(["lab", "check", str(student)]) == 1
    assert "another release's sentence" in capsys.readouterr().out


@pytest.mark.slow
def test_what_ended_is_said_at_once_with_its_cell(student, capsys):
    replace(student, "corner = 50.39", "import os; os._exit(3)")
    assert main(["lab", "check", str(student)]) == 1
    shown = clean(capsys.readouterr().out).split("\n")
    assert shown[2].startswith("[2/4] 2.1: 0 of 3. ") and shown[2].endswith(" It was running cell q2_1."), shown[2]


@pytest.mark.slow
def test_check_against_a_folder_of_sources_shows_nothing_hidden(student, capsys):
    replace(student, "corner = 50.39", "corner = 51.0")
    replace(student, "corner is a float", "an older sentence")
    assert main(["lab", "check", str(student), *LABS]) == 1
    said = clean(capsys.readouterr().out)
    assert "2.1: 3 of 3" in said and "hidden" not in said, "public tests alone"
    assert "q2_1_test differs from this release" in said


@pytest.mark.slow(id=["from sources"])
@pytest.mark.parametrize("more", [[], LABS], ids=["handed out", "from sources"])
def test_check_of_a_notebook_without_metadata(student, tmp_path, capsys, monkeypatch, more):
    """Some programs save it so, and `grade` takes it."""
    monkeypatch.setattr(labs, "PACKAGED", tmp_path / ("packaged" if not more else "none"))
    main(["lab", "build", *LABS, "--output", str(tmp_path / "packaged")])
    notebook = json.loads(student.read_text(encoding="utf-8"))
    cells = [cell | {"metadata": {}} for cell in notebook["cells"]]
    cells = [{name: value for name, value in cell.items() if name != "id"} for cell in cells]
    path = tmp_path / "ada.ipynb"
    path.write_text(json.dumps(notebook | {"metadata": {}, "cells": cells, "nbformat_minor": 4}), encoding="utf-8")
    assert main(["lab", "check", str(path), *more]) == 1
    assert "2.1: 3 of 3" in clean(capsys.readouterr().out)


def test_check_of_what_is_no_lab(tmp_path, capsys):
    path = tmp_path / "my.ipynb"
    path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', encoding="utf-8")
    assert main(["lab", "check", str(path)]) == 2
    assert capsys.readouterr().err == "my.ipynb holds no test cell of a lab.\n"


def test_a_release_has_all_and_no_answers(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "handed out"
    assert main(["lab", "release", str(folder), *LABS]) == 0
    assert "INSTRUCTIONS.md" in clean(capsys.readouterr().out.replace(str(tmp_path), ""))
    assert {path.name for path in folder.iterdir()} == {"lab9_demo.ipynb", "INSTRUCTIONS.md", "rooflab"}
    instructions = (folder / "INSTRUCTIONS.md").read_text(encoding="utf-8")
    assert "lab9_demo.ipynb`: Lab 9: A lab to test the grading with, 12 points, 3 bonus points\n" in instructions
    assert "pip install './rooflab[labs]'" in instructions
    names = {path.name for path in (folder / "rooflab").iterdir()}
    assert names == {"CMakeLists.txt", "pyproject.toml", "README.md", "csrc", "python", "notebooks"}
    assert [path.name for path in (folder / "rooflab" / "notebooks").iterdir()] == ["lab9_demo.ipynb"]
    readme = (folder / "rooflab" / "README.md").read_text(encoding="utf-8")
    assert [to for to in re.findall(r"\]\(([\w./]+)", readme) if not (folder / "rooflab" / to).exists()] == []
    assert "notebooks/source" not in readme and "'.[" not in readme, "a command for a clone"
    texts = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in texts if b"50.39\n### END" in path.read_bytes() or path.suffix == ".so"]
    assert not [path for path in texts if "source" in path.parts or path.name.startswith("00_")]
    assert main(["lab", "release", str(folder), *LABS]) == 2
    assert capsys.readouterr().err == "handed out exists and is not an empty folder: nothing was written.\n"


def test_one_lab_can_be_released(tmp_path):
    for number in (8, 9):
        text = (SOURCE / "00_demo.py").read_text(encoding="utf-8").replace("lab9_demo", f"lab{number}_demo")
        (tmp_path / f"lab{number}").mkdir()
        (tmp_path / f"lab{number}" / "00_demo.py").write_text(text, encoding="utf-8")
    assert main(["lab", "release", str(tmp_path / "out"), "lab8", "--labs", str(tmp_path)]) == 0
    assert [path.name for path in (tmp_path / "out").rglob("*.ipynb")] == ["lab8_demo.ipynb"] * 2
    assert "lab9" not in (tmp_path / "out" / "INSTRUCTIONS.md").read_text(encoding="utf-8")


def test_a_release_from_anywhere_is_that_of_the_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    checkout = Path(__file__).resolve().parents[2]
    for installed, code in ((tmp_path / "a" / "b" / "c" / "d" / "e", 2), (checkout, 0)):
        monkeypatch.setattr(labs, "__file__", str(installed / "python" / "rooflab" / "grading" / "lab" / "model.py"))
        assert main(["lab", "release", "out", *LABS]) == code
    assert (tmp_path / "out" / "rooflab" / "CMakeLists.txt").exists()
    assert f"in a checkout of rooflab, but there is no CMakeLists.txt in {tmp_path.name}." in capsys.readouterr().err


def test_the_command_that_opens_a_new_folder_can_be_pasted(tmp_path, capsys):
    assert main(["lab", "new", str(tmp_path / "my labs")]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert Path(shlex.split(last)[-1]).parent == tmp_path / "my labs" and shlex.split(last)[1:3] == ["jupyter", "lab"]


@pytest.mark.parametrize("option", ["--json", "--gradescope"])
def test_a_grade_and_its_report_share_a_new_folder(student, tmp_path, option):
    new = tmp_path / "new"
    assert main([*GRADE, "lab9", str(student), *LABS, "--output", str(new), option, str(new / "x.json")]) == 0
    assert {path.name for path in new.iterdir()} == {"x.json", "lab9_demo.html"}


def test_points_by_hand_of_nobody_are_said(student, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rooflab.cli.lab_grade._grade", lambda *_: (_ for _ in ()).throw(LabError("stopped")))
    for name, said in (("ada", True), ("lab9_demo", False)):
        (tmp_path / "points.csv").write_text(f"student,question,points\n{name},1,2\n", encoding="utf-8")
        manual = ["--manual", str(tmp_path / "points.csv"), "--output", str(tmp_path)]
        assert main([*GRADE, "lab9", str(student), *LABS, *manual]) == 2
        why = "points.csv gives nothing to lab9_demo, as the notebook's file is named.\n"
        assert capsys.readouterr().err == why * said + "stopped\n"


def test_a_student_starts_from_an_installed_package(tmp_path, capsys, monkeypatch):
    main(["lab", "build", *LABS, "--output", str(tmp_path / "packaged")])
    monkeypatch.setattr(labs, "PACKAGED", tmp_path / "packaged")
    folder = tmp_path / "mine"
    capsys.readouterr()
    assert main(["lab", "new", str(folder)]) == 0
    assert "jupyter lab" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"lab9_demo.ipynb", "INSTRUCTIONS.md"}
    instructions = (folder / "INSTRUCTIONS.md").read_text(encoding="utf-8")
    assert "jupyter lab lab9_demo.ipynb" in instructions and "pip install" not in instructions
    assert main(["lab", "check", str(folder / "lab9_demo.ipynb")]) == 1
    (folder / "lab9_demo.ipynb").write_text("my answers", encoding="utf-8")
    assert main(["lab", "new", str(folder)]) == 2
    assert (folder / "lab9_demo.ipynb").read_text(encoding="utf-8") == "my answers"
    monkeypatch.setattr(labs, "find_notebooks", lambda: [])
    assert main(["lab", "new", str(tmp_path / "other")]) == 2


def looking_around(folder, monkeypatch, old="", new=""):
    """Options that name a demo lab with a cell that looks for the lab's source, and for a file in the home folder."""
    source, home = folder / "lab9", folder / "home"
    source.mkdir(), home.mkdir()
    (home / "mine").touch()
    monkeypatch.setenv("HOME", str(home))
    look = f"import os\n\nprint('sees', [os.path.exists(path) for path in ({str(source)!r}, {str(home / 'mine')!r})])"
    (source / "00_demo.py").write_text(f"{TEXT.replace(old, new)}\n\n# %%\n{look}\n", encoding="utf-8")
    return ["--labs", str(folder)]


def test_run(tmp_path, capsys, monkeypatch):
    lab = looking_around(tmp_path, monkeypatch)
    assert main(["lab", "run", "lab9", *lab, "--output", str(tmp_path), "--json", str(tmp_path / "g")]) == 0
    said = clean(capsys.readouterr().out)
    assert "12 of 12 points, 3 of 3 bonus points" in said and "[11/11] " in said
    assert "connect another client" not in said
    page = (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")
    assert (
        "a demonstration, which uses [[1. 0.]" in page
        and json.loads((tmp_path / "g").read_text(encoding="utf-8"))["full_marks"]
    )
    assert ("sees [False, False]" in page) == ("not isolated" not in said) == (not TRUSTED)


@pytest.mark.slow
def test_a_trusted_run_of_a_wrong_solution_fails(tmp_path, capsys, monkeypatch):
    lab = looking_around(tmp_path, monkeypatch, "corner = 50.39", "corner = 51.0")
    assert main(["lab", "run", "lab9", *lab, "--output", str(tmp_path), "--trusted"]) == 1
    captured = capsys.readouterr()
    assert "9 of 12 points, 3 of 3 bonus points; not isolated\n" in captured.out
    assert captured.err.startswith("Cell q2_1_test failed: AssertionError")
    assert "sees [True, True]" in (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_run_without_a_jail_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(jail, "refusal", lambda: "There is no jail.")

    def ran(*arguments):
        assert arguments[-1] is False
        return []

    monkeypatch.setattr(execute, "execute", ran)
    assert main(["lab", "run", "lab9", *LABS, "--output", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "bonus points; not isolated\n" in captured.out
    assert captured.err == "The lab's own code runs without isolation. There is no jail.\n"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([*GRADE, "lab9", "absent.ipynb", *LABS, "--output", "new"], "There is no file absent.ipynb."),
        ([*GRADE, "lab7", "x.ipynb", *LABS, "--output", "new"], "There is no lab7 here"),
        (["lab", "run", "lab7", *LABS, "--output", "new"], "(found: lab9)."),
        (["lab", "build", "--labs", "nowhere"], "There are no sources of labs here: name the folder"),
        (["lab", "list", "--labs", "nowhere"], "There are no labs here"),
        (["lab", "run", "lab9", "--labs", "nowhere"], "There is no lab9 here"),
        (["lab", "run", "lab9", *LABS, "--json", "absent/x"], "rooflab lab run: no file can be written: absent/x."),
        (["lab", "check", "x.ipynb", "--json", "."], "rooflab lab check: no file can be written: ."),
        ([*GRADE, "lab9", "x.ipynb", *LABS, "--gradescope", "absent/x"], "no file can be written: absent/x."),
        ([*GRADE, "lab9", "x.ipynb", *LABS, "--output", "/dev/null"], "no folder can be written: /dev/null."),
        (["lab", "check", "absent.ipynb"], "There is no file absent.ipynb."),
        (["lab", "release", "out", "--labs", "nowhere"], "There are no sources of labs here"),
    ],
)
def test_mistakes_are_one_sentence(arguments, sentence, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if "nowhere" in arguments:
        monkeypatch.setattr(labs, "find_notebooks", lambda: [])
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.count("\n") == 1
    assert not any(tmp_path.iterdir()), "a folder for nothing is left"


def test_an_unreadable_notebook_is_code_2(tmp_path, capsys):
    (tmp_path / "my.ipynb").write_text("{", encoding="utf-8")
    assert main([*GRADE, "lab9", str(tmp_path / "my.ipynb"), *LABS]) == 2
    assert capsys.readouterr().err == "my.ipynb is not a notebook: it is not JSON.\n"


@pytest.mark.slow
def test_a_run_below_a_long_path(tmp_path, capsys, monkeypatch):
    """On clusters TMPDIR is deep, and the path of a socket is short."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert main(["lab", "run", "lab9", *LABS, "--output", str(tmp_path)]) == 0
    assert (tmp_path / "lab9_demo.html").exists() and not any(deep.iterdir())
