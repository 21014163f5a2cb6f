"""Answers to questions 3 and 4 of Lab 3, FlashAttention-2 forward in array code and causal, right and wrong.

CAUSAL_RIGHT and CAUSAL_WRONG replace the cell q3 too and are graded by question 4.
"""

from textwrap import indent

from labs.mutants import changed, mutants


def cell(body, tiles="64, 64"):
    """The cell q3, whose `body` makes O and L of Q, K, V and is_causal."""
    return f"""
TILE_Q, TILE_KV = {tiles}

class FlashAttention2(rl.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, is_causal=False):
{indent(body.strip(), " " * 8)}
        ctx.save_for_backward(L, Q, K, V, O)
        ctx.is_causal = is_causal
        return O

    @staticmethod
    def backward(ctx, dO):
        return (*flash_backward(ctx, dO), None)


def flash_attention(q, k, v, is_causal=False):
    return FlashAttention2.apply(q, k, v, is_causal)
"""


# The scale on the scores, m and l as (B, rows), O written in place.
FORWARD = cell(
    """
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
        top = rl.maximum(m, s.amax(dim=-1))
        p = rl.exp(s - top[:, :, None])
        a = rl.exp(m - top)
        l = a * l + p.sum(dim=-1)
        O[:, i:end] = O[:, i:end] * a[:, :, None] + p @ V[:, j:stop]
        m = top
    O[:, i:end] = O[:, i:end] / l[:, :, None]
    L[:, i:end] = m + rl.log(l)
""",
    tiles="32, 128",
)

ONE_BY_ONE = cell(
    """
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
            new = rl.maximum(m, s.amax(-1, keepdim=True))
            p, c = rl.exp(s - new), rl.exp(m - new)
            m, l, o = new, c * l + p.sum(-1, keepdim=True), c * o + p @ v
        O[b, i : i + n] = o / l
        L[b, i : i + n] = (m + rl.log(l)).squeeze(1)
""",
    tiles="16, 16",
)

NARROW = changed(FORWARD, "= 32, 128", "= 128, 16")

PLAIN = cell("""
S = (Q @ K.mT) * Q.shape[-1] ** -0.5
if is_causal:
    last = rl.arange(Q.shape[1], device=Q.device)[:, None] + (K.shape[1] - Q.shape[1])
    S = rl.where(rl.arange(K.shape[1], device=Q.device)[None] <= last, S, float("-inf"))
m = S.amax(-1, keepdim=True)
P = rl.exp(S - m)
l = P.sum(-1, keepdim=True)
O = P / l @ V
L = (m + rl.log(l)).squeeze(-1)
""")

LIBRARY = cell("""
O, L = rl.attention(Q.float(), K.float(), V.float(), is_causal=is_causal, return_lse=True)
O, L = O.to(Q.dtype), L.to(Q.dtype)
""")

IN_NUMPY = cell("""
q, k, v = (x.detach().cpu().numpy() for x in (Q, K, V))
s = q @ k.swapaxes(1, 2) * q.shape[-1] ** -0.5
if is_causal:
    s[:, np.arange(s.shape[2]) > np.arange(s.shape[1])[:, None] + s.shape[2] - s.shape[1]] = -np.inf
L = np.logaddexp.reduce(s, axis=-1)
O = np.exp(s - L[..., None]) @ v
O, L = (rl.tensor(x, dtype=Q.dtype, device=Q.device) for x in (O, L))
""")

# Two ways to hide that NumPy does the work: products only for the counters, and tiles only for the memory.
NUMPY_BESIDE_PRODUCTS = changed(
    IN_NUMPY,
    "        q, k, v =",
    """\
        for i in range(0, Q.shape[1], 64):
            for j in range(0, K.shape[1], 64):
                (Q[:, i : i + 64] @ K[:, j : j + 64].mT) @ V[:, j : j + 64]
        q, k, v =""",
)
NUMPY_TILES = cell("""
q, k, v = (x.detach().cpu().numpy() for x in (Q, K, V))
O, L = np.empty(q.shape, q.dtype), np.empty(q.shape[:2], q.dtype)
for i in range(0, q.shape[1], 16):
    s = q[:, i : i + 16] @ k.swapaxes(1, 2) * q.shape[-1] ** -0.5
    L[:, i : i + 16] = np.logaddexp.reduce(s, axis=-1)
    O[:, i : i + 16] = np.exp(s - L[:, i : i + 16, None]) @ v
O, L = (rl.tensor(x, dtype=Q.dtype, device=Q.device) for x in (O, L))
""")

