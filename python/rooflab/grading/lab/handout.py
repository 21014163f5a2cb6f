"""What students get: the notebooks without answers, instructions, and the package to install."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rooflab.files import replacing
from rooflab.grading.lab import release
from rooflab.grading.lab.model import Lab, LabError
from rooflab.grading.lab.students import from_notebook

PACKAGE = ("CMakeLists.txt", "pyproject.toml", "README.md", "csrc", "python")
UNWANTED = ("__pycache__", "*.so", "*.pyd", ".*_cache")
README_SECTIONS = ("A minute with it", "Where things live", "What the counters say", "Dimension letters")
INSTALL = """You need Python 3.11 or newer and a C++20 compiler (g++ 11, clang 14, or newer). On Debian or Ubuntu the
first line installs both, for which it needs an administrator: leave it out where they are there already, and on other
systems. On a Mac `xcode-select --install` brings a compiler. Run this in the folder that holds `rooflab`:

    sudo apt-get update && sudo apt-get install -y g++ python3-dev python3-venv
    python3 -m venv .venv
    source .venv/bin/activate
    pip install './rooflab[labs]'

If your Python is older, as those of Apple and Ubuntu 22.04 are, this line takes the place of the second one and brings
a newer Python without an administrator:

    python3 -m venv .uv && .uv/bin/pip install uv && .uv/bin/uv venv --clear --seed --python 3.12 .venv

The build takes minutes, and `pip install -v` shows how far it is. The line with `source` activates the virtual
environment. Run it again in every new terminal. `python3 rooflab/python/rooflab/cli/doctor` says what your machine
lacks and how to fix it, and `rooflab doctor` does so once rooflab is installed: paste its page into a question.

"""
STUDENT_README = """# rooflab

This is the package that the labs import. It has a C++20/CUDA core, and it counts and measures what a program does on
the hardware. It needs no PyTorch, and no GPU. `INSTRUCTIONS.md`, beside this folder, says how to work on the labs.

## Install

{install}If the machine has `nvcc`, the CUDA half is built as well (`ROOFLAB_CUDA=off` leaves it out).

{sections}
"""
INSTRUCTIONS = """# Labs on making language models fast

{labs}

{install}## Work on a lab

    jupyter lab {first}

1. Fill in the cells marked *your code here*, and write what you find where the notebook asks for it.
2. Run the test cell below each answer. It says whether your answer passed, and if not, why. Its code is
   folded: the line above it says what it checks.
3. Run all public tests at once, each question in a process of its own, as they will be graded:

       rooflab lab check {first}

Leave the test cells and the text as they are. You may add cells of your own. If an answer is in several cells, all of
its code cells run, from top to bottom, and the last definition counts. Lines that begin with `repaired` say what was
taken as your answer.

## Hand in

Hand in the notebook file, saved after its last run. More tests run when it is graded. They check the same properties as
the tests that you see, at other sizes and with other values.
"""


def write_release(labs: Sequence[Lab], checkout: Path, folder: Path) -> list[Path]:
    """Write the notebooks of `labs`, instructions and the package's sources without answers to a new folder.

    Returns
    -------
    list of Path
        What was written, relative to `folder`.

    Raises
    ------
    LabError
        The folder is not empty, the package's sources are not in `checkout`, or something secret would be handed out.
    """
    if missing := [name for name in PACKAGE if not (checkout / name).exists()]:
        raise LabError(f"A release is made in a checkout of rooflab, but there is no {missing[0]} in {checkout.name}.")
    texts = {f"{lab.stem}.ipynb": release.dumps(release.build(lab)) for lab in labs}
    with _new(folder) as unfinished:
        package = unfinished / "rooflab"
        for name in PACKAGE:
            _copy(checkout / name, package / name)
        (package / "README.md").write_text(student_readme(checkout), encoding="utf-8")
        (package / "notebooks").mkdir()
        for name, text in texts.items():
            (unfinished / name).write_text(text, encoding="utf-8")
            (package / "notebooks" / name).write_text(text, encoding="utf-8")
        _write_instructions(labs, unfinished, f"## Install\n\n{INSTALL}")
    return [*(Path(name) for name in texts), Path("INSTRUCTIONS.md"), Path("rooflab")]


def write_copy(notebooks: Sequence[Path], folder: Path) -> list[Path]:
    """Copy the student notebooks of the installed package to a student's new folder, with instructions.

    Raises
    ------
    LabError
        The folder is not empty.
    """
    with _new(folder) as unfinished:
        for path in notebooks:
            _copy(path, unfinished / path.name)
        _write_instructions([from_notebook(path) for path in notebooks], unfinished, "")
    return [*(Path(path.name) for path in notebooks), Path("INSTRUCTIONS.md")]


def student_readme(checkout: Path) -> str:
    """The README of the package in a release: what students need of the checkout's README, and how they install it."""
    sections = re.split(r"^(?=## )", (checkout / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = [text for text in sections if text.startswith(tuple(f"## {title}\n" for title in README_SECTIONS))]
    absent = re.compile(rf"^\| `(?!{'|'.join(PACKAGE)})[^`]*`.*\n", re.MULTILINE)  # rows of places not handed out
    text = "".join(absent.sub("", part) if "| place |" in part else part for part in kept)
    return STUDENT_README.format(install=INSTALL, sections=text.rstrip("\n"))


@contextmanager
def _new(folder: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `folder` once it is complete. Nothing that exists is overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(f"{folder.name} exists and is not an empty folder: nothing was written.")
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replacing(folder) as unfinished:
        unfinished.mkdir()
        yield unfinished


def _copy(source: Path, target: Path) -> None:
    """Copy the contents, not the permissions: students may write to what an administrator installed read-only."""
    if not source.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return
    target.mkdir(parents=True)
    ignored = shutil.ignore_patterns(*UNWANTED)(str(source), [path.name for path in source.iterdir()])
    for path in sorted(source.iterdir()):
        if path.name not in ignored and not path.is_symlink():  # a developer's link may lead to answers
            _copy(path, target / path.name)


def _write_instructions(labs: Sequence[Lab], folder: Path, install: str) -> None:
    lines = []
    for lab in labs:
        others = {"more points by hand": lab.by_hand, "bonus points": lab.bonus}
        more = "".join(f", {points} {what}" for what, points in others.items() if points)
        lines.append(f"- `{lab.stem}.ipynb`: {lab.title}, {lab.points} points{more}")
    text = INSTRUCTIONS.format(labs="\n".join(lines), install=install, first=f"{labs[0].stem}.ipynb")
    (folder / "INSTRUCTIONS.md").write_text(text, encoding="utf-8")
