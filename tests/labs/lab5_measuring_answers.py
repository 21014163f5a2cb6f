"""Answers to Part 5 of Lab 5, benchmarks, products, a small network and profiles, right and wrong."""

from labs.mutants import changed, mutants

BENCHMARK = """
from time import perf_counter_ns

def benchmark(run, warmup, trials):
    for _ in range(warmup):
        run()
    rl.synchronize()
    samples = []
    for _ in range(trials):
        start = perf_counter_ns()
        run()
        rl.synchronize()
        samples.append((perf_counter_ns() - start) / 1e6)
    low, middle, high = np.percentile(samples, [20, 50, 80])
    return {"median_ms": middle, "p20_ms": low, "p80_ms": high}
"""

BY_LATENCY = """
def benchmark(run, warmup, trials):
    timing = rl.latency(run, warmup=warmup, repeat=trials)
    return {"median_ms": timing.median_ms, "p20_ms": timing.p20_ms, "p80_ms": timing.p80_ms}
"""

BY_EVENTS = """
def benchmark(run, warmup, trials):
    samples = []
    for trial in range(-warmup, trials):
        start, end = rl.cuda.Event(), rl.cuda.Event()
        start.record()
        run()
        end.record()
        end.synchronize()
        if trial >= 0:
            samples.append(start.elapsed_ms(end))
    return {"median_ms": float(np.median(samples)), "p20_ms": float(np.percentile(samples, 20)),
            "p80_ms": float(np.percentile(samples, 80))}
"""

PRODUCTS = """
def tflops(N, ms):
    return 2e-9 * N**3 / ms

def product_times(sizes, budget_ms):
    times, predicted, last = {}, 0.0, None
    for N in sizes:
        if last:
            predicted = times[last] * (N / last) ** 3
        if predicted > budget_ms:
            return times
        a = rl.ones(N, N, device=device)
        times[N] = float(np.median(latency(rl.matmul, a, a, repeat=5).samples_ms))
        last = N
    return times
"""

PRODUCTS_FIRST = """
def tflops(N, ms):
    flops = 2 * np.float64(N) ** 3
    return flops / 1e12 / (ms / 1000)

def product_times(sizes, budget_ms):
    def timed(N):
        a, b = rl.randn(N, N, device=device), rl.randn(N, N, device=device)
        return latency(lambda: a @ b, warmup=1, repeat=9).median_ms
    first, *others = sizes
    times = {first: timed(first)}
    for before, N in zip(sizes, others):
        if times[before] * N**3 / before**3 > budget_ms:
            break
        times[N] = timed(N)
    return times
"""

PRODUCT_VALUES = """
right_peak, expected_growth, product_bound, waves_1024, efficiency_1024 = 19.5, 8, "compute", 2, 0.5926
"""
PRODUCT_DERIVED = """
a100 = SPECS["A100 40GB"]
right_peak, expected_growth = a100.peak_tflop_s["float32"], 2**3
product_bound = rl.roofline.bound(a100, 1024 / 6)
tiles = (1024 // 128) * (1024 // 64)
waves_1024 = -(-tiles // 108)
efficiency_1024 = tiles / (108 * waves_1024)
"""

MLP = """
def mlp_flops(dim, layers, batch, steps):
    product = 2 * batch * dim * dim
    forward, backward = layers * product, (2 * layers - 1) * product
    return steps * (forward + backward)
"""

COUNTED_FLOPS = """
def mlp_flops(dim, layers, batch, steps):
    return 2 * mlp_counts(dim, layers, batch, steps).macs
"""

MLP_COUNTED = """
def mlp_flops(dim, layers, batch, steps):
    return 6 * dim**2 * layers * batch * steps - 2 * dim**2 * batch * steps
"""

LAUNCHES = """
first, second = mlp_counts(2, 1, 2, 1).launches, mlp_counts(2, 2, 2, 1).launches

def mlp_launches(layers, steps):
    return steps * (first + (layers - 1) * (second - first))
"""

LAUNCHES_FITTED = """
counted = [mlp_counts(4, layers, 4, 1).launches for layers in (1, 2, 3, 4)]
slope, start = np.polyfit([1, 2, 3, 4], counted, 1)

def mlp_launches(layers, steps):
    return int(round(steps * (slope * layers + start)))
"""

