"""Answers to Part 6 of Lab 5, GeLU as operations, as a CUDA kernel and as a tile program, right and wrong."""

from labs.mutants import mutants

WRITTEN = """
gelu_launches, gelu_accesses, gelu_gain = 9, 22, 11

def gelu_written_out(x):
    cubed = x * x * x
    inner = (x + cubed * 0.044715) * 0.79788456
    return (rl.tanh(inner) + 1) * (x * 0.5)
"""

WRITTEN_COUNTED = """
def gelu_written_out(x):
    t = rl.tanh(np.sqrt(2 / np.pi).item() * (x + 0.044715 * (x * x) * x))
    return 0.5 * (x * (1.0 + t))

with rl.count() as c:
    gelu_written_out(rl.empty(100, device="meta"))
gelu_launches, gelu_accesses = c.launches, (c.bytes_read + c.bytes_written) // 400 + 1  # x * x reads once
gelu_gain = gelu_accesses / 2
"""

KERNEL = r'''
GELU_CUDA = r"""
__global__ void gelu(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}
"""

def gelu_blocks(n):
    return (n + 1023) // 1024
'''

STRIDES = r'''
GELU_CUDA = r"""
extern "C" __global__ void gelu(const float* x, float* y, int n) {
  const int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const float v = x[i], inner = 0.7978845608f * (v + 0.044715f * v * v * v);
    y[i] = v / (1.0f + expf(-2.0f * inner));
  }
}
"""

def gelu_blocks(n):
    return math.ceil(n / 1024)
'''

PROGRAM = """
def gelu_program(pid, x, y, n, block):
    places = np.arange(pid * block, (pid + 1) * block)
    inside = places < n
    v = load(x, places, inside).astype(float)
    values = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    store(y, places, values, inside)
"""

PROGRAM_CUT = """
def gelu_program(pid, x, y, n, block):
    first, last = pid * block, min((pid + 1) * block, n)
    v = x[first:last]
    y[first:last] = v / (1 + np.exp(-2 * 0.7978845608 * (v + 0.044715 * v * v * v)))
"""

RIGHT = {
    "q6_1": [("another order", WRITTEN), ("counted", WRITTEN_COUNTED)],
    "q6_2": [
        ("returns early", KERNEL),
        ("a loop over the grid", STRIDES),
        *mutants(KERNEL, ("unsigned", "const int i =", "const unsigned i =")),
        *mutants(KERNEL, ("blocks counted one by one", "(n + 1023) // 1024", "sum(1 for _ in range(0, n, 1024))")),
        *mutants(
            KERNEL,
            (
                "unsigned, and not more than n - 1",
                "const int i =",
                "const unsigned i =",
                "i >= n",
                "i > (unsigned)n - 1",
            ),
        ),
    ],
    "q6_3": [
        ("float64 inside", PROGRAM),
        ("slices", PROGRAM_CUT),
        (
            "a few at a time",
            """
def gelu_program(pid, x, y, n, block):
    for some in np.array_split(np.arange(pid * block, pid * block + block), 3):
        v = load(x, some, some < n)
        store(y, some, library_gelu(v), mask=some < n)
""",
        ),
    ],
}

