"""Answers to Parts 6 and 7 of Lab 7, the fused kernel and flash attention, right and wrong."""

from labs.mutants import changed, mutants

ACCESSES = """
four_accesses = 4 * 2
fused_accesses = four_accesses // 4
"""

EPILOGUE = r'''
EPILOGUE_CUDA = r"""
__device__ float gelu(float v) { return v / (1.0f + expf(-1.59576912f * (v + 0.044715f * v * v * v))); }
__global__ void epilogue(const float* x, const float* bias, float* y, int rows, int columns, float s, float t) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column < columns) {
    const float b = bias[column];
    for (int at = blockIdx.y * columns + column; at < rows * columns; at += gridDim.y * columns) {
      const float v = gelu(s * x[at] + b);
      y[at] = v > t ? t : v < -t ? -t : v;
    }
  }
}
"""
'''

BYTES = """
def flash_bytes(L, d, rows):
    blocks = math.ceil(L / rows)
    return 4 * d * L + blocks * 8 * L * d
"""

FLASH = r'''
FLASH_CUDA = r"""
constexpr int D = 32, TILE = 16;
__global__ void flash(const float* q, const float* k, const float* v, float* o, int L) {
  __shared__ float ks[TILE * D], vs[TILE * D];
  const int row = blockIdx.x * 64 + threadIdx.x;
  const bool here = row < L;
  float mine[D], sum[D] = {}, m = -1e38f, l = 0;
  for (int c = 0; here && c < D; ++c) mine[c] = q[row * D + c];
  for (int start = 0; start < L; start += TILE) {
    const int count = min(TILE, L - start);
    __syncthreads();
    for (int at = threadIdx.x; at < count * D; at += 64) ks[at] = k[start * D + at], vs[at] = v[start * D + at];
    __syncthreads();
    if (!here) continue;
    float s[TILE], most = m;
    for (int j = 0; j < count; ++j) {
      s[j] = 0;
      for (int c = 0; c < D; ++c) s[j] += mine[c] * ks[j * D + c];
      s[j] *= 0.17677669f;
      most = fmaxf(most, s[j]);
    }
    const float shrink = expf(m - most);
    m = most, l *= shrink;
    for (int c = 0; c < D; ++c) sum[c] *= shrink;
    for (int j = 0; j < count; ++j) {
      const float p = expf(s[j] - m);
      l += p;
      for (int c = 0; c < D; ++c) sum[c] += p * vs[j * D + c];
    }
  }
  for (int c = 0; here && c < D; ++c) o[row * D + c] = sum[c] / l;
}
"""
'''

RIGHT = {
    "q6_1": [("products", ACCESSES)],
    "q6_2": [
        ("one index and a function", EPILOGUE),
        ("clipped by its size", changed(EPILOGUE, "v > t ? t : v < -t ? -t : v", "copysignf(fminf(fabsf(v), t), v)")),
    ],
    "q7_1": [("blocks first", BYTES)],
    "q7_2": [
        ("scores of a tile first", FLASH),
        (
            "a warp copies keys, and the other one values",
            changed(
                FLASH,
                "threadIdx.x; at < count * D; at += 64) ks[at] = k[start * D + at], vs[at] = v[start * D + at]",
                "threadIdx.x % 32; at < count * D; at += 32)\n"
                "      (threadIdx.x < 32 ? ks : vs)[at] = (threadIdx.x < 32 ? k : v)[start * D + at]",
            ),
        ),
        ("powers of two", changed(FLASH, "0.17677669f", "rsqrtf((float)D) * 1.44269504f", "expf(", "exp2f(")),
    ],
}

