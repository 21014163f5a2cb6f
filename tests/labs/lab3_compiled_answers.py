"""Answers to question 1.5 of Lab 3, compiled attention, right and wrong."""

from labs.mutants import changed, mutants

MASKED = """
def masked_attention(q, k, v, visible):
    scores = (q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5
    if visible is not None:
        scores = rl.where(visible, scores, float("-inf"))
    top = scores.amax(dim=-1, keepdim=True)
    e = rl.exp(scores - top)
    return (e / e.sum(dim=-1, keepdim=True)) @ v

@rl.compile
def compiled_attention(q, k, v, visible):
    return masked_attention(q, k, v, visible)
"""

CONSTANT = changed(MASKED, "scores - top", "scores - top.detach()")

QUERIES_SCALED = changed(
    MASKED, "(q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5", "(q * q.shape[-1] ** -0.5) @ k.mT",
    "rl.where(visible, scores, ", "scores + rl.where(visible, rl.zeros_like(scores), ",
)  # fmt: skip

LATE = changed(
    MASKED, "(e / e.sum(dim=-1, keepdim=True)) @ v", "rl.matmul(e, v) / e.sum(dim=-1, keepdim=True)"
)  # fmt: skip

IN_PARTS = changed(MASKED, """
@rl.compile
def compiled_attention(q, k, v, visible):
    return masked_attention(q, k, v, visible)
""", """
@rl.compile
def masked_scores(products, visible, d):
    return rl.where(visible, products / d ** 0.5, float("-inf"))

@rl.compile
def exponentials(scores, top):
    return rl.exp(scores - top)

def compiled_attention(q, k, v, visible):
    products, d = q @ k.mT, q.shape[-1]
    scores = products / d ** 0.5 if visible is None else masked_scores(products, visible, d)
    e = exponentials(scores, scores.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v
""")  # fmt: skip

COMPILE = "    return masked_attention(q, k, v, visible)\n"

COUNTED = """
def compare_compiled(L, d, batch, is_causal=True):
    def row(fn):
        q, k, v = [rl.empty(batch, L, d, device="meta", requires_grad=True) for _ in range(3)]
        upstream = rl.empty(batch, L, d, device="meta")
        visible = rl.ones(L, L, dtype="bool", device="meta") if is_causal else None
        with rl.count() as c:
            o = fn(q, k, v, visible)
        forward = {"launches": c.launches, "peak_bytes": c.peak_bytes, "bytes": c.bytes_read + c.bytes_written}
        held = 0
        for saved in rl.autograd.saved_tensors(o):
            held += saved.bytes
        with rl.count() as c:
            o.backward(upstream)
        return {"held_bytes": held, "forward": forward, "backward": figures(c)}
    compiled = row(compiled_attention)
    return {"eager": row(masked_attention), "compiled": compiled}
"""

ANEW = changed(COUNTED, "row(compiled_attention)", "row(rl.compile(masked_attention))")

TIMED = """
def time_compiled(L, d, batch):
    q, k, v = (rl.randn(batch, L, d, device=device) for _ in range(3))
    visible = causal_mask(L)
    eager = latency(masked_attention, q, k, v, visible, warmup=1, repeat=3)
    compiled = latency(compiled_attention, q, k, v, visible, warmup=1, repeat=3)
    return {"compiled": compiled.median_ms, "eager": eager.median_ms}
"""

TIMED_AFTER_A_CALL = changed(
    TIMED, "    compiled = latency(", "    compiled_attention(q, k, v, visible)\n    compiled = latency(",
    "(compiled_attention, q, k, v, visible, warmup=1", "(compiled_attention, q, k, v, visible, warmup=0",
)  # fmt: skip

LEAVES = "(rl.randn(batch, L, d, device=device) for"


def values(matrices=6, growth=4, eager=8192, compiled=16384, why="c"):
    return (
        f"matrices_not_moved = {matrices}\ngrowth = {growth}\ntoo_long_eager = {eager}\n"
        f"too_long_compiled = {compiled}\nwhy_it_stays = {why!r}\n"
    )


