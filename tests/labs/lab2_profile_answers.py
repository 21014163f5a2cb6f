"""Answers to question 1.1.4 of Lab 2, profiles, right and wrong."""

from labs.mutants import changed, mutants

STEPS = """
def step(model, input_ids, optimizer, name):
    with contextlib.ExitStack() as stack:
        if name:
            stack.enter_context(rl.range(name))
        with rl.range("forward"):
            logits = model(input_ids)
            loss = logits.mean()
            rl.synchronize()  # forward
        with rl.range("backward"):
            loss.backward()
            rl.synchronize()  # backward
        if optimizer:
            with rl.range("optimizer"):
                optimizer.step()
                rl.synchronize()  # optimizer
        model.zero_grad()

def annotated_steps(model, input_ids, warmup_steps, measure_steps, optimizer=None):
    with rl.range("warmup"):
        for _ in range(warmup_steps):
            step(model, input_ids, optimizer, "")
    with rl.range("measurement"):
        for i in range(measure_steps):
            step(model, input_ids, optimizer, f"step_{i}")

def busy_and_gaps(kernels):
    ends = [kernel["start_us"] + kernel["duration_us"] for kernel in kernels]
    span = max(ends) - min(kernel["start_us"] for kernel in kernels)
    busy = sum(kernel["duration_us"] for kernel in kernels)
    return {"busy_us": busy, "gap_us": span - busy, "span_us": span}
"""

WAITS = """
host_bound_lengths, what_a_sum_misses = (256, 128), "b"
"""

COUNTS = """
def launches_of_forward(config, batch_size, length):
    model = rl.nn.TransformerLM(
        rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=length), device="meta")
    with rl.no_grad(), rl.count() as c:
        for _ in range(1):
            model(rl.zeros(batch_size, length, dtype="int64", device=rl.meta("cpu")))
    fills = c.by_op["fill"].launches if "fill" in c.by_op else 0
    return {"products": c.by_op["matmul"].launches, "all": c.launches - fills}

def dominant_kernel(kernels, forwards):
    names = {kernel["name"] for kernel in kernels}
    us = {name: sum(k["duration_us"] for k in kernels if k["name"] == name) for name in names}
    name = max(us, key=us.get)
    count = [k["name"] for k in kernels].count(name)
    return {"name": name, "share": us[name] / sum(us.values()), "launches": count // forwards}

def ffn_share(config, vocab_size, length):
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    ffn = n * 6 * length * D * I
    return ffn / forward_flops(config, vocab_size, 1, length)
"""

CLASSES = """
def classify(kernel):
    op, name = kernel["op"].replace("_backward", ""), kernel["name"].lower()
    if op:
        for one, ops in {"gemm": ("matmul", "linear"), "softmax": ("softmax",), "norm": ("rms_norm", "layer_norm"),
                         "embedding": ("embedding",), "copy": ("copy", "cat", "fill"),
                          "optimizer": ("adamw",)}.items():
            if op in ops:
                return one
        return "elementwise"
    for one, words in {"gemm": ("gemm", "cutlass", "nvjet"), "softmax": ("softmax",), "norm": ("norm",),
                       "embedding": ("embedding",), "copy": ("memcpy", "memset", "copy", "fill"),
                       "optimizer": ("adam",)}.items():
        if any(word in name for word in words):
            return one
    return "elementwise"

def by_class(kernels):
    rows = {}
    busy = sum(kernel["duration_us"] for kernel in kernels)
    names = {classify(kernel) for kernel in kernels}
    for name in names:
        own = [kernel for kernel in kernels if classify(kernel) == name]
        us = sum(kernel["duration_us"] for kernel in own)
        rows[name] = {"us": us, "launches": len(own), "bytes": sum(k["bytes"] for k in own), "share": us / busy}
    return {name: rows[name] for name in sorted(names, key=lambda name: rows[name]["us"], reverse=True)}
"""

STEP = """
def launches_of_step(config, batch_size, length):
    model = rl.nn.TransformerLM(
        rl.nn.TransformerConfig(**config, vocab_size=1000, context_length=length), device="meta")
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    for _ in range(2):
        model.zero_grad()
        with rl.count() as both:
            model(ids).mean().backward()
            with rl.count() as update:
                optimizer.step()
    return {"products": both.by_op["matmul"].launches, "optimizer": update.launches, "all": both.launches}

def adamw_bytes(parameters, fused):
    numbers = 7 if fused else 35
    return 4 * numbers * parameters

def gemm_share(kernels):
    return sum(row["share"] for name, row in by_class(kernels).items() if name == "gemm")

why_it_falls = "c"
"""

ATTENTION = """
def annotated_scaled_dot_product_attention(Q, K, V, mask=None):
    with rl.range("attention_matmul_QK"):
        scores = (Q * Q.shape[-1] ** -0.5) @ K.transpose(-2, -1)
        if mask is not None:
            scores = scores + mask
    with rl.range("attention_softmax"):
        weights = rl.softmax(scores)
    with rl.range("attention_matmul_V"):
        out = weights @ V
    return out

def softmax_flop_ratio(head_dim, softmax_flops=5):
    return softmax_flops / (2 * head_dim + 2 * head_dim)

def softmax_byte_ratio(head_dim, length):
    return 1 / (1 + 2 * head_dim / length)

what_r_measured = "d"
"""

