"""Answers to Part 4 of Lab 7, softmax of rows, right and wrong."""

from labs.mutants import changed, mutants

BYTES = """
def softmax_bytes(rows, columns, version):
    reads = 3 if version == "three passes" else 2 if version == "online" else 1
    return rows * columns * reads * 4
"""

READS = """
def softmax_bytes(rows, columns, version):
    read = 0
    for row in range(rows):
        for column in range(columns):
            read += 4 * ["", "registers", "online", "three passes"].index(version)
    return read
"""

ONLINE = r'''
ONLINE_CUDA = r"""
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float m = -1e38f, l = 0;
  for (int c = threadIdx.x; c < columns; c += 32) {
    const float v = x[(size_t)row * columns + c];
    if (v > m) {
      l *= expf(m - v);
      m = v;
    }
    l += expf(v - m);
  }
  for (int d = 1; d < 32; d *= 2) {
    const float other = __shfl_xor_sync(0xffffffff, m, d), theirs = __shfl_xor_sync(0xffffffff, l, d);
    const float most = fmaxf(m, other);
    l = l * expf(m - most) + theirs * expf(other - most);
    m = most;
  }
  for (int c = threadIdx.x; c < columns; c += 32) y[row * columns + c] = expf(x[row * columns + c] - m) / l;
}
"""
'''

MERGED = r'''
ONLINE_CUDA = r"""
struct Softmax { float m, l; };
__device__ Softmax merge(Softmax a, Softmax b) {
  float m = fmaxf(a.m, b.m);
  return {m, a.l * expf(a.m - m) + b.l * expf(b.m - m)};
}
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  const int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  Softmax s = {-3e38f, 0};
  for (int c = threadIdx.x; c < columns; c += 32) s = merge(s, Softmax{x[row * columns + c], 1});
  for (int d = 16; d > 0; d /= 2)
    s = merge(s, {__shfl_xor_sync(0xffffffff, s.m, d), __shfl_xor_sync(0xffffffff, s.l, d)});
  for (int c = threadIdx.x; c < columns; c += 32) y[row * columns + c] = expf(x[row * columns + c] - s.m) / s.l;
}
"""
'''

REGISTERS = r'''
REGISTER_CUDA = r"""
template <class F> __device__ float over_lanes(float v, F join) {
  for (int d = 16; d > 0; d /= 2) v = join(v, __shfl_xor_sync(0xffffffff, v, d));
  return v;
}
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  float v[32], m = -1e38f, l = 0;
  int count = 0;
  for (int c = lane; c < columns; c += 32) v[count++] = x[row * columns + c];
  for (int k = 0; k < count; ++k) m = fmaxf(m, v[k]);
  m = over_lanes(m, [](float a, float b) { return fmaxf(a, b); });
  for (int k = 0; k < count; ++k) l += v[k] = expf(v[k] - m);
  l = over_lanes(l, [](float a, float b) { return a + b; });
  for (int k = 0; k < count; ++k) y[row * columns + lane + 32 * k] = v[k] / l;
}
"""
'''

IN_SHARED = r'''
REGISTER_CUDA = r"""
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  __shared__ float kept[4][1024];
  const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
  float* mine = kept[threadIdx.y];
  float m = -1e38f, l = 0;
  for (int c = lane; row < rows && c < columns; c += 32) m = fmaxf(m, mine[c] = x[row * columns + c]);
  for (int d = 16; d > 0; d /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, d));
  for (int c = lane; row < rows && c < columns; c += 32) l += mine[c] = expf(mine[c] - m);
  for (int d = 16; d > 0; d /= 2) l += __shfl_xor_sync(0xffffffff, l, d);
  for (int c = lane; row < rows && c < columns; c += 32) y[row * columns + c] = mine[c] / l;
}
"""
'''

RIGHT = {
    "q4_1": [("one after the other", BYTES), ("read by read", READS)],
    "q4_2": [
        ("a branch, and lanes combined in pairs", ONLINE),
        ("starts at minus infinity", changed(ONLINE, "-1e38f", "-INFINITY", "    l = l * expf",
                                             "    if (most > -INFINITY) l = l * expf")),
        ("structures by value", MERGED),
        ("__expf and FLT_MAX", changed(ONLINE, "-1e38f", "-FLT_MAX", "c] = expf(", "c] = __expf(")),
    ],
    "q4_3": [
        ("a lambda", REGISTERS),
        ("in shared memory", IN_SHARED),
        ("helpers out of the given kernel", "REGISTER_CUDA = SOFTMAX3_CUDA.split('__global__')[0] + r" + changed(
            REGISTERS.split("= r", 1)[1], "m = over_lanes(m, [](float a, float b) { return fmaxf(a, b); })",
            "m = warp_max(m)", "l = over_lanes(l, [](float a, float b) { return a + b; })", "l = warp_sum(l)")),
    ],
}  # fmt: skip

