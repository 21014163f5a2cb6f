"""Answers to question b3.3 of Lab 5, blocks that run again in the backward pass, right and wrong."""

from labs.mutants import mutants

CHECKPOINTS = """
def run_blocks(seed, x, *weights):
    rl.manual_seed(seed)
    for place in range(0, len(weights), 2):
        pair = weights[place : place + 2]
        x = rl.autograd.checkpoint(noisy_block, x, *pair)
    return x

flops_kept, flops_recomputed = 6, 8
"""

CLOSURES = """
def run_blocks(seed, x, *weights):
    rl.manual_seed(seed)
    left = list(weights)
    while left:
        W1, W2, left = left[0], left[1], left[2:]
        x = rl.autograd.checkpoint(lambda x, W1=W1, W2=W2: noisy_block(x, W1, W2), x)
    return x

flops_kept = 2 + 4
flops_recomputed = flops_kept + 2
"""

BY_HAND = """
class Again(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, W1, W2):
        ctx.state = rl.get_rng_state()
        ctx.save_for_backward(x, W1, W2)
        return noisy_block(x, W1, W2)

    @staticmethod
    def backward(ctx, dy):
        x, W1, W2 = ctx.saved_tensors
        before = rl.get_rng_state()
        rl.set_rng_state(ctx.state)
        hidden = x @ W1
        hidden = hidden + rl.rand(*hidden.shape)
        rl.set_rng_state(before)
        active = rl.relu(hidden)
        active @ W2  # the forward pass again, in full
        dactive = dy @ W2.T
        dhidden = rl.where(hidden > 0, dactive, 0.0)
        return dy + dhidden @ W1.T, x.T @ dhidden, active.T @ dy

def run_blocks(seed, x, *weights):
    rl.manual_seed(seed)
    for W1, W2 in zip(weights[::2], weights[1::2]):
        x = Again.apply(x, W1, W2)
    return x

flops_kept, flops_recomputed = 6.0, 8.0
"""

RIGHT = {"b3_3": [("checkpoints in a loop", CHECKPOINTS), ("closures", CLOSURES), ("a function by hand", BY_HAND)]}

WRONG = {
    "b3_3": [
        *mutants(
            CHECKPOINTS,
            ("nothing recomputed", "rl.autograd.checkpoint(noisy_block, x, *pair)", "noisy_block(x, *pair)"),
            ("one block kept", "rl.autograd.checkpoint(noisy_block, x, *pair)",
             "rl.autograd.checkpoint(noisy_block, x, *pair) if place else noisy_block(x, *pair)"),
            ("another seed", "rl.manual_seed(seed)", "rl.manual_seed(seed + 1)"),
            ("no seed", "    rl.manual_seed(seed)\n", ""),
            ("all blocks as one", "    for place", "    def every(x, *weights):\n      for place",
             "rl.autograd.checkpoint(noisy_block, x, *pair)", "noisy_block(x, *pair)", "    return x\n",
             "      return x\n    return rl.autograd.checkpoint(every, x, *weights)\n"),
            ("the last block is left out", "range(0, len(weights), 2)", "range(0, len(weights) - 2, 2)"),
            ("detached", "return x\n", "return x.detach()\n"),
            ("4 FLOPs", "= 6, 8", "= 4, 8"),
            ("6 FLOPs", "= 6, 8", "= 6, 6"),
            ("forward and all of it again", "= 6, 8", "= 6, 12"),
        ),
        *mutants(
            BY_HAND,
            ("the noise is lost", "        rl.set_rng_state(ctx.state)\n", ""),
            ("the residual has no gradient", "dy + dhidden @ W1.T", "dhidden @ W1.T"),
            ("the hidden numbers are kept", "        ctx.save_for_backward(x, W1, W2)\n",
             "        ctx.save_for_backward(x, W1, W2)\n        ctx.save_for_backward(x, W1, W2, x @ W1)\n",
             "x, W1, W2 = ctx.saved_tensors", "x, W1, W2, _ = ctx.saved_tensors"),
        ),
    ],
}  # fmt: skip

ONLY_HIDDEN = {"b3_3": "4 FLOPs|6 FLOPs|forward and all of it again"}
