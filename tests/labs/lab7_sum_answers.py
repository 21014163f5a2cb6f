"""Answers to the sums of Part 3 of Lab 7, right and wrong."""

from labs.mutants import mutants

TREE = """
def tree(T):
    steps = round(math.log2(T))
    return [steps + 1, T - 1]
"""

SUM = r'''
SUM_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  extern __shared__ float unused[];
  __shared__ float s[256];
  const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = 0;
  if (i < n) s[t] = x[i];
  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
    __syncthreads();
    if (t < half) s[t] = s[t] + s[t + half];
  }
  if (t == 0) atomicAdd(total, s[0]);
}
"""
'''

TWO_PHASES = r'''
SUM_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (t < 32) {
    float v = 0;
    for (int k = t; k < 256; k += 32) v += s[k];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
    if (t == 0) atomicAdd(total, v);
  }
}
"""
'''

RECURSIVE = r'''
SUM_CUDA = r"""
template <int HALF> __device__ void fold(float* s, int t) {
  if constexpr (HALF > 0) {
    if (t < HALF) s[t] += s[t + HALF];
    __syncthreads();
    fold<HALF / 2>(s, t);
  }
}
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  fold<128>(s, t);
  if (t == 0) atomicAdd(total, s[0]);
}
"""
'''

WARP_BARRIERS = r'''
SUM_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int half = 128; half >= 32; half >>= 1) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  for (int half = 16; t < 32 && half > 0; half >>= 1) {
    float v = t < half ? s[t + half] : 0;
    __syncwarp();
    s[t] += v;
    __syncwarp();
  }
  if (!t) atomicAdd(&total[0], *s);
}
"""
'''

SHUFFLES = r'''
shuffle_order = "b"
SHUFFLE_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float warps[8];
  unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
  float v = i < n ? x[i] : 0.0f;
  for (int d = 1; d < 32; d *= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  if (t % 32 == 0) warps[t / 32] = v;
  __syncthreads();
  if (t == 0) {
    v = 0;
    for (int w = 0; w < 8; ++w) v += warps[w];
    atomicAdd(total, v);
  }
}
"""
'''

TEXTBOOK = r'''
shuffle_order = "b"
SHUFFLE_CUDA = r"""
__inline__ __device__ float warpReduceSum(float val) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}
__global__ void sum(const float* x, float* total, int n) {
  static __shared__ float shared[32];
  int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize, i = blockIdx.x * blockDim.x + threadIdx.x;
  float val = i < n ? x[i] : 0;
  val = warpReduceSum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
  if (wid == 0) val = warpReduceSum(val);
  if (threadIdx.x == 0) atomicAdd(total, val);
}
"""
'''

RIGHT = {
    "q3_1": [
        ("a logarithm", TREE),
        ("NumPy", "def tree(T):\n    return np.array([1 + int(np.log2(T)), T - 1])\n"),
    ],
    "q3_2": [
        ("barriers first", SUM),
        ("a warp ends it", TWO_PHASES),
        ("barriers of a warp", WARP_BARRIERS),
        ("a recursive template", RECURSIVE),
        ("shuffles", SHUFFLES.split("\n", 2)[2].replace("SHUFFLE_CUDA", "SUM_CUDA")),
    ],
    "q3_3": [("a butterfly, and one thread in the end", SHUFFLES), ("the textbook's", TEXTBOOK)],
}

