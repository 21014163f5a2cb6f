"""The labs of this checkout, each read once, and a judge for each."""

from functools import cache
from pathlib import Path

from rooflab.grading import jail
from rooflab.grading.judge import Judge
from rooflab.grading.lab import Lab, find_sources, from_source, public_half

SOURCES = find_sources(Path(__file__).parents[2] / "notebooks" / "source")
TRUSTED = jail.refusal() is not None


@cache
def lab(path: Path) -> Lab:
    return from_source(path)


@cache
def judge(path: Path) -> Judge:
    return Judge(lab(path), TRUSTED)


@cache
def public_judge(path: Path) -> Judge:
    """With the tests that students see, and no others."""
    return Judge(public_half(lab(path)), TRUSTED)
