"""Answers to question 5 of Lab 3, FlashAttention-2 backward in array code, right and wrong."""

from labs.mutants import changed, mutants

BACKWARD = """
backward_over_forward = 2.5

def flash_backward(ctx, dO):
    Q, K, V, O, L = ctx.saved_tensors
    scale, shift = Q.shape[-1] ** -0.5, K.shape[1] - Q.shape[1]
    D = (O * dO).sum(-1)
    make = dict(dtype=Q.dtype, device=Q.device)
    dQ, dK, dV = (rl.zeros(x.shape, **make) for x in (Q, K, V))
    for j in range(0, K.shape[1], 64):
        k, v = K[:, j : j + 64], V[:, j : j + 64]
        dk, dv = rl.zeros(k.shape, **make), rl.zeros(v.shape, **make)
        for i in range(0, Q.shape[1], 32):
            q, do = Q[:, i : i + 32], dO[:, i : i + 32]
            if ctx.is_causal and j > i + q.shape[1] - 1 + shift:
                continue
            s = (q @ k.mT) * scale
            if ctx.is_causal:
                last = rl.arange(i, i + q.shape[1], device=Q.device)[:, None] + shift
                s = rl.where(rl.arange(j, j + k.shape[1], device=Q.device)[None] <= last, s, float("-inf"))
            p = rl.exp(s - L[:, i : i + 32][:, :, None])
            dp = do @ v.mT
            ds = p * (dp - D[:, i : i + 32][:, :, None])
            dv = dv + p.mT @ do
            dk = dk + ds.mT @ q * scale
            dQ[:, i : i + 32] = dQ[:, i : i + 32] + ds @ k * scale
        dK[:, j : j + 64], dV[:, j : j + 64] = dk, dv
    return dQ, dK, dV
"""

# The queries outside. The last tile of keys ends with the last key that its last query sees.
CUT = """
backward_over_forward = 2.5

def flash_backward(ctx, dO):
    Q, K, V, O, L = ctx.saved_tensors
    scale, shift = Q.shape[-1] ** -0.5, K.shape[1] - Q.shape[1]
    dQ, dK, dV = (rl.zeros_like(x) for x in (Q, K, V))
    for i in range(0, Q.shape[1], 64):
        end = min(i + 64, Q.shape[1])
        q, do, lse = Q[:, i:end], dO[:, i:end], L[:, i:end].unsqueeze(-1)
        D = (O[:, i:end] * do).sum(-1, keepdim=True)
        seen = end + shift if ctx.is_causal else K.shape[1]
        for j in range(0, seen, 64):
            keys = slice(j, min(j + 64, seen))
            p = rl.exp(q @ K[:, keys].mT * scale - lse)
            if ctx.is_causal:
                last = rl.arange(i, end, device=Q.device)[:, None] + shift
                p = rl.where(rl.arange(j, keys.stop, device=Q.device)[None] <= last, p, 0.0)
            ds = p * (do @ V[:, keys].mT - D) * scale
            dQ[:, i:end] += ds @ K[:, keys]
            dK[:, keys] += ds.mT @ q
            dV[:, keys] += p.mT @ do
    return dQ, dK, dV
"""

# The keys outside. The first tile of queries begins with the first query that sees one of the keys.
LATE = changed(
    BACKWARD,
    "in range(0, Q.shape[1], 32)",
    "in range(max(0, j - shift) if ctx.is_causal else 0, Q.shape[1], 32)",
)

# A loop for dQ and one for dK and dV: seven products.
TWO_LOOPS = """
backward_over_forward = 5 / 2

def tile(ctx, D, dO, i, j):
    Q, K, V, O, L = ctx.saved_tensors
    q, k, v, do = Q[:, i : i + 64], K[:, j : j + 64], V[:, j : j + 64], dO[:, i : i + 64]
    p = rl.exp((q @ k.mT) * Q.shape[-1] ** -0.5 - L[:, i : i + 64].unsqueeze(-1))
    if ctx.is_causal:
        last = rl.arange(i, i + q.shape[1], device=Q.device)[:, None] + (K.shape[1] - Q.shape[1])
        p = rl.where(rl.arange(j, j + k.shape[1], device=Q.device)[None] <= last, p, 0.0)
    return q, k, do, p, p * (do @ v.mT - D[:, i : i + 64])

def flash_backward(ctx, dO):
    Q, K, V, O, L = ctx.saved_tensors
    scale, shift = Q.shape[-1] ** -0.5, K.shape[1] - Q.shape[1]
    D = (O * dO).sum(-1, keepdim=True)
    dQ, dK, dV = (rl.zeros(x.shape, dtype=Q.dtype, device=Q.device) for x in (Q, K, V))
    rows, columns = range(0, Q.shape[1], 64), range(0, K.shape[1], 64)
    def seen(i, j):
        return not ctx.is_causal or j <= min(i + 64, Q.shape[1]) - 1 + shift
    for i in rows:
        for j in columns:
            if seen(i, j):
                q, k, do, p, ds = tile(ctx, D, dO, i, j)
                dQ[:, i : i + 64] = dQ[:, i : i + 64] + ds @ k * scale
    for j in columns:
        for i in rows:
            if seen(i, j):
                q, k, do, p, ds = tile(ctx, D, dO, i, j)
                dK[:, j : j + 64] = dK[:, j : j + 64] + ds.mT @ q * scale
                dV[:, j : j + 64] = dV[:, j : j + 64] + p.mT @ do
    return dQ, dK, dV
"""

LIBRARY_BACKWARD = """
backward_over_forward = 2.5

def flash_backward(ctx, dO):
    Q, K, V, O, L = ctx.saved_tensors
    args = [x.float() for x in (dO, Q, K, V, O, L)]
    return tuple(x.to(Q.dtype) for x in rl.attention_backward(*args, is_causal=ctx.is_causal))
"""