RIGHT = {
    "q1_1_4a": [
        ("one function for both", STEPS),
        (
            "gradients are cleared before a step",
            changed(
                STEPS,
                "        model.zero_grad()\n",
                "",
                '        with rl.range("forward"):',
                '        model.zero_grad()\n        with rl.range("forward"):',
            ),
        ),
        (
            "the optimizer clears them in its range",
            changed(
                STEPS,
                "        model.zero_grad()\n",
                "        else:\n            model.zero_grad()\n",
                "                optimizer.step()\n",
                "                optimizer.step()\n                optimizer.zero_grad()\n",
            ),
        ),
    ],
    "q1_1_4a_values": [("a tuple", WAITS)],
    "q1_1_4b": [("counted with a batch of zeros", COUNTS)],
    "b1_1_4c": [("by tables", CLASSES)],
    "b1_1_4d": [("one count around both", STEP)],
    "b1_1_4e": [("queries are scaled", ATTENTION)],
}

WRONG = {
    "q1_1_4a": mutants(
        STEPS,
        ("forward ends before it is done", "            rl.synchronize()  # forward\n", ""),
        ("backward ends before it is done", "            rl.synchronize()  # backward\n", ""),
        ("the optimizer ends before it is done", "                rl.synchronize()  # optimizer\n", ""),
        ("gradients are kept", "        model.zero_grad()\n", ""),
        ("gradients are cleared too early", "        model.zero_grad()\n", "",
         "            rl.synchronize()  # backward\n", "            rl.synchronize()\n            model.zero_grad()\n"),
        ("a range for each warm-up step",
         'with rl.range("warmup"):\n        for _ in range(warmup_steps):\n',
         'for _ in range(warmup_steps):\n        with rl.range("warmup"):\n'),
        ("a range for each measured step",
         'with rl.range("measurement"):\n        for i in range(measure_steps):\n',
         'for i in range(measure_steps):\n        with rl.range("measurement"):\n'),
        ("the warm-up has no range", 'rl.range("warmup")', "contextlib.nullcontext()"),
        ("steps have no range", 'f"step_{i}"', '""'),
        ("steps from 1", 'f"step_{i}"', 'f"step_{i + 1}"'),
        ("no range of the optimizer", 'rl.range("optimizer")', "contextlib.nullcontext()"),
        ("the optimizer does not run", "                optimizer.step()\n", ""),
        ("no warm-up", "for _ in range(warmup_steps)", "for _ in range(0)"),
        ("one phase for both", 'with rl.range("backward"):\n            loss',
         'with rl.range("forward"):\n            loss'),
        ("busy for span", '"busy_us": busy', '"busy_us": span'),
        ("no gaps", '"gap_us": span - busy', '"gap_us": 0.0'),
        ("a span from zero", ' - min(kernel["start_us"] for kernel in kernels)', ""),
        ("the sum of kernels as the wall's time", '"span_us": span', '"span_us": busy'),
    ),
    "q1_1_4a_values": mutants(
        WAITS,
        ("all lengths", "(256, 128)", "(128, 256, 512, 1024)"),
        ("the longest", "(256, 128)", "(512, 1024)"),
        ("a set", "(256, 128)", "{256, 128}"),
        ("libraries", '"b"', '"a"'),
        ("clocks", '"b"', '"c"'),
        ("the warm-up", '"b"', '"d"'),
    ),
    "q1_1_4b": mutants(
        COUNTS,
        ("four forward passes", "range(1)", "range(4)"),
        ("formulas, nothing is counted", COUNTS[: COUNTS.index("def dominant")], """
def launches_of_forward(config, batch_size, length):
    return {"products": 9 * config["num_layers"] + 1, "all": 23 * config["num_layers"] + 3}

"""),
        ("seven products a layer", 'c.by_op["matmul"].launches', '7 * config["num_layers"] + 1'),
        ("no head", 'c.by_op["matmul"].launches', '9 * config["num_layers"]'),
        ("all are products", '"products": c.by_op["matmul"].launches', '"products": c.launches'),
        ("the launches of all passes", "count // forwards", "count"),
        ("the share of one launch", "us[name] / sum", "us[name] / count / sum"),
        ("the most launches", "max(us, key=us.get)", "max(us, key=[k['name'] for k in kernels].count)"),
        ("two matrices", "6 * length", "4 * length"),
        ("a share of the layers alone", "forward_flops(config, vocab_size, 1, length)",
         "(forward_flops(config, vocab_size, 1, length) - 2 * length * vocab_size * D)"),
    ),
    "b1_1_4c": mutants(
        CLASSES,
        ("libraries' products are something else", '"gemm": ("gemm", "cutlass", "nvjet")', '"gemm": ("matmul",)'),
        ("upper case is not seen", 'kernel["name"].lower()', 'kernel["name"]'),
        ("the name of an op in no row", '        return "elementwise"\n    for one, words', "    for one, words"),
        ("the last row that fits", '("adam",)}.items():', '("adam",)}.items().__reversed__():'),
        ("parts of an op's name", "if op in ops:", "if any(each in op for each in ops):"),
        ("the beginning of an op's name", "if op in ops:", "if op.startswith(ops):"),
        ("the beginning of a name", "if any(word in name for word in words):", "if name.startswith(words):"),
        ("the name before the op", "    if op:\n",
         "    if op and not any(w in name for w in ('gemm', 'softmax', 'norm')):\n"),
        ("backwards are elementwise", '.replace("_backward", "")', ""),
        *((f"what stands before _backward, by {way}", '.replace("_backward", "")', f'.{way}("_backward")[0]')
          for way in ("split", "partition")),
        ("letters for an ending", '.replace("_backward", "")', '.rstrip("_backward")'),
        ("a share of the span", "us / busy", 'us / (kernels[-1]["start_us"] + kernels[-1]["duration_us"])'),
        ("by launches", 'key=lambda name: rows[name]["us"]', 'key=lambda name: rows[name]["launches"]'),
        ("the least first", "reverse=True", "reverse=False"),
        ("one launch a class", "len(own)", "1"),
        ("bytes of the first", 'sum(k["bytes"] for k in own)', 'own[0]["bytes"]'),
        ("norms are elementwise", '("rms_norm", "layer_norm")', '("norm",)'),
    ),
    "b1_1_4d": mutants(
        STEP,
        ("no optimizer", "                optimizer.step()\n", "                pass\n"),
        ("what the public test expects", STEP[: STEP.index("def adamw_bytes")], """
def launches_of_step(config, batch_size, length):
    return {12: {"products": 327, "optimizer": 2, "all": 709}, 1: {"products": 30, "optimizer": 1, "all": 68}}[
        config["num_layers"]]

"""),
        ("a forward pass", "model(ids).mean().backward()", "model(ids).mean()"),
        ("the first step", "range(2)", "range(1)"),
        ("the passes without the optimizer", '"all": both.launches', '"all": both.launches - update.launches'),
        ("the gradient is not read", "numbers = 7", "numbers = 6"),
        ("fused as written out", "7 if fused else 35", "35"),
        ("numbers for bytes", "4 * numbers", "numbers"),
        ("a share of launches", 'row["share"] for name, row in by_class(kernels).items() if name == "gemm"',
         'row["launches"] / len(kernels) for name, row in by_class(kernels).items() if name == "gemm"'),
        ("a list without products", 'sum(row["share"] for name, row in by_class(kernels).items() if name == "gemm")',
         'by_class(kernels)["gemm"]["share"]'),
        ("smaller products", '"c"', '"a"'),
        ("lower precision", '"c"', '"b"'),
        ("the host", '"c"', '"d"'),
    ),
    "b1_1_4e": mutants(
        ATTENTION,
        ("not scaled", "(Q * Q.shape[-1] ** -0.5)", "Q"),
        ("the mask is dropped", "if mask is not None:", "if False:"),
        ("the softmax of columns", "rl.softmax(scores)", "rl.softmax(scores.transpose(-2, -1)).transpose(-2, -1)"),
        ("the softmax among the products", 'rl.range("attention_softmax")', 'rl.range("attention_matmul_QK")'),
        ("one kernel for all",
         "        scores = (Q * Q.shape[-1] ** -0.5) @ K.transpose(-2, -1)\n        if mask is not None:\n"
         "            scores = scores + mask\n",
         "        scores = rl.attention(Q, K, V, is_causal=mask is not None)\n", "rl.softmax(scores)", "scores",
         "weights @ V", "weights"),
        ("no ranges", 'rl.range("attention_matmul_V")', "contextlib.nullcontext()"),
        ("one product", "(2 * head_dim + 2 * head_dim)", "(2 * head_dim)"),
        ("MACs", "(2 * head_dim + 2 * head_dim)", "(2 * head_dim) * 1.0 / 1"),
        ("1/64", "softmax_flops / (2 * head_dim + 2 * head_dim)", "1 / head_dim"),
        ("upside down", "softmax_flops / (2 * head_dim + 2 * head_dim)", "4 * head_dim / softmax_flops"),
        ("bytes upside down", "1 / (1 + 2 * head_dim / length)", "1 + 2 * head_dim / length"),
        ("over one product", "1 + 2 * head_dim / length", "0.5 + head_dim / length"),
        ("FLOPs", '"d"', '"a"'),
        ("launches", '"d"', '"b"'),
        ("heads", '"d"', '"c"'),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q1_1_4a_values": "all lengths|the longest|libraries|clocks|the warm-up",
    "b1_1_4d": "smaller products|lower precision|the host",
    "b1_1_4e": "FLOPs|launches|heads",
}
