"""Answers that change what the worker reports about them: the counters, the clock, the reply itself.

Some reach the worker's own objects, because they run in its process. Nothing is counted or timed there: the runtime
counts, and the judge has the clock, in processes that no answer reaches.
"""

import pytest
from grading.demo_lab import RIGHT
from redteam.attack import CLIMB, FEW, LOOPS, PRODUCT, Attack, cases, check

COUNT = """
from rooflab.grading import measure
import rooflab as rl
seen = measure.count(gemm, rl.ones((3, 4)), rl.ones((4, 5)))
assert seen.macs == 60 and seen.by_op == {'matmul': 1}, 'one product'
"""
TIMED = """
from rooflab.grading import measure
import rooflab as rl
a, b = rl.ones((3, 4)), rl.ones((4, 5))
seen = measure.timed(gemm, a, b, watch=['product'])
assert len(seen.calls) == 1, 'one product'
assert seen.calls[0].ran[0][0] == 'product' and seen.calls[0].macs == 60, 'a product of 60 MACs'
assert measure.is_median(seen.value, seen.calls), 'the median'
"""
LEAN = """
from rooflab.grading import measure
import rooflab as rl
x = rl.ones((8, 8))
seen = measure.gradients(gemm, x, x, upstream=x)
assert seen.saved == (), 'something was kept'
"""
WRONG = "\ndef gemm(a, b):\n    return np.ones((a.shape[0], b.shape[1]))\n"
ZEROS = "\nimport rooflab as rl\ndef gemm(a, b):\n    return rl.zeros((3, 5))\n"
FAKE = """
import sys, types
import rooflab as real
fake = types.ModuleType("rooflab")
vars(fake).update(vars(real))
class count:
    macs, by_op = 60, {"matmul": types.SimpleNamespace(ops=1)}
    launches = host_calls = flops = bytes_read = bytes_written = allocations = bytes_allocated = peak_bytes = 0
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
fake.count = count
sys.modules["rooflab"] = fake
"""
# It replies to request 4, its place in the order. That would pass if the request had no random number, which only the
# worker knows.
BLIND = """
import os
import rooflab as rl
from rooflab.grading.jail import wire
from rooflab.grading.measure import counter_values
def gemm(a, b):
    reply = {"value": rl.matmul(a, b), "by_op": {}} | dict.fromkeys(counter_values.COUNTERS, 0)
    for fd in range(3, 64):
        try:
            wire.send(fd, wire.message((4, "ok", reply)))
        except OSError:
            pass
    os._exit(0)
"""
# It finds the worker's object, and sends a reply in its name.

