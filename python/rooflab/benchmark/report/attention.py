"""Attention over d and L: written out, compiled, and as one kernel that keeps no matrix of scores."""

from __future__ import annotations

from collections.abc import Sequence

from ...plots import plot_length_sweep
from ...results import Report
from ..calls import ATTENTION, BATCH, Call, CallResult
from ..lm_results import milliseconds
from .settings import Rows, Settings, source

LENGTHS = (256, 1024, 4096, 8192, 16384)
HEAD_SIZES = (16, 32, 64, 128)


def calls(settings: Settings) -> list[Call]:
    """Every version at every L and d."""
    sizes = [(("L", L), ("d", d)) for L in LENGTHS for d in HEAD_SIZES]
    return [Call("attention", version, size, settings.device) for size in sizes for version in ATTENTION]


def write(report: Report, rows: Rows) -> None:
    """A row for each L and d, the versions side by side, and two figures at one d."""
    groups = [rows.calls_of(group) for group in _groups(calls(rows.settings))]
    found = [group for group in groups if group]
    quantities = ("forward ms", "backward ms", "MiB before backward")
    head = ["L", "d", "times", *(f"{version}: {quantity}" for version in ATTENTION for quantity in quantities)]
    setting = f"{rows.machines(result.call for group in found for result in group)}, float32, B={BATCH}, one head."
    said = (
        "Medians of a forward pass and of a backward pass alone, not causal. MiB (2^20 bytes) are what tensors hold "
        "just before the backward pass, inputs included."
    )
    report.table(head, [_cells(group) for group in found], f"{setting} {said}")
    d = 64
    shown = {version: of for version in ATTENTION if (of := _same(found, version, d))}
    setting = f"{rows.machines(result.call for of in shown.values() for result in of)}, float32, B={BATCH}, one head."
    for name, what in (("forward_ms", "a forward pass"), ("backward_ms", "a backward pass")):
        series = {
            version: {result.call.size["L"]: result.figures.get(name) for result in of} for version, of in shown.items()
        }
        if any(value for values in series.values() for value in values.values()):
            drawn = plot_length_sweep(series, "latency", title=f"Attention, d = {d}: {what}")
            report.figure(drawn, f"{setting} d={d}: {what}, over the length L. Both axes are logarithmic.")


def _groups(every: Sequence[Call]) -> list[list[Call]]:
    sizes = dict.fromkeys(call.sizes for call in every)
    return [[call for call in every if call.sizes == size] for size in sizes]


def _same(found: Sequence[Sequence[CallResult]], version: str, d: int) -> list[CallResult]:
    """The results of a version at one d: the measured ones if there are two or more, else the modelled ones."""
    every = [result for group in found for result in group]
    of = [result for result in every if result.call.version == version and result.call.size["d"] == d]
    measured = [result for result in of if not result.call.is_model]
    return measured if len(measured) > 1 else [result for result in of if result.call.is_model]


def _cells(group: Sequence[CallResult]) -> list[str]:
    size = group[0].call.size
    row = [str(size["L"]), str(size["d"]), source(group[0].call)]
    for result in group:
        if result.status != "ok":
            row += [result.status, "", ""]
            continue
        figures = result.figures
        row += [milliseconds(figures["forward_ms"]), milliseconds(figures["backward_ms"])]
        row.append(f"{figures['held_bytes'] / 2**20:.1f}")
    return row
