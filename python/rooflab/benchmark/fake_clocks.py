"""The clocks that a program sees while it runs on a `FakeDevice`.

They hold no times. Each asks the device, which can be in another process.
"""

from __future__ import annotations

import contextlib
import copyreg
import datetime
import pickle
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import numpy as np

__all__ = ["ASKED", "NOTED", "clocks"]

ASKED: dict[str, list[type]] = {
    "synchronize": [],
    "wait_until": [float],
    "note": [str, str],
    "read_ms": [],
    "sleep": [float],
    "mark": [],
}
"""What a program asks of the device: methods of `FakeDevice`, and the types of their arguments."""

NOTED = ("open", "close")
"""What a program may note: the begin and the end of a range. It may not note launches, as that would fake work."""


@contextlib.contextmanager
def clocks(ask: Callable[..., Any], names: dict[str, Any] | None = None) -> Iterator[None]:
    """Make every clock that a program may use show the time of a fake device, inside a `with` block.

    These are the clocks of `time`, `timeit` and `datetime.datetime`, `time.sleep`, `rl.synchronize`,
    `rl.cuda.synchronize`, `rl.cuda.Event` and `rl.latency`. Those of processor time stay real. Ranges are noted in the
    log. Other code runs at its usual speed. In other threads, such as those of Jupyter, the clocks of Python stay real.

    Parameters
    ----------
    ask : callable
        `FakeDevice.answer`, or a function that passes the question on to it.
    names : dict, optional
        Global names of the program, such as ``globals()``. Clocks imported there by name are replaced as well.

    Examples
    --------
    >>> import time
    >>> with clocks(lambda what, *arguments: 5000.0):
    ...     seconds = time.perf_counter()
    >>> seconds
    5.0
    """
    modules = {name: sys.modules[name] for name in ("rooflab", "rooflab.benchmark", "rooflab.cuda")}
    modules |= {"time": time, "timeit": timeit, "datetime": datetime, "timing": sys.modules["rooflab.benchmark.timing"]}
    modules["gpu_clock"] = sys.modules["rooflab.benchmark.gpu_clock"]
    stands_in = _stand_ins(ask)
    before = [(vars(modules[module]), name, vars(modules[module])[name]) for module, name in stands_in]
    by_identity = {
        id(value): stands_in[key] for (_, _, value), key in zip(before, stands_in, strict=True) if value is not None
    }
    if names is not None:
        before += [(names, name, value) for name, value in names.items() if id(value) in by_identity]
    try:
        for (module, name), value in stands_in.items():
            setattr(modules[module], name, value)
        for owner, name, value in before[len(stands_in) :]:
            owner[name] = by_identity[id(value)]
        copyreg.pickle(_REAL, _by_name)
        yield
    finally:
        for owner, name, value in before:
            owner[name] = value
        if datetime.datetime is _REAL:
            copyreg.dispatch_table.pop(_REAL, None)


def _stand_ins(ask: Callable[..., Any]) -> dict[tuple[str, str], Any]:
    """The replacement of each (module, name)."""

    def read_s() -> float:
        return ask("read_ms") * 1e-3

    def read_ns() -> int:
        return round(ask("read_ms") * 1e6)

    def sleep(seconds: float) -> None:
        ask("sleep", float(seconds))

    def synchronize(device: Any = None) -> None:
        ask("synchronize")

    found: dict[tuple[str, str], Any] = {
        ("time", "sleep"): _in_this_thread(sleep, time.sleep),
        ("timeit", "default_timer"): _in_this_thread(read_s, timeit.default_timer),
        ("datetime", "datetime"): DateTime,
        ("rooflab.cuda", "Event"): _event_class(ask),
        ("rooflab.cuda", "is_available"): lambda: True,
        ("rooflab", "range"): _range_class(ask, sys.modules["rooflab"].range),
        ("timing", "stand_in"): _latency(ask),
    }
    for name in ("perf_counter", "monotonic", "time"):
        found["time", name] = _in_this_thread(read_s, getattr(time, name))
        found["time", f"{name}_ns"] = _in_this_thread(read_ns, getattr(time, f"{name}_ns"))
    places = ("rooflab", "rooflab.benchmark", "rooflab.cuda", "gpu_clock")
    return found | {(module, "synchronize"): synchronize for module in places}


_REAL = datetime.datetime


class _AsReal(type):
    """The type of `DateTime`: an instance of the real class is one of its own."""

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, _REAL) if cls is DateTime else super().__instancecheck__(one)

    def __subclasscheck__(cls, one: type) -> bool:
        return issubclass(one, _REAL) if cls is DateTime else super().__subclasscheck__(one)


class DateTime(datetime.datetime, metaclass=_AsReal):
    """What stands in for `datetime.datetime`: it reads the clock of `time`, and makes instances of the real class."""

    __module__, __qualname__ = _REAL.__module__, _REAL.__qualname__

    def __new__(cls, *given: Any, **options: Any) -> Any:
        return _REAL.__new__(_REAL if cls is DateTime else cls, *given, **options)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


DateTime.__name__ = _REAL.__name__


def _by_name(moment: datetime.datetime) -> tuple[Any, ...]:
    """How a moment is pickled: by the class that `datetime.datetime` is now, because pickle looks it up there."""
    return datetime.datetime, *moment.__reduce_ex__(pickle.HIGHEST_PROTOCOL)[1:]


def _in_this_thread(stand_in: Callable, real: Callable) -> Callable:
    """`stand_in` for calls from this thread, `real` for all others, which would move the clock forward."""
    own = get_ident()
    return lambda *given: (stand_in if get_ident() == own else real)(*given)


def _latency(ask: Callable[..., Any]) -> Callable:
    """What `rl.latency` does on a GPU: events around each call."""

    def samples_ms(call: Callable[[], object], warmup: int, repeat: int) -> np.ndarray:
        for _ in range(warmup):
            call()
        ask("synchronize")
        events = []
        for _ in range(repeat):
            start = ask("mark")
            call()
            events.append((start, ask("mark")))
        ask("synchronize")
        return np.array([end - start for start, end in events])

    return samples_ms


def _event_class(ask: Callable[..., Any]) -> type:
    """What stands in for `rl.cuda.Event`."""

    class Event:
        """A point in the time of the fake device."""

        def __init__(self, device: int = 0, enable_timing: bool = True) -> None:
            self._at_ms: float | None = None

        def record(self, stream: object = None) -> None:
            self._at_ms = ask("mark")

        def synchronize(self) -> None:
            if self._at_ms is not None:
                ask("wait_until", self._at_ms)

        def elapsed_ms(self, later: Event) -> float:
            later.synchronize()
            if self._at_ms is None or later._at_ms is None:
                raise RuntimeError("[Event] elapsed_ms: expected two events that were recorded")
            return later._at_ms - self._at_ms

        elapsed_time = elapsed_ms  # PyTorch's name

    return Event


def _range_class(ask: Callable[..., Any], inner: Callable[[str], Any]) -> type:
    """What stands in for `rl.range`, which is `inner`: the device notes when it is opened and closed."""

    class Range:
        """A range that the fake device notes."""

        def __init__(self, name: str) -> None:
            self._name, self._inner = name, inner(name)

        def __enter__(self) -> Any:
            ask("note", "open", self._name)
            return self._inner.__enter__()

        def __exit__(self, *exception: Any) -> Any:
            ask("note", "close", self._name)
            return self._inner.__exit__(*exception)

    return Range
