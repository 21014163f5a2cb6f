"""Students' CUDA kernels under the judge: values, findings and counts, and attempts to forge them."""

import functools

import numpy as np
import pytest
from grading.kernel_answers import ADD, CALLED, HIDDEN, LAUNCHES, SOURCE, changed, graded

import rooflab as rl
from rooflab.cuda.simt import toolchain
from rooflab.grading import measure
from rooflab.grading.jail import codec
from rooflab.grading.measure import kernel
from rooflab.grading.measure.kernel_arguments import packed, take_back, unpacked
from rooflab.grading.measure.results import Implausible


@pytest.fixture(autouse=True)
def _needs_a_compiler():
    try:
        toolchain.compiler()
    except toolchain.NoCompiler as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("test", [LAUNCHES, SOURCE, HIDDEN], ids=["launches", "source", "hidden"])
def test_a_right_kernel_is_graded(test):
    assert graded(test, ADD + CALLED) == (5, "")


def test_a_cell_of_cuda_is_graded():
    cell = "%%cuda_kernel CODE --backend=simt -DMORE=1" + ADD.split('"""')[1].replace("+ 1", "+ MORE")
    assert graded(SOURCE, cell) == (5, "")
    earned, said = graded(SOURCE, cell.replace("int n)", "int n"))
    assert earned == 0 and "CODE is not defined" in said and "source(2): error" in said
    assert "expected a name" in graded(SOURCE, cell.replace("CODE", "3x"))[1]


@pytest.mark.parametrize(
    "test, change, why",
    [
        (SOURCE, ("i < n", "i <= n"), "line 4: Thread 1 of block 0 reads 4 bytes at x[1], which has 1 element."),
        (HIDDEN, ("i < n", "i <= n"), "line 4: out of bounds, on inputs that are not shown."),
        (SOURCE, ("x[i] + 1", "x[i] + 2"), "the values"),
        (SOURCE, ("x[i] + 1", "x[i] + 1 + 0 * x[n - 1 - i]"), "2 requests"),
        (SOURCE, ("y[i] = x[i]", "float sum = x[i]"), "No thread wrote to global memory."),
        (SOURCE, ("i < n", "i < 0"), "the values"),
        (SOURCE, ("if (i < n)", "while (i < n)"), "was not done after 1 s: a loop may have no end"),
        (SOURCE, ("x[i] + 1", "x[i] + one"), "source(4): error: 'one' was not declared"),
        (SOURCE, ("void add", "void sum"), "KeyError: no kernel 'add'; the source has sum"),
        (SOURCE, ("const float* x", "const double* x"), "x (const double*): expected a float64"),
        (SOURCE, ("module = rl", "CODE, module = 3, rl"), "the source of a kernel has to be a text, not int"),
        (LAUNCHES, ("x[i] + 1", "x[i + 1]"), "KernelError: [add] line 4: Thread 3 of block 3 reads"),
        (LAUNCHES, ("    return", "    module['add'](4, 32, x, y, len(x))\n    return"), "2 launches"),
        (LAUNCHES, ("    module['add']".replace("'", '"'), "    0 and module['add']"), "0 launches"),
    ],
)
def test_a_wrong_kernel_is_told_what_is_wrong(monkeypatch, test, change, why):
    earned, said = graded(test.replace("args=(x, y, n)", "args=(x, y, n), seconds=1"), changed(*change))
    assert earned == 0 and why in said, said


def test_one_finding_may_be_what_a_test_asks_for():
    test = """
    from rooflab.grading import measure
    x = np.zeros(32, "f4")
    run = measure.cuda_kernel(CODE, "f", grid=1, block=64, args=(x,))
    assert "race" in [one.kind for one in run.findings], "no race"
    """
    racing = '''
    CODE = r"""
    __global__ void f(float* x) {
      __shared__ float s[64];
      s[threadIdx.x] = threadIdx.x;
      if (threadIdx.x < 32) x[threadIdx.x] = s[threadIdx.x + 32];
    }
    """
    '''
    assert graded(test, racing) == (5, "")
    waits = racing.replace("if (thr", "__syncthreads(); if (thr")
    assert graded(test, waits) == (0, "no race")


# What student code can try in its own process

