# %% [markdown]
# # Part 4. Softmax of rows
#
# $$y_{rc} = \frac{e^{x_{rc} - m_r}}{\sum_k e^{x_{rk} - m_r}}, \qquad m_r = \max_k x_{rk}$$
#
# This kernel is the textbook's form. Each warp has a row and goes over it three times: for the maximum, for the sum,
# and for the result. `__shfl_xor_sync(mask, v, d)` gives lane i the `v` of lane `i ^ d`. After five such shuffles, with
# d = 16, 8, 4, 2 and 1, all lanes have the result.
#
# A block has (32, 4) threads, so `threadIdx.y` is the warp of the block. All softmax kernels here are launched with
# ceil(rows / 4) blocks.

# %% tags=["setup"]
SOFTMAX3_CUDA = r"""
__device__ float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, d));
  return v;
}
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;  // the whole warp
  x += row * columns, y += row * columns;
  float m = -3e38f, l = 0;
  for (int c = threadIdx.x; c < columns; c += 32) m = fmaxf(m, x[c]);
  m = warp_max(m);
  for (int c = threadIdx.x; c < columns; c += 32) l += expf(x[c] - m);
  l = warp_sum(l);
  for (int c = threadIdx.x; c < columns; c += 32) y[c] = expf(x[c] - m) / l;
}
"""

# %% [markdown]
# ## 4.1 Bytes ({points q4_1})
#
# How many bytes do the threads read from global memory? Three versions of the kernel compute the same:
#
# - `"three passes"`: the kernel above
# - `"online"`: the maximum and the sum in one pass, and the result in a second one
# - `"registers"`: each lane keeps its elements of x in registers, once they have been read
#
# Give `softmax_bytes(rows, columns, version)`. Elements are in fp32.


# %% nbgrader={"grade_id": "q4_1", "solution": true}
def softmax_bytes(rows, columns, version):
    """Bytes that softmax reads in this version: an int."""
    ### BEGIN SOLUTION
    return 4 * rows * columns * {"three passes": 3, "online": 2, "registers": 1}[version]
    ### END SOLUTION


# %% nbgrader={"grade_id": "q4_1_test", "grade": true, "points": 2}
bytes_hint = "how often is each element of x read? An element has 4 bytes"
assert_values(softmax_bytes, {(8, 100, "three passes"): 9600}, bytes_hint)
for version in ("online", "registers"):
    said = f'softmax_bytes(8, 100, "{version}") must be a whole number (int)'
    assert is_count(softmax_bytes(8, 100, version)), said
### BEGIN HIDDEN TESTS
assert_values(softmax_bytes, {(8, 100, "online"): 6400, (8, 100, "registers"): 3200}, bytes_hint)
for rows, columns in draws((1, 999), (1, 999), count=3):
    expected = {"three passes": 12, "online": 8, "registers": 4}
    assert_values(
        softmax_bytes, {(rows, columns, name): n * rows * columns for name, n in expected.items()}, bytes_hint
    )
### END HIDDEN TESTS


