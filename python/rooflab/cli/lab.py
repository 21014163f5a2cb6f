"""`rooflab lab list | new | check` for students, `build | verify | run | release | grade` for instructors."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rooflab.cli.arguments import GPU, Read, add_json, whole_number, written
from rooflab.cli.lab_grade import (
    INCOMPLETE,
    NO_SOURCES,
    check_notebook,
    grade_notebook,
    reason,
    report_names,
    run_lab,
    shown,
)
from rooflab.cli.progress import working_on
from rooflab.files import check_file, check_folder, replacing
from rooflab.grading.jail import jail, sandbox
from rooflab.grading.lab import model as labs
from rooflab.grading.lab import students
from rooflab.grading.lab.model import LabError
from rooflab.grading.lab.printable import printable

NEEDED = ("jupytext", "nbformat")  # reports need more
EXIT_CODES = {
    0: "done; for `grade`: a grade was given, even a low one",
    1: "a stale notebook (build --check), an answer graded wrongly (verify), a failed cell (run), or not full marks "
    "(run, check)",
    2: "it could not be done, and one sentence says why",
    INCOMPLETE: "the grade stands, but its report or its JSON was not written",
    130: "stopped by Ctrl-C",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommands of `rooflab lab`."""
    codes = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in EXIT_CODES.items()) + "."
    parser.epilog = codes
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, run: Callable[[argparse.Namespace], int], text: str, sources: bool = True) -> Any:
        one = actions.add_parser(name, help=text, description=text, epilog=codes)
        one.set_defaults(run=run)
        if sources:
            one.add_argument(
                "--labs",
                type=Path,
                metavar="DIR",
                help="folder of lab sources (default: those beside the package)",
            )
        return one

    action("list", list_labs, "List the labs.")
    new = action("new", new_folder, "Start a student's folder: notebooks and instructions.", sources=False)
    new.add_argument("folder", type=Path, metavar="DIR", help="a new or an empty folder")
    handed = action("release", release_labs, "Write what students get: notebooks, instructions, package, no answers.")
    handed.add_argument("folder", type=Path, metavar="DIR", help="a new or an empty folder")
    handed.add_argument("lab", nargs="?", help="which lab (default: all)")
    build = action("build", build_labs, "Build student notebooks from their sources.")
    build.add_argument("lab", nargs="?", help="which lab (default: all)")
    build.add_argument(
        "--output", type=Path, metavar="DIR", help="where the notebooks go (default: the folder above the sources)"
    )
    build.add_argument("--check", action="store_true", help="write nothing; fail if a notebook is stale")
    verify = action("verify", verify_labs, "Grade solutions, right and wrong answers, and the unsolved notebook.")
    verify.add_argument("lab", nargs="?", help="which lab (default: all)")
    verify.add_argument(
        "--answers",
        type=Path,
        metavar="DIR",
        help="folder of right and wrong answers (default: the checkout's tests/labs)",
    )
    verify.add_argument("--quick", action="store_true", help="grade only the solutions and the unsolved notebook")
    verify.add_argument(
        "-j", "--jobs", type=whole_number(1), default=1, metavar="N", help="how many answers at a time (default: 1)"
    )
    verify.add_argument("--gpu", action="store_true", help=GPU)
    verify.add_argument("--trusted", action="store_true", help="run the answers without isolation")
    check = action("check", check_notebook, "Run the public tests of a notebook: its own, or those of --labs.")
    run = action("run", run_lab, "Grade the solved notebook, execute it, write an HTML report.")
    grade = action("grade", grade_notebook, "Grade a student's notebook.")
    for one in (check, run, grade):
        if one is not check:
            one.add_argument("lab", help="for example lab1")
        if one is not run:
            one.add_argument("notebook", type=Read, help="the notebook file, NAME.ipynb")
        add_json(one, "write progress and results as JSON")
        if one is not check:
            one.add_argument(
                "--output",
                type=Path,
                metavar="DIR",
                default=Path(),
                help="folder of the HTML report, which is named as the notebook (default: this folder)",
            )
            one.set_defaults(in_output=report_names)
    grade.add_argument(
        "--gradescope", type=written, metavar="FILE", help="write the results as Gradescope's autograder reads them"
    )
    grade.add_argument(
        "--manual",
        type=Read,
        metavar="FILE",
        help="points by hand and comments: a CSV file; the student's name is the notebook's file name without .ipynb",
    )
    grade.add_argument(
        "--seed",
        type=whole_number(0),
        metavar="N",
        help="draw the inputs of an earlier grade again; its JSON holds its seed",
    )
    grade.add_argument("--gpu", action="store_true", help=GPU)
    grade.add_argument(
        "--trusted", action="store_true", help="run the student's code without isolation; the grade says so"
    )
    run.add_argument(
        "--trusted", action="store_true", help="run the lab's own code without isolation; the grade says so"
    )


