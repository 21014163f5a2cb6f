"""Answers to questions 5.1 and b5.2 of Lab 4, the runtime against paper and what a token keeps, right and wrong."""

from labs.mutants import mutants

DIFFERENCES = """
def extra_flops(B, L, D, H):
    scores = B * H * L * L
    return (5 - 3) * scores + (0 - 1) * scores

def extra_bytes(B, L, D, H, n):
    scores = B * H * L * L
    scaling = 2 * n * scores
    return scaling + L * L

fused_launches = 1
fused_intensity = 8232.0
fused_bound = "compute"

def fused_bytes(B, L, D, H, n):
    return n * (3 * B * L * D + B * L * D)
"""

COUNTED = """
def count_it(fn, B, L, D, H, n, *more):
    dtype = {2: "float16", 4: "float32", 8: "float64"}[n]
    q, k, v = [rl.empty(B, H, L, D // H, dtype=dtype, device="meta") for _ in range(3)]
    with rl.count() as c:
        fn(q, k, v, *more)
    return c

def causal(L):
    return rl.empty(L, L, dtype="bool", device="meta")

def extra_flops(B, L, D, H):
    return count_it(unfused_mha, B, L, D, H, 4, causal(L)).flops - (4 * B * L**2 * D + 5 * H * B * L**2)

def extra_bytes(B, L, D, H, n):
    c = count_it(unfused_mha, B, L, D, H, n, causal(L))
    return c.bytes_read + c.bytes_written - n * (4 * B * L * D + 6 * H * B * L**2)

fused_launches = count_it(rl.attention, 1, 8, 8, 2, 4).launches
c = count_it(rl.attention, 16, 16384, 4096, 16, 2)
fused_intensity = c.flops / (c.bytes_read + c.bytes_written)
fused_bound = "compute" if fused_intensity > A100.flop_s / A100.byte_s else "memory"

def fused_bytes(B, L, D, H, n):
    c = count_it(rl.attention, B, L, D, H, n)
    return c.bytes_read + c.bytes_written
"""

AGAINST_EARLIER = """
def counters(B, L, D, H, dtype):
    x = [rl.zeros(B, H, L, D // H, dtype=dtype, device="meta") for _ in "qkv"]
    seen = rl.attention_mask(L, L, device="meta")
    with rl.count() as c:
        unfused_mha(*x, seen)
    return c

def extra_flops(B, L, D, H):
    return counters(B, L, D, H, "float16").flops - mha_flops(B, L, D, H)

def extra_bytes(B, L, D, H, n):
    c = counters(B, L, D, H, {2: "bfloat16", 4: "float32", 8: "float64"}[n])
    return c.bytes_read + c.bytes_written - mha_bytes(B, L, D, H, n)

fused_launches, fused_bound = 1, "compute"
fused_intensity = mha_flops(16, 16384, 4096, 16) / (8 * 16 * 16384 * 4096)

def fused_bytes(B, L, D, H, n):
    return 4 * n * B * L * D
"""

BY_THE_HELPERS = """
def extra_flops(B, L, D, H):
    visible = rl.empty(L, L, dtype="bool", device="meta")
    return counted(unfused_mha, B, L, D, H, "float32", visible).flops - mha_flops(B, L, D, H)

def extra_bytes(B, L, D, H, n):
    dtype, visible = {2: "float16", 4: "float32"}[n], rl.empty(L, L, dtype="bool", device="meta")
    return moved_bytes(counted(unfused_mha, B, L, D, H, dtype, visible)) - mha_bytes(B, L, D, H, n)

def fused_bytes(B, L, D, H, n):
    return moved_bytes(counted(rl.attention, B, L, D, H, {2: "float16", 4: "float32"}[n]))

fused = counted(rl.attention, 16, 16384, 4096, 16, "float16")
fused_launches, fused_intensity = fused.launches, fused.flops / moved_bytes(fused)
fused_bound = "compute"
"""

KEPT = """
def kv_bytes_per_token(config):
    numbers = config["num_key_value_heads"] * config["head_dim"]
    return 2 * numbers * 2 * config["num_hidden_layers"]

grouped_gain = 4
llama_batch = 15
"""

DRY = """
def kv_bytes_per_token(config):
    shape = (1, config["num_key_value_heads"], 1, config["head_dim"])
    kept = 0
    for _ in range(config["num_hidden_layers"]):
        kept += sum(rl.empty(*shape, dtype="float16", device="meta").nbytes for _ in "kv")
    return kept

llama = CONFIGS["Llama 3 8B"]
grouped_gain = llama["num_attention_heads"] / llama["num_key_value_heads"]
llama_batch = int(np.ceil(2 * 8030261248 / (8192 * kv_bytes_per_token(llama))))
"""

RIGHT = {
    "q5_1": [
        ("by formula", DIFFERENCES),
        ("counted", COUNTED),
        ("counted, less the functions of 1.4", AGAINST_EARLIER),
        ("counted by the helpers of the set-up", BY_THE_HELPERS),
    ],
    "b5_2": [("by formula", KEPT), ("a cache without memory", DRY)],
}

WRONG = {
    "q5_1": mutants(
        DIFFERENCES,
        ("no difference in FLOPs", "(5 - 3) * scores + (0 - 1) * scores", "0"),
        ("the mask is work", "(0 - 1) * scores", "0"),
        ("scaling is extra work", "(0 - 1) * scores", "scores"),
        ("no difference in bytes", "scaling + L * L", "0"),
        ("the mask at n bytes", "scaling + L * L", "scaling + n * L * L"),
        ("a mask for each head of each sequence", "scaling + L * L", "scaling + scores"),
        ("the mask is not read", "scaling + L * L", "scaling"),
        ("scaling only reads", "scaling = 2 * n * scores", "scaling = n * scores"),
        ("the scores of one head", "scores = B * H * L * L\n    scaling", "scores = B * L * L\n    scaling"),
        ("scores in the fused bytes", "+ B * L * D)", "+ B * L * D + 2 * H * B * L * L)"),
        ("the output of the fused kernel is not written", " + B * L * D)", ")"),
        ("five launches", "fused_launches = 1", "fused_launches = 5"),
        ("only visible pairs", "8232.0", "4116.25"),
        ("the intensity of 1.4.5", "8232.0", "84.866"),
        ("fp32", "8232.0", "4116.0"),
        ("memory", '"compute"', '"memory"'),
    ),
    "b5_2": mutants(
        KEPT,
        ("takes the sizes out of the configuration", 'config["head_dim"]', 'config.pop("head_dim")'),
        ("query heads", 'config["num_key_value_heads"]', 'config["num_attention_heads"]'),
        ("the width", 'config["num_key_value_heads"] * config["head_dim"]', 'config["hidden_size"]'),
        ("the size of a head is D/H", 'config["head_dim"]',
         '(config["hidden_size"] // config["num_attention_heads"])'),
        ("keys alone", "2 * numbers * 2", "numbers * 2"),
        ("one layer", ' * config["num_hidden_layers"]', ""),
        ("fp32", "2 * numbers * 2", "2 * numbers * 4"),
        ("grouped the other way", "grouped_gain = 4", "grouped_gain = 8"),
        ("nothing gained", "grouped_gain = 4", "grouped_gain = 1"),
        ("one user too few", "llama_batch = 15", "llama_batch = 14"),
        ("query heads kept", "llama_batch = 15", "llama_batch = 4"),
        ("a number with a fraction", "llama_batch = 15", "llama_batch = 14.957"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q5_1": "five launches|only visible pairs|the intensity of 1.4.5|fp32|memory",
    "b5_2": "grouped the other way|nothing gained|one user too few|query heads kept",
}
