"""Answers to Part 5 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import changed

MEMORY = """
def attention_memory(L, B=1, H=16, D_h=128):
    q, k, v = (rl.randn(B, H, L, D_h, dtype="{dtype}", device=device) for _ in range(3))
    try:
        peak_gb, resident_gb = benchmark_memory({fn}, q, k, v)
    except {error}:
        return {{"peak_gb": {absent}, "resident_gb": 3 * q.nbytes / 1e9}}
    return {{"peak_gb": {peak}, "resident_gb": {resident}}}
"""


def memory(**changes):
    given = {"dtype": "float16", "fn": "standard_attention", "error": "rl.OutOfMemoryError", "absent": "None"}
    return MEMORY.format(**{**given, "peak": "peak_gb", "resident": "resident_gb", **changes})


LAW = """
memory_order = {order!r}
growth_when_doubled = {growth}
def score_matrix_bytes(L, B, H, bytes_per_element):
    return {bytes}
"""


def law(order="L^2", growth=4, bytes="bytes_per_element * B * H * L**2"):
    return LAW.format(order=order, growth=growth, bytes=bytes)


WHERE = """
largest_overhead = {overhead!r}
troubled_scenario = {scenario!r}
def largest_length(memory_gb, B, H, D_h):
    low, high = 0, 1
    held = lambda L: 2 * B * H * ({matrices} * L * L + {vectors} * L * D_h)
    while held(high) <= memory_gb * {gb}:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if held(middle) <= memory_gb * {gb} else (low, middle)
    return {result}
def overhead_ratio(L, D_h):
    return {ratio}
"""


def where(**changes):
    given = {"overhead": "c", "scenario": "b", "matrices": 2, "vectors": 4, "gb": "1e9", "result": "low"}
    return WHERE.format(**{**given, "ratio": "L / (2 * D_h)", **changes})


COMPARE = """
def compare_attention(L, B=1, H=16, D_h=128):
    q, k, v = (rl.randn(B, H, L, D_h, dtype={dtype!r}, device=device) for _ in range(3))
    def measured(fn):
        use = rl.benchmark_memory(fn, q, k, v)
        time = rl.latency(fn, q, k, v, warmup=2, repeat=5)
        return {{"ms": {ms}, "peak_gb": {peak}}}
    return {{"standard": measured(standard_attention), "flash": measured({flash})}}
"""


def compare(**changes):
    given = {"dtype": "float16", "ms": "time.median_ms", "peak": "use.peak_gb", "flash": "rl.attention"}
    return COMPARE.format(**{**given, **changes})


LAUNCHES = """
def attention_launches(flash):
    q, k, v = (rl.randn(2, 12, 256, 64, dtype="bfloat16", device=device) for _ in range(3))
    fn = {fn}
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            {calls}
            prof.step()
    return {result}
"""


def launches(fn="rl.attention if flash else standard_attention", calls="fn(q, k, v)", result="prof.count_kernels()"):
    return LAUNCHES.format(fn=fn, calls=calls, result=result)


WHY = """
standard_bound = {bound!r}
how_flash_helps = {helps!r}
why_the_gain_grows = {grows!r}
def work(L):
    return 16 * L * L * 128, 16 * L * L, 16 * L * 128
def intensity(flash, L):
    macs, pairs, vectors = work(L)
    if flash:
        return ({flops_a_mac} * 2 * macs + 5 * pairs) / ({width} * 4 * vectors)
    return ({flops_a_mac} * 2 * macs + 6 * pairs) / ({width} * ({passes} * pairs + 4 * vectors))
def traffic_ratio(L):
    return {ratio}
