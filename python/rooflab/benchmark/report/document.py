"""The report as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from ...profiler.modelled import GAP_US
from ...results import Report
from ..calls import Call
from ..lm import Case, Result
from ..lm_results import Origin
from . import comparison
from .parts import PARTS
from .settings import Rows


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
    report = Report(f"A transformer's step on {rows.machine}")
    report.text(_introduction(rows))
    for name in parts:
        report.section(PARTS[name].title)
        PARTS[name].write(report, rows)
    if compare:
        report.section(f"Beside {compare[1].machine['name']}")
        comparison.write(report, rows, *compare)
    return report


def _introduction(rows: Rows) -> str:
    settings = rows.settings
    found: list[Case | Call] = [
        *(result.case for result in rows.every()),
        *(result.call for result in rows.every_call()),
    ]
    measured = sum(not one.is_model for one in found)
    model = (
        "Modelled times are no measurements: every op runs without memory and is counted, and a launch takes the time "
        "of its FLOPs at the datasheet's peak or of its bytes at the datasheet's bandwidth, whichever is longer, after "
        f"a gap of {GAP_US:g} us."
    )
    if settings.is_model:
        return f"Nothing is measured here: all times are those of {rows.machine}, modelled. {model}"
    if measured == len(found):
        return "All times are measured on this machine."
    name = settings.model_device.partition(":")[2]
    return (
        f"{measured} of the cases and calls are measured on this machine. The others would take too long or too much "
        f"memory here, and are modelled as on {name}; each row says which. `--minutes` gives more time. {model}"
    )
