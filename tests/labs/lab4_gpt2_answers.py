"""Answers to Part 2 of Lab 4, GPT-2 XL added up and on a roofline, right and wrong."""

from labs.lab4_formulas import formulas
from labs.mutants import mutants

ATTENTION = (
    "8 * B * L * D**2 + 4 * B * L**2 * D + 5 * H * B * L**2",
    "n * (12 * B * L * D + 4 * D**2 + 6 * H * B * L**2)",
)
ATTENTION_TERMS = """
attention_flops_terms = {"BL": 20480000, "BL^2": 6525}
attention_bytes_terms = {"1": 20480000, "BL": 38400, "BL^2": 300}
"""
MLP_TERMS = """
mlp_flops_terms = {"BL": 40968000}
mlp_bytes_terms = {"1": 40976000, "BL": 32000}
"""
MODEL_TERMS = """
model_flops_terms = {"BL": 2949504000, "BL^2": 313200}
model_bytes_terms = {"1": 2949888000, "BL": 3379200, "BL^2": 14400}
"""
# B and L of each power, from three calls: differences in L at B = 1.
BY_CALLS = """
def quadratic(f):
    low, middle, high = f(1), f(2), f(3)
    second = (high - 2 * middle + low) // 2
    first = middle - low - 3 * second
    return low - first - second, first, second

flops = quadratic(lambda L: {name}_flops(1, L, {sizes}))
moved = quadratic(lambda L: {name}_bytes(1, L, {sizes}, 2))
{name}_flops_terms = {{"BL": flops[1], "BL^2": np.int64(flops[2])}}
{name}_bytes_terms = dict(zip(["1", "BL", "BL^2"], moved))
"""

BUDGET = """
def budget(flops, moved, flop_s, byte_s):
    times = {"compute_s": flops / flop_s, "memory_s": moved / byte_s}
    intensity = flops / moved
    bound = "compute" if intensity >= flop_s / byte_s else "memory"
    return {**times, "time_s": max(times.values()), "intensity": intensity, "bound": bound}
"""

CASES = """
def row(B, L):
    flops, moved = model_flops(B, L, 1600, 25, 48), model_bytes(B, L, 1600, 25, 48, 2)
    compute_s, memory_s = flops / 65e12, moved / 300e9
    bound = "compute" if compute_s > memory_s else "memory"
    time_s = max(compute_s, memory_s)
    return {"flops": flops, "bytes": moved, "compute_s": compute_s, "memory_s": memory_s, "time_s": time_s,
            "intensity": flops / moved, "bound": bound}

without_cache = {(B, L): row(B, L) for B in (1, 64) for L in (32, 1024)}
"""

LENGTHS = """
compute_bound_lengths = {1: None, 64: (5, 785)}
best_length = 481
long_text_intensity = 21.75
"""


def attention(flops=ATTENTION[0], moved=ATTENTION[1], terms=ATTENTION_TERMS):
    return formulas("attention", "B, L, D, H", flops, moved) + terms


def model(flops=None, moved=None, terms=MODEL_TERMS):
    flops = flops or "layers * (24 * B * L * D**2 + 4 * B * L**2 * D + 5 * H * B * L**2 + 5 * B * L * D)"
    moved = moved or "layers * n * (22 * B * L * D + 12 * D**2 + 6 * H * B * L**2 + 5 * D)"
    return formulas("model", "B, L, D, H, layers", flops, moved) + terms


