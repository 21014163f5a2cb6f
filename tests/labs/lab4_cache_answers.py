"""Answers to Part 3 of Lab 4, a decode step with a KV cache, right and wrong."""

from labs.lab4_formulas import formulas, wrong
from labs.mutants import mutants

CACHE = """
def kv_cache_bytes(B, L, D, layers, n):
    return {bytes}

cache_bytes_per_token = {token}
"""

ATTENTION_FLOPS = "8 * B * D**2 + 4 * B * L * D + 4 * B * H * L"
ATTENTION_BYTES = "n * (10 * B * D + 4 * D**2 + 2 * B * L * D + 4 * B * H * L)"
ATTENTION_TERMS = """
decode_attention_flops_terms = {"B": 20480000, "BL": 6500}
decode_attention_bytes_terms = {"1": 20480000, "B": 32000, "BL": 6600}
"""
MLP = ("decode_mlp", "B, D", "16 * B * D**2 + 5 * B * D", "n * (10 * B * D + 8 * D**2 + 5 * D)")
MODEL_FLOPS = "layers * (24 * B * D**2 + 4 * B * L * D + 4 * B * H * L + 5 * B * D)"
MODEL_BYTES = "layers * n * (20 * B * D + 12 * D**2 + 2 * B * L * D + 4 * B * H * L + 5 * D)"
MODEL_TERMS = """
decode_flops_terms = {"B": 2949504000, "BL": 312000}
decode_bytes_terms = {"1": 2949888000, "B": 3072000, "BL": 316800}
"""
# The functions of Part 1 for L_q rows of queries and L of keys.
GENERAL = """
def attend_flops(B, L_q, L, D, H):
    d = D // H
    return B * H * (matmul_flops(L_q, d, L) + 4 * L_q * L + matmul_flops(L_q, L, d))

def attend_bytes(B, L_q, L, D, H, n):
    d = D // H
    return B * H * (matmul_bytes(L_q, d, L, n) + 2 * n * L_q * L + matmul_bytes(L_q, L, d, n))
"""

CASES = """
def row(B, L):
    flops, moved = decode_model_flops(B, L, 1600, 25, 48), decode_model_bytes(B, L, 1600, 25, 48, 2)
    compute_s, memory_s = flops / 65e12, moved / 300e9
    return {"flops": flops, "bytes": moved, "compute_s": compute_s, "memory_s": memory_s,
            "time_s": max(compute_s, memory_s), "intensity": flops / moved,
            "bound": "compute" if flops / moved >= 65e12 / 300e9 else "memory"}

with_cache = {(B, L): row(B, L) for B in (1, 64) for L in (32, 1024)}
"""

SPEEDUP = """
def cache_speedup(B, L):
    sizes = (B, L, 1600, 25, 48)
    before = max(model_flops(*sizes) / 65e12, model_bytes(*sizes, 2) / 300e9)
    after = max(decode_model_flops(*sizes) / 65e12, decode_model_bytes(*sizes, 2) / 300e9)
    return before / after
"""

MOVES = """
why_intensity_falls = "b"
batch_limits = {32: 224.0407, 64: 127.1875}
first_compute_bound_batch = {32: 6562, 64: None}
"""


def cache(bytes="2 * n * B * L * D * layers", token="307200"):
    return CACHE.format(bytes=bytes, token=token)


def attention(flops=ATTENTION_FLOPS, moved=ATTENTION_BYTES, terms=ATTENTION_TERMS, more=""):
    return formulas("decode_attention", "B, L, D, H", flops, moved, more) + terms


def model(flops=MODEL_FLOPS, moved=MODEL_BYTES, terms=MODEL_TERMS):
    return formulas("decode_model", "B, L, D, H, layers", flops, moved) + terms


