"""A worker's process, as the judge sees it: forked into the jail or, where the code is trusted, a new process.

Both have `wait`, `kill` and `cpu_seconds`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rooflab.grading.jail import cgroup, jail, sandbox, seccomp, worker_command
from rooflab.grading.lab.model import Limits
from rooflab.host import cpu_seconds

END_S = 2.0
TRIES = 2
NOWHERE = "/nonexistent"  # the home of a process that has no folder


class Spawned:
    """A new process outside the jail, with the ends of pipes that it reads requests from and writes replies to."""

    def __init__(self, limits: Limits, folder: str, serves: str, pipes: Sequence[int], said: IO[bytes]) -> None:
        self.mark = f"ROOFLAB_WORKER={secrets.token_hex(16)}"
        self.process = subprocess.Popen(
            sandbox.command(worker_command.command(serves, *pipes), limits, folder, isolated=False),
            cwd=folder,
            env=sandbox.environment(folder) | dict([self.mark.split("=")]),
            pass_fds=pipes,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )

    def wait(self, seconds: float) -> int | None:
        """Its exit code, negative for a signal; None if it still runs after so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None

    def kill(self) -> bool:
        """End it, and what it has started. Returns whether it had left such a process."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        left = False
        for _ in range(20):
            strays = self._marked()
            for pid in strays:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not strays:
                break
            left = True
            time.sleep(0.02)
        return left

    def cpu_seconds(self) -> float:
        """Processor time that it and its processes have taken so far."""
        return sum(map(cpu_seconds, self._marked() or [self.process.pid]))  # a Mac shows no marks

    def _marked(self) -> list[int]:
        """Living processes that were started by this one, whatever group or session they have moved to."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in entry.read_bytes().split(b"\0"):
                    found.append(int(entry.parent.name))
        return found


class Forked:
    """A process in the jail, forked by the `forkserver` of this judge."""

    def __init__(
        self,
        limits: Limits,
        folder: str,
        serves: str,
        pipes: Sequence[int],
        said: IO[bytes],
        hidden: Sequence[str],
        group: cgroup.Group | None,
        processes: bool = False,
    ) -> None:
        request = {
            "serves": serves,
            "jail": jail.around(["cat"], folder, hidden),
            "user": jail.user(),
            "environment": sandbox.environment(folder),
            "folder": folder,
            "limits": sandbox.resources(limits),
            "group": str(group.folder) if group else "",
            "system_calls": seccomp.program(gpus=bool(jail.gpus()), processes=processes).hex(),
        }
        self.line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.pid: int | None = None
        self.code: int | None = None
        with theirs:
            _ask_server(json.dumps(request).encode(), [*pipes, said.fileno(), theirs.fileno()], said)

    def wait(self, seconds: float) -> int | None:
        """Its exit code, negative for a signal; None if it still runs after so many seconds, or never ran."""
        while self.code is None and (told := self._told(seconds)) is not None:
            if self.pid is None:
                self.pid = told
            else:
                self.code = told
        return self.code

    def kill(self) -> bool:
        """End it and the jail, and with the jail everything that it has started."""
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)
        self.wait(END_S)
        self.line.close()
        return False

    def cpu_seconds(self) -> float:
        """Processor time that it has taken so far. It starts no processes."""
        if self.pid is None:
            self.wait(0)
        return cpu_seconds(self.pid) if self.pid else 0.0

    def _told(self, seconds: float) -> int | None:
        """What its keeper says next; None if it says nothing for so many seconds."""
        with contextlib.suppress(OSError):  # a timeout is one too, and so is a line that `kill` has closed
            self.line.settimeout(seconds)
            if text := self.line.recv(64):
                return json.loads(text)
        return None


class _Server:
    """This process's `forkserver`; `made_for` is the command and the environment that it was started with."""

    def __init__(self, made_for: tuple, said: IO[bytes]) -> None:
        self.made_for = made_for
        self.line, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        command, environment = made_for
        with theirs:
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                cwd="/",
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def close(self) -> None:
        """End it. Workers that it has forked go on, because their keepers wait only for the judge."""
        self.line.close()
        self.process.kill()
        self.process.wait()


_server: _Server | None = None
_lock = threading.Lock()


@atexit.register
def _close_server() -> None:
    global _server
    if _server:
        _server.close()
    _server = None


def _forget_server() -> None:
    """In a fork of this process, because the server belongs to the parent."""
    global _server, _lock
    _server, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_server)


def _ask_server(request: bytes, fds: Sequence[int], said: IO[bytes]) -> None:
    """Send a request to the forkserver. If there is none with the judge's present settings, or it has ended, a new one
    is started, which writes to `said` why it fails. If that fails, nobody holds the other ends of the pipes, and the
    judge sees them closed.
    """
    global _server
    wanted = worker_command.command("jail.forkserver"), sandbox.environment(NOWHERE)
    with _lock:
        for _ in range(TRIES):
            if _server and _server.made_for != wanted:
                _close_server()
            _server = _server or _Server(wanted, said)
            try:
                socket.send_fds(_server.line, [request], list(fds))
                return
            except (BrokenPipeError, ConnectionResetError):
                _close_server()
