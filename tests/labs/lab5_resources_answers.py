"""Answers to Part 1 of Lab 5, days, bytes, short numbers and FLOPs, right and wrong."""

from labs.mutants import mutants

DAYS = """
def training_days(params, tokens, gpus, peak, mfu):
    seconds = 6 * params * tokens / gpus / (peak * mfu)
    return seconds / 3600 / 24

def measured_mfu(params, tokens, gpus, peak, days):
    return training_days(params, tokens, gpus, peak, 1.0) / days
"""

DAYS_NUMPY = """
def training_days(params, tokens, gpus, peak, mfu):
    return np.float64(params) * tokens * 6 / (np.float64(gpus) * peak * mfu * 86400)

def measured_mfu(params, tokens, gpus, peak, days):
    done, possible = 6.0 * params * tokens, gpus * peak * (days * 24 * 60 * 60)
    return done / possible
"""

LARGEST = """
fp32_bytes_per_param, mixed_bytes_per_param, left_out = 16, 16, "c"

def largest_model(gpus, gpu_bytes, per_param):
    return gpus * gpu_bytes // per_param
"""

FITS = """
fp32_bytes_per_param = np.int64(4 * 4)
mixed_bytes_per_param = sum([2, 2, 4, 4, 4])
left_out = "c"

def largest_model(gpus, gpu_bytes, per_param):
    whole, rest = divmod(gpus * gpu_bytes, per_param)
    return whole
"""

BYTES = """
def training_bytes(P, buffers, B, L):
    batch = 2 * B * L * 8
    means, values = 8 * P, 4 * P
    return values + means + 4 * buffers + batch, values + means + 4 * P + 4 * buffers + batch
"""

BYTES_ARRAYS = """
def training_bytes(P, buffers, B, L):
    start = sum(n * size for n, size in [(3 * P + buffers, 4), (2 * B * L, 8)])
    return [start, start + P * 4]
"""

BITS = """
BITS = {"fp32": (8, 23), "tf32": (8, 10), "fp16": (5, 10), "bf16": (8, 7), "e4m3": (4, 3), "e5m2": (5, 2)}

def dtype_facts(name):
    e, m = BITS[name]
    bias = 2 ** (e - 1) - 1
    largest = 448.0 if name == "e4m3" else (2 - 2.0**-m) * 2.0**bias
    normal = 2.0 ** (1 - bias)
    return {"exponent": e, "mantissa": m, "max": largest, "smallest_normal": normal,
            "smallest": normal * 2.0**-m, "eps": 2.0**-m}
"""

SEARCHED = """
def dtype_facts(name):
    powers = [2.0**p for p in range(-200, 200)]
    smallest = min(p for p in powers if rounded(p, name) == p)
    eps = min(p for p in powers if rounded(1 + p, name) == 1 + p > 1 and p <= 1)
    normal = min(p for p in powers if rounded(p * (1 + eps), name) == p * (1 + eps))
    finite = [p for p in powers if np.isfinite(rounded(p, name))]
    largest = max(x for x in (max(finite) * (2 - 2.0**-k) for k in range(25)) if rounded(x, name) == x)
    exponents = len([p for p in finite if p >= normal])
    return {"eps": eps, "smallest": smallest, "smallest_normal": normal, "max": largest,
            "mantissa": int(-np.log2(eps)), "exponent": int(round(np.log2(exponents + 1)))}
"""

SUM = """
def running_sum(value, count, name):
    total, step = 0, float(rounded(value, name))
    for _ in range(count):
        total = rounded(step + total, name)
    return float(total)
"""

SUM_STANDS_STILL = """
def running_sum(value, count, name):
    step, total = rounded(value, name), 0.0
    while count:
        new = rounded(total + step, name)
        if new == total:
            break
        total, count = new, count - 1
    return np.float64(total)
"""

SORT = """
needs = {"matmul": "16 bits", "relu": "16 bits", "tanh": "16 bits", "add": "16 bits", "sub": "16 bits",
         "mul": "16 bits", "sum": "precision", "softmax": "precision", "norm": "precision",
         "exp": "range", "log": "range", "pow": "range", "loss": "range"}
"""

SORT_LISTS = """
groups = {"16 bits": "matmul relu tanh add sub mul", "precision": "norm softmax sum", "range": "loss pow log exp"}
needs = {name: need for need, names in groups.items() for name in names.split()}
"""

SORT_OTHERWISE = """
needs = dict.fromkeys(["matmul", "relu", "tanh", "add", "sub", "mul"], "16 bits")
needs |= {"softmax": "range", "loss": "precision", "log": "precision"}
needs |= {"sum": "precision", "norm": "range", "exp": "range", "pow": "range"}
"""

LINEAR = """
def linear_bytes(d_in, d_out, n):
    return d_in * n * d_out

weights_gb, weights_gib, slide_width = 2.416, 2.25, 12000
"""

