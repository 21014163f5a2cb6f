"""The real labs, and what an answer to one of their questions earns beside the solutions of all others."""

import dataclasses
import functools
from pathlib import Path

from grading.demo_lab import TRUSTED

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import repair
from rooflab.grading.lab.model import from_source

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"


@functools.cache
def judge(name: str) -> Judge:
    return Judge(from_source(SOURCES / name), TRUSTED)


def check(name: str, question: str, code: str, points: list[int]) -> None:
    """The answer `code` earns these points, one number for each test cell."""
    whole = repair.reference(judge(name).lab)
    cells = [dataclasses.replace(cell, source=code) if cell.key == question else cell for cell in whole.cells]
    result = judge(name).grade_question(question, dataclasses.replace(whole, cells=cells))
    assert [test.earned for test in result.tests] == points, [test.message for test in result.tests]
