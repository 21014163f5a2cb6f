# %% [markdown]
# # Part 5. Matrix product
#
# c = a b, all of N x N numbers, row by row. N is a multiple of 16, and in 5.4 a multiple of 64. So no kernel in this
# part needs a guard.
#
# ## 5.1 Which index goes along the row ({points q5_1})
#
# In the textbook's kernel, each thread computes one element of c:
#
# ```c++
# float sum = 0;
# for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
# c[i * n + j] = sum;
# ```
#
# Blocks have (16, 16) threads. So the lanes of a warp have 16 values of `threadIdx.x` and 2 of `threadIdx.y`. There are
# two ways to choose i and j. Predict the sectors of a load request, on average over the loads of a and of b:
#
# - `sectors_x_is_column`: where j comes from x and i from y
# - `sectors_x_is_row`: where i comes from x and j from y

# %% nbgrader={"grade_id": "q5_1", "solution": true}
sectors_x_is_column = None
sectors_x_is_row = None
### BEGIN SOLUTION
sectors_x_is_column = (2 + 2) / 2
sectors_x_is_row = (16 + 1) / 2
### END SOLUTION

# %% nbgrader={"grade_id": "q5_1_test", "grade": true, "points": 2}
for name, value in {"sectors_x_is_column": sectors_x_is_column, "sectors_x_is_row": sectors_x_is_row}.items():
    assert is_number(value) and 1 <= value <= 32, f"{name} must be a number from 1 to 32, got {value!r}"
### BEGIN HIDDEN TESTS
sector_hint = "which elements of a and of b do the lanes read, and in how many sectors do these lie?"
said = f"sectors_x_is_column is not {sectors_x_is_column}: {sector_hint}"
assert is_near(sectors_x_is_column, 2.0, 1e-3), said
said = f"sectors_x_is_row is not {sectors_x_is_row}: {sector_hint}"
assert is_near(sectors_x_is_row, 8.5, 1e-3), said
### END HIDDEN TESTS


