"""Small kernels, most of them wrong in one way, that compute-sanitizer has judged too."""

from __future__ import annotations

from dataclasses import dataclass

THREADS, BLOCKS, ELEMENTS = 128, 4, 512


@dataclass
class Bug:
    """A kernel of x and y, 512 floats each, and the tool of compute-sanitizer that looks for such a bug."""

    source: str
    tool: str
    blocks: int = BLOCKS


def kernel(lines, tool, blocks=BLOCKS):
    head = "__global__ void planted(const float* x, float* y, int n) {\n"
    return Bug(
        f"{head}  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n{lines.strip(chr(10))}\n}}\n", tool, blocks
    )


BUGS: dict[str, Bug] = {
    "right_copy": kernel("  if (i < n) y[i] = x[i];", "memcheck", 5),
    "guard_off_by_one": kernel("  if (i <= n)\n    y[i] = x[i];", "memcheck", 5),
    "no_guard": kernel("  float v = 1;\n  y[i] = v;", "memcheck", 5),
    "before_the_beginning": kernel("  float v = x[i - 1];\n  y[i] = v;", "memcheck"),
    "unsigned_wraps": kernel("  unsigned k = t - 1;\n  y[i] = x[k];", "memcheck"),
    "far_away": kernel("  y[i] = 0;\n  y[i + 100000000] = x[i];", "memcheck"),
    "loop_too_long": kernel(
        "  float sum = 0;\n  for (int k = 0; k <= n; ++k)\n    sum += x[k];\n  y[i] = sum;", "memcheck"
    ),
    "transposed": kernel("  int row = t, column = blockIdx.x;\n  y[i] = x[row * 16 + column];", "memcheck"),
    "past_the_tile": kernel(
        "  __shared__ float s[128];\n  s[t + 1] = x[i];\n  __syncthreads();\n  y[i] = s[t];", "memcheck"
    ),
    "misaligned_load": kernel(
        "  const float2* p = reinterpret_cast<const float2*>(x + 1);\n  float2 v = p[t];\n  y[i] = v.x + v.y;",
        "memcheck",
    ),
    "misaligned_store": kernel(
        "  float4 v = make_float4(1, 2, 3, 4);\n  if (t < 2)\n    *reinterpret_cast<float4*>(y + 2 + 4 * t) = v;",
        "memcheck",
    ),
    "right_tile": kernel(
        "  __shared__ float s[128];\n  s[t] = x[i];\n  __syncthreads();\n  y[i] = s[t ^ 64];", "racecheck"
    ),
    "right_counts": kernel(
        "  __shared__ int s[32];\n  if (t < 32) s[t] = 0;\n  __syncthreads();\n  atomicAdd(&s[t % 32], 1);\n"
        "  __syncthreads();\n  y[i] = s[t % 32];",
        "racecheck",
    ),
    "no_barrier": kernel("  __shared__ float s[128];\n  s[t] = x[i];\n  y[i] = s[t ^ 64];", "racecheck"),
    "no_barrier_at_the_end": kernel(
        "  __shared__ float s[128];\n  float sum = 0;\n  for (int k = 0; k < 3; ++k) {\n    s[t] = x[i];\n"
        "    __syncthreads();\n    sum += s[127 - t];\n  }\n  y[i] = sum;",
        "racecheck",
    ),
    "no_barrier_in_a_tree": kernel(
        "  __shared__ float s[128];\n  s[t] = x[i];\n  __syncthreads();\n  for (int k = 64; k > 0; k /= 2)\n"
        "    if (t < k) s[t] += s[t + k];\n  if (t == 0) y[blockIdx.x] = s[0];",
        "racecheck",
    ),
    "all_write_one": kernel(
        "  __shared__ float s[1];\n  s[0] = x[i];\n  __syncthreads();\n  y[i] = s[0];", "racecheck"
    ),
    "counts_without_atomics": kernel(
        "  __shared__ int s[8];\n  if (t < 8) s[t] = 0;\n  __syncthreads();\n  s[t % 8] += 1;\n"
        "  __syncthreads();\n  y[i] = s[t % 8];",
        "racecheck",
    ),
    "stencil_in_place": kernel(
        "  __shared__ float s[129];\n  s[t] = x[i];\n  if (t == 0) s[128] = 0;\n  __syncthreads();\n"
        "  s[t] = s[t] + s[t + 1];\n  __syncthreads();\n  y[i] = s[t];",
        "racecheck",
    ),
    "right_barriers": kernel("  for (int k = 0; k < 4; ++k)\n    __syncthreads();\n  y[i] = x[i];", "synccheck"),
    "barrier_of_half_a_warp": kernel("  if (t % 32 < 16)\n    __syncthreads();\n  y[i] = x[i];", "synccheck"),
    "barriers_of_two_branches": kernel(
        "  if (t % 2 == 0)\n    __syncthreads();\n  else\n    __syncthreads();\n  y[i] = x[i];", "synccheck"
    ),
    "return_before_a_barrier": kernel("  if (t % 32 == 7) return;\n  __syncthreads();\n  y[i] = x[i];", "synccheck"),
    "warps_of_their_own_count": kernel(
        "  for (int k = 0; k < 1 + t / 64; ++k)\n    __syncthreads();\n  y[i] = x[i];", "synccheck"
    ),
}
