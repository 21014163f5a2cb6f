"""The command `rooflab`: labs and their grades, this machine's ceilings, benchmarks, costs, training, a check-up."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

import rooflab
from rooflab.cli import bench, bench_lm, cost, doctor, grade, lab, machine, train

_COMMANDS = (
    ("lab", lab, "List, build, check, run and grade the labs."),
    ("grade", grade, "Grade the notebooks of a class."),
    ("machine", machine, "Measure and show the ceilings of this machine."),
    ("bench", bench, "Benchmark an op against its ladder and its peers."),
    ("cost", cost, "Show what a pass through a model costs, and the least time that it takes on a machine."),
    ("doctor", doctor, "Say what this machine has, what that makes possible, and how to mend the rest."),
    ("train", train, "Train the small models of the labs."),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if argv is None:
        _read_names_as_utf_8()
    argv = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):  # a name that they cannot show must not end a command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if argv[:2] == ["bench", "lm"]:  # its options differ from those for ops
        bench_parser = argparse.ArgumentParser(prog="rooflab bench lm", description=bench_lm.__doc__)
        bench_lm.add_arguments(bench_parser)
        return bench_lm.main(bench_parser.parse_args(argv[2:]))
    parser = argparse.ArgumentParser(prog="rooflab", description="Labs on making language models fast.")
    parser.add_argument("--version", action="version", version=f"rooflab {rooflab.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module, text in _COMMANDS:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(main=module.main)
        module.add_arguments(command)
    arguments = parser.parse_args(grade.with_slurm(argv) if argv[:1] == ["grade"] else argv)
    return arguments.main(arguments)


def _read_names_as_utf_8() -> None:
    """Where Python reads names of files in another encoding, start it again in its UTF-8 mode: a student's name that is
    misread would be another student. What is printed keeps its encoding.
    """
    if sys.getfilesystemencoding() != "utf-8":
        printed = os.environ.get("PYTHONIOENCODING") or sys.stdout.encoding
        environment = os.environ | {"PYTHONUTF8": "1", "PYTHONIOENCODING": printed}
        os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], environment)
