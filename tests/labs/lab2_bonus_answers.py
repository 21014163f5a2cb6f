"""Answers to the bonus questions of Lab 2, right and wrong."""

from labs.mutants import mutants

LOOP = """
def loop_peak_bytes(config, vocab_size, batch_size, length, freed):
    sizes = rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    outputs = [model(ids)]
    if freed:
        outputs.clear()
    with rl.memory.record(model.device) as timeline:
        output = model(ids)
        outputs.clear()
    return timeline.peak_bytes + timeline.resident_bytes

def loop_rule(N, saved_bytes, logits_bytes):
    return 4 * N + 2 * saved_bytes + 2 * logits_bytes

graphs_alive, what_helps = 2, "b"
"""

ADAMW = """
@rl.compile
def one_step(p, g, m, v, size, root, keep, beta1, beta2, eps):
    m = m * beta1 + g * (1 - beta1)
    v = v * beta2 + g * g * (1 - beta2)
    return p * keep - size * m / (rl.sqrt(v) * root + eps), m, v

def fused_adamw(p, g, m, v, t, lr, betas, eps, weight_decay):
    size = lr / (1 - betas[0] ** t)
    root = (1 - betas[1] ** t) ** -0.5
    return one_step(p, g, m, v, size, root, 1 - lr * weight_decay, *betas, eps)
"""

AFTER = ADAMW.replace(
    "return p * keep - size * m / (rl.sqrt(v) * root + eps), m, v",
    "return (p - size * m / (rl.sqrt(v) * root + eps)) * keep, m, v",
)

AGAIN = """
class Again(rl.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.save_for_backward(x)
        ctx.block = block
        with rl.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        with rl.enable_grad():
            own = x.detach()
            own.requires_grad = True
            y = ctx.block(own)
        y.backward(dy)
        return None, own.grad

def recomputed(block, x):
    return Again.apply(block, x)
"""

RIGHT = {
    "b1": [("a list of outputs", LOOP)],
    "b2": [("factors outside", ADAMW), ("decay last", AFTER)],
    "b3": [("without gradients at first", AGAIN)],
}

WRONG = {
    "b1": mutants(
        LOOP,
        ("one graph", "    outputs = [model(ids)]\n", "    outputs = []\n"),
        ("always two graphs", "if freed:", "if False:"),
        ("always freed", "if freed:", "if True:"),
        ("no weights", "timeline.peak_bytes + timeline.resident_bytes", "timeline.peak_bytes"),
        ("4 N and one graph", "2 * saved_bytes + 2 * logits_bytes", "saved_bytes"),
        ("no logits", " + 2 * logits_bytes", ""),
        ("copies of the weights", "4 * N + 2", "8 * N + 2"),
        ("three graphs", "graphs_alive, what_helps = 2", "graphs_alive, what_helps = 3"),
        ("fragments", '"b"', '"a"'),
        ("a larger batch", '"b"', '"c"'),
        ("copied weights", '"b"', '"d"'),
    ),
    "b2": mutants(
        ADAMW,
        ("the decay is coupled", "    m = m * beta1 + g * (1 - beta1)",
         "    g = g + p * (1 - keep)\n    m = m * beta1 + g * (1 - beta1)",
         "p * keep", "p"),
        ("no decay", "p * keep", "p"),
        ("no bias correction", "size = lr / (1 - betas[0] ** t)", "size = lr", "root = (1 - betas[1] ** t) ** -0.5",
         "root = 1.0"),
        ("no correction of v", "root = (1 - betas[1] ** t) ** -0.5", "root = 1.0"),
        ("in single operations", "@rl.compile\n", ""),
        ("eps inside the root", "(rl.sqrt(v) * root + eps)", "(rl.sqrt(v + eps) * root)"),
        ("the betas exchanged", "*betas, eps", "betas[1], betas[0], eps"),
        ("a gradient for its square", "g * g * (1", "g * (1"),
        ("the old moments", "eps), m, v", "eps), g, g"),
    ),
    "b3": mutants(
        AGAIN,
        ("blocks are kept as well", "return Again.apply(block, x)", "return block(x)"),
        ("the library's checkpoint", "return Again.apply(block, x)", "return rl.autograd.checkpoint(block, x)"),
        ("gradients take the place of earlier ones", "        y.backward(dy)",
         "        for one in ctx.block.parameters():\n            one.grad = None\n        y.backward(dy)"),
        ("writes into x", "return None, own.grad", "x *= 0\n        return None, own.grad"),
        ("writes into the gradient", "return None, own.grad", "dy *= 0\n        return None, own.grad"),
        ("the gradient of x is that of y", "return None, own.grad", "return None, dy"),
        ("the gradient of ones", "y.backward(dy)", "y.sum().backward()"),
        ("parameters get nothing", "y.backward(dy)\n        return None, own.grad",
         "return None, rl.autograd.grad(y, own, dy)[0]"),
        ("the result is saved", "        with rl.no_grad():\n            return block(x)",
         "        y = block(x)\n        ctx.save_for_backward(x, y)\n        return y", "(x,) =", "x, _ ="),
        ("copies of the weights in ctx", "        ctx.block = block\n",
         "        ctx.block = block\n        ctx.kept = [one.clone() for one in block.parameters()]\n"),
        ("a copy of x in ctx", "        ctx.block = block\n", "        ctx.block, ctx.copy = block, x.clone()\n"),
        ("the result in ctx", "            return block(x)", "            ctx.y = block(x)\n            return ctx.y"),
        ("it runs twice", "            y = ctx.block(own)",
         "            ctx.block(own)\n            y = ctx.block(own)"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {"b1": "three graphs|fragments|a larger batch|copied weights"}
