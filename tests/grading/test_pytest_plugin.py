"""`pytest --lab lab9 my.ipynb`, each run in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from grading.demo_lab import SOURCE, TRUSTED

import rooflab
from rooflab.cli import main

LABS = ["--lab-sources", str(SOURCE.parent)]


@pytest.fixture
def student(tmp_path, capsys):
    """A notebook with one answer that is right and one that only the hidden tests refuse."""
    assert main(["lab", "build", "--labs", LABS[1], "--output", str(tmp_path)]) == 0
    path = tmp_path / "lab9_demo.ipynb"
    text = path.read_text(encoding="utf-8").replace("corner = None  # your number", "corner = 51.0")
    path.write_text(text, encoding="utf-8")
    capsys.readouterr()
    return path


def run(*arguments, cwd, place=Path(rooflab.__file__).parents[1]):
    """Run pytest where there are no lab sources. The plugin is named, because the package may not be installed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "rooflab.grading.classroom.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    environment = os.environ | {"PYTHONPATH": str(place), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    trust = ["--lab-trusted"] * TRUSTED
    return subprocess.run([*command, *arguments, *trust], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_one_test_a_question(student, tmp_path):
    done = run("--lab", "lab9", *LABS, student.name, "-rA", "--junitxml=points.xml", cwd=tmp_path)
    assert done.returncode == 1 and "4 failed" in done.stdout, done.stdout + done.stderr
    assert "0 of 3 points\nhidden: wrong corner" in done.stdout and "Traceback" not in done.stdout
    cases = ElementTree.parse(tmp_path / "points.xml").findall(".//testcase")
    found = {case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")} for case in cases}
    assert found["2.1"] == {"points": "0", "out_of": "3", "pending": "0"} and len(found) == 4
    student.write_text(student.read_text(encoding="utf-8").replace("51.0", "50.39"), encoding="utf-8")
    assert "1 passed" in run("--lab", "lab9", *LABS, student.name, cwd=tmp_path).stdout


@pytest.mark.slow
def test_a_notebook_that_is_none(tmp_path):
    (tmp_path / "my.ipynb").write_text("{", encoding="utf-8")
    done = run("--lab", "lab9", *LABS, "my.ipynb", cwd=tmp_path)
    assert done.returncode == 2 and "my.ipynb is not a notebook: it is not JSON." in done.stdout
    done = run("--lab", "lab8", *LABS, "my.ipynb", cwd=tmp_path)
    assert done.returncode == 2


@pytest.mark.slow
def test_a_lab_that_there_is_not(student, tmp_path):
    done = run("--lab", "lab8", *LABS, student.name, cwd=tmp_path)
    assert done.returncode == 2 and "There is no lab8 among the lab sources (found: lab9)." in done.stdout


@pytest.mark.slow
def test_without_sources_the_public_tests_run_and_it_says_so(student, tmp_path):
    assert "--lab-sources" not in run("--lab", "lab9", *LABS, student.name, cwd=tmp_path).stdout
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "rooflab").symlink_to(Path(rooflab.__file__).parent)  # no checkout lies around it
    done = run("--lab", "lab9", student.name, cwd=tmp_path, place=tmp_path / "site")
    assert "3 failed, 1 passed" in done.stdout, "one is wrong only for the hidden tests\n" + done.stdout
    assert "only the public tests of the notebook run; --lab-sources DIR names" in done.stdout


def test_without_the_option_notebooks_are_no_tests(student, tmp_path):
    assert run(cwd=tmp_path).returncode == 5, "nothing is collected"
