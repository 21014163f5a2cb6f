"""Answers to 3.1 to 3.3 of Lab 5, fusion and recomputation, right and wrong."""

from labs.mutants import changed, mutants

RELU = """
def relu_bytes_per_flop(n):
    read, written = n, n
    return read + written

def relu_in_place_bytes_per_flop(n, negative):
    return n * (1 + negative)

def relu_intensity(n):
    return 0.5 / n
"""

RELU_FLOATS = """
def relu_bytes_per_flop(n):
    return 1 / relu_intensity(n)

def relu_in_place_bytes_per_flop(n, negative):
    return relu_bytes_per_flop(n) - (1 - negative) * n

def relu_intensity(n):
    return 1 / (n + n)
"""

CHAIN = """
def sin_cos(x):
    return rl.sin(x) ** 2 - rl.cos(x) ** 2

@rl.compile
def sin_cos_compiled(x):
    return sin_cos(x)

separate_accesses, fused_accesses, separate_launches, fused_launches, fusion_gain = 11, 2, 5, 1, 5.5
"""

CHAIN_COUNTED = """
def sin_cos(x):
    s, c = rl.sin(x), rl.cos(x)
    return s * s - c ** 2

sin_cos_compiled = rl.compile(lambda x: -rl.cos(x) ** 2 + rl.sin(x) * rl.sin(x))
with rl.count() as one:
    sin_cos(rl.ones(8))
with rl.count() as two:
    sin_cos_compiled(rl.ones(8))
separate_launches, fused_launches = one.launches - 1, two.launches - 1
separate_accesses, fused_accesses = ((c.bytes_read + c.bytes_written) // 32 - 1 for c in (one, two))
fusion_gain = separate_accesses / fused_accesses
"""

GRADIENT = """
def loss_gradient(w, phi, y):
    residual = sum(a * b for a, b in zip(w, phi)) - y
    return np.array([2 * residual * b for b in phi])
"""

GRADIENT_TAPE = """
def loss_gradient(w, phi, y):
    w = rl.tensor(w, dtype="float64", requires_grad=True)
    error = (w * rl.tensor(phi, dtype="float64")).sum() - y
    (error * error).backward()
    return w.grad
"""

SIGMOIDS = """
def sigmoid_accesses(k, keep):
    if not keep or k == 1:
        return 5
    return 2 * k + 2
"""

SIGMOIDS_PARTS = """
def sigmoid_accesses(k, keep):
    reads = 1 + 1 + (1 if not keep else max(1, k - 1))
    writes = (k if keep else 1) + 1
    return np.int64(reads + writes)
"""

SIGMOIDS_LOOP = """
def sigmoid_accesses(k, keep):
    read, written = ["x"], []
    for layer in range(1, k + 1):
        if keep or layer == k:
            written.append(layer)
    read.append("gradient")
    if keep:
        for layer in range(1, max(k, 2)):
            read.append(layer)
    else:
        read.append("x")
    return len(read) + len(written + ["gradient"])
"""

SIGMOIDS_RECURSIVE = """
def sigmoid_accesses(k, keep):
    if not keep or k == 1:
        return 5
    return 6 if k == 2 else sigmoid_accesses(k - 1, True) + 2
"""

STACKS = """
one_kernel_gain, halved_from = 2.5, 4
"""
STACKS_COUNTED = """
def stacked(k):
    x, upstream = rl.ones(50, requires_grad=True), rl.ones(50)
    with rl.count() as c:
        y = x
        for _ in range(k):
            y = rl.sigmoid(y)
        y.backward(upstream)
    return (c.bytes_read + c.bytes_written) / 200

added = sigmoid_accesses(9, True) - sigmoid_accesses(8, True)
one_kernel_gain = (stacked(9) - stacked(8)) / added
halved_from = next(k for k in range(1, 99) if sigmoid_accesses(k, True) >= 2 * sigmoid_accesses(k, False))
"""

RIGHT = {
    "q3_1": [("read and written", RELU), ("from the intensity", RELU_FLOATS)],
    "q3_2": [("compiled by a decorator", CHAIN), ("counted", CHAIN_COUNTED)],
    "q3_3": [("a sum", GRADIENT), ("the tape", GRADIENT_TAPE)],
    "q3_3_accesses": [
        ("a formula", SIGMOIDS),
        ("reads and writes", SIGMOIDS_PARTS),
        ("a loop", SIGMOIDS_LOOP),
        ("one sigmoid after the other", SIGMOIDS_RECURSIVE),
    ],
    "q3_3_eager": [("numbers", STACKS), ("counted", STACKS_COUNTED)],
}

