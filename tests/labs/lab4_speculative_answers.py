"""Answers to questions 4.1, 4.2 and b4.3 of Lab 4, decode times and speculative decoding, right and wrong."""

from labs.mutants import mutants

TIMES = """
def decode_times(L):
    D, H, layers, width = 1600, 25, 48, 2
    weights = layers * width * (12 * D * D + 5 * D)
    cache = layers * width * 2 * D * L
    scores = 4 * H * L
    other = layers * width * (20 * D + scores)
    flops = layers * (24 * D * D + 4 * D * L + 4 * H * L + 5 * D)
    moved = {"weights": weights, "cache": cache, "other": other}
    times = {name: np.float64(bytes) / 300e9 * 1000 for name, bytes in moved.items()}
    times["compute"] = flops / 65e12 * 1000
    return times
"""

BY_EARLIER_FUNCTIONS = """
def decode_times(L):
    D, H, layers, n = 1600, 25, 48, 2
    weights = layers * n * (4 * D**2 + 8 * D**2 + 5 * D)
    cache = kv_cache_bytes(1, L, D, layers, n)
    other = decode_model_bytes(1, L, D, H, layers, n) - weights - cache
    seconds = {
        "other": other / T4.byte_s,
        "cache": cache / T4.byte_s,
        "weights": weights / T4.byte_s,
        "compute": decode_model_flops(1, L, D, H, layers) / T4.flop_s,
    }
    return {name: 1e3 * time for name, time in seconds.items()}
"""

BY_LAYERS = """
def decode_times(L):
    weights = cache = other = flops = 0
    for _ in range(48):
        for outputs, inputs in [(1600, 1600)] * 4 + [(6400, 1600), (1600, 6400)]:
            weights += 2 * outputs * inputs
            other += 2 * (inputs + outputs)
            flops += 2 * outputs * inputs
        weights += 2 * (6400 + 1600)
        flops += 6400 + 1600
        for _ in range(25):
            cache += 2 * 2 * L * 64
            other += 2 * (64 + L) + 2 * 2 * L + 2 * (L + 64)
            flops += 2 * L * 64 + L + 3 * L + 2 * L * 64
    return {"weights": weights / 3e8, "cache": cache / 3e8, "other": other / 3e8, "compute": flops / 65e9}
"""


def values(largest="weights", equal=9602.5, helps="b"):
    return f"largest = {largest!r}\ncache_equals_weights = {equal}\nwhat_helps = {helps!r}\n"


SPECULATION = """
tokens_to_compute_bound = 217

def tokens_per_pass(gamma, alpha):
    return sum(alpha**accepted for accepted in range(gamma + 1))

def speculative_speedup(gamma, alpha, c):
    return tokens_per_pass(gamma, alpha) / (gamma * c + 1)

def best_gamma(alpha, c):
    speedups = [speculative_speedup(gamma, alpha, c) for gamma in range(1, 33)]
    return int(np.argmax(speedups)) + 1
"""

BY_OUTCOME = """
tokens_to_compute_bound = int(np.ceil(T4.flop_s / T4.byte_s))

def tokens_per_pass(gamma, alpha):
    rejected_after = [(accepted + 1) * alpha**accepted * (1 - alpha) for accepted in range(gamma)]
    return sum(rejected_after) + (gamma + 1) * alpha**gamma

def speculative_speedup(gamma, alpha, c):
    plain = tokens_per_pass(gamma, alpha)
    return plain / (1 + gamma * c)

def best_gamma(alpha, c):
    best = 1
    for gamma in range(2, 33):
        if speculative_speedup(gamma, alpha, c) > speculative_speedup(best, alpha, c):
            best = gamma
    return best
"""

STEP = """
def expected_acceptance(p, q):
    return sum(min(one, other) for one, other in zip(p, q, strict=True))

def draw(weights, uniform):
    total = 0.0
    for token, weight in enumerate(weights):
        total += weight
        if uniform < total:
            return token
    return len(weights) - 1

def speculative_step(p, q, drafts, uniforms):
    tokens = []
    for i, token in enumerate(drafts):
        if uniforms[i] < p[i][token] / q[i][token]:
            tokens.append(token)
            continue
        rest = np.maximum(p[i] - q[i], 0)
        rest = rest / rest.sum()
        tokens.append(draw(rest, uniforms[-1]))
        return tokens
    tokens.append(draw(p[-1], uniforms[-1]))
    return tokens
"""

