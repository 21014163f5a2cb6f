"""Answers to Part 1 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import changed

GEMM_HEAD = """
def gemm(A, B):
    N, K = A.shape
    if K != B.shape[0]:
        raise ValueError("inner sizes differ")
    M = B.shape[1]
"""

NUMPY_LOOPS = """
    a, b = A.cpu().numpy(), B.cpu().numpy()
    c = np.zeros((N, M), dtype=a.dtype)
    for i in range(N):
        for j in range(M):
            total = 0.0
            for k in range(K):
                total += float(a[i, k]) * float(b[k, j])
            c[i, j] = total
"""

TRIPLE_LOOP = """
    a, b = A.tolist(), B.tolist()
    c = [[0.0] * M for _ in range(N)]
    for i in range(N):
        for j in range(M):
            for k in range({first}, {last}):
                c[i][j] {add} a[i][k] * b[k][j]
"""

LOOPS = TRIPLE_LOOP.format(first="0", last="K", add="+=")
BACK = "    return rl.tensor(c, dtype=A.dtype, device=A.device)\n"
ELEMENTS = """
    a, b, c = A.tolist(), B.tolist(), [[0.0] * M for _ in range(N)]
    for i in {rows}:
        for j in range(M):
            c[i][j] = {element}
"""


def elements(element, before="", rows="range(N)"):
    return before + GEMM_HEAD + ELEMENTS.format(element=element, rows=rows) + BACK


SPREAD = """

def spread(samples_ms):
    ordered = sorted(samples_ms)
    def at(share):
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return {"first_over_median": samples_ms[0] / at(0.5), "median_ms": at(0.5), "p20_ms": at(0.2), "p80_ms": at(0.8)}
"""

SHOTS = """
def single_shots(size, n):
    A, B = rl.ones((size, size), device=device), rl.ones((size, size), device=device)
    samples = []
    for _ in range(n):
        samples.append(latency_one_time(gemm, A, B).median_ms)
    return samples
"""

GEMV_MS = """
predicted_ratio_at_64 = 64

def gemm_and_gemv_ms(size):
    A, B, b = rl.randn(size, size, device=device), rl.randn(size, size, device=device), rl.randn(size, 1, device=device)
"""


def budget(body):
    return f"def sizes_in_budget(sizes, first_ms, budget_s):\n    {body}\n"


def fitting(power="3", budget_ms="1000 * budget_s", total="sum", base="sizes[0]"):
    return budget(
        f"cost = [first_ms * (size / {base}) ** {power} for size in sizes]\n"
        f"    run = [size for i, size in enumerate(sizes) if {total}(cost[:i + 1]) <= {budget_ms}]\n"
        "    return run, [size for size in sizes if size not in run]"
    )


RIGHT = {
    "q1_1": [
        ("loops over NumPy arrays, back to a tensor", GEMM_HEAD + NUMPY_LOOPS + BACK),
        ("a NumPy array as the result", GEMM_HEAD + NUMPY_LOOPS + "    return c\n"),
        ("a sum in a comprehension, by :=", elements("dot(a[i], [row[j] for row in b])", before="""
def dot(x, y):
    total = 0.0
    for _ in [total := total + x[k] * y[k] for k in range(len(x))]:
        pass
    return total
""")),
        ("elements of the tensors, one at a time", GEMM_HEAD + """
    c = rl.zeros((N, M), dtype=A.dtype, device=A.device)
    for i in range(N):
        for j in range(M):
            total = 0.0
            for k in range(K):
                total += A[i, k].item() * B[k, j].item()
            c[i, j] = total
    return c
"""),
        ("another order of the loops", GEMM_HEAD + """
    a, b = A.tolist(), B.tolist()
    c = [[0.0] * M for _ in range(N)]
    for k in range(K):
        for i in range(N):
            for j in range(M):
                c[i][j] += a[i][k] * b[k][j]
    return rl.tensor(c, dtype=A.dtype, device=A.device)
"""),
        ("the inner loop as a generator", GEMM_HEAD + """
    a, columns = A.tolist(), list(zip(*B.tolist()))
    c = [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]
    return rl.tensor(c, dtype=A.dtype, device=A.device)
"""),
        ("np.arange", GEMM_HEAD + changed(NUMPY_LOOPS, "range(N)", "np.arange(N)", "range(K)", "np.arange(K)") + BACK),
        ("a dict of sums", GEMM_HEAD + """
    sums = {}
    for i in range(N):
        for j in range(M):
            for k in range(K):
                sums[i, j] = sums.get((i, j), 0.0) + A[i, k].item() * B[k, j].item()
    c = [[sums[i, j] for j in range(M)] for i in range(N)]
