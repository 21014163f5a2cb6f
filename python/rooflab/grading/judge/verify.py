"""Is a lab fit to be handed out? Its solutions and other right answers must earn all points, and wrong answers must
lose some. The unsolved notebook must earn nothing, and hold nothing secret.

Other answers lie in a folder of the instructor's, in one file `labN_answers.py` per lab. It has two dicts, RIGHT and
WRONG, which map the grade_id of a solution cell to pairs of a label and the code that replaces the cell.
"""

from __future__ import annotations

import multiprocessing
import runpy
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release, repair
from rooflab.grading.lab.model import Lab, LabError, from_source, label
from rooflab.results import ResultMixin, Table

ENOUGH = 4  # wrong answers that a question should have, if it has any
COLUMNS = ("question", "points", "solution", "right", "wrong", "unsolved")


@dataclass(frozen=True)
class Case:
    """One answer to one question: `kind` is solution, right, wrong or unsolved; `code` replaces the cell `grade_id`."""

    question: str
    kind: str
    label: str = ""
    grade_id: str = ""
    code: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a case earned and could earn, what the tests said, and the seed of their inputs."""

    case: Case
    earned: int
    points: int
    pending: int
    said: str = ""
    seed: int = 0

    @property
    def as_expected(self) -> bool:
        if self.case.kind == "unsolved":
            return self.earned == 0
        lost = self.earned < self.points
        return lost == (self.case.kind == "wrong") or (self.pending > 0 and not lost)

    def __str__(self) -> str:
        name = " ".join((label(self.case.question), self.case.kind, *filter(None, [self.case.label])))
        return f"{name}: {self.earned} of {self.points} points with seed {self.seed}. {self.said}".strip()


@dataclass
class Report(ResultMixin):
    """The outcomes of a lab. `leak` says which secret is in its notebook, if any."""

    lab: Lab
    leak: str = ""
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.leak and all(outcome.as_expected for outcome in self.outcomes)

    def _figures(self) -> Table:
        return Table(COLUMNS, [_row(question, self) for question in self.lab.questions], labels=1)

    def to_dict(self) -> dict[str, Any]:
        """The lab's name, what leaks, and the outcomes without the code of the answers."""
        outcomes = [
            {"question": label(one.case.question), "kind": one.case.kind, "label": one.case.label, "earned": one.earned,
             "points": one.points, "pending": one.pending, "said": one.said, "seed": one.seed}
            for one in self.outcomes
        ]  # fmt: skip
        return {"lab": self.lab.name, "leak": self.leak, "outcomes": outcomes}

    def __str__(self) -> str:
        return table(self)


def cases(lab: Lab, answers: Path | None) -> list[Case]:
    """All cases of a lab, question by question; without `answers` only the solutions and the unsolved notebook.

    Raises
    ------
    LabError
        The file of answers fails, or names a cell that the lab does not have or whose question has no tests.
    """
    found = [Case(question, kind) for question in lab.questions for kind in ("solution", "unsolved")]
    cells = {cell.key: cell for cell in lab.cells if cell.role == "solution"}
    for kind, by_cell in _read(answers, lab.name).items():
        for grade_id, entries in by_cell.items():
            if grade_id not in cells:
                raise LabError(f"The answers name the solution cell {grade_id}, which {lab.name} does not have.")
            if cells[grade_id].question not in lab.questions:
                raise LabError(f"The answers name the solution cell {grade_id}, but its question has no tests.")
            found += [Case(cells[grade_id].question, kind, name, grade_id, code) for name, code in entries]
    return sorted(found, key=lambda case: lab.questions.index(case.question))


