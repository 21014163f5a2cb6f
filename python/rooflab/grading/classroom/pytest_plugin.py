"""Notebooks graded by pytest, a test for each question.

    pytest -p rooflab.grading.classroom.pytest_plugin --lab lab1 my.ipynb

The tests are those of the lab's sources, hidden ones too, where the sources are (`--lab-sources DIR`, or those
beside the package). Otherwise they are the public ones that the notebook holds, and a warning says so. A question
passes with all its points; `--junitxml` has the points.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PUBLIC_ALONE = (
    "no lab sources are here, so only the public tests of the notebook run; --lab-sources DIR names the sources"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options `--lab`, `--lab-sources` and `--lab-trusted`."""
    group = parser.getgroup("rooflab", "labs of rooflab")
    group.addoption("--lab", metavar="NAME", help="grade notebooks for this lab, for example lab1")
    group.addoption(
        "--lab-sources", metavar="DIR", type=Path, help="folder of lab sources (default: those beside the package)"
    )
    group.addoption("--lab-trusted", action="store_true", help="run the student's code without isolation")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Notebooks are tests where `--lab` asks for it."""
    if file_path.suffix == ".ipynb" and parent.config.getoption("--lab"):
        return Notebook.from_parent(parent, path=file_path)
    return None


class Notebook(pytest.File):
    """A student's notebook: its questions are the tests."""

    def collect(self) -> Iterator[Question]:
        from rooflab.grading.judge.judge import Judge
        from rooflab.grading.lab import model as labs
        from rooflab.grading.lab import students
        from rooflab.grading.lab.repair import read_submission

        name, folder = self.config.getoption("--lab"), self.config.getoption("--lab-sources")
        try:
            own = students.from_notebook(self.path)
            if folder or labs.find_sources(None):
                lab = labs.from_source(labs.pick(labs.find_sources(folder), name, "among the lab sources"))
            elif own.name != name:
                raise labs.LabError(f"{self.path.name} is a notebook of {own.name}, not of {name}.")
            else:
                lab = own
                self.warn(pytest.PytestWarning(PUBLIC_ALONE))
            judge = Judge(lab, trusted=self.config.getoption("--lab-trusted"))
            submission = read_submission(lab, self.path)
        except labs.LabError as error:
            raise self.CollectError(str(error)) from None
        for question in lab.questions:
            yield Question.from_parent(
                self, name=labs.label(question), key=question, judge=judge, submission=submission
            )


class Question(pytest.Item):
    """One question of a notebook."""

    def __init__(self, *, key: str, judge: Any, submission: Any, **rest: Any) -> None:
        super().__init__(**rest)
        self.key, self.judge, self.submission = key, judge, submission

    def runtest(self) -> None:
        result = self.judge.grade_question(self.key, self.submission)
        self.user_properties += [("points", result.earned), ("out_of", result.points), ("pending", result.pending)]
        if lost := list(dict.fromkeys(test.message for test in result.tests if test.message)):
            raise Lost(f"{result.earned} of {result.points} points\n" + "\n".join(lost))
        if result.pending:
            pytest.skip(f"{result.earned} of {result.points} points, {result.pending} pending")

    def repr_failure(self, excinfo: pytest.ExceptionInfo, *rest: Any) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Lost) else super().repr_failure(excinfo, *rest)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.path.name}: question {self.name}"


class Lost(Exception):
    """Points were lost; the message says why."""