"""


def why(**changes):
    given = {"bound": "memory", "helps": "d", "grows": "b", "flops_a_mac": 2, "width": 2, "passes": 6}
    return WHY.format(**{**given, "ratio": "1 + 6 * L / (4 * 128)", **changes})


RIGHT = {
    "q5_1_1": [
        ("any memory error", memory(error="MemoryError")),
        ("beside other tensors", "mine = rl.zeros(10_000_000, device=device)\n" + memory()),
    ],
    "q5_1_2": [("a power", law(bytes="(L * L) * (B * H) * bytes_per_element", growth=4.0))],
    "q5_1_3": [("by bisection", where())],
    "q5_2_1": [("through rl.benchmark_memory", compare())],
    "q5_2_2": [("smaller tensors, the same launches", launches())],
    "q5_2_3": [("by formula", why())],
}
WRONG = {
    "q5_1_1": [
        ("float32", memory(dtype="float32")),
        ("flash instead", memory(fn="rl.attention")),
        ("in MB", memory(peak="peak_gb * 1000")),
        ("in GiB", memory(peak="peak_gb * 1e9 / 2**30")),
        ("resident among the peak", memory(peak="peak_gb + resident_gb")),
        ("the peak among the resident", memory(resident="resident_gb + peak_gb")),
        ("resident in GiB", memory(resident="resident_gb * 1e9 / 2**30")),
        ("resident twice", memory(resident="2 * resident_gb")),
        ("one of the batch", changed(memory(), "(B, H", "(1, H")),
        ("resident left out", memory(resident="0.0")),
        ("swapped", memory(peak="resident_gb", resident="peak_gb")),
        ("crashes when out of memory", memory(error="ZeroDivisionError")),
        ("zero when out of memory", memory(absent="0.0")),
        ("a pair", memory() + "one = attention_memory\ndef attention_memory(*a):\n    return tuple(one(*a).values())"),
    ],
    "q5_1_2": [
        ("linear", law(order="L")),
        ("doubles", law(growth=2)),
        ("a float", law(bytes="float(bytes_per_element * B * H * L * L)")),
        ("one head", law(bytes="bytes_per_element * B * L * L")),
        ("both matrices", law(bytes="2 * bytes_per_element * B * H * L * L")),
        ("two bytes always", law(bytes="2 * B * H * L * L")),
        ("unfilled", law(order=None, growth=None)),
    ],
    "q5_1_3": [
        ("q, k and v", where(overhead="a")),
        ("decode", where(scenario="a")),
        ("fp32", changed(where(), "2 * B * H", "4 * B * H")),
        ("one head", changed(where(), "2 * B * H", "2 * B")),
        ("one matrix", where(matrices=1)),
        ("without the result", where(vectors=3)),
        ("GiB", where(gb="2**30")),
        ("one too many", where(result="low + 1")),
        ("a float", where(result="float(low)")),
        ("ratio of one matrix", where(ratio="L / (4 * D_h)")),
        ("ratio upside down", where(ratio="2 * D_h / L")),
    ],
    "q5_2_1": [
        ("float32", compare(dtype="float32")),
        ("seconds", compare(ms="time.median_ms / 1000")),
        ("standard in seconds", compare(ms="time.median_ms / (1000 if fn is standard_attention else 1)")),
        ("microseconds", compare(ms="time.median_ms * 1000")),
        ("in GiB", compare(peak="use.peak_bytes / 2**30")),
        ("heads and length swapped", changed(compare(), "B, H, L", "B, L, H")),
        ("an invented time", compare(ms="1e9")),
        ("in MB", compare(peak="use.peak_gb * 1000")),
        ("standard twice", compare(flash="standard_attention")),
        ("textbook variant", compare(flash="lambda *x: rl.attention(*x, variant='v0_composed')")),
        ("resident instead", compare(peak="use.resident_gb")),
    ],
    "q5_2_2": [
        ("six steps", launches(result="prof.count_kernels(per_step=False)")),
        ("two calls", launches(calls="fn(q, k, v), fn(q, k, v)")),
        ("always standard", launches(fn="standard_attention")),
        ("always flash", launches(fn="rl.attention")),
        ("only a total", launches(result="{'total': prof.count_kernels()['total']}")),
        ("all zero", launches(result="dict.fromkeys(prof.count_kernels(), 0)")),
    ],
    "q5_2_3": [
        ("bytes written only", why(passes=3)),
        ("compute-bound", why(bound="compute")),
        ("fewer FLOPs", why(helps="a")),
        ("launches", why(grows="a")),
        ("MACs for FLOPs", why(flops_a_mac=1)),
        ("fp32", why(width=4)),
        ("softmax and scale for free", why(passes=2)),
        ("ratio of elements without q, k, v", why(ratio="6 * L / (4 * 128)")),
        ("ratio upside down", why(ratio="1 / (1 + 6 * L / (4 * 128))")),
    ],
}
