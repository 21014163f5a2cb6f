"""`rooflab lab check | run | grade`: one notebook is graded.

A grade is printed and saved before its report is made, so that it is not lost if the report fails.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rooflab.cli.progress import working_on
from rooflab.grading.jail import jail
from rooflab.grading.lab import model as labs
from rooflab.grading.lab import students
from rooflab.grading.lab.model import Lab, LabError
from rooflab.grading.lab.printable import printable

INCOMPLETE = 3
NO_SOURCES = "here: name the folder of lab sources with --labs; in a checkout it is notebooks/source"


def check_notebook(arguments: argparse.Namespace) -> int:
    """Run the public tests of a notebook: those that it holds, or those of a folder of sources."""
    from rooflab.grading.lab.repair import read_submission

    lab = students.from_notebook(arguments.notebook)
    if arguments.labs:
        paths = labs.find_sources(arguments.labs)
        known = paths if not lab.questions else [labs.pick(paths, lab.name, NO_SOURCES)]
        public = [labs.public_half(labs.from_source(path)) for path in known]
        lab = public[0] if lab.questions else students.by_text(arguments.notebook, public) or lab
    if not lab.questions:
        raise LabError(f"{arguments.notebook.name} holds no test cell of a lab.")
    submission = read_submission(lab, arguments.notebook)
    print(f"Public tests of {lab.title}")
    if edited := students.edited_tests(lab):
        which = "; ".join(map(labs.named, edited))
        print(f"Tests that were changed: {which}. A grade rests on those that were handed out.")
    grade, saved = _grade(lab, submission, arguments, isolated=None)
    if not saved:
        return INCOMPLETE
    return 0 if grade.full else 1


def grade_notebook(arguments: argparse.Namespace) -> int:
    """Run all tests of a student's notebook, in the judge. Its code runs in the jail, unless it is trusted."""
    from rooflab.grading.classroom import marking, report
    from rooflab.grading.lab import repair

    try:
        lab = _with_answers(arguments)
        submission = repair.read_submission(lab, arguments.notebook)
        manual = marking.read_manual(arguments.manual, lab) if arguments.manual else {}
        by_hand = marking.of(manual, arguments.notebook.stem)
        if arguments.manual and not by_hand:
            stem = printable(arguments.notebook.stem)
            print(f"{arguments.manual.name} gives nothing to {stem}, as the notebook's file is named.", file=sys.stderr)
        arguments.output.mkdir(parents=True, exist_ok=True)  # for all that is written
        print(f"Grading {printable(arguments.notebook.name)} for {lab.title}")
        grade, saved = _grade(lab, submission, arguments, not arguments.trusted, by_hand)
    except LabError as error:
        if arguments.gradescope:
            arguments.output.mkdir(parents=True, exist_ok=True)
            report.write_gradescope_failure(arguments.gradescope, printable(str(error), lines=True))
        raise

    def make(page: Path) -> None:
        report.write_html(grade, repair.as_notebook(submission), page, trusted=False)

    if place := arguments.gradescope:
        saved &= _done(lambda: grade.write_gradescope(place), f"{place.name} was not written")
    return 0 if _reported(make, arguments, arguments.notebook.stem) and saved else INCOMPLETE


def run_lab(arguments: argparse.Namespace) -> int:
    """Grade the solved notebook, execute it and write a report, in the jail. The code is the lab's own, so where there
    can be no jail it runs without one, and a line says so.
    """
    from rooflab.grading.classroom import report
    from rooflab.grading.judge import execute
    from rooflab.grading.lab import release, repair

    isolated = not arguments.trusted and jail.refusal() is None
    if not (isolated or arguments.trusted):
        print(f"The lab's own code runs without isolation. {jail.refusal()}", file=sys.stderr)
    lab = _with_answers(arguments)
    arguments.output.mkdir(parents=True, exist_ok=True)  # for all that is written
    notebook = release.build(lab, solved=True)
    print(f"Grading {lab.title}", flush=True)
    grade, saved = _grade(lab, repair.reference(lab), arguments, isolated)
    failed: list[str] = []

    def make(page: Path) -> None:
        print("Running the notebook for the report", flush=True)
        failed.extend(execute.execute(lab, notebook, str(page.parent), print, working_on, isolated))
        report.write_html(grade, notebook, page, trusted=True)

    reported = _reported(make, arguments, lab.stem)
    for line in failed:
        print(line, file=sys.stderr)
    if not (reported and saved):
        return INCOMPLETE
    return 0 if grade.full and not failed else 1


