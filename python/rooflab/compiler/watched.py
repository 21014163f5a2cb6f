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
    names : iterable of (owner, names_of, dict)
        ``names_of(owner)`` gives a mapping, and the dict what this holds.
    others : iterable of (owner, read, name, value)
        ``read(owner)`` gives the value; see `compared`.

    Examples
    --------
    >>> settings = {"scale": 2.0}
    >>> watched = Watched([(settings, compared.itself, {"scale": 2.0})], [])
    >>> watched.change()
    >>> settings["scale"] = 3.0
    >>> watched.change()
    'scale'
    """

    def __init__(
        self,
        names: Iterable[tuple[Any, Callable, dict[str, Any]]] = (),
        others: Iterable[tuple[Any, Callable, str, Any]] = (),
    ):
        self._gone: str | None = None  # the name of an object that has died
        self._names: list[tuple[Callable, Callable, tuple[str, ...], tuple[int, ...], list]] = []
        self._others: list[tuple[Callable, Callable, str, Any]] = []
        own = weakref.ref(self)

        def at_end(name: str, _: Any) -> None:  # in any thread, between any two instructions: it takes no lock
            watched = own()
            if watched is not None:
                watched._forget(name)

        for owner, names_of, values in names:
            kept = [compared.held(value, functools.partial(at_end, name)) for name, value in values.items()]
            # The ids are the quickest to compare; 0 where that proves nothing.
            ids = [id(x) if compared.stays(x, each) else 0 for x, each in zip(values.values(), kept, strict=True)]
            find = weakly(owner, functools.partial(at_end, next(iter(values))))
            self._names.append((find, names_of, tuple(values), tuple(ids), kept))
        for owner, read, name, value in others:
            end = functools.partial(at_end, name)
            self._others.append((weakly(owner, end), read, name, compared.held(value, end)))

    def change(self) -> str | None:
        """The name of a value that is not what it was; None while all are."""
        for find, names_of, names, ids, values in self._names:
            get = names_of(find()).get
            if tuple(map(id, map(get, names, itertools.repeat(compared.ABSENT)))) != ids:
                for name, then in zip(names, values, strict=True):
                    if not compared.is_same(get(name, compared.ABSENT), then):
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
