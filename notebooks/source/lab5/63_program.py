# %% [markdown]
# ## 6.3 As a tile program ({points q6_3})
#
# In CUDA C++ you write what *one thread* does. In a tile language such as Triton you write what *one block* does, with
# whole vectors, and the compiler finds the threads. A **program** knows its number `pid`, and works on `block` elements
# from `pid * block` on. The last one may reach past the end, and so it needs a **mask**:
#
# - `load(memory, offsets, mask)`: the elements at these offsets where the mask is true, and 0 elsewhere
# - `store(memory, offsets, values, mask)`: writes the values where the mask is true
#
# Both take NumPy arrays of offsets and of bools. x and y are arrays in global memory, of n elements or more. What lies
# behind the first n belongs to somebody else.
#
# - `gelu_program(pid, x, y, n, block)`: GeLU of the elements that belong to program number `pid`, from x into y


# %% nbgrader={"grade_id": "q6_3", "solution": true}
def gelu_program(pid, x, y, n, block):
    """One program: GeLU of its `block` elements, as far as they are below n."""
    ### BEGIN SOLUTION
    offsets = pid * block + np.arange(block)
    mask = offsets < n
    v = load(x, offsets, mask)
    store(y, offsets, 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v * v * v))), mask)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q6_3_test", "grade": true, "points": 1}
def run_programs(n, block, order, guard=16):
    """All programs one after the other: y and, for each element of x and y, how often it was read and written."""
    values = np.random.default_rng(n).standard_normal(n + guard) * 3
    x, y = values.astype("float32"), np.full(n + guard, np.nan, "float32")
    reads, writes = np.zeros(n + guard, int), np.zeros(n + guard, int)
    for pid in order:
        seen = measure.accesses(gelu_program, pid, x, y, n, block)
        y, reads, writes = seen.arrays[2], reads + seen.reads[1], writes + seen.writes[2]
        assert not seen.writes[1].any(), "gelu_program wrote into x"
    return x, y, reads, writes


def check_programs(n, block, order):
    x, y, *_ = run_programs(n, block, order)
    case = f"n = {n}, block = {block}, programs in the order {list(order)}"
    assert_close(y[:n], lab5.gelu_float64(x[:n]), rtol=1e-6, atol=1e-6, name=f"y for {case}")


check_programs(8, 4, [0, 1])
check_programs(10, 4, [2, 0, 1])
check_programs(5, 8, [0])
### BEGIN HIDDEN TESTS
check_programs(100, 16, [6, 2, 0, 4, 1, 3, 5])
check_programs(33, 32, [1, 0])
check_programs(1, 1, [0])
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "q6_3_accesses_test", "grade": true, "points": 1}
def check_accesses(n, block):
    programs = -(-n // block)
    *_, reads, writes = run_programs(n, block, range(programs))
    case = f"n = {n}, block = {block}"
    assert (reads[:n] == 1).all(), (
        f"{case}: x was read {int(reads.sum())} times; each program reads its own elements once"
    )
    assert (writes[:n] == 1).all(), (
        f"{case}: y was written {int(writes.sum())} times; each program writes its own elements once"
    )
    assert not reads[n:].any() and not writes[n:].any(), (
        f"{case}: accesses behind the first n elements: what is the mask?"
    )


check_accesses(8, 4)
check_accesses(10, 4)
### BEGIN HIDDEN TESTS
check_accesses(100, 16)
check_accesses(1, 8)
check_accesses(17, 16)
### END HIDDEN TESTS

# %% [markdown]
# All five side by side, on a million elements. `gelu_program` counts the accesses of its programs, so it shows the same
# traffic as the fused kernel:

# %%
n = 1_000_000
x = rl.randn(n, device=device)
compiled_gelu = rl.compile(gelu_written_out)
rows = []
for name, fn in (("nine operations", gelu_written_out), ("compiled", compiled_gelu), ("rl.gelu, fused", rl.gelu)):
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
Table(("GeLU of a million elements", "launches", "bytes an element", "ms"), rows, title=f"This machine ({device})")

# %% [markdown]
# Nine launches and 88 bytes, or one launch and 8 bytes: the formula is the same. Whoever knows the rules of the machine
# can tell which of the two is faster, and by how much, before anything runs. That is what this lab was about.