def _with_answers(arguments: argparse.Namespace) -> Lab:
    return labs.from_source(labs.pick(labs.find_sources(arguments.labs), arguments.lab, NO_SOURCES))


def _grade(
    lab: Lab,
    submission: Any,
    arguments: argparse.Namespace,
    isolated: bool | None,
    by_hand: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """Grade with a line of progress per question, then print the table. Also returns whether the JSON was saved."""
    from rooflab.grading.classroom import marking
    from rooflab.grading.classroom.report import Grade, table
    from rooflab.grading.jail import cgroup
    from rooflab.grading.judge.judge import Judge
    from rooflab.grading.lab import fingerprint

    name = arguments.notebook.name if "notebook" in arguments else lab.stem
    grade = Grade(lab, name, submission.repairs, [], submission.findings, isolated=isolated)
    grade.by_hand = by_hand or {}
    grade.limited = cgroup.note() if isolated else ""
    grade.sha256 = fingerprint.taken(lab.folder)
    judge = Judge(lab, trusted=not isolated, seed=getattr(arguments, "seed", None))
    grade.seed = judge.seed
    results = judge.grade(submission)
    try:
        for number, question in enumerate(lab.questions, 1):
            place = f"[{number}/{len(lab.questions)}]"
            with working_on(f"{place} {labs.label(question)}"):
                result = next(results)
            grade.results.append(result)
            more = f", {result.pending} pending" * bool(result.pending) + f". {result.lost}" * bool(result.lost)
            print(f"{place} {result.label}: {result.earned} of {result.points}{more}", flush=True)
            if arguments.json:
                with contextlib.suppress(OSError):  # the last write reports it
                    grade.write_json(arguments.json)
        if fingerprint.taken(lab.folder) != grade.sha256:
            raise LabError(f"rooflab or the source of {lab.name} changed during the grading: grade again.")
    except BaseException:
        if grade.results and arguments.json:
            with contextlib.suppress(OSError):
                arguments.json.unlink()  # part of a grade would look like a bad grade
        raise
    grade.by_hand, left_out = marking.fitting(grade.by_hand, grade.to_dict()["questions"], lab)
    if left_out:
        print(left_out, file=sys.stderr)
    grade.done = True
    saved = True
    if arguments.json:
        saved = _done(lambda: grade.write_json(arguments.json), f"{arguments.json.name} was not written")
    print("\n" + table(grade), flush=True)
    return grade, saved


def report_names(arguments: argparse.Namespace) -> list[str]:
    """What the report may be called: as the student's notebook, or as that of the lab."""
    if "notebook" in arguments:
        return [f"{glob.escape(arguments.notebook.stem)}.html"]
    return [f"{glob.escape(arguments.lab.split('_')[0])}_*.html"]


def _reported(make: Callable[[Path], None], arguments: argparse.Namespace, stem: str) -> bool:
    """Whether `make` could write the report."""
    page = arguments.output / f"{stem}.html"

    def write() -> None:
        make(page)
        print(f"Report: {shown(page)}")

    return _done(write, "there is no report")


def _done(step: Callable[[], None], else_say: str) -> bool:
    """Take a step that comes after the grade. The grade stays, whatever a library raises there."""
    try:
        step()
    except Exception as error:
        print(f"The grade stands, but {else_say}: {printable(reason(error))}.", file=sys.stderr)
        return False
    return True


def reason(error: Exception) -> str:
    """What went wrong, in a few words."""
    if isinstance(error, ImportError) and error.name:
        return f"{error.name} is missing: install it with pip install 'rooflab[labs]'"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return f"{type(error).__name__}: {labs.first_line(error)}"


def shown(path: Path) -> str:
    """A path as it is printed: without the folders of an absolute one."""
    return printable(str(path) if not path.is_absolute() else path.name)
