"""Answers to question 1.1.3 of Lab 2, measuring time, right and wrong."""

from labs.mutants import changed, mutants

HOST = """
def generate_random_batch(batch_size, context_length, vocab_size):
    return rl.randint(0, vocab_size, (batch_size, context_length), device=device)

def step(model, input_ids, mode, amp):
    with amp:
        loss = model(input_ids).mean()
    if mode == "backward":
        rl.synchronize()
    start = time.perf_counter()
    if mode != "forward":
        loss.backward()
    return start

def benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None):
    amp = amp_context if amp_context is not None else contextlib.nullcontext()
    for _ in range(warmup_steps):
        step(model, input_ids, mode, amp)
        model.zero_grad()
    rl.synchronize()
    samples = []
    for _ in range(measure_steps):
        before = time.perf_counter()
        start = step(model, input_ids, mode, amp)
        rl.synchronize()
        samples.append(time.perf_counter() - (start if mode == "backward" else before))
        model.zero_grad()
    return samples
"""
BEGIN = HOST.index("def benchmark")
STEP = HOST.index("def step")

EVENTS = (
    HOST[:STEP]
    + """
def benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None):
    amp = amp_context or contextlib.nullcontext()
    samples = []
    for index in range(warmup_steps + measure_steps):
        start, middle, end = (rl.cuda.Event(enable_timing=True) for _ in range(3))
        start.record()
        with amp:
            logits = model(input_ids)
        middle.record()
        if mode != "forward":
            logits.sum().backward()
        end.record()
        rl.synchronize()
        first, last = {"forward": (start, middle), "backward": (middle, end), "both": (start, end)}[mode]
        if index >= warmup_steps:
            samples.append(first.elapsed_time(last) / 1e3)
        model.zero_grad()
    return samples
"""
)

LATENCY = (
    HOST[:STEP]
    + """
def benchmark(model, input_ids, mode, warmup_steps, measure_steps, amp_context=None):
    amp = amp_context or contextlib.nullcontext()

    def forward():
        with amp:
            return model(input_ids).mean()

    def both():
        forward().backward()
        model.zero_grad()

    if mode == "backward":
        samples = []
        for _ in range(warmup_steps):
            both()
        for _ in range(measure_steps):
            loss = forward()
            samples.append(rl.latency(loss.backward, warmup=0, repeat=1).samples_ms[0] / 1e3)
            model.zero_grad()
        return samples
    run = forward if mode == "forward" else both
    return (rl.latency(run, warmup=warmup_steps, repeat=measure_steps).samples_ms / 1e3).tolist()
"""
)

ROW = """
def timing_row(model, input_ids, mode, warmup_steps, measure_steps):
    row = dict(status="OOM", mean_ms=None, median_ms=None, std_ms=None, ddof=None)
    try:
        ms = np.array(benchmark(model, input_ids, mode, warmup_steps, measure_steps)) * 1000
    except rl.OutOfMemoryError:
        return row
    return dict(status="ok", mean_ms=np.mean(ms), median_ms=np.median(ms), std_ms=np.std(ms), ddof=0)

def read_times(forward_ms, both_ms, num_layers, flops, peak_tflop_s):
    tflop_s = flops / forward_ms / 1e9
    return {
        "backward_over_forward": both_ms / forward_ms - 1,
        "ms_per_layer": forward_ms / num_layers,
        "share_of_peak": tflop_s / peak_tflop_s,
    }
"""

FINDINGS = """
flop_ratio, launch_bound, w_says = 3, ["xl", "large", "medium", "small"], "a"
"""

STUDY = """
def warmup_study(new_process, input_ids, warmups, measure_steps):
    rows = {}
    for w in warmups:
        model = new_process()
        ms = [1000 * s for s in benchmark(model, input_ids, "both", w, measure_steps)]
        rows[w] = dict(mean_ms=float(np.mean(ms)), std_ms=float(np.std(ms)), first_ms=ms[0], second_ms=ms[1])
    return rows
"""

