"""Answers to Part 1 of Lab 4, a layer operation by operation, right and wrong."""

from labs.mutants import mutants

MATMUL = """
def matmul_flops(M, K, N):
    return 2 * M * K * N

def matmul_bytes(M, K, N, n):
    return n * (M * K + K * N + M * N)
"""

RIGHT = {
    "q1_1": mutants(
        MATMUL,
        ("by element of C", "return 2 * M * K * N", "return M * N * (K + K)", "n * (M * K + K * N + M * N)",
         "n * K * (M + N) + n * M * N"),
        ("NumPy integers", "return 2 * M * K * N", "return np.int64(2) * M * K * N", "return n * (",
         "return np.int64(n) * ("),
        ("a sum over rows", "n * (M * K + K * N + M * N)", "n * K * N + n * sum([K, N]) * M"),
    ),
}  # fmt: skip

WRONG = {
    "q1_1": mutants(
        MATMUL,
        ("MACs", "2 * M", "M"),
        ("the first addition saved", "2 * M * K * N", "M * N * (2 * K - 1)"),
        ("floats", "2 * M", "2.0 * M"),
        ("bytes as floats", "n * (M", "1.0 * n * (M"),
        ("C is not written", " + M * N)", ")"),
        ("C is read first", " + M * N)", " + 2 * M * N)"),
        ("always fp16", "return n *", "return 2 *"),
        ("elements", "return n *", "return"),
    ),
}  # fmt: skip
