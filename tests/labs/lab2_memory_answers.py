"""Answers to question 1.1.6 of Lab 2, memory, right and wrong."""

from labs.mutants import changed, mutants

TIMELINE = """
def profile_memory(model, input_ids, mode, warmup_steps, amp_context=None, optimizer=None):
    output = None
    for index in range(warmup_steps + 1):
        output = None
        model.zero_grad()
        recording = rl.memory.record(model.device) if index == warmup_steps else contextlib.nullcontext()
        with recording as timeline:
            with contextlib.ExitStack() as stack:
                stack.enter_context(rl.range("forward"))
                if amp_context is not None:
                    stack.enter_context(amp_context)
                if mode == "inference":
                    stack.enter_context(rl.no_grad())
                output = model(input_ids)
                if mode == "step":
                    output = output.mean()
            if mode == "step":
                with rl.range("backward"):
                    output.backward()
                if optimizer:
                    with rl.range("optimizer"):
                        optimizer.step()
    return timeline

def peak_phase(timeline):
    levels = [event.live_bytes for event in timeline.events]
    return timeline.events[levels.index(max(levels))].range.partition("/")[0]
"""

PEAK = """
def peak_bytes(config, vocab_size, batch_size, length, mode, kept_gradients=False, low=None):
    sizes = rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length)
    model = rl.nn.TransformerLM(sizes, device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    optimizer = rl.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        with rl.autocast(low) if low else contextlib.nullcontext():
            with rl.no_grad() if mode == "inference" else contextlib.nullcontext():
                output = model(ids)
        if mode == "step":
            output.mean().backward()
            optimizer.step()
        return output

    output = step()
    del output
    if not kept_gradients:
        model.zero_grad()
    with rl.memory.record(model.device) as timeline:
        output = step()
    return timeline.resident_bytes + timeline.peak_bytes

def peak_rule(N, saved_bytes):
    return 12 * N + max(4 * N, saved_bytes)
"""

COPIES = """
def weight_copy_bytes(config, vocab_size):
    D, I, n = config["d_model"], config["d_ff"], config["num_layers"]
    return 2 * (n * (4 * D**2 + 3 * D * I) + vocab_size * D)

saved_gib = weight_copy_bytes(MODEL_CONFIGS["2.7B"], 10000) / 1024**3 - 2.19
"""

RESIDUAL = """
def residual_bytes(batch_size, length, width):
    return rl.empty(batch_size, length, width, device="meta").nbytes
"""

BLOCKS = """
def largest_blocks(config, vocab_size, batch_size, length, count):
    model = rl.nn.TransformerLM(
        rl.nn.TransformerConfig(**config, vocab_size=vocab_size, context_length=length), device="meta")
    ids = rl.empty(batch_size, length, dtype="int64", device="meta")
    with rl.memory.record("meta") as timeline:
        logits = model(ids)
    rows = [{"bytes": b.bytes, "op": b.op, "range": b.range} for b in timeline.allocations
            if b.start_us is not None and not b.is_scratch]
    return sorted(rows, key=lambda row: row["bytes"], reverse=True)[:count]

def scores_lead_from(config):
    return config["d_ff"] / config["num_heads"]
"""

RIGHT = {
    "q1_1_6a": [("one loop", TIMELINE)],
    "q1_1_6b": [("by hand", PEAK)],
    "b1_1_6c": [("closed form", COPIES)],
    "b1_1_6d": [("a dry tensor", RESIDUAL)],
    "b1_1_6e": [
        ("without phases", BLOCKS),
        (
            "the next whole length",
            changed(
                BLOCKS, 'config["d_ff"] / config', '-(-config["d_ff"] // config', '["num_heads"]\n', '["num_heads"])\n'
            ),
        ),
    ],
}

