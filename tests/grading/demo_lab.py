"""The demo lab, and short ways to grade answers to it."""

import sys
from dataclasses import replace
from pathlib import Path

from rooflab.grading.jail import jail
from rooflab.grading.judge.judge import Judge, QuestionResult
from rooflab.grading.lab.model import Lab, from_source
from rooflab.grading.lab.repair import Submission, reference

SOURCE = Path(__file__).parent / "demo" / "lab9"
TRUSTED = jail.refusal() is not None  # tests of grading run in the jail wherever there can be one
SUBINTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"  # the module's name
# Question 1 as the reference has it.
RIGHT = """
def gemm(a, b):
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out
"""
GRADE = ["lab", "grade", *["--trusted"] * TRUSTED]


def demo_lab() -> Lab:
    return from_source(SOURCE)


def with_answers(lab: Lab, answers: dict[str, str]) -> Submission:
    """The reference submission with some solution cells replaced."""
    whole = reference(lab)
    assert answers.keys() <= {cell.key for cell in lab.cells if cell.role == "solution"}
    return replace(whole, cells=[replace(c, source=answers.get(c.key, c.source)) for c in whole.cells])


def grade_one(question: str, code: str, lab: Lab | None = None) -> QuestionResult:
    """Grade one question of the demo lab with `code` as its solution cell."""
    lab = lab or demo_lab()
    return Judge(lab, TRUSTED).grade_question(question, with_answers(lab, {question: code}))