TWO_PASSES = changed(
    FORWARD,
    """\
                p = rl.exp(s - top[:, :, None])
                a = rl.exp(m - top)
""",
    "",
    "a * l + p.sum(dim=-1)",
    "rl.exp(m - top) * l + rl.exp(s - top[:, :, None]).sum(dim=-1)",
    "                O[:, i:end] = O[:, i:end] * a[:, :, None] + p @ V[:, j:stop]\n",
    "",
    "            O[:, i:end] = O[:, i:end] / l[:, :, None]\n",
    "",
    "m + rl.log(l)\n",
    """\
m + rl.log(l)
            for j in range(0, L_kv, TILE_KV):
                s = rl.matmul(Q[:, i:end], K[:, j : j + TILE_KV].transpose(1, 2)) * scale
                O[:, i:end] = O[:, i:end] + rl.exp(s - L[:, i:end][:, :, None]) @ V[:, j : j + TILE_KV]
""",
)

SCORES = """
causal_share_limit = 1 / 2

def scores_computed(L_q, L_kv, tile_q, tile_kv):
    total = 0
    for top in range(0, L_q, tile_q):
        bottom = min(top + tile_q, L_q)
        for left in range(0, L_kv, tile_kv):
            if left <= bottom - 1 + L_kv - L_q:
                total += (bottom - top) * (min(left + tile_kv, L_kv) - left)
    return total
"""

PAIRS = """

def scores_computed(L_q, L_kv, tile_q, tile_kv):
    return sum(i + 1 + L_kv - L_q for i in range(L_q))
"""
SIZE = "(bottom - top) * (min(left + tile_kv, L_kv) - left)"

RIGHT = {
    "q3": [
        ("m and l flat, O in place, tiles 32 x 128", FORWARD),
        ("one of the batch at a time, tiles 16 x 16", ONE_BY_ONE),
        ("tiles 128 x 16", NARROW),
        ("the maximum starts at -1e30", changed(FORWARD, '-float("inf"), **make)', "-1e30, **make)")),
        ("the largest tiles", changed(FORWARD, "= 32, 128", "= 128, 128")),
    ],
    "q4": [("tile by tile", SCORES)],
}

SAVE, ROWS = "save_for_backward(L,", "O[:, i:end] / l[:, :, None]"
FIRST, ZERO = 'm, l = rl.full((B, end - i), -float("inf")', "m, l = rl.full((B, end - i), 0.0"
BASE_2 = "1.4426950408889634"

