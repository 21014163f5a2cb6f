"""Answers to 3.1 and 3.2 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import changed, mutants

ATTENTION = """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    if attn_mask is not None:
        if str(attn_mask.dtype) == "bool":
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
    weights = rl.softmax(scores, dim=-1)
    return weights @ v
"""

OWN_SOFTMAX = """
    scores = rl.exp(scores - rl.amax(scores, dim=-1, keepdim=True))
    weights = scores / scores.sum(dim=-1, keepdim=True)
"""

BY_HEADS = """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    shape = (*q.shape[:3], k.shape[2])
    if attn_mask is None:
        attn_mask = rl.zeros(1, device=q.device)
    if attn_mask.dtype == "bool":
        attn_mask = rl.where(attn_mask, rl.zeros(1, device=q.device), -1e9)
    attn_mask = attn_mask.expand(*shape)
    batches = []
    for b in range(q.shape[0]):
        heads = []
        for h in range(q.shape[1]):
            scores = rl.matmul(q[b, h], k[b, h].transpose(0, 1)) / np.sqrt(q.shape[3]) + attn_mask[b, h]
            heads.append(rl.matmul(rl.softmax(scores), v[b, h]))
        batches.append(rl.stack(heads))
    return rl.stack(batches)
"""

BY_EINSUM = """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    scores = rl.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    if attn_mask is not None and attn_mask.dtype == "bool":
        attn_mask = rl.where(attn_mask, rl.zeros(1, device=q.device), float("-inf"))
    if attn_mask is not None:
        scores = scores + attn_mask
    return rl.einsum("bhqk,bhkd->bhqd", rl.softmax(scores), v)
"""

NUMPY = """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    Q, K, V = (x.cpu().numpy() for x in (q, k, v))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if attn_mask is not None:
        mask = attn_mask.cpu().numpy()
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return rl.tensor(weights / weights.sum(-1, keepdims=True) @ V, dtype=q.dtype, device=q.device)
"""

SCALED = "(q / q.shape[-1] ** 0.5)"
FILLED = 'scores.masked_fill(~attn_mask, float("-inf"))'
SOFTMAX = "    weights = rl.softmax(scores, dim=-1)\n"

SIZES = """
    D, I = config["hidden_size"], config["intermediate_size"]
    H, H_kv, D_h = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
"""

MODULE_MAC = f"""
def calc_attn_module_mac(batch_size, query_len, kv_len, config):{SIZES}
    wide, narrow = H * D_h, H_kv * D_h
    a_token = D * wide + D * narrow + D * narrow + wide * D
    return batch_size * query_len * (a_token + 2 * kv_len * wide)
"""

MODULE_IO = f"""
def calc_attn_module_io(batch_size, query_len, kv_len, config):{SIZES}
    def product(rows, inner, columns, count=1, weights=1):
        return count * (rows * inner + rows * columns) + weights * inner * columns

    tokens, heads, narrow = batch_size * query_len, batch_size * H, batch_size * H_kv
    elements = product(tokens, D, H * D_h) + product(tokens, D, H_kv * D_h) + product(tokens, D, H_kv * D_h)
    elements += product(query_len, D_h, kv_len, count=heads, weights=narrow)
    elements += 5 * heads * query_len * kv_len
    elements += product(query_len, kv_len, D_h, count=heads, weights=narrow)
    elements += product(tokens, H * D_h, D)
    return 2 * elements
"""

IO = """
def calc_attn_io(B, H, L_q, L_kv, D_h):
    return 8 * B * H * D_h * (L_q + L_kv) + 28 * B * H * L_q * L_kv
"""


def attn_mac(expression):
    return f"def calc_attn_mac(B, H, L_q, L_kv, D_h):\n    return {expression}\n"


RIGHT = {
    "q3_1": [
        ("q scaled, masked_fill", ATTENTION),
        ("a softmax of its own", changed(ATTENTION, SOFTMAX, OWN_SOFTMAX)),
        ("head by head, a finite mask", BY_HEADS),
        ("einsum", BY_EINSUM),
    ],
    "q3_1_mac": [("in one", attn_mac("B * H * L_q * 2 * D_h * L_kv")), ("in FLOPs, halved", attn_mac(
        "sum(2 * L_q * L_kv * D_h for head in range(B * H) for product in range(2)) // 2"
    ))],
    "b3_1": [("by token", MODULE_MAC), ("from calc_attn_mac", f"""
def calc_attn_module_mac(batch_size, query_len, kv_len, config):{SIZES}
    projected = sum(D * heads * D_h for heads in (H, H_kv, H_kv, H)) * batch_size * query_len
    return projected + (2 * batch_size * H * query_len * kv_len * D_h)
