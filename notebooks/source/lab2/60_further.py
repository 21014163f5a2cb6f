# %% [markdown]
# ## b1 Why a forward pass runs out of memory where training fits ({points b1})
#
# W profiled forward passes on a GPU with 40 GB. The medium model at L = 1024 and xl at L = 512 ran out of memory,
# although one forward pass of the medium model needs only 25 GiB. A loop that also runs the backward pass (mode `both`)
# can fit where a loop of forward passes alone does not. W's loop was
#
# ```python
# for _ in range(steps):
#     output = model(input_ids)
# ```
#
# - `loop_peak_bytes(config, vocab_size, batch_size, length, freed)`: the most bytes held in the *second* round of this
#   loop, an int. Weights are included. With `freed=True` the output of the round before is deleted (`del output`)
#   before the model is called again. Count on `device="meta"`.
# - `graphs_alive`: how many autograd graphs exist at the worst moment of the loop as it is written? Such a graph is an
#   output together with everything kept for its backward pass. An int.
# - `loop_rule(N, saved_bytes, logits_bytes)`: a rule of thumb for the peak of the loop as it is written, in
#   bytes. `N` is the number of fp32 parameters, `saved_bytes` what one forward pass keeps for its backward pass, and
#   `logits_bytes` the size of its logits.
# - `what_helps`: which change makes W's forward pass of medium at L = 1024 fit? Choose a letter.
#     - `"a"`: `rl.memory.empty_cache()` after each round, since the memory is in pieces that are too small.
#     - `"b"`: `with rl.no_grad():` around the loop.
#     - `"c"`: A larger batch in fewer rounds, because every round has a graph of its own to hold.
#     - `"d"`: Weights in 16 bits, since half of what a forward pass holds are copies of the weights.


# %% nbgrader={"grade_id": "b1", "solution": true}
def loop_peak_bytes(config, vocab_size, batch_size, length, freed):
    """The most bytes held in the second round of the loop, weights included: an int."""
    ### BEGIN SOLUTION
    sizes = rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    output = model(ids)
    if freed:
        del output
    with rl.memory.record("meta") as timeline:
        output = model(ids)
    return timeline.resident_bytes + timeline.peak_bytes
    ### END SOLUTION


def loop_rule(N, saved_bytes, logits_bytes):
    """A rule of thumb for the peak of the loop as it is written: bytes."""
    ### BEGIN SOLUTION
    return 4 * N + 2 * (saved_bytes + logits_bytes)
    ### END SOLUTION


graphs_alive = None  # an int
what_helps = None  # "a", "b", "c" or "d"
### BEGIN SOLUTION
graphs_alive = 2
what_helps = "b"
### END SOLUTION

# %% nbgrader={"grade_id": "b1_test", "grade": true, "points": 3}
SMALL = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
for freed, least in ((False, 1_395_973_632), (True, 957_111_808)):
    got, case = loop_peak_bytes(SMALL, 10000, 4, 128, freed), f"loop_peak_bytes of small, freed = {freed}"
    assert is_count(got), f"{case}: expected an int, got {got!r}"
    fits = 0.99 * least <= got <= 1.01 * least + 2**20 * rl.num_threads()
    assert fits, f"{case}: expected a peak of about {least / 2**20:.1f} MiB, got {got / 2**20:.1f} MiB"
loop_hint = "what does each graph keep, besides the weights that all of them share?"
assert_near("loop_rule(100, 700, 30)", loop_rule(100, 700, 30), 1860, 1e-9, loop_hint)


### BEGIN HIDDEN TESTS
def check_loop(D, I, n, H, V, B, L):
    config = {"d_model": D, "d_ff": I, "num_layers": n, "num_heads": H}
    for freed in (False, True):
        got, right = loop_peak_bytes(config, V, B, L, freed), counted_loop_peak(config, V, B, L, freed)
        case = f"loop_peak_bytes, D = {D}, n = {n}, L = {L}, freed = {freed}"
        said = f"{case}: expected a peak of {right / 2**20:.1f} MiB, got {got / 2**20:.1f} MiB"
        assert is_near(got, right, 0.01), said


