"""Trouble around a `rooflab lab` command gives one sentence and an exit code, and nothing half-written stays."""

import errno
import io
import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from grading.demo_lab import SOURCE

from rooflab.cli import lab as lab_command
from rooflab.cli import main
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import handout
from rooflab.grading.lab import model as labs

LABS = ["--labs", str(SOURCE.parent)]
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "notebooks" / "INSTRUCTORS.md"


@pytest.fixture
def packaged(tmp_path, monkeypatch, capsys):
    """The student notebook where an installed package holds it."""
    folder = tmp_path / "packaged"
    assert main(["lab", "build", *LABS, "--output", str(folder)]) == 0
    monkeypatch.setattr(labs, "PACKAGED", folder)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return folder / "lab9_demo.ipynb"


def fails(monkeypatch, code):
    """Make every copy and every write of a file fail, after some of it has been written."""

    def write(path, *_, **__):
        with open(path, "w") as file:
            file.write("half")
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(shutil, "copyfile", lambda source, target: write(target))
    monkeypatch.setattr(Path, "write_text", write)


def test_the_codes_of_help_are_those_of_the_instructors_page(capsys):
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {int(code): text for code, text in rows.items()} == lab_command.EXIT_CODES
    for action in ([], ["grade"], ["check"]):
        with pytest.raises(SystemExit):
            main(["lab", *action, "--help"])
        said = " ".join(capsys.readouterr().out.split())
        assert all(f"{code} {text}" in said for code, text in lab_command.EXIT_CODES.items())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize(
    "arguments",
    [["build", *LABS, "--output", "out"], ["new", "mine"], ["release", "handed-out", *LABS]],
    ids=lambda arguments: arguments[0],
)
def test_what_cannot_be_written(packaged, tmp_path, capsys, monkeypatch, arguments, code):
    before = sorted(tmp_path.rglob("*"))
    if arguments[0] == "release":  # a release is made in a checkout
        monkeypatch.chdir(ROOT)
    fails(monkeypatch, code)
    places = {"handed-out": str(tmp_path / "handed-out")}
    assert main(["lab", *(places.get(argument, argument) for argument in arguments)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rooflab lab {arguments[0]}: {os.strerror(code)}: ") and said.count("\n") == 1
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [p for p in before if p.is_file()]


def test_a_folder_below_a_file(packaged, tmp_path, capsys):
    (tmp_path / "taken").touch()
    assert main(["lab", "new", "taken/mine"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("rooflab lab new: ") and said.count("\n") == 1


def test_sources_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "lab9" / "00_demo.py").mkdir(parents=True)
    for arguments in (["list"], ["build"], ["run", "lab9"]):
        assert main(["lab", *arguments, "--labs", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert "Is a directory" in said and said.count("\n") == 1


def test_a_folder_is_named_where_a_notebook_was_expected(capsys):
    assert main(["lab", "check", "."]) == 2
    assert capsys.readouterr().err == ". cannot be read: Is a directory.\n"


def test_what_is_installed_read_only_is_the_students_to_write(packaged, tmp_path):
    packaged.chmod(0o444)
    assert main(["lab", "new", "mine"]) == 0
    assert (tmp_path / "mine" / packaged.name).stat().st_mode & stat.S_IWUSR
    assert (tmp_path / "mine" / packaged.name).read_text(encoding="utf-8") == packaged.read_text(encoding="utf-8")


def test_results_do_not_overwrite_the_notebook(packaged, capsys):
    text = packaged.read_text(encoding="utf-8")
    assert main(["lab", "check", str(packaged), "--json", str(packaged)]) == 2
    assert f"--json: expected another file than '{packaged}', which is read" in capsys.readouterr().err
    assert packaged.read_text(encoding="utf-8") == text


def test_a_grade_that_is_stopped_leaves_none(packaged, tmp_path, capsys, monkeypatch):
    def stops(judge, submission):
        yield judge.grade_question("q2_1", submission)
        assert json.loads((tmp_path / "g").read_text(encoding="utf-8"))["status"] == "running"
        raise KeyboardInterrupt

    monkeypatch.setattr(Judge, "grade", stops)
    assert main(["lab", "check", str(packaged), "--json", "g"]) == 130
    assert capsys.readouterr().err == "Stopped.\n" and not (tmp_path / "g").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow
def test_a_terminal_shows_which_question_it_is_at(packaged, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    assert main(["lab", "check", str(packaged)]) == 1
    shown = re.split(r"\r\x1b\[K", terminal.getvalue())
    assert [text for text in shown if text] == [
        f"[{n}/4] {q} ..." for n, q in enumerate(["1", "2.1", "2.2", "b2.2"], 1)
    ]
    assert shown[-1] == "", "the line is cleared before the result"
    assert "..." not in capsys.readouterr().out


@pytest.mark.slow
def test_a_pipe_shows_nothing_of_it(packaged, capsys):
    assert main(["lab", "check", str(packaged)]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_terminal_shows_which_cell_a_run_is_at(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    assert main(["lab", "run", "lab9", *LABS, "--output", str(tmp_path)]) == 0
    assert "[4/4] b2.2 ..." in terminal.getvalue() and "[10/10] b2_2_test ..." in terminal.getvalue()


def test_the_readme_of_a_release_is_for_students():
    page = handout.student_readme(ROOT)
    assert "source .venv/bin/activate" in page and "pip install './rooflab[labs]'" in page
    assert "## A minute with it" in page and "| `csrc/core` |" in page and "| `python/rooflab/labs` |" in page
    for absent in ("assets", "notebooks/source", "`tests`", "INSTRUCTORS", "Two commands", "idden test", "pytest"):
        assert absent not in page, absent


def test_a_release_follows_no_link(tmp_path):
    """A developer may have linked notebooks/, with all answers, to where an installed package has its notebooks."""
    checkout, package = tmp_path / "checkout", tmp_path / "checkout" / "python" / "rooflab"
    package.mkdir(parents=True), (checkout / "csrc").mkdir()
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, checkout / name)
    (package / "linked").symlink_to(SOURCE), (package / "module.py").touch()
    handout.write_release([labs.from_source(SOURCE)], checkout, tmp_path / "handed")
    assert [path.name for path in (tmp_path / "handed" / "rooflab" / "python" / "rooflab").iterdir()] == ["module.py"]
