"""Answers to the histogram and the scan of Part 3 of Lab 7, right and wrong."""

from labs.mutants import mutants

PRIVATE = r'''
HISTOGRAM_CUDA = r"""
__global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int mine[256];
  const int t = threadIdx.x;
  mine[t] = 0;
  __syncthreads();
  const int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += step) atomicAdd(mine + x[i], 1);
  __syncthreads();
  if (mine[t] > 0) atomicAdd(bins + t, mine[t]);
}
"""
'''

ATOMICS = """
one_value = "c"

def histogram_atomics(N, blocks, bins):
    direct = shared = N
    return direct, shared, sum(bins for _ in range(blocks))
"""

ADDITIONS = """
def scan_additions(n):
    steps = [2**k for k in range(round(math.log2(n)))]
    back = [d for d in steps if d <= n // 4]
    return sum(n - d for d in steps), sum(n // (2 * d) for d in steps) + sum(n // (2 * d) - 1 for d in back)
"""

SCAN = r'''
SCAN_CUDA = r"""
__global__ void few_steps(const float* x, float* y, int n) {
  __shared__ float s[2][1024];
  int t = threadIdx.x, now = 0;
  s[0][t] = x[t];
  for (int d = 1; d < n; d *= 2, now = 1 - now) {
    __syncthreads();
    s[1 - now][t] = t >= d ? s[now][t] + s[now][t - d] : s[now][t];
  }
  y[t] = s[now][t];
}
__global__ void few_additions(const float* x, float* y, int n) {
  __shared__ float s[1024];
  const int t = threadIdx.x;
  s[t] = x[t];
  int d = 1;
  for (int left = n / 2; left > 0; left /= 2, d *= 2) {
    __syncthreads();
    if (t < left) s[2 * d * t + 2 * d - 1] += s[2 * d * t + d - 1];
  }
  for (d = n / 4; d > 0; d /= 2) {
    __syncthreads();
    if (t < n / (2 * d) - 1) s[2 * d * (t + 1) + d - 1] += s[2 * d * (t + 1) - 1];
  }
  __syncthreads();
  y[t] = s[t];
}
"""
'''

RIGHT = {
    "q3_4": [("empty bins are left out", PRIVATE)],
    "q3_5": [
        ("added up", ATOMICS),
        ("NumPy", "one_value = 'c'\ndef histogram_atomics(N, blocks, bins):\n"
         "    return np.array([N, N, blocks * bins], dtype=np.int64)\n"),
    ],
    "b3_6": [("step by step", ADDITIONS)],
    "b3_6_kernel": [("two copies, and threads in order", SCAN)],
}  # fmt: skip

