"""Answers to 1.4 to 1.6 of Lab 4, attention with heads, output projection and MLP, right and wrong."""

from labs.lab4_formulas import formulas, wrong

OUTPUT = ("output", "B, L, D", "2 * B * L * D**2", "n * (2 * B * L * D + D**2)")
MHA_FLOPS = "def mha_flops(B, L, D, H):\n    return {}\n"
MHA_BYTES = "def mha_bytes(B, L, D, H, n):\n    return {}\n"
MLP_FLOPS = "def mlp_flops(B, L, D):\n    return {}\n"
MLP_BYTES = "def mlp_bytes(B, L, D, n):\n    return {}\n"

GROWTH = "flops_exponent, bytes_exponent = {}\n"
LENGTH = "def first_length_of_scores(D, H):\n    return {}\n"

BY_SEARCH = """
def first_length_of_scores(D, H):
    low, high = 0, 1
    while 6 * H * high <= 4 * D:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 6 * H * middle <= 4 * D else (low, middle)
    return high
"""

ON_A100 = """
mha_intensity = {intensity}
a100_ridge = {ridge}
mha_bound = {bound}
smallest_compute_bound_head = {head}

def mha_intensity_limit(D, H, n):
    return {limit}
"""

SIZES = "16, 16384, 4096"
BY_TIMES = f'"memory" if mha_bytes({SIZES}, 16, 2) / A100.byte_s > mha_flops({SIZES}, 16) / A100.flop_s else "compute"'


def each(template, cases):
    return [(label, template.format(code)) for label, code in cases.items()]


def on_a100(**changes):
    given = {"intensity": "84.866", "ridge": "312e12 / 2.039e12", "bound": '"memory"', "head": "458"}
    return ON_A100.format(**{**given, "limit": "(4 * D / H + 5) / (6 * n)", **changes})


def mlp_on_a100(intensity="3236.6", bound='"compute"'):
    return f"mlp_intensity = {intensity}\nmlp_bound = {bound}\n"


RIGHT = {
    "q1_4_1": each(MHA_FLOPS, {
        "expanded": "4 * B * L**2 * D + 5 * H * B * L**2",
        "a loop over heads": "sum(sdpa_flops(B, L, D // H) for head in range(H))",
        "heads as sequences": "sdpa_flops(B * H, L, D // H)",
    }),
    "q1_4_2": each(MHA_BYTES, {
        "expanded": "n * (4 * B * L * D + 6 * H * B * L**2)",
        "factored": "2 * n * B * L * (2 * D + 3 * H * L)",
        "NumPy integers": "np.int64(n * (4 * B * L * D + 6 * H * B * L**2))",
        "a loop over heads": "sum(sdpa_bytes(B, L, D // H, n) for head in range(H))",
    }),
    "q1_4_3": each(GROWTH, {
        "slopes measured at large L": "[np.log2(f(1, 2**30, 4096, 16, *n) / f(1, 2**29, 4096, 16, *n))"
        " for f, n in ((mha_flops, ()), (mha_bytes, (2,)))]",
        "floats": "2.0, 2.0",
    }),
    "q1_4_4": [
        ("by search", BY_SEARCH),
        ("a fraction", "import math\nfrom fractions import Fraction\n"
         "def first_length_of_scores(D, H):\n    return math.floor(Fraction(2 * D, 3 * H)) + 1\n"),
        *each(LENGTH, {"head size first": "2 * (D // H) // 3 + 1", "NumPy integers": "np.int64(2 * D // (3 * H)) + 1",
                       "a float, rounded down": "int(2 * D / (3 * H)) + 1"}),
        ("a loop from 1", """
def first_length_of_scores(D, H):
    L = 1
    while 6 * H * L**2 <= 4 * L * D:
        L += 1
    return L
"""),
    ],
    "q1_4_5": [
        ("by times", on_a100(
            intensity=f"mha_flops({SIZES}, 16) / mha_bytes({SIZES}, 16, 2)", bound=BY_TIMES,
            head="next(d for d in range(1, 1000) if (4 * d + 5) / 12 >= 312e12 / 2.039e12)",
        )),
        ("at very long texts", on_a100(limit="mha_flops(1, 10**9, D, H) / mha_bytes(1, 10**9, D, H, n)")),
    ],
    "q1_5": [
        ("expanded", formulas(*OUTPUT)),
        ("a third of the projections", formulas(
            *OUTPUT[:2], "projection_flops(B, L, D) // 3", "projection_bytes(B, L, D, n) // 3"
        )),
    ],
    "q1_6_1": each(MLP_FLOPS, {
        "expanded": "16 * B * L * D**2 + 5 * B * L * D",
        "by token": "B * L * (2 * D * 4 * D + 4 * D + 2 * 4 * D * D + D)",
        "NumPy integers": "np.int64(16 * D + 5) * B * L * D",
    }),
    "q1_6_2": each(MLP_BYTES, {
        "expanded": "n * (10 * B * L * D + 8 * D**2 + 5 * D)",
        "by operation": "n * sum(B * L * (i + o) + i * o + o for i, o in ((D, 4 * D), (4 * D, D)))",
    }),
    "q1_6_3": [
        ("rounded", mlp_on_a100()),
        ("by times", mlp_on_a100(
            f"mlp_flops({SIZES}) / mlp_bytes({SIZES}, 2)",
            f'"memory" if mlp_bytes({SIZES}, 2) / 2.039e12 > mlp_flops({SIZES}) / 312e12 else "compute"',
        )),
    ],
}  # fmt: skip

