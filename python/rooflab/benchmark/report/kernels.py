"""Where the time of a step goes: classes of kernels, the kernels that lead, softmax against products in attention."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...plots import plot_time_shares
from ...profiler import CATEGORIES
from ...results import Report
from ..lm import Case, Result
from ..lm_profile import Pass
from ..lm_results import milliseconds
from . import step
from .settings import PASSES, Rows, source

cases = step.cases
_NOTE = "Times are those of kernels on the device, summed; gaps between them are not in a share."


def profiled(rows: Rows, case: Case) -> Result | None:
    """The result with most passes among full step, forward + backward and forward: what does not fit has no profile."""
    for mode in ("train", "both", "forward"):
        result = rows.get(dataclasses.replace(case, mode=mode))
        if result and result.profile:
            return result
    return None


def profiles(rows: Rows, mixed_precision: str = "") -> list[Result]:
    """The profiled result of every size at every length that has one."""
    wanted = rows.settings.cases(("train",), mixed_precision=mixed_precision)
    return [found for case in wanted if (found := profiled(rows, case))]


def write(report: Report, rows: Rows) -> None:
    """The kernels that lead in each pass, classes of kernels, and attention by its parts."""
    found = profiles(rows)
    passes = [(result, one) for result in found for one in result.profile]
    if not passes:
        report.text("No step was profiled.")
        return
    setting = f"{rows.setting(found)} {_NOTE}"
    head = ("size", "L", "pass", "times", "launches", "busy ms", "kernel that takes most", "x", "ms", "share",
            "and that is no product", "x", "ms", "share")  # fmt: skip
    report.table(head, [_leading(*one) for one in passes], f"{setting} x is how often a kernel runs in one step.")
    kinds = [kind for kind in CATEGORIES if any(one.share(kind) >= 5e-4 for _, one in passes)]
    lines = [(*_names(result), one.name, *(f"{one.share(kind):.1%}" for kind in kinds)) for result, one in passes]
    report.table(("size", "L", "pass", *kinds), lines, f"{setting} Share of each class in a pass; gemm are products.")
    _write_shares_of_products(report, rows, found, setting)
    _write_beside_the_clock(report, rows)
    _write_attention(report, found, setting)
    for length in dict.fromkeys((rows.settings.context_lengths[0], rows.settings.context_lengths[-1])):
        shown = [result for result in found if result.case.context_length == length]
        if shown:
            drawn = plot_time_shares(shown, title=f"L = {length}: where the time of a pass goes")
            report.figure(drawn, f"{rows.setting(shown)} {_NOTE}")


def _names(result: Result) -> tuple[str, str]:
    return result.case.model_size, str(result.case.context_length)


def _leading(result: Result, one: Pass) -> tuple[str, ...]:
    def kernel(name: str, instances: int, ms: float) -> tuple[str, ...]:
        return name, str(instances), milliseconds(ms), f"{ms / one.busy_ms:.1%}" if one.busy_ms else "-"

    names = (*_names(result), one.name, source(result.case), str(one.launches), milliseconds(one.busy_ms))
    other = (
        kernel(one.other, one.other_instances, one.other_ms) if one.other != one.kernel else ("the same", "", "", "")
    )
    return (*names, *kernel(one.kernel, one.instances, one.kernel_ms), *other)


def _write_shares_of_products(report: Report, rows: Rows, found: Sequence[Result], setting: str) -> None:
    lines = []
    for result in found:
        share = f"{result.profile[0].share('gemm'):.1%}"
        lines.append((*_names(result), source(result.case), share, _share_in_a_step(rows, result)))
    said = f"{setting} Share of the matrix products in a forward pass, and in a full step with AdamW."
    report.table(("size", "L", "times", "in a forward", "in a full step"), lines, said)


def _share_in_a_step(rows: Rows, result: Result) -> str:
    if result.case.mode == "train":
        products_ms = sum(one.classes.get("gemm", 0.0) for one in result.profile)
        return f"{products_ms / sum(one.busy_ms for one in result.profile):.1%}"
    whole = rows.get(dataclasses.replace(result.case, mode="train"))
    return "no row yet" if whole is None else "not profiled" if whole.status == "ok" else whole.status


def _write_beside_the_clock(report: Report, rows: Rows) -> None:
    """What a profile costs: the profiled step beside those that the clock timed. A model has no clock."""
    lines, found = [], [result for result in rows.of(cases(rows.settings)) if result.profile]
    measured = [result for result in found if not result.case.is_model]
    for result in measured:
        ms = (result.mean_ms, result.profiled_ms, sum(one.busy_ms for one in result.profile))
        more = f"{result.profiled_ms / result.mean_ms - 1:+.1%}"
        lines.append((*_names(result), PASSES[result.case.mode], *map(milliseconds, ms), more))
    if lines:
        head = ("size", "L", "pass", "by the clock, ms", "profiled, ms", "of it busy, ms", "profiled - clock")
        said = (
            "The mean of the steps that the clock timed, one more step that was profiled, and the time in which its "
            "kernels ran. Profiling has a cost; what is not busy are gaps."
        )
        report.table(head, lines, f"{rows.setting(measured)} {said}")


def _write_attention(report: Report, found: Sequence[Result], setting: str) -> None:
    parts = ("softmax", "products", "scale and mask")
    lines = []
    for result in found:
        ms = result.profile[0].attention_ms
        if ms.get("products"):
            ratio = f"{ms.get('softmax', 0.0) / ms['products']:.2f}"
            lines.append(
                (*_names(result), source(result.case), *(milliseconds(ms.get(part, 0.0)) for part in parts), ratio)
            )
    if lines:
        head = ("size", "L", "times", *(f"{part} ms" for part in parts), "softmax / products")
        said = (
            f"{setting} Attention of one forward pass, all layers: the softmax, the two products (Q K^T and weights "
            "V), and the elementwise scale and mask."
        )
        report.table(head, lines, said)