ATTACKS = {
    "rl.cuda is another": changed("module = rl", "class Fake:\n    @staticmethod\n    def compile(*a, **k):\n"
        "        return {'add': lambda *a: None}\nrl.cuda = Fake\nmodule = rl"),
    "the result says 4 requests": changed("y[i] = x[i] + 1", "y[i] = x[i] + x[n - 1] - x[n - 1] + 1",
        "    module[\"add\"]", "    seen = module[\"add\"]", "    return y",
        "    seen.counts.global_loads.requests = 4\n    seen.counts.flops = 100\n    return y"),
    "the counts' class lies": changed("y[i] = x[i] + 1", "y[i] = x[i] + x[i] - x[i] + 1", "module = rl",
        "rl.cuda.Access.requests = property(lambda self: 4)\nmodule = rl"),
    "another kernel at the second call": changed("module = rl", "more = rl.cuda.compile(CODE.replace('+ 1', "
        "'+ 1 + 0 * x[0]'), backend='simt')\nmodule = rl", "    module[", "    more[", ),
    "NumPy instead of a launch": changed("    module[\"add\"](-(-len(x) // 32), 32, x, y, len(x))", "    y[:] = x + 1"),
    "answers in the judge's place": changed("module = rl", "from rooflab.grading.judge import worker_kernels\n"
        "worker_kernels._ask = lambda kind, *a: ('made', [], '')\nmodule = rl"),
    "asks the judge for what it never launched": changed("    return y", "    return x + 1", "module = rl",
        "from rooflab.grading.judge import worker_kernels\nfor _ in range(2):\n    try:\n"
        "        worker_kernels._ask('watching')\n    except ValueError:\n        pass\nmodule = rl",
        "x[i] + 1", "x[i] * 0"),
}  # fmt: skip


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in ATTACKS.items()])
def test_what_the_students_process_says_decides_nothing(code):
    earned, said = graded(LAUNCHES, code)
    assert earned == 0 and said, "an attack earned points"


