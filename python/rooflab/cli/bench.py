"""`rooflab bench OP ...`: time the ladders of ops, case by case."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import rooflab as rl
from rooflab.benchmark.ladder import Row, bench_case, table
from rooflab.benchmark.results import Result, save
from rooflab.machine.identity import provenance
from rooflab.specs import OpSpec, all_specs

_MOST_FLOPS = {"cpu": 2e11, "cuda": math.inf}  # a call; cases above it wait for --all
_LONGEST_S = 6  # a call; "all" leaves out rungs that take longer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab bench`."""
    benched = sorted(name for name, spec in all_specs().items() if spec.bench)
    parser.add_argument(
        "ops", nargs="+", choices=["all", *benched], metavar="OP",
        help=f"{', '.join(benched)}; all: what the tables in the kernel headers show, every rung of it",
    )  # fmt: skip
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is a GPU")
    parser.add_argument("--peer", choices=("torch",), help="time this library's function too")
    parser.add_argument("--all", action="store_true", help="the slow rungs too")
    parser.add_argument("--case", default="", help="only cases whose label or dtype contains this")
    parser.add_argument("--turns", type=int, default=20, help="turns a contender gets (default 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows and where they come from as JSON")


def main(arguments: argparse.Namespace) -> int:
    """Time every case that was asked for; print each as soon as it is known. Exit code 2 when the device is none."""
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    try:
        machine = provenance(device)
    except ValueError as error:
        print(f"rooflab bench: {error}", file=sys.stderr)
        return 2
    peer = arguments.peer and f"{arguments.peer} {importlib.metadata.version(arguments.peer)}"
    today = datetime.date.today().isoformat()
    rows: list[Row] = []
    for_tables = "all" in arguments.ops
    for spec, (label, dtype, shapes, kwargs) in _cases(arguments.ops, machine["kind"]):
        if arguments.case not in f"{label} {dtype}":
            continue
        flops = rl.cost.of(spec.name, *shapes, dtype=dtype, **kwargs).flops
        if flops > _MOST_FLOPS[machine["kind"]] and not arguments.all:
            print(f"{spec.name}  {label}  {dtype}\n  left out: {flops / 1e9:.0f} GFLOP a call (--all runs it)")
            continue
        case = bench_case(
            spec, label, dtype, shapes, kwargs, device, peer=arguments.peer, turns=arguments.turns,
            every_rung=arguments.all or for_tables, longest_s=math.inf if arguments.all else _LONGEST_S,
        )  # fmt: skip
        print(table(case), flush=True)
        rows += case
        if arguments.json:  # after each case: a run that is cut short keeps what it has
            save(arguments.json, Result(machine, today, rl.__version__, peer, rows))
    return 0


def _cases(ops: list[str], kind: str) -> Iterator[tuple[OpSpec, tuple[str, str, tuple, dict]]]:
    """The specs asked for, each with one of its cases."""
    for name, spec in all_specs().items():
        if spec.bench is None or not {name, "all"} & {*ops}:
            continue
        for case in spec.bench():
            if name in ops or f"{case[0]} {case[1]}" in spec.tables.get(kind, ()):
                yield spec, case
