"""Each trick of a dishonest answer fails its question, with a reason, and neither stops nor misleads the judge."""

import dataclasses
import os
import struct
import textwrap
import time

import pytest
from grading.demo_lab import RIGHT, SUBINTERPRETERS, TRUSTED, demo_lab, grade_one, with_answers

from rooflab.grading.jail import wire
from rooflab.grading.jail.link import Link, WorkerLost
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.model import Limits

# label: (code run beside a right gemm, words of the reason)
BESIDE = {
    "exits at once": ("import os; os._exit(0)", "exit code 0"),
    "closes all descriptors": ("import os; os.closerange(0, 256)", "ended|closed"),
    "kills its parent": ("import os, signal; os.kill(os.getppid(), signal.SIGKILL)", "os.kill"),
    "kills its parent, quietly": (
        "import os\ntry:\n    os.kill(os.getppid(), 9)\nexcept BaseException:\n    pass",
        "os.kill",
    ),
    "kills every process": ("import os; os.kill(-1, 9)", "os.kill"),
    "kills the group": ("import os; os.killpg(0, 9)", "os.killpg"),
    "forks": ("import os; os.fork()", "os.fork"),
    "lifts its limits": ("import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (9, 9))", "setrlimit"),
    "makes another interpreter": (f"import {SUBINTERPRETERS} as s; s.create()", f"imported {SUBINTERPRETERS}"),
    "makes another interpreter as the tests of Python do": (
        "import _testcapi; _testcapi.run_in_subinterp('1')",
        "imported _testcapi|No module named",  # Debian leaves it out
    ),
    "writes to every descriptor": (
        """
        import os
        for fd in range(3, 64):
            try:
                os.write(fd, b"RLv1" + bytes(range(40)))
            except OSError:
                pass
        """,
        "not asked for|not an answer|ended",
    ),
    "forges a reply": (
        """
        import os
        from rooflab.grading.jail import wire
        for fd in range(3, 64):
            try:
                wire.send(fd, wire.message((1, "ok", True)))
            except OSError:
                pass
        """,
        "not an answer|not asked for|ended",
    ),
    "crashes": ("import faulthandler; faulthandler._sigsegv()", "SIGSEGV"),
}

# Code beside a right gemm that changes the answer's own process. It has no effect, because nothing is measured there.
HARMLESS = {
    "a thread that stays": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
    "a low-level thread": "import _thread, time\n_thread.start_new_thread(time.sleep, (60,))",
    "replaces a function of NumPy": "np.allclose = lambda *a, **k: False",
    "replaces the clock": "import time; time.perf_counter = time.monotonic = lambda: 0.0",
    "replaces a module": "import sys, types; sys.modules['numpy'] = types.ModuleType('numpy')",
    "replaces the code of a function": "import rooflab as rl; rl.latency.__code__ = (lambda *a, **k: 0).__code__",
    "replaces a builtin": "import builtins; builtins.abs = lambda x: 0",
    "counts memory anew": "import tracemalloc; tracemalloc.start(); tracemalloc.reset_peak()",
    "traces": "import sys; sys.settrace(lambda *a: None)",
    "takes the main module apart": "import __main__; __main__.Worker = __main__.wire = None",
}

