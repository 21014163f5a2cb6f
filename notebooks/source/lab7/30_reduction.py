# %% [markdown]
# # Part 3. Sums and histograms
#
# ## 3.1 A tree ({points q3_1})
#
# A block of T threads, T a power of two, adds up T numbers in shared memory. In each step, half of the numbers are
# added to the other half. The block waits at a barrier after the store into shared memory, and again
# after each step, also after the last one.
#
# - `tree(T)`: a tuple of the barriers that the block needs, and the additions that its threads make


# %% nbgrader={"grade_id": "q3_1", "solution": true}
def tree(T):
    """(barriers, additions) of a block that adds up T numbers in a tree."""
    ### BEGIN SOLUTION
    return 1 + T.bit_length() - 1, T - 1
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 2}
tree_hint = "how many steps are there until one number is left? Each addition makes one number of two"
assert_values(tree, {(2,): (2, 1), (8,): (4, 7), (64,): (7, 63)}, tree_hint)
### BEGIN HIDDEN TESTS
k = measure.draw(7, 10)
assert_values(tree, {(256,): (9, 255), (2**k,): (k + 1, 2**k - 1), (1024,): (11, 1023)}, tree_hint)
### END HIDDEN TESTS


# %% tags=["setup"]
def check_sum(source, n):
    """What the tests of 3.2 and 3.3 ask of every sum. Quarters are added without rounding, in any order."""
    x, blocks = whole(n) / 4, math.ceil(n / 256)
    run = assert_clean(source, "sum", blocks, 256, x, np.zeros(1, np.float32), n, what=f"n = {n}")
    assert_close(run.args[1], [x.sum()], rtol=0, atol=0, name=f"the sum of n = {n} numbers")
    made = run.counts.global_atomics.threads
    said = f"sum at n = {n}: {made} atomic operations in global memory, expected one for each of {blocks} blocks"
    assert made == blocks, said
    made, most = run.counts.global_loads.requests, math.ceil(n / 32)
    assert made <= most, f"sum at n = {n}: {made} requests load x, expected {most}: each thread loads one element"
    if n > 600:  # with an array that ends early: element 600 is that of thread 88 in block 2
        assert_place(source, "sum", blocks, 256, x[:600], np.zeros(1, np.float32), n, place=(2, 0), warp=88 // 32)
    return run.counts, blocks


# %% [markdown]
# ## 3.2 A race and conflicts ({points q3_2})
#
# This kernel adds all numbers of x to `*total`, which is 0 before. It is launched with ceil(n / 256) blocks of 256
# threads. It has two faults. A **barrier is missing**. And the words that are added are far apart: every second one in
# the first step, every fourth in the next, and so on.
#
# - `SUM_CUDA`: repair it. No race, no bank conflicts, at most as many barriers as `tree(256)`, and one `atomicAdd` for
#   each block. Each thread loads one element of x. At most 40 requests load from shared memory in each block: the tree
#   needs 25, and one thread alone would need 256, or 64 with `float4`.
#
# <details><summary>Hint</summary>
#
# Which half can be added to which, so that the threads that work are the first ones, and neighbours access neighbours?
# </details>

# %% nbgrader={"grade_id": "q3_2", "solution": true}
SUM_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    int at = 2 * step * t;
    if (at < 256) s[at] += s[at + step];
  }
  if (t == 0) atomicAdd(total, s[0]);
}
"""
### BEGIN SOLUTION
SUM_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) atomicAdd(total, s[0]);
}
"""
### END SOLUTION

# %%
x, total = whole(1000), np.zeros(1, np.float32)
launch = counted(SUM_CUDA, "sum", 4, 256, x, total, 1000)
barriers, additions = (4 * each for each in tree(256))
predicted = f"{barriers} barriers and {additions} additions"
print(f"The sum is {total[0]:g}, expected {x.sum():g}. Predicted for 4 blocks: {predicted}.")
compare({"sum": launch}, "block_barriers", "flops", "bank_conflicts", "shared_loads.requests", "global_atomics.threads")

# %%
in_shared = [request for request in launch.requests if request.memory == "shared"]
rl.plots.plot_warp_requests(in_shared, "sum: the costliest request of each access to shared memory")

# %% [markdown]
# A race is two threads that access one word, at least one of them writing, with no barrier between. A finding names
# both threads. On a GPU the sum may be right a thousand times and then wrong once. Here the race is found at each run.


# %% nbgrader={"grade_id": "q3_2_test", "grade": true, "points": 3}
for n in (256, 1000, 1):
    check_sum(SUM_CUDA, n)
### BEGIN HIDDEN TESTS
for n in (255, 257, measure.draw(600, 1500), measure.draw(5000, 9000)):
    check_sum(SUM_CUDA, n)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_2_banks_test", "grade": true, "points": 3}
