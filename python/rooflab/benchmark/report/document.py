"""The report as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...results import Report
from ..calls import Call, CallResult
from ..lm import Case, Result
from ..lm_results import Origin
from . import comparison
from .parts import PARTS, calls, cases
from .settings import Rows


class _Document(Report):
    """A report in which a sentence stands where a table would have no rows."""

    def table(self, head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> None:
        if rows:
            super().table(head, rows, caption)
        else:
            self.text(f"No row yet for a table of {', '.join(head)}.")


def written(
    rows: Rows, parts: Iterable[str] = tuple(PARTS), compare: tuple[list[Result], Origin] | None = None
) -> Report:
    """The report of some parts.

    Parameters
    ----------
    rows : Rows
        From `run`.
    parts : iterable of str
        Names in `PARTS`.
    compare : (list of Result, Origin), optional
        Another machine's rows, as `lm_results.load` gives them.
    """
    report: Report = _Document(f"A transformer on {rows.machine}")
    names = list(parts)
    report.text(_introduction(rows))
    if said := lacking(rows, names):
        report.text(said)
    for name in names:
        report.section(PARTS[name].title)
        PARTS[name].write(report, rows)
    if compare:
        report.section(f"Beside {compare[1].machine['name']}")
        comparison.write(report, rows, *compare)
    return report


def lacking(rows: Rows, parts: Iterable[str]) -> str:
    """A sentence about what has no row yet; empty if nothing is lacking."""
    names = list(parts)
    wanted, wanted_calls = cases(rows.settings, names), calls(rows.settings, names)
    whole = len(wanted) + len(wanted_calls)
    count = whole - len(rows.of(wanted)) - len(rows.each_call(wanted_calls))
    if not count:
        return ""
    return f"{count} of {whole} rows are neither measured nor modelled yet. The same command goes on with them."


def _introduction(rows: Rows) -> str:
    settings = rows.settings
    found: list[Case | Call] = [
        *(result.case for result in rows.every()),
        *(result.call for result in rows.every_call()),
    ]
    measured = sum(not one.is_model for one in found)
    results: list[Result | CallResult] = [*rows.every(), *rows.every_call()]
    figures = dict.fromkeys(result.model for result in results if result.model)
    model = (
        "Modelled times are no measurements: every op runs without memory and is counted, and a launch takes the time "
        "of its FLOPs at the machine's peak or of its bytes at its bandwidth, whichever is longer, after a gap. The "
        f"figures: {'; '.join(figures)}."
    )
    if settings.is_model:
        return f"Nothing is measured here: all times are those of {rows.machine}, modelled. {model}"
    if measured == len(found):
        return "All times are measured on this machine."
    name = settings.model_device.partition(":")[2]
    return (
        f"{measured} of the cases and calls are measured on this machine. The others would take too long or too much "
        f"memory here, and are modelled as on {name}; each row says which. More minutes measure more. {model}"
    )
