"""`rooflab grade`: the notebooks of a class, graded one by one or several at a time."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rooflab.cli.arguments import GPU, Read, whole_number
from rooflab.cli.lab import packages_missing
from rooflab.cli.progress import working_on
from rooflab.files import check_folder
from rooflab.grading.lab import model as labs
from rooflab.grading.lab.model import LabError
from rooflab.grading.lab.printable import printable

EXIT_CODES = (
    "Exit codes: 0 all notebooks are graded; 1 some could not be graded; 2 it could not go on, and one sentence says "
    "why; 130 stopped."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `rooflab grade`."""
    parser.epilog = "Notebooks that have a grade already are skipped, so that a stopped run can go on. " + EXIT_CODES
    parser.add_argument("lab", action=_Lab, help="for example lab1")
    parser.add_argument("submissions", type=Read, help="a folder or a zip of notebooks")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder of the results of this lab (default: grades/LAB)"
    )
    parser.add_argument(
        "-j", "--jobs", type=whole_number(1), default=1, metavar="N", help="how many notebooks at a time (default: 1)"
    )
    parser.add_argument(
        "--labs",
        type=Path,
        metavar="DIR",
        help="folder of lab sources (default: those beside the package)",
    )
    parser.add_argument("--regrade", action="store_true", help="also grade notebooks that have a grade already")
    parser.add_argument(
        "--due",
        type=_time,
        metavar="TIME",
        help="flag what was handed in later, for example 2026-01-31T23:59",
    )
    parser.add_argument(
        "--late-penalty",
        type=whole_number(1),
        metavar="PERCENT",
        help="what each day that has begun after --due costs, of all points (default: points stay as they are)",
    )
    parser.add_argument(
        "--grace",
        type=whole_number(0),
        default=0,
        metavar="MINUTES",
        help="what comes in so soon after --due is not late (default: 0)",
    )
    parser.add_argument(
        "--manual",
        type=Read,
        action="append",
        metavar="FILE",
        help="points by hand: a CSV file with student, question and points, perhaps comment and lab; may be repeated",
    )
    parser.add_argument(
        "--roster",
        type=Read,
        metavar="FILE",
        help="who is in the class: a CSV file of Canvas or of a student information system, or one name a line",
    )
    parser.add_argument(
        "--similarity",
        type=Path,
        metavar="DIR",
        help="also write each student's answers as a Python file, for tools that compare them",
    )
    parser.add_argument(
        "--slurm",
        nargs="?",
        const="",
        metavar="OPTIONS",
        help="grade by a job array of Slurm, with these options of sbatch",
    )
    parser.add_argument(
        "--chunk", type=whole_number(1), default=10, metavar="N", help="notebooks per task of Slurm (default: 10)"
    )
    parser.add_argument("--gpu", action="store_true", help=GPU)
    parser.add_argument(
        "--trusted", action="store_true", help="run the students' code without isolation; the grades say so"
    )
    parser.set_defaults(
        in_output=lambda _: ("grades.csv", "gradebook.csv", "*.json", "*.html")
    )  # findings*.csv are new


