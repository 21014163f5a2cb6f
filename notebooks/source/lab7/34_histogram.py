# %% [markdown]
# ## 3.4 A histogram ({points q3_4})
#
# `bins[v]` counts how often v occurs in x, for v from 0 to 255. Many threads want to add to the same bin, so an
# addition must be *atomic*: nobody else changes the bin between its load and its store. The direct way needs one atomic
# operation in global memory for each number.

# %%
DIRECT_CUDA = r"""
__global__ void histogram(const int* x, int* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1);
}
"""
N = 10_000
values = measure.rng().integers(0, 256, N).astype(np.int32)
direct = counted(DIRECT_CUDA, "histogram", 4, 256, values, np.zeros(256, np.int32), N)
compare({"direct": direct}, "global_atomics.threads", "shared_atomics.threads")

# %% [markdown]
# The kernel below gives each block a histogram of its own in shared memory, and adds it to `bins` in the end. All bins
# are 0 before. It is launched with any number of blocks, of 256 threads each. Usually there are fewer threads than
# numbers, and each thread counts several. The kernel has a **race**, and a barrier is missing.
#
# - `HISTOGRAM_CUDA`: repair it. All blocks count. Each number is read once, and neighbouring threads read neighbours.
#   There is one atomic operation in shared memory for each number. In global memory there are at most 256 for each
#   block, of which a thread makes at most one.

# %% nbgrader={"grade_id": "q3_4", "solution": true}
HISTOGRAM_CUDA = r"""
__global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine[x[i]] += 1;
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
"""
### BEGIN SOLUTION
HISTOGRAM_CUDA = r"""
__global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
"""
### END SOLUTION

# %%
bins = np.zeros(256, np.int32)
private = counted(HISTOGRAM_CUDA, "histogram", 4, 256, values, bins, N)
print("values are right:", np.array_equal(bins, np.bincount(values, minlength=256)))
launches = {"direct": direct, "a histogram of each block": private}
compare(launches, "global_atomics.threads", "shared_atomics.threads", "shared_atomics.bank_conflicts")


# %% nbgrader={"grade_id": "q3_4_test", "grade": true, "points": 3}
def check_histogram(n, blocks, highest=255):
    values = measure.rng().integers(0, highest, n, endpoint=True).astype(np.int32)
    what = f"n = {n}, {blocks} blocks, numbers from 0 to {highest}"
    run = assert_clean(HISTOGRAM_CUDA, "histogram", blocks, 256, values, np.zeros(256, np.int32), n, what=what)
    assert_close(run.args[1], np.bincount(values, minlength=256), rtol=0, atol=0, name=f"bins at {what}")
    said = f"histogram at {what}: bins is stored without an atomic operation"
    assert run.counts.global_stores.requests == 0, f"{said}: other blocks add at the same time"
    reads, made = run.counts.global_loads.bytes // 4, run.counts.global_loads.requests
    assert reads == n, f"histogram at {what}: {reads} numbers of x are read, expected {n}, each once"
    most = math.ceil(n / 32) + 8 * blocks
    said = f"histogram at {what}: {made} requests load x, expected at most {most}"
    assert made <= most, f"{said}: do neighbouring threads read neighbours, and do all threads count?"
    return run.counts, what


for n, blocks, highest in [(3000, 2, 255), (100, 1, 255), (1000, 1, 1)]:
    check_histogram(n, blocks, highest)
ends = [(np.zeros(n - 1, np.int32), np.zeros(256, np.int32), n) for n in (2, 256)]
assert_warps(HISTOGRAM_CUDA, "histogram", 1, 256, *ends, what="the numbers of a block are counted")
### BEGIN HIDDEN TESTS
for n, blocks, highest in [(measure.draw(2000, 4000), 3, 255), (1000, 1, 0), (1, 2, 255)]:
    check_histogram(n, blocks, highest)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_4_atomics_test", "grade": true, "points": 3}
