"""Answers to questions 3 and 5 of Lab 3: FlashAttention-2 forward and backward in array code, right and wrong.

CAUSAL_RIGHT and CAUSAL_WRONG replace the cell q3 and are graded by question 4.
"""


def changed(text, *pairs):
    """`text` with one change after the other, old then new; each must apply."""
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


def mutants(text, *cases):
    """(label, old, new ...) each -> (label, the changed text)."""
    return [(label, changed(text, *pairs)) for label, *pairs in cases]


TAIL = """
    @staticmethod
    def backward(ctx, dO):
        return (*flash_backward(ctx, dO), None)


def flash_attention(q, k, v, is_causal=False):
    return FlashAttention2.apply(q, k, v, is_causal)
"""

# The scale on the scores, m and l as (B, rows), O written in place.
FORWARD = (
    """
TILE_Q, TILE_KV = 32, 128

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        B, L_q, d = Q.shape
        L_kv, scale = K.shape[1], 1 / d ** 0.5
        make = dict(dtype=Q.dtype, device=Q.device)
        O, L = rl.zeros((B, L_q, d), **make), rl.zeros((B, L_q), **make)
        for i in range(0, L_q, TILE_Q):
            end = min(i + TILE_Q, L_q)
            m, l = rl.full((B, end - i), -float("inf"), **make), rl.zeros((B, end - i), **make)
            for j in range(0, L_kv, TILE_KV):
                stop = min(j + TILE_KV, L_kv)
                if is_causal and j > end - 1 + L_kv - L_q:
                    break
                s = rl.matmul(Q[:, i:end], K[:, j:stop].transpose(1, 2)) * scale
                if is_causal:
                    last = rl.arange(i, end, device=Q.device)[:, None] + (L_kv - L_q)
                    s = rl.where(rl.arange(j, stop, device=Q.device)[None] <= last, s, -float("inf"))
                top = rl.maximum(m, s.max(dim=-1))
                p = rl.exp(s - top[:, :, None])
                a = rl.exp(m - top)
                l = a * l + p.sum(dim=-1)
                O[:, i:end] = O[:, i:end] * a[:, :, None] + p @ V[:, j:stop]
                m = top
            O[:, i:end] = O[:, i:end] / l[:, :, None]
            L[:, i:end] = m + rl.log(l)
        ctx.save_for_backward(L, Q, K, V, O)
        ctx.is_causal = is_causal
        return O
"""
    + TAIL
)

ONE_BY_ONE = (
    """
TILE_Q, TILE_KV = 16, 16

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        B, L_q, d = Q.shape
        L_kv = K.shape[1]
        like = dict(dtype=Q.dtype, device=Q.device)
        O, L = rl.empty(Q.shape, **like), rl.empty((B, L_q), **like)
        for b in range(B):
            for i in range(0, L_q, TILE_Q):
                q = Q[b, i : i + TILE_Q]
                n = q.shape[0]
                m = rl.full((n, 1), -1e300 if "64" in str(Q.dtype) else -1e38, **like)
                l, o = rl.zeros((n, 1), **like), rl.zeros((n, d), **like)
                for j in range(0, L_kv, TILE_KV):
                    if is_causal and i + n - 1 + L_kv - L_q < j:
                        continue
                    k, v = K[b, j : j + TILE_KV], V[b, j : j + TILE_KV]
                    s = (q @ k.T) / d**0.5
                    if is_causal:
                        query = rl.arange(i, i + n, device=Q.device)[:, None] + (L_kv - L_q)
                        key = rl.arange(j, j + k.shape[0], device=Q.device)[None]
                        s = rl.where(key > query, -float("inf"), s)
                    new = rl.maximum(m, s.max(-1, keepdim=True))
                    p, c = rl.exp(s - new), rl.exp(m - new)
                    m, l, o = new, c * l + p.sum(-1, keepdim=True), c * o + p @ v
                O[b, i : i + n] = o / l
                L[b, i : i + n] = (m + rl.log(l)).squeeze(1)
        ctx.save_for_backward(Q, K, V, O, L)
        return O
"""
    + TAIL
)

