"""Answers to Part 2 of Lab 5, peaks, latencies and warps, right and wrong."""

from labs.mutants import mutants

PEAKS = """
def tensor_gain(name):
    return SPECS[name].peak_tflop_s["float16"] / rl.roofline.peak(name, "fp32")

def ridge_16bit(name):
    return rl.roofline.ridge(name, "fp16")

more_than_ten = ["H100", "A100"]
gain_of_ten_years = 1000
"""

PEAKS_BY_HAND = """
def tensor_gain(name):
    spec = SPECS[name]
    return (spec.peak_tflop_s["float16"] * 1e12) / (spec.peak_tflop_s["float32"] * 1e12)

def ridge_16bit(name):
    return SPECS[name].peak_tflop_s["float16"] * 1e12 / (SPECS[name].bandwidth_tb_s * 1e12)

more_than_ten = tuple(name for name in ("A100", "H100", "T4", "A6000", "RTX 4090") if tensor_gain(name) > 10)
gain_of_ten_years = np.prod(list(lab5.SILICON_GAINS.values()))
"""

FLIGHT = """
shared_gain = 12.6087

def latency_ns(cycles, ghz):
    return cycles * 1.0 / ghz

def bytes_in_flight(bandwidth, cycles, ghz):
    return bandwidth * cycles / (ghz * 1e9)

def bursts_per_sm(bandwidth, cycles, ghz, sms, burst):
    each = bandwidth * cycles / (ghz * 1e9) / sms
    return int(-(-each // burst))
"""

FLIGHT_NUMPY = """
latencies = SPECS["A100 40GB"].latency_cycles
shared_gain = latencies["global"] / latencies["shared load"]

def latency_ns(cycles, ghz):
    return np.divide(cycles, ghz)

def bytes_in_flight(bandwidth, cycles, ghz):
    return round(bandwidth / 1e9 * latency_ns(cycles, ghz))

def bursts_per_sm(bandwidth, cycles, ghz, sms, burst):
    return int(np.ceil(bandwidth * latency_ns(cycles, ghz) / 1e9 / (sms * burst)))
"""

FLIGHT_SECONDS = """
shared_gain = latencies["global"] / latencies["shared load"]

def latency_ns(cycles, ghz):
    return cycles / (ghz * 1e9) * 1e9

def bytes_in_flight(bandwidth, cycles, ghz):
    return bandwidth * (latency_ns(cycles, ghz) * 1e-9)

def bursts_per_sm(bandwidth, cycles, ghz, sms, burst):
    return math.ceil(bytes_in_flight(bandwidth, cycles, ghz) / burst / sms)
"""

WARP = """
def warp_cost(mask, a, b):
    taken = sum(mask)
    if taken == 0:
        return b
    return a if taken == len(mask) else a + b

def diverged_share(p):
    same = p**32 + (1 - p)**32
    return 1 - same
"""

WARP_SET = """
def warp_cost(mask, a, b):
    return sum({True: a, False: b}[branch] for branch in set(mask))

def diverged_share(p):
    from math import comb
    return sum(comb(32, k) * p**k * (1 - p) ** (32 - k) for k in range(1, 32))
"""

RIGHT = {
    "q2_1": [("rl.roofline", PEAKS), ("by hand", PEAKS_BY_HAND)],
    "q2_2": [("in seconds", FLIGHT), ("NumPy", FLIGHT_NUMPY), ("seconds first", FLIGHT_SECONDS)],
    "q2_3": [("counted lanes", WARP), ("a set, a binomial sum", WARP_SET)],
}

WRONG = {
    "q2_1": mutants(
        PEAKS,
        ("sparse peaks", 'SPECS[name].peak_tflop_s["float16"]', '2 * SPECS[name].peak_tflop_s["float16"]'),
        ("tf32 as vector", 'rl.roofline.peak(name, "fp32")', 'SPECS[name].peak_tflop_s.get("tfloat32", 1)'),
        ("the sparse ridge", 'rl.roofline.ridge(name, "fp16")', '2 * rl.roofline.ridge(name, "fp16")'),
        ("the ridge of fp32", 'ridge(name, "fp16")', 'ridge(name, "fp32")'),
        ("GFLOP over TB", 'rl.roofline.ridge(name, "fp16")', '1000 * rl.roofline.ridge(name, "fp16")'),
        ("the inverse", "return rl.roofline.ridge", "return 1 / rl.roofline.ridge"),
        ("the T4 as well", '["H100", "A100"]', '["H100", "A100", "T4"]'),
        ("the A100 alone", '["H100", "A100"]', '["A100"]'),
        ("the sum of gains", "= 1000", "= 16 + 12.5 + 2.5 + 2"),
        ("without sparsity", "= 1000", "= 500"),
    ),
    "q2_2": mutants(
        FLIGHT,
        ("cycles as nanoseconds", "cycles * 1.0 / ghz", "cycles * 1.0"),
        ("bytes of as many nanoseconds", "return bandwidth * cycles / (ghz * 1e9)", "return bandwidth * cycles / 1e9"),
        ("times GHz", "cycles * 1.0 / ghz", "cycles * ghz"),
        ("bytes times GHz", "return bandwidth * cycles / (ghz * 1e9)", "return bandwidth * cycles * ghz / 1e9"),
        ("times SMs", "/ sms", "* sms"),
        ("one SM", " / sms", ""),
        ("bursts rounded down", "-(-each // burst)", "each // burst"),
        ("the share of an SM rounded down", "each // burst", "(each // 1) // burst"),
        ("one too many where it divides", "int(-(-each // burst))", "int(each // burst) + 1"),
        ("half a burst more, rounded", "int(-(-each // burst))", "round(each / burst + 0.5)"),
        ("bursts with a fraction", "int(-(-each // burst))", "each / burst"),
        ("L2 over shared", "12.6087", "200 / 23"),
        ("global over a store", "12.6087", "290 / 19"),
        ("the inverse", "12.6087", "23 / 290"),
    ),
    "q2_3": mutants(
        WARP,
        ("the larger", "a + b", "max(a, b)"),
        ("the mean over lanes", "a if taken == len(mask) else a + b",
         "(taken * a + (len(mask) - taken) * b) / len(mask)"),
        ("both, always", "    if taken == 0:\n        return b\n    return a if taken == len(mask) else a + b",
         "    return a + b"),
        ("every lane pays", "a if taken == len(mask) else a + b", "taken * a + (len(mask) - taken) * b"),
        ("all in the first left out", "p**32 + (1 - p)**32", "(1 - p)**32"),
        ("all in the second left out", "p**32 + (1 - p)**32", "p**32"),
        ("the share that does not", "return 1 - same", "return same"),
        ("one lane", "p**32 + (1 - p)**32", "1 - p"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q2_1": "the T4 as well|the A100 alone|the sum of gains|without sparsity",
    "q2_2": "L2 over shared|global over a store",
}
