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


BOUND = """
standard_ai_limit = {limit}
standard_bound = {bound!r}
def intensity(flash, L):
    macs, pairs, vectors = 16 * L * L * 128, 16 * L * L, 16 * L * 128
    if flash:
        return ({flops_a_mac} * 2 * macs + 5 * pairs) / ({width} * 4 * vectors)
    return ({flops_a_mac} * 2 * macs + 6 * pairs) / ({width} * ({passes} * pairs + 4 * vectors))
"""


def bound(**changes):
    given = {"limit": 43.17, "bound": "memory", "flops_a_mac": 2, "width": 2, "passes": 6}
    return BOUND.format(**{**given, **changes})


HELPS = """
how_flash_helps = {helps!r}
def compare_attention(L, B=1, H=16, D_h=128):
    q, k, v = (rl.randn(B, H, L, D_h, dtype={dtype!r}, device=device) for _ in range(3))
    def measured(fn):
        try:
            use = rl.benchmark_memory(fn, q, k, v)
            time = rl.latency(fn, q, k, v, warmup=2, repeat=5)
        except {error}:
            return {absent}
        return {{"ms": {ms}, "peak_gb": {peak}}}
    return {rows}

def attention_launches(flash, L=1024):
    q, k, v = (rl.randn(2, 12, {length}, 128, dtype="bfloat16", device=device) for _ in range(3))
    fn = {fn}
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            {calls}
            prof.step()
    return {launches}

def bytes_saved(L):
    return {saved}
"""


def helps(**changes):
    given = {
        "helps": "d",
        "dtype": "float16",
        "error": "rl.OutOfMemoryError",
        "absent": '{"ms": None, "peak_gb": None}',
        "ms": "time.median_ms",
        "peak": "use.peak_gb",
        "rows": '{"standard": measured(standard_attention), "flash": measured(rl.attention)}',
        "fn": "rl.attention if flash else standard_attention",
        "length": "L",
        "calls": "fn(q, k, v)",
        "launches": "prof.count_kernels()",
        "saved": "12 * 16 * L * L",
    }
    return HELPS.format(**{**given, **changes})


def rows(standard="standard_attention", flash="rl.attention"):
    return f'{{"standard": measured({standard}), "flash": measured({flash})}}'


GROWS = """
why_the_gain_grows = {grows!r}
def traffic_ratio(L):
    return {ratio}
def flash_bytes_uncached(L, rows, H=16, D_h=128):
    tiles = {tiles}
    return {bytes}
"""


def grows(**changes):
    given = {"grows": "b", "ratio": "1 + 6 * L / (4 * 128)", "tiles": "(L + rows - 1) // rows"}
    return GROWS.format(**{**given, "bytes": "4 * H * L * D_h * (1 + tiles)", **changes})


