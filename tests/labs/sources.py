"""The labs of this checkout, each read once, and what grades each."""

from functools import cache
from pathlib import Path

from rooflab.grading.jail import jail
from rooflab.grading.judge.judge import Judge
from rooflab.grading.judge.verify import Verifier
from rooflab.grading.lab.model import Lab, find_sources, from_source, public_half

SOURCES = find_sources(Path(__file__).parents[2] / "notebooks" / "source")
TRUSTED = jail.refusal() is not None


@cache
def lab(path: Path) -> Lab:
    return from_source(path)


@cache
def verifier(path: Path) -> Verifier:
    """What `rooflab lab verify` grades with."""
    return Verifier(lab(path), TRUSTED)


def judge(path: Path) -> Judge:
    return verifier(path).judge


@cache
def public_judge(path: Path) -> Judge:
    """With the tests that students see, and no others."""
    return Judge(public_half(lab(path)), TRUSTED)
