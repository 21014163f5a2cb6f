# %% [markdown]
# # Part 8. Bonus: twice as good ({points b8_1})
#
# Write a kernel of your choice twice. The second version computes the same and needs at most half of one counter. It
# can be one from your own work, or from a textbook.
#
# - `BEFORE_CUDA` and `AFTER_CUDA`: both have a kernel `mine` with the parameters `(const float* x, float* y, int n)`.
#   Both write n numbers into y, which depend on x, and both are right for n = 1024 and n = 4096.
# - `before_launch` and `after_launch`: functions that give the grid and the block for n, as `((4, 1), (256, 1))`
# - `better`: the counter that is halved, one of `"global sectors"`, `"global requests"`, `"shared wavefronts"`,
#   `"barriers"` and `"atomics"`. Each counter adds up loads, stores and atomic operations. Barriers count once for each
#   warp.
# - `reason`: what made it better, one of
#     - `"neighbours"`: neighbouring lanes access neighbours
#     - `"reuse"`: what several threads need is read once from global memory
#     - `"wider"`: a thread accesses more bytes with one instruction
#     - `"banks"`: lanes no longer meet in a bank
#     - `"registers"`: values stay in registers, or go from lane to lane by shuffles
#     - `"private"`: each block or each thread collects its own result first
#
# Both versions run without a finding. The second one must not buy its gain with another counter: it may need at most
# twice as many global sectors, global requests and atomics as the first one.

# %% nbgrader={"grade_id": "b8_1", "solution": true}
BEFORE_CUDA = None  # r"""..."""
AFTER_CUDA = None  # r"""..."""
### BEGIN SOLUTION
BEFORE_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {  // the thread's own 32 numbers, doubled
  int first = 32 * (blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = first; i < first + 32; ++i) y[i] = 2 * x[i];
}
"""
AFTER_CUDA = r"""
__global__ void mine(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}
"""
### END SOLUTION


def before_launch(n):
    """(grid, block) of the first version for n numbers."""
    ### BEGIN SOLUTION
    return (n // 1024,), (32,)
    ### END SOLUTION


def after_launch(n):
    """(grid, block) of the second version for n numbers."""
    ### BEGIN SOLUTION
    return (n // 1024,), (32,)
    ### END SOLUTION


better = None
reason = None
### BEGIN SOLUTION
better, reason = "global sectors", "neighbours"
### END SOLUTION


# %% nbgrader={"grade_id": "b8_1_test", "grade": true, "points": 4} rooflab={"seconds": 120}
def own_counters(source, launch, x, n):
    made = launch(n)
    said = f"{launch.__name__}({n}) must return the grid and the block, such as ((4, 1), (256, 1)), got {made!r}"
    assert isinstance(made, (tuple, list)) and len(made) == 2, said
    grid, block = made
    run = assert_clean(source, "mine", grid, block, x, np.full(n, np.nan, np.float32), n, what=f"n = {n}")
    c = run.counts
    in_global, in_shared = (c.global_loads, c.global_stores, c.global_atomics), (c.shared_loads, c.shared_stores)
    counters = {
        "global sectors": sum(each.sectors for each in in_global),
        "global requests": sum(each.requests for each in in_global),
        "shared wavefronts": sum(each.wavefronts for each in (*in_shared, c.shared_atomics)),
        "barriers": c.barriers,
        "atomics": c.global_atomics.threads + c.shared_atomics.threads,
    }
    moved = {"global": sum(each.bytes for each in in_global), "shared": sum(each.bytes for each in in_shared)}
    return run.args[1], counters, moved


def compared(n):
    """The bytes that threads accessed in both versions, after everything else was checked."""
    results = []
    for x in (floats(n), floats(n)):
        y, before, moved_before = own_counters(BEFORE_CUDA, before_launch, x, n)
        z, after, moved_after = own_counters(AFTER_CUDA, after_launch, x, n)
        assert np.isfinite(y).all(), f"n = {n}: the first version does not write all of y"
        assert_close(z, y, rtol=1e-3, atol=1e-3 * float(np.abs(y).max()), name=f"y of the second version at n = {n}")
        results.append(y)
    assert not np.allclose(*results), f"n = {n}: y does not depend on x"
    said = f"better must be one of {', '.join(before)}, got {better!r}"
    assert better in tuple(before), said
    said = f"n = {n}: {better} were {before[better]:,} before and are {after[better]:,} after, which is not half"
    assert 2 * after[better] <= before[better] and before[better] > 0, said
    for name in ("global sectors", "global requests", "atomics"):
        said = f"n = {n}: {name} were {before[name]:,} before and are {after[name]:,} after, more than twice as many"
        assert after[name] <= 2 * before[name], said
    return moved_before, moved_after


def check_own(n):
    compared(n)


check_own(1024)
### BEGIN HIDDEN TESTS
check_own(4096)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b8_1_reason_test", "grade": true, "points": 3} rooflab={"seconds": 120}
REASONS = ("neighbours", "reuse", "wider", "banks", "registers", "private")
assert reason in REASONS, f"reason must be one of {', '.join(REASONS)}, got {reason!r}"
moved_before, moved_after = compared(1024)
### BEGIN HIDDEN TESTS
possible = {
    "global sectors": ("neighbours", "reuse", "registers"),
    "global requests": ("reuse", "wider", "registers"),
    "shared wavefronts": ("banks", "registers", "wider"),
    "barriers": ("registers", "private"),
    "atomics": ("private", "registers"),
}
memory = better.split()[0]
if memory in moved_before:  # reuse and registers spare accesses; the others make the same accesses in a better way
    spared = 4 * moved_after[memory] <= 3 * moved_before[memory]
    possible[better] = tuple(one for one in possible[better] if (one in ("reuse", "registers")) == spared)
said = f'"{reason}" does not explain fewer {better}: do the threads access fewer bytes, or the same bytes otherwise?'
assert reason in possible[better], said
### END HIDDEN TESTS

# %% [markdown]
# You have written about a dozen kernels, and none of their grades rests on time. On a GPU, time decides. But a time
# says only that a kernel is slow. A count says why.
