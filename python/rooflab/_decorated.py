"""Contexts that also decorate functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from ._calls import runs_later

F = TypeVar("F", bound=Callable)


def decorated(function: F, context: Callable[[], AbstractContextManager], name: str, opening: str) -> F:
    """Wrap `function` so that each call runs inside a `context()` of its own.

    Parameters
    ----------
    function : callable
        What was decorated with the context.
    context : callable
        Makes the context of one call.
    name, opening : str
        The context's name, and how a `with` statement opens it. The error shows both.

    Raises
    ------
    TypeError
        For anything but a function, and for generators and coroutines, which run after the context has been left.

    Examples
    --------
    >>> import contextlib
    >>> double = decorated(lambda x: 2 * x, contextlib.nullcontext, "null", "nullcontext()")
    >>> double(4)
    8
    """
    if not callable(function) or runs_later(function):
        raise TypeError(
            f"[{name}] expected a function, and no generator or async function, got {function!r}; "
            f"write `with {opening}:` inside it"
        )

    @functools.wraps(function)
    def in_context(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return cast(F, in_context)
