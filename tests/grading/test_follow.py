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
    ":= in a comprehension": COMPREHENSION.format(inner="dot(row, column)")
    + "\ndef dot(x, y):\n    total = 0.0\n    terms = [total := total + x[k] * y[k] for k in range(len(x))]\n"
    "    assert len(terms) == 4 and terms[-1] == total\n    return total",
    ":= in a comprehension of a comprehension": COMPREHENSION.format(inner="dot(row, column)")
    + "\ntotal = 0.0\ndef dot(x, y):\n    global total\n    total = 0.0\n"
    "    [[(total := total + x[k] * y[k]) for k in half] for half in (range(2), range(2, 4))]\n    return total",
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
    "        while True:\n            if j == 5:\n                break\n            k = 0\n"
    "            while k < 4:\n"
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
    "np.arange": "def gemm(A, B):\n    C = np.zeros((len(A), B.shape[1]))\n    for i in np.arange(len(A)):\n"
    "        for j in np.arange(0, B.shape[1]):\n            for k in np.arange(len(B)):\n"
    "                C[i, j] += A[i, k] * B[k, j]\n    return C",
    "a dict": LOOPS.format(convert="sums = {}", step="sums[i, j] = sums.get((i, j), 0.0) + A[i, k] * B[k, j]").replace(
        "return C", "return [[sums[i, j] for j in range(M)] for i in range(N)]"
    ),
    "a dict, its items and keys": LOOPS.format(
        convert="C, sums = rl.zeros(N, M), {(i, j): 0.0 for i in range(N) for j in range(M)}",
        step="sums[i, j] += A[i, k] * B[k, j]",
    ).replace(
        "return C",
        "for (i, j), x in sums.items():\n        C[i, j] = x\n    assert len(list(sums)) == N * M\n    return C",
    ),
    "in a dict": LOOPS.format(
        convert="sums = dict()",
        step="if (i, j) not in sums:\n                    sums[i, j] = 0.0\n"
        "                sums[i, j] += A[i, k] * B[k, j]",
    ).replace("return C", "return [[sums.pop((i, j)) for j in range(M)] for i in range(N)]"),
    "a defaultdict": "from collections import defaultdict\n"
    + LOOPS.format(convert="sums = defaultdict(float)", step="sums[i, j] += A[i, k] * B[k, j]").replace(
        "return C", "return [[sums[i, j] for j in range(M)] for i in range(N)]"
    ),
    "a starred name": LOOPS.replace("(N, K), M = A.shape, B.shape[1]", "(N, K), (*_, M) = A.shape, B.shape").format(
        convert=LISTS + "\n    first, *rest, last = [1, 2, 3, 4]\n    assert rest == [2, 3]",
        step="C[i][j] += a[i][k] * b[k][j]",
    ),
    "try": LOOPS.replace(
        "(N, K), M =",
        "try:\n        (N, K), (_, M) = A.shape, B.shape\n    except ValueError as error:\n"
        "        raise TypeError('two matrices') from error\n    else:\n        pass\n    (N, K), M =",
    ).format(convert=LISTS, step="C[i][j] += a[i][k] * b[k][j]"),
    "until an IndexError": COMPREHENSION.format(inner="dot(row, column)")
    + "\ndef dot(x, y):\n    total, k = 0.0, 0\n    while True:\n        try:\n            total += x[k] * y[k]\n"
    "        except (KeyError, IndexError):\n            break\n        finally:\n            k += 1\n"
    "    return total",
    "an error, raised again": COMPREHENSION.format(inner="dot(row, column)")
    + "\ndef last(x):\n    try:\n        return x[len(x)]\n    except IndexError:\n        raise\n"
    "def dot(x, y):\n    try:\n        last(x)\n    except Exception as error:\n        total = 0.0\n"
    "    for one, two in zip(x, y):\n        total += one * two\n    return total",
    "try, raised again from within a branch": COMPREHENSION.format(inner="dot(row, column)")
    + "\ndef last(x):\n    try:\n        return x[len(x)]\n    except IndexError:\n        if x:\n            raise\n"
    "def dot(x, y):\n    try:\n        last(x)\n    except IndexError:\n        total = 0.0\n"
    "    for one, two in zip(x, y):\n        total += one * two\n    return total",
    "a class that adds, has a length and elements": "from dataclasses import dataclass\n@dataclass()\nclass Sum:\n"
    "    total: float\n    terms: int = 0\n    def __iadd__(self, x):\n        self.total += x\n"
    "        self.terms += 1\n        return self\n    def __len__(self):\n"
    "        return self.terms\n    def __iter__(self):\n        return iter([self.total])\n"
    "def dot(x, y):\n    one = Sum(0.0)\n    for k in np.arange(4).tolist():\n"
    "        one += x[k] * y[k]\n    assert len(one) == 4\n    return sum(one)\n"
    + COMPREHENSION.format(inner="dot(row, column)"),
    "starts of its own": "import itertools, math\n"
    + COMPREHENSION.format(
        inner="list(itertools.accumulate((x * y for x, y in zip(row, column)),"
        " initial=math.prod((), start=1.0)))[-1] - 1.0"
    ),
    "arrays by name": "def gemm(A, B):\n    C = np.full(shape=(3, 5), fill_value=0.0, dtype=np.float64)\n"
    "    for i in range(3):\n        for j in range(5):\n            for k in range(4):\n"
    "                C[i, j] += A[i, k] * B[k, j]\n    return rl.tensor(data=C.tolist(), dtype=A.dtype)",
    "a class": "class Sum:\n    start = 0.0\n    def __init__(self, places=1):\n        self.total = self.start\n"
    "    def add(self, x, y):\n        self.total += x * y\n        return self\n"
    "    @staticmethod\n    def of(x, y):\n        one = Sum()\n        for pair in zip(x, y):\n"
    "            one.add(*pair)\n"
    "        return one.total\n" + COMPREHENSION.format(inner="Sum.of(row, column)"),
    "a class of matrices": "class Of:\n    def __init__(self, rows):\n        self.rows = rows\n"
    "    def __getitem__(self, place):\n        return self.rows[place[0]][place[1]]\n"
    "    def __setitem__(self, place, x):\n        self.rows[place[0]][place[1]] = x\n"
    "    def __matmul__(self, other):\n        out = Of([[0.0] * 5 for _ in self.rows])\n        for i in range(3):\n"
    "            for j in range(5):\n                for k in range(4):\n"
    "                    out[i, j] += self[i, k] * other[k, j]\n        return out\n"
    "def gemm(A, B):\n    return (Of(A.tolist()) @ Of(B.tolist())).rows",
    "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass Sum:\n    total: float\n    terms: int = 0\n"
    "    def __call__(self, x, y):\n        self.total += x * y\n        self.terms += 1\n"
    "def dot(x, y):\n    one = Sum(0.0)\n    for pair in zip(x, y):\n        one(*pair)\n    assert one.terms == 4\n"
    "    return one.total\n" + COMPREHENSION.format(inner="dot(row, column)"),
    "a property": "class Pair:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n"
    "    @property\n    def product(self):\n        return self.x * self.y\n"
    + COMPREHENSION.format(inner="sum(Pair(x, y).product for x, y in zip(row, column))"),
    "partial": "from functools import partial\ndef dot(x, y, *, start):\n    for k in range(4):\n"
    "        start += x[k] * y[k]\n    return start\nfrom_zero = partial(dot, start=0.0)\n"
    + COMPREHENSION.format(inner="partial(from_zero, row)(column)"),
    "reduce": "from functools import reduce\n"
    + COMPREHENSION.format(inner="reduce(lambda s, k: s + row[k] * column[k], range(len(row)), 0.0)"),
    "reduce, without a start": "import functools, operator\n"
    + COMPREHENSION.format(inner="functools.reduce(operator.add, map(operator.mul, row, column))"),
    "accumulate and math.prod": "import itertools, math\n"
    + COMPREHENSION.format(inner="list(itertools.accumulate(math.prod(pair) for pair in zip(row, column)))[-1]"),
    "a generator of its own": COMPREHENSION.format(inner="sum(terms(row, column))")
    + "\ndef terms(x, y):\n    for one, two in zip(x, y):\n        yield one * two\n    yield from ()\n    return",
    "a generator, one value at a time": COMPREHENSION.format(inner="first(row, column)")
    + "\ndef sums(x, y):\n    total = 0.0\n    for one, two in zip(x, y):\n        total += one * two\n"
    "    yield total\ndef first(x, y):\n    return next(sums(x, y))",
    "nonlocal": "def dot(x, y):\n    total = 0.0\n    def step(k):\n        nonlocal total\n"
    "        total += x[k] * y[k]\n"
    "    for k in range(len(x)):\n        step(k)\n    return total\n"
    "" + COMPREHENSION.format(inner="dot(row, column)"),
    "global": "TOTAL = 1.0\ndef dot(x, y):\n    global TOTAL\n    TOTAL = 0.0\n    for k in range(4):\n"
    "        add(x[k], y[k])\n"
    "    return TOTAL\ndef add(x, y):\n    global TOTAL\n    TOTAL += x * y\n"
    + COMPREHENSION.format(inner="dot(row, column)"),
    "stars and keywords": "def dot(*pairs, start):\n    for x, y in pairs:\n        start += x * y\n"
    "    return start\n" + COMPREHENSION.format(inner="dot(*zip(row, column), start=0.0)"),
    "divmod": "def gemm(A, B):\n    a, b, C = A.flatten().tolist(), B.flatten().tolist(), [0.0] * 15\n"
    "    for n in range(60):\n"
    "        ij, k = divmod(n, 4)\n        i, j = divmod(ij, 5)\n        C[ij] += a[i * 4 + k] * b[k * 5 + j]\n"
    "    return np.array(C).reshape(3, 5).tolist()",
    "iter and next": "def dot(x, y):\n    other, total = iter(y), 0.0\n    for one in x:\n"
    "        total += one * next(other)\n"
    "    assert next(other, None) is None\n    return total\n" + COMPREHENSION.format(inner="dot(row, column)"),
    "without gradients": RIGHT.replace("    return", "    with rl.no_grad():\n        pass\n    return").replace(
        "    out", "    if a.dtype != a.dtype:\n        raise ValueError(str(a.dtype))\n    out", 1
    ),
    "del": RIGHT.replace("    return", "    many = {1: 2}\n    del many[1], a\n    assert not len(many)\n    return"),
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
    "a statement": (
        "def gemm(A, B):\n    match A:\n        case _:\n            return A",
        r"Line 2 has a statement \(Match",
    ),
    "a product under try": (
        "def gemm(A, B):\n    try:\n        return A @ B\n    except BaseException:\n        return A",
        "Line 3 multiplies",
    ),
    "an error of its own, not caught": (
        "def gemm(A, B):\n    try:\n        raise KeyError('x')\n    except ValueError:\n        return A",
        r"gemm raised KeyError \(line",
    ),
    "a product by partial": (
        "from functools import partial\ndef gemm(A, B):\n    return partial(np.matmul, A)(B)",
        "calls numpy.matmul",
    ),
    "a decorator": ("import functools\n@functools.cache\ndef gemm(A, B):\n    return A", "a decorator"),
    "a base": ("class G(list):\n    pass\ndef gemm(A, B):\n    return G()", "a class with a base"),
    "a context": ("def gemm(A, B):\n    with open('x'):\n        return A", "calls open"),
    "no attribute": ("class G:\n    pass\ndef gemm(A, B):\n    return G().x", "AttributeError: G has no x"),
    "no key": ("def gemm(A, B):\n    return {}[0]", "KeyError: 0"),
    "a product in a dict": ("def gemm(A, B):\n    return {'mm': np.matmul}['mm'](A, B)", "calls numpy.matmul"),
    "a product by reduce": (
        "from functools import reduce\ndef gemm(A, B):\n"
        "    return reduce(lambda s, k: s + A[0, k] * B[k], range(4), 0.0)",
        "computes with a whole row",
    ),
    "a product of a class": (
        "class G:\n    mm = np.matmul\n    def __call__(self, a, b):\n        return self.mm(a, b)\n"
        "def gemm(A, B):\n    return G()(A, B)",
        "calls numpy.matmul",
    ),
    "a generator without end": (
        "def f():\n    while True:\n        yield 1\ndef gemm(A, B):\n    return sum(f())",
        "more than 500,000 steps",
    ),
    "too many arguments": (
        "def f(x, y=0, *, z):\n    return x\ndef gemm(A, B):\n    return f(1, 2, 3, z=0)",
        "do not fit",
    ),
    "an argument twice": ("def f(x, *, z):\n    return x\ndef gemm(A, B):\n    return f(1, x=2, z=0)", "do not fit"),
    "a product, then a return that hides it": (
        "def gemm(A, B):\n    try:\n        return A @ B\n    finally:\n        return A",
        "Line 3 multiplies",
    ),
    "a row, then a return that hides it": (
        "def gemm(A, B):\n    try:\n        return A[0] * 2.0\n    finally:\n        return A",
        "Line 3 computes with a whole row",
    ),
    "a text compared": (
        "def gemm(A, B):\n    return A if str(A) == 'a' else B",
        "compares a text and a str, which the",
    ),
    "a text as a condition": ("def gemm(A, B):\n    return A if f'{A}' else B", "uses a text as a condition"),
    "texts ordered": (
        "def gemm(A, B):\n    try:\n        min('a', 'b')\n    except TypeError:\n        return A",
        "needs numbers and has a str",
    ),
    "an argument that is not known": ("def gemm(A, B):\n    return sum([1], begin=2)", "calls sum with arguments that"),
    "an array's argument": ("def gemm(A, B):\n    return np.array([1], ndmin=2)", "calls numpy.array with ndmin=, whi"),
    "its own error": ("def gemm(A, B):\n    raise KeyError('x')", r"gemm raised KeyError \(line 2\)."),
    "a stub": (
        "def gemm(A, B):\n    raise NotImplementedError('Question 1.1: write your code here')",
        r"gemm is not written yet: it raised NotImplementedError \(line 2\).",
    ),
    "a mistake": ("def gemm(A, B):\n    return 1 / 0", "gemm stopped in line 2: ZeroDivisionError: division by zero"),
    "arguments": ("def gemm(A):\n    return A", "gemm stopped .*: TypeError: a call whose arguments do not fit"),
    "a search": ("def gemm(A, B):\n    return 0.5 in range(2**62)", "is reached after more than 500,000 steps"),
    "no type": ("def gemm(A, B):\n    return isinstance(A, 2)", "TypeError: isinstance takes a type"),
    "no number": ("def gemm(A, B):\n    return [A, 'x']", "needs a number and has a str"),
    "no function": ("gemm = 5", "calls an int, which the test cannot follow"),
    "no text": ("", "name 'gemm' is not defined"),
    "no Python": ("def gemm(A, B", "name 'gemm' is not defined"),
}


