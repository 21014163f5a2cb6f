# %% [markdown]
# # Part 3. Five tricks
#
# Memory is what most kernels wait for. So most tricks move fewer bytes, or move them better.
#
# ## 3.1 Shorter numbers ({points q3_1})
#
# A ReLU, $\max(x, 0)$, reads each element, does 1 FLOP, and writes it. Count bytes for each FLOP:
#
# - `relu_bytes_per_flop(n)`: with n bytes a number, the result in a new array
# - `relu_in_place_bytes_per_flop(n, negative)`: the result goes where x was, and only elements that change are written.
#   `negative` is the share of elements below 0
# - `relu_intensity(n)`: the arithmetic intensity in FLOP/byte of the first one


# %% nbgrader={"grade_id": "q3_1", "solution": true}
def relu_bytes_per_flop(n):
    """Bytes that a ReLU into a new array moves for each of its FLOPs."""
    ### BEGIN SOLUTION
    return 2 * n
    ### END SOLUTION


def relu_in_place_bytes_per_flop(n, negative):
    """The same in place, where only elements below 0 are written."""
    ### BEGIN SOLUTION
    return n + n * negative
    ### END SOLUTION


def relu_intensity(n):
    """Arithmetic intensity of a ReLU into a new array, FLOP/byte."""
    ### BEGIN SOLUTION
    return 1 / (2 * n)
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_1_test", "grade": true, "points": 2}
relu_hint = "one read and one write of n bytes for each element, and 1 FLOP"
assert_values(relu_bytes_per_flop, {(8,): 16.0}, relu_hint)
place_hint = "every element is read; those below 0 are written as well"
assert_values(relu_in_place_bytes_per_flop, {(8, 0.25): 10.0, (1, 0.0): 1.0}, place_hint)
### BEGIN HIDDEN TESTS
cases = [(4, 0.5), (2, 0.5), (2, 1.0), (4, 0.125), (1, 0.9)]
assert_values(relu_bytes_per_flop, {(n,): 2.0 * n for n, _ in cases}, relu_hint)
assert_values(relu_in_place_bytes_per_flop, {case: case[0] * (1 + case[1]) for case in cases}, place_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_1_intensity_test", "grade": true, "points": 1}
intensity_hint = "intensity is FLOPs over bytes, the inverse of bytes a FLOP"
assert_values(relu_intensity, {(8,): 0.0625}, intensity_hint)
### BEGIN HIDDEN TESTS
assert_values(relu_intensity, {(n,): 1 / (2 * n) for n in (1, 2, 4)}, intensity_hint)
### END HIDDEN TESTS

# %%
a100 = SPECS["A100 SXM 40GB"]
points = {f"ReLU, {8 * n} bits": relu_intensity(n) for n in (4, 2)}
rl.plots.plot_roofline(a100, points, dtype="float32", title="Two ReLUs on an A100: half the bytes, twice the speed")

# %% [markdown]
# Both lie far left of the ridge. There the speed is bandwidth times intensity, so half the bytes are twice the speed,
# and the arithmetic units do not matter at all. (*Bytes a FLOP* is not the intensity but its inverse.)
#
# ## 3.2 Fusion ({points q3_2})
#
# Take $\sin^2 x + \cos^2 x$, as $\sin(x)$, its square, $\cos(x)$, its square, and a sum: five operations. Each one
# reads its inputs from global memory and writes its result there.
#
# - `sin_cos(x)`: write it with `rl.sin`, `rl.cos`, `** 2` and `+`
# - `sin_cos_compiled`: the same function, compiled by `rl.compile`, which fuses chains of elementwise operations into
#   one kernel
#
# Then count, with `with rl.count() as c:` or by hand. An access is one element read or written:
#
# - `separate_accesses` and `fused_accesses`: accesses for each element of x
# - `separate_launches` and `fused_launches`: kernels
# - `fusion_gain`: how many times faster the compiled function is, if only bytes cost time
#
# It has to compute what it is asked for. Yes, the result is nearly 1 everywhere, but not for infinity.

# %% nbgrader={"grade_id": "q3_2", "solution": true}
separate_accesses = None
fused_accesses = None
separate_launches = None
fused_launches = None
fusion_gain = None
### BEGIN SOLUTION
separate_accesses, fused_accesses = 4 * 2 + 3, 2
separate_launches, fused_launches = 5, 1
fusion_gain = 11 / 2
### END SOLUTION


def sin_cos(x):
    """sin(x)**2 + cos(x)**2 by five operations."""
    ### BEGIN SOLUTION
    return rl.sin(x) ** 2 + rl.cos(x) ** 2
    ### END SOLUTION


sin_cos_compiled = None
### BEGIN SOLUTION
sin_cos_compiled = rl.compile(sin_cos)
### END SOLUTION


# %% nbgrader={"grade_id": "q3_2_test", "grade": true, "points": 2}
def check_chain(function, launches, accesses, shape):
    x = np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")
    x.reshape(-1)[0] = np.inf
    seen = measure.count(function, rl.tensor(x, device=device))
    with np.errstate(invalid="ignore"):
        expected = np.sin(x.astype(float)) ** 2 + np.cos(x.astype(float)) ** 2
    assert_close(seen.value, expected, rtol=0, atol=1e-6, name=f"{function.__name__}, with infinity in front,")
    assert seen.launches == launches, f"{function.__name__} takes {seen.launches} launches, and not {launches}"
    counted = (seen.bytes_read + seen.bytes_written) / (4 * x.size)
    assert counted == accesses, f"{function.__name__} makes {counted:g} accesses an element, and not {accesses}"


assert callable(sin_cos_compiled), "sin_cos_compiled is a function: rl.compile(sin_cos)"
check_chain(sin_cos, 5, 11, (1000,))
check_chain(sin_cos_compiled, 1, 2, (1000,))
### BEGIN HIDDEN TESTS
check_chain(sin_cos, 5, 11, (30, 41))
check_chain(sin_cos_compiled, 1, 2, (30, 41))
check_chain(sin_cos_compiled, 1, 2, (7, 5, 3))
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "q3_2_counts_test", "grade": true, "points": 3}
counts = (separate_accesses, fused_accesses, separate_launches, fused_launches)
assert all(map(is_count, counts)), "accesses and launches are whole numbers"
assert is_number(fusion_gain), "fusion_gain is a number"
### BEGIN HIDDEN TESTS
assert separate_accesses == 11, "separate_accesses: each operation reads all of its inputs and writes its result"
assert fused_accesses == 2, "fused_accesses: what has to come in, and what has to go out?"
assert (separate_launches, fused_launches) == (5, 1), "launches: one for each operation, and one when they are fused"
assert is_near(fusion_gain, 5.5, 1e-3), "fusion_gain: compare the accesses, not the launches"
### END HIDDEN TESTS

