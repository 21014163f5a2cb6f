# %% [markdown]
# ### The whole model on your machine (not graded)
#
# How close is T to a measured time? On a GPU the next cells run a stack with the shape of GPT-2 XL: 48 layers with
# random fp16 weights. On a CPU they run a small stack in fp32, with 4 layers and D = 160. The four cases of Part 3 run
# twice. Without a cache, one pass processes all L tokens. With a cache, a single decode step runs.
#
# `layer` consists of the operations that you have counted. The same code first runs on tensors without memory. That
# counts its FLOPs, its bytes and its peak memory, so we know which cases fit before we run them. If your machine's
# ceilings are not known yet, they are measured first, which takes half a minute or so.

# %%
if device == "cuda":
    D, H, layers, dtype, n = GPT2_XL["D"], GPT2_XL["H"], GPT2_XL["layers"], "float16", 2
else:
    D, H, layers, dtype, n = 160, 5, 4, "float32", 4


def make_stack(device):
    """The weights of all layers: products (outputs, inputs), and the two biases of the MLP."""
    products = {"q": (D, D), "k": (D, D), "v": (D, D), "output": (D, D), "up": (4 * D, D), "down": (D, 4 * D)}
    biases = {"up_bias": (4 * D,), "down_bias": (D,)}
    stack = []
    for _ in range(layers):
        weights = {name: rl.randn(*shape, dtype=dtype, device=device) for name, shape in {**products, **biases}.items()}
        stack.append({name: weight * weight.shape[-1] ** -0.5 for name, weight in weights.items()})
    return stack


def layer(x, weights, cache, visible):
    """x (B, L, D) through attention and the MLP. A cache is K and V (B, H, L, D/H), whose last token is the new one."""
    B, L, _ = x.shape
    q, k, v = (rl.linear(x, weights[name]).reshape(B, L, H, D // H).transpose(1, 2) for name in "qkv")
    if cache:
        for held, new in zip(cache, (k, v), strict=True):
            held[:, :, -1:] = new
        k, v = cache
    mixed = unfused_mha(q, k, v, visible).transpose(1, 2).reshape(B, L, D)
    x = rl.linear(mixed, weights["output"])
    return rl.linear(rl.linear(x, weights["up"], weights["up_bias"]), weights["down"], weights["down_bias"])


def make_case(stack, B, L, has_cache, device):
    """A function of no arguments that runs every layer on the same x, and the bytes of the cache."""
    options = {"dtype": dtype, "device": device}
    x, visible, caches = rl.randn(B, 1 if has_cache else L, D, **options), None, [None] * layers
    if has_cache:
        caches = [[rl.zeros(B, H, L, D // H, **options) for _ in "kv"] for _ in stack]
    else:
        visible = rl.attention_mask(L, L, device=device)

    def run():
        for weights, cache in zip(stack, caches, strict=True):
            layer(x, weights, cache, visible)

    return run, sum(held.nbytes for cache in caches if cache for held in cache)


# %%
ceilings = rl.machine.measure(device)
cases = [(B, L, has_cache) for has_cache in (False, True) for B in (1, 64) for L in (32, 1024)]
budget_s = 10 if device == "cuda" else 1  # a case that takes longer by T is not run
dry, stack, points, rows = make_stack("meta"), make_stack(device), [], []
for B, L, has_cache in cases:
    run, cache_bytes = make_case(dry, B, L, has_cache, "meta")
    with rl.count() as cost:
        run()
    moved = cost.bytes_read + cost.bytes_written
    T_s = max(cost.flops / (1e12 * ceilings.peak_tflop_s[dtype]), moved / (1e12 * ceilings.bandwidth_tb_s))
    needs, there = cache_bytes + 1.1 * cost.peak_bytes, rl.memory.available(device)
    name, series = f"B = {B}, L = {L}", "with a cache" if has_cache else "without a cache"
    if needs > there or T_s > budget_s:
        too_large = f"not run: needs {needs / 1e9:.1f} GB, and {there / 1e9:.1f} GB are free"
        result = [too_large if needs > there else f"not run: T is longer than {budget_s} s", ""]
        points.append(rl.roofline.Point(name, cost.flops / moved, series=series))
    else:
        run, _ = make_case(stack, B, L, has_cache, device)
        timing = rl.latency(run, warmup=1, repeat=5 if T_s < 0.2 else 1, l2="cold")
        result = [f"{timing.median_ms:.2f}", f"{timing.median_ms / (1e3 * T_s):.2f}"]
        points.append(rl.roofline.measured_point(name, cost, timing, series))
        del run
    on_paper = (decode_model_bytes if has_cache else model_bytes)(B, L, D, H, layers, n)
    figures = (f"{cost.flops / 1e9:.3f}", f"{on_paper / 1e9:.4f}", f"{moved / 1e9:.4f}", f"{1e3 * T_s:.2f}")
    rows.append((series, B, L, *figures, *result))
head = ("", "B", "L", "GFLOP", "GB by formula", "GB counted", "T, ms", "measured, ms", "times T")
Table(head, rows, f"{layers} layers, D = {D}, H = {H}, {dtype}, by the measured ceilings of this machine")

# %%
rl.plots.plot_roofline(ceilings, points, dtype=dtype, title=f"{layers} layers, D = {D}, H = {H}, {dtype}")

# %% [markdown]
# The runtime counts more bytes than your formulas do. Besides the scaling, each bias is added in a launch of its own (a
# GPU adds it in the product, and moves less), and the results of the heads are copied back side by side. In a decode
# step the weights are so much larger that this hardly shows.
#
# T is a lower bound. It assumes that every operation runs at the measured ceilings of the machine, and that arithmetic
# and memory traffic overlap completely. So the column "times T" shows how much faster this machine could be *with these
# operations*. Where is it largest? In small cases most of the time goes into launches: a decode step launches about as
# many kernels as a prefill of 1024 tokens. Lab 1 shows what helps. A value below 1 is possible if the weights or the
# scores are small enough to stay in a cache of the processor.
#
# A hollow marker is a case that did not run, because it takes too long or does not fit into memory. FLOPs and bytes
# moved tell you how *fast* a case can be. The bytes held tell you whether it can run at all.