WRONG = {
    "q3": [
        ("plain attention that saves the log-sum-exp", PLAIN),
        ("the library's attention", LIBRARY),
        ("in NumPy", IN_NUMPY),
        ("in NumPy, beside products for show", NUMPY_BESIDE_PRODUCTS),
        ("in NumPy, in tiles", NUMPY_TILES),
        ("two passes", TWO_PASSES),
        *mutants(
            FORWARD,
            (
                "the log-softmax of each tile",
                "top = rl.maximum(m, s.amax(dim=-1))",
                "of_tile = rl.log_softmax(s, -1); each = (s - of_tile)[..., 0]; top = rl.maximum(m, each)",
                "p = rl.exp(s - top[:, :, None])",
                "p = rl.exp(of_tile) * rl.exp(each - top)[:, :, None]",
            ),
            ("whole rows of scores", "(0, L_kv, TILE_KV)", "(0, L_kv, L_kv)", "j + TILE_KV", "j + L_kv"),
            ("scale 1/d", "1 / d ** 0.5", "1 / d"),
            ("no scale", "1 / d ** 0.5", "1.0"),
            ("O is not rescaled", "O[:, i:end] * a[:, :, None] +", "O[:, i:end] +"),
            ("l is not rescaled", "a * l +", "l +"),
            ("rescaled the wrong way", "rl.exp(m - top)", "rl.exp(top - m)"),
            ("divided at every tile", "                m = top", f"                O[:, i:end] = {ROWS}; m = top"),
            ("never divided", ROWS, "O[:, i:end]"),
            ("only whole tiles", "(0, L_kv, TILE_KV)", "(0, L_kv - TILE_KV + 1, TILE_KV)"),
            ("only whole tiles of queries", "(0, L_q, TILE_Q)", "(0, L_q - TILE_Q + 1, TILE_Q)"),
            ("padding counts", "p.sum(dim=-1)", "p.sum(dim=-1) + (j + TILE_KV - stop) * rl.exp(-top)"),
            ("the maximum starts at 0", FIRST, ZERO),
            *(
                (f"the maximum starts at {low}", FIRST, f"m, l = rl.full((B, end - i), {low}")
                for low in ("-1e4", "-1e9")
            ),
            ("the maximum of the tile alone", "rl.maximum(m, s.amax(dim=-1))", "s.amax(dim=-1)"),
            ("one maximum for the whole tile", "s.amax(dim=-1)", "s.amax(dim=-1).amax(dim=-1, keepdim=True)"),
            ("the maximum of the first of the batch", "s.amax(dim=-1)", "s.amax(dim=-1)[0]"),
            ("no maximum", FIRST, ZERO, "rl.maximum(m, s.amax(dim=-1))", "m"),
            ("keys and values in each other's place", "K[:, j:stop]", "V[:, j:stop]", "p @ V", "p @ K"),
            ("a scale for d = 64", "1 / d ** 0.5", "0.125"),
            ("an epsilon in the division", ROWS, "O[:, i:end] / (l + 1e-6)[:, :, None]"),
            ("the log-sum-exp in base 2", "m + rl.log(l)", f"(m + rl.log(l)) * {BASE_2}"),
            ("log2 of the sum", "rl.log(l)", f"rl.log(l) * {BASE_2}"),
            ("the log-sum-exp without the maximum", "m + rl.log(l)", "rl.log(l)"),
            ("the sum for the log-sum-exp", "m + rl.log(l)", "l"),
            ("saves a second row vector", SAVE, "save_for_backward(L * 1, L,"),
            ("saves K twice", "K, V, O)", "K, K * 1, O)"),
            ("saves something else for O", "K, V, O)", "K, V, Q * 1)"),
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
    "q4": [
        ("visible pairs only", SCORES + PAIRS),
        *mutants(
            SCORES,
            ("all scores", "if left <= bottom - 1 + L_kv - L_q:", "if True:"),
            ("whole tiles at the ends", SIZE, "tile_q * tile_kv"),
            ("tiles without the diagonal", "left <= bottom - 1", "left + tile_kv <= bottom - 1"),
            ("the first query beside the first key", " + L_kv - L_q", ""),
            ("off by one", "bottom - 1 +", "bottom +"),
            ("a quarter", "1 / 2", "1 / 4"),
            ("nothing is saved", "1 / 2", "1"),
        ),
    ],
}

MASK = """\
                if is_causal:
                    last = rl.arange(i, end, device=Q.device)[:, None] + (L_kv - L_q)
                    s = rl.where(rl.arange(j, stop, device=Q.device)[None] <= last, s, -float("inf"))
"""
TOP = "                top = rl.maximum(m, s.amax(dim=-1))\n"

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
        ("a query sees the next key", "[None] <= last", "[None] <= last + 1"),
        ("only the tiles where i = j are masked", "        if is_causal:\n", "        if is_causal and i == j:\n"),
        ("cut at the diagonal", "min(j + TILE_KV, L_kv)", "min(j + TILE_KV, end + L_kv - L_q if is_causal else L_kv)"),
        ("one tile too many", "j > end - 1", "j > end"),
        ("tiles by their first query", "j > end - 1 +", "j > i +"),
        ("the maximum of the first of the batch", "s.amax(dim=-1)", "s.amax(dim=-1)[0]"),
        ("no maximum", FIRST, ZERO, "rl.maximum(m, s.amax(dim=-1))", "m"),
        ("the mask after the maximum", f"{MASK}{TOP}", f"{TOP}{MASK}"),
        ("masked with 0", 's, -float("inf"))', "s, 0.0)"),
        *((f"masked with {low}", 's, -float("inf"))', f"s, {low})") for low in ("-1e4", "-1e6")),
        (
            "causal is ignored",
            "is_causal=False):\n        B",
            "is_causal=False):\n        is_causal = False\n        B",
        ),
    ),
]
