"""Some 120 small kernels whose counts a GPU has measured: one way of reaching memory each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

THREADS, BLOCKS = 128, 4
ALL = THREADS * BLOCKS


@dataclass
class Micro:
    """A kernel, how it is launched, and the arrays that it gets: the first ones are read, the last one is written."""

    source: str
    arrays: tuple[np.ndarray, ...]
    grid: tuple[int, ...] = (BLOCKS,)
    block: tuple[int, ...] = (THREADS,)
    name: str = field(default="", init=False)


def numbers(count, dtype=np.float32):
    values = (np.arange(count) % 97).astype(dtype)
    return values.view(np.float32) if dtype in (np.int8, np.int16) else values


def pointers(of):
    """The parameters x and y of a kernel: those of the types that no tensor has are floats to the caller."""
    if of not in ("char", "short"):
        return f"const {of}* x, {of}* y) {{"
    cast = f"const {of}* x = reinterpret_cast<const {of}*>(given); {of}* y = reinterpret_cast<{of}*>(taken);"
    return f"const float* given, float* taken) {{ {cast}"


def copy(expression, of="float", dtype=np.float32, count=64 * ALL, per_thread=1, guard="", **launch):
    """y[i] = what is read at `expression`, an index of x."""
    source = f"""
__global__ void micro({pointers(of)}
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {guard} y[i] = x[{expression}];
}}
"""
    return Micro(source, (numbers(count, dtype), numbers(ALL * per_thread, dtype)), **launch)


def shared(write, read, of="float", dtype=np.float32, size=4224, per_thread=1):
    """Each thread puts one element into shared memory at `write`, and takes one at `read`."""
    source = f"""
__global__ void micro({pointers(of)}
  __shared__ {of} tile[{size}];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tile[{write}] = x[i];
  __syncthreads();
  y[i] = tile[{read}];
}}
"""
    return Micro(source, (numbers(ALL * per_thread, dtype), numbers(ALL * per_thread, dtype)))


def body(statements, reads=ALL, writes=ALL, dtype=np.int32, of="int", **launch):
    """A kernel of the thread's number t in its block, i in the grid, x that is read and y that is written."""
    source = f"""
__global__ void micro(const {of}* x, {of}* y) {{
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  {statements}
}}
"""
    return Micro(source, (numbers(reads, dtype), np.zeros(writes, dtype)), **launch)


def floats(statements, **more):
    return body(statements, dtype=np.float32, of="float", **more)


TRANSPOSE = """
__global__ void micro(const float* x, float* y) {{
  {tile}
  int n = 64, i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
  {first}
}}
"""
STAGED = """for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(j + k) * n + i];
  __syncthreads();
  i = blockIdx.y * 32 + threadIdx.x, j = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) y[(j + k) * n + i] = tile[threadIdx.x][threadIdx.y + k];"""
MATMUL = """
__global__ void micro(const float* a, const float* b, float* c) {{
  {tile}
  int n = 64, x = threadIdx.x, y = threadIdx.y, {index};
  float sum = 0;
  {loop}
  c[i * n + j] = sum;
}}
"""
SQUARE = (numbers(64 * 64), np.zeros(64 * 64, np.float32))


def transpose(tile, statements):
    return Micro(TRANSPOSE.format(tile=tile, first=statements), SQUARE, grid=(2, 2), block=(32, 8))


def matmul(index, loop, tile=""):
    return Micro(MATMUL.format(tile=tile, index=index, loop=loop), (numbers(64 * 64), *SQUARE), (4, 4), (16, 16))