RIGHT = {
    "q3_1": [
        ("by heads", cache("sum(2 * n * B * L * 64 * D // 64 for layer in range(layers))", "2 * 2 * 48 * 25 * 64")),
        ("NumPy integers", cache("np.int64(2 * n * B * L * D * layers)", "np.int64(307200)")),
        ("counted", cache(token="kv_cache_bytes(1, 1, 1600, 48, 2)")),
    ],
    "q3_2": [
        ("expanded", attention()),
        ("general functions at one query", attention(
            "4 * output_flops(B, 1, D) + attend_flops(B, 1, L, D, H)",
            "4 * output_bytes(B, 1, D, n) + attend_bytes(B, 1, L, D, H, n)", more=GENERAL,
        )),
        ("from attention at L = 1", attention(
            "attention_flops(B, 1, D, H) - mha_flops(B, 1, D, H) + 4 * B * L * (D + H)",
            "projection_bytes(B, 1, D, n) + output_bytes(B, 1, D, n) + n * B * (2 * D + 2 * L * D + 4 * H * L)",
        )),
    ],
    "q3_3": [
        ("expanded", formulas(*MLP)),
        ("factored", formulas(*MLP[:2], "B * D * (16 * D + 5)", "n * D * (10 * B + 8 * D + 5)")),
    ],
    "q3_4": [
        ("expanded", model()),
        ("a loop over layers", model(
            "sum(decode_attention_flops(B, L, D, H) + decode_mlp_flops(B, D) for layer in range(layers))",
            "sum(decode_attention_bytes(B, L, D, H, n) + decode_mlp_bytes(B, D, n) for layer in range(layers))",
            """
decode_flops_terms = {"BL": 48 * decode_attention_flops_terms["BL"],
                      "B": 48 * (decode_attention_flops_terms["B"] + decode_mlp_flops(1, 1600))}
decode_bytes_terms = dict(zip(["1", "B", "BL"], np.array([61456000, 64000, 6600]) * 48))
""",
        )),
    ],
    "q3_5": [
        ("by intensity", CASES),
        ("by budget, from terms", """
with_cache = {}
for case in CASES:
    flops, moved = value_of(decode_flops_terms, *case), value_of(decode_bytes_terms, *case)
    with_cache[case] = budget(flops, moved, 65e12, 300e9) | {"flops": flops, "bytes": moved}
"""),
    ],
    "q3_5_speedup": [
        ("by sizes", SPEEDUP),
        ("by terms", """
def cache_speedup(B, L):
    slow = [value_of(model_flops_terms, B, L) / 65e12, value_of(model_bytes_terms, B, L) / 300e9]
    fast = [value_of(decode_flops_terms, B, L) / 65e12, value_of(decode_bytes_terms, B, L) / 300e9]
    return float(np.max(slow) / np.max(fast))
"""),
    ],
    "q3_6": [
        ("numbers", MOVES),
        ("by search", """
why_intensity_falls = "b"

def intensity(B, L):
    return decode_model_flops(B, L, 1600, 25, 48) / decode_model_bytes(B, L, 1600, 25, 48, 2)

batch_limits = {L: intensity(10**9, L) for L in (32, 64)}
first_compute_bound_batch = {}
for L in (32, 64):
    first_compute_bound_batch[L] = next((B for B in range(1, 50000) if intensity(B, L) >= 65e12 / 300e9), None)
"""),
        ("by algebra", """
why_intensity_falls = "b"
batch_limits, first_compute_bound_batch = {}, {}
for L in (32, 64):
    flops, moved = 2949504000 + 312000 * L, 3072000 + 316800 * L
    batch_limits[L] = flops / moved
    gain = flops / 65e12 - moved / 300e9
    first_compute_bound_batch[L] = int(np.ceil(2949888000 / 300e9 / gain)) if gain > 0 else None
"""),
    ],
}  # fmt: skip

