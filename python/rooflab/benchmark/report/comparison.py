"""The steps of two machines side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...results import Report
from ...units import rounded
from ..lm import Case, Result
from ..lm_results import Origin, milliseconds
from .settings import PASSES, Rows


def write(report: Report, rows: Rows, others: Iterable[Result], origin: Origin) -> None:
    """Every case that both have, with the ratio of their means.

    Parameters
    ----------
    report : Report
        What the table is added to.
    rows : Rows
        This report's.
    others : iterable of Result
        Another machine's rows.
    origin : Origin
        Where those come from.
    """
    here, there = _best(rows.every()), _best(others)
    pairs = [(mine, there[case]) for case, mine in here.items() if case in there and _differ(mine, there[case])]
    if not pairs:
        report.text(f"The rows of {origin.machine['name']} have no case in common with these.")
        return
    head = ("size", "L", "pass", "options", "w", "times here", "times there", "ms here", "ms there", "there / here",
            "GiB here", "GiB there")  # fmt: skip
    setting = rows.setting([mine for mine, _ in pairs], "dtype as in the options")
    said = f"Here: {setting} There: {origin}. Mean ms a step; GiB (2^30 bytes) are the most that tensors held."
    report.table(head, [_cells(*pair) for pair in pairs], said)


def _best(results: Iterable[Result]) -> dict[Case, Result]:
    """By case on any device, however often it was measured: the measured result, else the modelled one."""
    found: dict[Case, Result] = {}
    for result in results:
        case = dataclasses.replace(result.case, device="", measure_steps=1)
        if result.contender == "rooflab" and (case not in found or found[case].case.is_model):
            found[case] = result
    return found


def _differ(mine: Result, theirs: Result) -> bool:
    """Whether there is something to compare: two models of the same machine are the same."""
    return not mine.case.is_model or mine.case.device != theirs.case.device


def _cells(mine: Result, theirs: Result) -> tuple[str, ...]:
    case, both = mine.case, (mine, theirs)
    ms = [milliseconds(one.mean_ms) if one.samples_ms else one.status for one in both]
    ratio = rounded(theirs.mean_ms / mine.mean_ms) if mine.samples_ms and theirs.samples_ms else ""
    peaks = [f"{one.peak_bytes / 2**30:.2f}" if one.samples_ms else "" for one in both]
    names = (case.model_size, str(case.context_length), PASSES[case.mode], case.options, str(case.warmup_steps))
    return (*names, *map(_source, both), *ms, ratio, *peaks)


def _source(result: Result) -> str:
    return f"modelled, {result.case.device.partition(':')[2]}" if result.case.is_model else "measured"
