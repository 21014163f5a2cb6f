"""Forked children, whatever the parent's other threads were doing: no lock is left locked in a child."""

import subprocess
import sys

import pytest

FORKS = """
import os, sys, threading, time
import rooflab as rl

def work():
    x, meta = rl.ones(1 << 10), rl.meta("H200")
    while True:
        {work}

def child_works():
    rl.empty(8, 8, device=rl.meta("H200"))
    rl.empty(8, 8, device=rl.meta("T4"))
    w = rl.ones(4, requires_grad=True)
    with rl.count() as c, rl.range("child"):
        (w * 2).sum().backward()
    assert w.grad.tolist() == [2.0] * 4 and c.launches > 0
    rl.memory.snapshot()

workers = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for worker in workers:
    worker.start()
time.sleep(0.05)
for _ in range(40):
    child = os.fork()
    if child == 0:
        child_works()
        os._exit(0)
    end = time.monotonic() + 20
    while True:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            break
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os._exit(3)
        time.sleep(0.001)
    if status:
        os._exit(4)
os._exit(0)
"""

WORK = {
    "ops on meta devices": "rl.empty(8, 8, device=meta)",
    "backward": "w = rl.ones(64, requires_grad=True); (w * 2).sum().backward(); w.grad",
    "counters and ranges": "\n        with rl.count(), rl.range('r'):\n            x + 1",
    "a memory record": "\n        with rl.memory.record():\n            x + 1",
    "a graph": "\n        g = rl.Graph('cpu')\n        with g.capture():\n            rl.randn(4)\n        g.replay()",
}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK.values(), ids=WORK.keys())
def test_a_child_works_though_other_threads_held_locks(work):
    done = subprocess.run(
        [sys.executable, "-c", FORKS.replace("{work}", work)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


ENDS = """
import os, sys, threading, time
import rooflab as rl
sys.setswitchinterval(1e-6)
x = rl.ones(1 << 10)

def work():
    while True:
        x + 1

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
for _ in range(20):
    child = os.fork()
    if child == 0:
        sys.exit(0)  # runs what is registered at exit, which waits for threads that the child does not have
    end = time.monotonic() + 20
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(child, 9)
            os._exit(3)
        time.sleep(0.001)
os._exit(0)
"""


@pytest.mark.slow
def test_a_child_ends_though_other_threads_waited_for_pythons_lock():
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
