"""Answers to Part 1 of Lab 6, the mask and attention with heads, right and wrong."""

from labs.mutants import changed, mutants

MASK = """
def causal_mask(L_q, L_kv):
    return rl.ones(L_q, L_kv, dtype="bool", device=device).tril(L_kv - L_q)


def masked_softmax(scores, visible):
    hidden = rl.where(visible, rl.zeros_like(scores), float("-inf"))
    s = scores.masked_fill(~visible, 0.0) + hidden
    e = rl.exp(s - s.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
"""

LOWEST = """
def causal_mask(L_q, L_kv):
    rows, columns = np.arange(L_q)[:, None] + L_kv - L_q, np.arange(L_kv)
    return rl.tensor(columns <= rows, device=device)


def masked_softmax(scores, visible):
    return rl.softmax(rl.where(visible, scores, -3.4e38), dim=-1)
"""

LOGARITHM = """
def causal_mask(L_q, L_kv):
    return ~rl.ones(L_q, L_kv, dtype="bool", device=device).triu(L_kv - L_q + 1)


def masked_softmax(scores, visible):
    s = rl.where(visible, scores, -math.inf)
    return (s - s.logsumexp(-1, keepdim=True)).exp()
"""

EINSUM = """
def causal_attention(x, Wq, Wk, Wv, Wo, heads):
    B, L, D = x.shape
    q, k, v = ((x @ W).reshape(B, L, heads, W.shape[1] // heads) for W in (Wq, Wk, Wv))
    scores = rl.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
    y = rl.einsum("bhij,bjhd->bihd", masked_softmax(scores, causal_mask(L, L)), v)
    return y.reshape(B, L, -1) @ Wo
"""

HEADS = """
def causal_attention(x, Wq, Wk, Wv, Wo, heads):
    D_h = Wq.shape[1] // heads
    mask, y = causal_mask(x.shape[1], x.shape[1]), 0
    for h in range(heads):
        own = slice(h * D_h, (h + 1) * D_h)
        q, k, v = x @ Wq[:, own], x @ Wk[:, own], x @ Wv[:, own]
        scores = q @ k.transpose(1, 2) / D_h**0.5
        y = y + masked_softmax(scores, mask) @ v @ Wo[own]
    return y
"""

ONE_PRODUCT = """
def causal_attention(x, Wq, Wk, Wv, Wo, heads):
    B, L, D = x.shape
    all_three = (x @ rl.cat([Wq, Wk, Wv], dim=1)).reshape(B, L, 3, heads, -1).permute(2, 0, 3, 1, 4)
    q, k, v = all_three[0], all_three[1], all_three[2]
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores, causal_mask(L, L))
    return rl.cat([(weights[:, h] @ v[:, h]) for h in range(heads)], dim=2) @ Wo
"""

LIBRARY = """
def causal_attention(x, Wq, Wk, Wv, Wo, heads):
    return fused_attention(x, Wq, Wk, Wv, Wo, heads)
"""

NUMPY = """
def causal_attention(x, Wq, Wk, Wv, Wo, heads):
    B, L, _ = x.shape
    x, Wq, Wk, Wv, Wo = map(to_float64, (x, Wq, Wk, Wv, Wo))
    q, k, v = ((x @ W).reshape(B, L, heads, -1).swapaxes(1, 2) for W in (Wq, Wk, Wv))
    weights = np.exp(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])) * np.tri(L)
    y = (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(B, L, -1) @ Wo
    return rl.tensor(y, dtype="float32", device=device)
"""

KEPT_MASKS = """
import functools

@functools.cache
def causal_mask(L_q, L_kv):
    return rl.tensor([[j <= i + L_kv - L_q for j in range(L_kv)] for i in range(L_q)], dtype="bool", device=device)


def masked_softmax(scores, visible):
    scores = scores.clone()
    scores[..., ~visible] = float("-inf")
    return scores.softmax(-1)
"""

CLASS = """
class Attention:
    masks = {}

    def __call__(self, x, Wq, Wk, Wv, Wo, heads):
        L, d = x.shape[1], Wq.shape[1] // heads
        if L not in self.masks:
            self.masks[L] = causal_mask(L_q=L, L_kv=L)
        y = 0
        for h in range(heads):
            own = slice(h * d, (h + 1) * d)
            q, k, v = (x @ W[:, own] for W in (Wq, Wk, Wv))
            y = y + masked_softmax(q @ k.mT / math.sqrt(d), self.masks[L]) @ v @ Wo[own]
        return y


causal_attention = Attention()
"""

RIGHT = {
    "q1_1": [
        ("added to the scores", MASK),
        ("the lowest number", LOWEST),
        ("a logarithm of the sum", LOGARITHM),
        ("a mask from a list, kept", KEPT_MASKS),
    ],
    "q1_2": [
        ("a loop over the heads", HEADS),
        ("one product for Q, K and V", ONE_PRODUCT),
        ("einsum", EINSUM),
        ("a class that keeps masks, and a sum over heads", CLASS),
    ],
}

