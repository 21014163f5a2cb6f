# %% [markdown]
# # Part 3. Five tricks
#
# Most kernels are memory-bound. So most tricks move fewer bytes, or move them more efficiently.
#
# ## 3.1 Shorter numbers ({points q3_1})
#
# A ReLU, $\max(x, 0)$, reads each element, does 1 FLOP, and writes the result. With n bytes per element, give:
#
# - `relu_bytes_per_flop(n)`: the bytes per FLOP, if the result goes into a new array
# - `relu_in_place_bytes_per_flop(n, negative)`: the bytes per FLOP, if the result replaces x and only the elements that
#   change are written. `negative` is the share of elements below 0.
# - `relu_intensity(n)`: the arithmetic intensity in FLOP/byte, if the result goes into a new array


# %% nbgrader={"grade_id": "q3_1", "solution": true}
def relu_bytes_per_flop(n):
    """Bytes per FLOP of a ReLU into a new array."""
    ### BEGIN SOLUTION
    return 2 * n
    ### END SOLUTION


def relu_in_place_bytes_per_flop(n, negative):
    """Bytes per FLOP of a ReLU in place that writes only the elements below 0."""
    ### BEGIN SOLUTION
    return n + n * negative
    ### END SOLUTION


def relu_intensity(n):
    """Arithmetic intensity of a ReLU into a new array, FLOP/byte."""
    ### BEGIN SOLUTION
    return 1 / (2 * n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 2}
