"""Runs a function that measures time on a fake device, and keeps what it returned and the log of what it did.

A machine's own clock cannot show whether a time was measured correctly. Here each time is known beforehand. The device
and all its times stay with the test. A student's function, in its own process, can only ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rooflab.benchmark.fake_clocks import clocks
from rooflab.benchmark.fake_device import Entry, FakeDevice
from rooflab.benchmark.fake_model import FakeModel

RUN, MODEL, FRESH_MODEL, LOW, OPTIMIZER = "<run>", "<model>", "<fresh model>", "<low precision>", "<optimizer>"


@dataclass(frozen=True)
class Faked:
    """A call on the fake device: its value, and the log. Times are ms of the device's clock."""

    value: Any
    log: tuple[Entry, ...]

    def launches(self, *labels: str) -> list[Entry]:
        """The launches with one of these labels, or all, in order."""
        return [entry for entry in self.log if entry.kind == "launch" and (not labels or entry.label in labels)]

    @property
    def backwards_in_low_precision(self) -> int:
        """How many backward passes ran inside of the low-precision context."""
        return sum(entry.kind == "low backward" for entry in self.log)


class Settings(NamedTuple):
    """How long things take on the fake device, in ms: a run or a forward pass, a backward pass (twice that if None),
    the host's part of a launch, and the first runs or forward passes. `jitter` is a fraction of each time, and low
    precision multiplies a time by `low_factor`. A step of the optimizer takes `work_ms`. Where the device `fails`, a
    forward pass raises RuntimeError.
    """

    work_ms: float = 1.0
    backward_ms: float | None = None
    host_ms: float = 0.0
    slow_ms: Sequence[float] = ()
    jitter: float = 0.0
    seed: int = 0
    low_factor: float = 1.0
    out_of_memory: bool = False
    fails: bool = False


class Machine:
    """A fake device with what runs on it: `answer` is all that a student's function can ask of it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = Settings(**settings)
        self.device = FakeDevice(self.settings.jitter, self.settings.seed)
        self.slow_ms: list[list[float]] = []  # for each run and each model, the times of its next calls
        self.scales: list[float] = []  # for each forward pass, the factor of its times
        self.low_depth = 0

    def answer(self, what: str, *arguments: Any) -> Any:
        """Do what is asked, and say what the device says.

        Raises
        ------
        ValueError, IndexError
            There is no such request, run, model or pass.
        RuntimeError
            The device fails.
        """
        work_ms, host_ms = self.settings.work_ms, self.settings.host_ms
        match what, *arguments:
            case ["add"]:
                self.slow_ms.append(list(self.settings.slow_ms))
                return len(self.slow_ms) - 1
            case ["process"]:
                return self.device.note("process")
            case ["kept"]:
                return self.device.note("kept")
            case ["optimizer"]:
                return self.device.launch(work_ms, host_ms, "optimizer")
            case ["low", int(step)]:
                self.low_depth += step
                return None
            case ["run", int(number)]:
                return self.device.launch(self._next_ms(number, work_ms), host_ms, "run")
            case ["forward", int(number)]:
                if self.settings.fails:
                    raise RuntimeError("[forward] the fake device has failed")
                if self.settings.out_of_memory:
                    return None
                self.scales.append(self.settings.low_factor if self.low_depth else 1.0)
                self.device.launch(self.scales[-1] * self._next_ms(number, work_ms), host_ms, "forward")
                return len(self.scales) - 1
            case ["backward", int(number)]:
                if self.low_depth:
                    self.device.note("low backward")
                backward_ms = self.settings.backward_ms
                taken_ms = 2 * work_ms if backward_ms is None else backward_ms
                return self.device.launch(self.scales[number] * taken_ms, host_ms, "backward")
        return self.device.answer(what, *arguments)

    def _next_ms(self, number: int, work_ms: float) -> float:
        slow_ms = self.slow_ms[number]
        return slow_ms.pop(0) if slow_ms else work_ms


class LowPrecision:
    """A context in which passes of a `FakeModel` are shorter, as under autocast. It can be entered again and again."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def __enter__(self) -> LowPrecision:
        self._ask("low", 1)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._ask("low", -1)


class FakeOptimizer:
    """An optimizer that changes nothing. Its step only launches work."""

    def __init__(self, ask: Callable[..., Any], models: Sequence[FakeModel]) -> None:
        self._ask, self._models = ask, models

    def step(self) -> None:
        self._ask("optimizer")

    def zero_grad(self, set_to_none: bool = True) -> None:
        for model in self._models:
            model.zero_grad(set_to_none)


def faked(fn: Callable, args: tuple, kwargs: dict, ask: Callable[..., Any]) -> Any:
    """Call `fn` with the stand-ins in place of their names among the arguments, and return what it returns. Meanwhile
    every clock asks the `Machine` behind `ask`.
    """

    def run() -> Callable[[], None]:
        number = ask("add")
        return lambda: ask("run", number)

    models: list[FakeModel] = []

    def model() -> FakeModel:
        number = ask("add")
        made = FakeModel(lambda: ask("forward", number), lambda one: ask("backward", one), kept=lambda: ask("kept"))
        models.append(made)
        return made

    def fresh_model() -> FakeModel:
        """A model in a process of its own: its first calls are slow again."""
        ask("process")
        return model()

    makers: dict[str, Callable[[], Any]] = {
        RUN: run,
        MODEL: model,
        FRESH_MODEL: lambda: fresh_model,
        LOW: lambda: LowPrecision(ask),
        OPTIMIZER: lambda: FakeOptimizer(ask, models),
    }

    def given(value: Any) -> Any:
        return makers[value]() if isinstance(value, str) and value in makers else value

    args, kwargs = tuple(map(given, args)), {name: given(value) for name, value in kwargs.items()}
    with clocks(ask, getattr(fn, "__globals__", None)):
        return fn(*args, **kwargs)
