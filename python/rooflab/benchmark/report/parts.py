"""The parts of the report by their names: what each needs, and what writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...results import Report
from ..calls import Call
from ..lm import Case
from . import attention, compiled, kernels, memory, precision, scaling, step
from .settings import Rows, Settings


@dataclass(frozen=True)
class Part:
    """A part of the report.

    Attributes
    ----------
    title : str
        Its heading.
    cases : callable
        The cases that it needs, for given settings.
    write : callable
        Adds its tables and figures to a report, from rows.
    calls : callable
        The calls that it needs.
    """

    title: str
    cases: Callable[[Settings], list[Case]]
    write: Callable[[Report, Rows], None]
    calls: Callable[[Settings], list[Call]] = lambda settings: []


PARTS = {
    "step": Part("The time of a step", step.cases, step.write),
    "warmup": Part("The first steps", step.warmup_cases, step.write_warmup),
    "kernels": Part("Where the time goes", kernels.cases, kernels.write),
    "precision": Part("16 bits", precision.cases, precision.write),
    "memory": Part("What memory holds", memory.cases, memory.write),
    "compile": Part("The compiled model", compiled.cases, compiled.write),
    "attention": Part("Attention", lambda settings: [], attention.write, attention.calls),
    "scaling": Part("How time grows", lambda settings: [], scaling.write, scaling.calls),
}
"""The parts by their names, in the order of the report."""


def calls(settings: Settings, parts: Iterable[str]) -> list[Call]:
    """All calls that some parts need, each once."""
    return list(dict.fromkeys(call for name in parts for call in PARTS[name].calls(settings)))


def cases(settings: Settings, parts: Iterable[str]) -> list[Case]:
    """All cases that some parts need, each once.

    Examples
    --------
    >>> len(cases(Settings(), ("step", "memory", "kernels"))), len(cases(Settings(), ("step", "precision")))
    (60, 120)
    """
    return list(dict.fromkeys(case for name in parts for case in PARTS[name].cases(settings)))
