"""How long a step takes: by size, length and pass, and after which warm-up."""

from __future__ import annotations

from ...plots import plot_step_times
from ...results import Report
from ..lm import Case, Result
from ..lm_results import milliseconds
from .settings import PASSES, Rows, Settings, source

MODES = ("forward", "both", "train")
WARMUPS = (0, 1, 5)
_HEAD = ("size", "L", "pass", "times", "status", "w", "n", "warm-up ms", "total ms", "mean ms", "std ms",
         "TFLOP/s", "of peak", "peak GiB")  # fmt: skip
_NOTE = (
    "w steps of warm-up took the warm-up ms, then n measured ones the total ms; mean and std (ddof 0) are those of the "
    "measured ones, in ms a step. TFLOP/s are those of the products, 2 FLOPs for each MAC that was counted. GiB (2^30 "
    "bytes) are the most that tensors held."
)


def cases(settings: Settings) -> list[Case]:
    """Five sizes x four lengths x forward, forward + backward, full step, in float32."""
    return settings.cases(MODES)


def write(report: Report, rows: Rows) -> None:
    """A row a case, those that ran out of memory too, and the times over the length."""
    found = rows.of(cases(rows.settings))
    report.table(_HEAD, [_cells(result) for result in found], f"{rows.setting(found)} {_NOTE}")
    for word, is_model in (("measured", False), ("modelled", True)):
        shown = [result for result in found if result.case.is_model == is_model]
        if any(result.samples_ms for result in shown):
            words = "mean and one standard deviation (ddof 0)" if not is_model else "one value each"
            said = f"{rows.setting(shown)} Time a step over the length L, {words}. Both axes are logarithmic."
            report.figure(plot_step_times(shown, title=f"Time a step, {word}", panel_titles=PASSES), said)


def warmup_cases(settings: Settings) -> list[Case]:
    """The first size at the first length after 0, 1 and 5 steps of warm-up. A model has no warm-up."""
    if settings.is_model:
        return []
    every = settings.cases(("forward", "both"), WARMUPS)
    first = (settings.model_sizes[0], settings.context_lengths[0])
    return [case for case in every if (case.model_size, case.context_length) == first]


def write_warmup(report: Report, rows: Rows) -> None:
    """Mean and spread after each warm-up, with the first two measured steps."""
    found = [result for result in rows.of(warmup_cases(rows.settings)) if not result.case.is_model]
    if not found:
        report.text("No warm-up was measured here: a model of a machine has none, or the time did not suffice.")
        return
    head = ("size", "L", "pass", "w", "n", "warm-up ms", "total ms", "mean ms", "std ms", "first ms", "second ms")
    lines = []
    for result in found:
        firsts = [milliseconds(ms) for ms in result.samples_ms[:2]]
        lines.append((*_names(result), *_steps(result), *_times(result), *firsts, *[""] * (2 - len(firsts))))
    note = "Each row ran in a process of its own, so that w = 0 begins cold; std has ddof 0, in ms a step."
    report.table(head, lines, f"{rows.setting(found)} {note}")


def _names(result: Result) -> tuple[str, str, str]:
    return result.case.model_size, str(result.case.context_length), PASSES[result.case.mode]


def _steps(result: Result) -> tuple[str, str]:
    return ("-" if result.case.is_model else str(result.case.warmup_steps)), str(len(result.samples_ms))


def _times(result: Result) -> list[str]:
    warmup = milliseconds(result.warmup_total_ms) if result.warmup_ms else "-"
    spread = milliseconds(result.std_ms) if len(result.samples_ms) > 1 else "-"
    return [warmup, milliseconds(result.total_ms), milliseconds(result.mean_ms), spread]


def _cells(result: Result) -> tuple[str, ...]:
    names = (*_names(result), source(result.case), result.status)
    if result.status != "ok":
        return (*names, *[""] * (len(_HEAD) - len(names)))
    share = f"{result.share_of_peak:.1%}" if result.peak_tflop_s else "-"
    rates = (f"{result.tflop_s:.3g}", share, f"{result.peak_bytes / 2**30:.2f}")
    return (*names, *_steps(result), *_times(result), *rates)