def packages_missing() -> str:
    """Which packages the labs lack, and how to install them; empty if none."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"The labs need {', '.join(missing)}: install with pip install 'rooflab[labs]'." if missing else ""


def main(arguments: argparse.Namespace) -> int:
    """Run one subcommand; a mistake of the user is one sentence and exit code 2."""
    if why := packages_missing():
        print(why, file=sys.stderr)
        return 2
    try:
        check_folder(output := getattr(arguments, "output", None))
        for path in (getattr(arguments, "json", None), getattr(arguments, "gradescope", None)):
            check_file(path, makes_folder=output is not None and path is not None and path.parent == output)
        _choose_gpus(arguments)
        return arguments.run(arguments)
    except LabError as error:
        print(printable(str(error), lines=True), file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise  # the reader of the output has left: the end of any command
    except OSError as error:
        print(f"rooflab lab {arguments.action}: {printable(reason(error))}.", file=sys.stderr)
        return 2


def _choose_gpus(arguments: argparse.Namespace) -> None:
    """Hide the GPUs from all, if they were not asked for, or if isolated code cannot use them."""
    if not getattr(arguments, "gpu", True):
        jail.hide_gpus()
    elif not getattr(arguments, "trusted", True) and (refusal := sandbox.gpu_refusal()):
        if hasattr(arguments, "gpu"):
            raise LabError(refusal)
        print(f"{refusal} The lab is run without them.", file=sys.stderr)
        jail.hide_gpus()


def list_labs(arguments: argparse.Namespace) -> int:
    """Print the labs that there are, with questions and points."""
    sources = labs.find_sources(arguments.labs)
    found = [labs.from_source(path) for path in sources] or [students.from_notebook(p) for p in labs.find_notebooks()]
    if not found:
        raise LabError("There are no labs " + NO_SOURCES + ".")
    for lab in found:
        bonus = f" + {lab.bonus} bonus" if lab.bonus else ""
        print(f"{lab.name:<8} {lab.title}  ({len(lab.questions)} questions, {lab.points}{bonus} points)")
    return 0


def _sources(folder: Path | None, name: str | None = None) -> list[Path]:
    """The sources of one lab, or of all; there is at least one."""
    paths = labs.find_sources(folder)
    paths = [labs.pick(paths, name, NO_SOURCES)] if name else paths
    if not paths:
        raise LabError("There are no sources of labs " + NO_SOURCES + ".")
    return paths


def build_labs(arguments: argparse.Namespace) -> int:
    """Build student notebooks from the sources, or with --check only say whether they are current."""
    from rooflab.grading.lab import release

    paths = _sources(arguments.labs, arguments.lab)
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
            with replacing(target) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
            print(f"{target.name}: {len(lab.questions)} questions, {lab.points} points")
    return 1 if stale else 0


def verify_labs(arguments: argparse.Namespace) -> int:
    """Say whether each lab grades its own answers correctly."""
    from rooflab.grading.judge import verify

    paths = _sources(arguments.labs, arguments.lab)
    bad = 0
    for path in paths:
        lab = labs.from_source(path)
        answers = arguments.answers or path.resolve().parent.parent.parent / "tests" / "labs"
        todo = verify.cases(lab, None if arguments.quick else answers)
        report = verify.Report(lab, verify.leak(lab))
        outcomes = verify.verify(lab, todo, arguments.trusted, arguments.jobs)
        with contextlib.closing(outcomes):
            for number, case in enumerate(todo, 1):
                with working_on(f"[{number}/{len(todo)}] {lab.name} {labs.label(case.question)} {case.kind}"):
                    report.outcomes.append(next(outcomes))
        print(f"{lab.title}\n{verify.table(report)}\n", flush=True)
        bad += not report.good
    print(f"{len(paths) - bad} of {len(paths)} labs grade their answers as they should.")
    return 1 if bad else 0


def new_folder(arguments: argparse.Namespace) -> int:
    """Make a student's folder from the notebooks of the installed package."""
    from rooflab.grading.lab.handout import write_copy

    notebooks = labs.find_notebooks()
    if not notebooks:
        raise LabError("There are no notebooks in this installation of rooflab.")
    _written(write_copy(notebooks, arguments.folder), arguments.folder)
    print(f"Next: jupyter lab {shlex.quote(str(arguments.folder / notebooks[0].name))}")
    return 0


def release_labs(arguments: argparse.Namespace) -> int:
    """Write what an instructor hands out."""
    from rooflab.grading.lab.handout import write_release

    found = [labs.from_source(path) for path in _sources(arguments.labs, arguments.lab)]
    here, there = Path.cwd(), Path(labs.__file__).parents[4]  # an installed package is not in a checkout
    checkout = next((one for one in (here, there) if (one / "CMakeLists.txt").exists()), here)
    _written(write_release(found, checkout, arguments.folder), arguments.folder)
    return 0


def _written(paths: list[Path], folder: Path) -> None:
    for path in paths:
        print(f"wrote {shown(folder / path)}")
