"""The compiled model beside the eager one: time, launches, and the memory of a step."""

from __future__ import annotations

from ...results import Report
from ..lm import Case, Result
from ..lm_results import milliseconds
from . import step
from .precision import key, pairs
from .settings import PASSES, Rows, Settings, source


def cases(settings: Settings) -> list[Case]:
    """Every step in float32, as it is and compiled."""
    return [*step.cases(settings), *settings.cases(step.MODES, compile=True)]


def write(report: Report, rows: Rows) -> None:
    """Times, launches and peaks, side by side."""
    found = pairs(rows, step.cases(rows.settings), compile=True)
    head = ("size", "L", "pass", "times", "eager ms", "compiled ms", "speedup", "eager launches", "compiled launches",
            "eager GiB", "compiled GiB")  # fmt: skip
    said = (
        "Mean ms a step; GiB (2^30 bytes) are the most that tensors held in the steps. rl.compile runs forward and "
        "backward as programs of fused kernels; products and the optimizer stay as they are."
    )
    setting = rows.setting([one for pair in found for one in pair])
    report.table(head, [_cells(*pair) for pair in found], f"{setting} {said}")
    lines = []
    for eager, compiled in found:
        if eager.case.mode == "train" and eager.profile and compiled.profile:
            for before, after in zip(eager.profile, compiled.profile, strict=True):
                ms = [milliseconds(one.range_ms) for one in (before, after)]
                ratio = f"{before.range_ms / after.range_ms:.2f}"
                cells = (*key(eager), before.name, source(eager.case), *ms, ratio)
                lines.append((*cells, str(before.launches), str(after.launches)))
    passes_head = (*head[:7], "eager launches", "compiled launches")
    said = "One profiled full step by its passes: ms from the first kernel's start to the last one's end."
    report.table(passes_head, lines, f"{setting} {said}")


def _cells(eager: Result, compiled: Result) -> tuple[str, ...]:
    both = (eager, compiled)
    ms = [milliseconds(one.mean_ms) if one.samples_ms else one.status for one in both]
    ratio = f"{eager.mean_ms / compiled.mean_ms:.2f}" if eager.samples_ms and compiled.samples_ms else ""
    launches = [str(one.launches or "") for one in both]
    peaks = [f"{one.peak_bytes / 2**30:.2f}" if one.samples_ms else "" for one in both]
    return (*key(eager), PASSES[eager.case.mode], source(eager.case), *ms, ratio, *launches, *peaks)