LINEAR_DERIVED = """
def linear_bytes(d_in, d_out, n):
    return d_in * d_out * n

weights_gb = linear_bytes(12288, 4 * 12288, 4) / 1e9
weights_gib = linear_bytes(12288, 49152, 4) / 1024**3
slide_width = round((2.304e9 / 16) ** 0.5)
"""

FLOPS = """
def add_flops(M, N):
    return N * M

def gram_flops(M, N):
    return 2 * M * N**2

def linear_flops(tokens, d_in, d_out):
    return tokens * d_in * d_out * 2

def two_layers_flops(tokens, d, h, o, input_gradient):
    forward = 2 * tokens * h * (d + o)
    backward = 2 * tokens * h * (d + 2 * o)
    if input_gradient:
        backward += 2 * tokens * h * d
    return forward, backward
"""

FLOPS_TWICE = """
def add_flops(M, N):
    return sum([N] * M) if M < 1000 else M * N

def linear_flops(tokens, d_in, d_out):
    return 2 * math.prod((tokens, d_in, d_out))

def gram_flops(M, N):
    return linear_flops(N, M, N)

def two_layers_flops(tokens, d, h, o, input_gradient):
    forward = linear_flops(tokens, d, h) + linear_flops(tokens, h, o)
    return forward, 2 * forward - (0 if input_gradient else linear_flops(tokens, d, h))
"""

RIGHT = {
    "q1_1": [("by hours", DAYS), ("NumPy", DAYS_NUMPY)],
    "b1_2": [("whole division", LARGEST), ("divmod", FITS)],
    "b1_3": [("by kind", BYTES), ("a list", BYTES_ARRAYS)],
    "b1_4": [("from the bits", BITS), ("by searching the powers of two", SEARCHED)],
    "b1_4_sum": [("floats", SUM), ("stops when it stands still", SUM_STANDS_STILL)],
    "b1_4_sort": [("one by one", SORT), ("by group", SORT_LISTS), ("the other reason", SORT_OTHERWISE)],
    "b1_5": [("rounded", LINEAR), ("derived", LINEAR_DERIVED)],
    "b1_6": [("expanded", FLOPS), ("twice the forward pass", FLOPS_TWICE)],
}

