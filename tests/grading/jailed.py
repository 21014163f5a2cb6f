"""Programs in the jail: how tests run one there, and how they talk to a worker that was forked into it."""

import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from rooflab.grading.jail import jail, process, sandbox, wire
from rooflab.grading.lab.model import Limits

jailed = pytest.mark.skipif(bool(jail.refusal()), reason=str(jail.refusal()))
LIMITS = Limits(seconds=20, memory_gb=0.5)
PRINTED = """
lines = []
def print(*words, flush=True):
    lines.append(" ".join(map(str, words)))
"""


def run(code, folder, hidden=(), **more):
    """Run the program `code` in the jail. Returns what it prints and its exit code. The folder is that outside."""
    argv = [sys.executable, "-I", "-c", textwrap.dedent(code)]
    command = sandbox.command(argv, LIMITS, str(folder), True, hidden, **more)
    environment = sandbox.environment(str(folder))
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def printed_by_a_program(code, folder, hidden=()):
    done = run(code, folder, hidden)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextlib.contextmanager
def forked(folder, hidden=()):
    """A worker that was forked into the jail, and a function that asks it as the judge does."""
    with contextlib.ExitStack() as held:
        (requests, to_worker), (from_worker, replies) = os.pipe(), os.pipe()
        for fd in (to_worker, from_worker):
            held.callback(os.close, fd)
        said = held.enter_context(tempfile.TemporaryFile())
        worker = process.Forked(LIMITS, str(folder), "judge.worker", (requests, replies), said, hidden, None)
        held.callback(worker.kill)
        for fd in (requests, replies):
            os.close(fd)
        assert wire.receive(from_worker)[:2] == (0, "ready")

        def ask(*request):
            wire.send(to_worker, wire.message((1, *request)))
            _, kind, *answer = wire.receive(from_worker)
            assert kind == "ok", answer
            return answer[0]

        yield worker, ask


def printed_by_a_fork(code, folder, hidden=()):
    with forked(folder, hidden) as (_, ask):
        ask("setup", "program", PRINTED + textwrap.dedent(code))  # a cell that no guard watches
        return "\n".join(ask("get", "lines")[1])


def gone(pid):
    """Whether the process ends within ten seconds."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