@pytest.mark.parametrize(
    "question, why",
    [
        ("('watching',)", "the judge answers nothing"),
        ("('run',)", "not enough values"),
        ("('run', 3, (), 'add', 1, 1, [], [], {'seconds': 1})", "has to be a text"),
        ("('run', CODE, (), 'add', 1, 1, [], [(0, 1 << 40, np.empty(0, 'f4'), (9,), (4,))], {'seconds': 1})", "range"),
        (
            "('run', CODE, (), 'add', 1, 1, [np.zeros(4, 'u1')], [(0, 0, np.empty(0, 'f4'), (1 << 40,), (0,))], "
            "{'seconds': 1})",
            "4,398,046,511,104 bytes in all",
        ),
        ("('run', CODE, (), 'add', 1, 1, [], [], {'seconds': 'x'})", "not supported between"),
        ("('run', CODE, ('-fplugin=x.so',), 'add', 1, 1, [], [], {'seconds': 1})", "knows -DNAME=value"),
        ("('run', CODE, ('-DA=1\\n#include \"/etc/passwd\"',), 'add', 1, 1, [], [], {'seconds': 1})", "knows -DNAME"),
        ("('describe', CODE + '\\n#include </etc/passwd>', ())", "refused"),
        ("('run', CODE, (), 'add', 1, 1, [], [], {'seconds': 1, 'more': 3})", "unexpected keyword"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_and_hurts_nothing(question, why):
    asks = f"""
import numpy as np
from rooflab.grading.judge import worker_kernels
def gemm(a, b):
    try:
        return str(worker_kernels._ask(*{question}))
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"
"""
    test = "said = gemm(1, 2)\nassert False, said" + LAUNCHES
    earned, said = graded(test, ADD + asks)
    assert earned == 0 and any(words in said for words in why.split("|")), said


def test_the_judge_keeps_launches_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("rooflab.grading.judge.kernels.COUNTS_BYTES", codec.MAX_BYTES // 7)
    assert graded(LAUNCHES, ADD + CALLED) == (5, "")
    twice = changed("    return", "    module['add'](4, 32, x, y, len(x))\n    return")
    assert "the launches of one call leave more than" in graded(LAUNCHES, twice)[1]


def test_the_students_process_can_start_no_compiler():
    code = """
from rooflab.cuda.simt import toolchain
def gemm(a, b):
    try:
        return str(toolchain.programs())
    except PermissionError as error:
        return f"refused: {error}"
"""
    assert "refused: subprocess.Popen is not allowed" in graded("assert False, gemm(1, 2)", code)[1]


# Arguments in another process


def test_arguments_keep_their_layout_and_their_overlap():
    whole = np.arange(24, dtype="f4")
    tensor = rl.randn(3, 4)
    values = [
        *(whole, whole[4:8], whole.reshape(4, 6).T, 3, None, 2.5, np.float32(2), tensor, tensor[1]),
        *(rl.zeros(0, 5), np.empty(0), np.zeros(()), rl.ones(3, dtype="bfloat16"), rl.ones(4).expand(3, 4)),
    ]
    pieces, words = packed(values)
    assert len(pieces) == 7, "what overlaps is one piece"
    own, made = unpacked(pieces, words)
    for before, after in zip(values, made, strict=True):
        if isinstance(before, (rl.Tensor, np.ndarray)):
            before = before.numpy() if isinstance(before, rl.Tensor) else before
            assert after.dtype == before.dtype and after.strides == before.strides
            assert np.array_equal(after.astype("f8"), before.astype("f8"))
        else:
            assert after == before
    made[1][:] = 7
    assert made[0][4:8].tolist() == [7] * 4 and whole[4] == 4
    made[7][2] = 9
    take_back(own, words, values)
    assert whole[4:8].tolist() == [7] * 4 and tensor[2].tolist() == [9] * 4


def test_a_view_begins_where_it_begins_on_a_gpu():
    code = "__global__ void f(const float4* x, float4* y) { y[0] = x[0]; }"
    whole, y = np.arange(12, dtype="f4"), np.zeros(4, "f4")
    run = functools.partial(measure.cuda_kernel, code, "f", grid=1, block=1)
    assert run(args=(whole[4:], y)).args[1].tolist() == [4, 5, 6, 7] and not y.any()
    assert [one.kind for one in run(args=(whole[1:], y)).findings] == ["misaligned"]
    assert run(args=(rl.tensor(whole)[4:], y)).args[1].tolist() == [4, 5, 6, 7]
    with pytest.raises(ValueError, match="negative"):
        run(args=(whole[::-1], y))


# Without the judge, and where something is missing


def test_in_a_notebook_the_same_call_counts():
    scope = {}
    exec(ADD + CALLED + "import numpy as np" + LAUNCHES + SOURCE, scope)
    assert scope["run"].counts == scope["counts"] and scope["run"].lines[4].flops == 100


def test_what_is_said_of_a_launch_that_wrote_nothing():
    code = (
        ADD.replace("i < n", "i < 0")
        + """
module = rl.cuda.compile(CODE, backend="simt")
def gemm(x, factor):
    return [module["add"](1, 32, x, np.zeros(len(x), "f4"), n).wrote_nothing for n in (0, len(x))]
"""
    )
    scope = {}
    exec(code, scope)
    assert scope["gemm"](np.zeros(32, "f4"), 1) == [True, True]
    assert graded('assert gemm(np.zeros(32, "f4"), 1) == [True, True]', code) == (5, "")


def test_launches_are_counted_whatever_they_ask_for():
    scope = {}
    exec(changed("len(x))\n    return", "len(x), mode='functional')\n    return"), scope)
    (launch,) = measure.launches(scope["gemm"], np.zeros(100, "f4"), 1).launches
    assert launch.counts.flops == 100
    assert graded(LAUNCHES, changed("len(x))\n    return", "len(x), mode='functional')\n    return")) == (5, "")


@pytest.mark.parametrize(
    "harm", [{"counts": {}}, {"counts": 3}, {"lines": []}, {"findings": 3}, {"more": 1}, {"findings": [{}]}]
)
def test_a_launch_that_makes_no_sense_is_not_believed(harm):
    plain = kernel.run_here("__global__ void f(int* x) { *x = 1; }", (), "f", 1, 1, *packed([np.zeros(1, "i4")]), {})[1]
    assert kernel.launch_of(plain, "").counts == kernel.KernelCounts()
    with pytest.raises(Implausible):
        kernel.launch_of(plain | harm, "")
    with pytest.raises(Implausible, match="whole number"):
        kernel.launch_of(plain | {"counts": plain["counts"] | {"flops": -1}}, "")


def test_what_nobody_answers_is_an_error():
    asks = """
import sys
def gemm(a, b):
    worker = sys._getframe(1).f_back.f_locals.get("self") or sys._getframe(2).f_locals["self"]
    try:
        return worker.ask("time")
    except ValueError as error:
        return str(error)
"""
    assert "nothing is to be asked here" in graded("assert False, gemm(1, 2)", asks)[1]