# label: (the whole answer, words of the reason)
WHOLE = {
    "never ends": ("while True:\n    pass", "longer than"),
    "never ends, and ignores signals": (
        "import signal\nfor n in (1, 2, 15):\n    signal.signal(n, signal.SIG_IGN)\nwhile True:\n    pass",
        "longer than",
    ),
    "sleeps": ("import time; time.sleep(60)", "longer than"),
    "never returns": ("def gemm(a, b):\n    while True:\n        pass", "longer than"),
    "takes all memory": (
        "def gemm(a, b):\n    held = []\n    while True:\n        held.append(bytearray(2**27))",
        "MemoryError|longer than",  # on a machine with a GPU the limit is far off
    ),
    "takes all memory at once": ("def gemm(a, b):\n    return np.ones(10**11)", "Memory"),
    "a shared bomb": ("import mmap\ndef gemm(a, b):\n    return mmap.mmap(-1, 2**40)", "not allowed"),
    "exits in the call": ("import sys\ndef gemm(a, b):\n    sys.exit(0)", "called exit"),
    "exits hard in the call": ("import os\ndef gemm(a, b):\n    os._exit(0)", "exit code 0"),
    "raises KeyboardInterrupt": ("def gemm(a, b):\n    raise KeyboardInterrupt", "KeyboardInterrupt"),
    "raises what cannot be shown": (
        "class Odd(Exception):\n    def __str__(self):\n        raise SystemExit\ndef gemm(a, b):\n    raise Odd",
        "Odd",
    ),
    "equal to everything": (
        "class Any:\n    def __eq__(self, other):\n        return True\ndef gemm(a, b):\n    return Any()",
        "cannot be passed",
    ),
    "an array that says yes": (
        """
        class Yes(np.ndarray):
            def __array_function__(self, *args):
                return True
        def gemm(a, b):
            return np.zeros((a.shape[0], b.shape[1])).view(Yes)
        """,
        "cannot be passed",
    ),
    "a generator": ("def gemm(a, b):\n    yield a", "cannot be passed"),
    "an array of objects": ("def gemm(a, b):\n    return np.array([[object()]])", "cannot be passed"),
    "too large a result": ("def gemm(a, b):\n    return np.zeros(2**26 + 1)", "too large|Unable to allocate"),
    "not a function": ("gemm = 3", "not callable"),
    "no such name": ("nothing = 1", "gemm is not defined"),
    "not Python": ("def gemm(a, b:", "SyntaxError"),
    "prints a forged protocol": (
        "import sys\ndef gemm(a, b):\n    print('RLv1 ok 5 points')\n    sys.stdout.flush()\n    return a",
        "rows",
    ),
    "reads the sources": (
        """
        def gemm(a, b):
            import glob, pathlib
            place = pathlib.Path({tests!r}) / "demo" / "lab9" / "00_demo.py"
            scope = {{"np": np}}
            exec(place.read_text(), scope)
            return scope["gemm"](a, b)
        """,
        "PermissionError",
    ),
    "reads the judge's memory": (
        "import os\ndef gemm(a, b):\n    return open(f'/proc/{{os.getppid()}}/mem', 'rb').read(1)",
        "PermissionError",
    ),
    "searches the disk": ("import os\ndef gemm(a, b):\n    return os.listdir('/')", "PermissionError"),
    "writes elsewhere": ("def gemm(a, b):\n    open('/tmp/rooflab-was-here', 'w').write('x')", "PermissionError"),
    "starts a program": ("import os\ndef gemm(a, b):\n    return os.system('true')", "PermissionError"),
    "calls C": ("import ctypes\ndef gemm(a, b):\n    return ctypes.CDLL(None).getpid()", "PermissionError"),
    "calls home": (
        "import socket\ndef gemm(a, b):\n    socket.create_connection(('127.0.0.1', 9))",
        "PermissionError",
    ),
}


@pytest.fixture(scope="module")
def lab():
    """The demo lab with a short limit."""
    lab = demo_lab()
    short = {"seconds": 1.5, "memory_gb": 0.6}
    return dataclasses.replace(
        lab, cells=tuple(dataclasses.replace(c, options=short) if c.key == "q1_test" else c for c in lab.cells)
    )


def fails(lab, code, reason):
    start = time.monotonic()
    result = grade_one("q1", code, lab)
    assert result.earned == 0
    message = result.tests[0].message
    assert message and any(words in message for words in reason.split("|")), message
    assert time.monotonic() - start < 8


def test_the_right_answer_passes(lab):
    assert grade_one("q1", RIGHT, lab).earned == 5


