"""Answers to Part 5 of Lab 7, the matrix product, right and wrong."""

from labs.mutants import mutants

SECTORS = """
sectors_x_is_column, sectors_x_is_row = 2, 8.5
"""

NAIVE = r'''
NAIVE_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[i * n + k], b[k * n + j], sum);
  c[i * n + j] = sum;
}
"""
'''

TILED = r'''
TILED_CUDA = r"""
constexpr int T = 16;
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[T * T], bs[T * T];
  int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * T + y, j = blockIdx.x * T + x, at = y * T + x;
  float sum = 0;
  for (int t = 0; t < n / T; ++t) {
    __syncthreads();
    as[at] = a[i * n + t * T + x];
    bs[at] = b[(t * T + y) * n + j];
    __syncthreads();
    for (int k = 0; k < T; ++k) sum += as[y * T + k] * bs[k * T + x];
  }
  c[i * n + j] = sum;
}
"""
'''

BLOCKED = r'''
BLOCKED_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][65], bs[16][64];
  const int x = threadIdx.x, y = threadIdx.y, t = y * 16 + x;
  float sum[16] = {};
  for (int start = 0; start < n; start += 16) {
    for (int at = t; at < 1024; at += 256) {
      as[at % 16][at / 16] = a[(blockIdx.y * 64 + at / 16) * n + start + at % 16];
      bs[at / 64][at % 64] = b[(start + at / 64) * n + blockIdx.x * 64 + at % 64];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float u[4], v[4];
      for (int q = 0; q < 4; ++q) u[q] = as[k][4 * y + q];
      for (int q = 0; q < 4; ++q) v[q] = bs[k][x + 16 * q];
      for (int e = 0; e < 16; ++e) sum[e] += u[e / 4] * v[e % 4];
    }
    __syncthreads();
  }
  for (int e = 0; e < 16; ++e) c[(blockIdx.y * 64 + 4 * y + e / 4) * n + blockIdx.x * 64 + x + 16 * (e % 4)] = sum[e];
}
"""
'''

FOUR_WIDE = r'''
BLOCKED_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float4 as[16][16], bs[16][16];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 64, column = blockIdx.x * 64;
  float4 sum[4] = {};
  for (int start = 0; start < n; start += 16) {
    const float* from = a + (row + 4 * y) * n + start + x;
    as[x][y] = make_float4(from[0], from[n], from[2 * n], from[3 * n]);
    bs[y][x] = *(const float4*)(b + (start + y) * n + column + 4 * x);
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      const float4 u = as[k][y], v = bs[k][x];
      const float us[4] = {u.x, u.y, u.z, u.w};
      for (int q = 0; q < 4; ++q)
        sum[q].x += us[q] * v.x, sum[q].y += us[q] * v.y, sum[q].z += us[q] * v.z, sum[q].w += us[q] * v.w;
    }
    __syncthreads();
  }
  for (int q = 0; q < 4; ++q) *(float4*)(c + (row + 4 * y + q) * n + column + 4 * x) = sum[q];
}
"""
'''

RIGHT = {
    "q5_1": [("a whole number", SECTORS)],
    "q5_2": [("fused", NAIVE), ("a tile already", TILED.replace("TILED_CUDA", "NAIVE_CUDA"))],
    "q5_3": [("barriers first, flat tiles", TILED)],
    "q5_4": [("rows together, columns apart", BLOCKED), ("float4", FOUR_WIDE)],
}

