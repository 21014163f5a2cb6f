"""The results of an earlier run: whose they are, which lab's, and what of them a later run would lose."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from rooflab.grading.classroom import marking, slurm
from rooflab.grading.classroom.archives import is_notebook, is_zip
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.marking import Manual
from rooflab.grading.classroom.submissions import Handed, some
from rooflab.grading.lab.model import Lab, LabError


def graded_in(folder: Path) -> Iterator[tuple[str, str]]:
    """The lab and the student of each result that lies in a folder."""
    for path in sorted(folder.glob("*.json")):
        try:
            result: Any = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(result, dict) and "graded_by" in result and "lab" in result:
            yield str(result["lab"]), str(result.get("student"))


def results_in(folder: Path) -> list[Path]:
    """The folders in the folder of a class that hold results, or folders of results and nothing else."""
    return [
        place
        for place in sorted(folder.glob("*/"))
        if _is_results(place) or ((inside := list(place.glob("*"))) and all(map(_is_results, inside)))
    ]


def _is_results(folder: Path) -> bool:
    return next(graded_in(folder), None) is not None and not _holds_work(folder)


def _holds_work(folder: Path) -> bool:
    """Whether there is a file in which a student may have handed in something. Slurm's folder has copies of these."""
    for place, _, names in os.walk(folder):
        is_copy = Path(place).relative_to(folder).parts[:1] == (slurm.FOLDER,)
        if not is_copy and any(is_notebook(name) or is_zip(name) for name in names):
            return True
    return False


def check_output(output: Path, lab: Lab, inside: Path | None) -> None:
    """Refuse a folder whose files the results would replace, or hide; `inside` is where it lies in that of the class.

    Raises
    ------
    LabError
        It holds the results of another lab, or what a student handed in.
    """
    if other := next((name for name, _ in graded_in(output) if name != lab.name), ""):
        raise LabError(
            f"{output} holds grades of {other}, and {lab.name} is graded: name another folder with --output."
        )
    holds = {path.name for path in inside.glob("*")} - {slurm.FOLDER} if inside else set()
    if inside and holds and not _is_results(inside):
        raise LabError(f"{output} is part of what was handed in: name another folder with --output.")


def lost(batch: Batch, handed: Iterable[Handed], manual: Manual, percent: float) -> list[str]:
    """A sentence if students had points by hand, or lost some for lateness, that this run does not give or take."""
    by_hand = late = 0
    for one in handed:
        result = batch.read(one)
        by_hand += bool(result.get("manual") or result.get("comments")) and not marking.of(manual, one.student)
        late += bool(result.get("late_penalty")) and not percent
    kept = f"{_students(by_hand)} had points or comments by hand before: to keep them, name their file with --manual."
    taken = f"{_students(late)} lost points for lateness before: to take them off again, name --due and --late-penalty."
    return [kept] * bool(by_hand) + [taken] * bool(late)


def gone(output: Path, students: Collection[str]) -> list[str]:
    """A sentence about the results of students who are not in the class now. Their files stay."""
    left = [student for _, student in graded_in(output) if student not in students]
    return [f"{output} also holds results of students who are not in the class now: {some(left)}."] if left else []


def _students(count: int) -> str:
    return "1 student" if count == 1 else f"{count} students"
