# %% [markdown]
# # Part 6. One kernel for four
#
# The end of a layer with 8-bit weights: scale the sums of the product, add a bias to each column, apply GeLU, and clip.
#
# $$y_{rc} = \mathrm{clip}\left(\mathrm{GeLU}(s\,x_{rc} + b_c), -t, t\right), \qquad
# \mathrm{GeLU}(v) = 0.5\, v \left(1 + \tanh\left(0.79788456\,(v + 0.044715\, v\, v\, v)\right)\right)$$
#
# Written as four kernels, each reads and writes the whole matrix:

# %%
FOUR_CUDA = r"""
__global__ void scale(const float* x, float* y, int n, float s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = s * x[i];
}
__global__ void add_bias(const float* x, const float* bias, float* y, int n, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + bias[i % columns];
}
__global__ void gelu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
  }
}
__global__ void clip(const float* x, float* y, int n, float t) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fminf(fmaxf(x[i], -t), t);
}
"""

# %% [markdown]
# ## 6.1 Accesses ({points q6_1})
#
# How many numbers of x and y are accessed for each element of the matrix, read and written? Do not count the bias,
# which is one row.
#
# - `four_accesses`: by the four kernels together
# - `fused_accesses`: by one kernel that does the same

# %% nbgrader={"grade_id": "q6_1", "solution": true}
four_accesses = None
fused_accesses = None
### BEGIN SOLUTION
four_accesses, fused_accesses = 8, 2
### END SOLUTION

# %% nbgrader={"grade_id": "q6_1_test", "grade": true, "points": 2}
for name, value in {"four_accesses": four_accesses, "fused_accesses": fused_accesses}.items():
    assert is_count(value), f"{name} must be a whole number (int), got {value!r}"
### BEGIN HIDDEN TESTS
said = f"four_accesses is not {four_accesses}: what does each of the kernels read and write?"
assert four_accesses == 8, said
said = f"fused_accesses is not {fused_accesses}: what has to come from memory, and what has to go there?"
assert fused_accesses == 2, said
### END HIDDEN TESTS

# %% [markdown]
# ## 6.2 Fused ({points q6_2})
#
# Each thread of this kernel works on one column. The kernel is launched with a grid of (ceil(columns / 256), 4) blocks
# of 256 threads. Four blocks share the same columns: the one with `blockIdx.y` = y takes the rows y, y + 4, y + 8 and
# so on. The kernel does all four steps, but it has three faults: an **index is transposed**, a **guard is missing**,
# and the bias is read again for each row.
#
# - `EPILOGUE_CUDA`: repair it. Each number of x is read once, and each thread reads its bias once.