@pytest.mark.parametrize("code, reason", BESIDE.values(), ids=BESIDE)
def test_tricks_beside_a_right_answer(lab, code, reason):
    code = textwrap.dedent(code)
    fails(lab, f"{RIGHT}def gemm(a, b, right=gemm):\n{textwrap.indent(code, '    ')}\n    return right(a, b)", reason)


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
def test_what_changes_the_answers_own_process_changes_no_grade(lab, code):
    result = grade_one(
        "q1", f"{RIGHT}def gemm(a, b, right=gemm):\n{textwrap.indent(code, '    ')}\n    return right(a, b)", lab
    )
    assert result.earned == 5, result.tests[0].message


@pytest.mark.parametrize("label", ["exits at once", "kills its parent", "forks"])
def test_tricks_in_the_cell_itself(lab, label):
    code, reason = BESIDE[label]
    fails(lab, RIGHT + textwrap.dedent(code), reason)


def test_an_answer_runs_in_the_main_module(lab):
    code = "import __main__\nassert vars(__main__) is globals() is display.__globals__ and __name__ == '__main__'\n"
    result = grade_one("q1", code + RIGHT, lab)
    assert result.earned == 5, result.tests[0].message


@pytest.mark.slow(but_every=2)
@pytest.mark.slow(id=["never ends", "never returns", "sleeps"])
@pytest.mark.parametrize("code, reason", WHOLE.values(), ids=WHOLE)
def test_tricks_instead_of_an_answer(lab, code, reason):
    code = textwrap.dedent(code).replace("{tests!r}", repr(os.path.dirname(__file__)))
    fails(lab, code.replace("{{", "{").replace("}}", "}"), reason)


def test_a_lost_worker_costs_only_its_question(lab):
    submission = with_answers(lab, {"q1": RIGHT, "q2_1": "import os; os._exit(3)"})
    assert [result.earned for result in Judge(lab, TRUSTED).grade(submission)] == [5, 0, 4, 3]


def test_a_value_is_taken_as_it_is(lab):
    for code in ("corner = np.float64(50.39)", "corner = True", "corner = float('nan')", "corner = '50.39'"):
        assert grade_one("q2_1", code, lab).earned == 0
    lying = "class F(float):\n    def __sub__(self, o):\n        return 0.0\ncorner = F(1)"
    assert grade_one("q2_1", lying, lab).earned == 0
    assert grade_one("q2_1", lying.replace("F(1)", "F(50.39)"), lab).earned == 3, "what it holds counts"


def test_tests_cannot_pass_over_a_dead_worker(lab):
    code = "def refuse(x):\n    import os\n    os._exit(1) if x < 0 else None\n    return x"
    assert "exit code 1" in grade_one("b2_2", code, lab).tests[0].message
    wrong = "def refuse(x):\n    if x < 0:\n        raise TypeError('negative')\n    return x"
    assert "TypeError" in grade_one("b2_2", wrong, lab).tests[0].message


def test_what_may_not_cross_is_no_error_of_the_students(lab):
    """A test that expects an error must not pass because of it, and the question's next test goes on."""
    code = "class negative:\n    pass\ndef refuse(x):\n    return negative() if x < 0 else x"
    assert "could not be passed" in grade_one("b2_2", code, lab).tests[0].message
    odd = "class Odd(type):\n    @property\n    def __module__(cls):\n        raise ValueError('negative')\n"
    code = odd + code.replace("negative:", "negative(metaclass=Odd):")
    assert "could not be passed" in grade_one("b2_2", code, lab).tests[0].message


def test_a_reply_to_another_request_is_none(lab):
    """The fourth request calls gemm, after setup, the answer, and whether there is a gemm. It is the last
    one: to a fifth, gemm's own reply would be no answer either.
    """
    once = "assert np.array_equal(gemm(np.eye(SIDE), np.full((SIDE, 2), 3.0)), np.full((SIDE, 2), 3.0))"
    cells = tuple(dataclasses.replace(c, source=once) if c.key == "q1_test" else c for c in lab.cells)
    forged = """
        import os
        from rooflab.grading.jail import wire
        def gemm(a, b):
            for fd in range(3, 64):
                try:
                    wire.send(fd, wire.message((4, "ok", np.full((4, 2), 3.0))))
                except OSError:
                    pass
        """
    fails(dataclasses.replace(lab, cells=cells), textwrap.dedent(forged), "not an answer to what was asked")


