"""Which steps a profile keeps."""

from __future__ import annotations

from dataclasses import dataclass

from .._in_words import in_words
from .._numbers import whole


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which steps are profiled; made by `schedule`."""

    wait: int
    warmup: int
    active: int
    repeat: int = 1

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0)):
            object.__setattr__(self, name, whole(f"[profile] {name}", getattr(self, name), least))

    @property
    def cycle(self) -> int:
        return self.wait + self.warmup + self.active

    def phase(self, step: int) -> str:
        """``"wait"``, ``"warmup"``, ``"active"``, or ``"done"`` after the last cycle."""
        if self.repeat and step >= self.repeat * self.cycle:
            return "done"
        place = step % self.cycle
        if place < self.wait:
            return "wait"
        return "warmup" if place < self.wait + self.warmup else "active"


@in_words
def schedule(*, wait: int = 0, warmup: int = 0, active: int = 1, repeat: int = 1) -> Schedule:
    """Skip `wait` steps, run `warmup` with the profiler on but nothing kept, keep `active`; `repeat` times.

    Parameters
    ----------
    wait, warmup, active : int
        Numbers of steps, each ended by ``prof.step()``.
    repeat : int
        Number of cycles; 0 repeats until the block ends.

    Returns
    -------
    Schedule
        For `rl.profile(schedule=...)`.

    Examples
    --------
    >>> from rooflab.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2).phase(step) for step in range(5)]
    ['wait', 'warmup', 'active', 'active', 'done']
    """
    return Schedule(wait, warmup, active, repeat)