def check_atomics(n, blocks):
    counts, what = check_histogram(n, blocks)
    in_global, in_shared = counts.global_atomics.threads, counts.shared_atomics.threads
    said = f"histogram at {what}: {in_global} atomic operations in global memory, expected at most {256 * blocks}"
    assert in_global <= 256 * blocks, said
    made, most = counts.global_atomics.requests, 8 * blocks
    said = f"histogram at {what}: {made} requests add to bins, expected at most {most}, 8 for each block"
    assert made <= most, f"{said}: each thread adds one bin"
    said = f"histogram at {what}: {in_shared} atomic operations in shared memory, expected one for each number"
    assert in_shared == n, said
    given = (np.zeros(n, np.int32), np.zeros(256, np.int32), n)
    first = measure.cuda_kernel(HISTOGRAM_CUDA, "histogram", grid=blocks, block=256, args=given, blocks=1).counts
    alone = blocks > 1 and first.global_loads.bytes in (0, 4 * n)
    assert not alone, f"histogram at {what}: one block counts all numbers: let all blocks count"


check_atomics(3000, 2)
### BEGIN HIDDEN TESTS
check_atomics(measure.draw(2000, 4000), 1)
check_atomics(measure.draw(2500, 4000), 3)
### END HIDDEN TESTS

# %% [markdown]
# ## 3.5 Atomic operations ({points q3_5})
#
# - `histogram_atomics(N, blocks, bins)`: a tuple of three numbers of atomic operations: in global memory by the direct
#   way; in shared memory with a histogram for each block; and in global memory with a histogram for each block, if each
#   block adds all of its bins, the empty ones too
# - `one_value`: the right letter. All N numbers of x are equal. How many wavefronts does the counter of this lab give
#   to one atomic request of a full warp in shared memory?
#     - `"a"`: 1, because lanes that access the same word cause no conflict, as for loads
#     - `"b"`: 1, because it first adds up the ones of all 32 lanes and then changes the word once
#     - `"c"`: 32, because it changes the word for one lane after another


# %% nbgrader={"grade_id": "q3_5", "solution": true}
def histogram_atomics(N, blocks, bins):
    """Atomic operations: (direct in global memory, private in shared memory, private in global memory at most)."""
    ### BEGIN SOLUTION
    return N, N, blocks * bins
    ### END SOLUTION


one_value = None  # "a", "b" or "c"
### BEGIN SOLUTION
one_value = "c"
### END SOLUTION

# %% nbgrader={"grade_id": "q3_5_test", "grade": true, "points": 2}
atomics_hint = "who adds to what, and how often? Compare with the counts above"
assert_values(histogram_atomics, {(10_000, 4, 256): (10_000, 10_000, 1024)}, atomics_hint)
### BEGIN HIDDEN TESTS
for numbers, blocks, bins in draws((10**3, 10**5), (1, 999), (2, 1024), count=5):
    expected = {(numbers, blocks, bins): (numbers, numbers, blocks * bins)}
    assert_values(histogram_atomics, expected, atomics_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_5_choice_test", "grade": true, "points": 2}
assert one_value in ("a", "b", "c"), f'one_value must be "a", "b" or "c", got {one_value!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    one_value,
    "c",
    a="A load gives one word to all lanes. An atomic operation changes it, once for each lane.",
    b="Count it: run your kernel on equal numbers and look at the wavefronts.",
)
### END HIDDEN TESTS

# %%
launches = {
    name: counted(HISTOGRAM_CUDA, "histogram", 4, 256, numbers, np.zeros(256, np.int32), N)
    for name, numbers in (("random numbers", values), ("equal numbers", np.full(N, 7, np.int32)))
}
display(compare(launches, "shared_atomics.requests", "shared_atomics.wavefronts", "shared_atomics.bank_conflicts"))
atomics = {
    name: one
    for name, launch in launches.items()
    for one in launch.requests
    if (one.memory, one.operation) == ("shared", "atomic")
}
if atomics:
    rl.plots.plot_warp_requests(atomics, "The costliest atomic request of a warp")
else:
    print("Your kernel has no atomic addition in shared memory yet.")

# %% [markdown]
# The counter does one addition after another, as a GPU does for atomic operations on one word in general. Adding the
# constant 1 without using the old value is an exception: recent GPUs have an instruction for it that first counts the
# lanes of a warp which want the same word. Equal numbers then cost much less than 32 wavefronts.
#
# ## 3.6 Bonus: a scan of a block ({points b3_6})
#
# A *scan* replaces element i by the sum of the elements 0 to i. One block of n threads scans n numbers, n a power of
# two from 2 to 1024. There are two well-known ways.
#
# - *Few steps*: in the step with distance d = 1, 2, 4, ... each element i ≥ d gets element i - d added.
# - *Few additions*: first a tree from the leaves to the root adds the last element of each left half to the last
#   element of the right half. Then the way back hands the sums that are complete to the elements between them.
#
# Write both, and predict their additions.
#
# - `scan_additions(n)`: a tuple of the additions of the first and the second way
# - `SCAN_CUDA`: two kernels `few_steps` and `few_additions` with the parameters `(const float* x, float* y, int n)`,
#   each launched with one block of n threads
#
# <details><summary>Hint: the way back</summary>
#
# After the tree, the elements 0, 1, 3, 7, 15, ... are complete sums. On the way back, with d = n / 4, n / 8, ..., 1,
# element 2 d k - 1 is added to the element d places further on, for k = 1, 2, 3, ..., as long as that element exists.
# </details>


