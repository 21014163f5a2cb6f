"""Rounds of probes, and what they tell: each figure's ceiling, how far rounds lie apart, whether the machine was busy.

A round runs every probe once, so a disturbance of some seconds spoils one round of all figures and not all rounds of
one. A ceiling is the best that repeats: other programs make a kernel slower, never faster, and what was seen once may
be a fault of the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .ceilings import Measured
from .load import CpuTimes, Load, between

_AGREE = 1.05  # rounds agree when their medians differ by less than this factor
_STEADY = 1.25  # rounds that differ by more are followed by others, as long as there is time
_QUIET_CPUS = 0.25  # what other programs may take: one busy CPU can halve what all threads do together
_ROUNDS = 5
_SECONDS = 20.0  # after which no round begins but the second


@dataclass(frozen=True)
class Probe:
    """One way to measure one figure of a device. Rivals have the same name; the fastest one gives the figure.

    Attributes
    ----------
    name, unit, how : str
        What is measured; ``"TB/s"``, ``"TFLOP/s"`` or ``"us"``, of which less is better; what is run.
    sample : callable
        Runs it a few times. Returns one value in `unit` for each.
    """

    name: str
    unit: str
    how: str
    sample: Callable[[], Sequence[float]]

    def speed(self, value: float) -> float:
        """A value as a speed, of which more is better."""
        return 1 / value if self.unit == "us" else value


@dataclass(frozen=True)
class Round:
    """What one round found: samples by probe, and the load of the CPUs (None when unknown)."""

    samples: Mapping[Probe, Sequence[float]]
    load: Load | None = None


@dataclass(frozen=True)
class Probing:
    """Probes, the load of the CPUs while they were chosen (None when unknown), and the rounds that ran them."""

    probes: Sequence[Probe]
    choice: Load | None
    rounds: Sequence[Round]

    def ceilings(self) -> dict[str, Measured]:
        """Every figure, by name."""
        return {probe.name: measured for probe, measured, _ in self._winners()}

    def disturbance(self) -> str:
        """Why the ceilings cannot be trusted, in one sentence; "" when they can."""
        loads = [one.load for one in self.rounds]
        if not is_quiet(self.choice):
            why = _taken([self.choice])
        elif 2 * sum(map(is_quiet, loads)) < len(loads):
            why = _taken(loads)
        else:
            alone, name = max((alone, probe.name) for probe, _, alone in self._winners())
            if alone <= _STEADY:
                return ""
            apart = "no two rounds agree" if alone == float("inf") else f"one round alone was {alone:.1f}x as fast"
            why = f"{apart} in {name}"
        return f"The machine is busy: {why}, so its ceilings may be far too low and are not kept."

    def is_steady(self) -> bool:
        """Whether the middle round of each figure came near its ceiling."""
        return all(measured.apart <= _STEADY for _, measured, _ in self._winners())

    def _winners(self) -> Iterable[tuple[Probe, Measured, float]]:
        settled = [(probe, *settle(probe, self.rounds)) for probe in self.probes]
        for name in dict.fromkeys(probe.name for probe in self.probes):
            rivals = [one for one in settled if one[0].name == name]
            yield max(rivals, key=lambda one: one[0].speed(one[1].median))


def run(
    choose: Callable[[], Sequence[Probe]],
    read_load: Callable[[], CpuTimes | None],
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[str], None] = lambda text: None,
) -> Probing:
    """Choose probes, then run rounds until they agree and the machine was quiet, or the time is up.

    A ceiling is a maximum: rounds that a virtual machine's neighbours slowed do not lower it, if two others agree.

    Parameters
    ----------
    choose : callable
        Gives the probes. Called again when the machine was not quiet, because a kernel may then have lost by accident.
    read_load : callable
        The CPU times now, or None.
    clock : callable
        Seconds now.
    progress : callable
        Called with a line of text before each step.
    """
    start = clock()

    def in_time() -> bool:
        return clock() - start < _SECONDS

    choice: Load | None = None
    probes: Sequence[Probe] = []
    rounds: list[Round] = []
    while not probes or (not is_quiet(choice) and in_time()):
        progress("choosing kernels")
        before = read_load()
        probes = choose()
        choice = between(before, read_load())
    # Nothing can repeat before the second round.
    while len(rounds) < 2 or in_time():
        progress(f"round {len(rounds) + 1}")
        before = read_load()
        samples = {probe: probe.sample() for probe in probes}
        rounds.append(Round(samples, between(before, read_load())))
        found = Probing(probes, choice, rounds)
        if len(rounds) >= _ROUNDS and found.is_steady() and not found.disturbance():
            break
    return Probing(probes, choice, rounds)


def is_quiet(load: Load | None) -> bool:
    """Whether other programs and the host left the CPUs to the probes, as far as is known."""
    return load is None or load.others + load.stolen <= _QUIET_CPUS


def settle(probe: Probe, rounds: Sequence[Round]) -> tuple[Measured, float]:
    """What one probe shows, and how far rounds lie from it.

    Returns
    -------
    Measured
        Median and percentiles over all samples of the stable rounds: those that agree with the best round that another
        one agrees with. Over all rounds when no two agree. `apart` is that round's speed over the middle round's.
    float
        How many times as fast a better round was, with which no other agrees; 1 if there is none, infinite when no two
        rounds agree.
    """
    found = [np.asarray(one.samples[probe], dtype=float) for one in rounds]
    speeds = [probe.speed(float(np.median(samples))) for samples in found]
    ranked = sorted(speeds, reverse=True)
    best = next((speed for speed, slower in pairwise(ranked) if speed <= _AGREE * slower), None)
    stable = [
        samples for samples, speed in zip(found, speeds, strict=True) if best is None or best / _AGREE <= speed <= best
    ]
    values = np.concatenate(stable)
    p20, median, p80 = (float(value) for value in np.percentile(values, [20, 50, 80]))
    apart = (best or ranked[0]) / ranked[len(ranked) // 2]
    measured = Measured(median, p20, p80, probe.unit, len(values), probe.how, round(apart, 3))
    return measured, float("inf") if best is None else ranked[0] / best


def _taken(loads: Sequence[Load | None]) -> str:
    known = [load for load in loads if load is not None]
    others, stolen = (float(np.median([getattr(load, who) for load in known])) for who in ("others", "stolen"))
    host = f" and its host {stolen:.1f}" if stolen >= 0.05 else ""
    return f"other programs took {others:.1f}{host} of its {known[0].cpus} CPUs"