check_loop(768, 3072, 12, 12, 10000, 4, 128)
check_loop(64, 128, 3, 4, 500, 2, 200)
check_loop(1024, 4096, 24, 16, 10000, 4, 1024)
H, n, L = measure.draw(2, 5), measure.draw(2, 9), measure.draw(200, 400)
check_loop(64 * H, measure.draw(200, 900), n, H, 1000, 2, L)
drawn = measure.draw(10, 10**9), measure.draw(10, 10**9), measure.draw(10, 10**8)
for N, saved, logits in [(423183360, 25059897344, 163840000), drawn, (7, 0, 5)]:
    right = 4 * N + 2 * (saved + logits)
    assert_near(f"loop_rule({N}, {saved}, {logits})", loop_rule(N, saved, logits), right, 1e-9, loop_hint)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b1_values_test", "grade": true, "points": 2}
assert is_count(graphs_alive), f"graphs_alive has to be an int, got {graphs_alive!r}"
assert what_helps in tuple("abcd"), "what_helps: choose a letter"
### BEGIN HIDDEN TESTS
assert graphs_alive == 2, "graphs_alive: when is the old output freed, and what does it keep alive until then?"
assert_choice(
    what_helps,
    "b",
    a="Your peak counts only live tensors. Unused pieces of memory are not part of it.",
    c="A larger batch makes each graph larger.",
    d="The weights of the medium model take 1.6 GiB. Compare that with its peak.",
)
### END HIDDEN TESTS

# %%
loop_rows = []
for size, L, original in (("medium", 1024, "48.6 (25.1)"), ("xl", 512, "61.7 (34.6)"), ("2.7B", 512, "")):
    peaks = [loop_peak_bytes(MODEL_CONFIGS[size], 10000, 4, L, freed) / 2**30 for freed in (False, True)]
    loop_rows.append((size, L, *(f"{peak:.1f}" for peak in peaks), original))
head = ("size", "L", "as written GiB", "output freed GiB", "original's GiB: as written (freed)")
Table(head, loop_rows, title="A loop of forward passes, B = 4, fp32")

# %% [markdown]
# Look at the moment at which Python assigns the new output in `output = model(input_ids)`. A backward pass changes what
# is held at that moment, so mode `both` needs less than this loop. The original's graphs are larger than ours. Its loop
# as it is written explains every out-of-memory row of W's table.
#
# ## b2 AdamW in one kernel ({points b2})
#
# In b1.1.4d you compared AdamW written in single ops with a fused AdamW. Write the fused version.
#
# `fused_adamw(p, g, m, v, t, lr, betas, eps, weight_decay)` does step t = 1, 2, ... of AdamW for one parameter tensor p
# with the gradient g and the moments m and v. All are fp32 and of one shape. Return the new `(p, m, v)`.
#
# $$p \leftarrow p - \eta \lambda p, \qquad m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
# v \leftarrow \beta_2 v + (1 - \beta_2) g^2$$
#
# $$p \leftarrow p - \eta \, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}$$
#
# Here η = `lr`, λ = `weight_decay` and (β₁, β₂) = `betas`. The decay may also come last, applied to the new p. After
# the first call, which compiles, a step has to launch **one kernel** and move 28 bytes for each parameter.
#
# <details><summary>Hint</summary>
#
# A function that `rl.compile` records may return several tensors. Python numbers among its arguments are fine.
# </details>


# %% nbgrader={"grade_id": "b2", "solution": true}
def fused_adamw(p, g, m, v, t, lr, betas, eps, weight_decay):
    """The new (p, m, v) after step t, computed by one kernel."""
    ### BEGIN SOLUTION
    return _adamw(p, g, m, v, t, lr, *betas, eps, weight_decay)
    ### END SOLUTION


### BEGIN SOLUTION
@rl.compile
def _adamw(p, g, m, v, t, lr, beta1, beta2, eps, weight_decay):
    p = p * (1 - lr * weight_decay)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * (g * g)
    return p - (lr / (1 - beta1**t)) * m / (rl.sqrt(v * (1 / (1 - beta2**t))) + eps), m, v


### END SOLUTION


