"""Functions that a module calls before and after its forward pass."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from .._handles import Handle

__all__ = ["add_hook"]

_numbers = itertools.count()


def add_hook(owner: Any, name: str, hook: Callable) -> Handle:
    """Add a hook to those that an object keeps in an attribute, and return its handle.

    Parameters
    ----------
    owner : object
        Has a `__dict__`.
    name : str
        The attribute, a dict of hooks by number. It is made with the first hook.
    hook : callable
        What is added.

    Returns
    -------
    Handle
        Removes it.

    Raises
    ------
    TypeError
        For a hook that cannot be called.

    Examples
    --------
    >>> import types
    >>> owner = types.SimpleNamespace()
    >>> with add_hook(owner, "_hooks", print):
    ...     len(owner._hooks)
    1
    >>> len(owner._hooks)
    0
    """
    if not callable(hook):
        raise TypeError(f"[{type(owner).__name__}] hook: expected a callable, got {type(hook).__name__}")
    hooks = vars(owner).setdefault(name, {})
    number = next(_numbers)
    hooks[number] = hook
    return Handle(partial(hooks.pop, number, None))
