"""A script that sets limits on itself, loads a filter of system calls for the jail, and becomes a worker's command.

It also enters a control group, if it is given one.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1


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


def die_with_parent() -> None:
    """Let the kernel end this process when its parent is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _main(limits: dict[str, int], system_calls: str, group: str, argv: list[str]) -> None:
    limit(limits, group)
    die_with_parent()
    if system_calls:
        file = os.memfd_create("system_calls", 0)
        os.write(file, bytes.fromhex(system_calls))
        os.lseek(file, 0, os.SEEK_SET)
        argv[1:1] = ["--seccomp", str(file)]  # the jail loads it last
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