relu_hint = "what is read and what is written for each element, and how many FLOPs are done?"
assert_values(relu_bytes_per_flop, {(8,): 16.0}, relu_hint)
place_hint = "which elements are read, and which are written?"
assert_values(relu_in_place_bytes_per_flop, {(8, 0.25): 10.0, (1, 0.0): 1.0, (8, 0.125): 9.0}, place_hint)
### BEGIN HIDDEN TESTS
cases = [(4, 0.5), (2, 1.0), *((n, measure.draw(1, 999) / 1000) for n in (1, 2, measure.draw(3, 32)))]
assert_values(relu_bytes_per_flop, {(n,): 2.0 * n for n, _ in cases}, relu_hint)
assert_values(relu_in_place_bytes_per_flop, {case: case[0] * (1 + case[1]) for case in cases}, place_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_1_intensity_test", "grade": true, "points": 1}
intensity_hint = "intensity is FLOPs divided by bytes, the inverse of bytes per FLOP"
assert_values(relu_intensity, {(8,): 0.0625}, intensity_hint)
### BEGIN HIDDEN TESTS
assert_values(relu_intensity, {(n,): 1 / (2 * n) for n in (1, 2, 4, measure.draw(9, 32))}, intensity_hint)
### END HIDDEN TESTS

# %%
a100 = SPECS["A100 SXM 40GB"]
points = {f"ReLU, {8 * n} bits": relu_intensity(n) for n in (4, 2)}
rl.plots.plot_roofline(a100, points, dtype="float32", title="Two ReLUs on an A100: half the bytes, twice the speed")

# %% [markdown]
# Both points are far to the left of the ridge. There, the speed is bandwidth times intensity. So half the bytes means
# twice the speed, and faster arithmetic units would not help at all. (*Bytes per FLOP* is the inverse of the
# intensity.)
#
# ## 3.2 Fusion ({points q3_2})
#
# Compute $\sin^2 x - \cos^2 x$ with five operations: $\sin(x)$, its square, $\cos(x)$, its square, and the difference.
# Each operation reads its inputs from global memory and writes its result there. (The lecture added the two squares.
# That is 1 for every x, so a kernel that only writes ones would look right.)
#
# - `sin_cos(x)`: write it with `rl.sin`, `rl.cos`, `** 2` and `-`
# - `sin_cos_compiled`: the same function, compiled with `rl.compile`, which fuses chains of elementwise operations into
#   one kernel
#
# Then count, by hand or with `with rl.count() as c:`. (An access is one element read or written.)
#
# - `separate_accesses` and `fused_accesses`: the accesses per element of x, with five operations and with one fused
#   kernel
# - `separate_launches` and `fused_launches`: the number of kernel launches
# - `fusion_gain`: how many times faster the fused kernel is, if the time is proportional to the accesses
#
# The test calls both functions, compares their results with the formula, and counts their launches and accesses.


# %% nbgrader={"grade_id": "q3_2", "solution": true}
def sin_cos(x):
    """sin(x)**2 - cos(x)**2 by five operations."""
    ### BEGIN SOLUTION
    return rl.sin(x) ** 2 - rl.cos(x) ** 2
    ### END SOLUTION


separate_accesses = None
fused_accesses = None
separate_launches = None
fused_launches = None
fusion_gain = None
sin_cos_compiled = None
### BEGIN SOLUTION
separate_accesses, fused_accesses = 4 * 2 + 3, 2
separate_launches, fused_launches = 5, 1
fusion_gain = 11 / 2
sin_cos_compiled = rl.compile(sin_cos)
### END SOLUTION


# %% nbgrader={"grade_id": "q3_2_test", "grade": true, "points": 2}
def check_chain(name, function, shape):
    x = measure.rng().uniform(-4, 4, shape).astype("float32")
    seen = measure.count(function, rl.tensor(x, device=device))
    expected = np.sin(x.astype(float)) ** 2 - np.cos(x.astype(float)) ** 2
    assert isinstance(seen.value, rl.Tensor), f"{name} must return an rl tensor"
    assert_close(seen.value, expected, rtol=0, atol=1e-6, name=f"{name} (sin(x)**2 - cos(x)**2)")
    return seen, (seen.bytes_read + seen.bytes_written) / (4 * x.size)


assert callable(sin_cos_compiled), f"sin_cos_compiled must be a function, rl.compile(sin_cos), got {sin_cos_compiled!r}"
separate, accesses = check_chain("sin_cos", sin_cos, (1000,))
assert {"sin", "cos"} <= separate.by_op.keys(), f"sin_cos ran {sorted(separate.by_op)}: work with rl tensors"
fused, fewer = check_chain("sin_cos_compiled", sin_cos_compiled, (30, 7))
said = "sin_cos_compiled makes as many launches or accesses as sin_cos: compile the whole formula"
assert fused.launches < separate.launches and fewer < accesses, said


### BEGIN HIDDEN TESTS
def check_counts(name, function, launches, accesses, shape):
    seen, counted = check_chain(name, function, shape)
    hint = "one for each operation of the formula" if launches > 1 else "compile the whole formula"
    assert seen.launches == launches, f"{name}, launches: {seen.launches}. Hint: {hint}"
    assert counted == accesses, f"{name} made {counted:g} accesses per element: {hint}"


L, D = measure.draw(20, 60), measure.draw(20, 60)
check_counts("sin_cos", sin_cos, 5, 11, (1000,))
check_counts("sin_cos", sin_cos, 5, 11, (L, D))
check_counts("sin_cos_compiled", sin_cos_compiled, 1, 2, (L, D))
check_counts("sin_cos_compiled", sin_cos_compiled, 1, 2, (measure.draw(2, 9), 5, 3))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_2_counts_test", "grade": true, "points": 3}
counts = {
    "separate_accesses": separate_accesses,
    "fused_accesses": fused_accesses,
    "separate_launches": separate_launches,
    "fused_launches": fused_launches,
}
for name, value in counts.items():
    assert is_count(value), f"{name} must be a whole number (int), got {value!r}"
assert is_number(fusion_gain), f"fusion_gain must be a number, got {fusion_gain!r}"
### BEGIN HIDDEN TESTS
said = (
    f"separate_accesses is not {separate_accesses}: each of the operations reads all its inputs and writes its result"
)
assert separate_accesses == 11, said
said = f"fused_accesses is not {fused_accesses}: what does the one kernel have to read, and what to write?"
assert fused_accesses == 2, said
said = f"not {separate_launches} and {fused_launches} launches: how many kernels run in each of the two cases?"
assert (separate_launches, fused_launches) == (5, 1), said
assert_near("fusion_gain", fusion_gain, 5.5, 1e-3, "compare separate_accesses with fused_accesses")
### END HIDDEN TESTS

# %%
x = rl.randn(1_000_000, device=device)
sin_cos_compiled(x)
times = {name: latency(fn, x, repeat=20) for name, fn in (("separate", sin_cos), ("fused", sin_cos_compiled))}
counts = (("separate", separate_launches, separate_accesses), ("fused", fused_launches, fused_accesses))
rows = [(name, launches, each, 4 * each, f"{times[name].median_ms:.2f}") for name, launches, each in counts]
Table(
    ("", "launches", "accesses per element", "bytes per element", "ms here"), rows, title="A million elements in fp32"
)

# %% [markdown]
# The bytes fall by the factor of your `fusion_gain`, and the time on a GPU falls by nearly as much. On a CPU the gain
# is small or none: the sines take longer than the memory traffic, and a million elements fit into its cache. A trick
# helps only if it saves what the kernel waits for.
#
# ## 3.3 Recomputation ({points q3_3})
#
# The backward pass needs values of the forward pass. The forward pass can write them to memory, or the backward pass
# can compute them again.
#
# ### a) What a backward pass computes ({points q3_3_test})
#
# - `loss_gradient(w, phi, y)`: the gradient of $(w \cdot \varphi - y)^2$ with respect to w. w and `phi` (φ) are NumPy
#   arrays of one dimension in fp64, and y is a number. Do not write into the arrays.


# %% nbgrader={"grade_id": "q3_3", "solution": true}
def loss_gradient(w, phi, y):
    """The gradient of (w . phi - y)^2 with respect to w."""
    ### BEGIN SOLUTION
    return 2 * (w @ phi - y) * phi
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_3_test", "grade": true, "points": 1}
def check_gradient(w, phi, y, expected):
    seen = measure.call(loss_gradient, np.array(w, float), np.array(phi, float), y)
    name = f"loss_gradient({w}, {phi}, {y})"
    assert_close(seen.value, expected, rtol=1e-6, atol=1e-9, name=name)
    assert not seen.changed, f"{name} wrote into an array that it was given: compute a new array instead"


check_gradient([1, 1], [2, 3], 4, [4, 6])
check_gradient([2, 0, 1], [1, -1, 3], 7, [-4, 4, -12])
check_gradient([0.5, 0.25], [0.5, 1.5], 0.375, [0.25, 0.75])
check_gradient([0.1, 0.7], [0.3, 1.1], 0.9, [-0.06, -0.22])
### BEGIN HIDDEN TESTS
check_gradient([0.5, -1, 2, 0], [4, 0, 1, 9], 4, [0, 0, 0, 0])
for residual in (measure.draw(1, 9), measure.draw(-9, -1)):
    w, phi = measure.rng().integers(1, 10, (2, measure.draw(2, 6)))
    check_gradient(w.tolist(), phi.tolist(), int(w @ phi) - residual, 2 * residual * phi)
    check_gradient(w.tolist(), (phi / 8).tolist(), (int(w @ phi) - residual) / 8, residual * phi / 32)
### END HIDDEN TESTS

# %% [markdown]
# ### b) Keep or recompute ({points q3_3_accesses_test})
#
# Stack k sigmoids, $\sigma(\sigma(\dots\sigma(x)))$, with *one* kernel for the forward pass and *one* for the backward
# pass. The derivative of a sigmoid with output s is s (1 - s), so the backward pass needs the output of every sigmoid.
# There are two ways to get them.
#
# - **Keep.** The forward kernel reads x and writes all k outputs. The backward kernel reads the gradient of the result
#   and the outputs, and writes the gradient of x. It need not read the last output, because it can compute it from the
#   one before it. For k = 1 there is no output before it, so the kernel reads the only output.
# - **Recompute.** The forward kernel reads x and writes the last output only. The backward kernel reads x and the
#   gradient of the result, computes all outputs again in registers, and writes the gradient of x.
#
# Write one function:
#
# - `sigmoid_accesses(k, keep)`: the accesses per element, forward and backward together, for k = 1, 2, 3, ... `keep` is
#   True or False.


# %% nbgrader={"grade_id": "q3_3_accesses", "solution": true}
def sigmoid_accesses(k, keep):
    """Accesses per element of k stacked sigmoids, forward and backward together: an int."""
    ### BEGIN SOLUTION
    forward = 1 + (k if keep else 1)
    backward = 1 + (max(k - 1, 1) if keep else 1) + 1
    return forward + backward
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_3_accesses_test", "grade": true, "points": 4}
keep_hint = "list what each of the two kernels reads and writes, if the outputs are kept"
assert_counts(sigmoid_accesses, {(2, True): 6, (1, True): 5, (5, True): 12}, keep_hint)
again_hint = "list what each of the two kernels reads and writes, if the outputs are computed again"
assert_counts(sigmoid_accesses, {(1, False): 5, (2, False): 5}, again_hint)
### BEGIN HIDDEN TESTS
for k in (3, measure.draw(4, 99), measure.draw(100, 300)):
    assert_counts(sigmoid_accesses, {(k, True): 2 * k + 2}, keep_hint)
    assert_counts(sigmoid_accesses, {(k, False): 5}, again_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### c) Count the accesses ({points q3_3_eager_test})
#
# How many accesses does `rl` make without a kernel written for this stack? The next cell counts stacks of k sigmoids,
# first operation by operation, and then compiled.


# %%
def stack_of(k):
    """A function of k stacked sigmoids."""

    def stack(x):
        for _ in range(k):
            x = rl.sigmoid(x)
        return x

    return stack


def counted_passes(function, n=1000):
    """Accesses per element in the forward and in the backward pass."""
    x, upstream = rl.randn(n, device=device).requires_grad_(), rl.ones(n, device=device)
    function(x)
    with rl.count() as forward:
        y = function(x)
    with rl.count() as backward:
        y.backward(upstream)
    return tuple((c.bytes_read + c.bytes_written) / (4 * n) for c in (forward, backward))


rows = []
for k in (1, 2, 3):
    passes = counted_passes(stack_of(k)), counted_passes(rl.compile(stack_of(k)))
    counted_here = (f"{forward:g} + {backward:g}" for forward, backward in passes)
    rows.append((k, *counted_here, sigmoid_accesses(k, True), sigmoid_accesses(k, False)))
head = ("k", "operation by operation", "compiled", "your formula, kept", "your formula, recomputed")
Table(head, rows, title="Accesses per element, forward + backward")

# %% [markdown]
# Operation by operation, `rl` computes the gradient of each sigmoid in one launch. It reads the incoming gradient and
# the output s. What do your numbers say about deeper stacks? (`counted_passes(stack_of(k))` counts any of them.)
#
# - `one_kernel_gain`: each further sigmoid adds the same number of accesses, forward and backward together. Divide what
#   it adds operation by operation by what it adds to the kernels that *keep* the outputs (for k > 1). For a very deep
#   stack, this is how many times fewer accesses these kernels make.
# - `halved_from`: the smallest k for which the kernels that recompute make at most half of the accesses of the kernels
#   that keep

# %% nbgrader={"grade_id": "q3_3_eager", "solution": true}
one_kernel_gain = None
halved_from = None
### BEGIN SOLUTION
one_kernel_gain = 5 / 2  # 2 forward and 3 backward; 1 write and 1 read
halved_from = 4  # 2 k + 2 >= 2 * 5
### END SOLUTION

# %% nbgrader={"grade_id": "q3_3_eager_test", "grade": true, "points": 1}
assert is_number(one_kernel_gain), f"one_kernel_gain must be a number, got {one_kernel_gain!r}"
assert is_count(halved_from) and halved_from > 0, f"halved_from must be a whole number (int), got {halved_from!r}"
### BEGIN HIDDEN TESTS
counts = []
for k in (3, 4):
    x, upstream = rl.ones(100, requires_grad=True), rl.ones(100)
    with rl.count() as c:
        y = x
        for _ in range(k):
            y = rl.sigmoid(y)
        y.backward(upstream)
    counts.append((c.bytes_read + c.bytes_written) // 400)
gain_hint = "how many accesses does the last of four sigmoids add to each of the two ways?"
assert_near("one_kernel_gain", one_kernel_gain, (counts[1] - counts[0]) / 2, 1e-3, gain_hint)
said = f"halved_from is not {halved_from}: compare sigmoid_accesses(k, True) with sigmoid_accesses(k, False) for each k"
assert halved_from == 4, said
### END HIDDEN TESTS

# %% [markdown]
# Recomputation does more arithmetic and takes less time, because these kernels are memory-bound and it moves fewer
# bytes. Its accesses do not grow with k. (From k = 2 on, the backward kernel of rl's compiler reads one more array than
# your formula: the result, which is in memory anyway.)