FORGING = {
    # functions that the worker calls for each reply
    "replaces os.write": Attack(
        f"import os\nos.write = lambda fd, data: len(data)\n{RIGHT}", 0, "longer than 2 s", seconds=2
    ),
    "replaces os.read": Attack(f"import os\nos.read = lambda fd, n: b''\n{RIGHT}", 0, "exit code 1"),
    "replaces struct.pack": Attack(
        f"import struct\nstruct.pack = lambda *a: b''\n{RIGHT}", 0, "a message is too large"
    ),
    "replaces select.poll": Attack(f"import select\nselect.poll = None\n{RIGHT}", 5),
    "hides its threads": Attack(
        "import _thread, threading, time\n_thread._count = lambda: 0\n"
        f"threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n{RIGHT}",
        5,
    ),
    "replaces how errors are described": Attack(f"import traceback\ntraceback.extract_tb = lambda t: []\n{RIGHT}", 5),
    "replaces NumPy in its place": Attack(
        f"import sys, types\nsys.modules['numpy'] = types.ModuleType('numpy')\n{RIGHT}", 5
    ),
    # another rooflab, or other objects inside of it
    "puts its own rooflab in the place of ours": Attack(
        FAKE + ZEROS.replace("import rooflab as rl", "rl = real"), 0, "one product", test=COUNT
    ),
    "removes rooflab from the modules": Attack(
        "import sys\nimport rooflab\ndel sys.modules['rooflab']" + ZEROS, 0, "No module named|one product", test=COUNT
    ),
    "gives rl.latency another code": Attack(
        "import rooflab as rl\nrl.latency.__code__ = (lambda *a, **k: None).__code__\ndef gemm(a, b):\n    return 1.0",
        0,
        "one product",
        test=TIMED,
    ),
    "gives rl.latency other defaults": Attack(
        "import rooflab as rl\nrl.latency.__kwdefaults__ and rl.latency.__kwdefaults__.clear()\n"
        "rl.latency.__defaults__ = (1, 2, 3)\ndef gemm(a, b):\n    return 1.0",
        0,
        "one product",
        test=TIMED,
    ),
    "gives saved_tensors another code": Attack(
        "import rooflab as rl\nrl.autograd.saved_tensors.__code__ = (lambda *a: ()).__code__\n"
        "def gemm(a, b):\n    return (a @ b).tanh()",
        0,
        "something was kept",
        test=LEAN,
    ),
    "replaces the counters' class": Attack(
        "import rooflab as rl\nrl.count = type('count', (), {})" + ZEROS, 0, "'__enter__'|context manager", test=COUNT
    ),
    "adds to the counters beforehand": Attack(
        "import rooflab as rl\nrl.matmul(rl.ones((3, 4)), rl.ones((4, 5)))" + ZEROS, 0, "one product", test=COUNT
    ),
    "counts inside of the count": Attack(
        "import rooflab as rl\ndef gemm(a, b):\n    with rl.count():\n        return rl.matmul(a, b)",
        0,
        "no product",
        test=FEW,
    ),
    "multiplies in a thread": Attack(
        "import rooflab as rl, threading\ndef gemm(a, b):\n    out = []\n"
        "    thread = threading.Thread(target=lambda: out.append(rl.matmul(a, b)))\n"
        "    thread.start(), thread.join()\n    return out[0]",
        0,
        "in a thread of its own",
        test=FEW,
    ),
    "multiplies when the cell runs, for later": Attack(
        "import rooflab as rl\nready = rl.matmul(rl.ones((3, 4)), rl.ones((4, 5)))\n"
        "def gemm(a, b):\n    return rl.zeros((3, 4))",
        0,
        "no product",
        test=FEW,
    ),
    # products that a tracer would have to see; there is no tracer, because the source text is judged
    "asks for the tracer": Attack(
        "import sys\ndef gemm(a, b):\n    sys.gettrace().__self__.steps = 100\n    return a @ b",
        0,
        "calls sys.gettrace|assigns",
        test=LOOPS,
    ),
    "asks for the profiler": Attack(
        "import sys\ndef gemm(a, b):\n    sys.getprofile().__self__.seen = []\n    return a @ b",
        0,
        "calls sys.getprofile|assigns",
        test=LOOPS,
    ),
    "ends the trace": Attack(
        "import sys\ndef gemm(a, b):\n    sys.setprofile(None)\n    return a @ b", 0, "sys.setprofile", test=LOOPS
    ),
    "takes the tracer that threads would get": Attack(
        "import threading\ndef gemm(a, b):\n    out = a @ b\n    counter = threading.getprofile().__self__\n"
        "    counter.seen, counter.steps = [], 100\n    return out",
        0,
        "@",
        test=LOOPS,
    ),
    # the reply
    "sends the reply before the worker does": Attack(BLIND, 0, "not an answer", test=FEW),
    "sends the reply and hangs": Attack(
        BLIND.replace("os._exit(0)", "import time; time.sleep(60)"), 0, "not an answer", test=FEW
    ),
    "says that it passed": Attack(WRONG + "print('q1_test passed', 5, 'of 5 points')", 0, "identity changes nothing"),
    "raises what the judge raises": Attack(
        "class WorkerLost(BaseException):\n    pass\ndef gemm(a, b):\n    raise WorkerLost('passed')", 0, "WorkerLost"
    ),
    "gives what cannot be passed for an error": Attack(
        "class negative:\n    pass\ndef refuse(x):\n    return negative() if x < 0 else x",
        0,
        "could not be passed",
        "b2_2",
    ),
    "gives too much for an error": Attack(
        "def refuse(x):\n    return {'negative': 2**5000} if x < 0 else x", 0, "could not be passed", "b2_2"
    ),
    "names its error like the right one": Attack(
        "class ValueError(Exception):\n    pass\ndef refuse(x):\n    if x < 0:\n        raise ValueError('negative')\n"
        "    return x",
        0,
        "RuntimeError on inputs that are not shown",
        "b2_2",
    ),
    # the worker's own objects
    "takes the counters from its caller's frame": Attack(
        CLIMB + PRODUCT.replace("return rl", "above('counters').__exit__(None, None, None)\n    return rl"),
        0,
        "no product",
        test=FEW,
    ),
    "replaces the measurement in its caller's module": Attack(
        "from rooflab.grading.measure.one_call import LOCAL as table\n"
        "true = table['count']\n"
        "table['count'] = lambda *call: true(*call) | {'macs': 60, 'by_op': {'matmul': 1}}\n" + ZEROS,
        0,
        "one product",
        test=COUNT,
    ),
    "asks the clock for samples of nothing": Attack(
        CLIMB + "def gemm(a, b):\n    return float(np.median(above('ask')(1, 3, (('product', ()),))))",
        0,
        "what was timed is not what was counted",
        test=TIMED,
    ),
    "asks the clock, and marks what it did not do": Attack(
        CLIMB + "import rooflab as rl\ndef gemm(a, b):\n    with above('section')():\n        pass\n"
        "    return float(np.median(above('ask')(1, 3, (('product', ()),))))",
        0,
        "a product of 60 MACs",
        test=TIMED,
    ),
    "marks no end of what it did": Attack(
        CLIMB + "import rooflab as rl\ndef gemm(a, b):\n    above('section')().__enter__()\n    rl.matmul(a, b)\n"
        "    return float(np.median(above('ask')(1, 3, (('product', ()),))))",
        0,
        "what was timed is not what was counted",
        test=TIMED,
    ),
    "asks the clock forever": Attack(
        CLIMB + "import os, threading\ndef gemm(a, b):\n    worker, number = above('ask').__self__, above('number')\n"
        "    wire = type(worker).answer.__globals__['wire']\n"
        "    def read():\n        while True:\n            os.read(worker.requests, 2**16)\n"
        "    threading.Thread(target=read, daemon=True).start()\n"
        "    many = 1000 * wire.message((number, 'asks', (1, 1, ())))  # faster than the judge answers\n"
        "    while True:\n        wire.send(worker.replies, many)",
        0,
        "longer than 2 s",
        test=TIMED,
        seconds=2,
    ),
    "asks the clock for what is nothing": Attack(
        CLIMB + "def gemm(a, b):\n    above('ask')({}, 'x', 5.0)",
        0,
        "expected warmup",
        test=TIMED,
    ),
    "asks the clock for too much": Attack(
        CLIMB + "def gemm(a, b):\n    return float(np.median(above('ask')(1, 10**9, ())))",
        0,
        "more than 1,000,000 samples",
        test=TIMED,
    ),
}


@pytest.mark.slow(but_every=2)
@pytest.mark.slow(id=["asks the clock forever", "makes more calls than a trace holds", "sends a trace without end"])
@pytest.mark.parametrize("attack", cases(FORGING))
def test_a_forged_report_earns_nothing(attack):
    check(attack)


@pytest.mark.parametrize(
    "code, test",
    [
        (PRODUCT, COUNT),
        (
            "import rooflab as rl\ndef gemm(a, b):\n    return rl.zeros((3, 5))",
            FEW.replace("seen.launches == 0", "True"),
        ),
        (RIGHT, LOOPS),
        ("import rooflab as rl\ndef gemm(a, b):\n    return a + b", LEAN),
        (
            "import rooflab as rl\ndef product(a, b):\n    return a @ b\ndef gemm(a, b):\n"
            "    return rl.latency(product, a, b, warmup=1, repeat=3).median_ms",
            TIMED,
        ),
    ],
    ids=["count", "few", "loops", "lean", "timed"],
)
def test_an_honest_answer_passes_the_same_tests(code, test):
    check(Attack(code, 5, test=test))
