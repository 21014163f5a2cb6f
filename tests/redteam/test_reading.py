"""Answers that look for the answer: in memory, on the disk, in other processes, and through calls that the interpreter
does not report.

Each searches texts for the line of the lab's source that holds the answer. The same code also runs in a process where
the line is within reach, to show that it would find it.
"""

import builtins
import linecache
import os
import sys
import textwrap
import types

import pytest
from grading.demo_lab import SOURCE, TRUSTED, demo_lab
from redteam.attack import JAIL, Attack, cases, check

import rooflab as rl

PART = SOURCE / "00_demo.py"
SEARCH = """
import re
corner = None
{code}
for text in texts():
    if hit := re.search(r"corner = (\\d+\\.\\d+)\\n", text):
        corner = float(hit[1])
        break
"""

# label: what gives the texts; PART is the path of the lab's source
MEMORY = {
    "everything that the collector knows": """
        import gc
        def texts():
            for one in gc.get_objects():
                for inner in gc.get_referents(one):
                    if type(inner) is str:
                        yield inner
        """,
    "the callers' frames": """
        import sys
        def texts():
            frame = sys._getframe()
            while frame:
                yield from [one for one in [*frame.f_locals.values(), *frame.f_globals.values()] if type(one) is str]
                frame = frame.f_back
        """,
    "the frames of a traceback": """
        def texts():
            try:
                raise ValueError
            except ValueError as error:
                frame = error.__traceback__.tb_frame
            while frame:
                yield from [one for one in frame.f_locals.values() if type(one) is str]
                frame = frame.f_back
        """,
    "the frames of every thread": """
        import sys
        def texts():
            for frame in sys._current_frames().values():
                while frame:
                    yield from [one for one in frame.f_locals.values() if type(one) is str]
                    frame = frame.f_back
        """,
    "closures": """
        import tracemalloc, types
        def texts():
            todo, seen = [planted if "planted" in dir(__import__("builtins")) else tracemalloc.start], set()
            while todo:
                one = todo.pop()
                if id(one) in seen or len(seen) > 100_000:
                    continue
                seen.add(id(one))
                if type(one) is str:
                    yield one
                if isinstance(one, types.FunctionType):
                    todo += [cell.cell_contents for cell in one.__closure__ or ()]
                    todo += [vars(one) for one in one.__globals__.values() if isinstance(one, types.ModuleType)]
                todo += list(one.values()) if type(one) is dict else list(getattr(one, "__dict__", {}).values())
        """,
    "constants of code": """
        import gc, types
        def texts():
            for function in gc.get_objects():
                if isinstance(function, types.FunctionType):
                    yield from (one for one in function.__code__.co_consts if type(one) is str)
        """,
    "lines that tracebacks keep": """
        import linecache
        def texts():
            for *_, lines, _ in linecache.cache.values():
                yield "".join(lines)
        """,
    "modules": """
        import sys
        def texts():
            for module in list(sys.modules.values()):
                yield from (one for one in list(vars(module).values()) if type(one) is str)
        """,
    "the arguments and the environment": """
        import os, sys
        def texts():
            yield "\\n".join([*sys.argv, *sys.orig_argv, *os.environ.values(), ""])
        """,
}
DISK = {
    "open": "def texts():\n    yield open(PART).read()",
    "NumPy": "def texts():\n    yield np.fromfile(PART, np.uint8).tobytes().decode()",
    "a mapped file": "def texts():\n    yield bytes(np.memmap(PART, np.uint8, 'r')).decode()",
    "the module loader": "from importlib.machinery import SourceFileLoader\ndef texts():\n"
    "    yield SourceFileLoader('x', PART).get_data(PART).decode()",
    "linecache": "def texts():\n    yield ''.join(__import__('linecache').getlines(PART))",
    "a walk over the disk": """
        import os
        def texts():
            for folder, _, names in os.walk(os.path.dirname(PART)):
                for name in names:
                    yield open(os.path.join(folder, name)).read()
        """,
    "up from the package": """
        import os, rooflab
        def texts():
            top = os.path.dirname(os.path.dirname(os.path.dirname(rooflab.__file__)))
            yield open(os.path.join(top, os.path.relpath(PART, top))).read()
        """,
}
# Calls that the interpreter does not report to the guard inside it. Only the jail stops them, by having no such file.
UNREPORTED = {
    "readline, which reads in C": """
        import readline
        def texts():
            readline.read_history_file(PART)
            for number in range(readline.get_current_history_length()):
                yield str(readline.get_history_item(number + 1)) + "\\n"
        """,
    "a program, started in C": """
        import os, _posixsubprocess
        def texts():
            reading, writing = os.pipe()
            failing, failed = os.pipe()
            program, command = [b"/bin/cat"], [b"cat", PART.encode()]
            ends = -1, -1, -1, writing, -1, -1, failing, failed
            try:
                pid = _posixsubprocess.fork_exec(
                    command, program, True, (failed,), None, None, *ends, True, True, -1, None, None, None, -1, None,
                    False,
                )
                os.close(writing)
                yield os.read(reading, 2**16).decode()
                os.waitpid(pid, 0)
            finally:
                os.close(reading), os.close(failing), os.close(failed)
        """,
    "a path from a descriptor": """
        import os
        def texts():
            os.makedirs("a/b/c/d/e/f/g/h", exist_ok=True)
            os.chdir("a/b/c/d/e/f/g/h")
            place = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
            try:
                for _ in range(8):
                    above = os.open("..", os.O_RDONLY, dir_fd=place)
                    os.close(place)
                    place = above
                file = os.open(PART.lstrip("/"), os.O_RDONLY, dir_fd=place)
            finally:
                os.close(place)
            text = os.read(file, 2**20).decode()
            os.close(file)
            yield text
        """,
}


