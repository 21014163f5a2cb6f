"""Answers with a CUDA kernel, tests of them, and the judge of both."""

import functools
import textwrap
from dataclasses import replace

from grading.demo_lab import TRUSTED, demo_lab, with_answers

from rooflab.grading.judge.judge import Judge

ADD = '''
import numpy as np
import rooflab as rl
CODE = r"""
__global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
"""
'''
CALLED = """
module = rl.cuda.compile(CODE, backend="simt")
def gemm(x, factor):
    y = np.zeros(len(x), "f4")
    module["add"](-(-len(x) // 32), 32, x, y, len(x))
    return y
"""
# Of the function: 100 elements are 4 requests of a warp, with 13 sectors in each array.
LAUNCHES = """
from rooflab.grading import measure
x = measure.rng().standard_normal(100).astype("f4")
seen = measure.launches(gemm, x, 1)
assert len(seen.launches) == 1, f"{len(seen.launches)} launches"
counts = seen.launches[0].counts
assert np.array_equal(seen.launches[0].args[1], x + 1), "the values"
assert seen.launches[0].grid == (4, 1, 1) and seen.launches[0].kernel == "add"
assert counts.global_loads.requests == counts.global_stores.requests == 4, f"{counts.global_loads.requests} requests"
assert counts.global_loads.sectors == 13 and counts.flops == 100, "sectors and FLOPs"
"""
# Of the source.
SOURCE = """
from rooflab.grading import measure
for n in (1, 32, 100):
    x, y = (rl.tensor(measure.rng().standard_normal(n), dtype="float32") for _ in range(2))
    run = measure.cuda_kernel(CODE, "add", grid=-(-n // 32), block=32, args=(x, y, n))
    assert not run.findings, run.said
    assert np.array_equal(run.args[1].numpy(), x.numpy() + 1), "the values"
    assert run.counts.global_loads.requests == -(-n // 32), f"{run.counts.global_loads.requests} requests"
"""
HIDDEN = "### BEGIN HIDDEN TESTS" + SOURCE + "### END HIDDEN TESTS\n"


@functools.cache
def judge(test):
    """A judge of the demo lab whose first question has this test, and public the names that it uses."""

    def changed(cell):
        if cell.question != "q1" or cell.role not in ("test", "solution"):
            return cell
        if cell.role == "solution":
            return replace(cell, public=f"{cell.public}\nCODE = None")
        return replace(cell, source=test, options={"seconds": 30, "memory_gb": 1})

    lab = demo_lab()
    return Judge(replace(lab, cells=tuple(map(changed, lab.cells))), TRUSTED)


def graded(test, code):
    """Points and the reason for an answer."""
    one = judge("import rooflab as rl\n" + textwrap.dedent(test))
    (result,) = one.grade_question("q1", with_answers(one.lab, {"q1": textwrap.dedent(code)})).tests
    return result.earned, result.message


def changed(*words):
    """The answer with a part of it replaced."""
    code = ADD + CALLED
    for before, after in zip(words[::2], words[1::2], strict=True):
        assert before in code
        code = code.replace(before, after)
    return code
