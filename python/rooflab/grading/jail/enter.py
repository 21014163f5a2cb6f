"""A script that sets limits on itself, loads a filter of system calls for the jail, and becomes a worker's command.

It also enters a control group, if it is given one. Where root makes the jail, it enters a user namespace for it.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Iterable

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000
NOBODY = 65534  # the user and the group that own nothing
USER = "1000"  # in the jail


def command(
    argv: Iterable[str], limits: dict[str, int], system_calls: bytes = b"", group: str = "", user: str = ""
) -> list[str]:
    """The command that becomes `argv`, within limits. With `user`, root makes a jail where that user is nobody."""
    script = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    return [*script, json.dumps(limits), system_calls.hex(), group, user, *argv]


def limit(limits: dict[str, int], group: str) -> None:
    """Set these limits, such as RLIMIT_DATA, on this process and those that it starts, and enter the control group."""
    if group:
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def add_user(user: str) -> None:
    """Enter a user namespace in which root is root, so that a jail can hold what root can read, and `user` is nobody.

    The process must have only one thread.

    Raises
    ------
    OSError
        The kernel refuses, or root may not act for other users here.
    """
    own, (starts, started), (ends, ended) = os.getpid(), os.pipe(), os.pipe()
    if (helper := os.fork()) == 0:  # only a process outside may map other users than its own
        try:
            os.close(started)
            if os.read(starts, 1):
                for name in ("uid_map", "gid_map"):
                    with open(f"/proc/{own}/{name}", "w", encoding="ascii") as file:
                        file.write(f"0 0 1\n{user} {NOBODY} 1\n")
        except OSError as error:
            os.write(ended, str(error.errno).encode())
        finally:
            os._exit(0)
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.get_errno() if libc.unshare(CLONE_NEWUSER) else 0
    os.write(started, b"" if number else b"\n")
    for fd in (starts, started, ended):
        os.close(fd)
    with open(ends, encoding="ascii") as file:
        number = number or int(file.read() or 0)
    os.waitpid(helper, 0)
    if number:
        raise OSError(number, f"root cannot run code as nobody: {os.strerror(number)}")


def die_with_parent() -> None:
    """Let the kernel end this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _main(limits: dict[str, int], system_calls: str, group: str, user: str, argv: list[str]) -> None:
    limit(limits, group)
    if user:
        try:
            add_user(user)
        except OSError as error:
            sys.exit(error.strerror)
    die_with_parent()
    if system_calls:
        file = os.memfd_create("system_calls", 0)
        os.write(file, bytes.fromhex(system_calls))
        os.lseek(file, 0, os.SEEK_SET)
        argv[1:1] = ["--seccomp", str(file)]  # the jail loads it last
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