def written_out(code, path=PART):
    return SEARCH.format(code=textwrap.dedent(code).strip().replace("PART", repr(str(path))))


NOTHING = "corner is a float|PermissionError|FileNotFoundError|OSError"
READING = {
    label: Attack(written_out(code), 0, NOTHING, "q2_1", jail=code in UNREPORTED.values())
    for label, code in (MEMORY | DISK | UNREPORTED).items()
}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("attack", cases(READING))
def test_an_answer_that_reads_the_answer_finds_nothing(attack):
    check(attack)


def planted(text):
    """Put the line into every place where the attacks look."""
    builtins.planted = types.SimpleNamespace(text=text)
    linecache.cache["planted"] = len(text), None, [text], "planted"
    sys.argv.append(text)
    sys.modules["rooflab_planted"] = module = types.ModuleType("rooflab_planted")
    exec(f"text = {text!r}\ndef constant():\n    return {text!r}", vars(module))


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("code", (MEMORY | DISK | UNREPORTED).values(), ids=MEMORY | DISK | UNREPORTED)
def test_the_same_code_finds_it_where_it_is(code, tmp_path):
    text = next(cell.source for cell in demo_lab().cells if cell.key == "q2_1").split("\n")[2] + "\n"
    assert text == "corner = 50.39\n"
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.chdir(tmp_path)
            planted(text)
            names = {"np": __import__("numpy"), "__name__": "__main__"}
            exec(written_out(code), names)
            status = 0 if names["corner"] == 50.39 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


LOG = f"""
import rooflab as rl
try:
    rl.cuda.compile('__global__ void f() {{}}\\n#include "{PART}"', backend="gpu")
    log = ""
except rl.cuda.CompileError as error:
    log = str(error)
"""


@pytest.mark.skipif(TRUSTED, reason=JAIL)
def test_the_compilers_log_shows_no_line_of_a_file():
    names = {}
    try:
        exec(LOG, names)
    except rl.CudaError as error:
        pytest.skip(str(error))
    assert "import numpy as np" in names["log"], "outside of the jail it does"
    check(Attack(LOG + "corner = 50.39 if 'import numpy' in log else 0.0", 0, "wrong corner", "q2_1"))
