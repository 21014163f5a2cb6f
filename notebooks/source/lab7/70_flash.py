# %% [markdown]
# # Part 7. Flash attention
#
# One head, forward, in one kernel: q, k, v and o are (L, 32), and
#
# $$o_i = \sum_j \frac{e^{s_{ij}}}{\sum_k e^{s_{ik}}}\, v_j, \qquad s_{ij} = \frac{q_i \cdot k_j}{\sqrt{32}}$$
#
# Lab 3, part 6, has the same kernel for a batch and with a mask. Here you count it. No score is ever in global memory.
#
# ## 7.1 Bytes ({points q7_1})
#
# A block has `rows` queries. It reads its own q once, and all of K and of V once. Predict the bytes that all blocks
# read together.
#
# - `flash_bytes(L, d, rows)`: bytes read for L queries and L keys with head size d, in fp32


# %% nbgrader={"grade_id": "q7_1", "solution": true}
def flash_bytes(L, d, rows):
    """Bytes read from q, k and v by blocks of `rows` queries: an int."""
    ### BEGIN SOLUTION
    return 4 * (L * d + 2 * -(-L // rows) * L * d)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q7_1_test", "grade": true, "points": 3}
flash_hint = "how many blocks are there, and how often is each of q, k and v read in all?"
assert_values(flash_bytes, {(64, 32, 64): 24576, (10, 4, 5): 800, (10, 4, 4): 1120}, flash_hint)
### BEGIN HIDDEN TESTS
for L, d, rows in draws((1, 5000), (1, 128), (1, 300), count=5):
    assert_values(flash_bytes, {(L, d, rows): 4 * L * d * (1 + 2 * math.ceil(L / rows))}, flash_hint)
### END HIDDEN TESTS

# %% [markdown]
# ## 7.2 The kernel ({points q7_2})
#
# This kernel is right, but each thread reads all of K and V for its own query. It is launched with ceil(L / 64) blocks
# of 64 threads, a thread for each query.
#
# - `FLASH_CUDA`: change it, so that a block reads K and V once. All threads copy a tile of 16 keys and 16 values into
#   shared memory, and all use it. The launch stays as it is, and every L ≥ 1 has to work.
#
# <details><summary>Hint 1: threads without a query</summary>
#
# A thread that returns early never comes to the barrier, and the others wait for it. It also copies no part of the
# tile. So it has to stay.
# </details>
# <details><summary>Hint 2: copy a tile</summary>
#
# The tile has 16 x 32 numbers, and 64 threads copy them: thread t copies the numbers t, t + 64, t + 128 and so on. The
# last tile may have fewer keys.
# </details>

# %% nbgrader={"grade_id": "q7_2", "solution": true}
FLASH_CUDA = r"""
#define D 32
__global__ void flash(const float* q, const float* k, const float* v, float* o, int L) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= L) return;
  float mine[D], sum[D], m = -3e38f, l = 0;
  for (int c = 0; c < D; ++c) mine[c] = q[row * D + c] * 0.17677669f, sum[c] = 0;
  for (int j = 0; j < L; ++j) {
    float s = 0;
    for (int c = 0; c < D; ++c) s += mine[c] * k[j * D + c];
    float most = fmaxf(m, s), shrink = expf(m - most), p = expf(s - most);
    l = l * shrink + p;
    for (int c = 0; c < D; ++c) sum[c] = sum[c] * shrink + p * v[j * D + c];
    m = most;
  }
  for (int c = 0; c < D; ++c) o[row * D + c] = sum[c] / l;
}
"""
### BEGIN SOLUTION
FLASH_CUDA = r"""
#define D 32
#define TILE 16
__global__ void flash(const float* q, const float* k, const float* v, float* o, int L) {
  __shared__ float ks[TILE][D], vs[TILE][D];
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float mine[D], sum[D], m = -3e38f, l = 0;
  for (int c = 0; c < D; ++c) mine[c] = row < L ? q[row * D + c] * 0.17677669f : 0, sum[c] = 0;
  for (int start = 0; start < L; start += TILE) {
    int count = min(TILE, L - start);
    for (int at = threadIdx.x; at < count * D; at += blockDim.x) {
      ks[at / D][at % D] = k[start * D + at];
      vs[at / D][at % D] = v[start * D + at];
    }
    __syncthreads();
    for (int j = 0; j < count; ++j) {
      float s = 0;
      for (int c = 0; c < D; ++c) s += mine[c] * ks[j][c];
      float most = fmaxf(m, s), shrink = expf(m - most), p = expf(s - most);
      l = l * shrink + p;
      for (int c = 0; c < D; ++c) sum[c] = sum[c] * shrink + p * vs[j][c];
      m = most;
    }
    __syncthreads();
  }
  if (row < L)
    for (int c = 0; c < D; ++c) o[row * D + c] = sum[c] / l;
}
"""
### END SOLUTION

# %%
L = 96
q, k, v = floats(L, 32), floats(L, 32), floats(L, 32)
o = np.zeros((L, 32), np.float32)
flash = counted(FLASH_CUDA, "flash", math.ceil(L / 64), 64, q, k, v, o, L)
print(f"bytes read: {flash.counts.bytes_read:,}; predicted {flash_bytes(L, 32, 1):,} without tiles, ", end="")
print(f"{flash_bytes(L, 32, 64):,} with blocks of 64 queries")
compare({"flash": flash}, "global_loads.sectors", "shared_loads.requests", "bank_conflicts", "block_barriers", "flops")


# %% nbgrader={"grade_id": "q7_2_test", "grade": true, "points": 4} rooflab={"seconds": 120}
def check_flash(L, most, scale=1.0, apart=0.0, late=0.0):
    q, k, v = scale * floats(L, 32) + np.float32(apart), scale * floats(L, 32) - np.float32(apart), floats(L, 32)
    k[16:] += np.float32(late) * q[16:]
    o, what = (
        np.full((L, 32), np.nan, np.float32),
        f"L = {L}, q of {apart:g} ± {scale:g}, k of {0 - apart:g} ± {scale:g}",
    )
    what += f", and {late:g} q added to k from key 16 on" if late else ""
    run = assert_clean(FLASH_CUDA, "flash", math.ceil(L / 64), 64, q, k, v, o, L, what=what)
    scores = to_float64(q) @ to_float64(k).T / math.sqrt(32)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    exact = weights @ to_float64(v) / weights.sum(1, keepdims=True)
    # Scores are rounded by a share of their size, and weights are off by as much.
    within = max(1e-4 if scale == 1 and not apart else 1e-3, 1e-6 * np.abs(scores).max())
    assert_close(run.args[3], exact, rtol=within, atol=max(1e-4, 1e-6 * np.abs(scores).max()), name=f"o at {what}")
    counts = run.counts
    said = f"flash at {what}: {counts.bytes_read:,} bytes are read, expected at most {most:,}"
    assert counts.bytes_read <= most, f"{said}: each block reads K and V once"
    made, enough = counts.global_loads.requests, math.ceil(L / 64) * (128 + 8 * L)
    said = f"flash at {what}: {made:,} requests load q, k and v, expected at most {enough:,}"
    assert made <= enough, f"{said}: do all threads copy a part of the tile?"
    said = f"flash at {what}: {counts.bytes_written:,} bytes are written, expected {4 * L * 32:,}: only o"
    assert counts.bytes_written == 4 * L * 32, said


for L, most in {64: 24576, 100: 64000, 10: 3840, 1: 384}.items():
    check_flash(L, most)
short = floats(70, 32), floats(150, 32), floats(150, 32), floats(70, 32)  # query 70 is that of thread 6 in block 1
assert_place(FLASH_CUDA, "flash", 3, 64, *short, 150, place=(1, 0), warp=0)
tiles = []
for L in (1, 16):  # the first key of a tile, and its last one
    whole, half = floats(L, 32), floats(32 * L)[:-16]
    tiles += [(whole, half, whole, 0 * whole, L), (whole, whole, half, 0 * whole, L)]
assert_warps(FLASH_CUDA, "flash", 1, 64, *tiles, what="a tile is copied")
### BEGIN HIDDEN TESTS
for L in (1, measure.draw(65, 119), 128, measure.draw(193, 250)):
    check_flash(L, 4 * L * 32 * (1 + 2 * math.ceil(L / 64)))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q7_2_range_test", "grade": true, "points": 3} rooflab={"seconds": 120}
check_flash(50, 19200, scale=7.0)
check_flash(20, 7680, apart=16.0)  # all scores are about -1450
check_flash(50, 19200, late=20.0)  # the largest scores, above 100, are not in the first tile
### BEGIN HIDDEN TESTS
L = measure.draw(66, 90)
check_flash(L, 4 * L * 32 * 5, scale=8.0)
check_flash(20, 4 * 20 * 32 * 3, apart=60.0)  # all scores are about -20,000
### END HIDDEN TESTS

# %%
rl.plots.plot_roofline("A100", {"flash": flash.counts.intensity}, title=BOUND)

# %% [markdown]
# Who reads what? Find the lines of the copy, and those of the inner loop. In shared memory, all lanes want the same
# word of a key at the same time: one word, one wavefront. But each thread reads its own row of q, and writes its own
# row of o. A row has 128 bytes, so the lanes are far apart. This happens once for each query. Is it worth a change?

# %%
rl.plots.plot_warp_requests(
    [one for one in flash.requests if one.array in ("q", "k", "o", "")], "flash: who accesses what"
)
