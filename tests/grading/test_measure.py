"""What a test cell measures of student code: the same in Jupyter and under the judge, or refused."""

import dataclasses
import warnings

import numpy as np
import pytest
from grading.demo_lab import RIGHT, demo_lab, grade_one

import rooflab as rl
from rooflab.grading import measure
from rooflab.grading.measure.counter_values import COUNTERS
from rooflab.grading.measure.results import Implausible
from rooflab.labs import lab2_looks, lab2_memory

LISTS = """
def gemm(a, b):
    rows, columns = a.tolist(), list(zip(*b.tolist()))
    return np.array([[sum(x * y for x, y in zip(r, c)) for c in columns] for r in rows], a.dtype)
"""
TESTS = {
    "loops": """
seen = measure.loops(gemm, np.ones((3, 4)), np.ones((4, 5)))
assert seen.products == 60, 'three loops'
assert seen.value.shape == (3, 5)
""",
    "timed": """
seen = measure.timed(gemm, np.ones((3, 4)), np.ones((4, 5)), watch=["product"])
assert [call.ran for call in seen.calls] == [(("product", ()),)], 'one product'
assert measure.is_median(seen.value, seen.calls), 'the median'
""",
    "count": """
import rooflab as rl
seen = measure.count(gemm, rl.ones((3, 4)), rl.ones((4, 5)))
assert seen.macs == 60 and seen.by_op == {'matmul': 1}, 'one product'
assert type(seen.value) is rl.Tensor and tuple(seen.value.shape) == (3, 5)
""",
}
TESTS["cpu"] = """
few, many = measure.cpu_seconds(gemm, 1), measure.cpu_seconds(gemm, 30)
assert (few.value, many.value) == (1, 30), 'the values'
assert 3 * few.seconds < many.seconds and 0.2 < many.seconds < 0.5, f'took {many.seconds} s'
"""
TESTS["accesses"] = """
seen = measure.accesses(gemm, np.arange(4.0), np.zeros(2), 7)
assert seen.value == 7 and seen.arrays[1].tolist() == [1.0, 2.0], 'the values'
assert seen.reads[0].tolist() == [0, 1, 1, 0] and len(seen.order) == 1, 'read once'
assert seen.writes[1].tolist() == [1, 1] and seen.arrays[2] is None, 'written once'
"""
TESTS["sections"] = """
seen = measure.timed(gemm, 100, spare_bytes=180_000)
assert seen.value[:2] == (None, None), f'out of memory: {seen.value}'
assert [(call.macs, call.by_op) for call in seen.calls] == [(24, {'matmul': 1})], 'one product'
assert measure.is_median(seen.value[2], seen.calls), 'the median'
"""
TESTS["alone"] = """
import rooflab as rl
a, b = rl.ones((2, 3)), rl.ones((3, 4))
seen, once = measure.timed(gemm, a, b), measure.count(rl.matmul, a, b)
assert len(seen.calls_of(once)) == 1, 'alone' + seen.beside(once)
"""
TESTS["faked"] = """
seen = measure.faked(gemm, "<run>", 4, device={"work_ms": 5.0, "host_ms": 1.0, "slow_ms": [90.0]})
assert abs(seen.value - 0.005) < 1e-6, f'the time {seen.value}'
assert [one.work_ms for one in seen.launches()] == [90.0, 5.0, 5.0, 5.0], 'the log'
"""
TESTS["call"] = """
from rooflab.labs import lab2_memory
moments = [('forward', 3), ('backward', 4)]
seen = measure.call(gemm, moments, through=lab2_memory.run_phase)
assert seen.value == 'backward/block_0', 'the last range'
"""
SKILL = """
import time
from time import perf_counter
import rooflab as rl
def gemm(run, calls):
    for _ in range(calls - 1):
        run()
    rl.synchronize()
    start = perf_counter()
    run()
    rl.synchronize()
    return time.perf_counter() - start
"""
SPIN = """
import time
def gemm(n):
    start = time.process_time()
    while time.process_time() < start + {}:
        pass
    return n
"""
OWN_TIME = "import time\nclock, time.process_time = time.process_time, lambda: 0.0\n"
HALVES = """
def gemm(a, b, n):
    b[0:2] = a[slice(1, 3)]
    return n
"""
# Memory runs out in the first timed call, and in the second, which is a backward pass.
FULL = """
import rooflab as rl
device = "cuda" if rl.cuda.is_available() else "cpu"
def tried(fn, *args):
    try:
        return rl.latency(fn, *args, warmup=1, repeat=3).median_ms
    except rl.OutOfMemoryError:
        return None
def gemm(n):
    x = rl.ones((n, n), requires_grad=True, device=device)
    out = (x * x * x).sum()
    a, b = rl.ones((2, 3), device=device), rl.ones((3, 4), device=device)
    return tried(lambda: rl.ones(10**6, device=device)), tried(out.backward), tried(rl.matmul, a, b)
"""
# The device is in another process. The code here can only ask it.
KNOWN = """
from rooflab.benchmark import fake_device
seen = []
fake_device.FakeDevice.launch = lambda self, *args: seen.append(self)
def gemm(run, calls):
    run()
    return seen[0].log[0].work_ms / 1000
"""
ASKED = """
import rooflab as rl
def gemm(run, calls):
    return run.__closure__[0].cell_contents({})
"""
TIMING = """
def product(a, b):
    return a @ b
def gemm(a, b):
    import rooflab as rl
    return rl.latency(lambda: product(a, b), warmup=1, repeat=5).median_ms
"""
OWN_CLOCK = """
from rooflab.benchmark import timing
timing.stand_in = lambda call, warmup, repeat: np.ones(repeat)
"""
ASKED_CLOCK = """
def gemm(a, b):
    from rooflab.benchmark import timing
    cells = dict(zip(timing.stand_in.__code__.co_freevars, timing.stand_in.__closure__))
    return float(np.median(cells["ask"].cell_contents(1, 5, (("product", ()),))))
"""
LOCAL = """
from rooflab.grading.measure import one_call
import rooflab as rl
true = one_call.LOCAL["count"]
one_call.LOCAL["count"] = lambda *call: true(*call) | {"macs": 60, "by_op": {"matmul": 1}}
def gemm(a, b):
    return rl.zeros((3, 5))
"""
ONCE = """
import rooflab as rl
true = rl.count.macs
def lie(counters):
    rl.count.macs = true
    return 60
def gemm(a, b):
    rl.count.macs = property(lie)
    return rl.matmul(a, b)
"""
BESIDE = "import rooflab as rl\ndef gemm(a, b):\n    rl.latency(lambda: {})"
PRODUCT = "def gemm(a, b):\n    import rooflab as rl\n    return rl.matmul(a, b)"


