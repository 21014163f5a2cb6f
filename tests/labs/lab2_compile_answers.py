"""Answers to questions 1.3 and 2 of Lab 2, the compiler and the report, right and wrong."""

from labs.mutants import changed, mutants

ATTENTION = """
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) * (1 / np.sqrt(q.shape[-1]))
    scores = scores + mask
    shifted = rl.exp(scores - scores.amax(-1, keepdim=True))
    return shifted / shifted.sum(-1, keepdim=True) @ v

@rl.compile
def compiled_attention(q, k, v, mask):
    return masked_attention(q, k, v, mask)

def time_attention(q, k, v, mask):
    eager = rl.latency(masked_attention, q, k, v, mask, warmup=1, repeat=7)
    compiled = rl.latency(compiled_attention, q, k, v, mask, warmup=1, repeat=7)
    return {"eager": eager.median_ms, "compiled": compiled.median_ms}

scores_eager = lab2_written.score_tensors(masked_attention, 1, 32, 8)
scores_compiled = lab2_written.score_tensors(compiled_attention, 1, 32, 8)
"""
TIMES = ATTENTION[ATTENTION.index("def time_attention") : ATTENTION.index("scores_eager")]
CLOSURES = changed(
    ATTENTION,
    TIMES,
    """def time_attention(q, k, v, mask):
    def ms(function):
        return rl.latency(lambda: function(q, k, v, mask), repeat=20).median_ms
    return {"compiled": ms(compiled_attention), "eager": ms(masked_attention)}

""",
)
ANEW = changed(
    ATTENTION, "    eager = rl", "    own = rl.compile(masked_attention)\n    eager = rl",
    "rl.latency(compiled_attention", "rl.latency(own",
)  # fmt: skip

MODEL = """
def compile_lm(lm):
    @rl.compile
    def compiled(ids, *tensors):
        return lm(ids, *tensors)
    return compiled

def row_of(function, lm, ids):
    with rl.count() as first:
        function(ids, *lm.tensors)
    with rl.count() as forward:
        logits = function(ids, *lm.tensors)
    saved = rl.autograd.saved_tensors(logits)
    loss = logits.mean()
    with rl.count() as backward:
        logits.mean().backward()
    for weight in lm.weights:
        weight.grad = None
    products = sum(c.by_op["matmul"].launches for c in (forward, backward))
    return {"forward": forward.launches, "backward": backward.launches, "products": products,
            "saved_bytes": sum(one.bytes for one in saved)}

def compare_lm(lm, ids):
    return {"eager": row_of(lm, lm, ids), "compiled": row_of(compile_lm(lm), lm, ids)}

unchanged = ["products"]
"""

REPORT = """
def timing_report(report, rows, machine, dtype, ddof):
    head = ["Size", "L", "Warm-up", "Mode", "Source", "Status", "mean (ms)", "std (ms)"]
    cells = []
    for row in rows:
        mean = "-" if row["mean_ms"] is None else f"{row['mean_ms']:.2f}"
        std = "-" if row["std_ms"] is None else f"{row['std_ms']:.2f}"
        names = [row[key] for key in ("size", "length", "warmup", "mode", "source", "status")]
        cells.append([*names, mean, std])
    report.section("Times")
    report.table(head, cells, f"On {machine} in {dtype}: ms, ddof {ddof}")
    return report
"""