WRONG = {
    "q1_1_6a": mutants(
        TIMELINE,
        ("inference with a graph", "stack.enter_context(rl.no_grad())", "pass"),
        ("forward without a graph", 'mode == "inference"', 'mode != "step"'),
        ("the first step is recorded", "index == warmup_steps", "index == 0"),
        ("gradients of the step before", "        model.zero_grad()\n", ""),
        ("the output of the step before", "        output = None\n        model", "        model"),
        ("a variable holds the logits", "output = model(input_ids)", "logits = output = model(input_ids)"),
        ("the output is gone before the recording ends", '    if mode == "step":\n                with',
         '    if mode != "step":\n                output = None\n            else:\n                with'),
        ("no range of the optimizer", 'rl.range("optimizer")', "contextlib.nullcontext()"),
        ("the optimizer does not step", "                        optimizer.step()", "                        pass"),
        ("no backward pass", "                    output.backward()", "                    pass"),
        ("no autocast", "if amp_context is not None", "if False"),
        ("no autocast in inference", "if amp_context is not None",
         'if amp_context is not None and mode != "inference"'),
        ("the recorded step alone under autocast", "if amp_context is not None",
         "if amp_context is not None and index == warmup_steps"),
        ("the whole range", '.partition("/")[0]', ""),
        *((f"the phase with the largest {what}", 'timeline.events[levels.index(max(levels))].range.partition("/")[0]',
           'max(("forward", "backward", "optimizer"), key=lambda phase: '
           f"{what}([event.live_bytes for event in timeline.events if event.range.startswith(phase)] or [0]))")
          for what in ("sum", "np.mean")),
        ("the last moment", "levels.index(max(levels))", "-1"),
        ("the largest block", "event.live_bytes for", "event.bytes for"),
    ),
    "q1_1_6b": mutants(
        PEAK,
        ("GiB", "return timeline.resident_bytes + timeline.peak_bytes",
         "return (timeline.resident_bytes + timeline.peak_bytes) / 2**30"),
        ("no weights", "timeline.resident_bytes + timeline.peak_bytes", "timeline.peak_bytes"),
        ("always in fp32", "if low else", "if False else"),
        ("inference and steps in fp32", "if low else", 'if low and mode == "forward" else'),
        ("steps in fp32", "if low else", 'if low and mode != "step" else'),
        ("the first step", "    output = step()\n    del output\n", ""),
        ("the first step unless gradients are kept", "    output = step()\n    del output\n",
         "    output = step() if kept_gradients else None\n    del output\n"),
        ("the output before is kept", "    del output\n", ""),
        ("gradients are always kept", "if not kept_gradients:", "if False:"),
        ("gradients are never kept", "if not kept_gradients:", "if True:"),
        ("no optimizer", "            optimizer.step()\n", ""),
        ("inference with a graph", 'rl.no_grad() if mode == "inference" else contextlib', "contextlib"),
        ("what is left at the end", "timeline.peak_bytes", "timeline.retained_bytes"),
        ("always the activations", "max(4 * N, saved_bytes)", "saved_bytes"),
        ("always the optimizer", "max(4 * N, saved_bytes)", "4 * N"),
        ("all at once", "max(4 * N, saved_bytes)", "4 * N + saved_bytes"),
        ("no moments", "12 * N + max", "4 * N + max"),
    ),
    "b1_1_6c": mutants(
        COPIES,
        ("every parameter", "(n * (4 * D**2 + 3 * D * I) + vocab_size * D)", "count_parameters(config, vocab_size)"),
        ("four bytes", "return 2 *", "return 4 *"),
        ("no head", " + vocab_size * D)", ")"),
        ("the change of the peak", 'weight_copy_bytes(MODEL_CONFIGS["2.7B"], 10000) / 1024**3 - 2.19', "-2.19"),
        ("GB", "/ 1024**3", "/ 1e9"),
        ("the copies alone", " - 2.19", ""),
        ("another length", " - 2.19", " - 4.37"),
        ("added", "- 2.19", "+ 2.19"),
    ),
    "b1_1_6d": [
        ("decimal megabytes", "def residual_bytes(B, L, D):\n    return 4 * B * L * D / 1e6"),
        ("no length", "def residual_bytes(B, L, D):\n    return 4 * B * D"),
        ("no batch", "def residual_bytes(B, L, D):\n    return 4 * L * D"),
        ("the feed-forward width", "def residual_bytes(B, L, D):\n    return 4 * B * L * 4 * D"),
        ("numbers", "def residual_bytes(B, L, D):\n    return B * L * D"),
    ],
    "b1_1_6e": mutants(
        BLOCKS,
        ("the smallest", "reverse=True", "reverse=False"),
        ("the first", 'sorted(rows, key=lambda row: row["bytes"], reverse=True)', "rows"),
        ("the residual", '"bytes": b.bytes', '"bytes": 4 * batch_size * length * config["d_model"]'),
        ("a weight", "    with rl.memory.record",
         "    model = None\n    with rl.memory.record", "        logits = model(ids)",
         "        model = rl.nn.TransformerLM(rl.nn.TransformerConfig(**config, vocab_size=vocab_size, "
         "context_length=length), device='meta')\n        logits = model(ids)"),
        ("no ops", '"op": b.op', '"op": "matmul"'),
        ("one too many", "[:count]", "[: count + 1]"),
        ("scores of one head", 'config["d_ff"] / config["num_heads"]', 'config["d_ff"]'),
        ("the whole length before", 'config["d_ff"] / config', 'config["d_ff"] // config'),
        ("rounded", 'config["d_ff"] / config["num_heads"]', 'round(config["d_ff"] / config["num_heads"])'),
        ("the width", 'config["d_ff"] / config["num_heads"]', 'config["d_model"] / config["num_heads"]'),
        ("always 256", 'config["d_ff"] / config["num_heads"]', "256"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q1_1_6b": "steps in fp32",
    "b1_1_6c": "the change of the peak|GB|the copies alone|another length|added",
    "b1_1_6e": "always 256|scores of one head",
}
