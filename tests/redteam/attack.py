"""How an attack is written down, and how it is run: against the demo lab, in the jail wherever there can be one."""

import dataclasses
import functools
import textwrap

import pytest
from grading.demo_lab import TRUSTED, demo_lab, with_answers

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.model import Cell

JAIL = "only the jail stops it, and there is none here"
# A test cell for gemm: Python itself has to multiply, not a library.
LOOPS = """
from rooflab.grading import measure
a, b = np.random.default_rng(5).standard_normal((2, 5, 5))[:, :4]
a = a[:3, :4]
seen = measure.loops(gemm, a, b)
assert seen.products >= 60, 'three loops'
assert np.allclose(seen.value, a @ b), 'the product'
"""
# A test cell for gemm: what it launches is counted, and that is to be nothing.
FEW = """
from rooflab.grading import measure
import rooflab as rl
seen = measure.count(gemm, rl.ones((3, 4)), rl.ones((4, 5)))
assert seen.macs == 0 and seen.launches == 0, 'no product'
assert tuple(seen.value.shape) == (3, 5), 'the shape'
"""
# Answers begin with it to reach the frames above them in the worker.
CLIMB = """
import sys
def above(name):
    frame = sys._getframe(1)
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals[name]
"""
PRODUCT = "\nimport rooflab as rl\ndef gemm(a, b):\n    return rl.matmul(a, b)\n"


class Succeeded(AssertionError):
    """An attack did what it was meant to do."""


@dataclasses.dataclass(frozen=True)
class Attack:
    """An answer, the points that it deserves, and words of the reason that is given (none for full marks).

    `jail` says that nothing else stops it. `known` says why it succeeds today.
    """

    code: str
    points: int
    said: str = ""
    question: str = "q1"
    test: str = ""
    jail: bool = False
    known: str = ""
    seconds: float = 8.0


def cases(attacks: dict[str, Attack]) -> list:
    """The table for `pytest.mark.parametrize`."""
    made = []
    for label, attack in attacks.items():
        marks = [pytest.mark.skip(reason=JAIL)] * (attack.jail and TRUSTED)
        marks += [pytest.mark.xfail(strict=True, raises=Succeeded, reason=attack.known)] * bool(attack.known)
        made.append(pytest.param(attack, id=label, marks=marks))
    return made


@functools.cache
def judge(question: str, test: str, seconds: float) -> Judge:
    """A judge of the demo lab with a short limit, and with `test` as the question's test cell if there is one."""

    def changed(cell: Cell) -> Cell:
        if cell.role != "test":
            return cell
        source = test if test and cell.question == question else cell.source
        return dataclasses.replace(cell, source=source, options={**cell.options, "seconds": seconds, "memory_gb": 1})

    lab = demo_lab()
    return Judge(dataclasses.replace(lab, cells=tuple(map(changed, lab.cells))), TRUSTED)


def graded(question: str, code: str, test: str = "", seconds: float = Attack.seconds) -> tuple[int, str]:
    """Points and the reason for an answer to a question of the demo lab."""
    one = judge(question, test, seconds)
    result = one.grade_question(question, with_answers(one.lab, {question: textwrap.dedent(code)}))
    return result.earned, result.tests[0].message


def check(attack: Attack) -> None:
    points, message = graded(attack.question, attack.code, attack.test, attack.seconds)
    if points > attack.points or "nothing refused" in message:
        raise Succeeded(f"{points} points: {message}")
    assert points == attack.points, message
    assert bool(message) == bool(attack.said), message
    assert any(words in message for words in attack.said.split("|")), message