# %% nbgrader={"grade_id": "b2_test", "grade": true, "points": 5}
def check_adamw(arrays, options, right):
    """`right` are p with its decay first, p with its decay last, m and v."""
    arrays = [np.array(array, np.float32) for array in arrays]
    fused_adamw(*(rl.ones(*array.shape) for array in arrays), *options)  # compiles
    seen, size = measure.count(fused_adamw, *map(rl.tensor, arrays), *options), arrays[0].size
    case = ", ".join(f"{n} = {x}" for n, x in zip(("t", "lr", "betas", "eps", "weight_decay"), options, strict=True))
    assert isinstance(seen.value, (tuple, list)) and len(seen.value) == 3, (
        "fused_adamw has to return three tensors: p, m and v"
    )
    assert all(isinstance(one, rl.Tensor) for one in seen.value), "p, m and v have to be rl tensors"
    for name, got, expected in zip("mv", seen.value[1:], right[2:], strict=True):
        assert_close(got, expected, rtol=1e-5, atol=1e-7, name=f"{name}, {case}")
    off = min(float(np.abs(seen.value[0].numpy() - one).max()) for one in right[:2])
    assert off < 2e-6, f"p, {case}: the largest error is {off:.2g}, allowed are 2e-6"
    assert seen.launches == 1, f"{case}: expected one launch, got {seen.launches}; compile the whole step"
    moved = seen.bytes_read + seen.bytes_written
    assert moved <= 28 * size + 64, f"{case}: expected 28 bytes per parameter, got {moved / size:.1f}"


p, g, zeros = [1.0, -2.0, 0.5], [0.5, -1.0, 2.0], [0.0, 0.0, 0.0]
stepped = [0.950980392, -1.95049505, 0.450248756]
right = (stepped, stepped, [0.05, -0.1, 0.2], [0.0025, 0.01, 0.04])
check_adamw((p, g, zeros, zeros), (1, 0.05, (0.9, 0.99), 0.01, 0.0), right)
first, last = [0.94563289, -1.955832355, 0.490738531], [0.946223397, -1.95604487, 0.490764953]
right = (first, last, [0.14, -0.1, 0.02], [0.0124, 0.0496, 0.1291])
check_adamw((p, g, [0.1, 0.0, -0.2], [0.01, 0.04, 0.09]), (3, 0.05, (0.9, 0.99), 0.01, 0.3), right)


### BEGIN HIDDEN TESTS
def check_drawn(size, *options):
    rng = measure.rng()
    arrays = [rng.standard_normal(size), rng.standard_normal(size), 0.1 * rng.standard_normal(size), rng.random(size)]
    arrays = [array.astype(np.float32) for array in arrays]
    if options[0] == 1:
        arrays[2:] = [np.zeros(size, np.float32)] * 2
    p, m, v = adamw_float64(*arrays, *options)
    check_adamw(arrays, options, (*p, m, v))


check_drawn(1000, 1, 1e-2, (0.9, 0.999), 1e-8, 0.1)
check_drawn(513, 7, 1e-3, (0.8, 0.95), 1e-6, 0.0)
check_drawn(300, 3, 0.05, (0.9, 0.99), 0.01, 0.3)
check_drawn(measure.draw(50, 200), measure.draw(2, 9), 0.02, (0.5, 0.9), 1e-3, 0.5)
check_drawn(measure.draw(3000, 5000), 1000, 0.01, (0.95, 0.999), 1e-8, 0.01)
check_drawn(1, 1, 0.1, (0.9, 0.95), 1e-8, 0.2)
### END HIDDEN TESTS

# %%
p, g, m, v = (rl.rand(10_000) for _ in range(4))
stepped = (p, m, v)
for t in (1, 2):
    with rl.count() as counted:
        stepped = fused_adamw(stepped[0], g, stepped[1], stepped[2], t, 1e-3, (0.9, 0.999), 1e-8, 0.01)
moved = (counted.bytes_read + counted.bytes_written) / 10_000
print(f"step 2: {counted.launches} launch, {moved:g} bytes per parameter")

# %% [markdown]
# ## b3 Recompute instead of saving ({points b3})
#
# For long sequences, most memory is what the forward pass saves for the backward pass. You can trade it for work. Save
# only the *input* of each block, and run the block again when the backward pass reaches it. This is called activation
# checkpointing. It costs a second forward pass of each block, and saves nearly all of that memory.
#
# Write `recomputed(block, x)`. It returns `block(x)`. `block` is a callable that has parameters of its own, such as an
# `rl.nn.Module`. x requires a gradient.
#
# - The graph saves x and nothing else. `rl.autograd.checkpoint` also keeps the weights, so do not call it here.
# - The backward pass runs `block` again. It adds the gradients of the block's parameters to their `.grad`, and returns
#   the gradient of x. It does not write into x or into the gradient that arrives.
#
# <details><summary>Hint</summary>
#
# Write an `rl.autograd.Function` whose `forward(ctx, block, x)` saves x. In its `backward`, `with rl.enable_grad():`
# runs the block on `x.detach().requires_grad_()`, and the `backward` of that result does the rest. The gradient of
# `block` is None.
# </details>


