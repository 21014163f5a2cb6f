"""What student code may not do in the worker, enforced inside the interpreter.

An audit hook ends the worker when student code sends signals, forks or traces, and refuses files outside
the libraries and the worker's own folder, other programs, the network and foreign functions. `Seal` notices
replaced functions. This stops tricks by name. Code that climbs its callers' frames or searches all objects could
still change what the worker measures of it, and native code could get around it all; the latter is the task of the
operating-system sandbox (`sandbox.command`).
"""

from __future__ import annotations

import contextlib
import operator
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from itertools import repeat
from types import FunctionType, ModuleType

import rooflab

TRACING = frozenset(["sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"])
_ENDS_WORKER = """
os.kill os.killpg os.fork os.forkpty signal.pthread_kill resource.setrlimit resource.prlimit
cpython.PyInterpreterState_New"""
_REFUSED = """
subprocess.Popen os.system os.exec os.posix_spawn os.spawn pty.spawn sys.addaudithook
socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo
ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.call_function ctypes.string_at ctypes.wstring_at
ctypes.cdata ctypes.cdata/buffer ctypes.PyObj_FromPtr"""
_WRITES = """
os.remove os.rename os.rmdir os.mkdir os.chmod os.chown os.truncate os.link os.symlink os.utime os.setxattr
os.mkfifo os.mknod shutil.rmtree shutil.move shutil.copyfile"""
ENDS_WORKER, REFUSED, WRITES = (frozenset(names.split()) for names in (_ENDS_WORKER, _REFUSED, _WRITES))
ENDS_WORKER |= TRACING
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
    """The audit hook. `stop` reports why and ends the process; `folder` is the only place that may be
    written.
    """

    def __init__(self, stop: Callable[[str], None], folder: str) -> None:
        self.stop, self.folder, self.pausing = stop, os.path.realpath(folder), False
        names = ("stdlib", "platstdlib", "purelib", "platlib")  # not the prefix itself: labs may lie beside it
        folders = [f"{prefix}/{name}" for prefix in (sys.prefix, sys.base_prefix) for name in ("lib", "share", "etc")]
        libraries = [*(sysconfig.get_path(name) for name in names), *folders, *sys.path, *rooflab.__path__]
        known = {os.path.realpath(path) for path in (*libraries, *SYSTEM, *DEVICES) if path}
        self.readable = (*tuple(known - {"/"}), self.folder)

    def install(self) -> None:
        """From now on, for as long as the process lives."""
        sys.addaudithook(self.audit)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While the worker starts or ends a trace of its own."""
        self.pausing = True
        try:
            yield
        finally:
            self.pausing = False

    def audit(self, event: str, args: tuple) -> None:
        if self.pausing and event in TRACING:
            return
        if event in ENDS_WORKER:
            self.stop(f"student code called {event}, which is not allowed")
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
        if not any(real == place or real.startswith(place + os.sep) for place in allowed):
            raise PermissionError("a graded answer may only read the libraries and write in its own folder")


class Seal:
    """Remembers what the names of modules, and of rooflab's classes, stand for, and the code of rooflab's functions;
    `broken()` names one that was replaced.
    """

    def __init__(self, modules: list[ModuleType]) -> None:
        self.contents: list[tuple[str, object, dict[str, object]]] = []
        self.code: list[tuple[str, FunctionType, tuple]] = []
        self.modules = {one.__name__: one for one in modules if sys.modules.get(one.__name__) is one}
        for module in modules:
            names = dict(vars(module))
            self._remember(module.__name__, module, names)
            for name, value in names.items():
                if isinstance(value, type) and value.__module__.startswith("rooflab"):
                    self._remember(f"{module.__name__}.{name}", value, dict(vars(value)))

    def _remember(self, label: str, owner: object, names: dict[str, object]) -> None:
        self.contents.append((label, owner, names))
        for name, value in names.items():
            inner = getattr(value, "__func__", None) or getattr(value, "fget", None)  # of a method, of a property
            function = inner if isinstance(value, (classmethod, staticmethod, property)) else value
            if isinstance(function, FunctionType) and function.__module__.startswith("rooflab"):
                self.code.append((f"{label}.{name}", function, _code(function)))

    def broken(self) -> str | None:
        for name, module in self.modules.items():
            if sys.modules.get(name) is not module:
                return name
        for label, owner, names in self.contents:
            now = vars(owner)  # type: ignore[arg-type]
            if not all(map(operator.is_, map(now.get, names, repeat(self)), names.values())):
                return next(f"{label}.{name}" for name, value in names.items() if now.get(name, self) is not value)
        for label, function, code in self.code:
            now_code = _code(function)
            if len(now_code) != len(code) or any(now is not then for now, then in zip(now_code, code, strict=True)):
                return label
        return None


def _code(function: FunctionType) -> tuple:
    """What a call of it runs."""
    return function.__code__, function.__defaults__, *(function.__kwdefaults__ or {}).values()
