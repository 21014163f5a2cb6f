"""Answers to 1.1 to 1.3 of Lab 4, products and attention with one head, right and wrong."""

from labs.lab4_formulas import formulas, wrong

MATMUL = ("matmul", "M, K, N", "2 * M * K * N", "n * (M * K + K * N + M * N)")
PROJECTION = ("projection", "B, L, D", "6 * B * L * D**2", "n * (6 * B * L * D + 3 * D**2)")
SCORES = ("scores", "B, L, D", "2 * B * L**2 * D + B * L**2", "n * (2 * B * L * D + B * L**2)")
MASK = ("mask", "B, L", "B * L**2", "2 * n * B * L**2")
SOFTMAX = ("softmax", "B, L", "3 * B * L**2", "2 * n * B * L**2")
VALUES = ("values", "B, L, D", "2 * B * L**2 * D", "n * (B * L**2 + 2 * B * L * D)")
SDPA = ("sdpa", "B, L, D", "4 * B * L**2 * D + 5 * B * L**2", "n * (4 * B * L * D + 6 * B * L**2)")


def by_sequence(name, sizes, flops, moved):
    """Each sequence counted in a loop, with NumPy's integers."""
    one = f"\ndef _{name}(B, L, D, n):\n    return np.int64({flops}), np.int64({moved})\n"
    one += f"\ndef _all(L, D, n, which, B):\n    return sum(_{name}(1, L, D, n)[which] for _ in range(B))\n"
    D = "D" if "D" in sizes else "1"
    return formulas(name, sizes, f"_all(L, {D}, 1, 0, B)", f"_all(L, {D}, n, 1, B)", one)


MATRICES = """
import math
from dataclasses import dataclass
from functools import reduce

@dataclass
class Matrix:
    rows: int
    columns: int

    @property
    def size(self):
        return self.rows * self.columns

def matmul_flops(M: int, K: int, N: int) -> int:
    print("one product")
    return reduce(lambda a, b: a * b, (M, K, N), 2)

matmul_bytes = lambda M, K, N, n: n * sum(one.size for one in (Matrix(M, K), Matrix(K, N), Matrix(M, N)))
"""

RIGHT = {
    "q1_1": [
        ("a class, functools and a lambda", MATRICES),
        ("factored", formulas("matmul", "M, K, N", "M * N * (K + K)", "n * K * (M + N) + n * M * N")),
        ("NumPy integers", formulas(*MATMUL[:2], f"np.int64({MATMUL[2]})", f"np.int64({MATMUL[3]})")),
        ("a sum over matrices", formulas(*MATMUL[:3], "sum(n * a * b for a, b in [(M, K), (K, N), (M, N)])")),
    ],
    "q1_2": [
        ("expanded", formulas(*PROJECTION)),
        ("factored", formulas(*PROJECTION[:2], "6 * B * L * D * D", "3 * n * D * (2 * B * L + D)")),
        ("three added up", formulas(
            *PROJECTION[:2],
            "sum(matmul_flops(L * B, D, D) for _ in 'qkv')",
            "sum(matmul_bytes(L * B, D, D, n) for _ in 'qkv')",
        )),
    ],
    "q1_3_1": [
        ("expanded", formulas(*SCORES)),
        ("factored", formulas(*SCORES[:2], "(2 * D + 1) * B * L * L", "n * B * L * (D + D + L)")),
    ],
    "q1_3_2": [
        ("elements times bytes", formulas(*MASK[:2], "B * L * L", "n * (B * L * L + B * L * L)")),
        ("above and below the diagonal", formulas(
            *MASK[:2], "B * (L * (L + 1) // 2 + L * (L - 1) // 2)", "2 * n * mask_flops(B, L)"
        )),
    ],
    "q1_3_3": [
        ("by steps", formulas(*SOFTMAX[:2], "sum(B * L**2 for _ in ('exp', 'sum', 'div'))", "n * (B * L**2) * 2")),
        ("NumPy integers", formulas(*SOFTMAX[:2], "np.int64(3 * B * L**2)", "np.int64(2 * n * B * L**2)")),
    ],
    "q1_3_4": [
        ("expanded", formulas(*VALUES)),
        ("factored", formulas(*VALUES[:2], "B * L * D * 2 * L", "n * B * L * (L + 2 * D)")),
    ],
    "q1_3_5": [
        ("expanded", formulas(*SDPA)),
        ("factored", formulas(*SDPA[:2], "B * L * L * (4 * D + 5)", "2 * n * B * L * (2 * D + 3 * L)")),
        ("by sequence", by_sequence(*SDPA)),
    ],
}  # fmt: skip

