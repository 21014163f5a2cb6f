"""Answers that attack the machine: the judge and other processes, files, memory, disk, network. Each contains a right
gemm, so that points are lost only because of the attack.
"""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from grading.demo_lab import RIGHT, SUBINTERPRETERS
from redteam.attack import Attack, cases, check

from rooflab.grading.jail.jail import gpus


def beside(code, points, said="", **options):
    """An attack whose `code` runs inside of a right gemm."""
    inside = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    return Attack(f"{RIGHT}def gemm(a, b, right=gemm):\n{inside}\n    return right(a, b)", points, said, **options)


def refused(code, errors="OSError", **options):
    """As above, but the code has to run into one of these errors, and does nothing."""
    inside = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    nothing = "else:\n    raise AssertionError('nothing refused it')"
    return beside(f"try:\n{inside}\nexcept {errors}:\n    pass\n{nothing}", 5, **options)


PROCESSES = {
    "kills the judge": beside("import os\nos.kill(os.getppid(), 9)", 0, "os.kill"),
    "stops the judge": beside("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)", 0, "os.kill"),
    "stops itself": beside("import signal\nsignal.raise_signal(signal.SIGSTOP)", 0, "longer than", seconds=1),
    "stops its group": beside("import os, signal\nos.killpg(0, signal.SIGSTOP)", 0, "os.killpg"),
    "ends by a signal": beside("import signal\nsignal.raise_signal(signal.SIGTERM)", 0, "SIGTERM"),
    "sends a signal by descriptor": refused(
        "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGSTOP)", jail=True
    ),
    "forks": beside("import os\nos.fork()", 0, "os.fork"),
    "forks with a terminal": beside("import pty\npty.fork()", 0, "os.forkpty"),
    "starts a process that waits": refused(
        "import subprocess\nsubprocess.Popen(['sleep', '99'], start_new_session=True)"
    ),
    "starts a daemon in C": refused(
        """
        import os, _posixsubprocess
        ends = -1, -1, -1, -1, -1, -1, *os.pipe()
        os.close(ends[6])
        _posixsubprocess.fork_exec([b"sleep", b"99"], [b"/bin/sleep"], True, (ends[7],), None, None, *ends, True, True,
                                   -1, None, None, None, -1, None, False)
        """,
        jail=True,
    ),
    "spawns": refused("import os\nos.posix_spawn('/bin/sleep', ['sleep', '99'], {})"),
    "a process of multiprocessing": refused(
        "import multiprocessing as m\nm.get_context('spawn').Process(target=print).start()", jail=True
    ),
    "a thread for later": beside(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        5,
    ),
    "a timer for later": beside("import threading\nthreading.Timer(99, print).start()", 5),
    "a subinterpreter": beside(
        f"import {SUBINTERPRETERS} as s\ns.run_string(s.create(), 'import os; os.kill(-1, 9)')", 0, "not allowed"
    ),
    "calls C": refused("import ctypes\nctypes.CDLL(None).kill(-1, 9)"),
    "raises its limits": beside("import resource as r\nr.setrlimit(r.RLIMIT_DATA, (-1, -1))", 0, "setrlimit"),
    "traces the judge's tests": beside("import sys\nsys.settrace(lambda *a: None)", 5),
    "a crash": beside("import faulthandler\nfaulthandler._sigsegv()", 0, "SIGSEGV"),
    "a crash by recursion": beside(
        "import sys\nsys.setrecursionlimit(10**8)\ndef deep():\n    return [repr(deep())]\ndeep()",
        0,
        "SIGSEGV|MemoryError|longer",
        seconds=1,
    ),
}
FILES = {
    "writes where others read": beside(
        """
        import os
        places = "/tmp", "/var/tmp", "/dev/shm", "/", "/run", os.path.dirname(os.__file__), os.path.dirname(np.__file__)
        for place in places:
            try:
                open(place + "/rooflab_red", "w").write("x")
                raise AssertionError(f"nothing refused {place}")
            except OSError:
                pass
        """,
        5,
    ),
    "writes into the package": refused(
        "import os, rooflab\nopen(os.path.join(rooflab.__path__[0], 'rooflab_red.py'), 'w').write('x')"
    ),
    "writes through a descriptor": refused(
        """
        import os
        os.makedirs("a/b", exist_ok=True)
        os.chdir("a/b")
        place = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
        os.close(os.open("rooflab_red", os.O_WRONLY | os.O_CREAT, dir_fd=place))
        """,
        jail=True,
    ),
    "a history file, written in C": refused(
        "import readline\nreadline.write_history_file('/tmp/rooflab_red')", jail=True
    ),
    "a socket in the file system": refused("import socket\nsocket.socket(socket.AF_UNIX).bind('/tmp/rooflab_red')"),
    "a link": refused("import os\nos.symlink('/etc', '/tmp/rooflab_red')"),
    "a named pipe": refused("import os\nos.mkfifo('/tmp/rooflab_red')", jail=True),
    "a temporary file elsewhere": refused("import tempfile\ntempfile.mkstemp('rooflab_red', dir='/var/tmp')"),
    "removes the package": refused("import shutil, rooflab\nshutil.rmtree(rooflab.__path__[0])"),
    "changes the package's rights": refused("import os, rooflab\nos.chmod(rooflab.__file__, 0)"),
    "fills the disk": refused("for n in range(64):\n    open(f'rooflab_red{n}', 'wb').write(bytes(2**25))", jail=True),
    "files without end": beside(
        "import os\nfor n in range(3000):\n    os.close(os.open(f'rooflab_red{n}', os.O_CREAT | os.O_WRONLY))", 5
    ),
    "opens all that it can": refused(
        "import os\nheld = []\ntry:\n    while True:\n        held.append(os.dup(1))\n"
        "finally:\n    [os.close(one) for one in held]"
    ),
    "closes all that it can": beside("import os\nos.closerange(0, 64)", 0, "closed|ended"),
    "shared memory": refused(
        "from multiprocessing import shared_memory\nshared_memory.SharedMemory('rooflab_red', True, 2**20)", jail=True
    ),
    "a file in memory": refused(
        "import os\nos.close(os.memfd_create('rooflab_red'))",
        jail=True,
        known="the driver of GPUs needs the call: a control group limits what it takes" * bool(gpus()),
    ),
}