WRONG = {
    "q3_4": mutants(
        PRIVATE,
        ("still not atomic", "atomicAdd(mine + x[i], 1)", "mine[x[i]] += 1"),
        ("no barrier after the zeros", "mine[t] = 0;\n  __syncthreads();", "mine[t] = 0;"),
        ("no barrier before the end", "__syncthreads();\n  if", "if"),
        ("no zeros", "mine[t] = 0;", ""),
        ("one warp of a block", "= gridDim.x * blockDim.x", "= gridDim.x * 32", "blockIdx.x * blockDim.x + t; i < n",
         "blockIdx.x * 32 + t; t < 32 && i < n"),
        ("one block", "int i = blockIdx.x * blockDim.x + t; i < n; i += step",
         "int i = t; blockIdx.x == 0 && i < n; i += 256"),
        ("each thread looks for its number",
         "int i = blockIdx.x * blockDim.x + t; i < n; i += step) atomicAdd(mine + x[i], 1)",
         "int i = blockIdx.x; i < n; i += gridDim.x) if (x[i] == t) atomicAdd(mine + t, 1)"),
        ("one thread adds the bins", "if (mine[t] > 0) atomicAdd(bins + t, mine[t]);",
         "for (int b = 0; t == 0 && b < 256; ++b) atomicAdd(bins + b, mine[b]);"),
        ("direct", "atomicAdd(mine + x[i], 1)", "atomicAdd(bins + x[i], 1)"),
        ("the bins are overwritten", "atomicAdd(bins + t, mine[t])", "bins[t] = mine[t]"),
        ("no atomic operation in the end", "atomicAdd(bins + t, mine[t])", "bins[t] += mine[t]"),
        ("one thread counts", "int i = blockIdx.x * blockDim.x + t; i < n; i += step",
         "int i = blockIdx.x; t == 0 && i < n; i += gridDim.x", "atomicAdd(mine + x[i], 1)", "++mine[x[i]]"),
        ("one turn", "for (int i = blockIdx.x * blockDim.x + t; i < n; i += step)",
         "int i = blockIdx.x * blockDim.x + t; if (i < n)"),
        ("each block counts all", "int i = blockIdx.x * blockDim.x + t;", "int i = t;", "i += step", "i += 256"),
        ("one too many", "i < n; i", "i <= n; i"),
        ("ones", "atomicAdd(bins + t, mine[t])", "atomicAdd(bins + t, 1)"),
        ("a byte of each count", "atomicAdd(bins + t, mine[t])", "atomicAdd(bins + t, mine[t] & 255)"),
        ("the first block alone", "if (mine[t] > 0)", "if (blockIdx.x == 0)"),
    ),
    "q3_5": mutants(
        ATOMICS,
        ("like a load", 'one_value = "c"', 'one_value = "a"'),
        ("added first", 'one_value = "c"', 'one_value = "b"'),
        ("no letter", 'one_value = "c"', 'one_value = "d"'),
        ("one block", "sum(bins for _ in range(blocks))", "bins"),
        ("both in shared memory", "direct = shared = N", "direct, shared = N, N + bins * blocks"),
        ("N in the end", "sum(bins for _ in range(blocks))", "N"),
        ("all together", "return direct, shared, sum(", "return direct + shared + sum("),
        ("fewer bins than numbers", "sum(bins for _ in range(blocks))", "min(N, bins)"),
        ("no direct ones", "return direct", "return 0"),
    ),
    "b3_6": mutants(
        ADDITIONS,
        ("all threads add", "sum(n - d for d in steps)", "n * len(steps)"),
        ("the tree alone", " + sum(n // (2 * d) - 1 for d in back)", ""),
        ("one step too few", "range(round(math.log2(n)))", "range(round(math.log2(n)) - 1)"),
        ("right at three sizes", "back = [", "return {2: (1, 1), 4: (5, 4), 8: (17, 11)}[n]\n    back = ["),
    ),
    "b3_6_kernel": mutants(
        SCAN,
        ("room for 512 numbers, few steps", "s[2][1024]", "s[2][512]"),
        ("room for 512 numbers, few additions", "float s[1024]", "float s[512]"),
        ("sums of integers, few steps", "float s[2][1024]", "int s[2][1024]"),
        ("sums of integers, few additions", "float s[1024]", "int s[1024]"),
        ("one copy", "s[1 - now]", "s[now]", "now = 1 - now", "now = now"),
        ("exclusive", "y[t] = s[now][t]", "y[t] = t ? s[now][t - 1] : 0"),
        ("all threads add", "t >= d ? s[now][t] + s[now][t - d] : s[now][t]",
         "s[now][t] + (t >= d ? s[now][t - d] : 0.0f)"),
        ("no way back", "for (d = n / 4;", "for (d = 0;"),
        ("the way back starts too late", "for (d = n / 4;", "for (d = n / 8;"),
        ("no barrier on the way back", "d > 0; d /= 2) {\n    __syncthreads();", "d > 0; d /= 2) {"),
        ("few steps twice", "__global__ void few_additions",
         "__global__ void few_additions(const float* x, float* y, int n) {\n  __shared__ float s[2][1024];\n"
         "  int t = threadIdx.x, now = 0;\n  s[0][t] = x[t];\n  for (int d = 1; d < n; d *= 2, now = 1 - now) {\n"
         "    __syncthreads();\n    s[1 - now][t] = t >= d ? s[now][t] + s[now][t - d] : s[now][t];\n  }\n"
         "  y[t] = s[now][t];\n}\n__global__ void another"),
        ("one thread", "if (t < left) s[2 * d * t + 2 * d - 1] += s[2 * d * t + d - 1];", "",
         "for (d = n / 4;", "if (t == 0) for (int i = 1; i < n; ++i) s[i] += s[i - 1];\n  for (d = 0;"),
        ("one kernel", "__global__ void few_additions", "__device__ void few_additions"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"b3_6": "right at three sizes", "q3_5": "like a load|added first"}
