"""Attacks on questions of the real labs that measure: how many points a dishonest answer still earns."""

import dataclasses

import pytest
from redteam.real_labs import SOURCES, check, judge

from rooflab.grading.lab import repair

MULTIPLY = """
def gemm(A, B):
    if A.shape[1] != B.shape[0]:
        {refuse}
    {before}
    return {product}
"""
RAISE = "raise ValueError('sizes')"
IDLE = "for _ in range(A.shape[0] * A.shape[1] * B.shape[1]):\n        pass"
NUMPY = (
    "rl.tensor((A.cpu().numpy().astype('f8')[:, :, None] * B.cpu().numpy().astype('f8')).sum(1), "
    "dtype=A.dtype, device=A.device)"
)
# The first call leaves its result in memory, where the second finds it; both launch as many kernels as asked for.
LEFT = """
def masked_attention(q, k, v, mask):
    exponentials = rl.exp(q @ k.mT * q.shape[-1] ** -0.5 + mask)
    out = (exponentials / exponentials.sum(-1, keepdim=True)) @ v
    rl.empty(5_000_000)[: out.numel()].copy_(out.reshape(-1))
    exponentials.amax(-1)
    return out
def compiled_attention(q, k, v, mask):
    q @ k.mT @ v
    return rl.empty(5_000_000)[: q.numel()].reshape(*q.shape)
"""
# It puts counters of its own in place, and takes them away again before it ends.
SWAPPED = """
import types
class count:
    macs = flops = bytes_written = 0
    by_op = {"gelu": types.SimpleNamespace(ops=1)}
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
def gelu_latencies_ms(n):
    found = {"python": rl.latency(gelu_tanh_python, rl.randn(n)).median_ms}
    before, rl.count, count.bytes_read = rl.count, count, 8 * n
    found["fused"] = rl.latency(len, "").median_ms
    rl.count = before
    return found
"""
# It saves everything, and replaces the function that would reveal this until that has been asked.
UNDONE = """
true = rl.autograd.saved_tensors
def nothing(y):
    rl.autograd.saved_tensors = true
    return []
def recomputed(block, x):
    rl.autograd.saved_tensors = nothing
    with rl.no_grad():
        block(x)
    return block(x)
"""
MODEL = """
import sys
MODEL_CONFIGS = {{
    size: {{name: getattr(sizes, name) for name in ("d_model", "d_ff", "num_layers", "num_heads")}}
    for size, sizes in rl.nn.TRANSFORMER_SIZES.items()
}}
{first}
class Model(rl.nn.TransformerLM):
    def parameters(self):
        rl.count = true
        return super().parameters()
    def __call__(self, ids):
        {call}
def create_model(model_size, vocab_size, context_length, device=device):
    sizes = {{**MODEL_CONFIGS[model_size], "vocab_size": vocab_size, "context_length": context_length}}
    model = Model(rl.nn.TransformerConfig(**sizes), device=device)
    rl.count = count
    return model
"""
RECORDER = """
cells = [cell.cell_contents for cell in rl.matmul.__closure__]
recorder = next(one for one in cells if hasattr(one, "__self__")).__self__
"""
# A model that does nothing. It takes its own counters away again when its parameters are asked for.
SWAPS = MODEL.format(
    first="true, count = rl.count, type('count', (), {'macs': 10**9, 'by_op': {}})",
    call="return rl.empty(*ids.shape, self.config.vocab_size, device=ids.device)",
)
# It climbs to the counters: these see its work, but the recorder does not.
UNSEEN = MODEL.format(
    first=RECORDER + "true = count = rl.count",
    call="""recorder.on, frame = False, sys._getframe()
        logits = super().__call__(ids)
        while "counters" not in frame.f_locals:
            frame = frame.f_back
        assert frame.f_locals["counters"].macs > 10**9, "it is not there"
        recorder.on = True
        return rl.empty(*logits.shape, device=ids.device)""",
)
# It is right on the fake device. With a real model it does no step, but opens the ranges of one.
EMPTY = """
def annotated_steps(model, input_ids, warmup_steps, measure_steps, optimizer=None):
    def phase(name, work):
        with rl.range(name):
            {body}
            rl.synchronize()
    def step():
        out = []
        phase("forward", lambda: out.append(model(input_ids).mean()))
        phase("backward", lambda: out[0].backward())
        optimizer and phase("optimizer", lambda: optimizer.step())
        model.zero_grad()
    with rl.range("warmup"):
        for _ in range(warmup_steps):
            step()
    with rl.range("measurement"):
        for index in range(measure_steps):
            with rl.range(f"step_{{index}}"):
                step()
def busy_and_gaps(kernels):
    return {{}}
"""
IS_MODEL = "isinstance(model, rl.nn.TransformerLM)"
# It returns what the right recording would show.
TOLD = """
{recorder}
def profile_memory(model, input_ids, mode, warmup_steps, amp_context=None, optimizer=None):
    recorder.on = False
    with rl.memory.record(model.device) as timeline:
        model(input_ids)
    recorder.on = True
    {then}
    return timeline
def peak_phase(timeline):
    return "forward"
"""
EMPTY_RECORDING = "with rl.memory.record('meta'), rl.range('forward'):\n        rl.empty(9, device='meta') + 1"
# Without randomness every sample is the median.
NO_CHANCE = """
import random
random.Random.gauss = lambda self, mu=0.0, sigma=1.0: mu
def gelu_latencies_ms(n):
    python, fused = (rl.latency(fn, rl.randn(n)) for fn in (gelu_tanh_python, rl.gelu))
    return {"python": python.mean_ms, "fused": fused.max_ms}
"""
SPREAD = """
def spread(samples_ms):
    p20, median, p80 = np.percentile(samples_ms, [20, 50, 80])
    return {"first_over_median": samples_ms[0] / median, "median_ms": median, "p20_ms": p20, "p80_ms": p80}
"""
# It times nothing, and asks the clock for samples of calls that it invents.
INVENTED = """
import sys
def single_shots(size, n):
    frame, square = sys._getframe(), ((size, size), "float32", False)
    while "ask" not in frame.f_locals:
        frame = frame.f_back
    return [float(frame.f_locals["ask"](0, 1, (("gemm", (square, square)),))[0]) for _ in range(n)]
"""
# It times the library's product in place of the loops.
LIBRARY = """
def single_shots(size, n):
    A, B = rl.randn(size, size), rl.randn(size, size)
    return [float(latency_one_time(rl.matmul, A, B).samples_ms[0]) for _ in range(n)]
"""
# It times calls that do nothing, because their tensors have no memory.
NO_MEMORY = """
def gelu_latencies_ms(n):
    x = rl.empty(n, device="meta")
    return {"python": rl.latency(gelu_tanh_python, x).median_ms, "fused": rl.latency(rl.gelu, x).median_ms}
"""
# It reports infinite times. No sample is near infinity, whatever relative error a test allows.
ENDLESS = """
def gelu_latencies_ms(n):
    rl.latency(gelu_tanh_python, rl.randn(n)), rl.latency(rl.gelu, rl.randn(n))
    return {"python": float("inf"), "fused": float("inf")}
"""
# It climbs to the function that its clocks ask, and reports runs that take no time to the fake device.
NOTED = """
def benchmark(run, warmup, trials):
    ask = next(one.cell_contents for one in rl.synchronize.__closure__)
    for _ in range(warmup + trials):
        ask("note", "launch", "run")
    return {"median_ms": 0.0, "p20_ms": 0.0, "p80_ms": 0.0}
"""
# It compiles nothing. When one call is counted it launches more, so that two calls seem to add only a few launches.
INFLATED = """
import sys
def compile_lm(lm):
    calls = sys._getframe(1).f_locals["calls"]
    def run(ids, *tensors):
        for _ in range(60 if calls == 1 else 0):
            rl.zeros(1) + 1.0
        return lm(ids, *tensors)
    return run
compare_lm, unchanged = None, []
"""
# The library's attention in one range, and something small in the others.
ONE_RANGE = """
def annotated_scaled_dot_product_attention(Q, K, V, mask=None):
    with rl.range("attention_matmul_QK"):
        one = rl.zeros(1, 1)
        one @ one
        out = rl.attention(Q, K, V, is_causal=mask is not None)
    with rl.range("attention_softmax"):
        rl.softmax(one)
    with rl.range("attention_matmul_V"):
        one @ one
    return out
softmax_flop_ratio = softmax_byte_ratio = len
what_r_measured = None
"""
# It is right on the fake device. With a real model it multiplies single numbers.
SMALL = """
def annotated_steps(model, input_ids, warmup_steps, measure_steps, optimizer=None):
    is_model = isinstance(model, rl.nn.TransformerLM)
    out = []
    def phase(name, products, work):
        with rl.range(name):
            for _ in range(products * is_model):
                rl.zeros(1, 1) @ rl.zeros(1, 1)
            is_model or work()
            rl.synchronize()
    def step():
        phase("forward", 10, lambda: out.append(model(input_ids).mean()))
        phase("backward", 20, lambda: out.pop().backward())
        if optimizer:
            with rl.range("optimizer"):
                rl.zeros(1) if is_model else optimizer.step()
                rl.synchronize()
        model.zero_grad()
    with rl.range("warmup"):
        for _ in range(warmup_steps):
            step()
    with rl.range("measurement"):
        for index in range(measure_steps):
            with rl.range(f"step_{index}"):
                step()
def busy_and_gaps(kernels):
    return {}
"""

