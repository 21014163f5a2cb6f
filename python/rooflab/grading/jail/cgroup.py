"""Limits on memory, processes and processor time of everything that a worker starts and holds, by a control group.

The limits of a process (`sandbox`) do not count files in memory, and each process has its own. A control group (cgroup
v2) counts them all together. Root can make one, and a user to whom the system hands a part of its tree:

    systemd-run --user --scope -p Delegate=yes rooflab grade lab1 submissions

Elsewhere there are only the limits of each process, and the grade's JSON says why.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

CONTROLLERS = ("memory", "pids", "cpu")
PERIOD_US = 100_000
OPTIONAL = ("memory.swap.max",)  # missing where the kernel does not count swap
# The names of groups begin with one of these, then comes the judge's process id.
JUDGE = "rooflab-judge-"  # a folder that has limits for others may hold no process itself
WORKER = "rooflab-worker-"


class Group:
    """A control group for one worker, with limits. `failed_for_memory` says whether they ended it."""

    def __init__(self, parent: Path, limits: Mapping[str, str]) -> None:
        self.folder = parent / f"{WORKER}{os.getpid()}-{secrets.token_hex(8)}"
        self.folder.mkdir()
        try:
            for name, value in limits.items():
                with contextlib.suppress(*[OSError] * (name in OPTIONAL)):
                    (self.folder / name).write_text(value, encoding="ascii")
        except OSError:
            self.remove()
            raise

    def failed_for_memory(self) -> bool:
        """Whether the kernel ended a process of the group because the group's memory was full."""
        try:
            events = (self.folder / "memory.events").read_text(encoding="ascii").split()
        except OSError:
            return False
        return int(dict(zip(events[::2], events[1::2], strict=False)).get("oom_kill", 0)) > 0

    def remove(self) -> None:
        """End what still runs in it, and remove it."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1", encoding="ascii")
        for _ in range(100):
            try:
                return self.folder.rmdir()
            except FileNotFoundError:
                return None
            except OSError:
                time.sleep(0.01)  # its processes are not gone yet
        return None


def limits(memory_bytes: int, processes: int, cpus: int) -> dict[str, str]:
    """The files of a group and what is written into them."""
    return {
        "memory.max": str(memory_bytes),
        "memory.swap.max": "0",
        "pids.max": str(processes),
        "cpu.max": f"{cpus * PERIOD_US} {PERIOD_US}",
    }


@functools.cache
def parent() -> Path | str:
    """The folder in which groups with limits can be made, or why there is none.

    The process moves to a group of its own below that folder, because the kernel requires it.
    """
    try:
        texts = [Path(f"/proc/self/{name}").read_text(encoding="utf-8") for name in ("mountinfo", "cgroup")]
        folder = own_folder(*texts)
        if folder is None:
            return "there is no cgroup v2 here"
        return _prepared(folder)
    except OSError as error:
        return f"{error.strerror}: {error.filename}" if error.filename else str(error)


def own_folder(mountinfo: str, cgroup: str) -> Path | None:
    """Where this process's group lies, from the texts of /proc/self; None without cgroup v2."""
    own = next((line[3:] for line in cgroup.splitlines() if line.startswith("0::")), None)
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(" - ")
        if own is not None and kind.split()[:1] == ["cgroup2"]:
            root, place = fields.split()[3:5]
            if Path(own).is_relative_to(root):
                return Path(place) / Path(own).relative_to(root)
    return None


def _sweep(folder: Path) -> None:
    """Remove the empty groups of judges that are gone: a judge that was killed could not do it itself."""
    for start in (JUDGE, WORKER):
        for old in folder.glob(f"{start}*"):
            judge = old.name.removeprefix(start).partition("-")[0]
            if not Path("/proc", judge).exists():
                with contextlib.suppress(OSError):  # a process is left in it
                    old.rmdir()


def _prepared(folder: Path) -> Path | str:
    if folder.name.startswith(JUDGE):  # the command that started this one has done it
        _sweep(folder.parent)
        return folder.parent
    _sweep(folder)
    there = (folder / "cgroup.controllers").read_text(encoding="ascii").split()
    if missing := [name for name in CONTROLLERS if name not in there]:
        return f"the control group {folder} has no {missing[0]} controller"
    own = folder / f"{JUDGE}{os.getpid()}"
    own.mkdir(exist_ok=True)  # an older judge had the same process id
    try:
        (own / "cgroup.procs").write_text("0", encoding="ascii")
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS), encoding="ascii")
    except OSError as error:
        with contextlib.suppress(OSError):
            (folder / "cgroup.procs").write_text("0", encoding="ascii")
        with contextlib.suppress(OSError):
            own.rmdir()
        if error.errno == errno.EBUSY:
            return f"other processes share the control group {folder}"
        raise
    return folder


def note() -> str:
    """What limits a worker here, for the record of a grade."""
    found = parent()
    return "process and control group" if isinstance(found, Path) else f"process alone ({found})"