PLAIN = (
    """
TILE_Q = TILE_KV = 64

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        S = (Q @ K.mT) * Q.shape[-1] ** -0.5
        if is_causal:
            last = rl.arange(Q.shape[1], device=Q.device)[:, None] + (K.shape[1] - Q.shape[1])
            S = rl.where(rl.arange(K.shape[1], device=Q.device)[None] <= last, S, float("-inf"))
        m = S.max(-1, keepdim=True)
        P = rl.exp(S - m)
        l = P.sum(-1, keepdim=True)
        O = P / l @ V
        L = (m + rl.log(l)).squeeze(-1)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
"""
    + TAIL
)

LIBRARY = (
    """
TILE_Q = TILE_KV = 64

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        O, L = rl.attention(Q.float(), K.float(), V.float(), is_causal=is_causal, return_lse=True)
        O, L = O.to(Q.dtype), L.to(Q.dtype)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
"""
    + TAIL
)

IN_NUMPY = (
    """
TILE_Q = TILE_KV = 64

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        q, k, v = (x.detach().cpu().numpy() for x in (Q, K, V))
        s = q @ k.swapaxes(1, 2) * q.shape[-1] ** -0.5
        if is_causal:
            s[:, np.arange(s.shape[2]) > np.arange(s.shape[1])[:, None] + s.shape[2] - s.shape[1]] = -np.inf
        L = np.logaddexp.reduce(s, axis=-1)
        O = np.exp(s - L[..., None]) @ v
        O, L = (rl.tensor(x, dtype=Q.dtype, device=Q.device) for x in (O, L))
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
"""
    + TAIL
)

# The two ways in which NumPy's help could be hidden: products for the counters' sake, tiles for the memory's.
NUMPY_BESIDE_PRODUCTS = changed(
    IN_NUMPY,
    "        q, k, v =",
    """\
        for i in range(0, Q.shape[1], 64):
            for j in range(0, K.shape[1], 64):
                (Q[:, i : i + 64] @ K[:, j : j + 64].mT) @ V[:, j : j + 64]
        q, k, v =""",
)
NUMPY_TILES = (
    """
TILE_Q = TILE_KV = 64

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        q, k, v = (x.detach().cpu().numpy() for x in (Q, K, V))
        O, L = np.empty(q.shape, q.dtype), np.empty(q.shape[:2], q.dtype)
        for i in range(0, q.shape[1], 16):
            s = q[:, i : i + 16] @ k.swapaxes(1, 2) * q.shape[-1] ** -0.5
            L[:, i : i + 16] = np.logaddexp.reduce(s, axis=-1)
            O[:, i : i + 16] = np.exp(s - L[:, i : i + 16, None]) @ v
        O, L = (rl.tensor(x, dtype=Q.dtype, device=Q.device) for x in (O, L))
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
"""
    + TAIL
)

WHOLE_ROWS = (
    """
TILE_Q = TILE_KV = 64

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
        like = dict(dtype=Q.dtype, device=Q.device)
        O, L = rl.empty(Q.shape, **like), rl.empty(Q.shape[:2], **like)
        for i in range(0, Q.shape[1], TILE_Q):
            s = Q[:, i : i + TILE_Q] @ K.mT * Q.shape[-1] ** -0.5
            m = s.max(-1, keepdim=True)
            p = rl.exp(s - m)
            l = p.sum(-1, keepdim=True)
            O[:, i : i + TILE_Q] = p / l @ V
            L[:, i : i + TILE_Q] = (m + rl.log(l)).squeeze(-1)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.is_causal = is_causal
        return O
"""
    + TAIL
)

