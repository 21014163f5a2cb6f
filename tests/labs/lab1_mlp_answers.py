"""Answers to 3.4 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import changed

VALUES = """
prefill_ai, decode_ai = {values}
prefill_bound, decode_bound = {bounds}
why_they_differ = {why!r}
"""

BATCH = """
decode_points = {points}
crossing_batch_a6000 = {crossing}
why_ai_grows = {why!r}

def smallest_compute_bound_batch(peak_tflop_s, bandwidth_tb_s, config):
    D, I = config["hidden_size"], config["intermediate_size"]
    ridge = peak_tflop_s / bandwidth_tb_s
    if (6 * D + 9) * I / (6 * D + 16 * I) <= ridge:
        return {never}
    B = 1
    while {memory_bound}:
        B += 1
    return B
"""
MEMORY_BOUND = "calc_mlp_flops(B, 1, D, I) / calc_mlp_io(B, 1, D, I) < ridge"

LENGTH = """
prefill_points = {points}
bound_at_the_limit = {bounds}
why_it_saturates = {why!r}

def mlp_ai_limit(config):
    D, I = config["hidden_size"], config["intermediate_size"]
    return {limit}
"""


def intensity(expression):
    return (
        "def mlp_intensity(B, L, config):\n"
        '    D, I = config["hidden_size"], config["intermediate_size"]\n'
        f"    return {expression}\n"
    )


def values(**changes):
    given = {"values": "212.54, 7.731", "bounds": '"compute", "memory"', "why": "c"}
    return VALUES.format(**given | changes)


def points(sizes, L=None):
    return f"{{n: mlp_intensity({'32, n' if L is None else f'n, {L}'}, GEMMA3_270M_CONFIG) for n in {sizes}}}"


def batch(**changes):
    given = {"points": points((1, 4, 16, 64), 1), "crossing": 3146, "why": "b", "never": "None"}
    return BATCH.format(**{**given, "memory_bound": MEMORY_BOUND, **changes})


def length(**changes):
    given = {"points": points((64, 256, 1024, 4096)), "bounds": '{"A6000": "compute", "H100": "memory"}', "why": "b"}
    return LENGTH.format(**{**given, "limit": "(6 * D + 9) / (6 * D / I + 16)", **changes})


RIGHT = {
    "q3_4_1": [
        ("simplified", intensity("I * (6 * D + 9) / (6 * D + 16 * I + 6 * D * I / (B * L))")),
        ("by token", intensity("calc_mlp_flops(1, 1, D, I) / (calc_mlp_io(B, L, D, I) / (B * L))")),
    ],
    "q3_4_1_values": [("rounded", values(values="212.5, 7.73")), ("by formula", values(
        values="[calc_mlp_flops(8, L, 640, 2048) / calc_mlp_io(8, L, 640, 2048) for L in (2048, 1)]"
    ))],
    "q3_4_2": [("by search", batch()), ("by bisection", batch() + """
by_search = smallest_compute_bound_batch
def smallest_compute_bound_batch(peak_tflop_s, bandwidth_tb_s, config):
    D, I = config["hidden_size"], config["intermediate_size"]
    enough = lambda B: calc_mlp_flops(B, 1, D, I) >= peak_tflop_s / bandwidth_tb_s * calc_mlp_io(B, 1, D, I)
    high = 1
    while not enough(high):
        high *= 2
        if high > 2**40:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
