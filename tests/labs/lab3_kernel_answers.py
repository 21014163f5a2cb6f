"""Answers to question 6 of Lab 3, the kernel, right and wrong."""

from labs.mutants import mutants

KERNEL = r'''
FLASH_ROWS, FLASH_THREADS = 32, 32
FLASH_CUDA = r"""
extern "C" __global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
                                         int L_q, int L_kv, float scale, int is_causal) {
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row >= L_q) return;
  const float* q = Q + ((size_t)blockIdx.y * L_q + row) * 64;
  float* o = O + ((size_t)blockIdx.y * L_q + row) * 64;
  const int end = is_causal ? row + 1 + L_kv - L_q : L_kv;
  float m = -1e38f, l = 0;
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
  for (int c = 0; c < 64; ++c) o[c] /= l;
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

# Wrong numbers.
WRONG_VALUES = mutants(
    KERNEL,
    ("no scale", "s *= scale;", ""),
    ("O is not rescaled", "shrink * o[c] + p", "o[c] + p"),
    ("causal is ignored", "is_causal ? row + 1 + L_kv - L_q : L_kv", "L_kv"),
    ("the first query beside the first key", "row + 1 + L_kv - L_q", "row + 1"),
    ("no maximum", "-1e38f", "0", "fmaxf(m, s)", "m"),
    ("the log-sum-exp without the maximum", "= m + logf(l)", "= logf(l)"),
    ("log2 of the sum", "= m + logf(l)", "= m + log2f(l)"),
    ("the last keys are left out", ": L_kv;", ": L_kv / 32 * 32;"),
    ("one of the batch only", "(size_t)blockIdx.y", "(size_t)0"),
    ("writes into K", "float s = 0;", "float s = 0; ((float*)k)[0] += 1;"),
    ("a memory fault", "float m = -1e38f", "*(volatile float*)16 = 1; float m = -1e38f"),
)

RIGHT = {
    "q6": [("no shared memory at all", KERNEL)],
}  # fmt: skip

WRONG = {
    "q6": [
        ("empty", EMPTY_KERNEL),
        *WRONG_VALUES,
        ("Python", 'FLASH_ROWS = FLASH_THREADS = 64\nFLASH_CUDA = "def flash_forward(): pass"\n'),
        ("an empty text", 'FLASH_ROWS = FLASH_THREADS = 64\nFLASH_CUDA = ""\n'),
        *mutants(
            KERNEL,
            ("a forgotten semicolon", "float s = 0;", "float s = 0"),
            ("an unknown name", "expf(s - most)", "expp(s - most)"),
            ("another name", "void flash_forward", "void flash_fwd"),
            ("a parameter too few", ", float scale,", ", ", "s *= scale;", "s *= 0.125f;"),
            ("half precision", "const float* Q", "const double* Q", "const float* q = Q", "const double* q = Q"),
            ("no kernel", "__global__", "__device__"),
            ("a block of 2048 threads", "= 32, 32", "= 32, 2048"),
        ),
    ],
}  # fmt: skip
