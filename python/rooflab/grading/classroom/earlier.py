"""The results of an earlier run: whose they are, which lab's, and what of them a later run would lose."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from rooflab.grading.classroom import marking, report, slurm
from rooflab.grading.classroom.archives import is_notebook, is_zip, theirs
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.marking import Manual
from rooflab.grading.classroom.submissions import Handed, some, suffixed
from rooflab.grading.lab.model import Lab, LabError

LEFT = (".csv", ".json", ".log", ".out", ".err")  # files that a run leaves


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
    """The folders in the folder of a class that hold results, or folders of results and no notebook beside them."""
    return [place for place in sorted(folder.glob("*/")) if _is_results(place) or _holds_results(place)]


def _is_results(folder: Path) -> bool:
    return next(graded_in(folder), None) is not None and not _holds(folder, _may_be_graded)


def _holds_results(folder: Path) -> bool:
    inside = [path for path in folder.glob("*") if theirs((path.name,))]
    folders = [path for path in inside if path.is_dir()]
    return bool(folders) and all(map(_is_results, folders)) and not any(map(_may_be_graded, {*inside} - {*folders}))


def _holds(folder: Path, is_work: Callable[[Path], bool]) -> bool:
    """Whether there is a file in which a student may have handed in something. Slurm's folder has copies of these."""
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            parts = path.relative_to(folder).parts
            if theirs(parts) == parts and parts[0] != slurm.FOLDER and is_work(path):
                return True
    return False


def _may_be_graded(path: Path) -> bool:
    """Whether a file may be a notebook, or a zip with one."""
    if is_zip(path.name) and path.is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                return any(is_notebook(name) or is_zip(name) for name in archive.namelist())
        except Exception:  # whatever it is, a student may have handed it in
            return True
    return is_notebook(path.name) or is_zip(path.name)


def _is_work(path: Path) -> bool:
    """Whether a file may be a student's and is none that a run leaves."""
    kind = path.suffix.casefold()
    if kind == ".html" and path.is_file():
        return not (
            path.name == "findings.html" or report.BY_HAND[0] in path.read_text(encoding="utf-8", errors="replace")
        )
    return _may_be_graded(path) if is_zip(path.name) else kind not in LEFT


def check_output(output: Path, lab: Lab, inside: Path | None) -> None:
    """Refuse a folder whose files the results would replace, or hide; `inside` is where it lies in that of the class.

    Raises
    ------
    LabError
        It holds the results of another lab, or no results and what a student may have handed in.
    """
    labs = {name for name, _ in graded_in(output)}
    if other := next(iter(sorted(labs - {lab.name})), ""):
        raise LabError(
            f"{output} holds grades of {other}, and {lab.name} is graded: name another folder with --output."
        )
    if inside and not labs and _holds(inside, _is_work):
        raise LabError(f"{output} holds files that are not results: name another folder with --output.")


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


def renamed(batch: Batch, handed: Iterable[Handed]) -> dict[str, str]:
    """Who had a name without a suffix in an earlier run, by that name: one student alone with the same notebook."""
    of = {one.student: one for one in handed}
    found = {}
    for _, name in graded_in(batch.folder):
        result = batch.read(Handed(name, None)) if name not in of else {}
        same = [new for new in suffixed(name, of) if of[new].path and batch.is_of(result, of[new])]
        if len(same) == 1:
            found[name] = same[0]
    return found


def gone(output: Path, students: Collection[str]) -> list[str]:
    """A sentence about the results of students who are not in the class now. Their files stay."""
    left = [student for _, student in graded_in(output) if student not in students]
    return [f"{output} also holds results of students who are not in the class now: {some(left)}."] if left else []


def _students(count: int) -> str:
    return "1 student" if count == 1 else f"{count} students"
