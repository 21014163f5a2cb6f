"""The command `rooflab`: labs, this machine's ceilings, benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rooflab.grading import commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["machine"]:
        from rooflab import machine

        return machine.main(given[1:]) or 0
    if given[:1] == ["bench"]:
        from rooflab.labs import bench

        return bench.main(given[1:]) or 0
    parser = argparse.ArgumentParser(prog="rooflab", description="Labs on making language models fast.")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="COMMAND")
    commands.add_arguments(kinds.add_parser("lab", help="list, build, check, run and grade the labs"))
    kinds.add_parser("machine", help="measure and show the ceilings of this machine", add_help=False)
    kinds.add_parser("bench", help="benchmark an op against its ladder and its peers", add_help=False)
    return commands.main(parser.parse_args(given))


if __name__ == "__main__":
    sys.exit(main())
