"""Many cases of `rooflab.benchmark.lm` in a row; a file keeps those that are finished."""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import rooflab as rl

from ..machine.known import known
from . import lm, lm_memory, lm_peer, lm_results
from .lm import Case, Result


def cases(
    model_sizes: Iterable[str],
    context_lengths: Iterable[int],
    modes: Iterable[str],
    warmup_steps: Iterable[int] = (5,),
    **common: Any,
) -> list[Case]:
    """Every size at every length in every mode after each warm-up, in the order in which tables show them.

    Parameters
    ----------
    model_sizes, context_lengths, modes, warmup_steps : iterable
        What varies; the warm-ups change fastest, then the modes.
    **common
        Fields that all cases share.

    Examples
    --------
    >>> [case.label for case in cases(["small"], [128, 256], ["forward"])]
    ['small B4 L128 forward, composed', 'small B4 L256 forward, composed']
    """
    product = itertools.product(model_sizes, context_lengths, modes, warmup_steps)
    return [
        Case(model_size=size, context_length=length, mode=mode, warmup_steps=steps, **common)
        for size, length, mode, steps in product
    ]


def measure(
    case: Case,
    *,
    profile: bool = False,
    memory: bool = False,
    peer: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[list[Result], lm_memory.Memory | None]:
    """Measure a case, with everything that was asked for.

    Parameters
    ----------
    case : Case
        What to time.
    profile : bool
        Whether to profile one more step; not together with a peer.
    memory : bool
        Whether to count the memory of a step block by block; of one that does not fit, on a meta device.
    peer : str, optional
        The library to time beside rooflab: "torch".
    progress : callable
        As in `lm.benchmark`.

    Returns
    -------
    list of Result
        One a contender, rooflab's first.
    Memory or None
        None if it was not counted.
    """
    if peer:
        results = lm_peer.benchmark(case, progress=progress)
    else:
        results = [lm.benchmark(case, profile=profile, progress=progress)]
    if not memory:
        return results, None
    progress("counting memory")
    device = case.device if results[0].status == "ok" else _without_memory(case.device)
    # Run op by op, so that blocks show where they are made.
    counted = lm_memory.measure(dataclasses.replace(case, device=device, compile=False, graph=False))
    held = {phase.name: phase.classes for phase in counted.phases}
    ours = dataclasses.replace(results[0], memory=held, largest=tuple(counted.largest))
    return [ours, *results[1:]], counted


def _without_memory(device: str) -> str:
    """The meta device on which a case is counted that has no room on `device`."""
    if device.startswith("meta"):
        return device
    sheet, _ = known(device)
    return rl.meta("cpu" if device == "cpu" else sheet.name if sheet else "H200")


def has(result: Result, *, profile: bool, memory: bool) -> bool:
    """Whether a result has what was asked for, as far as its case can have it.

    Examples
    --------
    >>> ran, full = Result(Case()), Result(Case(), status=lm.OUT_OF_MEMORY)
    >>> [has(one, profile=True, memory=False) for one in (ran, full)], has(full, profile=False, memory=True)
    ([False, True], False)
    """
    if result.contender != "rooflab":
        return True
    is_profiled = bool(result.profile) or result.status != "ok"
    return is_profiled >= profile and bool(result.memory) >= memory


def in_a_new_process(case: Case, *, profile: bool = False) -> list[Result]:
    """Measure a case in a process that starts for it, so that nothing has warmed up its first step.

    Parameters
    ----------
    case : Case
        What to time.
    profile : bool
        Whether to profile one more step.
    """
    start_method = multiprocessing.get_context("spawn")  # a fork would have what this process has loaded
    with ProcessPoolExecutor(max_workers=1, mp_context=start_method) as pool:
        return [pool.submit(lm.benchmark, case, profile=profile).result()]


def run(
    wanted: Sequence[Case],
    *,
    file: Path | None = None,
    origin: lm_results.Origin | None = None,
    measure: Callable[[Case], list[Result]] = lambda case: [lm.benchmark(case)],
    is_finished: Callable[[Result], bool] = lambda result: True,
    found: Callable[[list[Result]], None] = lambda results: None,
    is_in_time: Callable[[], bool] = lambda: True,
) -> list[Result]:
    """Measure the cases that are not finished yet.

    Parameters
    ----------
    wanted : sequence of Case
        What to measure, in this order.
    file : Path, optional
        Results as JSON. What it holds is not measured again; it is written after each case, so that a run that is cut
        short loses at most one case. Rows that others write into it meanwhile stay.
    origin : Origin, optional
        Origin of this run; that of the first case's device when not given.
    measure : callable
        Gives the results of a case, one a contender.
    is_finished : callable
        Whether a result of the file has all that is wanted now; if it does not, its case is measured again with all
        contenders.
    found : callable
        Called with the results of each case as soon as they are known, including those of the file.
    is_in_time : callable
        Whether another case may be begun; what the file holds needs no time.

    Returns
    -------
    list of Result
        The results of all cases that were finished in time, in their order.

    Raises
    ------
    ValueError
        If the file is something else, or of another machine or version.
    """
    origin = origin or lm_results.Origin.of(wanted[0].device)
    of_case: dict[Case, list[Result]] = {}
    measured: dict[Case, list[Result]] = {}
    for result in lm_results.finished(file, origin) if file else []:
        of_case.setdefault(result.case, []).append(result)
    for case in wanted:
        held = of_case.get(case, [])
        if not (held and all(map(is_finished, held))):
            if not is_in_time():
                continue
            of_case[case] = measured[case] = measure(case)
            if file:
                lm_results.save(file, itertools.chain.from_iterable(measured.values()), origin)
        found(of_case[case])
    return [result for case in wanted for result in of_case.get(case, [])]
