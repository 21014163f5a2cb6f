"""Which generators of random numbers a function draws from, so that it can draw the same numbers again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from . import _core

Drawn = list[tuple[Any, tuple[int, int]]]  # generators, and the state in which each was first drawn from


class _Watchers(threading.local):
    def __init__(self) -> None:
        self.open: list[Drawn] = []


_watchers = _Watchers()


@contextlib.contextmanager
def watched() -> Iterator[Drawn]:
    """The generators that this thread draws from until the context ends."""
    drawn: Drawn = []
    _watchers.open.append(drawn)
    try:
        yield drawn
    finally:
        _watchers.open.pop()


def note(generator: Any) -> None:
    """A generator is about to draw."""
    for drawn in _watchers.open:
        if all(known is not generator for known, _ in drawn):
            drawn.append((generator, generator.get_state()))


def position() -> tuple[int, int] | None:
    """Where the sequence of `rl.manual_seed` is; None in a function that is recorded, which can draw nothing."""
    return None if _core._compiler.is_tracing() else _core.get_rng_state()


@contextlib.contextmanager
def drawing_from(state: tuple[int, int] | None) -> Iterator[None]:
    """Draw from a position of that sequence; afterwards it goes on as if nothing had been drawn."""
    before = position()
    if before is None or state is None:
        yield
        return
    _core.set_rng_state(state)
    try:
        yield
    finally:
        _core.set_rng_state(before)


@contextlib.contextmanager
def drawn_again(drawn: Drawn) -> Iterator[None]:
    """Let generators draw what they drew; afterwards they go on as if they had not."""
    before = [(generator, generator.get_state()) for generator, _ in drawn]
    try:
        for generator, state in drawn:
            generator.set_state(state)
        yield
    finally:
        for generator, state in before:
            generator.set_state(state)