WRONG = {
    "q1_4_1": each(MHA_FLOPS, {
        "scores of one head": "4 * B * L**2 * D + 5 * B * L**2",
        "every head at full size": "H * sdpa_flops(B, L, D)",
        "one of the heads": "sdpa_flops(B, L, D // H)",
        "floats": "H * (4 * B * L**2 * (D / H) + 5 * B * L**2)",
        "no mask": "4 * B * L**2 * D + 4 * H * B * L**2",
    }),
    "q1_4_2": each(MHA_BYTES, {
        "scores of one head": "n * (4 * B * L * D + 6 * B * L**2)",
        "every head at full size": "H * sdpa_bytes(B, L, D, n)",
        "one of the heads": "sdpa_bytes(B, L, D // H, n)",
        "scores stay on the chip": "n * 4 * B * L * D",
        "always fp16": "2 * (4 * B * L * D + 6 * H * B * L**2)",
    }),
    "q1_4_3": each(GROWTH, {
        "linear bytes": "2, 1",
        "cubic": "3, 2",
        "slope at a small L": "2, 1.1",
        "a factor, not a power": "4, 4",
        "no exponents": "None, None",
    }),
    "q1_4_4": each(LENGTH, {
        "heads forgotten": "2 * D // 3 + 1",
        "rounded down": "2 * D // (3 * H)",
        "rounded up": "-(-2 * D // (3 * H))",
        "two thirds to four digits": "int(0.6667 * D / H) + 1",
        "two thirds rounded": "round(2 * D / (3 * H)) + 1",
        "a third rounded first": "2 * (D // (3 * H)) + 1",
        "as large is enough": "-(-2 * D // (3 * H)) or 1",
        "a float": "2 * D / (3 * H)",
        "n in one of them": "4 * D // (3 * H) + 1",
        "as long": "next(L for L in range(1, 10**6) if 6 * H * L >= 4 * D)",
        "upside down": "3 * H // (2 * D) + 1",
    }),
    "q1_4_5": [
        ("one byte a number", on_a100(intensity="169.73", bound='"compute"')),
        ("one head", on_a100(intensity="1170.6", bound='"compute"')),
        ("upside down", on_a100(intensity="0.01178")),
        ("the limit", on_a100(intensity="85.75")),
        ("rounded to one decimal", on_a100(intensity="84.9")),
        ("the ridge as a whole number", on_a100(ridge="153")),
        ("the bandwidth of PCIe", on_a100(ridge="161.24")),
        ("the sparse peak", on_a100(ridge="306.03")),
        ("compute-bound", on_a100(bound='"compute"')),
        ("bound by both", on_a100(bound='"both"')),
        ("limit of fp16 only", on_a100(limit="(4 * D / H + 5) / 12")),
        ("limit of one head", on_a100(limit="(4 * D + 5) / (6 * n)")),
        ("limit without mask", on_a100(limit="(4 * D / H + 4) / (4 * n)")),
        ("limit of the products", on_a100(limit="4 * D / H / (6 * n)")),
        ("head rounded down", on_a100(head="457")),
        ("head without the five", on_a100(head="460")),
        ("head as a float", on_a100(head="457.8")),
        ("all of D", on_a100(head="4096")),
    ],
    "q1_5": wrong(*OUTPUT, {
        "three of them": {"flops": "6 * B * L * D**2"},
        "MACs": {"flops": "B * L * D**2"},
        "with a bias": {"flops": "2 * B * L * D**2 + B * L * D"},
        "X is not read": {"moved": "n * (B * L * D + D**2)"},
        "weights once a sequence": {"moved": "n * (2 * B * L * D + B * D**2)"},
    }),
    "q1_6_1": each(MLP_FLOPS, {
        "no biases": "16 * B * L * D**2",
        "one bias": "16 * B * L * D**2 + B * L * D",
        "GeLU counted": "16 * B * L * D**2 + 9 * B * L * D",
        "biases once": "16 * B * L * D**2 + 5 * D",
        "one product": "8 * B * L * D**2 + 4 * B * L * D",
        "gated": "24 * B * L * D**2 + 9 * B * L * D",
    }),
    "q1_6_2": each(MLP_BYTES, {
        "hidden moved once": "n * (6 * B * L * D + 8 * D**2 + 5 * D)",
        "hidden not moved": "n * (2 * B * L * D + 8 * D**2 + 5 * D)",
        "no biases": "n * (10 * B * L * D + 8 * D**2)",
        "biases once a token": "n * (10 * B * L * D + 8 * D**2 + 5 * B * L * D)",
        "biases are passes": "n * (20 * B * L * D + 8 * D**2 + 5 * D)",
        "weights once a sequence": "n * (10 * B * L * D + 8 * B * D**2 + 5 * D)",
        "gated": "n * (15 * B * L * D + 12 * D**2 + 9 * D)",
    }),
    "q1_6_3": [
        ("one byte a number", mlp_on_a100("6473.2")),
        ("weights left out of the bytes", mlp_on_a100("3277.1")),
        ("gated", mlp_on_a100("3245.0")),
        ("a whole number", mlp_on_a100("3237")),
        ("memory-bound", mlp_on_a100(bound='"memory"')),
        ("no number", mlp_on_a100("None")),
    ],
}  # fmt: skip
ONLY_HIDDEN = {
    "q1_4_3": "linear bytes|cubic|slope at a small L|a factor, not a power",
    "q1_4_5": "one byte a number|one head|the limit|the bandwidth of PCIe|the sparse peak|compute-bound"
    "|rounded to one decimal|the ridge as a whole number|head rounded down|head without the five|all of D",
    "q1_6_3": "one byte a number|weights left out of the bytes|gated|a whole number|memory-bound",
}
