"""Answers to question 6 of Lab 3, the kernel, right and wrong."""

from labs.mutants import mutants

# One thread a query, a tile of K and V in shared memory.
TILED = r'''
FLASH_ROWS, FLASH_THREADS = 64, 64
FLASH_CUDA = r"""
__global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* lse,
                              int L_q, int L_kv, float scale, int is_causal) {
  __shared__ float keys[16][64], values[16][64];
  const int row = blockIdx.x * blockDim.x + threadIdx.x, batch = blockIdx.y;
  float q[64], o[64], m = -3e38f, l = 0;
  for (int c = 0; c < 64; ++c) {
    q[c] = row < L_q ? Q[(batch * L_q + row) * 64 + c] * scale : 0;
    o[c] = 0;
  }
  const int seen = is_causal ? row + 1 + L_kv - L_q : L_kv;
  for (int start = 0; start < L_kv; start += 16) {
    for (int at = threadIdx.x; at < 16 * 64; at += blockDim.x) {
      const int key = start + at / 64;
      keys[at / 64][at % 64] = key < L_kv ? K[(batch * L_kv + key) * 64 + at % 64] : 0;
      values[at / 64][at % 64] = key < L_kv ? V[(batch * L_kv + key) * 64 + at % 64] : 0;
    }
    __syncthreads();
    for (int j = 0; j < 16 && start + j < min(seen, L_kv) && row < L_q; ++j) {
      float s = 0;
      for (int c = 0; c < 64; ++c) s += q[c] * keys[j][c];
      const float most = fmaxf(m, s), shrink = expf(m - most), p = expf(s - most);
      for (int c = 0; c < 64; ++c) o[c] = shrink * o[c] + p * values[j][c];
      l = shrink * l + p;
      m = most;
    }
    __syncthreads();
  }
  if (row >= L_q) return;
  for (int c = 0; c < 64; ++c) O[(batch * L_q + row) * 64 + c] = o[c] / l;
  lse[batch * L_q + row] = m + logf(l);
}
"""
'''

# A warp has one query at a time, each of its lanes two columns; keys and values pass through shared memory.
WARPS = r'''
FLASH_ROWS, FLASH_THREADS = 32, 128
FLASH_CUDA = r"""
__global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* lse,
                              int L_q, int L_kv, float scale, int is_causal) {
  constexpr int kKeys = 32;
  __shared__ float2 keys[kKeys][32], values[kKeys][32];
  __shared__ float2 sums[32][32];
  __shared__ float most[32], total[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * 32;
  Q += (size_t)blockIdx.y * L_q * 64, O += (size_t)blockIdx.y * L_q * 64, lse += blockIdx.y * L_q;
  K += (size_t)blockIdx.y * L_kv * 64, V += (size_t)blockIdx.y * L_kv * 64;
  for (int r = warp; r < 32; r += 4) {
    sums[r][lane] = make_float2(0, 0);
    if (lane == 0) most[r] = -3e38f, total[r] = 0;
  }
  float2 q[8];
  for (int i = 0; i < 8; ++i) {
    const int row = first + warp + 4 * i;
    q[i] = row < L_q ? ((const float2*)Q)[row * 32 + lane] : make_float2(0, 0);
  }
  for (int start = 0; start < L_kv; start += kKeys) {
    const int count = min(kKeys, L_kv - start);
    for (int j = warp; j < count; j += 4) {
      keys[j][lane] = ((const float2*)K)[(start + j) * 32 + lane];
      values[j][lane] = ((const float2*)V)[(start + j) * 32 + lane];
    }
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      const int r = warp + 4 * i, row = first + r;
      const int visible = min(count, (is_causal ? row + 1 + L_kv - L_q : L_kv) - start);
      if (row >= L_q) continue;
      for (int j = 0; j < visible; ++j) {
        float s = q[i].x * keys[j][lane].x + q[i].y * keys[j][lane].y;
        for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(0xffffffff, s, step);
        s *= scale;
        const float before = most[r], sum = total[r], now = fmaxf(before, s), shrink = expf(before - now);
        const float p = expf(s - now);
        __syncwarp();
        sums[r][lane].x = shrink * sums[r][lane].x + p * values[j][lane].x;
        sums[r][lane].y = shrink * sums[r][lane].y + p * values[j][lane].y;
        if (lane == 0) most[r] = now, total[r] = shrink * sum + p;
        __syncwarp();
      }
    }
    __syncthreads();
  }
  for (int r = warp; r < 32 && first + r < L_q; r += 4) {
    ((float2*)O)[(first + r) * 32 + lane] = make_float2(sums[r][lane].x / total[r], sums[r][lane].y / total[r]);
    if (lane == 0) lse[first + r] = most[r] + logf(total[r]);
  }
}
"""
'''

# No shared memory: right values, and each thread reads all keys for itself.
UNTILED = r'''
FLASH_ROWS, FLASH_THREADS = 32, 32
FLASH_CUDA = r"""
extern "C" __global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
                                         int L_q, int L_kv, float scale, int is_causal) {
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row >= L_q) return;
  const float* q = Q + ((size_t)blockIdx.y * L_q + row) * 64;
  float o[64], m = -1e38f, l = 0;
  const int end = is_causal ? row + 1 + L_kv - L_q : L_kv;
  for (int c = 0; c < 64; ++c) o[c] = 0;
  for (int j = 0; j < end; ++j) {
    const float* k = K + ((size_t)blockIdx.y * L_kv + j) * 64;
    const float* v = V + ((size_t)blockIdx.y * L_kv + j) * 64;
    float s = 0;
    for (int c = 0; c < 64; ++c) s += q[c] * k[c];
    s *= scale;
    const float most = fmaxf(m, s), shrink = expf(m - most), p = expf(s - most);
    for (int c = 0; c < 64; ++c) o[c] = shrink * o[c] + p * v[c];
    l = shrink * l + p;
    m = most;
  }
  for (int c = 0; c < 64; ++c) O[((size_t)blockIdx.y * L_q + row) * 64 + c] = o[c] / l;
  L[(size_t)blockIdx.y * L_q + row] = m + logf(l);
}
"""
'''

