"""Answers to Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some.

Keys are grade ids of solution cells; each entry is (what it is, the code that replaces the cell).
"""

from labs import lab1_attention_answers as attention

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

MEASURED = """
def speeds(macs, moved_bytes, ms):
    return 2 * macs / ms * 1e-9, moved_bytes / ms * 1e-9

def measured_gemv(N):
    A, b = rl.rand(N, N, device=device), rl.rand(N, 1, device=device)
    ms = {timed}
    {rest}
"""

TIMED = "latency(rl.matmul, A, b).median_ms"
POINT = 'tflop_s, tb_s = speeds(N * N, 4 * N * (N + 2), ms); return {"ms": ms, "tflop_s": tflop_s, "tb_s": tb_s}'

GELU = "def gelu_tanh_python(input):\n"

COUNTS = """
speedup_if_memory_bound = {speedup}
why_faster = {why!r}

def gelu_counts(fused, n):
    x = rl.zeros((n,), device=device)
    with rl.count() as c:
        y = rl.gelu(x) if fused else gelu_tanh_python(x)
    {rest}
"""

COUNTED = 'return {"launches": c.launches, "flops": c.flops, "bytes": c.bytes_read + c.bytes_written}'

PROFILE = """
def profile_gelu(fused, n):
    x, fn = rl.rand(n, device=device), rl.gelu if fused else gelu_tanh_python
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            {call}
            prof.step()
    {rest}
"""

ONE_CALL = "size, names = len(prof.kernels) // 6, [k.name for k in prof.kernels]; "

ROOF = """
def attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s):
    ridge = peak_tflop_s / bandwidth_tb_s
    return bandwidth_tb_s * intensity if intensity < ridge else peak_tflop_s
"""

POINTS = "gemm_points = {str(N): gemm_intensity(N) for N in (1024, 2048, 4096, 8192)}\n"

DERIVED = """
ridge_flop_per_byte = {ridge}
smallest_n = {n}
ai_at_smallest_n = {ai}
ai_one_below = {below}
"""

BORDER = """
def smallest_compute_bound_n(peak_tflop_s, bandwidth_tb_s, bytes_per_element):
    N = 1
    while 2 * N / (3 * bytes_per_element) < peak_tflop_s / bandwidth_tb_s:
        N += 1
    return N
"""


def derived(ridge=50.390625, n=303, ai=50.5, below=50.3333333):
    return DERIVED.format(ridge=ridge, n=n, ai=ai, below=below)


def border(expression):
    return derived() + (
        "def smallest_compute_bound_n(peak_tflop_s, bandwidth_tb_s, bytes_per_element):\n"
        "    ridge = peak_tflop_s / bandwidth_tb_s\n"
        f"    return {expression}\n"
    )


def intensity(expression, roof=ROOF, points=POINTS):
    return f"def gemm_intensity(N):\n    return {expression}\n{roof}\n{points}"


def roof(expression):
    return f"def attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s):\n    return {expression}\n"


def gemv_values(limit=0.5, bound="memory", best=0.384, share=0.00992):
    return (
        f"gemv_ai_limit = {limit}\ngemv_bound = {bound!r}\ngemv_best_tflop_s = {best}\ngemv_share_of_peak = {share}\n"
    )


def budget(body):
    return f"def sizes_in_budget(sizes, first_ms, budget_s):\n    {body}\n"


def fitting(power="3", budget_ms="1000 * budget_s", total="sum", base="sizes[0]"):
    return budget(
        f"cost = [first_ms * (size / {base}) ** {power} for size in sizes]\n"
        f"    run = [size for i, size in enumerate(sizes) if {total}(cost[:i + 1]) <= {budget_ms}]\n"
        "    return run, [size for size in sizes if size not in run]"
    )


def measured(timed=TIMED, rest=POINT):
    return MEASURED.format(timed=timed, rest=rest)


def counts(speedup="9.0", why="d", rest=COUNTED):
    return COUNTS.format(speedup=speedup, why=why, rest=rest)


def profile(rest, call="fn(x)"):
    return PROFILE.format(call=call, rest=rest)


