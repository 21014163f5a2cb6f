"""What a function changes while it is recorded is undone: its program, which only calls ops, would not repeat it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._core import Tensor
from .._core._compiler import has_values
from .compared import ABSENT, is_same

__all__ = ["CONTAINERS", "Assigned", "Kept", "unchanged"]

CONTAINERS = (list, dict, set, deque)


class Kept:
    """What outlives a recording and may get tensors that it makes, which have no values.

    Attributes
    ----------
    has_tensors : bool
        Whether `undo` found some.

    Examples
    --------
    >>> import rooflab as rl
    >>> kept = Kept()
    >>> cache = {"n": 3}
    >>> kept.remember(cache)
    >>> cache.update(n=4, table=rl.empty(2, device="meta"))
    >>> kept.undo()
    >>> cache, kept.has_tensors
    ({'n': 4}, True)
    """

    def __init__(self) -> None:
        self.has_tensors = False
        self._containers: dict[int, tuple[Any, Any]] = {}  # with what they held
        self._places: list[tuple[Callable[[], Any], Callable[[Any], Any], Any]] = []

    def remember(self, container: Any) -> None:
        """A list, deque, set or dict, also of attributes or globals, before the function can change it."""
        if id(container) not in self._containers:
            kind: Any = next(kind for kind in CONTAINERS if isinstance(container, kind))
            self._containers[id(container)] = (container, kind(container))

    def remember_place(self, get: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        """What holds one value: a closure variable, an attribute in a slot or of a class, a context variable."""
        self._places.append((get, put, get()))

    def undo(self) -> None:
        """Take the tensors out again."""
        for now, then in self._containers.values():
            if isinstance(now, dict):
                for name in [name for name, value in now.items() if _is_lost(value, then.get(name))]:
                    self.has_tensors = True
                    now[name] = then.get(name)
                    if name not in then:
                        del now[name]
                continue
            known = {id(each) for each in then}
            if any(_is_lost(each) for each in now if id(each) not in known):
                self.has_tensors = True
                now.clear()
                now.update(then) if isinstance(now, set) else now.extend(then)
        for get, put, value in self._places:
            if _is_lost(get(), value):
                self.has_tensors = True
                put(None if value is ABSENT else value)


def _is_lost(now: Any, then: Any = None) -> bool:
    """Whether a value has become one with a tensor that is gone after the recording."""
    left, met = [] if now is then else [now], set()
    while left:
        each = left.pop()
        if isinstance(each, Tensor) and not has_values(each):
            return True
        if isinstance(each, (tuple, *CONTAINERS)) and id(each) not in met:  # it may hold itself
            met.add(id(each))
            left += each.values() if isinstance(each, dict) else each
    return False


class Assigned(ValueError):
    """A function assigns what is undone after it was recorded."""


@contextlib.contextmanager
def unchanged(state: Iterable[Any]) -> Iterator[None]:
    """Undo what a `with` block assigns in attributes (as dicts), lists and dicts, and refuse it.

    Values that it adds are left, as those of caches are; `Kept` takes out tensors among them.

    Raises
    ------
    Assigned
        When the block raised nothing itself, but assigned what was undone.
    """
    before = [(each, each.copy()) for each in state]
    changed: list[str] = []
    try:
        yield
    finally:
        for now, then in before:
            changed += _assigned(now, then)
            _restore(now, then)
    if changed:
        raise Assigned(
            f"[compile] the function assigns {changed[0]} in a module, or in a list or dict that one holds; return the "
            "value, or assign it outside"
        )


def _assigned(now: Any, then: Any) -> list[str]:
    """What a list or dict does not hold any more."""
    if isinstance(now, list):
        return [] if len(now) >= len(then) and all(map(is_same, now, then)) else ["elements of a list"]
    return [repr(name) for name, value in then.items() if not is_same(now.get(name, now), value)]


def _restore(now: Any, then: Any) -> None:
    if isinstance(now, list):
        now[: len(then)] = then
    else:
        now.update(then)