NEXT_NUMBER = """
def expected_acceptance(p, q):
    return float(np.sum(q * np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))))

def speculative_step(p, q, drafts, uniforms):
    numbers = iter(uniforms)
    for place, token in enumerate(drafts):
        if 1 - next(numbers) > 1 - min(1, p[place, token] / q[place, token]):
            continue
        rest = (p[place] - q[place]).clip(0)
        return drafts[:place] + [int((np.cumsum(rest / rest.sum()) <= next(numbers)).sum())]
    return drafts + [int((np.cumsum(p[len(drafts)]) <= next(numbers)).sum())]
"""

RIGHT = {
    "q4_1": [
        ("added up", TIMES),
        ("by earlier functions", BY_EARLIER_FUNCTIONS),
        ("layer by layer and head by head", BY_LAYERS),
    ],
    "q4_1_values": [("by hand", values()), ("the last whole token", values(equal=9602))],
    "q4_2": [("sum of powers", SPECULATION), ("outcome by outcome", BY_OUTCOME)],
    "b4_3": [("loops", STEP), ("the next number draws", NEXT_NUMBER)],
}

WRONG = {
    "q4_1": mutants(
        TIMES,
        ("scores and softmax and values move two each", "20 * D + scores", "14 * D + scores"),
        ("no biases", "12 * D * D + 5 * D", "12 * D * D"),
        ("a mask", "4 * H * L + 5 * D", "5 * H * L + 5 * D"),
        ("fp32", "48, 2", "48, 4"),
        ("one layer", "48, 2", "1, 2"),
        ("GiB", "300e9", "(300 * 2**30)"),
        ("seconds", "300e9 * 1000", "300e9"),
        ("the cache of a layer", "cache = layers * width", "cache = width"),
        ("keys alone", "width * 2 * D * L", "width * D * L"),
        ("one head", "scores = 4 * H * L", "scores = 4 * L"),
        ("MACs", "24 * D * D", "12 * D * D"),
        ("the peak of an A100", "65e12", "312e12"),
        ("the cache counted twice", "(20 * D + scores)", "(20 * D + scores) + cache"),
        ("other bytes of the general functions", "(20 * D + scores)", "(20 * D + 6 * H * L)"),
        ("compute forgotten", 'times["compute"] = flops', 'times["compute"] = 0 * flops'),
    ),
    "q4_1_values": [
        ("the cache is the largest", values(largest="cache")),
        ("compute is the largest", values(largest="compute")),
        ("the published length", values(equal=307067)),
        ("the published length, corrected", values(equal=307056)),
        ("keys alone", values(equal=19205)),
        ("faster arithmetic", values(helps="a")),
        ("fused kernels", values(helps="c")),
        ("half the length", values(helps="d")),
    ],
    "q4_2": mutants(
        SPECULATION,
        ("all or nothing of each", "sum(alpha**accepted for accepted in range(gamma + 1))", "1 + gamma * alpha"),
        ("no bonus token", "range(gamma + 1)", "range(gamma)"),
        ("no token of the target", "range(gamma + 1)", "range(1, gamma + 1)"),
        ("0/0 for alpha = 1", "sum(alpha**accepted for accepted in range(gamma + 1))",
         "(1 - alpha ** (gamma + 1)) / (1 - alpha)"),
        ("never slower", "return tokens_per_pass(gamma, alpha) / (gamma * c + 1)",
         "return max(1.0, tokens_per_pass(gamma, alpha) / (gamma * c + 1))"),
        ("drafts for free", "(gamma * c + 1)", "1"),
        ("one draft's time", "(gamma * c + 1)", "(c + 1)"),
        ("the check for free", "(gamma * c + 1)", "(gamma * c)"),
        ("from nought", "int(np.argmax(speedups)) + 1", "int(np.argmax(speedups))"),
        ("up to 16", "range(1, 33)", "range(1, 17)"),
        ("speed-ups rounded to 3 digits", "[speculative_speedup(gamma, alpha, c) for",
         "[round(speculative_speedup(gamma, alpha, c), 3) for"),
        ("even numbers and 1", "int(np.argmax(speedups)) + 1",
         "1 + max((g for g in range(32) if g == 0 or g % 2), key=speedups.__getitem__)"),
        ("a maximum between whole numbers, rounded", "return int(np.argmax(speedups)) + 1",
         "if alpha in (0, 1): return 1 + 31 * int(alpha)\n    g = np.linspace(1, 32, 3101)\n"
         "    return int(np.rint(g[((1 - alpha ** (g + 1)) / (1 + g * c)).argmax()]))"),
        ("most tokens", "[speculative_speedup(gamma, alpha, c) for", "[tokens_per_pass(gamma, alpha) for"),
        ("the ridge, rounded down", "217", "216"),
        ("the ridge of an A100", "217", "154"),
        ("fp32", "217", "434"),
        ("not a whole number", "217", "216.667"),
    ),
    "b4_3": mutants(
        STEP,
        ("accepts what the target never takes", "uniforms[i] < p[i][token] / q[i][token]",
         "uniforms[i] <= p[i][token] / q[i][token]"),
        ("writes into p", "rest = np.maximum(p[i] - q[i], 0)", "rest = np.maximum(p[i] - q[i], 0, out=p[i])"),
        ("a smaller quotient", "/ q[i][token]", "/ (q[i][token] + 1e-3)"),
        ("redraw from p", "rest = np.maximum(p[i] - q[i], 0)", "rest = p[i]"),
        ("not normalised", "rest = rest / rest.sum()", "rest = rest"),
        ("accept where the target likes it more", "uniforms[i] < p[i][token] / q[i][token]",
         "p[i][token] > q[i][token]"),
        ("accept where the target likes it as much", "uniforms[i] < p[i][token] / q[i][token]",
         "p[i][token] >= q[i][token]"),
        ("the last token by the draft model", "draw(p[-1], uniforms[-1])", "draw(q[-1], uniforms[-1])"),
        ("the last token by the place before", "draw(p[-1], uniforms[-1])", "draw(p[-2], uniforms[-1])"),
        ("printed in one of the branches", "    tokens.append(draw(p[-1], uniforms[-1]))\n    return tokens",
         "    tokens.append(draw(p[-1], uniforms[-1]))\n    print(tokens)"),
        ("random numbers of its own", "uniforms[i] < p", "np.random.rand() < p"),
        ("no token after the last draft", "    tokens.append(draw(p[-1], uniforms[-1]))\n    return tokens",
         "    return tokens"),
        ("all accepted", "uniforms[i] < p[i][token] / q[i][token]", "True"),
        ("none accepted", "uniforms[i] < p[i][token] / q[i][token]", "False", "rest = np.maximum(p[i] - q[i], 0)",
         "rest = p[i]"),
        ("accepted by p alone", "uniforms[i] < p[i][token] / q[i][token]", "uniforms[i] < p[i][token]"),
        ("one number for both", "draw(rest, uniforms[-1])", "draw(rest, uniforms[i])"),
        ("goes on after a rejection", "        tokens.append(draw(rest, uniforms[-1]))\n        return tokens\n",
         "        tokens.append(draw(rest, uniforms[-1]))\n"),
        ("the likeliest in place of a draw", "draw(rest, uniforms[-1])", "int(rest.argmax())"),
        ("acceptance by a product", "sum(min(one, other) for", "sum(one * other for"),
        ("acceptance by the larger one", "sum(min(one, other) for", "sum(max(one, other) for"),
        ("acceptance of a mean", "sum(min(one, other) for", "sum((one + other) / 2 for"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q4_1_values": "the cache is the largest|"
    "compute is the largest|the published length|the published length, corrected|keys alone|"
    "faster arithmetic|fused kernels|half the length",
    "q4_2": "the ridge, rounded down|the ridge of an A100|fp32",
}