RIGHT = {
    "q1_1": [
        ("loops over NumPy arrays, back to a tensor", GEMM_HEAD + NUMPY_LOOPS + BACK),
        ("a NumPy array as the result", GEMM_HEAD + NUMPY_LOOPS + "    return c\n"),
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
    "q2_1_1": [
        ("N/6", intensity("N / 6")),
        ("from the answers before", intensity(
            "2 * gemm_mac(rl.empty((N, N)), rl.empty((N, N))) / gemm_io(rl.empty((N, N)), rl.empty((N, N)))",
            points='gemm_points = {"a": 170.7, "b": 341.3, "c": 682.7, "d": 1365.3}\n',
        )),
    ],
    "q2_1_2": [("by search", derived(ridge=50.39, below=50.3333) + BORDER)],
    "q2_2": [("simplified", "def gemv_intensity(N):\n    return N / (2 * N + 4)\n")],
    "q2_2_values": [("the last size instead of the limit", gemv_values(limit=0.49988, best=0.3839, share=0.0099))],
    "q2_2_measured": [
        ("from the samples", measured(timed="float(np.median(latency(rl.matmul, A, b, repeat=30).samples_ms))")),
    ],
    "q4_3_1": [
        ("a cube by products", GELU + """
    cube = input * input * input
    return input * 0.5 * (rl.tanh((input + cube * 0.044715) * 0.7978845608028654) + 1.0)
"""),
        ("named functions", GELU + """
    inner = rl.mul(rl.add(input, rl.mul(rl.pow(input, 3), 0.044715)), (2 / np.pi) ** 0.5)
    return rl.mul(rl.mul(input, 0.5), rl.add(rl.tanh(inner), 1))
"""),
    ],
    "q4_3_2": [("one after the other", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    python = latency(gelu_tanh_python, x)
    return {"python": python.median_ms, "fused": latency(rl.gelu, x).median_ms}
""")],
    "q4_3_3": [("another input", counts())],
    "q4_3_4": [
        ("a sixth of all records", profile(
            ONE_CALL + 'return {"launches_per_call": size, "kernels": names[:size]}'
        )),
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
        ("the last k is left out", GEMM_HEAD + TRIPLE_LOOP.format(first=0, last="K - 1", add="+=") + BACK),
        ("the first k is left out", GEMM_HEAD + TRIPLE_LOOP.format(first=1, last="K", add="+=") + BACK),
        ("nothing is added up", GEMM_HEAD + TRIPLE_LOOP.format(first=0, last="K", add="=") + BACK),
        ("transposed result", GEMM_HEAD + LOOPS + "    c = [list(column) for column in zip(*c)]\n" + BACK),
        ("always float32", GEMM_HEAD + LOOPS + '    return rl.tensor(c, dtype="float32", device=A.device)\n'),
        ("a list, no tensor", GEMM_HEAD + LOOPS + "    return c\n"),
        ("no ValueError", GEMM_HEAD.replace('raise ValueError("inner sizes differ")', "pass") + LOOPS + BACK),
        ("square matrices only", GEMM_HEAD + LOOPS.replace("range(M)", "range(N)") + BACK),
        ("NaN", GEMM_HEAD + LOOPS + "    c = [[float('nan')] * M for _ in range(N)]\n" + BACK),
    ],
    "q1_2": [
        ("sorted shots", SHOTS.replace("return samples", "return sorted(samples)") + SPREAD),
        ("seconds", SHOTS.replace("median_ms", "median_ms / 1000") + SPREAD),
        ("microseconds", SHOTS.replace("median_ms", "median_ms * 1000") + SPREAD),
        ("one measurement n times", SHOTS + "\ntimed = single_shots\n\ndef single_shots(size, n):\n"
         "    return [timed(size, 1)[0]] * n\n" + SPREAD),
        ("always ten", SHOTS.replace("range(n)", "range(10)") + SPREAD),
        ("always the same size", SHOTS.replace("(size, size)", "(24, 24)") + SPREAD),
        ("invented times", 
         "def single_shots(size, n):\n    return [0.5 + 0.01 * (7 * i % 5) for i in range(n)]\n" + SPREAD),
        ("times the library", SHOTS.replace("latency_one_time(gemm", "latency_one_time(rl.matmul") + SPREAD),
        ("mean for median", SHOTS + SPREAD.replace("at(0.5)", "sum(samples_ms) / len(samples_ms)")),
        ("smallest for first", SHOTS + SPREAD.replace("samples_ms[0]", "ordered[0]")),
        ("largest for first", SHOTS + SPREAD.replace("samples_ms[0]", "ordered[-1]")),
        ("first sample left out", SHOTS + SPREAD.replace("sorted(samples_ms)", "sorted(samples_ms[1:])")),
        ("p10 and p90", SHOTS + SPREAD.replace("0.2", "0.1").replace("0.8", "0.9")),
    ],
    "q1_2_choice": [(letter, f"one_shot_tells = {letter!r}\n") for letter in "abd"],
    "q1_2_gemv": [
        ("prediction of N squared", GEMV_MS.replace("64 = 64", "64 = 4096") + """
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
        ("timings, not numbers", GEMV_MS + """
    return latency(gemm, A, B, repeat=3), latency(gemm, A, b, repeat=3)
"""),
    ],
    "q1_2_budget": [
        ("quadratic", fitting(power="2")),
        ("linear", fitting(power="1")),
        ("budget in ms", fitting(budget_ms="budget_s")),
        ("each size on its own", fitting(total="max")),
        ("smallest size is always 64", fitting(base="64")),
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
        ("twice the output", "def gemm_io(A, B):\n    return 4 * (A.numel() + B.numel()) + 8 * len(A) * B.shape[1]\n"),
        ("every operand of every MAC", "def gemm_io(A, B):\n    return 8 * A.shape[0] * A.shape[1] * B.shape[1]\n"),
        ("16 bits", "def gemm_io(A, B):\n    return 2 * (A.numel() + B.numel() + A.shape[0] * B.shape[1])\n"),
        ("square only", "def gemm_io(A, B):\n    return 12 * A.shape[0] ** 2\n"),
        ("a float", "def gemm_io(A, B):\n    return 4.0 * (A.numel() + B.numel() + A.shape[0] * B.shape[1])\n"),
    ],
    "q2_1_1": [
        ("MACs for FLOPs", intensity("N / 12")),
        ("elements for bytes", intensity("2 * N / 3")),
        ("output not written", intensity("N / 4")),
        ("half precision", intensity("N / 3")),
        ("whole numbers", intensity("N // 6")),
        ("no points", intensity("N / 6", points="gemm_points = {}\n")),
        ("other sizes", intensity("N / 6", points='gemm_points = {str(N): N / 6 for N in (512, 1024, 2048, 8192)}\n')),
        ("the peak everywhere", intensity("N / 6", roof=roof("peak_tflop_s"))),
        ("the slope everywhere", intensity("N / 6", roof=roof("bandwidth_tb_s * intensity"))),
        ("the higher one", intensity("N / 6", roof=roof("max(peak_tflop_s, bandwidth_tb_s * intensity)"))),
        ("bandwidth over intensity", intensity("N / 6", roof=roof("min(peak_tflop_s, bandwidth_tb_s / intensity)"))),
    ],
    "q2_1_2": [
        ("rounded down", derived(n=302, ai=302 / 6, below=301 / 6) + BORDER),
        ("a float", derived(n=302.34) + BORDER),
        ("AI of N/12", derived(n=605) + BORDER),
        ("ridge of half precision", derived(ridge=201.56, n=1210) + BORDER),
        ("sparse peak", derived(ridge=405.5) + BORDER),
        ("no derivation", derived(ai=None, below=None) + BORDER),
        ("function rounds down", border("int(1.5 * bytes_per_element * ridge)")),
        ("function always adds one", border("int(1.5 * bytes_per_element * ridge) + 1")),
        ("function knows fp32 only", border("int(np.ceil(6 * ridge))")),
        ("function knows the A6000 only", border("303")),
        ("function forgets that a MAC is two FLOPs", border("int(np.ceil(3 * bytes_per_element * ridge))")),
        ("function returns a float", border("1.5 * bytes_per_element * ridge")),
    ],
    "q2_2": [
        ("the limit for every N", "def gemv_intensity(N):\n    return 0.5\n"),
        ("of a GEMM", "def gemv_intensity(N):\n    return N / 6\n"),
        ("MACs for FLOPs", "def gemv_intensity(N):\n    return N / (4 * N + 8)\n"),
        ("one vector forgotten", "def gemv_intensity(N):\n    return 2 * N * N / (4 * (N * N + N))\n"),
    ],
    "q2_2_values": [
        ("limit of MACs", gemv_values(limit=0.25)),
        ("compute-bound", gemv_values(bound="compute")),
        ("depends on N", gemv_values(bound="both")),
        ("the peak", gemv_values(best=38.7)),
        ("share of the bandwidth", gemv_values(share=0.5)),
        ("percent", gemv_values(share=0.992)),
        ("nothing", gemv_values(limit=None, bound=None, best=None, share=None)),
    ],
    "q2_2_measured": [
        ("MACs for FLOPs", measured().replace("2 * macs", "macs")),
        ("GFLOP/s", measured().replace("1e-9", "1e-6")),
        ("ms taken for seconds", measured().replace("1e-9", "1e-12")),
        ("seconds", measured(timed=TIMED + " / 1e3")),
        ("one matrix too many", measured(rest=POINT.replace("4 * N * (N + 2)", "8 * N * (N + 2)"))),
        ("a whole product", measured(timed="latency(rl.matmul, A, A, repeat=20).median_ms",
                                     rest=POINT.replace("N * N, 4 * N * (N + 2)", "N ** 3, 12 * N * N"))),
        ("nothing measured", measured(timed="1e-7")),
    ],
    "q4_3_1": [
        ("the fused op", GELU + "    return rl.gelu(input)\n"),
        ("the fused op among others", GELU + "    return rl.gelu(input) + 0 + 0 + 0 + 0 + 0 + 0 + 0 + 0\n"),
        ("sigmoid form, fewer launches", GELU + """
    return input * rl.sigmoid(1.5957691216057308 * (input + 0.044715 * input ** 3))
"""),
        ("sigmoid approximation", GELU + "    return input * rl.sigmoid(1.702 * input) + 0 + 0 + 0 + 0 + 0 + 0\n"),
        ("in NumPy", GELU + """
    x = input.cpu().numpy()
    y = 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3)))
    return rl.tensor(y, dtype=input.dtype, device=input.device)
"""),
        ("a square for the cube", GELU + """
    return 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 2)))
"""),
        ("sqrt(2 pi)", GELU + """
    return 0.5 * input * (1 + rl.tanh((2 * np.pi) ** 0.5 * (input + 0.044715 * input ** 3)))
"""),
        ("a digit lost", GELU + """
    return 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.04471 * input ** 3)))
"""),
        ("no half", GELU + """
    return 1.0 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 3)))
"""),
        ("flattened", GELU + """
    input = input.flatten()
    return 0.5 * input * (1 + rl.tanh((2 / np.pi) ** 0.5 * (input + 0.044715 * input ** 3)))
"""),
    ],
    "q4_3_2": [
        ("mixed up", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    return {"fused": latency(gelu_tanh_python, x).median_ms, "python": latency(rl.gelu, x).median_ms}
"""),
        ("seconds", """
def gelu_latencies_ms(n):
    x = rl.rand(n, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms / 1e3, "fused": latency(rl.gelu, x).median_ms / 1e3}
"""),
        ("invented", "def gelu_latencies_ms(n):\n    return {'python': 9.0e-5, 'fused': 1.0e-5}\n"),
        ("a fixed size", """
def gelu_latencies_ms(n):
    x, y = rl.rand(1000, device=device), rl.rand(10, device=device)
    return {"python": latency(gelu_tanh_python, x).median_ms / 50, "fused": latency(rl.gelu, y).median_ms / 50}
"""),
    ],
    "q4_3_3": [
        ("less arithmetic", counts(why="a")),
        ("tensor cores", counts(why="b")),
        ("a rougher tanh", counts(why="c")),
        ("ratio of the launches", counts(speedup="8.0")),
        ("bytes read only", counts(rest=COUNTED.replace(" + c.bytes_written", ""))),
        ("MACs for FLOPs", counts(rest=COUNTED.replace("c.flops", "c.macs"))),
        ("a fixed size", counts().replace("(n,)", "(1000,)")),
        ("the same for both", counts().replace("if fused else gelu_tanh_python(x)", "")),
        ("peak memory for traffic", counts(rest=COUNTED.replace("c.bytes_read + c.bytes_written", "c.peak_bytes"))),
    ],
    "q4_3_4": [
        ("all six steps", profile(
            ONE_CALL + 'return {"launches_per_call": len(names), "kernels": names}'
        )),
        ("the count of six steps", profile(
            ONE_CALL + 'return {"launches_per_call": 6 * size, "kernels": names[:size]}'
        )),
        ("distinct names only", profile(
            'names = sorted({k.name for k in prof.kernels}); return {"launches_per_call": len(names), "kernels": names}'
        )),
        ("always the fused one", profile(
            ONE_CALL + 'return {"launches_per_call": size, "kernels": names[:size]}',
            call="rl.gelu(x)",
        )),
        ("invented names", profile(
            'size = 1 if fused else 8; return {"launches_per_call": size, "kernels": ["gelu"] * size}'
        )),
        ("a share of a launch", profile(
            ONE_CALL + 'return {"launches_per_call": len(names) / 6, "kernels": names[:size]}'
        )),
    ],
}  # fmt: skip
RIGHT |= attention.RIGHT
WRONG |= attention.WRONG