class _Lab(argparse.Action):
    """Which lab is graded: each has a folder of its own, because a class has the same names in all of them."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, _: Any = None
    ) -> None:
        namespace.lab = value
        namespace.output = namespace.output or Path("grades", value.split("_")[0])


def with_slurm(words: Sequence[str]) -> list[str]:
    """The command line with the options of sbatch that follow `--slurm` joined to it in one word, because
    argparse takes them for its own.

    Examples
    --------
    >>> with_slurm(["--slurm", "--mem-per-cpu=4G", "-j", "2"])
    ['--slurm=--mem-per-cpu=4G', '-j', '2']
    """
    parser, found = argparse.ArgumentParser(), list[str]()
    add_arguments(parser)
    names = [name for action in parser._actions for name in action.option_strings]
    for word in words:
        after_slurm = bool(found) and found[-1].split("=")[0] == "--slurm"
        name = word.split("=")[0].split()[0] if word.startswith("-") and len(word) > 2 else ""
        ours = any(one.startswith(name) or (len(one) == 2 and name.startswith(one)) for one in names)
        if after_slurm and name and not ours:
            found[-1] += (" " if "=" in found[-1] else "=") + word
        else:
            found.append(word)
    return found


def _time(text: str) -> datetime:
    from rooflab.grading.classroom.marking import due_time

    try:
        return due_time(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-01-31T23:59, got {text!r}") from None


def main(arguments: argparse.Namespace) -> int:
    """Grade the notebooks; a mistake of the user is one sentence and exit code 2."""
    if why := packages_missing():
        print(why, file=sys.stderr)
        return 2
    from rooflab.grading.classroom.batch import check_room
    from rooflab.grading.jail import folders

    try:
        check_folder(arguments.output, arguments.similarity)
        folders.remove_left()
        check_room()
        with _stopped_as_by_ctrl_c(), folders.temporary("class") as unpacked:
            return _grade(arguments, Path(unpacked))
    except LabError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        raise  # the reader of the output has left: the end of any command
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(f"rooflab grade: {error.strerror or error}{where}.", file=sys.stderr)
    except KeyboardInterrupt:
        how = "Without --regrade the command" if arguments.regrade else "The same command"
        print(f"Stopped. {how} goes on from here.", file=sys.stderr)
        return 130
    return 2


@contextlib.contextmanager
def _stopped_as_by_ctrl_c() -> Iterator[None]:
    """A context in which SIGTERM and a closed terminal stop the command as Ctrl-C does, with all that it started."""
    kinds = [kind for kind in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(kind) != signal.SIG_IGN]  # nohup
    before = [signal.signal(kind, signal.default_int_handler) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def _grade(arguments: argparse.Namespace, unpacked: Path) -> int:
    from rooflab.grading.classroom import archives, earlier, marking, roster, similarity, slurm, submissions
    from rooflab.grading.classroom.batch import COLUMNS, Batch
    from rooflab.grading.jail import jail

    found = labs.find_sources(arguments.labs)
    lab = labs.from_source(labs.pick(found, arguments.lab, "here: name the folder of lab sources with --labs"))
    place = arguments.submissions
    if not place.exists():
        raise LabError(f"There is no file or folder {place.name}.")
    if place.resolve() == arguments.output.resolve():
        raise LabError(f"{place.name} is what was handed in: name another folder with --output.")
    earlier.check_output(arguments.output, lab, _inside(place, arguments.output))
    flat = arguments.output.parent
    if arguments.output == Path("grades", lab.name) and any(name == lab.name for name, _ in earlier.graded_in(flat)):
        print(f"{flat} holds results of an earlier version: name it with --output {flat} to go on there.")
    if arguments.slurm is not None:  # the nodes do the isolating, and have to see what is unpacked
        unpacked = arguments.output / slurm.FOLDER / "handed"
        shutil.rmtree(unpacked, ignore_errors=True)  # a student who was only in an older zip hands in nothing now
        unpacked.mkdir(parents=True, exist_ok=True)
    elif not arguments.trusted and (refusal := jail.refusal()):
        raise LabError(refusal)
    if place.is_dir():
        apart = earlier.results_in(place)
        for folder in apart:
            if not arguments.output.resolve().is_relative_to(folder.resolve()):
                print(f"{printable(str(folder))} holds results of an earlier run, and nothing that was handed in.")
        ours = [arguments.output, *(arguments.manual or ()), *[arguments.roster] * bool(arguments.roster)]
        apart += [inside for path in ours if (inside := _inside(place, path))]
        handed = submissions.collect(place, lab, left_out=apart, unpacked=unpacked)
    else:
        handed = submissions.collect(unpacked, lab, archives.unpacked(place, unpacked))
    if arguments.roster:
        handed = roster.with_all(handed, roster.read(arguments.roster))
    if not handed:
        raise LabError(f"{place.name} holds no notebook of {lab.name}.")
    handed, alike = similarity.noted(lab, handed)
    if arguments.similarity:
        written, left_out = similarity.write(arguments.similarity, lab, handed)
        print(f"Answers of {written} of {len(handed)} students to compare: {arguments.similarity}")
        for line in left_out:
            print(printable(line), file=sys.stderr)
    deadline = None
    if arguments.due:
        grace = timedelta(minutes=arguments.grace)
        deadline = marking.Deadline(arguments.due, arguments.late_penalty or 0, grace)
    elif arguments.late_penalty or arguments.grace:
        raise LabError("--late-penalty and --grace say what happens after --due: name that time too.")
    batch = Batch(lab, arguments.output, arguments.trusted, arguments.gpu)
    manual, renamed = marking.Manual(), earlier.renamed(batch, handed)
    for file in arguments.manual or ():
        manual |= marking.read_manual(file, lab, (one.student for one in handed), renamed)
    arguments.output.mkdir(parents=True, exist_ok=True)
    notes = earlier.lost(batch, handed, manual, arguments.late_penalty or 0)
    notes += [
        f"The roster has one student for {' and '.join(names)}: they have no points in gradebook.csv. Keep what counts."
        for names in roster.listed_twice(handed)
    ]
    of = {one.student: one for one in handed}

    def kept(result: dict[str, Any]) -> dict[str, Any]:
        """Complete a result's file, and keep what the tables need: whole results of a large class fill the memory."""
        whole = batch.complete(result, of[result["student"]], deadline, manual)
        points = [
            {name: one[name] for name in ("question", "points")}
            for one in whole.get("questions", ())
            if "points" in one
        ]
        return {name: whole[name] for name in (*COLUMNS, "findings", "manual") if name in whole} | {"questions": points}

    known = () if arguments.regrade else (result for one in handed if (result := batch.known(one)))
    results = [kept(result) for result in known]
    have = {result["student"] for result in results}
    todo = [batch.with_seed(one) for one in handed if one.student not in have]
    if have:
        print(f"{len(have)} of {len(handed)} are graded already.")
    if arguments.slurm is None or not todo:
        grading = batch.grade(todo, arguments.jobs)
    else:
        grading = slurm.grade(batch, todo, arguments.jobs, arguments.chunk, arguments.slurm)
    with contextlib.closing(grading):
        while len(results) < len(handed):
            with working_on(f"[{len(results) + 1}/{len(handed)}]"):
                results.append(kept(next(grading)))
            print(f"[{len(results)}/{len(handed)}] {results[-1]['student']}: {_said(results[-1])}", flush=True)
    table = batch.write_table(results)
    batch.write_gradebook(results, of)
    for made in marking.write_findings(arguments.output, lab, results):
        print(f"Findings to read: {made}")
    for line in [*alike, *notes, *earlier.gone(arguments.output, of.keys())]:
        print(printable(line))
    failed = sum(result["status"] == "failed" for result in results)
    print(f"{len(results) - failed} graded, {failed} could not be graded: {table}")
    return 1 if failed else 0


def _inside(place: Path, path: Path) -> Path | None:
    """A file or a folder as it is found below `place`, if it lies there."""
    try:
        return place / path.resolve().relative_to(place.resolve())
    except ValueError:
        return None


def _said(result: dict[str, Any]) -> str:
    if result["status"] == "failed":
        return "not graded. " + printable(result["why"])
    from rooflab.grading.classroom.report import points

    return points(result) + (f", {result['pending']} pending" if result["pending"] else "")