# %% tags=["setup"]
def check_matmul(source, N, tile):
    """What the tests of 5.2 to 5.4 ask of every product; `tile` is the side of what a block computes."""
    a, b, c = floats(N, N), floats(N, N), np.full((N, N), np.nan, np.float32)
    run = assert_clean(source, "matmul", (N // tile, N // tile), (16, 16), a, b, c, N, what=f"N = {N}")
    assert_close(run.args[2], to_float64(a) @ to_float64(b), rtol=1e-4, atol=1e-4, name=f"c at N = {N}")
    return run.counts


# %% [markdown]
# ## 5.2 Repair the index ({points q5_2})
#
# This kernel has the slow order. Run it with the next cell, compare with your prediction, and look at who loads what.
#
# - `NAIVE_CUDA`: repair it. It is launched with (N / 16, N / 16) blocks of (16, 16) threads.

# %% nbgrader={"grade_id": "q5_2", "solution": true}
NAIVE_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
  c[i * n + j] = sum;
}
"""
### BEGIN SOLUTION
NAIVE_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
  c[i * n + j] = sum;
}
"""
### END SOLUTION

# %%
N = 64
a, b, c = floats(N, N), floats(N, N), np.zeros((N, N), np.float32)
naive = counted(NAIVE_CUDA, "matmul", (N // 16, N // 16), (16, 16), a, b, c, N)
print(f"predicted: {sectors_x_is_row} before the repair, {sectors_x_is_column} after it")
display(compare({"naive": naive}, "global_loads.sectors_per_request", "global_stores.sectors_per_request", "flops"))
rl.plots.plot_warp_requests(naive.requests, "matmul, naive")


# %% nbgrader={"grade_id": "q5_2_test", "grade": true, "points": 2} rooflab={"seconds": 120}
def check_naive(N):
    counts = check_matmul(NAIVE_CUDA, N, 16)
    for name, made, most in (("load", counts.global_loads, N**3 // 8), ("store", counts.global_stores, N**2 // 8)):
        said = f"matmul at N = {N}: {made.requests:,} {name} requests need {made.sectors:,} sectors"
        assert made.sectors <= most, f"{said}, expected at most {most:,}: which of i and j do neighbouring lanes share?"


check_naive(64)
short = floats(32, 64)  # row 32 of c is that of the blocks (0, 2) to (3, 2)
assert_place(NAIVE_CUDA, "matmul", (4, 4), (16, 16), floats(64, 64), floats(64, 64), short, 64, place=(0, 2))
### BEGIN HIDDEN TESTS
check_naive(16 * measure.draw(2, 3))
### END HIDDEN TESTS

# %% [markdown]
# ## 5.3 A tile in shared memory ({points q5_3})
#
# The naive kernel reads 2 N³ numbers. A block of 16 x 16 threads can share them: it loads a tile of 16 x 16 numbers of
# a and one of b into shared memory, each thread one number of each. Then each thread uses 16 numbers of both. So 2 N³ /
# 16 numbers are read.
#
# - `TILED_CUDA`: a kernel `matmul` with the parameters and the launch of the naive one. At most 2 N³ / 16 numbers are
#   read, in whole sectors, and there are no bank conflicts.
#
# <details><summary>Hint: how many barriers?</summary>
#
# Two for each tile. The first waits until the tile is complete. The second waits until everyone has used it, before the
# next tile overwrites it.
# </details>

# %% nbgrader={"grade_id": "q5_3", "solution": true}
TILED_CUDA = None  # r"""..."""
### BEGIN SOLUTION
TILED_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
  float sum = 0;
  for (int start = 0; start < n; start += 16) {
    as[y][x] = a[i * n + start + x];
    bs[y][x] = b[(start + y) * n + j];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[i * n + j] = sum;
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q5_3_test", "grade": true, "points": 3} rooflab={"seconds": 120}
def check_tiled(N, no_conflicts=False):
    counts = check_matmul(TILED_CUDA, N, 16)
    reads, most = counts.bytes_read // 4, 2 * N**3 // 16
    said = (
        f"matmul at N = {N}: {reads:,} numbers are read, expected at most {most:,}: each thread loads one of each tile"
    )
    assert reads <= most, said
    made, least = counts.global_loads.requests, most // 32
    said = f"matmul at N = {N}: {made:,} requests load from global memory, expected at most {least:,}"
    assert made <= least, f"{said}: each thread loads one number of each tile"
    sectors, least = counts.global_loads.sectors, most // 8
    said = f"matmul at N = {N}: the loads need {sectors:,} sectors, expected at most {least:,}: who loads which number?"
    assert sectors <= least or not no_conflicts, said
    said = f"matmul at N = {N}: {counts.bank_conflicts:,} bank conflicts, expected none"
    assert counts.bank_conflicts == 0 or not no_conflicts, said


check_tiled(64)
### BEGIN HIDDEN TESTS
check_tiled(16 * measure.draw(2, 3))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_3_counts_test", "grade": true, "points": 2} rooflab={"seconds": 120}
check_tiled(64, no_conflicts=True)
short = floats(32, 64)  # row 32 of c is that of the blocks (0, 2) to (3, 2)
assert_place(TILED_CUDA, "matmul", (4, 4), (16, 16), floats(64, 64), floats(64, 64), short, 64, place=(0, 2))
### BEGIN HIDDEN TESTS
check_tiled(16 * measure.draw(3, 5), no_conflicts=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 5.4 Sixteen results in each thread ({points q5_4})
#
# Now shared memory is the limit: each multiplication and addition needs two numbers from it. A thread that computes 4 x
# 4 results takes 4 numbers of a and 4 of b into registers, and makes 16 multiplications and additions with them.
#
# - `BLOCKED_CUDA`: a kernel `matmul`, launched with (N / 64, N / 64) blocks of (16, 16) threads. A block computes 64 x
#   64 results. At most 2 N³ / 64 numbers are read from global memory. All loads from shared memory together need at
#   most N³ / 64 wavefronts, which leaves no room for bank conflicts.
#
# <details><summary>Hint 1: a plan</summary>
#
# Tiles of 64 x 16 numbers of a and 16 x 64 of b. Each thread loads four numbers of each tile. The loop over k has a
# load of 4 + 4 numbers from shared memory, and a double loop over the 16 results.
# </details>
# <details><summary>Hint 2: which four columns?</summary>
#
# Let x be `threadIdx.x`. If a thread takes the columns 4 x to 4 x + 3, neighbouring lanes are four words apart. How
# many conflicts does that give? A thread is free to choose its four columns: it can also take x, x + 16, x + 32 and x +
# 48.
# </details>

# %% nbgrader={"grade_id": "q5_4", "solution": true}
BLOCKED_CUDA = None  # r"""..."""
### BEGIN SOLUTION
BLOCKED_CUDA = r"""
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[64][17], bs[16][64];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int start = 0; start < n; start += 16) {
    for (int q = 0; q < 4; ++q) {
      as[y + 16 * q][x] = a[(row + y + 16 * q) * n + start + x];
      bs[y][x + 16 * q] = b[(start + y) * n + column + x + 16 * q];
    }
    __syncthreads();
    for (int k = 0; k < 16; ++k) {
      float u[4], v[4];
      for (int q = 0; q < 4; ++q) u[q] = as[y + 16 * q][k], v[q] = bs[k][x + 16 * q];
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] += u[p] * v[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + y + 16 * p) * n + column + x + 16 * q] = sum[p][q];
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q5_4_test", "grade": true, "points": 3} rooflab={"seconds": 120}
def check_blocked(N, few_wavefronts=False):
    counts = check_matmul(BLOCKED_CUDA, N, 64)
    reads, most = counts.bytes_read // 4, 2 * N**3 // 64
    said = f"matmul at N = {N}: {reads:,} numbers are read from global memory, expected at most {most:,}"
    assert reads <= most, f"{said}: each thread loads four numbers of each tile"
    made, least = counts.global_loads.requests, most // 32
    said = f"matmul at N = {N}: {made:,} requests load from global memory, expected {least:,}"
    assert made <= 4 * least, f"{said}: each thread loads four numbers of each tile"
    made, most = counts.shared_loads.wavefronts, N**3 // 64
    said = f"matmul at N = {N}: loads from shared memory need {made:,} wavefronts, expected at most {most:,}"
    good = made <= most or not few_wavefronts
    assert good, f"{said}; {counts.shared_loads.bank_conflicts:,} of them are bank conflicts"


check_blocked(64)
### BEGIN HIDDEN TESTS
for N in (128, 192):
    check_blocked(N)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q5_4_wavefronts_test", "grade": true, "points": 3} rooflab={"seconds": 120}
check_blocked(64, few_wavefronts=True)
### BEGIN HIDDEN TESTS
check_blocked(128, few_wavefronts=True)
### END HIDDEN TESTS

# %%
N = 128
a, b, c = floats(N, N), floats(N, N), np.zeros((N, N), np.float32)
products = {
    name: counted(source, "matmul", (N // tile, N // tile), (16, 16), a, b, c, N)
    for name, source, tile in (
        ("naive", NAIVE_CUDA, 16),
        ("16 x 16 tile", TILED_CUDA, 16),
        ("4 x 4 a thread", BLOCKED_CUDA, 64),
    )
}
names = ("bytes_read", "global_loads.requests", "global_loads.sectors", "shared_loads.wavefronts", "flops")
display(compare(products, *names, title=f"N = {N}"))
rl.plots.plot_roofline("A100", {name: launch.counts.intensity for name, launch in products.items()}, title=BOUND)

# %% [markdown]
# The FLOPs are the same in all three. Each step does more of them for a byte, and moves to the right on the roofline.
# The naive kernel gains most from caches, so its true place may be much further to the right. The tiled ones do not
# have to hope for them. How large must the tile of a block be to pass the ridge? Lab 5, part 3.5, has the formula.

# %%
rl.plots.plot_warp_requests(
    [one for one in products["4 x 4 a thread"].requests if one.memory == "shared"][:4], "4 x 4 a thread: shared memory"
)
