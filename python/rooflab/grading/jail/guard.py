"""What student code may not do in the worker, enforced inside the interpreter.

An audit hook ends the worker when student code sends signals, forks or reaches for another interpreter. It refuses
files outside the libraries and the worker's own folder, other programs, the network and foreign functions. Native code
could get around it: stopping that is the task of the operating-system sandbox (`jail`). What student code changes in
this process can harm only its own answer, because the judge believes nothing that this process says.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable

import rooflab

_ENDS_WORKER = """
os.kill os.killpg os.fork os.forkpty signal.pthread_kill resource.setrlimit resource.prlimit"""
_REFUSED = """
subprocess.Popen os.system os.exec os.posix_spawn os.spawn pty.spawn sys.addaudithook
socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo
ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.call_function ctypes.string_at ctypes.wstring_at
ctypes.cdata ctypes.cdata/buffer ctypes.PyObj_FromPtr"""
_WRITES = """
os.remove os.rename os.rmdir os.mkdir os.chmod os.chown os.truncate os.link os.symlink os.utime os.setxattr
os.mkfifo os.mknod shutil.rmtree shutil.move shutil.copyfile"""
ENDS_WORKER, REFUSED, WRITES = (frozenset(names.split()) for names in (_ENDS_WORKER, _REFUSED, _WRITES))
# Modules that make interpreters, in which no hook of this one runs. Python 3.13 has no event for that.
INTERPRETERS = frozenset(["_interpreters", "_xxsubinterpreters", "_testcapi", "_testinternalcapi"])
CALLED, IMPORTED = "student code called {}, which is not allowed", "student code imported {}, which is not allowed"
UNREADABLE = "what the judge sent cannot be read here"
# Why a worker ends itself.
REASONS = frozenset([*map(CALLED.format, ENDS_WORKER), *map(IMPORTED.format, INTERPRETERS), UNREADABLE])
EXIT_CODE = 86  # of a worker that ends itself, even where it can no longer say why
READS = frozenset(["os.listdir", "os.scandir", "os.chdir"])
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SYSTEM = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/cuda",
    "/lib",
    "/lib64",
    "/etc",
    "/sys",
    "/System/Library",  # a Mac's
)
DEVICES = (
    "/dev/null",
    "/dev/urandom",
    "/dev/random",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/status",
)


class Guard:
    """The audit hook. `stop` reports why and ends the process; `folder` is the only place that may be written to."""

    def __init__(self, stop: Callable[[str], None], folder: str) -> None:
        self.stop, self.folder, self.hidden, self.why_hidden = stop, os.path.realpath(folder), "", ""
        names = ("stdlib", "platstdlib", "purelib", "platlib")  # not the prefix itself: labs may lie beside it
        folders = [f"{prefix}/{name}" for prefix in (sys.prefix, sys.base_prefix) for name in ("lib", "share", "etc")]
        libraries = [*(sysconfig.get_path(name) for name in names), *folders, *sys.path, *rooflab.__path__]
        known = {os.path.realpath(path) for path in (*libraries, *SYSTEM, *DEVICES) if path}
        self.readable = (*tuple(known - {"/"}), self.folder)

    def hide(self, folder: str, why: str) -> None:
        """Refuse to read a folder of the libraries; `why` is the sentence that says so."""
        self.hidden, self.why_hidden = os.path.realpath(folder), why

    def install(self) -> None:
        """Install the hook for as long as the process lives."""
        sys.addaudithook(self.audit)

    def audit(self, event: str, args: tuple) -> None:
        if event in ENDS_WORKER:
            self.stop(CALLED.format(event))
        elif event == "import" and args[0] in INTERPRETERS:
            self.stop(IMPORTED.format(args[0]))
        elif event in REFUSED or (event == "mmap.__new__" and args[0] == -1):
            raise PermissionError(f"{event} is not allowed in a graded answer")
        elif event == "import" and args[1] and os.path.realpath(args[1]).startswith(self.folder):
            raise PermissionError("a graded answer may not import compiled code of its own")
        elif event == "open":
            path, _, flags = args
            self.check(path, writes=bool((flags or 0) & WRITE_FLAGS))
        elif event in WRITES:
            for path in args:
                self.check(path, writes=True)
        elif event in READS:
            self.check(args[0], writes=False)

    def check(self, path: object, writes: bool) -> None:
        if path is None or isinstance(path, int) or not isinstance(path, (str, bytes, os.PathLike)):
            return
        real = os.path.realpath(os.fsdecode(path))
        allowed = (self.folder, "/dev/null") if writes else self.readable
        if self.hidden and real.startswith(self.hidden + os.sep):
            raise PermissionError(self.why_hidden)
        if not any(real == place or real.startswith(place + os.sep) for place in allowed):
            raise PermissionError("a graded answer may only read the libraries and write in its own folder")
