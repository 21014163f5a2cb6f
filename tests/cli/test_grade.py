"""`rooflab grade`: a class of notebooks, some of which are broken, slow or graded already."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from datetime import datetime
from pathlib import Path

import pytest
from cli.three_students import COMMAND, table
from grading.demo_lab import GRADE, SOURCE, TRUSTED, demo_lab

from rooflab.cli import grade, main
from rooflab.grading.classroom import batch
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.submissions import collect
from rooflab.grading.measure import kernel


def test_each_gets_a_grade_or_a_reason(handed, tmp_path, capsys):
    assert main([*COMMAND, "-j", "2", "--similarity", "similar"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("Answers of 1 of 3 students to compare: similar\n")
    assert "corner = 50.39" in (tmp_path / "similar" / "students" / "ada.py").read_text(encoding="utf-8")
    assert "ada: 3 of 12 points" in said and "eve: 0 of 12 points" in said
    assert "bob: not graded. bob.ipynb is not a notebook: it is not JSON." in said
    assert said.endswith("2 graded, 1 could not be graded: grades/grades.csv\n")
    rows = table(tmp_path)
    assert list(rows) == ["ada", "bob", "eve"]
    assert rows["ada"]["points"] == "3" and rows["ada"]["isolated"] == str(not TRUSTED)
    assert rows["bob"]["points"] == "" and rows["bob"]["status"] == "failed"
    result = json.loads((tmp_path / "grades" / "ada.json").read_text(encoding="utf-8"))
    assert result["student"] == "ada" and result["points"] == 3 and len(result["questions"]) == 4
    names = {path.name for path in (tmp_path / "grades").iterdir()}
    assert names == {"ada.json", "ada.html", "bob.json", "eve.json", "eve.html", "grades.csv", "gradebook.csv"}


@pytest.mark.slow
def test_who_handed_in_the_same_notebook_is_said_and_costs_nothing(handed, tmp_path, capsys):
    (handed / "bob.ipynb").write_bytes((handed / "ada.ipynb").read_bytes())
    assert main(COMMAND) == 0
    assert "\nThe same notebook came from ada and bob, with 1 answer.\n3 graded, 0 " in capsys.readouterr().out
    assert [(row["points"], row["why"]) for row in table(tmp_path).values()] == [
        ("3", "The same notebook came from bob."),
        ("3", "The same notebook came from ada."),
        ("0", ""),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("graded_before", [False, True])
def test_a_class_takes_no_more_memory_than_its_table(handed, monkeypatch, graded_before):
    for number in range(12):
        shutil.copy(handed / "eve.ipynb", handed / f"s{number}.ipynb")
    (handed / "bob.ipynb").unlink()
    made = {"status": "done", "isolated": not TRUSTED, "points": 1, "out_of": 12, "pending": 0, "findings": {}}
    monkeypatch.setattr(Batch, "_graded", lambda *_: made | {"questions": ["why" + "x" * 10**6]})
    if graded_before:
        assert main(COMMAND) == 0
    held, write_table = [], Batch.write_table

    def measured(batch, results):
        held.append(tracemalloc.get_traced_memory()[0])
        return write_table(batch, results)

    monkeypatch.setattr(Batch, "write_table", measured)
    tracemalloc.start()
    try:
        assert main(COMMAND) == 0
    finally:
        tracemalloc.stop()
    assert held[0] < 5e6, "of 14 MB of results"


@pytest.mark.slow
def test_late_notebooks_points_by_hand_and_what_they_are_given_for(handed, tmp_path, capsys):
    text = (handed / "ada.ipynb").read_text(encoding="utf-8").replace("*Your answer here.*", "=SUM(<b>why</b>)\\nso")
    (handed / "ada.ipynb").write_text(text, encoding="utf-8")
    os.utime(handed / "ada.ipynb", (1, 1))
    os.utime(handed / "eve.ipynb", (1e9, 1e9))
    due = ["--due", "2000-01-01T00:00:00+00:00"]
    assert main([*COMMAND, *due]) == 1
    assert "Findings to read: grades/findings.csv\nFindings to read: grades/findings.html\n" in capsys.readouterr().out
    rows = table(tmp_path)
    assert [rows[name]["late"] for name in ("ada", "bob", "eve")] == ["False", "True", "True"]
    handed_in = datetime.fromisoformat(rows["eve"]["handed_in"])
    assert handed_in.timestamp() == 1e9 and handed_in.tzinfo
    assert "=SUM(&lt;b&gt;why" in (tmp_path / "grades" / "findings.html").read_text(encoding="utf-8")

    findings = tmp_path / "grades" / "findings.csv"
    assert findings.read_text(encoding="utf-8-sig").startswith(
        'lab,student,question,points,comment,finding\nlab9,ada,2.1,,,"Say why.\n'
    )
    filled = findings.read_text(encoding="utf-8").replace("ada,2.1,,,", "ada,2.1,1.5,<i>Good</i>,")
    findings.write_text(filled, encoding="utf-8")
    assert main([*COMMAND, "--manual", "grades/findings.csv"]) == 1
    assert capsys.readouterr().out.startswith("2 of 3 are graded already.\n")
    row = table(tmp_path)["ada"]
    assert (row["points"], row["manual_points"], row["total"], row["late"]) == ("3", "1.5", "4.5", "")
    result = json.loads((tmp_path / "grades" / "ada.json").read_text(encoding="utf-8"))
    assert (result["manual"], result["total"], result["late"]) == ({"2.1": 1.5}, 4.5, None)
    assert findings.read_text(encoding="utf-8") == filled, "what was filled in stays"
    assert row["comment"] == "2.1: <i>Good</i>"
    page = (tmp_path / "grades" / "ada.html").read_text(encoding="utf-8")
    assert "2.1: 1.5 points" in page and "&lt;i&gt;Good" in page
    assert main(COMMAND) == 1
    assert table(tmp_path)["ada"]["total"] == "3" and findings.read_text(encoding="utf-8") == filled


@pytest.mark.slow
def test_a_late_penalty_is_in_the_tables_and_on_the_page(handed, tmp_path, capsys):
    two_days = datetime.fromisoformat("2026-02-02T12:00:00").timestamp()
    os.utime(handed / "ada.ipynb", (two_days, two_days))
    assert main([*COMMAND, "--due", "2026-02-01", "--late-penalty", "10", "--grace", "15"]) == 1
    leads = "1.8 of 12 points (3 in the tests, 1.2 taken off because it was late)"
    assert f"ada: {leads}\n" in capsys.readouterr().out
    row = table(tmp_path)["ada"]
    assert (row["points"], row["late"], row["late_penalty"], row["total"]) == ("3", "True", "1.2", "1.8")
    assert row["why"] == "Late by 1 day: 1.2 points were taken off."
    assert list(row)[2:7] == ["status", "total", "out_of", "points", "manual_points"]
    page = (tmp_path / "grades" / "ada.html").read_text(encoding="utf-8")
    assert f"ada.ipynb: <b>{leads}, 0 of 3 bonus" in page[: page.index("<table>")]
    gradebook = (tmp_path / "grades" / "gradebook.csv").read_text(encoding="utf-8-sig").splitlines()
    assert gradebook[0].startswith("student,lab9 total,lab9 late,lab9 1,") and gradebook[1].startswith("ada,1.8,-1.2,")
    assert gradebook[3].startswith("eve,0,") and gradebook[3].count(",") == gradebook[0].count(",")
    assert main(COMMAND) == 1
    assert table(tmp_path)["ada"]["total"] == "3" and "late" not in (tmp_path / "grades/gradebook.csv").read_text(
        encoding="utf-8"
    )
    page = (tmp_path / "grades" / "ada.html").read_text(encoding="utf-8")
    assert "ada.ipynb: <b>3 of 12 points, " in page and "taken off" not in page
    assert main([*COMMAND, "--late-penalty", "10"]) == 2
    assert "name that time too" in capsys.readouterr().err


@pytest.fixture
def graded(handed, tmp_path):
    """As if a run had given everybody 7 points: the batch, and by name what was handed in."""
    (tmp_path / "grades").mkdir()
    batch = Batch(demo_lab(), tmp_path / "grades", TRUSTED)
    found = {one.student: one for one in collect(handed, batch.lab)}
    for one in found.values():
        points = {"points": 7, "out_of": 12, "pending": 0}
        result = {"status": "done", "isolated": not TRUSTED} | points | batch._origin(one)
        batch._file(one, "json").write_text(json.dumps(result), encoding="utf-8")
    return batch, found


@pytest.mark.slow
def test_what_has_a_grade_is_left_alone(graded, handed, tmp_path, capsys):
    (handed / "bob.ipynb").write_text((handed / "ada.ipynb").read_text(encoding="utf-8"), encoding="utf-8")
    assert main(COMMAND) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 of 3 are graded already.\n[3/3] bob: 3 of 12 points\n")
    assert [row["points"] for row in table(tmp_path).values()] == ["7", "3", "7"]
    (handed / "eve.ipynb").unlink()
    assert main([*COMMAND, "--regrade"]) == 0
    assert [row["points"] for row in table(tmp_path).values()] == ["3", "3"]


@pytest.mark.parametrize("change", ["lab", "rooflab", "isolated", "status", "no JSON", "no file"])
def test_an_older_grade_does_not_count(graded, change):
    batch, found = graded
    path = batch._file(found["ada"], "json")
    result = json.loads(path.read_text(encoding="utf-8"))
    assert batch.known(found["ada"]) == result and batch.known(found["bob"]) is None, "bob's notebook cannot be read"
    if change in result["graded_by"]:
        result["graded_by"][change] = "another"
    elif change in result:
        result[change] = TRUSTED if change == "isolated" else "running"
    path.write_text("{" if change == "no JSON" else json.dumps(result), encoding="utf-8")
    if change == "no file":
        path.unlink()
    assert batch.known(found["ada"]) is None


@pytest.mark.parametrize("compiler, pending, left_alone", [(True, 0, True), (False, 4, True), (True, 4, False)])
def test_with_a_compiler_what_was_pending_is_graded_again(graded, monkeypatch, compiler, pending, left_alone):
    batch, found = graded
    path = batch._file(found["ada"], "json")
    result = json.loads(path.read_text(encoding="utf-8")) | {"pending": pending}
    path.write_text(json.dumps(result), encoding="utf-8")
    monkeypatch.setattr(kernel, "can_run", lambda: compiler)
    assert (batch.known(found["ada"]) is not None) == left_alone


def test_one_that_takes_too_long_is_ended(handed, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(batch, "START_S", -1000.0)
    assert main(COMMAND) == 1
    assert "ada: not graded. Grading took longer than" in capsys.readouterr().out


@pytest.mark.slow
def test_a_notebook_that_goes_during_the_run_costs_only_its_own_grade(handed, tmp_path, monkeypatch):
    origin = Batch.with_seed

    def gone(batch, one):
        (handed / "ada.ipynb").unlink(missing_ok=True)
        return origin(batch, one)

    monkeypatch.setattr(Batch, "with_seed", gone)
    assert main(COMMAND) == 1
    rows = table(tmp_path)
    assert rows["ada"]["why"].startswith("ada.ipynb was there when the run began, and is gone now.")
    assert rows["eve"]["status"] == "done"


@pytest.mark.slow
def test_a_command_that_dies_costs_only_its_own_grade(handed, tmp_path, capsys, monkeypatch):
    dies = tmp_path / "python"
    dies.write_text(
        f'#!/bin/sh\ncase "$*" in *eve.ipynb*) kill -9 $$;; *) exec {sys.executable} "$@";; esac\n', encoding="utf-8"
    )
    dies.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(dies))
    assert main(COMMAND) == 1
    said = capsys.readouterr().out
    assert "ada: 3 of 12 points" in said and "eve: not graded. The command ended with exit code -9." in said


def commands():
    """The command lines of all processes of this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes().decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_goes_on(handed, tmp_path, how):
    text = (handed / "ada.ipynb").read_text(encoding="utf-8")
    (handed / "bob.ipynb").write_text(text, encoding="utf-8")
    slow = text.replace("corner = 50.39", "import time; time.sleep(50)")
    (handed / "eve.ipynb").rename(last := handed / f"eve{os.getpid()}.ipynb")  # no other test's process names it
    last.write_text(slow, encoding="utf-8")
    command = [sys.executable, "-m", "rooflab", *COMMAND]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),  # what a shell runs behind it ignores Ctrl-C
    )
    for _ in range(2):
        assert "3 of 12 points" in run.stdout.readline()
    time.sleep(0.5)
    assert any(last.name in command for command in commands())
    run.send_signal(how)
    _, said = run.communicate(timeout=30)
    assert not any(last.name in command for command in commands())
    assert run.returncode == 130 and said == "Stopped. The same command goes on from here.\n"
    assert {path.name for path in (tmp_path / "grades").iterdir()} == {"ada.json", "ada.html", "bob.json", "bob.html"}
    last.write_text(text, encoding="utf-8")
    assert main(COMMAND) == 0
    assert [row["points"] for row in table(tmp_path).values()] == ["3", "3", "3"]


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["lab9", "nowhere"], "There is no file or folder nowhere."),
        (["lab8", "handed"], "There is no lab8 here: name the folder of lab sources with --labs"),
        (["lab9", "empty"], "empty holds no notebook of lab9."),
        (["lab9", "handed/eve.ipynb"], "eve.ipynb cannot be unpacked"),
        (["lab9", "handed", "--output", "x/../handed"], "handed is what was handed in: name another folder with"),
        (
            ["lab9", "handed", "--output", "handed/eve.ipynb"],
            "rooflab grade: no folder can be written: handed/eve.ipynb.",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(handed, tmp_path, capsys, arguments, why):
    (tmp_path / "empty").mkdir()
    assert main(["grade", *arguments, "--labs", str(SOURCE.parent), *GRADE[2:]]) == 2
    said = capsys.readouterr().err
    assert said.startswith(why) and said.count("\n") == 1


@pytest.mark.parametrize("option", ["", "--manual", "--roster"])
def test_a_pipe_is_not_waited_for(handed, tmp_path, capsys, option):
    os.mkfifo(tmp_path / "pipe")
    words = ["lab9", "handed", option, "pipe"] if option else ["lab9", "pipe"]
    assert main(["grade", *words, "--labs", str(SOURCE.parent), *GRADE[2:]]) == 2
    assert "pipe cannot be" in (said := capsys.readouterr().err) and "a pipe, a socket or a device" in said


def test_a_full_disk_behind_the_output_is_one_sentence(handed, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(grade, "_grade", full)
    assert main(COMMAND) == 2
    assert capsys.readouterr().err == "rooflab grade: No space left on device.\n"


@pytest.mark.parametrize(
    "words, options",
    [
        (["--slurm", "--mem-per-cpu=4G"], "--mem-per-cpu=4G"),
        (["--slurm", "--partition=short --time=60", "--chunk", "2"], "--partition=short --time=60"),
        (["--slurm", "--partition=short", "--time=60", "-j", "2"], "--partition=short --time=60"),
        (["--slurm", "-pshort"], "-pshort"),
        (["--slurm", "--gpus=1", "--gpu"], "--gpus=1"),
        (["--slurm", "--exclusive"], "--exclusive"),
        (["--slurm=--mem-per-cpu=4G"], "--mem-per-cpu=4G"),
        (["--slurm", "-j2"], ""),
        (["--slurm", "--due=2026-01-31"], ""),
        (["--slurm"], ""),
    ],
)
def test_options_of_sbatch(words, options, monkeypatch):
    told = []
    monkeypatch.setattr("rooflab.cli.grade.main", told.append)
    monkeypatch.setattr("rooflab.cli._COMMANDS", (("grade", grade, "Grade."),))
    main([*COMMAND[:3], *words])
    assert told[0].slurm == options and told[0].submissions == Path("handed")


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5"])
def test_a_number_of_jobs(capsys, jobs):
    with pytest.raises(SystemExit):
        main([*COMMAND, f"--jobs={jobs}"])
    assert "expected a whole number of 1 or more" in capsys.readouterr().err
