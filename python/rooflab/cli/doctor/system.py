"""What the checks ask of the machine, in one class, so that tests can put another machine in its place."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any


class System:
    """This machine. Nothing here raises: what cannot be found out is "", False or None."""

    def __init__(self) -> None:
        self.platform = sys.platform
        self.machine = platform.machine()
        self.kernel = platform.release()
        self.libc = " ".join(platform.libc_ver())
        self.python = ".".join(map(str, sys.version_info[:3]))
        self.executable = sys.executable
        self.headers = str(Path(sysconfig.get_path("include"), "Python.h"))
        self.sources = _sources()
        self.libraries = sysconfig.get_path("purelib")
        self.environ = dict(os.environ)
        self.is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        self.cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def text(self, path: str) -> str:
        """What a file holds."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def output(self, *command: str) -> str:
        """What a program prints, if it ends well."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout if done.returncode == 0 else ""

    def which(self, program: str) -> str:
        """Where a program is."""
        return shutil.which(program) or ""

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return os.path.exists(path)

    def has(self, module: str) -> bool:
        """Whether a module can be imported."""
        return importlib.util.find_spec(module) is not None

    def can_write(self, folder: str) -> bool:
        """Whether a file can be written there."""
        try:
            with tempfile.TemporaryFile(dir=folder):
                return True
        except OSError:
            return False

    def runs_programs(self, folder: str) -> bool:
        """Whether a program that lies there can be started: a folder mounted with noexec refuses."""
        try:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                program = Path(own, "program")
                program.write_text("#!/bin/sh\n", encoding="ascii")
                program.chmod(0o700)
                return subprocess.run([str(program)], timeout=30).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    def temporary_folder(self) -> str:
        """Where temporary files go."""
        try:
            return tempfile.gettempdir()
        except OSError:
            return ""

    def home(self) -> str:
        """The home folder."""
        try:
            return str(Path.home())
        except RuntimeError:
            return ""

    def free_bytes(self, folder: str) -> int | None:
        """The space that is left on a folder's disk."""
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            return None

    def rooflab(self) -> Any:
        """`installed.Installed`, or a text that says why rooflab cannot be imported."""
        try:
            from . import installed

            return installed.look()
        except Exception as error:  # an old Python may fail in any way
            return str(error) or type(error).__name__


def _sources() -> str:
    """The folder that pip can install rooflab from, if this file lies in one: a clone, or the package of a release."""
    root = Path(__file__).resolve().parents[4]
    if not (root / "pyproject.toml").exists():
        return ""
    try:
        inside = root.relative_to(Path.cwd())
    except (ValueError, OSError):
        return str(root)
    return os.path.join(".", inside) if inside.parts else "."