OUTLIER = """
def outlier_effect(e_ms, m, ddof):
    if ddof == 0:
        return e_ms / m, e_ms * np.sqrt(m - 1) / m
    return e_ms / m, e_ms / np.sqrt(m)

def undo_outlier(mean_ms, std_ms, m, ddof):
    e_ms = std_ms * m / np.sqrt(m - 1) if ddof == 0 else std_ms * np.sqrt(m)
    rest_ms = mean_ms - e_ms / m
    return rest_ms + e_ms, rest_ms

r_steps = 15
"""

RIGHT = {
    "q1_1_3a": [
        ("a clock of the host", HOST),
        ("nanoseconds, imported by name", changed(
            HOST, "def step", "from time import perf_counter_ns\n\ndef step", "time.perf_counter()",
            "perf_counter_ns() * 1e-9")),
        ("the clock of dates", changed(
            HOST, "def step", "from datetime import datetime\n\ndef step", "time.perf_counter()",
            "datetime.now().timestamp()")),
        ("events", EVENTS),
        ("rl.latency", LATENCY),
        ("gradients are cleared before a step", changed(
            HOST, "    with amp:", "    model.zero_grad()\n    with amp:", "        model.zero_grad()\n", "")),
        ("gradients become zero", changed(HOST, "model.zero_grad()", "model.zero_grad(set_to_none=False)")),
        ("autocast made anew, the loss outside of it", changed(
            HOST, "        loss = model(input_ids).mean()\n",
            "        logits = model(input_ids)\n    loss = logits.sum() / logits.numel()\n")),
        ("it waits only where there is a GPU", changed(
            HOST, "rl.synchronize()", "rl.cuda.is_available() and rl.synchronize()")),
    ],
    "q1_1_3b": [
        ("the built-in class", changed(ROW, "rl.OutOfMemoryError", "MemoryError")),
        ("ddof 0", ROW),
        ("ddof 1", changed(ROW, "np.std(ms), ddof=0", "np.std(ms, ddof=1), ddof=1")),
    ],
    "q1_1_3b_findings": [("in another order", FINDINGS)],
    "b1_1_3c": [("a process each", STUDY)],
    "b1_1_3c_outlier": [("both formulas", OUTLIER)],
}  # fmt: skip