# %% tags=["setup"]
def check_softmax(source, most, rows, columns, scale=1.0, shift=0.0):
    """What the tests of 4.2 and 4.3 ask; `most` is the number of bytes that may be read."""
    x = (scale * floats(rows, columns) + shift).astype(np.float32)
    y, what = np.full((rows, columns), np.nan, np.float32), f"({rows}, {columns}), x of {shift:g} ± {scale:g}"
    run = assert_clean(source, "softmax", math.ceil(rows / 4), (32, 4), x, y, rows, columns, what=what)
    exact = np.exp(to_float64(x) - to_float64(x).max(1, keepdims=True))
    assert_close(run.args[1], exact / exact.sum(1, keepdims=True), rtol=1e-4, atol=1e-6, name=f"y at {what}")
    said = f"softmax at {what}: {run.counts.bytes_read} bytes are read, expected at most {most}"
    assert run.counts.bytes_read <= most, f"{said}: how often is each element read?"
    made, least = run.counts.global_loads.requests, most // (4 * rows * columns) * rows * math.ceil(columns / 32)
    said = f"softmax at {what}: {made} requests load x, expected {least}"
    assert made <= 2 * least, f"{said}: do all lanes take a part of the row?"
    stores = run.counts.global_stores
    said = f"softmax at {what}: {stores.bytes} bytes are stored, expected {4 * rows * columns}: store each result once"
    assert stores.bytes == 4 * rows * columns, said
    for row in (1, rows - 1) if rows > 4 else ():  # with arrays that end before this row
        short = (x[:row], y[:row], rows, columns)
        assert_place(source, "softmax", math.ceil(rows / 4), (32, 4), *short, place=(row // 4, 0), warp=row % 4)


# %% [markdown]
# ## 4.2 Online ({points q4_2})
#
# Lab 3, part 2: if the maximum grows from m to m', a sum of $e^{x - m}$ is brought to the new maximum by the factor
# $e^{m - m'}$. So one pass is enough for both.
#
# - `ONLINE_CUDA`: a kernel `softmax` as above, the version `"online"` of 4.1, for rows of any length. Each lane keeps
#   its own m and l. Then the lanes are combined. Copy what you need from the kernel above.
#
# <details><summary>Hint 1: combine</summary>
#
# First the maximum of all lanes, as above. Then each lane brings its own l to this maximum, and the l are added up.
# </details>
# <details><summary>Hint 2: lanes without an element</summary>
#
# If a row has fewer than 32 columns, some lanes have seen nothing. Their m is still the lowest number, and their l is
# 0.
# </details>

# %% nbgrader={"grade_id": "q4_2", "solution": true}
ONLINE_CUDA = None  # r"""..."""
### BEGIN SOLUTION
ONLINE_CUDA = r"""
__device__ float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, d));
  return v;
}
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  x += row * columns, y += row * columns;
  float m = -3e38f, l = 0;
  for (int c = threadIdx.x; c < columns; c += 32) {
    float v = x[c], most = fmaxf(m, v);
    l = l * expf(m - most) + expf(v - most);
    m = most;
  }
  float most = warp_max(m);
  l = warp_sum(l * expf(m - most));
  for (int c = threadIdx.x; c < columns; c += 32) y[c] = expf(x[c] - most) / l;
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q4_2_test", "grade": true, "points": 3}
check_softmax(ONLINE_CUDA, 4096, 8, 64)
check_softmax(ONLINE_CUDA, 4000, 5, 100)
### BEGIN HIDDEN TESTS
for rows, columns in [(7, measure.draw(130, 300)), (3, 1024), (2, measure.draw(1100, 2500))]:
    check_softmax(ONLINE_CUDA, 8 * rows * columns, rows, columns)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_2_range_test", "grade": true, "points": 2}
check_softmax(ONLINE_CUDA, 2048, 4, 64, scale=100.0)
check_softmax(ONLINE_CUDA, 168, 3, 7, shift=-300.0)
check_softmax(ONLINE_CUDA, 16, 2, 1)
check_softmax(ONLINE_CUDA, 32768, 2, 2048, scale=100.0)
for lowest in (-1e5, -1e36):  # m has to begin below all numbers of fp32
    check_softmax(ONLINE_CUDA, 1200, 3, 50, -lowest / 9, lowest)
### BEGIN HIDDEN TESTS
for rows, columns, shift in [(6, measure.draw(33, 63), -500.0), (1, measure.draw(2, 31), 500.0)]:
    check_softmax(ONLINE_CUDA, 8 * rows * columns, rows, columns, 50.0, shift)
lowest = -(10.0 ** measure.draw(31, 37))
check_softmax(ONLINE_CUDA, 8 * 3 * 50, 3, 50, -lowest / 9, lowest)
### END HIDDEN TESTS

# %% [markdown]
# ## 4.3 In registers ({points q4_3})
#
# - `REGISTER_CUDA`: a kernel `softmax` as above, the version `"registers"` of 4.1, for rows of at most 1024 columns.
#   Each lane has at most 32 elements, in an array `float v[32]`.
#
# <details><summary>Hint</summary>
#
# An array stays in registers only if every index is known when the kernel is compiled. So loop k from 0 to 31, with
# `#pragma unroll` before it, and test inside whether column `threadIdx.x + 32 * k` exists.
# </details>

# %% nbgrader={"grade_id": "q4_3", "solution": true}
REGISTER_CUDA = None  # r"""..."""
### BEGIN SOLUTION
REGISTER_CUDA = r"""
__device__ float warp_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, d));
  return v;
}
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
__global__ void softmax(const float* x, float* y, int rows, int columns) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  x += row * columns, y += row * columns;
  float v[32], m = -3e38f, l = 0;
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    int c = threadIdx.x + 32 * k;
    v[k] = c < columns ? x[c] : -3e38f;
    m = fmaxf(m, v[k]);
  }
  m = warp_max(m);
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    v[k] = threadIdx.x + 32 * k < columns ? expf(v[k] - m) : 0.0f;
    l += v[k];
  }
  l = warp_sum(l);