RIGHT = {
    "q2_1": [
        ("expanded", attention()),
        ("terms by three calls", attention(
            "4 * output_flops(B, L, D) + mha_flops(B, L, D, H)",
            "4 * output_bytes(B, L, D, n) + mha_bytes(B, L, D, H, n)",
            BY_CALLS.format(name="attention", sizes="1600, 25"),
        )),
    ],
    "q2_2": [
        ("numbers", MLP_TERMS),
        ("by calls", """
mlp_flops_terms = {"BL": mlp_flops(1, 1, 1600)}
mlp_bytes_terms = {"1": 2 * mlp_bytes(1, 1, 1600, 2) - mlp_bytes(1, 2, 1600, 2),
                   "BL": mlp_bytes(1, 2, 1600, 2) - mlp_bytes(1, 1, 1600, 2)}
"""),
    ],
    "q2_3": [
        ("expanded", model()),
        ("a loop over layers", model(
            "sum(attention_flops(B, L, D, H) + mlp_flops(B, L, D) for layer in range(layers))",
            "sum(attention_bytes(B, L, D, H, n) + mlp_bytes(B, L, D, n) for layer in range(layers))",
            BY_CALLS.format(name="model", sizes="1600, 25, 48"),
        )),
    ],
    "q2_4": [
        ("by intensity", BUDGET),
        ("by the larger, with NumPy's numbers", """
def budget(flops, moved, flop_s, byte_s):
    times = {"compute": np.float64(flops) / flop_s, "memory": np.float64(moved) / byte_s}
    bound = max(times, key=times.get)
    return {"bound": bound, "time_s": times[bound], "intensity": np.float64(flops) / moved,
            **{f"{name}_s": time for name, time in times.items()}}
"""),
    ],
    "q2_4_cases": [
        ("by times", CASES),
        ("NumPy's numbers", CASES + """
without_cache = {
    case: {key: np.int64(value) if key in ("flops", "bytes") else value for key, value in found.items()}
    for case, found in without_cache.items()
}
"""),
    ],
    "q2_4_lengths": [
        ("numbers", LENGTHS),
        ("NumPy's pair", LENGTHS.replace("(5, 785)", "np.array([5, 785])")),
        ("by times", """
def intensity(B, L):
    return model_flops(B, L, 1600, 25, 48) / model_bytes(B, L, 1600, 25, 48, 2)

compute_bound_lengths = {}
for B in (1, 64):
    found = [L for L in range(1, 3000)
             if model_flops(B, L, 1600, 25, 48) / 65e12 >= model_bytes(B, L, 1600, 25, 48, 2) / 300e9]
    compute_bound_lengths[B] = [found[0], found[-1]] if found else None
best_length = int(np.argmax([intensity(1, L) for L in range(1, 3000)])) + 1
long_text_intensity = intensity(1, 10**9)
"""),
    ],
}  # fmt: skip

