# %% [markdown]
# ## b3.3 Recomputation of blocks ({points b3_3})
#
# In 3.3, a kernel computed the outputs of its sigmoids again instead of reading them. For a large model no one writes
# such a kernel by hand, but whole blocks can be computed again in the same way. Store only the *input* of each block.
# In the backward pass, first run the forward pass of the block again, and then its backward pass.
#
# `noisy_block(x, W1, W2)` is a block of a small model: x + relu(x W1 + noise) W2, with x (B, D), W1 (D, I) and W2 (I,
# D). Each call draws new noise.
#
# - `run_blocks(seed, x, *weights)`: call `rl.manual_seed(seed)` first. Then run one block for each pair in `weights`:
#   W1 and W2 of the first block, W1 and W2 of the second block, and so on. Return the output of the last block. For the
#   backward pass, the graph may store the input of each block and the weights, and nothing else. The result and all
#   gradients must be those of the blocks without recomputation.
# - `flops_kept` and `flops_recomputed`: the FLOPs of the products in the blocks, forward and backward together, per
#   parameter and per row of x. x needs a gradient too. The first number is without recomputation, the second with it.
#
# `rl.autograd.checkpoint(function, *args)` does this for one call of a function. You can also write it yourself as an
# `rl.autograd.Function`. In both cases, the second forward pass has to draw the *same* noise as the first one.
# (`rl.get_rng_state()` and `rl.set_rng_state(state)` save and restore the random generator.)


# %% nbgrader={"grade_id": "b3_3", "solution": true}
def run_blocks(seed, x, *weights):
    """Run the blocks one after the other, so that the backward pass recomputes each of them."""
    ### BEGIN SOLUTION
    rl.manual_seed(seed)
    for W1, W2 in zip(weights[::2], weights[1::2], strict=True):
        x = rl.autograd.checkpoint(noisy_block, x, W1, W2)
    return x
    ### END SOLUTION


flops_kept = None
flops_recomputed = None
### BEGIN SOLUTION
flops_kept, flops_recomputed = 6, 8
### END SOLUTION


# %% tags=["setup"]
def blocks_kept(seed, x, *weights):
    """The blocks without recomputation."""
    rl.manual_seed(seed)
    for W1, W2 in zip(weights[::2], weights[1::2], strict=True):
        x = noisy_block(x, W1, W2)
    return x


# %% nbgrader={"grade_id": "b3_3_test", "grade": true, "points": 2}
def blocks_case(blocks, B, D, I, seed):
    """The student's passes and the ones that keep everything, on the same numbers."""
    shapes = [(B, D), *([(D, I), (I, D)] * blocks), (B, D)]
    x, *weights, upstream = (rl.tensor(measure.rng().standard_normal(shape) / 3, dtype="float32") for shape in shapes)
    passes = [measure.gradients(fn, seed, x, *weights, upstream=upstream) for fn in (run_blocks, blocks_kept)]
    return (f"{blocks} blocks with B = {B}, D = {D}, I = {I}", *passes)


def check_gradients(*sizes):
    case, seen, kept = blocks_case(*sizes)
    assert_close(seen.value, kept.value, rtol=1e-5, atol=1e-6, name=f"the result of {case}")
    said = f"{case}: {len(seen.gradients)} gradients, expected {len(kept.gradients)}, one for x and one for each weight"
    assert len(seen.gradients) == len(kept.gradients), said
    for place, (got, right) in enumerate(zip(seen.gradients, kept.gradients, strict=True)):
        what = "x" if place == 0 else f"weight {place}"
        assert got is not None, f"{case}: {what} got no gradient"
        name = f"the gradient of {what} of {case}, compared with no recomputation,"
        assert_close(got, right, rtol=1e-5, atol=1e-6, name=name)


check_gradients(1, 5, 4, 8, 1)
check_gradients(3, 6, 4, 12, 2)
### BEGIN HIDDEN TESTS
for blocks, B, D, I, seed in draws((2, 4), (3, 6), (7, 9), (10, 20), (3, 999), count=2):
    check_gradients(blocks, B, D, I, seed)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b3_3_saved_test", "grade": true, "points": 2}
def check_saved(blocks, B, D, I, seed):
    case, seen, kept = blocks_case(blocks, B, D, I, seed)
    held = [shape for _, shape, _, _ in seen.saved if shape not in ((D, I), (I, D))]
    said = f"{case}: besides the weights the graph stores tensors of the shapes {held}"
    assert held == [(B, D)] * blocks, f"{said}, expected the input of each block, {[(B, D)] * blocks}"
    again = seen.backward.macs - kept.backward.macs
    said = f"{case}: the forward pass takes {seen.forward.macs} MACs and the backward pass recomputes {again}"
    said += f", expected {kept.forward.macs} for each of the two"
    assert seen.forward.macs == kept.forward.macs == again, said


check_saved(2, 7, 4, 12, 5)
check_saved(3, 6, 5, 16, 6)
### BEGIN HIDDEN TESTS
for blocks, B, D, I, seed in [(1, 8, 3, 10, 7), *draws((2, 5), (3, 6), (7, 9), (10, 20), (3, 999), count=1)]:
    check_saved(blocks, B, D, I, seed)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_3_flops_test", "grade": true, "points": 1}
for name, value in (("flops_kept", flops_kept), ("flops_recomputed", flops_recomputed)):
    assert is_number(value), f"{name} must be a number, got {value!r}"
### BEGIN HIDDEN TESTS
said = f"flops_kept is not {flops_kept}: which products does each weight take part in, forward and backward?"
assert is_near(flops_kept, 6, 1e-3), said
said = f"flops_recomputed is not {flops_recomputed}: how many forward passes are there now?"
assert is_near(flops_recomputed, 8, 1e-3), said
### END HIDDEN TESTS

# %% [markdown]
# The next cell does the same with a real language model: one training step with and without recomputation, on tensors
# without memory.

# %%
rows = []
for recompute in (False, True):
    config = rl.nn.TransformerConfig(
        vocab_size=10000, context_length=256, d_model=512, num_layers=8, num_heads=8, d_ff=1344, recompute=recompute
    )
    model = rl.nn.TransformerLM(config, device="meta")
    tokens = rl.empty(8, 256, dtype="int64", device="meta")
    with rl.count() as forward:
        loss = model(tokens).sum()
    held = sum(saved.bytes for saved in rl.autograd.saved_tensors(loss))
    with rl.count() as backward:
        loss.backward()
    flops = 2 * (forward.macs + backward.macs) / (tokens.numel() * model.num_parameters())
    rows.append(
        ("recomputed" if recompute else "kept", f"{held / 1e6:,.0f}", f"{2 * backward.macs / 1e9:,.0f}", f"{flops:.2f}")
    )
head = ("blocks", "MB kept for backward", "GFLOP backward", "FLOPs per token and parameter")
Table(head, rows, title="A transformer of 8 blocks, 8 x 256 tokens")

# %% [markdown]
# With recomputation the arithmetic grows by more than a quarter, and the memory falls to about a fifth. (The table also
# counts attention and the embedding, so its numbers are not exactly yours.)
