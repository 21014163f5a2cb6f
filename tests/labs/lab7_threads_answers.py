"""Answers to Part 1 of Lab 7, threads and memory, right and wrong."""

from labs.mutants import changed, mutants

THREAD = """
def wrong_thread(n):
    blocks = math.ceil(n / 256)
    return divmod(n, 256) if n < 256 * blocks else None
"""

ADD = r'''
ADD_CUDA = r"""
__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i >= n) return;
  c[i] = b[i] + a[i];
}
"""
'''

MAGIC = "%%cuda_kernel ADD_CUDA" + ADD.split('"""')[1]

ADD_LOOP = r'''
ADD_CUDA = r"""
template <class T> __device__ T plus(T u, T v) { return u + v; }
__global__ void add(const float* a, const float* b, float* c, int n) {
  for (unsigned i = threadIdx.x + blockDim.x * blockIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = plus(a[i], b[i]);
}
"""
'''

SECTORS = """
def sectors(first, step, size):
    found = set()
    for lane in range(32):
        for byte in range(first + step * lane, first + step * lane + size):
            found.add(byte // 32)
    return len(found)
"""

GATHER = r'''
GATHER_CUDA = r"""
__global__ void gather(const float* x, float* y, int n, int offset, int stride) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[offset + stride * i];
}
"""
'''

ADD4 = r'''
add4_gain = "b"
ADD4_CUDA = r"""
__global__ void add4(const float* a, const float* b, float* c, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  const float4* a4 = (const float4*)a;
  const float4* b4 = (const float4*)b;
  if (k < n / 4) {
    float4 u = a4[k];
    const float4 v = b4[k];
    u.x += v.x, u.y += v.y, u.z += v.z, u.w += v.w;
    ((float4*)c)[k] = u;
  } else if (k == n / 4) {
    for (int i = 4 * k; i < n; ++i) c[i] = a[i] + b[i];
  }
}
"""
'''

OWN_REPAIR = r"""
ADD_CUDA = "__global__ void add(const float* a, const float* b, float* c, int n) {"
ADD_CUDA += "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i <= n) c[i] = a[i] + b[i]; }"
ADD_CUDA = ADD_CUDA.replace("<=", "<")
"""

SWITCHED = r'''
add4_gain = "b"
ADD4_CUDA = r"""
__global__ void add4(const float* a, const float* b, float* c, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 4 <= n) {
    float4 x = *(float4*)&a[i], y = *(float4*)&b[i];
    *(float4*)&c[i] = {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
    return;
  }
  switch (n - i) {
    case 3: c[i + 2] = a[i + 2] + b[i + 2];
    case 2: c[i + 1] = a[i + 1] + b[i + 1];
    case 1: c[i] = a[i] + b[i];
  }
}
"""
'''

RIGHT = {
    "q1_1": [
        ("divided", THREAD),
        ("one thread after the other", "def wrong_thread(n):\n    for block in range(-(-n // 256)):\n"
         "        for thread in range(256):\n            if 256 * block + thread == n:\n"
         "                return block, thread\n"),
        ("bits", "wrong_thread = lambda n: (n >> 8, rest) if (rest := n & 255) else None"),
        ("NumPy", "def wrong_thread(n):\n    return np.array(divmod(n, 256)) if n % 256 else None\n"),
    ],
    "q1_1_kernel": [
        ("returns early", ADD),
        ("a cell of CUDA C++", MAGIC),
        ("a loop over the grid and a template", ADD_LOOP),
        ("a text that is put together and repaired", OWN_REPAIR),
        ("headers, printf and __ldg", changed(ADD, "__global__ void", '#include <stdio.h>\nextern "C" __global__ void '
                                              "__launch_bounds__(256)", "c[i] = b[i] + a[i];",
                                              'c[i] = __ldg(b + i) + a[i];\n  if (i == 0) printf("%d\\n", n);')),
    ],
    "q1_2": [
        ("byte by byte", SECTORS),
        ("NumPy", "def sectors(first, step, size):\n    return np.unique((first + step * np.arange(32)) // 32).size\n"),
    ],
    "q1_2_kernel": [
        ("returns early", GATHER),
        ("lanes in another order", changed(GATHER, "if (i >= n)", "i = i / 32 * 32 + 31 - i % 32;\n  if (i >= n)")),
    ],
    "q1_3": [
        ("pointers to float4", ADD4),
        ("a switch for the rest", SWITCHED),
        ("a thread for each element of the rest", changed(
            ADD4, "else if (k == n / 4) {\n    for (int i = 4 * k; i < n; ++i)",
            "if (k < n % 4) {\n    const int i = n / 4 * 4 + k;\n   ")),
    ],
}  # fmt: skip

