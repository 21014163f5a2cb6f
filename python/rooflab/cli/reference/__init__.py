"""`rooflab docs`: the API reference as HTML pages, made from the docstrings by Sphinx."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rooflab.cli.progress import Progress
from rooflab.files import replacing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `rooflab docs`."""
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("rooflab-docs"),
        metavar="FOLDER",
        help="a new folder (default: rooflab-docs)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Write the pages; exit code 2 and a sentence when that is not possible."""
    folder = arguments.output
    try:
        from .build import build

        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(f"--output: {folder} exists and is not empty: name another folder, or remove it")
        with Progress("rooflab docs") as progress, replacing(folder) as unfinished:
            warnings = build(arguments.parser, unfinished, progress)
    except ModuleNotFoundError as error:
        print(f"rooflab docs: {error.name} is missing: pip install 'rooflab[docs]'", file=sys.stderr)
        return 2
    except OSError as error:
        what = f"--output: {folder}: {error.strerror}" if error.strerror else error
        print(f"rooflab docs: {what}", file=sys.stderr)
        return 2
    print(warnings, end="", file=sys.stderr)
    print(f"Open {folder / 'index.html'} in a browser.")
    return 0