# %% nbgrader={"grade_id": "b3_6", "solution": true}
def scan_additions(n):
    """Additions of a scan of n numbers: (few steps, few additions)."""
    ### BEGIN SOLUTION
    steps = n.bit_length() - 1
    return n * steps - n + 1, 2 * (n - 1) - steps
    ### END SOLUTION


# %% nbgrader={"grade_id": "b3_6_test", "grade": true, "points": 2}
scan_hint = "few steps: n - d additions in the step with distance d; few additions: count the tree and the way back"
assert_values(scan_additions, {(2,): (1, 1), (4,): (5, 4), (8,): (17, 11)}, scan_hint)
### BEGIN HIDDEN TESTS
for k in range(2, 11):
    assert_values(scan_additions, {(2**k,): (k * 2**k - 2**k + 1, 2 ** (k + 1) - 2 - k)}, scan_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_6_kernel", "solution": true}
SCAN_CUDA = None  # r"""..."""
### BEGIN SOLUTION
SCAN_CUDA = r"""
__global__ void few_steps(const float* x, float* y, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int d = 1; d < n; d *= 2) {
    float before = t >= d ? s[t - d] : 0.0f;
    __syncthreads();
    if (t >= d) s[t] += before;
    __syncthreads();
  }
  y[t] = s[t];
}
__global__ void few_additions(const float* x, float* y, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  for (int d = 1; d < n; d *= 2) {
    int at = 2 * d * (t + 1) - 1;
    if (at < n) s[at] += s[at - d];
    __syncthreads();
  }
  for (int d = n / 4; d > 0; d /= 2) {
    int at = 2 * d * (t + 1) - 1;
    if (at + d < n) s[at + d] += s[at];
    __syncthreads();
  }
  y[t] = s[t];
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "b3_6_steps_test", "grade": true, "points": 3}
def check_scan(name, n, additions=None):
    x, y = whole(n) / 4, np.full(n, np.nan, np.float32)
    run = assert_clean(SCAN_CUDA, name, 1, n, x, y, n, what=f"n = {n}")
    assert_close(run.args[1], np.cumsum(x), rtol=0, atol=0, name=f"y of {name} at n = {n}")
    made, barriers = run.counts.flops, run.counts.block_barriers
    assert additions in (None, made), f"{name} at n = {n}: {made} additions, expected {additions}"
    most = 2 * n.bit_length()
    assert barriers <= most, f"{name} at n = {n}: {barriers} barriers, expected at most {most}"


for n, additions in {2: 1, 4: 5, 8: 17, 256: None, 1024: None}.items():
    check_scan("few_steps", n, additions)
### BEGIN HIDDEN TESTS
for k in (measure.draw(4, 7), 9, 10):
    check_scan("few_steps", 2**k, k * 2**k - 2**k + 1)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_6_additions_test", "grade": true, "points": 3}
for n, additions in {2: 1, 4: 4, 8: 11, 256: None, 1024: None}.items():
    check_scan("few_additions", n, additions)
### BEGIN HIDDEN TESTS
for k in (measure.draw(4, 7), 9, 10):
    check_scan("few_additions", 2**k, 2 ** (k + 1) - 2 - k)
### END HIDDEN TESTS

# %%
n = 256
x = whole(n)
scans = {name: counted(SCAN_CUDA, name, 1, n, x, np.zeros(n, np.float32), n) for name in ("few_steps", "few_additions")}
print("additions, predicted:", scan_additions(n))
compare(scans, "flops", "block_barriers", "shared_loads.requests", "bank_conflicts", title=f"Two scans of {n} numbers")

# %% [markdown]
# Few additions come with bank conflicts and with twice the steps. Inside a warp, few steps usually win; between blocks,
# few additions do.
