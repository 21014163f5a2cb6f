# %% [markdown]
# # Part 6. One function, five ways
#
# GeLU is a function of one number, and every element is by itself:
#
# $$\mathrm{GeLU}(x) = 0.5\, x \left(1 + \tanh\left(0.79788456\,(x + 0.044715\, x\, x\, x)\right)\right)$$
#
# It can be run as operations, as a kernel in CUDA C++, as a *tile program*, by the library's fused kernel, and by a
# compiler. The work is the same. What differs is how often x goes through memory.
#
# ## 6.1 Written out ({points q6_1})
#
# - `gelu_written_out(x)`: the formula exactly as it stands, with `*`, `+` and `rl.tanh` on an `rl` tensor. Write
#   $x\, x\, x$ as products, not as a power
# - `gelu_launches` and `gelu_accesses`: how many launches that makes, and how many accesses for each element. A product
#   with a constant reads one array, a product of two arrays reads two. Take the products from left to right
# - `gelu_gain`: how many times faster is one kernel that does it all, if only bytes cost time?

# %% nbgrader={"grade_id": "q6_1", "solution": true}
gelu_launches = None
gelu_accesses = None
gelu_gain = None
### BEGIN SOLUTION
gelu_launches, gelu_accesses, gelu_gain = 9, 3 * 2 + 3 * 3 + 3 + 2 + 2, 11.0
### END SOLUTION


def gelu_written_out(x):
    """GeLU by products, sums and rl.tanh."""
    ### BEGIN SOLUTION
    return 0.5 * x * (1 + rl.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    ### END SOLUTION


# %% nbgrader={"grade_id": "q6_1_test", "grade": true, "points": 1}
def check_written_out(shape, scale):
    x = (scale * np.random.default_rng(len(shape)).standard_normal(shape)).astype("float32")
    seen = measure.count(gelu_written_out, rl.tensor(x, device=device))
    assert_close(seen.value, lab5.gelu_float64(x), rtol=1e-5, atol=1e-5, name=f"gelu_written_out at {shape}")
    assert seen.uploaded_bytes < seen.value.nbytes, "the result came from outside of rl: work with rl tensors"
    kinds = {name: seen.by_op.get(name, 0) for name in ("mul", "add", "tanh")}
    made = f"{kinds['mul']} products, {kinds['add']} sums and {kinds['tanh']} tanh"
    said = f"it makes {made}, {seen.launches} launches in all"
    assert seen.launches == sum(kinds.values()) == 9, f"{said}: write out every product and sum of the formula"
    accesses = (seen.bytes_read + seen.bytes_written) / (4 * x.size)
    # A product x * x, which another order has, reads one array.
    assert accesses in (21, 22), f"{said}, and {accesses:g} accesses an element: keep the order of the formula"


check_written_out((1000,), 1)
check_written_out((20, 30), 4)
### BEGIN HIDDEN TESTS
check_written_out((7, 5, 3), 2)
check_written_out((4097,), 10)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q6_1_counts_test", "grade": true, "points": 1}
assert is_count(gelu_launches) and is_count(gelu_accesses), "gelu_launches and gelu_accesses are whole numbers"
assert is_number(gelu_gain), "gelu_gain is a number"
### BEGIN HIDDEN TESTS
assert gelu_launches == 9, "gelu_launches: six products, two sums and tanh; x x x is two of the products"
assert gelu_accesses == 22, "gelu_accesses: what does each of the nine operations read and write?"
assert is_near(gelu_gain, 11, 1e-3), (
    "gelu_gain: the fused kernel makes two accesses, so compare accesses and not launches"
)
### END HIDDEN TESTS

# %%
published = lab5.PUBLISHED_GELU
times = {name: published[name] for name in ("mul", "add", "tanh")}
times["all nine operations"] = sum(times.values())
times["fused"] = published["fused"]
rl.plots.plot_bars(times, "ms", title="Published: GeLU on an A100, kernels added up by operation", baseline="fused")

# %% [markdown]
# The published kernels took 17.127 ms together against 1.545 ms, a factor of 11.09. Your count says 11. (Each access
# moves 4 bytes. From the times we infer that there were 2²⁸ elements, and that the kernels moved 1.39 TB/s.) A kernel
# of tanh takes as long as the whole function: the arithmetic of the other eight is free.