# %%
x = rl.randn(1_000_000, device=device)
sin_cos_compiled(x)
times = {name: latency(fn, x, repeat=20) for name, fn in (("separate", sin_cos), ("fused", sin_cos_compiled))}
rows = [
    ("separate", 5, 11, 44, f"{times['separate'].median_ms:.2f}"),
    ("fused", 1, 2, 8, f"{times['fused'].median_ms:.2f}"),
]
Table(("", "launches", "accesses an element", "bytes an element", "ms here"), rows, title="A million elements in fp32")

# %% [markdown]
# The gain of bytes is 5.5, and a GPU comes close to it. On a processor the sines cost more than the bytes, and a
# million elements fit in its cache, so it gains little or nothing. A trick helps where what it saves is what is waited
# for.
#
# ## 3.3 Recomputation ({points q3_3})
#
# The backward pass needs values of the forward pass. It can read them, if they were written, or compute them again.
#
# ### a) What a backward pass does ({points q3_3_test})
#
# - `loss_gradient(w, phi, y)`: the gradient of $(w \cdot \varphi - y)^2$ with respect to w, for NumPy arrays w and φ of
#   one dimension and a number y


# %% nbgrader={"grade_id": "q3_3", "solution": true}
def loss_gradient(w, phi, y):
    """The gradient of (w . phi - y)^2 with respect to w."""
    ### BEGIN SOLUTION
    return 2 * (w @ phi - y) * phi
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_3_test", "grade": true, "points": 1}
def check_gradient(w, phi, y, expected):
    got = loss_gradient(np.array(w, float), np.array(phi, float), y)
    name = f"loss_gradient({w}, {phi}, {y})"
    assert_close(got, expected, rtol=1e-6, atol=1e-9, name=name)


check_gradient([1, 1], [2, 3], 4, [4, 6])
check_gradient([2, 0, 1], [1, -1, 3], 7, [-4, 4, -12])
### BEGIN HIDDEN TESTS
check_gradient([3, 1], [1, 2], 2, [6, 12])
check_gradient([0.5, -1, 2, 0], [4, 0, 1, 9], 4, [0, 0, 0, 0])
check_gradient([1, 2, 3], [3, 2, 1], -1, [66, 44, 22])
### END HIDDEN TESTS