""")],
    "q3_2": [("simplified", IO), ("by tensors", """
def calc_attn_io(B, H, L_q, L_kv, D_h):
    read = B * H * ((L_q + L_kv) * D_h + (1 + 1 + 1 + 1) * L_q * L_kv + L_kv * D_h)
    written = B * H * (3 * L_q * L_kv + L_q * D_h)
    return (read + written) * 4
""")],
    "b3_2": [("products by their sizes", MODULE_IO), ("a list", f"""
def calc_attn_module_io(batch_size, query_len, kv_len, config):{SIZES}
    T = batch_size * query_len
    weights = 2 * D * D_h * (H + H_kv)
    per_token = 4 * D + 4 * H * D_h + 2 * H_kv * D_h + 7 * H * kv_len
    return 2 * (weights + T * per_token + 2 * batch_size * kv_len * H_kv * D_h)
""")],
}  # fmt: skip

WRONG = {
    "q3_1": [
        ("the library's", """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    return rl.attention(q, k, v, attn_mask)
"""),
        ("the library's rung of composed operations", """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    return rl.attention(q, k, v, attn_mask, variant="v0_composed")
"""),
        ("in NumPy", NUMPY),
        ("standard_attention, which has no masks", """
def scaled_dot_product_attention(q, k, v, attn_mask=None):
    return standard_attention(q, k, v)
"""),
        *mutants(
            ATTENTION,
            ("no scale", SCALED, "q"),
            ("scaled by D_h", SCALED, "(q / q.shape[-1])"),
            ("scaled by the length", SCALED, "(q / k.shape[-2] ** 0.5)"),
            ("softmax over the queries", "dim=-1", "dim=-2"),
            ("no maximum subtracted", "rl.softmax(scores, dim=-1)",
             "rl.exp(scores) / rl.exp(scores).sum(dim=-1, keepdim=True)"),
            ("the maximum of everything", "rl.softmax(scores, dim=-1)",
             "rl.exp(scores - scores.max()) / rl.exp(scores - scores.max()).sum(dim=-1, keepdim=True)"),
            ("weights not normalised", "rl.softmax(scores, dim=-1)",
             "rl.exp(scores - rl.amax(scores, dim=-1, keepdim=True))"),
            ("True is hidden", "~attn_mask", "attn_mask"),
            ("hidden scores are 0", FILLED, "scores.masked_fill(~attn_mask, 0.0)"),
            ("hidden scores are -100", FILLED, "scores.masked_fill(~attn_mask, -100.0)"),
            ("the mask added as 0 and 1", FILLED, "scores + attn_mask.to('float32')"),
            ("additive masks multiplied", "scores + attn_mask", "scores * attn_mask"),
            ("additive masks ignored", "scores + attn_mask", "scores"),
            ("additive masks scaled too", "scores + attn_mask", "scores + attn_mask / q.shape[-1] ** 0.5"),
            ("masks ignored", "if attn_mask is not None", "if False"),
            ("masks of two dimensions only", "    if attn_mask is not None:\n",
             "    if attn_mask is not None:\n        attn_mask = attn_mask.reshape(*scores.shape[-2:])\n"),
            ("boolean masks after softmax", FILLED, "scores", SOFTMAX, SOFTMAX +
             "    if attn_mask is not None and attn_mask.dtype == 'bool':\n        weights = weights * attn_mask\n"),
            ("always causal", SOFTMAX,
             "    scores = rl.where(rl.attention_mask(*scores.shape[-2:], device=q.device), scores, -1e9)\n" + SOFTMAX),
            ("in half precision", "    return", "    q, weights, v = q, weights.half(), v.half()\n    return"),
            ("heads beside each other", "weights @ v", "(weights @ v).transpose(1, 2)"),
            ("q scaled in place", "scores = " + SCALED + " @", "q /= q.shape[-1] ** 0.5; scores = q @"),
            *((f"hidden keys get {low}", FILLED, FILLED.replace('float("-inf")', low)) for low in ("-1e3", "-1e4")),
            ("the mask written into", 'scores.masked_fill(~attn_mask, float("-inf"))',
             'scores.masked_fill(~attn_mask, float("-inf")); attn_mask.fill_(1)'),
            ("one more product", "    return", "    q @ k.mT\n    return"),
            ("queries and keys of one length", SCALED, "q.reshape(*k.shape) / q.shape[-1] ** 0.5"),
        ),
    ],
    "q3_1_mac": [
        ("one product", attn_mac("B * H * L_q * L_kv * D_h")),
        ("FLOPs", attn_mac("4 * B * H * L_q * L_kv * D_h")),
        ("with softmax", attn_mac("B * H * L_q * L_kv * (2 * D_h + 1)")),
        ("L_q squared", attn_mac("2 * B * H * L_q * L_q * D_h")),
        ("one head", attn_mac("2 * B * L_q * L_kv * D_h")),
        ("half of it, causal", attn_mac("B * H * L_q * (L_kv + 1) * D_h")),
        ("a float", attn_mac("2.0 * B * H * L_q * L_kv * D_h")),
        ("32 bits", attn_mac("2 * B * H * L_q * L_kv * D_h % 2**32")),
        ("by running it", """