#pragma unroll
  for (int k = 0; k < 32; ++k)
    if (threadIdx.x + 32 * k < columns) y[threadIdx.x + 32 * k] = v[k] / l;
}
"""
### END SOLUTION

# %% nbgrader={"grade_id": "q4_3_test", "grade": true, "points": 3}
check_softmax(REGISTER_CUDA, 2048, 8, 64)
check_softmax(REGISTER_CUDA, 2000, 5, 100)
check_softmax(REGISTER_CUDA, 8192, 2, 1024)
### BEGIN HIDDEN TESTS
for rows, columns in [(7, measure.draw(130, 300)), (3, 1023)]:
    check_softmax(REGISTER_CUDA, 4 * rows * columns, rows, columns)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q4_3_range_test", "grade": true, "points": 2}
check_softmax(REGISTER_CUDA, 1024, 4, 64, scale=100.0)
check_softmax(REGISTER_CUDA, 84, 3, 7, shift=-300.0)
check_softmax(REGISTER_CUDA, 8, 2, 1)
check_softmax(REGISTER_CUDA, 8192, 2, 1024, scale=100.0)
for lowest in (-1e5, -1e36):  # m has to begin below all numbers of fp32
    check_softmax(REGISTER_CUDA, 600, 3, 50, -lowest / 9, lowest)
### BEGIN HIDDEN TESTS
for rows, columns, shift in [(6, measure.draw(33, 63), -500.0), (1, measure.draw(2, 31), 500.0)]:
    check_softmax(REGISTER_CUDA, 4 * rows * columns, rows, columns, 50.0, shift)
lowest = -(10.0 ** measure.draw(31, 37))
check_softmax(REGISTER_CUDA, 4 * 3 * 50, 3, 50, -lowest / 9, lowest)
### END HIDDEN TESTS

# %%
rows, columns = 16, 256
x, launches, table = floats(rows, columns), {}, []
for version, source in {"three passes": SOFTMAX3_CUDA, "online": ONLINE_CUDA, "registers": REGISTER_CUDA}.items():
    y = np.zeros((rows, columns), np.float32)
    launches[version] = counted(source, "softmax", rows // 4, (32, 4), x, y, rows, columns)
    counts = launches[version].counts
    table.append((version, f"{softmax_bytes(rows, columns, version):,}", f"{counts.bytes_read:,}", f"{counts.flops:,}"))
display(Table(("softmax", "bytes read, predicted", "counted", "FLOPs"), table, title=f"{rows} x {columns}"))
rl.plots.plot_roofline("A100", {version: launch.counts.intensity for version, launch in launches.items()}, title=BOUND)

# %% [markdown]
# FLOPs are additions and multiplications; exponentials and divisions are not counted. *online* does more arithmetic
# than *three passes*, and moves fewer bytes. Left of the ridge that is a good exchange.
#
# The library has the same steps. The next cell lists its softmax kernels, with one line about each:

# %%
rl.variants("softmax")

# %%
rl.plots.plot_warp_requests(
    [one for one in launches["registers"].requests if one.memory == "global"][:2],
    "Each warp reads its row in whole sectors",
)
