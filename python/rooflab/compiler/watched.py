"""What a recorded function has read, compared at each call; it keeps no object alive that has weak references."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from . import compared
from .arguments import weakly

__all__ = ["Watched"]


class Watched:
    """Values that must stay what they are.

    Parameters
    ----------
    names : iterable of (owner, class, names_of, dict, int or None)
        The owner is of this class; ``names_of(owner)`` gives a mapping, and the dict what this holds. If it must hold
        no more, the last is its length.
    others : iterable of (owner, read, name, value)
        ``read(owner)`` gives the value; see `compared`.

    Examples
    --------
    >>> settings = {"scale": 2.0}
    >>> watched = Watched([(settings, dict, compared.itself, {"scale": 2.0}, None)], [])
    >>> watched.change()
    >>> settings["scale"] = 3.0
    >>> watched.change()
    'scale'
    """

    def __init__(
        self,
        names: Iterable[tuple[Any, type, Callable, dict[str, Any], int | None]] = (),
        others: Iterable[tuple[Any, Callable, str, Any]] = (),
    ):
        self._gone: str | None = None  # the name of an object that has died
        self._names: list[tuple] = []  # see `change`
        self._others: list[tuple[Callable, Callable, str, Any]] = []
        own = weakref.ref(self)

        def at_end(name: str, _: Any) -> None:  # in any thread, between any two instructions: it takes no lock
            watched = own()
            if watched is not None:
                watched._forget(name)

        for owner, kind, names_of, values, count in names:
            absent = frozenset(name for name, value in values.items() if value is compared.ABSENT)
            there = {name: value for name, value in values.items() if name not in absent}
            kept = [compared.held(value, functools.partial(at_end, name)) for name, value in there.items()]
            # The ids are the quickest to compare; 0 where that proves nothing.
            ids = [id(x) if compared.stays(x, each) else 0 for x, each in zip(there.values(), kept, strict=True)]
            find = weakly(owner, functools.partial(at_end, next(iter(values), "__class__")))
            kept.append(compared.held(kind, functools.partial(at_end, "__class__")))  # so that no other gets its id
            self._names.append((find, id(kind), names_of, count, absent, tuple(there), tuple(ids), kept))
        for owner, read, name, value in others:
            end = functools.partial(at_end, name)
            self._others.append((weakly(owner, end), read, name, compared.held(value, end)))

    def change(self) -> str | None:
        """The name of a value that is not what it was; None while all are."""
        for find, kind, names_of, count, absent, names, ids, values in self._names:
            owner = find()
            if id(type(owner)) != kind:
                return "__class__" if owner is not None else self._gone
            now = names_of(owner)
            if count is not None and len(now) != count:
                return "the names of attributes"
            if not now.keys().isdisjoint(absent):
                return next(filter(now.__contains__, absent))
            if tuple(map(id, map(now.get, names, itertools.repeat(compared.ABSENT)))) != ids:
                for name, then in zip(names, values, strict=False):  # the last value is the class
                    if not compared.is_same(now.get(name, compared.ABSENT), then):
                        return name
        for find, read, name, then in self._others:
            owner = find()
            if owner is None or not compared.is_same(read(owner), then):
                return name
        return self._gone

    def _forget(self, name: str) -> None:
        """Nothing is right again without the object that has died. What else is here may hold its tensors."""
        self._gone = self._gone or name
        self._names, self._others = [], []