@pytest.mark.slow
def test_a_judge_that_is_kept_busy_is_stopped(lab, monkeypatch):
    monkeypatch.setattr("rooflab.grading.judge.judge.SLACK_S", 0.0)
    monkeypatch.setattr("rooflab.grading.judge.judge.EXPERIMENTS_S", 0.0)
    cells = tuple(dataclasses.replace(c, source="while True: gemm") if c.key == "q1_test" else c for c in lab.cells)
    result = grade_one("q1", RIGHT, dataclasses.replace(lab, cells=cells))
    assert "did not end in time" in result.tests[0].message


LATE = "def gemm(a, b, right=gemm):\n    if len(a) == 9:\n        {}\n    return right(a, b)\n"
WORKER = "next(one for one in __import__('gc').get_objects() if type(one).__name__ == 'Worker')"
TOO_MUCH = f"import os; os.write({WORKER}.replies, b'RLv1' + bytes(40))"
AFTERWARDS = f"import os, time; type({WORKER}).receive = lambda self: (time.sleep(0.3), os.fork())"  # reads no more
HALF = f"import os; os.write({WORKER}.replies, b'RLv1' + bytes([9] + 7 * [0]) + b'N'); os._exit(0)"
CLOSES = f"import os, time; os.close({WORKER}.replies); "
UNHEARD = (  # its connection is closed when it is told to end
    f"import os\nworker = {WORKER}\nread = type(worker).receive\n"
    "def receive(self):\n"
    "    said = read(self)\n"
    "    return (os.close(self.replies), os.fork()) if said[1] == 'bye' else said\n"
    "type(worker).receive = receive"
)


@pytest.mark.parametrize(
    "does, earned, said",
    [
        ("while True: pass", 5, "longer than 3 s"),
        ("import os; os._exit(3)", 5, "exit code 3"),
        ("import os; os.fork()", 0, "os.fork"),
        (TOO_MUCH, 0, "not an answer"),
        (AFTERWARDS, 0, "os.fork"),
        (CLOSES + "os.fork()", 0, "stopped itself, as it does after what is not allowed"),
        (CLOSES + "time.sleep(60)", 0, "closed its connection"),
        (HALF, 0, "ends in its middle"),
    ],
    ids=[
        *("takes long", "exits", "forks", "says too much", "forks before it reads"),
        *("forks unheard", "closes its connection", "says a half"),
    ],
)
def test_tests_that_ended_before_the_process_keep_their_result(lab, does, earned, said):
    """Those after it fail, even one that asks nothing of the process."""
    asks = "late = gemm(np.ones((9, 9)), np.ones((9, 9)))\nlate = gemm(np.ones((400, 400)), np.ones((400, 400)))"
    late = {"q1_late": asks, "q1_last": "assert hidden_result.size"}  # the second is more than a pipe holds
    first = next(cell for cell in lab.cells if cell.key == "q1_test")
    first = dataclasses.replace(first, options={**first.options, "seconds": 3})
    more = [dataclasses.replace(first, key=key, source=source, public=source) for key, source in late.items()]
    at = next(place for place, cell in enumerate(lab.cells) if cell.key == "q1_test")
    whole = dataclasses.replace(lab, cells=(*lab.cells[:at], first, *more, *lab.cells[at + 1 :]))
    result = grade_one("q1", RIGHT + LATE.format(does), whole)
    assert (result.earned, result.points) == (earned, 15)
    assert [bool(test.message) for test in result.tests] == [not earned, True, True]
    assert result.tests[1].message == result.tests[2].message == result.lost and said in result.lost


def test_what_is_not_allowed_counts_at_the_end_too(lab):
    fails(lab, UNHEARD + "\n" + RIGHT, "stopped itself, as it does after what is not allowed")


