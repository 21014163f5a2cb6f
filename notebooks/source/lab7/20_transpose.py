# %% [markdown]
# # Part 2. Transpose
#
# A transpose moves each number once and computes nothing. So it shows memory alone.
#
# ## 2.1 Bank conflicts ({points q2_1})
#
# Predict how many wavefronts a request in shared memory needs beyond the first one. Lane i accesses word number
# `step * i`, for i from 0 to 31.
#
# - `bank_conflicts(step)`: the number of conflicts, an `int`, for step ≥ 0. Lanes that access the same word cause
#   no conflict.


# %% nbgrader={"grade_id": "q2_1", "solution": true}
def bank_conflicts(step):
    """Wavefronts beyond the first, if lane i accesses word step * i of shared memory: an int."""
    ### BEGIN SOLUTION
    return math.gcd(step, 32) - 1 if step else 0
    ### END SOLUTION


# %% nbgrader={"grade_id": "q2_1_test", "grade": true, "points": 3}
bank_hint = "word w lies in bank w % 32; the bank with the most different words decides"
assert_values(bank_conflicts, {(1,): 0, (2,): 1, (3,): 0, (0,): 0, (12,): 3}, bank_hint)
### BEGIN HIDDEN TESTS
assert_values(bank_conflicts, {(32,): 31, (33,): 0, (34,): 1, (36,): 3, (48,): 15, (64,): 31, (16,): 15}, bank_hint)
for (step,) in draws((1, 300)):
    words = {step * lane for lane in range(32)}
    most = max(sum(word % 32 == bank for word in words) for bank in range(32))
    assert_values(bank_conflicts, {(step,): most - 1}, bank_hint)
### END HIDDEN TESTS

# %% [markdown]
# This kernel reads columns of a tile in shared memory. The next cell runs it with tiles of different widths.

# %%
COLUMN_CUDA = r"""
__global__ void read_column(float* y) {
  __shared__ float tile[32][WIDTH];
  for (int column = threadIdx.x; column < WIDTH; column += 32)
    for (int row = 0; row < 32; ++row) tile[row][column] = row;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x][0];
}
"""
rows, columns = [], {}
for width in (32, 33, 34, 36, 48):
    source = COLUMN_CUDA.replace("WIDTH", str(width))
    launch = counted(source, "read_column", 1, 32, np.zeros(32, np.float32))
    rows.append((width, bank_conflicts(width), launch.counts.shared_loads.bank_conflicts))
    columns |= {f"width {width}": one for one in launch.requests if (one.memory, one.operation) == ("shared", "load")}
display(
    Table(("words in a row of the tile", "predicted", "counted"), rows, title="Conflicts when a warp reads a column")
)
rl.plots.plot_warp_requests({name: columns[name] for name in ("width 32", "width 33")}, "A warp reads a column")

# %% [markdown]
# One unused word at the end of each row, and all conflicts are gone.
#
# ## 2.2 The transpose ({points q2_2})
#
# The kernel below transposes x (rows, columns) into y (columns, rows). It is launched with a grid of
# (ceil(columns / 32), ceil(rows / 32)) blocks of (32, 8) threads. Its values are right. Run it with the next cell and
# look at the store of y: its **index is transposed**. A thread takes from the tile what it has put there itself, so the
# tile is of no use.
#
# - `TRANSPOSE_CUDA`: repair it. Loads and stores of global memory must use whole sectors, 4 for each full warp, and
#   there must be no bank conflicts. The launch stays as it is, each block has a tile of its own, and sizes need not be
#   multiples of 32.
#
# <details><summary>Hint 1: the index</summary>
#
# Neighbouring lanes have to write neighbours of y. So in the second loop, `threadIdx.x` has to be a column of y, which
# is a row of x.
# </details>
# <details><summary>Hint 2: a race</summary>
#
# Now a thread takes from the tile what another thread has put there. When may it do so?
# </details>

# %% nbgrader={"grade_id": "q2_2", "solution": true}
TRANSPOSE_CUDA = r"""
__global__ void transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][32];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (row + k < rows && column < columns)
      tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * columns + column];
  for (int k = 0; k < 32; k += 8)
    if (row + k < rows && column < columns)
      y[column * rows + row + k] = tile[threadIdx.y + k][threadIdx.x];
}
"""
### BEGIN SOLUTION
TRANSPOSE_CUDA = r"""
__global__ void transpose(const float* x, float* y, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (row + k < rows && column < columns)
      tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * columns + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;  // of y
  for (int k = 0; k < 32; k += 8)
    if (row + k < columns && column < rows)
      y[(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
}
"""
### END SOLUTION

# %%
x, y = floats(64, 96), np.zeros((96, 64), np.float32)
launch = counted(TRANSPOSE_CUDA, "transpose", (3, 2), (32, 8), x, y, 64, 96)
print("values are right:", np.array_equal(y, x.T))
names = ("global_loads", "global_stores")
display(compare({"transpose": launch}, *(f"{name}.sectors_per_request" for name in names), "bank_conflicts"))
rl.plots.plot_warp_requests(launch.requests, "transpose: who accesses what")