def calc_attn_mac(B, H, L_q, L_kv, D_h):
    q, k = rl.empty(B, H, L_q, D_h, device="meta"), rl.empty(B, H, L_kv, D_h, device="meta")
    with rl.count() as c:
        rl.matmul(rl.matmul(q, k.mT), k)
    return c.macs
"""),
    ],
    "b3_1": mutants(
        MODULE_MAC,
        ("cached keys projected again", "D * narrow + D * narrow", "2 * D * narrow * kv_len // query_len"),
        ("a key head for each query head", "H_kv * D_h", "H * D_h"),
        ("attention of the key heads", "2 * kv_len * wide", "2 * kv_len * narrow"),
        ("no o_proj", " + wide * D", ""),
        ("heads times head size is D", "wide, narrow = H * D_h", "wide, narrow = D"),
        ("no attention", "2 * kv_len * wide", "0"),
        ("no projections", "a_token = ", "a_token = 0 * "),
        ("one product of attention", "2 * kv_len", "kv_len"),
        ("one of the batch", "return batch_size *", "return"),
        ("FLOPs", "return", "return 2 *"),
        ("a float", "return", "return 1.0 *"),
        ("the sizes of the 270M model", SIZES, "\n    config = GEMMA3_270M_CONFIG" + SIZES),
        ("of all layers", "return", "return config['num_hidden_layers'] *"),
        ("causal", "2 * kv_len", "kv_len + 1"),
    ),
    "q3_2": [
        *mutants(
            IO,
            ("softmax fused", "28 *", "16 *"),
            ("softmax in three passes", "28 *", "20 *"),
            ("a safe softmax", "28 *", "40 *"),
            ("scores never in memory", "28 *", "0 *"),
            ("scores written once", "28 *", "24 *"),
            ("in 16 bit", "return 8 *", "return 4 *", "28 *", "14 *"),
            ("elements", "return 8 *", "return 2 *", "28 *", "7 *"),
            ("v as long as q", "(L_q + L_kv)", "(1.5 * L_q + 0.5 * L_kv)"),
            ("as many keys as queries", "L_kv)", "L_q)", "L_q * L_kv", "L_q * L_q"),
            ("one head", "28 * B * H", "28 * B"),
            ("the result is not written", "return", "return -4 * B * H * L_q * D_h +"),
            ("a float", "return", "return 1.0 *"),
        ),
        ("by running it", """
def calc_attn_io(B, H, L_q, L_kv, D_h):
    rl.zeros(1)
    return 8 * B * H * D_h * (L_q + L_kv) + 28 * B * H * L_q * L_kv
"""),
    ],
    "b3_2": mutants(
        MODULE_IO,
        ("in fp32", "return 2 *", "return 4 *"),
        ("elements", "return 2 *", "return"),
        ("keys repeated for each query head", "batch_size * H_kv\n", "batch_size * H\n"),
        ("scores of the key heads", "query_len, batch_size * H,", "query_len, batch_size * H_kv,"),
        ("no weights", "weights * inner * columns", "(weights > 1) * weights * inner * columns"),
        ("weights for each sequence", "product(tokens, D, H * D_h)", "product(tokens, D, H * D_h, weights=batch_size)"),
        ("softmax fused", "elements += 5 *", "elements += 2 *"),
        ("softmax left out", "elements += 5 *", "elements += 0 *"),
        ("x read once for q, k and v", "return 2 * ", "return 2 * (-2 * tokens * D) + 2 * "),
        ("no v_proj", " + product(tokens, D, H_kv * D_h)\n", "\n"),
        ("no o_proj", "    elements += product(tokens, H * D_h, D)\n", ""),
        ("cached keys projected again", "product(tokens, D, H_kv * D_h) +",
         "product(batch_size * kv_len, D, H_kv * D_h) +"),
        ("new keys only", "kv_len, config):", "kv_len, config):\n    kv_len = query_len\n"),
        ("heads times head size is D", "product(tokens, D, H * D_h)", "product(tokens, D, D)"),
        ("of all layers", "return 2 *", "return 2 * config['num_hidden_layers'] *"),
        ("a float", "return 2 *", "return 2.0 *"),
    ),
}  # fmt: skip