def test_questions_without_end_stop_with_the_time(monkeypatch):
    """Each question is there at once, so no wait for it tells that the time is over."""
    with Link(Limits(seconds=2), isolated=False) as link:
        questions = iter([("asks", (1,))])  # next() fails if a second one is read
        monkeypatch.setattr(wire, "send", lambda *_: None)
        monkeypatch.setattr(wire, "receive", lambda *_: (link.number, *next(questions)))
        link.deadline = time.monotonic() - 1
        with pytest.raises(WorkerLost, match="longer than 2 s"):
            link.ask("call", answer=lambda number: number)


@pytest.mark.parametrize("serves, more", [("judge.worker", ""), ("judge.runtime", ": an unknown tag")])
def test_what_cannot_be_read_is_told(monkeypatch, serves, more):
    """A tensor, for example, on a GPU that is not in the jail. The words of a worker may be the student's."""
    with Link(Limits(), isolated=False, serves=serves) as link:
        monkeypatch.setattr(wire, "message", lambda value: wire.MAGIC + struct.pack("<Q", 1) + b"?")
        with pytest.raises(WorkerLost, match=f"Stopped: what the judge sent cannot be read here{more}\\.$"):
            link.ask("call")


TELLS = {  # hidden inputs, in what the judge would say of why it lost the process
    "a reason": "codec.encode((0, 'fatal', text))",
    "a known reason": "codec.encode((0, 'fatal', 'what the judge sent cannot be read here: ' + text))",
    "a device": "b't\\1\\0\\0\\0x' + codec._text(text) + codec._array(np.zeros(1))[0] + bytes(8)",
    "a device without memory": "b't\\1\\0\\0\\0m' + codec._text('meta:' + text) + codec._head('float32', (1,))",
}


@pytest.mark.parametrize("body", TELLS.values(), ids=TELLS)
def test_a_lost_process_tells_nothing_of_hidden_inputs(lab, body):
    code = f"""
        import gc, os, struct
        from rooflab.grading.jail import codec, wire
        def gemm(a, b, right=gemm):
            text = f"SEEN{{a.shape}}"
            body = {body}
            worker = next(one for one in gc.get_objects() if type(one).__name__ == "Worker")
            os.write(worker.replies, wire.MAGIC + struct.pack("<Q", len(body)) + body)
        """
    result = grade_one("q1", RIGHT + textwrap.dedent(code), lab)
    assert result.lost and "SEEN" not in result.lost, result.lost


def test_hidden_tests_never_reach_the_worker(lab):
    spy = RIGHT + textwrap.dedent("""
        def gemm(a, b, right=gemm):
            import gc
            texts = [one for one in gc.get_objects() if type(one) is dict]
            found = any("hidden" + "_result" in str(key) for one in texts for key in one)
            if found:
                raise RuntimeError("seen")
            return right(a, b)
        """)
    assert grade_one("q1", spy, lab).earned == 5


def test_nothing_is_left_behind(lab, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    grade_one("q1", RIGHT, lab)  # the first grading of a process opens what it keeps
    before = len(os.listdir("/proc/self/fd"))
    grade_one("q1", RIGHT, lab)
    grade_one("q1", "import os; os._exit(1)", lab)
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("does", ["calls == 1", "calls == 2", "a.shape not in kept"])
def test_a_call_counts_with_what_it_did_once(does):
    """A function that returns a number is called twice; one may do less, for the sake of its count or by a memo."""
    answer = f"""
calls, kept = 0, {{}}
def gemm(a, b):
    global calls
    calls += 1
    if {does}:
        kept[a.shape] = (a @ b).shape[0]
    return 3.0
"""
    test = """
import rooflab as rl
from rooflab.grading import measure
seen = measure.count(gemm, rl.ones((1, 3)) / 3, rl.ones((3, 1)) * 3)
assert (seen.value, seen.macs, seen.by_op) == (3.0, 3, {"matmul": 1}), f"{seen.value}, {seen.macs}, {seen.by_op}"
"""
    lab = demo_lab()
    cells = tuple(dataclasses.replace(c, source=test) if c.key == "q1_test" else c for c in lab.cells)
    lab = dataclasses.replace(lab, cells=cells)
    (result,) = Judge(lab, TRUSTED).grade_question("q1", with_answers(lab, {"q1": answer})).tests
    assert result.message == ""
