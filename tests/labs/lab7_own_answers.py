"""Answers to the bonus of Lab 7, a kernel twice as good, right and wrong."""

from labs.mutants import mutants

COLUMNS = r'''
BEFORE_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {
  int i = 32 * threadIdx.x + blockIdx.x;
  y[i] = 3 * x[i] + 1;
}
"""
AFTER_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 3 * x[i] + 1;
}
"""
better, reason = "global sectors", "neighbours"

def before_launch(n):
    return 32, n // 32

def after_launch(n):
    return n // 256, 256
'''

WIDE = r'''
BEFORE_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""
AFTER_CUDA = r"""
__global__ void mine(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 4) return;
  float4 v = x[i];
  y[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}
"""
better, reason = "global requests", "wider"

def before_launch(n):
    return (n // 256,), (256,)

def after_launch(n):
    return (n // 1024, 1), (256, 1)
'''.replace("const float4* x, float4* y, int n)", "const float* px, float* py, int n)").replace(
    "  if (i >= n / 4) return;\n",
    "  if (i >= n / 4) return;\n  const float4* x = (const float4*)px;\n  float4* y = (float4*)py;\n",
)

SUMS = r'''
BEFORE_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {  // each element becomes the sum of its block of 256
  __shared__ float total;
  int i = blockIdx.x * 256 + threadIdx.x;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, x[i]);
  __syncthreads();
  y[i] = total;
}
"""
AFTER_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {
  __shared__ float total;
  int i = blockIdx.x * 256 + threadIdx.x;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  float v = x[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, v);
  __syncthreads();
  y[i] = total;
}
"""
better, reason = "atomics", "registers"

def before_launch(n):
    return n // 256, 256

def after_launch(n):
    return n // 256, 256
'''

RIGHT = {"b8_1": [("columns", COLUMNS), ("float4", WIDE), ("sums of blocks", SUMS)]}

WRONG = {
    "b8_1": [
        *mutants(
            COLUMNS,
            ("the same twice", "= blockIdx.x * blockDim.x + threadIdx.x;", "= 32 * threadIdx.x + blockIdx.x;",
             "return n // 256, 256", "return 32, n // 32"),
            ("another counter", '"global sectors"', '"global requests"'),
            ("an unknown counter", '"global sectors"', '"time"'),
            ("another reason", '"neighbours"', '"wider"'),
            ("nothing is used again", '"neighbours"', '"reuse"'),
            ("an unknown reason", '"neighbours"', '"luck"'),
            ("other values", "3 * x[i] + 1;\n}\n\"\"\"\nbetter", "3 * x[i] + 2;\n}\n\"\"\"\nbetter"),
            ("not all of y", "y[i] = 3 * x[i] + 1", "if (i < n / 2) y[i] = 3 * x[i] + 1"),
            ("does not depend on x", "3 * x[i] + 1", "3"),
            ("for one n", "i = blockIdx.x * blockDim.x + threadIdx.x", "i = blockIdx.x * 128 + threadIdx.x",
             "return n // 256, 256", "return n // 128, 256"),
            ("exchanged", "32 * threadIdx.x + blockIdx.x", "blockIdx.x * blockDim.x + threadIdx.x ",
             "i = blockIdx.x * blockDim.x + threadIdx.x;", "i = 32 * threadIdx.x + blockIdx.x;"),
            ("no launch", "return 32, n // 32", "pass"),
            ("the block alone", "return n // 256, 256", "return 256"),
            ("more threads than a block has", "return n // 256, 256", "return n // 2048, 2048"),
            ("no second version", 'AFTER_CUDA = r"""', 'AFTER_CUDA = None\nr"""'),
        ),
        *mutants(WIDE, *((f"wider, not {reason}", '"wider"', f'"{reason}"') for reason in ("reuse", "registers"))),
        *mutants(SUMS, ("no barrier", "  __syncthreads();\n  y[i]", "  y[i]"), ("private", '"registers"', '"banks"')),
    ],
}  # fmt: skip

ONLY_HIDDEN = {"b8_1": "another reason|nothing is used again|wider, not reuse|wider, not registers|private"}
