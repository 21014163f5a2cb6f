"""Threads that share modules take turns: while one records a function, other tensors are in its modules."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["TURNS", "Busy", "Turns"]

_PATIENCE = 30.0  # seconds; a recording takes less, unless it waits for the thread that waits for it


class Busy(ValueError):
    """Other threads use modules, so none can be recorded now."""


class Turns:
    """Who uses modules, and who records.

    Attributes
    ----------
    changes : int
        How often a recording began or ended; odd while one is under way.

    Examples
    --------
    >>> turns = Turns()
    >>> with turns.recording({}):
    ...     turns.changes
    1
    >>> turns.changes
    2
    """

    def __init__(self) -> None:
        self.changes = 0
        self._users: dict[int, int] = {}  # how often each thread has entered `using`
        self._begin()

    def _begin(self) -> None:
        self._state = threading.Condition(threading.Lock())
        self._recorder: int | None = None
        self._places: dict[Any, list] = {}

    @contextlib.contextmanager
    def recording(self, places: dict[Any, list]) -> Iterator[None]:
        """Keep others from the modules, at whose `places` a `with` block puts other tensors.

        Raises
        ------
        Busy
            When another thread runs a function on modules.
        """
        own = threading.get_ident()
        with self._state:
            self._wait(own)
            if self._recorder not in (None, own) or any(thread != own for thread in self._users):
                raise Busy("[compile] another thread uses modules")
            self._recorder, self._places = own, places
            self.changes += 1
        try:
            yield
        finally:
            with self._state:
                self._recorder, self._places = None, {}
                self.changes += 1
                self._state.notify_all()

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Wait until no other thread records, and keep them from it inside a `with` block."""
        own = threading.get_ident()
        with self._state:
            self._wait(own)
            self._users[own] = self._users.get(own, 0) + 1
        try:
            yield
        finally:
            with self._state:
                self._users[own] -= 1
                if not self._users[own]:
                    del self._users[own]

    def _wait(self, own: int) -> None:
        self._state.wait_for(lambda: self._recorder in (None, own), _PATIENCE)

    def after_fork(self) -> None:
        """In a child there are no other threads, and what one was recording is over."""
        own = threading.get_ident()
        if self._recorder not in (None, own):
            for x, attributes in self._places.items():
                for holder, name in attributes:
                    holder[name] = x
            self.changes += 1
        if self._recorder != own:
            self._users = {thread: count for thread, count in self._users.items() if thread == own}
            self._begin()


TURNS = Turns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TURNS.after_fork)