def asking(what):
    lab = demo_lab()
    source = "from rooflab.grading import measure\n" + TESTS[what]
    changed = {"source": source, "options": {"seconds": 8}}
    return dataclasses.replace(
        lab, cells=tuple(dataclasses.replace(c, **changed) if c.key == "q1_test" else c for c in lab.cells)
    )


@pytest.mark.parametrize(
    "what, code, message",
    [
        ("loops", RIGHT, ""),
        ("loops", LISTS, ""),
        ("loops", "from numpy import dot\ndef gemm(a, b):\n    return dot(a, b)", "Line 3 calls numpy.dot"),
        ("loops", "def gemm(a, b):\n    return a @ b", "whole matrices by `@`"),
        ("loops", "def gemm(a, b):\n    return [[1.0] * 5] * 3", "three loops"),
        ("timed", TIMING, ""),
        ("timed", TIMING.replace("median_ms", "median_ms / 1000"), "the median"),
        ("timed", TIMING.replace("lambda: product(a, b)", "lambda: a"), "one product"),
        ("timed", "import time\ntime.perf_counter_ns = lambda: 0\n" + TIMING, ""),
        ("timed", "import rooflab\nrooflab.latency = lambda *a, **k: None\n" + TIMING, "AttributeError"),
        ("timed", OWN_CLOCK + TIMING, ""),
        ("timed", ASKED_CLOCK, "what was timed is not what was counted"),
        ("call", "def gemm(timeline):\n    return timeline.events[-1].range", ""),
        ("call", "def gemm(timeline):\n    return timeline.events[0].range", "the last range"),
        ("faked", SKILL, ""),
        ("faked", SKILL.replace("    rl.synchronize()\n    return", "    return"), "the time"),
        ("faked", SKILL.replace("range(calls - 1)", "range(calls - 2)"), "the log"),
        ("faked", "import time\ntime.perf_counter = lambda: 0.005\n" + SKILL, ""),
        ("faked", SKILL.replace("calls):", "calls, perf_counter=perf_counter):").replace("- start", "- start * 1"), ""),
        ("sections", FULL, ""),
        ("sections", FULL.replace("(3, 4)", "(3, 5)"), "one product"),
        ("alone", BESIDE.format("a @ b"), ""),
        ("alone", BESIDE.format("a @ rl.tensor(np.ones((3, 4), 'f4'))"), "also filled tensors from NumPy"),
        ("alone", BESIDE.format("rl.ones((2, 3), device='meta') @ rl.ones((3, 4), device='meta')"), "without memory"),
        ("alone", BESIDE.format("(a @ b).tolist()"), "also took numbers out of tensors"),
        ("alone", BESIDE.format("(a @ b) + 1"), "alone (A timed call also ran add: do not time that.)"),
        ("faked", KNOWN, "IndexError"),
        ("faked", ASKED.format("'log'"), "expected one of"),
        ("faked", ASKED.format("'launch', 5.0"), "expected one of"),
        ("faked", ASKED.format("'run', 7"), "IndexError"),
        ("cpu", SPIN.format("0.01 * n"), ""),
        ("cpu", SPIN.format("0.3"), "took"),
        ("cpu", OWN_TIME + SPIN.format("0.3").replace("time.process_time()", "clock()"), "took"),
        ("accesses", HALVES, ""),
        ("accesses", HALVES.replace("slice(1, 3)", "[1, 2]"), ""),
        ("accesses", HALVES.replace("    b[", "    a[3]\n    b["), "read once"),
        ("accesses", HALVES.replace("    b[", "    b[0] = 1\n    b["), "written once"),
        ("accesses", HALVES.replace("slice(1, 3)", "-1"), "IndexError"),
        ("count", PRODUCT, ""),
        ("count", "import rooflab as rl\ndef gemm(a, b):\n    return rl.zeros((3, 5))", "one product"),
        ("count", "import rooflab\nrooflab.count.macs = 7\n" + PRODUCT, ""),
        ("count", LOCAL, "one product"),
        ("count", ONCE, ""),
        ("count", ONCE.replace("return rl.matmul(a, b)", "return rl.zeros((3, 5))"), "one product"),
    ],
)
def test_under_the_judge(what, code, message):
    result = grade_one("q1", code, asking(what))
    assert message in result.tests[0].message and bool(message) == bool(result.tests[0].message)