# %% nbgrader={"grade_id": "q6_2", "solution": true}
EPILOGUE_CUDA = r"""
__global__ void epilogue(const float* x, const float* bias, float* y, int rows, int columns, float s, float t) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    int i = column * rows + row;
    float v = s * x[i] + bias[column];
    v = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    y[i] = fminf(fmaxf(v, -t), t);
  }
}
"""
### BEGIN SOLUTION
EPILOGUE_CUDA = r"""
__global__ void epilogue(const float* x, const float* bias, float* y, int rows, int columns, float s, float t) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float b = bias[column];
  for (int row = blockIdx.y; row < rows; row += gridDim.y) {
    int i = row * columns + column;
    float v = s * x[i] + b;
    v = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    y[i] = fminf(fmaxf(v, -t), t);
  }
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q6_2_test", "grade": true, "points": 3}
def check_epilogue(rows, columns, bias_once=False, s=1.5, t=2.0):
    x, bias = floats(rows, columns), floats(columns)
    given = (x, bias, np.full((rows, columns), np.nan, np.float32), rows, columns, s, t)
    what = f"({rows}, {columns}), s = {s}, t = {t}"
    run = assert_clean(EPILOGUE_CUDA, "epilogue", (math.ceil(columns / 256), 4), 256, *given, what=what)
    exact = np.clip(rl.gelu(rl.tensor(s * to_float64(x) + to_float64(bias), dtype="float64")).numpy(), -t, t)
    assert_close(run.args[2], exact, rtol=1e-5, atol=1e-5, name=f"y at {what}")
    counts, n = run.counts, rows * columns
    said = f"epilogue at {what}: {counts.bytes_written} bytes are written, expected {4 * n}: write each y once"
    assert counts.bytes_written == 4 * n, said
    once = 4 * (n + 4 * columns)  # with the bias once in each thread
    most = once if bias_once else max(once, 8 * n)
    said = f"epilogue at {what}: {counts.bytes_read} bytes are read, expected at most {most}"
    assert counts.bytes_read <= most, f"{said}: how often is each number of x read, and how often the bias?"
    all_rows = 4 * (n + min(rows, 4) * columns)
    said = f"epilogue at {what}: {counts.bytes_read} bytes are read, expected {all_rows}"
    assert counts.bytes_read >= all_rows, f"{said}: do all four rows of blocks take part?"
    made, least = counts.global_stores.requests, rows * math.ceil(columns / 32)
    said = f"epilogue at {what}: {made} requests store y, expected {least}, with 32 neighbours each"
    assert made <= least, said


for rows, columns in [(20, 300), (3, 64)]:
    check_epilogue(rows, columns)
for row in (1, 2, 3):  # the first row after these arrays is that of block (0, row)
    short = floats(row, 64), floats(64), floats(row, 64)
    assert_place(EPILOGUE_CUDA, "epilogue", (1, 4), 256, *short, 4, 64, 1.5, 2.0, place=(0, row))
check_epilogue(6, 100, s=-0.75, t=0.125)  # GeLU is never below -0.17, so only a small t clips on both sides
### BEGIN HIDDEN TESTS
for rows, columns in [(measure.draw(5, 9), measure.draw(257, 600)), (1, 1)]:
    check_epilogue(rows, columns, s=measure.draw(-12, 12) / 4, t=measure.draw(2, 9) / 64)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q6_2_bias_test", "grade": true, "points": 3}
check_epilogue(20, 300, bias_once=True)
### BEGIN HIDDEN TESTS
check_epilogue(measure.draw(17, 40), measure.draw(100, 255), bias_once=True)
### END HIDDEN TESTS

# %%
rows, columns = 32, 256
n, x, bias = rows * columns, floats(rows, columns), floats(columns)
u, v = np.zeros((rows, columns), np.float32), np.zeros((rows, columns), np.float32)
launches = {
    "scale": counted(FOUR_CUDA, "scale", n // 256, 256, x, u, n, 1.5),
    "add_bias": counted(FOUR_CUDA, "add_bias", n // 256, 256, u, bias, v, n, columns),
    "gelu": counted(FOUR_CUDA, "gelu", n // 256, 256, v, u, n),
    "clip": counted(FOUR_CUDA, "clip", n // 256, 256, u, v, n, 2.0),
}
y = np.zeros((rows, columns), np.float32)
fused = counted(EPILOGUE_CUDA, "epilogue", (1, 4), 256, x, bias, y, rows, columns, 1.5, 2.0)
print("the same values:", np.allclose(v, y, atol=1e-5))
each = {**launches, "epilogue": fused}
table = [
    (name, f"{one.counts.bytes_read / 4 / n:.2f}", f"{one.counts.bytes_written / 4 / n:.2f}", one.counts.flops // n)
    for name, one in each.items()
]
display(Table(("kernel", "read per element", "written per element", "FLOPs per element"), table))
rl.plots.plot_roofline(
    "A100", {name: one.counts.intensity for name, one in each.items() if one.counts.flops}, title=BOUND
)

# %% [markdown]
# Add up the columns of the four kernels. By how much is the sum larger than your prediction, and what is the
# difference? The fused kernel has all of the FLOPs in one place. It is still far left of the ridge, but so are the
# four, and together they move several times its bytes.
#
# Both `add_bias` and `epilogue` read the bias in whole sectors. The fused kernel does so once in each thread:

# %%
rl.plots.plot_warp_requests(fused.requests, "epilogue: who accesses what")