TWO_PASSES = changed(
    FORWARD,
    """\
                top = rl.maximum(m, s.max(dim=-1))
                p = rl.exp(s - top[:, :, None])
                a = rl.exp(m - top)
                l = a * l + p.sum(dim=-1)
                O[:, i:end] = O[:, i:end] * a[:, :, None] + p @ V[:, j:stop]
                m = top
            O[:, i:end] = O[:, i:end] / l[:, :, None]
            L[:, i:end] = m + rl.log(l)
""",
    """\
                top = rl.maximum(m, s.max(dim=-1))
                l = rl.exp(m - top) * l + rl.exp(s - top[:, :, None]).sum(dim=-1)
                m = top
            L[:, i:end] = m + rl.log(l)
            for j in range(0, L_kv, TILE_KV):
                s = rl.matmul(Q[:, i:end], K[:, j : j + TILE_KV].transpose(1, 2)) * scale
                O[:, i:end] = O[:, i:end] + rl.exp(s - L[:, i:end][:, :, None]) @ V[:, j : j + TILE_KV]
""",
)

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

# A loop for dQ and one for dK and dV, as the fastest kernels have it: seven products.
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

WHOLE_BACKWARD = """
backward_over_forward = 2.5

def flash_backward(ctx, dO):
    Q, K, V, O, L = ctx.saved_tensors
    scale = Q.shape[-1] ** -0.5
    S = (Q @ K.mT) * scale
    if ctx.is_causal:
        last = rl.arange(Q.shape[1], device=Q.device)[:, None] + (K.shape[1] - Q.shape[1])
        S = rl.where(rl.arange(K.shape[1], device=Q.device)[None] <= last, S, float("-inf"))
    P = rl.exp(S - L.unsqueeze(-1))
    dS = P * (dO @ V.mT - (O * dO).sum(-1, keepdim=True))
    return dS @ K * scale, dS.mT @ Q * scale, P.mT @ dO
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

NARROW = changed(FORWARD, "= 32, 128", "= 128, 16")

RIGHT = {
    "q3": [
        ("m and l flat, O in place, tiles 32 x 128", FORWARD),
        ("one of the batch at a time, tiles 16 x 16", ONE_BY_ONE),
        ("tiles 128 x 16", NARROW),
        ("the largest tiles", changed(FORWARD, "= 32, 128", "= 128, 128")),
    ],
    "q5": [
        ("the keys outside, the queries inside", BACKWARD),
        ("two loops", TWO_LOOPS),
        (
            "the largest tiles",
            changed(BACKWARD, ", 64)", ", 128)", "+ 64", "+ 128", ", 32)", ", 128)", "+ 32", "+ 128"),
        ),
    ],
}

SAVE, ROWS = "save_for_backward(L,", "O[:, i:end] / l[:, :, None]"
BASE_2 = "1.4426950408889634"

WRONG = {
    "q3": [
        ("plain attention that saves the log-sum-exp", PLAIN),
        ("whole rows of scores", WHOLE_ROWS),
        ("the library's attention", LIBRARY),
        ("in NumPy", IN_NUMPY),
        ("in NumPy, beside products for show", NUMPY_BESIDE_PRODUCTS),
        ("in NumPy, in tiles", NUMPY_TILES),
        ("two passes", TWO_PASSES),
        *mutants(
            FORWARD,
            ("scale 1/d", "1 / d ** 0.5", "1 / d"),
            ("no scale", "1 / d ** 0.5", "1.0"),
            ("O is not rescaled", "O[:, i:end] * a[:, :, None] +", "O[:, i:end] +"),
            ("l is not rescaled", "a * l +", "l +"),
            ("rescaled the wrong way", "rl.exp(m - top)", "rl.exp(top - m)"),
            ("divided at every tile", "                m = top", f"                O[:, i:end] = {ROWS}; m = top"),
            ("never divided", ROWS, "O[:, i:end]"),
            ("only whole tiles", "(0, L_kv, TILE_KV)", "(0, L_kv - TILE_KV + 1, TILE_KV)"),
            ("the log-sum-exp in base 2", "m + rl.log(l)", f"(m + rl.log(l)) * {BASE_2}"),
            ("log2 of the sum", "rl.log(l)", f"rl.log(l) * {BASE_2}"),
            ("the log-sum-exp without the maximum", "m + rl.log(l)", "rl.log(l)"),
            ("the sum for the log-sum-exp", "m + rl.log(l)", "l"),
            ("saves a second row vector", SAVE, "save_for_backward(L * 1, L,"),
            ("saves L as (B, L_q, 1)", SAVE, "save_for_backward(L.unsqueeze(2),"),
            ("saves the weights", SAVE, "save_for_backward(rl.exp((Q @ K.mT) * scale - L[:, :, None]), L,"),
            (
                "keeps all tiles",
                "= K.shape[1], 1 / d ** 0.5",
                "= K.shape[1], 1 / d ** 0.5; ctx.kept = []",
                "                m = top",
                "                m = top; ctx.kept.append(p)",
            ),
            ("saves nothing", "ctx.save_for_backward(L, Q, K, V, O)", "ctx.kept = L, Q, K, V, O"),
            ("float32 inside", "        make =", "        Q, K, V = Q.float(), K.float(), V.float()\n        make ="),
            ("tiles of eight queries", "= 32, 128", "= 8, 128"),
            ("tiles of 512 keys", "= 32, 128", "= 32, 512"),
            ("tiles of half a million scores", "= 32, 128", "= 1024, 512"),
        ),
    ],
    "q5": [
        ("whole matrices", WHOLE_BACKWARD),
        ("the library's backward", LIBRARY_BACKWARD),
        ("in NumPy", NUMPY_BACKWARD),
        *mutants(
            BACKWARD,
            ("causal is forgotten", "if ctx.is_causal:", "if False:"),
            ("tiles are not skipped", "                continue\n", "                pass\n"),
            ("D is a mean", "(O * dO).sum(-1)", "(O * dO).mean(-1)"),
            ("D is forgotten", "(dp - D[:, i : i + 32][:, :, None])", "dp"),
            ("D of dO alone", "(O * dO)", "(dO * dO)"),
            ("no scale in dQ", "ds @ k * scale", "ds @ k"),
            ("no scale in dK", "ds.mT @ q * scale", "ds.mT @ q"),
            ("scaled in dV", "p.mT @ do", "p.mT @ do * scale"),
            ("dQ keeps its last tile only", "dQ[:, i : i + 32] = dQ[:, i : i + 32] + ds", "dQ[:, i : i + 32] = ds"),
            ("dS is the gradient of the weights", "ds = p * (", "ds = ("),
            ("the log-sum-exp in base 2", "- L[:, i : i + 32]", f"- {BASE_2} * L[:, i : i + 32]"),
            ("the weights without the log-sum-exp", "s - L[:, i : i + 32][:, :, None]", "s"),
            ("dK and dV in each other's place", "return dQ, dK, dV", "return dQ, dV, dK"),
            ("two for 2.5", "2.5", "2"),
            ("whole columns of scores", "range(0, Q.shape[1], 32)", "range(0, Q.shape[1], 8192)", "i + 32", "i + 8192"),
        ),
    ],
}

CAUSAL_RIGHT = [("tiles 32 x 128", FORWARD), ("tiles 16 x 16", ONE_BY_ONE), ("tiles 128 x 16", NARROW)]

CAUSAL_WRONG = [
    ("plain attention", PLAIN),
    ("the library's attention", LIBRARY),
    *mutants(
        FORWARD,
        ("tiles above the diagonal are computed", "                    break\n", "                    pass\n"),
        ("no mask on the diagonal", "if is_causal:\n", "if False:\n"),
        ("a query does not see itself", "[None] <= last", "[None] < last"),
        ("the first query beside the first key", " + (L_kv - L_q)", "", " + L_kv - L_q", ""),
        ("one tile too few", "j > end - 1 + L_kv - L_q", "stop > end - 1 + L_kv - L_q"),
        ("masked with 0", 's, -float("inf"))', "s, 0.0)"),
        (
            "causal is ignored",
            "is_causal=False):\n        B",
            "is_causal=False):\n        is_causal = False\n        B",
        ),
    ),
]
