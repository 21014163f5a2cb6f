"""`rooflab lab list | build | check | run | grade`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooflab.grading import lab as labs
from rooflab.grading.lab import Lab, LabError

NEEDED = ("jupytext", "nbformat", "nbclient", "nbconvert", "ipykernel")
NO_SOURCES = "here: run in a checkout of rooflab, or give the folder of its sources with --labs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommands of `rooflab lab`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, run: Callable[[argparse.Namespace], int], text: str, sources: bool = True) -> Any:
        one = actions.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        if sources:
            one.add_argument("--labs", type=Path, metavar="DIR", help="folder of lab sources (default: the checkout's)")
        return one

    action("list", list_labs, "List the labs.")
    build = action("build", build_labs, "Build student notebooks from their sources.")
    build.add_argument("lab", nargs="?", help="which (default: all)")
    build.add_argument("--output", type=Path, metavar="DIR", help="default: the folder above the sources")
    build.add_argument("--check", action="store_true", help="write nothing; fail if a notebook is stale")
    check = action("check", check_notebook, "Run the public tests on a notebook.", sources=False)
    run = action("run", run_lab, "Execute the solved notebook, grade it, write an HTML report.")
    grade = action("grade", grade_notebook, "Grade a student's notebook.")
    for one in (check, run, grade):
        one.add_argument("lab", help="for example lab1")
        if one is not run:
            one.add_argument("notebook", type=Path)
        one.add_argument("--json", type=Path, metavar="FILE", help="progress and results as JSON")
        if one is not check:
            one.add_argument("--output", type=Path, metavar="DIR", default=Path(), help="where the HTML report goes")


def main(arguments: argparse.Namespace) -> int:
    """Run one subcommand; an error of the user's is one sentence and exit code 2."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        print(f"The labs need {', '.join(missing)}: pip install 'rooflab[labs]' brings them.", file=sys.stderr)
        return 2
    try:
        return arguments.run(arguments)
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130


def list_labs(arguments: argparse.Namespace) -> int:
    """The labs there are, with questions and points."""
    sources = labs.find_sources(arguments.labs)
    found = [labs.from_source(path) for path in sources] or [labs.from_notebook(p) for p in labs.find_notebooks()]
    if not found:
        raise LabError("There are no labs " + NO_SOURCES + ".")
    for lab in found:
        bonus = f" + {lab.bonus} bonus" if lab.bonus else ""
        print(f"{lab.name:<8} {lab.title}  ({len(lab.questions)} questions, {lab.points}{bonus} points)")
    return 0


def build_labs(arguments: argparse.Namespace) -> int:
    """Student notebooks from the sources; with --check only whether they are current."""
    from rooflab.grading import release

    paths = labs.find_sources(arguments.labs)
    paths = [labs.pick(paths, arguments.lab, NO_SOURCES)] if arguments.lab else paths
    if not paths:
        raise LabError("There are no sources of labs " + NO_SOURCES + ".")
    stale = 0
    for path in paths:
        lab = labs.from_source(path)
        text = release.dumps(release.build(lab))
        target = (arguments.output or path.parent.parent) / f"{lab.stem}.ipynb"
        if arguments.check:
            fresh = target.exists() and target.read_text(encoding="utf-8") == text
            stale += not fresh
            print(f"{target.name}: {'up to date' if fresh else 'stale; run rooflab lab build'}")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"{target.name}: {len(lab.questions)} questions, {lab.points} points")
    return 1 if stale else 0


def check_notebook(arguments: argparse.Namespace) -> int:
    """The public tests of a notebook."""
    from rooflab.grading.repair import read_submission

    notebooks = labs.find_notebooks()
    lab = labs.from_notebook(labs.pick(notebooks, arguments.lab, "among the installed notebooks"))
    submission = read_submission(lab, arguments.notebook)
    print(f"Public tests of {lab.title}")
    return 0 if _grade(lab, submission, arguments).full else 1


def grade_notebook(arguments: argparse.Namespace) -> int:
    """All tests of a student's notebook, in the judge."""
    from rooflab.grading import repair, report

    lab = _with_answers(arguments)
    submission = repair.read_submission(lab, arguments.notebook)
    print(f"Grading {arguments.notebook.name} for {lab.title}")
    grade = _grade(lab, submission, arguments)
    page = _report_path(arguments, arguments.notebook.stem)
    report.write_html(grade, repair.as_notebook(submission), page, trusted=False)
    print(f"Report: {_shown(page)}")
    return 0


def run_lab(arguments: argparse.Namespace) -> int:
    """The solved notebook: executed, graded, reported."""
    from rooflab.grading import execute, release, repair, report

    lab = _with_answers(arguments)
    page = _report_path(arguments, lab.stem)
    notebook = release.build(lab, solved=True)
    print(f"Running {lab.title}", flush=True)
    failed = execute.execute(lab, notebook, str(arguments.output), print)
    print("Grading", flush=True)
    grade = _grade(lab, repair.reference(lab), arguments)
    report.write_html(grade, notebook, page, trusted=True)
    print(f"Report: {_shown(page)}")
    for line in failed:
        print(line, file=sys.stderr)
    return 0 if grade.full and not failed else 1


def _with_answers(arguments: argparse.Namespace) -> Lab:
    return labs.from_source(labs.pick(labs.find_sources(arguments.labs), arguments.lab, NO_SOURCES))


def _grade(lab: Lab, submission: Any, arguments: argparse.Namespace) -> Any:
    """Grade with a line of progress a question, then print the table."""
    from rooflab.grading.judge import Judge
    from rooflab.grading.report import Grade, table

    name = arguments.notebook.name if "notebook" in arguments else lab.stem
    grade = Grade(lab, name, submission.repairs)
    for result in Judge(lab).grade(submission):
        grade.results.append(result)
        print(
            f"[{len(grade.results)}/{len(lab.questions)}] {result.label}: {result.earned} of {result.points}",
            flush=True,
        )
        if arguments.json:
            grade.write_json(arguments.json)
    grade.done = True
    if arguments.json:
        grade.write_json(arguments.json)
    print("\n" + table(grade))
    return grade


def _report_path(arguments: argparse.Namespace, stem: str) -> Path:
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"The folder {arguments.output} cannot be made: {error.strerror}.") from None
    return arguments.output / f"{stem}.html"


def _shown(path: Path) -> str:
    return str(path) if not path.is_absolute() else path.name