WRONG = {
    "q2_1": [
        ("no output projection", attention(flops=ATTENTION[0].replace("8 *", "6 *", 1))),
        ("no projections", attention(flops=ATTENTION[0].replace("8 *", "2 *", 1))),
        ("no output projection, bytes", attention(moved="projection_bytes(B, L, D, n) + mha_bytes(B, L, D, H, n)")),
        ("one head", attention(moved=ATTENTION[1].replace("6 * H", "6"))),
        ("one head in the terms", attention(terms=ATTENTION_TERMS.replace("6525", "6405"))),
        ("fp32 in the terms", attention(terms=ATTENTION_TERMS.replace("38400", "76800"))),
        ("elements in the terms", attention(terms=ATTENTION_TERMS.replace("300}", "150}"))),
        ("no output projection in the terms", attention(terms=ATTENTION_TERMS.replace("BL\": 2048", "BL\": 1536"))),
        ("no weights in the terms", attention(terms=ATTENTION_TERMS.replace('"1": 20480000, ', ""))),
        ("floats in the terms", attention(terms=ATTENTION_TERMS.replace("6525", "6525.0"))),
        ("no terms", attention(terms="attention_flops_terms = attention_bytes_terms = None\n")),
    ],
    "q2_2": mutants(
        MLP_TERMS,
        ("as wide as the model", "40968000", "10243200"),
        ("gated", "40968000", "61454400"),
        ("no biases", "40968000", "40960000"),
        ("elements", "40976000", "20488000"),
        ("hidden moved once", "32000}", "19200}"),
        ("a float", "32000}", "32000.0}"),
        ("keys mixed up", '"1": 40976000, "BL"', '"BL": 40976000, "1"'),
    ),
    "q2_3": [
        ("one layer", model(flops="attention_flops(B, L, D, H) + mlp_flops(B, L, D)")),
        ("always 48 layers", model(flops="48 * (attention_flops(B, L, D, H) + mlp_flops(B, L, D))")),
        ("weights of one layer", model(
            moved="layers * n * (22 * B * L * D + 6 * H * B * L**2) + n * (12 * D**2 + 5 * D)"
        )),
        ("no MLP", model(moved="layers * attention_bytes(B, L, D, H, n)")),
        ("embedding added", model(flops=f"layers * ({ATTENTION[0]} + mlp_flops(B, L, D)) + 2 * B * L * D * 50257")),
        ("one layer in the terms", model(terms=MODEL_TERMS.replace("2949504000", "61448000"))),
        ("one layer's weights in the terms", model(terms=MODEL_TERMS.replace("2949888000", "61456000"))),
        ("one head in the terms", model(terms=MODEL_TERMS.replace("313200", "307440"))),
        ("fp32 in the terms", model(terms=MODEL_TERMS.replace("14400", "28800"))),
    ],
    "q2_4": mutants(
        BUDGET,
        ("times added up", "max(times.values())", "sum(times.values())"),
        ("the shorter time", "max(times.values())", "min(times.values())"),
        ("the T4's numbers", "flops / flop_s,", "flops / 65e12,", "moved / byte_s", "moved / 300e9"),
        ("whole seconds", "flops / flop_s,", "flops // flop_s,", "moved / byte_s", "moved // byte_s"),
        ("a tuple", "return {**times,", "return tuple(times), {"),
        ("milliseconds", "flops / flop_s,", "1e3 * flops / flop_s,"),
        ("swapped", '"compute_s": flops / flop_s, "memory_s": moved / byte_s',
         '"memory_s": flops / flop_s, "compute_s": moved / byte_s'),
        ("intensity upside down", "intensity = flops / moved", "intensity = moved / flops"),
        ("always memory", "intensity >= flop_s / byte_s", "False"),
        ("memory at the ridge", "intensity >= flop_s", "intensity > flop_s"),
        ("the T4 only", "flop_s / byte_s else", "65e12 / 300e9 else"),
        ("a tuple", "return {**times", "return (), {**times"),
    ),
    "q2_4_cases": mutants(
        CASES,
        ("one byte a number", "48, 2)", "48, 1)"),
        ("GB for GiB", "moved / 300e9", "moved / (300 * 2**30)"),
        ("L first", "{(B, L): row", "{(L, B): row"),
        ("texts for keys", "{(B, L): row", "{f'({B}, {L})': row"),
        ("a list", "{(B, L): row(B, L) for B in (1, 64) for L in (32, 1024)}", "[row(1, 32), row(64, 1024)]"),
        ("no counts", '"flops": flops, "bytes": moved, ', ""),
        ("the ridge of an A100", '"compute" if compute_s > memory_s', '"compute" if flops / moved > 153.016'),
        ("the peak of fp32", "65e12", "8.1e12"),
        ("MACs", "flops, moved = ", "flops, moved = (lambda f, m: (f // 2, m))(", "48, 2)", "48, 2))"),
        ("one layer", "25, 48)", "25, 1)"),
        ("320 GB/s", "300e9", "320e9"),
        ("times added up", "max(compute_s, memory_s)", "compute_s + memory_s"),
        ("milliseconds", "flops / 65e12, moved / 300e9", "1e3 * flops / 65e12, 1e3 * moved / 300e9"),
        ("rounded intensity", '"intensity": flops / moved', '"intensity": round(flops / moved)'),
        ("three cases", "(B, L): row(B, L) for B in (1, 64)", "(B, L): row(B, L) for B in (1,)"),
        ("keys as text", "{(B, L): row", "{f'{B}, {L}': row"),
        ("counts as floats", '"flops": flops', '"flops": float(flops)'),
    ),
    "q2_4_lengths": mutants(
        LENGTHS,
        ("B = 1 is compute-bound", "1: None", "1: (481, 481)"),
        ("the ridge of an A100", "1: None, 64: (5, 785)", "1: (236, 1062), 64: (4, 1296)"),
        ("one too few", "(5, 785)", "(5, 784)"),
        ("one too many", "(5, 785)", "(4, 785)"),
        ("swapped", "(5, 785)", "(785, 5)"),
        ("floats", "(5, 785)", "(5.0, 785.0)"),
        ("no pair for never", "1: None", "1: ()"),
        ("from 1 on", "(5, 785)", "(1, 785)"),
        ("never", "(5, 785)", "None"),
        ("the number of lengths", "(5, 785)", "781"),
        ("the highest intensity", "481", "188.59"),
        ("best for 64", "481", "57"),
        ("limit of one head", "21.75", "533.75"),
        ("limit of elements", "21.75", "43.5"),
        ("limit of the products", "21.75", "21.33"),
        ("limit rounded", "21.75", "21.8"),
        ("limit missing", "21.75", "None"),
    ),
}  # fmt: skip
ONLY_HIDDEN = {
    "q2_4_cases": "one byte a number|the ridge of an A100|the peak of fp32|MACs|one layer|320 GB/s|milliseconds"
    "|GB for GiB",
    "q2_4": "whole seconds",
    "q2_4_lengths": "B = 1 is compute-bound|the ridge of an A100|one too few|one too many|swapped|from 1 on"
    "|never|best for 64|limit of one head|limit of elements|limit of the products|limit rounded",
}