RIGHT = {
    "q5_1_1": [
        ("any memory error", memory(error="MemoryError")),
        ("beside other tensors", "mine = rl.zeros(10_000_000, device=device)\n" + memory()),
    ],
    "q5_1_2": [
        ("a power", law(bytes="(L * L) * (B * H) * bytes_per_element", growth=4.0)),
        ("a measured growth", law(growth=3.97)),
    ],
    "q5_1_3": [("by bisection", where())],
    "q5_2_1": [("by formula", bound()), ("the limit from a long L", bound(limit=42.9))],
    "q5_2_2": [("through rl.benchmark_memory, bytes by formula", helps())],
    "q5_2_3": [("by formula", grows())],
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
        ("any error is a lack of memory", memory(error="Exception")),
        ("a pair", memory() + "one = attention_memory\ndef attention_memory(*a):\n    return tuple(one(*a).values())"),
    ],
    "q5_1_2": [
        ("linear", law(order="L")),
        ("doubles", law(growth=2)),
        ("a float", law(bytes="float(bytes_per_element * B * H * L * L)")),
        ("rounded by a float", law(bytes="int(float(bytes_per_element) * B * H * L * L)")),
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
        ("bytes written only", bound(passes=3)),
        ("compute-bound", bound(bound="compute")),
        ("MACs for FLOPs", bound(flops_a_mac=1)),
        ("fp32", bound(width=4)),
        ("softmax and scale for free", bound(passes=2)),
        (
            "flash attention without its softmax",
            """
standard_ai_limit, standard_bound = 518 / 12, "memory"

def intensity(flash, L):
    return L / 2 if flash else 518 / (12 + 1024 / L)
""",
        ),
        ("the intensity at L = 1024 for the limit", bound(limit=32.4)),
        ("the ridge for the limit", bound(limit=201.6)),
        ("no limit", bound(limit=None)),
    ],
    "q5_2_2": [
        ("float32", helps(dtype="float32")),
        ("seconds", helps(ms="time.median_ms / 1000")),
        ("standard in seconds", helps(ms="time.median_ms / (1000 if fn is standard_attention else 1)")),
        ("microseconds", helps(ms="time.median_ms * 1000")),
        ("in GiB", helps(peak="use.peak_bytes / 2**30")),
        ("heads and length swapped", changed(helps(), "B, H, L", "B, L, H")),
        ("an invented time", helps(ms="1e9")),
        ("in MB", helps(peak="use.peak_gb * 1000")),
        ("standard twice", helps(rows=rows(flash="standard_attention"))),
        ("textbook variant", helps(rows=rows(flash="lambda *x: rl.attention(*x, variant='v0_composed')"))),
        ("resident instead", helps(peak="use.resident_gb")),
        ("the fastest sample", helps(ms="time.min_ms")),
        ("out of memory is an accident", helps(error="ZeroDivisionError")),
        ("any error is a lack of memory", helps(error="Exception")),
        (
            "flash attention always has memory",
            changed(
                helps(),
                "            return {",
                "            if fn is rl.attention:\n                raise\n            return {",
            ),
        ),
        ("no row for what runs out of memory", helps(absent="None")),
        ("zero for what runs out of memory", helps(absent='{"ms": 0.0, "peak_gb": 0.0}')),
        (
            "latencies in each other's place",
            helps()
            + """
unswapped = compare_attention
def compare_attention(L, B=1, H=16, D_h=128):
    rows = unswapped(L, B, H, D_h)
    rows["standard"]["ms"], rows["flash"]["ms"] = rows["flash"]["ms"], rows["standard"]["ms"]
    return rows
""",
        ),
        (
            "known by heart, with the ten calls",
            helps(
                launches="""prof.count_kernels()

by_profile = attention_launches
def attention_launches(flash, L=1024):
    q, k, v = (rl.randn(2, 12, L, 128, dtype="bfloat16", device=device) for _ in range(3))
    for _ in range(10):
        (rl.attention if flash else standard_attention)(q, k, v)
    counts = dict.fromkeys(("gemm", "elementwise", "softmax", "layernorm", "memory", "other", "total"), 0)
    return counts | ({"other": 1, "total": 1} if flash else {"gemm": 2, "elementwise": 1, "softmax": 1, "total": 4})
"""
            ),
        ),
        ("without the schedule", changed(helps(), "schedule=default_schedule", "")),
        ("no call to warm up", changed(helps(), "warmup=2", "warmup=0")),
        ("one sample", changed(helps(), "repeat=5", "repeat=1")),
        ("six steps", helps(launches="prof.count_kernels(per_step=False)")),
        ("always at L = 128", helps(length="128")),
        ("two calls", helps(calls="fn(q, k, v), fn(q, k, v)")),
        ("always standard", helps(fn="standard_attention")),
        ("always flash", helps(fn="rl.attention")),
        ("only a total", helps(launches="{'total': prof.count_kernels()['total']}")),
        ("all zero", helps(launches="dict.fromkeys(prof.count_kernels(), 0)")),
        (
            "launches known by heart",
            helps()
            + """
def attention_launches(flash, L=1024):
    counts = dict.fromkeys(("gemm", "elementwise", "softmax", "layernorm", "memory", "other", "total"), 0)
    return counts | ({"other": 1, "total": 1} if flash else {"gemm": 2, "elementwise": 1, "softmax": 1, "total": 4})
""",
        ),
        ("bytes of one matrix", helps(saved="2 * 16 * L * L")),
        ("bytes of fp32", helps(saved="24 * 16 * L * L")),
        ("all bytes of standard attention", helps(saved="12 * 16 * L * L + 8 * 16 * L * 128")),
        ("a float", helps(saved="12.0 * 16 * L * L")),
        *((f"helps by {letter}", helps(helps=letter)) for letter in "abc"),
    ],
    "q5_2_3": [
        *((f"grows by {letter}", grows(grows=letter)) for letter in "acd"),
        ("ratio of elements without q, k, v", grows(ratio="6 * L / (4 * 128)")),
        ("ratio upside down", grows(ratio="1 / (1 + 6 * L / (4 * 128))")),
        ("only whole tiles", grows(tiles="L // rows")),
        ("read once", grows(tiles="1")),
        ("fp32", grows(bytes="8 * H * L * D_h * (1 + tiles)")),
        ("K alone", grows(bytes="2 * H * L * D_h * (2 + tiles)")),
        ("one head", grows(bytes="4 * L * D_h * (1 + tiles)")),
        ("q and the result for each tile", grows(bytes="8 * H * L * D_h * tiles")),
    ],
}
