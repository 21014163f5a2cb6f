"""In the worker: answers that ask for a formula find no counters to read it from."""

from __future__ import annotations

from rooflab import _core

KEPT = ("__new__", "__init__", "__enter__", "__exit__", "_pybind11_conduit_v1_")


def _nothing(_: object) -> int:
    return 0


def _no_ranges(_: object) -> dict:
    return {}


def take_away() -> None:
    """Disable every counter of this process for good: the core's functions that read counters are removed."""
    for kind in (_core.count, _core.Counts, _core.Cost):
        for name, held in [*vars(kind).items()]:
            if isinstance(held, property):
                setattr(kind, name, property(_no_ranges if name.startswith("by_") else _nothing))
            elif callable(held) and name not in KEPT:
                delattr(kind, name)
