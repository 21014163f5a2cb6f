"""Functions followed through their source text: many ways to write loops, and the sentences that refuse the rest."""

import numpy as np
import pytest
from grading.demo_lab import RIGHT

import rooflab as rl
from rooflab.grading import measure
from rooflab.grading.follow.allowed import Matrix, Refused
from rooflab.grading.follow.follower import Follower

SETUP = "import numpy as np\nimport rooflab as rl\n"
N, K, M = 3, 4, 5
A, B = np.random.default_rng(0).standard_normal((2, 7, 7))
A, B = A[:N, :K], B[:K, :M]
LOOPS = """
def gemm(A, B):
    (N, K), M = A.shape, B.shape[1]
    {convert}
    for i in range(N):
        for j in range(M):
            for k in range(K):
                {step}
    return C
"""
LISTS = "a, b, C = A.tolist(), B.tolist(), [[0.0] * M for _ in range(N)]"
ZEROS = "a, b, C = A.cpu().numpy(), B.cpu().numpy(), np.zeros((N, M), dtype=np.float64)"
COMPREHENSION = "def gemm(A, B):\n    return [[{inner} for column in zip(*B.tolist())] for row in A.tolist()]"
# label: cells
HONEST = {
    "as the demo's reference": RIGHT,
    "lists": LOOPS.format(convert=LISTS, step="C[i][j] += a[i][k] * b[k][j]"),
    "arrays": LOOPS.format(convert=ZEROS, step="C[i, j] += a[i, k] * b[k, j]"),
    "arrays, an index after the other": LOOPS.format(convert=ZEROS, step="C[i][j] = C[i][j] + a[i][k] * b[k][j]"),
    "elements of tensors": LOOPS.format(
        convert="C = rl.zeros(N, M, dtype=A.dtype, device=A.device)", step="C[i, j] += A[i, k].item() * B[k][j].item()"
    ),
    "one list, by place": LOOPS.format(
        convert="C, a, b = rl.zeros((N, M)), [x for r in A.tolist() for x in r], B.reshape(-1).tolist()",
        step="C[i, j] = float(C[i, j]) + a[i * K + k] * b[k * M + j]",
    ),
    "a generator": COMPREHENSION.format(inner="sum(x * y for x, y in zip(row, column))"),
    "a helper": "def dot(x, y, start=0.0):\n    for i, one in enumerate(x):\n        start += one * y[i]\n"
    "    return start\n" + COMPREHENSION.format(inner="dot(row, column)"),
    "a lambda": "times = lambda x, y: x * y\n" + COMPREHENSION.format(inner="sum(map(times, row, column))"),
    "operator.mul": "from operator import mul\n" + COMPREHENSION.format(inner="sum(map(mul, row, column))"),
    "math.fsum": "import math\n" + COMPREHENSION.format(inner="math.fsum([x * y for x, y in zip(row, column)])"),
    "itertools.product": "import itertools as it\ndef gemm(A, B):\n    C = np.zeros((len(A), B.shape[-1]))\n"
    "    for i, j, k in it.product(range(A.shape[0]), range(B.shape[1]), range(B.shape[0])):\n"
    "        C[i, j] += A[i, k] * B[k, j]\n    return rl.tensor(C)",
    "np.ndindex": "def gemm(A, B):\n    C = np.zeros((A.shape[0], B.shape[1]))\n"
    "    for i, j, k in np.ndindex(*A.shape[:1], B.shape[1], len(B)):\n"
    "        C[i, j] += A[i, k] * B[k, j]\n    return C",
    "columns of an array": "def gemm(A, B):\n    C = np.empty((len(A), B.shape[1]))\n    for i in range(len(A)):\n"
    "        for j in range(B.shape[1]):\n            total = 0\n            for x, y in zip(A[i, :], B[:, j]):\n"
    "                total += x * y\n            C[i, j] = total\n    return C",
    "rows of the transpose": "def gemm(A, B):\n    out = []\n    for row in A:\n        out.append([])\n"
    "        for column in B.T:\n            out[-1].append(0.0)\n            for k in range(len(row)):\n"
    "                out[-1][-1] += row[k] * column[k]\n    return np.array(out)",
    "while": "def gemm(A, B):\n    C = np.zeros((3, 5))\n    i = 0\n    while i < len(C):\n        j = 0\n"
    "        while True:\n            if j == 5:\n                break\n            k = 0\n            while k < 4:\n"
    "                C[i, j] += A[i, k] * B[k, j]\n                k += 1\n            j += 1\n"
    "        i += 1\n    return C",
    "checks": "def gemm(A: rl.Tensor, B: 'B') -> rl.Tensor:\n    '''Text.'''\n    import numpy\n"
    "    if not isinstance(A, rl.Tensor) or A.shape[1] != B.shape[0] or A.ndim != 2:\n"
    "        raise ValueError(f'{A.shape} and {B.shape}')\n    assert A.shape[0] > 0, 'empty'\n"
    "    size: int = B.shape[1]\n    C = numpy.zeros((A.shape[0], size)) if size else None\n"
    "    for i in range(len(C)):\n        for j in reversed(range(size)):\n            for k in range(A.shape[1]):\n"
    "                if k < 0:\n                    continue\n"
    "                C[i, j] += A[i, k] * B[k, j]\n    return C",
    "the last definition counts": "def gemm(A, B):\n    return A @ B\n" + RIGHT,
    "another name for it": RIGHT.replace("def gemm", "def mine") + "gemm = mine",
    "a magic beside it": "%matplotlib inline\n" + RIGHT,
    "or": RIGHT.replace("out[i, j] +=", "out[i, j] = (out[i, j] or 0.0) +"),
    "types": RIGHT.replace(
        "    return",
        "    assert isinstance(i, int) and not isinstance(i, (float, list)) and isinstance(a, np.ndarray)\n    return",
    ),
    "a list and itself": RIGHT.replace(
        "    return", "    two = [0.0]\n    two += two\n    two.extend(two)\n    assert len(two) == 4\n    return"
    ),
    "a constant": "ZERO = 0.0\n" + RIGHT.replace("out[i, j] +=", "out[i, j] += ZERO +"),
}


