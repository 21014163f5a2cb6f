"""Classes: which of them can change, and what they hold."""

from __future__ import annotations

__all__ = ["can_change", "changing", "data"]

_HEAP_TYPE = 1 << 9  # the flag of classes whose attributes can change


def can_change(kind: type) -> bool:
    """Whether the attributes of a class can change, and its objects can be given another class.

    Examples
    --------
    >>> can_change(int), can_change(type("Own", (int,), {}))
    (False, True)
    """
    return bool(kind.__flags__ & _HEAP_TYPE)


def changing(kind: type) -> list[type]:
    """A class and its bases, in the order of lookup, without those that cannot change."""
    return [each for each in kind.__mro__ if each.__flags__ & _HEAP_TYPE]


def data(kind: type) -> set[str]:
    """The names of what a class holds beside methods."""
    found = (item for each in changing(kind) for item in each.__dict__.items())
    return {name for name, value in found if not callable(value) and not name.startswith("__")}