WRONG = {
    "q1_1": mutants(
        THREAD,
        ("always one", "if n < 256 * blocks else None", ""),
        ("never one", "return divmod(n, 256) if n < 256 * blocks else None", "return None"),
        ("thread first", "divmod(n, 256)", "(n % 256, n // 256)"),
        ("the last element", "divmod(n, 256)", "divmod(n - 1, 256)"),
        ("a list of floats", "divmod(n, 256)", "(n / 256, n % 256)"),
        ("nothing", "return divmod", "divmod"),
        ("printed", "return divmod(n, 256)", "print(n // 256, n % 256)"),
        ("counted from 1", "divmod(n, 256)", "(n // 256 + 1, n % 256 + 1)"),
        ("(0, 0) for none", "else None", "else (0, 0)"),
        ("texts", "divmod(n, 256)", "(str(n // 256), str(n % 256))"),
    ),
    "q1_1_kernel": mutants(
        ADD,
        ("one block adds all", "const int i = threadIdx.x + blockDim.x * blockIdx.x;\n  if (i >= n) return;",
         "for (int i = threadIdx.x; blockIdx.x == 0 && i < n; i += 256)"),
        ("one warp of each block", "const int i", "int i", "if (i >= n) return;",
         "const int end = min(n, i / 256 * 256 + 256);\n  for (; threadIdx.x < 32 && i < end; i += 32)"),
        ("one thread adds all", "const int i", "int i",
         "if (i >= n) return;", "if (i > 0) return;\n  for (; i < n; ++i)"),
        ("still one too many", "if (i >= n)", "if (i > n)"),
        ("no guard", "if (i >= n) return;", ""),
        ("one too few", "if (i >= n)", "if (i >= n - 1)"),
        ("the first block only", " + blockDim.x * blockIdx.x", ""),
        ("nothing stored", "c[i] = b", "float d = b"),
        ("a difference", "b[i] + a[i]", "b[i] - a[i]"),
        ("into a", "c[i] = b", "((float*)a)[i] = b"),
        ("a forgotten semicolon", "return;", "return"),
        ("another name", "void add", "void plus"),
        ("no kernel", "__global__", "__device__"),
        ("doubles", "float* c", "double* c"),
        ("Python", 'ADD_CUDA = r"""', 'ADD_CUDA = None\nr"""'),
        ("an endless loop", "c[i] = b", "while (n > 0) c[0] += 0; c[i] = b"),
        ("a function of Python", 'ADD_CUDA = r"""', 'ADD_CUDA = lambda a, b, c, n: a + b\nr"""'),
        ("a parameter too few", ", int n)", ")", "if (i >= n) return;", ""),
        ("a program", "}\n\"\"\"", "}\nint main() { add<<<4, 256>>>(0, 0, 0, 0); }\n\"\"\""),
        ("the host's library", "__global__", "#include <vector>\n__global__"),
        ("inline assembly", "c[i] = b", 'asm(""); c[i] = b'),
    ),
    "q1_2": mutants(
        SECTORS,
        ("rounded up from the length", "return len(found)", "return -(-(step * 31 + size) // 32)"),
        ("one for each lane", "return len(found)", "return 32"),
        ("bursts of 128 bytes", "byte // 32", "byte // 128"),
        ("first is ignored", "first + step * lane", "step * lane"),
        ("31 lanes", "range(32)", "range(31)"),
        ("a float", "return len(found)", "return float(len(found))"),
        ("quotients", "byte // 32", "byte / 32"),
        ("the set", "return len(found)", "return found"),
    ),
    "q1_2_kernel": mutants(
        GATHER,
        ("one block", "unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;",
         "for (int i = threadIdx.x; blockIdx.x == 0 && i < n; i += 256)"),
        ("one warp of the grid", "unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;",
         "for (int i = threadIdx.x; blockIdx.x == 0 && threadIdx.x < 32 && i < n; i += 32)"),
        ("no stride", "offset + stride * i", "offset + i"),
        ("no offset", "offset + stride * i", "stride * i"),
        ("both times the stride", "offset + stride * i", "stride * (offset + i)"),
        ("scattered", "y[i] = x[offset + stride * i]", "y[stride * i] = x[offset + i]"),
        ("no guard", "if (i >= n) return;", ""),
        ("reads twice", "y[i] = x", "y[i] = 0 * x[i] + x"),
        ("the first four blocks", "if (i >= n)", "if (i >= n || i > 1023)"),
        ("each thread a stretch", "if (i >= n) return;\n  y[i] = x[offset + stride * i];",
         "for (int k = 8 * i; k < 8 * i + 8 && k < n; ++k) y[k] = x[offset + stride * k];"),
    ),
    "q1_3": mutants(
        ADD4,
        ("fewer sectors", 'add4_gain = "b"', 'add4_gain = "a"'),
        ("as many requests", 'add4_gain = "b"', 'add4_gain = "c"'),
        ("no letter", 'add4_gain = "b"', "add4_gain = 4"),
        ("no rest", "else if (k == n / 4)", "else if (n < 0)"),
        ("one block", "int k = blockIdx.x * blockDim.x + threadIdx.x;", "",
         "if (k < n / 4) {", "for (int k = threadIdx.x; blockIdx.x == 0 && k <= n / 4; k += 256)\n  if (k < n / 4) {"),
        ("each block adds the rest", "else if (k == n / 4) {\n    for (int i = 4 * k;",
         "if (threadIdx.x == 0) {\n    for (int i = n / 4 * 4;"),
        ("all threads add the rest and more", "if (k < n / 4)", "if (k <= n / 4)"),
        ("one by one", "if (k < n / 4)", "if (k < 0)", "else if (k == n / 4)", "else",
         "i < n;", "i < min(n, 4 * k + 4);"),
        ("three of four", "u.w += v.w", "u.w = v.w"),
        ("stored one by one", "((float4*)c)[k] = u", "c += 4 * k, c[0] = u.x, c[1] = u.y, c[2] = u.z, c[3] = u.w"),
        ("an upper case letter", 'add4_gain = "b"', 'add4_gain = "B"'),
        ("misaligned", "(const float4*)a", "(const float4*)(a + 1)"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"q1_3": "fewer sectors|as many requests"}