def follow(code, name="gemm"):
    follower = Follower([SETUP, *code.split("# next cell\n")])
    return np.array(follower.call_named(name, [Matrix(A.copy()), Matrix(B.copy())])), follower.products


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_loops_are_followed(code):
    value, products = follow(code)
    np.testing.assert_allclose(value, A @ B, rtol=1e-12)
    assert products == N * K * M


# label: (a function, the sentence)
REFUSED = {
    "@": ("def gemm(A, B):\n    x = 1\n    return A @ B", "Line 4 multiplies whole matrices by `@`: write loops"),
    "a library": ("from numpy import dot as d\ndef gemm(A, B):\n    return d(A, B)", "Line 3 calls numpy.dot. This qu"),
    "a row": ("def gemm(A, B):\n    return A[0] * 2.0", "Line 2 computes with a whole row or matrix at once"),
    "a method": ("def gemm(A, B):\n    return A.matmul(B)", "Line 2 calls the method matmul of a matrix. This"),
    "a condition": ("def gemm(A, B):\n    return 1 if A else 2", "Line 2 uses a whole row or matrix as a condition."),
    "try": ("def gemm(A, B):\n    try:\n        return A\n    finally:\n        pass", r"Line 2 has a statement \(Try"),
    "its own error": ("def gemm(A, B):\n    raise KeyError('x')", r"gemm raised KeyError \(line 2\)."),
    "a mistake": ("def gemm(A, B):\n    return 1 / 0", "gemm stopped in line 2: ZeroDivisionError: division by zero"),
    "arguments": ("def gemm(A):\n    return A", "gemm stopped .*: TypeError: a call whose arguments do not fit"),
    "a search": ("def gemm(A, B):\n    return 0.5 in range(2**62)", "is reached after more than 500,000 steps"),
    "no type": ("def gemm(A, B):\n    return isinstance(A, 2)", "TypeError: isinstance takes a type"),
    "no number": ("def gemm(A, B):\n    return [A, 'x']", "a str is not a number"),
    "no function": ("gemm = 5", "calls an int, which the test cannot follow"),
    "no text": ("", "name 'gemm' is not defined"),
    "no Python": ("def gemm(A, B", "name 'gemm' is not defined"),
}


@pytest.mark.parametrize("code, said", REFUSED.values(), ids=REFUSED)
def test_a_sentence_says_what_is_refused(code, said):
    with pytest.raises(Refused, match=said):
        follow(code if "4 multi" not in said else f"\n{code}")


def test_divisions_and_powers_stand_for_products_and_whole_numbers_do_not():
    body = "def gemm(A, B):\n    x, y = A[0, 0], B[0, 0]\n    return {}"
    for text, products in (("x * y", 1), ("x / y", 1), ("abs(x) ** y", 1), ("x + y", 0), ("2 * 3 + 2 * x", 0)):
        assert follow(body.format(text))[1] == products, text


def test_a_size_costs_one_step_however_large_the_matrix():
    text = "def f(A):\n    n = 0\n    for i in range(1000):\n        n += A.size(0) + A.item(0, i)\n    return n"
    assert Follower([text]).call_named("f", [Matrix(np.zeros((1000, 1000)))]) == 1_000_000


def test_the_arguments_are_the_students_own():
    before = A.copy()
    for arrays in ((A, B), (rl.tensor(A), rl.tensor(B))):
        assert measure.loops(written_here, *arrays).value == before[0, 0] + 1
        assert np.array_equal(arrays[0], before)


def written_here(A, B):
    A[0, 0] += 1
    return A[0, 0]


def test_in_a_notebook_the_last_cell_that_defines_it_counts():
    names = {"np": np, "In": ["import numpy as np", "def gemm(A, B):\n    return A @ B", RIGHT, "gemm(1, 2"]}
    exec(RIGHT, names)
    seen = measure.loops(names["gemm"], A, B)
    assert seen.products == N * K * M and np.allclose(seen.value, A @ B)


def test_without_a_text_there_is_nothing_to_follow():
    names = {}
    exec(RIGHT, names)
    with pytest.raises(Refused, match="The text of the function cannot be found"):
        measure.loops(names["gemm"], A, B)
