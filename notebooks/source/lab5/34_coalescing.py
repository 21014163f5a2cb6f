# %% [markdown]
# ## 3.4 Coalescing ({points q3_4})
#
# Memory does not deliver single bytes. It delivers **bursts** of neighbouring bytes, and each burst begins at a
# multiple of its length. In a memory of 16 bytes with bursts of 4, whoever asks for byte 5 gets the bytes 4 to 7. The
# 32 lanes of a warp load at the same time. If their addresses lie in the same burst, one burst serves them all: the
# loads are *coalesced*.
#
# - `bursts(addresses, size, burst)`: how many bursts one access of a warp brings. `addresses` lists the first byte of
#   each lane, and every lane reads `size` bytes. Bursts have `burst` bytes
# - `useful_share(addresses, size, burst)`: which share of the bytes that are brought does any lane want? A byte that
#   two lanes want counts once
#
# <details><summary>Hint</summary>
#
# The number of the burst that holds byte b is `b // burst`. How many different ones are there?
# </details>


# %% nbgrader={"grade_id": "q3_4", "solution": true}
def bursts(addresses, size, burst):
    """Bursts that one access of a warp brings: an int."""
    ### BEGIN SOLUTION
    return len({byte // burst for address in addresses for byte in range(address, address + size)})
    ### END SOLUTION


def useful_share(addresses, size, burst):
    """Share of the bytes brought that some lane wants, 0 to 1."""
    ### BEGIN SOLUTION
    wanted = {byte for address in addresses for byte in range(address, address + size)}
    return len(wanted) / (bursts(addresses, size, burst) * burst)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_4_test", "grade": true, "points": 2}
def check_bursts(addresses, size, burst, number, share):
    case = f"of {len(addresses)} lanes from byte {addresses[0]} on, {size} bytes each, in bursts of {burst},"
    got, useful = bursts(list(addresses), size, burst), useful_share(list(addresses), size, burst)
    assert is_count(got), f"bursts {case} has to be a whole number, and not {got!r}"
    assert got == number, f"bursts {case} gave {got}: how many different bursts hold a byte that is wanted?"
    assert is_near(useful, share, 1e-3), (
        f"useful_share {case} gave {useful!r}: the bytes that are wanted over those brought"
    )


check_bursts([5], 1, 4, 1, 0.25)
check_bursts([3], 2, 4, 2, 0.25)
check_bursts([6, 6, 7], 1, 4, 1, 0.5)
check_bursts(range(0, 128, 4), 4, 128, 1, 1.0)
check_bursts(range(64, 192, 4), 4, 128, 2, 0.5)
check_bursts([0, 4096, 8192], 4, 32, 3, 0.125)
check_bursts([0], 16, 4, 4, 1.0)
### BEGIN HIDDEN TESTS
check_bursts(range(0, 32 * 4096, 4096), 4, 128, 32, 0.03125)
check_bursts(range(0, 32 * 4096, 4096), 4, 32, 32, 0.125)
check_bursts([4096] * 32, 4, 128, 1, 0.03125)
check_bursts(range(2, 130, 4), 4, 128, 2, 0.5)
rng = np.random.default_rng(34)
for size, burst in [(1, 32), (2, 64), (4, 128), (8, 32), (16, 128), (3, 7)]:
    addresses = [int(one) for one in rng.integers(0, 3000, 32)]
    wanted = {byte for first in addresses for byte in range(first, first + size)}
    number = len({byte // burst for byte in wanted})
    check_bursts(addresses, size, burst, number, len(wanted) / (number * burst))
### END HIDDEN TESTS

# %%
accesses = {
    "neighbours": range(0, 128, 4),
    "neighbours, one float further": range(4, 132, 4),
    "a row of 1024 floats apart": range(0, 32 * 4096, 4096),
}
rl.plots.plot_bursts(accesses, size=4, burst=128, title="What 32 lanes bring with one load")

# %% [markdown]
# ### Who walks where ({points q3_4_walk_test q3_4_choice_test})
#
# A matrix of N x N numbers lies row by row: its number (r, c) begins at byte (r N + c) · size. Threads add it up.
# Either each thread *owns a column* and walks down it: in step r, thread t reads (r, t). Or each thread *owns a row*
# and walks along it: in step c, thread t reads (t, c). There are N threads, 32 neighbours to a warp, and N is a
# multiple of 32.
#
# - `walk_bursts(N, owns, size, burst)`: bursts in all, of all warps and all steps. `owns` is `"column"` or `"row"`
# - `coalesced`: whose loads coalesce, those of threads that own a `"column"` or a `"row"`?

# %% nbgrader={"grade_id": "q3_4_walk", "solution": true}
coalesced = None  # "column" or "row"
### BEGIN SOLUTION
coalesced = "column"
### END SOLUTION


def walk_bursts(N, owns, size, burst):
    """Bursts that N threads bring while they read N x N numbers that lie row by row: an int."""
    ### BEGIN SOLUTION
    total = 0
    for step in range(N):
        for first in range(0, N, 32):
            lanes = range(first, first + 32)
            places = [step * N + lane if owns == "column" else lane * N + step for lane in lanes]
            total += bursts([place * size for place in places], size, burst)
    return total
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_4_walk_test", "grade": true, "points": 3}
walk_hint = "where do the 32 lanes of a warp read in one step, side by side or N numbers apart?"
assert_values(walk_bursts, {(32, "column", 4, 128): 32, (32, "row", 4, 128): 1024}, walk_hint)
assert_values(
    walk_bursts, {(64, "column", 4, 32): 512, (64, "row", 4, 32): 4096, (64, "column", 2, 128): 64 * 2}, walk_hint
)
### BEGIN HIDDEN TESTS
assert_values(
    walk_bursts, {(96, "column", 4, 128): 288, (96, "row", 4, 128): 9216, (96, "row", 8, 32): 9216}, walk_hint
)
assert_values(walk_bursts, {(32, "row", 2, 128): 512, (32, "column", 8, 128): 64}, walk_hint)
assert_values(walk_bursts, {(256, "column", 4, 128): 2048, (256, "row", 4, 128): 65536}, walk_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_choice_test", "grade": true, "points": 1}
assert coalesced in ("column", "row"), 'coalesced: "column" or "row"'
### BEGIN HIDDEN TESTS
assert coalesced == "column", "coalesced: compare walk_bursts of the two, for a matrix that lies row by row"
### END HIDDEN TESTS

# %% [markdown]
# For 1024 x 1024 numbers in fp32 and bursts of 128 bytes, that is 32,768 bursts for threads that own a column, and
# 1,048,576 for threads that own a row: one burst a step against 32. Many texts say that a walk "along the columns" is
# good or bad. Always ask who moves: one thread over time, or 32 threads at the same moment. On a GPU the moment
# decides. On a processor, where one thread reads after the other, time does.
#
# The next cell times both walks. On a GPU a kernel adds up the numbers as above, with each column or row cut into 32
# parts, so that there are threads enough. On a processor a copy reads the numbers side by side, or N numbers apart.

# %%
WALK_CUDA = """
__global__ void walk(const float* x, float* sums, int N, long long step, long long lane) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x, part = N / gridDim.y;
  float sum = 0;
  for (int i = blockIdx.y * part; i < (blockIdx.y + 1) * part; ++i) sum += x[i * step + thread * lane];
  sums[blockIdx.y * N + thread] = sum;
}
"""


def walk(owns, N):
    """The latency of a walk through N x N numbers in fp32."""
    matrix = rl.randn(N, N, device=device)
    if device == "cpu":
        view = matrix if owns == "column" else matrix.T
        return latency(lambda: view * 1.0 if owns == "column" else view.contiguous(), repeat=20)
    kernel, sums = rl.cuda.compile(WALK_CUDA)["walk"], rl.zeros(32, N, device=device)
    step, lane = (N, 1) if owns == "column" else (1, N)
    return latency(lambda: kernel((N // 256, 32), 256, matrix, sums, N, step, lane), repeat=20)


N = 8192 if device == "cuda" else 1024
rows = []
for owns in ("column", "row"):
    walked, bursts_in_all = walk(owns, N), walk_bursts(256, owns, 4, 128) * (N // 256) ** 2
    spread = f"{walked.median_ms:.2f} ({walked.p20_ms:.2f} to {walked.p80_ms:.2f})"
    rows.append((f"a thread owns a {owns}", f"{bursts_in_all:,}", spread, f"{4 * N * N / walked.median_ms / 1e6:.1f}"))
head = (f"{N} x {N} numbers in fp32", "bursts", "ms (20th to 80th percentile)", "GB/s of numbers read")
Table(head, rows, title=f"Two walks, here: {lab5.machine_name(device)}")

# %% [markdown]
# On a GPU the slow walk is not 32 times as slow. The 31 other numbers of a burst are wanted a moment later, and those
# that are still in a cache by then need not be brought again. Count on that only as far as the cache reaches.