FREE = """
peak_share, what_binds = 0.01794, "c"

def largest_free(ms, which, peak_tflop_s):
    flops = ms * peak_tflop_s * 1e9
    products = 2 * (3 * 4 - 1) * 2
    if which == "batch":
        return int(flops // (products * 256 * 256))
    return math.isqrt(int(flops // (products * 256)))
"""

FREE_SEARCHED = """
peak_share = mlp_flops(256, 4, 256, 2) / (19.5e12 * 2.11e-3)
what_binds = "c"

def largest_free(ms, which, peak_tflop_s):
    low, high = 1, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        sizes = {"dim": 256, "layers": 4, "batch": 256, "steps": 2} | {which: middle}
        if mlp_flops(**sizes) <= ms * peak_tflop_s * 1e9:
            low = middle
        else:
            high = middle
    return low
"""

FREE_BASE = """
peak_share, what_binds = mlp_flops(**base) / 19.5e12 / 2.11e-3, "c"

def largest_free(ms, which, peak_tflop_s):
    flops = ms * 1e-3 * peak_tflop_s * 1e12
    size = flops / mlp_flops(**base | {which: 1})
    return math.floor(size if which == "batch" else math.sqrt(size))
"""

FREE_TRIED = """
peak_share, what_binds = mlp_flops(**base) / 19.5e12 / 2.11e-3, "c"

def largest_free(ms, which, peak_tflop_s):
    size = 1
    while mlp_flops(**{**base, which: size + 1}) / (peak_tflop_s * 1e12) * 1e3 <= ms:
        size += 1
    return size
"""

PROFILE = """
def profile_totals(rows):
    kernel_us = host_us = gemm_us = 0.0
    for row in rows:
        if row["where"] == "device":
            kernel_us += row["us"]
            gemm_us += row["us"] if row["category"] == "gemm" else 0.0
        elif row["parent"] is None:
            host_us += row["us"]
    return {"kernel_us": kernel_us, "host_us": host_us, "gemm_share": gemm_us / kernel_us}

def per_second(amount, us):
    return amount / us * 1e6

def backward_over_forward(layers):
    return 2 - 1 / layers
"""

PROFILE_SELF = """
def profile_totals(rows):
    own = [row["us"] for row in rows]
    for row in rows:
        if row["parent"] is not None:
            own[row["parent"]] -= row["us"]
    where = np.array([row["where"] for row in rows])
    gemm = np.array([row["category"] == "gemm" for row in rows])
    own = np.array(own)
    kernels = own[where == "device"].sum()
    return {"gemm_share": own[gemm].sum() / kernels, "host_us": own[where == "host"].sum(), "kernel_us": kernels}

def per_second(amount, us):
    return 1e6 * amount / us

def backward_over_forward(layers):
    forward, weights, inputs = layers, layers, layers - 1
    return (weights + inputs) / forward
"""

RIGHT = {
    "q5_1": [("one wait before all trials", BENCHMARK), ("rl.latency", BY_LATENCY), ("events", BY_EVENTS)],
    "q5_2": [("a median of samples", PRODUCTS), ("pairs of sizes", PRODUCTS_FIRST)],
    "q5_2_values": [
        ("as published", PRODUCT_VALUES.replace("19.5, 8,", "19.5, 7.75,")),
        ("rounded", PRODUCT_VALUES),
        ("derived", PRODUCT_DERIVED),
    ],
    "q5_3": [("both passes", MLP), ("less one product", MLP_COUNTED)],
    "q5_3_launches": [("two points", LAUNCHES), ("a fit", LAUNCHES_FITTED)],
    "q5_3_bound": [
        ("solved", FREE),
        ("searched", FREE_SEARCHED),
        ("the dict base", FREE_BASE),
        ("one size after the other", FREE_TRIED),
    ],
    "b5_4": [("a loop", PROFILE), ("each row's own time", PROFILE_SELF)],
}