OWN = "t / 32 * 1056 + {} * ({} & 31)"  # of 1056 places that each warp has for itself
ROWS = "i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x"
SHARED_BY = {  # which threads of a warp read the same
    "pairs": "t / 2",
    "next_but_one": "t & ~2",
    "fours": "t / 4",
    "eights": "t / 8",
    "quarters": "t & ~24",
    "halves": "t & ~16",
    "first_pair": "t & 1 ? t : t & 3 ? t : t + 1",
    "some": "t % 5",
    "odd_stride": "3 * t % 128",
    "half_conflict": "t & 16 ? 16 * (t & 7) : t",
}
MICROS: dict[str, Micro] = {
    **{f"stride_{s}": copy(f"{s} * i") for s in (1, 2, 3, 4, 8, 16, 32)},
    **{f"offset_{o}": copy(f"i + {o}") for o in (1, 3, 7, 8, 16, 31)},
    "char": copy("i", "char", np.int8),
    "char_stride_4": copy("4 * i", "char", np.int8),
    "short": copy("i", "short", np.int16),
    "short_offset_1": copy("i + 1", "short", np.int16),
    "double": copy("i", "double", np.float64),
    "double_stride_4": copy("4 * i", "double", np.float64),
    "double_offset_1": copy("i + 1", "double", np.float64),
    "float2": copy("i", "float2", per_thread=2),
    "float2_offset_1": copy("i + 1", "float2", per_thread=2),
    "float4": copy("i", "float4", per_thread=4),
    "float4_stride_2": copy("2 * i", "float4", per_thread=4),
    "float4_offset_1": copy("i + 1", "float4", per_thread=4),
    "float4_first_20": copy("i", "float4", per_thread=4, guard="if (threadIdx.x < 20)"),
    "float4_odd_lanes": copy("i", "float4", per_thread=4, guard="if (threadIdx.x & 1)"),
    "partial_block": copy("i", block=(80,)),
    "double_first_5": copy("i", "double", np.float64, guard="if (threadIdx.x % 32 < 5)"),
    "double_reversed": copy("blockDim.x * (blockIdx.x + 1) - 1 - threadIdx.x", "double", np.float64),
    "float4_reversed": copy("blockDim.x * (blockIdx.x + 1) - 1 - threadIdx.x", "float4", per_thread=4),
    "float4_every_fourth": copy("i", "float4", per_thread=4, guard="if (threadIdx.x % 4 == 0)"),
    "partial_warp": copy("i", guard="if (i < 77)"),
    "odd_lanes": copy("i", guard="if (threadIdx.x & 1)"),
    "one_lane": copy("i", guard="if (threadIdx.x % 32 == 5)"),
    "broadcast": copy("blockIdx.x"),
    "four_of_a_warp": copy("i / 8"),
    "reversed": copy("blockDim.x * (blockIdx.x + 1) - 1 - threadIdx.x"),
    "permuted": copy("(i ^ 21)"),
    "two_dimensions": copy("threadIdx.y * 64 + threadIdx.x", block=(8, 16)),
    "gather": body("y[i] = x[(x[i] * 37) % 512];"),
    **{f"bank_stride_{s}": shared(OWN.format(s, "t"), OWN.format(s, "(t + 1)")) for s in (1, 2, 3, 4, 8, 16, 32, 33)},
    "bank_broadcast": shared("t", "0"),
    "bank_two_words": shared("t", "t & 33"),
    "bank_same_word": shared("t", "t / 4", "char", np.int8),
    "bank_short": shared("t", "t ^ 1", "short", np.int16),
    "bank_short_stride_2": shared("2 * t", "2 * (t ^ 1)", "short", np.int16),
    "bank_double": shared("t", "t ^ 1", "double", np.float64),
    "bank_double_stride_2": shared("2 * t", "2 * (t ^ 1)", "double", np.float64),
    "bank_double_broadcast": shared("t", "t / 32", "double", np.float64),
    "bank_float4": shared("t", "t ^ 1", "float4", size=256, per_thread=4),
    "bank_float4_stride_2": shared("2 * t", "2 * (t ^ 1)", "float4", size=256, per_thread=4),
    "bank_float4_broadcast": shared("t", "t / 32", "float4", size=256, per_thread=4),
    **{f"bank_double_{name}": shared("t", read, "double", np.float64) for name, read in SHARED_BY.items()},
    **{f"bank_float4_{name}": shared("t", read, "float4", size=256, per_thread=4) for name, read in SHARED_BY.items()},
    **{f"bank_float2_{name}": shared("t", read, "float2", size=256, per_thread=2) for name, read in SHARED_BY.items()},
    "bank_odd_lanes": body(
        "__shared__ int s[128]; s[t] = x[i]; __syncthreads(); if (t & 1) y[i] = s[2 * (t & 63)];", reads=ALL
    ),
    "add_to_one": body("atomicAdd(&y[0], x[i]);"),
    "add_to_each": body("atomicAdd(&y[i], x[i]);"),
    "add_to_each_and_look": body("y[ALL + i] = atomicAdd(&y[i], x[i]);".replace("ALL", str(ALL)), writes=2 * ALL),
    "add_with_stride": body("atomicAdd(&y[8 * i], x[i]);", writes=8 * ALL),
    "add_to_three": body("atomicAdd(&y[i % 3], x[i]);"),
    "add_mostly_to_one": body("atomicAdd(&y[t % 32 < 20 ? 0 : t % 32], x[i]);"),
    "add_by_odd_lanes": body("if (t & 1) atomicAdd(&y[i / 8], x[i]);"),
    "add_floats": floats("atomicAdd(&y[i / 4], x[i]);"),
    "exchange": body("y[ALL + i] = atomicCAS(&y[i / 2], 0, x[i]);".replace("ALL", str(ALL)), writes=2 * ALL),
    "maximum": body("atomicMax(&y[i % 16], x[i]);"),
    "shared_add": body(
        "__shared__ int s[128]; s[t] = 0; __syncthreads(); atomicAdd(&s[t ^ 3], x[i]); __syncthreads(); y[i] = s[t];"
    ),
    "two_paths": body("if (t % 32 < 16) y[i] = x[i]; else y[i] = x[i + 512] + 1;", reads=2 * ALL),
    "nested_paths": body("if (t & 1) { if (t & 2) y[i] = x[i]; else y[i] = x[2 * i]; } else y[i] = 7;", reads=2 * ALL),
    "trips_of_lanes": body("int sum = 0; for (int k = 0; k <= (x[i] & 3); ++k) sum += x[i + 32 * k]; y[i] = sum;",
                           reads=2 * ALL),
    "early_return": body("if (i >= 300) return; y[i] = x[i];"),
    "stencil": floats("y[i] = x[i] + x[i + 1] + x[i + 2];", reads=2 * ALL),
    "fused_multiply_add": floats("float v = x[i]; for (int k = 0; k < 8; ++k) v = fmaf(v, 1.5f, x[k]); y[i] = v;"),
    "multiply_and_add": floats("float v = x[i]; y[i] = __fadd_rn(__fmul_rn(v, v), v);"),
    "transpose_naive": transpose("", "for (int k = 0; k < 32; k += 8) y[i * n + j + k] = x[(j + k) * n + i];"),
    "transpose_staged": transpose("__shared__ float tile[32][32];", STAGED),
    "transpose_padded": transpose("__shared__ float tile[32][33];", STAGED),
    "matmul_naive": matmul(ROWS, "for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];"),
    "matmul_swapped": matmul("i = blockIdx.x * 16 + x, j = blockIdx.y * 16 + y",
                             "for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];"),
    "matmul_tiled": matmul(ROWS, """for (int t = 0; t < n / 16; ++t) {
    as[y][x] = a[i * n + t * 16 + x];
    bs[y][x] = b[(t * 16 + y) * n + j];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }""", "__shared__ float as[16][16], bs[16][16];"),
    "sum_interleaved": floats("""__shared__ float s[128];
  s[t] = x[i];
  __syncthreads();
  for (int k = 1; k < 128; k *= 2) {
    if (2 * k * t < 128) s[2 * k * t] += s[2 * k * t + k];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];"""),
    "sum_sequential": floats("""__shared__ float s[128];
  s[t] = x[i];
  __syncthreads();
  for (int k = 64; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];"""),
    "sum_shuffled": floats("""float v = x[i];
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(~0u, v, k);
  if (t % 32 == 0) y[i / 32] = v;"""),
    "softmax_of_a_warp": floats("""float v = x[i], m = v, sum;
  for (int k = 16; k > 0; k /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
  sum = v = expf(v - m);
  for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  y[i] = v / sum;"""),
    "histogram": body("""__shared__ int bins[32];
  if (t < 32) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[x[i] % 32], 1);
  __syncthreads();
  if (t < 32) atomicAdd(&y[t], bins[t]);"""),
}  # fmt: skip
for _name, _micro in MICROS.items():
    _micro.name = f"micro_{_name}"
    _micro.source = _micro.source.replace("void micro(", f"void {_micro.name}(")
SOURCE = "".join(micro.source for micro in MICROS.values())