""" + BACK),
        ("a starred name", changed(GEMM_HEAD, "M = B.shape[1]", "*_, M = B.shape") + LOOPS + BACK),
        ("try", changed(GEMM_HEAD, "    N, K = A.shape\n", """
    try:
        N, K = A.shape
    except ValueError as error:
        raise ValueError("A is not a matrix") from error
""") + LOOPS + BACK),
        ("a small class", elements("Sum().of(a[i], b, j)", """
class Sum:
    def __init__(self):
        self.total = 0.0

    def of(self, row, b, j):
        for k, x in enumerate(row):
            self.total += x * b[k][j]
        return self.total
""")),
        ("a dataclass with a property, partial", elements("partial(Place, a, b)(i, j).value", """
from dataclasses import dataclass
from functools import partial

@dataclass
class Place:
    a: list
    b: list
    i: int
    j: int

    @property
    def value(self):
        return sum(x * other[self.j] for x, other in zip(self.a[self.i], self.b))
""")),
        ("reduce", elements("reduce(lambda s, k: s + a[i][k] * b[k][j], range(K), 0.0)",
                            "from functools import reduce")),
        ("a generator function", elements("sum(terms(a[i], b, j))", """
def terms(row, b, j):
    for x, other in zip(row, b):
        yield x * other[j]
""")),
        ("one loop over all places, by divmod", GEMM_HEAD + """
    a, b, c = A.flatten().tolist(), B.flatten().tolist(), [[0.0] * M for _ in range(N)]
    for n in range(N * M * K):
        place, k = divmod(n, K)
        i, j = divmod(place, M)
        c[i][j] += a[i * K + k] * b[k * M + j]
""" + BACK),
    ],
    "q1_2": [("percentiles by hand", SHOTS + SPREAD)],
    "q1_2_gemv": [
        ("mean of the samples", GEMV_MS + """
    gemm_times, gemv_times = latency(gemm, A, B, warmup=1, repeat=3), latency(gemm, A, b, warmup=1, repeat=3)
    return [float(np.median(times.samples_ms)) for times in (gemm_times, gemv_times)]
"""),
    ],
    "q1_2_budget": [("all predictions first", fitting())],
    "q1_3": [
        ("by size()", "def gemm_mac(x, y):\n    return x.size(0) * x.size(1) * y.size(1)\n"),
        ("from the numbers of elements", "def gemm_mac(x, y):\n    return x.numel() * y.numel() // x.shape[1]\n"),
    ],
    "q1_4": [
        ("by the size of an element", """
def gemm_io(A, B):
    outputs = A.shape[0] * B.shape[1]
    return (A.numel() + B.numel() + outputs) * A.element_size()
"""),
    ],
}  # fmt: skip

WRONG = {
    "q1_1": [
        ("the @ operator", GEMM_HEAD + "    return A @ B\n"),
        ("rl.matmul", GEMM_HEAD + "    return rl.matmul(A, B)\n"),
        ("np.dot behind loops that do nothing", GEMM_HEAD + LOOPS + """
    c = np.dot(A.cpu().numpy().astype("float64"), B.cpu().numpy().astype("float64")).tolist()
""" + BACK),
        ("np.einsum", GEMM_HEAD + """
    c = np.einsum("ik,kj->ij", A.cpu().numpy(), B.cpu().numpy())
""" + BACK),
        ("whole rows at once", GEMM_HEAD + """
    a, b = A.cpu().numpy().astype("float64"), B.cpu().numpy().astype("float64")
    c = np.zeros((N, M))
    for i in range(N):
        for j in range(M):
            c[i, j] = (a[i] * b[:, j]).sum()
""" + BACK),
        ("loops for small sizes only",
         GEMM_HEAD + "    if N * K * M > 10_000:\n        return A @ B\n" + LOOPS + BACK),
        ("a product kept in a dict", GEMM_HEAD + "    c = {'mm': rl.matmul}['mm'](A, B)\n    return c\n"),
        ("a product under try", GEMM_HEAD + """
    try:
        return rl.matmul(A, B)
    except Exception:
        pass
""" + LOOPS + BACK),
        ("reduce over rows", """