@pytest.mark.parametrize("code, said", REFUSED.values(), ids=REFUSED)
def test_a_sentence_says_what_is_refused(code, said):
    with pytest.raises(Refused, match=said):
        follow(code if "4 multi" not in said else f"\n{code}")


FAST = "def gemm(A, B):\n    if A.numel() > 1000:\n        return {fast}\n" + LOOPS.split("\n", 2)[2]
FAST = FAST.format(fast="FAST", convert=LISTS, step="C[i][j] += a[i][k] * b[k][j]")


@pytest.mark.parametrize(
    "before, fast, said",
    [
        ("", "A @ B", "Line 3 has a library's product, which other sizes may lead to"),
        ("", "rl.matmul(A, B)", "Line 3 has a library's product"),
        ("from numpy import dot\n", "dot(A, B)", "Line 4 has a library's product"),
        ("dot = np.einsum\n", "dot('ik,kj', A, B)", "Line 4 has a library's product"),
        ("def fast(A, B):\n    return A @ B\n\n", "fast(A, B)", "Line 2 has a library's product"),
    ],
)
def test_a_product_for_other_sizes_is_refused(before, fast, said):
    with pytest.raises(Refused, match=said):
        follow(before + FAST.replace("FAST", fast))


def test_a_product_of_the_students_own_and_one_beside_the_function_are_no_librarys():
    own = "def dot(a, b):\n    return sum([x * y for x, y in zip(a, b)])\n\ndef check(A, B):\n    return A @ B\n\n"
    assert follow(own + FAST.replace("FAST", "dot(A, B)"))[1] == N * K * M


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
