"""Measures and models what a report needs, and keeps it in the report's file."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Container, Iterable
from pathlib import Path

import rooflab as rl

from ...profiler import launch_model
from .. import sweep
from ..calls import Call, CallResult
from ..calls import measure as measure_call
from ..lm import Case, Result, peak_of
from ..lm_results import Origin, finished, load_calls, save_calls
from . import choice
from .parts import PARTS, calls, cases
from .settings import WARMUP_STEPS, Rows, Settings

_MEASURING, _MODELLING = 0.55, 0.35  # of the time; what is left is for tables and figures
_SHARE_OF_CALLS = 0.2  # of what is measured


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
        About how long all of it may take. More than half is for measuring, from the shortest case on; what the file
        holds counts as if it were measured now. What is left over is then modelled, until the time is used up, and
        the next run goes on. Without it all is measured.
    found : callable
        Called with each row as soon as it is known.
    progress : callable
        Called with a case and a few words, before each of its steps.

    Raises
    ------
    ValueError
        For a device that is not known, or a file that is of another machine or version.
    """
    start = time.monotonic()
    origin = origin or Origin.of(settings.device)
    names = list(parts)
    wanted, wanted_calls = cases(settings, names), calls(settings, names)

    def swept(some: list[Case], until: float = math.inf) -> list[Result]:
        return sweep.run(
            some, file=file, origin=origin, found=lambda results: found(results[0]),
            measure=lambda case: measure(case, lambda text: progress(case, text)), is_finished=_is_whole,
            is_in_time=lambda: time.monotonic() < until,
        )  # fmt: skip

    if settings.is_model or minutes is None:
        results = swept(wanted)
        return Rows(settings, results, origin.machine["name"], run_calls(settings, names, file, origin, found))
    measuring = 60 * minutes * _MEASURING
    of_calls = measuring * (_SHARE_OF_CALLS if wanted else 1.0) if wanted_calls else 0.0
    speeds = choice.products_per_second(settings.device, {"float32", *(case.product_dtype for case in wanted)})
    done = [result for result in (finished(file, origin) if file else []) if not result.case.is_model]
    chosen = choice.affordable(
        wanted, done, speeds, limit_seconds=measuring - of_calls, free_bytes=rl.memory.available(settings.device)
    )
    results = swept(chosen, until=start + measuring - of_calls)
    called = run_calls(settings, names, file, origin, found, of_calls, speeds["float32"])
    missing = _to_model(wanted, {result.case for result in results})
    results += swept(
        list(dict.fromkeys(map(settings.modelled, missing))), until=start + 60 * minutes * (_MEASURING + _MODELLING)
    )
    return Rows(settings, results, origin.machine["name"], called)


def _to_model(wanted: Iterable[Case], measured: Container[Case]) -> list[Case]:
    """The cases that are not measured, and then those that stand beside one of them in a table."""
    every = list(wanted)
    missing = [case for case in every if case not in measured]
    beside = {_step_of(case) for case in missing}
    return [*missing, *(case for case in every if case in measured and _step_of(case) in beside)]


def _step_of(case: Case) -> tuple[str, int, str]:
    return case.model_size, case.context_length, case.mode


def run_calls(
    settings: Settings,
    parts: Iterable[str],
    file: Path | None,
    origin: Origin,
    found: Callable[[CallResult], None] = lambda result: None,
    limit_seconds: float | None = None,
    flops_per_second: float = 0.0,
) -> list[CallResult]:
    """The calls that some parts need: measured, and modelled where the time is limited.

    Parameters
    ----------
    settings, parts, file, origin, found
        As in `run`.
    limit_seconds : float, optional
        About how long measuring may take; models take a second or two more.
    flops_per_second : float
        Of products in float32; needed where the time is limited.
    """
    known = {result.call: result for result in (load_calls(file, origin) if file else []) if _is_current(result)}

    measured: list[CallResult] = []

    def swept(some: Iterable[Call]) -> list[CallResult]:
        for call in some:
            if call not in known:
                known[call] = measure_call(call)
                measured.append(known[call])
                if file:
                    save_calls(file, measured, origin)
            found(known[call])
        return [known[call] for call in some]

    wanted = calls(settings, parts)
    if settings.is_model or limit_seconds is None:
        return swept(wanted)
    models = dict(zip(wanted, swept([dataclasses.replace(call, device=settings.model_device) for call in wanted]),
                      strict=True))  # fmt: skip
    peak, _ = peak_of(settings.model_device, "float32")
    chosen = choice.affordable_calls(
        models, known, (peak or 1.0) * 1e12 / flops_per_second, limit_seconds, rl.memory.available(settings.device)
    )
    return [*models.values(), *swept(chosen)]


def _is_whole(result: Result) -> bool:
    """Whether a result of the file has what the report shows; if not, its case is run again."""
    if result.case.warmup_steps != WARMUP_STEPS:
        return True
    return sweep.has(result, profile=True, memory=True) and _is_current(result)


def _is_current(result: Result | CallResult) -> bool:
    """Whether a modelled result rests on the figures that a model would rest on now."""
    run = result.case if isinstance(result, Result) else result.call
    return not run.is_model or not result.model or result.model == str(launch_model(run.device))
