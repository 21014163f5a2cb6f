# %% [markdown]
# ## 6.3 As a tile program ({points q6_3})
#
# In CUDA C++ you write what *one thread* does. In a tile language such as Triton you write what *one block* does, with
# whole vectors, and the compiler distributes the work over the threads. Such a **program** knows its number `pid`, and
# processes the `block` elements that begin at `pid * block`. The last program may reach past the end of the array, so
# it needs a **mask**:
#
# - `load(memory, offsets, mask)`: returns the elements at these offsets where the mask is true, and 0 elsewhere
# - `store(memory, offsets, values, mask)`: writes the values at these offsets where the mask is true
#
# `offsets` is a NumPy array of whole numbers, and `mask` an array of booleans. x and y are arrays in global memory with
# n elements or more. Do not access any element after the first n: they belong to other data.
#
# - `gelu_program(pid, x, y, n, block)`: computes GeLU of the elements of x that belong to program number `pid`, and
#   stores the results in y. It returns nothing.


# %% nbgrader={"grade_id": "q6_3", "solution": true}
def gelu_program(pid, x, y, n, block):
    """Program number `pid`: GeLU of its `block` elements of x into y, up to element n."""
    ### BEGIN SOLUTION
    offsets = pid * block + np.arange(block)
    mask = offsets < n
    v = load(x, offsets, mask)
    store(y, offsets, 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v * v * v))), mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q6_3_test", "grade": true, "points": 1}
def run_programs(n, block, order, guard=16):
    """All programs one after the other: y and, for each element of x and y, how often it was read and written."""
    values = measure.rng().standard_normal(n + guard) * 3
    x, y = values.astype("float32"), np.full(n + guard, np.nan, "float32")
    reads, writes = np.zeros(n + guard, int), np.zeros(n + guard, int)
    for pid in order:
        call = f"gelu_program(pid={pid}, n={n}, block={block})"
        try:
            seen = measure.accesses(gelu_program, pid, x, y, n, block)
        except IndexError:
            said = f"{call} used an index outside of an array: do load and store both get the mask?"
            raise AssertionError(said) from None
        y, reads, writes = seen.arrays[2], reads + seen.reads[1], writes + seen.writes[2]
        assert not seen.writes[1].any(), f"{call} wrote into x: write into y only"
        first, wrote = pid * block, np.flatnonzero(seen.writes[2])
        said = f"{call} wrote the elements {wrote.min(initial=n + guard)} to {wrote.max(initial=0)}"
        own = ((wrote >= first) & (wrote < first + block)).all()
        assert own, f"{said}: its own elements are {first} to {first + block - 1}"
    return x, y, reads, writes


def check_programs(n, block, order):
    x, y, *_ = run_programs(n, block, order)
    case = f"n = {n}, block = {block}, programs in the order {list(order)}"
    missing = np.flatnonzero(np.isnan(y[:n]))
    if missing.size:
        said = f"{case}: y[{missing[0]}] is NaN, as before: which elements belong to program {missing[0] // block},"
        raise AssertionError(f"{said} and does it store all of them?")
    name = f"y for {case}, where y[i] must be GeLU of x[i]"
    assert_close(y[:n], library_gelu(x[:n]), rtol=1e-6, atol=1e-6, name=name)


check_programs(8, 4, [0, 1])
check_programs(10, 4, [2, 0, 1])
check_programs(5, 32, [0])
### BEGIN HIDDEN TESTS
block = measure.draw(12, 20)
check_programs(6 * block + measure.draw(1, block - 1), block, measure.rng().permutation(7).tolist())
check_programs(2 * block + 1, 2 * block, [1, 0])
check_programs(measure.draw(8200, 9000), 2048, [4, 2, 0, 1, 3])
check_programs(1, 1, [0])
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q6_3_accesses_test", "grade": true, "points": 1}
def check_accesses(n, block):
    programs = -(-n // block)
    *_, reads, writes = run_programs(n, block, range(programs))
    case = f"n = {n}, block = {block}"
    for what, counts in (("elements of x were read", reads), ("elements of y were written", writes)):
        low, high = int(counts[:n].min()), int(counts[:n].max())
        assert low == high == 1, (
            f"{case}: {what} {low} to {high} times each, expected once: which offsets has a program?"
        )
        beyond = int(counts[n:].sum())
        said = f"{case}: {beyond} {what} after the first n, expected 0: what does the mask say about these?"
        assert not beyond, said


check_accesses(8, 4)
check_accesses(10, 4)
### BEGIN HIDDEN TESTS
block = measure.draw(12, 20)
check_accesses(6 * block + measure.draw(1, block - 1), block)
check_accesses(1, block)
check_accesses(block + 1, block)
### END HIDDEN TESTS

# %% [markdown]
# All ways side by side, on a million elements. The accesses of `gelu_program` are counted on 1000 elements. It moves as
# many bytes per element as the fused kernel:

# %%
n = 1_000_000
x = rl.randn(n, device=device)
compiled_gelu = rl.compile(gelu_written_out)
rows = []
for name, fn in (("written out", gelu_written_out), ("compiled", compiled_gelu), ("rl.gelu, fused", rl.gelu)):
    fn(x)
    with rl.count() as c:
        fn(x)
    moved = (c.bytes_read + c.bytes_written) / n
    rows.append((name, c.launches, f"{moved:.0f}", f"{latency(fn, x, repeat=20).median_ms:.3f}"))
memory, result = (global_array(np.zeros(1000, "float32")) for _ in "xy")
for pid in range(4):
    gelu_program(pid, memory, result, 1000, 256)
rows.append(("tile program, four programs", "", f"{4 * (memory.reads + result.writes) / 1000:.0f}", ""))
if device == "cuda":
    kernel, y = rl.cuda.compile(GELU_CUDA)["gelu"], rl.empty(n, device=device)
    ms = latency(lambda: kernel((gelu_blocks(n),), (1024,), x, y, n), repeat=20).median_ms
    rows.append(("your CUDA kernel", 1, "8", f"{ms:.3f}"))
Table(("GeLU of a million elements", "launches", "bytes per element", "ms"), rows, title=f"This machine ({device})")

# %% [markdown]
# Many launches and many bytes per element, or one launch and few bytes: the formula is the same. On a GPU these kernels
# wait for memory. If you know the rules of that machine, you can predict which way is faster, and by how much, before
# you run anything. That is what this lab was about. On a CPU the arithmetic of tanh counts as well, so bytes
# alone do not tell the gain.
