"""A function that measures time, run on a fake device: what it returned, and the log of what it did.

Whether a time was measured rightly cannot be seen on a machine's clock. Here each time is known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rooflab.benchmark.fake_device import Entry, FakeDevice
from rooflab.benchmark.fake_model import FakeModel, LowPrecision
from rooflab.benchmark.stand_ins import sealed

RUN, MODEL, FRESH_MODEL, LOW = "<run>", "<model>", "<fresh model>", "<low precision>"


@dataclass(frozen=True)
class Faked:
    """A call on the fake device: its value, and the log. Times are ms of the device's clock."""

    value: Any
    log: tuple[Entry, ...]

    def launches(self, *labels: str) -> list[Entry]:
        """The launches with one of these labels, or all, in order."""
        return [entry for entry in self.log if entry.kind == "launch" and (not labels or entry.label in labels)]


class Settings(NamedTuple):
    """How long things take on the fake device, in ms: a run or a forward pass, a backward pass (twice that if None),
    the host's part of a launch, and the first runs or forward passes. `jitter` is a share of each time, `low_factor`
    what low precision leaves of it.
    """

    work_ms: float = 1.0
    backward_ms: float | None = None
    host_ms: float = 0.0
    slow_ms: Sequence[float] = ()
    jitter: float = 0.0
    seed: int = 0
    low_factor: float = 1.0
    out_of_memory: bool = False


def faked(fn: Callable, args: tuple, kwargs: dict, device: dict) -> dict:
    """Call `fn` with the stand-ins in place of their names among the arguments; every clock obeys the device."""
    settings = Settings(**device)
    fake = FakeDevice(settings.jitter, settings.seed)
    low = LowPrecision(settings.low_factor)

    def model() -> FakeModel:
        backward_ms = 2 * settings.work_ms if settings.backward_ms is None else settings.backward_ms
        times = settings.work_ms, backward_ms, settings.host_ms, settings.slow_ms
        return FakeModel(fake, *times, out_of_memory=settings.out_of_memory, low=low)

    def fresh_model() -> FakeModel:
        """A model in a process of its own: its first calls are slow again."""
        fake.note("process")
        return model()

    makers: dict[str, Callable[[], Any]] = {
        RUN: lambda: fake.work(settings.work_ms, settings.host_ms, settings.slow_ms),
        MODEL: model,
        FRESH_MODEL: lambda: sealed(fresh_model, 0),
        LOW: lambda: low,
    }

    def given(value: Any) -> Any:
        return makers[value]() if isinstance(value, str) and value in makers else value

    args, kwargs = tuple(map(given, args)), {name: given(value) for name, value in kwargs.items()}
    with fake.clocks(getattr(fn, "__globals__", None)):
        value = fn(*args, **kwargs)
    return {"value": value, "log": tuple(tuple(entry) for entry in fake.log)}
