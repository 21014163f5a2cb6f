"""`rooflab bench report`: what a course on performance ends in, tables and figures of a transformer's steps."""

from __future__ import annotations

import argparse
from pathlib import Path

import rooflab as rl
from rooflab.benchmark import lm_results, report, slurm
from rooflab.benchmark.calls import CallResult
from rooflab.benchmark.lm import Case, Result
from rooflab.cli.arguments import Read, add_json, measured, positive_number, whole_number
from rooflab.cli.bench_lm import one_of, whole_numbers
from rooflab.cli.progress import Progress
from rooflab.files import check_file, check_folder

_MINUTES_ON_A_CPU = 8.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab bench report`."""
    sizes, parts = tuple(rl.nn.TRANSFORMER_SIZES), tuple(report.PARTS)
    add = parser.add_argument
    add("--output", type=Path, default=Path("rooflab-report"), metavar="DIR", help="folder for report.html, report.md, "
        "figures and rows.json (default rooflab-report)")  # fmt: skip
    add("--parts", type=one_of(parts), default=list(parts), metavar="PARTS",
        help=f"{', '.join(parts)}; several with commas, or all (default all)")  # fmt: skip
    add("--model-size", type=one_of(sizes), default=list(sizes), metavar="SIZES",
        help=f"{', '.join(sizes)}; several with commas, or all (default all)")  # fmt: skip
    add("--context-length", type=whole_numbers(1), default=[128, 256, 512, 1024], metavar="L", help="tokens per "
        "sequence; several with commas (default 128,256,512,1024)")  # fmt: skip
    add("--batch-size", type=whole_number(1), default=4, metavar="B", help="sequences per batch (default 4)")
    add("--vocab-size", type=whole_number(1), default=10000, metavar="V", help="size of the vocabulary (default 10000)")
    add("--measure-steps", type=whole_number(1), default=10, metavar="N", help="steps that are measured (default 10)")
    add("--device", help="cpu, cuda, cuda:N, or a meta device such as meta:H200, on which all is modelled; default: "
        "cuda where there is a GPU")  # fmt: skip
    add("--model-device", default="meta:A100 SXM 40GB", metavar="DEVICE", help="the device that unmeasured cases "
        "are modelled on (default %(default)s)")  # fmt: skip
    add("--minutes", type=positive_number, help="about how long the command may take; a little over half goes to "
        "measuring, shortest cases first, the rest to modelling; the same command goes on with what is left "
        f"(default {_MINUTES_ON_A_CPU:g} on a CPU; on a GPU everything is measured)")  # fmt: skip
    add("--compare", type=Read, metavar="FILE", help="rows.json of another machine, whose steps stand beside these")
    add("--only", type=whole_number(0), metavar="N", help="measure only the case with this number, counted from 0, or "
        "the calls with the last number, and write no report; needs --json")  # fmt: skip
    add("--slurm", action="store_true", help="submit a Slurm job array: one task per case, and one "
        "for the calls of attention and scaling")  # fmt: skip
    add("--slurm-option", action="append", default=[], metavar="OPTION", help="an option of sbatch, such as "
        "--slurm-option=--partition=gpu; may be repeated")  # fmt: skip
    add("--gather", action="store_true", help="write the report from the rows of --slurm's tasks so far")
    add_json(parser, "keep the rows in FILE as JSON instead of rows.json; rows in it are not measured again")
    parser.set_defaults(in_output=_in_output)


def _in_output(arguments: argparse.Namespace) -> list[str]:
    """The names of the files that the report is."""
    return ["report.html", "report.md", "figure-*.png", "memory-*.html", *["rows.json"] * (arguments.json is None)]


def main(arguments: argparse.Namespace) -> int:
    """Measure, model and write the report; exit code 2 if that cannot be done, 130 if it was stopped."""
    stopped = "Stopped; the rows that are done are kept, and the same command goes on with them."
    file = arguments.json or arguments.output / "rows.json"
    return measured("bench report", arguments, file.exists, stopped, lambda: _main(arguments))


def _main(arguments: argparse.Namespace) -> int:
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    check_file(arguments.json, makes_folder=True)
    check_folder(arguments.output)
    settings = report.Settings(
        device, arguments.model_device, arguments.model_size, arguments.context_length, arguments.batch_size,
        arguments.vocab_size, arguments.measure_steps,
    )  # fmt: skip
    file = arguments.json or arguments.output / "rows.json"
    cases, calls = report.cases(settings, arguments.parts), report.calls(settings, arguments.parts)
    if arguments.slurm:
        return _submit(arguments, len(cases) + bool(calls), file)
    other = lm_results.load(arguments.compare) if arguments.compare else None
    if arguments.gather:
        rows = _gathered(settings, file)
        said = (f"{len(rows.of(cases))} of {len(cases)} cases and {len(rows.each_call(calls))} of {len(calls)} calls "
                "have a row.")  # fmt: skip
    else:
        origin = lm_results.Origin.of(device)
        print(origin)
        if arguments.only is not None:
            return _measure_one(settings, cases, arguments, origin)
        rows = _run(settings, arguments, file, origin)
        said = report.lacking(rows, arguments.parts)
    report_of = report.written(rows, arguments.parts, other)
    arguments.output.mkdir(parents=True, exist_ok=True)
    page, text = report_of.save(arguments.output)
    if said:
        print(said)
    print(f"Written: {page}, {text} and its figures; the rows are in {file}.")
    return 0


def _run(
    settings: report.Settings, arguments: argparse.Namespace, file: Path, origin: lm_results.Origin
) -> report.Rows:
    """Every case, each printed as soon as it is known."""
    minutes = arguments.minutes
    if minutes is None and settings.device == "cpu":
        minutes = _MINUTES_ON_A_CPU
    with Progress() as progress:

        def show(case: Case, text: str) -> None:
            progress.subject = case.label
            progress(text)

        def found(result: Result | CallResult) -> None:
            progress.clear()
            print(result, flush=True)

        return report.run(
            settings, arguments.parts, file=file, origin=origin, minutes=minutes, found=found, progress=show
        )


def _measure_one(
    settings: report.Settings, cases: list[Case], arguments: argparse.Namespace, origin: lm_results.Origin
) -> int:
    """What a task of Slurm does: a case, or all calls, which have the last number."""
    if not arguments.json:
        raise ValueError("--only: expected --json FILE, where the row goes")
    last = len(cases) - 1 + bool(report.calls(settings, arguments.parts))
    if arguments.only > last:
        raise ValueError(f"--only: expected 0 to {last}, got {arguments.only}")
    if arguments.only == len(cases):
        report.run_calls(settings, arguments.parts, arguments.json, origin, found=print)
        return 0
    results = report.measure(cases[arguments.only])
    lm_results.save(arguments.json, results, origin)
    print(results[0])
    return 0


def _gathered(settings: report.Settings, file: Path) -> report.Rows:
    """What the tasks have left so far, which is kept in the file."""
    results, origin = slurm.gathered(file)
    lm_results.save(file, results, origin)
    calls = [result for path in slurm.rows_of_tasks(file) for result in lm_results.load_calls(path, origin)]
    lm_results.save_calls(file, calls, origin)
    return report.Rows(settings, results, origin.machine["name"], calls)


def _submit(arguments: argparse.Namespace, tasks: int, file: Path) -> int:
    command = [*slurm.this_command(), "bench", "report", *words(arguments)]
    path, job = slurm.submit(command, tasks, file, arguments.slurm_option)
    print(f"Job {job}: {tasks} tasks of {path}. The same command with --gather instead of --slurm writes the report.")
    return 0


def words(arguments: argparse.Namespace) -> list[str]:
    """The options that say what is measured, as they are given on the command line."""
    found = []
    for name in ("parts", "model-size", "context-length"):
        found += [f"--{name}", ",".join(map(str, getattr(arguments, name.replace("-", "_"))))]
    for name in ("batch-size", "vocab-size", "measure-steps", "device"):
        value = getattr(arguments, name.replace("-", "_"))
        found += [f"--{name}", str(value)] if value is not None else []
    return found
