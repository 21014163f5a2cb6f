"""The clocks that a program sees while it runs on a `FakeDevice`.

They hold no times. Each asks the device, which can be in another process.
"""

from __future__ import annotations

import contextlib
import copyreg
import datetime
import functools
import pickle
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from threading import get_ident
from types import FunctionType
from typing import Any

import numpy as np

__all__ = ["ASKED", "NOTED", "clocks", "install"]

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


_asks: dict[int, Callable[..., Any]] = {}  # by thread, whom its clocks ask

Makers = dict[tuple[str, str], Callable[[Any], Any]]  # by module and name
Replaced = list[tuple[Any, str, Any]]  # a dict or a function, a name there, and what it held
_TIMERS: tuple[Any, ...] = (timeit.timeit, timeit.repeat, timeit.Timer.__init__)  # a default argument is their clock


@contextlib.contextmanager
def clocks(ask: Callable[..., Any], names: dict[str, Any] | None = None) -> Iterator[None]:
    """Make every clock that a program may use show the time of a fake device, inside a `with` block.

    These are the clocks of `time`, `timeit` and `datetime.datetime`, `time.sleep`, `rl.synchronize`,
    `rl.cuda.synchronize`, `rl.cuda.Event` and `rl.latency`. Those of processor time stay real. Ranges are noted in the
    log. Other code runs at its usual speed. In other threads, such as those of Jupyter, the clocks of Python stay real.

    A clock that the program took before, and holds in a class, a default argument or a list, stays real as well. Where
    a program is graded, such a clock of `time` follows too, because `install` was called before.

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
    own, timing = get_ident(), sys.modules["rooflab.benchmark.timing"]
    outer, series, before = _asks.get(own), vars(timing)["stand_in"], _put_in(_stand_ins() | _DATES, names or {})
    try:
        with _noting(sys.modules["rooflab"].range):
            _asks[own] = ask
            vars(timing)["stand_in"] = _samples_ms
            copyreg.pickle(_REAL, _by_name)
            yield
    finally:
        vars(timing)["stand_in"] = series
        _asks.pop(own, None)
        if outer is not None:
            _asks[own] = outer
        for place in before:
            _put(*place)
        if datetime.datetime is _REAL:
            copyreg.dispatch_table.pop(_REAL, None)


def install() -> None:
    """Make each clock that a program takes from now on, and keeps anywhere, show the time of a fake device inside of a
    block of `clocks`, and the machine's outside. This lasts as long as the process. The class of dates stays as it is,
    because compiled libraries, such as pandas, check its size when they are imported.
    """
    _put_in(_stand_ins(), {})


def _put_in(makers: Makers, names: dict[str, Any]) -> Replaced:
    """Put what follows the clock of a fake device into its modules, and over its copies in `names`. Returns what was
    there before.
    """
    modules = {name: sys.modules[name] for name in ("rooflab", "rooflab.benchmark", "rooflab.cuda")}
    modules |= {"time": time, "timeit": timeit, "datetime": datetime}
    modules["gpu_clock"] = sys.modules["rooflab.benchmark.gpu_clock"]
    before: Replaced = [(vars(modules[module]), name, vars(modules[module])[name]) for module, name in makers]
    made = {id(value): make(value) for (_, _, value), make in zip(before, makers.values(), strict=True)}
    before += [(names, name, value) for name, value in names.items() if id(value) in made]
    for owner, name, value in before:
        owner[name] = made[id(value)]
    for timer in _TIMERS:
        before.append((timer, "__defaults__", timer.__defaults__))
        timer.__defaults__ = tuple(made.get(id(value), value) for value in timer.__defaults__)
    return before


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)


def _stand_ins() -> Makers:
    """For each (module, name), what makes the stand-in of what is there."""

    def read_s(*_: Any) -> float:
        return _ask("read_ms") * 1e-3

    def read_ns(*_: Any) -> int:
        return round(_ask("read_ms") * 1e6)

    def sleep(seconds: float) -> None:
        _ask("sleep", float(seconds))

    def synchronize(device: Any = None) -> None:
        _ask("synchronize")

    found: Makers = {
        ("time", "sleep"): _following(sleep),
        ("timeit", "default_timer"): _following(read_s),
        ("rooflab.cuda", "Event"): lambda real: type.__new__(_Following, "Event", (Event,), {"real": real}),
        ("rooflab.cuda", "is_available"): _following(lambda: True),
    }
    for name in ("perf_counter", "monotonic", "time"):
        found["time", name] = _following(read_s)
        found["time", f"{name}_ns"] = _following(read_ns)
    found["time", "clock_gettime"] = _following(read_s, _OF_PROCESSORS)
    found["time", "clock_gettime_ns"] = _following(read_ns, _OF_PROCESSORS)
    places = ("rooflab", "rooflab.benchmark", "rooflab.cuda", "gpu_clock")
    return found | {(module, "synchronize"): _following(synchronize) for module in places}


def _ask(what: str, *arguments: Any) -> Any:
    return _asks[get_ident()](what, *arguments)


def _following(stand_in: Callable, but_for: tuple[int, ...] = ()) -> Callable[[Any], Callable]:
    """What makes, of a real function, one that is `stand_in` in a thread whose clocks are fake. In all others it is
    the real one, because they would move the clock forward. So it is where its first argument is one of `but_for`.
    """

    def made(real: Any) -> Callable:
        def follow(*given: Any, **named: Any) -> Any:
            is_fake = get_ident() in _asks and not (but_for and given and given[0] in but_for)
            return (stand_in if is_fake else real)(*given, **named)

        if isinstance(real, _Builtin):
            return real
        return functools.wraps(real)(follow) if isinstance(real, FunctionType) else _Builtin(real, follow)

    return made


class _Builtin:
    """What stands in for a builtin function. As one, it is no method where a class keeps it, and pickle finds it by
    its name.
    """

    def __init__(self, real: Any, follow: Callable) -> None:
        functools.update_wrapper(self, real)
        self._follow = follow

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._follow(*given, **named)

    def __repr__(self) -> str:
        return repr(vars(self)["__wrapped__"])

    def __reduce__(self) -> str:
        return vars(self)["__name__"]


_OF_PROCESSORS = (time.CLOCK_PROCESS_CPUTIME_ID, time.CLOCK_THREAD_CPUTIME_ID)
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
_DATES: Makers = {("datetime", "datetime"): lambda _: DateTime}


def _by_name(moment: datetime.datetime) -> tuple[Any, ...]:
    """How a moment is pickled: by the class that `datetime.datetime` is now, because pickle looks it up there."""
    return datetime.datetime, *moment.__reduce_ex__(pickle.HIGHEST_PROTOCOL)[1:]


def _samples_ms(call: Callable[[], object], warmup: int, repeat: int) -> np.ndarray:
    """What `rl.latency` does on a GPU: events around each call."""
    for _ in range(warmup):
        call()
    _ask("synchronize")
    events = []
    for _ in range(repeat):
        start = _ask("mark")
        call()
        events.append((start, _ask("mark")))
    _ask("synchronize")
    return np.array([end - start for start, end in events])


class _Following(type):
    """The type of what stands in for `rl.cuda.Event`: it makes a real one where no clock is fake."""

    real: Any

    def __call__(cls, *given: Any, **named: Any) -> Any:
        return super().__call__(*given, **named) if get_ident() in _asks else cls.real(*given, **named)

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, (Event, cls.real))


class Event:
    """A point in the time of the fake device."""

    def __init__(self, device: int = 0, enable_timing: bool = True) -> None:
        self._at_ms: float | None = None

    def record(self, stream: object = None) -> None:
        self._at_ms = _ask("mark")

    def synchronize(self) -> None:
        if self._at_ms is not None:
            _ask("wait_until", self._at_ms)

    def elapsed_ms(self, later: Event) -> float:
        later.synchronize()
        if self._at_ms is None or later._at_ms is None:
            raise RuntimeError("[Event] elapsed_ms: expected two events that were recorded")
        return later._at_ms - self._at_ms

    elapsed_time = elapsed_ms  # PyTorch's name


@contextlib.contextmanager
def _noting(kind: Any) -> Iterator[None]:
    """Let the device note when ranges of this thread, which are made inside the block, are opened and closed."""
    make, enter, leave = (vars(kind)[name] for name in ("__init__", "__enter__", "__exit__"))
    own, named = get_ident(), dict[int, tuple[str, Any]]()  # by identity; the range itself keeps its number taken

    def __init__(self: Any, name: str) -> None:
        make(self, name)
        named[id(self)] = name, self

    def note(what: str, one: Any) -> None:
        if get_ident() == own and id(one) in named:
            _ask("note", what, named[id(one)][0])

    def __enter__(self: Any) -> Any:
        note("open", self)
        return enter(self)

    def __exit__(self: Any, *exception: Any) -> Any:
        note("close", self)
        return leave(self, *exception)

    kind.__init__, kind.__enter__, kind.__exit__ = __init__, __enter__, __exit__
    try:
        yield
    finally:
        kind.__init__, kind.__enter__, kind.__exit__ = make, enter, leave