NUMPY_BACKWARD = """
backward_over_forward = 2.5

def flash_backward(ctx, dO):
    Q, K, V, O, L, do = (x.detach().cpu().numpy() for x in (*ctx.saved_tensors, dO))
    S = Q @ K.swapaxes(1, 2) * Q.shape[-1] ** -0.5
    if ctx.is_causal:
        S[:, np.arange(S.shape[2]) > np.arange(S.shape[1])[:, None] + S.shape[2] - S.shape[1]] = -np.inf
    P = np.exp(S - L[..., None])
    dS = P * (do @ V.swapaxes(1, 2) - (O * do).sum(-1, keepdims=True)) * Q.shape[-1] ** -0.5
    grads = dS @ K, dS.swapaxes(1, 2) @ Q, P.swapaxes(1, 2) @ do
    return tuple(rl.tensor(x, dtype=dO.dtype, device=dO.device) for x in grads)
"""

WHOLE_ROWS = ("range(0, Q.shape[1], 32)", "range(0, Q.shape[1], 8192)", "i + 32", "i + 8192")
WHOLE_COLUMNS = ("range(0, K.shape[1], 64)", "range(0, K.shape[1], 8192)", "j + 64", "j + 8192")
HIDDEN = """[:, :, None])
            if ctx.is_causal:
                p = p * (rl.arange(j, j + k.shape[1], device=Q.device)[None] <= last).to(p.dtype)
            dp"""
BASE_2 = "1.4426950408889634"

RIGHT = {
    "q5": [
        ("the keys outside, the queries inside", BACKWARD),
        ("cut at the diagonal", CUT),
        ("from the diagonal on", LATE),
        ("the smallest tiles", LATE.replace("64", "16").replace("32", "16")),
        (
            "the reference's own tiles",
            changed(BACKWARD, ", 64)", ", TILE_KV)", "+ 64", "+ TILE_KV", ", 32)", ", TILE_Q)", "+ 32", "+ TILE_Q"),
        ),
        (
            "the largest tiles",
            changed(BACKWARD, ", 64)", ", 128)", "+ 64", "+ 128", ", 32)", ", 128)", "+ 32", "+ 128"),
        ),
    ],
}

WRONG = {
    "q5": [
        ("the library's backward", LIBRARY_BACKWARD),
        ("in NumPy", NUMPY_BACKWARD),
        ("two loops, seven products", TWO_LOOPS),
        *mutants(
            BACKWARD,
            ("causal is forgotten", "if ctx.is_causal:", "if False:"),
            ("a sixth product", "            dp = do @ v.mT\n", "            dp = do @ v.mT\n            do @ v.mT\n"),
            ("one invisible tile too many", "q.shape[1] - 1 + shift:", "q.shape[1] + 63 + shift:"),
            ("tiles are not skipped", "                continue\n", "                pass\n"),
            ("writes into dO", "    return dQ", "    dO *= 0\n    return dQ"),
            ("writes into O", "    return dQ", "    O *= 0\n    return dQ"),
            (
                "writes into Q",
                "    scale, shift = Q.shape[-1] ** -0.5,",
                "    Q *= Q.shape[-1] ** -0.5\n    scale, shift = 1,",
                "+ ds @ k * scale",
                "+ ds @ k * Q.shape[-1] ** -0.5",
            ),
            ("D is a mean", "(O * dO).sum(-1)", "(O * dO).mean(-1)"),
            ("D of the tile's weights", "D[:, i : i + 32][:, :, None])", "(p * dp).sum(-1, keepdim=True))"),
            ("D is added", "(dp - D", "(dp + D"),
            ("D is forgotten", "(dp - D[:, i : i + 32][:, :, None])", "dp"),
            ("D of dO alone", "(O * dO)", "(dO * dO)"),
            ("no scale in the scores", "(q @ k.mT) * scale", "q @ k.mT"),
            ("no scale in dQ", "ds @ k * scale", "ds @ k"),
            ("no scale in dK", "ds.mT @ q * scale", "ds.mT @ q"),
            ("scaled in dV", "p.mT @ do", "p.mT @ do * scale"),
            ("dQ keeps its last tile only", "dQ[:, i : i + 32] = dQ[:, i : i + 32] + ds", "dQ[:, i : i + 32] = ds"),
            ("dK keeps its last tile only", "dk = dk + ds", "dk = ds"),
            ("only whole tiles of keys", "(0, K.shape[1], 64)", "(0, K.shape[1] - 63, 64)"),
            ("only whole tiles of queries", "(0, Q.shape[1], 32)", "(0, Q.shape[1] - 31, 32)"),
            ("the first query beside the first key", "K.shape[1] - Q.shape[1]", "0"),
            ("a query does not see itself", "[None] <= last", "[None] < last"),
            (
                "hidden weights times 0",
                'last, s, float("-inf"))',
                "last, s, s)",
                "[:, :, None])\n            dp",
                HIDDEN,
            ),
            ("dS is the gradient of the weights", "ds = p * (", "ds = ("),
            ("the log-sum-exp in base 2", "- L[:, i : i + 32]", f"- {BASE_2} * L[:, i : i + 32]"),
            ("the weights without the log-sum-exp", "s - L[:, i : i + 32][:, :, None]", "s"),
            ("dK and dV in each other's place", "return dQ, dK, dV", "return dQ, dV, dK"),
            ("two for 2.5", "2.5", "2"),
            ("whole columns of scores", *WHOLE_ROWS),
            ("whole rows of scores", *WHOLE_COLUMNS),
            ("whole matrices", *WHOLE_ROWS, *WHOLE_COLUMNS),
        ),
    ],
}
