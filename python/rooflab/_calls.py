"""Checks of a function that a helper is to call: that the call does the work itself, and whose keywords are whose."""

from __future__ import annotations

import inspect
import io
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from types import AsyncGeneratorType
from typing import Any

from . import _core

_LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
_UNFINISHED = {  # what to write where a call returns one of these
    "lambda: list(fn(...))": (Iterator,),
    "lambda: fn(...).result()": (Future,),
    "lambda: asyncio.run(fn(...))": (Awaitable, AsyncGeneratorType),
}


def runs_later(function: object) -> bool:
    """Whether a call of it only makes a generator or coroutine.

    Examples
    --------
    >>> async def waits(): ...
    >>> runs_later(waits), runs_later(len)
    (True, False)
    """
    try:
        return any(kind(one) for kind in _LATER for one in (function, type(function).__call__))
    except Exception:  # an object may raise anything where it is asked for an attribute
        return False


def check_function(name: str, fn: object) -> None:
    """Refuse what cannot be called, and functions whose call only makes an object that does the work later.

    Raises
    ------
    ValueError
        For what cannot be called; inside a function that `rl.compile` records.
    TypeError
        For generator functions and async functions.

    Examples
    --------
    >>> check_function("latency", len)
    """
    if not callable(fn):
        raise ValueError(f"[{name}] fn: expected a callable, got {type(fn).__name__}")
    if runs_later(fn):
        raise TypeError(
            f"[{name}] fn: calling a generator or async function does none of its work; write "
            "lambda: list(fn(...)) or lambda: asyncio.run(fn(...))"
        )
    if _core._compiler.is_tracing():
        raise ValueError(f"[{name}] a recorded function is not run, so nothing would be measured; measure its call")


def check_result(name: str, result: Any) -> None:
    """Refuse an iterator, coroutine or future that a call returned: its work is done later, or by another thread.

    One inside of a tuple is refused too. An open file does no work later, although it is an iterator.

    Raises
    ------
    TypeError
        For such a result.

    Examples
    --------
    >>> check_result("latency", [1, 2])
    """
    left = [result]
    while left:
        one = left.pop()
        if isinstance(one, tuple):
            left += reversed(one)
        for write, kinds in _UNFINISHED.items():
            if not isinstance(one, kinds) or isinstance(one, io.IOBase):
                continue
            if inspect.iscoroutine(one):
                one.close()  # or Python warns that it was never awaited
            kind = type(one).__name__
            raise TypeError(f"[{name}] fn: it returned a {kind}, whose work is not part of the call; write {write}")


def check_keywords(name: str, fn: Callable, given: Mapping[str, object]) -> None:
    """Refuse keywords that both the helper and `fn` have: it would be unclear which of the two they are for.

    Raises
    ------
    TypeError
        For such a keyword.

    Examples
    --------
    >>> check_keywords("latency", sorted, {"repeat": 5})
    """
    try:
        parameters = inspect.signature(fn).parameters
    except Exception:  # some functions in C do not say, and comparing an object may raise anything
        return
    for keyword in given:
        if keyword in parameters and parameters[keyword].kind is not inspect.Parameter.POSITIONAL_ONLY:
            shown = getattr(fn, "__name__", "fn")
            raise TypeError(
                f"[{name}] {keyword}: {shown} has a parameter of that name too; write "
                f"rl.{name}(lambda: {shown}(..., {keyword}=...), ...) and what is left is {name}'s"
            )