from functools import reduce
""" + GEMM_HEAD + "    return reduce(lambda s, k: s + A[:, k:k + 1] * B[k], range(1, K), A[:, :1] * B[0])\n"),
        ("the last k is left out", GEMM_HEAD + TRIPLE_LOOP.format(first=0, last="K - 1", add="+=") + BACK),
        ("the first k is left out", GEMM_HEAD + TRIPLE_LOOP.format(first=1, last="K", add="+=") + BACK),
        ("nothing is added up", GEMM_HEAD + TRIPLE_LOOP.format(first=0, last="K", add="=") + BACK),
        ("writes into B", GEMM_HEAD + LOOPS + "    B[0, 0] = 0.0\n" + BACK),
        ("transposed result", GEMM_HEAD + LOOPS + "    c = [list(column) for column in zip(*c)]\n" + BACK),
        ("always float32", GEMM_HEAD + LOOPS + '    return rl.tensor(c, dtype="float32", device=A.device)\n'),
        ("a list, no tensor", GEMM_HEAD + LOOPS + "    return c\n"),
        ("an assert for ValueError",
         changed(GEMM_HEAD, "if K != B.shape[0]:\n        raise ValueError", "assert K == B.shape[0],")
         + LOOPS + BACK),
        ("no ValueError", changed(GEMM_HEAD, 'raise ValueError("inner sizes differ")', "pass") + LOOPS + BACK),
        ("the dtype of B", GEMM_HEAD + LOOPS + changed(BACK, "A.dtype", "B.dtype")),
        ("B transposed where it is square",
         GEMM_HEAD + changed(LOOPS, "b[k][j]", "(b[j][k] if K == M else b[k][j])") + BACK),
        ("square matrices only", GEMM_HEAD + changed(LOOPS, "range(M)", "range(N)") + BACK),
        ("NaN", GEMM_HEAD + LOOPS + "    c = [[float('nan')] * M for _ in range(N)]\n" + BACK),
    ],
    "q1_2": [
        ("samples sorted in place", SHOTS + changed(
            SPREAD, "ordered = sorted(samples_ms)", "first, ordered = samples_ms[0], samples_ms\n    ordered.sort()",
            "samples_ms[0] / at", "first / at")),
        ("sorted shots", changed(SHOTS, "return samples", "return sorted(samples)") + SPREAD),
        ("seconds", changed(SHOTS, "median_ms", "median_ms / 1000") + SPREAD),
        ("microseconds", changed(SHOTS, "median_ms", "median_ms * 1000") + SPREAD),
        ("one measurement n times", SHOTS + "\ntimed = single_shots\n\ndef single_shots(size, n):\n"
         "    return [timed(size, 1)[0]] * n\n" + SPREAD),
        ("always ten", changed(SHOTS, "range(n)", "range(10)") + SPREAD),
        ("always the same size", changed(SHOTS, "(size, size)", "(24, 24)") + SPREAD),
        ("invented times", 
         "def single_shots(size, n):\n    return [0.5 + 0.01 * (7 * i % 5) for i in range(n)]\n" + SPREAD),
        ("times the library", changed(SHOTS, "latency_one_time(gemm", "latency_one_time(rl.matmul") + SPREAD),
        ("a vector for the second matrix",
         changed(SHOTS, "B = rl.ones((size, size), device=device), rl.ones((size, size)",
                 "B = rl.ones((size, size), device=device), rl.ones((size, 1)") + SPREAD),
        ("warmed-up repeats for single shots", """
def single_shots(size, n):
    A, B = rl.randn(size, size, device=device), rl.randn(size, size, device=device)
    return [float(ms) for ms in latency(gemm, A, B, warmup=3, repeat=n).samples_ms]
""" + SPREAD),
        ("warmed up before each shot", changed(SHOTS, "latency_one_time(gemm, A, B)",
                                               "latency(gemm, A, B, warmup=2, repeat=1)") + SPREAD),
        ("mean for median", SHOTS + changed(SPREAD, "at(0.5)", "sum(samples_ms) / len(samples_ms)")),
        ("smallest for first", SHOTS + changed(SPREAD, "samples_ms[0]", "ordered[0]")),
        ("largest for first", SHOTS + changed(SPREAD, "samples_ms[0]", "ordered[-1]")),
        ("first sample left out", SHOTS + changed(SPREAD, "sorted(samples_ms)", "sorted(samples_ms[1:])")),
        ("p10 and p90", SHOTS + changed(SPREAD, "0.2", "0.1", "0.8", "0.9")),
    ],
    "q1_2_choice": [(letter, f"one_shot_tells = {letter!r}\n") for letter in "abd"],
    "q1_2_gemv": [
        ("prediction of N squared", changed(GEMV_MS, "64 = 64", "64 = 4096") + """
    return latency(gemm, A, B, repeat=3).median_ms, latency(gemm, A, b, repeat=3).median_ms
"""),
        ("the wrong way round", GEMV_MS + """
    return latency(gemm, A, b, repeat=3).median_ms, latency(gemm, A, B, repeat=3).median_ms
