"""What students get: the notebooks without answers, instructions, and the package to install."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from rooflab.grading import release
from rooflab.grading.lab import Lab, LabError, from_notebook

PACKAGE = ("CMakeLists.txt", "pyproject.toml", "README.md", "csrc", "python")
INSTALL = """## Install

You need Python 3.11 or newer and a C++20 compiler. On Debian or Ubuntu:

    sudo apt-get install -y g++ python3-dev python3-venv
    python3 -m venv .venv
    source .venv/bin/activate
    pip install './rooflab[labs]'

"""
INSTRUCTIONS = """# Labs on making language models fast

{labs}

{install}## Work on a lab

    jupyter lab {first}

1. Fill in the cells marked *your code here*, and write what you find where the notebook asks for it.
2. Run the test cell below each answer. A test that prints nothing has passed.
3. Run all public tests at once, each question in a process of its own, as they will be graded:

       rooflab lab check {first}

Leave the test cells and the text as they are. You may add cells of your own.

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
        raise LabError(f"A release is made in a checkout of rooflab, and {missing[0]} is not in {checkout.name}.")
    texts = {f"{lab.stem}.ipynb": release.dumps(release.build(lab)) for lab in labs}
    _make_empty(folder)
    package = folder / "rooflab"
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", ".*_cache")
    for name in PACKAGE:
        if (checkout / name).is_dir():
            shutil.copytree(checkout / name, package / name, ignore=unwanted)
        else:
            package.mkdir(exist_ok=True)
            shutil.copy(checkout / name, package / name)
    (package / "notebooks").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        (package / "notebooks" / name).write_text(text, encoding="utf-8")
    _write_instructions(labs, folder, INSTALL)
    return [*(Path(name) for name in texts), Path("INSTRUCTIONS.md"), Path("rooflab")]


def write_copy(notebooks: Sequence[Path], folder: Path) -> list[Path]:
    """Copy the student notebooks of the installed package to a student's new folder, with instructions.

    Raises
    ------
    LabError
        The folder is not empty.
    """
    _make_empty(folder)
    for path in notebooks:
        shutil.copy(path, folder / path.name)
    _write_instructions([from_notebook(path) for path in notebooks], folder, "")
    return [*(Path(path.name) for path in notebooks), Path("INSTRUCTIONS.md")]


def _make_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(f"{folder.name} exists and is not an empty folder: nothing was written.")
    folder.mkdir(parents=True, exist_ok=True)


def _write_instructions(labs: Sequence[Lab], folder: Path, install: str) -> None:
    lines = [f"- `{lab.stem}.ipynb`: {lab.title}, {lab.points} points" for lab in labs]
    text = INSTRUCTIONS.format(labs="\n".join(lines), install=install, first=f"{labs[0].stem}.ipynb")
    (folder / "INSTRUCTIONS.md").write_text(text, encoding="utf-8")