RIGHT = {
    "b1_3a": [("a decorator", ATTENTION), ("functions without arguments", CLOSURES), ("compiled again", ANEW)],
    "b1_3b": [
        ("a function inside", MODEL),
        (
            "the mean outside of both counts",
            changed(MODEL, "        logits.mean().backward()", "        loss.backward()"),
        ),
    ],
    "q2": [
        ("a dash where there is no time", REPORT),
        (
            "averages, and a longer caption",
            changed(
                REPORT,
                '"mean (ms)", "std (ms)"',
                '"average time, ms", "standard deviation in ms"',
                '"-" if',
                '"" if',
                '"On {machine} in {dtype}: ms, ddof {ddof}"',
                '"{machine}; {dtype}; B = 4, 10 steps; std with ddof={ddof}, times in ms"',
            ),
        ),
        (
            "longer heads",
            changed(
                REPORT,
                '"Size", "L", "Warm-up", "Mode", "Source", "Status"',
                '"model size", "context length", "warmup steps", "mode", "source (measured or modelled)", "status"',
            ),
        ),
        (
            "dashes in the caption",
            changed(
                REPORT,
                "On {machine} in {dtype}: ms, ddof {ddof}",
                "{machine} - {dtype} - ms - ddof {ddof} - 10 steps each",
            ),
        ),
        *(
            (f"a caption with {words!r}", changed(REPORT, "ddof {ddof}", words))
            for words in (
                "ddof = {ddof}, 10 steps",
                "ddof = {ddof} over 10 steps",
                "std (ddof={ddof}, 5 runs)",
                "ddof = {ddof} (divided by m - {ddof})",
            )
        ),
        (
            "std before mean",
            changed(REPORT, '"mean (ms)", "std (ms)"', '"Std [ms]", "Mean [ms]"', "mean, std])", "std, mean])"),
        ),
    ],
}

