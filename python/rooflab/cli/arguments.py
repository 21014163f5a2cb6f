"""Types and texts of arguments that several commands take."""

from __future__ import annotations

import argparse
import difflib
import importlib.metadata
import itertools
import math
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PosixPath
from typing import Any

from rooflab import CudaError
from rooflab.files import check_apart

GPU = "let students' code use the GPUs of this machine, which are otherwise hidden from it"


class Written(PosixPath):
    """The name of a file that a command writes."""


class Read(PosixPath):
    """The name of a file that a command reads, or of a folder of such files."""


def written(text: str) -> Written:
    """The type of an option that names a file to write.

    Examples
    --------
    >>> written("rows.csv").suffix
    '.csv'
    """
    if text == "-":
        raise argparse.ArgumentTypeError("only --json takes - for standard output; name a file")
    return Written(text)


def check_arguments(words: Sequence[str], arguments: argparse.Namespace) -> None:
    """Refuse what no command takes: an empty text as a value, and files of which one would replace another.

    A command that writes files into the folder `--output` says their names: its parser's default `in_output` is a
    function of the arguments.

    Raises
    ------
    ValueError
        With the option.

    Examples
    --------
    >>> check_arguments(["cost", "--gpu", ""], argparse.Namespace())
    Traceback (most recent call last):
    ValueError: --gpu: expected a value, got an empty text
    """
    for before, word in itertools.pairwise(["", *words]):
        if not word or re.fullmatch(r"--[a-z-]+=", word):
            option = word.rstrip("=") or (before if before.startswith("-") else "arguments")
            raise ValueError(f"{option}: expected a value, got an empty text")
    given = [(name, path) for name, value in vars(arguments).items() for path in _several(value)]
    outputs = {f"--{name}": path for name, path in given if isinstance(path, Written) and path != Path("-")}
    read = [path for _, path in given if isinstance(path, Read)]
    names = arguments.in_output(arguments) if "in_output" in arguments else ()
    check_apart(outputs, read, getattr(arguments, "output", None) or Path(), names)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def add_json(parser: argparse._ActionsContainer, text: str) -> None:
    """Add the option `--json`."""
    parser.add_argument("--json", type=Written, metavar="FILE", help=f"{text}; - is standard output")


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """The type of an argument that is one of some names.

    Examples
    --------
    >>> one_of(["exp", "log"])("exp")
    'exp'
    """

    def parse(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(not_known(text, names))
        return text

    return parse


def not_known(text: str, names: Collection[str]) -> str:
    """The sentence for a name that is none of those known.

    Examples
    --------
    >>> not_known("lgo", ["exp", "log"])
    "no 'lgo'; did you mean log?"
    """
    near = difflib.get_close_matches(text, names, 1)
    return f"no {text!r}; " + (f"did you mean {near[0]}?" if near else f"expected one of {', '.join(names)}")


def peer_version(peer: str | None) -> str | None:
    """Name and version of the library that --peer names; None without one.

    Raises
    ------
    ValueError
        When it is not installed.

    Examples
    --------
    >>> peer_version("numpy").split()[0]
    'numpy'
    """
    if not peer:
        return None
    try:
        return f"{peer} {importlib.metadata.version(peer)}"
    except importlib.metadata.PackageNotFoundError:
        raise ValueError(f"--peer: {peer} is not installed: pip install 'rooflab[peer]'") from None


def measured(
    command: str, arguments: argparse.Namespace, kept: Callable[[], object], stopped: str, run: Callable[[], int]
) -> int:
    """The exit code of a measuring command's `run`; 2 after one sentence where it cannot measure. Where Ctrl-C ends it
    and something is kept, 130 after `stopped`.
    """
    try:
        return run()
    except BrokenPipeError:
        raise  # the reader of the output has left: the end of any command
    except (ValueError, ImportError, CudaError, OSError) as error:
        print(f"rooflab {command}: {told(error, arguments)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if not kept():
            raise
        print(stopped, file=sys.stderr)
        return 130


def told(error: BaseException, arguments: argparse.Namespace, names: Mapping[str, str] | None = None) -> str:
    """An error of the library, with the option that it is about in place of the parameter.

    Parameters
    ----------
    error : BaseException
        Whose text may begin with "[function] parameter: ".
    arguments : argparse.Namespace
        The command's options, by name.
    names : mapping of str to str, optional
        Options whose parameters have another name.

    Examples
    --------
    >>> told(ValueError("[cost] length: expected >= 1, got 0"), argparse.Namespace(length=0))
    '--length: expected >= 1, got 0'
    >>> told(ValueError("[cost] hardware: no such one"), argparse.Namespace(gpu="x"), {"hardware": "gpu"})
    '--gpu: no such one'
    """

    def option_of(name: str) -> str:
        return f"--{name.replace('_', '-')}"

    text = re.sub(
        r"(?<!: )\b[a-z]+(_[a-z]+)+\b(?!:)", lambda m: option_of(m[0]) if m[0] in arguments else m[0], str(error)
    )
    found = re.match(r"\[([\w. ]+)\] (?:(\w+): )?(.*)", text, re.DOTALL)
    if not found:
        return text
    function, parameter, rest = found.groups()
    # An error of [device] or [meta] is about the device.
    for name in filter(None, (parameter, function)):
        option = {"meta": "device", **(names or {})}.get(name, name)
        if option in arguments:
            return f"{option_of(option)}: {rest}"
    return f"{parameter}: {rest}" if parameter else rest


MOST = 2**64 - 1  # what a seed may be


def whole_number(least: int, most: float = math.inf) -> Callable[[str], int]:
    """The type of an argument that is a whole number from `least` on, up to `most`.

    Examples
    --------
    >>> whole_number(1)("3")
    3
    """

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of {least} or more, got {text!r}")
        if number > most:
            raise argparse.ArgumentTypeError(f"expected at most {most}, got {text!r}")
        return number

    return parse


def positive_number(text: str) -> float:
    """The type of an argument that is a finite number above 0.

    Examples
    --------
    >>> positive_number("2.5")
    2.5
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number
