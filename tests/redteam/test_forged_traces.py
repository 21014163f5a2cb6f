"""Answers that change the trace of what they did, from which the runtime counts again."""

import pytest
from redteam.attack import CLIMB, FEW, PRODUCT, Attack, cases, check, graded

OWN = """
from rooflab.grading import measure
import rooflab as rl
from rooflab.testing import assert_close
a, b = rl.randn(3, 4), rl.randn(4, 5)
seen = measure.count(gemm, a, b)
assert_close(seen.value, a @ b, atol=1e-5, name='the product')
assert seen.macs == 60, 'one product'
"""
BOTH = """
from rooflab.grading import measure
import rooflab as rl
from rooflab.testing import assert_close
a, b = rl.randn(3, 4), rl.randn(4, 5)
product, more = measure.count(gemm, a, b).value
assert_close(product, a @ b, atol=1e-5, name='the product')
assert abs(more["first"] - float(a[0, 0])) < 1e-6, 'the number'
"""
# As OWN, but the numbers are known already when the product is counted.
KNOWN = OWN.replace("seen =", "gemm(a, b)\nseen =")
# The function is called in turn: the test's product from NumPy, and what is counted.
IN_TURN = """
import rooflab as rl
calls = [0]
def gemm(a, b):
    calls[0] += 1
    if calls[0] % 2:
        {counted}
    return {returned}
"""
IN_PLACE = (
    CLIMB
    + """
import json, os
def gemm(a, b):
    number = above('number')
    frame = sys._getframe()
    while 'replies' not in dir(frame.f_locals.get('self')):
        frame = frame.f_back
    worker = frame.f_locals['self']
    wire, one_call = (type(worker).answer.__globals__[name] for name in ('wire', 'one_call'))
    reply = {reply}
    wire.send(worker.replies, wire.message((number, 'ok', reply)))
    os._exit(0)
"""
)