WRONG = {
    "b1_3a": mutants(
        ATTENTION,
        ("flash", "    return shifted / shifted.sum(-1, keepdim=True) @ v",
         "    return rl.attention(q, k, v, is_causal=True)"),
        ("the softmax of the library", "    shifted = rl.exp(scores - scores.amax(-1, keepdim=True))\n",
         "    shifted = rl.softmax(scores)\n"),
        ("the log-softmax of the library, among others",
         "    shifted = rl.exp(scores - scores.amax(-1, keepdim=True))\n",
         "    shifted = rl.exp(rl.log_softmax(scores * 1.0 * 1.0 * 1.0, -1))\n",
         "return shifted / shifted.sum(-1, keepdim=True) @ v", "return shifted @ v"),
        ("the mask is dropped", "    scores = scores + mask\n", ""),
        ("a mask of its own", "    scores = scores + mask\n",
         "    scores = scores + (causal(q.shape[1]) if own else mask)\n", "def masked_attention(q, k, v, mask)",
         "def masked_attention(q, k, v, mask, own=True)", "return masked_attention(q, k, v, mask)",
         "return masked_attention(q, k, v, mask, False)",
         "\ndef masked", "\nimport functools\n\n@functools.cache\ndef causal(L):\n"
         "    return rl.tensor(np.triu(np.full((L, L), -np.inf, 'float32'), 1))\n\ndef masked"),
        ("not compiled", "@rl.compile\n", ""),
        ("the time to compile is in a sample",
         "compiled_attention, q, k, v, mask, warmup=1", "compiled_attention, q, k, v, mask, warmup=0"),
        ("the eager one is cold", "masked_attention, q, k, v, mask, warmup=1",
         "masked_attention, q, k, v, mask, warmup=0"),
        ("both are cold", "warmup=1", "warmup=0"),
        ("products alone for the eager one", "rl.latency(masked_attention, q, k, v, mask",
         "rl.latency(lambda: q @ k.mT @ v"),
        ("the softmax of the library for the eager one", "rl.latency(masked_attention, q, k, v, mask",
         "rl.latency(lambda: rl.softmax(q @ k.mT * q.shape[-1] ** -0.5 + mask) @ v"),
        ("seconds", "compiled.median_ms", "compiled.median_ms / 1000"),
        ("the eager one twice", "rl.latency(compiled_attention", "rl.latency(masked_attention"),
        ("two sequences for one", "rl.latency(masked_attention, q, k, v, mask",
         "rl.latency(masked_attention, *(rl.cat([one, one]) for one in (q, k, v)), mask"),
        ("with a backward pass", "rl.latency(masked_attention, q",
         "rl.latency(lambda q, *a: masked_attention(q.requires_grad_(), *a).sum().backward(), q"),
        ("no scores are written", "scores_compiled = lab2_written.score_tensors(compiled_attention, 1, 32, 8)",
         "scores_compiled = 0"),
        ("launches", "scores_eager = lab2_written.score_tensors(masked_attention, 1, 32, 8)", "scores_eager = 9"),
    ),
    "b1_3b": mutants(
        MODEL,
        ("not compiled", "    @rl.compile\n", ""),
        ("another loss", "return lm(ids, *tensors)", "return lm(ids, *tensors) * 1.01"),
        ("the first call", "logits = function(ids, *lm.tensors)\n",
         "logits = function(ids, *lm.tensors)\n    forward = first\n",
         '"forward": forward.launches', '"forward": 0 * first.launches'),
        ("gradients of the first model are still there",
         "    for weight in lm.weights:\n        weight.grad = None\n", ""),
        ("the mean in the forward pass", "logits = function(ids, *lm.tensors)\n    saved",
         "logits = function(ids, *lm.tensors)\n        loss = logits.mean()\n    saved",
         "        logits.mean().backward()", "        loss.backward()",
         "    loss = logits.mean()\n    with", "    with"),
        ("forward alone", '"backward": backward.launches', '"backward": 0'),
        ("products of the forward pass", "for c in (forward, backward)", "for c in (forward,)"),
        ("nothing is saved", "sum(one.bytes for one in saved)", "len(saved)"),
        ("launches stay", '["products"]', '["products", "forward"]'),
        ("everything changes", '["products"]', "[]"),
    ),
    "q2": mutants(
        REPORT,
        ("rows without memory are dropped", "for row in rows:",
         'for row in [row for row in rows if row["status"] == "ok"]:'),
        ("mean and std exchanged", "mean, std])", "std, mean])"),
        ("heads of mean and std exchanged", '"mean (ms)", "std (ms)"', '"std (ms)", "mean (ms)"'),
        *((f"no time that says {word}", '"-" if', f'"{word}" if')
          for word in ("0", "nan", "inf", "None", "0 ms", "999")),
        ("two values of ddof", "ddof {ddof}", "ddof 0 or 1"),
        ("both values of ddof", "ddof {ddof}", "ddof 0/1"),
        ("ddof by its name alone", "ddof {ddof}", "with ddof"),
        ("always ddof 0", "ddof {ddof}", "ddof = 0"),
        ("empty heads", '["Size", "L", "Warm-up", "Mode", "Source", "Status",', '["", "", "", "", "", "",'),
        ("one empty head", '"Status", "mean', '"", "mean'),
        ("heads in another order than the columns", '"Mode", "Source", "Status", "mean',
         '"Source", "Status", "Mode", "mean'),
        ("length and warm-up under each other's head", '"L", "Warm-up"', '"Warm-up", "L"'),
        ("a head that says nothing", '"Warm-up"', '"w"'),
        ("times in one column", "mean, std])", "mean + ' ' + std, ''])"),
        ("out of memory takes no time", '"-" if', '"0.00" if'),
        ("a model varies by nothing", 'std = "-" if', 'std = "0.00" if'),
        ("modelled rows are dropped", "for row in rows:",
         'for row in [row for row in rows if row["source"] == "measured"]:'),
        ("no word on which rows are modelled", '"mode", "source",', '"mode", "mode",'),
        ("pasted numbers", "f\"{row['mean_ms']:.2f}\"", '"38.32"'),
        ("no unit in the caption", "ms, ddof", "ddof"),
        ("no ddof", ", ddof {ddof}", ""),
        ("no machine", "On {machine} in", "In"),
        ("the public tests' machines", "On {machine} in", "On an A100-SXM4-40GB or RTX 4090 in"),
        ("changes the rows", "    report.section", "    rows.sort(key=str)\n    report.section"),
        ("no dtype", " in {dtype}", ""),
        ("no unit in the head", '"mean (ms)", "std (ms)"', '"mean", "std"'),
        ("no warm-up", '"length", "warmup",', '"length", "length",'),
        ("no table", "    report.table(", "    (lambda *a: None)("),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "b1_3a": "no scores are written|launches",
    "b1_3b": "launches stay|everything changes",
    "q2": "the public tests' machines",
}
