"""What a program holds in place of a clock. Nothing here leads to the device behind it, which knows all times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["event_class", "range_class", "sealed", "waiting"]


def sealed(function: Callable, arguments: int) -> Callable:
    """`function` of so many arguments behind a ufunc: no attribute of it leads to the device, and to its times.

    Examples
    --------
    >>> double = sealed(lambda x: 2 * x, 1)
    >>> double(21), hasattr(double, "__closure__")
    (42, False)
    """
    return np.frompyfunc(function, arguments, 1)


def waiting(wait: Callable) -> Callable:
    """`wait` with the signature of `rl.synchronize`.

    Examples
    --------
    >>> waiting(lambda: print("done"))("cuda:0")
    done
    """

    def synchronize(device: Any = None) -> None:
        wait()

    return synchronize


def event_class(mark: Callable, reach: Callable) -> type:
    """What stands in for `rl.cuda.Event`. `mark` puts an event into the queue and gives its time in ms, and `reach`
    waits for such a time.

    Examples
    --------
    >>> times = iter([10.0, 17.0])
    >>> Event = event_class(lambda: next(times), lambda ms: None)
    >>> start, end = Event(), Event()
    >>> start.record(), end.record(), start.elapsed_ms(end)
    (None, None, 7.0)
    """

    class Event:
        """A point in the time of the fake device."""

        def __init__(self, device: int = 0) -> None:
            self._at_ms: float | None = None

        def record(self, stream: object = None) -> None:
            self._at_ms = mark()

        def synchronize(self) -> None:
            if self._at_ms is not None:
                reach(self._at_ms)

        def elapsed_ms(self, later: Event) -> float:
            later.synchronize()
            if self._at_ms is None or later._at_ms is None:
                raise RuntimeError("[Event] elapsed_ms: expected two events that were recorded")
            return later._at_ms - self._at_ms

    return Event


def range_class(note: Callable, inner: Callable[[str], Any]) -> type:
    """What stands in for `rl.range`, which is `inner`: `note` is told when a range is opened and closed.

    Examples
    --------
    >>> import contextlib
    >>> Range = range_class(lambda kind, name: print(kind, name), lambda name: contextlib.nullcontext())
    >>> with Range("mlp"):
    ...     pass
    open mlp
    close mlp
    """

    class Range:
        """A range that the fake device notes."""

        def __init__(self, name: str) -> None:
            self._name, self._inner = name, inner(name)

        def __enter__(self) -> Any:
            note("open", self._name)
            return self._inner.__enter__()

        def __exit__(self, *exception: Any) -> Any:
            note("close", self._name)
            return self._inner.__exit__(*exception)

    return Range