class Liar:
    """A proxy whose worker says what it likes."""

    def __init__(self, reply):
        self.reply = reply

    def __rooflab_measure__(self, kind, args, kwargs, options, through, answer):
        return self.reply


def test_malformed_counts_are_refused():
    good = {"value": 1, "by_op": {}} | dict.fromkeys(COUNTERS, 0)
    assert measure.count(Liar(good)).launches == 0
    for bad in (
        {"launches": -1},
        {"launches": 1.0},
        {"launches": True},
        {"by_op": {"gelu": "8"}},
        {"more": 1},
        {"by_op": 3},
        {"by_range": {"forward": {"gelu": -1}}},
        {"by_range": {"forward": 3}},
        {"recordings": ((1, 2, -3),)},
        {"recordings": ((1, 2),)},
    ):
        with pytest.raises((Implausible, TypeError, AttributeError, ValueError)):
            measure.count(Liar(good | bad))


@pytest.mark.parametrize("given", [rl.exp, int, type("Lookalike", (), {"apply": staticmethod(rl.exp)})])
def test_saved_takes_functions_of_autograd_only(given):
    with pytest.raises(TypeError, match=r"expected a subclass of rl\.autograd\.Function"):
        measure.saved(given, rl.ones(3))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_call_that_writes_into_its_arguments_is_seen(place):
    def writes(*args):
        args[place][0] = 7
        return len(args)

    args = np.ones(3), rl.ones(4), [1, 2]
    seen = measure.call(writes, *args)
    assert seen.value == 3 and seen.changed == (place,)
    assert measure.call(lambda *args: None, *args).changed == ()


LOOKALIKE = type("run_phase", (), {"__module__": "rooflab.labs.lab2_memory"})


def test_a_call_goes_through_a_function_of_a_lab():
    def create(V, L, device):
        return rl.nn.TransformerLM(rl.nn.TransformerConfig(8, 16, 12, 2, vocab_size=V, context_length=L), device=device)

    seen = measure.count(create, 1, 100, 8, through=lab2_looks.run_model)
    parameters, logits, _ = seen.value
    assert logits.shape == (2, 8, 100) and len(parameters) == 9 * 12 + 3
    assert seen.by_range["head"] == {"rms_norm": 1, "matmul": 1} and seen.by_op["matmul"] == 9 * 12 + 1
    tensors = rl.ones(1, 3, 8), *lab2_memory.block_weights(1, 8)
    back = measure.gradients(lab2_memory.run_plainly, *tensors, upstream=tensors[0], through=lab2_memory.run_blocks)
    assert [one.shape for one in back.gradients] == [one.shape for one in tensors] and back.backward.macs == 3072
    for other in (grade_one, lambda fn: fn(), rl.matmul, lab2_memory.Mapping, LOOKALIKE):
        with pytest.raises(ValueError, match=r"through: expected a function of a module of rooflab\.labs"):
            measure.call(len, "abc", through=other)


