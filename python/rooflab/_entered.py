"""What contexts restore when they are left."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class Entered(Generic[T]):
    """What a context found each time that it was entered, and not left yet.

    One context may be entered again inside itself, and by several threads at once.

    Parameters
    ----------
    name : str
        The context's, for the error.

    Examples
    --------
    >>> before = Entered("no_grad")
    >>> before.push(True), before.push(False)
    (None, None)
    >>> before.pop(), before.pop()
    (False, True)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: dict[int, list[T]] = {}  # by thread

    def push(self, found: T) -> None:
        """Note what this thread found on entry."""
        self._found.setdefault(threading.get_ident(), []).append(found)

    def has_any(self) -> bool:
        """Whether this thread has something to pop."""
        return threading.get_ident() in self._found

    def pop(self) -> T:
        """What this thread noted last. RuntimeError if it has entered nothing."""
        own = threading.get_ident()
        if own not in self._found:
            raise RuntimeError(f"[{self._name}] left in a thread that has not entered it")
        found = self._found[own].pop()
        if not self._found[own]:
            del self._found[own]
        return found