WRONG = {
    "q3_1": mutants(
        RELU,
        ("intensity for bytes", "return read + written", "return 1 / (2 * n)"),
        ("reads alone", "return read + written", "return read"),
        ("two FLOPs", "return read + written", "return n"),
        ("a share in whole per cent", "n * (1 + negative)", "n * (1 + round(negative, 2))"),
        ("in place everything is written", "n * (1 + negative)", "2 * n"),
        ("in place nothing is written", "n * (1 + negative)", "n"),
        ("those above 0 are written", "n * (1 + negative)", "n * (2 - negative)"),
        ("bytes for intensity", "0.5 / n", "2 * n"),
        ("an intensity of reads alone", "0.5 / n", "1 / n"),
    ),
    "q3_2": [
        *mutants(
            CHAIN,
            ("ten accesses", "= 11, 2", "= 10, 2"),
            ("the gain of launches", "5.5", "5"),
            ("fused with two reads", "= 11, 2", "= 11, 3"),
            ("ones", "return rl.sin(x) ** 2 - rl.cos(x) ** 2", "return rl.ones_like(x)"),
            ("ones, compiled", "return sin_cos(x)", "return rl.ones_like(x)"),
            ("ones that read x, compiled", "return sin_cos(x)", "return x - x + 1"),
            ("a sum, compiled", "return sin_cos(x)", "return rl.sin(x) ** 2 + rl.cos(x) ** 2"),
            ("no squares, compiled", "return sin_cos(x)", "return rl.sin(x) - rl.cos(x)"),
            ("exchanged, compiled", "return sin_cos(x)", "return -sin_cos(x)"),
            ("a sum", "rl.sin(x) ** 2 - rl.cos(x) ** 2", "rl.sin(x) ** 2 + rl.cos(x) ** 2"),
            ("products for powers", "rl.sin(x) ** 2 - rl.cos(x) ** 2", "rl.sin(x) * rl.sin(x) - rl.cos(x) * rl.cos(x)"),
            ("not compiled", "@rl.compile\n", ""),
            ("compiled twice", "    return rl.sin(x) ** 2 - rl.cos(x) ** 2",
             "    return rl.compile(lambda x: rl.sin(x) ** 2 - rl.cos(x) ** 2)(x)"),
            ("a launch for each access", ", 5, 1,", ", 11, 2,"),
        ),
        ("NumPy", changed(CHAIN, "return rl.sin(x) ** 2 - rl.cos(x) ** 2",
                          "return rl.tensor(np.sin(x.numpy())**2 - np.cos(x.numpy())**2)")),
    ],
    "q3_3": mutants(
        GRADIENT,
        ("whole residuals", "2 * residual", "2 * int(residual)"),
        ("writes into phi", "    return np.array([2 * residual * b for b in phi])",
         "    phi *= 2 * residual\n    return phi"),
        ("fp16", "for b in phi])", "for b in phi]).astype(np.float16)"),
        ("no factor 2", "2 * residual", "residual"),
        ("with respect to phi", "for b in phi])", "for b in w])"),
        ("the loss", "return np.array([2 * residual * b for b in phi])", "return residual**2"),
        ("the wrong sign", ") - y", ") + y"),
    ),
    "q3_3_accesses": mutants(
        SIGMOIDS,
        ("the last output is read", "return 2 * k + 2", "return 2 * k + 3"),
        ("the incoming gradient is forgotten", "return 2 * k + 2", "return 2 * k + 1", "return 5", "return 4"),
        ("kept for one sigmoid as for more", " or k == 1", ""),
        ("recomputed like kept", "not keep or k == 1", "k == 1"),
        ("the ratio of three everywhere", "return 2 * k + 2", "return 8"),
        ("recomputation writes all outputs", "        return 5", "        return 5 if keep or k == 1 else k + 4"),
    ),
    "q3_3_eager": mutants(
        STACKS,
        ("the gain of three sigmoids", "= 2.5, 4", "= 1.875, 4"),
        ("the gain over recomputation", "= 2.5, 4", "= 3, 4"),
        ("what is added, in accesses", "= 2.5, 4", "= 5, 4"),
        ("the gain of the forward pass", "= 2.5, 4", "= 2, 4"),
        ("fewer, not half", "= 2.5, 4", "= 2.5, 2"),
        ("less than half", "= 2.5, 4", "= 2.5, 5"),
        ("a third of the accesses", "= 2.5, 4", "= 2.5, 6.5"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q3_2": "ten accesses|the gain of launches|fused with two reads|a launch for each access|products for powers",
    "q3_3_eager": "the gain of three sigmoids|the gain over recomputation|what is added, in accesses"
    "|the gain of the forward pass|fewer, not half|less than half",
}
