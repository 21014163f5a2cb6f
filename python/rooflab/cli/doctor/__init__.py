"""`rooflab doctor`: what this machine has, what that makes possible, and how to fix the rest.

In a clone `python3 python/rooflab/cli/doctor` shows the same page before anything is installed. So apart from
`installed`, nothing in this folder imports rooflab.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path

from .page import as_text, findings, to_dict
from .system import System


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab doctor`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings as JSON; - is standard output")


def main(arguments: argparse.Namespace) -> int:
    """Print the page; exit code 2 when the JSON cannot be written."""
    found = findings(System())
    if arguments.json == Path("-"):  # as this file is also run by itself
        print(json.dumps(to_dict(found), indent=2))
        return 0
    print(as_text(found), end="")
    if arguments.json:
        try:
            _write(arguments.json, json.dumps(to_dict(found), indent=2) + "\n")
        except OSError as error:
            print(f"rooflab doctor: {error}", file=sys.stderr)
            return 2
    return 0


def _write(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all, as `rooflab.files` does for the rest of the package."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
