"""What 16 bits change: autocast to bfloat16 beside float32, in time, in memory and in where the time goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...profiler import CATEGORIES
from ...results import Report
from ..lm import Case, Result
from ..lm_results import milliseconds
from . import kernels, step
from .memory import peak
from .settings import PASSES, Rows, Settings, source

DTYPE = "bfloat16"


def cases(settings: Settings) -> list[Case]:
    """Every step in float32, and under autocast."""
    return [*step.cases(settings), *settings.cases(step.MODES, mixed_precision=DTYPE)]


def write(report: Report, rows: Rows) -> None:
    """Times, peaks and shares of classes, side by side."""
    both = f"float32 and autocast to {DTYPE}"
    found = pairs(rows, step.cases(rows.settings), mixed_precision=DTYPE)
    setting = rows.setting([one for pair in found for one in pair], both)
    head = ("size", "L", "pass", "times", "float32 ms", f"{DTYPE} ms", "speedup", "float32 GiB", f"{DTYPE} GiB",
            "more GiB", "more")  # fmt: skip
    said = (
        "Mean ms a step. The peak of a step in GiB (2^30 bytes) is counted; a copy of each weight in 16 bits makes it "
        "larger, and smaller activations make it smaller."
    )
    report.table(head, [compared(*pair) for pair in found], f"{setting} {said}")
    profiles = {key(result): result for result in kernels.profiles(rows, DTYPE)}
    lines = []
    kinds = [kind for kind in CATEGORIES if kind not in ("attention", "other")]
    for result in kernels.profiles(rows):
        other = profiles.get(key(result))
        if other and source(other.case) == source(result.case):
            for full, short in zip(result.profile, other.profile, strict=False):
                shares = [f"{full.share(kind):.0%} / {short.share(kind):.0%}" for kind in kinds]
                leading = [short.other, f"{short.other_ms / short.busy_ms:.1%}"]
                lines.append((*key(result), full.name, source(result.case), *shares, *leading))
    said = f"Shares of kernels' time in float32 / under autocast to {DTYPE}; the last columns are under autocast."
    shares_head = ("size", "L", "pass", "times", *kinds, "most that is no product", "share")
    report.table(shares_head, lines, f"{setting} {said}")


def key(result: Result) -> tuple[str, str]:
    """Size and length."""
    return result.case.model_size, str(result.case.context_length)


def pairs(rows: Rows, cases: Iterable[Case], **change: object) -> list[tuple[Result, Result]]:
    """Results of cases beside those with a change, both measured or both modelled."""
    found = []
    for case in cases:
        for one in (case, rows.settings.modelled(case)):
            pair = (rows.get(one), rows.get(dataclasses.replace(one, **change)))  # type: ignore[arg-type]
            if pair[0] and pair[1] and pair[0].case.device == pair[1].case.device:
                found.append((pair[0], pair[1]))
                break
    return found


def compared(full: Result, other: Result) -> tuple[str, ...]:
    """A row: times, their ratio, peaks, their difference."""
    names = (*key(full), PASSES[full.case.mode], source(full.case))
    ms = [milliseconds(one.mean_ms) if one.samples_ms else one.status for one in (full, other)]
    ratio = f"{full.mean_ms / other.mean_ms:.2f}" if full.samples_ms and other.samples_ms else ""
    peaks = [peak(one) / 2**30 for one in (full, other)]
    return (*names, *ms, ratio, *(f"{one:.2f}" for one in peaks), f"{peaks[1] - peaks[0]:+.2f}",
            f"{peaks[1] / peaks[0] - 1:+.1%}")  # fmt: skip