WRONG = {
    "q5_1": mutants(
        SECTORS,
        ("exchanged", "2, 8.5", "8.5, 2"),
        ("one row a warp", "2, 8.5", "2.5, 16.5"),
        ("both together", "2, 8.5", "4, 17"),
        ("a sector for each lane", "8.5", "32"),
        ("text", "8.5", '"8.5"'),
    ),
    "q5_2": mutants(
        NAIVE,
        ("still the slow order", "blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x",
         "blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y"),
        ("the first block does all",
         "int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;",
         "if (blockIdx.x + blockIdx.y > 0) return;\n  for (int i = threadIdx.y; i < n; i += 16)\n"
         "  for (int j = threadIdx.x; j < n; j += 16) {", "c[i * n + j] = sum;", "c[i * n + j] = sum;\n  }"),
        ("the product of b and a", "a[i * n + k], b[k * n + j]", "b[i * n + k], a[k * n + j]"),
        ("a transposed", "a[i * n + k]", "a[k * n + i]"),
        ("c transposed", "c[i * n + j]", "c[j * n + i]"),
        ("one too far", "k < n", "k <= n"),
        ("one too few", "k < n", "k < n - 1"),
        ("only the blocks are exchanged", "blockDim.y + threadIdx.y, j", "blockDim.y + threadIdx.x, j",
         "blockDim.x + threadIdx.x;", "blockDim.x + threadIdx.y;"),
    ),
    "q5_3": mutants(
        TILED,
        ("the first block does all", "i = blockIdx.y * T + y, j = blockIdx.x * T + x, at = y * T + x;",
         "at = y * T + x;\n  if (blockIdx.x + blockIdx.y > 0) return;\n"
         "  for (int i = y; i < n; i += T) for (int j = x; j < n; j += T) {",
         "float sum = 0;\n", "  float sum = 0;\n", "c[i * n + j] = sum;", "c[i * n + j] = sum;\n  }"),
        ("no first barrier", "    __syncthreads();\n    as", "    as"),
        ("no second barrier", "    __syncthreads();\n    for", "    for"),
        ("one row of threads loads", "    as[at] = a[i * n + t * T + x];\n    bs[at] = b[(t * T + y) * n + j];",
         "    for (int k = 0; y == 0 && k < T; ++k)\n      as[k * T + x] = a[(blockIdx.y * T + k) * n + t * T + x], "
         "bs[k * T + x] = b[(t * T + k) * n + j];"),
        ("no tile", "as[y * T + k]", "a[i * n + t * T + k]"),
        ("b from global memory", "bs[k * T + x]", "b[(t * T + k) * n + j]"),
        ("a column of the tile", "as[at] = a[i * n + t * T + x]", "as[at] = a[(i - y + x) * n + t * T + y]",
         "as[y * T + k]", "as[k * T + y]"),
        ("conflicts", "as[at] = a[", "as[x * T + y] = a[", "as[y * T + k]", "as[k * T + y]"),
        ("the tile is transposed", "as[y * T + k]", "as[k * T + y]"),
        ("half of the tile", "k < T", "k < T / 2"),
        ("one tile", "t < n / T", "t < 1"),
        ("all threads load the whole tile", "as[at] = a[i * n + t * T + x];",
         "for (int k = 0; k < 16; ++k) if (k == x) as[at] = a[i * n + t * T + k] + 0 * a[i * n];"),
    ),
    "q5_4": mutants(
        BLOCKED,
        ("one thread loads the tiles", "int at = t; at < 1024; at += 256", "int at = 0; t == 0 && at < 1024; ++at"),
        ("right up to 128", "sum[e] += u[e / 4]", "sum[e] += (n <= 128) * u[e / 4]"),
        ("four columns together", "bs[k][x + 16 * q]", "bs[k][4 * x + q]", "x + 16 * (e % 4)]", "4 * x + e % 4]"),
        ("from shared memory each time", "u[e / 4] * v[e % 4]", "as[k][4 * y + e / 4] * bs[k][x + 16 * (e % 4)]"),
        ("no first barrier", "    __syncthreads();\n#pragma", "#pragma"),
        ("no second barrier", "    }\n    __syncthreads();\n  }", "    }\n  }"),
        ("a row too few", "e < 16; ++e) c[", "e < 15; ++e) c["),
        ("rows and columns exchanged", "u[e / 4] * v[e % 4]", "u[e % 4] * v[e / 4]"),
        ("from global memory", "u[q] = as[k][4 * y + q]", "u[q] = a[(blockIdx.y * 64 + 4 * y + q) * n + start + k]"),
        ("each number twice", "at += 256", "at += 128"),
        ("half of the tile", "at < 1024", "at < 512"),
        ("nothing", 'BLOCKED_CUDA = r"""', 'BLOCKED_CUDA = ""\nr"""'),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"q5_1": "exchanged|one row a warp|both together|a sector for each lane", "q5_4": "right up to 128"}
