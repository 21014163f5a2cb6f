"""`rooflab doctor`: what this machine has, what that makes possible, and how to fix the rest.

In a clone `python3 python/rooflab/cli/doctor` shows the same page before anything is installed. So apart from
`installed`, nothing in this folder imports rooflab.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import sys
from pathlib import Path

from .page import as_text, findings, to_dict
from .system import System


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab doctor`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings as JSON; - is standard output")


def main(arguments: argparse.Namespace) -> int:
    """Print the page; exit code 2 when the JSON cannot be written."""
    if arguments.json not in (None, Path("-")) and not _can_be_written(arguments.json):
        print(f"rooflab doctor: no file can be written: '{arguments.json}'", file=sys.stderr)
        return 2
    found = findings(System())
    if arguments.json == Path("-"):  # as this file is also run by itself
        print(json.dumps(to_dict(found), indent=2))
        return 0
    if arguments.json:
        try:
            _write(arguments.json, json.dumps(to_dict(found), indent=2) + "\n")
        except OSError as error:
            print(f"rooflab doctor: {error}", file=sys.stderr)
            return 2
    print(as_text(found), end="")
    return 0


def _is_device(path: Path) -> bool:
    """Whether a path is no file to replace: root can replace even /dev/null."""
    return path.parent == Path("/dev") or (path.exists() and not path.is_file() and not path.is_dir())


def _can_be_written(path: Path) -> bool:
    """What `rooflab.files` checks before the work of the other commands."""
    if path.is_dir():
        return False
    folder = Path(os.path.realpath(path)).parent
    return _is_device(path) or (folder.is_dir() and os.access(folder, os.W_OK))


def _write(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all, as `rooflab.files` does for the rest of the package."""
    if _is_device(path):
        path.write_text(text, encoding="utf-8")
        return
    place = Path(os.path.realpath(path))
    unfinished = place.with_name(f"{place.name}.{secrets.token_hex(8)}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        if place.is_file():
            shutil.copymode(place, unfinished)
        os.replace(unfinished, place)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