WRONG = {
    "q1_1": mutants(
        LOWEST,
        ("transposed", "columns <= rows", "(columns >= rows)"),
        ("a token does not see itself", "columns <= rows", "columns < rows"),
        ("the first query beside the first key", " + L_kv - L_q", ""),
        ("numbers for booleans", "(columns <= rows,", "((columns <= rows) * 1.0,"),
        *((f"hidden by {low}", "-3.4e38", low) for low in ("-10.0", "-1000.0", "-1e4", "-1e6")),
        ("-1e9 for what is hidden", "-3.4e38", "-1e9"),
        ("-1e30 is added", "rl.where(visible, scores, -3.4e38)", "scores + rl.where(visible, 0.0 * scores, -1e30)"),
        ("writes into the scores", "return rl.softmax", "scores += 1.0\n    return rl.softmax"),
        ("in NumPy", "    return rl.softmax(rl.where(visible, scores, -3.4e38), dim=-1)",
         "    e = np.exp(scores.numpy() - scores.numpy().max(-1, keepdims=True)) * visible.numpy()\n"
         "    return rl.tensor(e / e.sum(-1, keepdims=True))"),
        ("1e4 below the lowest score", "scores, -3.4e38", "scores, scores.amin() - 1e4"),
        ("an array for a mask", "return rl.tensor(columns <= rows, device=device)", "return columns <= rows"),
        ("a mask to be added", "rl.tensor(columns <= rows, device=device)",
         "rl.tensor(np.where(columns <= rows, 0.0, -np.inf))"),
        ("fp64 weights", "dim=-1)", "dim=-1).double()"),
        ("fp32 weights", "-3.4e38), dim=-1)", "-3.4e38).float(), dim=-1)"),
        ("causal, whatever the mask is", "rl.where(visible, scores",
         "rl.where(causal_mask(*scores.shape[-2:]), scores"),
        ("one maximum for all rows", "return rl.softmax(rl.where(visible, scores, -3.4e38), dim=-1)",
         "s = rl.where(visible, scores, -3.4e38)\n    e = rl.exp(s - s.max())\n    return e / e.sum(-1, keepdim=True)"),
        ("a mask for each number of queries", "def causal_mask(L_q, L_kv):\n",
         "kept = {}\ndef causal_mask(L_q, L_kv):\n    return kept.setdefault(L_q, mask_of(L_q, L_kv))\n"
         "def mask_of(L_q, L_kv):\n"),
        ("-1000 is added", "rl.where(visible, scores, -3.4e38)", "scores + rl.where(visible, 0.0 * scores, -1000.0)"),
        ("zeroed after the softmax", "rl.where(visible, scores, -3.4e38), dim=-1)",
         "scores, dim=-1) * visible.to(scores.dtype)"),
        ("zeroed and divided again", "    return rl.softmax(rl.where(visible, scores, -3.4e38), dim=-1)",
         "    w = rl.softmax(scores, dim=-1) * visible.to(scores.dtype)\n    return w / w.sum(-1, keepdim=True)"),
        ("softmax over the queries", "dim=-1", "dim=-2"),
    ),
    "q1_1_choice": [(f"needed by {letter}", f"mask_is_needed = {letter!r}") for letter in "acd"],
    "q1_2": [
        ("the library's attention", LIBRARY),
        ("in NumPy", NUMPY),
        *mutants(
            HEADS,
            ("scale of D", "D_h**0.5", "x.shape[-1]**0.5"),
            ("D_h of the width of x", "Wq.shape[1] // heads", "x.shape[2] // heads"),
            ("no scale", " / D_h**0.5", ""),
            ("softmax over the queries", "masked_softmax(scores, mask)",
             "rl.softmax(rl.where(mask, scores, float('-inf')), -2)"),
            ("no mask", "masked_softmax(scores, mask)", "rl.softmax(scores, -1)"),
            ("a token does not see itself", "masked_softmax(scores, mask)",
             "masked_softmax(scores, causal_mask(x.shape[1] + 1, x.shape[1])[:-1])"),
            ("the same head again", "own = slice(h * D_h, (h + 1) * D_h)", "own = slice(0, D_h)"),
            ("keys for values", "x @ Wv", "x @ Wk"),
            ("no gradient through the weights", "masked_softmax(scores, mask) @",
             "masked_softmax(scores, mask).detach() @"),
        ),
        *mutants(
            changed(ONE_PRODUCT, "rl.cat([(weights[:, h] @ v[:, h]) for h in range(heads)], dim=2)",
                    "(weights @ v).transpose(1, 2).reshape(B, L, -1)"),
            ("heads split without transpose", "reshape(B, L, 3, heads, -1).permute(2, 0, 3, 1, 4)",
             "reshape(B, L, 3, -1).permute(2, 0, 1, 3).reshape(3, B, heads, L, -1)"),
            ("no Wo", " @ Wo", ""),
            ("heads joined without transpose", ".transpose(1, 2).reshape(B, L, -1)", ".reshape(B, L, -1)"),
        ),
    ],
}  # fmt: skip