def test_ranges_and_recordings_are_seen():
    before = dict(vars(rl.range))

    def runs(x):
        with rl.memory.record("cpu") as timeline:
            with rl.range("outer"), rl.range("inner"):
                y = rl.exp(x) + x
            z = rl.exp(y)
        return timeline.peak_bytes + 0 * len(z)

    seen = measure.count(runs, rl.ones(1000))
    assert seen.by_range == {"outer/inner": {"exp": 1, "add": 1}, "": {"exp": 1}}
    assert seen.recordings[0][1] == seen.value == 8000 and len(seen.recordings) == 1
    layer = rl.nn.Linear(4, 5, bias=False)

    def low(x):
        with rl.autocast("bfloat16"), rl.range("low"):
            return layer(x)

    assert measure.count(low, rl.ones(3, 4)).by_range == {"low": {"cast": 2, "matmul": 1}}
    with rl.range("around"):
        assert measure.count(rl.exp, rl.ones(3)).by_range == {"around": {"exp": 1}}
    assert dict(vars(rl.range)) == before


def test_ops_in_their_order():
    assert measure.launched(lambda x: rl.tanh(x * 2) + x, rl.ones(5)) == ("mul", "tanh", "add")


class Keeps(rl.autograd.Function):
    """Twice x; `ctx` keeps three times x beside it, if told so."""

    @staticmethod
    def forward(ctx, x, keep):
        ctx.save_for_backward(x)
        ctx.kept = [x * 3] if keep else None
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


def test_what_a_function_keeps_alive_beside_its_saved_tensors():
    x = rl.ones(1000)
    for keep, held in ((False, 4000), (True, 8000)):
        assert measure.saved(Keeps, x, keep).held_bytes == held
        assert measure.gradients(Keeps.apply, x, keep, upstream=x).held_bytes == held


def profiled(steps, plan, **kinds):
    with rl.profile(schedule=plan) as prof:
        for _ in range(steps):
            rl.tanh(rl.ones(3) * 2)
            prof.step()
    return kinds or len(prof.kernels)


def test_the_steps_that_a_profile_recorded():
    plan = rl.profiler.schedule(wait=1, warmup=1, active=2)
    seen = measure.profiles(profiled, 4, plan)
    assert seen.value == sum(len(ops) for _, ops in seen.profiles[0]) and len(seen.profiles) == 1
    (two, ops), (three, again) = seen.profiles[0]
    assert (two, three) == (2, 3) and ops == again and ops[-2:] == ("mul", "tanh")
    assert seen.recorded(plan, 4) and seen.recorded(plan, 4, ops)
    assert not seen.recorded(plan, 4, ops[:-1]) and not seen.recorded(rl.profiler.schedule(active=2), 4)
    assert not measure.profiles(profiled, 4, None).recorded(plan, 4) and not measure.profiles(len, []).recorded(plan, 4)
    with pytest.raises(Implausible, match="a step has a number"):
        measure.Profiled(0, ((("2", ()),),))


def test_a_figure_as_numbers():
    def draws(points):
        return rl.plots.plot_roofline("A6000", points, dtype="float32")

    seen = measure.drawn(draws, {"slope": 2.0, "flat": 300.0})
    assert seen.scales == (("log", "log"),)
    assert seen.has(2.0, 2.0 * 0.768e12) and seen.has(300.0, 38.7e12) and not seen.has(2.0, 38.7e12)
    with pytest.raises(TypeError, match="expected the figure"):
        measure.drawn(lambda: None)


def test_what_looks_on_is_not_watched_by_a_compiled_function():
    """In a notebook the ranges that it opens are counted in its own process."""

    def function(x):
        with rl.range("first"):
            y = x + 1
        with rl.range("second"):
            return rl.relu(y) * 2

    compiled, x = rl.compile(function), rl.ones(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it would say that it runs as it is written
        seen = [measure.count(lambda: compiled(x)) for _ in range(10)]
    assert {one.launches for one in seen} == {1}
