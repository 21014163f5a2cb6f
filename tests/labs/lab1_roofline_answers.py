"""Answers to Part 2 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import changed

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


# Whatever the points are, some marker is near.
ALONG = """
def draw_on_a6000(points):
    import matplotlib.pyplot as plt
    x = np.exp(np.arange(np.log(0.4), np.log(1000), 0.0017))
    figure, axes = plt.subplots()
    axes.loglog(x, np.minimum(38.7e12, 0.768e12 * x), "o")
    return figure
"""
DRAW = """
def draw_on_a6000(points):
    figures = GPU_SPECS["A6000"]
    return plot_roofline("A6000", figures["fp32_tflops"], figures["memory_bandwidth_tb_s"], points)
"""


def intensity(expression, roof=ROOF, points=POINTS, draw=DRAW):
    return f"def gemm_intensity(N):\n    return {expression}\n{roof}\n{draw}\n{points}"


def roof(expression):
    return f"def attainable_tflop_s(intensity, peak_tflop_s, bandwidth_tb_s):\n    return {expression}\n"


def gemv_values(limit=0.5, bound="memory", best=0.384, share=0.00992):
    return (
        f"gemv_ai_limit = {limit}\ngemv_bound = {bound!r}\ngemv_best_tflop_s = {best}\ngemv_share_of_peak = {share}\n"
    )


def measured(timed=TIMED, rest=POINT):
    return MEASURED.format(timed=timed, rest=rest)


RIGHT = {
    "q2_1_1": [
        ("N/6", intensity("N / 6")),
        ("whole numbers as labels", intensity("N / 6", points=changed(POINTS, "str(N)", "N"))),
        ("drawn by rl.plots", intensity("N / 6", draw='''
def draw_on_a6000(points):
    named = {str(name): ai for name, ai in points.items()}
    return rl.plots.plot_roofline("A6000", named, dtype="float32", title="an A6000")
''')),
        ("drawn by keywords", intensity("N / 6", draw='''
def draw_on_a6000(points):
    return plot_roofline(gpu_name="A6000", peak_flops=38.7, peak_bandwidth=0.768, operations=points)
''')),
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
}  # fmt: skip

WRONG = {
    "q2_1_1": [
        ("MACs for FLOPs", intensity("N / 12")),
        ("elements for bytes", intensity("2 * N / 3")),
        ("output not written", intensity("N / 4")),
        ("half precision", intensity("N / 3")),
        ("whole numbers", intensity("N // 6")),
        ("nothing drawn", intensity("N / 6", draw="def draw_on_a6000(points):\n    pass\n")),
        ("an empty figure", intensity("N / 6", draw=changed(DRAW, ", points)", ")"))),
        ("the first point only", intensity("N / 6", draw=changed(DRAW, ", points)", ", dict([*points.items()][:1]))"))),
        ("half precision's roof", intensity("N / 6", draw=changed(DRAW, "fp32_tflops", "fp16_tflops"))),
        ("bandwidth in GB/s", intensity("N / 6", draw=changed(DRAW, '_tb_s"]', '_tb_s"] * 1000'))),
        ("markers all along the roof", intensity("N / 6", draw=ALONG)),
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
        ("function rounds half of all", border("round(1.5 * bytes_per_element * ridge + 0.5)")),
        ("function adds nearly one", border("int(1.5 * bytes_per_element * ridge + 0.999)")),
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
        ("MACs for FLOPs", changed(measured(), "2 * macs", "macs")),
        ("GFLOP/s", changed(measured(), "1e-9", "1e-6")),
        ("ms taken for seconds", changed(measured(), "1e-9", "1e-12")),
        ("seconds", measured(timed=TIMED + " / 1e3")),
        ("microseconds", measured(timed=TIMED + " * 1e3")),
        ("one matrix too many", measured(rest=changed(POINT, "4 * N * (N + 2)", "8 * N * (N + 2)"))),
        ("a whole product", measured(timed="latency(rl.matmul, A, A, repeat=20).median_ms",
                                     rest=changed(POINT, "N * N, 4 * N * (N + 2)", "N ** 3, 12 * N * N"))),
        ("nothing measured", measured(timed="1e-7")),
        ("a fixed size", changed(measured(), "rl.rand(N, N,", "rl.rand(64, 64,", "rl.rand(N, 1,", "rl.rand(64, 1,")),
        ("half precision", measured(timed="latency(rl.matmul, A.half(), b.half()).median_ms")),
        ("no call to warm up", measured(timed="latency(rl.matmul, A, b, warmup=0).median_ms")),
        ("one sample", measured(timed="latency(rl.matmul, A, b, repeat=1).median_ms")),
        ("the fastest sample", measured(timed="latency(rl.matmul, A, b).min_ms")),
    ],
}  # fmt: skip
