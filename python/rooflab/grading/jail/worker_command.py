"""The command that starts a worker.

A worker runs under Python's flag -I, which hides PYTHONPATH and the user's own packages. So the judge hands it the
folders of its own rooflab and of other installed packages. Any other folder on the judge's path may hold answers, and
is not handed over.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path

import rooflab
from rooflab.grading.lab.model import SOURCES, find_sources


def command(serves: str, *fds: int) -> list[str]:
    """The command that starts a worker, a runtime or a forkserver, which talks to the judge over these descriptors."""
    package = [os.path.abspath(path) for path in (rooflab.__file__, *rooflab.__path__)]
    return [
        sys.executable,
        "-I",
        str(Path(__file__).with_name("start.py")),
        json.dumps([package, libraries()]),
        serves,
        *map(str, fds),
    ]


def libraries() -> list[str]:
    """The standard library and the folders of installed packages on this process's path, in its order."""
    return [os.path.abspath(entry) for entry in sys.path if entry and _is_library(Path(entry))]


def _is_library(folder: Path) -> bool:
    standard = folder.is_relative_to(sysconfig.get_path("stdlib"))
    installed = folder.name in ("site-packages", "dist-packages") or any(folder.glob("*.dist-info"))
    return (standard or installed) and not (find_sources(folder) or find_sources(folder / SOURCES))