WRONG = {
    "q1_1": wrong(*MATMUL, {
        "MACs": {"flops": "M * K * N"},
        "the first addition saved": {"flops": "M * N * (2 * K - 1)"},
        "floats": {"flops": "2.0 * M * K * N"},
        "floats made whole": {"flops": "int(2.0 * M * K * N)"},
        "printed": {"flops": "print(2 * M * K * N)"},
        "32 bits": {"flops": "np.prod(np.array([2, M, K, N], np.int32))"},
        "a text": {"flops": "f'{2 * M * K * N:,}'"},
        "bytes as floats made whole": {"moved": "int(float(n * (M * K + K * N + M * N)))"},
        "bits": {"moved": "8 * n * (M * K + K * N + M * N)"},
        "bytes as floats": {"moved": "1.0 * n * (M * K + K * N + M * N)"},
        "true for one": {"flops": "2 * M * K * N if M * K * N > 1 else True"},
        "C is not written": {"moved": "n * (M * K + K * N)"},
        "C is read first": {"moved": "n * (M * K + K * N + 2 * M * N)"},
        "always fp16": {"moved": "2 * (M * K + K * N + M * N)"},
        "elements": {"moved": "M * K + K * N + M * N"},
    }),
    "q1_2": wrong(*PROJECTION, {
        "one of the three": {"flops": "2 * B * L * D**2"},
        "MACs": {"flops": "3 * B * L * D**2"},
        "with biases": {"flops": "6 * B * L * D**2 + 3 * B * L * D"},
        "one sequence": {"flops": "6 * L * D**2"},
        "X is read once": {"moved": "n * (4 * B * L * D + 3 * D**2)"},
        "weights once a sequence": {"moved": "n * (6 * B * L * D + 3 * B * D**2)"},
        "weights once a token": {"moved": "n * (6 * B * L * D + 3 * B * L * D**2)"},
        "no weights": {"moved": "n * 6 * B * L * D"},
        "one of the three moved": {"moved": "n * (2 * B * L * D + D**2)"},
    }),
    "q1_3_1": wrong(*SCORES, {
        "no scaling": {"flops": "2 * B * L**2 * D"},
        "Q is scaled": {"flops": "2 * B * L**2 * D + B * L * D"},
        "causal half": {"flops": "B * L * (L + 1) * D + B * L**2"},
        "scaling is a pass": {"moved": "n * (2 * B * L * D + 3 * B * L**2)"},
        "the transpose is paid for": {"moved": "n * (4 * B * L * D + B * L**2)"},
        "scores are not written": {"moved": "n * 2 * B * L * D"},
    }),
    "q1_3_2": wrong(*MASK, {
        "the lower half": {"flops": "B * L * (L + 1) // 2"},
        "nothing": {"flops": "0"},
        "a matrix is read": {"moved": "n * (2 * B * L**2 + L**2)"},
        "read only": {"moved": "n * B * L**2"},
        "half of them moved": {"moved": "n * B * L * (L + 1)"},
    }),
    "q1_3_3": wrong(*SOFTMAX, {
        "five a score": {"flops": "5 * B * L**2"},
        "sums added by row": {"flops": "2 * B * L**2 + B * L"},
        "a maximum as well": {"flops": "4 * B * L**2"},
        "three passes": {"moved": "6 * n * B * L**2"},
        "read only": {"moved": "n * B * L**2"},
        "sums are written": {"moved": "n * (2 * B * L**2 + B * L)"},
    }),
    "q1_3_4": wrong(*VALUES, {
        "MACs": {"flops": "B * L**2 * D"},
        "the wrong square": {"flops": "2 * B * L * D**2"},
        "A is not read": {"moved": "n * 2 * B * L * D"},
        "O is not written": {"moved": "n * (B * L**2 + B * L * D)"},
        "A is shared": {"moved": "n * (L**2 + 2 * B * L * D)"},
    }),
    "q1_3_5": wrong(*SDPA, {
        "no mask": {"flops": "4 * B * L**2 * D + 4 * B * L**2", "moved": "n * (4 * B * L * D + 4 * B * L**2)"},
        "mask does nothing": {"flops": "4 * B * L**2 * D + 4 * B * L**2"},
        "softmax at five": {"flops": "4 * B * L**2 * D + 7 * B * L**2"},
        "scores stay on the chip": {"moved": "n * 4 * B * L * D"},
        "mask does not move": {"moved": "n * (4 * B * L * D + 4 * B * L**2)"},
        "each result once": {"moved": "n * (4 * B * L * D + 3 * B * L**2)"},
    }),
}  # fmt: skip
ONLY_HIDDEN = {"q1_1": "floats made whole|32 bits|bytes as floats made whole"}