EMPTY_KERNEL = r'''
FLASH_ROWS = FLASH_THREADS = 64
FLASH_CUDA = r"""
__global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* lse,
                              int L_q, int L_kv, float scale, int is_causal) {}
"""
'''

# What a kernel on shared memory is most often wrong in, and words of what its grade has to say.
BROKEN = [
    ("empty", EMPTY_KERNEL, "No thread wrote to global memory"),
    *(
        (name, code, said)
        for (name, code), said in zip(
            mutants(
                TILED,
                ("no barrier before the tile is used", "__syncthreads();\n    for (int j", "for (int j"),
                ("no barrier before the next tile", "    __syncthreads();\n  }\n", "  }\n"),
                ("an early return before a barrier", "  float q[64]", "  if (row >= L_q) return;\n  float q[64]"),
                ("no rescale", "shrink * o[c] + p", "o[c] + p"),
                ("more rows than threads", "= 64, 64", "= 64, 32"),
                ("an off-by-one guard", "row < L_q ? Q", "row <= L_q ? Q"),
                ("an off-by-one guard of the tile", "key < L_kv ? K", "key <= L_kv ? K"),
                (
                    "a race: two threads write each element, and the same",
                    "      keys[at / 64]",
                    "      const int next = (at + 1) % 64;\n"
                    "      keys[at / 64][next] = key < L_kv ? K[(batch * L_kv + key) * 64 + next] : 0;\n"
                    "      keys[at / 64]",
                ),
            ),
            (
                "has written",
                "one place of shared memory",
                "ended before a barrier",
                "elements are off",
                "was not written",
                "at Q[",
                "at K[",
                "one place of shared memory",
            ),
            strict=True,
        )
    ),
]

# Wrong numbers.
WRONG_VALUES = mutants(
    TILED,
    ("no scale", "* scale :", ":"),
    ("causal is ignored", "is_causal ? row + 1 + L_kv - L_q : L_kv", "L_kv"),
    ("the first query beside the first key", "row + 1 + L_kv - L_q", "row + 1"),
    ("no maximum", "-3e38f", "0", "fmaxf(m, s)", "m"),
    ("m starts at 0", "-3e38f", "0"),
    ("m starts at -1000", "-3e38f", "-1e3f"),
    ("the log-sum-exp without the maximum", "= m + logf(l)", "= logf(l)"),
    ("log2 of the sum", "= m + logf(l)", "= m + log2f(l)"),
    ("the last keys are left out", "start < L_kv;", "start + 16 <= L_kv;"),
    ("one of the batch only", "batch = blockIdx.y", "batch = 0"),
    ("writes into K", "float s = 0;", "float s = 0; ((float*)K)[0] += 1;"),
    ("writes into a K that is not const", "const float* K", "float* K", "float s = 0;", "float s = 0; K[0] = 1;"),
    ("a memory fault", "float q[64]", "*(volatile float*)16 = 1; float q[64]"),
)

# Right numbers by too much traffic.
WASTEFUL = [
    ("no shared memory at all", UNTILED),
    *mutants(
        UNTILED,
        ("sums in global memory", "float o[64], m", "float* o = O + ((size_t)blockIdx.y * L_q + row) * 64; float m"),
    ),
    *mutants(
        TILED,
        ("every thread reads the values itself", "p * values[j][c]", "p * V[(batch * L_kv + start + j) * 64 + c]"),
        ("the query is read again", "s += q[c] * keys", "s += scale * Q[(batch * L_q + row) * 64 + c] * keys"),
        (
            "scores go through lse",
            "      const float most",
            "      lse[batch * L_q + row] = s;\n      const float most",
        ),
        (
            "one thread copies the tiles",
            "int at = threadIdx.x; at < 16 * 64; at += blockDim.x",
            "int at = 0; threadIdx.x == 0 && at < 16 * 64; ++at",
        ),
        ("blocks of one query", "= 64, 64", "= 1, 1"),
    ),
]

RIGHT = {
    "q6": [("tiles of 16 keys", TILED), ("a warp a query", WARPS)],
}  # fmt: skip

WRONG = {
    "q6": [
        *((name, code) for name, code, _ in BROKEN),
        *WRONG_VALUES,
        *WASTEFUL,
        ("Python", 'FLASH_ROWS = FLASH_THREADS = 64\nFLASH_CUDA = "def flash_forward(): pass"\n'),
        ("an empty text", 'FLASH_ROWS = FLASH_THREADS = 64\nFLASH_CUDA = ""\n'),
        *mutants(
            TILED,
            ("a forgotten semicolon", "float s = 0;", "float s = 0"),
            ("an unknown name", "expf(s - most)", "expp(s - most)"),
            ("another name", "void flash_forward", "void flash_fwd"),
            ("a parameter too few", ", float scale,", ", ", "* scale :", "* 0.125f :"),
            ("double precision", "const float* Q", "const double* Q"),
            ("no kernel", "__global__", "__device__"),
            ("a block of 2048 threads", "= 64, 64", "= 64, 2048"),
        ),
    ],
}  # fmt: skip
