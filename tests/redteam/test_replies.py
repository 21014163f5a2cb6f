"""Values and bytes that attack the judge's end of the connection: odd shapes, odd types, too much, and noise."""

import os
import random
import resource
import struct

import numpy as np
import pytest
from redteam.attack import Attack, cases, check

from rooflab.grading.jail import codec, wire
from rooflab.grading.jail.link import ERRORS, Link, StudentError, Unfit, WorkerLost
from rooflab.grading.lab.model import Limits
from rooflab.grading.measure import clock as clock_module
from rooflab.grading.measure.clock import VirtualClock

VALUE = "def gemm(a, b):\n    return "
REFUSE = "def refuse(x):\n    if x > 0:\n        return x\n    return "  # a test expects ValueError here


def value(code, said, question="q1"):
    return Attack((VALUE if question == "q1" else REFUSE) + code, 0, said, question)


REPLIES = {
    "no element, huge sizes": value("np.zeros((0, 2**50))", "not an answer"),
    "no element, huge sizes, for an error": value("np.zeros((0, 2**50))", "not an answer", "b2_2"),
    "no element, sizes at the limit": value("np.zeros((2**29, 0))", "N rows and M columns"),
    "huge by its strides": value("np.broadcast_to(0.0, (2**20, 2**20))", "cannot be passed|too large|Unable"),
    "too many dimensions": value("np.zeros((1,) * 20)", "not an answer"),
    "too many dimensions, for an error": value("np.zeros((1,) * 20)", "not an answer", "b2_2"),
    "a lone surrogate": value("'\\ud800'", "cannot be passed"),
    "a lone surrogate, for an error": value("'negative\\ud800'", "could not be passed", "b2_2"),
    "a list within itself": value("(lambda x: (x.append(x), x)[1])([])", "nested deeper"),
    "very many items": Attack(
        f"{VALUE}[None] * 5_000_000", 0, "more than 2000000 items|too many items|MemoryError", seconds=60.0
    ),
    "an int of a megabyte": value("1 << 2**23", "cannot be passed"),
    "a dict with a key that is a list's": value("{(1, (2, frozenset())): 1}", "cannot be passed"),
    "a dict with many nan": value("dict.fromkeys([float('nan') for _ in range(9)])", "N rows and M columns"),
    "an array of text": value("np.array(['x'])", "cannot be passed"),
    "an array of records": value("np.zeros(2, [('a', int)])", "cannot be passed"),
    "a masked array": value("np.ma.masked_all((4, 2))", "cannot be passed"),
    "a type that names itself int": value("type('int', (), {'__module__': 'builtins'})()", "cannot be passed"),
    "a scalar that says it is NumPy's": value("type('x', (np.float64,), {})(1.0)", "cannot be passed"),
    "a class that raises": value(
        "type('x', (), {'__reduce__': None, '__class__': property(lambda s: 1 / 0)})()", "cannot be"
    ),
    "a function": value("gemm", "cannot be passed"),
    "a module": value("np", "cannot be passed"),
    "an exception, returned": value("ValueError('negative')", "could not be passed", "b2_2"),
    "a tensor on another device": value(
        "__import__('rooflab').ones((4, 2), device='cuda')", "CudaError|device|GPU|N rows and M columns"
    ),
    "error text without end": Attack("def gemm(a, b):\n    raise ValueError('x' * 10**8)", 0, "xxx"),
    "an error that lies about its type": Attack(
        "class E(Exception):\n    __class__ = ValueError\n    __name__ = 'ValueError'\ndef refuse(x):\n"
        "    if x < 0:\n        raise E('negative')\n    return x",
        0,
        "RuntimeError on inputs that are not shown",
        "b2_2",
    ),
    "a value in place of a function": Attack("refuse = 3", 0, "not callable", "b2_2"),
    "a function in place of a value": Attack("def corner():\n    return 50.39", 0, "corner is a float", "q2_1"),
    "a value that is a dict of itself": Attack("corner = {}\ncorner['x'] = corner", 0, "nested deeper", "q2_1"),
}


@pytest.mark.slow(but_every=2)
@pytest.mark.slow(id=["very many items"])
@pytest.mark.parametrize("attack", cases(REPLIES))
def test_an_odd_value_earns_nothing(attack):
    check(attack)