def check_tree(n):
    counts, blocks = check_sum(SUM_CUDA, n)
    said = f"sum at n = {n}: {counts.bank_conflicts} bank conflicts, expected none: do neighbours access neighbours?"
    assert counts.bank_conflicts == 0, said
    said = f"sum at n = {n}: {counts.block_barriers} barriers in {blocks} blocks, expected at most {9 * blocks}"
    assert counts.block_barriers <= 9 * blocks, said
    made, most = counts.shared_loads.requests, 40 * blocks
    said = f"sum at n = {n}: {made} requests load from shared memory in {blocks} blocks, expected at most {most}"
    assert made <= most, f"{said}: let many threads add"


check_tree(1000)
### BEGIN HIDDEN TESTS
check_tree(measure.draw(400, 900))
### END HIDDEN TESTS

# %% [markdown]
# ## 3.3 Shuffles ({points q3_3})
#
# The lanes of a warp can pass numbers to each other without shared memory. `__shfl_down_sync(0xffffffff, v, 16)` gives
# each lane the `v` of the lane 16 places further on. Lanes at the end get their own `v`.
#
# - `SHUFFLE_CUDA`: a kernel `sum`, launched as the one above. At most one barrier and 16 requests of shared memory for
#   each block, and one `atomicAdd`. Blocks have 256 threads, and each thread loads one element of x. Threads without an
#   element take part with 0.
# - `shuffle_order`: the right letter. Between two shuffles of a warp there is no barrier. Why is there no race?
#     - `"a"`: The lanes of a warp always execute the same instruction at the same time, on every GPU.
#     - `"b"`: A shuffle waits for the lanes of its mask, and moves registers, which no other thread sees.
#     - `"c"`: A shuffle is an atomic operation in shared memory, and atomic operations are done one after another.
#
# <details><summary>Hint</summary>
#
# Each warp adds up its 32 numbers with five shuffles. Lane 0 stores the sum of its warp. After the barrier, eight sums
# are left.
# </details>

# %% nbgrader={"grade_id": "q3_3", "solution": true}
SHUFFLE_CUDA = None  # r"""..."""
shuffle_order = None  # "a", "b" or "c"
### BEGIN SOLUTION
SHUFFLE_CUDA = r"""
__global__ void sum(const float* x, float* total, int n) {
  __shared__ float warps[8];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  float v = i < n ? x[i] : 0.0f;
  for (int apart = 16; apart > 0; apart /= 2) v += __shfl_down_sync(0xffffffff, v, apart);
  if (t % 32 == 0) warps[t / 32] = v;
  __syncthreads();
  if (t < 8) {
    v = warps[t];
    for (int apart = 4; apart > 0; apart /= 2) v += __shfl_down_sync(0xff, v, apart);
    if (t == 0) atomicAdd(total, v);
  }
}
"""
shuffle_order = "b"
### END SOLUTION

# %% nbgrader={"grade_id": "q3_3_test", "grade": true, "points": 2}
for n in (256, 1000, 1):
    check_sum(SHUFFLE_CUDA, n)
### BEGIN HIDDEN TESTS
for n in (255, 257, measure.draw(600, 1500), measure.draw(5000, 9000)):
    check_sum(SHUFFLE_CUDA, n)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q3_3_counts_test", "grade": true, "points": 3}
def check_shuffles(n):
    counts, blocks = check_sum(SHUFFLE_CUDA, n)
    said = f"sum at n = {n}: {counts.block_barriers} barriers in {blocks} blocks, expected at most one each"
    assert counts.block_barriers <= blocks, said
    requests = counts.shared_loads.requests + counts.shared_stores.requests + counts.shared_atomics.requests
    said = f"sum at n = {n}: {requests} requests of shared memory in {blocks} blocks, expected at most 16 each"
    assert requests <= 16 * blocks, said


check_shuffles(1000)
### BEGIN HIDDEN TESTS
check_shuffles(measure.draw(400, 900))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_3_choice_test", "grade": true, "points": 2}
assert shuffle_order in ("a", "b", "c"), f'shuffle_order must be "a", "b" or "c", got {shuffle_order!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    shuffle_order,
    "b",
    a="Since Volta, lanes of a warp can go apart, so code must not rely on that.",
    c="A shuffle does not use shared memory. Look at the counts.",
)
### END HIDDEN TESTS

# %%
x, n = whole(4096), 4096
sums = {
    name: counted(source, "sum", n // 256, 256, x, np.zeros(1, np.float32), n)
    for name, source in (("tree", SUM_CUDA), ("shuffles", SHUFFLE_CUDA))
}
display(
    compare(sums, "block_barriers", "shared_loads.requests", "shared_stores.requests", "warp_operations", "flops",
            title=f"Two sums of {n} numbers")
)  # fmt: skip
rl.plots.plot_roofline("A100", {name: launch.counts.intensity for name, launch in sums.items()}, title=BOUND)

# %% [markdown]
# Shuffles use less shared memory. They also make more additions, because all 32 lanes add in each step. These move the
# marker to the right, and that is no progress: they are of no use. Both kernels are far left of the ridge. A sum is
# limited by its bytes, whatever is done with them inside a block.