RIGHT = {
    "q1_5": [
        ("a decorator", MASKED),
        ("the maximum as a constant", CONSTANT),
        ("divided after the product", LATE),
        ("the queries scaled, a mask that is added", QUERIES_SCALED),
        ("each chain compiled by itself", IN_PARTS),
    ],
    "q1_5_count": [("compiled first, in a function", COUNTED), ("compiled anew", ANEW)],
    "q1_5_time": [("its own tensors", TIMED), ("a call before, no warm-up", TIMED_AFTER_A_CALL)],
    "q1_5_values": [("by hand", values()), ("as measured", values(growth=3.9981))],
}

WRONG = {
    "q1_5": [
        *mutants(
            MASKED,
            ("the mask is dropped", "if visible is not None:", "if False:"),
            ("the mask is dropped by the compiled one", COMPILE, "    return masked_attention(q, k, v, None)\n"),
            ("the mask is turned round", "rl.where(visible, scores, float('-inf'))".replace("'", '"'),
             'rl.where(visible, float("-inf"), scores)'),
            ("always causal", "rl.where(visible, ",
             "rl.where(causal_mask(k.shape[1])[-q.shape[1]:] if q.shape[1] <= k.shape[1] else visible, "),
            *((f"masked with {low}", 'float("-inf")', low) for low in ("-100.0", "-1e4", "-1e6")),
            ("no scale", " / q.shape[-1] ** 0.5", ""),
            ("never compiled", "@rl.compile\n", ""),
            ("both compiled", "\ndef masked_attention", "\n@rl.compile\ndef masked_attention"),
            ("flash", COMPILE, "    return rl.attention(q, k, v, is_causal=visible is not None)\n"),
            ("the library's softmax", "    top = scores.amax(dim=-1, keepdim=True)\n    e = rl.exp(scores - top)\n", "",
             "(e / e.sum(dim=-1, keepdim=True))", "rl.softmax(scores, -1)"),
            ("the library's log-softmax",
             "    top = scores.amax(dim=-1, keepdim=True)\n    e = rl.exp(scores - top)\n", "",
             "(e / e.sum(dim=-1, keepdim=True))", "rl.exp(rl.log_softmax(scores, -1))"),
            ("a mask from inside, which falls back", COMPILE,
             "    return masked_attention(q, k, v, None if visible is None else "
             "rl.arange(k.shape[1], device=q.device)[None] <= rl.arange(q.shape[1], device=q.device)[:, None])\n"),
            ("a value is read, which falls back", COMPILE,
             "    if q.sum().item() > 1e30:\n        return q\n" + COMPILE),
            ("no gradient", COMPILE, "    return masked_attention(q.detach(), k.detach(), v.detach(), visible)\n"),
        ),
        ("only forward is compiled", changed(MASKED, "@rl.compile\ndef compiled_attention(q, k, v, visible):\n"
         + COMPILE, """
forward_only = rl.compile(masked_attention)

class Compiled(rl.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, visible):
        ctx.save_for_backward(q, k, v)
        ctx.visible = visible
        return forward_only(q.detach(), k.detach(), v.detach(), visible)

    @staticmethod
    def backward(ctx, dO):
        q, k, v = (x.detach().requires_grad_() for x in ctx.saved_tensors)
        with rl.enable_grad():
            o = masked_attention(q, k, v, ctx.visible)
        return (*rl.autograd.grad(o, (q, k, v), dO), None)

def compiled_attention(q, k, v, visible):
    return Compiled.apply(q, k, v, visible)
""")),
    ],
    "q1_5_count": mutants(
        COUNTED,
        ("backward with its forward", "            o.backward(upstream)",
         "            fn(q, k, v, visible).backward(upstream)"),
        ("forward in both", "        with rl.count() as c:\n            o = fn",
         "        with rl.count() as c:\n            fn(q, k, v, visible)\n            o = fn"),
        ("with memory", 'device="meta"', 'device="cpu"'),
        ("no mask unless it is told", "is_causal=True", "is_causal=False"),
        ("the graph is kept", "o.backward(upstream)", "o.backward(upstream, retain_graph=True)"),
        ("bytes read only", "c.bytes_read + c.bytes_written", "c.bytes_read"),
        ("allocated, not the peak", "c.peak_bytes", "c.bytes_allocated"),
        ("the mask is dropped", " if is_causal else None", " if False else None"),
        ("always causal", " if is_causal else None", ""),
        ("one of the batch", "batch, L, d", "1, L, d"),
        ("half precision", "requires_grad=True", 'dtype="float16", requires_grad=True',
         "o.backward(upstream)", 'o.backward(upstream.to("float16"))'),
        ("eager twice", "row(compiled_attention)", "row(masked_attention)"),
        ("mixed up", 'return {"eager": row(masked_attention), "compiled": compiled}',
         'return {"compiled": row(masked_attention), "eager": compiled}'),
        ("flash", "row(compiled_attention)", "row(lambda q, k, v, _: rl.attention(q, k, v, is_causal=is_causal))"),
        ("held without the inputs", "held = 0", "held = -3 * q.nbytes"),
        ("the mask is counted", "            o = fn(q",
         "            rl.ones(L, L, dtype='bool', device='meta')\n            o = fn(q"),
    ),
    "q1_5_time": mutants(
        TIMED,
        ("the time to compile in the samples", "(compiled_attention, q, k, v, visible, warmup=1",
         "(compiled_attention, q, k, v, visible, warmup=0"),
        ("one sample", "repeat=3", "repeat=1"),
        ("backward with forward", "latency(compiled_attention, q",
         "latency(lambda *args: compiled_attention(*args).sum().backward(), q", LEAVES,
         "(rl.randn(batch, L, d, device=device, requires_grad=True) for"),
        ("the mask is dropped", "visible = causal_mask(L)", "visible = None"),
        ("tensors that require gradients", LEAVES, "(rl.randn(batch, L, d, device=device, requires_grad=True) for"),
        ("the mask is made in each sample", "latency(masked_attention, q, k, v, visible",
         "latency(lambda *args: masked_attention(*args, rl.arange(L, device=device)[:, None] >= "
         "rl.arange(L, device=device)), q, k, v"),
        ("the mask comes from NumPy in each sample", "latency(masked_attention, q, k, v, visible",
         "latency(lambda *args: masked_attention(*args, causal_mask(L)), q, k, v"),
        ("the inputs are made in each sample", "latency(compiled_attention, q, k, v, visible,",
         "latency(lambda: compiled_attention(*make_qkv(batch, L, L, d), visible),"),
        ("flash", "latency(compiled_attention, q, k, v, visible,", 
         "latency(lambda q, k, v, _: rl.attention(q, k, v, is_causal=True), q, k, v, visible,"),
        ("eager twice", "latency(compiled_attention,", "latency(masked_attention,"),
        ("mixed up", '"compiled": compiled.median_ms, "eager": eager.median_ms',
         '"eager": compiled.median_ms, "compiled": eager.median_ms'),
        ("seconds", "eager.median_ms", "eager.median_ms / 1e3"),
        ("the mean", "compiled.median_ms", "compiled.mean_ms"),
        ("invented", "compiled.median_ms", "0.9 * eager.median_ms"),
        ("one of the batch", LEAVES, "(rl.randn(1, L, d, device=device) for"),
    ),
    "q1_5_values": [
        ("two matrices", values(matrices=2)),
        ("chains alone", values(matrices=4)),
        ("grows as L", values(growth=2)),
        ("both as with 24 GiB", values(eager=16384)),
        ("eager at 4096", values(eager=4096)),
        ("compiled at 8192", values(compiled=8192)),
        ("not a length of the table", values(compiled=32768)),
        ("nothing is too long", values(compiled=None)),
        ("bytes for matrices", values(matrices=34359738368.0)),
        *((f"stays by {letter}", values(why=letter)) for letter in "abd"),
    ],
}  # fmt: skip
