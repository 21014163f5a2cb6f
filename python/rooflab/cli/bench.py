"""`rooflab bench OP ...`: time the ladders of ops, a decoder layer or a model, case by case."""

from __future__ import annotations

import argparse
import datetime
import math
from collections.abc import Iterator

import rooflab as rl
from rooflab.benchmark import gemma3
from rooflab.benchmark.ladder import Row, bench_case, cost_of, table
from rooflab.benchmark.results import Result, earlier, save
from rooflab.cli import bench_lm, bench_report
from rooflab.cli.arguments import add_json, measured, one_of, peer_version, whole_number
from rooflab.cli.progress import Progress
from rooflab.files import check_file
from rooflab.machine.identity import provenance, version
from rooflab.specs import ODD, OpSpec, all_specs
from rooflab.units import human

_MOST_FLOPS = {"cpu": 2e11, "cuda": math.inf}  # per call; cases above it run only with --all
_MODELS = ("layer", "model")
_Case = tuple[OpSpec, tuple[str, str, tuple, dict]]
_LONGEST_S = 6  # per call; rungs that take longer run only with --all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab bench`."""
    benched = sorted(name for name, spec in all_specs().items() if spec.bench)
    what = (
        f"{', '.join(benched)}; all: every ladder and rung, in the cases of the tables beside the rungs; layer, model: "
        "Gemma-3 270M, prefill and decode"
    )
    ways = ("[-h] OP [OP ...] [options]", "lm [options]", "report [options]")
    parser.usage = "\n       ".join(f"rooflab bench {way}" for way in ways)
    commands = parser.add_subparsers(
        metavar="OP", dest="op", required=True, title="what to benchmark", description=what
    )
    _add_models(commands)
    names = ["all", *_MODELS, *benched]
    ops = commands.add_parser(
        names[0], aliases=names[1:], prog="rooflab bench OP", usage="%(prog)s [OP ...] [options]", description=__doc__
    )
    _add_ops(ops, names)


def _add_models(commands: argparse._SubParsersAction) -> None:
    text = "the steps of a transformer language model; see `rooflab bench lm --help`"
    parser = commands.add_parser("lm", prog="rooflab bench lm", help=text, description=bench_lm.__doc__)
    bench_lm.add_arguments(parser)
    parser.set_defaults(main=bench_lm.main)
    text = "tables and figures of a model's steps, as a page and as Markdown; see `rooflab bench report --help`"
    parser = commands.add_parser("report", prog="rooflab bench report", help=text, description=bench_report.__doc__)
    bench_report.add_arguments(parser)
    parser.set_defaults(main=bench_report.main)


def _add_ops(parser: argparse.ArgumentParser, names: list[str]) -> None:
    parser.add_argument("more", nargs="*", type=one_of(names), metavar="OP", help="ops to benchmark")
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is a GPU")
    parser.add_argument("--peer", choices=("torch",), help="time this library's function too")
    parser.add_argument("--all", action="store_true", help="also run the slow rungs and the largest cases")
    parser.add_argument("--case", default="", help="only cases whose label or dtype contains this")
    parser.add_argument("--turns", type=whole_number(1), default=20, help="how often each rung is timed (default 20)")
    add_json(parser, "write the rows, the machine and the date as JSON after each case; other rows of a file "
             "of the same machine, day and version are kept, and a file of another run is refused")  # fmt: skip


def main(arguments: argparse.Namespace) -> int:
    """Time every case that was asked for, and print each as soon as it is known. Exit code 2 if it cannot be run."""
    stopped = "Stopped; the file of --json has the cases that are done."
    rows: list[Row] = []

    def run() -> int:
        return _main(arguments, [arguments.op, *arguments.more], rows)

    return measured("bench", arguments, lambda: arguments.json and rows, stopped, run)


def _main(arguments: argparse.Namespace, ops: list[str], rows: list[Row]) -> int:
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    check_file(arguments.json, makes_folder=True)
    machine = provenance(device)
    if "model" in ops and arguments.peer:
        raise ValueError("--peer is for ops and for layer, not for model")
    peer = peer_version(arguments.peer)
    cases = list(_cases(ops, machine["kind"]))
    models = [case for op in ops if op in _MODELS for case in gemma3.cases(op, machine["kind"])]
    names = [_name(case) for case in cases] + [f"{model.label} {model.dtype}" for model in models]
    if not any(arguments.case in name for name in names):
        known = "; ".join(sorted(set(names)))
        raise ValueError(f"--case: no case of {', '.join(ops)} has {arguments.case!r} in its name. There are: {known}")
    cases = [case for case in cases if arguments.case in _name(case)]
    result = Result(machine, datetime.date.today().isoformat(), version(), peer, rows)
    if arguments.json:
        earlier(arguments.json, result)

    def keep(found: list[Row]) -> None:
        """After each case: a run that is cut short keeps what it has."""
        rows.extend(found)
        if arguments.json:
            save(arguments.json, result)

    for_tables = "all" in ops
    progress = Progress()
    for place, (spec, (label, dtype, shapes, kwargs)) in enumerate(cases, start=1):
        progress.subject = f"Case {place} of {len(cases)}, {spec.name} {label} {dtype}"
        flops = cost_of(spec, dtype, shapes, kwargs).flops
        if flops > _MOST_FLOPS[machine["kind"]] and not arguments.all:
            print(f"{spec.name}  {label}  {dtype}\n  left out: {flops / 1e9:.0f} GFLOP a call (--all runs it)")
            continue
        case = bench_case(
            spec, label, dtype, shapes, kwargs, device, peer=arguments.peer, turns=arguments.turns,
            every_rung=arguments.all or for_tables, longest_s=math.inf if arguments.all else _LONGEST_S,
            progress=progress,
        )  # fmt: skip
        progress.clear()
        keep(case)
        print(table(case), flush=True)
    for model in models:
        if arguments.case not in f"{model.label} {model.dtype}":
            continue
        progress.subject = f"{model.op} {model.label} {model.dtype}"
        found, cost = gemma3.bench(model, device, peer=arguments.peer, turns=arguments.turns, progress=progress)
        progress.clear()
        rate = f"{model.tokens / found[0].median_ms * 1000:,.0f} tokens/s"
        a_token = human(cost.bytes / model.tokens, "B")
        keep(found)
        print(f"{table(found)}\n  {found[0].contender}: {rate}, {a_token} a token", flush=True)
    return 0


def _name(case: _Case) -> str:
    label, dtype = case[1][:2]
    return f"{label} {dtype}"


def _cases(ops: list[str], kind: str) -> Iterator[_Case]:
    """The specs asked for, each with one of its cases.

    For "all" these are the cases that tables show, or every case but odd ones of an op whose ladder has no table.
    """
    specs = {name: spec for name, spec in all_specs().items() if spec.bench}
    shown = {_ladder(name, kind) for name, spec in specs.items() if spec.tables.get(kind)}
    for name, spec in specs.items():
        for case in spec.bench() if spec.bench else ():
            has_no_table = _ladder(name, kind) not in shown and not case[0].startswith(ODD)
            is_in_all = f"{case[0]} {case[1]}" in spec.tables.get(kind, ()) or has_no_table
            if name in ops or ("all" in ops and is_in_all):
                yield spec, case


def _ladder(name: str, kind: str) -> tuple[str, ...]:
    """The kernels of an op, which others may share."""
    return tuple(rung.kernel for rung in rl.variants(name, kind)) if name in rl.ops() else (name,)