WRONG = {
    "q3_1": mutants(
        TREE,
        ("no barrier after the store", "steps + 1", "steps"),
        ("no barrier in the last step", "steps + 1", "max(steps, 1)"),
        ("a float of the logarithm", "round(math.log2(T))", "math.log2(T)"),
        ("the natural logarithm", "round(math.log2(T))", "round(math.log(T))"),
        ("a dict", "[steps + 1, T - 1]", "{'barriers': steps + 1, 'additions': T - 1}"),
        ("T additions", "T - 1", "T"),
        ("all threads add in each step", "T - 1", "T * steps"),
        ("half of them", "T - 1", "T // 2"),
        ("the other way round", "[steps + 1, T - 1]", "[T - 1, steps + 1]"),
    ),
    "q3_2": [
        *mutants(
            SUM,
            ("one thread adds", "  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {\n    __syncthreads();\n"
             "    if (t < half) s[t] = s[t] + s[t + half];\n  }",
             "  __syncthreads();\n  for (int j = 1; t == 0 && j < 256; ++j) s[0] += s[j];"),
            ("one thread adds float4s", "float s[256]", "float __align__(16) s[256]",
             "  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {\n    __syncthreads();\n"
             "    if (t < half) s[t] = s[t] + s[t + half];\n  }",
             "  __syncthreads();\n  float v = 0;\n  for (int j = 0; t == 0 && j < 64; ++j) {\n"
             "    float4 u = ((float4*)s)[j];\n    v += u.x + u.y + u.z + u.w;\n  }\n  if (t == 0) s[0] = v;"),
            ("four threads add",
             "  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {\n    __syncthreads();\n"
             "    if (t < half) s[t] = s[t] + s[t + half];\n  }",
             "  __syncthreads();\n  float v = 0;\n  for (int j = t; t < 4 && j < 256; j += 4) v += s[j];\n"
             "  __syncthreads();\n  if (t < 4) s[t] = v;\n  __syncthreads();\n"
             "  if (t == 0) s[0] += s[1] + s[2] + s[3];"),
            ("one thread loads", "if (i < n) s[t] = x[i];",
             "for (unsigned j = i; t == 0 && j < i + 256 && j < n; ++j) s[0] += x[j];"),
            ("sums of integers", "float s[256]", "int s[256]"),
            ("rounded", "s[t] = x[i]", "s[t] = rintf(x[i])"),
            ("right below 5000", "atomicAdd(total, s[0])", "atomicAdd(total, n < 5000 ? s[0] : 0.0f)"),
            ("no barrier", "__syncthreads();", ""),
            ("one barrier", "    __syncthreads();\n", "", "  for (unsigned", "  __syncthreads();\n  for (unsigned"),
            ("no guard", "if (i < n) ", ""),
            ("threads without an element return", "s[t] = 0;\n  if (i < n) s[t] = x[i];",
             "if (i >= n) return;\n  s[t] = x[i];"),
            ("a mean", "atomicAdd(total, s[0])", "atomicAdd(total, s[0] / n)"),
            ("all threads add", "if (t < half) ", "if (t + half < 256) "),
            ("one step too few", "half > 0", "half > 1"),
            ("an atomic operation for each thread", "if (t == 0) atomicAdd(total, s[0]);",
             "if (i < n) atomicAdd(total, x[i]);"),
            ("not atomic", "atomicAdd(total, s[0])", "*total = s[0]"),
            ("the last block", "atomicAdd(total, s[0])", "*total += s[0]; if (blockIdx.x == 0) atomicAdd(total, 0.0f)"),
            ("a barrier in a branch", "__syncthreads();\n    if (t < half) ",
             "if (t >= half) continue;\n    __syncthreads();\n    "),
            ("uninitialised", "s[t] = 0;\n", ""),
            ("two barriers in each step", "__syncthreads();", "__syncthreads(); __syncthreads();"),
            ("still interleaved", "half = blockDim.x / 2; half > 0; half >>= 1", "half = 1; half < 256; half *= 2",
             "if (t < half) s[t] = s[t] + s[t + half];",
             "if (2 * half * t < 256) s[2 * half * t] += s[2 * half * t + half];"),
            ("every second thread", "half = blockDim.x / 2; half > 0; half >>= 1", "half = 1; half < 256; half *= 2",
             "if (t < half) s[t] = s[t] + s[t + half];",
             "if (t % (2 * half) == 0) s[t] += s[t + half]; __syncthreads();"),
        ),
    ],
    "q3_3": mutants(
        SHUFFLES,
        ("one warp loads", "float v = i < n ? x[i] : 0.0f;\n", "float v = 0;\n"
         "  for (unsigned j = i; t < 32 && j < i + 256 && j < n; j += 32) v += x[j];\n"),
        ("one lane of each warp loads", "float v = i < n ? x[i] : 0.0f;\n  for (int d = 1; d < 32; d *= 2) v",
         "float v = 0;\n  for (unsigned j = i; t % 32 == 0 && j < i + 32 && j < n; ++j) v += x[j];\n"
         "  for (int d = 1; d < 1; d *= 2) v"),
        ("sums of integers", "float v = i", "int v = i"),
        ("in step", 'shuffle_order = "b"', 'shuffle_order = "a"'),
        ("atomic", 'shuffle_order = "b"', 'shuffle_order = "c"'),
        ("no letter", 'shuffle_order = "b"', "shuffle_order = 1"),
        ("no barrier", "__syncthreads();", ""),
        ("one lane too few", "d < 32", "d < 16"),
        ("the old shuffle", "__shfl_xor_sync(0xffffffff, v, d)", "__shfl_xor(v, d)"),
        ("half of the mask", "0xffffffff", "0xffff"),
        ("only lanes with an element shuffle", "for (int d = 1; d < 32; d *= 2) v",
         "if (i < n) for (int d = 1; d < 32; d *= 2) v"),
        ("an atomic operation for each warp", "if (t % 32 == 0) warps[t / 32] = v;",
         "if (t % 32 == 0) atomicAdd(total, v); warps[t / 32] = 0;"),
        ("every lane stores", "if (t % 32 == 0) warps", "warps"),
        ("a tree in shared memory", "for (int d = 1; d < 32; d *= 2) v += __shfl_xor_sync(0xffffffff, v, d);",
         "__shared__ float s[256]; s[t] = v; for (int d = 16; d > 0; d /= 2) { __syncthreads(); "
         "if (t % 32 < d) s[t] += s[t + d]; } v = s[t];"),
        ("seven warps", "w < 8", "w < 7"),
        ("no kernel", "__global__", "__device__"),
        ("nothing", 'SHUFFLE_CUDA = r"""', 'SHUFFLE_CUDA = None\nr"""'),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"q3_2": "right below 5000", "q3_3": "in step|atomic"}