"""),
        ("the library's", GEMV_MS + """
    return latency(rl.matmul, A, B).median_ms, latency(rl.matmul, A, b).median_ms
"""),
        ("seconds", GEMV_MS + """
    return latency(gemm, A, B, repeat=3).median_ms / 1e3, latency(gemm, A, b, repeat=3).median_ms / 1e3
"""),
        ("microseconds", GEMV_MS + """
    return latency(gemm, A, B, repeat=3).median_ms * 1e3, latency(gemm, A, b, repeat=3).median_ms * 1e3
"""),
        ("the matrix with a vector both times", GEMV_MS + """
    pair = latency(gemm, A, b, repeat=3).median_ms, latency(gemm, A, b, repeat=3).median_ms
    return max(pair) * size, min(pair)
"""),
        ("single shots", GEMV_MS + """
    return latency_one_time(gemm, A, B).median_ms, latency_one_time(gemm, A, b).median_ms
"""),
        ("the smallest of the samples", GEMV_MS + """
    return latency(gemm, A, B, repeat=3).min_ms, latency(gemm, A, b, repeat=3).min_ms
"""),
        ("timings, not numbers", GEMV_MS + """
    return latency(gemm, A, B, repeat=3), latency(gemm, A, b, repeat=3)
"""),
    ],
    "q1_2_budget": [
        ("takes sizes out of the list", """
def sizes_in_budget(sizes, first_ms, budget_s):
    run, total_ms, smallest = [], 0, sizes[0]
    while sizes:
        total_ms += first_ms * (sizes[0] / smallest) ** 3
        if total_ms > 1000 * budget_s:
            break
        run.append(sizes.pop(0))
    return run, sizes
"""),
        ("quadratic", fitting(power="2")),
        ("linear", fitting(power="1")),
        ("budget in ms", fitting(budget_ms="budget_s")),
        ("each size on its own", fitting(total="max")),
        ("smallest size is always 64", fitting(base="64")),
        ("whole ratios", changed(fitting(), "size / sizes[0]", "size // sizes[0]")),
        ("each size twice the one before", changed(fitting(), "(size / sizes[0]) ** 3 for size in",
                                                   "8**i for i, _ in enumerate(", "sizes]\n", "sizes)]\n")),
        ("less than the budget", changed(fitting(), "<= 1000", "< 1000")),
        ("nothing left out", budget("return sizes, []")),
    ],
    "q1_3": [
        ("FLOPs", "def gemm_mac(x, y):\n    return 2 * x.shape[0] * x.shape[1] * y.shape[1]\n"),
        ("a float", "def gemm_mac(x, y):\n    return float(x.shape[0] * x.shape[1] * y.shape[1])\n"),
        ("square only", "def gemm_mac(x, y):\n    return x.shape[0] ** 3\n"),
        ("outputs only", "def gemm_mac(x, y):\n    return x.shape[0] * y.shape[1]\n"),
        ("K twice", "def gemm_mac(x, y):\n    return x.shape[1] * y.shape[0] * y.shape[1]\n"),
        ("a table of two answers", "def gemm_mac(x, y):\n    return {2: 24, 512: 134217728}[x.shape[0]]\n"),
        ("32-bit arithmetic", "def gemm_mac(x, y):\n"
         "    return int(np.int32(x.shape[0] * x.shape[1] * y.shape[1] % 2**31))\n"),
        ("runs the product", """
def gemm_mac(x, y):
    with rl.count() as c:
        rl.matmul(x, y)
    return c.macs
"""),
    ],
    "q1_4": [
        ("elements", "def gemm_io(A, B):\n    return A.numel() + B.numel() + A.shape[0] * B.shape[1]\n"),
        ("inputs only", "def gemm_io(A, B):\n    return 4 * (A.numel() + B.numel())\n"),
        ("twice the output", "def gemm_io(A, B):\n    return 4 * (A.numel() + B.numel()) + 8 * len(A) * B.shape[1]\n"
        ""),
        ("every operand of every MAC", "def gemm_io(A, B):\n    return 8 * A.shape[0] * A.shape[1] * B.shape[1]\n"),
        ("16 bits", "def gemm_io(A, B):\n    return 2 * (A.numel() + B.numel() + A.shape[0] * B.shape[1])\n"),
        ("square only", "def gemm_io(A, B):\n    return 12 * A.shape[0] ** 2\n"),
        ("a float", "def gemm_io(A, B):\n    return 4.0 * (A.numel() + B.numel() + A.shape[0] * B.shape[1])\n"),
    ],
}  # fmt: skip