WRONG = {
    "q1_1_3a": mutants(
        HOST,
        ("it does not wait at the end",
         "        rl.synchronize()\n        samples.append", "        samples.append"),
        ("it does not wait at the beginning", "    rl.synchronize()\n    samples = []", "    samples = []"),
        ("it never waits", "rl.synchronize()", "pass"),
        ("gradients are kept", "        model.zero_grad()\n", ""),
        ("gradients of the warm-up are kept", "amp)\n        model.zero_grad()\n    rl", "amp)\n    rl"),
        ("the warm-up is measured", "for _ in range(warmup_steps)", "for _ in range(0)", "range(measure_steps)",
         "range(warmup_steps + measure_steps)"),
        ("no warm-up", "for _ in range(warmup_steps)", "for _ in range(0)"),
        ("milliseconds", "samples.append(time.perf_counter() - (start if mode == \"backward\" else before))",
         "samples.append(1000 * (time.perf_counter() - (start if mode == \"backward\" else before)))"),
        ("the mean alone", "return samples", "return [sum(samples) / len(samples)]"),
        ("the mean again and again", "return samples", "return [sum(samples) / len(samples)] * measure_steps"),
        ("w + m samples over m", "samples.append(time.perf_counter() - (start if mode == \"backward\" else before))",
         "samples.append((time.perf_counter() - before) * (warmup_steps + measure_steps) / measure_steps)"),
        ("all steps at once", "        before = time.perf_counter()\n",
         "        before = samples[0] if 0 else 4.096\n"),
        ("backward equals both", '(start if mode == "backward" else before)', "before"),
        ("forward equals both", 'if mode != "forward":', "if True:"),
        ("no low precision", "with amp:", "with contextlib.nullcontext():"),
        ("no low precision before a backward pass alone", "with amp:",
         'with contextlib.nullcontext() if mode == "backward" else amp:'),
        ("the backward pass in low precision", "        loss = model(input_ids).mean()\n",
         "        loss = model(input_ids).mean()\n        if mode == 'both':\n"
         "            before = time.perf_counter()\n"
         "            loss.backward()\n            return before\n"),
        ("a context around the whole step", '    if mode != "forward":\n        loss.backward()\n',
         '    if mode != "forward":\n        with amp:\n            loss.backward()\n'),
        ("a model that sleeps", "        before = time.perf_counter()\n",
         "        before = time.perf_counter()\n        time.sleep(0.05)\n"),
        ("published numbers", "return samples", "return [0.07629] * measure_steps"),
        ("a token too many", "rl.randint(0, vocab_size,", "rl.randint(0, vocab_size + 1,"),
        ("never the last token", "rl.randint(0, vocab_size,", "rl.randint(0, vocab_size // 2,"),
        ("always the same tokens", "    return rl.randint", "    rl.manual_seed(0)\n    return rl.randint"),
        ("the other way round", "(batch_size, context_length)", "(context_length, batch_size)"),
    ),
    "q1_1_3b": mutants(
        ROW,
        ("both over forward", "both_ms / forward_ms - 1", "both_ms / forward_ms"),
        ("out of memory takes no time", "mean_ms=None, median_ms=None", "mean_ms=0.0, median_ms=0.0"),
        ("out of memory ends it", "except rl.OutOfMemoryError:", "except ZeroDivisionError:"),
        ("every error is a lack of memory", "except rl.OutOfMemoryError:", "except Exception:"),
        ("errors of every kind", "except rl.OutOfMemoryError:", "except:"),
        ("a wrong value is a lack of memory", "except rl.OutOfMemoryError:",
         "except (rl.OutOfMemoryError, ValueError):"),
        ("a failing device lacks memory", "except rl.OutOfMemoryError:", "except (MemoryError, RuntimeError):"),
        ("seconds", " * 1000", ""),
        ("published numbers", "mean_ms=np.mean(ms)", "mean_ms=38.32"),
        ("the other ddof", "ddof=0)", "ddof=1)"),
        ("a variance", "std_ms=np.std(ms)", "std_ms=np.var(ms)"),
        ("the mean for the median", "median_ms=np.median(ms)", "median_ms=np.max(ms)"),
        ("a share in per cent", "tflop_s / peak_tflop_s", "100 * tflop_s / peak_tflop_s"),
        ("the whole time a layer", "forward_ms / num_layers", "both_ms / num_layers"),
    ),
    "q1_1_3b_findings": mutants(
        FINDINGS,
        ("backward over forward", "= 3,", "= 2,"),
        ("all are", '["xl", ', '["2.7B", "xl", '),
        ("the smallest alone", '["xl", "large", "medium", "small"]', '["small"]'),
        ("the backward pass", '"a"', '"b"'),
        ("the peak", '"a"', '"c"'),
        ("the layers", '"a"', '"d"'),
    ),
    "b1_1_3c": mutants(
        STUDY,
        ("all in one process", "    for w in warmups:\n        model = new_process()",
         "    model = new_process()\n    for w in warmups:"),
        ("no warm-up at all", '"both", w,', '"both", 0,'),
        ("ddof 1", "np.std(ms)", "np.std(ms, ddof=1)"),
        ("seconds", "1000 * s", "s"),
        ("the mean for the first", "first_ms=ms[0]", "first_ms=float(np.mean(ms))"),
        ("forward alone", '"both"', '"forward"'),
    ),
    "b1_1_3c_outlier": mutants(
        OUTLIER,
        ("the other ddof", "ddof == 0:", "ddof == 1:"),
        ("the whole of it", "return e_ms / m, e_ms * np", "return e_ms, e_ms * np"),
        ("first and others exchanged", "return rest_ms + e_ms, rest_ms", "return rest_ms, rest_ms + e_ms"),
        ("one ddof for all", "if ddof == 0 else std_ms * np.sqrt(m)", ""),
        ("ten", "r_steps = 15", "r_steps = 10"),
    ),
}  # fmt: skip

ONLY_HIDDEN = {
    "q1_1_3b_findings": "backward over forward|all are|the smallest alone|the backward pass|the peak|the layers",
    "b1_1_3c_outlier": "ten|one ddof for all",
}
