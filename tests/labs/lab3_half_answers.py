"""Answers to the bonus question 6.3 of Lab 3, a kernel in 16 bits with a gradient, right and wrong."""

from labs.mutants import mutants

# One thread a query, and tiles of 32 keys in 16 bits, read two numbers at a time. The gradient is computed by rl's
# operations in float32, without flash_backward.
HALF = r'''
FLASH_ROWS, FLASH_THREADS = 64, 64
HALF_CUDA = r"""
#include <cuda_fp16.h>
__global__ void flash_forward(const half* Q, const half* K, const half* V, half* O, float* lse,
                              int L_q, int L_kv, float scale, int is_causal) {
  __shared__ half2 keys[32][32], values[32][32];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t query = ((size_t)blockIdx.y * L_q + row) * 32;
  const half2* k = (const half2*)K + (size_t)blockIdx.y * L_kv * 32;
  const half2* v = (const half2*)V + (size_t)blockIdx.y * L_kv * 32;
  float2 q[32], o[32];
  float m = -3e38f, l = 0;
  for (int c = 0; c < 32; ++c) {
    q[c] = row < L_q ? __half22float2(((const half2*)Q)[query + c]) : make_float2(0, 0);
    o[c] = make_float2(0, 0);
  }
  const int seen = is_causal ? row + 1 + L_kv - L_q : L_kv;
  for (int start = 0; start < L_kv; start += 32) {
    const int count = min(32, L_kv - start);
    for (int at = threadIdx.x; at < count * 32; at += blockDim.x) {
      keys[at / 32][at % 32] = k[start * 32 + at];
      values[at / 32][at % 32] = v[start * 32 + at];
    }
    __syncthreads();
    for (int j = 0; j < min(count, seen - start) && row < L_q; ++j) {
      float s = 0;
      for (int c = 0; c < 32; ++c) {
        const float2 key = __half22float2(keys[j][c]);
        s += q[c].x * key.x + q[c].y * key.y;
      }
      s *= scale;
      const float most = fmaxf(m, s), shrink = expf(m - most), p = expf(s - most);
      for (int c = 0; c < 32; ++c) {
        const float2 value = __half22float2(values[j][c]);
        o[c].x = shrink * o[c].x + p * value.x;
        o[c].y = shrink * o[c].y + p * value.y;
      }
      l = shrink * l + p;
      m = most;
    }
    __syncthreads();
  }
  if (row >= L_q) return;
  for (int c = 0; c < 32; ++c) ((half2*)O)[query + c] = __floats2half2_rn(o[c].x / l, o[c].y / l);
  lse[(size_t)blockIdx.y * L_q + row] = m + logf(l);
}
"""


class FlashKernel(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        B, L_q, d = Q.shape
        L_kv = K.shape[1]
        O = rl.zeros(B, L_q, d, dtype="float16", device=Q.device)
        lse = rl.zeros(B, L_q, device=Q.device)
        kernel = rl.cuda.compile(HALF_CUDA)["flash_forward"]
        kernel(((L_q + 63) // 64, B), 64, Q, K, V, O, lse, L_q, L_kv, 0.125, 1 if is_causal else 0)
        ctx.save_for_backward(Q, K, V, O, lse)
        ctx.is_causal = is_causal
        return O

    @staticmethod
    def backward(ctx, dO):
        Q, K, V, O, lse = (x.to("float32") for x in ctx.saved_tensors)
        dO = dO.to("float32")
        S = Q @ K.mT * 0.125 - lse.unsqueeze(-1)
        if ctx.is_causal:
            query = rl.arange(Q.shape[1], device=Q.device).unsqueeze(1) + K.shape[1] - Q.shape[1]
            S = rl.where(rl.arange(K.shape[1], device=Q.device).unsqueeze(0) <= query, S, float("-inf"))
        P = rl.exp(S)
        dS = P * (dO @ V.mT - (O * dO).sum(-1, keepdim=True)) * 0.125
        dQ, dK, dV = dS @ K, dS.mT @ Q, P.mT @ dO
        return dQ.to("float16"), dK.to("float16"), dV.to("float16"), None


def kernel_attention(q, k, v, is_causal=False):
    return FlashKernel.apply(q, k, v, is_causal)


def kernel_gradients(q, k, v, dO, is_causal=False):
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    return rl.autograd.grad(kernel_attention(*inputs, is_causal), inputs, dO)
'''

# No kernel at all.
LIBRARY = """
def kernel_attention(q, k, v, is_causal=False):
    return rl.attention(q, k, v, is_causal=is_causal)


def kernel_gradients(q, k, v, dO, is_causal=False):
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    return rl.autograd.grad(kernel_attention(*inputs, is_causal), inputs, dO)
"""

# A kernel that writes what is there already, from the library.
FILLED = '''
FLASH_ROWS, FLASH_THREADS = 64, 64
HALF_CUDA = r"""
#include <cuda_fp16.h>
__global__ void flash_forward(const half* Q, const half* K, const half* V, half* O, float* lse,
                              int L_q, int L_kv, float scale, int is_causal) {
  if (threadIdx.x == 0) lse[0] = lse[0];
}
"""


class FlashKernel(rl.autograd.Function):
    pass


def kernel_attention(q, k, v, is_causal=False):
    wide = (x.detach().to("float32") for x in (q, k, v))
    O, lse = rl.attention(*wide, is_causal=is_causal, return_lse=True)
    O, (B, L_q, d) = O.to("float16"), q.shape
    kernel = rl.cuda.compile(HALF_CUDA)["flash_forward"]
    kernel(1, 32, q, k, v, O, lse, L_q, k.shape[1], d**-0.5, int(is_causal))
    return O


def kernel_gradients(q, k, v, dO, is_causal=False):
    kernel_attention(q, k, v, is_causal)
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    return rl.autograd.grad(rl.attention(*inputs, is_causal=is_causal), inputs, dO)
'''

