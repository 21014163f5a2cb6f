"""A process that has imported what workers need and forks them, which is much faster than a new interpreter each time.

No student code runs here, and nothing of a lab or a submission is known here. The judge asks for one worker at a time,
in the jail, and passes the ends of its pipes. Each worker has a keeper, a process that stays outside. The keeper starts
the jail around a `cat`, which holds it open, and joins its namespaces. So its child, the worker, starts inside. The
worker gives up all privileges before it reads the first word from the judge. The keeper tells the judge the worker's
process id, and at the end its exit code. When the worker, the keeper or the judge's connection to it ends, the jail
ends too.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import traceback
from typing import Any, NoReturn

import numpy as np

import rooflab
from rooflab.grading.jail import enter, namespaces

SERVES = ("judge.worker", "judge.runtime", "judge.kernels")
DRAWS = "plots"  # not imported beforehand: matplotlib takes as long as all the rest, and few answers draw
MAX_REQUEST = 2**20


def main(control: int) -> None:
    """Serve the judge at the other end of this socket. Returns only in workers, when they have ended."""
    worker, *_ = (importlib.import_module(f"rooflab.grading.{name}") for name in SERVES)
    for name in set(dir(rooflab)) - {DRAWS}:
        getattr(rooflab, name)  # many are imported when they are asked for
    worker.prepare()
    gc.collect()
    gc.freeze()  # no collector touches these objects, so their memory stays shared with the workers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that a keeper that has ended leaves no zombie
    serves, pipes = _inside(*_forked(control))  # each returns in another process
    importlib.import_module(f"rooflab.grading.{serves}").main(*pipes)


def _forked(control: int) -> tuple[bytes, list[int]]:
    """The text and the descriptors of a request, in a new process."""
    judge = socket.socket(fileno=control)
    while True:
        text, fds, _, _ = socket.recv_fds(judge, MAX_REQUEST, 4)
        if not text:
            os._exit(0)  # the judge is gone
        if os.fork() == 0:
            judge.close()
            return text, fds
        for fd in fds:
            os.close(fd)


def _inside(text: bytes, fds: list[int]) -> tuple[str, list[int]]:
    """Become a keeper, and return in the worker, in the jail and without privileges, what it serves and its pipes.

    A failure is written to the judge's file `said`, and ends the process.
    """
    *pipes, said, line = fds
    request = json.loads(text)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(said, 2)
    try:
        os.setsid()
        enter.limit(request["limits"], request["group"])
        if request["user"]:
            enter.add_user(request["user"])
        holds, inside = _start_jail(request["jail"], request["environment"])
        namespaces.enter(inside)
        if worker := os.fork():
            for fd in (*pipes, said):
                os.close(fd)
            _keep(worker, holds, socket.socket(fileno=line))
        _become_worker(request, pipes)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    return request["serves"], pipes


def _become_worker(request: dict[str, Any], pipes: list[int]) -> None:
    """In the jail, give up everything that came with the fork."""
    os.setsid()
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in (0, 1, 2, *pipes):
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(fd)
    os.environ.update(request["environment"])  # the same names
    os.chdir(request["folder"])
    np.random.seed()  # Python's own generator does so after each fork
    namespaces.give_up_privileges(bytes.fromhex(request["system_calls"]), int(enter.USER))


def _start_jail(command: list[str], environment: dict[str, str]) -> tuple[subprocess.Popen, int]:
    """The jail around `cat`, once it stands, and the process id of what is inside."""
    (tells, told), (hears, heard), (answers, answered) = os.pipe(), os.pipe(), os.pipe()
    command = [command[0], "--info-fd", str(told), *command[1:]]
    holds = subprocess.Popen(command, env=environment, pass_fds=[told], stdin=hears, stdout=answered)
    for fd in (told, hears, answered):
        os.close(fd)
    with open(tells, encoding="utf-8") as file:
        text = file.read()
    with contextlib.suppress(BrokenPipeError):
        os.write(heard, b"\n")  # the pipe stays open, so `cat` goes on
    if os.read(answers, 1) != b"\n":
        os._exit(1)  # the jail has said why
    return holds, json.loads(text)["child-pid"]


def _keep(worker: int, holds: subprocess.Popen, judge: socket.socket) -> NoReturn:
    """Wait until the worker ends or the judge closes its connection; leave nothing running."""
    judge.send(json.dumps(worker).encode())
    poll = select.poll()
    poll.register(os.pidfd_open(worker), select.POLLIN)
    poll.register(judge, select.POLLIN)
    poll.poll()
    os.kill(worker, signal.SIGKILL)  # if it has ended, it is still there for its exit code
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    holds.kill()
    holds.wait()
    with contextlib.suppress(OSError):
        judge.send(json.dumps(code).encode())
    os._exit(0)
