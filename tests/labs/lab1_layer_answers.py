"""Answers to b4.2 of Lab 1 beside the reference: RIGHT ones must get full points, WRONG ones must lose some."""

from labs.mutants import mutants

BY_PROFILE = """
def decode_profile(batch_size, length, config):
    room = length + 10
    model = rl.nn.Gemma3DecoderLayer(rl.nn.Gemma3Config(**config), fused=False, device=device)
    keys = initialize_kv_cache(batch_size, room, config, device=device)
    angles = get_position_embeddings(room, config, device=device)
    prompt = create_prefill_inputs(batch_size, length, config, device=device)
    multi_layer_prefill_forward([model], prompt, angles, keys)
    with rl.profile(schedule=default_schedule) as prof:
        for step in range(10):
            token = create_decode_inputs_with_cache(batch_size, config, device=device)
            multi_layer_decode_forward([model], token, angles, keys)
            prof.step()
    return prof

def decode_ranges(batch_size, length, config):
    found = {}
    kernels = decode_profile(batch_size, length, config).kernels
    kernels = [kernel for kernel in kernels if kernel.step == kernels[-1].step]
    for kernel in kernels:
        name = kernel.range.rsplit("/")[-1]
        if name:
            old = found.get(name, {"launches": 0, "bytes": 0})
            moved = kernel.cost.bytes_read + kernel.cost.bytes_written
            found[name] = {"launches": old["launches"] + 1, "bytes": old["bytes"] + moved}
    return found
"""

WITHOUT_HELPERS = """
def decode_profile(batch_size, length, config):
    sizes = rl.nn.Gemma3Config(**config)
    layer = rl.nn.Gemma3DecoderLayer(sizes, fused=False, device=device)
    cache = rl.nn.KVCache(sizes, batch_size, 4096, device=device)
    rotary = rl.nn.RotaryEmbedding(1e4, sizes.head_dim, device=device)
    x = rl.randn(batch_size, length, sizes.hidden_size, dtype="bfloat16", device=device)
    layer(x, *rotary(0, length), cache.layer(0))
    cache.advance(length)
    with rl.profile(schedule=default_schedule) as prof:
        for _ in range(10):
            layer(x[:, :1].contiguous(), *rotary(cache.length, 1), cache.layer(0))
            cache.advance(1)
            prof.step()
    return prof

def decode_ranges(batch_size, length, config):
    prof = decode_profile(batch_size, length, config)
    kernels = [k for k in prof.kernels if k.range and k.step == prof.kernels[-1].step]
    named = {name: [k for k in kernels if k.range.endswith(name)] for name in {k.range.split("/")[-1] for k in kernels}}
    return {name: {"launches": len(ks), "bytes": sum(k.cost.bytes for k in ks)} for name, ks in named.items()}
"""

READ = """
def read_step(ranges):
    by = {key: {name: part[key] for name, part in ranges.items()} for key in ("launches", "bytes")}
    total = sum(by["launches"].values())
    inside = sum(number for name, number in by["launches"].items() if "_proj" in name)
    return {
        "most_launches": sorted(ranges, key=by["launches"].get)[-1],
        "most_bytes": sorted(ranges, key=by["bytes"].get)[-1],
        "share_outside_proj": 1 - inside / total,
    }
"""

VALUES = "crossing_length = {length}\nwhy_attention_grows = {why!r}\n"


def values(length=2547, why="c"):
    return VALUES.format(length=length, why=why)


RIGHT = {
    "b4_2": [("another way to add up", BY_PROFILE), ("without the helpers", WITHOUT_HELPERS)],
    "b4_2_read": [("sorted", READ)],
    "b4_2_values": [("keys and values against the weights", values(2565)), ("by measurement", values(2530))],
}

ONE_STEP = "    kernels = [kernel for kernel in kernels if kernel.step == kernels[-1].step]\n"
GROWS = "            multi_layer_decode_forward([model], token, angles, keys)\n"
MOVED = "kernel.cost.bytes_read + kernel.cost.bytes_written"

WRONG = {
    "b4_2": mutants(
        BY_PROFILE,
        ("no schedule", "schedule=default_schedule", ""),
        ("another schedule", "default_schedule", "rl.profiler.schedule(wait=1, warmup=3, active=5)"),
        ("all six steps", ONE_STEP, ""),
        ("the first recorded step", "kernels[-1].step", "kernels[0].step"),
        ("a cache that never grows", GROWS, GROWS + "            keys.advance(-1)\n"),
        ("an empty cache", "    multi_layer_prefill_forward([model], prompt, angles, keys)\n", ""),
        ("without a cache", "multi_layer_decode_forward([model], token, angles, keys)",
         "multi_layer_decode_forward([model], prompt, angles)"),
        ("a prefill in each step", GROWS, "            keys.reset()\n            "
         "multi_layer_prefill_forward([model], prompt, angles, keys)\n"),
        ("one text", "create_decode_inputs_with_cache(batch_size", "create_decode_inputs_with_cache(1",
         "create_prefill_inputs(batch_size", "create_prefill_inputs(1", "initialize_kv_cache(batch_size",
         "initialize_kv_cache(1"),
        ("always the 270M layer", "    room = length + 10\n",
         '    room = length + 10\n    config = {**GEMMA3_270M_CONFIG, "num_hidden_layers": 1}\n'),
        ("bytes read only", MOVED, "kernel.cost.bytes_read"),
        ("FLOPs for bytes", MOVED, "kernel.cost.flops"),
        ("the launch in no range", "        if name:\n", "        if True:\n"),
        ("whole names", 'kernel.range.rsplit("/")[-1]', "kernel.range"),
        ("the outer ranges", 'kernel.range.rsplit("/")[-1]', 'kernel.range.split("/")[0]'),
        ("one launch a range", 'old["launches"] + 1', "1"),
    ),
    "b4_2_read": mutants(
        READ,
        ("inside for outside", "1 - inside / total", "inside / total"),
        ("percent", "1 - inside / total", "100 * (1 - inside / total)"),
        ("share of the ranges", "sum(number for name, number in", "sum(1 for name, number in",
         'sum(by["launches"].values())', "len(ranges)"),
        ("share of the bytes", 'sum(by["launches"].values())', 'sum(by["bytes"].values())',
         'in by["launches"].items()', 'in by["bytes"].items()'),
        ("launches for bytes", 'key=by["bytes"].get', 'key=by["launches"].get'),
        ("the fewest", "[-1]", "[0]"),
        ("always attention", 'sorted(ranges, key=by["launches"].get)[-1]', '"attn_op"'),
        ("a count", "1 - inside / total", "total - inside"),
    ),
    "b4_2_values": [
        ("keys only", values(5130)),
        ("all weights of the layer", values(10900)),
        ("for eight texts", values(309)),
        ("four key heads", values(641)),
        ("in fp32", values(1282)),
        ("not a number", values(None)),
        *((f"grows by {letter}", values(why=letter)) for letter in "abd"),
    ],
}  # fmt: skip