# %% nbgrader={"grade_id": "q2_2_test", "grade": true, "points": 4}
def check_transpose(rows, columns, whole_sectors=False, no_conflicts=False):
    x, y = floats(rows, columns), np.full((columns, rows), np.nan, np.float32)
    grid, what = (math.ceil(columns / 32), math.ceil(rows / 32)), f"({rows}, {columns})"
    run = assert_clean(TRANSPOSE_CUDA, "transpose", grid, (32, 8), x, y, rows, columns, what=what)
    assert_close(run.args[1], x.T, rtol=0, atol=0, name=f"y at {what}")
    counts, expected = run.counts, rows * columns // 8
    for name, made in (("loads", counts.global_loads), ("stores", counts.global_stores)):
        said = f"transpose at {what}: the {name} need {made.sectors} sectors, expected {expected}"
        good = made.sectors == expected or not whole_sectors
        assert good, f"{said}: do neighbouring lanes access neighbours in x, and in y?"
    said = f"transpose at {what}: {counts.bank_conflicts} bank conflicts, expected none"
    good = counts.bank_conflicts == 0 or not no_conflicts
    assert good, f"{said}: how far apart are the words that a warp accesses in the tile?"


check_transpose(40, 70)
check_transpose(64, 96, whole_sectors=True)
short = floats(40, 96), floats(96, 64)  # row 40 is in the tiles of the blocks (0, 1), (1, 1) and (2, 1)
assert_place(TRANSPOSE_CUDA, "transpose", (3, 2), (32, 8), *short, 64, 96, place=(0, 1))
loads = [(floats(N - 1, N), floats(N, N), N, N) for N in (33, 64)]  # the first and the last row of a tile
assert_warps(TRANSPOSE_CUDA, "transpose", (2, 2), (32, 8), *loads, what="the rows of x are loaded")
stores = [(floats(N, N), floats(N - 1, N), N, N) for N in (33, 64)]
assert_warps(TRANSPOSE_CUDA, "transpose", (2, 2), (32, 8), *stores, what="the rows of y are stored")
### BEGIN HIDDEN TESTS
check_transpose(1, 33)
check_transpose(measure.draw(33, 63), measure.draw(1, 31))
check_transpose(32 * measure.draw(1, 3), 32, whole_sectors=True)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_2_banks_test", "grade": true, "points": 4}
check_transpose(64, 96, whole_sectors=True, no_conflicts=True)
### BEGIN HIDDEN TESTS
check_transpose(32, 32 * measure.draw(2, 4), whole_sectors=True, no_conflicts=True)
check_transpose(45, 31, no_conflicts=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 2.3 What padding saves ({points q2_3})
#
# - `tile_conflicts(N, width)`: the bank conflicts of a whole transpose of N x N numbers, N a multiple of 32. A row of
#   the tile has `width` words. Rows of the tile are written, and columns are read.
# - `swizzle`: the right letter. Without padding, which place of element (r, c) gives no conflicts, neither when a row
#   of x is stored into the tile nor when a column is read?
#     - `"a"`: `tile[r][c ^ r]`, in a tile of 32 x 32 words
#     - `"b"`: `tile[c][r]`, in a tile of 32 x 32 words, so that the read goes along a row
#     - `"c"`: `tile[c / 16][r][c % 16]`, which are two tiles of 32 x 16 words


# %% nbgrader={"grade_id": "q2_3", "solution": true}
def tile_conflicts(N, width):
    """Bank conflicts of a transpose of N x N numbers by tiles with `width` words in a row: an int."""
    ### BEGIN SOLUTION
    return N * N // 32 * bank_conflicts(width)
    ### END SOLUTION


swizzle = None  # "a", "b" or "c"
### BEGIN SOLUTION
swizzle = "a"
### END SOLUTION

# %% nbgrader={"grade_id": "q2_3_test", "grade": true, "points": 2} rooflab={"needs": ["q2_1"]}
conflict_hint = "how many requests read the tile, and how many conflicts has each?"
assert_values(tile_conflicts, {(32, 34): 32, (64, 36): 384, (64, 35): 0}, conflict_hint)
### BEGIN HIDDEN TESTS
assert_values(tile_conflicts, {(256, 32): 63488, (256, 33): 0, (1024, 48): 491520}, conflict_hint)
N = 32 * measure.draw(3, 40)
assert_values(tile_conflicts, {(N, 40): N * N // 32 * 7, (N, 37): 0}, conflict_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q2_3_choice_test", "grade": true, "points": 2}
assert swizzle in ("a", "b", "c"), f'swizzle must be "a", "b" or "c", got {swizzle!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    swizzle,
    "a",
    b="Then the lanes of a warp store a column of the tile, so the conflicts have moved from the load to the store.",
    c="A column of 16-word rows: lanes r and r + 2 meet in a bank.",
)
### END HIDDEN TESTS

# %%
N = 256
x, y = floats(N, N), np.zeros((N, N), np.float32)
launches = {
    f"width {width}": counted(
        TRANSPOSE_CUDA.replace("[33]", f"[{width}]"), "transpose", (N // 32, N // 32), (32, 8), x, y, N, N
    )
    for width in (32, 33)
}
print({f"width {width}": tile_conflicts(N, width) for width in (32, 33)}, "predicted")
compare(launches, "bank_conflicts", "shared_loads.requests", "shared_loads.wavefronts", title=f"Counted, {N} x {N}")

# %% [markdown]
# If your tile has another form than `[32][33]`, change the `replace` above. A transpose has 0 FLOPs, so it has no place
# on a roofline. Its bound is its bytes over the bandwidth: 8 bytes for each number.