class Verifier:
    """Grades cases of one lab, each as a student's notebook is graded."""

    def __init__(self, lab: Lab, trusted: bool = False) -> None:
        self.judge = Judge(lab, trusted)
        cells = [cell if cell.locked else replace(cell, source=cell.public) for cell in lab.cells]
        self.unsolved = repair.Submission(cells, [None] * len(cells), [])

    def outcome(self, case: Case) -> Outcome:
        """What the case earns."""
        whole = self.unsolved if case.kind == "unsolved" else repair.reference(self.judge.lab)
        if case.grade_id:
            cells = [replace(one, source=case.code) if one.key == case.grade_id else one for one in whole.cells]
            whole = replace(whole, cells=cells)
        result = self.judge.grade_question(case.question, whole)
        said = next((test.message for test in result.tests if test.message), "")
        return Outcome(case, result.earned, result.points, result.pending, said, self.judge.seed)


def verify(lab: Lab, todo: Sequence[Case], trusted: bool, jobs: int) -> Generator[Outcome]:
    """The outcomes of the cases, `jobs` at a time."""
    assert lab.folder
    if jobs == 1:
        yield from map(Verifier(lab, trusted).outcome, todo)
        return
    arguments = (str(lab.folder), trusted)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare, arguments) as pool:
        try:
            yield from pool.map(_in_process, todo)
        finally:
            pool.shutdown(cancel_futures=True)


def leak(lab: Lab) -> str:
    """What is wrong with the student notebook, or nothing."""
    try:
        release.build(lab)
    except LabError as error:
        return str(error)
    return ""


def table(report: Report) -> str:
    """One line per question: its points, those of the solution and of the unsolved notebook, how many right answers
    earned all points, and how many wrong ones lost some. Cases that did not come out as expected are listed below.
    """
    lines = report._figures().lines()
    few = [label(one) for one in report.lab.questions if 0 < _count(report, one)["wrong"] < ENOUGH]
    if all(one.case.kind in ("solution", "unsolved") for one in report.outcomes):
        lines += ["neither right nor wrong answers were graded"]
    lines += [f"fewer than {ENOUGH} wrong answers: {', '.join(few)}"] * bool(few)
    lines += [report.leak or "nothing secret is in the notebook"]
    return "\n".join([*lines, *(f"NOT AS EXPECTED: {one}" for one in report.outcomes if not one.as_expected)])


def _count(report: Report, question: str) -> Counter[str]:
    return Counter(one.case.kind for one in report.outcomes if one.case.question == question)


def _row(question: str, report: Report) -> tuple[str, ...]:
    ours = [one for one in report.outcomes if one.case.question == question]
    good = Counter(one.case.kind for one in ours if one.as_expected)
    all_of = _count(report, question)
    points = sum(cell.points for cell in report.lab.tests(question))
    pending = " (pending)" * any(one.pending for one in ours)
    words = {kind: f"{good[kind]} of {all_of[kind]}" if all_of[kind] else "-" for kind in ("right", "wrong")}
    earned = {one.case.kind: str(one.earned) for one in ours}
    return (
        *(label(question), f"{points}{pending}", earned.get("solution", "-")),
        *(words["right"], words["wrong"], earned.get("unsolved", "-")),
    )


def _read(folder: Path | None, name: str) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """The right and the wrong answers to a lab, by grade_id."""
    path = folder / f"{name}_answers.py" if folder else None
    if not path or not path.exists():
        return {}
    sys.path.insert(0, str(path.parent.parent))  # the file may import others of its folder, as a package
    try:
        made = runpy.run_path(str(path))
        found = {kind: dict(made[kind.upper()]) for kind in ("right", "wrong")}
        pairs = [pair for answers in found.values() for entries in answers.values() for pair in entries]
        if not all(isinstance(pair, tuple) and [type(one) for one in pair] == [str, str] for pair in pairs):
            raise TypeError("RIGHT and WRONG map a grade_id to a list of pairs of a label and code")
        return found
    except Exception as error:
        raise LabError(f"{path.name} fails: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)


_held: list[Verifier] = []  # the one verifier of a process of the pool


def _prepare(folder: str, trusted: bool) -> None:
    _held.append(Verifier(from_source(Path(folder)), trusted))


def _in_process(case: Case) -> Outcome:
    return _held[0].outcome(case)