WRONG = {
    "q3_1": [
        ("keys alone", cache("n * B * L * D * layers")),
        ("one layer", cache("2 * n * B * L * D")),
        ("always 48 layers", cache("2 * n * B * L * D * 48")),
        ("without the new token", cache("2 * n * B * (L - 1) * D * layers")),
        ("always fp32", cache("2 * 4 * B * L * D * layers")),
        ("a float", cache("2.0 * n * B * L * D * layers")),
        ("keys of a token", cache(token="153600")),
        ("a layer of a token", cache(token="6400")),
        ("fp32 of a token", cache(token="614400")),
        ("kB of a token", cache(token="307.2")),
    ],
    "q3_2": [
        ("scale lost", attention("8 * B * D**2 + 4 * B * L * D + 3 * B * H * L")),
        ("mask kept", attention("8 * B * D**2 + 4 * B * L * D + 5 * B * H * L")),
        ("scale of one head", attention("8 * B * D**2 + 4 * B * L * D + B * L + 3 * B * H * L")),
        ("no output projection", attention("6 * B * D**2 + 4 * B * L * D + 4 * B * H * L")),
        ("projections of the whole text", attention("6 * B * L * D**2 + 2 * B * D**2 + 4 * B * L * (D + H)")),
        ("the cache without the new token", attention("8 * B * D**2 + 4 * B * (L - 1) * (D + H)")),
        ("a step without a cache", attention("attention_flops(B, L, D, H)", "attention_bytes(B, L, D, H, n)")),
        ("scores move twice", attention(moved="n * (10 * B * D + 4 * D**2 + 2 * B * L * D + 2 * B * H * L)")),
        ("mask moves", attention(moved="n * (10 * B * D + 4 * D**2 + 2 * B * L * D + 6 * B * H * L)")),
        ("the cache is not read", attention(moved="n * (10 * B * D + 4 * D**2 + 4 * B * H * L)")),
        ("keys alone", attention(moved="n * (10 * B * D + 4 * D**2 + B * L * D + 4 * B * H * L)")),
        ("new keys not written", attention(moved="n * (8 * B * D + 4 * D**2 + 2 * B * L * D + 4 * B * H * L)")),
        ("weights once a sequence", attention(moved="n * (10 * B * D + 4 * B * D**2 + 2 * B * L * (D + 2 * H))")),
        ("scale lost in the terms", attention(terms=ATTENTION_TERMS.replace("6500", "6475"))),
        ("scores move twice in the terms", attention(terms=ATTENTION_TERMS.replace("6600", "6500"))),
        ("scores of one head in the terms", attention(terms=ATTENTION_TERMS.replace("6600", "6408"))),
        ("no terms", attention(terms="decode_attention_flops_terms = decode_attention_bytes_terms = {}\n")),
    ],
    "q3_3": wrong(*MLP, {
        "MACs": {"flops": "8 * B * D**2 + 5 * B * D"},
        "no biases": {"flops": "16 * B * D**2"},
        "one sequence": {"flops": "16 * D**2 + 5 * D"},
        "weights once a sequence": {"moved": "n * (10 * B * D + 8 * B * D**2 + 5 * D)"},
        "biases once a sequence": {"moved": "n * (10 * B * D + 8 * D**2 + 5 * B * D)"},
        "hidden moved once": {"moved": "n * (6 * B * D + 8 * D**2 + 5 * D)"},
        "the whole text": {"flops": "mlp_flops(B, 32, D)"},
    }),
    "q3_4": [
        ("scale lost", model(MODEL_FLOPS.replace("4 * B * H", "3 * B * H"))),
        ("scores move twice", model(moved=MODEL_BYTES.replace("4 * B * H", "2 * B * H"))),
        ("one layer", model(MODEL_FLOPS.replace("layers", "1"))),
        ("weights of one layer", model(moved=f"{MODEL_BYTES} - (layers - 1) * n * (12 * D**2 + 5 * D)")),
        ("prefill of one token", model("model_flops(B, 1, D, H, layers)", "model_bytes(B, 1, D, H, layers, n)")),
        ("floats made whole", model(f"int(1.0 * {MODEL_FLOPS})")),
        ("no MLP", model(moved="layers * decode_attention_bytes(B, L, D, H, n)")),
        ("scale lost in the terms", model(terms=MODEL_TERMS.replace("312000", "310800"))),
        ("scores move twice in the terms", model(terms=MODEL_TERMS.replace("316800", "312000"))),
        ("one layer in the terms", model(terms=MODEL_TERMS.replace("2949504000", "61448000"))),
        ("floats in the terms", model(terms=MODEL_TERMS.replace("312000", "312e3"))),
    ],
    "q3_5": mutants(
        CASES,
        ("compute-bound at 64", '"compute" if flops / moved >= 65e12 / 300e9', '"compute" if B == 64'),
        ("the ridge of one byte", "65e12 / 300e9 else", "1 / 2 else"),
        ("without the cache", "= decode_model_flops", "= model_flops", ", decode_model_bytes", ", model_bytes"),
        ("one layer", "25, 48)", "25, 1)"),
        ("a token less in the cache", "decode_model_flops(B, L,", "decode_model_flops(B, L - 1,"),
        ("microseconds", "flops / 65e12, moved / 300e9", "1e6 * flops / 65e12, 1e6 * moved / 300e9"),
        ("MACs", "flops / 65e12,", "flops / 2 / 65e12,"),
        ("times added up", "max(compute_s, memory_s)", "compute_s + memory_s"),
        ("intensity upside down", '"intensity": flops / moved', '"intensity": moved / flops'),
        ("one batch", "for B in (1, 64)", "for B in (1,)"),
        ("a list", "{(B, L): row(B, L) for B in (1, 64) for L in (32, 1024)}", "[row(1, 32), row(64, 1024)]"),
        ("no counts", '"flops": flops, "bytes": moved, ', ""),
        ("slips of the counts", '"bytes": moved', '"bytes": moved - 48 * 2 * 2 * B * 25 * L'),
    ),
    "q3_5_speedup": mutants(
        SPEEDUP,
        ("a cache without the new token", "after = max", "sizes = (B, max(L - 1, 1), 1600, 25, 48)\n    after = max"),
        ("ratio of the FLOPs", "before / after", "model_flops(*sizes) / decode_model_flops(*sizes)"),
        ("ratio of the bytes", "before / after", "model_bytes(*sizes, 2) / decode_model_bytes(*sizes, 2)"),
        ("upside down", "before / after", "after / before"),
        ("seconds saved", "before / after", "before - after"),
        ("out of the tables", "sizes = (B",
         "return without_cache[B, L]['time_s'] / with_cache[B, L]['time_s']\n    sizes = (B"),
        ("in per cent", "before / after", "100 * before / after"),
        ("the shorter times", "before = max", "before = min"),
        ("times added up", "before = max(", "before = sum((", ", 2) / 300e9)\n    after", ", 2) / 300e9))\n    after"),
        ("slips of the counts", "decode_model_bytes(*sizes, 2)",
         "(decode_model_bytes(*sizes, 2) - 4 * 48 * B * 25 * L)"),
        ("the four cases only", "sizes = (B, L, 1600, 25, 48)",
         "return {(1, 32): 1.037, (1, 1024): 6.563, (64, 32): 7.371, (64, 1024): 49.81}.get((B, L), 1.0)"),
    ),
    "q3_6": mutants(
        MOVES,
        ("falls by a", '"b"', '"a"'),
        ("falls by c", '"b"', '"c"'),
        ("falls by d", '"b"', '"d"'),
        ("no letter", '"b"', "None"),
        ("weights in the limit", "224.0407", "49.9057"),
        ("slips of the counts", "224.0407, 64: 127.1875", "226.5, 64: 128.4"),
        ("the same limit", "127.1875", "224.0407"),
        ("rounded limits", "224.0407, 64: 127.1875", "224, 64: 127"),
        ("no limits", "224.0407, 64: 127.1875", "None, 64: None"),
        ("ridge of an A100", "6562", "2110"),
        ("one too few", "6562", "6561"),
        ("one too many", "6562", "6563"),
        ("never", "6562", "None"),
        ("at both lengths", "64: None", "64: 6562"),
        ("infinity for never", "64: None", "64: float('inf')"),
    ),
}  # fmt: skip
ONLY_HIDDEN = {
    "q3_4": "floats made whole",
    "q3_1": "keys of a token|a layer of a token|fp32 of a token",
    "q3_5": "compute-bound at 64|the ridge of one byte|without the cache|one layer|a token less in the cache"
    "|microseconds|MACs|slips of the counts",
    "q3_5_speedup": "the four cases only",
    "q3_6": "falls by a|falls by c|falls by d|weights in the limit|slips of the counts|the same limit|rounded limits"
    "|ridge of an A100|one too few|one too many|never|at both lengths",
}