# Its launches are caught when something was found in them.
CAUGHT = HALF.replace("        kernel(((L_q", "        try:\n            kernel(((L_q").replace(
    "        ctx.save_for", "        except rl.cuda.KernelError:\n            pass\n        ctx.save_for"
)

ROUNDED = mutants(
    HALF,
    (
        "weights in 16 bits, as tensor cores take them",
        "      for (int c = 0; c < 32; ++c) {\n        const float2 value",
        "      const float w = __half2float(__float2half(p));\n"
        "      for (int c = 0; c < 32; ++c) {\n        const float2 value",
        "+ p * value", "+ w * value",
    ),
)  # fmt: skip

RIGHT = {"b6_3": [("two numbers at a time, the gradient by rl's operations", HALF), *ROUNDED]}

WRONG = {
    "b6_3": [
        ("the library", LIBRARY),
        ("an empty kernel on results of the library", FILLED),
        *mutants(
            CAUGHT,
            ("a race, and its error caught", "  if (row >= L_q)", "  keys[0][0] = half2();\n  if (row >= L_q)"),
        ),
        *mutants(
            HALF,
            (
                "float32 inside of the Function",
                "kernel(((L_q",
                "O = O.to('float32')\n        Q, K, V = (x.to('float32') for x in (Q, K, V))\n        kernel(((L_q",
                "const half* Q, const half* K, const half* V, half* O",
                "const float* Q, const float* K, const float* V, float* O",
                "half2* k", "float2* k", "half2* v", "float2* v", "half2 keys", "float2 keys", "half2*)", "float2*)",
                "__half22float2", "", "__floats2half2_rn", "make_float2", "return O\n", "return O.to('float16')\n",
            ),
            ("the sum is a half", "l = shrink * l + p;", "l = __half2float(__float2half(shrink * l + p));"),
            ("the maximum is a half", "m = most;", "m = __half2float(__float2half(most));"),
            (
                "the sums of O are halves",
                "o[c].x = shrink * o[c].x + p * value.x;",
                "o[c].x = __half2float(__float2half(shrink * o[c].x + p * value.x));",
            ),
            ("causal is ignored", "is_causal ? row + 1 + L_kv - L_q : L_kv", "L_kv"),
            ("no scale", "s *= scale;", ""),
            (
                "O is written after each tile",
                "    __syncthreads();\n  }\n  if (row",
                "    for (int c = 0; c < 32 && row < L_q; ++c)\n"
                "      ((half2*)O)[query + c] = __floats2half2_rn(o[c].x / l, o[c].y / l);\n"
                "    __syncthreads();\n  }\n  if (row",
            ),
            ("no barrier before the next tile", "    __syncthreads();\n  }\n", "  }\n"),
            ("an off-by-one guard", "row < L_q ? __half", "row <= L_q ? __half"),
            (
                "every thread reads the values itself",
                "__half22float2(values[j][c])",
                "__half22float2(v[(start + j) * 32 + c])",
            ),
            (
                "two launches",
                "        ctx.save_for",
                "        kernel(((L_q + 63) // 64, B), 64, Q, K, V, O, lse, L_q, L_kv, 0.125, 1 if is_causal else 0)\n"
                "        ctx.save_for",
            ),
            ("another result than the kernel's", "return O\n", "return O * 1.001\n"),
            (
                "the kernel of another source",
                'kernel = rl.cuda.compile(HALF_CUDA)["flash_forward"]',
                "other = HALF_CUDA.replace('m + logf(l)', 'm + 0 * __half2float(k[0].x) + logf(l)')\n"
                '        kernel = rl.cuda.compile(other)["flash_forward"]',
            ),
            (
                "the library's gradient",
                "        return dQ.to",
                "        with rl.enable_grad():\n"
                "            inputs = [x.detach().requires_grad_() for x in (Q, K, V)]\n"
                "            made = rl.attention(*inputs, is_causal=ctx.is_causal)\n"
                "        dQ, dK, dV = rl.autograd.grad(made, inputs, dO)\n"
                "        return dQ.to",
            ),
            ("no gradient", "return dQ.to", "return None, None, None, None\n        return dQ.to"),
            ("the gradient masks as if the queries were the first tokens", " + K.shape[1] - Q.shape[1]\n", "\n"),
            ("gradients in float32", '.to("float16"), dK.to("float16"), dV.to("float16")', ", dK, dV"),
            ("the gradient without D", " - (O * dO).sum(-1, keepdim=True)", ""),
            ("the gradient without the scale", "keepdim=True)) * 0.125", "keepdim=True))"),
            ("a forgotten semicolon", "float s = 0;", "float s = 0"),
            ("the log-sum-exp first", "half* O, float* lse", "float* lse, half* O", "V, O, lse, L_q", "V, lse, O, L_q"),
        ),
    ]
}  # fmt: skip
