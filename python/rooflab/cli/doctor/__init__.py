"""`rooflab doctor`: what this machine has, what that makes possible, and how to fix the rest.

In a clone `python3 python/rooflab/cli/doctor` shows the same page before anything is installed. So apart from
`installed`, nothing in this folder imports rooflab.
"""

from __future__ import annotations

import argparse
import json
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
            arguments.json.write_text(json.dumps(to_dict(found), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            print(f"rooflab doctor: {error}", file=sys.stderr)
            return 2
    return 0
