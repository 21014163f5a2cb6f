"""A grade comes before its report: a report that fails costs a sentence and exit code 3, and not the grade."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest
from grading.demo_lab import SOURCE

from rooflab.cli import main
from rooflab.grading import execute

LABS = ["--labs", str(SOURCE.parent)]


def no_exporter(monkeypatch, place):
    monkeypatch.setitem(sys.modules, "nbconvert", None)
    return "nbconvert is missing, and pip install 'rooflab[labs]' brings it"


def no_template(monkeypatch, place):
    def missing(*_):
        raise ValueError("No template sub-directory with name 'lab' found in the following paths:\n\t/usr/share")

    monkeypatch.setattr("nbconvert.HTMLExporter.get_template_names", missing)
    return "ValueError: No template sub-directory with name 'lab' found"


def no_folder(monkeypatch, place):
    (place / "out").touch()
    return "File exists: "


def full_disk(monkeypatch, place):
    (place / "out").mkdir()
    write = Path.write_text

    def fills(path, text, **options):
        if "html" not in path.name:
            return write(path, text, **options)
        write(path, text[:100], **options)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", fills)
    return "No space left on device"


@pytest.mark.parametrize("fails", [no_exporter, no_template, no_folder, full_disk])
@pytest.mark.parametrize("action", ["run", "grade"])
def test_the_grade_stays(tmp_path, capsys, monkeypatch, action, fails):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    said = fails(monkeypatch, tmp_path)
    notebook = [str(tmp_path / "lab9_demo.ipynb")] if action == "grade" else []
    places = ["--output", str(tmp_path / "out"), "--json", str(tmp_path / "g")]
    assert main(["lab", action, "lab9", *notebook, *LABS, *places]) == 3
    captured = capsys.readouterr()
    assert " of 12 points" in captured.out and "Report:" not in captured.out
    assert captured.err.startswith("The grade stands, but there is no report: " + said)
    assert captured.err.count("\n") == 1
    assert json.loads((tmp_path / "g").read_text())["status"] == "done"
    assert not list(tmp_path.glob("out/*.html*")), "half a page is left"


def test_a_run_is_graded_before_its_kernel_can_die(tmp_path, capsys, monkeypatch):
    def dies(*_):
        assert json.loads((tmp_path / "g").read_text())["full_marks"]
        raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(execute, "execute", dies)
    assert main(["lab", "run", "lab9", *LABS, "--output", str(tmp_path), "--json", str(tmp_path / "g")]) == 3
    captured = capsys.readouterr()
    assert "12 of 12 points" in captured.out and "RuntimeError: Kernel died" in captured.err


@pytest.mark.parametrize("action", ["run", "grade"])
def test_a_file_of_results_that_cannot_be_written(tmp_path, capsys, action):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    notebook = [str(tmp_path / "lab9_demo.ipynb")] if action == "grade" else []
    assert main(["lab", action, "lab9", *notebook, *LABS, "--output", str(tmp_path), "--json", "/dev/null/g"]) == 3
    captured = capsys.readouterr()
    assert " of 12 points" in captured.out and "Report:" in captured.out
    assert captured.err == "The grade stands, but g was not written: Not a directory: /dev/null/g.part.\n"
