"""Calls with arguments that do not fit, of functions in Python: the error is a sentence, as of functions in C++."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ._arguments import nearest
from ._habits.options import OPTIONS, changes_nothing, following, instead_of

__all__ = ["fitting", "in_words", "shown"]

P = ParamSpec("P")
R = TypeVar("R")


def in_words(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function say in a sentence which argument does not fit, and drop PyTorch's options that change nothing.

    Parameters
    ----------
    function : callable
        A function, a method, or the `__init__` of a class.

    Returns
    -------
    callable
        The same function, which raises TypeError with a sentence. Calls that fit are made at once.

    Examples
    --------
    >>> @in_words
    ... def half(x, *, digits=2):
    ...     return round(x / 2, digits)
    >>> half(1, digit=3)
    Traceback (most recent call last):
    TypeError: [half] digit: no such argument; did you mean digits? expected (x, *, digits=2)
    >>> half(1, 3)
    Traceback (most recent call last):
    TypeError: [half] expected at most 1 positional argument, got 2; expected (x, *, digits=2)
    """
    signature = inspect.signature(function)
    name = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            if _binds(signature, args, kwargs):
                raise  # the function itself has raised it
        owner = type(args[0]).__name__ if function.__name__ == "__init__" and args else name
        has_own = any(each.startswith(f"{owner}.") for each in OPTIONS)  # else it may inherit them
        given, named = fitting(owner if has_own else name, signature, args, kwargs, owner)
        return function(*given, **named)

    call.__signature__ = signature  # type: ignore[attr-defined]  # what makes stubs does not follow __wrapped__
    return call


def _binds(signature: inspect.Signature, args: tuple, kwargs: dict) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def fitting(
    name: str, signature: inspect.Signature, args: tuple, kwargs: dict, shown_name: str
) -> tuple[tuple, dict[str, Any]]:
    """The arguments without PyTorch's options that change nothing.

    Parameters
    ----------
    name : str
        Of the function; a method's begins with its class.
    signature : Signature
        What it takes.
    args, kwargs : tuple, dict
        What was given.
    shown_name : str
        The name of a class that inherits the function, or the function's.

    Returns
    -------
    args, kwargs : tuple, dict
        They fit.

    Raises
    ------
    TypeError
        For arguments that do not fit, with a sentence.

    Examples
    --------
    >>> fitting("sort", inspect.signature(lambda x: x), (3,), {"stable": True}, "sort")
    ((3,), {})
    """
    parameters = signature.parameters.values()
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    gathers = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]
    is_method = bool(places) and places[0].name == "self"
    last, expected = shown_name.rpartition(".")[2], f"expected {shown(signature)}"
    after = following(name)
    if len(args) == len(places) + 1 and not gathers and after and after not in (*known, *kwargs):
        args, kwargs = args[:-1], {after: args[-1], **kwargs}
    if len(args) > len(places) and not gathers:
        most, plural = len(places) - is_method, "" if len(places) - is_method == 1 else "s"
        text = f"expected at most {most} positional argument{plural}, got {len(args) - is_method}"
        raise TypeError(f"[{last}] {text}; {expected}")
    for each, value in kwargs.items():
        if each not in known and not changes_nothing(name, each, value):
            near = nearest(each, known) or (f"; did you mean *{each}?" if each in signature.parameters else ";")
            raise TypeError(f"[{last}] {each}: no such argument{instead_of(name, each, value) or f'{near} {expected}'}")
    kwargs = {each: value for each, value in kwargs.items() if each in known}
    given = {p.name for p in places[: len(args)]}
    if twice := [each for each in kwargs if each in given]:
        raise TypeError(f"[{last}] {twice[0]}: given twice; {expected}")
    needed = [
        p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing := [each for each in needed if each not in given and each not in kwargs]:
        raise TypeError(f"[{last}] {missing[0]}: missing; {expected}")
    return args, kwargs


def shown(signature: inspect.Signature) -> str:
    """A signature without annotations and self.

    Examples
    --------
    >>> shown(inspect.signature(lambda x, key=len: x))
    '(x, key=...)'
    """
    named = []
    for name, each in signature.parameters.items():
        if name != "self":
            default = ... if callable(each.default) and each.default is not each.empty else each.default
            named.append(each.replace(annotation=each.empty, default=default))
    return str(inspect.Signature(named)).replace("Ellipsis", "...")
