"""What a test cell measures of student code: alike in Jupyter and under the judge, and refused when it cannot be."""

import dataclasses

import numpy as np
import pytest
from grading.demo_lab import demo_lab, grade_one

import rooflab as rl
from rooflab.grading import measure

LOOPS = """
def gemm(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out
"""
LISTS = """
def gemm(a, b):
    rows, columns = a.tolist(), list(zip(*b.tolist()))
    return np.array([[sum(x * y for x, y in zip(r, c)) for c in columns] for r in rows], a.dtype)
"""
IDLE = "\n    for _ in range(a.shape[0] * a.shape[1] * b.shape[1]):\n        pass\n"

# label: (one expression for the product, what is seen)
PRODUCTS = {
    "operator": ("a @ b", "@"),
    "operator on lists made arrays": ("np.array(a.tolist()) @ np.array(b.tolist())", "@"),
    "in place": ("(lambda c: [c := c @ b, c][1])(a)", "@"),
    "matmul": ("np.matmul(a, b)", "numpy.matmul"),
    "dot": ("np.dot(a, b)", "numpy.dot"),
    "method": ("a.dot(b)", "ndarray.dot"),
    "method by name": ("getattr(a, 'do' + 't')(b)", "ndarray.dot"),
    "dunder": ("a.__matmul__(b)", "__matmul__"),
    "einsum": ("np.einsum('ik,kj->ij', a, b)", "numpy.einsum"),
    "tensordot": ("np.tensordot(a, b, 1)", "numpy.tensordot"),
    "inner": ("np.inner(a, b.T)", "numpy.inner"),
    "vdot": (
        "np.array([[np.vdot(a[i], b[:, j]) for j in range(b.shape[1])] for i in range(a.shape[0])])",
        "numpy.vdot",
    ),
    "multi_dot": ("np.linalg.multi_dot([a, b])", "numpy.linalg.multi_dot"),
    "operator module": ("__import__('operator').matmul(a, b)", "operator.matmul"),
    "exec": ("eval('a @ b')", "@"),
    "a thread": ("__import__('concurrent.futures').futures.ThreadPoolExecutor(1).submit(lambda: a @ b).result()", "@"),
    "rooflab": (
        "rl.matmul(rl.tensor(a), rl.tensor(b)).numpy()",
        "rl.matmul",
    ),
}


def function(code):
    names = {"np": np, "rl": rl}
    exec(code, names)
    return names["gemm"]


def test_three_loops_take_their_steps():
    a, b = np.ones((4, 5)), np.ones((5, 6))
    for code in (LOOPS, LISTS):
        seen = measure.loops(function(code), a, b)
        assert seen.products == () and seen.steps >= 4 * 5 * 6
        assert np.array_equal(seen.value, a @ b)


@pytest.mark.parametrize("expression, name", PRODUCTS.values(), ids=PRODUCTS)
def test_products_are_seen_even_beside_idle_loops(expression, name):
    a, b = np.random.default_rng(0).standard_normal((2, 4, 4))
    seen = measure.loops(function(f"def gemm(a, b):{IDLE}    return {expression}"), a, b)
    assert name in seen.products and np.allclose(seen.value, a @ b)


def test_measuring_leaves_numpy_as_it_was():
    before = np.dot, np.linalg.multi_dot
    measure.loops(function(LOOPS), np.eye(2), np.eye(2))
    assert before == (np.dot, np.linalg.multi_dot)


def test_numpy_itself_may_multiply_inside():
    """Only what the student's frames call counts, not what a library does for another reason."""
    seen = measure.loops(lambda x: np.linalg.norm(x), np.eye(2))
    assert seen.products == ()


TESTS = {
    "loops": """
seen = measure.loops(gemm, np.ones((3, 4)), np.ones((4, 5)))
assert seen.products == (), seen.products
assert seen.steps >= 60, 'three loops'
assert seen.value.shape == (3, 5)
""",
    "latency": """
time = measure.latency(gemm, np.ones((3, 4)), np.ones((4, 5)), warmup=1, repeat=5, floor_ms=1e-4)
assert time.samples_ms.shape == (5,) and time.median_ms > 0
assert 0 < measure.elapsed_ms() < 8000
""",
    "count": """
import rooflab as rl
seen = measure.count(gemm, rl.ones((3, 4)), rl.ones((4, 5)))
assert seen.macs == 60 and seen.by_op == {'matmul': 1}, 'one product'
assert type(seen.value) is rl.Tensor and tuple(seen.value.shape) == (3, 5)
""",
}
LOCAL = """
from rooflab.grading import measure
import rooflab as rl
true = measure.LOCAL["count"]
measure.LOCAL["count"] = lambda *call: true(*call) | {"macs": 60, "by_op": {"matmul": 1}}
def gemm(a, b):
    return rl.zeros((3, 5))
"""
STEPS = """
from rooflab.grading import measure
def gemm(a, b):
    out = a @ b
    measure.PRODUCTS.seen, measure.PRODUCTS.steps = [], 1000
    return out
"""
ONCE = """
import rooflab as rl
true = rl.count.macs
def lie(counters):
    rl.count.macs = true
    return 60
def gemm(a, b):
    rl.count.macs = property(lie)
    return rl.matmul(a, b)
"""
PRODUCT = "def gemm(a, b):\n    import rooflab as rl\n    return rl.matmul(a, b)"


