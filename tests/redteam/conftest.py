"""The host is watched around every attack: no file, process, descriptor or thread may stay, and nothing of the judge's
may have changed.
"""

import ctypes
import os
import signal
import sysconfig
import tempfile
import threading
import time
from pathlib import Path

import pytest
from grading.demo_lab import TRUSTED

import rooflab
from rooflab.grading.jail.link import Link
from rooflab.grading.lab.model import Limits

NAME = "rooflab_red"  # in the name of every file that an attack writes
PLACES = ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", "~", sysconfig.get_path("purelib"), *rooflab.__path__]
PR_SET_CHILD_SUBREAPER = 36


def children() -> set[int]:
    """The children of this process. A descendant that loses its parent becomes one of them."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text(encoding="ascii").split()}


def left_running(before: set[int]) -> set[int]:
    """Children that do not end within two seconds."""
    end = time.monotonic() + 2
    while (more := children() - before) and time.monotonic() < end:
        for pid in more:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.005)
    return more


def written() -> list[Path]:
    """Files of an attack outside the worker's folder."""
    folders = [*map(os.path.expanduser, PLACES), os.getcwd(), os.path.dirname(__file__)]
    return [path for folder in folders if os.path.isdir(folder) for path in Path(folder).glob(f"*{NAME}*")]


def judges_own() -> dict:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)}
    return {
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "folder": os.getcwd(),
        "environment": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "handlers": handlers,
        "written": written(),
    }


@pytest.fixture(scope="session", autouse=True)
def _adopts():
    """Make orphaned descendants children of this process, so that they are seen. What all attacks share (the GPU with
    its driver's threads, and the forkserver) is opened beforehand, because the first attack would be blamed for it.
    """
    if not TRUSTED:
        Link(Limits(), isolated=True).close()
    if rooflab.cuda.is_available():
        rooflab.ones(1, device="cuda")
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.fixture(autouse=True)
def unharmed(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("workers")
    before, running = judges_own(), children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield
    monkeypatch.undo()  # what the test itself changed
    assert left_running(running) == set(), "a process was left"
    assert judges_own() == before
    assert list(folder.iterdir()) == [], "the worker's folder was left"