@pytest.mark.parametrize("attack", cases(PROCESSES))
def test_processes(attack):
    check(attack)


@pytest.mark.parametrize("attack", cases(FILES))
def test_files(attack):
    check(attack)


SEND = {
    "sendto": "sender.sendto(b'x', ('127.0.0.1', {port}))",
    "sendmsg": "sender.sendmsg([b'x'], [], 0, ('127.0.0.1', {port}))",
    "connect": "sender.connect(('127.0.0.1', {port}))\nsender.send(b'x')",
    "asyncio": "import asyncio\nasyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', {port}), 1))",
}


@pytest.mark.parametrize("how", SEND)
def test_nothing_is_sent(how):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        code = "import socket\nsender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n" + SEND[how]
        check(refused(code.format(port=listener.getsockname()[1])))
        with pytest.raises(BlockingIOError):
            listener.recv(1)


@pytest.mark.slow
def test_a_judge_that_is_killed_takes_its_worker_along(tmp_path):
    """The worker sleeps on; nothing of it may be left when its judge is gone."""
    program = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parents[1])]!r}
from redteam.attack import graded
print("up", flush=True)
graded("q1", "import time\\ntime.sleep(99)")
"""
    judge = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert judge.stdout.readline() == "up\n"
    held = Path(f"/proc/{judge.pid}/task/{judge.pid}/children")
    while not held.read_text(encoding="ascii"):
        os.sched_yield()
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    judge.stdout.close()