# %% nbgrader={"grade_id": "b3", "solution": true}
def recomputed(block, x):
    """block(x); only x is saved, and the backward pass runs the block again."""
    ### BEGIN SOLUTION
    return _Recomputed.apply(block, x)
    ### END SOLUTION


### BEGIN SOLUTION
class _Recomputed(rl.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block = block
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with rl.enable_grad():
            y = ctx.block(x)
        y.backward(gradient)
        return None, x.grad


### END SOLUTION


# %% nbgrader={"grade_id": "b3_test", "grade": true, "points": 5}
def check_recomputed(n, B, L, D, twice=False):
    case, tensors = f"{n} blocks, B = {B}, L = {L}, D = {D}", [rl.randn(B, L, D), *memory.block_weights(n, D)]
    through = memory.run_blocks_twice if twice else memory.run_blocks
    case += ", each run twice" * twice
    upstream = rl.randn(B, L, D)
    got, right = (
        measure.gradients(run, *tensors, upstream=upstream, through=through) for run in (recomputed, memory.run_plainly)
    )
    assert_close(got.value, right.value, rtol=1e-4, atol=1e-5, name=f"the result of {case}")
    for place, (own, expected) in enumerate(zip(got.gradients, right.gradients, strict=True)):
        assert own is not None, f"{case}: gradient {place} did not arrive"
        assert_close(own, expected, rtol=1e-3, atol=1e-4, name=f"gradient {place} of {case}")
    said = f"{case}: rl.autograd.checkpoint ran, which keeps the weights as well; write what it does yourself"
    assert not any(op == "checkpoint" for op, *_ in got.saved), said
    limit = (1 + twice) * n * 4 * B * L * D
    saved = sum(one[3] for one in got.saved)
    assert saved <= limit, f"{case}: expected at most {limit} bytes saved, got {saved}; save only x"
    held = f"{case}: after the forward pass new tensors hold {got.held_bytes} bytes, expected at most {limit}"
    assert got.held_bytes <= limit, f"{held}; keep only x, in ctx neither"
    macs, plain = (one.forward.macs + one.backward.macs for one in (got, right))
    said = f"{case}: two forward passes and a backward pass take {plain * 4 // 3} MACs, got {macs}"
    assert macs == plain * 4 // 3, said
    x, *weights = tensors
    changed = measure.call(recomputed, x, upstream, *weights, through=memory.run_blocks_back).changed
    assert not changed, f"{case}: recomputed changed x, the gradient or a weight: make new tensors"


check_recomputed(3, 2, 8, 16)
check_recomputed(1, 1, 5, 8)
check_recomputed(2, 1, 6, 8, twice=True)  # the gradients of both runs are added
### BEGIN HIDDEN TESTS
check_recomputed(measure.draw(4, 6), 1, measure.draw(15, 25), 32)
check_recomputed(2, measure.draw(2, 4), measure.draw(5, 9), measure.draw(10, 30), twice=True)
### END HIDDEN TESTS

# %%
tensors, upstream = [rl.randn(4, 64, 64), *memory.block_weights(8, 64)], rl.ones(4, 64, 64)
rows = []
for name, run in (("saved", memory.run_plainly), ("recomputed", recomputed)):
    seen = measure.gradients(run, *tensors, upstream=upstream, through=memory.run_blocks)
    saved, macs = sum(one[3] for one in seen.saved), seen.forward.macs + seen.backward.macs
    rows.append((name, f"{saved / 2**20:.2f}", f"{2 * macs / 1e9:.2f}"))
Table(("", "saved MiB", "GFLOP of products"), rows, title="8 blocks, B = 4, L = 64, D = 64")

# %% [markdown]
# The table shows the trade. The saved bytes almost vanish. The work grows by a third: each block now runs forward
# twice, and its backward pass costs as much as two forward passes. In the 2.7B model at L = 1024 each of the 32 layers
# would keep 40 MiB instead of 1.3 GiB. In all that is 1.3 GiB instead of 41 GiB, plus one block at a time while its
# gradient is computed.