WRONG = {
    "q6_1": mutants(
        WRITTEN,
        ("a power", "cubed = x * x * x", "cubed = x**3"),
        ("the fused kernel", "return (rl.tanh(inner) + 1) * (x * 0.5)", "return rl.gelu(x)"),
        ("compiled", "def gelu_written_out", "@rl.compile\ndef gelu_written_out"),
        ("no half", "(x * 0.5)", "x"),
        ("another constant", "0.044715", "0.44715"),
        ("a short constant", "0.79788456", "0.7979"),
        ("NumPy", "rl.tanh(inner)", "rl.tensor(np.tanh(inner.numpy()))"),
        ("eight launches", "= 9, 22", "= 8, 22"),
        ("two accesses for each operation", "= 9, 22", "= 9, 18"),
        ("the gain of launches", "22, 11", "22, 9"),
        ("as measured", "22, 11", "22, 11.09"),
    ),
    "q6_2": mutants(
        KERNEL,
        ("rounded down", "(n + 1023) // 1024", "max(n // 1024, 1)"),
        ("one more", "(n + 1023) // 1024", "n // 1024 + 1"),
        ("one for each element", "(n + 1023) // 1024", "n"),
        ("a float", "(n + 1023) // 1024", "(n + 1023) / 1024"),
        ("no store", "y[i] = 0.5f", "float yi = 0.5f"),
        ("one element too many", "if (i >= n) return;", "if (i > n) return;"),
        ("no bound", "if (i >= n) return;", ""),
        ("one element too few", "if (i >= n) return;", "if (i >= n - 1) return;"),
        ("the first block only", "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x"),
        ("blocks overlap", "blockIdx.x * blockDim.x", "blockIdx.x"),
        ("x squared", "v * v * v", "v * v"),
        ("no tanh", "tanhf(", "("),
        ("unsigned, below 0", "const int i =", "const unsigned i =", "i >= n", "!(i - n < 0)"),
        ("unsigned, not below 0", "const int i =", "const unsigned i =", "if (i >= n)", "if (i - n >= 0)"),
        ("one thread does all", "if (i >= n) return;", "if (i > 0) return;\n  for (int i = 0; i < n; ++i) {",
         "v * v * v)));", "v * v * v)));\n  }"),
        ("one thread a block does all of it", "if (i >= n) return;",
         "if (threadIdx.x) return;\n  for (int i = blockIdx.x << 10; i < min(n, (int)blockIdx.x * 1024 + 1024); ++i) {",
         "v * v * v)));", "v * v * v)));\n  }"),
        ("the first block does all", "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;",
         "if (blockIdx.x) return;\n  for (int i = threadIdx.x; i < n; i += 1024) {",
         "v * v * v)));", "v * v * v)));\n  }"),
        ("the last block does all", "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;",
         "if (blockIdx.x + 1 < gridDim.x) return;\n  for (int i = threadIdx.x; i < n; i += 1024) {",
         "v * v * v)));", "v * v * v)));\n  }"),
        ("a block's threads write every 1024th", "const int i = blockIdx.x * blockDim.x + threadIdx.x",
         "const int i = threadIdx.x * gridDim.x + blockIdx.x"),
        ("one warp of each block does its share", "const int i =", "int i =", "if (i >= n) return;",
         "const int end = min(n, i / 1024 * 1024 + 1024);\n  for (; threadIdx.x < 32 && i < end; i += 32) {",
         "v * v * v)));", "v * v * v)));\n  }"),
        ("each thread reads all", "const float v = x[i];",
         "float v = 0;\n  for (int j = 0; j < n; ++j) v += (j == i) * x[j];"),
        ("written twice", "y[i] =", "y[i] = v;\n  y[i] ="),
        ("into x", "y[i] =", "((float*)x)[i] ="),
        ("a forgotten semicolon", "return;", "return"),
        ("an unknown name", "tanhf(", "tanh_f("),
        ("another name", "void gelu", "void my_gelu"),
        ("no kernel", "__global__", "__device__"),
        ("half precision", "float* y", "double* y"),
        ("a parameter too few", ", int n)", ")", "i >= n", "i >= 1025"),
    ),
    "q6_3": mutants(
        PROGRAM,
        ("no mask", "inside = places < n", "inside = places >= 0"),
        ("the first 4096", "inside = places < n", "inside = (places < n) & (places < 4096)"),
        ("one too far", "places < n", "places <= n"),
        ("pid as offset", "np.arange(pid * block, (pid + 1) * block)", "np.arange(pid, pid + block)"),
        ("the whole array in each", "np.arange(pid * block, (pid + 1) * block)", "np.arange(n)"),
        ("the first block in each", "np.arange(pid * block, (pid + 1) * block)", "np.arange(block)"),
        ("only the load is masked", "store(y, places, values, inside)", "store(y, places, values, places >= 0)"),
        ("only the store is masked", "load(x, places, inside)", "load(x, places, places >= 0)"),
        ("program 0 does all", "np.arange(pid * block, (pid + 1) * block)", "np.arange(n if pid == 0 else 0)"),
        ("interleaved", "np.arange(pid * block, (pid + 1) * block)", "pid + -(-n // block) * np.arange(block)"),
        ("no store", "store(y, places, values, inside)", "return values"),
        ("into x", "store(y, places", "store(x, places"),
        ("read again", "    store(y", "    load(x, places, inside)\n    store(y"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q6_3": "the first 4096",
    "q6_1": "eight launches|two accesses for each operation|the gain of launches|as measured",
}
