"""Answers to questions 1.1 to 1.4 of Lab 3, the textbook's attention, its memory and its benchmark, right and wrong."""

from labs.mutants import changed, mutants

NAIVE = """
def naive_attention(q, k, v, is_causal=False):
    scores = (q @ k.transpose(1, 2)) / q.shape[-1] ** 0.5
    if is_causal:
        rows = rl.arange(q.shape[1], device=q.device)[:, None] + (k.shape[1] - q.shape[1])
        scores = rl.where(rl.arange(k.shape[1], device=q.device)[None] > rows, float("-inf"), scores)
    top = scores.amax(dim=-1, keepdim=True)
    e = rl.exp(scores - top)
    return (e / e.sum(dim=-1, keepdim=True)) @ v
"""

NAIVE_MAX = changed(NAIVE, "scores.amax(dim=-1, keepdim=True)", "scores.max(-1, keepdim=True)[0]")

NAIVE_ADDED = changed(
    NAIVE,
    'rl.where(rl.arange(k.shape[1], device=q.device)[None] > rows, float("-inf"), scores)',
    "scores + (rl.arange(k.shape[1], device=q.device)[None] > rows).to(q.dtype) * -1e9",
)  # fmt: skip

NAIVE_DETACHED = changed(NAIVE, "scores - top", "scores - top.detach()")

BENCHMARK = """
def benchmark_naive(L, d, batch, is_causal=False):
    none = dict.fromkeys(("forward_ms", "backward_ms", "held_bytes"))
    start = rl.memory.allocated(device)
    try:
        q, k, v = [rl.randn(batch, L, d, device=device).requires_grad_() for _ in range(3)]
        o = naive_attention(q, k, v, is_causal)
        held = rl.memory.allocated(device) - start
        back = lambda: rl.autograd.grad(o, (q, k, v), rl.ones(o.shape, device=device), retain_graph=True)
        backward_ms = rl.latency(back, warmup=1, repeat=3, device=device).median_ms
        del o
        forward_ms = rl.latency(naive_attention, q, k, v, is_causal, warmup=1, repeat=3).median_ms
    except rl.OutOfMemoryError:
        return none
    return {"forward_ms": forward_ms, "backward_ms": backward_ms, "held_bytes": held}
"""


def account(mib=8192, held=3, softmax=1, peak=2, flash=0):
    return (
        f"score_matrix_mib = {mib}\nheld_written_out = {held}\nheld_with_softmax = {softmax}\n"
        f"peak_with_softmax = {peak}\nheld_flash = {flash}\n"
    )


def published(per_l2=97.13, extra="c"):
    return f"published_bytes_per_l2 = {per_l2}\nbeside_matrices = {extra!r}\n"


LEAN = """
class LeanAttention(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V):
        s = rl.matmul(Q, K.transpose(1, 2)) / Q.shape[-1] ** 0.5
        e = rl.exp(s - s.amax(-1, keepdim=True))
        P = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(P, Q, K, V)
        return P @ V

    @staticmethod
    def backward(ctx, dO):
        P, Q, K, V = ctx.saved_tensors
        dP = dO @ V.mT
        dS = P * dP - P * (P * dP).sum(-1, keepdim=True)
        scale = Q.shape[-1] ** -0.5
        return dS @ K * scale, dS.mT @ Q * scale, P.mT @ dO


def lean_attention(q, k, v):
    return LeanAttention.apply(q, k, v)
"""

TOP = "    top = scores.amax(dim=-1, keepdim=True)\n"

NAIVE_SOFTMAX = changed(
    NAIVE, f"{TOP}    e = rl.exp(scores - top)\n", "", "(e / e.sum(dim=-1, keepdim=True))", "rl.softmax(scores, -1)"
)

NAIVE_LOG_SOFTMAX = changed(NAIVE_SOFTMAX, "rl.softmax(scores, -1)", "rl.exp(rl.log_softmax(scores, -1))")

NAIVE_NUMPY = """
def naive_attention(q, k, v, is_causal=False):
    q, k, v = (x.detach().cpu().numpy() for x in (q, k, v))
    s = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
    if is_causal:
        s[:, np.arange(s.shape[2]) > np.arange(s.shape[1])[:, None] + s.shape[2] - s.shape[1]] = -np.inf
    e = np.exp(s - s.max(-1, keepdims=True))
    return rl.tensor(e / e.sum(-1, keepdims=True) @ v, device=device)
"""

NAIVE_LIBRARY = """
def naive_attention(q, k, v, is_causal=False):
    return rl.attention(q, k, v, is_causal=is_causal)
"""

HELD = "        held = rl.memory.allocated(device) - start\n"