WRONG = {
    "q5_1": [
        *mutants(
            BENCHMARK,
            ("no wait after", "        rl.synchronize()\n        samples", "        samples"),
            ("no wait before", "    rl.synchronize()\n    samples = []", "    samples = []"),
            ("the first call is kept", "range(warmup)", "range(0)"),
            ("warm-up calls in the samples", "range(trials)", "range(trials + warmup)"),
            ("seconds", "/ 1e6", "/ 1e9"),
            ("microseconds", "/ 1e6", "/ 1e3"),
            ("the upper middle trial", '"median_ms": middle', '"median_ms": sorted(samples)[len(samples) // 2]'),
            ("the mean", '"median_ms": middle', '"median_ms": np.mean(samples)'),
            ("always three trials", "range(trials)", "range(3)"),
            ("the fastest", '"median_ms": middle', '"median_ms": min(samples)'),
            ("p10 and p90", "[20, 50, 80]", "[10, 50, 90]"),
            ("the ends exchanged", "low, middle, high =", "high, middle, low ="),
        ),
        ("all trials in one", """
import time

def benchmark(run, warmup, trials):
    for _ in range(warmup):
        run()
    rl.synchronize()
    start = time.perf_counter()
    for _ in range(trials):
        run()
    rl.synchronize()
    ms = (time.perf_counter() - start) / trials * 1e3
    return {"median_ms": ms, "p20_ms": ms, "p80_ms": ms}
"""),
        ("made up", "def benchmark(run, warmup, trials):\n"
         "    return {'median_ms': 5.0, 'p20_ms': 5.0, 'p80_ms': 5.0}\n"),
    ],
    "q5_2": mutants(
        PRODUCTS,
        ("N cubed", "2e-9 * N**3", "1e-9 * N**3"),
        ("units of 2^40", "2e-9 * N**3", "2 * N**3 * 1000 / 2**40"),
        ("seconds for ms", "2e-9", "2e-12"),
        ("GFLOP/s", "2e-9", "2e-6"),
        ("N squared", "N**3 / ms", "N**2 / ms"),
        ("no budget", "if predicted > budget_ms", "if False"),
        ("always a factor of 8", "(N / last) ** 3", "8"),
        ("the ratio squared", "(N / last) ** 3", "(N / last) ** 2"),
        ("the ratio to the fourth", "(N / last) ** 3", "(N / last) ** 4"),
        ("no prediction", " * (N / last) ** 3", ""),
        ("from the first size", "times[last] * (N / last) ** 3", "times[sizes[0]] * (N / sizes[0]) ** 3"),
        ("from the shortest time", "times[last] * (N / last) ** 3",
         "min(ms * (N / size) ** 3 for size, ms in times.items())"),
        ("from the size before the last", "        last = N",
         "        last = min(times, key=lambda size: (len(times) > 1) * size)"),
        *((f"in {how}", "N, N, device=device)\n", f"N, N, device=device).{how}()\n") for how in ("double", "half")),
        ("no call to warm up", "repeat=5)", "repeat=5, warmup=0)"),
        ("one sample", "repeat=5)", "repeat=1)"),
        ("the sum of all times", "predicted = times[last] * (N / last) ** 3", "predicted = sum(times.values())"),
        ("goes on after a size that is too large",
         "            return times\n        a", "            continue\n        a"),
        ("made in the timed call", "latency(rl.matmul, a, a, repeat=5)",
         "latency(lambda: rl.randn(N, N) @ rl.randn(N, N), repeat=5)"),
        ("the first one has to fit", "predicted, last = {}, 0.0, None", "predicted, last = {}, 1.0, None"),
        ("seconds", "samples_ms))", "samples_ms)) / 1e3"),
        ("made up", "float(np.median(latency(rl.matmul, a, a, repeat=5).samples_ms))", "1e-3 * N"),
        ("a sum", "rl.matmul, a, a", "rl.add, a, a"),
        ("always the same size", "rl.ones(N, N", "rl.ones(8, 8"),
        ("the smallest sample", "np.median", "np.min"),
    ),
    "q5_2_values": mutants(
        PRODUCT_VALUES,
        ("the 16-bit peak", "19.5", "312"),
        ("tf32", "19.5", "156"),
        ("a doubling of the time", ", 8,", ", 2,"),
        ("four times", ", 8,", ", 4,"),
        ("memory", '"compute"', '"memory"'),
        ("one wave", '"compute", 2', '"compute", 1'),
        ("tiles of 128 x 128", "0.5926", "0.5926 / 2"),
        ("the measured share", "0.5926", "0.5026"),
    ),
    "q5_3": [
        ("counted, not by a formula", COUNTED_FLOPS),
        *mutants(
            MLP,
            ("three layers a step", "(2 * layers - 1)", "2 * layers"),
            ("forward alone", "(forward + backward)", "forward"),
            ("backward as forward", "(2 * layers - 1)", "layers"),
            ("MACs", "2 * batch", "batch"),
            ("one step", "steps * (", "("),
            ("with biases", "batch * dim * dim", "batch * dim * (dim + 1)"),
            ("a float", "2 * batch", "2.0 * batch"),
            ("rounded by a float", "steps * (forward + backward)", "int(1.0 * steps * (forward + backward))"),
        ),
    ],
    "q5_3_launches": mutants(
        LAUNCHES,
        ("products alone", "steps * (first + (layers - 1) * (second - first))", "steps * (3 * layers - 1)"),
        ("in proportion to the layers", "first + (layers - 1) * (second - first)", "first * layers"),
        ("one step", "steps * (", "("),
        ("the steps share what is fixed", "steps * (first + (layers - 1) * (second - first))",
         "first + (steps * layers - 1) * (second - first)"),
        ("one layer too many", "(layers - 1)", "layers"),
        ("a size of 1", "mlp_counts(2, 1, 2, 1).launches, mlp_counts(2, 2, 2, 1)",
         "mlp_counts(1, 1, 1, 1).launches, mlp_counts(1, 2, 1, 1)"),
        ("at most five steps", "    return steps", "    steps = min(steps, 5)\n    return steps"),
    ),
    "q5_3_bound": mutants(
        FREE,
        ("in per cent", "0.01794", "0.0001794"),
        ("the 16-bit peak", "0.01794", "0.001121"),
        ("dim is not squared", "math.isqrt(int(flops // (products * 256)))", "int(flops // (products * 256 * 256))"),
        ("batch is squared", "int(flops // (products * 256 * 256))", "math.isqrt(int(flops // (products * 256)))"),
        ("all products", "(3 * 4 - 1)", "3 * 4"),
        ("at most 20,000", "int(flops // (products * 256 * 256))", "min(20_000, int(flops // (products * 256 * 256)))"),
        ("one step", "products = 2 * (3 * 4 - 1) * 2", "products = 2 * (3 * 4 - 1)"),
        ("seconds for ms", "* 1e9", "* 1e12"),
        ("one too many", "return int(flops", "return 1 + int(flops"),
        *((f"choice {letter}", '"c"', f'"{letter}"') for letter in "abd"),
    ),
    "b5_4": [
        *mutants(
            PROFILE,
            ("host time as kernel time", 'if row["where"] == "device":', "if True:"),
            ("sorts the rows that it is given", "    kernel_us = host_us",
             "    rows.sort(key=lambda row: row['us'])\n    kernel_us = host_us"),
            ("parents and children", 'elif row["parent"] is None:', "else:"),
            ("only the innermost", 'elif row["parent"] is None:', 'elif row["parent"] is not None:'),
            ("a share of all rows", "gemm_us / kernel_us", "gemm_us / (kernel_us + host_us)"),
            ("a share of launches", "+= row[\"us\"] if", "+= 1 if"),
            ("per cent", "gemm_us / kernel_us", "100 * gemm_us / kernel_us"),
            ("per millisecond", "amount / us * 1e6", "amount / us * 1e3"),
            ("whole divisions", "amount / us * 1e6", "amount // us * 10**6"),
            ("whole microseconds", 'host_us += row["us"]', 'host_us += int(row["us"])'),
            ("twice", "2 - 1 / layers", "2.0"),
            ("three products", "2 - 1 / layers", "3 - 1 / layers"),
            ("forward over backward", "2 - 1 / layers", "1 / (2 - 1 / layers)"),
        ),
        ("milliseconds", changed(PROFILE, 'kernel_us += row["us"]', 'kernel_us += row["us"] / 1000')),
    ],
}  # fmt: skip

ONLY_HIDDEN = {
    "q5_2_values": "the 16-bit peak|tf32|a doubling of the time|four times|memory|one wave|tiles of 128 x 128|"
    "the measured share",
    "q5_3": "rounded by a float",
    "q5_3_launches": "at most five steps",
    "q5_3_bound": "at most 20,000|in per cent|the 16-bit peak|choice a|choice b|choice d",
}
