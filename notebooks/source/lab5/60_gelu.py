# %% [markdown]
# # Part 6. One function, several ways
#
# GeLU is an elementwise function:
#
# $$\mathrm{GeLU}(x) = 0.5\, x \left(1 + \tanh\left(0.79788456\,(x + 0.044715\, x\, x\, x)\right)\right)$$
#
# You can run it as single operations, with a compiler, as the library's fused kernel, as a kernel in CUDA C++, or as a
# *tile program*. All of them do the same arithmetic. They differ in how often they read and write global memory.
#
# ## 6.1 Written out ({points q6_1})
#
# - `gelu_written_out(x)`: the formula exactly as it is printed, with `*`, `+` and `rl.tanh` on an `rl` tensor. Write
#   $x\, x\, x$ as products, not as a power.
# - `gelu_launches` and `gelu_accesses`: the number of launches, and the accesses per element. A product with a constant
#   reads one array, and a product of two arrays reads two. The products are computed from left to right.
# - `gelu_gain`: how many times faster a single fused kernel is, if the time is proportional to the accesses


# %% nbgrader={"grade_id": "q6_1", "solution": true}
def gelu_written_out(x):
    """GeLU by products, sums and rl.tanh."""
    ### BEGIN SOLUTION
    return 0.5 * x * (1 + rl.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    ### END SOLUTION


gelu_launches = None
gelu_accesses = None
gelu_gain = None
### BEGIN SOLUTION
gelu_launches, gelu_accesses, gelu_gain = 9, 3 * 2 + 3 * 3 + 3 + 2 + 2, 11.0
### END SOLUTION


# %% nbgrader={"grade_id": "q6_1_test", "grade": true, "points": 1}
def written_out(shape, scale):
    x = (scale * measure.rng().standard_normal(shape)).astype("float32")
    seen = measure.count(gelu_written_out, rl.tensor(x, device=device))
    assert isinstance(seen.value, rl.Tensor), "return an rl tensor"
    assert_close(seen.value, library_gelu(x), rtol=2e-6, atol=1e-6, name=f"gelu_written_out at {shape}")
    kinds = {name: seen.by_op.get(name, 0) for name in ("mul", "add", "tanh")}
    made = f"{kinds['mul']} products, {kinds['add']} sums and {kinds['tanh']} tanh"
    said = f"gelu_written_out made {made}, {seen.launches} launches in all"
    right = "expected one launch for each product, sum and tanh of the formula"
    assert seen.launches == sum(kinds.values()) and all(kinds.values()), f"{said}, {right}"
    return seen, f"{said}, {right}"


for shape, scale in [((1000,), 1), ((20, 30), 4)]:
    written_out(shape, scale)
### BEGIN HIDDEN TESTS
for shape, scale in [((measure.draw(2, 9), measure.draw(2, 9), 3), 2), ((measure.draw(2000, 5000),), 10)]:
    seen, said = written_out(shape, scale)
    assert seen.launches == 9, said
    accesses = (seen.bytes_read + seen.bytes_written) / (4 * math.prod(shape))
    # A product x * x, which another order has, reads one array.
    assert accesses in (21, 22), f"{said}, and {accesses:g} accesses per element: keep the formula's order"
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q6_1_counts_test", "grade": true, "points": 1}
for name, value in (("gelu_launches", gelu_launches), ("gelu_accesses", gelu_accesses)):
    assert is_count(value), f"{name} must be a whole number (int), got {value!r}"
assert is_number(gelu_gain), f"gelu_gain must be a number, got {gelu_gain!r}"
### BEGIN HIDDEN TESTS
said = f"gelu_launches is not {gelu_launches}: count each operation of the formula, also those of x x x"
assert gelu_launches == 9, said
said = f"gelu_accesses is not {gelu_accesses}: add up what each operation reads and writes"
assert gelu_accesses == 22, said
said = f"gelu_gain is not {gelu_gain}: divide gelu_accesses by the accesses of one fused kernel"
assert is_near(gelu_gain, 11, 1e-3), said
### END HIDDEN TESTS

# %%
published = lab5.PUBLISHED_GELU
times = {name: published[name] for name in ("mul", "add", "tanh")}
times["all operations"] = sum(times.values())
times["fused"] = published["fused"]
rl.plots.plot_bars(times, "ms", title="Published: GeLU on an A100, kernels added up by operation", baseline="fused")

# %% [markdown]
# The published kernels took 17.127 ms together and the fused kernel 1.545 ms. How near is your `gelu_gain`? (Each
# access moves 4 bytes. From the times we infer 2²⁸ elements and a bandwidth of 1.39 TB/s.) The kernel of tanh alone
# takes as long as the whole fused function: its time is the time of reading x and writing the result, and the
# arithmetic of the other operations takes no extra time.