TRACES = {
    "keeps the function inside the wrapper": Attack(
        "import rooflab as rl\nmatmul = rl.matmul.__wrapped__\ndef gemm(a, b):\n    return matmul(a, b)",
        0,
        "the product",
        test=OWN,
    ),
    "turns the recorder off": Attack(
        "import rooflab as rl\nrecorder = next(cell.cell_contents for cell in rl.matmul.__closure__\n"
        "                if hasattr(cell.cell_contents, '__self__')).__self__\n"
        "def gemm(a, b):\n    recorder.on = False\n    return rl.matmul(a, b)",
        0,
        "the product",
        test=OWN,
    ),
    "multiplies in NumPy": Attack(
        "import rooflab as rl\ndef gemm(a, b):\n    return rl.tensor(a.numpy() @ b.numpy())",
        0,
        "gemm was counted on other numbers",
        test=OWN,
    ),
    "writes the product into a tensor by NumPy": Attack(
        "import rooflab as rl\ndef gemm(a, b):\n    out = rl.zeros(3, 5)\n    out.numpy()[:] = a.numpy() @ b.numpy()\n"
        "    return out",
        0,
        "gemm was counted on other numbers",
        test=OWN,
    ),
    "has the product in a tensor from before the call, and counts another": Attack(
        IN_PLACE.format(
            reply="(json.dumps({'state': [0, 0, True, None], 'before': [['b', 1, 'cpu', 'float32', 15, 3], ['u', 2, 1, "
            "[3, 5], [5, 1], 0, False, None]], 'events': [['c', 'matmul', [['h', -1], ['h', -2]], {}, ['h', 4]], "
            "['r', ['h', 2]]]}), {3: (a.numpy() @ b.numpy()).ravel()})"
        ),
        0,
        "the product",
        test=OWN,
    ),
    "takes the product's numbers out, and puts them in one by one": Attack(
        "import rooflab as rl\ndef gemm(a, b):\n    out, right = a @ b, a.numpy() @ b.numpy()\n"
        "    for i, j in np.ndindex(3, 5):\n        out[i, j] = float(right[i, j])\n    return out",
        0,
        "gemm was counted on other numbers",
        test=OWN,
    ),
    "has a number beside its product from NumPy": Attack(
        "import rooflab as rl\ndef gemm(a, b):\n    return rl.tensor(a.numpy() @ b.numpy()), {'first': float(a[0, 0])}",
        0,
        "gemm was counted on other numbers",
        test=BOTH,
    ),
    "counts a call that returns a number, and computes in the next": Attack(
        IN_TURN.format(counted="a @ b\n        return 0", returned="rl.tensor(a.numpy() @ b.numpy())"),
        0,
        "Only one of the two values had a tensor",
        test=OWN,
    ),
    "returns a tensor where it had returned a number, beside others": Attack(
        IN_TURN.format(
            counted="return a @ b, {'first': 0.0}", returned="a @ b, {'first': rl.tensor(a.numpy()[0, 0].item())}"
        ),
        0,
        "Only one of the two values had a tensor",
        test=BOTH,
    ),
    "keeps the product of an earlier call": Attack(
        "import rooflab as rl\nkept = []\ndef gemm(a, b):\n    kept.append(a.numpy() @ b.numpy())\n    a @ b\n"
        "    return rl.tensor(kept[0])",
        0,
        "cannot be counted on numbers that it got before",
        test=KNOWN,
    ),
    "keeps the numbers of a call that was counted": Attack(
        "import rooflab as rl\nkept = []\ndef gemm(a, b):\n    kept.append(a.numpy() @ b.numpy())\n    a @ b\n"
        "    return rl.tensor(kept[-1]) if len(kept) > 2 else 0",
        0,
        "cannot be counted on numbers that it got before",
        test=OWN.replace("seen =", "measure.count(gemm, a, b)\nseen ="),
    ),
    "counts a product in its trace that gives something else": Attack(
        IN_PLACE.format(
            reply="(json.dumps({'state': [0, 0, True, None], 'before': [], 'events': [['c', 'matmul', [['h', -1], "
            "['h', -2]], {}, ['h', 1]], ['c', 'exp', [['h', 1]], {}, ['h', 2]], ['r', ['h', 2]]]}), {})"
        ),
        0,
        "the product",
        test=OWN,
    ),
    "names what is not allowed in its trace": Attack(
        IN_PLACE.format(
            reply="(json.dumps({'state': [0, 0, True, None], 'before': [], 'events': [['c', 'memory.set_limit', [1], "
            "{}, None], ['r', 1]]}), {})"
        ),
        0,
        "memory.set_limit is nothing that may be counted",
        test=OWN,
    ),
    "sends a trace without end": Attack(
        IN_PLACE.format(
            reply="(json.dumps({'state': [0, 0, True, None], 'before': [], 'events': [['x', 1]] * 500000}), {})"
        ),
        0,
        "more than can be counted again",
        test=OWN,
    ),
    "makes more calls than a trace holds": Attack(
        "import rooflab as rl\ndef gemm(a, b):\n    for _ in range(300000):\n        a.T\n    return rl.matmul(a, b)",
        0,
        "more than 200,000 calls",
        test=OWN,
    ),
    "answers in the worker's place": Attack(
        IN_PLACE.format(reply="{'value': a @ b, 'by_op': {}} | dict.fromkeys(['launches', 'macs', 'flops'], 0)"),
        0,
        "what was recorded is not a trace",
        test=FEW,
    ),
}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("attack", cases(TRACES))
def test_a_forged_trace_earns_nothing(attack):
    check(attack)


@pytest.mark.parametrize(
    "code, test",
    [
        (PRODUCT, OWN),
        ("def gemm(a, b):\n    return a @ b, {'first': float(a[0, 0])}", BOTH),
    ],
    ids=["own", "both"],
)
def test_an_honest_trace_passes_the_same_tests(code, test):
    check(Attack(code, 5, test=test))


def test_a_wrong_count_is_not_put_down_to_numbers_from_outside():
    """Questions that ask for loops in Python count them as well."""
    multiplied = "import rooflab as rl\ndef gemm(a, b):\n    return rl.tensor(a.numpy() @ b.numpy())"
    counted = "from rooflab.grading import measure\nimport rooflab as rl\n"
    counted += "assert measure.count(gemm, rl.ones(3, 4), rl.ones(4, 5)).macs == 60, 'one product'"
    assert graded(Attack.question, multiplied, counted) == (0, "one product")
