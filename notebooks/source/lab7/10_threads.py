# %% [markdown]
# # Part 1. Threads and memory
#
# ## 1.1 The guard ({points q1_1})
#
# This kernel adds two arrays of n numbers. It is launched with ceil(n / 256) blocks of 256 threads. The guard has an
# error: it lets one element too many through. You will repair it in the next cell, but predict first what it does.

# %% nbgrader={"grade_id": "q1_1_kernel", "solution": true}
ADD_CUDA = r"""
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) c[i] = a[i] + b[i];
}
"""
### BEGIN SOLUTION
ADD_CUDA = r"""
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
### END SOLUTION

# %% [markdown]
# First predict what the wrong kernel does.
#
# - `wrong_thread(n)`: the thread that accesses an element after the end, as a tuple `(blockIdx.x, threadIdx.x)`, or
#   `None` if no thread does (n ≥ 1)


# %% nbgrader={"grade_id": "q1_1", "solution": true}
def wrong_thread(n):
    """(block, thread) of the wrong kernel that leaves the arrays of n elements, or None."""
    ### BEGIN SOLUTION
    return None if n % 256 == 0 else (n // 256, n % 256)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_1_test", "grade": true, "points": 2}
thread_hint = "which i is not an element but passes the guard? Is there a thread with this i?"
assert_values(wrong_thread, {(1000,): (3, 232), (1,): (0, 1), (300,): (1, 44), (512,): None}, thread_hint)
### BEGIN HIDDEN TESTS
blocks, rest = measure.draw(3, 10**3), measure.draw(1, 255)
expected = {(256 * blocks,): None, (256 * blocks + rest,): (blocks, rest), (256,): None, (255,): (0, 255)}
assert_values(wrong_thread, expected, thread_hint)
### END HIDDEN TESTS

# %% [markdown]
# Now run it. Do the findings name the thread that you predicted? An error is found *before* the access happens, so
# nothing is damaged.

# %%
for n in (1000, 1024):
    print(f"n = {n}, predicted: {wrong_thread(n)}")
    counted(ADD_CUDA, "add", math.ceil(n / 256), 256, floats(n), floats(n), floats(n), n)

# %% [markdown]
# With n = 1024 nothing is found, so a test with this n alone would not notice the error. That is why the tests of this
# lab use odd sizes too. Repair the kernel now, and run the cells again. Thread number i still adds element i.


# %% nbgrader={"grade_id": "q1_1_kernel_test", "grade": true, "points": 2}
def check_add(n):
    a, b, c = floats(n), floats(n), np.full(n, np.nan, np.float32)
    run = assert_clean(ADD_CUDA, "add", math.ceil(n / 256), 256, a, b, c, n, what=f"n = {n}")
    assert_close(run.args[2], a + b, name=f"c at n = {n}")
    made, most = run.counts.global_loads.requests, 2 * math.ceil(n / 32)
    assert made <= most, f"add at n = {n}: {made} requests load a and b, expected {most}: each thread adds one element"


for n in (1000, 1, 256):
    check_add(n)
short = (floats(600) for _ in "abc")  # element 600 is that of thread 88 in block 2
assert_place(ADD_CUDA, "add", 4, 256, *short, 1000, place=(2, 0), warp=88 // 32)
### BEGIN HIDDEN TESTS
for n in (255, 257, measure.draw(300, 2000)):
    check_add(n)
### END HIDDEN TESTS

# %% [markdown]
# ## 1.2 Sectors per request ({points q1_2})
#
# How many sectors does one request need? Lane i accesses `size` bytes that begin at byte `first + step * i`, for i from
# 0 to 31. `size` is 4, 8 or 16, and `first` and `step` are multiples of `size`.
#
# - `sectors(first, step, size)`: the number of sectors, an `int`
# - `GATHER_CUDA`: a kernel `gather` with the parameters `(const float* x, float* y, int n, int offset, int stride)`.
#   Thread number i writes `y[i] = x[offset + stride * i]`, if i < n. It is launched with ceil(n / 256) blocks of 256
#   threads.


# %% nbgrader={"grade_id": "q1_2", "solution": true}
def sectors(first, step, size):
    """32-byte sectors that a warp's request touches: an int."""
    ### BEGIN SOLUTION
    return len({(first + step * lane) // 32 for lane in range(32)})
    ### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_test", "grade": true, "points": 3}
sector_hint = "byte b lies in sector b // 32; count the different sectors of the 32 lanes"
assert_values(
    sectors, {(0, 4, 4): 4, (0, 0, 4): 1, (0, 8, 4): 8, (64, 12, 4): 12, (16, 8, 8): 9, (0, 32, 8): 32}, sector_hint
)
### BEGIN HIDDEN TESTS
assert_values(sectors, {(4, 4, 4): 5, (0, 128, 4): 32, (0, 16, 16): 16, (28, 4, 4): 5, (32, 4, 4): 4}, sector_hint)
for first, step in draws((0, 500), (0, 60)):
    for size in (4, 8, 16):
        touched = {size * (first + step * lane) // 32 for lane in range(32)}
        assert_values(sectors, {(size * first, size * step, size): len(touched)}, sector_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_2_kernel", "solution": true}
GATHER_CUDA = None  # r"""..."""
### BEGIN SOLUTION
GATHER_CUDA = r"""
__global__ void gather(const float* x, float* y, int n, int offset, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[offset + stride * i];
}
"""
### END SOLUTION


# %% nbgrader={"grade_id": "q1_2_kernel_test", "grade": true, "points": 3}
def check_gather(n, offset, stride, expected):
    x, y = floats(offset + stride * (n - 1) + 1), np.full(n, np.nan, np.float32)
    what = f"n = {n}, offset = {offset}, stride = {stride}"
    run = assert_clean(GATHER_CUDA, "gather", math.ceil(n / 256), 256, x, y, n, offset, stride, what=what)
    assert_close(run.args[1], x[offset :: max(stride, 1)][:n], name=f"y at {what}")
    loads, stores = run.counts.global_loads, run.counts.global_stores
    said = f"gather at {what}: {loads.sectors} sectors are loaded, expected {expected}: read x once for each y"
    assert loads.sectors == expected, said
    said = f"gather at {what}: {stores.sectors} sectors are stored: neighbouring threads must write neighbours"
    assert stores.sectors == math.ceil(n / 8), said


for n, offset, stride, expected in [(256, 0, 1, 32), (1000, 3, 2, 282), (64, 0, 7, 56), (1500, 0, 1, 188)]:
    check_gather(n, offset, stride, expected)
short = floats(600)  # element 600 is that of thread 88 in block 2
assert_place(GATHER_CUDA, "gather", 4, 256, floats(1000), short, 1000, 0, 1, place=(2, 0), warp=88 // 32)
### BEGIN HIDDEN TESTS
for n, offset, stride in [(512, 1, 1), (128, 0, 32), (1, 5, 3), (measure.draw(2000, 4000), measure.draw(0, 40), 5)]:
    places = offset + stride * np.arange(n)
    check_gather(n, offset, stride, sum(len(set(places[w : w + 32] // 8)) for w in range(0, n, 32)))
### END HIDDEN TESTS

# %%
patterns = {"together": (0, 1), "one further": (1, 1), "every second": (0, 2), "every 32nd": (0, 32)}
launches = {}
for name, (offset, stride) in patterns.items():
    x, y = floats(32 * 256 + 1), np.zeros(256, np.float32)
    launches[name] = counted(GATHER_CUDA, "gather", 1, 256, x, y, 256, offset, stride)
rows = []
for name, (offset, stride) in patterns.items():
    predicted, loads = sectors(4 * offset, 4 * stride, 4), launches[name].counts.global_loads
    rows.append((name, predicted, f"{loads.sectors_per_request:.2f}", f"{loads.efficiency:.1%}"))
Table(("gather", "sectors, predicted", "counted", "efficiency"), rows, title="The load of one warp")

# %%
loads = {name: launch.requests[0] for name, launch in launches.items()}
rl.plots.plot_warp_requests(loads, "The load of one warp: pale words are brought and not used")

# %% [markdown]
# With stride 32 each lane has a sector of its own, and seven of the eight words in it are fetched and not used. One
# element of offset costs one sector more. Which of the two would you look for first in a kernel that is too slow?
#
# ## 1.3 Four floats at a time ({points q1_3})
#
# A `float4` is four floats that one instruction loads or stores. Its address must be a multiple of 16.
# `reinterpret_cast<const float4*>(a)[k]` is the elements 4 k to 4 k + 3 of `a`.
#
# - `ADD4_CUDA`: a kernel `add4` with the parameters of `add`. Thread number k adds the elements 4 k to 4 k + 3. Where
#   all four exist, it loads a and b and stores c, each once, as a `float4`. Where fewer exist, it adds these one by
#   one. It is launched with ceil(n / 1024) blocks of 256 threads, and all arrays begin at a multiple of 16 bytes.
# - `add4_gain`: the right letter. Both kernels add arrays of the same n. Compared with all warps of `add`, all warps of
#   `add4` together ...
#     - `"a"`: need fewer sectors, because each sector is used better
#     - `"b"`: need a quarter of the requests for as many sectors
#     - `"c"`: need as many requests, of a quarter of the sectors each
#
# <details><summary>Hint</summary>
#
# `float4` has the members `x`, `y`, `z` and `w`, and `make_float4(x, y, z, w)` makes one.
# </details>

# %% nbgrader={"grade_id": "q1_3", "solution": true}
ADD4_CUDA = None  # r"""..."""
add4_gain = None  # "a", "b" or "c"
### BEGIN SOLUTION
ADD4_CUDA = r"""
__global__ void add4(const float* a, const float* b, float* c, int n) {
  int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (first + 3 < n) {
    float4 u = reinterpret_cast<const float4*>(a)[first / 4], v = reinterpret_cast<const float4*>(b)[first / 4];
    reinterpret_cast<float4*>(c)[first / 4] = make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
  } else {
    for (int i = first; i < n; ++i) c[i] = a[i] + b[i];
  }
}
"""
add4_gain = "b"
### END SOLUTION


# %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 4}
def check_add4(n):
    a, b, c = floats(n), floats(n), np.full(n, np.nan, np.float32)
    run = assert_clean(ADD4_CUDA, "add4", math.ceil(n / 1024), 256, a, b, c, n, what=f"n = {n}")
    assert_close(run.args[2], a + b, name=f"c at n = {n}")
    loads, stores = run.counts.global_loads, run.counts.global_stores
    warps, alone = math.ceil(n // 4 / 32), 3 if n % 4 else 0  # the last elements take up to three turns
    said = f"add4 at n = {n}: {loads.requests} requests load a and b, at most {2 * (warps + alone)} are needed"
    assert loads.requests <= 2 * (warps + alone), f"{said}: load whole float4s, each into a variable"
    said = f"add4 at n = {n}: {stores.requests} requests store c, at most {warps + alone} are needed: store float4s"
    assert stores.requests <= warps + alone, said


for n in (1024, 2050, 1003, 3):
    check_add4(n)
short = (floats(2400) for _ in "abc")  # elements 2400 to 2403 are those of thread 88 in block 2
assert_place(ADD4_CUDA, "add4", 4, 256, *short, 4096, place=(2, 0), warp=88 // 32)
### BEGIN HIDDEN TESTS
for n in (1, 4, 4096, 4 * measure.draw(300, 900) + measure.draw(1, 3)):
    check_add4(n)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q1_3_choice_test", "grade": true, "points": 1}
assert add4_gain in ("a", "b", "c"), f'add4_gain must be "a", "b" or "c", got {add4_gain!r}'
### BEGIN HIDDEN TESTS
assert_choice(
    add4_gain,
    "b",
    a="The sectors of add are used in full already. Compare the sectors of both kernels.",
    c="Compare the requests of both kernels.",
)
### END HIDDEN TESTS

# %%
n = 4096
a, b, c = floats(n), floats(n), np.zeros(n, np.float32)
adds = {
    "add": counted(ADD_CUDA, "add", n // 256, 256, a, b, c, n),
    "add4": counted(ADD4_CUDA, "add4", n // 1024, 256, a, b, c, n),
}
names = ("requests", "sectors", "sectors_per_request", "efficiency")
compare(adds, *(f"global_loads.{name}" for name in names), title=f"Loads of n = {n}")

# %% [markdown]
# 16 sectors per request are not worse than 4. What matters is how many of the bytes are used. The bytes stay the same,
# so both kernels have the same place on a roofline: 1 FLOP for 12 bytes.
#
# The place is a *lower bound* of the intensity. It counts the bytes of all sectors that were asked for. Caches may
# answer some of the requests, and then memory delivers fewer bytes for the same FLOPs. The height of the marker is what
# an A100 with 80 GB can reach at this intensity. No count can say how fast the kernel is.

# %%
rl.plots.plot_roofline("A100", {name: launch.counts.intensity for name, launch in adds.items()}, title=BOUND)
