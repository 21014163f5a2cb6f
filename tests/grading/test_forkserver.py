"""Workers that are forked into the jail: what they bring, what they may use, and how they end."""

import os
import signal
import socket
from pathlib import Path

import pytest
from grading.jailed import LIMITS, forked, gone, jailed, printed_by_a_fork

from rooflab.grading.jail import process, sandbox


@jailed
def test_a_fork_brings_nothing_of_the_processes_that_it_came_from(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFLAB_SECRET", "of the judge")
    code = """
    import os, random, sys
    import numpy as np
    files = []
    print(*sorted(os.environ))
    for fd in os.listdir("/proc/self/fd"):
        if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}"):  # the listing's own is closed again
            files.append(os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
    print(*files)
    print(os.getcwd() == os.environ["HOME"], os.getsid(0) == os.getpid())
    print(*(name for name in sys.modules if name.endswith("judge.judge")))
    print(random.random(), np.random.random())
    """
    names, files, place, modules, first = printed_by_a_fork(code, tmp_path).split("\n")
    assert names.split() == sorted(sandbox.environment(str(tmp_path)))
    assert files.split() == ["pipe", "pipe"], "requests and replies"
    assert (place, modules) == ("True True", "")
    second = printed_by_a_fork(code, tmp_path).split("\n")[-1]
    assert not set(first.split()) & set(second.split()), "each has its own random numbers"


@jailed
def test_a_fork_has_the_limits_of_its_question(tmp_path):
    code = f"""
    import resource
    for name in {list(sandbox.resources(LIMITS))!r}:
        print(name, resource.getrlimit(getattr(resource, name))[1])
    """
    found = dict(line.split() for line in printed_by_a_fork(code, tmp_path).split("\n"))
    assert {name: int(value) for name, value in found.items()} == sandbox.resources(LIMITS)


@jailed
def test_a_fork_ends_with_its_keeper_or_with_the_judge_and_its_jail_with_it(tmp_path):
    with forked(tmp_path) as (worker, _):
        assert worker.wait(0) is None and worker.pid
        parent = int(Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        jail_pid = int(Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()[0])
        os.kill(parent, signal.SIGKILL)
        assert gone(worker.pid) and gone(jail_pid)
    with forked(tmp_path) as (worker, _):
        assert worker.wait(0) is None
        worker.line.shutdown(socket.SHUT_RDWR)  # as when the judge ends
        assert gone(worker.pid)


@jailed
def test_a_fork_tells_its_exit_code(tmp_path):
    for how, code in (("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)):
        with forked(tmp_path) as (worker, ask):
            with pytest.raises(EOFError):
                ask("setup", "end", f"import os\n{how}")
            assert worker.wait(10) == code


@jailed
def test_a_fork_can_be_killed_again_where_its_keeper_told_its_end_too_late(tmp_path):
    with forked(tmp_path) as (worker, _):
        assert worker.wait(0) is None
        worker.line.close()  # as at the end of `kill`
        assert not worker.kill() and gone(worker.pid)


@jailed
def test_forks_go_on_when_the_server_ends_and_another_is_started(tmp_path):
    with forked(tmp_path) as (_, ask):
        before = process._server.process.pid
        process._server.process.kill()
        process._server.process.wait()
        assert printed_by_a_fork("print(1)", tmp_path) == "1" and process._server.process.pid != before
        ask("setup", "cell", "still = 'here'")
        assert ask("get", "still") == ("value", "here")
