"""Measures and models what a report needs, and keeps it in the report's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

import rooflab as rl

from .. import sweep
from ..calls import Call, CallResult
from ..calls import measure as measure_call
from ..lm import Case, Result, peak_of
from ..lm_results import Origin, finished, load_calls, save_calls
from . import choice
from .parts import PARTS, calls, cases
from .settings import WARMUP_STEPS, Rows, Settings

_SHARE_OF_CALLS = 0.25


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
    found: Callable[[Result | CallResult], None] = lambda result: None,
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
        About how long measuring the cases may take, and a fourth of it more the calls. They are measured from the
        shortest on until it is used up, and the others are modelled. Without it all are measured.
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
    names = list(parts)
    wanted = cases(settings, names)

    def swept(some: list[Case]) -> list[Result]:
        return sweep.run(
            some, file=file, origin=origin, found=lambda results: found(results[0]),
            measure=lambda case: measure(case, lambda text: progress(case, text)), is_finished=_is_whole,
        )  # fmt: skip

    if settings.is_model or minutes is None:
        results = swept(wanted)
        return Rows(settings, results, origin.machine["name"], run_calls(settings, names, file, origin, found))
    speeds = choice.products_per_second(settings.device, {"float32", *(case.product_dtype for case in wanted)})
    modelled = swept(list(dict.fromkeys(map(settings.modelled, wanted))))
    models = {result.case: result for result in modelled}
    done = finished(file, origin) if file else []
    chosen = choice.affordable(
        wanted,
        {case: models[settings.modelled(case)] for case in wanted},
        [result for result in done if not result.case.is_model],
        speeds,
        limit_seconds=60 * minutes,
        free_bytes=rl.memory.available(settings.device),
    )
    results = [*modelled, *swept(chosen)]
    called = run_calls(settings, names, file, origin, found, minutes, speeds["float32"])
    return Rows(settings, results, origin.machine["name"], called)


def run_calls(
    settings: Settings,
    parts: Iterable[str],
    file: Path | None,
    origin: Origin,
    found: Callable[[CallResult], None] = lambda result: None,
    minutes: float | None = None,
    flops_per_second: float = 0.0,
) -> list[CallResult]:
    """The calls that some parts need: measured, and modelled where the time is limited.

    Parameters
    ----------
    settings, parts, file, origin, found, minutes
        As in `run`.
    flops_per_second : float
        Of products in float32; needed where the time is limited.
    """
    known = {result.call: result for result in (load_calls(file, origin) if file else [])}

    def swept(some: Iterable[Call]) -> list[CallResult]:
        for call in some:
            if call not in known:
                known[call] = measure_call(call)
                if file:
                    save_calls(file, known.values(), origin)
            found(known[call])
        return [known[call] for call in some]

    wanted = calls(settings, parts)
    if settings.is_model or minutes is None:
        return swept(wanted)
    models = dict(zip(wanted, swept([dataclasses.replace(call, device=settings.model_device) for call in wanted]),
                      strict=True))  # fmt: skip
    peak, _ = peak_of(settings.model_device, "float32")
    chosen = choice.affordable_calls(
        models, known, (peak or 1.0) * 1e12 / flops_per_second, 60 * minutes * _SHARE_OF_CALLS,
        rl.memory.available(settings.device),
    )  # fmt: skip
    return [*models.values(), *swept(chosen)]


def _is_whole(result: Result) -> bool:
    if result.case.warmup_steps != WARMUP_STEPS:
        return True
    return sweep.has(result, profile=True, memory=True)
