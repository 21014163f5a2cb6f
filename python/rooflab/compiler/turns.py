"""Threads that share modules take turns: while one records a function, other tensors are in its modules."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["TURNS", "Busy", "InVain", "Turns"]

_PATIENCE = 30.0  # seconds; a recording takes less, unless it waits for the thread that waits for it


class Busy(ValueError):
    """Other threads use modules, so none can be recorded now."""


class InVain(RuntimeError):
    """A thread that records a function may wait for the one that waits for it."""

    def __init__(self) -> None:
        super().__init__(
            f"[compile] it took longer than {_PATIENCE:g} s to record a function, and another thread waits to use the "
            "same modules: the function may wait for that thread; do not compile a function that starts threads"
        )


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
        self._in_vain = False  # whether the recorder was waited for in vain

    @contextlib.contextmanager
    def recording(self, places: dict[Any, list]) -> Iterator[None]:
        """Keep others from the modules, at whose `places` a `with` block puts other tensors.

        Raises
        ------
        Busy
            When another thread runs a function on modules.
        InVain
            When another thread waited in vain to use those at `places`.
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
            if self._in_vain:
                raise InVain
        finally:
            with self._state:
                self._recorder, self._places = None, {}
                self._in_vain = False
                self.changes += 1
                self._state.notify_all()

    @contextlib.contextmanager
    def using(self, places: dict[Any, list]) -> Iterator[None]:
        """Wait until no other thread records, and keep them from it inside a `with` block.

        Raises
        ------
        InVain
            When another thread goes on to record, and has other tensors at some of `places`.
        """
        own = threading.get_ident()
        with self._state:
            self._wait(own)
            if self._recorder not in (None, own) and not _each(places).isdisjoint(_each(self._places)):
                self._in_vain = True
                self._state.notify_all()
                raise InVain
            self._users[own] = self._users.get(own, 0) + 1
        try:
            yield
        finally:
            with self._state:
                self._users[own] -= 1
                if not self._users[own]:
                    del self._users[own]

    def _wait(self, own: int) -> None:
        self._state.wait_for(lambda: self._in_vain or self._recorder in (None, own), _PATIENCE)

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


def _each(places: dict[Any, list]) -> set[tuple[int, str]]:
    return {(id(holder), name) for attributes in places.values() for holder, name in attributes}


TURNS = Turns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TURNS.after_fork)