WRONG = {
    "q6_1": mutants(
        ACCESSES,
        ("with the bias", "4 * 2", "9"),
        ("launches", "4 * 2", "4"),
        ("one", "four_accesses // 4", "1"),
        ("a float", "four_accesses // 4", "four_accesses / 4"),
    ),
    "q6_2": mutants(
        EPILOGUE,
        ("the last row of blocks reads the bias alone", "at < rows * columns; at += gridDim.y * columns",
         "blockIdx.y < 3 && at < rows * columns; at += 3 * columns"),
        ("the first row of blocks does all, and all read the bias",
         "int at = blockIdx.y * columns + column; at < rows * columns; at += gridDim.y * columns",
         "int at = column; blockIdx.y == 0 && at < rows * columns; at += columns"),
        ("the last row of blocks does all, and all read the bias",
         "int at = blockIdx.y * columns + column; at < rows * columns; at += gridDim.y * columns",
         "int at = column; blockIdx.y == 3 && at < rows * columns; at += columns"),
        ("one row of blocks", "if (column < columns)", "if (column < columns && blockIdx.y == 0)",
         "at += gridDim.y * columns", "at += columns"),
        ("s of the example", "s * x[at]", "1.5f * x[at]"),
        ("t of the example", "v > t ? t : v < -t ? -t : v", "v > 2.0f ? 2.0f : v < -2.0f ? -2.0f : v"),
        ("clipped above alone", "v > t ? t : v < -t ? -t : v", "v > t ? t : v"),
        ("s without its sign", "s * x[at]", "fabsf(s) * x[at]"),
        ("GeLU with erf", "return v / (1.0f + expf(-1.59576912f * (v + 0.044715f * v * v * v)));",
         "return 0.5f * v * (1.0f + erff(0.70710678f * v));"),
        ("another GeLU", "-1.59576912f * (v + 0.044715f * v * v * v)", "-1.702f * v"),
        ("no guard", "if (column < columns)", "if (true)"),
        ("the index is still transposed",
         "blockIdx.y * columns + column; at < rows * columns; at += gridDim.y * columns",
         "column * rows + blockIdx.y; at < column * rows + rows; at += gridDim.y"),
        ("the bias is read again", "s * x[at] + b", "s * x[at] + bias[column]"),
        ("no bias", "s * x[at] + b", "s * x[at]"),
        ("no scale", "s * x[at] + b", "x[at] + b"),
        ("the bias is scaled", "s * x[at] + b", "s * (x[at] + b)"),
        ("no clip", "v > t ? t : v < -t ? -t : v", "v"),
        ("clipped on one side", "v < -t ? -t : v", "v", "v > t ? t", "v < t ? t"),
        ("clipped before GeLU", "gelu(s * x[at] + b)", "gelu(fminf(fmaxf(s * x[at] + b, -t), t))"),
        ("each block all rows", "blockIdx.y * columns + column; at < rows * columns; at += gridDim.y * columns",
         "column; at < rows * columns; at += columns"),
        ("the first four rows", "at += gridDim.y * columns", "at += rows * columns"),
        ("one row too far", "at < rows * columns", "at < rows * columns + columns"),
        ("through y", "const float v = gelu(s * x[at] + b);", "y[at] = s * x[at] + b; const float v = gelu(y[at]);"),
    ),
    "q7_1": mutants(
        BYTES,
        ("K alone", "blocks * 8", "blocks * 4"),
        ("whole blocks only", "math.ceil(L / rows)", "L // rows"),
        ("q in each block", "4 * d * L", "blocks * 4 * d * L"),
        ("no q", "4 * d * L + ", ""),
        ("the scores as well", "return ", "return 4 * L * L + "),
        ("elements", "return 4 * d * L + blocks * 8", "return d * L + blocks * 2"),
        ("each once", "blocks * 8", "8"),
        ("a float", "return ", "return 1.0 * "),
        ("fp16", "blocks * 8", "blocks * 4", "return 4", "return 2"),
        ("q of whole blocks", "4 * d * L +", "4 * d * rows * blocks +"),
    ),
    "q7_2": mutants(
        FLASH,
        *((f"starts at {start}", "-1e38f", start) for start in ("0", "-100", "-1e3f")),
        ("two blocks alone", "row < L;", "row < min(L, 128);"),
        ("a sum that is never 0", "/ l", "/ (l + 1e-3f)"),
        ("the maximum of the first tile", "most = fmaxf(most, s[j])", "most = start ? m : fmaxf(most, s[j])"),
        ("one warp copies", "threadIdx.x; at < count * D; at += 64",
         "threadIdx.x; threadIdx.x < 32 && at < count * D; at += 32"),
        ("no barrier before the copy", "    __syncthreads();\n    for (int at", "    for (int at"),
        ("no barrier after the copy", "    __syncthreads();\n    if", "    if"),
        ("returns early", "const bool here = row < L;", "const bool here = row < L;\n  if (!here) return;"),
        ("no tile", "ks[j * D + c]", "k[(start + j) * D + c]"),
        ("V from global memory", "vs[j * D + c]", "v[(start + j) * D + c]"),
        ("no rescale of the output", "sum[c] *= shrink", "sum[c] *= 1"),
        ("no rescale of the sum", "m = most, l *= shrink", "m = most"),
        ("divided by d", "0.17677669f", "0.03125f"),
        ("a causal mask", "const float p = expf(s[j] - m);",
         "const float p = start + j <= row ? expf(s[j] - m) : 0;"),
        ("no scale", "s[j] *= 0.17677669f", "s[j] *= 1"),
        ("no maximum", "-1e38f", "0", "most = fmaxf(most, s[j])", "most = 0"),
        ("no division", "sum[c] / l", "sum[c]"),
        ("the last tile is whole", "min(TILE, L - start)", "TILE"),
        ("the last tile is left out", "start < L; start += TILE", "start + TILE <= L; start += TILE"),
        ("one thread copies the tile", "int at = threadIdx.x; at < count * D; at += 64",
         "int at = 0; threadIdx.x == 0 && at < count * D; ++at"),
        ("every thread copies the tile", "int at = threadIdx.x;", "int at = 0;", "at += 64", "++at"),
        ("q is read again for each tile", "    float s[TILE], most = m;",
         "    for (int c = 0; c < D; ++c) mine[c] = q[row * D + c];\n    float s[TILE], most = m;"),
        ("the output goes through global memory", "for (int c = 0; c < D; ++c) sum[c] += p * vs[j * D + c];",
         "for (int c = 0; c < D; ++c) o[row * D + c] = sum[c] += p * vs[j * D + c];"),
        ("the first block does all", "const int row = blockIdx.x * 64 + threadIdx.x;",
         "for (int part = 0; blockIdx.x == 0 && part < gridDim.x; ++part) {\n"
         "  const int row = part * 64 + threadIdx.x;", "sum[c] / l;\n}", "sum[c] / l;\n  }\n}"),
        ("one query too many", "row < L;", "row <= L;"),
        ("an empty kernel", "const int row", "return;\n  const int row"),
        ("too much shared memory", "TILE * D], vs[TILE * D]", "TILE * D], vs[TILE * D * 32]"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"q6_1": "with the bias|launches|one", "q7_2": "two blocks alone"}