def asking(what):
    lab = demo_lab()
    source = "from rooflab.grading import measure\n" + TESTS[what]
    changed = {"source": source, "options": {"seconds": 8}}
    return dataclasses.replace(
        lab, cells=tuple(dataclasses.replace(c, **changed) if c.key == "q1_test" else c for c in lab.cells)
    )


@pytest.mark.parametrize(
    "what, code, message",
    [
        ("loops", LOOPS, ""),
        ("loops", LISTS, ""),
        ("loops", "from numpy import dot\ndef gemm(a, b):\n    return dot(a, b)", "numpy.dot"),
        ("loops", f"def gemm(a, b):{IDLE}    return a @ b", "@"),
        ("loops", "def gemm(a, b):\n    return (a[:, :, None] * b).sum(1)", "three loops"),
        ("loops", "import sys\ndef gemm(a, b):\n    sys.settrace(None)\n    return a @ b", "sys.settrace"),
        ("latency", LOOPS, ""),
        ("latency", "import time\ntime.perf_counter_ns = lambda: 0\n" + LOOPS, "replaced time.perf_counter_ns"),
        ("latency", "import rooflab\nrooflab.latency = lambda *a, **k: None\n" + LOOPS, "replaced rooflab.latency"),
        ("count", PRODUCT, ""),
        ("count", "import rooflab as rl\ndef gemm(a, b):\n    return rl.zeros((3, 5))", "one product"),
        ("count", "import rooflab\nrooflab.count = None\n" + PRODUCT, "replaced rooflab.count"),
        ("count", LOCAL, "one product"),
        ("count", ONCE, "replaced rooflab.count.macs"),
        ("loops", STEPS, "@"),
    ],
)
def test_under_the_judge(what, code, message):
    result = grade_one("q1", code, asking(what))
    assert message in result.tests[0].message and bool(message) == bool(result.tests[0].message)


class Liar:
    """A proxy whose worker says what it likes."""

    def __init__(self, reply, wall_ms=10.0):
        self.reply, self.wall_ms = reply, wall_ms

    def __rooflab_measure__(self, kind, args, kwargs, options):
        return self.reply, self.wall_ms


def timing(samples):
    return {"samples_ms": samples, "overhead_ms": 0.0, "device": "cpu"}


@pytest.mark.parametrize(
    "reply",
    [
        timing(np.zeros(3)),
        timing(np.full(3, -1.0)),
        timing(np.array([1.0, np.nan, 1.0])),
        timing(np.array([1.0, np.inf, 1.0])),
        timing(np.full(4, 1.0)),
        timing(np.full(3, 1.0, np.float32)),
        timing(np.full(3, 9.0)),
        timing(np.full(3, 1e-4)),
        timing([1.0, 1.0, 1.0]),
        None,
        {},
        {"samples_ms": np.ones(3)},
    ],
    ids=str,
)
def test_impossible_latencies_are_refused(reply):
    with pytest.raises((measure.Implausible, KeyError)):
        measure.latency(Liar(reply), repeat=3, floor_ms=1e-3)


def test_malformed_counts_are_refused():
    good = {"value": 1, "by_op": {}} | dict.fromkeys(measure.COUNTERS, 0)
    assert measure.count(Liar(good)).launches == 0
    for bad in (
        {"launches": -1},
        {"launches": 1.0},
        {"launches": True},
        {"by_op": {"gelu": "8"}},
        {"more": 1},
        {"by_op": 3},
    ):
        with pytest.raises((measure.Implausible, TypeError, AttributeError)):
            measure.count(Liar(good | bad))
    with pytest.raises(measure.Implausible):
        measure.loops(Liar({"value": 1, "steps": "many", "products": ()}))


@pytest.mark.parametrize("given", [rl.exp, int, type("Lookalike", (), {"apply": staticmethod(rl.exp)})])
def test_saved_takes_functions_of_autograd_only(given):
    with pytest.raises(TypeError, match=r"expected a class that is an rl\.autograd\.Function"):
        measure.saved(given, rl.ones(3))