RIGHT = {
    "q1_1": [
        ("scores divided, > for the mask", NAIVE),
        ("the maximum with its place", NAIVE_MAX),
        ("the maximum as a constant", NAIVE_DETACHED),
        ("a mask that is added", NAIVE_ADDED),
    ],
    "q1_2": [("by hand", account()), ("a float for the size", account(8192.0))],
    "q1_2_published": [("the slope, rounded", published()), ("three matrices and a mask", published(97))],
    "q1_3": [("the graph first, then the forward passes", BENCHMARK)],
    "q1_4": [("the softmax written out", LEAN)],
}  # fmt: skip

WRONG = {
    "q1_1": [
        ("the library's softmax", NAIVE_SOFTMAX),
        ("the library's log-softmax", NAIVE_LOG_SOFTMAX),
        ("the library's log-softmax, compiled", NAIVE_LOG_SOFTMAX + "naive_attention = rl.compile(naive_attention)\n"),
        ("the library's attention", NAIVE_LIBRARY),
        ("in NumPy", NAIVE_NUMPY),
        *mutants(
            NAIVE,
            ("no scale", " / q.shape[-1] ** 0.5", ""),
            ("scale 1/d", " ** 0.5", ""),
            ("no maximum", "scores - top", "scores"),
            ("the first query beside the first key", " + (k.shape[1] - q.shape[1])", ""),
            ("causal is ignored", "if is_causal:", "if False:"),
            ("causal unless it is told", "is_causal=False", "is_causal=True"),
            ("always causal above 100 queries", "if is_causal:", "if is_causal or q.shape[1] > 100:"),
            ("a query does not see itself", "[None] > rows", "[None] >= rows"),
            ("the mask after the maximum", TOP, "", "    if is_causal:", f"{TOP}    if is_causal:"),
            *((f"masked with {low}", 'float("-inf"), scores', f"{low}, scores") for low in ("-100.0", "-1e4", "-1e6")),
            ("a mask of -1e4 that is added", 'rl.where(rl.arange(k.shape[1], device=q.device)[None] > rows, '
             'float("-inf"), scores)',
             "scores + (rl.arange(k.shape[1], device=q.device)[None] > rows).to(q.dtype) * -1e4"),
            ("one maximum for all", "scores.amax(dim=-1, keepdim=True)", "scores.max()"),
            ("softmax over the queries", "dim=-1", "dim=-2"),
            ("the maximum of the first of the batch", "keepdim=True)\n    e", "keepdim=True)[0]\n    e"),
            ("a mask for each of the batch", "> rows", "> rows + rl.zeros((q.shape[0], 1, 1), dtype='int64')"),
        ),
    ],
    "q1_2": [
        ("no batch", account(1024)),
        ("bf16", account(4096)),
        ("MB for MiB", account(8589.9)),
        ("four matrices", account(held=4)),
        ("softmax keeps two", account(softmax=2)),
        ("softmax needs one at the peak", account(peak=1)),
        ("three at the peak", account(peak=3)),
        ("flash keeps one", account(flash=1)),
    ],
    "q1_2_published": [
        ("96 of the account", published(96)),
        ("MB for MiB", published(92.6)),
        ("what is held over L squared", published('PUBLISHED_NAIVE[16384, 16]["held_mib"] * 2**20 / 16384**2')),
        ("the same at L = 8192", published('PUBLISHED_NAIVE[8192, 16]["held_mib"] * 2**20 / 8192**2')),
        *((f"the rest is {letter}", published(extra=letter)) for letter in "abd"),
    ],
    "q1_3": mutants(
        BENCHMARK,
        ("out of memory is not caught", "rl.OutOfMemoryError", "KeyError"),
        ("causal unless it is told", "is_causal=False", "is_causal=True"),
        ("every error is caught", "rl.OutOfMemoryError", "Exception"),
        ("a backward pass that runs only once", ", retain_graph=True", ""),
        ("inputs without memory are an accident", "    try:\n        q, k, v", "    q, k, v",
         "        o = naive_attention(q, k, v, is_causal)\n",
         "    try:\n        o = naive_attention(q, k, v, is_causal)\n"),
        ("what it had before memory ran out", "return none", "return none | {'held_bytes': locals().get('held')}"),
        ("held after the graph is gone", HELD, "", "        del o\n", f"        del o\n{HELD}"),
        ("MiB for bytes", '"held_bytes": held}', '"held_bytes": held / 2**20}'),
        ("forward without a call to warm up", "is_causal, warmup=1", "is_causal, warmup=0"),
        ("backward without a call to warm up", "latency(back, warmup=1", "latency(back, warmup=0"),
        ("one sample", "is_causal, warmup=1, repeat=3", "is_causal, warmup=1, repeat=1"),
        ("without its inputs", "        o = naive", "        start = rl.memory.allocated(device)\n        o = naive"),
        ("twice the batch", "rl.randn(batch, L", "rl.randn(2 * batch, L"),
        ("seconds", '"forward_ms": forward_ms', '"forward_ms": forward_ms / 1e3'),
        ("backward in seconds", '"backward_ms": backward_ms', '"backward_ms": backward_ms / 1e3'),
        ("microseconds", '"backward_ms": backward_ms', '"backward_ms": backward_ms * 1e3'),
        ("the library's forward pass", "latency(naive_attention, q, k, v, is_causal,",
         "latency(rl.attention, q, k, v,"),
        ("the product of the scores alone", "latency(naive_attention, q, k, v, is_causal",
         "latency(rl.matmul, q, k.mT"),
        ("a backward pass with its forward", "grad(o,", "grad(naive_attention(q, k, v, is_causal),"),
        ("inputs are made in each sample", "latency(naive_attention, q, k, v, is_causal,",
         "latency(lambda: naive_attention(*(x.requires_grad_() for x in make_qkv(batch, L, L, d)), is_causal),"),
        ("the upstream gradient comes from NumPy in each sample", "rl.ones(o.shape, device=device)",
         "make_qkv(batch, L, L, d)[0]"),
        ("inputs without gradients", "latency(naive_attention, q, k, v",
         "latency(naive_attention, q.detach(), k.detach(), v.detach()"),
        ("all that is held", "allocated(device) - start", "allocated(device)"),
        ("never causal", "q, k, v, is_causal", "q, k, v, False"),
        ("invented times", '"forward_ms": forward_ms, "backward_ms": backward_ms',
         '"forward_ms": 0.8, "backward_ms": 1.9'),
        ("the mean of the samples", "latency(naive_attention, q, k, v, is_causal, warmup=1, repeat=3).median_ms",
         "latency(naive_attention, q, k, v, is_causal, warmup=1, repeat=3).mean_ms"),
    ),
    "q1_4": mutants(
        LEAN,
        ("the library's gradient of softmax", "P * dP - P * (P * dP).sum(-1, keepdim=True)",
         "rl.softmax_backward(dP, P)"),
        ("computes the scores again", "P, Q, K, V = ctx.saved_tensors",
         "P, Q, K, V = ctx.saved_tensors\n        Q @ K.mT"),
        ("saves the scores too", "(P, Q, K, V)\n        return", "(P, Q, K, V, s)\n        return",
         "P, Q, K, V = ctx", "P, Q, K, V, _ = ctx"),
        ("keeps the scores in ctx", "        return P @ V", "        ctx.scores = s\n        return P @ V"),
        ("keeps the exponentials in a list of ctx", "        return P @ V", "        ctx.extra = [e]\n"
        "        return P @ V"),
        ("keeps the output in ctx beside a copy", "        return P @ V", "        ctx.O = P @ V\n"
        "        return ctx.O + 0"),
        ("keeps K and V twice", "        return P @ V", "        ctx.both = K + 0, V + 0\n        return P @ V"),
        ("keeps a sum of each row in ctx", "        return P @ V", "        ctx.sums = e.sum(-1)\n"
        "        return P @ V"),
        ("saves the output too", "ctx.save_for_backward(P, Q, K, V)\n        return P @ V",
         "O = P @ V\n        ctx.save_for_backward(P, Q, K, V, O)\n        return O", "P, Q, K, V = ctx",
         "P, Q, K, V, _ = ctx"),
        ("computes the weights again", "(P, Q, K, V)\n        return", "(Q, K, V)\n        return",
         "P, Q, K, V = ctx.saved_tensors",
         "Q, K, V = ctx.saved_tensors; P = rl.softmax(Q @ K.mT * Q.shape[-1] ** -0.5)"),
        ("rl's own rules", "LeanAttention.apply(q, k, v)", "rl.softmax(q @ k.mT * q.shape[-1] ** -0.5) @ v"),
        ("writes into dO", "        dP =", "        dV = P.mT @ dO\n        dP =", "        scale =",
         "        dO *= 0\n        scale =", "P.mT @ dO\n\n", "dV\n\n"),
        ("no sum over the row", " - P * (P * dP).sum(-1, keepdim=True)", ""),
        ("no scale in dQ", "dS @ K * scale", "dS @ K"),
        ("dK and dV in each other's place", "dS.mT @ Q * scale, P.mT @ dO", "P.mT @ dO, dS.mT @ Q * scale"),
    ),
}  # fmt: skip