WRONG = {
    "q1_1": mutants(
        DAYS,
        ("2ND", "6 * params", "2 * params"),
        ("no MFU", "(peak * mfu)", "peak"),
        ("the sparse peak", "(peak * mfu)", "(2 * peak * mfu)"),
        ("hours", "/ 3600 / 24", "/ 3600"),
        ("one GPU", "/ gpus", ""),
        ("the inverse upside down", "training_days(params, tokens, gpus, peak, 1.0) / days",
         "days / training_days(params, tokens, gpus, peak, 1.0)"),
        ("a percentage", "1.0) / days", "1.0) / days * 100"),
    ),
    "b1_2": mutants(
        LARGEST,
        ("GiB", "gpus * gpu_bytes", "round(gpus * gpu_bytes / 1e9 * 2**30)"),
        ("no gradients", "// per_param", "// (per_param * 3 // 4)"),
        ("one GPU", "gpus * gpu_bytes", "gpu_bytes"),
        ("a float", "gpus * gpu_bytes // per_param", "gpus * gpu_bytes / per_param"),
        ("rounded by a float", "gpus * gpu_bytes // per_param", "int(gpus * gpu_bytes / per_param)"),
        ("the floor of a float", "gpus * gpu_bytes // per_param", "math.floor(gpus * gpu_bytes / per_param)"),
        ("a float's whole part", "gpus * gpu_bytes // per_param", "int(float(gpus) * gpu_bytes // per_param)"),
        ("each GPU by itself", "gpus * gpu_bytes // per_param", "gpus * (gpu_bytes // per_param)"),
        ("no gradient", "16, 16, ", "12, 16, "),
        ("half of everything", "16, 16, ", "16, 8, "),
        ("no master copy", "16, 16, ", "16, 12, "),
        *((f"choice {letter}", '"c"', f'"{letter}"') for letter in "abd"),
    ),
    "b1_3": mutants(
        BYTES,
        ("printed", "return values + means +", "print(values + means)\n    0, values + means +"),
        ("gradients at the start", "return values + means +", "return values + means + 4 * P +"),
        ("one mean", "8 * P, 4 * P", "4 * P, 4 * P"),
        ("no targets", "2 * B * L * 8", "B * L * 8"),
        ("tokens of 4 bytes", "2 * B * L * 8", "2 * B * L * 4"),
        ("no buffers", "means + 4 * buffers", "means"),
        ("buffers are trained", "4 * P + 4 * buffers + batch", "4 * P + 8 * buffers + batch"),
        ("no gradients", "values + means + 4 * P", "values + means"),
        ("gradients in 16 bits", "values + means + 4 * P", "values + means + 2 * P"),
        ("floats", "batch = 2", "batch = 2.0"),
        ("rounded by a float", "values + means + 4 * P", "values + means + int(4.0 * P)"),
    ),
    "b1_4": mutants(
        BITS,
        ("e4m3 with an infinity", '448.0 if name == "e4m3" else', ""),
        ("the smallest normal as smallest", "normal * 2.0**-m", "normal"),
        ("eps halved", '"eps": 2.0**-m', '"eps": 2.0**-m / 2'),
        ("bf16 with the range of fp16", '"bf16": (8, 7)', '"bf16": (5, 10)'),
        ("tf32 with the mantissa of fp32", '"tf32": (8, 10)', '"tf32": (8, 23)'),
        ("one binade too many", "2.0**bias\n", "2.0 ** (bias + 1)\n"),
        ("a power of two as the largest", "(2 - 2.0**-m) * ", ""),
        ("the sign as a bit of the mantissa", '"mantissa": m', '"mantissa": m + 1'),
        ("the exponent of the largest", '"exponent": e', '"exponent": bias'),
    ),
    "b1_4_sum": mutants(
        SUM,
        ("without a sign", "return float(total)", "return abs(float(total))"),
        ("added in float64", "rounded(step + total, name)", "step + total"),
        ("rounded at the end", "total = rounded(step + total, name)", "total += step",
         "float(total)", "rounded(total, name)"),
        ("the value is not rounded", "float(rounded(value, name))", "value"),
        ("one too few", "range(count)", "range(count - 1)"),
        ("a product", "return float(total)", "return rounded(step * count, name)"),
    ),
    "b1_4_sort": mutants(
        SORT,
        ("softmax in 16 bits", '"softmax": "precision"', '"softmax": "16 bits"'),
        ("exp in 16 bits", '"exp": "range"', '"exp": "16 bits"'),
        ("the product needs precision", '"matmul": "16 bits"', '"matmul": "precision"'),
        ("a sum needs range", '"sum": "precision"', '"sum": "range"'),
        ("exp needs precision", '"exp": "range"', '"exp": "precision"'),
        ("log in 16 bits", '"log": "range"', '"log": "16 bits"'),
        ("loss in 16 bits", '"loss": "range"', '"loss": "16 bits"'),
        ("all in 16 bits", '"precision"', '"16 bits"', '"range"', '"16 bits"'),
        ("numbers", '"16 bits"', "16"),
    ),
    "b1_5": mutants(
        LINEAR,
        ("GiB as GB", "2.416, 2.25", "2.25, 2.25"),
        ("GB as GiB", "2.416, 2.25", "2.416, 2.416"),
        ("d squared", "2.416, 2.25", "0.604, 0.5625"),
        ("bf16", "2.416, 2.25", "1.208, 1.125"),
        ("the exact 12k", "12000", "12288"),
        ("always a square", "d_in * n * d_out", "d_in * n * d_in"),
        ("8 bytes", "d_in * n * d_out", "d_in * 8 * d_out"),
        ("a bias", "d_in * n * d_out", "(d_in + 1) * n * d_out"),
        ("a float", "d_in * n * d_out", "1.0 * d_in * n * d_out"),
    ),
    "b1_6": mutants(
        FLOPS,
        ("a MAC for each sum", "return N * M", "return 2 * N * M"),
        ("printed", "return forward, backward", "print(forward, backward)"),
        ("both together", "return forward, backward", "return forward + backward"),
        ("M and N exchanged", "2 * M * N**2", "2 * N * M**2"),
        ("MACs", "tokens * d_in * d_out * 2", "tokens * d_in * d_out"),
        ("W2 of the size of W1", "(d + o)", "(d + d)"),
        ("backward is forward", "(d + 2 * o)", "(d + o)"),
        ("the gradient of x always", "if input_gradient:", "if True:"),
        ("the gradient of x never", "if input_gradient:", "if False:"),
        ("six for everything", "backward = 2 * tokens * h * (d + 2 * o)", "backward = 2 * forward"),
        ("one number", "return forward, backward", "return forward + backward"),
        ("rounded by a float", "return forward, backward", "return forward, int(1.0 * backward)"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "b1_6": "rounded by a float",
    "b1_3": "rounded by a float",
    "b1_2": "no gradient|half of everything|no master copy|choice a|choice b|choice d",
    "b1_4": "e4m3 with an infinity|bf16 with the range of fp16|tf32 with the mantissa of fp32",
    "b1_4_sort": "softmax in 16 bits|exp in 16 bits|a sum needs range|exp needs precision|log in 16 bits|"
    "loss in 16 bits|all in 16 bits",
    "b1_5": "GiB as GB|GB as GiB|d squared|bf16|the exact 12k",
}