""")],
    "q3_4_3": [
        ("divided by I", length()),
        ("at very many tokens", length(limit="calc_mlp_flops(10**9, 10**3, D, I) / calc_mlp_io(10**9, 10**3, D, I)")),
    ],
}  # fmt: skip

WRONG = {
    "q3_4_1": [
        ("MACs", intensity("calc_mlp_mac(B, L, D, I) / calc_mlp_io(B, L, D, I)")),
        ("in fp32", intensity("calc_mlp_flops(B, L, D, I) / calc_mlp_io(B, L, D, I) / 2")),
        ("upside down", intensity("calc_mlp_io(B, L, D, I) / calc_mlp_flops(B, L, D, I)")),
        ("one sequence", intensity("calc_mlp_flops(1, L, D, I) / calc_mlp_io(1, L, D, I)")),
        ("D and I swapped", intensity("calc_mlp_flops(B, L, I, D) / calc_mlp_io(B, L, I, D)")),
        ("no elementwise FLOPs", intensity("2 * calc_mlp_mac(B, L, D, I) / calc_mlp_io(B, L, D, I)")),
        ("weights only", intensity("float(B * L)")),
        ("always the 270M model", intensity("calc_mlp_flops(B, L, 640, 2048) / calc_mlp_io(B, L, 640, 2048)")),
    ],
    "q3_4_1_values": [
        (label, values(**change))
        for label, change in {
            "decode of one sequence": {"values": "212.54, 0.9977"},
            "decode as long as the cache": {"values": "212.54, 212.54"},
            "prefill of one sequence": {"values": "180.9, 7.731"},
            "swapped": {"values": "7.731, 212.54"},
            "prefill memory-bound": {"bounds": '"memory", "memory"'},
            "decode compute-bound": {"bounds": '"compute", "compute"'},
            "nothing": {"values": "None, None", "bounds": "None, None", "why": None},
            **{f"differ by {letter}": {"why": letter} for letter in "abd"},
        }.items()
    ],
    "q3_4_2": [
        ("keys are labels", batch(points=points((1, 4, 16, 64), 1).replace("{n:", "{str(n):"))),
        ("three batches", batch(points=points((1, 4, 16), 1))),
        ("prefill for decode", batch(points=points((1, 4, 16, 64), 2048))),
        ("weights only", batch(points="{n: float(n) for n in (1, 4, 16, 64)}")),
        ("a search up to 4000", batch(memory_bound=f"{MEMORY_BOUND} and B < 4000")),
        ("a search that finds nothing up to 5000", batch(memory_bound=MEMORY_BOUND).replace(
            "    B = 1\n", "    B = 1\n    if calc_mlp_flops(5000, 1, D, I) / calc_mlp_io(5000, 1, D, I) < ridge:\n"
            "        return None\n")),
        ("crossing at the ridge", batch(crossing=202)),
        ("crossing rounded down", batch(crossing=3145)),
        ("crossing of the fp32 peak", batch(crossing=62)),
        ("crossing of the sparse peak", batch(crossing=None)),
        *((f"grows by {letter}", batch(why=letter)) for letter in "acd"),
        ("0 for never", batch(never="0")),
        ("infinity for never", batch(never="float('inf')")),
        ("one too many at the ridge", batch(memory_bound=MEMORY_BOUND.replace("<", "<="))),
        ("one too few", changed(batch(), "return B\n", "return B - 1\n")),
        ("a float", changed(batch(), "return B\n", "return float(B)\n")),
        ("weights only in the function", batch(memory_bound="B < ridge")),
        ("MACs in the function", batch(memory_bound=MEMORY_BOUND.replace("flops", "mac"))),
        ("bandwidth over peak", changed(batch(), "peak_tflop_s / bandwidth_tb_s", "bandwidth_tb_s / peak_tflop_s")),
        ("the 270M model only", changed(batch(), 'config["hidden_size"], config["intermediate_size"]', "640, 2048")),
    ],
    "q3_4_3": [
        ("keys are labels", length(points=points((64, 256, 1024, 4096)).replace("{n:", "{str(n):"))),
        ("one prompt", length(points=points((64, 256, 1024, 4096)).replace("32, n", "1, n"))),
        ("decode for prefill", length(points=points((64, 256, 1024, 4096)).replace("32, n", "32, 1"))),
        ("limit of MACs", length(limit="3 * D * I / (6 * D + 16 * I)")),
        ("limit without elementwise FLOPs", length(limit="6 * D * I / (6 * D + 16 * I)")),
        ("limit in fp32", length(limit="(6 * D + 9) * I / (6 * D + 16 * I) / 2")),
        ("limit of the projections alone", length(limit="6 * D * I / (6 * D + 6 * I)")),
        ("limit of the 270M model", length(limit="215.3287")),
        ("no limit", length(limit="float('inf')")),
        ("bound of the fp32 peak", length(bounds='{"A6000": "compute", "H100": "compute"}')),
        ("memory-bound on both", length(bounds='{"A6000": "memory", "H100": "memory"}')),
        ("swapped", length(bounds='{"A6000": "memory", "H100": "compute"}')),
        ("one GPU", length(bounds='{"A6000": "compute"}')),
        *((f"saturates by {letter}", length(why=letter)) for letter in "acd"),
    ],
}  # fmt: skip