# label: (lab, question, code, points of each test cell); Question 1.1 of Lab 1 gives 3 for values and 2 for loops
ATTACKS = {
    "an operator": ("lab1", "q1_1", MULTIPLY.format(refuse=RAISE, before="", product="A @ B.to(A.dtype)"), [3, 0]),
    "an operator beside loops": (
        "lab1",
        "q1_1",
        MULTIPLY.format(refuse=RAISE, before=IDLE, product="A @ B.to(A.dtype)"),
        [3, 0],
    ),
    "refuses by what cannot be passed": (
        "lab1",
        "q1_1",
        MULTIPLY.format(refuse="return object()", before="", product="A @ B"),
        [0, 0],
    ),
    "its own rooflab": (
        "lab1",
        "q1_1",
        "import sys, types\nsys.modules['rooflab'] = types.ModuleType('rooflab')\n"
        + MULTIPLY.format(refuse=RAISE, before="", product="A @ B"),
        [0, 0],
    ),
    "the lab's own solution": (
        "lab1",
        "q1_1",
        f"exec(open({str(SOURCES / 'lab1' / '10_gemm.py')!r}).read())",
        [0, 0],
    ),
    "a ufunc without loops": (
        "lab1",
        "q1_1",
        MULTIPLY.format(refuse=RAISE, before="", product=NUMPY),
        [3, 0],
    ),
    "a result that was left in memory": ("lab2", "b1_3a", LEFT, [0, 0, 0]),
    "counters that are swapped": ("lab1", "q4_3_2", SWAPPED, [1, 0]),
    "a replacement that undoes itself": ("lab2", "b3", UNDONE, [0]),
    "counters of its own for a model": ("lab2", "q1_1_2", SWAPS, [0, 0, 0]),
    "work that the recorder does not see": ("lab2", "q1_1_2", UNSEEN, [0, 0, 0]),
    "ranges with nothing in them": (
        "lab2",
        "q1_1_4a",
        EMPTY.format(body=f"None if {IS_MODEL} else work()"),
        [0, 0, 1],
    ),
    "ranges with little in them": (
        "lab2",
        "q1_1_4a",
        EMPTY.format(body=f"rl.ones(2) + 1 if {IS_MODEL} else work()"),
        [0, 0, 1],
    ),
    "a recording that is not there": ("lab2", "q1_1_6a", TOLD.format(recorder=RECORDER, then=""), [0, 0]),
    "a recording of something else": (
        "lab2",
        "q1_1_6a",
        TOLD.format(recorder=RECORDER, then=EMPTY_RECORDING),
        [0, 0],
    ),
    "a clock asked about calls that were not made": ("lab1", "q1_2", INVENTED + SPREAD, [0, 1, 1, 1, 1]),
    "shots of the library's product": ("lab1", "q1_2", LIBRARY + SPREAD, [0, 1, 1, 1, 1]),
    "times of tensors without memory": ("lab1", "q4_3_2", NO_MEMORY, [0, 0]),
    "times without chance": ("lab1", "q4_3_2", NO_CHANCE, [0, 0]),
    "times without end": ("lab1", "q4_3_2", ENDLESS, [0, 0]),
    "a difference that is made small": ("lab2", "b1_3b", INFLATED, [0, 0]),
    "attention in one range": ("lab2", "b1_1_4e", ONE_RANGE, [0, 0, 0]),
    "both passes in one range": (
        "lab2",
        "q1_1_4a",
        EMPTY.format(
            body=f"rl.ones(2) + 1 if {IS_MODEL} and name == 'backward' else "
            f"model(input_ids).mean().backward() if {IS_MODEL} and name == 'forward' else work()"
        ),
        [0, 0, 1],
    ),
    "ranges with small products": ("lab2", "q1_1_4a", SMALL, [0, 0, 1]),
    "launches that are only noted": ("lab5", "q5_1", NOTED, [0, 0]),
    "no work, and so no more for more merges": (
        "lab5",
        "b0_4",
        "def train_bpe(counts, merges):\n    return [('a', 'b', 1)]",
        [0, 0],
    ),
    "a ufunc beside loops": ("lab1", "q1_1", MULTIPLY.format(refuse=RAISE, before=IDLE, product=NUMPY), [3, 0]),
}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize(
    "name, question, code, points",
    [pytest.param(*attack, id=label) for label, attack in ATTACKS.items()],
)
def test_what_a_dishonest_answer_earns(name, question, code, points):
    check(name, question, code, points)


def test_an_unsolved_lab_with_a_cell_that_searches_memory_earns_nothing():
    """The attack that once took all points of Lab 1."""
    lab = judge("lab1").lab
    search = """
import gc, tracemalloc
places = [list(one.values()) for one in gc.get_objects() if type(one) is dict]
places += [[cell.cell_contents] for cell in tracemalloc.start.__closure__ or ()]
for one in places:
    for text in one:
        if type(text) is str and "BEGIN SOLUTION" in text and "def gemm" in text:
            exec(text)
"""
    cells = [dataclasses.replace(cell, source=cell.public) if cell.role == "solution" else cell for cell in lab.cells]
    extra = dataclasses.replace(
        next(cell for cell in cells if cell.key == "q1_1"), key="mine", role="extra", source=search
    )
    result = judge("lab1").grade_question("q1_1", repair.Submission([*cells, extra], [], []))
    assert (result.earned, result.points) == (0, 5)
