"""Answers to Part 2 of Lab 7, the transpose, right and wrong."""

from labs.mutants import mutants

BANKS = """
def bank_conflicts(step):
    words = {step * lane for lane in range(32)}
    return max(sum(word % 32 == bank for word in words) for bank in range(32)) - 1
"""

PADDED = r'''
TRANSPOSE_CUDA = r"""
__global__ void transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][33];
  const int u = threadIdx.x, v = threadIdx.y;
  const int left = blockIdx.x * 32, top = blockIdx.y * 32;
  for (int k = v; k < 32; k += 8)
    if (top + k < rows && left + u < columns) tile[k][u] = x[(top + k) * columns + left + u];
  __syncthreads();
  for (int k = v; k < 32; k += 8)
    if (left + k < columns && top + u < rows) y[(left + k) * rows + top + u] = tile[u][k];
}
"""
'''

SWIZZLED = PADDED.replace("tile[32][33]", "tile[32][32]").replace("tile[k][u]", "tile[k][u ^ k]").replace(
    "tile[u][k]", "tile[u][k ^ u]"
)  # fmt: skip

TURNED = PADDED.replace("tile[k][u] =", "tile[u][k] =").replace("= tile[u][k];\n}", "= tile[k][u];\n}")

TILES = """
swizzle = "a"

def tile_conflicts(N, width):
    requests = N * (N // 32)
    return requests * (math.gcd(width, 32) - 1)
"""

RIGHT = {
    "q2_1": [("counted", BANKS)],
    "q2_2": [("padded", PADDED), ("swizzled", SWIZZLED), ("columns are stored, rows are read", TURNED)],
    "q2_3": [("by the divisor", TILES)],
}

WRONG = {
    "q2_1": mutants(
        BANKS,
        ("the wavefronts", " - 1", ""),
        ("lanes, not words", "{step * lane for lane in range(32)}", "[step * lane for lane in range(32)]"),
        ("16 banks", "word % 32 == bank", "word % 16 == bank"),
        ("bytes", "{step * lane for", "{4 * step * lane for"),
        ("31 or nothing", "return max(", "return 31 if step % 32 == 0 else 0\n    return max("),
        ("a float", "return max(", "return 1.0 * max("),
        ("no case of its own for 0", "words = {", "return math.gcd(step, 32) - 1\n    words = {"),
    ),
    "q2_2": mutants(
        PADDED,
        ("one block", "const int left = blockIdx.x * 32, top = blockIdx.y * 32;",
         "if (blockIdx.x + blockIdx.y > 0) return;\n"
         "  for (int top = 0; top < rows; top += 32) for (int left = 0; left < columns; left += 32) {",
         "= tile[u][k];\n", "= tile[u][k];\n  __syncthreads();\n  }\n"),
        ("one warp loads", "int k = v; k < 32; k += 8)\n    if (top",
         "int k = 0; v == 0 && k < 32; ++k)\n    if (top"),
        ("one warp stores", "int k = v; k < 32; k += 8)\n    if (left",
         "int k = 0; v == 7 && k < 32; ++k)\n    if (left"),
        ("no padding", "tile[32][33]", "tile[32][32]"),
        ("two words of padding", "tile[32][33]", "tile[32][34]"),
        ("no barrier", "__syncthreads();", ""),
        ("a barrier of the warp", "__syncthreads();", "__syncwarp();"),
        ("padded on the wrong side", "tile[32][33]", "tile[33][32]"),
        ("the index is still transposed", "y[(left + k) * rows + top + u] = tile[u][k]",
         "y[(left + u) * rows + top + k] = tile[k][u]"),
        ("the tile is not transposed", "= tile[u][k]", "= tile[k][u]"),
        ("blocks are not exchanged", "y[(left + k) * rows + top + u]", "y[(top + k) * rows + left + u]"),
        ("rows for columns", "x[(top + k) * columns", "x[(top + k) * rows"),
        ("no guard of the load", "if (top + k < rows && left + u < columns)", ""),
        ("no guard of the store", "if (left + k < columns && top + u < rows)", ""),
        ("the guard of the other side", "if (left + k < columns && top + u < rows)",
         "if (top + k < rows && left + u < columns)"),
        ("a quarter", "k += 8", "k += 32"),
        ("a barrier in a branch", "__syncthreads();", "if (left + u < columns) __syncthreads();"),
        ("no tile", "if (top + k < rows && left + u < columns) tile[k][u] = x[(top + k) * columns + left + u];",
         "if (top + k < rows && left + u < columns) "
         "y[(left + u) * rows + top + k] = x[(top + k) * columns + left + u];",
         "if (left + k < columns && top + u < rows) y[(left + k) * rows + top + u] = tile[u][k];", ";"),
    ),
    "q2_3": mutants(
        TILES,
        ("the conflict has moved", 'swizzle = "a"', 'swizzle = "b"'),
        ("narrow tiles", 'swizzle = "a"', 'swizzle = "c"'),
        ("no letter", 'swizzle = "a"', "swizzle = None"),
        ("both ways", "N * (N // 32)", "2 * N * (N // 32)"),
        ("of one tile", "N * (N // 32)", "32"),
        ("wavefronts", " - 1", ""),
        ("one for each element", "N * (N // 32)", "N * N"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"q2_3": "the conflict has moved|narrow tiles"}
