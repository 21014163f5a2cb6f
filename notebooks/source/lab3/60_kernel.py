# %% [markdown]
# # Part 6. One kernel (6 points)
#
# Your array code keeps O(L) memory, and is it fast? Each tile takes a dozen launches, and every small result goes out
# to memory and comes back. The idea only pays when a tile's scores never leave the chip, and that takes one kernel for
# all of it. Write it in CUDA C++, as text; `rl.cuda.compile(source)` compiles it here and now.
#
# The kernel is given its signature, with one head of size 64 and everything contiguous, in fp32:
#
# ```c++
# __global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
#                               int L_q, int L_kv, float scale, int is_causal)
# ```
#
# Q and O are (B, L_q, 64), K and V (B, L_kv, 64), L is (B, L_q): the log-sum-exp. It is launched with a grid of
# (ceil(L_q / `FLASH_ROWS`), B) blocks of `FLASH_THREADS` threads: `blockIdx.x` is the tile of queries, `blockIdx.y` the
# one of the B. No dynamic shared memory; a `__shared__` array holds at most 48 KiB. Any L_q and L_kv ≥ 1 must work
# (when causal, L_q ≤ L_kv).
#
# A plan that is simple and right: one thread for each query, which keeps its q, its O (64 numbers each), m and l in
# registers. The block walks over the keys, say 32 at a time: all threads together copy the tile of K and of V into
# shared memory, wait (`__syncthreads()`), each uses it for its own query, and all wait again before it is overwritten.
# Every thread must reach every `__syncthreads()`, those without a query too. (`INFINITY` is not known here, as no
# header is read; start m at -3e38f.)
#
# Where there is a GPU, your kernel is run and its numbers are checked. Where there is none it is compiled only, for an
# Ampere GPU, and the grade says so. That needs no GPU, but NVIDIA's compiler NVRTC, which rooflab's `labs` extra brings
# on 64-bit Linux. A mistake comes back with the line of your source, and one that would bring a GPU to a halt ends a
# process of its own and not your notebook.

# %% nbgrader={"grade_id": "q6", "solution": true}
FLASH_ROWS = None  # queries of a block
FLASH_THREADS = None  # threads of a block
FLASH_CUDA = None  # the source, r"""..."""
### BEGIN SOLUTION
FLASH_ROWS, FLASH_THREADS = 64, 64
FLASH_CUDA = r"""
constexpr int kHead = 64, kKeys = 32;
constexpr float kLowest = -3e38f;

__global__ void flash_forward(const float* Q, const float* K, const float* V, float* O, float* L,
                              int L_q, int L_kv, float scale, int is_causal) {
  __shared__ float keys[kKeys][kHead], values[kKeys][kHead];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const bool mine = row < L_q;
  Q += (size_t)blockIdx.y * L_q * kHead;
  K += (size_t)blockIdx.y * L_kv * kHead;
  V += (size_t)blockIdx.y * L_kv * kHead;

  float q[kHead], o[kHead], m = kLowest, l = 0;
  for (int c = 0; c < kHead; ++c) {
    q[c] = mine ? Q[(size_t)row * kHead + c] * scale : 0;
    o[c] = 0;
  }
  const int last_row = min((int)((blockIdx.x + 1) * blockDim.x), L_q) - 1;
  const int seen = is_causal ? row + 1 + L_kv - L_q : L_kv;          // keys of this query
  const int end = is_causal ? last_row + 1 + L_kv - L_q : L_kv;      // and of the block's last one
  for (int start = 0; start < end; start += kKeys) {
    const int count = min(kKeys, L_kv - start);
    for (int at = threadIdx.x; at < count * kHead; at += blockDim.x) {
      keys[at / kHead][at % kHead] = K[(size_t)start * kHead + at];
      values[at / kHead][at % kHead] = V[(size_t)start * kHead + at];
    }
    __syncthreads();
    const int visible = min(count, seen - start);
    float s[kKeys], most = m;
    for (int j = 0; j < kKeys; ++j) {
      s[j] = 0;
      for (int c = 0; c < kHead; ++c) s[j] += q[c] * keys[j][c];
      if (j >= visible) s[j] = kLowest;
      most = fmaxf(most, s[j]);
    }
    if (visible > 0) {
      const float shrink = expf(m - most);
      m = most;
      l *= shrink;
      for (int c = 0; c < kHead; ++c) o[c] *= shrink;
      for (int j = 0; j < visible; ++j) {
        const float p = expf(s[j] - m);
        l += p;
        for (int c = 0; c < kHead; ++c) o[c] += p * values[j][c];
      }
    }
    __syncthreads();
  }
  if (!mine) return;
  for (int c = 0; c < kHead; ++c) O[((size_t)blockIdx.y * L_q + row) * kHead + c] = o[c] / l;
  L[(size_t)blockIdx.y * L_q + row] = m + logf(l);
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q6_test", "grade": true, "points": 6} rooflab={"seconds": 120}
def check_kernel(B, L_q, L_kv, is_causal=False, scale=1.0):
    q, k, v = make_qkv(B, L_q, L_kv, 64, scale, seed=L_q)
    like = {"device": device, "dtype": "float32"}
    O, L = rl.full((B, L_q, 64), float("nan"), **like), rl.full((B, L_q), float("nan"), **like)
    run = measure.cuda_kernel(
        FLASH_CUDA,
        "flash_forward",
        grid=(-(-L_q // FLASH_ROWS), B),
        block=(FLASH_THREADS,),
        args=(q, k, v, O, L, L_q, L_kv, 64**-0.5, int(is_causal)),
    )
    if not run.ran:
        measure.note(f"Question 6 was only compiled, not run: {run.why}")
        return False
    exact = attention_float64(q, k, v, is_causal)
    what = f"at B = {B}, L_q = {L_q}, L_kv = {L_kv}, is_causal = {is_causal}"
    for name, ours, expected in zip("OL", run.args[3:5], exact, strict=True):
        assert_close(ours, expected, rtol=1e-4, atol=1e-4, name=f"{name} {what}")
    for name, before, after in zip("QKV", (q, k, v), run.args[:3], strict=True):
        assert_close(
            after, before, rtol=0, atol=0, name=f"{name}, which the kernel may not change,"
        )
    return True


assert isinstance(FLASH_CUDA, str), "FLASH_CUDA is the source of the kernel, a text"
assert is_count(FLASH_ROWS) and FLASH_ROWS > 0, "FLASH_ROWS is a whole number"
assert is_count(FLASH_THREADS) and 0 < FLASH_THREADS <= 1024, "a block has 1 to 1024 threads"
ran = check_kernel(2, 128, 128)
if ran:
    check_kernel(2, 128, 128, is_causal=True)
### BEGIN HIDDEN TESTS
for L_q, L_kv in [(1, 1), (1, 333), (65, 33), (200, 77), (512, 512)] if ran else []:
    check_kernel(3, L_q, L_kv)
for L_q, L_kv in [(1, 1), (37, 91), (129, 129), (65, 257)] if ran else []:
    check_kernel(3, L_q, L_kv, is_causal=True)
if ran:
    check_kernel(1, 100, 100, scale=6.0)
### END HIDDEN TESTS
