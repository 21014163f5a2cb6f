"""The command `rooflab`: labs and their grades, this machine's ceilings, benchmarks, costs, training, a check-up."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import rooflab
from rooflab.cli import bench, cost, doctor, grade, lab, machine, reference, train
from rooflab.cli.arguments import check_arguments

_COMMANDS = (
    ("lab", lab, "List, build, check, run and grade the labs."),
    ("grade", grade, "Grade the notebooks of a class."),
    ("machine", machine, "Measure and show the ceilings of this machine."),
    ("bench", bench, "Benchmark ops against their ladders and their peers, or the steps of a language model."),
    ("cost", cost, "Show what a pass through a model costs, and the least time that it takes on a machine."),
    ("doctor", doctor, "Say what this machine has, what that makes possible, and how to fix the rest."),
    ("train", train, "Train the small models of the labs."),
    ("docs", reference, "Write the API reference as HTML pages."),
)
# Micro, times, three dashes, an arrow, comparisons, an ellipsis, and what stands behind names of processors.
_WORDS = ("u", "x", "-", "-", "-", "->", "<=", ">=", "...", "(R)", "(TM)")
_SIGNS = dict(zip("\u00b5\u00d7\u2013\u2014\u2212→≤≥…®™", _WORDS, strict=True))
_GROUPS = [["lab"], ["bench"], ["train"]]  # commands with subcommands: without one they print their help


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if sys.stdout is None:  # a file that is opened would take its place, and get what is printed
        print("rooflab: standard output is closed; send it to a file or to /dev/null.", file=sys.stderr)
        return 2
    if argv is None:
        _read_names_as_utf_8()
    argv = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):  # a character that they cannot encode must not end a command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="rooflab.ascii")
    parser = argparse.ArgumentParser(prog="rooflab", description="Labs on making language models fast.")
    parser.add_argument("--version", action="version", version=f"rooflab {rooflab.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module, text in _COMMANDS:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(main=module.main, parser=parser)
        module.add_arguments(command)
    if argv[:1] == ["bench"] and argv[1:] and argv[1].startswith("-") and argv[1] not in ("-h", "--help"):
        print("rooflab bench: name what to benchmark before the options: rooflab bench OP [options]", file=sys.stderr)
        return 2
    if argv in _GROUPS:
        argv = [*argv, "--help"]
    try:
        if not argv:
            print(parser.format_help(), end="", flush=True)
            return 0
        arguments = _parsed(parser, grade.with_slurm(argv) if argv[:1] == ["grade"] else argv)
    except OSError as error:
        return _without_a_place_to_print(error)
    try:
        check_arguments(argv, arguments)
    except (ValueError, OSError) as error:
        print(f"rooflab {argv[0]}: {error}", file=sys.stderr)
        return 2
    run = _with_json_on_standard_output if getattr(arguments, "json", None) == Path("-") else arguments.main
    try:
        code = run(arguments)
        sys.stdout.flush()
    except OSError as error:
        return _without_a_place_to_print(error)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return code


def _parsed(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """The arguments. Help and versions are printed here, because argparse ignores that they cannot be."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            return parser.parse_args(argv)
    except SystemExit:
        print(printed.getvalue(), end="", flush=True)
        raise


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """What stands for signs that an encoding lacks, such as "us" for microseconds. Letters become "?", because another
    letter would make another name.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error("rooflab.ascii", _in_ascii)


def _without_a_place_to_print(error: OSError) -> int:
    """The end of a command whose output went nowhere: a reader such as `head` may have left, or the disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try again when it ends
    if not isinstance(error, BrokenPipeError):
        print(f"rooflab: {error.strerror or error}.", file=sys.stderr)
    return 2


def _with_json_on_standard_output(arguments: argparse.Namespace) -> int:
    """Run a command with `--json -`: the JSON is all that standard output gets, and texts go to standard error."""
    if getattr(arguments, "slurm", False) or getattr(arguments, "gather", False):
        print("--json: the tasks of --slurm leave their rows beside a file, so name one", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="rooflab-") as folder:
        arguments.json = Path(folder) / "output.json"
        with contextlib.redirect_stdout(sys.stderr):
            code = arguments.main(arguments)
        if arguments.json.exists():
            sys.stdout.write(arguments.json.read_text(encoding="utf-8"))
    return code


def _read_names_as_utf_8() -> None:
    """Where Python reads names of files in another encoding, start it again in its UTF-8 mode: a student's name that is
    misread would be another student. What is printed keeps its encoding.
    """
    if sys.getfilesystemencoding() != "utf-8":
        printed = os.environ.get("PYTHONIOENCODING") or sys.stdout.encoding
        environment = os.environ | {"PYTHONUTF8": "1", "PYTHONIOENCODING": printed}
        os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], environment)
