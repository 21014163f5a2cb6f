"""Answers that let a library multiply where Python has to, next to loops that do nothing."""

import pytest
from grading.demo_lab import RIGHT
from redteam.attack import LOOPS, Attack, cases, check

IDLE = "    for _ in range(a.shape[0] * a.shape[1] * b.shape[1]):\n        pass\n"

# label: (what comes first, the product, what is said of it)
PRODUCTS = {
    "operator": ("", "a @ b", "@"),
    "operator of a thread": (
        "import threading",
        "(out := [], t := threading.Thread(target=lambda: out.append(a @ b)), t.start(), t.join())[0][0]",
        "calls threading.Thread",
    ),
    "matmul kept from before": ("from numpy import matmul as add", "add(a, b)", "numpy.matmul"),
    "einsum": ("", "np.einsum('ik,kj->ij', a, b)", "numpy.einsum"),
    "einsum, optimised": ("", "np.einsum('ik,kj', a, b, optimize=True)", "numpy.einsum"),
    "tensordot": ("", "np.tensordot(a, b, 1)", "numpy.tensordot"),
    "dot of a subclass": ("", "np.asarray(np.asmatrix(a).dot(b))", "calls numpy.asmatrix"),
    "dot with a buffer": ("", "a.dot(b, out=np.empty((3, 5)))", "the method dot"),
    "dot through map": ("", "np.array(list(map(b.T.dot, a)))", "the method dot"),
    "a product of rooflab": (
        "import rooflab as rl",
        "rl.matmul(rl.tensor(a), rl.tensor(b)).numpy()",
        "calls rooflab.matmul",
    ),
    "a layer of rooflab": (
        "import rooflab as rl",
        "rl.nn.Linear.forward(type('L', (), {'weight': rl.tensor(b.T.copy()), 'bias': None})(), rl.tensor(a)).numpy()",
        "calls type",
    ),
    "convolve": ("", "np.array([[np.convolve(r[::-1], c, 'valid')[0] for c in b.T] for r in a])", "numpy.convolve"),
    "matrix_power": (
        "",
        "np.linalg.matrix_power(np.block([[np.zeros((3, 3)), a, np.zeros((3, 5))],"
        " [np.zeros((4, 7)), b], [np.zeros((5, 12))]]), 2)[:3, 7:]",
        "calls numpy.block",
    ),
    "a ufunc with broadcasting": ("", "(a[:, :, None] * b).sum(1)", "an index has to be"),
    "a ufunc's reduction": ("", "np.add.reduce(np.multiply(a[:, :, None], b[None]), axis=1)", "an index has to be"),
    "an outer product a step": (
        "",
        "sum(np.multiply.outer(a[:, k], b[k]) for k in range(4))",
        "numpy.multiply.outer",
    ),
    "SciPy's BLAS": ("from scipy.linalg import blas", "blas.dgemm(1.0, a, b)", "calls scipy.linalg.blas.dgemm"),
    "a sparse matrix": (
        "from scipy.sparse import csr_matrix",
        "csr_matrix(a)._matmul_multivector(b)",
        "csr_matrix",
    ),
    "polynomials": (
        "from numpy.polynomial.polynomial import polyval",
        "np.array([[polyval(1.0, r * c) for c in b.T] for r in a])",
        "a whole row",
    ),
    "a solver": (
        "",
        "np.linalg.solve(np.block([[np.eye(3), -a], [np.zeros((4, 3)), np.eye(4)]]),"
        " np.vstack([np.zeros((3, 5)), b]))[:3]",
        "calls numpy.eye",
    ),
    "an FFT": (
        "",
        "np.array([[np.fft.ifft(np.fft.fft(r) * np.conj(np.fft.fft(c)))[0].real for c in b.T] for r in a]).round(9)",
        "calls numpy.fft.fft",
    ),
    "einsum in C": ("from numpy._core.multiarray import c_einsum", "c_einsum('ik,kj', a, b)", "c_einsum"),
    "an operator by another name": ("", "getattr(a, '__mat' + 'mul__')(b)", "calls getattr"),
}
ATTACKS = {
    label: Attack(
        f"{first}\ndef gemm(a, b):\n{IDLE}    return {product}",
        0,
        seen,
        test=LOOPS,
    )
    for label, (first, product, seen) in PRODUCTS.items()
}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("attack", cases(ATTACKS))
def test_a_library_product_earns_nothing(attack):
    check(attack)


# A whole row is never multiplied, however the answer reaches it, and endless steps do not hold up the judge.
TRICKS = {
    "a row by a number": ("sum(a[0][k] * b[k] for k in range(4))", "a whole row"),
    "rows of a list of arrays": ("[sum(x * y for x, y in zip(r, b)) for r in a]", "a whole row"),
    "a negative row": ("[-r for r in a]", "a whole row"),
    "a sum of rows": ("sum(list(a))", "a whole row"),
    "a row by operator": ("__import__('operator').mul(a[0], b[0])", "calls __import__"),
    "fewer products than needed": ("[[sum(r) for c in b.T] for r in a]", "three loops"),
    "whole numbers for products": ("[[sum(int(x) * int(y) for x, y in zip(r, c)) for c in b.T] for r in a]", "three"),
    "a loop without end": ("[0 for _ in range(10**18)]", "more than 500,000 steps"),
    "a list without end": ("[[0] * 10**7 for _ in range(10**7)]", "more than 500,000 steps"),
    "a number without end": ("10 ** 10 ** 10", "OverflowError"),
    "a number of many digits": ("(2 ** 62) ** 64", "makes a number"),
    "a text without end": ("'a' * 10**12", "an operation on a str"),
    "a matrix without end": ("np.zeros((10**9, 10**9))", "more than 500,000 steps"),
    "itself": ("gemm(a, b)", "functions more than 30 deep"),
    "a list in itself": ("(x := [1.0], x.append(x), x)[2]", "nested too deeply|more than"),
    "a deep text": ("(" * 150 + "a" + ")" * 150, "three loops"),
    "a global of its own": ("seen_before", "is not defined"),
}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("product, said", TRICKS.values(), ids=TRICKS)
def test_a_trick_earns_nothing(product, said):
    check(Attack(f"def gemm(a, b):\n    return {product}", 0, said, test=LOOPS))


def test_a_function_made_in_another_way_is_not_followed():
    made = "gemm = type('G', (), {'__call__': lambda self, a, b: a @ b})()"
    check(Attack(made, 0, "calls type", test=LOOPS))
    check(Attack(f"import functools\n@functools.cache\n{RIGHT.strip()}", 0, "a decorator", test=LOOPS))
    check(Attack("class G:\n    pass\nfor gemm in [lambda a, b: a @ b]:\n    pass", 0, "plain `def`", test=LOOPS))


def test_three_loops_earn_their_points():
    check(Attack(RIGHT, 5, test=LOOPS))
