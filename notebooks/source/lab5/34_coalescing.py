# %% [markdown]
# ## 3.4 Coalescing ({points q3_4})
#
# Memory does not deliver single bytes. It delivers **bursts** of neighbouring bytes, and each burst starts at a
# multiple of its length. In a memory with bursts of 4 bytes, a load of byte 5 brings the bytes 4 to 7. The 32 lanes of
# a warp load at the same time. If several of their addresses are in the same burst, this burst is delivered only once:
# the loads are *coalesced*.
#
# We take bursts of 128 bytes, the length of a cache line. NVIDIA's GPUs fetch only those 32-byte *sectors* of a line
# that are wanted. So 128 bytes that begin one float after the start of a line cost 5 sectors there, and not the 8
# sectors of two lines. Lab 7 counts sectors.
#
# - `bursts(addresses, size, burst)`: how many bursts one load of a warp brings. `addresses` lists the first byte of
#   each lane, each lane reads `size` bytes, and a burst has `burst` bytes.
# - `useful_share(addresses, size, burst)`: the share of the delivered bytes that at least one lane reads, 0 to 1. A
#   byte that two lanes read counts once.
#
# <details><summary>Hint</summary>
#
# Number the bursts of the memory from 0 on. In which of them is a given byte?
# </details>


# %% nbgrader={"grade_id": "q3_4", "solution": true}
def bursts(addresses, size, burst):
    """The bursts that one load of a warp brings: an int."""
    ### BEGIN SOLUTION
    return len({byte // burst for address in addresses for byte in range(address, address + size)})
    ### END SOLUTION


def useful_share(addresses, size, burst):
    """Share of the delivered bytes that at least one lane reads, 0 to 1."""
    ### BEGIN SOLUTION
    wanted = {byte for address in addresses for byte in range(address, address + size)}
    return len(wanted) / (bursts(addresses, size, burst) * burst)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_4_test", "grade": true, "points": 2}
def check_bursts(addresses, size, burst, number, share):
    begin = ", ".join(map(str, addresses[:3])) + (", ..." if len(addresses) > 3 else "")
    case = f"([{begin}], {size}, {burst}) with {len(addresses)} addresses"
    got, useful = bursts(list(addresses), size, burst), useful_share(list(addresses), size, burst)
    assert is_count(got), f"bursts{case} must return a whole number (int), got {got!r}"
    said = f"bursts{case} returned {got}, expected {number}: how many different bursts contain a byte that is read?"
    assert got == number, said
    said = f"useful_share{case} returned {useful!r}, expected {share:.6g}: different bytes read over bytes delivered"
    assert is_near(useful, share, 1e-3), said


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
for size, burst in [(1, 32), (2, 64), (4, 128), (8, 32), (16, 128), (3, 7)]:
    addresses = measure.rng().integers(0, measure.draw(500, 4000), 32).tolist()
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
rl.plots.plot_bursts(accesses, size=4, burst=128, title="Bursts of one load by 32 lanes")

# %% [markdown]
# ### A thread per column or a thread per row ({points q3_4_walk_test q3_4_choice_test})
#
# A matrix of N x N elements is stored row by row: element (r, c) begins at byte (r N + c) · size. N threads add it up,
# in warps of 32 neighbouring threads, and N is a multiple of 32. There are two ways to do it. Either each thread *owns
# a column*: in step r, thread t reads (r, t). Or each thread *owns a row*: in step c, thread t reads (t, c).
#
# - `walk_bursts(N, owns, size, burst)`: the total number of bursts of all warps in all steps. `owns` is `"column"` or
#   `"row"`.
# - `coalesced`: which threads have coalesced loads, those that own a `"column"` or those that own a `"row"`?


# %% nbgrader={"grade_id": "q3_4_walk", "solution": true}
def walk_bursts(N, owns, size, burst):
    """Bursts in all, while N threads read N x N elements that are stored row by row: an int."""
    ### BEGIN SOLUTION
    total = 0
    for step in range(N):
        for first in range(0, N, 32):
            lanes = range(first, first + 32)
            places = [step * N + lane if owns == "column" else lane * N + step for lane in lanes]
            total += bursts([place * size for place in places], size, burst)
    return total
    ### END SOLUTION


coalesced = None  # "column" or "row"
### BEGIN SOLUTION
coalesced = "column"
### END SOLUTION

# %% nbgrader={"grade_id": "q3_4_walk_test", "grade": true, "points": 3}
walk_hint = "in one step, do the 32 lanes of a warp read side by side or N elements apart?"
assert_values(walk_bursts, {(32, "column", 4, 128): 32, (32, "row", 4, 128): 1024}, walk_hint)
assert_values(
    walk_bursts, {(64, "column", 4, 32): 512, (64, "row", 4, 32): 4096, (64, "column", 2, 128): 64 * 2}, walk_hint
)
### BEGIN HIDDEN TESTS
assert_values(walk_bursts, {(32, "row", 2, 128): 512, (32, "column", 8, 128): 64}, walk_hint)
for lowest, highest in ((2, 4), (5, 8)):
    N, size, burst = 32 * measure.draw(lowest, highest), 2 ** measure.draw(2, 3), 2 ** measure.draw(5, 7)
    assert_values(walk_bursts, {(N, "column", size, burst): N * N * size // burst}, walk_hint)
    assert_values(walk_bursts, {(N, "row", size, burst): N * N}, walk_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_4_choice_test", "grade": true, "points": 1}
assert coalesced in ("column", "row"), f'coalesced must be "column" or "row", got {coalesced!r}'
### BEGIN HIDDEN TESTS
assert coalesced == "column", f'coalesced is not "{coalesced}": which of the two has fewer walk_bursts?'
### END HIDDEN TESTS

# %% [markdown]
# Many texts call a walk "along the columns" good or bad without saying who walks: one thread over time, or 32 threads
# at the same moment. On a GPU, what counts is what 32 threads read at the same moment. On a CPU, what counts is what
# one thread reads over time.
#
# The next cell times both walks on your machine. On a GPU a kernel adds up the elements as above. Each column or row is
# cut into 32 parts, so that there are enough threads. On a CPU a copy reads the elements side by side, or N elements
# apart.

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
    """The latency of a walk through N x N elements in fp32."""
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
head = (f"{N} x {N} elements in fp32", "bursts", "ms (20th to 80th percentile)", "GB/s of elements read")
Table(head, rows, title=f"Two walks, here: {lab5.machine_name(device)}")

# %% [markdown]
# On a GPU the slow walk is not 32 times as slow. The other 31 elements of a burst are needed a moment later, and those
# that are still in a cache by then are not fetched again. That helps only as long as they fit into the cache.