@pytest.mark.slow
def test_a_large_reply_takes_no_more_of_the_judge_than_twice_its_size():
    check(value("np.zeros(2**24)", "N rows and M columns"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check(value("np.zeros(2**24)", "N rows and M columns"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16, "KiB"


class Line(Link):
    """The judge's end of the connection, with a test at the other end."""

    def __init__(self):
        self.limits, self.lost, self.isolated = Limits(seconds=5), "", False
        self.deadline = float("inf")
        requests, self.to_worker = os.pipe()
        self.from_worker, self.replies = os.pipe()
        self.ends = requests, self.to_worker, self.from_worker, self.replies

    def _kill(self):
        pass

    def close(self):
        for end in self.ends:
            os.close(end)

    def answered(self, reply):
        """What the judge makes of this reply to a question."""
        os.write(self.replies, wire.message(reply))
        return self._checked(wire.receive(self.from_worker))


ODD = [None, 7, (), (1,), [1, "ok", 2], (1, "ok"), (1, "ok", 2, 3), ("1", "ok", 2), (1.0 + 1e-9, "ok", 2), (2, "ok", 2)]
ODD += [(1, "error", "ValueError"), (1, "error", 3, "x"), (1, "error", "ValueError", 3), (1, b"ok", 2), (1, "unfit", 3)]
ODD += [
    (0, "fatal", 3),
    (0, "ok", 3),
    (1, "fatal", "x"),
    {"number": 1},
    np.ones(3),
    (np.ones(3), "ok", 2),
    (1, "pass", 5),
    (1, np.ones(3), 5),
]


@pytest.mark.parametrize("reply", ODD, ids=repr)
def test_an_odd_reply_loses_the_worker(reply):
    with Line() as line:
        line.number = 1
        with pytest.raises(WorkerLost):
            line.answered(reply)


@pytest.mark.parametrize(
    "kind", ["WorkerLost", "JudgeTimeout", "KeyboardInterrupt", "SystemExit", "LabError", "__import__", ""]
)
def test_a_reply_raises_only_what_is_listed(kind):
    assert kind not in ERRORS
    with Line() as line:
        line.number = 1
        with pytest.raises(StudentError) as raised:
            line.answered((1, "error", kind, "x"))
        assert isinstance(raised.value, RuntimeError) and type(raised.value).__name__ == "RuntimeError"
        with pytest.raises(Unfit):
            line.answered((1, "unfit", "x"))
    assert not issubclass(Unfit, Exception) and not issubclass(WorkerLost, Exception)


ASKED = [5, None, "x" * 9, b"x" * 9, ["read", 0], {"read": 0}, np.ones(9), ("read",), ("read", 0, 0, 0), ([],)]


@pytest.mark.parametrize("question", ASKED, ids=repr)
def test_an_odd_question_is_answered_by_an_error(question):
    with Line() as line:
        line.number = 1
        number, kind, name, text = codec.decode(
            line._answered(VirtualClock(np.random.default_rng(0)).answer, question)[12:]
        )
    assert (number, kind) == (1, "error") and name in ("TypeError", "ValueError")
    assert type(question) is tuple or text.startswith("expected a question")


def test_an_error_of_an_answer_is_short():
    def fail():
        raise ValueError("x" * 10**6)

    with Line() as line:
        line.number = 1
        assert len(line._answered(fail, ())) < 2000


@pytest.mark.parametrize(
    "question",
    [
        (0, 1, (("x" * 10**6, ()),)),
        (0, 1, (("gemm", (((), "x" * 10**6, False),)),)),
        (0, 1, (("gemm", (((1 << 4000,), "float32", False),)),)),
        (1 << 4000, 1, ()),
    ],
    ids=["name", "dtype", "size", "warmup"],
)
def test_what_a_clock_keeps_of_a_call_is_little(question):
    clock = VirtualClock(np.random.default_rng(0))
    with pytest.raises(ValueError):
        clock.answer(*question)
    assert clock.calls == []


def test_a_clock_keeps_no_call_without_end(monkeypatch):
    monkeypatch.setattr(clock_module, "MAX_CALLS", 10)
    clock = VirtualClock(np.random.default_rng(0))
    with pytest.raises(ValueError, match="more than"):
        for _ in range(100):
            clock.answer(0, 1, ())
    assert len(clock.calls) == 10


@pytest.mark.slow
def test_a_hundred_thousand_frames_of_noise():
    """Each frame is a value, or the codec refuses it; nothing else is raised."""
    rng = random.Random(14)
    seeds = [codec.encode(one) for one in ((5, "ok", {"x": [1, 2.0, None]}), np.arange(6.0), {"a": (b"x", "y", 2**70)})]
    values = 0
    for number in range(100_000):
        body = bytearray(seeds[number % 3])
        for _ in range(rng.randint(1, 3)):
            where = rng.randrange(len(body))
            body[where : where + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 3))
        try:
            codec.decode(body)
            values += 1
        except codec.CodecError:
            pass
    assert 0 < values < 50_000


@pytest.mark.parametrize("size", [2**29 + 1, 2**40, 2**63, 2**64 - 1])
def test_a_message_that_claims_too_much(size):
    with Line() as line:
        os.write(line.replies, b"RLv1" + struct.pack("<Q", size))
        with pytest.raises(codec.CodecError, match="too large"):
            wire.receive(line.from_worker)
