"""Students' CUDA kernels on other machines: without a compiler or a jail, with an odd compiler, with a GPU."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from grading.demo_lab import TRUSTED, with_answers
from grading.kernel_answers import ADD, CALLED, LAUNCHES, SOURCE, changed, graded, judge

import rooflab as rl
from rooflab.cuda.simt import toolchain
from rooflab.grading import measure
from rooflab.grading.judge import kernels
from rooflab.grading.lab.model import LabError, Limits


@pytest.fixture(autouse=True)
def _needs_a_compiler():
    try:
        toolchain.compiler()
    except toolchain.NoCompiler as missing:
        pytest.skip(str(missing))


def no_compiler():
    raise toolchain.NoCompiler("backend='simt' needs g++: conda install gxx")


def test_without_a_compiler_a_kernel_is_pending(monkeypatch):
    monkeypatch.setattr(kernels.toolchain, "programs", no_compiler)
    one = judge("import rooflab as rl" + SOURCE)
    result = one.grade_question("q1", with_answers(one.lab, {"q1": ADD}))
    assert (result.earned, result.points, result.pending) == (0, 0, 5)
    assert "needs g++: conda install gxx" in result.tests[0].pending


MADE = 'module = rl.cuda.compile(CODE, backend="simt")\n'
WITHOUT_COMPILER = {
    "before the function": (LAUNCHES, (), 5),
    "in the function": (LAUNCHES, (MADE, "", "    y = np", f"    {MADE}    y = np"), 5),
    "caught": (
        LAUNCHES,
        (MADE, f"try:\n    {MADE}except rl.CudaError:\n    pass\n", "    y = np", "    return x + 1\n    y = np"),
        5,
    ),
    "for a source": (SOURCE, ("CODE = ", "CODE = rl.cuda.compile(", '}\n"""\n', '}\n""", backend=\'simt\')\n'), 5),
    "nothing compiled": (LAUNCHES, (MADE, ""), 0),
    "a stub": (LAUNCHES, (MADE, "", "    y = np", "    raise NotImplementedError\n    y = np"), 0),
    "no kernel asked for": ("assert gemm(1, 2) == 3", (), 0),
}


@pytest.mark.parametrize(("test", "words", "pending"), WITHOUT_COMPILER.values(), ids=WITHOUT_COMPILER)
def test_without_a_compiler_a_students_own_launches_are_pending(monkeypatch, test, words, pending):
    monkeypatch.setattr(kernels.toolchain, "programs", no_compiler)
    one = judge("import rooflab as rl\n" + test)
    result = one.grade_question("q1", with_answers(one.lab, {"q1": changed(*words)}))
    assert (result.earned, result.pending, result.points) == (0, pending, 5 - pending)
    assert ("needs g++: conda install gxx" in result.tests[0].pending) == bool(pending)


def test_a_kernel_for_a_gpu_is_seen_and_counted_on_the_cpu():
    """What "auto" compiles where there is a GPU: `measure.launches` runs it on the CPU, so that counts are equal."""
    code = changed(
        'backend="simt"', 'backend="gpu"', 'y = np.zeros(len(x), "f4")', "x, y = rl.tensor(x), rl.zeros(len(x))"
    )
    assert graded(LAUNCHES, code) == (5, "")
    earned, said = graded(LAUNCHES, code.replace("i < n", "i <= n"))
    assert earned == 0 and "reads 4 bytes at x[100], which has 100 elements" in said
    scope = {}
    exec(code + "import numpy as np" + LAUNCHES, scope)
    assert np.array_equal(scope["seen"].value.numpy(), scope["x"] + 1)
    with pytest.raises((rl.CudaError, ValueError)):
        scope["gemm"](scope["x"], 1)  # outside of a measurement it needs its GPU


@pytest.mark.gpu
@pytest.mark.skipif(not rl.cuda.is_available(), reason="needs a CUDA GPU")
def test_launches_on_a_gpu_are_seen():
    tensors = 'x, y = rl.tensor(x, device="cuda"), rl.zeros(len(x), device="cuda")'
    code = changed('backend="simt"', "()", 'y = np.zeros(len(x), "f4")', tensors, "return y", "return y.cpu()")
    scope = {}
    exec(code + "import numpy as np" + LAUNCHES, scope)
    assert isinstance(scope["module"], rl.cuda.Module)
    for given in (scope["seen"].value, scope["gemm"](scope["x"], 1)):
        assert np.array_equal(given.numpy(), scope["x"] + 1)
    assert graded(LAUNCHES, code) == (5, "")
    x = rl.zeros(33, device="cuda")
    run = measure.cuda_kernel(scope["CODE"], "add", grid=1, block=32, args=(x[:32], x[1:], 32))
    assert run.args[0].tolist() == list(range(32)), "x and y share memory, and threads run one after another"
    with pytest.raises(ValueError, match="contiguous"):
        measure.cuda_kernel(scope["CODE"], "add", grid=1, block=32, args=(x[::2], x, 8))


@contextlib.contextmanager
def another_compiler(monkeypatch, path):
    """`path` is the g++ of this machine."""
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    caches = toolchain.compiler, toolchain.programs, toolchain.folders, toolchain._identity
    for cache in caches:
        cache.cache_clear()
    try:
        yield
    finally:
        for cache in caches:
            cache.cache_clear()


def test_a_compiler_that_cannot_link_leaves_kernels_pending(tmp_path, monkeypatch):
    """As one without the static libraries: a student is not to blame for it."""
    program = tmp_path / "g++"
    says = "ld: cannot find -lstdc++: No such file"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *-static*) echo "{says}" >&2; exit 1;; esac\nexec {toolchain.compiler()} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    with another_compiler(monkeypatch, program):
        one = judge("import rooflab as rl" + SOURCE)
        result = one.grade_question("q1", with_answers(one.lab, {"q1": ADD}))
    assert (result.earned, result.points, result.pending) == (0, 0, 5)
    assert f"{program} says: {says}" in result.tests[0].pending


@pytest.mark.slow
def test_a_compiler_in_an_odd_place_is_brought_into_the_jail(tmp_path, monkeypatch):
    """As conda's or ccache's: a link of this name to a program that looks at the name it was called by."""
    program, link = tmp_path / "tools" / "any", tmp_path / "bin" / "g++"
    for path in (program, link):
        path.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$0" in *g++) exec {toolchain.compiler()} "$@";; esac\nexit 1\n', encoding="utf-8"
    )
    program.chmod(0o755)
    link.symlink_to(program)
    with another_compiler(monkeypatch, link):
        assert toolchain.compiler() == str(link)
        assert {link.parent, program.parent} <= set(toolchain.folders())
        assert graded(SOURCE, ADD) == (5, "")


def test_the_compilers_own_programs_lie_in_its_folders():
    found = [toolchain._said(toolchain.compiler(), f"-print-prog-name={name}") for name in ("cc1plus", "collect2")]
    assert all(path.startswith("/") for path in found)
    assert {Path(path).parent for path in found} <= set(toolchain.folders())


def test_a_process_that_is_lost_is_started_again(monkeypatch):
    with kernels.Kernels(Limits(seconds=0), not TRUSTED) as asked:
        asked.answer("describe", "__global__ void f(int* x) {}", ())
        monkeypatch.setattr(kernels, "PATIENCE_S", 0)
        with pytest.raises(RuntimeError, match="The kernel's process was lost: The code took longer"):
            asked.answer("describe", "__global__ void f() {}", ())
        monkeypatch.undo()
        assert asked.answer("describe", "__global__ void f(int* x) { *x = 1; }", ())[0] == "made"


def test_no_jail_is_no_fault_of_the_kernels(monkeypatch):
    def fails(*_, **__):
        raise LabError("no process starts here")

    one = judge("import rooflab as rl" + LAUNCHES)
    monkeypatch.setattr(kernels, "Link", fails)
    with pytest.raises(LabError, match="no process starts"):
        one.grade_question("q1", with_answers(one.lab, {"q1": ADD + CALLED}))
