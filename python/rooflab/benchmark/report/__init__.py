"""The report that a course ends in: `rooflab bench report`.

    from rooflab.benchmark import report
    settings = report.Settings(device="cpu", model_sizes=("small", "medium"), context_lengths=(128, 256))
    rows = report.run(settings, ("step", "memory"), file=Path("rows.json"), minutes=5)
    report.written(rows, ("step", "memory")).save("report")

Its rows are those of `rooflab bench lm`, in one file of JSON. A case that is measured is a row, and a case that would
take too long is counted and modelled on a meta device. Each part is a module here that says which cases it needs, and
writes its tables and figures from their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import rooflab as rl

from ...profiler.modelled import GAP_US
from ...results import Report
from .. import sweep
from ..lm import Case, Result
from ..lm_results import Origin, finished
from . import choice, comparison, compiled, kernels, memory, precision, step
from .settings import WARMUP_STEPS, Rows, Settings

__all__ = ["PARTS", "Part", "Rows", "Settings", "cases", "measure", "run", "written"]


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
    """

    title: str
    cases: Callable[[Settings], list[Case]]
    write: Callable[[Report, Rows], None]


PARTS = {
    "step": Part("The time of a step", step.cases, step.write),
    "warmup": Part("The first steps", step.warmup_cases, step.write_warmup),
    "kernels": Part("Where the time goes", kernels.cases, kernels.write),
    "precision": Part("16 bits", precision.cases, precision.write),
    "memory": Part("What memory holds", memory.cases, memory.write),
    "compile": Part("The compiled model", compiled.cases, compiled.write),
}
"""The parts by their names, in the order of the report."""


def cases(settings: Settings, parts: Iterable[str]) -> list[Case]:
    """All cases that some parts need, each once.

    Examples
    --------
    >>> len(cases(Settings(), ("step", "memory", "kernels"))), len(cases(Settings(), ("step", "precision")))
    (60, 120)
    """
    return list(dict.fromkeys(case for name in parts for case in PARTS[name].cases(settings)))


def measure(case: Case, progress: Callable[[str], None] = lambda text: None) -> list[Result]:
    """Time, profile and count a case; one of the warm-up study in a process of its own."""
    if case.warmup_steps != WARMUP_STEPS:
        return sweep.in_a_new_process(case)
    return sweep.measure(case, profile=True, memory=True, progress=progress)[0]


def run(
    settings: Settings,
    parts: Iterable[str] = tuple(PARTS),
    *,
    file: Path | None = None,
    origin: Origin | None = None,
    minutes: float | None = None,
    found: Callable[[Result], None] = lambda result: None,
    progress: Callable[[Case, str], None] = lambda case, text: None,
) -> Rows:
    """Measure and model what some parts need, as far as the file does not hold it.

    Parameters
    ----------
    settings : Settings
        The machine and the models.
    parts : iterable of str
        Names in `PARTS`.
    file : Path, optional
        Rows as JSON. A run that is cut short goes on where it stopped.
    origin : Origin, optional
        Origin of this run.
    minutes : float, optional
        About how long measuring may take. Cases are measured from the shortest on until it is used up, and the others
        are modelled. Without it all cases are measured.
    found : callable
        Called with each row as soon as it is known.
    progress : callable
        Called with a case and a few words, before each of its steps.

    Raises
    ------
    ValueError
        For a device that is not known, or a file that is of another machine or version.
    """
    origin = origin or Origin.of(settings.device)
    wanted = cases(settings, parts)

    def swept(some: list[Case]) -> list[Result]:
        return sweep.run(
            some, file=file, origin=origin, found=lambda results: found(results[0]),
            measure=lambda case: measure(case, lambda text: progress(case, text)), is_finished=_is_whole,
        )  # fmt: skip

    if settings.is_model or minutes is None:
        return Rows(settings, swept(wanted), origin.machine["name"])
    modelled = swept(list(dict.fromkeys(map(settings.modelled, wanted))))
    models = {result.case: result for result in modelled}
    done = finished(file, origin) if file else []
    chosen = choice.affordable(
        wanted,
        {case: models[settings.modelled(case)] for case in wanted},
        [result for result in done if not result.case.is_model],
        choice.products_per_second(settings.device, {case.product_dtype for case in wanted}),
        limit_seconds=60 * minutes,
        free_bytes=rl.memory.available(settings.device),
    )
    return Rows(settings, [*modelled, *swept(chosen)], origin.machine["name"])


def _is_whole(result: Result) -> bool:
    if result.case.warmup_steps != WARMUP_STEPS:
        return True
    return sweep.has(result, profile=True, memory=True)


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
    measured = [result for result in rows.every() if not result.case.is_model]
    model = (
        "Modelled times are no measurements: every op runs without memory and is counted, and a launch takes the time "
        "of its FLOPs at the datasheet's peak or of its bytes at the datasheet's bandwidth, whichever is longer, after "
        f"a gap of {GAP_US:g} us."
    )
    if settings.is_model:
        return f"Nothing is measured here: all times are those of {rows.machine}, modelled. {model}"
    if len(measured) == len(rows.every()):
        return "All times are measured on this machine."
    name = settings.model_device.partition(":")[2]
    return (
        f"{len(measured)} cases are measured on this machine. The others would take too long or too much memory here, "
        f"and are modelled as on {name}; each row says which. {model}"
    )