# %% [markdown]
# ### b) Keep or recompute ({points q3_3_accesses_test})
#
# Stack k sigmoids, $\sigma(\sigma(\dots\sigma(x)))$, with *one* kernel for the forward pass and *one* for the backward
# pass. The derivative of a sigmoid with the output s is s (1 - s), so the backward pass needs the output of every
# sigmoid. There are two ways.
#
# - **Keep.** The forward kernel reads x, and writes all k outputs. The backward kernel reads the gradient of the result
#   and the outputs it needs, and writes the gradient of x. It can save one read: the last output follows from the one
#   before it, in registers. (A single sigmoid has no output before its last one, so it reads that one.)
# - **Recompute.** The forward kernel writes the last output only. The backward kernel reads x and the gradient of the
#   result, computes all outputs again in registers, and writes the gradient of x.
#
# - `sigmoid_accesses(k, keep)`: the accesses for each element, forward and backward together, for k = 1, 2, 3, ...


# %% nbgrader={"grade_id": "q3_3_accesses", "solution": true}
def sigmoid_accesses(k, keep):
    """Accesses an element of k stacked sigmoids, forward and backward: an int."""
    ### BEGIN SOLUTION
    forward = 1 + (k if keep else 1)
    backward = 1 + (max(k - 1, 1) if keep else 1) + 1
    return forward + backward
    ### END SOLUTION


# %% nbgrader={"grade_id": "q3_3_accesses_test", "grade": true, "points": 4}
keep_hint = "forward: x and all outputs. Backward: the incoming gradient, the outputs that are read, the gradient of x"
assert_counts(sigmoid_accesses, {(2, True): 6, (1, True): 5, (5, True): 12}, keep_hint)
again_hint = "forward: x and the last output. Backward: x, the incoming gradient, and the gradient of x"
assert_counts(sigmoid_accesses, {(1, False): 5, (2, False): 5}, again_hint)
### BEGIN HIDDEN TESTS
assert_counts(sigmoid_accesses, {(3, True): 8, (4, True): 10, (10**9, True): 2 * 10**9 + 2}, keep_hint)
assert_counts(sigmoid_accesses, {(3, False): 5, (10**9, False): 5}, again_hint)
### END HIDDEN TESTS

# %% [markdown]
# ### c) Count ({points q3_3_eager_test})
#
# What does `rl` do today, without a kernel made for it? The next cell counts three sigmoids, first operation by
# operation, and then compiled.


# %%
def three_sigmoids(x):
    return rl.sigmoid(rl.sigmoid(rl.sigmoid(x)))


def counted_passes(function, n=1000):
    """Accesses an element in the forward and in the backward pass."""
    x, upstream = rl.randn(n, device=device).requires_grad_(), rl.ones(n, device=device)
    function(x)
    with rl.count() as forward:
        y = function(x)
    with rl.count() as backward:
        y.backward(upstream)
    return tuple((c.bytes_read + c.bytes_written) / (4 * n) for c in (forward, backward))


rows = [
    (name, *(f"{number:g}" for number in counted_passes(function)))
    for name, function in (("operation by operation", three_sigmoids), ("compiled", rl.compile(three_sigmoids)))
]
rows += [("your formula, kept", "4", f"{sigmoid_accesses(3, True) - 4}")]
rows += [("your formula, recomputed", "2", f"{sigmoid_accesses(3, False) - 2}")]
Table(("three sigmoids", "forward", "backward"), rows, title="Accesses an element")

# %% [markdown]
# - `eager_accesses`: forward and backward together, operation by operation
# - `recompute_gain`: how many times fewer accesses the one kernel with recomputation needs than the one that keeps, for
#   three sigmoids

# %% nbgrader={"grade_id": "q3_3_eager", "solution": true}
eager_accesses = None
recompute_gain = None
### BEGIN SOLUTION
x, upstream = rl.ones(100, requires_grad=True), rl.ones(100)
with rl.count() as c:
    rl.sigmoid(rl.sigmoid(rl.sigmoid(x))).backward(upstream)
eager_accesses = (c.bytes_read + c.bytes_written) // 400
recompute_gain = 8 / 5
### END SOLUTION

# %% nbgrader={"grade_id": "q3_3_eager_test", "grade": true, "points": 1}
assert is_count(eager_accesses), "eager_accesses is a whole number"
assert is_number(recompute_gain), "recompute_gain is a number"
### BEGIN HIDDEN TESTS
x, upstream = rl.ones(100, requires_grad=True), rl.ones(100)
with rl.count() as c:
    rl.sigmoid(rl.sigmoid(rl.sigmoid(x))).backward(upstream)
assert eager_accesses == (c.bytes_read + c.bytes_written) / 400, "eager_accesses: add the two figures of the first row"
assert is_near(recompute_gain, 1.6, 1e-3), "recompute_gain: sigmoid_accesses(3, True) over sigmoid_accesses(3, False)"
### END HIDDEN TESTS

# %% [markdown]
# Recomputation does more arithmetic and takes less time. That sounds wrong only as long as one thinks that arithmetic
# is what costs. (rl's compiler reads one more array in its backward kernel than your formula: the result, which is
# there anyway.)