WRONG = {
    "q4_1": mutants(
        BYTES,
        ("elements", " * 4", ""),
        ("two passes", "3 if", "2 if"),
        ("the writes as well", "reads * 4", "(reads + 1) * 4"),
        ("online once", "2 if version", "1 if version"),
        ("registers twice", "else 1", "else 2"),
        ("a float", "return rows", "return 1.0 * rows"),
    ),
    "q4_2": [
        ("at most 1024 columns", REGISTERS.replace("REGISTER_CUDA", "ONLINE_CUDA")),
        *mutants(
            ONLINE,
            *((f"starts at {start}", "-1e38f", start) for start in ("-1e3f", "-1e9f", "-1e20f", "-1e30f", "1e-38f")),
            ("small exponents are clipped", "expf(v - m)", "expf(fmaxf(v - m, -10.0f))"),
            ("one warp of each block",
             "const int row = blockIdx.x * blockDim.y + threadIdx.y;\n  if (row >= rows) return;\n",
             "const int first = blockIdx.x * 4;\n"
             "  for (int row = first; threadIdx.y == 0 && row < min(rows, first + 4); ++row) {\n",
             "\n}\n\"\"\"", "\n}\n}\n\"\"\""),
            ("one lane alone", "int c = threadIdx.x; c < columns; c += 32",
             "int c = 0; threadIdx.x == 0 && c < columns; ++c"),
            ("no rescale", "l *= expf(m - v);", ""),
            ("rescaled the other way", "l *= expf(m - v);", "l *= expf(v - m);"),
            ("starts at the smallest normal number", "-1e38f", "FLT_MIN"),
            ("minus infinity, unguarded", "-1e38f", "-INFINITY"),
            ("a barrier of the block", "for (int d = 1; d < 32", "__syncthreads();\n  for (int d = 1; d < 32"),
            ("no maximum", "if (v > m)", "if (false)", "-1e38f", "0"),
            ("sums of lanes as they are", "l = l * expf(m - most) + theirs * expf(other - most);", "l = l + theirs;"),
            ("one lane is left out", "d < 32", "d < 16"),
            ("starts at 0", "-1e38f", "0"),
            ("no division", " / l", ""),
            ("32 columns too far", "c < columns", "c < columns + 32"),
            ("a column too far", "c < columns", "c <= columns"),
            ("no guard of rows", "if (row >= rows) return;", ""),
            ("a pass more", "float m = -1e38f, l = 0;",
             "float m = -1e38f, l = 0;\n"
             "  for (int c = threadIdx.x; c < columns; c += 32) m = fmaxf(m, x[row * columns + c]);"),
            ("stored twice", "y[row * columns + c] = expf", "y[row * columns + c] = 0, y[row * columns + c] = expf"),
            ("an empty kernel", "if (row >= rows) return;", "return;"),
        ),
    ],
    "q4_3": mutants(
        REGISTERS,
        *((f"starts at {start}", "-1e38f", start) for start in ("-1e3f", "-1e5f", "-1e20f", "-1e30f")),
        ("one lane alone", "float v[32]", "float v[1024]",
         "int c = lane; c < columns; c += 32", "int c = 0; lane == 0 && c < columns; ++c", "lane + 32 * k", "k"),
        ("a coarse base", "expf(v[k] - m)", "exp2f(1.44f * (v[k] - m))"),
        ("online is not enough", "v[k] / l", "expf(x[row * columns + lane + 32 * k] - m) / l"),
        ("the sum of each lane", "l = over_lanes(l", "over_lanes(l"),
        ("the maximum of each lane", "m = over_lanes(m", "over_lanes(m"),
        ("no maximum", "expf(v[k] - m)", "expf(v[k])"),
        ("31 lanes", "d = 16", "d = 8"),
        ("neighbouring columns", "int c = lane; c < columns; c += 32",
         "int c = lane * columns / 32; c < (lane + 1) * columns / 32; ++c"),
        ("an array too short", "float v[32]", "float v[16]"),
        ("all lanes write the row", "lane + 32 * k", "32 * k"),
        ("no guard of rows", "if (row >= rows) return;", ""),
        ("nothing", 'REGISTER_CUDA = r"""', 'REGISTER_CUDA = 0\nr"""'),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"q4_1": "online once|registers twice"}
