"""`rooflab grade` on machines that lack something: room in TMPDIR, a home, an encoding for names; and after kill -9."""

import dataclasses
import fcntl
import os
import subprocess
import sys
import tempfile
from collections import namedtuple

import pytest
from cli.three_students import COMMAND, table
from grading.demo_lab import TRUSTED, demo_lab

from rooflab.cli import main
from rooflab.grading.classroom import batch
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.jail import folders

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def tmpdir(tmp_path, monkeypatch):
    """A TMPDIR that holds nothing yet."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_a_full_tmpdir_is_blamed_before_anything_is_graded(handed, tmp_path, capsys, monkeypatch, tmpdir):
    monkeypatch.setattr(batch.shutil, "disk_usage", lambda place: Usage(0, 0, 3 << 20))
    assert main(COMMAND) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err == (
        f"The folder for temporary files, {tmpdir}, is full: 3 MiB are free, and a notebook needs 32. Make room there, "
        "or set TMPDIR to another folder.\n"
    )
    assert not (tmp_path / "grades").exists()


@pytest.mark.parametrize(
    "made", [{"why": "No space left on device"}, {"status": "done", "no_report": "No space"}, None]
)
def test_a_tmpdir_that_fills_up_costs_no_student_a_grade(handed, tmp_path, capsys, monkeypatch, tmpdir, made):
    (handed / "bob.ipynb").unlink()

    def filled(*_):
        monkeypatch.setattr(batch.shutil, "disk_usage", lambda place: Usage(0, 0, 0))
        if made is None:
            raise OSError(28, "No space left on device", "ada.ipynb")
        return made

    monkeypatch.setattr(Batch, "_graded", filled)
    assert main(COMMAND) == 2
    assert "is full: 0 MiB are free" in capsys.readouterr().err
    assert not list((tmp_path / "grades").glob("*.json")), "the next run grades them"


def test_folders_of_a_killed_command_are_removed_by_the_next(handed, monkeypatch, tmpdir, capsys):
    (handed / "ada.ipynb").unlink(), (handed / "eve.ipynb").unlink()
    code = (
        "import os, sys, tempfile\ntempfile.tempdir = sys.argv[1]\nfrom rooflab.grading.jail import folders\n"
        "with folders.temporary('class') as one, folders.temporary('worker') as two:\n"
        "    open(one + '/a', 'w').close()\n    os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmpdir)]).returncode == -9
    assert len(list(tmpdir.iterdir())) == 2
    others = [tmpdir / "rooflab-class", tmpdir / ".rooflab-class-of-2026"]
    for one in others:
        one.mkdir()
    (tmpdir / ".rooflab-copy-aaaaaaaa").symlink_to(others[0])
    with folders.temporary("copy") as used:
        assert main(COMMAND) == 1
        assert os.path.exists(used)
    assert {path.name for path in tmpdir.iterdir()} == {".rooflab-copy-aaaaaaaa", *(one.name for one in others)}


def test_a_folder_that_another_command_removes_is_made_again(monkeypatch, tmpdir):
    make, made = tempfile.mkdtemp, []

    def once_removed(**how):
        made.append(make(**how))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", once_removed)
    with folders.temporary("worker") as folder:
        assert folder == made[1] and os.path.isdir(folder)
    assert not list(tmpdir.iterdir())


def test_where_folders_cannot_be_locked_they_are_kept(monkeypatch, tmpdir):
    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with folders.temporary("worker") as folder:
        folders.remove_left()
        assert os.path.isdir(folder)
    assert not list(tmpdir.iterdir())


@pytest.mark.slow
def test_a_name_is_read_as_utf_8_in_every_locale_and_no_home_is_needed(handed, tmp_path):
    (handed / "ada.ipynb").rename(handed / "Åda 学.ipynb")
    here = {name: value for name, value in os.environ.items() if name not in ("HOME", "PYTHONIOENCODING", "LANG")}
    here |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-m", "rooflab", *COMMAND], env=here, capture_output=True)
    assert done.returncode == 1 and b"?da ?: 3 of 12 points" in done.stdout, done.stderr
    assert table(tmp_path)["Åda 学"]["points"] == "3"


def test_a_text_of_the_lab_can_change_and_code_cannot(tmp_path):
    lab = demo_lab()

    def with_more(role):
        cells = [dataclasses.replace(one, source=one.source + " ") if one.role == role else one for one in lab.cells]
        return Batch(dataclasses.replace(lab, cells=tuple(cells)), tmp_path, TRUSTED).graded_by["lab"]

    before = Batch(lab, tmp_path, TRUSTED).graded_by["lab"]
    assert with_more("text") == before
    assert all(with_more(role) != before for role in ("test", "setup", "solution"))
