# %% [markdown]
# ## b3.3 Recomputation of blocks ({points b3_3}, bonus)
#
# In a large model nobody writes such a kernel, but the trade is the same. Keep only what goes *into* each block. On the
# way back, run the block's forward pass again, and then its backward pass.
#
# `noisy_block(x, W1, W2)` is a block of a small model: x + relu(x W1 + noise) W2, with x (B, D), W1 (D, I) and
# W2 (I, D). The noise is drawn in each call.
#
# - `run_blocks(seed, x, *weights)`: call `rl.manual_seed(seed)` first. Then run a block for each pair of `weights`,
#   which are W1 and W2 of the first block, W1 and W2 of the second one, and so on. Between the passes the graph may
#   keep the input of each block and the weights, and nothing else. The result and all gradients are those of the blocks
#   without recomputation
# - `flops_kept` and `flops_recomputed`: FLOPs of the products of the blocks for each parameter and row of x, forward
#   and backward together, if x needs a gradient as well. Keep the activations, or recompute each block
#
# `rl.autograd.checkpoint(function, *args)` does this for one call. You may also write it yourself, as an
# `rl.autograd.Function`. Either way the second forward pass has to draw the *same* noise as the first one.
# (`rl.get_rng_state()` and `rl.set_rng_state(state)` keep and restore the generator.)

# %% nbgrader={"grade_id": "b3_3", "solution": true}
flops_kept = None
flops_recomputed = None
### BEGIN SOLUTION
flops_kept, flops_recomputed = 6, 8
### END SOLUTION


def run_blocks(seed, x, *weights):
    """The blocks one after the other, each of them recomputed in the backward pass."""
    ### BEGIN SOLUTION
    rl.manual_seed(seed)
    for W1, W2 in zip(weights[::2], weights[1::2], strict=True):
        x = rl.autograd.checkpoint(noisy_block, x, W1, W2)
    return x
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
    rng = np.random.default_rng(seed)
    shapes = [(B, D), *([(D, I), (I, D)] * blocks), (B, D)]
    x, *weights, upstream = (rl.tensor(rng.standard_normal(shape) / 3, dtype="float32") for shape in shapes)
    passes = [measure.gradients(fn, seed, x, *weights, upstream=upstream) for fn in (run_blocks, blocks_kept)]
    return (f"{blocks} blocks with B = {B}, D = {D}, I = {I}", *passes)


def check_gradients(*sizes):
    case, seen, kept = blocks_case(*sizes)
    assert_close(seen.value, kept.value, rtol=1e-5, atol=1e-6, name=f"the result of {case}")
    assert len(seen.gradients) == len(kept.gradients), "x and every weight get a gradient"
    for place, (got, right) in enumerate(zip(seen.gradients, kept.gradients, strict=True)):
        what = "x" if place == 0 else f"weight {place}"
        assert got is not None, f"{what} got no gradient"
        assert_close(got, right, rtol=1e-5, atol=1e-6, name=f"the gradient of {what} of {case}, as kept,")


check_gradients(1, 5, 4, 8, 1)
check_gradients(3, 6, 4, 12, 2)
### BEGIN HIDDEN TESTS
check_gradients(2, 9, 8, 20, 3)
check_gradients(4, 3, 5, 30, 4)
### END HIDDEN TESTS


# %% nbgrader={"grade_id": "b3_3_saved_test", "grade": true, "points": 2}
def check_saved(blocks, B, D, I, seed):
    case, seen, kept = blocks_case(blocks, B, D, I, seed)
    held = [shape for _, shape, _, _ in seen.saved if shape not in ((D, I), (I, D))]
    said = f"{case}: besides weights the graph keeps {len(held)} tensors {sorted(set(held))}, and not one input a block"
    assert held == [(B, D)] * blocks, said
    again = seen.backward.macs - kept.backward.macs
    said = f"{case}: {again} MACs are computed again on the way back, and the forward pass has {kept.forward.macs}"
    assert seen.forward.macs == kept.forward.macs == again, said


check_saved(2, 7, 4, 12, 5)
check_saved(3, 6, 5, 16, 6)
### BEGIN HIDDEN TESTS
check_saved(1, 8, 3, 10, 7)
check_saved(5, 4, 6, 9, 8)
### END HIDDEN TESTS

# %% nbgrader={"grade_id": "b3_3_flops_test", "grade": true, "points": 1}
assert is_number(flops_kept) and is_number(flops_recomputed), "flops_kept and flops_recomputed are numbers"
### BEGIN HIDDEN TESTS
assert is_near(flops_kept, 6, 1e-3), "flops_kept: 2 forward, and two products of that size backward"
assert is_near(flops_recomputed, 8, 1e-3), "flops_recomputed: one forward pass more"
### END HIDDEN TESTS

# %% [markdown]
# A real language model of the same kind, with and without recomputation. One step each, on tensors without memory:

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
head = ("blocks", "MB kept for backward", "GFLOP backward", "FLOPs a token and parameter")
Table(head, rows, title="A transformer of 8 blocks, 8 x 256 tokens")

# %% [markdown]
# A third more arithmetic, and a small part of the memory. (The figures count attention and the embedding as well, so
# they are not exactly 6 and 8.)
