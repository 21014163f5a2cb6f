"""`rooflab bench OP`: time an op's ladder, case by case."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import rooflab as rl
from rooflab.benchmark.ladder import Row, bench_case, table
from rooflab.specs import all_specs

_MOST_FLOPS = {"cpu": 2e11, "cuda": math.inf}  # a call; cases above it wait for --all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab bench`."""
    benched = sorted(name for name, spec in all_specs().items() if spec.bench)
    parser.add_argument("op", choices=benched, metavar="OP", help=", ".join(benched))
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is a GPU")
    parser.add_argument("--peer", choices=("torch",), help="time this library's function too")
    parser.add_argument("--all", action="store_true", help="the slow rungs too")
    parser.add_argument("--case", default="", help="only cases whose label or dtype contains this")
    parser.add_argument("--turns", type=int, default=20, help="turns a contender gets (default 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")


def main(arguments: argparse.Namespace) -> int:
    """Time every case that was asked for; print each as soon as it is known."""
    spec = all_specs()[arguments.op]
    device = arguments.device or ("cuda" if rl.cuda.is_available() else "cpu")
    rows: list[Row] = []
    for label, dtype, shapes, kwargs in spec.bench():
        if arguments.case not in f"{label} {dtype}":
            continue
        flops = rl.cost.of(arguments.op, *shapes, dtype=dtype, **kwargs).flops
        if flops > _MOST_FLOPS[device] and not arguments.all:
            print(f"{arguments.op}  {label}  {dtype}\n  left out: {flops / 1e9:.0f} GFLOP a call (--all runs it)")
            continue
        case = bench_case(
            spec, label, dtype, shapes, kwargs, device,
            peer=arguments.peer, every_rung=arguments.all, turns=arguments.turns,
        )  # fmt: skip
        print(table(case), flush=True)
        rows += case
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(row) for row in rows], indent=1))
    return 0
