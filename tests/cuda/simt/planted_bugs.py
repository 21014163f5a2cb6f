"""Small kernels, most of them wrong in one way, that compute-sanitizer has judged too."""

from __future__ import annotations

from dataclasses import dataclass

THREADS, ELEMENTS = 128, 512


@dataclass(frozen=True)
class Bug:
    """A kernel `planted` of x and y with 512 floats each, and the tool of compute-sanitizer that looks for its bug."""

    tool: str
    source: str
    blocks: int


def planted(tool: str, body: str, blocks: int = 4) -> Bug:
    head = (
        "__global__ void planted(const float* x, float* y, int n) {\n"
        "  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
    )
    return Bug(tool, f"{head}{body.strip(chr(10))}\n}}\n", blocks)


# The body of each begins on line 3.
BUGS: dict[str, Bug] = {
    "right_copy": planted("memcheck", "  if (i < n) y[i] = x[i];", blocks=5),
    "guard_off_by_one": planted(
        "memcheck",
        """
  if (i <= n)
    y[i] = x[i];""",
        blocks=5,
    ),
    "no_guard": planted(
        "memcheck",
        """
  float v = 1;
  y[i] = v;""",
        blocks=5,
    ),
    "before_the_beginning": planted(
        "memcheck",
        """
  float v = x[i - 1];
  y[i] = v;""",
    ),
    "unsigned_wraps": planted(
        "memcheck",
        """
  unsigned k = t - 1;
  y[i] = x[k];""",
    ),
    "far_away": planted(
        "memcheck",
        """
  y[i] = 0;
  y[i + 100000000] = x[i];""",
    ),
    "loop_too_long": planted(
        "memcheck",
        """
  float sum = 0;
  for (int k = 0; k <= n; ++k)
    sum += x[k];
  y[i] = sum;""",
    ),
    "transposed": planted(
        "memcheck",
        """
  int row = t, column = blockIdx.x;
  y[i] = x[row * 16 + column];""",
    ),
    "atomic_past_the_end": planted(
        "memcheck",
        """
  y[i] = 0;
  atomicAdd(&y[n + t % 2], 1.0f);""",
    ),
    "past_the_tile": planted(
        "memcheck",
        """
  __shared__ float s[128];
  s[t + 1] = x[i];
  __syncthreads();
  y[i] = s[t];""",
    ),
    "past_a_local_array": planted(
        "memcheck",
        """
  float a[4];
  for (int k = 0; k <= 4; ++k)
    a[(k + n) % 8] = x[i];
  y[i] = a[n % 4];""",
    ),
    "misaligned_load": planted(
        "memcheck",
        """
  const float2* p = reinterpret_cast<const float2*>(x + 1);
  float2 v = p[t];
  y[i] = v.x + v.y;""",
    ),
    "misaligned_store": planted(
        "memcheck",
        """
  float4 v = make_float4(1, 2, 3, 4);
  if (t < 2)
    *reinterpret_cast<float4*>(y + 2 + 4 * t) = v;""",
    ),
    "right_tile": planted(
        "racecheck",
        """
  __shared__ float s[128];
  s[t] = x[i];
  __syncthreads();
  y[i] = s[t ^ 64];""",
    ),
    "right_counts": planted(
        "racecheck",
        """
  __shared__ int s[32];
  if (t < 32) s[t] = 0;
  __syncthreads();
  atomicAdd(&s[t % 32], 1);
  __syncthreads();
  y[i] = s[t % 32];""",
    ),
    "no_barrier": planted(
        "racecheck",
        """
  __shared__ float s[128];
  s[t] = x[i];
  y[i] = s[t ^ 64];""",
    ),
    "no_barrier_in_a_warp": planted(
        "racecheck",
        """
  __shared__ float s[128];
  s[t] = x[i];
  y[i] = s[t ^ 1];""",
    ),
    "no_barrier_at_the_end": planted(
        "racecheck",
        """
  __shared__ float s[128];
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    s[t] = x[i];
    __syncthreads();
    sum += s[127 - t];
  }
  y[i] = sum;""",
    ),
    "no_barrier_in_a_tree": planted(
        "racecheck",
        """
  __shared__ float s[128];
  s[t] = x[i];
  __syncthreads();
  for (int k = 64; k > 0; k /= 2)
    if (t < k) s[t] += s[t + k];
  if (t == 0) y[blockIdx.x] = s[0];""",
    ),
    "all_write_one": planted(
        "racecheck",
        """
  __shared__ float s[1];
  s[0] = x[i];
  __syncthreads();
  y[i] = s[0];""",
    ),
    "counts_without_atomics": planted(
        "racecheck",
        """
  __shared__ int s[8];
  if (t < 8) s[t] = 0;
  __syncthreads();
  s[t % 8] += 1;
  __syncthreads();
  y[i] = s[t % 8];""",
    ),
    "stencil_in_place": planted(
        "racecheck",
        """
  __shared__ float s[129];
  s[t] = x[i];
  if (t == 0) s[128] = 0;
  __syncthreads();
  s[t] = s[t] + s[t + 1];
  __syncthreads();
  y[i] = s[t];""",
    ),
    "global_race": planted("racecheck", "  y[0] = x[i];"),
    "right_barriers": planted(
        "synccheck",
        """
  for (int k = 0; k < 4; ++k)
    __syncthreads();
  y[i] = x[i];""",
    ),
    "barrier_of_half_a_warp": planted(
        "synccheck",
        """
  if (t % 32 < 16)
    __syncthreads();
  y[i] = x[i];""",
    ),
    "barrier_of_half_a_block": planted(
        "synccheck",
        """
  if (t < 64)
    __syncthreads();
  y[i] = x[i];""",
    ),
    "barriers_of_two_branches": planted(
        "synccheck",
        """
  if (t % 2 == 0)
    __syncthreads();
  else
    __syncthreads();
  y[i] = x[i];""",
    ),
    "return_before_a_barrier": planted(
        "synccheck",
        """
  if (t % 32 == 7) return;
  __syncthreads();
  y[i] = x[i];""",
    ),
    "barriers_by_warp": planted(
        "synccheck",
        """
  for (int k = 0; k < 1 + t / 64; ++k)
    __syncthreads();
  y[i] = x[i];""",
    ),
    "shuffle_of_half_a_warp": planted(
        "synccheck",
        """
  float v = x[i];
  if (t % 32 < 16)
    v = __shfl_xor_sync(0xffffffff, v, 1);
  y[i] = v;""",
    ),
    "shared_that_nobody_wrote": planted(
        "initcheck",
        """
  __shared__ float s[128];
  if (t < 127) s[t] = x[i];
  __syncthreads();
  y[i] = s[t];""",
    ),
    "global_that_nobody_wrote": planted(
        "initcheck",
        """
  float v = y[i];
  y[i] = v + x[i];""",
    ),
}
