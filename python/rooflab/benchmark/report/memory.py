"""What a step holds: its peak by pass and length, of what it is made, and which blocks are the largest."""

from __future__ import annotations

from collections.abc import Sequence

from ...memory import Timeline
from ...plots import plot_memory_phases, plot_memory_timeline
from ...results import Report
from .. import lm_memory
from ..lm import Case, Result
from . import published, step
from .settings import PASSES, Rows, Settings

cases = step.cases
_LARGEST = 5  # kinds of blocks a case
_TOTALS = {"40 GB": 40e9, "80 GB": 80e9}


def peak(result: Result) -> int:
    """The most that a step holds, by its counted blocks."""
    return max(sum(classes.values()) for classes in result.memory.values())


def write(report: Report, rows: Rows) -> None:
    """Peaks of all sizes, then what those of the largest one are made of, with its largest blocks and its timeline."""
    settings = rows.settings
    found = [result for result in rows.of(cases(settings)) if result.memory]
    report.text(
        "Bytes are counted, block by block, and do not depend on what was measured or modelled. They are counted of "
        "cases that do not fit into the machine's memory, too."
    )
    lengths = [f"L={length}, GiB" for length in settings.context_lengths]
    report.table(("size", "pass", *lengths), _peaks(found, settings), f"{_counted(rows)} Most held in a step.")
    published.write(report, rows, found)
    size = settings.model_sizes[-1]
    shown = [result for result in found if result.case.model_size == size]
    for length in settings.context_lengths:
        phases = {PASSES[r.case.mode]: r.memory for r in shown if r.case.context_length == length}
        if phases:
            drawn = plot_memory_phases(phases, title=f"{size}, L = {length}: what memory holds", levels=_levels(phases))
            report.figure(drawn, f"{_counted(rows)} {size}, L={length}: the highest point of each phase, by class.")
    _write_classes(report, rows, shown)
    _write_largest(report, rows, shown)
    for mode in ("forward", "train"):
        _write_timeline(report, rows, size, mode)


def _counted(rows: Rows) -> str:
    return f"Counted, {rows.settings.sizes()} GiB are 2^30 bytes."


def _levels(phases: dict[str, dict[str, dict[str, int]]]) -> dict[str, float]:
    """Memories of GPUs that lie in the range of the bars."""
    most = max(sum(classes.values()) for by_phase in phases.values() for classes in by_phase.values())
    return {name: size for name, size in _TOTALS.items() if size < 1.1 * most}


def _peaks(found: Sequence[Result], settings: Settings) -> list[list[str]]:
    of = {(r.case.model_size, r.case.mode, r.case.context_length): f"{peak(r) / 2**30:.2f}" for r in found}
    steps = dict.fromkeys((result.case.model_size, result.case.mode) for result in found)
    return [
        [size, PASSES[mode], *(of.get((size, mode, length), "") for length in settings.context_lengths)]
        for size, mode in steps
    ]


def _write_classes(report: Report, rows: Rows, found: Sequence[Result]) -> None:
    lines = [(result, phase, classes) for result in found for phase, classes in result.memory.items()]
    kinds = [kind for kind in lm_memory.CLASSES if any(classes.get(kind, 0) >= 2**20 for *_, classes in lines)]
    cells = [
        [PASSES[result.case.mode], str(result.case.context_length), phase, f"{sum(classes.values()) / 2**30:.2f}",
         *(f"{classes.get(kind, 0) / 2**30:.2f}" for kind in kinds)]
        for result, phase, classes in lines
    ]  # fmt: skip
    size = rows.settings.model_sizes[-1]
    said = f"{_counted(rows)} {size}, in GiB: the highest point of each phase, and what it is made of."
    report.table(("pass", "L", "phase", "peak", *kinds), cells, said)


def _write_largest(report: Report, rows: Rows, found: Sequence[Result]) -> None:
    cells = [
        [PASSES[result.case.mode], str(result.case.context_length), f"{block.bytes / 2**20:.1f}", block.formula,
         str(block.count), block.op, block.range, block.kind]
        for result in found
        if result.case.mode != "both"
        for block in result.largest[:_LARGEST]
    ]  # fmt: skip
    size = rows.settings.model_sizes[-1]
    said = (
        f"{_counted(rows)} {size}: the {_LARGEST} largest kinds of blocks that a step makes, in MiB (2^20 "
        "bytes) a block. The formula is 4 bytes times dimensions: B sequences, L tokens, D model, I feed-forward, H "
        "heads, V vocabulary."
    )
    report.table(("pass", "L", "MiB", "bytes", "blocks", "op", "where", "class"), cells, said)


def _write_timeline(report: Report, rows: Rows, size: str, mode: str) -> None:
    """The memory of a step over its events, and the page on which each block can be pointed at."""
    settings = rows.settings
    lengths = sorted(settings.context_lengths)
    length = lengths[len(lengths) // 2 - 1] if len(lengths) > 1 else lengths[0]
    case = Case(size, length, settings.batch_size, mode, device=settings.model_device, vocab_size=settings.vocab_size)
    timeline: Timeline = lm_memory.measure(case).timeline
    title = f"{size}, L = {length}, {PASSES[mode]}"
    drawn = plot_memory_timeline(timeline, by="op", title=title, over="events", binary=True)
    said = f"Memory in tensors, {title}: counted on a device without memory, over allocations and frees in their order."
    report.figure(drawn, said)
    page = f"memory-{size}-{mode}.html"
    report.file(page, lambda path: timeline.save_html(path, title), f"Every block of this step: {title}")
