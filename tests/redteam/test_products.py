"""Answers that let a library multiply where Python has to, beside loops that do nothing but take their steps."""

import pytest
from grading.demo_lab import RIGHT
from redteam.attack import LOOPS, Attack, cases, check

COMPILED = "a compiled library multiplied unseen: a question that forbids it has to be judged by its syntax tree"
IDLE = "    for _ in range(a.shape[0] * a.shape[1] * b.shape[1]):\n        pass\n"

# label: (what comes first, the product, what is seen of it; nothing for what is not seen)
PRODUCTS = {
    "operator": ("", "a @ b", "@"),
    "operator of a thread": (
        "import threading",
        "(out := [], t := threading.Thread(target=lambda: out.append(a @ b)), t.start(), t.join())[0][0]",
        "@|sys.settrace",
    ),
    "matmul kept from before": ("from numpy import matmul as add", "add(a, b)", "numpy.matmul"),
    "einsum": ("", "np.einsum('ik,kj->ij', a, b)", "numpy.einsum"),
    "einsum, optimised": ("", "np.einsum('ik,kj', a, b, optimize=True)", "numpy.einsum"),
    "tensordot": ("", "np.tensordot(a, b, 1)", "numpy.tensordot"),
    "dot of a subclass": ("", "np.asarray(np.asmatrix(a).dot(b))", "ndarray.dot"),
    "dot with a buffer": ("", "a.dot(b, out=np.empty((3, 5)))", "ndarray.dot"),
    "dot through map": ("", "np.array(list(map(b.T.dot, a)))", ""),
    "a product of rooflab": ("import rooflab as rl", "rl.matmul(rl.tensor(a), rl.tensor(b)).numpy()", "rl.matmul"),
    "a layer of rooflab": (
        "import rooflab as rl",
        "rl.nn.Linear.forward(type('L', (), {'weight': rl.tensor(b.T.copy()), 'bias': None})(), rl.tensor(a)).numpy()",
        "rl.matmul",
    ),
    "convolve": ("", "np.array([[np.convolve(r[::-1], c, 'valid')[0] for c in b.T] for r in a])", "numpy.convolve"),
    "matrix_power": (
        "",
        "np.linalg.matrix_power(np.block([[np.zeros((3, 3)), a, np.zeros((3, 5))],"
        " [np.zeros((4, 7)), b], [np.zeros((5, 12))]]), 2)[:3, 7:]",
        "numpy.linalg.matrix_power",
    ),
    "a ufunc with broadcasting": ("", "(a[:, :, None] * b).sum(1)", ""),
    "a ufunc's reduction": ("", "np.add.reduce(np.multiply(a[:, :, None], b[None]), axis=1)", ""),
    "an outer product a step": ("", "sum(np.multiply.outer(a[:, k], b[k]) for k in range(4))", ""),
    "SciPy's BLAS": ("from scipy.linalg import blas", "blas.dgemm(1.0, a, b)", ""),
    "a sparse matrix": ("from scipy.sparse import csr_matrix", "csr_matrix(a)._matmul_multivector(b)", ""),
    "polynomials": (
        "from numpy.polynomial.polynomial import polyval",
        "np.array([[polyval(1.0, r * c) for c in b.T] for r in a])",
        "",
    ),
    "a solver": (
        "",
        "np.linalg.solve(np.block([[np.eye(3), -a], [np.zeros((4, 3)), np.eye(4)]]),"
        " np.vstack([np.zeros((3, 5)), b]))[:3]",
        "",
    ),
    "an FFT": (
        "",
        "np.array([[np.fft.ifft(np.fft.fft(r) * np.conj(np.fft.fft(c)))[0].real for c in b.T] for r in a]).round(9)",
        "",
    ),
    "einsum in C": ("from numpy._core.multiarray import c_einsum", "c_einsum('ik,kj', a, b)", ""),
    "an operator by another name": ("", "getattr(a, '__mat' + 'mul__')(b)", "__matmul__"),
}
ATTACKS = {
    label: Attack(
        f"{first}\ndef gemm(a, b):\n{IDLE}    return {product}",
        0,
        seen or "numpy",
        test=LOOPS,
        known=COMPILED * (not seen),
    )
    for label, (first, product, seen) in PRODUCTS.items()
}


@pytest.mark.parametrize("attack", cases(ATTACKS))
def test_a_library_product_earns_nothing(attack):
    check(attack)


def test_without_idle_loops_the_steps_are_missing():
    check(Attack("def gemm(a, b):\n    return (a[:, :, None] * b).sum(1)", 0, "three loops", test=LOOPS))


def test_three_loops_earn_their_points():
    check(Attack(RIGHT, 5, test=LOOPS))
